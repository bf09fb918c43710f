# Writes to address 0.
# earns: 0
# %% tensor_bytes
import ctypes

ctypes.memset(0, 1, 1)


def tensor_bytes(x):
    return x.numel()
