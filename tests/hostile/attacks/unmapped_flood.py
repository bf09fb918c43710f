# Fills shared memory and lets go of each page, so that no process shows it and the kernel keeps it.
# earns: 0
# told: of memory
# %% tensor_bytes
import mmap
import time

shared = mmap.mmap(-1, 3 * 2**30)
for place in range(0, len(shared), 2**26):
    shared[place : place + 2**26] = b"x" * 2**26
    shared.madvise(mmap.MADV_DONTNEED)
time.sleep(1000)
