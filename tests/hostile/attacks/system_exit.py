# Raises SystemExit in the cell and in the call.
# earns: 0
# %% tensor_bytes
import sys


def tensor_bytes(x):
    sys.exit(0)


sys.exit("done")
