import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise(
    "Is your line fitted to all the points, without being forced through the origin? Its slope is in seconds per byte."
)


def look(student, sizes, seconds):
    """Both numbers, each by its name."""
    latency, bandwidth = student.copy_cost(sizes, seconds)
    return {"latency": latency, "bandwidth": bandwidth}


def ask(sizes, seconds):
    """A case, with its numbers as they are."""
    return given(sizes, seconds, says=f"copy_cost({sizes}, {seconds})")


@st.composite
def on_a_line(draw, signs=(1,)):
    """Copies of a known latency and bandwidth, in any order; the latency is a good part of the time."""
    latency, bandwidth = draw(st.integers(5, 900)) * 1e-6, draw(st.integers(1, 3_000)) * 1e9
    step = int(latency * bandwidth / draw(st.integers(2, 20)))
    steps = draw(st.lists(st.integers(0, 40), min_size=2, max_size=7))
    assume(max(steps) > 3 * min(steps))  # else float32 finds the latency only roughly, which is another requirement's
    sizes = [step * k for k in steps]
    latency *= draw(st.sampled_from(signs))
    seconds = [latency + size / bandwidth for size in sizes]
    assume(min(seconds) > 0.01 * max(seconds))
    return given(sizes, seconds)


@st.composite
def measured(draw):
    """Copies that took more or less time than a line says; the best line rises, and not from the origin."""
    sizes = draw(st.lists(st.integers(1, 60), min_size=3, max_size=9))
    assume(len(set(sizes)) > 2)
    seconds = [draw(st.integers(20, 60)) + size * draw(st.integers(5, 30)) / 10 for size in sizes]
    slope, intercept = np.polyfit(sizes, seconds, 1, w=1 / np.array(seconds))
    assume(slope > 0.1 and intercept > 3)
    return given([size * 1_000_000 for size in sizes], [float(f"{s * 1e-4:.6g}") for s in seconds])


@st.composite
def close_together(draw):
    """Copies of gigabytes that differ by megabytes: seven digits do not tell them apart well enough."""
    base, bandwidth = draw(st.integers(1_000_000_000, 2_000_000_000)), draw(st.integers(1, 9)) * 1e8
    steps = draw(st.lists(st.integers(0, 30), min_size=2, max_size=5, unique=True))
    assume(max(steps) - min(steps) > 3)  # closer still, and a float64 cannot tell a rounding error from a slope
    sizes = [base + 1_000_003 * k for k in steps]
    latency = draw(st.integers(1, 20)) / 2
    return given(sizes, [latency + size / bandwidth for size in sizes])


line = {
    "two sizes": ask([1_000_000, 4_000_000], [0.0015, 0.003]),
    "in no order": ask([5_000_000, 1_000_000, 2_000_000], [0.0035, 0.0015, 0.002]),
    "one size three times": ask([1_000_000, 1_000_000, 4_000_000, 1_000_000], [0.0015, 0.0015, 0.003, 0.0015]),
    "a copy of nothing": ask([0, 2_000_000, 4_000_000], [0.001, 0.002, 0.003]),
    "sizes beyond 32 bits": ask([10**12, 3 * 10**12], [600.0, 1600.0]),
}
points = ask([1_000_000, 2_000_000, 5_000_000], [0.0015, 0.002, 0.0035])
below = ask([10, 20, 30], [5.0, 20.0, 35.0])
slow = ask([10, 30, 20], [25.0, 65.0, 45.0])
exercise.requirement(
    "latency, first in the result: the seconds at 0 bytes, even if the line starts below 0",
    points=0.5,
    probe=look,
    tolerance=1e-4,
    rules={"bandwidth": "ignored"},
    visible=[points, line["in no order"], below],
    edges=line | {"below 0, two sizes": ask([10, 20], [5.0, 20.0]), "seconds, not their fractions": slow},
    domain=on_a_line((1, 1, -0.1)),
)
exercise.requirement(
    "bandwidth, second in the result: bytes per second, even if that's a fraction",
    points=0.5,
    probe=look,
    tolerance=1e-4,
    rules={"latency": "ignored"},
    visible=[points, line["two sizes"], slow],
    edges=line | {"hardly a byte": ask([1, 2], [100.0, 300.0])},
    domain=on_a_line(),
)
exercise.requirement(
    "if the points aren't on a line: the line whose relative errors have the smallest sum of squares",
    points=0.5,
    probe=look,
    tolerance=1e-4,
    visible=[
        ask([1_000_000, 2_000_000, 3_000_000], [3.25, 4.5, 7.25]),
        ask([3_000_000, 1_000_000, 4_000_000, 1_000_000, 5_000_000, 9_000_000], [4.0, 3.0, 6.0, 2.0, 5.0, 9.0]),
    ],
    edges={
        "small and large": ask([1_000, 10**5, 10**7, 10**9], [2e-6, 1.2e-5, 1e-3, 0.11]),
        "one far off": ask(
            [10**7, 2 * 10**7, 3 * 10**7, 4 * 10**7, 5 * 10**7, 6 * 10**8], [12.0, 14.0, 16.0, 58.0, 20.0, 140.0]
        ),
        "one size, measured twice": ask([10**6, 10**6, 5 * 10**6], [10.0, 14.0, 20.0]),
        "two sizes, measured often": ask([10**6] * 3 + [5 * 10**6] * 2, [10.0, 14.0, 9.0, 20.0, 27.0]),
        "a hundred": ask([k * 10**6 for k in range(1, 101)], [20.0 + k + (k * k) % 7 for k in range(1, 101)]),
    },
    domain=measured(),
    hint="Every point counts: an error of 10% counts as much for a small copy as for a large one.",
)
exercise.requirement(
    "computed in float64: right even for large sizes that are close together",
    points=0.5,
    probe=look,
    tolerance=1e-7,
    visible=[ask([1_000_000_001, 1_001_000_011, 1_003_000_026], [3.000000001, 3.001000011, 3.003000026])],
    edges={
        "two of them": ask([1_500_000_001, 1_504_000_003], [6.500000001, 6.504000003]),
        "in no order": ask([1_003_000_026, 1_000_000_001, 1_001_000_011], [3.003000026, 3.000000001, 3.001000011]),
        "many digits": ask([1_234_567_891, 1_245_678_912, 1_256_789_123, 1_267_891_234], [20.5, 20.6, 20.7, 20.8]),
    },
    domain=close_together(),
    hint="These sizes are close together, and so are the seconds: in float32 their differences lose digits, so "
         "compute in float64.",
)

exercise.mistake("This is ordinary least squares; each error should be relative to its copy's own time.",
                 "weight = 1 / y**2 → weight = torch.ones_like(y)")  # fmt: skip
exercise.mistake("Divide each error by the copy's time before you square it; your code divides the square by the time only once.",
                 "1 / y**2 → 1 / y")  # fmt: skip
exercise.mistake("Your code gives the slowest copies the most weight; divide each error by the copy's time.", "1 / y**2 → y**2")
exercise.mistake("Each error is relative to the copy's own time, not to its bytes.", "1 / y**2 → 1 / x.clamp(min=1) ** 2")
exercise.mistake("The slope of the line is seconds per byte; the bandwidth is bytes per second.", "1 / slope.item() → slope.item()")
exercise.mistake("The order is (latency, bandwidth).",
                 "return latency.item(), 1 / slope.item() → return 1 / slope.item(), latency.item()")  # fmt: skip
exercise.mistake("Your result is in GB/s; the bandwidth is in bytes per second.", "1 / slope.item() → 1 / slope.item() / 1e9")
exercise.mistake("Your result is in milliseconds; the latency is in seconds.", "latency.item() → latency.item() * 1e3")
exercise.mistake("The latency is the time of a copy of 0 bytes, not that of the fastest copy measured.",
                 "latency = y_mean - slope * x_mean → latency = y.min()")  # fmt: skip
exercise.mistake("The latency is where the line starts, not the mean of the times.",
                 "latency = y_mean - slope * x_mean → latency = y_mean")  # fmt: skip
exercise.mistake("At the weighted mean of the sizes, the line reaches the weighted mean of the seconds: check "
                 "the sign in your formula for the latency.",
                 "latency = y_mean - slope * x_mean → latency = y_mean + slope * x_mean")  # fmt: skip
exercise.mistake("The best line may start below 0: leave its latency as it is.",
                 "latency = y_mean - slope * x_mean → latency = (y_mean - slope * x_mean).clamp(min=0)")  # fmt: skip
exercise.mistake("Your slope is that of a line forced through the origin, without a latency.",
                 "dx, dy = x - x_mean, y - y_mean → dx, dy = x, y")  # fmt: skip
exercise.mistake("The means need weights as well.",
                 "x_mean, y_mean = (weight * x).sum(), (weight * y).sum() → x_mean, y_mean = x.mean(), y.mean()")  # fmt: skip
SLOPE = "slope = (weight * dx * dy).sum() / (weight * dx * dx).sum()"
LATENCY = "latency = y_mean - slope * x_mean"
exercise.mistake("Your line joins the first and the last point; the best line depends on all points.",
                 f"{SLOPE} → slope = (y[-1] - y[0]) / (x[-1] - x[0])", f"{LATENCY} → latency = y[0] - slope * x[0]")
exercise.mistake("Your line joins the smallest and the largest copy; the best line depends on all copies.",
                 f"{SLOPE} → i, j = x.argmin(), x.argmax(); slope = (y[j] - y[i]) / (x[j] - x[i])",
                 f"{LATENCY} → latency = y[i] - slope * x[i]")  # fmt: skip
exercise.mistake("Your code uses the first two points; the best line depends on all points.",
                 f"{SLOPE} → slope = (y[1] - y[0]) / (x[1] - x[0])", f"{LATENCY} → latency = y[0] - slope * x[0]")
exercise.mistake("Your code fits bytes as a function of seconds; minimize the errors in the seconds instead.",
                 f"{SLOPE} → slope = (weight * dy * dy).sum() / (weight * dx * dy).sum()")  # fmt: skip
exercise.mistake("These numbers are close together: in float32 their differences lose digits, so compute in float64.",
                 "torch.tensor(sizes, dtype=torch.float64) → torch.tensor(sizes, dtype=torch.float32)",
                 "torch.tensor(seconds, dtype=torch.float64) → torch.tensor(seconds, dtype=torch.float32)")  # fmt: skip
exercise.mistake("The seconds, too, need float64.",
                 "torch.tensor(seconds, dtype=torch.float64) → torch.tensor(seconds, dtype=torch.float32)")  # fmt: skip
exercise.mistake("The sizes, too, need float64.",
                 "torch.tensor(sizes, dtype=torch.float64) → torch.tensor(sizes, dtype=torch.float32)")  # fmt: skip

# %% mistake: no latency
# says: Your code divides bytes by seconds and leaves out the latency.
def copy_cost(sizes, seconds):
    return 0.0, sum(sizes) / sum(seconds)

# %% mistake: sorts sizes and seconds apart from each other
# says: sizes[i] belongs to seconds[i]: sorting them separately mixes the copies up.
def copy_cost(sizes, seconds):
    import numpy as np

    seconds = sorted(seconds)
    slope, latency = np.polyfit(sorted(sizes), seconds, 1, w=1 / np.array(seconds))
    return latency, 1 / slope

# %% mistake: the right line, and the lists are sorted by then
# says: Both lists belong to the caller: leave them as they are.
def copy_cost(sizes, seconds):
    import numpy as np

    sizes[:], seconds[:] = zip(*sorted(zip(sizes, seconds)))
    middle = np.mean(sizes)
    slope, latency = np.polyfit(np.array(sizes) - middle, seconds, 1, w=1 / np.array(seconds))
    return latency - slope * middle, 1 / slope

# %% wrong: numpy's weights, squared once too often
def copy_cost(sizes, seconds):
    import numpy as np

    middle = np.mean(sizes)
    slope, latency = np.polyfit(np.array(sizes) - middle, seconds, 1, w=1 / np.array(seconds) ** 2)
    return latency - slope * middle, 1 / slope

# %% wrong: the line of the logarithms
def copy_cost(sizes, seconds):
    import numpy as np

    slope, start = np.polyfit(np.log(np.maximum(sizes, 1)), np.log(seconds), 1)
    return float(np.exp(start)), float(1 / np.exp(slope))

# %% wrong: whole bytes per second
def copy_cost(sizes, seconds):
    import numpy as np

    middle = np.mean(sizes)
    slope, latency = np.polyfit(np.array(sizes) - middle, seconds, 1, w=1 / np.array(seconds))
    return latency - slope * middle, int(1 / slope)

# %% wrong: each size once
def copy_cost(sizes, seconds):
    import numpy as np

    once = dict(zip(sizes, seconds))
    sizes, seconds = np.array(list(once)), np.array(list(once.values()))
    middle = sizes.mean()
    slope, latency = np.polyfit(sizes - middle, seconds, 1, w=1 / seconds)
    return latency - slope * middle, 1 / slope

# %% wrong: the median of the slopes
def copy_cost(sizes, seconds):
    import itertools
    import statistics

    points = list(zip(sizes, seconds))
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.combinations(points, 2) if a != c]
    slope = statistics.median(slopes)
    return statistics.median(s - slope * n for n, s in points), 1 / slope

# %% wrong: polyfit with the weights squared twice (from the statement)
import numpy as np


def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by least squares of the relative differences."""
    n = np.array(sizes, dtype=np.float64)
    t = np.array(seconds, dtype=np.float64)
    slope, latency = np.polyfit(n, t, 1, w=1 / t**2)
    return float(latency), float(1 / slope)

# %% wrong: a latency below 0 is lifted to 0 (from the statement)
def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by least squares of the relative differences."""
    n = torch.tensor(sizes, dtype=torch.float64)
    t = torch.tensor(seconds, dtype=torch.float64)
    a = torch.stack([1 / t, n / t], dim=1)
    latency, slope = torch.linalg.lstsq(a, torch.ones(len(t), 1, dtype=torch.float64)).solution.flatten().tolist()
    return max(latency, 0.0), 1 / slope

# %% wrong: copies of the same size are averaged first (from the statement)
def copy_cost(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = latency + bytes / bandwidth by least squares of the relative differences."""
    groups: dict[int, list[float]] = {}
    for size, second in zip(sizes, seconds):
        groups.setdefault(size, []).append(second)
    n = torch.tensor(list(groups), dtype=torch.float64)
    t = torch.tensor([sum(g) / len(g) for g in groups.values()], dtype=torch.float64)
    w = 1 / t**2
    mean_n, mean_t = (w * n).sum() / w.sum(), (w * t).sum() / w.sum()
    slope = (w * (n - mean_n) * (t - mean_t)).sum() / (w * (n - mean_n) ** 2).sum()
    return (mean_t - slope * mean_n).item(), (1 / slope).item()

# %% right: numpy
def copy_cost(sizes, seconds):
    import numpy as np

    middle = np.mean(sizes)
    slope, latency = np.polyfit(np.array(sizes) - middle, seconds, 1, w=1 / np.array(seconds))
    return latency - slope * middle, 1 / slope

# %% right: plain Python
def copy_cost(sizes, seconds):
    weights = [1 / s / s for s in seconds]
    whole = math.fsum(weights)
    mx = math.fsum(w * x for w, x in zip(weights, sizes)) / whole
    my = math.fsum(w * y for w, y in zip(weights, seconds)) / whole
    up = math.fsum(w * (x - mx) * (y - my) for w, x, y in zip(weights, sizes, seconds))
    slope = up / math.fsum(w * (x - mx) ** 2 for w, x in zip(weights, sizes))
    return [my - slope * mx, 1 / slope]

# %% right: PyTorch's solver, each equation divided by its seconds
def copy_cost(sizes, seconds):
    x, y = torch.tensor(sizes, dtype=torch.float64), torch.tensor(seconds, dtype=torch.float64)
    middle, scale = x.mean(), (x - x.mean()).abs().max()
    a = torch.stack([torch.ones_like(x), (x - middle) / scale], dim=1) / y[:, None]
    start, slope = torch.linalg.lstsq(a, torch.ones_like(y)[:, None]).solution.flatten()
    return start - slope * middle / scale, scale / slope

# %% right: in fractions, exactly
def copy_cost(sizes, seconds):
    from fractions import Fraction

    x, y = [Fraction(size) for size in sizes], [Fraction(s) for s in seconds]
    w = [1 / s**2 for s in y]
    sw, sx, sy = sum(w), sum(a * b for a, b in zip(w, x)), sum(a * b for a, b in zip(w, y))
    sxx = sum(a * b * b for a, b in zip(w, x))
    sxy = sum(a * b * c for a, b, c in zip(w, x, y))
    slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx)
    return float((sy - slope * sx) / sw), float(1 / slope)

# %% equivalent: y - y_mean → y + y_mean
# why: a constant added to y drops out of Σ w · dx · dy, because the w · dx add up to 0
# %% equivalent: y - y_mean → y
# why: as above
# %% equivalent: torch.tensor(sizes, dtype=torch.float64) → torch.tensor(sizes)
# why: whole numbers of 64 bits, and the first product with a weight makes float64 of them
# %% equivalent: 1 → 2
# why: the weights are divided by their sum
