"""What the judge asks a student's process, and what may come back.

Each kind of message is a dataclass. Over the pipes it travels as plain data (:mod:`course_utils.testing.wire`): a dict
from its name to the list of its fields. ``request`` and ``answer`` turn that back into the dataclass. Answers come from
a process that may be hostile, so ``answer`` accepts exactly these names, fields and types, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from course_utils.testing import Observation
from course_utils.testing.wire import WireError

TEXT = 2_000  # most characters that a student's process sends of an error or of a missing name
PRINTED = 20_000  # most characters of a cell's output
READY = b"!"  # what a student's process writes once it is isolated, before any message


@dataclass(frozen=True)
class Run:
    """Run a cell."""

    source: str


@dataclass(frozen=True)
class ReadNames:
    """Report which names a cell defines and uses, without running it."""

    source: str


@dataclass(frozen=True)
class Call:
    """Observe a call of ``name``: a name that the cells define, or a probe whose ``probe`` is its source."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    probe: str = ""


@dataclass(frozen=True)
class Ran:
    """A cell has run: the error that stopped it, or "", and what it printed. ``company`` as in `Seen`."""

    error: str
    printed: str
    company: int = 0


@dataclass(frozen=True)
class Names:
    """The names that a cell defines, and those that it uses."""

    defined: list[str]
    used: list[str]


@dataclass(frozen=True)
class Seen:
    """The call was observed. ``company``: how many other threads the process had, and one more if it had a child: these
    could do its work unseen.
    """

    observation: Observation
    company: int = 0


@dataclass(frozen=True)
class Missing:
    """There is no such name."""

    name: str


@dataclass(frozen=True)
class Unsendable:
    """The call returned something that a message can't contain; ``reason`` says why."""

    reason: str


Request = Run | ReadNames | Call
Answer = Ran | Names | Seen | Missing | Unsendable
_REQUESTS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Request)}
_ANSWERS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Answer)}
_TYPES: dict[str, type] = {
    "str": str,
    "int": int,
    "tuple": tuple,
    "dict": dict,
    "list": list,
    "Observation": Observation,
}


def plain(message: Request | Answer) -> dict[str, Any]:
    """A message as plain data, for `wire.pack`."""
    return {type(message).__name__: [getattr(message, each.name) for each in fields(message)]}


def request(value: Any) -> Request:
    """The request in plain data. Raises WireError for anything else."""
    found: Request = _message(value, _REQUESTS)
    return found


def answer(value: Any) -> Answer:
    """The answer in plain data. Raises WireError for anything else.

    Long strings are truncated, because the judge keeps some of them until the last cell has run.
    """
    found: Answer = _message(value, _ANSWERS)
    match found:
        case Names(defined, used) if not all(type(name) is str for name in defined + used):
            raise WireError("a name that is not a string")
        case Ran(error, printed, company):
            return Ran(error[:TEXT], printed[:PRINTED], company)
        case Missing(name):
            return Missing(name[:TEXT])
        case Unsendable(reason):
            return Unsendable(reason[:TEXT])
        case Seen(seen, company):
            cut = None if seen.error is None else seen.error[:TEXT]
            return Seen(replace(seen, error=cut, message=seen.message[:TEXT]), company)
    return found


def _message(value: Any, kinds: dict[str, type[Any]]) -> Any:
    if type(value) is not dict or len(value) != 1:
        raise WireError("not a message")
    ((name, content),) = value.items()
    kind = kinds.get(name) if type(name) is str else None
    if kind is None or type(content) is not list or len(content) != len(fields(kind)):
        raise WireError("not a message of a known kind")
    for each, given in zip(fields(kind), content, strict=True):
        # With `from __future__ import annotations` a field's type is its text: "str", "list[str]".
        if type(given) is not _TYPES[str(each.type).partition("[")[0]]:
            raise WireError(f"a {name} whose {each.name} is a {type(given).__name__}")
    return kind(*content)
