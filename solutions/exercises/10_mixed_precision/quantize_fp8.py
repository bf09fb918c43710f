import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise("Find the largest magnitude first. Which scale turns it into the largest number of the format?")

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def quantized(student, x, dtype):
    """Codes and scale; a float32 tensor without dimensions and a Python float are one number alike."""
    import torch

    result = student.quantize_fp8(x, dtype)
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    codes, scale = result if pair else (result, None)
    if isinstance(scale, torch.Tensor):
        one = scale.dim() == 0 and scale.dtype == torch.float32
        kind = f"a {str(scale.dtype).removeprefix('torch.')} tensor of shape {list(scale.shape)}"
    else:
        one, kind = type(scale) in (int, float), type(scale).__name__
    return {
        "two things, codes and scale": pair,
        "what scale is": "one number" if one else kind,
        "scale": float(scale) if one else None,
        "codes": codes,
    }


def only(key):
    return dict.fromkeys({"what scale is", "scale", "codes"} - {*key}, "ignored") | ({"scale": 1e-6} if "scale" in key else {})


SCALE, CODES = ("what scale is", "scale"), ("codes",)


def of(values, dtype):
    return given(torch.tensor(values), dtype, says=f"quantize_fp8(torch.tensor({values}), {dtype})")


@st.composite
def numbers(draw, zeros=False):
    """Numbers of any size, in any layout; all negative, of both signs, or one far larger than the others."""
    x = draw(tensors(draw(shapes((0, 3), (1, 5))), contiguous=None)) * draw(any_of(1e-25, 1e-10, 1e-3, 1.0, 1e5, 1e30))
    kind = draw(any_of("both", "negative", "positive", "outlier"))
    if kind == "negative":
        x = -x.abs()
    elif kind == "positive":
        x = x.abs()
    elif kind == "outlier":
        x[(0,) * x.dim()] = x.abs().max() * draw(any_of(-100.0, -1000.0, 100.0))
    if zeros and draw(st.booleans()):
        x = torch.zeros_like(x)
    return given(x, draw(any_of(E4M3, E5M2)))


exercise.requirement(
    "one scale for the whole tensor: it makes the largest magnitude the largest number of the format",
    points=0.75,
    probe=quantized,
    rules=only(SCALE),
    visible=[of([1.0, -2.0, 3.5], E4M3), of([[0.1, -7.0], [-0.5, 3.0]], E5M2), of([3e-8, -1e-8], E4M3)],
    edges={
        "no dimensions": given(torch.tensor(-3.0), E4M3),
        "one element": given(torch.tensor([[[0.7]]]), E5M2),
        "a scale of 1": given(torch.tensor([448.0, 1.0]), E4M3),
        "all negative": given(torch.tensor([-3.0, -1.0]), E5M2),
        "all the same": given(torch.full((2, 3), 0.3), E4M3),
        "zeros but for one": given(torch.tensor([0.0, -5.0, 0.0]), E4M3),
        "as small as allowed": given(torch.tensor([1e-30, -5e-31]), E5M2),
        "as large as float32": given(torch.tensor([[3.4e38], [-1.0]]), E4M3),
        "their sum is infinite": given(torch.full((5,), 3e38), E5M2),
        "beyond float16": given(torch.tensor([7_168_000.0, 2.0]), E5M2),
        "digits beyond 16 bits": given(torch.tensor([1.00049]), E4M3),
    },
    domain=numbers(),
    hint="scale is a Python float, or a float32 tensor without dimensions, with x ≈ codes · scale.",
)
exercise.requirement(
    "codes has that 8-bit dtype and the shape of x, and is x / scale rounded to the nearest; x isn't changed",
    points=0.75,
    probe=quantized,
    rules=only(CODES),
    visible=[of([1.0, -2.0, 4.0], E4M3), of([[448.0, 17.001], [-0.3, 2.6]], E4M3), of([3.0, 0.2, -7.0], E5M2)],
    edges={
        "no dimensions": given(torch.tensor(-3.0), E4M3),
        "one element": given(torch.tensor([[[0.7]]]), E5M2),
        "a tie, with a scale of 1": given(torch.tensor([448.0, 17.0, 19.0, -17.0]), E4M3),
        "nearly a tie": given(torch.tensor([57344.0, 9.0001, 8.9999]), E5M2),
        "some become 0": given(torch.tensor([1e6, 1e-4, -1e-6, 1.0]), E4M3),
        "some are subnormal": given(torch.tensor([448.0, 0.004, 0.0101, -0.002]), E4M3),
        "zeros but for one": given(torch.tensor([[0.0, -5.0], [0.0, 0.0]]), E4M3),
        "as small as allowed": given(torch.tensor([1e-30, -3.3e-31]), E5M2),
        "as large as float32": given(torch.tensor([3.4e38, -1.1e38]), E4M3),
        "transposed": given(torch.tensor([[1.0, 2.3], [3.1, -4.0], [0.5, 0.7]]).T, E5M2),
    },
    domain=numbers(),
    hint="Divide x by the scale, into a new tensor, and convert the result.",
)
exercise.requirement(
    "for a tensor of zeros the scale is 1",
    points=0.5,
    probe=quantized,
    rules={"scale": 0.05},
    visible=[of([0.0, 0.0], E4M3), of([2.0, -2.0], E5M2)],
    edges={
        "no dimensions": given(torch.tensor(0.0), E5M2),
        "a single element": given(torch.zeros(1), E4M3),
        "a matrix": given(torch.zeros(2, 3), E5M2),
        "nearly zeros": given(torch.tensor([[0.0, 1e-30]]), E4M3),
        "a row of zeros": given(torch.tensor([[0.0, 0.0], [4.0, 2.0]]), E4M3),
        "the first is 0": given(torch.tensor([0.0, 2.0]), E4M3),
    },
    domain=numbers(zeros=True),
    hint="Zeros have no largest magnitude to divide by.",
)

scale = "torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)"
exercise.mistake("No scale at all: small numbers vanish, large ones don't fit.", f"{scale} → torch.tensor(1.0)")
exercise.mistake("Your result is the reciprocal: x ≈ codes · scale.",
                 "(x / scale).to(dtype), scale → (x / scale).to(dtype), 1 / scale")  # fmt: skip
exercise.mistake("Your code makes the largest magnitude 1; the format goes further.",
                 "largest / torch.finfo(dtype).max → largest")  # fmt: skip
exercise.mistake("The largest in magnitude counts: it may be negative.", "x.abs().max() → x.max()")
exercise.mistake("The largest in magnitude counts: it may be negative.", "x.abs().max() → x.max().abs()")
exercise.mistake("The largest in magnitude counts, not the width of the range.",
                 "x.abs().max() → (x.max() - x.min()) / 2")  # fmt: skip
exercise.mistake("The largest element counts, not the mean.", "x.abs().max() → x.abs().mean()")
exercise.mistake("One scale for the whole tensor, not one for each row.",
                 "x.abs().max() → x.abs().amax(dim=-1, keepdim=True)")  # fmt: skip
exercise.mistake("Return one number: a float, or a tensor without dimensions.",
                 "return (x / scale).to(dtype), scale → return (x / scale).to(dtype), scale.reshape(1)")  # fmt: skip
exercise.mistake("The formats have different largest numbers.", "torch.finfo(dtype).max → 448.0")
exercise.mistake("codes has the dtype that was asked for.", ".to(dtype) → .to(torch.float8_e4m3fn)")
exercise.mistake("The largest magnitude has to become the largest number exactly; a power of two seldom does that.",
                 "largest / torch.finfo(dtype).max → 2.0 ** torch.ceil(torch.log2(largest / torch.finfo(dtype).max))")  # fmt: skip
exercise.mistake("What is added against a division by zero changes the scale of small numbers.",
                 f"{scale} → (largest + 1e-8) / torch.finfo(dtype).max")  # fmt: skip
exercise.mistake("What keeps zeros from a division by zero has to leave small numbers alone, and the scale of zeros is 1.",
                 f"{scale} → largest.clamp(min=1e-12) / torch.finfo(dtype).max")  # fmt: skip
exercise.mistake("The scale of zeros is 1, and 0 / 0 is NaN.", f"{scale} → largest / torch.finfo(dtype).max")
exercise.mistake("A sum of 0 doesn't mean that all are 0.", "largest > 0 → x.sum() != 0")
exercise.mistake("The codes are already multiplied back; return them as they are, in 8 bits.",
                 ".to(dtype), scale → .to(dtype).float() * scale, scale")  # fmt: skip
exercise.mistake("x is divided by the scale; that multiplies.", "(x / scale) → (x * scale)")
exercise.mistake("The codes aren't scaled.", "(x / scale).to → x.to")
exercise.mistake("Return two things, codes and scale, in this order.",
                 "return (x / scale).to(dtype), scale → return (x / scale).to(dtype)")  # fmt: skip
exercise.mistake("Return two things, codes and scale, in this order.",
                 "return (x / scale).to(dtype), scale → return scale, (x / scale).to(dtype)")  # fmt: skip
exercise.mistake("The format has fractions, and not all integers: leave the rounding to the conversion.",
                 "(x / scale).to → (x / scale).round().to")  # fmt: skip
exercise.mistake("Rounded twice: go from float32 to 8 bits directly.", "(x / scale).to → (x / scale).half().to")
exercise.mistake("x itself was changed: divide into a new tensor.", "(x / scale).to → x.div_(scale).to")
exercise.mistake("codes has the shape of x.", "(x / scale).to(dtype) → (x / scale).to(dtype).flatten()")

# %% wrong: 16 bits on the way
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    x = x.bfloat16()
    amax = x.abs().max().float()
    scale = amax / torch.finfo(dtype).max if amax else torch.tensor(1.0)
    return (x / scale).to(dtype), scale

# %% wrong: toward zero
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    amax = x.abs().max()
    scale = amax / torch.finfo(dtype).max if amax > 0 else torch.tensor(1.0)
    exact = x / scale
    codes = exact.to(dtype)
    shrunk = (exact * (1 - torch.finfo(dtype).eps / 2)).to(dtype)
    return torch.where(codes.float().abs() > exact.abs(), shrunk.float(), codes.float()).to(dtype), scale

# %% wrong: a scale in float64
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    amax = x.double().abs().max()
    scale = amax / torch.finfo(dtype).max if amax > 0 else torch.ones((), dtype=torch.float64)
    return (x / scale).to(dtype), scale

# %% wrong: no scale below 1e-12 (from the statement)
import torch


def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and one scale, with x ≈ codes · scale."""
    amax = x.abs().max()
    scale = (amax / torch.finfo(dtype).max).clamp(min=1e-12)
    if amax == 0:
        scale = torch.ones_like(scale)
    return (x / scale).to(dtype), scale

# %% wrong: the scale keeps the dimensions (from the statement)
import torch


def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and one scale, with x ≈ codes · scale."""
    amax = x.abs().amax(dim=tuple(range(x.dim())), keepdim=True)
    scale = torch.where(amax > 0, amax / torch.finfo(dtype).max, 1.0)
    return (x / scale).to(dtype), scale

# %% wrong: passes through bfloat16 on the way, and rounds twice (from the statement)
import torch


def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and one scale, with x ≈ codes · scale."""
    amax = x.abs().max()
    scale = amax / torch.finfo(dtype).max if amax > 0 else torch.ones((), device=x.device)
    scaled = (x / scale).bfloat16()  # the dtype of the activations
    return scaled.to(dtype), scale

# %% right: a Python float
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = max(x.max().item(), -x.min().item())
    scale = largest / torch.finfo(dtype).max or 1.0
    return (x / scale).to(dtype), scale

# %% right: multiplies by the reciprocal, and clamps
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    top = torch.finfo(dtype).max
    amax = x.abs().amax()
    scale = amax / top if amax else torch.ones(())
    return (x * (1 / scale)).clamp(-top, top).to(dtype), scale

# %% right: zeros apart
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    if not x.any():
        return torch.zeros_like(x, dtype=torch.float32).to(dtype), 1.0
    scale = torch.linalg.vector_norm(x, ord=math.inf) / torch.finfo(dtype).max
    return torch.div(x, scale).to(dtype), scale

# %% right: one element at a time
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    values = x.flatten().tolist()
    scale = max(map(abs, values)) / torch.finfo(dtype).max
    if scale == 0:
        scale = 1.0
    codes = [torch.tensor(value / scale, dtype=torch.float64).float().to(dtype) for value in values]
    return torch.stack([c.view(torch.uint8) for c in codes]).view(dtype).reshape(x.shape), scale

# %% wrong: hands out the scale with three digits
def quantize_fp8(x, dtype=torch.float8_e4m3fn):
    largest = x.abs().max()
    scale = torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)
    return (x / scale).to(dtype), float(f"{scale.item():.3g}")
