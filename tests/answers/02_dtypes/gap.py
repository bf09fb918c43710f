# %% wrong: always eps
# says: eps is the gap at 1
def gap(x, dtype):
    return torch.finfo(dtype).eps

# %% wrong: in proportion
# says: it does not grow with each number
def gap(x, dtype):
    return x * torch.finfo(dtype).eps

# %% wrong: down
# says: the gap below is half of the gap above
def gap(x, dtype):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    return here.double().item() - (here.view(whole) - 1).view(dtype).double().item()

# %% wrong: from x itself
# says: Round x to the dtype first
def gap(x, dtype):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    return (here.view(whole) + 1).view(dtype).double().item() - x

# %% wrong: nothing below the smallest normal number
# says: the gap shrinks no further
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).double().item()
    if here == 0:
        return torch.finfo(dtype).tiny * torch.finfo(dtype).eps
    return torch.finfo(dtype).eps * 2.0 ** (math.frexp(here)[1] - 1)

# %% wrong: log2
# says: log2 rounds, too
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = max(torch.tensor(x, dtype=dtype).double().item(), info.tiny)
    return info.eps * 2.0 ** math.floor(math.log2(here))

# %% wrong: the smallest normal number follows 0
# says: The number after 0 is the smallest subnormal one
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = torch.tensor(x, dtype=dtype).double().item()
    if here == 0:
        return info.tiny
    return info.eps * 2.0 ** (math.frexp(max(here, info.tiny))[1] - 1)

# %% wrong: not rounded
# says: Round x to the dtype first
def gap(x, dtype):
    info = torch.finfo(dtype)
    return info.eps * 2.0 ** (math.frexp(max(x, info.tiny))[1] - 1)

# %% wrong: subtracts in the dtype
# says: PyTorch has no arithmetic for 8-bit floats
def gap(x, dtype):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    return ((here.view(whole) + 1).view(dtype) - here).item()

# %% wrong: float32 on the way
# says: expected
def gap(x, dtype):
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    here = torch.tensor(x, dtype=dtype)
    return (here.view(whole) + 1).view(dtype).float().item() - here.float().item()

# %% wrong: float32's next number
# says: That is the gap of float32
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).float()
    return (torch.nextafter(here, torch.tensor(math.inf)) - here).item()

# %% wrong: adds eps and looks where that leads
# says: eps is the gap at 1
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype).double()
    return ((here + torch.finfo(dtype).eps).to(dtype).double() - here).item()

# %% right: frexp
def gap(x, dtype):
    info = torch.finfo(dtype)
    here = torch.tensor(x, dtype=torch.float64).to(dtype).double().item()
    _, power = math.frexp(max(here, info.smallest_normal))
    return math.ldexp(info.eps, power - 1)

# %% right: looks along the list of all numbers, or asks nextafter
def gap(x, dtype):
    here = torch.tensor(x, dtype=dtype)
    if dtype in (torch.float32, torch.float64):
        return (torch.nextafter(here, torch.tensor(torch.inf, dtype=dtype)) - here).item()
    if dtype.itemsize == 1:
        every = torch.arange(256, dtype=torch.uint8).view(dtype).double()
    else:
        every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype).double()
    larger = every[every > here.double()]
    return larger.min() - here.double()

# %% right: takes ever smaller steps
def gap(x, dtype):
    here = torch.tensor([x], dtype=dtype)
    start = here.double().item()
    step = max(start, 1.0)

    def moved(by):
        if start + by == start:
            return start
        return torch.tensor([start + by], dtype=torch.float64).to(dtype).double().item()

    while moved(step) != start:
        landed = moved(step)
        step /= 2
    return landed - start if moved(step) == start else landed
