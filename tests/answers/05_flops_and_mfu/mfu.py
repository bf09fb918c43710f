# %% wrong: the printed rate
# says: That divides by the sparse rate
def mfu(flops, seconds, sheet, dtype):
    return flops / seconds / sheet[dtype][0] if dtype in sheet else None

# %% wrong: halves every rate
# says: That halves a rate that is dense already
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    return flops / seconds / (sheet[dtype][0] / 2)

# %% wrong: the float32 peak
# says: the peak of float32
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet[torch.float32]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: percent
# says: That is in percent
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return 100 * flops / seconds / (rate / (1 + sparse))

# %% wrong: upside down
# says: upside down
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return (rate / 2 if sparse else rate) / (flops / seconds)

# %% wrong: no seconds
# says: The seconds are missing
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return flops / (rate / 2 if sparse else rate)

# %% wrong: 1 for an unknown peak
# says: Nothing is promised for this dtype
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet.get(dtype, (1.0, False))
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: 0 for an unknown peak
# says: Nothing is promised for this dtype
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return 0.0
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: no look
# says: KeyError
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: falls back on float32
# says: expected  None
def mfu(flops, seconds, sheet, dtype):
    rate, sparse = sheet.get(dtype) or next(iter(sheet.values()))
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: sparse means twice the dense rate is needed
# says: not twice as much
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return flops / seconds / (rate * 2 if sparse else rate)

# %% wrong: makes the sheet dense
# says: write nothing into it
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    if sparse:
        sheet[dtype] = (rate / 2, False)
    return flops / seconds / sheet[dtype][0]

# %% wrong: writes None into the sheet
# says: write nothing into it
def mfu(flops, seconds, sheet, dtype):
    entry = sheet.setdefault(dtype, None)
    if entry is None:
        return None
    rate, sparse = entry
    return flops / seconds / (rate / 2 if sparse else rate)

# %% wrong: cut off at 1
# says: Do not cut it off at 1
def mfu(flops, seconds, sheet, dtype):
    if dtype not in sheet:
        return None
    rate, sparse = sheet[dtype]
    return min(1.0, flops / seconds / (rate / 2 if sparse else rate))

# %% right: by the seconds that it should have taken
def mfu(flops, seconds, sheet, dtype):
    for known, (rate, sparse) in sheet.items():
        if known == dtype:
            dense = rate / 2 if sparse else rate
            return (flops / dense) / seconds
    return None

# %% right: get and arithmetic with a truth value
def mfu(flops, seconds, sheet, dtype):
    entry = sheet.get(dtype)
    return entry and flops * (1 + entry[1]) / (seconds * entry[0])

# %% right: an exception, and a tensor without dimensions
def mfu(flops, seconds, sheet, dtype):
    try:
        rate, sparse = sheet[dtype]
    except KeyError:
        return None
    return torch.tensor(flops, dtype=torch.float64) / (seconds * rate * (0.5 if sparse else 1.0))
