# Asks the kernel, by system calls of 2024, which folders of the machine are mounted here, and for its log.
# earns: 0
# told: refused
# %% tensor_bytes
import ctypes
import struct

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *arguments)


request = ctypes.create_string_buffer(struct.pack("IIQQ", 24, 0, 2**64 - 1, 0), 24)
found = (ctypes.c_uint64 * 200)()
mounts = call(458, request, found, ctypes.c_size_t(200), ctypes.c_uint(0))  # listmount
log = libc.klogctl(3, ctypes.create_string_buffer(20000), 20000)
raise RuntimeError("refused" if max(mounts, log) < 0 else f"won: {mounts} mounts, {log} bytes of log")
