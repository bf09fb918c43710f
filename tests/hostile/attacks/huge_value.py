# Returns three hundred million bytes.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return bytes(300_000_000)
