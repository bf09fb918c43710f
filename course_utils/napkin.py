"""What a training run takes, before it is run: bytes by what they are for, and time.

    from course_utils import napkin

    model = napkin.PUBLISHED["Llama 3.1 8B"]
    napkin.memory(model, napkin.Step(batch=1, context=8_192))
    # {'parameters': 16060522496, 'gradients': …, 'master copy': …, 'optimizer state': …, 'activations': …}
    napkin.training(model.parameters, 15e12, peak=989.4e12, mfu=0.4).days(cards=1_024)

A ledger, not a simulation: what frameworks add (fragments, buffers for communication, temporaries) is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from course_utils.facts import FACTS


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder-only Transformer language model; as it stands by default, that of lecture 08.

    Attributes:
        layers, width, vocabulary: in elements, where that is the unit.
        heads: of the queries. They share ``width`` among them.
        kv_heads: of keys and values; None means as many as heads.
        feed_forward: width between the feed-forward's matrices; None means 4 · width.
        gated: the feed-forward has a third matrix, a gate with SiLU, in place of GELU between two.
        positions: rows of a learned table of places; 0 where there is none, as with rotary embeddings.
        tied: the head is the table of tokens, and counts once.
        biases: every matrix of a layer has one.
        norm_vectors: 2 for LayerNorm (a scale and a shift), 1 for RMSNorm.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    kv_heads: int | None = None
    feed_forward: int | None = None
    gated: bool = False
    positions: int = 0
    tied: bool = False
    biases: bool = False
    norm_vectors: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: a Transformer has at least 1")
        if self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot share a width of {self.width:,} evenly: choose a number that divides it"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} of keys and values evenly")

    @property
    def kv_width(self) -> int:
        """Elements of the keys of one token, over all heads; its values have as many."""
        return self.width // self.heads * (self.kv_heads or self.heads)

    @property
    def hidden(self) -> int:
        """Width between the feed-forward's matrices."""
        return self.feed_forward or 4 * self.width

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        into_attention, into_hidden = self.width + 2 * self.kv_width, self.hidden * (1 + self.gated)
        # Each matrix goes from an input to some outputs; a bias has one number for each output.
        matrices = [
            (self.width, into_attention),
            (self.width, self.width),
            (self.width, into_hidden),
            (self.hidden, self.width),
        ]
        layer = sum((rows + self.biases) * columns for rows, columns in matrices)
        norms = (2 * self.layers + 1) * self.norm_vectors * self.width
        tables = (self.vocabulary * (1 if self.tied else 2) + self.positions) * self.width
        return self.layers * layer + norms + tables


def _published(name: str, layout: Literal["GPT", "Llama"]) -> Transformer:
    def number(what: str) -> int:
        return int(FACTS[f"{name} {what}"].value)

    layers, width, heads = number("layers"), number("width"), number("heads")
    if layout == "GPT":
        vocabulary, positions = number("vocabulary"), number("context")
        return Transformer(layers, width, heads, vocabulary, positions=positions, tied=True, biases=True)
    return Transformer(
        layers,
        width,
        heads,
        int(FACTS["Llama 3.1 vocabulary"].value),
        kv_heads=number("key and value heads"),
        feed_forward=number("feed forward width"),
        gated=True,
        norm_vectors=1,
    )


_LAYOUTS: dict[str, Literal["GPT", "Llama"]] = {
    "GPT-2 small": "GPT",
    "GPT-3": "GPT",
    "Llama 3.1 8B": "Llama",
    "Llama 3.1 70B": "Llama",
    "Llama 3.1 405B": "Llama",
}
PUBLISHED = MappingProxyType({name: _published(name, layout) for name, layout in _LAYOUTS.items()})


@dataclass(frozen=True)
class Recipe:
    """In how many bytes each number of a training is kept; ``master`` is 0 where there is no second copy.

    The optimizer's numbers are float32 in all of them, and so are the statistics of norms and what the loss keeps.
    """

    parameters: int
    gradients: int
    master: int
    activations: int


# Lecture 00, "What fits?": with AdamW 16, 16, 18 and 12 bytes for each parameter.
RECIPES = MappingProxyType(
    {
        "float32": Recipe(4, 4, 0, 4),
        "bfloat16, float32 master copy": Recipe(2, 2, 4, 2),
        "bfloat16, float32 master copy and gradients": Recipe(2, 4, 4, 2),
        "bfloat16 alone": Recipe(2, 2, 0, 2),
    }
)
# Numbers that an optimizer keeps for each parameter (lecture 08, "What they keep"); a counter of steps is left out.
OPTIMIZERS = MappingProxyType({"SGD": 0, "SGD with momentum": 1, "AdamW": 2})
# What each card keeps only its share of: ZeRO's stages, Rajbhandari et al. 2020, arXiv:1910.02054, section 5.
SHARDED = MappingProxyType(
    {
        0: (),
        1: ("optimizer state", "master copy"),
        2: ("optimizer state", "master copy", "gradients"),
        3: ("optimizer state", "master copy", "gradients", "parameters"),
    }
)


@dataclass(frozen=True)
class Step:
    """How one card trains.

    Attributes:
        batch: sequences that pass through a card at once.
        context: tokens of each.
        recipe: a key of `RECIPES`.
        optimizer: a key of `OPTIMIZERS`.
        cards: that train together, each on a batch of its own.
        zero: stage of ZeRO, a key of `SHARDED`: what the cards share.
        checkpointing: each layer keeps its input, and is computed a second time when the backward pass gets there.
        fused_attention: no T × T weights are kept, but a number for each query (Dao et al. 2022, arXiv:2205.14135).
    """

    batch: int
    context: int
    recipe: str = "bfloat16, float32 master copy"
    optimizer: str = "AdamW"
    cards: int = 1
    zero: int = 0
    checkpointing: bool = False
    fused_attention: bool = True

    def __post_init__(self) -> None:
        for name in ("batch", "context", "cards"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name, known in (("recipe", RECIPES), ("optimizer", OPTIMIZERS), ("zero", SHARDED)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}: wanted one of {', '.join(map(str, known))}")


def activations(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that a forward pass keeps for the backward pass on one card, by where they come from.

    The ledger of lecture 08, section 8, for N = batch · context tokens: in each layer the inputs and outputs of two
    norms, queries, keys, values, the result of attention, and what the feed-forward's products and its nonlinearity
    need. Without dropout it is that of Korthikanti et al. 2022, arXiv:2205.05198, section 4.1: there
    s·b·h·34 + 5·a·s²·b bytes in 16 bits, of which 2·s·b·h and 3·a·s²·b are dropout's. Inputs (ids) are not counted.

    With checkpointing "layers" are the inputs of all layers (section 5.1 there: 2·s·b·h bytes each), and the parts of
    the one layer that is being computed again come on top: they are there at its backward pass.
    """
    size, tokens = RECIPES[step.recipe].activations, step.batch * step.context
    between_norms = 4 * model.width  # inputs and outputs of the two norms
    attention = 2 * model.width + 2 * model.kv_width  # queries and result, keys and values
    # GELU: before and after it. Gated: gate and product's two factors, and the product.
    feed_forward = (4 if model.gated else 2) * model.hidden
    layer = {
        "layers": size * tokens * (between_norms + attention + feed_forward),
        "attention weights": (
            4 * tokens * model.heads if step.fused_attention else size * tokens * model.heads * step.context
        ),
        "statistics of norms": 4 * tokens * 2 * model.norm_vectors,
    }
    if step.checkpointing:
        inputs = size * tokens * model.width
        kept = {"layers": inputs * model.layers}
        again = {"one layer again": sum(layer.values()) - inputs}
    else:
        kept, again = {name: model.layers * part for name, part in layer.items()}, {}
    kept["statistics of norms"] = kept.get("statistics of norms", 0) + 4 * tokens * model.norm_vectors
    kept["last norm and head"] = size * tokens * 2 * model.width
    kept["loss"] = 4 * (tokens * model.vocabulary + 1)
    return kept | again


def memory(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that one card holds in a training step, by what they are for; a share of a byte is rounded up.

    The sum is a budget and not the peak: lecture 08, "The sum is not the peak".
    """
    recipe, count = RECIPES[step.recipe], model.parameters
    kinds = {
        "parameters": recipe.parameters * count,
        "gradients": recipe.gradients * count,
        "master copy": recipe.master * count,
        "optimizer state": 4 * OPTIMIZERS[step.optimizer] * count,
    }
    for kind in SHARDED[step.zero]:
        kinds[kind] = math.ceil(kinds[kind] / step.cards)
    return kinds | {"activations": sum(activations(model, step).values())}


@dataclass(frozen=True)
class Run:
    """The work of a training and how fast one card does it.

    Attributes:
        flops: 6 · parameters · tokens (lecture 06; Kaplan et al. 2020, arXiv:2001.08361).
        rate: FLOP/s of one card that go into these.
    """

    flops: float
    rate: float

    @property
    def gpu_hours(self) -> float:
        """Hours of one card. Several share them, so their number does not come in."""
        return self.flops / self.rate / 3600

    def days(self, cards: int) -> float:
        """Days that so many cards take together."""
        return self.gpu_hours / 24 / cards


def training(parameters: float, tokens: float, *, peak: float, mfu: float) -> Run:
    """A training of a model of so many parameters (of a mixture of experts the active ones) on so many tokens.

    Args:
        parameters: N; of those that are multiplied.
        tokens: D, each time that one is read.
        peak: dense FLOP/s of one card in the dtype of the products.
        mfu: the share of it that is reached, more than 0 and at most 1.

    Raises:
        ValueError: a number is not positive and finite, or mfu is more than 1.
    """
    for name, value in (("parameters", parameters), ("tokens", tokens), ("peak", peak), ("mfu", mfu)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}: it must be positive and finite")
    if mfu > 1:
        raise ValueError(f"mfu is {mfu}: give it as a share of the peak, such as 0.4")
    return Run(flops=6 * parameters * tokens, rate=peak * mfu)
