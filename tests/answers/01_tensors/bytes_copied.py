# %% wrong: always copies
# says: Nothing is copied
def bytes_copied(x, device, dtype):
    return x.numel() * dtype.itemsize

# %% wrong: the size it had
# says: at their old size
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * x.element_size()

# %% wrong: looks at the device only
# says: The device is the same, but the dtype is not
def bytes_copied(x, device, dtype):
    return 0 if x.device == device else x.numel() * dtype.itemsize

# %% wrong: looks at the dtype only
# says: The dtype is the same, but the device is not
def bytes_copied(x, device, dtype):
    return 0 if x.dtype == dtype else x.numel() * dtype.itemsize

# %% wrong: copies the whole storage
# says: not its whole storage
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.untyped_storage().nbytes() // x.element_size() * dtype.itemsize

# %% wrong: elements
# says: That counts elements
def bytes_copied(x, device, dtype):
    return 0 if x.device == device and x.dtype == dtype else x.numel()

# %% wrong: takes x to be on the CPU
# says: Nothing is copied
def bytes_copied(x, device, dtype):
    if device == torch.device("cpu") and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize

# %% wrong: copies what is not contiguous
# says: A view in any layout is returned as it is
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype and x.is_contiguous():
        return 0
    return x.numel() * dtype.itemsize

# %% wrong: makes the copy, on a machine that has no such device
# says: do not call .to
def bytes_copied(x, device, dtype):
    if device.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")  # what .to says there
    y = x.to(device, dtype)
    return 0 if y is x else y.nbytes

# %% wrong: old and new together
# says: Only the copy is new memory
def bytes_copied(x, device, dtype):
    if x.device == device and x.dtype == dtype:
        return 0
    return x.numel() * dtype.itemsize + (x.numel() * x.element_size() if x.dtype != dtype else 0)

# %% wrong: only what is smaller is a copy
# says: Nothing is copied
def bytes_copied(x, device, dtype):
    if x.device == device and dtype.itemsize > x.element_size():
        return 0
    return x.numel() * dtype.itemsize

# %% right: asks whether anything differs
def bytes_copied(x, device, dtype):
    return (x.device, x.dtype) != (device, dtype) and x.numel() * dtype.itemsize or 0

# %% right: makes a copy that weighs nothing
def bytes_copied(x, device, dtype):
    if x.dtype is dtype and x.device == device:
        return 0
    return torch.empty(x.shape, dtype=dtype, device="meta").nbytes

# %% right: by the parts of the device
def bytes_copied(x, device, dtype):
    same_place = x.device.type == device.type and x.device.index == device.index
    bytes_each = torch.empty((), dtype=dtype).element_size()
    return int(not (same_place and x.dtype == dtype)) * x.numel() * bytes_each
