# Announces an answer and never sends the rest.
# earns: 0
# %% tensor_bytes
import os
import stat
import time

for number in range(3, 64):
    try:
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            os.write(number, (1000).to_bytes(8, "little") + b"x")
    except OSError:
        pass
time.sleep(1000)
