"""What a call did: its result, its error, what it changed, and what it printed."""

from __future__ import annotations

import contextlib
import io
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from course_utils.testing.comparing import compare
from course_utils.testing.describing import call_in_words
from course_utils.testing.plain import Raised, class_names, copied, first_opaque, freeze, storage_key, tensors

_OUTPUT_LIMIT = 20_000  # characters of printed output kept per observation
_THIS_PACKAGE = os.path.dirname(__file__)
_NOT_THEIRS = (_THIS_PACKAGE, os.path.join(os.path.dirname(_THIS_PACKAGE), "ranks"))  # these call students' functions


@dataclass(frozen=True)
class Observation:
    """What one call did.

    ``value``: the result as plain data (tensors by value, on the CPU), or :class:`Raised`.
    ``error``: the name of the exception's type, or None; ``message``: its text.
    ``shares``: the arguments whose storage the result shares, as positions (0, 1, …) or keyword names.
    ``mutated``: the arguments that the call changed in place, named the same way.
    ``printed``: what the call wrote to stdout and stderr.
    ``shape``, ``stride``, ``offset``, ``dtype``, ``device``, ``requires_grad``: the result's, if it's a tensor,
    otherwise None. Offset and strides are in elements.
    """

    call: str
    value: Any
    error: str | None = None
    message: str = ""
    shares: list[int | str] = field(default_factory=list)
    mutated: list[int | str] = field(default_factory=list)
    printed: str = ""
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    dtype: torch.dtype | None = None
    device: str | None = None
    requires_grad: bool | None = None


class Printed(io.StringIO):
    """Collects what code prints. Like a kernel's stream, it has an encoding, a name and a file descriptor."""

    encoding = "UTF-8"
    name = "<stdout>"

    def fileno(self) -> int:
        """The file descriptor of the process's real output."""
        return 1

    def close(self) -> None:
        """Do nothing: what was printed is still to be read."""


def observe(target: Callable[..., Any], *args: Any, **kwargs: Any) -> Observation:
    """Call ``target`` with copies of the arguments and report what happened.

    Arguments must be plain data: numbers, strings, dtypes, tensors, and lists, tuples or dicts of them. A test that
    needs more (a model, a function) builds it inside a probe.

    Raises:
        TypeError: an argument isn't plain data. (That's an error in the test, not the student's.)
    """
    given = [(i, a) for i, a in enumerate(args)] + list(kwargs.items())
    for label, argument in given:
        if odd := first_opaque(freeze(argument)):
            raise TypeError(f"argument {label!r} of observe holds {odd}; pass plain data or use a probe")
    copies: dict[int, torch.UntypedStorage] = {}  # shared by all arguments, so that views of one storage stay together
    return witness(target, [copied(a, copies) for a in args], {name: copied(a, copies) for name, a in kwargs.items()})


def witness(target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Observation:
    """Like :func:`observe`, but with the arguments themselves instead of copies."""
    passed: dict[int | str, Any] = dict(enumerate(args)) | dict(kwargs)
    before = {label: freeze(argument) for label, argument in passed.items()}
    # Taken before the call and kept during it. The call may give an argument another storage (set_, resize_) or drop
    # it from its list, yet a result that is a view of the original storage still shares the argument's memory.
    storages = {label: [storage_key(t) for t in tensors(argument)] for label, argument in passed.items()}
    call = call_in_words(getattr(target, "__name__", type(target).__name__), before)

    printed = Printed()
    raised: BaseException | None = None
    result: Any = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            result = target(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # not even SystemExit may end the grading of a notebook
            raised = error
    text = printed.getvalue()[:_OUTPUT_LIMIT]
    if text:
        # Warnings go to stdout as well: anything on stderr costs a cell its points in nbgrader.
        print(text, end="" if text.endswith("\n") else "\n")

    mutated = [label for label, old in before.items() if compare(freeze(passed[label]), old, 0.0)]
    if raised is not None:
        why = _raised(raised)
        return Observation(call, why, error=why.kind, message=why.message, mutated=mutated, printed=text)
    result_keys = {storage_key(t) for t in tensors(result)} - {None}
    shares = [label for label, keys in storages.items() if result_keys & set(keys)]
    seen = Observation(call, freeze(result), shares=shares, mutated=mutated, printed=text)
    if isinstance(result, torch.Tensor) and result.layout == torch.strided:
        seen = replace(
            seen,
            shape=tuple(result.shape),
            stride=tuple(result.stride()),
            offset=int(result.storage_offset()),
            dtype=result.dtype,
            device=str(result.device),
            requires_grad=result.requires_grad,
        )
    return seen


def _raised(error: BaseException) -> Raised:
    # The last frame that belongs neither to a library nor to this package holds the student's line. A cell's code has
    # no file; its frames have a name such as <ipython-input-…> or <tensor_bytes>.
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        ours = os.path.dirname(frame.filename) in _NOT_THEIRS or frame.filename.startswith("<probe")
        if "site-packages" not in frame.filename and not ours:
            line = frame.line or line
    message = str(error).split("\nException raised from")[0]  # a C++ stack trace follows
    classes = class_names(type(error))
    return Raised(classes[0], message[:2000], line[:200], classes)
