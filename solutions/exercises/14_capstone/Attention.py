import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("Split qkv's outputs into three and into heads, attend causally, merge the heads, multiply by out.")


def build(student, x, qkv, out, heads, training=True):
    """A layer with these weights, in the dtype and on the device of x, in training or in evaluation mode."""
    import torch

    layer = student.Attention(x.shape[-1], heads).to(x.device, x.dtype).train(training)
    with torch.no_grad():
        layer.qkv.weight.copy_(qkv)
        layer.out.weight.copy_(out)
        for each in (layer.qkv, layer.out):
            if each.bias is not None:
                each.bias.zero_()
    return layer


def last_token(student, x, qkv, out, heads, training=True):
    """The output for the last token, which sees all."""
    return build(student, x, qkv, out, heads, training)(x)[:, -1].detach()


def causal(student, x, qkv, out, heads, training=True):
    """Which outputs change with each token, and which are the same where no token comes after them."""
    import torch

    layer = build(student, x, qkv / 10, out, heads, training)  # no attention weight is close to 0
    found = {}
    with torch.no_grad():
        whole = layer(x)
        for i in range(x.shape[1]):
            other = x.clone()
            other[:, i] += torch.arange(1, x.shape[-1] + 1) % 3 + 1
            changed = (layer(other) - whole).abs().amax(dim=(0, 2)) > 1e-9
            found[f"outputs that change with token {i + 1}"] = [j + 1 for j in range(x.shape[1]) if changed[j]]
        beginnings = torch.stack([layer(x[:, : i + 1])[:, -1] for i in range(x.shape[1])], dim=1)
        same = (beginnings - whole).abs().amax(dim=(0, 2)) < 1e-9
    found["outputs that are the same if nothing comes after"] = [j + 1 for j in range(x.shape[1]) if same[j]]
    return found


def gradients(student, x, qkv, out, heads, training=True):
    """What gets a gradient that is not zero."""
    import torch

    layer = build(student, x, qkv / 10, out, heads, training)  # no attention weight is close to 0 or 1
    leaf = x.clone().requires_grad_()
    result = layer(leaf)
    found = {}
    if result.requires_grad:
        (result * torch.arange(1, result.numel() + 1).view_as(result)).sum().backward()
    for name, p in {"x": leaf, "qkv": layer.qkv.weight, "out": layer.out.weight}.items():
        gradient = torch.zeros_like(p) if p.grad is None else p.grad
        parts = zip(("queries", "keys", "values"), gradient.chunk(3), strict=True) if name == "qkv" else [("", gradient)]
        for part, each in parts:
            found[f"{name}, {part}" if part else name] = bool(each.abs().max() > 1e-9)
    return {"get a gradient": [name for name, gets in found.items() if gets]}


def holds(student, width, heads, device="cpu"):
    """What a layer trains and stores."""
    import torch
    from torch.utils._pytree import tree_leaves

    with torch.device(device):
        layer = student.Attention(width, heads)
        layer(torch.ones(1, 2, width))
    registered = ("_parameters", "_buffers", "_modules")
    elsewhere = [
        name for module in layer.modules() for name, value in vars(module).items()
        if name not in registered and any(map(torch.is_tensor, tree_leaves(value)))
    ]
    return {
        "parameters": {name: list(p.shape) for name, p in sorted(layer.named_parameters())},
        "made by nn.Linear": [isinstance(getattr(layer, name, None), torch.nn.Linear) for name in ("qkv", "out")],
        "other tensors": sorted([name for name, _ in layer.named_buffers()] + elsewhere),
        "device": sorted({p.device.type for p in layer.parameters()}),
    }


def kept(student, width, heads, batch, context, mixed=False, training=True):
    """What autograd keeps of a call."""
    import torch

    from course_utils.memory import saved_bytes

    layer = student.Attention(width, heads).train(training)
    x = torch.ones(batch, context, width, requires_grad=True) * 1  # no leaf: autocast converts a leaf only once
    results = []

    def call(x):
        results.append(layer(x))
        return results[0]

    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
        count = saved_bytes(call, x, exclude=layer)
    return {
        "bytes kept for the backward pass": count,
        "shape": list(results[0].shape),
        "has a backward pass": results[0].requires_grad,
    }


def some(batch, context, width, dtype=torch.float64, seed=0, scale=1.0):
    """x, qkv and out."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (batch, context, width), (3 * width, width), (width, width)
    return [(scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype) for shape in shapes]


@st.composite
def calls(draw, least=1):
    """Anything in float64: in lower precision two right answers may differ. The layer is in either mode."""
    heads = draw(st.integers(1, 4))
    width = heads * draw(st.integers(1, 4))
    x = draw(tensors((draw(st.integers(1, 3)), draw(st.integers(least, 6)), width), torch.float64, contiguous=None))
    return [x, draw(tensors((3 * width, width), torch.float64)), draw(tensors((width, width), torch.float64)), heads, draw(st.booleans())]


exercise.requirement(
    "it holds the weights of qkv and out, made by nn.Linear without bias, and nothing else",
    points=0.25,
    probe=holds,
    visible=[given(6, 2, says="Attention(6, 2)")],
    edges={
        "one head": given(4, 1),
        "a head for each number": given(3, 3),
        "one number": given(1, 1),
        "on another device": given(8, 4, "meta"),
    },
    domain=st.builds(lambda heads, size, device: given(heads * size, heads, device),
                     st.integers(1, 5), st.integers(1, 5), any_of("cpu", "meta")),
    hint="Two nn.Linear layers, qkv and out, and no other tensors: you needn't store a mask.",
)  # fmt: skip
small = [tensor.round(decimals=1) for tensor in some(1, 3, 4, seed=2)]
exercise.requirement(
    "qkv's outputs are queries, keys, values; each head's numbers are consecutive; merged heads are multiplied by out",
    points=0.75,
    probe=last_token,
    visible=[
        given(*[t.float() for t in small], 2,
              says="the output for the last of 3 tokens, width 4, 2 heads, with weights set by the test"),
        given(*some(2, 3, 6, torch.float32, seed=3), 3, says="the output for the last of 3 tokens in each of 2 sequences, width 6, 3 heads"),
        given(*some(1, 2, 4, torch.float32, seed=5), 2, False,
              says="the output for the last of 2 tokens, width 4, 2 heads, in evaluation mode"),
    ],
    edges={
        "one head": given(*some(2, 3, 4), 1),
        "a head for each number": given(*some(2, 3, 4), 4),
        "one token": given(*some(2, 1, 4), 2),
        "all sizes equal": given(*some(4, 4, 4), 4),
        "one of everything": given(*some(1, 1, 1), 1),
        "more tokens than a block": given(*some(1, 150, 4), 2),
        "large scores": given(*some(1, 5, 4, scale=30.0), 2),
        "in evaluation mode": given(*some(2, 3, 4), 2, False),
        "float32": given(*some(1, 4, 4, torch.float32), 2),
        "bfloat16": given(*some(1, 4, 4, torch.bfloat16), 2),
        "float16": given(*some(1, 4, 4, torch.float16), 2),
        "on another device": given(*[t.to("meta") for t in some(2, 3, 4)], 2),
        "not contiguous": given(some(3, 4, 4)[0].permute(1, 2, 0)[:, :, :2].contiguous().mT, *some(1, 1, 4)[1:], 2),
    },
    domain=calls().map(lambda call: given(*call)),
    hint="Along qkv's outputs, what changes most slowly: the part (query, key or value), the head, or the index "
         "within the head? In which order does out expect the heads' results?",
)
exercise.requirement(
    "a token sees itself and the tokens before it, in training and in evaluation",
    points=0.5,
    probe=causal,
    visible=[
        given(*small, 2, says="a layer in training mode and 3 tokens, each changed in turn"),
        given(*small, 2, False, says="a layer in evaluation mode and 3 tokens, each changed in turn"),
        given(small[0][:, :2], *small[1:], 2, says="a layer in training mode and 2 tokens, each changed in turn"),
    ],
    edges={
        "one token": given(*some(2, 1, 4), 2),
        "two tokens, two sequences, one head": given(*some(2, 2, 4), 1),
        "all sizes equal": given(*some(4, 4, 4), 4, False),
        "many tokens": given(*some(1, 40, 4), 2),
    },
    domain=calls().map(lambda call: given(*call)),
    hint="If you change a token, the outputs before it must stay the same; its own output and all later ones change.",
)
exercise.requirement(
    "gradients reach x, out, and the parts of qkv that make queries, keys and values",
    points=0.25,
    probe=gradients,
    visible=[
        given(*small, 2, says="the backward pass of 3 tokens, width 4, 2 heads"),
        given(*[small[0][:, :1], *small[1:]], 2, says="the backward pass of a single token, whose attention weight is always 1"),
        given(*small, 2, False, says="the backward pass of 3 tokens, width 4, 2 heads, in evaluation mode"),
    ],
    edges={
        "one head": given(*some(2, 3, 4), 1),
        "one sequence, two tokens": given(*some(1, 2, 4), 2),
        "one token of many sequences": given(*some(3, 1, 4), 2),
        "in evaluation mode": given(*some(2, 3, 4), 2, False),
    },
    domain=calls().map(lambda call: given(*call)),
    hint="Detach nothing between x and the result, and compute nothing without gradients.",
)
exercise.requirement(
    "autograd keeps what the plan's table lists and no more: no T × T attention weights, no copies",
    points=0.25,
    probe=kept,
    rules={"bytes kept for the backward pass": "at most"},
    visible=[
        given(8, 2, 2, 64, says="what autograd keeps for Attention(8, 2) with 2 sequences of 64 tokens"),
        given(8, 2, 1, 64, True, says="what autograd keeps for Attention(8, 2) with 64 tokens, under autocast"),
    ],
    edges={
        "one head": given(8, 1, 2, 64),
        "a head for each number": given(8, 8, 2, 64),
        "many tokens": given(4, 2, 1, 512),
        "in evaluation mode": given(8, 2, 2, 64, False, False),
    },
    domain=st.builds(lambda heads, size, b, t, *modes: given(heads * size, heads, b, 16 * t, *modes),
                     st.integers(1, 4), st.integers(2, 6), st.integers(1, 3), st.integers(1, 8), st.booleans(), st.booleans()),
    hint="Are T × T weights kept, or copies of q, k and v? Which operation avoids both?",
)  # fmt: skip

SPLIT = '"b t (three h e) -> three b h t e"'
CALL = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
exercise.mistake("In your code, a token sees the future.", ", is_causal=True →")
exercise.mistake("The mask is reversed: a token sees what comes after it.",
                 f"{CALL} → F.scaled_dot_product_attention(q.flip(2), k.flip(2), v.flip(2), is_causal=True).flip(2)")  # fmt: skip
exercise.mistake("A token must not see the future in evaluation mode either.", "is_causal=True → is_causal=self.training")
order = "The outputs of qkv are first all queries, then all keys, then all values."
exercise.mistake(order, "(three h e) → (h three e)")
exercise.mistake(order, "(three h e) → (h e three)")
neighbors = "A head's numbers are consecutive, both when you split and when you merge."
exercise.mistake(neighbors, "(three h e) → (three e h)")
exercise.mistake(neighbors, '(h e)") → (e h)")')
exercise.mistake(neighbors, "(three h e) → (three e h)", '(h e)") → (e h)")')
exercise.mistake("Merging takes more than a new shape: first move each token's heads next to each other.",
                 'rearrange(gathered, "b h t e -> b t (h e)") → gathered.reshape(x.shape)')  # fmt: skip
exercise.mistake("The product with out is missing: it combines the results of the heads.", "return self.out( → return (")
exercise.mistake("You computed a single head of the full width, not several heads.",
                 f'{SPLIT}, three=3, h=self.heads → "b t (three h e) -> three b h t e", three=3, h=1')  # fmt: skip
exercise.mistake("Divide the scores by the square root of the head size.", "is_causal=True → is_causal=True, scale=1.0")
exercise.mistake("The scores are scaled twice: PyTorch's attention already scales them.",
                 f"{CALL} → F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / q.shape[-1])")  # fmt: skip
exercise.mistake("The scores are scaled twice: PyTorch's attention already scales them.",
                 "(q, k, v, is → (q / q.shape[-1] ** 0.5, k, v, is")  # fmt: skip
exercise.mistake("Divide the scores by the square root of the head size, not of the full width.",
                 "is_causal=True → is_causal=True, scale=x.shape[-1] ** -0.5")  # fmt: skip
exercise.mistake("qkv and out must not have a bias.", "3 * width, bias=False → 3 * width")
exercise.mistake("out must not have a bias.", "(width, width, bias=False) → (width, width)")
exercise.mistake("qkv and out must not have a bias.", "3 * width, bias=False → 3 * width", "(width, width, bias=False) → (width, width)")
exercise.mistake(f"Queries and keys are swapped. {order}", "q, k, v = → k, q, v =")
exercise.mistake(f"Keys and values are swapped. {order}", "q, k, v = → q, v, k =")
exercise.mistake(f"Queries and values are swapped. {order}", "q, k, v = → v, k, q =")
exercise.mistake("The residual connection belongs to the block, not to Attention.", "return self.out( → return x + self.out(")
exercise.mistake("Keys and values have to let gradients through.", "(q, k, v, is → (q, k.detach(), v.detach(), is")
exercise.mistake("Keys have to let gradients through.", "(q, k, v, is → (q, k.detach(), v, is")
exercise.mistake("Nothing can be trained: no gradient gets through.",
                 "def forward → @torch.no_grad()\n    def forward")  # fmt: skip
exercise.mistake("Record gradients in evaluation mode, too: it only switches layers such as dropout.",
                 "return self.out( → with torch.set_grad_enabled(self.training):\n            return self.out(")  # fmt: skip
exercise.mistake("x gets no gradient, so earlier layers couldn't learn.", "self.qkv(x) → self.qkv(x.detach())")
exercise.mistake("out gets no gradient: call the layer instead of using its .data.",
                 'return self.out(rearrange(gathered, "b h t e -> b t (h e)")) → return F.linear(rearrange(gathered, "b h t e -> b t (h e)"), self.out.weight.data)',
                 together_with=[f'{SPLIT}, three=3, h=self.heads → "b t (three h e) -> three b h t e", three=3, h=1',
                                f"{CALL} → F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / q.shape[-1])",
                                "is_causal=True → is_causal=True, scale=1.0", "q, k, v = → k, q, v =",
                                "is_causal=True → is_causal=True, scale=x.shape[-1] ** -0.5"])  # fmt: skip
exercise.mistake("You store a mask, which isn't needed: the attention operation has its own.",
                 "self.heads = heads → self.heads = heads; self.register_buffer('mask', torch.ones(width, width).tril())")  # fmt: skip
copied = "More is kept than planned: a second copy of queries, keys, values or the result of attention."
exercise.mistake("T × T weights are kept for the backward pass: use the fused operation, which doesn't keep them.",
                 f"{CALL} → (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1), float('-inf')).softmax(dim=-1) @ v")  # fmt: skip
exercise.mistake("A T × T mask is kept for the backward pass: use is_causal=True, which needs no mask.",
                 f"{CALL} → F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril())")  # fmt: skip
exercise.mistake(copied, "is_causal=True → is_causal=True, scale=1.0", "(q, k, v, is → (q / q.shape[-1] ** 0.5, k, v, is")
exercise.mistake("If its arguments have three dimensions, the attention operation isn't fused, and T × T weights "
                 "are kept.",
                 f"{CALL} → F.scaled_dot_product_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), is_causal=True).unflatten(0, q.shape[:2])")  # fmt: skip

# %% mistake: three layers in place of one
# says: One layer, qkv, makes queries, keys and values.
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (rearrange(f(x), "b t (h e) -> b h t e", h=self.heads) for f in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% mistake: a mask made on the CPU
# says: T × T weights are kept for the backward pass: use the fused operation, which doesn't keep them.
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% mistake: merged in the product, which copies
# says: More is kept than planned: a second copy of queries, keys, values or the result of attention.
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)

        weight = rearrange(self.out.weight, "d (h e) -> h e d", h=self.heads)
        return torch.einsum("bhte,hed->btd", y, weight)

# %% wrong: computes in float32, whatever the dtype
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x).float(), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.linear(rearrange(y, "b h t e -> b t (h e)"), self.out.weight.float())

# %% wrong: squeezes a batch of one
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)")).squeeze(0)

# %% wrong: a dropout of its own in training
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        p = 0.1 if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: the first token left to itself
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 2)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: three dimensions in place of four: it is not fused (from the statement)
class Attention(nn.Module):
    """Causal self-attention with heads of width / heads neighboring numbers each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three (b h) t e", three=3, h=self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "(b h) t e -> b t (h e)", h=self.heads))

# %% wrong: queries, keys and values are made contiguous, and copied (from the statement)
class Attention(nn.Module):
    """Causal self-attention with heads of width / heads neighboring numbers each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        b, t, d = x.shape
        q, k, v = (
            part.reshape(b, t, self.heads, d // self.heads).transpose(1, 2).contiguous()
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().reshape(b, t, d).clone())

# %% wrong: softmax by hand (from the statement)
class Attention(nn.Module):
    """Causal self-attention with heads of width / heads neighboring numbers each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        q, k, v = rearrange(self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.heads)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        y = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% wrong: three products, each of which keeps its own copy of x under autocast (from the statement)
class Attention(nn.Module):
    """Causal self-attention; each head has width / heads consecutive numbers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """For each token, the information that its heads collect from the tokens so far."""
        q, k, v = (
            rearrange(F.linear(x, w), "b t (h e) -> b h t e", h=self.heads)
            for w in self.qkv.weight.chunk(3)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(rearrange(y, "b h t e -> b t (h e)"))

# %% right: unflatten, transpose, flatten
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

# %% right: split in two steps, and unbound
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h = heads
        self.out = nn.Linear(width, width, bias=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x):
        parts = rearrange(self.qkv(x), "b t (three h e) -> b three h t e", three=3, h=self.h).unbind(1)
        y = F.scaled_dot_product_attention(*parts, is_causal=True, scale=(x.shape[-1] / self.h) ** -0.5)
        return F.linear(rearrange(y, "b h t e -> b t (h e)"), self.out.weight)

# %% right: one name after the other
class Attention(nn.Module):
    def __init__(self, width, heads):
        nn.Module.__init__(self)
        self.heads, self.width = heads, width
        for name, outputs in (("qkv", 3 * width), ("out", width)):
            self.add_module(name, nn.Linear(width, outputs, bias=False))

    def forward(self, x):
        q, k, v = self.qkv(x).split(self.width, dim=-1)
        q = rearrange(q, "b t (h e) -> b h t e", h=self.heads)
        k = rearrange(k, "b t (h e) -> b h t e", h=self.heads)
        v = rearrange(v, "b t (h e) -> b h t e", h=self.heads)
        gathered = F.scaled_dot_product_attention(query=q, key=k, value=v, is_causal=True)
        return self.out(gathered.permute(0, 2, 1, 3).reshape(x.shape))

# %% right: views with explicit sizes, as in GPT-2
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        assert width % heads == 0
        self.n_head, self.n_embd = heads, width
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))
