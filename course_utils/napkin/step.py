"""How a model is trained: precision, optimizer, batch, and how cards divide the work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Recipe:
    """The bytes per number of each kind in a training run; ``master`` is 0 if there is no second copy.

    Optimizer state, the statistics of norms and what the loss saves are float32 in all recipes.

    Attributes:
        parameters, gradients, master, activations: bytes of one number.
        layers: dtypes for the matrix products in layers, most preferred first; the first that a card supports is used.
        others: the same for the products of attention and of the output layer.
    """

    parameters: float
    gradients: float
    master: float
    activations: int
    layers: tuple[str, ...]
    others: tuple[str, ...]


_HALF = ("bfloat16", "float16")  # a card without bfloat16 uses float16, which takes as many bytes
_FP8 = ("float8_e4m3fn", "float8_e4m3fnuz")
_FP4 = ("float4_e2m1fn_x2",)

# Lecture 00, "What fits?": with AdamW 16, 16, 18 and 12 bytes for each parameter. The float8 and NVFP4 recipes use 8 or
# 4 bits in the layers' matrix products and bfloat16 elsewhere (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3; NVIDIA
# 2025, arXiv:2509.25149); activations stay in bfloat16 here, which is more than the best of these recipes need. An
# NVFP4 number takes 4 bits plus a 16th of an 8-bit scale.
RECIPES = MappingProxyType(
    {
        "float32": Recipe(4, 4, 0, 4, ("float32",), ("float32",)),
        "bfloat16, float32 master copy": Recipe(2, 2, 4, 2, _HALF, _HALF),
        "bfloat16, float32 master copy and gradients": Recipe(2, 4, 4, 2, _HALF, _HALF),
        "bfloat16 alone": Recipe(2, 2, 0, 2, _HALF, _HALF),
        "float8, float32 master copy": Recipe(1, 2, 4, 2, _FP8, _HALF),
        "NVFP4, float32 master copy": Recipe(0.5625, 2, 4, 2, _FP4, _HALF),
    }
)


@dataclass(frozen=True)
class Optimizer:
    """Numbers that an optimizer keeps between steps, in float32; a counter of steps is left out.

    Attributes:
        matrices: numbers for each weight in a matrix of a layer.
        others: numbers for each other parameter: embeddings, the output layer, vectors.
        factored: instead, one for each row and column of a matrix, and ``others`` for each number outside matrices.
        orthogonalizes: each step multiplies matrices by themselves; see `work.optimizer_flops`.
    """

    matrices: int
    others: int
    factored: bool = False
    orthogonalizes: bool = False


# Lecture 08, "What they keep"; Lion: Chen et al. 2023, arXiv:2302.06675; Adafactor without a first moment: Shazeer and
# Stern 2018, arXiv:1804.04235; Muon (with AdamW for what isn't a matrix of a layer): Jordan et al. 2024,
# kellerjordan.github.io/posts/muon.
OPTIMIZERS = MappingProxyType(
    {
        "SGD": Optimizer(0, 0),
        "SGD with momentum": Optimizer(1, 1),
        "AdamW": Optimizer(2, 2),
        "Lion": Optimizer(1, 1),
        "Adafactor": Optimizer(1, 1, factored=True),
        "Muon": Optimizer(1, 2, orthogonalizes=True),
    }
)
# The kinds that each ZeRO stage divides among cards: Rajbhandari et al. 2020, arXiv:1910.02054, section 5.
SHARDED = MappingProxyType(
    {
        0: (),
        1: ("optimizer state", "master copy"),
        2: ("optimizer state", "master copy", "gradients"),
        3: ("optimizer state", "master copy", "gradients", "parameters", "frozen parameters"),
    }
)


@dataclass(frozen=True)
class Step:
    """How cards train a model.

    The cards form ``cards / (tensor · pipeline)`` groups (data parallelism), each of which holds the whole model and
    trains on its own sequences.

    Attributes:
        batch: the number of sequences that a group processes at once.
        context: the number of tokens in each sequence.
        recipe: a key of `RECIPES`.
        optimizer: a key of `OPTIMIZERS`.
        cards: the number of cards.
        zero: the ZeRO stage, a key of `SHARDED`: what's divided among the groups.
        checkpointing: each layer saves only its input and is recomputed in the backward pass.
        fused_attention: attention saves one number per query instead of T × T weights (Dao et al. 2022,
            arXiv:2205.14135).
        tensor: the number of cards that divide each matrix, and between matrices the sequence (tensor and sequence
            parallelism).
        pipeline: the number of cards that divide the layers.
        expert: the number of groups that divide the experts among them.
        accumulation: the number of batches that a group processes before each update.
        lora: the rank of adapters that are trained instead of the model's weights (Hu et al. 2021, arXiv:2106.09685);
            0 trains the model itself.
        adapted: the matrices with an adapter, named as in ``Transformer.attention`` and ``block``; empty means all.
    """

    batch: int
    context: int
    recipe: str = "bfloat16, float32 master copy"
    optimizer: str = "AdamW"
    cards: int = 1
    zero: int = 0
    checkpointing: bool = False
    fused_attention: bool = True
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    accumulation: int = 1
    lora: int = 0
    adapted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("batch", "context", "cards", "tensor", "pipeline", "expert", "accumulation"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.lora < 0:
            raise ValueError(f"lora is {self.lora}: give a rank of at least 1, or 0 to train the model itself")
        for name, known in (("recipe", RECIPES), ("optimizer", OPTIMIZERS), ("zero", SHARDED)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(map(str, known))}")
        if self.cards % (self.tensor * self.pipeline):
            raise ValueError(
                f"{self.cards:,} cards cannot be divided into groups of {self.tensor} · {self.pipeline} "
                "(tensor · pipeline): choose a multiple"
            )
        if self.groups % self.expert:
            raise ValueError(
                f"{self.groups:,} groups cannot be split {self.expert} ways for the experts (expert): choose a "
                f"divisor of {self.groups:,}"
            )

    @property
    def groups(self) -> int:
        """The number of groups of cards that each hold the whole model: the degree of data parallelism."""
        return self.cards // (self.tensor * self.pipeline)

    @property
    def tokens(self) -> int:
        """Tokens in one step, over all cards."""
        return self.batch * self.context * self.accumulation * self.groups


def positive(**numbers: float) -> None:
    """Check arguments, given by name.

    Raises:
        ValueError: one of them isn't positive and finite.
    """
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}: it must be positive and finite")
