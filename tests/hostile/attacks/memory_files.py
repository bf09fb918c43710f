# Keeps memory outside all processes: memfd, System V, message queues, keys.
# earns: 0
# %% tensor_bytes
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
import os

won = []
try:
    won.append(os.memfd_create("x"))
except OSError:
    pass
if libc.shmget(1, 2**20, 0o1666) >= 0 or libc.msgget(1, 0o1666) >= 0 or libc.semget(1, 1, 0o1666) >= 0:
    won.append("System V")
if libc.syscall(248, b"user", b"x", b"y", 1, -4) >= 0:
    won.append("keys")
if won:
    raise RuntimeError(f"won: {won}")


def tensor_bytes(x):
    return x.numel()
