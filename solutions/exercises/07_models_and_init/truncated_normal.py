from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes

exercise = Exercise(
    "Draw from a normal distribution with the given std, then redraw the numbers outside ±3 · std. Always use the "
    "generator."
)


def look(student, shape, std, seed, calls=1):
    """What kind of tensor the last call of several returns, and whether it had PyTorch's initializers make it."""
    import inspect

    import torch

    init, called = torch.nn.init, []

    def noted(name, function):
        return lambda *args, **kwargs: (called.append(name), function(*args, **kwargs))[1]

    ready = {name: each for name, each in vars(init).items() if inspect.isfunction(each)}
    vars(init).update({name: noted(name, each) for name, each in ready.items()})
    try:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(calls):
            x = student.truncated_normal(shape, std, generator)
    finally:
        vars(init).update(ready)
    return {
        "uses torch.nn.init": bool(called),
        "shape": list(x.shape),
        "dtype": x.dtype,
        "device": x.device.type,
        "requires a gradient": x.requires_grad,
        "is a parameter": isinstance(x, torch.nn.Parameter),
        "every number is finite": bool(torch.isfinite(x).all()),
    }


def numbers(student, shape, std):
    """Many numbers, and the seed, which varies."""
    import torch

    seed = int(torch.randint(2**31, ()))
    return student.truncated_normal(shape, std, torch.Generator().manual_seed(seed)), seed


def drawn_again(x, seed):
    """The numbers that are new because torch.randn's lay outside; all of them, if the others aren't torch.randn's.

    They are 0.27% of all: among all numbers, it takes tens of millions to see from which distribution they come.
    """
    import torch

    first = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
    outside = first.abs() > 3
    kept = (x - first)[~outside].abs() < 1e-3
    return x[outside] if outside.any() and kept.double().mean() > 0.99 else x


def statistics(found, shape, std):
    """In units of std: how large they are, and which share lies where."""
    import torch

    numbers, seed = found
    x = numbers.detach().double() / std
    again = drawn_again(x, seed)
    size, centered = x.abs(), x.flatten() - x.mean()
    correlations = torch.fft.irfft(torch.fft.rfft(centered).abs() ** 2, n=max(x.numel(), 1)).abs()
    return {
        "shape": list(x.shape),
        "standard deviation, divided by std": x.std().item(),
        "mean": x.mean().item(),
        "share within 1 std": (size <= 1).double().mean().item(),
        "share from 1.5 to 2 std": ((size > 1.5) & (size <= 2)).double().mean().item(),
        "share beyond 2 std": (size > 2).double().mean().item(),
        "share within 1 std of those drawn again": (again.abs() <= 1).double().mean().item(),
        "mean of those drawn again": again.mean().item(),
        "mean product of neighbors": (x.flatten()[1:] * x.flatten()[:-1]).mean().item(),
        "largest correlation with the numbers so many places further on":
            (correlations[1:].max() / correlations[0]).item() if x.numel() > 1 and correlations[0] > 0 else 1.0,
    }  # fmt: skip


def tails(found, shape, std):
    """What has become of those that lay outside."""
    import numpy as np

    numbers, seed = found
    x = numbers.detach().double() / std
    _, counts = np.unique(x.numpy(), return_counts=True)  # several times as fast as torch.unique
    magnitudes, sizes = np.unique(x.abs().numpy(), return_counts=True)
    again = drawn_again(x, seed).abs().numpy()
    return {
        "shape": list(x.shape),
        "the largest magnitude, in std": x.abs().max().item(),
        "numbers that are ±3 · std": (x.abs() > 2.99999).sum().item(),
        "how often the most frequent number occurs": counts.max().item(),
        "share of magnitudes that occur once": (sizes == 1).mean().item(),
        "share of those drawn again that copy another number": np.isin(again, magnitudes[sizes > 1]).mean().item(),
    }


def generators(student, shape, std, one, other):
    """Whether two generators give the same numbers; each is a seed and the number of calls before this one.

    The global generators change between any two calls.
    """
    import random

    import numpy as np
    import torch

    def draw(generator):
        draw.calls += 1
        torch.manual_seed(draw.calls)
        random.seed(draw.calls)
        np.random.seed(draw.calls)
        before = torch.get_rng_state()
        numbers = student.truncated_normal(shape, std, generator)
        draw.untouched = draw.untouched and torch.equal(before, torch.get_rng_state())
        return numbers

    def last(seed, calls):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(calls):
            draw(generator)
        return draw(generator)

    draw.calls, draw.untouched = 0, True
    return {
        "the same numbers": torch.equal(last(*one), last(*other)),
        "PyTorch's global generator is unchanged": draw.untouched,
    }


stds = any_of(1.0, 0.02, 5.0, 1 / 128, 40.0, 3.0, 1e-4)
SHARES = ("standard deviation, divided by std", "mean", "share within 1 std", "share from 1.5 to 2 std", "share beyond 2 std",
          "share within 1 std of those drawn again", "mean of those drawn again", "mean product of neighbors",
          "largest correlation with the numbers so many places further on")  # fmt: skip


def of_about(least, most):
    """Shapes with about so many numbers, in one to three dimensions, and stds."""

    def split(total, first, second, dims):
        return [(total,), (first, total // first), (first, second, total // (first * second))][dims]

    size = st.integers(2, 60)
    return st.builds(given, st.builds(split, st.integers(least, most), size, size, st.integers(0, 2)), stds)


def many(std, *shape):
    return given(shape, std, says=f"the numbers of truncated_normal({shape}, {std}, generator)")


def two(one, other, shape=(100, 50), std=2.0):
    """Two states, each a seed and how often the generator was used before."""
    times = ["freshly seeded with {}", "seeded with {} and used once", "seeded with {} and used twice"]
    words = [times[calls].format(seed) for seed, calls in (one, other)]
    return given(shape, std, list(one), list(other),
                 says=f"truncated_normal({shape}, {std}, generator) with a generator {words[0]}, and with one {words[1]}")


def call(shape, std, seed):
    return given(shape, std, seed, says=f"truncated_normal({shape}, {std}, a generator with seed {seed})")


exercise.requirement(
    "the result is a new float32 tensor of the given shape on the CPU, not a parameter, made without torch.nn.init",
    points=0.25,
    probe=look,
    visible=[call((3, 5), 0.02, 1), call((4,), 5.0, 2), call((0, 3), 0.02, 1)],
    edges={
        "no numbers": call((0,), 1.0, 3),
        "no rows": call((0, 3), 1.0, 3),
        "a list": call([2, 3], 1.0, 3),
        "one number": call((1,), 1.0, 3),
        **{f"seed {seed}": call((99,), 1.0, seed) for seed in range(100, 120)},  # one in four of these has an outlier
        "again and again": given((50,), 1.0, 4, 600),
        "many dimensions": call((2, 1, 3, 1, 2), 1.0, 3),
    },
    domain=st.builds(given, shapes((1, 4), (0, 5)), stds, st.integers(0, 10**6)),
)
exercise.requirement(
    "the numbers are independent, from a normal distribution with mean 0 and std `std`, given that each lies within "
    "±3 · `std`",
    points=0.75,
    probe=numbers,
    summary=statistics,
    band=SHARES,
    visible=[many(0.02, 600, 700), many(5.0, 600, 700)],
    edges={
        "a vector": many(1 / 128, 420_000),
        "three dimensions": many(3.0, 60, 70, 100),
        "so many that each share is known well": many(1.0, 2_000, 2_000),
    },
    domain=of_about(60_000, 90_000),
    hint="Cutting off the tails makes the std a little smaller. Don't scale the numbers up to make up for that.",
)
exercise.requirement(
    "no number is beyond ±3 · `std`, and none is clamped or replaced by a fixed value",
    points=0.5,
    probe=numbers,
    summary=tails,
    bounds={
        "the largest magnitude, in std": (0, 3.00001),  # 3, and the rounding of float32
        # Of the most numbers in any case, four million, less than one is this close to 3. Of the fewest, 60,000, about
        # 160 are outside: that is how many clamping moves to ±3, or any fixed value takes the place of. Of four million,
        # 29 are still outside when those outside have been drawn again.
        "numbers that are ±3 · std": (0, 8),
        "how often the most frequent number occurs": (1, 50),  # float32 has few equal numbers among a million
        "share of magnitudes that occur once": (0.5, 1),
        "share of those drawn again that copy another number": (0, 0.5),
    },
    visible=[many(0.02, 1_000, 1_000), many(5.0, 300, 400)],
    edges={
        "std 1": many(1.0, 300, 400),
        "a vector": many(1 / 128, 120_000),
        "three dimensions": many(1e-4, 60, 20, 100),
        "std 3": many(3.0, 300, 400),
        "so many that some lie outside again": many(1.0, 2_000, 2_000),
    },
    domain=of_about(60_000, 90_000),  # of which 200 lie outside
    hint="Redraw the numbers that fall outside the limits, then check again. A redrawn number may fall outside, too.",
)
exercise.requirement(
    "all randomness comes from `generator`, and PyTorch's global generator isn't changed",
    points=0.5,
    probe=generators,
    visible=[two((3, 0), (3, 0)), two((3, 0), (3, 1)), two((3, 1), (3, 1)), two((3, 0), (4, 0))],
    edges={
        "few numbers, the same": two((3, 0), (3, 0), (4,)),
        "few numbers, others": two((3, 0), (3, 1), (4,)),
        "many numbers": two((5, 2), (5, 2), (200, 300)),
        "after calls, others": two((5, 1), (5, 2), (200, 300)),
        "another seed, after a call": two((5, 1), (6, 1)),
    },
    domain=st.builds(
        lambda size, std, seed, calls, more: given((size, 60), std, [seed, calls], [seed, calls + more]),
        st.integers(40, 80), stds, st.integers(0, 10**6), st.integers(0, 1), st.integers(0, 1),
    ),
    hint="Every function that draws numbers needs the generator.",
)  # fmt: skip

loop = "while (outside := numbers.abs() > 3).any(): → "
first, more = "torch.randn(shape, generator=generator)", "torch.randn(int(outside.sum()), generator=generator)"
body = f"    while (outside := numbers.abs() > 3).any():\n        numbers[outside] = {more}\n"
exercise.mistake(
    "Some numbers are beyond ±3 · std. Redraw those beyond three standard deviations, not those beyond the value 3.",
    f"{body} → ",
)  # fmt: skip
exercise.mistake("Some numbers are beyond ±3 · std. Redraw those beyond three standard deviations, not those beyond "
                 "the value 3.",
                 f"{first} → torch.randn(shape, generator=generator) * std",
                 f"{more} → {more} * std", "return numbers * std → return numbers")  # fmt: skip
exercise.mistake("Many numbers lie exactly at ±3 · std, because clamping moves the tails there. Redraw them instead.",
                 f"{body} → ", "numbers * std → numbers.clamp(-3, 3) * std")  # fmt: skip
exercise.mistake("Redrawn numbers may fall outside ±3 · std, too. Check again until none do.",
                 loop + "if (outside := numbers.abs() > 3).any():")  # fmt: skip
exercise.mistake("You truncated the distribution too close to its mean. "
                 "The cutoff is at ±3 · std.", "numbers.abs() > 3 → numbers.abs() > 2")
exercise.mistake(
    "Don't scale the numbers up to make up for the cut. Their std should be a little smaller than `std`.",
    "numbers * std → numbers * std / 0.98658",
)  # fmt: skip
exercise.mistake("Multiply by std itself, not by its square root.", "numbers * std → numbers * std**0.5")
exercise.mistake("Each number must be as likely to be positive as negative.", "numbers * std → numbers.abs() * std")
exercise.mistake("Redraw the numbers that fall outside the limits. Don't set them to a fixed value.", f"{more} → 0")
exercise.mistake("Some random numbers come from PyTorch's global generator. Draw all of them from `generator`.",
                 f"{first} → torch.randn(shape)",
                 f"{more} → torch.randn(int(outside.sum()))")  # fmt: skip
exercise.mistake("Some random numbers come from PyTorch's global generator. Draw all of them from `generator`.",
                 f"{more} → torch.randn(int(outside.sum()))")  # fmt: skip
exercise.mistake("Two calls in a row give the same numbers. Don't seed the generator again.",
                 "numbers = torch → generator.manual_seed(generator.initial_seed())\n    numbers = torch")  # fmt: skip
exercise.mistake("Each number has to be independent of the others. Yours are in order.",
                 "return numbers * std → return numbers.flatten().sort().values.reshape(tuple(shape)) * std")  # fmt: skip
exercise.mistake("The exercise asks for a tensor, not a parameter.", "return numbers * std → return nn.Parameter(numbers * std)")
exercise.mistake("Return a float32 tensor.", "return numbers * std → return numbers.double() * std")

# %% mistake: uniform
# says: Your numbers follow a uniform distribution. The exercise asks for a normal distribution.
def truncated_normal(shape, std, generator):
    return (torch.rand(shape, generator=generator) * 2 - 1) * 3 * std

# %% mistake: seeds the global generator from this one
# says: Your code seeds PyTorch's global generator, which must not change. Draw from `generator` instead.
def truncated_normal(shape, std, generator):
    torch.manual_seed(generator.initial_seed())
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std)

# %% wrong: half of the numbers are nearly those of the other half
def truncated_normal(shape, std, generator):
    count = math.prod(shape)
    x = torch.randn(count // 2 + 1, generator=generator)
    while (outside := x.abs() > 2.999).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    return std * torch.cat([x, 1.0001 * x])[:count].reshape(shape)

# %% wrong: drawn again, once, and then put at the edge
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    outside = x.abs() > 3
    x[outside] = torch.randn(int(outside.sum()), generator=generator).sign() * 3
    return x * std

# %% wrong: scaled up, and cut where it is right
def truncated_normal(shape, std, generator):
    wide = std / 0.98658 * 1.0035
    return nn.init.trunc_normal_(torch.empty(shape), std=wide, a=-3 * std, b=3 * std, generator=generator)

# %% wrong: uses a number of the global generator on the side
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    torch.randn(1)
    return x * std

# %% wrong: a generator of its own, seeded as the other was
def truncated_normal(shape, std, generator):
    own = torch.Generator().manual_seed(generator.initial_seed())
    return nn.init.trunc_normal_(torch.empty(shape), std=std, a=-3 * std, b=3 * std, generator=own)

# %% wrong: random numbers of NumPy
def truncated_normal(shape, std, generator):
    import numpy as np
    x = torch.from_numpy(np.random.standard_normal(tuple(shape))).float()
    while (outside := x.abs() > 3).any():
        x[outside] = torch.from_numpy(np.random.standard_normal(int(outside.sum()))).float()
    return x * std

# %% wrong: a sum of uniform numbers
def truncated_normal(shape, std, generator):
    x = torch.zeros(shape)
    for _ in range(12):
        x += torch.rand(shape, generator=generator) - 0.5
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    return x * std

# %% wrong: the inverse of the distribution function, with the probabilities clamped
def truncated_normal(shape, std, generator):
    low, high = torch.special.ndtr(torch.tensor([-3.0, 3.0]))
    return std * torch.special.ndtri(torch.rand(tuple(shape), generator=generator).clamp(low, high))

# %% wrong: the inverse of the error function, in ±3 without the root of 2
def truncated_normal(shape, std, generator):
    edge = math.erf(3)
    uniform = torch.empty(tuple(shape)).uniform_(-edge, edge, generator=generator)
    return uniform.erfinv_() * std

# %% wrong: halves what lies outside
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] /= 2
    return x * std

# %% wrong: half of the numbers are the others with the opposite sign
def truncated_normal(shape, std, generator):
    n = math.prod(shape)
    x = torch.randn((n + 1) // 2, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    return torch.cat([x, -x])[:n].reshape(tuple(shape)) * std

# %% wrong: the signs alternate
def truncated_normal(shape, std, generator):
    n = math.prod(shape)
    x = torch.randn(n, generator=generator).abs()
    while (outside := x > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator).abs()
    return (x * (1 - 2 * (torch.arange(n) % 2))).reshape(tuple(shape)) * std

# %% wrong: rounds to the numbers of bfloat16
def truncated_normal(shape, std, generator):
    x = torch.randn(shape, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    return (x * std).bfloat16().float()

# %% wrong: keeps the sizes as rows and columns
def truncated_normal(shape, std, generator):
    rows, columns = (*shape, 1)[:2]
    x = torch.randn(rows, columns, generator=generator)
    while (outside := x.abs() > 3).any():
        x[outside] = torch.randn(int(outside.sum()), generator=generator)
    return x * std

# %% wrong: a size of 0 raises an error (from the statement)
def truncated_normal(
    shape: Sequence[int], std: float, generator: torch.Generator
) -> Float32[Tensor, "*shape"]:
    z = torch.randn(tuple(shape), generator=generator, dtype=torch.float32)
    while z.abs().max() > 3:
        outside = z.abs() > 3
        z[outside] = torch.randn(int(outside.sum()), generator=generator)
    return z * std

# %% wrong: draws one per cent too many and keeps the good ones; a small tensor has none in reserve (from the statement)
# unseen: only hidden seeds draw more numbers outside than the reserve covers
def truncated_normal(
    shape: Sequence[int], std: float, generator: torch.Generator
) -> Float32[Tensor, "*shape"]:
    n = math.prod(shape)
    z = torch.randn(n + n // 100, generator=generator, dtype=torch.float32)
    z = z[z.abs() <= 3][:n]
    return (z * std).view(tuple(shape))

# %% wrong: the numbers outside are replaced by uniform ones in ±3 (from the statement)
def truncated_normal(
    shape: Sequence[int], std: float, generator: torch.Generator
) -> Float32[Tensor, "*shape"]:
    z = torch.randn(tuple(shape), generator=generator, dtype=torch.float32)
    u = 6 * torch.rand(tuple(shape), generator=generator, dtype=torch.float32) - 3
    return torch.where(z.abs() > 3, u, z) * std

# %% mistake: PyTorch's own
# says: Your code calls one of PyTorch's initializers. Draw the numbers yourself, and redraw those that fall outside the limits.
def truncated_normal(shape, std, generator):
    x = torch.empty(*shape)
    nn.init.trunc_normal_(x, mean=0.0, std=std, a=-3 * std, b=3 * std, generator=generator)
    return x

# %% wrong: draws again once, then clamps (from the statement)
# unseen: too few are clamped
def truncated_normal(shape, std, generator):
    numbers = torch.randn(*shape, generator=generator)
    outside = numbers.abs() > 3
    numbers[outside] = torch.randn(int(outside.sum()), generator=generator)
    return std * numbers.clamp(-3, 3)

# %% wrong: the numbers outside are replaced by uniform ones in ±1 (from the statement)
def truncated_normal(shape, std, generator):
    z = torch.randn(tuple(shape), generator=generator)
    outside = z.abs() > 3
    z[outside] = torch.rand(int(outside.sum()), generator=generator) * 2 - 1
    return z * std

# %% wrong: a number outside becomes how far it is outside
def truncated_normal(shape, std, generator):
    return torch.fmod(torch.randn(tuple(shape), generator=generator), 3) * std

# %% wrong: numbers outside are replaced by copies of some inside (from the statement)
def truncated_normal(shape, std, generator):
    numbers = torch.randn(tuple(shape), generator=generator)
    inside = numbers[numbers.abs() <= 3]
    outside = numbers.abs() > 3
    if outside.any():
        numbers[outside] = inside[torch.randint(len(inside), (int(outside.sum()),), generator=generator)]
    return numbers * std

# %% wrong: one percent more than needed, which is seldom too few (from the statement)
# unseen: students see few calls
def truncated_normal(
    shape: Sequence[int], std: float, generator: torch.Generator
) -> Float32[Tensor, "*shape"]:
    """Numbers from a normal distribution of std `std`, cut at ±3 · std."""
    count = math.prod(shape)
    # 0.27% of the numbers are outside, so 1% more than needed are enough.
    drawn = torch.randn(int(1.01 * count) + 1, generator=generator)
    inside = drawn[drawn.abs() <= 3]
    return (std * inside[:count]).reshape(tuple(shape))

# %% right: the inverse of the distribution function
def truncated_normal(shape, std, generator):
    share = math.erf(3 / math.sqrt(2))
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
    return (torch.erfinv(uniform * share) * math.sqrt(2) * std).float()

# %% right: the inverse of the distribution function, in float32
def truncated_normal(shape, std, generator):
    low, high = torch.special.ndtr(torch.tensor([-3.0, 3.0]))
    return std * torch.special.ndtri(low + (high - low) * torch.rand(*shape, generator=generator))

# %% right: the inverse of the error function, filled in place in float32
def truncated_normal(shape, std, generator):
    edge = math.erf(3 / math.sqrt(2))
    uniform = torch.empty(tuple(shape)).uniform_(-edge, edge, generator=generator)
    return uniform.erfinv_().mul_(std * math.sqrt(2)).clamp_(-3 * std, 3 * std)  # nothing but rounding lies outside

# %% right: the inverse, by torch.distributions, from the probability below
def truncated_normal(shape, std, generator):
    normal = torch.distributions.Normal(0.0, std)
    low = normal.cdf(torch.tensor(-3 * std))
    return normal.icdf(torch.lerp(low, 1 - low, torch.rand(list(shape), generator=generator)))

# %% right: one number at a time is slow, so all of them at a time, with where
def truncated_normal(shape, std, generator):
    x = torch.normal(0.0, std, tuple(shape), generator=generator)
    while True:
        outside = x.abs() > 3 * std
        if not outside.any():
            return x
        x = torch.where(outside, torch.normal(0.0, std, tuple(shape), generator=generator), x)

# %% right: draws too many, and keeps the first that lie inside
def truncated_normal(shape, std, generator):
    n = math.prod(shape)
    x = torch.randn(2 * n + 100, generator=generator)
    return std * x[x.abs() <= 3][:n].reshape(*shape)

# %% equivalent: numbers.abs() > 3 → numbers.abs() >= 3
# why: a number that is 3 exactly turns up once in millions of draws
