# Forks, and each fork writes to what it has inherited: no process is larger than the one that it came from.
# earns: 0
# told: of memory
# %% tensor_bytes
import os
import time

hold = bytearray(b"x") * (400 * 2**20)
for _ in range(4):
    if os.fork() == 0:
        for place in range(0, len(hold), 4096):
            hold[place] = 1
        time.sleep(1000)
time.sleep(1000)
