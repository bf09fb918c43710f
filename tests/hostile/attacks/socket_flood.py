# Keeps messages in sockets, most of them closed, which the kernel counts as memory of no process.
# earns: 0
# told: of memory
# %% tensor_bytes
import os
import socket
import time

ours, theirs = socket.socketpair()
before = ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**30)
if ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > before:
    raise RuntimeError("won: a larger socket")
os.fork(), os.fork()
receivers = []
for number in range(200):
    address = f"\0{os.getpid()} {number}"
    receivers.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    receivers[-1].bind(address)
    try:
        while True:
            sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            sender.setblocking(False)
            sender.sendto(b"x" * 200_000, address)
            sender.sendto(b"x" * 200_000, address)
    except BlockingIOError:
        pass
time.sleep(1000)
