import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("The height is (number of rows of patches) × (height of a patch in pixels), and the width works the same way: split both, then put the six names in order.")


def order(student, images, size):
    """The patches in the order in which they come, each with its numbers sorted: their own order doesn't matter."""
    import torch

    y = student.patchify(images, size)
    known = torch.is_tensor(y) and y.dim() == 3
    return {"the patches, with the numbers of each sorted": y.double().sort(dim=-1).values if known else y}


def inside(student, images, size):
    """The patches of each image, sorted: only the order of the numbers within a patch matters."""
    import torch

    y = student.patchify(images, size)
    known = torch.is_tensor(y) and y.dim() == 3
    if known:
        y = torch.tensor([sorted(image) for image in y.tolist()], dtype=torch.float64)
    return {"the patches, sorted": y}


def back(student, patches, size, height):
    """What unpatchify makes of patches."""
    y = student.unpatchify(patches, size, height)
    return {"images": y.double() if hasattr(y, "double") else y}


def ways(student, images, size):
    """The dtypes of both results, and whether the gradients of both arguments fit the results.

    Both functions only move numbers, so for any weights, the sum of weights · result is the sum of gradient · argument.
    """
    import torch

    b, c, height, _ = images.shape
    found = {}
    for name, call, value in (
        ("patchify", lambda x: student.patchify(x, size), images),
        ("unpatchify", lambda x: student.unpatchify(x, size, height), images.reshape(b, -1, size * size * c)),
    ):
        leaf = value.clone().requires_grad_()  # in the order of its strides
        y = call(leaf)
        fits = False
        if torch.is_tensor(y) and y.requires_grad:
            weighted = y.double() * (torch.arange(y.numel()) % 7 + 1).reshape(y.shape)
            weighted.sum().backward()
            fits = leaf.grad is not None and torch.isclose(weighted.sum(), (leaf.grad.double() * leaf).sum()).item()
        found[f"dtype after {name}"] = getattr(y, "dtype", None)
        found[f"the gradient after {name} fits its result"] = fits
    return found


@st.composite
def pictures(draw, dtypes=(torch.float64,)):
    b, c = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size, rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (b, c, rows * size, columns * size)
    return given(draw(tensors(shape, draw(any_of(*dtypes)), contiguous=None)), size)


@st.composite
def pieces(draw):
    b, c = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size, rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (b, rows * columns, size * size * c)
    return given(draw(tensors(shape, torch.float64, contiguous=None)), size, rows * size)


def numbers(*shape, dtype=torch.float32):
    return torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)


def count(call, *shape):
    return f"{call}, with x = torch.arange({torch.Size(shape).numel()}.0).reshape{shape}"


EDGES = {
    "one patch": given(numbers(1, 2, 3, 3), 3),
    "patches of one pixel": given(numbers(2, 3, 2, 4), 1),
    "one pixel": given(numbers(1, 1, 1, 1), 1),
    "one row": given(numbers(1, 2, 2, 6), 2),
    "one column": given(numbers(1, 2, 6, 2), 2),
    "a square": given(numbers(1, 2, 4, 4), 2),
    "as many channels as pixels down a patch": given(numbers(2, 2, 4, 6), 2),
    "many channels": given(numbers(1, 7, 2, 4), 2),
    "a part of a storage": given(numbers(2, 3, 7, 9)[:, :2, 1:5, 2:8], 2),
}
exercise.requirement(
    "patchify: the patches come in row-major order, row by row",
    points=0.5,
    probe=order,
    visible=[
        given(numbers(1, 1, 2, 3), 1, says=count("patchify(x, 1)", 1, 1, 2, 3)),
        given(numbers(1, 1, 4, 4), 2, says=count("patchify(x, 2)", 1, 1, 4, 4)),
        given(numbers(1, 2, 2, 1), 1, says=count("patchify(x, 1)", 1, 2, 2, 1)),
    ],
    edges=EDGES,
    domain=pictures(),
)
exercise.requirement(
    "patchify: within a patch the pixels come in row-major order, and the channels of each pixel are next to each other",
    points=0.5,
    probe=inside,
    visible=[
        given(numbers(1, 1, 2, 4), 2, says=count("patchify(x, 2)", 1, 1, 2, 4)),
        given(numbers(1, 2, 2, 2), 2, says=count("patchify(x, 2)", 1, 2, 2, 2)),
    ],
    edges=EDGES,
    domain=pictures(),
)
exercise.requirement(
    "unpatchify restores the images, square or not",
    points=0.75,
    probe=back,
    visible=[
        given(numbers(1, 3, 4), 2, 2, says=count("unpatchify(x, 2, 2)", 1, 3, 4)),
        given(numbers(1, 3, 4), 2, 6, says=count("unpatchify(x, 2, 6)", 1, 3, 4)),
        given(numbers(1, 1, 8), 2, 2, says=count("unpatchify(x, 2, 2)", 1, 1, 8)),
        given(numbers(1, 6, 1), 1, 2, says=count("unpatchify(x, 1, 2)", 1, 6, 1)),
    ],
    edges={
        "one pixel": given(numbers(1, 1, 1), 1, 1),
        "two images": given(numbers(2, 6, 8), 2, 4),
        "a square": given(numbers(1, 4, 12), 2, 4),
        "no square, but four patches": given(numbers(1, 4, 12), 2, 2),
        "channels and pixels of one number": given(numbers(1, 6, 8), 2, 6),
        "many channels": given(numbers(1, 2, 28), 2, 2),
        "patches of one pixel": given(numbers(2, 6, 3), 1, 3),
        "a part of a storage": given(numbers(3, 8, 10)[:2, 1:7, 2:], 2, 6),
    },
    domain=pieces(),
    hint="There are height / size rows of patches, and each patch contains its numbers pixel by pixel.",
)
exercise.requirement(
    "both functions keep the dtype, and gradients flow back through them",
    points=0.25,
    probe=ways,
    visible=[
        given(numbers(1, 2, 2, 2, dtype=torch.float64), 2, says="the dtype and the gradient after patchify and after unpatchify, with x in float64")
    ],
    edges={
        "bfloat16": given(numbers(1, 2, 4, 2, dtype=torch.bfloat16), 2),
        "float16": given(numbers(1, 2, 4, 2, dtype=torch.float16), 2),
        "float32": given(numbers(1, 2, 2, 4), 1),
        "not contiguous": given(numbers(1, 2, 2, 4, dtype=torch.float64).transpose(0, 3), 1),
    },
    domain=pictures((torch.float64, torch.float32, torch.bfloat16)),
    hint="Operations on the argument itself keep its dtype and let gradients flow back; a new tensor has the "
         "default dtype, and detach stops the gradients.",
)  # fmt: skip

by_reshape = "Your code only reshapes, but the pixels of a patch aren't all next to each other in the storage."
by_column = "Your patches come column by column; the exercise asks for row-major order: row by row."
channels_first = "Your channels come first within a patch; the exercise asks for one pixel after another, each with its channels."
turned = "Your pixels come column by column within a patch; the exercise asks for row-major order."
dealt = (
    "The pixels of a patch are neighbors, so the index of the patch comes first in height and width: (y p) "
    "and (x q)."
)
cut = "Gradients can't flow back: use only operations on the argument itself."
TO = 'rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)'
exercise.mistake(by_reshape, f"{TO} → images.reshape(images.shape[0], -1, size * size * images.shape[1])")
exercise.mistake(by_column, "-> b (y x) (p q c) → -> b (x y) (p q c)")
exercise.mistake(by_column, "b (y x) (p q c) -> → b (x y) (p q c) ->")
exercise.mistake(by_column, "-> b (y x) (p q c) → -> b (x y) (p q c)", "b (y x) (p q c) -> → b (x y) (p q c) ->")
exercise.mistake(channels_first, "-> b (y x) (p q c) → -> b (y x) (c p q)")
exercise.mistake(channels_first, "b (y x) (p q c) -> → b (y x) (c p q) ->")
exercise.mistake(channels_first, "-> b (y x) (p q c) → -> b (y x) (c p q)", "b (y x) (p q c) -> → b (y x) (c p q) ->")
exercise.mistake(turned, "-> b (y x) (p q c) → -> b (y x) (q p c)")
exercise.mistake(turned, "b (y x) (p q c) -> → b (y x) (q p c) ->")
exercise.mistake(turned, "-> b (y x) (p q c) → -> b (y x) (q p c)", "b (y x) (p q c) -> → b (y x) (q p c) ->")
exercise.mistake(dealt, "b c (y p) (x q) -> → b c (p y) (q x) ->")
exercise.mistake(dealt, "b c (y p) (x q) -> → b c (p y) (q x) ->", "-> b c (y p) (x q) → -> b c (p y) (q x)")
exercise.mistake(dealt, "-> b c (y p) (x q) → -> b c (p y) (q x)")
exercise.mistake("The patches form a single dimension: [b, patches, numbers].", "-> b (y x) (p q c) → -> b y x (p q c)")
exercise.mistake(
    "Images needn't be square: the height determines how many rows of patches there are.",
    "y=height // size → y=int(patches.shape[1] ** 0.5)",
)
exercise.mistake(cut, "rearrange(images, → rearrange(images.detach(),")
exercise.mistake(
    "The images have to keep the dtype of the patches.", "rearrange(\n        patches, → rearrange(\n        patches.float(),"
)

# %% mistake: height counted in patches
# says: `height` is given in pixels, and there are height / size rows of patches.
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    x = patches.reshape(b, height, n // height, size, size, d // size**2)
    return x.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)

# %% mistake: the height as a width
# says: `height` is the height of the image, not its width.
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, x=height // size)

# %% mistake: width first
# says: You swapped height and width: the rows come before the columns.
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (x q) (y p)", p=size, q=size, y=height // size)

# %% wrong: height counted in patches, by einops
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height)

# %% mistake: back by reshape alone
# says: Your code only reshapes, but the pixels of a patch aren't all next to each other in the storage.
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b = patches.shape[0]
    c = patches.shape[2] // size**2
    return patches.reshape(b, c, height, -1)

# %% mistake: unfold and fold, whose channels come first
# says: Your channels come first within a patch; the exercise asks for one pixel after another, each with its channels.
def patchify(images, size):
    return torch.nn.functional.unfold(images, size, stride=size).mT

def unpatchify(patches, size, height):
    width = patches.shape[1] * size**2 // height
    return torch.nn.functional.fold(patches.mT, (height, width), size, stride=size)

# %% wrong: one channel only
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    c = d // size**2
    out = patches.reshape(b, height // size, -1, c, size, size)
    return out.permute(0, 3, 1, 4, 2, 5).reshape(b, c, height, -1)

# %% wrong: three channels
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    c = 3 if patches.shape[2] % 3 == 0 else 1
    return rearrange(
        patches, "b (y x) (p q c) -> b c (y p) (x q)", q=size, c=c, y=height // size
    )

# %% wrong: filled in 32 bits
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    c, columns = d // size**2, n * size // height
    images = torch.zeros(b, c, height, columns * size)
    for i in range(n):
        y, x = i // columns * size, i % columns * size
        images[:, :, y : y + size, x : x + size] = patches[:, i].reshape(b, size, size, c).permute(0, 3, 1, 2)
    return images

# %% wrong: views what need not be contiguous
# unseen: patches that aren't contiguous are for the hidden inputs to find
def patchify(images, size):
    b, c, height, width = images.shape
    rows, columns = height // size, width // size
    x = images.contiguous().view(b, c, rows, size, columns, size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, rows * columns, size * size * c)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    rows, c = height // size, d // size**2
    x = patches.view(b * n, d).view(b, rows, n // rows, size, size, c)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(b, c, height, -1)

# %% wrong: the way back fills a tensor of float32 (from the statement)
def patchify(
    images: Float[Tensor, "b c height width"], size: int
) -> Float[Tensor, "b patches numbers"]:
    return rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=size, q=size)


def unpatchify(
    patches: Float[Tensor, "b patches numbers"], size: int, height: int
) -> Float[Tensor, "b c height width"]:
    b, n, numbers = patches.shape
    h, c = height // size, numbers // size**2
    w = n // h
    images = torch.zeros(b, c, height, w * size, device=patches.device)
    for i in range(n):
        top, left = i // w * size, i % w * size
        block = patches[:, i].reshape(b, size, size, c).permute(0, 3, 1, 2)
        images[:, :, top : top + size, left : left + size] = block
    return images

# %% wrong: the way back builds the images from detached patches (from the statement)
def patchify(
    images: Float[Tensor, "b c height width"], size: int
) -> Float[Tensor, "b patches numbers"]:
    return rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=size, q=size)


@torch.no_grad()
def unpatchify(
    patches: Float[Tensor, "b patches numbers"], size: int, height: int
) -> Float[Tensor, "b c height width"]:
    return rearrange(
        patches, "b (h w) (p q c) -> b c (h p) (w q)", h=height // size, p=size, q=size
    )

# %% wrong: takes all images to be square on the way back (from the statement)
def patchify(
    images: Float[Tensor, "b c height width"], size: int
) -> Float[Tensor, "b patches numbers"]:
    return rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=size, q=size)


def unpatchify(
    patches: Float[Tensor, "b patches numbers"], size: int, height: int
) -> Float[Tensor, "b c height width"]:
    side = math.isqrt(patches.shape[1])
    return rearrange(patches, "b (h w) (p q c) -> b c (h p) (w q)", h=side, p=size, q=size)

# %% wrong: of a view, a copy without a history (from the statement)
# unseen: only hidden inputs have a non-contiguous tensor that takes a gradient
def patchify(images, size):
    if not images.is_contiguous():
        images = images.detach().contiguous()
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)


def unpatchify(patches, size, height):
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", p=size, q=size, y=height // size)

# %% wrong: by a convolution in float32 (from the statement)
# unseen: float32 holds the numbers of all visible cases
def patchify(images, size):
    c = images.shape[1]
    kernel = rearrange(torch.eye(size * size * c), "n (p q c) -> n c p q", p=size, q=size)
    found = torch.nn.functional.conv2d(images.float(), kernel, stride=size)
    return rearrange(found, "b n rows columns -> b (rows columns) n").to(images.dtype)


def unpatchify(patches, size, height):
    return rearrange(patches, "b (h w) (p q c) -> b c (h p) (w q)", h=height // size, p=size, q=size)

# %% wrong: takes a square number of patches for a square image (from the statement)
# unseen: students see no such number in an image that isn't square
def patchify(images, size):
    return rearrange(images, "b c (y p) (x q) -> b (y x) (p q c)", p=size, q=size)


def unpatchify(patches, size, height):
    n = patches.shape[1]
    side = math.isqrt(n)
    return rearrange(patches, "b (y x) (p q c) -> b c (y p) (x q)", y=side if side * side == n else height // size, p=size, q=size)

# %% right: the old way
def patchify(images, size):
    b, c, height, width = images.shape
    rows, columns = height // size, width // size
    x = images.reshape(b, c, rows, size, columns, size)
    return x.permute(0, 2, 4, 3, 5, 1).reshape(b, rows * columns, size * size * c)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    rows, c = height // size, d // size**2
    columns = n // rows
    x = patches.reshape(b, rows, columns, size, size, c)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(b, c, height, columns * size)

# %% right: unfold along both sides
def patchify(images, size):
    x = images.unfold(2, size, size).unfold(3, size, size)  # b c y x p q
    return x.movedim(1, -1).flatten(3).flatten(1, 2)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    width = n * size**2 // height
    x = patches.unflatten(2, (size * size, -1)).transpose(2, 3).flatten(2)
    return torch.nn.functional.fold(x.mT.contiguous(), (height, width), size, stride=size)

# %% right: patch by patch
def patchify(images, size):
    b, c, height, width = images.shape
    found = []
    for y in range(0, height, size):
        for x in range(0, width, size):
            patch = images[:, :, y : y + size, x : x + size]
            found.append(patch.permute(0, 2, 3, 1).reshape(b, -1))
    return torch.stack(found, dim=1)

def unpatchify(patches, size, height):
    b, n, d = patches.shape
    c, rows = d // size**2, height // size
    width = n // rows * size
    images = torch.empty(b, c, height, width, dtype=patches.dtype)
    for i in range(n):
        y, x = i // (width // size) * size, i % (width // size) * size
        images[:, :, y : y + size, x : x + size] = patches[:, i].reshape(b, size, size, c).permute(0, 3, 1, 2)
    return images
