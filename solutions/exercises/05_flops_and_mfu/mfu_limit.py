from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("By the roofline, how long does each operation take? How long do all of them take, one after another?")


@st.composite
def programs(draw, kinds, least=1e-3):
    """A machine, and an operation of each kind, on either side of the ridge; twice the same one now and then."""
    bandwidth = draw(st.floats(1e8, 1e13))
    peak = bandwidth * draw(st.floats(least, 1e7))
    most = draw(st.integers(100, 10**12))  # of one order: 1 minus the idle share is a right answer, too
    operations = []
    for kind in draw(kinds):
        moved = draw(st.integers(most // 100, most))
        work = moved * peak / bandwidth * draw(st.floats(1e-3, 0.99) | st.floats(1.01, 1e3))
        operations.append({"both": (work, moved), "moves": (0, moved), "computes": (work, 0)}[kind])
        if len(operations) > 1 and draw(st.booleans()):
            operations.append(operations[-1])
    return given(operations, peak, bandwidth)


BOTH, MOVES, COMPUTES = "both", "moves", "computes"
ROUNDABLE = 200  # where the ridge is at least so far right, its fraction decides nothing


exercise.requirement(
    "for a single operation, the result is the fraction of the peak that the roofline allows, at most 1",
    points=0.5,
    tolerance=1e-6,
    visible=[given([(300, 10)], 100.0, 20.0), given([(30, 10)], 100.0, 20.0), given([(4, 1)], 8.0, 4.0),
             given([(9, 4)], 10.0, 4.0)],
    edges={
        "just at the ridge": given([(50, 10)], 100.0, 20.0),
        "nothing moved": given([(5, 0)], 100.0, 20.0),
        "whole numbers beyond 64 bits": given([(314 * 10**21, 10**12)], 989.4e12, 3.35e12),
        "a ridge below 1": given([(3, 10)], 10.0, 20.0),
        "a large product on an H100": given([(2**41, 6 * 2**26)], 989.4e12, 3.35e12),
        "an addition on an H100": given([(10**9, 12 * 10**9)], 67e12, 3.35e12),
    },
    domain=programs(st.sampled_from([[BOTH], [BOTH], [COMPUTES]])),
)
exercise.requirement(
    "operations run one after another, and each takes the longer of two times: the time to compute and the time "
    "to move its bytes",
    points=1,
    tolerance=1e-6,
    visible=[
        given([(400, 10), (10, 10)], 100.0, 20.0),
        given([(200, 1), (200, 4), (60, 20), (60, 20)], 100.0, 20.0),
        given([(300, 0), (10, 10)], 100.0, 20.0),
    ],
    edges={
        "two of the same": given([(30, 10), (30, 10)], 100.0, 20.0),
        "the same FLOPs, other bytes": given([(30, 10), (30, 1)], 100.0, 20.0),
        "all of them compute": given([(500, 1), (700, 2)], 100.0, 20.0),
        "all of them move": given([(5, 10), (7, 20)], 100.0, 20.0),
        "short and long": given([(10**12, 10**9), (10**9, 10**3)], 1e15, 1e12),
    },
    domain=programs(st.lists(st.sampled_from([BOTH, BOTH, COMPUTES]), min_size=2, max_size=5), ROUNDABLE),
    hint="How long does each operation take? Add up the seconds, not the FLOPs and the bytes.",
)
exercise.requirement(
    "an operation without model FLOPs takes the time needed to move its bytes",
    points=0.5,
    tolerance=1e-6,
    visible=[given([(400, 10), (0, 20)], 100.0, 20.0), given([(0, 20), (30, 10), (0, 5)], 100.0, 20.0)],
    edges={
        "it alone": given([(0, 7)], 100.0, 20.0),
        "most of the time": given([(400, 10), (0, 10**5)], 100.0, 20.0),
        "it first": given([(0, 20), (400, 10)], 100.0, 20.0),
        "beside one that moves nothing": given([(400, 0), (0, 20)], 100.0, 20.0),
        "a layer and a GELU": given([(2**40, 470 * 10**6), (0, 537 * 10**6)], 989.4e12, 3.35e12),
    },
    domain=programs(
        st.tuples(st.sampled_from([[], [BOTH], [COMPUTES]]), st.lists(st.just(MOVES), min_size=1, max_size=4)).map(
            lambda kinds: kinds[0] + kinds[1]
        ),
        ROUNDABLE,
    ),
    hint="An operation without model FLOPs adds nothing to the work, but it takes time. What limits it?",
)

LONGER = "max(work / peak, moved / bandwidth)"
exercise.mistake("Computing and moving data overlap: an operation takes the longer of the two times, not their sum.",
                 f"{LONGER} → work / peak + moved / bandwidth")  # fmt: skip
exercise.mistake("Your code takes the shorter of the two times; an operation takes the longer one.", f"{LONGER} → min(work / peak, moved / bandwidth)")
exercise.mistake("Your code ignores the time that it takes to move the bytes.", f"{LONGER} → work / peak")
exercise.mistake("Your code ignores the time that computing takes: no program can exceed the peak.", f"{LONGER} → moved / bandwidth")
exercise.mistake("Your code counts only the longest operation: they run one after another, so add up their times.",
                 f"sum({LONGER} for → max({LONGER} for")  # fmt: skip
exercise.mistake("Your code leaves out operations without model FLOPs: they take time, too.", "in operations)\n    return → in operations if work)\n    return")
exercise.mistake("Your code leaves out operations that move no bytes: they take time, too.", "in operations)\n    return → in operations if moved)\n    return")
exercise.mistake("Your result is a rate in FLOP/s; divide it by the peak.", "flops / seconds / peak → flops / seconds")
exercise.mistake("Your result is the time of the program in seconds; the exercise asks for the MFU.", "flops / seconds / peak → seconds")
exercise.mistake("Your quotient is upside down: the MFU is the achieved rate divided by the peak.",
                 "flops / seconds / peak → seconds * peak / flops")  # fmt: skip
exercise.mistake("Your result is in percent; the exercise asks for a fraction.", "flops / seconds / peak → 100 * flops / seconds / peak")
exercise.mistake("Your result is a plain average over the operations: take into account how long each of them runs.",
                 "flops / seconds / peak → flops / seconds / peak / len(operations)")  # fmt: skip
exercise.mistake("Don't round the result.", "flops / seconds / peak → round(flops / seconds / peak, 2)")
exercise.mistake("You mixed up peak and bandwidth: the peak limits FLOPs, and the bandwidth limits bytes.",
                 f"{LONGER} → max(work / bandwidth, moved / peak)")  # fmt: skip

# %% mistake: as found
# says: You haven't changed the formula: it adds up all FLOPs and all bytes first, as if one operation could move its bytes while another computes.
def mfu_limit(operations, peak, bandwidth):
    flops = sum(work for work, _ in operations)
    moved = sum(moved for _, moved in operations)
    return min(1.0, flops / max(moved, 1e-300) / (peak / bandwidth))

# %% mistake: the mean of each operation's limit
# says: Your result is the mean of the operations' limits, in which a short operation counts as much as a long one: add up the seconds.
def mfu_limit(operations, peak, bandwidth):
    limits = [min(1.0, work / moved * bandwidth / peak) if moved else 1.0 for work, moved in operations]
    return sum(limits) / len(limits)

# %% mistake: each limit weighted with its FLOPs
# says: Your code weights each operation by its FLOPs; what matters is how long it runs.
def mfu_limit(operations, peak, bandwidth):
    flops = sum(work for work, _ in operations)
    limits = [work * min(1.0, work / moved * bandwidth / peak if moved else 1.0) for work, moved in operations]
    return sum(limits) / flops if flops else 0.0

# %% mistake: the limit of the slowest operation
# says: Your result is the limit of the operation with the lowest intensity; the others reach a larger fraction of the peak.
def mfu_limit(operations, peak, bandwidth):
    return min(min(1.0, work / moved * bandwidth / peak) if moved else 1.0 for work, moved in operations)

# %% wrong: only the first operation
def mfu_limit(operations, peak, bandwidth):
    work, moved = operations[0]
    return work / max(work / peak, moved / bandwidth) / peak

# %% wrong: a roof of 1 for whatever is compute-bound in sum
def mfu_limit(operations, peak, bandwidth):
    computing = sum(work for work, _ in operations) / peak
    moving = sum(moved for _, moved in operations) / bandwidth
    if computing >= moving:
        return 1.0
    return computing / sum(max(work / peak, moved / bandwidth) for work, moved in operations)

# %% wrong: for one operation its intensity over the ridge point, and nothing that holds it at 1
def mfu_limit(operations, peak, bandwidth):
    if len(operations) == 1 and operations[0][1]:
        return operations[0][0] / operations[0][1] * bandwidth / peak
    flops = sum(work for work, _ in operations)
    return flops / peak / sum(max(work / peak, moved / bandwidth) for work, moved in operations)

# %% wrong: as found for what has FLOPs, and the time of the others added
def mfu_limit(operations, peak, bandwidth):
    computing = sum(work for work, _ in operations) / peak
    moving = sum(moved for work, moved in operations if work) / bandwidth
    others = sum(moved for work, moved in operations if not work) / bandwidth
    return computing / (max(computing, moving) + others)

# %% wrong: pairs in a dict, where equal FLOPs collide (from the statement)
def mfu_limit(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    seconds = 0.0
    for work, moved in dict(operations).items():
        seconds += max(work / peak, moved / bandwidth)
    return sum(work for work, _ in operations) / peak / seconds

# %% wrong: divides by the bytes, and skips operations without any (from the statement)
def mfu_limit(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    ridge = peak / bandwidth
    busy = total = 0.0
    for work, moved in operations:
        if not moved:
            continue
        seconds = moved / bandwidth if work / moved < ridge else work / peak
        busy += work / peak
        total += seconds
    return busy / total if total else 1.0

# %% wrong: the ridge point as a whole number (from the statement)
def mfu_limit(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    ridge = peak // bandwidth
    seconds = sum(work / peak if work >= moved * ridge else moved / bandwidth for work, moved in operations)
    return sum(work for work, _ in operations) / (seconds * peak)

# %% wrong: a tensor of all the numbers, which has no room for large ints (from the statement)
# unseen: students see numbers that fit
def mfu_limit(operations: list[tuple[float, float]], peak: float, bandwidth: float) -> float:
    flops, moved = torch.tensor(operations).T
    seconds = torch.maximum(flops / peak, moved / bandwidth)
    return (flops.sum() / seconds.sum() / peak).item()

# %% right: by the FLOP/s that each reaches
def mfu_limit(operations, peak, bandwidth):
    seconds = 0.0
    for work, moved in operations:
        if work and moved:
            seconds += work / min(peak, work / moved * bandwidth)
        else:
            seconds += work / peak + moved / bandwidth
    return sum(work for work, _ in operations) / (peak * seconds)

# %% right: the share of the time in which the peak would be enough
def mfu_limit(operations, peak, bandwidth):
    at_peak = [work / peak for work, _ in operations]
    moving = [moved / bandwidth for _, moved in operations]
    waiting = sum(max(0.0, b - a) for a, b in zip(at_peak, moving, strict=True))
    return sum(at_peak) / (sum(at_peak) + waiting)

# %% right: tensors
def mfu_limit(operations, peak, bandwidth):
    work, moved = torch.tensor([[float(a), float(b)] for a, b in operations], dtype=torch.float64).T
    return (work.sum() / peak / torch.maximum(work / peak, moved / bandwidth).sum()).item()

# %% equivalent: max(work / peak, moved / bandwidth) → max(moved / bandwidth, work / peak)
# why: the larger of two numbers does not depend on the order
