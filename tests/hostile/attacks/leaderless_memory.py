# Takes memory in processes whose first thread has ended, so that nothing is shown under a process's own name.
# earns: 0
# told: of memory
# %% tensor_bytes
import ctypes
import os
import threading
import time


def hold():
    time.sleep(0.5)  # until the first one has ended
    held = bytearray(700 * 2**20)
    for place in range(0, len(held), 4096):
        held[place] = 1
    time.sleep(1000)


for _ in range(2):
    if os.fork() != 0:
        continue
    threading.Thread(target=hold).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # ends this thread alone
time.sleep(1000)
