"""``python -m course_utils.napkin``: plan a training run, plan serving, or calculate an MFU on the command line."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from course_utils.cards import ACCELERATORS
from course_utils.napkin import arguments
from course_utils.napkin.lines import Plan
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.planner import plan
from course_utils.napkin.utilization import mfu, rates_in

_PROGRAM = "python -m course_utils.napkin"
_ONE_OF = "(--model NAME | --layers N --width N --heads N --vocabulary N | --module NAME)"
_EXAMPLES = """\
examples:
  python -m course_utils.napkin --model "Llama 3.1 70B" --cards 64 --zero 3 --checkpointing --tokens 15T
  python -m course_utils.napkin --layers 12 --width 768 --heads 12 --vocabulary 50257 --card "RTX 4090" --tokens 10B
  python -m course_utils.napkin --model DeepSeek-V3 --cards 2048 --pipeline 16 --expert 64 --global-batch 62914560
  python -m course_utils.napkin --module my_package.model:make --input "int64[4, 2048]" --card A10G --price 1.2
  python -m course_utils.napkin --model "Llama 3.1 8B" --json

other commands (serve and mfu have their own --help):
  python -m course_utils.napkin serve --model "Llama 3.1 8B" --batch 8
  python -m course_utils.napkin mfu --model "nanochat d24" --tokens-per-second 799829 --cards 8
  python -m course_utils.napkin published (the planner beside published numbers)

Numbers may end in k, M, B or T, bytes in G, GB or GiB. The function that --module names is called without arguments
on PyTorch's meta device, where a model of any size takes no memory.
"""


def main(given: Sequence[str] | None = None) -> None:
    """Run the command. Errors in the arguments go to stderr, with exit status 2."""
    words = list(sys.argv[1:] if given is None else given)
    commands: dict[str, tuple[Callable[[], argparse.ArgumentParser], Callable[[argparse.Namespace], Plan]]] = {
        "serve": (_serving_parser, arguments.serving),
        "mfu": (_mfu_parser, _mfu),
    }
    if words == ["published"]:
        from course_utils.napkin.published import page

        print(page(), end="")
        return
    make, run = commands[words.pop(0)] if words and words[0] in commands else (_training_parser, _train)
    parser = make()
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="list the names of models and cards")
    parsed = parser.parse_args(words)
    try:
        if parsed.list:
            print("models:", *PUBLISHED, sep="\n  ")
            print("cards:", *ACCELERATORS, sep="\n  ")
            return
        planned = run(parsed)
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        parser.error(str(error))
    print(json.dumps(planned.as_dict(), indent=2, ensure_ascii=False) if parsed.json else planned)


def _parser(name: str, usage: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"{_PROGRAM} {name}".strip(),
        usage=f"%(prog)s {usage} [options]",
        description=f"{description}\nA value after a semicolon is the default.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _training_parser() -> argparse.ArgumentParser:
    about = "What a training run will take: parameters, FLOPs, bytes on each card, time and cost,\n"
    parser = _parser(
        "",
        _ONE_OF,
        f"{about}each with its formula and its source.",
        _EXAMPLES,
    )
    arguments.add_training(parser)
    return parser


def _train(given: argparse.Namespace) -> Plan:
    if given.module:
        found, step, name = arguments.traced(given)
        numbers = {"tokens": given.tokens, "mfu": given.mfu, "price": given.price}
        return plan(found, step, card=arguments.accelerator(given), name=name, **numbers)
    if given.input:
        raise ValueError("--input is a module's input: give --module as well")
    return arguments.training(given)


def _serving_parser() -> argparse.ArgumentParser:
    about = "What generating text takes: memory, time to the first token and between tokens, throughput and cost."
    parser = _parser("serve", "(--model NAME | --layers N …)", about)
    arguments.add_serving(parser)
    return parser


def _mfu_parser() -> argparse.ArgumentParser:
    about = (
        "The MFU of a training run: the fraction of the cards' peak it reaches, from the tokens per second in its log."
    )
    parser = _parser("mfu", "(--model NAME | --layers N … | --module NAME | --parameters N) …", about)
    arguments.add_model(parser, module=True)
    parser.add_argument(
        "--parameters",
        type=arguments.number,
        metavar="N",
        help="parameters, instead of a shape, at 6 FLOPs per token each",
    )
    parser.add_argument(
        "--context", type=arguments.count, default=2_048, metavar="N", help="tokens in each sequence; 2,048"
    )
    parser.add_argument("--tokens-per-second", type=arguments.number, metavar="N", help="of all cards together")
    parser.add_argument("--tokens-per-step", type=arguments.number, metavar="N", help="with --seconds-per-step")
    parser.add_argument("--seconds-per-step", type=arguments.number, metavar="S")
    parser.add_argument("--log", metavar="FILE", help='a log with lines such as "tok/sec: 1,234"; uses their median')
    parser.add_argument("--cards", type=arguments.count, default=1, metavar="N", help="cards that train together; 1")
    parser.add_argument("--dtype", default="bfloat16", help="dtype of the matrix products; bfloat16")
    arguments.add_card(parser)
    return parser


def _mfu(given: argparse.Namespace) -> Plan:
    card = arguments.accelerator(given)
    how = {"card": card, "cards": given.cards, "dtype": arguments.SHORT.get(given.dtype.lower(), given.dtype)}
    rate = _tokens_per_second(given)
    if given.parameters:
        return mfu(given.parameters, rate, **how)
    if given.module:
        if not given.input:
            raise ValueError('--module needs --input, such as "int64[4, 2048]"')
        return mfu(arguments.module(given), rate, name=given.module, **how)
    model, name = arguments.shape(given)
    return mfu(model, rate, context=given.context, name=name, **how)


def _tokens_per_second(given: argparse.Namespace) -> float:
    ways = [given.tokens_per_second, given.tokens_per_step and given.seconds_per_step, given.log]
    if sum(bool(way) for way in ways) != 1:
        raise ValueError(
            "give the speed in exactly one way: --tokens-per-second N, --tokens-per-step N with --seconds-per-step S, "
            "or --log FILE"
        )
    if given.log:
        rates = rates_in(Path(given.log).read_text(encoding="utf-8", errors="replace"))
        if not rates:
            raise ValueError(f'--log {given.log}: found no rates such as "tok/sec: 1,234" or "178k tokens/s"')
        return statistics.median(rates)
    if given.tokens_per_second:
        return float(given.tokens_per_second)
    return float(given.tokens_per_step / given.seconds_per_step)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as head, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
