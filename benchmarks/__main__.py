"""All benchmarks that need only a CPU, in one run, each against the alternatives.

Run: make benchmarks            (an hour and a half on two idle cores; ARGS='--only timing import' runs some of them)

Every part writes its numbers into benchmarks/results/cpu.json after each round, with the machine, the date and the
commit, so an interruption loses at most one round. Its figure in docs/images/ and its table in docs/performance.md are
then made from that file. `--draw` makes them again without measuring. Don't use the machine for anything else
meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib
import inspect
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import record
from rich.console import Console

PARTS = {  # the module of a part, and what its picture shows
    "grading": ("grading", "Seconds a submission for five ways to grade, and the floor"),
    "start": ("start", "Seconds to import PyTorch, and to the first result of course grade with one or two workers"),
    "growth": ("growth", "Seconds of course grade for classes of ten to ten thousand, and a line"),
    "nbval": ("reexecution", "Seconds to re-execute all lectures on stock kernels and on warm ones"),
    "timing": ("timing_agreement", "Ratios of the two clocks' medians, near one"),
    "first-cell": ("first_cell", "Seconds of each step from a clone to the first cell that has run"),
    "import": ("import_time", "Seconds to import torch, matplotlib, anywidget and the course's own modules"),
}
PAGE = record.ROOT / "docs" / "performance.md"
IMAGES = record.ROOT / "docs" / "images"

console = Console(highlight=False)


def part(name: str) -> ModuleType:
    return importlib.import_module(PARTS[name][0])


def markdown(rows: list[list[str]]) -> str:
    """A table; the first row is the header."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def block(name: str, kept: dict[str, Any]) -> str:
    """The text between a part's two markers on the page."""
    where = kept["machine"]
    about = f"{where['device']}; Python {where['python']}; {kept['date']}, commit {kept['commit']}."
    picture = f"![{PARTS[name][1]}](images/performance-{name}.png)"
    table = markdown(part(name).rows(kept["found"]))
    return f"<!-- {name} -->\n{picture}\n\n{table}\n\n{about}\n<!-- end of {name} -->"


def page(text: str, results: dict[str, Any]) -> str:
    """The page with every table made from the results."""
    for name, kept in results.items():
        pattern = rf"<!-- {name} -->\n.*?<!-- end of {name} -->"
        text, count = re.subn(pattern, lambda _: block(name, kept), text, flags=re.DOTALL)  # noqa: B023
        if count != 1:
            raise ValueError(f"{PAGE.name} has no marks for {name}: add <!-- {name} --> and <!-- end of {name} -->")
    return text


@functools.cache  # as the run began: its own results make files differ
def commit() -> str:
    """The commit that is measured, with a + if files differ from it."""
    git = ["git", "-C", str(record.ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"


def measure(name: str, options: dict[str, int | None]) -> None:
    """Measure one part, with the options that it knows, and save the results after each round."""
    module = part(name)
    console.rule(f"{module.TITLE}: {(module.__doc__ or '').splitlines()[0]}")
    known = inspect.signature(module.measure).parameters
    about = {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": record.machine()}
    for found in module.measure(
        console.print, **{key: n for key, n in options.items() if n is not None and key in known}
    ):
        results = record.load() | {name: {**about, "found": found}}
        record.save({each: results[each] for each in PARTS if each in results})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some parts; all if left out")
    parser.add_argument("--rounds", type=int, help="of each part that takes turns; each has a number of its own")
    parser.add_argument("--most", type=int, help="the largest class of growth, 100 or more (default 10,000)")
    parser.add_argument("--draw", action="store_true", help="pictures and tables again, from the results file")
    options = parser.parse_args()
    for name, least in (("rounds", 1), ("most", 100)):
        if (given := getattr(options, name)) is not None and given < least:
            parser.error(f"--{name} was given {given}; expected {least} or more")
    for name in options.only:
        if not options.draw:
            measure(name, {"rounds": options.rounds, "most": options.most})
        results = record.load()
        if name not in results:
            parser.error(f"{record.RESULTS.name} has no {name} yet: measure it first, without --draw")
        record.show(part(name).rows(results[name]["found"]))
        IMAGES.mkdir(parents=True, exist_ok=True)
        picture = IMAGES / f"performance-{name}.png"
        figure = part(name).draw(results[name]["found"])
        figure.savefig(picture, dpi=144, facecolor="white", metadata={"Software": None})
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    console.print(f"{record.RESULTS}\n{PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
