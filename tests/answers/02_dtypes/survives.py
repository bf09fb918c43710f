# %% wrong: asks for the exact value
# says: It need not come through exactly
def survives(values, dtype):
    return values.to(dtype).to(values.dtype) == values

# %% wrong: only looks for overflow
# says: A number too small becomes 0
def survives(values, dtype):
    return values.to(dtype).isfinite()

# %% wrong: only looks for underflow
# says: A number too large becomes infinite
def survives(values, dtype):
    converted = values.to(dtype)
    return (converted != 0) | (values == 0)

# %% wrong: 0 does not survive
# says: it has nothing to lose
def survives(values, dtype):
    converted = values.to(dtype)
    return converted.isfinite() & (converted != 0)

# %% wrong: forgets negative numbers
# says: Negative numbers overflow and underflow as well
def survives(values, dtype):
    converted = values.to(dtype)
    return (converted < torch.inf) & ((converted != 0) | (values == 0))

# %% wrong: no subnormal numbers
# says: Below the smallest normal number lie the subnormal ones
def survives(values, dtype):
    info = torch.finfo(dtype)
    size = values.abs()
    return ((size >= info.tiny) & (size <= info.max)) | (values == 0)

# %% wrong: compares with the limits, without rounding
# says: What counts is what the number is rounded to
def survives(values, dtype):
    info = torch.finfo(dtype)
    size = values.double().abs()
    return ((size > info.tiny * info.eps / 2) & (size <= info.max)) | (size == 0)

# %% wrong: eps for the smallest number
# says: 1e-8 and 70,000 get through
def survives(values, dtype):
    info = torch.finfo(dtype)
    return ((values.abs() > info.eps) & (values.abs() < info.max)) | (values == 0)

# %% wrong: NaN slips through
# says: What is infinite or NaN already does not survive
def survives(values, dtype):
    converted = values.to(dtype)
    return ~converted.isinf() & ((converted != 0) | (values == 0))

# %% wrong: infinity had nothing to lose either
# says: What is infinite or NaN already does not survive
def survives(values, dtype):
    converted = values.to(dtype)
    return (converted.isfinite() | values.isinf()) & ((converted != 0) | (values == 0))

# %% wrong: upside down
# says: True means that it survives
def survives(values, dtype):
    converted = values.to(dtype)
    return ~(converted.isfinite() & ((converted != 0) | (values == 0)))

# %% wrong: always float16
# says: 1e-8 and 70,000 get through
def survives(values, dtype):
    converted = values.half()
    return converted.isfinite() & ((converted != 0) | (values == 0))

# %% wrong: one answer for all
# says: shape
def survives(values, dtype):
    converted = values.to(dtype)
    return (converted.isfinite() & ((converted != 0) | (values == 0))).all()

# %% wrong: no parentheses
# says: put each comparison in parentheses
def survives(values, dtype):
    converted = values.to(dtype)
    return converted.isfinite() & converted != 0 | values == 0

# %% wrong: Python's and
# says: not with `and` and `or`
def survives(values, dtype):
    converted = values.to(dtype)
    return converted.isfinite() and (converted != 0 or values == 0)

# %% wrong: float32 on the way
# says: What counts is what the number is rounded to
def survives(values, dtype):
    values = values.float()
    converted = values.to(dtype)
    return converted.isfinite() & ((converted != 0) | (values == 0))

# %% wrong: close is good enough
# says: A number too small becomes 0
def survives(values, dtype):
    return torch.isclose(values.to(dtype).to(values.dtype), values, rtol=1e-2)

# %% right: compares the classes
def survives(values, dtype):
    converted = values.to(dtype)
    return (torch.sign(converted).to(values.dtype) == torch.sign(values)) & (converted.abs() < torch.inf)

# %% right: one by one
def survives(values, dtype):
    def one(v):
        c = torch.tensor(v, dtype=torch.float64).to(values.dtype).to(dtype).item()
        return math.isfinite(c) and (c != 0 or v == 0)

    return torch.tensor([one(v) for v in values.flatten().tolist()], dtype=torch.bool).reshape(values.shape)

# %% right: the edges, halfway
def survives(values, dtype):
    info = torch.finfo(dtype)
    size = values.double().abs()
    least = info.tiny * info.eps / 2
    most = info.max * (1 + info.eps / (2 * (2 - info.eps)))
    return (size == 0) | ((size > least) & (size < most))

# %% right: the way back
def survives(values, dtype):
    back = values.to(dtype).double()
    gone = torch.logical_or(back.isnan(), back.isinf())
    vanished = torch.logical_and(back == 0, values.double() != 0)
    return torch.logical_not(torch.logical_or(gone, vanished))
