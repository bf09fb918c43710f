# Sleeps when it is called, with all signals blocked.
# earns: 0
# %% tensor_bytes
import signal
import time


def tensor_bytes(x):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    time.sleep(100_000)
