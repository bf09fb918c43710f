"""The arithmetic: a Transformer's parameters and FLOPs, the bytes of a training step, the time of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from course_utils.facts import FACTS


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder-only Transformer language model; the defaults are lecture 08's.

    Attributes:
        layers, width, vocabulary: the sizes, width in elements and vocabulary in tokens.
        heads: the number of query heads.
        kv_heads: the number of key-value heads; None means as many as heads.
        feed_forward: width between the feed-forward's matrices; None means 4 · width.
        gated: the feed-forward block has a third matrix, a gate with SiLU, instead of GELU between two.
        positions: rows of a learned positional embedding; 0 if there is none, as with rotary embeddings.
        tied: the output layer shares the token embedding's weights, which count once.
        biases: every matrix of a layer has a bias.
        norm_vectors: 2 for LayerNorm (a scale and a shift), 1 for RMSNorm.
        head_width: elements of a head; None means that the heads divide ``width`` among them.
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
    head_width: int | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: a Transformer has at least 1")
        if self.head_width is None and self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot share a width of {self.width:,} evenly: choose a number that divides it"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} of keys and values evenly")

    def reaching(self, context: int) -> Transformer:
        """The same model; its learned positional embedding, if any, gets a row for each position of this context."""
        return replace(self, positions=max(self.positions, context)) if self.positions else self

    @property
    def query_width(self) -> int:
        """Elements of one token's queries, over all heads."""
        return self.heads * (self.head_width or self.width // self.heads)

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys, over all heads; its values have as many."""
        return self.query_width // self.heads * (self.kv_heads or self.heads)

    @property
    def hidden(self) -> int:
        """The width between the feed-forward's matrices."""
        return self.feed_forward or 4 * self.width

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Rows (inputs) and columns (outputs) of one layer's matrices; those with the same input count as one."""
        return (
            (self.width, self.query_width + 2 * self.kv_width),
            (self.query_width, self.width),
            (self.width, self.hidden * (1 + self.gated)),
            (self.hidden, self.width),
        )

    @property
    def multiplied(self) -> int:
        """How many weights multiply each token: the matrices and the output layer, not what is looked up or added."""
        layer = sum(rows * columns for rows, columns in self.matrices)
        return self.layers * layer + self.vocabulary * self.width

    @property
    def parts(self) -> dict[str, int]:
        """The number of trained parameters by part of the model."""
        # A bias has one number for each output.
        layer = sum((rows + self.biases) * columns for rows, columns in self.matrices)
        return {
            "layers": self.layers * layer,
            "norms": (2 * self.layers + 1) * self.norm_vectors * self.width,
            "tables and head": (self.vocabulary * (1 if self.tied else 2) + self.positions) * self.width,
        }

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        return sum(self.parts.values())


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
        int(FACTS[f"{name.rpartition(' ')[0]} vocabulary"].value),
        kv_heads=number("key and value heads"),
        feed_forward=number("feed forward width"),
        gated=True,
        norm_vectors=1,
    )


_LAYOUTS: dict[str, Literal["GPT", "Llama"]] = {
    "GPT-2 small": "GPT",
    "GPT-3": "GPT",
    "Llama 2 7B": "Llama",
    "Llama 2 13B": "Llama",
    "Llama 2 70B": "Llama",
    "Llama 3.1 8B": "Llama",
    "Llama 3.1 70B": "Llama",
    "Llama 3.1 405B": "Llama",
}
PUBLISHED = MappingProxyType({name: _published(name, layout) for name, layout in _LAYOUTS.items()})


@dataclass(frozen=True)
class Recipe:
    """The bytes per number of each kind in a training run; ``master`` is 0 if there is no second copy.

    Optimizer state, the statistics of norms and what the loss saves are float32 in all recipes.
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
    """How one card trains a model.

    Attributes:
        batch: sequences that a card processes at once.
        context: tokens of each.
        recipe: a key of `RECIPES`.
        optimizer: a key of `OPTIMIZERS`.
        cards: the number of cards, each with its own batch.
        zero: the ZeRO stage, a key of `SHARDED`: what's divided among the cards.
        checkpointing: each layer saves only its input and is recomputed in the backward pass.
        fused_attention: attention saves one number per query instead of T × T weights (Dao et al. 2022,
            arXiv:2205.14135).
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
                raise ValueError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(map(str, known))}")


def activations(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that a forward pass saves for the backward pass on one card, by part of the model.

    The ledger of lecture 08, section 8, for N = batch · context tokens: in each layer the inputs and outputs of two
    norms, the queries, keys, values and result of attention, and what the feed-forward's matrices and nonlinearity
    need. Without dropout it agrees with Korthikanti et al. 2022, arXiv:2205.05198, section 4.1, which gives
    s·b·h·34 + 5·a·s²·b bytes in 16 bits; 2·s·b·h and 3·a·s²·b of these are dropout's. Inputs (ids) aren't counted.

    With checkpointing, "layers" are the inputs of all layers (section 5.1: 2·s·b·h bytes each). The parts of the one
    layer that is being recomputed are added, because they exist during its backward pass.
    """
    size, tokens = RECIPES[step.recipe].activations, step.batch * step.context
    between_norms = 4 * model.width  # inputs and outputs of the two norms
    attention = 2 * model.query_width + 2 * model.kv_width  # queries and result, keys and values
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


def per_parameter(step: Step) -> dict[str, int]:
    """Bytes per parameter, by purpose, before anything is divided among cards."""
    recipe = RECIPES[step.recipe]
    return {
        "parameters": recipe.parameters,
        "gradients": recipe.gradients,
        "master copy": recipe.master,
        "optimizer state": 4 * OPTIMIZERS[step.optimizer],
    }


def states(parameters: int, step: Step) -> dict[str, int]:
    """Bytes that one card holds between steps and for gradients, rounded up."""
    kinds = {kind: size * parameters for kind, size in per_parameter(step).items()}
    for kind in SHARDED[step.zero]:
        kinds[kind] = math.ceil(kinds[kind] / step.cards)
    return kinds


def memory(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that one card holds in a training step, by purpose, rounded up.

    The sum is a budget, not the peak (see lecture 08).
    """
    return states(model.parameters, step) | {"activations": sum(activations(model, step).values())}


def training_flops(model: Transformer, context: int) -> dict[str, int]:
    """FLOPs to train on one token, forward and backward, by part; one multiply-add is 2.

    Exactly those that `flops.count_flops` counts: 6 for each weight that multiplies, and for each layer
    12 · query width · context for attention, with all pairs of tokens counted, as in Chowdhery et al. 2022 (PaLM,
    arXiv:2204.02311), appendix B. Lecture 06 explains them.
    """
    return {"matrices": 6 * model.multiplied, "attention": 12 * model.layers * model.query_width * context}


def recomputed_flops(model: Transformer, context: int) -> int:
    """FLOPs per token that checkpointing adds: a second forward pass through all layers."""
    whole = sum(training_flops(model, context).values())
    return (whole - 6 * model.vocabulary * model.width) // 3


@dataclass(frozen=True)
class Run:
    """The work of a training run and how fast one card does it.

    Attributes:
        flops: for all tokens; by the rule 6 · parameters · tokens (lecture 06; Kaplan et al. 2020, arXiv:2001.08361).
        rate: FLOP/s that one card achieves on them.
    """

    flops: float
    rate: float

    @property
    def gpu_hours(self) -> float:
        """GPU-hours, which don't depend on how many cards divide the work."""
        return self.flops / self.rate / 3600

    def days(self, cards: int) -> float:
        """Days that ``cards`` cards take together."""
        return self.gpu_hours / 24 / cards


def training(parameters: float, tokens: float, *, peak: float, mfu: float) -> Run:
    """Training a model of ``parameters`` parameters (for a mixture of experts, the active ones) on ``tokens`` tokens.

    Args:
        parameters: N; those that take part in multiplications.
        tokens: D; a token counts each time it's read.
        peak: dense FLOP/s of one card in the dtype of the multiplications.
        mfu: the fraction of the peak that is reached, more than 0 and at most 1.

    Raises:
        ValueError: a number isn't positive and finite, or mfu is more than 1.
    """
    positive(parameters=parameters, tokens=tokens)
    return run(6 * parameters * tokens, peak=peak, mfu=mfu)


def run(flops: float, *, peak: float, mfu: float) -> Run:
    """A training run of ``flops`` FLOPs; see `training`."""
    positive(flops=flops, peak=peak, mfu=mfu)
    if mfu > 1:
        raise ValueError(f"mfu is {mfu}: give it as a share of the peak, such as 0.4")
    return Run(flops, peak * mfu)


def positive(**numbers: float) -> None:
    """Check arguments, given by name.

    Raises:
        ValueError: one of them isn't positive and finite.
    """
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}: it must be positive and finite")
