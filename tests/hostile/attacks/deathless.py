# Takes back the signal that it gets when its parent dies, and ignores all others.
# earns: 0
# %% tensor_bytes
import ctypes
import signal

ctypes.CDLL(None).prctl(1, 0)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
