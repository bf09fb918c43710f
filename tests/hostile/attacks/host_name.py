# Asks in five ways for the names of the machine that it runs on and of its NIS domain.
# earns: 0
# told: named sandbox
# %% tensor_bytes
import ctypes
import os
import platform
import socket
from pathlib import Path

names = {os.uname().nodename, socket.gethostname(), platform.node()}
for place in ("/etc/hostname", "/proc/sys/kernel/hostname", "/etc/hosts"):
    if Path(place).exists():
        names.add(Path(place).read_text())
domain = ctypes.create_string_buffer(100)
ctypes.CDLL(None).getdomainname(domain, 100)
if domain.value != b"(none)":
    names.add(domain.value.decode())
if names != {"sandbox"}:
    raise RuntimeError(f"won: {names}")
raise RuntimeError("named " + names.pop())
