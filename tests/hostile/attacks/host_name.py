# Asks in four ways for the name of the machine that it runs on.
# earns: 0
# told: named sandbox
# %% tensor_bytes
import os
import platform
import socket
from pathlib import Path

names = {os.uname().nodename, socket.gethostname(), platform.node()}
for place in ("/etc/hostname", "/proc/sys/kernel/hostname", "/etc/hosts"):
    if Path(place).exists():
        names.add(Path(place).read_text())
if names != {"sandbox"}:
    raise RuntimeError(f"won: {names}")
raise RuntimeError("named " + names.pop())
