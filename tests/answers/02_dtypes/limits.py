# %% wrong: the highest exponent counts
# says: The highest exponent is kept for infinity and NaN
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps) * 2.0 ** (bias + 1) if bias < 1000 else 0.0
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: the next power of two
# says: just short of the next power of two
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    return {"max": 2.0 ** (bias + 1), "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: finite ignored
# says: all ones in it is the only NaN
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    return {"max": (2 - eps) * 2.0**bias, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: finite without its NaN
# says: all ones in it is the only NaN
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: the smallest normal number with field 0
# says: which is 1 - bias
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0**-bias
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: no subnormal numbers
# says: below it lie the subnormal ones
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small, "eps": eps}

# %% wrong: the gap below 1
# says: from 1 down to its lower neighbour
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps / 2}

# %% wrong: eps is taken for the smallest number
# says: eps is one step of the mantissa at 1
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": small * eps}

# %% wrong: overflows on the way
# says: OverflowError
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = 2.0 ** (bias + 1 + finite) * (1 - eps / 2 * (1 + finite))
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: a tuple
# says: Return a dictionary
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    return (2 - eps) * 2.0**bias, 2.0 ** (1 - bias), 2.0 ** (1 - bias) * eps, eps

# %% wrong: rounded to what float32 holds
# says: The last bit counts
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite) if bias < 1000 else 1.797693134862315e308
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: a power that is too large on the way
# says: is too large for a float
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = 2.0 ** (bias + 1 + finite) * (1 - eps / 2 * (1 + finite))
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps, "eps": eps}

# %% wrong: half of the smallest subnormal number
# says: the smallest is one step of the mantissa
def limits(exponent_bits, mantissa_bits, finite=False):
    bias, eps = 2 ** (exponent_bits - 1) - 1, 2.0**-mantissa_bits
    small = 2.0 ** (1 - bias)
    top = (2 - eps * (1 + finite)) * 2.0 ** (bias + finite)
    return {"max": top, "smallest_normal": small, "smallest_subnormal": small * eps / 2, "eps": eps}

# %% wrong: looked up
# says: decode it by hand
def limits(exponent_bits, mantissa_bits, finite=False):
    names = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    names |= {(5, 2): "float8_e5m2", (4, 3): "float8_e4m3fn"}
    info = torch.finfo(getattr(torch, names[exponent_bits, mantissa_bits]))
    return {
        "max": info.max,
        "smallest_normal": info.tiny,
        "smallest_subnormal": info.tiny * info.eps,
        "eps": info.eps,
    }

# %% right: whole numbers, then one division
def limits(exponent_bits, mantissa_bits, finite=False):
    from fractions import Fraction

    bias = (1 << exponent_bits - 1) - 1
    ones = (1 << mantissa_bits + 1) - 1 - finite
    return {
        "eps": float(Fraction(1, 1 << mantissa_bits)),
        "smallest_subnormal": float(Fraction(1, 1 << bias - 1 + mantissa_bits)),
        "smallest_normal": float(Fraction(1, 1 << bias - 1)),
        "max": float(ones * Fraction(2) ** (bias + finite - mantissa_bits)),
    }

# %% right: reads the patterns, with a decoder inside
def limits(exponent_bits, mantissa_bits, finite=False):
    def value(bits):
        e, m = divmod(bits, 2**mantissa_bits)
        power = max(e, 1) - 2 ** (exponent_bits - 1) + 1 - mantissa_bits
        return math.ldexp(m + (2**mantissa_bits if e else 0), power)

    top = 2 ** (exponent_bits + mantissa_bits) - 2 if finite else (2**exponent_bits - 1) * 2**mantissa_bits - 1
    one = (2 ** (exponent_bits - 1) - 1) * 2**mantissa_bits
    return dict(
        max=value(top),
        smallest_normal=value(2**mantissa_bits),
        smallest_subnormal=value(1),
        eps=value(one + 1) - value(one),
    )

# %% right: doubling and halving
def limits(exponent_bits, mantissa_bits, finite=False):
    eps = 1.0
    for _ in range(mantissa_bits):
        eps /= 2
    normal, top = 1.0, 2 - eps - (eps if finite else 0)
    for _ in range(2 ** (exponent_bits - 1) - 2):
        normal /= 2
    for _ in range(2 ** (exponent_bits - 1) - 1 + int(finite)):
        top *= 2
    return {"max": top, "smallest_normal": normal, "smallest_subnormal": normal * eps, "eps": eps}
