import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("The lower 16 bits of the float32 say how far it is to the neighbor nearer to zero, in units of 1/65,536 of a gap.")


def outcomes(student, pattern, count):
    """What becomes of so many elements with these bits; the seed is another in each run."""
    import torch

    signed = pattern - 2**32 if pattern >= 2**31 else pattern
    x = torch.full((count,), signed, dtype=torch.int32).view(torch.float32)
    result = student.stochastic_round(x, torch.Generator().manual_seed(int(torch.randint(2**31, ()))))
    if not isinstance(result, torch.Tensor) or not result.numel():
        return result
    result = result.detach().float()
    low, high = result.min(), result.max()
    return {
        "the lowest result": low.item(),
        "the highest result": high.item(),
        "number of results in between": int(((result != low) & (result != high)).sum()),
        "fraction of elements with the highest result": (result == high).double().mean().item(),
    }


def independence(student, shape):
    """How many different slices there are along each dimension, where every element lies halfway."""
    import torch

    x = torch.full(shape, 0x3F808000, dtype=torch.int32).view(torch.float32)
    result = student.stochastic_round(x, torch.Generator().manual_seed(int(torch.randint(2**31, ()))))
    if not isinstance(result, torch.Tensor) or list(result.shape) != list(shape):
        return result
    up = result.detach().float() > 1
    found = {
        f"different slices along dimension {d}": len({tuple(each.flatten().tolist()) for each in up.unbind(d)})
        for d in range(len(shape))
    }
    row = up.flatten()
    centered = row.double() - row.double().mean()
    correlations = torch.fft.irfft(torch.fft.rfft(centered).abs() ** 2, n=len(row))
    found["largest correlation with the results so many places further on"] = (
        (correlations[1:].abs().max() / correlations[0]).item() if centered.any() and len(row) > 1 else 1.0
    )
    found["share of neighbors with the same result"] = (row[1:] == row[:-1]).double().mean().item()
    found["share of elements with the same result as the one at the mirrored place"] = (row == row.flip(0)).double().mean().item()
    return found


def randomness(student, size, seed, pattern=0x3F808000):
    """Where the randomness comes from, and what a call leaves behind."""
    import random

    import torch

    def rounded(generator, other):
        torch.manual_seed(other)
        random.seed(other)
        state = torch.get_rng_state()
        result = student.stochastic_round(x, generator)
        untouched.append(torch.equal(state, torch.get_rng_state()))
        return result.tolist()

    untouched = []
    x = torch.full((size,), pattern, dtype=torch.int32).view(torch.float32)
    first, second, third = (torch.Generator().manual_seed(s) for s in (seed, seed, seed + 1))
    one, two = rounded(first, 1), rounded(second, 2)
    return {
        "same result for the same seed": one == two,
        "same result in a second call": one == rounded(first, 1),
        "same result for a different seed": one == rounded(third, 1),
        "PyTorch's global generator is unchanged": all(untouched),
        "number of elements in the result": len(one),
    }


def result(student, x):
    """The result where nothing is to be rounded, and whether Python has more to do for more elements."""
    import sys

    import torch

    def steps(count):
        done = 0

        def trace(frame, event, arg):
            nonlocal done
            frame.f_trace_opcodes = True
            done += 1
            return trace

        wide, generator = torch.ones(count), torch.Generator().manual_seed(0)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            student.stochastic_round(wide, generator)
        finally:
            sys.settrace(before)
        return done

    found = student.stochastic_round(x, torch.Generator().manual_seed(0))
    if not isinstance(found, torch.Tensor):
        return found
    return {
        "the result": found,
        "the result is x or a view of x": found.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() != 0,
        "your code loops over the elements": steps(2048) > 4 * steps(64),
    }


def elements(pattern, count, says=""):
    return given(pattern, count, says=says and f"stochastic_round(x, generator), where x has {count:,} elements {says}")


def where(shape):
    return given(shape, says=f"stochastic_round(x, generator), where x has shape {list(shape)} and every element is halfway between two neighbors")


SHARE = {"probe": outcomes, "band": ["fraction of elements with the highest result"]}
ANY = st.builds(lambda sign, upper: (sign | upper) << 16, st.sampled_from([0, 0x8000]),
                st.integers(0, 0x7F7E) | st.integers(0x3F00, 0x4100) | st.sampled_from([0, 1, 0x7F, 0x3FFF, 0x7F7E]))  # fmt: skip

exercise.requirement(
    "each result is one of the two neighbors, with probabilities that make it right on average",
    points=0.75,
    **SHARE,
    visible=[
        elements(0x3F804000, 20_000, "a quarter of a gap above 1"),
        elements(0xBF80C000, 20_000, "three quarters of a gap below -1"),
        elements(0x42F40080, 20_000, "1/512 of a gap above 122"),
        elements(0x3F800001, 2**20, "1/65,536 of a gap above 1"),
    ],
    edges={
        "nearly the next number": elements(0x3F80FFFF, 2**20),
        "below 0, nearly 0": elements(0x80000001, 2**20),
        "halfway": elements(0x40008000, 20_000),
        "an odd number, halfway": elements(0x40018000, 20_000),
        "up to a power of two": elements(0x3FFF4000, 20_000),
        "down to a negative power of two": elements(0xBFFFC000, 20_000),
        "above 0": elements(0x00004000, 20_000),
        "a little subnormal number": elements(0x00012000, 20_000),
        "from subnormal to normal": elements(0x007FE000, 20_000),
        "below the largest": elements(0x7F7E6000, 20_000),
        "above the lowest": elements(0xFF7E6000, 20_000),
        "0.1 and a bit": elements(0x3DCCC800, 20_000),
    },
    domain=st.builds(lambda upper, lower: elements(upper | lower, 20_000), ANY, st.integers(0x0800, 0xF800)),
    hint="The nearer a neighbor is, the more often it must be chosen. How often should an element halfway between them go each way?",
)
exercise.requirement(
    "numbers that bfloat16 can represent exactly don't change",
    points=0.25,
    **SHARE,
    visible=[elements(0x3F800000, 2**20, "that are all 1"), elements(0xC0490000, 1_000, "that are all -3.140625")],
    edges={
        "the largest": elements(0x7F7F0000, 1_000),
        "the lowest": elements(0xFF7F0000, 1_000),
        "0": elements(0x00000000, 2**20),
        "the smallest of all": elements(0x00010000, 1_000),
        "the smallest normal number": elements(0x00800000, 1_000),
        "a negative power of two": elements(0xC0000000, 1_000),
        "an odd one": elements(0x3F810000, 2**20),
    },
    domain=st.builds(lambda upper: elements(upper, 1_000), ANY),
    hint="If the lower 16 bits are all 0, bfloat16 can represent the number exactly, so it must never be rounded up.",
)
exercise.requirement(
    "each element is rounded independently",
    points=0.25,
    probe=independence,
    band=[
        "share of neighbors with the same result",
        "largest correlation with the results so many places further on",
        "share of elements with the same result as the one at the mirrored place",
    ],
    visible=[where((64, 96))],
    edges={
        "along both dimensions": where((96, 64)),
        "of three dimensions": where((2, 64, 48)),
        "few columns": where((64, 2, 64)),
        "two columns": where((4_000, 2)),
    },
    domain=st.tuples(st.integers(50, 90), st.integers(50, 90), st.integers(1, 3)).map(where),
    hint="Draw a separate random number for each element, not one for each row or column.",
)
exercise.requirement(
    "all randomness comes from the generator that is passed in",
    points=0.5,
    probe=randomness,
    visible=[
        given(100, 7, says="stochastic_round(x, generator), where x has 100 elements halfway between two neighbors, twice with one generator and then with others"),
        given(100, 7, 0x3F800000, says="stochastic_round(x, generator), where x has 100 elements that are all 1, twice with one generator and then with others"),
    ],
    edges={
        "more elements": given(2_000, 0),
        "seed 0": given(200, 0),
        "another seed": given(100, 123_456),
        "near the next": given(2_000, 5, 0x3F80E000),
    },
    domain=st.builds(given, st.integers(90, 400), st.integers(0, 10**6), st.sampled_from([0x3F808000, 0x41008000])),
    hint="Pass generator=… to the PyTorch function that draws the random numbers; without it, the global "
         "generator is used. Don't seed any generator.",
)
exercise.requirement(
    "the result is a new bfloat16 tensor with the same shape as x, computed without a loop, and x doesn't change",
    points=0.25,
    probe=result,
    visible=[
        given(torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, 8.0]]).T,
              says="stochastic_round(torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, 8.0]]).T, generator)"),
        given(torch.tensor(-3.0), says="stochastic_round(torch.tensor(-3.0), generator)"),
        given(torch.tensor([1.001, 2.001, -3.001])[:0], says="stochastic_round(x, generator), where x has no elements"),
    ],
    edges={
        "no columns": given(torch.zeros(3, 0)),
        "every second element": given(torch.arange(9.0)[::2]),
        "expanded": given(torch.tensor([[1.0, -2.0]]).expand(3, 2)),
        "sizes of 1": given(torch.ones(1, 3, 1)),
        "one element": given(torch.tensor([5.0])),
        "many dimensions": given(torch.arange(16.0).view(2, 2, 2, 2).transpose(0, 3)),
        "a slice": given(torch.arange(20.0).view(4, 5)[1:, 1:4]),
    },
    domain=st.lists(st.integers(1, 5), max_size=3).map(
        lambda shape: given(torch.arange(125.0)[: torch.Size(shape).numel()].view(shape).movedim(*(0, -1) if shape else ((), ())))
    ),
    hint="Round all elements at once, without writing to x. Then check the dtype and the shape of the result.",
)  # fmt: skip

NOISE = "torch.randint(\n        0, 2**16, x.shape, generator=generator, dtype=torch.int32, device=x.device\n    )"
BITS = "bits = x.view(torch.int32) + noise"
own = "Draw a separate random number for each element, not one for each row or column."
exercise.mistake("Your code always picks the neighbor nearer to zero: nothing is random.", f"{BITS} → bits = x.view(torch.int32)")
exercise.mistake("Your code picks both neighbors equally often; it must pick the nearer one more often.",
                 f"{BITS} → bits = x.view(torch.int32) + (noise >= 2**15) * (x.view(torch.int32) & 0xFFFF != 0) * 2**16")  # fmt: skip
exercise.mistake(own, "0, 2**16, x.shape → 0, 2**16, x.shape[-1:]")
exercise.mistake(own, "0, 2**16, x.shape → 0, 2**16, [n if d == 0 else 1 for d, n in enumerate(x.shape)]")
exercise.mistake("Your code draws from PyTorch's global generator: draw from the one that is passed in.", "generator=generator, → ")
exercise.mistake("The result must be a bfloat16 tensor.", ".to(torch.bfloat16) → ")
exercise.mistake("Your result holds bits as integers: return the bfloat16 numbers that these bits represent.", ".view(torch.float32).to(torch.bfloat16) → ")
exercise.mistake("Your code writes to x, which belongs to the caller.", f"{BITS} → bits = x.view(torch.int32); bits += noise")
exercise.mistake("Your random numbers are too coarse: even a neighbor 65,535/65,536 of a gap away must be picked now and then.", f"{NOISE} → 256 * {NOISE.replace('2**16', '2**8')}")
exercise.mistake("Numbers that bfloat16 can represent exactly must not change: your largest random number is too large.", "0, 2**16, x.shape → 0, 2**16 + 1, x.shape")
exercise.mistake("Even a neighbor 65,535/65,536 of a gap away must be picked now and then: your largest random number is too small.",
                 "0, 2**16, x.shape → 0, 2**16 - 1, x.shape")  # fmt: skip
exercise.mistake("Don't seed the generator: a second call must draw new random numbers.", "noise = torch → generator.manual_seed(0)\n    noise = torch")
exercise.mistake("Your code draws from a copy of the generator, which gives the same random numbers in each call: draw from the generator itself.",
                 "generator=generator → generator=generator.clone_state() if hasattr(generator, 'clone_state') else torch.Generator().manual_seed(generator.initial_seed())")  # fmt: skip
exercise.mistake("Negative numbers don't need a special case: adding to their bits moves them away from zero, too.",
                 f"{BITS} → bits = x.view(torch.int32) + torch.where(x < 0, 2**16 - 1 - 0 * noise, noise)")  # fmt: skip
exercise.mistake("The result must have the same shape as x.", ".to(torch.bfloat16) → .to(torch.bfloat16).flatten()")

# %% mistake: noise of a fixed size
# says: The gap depends on the number, so noise of a fixed size is wrong for most numbers.
def stochastic_round(x, generator):
    return (x + (torch.rand(x.shape, generator=generator) - 0.5) * 2**-7).bfloat16()

# %% mistake: rounded to nearest after the noise
# says: Rounding to nearest after you add the noise shifts the result by half a gap on average: cut off the lower bits instead.
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    return (x.view(torch.int32) + noise).view(torch.float32).bfloat16()

# %% mistake: seeds the global generator from the other
# says: Draw from the generator that is passed in, and leave PyTorch's global generator alone.
def stochastic_round(x, generator):
    torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
    noise = torch.randint(0, 65536, x.shape, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% mistake: to nearest
# says: Your code always picks the nearest neighbor: that's ordinary rounding, not stochastic rounding.
def stochastic_round(x, generator):
    return x.to(torch.bfloat16)

# %% mistake: one draw for all
# says: Your code draws a single random number for all elements: draw a separate one for each.
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, (1,), generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% mistake: the wrong way round
# says: Your probabilities are reversed: the nearer neighbor must be picked more often.
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    share = (bits & 0xFFFF) / 65536
    up = (torch.rand(x.shape, generator=generator) > share) & (share > 0)
    return ((bits & -65536) + 65536 * up.int()).view(torch.float32).bfloat16()

# %% mistake: a loop, with all that it needs drawn before
# says: Don't write a loop: there may be millions of elements.
def stochastic_round(x, generator):
    noise = torch.randint(0, 2**16, (x.numel(),), generator=generator).tolist()
    numbers = x.contiguous().view(torch.int32).flatten().tolist()
    bits = [each + n & -(2**16) for each, n in zip(numbers, noise, strict=True)]
    return torch.tensor(bits, dtype=torch.int32).view(torch.float32).bfloat16().view(x.shape)

# %% wrong: the global generator with the same seed
def stochastic_round(x, generator):
    torch.manual_seed(generator.initial_seed())
    noise = torch.randint(0, 65536, x.shape, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: the same random numbers again, further on
def stochastic_round(x, generator):
    bits, n = x.view(torch.int32).flatten(), x.numel()
    noise = torch.randint(0, 2**16, (n // 2 + 7,), generator=generator, dtype=torch.int32).repeat(3)[:n]
    return ((bits + noise) & -65536).view(torch.float32).reshape(x.shape).to(torch.bfloat16)

# %% wrong: the second half of the random numbers mirrors the first
def stochastic_round(x, generator):
    half = torch.randint(0, 65536, ((x.numel() + 1) // 2,), dtype=torch.int32, generator=generator)
    noise = torch.cat([half, 65535 - half.flip(0)])[: x.numel()].view(x.shape)
    return ((x.contiguous().view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: up from the nearest, whichever side it lies on
def stochastic_round(x, generator):
    near = x.bfloat16()
    far = (near.view(torch.int16) + 1).view(torch.bfloat16)
    share = (x - near.float()) / (far.float() - near.float())
    return torch.where(torch.rand(x.shape, generator=generator) < share, far, near)

# %% wrong: rand <= share
def stochastic_round(x, generator):
    bits = x.contiguous().view(torch.int32)
    up = torch.randint(0, 2**16, x.shape, generator=generator) <= (bits & 0xFFFF)
    return ((bits & -65536) + 65536 * up.int()).view(torch.float32).to(torch.bfloat16)

# %% wrong: the same for pairs of rows
def stochastic_round(x, generator):
    half = torch.randint(0, 65536, ((x.numel() + 1) // 2,), generator=generator, dtype=torch.int32)
    noise = torch.cat([half, half])[: x.numel()].view(x.shape)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: memory order instead of the shape
def stochastic_round(x, generator):
    bits = x.reshape(-1).view(torch.int32)
    noise = torch.randint(0, 65536, bits.shape, generator=generator, dtype=torch.int32)
    return ((bits + noise) & -65536).view(torch.float32).bfloat16().view(x.shape[::-1])

# %% wrong: one row of noise for all rows (from the statement)
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    bits = x.detach().view(torch.int32)
    noise = torch.randint(0, 2**16, x.shape[-1:], generator=generator, device=x.device, dtype=torch.int32)
    return ((bits + noise) & -65536).view(torch.float32).to(torch.bfloat16)

# %% wrong: flattens with view, which some views do not allow (from the statement)
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    flat = x.detach().view(-1)
    bits = flat.view(torch.int32)
    noise = torch.randint(0, 2**16, (flat.numel(),), generator=generator, device=x.device, dtype=torch.int32)
    return ((bits + noise) & -65536).view(torch.float32).to(torch.bfloat16).view(x.shape)

# %% wrong: makes a generator of its own from the seed of the one given, so that every call draws the same (from the statement)
def stochastic_round(
    x: Float[Tensor, "..."], generator: torch.Generator
) -> Float[Tensor, "..."]:
    mine = torch.Generator(device=x.device).manual_seed(generator.initial_seed())
    bits = x.detach().view(torch.int32)
    noise = torch.randint(0, 2**16, x.shape, generator=mine, device=x.device, dtype=torch.int32)
    return ((bits + noise) & -65536).view(torch.float32).to(torch.bfloat16)

# %% right: compares with a share
def stochastic_round(x, generator):
    bits = x.contiguous().view(torch.int32)
    share = (bits & 0xFFFF).double() / 65536
    up = torch.rand(x.shape, generator=generator, dtype=torch.float64) < share
    return torch.where(up, (bits & -65536) + 65536, bits & -65536).view(torch.float32).to(torch.bfloat16)

# %% right: two neighbors, by their values
def stochastic_round(x, generator):
    near = (x.view(torch.int32) & -65536).view(torch.float32)
    far = ((x.view(torch.int32) & -65536) + 65536).view(torch.float32)
    share = (x.double() - near.double()) / (far.double() - near.double())
    draw = torch.rand(x.shape, generator=generator, dtype=torch.float64, device=x.device)
    return torch.where(draw < share, far, near).bfloat16()

# %% right: bernoulli, in whole numbers of 64 bits
def stochastic_round(x, generator):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    up = torch.bernoulli((bits % 65536).double() / 65536, generator=generator).long()
    upper = (bits >> 16) + up
    return torch.where(upper >= 2**15, upper - 2**16, upper).to(torch.int16).view(torch.bfloat16)

# %% right: the nearest, or now and then the other one
def stochastic_round(x, generator):
    near = x.bfloat16()
    off = x.double() - near.double()
    step = torch.where((off > 0) == (x > 0), 1, -1).to(torch.int16)
    other = (near.view(torch.int16) + step).view(torch.bfloat16)
    share = (off / (other.double() - near.double())).abs()
    draw = torch.rand(x.shape, generator=generator, dtype=torch.float64)
    return torch.where((draw < share) & (off != 0), other, near)

# %% right: noise made in place, and the upper half shifted down
def stochastic_round(x, generator):
    noise = torch.empty(x.shape, dtype=torch.int32).random_(0, 65536, generator=generator)
    return ((x.view(torch.int32) + noise) >> 16).to(torch.int16).view(torch.bfloat16)

# %% equivalent: torch.randint(0, 2 ** 16, x.shape, generator=generator, dtype=torch.int32, device=x.device) → torch.randint(0, 2 ** 16, x.shape, generator=generator, dtype=torch.int32)
# why: checks run where there may be no GPU; on the CPU it makes no difference
