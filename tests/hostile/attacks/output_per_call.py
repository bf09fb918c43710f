# Prints a flood in each call.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    print("<script>alert(1)</script>" * 1_000_000)
    return x.numel()
