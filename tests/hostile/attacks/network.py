# Opens connections: out, to this machine, and to abstract sockets.
# earns: 0
# %% tensor_bytes
import socket

for family, address in (
    (socket.AF_INET, ("1.1.1.1", 53)),
    (socket.AF_INET, ("127.0.0.1", 22)),
    (socket.AF_INET, ("127.0.0.1", 8786)),
    (socket.AF_INET6, ("::1", 22)),
    (socket.AF_UNIX, "\0/tmp/.X11-unix/X0"),
    (socket.AF_UNIX, "/run/dbus/system_bus_socket"),
):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(0.2)
            one.connect(address)
        raise RuntimeError(f"won: {address} can be reached")
    except OSError:
        pass
try:
    socket.gethostbyname("example.org")
    raise RuntimeError("won: names can be looked up")
except OSError:
    pass


def tensor_bytes(x):
    return x.numel()
