# Returns a whole number with a million digits.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return 10**1_000_000
