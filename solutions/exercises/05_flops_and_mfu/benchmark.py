from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("For each sample, when do you read the clock, and what must the device have finished by then?")


def run(student, queueing, working, busy, *numbers, **named):
    """Runs benchmark on a pretend asynchronous device; times in µs, one for each call, the last for all further ones.

    A call of f takes its `queueing` time until it returns, and the device its `working` time, after what it has to do
    already: `busy` at the beginning.
    """
    import itertools

    begin = 7_000_000
    state = {"now": begin, "free": begin + busy, "calls": 0}
    queue = itertools.chain(queueing, itertools.repeat(queueing[-1]))
    work = itertools.chain(working, itertools.repeat(working[-1]))

    def f():
        state["calls"] += 1
        if state["calls"] > 10_000:
            raise RuntimeError("f was called more than 10,000 times")
        state["now"] += next(queue)
        state["free"] = max(state["now"], state["free"]) + next(work)

    def synchronize():
        state["now"] = max(state["now"], state["free"])

    def clock():
        return state["now"] / 1e6

    seconds = student.benchmark(f, synchronize, clock, *numbers, **named)
    return {"seconds": seconds, "calls of f": state["calls"]}


def alone(*durations, says=""):
    """Without warm-up, on a device that works while f runs: nothing to wait for."""
    return given(durations, [0], 0, 0, len(durations), says=says)


times = st.integers(1_000, 9_000)
slow = st.integers(100_000, 900_000)
queued = st.builds(
    lambda launch, work, busy, warmup, repeats: given([launch], [work], busy, warmup, repeats),
    st.integers(5, 500), times, st.just(0) | slow, st.integers(0, 4), st.integers(1, 5),
)  # fmt: skip
samples = st.lists(times | slow, min_size=1, max_size=8).map(lambda durations: alone(*durations))
warm = st.builds(
    lambda first, then, repeats: given([*first, then], [0], 0, len(first), repeats),
    st.lists(slow, max_size=6), times, st.integers(1, 8),
)  # fmt: skip
exercise.requirement(
    "a call is timed from when it's made until the device is done with it; work that was queued earlier doesn't count",
    points=1,
    probe=run,
    rules={"calls of f": "ignored"},
    visible=[
        given([10], [2_000], 0, 0, 1, says="f takes 10 µs to queue 2 ms of work; warmup = 0, repeats = 1"),
        given([10], [2_000], 90_000, 0, 1, says="f takes 10 µs to queue 2 ms of work, on a device that's busy for the first 90 ms; warmup = 0, repeats = 1"),
        given([10], [2_000], 0, 3, 1, says="f takes 10 µs to queue 2 ms of work; warmup = 3, repeats = 1"),
        given([10], [2_000], 90_000, 1, 3, says="f takes 10 µs to queue 2 ms of work, on a device that's busy for the first 90 ms; warmup = 1, repeats = 3"),
    ],
    edges={
        "busy, warm-up too": given([10], [2_000], 90_000, 2, 1),
        "busy, no warm-up, two calls": given([10], [2_000], 90_000, 0, 2),
        "nothing to do": given([5], [0], 0, 1, 2),
        "nothing to do, but before": given([5], [0], 70_000, 0, 2),
        "hours": given([10], [9 * 10**9], 10**9, 1, 1),
    },
    domain=queued,
    hint="When you start the clock, is any earlier work left? When you read it again, is the device done with f?",
)
exercise.requirement(
    "the result is the median time of the timed calls",
    points=1,
    probe=run,
    rules={"calls of f": "ignored"},
    visible=[
        alone(2_000, 50_000, 3_000, says="three calls of 2, 50 and 3 ms, warmup = 0, repeats = 3"),
        alone(4_000, 50_000, 2_000, 3_000, says="four calls of 4, 50, 2 and 3 ms, warmup = 0, repeats = 4"),
    ],
    edges={
        "one": alone(3_000),
        "two": alone(9_000, 2_000),
        "all alike but one": alone(2_000, 2_000, 2_000, 50_000, 2_000),
        "in falling order": alone(9_000, 8_000, 7_000, 1_000, 500),
        "too short for the clock, most of them": alone(0, 0, 5_000),
        "all too short for the clock": alone(0, 0, 0, 0),
        "101 calls": given([*range(1_000, 1_101)], [0], 0, 0, 101),
    },
    domain=samples,
    hint="What's the median of an even number of samples? Look into Python's statistics module.",
)
exercise.requirement(
    "f is called `warmup` times without timing, then `repeats` times with timing",
    points=1,
    probe=run,
    visible=[
        given([800_000, 700_000, 2_000], [0], 0, 2, 1, says="calls of 800, 700, 2, 2, … ms; warmup = 2, repeats = 1"),
        given([2_000], [0], 0, 0, 1, says="calls of 2 ms each; warmup = 0, repeats = 1"),
        given([800_000, 2_000], [0], 0, 1, 4, says="calls of 800, 2, 2, … ms; warmup = 1, repeats = 4"),
    ],
    edges={
        "the numbers by default": given([900_000, 800_000, 2_000], [0], 0),
        "by name": given([900_000, 2_000], [0], 0, repeats=2, warmup=1),
        "more to warm up than to time": given([9_000] * 5 + [2_000], [0], 0, 5, 2),
        "no warm-up, several calls": given([2_000], [0], 0, 0, 5),
        "many": given([9_000] * 50 + [1_000], [0], 0, 50, 60),
    },
    domain=warm,
    hint="Make exactly `warmup` calls without timing, and then exactly `repeats` calls with timing.",
)

queue = "Your result is only the time that it takes to queue a call: wait for the device before you read the clock again."
backlog = "Your result includes work that was queued earlier: wait for the device before you start the clock."
half = "If the number of samples is even, the median is halfway between the two in the middle."
warmup = "for _ in range(warmup):\n        f()"
exercise.mistake(queue, "synchronize()\n        samples → samples")
exercise.mistake(queue, "synchronize()\n        samples → samples", "synchronize()\n        start → start")
exercise.mistake(queue, "synchronize()\n        samples.append(clock() - start) → samples.append(clock() - start); synchronize()")
exercise.mistake(backlog, "synchronize()\n        start → start")
exercise.mistake(
    backlog, "synchronize()\n        start → start", f"{warmup} → synchronize()\n    for _ in range(warmup):\n        f()"
)
exercise.mistake(
    backlog, "synchronize()\n        start → start", f"{warmup} → for _ in range(warmup):\n        f(); synchronize()"
)
exercise.mistake("You start the clock before you wait for the device, so your result includes work that was queued earlier.",
                 "synchronize()\n        start = clock() → start = clock()\n        synchronize()")  # fmt: skip
exercise.mistake("You start the clock too late: read it before you call f.", "start = clock()\n        f() → f()\n        start = clock()")
exercise.mistake("Your result is the mean, which a single slow call can change a lot; the exercise asks for the median.", "statistics.median → statistics.mean")
exercise.mistake("Your result is the time of all calls together; the exercise asks for the median time of one call.", "statistics.median → sum")
exercise.mistake("Your result is the time of the fastest call; the exercise asks for "
                 "the median.", "statistics.median → min")
exercise.mistake("Your result is the time of the slowest call; the exercise asks for "
                 "the median.", "statistics.median → max")
exercise.mistake("Your code takes the middle sample without sorting the samples first.", "statistics.median(samples) → samples[len(samples) // 2]")
exercise.mistake(half, "statistics.median → statistics.median_high")
exercise.mistake(half, "statistics.median → statistics.median_low")
exercise.mistake("Your result isn't in seconds: clock() returns seconds, so don't convert them.", "clock() - start → (clock() - start) * 1000")
exercise.mistake("Your result is negative: subtract the start from the end.", "clock() - start → start - clock()")
exercise.mistake("The warm-up is missing: call f `warmup` times before you time it.", f"{warmup} → ")
exercise.mistake("Your code always makes one warm-up call: make `warmup` of them.", f"{warmup} → f()")
exercise.mistake("Your code times the warm-up calls, too.", f"{warmup} → ", "range(repeats) → range(warmup + repeats)")
exercise.mistake("Your code times too few calls: warm-up calls don't count toward `repeats`.", "range(repeats) → range(repeats - warmup)")

# %% mistake: all calls at once
# says: Your result is the mean of all calls, timed together: time each call separately.
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    synchronize()
    start = clock()
    for _ in range(repeats):
        f()
    synchronize()
    return (clock() - start) / repeats

# %% mistake: numbers of its own
# says: Your code ignores `warmup` and `repeats`, which say how many calls to make.
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(2):
        f()
    samples = []
    for _ in range(7):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: at least two calls to warm up
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(max(warmup, 2)):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: a clock of its own
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = time.perf_counter()
        f()
        synchronize()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)

# %% wrong: other numbers by default
# unseen: the stub already has the right default values
def benchmark(f, synchronize, clock, warmup=3, repeats=5):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: leaves the slowest out
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    samples.sort()
    return statistics.mean(samples[:-1] or samples)

# %% wrong: waits before the first call only, and not between
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        samples.append(clock() - start)
    synchronize()
    return statistics.median(samples)

# %% wrong: waits only inside the warm-up loop; with warmup=0 foreign work counts in the first call (the me (from the statement)
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    for _ in range(warmup):
        f()
        synchronize()
    times = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()
        times.append(clock() - start)
    return statistics.median(times)

# %% wrong: torch.median, which takes the lower of the two middle ones (from the statement)
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    for _ in range(warmup):
        f()
    times = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        times.append(clock() - start)
    return torch.tensor(times, dtype=torch.float64).median().item()

# %% wrong: the waiting before the call stands inside the timed part (from the statement)
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    for _ in range(warmup):
        f()
    times = []
    for _ in range(repeats):
        start = clock()
        synchronize()
        f()
        synchronize()
        end = clock()
        times.append(end - start)
    return statistics.median(times)

# %% right: waits once, then after each call
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    synchronize()
    times = [clock()]
    for _ in range(repeats):
        f()
        synchronize()
        times.append(clock())
    return statistics.median(b - a for a, b in itertools.pairwise(times))

# %% right: sorts by hand
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    def sample():
        synchronize()
        start = clock()
        f()
        synchronize()
        return clock() - start

    samples = sorted([sample() for _ in range(warmup + repeats)][warmup:])
    return (samples[repeats // 2] + samples[~(repeats // 2)]) / 2

# %% right: quantile of a tensor
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    [f() for _ in range(warmup)]
    seconds = torch.empty(repeats, dtype=torch.float64)
    for i in range(repeats):
        synchronize()
        seconds[i] = -clock()
        f()
        synchronize()
        seconds[i] += clock()
    return seconds.quantile(0.5)

# %% right: subtracts what it has measured without f
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    samples = []
    for number in range(-warmup, repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        if number >= 0:
            samples.append(clock() - start)
    return float(np.median(samples)) if "np" in globals() else statistics.median(samples)

# %% right: one synchronization before all calls, one after each
def benchmark(
    f: Callable[[], object],
    synchronize: Callable[[], None],
    clock: Callable[[], float],
    warmup: int = 2,
    repeats: int = 7,
) -> float:
    for _ in range(warmup):
        f()
    synchronize()  # wait for the warm-up, and for whatever was queued before

    samples: list[float] = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()  # so the device is idle when the next call is made
        samples.append(clock() - start)
    return statistics.median(samples)
