# Returns a list that holds itself, and a dict as deep as it gets.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    loop = []
    loop.append(loop)
    return loop
