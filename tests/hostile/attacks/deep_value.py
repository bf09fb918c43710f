# Returns a list nested a hundred thousand deep.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    value = []
    for _ in range(100_000):
        value = [value]
    return value
