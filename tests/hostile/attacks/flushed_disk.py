# Has all files of the machine written to its disk, again and again, for which everybody's other work waits.
# earns: 0
# told: refused 3
# %% tensor_bytes
import ctypes
import errno
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
machine = 0 if os.uname().machine == "x86_64" else 1
place = os.open(os.path.dirname(sys.executable), os.O_RDONLY)
refused = 0
for numbers, arguments in (((162, 81), ()), ((306, 267), (place,)), ((277, 84), (place, 0, 0, 0, 7))):
    if libc.syscall(numbers[machine], *arguments) == 0:
        raise RuntimeError("won: the disk is written")
    refused += ctypes.get_errno() == errno.EPERM
raise RuntimeError(f"refused {refused}")
