import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("Sketch the steps of section 3, from ids to logits: what is added, what is normalized, and in what order?")


def a_block(width, bias=False):
    """A block of our own. A matrix in it belongs to no layer, and one of its norms is not as it was made."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.out = torch.nn.Linear(width, width, bias=bias)
            self.mix = torch.nn.Parameter(torch.ones(width, width))
            self.norm_1, self.norm_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            torch.nn.init.constant_(self.norm_2.weight, 2.0)
            torch.nn.init.constant_(self.norm_2.bias, 0.5)

        def forward(self, x):
            return x + self.norm_2(self.out(self.norm_1(x)) @ self.mix)

    return Block()


def scores(student, ids, tokens, places, scale, shift, factors, training=True):
    """The logits of a model, in training or in evaluation mode, whose blocks add factor · sin(x), one after the other."""
    import torch

    class Plus(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x + self.factor * x.sin()

    blocks = (Plus(factor) for factor in factors)
    model = student.Transformer(tokens.shape[0], places.shape[0], tokens.shape[1], blocks)
    model = model.to(tokens.device, tokens.dtype).train(training)
    with torch.no_grad():
        model.tokens.weight.copy_(tokens)
        model.places.weight.copy_(places)
        model.norm.weight.copy_(scale)
        model.norm.bias.copy_(shift)
        return model(ids)


def new_model(student, vocabulary, context, width, count):
    """A model with blocks of our own."""
    return student.Transformer(vocabulary, context, width, (a_block(width) for _ in range(count)))


def trained(student, vocabulary, context, width, count, device="cpu"):
    """The parameters of a model, by name."""
    import torch

    with torch.device(device):
        model = new_model(student, vocabulary, context, width, count)
    shapes = {name: list(p.shape) for name, p in sorted(model.named_parameters())}
    of_blocks = [name for name in shapes if name.startswith("blocks.")]
    layers = sorted({".".join(name.split(".")[:2]) for name in of_blocks})
    return {
        "not of the blocks": [name for name in shapes if name not in of_blocks],
        "blocks": layers,
        "of blocks.0": [name for name in of_blocks if name.startswith("blocks.0.")],
        "shapes": shapes,
        "frozen": [name for name, p in model.named_parameters() if not p.requires_grad],
        "device": sorted({p.device.type for p in model.parameters()}),
    }


def first_weights(student, vocabulary, context, width, count):
    """What the weights of a new model look like. The layers of its blocks have biases."""
    biases = []

    def blocks():
        for _ in range(count):
            block = a_block(width, bias=True)
            block.mix.requires_grad_(False)  # a matrix all the same
            bias = block.out.bias
            biases.append((bias, bias.detach().clone()))
            yield block

    model = student.Transformer(vocabulary, context, width, blocks())
    next_one = new_model(student, vocabulary, context, width, count)
    matrices = {name: p.detach().double() for name, p in sorted(model.named_parameters()) if p.dim() == 2}
    norms = {name: p.detach() for name, p in sorted(model.named_parameters()) if "norm" in name and p.dim() == 1}
    twins = [name for name, p in model.named_parameters() if p.dim() == 2 and any(
        p is not q and p.shape == q.shape and bool((p == q).all()) for q in (*model.parameters(), *next_one.parameters())
    )]
    return {
        "std of each matrix": {name: p.std().item() for name, p in matrices.items()},
        "mean of each matrix": {name: p.mean().item() for name, p in matrices.items()},
        "mean fourth power of each matrix, over std ** 4":
            {name: (p**4).mean().item() / max(p.std().item(), 1e-9) ** 4 for name, p in matrices.items()},
        "smallest and largest number of each norm": {name: [p.min().item(), p.max().item()] for name, p in norms.items()},
        "biases in the blocks that changed": sum(not bias.equal(before) for bias, before in biases),
        "the same numbers in another matrix, or in the next model": sorted(twins),
    }  # fmt: skip


def reached(student, ids, vocabulary, context, width, count, choice, training=True):
    """What gets a gradient if the loss depends only on the logit of one token."""
    import torch

    model = new_model(student, vocabulary, context, width, count).double().train(training)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype))
    result = model(ids)
    weights = torch.randn(result.shape, generator=generator, dtype=torch.float64)
    if result.requires_grad:
        (result * weights)[..., choice].sum().backward()

    def rows(p):
        return [] if p.grad is None else [i for i, row in enumerate(p.grad) if row.abs().max() > 1e-12]

    got = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-12}
    names = sorted(name for name, _ in model.named_parameters())
    return {
        "tokens whose vectors get a gradient": rows(model.tokens.weight),
        "positions whose vectors get a gradient": rows(model.places.weight),
        "parameters without a gradient": [name for name in names if name not in got],
    }


def some(*shape, seed=0, dtype=torch.float64, scale=1.0):
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (scale * numbers).to(dtype)


def a_model(ids, vocabulary, context, width, factors=(0.5, -2.0), dtype=torch.float64, ids_dtype=torch.int64, seed=0):
    """ids, tokens, places, scale, shift, factors."""
    shapes = (vocabulary, width), (context, width), (width,), (width,)
    numbers = [some(*shape, seed=seed + n, dtype=dtype) for n, shape in enumerate(shapes)]
    return [torch.tensor(ids, dtype=ids_dtype), *numbers, list(factors)]


@st.composite
def models(draw):
    vocabulary, d, t = draw(st.tuples(st.integers(1, 6), st.integers(2, 5), st.integers(1, 4)))
    context = t + draw(st.integers(0, 3))
    ids = draw(st.lists(st.lists(st.integers(0, vocabulary - 1), min_size=t, max_size=t), min_size=1, max_size=3))
    f = torch.float64
    factors = draw(st.lists(any_of(0.5, 0.1, 2.0, -1.5, -3.0), max_size=4))
    return given(torch.tensor(ids), draw(tensors((vocabulary, d), f)), draw(tensors((context, d), f)),
                 draw(tensors((d,), f)), draw(tensors((d,), f)), factors, draw(st.booleans()))  # fmt: skip


@st.composite
def passes(draw):
    vocabulary, t = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    ids = draw(st.lists(st.lists(st.integers(0, vocabulary - 1), min_size=t, max_size=t), min_size=1, max_size=2))
    return given(torch.tensor(ids), vocabulary, t + draw(st.integers(0, 3)), draw(st.integers(3, 6)),
                 draw(st.integers(0, 3)), draw(st.integers(0, vocabulary - 1)), draw(st.booleans()))  # fmt: skip


exercise.requirement(
    "token plus positional embedding, the blocks in order, the norm, then the dot products with every row of tokens",
    points=1.25,
    probe=scores,
    visible=[
        given(*a_model([[2, 0]], 3, 4, 4, dtype=torch.float32),
              says="the logits of Transformer(3, 4, 4, blocks) for ids [[2, 0]], with weights and two blocks "
                   "made by the test"),
        given(*a_model([[1], [0]], 3, 1, 4, (), torch.float32), False,
              says="the logits of Transformer(3, 1, 4, []) for ids [[1], [0]], in evaluation mode, with weights set by "
                   "the test"),
        given(*a_model([[0, 2]], 3, 3, 3, (1.5,), torch.float32, seed=9),
              says="the logits of Transformer(3, 3, 3, blocks) for ids [[0, 2]], with weights and a block made "
                   "by the test"),
    ],
    edges={
        "as many tokens as the context": given(*a_model([[2, 0, 1]], 3, 3, 4)),
        "one token of a long context": given(*a_model([[2]], 3, 9, 4)),
        "a vocabulary of one": given(*a_model([[0, 0]], 1, 3, 4)),
        "all sizes equal": given(*a_model([[0, 1, 2, 3]] * 4, 4, 4, 4)),
        "the same token at each position": given(*a_model([[1, 1, 1]], 3, 4, 4)),
        "four blocks": given(*a_model([[2, 0]], 3, 4, 4, (0.5, -3.0, 2.0, 0.1))),
        "in evaluation mode": given(*a_model([[2, 0]], 3, 4, 4), False),
        "ids in 32 bits": given(*a_model([[2, 0]], 3, 4, 4, ids_dtype=torch.int32)),
        "on another device": given(*[x.to("meta") if torch.is_tensor(x) else x for x in a_model([[2, 0]], 3, 4, 4)]),
    },
    domain=models(),
    hint="Token plus positional embedding, the blocks, the norm, and then the dot products with every row of the token embedding.",
)  # fmt: skip
exercise.requirement(
    "only tokens, places, norm and the parameters of the blocks are trained, under these names",
    points=0.5,
    probe=trained,
    visible=[given(11, 5, 6, 1, says="the parameters of Transformer(11, 5, 6, blocks) with one block")],
    edges={
        "no blocks": given(3, 4, 5, 0),
        "three blocks": given(3, 4, 5, 3),
        "all sizes equal": given(4, 4, 4, 2),
        "on another device": given(3, 4, 5, 2, "meta"),
    },
    domain=st.builds(given, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 3),
                     any_of("cpu", "meta")),
    hint="The names are tokens, places, blocks and norm.",
)  # fmt: skip
exercise.requirement(
    "a new model's matrices, including the blocks', are normally distributed with mean 0 and std 0.02; vectors stay as they were",
    points=0.75,
    probe=first_weights,
    band=["std of each matrix", "mean of each matrix", "mean fourth power of each matrix, over std ** 4"],
    visible=[
        given(96, 128, 64, 1, says="the initial weights of Transformer(96, 128, 64, blocks) with one block"),
        given(128, 96, 48, 2, says="the initial weights of Transformer(128, 96, 48, blocks) with two blocks"),
    ],
    edges={
        "no blocks": given(128, 96, 48, 0),
        "tables of one size": given(64, 64, 64, 1),
        "wide": given(64, 32, 96, 1),
    },
    domain=st.builds(given, any_of(96, 128), any_of(64, 96), any_of(32, 48, 64), st.integers(0, 2)),
    hint="After you've stored the blocks, go through all parameters. Which are matrices?",
)
exercise.requirement(
    "gradients reach every parameter, and the token embedding through both of its uses",
    points=0.5,
    probe=reached,
    visible=[
        given(torch.tensor([[1, 3]]), 6, 4, 4, 1, 5,
              says="the backward pass of ids [[1, 3]], with one block, if the loss depends only on the logit of token 5"),
        given(torch.tensor([[0], [2]]), 3, 2, 4, 0, 0, False,
              says="the backward pass of ids [[0], [2]], in evaluation mode, without blocks, if the loss depends only on the logit of token 0"),
    ],
    edges={
        "three blocks": given(torch.tensor([[1, 3]]), 6, 4, 4, 3, 0),
        "the same token everywhere": given(torch.tensor([[1, 1], [1, 1]]), 3, 4, 4, 1, 1),
        "a vocabulary of one": given(torch.tensor([[0, 0]]), 1, 3, 4, 1, 0),
        "in evaluation mode": given(torch.tensor([[1, 3]]), 6, 4, 4, 1, 0, False),
    },
    domain=passes(),
    hint="Detach nothing on the way, and use the weights themselves, not their .data.",
)  # fmt: skip

exercise.mistake("PyTorch doesn't look into a plain list: use a container from torch.nn.",
                 "nn.Sequential(*blocks) → list(blocks)",
                 "self.norm(self.blocks(x)) → self.norm(nn.Sequential(*self.blocks)(x))")  # fmt: skip
exercise.mistake("The output layer is the token embedding: it has no matrix of its own.",
                 "self.norm = nn.LayerNorm(width) → self.norm = nn.LayerNorm(width); self.head = nn.Linear(width, vocabulary, bias=False)",
                 "F.linear(self.norm(self.blocks(x)), self.tokens.weight) → self.head(self.norm(self.blocks(x)))")  # fmt: skip
exercise.mistake("The positional embedding is missing: each position has a vector of its own.", "+ self.places.weight[: ids.shape[1]] →")
exercise.mistake("Positions begin at 0: use the first t rows "
                 "of the table.", "weight[: ids.shape[1]] → weight[-ids.shape[1] :]")
exercise.mistake("Look up the positional embedding by position, not by token.", "self.places.weight[: ids.shape[1]] → self.places(ids % self.places.num_embeddings)")
exercise.mistake("Add the two vectors: the token's and that of its position.", "self.tokens(ids) + → self.tokens(ids) *")
exercise.mistake("Don't add any other parameters: the logits are the dot products as they are.",
                 "self.norm = nn.LayerNorm(width) → self.norm = nn.LayerNorm(width); self.gain = nn.Parameter(torch.ones(1))",
                 "self.tokens.weight) → self.tokens.weight) * self.gain")  # fmt: skip
exercise.mistake("The last norm is missing.", "self.norm(self.blocks(x)) → self.blocks(x)")
exercise.mistake("The norm should come after the blocks.", "self.norm(self.blocks(x)) → self.blocks(self.norm(x))")
exercise.mistake("The blocks are missing: x goes through each of them.", "self.norm(self.blocks(x)) → self.norm(x)")
exercise.mistake("Only the first block is used.", "self.norm(self.blocks(x)) → self.norm(self.blocks[:1](x))")
exercise.mistake("Every block gets the embeddings: each should get the output of the one before it.",
                 "self.norm(self.blocks(x)) → self.norm(x + sum(block(x) - x for block in self.blocks))")  # fmt: skip
exercise.mistake("The blocks are used in the wrong order.", "nn.Sequential(*blocks) → nn.Sequential(*list(blocks)[::-1])")
exercise.mistake("Return logits: the loss turns them into probabilities.", "self.tokens.weight) → self.tokens.weight).softmax(dim=-1)")
exercise.mistake("Return logits: the loss turns them into probabilities.", "self.tokens.weight) → self.tokens.weight).log_softmax(dim=-1)")
exercise.mistake("Return logits, in evaluation mode too: they are the dot products as they are.",
                 "return F.linear( → logits = F.linear(",
                 "self.tokens.weight) → self.tokens.weight)\n        return logits if self.training else logits.softmax(dim=-1)")  # fmt: skip
exercise.mistake("Don't scale the logits: they are the dot products as they are.", "self.tokens.weight) → self.tokens.weight) / x.shape[-1] ** 0.5")
exercise.mistake("Don't scale the token embeddings.", "x = self.tokens(ids) + → x = self.tokens(ids) * self.tokens.embedding_dim**0.5 +")
exercise.mistake("Draw the matrices again: nn.Embedding starts with a std of 1, not 0.02.", "nn.init.normal_(p, std=0.02) → pass")
exercise.mistake("Your code leaves the blocks' matrices as nn.Linear initialized them: draw them again, too.",
                 "for p in self.parameters() → for p in (self.tokens.weight, self.places.weight)")  # fmt: skip
exercise.mistake("Your code leaves the tables as nn.Embedding initialized them, with a std of 1: draw them again, too.",
                 "for p in self.parameters() → for p in self.blocks.parameters()")  # fmt: skip
exercise.mistake("Draw the matrices again: nn.Embedding starts with a std of 1, not 0.02.",
                 "for p in self.parameters() → for p in (self.tokens.weight, self.places.weight)", "(p, std=0.02) → (p, 0.02)")  # fmt: skip
exercise.mistake("0.02 is the standard deviation, not the variance.", "std=0.02 → std=0.02**0.5")
exercise.mistake("0.02 is the standard deviation: don't square it.", "std=0.02 → std=0.02**2")
exercise.mistake("0.02 is the standard deviation, and the mean is 0.", "(p, std=0.02) → (p, 0.02)")
exercise.mistake("Draw from a normal distribution, not a uniform one.", "nn.init.normal_(p, std=0.02) → nn.init.uniform_(p, -0.02 * 3**0.5, 0.02 * 3**0.5)")
exercise.mistake("Draw from a normal distribution, not a uniform one.", "nn.init.normal_(p, std=0.02) → nn.init.uniform_(p, -0.02, 0.02)")
exercise.mistake("A normal distribution has tails: "
                 "yours are cut off.", "nn.init.normal_(p, std=0.02) → nn.init.trunc_normal_(p, std=0.02, a=-0.04, b=0.04)")
exercise.mistake("Leave the vectors as they were initialized: the norms' scales of 1 and shifts of 0.", "if p.dim() == 2: → if True:")
exercise.mistake("In your code, every new model has the same weights: leave the seed to the caller.",
                 "for p in self.parameters(): → torch.manual_seed(0)\n        for p in self.parameters():")  # fmt: skip
exercise.mistake("In your code, all matrices of the "
                 "same shape have the same numbers: "
                 "don't set a seed.", "if p.dim() == 2: → torch.manual_seed(0)\n            if p.dim() == 2:")
exercise.mistake("Used as the output layer, the table gets no gradient: its .data has none.", "(self.blocks(x)), self.tokens.weight) → (self.blocks(x)), self.tokens.weight.data)")
exercise.mistake("Used for lookups at the input, the table gets no gradient.", "self.tokens(ids) → self.tokens.weight.data[ids]")
exercise.mistake("The positional embedding gets no gradient: .data has none.", "self.places.weight[ → self.places.weight.data[")
through_the_blocks = "The embeddings get no gradient through the blocks."
exercise.mistake(through_the_blocks, "self.norm(self.blocks(x)) → self.norm(self.blocks(x.detach()))")
exercise.mistake(through_the_blocks, "self.tokens(ids) → self.tokens.weight.data[ids]", "self.places.weight[ → self.places.weight.data[")

# %% wrong: draws the layers that it knows, and leaves a matrix of the block's own
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        self.apply(self.draw)

    @staticmethod
    def draw(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            with torch.no_grad():
                module.weight.normal_(0.0, 0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[-1], device=ids.device))
        return self.norm(self.blocks(x)) @ self.tokens.weight.T

# %% wrong: places on the CPU, whatever the device
# unseen: ids and weights on another device are for the hidden inputs to find
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        one_hot = torch.zeros(*ids.shape, len(self.tokens.weight)).scatter(-1, ids[..., None].long(), 1.0)
        x = one_hot.to(self.tokens.weight.dtype) @ self.tokens.weight + self.places.weight[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)

# %% wrong: all places, for which a sequence has to be as long as the context
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)

# %% wrong: goes through blocks twice, which a generator allows once
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        for block in blocks:
            for p in block.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, std=0.02)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)

# %% wrong: only modules whose class it knows are drawn anew, so that a tensor of the attention is not
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.02)
        for block in self.blocks:
            for layer in (getattr(block, "up", None), getattr(block, "down", None)):
                if layer is not None:
                    nn.init.normal_(layer.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)

# %% wrong: the head reads the table, but gives it no gradient (from the statement)
class Transformer(nn.Module):
    """Scores for the next token, at each position."""

    def __init__(
        self, vocabulary: int, context: int, width: int, blocks: Iterable[nn.Module]
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocabulary"]:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight.data)

# %% wrong: only nn.Linear and nn.Embedding are drawn anew (from the statement)
class Transformer(nn.Module):
    """Scores for the next token, at each position."""

    def __init__(
        self, vocabulary: int, context: int, width: int, blocks: Iterable[nn.Module]
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocabulary"]:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T

# %% wrong: vectors are set back, too (from the statement)
class Transformer(nn.Module):
    """Scores for the next token, at each position."""

    def __init__(
        self, vocabulary: int, context: int, width: int, blocks: Iterable[nn.Module]
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocabulary"]:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T

# %% wrong: scales what adds to the residual stream, as GPT-2 did (from the statement)
class Transformer(nn.Module):
    """Logits of the next token, at each position."""

    def __init__(
        self, vocabulary: int, context: int, width: int, blocks: Iterable[nn.Module]
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() != 2:
                continue
            std = 0.02
            if name.endswith(("out.weight", "down.weight")):  # these add to the residual stream
                std /= math.sqrt(2 * len(self.blocks))
            nn.init.normal_(p, mean=0.0, std=std)

    def forward(self, ids: Int[Tensor, "b t"]) -> Float[Tensor, "b t vocabulary"]:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T

# %% right: ModuleList, and a product by einsum
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return torch.einsum("btd,vd->btv", self.norm(x), self.tokens.weight)

# %% right: sums in one expression, randn_like
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                p.data = 0.02 * torch.randn_like(p)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)

# %% right: a head that is tied to the table
class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, blocks):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential()
        for number, block in enumerate(blocks):
            self.blocks.add_module(str(number), block)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        with torch.no_grad():
            for p in self.parameters():
                if p.ndim > 1:
                    p.copy_(torch.normal(torch.zeros_like(p), 0.02))

    def forward(self, ids):
        places = self.places.weight.narrow(0, 0, ids.size(1)).unsqueeze(0).expand(len(ids), -1, -1)
        return self.head(self.norm(self.blocks(self.tokens(ids) + places)))
