"""``python -m course_utils.napkin``: plan a training run on the command line."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from course_utils.facts import near
from course_utils.napkin.ledger import OPTIMIZERS, PUBLISHED, RECIPES, SHARDED, Step, Transformer
from course_utils.napkin.modules import Traced, trace
from course_utils.napkin.planner import find_card, plan

if TYPE_CHECKING:
    import torch

    from course_utils.hardware import Accelerator

_EXAMPLES = """\
examples:
  python -m course_utils.napkin --model "Llama 3.1 70B" --cards 64 --zero 3 --checkpointing --tokens 15T
  python -m course_utils.napkin --layers 12 --width 768 --heads 12 --vocabulary 50257 --card "RTX 4090" --tokens 10B
  python -m course_utils.napkin --module my_package.model:make --input "int64[4, 2048]" --card A10G --price 1.2
  python -m course_utils.napkin --model "Llama 3.1 8B" --json

Numbers may end in k, M, B or T. The function that --module names is called without arguments on PyTorch's meta
device, where a model of any size takes no memory.
"""
_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Errors in the arguments go to stderr, with exit status 2."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        if given.list:
            _print_names()
            return
        model, step, name = _traced(given) if given.module else _shaped(given)
        numbers = {"tokens": given.tokens, "mfu": given.mfu, "price": given.price}
        planned = plan(model, step, card=_accelerator(given), name=name, **numbers)
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    print(json.dumps(planned.as_dict(), indent=2, ensure_ascii=False) if given.json else planned)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.napkin",
        usage="%(prog)s (--model NAME | --layers N --width N --heads N --vocabulary N | --module NAME) [options]",
        description="What a training takes, before it is run: parameters, FLOPs, bytes on each card, time and cost,\n"
        "each with its formula and its source.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    model = parser.add_argument_group("the model: a published one, a shape, or any nn.Module")
    model.add_argument("--model", metavar="NAME", help="a published model; --list shows them")
    for name in ("layers", "width", "heads", "vocabulary"):
        model.add_argument(f"--{name}", type=_count, metavar="N", help="of a Transformer")
    model.add_argument("--kv-heads", type=_count, metavar="N", help="of keys and values; as many as heads")
    model.add_argument("--head-width", type=_count, metavar="N", help="width / heads")
    model.add_argument("--feed-forward", type=_count, metavar="N", help="between its matrices; 4 · width")
    model.add_argument("--gated", action="store_true", help="a gated feed-forward, as in Llama")
    model.add_argument("--positions", type=_count, metavar="N", help="rows of a learned table; none")
    model.add_argument("--tied", action="store_true", help="the head is the table of tokens")
    model.add_argument("--biases", action="store_true", help="every matrix of a layer has one")
    model.add_argument("--rms-norm", action="store_true", help="one vector for each norm, where LayerNorm has two")
    model.add_argument("--module", metavar="MODULE:FUNCTION", help="makes an nn.Module")
    model.add_argument(
        "--input", action="append", metavar="SHAPE", help='of its forward, "int64[1, 8192]"; without it, 6 · N'
    )
    step = parser.add_argument_group("the step")
    step.add_argument("--batch", type=_count, metavar="N", help="sequences on a card at once; 1")
    step.add_argument("--context", type=_count, metavar="N", help="tokens of each; 2,048")
    step.add_argument(
        "--recipe", choices=RECIPES, default=Step.recipe, metavar="NAME", help=f"precision: {'; '.join(RECIPES)}"
    )
    step.add_argument(
        "--optimizer", choices=OPTIMIZERS, default=Step.optimizer, metavar="NAME", help="; ".join(OPTIMIZERS)
    )
    step.add_argument("--cards", type=_count, default=1, metavar="N", help="that train together; 1")
    step.add_argument("--zero", type=int, choices=SHARDED, default=0, help="stage of ZeRO: what the cards share; 0")
    step.add_argument("--checkpointing", action="store_true", help="each layer is computed a second time")
    step.add_argument("--unfused-attention", action="store_true", help="attention keeps its T × T weights")
    run = parser.add_argument_group("the card and the run")
    run.add_argument("--card", metavar="NAME", help="H100 SXM; --list shows them")
    run.add_argument("--peak", type=_number, metavar="FLOP/S", help="of a card that is not in the table")
    run.add_argument("--memory", type=_number, metavar="BYTES", help="of a card that is not in the table")
    run.add_argument("--tokens", type=_number, metavar="N", help="to train on, or samples; 20 for each parameter")
    run.add_argument("--mfu", type=_number, metavar="SHARE", help="of the peak that is reached; 0.41")
    run.add_argument("--price", type=_number, metavar="USD", help="for an hour of one card; from the table of facts")
    parser.add_argument("--json", action="store_true", help="for a program to read")
    parser.add_argument("--list", action="store_true", help="names of models and cards")
    return parser


def _number(text: str) -> float:
    """``"15T"`` is 15e12."""
    match = re.fullmatch(r"([0-9_.]+(?:e[+-]?\d+)?)([kMBT]?)", text.replace(",", ""))
    try:
        return float(match[1]) * _SIZES[match[2]] if match else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; expected one such as 0.4, 15e12 or 15T") from None


def _count(text: str) -> int:
    number = _number(text)
    if not number.is_integer() or number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; expected 1, 2, 3, …")
    return int(number)


def _shaped(given: argparse.Namespace) -> tuple[Transformer, Step, str]:
    shape: dict[str, Any] = {field.name: getattr(given, field.name, None) for field in fields(Transformer)}
    shape["norm_vectors"] = 1 if given.rms_norm else None
    shape = {name: value for name, value in shape.items() if value}
    if given.input:
        raise ValueError("--input is that of a module: name its function with --module")
    if given.model:
        if shape:
            flags = ", ".join("--" + ("rms-norm" if n == "norm_vectors" else n.replace("_", "-")) for n in shape)
            raise ValueError(f"{flags}: the shape of {given.model} is known; give --model or a shape, not both")
        model, name = _published(given.model)
    else:
        missing = [name for name in ("layers", "width", "heads", "vocabulary") if name not in shape]
        if missing:
            flags = ", ".join(f"--{name}" for name in missing)
            raise ValueError(f"give a model: --model NAME, --module MODULE:FUNCTION, or a shape ({flags} missing)")
        model, name = Transformer(**shape), ""
    step = Step(
        given.batch or 1,
        given.context or 2_048,
        given.recipe,
        given.optimizer,
        given.cards,
        given.zero,
        given.checkpointing,
        not given.unfused_attention,
    )
    return model.reaching(step.context), step, name


def _published(name: str) -> tuple[Transformer, str]:
    names = {known.lower(): known for known in PUBLISHED}
    if name.lower() not in names:
        similar = near(name, list(PUBLISHED)) or list(PUBLISHED)
        raise ValueError(f"there is no model called {name!r}. Near it: {', '.join(similar)}")
    return PUBLISHED[names[name.lower()]], names[name.lower()]


def _traced(given: argparse.Namespace) -> tuple[Traced, Step, str]:
    for flag in ("model", "layers", "width", "heads", "vocabulary", "checkpointing"):
        if getattr(given, flag):
            raise ValueError(f"--{flag} does not go with --module, which says for itself what it computes")
    if given.input and (given.batch or given.context):
        raise ValueError("--batch and --context do not go with --input, whose shape says both")
    found = trace(
        _function(given.module),
        *(_tensor(text) for text in given.input or ()),
        recipe=given.recipe,
        fused_attention=not given.unfused_attention,
    )
    step = found.step(optimizer=given.optimizer, cards=given.cards, zero=given.zero)
    if not given.input:
        step = replace(step, batch=given.batch or 1, context=given.context or 2_048)
    return found, step, given.module


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    if not function:
        raise ValueError(f"--module {name}: expected MODULE:FUNCTION, such as my_package.model:make")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"--module {name}: {error}; it is looked for here and where Python finds packages") from error
    if not callable(getattr(found, function, None)):
        raise ValueError(f"--module {name}: {module} has no function {function}")
    return getattr(found, function)


def _tensor(text: str) -> torch.Tensor:
    """``"int64[1, 8192]"`` on the meta device."""
    import torch

    match = re.fullmatch(r"(\w+)\[([\d\s,_]*)\]", text.strip())
    dtype = getattr(torch, match[1], None) if match else None
    if match is None or not isinstance(dtype, torch.dtype):
        raise ValueError(f'--input {text}: expected a dtype and a shape, such as "int64[1, 8192]"')
    return torch.empty([int(size) for size in match[2].split(",") if size.strip()], dtype=dtype, device="meta")


def _accelerator(given: argparse.Namespace) -> Accelerator:
    if given.card is None and given.peak is None and given.memory is None:
        return find_card("H100 SXM")
    if given.card is not None:
        found = find_card(given.card)
    elif given.peak is None:
        raise ValueError("--memory needs --card or --peak: which card is it?")
    else:
        from course_utils.hardware import Accelerator

        found = Accelerator("a card of your own", {}, 0, None, None, "given")
    if given.peak is not None:
        import torch

        peak = dict.fromkeys((torch.float32, torch.bfloat16), given.peak)
        found = replace(found, peak=peak, source="given")
    return found if given.memory is None else replace(found, memory_bytes=int(given.memory))


def _print_names() -> None:
    from course_utils.hardware import ACCELERATORS

    print("models:", *PUBLISHED, sep="\n  ")
    print("cards:", *ACCELERATORS, sep="\n  ")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # what reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
