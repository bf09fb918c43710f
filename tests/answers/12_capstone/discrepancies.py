# %% wrong: only what was measured
# says: What was planned and not measured is off
def discrepancies(planned, measured, tolerances):
    return {n: measured[n] / p - 1 for n, p in planned.items() if n in measured and abs(measured[n] / p - 1) > tolerances[n]}

# %% wrong: one side
# says: Less than planned is off as well
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif measured[name] / plan - 1 > tolerances[name]:
            off[name] = measured[name] / plan - 1
    return off

# %% wrong: the other side
# says: More than planned is off as well
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif 1 - measured[name] / plan > tolerances[name]:
            off[name] = measured[name] / plan - 1
    return off

# %% wrong: a share of what was measured
# says: not of what was measured
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(1 - plan / measured[name]) > tolerances[name]:
            off[name] = 1 - plan / measured[name]
    return off

# %% wrong: no sign
# says: Keep the sign
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] / plan - 1) > tolerances[name]:
            off[name] = abs(measured[name] / plan - 1)
    return off

# %% wrong: the sign turned
# says: Keep the sign
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] / plan - 1) > tolerances[name]:
            off[name] = 1 - measured[name] / plan
    return off

# %% wrong: a difference
# says: divide by what was planned
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] - plan) > tolerances[name] * plan:
            off[name] = measured[name] - plan
    return off

# %% wrong: the ratio
# says: subtract 1
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] / plan - 1) > tolerances[name]:
            off[name] = measured[name] / plan
    return off

# %% wrong: percent
# says: A share, not percent
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] / plan - 1) > tolerances[name]:
            off[name] = 100 * (measured[name] / plan - 1)
    return off

# %% wrong: at least
# says: at the edge a number is not off
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif abs(measured[name] / plan - 1) >= tolerances[name]:
            off[name] = measured[name] / plan - 1
    return off

# %% wrong: all of them
# says: Only those that are off
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif True:
            off[name] = measured[name] / plan - 1
    return off

# %% wrong: a list
# says: A dict: each name with its share
def discrepancies(planned, measured, tolerances):
    return [n for n, p in planned.items() if n not in measured or abs(measured[n] / p - 1) > tolerances[n]]

# %% wrong: nothing measured counts as 0
# says: What was planned and not measured is off
def discrepancies(planned, measured, tolerances):
    shares = {n: measured.get(n, 0) / p - 1 for n, p in planned.items()}
    return {n: s for n, s in shares.items() if abs(s) > tolerances[n]}

# %% wrong: goes through what was measured
# says: KeyError
def discrepancies(planned, measured, tolerances):
    return {n: m / planned[n] - 1 for n, m in measured.items() if abs(m / planned[n] - 1) > tolerances[n]}

# %% right: between two limits
def discrepancies(planned, measured, tolerances):
    off = {}
    for name, plan in planned.items():
        if name not in measured:
            off[name] = None
        elif not plan * (1 - tolerances[name]) <= measured[name] <= plan * (1 + tolerances[name]):
            off[name] = (measured[name] - plan) / plan
    return off

# %% right: two dicts, one after the other
def discrepancies(planned, measured, tolerances):
    absent = dict.fromkeys(planned.keys() - measured.keys())
    shares = {name: (measured[name] - planned[name]) / planned[name] for name in planned.keys() & measured.keys()}
    return absent | {name: share for name, share in shares.items() if max(share, -share) > tolerances[name]}

# %% right: with numpy
def discrepancies(planned, measured, tolerances):
    names = [name for name in planned if name in measured]
    plan, now, allowed = (np.array([d[name] for name in names], dtype=np.float64) for d in (planned, measured, tolerances))
    shares = now / plan - 1
    off = {name: None for name in planned if name not in measured}
    return off | {names[i]: float(shares[i]) for i in np.flatnonzero(np.abs(shares) > allowed)}
