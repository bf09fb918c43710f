"""The shape of a Transformer: its matrices, its parameters (all and active), its attention and its KV cache."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Experts:
    """A mixture of experts instead of the feed-forward block.

    Attributes:
        routed: the number of experts in each layer among which a router chooses.
        active: how many of them each token goes to.
        width: the hidden width of an expert, between its matrices.
        shared: the number of additional experts that every token goes to.
        dense_layers: how many layers keep an ordinary feed-forward block.
    """

    routed: int
    active: int
    width: int
    shared: int = 0
    dense_layers: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.active <= self.routed:
            raise ValueError(
                f"{self.active} active experts of {self.routed}: at least 1 and at most all must be active"
            )
        if self.width < 1 or self.shared < 0 or self.dense_layers < 0:
            raise ValueError(f"{self}: the width must be at least 1, and no count may be negative")


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: keys and values are computed from a narrow vector, which is all that a cache keeps.

    DeepSeek-AI 2024 (DeepSeek-V2), arXiv:2405.04434, section 2.1.

    Attributes:
        kv_rank: elements of the vector that keys and values are computed from.
        rope: elements of a head's queries and keys with rotary embeddings; the heads share these keys.
        key: elements of a head's queries and keys without rotary embeddings.
        value: elements of a head's values.
        query_rank: elements of the vector that queries are computed from; 0 if they are computed directly.
    """

    kv_rank: int
    rope: int
    key: int
    value: int
    query_rank: int = 0


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder-only Transformer language model; the defaults are lecture 08's.

    Attributes:
        layers, width, vocabulary: the number of layers, the width in elements, the vocabulary in tokens.
        heads: the number of query heads.
        kv_heads: the number of key-value heads; None means as many as heads.
        feed_forward: the hidden width of the feed-forward block; None means 4 · width.
        gated: the feed-forward block (and an expert) has a third matrix, a gate with SiLU, instead of GELU between two.
        positions: rows of a learned positional embedding; 0 if there is none, as with rotary embeddings.
        tied: the output layer shares the token embedding's weights, which count once.
        biases: every matrix of a layer has a bias.
        norm_vectors: 2 for LayerNorm (a scale and a shift), 1 for RMSNorm, 0 for a norm that learns nothing.
        head_width: elements of a head; None means width / heads.
        experts: the mixture of experts; None for a dense model.
        latent: the sizes of latent attention; None for ordinary attention.
        windows: how many tokens each layer attends to, as a repeating pattern; 0 means all of them, as does ().
        gates: the number of other weights that multiply each token, in all layers together.
        lookups: the number of other trained numbers that are looked up or added, not multiplied.
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
    norm_vectors: Literal[0, 1, 2] = 2
    head_width: int | None = None
    experts: Experts | None = None
    latent: Latent | None = None
    windows: tuple[int, ...] = ()
    gates: int = 0
    lookups: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        if self.head_width is None and self.latent is None and self.width % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot share a width of {self.width:,} evenly: choose a number that divides it"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} key-value heads evenly")
        if self.experts and self.experts.dense_layers > self.layers:
            raise ValueError(f"{self.experts.dense_layers} dense layers, but the model has only {self.layers} layers")

    def reaching(self, context: int) -> Transformer:
        """The same model; its learned positional embedding, if any, gets a row for each position of this context."""
        return replace(self, positions=max(self.positions, context)) if self.positions else self

    @property
    def query_width(self) -> int:
        """Elements of one token's queries, over all heads."""
        if self.latent:
            return self.heads * (self.latent.key + self.latent.rope)
        return self.heads * (self.head_width or self.width // self.heads)

    @property
    def kv_width(self) -> int:
        """Elements of one token's keys, over all heads; as many as its values have. (Not for latent attention.)"""
        return self.query_width // self.heads * (self.kv_heads or self.heads)

    @property
    def attended_width(self) -> int:
        """Elements of queries and values, over all heads: the multiply-adds for each pair of tokens, forward."""
        return self.query_width + self.heads * self.latent.value if self.latent else 2 * self.query_width

    @property
    def cache_width(self) -> int:
        """Numbers that one layer keeps for each token during generation."""
        return self.latent.kv_rank + self.latent.rope if self.latent else 2 * self.kv_width

    def attended(self, context: int) -> int:
        """The positions that a token attends to in a context of this length, summed over the layers.

        All pairs of tokens count, even masked ones; with a window, a token attends to as many positions as the window
        has.
        """
        if not self.windows:
            return self.layers * context
        reach = [min(window or context, context) for window in self.windows]
        rounds, rest = divmod(self.layers, len(reach))
        return rounds * sum(reach) + sum(reach[:rest])

    @property
    def hidden(self) -> int:
        """The width between the feed-forward's matrices."""
        return self.feed_forward or 4 * self.width

    @property
    def attention(self) -> dict[str, tuple[int, int]]:
        """Rows (inputs) and columns (outputs) of the matrices of one layer's attention."""
        if self.latent is None:
            inner, outer = self.query_width, self.kv_width
            return {
                "queries": (self.width, inner),
                "keys": (self.width, outer),
                "values": (self.width, outer),
                "output": (inner, self.width),
            }
        latent, rank = self.latent, self.latent.query_rank
        down = {"queries, down": (self.width, rank)} if rank else {}
        return down | {
            "queries": (rank or self.width, self.query_width),
            "keys and values, down": (self.width, latent.kv_rank + latent.rope),
            "keys and values": (latent.kv_rank, self.heads * (latent.key + latent.value)),
            "output": (self.heads * latent.value, self.width),
        }

    def block(self, hidden: int) -> dict[str, tuple[int, int]]:
        """Rows and columns of the matrices of a feed-forward block, or an expert, of this width."""
        gate = {"gate": (self.width, hidden)} if self.gated else {}
        return gate | {"up": (self.width, hidden), "down": (hidden, self.width)}

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Rows (inputs) and columns (outputs) of a dense layer's matrices; those with the same input are merged."""
        every = [*self.attention.values(), *self.block(self.hidden).values()]
        joined = itertools.groupby(every, key=lambda shape: shape[0])
        if self.latent:
            return tuple(every)
        return tuple((rows, sum(columns for _, columns in group)) for rows, group in joined)

    @property
    def moe_layers(self) -> int:
        """Layers with a mixture of experts."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def expert(self) -> int:
        """The number of weights of one expert."""
        return size(self.block(self.experts.width), self.biases) if self.experts else 0

    @property
    def multiplied(self) -> int:
        """How many weights multiply each token: the matrices and the output layer, not what is looked up or added."""
        dense = self.layers * size(self.attention) + (self.layers - self.moe_layers) * size(self.block(self.hidden))
        chosen = 0
        if self.experts:
            each = size(self.block(self.experts.width))
            used = (self.experts.active + self.experts.shared) * each + self.width * self.experts.routed
            chosen = self.moe_layers * used
        return dense + chosen + self.gates + self.vocabulary * self.width

    @property
    def parts(self) -> dict[str, int]:
        """The number of trained parameters by part of the model."""
        # A bias has one number for each output.
        attention, block = size(self.attention, self.biases), size(self.block(self.hidden), self.biases)
        found = {"layers": self.layers * attention + (self.layers - self.moe_layers) * block}
        if self.experts:
            found["experts"] = self.moe_layers * (self.experts.routed + self.experts.shared) * self.expert
            found["routers"] = self.moe_layers * self.width * self.experts.routed
        normed = (2 * self.layers + 1) * self.width
        if self.latent:
            normed += self.layers * (self.latent.query_rank + self.latent.kv_rank)
        found["norms"] = normed * self.norm_vectors
        found["embeddings and output layer"] = (self.vocabulary * (1 if self.tied else 2) + self.positions) * self.width
        others = {"gates": self.gates, "other lookups": self.lookups}
        return found | {name: count for name, count in others.items() if count}

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        return sum(self.parts.values())

    @property
    def routed(self) -> int:
        """The number of parameters in experts that a router chooses from."""
        return self.moe_layers * self.experts.routed * self.expert if self.experts else 0

    @property
    def looked_up(self) -> int:
        """The number of parameters in tables of which a token reads only its rows; a tied table is multiplied, too."""
        return ((0 if self.tied else self.vocabulary) + self.positions) * self.width + self.lookups

    @property
    def active(self) -> int:
        """The number of parameters that one token uses: all but those of the experts that it isn't sent to."""
        if self.experts is None:
            return self.parameters
        return self.parameters - self.moe_layers * (self.experts.routed - self.experts.active) * self.expert

    @property
    def in_matrices(self) -> int:
        """The number of weights in the layers' matrices, which Muon trains; not embeddings, head or vectors."""
        found = self.layers * size(self.attention) + (self.layers - self.moe_layers) * size(self.block(self.hidden))
        if self.experts:
            each = size(self.block(self.experts.width))
            found += self.moe_layers * ((self.experts.routed + self.experts.shared) * each)
            found += self.moe_layers * self.width * self.experts.routed
        return found

    @property
    def rows_and_columns(self) -> int:
        """The sum of all matrices' rows and columns, plus the numbers outside matrices: what Adafactor keeps."""
        tables = 1 if self.tied else 2
        found = tables * (self.vocabulary + self.width) + (self.positions + self.width if self.positions else 0)
        kinds = [(self.layers, self.attention), (self.layers - self.moe_layers, self.block(self.hidden))]
        in_tables = self.parts["embeddings and output layer"]
        if self.experts:
            kinds.append(
                (self.moe_layers * (self.experts.routed + self.experts.shared), self.block(self.experts.width))
            )
            kinds.append((self.moe_layers, {"router": (self.width, self.experts.routed)}))
        found += sum(count * (rows + columns) for count, shapes in kinds for rows, columns in shapes.values())
        return found + self.parameters - self.in_matrices - in_tables


def size(matrices: dict[str, tuple[int, int]], biases: bool = False) -> int:
    """The number of weights in these matrices, plus a bias for every column if ``biases`` is set."""
    return sum((rows + biases) * columns for rows, columns in matrices.values())
