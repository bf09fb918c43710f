# %% wrong: the variance
# says: That is the variance
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return kinds[kind]

# %% wrong: divides by the outputs
# says: That divides by the outputs
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_out, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_out}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: Kaiming's fan is the outputs
# says: That divides by the outputs
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_out}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: Glorot without the 2
# says: The mean of the two fans is half of their sum
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 1 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: the ends of the uniform distributions
# says: uniform distribution ends
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 6 / (fan_in + fan_out), "kaiming": 6 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: Kaiming's 2 outside of the root
# says: The 2 belongs under the root
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in**0.5, "glorot": (2 / (fan_in + fan_out)) ** 0.5, "kaiming": 2 / fan_in**0.5}
    if kind not in kinds:
        raise ValueError(kind)
    return kinds[kind]

# %% wrong: Xavier is LeCun's up to a constant
# says: That is LeCun's
def init_std(kind, fan_in, fan_out):
    if kind not in ("lecun", "glorot", "kaiming"):
        raise ValueError(kind)
    return math.sqrt((2 if kind == "kaiming" else 1) / fan_in)

# %% wrong: Kaiming the wrong way round
# says: A ReLU halves
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 1 / (2 * fan_in)}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: what nn.Linear does
# says: That is what nn.Linear does
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / (3 * fan_in), "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in kinds:
        raise ValueError(kind)
    return math.sqrt(kinds[kind])

# %% wrong: another kind gets LeCun's
# says: raise ValueError
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    return math.sqrt(kinds.get(kind, 1 / fan_in))

# %% wrong: another kind is a KeyError
# says: raise ValueError
def init_std(kind, fan_in, fan_out):
    kinds = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    return math.sqrt(kinds[kind])

# %% wrong: kaiming for whatever is left
# says: raise ValueError
def init_std(kind, fan_in, fan_out):
    if kind == "lecun":
        return math.sqrt(1 / fan_in)
    if kind == "glorot":
        return math.sqrt(2 / (fan_in + fan_out))
    return math.sqrt(2 / fan_in)

# %% wrong: Glorot with the geometric mean
# says: That is the geometric mean
def init_std(kind, fan_in, fan_out):
    if kind == "lecun":
        return fan_in**-0.5
    if kind == "glorot":
        return (fan_in * fan_out) ** -0.25
    if kind == "kaiming":
        return (2 / fan_in) ** 0.5
    raise ValueError(kind)

# %% right: match
def init_std(kind, fan_in, fan_out):
    match kind:
        case "lecun":
            return fan_in**-0.5
        case "glorot":
            return ((fan_in + fan_out) / 2) ** -0.5
        case "kaiming":
            return (fan_in / 2) ** -0.5
        case _:
            raise ValueError("no such initialiser")

# %% right: PyTorch's gains
def init_std(kind, fan_in, fan_out):
    if kind == "lecun":
        return nn.init.calculate_gain("linear") / math.sqrt(fan_in)
    if kind == "kaiming":
        return nn.init.calculate_gain("relu") / math.sqrt(fan_in)
    if kind == "glorot":
        return math.sqrt(2.0 / float(fan_in + fan_out))
    raise ValueError(f"unknown kind {kind}")

# %% right: a tensor of one number
def init_std(kind, fan_in, fan_out):
    variances = {"lecun": 1 / fan_in, "glorot": 2 / (fan_in + fan_out), "kaiming": 2 / fan_in}
    if kind not in variances:
        raise ValueError(kind)
    return torch.tensor(variances[kind], dtype=torch.float64).sqrt()
