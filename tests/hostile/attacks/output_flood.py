# Prints without end, to stdout and to the descriptors.
# earns: 0
# %% tensor_bytes
import os
import sys

for _ in range(3000):
    print("x" * 100_000)
    sys.stderr.write("y" * 1000)
    os.write(1, b"z" * 100_000)
    os.write(2, b"z" * 100_000)


def tensor_bytes(x):
    return x.numel()
