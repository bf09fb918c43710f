import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("Find the largest magnitude of each group. Which scale turns it into the largest code?")


def codes_and_scales(student, w, bits, group):
    """What quantize returns."""
    codes, scales = student.quantize(w, bits, group)
    return {"codes": codes, "scales": scales}


def ones(student, w, bits, group):
    """For each group whether its scale is 1, and whether zeros have zeros for codes."""
    codes, scales = student.quantize(w, bits, group)
    return {"scale is 1": (scales == 1).tolist(), "zeros have code 0": bool((codes[w == 0] == 0).all())}


def back(student, codes, scales):
    """What codes and scales stand for."""
    return student.dequantize(codes, scales)


def of(values, bits, group, dtype=torch.float64):
    return given(torch.tensor(values, dtype=dtype), bits, group, says=f"quantize(torch.tensor({values}), {bits}, {group})")


@st.composite
def matrices(draw, zeros=False):
    group, groups = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rows = draw(st.integers(1, 4))
    w = draw(tensors((rows, groups * group), torch.float64, contiguous=None)) * draw(any_of(1e-20, 1e-3, 1.0, 1e6))
    kind = draw(any_of("both", "negative", "positive", "outlier"))
    if kind == "negative":
        w = -w.abs()
    elif kind == "positive":
        w = w.abs()
    elif kind == "outlier":
        w[0, 0] = w.abs().max() * draw(any_of(-30.0, 30.0))
    if zeros:
        w = w.clone()
        which = draw(st.integers(0, groups - 1))
        w[draw(st.integers(0, rows - 1)), which * group : (which + 1) * group] = 0.0
    return given(w, draw(st.integers(2, 8)), group)


@st.composite
def pairs(draw):
    group, groups, rows = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    codes = draw(tensors((rows, groups * group), torch.int8, contiguous=None)) * draw(any_of(1, 14))
    return given(codes, draw(tensors((rows, groups), torch.float64, contiguous=None)).abs() + 1e-3)


def rules(key):
    return {"codes": "ignored", "scales": 1e-9} if key == "scales" else {"scales": "ignored"}


ALL_ZEROS = torch.zeros(2, 4, dtype=torch.float64)
exercise.requirement(
    "the scale of each group turns its largest magnitude into the largest code",
    points=0.5,
    probe=codes_and_scales,
    rules=rules("scales"),
    visible=[
        of([[1.1, -2.0, 3.0, 4.5], [0.6, 0.1, -7.0, 3.0]], 8, 2),
        of([[1.1, -2.0, 3.0, 4.5], [0.6, 0.1, -7.0, 3.0]], 4, 4),
        of([[3e-8, -1e-8], [5e-9, 1e-9]], 3, 1),
        of([[3e-20, -1e-20]], 3, 1),
    ],
    edges={
        "two bits": of([[0.3, -0.9, 1.6, 0.2]], 2, 4),
        "one weight": of([[-0.7]], 8, 1),
        "each weight a group": of([[1.1, -2.0, 3.0]], 5, 1),
        "a scale of 1": of([[127.0, 3.2], [-7.0, 126.6]], 8, 2),
        "all negative": of([[-3.0, -1.0, -2.0, -8.0]], 6, 2),
        "float32": of([[1.1, -2.0, 3.3, 4.5]], 8, 2, torch.float32),
        "as many rows as groups": of([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]], 7, 1),
        "not contiguous": given((torch.arange(1.0, 13.0, dtype=torch.float64) + 0.25).view(4, 3).T, 8, 2),
        "zeros but for one": of([[0.0, -5.0, 0.0, 0.0], [1.1, 2.1, 3.1, 4.0]], 4, 4),
    },
    domain=matrices(),
)
exercise.requirement(
    "codes: int8, in the shape of w, weight / scale rounded to the nearest integer; w isn't changed",
    points=0.5,
    probe=codes_and_scales,
    rules=rules("codes"),
    parts=("value",),
    visible=[
        of([[1.1, -2.0, 3.0, 4.6], [0.6, 0.1, -7.0, 3.2]], 8, 2),
        of([[1.1, -2.0, 3.0, 4.6], [0.6, 0.1, -7.0, 3.2]], 4, 4),
        of([[0.3, -0.9, 1.6, 0.2], [2.0, -1.2, 0.0, -0.1]], 2, 4),
    ],
    edges={
        "one weight": of([[-0.7]], 8, 1),
        "each weight a group": of([[1.1, -2.0, 3.0]], 5, 1),
        "no code for the smallest": of([[-4.0, 3.9, -3.98, 1.0]], 8, 4),
        "float32": of([[1.1, -2.0, 3.3, 4.5]], 8, 2, torch.float32),
        "not contiguous": given((torch.arange(1.0, 13.0, dtype=torch.float64) + 0.25).view(4, 3).T, 8, 2),
        "a tall matrix": given(torch.linspace(-1.0, 1.03, 40, dtype=torch.float64).view(20, 2), 4, 2),
    },
    domain=matrices(),
    hint="Divide each weight by the scale of its group, round, and convert.",
)
exercise.requirement(
    "the scale of a group of zeros is 1, and only that",
    points=0.25,
    probe=ones,
    visible=[of([[0.0, 0.0, 3.0, 4.5], [0.5, -0.5, 0.0, 0.0]], 8, 2), of([[0.0, 0.0, 0.0]], 4, 3)],
    edges={
        "all zeros": given(ALL_ZEROS, 8, 2),
        "nearly zeros": of([[0.0, 1e-300, 0.0, 0.0]], 8, 2),
        "their sum is 0": of([[2.0, -2.0, 0.0, 0.0]], 8, 2),
    },
    domain=matrices(zeros=True),
    hint="Zeros have no largest magnitude to divide by.",
)
exercise.requirement(
    "dequantize: each code times the scale of its group, in the dtype of the scales",
    points=0.25,
    probe=back,
    visible=[
        given(torch.tensor([[1, -2, 3, 127]], dtype=torch.int8), torch.tensor([[0.5, 2.0]]),
              says="dequantize(torch.tensor([[1, -2, 3, 127]], dtype=torch.int8), torch.tensor([[0.5, 2.0]]))"),
        given(torch.tensor([[1, 2, 3, 4, -5, 6]], dtype=torch.int8), torch.tensor([[0.25, 3.0]], dtype=torch.float64),
              says="dequantize(torch.tensor([[1, 2, 3, 4, -5, 6]], dtype=torch.int8), "
                   "torch.tensor([[0.25, 3.0]], dtype=torch.float64))"),
    ],
    edges={
        "two rows": given(torch.tensor([[1, 2, 3], [4, -5, 6]], dtype=torch.int8), torch.tensor([[0.25], [3.0]])),
        "one code": given(torch.tensor([[-7]], dtype=torch.int8), torch.tensor([[0.1]], dtype=torch.float64)),
        "each code a group": given(torch.tensor([[1, -2, 3]], dtype=torch.int8), torch.tensor([[1.0, 2.0, 3.0]])),
        "bfloat16": given(torch.tensor([[1, -2, 3, 100]], dtype=torch.int8), torch.tensor([[0.5, 2.0]], dtype=torch.bfloat16)),
        "as many groups as codes in each": given(torch.tensor([[1, 2, 3, 4]], dtype=torch.int8), torch.tensor([[1.0, 10.0]])),
        "large codes": given(torch.tensor([[127, -127]], dtype=torch.int8), torch.tensor([[3.0]])),
    },
    domain=pairs(),
    hint="How many neighbors share a scale? The two shapes show it.",
)  # fmt: skip

SCALES = "grouped.abs().amax(dim=-1) / largest"
exercise.mistake("The largest code is one less: half of the codes are negative, and one is 0.", "2 ** (bits - 1) - 1 → 2 ** (bits - 1)")
exercise.mistake("One bit is for the sign.", "2 ** (bits - 1) - 1 → 2**bits - 1")
exercise.mistake("The largest in magnitude counts: it may be negative.", "grouped.abs().amax → grouped.amax")
exercise.mistake("The largest magnitude counts, not the mean.", "abs().amax(dim=-1) → abs().mean(dim=-1)")
exercise.mistake("One scale for each group, not for each row.",
                 f"{SCALES} → (w.abs().amax(dim=1, keepdim=True) / largest).expand(grouped.shape[:2])")  # fmt: skip
exercise.mistake("One scale for each group, not for the whole matrix.", f"{SCALES} → (w.abs().max() / largest).expand(grouped.shape[:2])")
exercise.mistake("Groups are neighbors in a row.",
                 '(w, "rows (groups n) -> rows groups n" → (w, "rows (n groups) -> rows groups n"',
                 '"rows groups n -> rows (groups n)" → "rows groups n -> rows (n groups)"')  # fmt: skip
exercise.mistake("The codes don't come back in the order of the weights.", '"rows groups n -> rows (groups n)" → "rows groups n -> rows (n groups)"')
exercise.mistake("Round to the nearest integer: a conversion to int8 cuts the fraction off.", "[:, :, None]).round() → [:, :, None])")
exercise.mistake("Round to the nearest integer, not down.", ".round() → .floor()")
exercise.mistake("The weights are multiplied by the scale; divide by it.", "grouped / scales → grouped * scales")
exercise.mistake("The scale of zeros is 1: 0 / 0 is NaN.", "torch.where(scales > 0, scales, 1.0) → scales")
exercise.mistake("A guard against division by zero has to leave groups of small weights alone, and the scale of zeros is 1.",
                 "torch.where(scales > 0, scales, 1.0) → scales.clamp(min=1e-8)")  # fmt: skip
exercise.mistake("Codes are int8.", ".to(torch.int8) → ")
exercise.mistake("Codes are int8, which has a sign.", ".to(torch.int8) → .to(torch.uint8)")
exercise.mistake("Return the scale, with w ≈ code · scale, and not its reciprocal.", "torch.int8), scales → torch.int8), 1 / scales")
exercise.mistake("The scales have the dtype of w.", "torch.int8), scales → torch.int8), scales.to(torch.float16)")
exercise.mistake("Codes have the shape of w, without a dimension for the groups.",
                 'rearrange(codes, "rows groups n -> rows (groups n)").to(torch.int8) → codes.to(torch.int8)')  # fmt: skip
exercise.mistake("In dequantize, neighbors share a scale; your scales alternate.",
                 "scales.repeat_interleave(group, dim=1) → scales.repeat(1, group)")  # fmt: skip
exercise.mistake("dequantize multiplies by the scale.", "codes * scales → codes / scales")
exercise.mistake("Don't confuse the length of a group with the number of groups.", "codes.shape[1] // scales.shape[1] → scales.shape[1]")
exercise.mistake("The result of dequantize has the dtype of the scales.", "codes * scales.repeat_interleave(group, dim=1) → codes.float() * scales.repeat_interleave(group, dim=1).float()")
exercise.mistake("dequantize returns floating-point numbers: an int8 holds no such product.",
                 "codes * scales.repeat_interleave(group, dim=1) → (codes * scales.repeat_interleave(group, dim=1)).to(torch.int8)")  # fmt: skip

# %% mistake: w itself is scaled
# says: w itself was changed: divide into a new tensor.
def quantize(w, bits, group):
    largest = 2 ** (bits - 1) - 1
    grouped = w.unflatten(1, (-1, group))
    scales = grouped.abs().amax(-1) / largest
    scales = torch.where(scales > 0, scales, 1.0)
    grouped /= scales[:, :, None]
    return grouped.round().flatten(1).to(torch.int8), scales


def dequantize(codes, scales):
    return codes * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)

# %% wrong: the scale uses the whole range of int8
def quantize(w, bits, group):
    grouped = w.unflatten(1, (-1, group))
    scales = (grouped.amax(-1) - grouped.amin(-1)) / (2**bits - 2)
    scales = torch.where(scales > 0, scales, 1.0)
    return (grouped / scales[:, :, None]).round().flatten(1).to(torch.int8), scales


def dequantize(codes, scales):
    return codes * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)

# %% wrong: a power of two
def quantize(w, bits, group):
    grouped = w.unflatten(1, (-1, group))
    amax = grouped.abs().amax(-1)
    scales = torch.where(amax > 0, 2.0 ** (amax / (2 ** (bits - 1) - 1)).log2().ceil(), 1.0)
    return (grouped / scales[:, :, None]).round().flatten(1).to(torch.int8), scales


def dequantize(codes, scales):
    return codes * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)

# %% wrong: scales that are never below a small number (from the statement)
def quantize(w, bits, group):
    rows, columns = w.shape
    q_max = 2 ** (bits - 1) - 1
    blocks = w.reshape(rows, columns // group, group)
    scales = blocks.abs().max(dim=2).values / q_max
    scales = torch.where(scales < 1e-12, torch.ones_like(scales), scales)
    codes = torch.round(blocks / scales.unsqueeze(-1)).clamp(-q_max, q_max)
    return codes.reshape(rows, columns).to(torch.int8), scales


def dequantize(codes, scales):
    rows, columns = codes.shape
    blocks = codes.reshape(rows, scales.shape[1], -1)
    return (blocks * scales.unsqueeze(-1)).reshape(rows, columns)

# %% wrong: groups across rows (from the statement)
def quantize(w, bits, group):
    q_max = 2 ** (bits - 1) - 1
    blocks = w.T.reshape(-1, group)
    scales = blocks.abs().amax(dim=1, keepdim=True) / q_max
    scales[scales == 0] = 1.0
    codes = (blocks / scales).round().to(torch.int8)
    return codes.reshape(w.T.shape).T, scales.reshape(w.shape[0], -1)


def dequantize(codes, scales):
    return codes * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)

# %% wrong: rounds half away, by adding a half and cutting (from the statement)
def quantize(w, bits, group):
    q_max = 2 ** (bits - 1) - 1
    blocks = w.unflatten(1, (w.shape[1] // group, group))
    scales = blocks.abs().amax(dim=-1) / q_max
    scales = scales.masked_fill(scales == 0, 1.0)
    codes = (blocks / scales[..., None] + 0.5).to(torch.int8)
    return codes.flatten(1), scales


def dequantize(codes, scales):
    return codes.to(scales.dtype) * scales.repeat_interleave(codes.shape[1] // scales.shape[1], dim=1)

# %% right: a loop over groups
def quantize(w, bits, group):
    top = 2 ** (bits - 1) - 1
    codes, scales = [], []
    for part in w.split(group, dim=1):
        largest = part.abs().max(dim=1, keepdim=True).values
        scale = torch.where(largest == 0, torch.ones_like(largest), largest / top)
        scales.append(scale)
        codes.append(torch.round(part / scale))
    return torch.cat(codes, dim=1).char(), torch.cat(scales, dim=1)


def dequantize(codes, scales):
    parts = codes.chunk(scales.shape[1], dim=1)
    return torch.cat([part * scales[:, i : i + 1] for i, part in enumerate(parts)], dim=1)

# %% right: by reshape, with a clamp
def quantize(w, bits, group):
    rows, columns = w.shape
    top = 2 ** (bits - 1) - 1
    blocks = w.reshape(rows, columns // group, group)
    scales = torch.maximum(blocks.amax(2), -blocks.amin(2)) / top
    scales[scales == 0] = 1
    codes = torch.clamp(torch.round(blocks / scales[..., None]), -top, top)
    return codes.reshape(rows, columns).to(torch.int8), scales


def dequantize(codes, scales):
    rows, groups = scales.shape
    return (codes.reshape(rows, groups, -1).to(scales.dtype) * scales[..., None]).reshape(rows, -1)

# %% right: scales as wide as the weights
def quantize(w, bits, group):
    norm = torch.linalg.vector_norm(w.unflatten(1, (-1, group)), ord=math.inf, dim=-1)
    scales = norm / (2 ** (bits - 1) - 1) + (norm == 0)
    wide = scales.repeat_interleave(group, dim=1)
    return w.div(wide).round().to(torch.int8), scales


def dequantize(codes, scales):
    return torch.einsum("rgn,rg->rgn", codes.unflatten(1, (scales.shape[1], -1)).to(scales.dtype), scales).flatten(1)
