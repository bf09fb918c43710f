# Returns truth values and complex numbers where numbers are wanted.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    return True if x.numel() == 1 else complex(x.numel(), 0)
