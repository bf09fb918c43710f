# %% wrong: no implicit one
# says: The implicit one is missing
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    return sign * mantissa / 2**mantissa_bits * 2.0 ** (exponent - bias)

# %% wrong: no special cases
# says: there is no implicit one
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: subnormal numbers with the exponent of the field 0
# says: have the exponent of the field 1
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    one = 1 if exponent else 0
    return sign * (one + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: a bias of half the range
# says: Look at the bias
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the sign is dropped
# says: The sign is lost
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        return math.nan if mantissa else math.inf
    if exponent == 0:
        return mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the highest exponent is ordinary everywhere
# says: All exponent bits set is a special case
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: no NaN, only infinity
# says: infinity only where the mantissa is 0
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        return sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: finite is ignored
# says: only the pattern with all bits below the sign set is NaN
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: finite without any NaN
# says: only the pattern with all bits below the sign set is NaN
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 2**exponent_bits - 1 and not finite:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the sign of zero is lost
# says: -1 * 0 is 0 in Python
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = (-1) ** (bits >> (exponent_bits + mantissa_bits))
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the bias of float16 for all
# says: expected
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 7 if finite else 15
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: 4 and 3 bits are taken for E4M3
# says: expected
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    finite = (exponent_bits, mantissa_bits) == (4, 3)
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: division of whole numbers by way of floats
# says: is a float and rounds
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if int(bits / 2 ** (exponent_bits + mantissa_bits)) else 1.0
    exponent = int(bits / 2**mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    top = 2**exponent_bits - 1
    if exponent == top and finite and mantissa == 2**mantissa_bits - 1:
        return math.nan
    if exponent == top and not finite:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the sign bit stays in the exponent
# says: The sign bit got into the exponent
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = bits >> mantissa_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: negative numbers as in whole numbers
# says: the other bits mean the same with either sign
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    width = 1 + exponent_bits + mantissa_bits
    if bits >= 2 ** (width - 1):
        return -decode(2**width - bits, exponent_bits, mantissa_bits, finite)
    exponent, mantissa = divmod(bits, 2**mantissa_bits)
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)

# %% wrong: the mantissa in parts of its largest value
# says: One step of the mantissa is
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (bits >> mantissa_bits) % 2**exponent_bits
    mantissa = bits % 2**mantissa_bits
    bias = 2 ** (exponent_bits - 1) - 1
    return sign * (1 + mantissa / (2**mantissa_bits - 1)) * 2.0 ** (exponent - bias)

# %% right: as a text of digits
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    text = format(bits, f"0{1 + exponent_bits + mantissa_bits}b")
    sign, exponent, mantissa = text[0], text[1 : 1 + exponent_bits], text[1 + exponent_bits :]
    if "0" not in exponent:
        if finite and "0" not in mantissa:
            return float("nan")
        if not finite:
            return float("nan") if "1" in mantissa else float("-inf" if sign == "1" else "inf")
    lead = "1" if "1" in exponent else "0"
    power = max(int(exponent, 2), 1) - (2 ** (exponent_bits - 1) - 1) - mantissa_bits
    return math.copysign(math.ldexp(int(lead + mantissa, 2), power), -1 if sign == "1" else 1)

# %% right: masks, and fractions
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    from fractions import Fraction

    m = bits & ((1 << mantissa_bits) - 1)
    e = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    s = bits >> mantissa_bits + exponent_bits
    full = e == (1 << exponent_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if full and finite and m == (1 << mantissa_bits) - 1:
        value = math.nan
    elif full and not finite:
        value = math.nan if m else math.inf
    else:
        value = float((Fraction(m, 1 << mantissa_bits) + (e > 0)) * Fraction(2) ** (max(e, 1) - bias))
    return -value if s else value

# %% right: the fraction as a float
def decode(bits, exponent_bits, mantissa_bits, finite=False):
    rest, mantissa = divmod(bits, 2**mantissa_bits)
    negative, exponent = divmod(rest, 2**exponent_bits)
    sign = -1.0 if negative else 1.0
    bias = 2 ** (exponent_bits - 1) - 1
    last = 2**exponent_bits - 1
    if finite:
        if (exponent, mantissa) == (last, 2**mantissa_bits - 1):
            return float("nan")
    elif exponent == last:
        return sign * float("inf") if mantissa == 0 else float("nan")
    fraction = mantissa / 2**mantissa_bits
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias)
    return sign * (1 + fraction) * 2.0 ** (exponent - bias)

# %% equivalent: finite and mantissa == 2 ** mantissa_bits - 1 → mantissa == 2 ** mantissa_bits - 1
# why: without finite all ones is a NaN as well
