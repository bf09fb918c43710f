"""A training run on one page: parameters, FLOPs, bytes, time and cost, each with its formula and its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_utils.cards import ACCELERATORS, Accelerator, find
from course_utils.facts import FACTS, near
from course_utils.napkin.advice import advice, warnings
from course_utils.napkin.collectives import Transfer, bubble, communication, data_parallel
from course_utils.napkin.footprint import activations, memory, per_parameter, states, weights
from course_utils.napkin.lines import ABOVE, GIVEN, Line, Plan
from course_utils.napkin.modules import Traced
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import OPTIMIZERS, RECIPES, SHARDED, Step, positive
from course_utils.napkin.work import adapters, optimizer_flops, recomputed_flops, run, training_flops
from course_utils.papers import CHINCHILLA, KORTHIKANTI, LORA, MEGATRON, MUON, PALM, ZERO
from course_utils.sources import Source, Sourced, arxiv, longest
from course_utils.units import counted, plain, readable

_KAPLAN = arxiv("Kaplan et al., Scaling Laws for Neural Language Models; lecture 06", "2001.08361", "2020-01")
PALM_B = PALM.at("appendix B")
_ZERO = ZERO.at("section 5")
_KORTHIKANTI = KORTHIKANTI.at("section 4; lecture 08")
_MEGATRON = MEGATRON.at("section 2")
_GSHARD = arxiv("Lepikhin et al., GShard, section 3", "2006.16668", "2020-06")
_META = "counted on the meta device"
_SHAPE = "the model's shape; lecture 06"
_BYTES = "bytes on each card"
_USUAL_MFU = "Llama 3.1 405B MFU, 16,384 GPUs"
_Model = Transformer | Traced


def find_card(name: str) -> Accelerator:
    """The card of that name, either as in `cards.ACCELERATORS` or as torch reports it.

    Raises:
        ValueError: there's no such card; the message lists similar names.
    """
    found = find(name)
    if found is None:
        similar = near(name, list(ACCELERATORS))
        listed = f"Similar names: {', '.join(similar)}" if similar else "hardware.ACCELERATORS and --list have them all"
        raise ValueError(f"there is no card called {name!r}. {listed}")
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

    A step takes as long as the slowest of these: the model's FLOPs at the assumed MFU; all FLOPs at the card's peak,
    with the idle time of a pipeline; the bytes of weights and optimizer state over the memory's bandwidth; and each
    kind of communication over its links. So no plan is faster than FLOPs over peak or bytes over bandwidth.

    Args:
        model: a shape, or a result of `trace`.
        step: batch, context, precision and parallelism. For a traced module, use ``traced.step(cards=…, zero=…)``.
        card: its name in `cards.ACCELERATORS`, or your own Accelerator.
        tokens: the number of tokens to train on; by default 20 per parameter that a token uses. Required for a module
            whose inputs aren't ids (then it's the number of samples) and if most weights are frozen.
        mfu: the fraction of the card's peak that the model's own FLOPs reach; by default Llama 3.1 405B's.
        price: USD per GPU-hour; by default the card's in `facts.FACTS`, if it has one.
        name: the model's name, for the title.

    Raises:
        ValueError: the card isn't in the table, a number is impossible, or the step doesn't fit the model.
    """
    name = name or (model.name if isinstance(model, Traced) else "")
    _check(model, step, name)
    accelerator = find_card(card) if isinstance(card, str) else card
    item = _item(model)
    tokens_from = ("20 · parameters that a token uses", CHINCHILLA) if tokens is None else ("to train on", GIVEN)
    tokens = _usual_tokens(model, step, name) if tokens is None else tokens
    usual = FACTS[_USUAL_MFU]
    mfu_from = ("as for Llama 3.1 405B", GIVEN) if mfu is None else ("assumed", GIVEN)
    share = usual.number if mfu is None else Sourced(mfu)
    positive(tokens=tokens)
    flops = list(flops_of_a_token(model, step))
    a_token = sum(line.value for line in flops)
    run(a_token * tokens, peak=1, mfu=share)  # raises an error if a number is impossible
    kinds = list(_bytes(model, step))
    held, limit = sum(int(line.value) for line in kinds), accelerator.memory_bytes
    peaks = list(_peaks(accelerator, model, step, flops))
    times = _times(model, step, accelerator, a_token, peaks[-1].value, share)
    steps = tokens / step.tokens
    hours = steps * times.step * step.cards / 3600
    lines = [
        *_parameters(model, step),
        *flops,
        Line("FLOPs", f"{item}s", tokens, f"{item}s", *tokens_from),
        Line("FLOPs", "training", a_token * tokens, "FLOPs", f"FLOPs of a {item} · {item}s", ABOVE),
        *_beside(model, step, tokens, steps),
        *(_activations(model, step) if isinstance(model, Transformer) else ()),
        *kinds,
        Line(_BYTES, "in all", held, "B", "the sum; the actual peak may be higher or lower", "lecture 08"),
        *peaks,
        Line("time", "MFU", share, "share", *mfu_from),
        *_schedule(model, step, times, steps, share),
        Line("time", "training", steps * times.step / 86_400, "days", "steps · a step", ABOVE),
        Line("time", "of one card", hours, "GPU-hours", f"steps · a step · {_crew(step)}", ABOVE),
        *_cost(hours, accelerator, price),
    ]
    recipe = step.recipe
    if accelerator.peak.get("bfloat16") is None and "float16" in accelerator.peak:
        recipe = recipe.replace("bfloat16", "float16")
    title = f"{named(model, name)} on {step.cards:,} × {accelerator.name}, {recipe}, {step.optimizer}"
    with_activations = isinstance(model, Transformer) or model.activations is not None
    return Plan(
        title,
        tuple(lines),
        held,
        limit,
        with_activations,
        tuple(advice(model, step, limit)) if limit is not None and held > limit else (),
        (
            *warnings(step, accelerator, step.tokens, steps, share, times.sending, times.unknown, item),
            *times.out_of_reach(share),
        ),
    )


def _check(model: _Model, step: Step, name: str) -> None:
    if isinstance(model, Traced):
        same = {"optimizer": step.optimizer, "cards": step.cards, "zero": step.zero, "accumulation": step.accumulation}
        traced = model.step(**same)
        if (step.tensor, step.pipeline, step.expert, step.lora) != (1, 1, 1, 0):
            raise ValueError(f"{name} is a module: tensor, pipeline, expert and lora work only for shapes")
        if model.flops is not None and step != traced:
            raise ValueError(f"{name} was traced for {traced}: take the step from traced.step(cards=…, zero=…)")
        return
    if step.pipeline > model.layers:
        raise ValueError(f"{model.layers} layers cannot be divided among {step.pipeline} stages (pipeline)")
    if model.heads % step.tensor:
        raise ValueError(f"{model.heads} heads cannot be divided among {step.tensor} cards (tensor) evenly")
    if step.expert > 1 and (model.experts is None or model.experts.routed % step.expert):
        count = model.experts.routed if model.experts else "no"
        raise ValueError(f"{count} experts: they cannot be divided evenly among {step.expert} groups (expert)")


def named(model: Transformer | Traced, name: str) -> str:
    """The model's name and size, for a title."""
    number = f"{counted(model.parameters)} parameters"
    if isinstance(model, Transformer) and model.experts:
        number += f", {counted(model.active)} active"
    return f"{name or 'a Transformer'}: {number}"


def _item(model: _Model) -> str:
    return model.item if isinstance(model, Traced) else "token"


def _usual_tokens(model: _Model, step: Step, name: str) -> float:
    if _item(model) == "sample":
        raise ValueError(f"{name}'s inputs are not ids: set tokens to the number of samples to train on")
    if step.lora or (isinstance(model, Traced) and model.frozen > model.parameters):
        raise ValueError("most weights are frozen, and there is no rule for how many tokens the rest needs: set tokens")
    return 20.0 * (model.active if isinstance(model, Transformer) else model.parameters)


def _crew(step: Step) -> str:
    return f"{step.cards:,} card{'s' if step.cards > 1 else ''}"


def _parameters(model: _Model, step: Step) -> Iterator[Line]:
    if isinstance(model, Traced):
        formulas, source = dict.fromkeys(model.parts, "numbers in it"), _META
    else:
        formulas, source = _counts(model), _SHAPE
    for part, count in model.parts.items():
        yield Line("parameters", part, count, "parameters", formulas[part], source)
    yield Line("parameters", "in all", model.parameters, "parameters", f"{model.parameters:,}", ABOVE)
    if isinstance(model, Transformer) and model.experts:
        unused = f"in all - {model.moe_layers} · {model.experts.routed - model.experts.active} · {model.expert:,}"
        yield Line("parameters", "active", model.active, "parameters", unused, _SHAPE)
    if isinstance(model, Transformer) and step.lora:
        formula = f"rank {step.lora} · (rows + columns) of {', '.join(step.adapted) or 'all matrices of layers'}"
        yield Line("parameters", "adapters", adapters(model, step), "parameters", formula, LORA)


def _counts(model: Transformer) -> dict[str, str]:
    bias = " + 1" if model.biases else ""

    def product(shapes: Iterable[tuple[int, int]]) -> str:
        text = " + ".join(f"({rows:,}{bias}) · {columns:,}" for rows, columns in shapes)
        return text if bias else text.replace("(", "").replace(")", "")

    if model.moe_layers:
        dense = model.layers - model.moe_layers
        layers = f"{model.layers} · ({product(model.attention.values())})"
        layers += f" + {dense} · ({product(model.block(model.hidden).values())})" if dense else ""
    else:
        layers = f"{model.layers} · ({product(model.matrices)})"
    rows = f"{model.vocabulary:,}" + ("" if model.tied else " · 2")
    rows += f" + {model.positions:,}" if model.positions else ""
    norms = f"{2 * model.layers + 1} · {model.norm_vectors} · {model.width:,}"
    if model.latent and model.norm_vectors:
        ranks = model.latent.query_rank + model.latent.kv_rank
        norms += f" + {model.layers} · {model.norm_vectors} · {ranks:,}"
    found = {"layers": layers, "norms": norms, "embeddings and output layer": f"({rows}) · {model.width:,}"}
    if model.experts:
        each = model.experts.routed + model.experts.shared
        found["experts"] = f"{model.moe_layers} · {each} · ({product(model.block(model.experts.width).values())})"
        found["routers"] = f"{model.moe_layers} · {model.width:,} · {model.experts.routed}"
    return found | {"gates": f"{model.gates:,}", "other lookups": f"{model.lookups:,}"}


def flops_of_a_token(model: _Model, step: Step) -> Iterator[Line]:
    """The lines of the model's FLOPs for one token, forward and backward; MFU uses their sum."""
    if isinstance(model, Transformer):
        parts = training_flops(model, step.context, step)
        if step.lora:
            formula, source = f"4 · {model.multiplied:,} + 6 · {adapters(model, step):,}", LORA
        else:
            formula, source = f"6 · {model.multiplied:,}", _KAPLAN
        yield Line("FLOPs", "a token's matrices", parts["matrices"], "FLOPs", formula, source)
        if model.windows or model.latent:
            formula = f"6 · {model.attended_width:,} · {model.attended(step.context):,}"
        else:
            formula = f"12 · {model.layers} · {model.query_width:,} · {step.context:,}"
        yield Line("FLOPs", "a token's attention", parts["attention"], "FLOPs", formula, PALM_B)
    elif model.flops is None:
        formula = f"{_rule(model)}, as no input was given"
        yield Line("FLOPs", "a token", 4 * model.frozen + 6 * model.parameters, "FLOPs", formula, _KAPLAN)
    else:
        items = model.batch * model.context
        formula = f"{plain(model.flops)} of a forward and backward pass / {items:,}"
        yield Line("FLOPs", f"a {model.item}", model.flops / items, "FLOPs", formula, f"{_META} by FlopCounterMode")


def _rule(model: Traced) -> str:
    return f"4 · {model.frozen:,} frozen + 6 · parameters" if model.frozen else "6 · parameters"


def _beside(model: _Model, step: Step, tokens: float, steps: float) -> Iterator[Line]:
    """FLOPs that don't count for MFU (recomputation, the optimizer), and the rule of thumb."""
    if isinstance(model, Traced):
        if model.recomputed:
            again = model.recomputed / (model.batch * model.context) * tokens
            yield Line("FLOPs", "computed again", again, "FLOPs", "by checkpointing; MFU leaves it out", PALM_B)
        if model.item == "token":
            rule = (4 * model.frozen + 6 * model.parameters) * tokens
            yield Line("FLOPs", "rule of thumb", rule, "FLOPs", f"({_rule(model)}) · tokens", _KAPLAN)
        return
    if not step.lora:
        rule, used = 6 * model.active * tokens, "active parameters" if model.experts else "parameters"
        yield Line("FLOPs", "rule of thumb", rule, "FLOPs", f"6 · {used} · tokens", _KAPLAN)
    if step.checkpointing:
        again = recomputed_flops(model, step.context) * tokens
        yield Line("FLOPs", "computed again", again, "FLOPs", "the layers' forward pass; MFU leaves it out", PALM_B)
    if update := optimizer_flops(model, step):
        formula = "steps · 5 · (4 · n² · m + 2 · n³) for each matrix; MFU leaves it out"
        yield Line("FLOPs", f"{step.optimizer}'s own", update * steps, "FLOPs", formula, MUON)


def _activations(model: Transformer, step: Step) -> Iterator[Line]:
    size = RECIPES[step.recipe].activations
    layer = f"4 · width + 2 · queries + 2 · keys + {4 if model.gated else 2} · hidden"
    if model.experts or model.latent:
        layer = "norms, attention, feed-forward or active experts"
    formulas = {
        "layers": f"{size} · tokens · layers · " + ("width" if step.checkpointing else f"({layer})"),
        "attention weights": "4 · tokens · layers · heads"
        if step.fused_attention
        else f"{size} · tokens · layers · heads · context",
        "statistics of norms": f"{4 * model.norm_vectors} · tokens" + ("" if step.checkpointing else " · norms"),
        "last norm and head": f"{2 * size} · tokens · width",
        "loss": "4 · (tokens · vocabulary + 1)",
        "recomputed layer": "what a layer keeps without checkpointing, less its input",
    }
    waiting = min(step.pipeline, step.accumulation)
    held = f" · {waiting} / {step.pipeline} in the first stage" if step.pipeline > 1 else ""
    divided = f" / {step.tensor}" if step.tensor > 1 else ""
    for part, value in activations(model, step).items():
        formula = f"{formulas[part]}{held}{divided}"
        yield Line("activations on each card", part, value, "B", formula, _KORTHIKANTI)


def _bytes(model: _Model, step: Step) -> Iterator[Line]:
    counts = weights(model, step) if isinstance(model, Transformer) else model.weights(step)
    size = per_parameter(step)
    numbers = {
        "optimizer state": (4 * counts.kept, 4 * counts.kept_for_experts),
        "frozen parameters": (counts.frozen, counts.experts if counts.experts_frozen else 0),
    }
    one = step.tensor * step.pipeline
    for kind, value in states(counts, step).items():
        sharded = kind in SHARDED[step.zero]
        dense, experts = numbers.get(kind, (counts.trained, 0 if counts.experts_frozen else counts.experts))
        each = 1.0 if kind == "optimizer state" else size["parameters" if kind == "frozen parameters" else kind]
        formula = _share(f"{each:g} · " if each != 1 else "", dense, experts, step, sharded, model.parameters)
        if kind == "optimizer state" and not OPTIMIZERS[step.optimizer].factored and dense == 4 * 2 * counts.trained:
            formula = _share("8 · ", counts.trained, counts.experts, step, sharded, model.parameters)
        source = _ZERO if sharded and step.groups > 1 else _MEGATRON if one > 1 else "lecture 00, What fits?"
        yield Line(_BYTES, kind, value, "B", formula, source)
    if isinstance(model, Transformer):
        kept = memory(model, step)["activations"]
        yield Line(_BYTES, "activations", kept, "B", "the sum of those above", _KORTHIKANTI)
        return
    if still := model.frozen * size["parameters"] + model.buffers:
        yield Line(_BYTES, "frozen, buffers", int(still), "B", "on every card", _META)
    if model.activations is None:
        yield Line(_BYTES, "activations", 0, "B", "not counted, as no input was given", _META)
    else:
        formula = "what its forward pass keeps for the backward pass"
        yield Line(_BYTES, "activations", model.activations, "B", formula, f"{_META} by saved_tensors_hooks")


def _share(factor: str, dense: float, experts: float, step: Step, sharded: bool, parameters: int) -> str:
    one = step.tensor * step.pipeline
    by = one * (step.groups if sharded else 1)
    by_experts = one * step.expert * (step.groups // step.expert if sharded else 1)

    def over(count: float, divisor: int) -> str:
        text = "parameters" if count == parameters else f"{count:,.0f}"
        return f"{text} / {divisor:,}" if divisor > 1 else text

    if not experts:
        return f"{factor}{over(dense, by)}"
    if by == by_experts and dense + experts == parameters:
        return f"{factor}{over(parameters, by)}"
    return f"{factor}({over(dense, by)} + {over(experts, by_experts)})"


def _peaks(accelerator: Accelerator, model: _Model, step: Step, flops: list[Line]) -> Iterator[Line]:
    """FLOP/s that the card promises for this step's matrix products; the last line is for all of them together."""
    recipe = RECIPES[step.recipe]
    wide, wide_name = _rate(accelerator, recipe.others, step)
    if recipe.layers == recipe.others or isinstance(model, Traced):
        yield Line("time", "peak", wide, "FLOP/s", f"{accelerator.name}, dense {wide_name}", GIVEN)
        return
    narrow, narrow_name = _rate(accelerator, recipe.layers, step)
    yield Line("time", "peak in layers", narrow, "FLOP/s", f"{accelerator.name}, dense {narrow_name}", GIVEN)
    yield Line("time", "peak elsewhere", wide, "FLOP/s", f"{accelerator.name}, dense {wide_name}", GIVEN)
    whole = sum(line.value for line in flops)
    elsewhere = flops[-1].value + (4 if step.lora else 6) * model.vocabulary * model.width
    together = whole / ((whole - elsewhere) / narrow + elsewhere / wide)
    formula = "FLOPs of a token / (FLOPs in layers' matrices / peak in layers + other FLOPs / peak elsewhere)"
    yield Line("time", "peak", together, "FLOP/s", formula, ABOVE)


def _rate(accelerator: Accelerator, dtypes: tuple[str, ...], step: Step) -> tuple[Sourced, str]:
    for dtype in dtypes:
        if dtype in accelerator.peak:
            return Sourced(accelerator.peak[dtype], *accelerator.sources), dtype
    bits = {"float32": 32, "bfloat16": 16, "float8_e4m3fn": 8, "float4_e2m1fn_x2": 4}[dtypes[0]]
    fitting = [
        name
        for name, recipe in RECIPES.items()
        if any(d in accelerator.peak for d in recipe.layers) and any(d in accelerator.peak for d in recipe.others)
    ]
    raise ValueError(
        f"recipe is {step.recipe!r}, but the table has no {bits}-bit peak of {accelerator.name}: choose the recipe "
        f"{fitting[0]!r}"
    )


@dataclass(frozen=True)
class _Times:
    """Seconds of a step."""

    computing: Sourced  # the model's FLOPs at the assumed MFU
    at_peak: Sourced  # all FLOPs at the peak, and a pipeline's idle time
    moving: Sourced  # bytes over the memory's bandwidth
    moved: float
    sending: dict[str, Transfer]
    unknown: str  # why communication is not known

    @property
    def step(self) -> Sourced:
        return longest(self.computing, self.at_peak, self.moving, *(t.seconds for t in self.sending.values()))

    def out_of_reach(self, share: float) -> Iterator[str]:
        """A warning if the assumed MFU can't be reached, with what takes longer."""
        takes = {
            "all FLOPs at the peak (recomputation, optimizer and idle stages included)": self.at_peak,
            "its memory traffic": self.moving,
            **{SENDING[kind]: transfer.seconds for kind, transfer in self.sending.items()},
        }
        slowest = max(takes, key=lambda what: float(takes[what]))
        if takes[slowest] > self.computing:
            yield (
                f"an MFU of {share:.2g} is out of reach: a step takes {readable(self.step, 's')} for {slowest}, so "
                f"it's {share * self.computing / self.step:.2g} at most."
            )


def _times(model: _Model, step: Step, card: Accelerator, a_token: float, peak: float, mfu: Sourced) -> _Times:
    items = step.tokens
    rate = step.cards * Sourced(peak, *card.sources)
    every = a_token
    if isinstance(model, Traced):
        every += model.recomputed / (model.batch * model.context)
    elif step.checkpointing:
        every += recomputed_flops(model, step.context)
    idle = 1 - bubble(step)
    update = optimizer_flops(model, step) if isinstance(model, Transformer) else 0
    updating = update / (rate if step.zero else rate / step.groups)
    moved = _moved(model, step)
    sending, unknown = _sending(model, step, card)
    return _Times(
        items * a_token / (rate * mfu),
        items * every / rate / idle + updating,
        moved / Sourced(card.bandwidth, *card.sources),
        moved,
        sending,
        unknown,
    )


def _moved(model: _Model, step: Step) -> float:
    """Bytes that a step must read or write on each card: weights forward and backward, gradients, the update."""
    counts = weights(model, step) if isinstance(model, Transformer) else model.weights(step)
    held = states(counts, step)
    passes = 2 * step.accumulation * (held["parameters"] + held.get("frozen parameters", 0))
    state = held["optimizer state"]
    # The update reads gradients, weights (the master copy where there is one) and state, and writes weights and state.
    update = held["gradients"] + (held["master copy"] or held["parameters"]) + state
    return passes + held["gradients"] + update + held["parameters"] + held["master copy"] + state


def _sending(model: _Model, step: Step, card: Accelerator) -> tuple[dict[str, Transfer], str]:
    if step.cards == 1:
        return {}, ""
    try:
        if isinstance(model, Traced):
            return data_parallel(model.parameters, step, card, frozen=model.frozen), ""
        return communication(model, step, card), ""
    except ValueError as error:
        return {}, str(error)


def _schedule(model: _Model, step: Step, times: _Times, steps: float, share: Sourced) -> Iterator[Line]:
    item, crew = _item(model), _crew(step)
    formula = f"{step.batch:,} · {step.context:,} · {crew}"
    one = step.tensor * step.pipeline
    formula += f" / {one}" if one > 1 else ""
    formula += f" · {step.accumulation:,}" if step.accumulation > 1 else ""
    yield Line("time", f"{item}s in a step", step.tokens, f"{item}s", formula, GIVEN)
    yield Line("time", "steps", steps, "steps", f"{item}s / {item}s in a step", ABOVE)
    rate = f"({crew} · peak · MFU)"
    formula = f"FLOPs of a {item} · {item}s in a step / {rate}"
    yield Line("time", "a step's compute at the MFU", times.computing, "s", formula, ABOVE)
    if step.pipeline > 1:
        idle = f"({step.pipeline} - 1) / ({step.accumulation} + {step.pipeline} - 1)"
        yield Line("time", "pipeline bubble", bubble(step), "share", idle, _MEGATRON)
    if (
        step.checkpointing
        or (isinstance(model, Traced) and model.recomputed)
        or step.pipeline > 1
        or OPTIMIZERS[step.optimizer].orthogonalizes
    ):
        formula = "all FLOPs, recomputation and optimizer included, at the peak"
        formula += ", and idle stages" if step.pipeline > 1 else ""
        yield Line("time", "a step's compute at the peak", times.at_peak, "s", formula, ABOVE)
    if times.moving > 0:  # otherwise the card's bandwidth is unknown
        formula = f"{plain(times.moved)} bytes of weights, gradients and optimizer state / bandwidth"
        yield Line("time", "a step's memory traffic", times.moving, "s", formula, "lecture 05, roofline")
    for kind, transfer in times.sending.items():
        text = f"{transfer.formula}: {plain(transfer.nbytes)} bytes sent, the slowest link {transfer.link}"
        yield Line("time", SENDING[kind], transfer.seconds, "s", text, _source_of(kind))
    yield Line("time", "a step", times.step, "s", "the longest of these: at best they overlap", ABOVE)
    if times.step > times.computing:
        reached = share * times.computing / times.step
        yield Line("time", "MFU reached", reached, "share", "MFU · a step's compute at the MFU / a step", ABOVE)


# The lines of what cards send one another in a step, by its purpose.
SENDING = {
    "gradients": "sending gradients",
    "parameters": "sending parameters",
    "tensor": "sending for tensor parallelism",
    "experts": "sending to experts",
    "pipeline": "sending between stages",
}


def _source_of(kind: str) -> Source:
    return {"tensor": _KORTHIKANTI, "pipeline": _MEGATRON, "experts": _GSHARD}.get(kind, _ZERO)


def _cost(hours: float, card: Accelerator, price: float | None) -> Iterator[Line]:
    rent = FACTS.get(f"{card.name} rent")
    if price is not None or rent is not None:
        each = Sourced(price) if price is not None else FACTS[f"{card.name} rent"].number
        positive(price=each)
        yield Line("cost", "rent", hours * each, "USD", f"GPU-hours · {each:.2f} USD", GIVEN)
    if card.power is not None:
        watts = Sourced(card.power, *card.sources)
        formula = f"GPU-hours · {card.power:,.0f} W, a card's power limit, without its server and cooling"
        yield Line("energy", "cards alone", hours * watts / 1000, "kWh", formula, GIVEN)
