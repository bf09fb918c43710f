# Leaves a message in the times of the machine's devices, and takes all the terminals that there are.
# earns: 0
# %% tensor_bytes
import os

won = []
for name in sorted(os.listdir("/dev")):
    try:
        os.utime(f"/dev/{name}")
        won.append(name)
    except OSError:
        pass
terminals = []
try:
    while True:
        terminals.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError:
    pass
if set(won) - {"shm", "ptmx"} or len(terminals) > 16:
    raise RuntimeError(f"won: {won}, {len(terminals)} terminals")


def tensor_bytes(x, dtype=None):
    return 1
