# %% wrong: time only
# says: it does not hold the model
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    return math.ceil(6 * parameters * tokens / (days * 86_400 * peak_flops * mfu))

# %% wrong: memory only
# says: is not in time
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    return math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))

# %% wrong: the sum
# says: not the sum
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = math.ceil(6 * parameters * tokens / (days * 86_400 * peak_flops * mfu))
    return compute + math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9))

# %% wrong: the smaller
# says: is not in time
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = math.ceil(6 * parameters * tokens / (days * 86_400 * peak_flops * mfu))
    return min(compute, math.ceil(parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: rounded down
# says: round up
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return int(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: rounded to the nearest
# says: round up
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return round(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: not rounded
# says: Cards come whole
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))

# %% wrong: a whole number that is a float
# says: return an int
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return float(math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))))

# %% wrong: one more, to be sure
# says: find the cards for each
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return int(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))) + 2

# %% wrong: no MFU
# says: The MFU is missing
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops)
    return math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: days for seconds
# says: Days have 24 · 3,600 seconds
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * peak_flops * mfu)
    return math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: the forward pass alone
# says: not 2
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 2 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9)))

# %% wrong: GiB
# says: A GB is 10⁹ bytes
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return math.ceil(max(compute, parameters * bytes_per_parameter / (memory_gb * 2**30)))

# %% wrong: always one more than the whole number below
# says: leaves a whole number as it is
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    compute = 6 * parameters * tokens / (days * 86_400 * peak_flops * mfu)
    return int(max(compute, parameters * bytes_per_parameter / (memory_gb * 1e9))) + 1

# %% right: rounds once
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    seconds = 60 * 60 * 24 * days
    in_time = 6 * parameters * tokens / seconds / peak_flops / mfu
    to_hold = parameters * bytes_per_parameter / 1e9 / memory_gb
    return math.ceil(max(in_time, to_hold))

# %% right: floor division of negative numbers
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    work, one = 6 * parameters * tokens, peak_flops * mfu * days * 86_400
    per_card = memory_gb * 1e9 / bytes_per_parameter
    return int(max(-(-work // one), -(-parameters // per_card)))

# %% right: starts at the memory, then asks the clock
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    cards = math.ceil(parameters * bytes_per_parameter / (memory_gb * 10**9))
    needed = 6 * parameters * tokens / (cards * peak_flops * mfu) / 86_400
    if needed > days:
        cards = math.ceil(cards * needed / days)
    return cards

# %% right: a card more, until it is enough
def cards_needed(parameters, tokens, days, peak_flops, mfu, memory_gb, bytes_per_parameter):
    cards, work, size = 1, 6 * parameters * tokens, parameters * bytes_per_parameter
    while cards * peak_flops * mfu * days * 86_400 < work or cards * memory_gb * 1e9 < size:
        cards += 1
    return cards

# %% equivalent: max(for_compute, for_memory) → max(for_memory, for_compute)
# why: the larger of two numbers does not depend on their order
