# %% wrong: the result is not written
# says: The result has to be written, too
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k))


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: weights only
# says: That counts the weights only
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * d * k)


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: per element
# says: That is per element
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (b * d + d * k + b * k)


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: multiply-adds
# says: A multiply-add is two FLOPs
def arithmetic_intensity(b, d, k, bytes_per_element):
    return b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: upside down
# says: That is upside down
def arithmetic_intensity(b, d, k, bytes_per_element):
    return bytes_per_element * (b * d + d * k + b * k) / (2 * b * d * k)


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: bytes on the wrong side
# says: make the intensity smaller
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (b * d + d * k + b * k) * bytes_per_element


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: bound the other way round
# says: It is the other way round
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "compute" if intensity < peak / bandwidth else "memory"

# %% wrong: compares the intensity with one
# says: Compare the intensity with the ridge point
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < 1 else "compute"

# %% wrong: the ridge point upside down
# says: expected  'memory'
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < bandwidth / peak else "compute"

# %% wrong: other words
# says: Return the word
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "memory-bound" if intensity < peak / bandwidth else "compute-bound"

# %% wrong: bytes without parentheses
# says: from left to right
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k / bytes_per_element * (b * d + d * k + b * k)


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% wrong: whole numbers
# says: throws away the fraction
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 * b * d * k // (bytes_per_element * (b * d + d * k + b * k))


def bound(intensity, peak, bandwidth):
    return "memory" if intensity < peak / bandwidth else "compute"

# %% right: one over a sum of reciprocals
def arithmetic_intensity(b, d, k, bytes_per_element):
    return 2 / bytes_per_element / (1 / b + 1 / d + 1 / k)


def bound(intensity, peak, bandwidth):
    return ["compute", "memory"][intensity < peak / bandwidth]

# %% right: bytes of tensors, and seconds compared
def arithmetic_intensity(b, d, k, bytes_per_element):
    x, w, y = (torch.empty(shape, device="meta") for shape in ((b, d), (d, k), (b, k)))
    elements = x.numel() + w.numel() + y.numel()
    return count_flops(lambda: x @ w) / elements / bytes_per_element


def bound(intensity, peak, bandwidth):
    seconds = {"compute": 1 / peak, "memory": 1 / (intensity * bandwidth)}
    return max(seconds, key=seconds.get)

# %% right: bits, and the roof itself
def arithmetic_intensity(b, d, k, bytes_per_element):
    bits = sum(m * n * 8 * bytes_per_element for m, n in itertools.combinations((b, d, k), 2))
    return 16 * b * d * k / bits


def bound(intensity, peak, bandwidth):
    attainable = min(peak, intensity * bandwidth)
    return "compute" if attainable == peak else "memory"
