# Gives its function and its exception names that are HTML.
# earns: 0
# %% tensor_bytes
Evil = type("<script>alert(1)</script>", (Exception,), {})


def tensor_bytes(x):
    raise Evil("\x1b[2J" * 100_000)


tensor_bytes.__name__ = "<img src=x onerror=alert(1)>"
