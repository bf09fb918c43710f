# Returns a list of ten million numbers, and a dict of a million keys.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return list(range(10_000_000)) if x.dim() == 2 else dict.fromkeys(range(1_000_000))
