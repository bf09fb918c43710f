# Hangs inside one call of C, where no Python signal handler runs.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return 7 ** (10**9) % 2
