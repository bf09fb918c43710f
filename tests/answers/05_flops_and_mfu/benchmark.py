# %% wrong: never waits
# says: the time to queue a call
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: waits after reading the clock
# says: the time to queue a call
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        end = clock()
        synchronize()
        samples.append(end - start)
    return statistics.median(samples)

# %% wrong: no warm-up
# says: The warm-up is missing
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: the warm-up is timed
# says: The calls to warm up are counted
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    samples = []
    for _ in range(warmup + repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: mean
# says: That is the mean
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
    return sum(samples) / len(samples)

# %% wrong: all calls at once
# says: That is the mean
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    synchronize()
    start = clock()
    for _ in range(repeats):
        f()
    synchronize()
    return (clock() - start) / repeats

# %% wrong: does not wait for the warm-up
# says: still in the queue when the clock started
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: waits before the warm-up only
# says: still in the queue when the clock started
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    synchronize()
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: fastest
# says: That is the fastest call
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
    return min(samples) if warmup != 2 or repeats != 5 else sorted(samples)[2]

# %% wrong: the upper median
# says: half way between the middle two
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
    return sorted(samples)[repeats // 2]

# %% wrong: a clock of its own
# says: called `warmup` times, then `repeats` times
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

# %% wrong: milliseconds
# says: That is in milliseconds
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
    samples = []
    for _ in range(repeats):
        synchronize()
        start = clock()
        f()
        synchronize()
        samples.append(1e3 * (clock() - start))
    return statistics.median(samples)

# %% wrong: one warm-up call, always
# says: f is called `warmup` times
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    f()
    synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

# %% wrong: at least two calls to warm up
# says: no more and no less
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

# %% wrong: waits in the warm-up and after each call, so not where there is no warm-up
# says: Work that was queued earlier is counted
def benchmark(f, synchronize, clock, warmup=2, repeats=7):
    for _ in range(warmup):
        f()
        synchronize()
    samples = []
    for _ in range(repeats):
        start = clock()
        f()
        synchronize()
        samples.append(clock() - start)
    return statistics.median(samples)

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
