# Takes memory that no process shows once it has unmapped all but a page: shared mappings, of /dev/zero too; huge pages.
# earns: 0
# %% tensor_bytes
import mmap
import os

won = []
for flags in (mmap.MAP_SHARED, mmap.MAP_SHARED | 0x40000, mmap.MAP_PRIVATE | 0x40000, 0x3):
    try:
        won.append(mmap.mmap(-1, 2**21, flags=flags | mmap.MAP_ANONYMOUS))
    except OSError:
        pass
for name in os.listdir("/dev"):
    try:
        won.append(mmap.mmap(os.open(f"/dev/{name}", os.O_RDWR), 2**21, flags=mmap.MAP_SHARED))
    except OSError:
        pass
if won:
    raise RuntimeError(f"won: {won}")


def tensor_bytes(x, dtype=None):
    return 1
