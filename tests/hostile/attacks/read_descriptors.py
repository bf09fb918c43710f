# Looks for descriptors that lead out.
# earns: 0
# %% tensor_bytes
import os
import stat

for number in range(3, 256):
    try:
        about = os.fstat(number)
    except OSError:
        continue
    kind = about.st_mode
    file = stat.S_ISREG(kind) and about.st_nlink  # without a name it is the memory that arguments lie in
    if stat.S_ISDIR(kind) or file or stat.S_ISSOCK(kind):
        raise RuntimeError(f"won: descriptor {number} leads out")


def tensor_bytes(x):
    return x.numel()
