"""The time that cards spend communicating: collectives over links, and what each kind of parallelism sends in a step.

    from course_utils import napkin
    from course_utils.cards import ACCELERATORS

    napkin.all_reduce(16e9, ranks=8, bandwidth=450e9)  # 0.062 s, as a ring
    napkin.collective("all_reduce", 16e9, 64, ACCELERATORS["H100 SXM"])  # over NVLink and InfiniBand
    napkin.communication(model, step, ACCELERATORS["H100 SXM"])  # {'gradients': Transfer(…), …}

The times are lower bounds: every link is used at its promised rate, both directions at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from course_utils.cards import Accelerator, Link
from course_utils.napkin.footprint import per_parameter, weights
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import RECIPES, Step
from course_utils.sources import Source, Sourced, longest, total

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"]

RING = Source(
    "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations",
    "https://doi.org/10.1016/j.jpdc.2008.09.002",
    "paper",
    "2009-02",
)


def sent(what: Collective, nbytes: float, ranks: int) -> float:
    """Bytes that one rank sends in a bandwidth-optimal collective.

    Args:
        what: the collective.
        nbytes: bytes of the whole buffer, as each rank has it before (all_reduce, reduce_scatter, all_to_all,
            broadcast, send) or after (all_gather) the collective; not one rank's part of it.
        ranks: the number of ranks that take part.

    Source: `RING`.
    """
    if ranks < 1 or nbytes < 0:
        raise ValueError(f"{ranks} ranks and {nbytes} bytes: expected at least 1 rank and 0 bytes")
    if ranks == 1:
        return 0.0
    passes = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
    return passes[what] * (ranks - 1) / ranks * nbytes if what in passes else nbytes


def all_reduce(
    nbytes: float,
    ranks: int,
    bandwidth: float,
    *,
    latency: float = 0.0,
    algorithm: Literal["ring", "tree"] = "ring",
) -> float:
    """Seconds until every rank has the sum of all ranks' buffers.

    ring: 2·(ranks − 1) messages of nbytes/ranks each, one after the other: best for long buffers.
    tree: up a binary tree and down again, 2·⌈log₂ ranks⌉ messages of nbytes: best for short ones.

    Args:
        nbytes: bytes of the buffer that each rank has.
        ranks: the number of ranks that take part.
        bandwidth: bytes/s that a rank can send while receiving as many.
        latency: seconds that each message takes in addition.
    """
    rounds = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    if algorithm == "tree":
        return 2 * rounds * (latency + nbytes / bandwidth)
    return sent("all_reduce", nbytes, ranks) / bandwidth + 2 * (ranks - 1) * latency


def all_gather(nbytes: float, ranks: int, bandwidth: float, *, latency: float = 0.0) -> float:
    """Seconds until every rank has the whole buffer of ``nbytes``, with a ring; reduce_scatter takes as long."""
    return sent("all_gather", nbytes, ranks) / bandwidth + (ranks - 1) * latency


def all_to_all(nbytes: float, ranks: int, bandwidth: float, *, latency: float = 0.0) -> float:
    """Seconds until every rank has sent an equal part of its ``nbytes`` to each other rank."""
    return sent("all_to_all", nbytes, ranks) / bandwidth + (ranks - 1) * latency


@dataclass(frozen=True)
class Transfer:
    """What one card sends for one purpose in a step.

    Attributes:
        nbytes: the bytes it sends.
        seconds: the least time that they take.
        link: the slowest link on the way.
        formula: how the bytes are counted.
    """

    nbytes: float
    seconds: Sourced
    link: str
    formula: str


def levels(card: Accelerator, ranks: int, stride: int = 1) -> list[tuple[Link, int]]:
    """The links that a collective crosses, each with how many ranks it connects there.

    Eight ranks side by side on H100 SXM: all eight on NVLink. Sixteen: eight on NVLink, two such groups on InfiniBand.

    Args:
        card: the card whose links are used.
        ranks: the number of ranks in the collective.
        stride: the distance between neighboring ranks: 8 if each belongs to a different group of eight cards.

    Raises:
        ValueError: the card has no link that reaches so far.
    """
    found, left, inside = [], ranks, stride
    for link in card.links:
        reach = left if link.cards is None else min(left, max(1, link.cards // inside))
        if reach > 1:
            found.append((link, reach))
        left, inside = math.ceil(left / reach), inside * reach
        if left == 1:
            return found
    raise ValueError(f"{card.name} has no link in the table that connects {ranks:,} cards")


def collective(what: Collective, nbytes: float, ranks: int, card: Accelerator, *, stride: int = 1) -> Sourced:
    """Seconds that a collective takes over a card's links, first inside a machine, then between machines.

    An all_reduce between machines moves only each card's share of what its machine has summed up. The levels can
    overlap, so the longest counts. Arguments as in `sent` and `levels`.
    """
    return _transfer(what, nbytes, ranks, card, stride, "").seconds


def _transfer(what: Collective, nbytes: float, ranks: int, card: Accelerator, stride: int, formula: str) -> Transfer:
    times: dict[str, Sourced] = {}
    share, inside = nbytes, 1
    for link, count in levels(card, ranks, stride):
        newly = inside * (count - 1)  # ranks that this link reaches and the previous ones don't
        moved = nbytes * newly / ranks if what == "all_to_all" else sent(what, share, count)
        times[link.name] = moved / Sourced(link.bandwidth, *card.sources)
        inside *= count
        share = share if what in ("send", "broadcast") else share / count
    slowest = max(times, key=lambda name: times[name], default="")
    return Transfer(sent(what, nbytes, ranks), longest(*times.values(), Sourced(0.0)), slowest, formula)


def communication(model: Transformer, step: Step, card: Accelerator) -> dict[str, Transfer]:
    """What one card sends in a step, by kind of parallelism, and the least time that this takes.

    Cards of a tensor-parallel group are neighbors; groups that hold the same layers come next; the stages of a pipeline
    are farthest apart.

    - "gradients": with ZeRO 0, all-reduced once a step; with 1 and 2, reduce-scattered, and the parameters are gathered
      (Rajbhandari et al. 2020, arXiv:1910.02054, section 7). With 3, parameters are gathered twice for each batch.
    - "tensor": two all-reduces forward and two backward of a batch's activations in each layer, or reduce-scatters and
      all-gathers of as many bytes (Shoeybi et al. 2019, arXiv:1909.08053; Korthikanti et al. 2022,
      arXiv:2205.05198, section 4.2.2); two more with checkpointing.
    - "pipeline": activations to the next stage, their gradients to the previous one.
    - "experts": each token to its experts and back, forward and backward (Lepikhin et al. 2020, arXiv:2006.16668).
    """
    size, tokens = RECIPES[step.recipe].activations, step.batch * step.context
    batches, layers = step.accumulation, model.layers / step.pipeline
    found: dict[str, Transfer] = {}
    if step.tensor > 1:
        rounds = (6 if step.checkpointing else 4) * layers * batches
        formula = f"{rounds:,.0f} all-reduces of {size} · tokens · width"
        one = _transfer("all_reduce", size * tokens * model.width, step.tensor, card, 1, formula)
        found["tensor"] = _times(one, rounds)
    if step.groups > 1:
        found |= _gradients(model, step, card)
    if step.pipeline > 1:
        nbytes = size * tokens * model.width / step.tensor
        formula = f"{2 * batches:,} sends of {size} · tokens · width / tensor"
        farther = _transfer("send", nbytes, step.pipeline, card, step.tensor * step.groups, formula)
        found["pipeline"] = _times(farther, 2 * batches)
    if step.expert > 1 and model.experts:
        nbytes = size * tokens * model.experts.active * model.width / step.tensor
        rounds = 4 * model.moe_layers / step.pipeline * batches
        formula = f"{rounds:,.0f} all-to-alls of {size} · tokens · active experts · width"
        found["experts"] = _times(_transfer("all_to_all", nbytes, step.expert, card, step.tensor, formula), rounds)
    return found


def _gradients(model: Transformer, step: Step, card: Accelerator) -> dict[str, Transfer]:
    counted, size = weights(model, step), per_parameter(step)
    one = step.tensor * step.pipeline
    experts = 0 if counted.experts_frozen else counted.experts
    return data_parallel(
        counted.trained / one,
        step,
        card,
        frozen=counted.frozen / one,
        experts=experts / (one * step.expert),
        size=size,
    )


def data_parallel(
    trained: float,
    step: Step,
    card: Accelerator,
    *,
    frozen: float = 0.0,
    experts: float = 0.0,
    size: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Transfer]:
    """What groups of cards send one another, given how many numbers of each kind one card has; see `communication`."""
    size = size or per_parameter(step)
    kinds = [(trained, frozen, step.groups, step.tensor)]
    if experts:
        kinds.append((experts, 0.0, step.groups // step.expert, step.tensor * step.expert))
    found: dict[str, Transfer] = {}
    gradients, parameters = [], []
    for count, still, ranks, stride in kinds:
        nbytes = size["gradients"] * count
        first: Collective = "reduce_scatter" if step.zero else "all_reduce"
        formula = f"{first.replace('_', '-')} of {size['gradients']:g} bytes for each parameter held"
        gradients.append(_transfer(first, nbytes, ranks, card, stride, formula))
        if step.zero:
            times = 2 * step.accumulation if step.zero == 3 else 1
            held = size["parameters"] * (count + (still if step.zero == 3 else 0))
            formula = f"{times:,} × all-gather of {size['parameters']:g} bytes for each parameter held"
            parameters.append(_times(_transfer("all_gather", held, ranks, card, stride, formula), times))
    for name, transfers in (("gradients", gradients), ("parameters", parameters)):
        if transfers:
            together = Transfer(
                sum(t.nbytes for t in transfers),
                total(t.seconds for t in transfers),
                max(transfers, key=lambda t: t.seconds).link,
                transfers[0].formula,
            )
            found[name] = together
    return found


def _times(one: Transfer, rounds: float) -> Transfer:
    seconds = Sourced(float(one.seconds) * rounds, *one.seconds.sources)
    return Transfer(one.nbytes * rounds, seconds, one.link, one.formula)


def bubble(step: Step) -> float:
    """The fraction of a step for which a pipeline's stages are idle: (p − 1) / (m + p − 1).

    p is the number of stages, m the number of microbatches (``accumulation``). Source: Narayanan et al. 2021,
    arXiv:2104.04473, section 2.2.
    """
    return (step.pipeline - 1) / (step.accumulation + step.pipeline - 1)
