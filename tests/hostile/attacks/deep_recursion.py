# Recurses without a limit until the stack is gone.
# earns: 0
# %% tensor_bytes
import sys

sys.setrecursionlimit(10**9)


def tensor_bytes(x):
    return tensor_bytes(x) + 1
