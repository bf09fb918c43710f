import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, shapes, tensors

exercise = Exercise(
    "Put each block in a row of its own. Which scale turns a row's largest magnitude into the format's largest number?"
)

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def quantized(student, x, block, dtype):
    """Codes and scales, and what kind of thing the scales are."""
    import torch

    result = student.quantize_blocks(x, block, dtype)
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    codes, scales = result if pair else (result, None)
    kind = type(scales).__name__
    if isinstance(scales, torch.Tensor):
        kind = (
            f"a {str(scales.dtype).removeprefix('torch.')} tensor of shape {list(scales.shape)}"
        )
    right = kind == f"a float32 tensor of shape {[x.numel() // block]}"
    return {
        "a pair (codes, scales) is returned": pair,
        "type and shape of scales": "one float32 number for each block" if right else kind,
        "scales": scales.tolist() if right else None,
        "codes": codes,
    }


def only(key):
    return dict.fromkeys({"type and shape of scales", "scales", "codes"} - {*key}, "ignored") | (
        {"scales": 1e-6} if "scales" in key else {}
    )


SCALES, CODES = ("type and shape of scales", "scales"), ("codes",)


def of(values, block, dtype):
    return given(
        torch.tensor(values),
        block,
        dtype,
        says=f"quantize_blocks(torch.tensor({values}), {block}, {dtype})",
    )


@st.composite
def numbers(draw, zeros=False):
    """Numbers of any size, in any layout; all negative, of both signs, or one far larger than the others."""
    x = draw(tensors(draw(shapes((0, 3), (1, 5))), contiguous=None)) * draw(
        any_of(1e-25, 1e-10, 1e-3, 1.0, 1e5, 1e30)
    )
    kind = draw(any_of("both", "negative", "positive", "outlier"))
    if kind == "negative":
        x = -x.abs()
    elif kind == "positive":
        x = x.abs()
    elif kind == "outlier":
        x[(0,) * x.dim()] = x.abs().max() * draw(any_of(-100.0, -1000.0, 100.0))
    block = draw(any_of(*(n for n in range(1, x.numel() + 1) if x.numel() % n == 0)))
    if zeros:
        rows = x.reshape(-1, block).clone()
        rows[draw(st.integers(0, len(rows) - 1)) if draw(st.booleans()) else slice(None)] = 0.0
        x = rows.reshape(x.shape)
    return given(x, block, draw(any_of(E4M3, E5M2)))


exercise.requirement(
    "each block has its own scale, which turns its largest magnitude into the largest number of the format; scales follow the order of the blocks",
    points=0.75,
    probe=quantized,
    rules=only(SCALES),
    visible=[
        of([1.0, -2.0, 3.5, 0.5], 2, E4M3),
        of([[0.1, -7.0, 2.0], [-0.5, 3.0, -1.0]], 2, E5M2),
        of([[0.1, -7.0], [-0.5, 3.0]], 4, E5M2),
        of([3e-8, -1e-8], 1, E4M3),
        of([3e-20, -1e-20], 2, E4M3),
    ],
    edges={
        "no dimensions": given(torch.tensor(-3.0), 1, E4M3),
        "one element": given(torch.tensor([[[0.7]]]), 1, E5M2),
        "a scale of 1": given(torch.tensor([448.0, 1.0, 1.0, -448.0]), 2, E4M3),
        "all negative": given(torch.tensor([-3.0, -1.0, -2.0, -8.0]), 2, E5M2),
        "all the same": given(torch.full((2, 3), 0.3), 3, E4M3),
        "zeros but for one": given(torch.tensor([0.0, -5.0, 0.0]), 3, E4M3),
        "as small as allowed": given(torch.tensor([1e-30, -5e-31, 7.0, 1.0]), 2, E5M2),
        "as large as float32": given(torch.tensor([[3.4e38], [-1.0]]), 1, E4M3),
        "their sum is infinite": given(torch.full((5,), 3e38), 5, E5M2),
        "beyond float16": given(torch.tensor([7_168_000.0, 2.0]), 2, E5M2),
        "digits beyond 16 bits": given(torch.tensor([1.00049, 1.0, 2.0, 3.00049]), 2, E4M3),
        "a block longer than a row": given(torch.arange(12.0).reshape(4, 3) - 7, 6, E4M3),
        "transposed": given((torch.arange(6.0).reshape(3, 2) - 2.5).T, 2, E5M2),
    },
    domain=numbers(),
    hint="scales is a float32 tensor with one dimension. An element is approximately its code times the scale of its block.",
)
exercise.requirement(
    "codes contains each element divided by its block's scale and rounded to the given 8-bit dtype, in the shape of x; "
    "x is unchanged",
    points=0.75,
    probe=quantized,
    rules=only(CODES),
    visible=[
        of([1.0, -2.0, 4.0, 0.3], 2, E4M3),
        of([[448.0, 17.001], [-0.3, 2.6]], 4, E4M3),
        of([[3.0, 0.2, -7.0], [5.0, 0.01, 1.3]], 2, E5M2),
    ],
    edges={
        "no dimensions": given(torch.tensor(-3.0), 1, E4M3),
        "one element": given(torch.tensor([[[0.7]]]), 1, E5M2),
        "a tie, with a scale of 1": given(torch.tensor([448.0, 17.0, 19.0, -17.0]), 4, E4M3),
        "ties that x / amax * max breaks": given(torch.tensor([56.0, 3.875, -7.75, 1.9375]), 4, E4M3),
        "nearly a tie": given(torch.tensor([57344.0, 9.0001, 8.9999]), 3, E5M2),
        "some become 0": given(torch.tensor([1e6, 1e-4, -1e-6, 1.0]), 2, E4M3),
        "some are subnormal": given(torch.tensor([448.0, 0.004, 0.0101, -0.002]), 4, E4M3),
        "zeros but for one": given(torch.tensor([[0.0, -5.0], [0.0, 0.0]]), 4, E4M3),
        "as small as allowed": given(torch.tensor([1e-30, -3.3e-31]), 2, E5M2),
        "as large as float32": given(torch.tensor([3.4e38, -1.1e38, 2.0, 1.3]), 2, E4M3),
        "transposed": given(torch.tensor([[1.0, 2.3], [3.1, -4.0], [0.5, 0.7]]).T, 2, E5M2),
        "a block longer than a row": given(
            torch.tensor([[1.0, 2.3], [3.1, -4.0], [0.5, 0.7], [6.0, 0.1]]), 4, E4M3
        ),
        "three dimensions": given(
            torch.tensor([[[1.0, 2.3], [3.1, -4.0]], [[0.5, 0.7], [6.0, 0.1]]]), 2, E4M3
        ),
    },
    domain=numbers(),
    hint="Put the quotients into a new tensor. PyTorch's conversion to the 8-bit dtype does the rounding.",
)
exercise.requirement(
    "the scale of a block of zeros is 1",
    points=0.5,
    probe=quantized,
    rules={"scales": 0.05},
    visible=[
        of([0.0, 0.0, 4.0, 2.0], 2, E4M3),
        of([2.0, -2.0], 2, E5M2),
        of([0.0, 0.0], 2, E5M2),
    ],
    edges={
        "no dimensions": given(torch.tensor(0.0), 1, E5M2),
        "a single element": given(torch.zeros(1), 1, E4M3),
        "a matrix": given(torch.zeros(2, 3), 3, E5M2),
        "nearly zeros": given(torch.tensor([[0.0, 1e-30]]), 2, E4M3),
        "the last block": given(torch.tensor([[4.0, 2.0], [0.0, 0.0]]), 2, E4M3),
        "the first of a block is 0": given(torch.tensor([0.0, 2.0, 0.0, 0.0]), 2, E4M3),
        "each element a block": given(torch.tensor([0.0, -2.0, 0.0]), 1, E5M2),
        "the largest of the other is negative": given(torch.tensor([0.0, 0.0, 1.0, -2.0]), 2, E4M3),
        "a small code in the other": given(torch.tensor([0.0, 0.0, 1.0, 0.01]), 2, E4M3),
        "nearly a tie in the other": given(torch.tensor([57344.0, 9.0001, 8.9999, 0.0, 0.0, 0.0]), 3, E5M2),
        "transposed": given(torch.tensor([[0.0, 1.0], [0.0, -3.0]]).T, 2, E4M3),
    },
    domain=numbers(zeros=True),
    hint="The largest magnitude of a block of zeros is 0, so its scale would be 0, too. What would the codes be then?",
)

scale = "torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)"
exercise.mistake(
    "Your code uses no scale: small numbers vanish, and large ones don't fit.",
    f"{scale} → torch.ones_like(largest)",
)
exercise.mistake("Your scales are the reciprocals: an element should be approximately its code times the scale.",
                 "reshape(x.shape), scales.flatten() → reshape(x.shape), 1 / scales.flatten()")  # fmt: skip
exercise.mistake("Your scale turns the largest magnitude into 1, but the format has much larger numbers.",
                 "largest / torch.finfo(dtype).max → largest")  # fmt: skip
exercise.mistake(
    "Find the largest magnitude: the element may be negative.", "rows.abs().amax → rows.amax"
)
exercise.mistake("Find the largest magnitude: the element may be negative.",
                 "rows.abs().amax(dim=1, keepdim=True) → rows.amax(dim=1, keepdim=True).abs()")  # fmt: skip
exercise.mistake("Find the largest magnitude, not half the distance between the smallest and the largest element.",
                 "rows.abs().amax(dim=1, keepdim=True) → (rows.amax(dim=1, keepdim=True) - rows.amin(dim=1, keepdim=True)) / 2")  # fmt: skip
exercise.mistake(
    "Use the largest magnitude of each block, not the mean.", "rows.abs().amax → rows.abs().mean"
)
exercise.mistake("Each block has its own scale: don't use the largest element of the whole tensor.",
                 "rows.abs().amax(dim=1, keepdim=True) → rows.abs().max().expand(len(rows), 1)")  # fmt: skip
exercise.mistake("A block consists of neighbors: the first block is the first `block` elements.",
                 "x.reshape(-1, block) → x.reshape(block, -1).T", ".to(dtype).reshape → .to(dtype).T.reshape")  # fmt: skip
exercise.mistake("`block` is the number of elements in a block, not the number of blocks.",
                 "x.reshape(-1, block) → x.reshape(block, -1)")  # fmt: skip
exercise.mistake(
    "scales should have one dimension, with one number for each block.", "scales.flatten() → scales"
)
exercise.mistake(
    "The two formats have different largest numbers: use that of `dtype`.", "torch.finfo(dtype).max → 448.0"
)
exercise.mistake(
    "Convert codes to the dtype that's given.", ".to(dtype) → .to(torch.float8_e4m3fn)"
)
exercise.mistake("The largest magnitude has to become exactly the largest number of the format; a scale that's a power of two seldom does that.",
                 "largest / torch.finfo(dtype).max → 2.0 ** torch.ceil(torch.log2(largest / torch.finfo(dtype).max))")  # fmt: skip
exercise.mistake("Don't add a constant to avoid a division by zero: it also changes the scales of blocks of "
                 "small numbers.",
                 f"{scale} → (largest + 1e-8) / torch.finfo(dtype).max")  # fmt: skip
exercise.mistake("Don't use a lower limit to avoid a division by zero: it also changes the scales of blocks of "
                 "small numbers.",
                 f"{scale} → largest.clamp(min=1e-12) / torch.finfo(dtype).max")  # fmt: skip
exercise.mistake(
    "Treat blocks of zeros separately: 0 / 0 is NaN.",
    f"{scale} → largest / torch.finfo(dtype).max",
)
exercise.mistake(
    "One block may be all zeros while others aren't: decide block by block.", "largest > 0 → largest.max() > 0"
)
exercise.mistake(
    "One block may be all zeros while others aren't: decide block by block.", "largest > 0 → largest.min() > 0"
)
exercise.mistake(
    "A sum of 0 doesn't mean that all elements of a block are 0.",
    "largest > 0 → rows.sum(dim=1, keepdim=True) != 0",
)
exercise.mistake("Don't multiply the codes by the scales again: return them in 8 bits.",
                 "(rows / scales).to(dtype) → ((rows / scales).to(dtype).float() * scales)")  # fmt: skip
exercise.mistake(
    "Your code multiplies x by the scale; divide instead.", "(rows / scales) → (rows * scales)"
)
exercise.mistake("Your codes aren't scaled: use the scales before you convert.", "(rows / scales).to → rows.to")
exercise.mistake("Return a pair: codes first, then scales.",
                 "reshape(x.shape), scales.flatten() → reshape(x.shape)")  # fmt: skip
exercise.mistake("Return a pair: codes first, then scales.",
                 "return (rows / scales).to(dtype).reshape(x.shape), scales.flatten() → return scales.flatten(), (rows / scales).to(dtype).reshape(x.shape)")  # fmt: skip
exercise.mistake("The format has fractions and lacks many integers: leave the rounding to the conversion.",
                 "(rows / scales).to → (rows / scales).round().to")  # fmt: skip
exercise.mistake(
    "Your code rounds twice: convert from float32 to 8 bits directly.",
    "(rows / scales).to → (rows / scales).half().to",
)
exercise.mistake(
    "Your code changes x: put the quotients into a new tensor.",
    "(rows / scales).to → rows.div_(scales).to",
)
exercise.mistake("codes should have the shape of x.", ".reshape(x.shape) → ")

# %% mistake: blocks end where a row of x ends
# says: A block may continue from one row of x into the next: follow the order of `x.flatten()`.
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    last = x.reshape(-1, x.shape[-1] if x.dim() else 1)
    if last.shape[1] % block:
        rows = [part for row in last for part in row.split(block)]
    else:
        rows = list(last.reshape(-1, block))
    largest = torch.stack([row.abs().max() for row in rows])
    scales = torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)
    codes = torch.cat([row / scale for row, scale in zip(rows, scales)])
    return codes.to(dtype).reshape(x.shape), scales

# %% wrong: 16 bits on the way
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    rows = x.bfloat16().reshape(-1, block)
    amax = rows.abs().amax(1).float()
    scales = torch.where(amax > 0, amax / torch.finfo(dtype).max, 1.0)
    return (rows / scales[:, None]).to(dtype).view(x.shape), scales

# %% wrong: toward zero
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    rows = x.reshape(-1, block)
    amax = rows.abs().amax(1)
    scales = torch.where(amax > 0, amax / torch.finfo(dtype).max, 1.0)
    exact = rows / scales[:, None]
    codes = exact.to(dtype)
    shrunk = (exact * (1 - torch.finfo(dtype).eps / 2)).to(dtype)
    codes = torch.where(codes.float().abs() > exact.abs(), shrunk.float(), codes.float()).to(
        dtype
    )
    return codes.reshape(x.shape), scales

# %% wrong: the order in memory
# unseen: only hidden inputs have a non-contiguous tensor
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    order = sorted(range(x.dim()), key=lambda d: -x.stride(d))
    turned = x.permute(order)
    rows = turned.reshape(-1, block)
    amax = rows.abs().amax(1)
    scales = torch.where(amax > 0, amax / torch.finfo(dtype).max, 1.0)
    codes = (rows / scales[:, None]).reshape(turned.shape)
    return codes.permute([order.index(d) for d in range(x.dim())]).to(dtype), scales

# %% wrong: scales in float64
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    rows = x.double().reshape(-1, block)
    amax = rows.abs().amax(1)
    scales = torch.where(amax > 0, amax / torch.finfo(dtype).max, 1.0)
    return (rows / scales[:, None]).float().to(dtype).reshape(x.shape), scales

# %% wrong: no scale below 1e-12 (from the statement)
import torch


def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and a scale for each block."""
    blocks = x.flatten().split(block)
    scales = torch.stack([b.abs().max() for b in blocks]) / torch.finfo(dtype).max
    scales = torch.where(scales == 0, torch.ones_like(scales), scales.clamp(min=1e-12))
    codes = torch.cat([b / s for b, s in zip(blocks, scales)]).to(dtype)
    return codes.reshape(x.shape), scales

# %% wrong: a view of x, which not every layout has (from the statement)
# unseen: only hidden inputs have a non-contiguous tensor
import torch


def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and a scale for each block."""
    blocks = x.view(-1, block)
    amax = blocks.abs().max(dim=1).values
    scales = torch.where(amax == 0, 1.0, amax / torch.finfo(dtype).max)
    return (blocks / scales.unsqueeze(1)).to(dtype).view(x.shape), scales

# %% wrong: passes through bfloat16 on the way, and rounds twice (from the statement)
import torch


def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    """8-bit codes in the shape of x, and a scale for each block."""
    blocks = x.reshape(-1, block)
    amax = blocks.abs().amax(dim=-1)
    scales = torch.where(amax > 0, amax / torch.finfo(dtype).max, torch.ones_like(amax))
    scaled = (blocks / scales[:, None]).bfloat16()  # the dtype of the activations
    return scaled.to(dtype).reshape(x.shape), scales

# %% wrong: hands out the scales with three digits
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    rows = x.reshape(-1, block)
    largest = rows.abs().amax(dim=1)
    scales = torch.where(largest > 0, largest / torch.finfo(dtype).max, 1.0)
    short = torch.tensor([float(f"{s:.3g}") for s in scales.tolist()])
    return (rows / scales[:, None]).to(dtype).reshape(x.shape), short

# %% wrong: x / amax * max rounds twice (from the statement)
# unseen: only ties that rounding twice breaks show the difference
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    largest = torch.finfo(dtype).max
    blocks = x.reshape(-1, block)
    amax = blocks.abs().amax(dim=1)
    zero = amax == 0
    scales = torch.where(zero, torch.ones_like(amax), amax / largest)
    codes = (blocks / torch.where(zero, torch.ones_like(amax), amax)[:, None] * largest).to(dtype)
    return codes.reshape(x.shape), scales

# %% right: one block after the other
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    codes, scales = [], []
    for part in x.flatten().split(block):
        scale = max(part.max().item(), -part.min().item()) / torch.finfo(dtype).max or 1.0
        codes.append(part / scale)
        scales.append(scale)
    return torch.cat(codes).to(dtype).reshape(x.shape), torch.tensor(scales)

# %% right: multiplies by the reciprocal, and clamps
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    top = torch.finfo(dtype).max
    rows = x.flatten().unflatten(0, (-1, block))
    scales = rows.abs().max(dim=-1).values / top
    scales[scales == 0] = 1
    return (rows * (1 / scales)[:, None]).clamp(-top, top).to(dtype).view(x.shape), scales

# %% right: the scales, repeated for each element
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    norms = torch.linalg.vector_norm(x.reshape(-1, block), ord=math.inf, dim=1)
    scales = norms / torch.finfo(dtype).max
    scales = scales.masked_fill(norms == 0, 1.0)
    return (x / scales.repeat_interleave(block).reshape(x.shape)).to(dtype), scales

# %% right: one element at a time
def quantize_blocks(x, block, dtype=torch.float8_e4m3fn):
    values, codes, scales = x.flatten().tolist(), [], []
    for start in range(0, len(values), block):
        part = values[start : start + block]
        scale = max(map(abs, part)) / torch.finfo(dtype).max or 1.0
        scales.append(scale)
        codes += [
            torch.tensor(value / scale, dtype=torch.float64).float().to(dtype).view(torch.uint8)
            for value in part
        ]
    return torch.stack(codes).view(dtype).reshape(x.shape), torch.tensor(scales)
