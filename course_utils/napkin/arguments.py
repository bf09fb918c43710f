"""The command's arguments, and the plans, models and cards that they describe."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from course_utils.cards import Accelerator
from course_utils.facts import near
from course_utils.napkin.inference import FORMATS, Serving
from course_utils.napkin.lines import Plan
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.modules import Traced, trace
from course_utils.napkin.planner import find_card, plan
from course_utils.napkin.serving import serve
from course_utils.napkin.shapes import Experts, Transformer
from course_utils.napkin.step import OPTIMIZERS, RECIPES, SHARDED, Step, positive
from course_utils.units import parse, raised

if TYPE_CHECKING:
    import torch

_MOST = 15  # the largest accepted count, as a power of ten: anything larger is a typing error
_NEEDED = ("layers", "width", "heads", "vocabulary")
_EXPERTS = {"experts": "routed", "active_experts": "active", "expert_width": "width", "shared_experts": "shared"}
SHORT = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "float8": "float8_e4m3fn",
    "fp4": "float4_e2m1fn_x2",
    "nvfp4": "float4_e2m1fn_x2",
}


def number(text: str, unit: str = "") -> float:
    """The number in an argument, with an optional suffix: ``"15T"`` is 15e12."""
    try:
        return parse(text, unit)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str, what: str = "count") -> int:
    """An integer, at least 1; ``"8k"`` is 8,000. ``what`` it is stands in the error."""
    with contextlib.suppress(ValueError):
        found = parse(text)
        if found.is_integer() and 1 <= found <= 10**_MOST:
            return int(found)
    raise argparse.ArgumentTypeError(f"{text!r} is not a {what}; expected 1, 2, 3, … and at most 10{raised(_MOST)}")


def share(text: str) -> float:
    """A fraction: ``"0.4"`` or ``"40%"``."""
    digits = text.strip()
    return number(digits.removesuffix("%")) / 100 if digits.endswith("%") else number(text)


cards = partial(count, what="number of cards")


def of_card(text: str, unit: str, such: str) -> float:
    """One of a card's numbers, at least a million: anything smaller lacks a prefix. ``such`` is an example."""
    if 0 < (found := number(text, unit)) < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is only {found:g} {unit}; expected one such as {such}")
    return found


peak = partial(of_card, unit="FLOP/s", such="989T")
memory = partial(of_card, unit="B", such="80GB")
bandwidth = partial(of_card, unit="B/s", such="3.35T")


@cache
def left_out(add: Callable[[argparse.ArgumentParser], None]) -> Mapping[str, Any]:
    """The values of the arguments that ``add``, such as `add_training`, adds to a parser, if all are left out."""
    parser = argparse.ArgumentParser(prog="napkin", add_help=False)
    add(parser)
    return MappingProxyType(vars(parser.parse_args([])))


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a training run."""
    add_model(parser, module=True)
    add_step(parser)
    run = add_card(parser)
    run.add_argument("--tokens", type=number, metavar="N", help="tokens (or samples) to train on; 20 per parameter")
    run.add_argument("--mfu", type=share, metavar="SHARE", help="the fraction of the peak reached; 0.41")
    run.add_argument("--price", type=number, metavar="USD", help="price per GPU-hour; from the table of facts")


def add_serving(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for serving a model."""
    add_model(parser, module=False)
    add_requests(parser)
    run = add_card(parser)
    run.add_argument("--mfu", type=share, metavar="SHARE", help="of prefill; 0.5")
    run.add_argument("--price", type=number, metavar="USD", help="price per GPU-hour")


def add_model(parser: argparse.ArgumentParser, *, module: bool) -> None:
    """Add the arguments for the model: a published one, a shape or, with ``module``, any nn.Module."""
    model = parser.add_argument_group(
        "the model: a published one or a shape" + (", or any nn.Module" if module else "")
    )
    model.add_argument("--model", metavar="NAME", help="a published model; --list shows them")
    for name in _NEEDED:
        model.add_argument(f"--{name}", type=count, metavar="N", help="of a Transformer")
    model.add_argument("--kv-heads", type=count, metavar="N", help="key-value heads; as many as --heads")
    model.add_argument("--head-width", type=count, metavar="N", help="width / heads")
    model.add_argument(
        "--feed-forward", type=count, metavar="N", help="hidden width of the feed-forward block; 4 · width"
    )
    model.add_argument("--gated", action="store_true", help="use a gated feed-forward block, as in Llama")
    model.add_argument("--positions", type=count, metavar="N", help="rows of a learned positional embedding; none")
    model.add_argument("--tied", action="store_true", help="the output layer shares the token embedding")
    model.add_argument("--biases", action="store_true", help="every matrix of a layer has a bias")
    model.add_argument("--rms-norm", action="store_true", help="RMSNorm, with one vector where LayerNorm has two")
    model.add_argument("--window", type=count, metavar="TOKENS", help="sliding window of attention; all tokens")
    model.add_argument("--experts", type=count, metavar="N", help="routed experts in a layer; none")
    model.add_argument("--active-experts", type=count, metavar="N", help="routed experts that each token goes to")
    model.add_argument("--expert-width", type=count, metavar="N", help="hidden width of an expert")
    model.add_argument("--shared-experts", type=count, metavar="N", help="experts that every token goes to; none")
    model.add_argument("--dense-layers", type=count, metavar="N", help="layers without experts; none")
    if module:
        model.add_argument("--module", metavar="MODULE:FUNCTION", help="a function that makes an nn.Module")
        model.add_argument(
            "--input",
            action="append",
            metavar="SHAPE",
            help='an input of its forward, "int64[1, 8192]"; without it, 6 · N FLOPs per token',
        )


def add_step(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for how the model is trained."""
    step = parser.add_argument_group("the step")
    step.add_argument("--batch", type=count, metavar="N", help="sequences that a group of cards processes at once; 1")
    step.add_argument("--context", type=count, metavar="N", help="tokens in each sequence; 2,048")
    step.add_argument("--accumulation", type=count, metavar="N", help="batches before each update; 1")
    step.add_argument("--global-batch", type=count, metavar="TOKENS", help="tokens in a step; sets --accumulation")
    step.add_argument(
        "--recipe", choices=RECIPES, default=Step.recipe, metavar="NAME", help=f"precision: {'; '.join(RECIPES)}"
    )
    step.add_argument(
        "--optimizer", choices=OPTIMIZERS, default=Step.optimizer, metavar="NAME", help="; ".join(OPTIMIZERS)
    )
    step.add_argument("--cards", type=cards, default=1, metavar="N", help="cards that train together; 1")
    step.add_argument("--zero", type=int, choices=SHARDED, default=0, help="ZeRO stage: what is sharded; 0")
    step.add_argument("--tensor", type=count, default=1, metavar="N", help="cards that each matrix is split over; 1")
    step.add_argument("--pipeline", type=count, default=1, metavar="N", help="cards that the layers are split over; 1")
    step.add_argument("--expert", type=count, default=1, metavar="N", help="groups that the experts are split over; 1")
    step.add_argument("--lora", type=count, metavar="RANK", help="rank of adapters, trained instead of the model")
    step.add_argument("--adapted", metavar="NAMES", help='matrices with an adapter, such as "queries,values"; all')
    step.add_argument("--checkpointing", action="store_true", help="recompute each layer in the backward pass")
    step.add_argument("--unfused-attention", action="store_true", help="attention saves its T × T weights")


def add_card(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the arguments for the card, one from the table or your own."""
    run = parser.add_argument_group("the card and the run")
    run.add_argument("--card", metavar="NAME", help="a card from the table, see --list; H100 SXM")
    run.add_argument("--peak", type=peak, metavar="FLOP/S", help="peak of a card that is not in the table")
    run.add_argument("--memory", type=memory, metavar="BYTES", help="the card's memory: 24G, 80GB, 80GiB")
    run.add_argument("--bandwidth", type=bandwidth, metavar="BYTES/S", help="the bandwidth of its memory: 3.35TB/s")
    return run


def add_requests(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for how the model is served."""
    group = parser.add_argument_group("the requests")
    group.add_argument("--batch", type=count, default=Serving.batch, metavar="N", help="generated together; 1")
    group.add_argument("--prompt", type=count, default=Serving.prompt, metavar="N", help="tokens in each prompt; 2,048")
    group.add_argument(
        "--output", type=count, default=Serving.output, metavar="N", help="tokens to generate for each; 256"
    )
    for name in ("weights", "cache"):
        group.add_argument(f"--{name}", choices=FORMATS, default="bfloat16", help="format of its numbers; bfloat16")
    group.add_argument(
        "--cards", type=cards, default=Serving.cards, metavar="N", help="cards that the model is split over; 1"
    )


def training(given: argparse.Namespace) -> Plan:
    """The plan of training a published model or a shape.

    Raises:
        ValueError: the arguments describe no model, no card or no step, or the plan is impossible.
    """
    model, name = shape(given)
    made = step(given)
    numbers = {"tokens": given.tokens, "mfu": given.mfu, "price": given.price}
    found = plan(model.reaching(made.context), made, card=accelerator(given), name=name, **numbers)
    return _warned(found, model, name, made.context, f"this plan gives it {made.context:,} positions")


def serving(given: argparse.Namespace) -> Plan:
    """The plan of serving a published model or a shape.

    Raises:
        ValueError: the arguments describe no model or no card, or the plan is impossible.
    """
    model, name = shape(given)
    card = accelerator(given)
    if math.isinf(card.bandwidth):
        raise ValueError("give the card's --bandwidth: most of the time, serving waits for its memory")
    served = Serving(given.batch, given.prompt, given.output, given.weights, given.cache, given.cards)
    found = serve(model, served, card=card, mfu=given.mfu, price=given.price, name=name)
    context = given.prompt + given.output
    return _warned(found, model, name, context, f"prompt and output are {context:,}")


def _warned(found: Plan, model: Transformer, name: str, context: int, said: str) -> Plan:
    """The plan, with a warning if its context is longer than the model's learned positions reach."""
    if not 0 < model.positions < context:
        return found
    warning = f"{name or 'the model'} takes at most {model.positions:,} tokens, but {said}."
    return replace(found, warnings=(*found.warnings, warning))


def shape(given: argparse.Namespace) -> tuple[Transformer, str]:
    """The model and its name.

    Raises:
        ValueError: the arguments describe no model, or two.
    """
    values: dict[str, Any] = {field.name: getattr(given, field.name, None) for field in fields(Transformer)}
    values["norm_vectors"] = 1 if given.rms_norm else None
    values["windows"] = (given.window,) if given.window else None
    values["experts"] = _experts(given)
    values = {name: value for name, value in values.items() if value}
    if given.model:
        if values:
            named = {"norm_vectors": "rms-norm", "windows": "window"}
            flags = ", ".join("--" + named.get(name, name.replace("_", "-")) for name in values)
            raise ValueError(f"{flags}: {given.model} already has a shape; give --model or a shape, not both")
        return _published(given.model)
    missing = [name for name in _NEEDED if name not in values]
    if missing:
        flags = ", ".join(f"--{name}" for name in missing)
        raise ValueError(f"give a model: --model NAME, --module MODULE:FUNCTION, or a shape ({flags} missing)")
    return Transformer(**values), ""


def _experts(given: argparse.Namespace) -> Experts | None:
    values = {name: getattr(given, flag) for flag, name in _EXPERTS.items() if getattr(given, flag)}
    if given.dense_layers:
        values["dense_layers"] = given.dense_layers
    missing = [flag for flag in ("experts", "active_experts", "expert_width") if not getattr(given, flag)]
    if values and missing:
        flags = ", ".join("--" + flag.replace("_", "-") for flag in missing)
        raise ValueError(f"a mixture of experts needs {flags} as well")
    return Experts(**values) if values else None


def step(given: argparse.Namespace) -> Step:
    """How the model is trained."""
    found = Step(
        given.batch or 1,
        given.context or 2_048,
        given.recipe,
        given.optimizer,
        given.cards,
        given.zero,
        given.checkpointing,
        not given.unfused_attention,
        given.tensor,
        given.pipeline,
        given.expert,
        given.accumulation or 1,
        given.lora or 0,
        tuple(name.strip() for name in given.adapted.split(",")) if given.adapted else (),
    )
    return _filled(found, given)


def _filled(found: Step, given: argparse.Namespace) -> Step:
    """The step, with --accumulation set from --global-batch if that is given."""
    if given.adapted and not given.lora:
        raise ValueError("--adapted needs --lora RANK: give a rank")
    if given.global_batch is None:
        return found
    if given.accumulation is not None:
        raise ValueError("--global-batch determines how many batches to accumulate: leave out --accumulation")
    one = replace(found, accumulation=1).tokens
    if given.global_batch % one:
        raise ValueError(
            f"a global batch of {given.global_batch:,} tokens: expected a multiple of {one:,}, the tokens in one "
            "batch of all cards"
        )
    return replace(found, accumulation=given.global_batch // one)


def _published(name: str) -> tuple[Transformer, str]:
    names = {known.lower(): known for known in PUBLISHED}
    if name.lower() not in names:
        similar = near(name, list(PUBLISHED))
        advice = f"Similar names: {', '.join(similar)}" if similar else "--list shows them all"
        raise ValueError(f"there is no model called {name!r}. {advice}")
    return PUBLISHED[names[name.lower()]], names[name.lower()]


def traced(given: argparse.Namespace) -> tuple[Traced, Step, str]:
    """A module traced on the meta device, how it is trained, and its name."""
    alone = ("model", *_NEEDED, "checkpointing", "lora", "adapted", "global_batch", "experts", "window")
    for flag in alone:
        if getattr(given, flag):
            flag = flag.replace("_", "-")
            raise ValueError(f"--{flag} cannot be combined with --module, whose code defines the model")
    if given.input and (given.batch or given.context):
        raise ValueError("--batch and --context cannot be combined with --input, whose shape gives both")
    found = module(given, recipe=given.recipe, fused_attention=not given.unfused_attention)
    how = {"tensor": given.tensor, "pipeline": given.pipeline, "expert": given.expert}
    made = found.step(
        optimizer=given.optimizer, cards=given.cards, zero=given.zero, accumulation=given.accumulation or 1, **how
    )
    if not given.input:
        made = replace(made, batch=given.batch or 1, context=given.context or 2_048)
    return found, made, given.module


def module(given: argparse.Namespace, **how: Any) -> Traced:
    """What `trace` finds in --module with --input."""
    return trace(_function(given.module), *(_tensor(text) for text in given.input or ()), **how)


def _function(name: str) -> Callable[..., Any]:
    path, _, function = name.partition(":")
    if not function:
        raise ValueError(f"--module {name}: expected MODULE:FUNCTION, such as my_package.model:make")
    try:
        found = importlib.import_module(path)
    except ImportError as error:
        raise ValueError(f"--module {name}: {error}; searched this folder and Python's import path") from error
    made = getattr(found, function, None)
    if not callable(made):
        raise ValueError(f"--module {name}: {path} has no function {function}")
    return made  # type: ignore[no-any-return]


def _tensor(text: str) -> torch.Tensor:
    """The tensor that ``"int64[1, 8192]"`` describes, on the meta device."""
    import torch

    match = re.fullmatch(r"(\w+)\[([\d\s,_]*)\]", text.strip())
    dtype = getattr(torch, match[1], None) if match else None
    if match is None or not isinstance(dtype, torch.dtype):
        raise ValueError(f'--input {text}: expected a dtype and a shape, such as "int64[1, 8192]"')
    return torch.empty([int(size) for size in match[2].split(",") if size.strip()], dtype=dtype, device="meta")


def accelerator(given: argparse.Namespace) -> Accelerator:
    """The card, with --peak, --memory and --bandwidth replacing the table's values. Without the last, the bandwidth of
    a card that isn't in the table is infinite.

    Raises:
        ValueError: there's no such card, --memory or --bandwidth is given without a card, or a number isn't positive
            and finite.
    """
    numbers = {name: getattr(given, name) for name in ("peak", "memory", "bandwidth")}
    numbers = {name: value for name, value in numbers.items() if value is not None}
    positive(**numbers)
    if given.card is None and not numbers:
        return find_card("H100 SXM")
    if given.card is not None:
        found = find_card(given.card)
    elif given.peak is None:
        raise ValueError(f"--{next(iter(numbers))} needs --card or --peak: give one of them")
    else:
        found = Accelerator("a card of your own", {}, float("inf"), None, None, "given")
    if given.peak is not None:
        found = replace(found, peak=dict.fromkeys(("float32", "bfloat16"), given.peak), source="given")
    if given.bandwidth is not None:
        found = replace(found, bandwidth=given.bandwidth)
    return found if given.memory is None else replace(found, memory_bytes=int(given.memory))
