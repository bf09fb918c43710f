from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("For each pass, find the time of the transfer and of the computation. Do you add them, or take the larger?")


@st.composite
def steps(draw, ratios, overlap):
    """Steps whose transfer takes this many tenths of the forward pass's computation."""
    link, rate = draw(st.integers(1, 99)) * draw(any_of(1e6, 1e9)), draw(st.integers(1, 99)) * draw(any_of(1e9, 1e12))
    seconds = draw(st.integers(1, 50))
    return given(int(draw(ratios) / 10 * seconds * link), seconds * rate, link, rate, overlap)


# 8 GB over 2 GB/s take 4 s each way; 3e12 FLOPs at 1e12 FLOP/s take 3 s, and 6 s backward.
between, quick, slow = ((size, 3e12, 2e9, 1e12) for size in (8_000_000_000, 2_500_000_000, 20_000_000_000))


def nothing(overlap):
    return {
        "nothing to move": given(0, 3e12, 2e9, 1e12, overlap),
        "nothing to compute": given(8_000_000_000, 0.0, 2e9, 1e12, overlap),
        "nothing at all": given(0, 0.0, 2e9, 1e12, overlap),
    }


exercise.requirement(
    "without overlap, the times of transfer and computation add up, in both passes",
    points=0.25,
    visible=[given(*quick, False), given(4_000_000_000, 3e12, 2.5e9, 1e12, False), given(1_000, 1e6, 3e9, 1e12, False)],
    edges=nothing(False) | {
        "a byte": given(1, 1.0, 1e9, 1e12, False),
        "the transfer is slower": given(*slow, False),
        "the transfer is slower than one of the passes": given(*between, False),
    },
    domain=steps(st.integers(1, 60), False),
    hint="Each pass moves all bytes once. The backward pass does twice as many FLOPs as the forward pass.",
)
exercise.requirement(
    "with overlap, the transfer may be hidden in both passes, or the computation in both",
    points=0.25,
    visible=[
        given(*quick, True),
        given(*slow, True),
        given(0, 2e12, 2e9, 1e12, True),
        given(4_000_000_000, 0.0, 2e9, 1e12, True),
    ],
    edges=nothing(True) | {
        "as long as the forward pass's computation": given(6_000_000_000, 3e12, 2e9, 1e12, True),
        "as long as the backward pass's computation": given(12_000_000_000, 3e12, 2e9, 1e12, True),
        "a microsecond": given(1_000, 1e6, 3e9, 7e12, True),
    },
    domain=steps(st.integers(1, 9) | st.integers(21, 60), True),
    hint="With overlap a pass is over when the slower of the two is done.",
)  # fmt: skip
exercise.requirement(
    "with overlap, the transfer may be hidden in one pass and not in the other",
    points=0.5,
    visible=[given(*between, True)],
    edges={
        "hardly longer than the forward pass": given(6_000_600_000, 3e12, 2e9, 1e12, True),
        "hardly shorter than the backward pass": given(11_999_000_000, 3e12, 2e9, 1e12, True),
        "half-way": given(9_000_000_000, 3e12, 2e9, 1e12, True),
        "a microsecond": given(1_000, 1e6, 3e9, 4e12, True),
    },
    domain=steps(st.integers(11, 19), True),
    hint="Take the passes one by one: in each, take the slower of transfer and computation, and then add up the "
         "two passes.",
)

exercise.mistake(
    "Every byte moves twice: out in the forward pass, and back in the backward pass.",
    "passes = ((carry, forward), (carry, 2 * forward)) → passes = ((carry, forward), (0, 2 * forward))",
)  # fmt: skip
exercise.mistake(
    "The backward pass does twice the FLOPs of the forward pass, so the two together do three times as many as "
    "the forward pass.",
    "2 * forward) → forward)",
)  # fmt: skip
exercise.mistake("The two passes together compute for three times as long as the forward pass alone: the "
                 "backward pass takes twice as long as the forward pass.",
                 "((carry, forward), (carry, 2 * forward)) → ((carry, forward), (carry, 3 * forward))")  # fmt: skip
exercise.mistake("With overlap, transfer and computation don't wait for each other: a pass takes as long as the "
                 "slower of the two.",
                 "max(times) if overlap else sum(times) → sum(times)")  # fmt: skip
exercise.mistake("Without overlap the times add up.", "max(times) if overlap else sum(times) → max(times)")
exercise.mistake("It's the other way around: without overlap, transfer and "
                 "computation run one after the other.", "if overlap → if not overlap",
                 together_with=["max(times) → min(times)"])  # fmt: skip
exercise.mistake(
    "Time saved in one pass can't make up for a delay in the other: in each pass, take the slower of transfer "
    "and computation.",
    "((carry, forward), (carry, 2 * forward)) → ((2 * carry, 3 * forward),)",
)
exercise.mistake("A pass is over when transfer *and* computation are done: take the slower one.", "max(times) → min(times)")
exercise.mistake("Divide bytes by B/s, and FLOPs by FLOP/s.",
                 "size / link, forward_flops / rate → size * link, forward_flops * rate")  # fmt: skip
exercise.mistake("The computation takes time, too.", "size / link, forward_flops / rate → size / link, 0")
exercise.mistake("The transfer takes time, too.", "size / link, forward_flops / rate → 0, forward_flops / rate")
exercise.mistake(
    "Your code overlaps only the forward pass: the transfer may be hidden in both passes.",
    "return sum(max(times) if overlap else sum(times) for times in passes) → return (max(carry, forward) if "
    "overlap else carry + forward) + carry + 2 * forward",
)  # fmt: skip
exercise.mistake("If the transfer is the faster of the two in the forward pass, the computation determines that pass's time.",
                 "((carry, forward), → ((carry, carry if overlap else forward),")  # fmt: skip

# %% wrong: whole seconds
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size // link, forward_flops // rate
    return max(carry, forward) + max(carry, 2 * forward) if overlap else 2 * carry + 3 * forward

# %% wrong: the link works both ways at once
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    return max(carry, 3 * forward) if overlap else carry + 3 * forward

# %% wrong: decides by the ratio, and fails where there is nothing to compute
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    if not overlap:
        return 2 * carry + 3 * forward
    ratio = carry / forward
    return forward * (max(ratio, 1) + max(ratio, 2))

# %% wrong: compares FLOPs per byte, and divides by the size (from the statement)
def offload_seconds(
    size: int, forward_flops: float, link: float, rate: float, overlap: bool
) -> float:
    carry, compute = size / link, forward_flops / rate
    if not overlap:
        return carry + compute + carry + 2 * compute
    intensity = forward_flops / size
    forward = compute if intensity > rate / link else carry
    backward = 2 * compute if 2 * intensity > rate / link else carry
    return forward + backward

# %% wrong: nothing to compute is taken for nothing to do (from the statement)
def offload_seconds(
    size: int, forward_flops: float, link: float, rate: float, overlap: bool
) -> float:
    if not forward_flops:
        return 0.0
    total = 0.0
    for flops in (forward_flops, 2 * forward_flops):
        pair = size / link, flops / rate
        total += max(pair) if overlap else sum(pair)
    return total

# %% wrong: rounded to microseconds, as that is what one reads (from the statement)
def offload_seconds(
    size: int, forward_flops: float, link: float, rate: float, overlap: bool
) -> float:
    carry, compute = size / link, forward_flops / rate
    if overlap:
        return round(max(carry, compute) + max(carry, 2 * compute), 6)
    return round(2 * carry + 3 * compute, 6)

# %% right: what sticks out is added to the computing
def offload_seconds(size, forward_flops, link, rate, overlap):
    total = 3 * forward_flops / rate
    for computing in (forward_flops / rate, 2 * forward_flops / rate):
        hidden = min(size / link, computing) if overlap else 0
        total += size / link - hidden
    return total

# %% right: case by case
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    if not overlap or carry == 0:
        return 2 * carry + 3 * forward
    if carry <= forward:
        return 3 * forward
    if carry <= 2 * forward:
        return carry + 2 * forward
    return 2 * carry

# %% right: as a tensor
def offload_seconds(size, forward_flops, link, rate, overlap):
    times = torch.tensor([[size / link] * 2, [forward_flops / rate, 2 * forward_flops / rate]], dtype=torch.float64)
    return (times.amax(dim=0) if overlap else times.sum(dim=0)).sum().item()

# %% right: a pass from its own bytes and FLOPs
def offload_seconds(size, forward_flops, link, rate, overlap):
    def one(flops):
        both = sorted([size / link, flops / rate])
        return both[1] if overlap else math.fsum(both)
    return one(forward_flops) + one(forward_flops * 2)
