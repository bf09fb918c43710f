# %% wrong: the whole vector in each round
# says: Each rank sends one *piece* in a round
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * size

# %% wrong: as many rounds as ranks
# says: A piece needs n - 1 rounds
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * ranks * size / ranks

# %% wrong: n rounds of the whole vector
# says: Each rank sends one *piece* in a round
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * ranks * size

# %% wrong: one half of an all_reduce
# says: An all_reduce is a reduce_scatter and then an all_gather
def ring_bytes(collective, size, ranks):
    return (ranks - 1) / ranks * size

# %% wrong: all of them like an all_reduce
# says: is one half of an all_reduce
def ring_bytes(collective, size, ranks):
    return 2 * (ranks - 1) / ranks * size

# %% wrong: all_gather like an all_reduce
# says: all_gather is one half of an all_reduce
def ring_bytes(collective, size, ranks):
    return (1 if collective == "reduce_scatter" else 2) * (ranks - 1) / ranks * size

# %% wrong: one piece, once
# says: How many rounds are there?
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * size / ranks

# %% wrong: 2n - 1 rounds
# says: n - 1 rounds each
def ring_bytes(collective, size, ranks):
    rounds = 2 * ranks - 1 if collective == "all_reduce" else ranks - 1
    return rounds * size / ranks

# %% wrong: pieces of a whole number of bytes
# says: The rounds, times the bytes of a piece
def ring_bytes(collective, size, ranks):
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) * (size // ranks)

# %% right: the vector without one piece
def ring_bytes(collective, size, ranks):
    half = size - size / ranks
    return half + half if collective == "all_reduce" else half

# %% right: the textbook's formula
def ring_bytes(collective, size, ranks):
    halves = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}
    return halves[collective] * (1 - 1 / ranks) * size

# %% right: round after round
def ring_bytes(collective, size, ranks):
    if collective == "all_reduce":
        return ring_bytes("reduce_scatter", size, ranks) + ring_bytes("all_gather", size, ranks)
    sent = 0.0
    for _ in range(1, ranks):
        sent += size / ranks
    return sent
