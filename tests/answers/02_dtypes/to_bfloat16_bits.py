# %% wrong: cuts
# says: The lower bits are merely cut off
def to_bfloat16_bits(x):
    return (x.view(torch.int32) >> 16) & 0xFFFF

# %% wrong: halves up
# says: A tie goes to the even neighbour, not always up
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    return torch.where(x.isnan(), 0x7FC0, (bits + 0x8000) >> 16)

# %% wrong: halves down
# says: A tie goes to the even neighbour, not always down
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    return torch.where(x.isnan(), 0x7FC0, (bits + 0x7FFF) >> 16)

# %% wrong: to the odd one
# says: the one whose last bit is 0
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    even = 1 - (bits >> 16 & 1)
    return torch.where(x.isnan(), 0x7FC0, (bits + 0x7FFF + even) >> 16)

# %% wrong: up whenever something is left
# says: only if the lower bits are more than a half
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    return torch.where(x.isnan(), 0x7FC0, (bits + 0xFFFF) >> 16)

# %% wrong: negative numbers
# says: That is a negative number
def to_bfloat16_bits(x):
    bits = x.view(torch.int32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where(x.isnan(), 0x7FC0, rounded)

# %% wrong: the sign is lost
# says: The sign bit is lost
def to_bfloat16_bits(x):
    bits = x.view(torch.int32) & 0x7FFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where(x.isnan(), 0x7FC0, rounded)

# %% wrong: NaN is rounded like a number
# says: A NaN must stay a NaN
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF

# %% wrong: the mantissa wraps round
# says: the carry goes into the exponent
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    wrapped = (bits >> 16 & 0xFF80) | (rounded & 0x7F)
    return torch.where(x.isnan(), 0x7FC0, wrapped)

# %% wrong: PyTorch's own
# says: PyTorch's conversion to bfloat16 is not to be called
def to_bfloat16_bits(x):
    return x.bfloat16().view(torch.int16).int() & 0xFFFF

# %% wrong: the largest number does not overflow
# says: follow the same rule
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    rounded = torch.where(x.isfinite() & (rounded & 0x7FFF == 0x7F80), rounded - 1, rounded)
    return torch.where(x.isnan(), 0x7FC0, rounded)

# %% wrong: flushes subnormal numbers
# says: follow the same rule
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    rounded = torch.where(rounded & 0x7F80 == 0, rounded & 0x8000, rounded)
    return torch.where(x.isnan(), 0x7FC0, rounded)

# %% wrong: flat
# says: has the shape of x
def to_bfloat16_bits(x):
    bits = x.reshape(-1).view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where(x.reshape(-1).isnan(), 0x7FC0, rounded)

# %% wrong: infinity becomes a NaN
# says: Infinity is no NaN
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where((bits & 0x7F800000) == 0x7F800000, 0x7FC0, rounded)

# %% wrong: an int16
# says: an int16 ends at 32,767
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where(x.isnan(), 0x7FC0, rounded).to(torch.int16)

# %% wrong: left where they were
# says: move them down
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return torch.where(x.isnan(), 0x7FC00000, rounded)

# %% wrong: floats
# says: an integer dtype?
def to_bfloat16_bits(x):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return torch.where(x.isnan(), 0x7FC0, rounded).float()

# %% wrong: PyTorch's own, written into whole numbers
# says: PyTorch's conversion to bfloat16 is not to be called
def to_bfloat16_bits(x):
    result = torch.empty(x.shape, dtype=torch.int16)
    result.view(torch.bfloat16).copy_(x)
    return result.int() & 0xFFFF

# %% wrong: PyTorch's own, number by number
# says: PyTorch's conversion to bfloat16 is not to be called
def to_bfloat16_bits(x):
    bits = [torch.tensor(v, dtype=torch.bfloat16).view(torch.int16) for v in x.flatten().tolist()]
    return torch.stack(bits).reshape(x.shape).int() & 0xFFFF

# %% right: compares with the half, in int32
def to_bfloat16_bits(x):
    bits = x.contiguous().view(torch.int32)
    upper, lower = (bits >> 16) & 0xFFFF, bits & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper % 2 == 1))
    result = upper + up
    result[x != x] = 0xFFFF
    return result

# %% right: NumPy
def to_bfloat16_bits(x):
    import numpy as np

    bits = x.contiguous().numpy().view(np.uint32).astype(np.uint64)
    rounded = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    quiet = (bits >> np.uint64(16)) | np.uint64(0x40)
    result = np.where(np.isnan(x.numpy()), quiet, rounded)
    return torch.from_numpy(np.asarray(result).astype(np.int64).reshape(tuple(x.shape)))

# %% right: one by one, with struct
def to_bfloat16_bits(x):
    import struct

    results = []
    for value in x.reshape(-1).tolist():
        if math.isnan(value):
            results.append(0x7FC1)
            continue
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        results.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return torch.tensor(results, dtype=torch.int32).reshape(x.shape)

# %% right: the halves of the memory
def to_bfloat16_bits(x):
    halves = x.contiguous().reshape(-1).view(torch.int16).reshape(-1, 2).int() & 0xFFFF
    lower, upper = halves[:, 0], halves[:, 1]
    result = upper + (lower + (upper & 1) > 0x8000).int()
    nan = ((upper & 0x7F80) == 0x7F80) & (((upper & 0x7F) | lower) != 0)
    return torch.where(nan, upper | 1, result).reshape(x.shape)

# %% right: the upper halves of a copy, seen as bfloat16
def to_bfloat16_bits(x):
    flat = x.clone(memory_format=torch.contiguous_format).reshape(-1)
    upper = flat.view(torch.bfloat16)[1::2].view(torch.int16).int() & 0xFFFF
    lower = flat.view(torch.int32) & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper % 2 == 1))
    return torch.where(x.isnan(), 0x7FFF, (upper + up).reshape(x.shape))

# %% right: sign and magnitude, in a uint16
def to_bfloat16_bits(x):
    bits = x.view(torch.int32)
    sign, size = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    rounded = ((size + (0x7FFF + ((size >> 16) & 1))) >> 16) & 0x7FFF
    return (sign | torch.where(size > 0x7F800000, (size >> 16) | 0x40, rounded)).to(torch.uint16)

# %% equivalent: 32704 → 32705
# why: any NaN will do
# %% equivalent: 32704 → 32703
# why: 0x7FBF is a NaN, too
