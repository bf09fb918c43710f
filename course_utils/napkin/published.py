"""The planner against published numbers: ``course published`` writes docs/published.md from these rows.

Every prediction is calculated here on demand, from shapes, settings and data sheets. Nothing is fitted: no row has a
constant that was chosen to make it agree. If a row uses a measurement from the same run (its seconds for its MFU, its
MFU for its time), it names it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from course_utils.cards import ACCELERATORS, Accelerator
from course_utils.facts import FACTS, Fact
from course_utils.napkin.footprint import memory
from course_utils.napkin.inference import decode_seconds, kv_cache, prefill_seconds
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.planner import plan
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import Step
from course_utils.napkin.work import adapters, orthogonalizing_flops, recomputed_flops, run, training, training_flops
from course_utils.units import plain

Relation = Literal["equal", "at least", "at most"]


@dataclass(frozen=True)
class Row:
    """A prediction beside what was published.

    Attributes:
        group: the heading it belongs under.
        what: the quantity that is predicted.
        predict: calculates it, in the fact's unit.
        fact: the published number, a key of `facts.FACTS`.
        tolerance: the largest relative difference; 0 means equal in every digit. For a bound, how far off it may be.
        formula: how it's predicted, in words.
        measured: what the prediction takes from measurements of the same run; empty if nothing.
        relation: "at least": the prediction is a lower bound, "at most" an upper one.
        fitted: whether a number was chosen to make it agree.
    """

    group: str
    what: str
    predict: Callable[[], float]
    fact: str
    tolerance: float
    formula: str
    measured: str = ""
    relation: Relation = "equal"
    fitted: bool = False

    @property
    def published(self) -> Fact:
        """The published number, with its source."""
        return FACTS[self.fact]

    @property
    def difference(self) -> float:
        """The relative difference of the prediction from the published number."""
        return self.predict() / self.published.value - 1

    @property
    def agrees(self) -> bool:
        """Whether the prediction is as close as the row claims, and on the right side."""
        slack = 1e-9
        if self.relation == "at least":
            return -self.tolerance <= self.difference <= slack
        if self.relation == "at most":
            return -slack <= self.difference <= self.tolerance
        return abs(self.difference) <= self.tolerance + slack


def _value(name: str) -> float:
    return FACTS[name].value


def rows() -> list[Row]:
    """All rows, in order."""
    return [*_counts(), *_training_flops(), *_utilization(), *_times(), *_bytes(), *_generation()]


def _counts() -> Iterator[Row]:
    exact = ["GPT-2 small", "GPT-2 XL", "Llama 2 7B", "Llama 2 13B", "Llama 2 70B", "Mistral 7B"]
    exact += ["Llama 3.1 8B", "Llama 3.1 70B", "Llama 3.1 405B"]
    rounded = {"GPT-3": 0.003, "PaLM 540B": 2e-5, "Mixtral 8x7B": 0.011, "DeepSeek-V3": 0.001}
    group = "Parameters"
    for name, tolerance in [*((name, 0.0) for name in exact), *rounded.items()]:
        model = PUBLISHED[name]
        yield Row(group, name, lambda m=model: m.parameters, f"{name} parameters", tolerance, "the shape")  # type: ignore[misc]
    for name, tolerance in {"Mixtral 8x7B": 0.011, "DeepSeek-V3": 0.016}.items():
        model, what = PUBLISHED[name], f"{name}, active"
        formula = "the shape, without the experts that a token isn't sent to"
        yield Row(group, what, lambda m=model: m.active, f"{name} active parameters", tolerance, formula)  # type: ignore[misc]
    for rank, tolerance in {1: 0.006, 4: 0.05, 8: 0.002}.items():
        step = Step(1, 1, lora=rank, adapted=("queries", "values"))
        what, formula = f"LoRA on GPT-3, rank {rank}", "rank · (rows + columns) of queries and values"
        yield Row(group, what, lambda s=step: adapters(PUBLISHED["GPT-3"], s), what, tolerance, formula)  # type: ignore[misc]


def _training_flops() -> Iterator[Row]:
    group = "Training FLOPs"
    data = {
        "GPT-3": ("GPT-3", 0.0035),
        "Chinchilla": ("Chinchilla", 0.03),
        "Llama 3.1 405B": ("Llama 3.1 405B", 0.003),
        "OLMo 2 7B": ("OLMo 2 7B", 0.02),
        "OLMo 2 13B": ("OLMo 2 13B", 0.005),
        "Falcon 40B": ("Falcon 40B", 0.01),
        "Falcon 180B": ("Falcon 180B", 0.01),
    }
    for name, (tokens, tolerance) in data.items():

        def rule(name: str = name, tokens: str = tokens) -> float:
            return training(_value(f"{name} parameters"), _value(f"{tokens} tokens"), peak=1, mfu=1).flops

        yield Row(group, name, rule, f"{name} training FLOPs", tolerance, "6 · parameters · tokens")

    def palm() -> float:
        name = "PaLM 540B"
        return _every_parameter(PUBLISHED[name], int(_value(f"{name} context"))) * _value(f"{name} tokens")

    formula = "(6 · parameters + attention) · tokens"
    yield Row(group, "PaLM 540B", palm, "PaLM 540B training FLOPs", 0.002, formula)

    def nanochat() -> float:
        a_token = sum(training_flops(PUBLISHED["nanochat d24"], int(_value("nanochat d24 context"))).values())
        return a_token * _value("nanochat d24 steps") * _value("nanochat d24 tokens in a step")

    formula = "(6 · weights that multiply + attention within its windows) · tokens"
    yield Row(group, "nanochat d24", nanochat, "nanochat d24 training FLOPs", 0, formula)
    for width, tokens_in_a_step, fact in (
        (768, 524_288, "Muon's FLOPs, width 768, 524,288 tokens"),
        (16_384, 16e6, "Muon's FLOPs, width 16,384, 16 million tokens"),
    ):

        def muon(width: int = width, tokens: float = tokens_in_a_step) -> float:
            return orthogonalizing_flops(width, width) / (6 * width**2 * tokens)

        what = fact.replace("Muon's FLOPs", "Muon's share")
        yield Row(
            group, what, muon, fact, 0.05, "5 · (4 · n² · m + 2 · n³) of a square matrix / (6 · weights · tokens)"
        )


def _gpt(name: str, vocabulary: str) -> Transformer:
    """A GPT from the table of facts: tied head, biases, learned positional embedding."""
    layers, width, heads = (int(_value(f"{name} {what}")) for what in ("layers", "width", "heads"))
    context = int(FACTS[f"{name} context"].value) if f"{name} context" in FACTS else 2_048
    return Transformer(layers, width, heads, int(_value(vocabulary)), positions=context, tied=True, biases=True)


def _every_parameter(model: Transformer, context: int) -> float:
    """FLOPs of a token as most tables of MFU count them: 6 for each parameter, multiplied or not, plus attention."""
    return 6 * model.parameters + training_flops(model, context)["attention"]


def _utilization() -> Iterator[Row]:
    group = "MFU and FLOP/s"
    for size, tolerance in {"22B": 0.005, "175B": 0.002, "530B": 0.002, "1T": 0.002}.items():
        name = f"Megatron {size}"

        def share(name: str = name) -> float:
            flops = sum(training_flops(_gpt(name, "Megatron vocabulary"), 2_048).values())
            work = flops * _value(f"{name} tokens in a step")
            peak = ACCELERATORS["A100 SXM 80GB"].peak["bfloat16"]
            return work / (_value(f"{name} step") * _value(f"{name} devices") * peak)

        formula = "FLOPs of a step / (seconds · cards · peak)"
        yield Row(group, f"{name}, MFU", share, f"{name} MFU", tolerance, formula, "seconds of a step")
    for name in (
        "MosaicML 1B, long context",
        "MosaicML 7B",
        "MosaicML 13B",
        "MosaicML 70B",
        "MT-NLG 530B",
        "PaLM 540B",
    ):
        yield _from_throughput(group, name)
    nemo = ("GPT-3 on 128 H100s", "GPT-3 on 512 H100s", "Llama 2 7B", "Llama 2 13B", "Llama 2 70B")
    for name in (*nemo, "Llama 3.1 8B", "Llama 3.1 70B"):
        model, context = PUBLISHED[name.partition(" on")[0]], 2_048
        context = 8_192 if "3.1" in name else 4_096 if "Llama" in name else context

        def rate(name: str = name, model: Transformer = model, context: int = context) -> float:
            return sum(training_flops(model, context).values()) * _value(f"NeMo {name} throughput per GPU")

        formula = "FLOPs of a token · tokens per second and card"
        yield Row(group, f"NeMo, {name}", rate, f"NeMo {name} rate per GPU", 0.002, formula, "tokens per second")


def _from_throughput(group: str, name: str) -> Row:
    def share() -> float:
        if name == "PaLM 540B":
            model, peak = PUBLISHED[name], _value("TPU v4 bfloat16 peak")
        elif name == "MT-NLG 530B":
            model, peak = _gpt(name, "Megatron vocabulary"), _value("A100 SXM 80GB bfloat16 peak")
        else:
            model, peak = _gpt(name, "MosaicML vocabulary"), _value("H100 SXM sparse peak, as printed") / 2
        a_token = _every_parameter(model, int(_value(f"{name} context")))
        return a_token * _value(f"{name} throughput") / (_value(f"{name} devices") * peak)

    formula = "(6 · parameters + attention) · tokens per second / (cards · peak)"
    return Row(group, f"{name}, MFU", share, f"{name} MFU", 0.002, formula, "tokens per second")


def _times() -> Iterator[Row]:
    group = "Time and energy of training"

    def pod() -> float:
        # The book rounds the model to 70e9 parameters.
        peak = ACCELERATORS["TPU v5p"].peak["bfloat16"]
        return training(70e9, 15e12, peak=peak, mfu=0.4).days(8_960)

    formula = "6 · 70 billion · 15 trillion / (8,960 · peak · 0.4)"
    yield Row(
        group, "Llama 3 70B on a TPU v5p pod", pod, "Llama 3 70B on a TPU v5p pod", 0.01, formula, "MFU, assumed there"
    )
    for name, model in (("GPT-3 on A100s", "GPT-3"), ("1T model on A100s", "1T model on A100s")):

        def days(name: str = name, model: str = model) -> float:
            work = 8 * _value(f"{model} parameters") * _value(f"{model} tokens")
            return run(work, peak=_value(f"{name} rate"), mfu=1).days(int(_value(f"{name} devices")))

        formula = "8 · parameters · tokens / (cards · FLOP/s), everything recomputed"
        yield Row(group, name, days, f"{name} duration", 0.012, formula, "FLOP/s of a card")
    for cards in ("2,240", "2,800", "3,360"):

        def step(cards: str = cards) -> float:
            model = _gpt("MT-NLG 530B", "Megatron vocabulary")
            flops = sum(training_flops(model, 2_048).values()) + recomputed_flops(model, 2_048)
            work = flops * _value("MT-NLG 530B tokens in a step")
            return work / (int(cards.replace(",", "")) * _value(f"MT-NLG 530B rate on {cards} GPUs"))

        formula = "FLOPs of a step, including recomputed ones / (cards · FLOP/s)"
        what = f"MT-NLG 530B, a step on {cards} GPUs"
        yield Row(group, what, step, f"MT-NLG 530B step on {cards} GPUs", 0.006, formula, "FLOP/s of a card")

    def llama_1() -> float:
        rate = _value("LLaMA 65B throughput per GPU") * _value("LLaMA 65B devices")
        return _value("LLaMA 65B tokens") / rate / 86_400

    yield Row(
        group, "LLaMA 65B", llama_1, "LLaMA 65B duration", 0.011, "tokens / tokens per second", "tokens per second"
    )

    def nanochat(mfu: float | None) -> float:
        name = "nanochat d24"
        step = Step(32, int(_value(f"{name} context")), optimizer="Muon", cards=int(_value(f"{name} devices")))
        tokens = _value(f"{name} steps") * _value(f"{name} tokens in a step")
        return plan(PUBLISHED[name], step, tokens=tokens, mfu=mfu)["time", "training"] * 86_400

    yield Row(
        group,
        "nanochat d24, at the peak",
        lambda: nanochat(1.0),
        "nanochat d24 duration",
        0.55,
        "a plan with an MFU of 1: a lower bound",
        relation="at least",
    )
    yield Row(
        group,
        "nanochat d24, at the default MFU",
        lambda: nanochat(None),
        "nanochat d24 duration",
        0.25,
        "a plan with Llama 3.1 405B's MFU, which was not measured here",
    )

    def llama_405b() -> float:
        step = Step(
            1, int(_value("Llama 3.1 405B context")), cards=16_384, zero=1, tensor=8, pipeline=16, accumulation=16
        )
        tokens = _value("Llama 3.1 405B tokens")
        return plan(PUBLISHED["Llama 3.1 405B"], step, tokens=tokens)["time", "of one card"]

    yield Row(
        group,
        "Llama 3.1 405B, GPU-hours",
        llama_405b,
        "Llama 3.1 405B GPU-hours",
        0.15,
        "a plan at its MFU, without interruptions",
        "MFU",
    )

    def bloom() -> float:
        return _value("BLOOM GPU-hours") * (ACCELERATORS["A100 SXM 80GB"].power or 0) / 1000

    yield Row(group, "BLOOM, energy", bloom, "BLOOM energy", 1e-4, "GPU-hours · the card's watts", "GPU-hours")


def _bytes() -> Iterator[Row]:
    group = "Bytes"
    for stage, tolerance in {0: 0.0, 1: 0.002, 2: 0.004, 3: 0.02}.items():

        def zero(stage: int = stage) -> float:
            # 2 + 2 + 12 bytes for each of 7.5 billion parameters, scaled from another model.
            model = PUBLISHED["Llama 3.1 8B"]
            kinds = memory(model, Step(1, 1, cards=int(_value("ZeRO example devices")), zero=stage))
            held = sum(kinds.values()) - kinds["activations"]
            return held / model.parameters * _value("ZeRO example parameters")

        what = f"ZeRO stage {stage}, 7.5 billion parameters"
        yield Row(
            group, what, zero, f"ZeRO example memory, stage {stage}", tolerance, "16 bytes per parameter, sharded"
        )
    for name, fact, context in (
        ("DeepSeek-V3", "DeepSeek-V3 cache of a token", 1),
        ("Llama 3.1 405B", "Llama 3.1 405B cache of a token", 1),
        ("Llama 3.1 8B", "Llama 3 8B cache", 2_048),
        ("Llama 3.1 70B", "Llama 3 70B cache", 2_048),
        ("Mixtral 8x7B", "Mixtral 8x7B cache", 2_048),
    ):

        def cache(model: Transformer = PUBLISHED[name], context: int = context) -> float:
            return kv_cache(model, context)

        what = f"KV cache, {name}, {context:,} token{'s' if context > 1 else ''}"
        formula = "layers · (rank + rope width) · 2" if name == "DeepSeek-V3" else "2 · layers · heads · head width · 2"
        yield Row(group, what, cache, fact, 0, formula)

    def opt() -> float:
        layers, width = (int(_value(f"OPT-13B {what}")) for what in ("layers", "width"))
        return kv_cache(Transformer(layers, width, 40, 50_272), 1)

    yield Row(group, "KV cache, OPT-13B, 1 token", opt, "OPT-13B cache of a token", 0, "2 · layers · width · 2")


def _generation() -> Iterator[Row]:
    group = "Generating text"
    for fact, tokens in (
        ("prefill of one prompt", 2_048),
        ("prefill of 512 prompts", 512 * 2_048),
        ("64 tokens for 64 requests", 64 * 64),
        ("64 tokens for 512 requests", 64 * 512),
    ):

        def share(fact: str = fact, tokens: int = tokens) -> float:
            work = 2 * PUBLISHED["PaLM 540B"].parameters * tokens
            return work / (_value(f"PaLM 540B {fact}, latency") * 64 * _value("TPU v4 bfloat16 peak"))

        formula = "2 · parameters · tokens / (seconds · 64 · peak)"
        yield Row(group, f"PaLM 540B, {fact}", share, f"PaLM 540B {fact}, MFU", 0.02, formula, "seconds")
    bound = "cards · bandwidth / bytes of weights and cache, or less if messages take longer: an upper bound"
    for name, fact, card, cards, number in (
        ("Llama 2 7B", "Llama 2 7B on one A100, gpt-fast", "A100 SXM 80GB", 1, 2.0),
        ("Llama 2 7B", "Llama 2 7B in 8 bits on one A100, gpt-fast", "A100 SXM 80GB", 1, 1.0),
        ("Llama 2 70B", "Llama 2 70B on eight A100s, gpt-fast", "A100 SXM 80GB", 8, 2.0),
        ("Llama 2 7B", "Llama 2 7B on one die of an MI250X, gpt-fast", "MI250X", 1, 2.0),
    ):

        def rate(name: str = name, card: str = card, cards: int = cards, number: float = number) -> float:
            return 1 / decode_seconds(PUBLISHED[name], ACCELERATORS[card], 128, number=number, cards=cards)

        yield Row(group, fact, rate, fact, 1.0, bound, relation="at most")
    yield from _nim(group)


def _nim(group: str) -> Iterator[Row]:
    """Rows for NVIDIA NIM. Llama 3.3 70B has the shape of Llama 3.1 70B."""
    model = PUBLISHED["Llama 3.1 70B"]

    def first() -> float:
        return prefill_seconds(model, _h100(), 5_000, mfu=1, number=1.0, cards=2)

    def between() -> float:
        return decode_seconds(model, _h100(), 5_250, number=1.0, cards=2)

    fact = "Llama 3.3 70B on two H100s, first token"
    yield Row(group, fact, first, fact, 0.6, "FLOPs / (cards · fp8 peak): a lower bound", relation="at least")
    fact = "Llama 3.3 70B on two H100s, between tokens"
    formula = "bytes / (cards · bandwidth): a lower bound"
    yield Row(group, fact, between, fact, 0.5, formula, relation="at least")


def _h100() -> Accelerator:
    return ACCELERATORS["H100 SXM"]


_INTRODUCTION = (
    "# The planner against published numbers",
    """Made by `course published` from `course_utils/napkin/published.py`; `tests/unit/test_published.py` checks every
    row against its tolerance, and this page against the rows.""",
    """There are {every} numbers: {free} rows are free and {fitted} are fitted. *Free* means that nothing was chosen to
    make the row agree. {alone} rows need only a shape, a run's settings and data sheets; the others use a measurement
    from the same run, and name it. A tolerance of 0 means equal in every digit; most of the
    others cover the rounding in the source. A lower or upper bound has to be on the right side of the number, and its
    tolerance says how far away it may be.""",
    """Two tables are left out because they count differently: Megatron's hardware utilization (its formula adds all of
    attention's FLOPs once more for selective recomputation; the planner adds a third of them, a difference of 1 to 3%),
    and the training FLOPs per token in DeepSeek's paper on hardware, which no single way of counting reproduces for all
    four of its models.""",
)
_COLUMNS = (
    "what",
    "predicted",
    "published",
    "difference",
    "tolerance",
    "how it's predicted",
    "measured input",
    "free or fitted",
    "source",
)


def page() -> str:
    """docs/published.md as text."""
    every = rows()
    fitted = sum(row.fitted for row in every)
    alone = sum(not row.measured for row in every)
    counts = {"every": len(every), "free": len(every) - fitted, "fitted": fitted, "alone": alone}
    lines = [textwrap.fill(_INTRODUCTION[0], 119)]
    lines += [f"\n{textwrap.fill(' '.join(text.format(**counts).split()), 119)}" for text in _INTRODUCTION[1:]]
    for group in dict.fromkeys(row.group for row in every):
        lines += [
            "",
            f"## {group}",
            "",
            f"| {' | '.join(_COLUMNS)} |",
            f"|{'---|' * len(_COLUMNS)}",
        ]
        lines += [_cells(row) for row in every if row.group == group]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> str:
    fact = row.published
    predicted, given = str(replace(fact, value=row.predict())), str(fact)
    if row.tolerance == 0:
        predicted, given = (_every_digit(value, fact.unit) for value in (row.predict(), fact.value))
    side = {"equal": "", "at least": "at least ", "at most": "at most "}[row.relation]
    difference = "0" if row.predict() == fact.value else f"{100 * row.difference:+.2g}%"
    tolerance = "0" if row.tolerance == 0 else f"{plain(100 * row.tolerance)}%"
    source = (
        f"[{fact.source.title}]({fact.source.url}), {fact.source.kind}, {fact.date}, verified {fact.source.verified}"
    )
    cells = [row.what, f"{side}{predicted}", given, difference, tolerance, row.formula, row.measured or "–"]
    return f"| {' | '.join([*cells, 'fitted' if row.fitted else 'free', source])} |"


def _every_digit(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value < 1e15 else f"{float(value)!r} {unit}".replace("e+", "e")
