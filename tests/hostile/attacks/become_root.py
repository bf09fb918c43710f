# Asks for user 0, for capabilities, and runs set-user-ID programs.
# earns: 0
# %% tensor_bytes
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
import os

won = []
for number in (0, 1000):
    try:
        os.setuid(number)
        won.append(number)
    except OSError:
        pass
if libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(2**21, 2**21, 0, 0, 0, 0)) == 0:
    won.append("capabilities")
if won:
    raise RuntimeError(f"won: {won}")


def tensor_bytes(x):
    return x.numel()
