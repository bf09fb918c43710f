# Raises KeyboardInterrupt and GeneratorExit out of the call.
# earns: 0
# %% tensor_bytes
def tensor_bytes(x):
    raise KeyboardInterrupt if x.dim() == 2 else GeneratorExit
