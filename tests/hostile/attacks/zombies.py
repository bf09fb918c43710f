# Leaves children that have ended and that nobody waits for, some of them with a living thread.
# earns: 1
# %% tensor_bytes
import ctypes
import os
import threading
import time

for number in range(20):
    if os.fork() == 0:
        if number % 2:
            threading.Thread(target=time.sleep, args=(1000,)).start()
            ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # ends this thread alone
        os._exit(0)


def tensor_bytes(x, dtype=None):
    return x.numel() * (dtype or x.dtype).itemsize
