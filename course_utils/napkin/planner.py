"""A training run on one page: parameters, FLOPs, bytes, time and cost, each with its formula and its source."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from course_utils.facts import FACTS, near
from course_utils.napkin.ledger import (
    RECIPES,
    SHARDED,
    Run,
    Step,
    Transformer,
    activations,
    per_parameter,
    positive,
    recomputed_flops,
    run,
    states,
    training_flops,
)
from course_utils.napkin.modules import Traced
from course_utils.units import counted, duration, plain, readable, takes_prefix

if TYPE_CHECKING:
    from course_utils.hardware import Accelerator

_KAPLAN = "Kaplan et al. 2020, arXiv:2001.08361; lecture 06"
_PALM = "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B"
_ZERO = "Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, section 5"
_KORTHIKANTI = "Korthikanti et al. 2022, arXiv:2205.05198, section 4; lecture 08"
_CHINCHILLA = "Hoffmann et al. 2022 (Chinchilla), arXiv:2203.15556"
_META = "counted on the meta device"
_GIVEN = "given"
_BYTES = "bytes on each card"
_ABOVE = "from the lines above"
_USUAL_MFU = "Llama 3.1 405B MFU, 16,384 GPUs"


@dataclass(frozen=True)
class Line:
    """One number of a plan.

    Attributes:
        group: "parameters", "FLOPs", "activations on each card", "bytes on each card", "time" or "cost".
        what: what the number counts, within its group.
        value: in ``unit``, without prefix.
        unit: "parameters", "FLOPs", "FLOP/s", "B", "tokens", "samples", "steps", "s", "days", "GPU-hours", "USD", or
            "share" (from 0 to 1).
        formula: how it's calculated, with numbers.
        source: where the formula or number comes from.
    """

    group: str
    what: str
    value: float
    unit: str
    formula: str
    source: str

    @property
    def shown(self) -> str:
        """The value with its unit, for a person."""
        if takes_prefix(self.unit):
            return readable(self.value, self.unit)
        if self.unit == "share":
            return f"{100 * self.value:.3g} %"
        if self.unit == "days":
            return duration(self.value)
        return counted(self.value) if self.unit == self.group else f"{counted(self.value)} {self.unit}"


@dataclass(frozen=True)
class Plan:
    """The plan of a training run: print it, show it in a notebook, or use `as_dict`.

    Attributes:
        title: model and cards.
        lines: its numbers.
        held: bytes on each card.
        limit: bytes of a card's memory; None if unknown.
        activations: whether the bytes include them; they don't if a module was traced without inputs.
        advice: what would make it fit, one sentence each; empty if it fits.
    """

    title: str
    lines: tuple[Line, ...]
    held: int
    limit: int | None
    activations: bool
    advice: tuple[str, ...]

    @property
    def fits(self) -> bool | None:
        """Whether a card's share fits in its memory; None if the memory is unknown."""
        return None if self.limit is None else self.held <= self.limit

    @property
    def verdict(self) -> str:
        """Whether it fits, and by how much."""
        held = readable(self.held, "B") + ("" if self.activations else " without activations")
        if self.limit is None:
            return f"It holds {held}; this card's memory is not known."
        limit, spare = readable(self.limit, "B"), self.limit - self.held
        if spare >= 0:
            return f"It fits: {held} of {limit}, {readable(spare, 'B')} left."
        return f"It does not fit: {held} for {limit}, {readable(-spare, 'B')} too much."

    def __getitem__(self, key: tuple[str, str]) -> float:
        """The value of a line: ``plan["time", "training"]``.

        Raises:
            LookupError: there's no line of that group and name; the message lists the existing ones.
        """
        values = {(line.group, line.what): line.value for line in self.lines}
        if key not in values:
            raise LookupError(f"{key} is not a line of this plan; it has {', '.join(map(str, values))}")
        return values[key]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: title, lines (as `Line`), fits, verdict, advice."""
        return {
            "title": self.title,
            "lines": [asdict(line) for line in self.lines],
            "fits": self.fits,
            "verdict": self.verdict,
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        sources = list(dict.fromkeys(line.source for line in self.lines))
        widths = [
            max(len(text) for text in texts) for texts in zip(*((x.what, x.shown) for x in self.lines), strict=True)
        ]
        rows = [self.title]
        for group, lines in itertools.groupby(self.lines, key=lambda line: line.group):
            rows += ["", group]
            for line in lines:
                mark = sources.index(line.source) + 1
                rows.append(f"  {line.what:<{widths[0]}}  {line.shown:>{widths[1]}}  {line.formula} [{mark}]")
        rows += ["", self.verdict, *(f"  - {advice}" for advice in self.advice), ""]
        return "\n".join([*rows, *(f"[{i}] {source}" for i, source in enumerate(sources, 1))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Jupyter's hook."""
        body = []
        for group, lines in itertools.groupby(self.lines, key=lambda line: line.group):
            body.append(f'<tr><th colspan="4" style="text-align:left">{html.escape(group)}</th></tr>')
            for line in lines:
                texts = (line.what, line.shown, line.formula, line.source)
                cells = "".join(f'<td style="text-align:left">{html.escape(text)}</td>' for text in texts)
                body.append(f"<tr>{cells}</tr>")
        advice = "".join(f"<li>{html.escape(text)}</li>" for text in self.advice)
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}{''.join(body)}</table><p>{html.escape(self.verdict)}</p><ul>{advice}</ul>"


def find_card(name: str) -> Accelerator:
    """The card of that name, either as in `hardware.ACCELERATORS` or as torch reports it.

    Raises:
        ValueError: there's no such card; the message lists similar names.
    """
    from course_utils.hardware import ACCELERATORS, find

    found = find(name)
    if found is None:
        similar = near(name, list(ACCELERATORS)) or list(ACCELERATORS)
        raise ValueError(f"there is no card called {name!r}. Near it: {', '.join(similar)}")
    return found


def plan(
    model: Transformer | Traced,
    step: Step,
    *,
    card: str | Accelerator = "H100 SXM",
    tokens: float | None = None,
    mfu: float | None = None,
    price: float | None = None,
    name: str = "",
) -> Plan:
    """Plan the training of a model.

    Args:
        model: a shape, or a result of `trace`.
        step: batch, context, precision and sharding. For a traced module, use ``traced.step(cards=…, zero=…)``.
        card: its name in `hardware.ACCELERATORS`, or your own Accelerator.
        tokens: to train on; by default 20 per parameter. For a module without ids, samples.
        mfu: the fraction of the card's peak that the model's own FLOPs reach; by default Llama 3.1 405B's.
        price: USD per GPU-hour; by default that of `facts.FACTS`, if it has one.
        name: of the model, for the title.

    Raises:
        ValueError: the card isn't in the table, a number is impossible, or the step isn't the one traced.
    """
    if isinstance(model, Traced):
        name = name or model.name
        traced = model.step(optimizer=step.optimizer, cards=step.cards, zero=step.zero)
        if model.flops is not None and step != traced:
            raise ValueError(f"{name} was traced for {traced}: take the step from traced.step(cards=…, zero=…)")
    accelerator = find_card(card) if isinstance(card, str) else card
    flops = list(_flops(model, step))
    kinds = list(_bytes(model, step))
    held = _sum(kinds)
    limit = accelerator.memory_bytes
    usual, item = FACTS[_USUAL_MFU], _item(model)
    if tokens is None and item == "sample":
        raise ValueError(f"{name} takes no ids: say how many samples it is trained on, as tokens")
    tokens_from = ("20 · parameters", _CHINCHILLA) if tokens is None else ("to train on", _GIVEN)
    mfu_from = ("as Llama 3.1 405B", f"{usual.source}, {usual.date}") if mfu is None else ("assumed", _GIVEN)
    tokens = 20.0 * model.parameters if tokens is None else tokens
    mfu = usual.value if mfu is None else mfu
    positive(tokens=tokens)
    peak, dtype = _peak(accelerator, step)
    work = run(sum(line.value for line in flops) * tokens, peak=peak, mfu=mfu)
    lines = [
        *_parameters(model),
        *flops,
        Line("FLOPs", f"{item}s", tokens, f"{item}s", *tokens_from),
        Line("FLOPs", "training", work.flops, "FLOPs", f"FLOPs of a {item} · {item}s", _ABOVE),
        *_beside(model, step, tokens),
        *(_activations(model, step) if isinstance(model, Transformer) else ()),
        *kinds,
        Line(_BYTES, "in all", held, "B", "the sum; a peak may be higher or lower", "lecture 08"),
        Line("time", "peak", peak, "FLOP/s", f"{accelerator.name}, dense {dtype}", accelerator.source),
        Line("time", "MFU", mfu, "share", *mfu_from),
        *_time(work, tokens, step, item),
        *_cost(work, accelerator.name, price),
    ]
    what = f"{name or 'a Transformer'}: {counted(model.parameters)} parameters"
    title = f"{what} on {step.cards:,} × {accelerator.name}, {step.recipe}, {step.optimizer}"
    advice = tuple(_advice(model, step, limit)) if limit is not None and held > limit else ()
    with_activations = isinstance(model, Transformer) or model.activations is not None
    return Plan(title, tuple(lines), held, limit, with_activations, advice)


def _sum(lines: Iterable[Line]) -> int:
    return sum(int(line.value) for line in lines)


def _item(model: Transformer | Traced) -> str:
    return model.item if isinstance(model, Traced) else "token"


def _beside(model: Transformer | Traced, step: Step, tokens: float) -> Iterator[Line]:
    """FLOPs that are not the training's own."""
    if _item(model) == "token":
        yield Line("FLOPs", "rule of thumb", 6 * model.parameters * tokens, "FLOPs", "6 · parameters · tokens", _KAPLAN)
    if isinstance(model, Transformer) and step.checkpointing:
        again = recomputed_flops(model, step.context) * tokens
        yield Line("FLOPs", "computed again", again, "FLOPs", "the layers' forward pass; MFU leaves it out", _PALM)


def _parameters(model: Transformer | Traced) -> Iterator[Line]:
    if isinstance(model, Traced):
        formulas, source = dict.fromkeys(model.parts, "numbers in it"), _META
    else:
        bias = " + 1" if model.biases else ""
        layer = " + ".join(f"({rows:,}{bias}) · {columns:,}" for rows, columns in model.matrices)
        layer = layer if bias else layer.replace("(", "").replace(")", "")
        rows = f"{model.vocabulary:,}" + ("" if model.tied else " · 2")
        rows += f" + {model.positions:,}" if model.positions else ""
        source = "the model's shape; lecture 06"
        formulas = {
            "layers": f"{model.layers} · ({layer})",
            "norms": f"{2 * model.layers + 1} · {model.norm_vectors} · {model.width:,}",
            "tables and head": f"({rows}) · {model.width:,}",
        }
    for part, count in model.parts.items():
        yield Line("parameters", part, count, "parameters", formulas[part], source)
    yield Line("parameters", "in all", model.parameters, "parameters", f"{model.parameters:,}", _ABOVE)


def _flops(model: Transformer | Traced, step: Step) -> Iterator[Line]:
    """For one token, forward and backward."""
    if isinstance(model, Transformer):
        parts = training_flops(model, step.context)
        yield Line("FLOPs", "a token's matrices", parts["matrices"], "FLOPs", f"6 · {model.multiplied:,}", _KAPLAN)
        formula = f"12 · {model.layers} · {model.query_width:,} · {step.context:,}"
        yield Line("FLOPs", "a token's attention", parts["attention"], "FLOPs", formula, _PALM)
    elif model.flops is None:
        yield Line("FLOPs", "a token", 6 * model.parameters, "FLOPs", "6 · parameters, for want of an input", _KAPLAN)
    else:
        items = model.batch * model.context
        formula = f"{plain(model.flops)} of a forward and backward pass / {items:,}"
        yield Line("FLOPs", f"a {model.item}", model.flops / items, "FLOPs", formula, f"{_META} by FlopCounterMode")


def _activations(model: Transformer, step: Step) -> Iterator[Line]:
    size = RECIPES[step.recipe].activations
    layer = f"4 · width + 2 · queries + 2 · keys + {4 if model.gated else 2} · hidden"
    formulas = {
        "layers": f"{size} · tokens · layers · " + ("width" if step.checkpointing else f"({layer})"),
        "attention weights": "4 · tokens · layers · heads"
        if step.fused_attention
        else f"{size} · tokens · layers · heads · context",
        "statistics of norms": f"{4 * model.norm_vectors} · tokens" + ("" if step.checkpointing else " · norms"),
        "last norm and head": f"{2 * size} · tokens · width",
        "loss": "4 · (tokens · vocabulary + 1)",
        "one layer again": "what a layer keeps without checkpointing, less its input",
    }
    for part, value in activations(model, step).items():
        yield Line("activations on each card", part, value, "B", formulas[part], _KORTHIKANTI)


def _bytes(model: Transformer | Traced, step: Step) -> Iterator[Line]:
    size = per_parameter(step)
    for kind, value in states(model.parameters, step).items():
        shared = step.cards > 1 and kind in SHARDED[step.zero]
        formula = f"{size[kind]} · parameters" + (f" / {step.cards:,}" if shared else "")
        yield Line(_BYTES, kind, value, "B", formula, _ZERO if shared else "lecture 00, What fits?")
    if isinstance(model, Transformer):
        kept = sum(activations(model, step).values())
        yield Line(_BYTES, "activations", kept, "B", "the sum of those above", _KORTHIKANTI)
        return
    if still := model.frozen * size["parameters"] + model.buffers:
        yield Line(_BYTES, "frozen, buffers", still, "B", "on every card", _META)
    if model.activations is None:
        yield Line(_BYTES, "activations", 0, "B", "not counted, for want of an input", _META)
    else:
        formula = "what its forward pass keeps for the backward pass"
        yield Line(_BYTES, "activations", model.activations, "B", formula, f"{_META} by saved_tensors_hooks")


def _peak(accelerator: Accelerator, step: Step) -> tuple[float, str]:
    """FLOP/s that the card promises for this step's multiplications, and in which dtype."""
    import torch

    # A card without bfloat16 takes float16, in as many bytes.
    wanted = (torch.bfloat16, torch.float16) if RECIPES[step.recipe].activations == 2 else (torch.float32,)
    for dtype in wanted:
        if dtype in accelerator.peak:
            return accelerator.peak[dtype], str(dtype).removeprefix("torch.")
    raise ValueError(f"{accelerator.name} promises no rate in 16 bits: choose the recipe 'float32'")


def _time(work: Run, tokens: float, step: Step, item: str) -> Iterator[Line]:
    at_once = step.batch * step.context * step.cards
    steps, crew = tokens / at_once, f"{step.cards:,} card{'s' if step.cards > 1 else ''}"
    seconds = work.gpu_hours * 3600 / step.cards / steps
    rate = f"({crew} · peak · MFU)"
    formula = f"{step.batch:,} · {step.context:,} · {crew}"
    yield Line("time", f"{item}s in a step", at_once, f"{item}s", formula, _GIVEN)
    yield Line("time", "steps", steps, "steps", f"{item}s / {item}s in a step", _ABOVE)
    yield Line("time", "a step", seconds, "s", f"FLOPs of a {item} · {item}s in a step / {rate}", _ABOVE)
    yield Line("time", "training", work.days(step.cards), "days", f"FLOPs of the training / {rate}", _ABOVE)
    yield Line("time", "of one card", work.gpu_hours, "GPU-hours", "FLOPs of the training / (peak · MFU)", _ABOVE)


def _cost(work: Run, name: str, price: float | None) -> Iterator[Line]:
    rent = FACTS.get(f"{name} rent")
    if price is not None:
        positive(price=price)
        source = _GIVEN
    elif rent is not None:
        price, source = rent.value, f"{rent.source}, {rent.date}"
    else:
        return
    yield Line("cost", "rent", work.gpu_hours * price, "USD", f"GPU-hours · {price:.2f} USD", source)


_Change = tuple[str, dict[str, Any]]  # what a person calls it, and the fields of a Step


def _sharded(stage: int, cards: int) -> _Change:
    return f"ZeRO {stage} on {cards:,} cards", {"zero": stage, "cards": cards}


def _advice(model: Transformer | Traced, step: Step, limit: int) -> Iterator[str]:
    """What would make it fit: each change that is enough alone, otherwise several together; and a larger card."""
    from course_utils.hardware import ACCELERATORS

    def says(what: str, changed: Step) -> str | None:
        held = _sum(_bytes(model, changed))
        return f"{what}: {readable(held, 'B')} on each card" if held <= limit else None

    crew = step.cards if step.cards > 1 else 8
    here: list[_Change] = []  # on one card
    if isinstance(model, Transformer):
        if not step.fused_attention:
            here.append(("fused attention", {"fused_attention": True}))
        if not step.checkpointing:
            here.append(("checkpointing", {"checkpointing": True}))
        if step.batch > 1:
            fitting = (batch for batch in range(step.batch - 1, 0, -1) if says("", replace(step, batch=batch)))
            batch = next(fitting, 1)
            here.append((f"a batch of {batch:,}", {"batch": batch}))
    stages = [_sharded(stage, crew) for stage in SHARDED]
    alone = [text for what, how in here if (text := says(what, replace(step, **how)))]
    alone += itertools.islice((text for what, how in stages if (text := says(what, replace(step, **how)))), 1)
    yield from alone
    if not alone:
        together, names = step, list[str]()
        for what, how in [*here, *(_sharded(3, 2**k) for k in range(17) if 2**k >= crew)]:
            together, names = replace(together, **how), [*names[: len(here)], what]
            if text := says(", ".join(names), together):
                yield text
                break
        else:
            kept = readable(_sum(line for line in _bytes(model, together) if line.what == "activations"), "B")
            what = "shorter context" if isinstance(model, Transformer) else "smaller input"
            yield f"a {what}: its activations take {kept} on each card, however many share the rest"
    held = _sum(_bytes(model, step))
    larger = [(card.memory_bytes, card.name) for card in ACCELERATORS.values() if (card.memory_bytes or 0) >= held]
    if larger:
        yield f"a card with more memory: {min(larger)[1]}, {readable(min(larger)[0] or 0, 'B')}"
