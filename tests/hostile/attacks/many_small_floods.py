# Fills memory with many processes, each below its limit.
# earns: 0
# %% tensor_bytes
import os
import time

for _ in range(40):
    if os.fork() == 0:
        hold = bytearray(b"x") * 2**26
        time.sleep(1000)
time.sleep(1000)
