# Registers functions for the end of the process.
# earns: 0
# %% tensor_bytes
import atexit
import os

atexit.register(lambda: open("/tmp/course-attack-atexit", "w").write("100 points"))
atexit.register(os.fork)


def tensor_bytes(x):
    return x.numel()
