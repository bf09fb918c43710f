# %% wrong: the whole gap
# says: That is a whole gap
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    return (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x).item()

# %% wrong: half a gap, tie or not
# says: this w is odd: the tie goes up
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    return (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x).item() / 2

# %% wrong: eps times w
# says: eps times w is the gap only where w is a power of two
def largest_swallowed_update(w, dtype):
    return w * torch.finfo(dtype).eps / 2

# %% wrong: half of eps, everywhere
# says: Is that the gap at 1?
def largest_swallowed_update(w, dtype):
    return torch.finfo(dtype).eps / 2

# %% wrong: always the number below half a gap
# says: This w is even
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x) / 2
    return torch.nextafter(half, torch.zeros_like(half)).item()

# %% wrong: the gap below
# says: The gap below a power of two is half of that above
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (x - torch.nextafter(x, torch.tensor(0.0, dtype=dtype))) / 2
    return half.item()

# %% wrong: bfloat16, whatever was asked
# says: That is bfloat16
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=torch.bfloat16)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=x.dtype)) - x) / 2
    if x + half != x:
        half = torch.nextafter(half, torch.zeros_like(half))
    return half.item()

# %% wrong: powers of two only
# says: halving again and again skips
def largest_swallowed_update(w, dtype):
    x, u = torch.tensor(w, dtype=dtype), 2.0**-60
    while x + torch.tensor(2 * u, dtype=dtype) == x:
        u *= 2
    return u

# %% wrong: adds in Python's float64
# says: Python's floats have 64 bits
def largest_swallowed_update(w, dtype):
    u = 1.0
    while w + u != w:
        u /= 2
    return u

# %% wrong: the parity the wrong way round
# says: This w is even
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    half = (torch.nextafter(x, torch.tensor(math.inf, dtype=dtype)) - x) / 2
    if x + half == x:
        half = torch.nextafter(half, torch.zeros_like(half))
    return half.item()

# %% wrong: float32, whatever was asked
# says: That is float32
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w)
    return ((torch.nextafter(x, torch.tensor(math.inf)) - x) / 2).item()

# %% wrong: halves w until it is swallowed
# says: halving again and again skips
def largest_swallowed_update(w, dtype):
    x = torch.tensor(w, dtype=dtype)
    u = x.clone()
    while x + u != x:
        u = u / 2
    return u.item()

# %% right: bisection on the bits of the update
def largest_swallowed_update(w, dtype):
    whole = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    x = torch.tensor(w, dtype=dtype)
    swallowed, moves = 0, int(x.view(whole))
    while moves - swallowed > 1:
        middle = (swallowed + moves) // 2
        update = torch.tensor(middle, dtype=whole).view(dtype)
        if x + update == x:
            swallowed = middle
        else:
            moves = middle
    return torch.tensor(swallowed, dtype=whole).view(dtype).item()

# %% right: from the number of digits
def largest_swallowed_update(w, dtype):
    digits = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}[dtype]
    fraction, exponent = math.frexp(w)
    half_gap = math.ldexp(1.0, exponent - digits - 1)
    if int(fraction * 2**digits) % 2 == 0:
        return half_gap
    return half_gap * (1 - 2.0**-digits)

# %% right: as a tensor without dimensions, the parity from the last bit
def largest_swallowed_update(w, dtype):
    whole = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    bits = torch.tensor(w, dtype=dtype).view(whole)
    half = ((bits + 1).view(dtype) - bits.view(dtype)) / 2
    return (half.view(whole) - (bits & 1)).to(whole).view(dtype)

# %% right: from eps and the power of two below w
def largest_swallowed_update(w, dtype):
    eps = torch.finfo(dtype).eps
    half = eps * 2.0 ** math.floor(math.log2(w)) / 2
    tie = torch.tensor(w, dtype=dtype) + torch.tensor(half, dtype=dtype)
    return half if tie.item() == w else half * (1 - eps / 2)
