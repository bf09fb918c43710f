# %% wrong: no MFU
# says: The MFU is missing
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops) / 86_400

# %% wrong: multiplies by the MFU
# says: A lower MFU makes it take longer
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens * mfu / (devices * peak_flops) / 86_400

# %% wrong: the forward pass alone
# says: That is the forward pass alone
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 2 * parameters * tokens / (devices * peak_flops * mfu) / 86_400

# %% wrong: the backward pass alone
# says: That is the backward pass alone
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 4 * parameters * tokens / (devices * peak_flops * mfu) / 86_400

# %% wrong: one FLOP for each
# says: training takes 6
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return parameters * tokens / (devices * peak_flops * mfu) / 86_400

# %% wrong: seconds
# says: Those are seconds
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops * mfu)

# %% wrong: hours
# says: Those are hours
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops * mfu) / 3600

# %% wrong: an hour of sixty seconds
# says: A day has 24 · 60 · 60 seconds
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops * mfu) / (24 * 60)

# %% wrong: one device
# says: That is for one device
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (peak_flops * mfu) / 86_400

# %% wrong: from left to right
# says: More devices make it faster
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (peak_flops * mfu) * devices / 86_400

# %% wrong: rounded
# says: Do not round
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return round(6 * parameters * tokens / (devices * peak_flops * mfu) / 86_400)

# %% wrong: upside down
# says: upside down
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return devices * peak_flops * mfu * 86_400 / (6 * parameters * tokens)

# %% wrong: no brackets
# says: but multiplies by c
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / devices * peak_flops * mfu / 86_400

# %% wrong: the sparse peak
# says: The peak given is the dense one
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * 2 * peak_flops * mfu) / 86_400

# %% wrong: recomputation counted as well
# says: That is 8 FLOPs
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 8 * parameters * tokens / (devices * peak_flops * mfu) / 86_400

# %% wrong: the day of the napkin
# says: A day has 86,400 seconds
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return 6 * parameters * tokens / (devices * peak_flops * mfu) / 1e5

# %% wrong: rounded to a tenth
# says: Do not round
def training_days(parameters, tokens, devices, peak_flops, mfu):
    return round(6 * parameters * tokens / (devices * peak_flops * mfu) / 86_400, 1)

# %% right: the FLOPs of a day
def training_days(parameters, tokens, devices, peak_flops, mfu):
    per_day = devices * peak_flops * mfu * 60 * 60 * 24
    return (2 + 4) * parameters * tokens / per_day

# %% right: logarithms
def training_days(parameters, tokens, devices, peak_flops, mfu):
    above = math.log(6) + math.log(parameters) + math.log(tokens)
    return math.exp(above - math.log(devices) - math.log(peak_flops) - math.log(mfu) - math.log(86_400))

# %% right: with datetime
from datetime import timedelta

def training_days(parameters, tokens, devices, peak_flops, mfu):
    day = timedelta(days=1).total_seconds()
    return 6 * (parameters / peak_flops) * (tokens / devices) / mfu / day
