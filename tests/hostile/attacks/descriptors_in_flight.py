# Sends descriptors that nobody receives: of those the kernel lets all processes of a user have a few hundred.
# earns: 0
# %% tensor_bytes
import ctypes
import os
import socket

ours, theirs = socket.socketpair()
try:
    socket.send_fds(ours, [b"x"], [ours.fileno()])
    raise RuntimeError("won: a descriptor in flight")
except OSError:
    pass
sendmmsg = {"x86_64": 307, "aarch64": 269}[os.uname().machine]
if ctypes.CDLL(None).syscall(sendmmsg, ours.fileno(), ctypes.create_string_buffer(64), 1, 0) >= 0:
    raise RuntimeError("won: several messages at once")


def tensor_bytes(x, dtype=None):
    return 1
