"""Observe what a function does, then judge plain data.

A test cell never looks at a student's objects. It asks for an observation and compares the answer::

    from course_utils.testing import expect, observe

    seen = observe(tensor_bytes, torch.zeros(4, 8))
    expect(seen.value, 128, mistakes={32: "That counts elements; each of them takes several bytes."})

``observe`` hands the function copies of the arguments (shapes, strides, offsets and shared storage kept) and
returns plain values with what happened on the way. ``expect`` raises :class:`Mismatch`, whose message says
where, what was got, what was expected and, where the value matches a known mistake, which one it usually is.

A test of several steps runs a :func:`probe` beside the student's code. Expected values stay out of probes.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import io
import math
import os
import random
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

__all__ = ["Draw", "Mismatch", "Observation", "Opaque", "Raised", "draws", "expect", "observe", "probe"]

SEED_VARIABLE = "COURSE_SEED"
_OUTPUT_LIMIT = 20_000  # characters of printed output kept per observation
_ITEM_LIMIT = 100_000  # items of a returned container kept per observation
_DEPTH_LIMIT = 20
_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5)}  # relative, absolute
_SHOWN = 8  # elements of a tensor, or items of a container, written out in a message


class Mismatch(AssertionError):
    """What was observed is not what was expected.

    ``mistake`` is the text of the known mistake that the value matched, or None.
    """

    def __init__(self, message: str, mistake: str | None = None) -> None:
        super().__init__(message)
        self.mistake = mistake

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: the message alone, for the frames in between teach nothing."""
        return str(self).splitlines()


@dataclass(frozen=True)
class Raised:
    """Stands for the value of a call that raised: exception type, message, and the student's line."""

    kind: str
    message: str
    line: str = ""

    @property
    def not_begun(self) -> bool:
        """Whether this is the exercise's empty stub; PyTorch's own NotImplementedError comes with a message."""
        return self.kind == "NotImplementedError" and not self.message

    def __str__(self) -> str:
        if self.not_begun:
            return "nothing yet: write your code in the cell above, in place of `raise NotImplementedError()`"
        at = f"\n            at `{self.line}`" if self.line else ""
        return f"{self.kind}: {self.message}{at}"


@dataclass(frozen=True, eq=False)
class Opaque:
    """Stands for an object that is not plain data. It equals nothing: no ``__eq__`` can decide a test."""

    what: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class Observation:
    """What one call did.

    ``value``: the result as plain data (tensors by value, on the CPU), or :class:`Raised`.
    ``error``: the name of the exception's type, or None; ``message``: its text.
    ``shares``: arguments whose storage the result shares: positions (0, 1, …) or keyword names.
    ``mutated``: arguments that the call changed in place, named the same way.
    ``printed``: what the call wrote to stdout and stderr.
    ``shape``, ``stride``, ``offset``, ``dtype``, ``device``, ``requires_grad``: of the result when it is a
    tensor, else None; offsets and strides count elements.
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


@dataclass
class _Last:
    """The call that the next ``expect`` speaks of."""

    call: str = ""


_last = _Last()
_elsewhere: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Observation] | None = None


@contextlib.contextmanager
def observing_elsewhere(
    ask: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Observation],
) -> Iterator[None]:
    """Inside, ``observe`` calls nothing itself: ``ask(target, args, kwargs)`` answers, from another process."""
    global _elsewhere
    before, _elsewhere = _elsewhere, ask
    try:
        yield
    finally:
        _elsewhere = before


# ---------------------------------------------------------------------------------------------- observing


def observe(target: Callable[..., Any], *args: Any, **kwargs: Any) -> Observation:
    """Call ``target`` with copies of the arguments and say what happened.

    Arguments must be plain data: numbers, strings, dtypes, tensors, and lists, tuples or dicts of them. A
    test that needs more (a model, a function) builds it inside a :func:`probe`. Raises TypeError for anything
    else: that is an error of the test, not of the student.
    """
    if not callable(target):
        raise Mismatch(f"expected a function to call, got {_describe(freeze(target))}")
    given = [(i, a) for i, a in enumerate(args)] + list(kwargs.items())
    for label, argument in given:
        if odd := _first_opaque(freeze(argument)):
            raise TypeError(f"argument {label!r} of observe holds {odd}; pass plain data or use a probe")
    if _elsewhere is not None:
        seen = _elsewhere(target, args, kwargs)
        _last.call = seen.call
        return seen
    copies: dict[int, torch.UntypedStorage] = {}
    return witness(target, [_copy(a, copies) for a in args], {name: _copy(a, copies) for name, a in kwargs.items()})


def witness(target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Observation:
    """What :func:`observe` does, with the arguments themselves instead of copies."""
    passed: dict[int | str, Any] = dict(enumerate(args)) | dict(kwargs)
    before = {label: freeze(argument) for label, argument in passed.items()}
    # Held here so that a storage resized or swapped by the call can still be compared with the result's.
    storages = {label: [_storage_key(t) for t in tensors(argument)] for label, argument in passed.items()}
    call = f"{_name(target)}({', '.join(_label(label) + _describe(before[label]) for label in before)})"

    printed = io.StringIO()
    raised: BaseException | None = None
    result: Any = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            result = target(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit and the like must not end the grading of a notebook
            raised = error
    text = printed.getvalue()[:_OUTPUT_LIMIT]
    if text:
        # To stdout even if it was a warning: anything on stderr costs a cell its points in nbgrader.
        print(text, end="" if text.endswith("\n") else "\n")

    mutated = [label for label, old in before.items() if difference(freeze(passed[label]), old, exact=True)]
    _last.call = call
    if raised is not None:
        why = _raised(raised)
        return Observation(call, why, error=why.kind, message=why.message, mutated=mutated, printed=text)
    result_keys = {_storage_key(t) for t in tensors(result)} - {None}
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


class _Student:
    """The names that a notebook defines, as attributes."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise NameError(f"`{name}` is not defined: run the cell that defines it first") from None


def probe(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one that runs beside the student's code.

    Its first parameter receives the notebook's names (``student.Linear``); it imports what else it needs and
    returns plain data. It may use no name from outside itself, because the autograder sends it elsewhere to
    run: that, and a missing first parameter, is a TypeError here.
    """
    outside = sorted(_outside_names(function.__code__))
    if outside or function.__code__.co_argcount < 1:
        problem = f"uses {', '.join(outside)} from outside" if outside else "has no first parameter `student`"
        raise TypeError(f"probe {function.__name__} {problem}; import inside it, or pass it as an argument")

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(_Student(function.__globals__), *args, **kwargs)

    return run


def _outside_names(code: types.CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names |= set(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _outside_names(constant) - set(code.co_varnames) - set(code.co_cellvars)
    return {name for name in names if not hasattr(builtins, name)}


def _raised(error: BaseException) -> Raised:
    # The last frame outside libraries is the student's: cells have file names like <ipython-input-…>.
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "site-packages" not in frame.filename and frame.filename != __file__:
            line = frame.line or line
    message = str(error).split("\nException raised from")[0]  # what follows are addresses in C++
    return Raised(type(error).__name__, message[:2000], line[:200])


# ------------------------------------------------------------------------------------------- plain data


def freeze(value: Any, _depth: int = 0) -> Any:
    """``value`` as plain data: tensors copied to the CPU, NumPy scalars as numbers, or :class:`Opaque`."""
    kind = type(value)
    if value is None or kind in _PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        return _freeze_tensor(value)
    if isinstance(value, np.generic):
        return freeze(value.item(), _depth) if value.dtype.kind in "biufcU" else Opaque(f"a {kind.__name__}")
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        if _depth >= _DEPTH_LIMIT or len(value) > _ITEM_LIMIT:
            return Opaque(f"a {kind.__name__} that is too large to look at")
        if isinstance(value, dict):
            return {freeze(k, _depth + 1): freeze(v, _depth + 1) for k, v in value.items()}
        if isinstance(value, (set, frozenset)):
            return {freeze(item, _depth + 1) for item in value}
        items = [freeze(item, _depth + 1) for item in value]
        return items if kind is list else tuple(items)
    if isinstance(value, np.ndarray):
        return Opaque(f"a NumPy array of shape {list(value.shape)}")
    if callable(value):
        return Opaque(f"the function or class {getattr(value, '__name__', kind.__name__)} itself, not called")
    return Opaque(f"an object of type {kind.__name__}")


def _freeze_tensor(x: torch.Tensor) -> torch.Tensor | Opaque:
    if x.layout != torch.strided or x.is_quantized:
        return Opaque(f"a tensor of layout {x.layout}")
    plain = x.detach().as_subclass(torch.Tensor)
    if plain.device.type == "meta":
        return torch.empty_strided(plain.shape, plain.stride(), dtype=plain.dtype, device="meta")
    copies: dict[int, torch.UntypedStorage] = {}
    if plain.device.type != "cpu":
        return plain.to("cpu").resolve_conj().resolve_neg()
    result = _copy(plain, copies)
    assert isinstance(result, torch.Tensor)
    return result.resolve_conj().resolve_neg()


def _copy(value: Any, copies: dict[int, torch.UntypedStorage]) -> Any:
    """A deep copy of plain data. Tensors keep strides and offset; those that shared storage still do."""
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        storage = value.untyped_storage()
        if storage._cdata not in copies:
            copies[storage._cdata] = storage.clone()  # type: ignore[no-untyped-call]
        copy = torch.empty(0, dtype=value.dtype, device=value.device)
        copy.set_(copies[storage._cdata], value.storage_offset(), value.shape, value.stride())
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: _copy(v, copies) for k, v in value.items()}
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_copy(item, copies) for item in value)
    return value


def tensors(value: Any) -> Iterable[torch.Tensor]:
    """The tensors among plain data."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def _storage_key(x: torch.Tensor) -> tuple[str, int] | None:
    """What tensors that share storage have in common. None for storage that holds nothing."""
    if x.layout != torch.strided or x.device.type == "meta":
        return None
    storage = x.untyped_storage()
    return (str(x.device), storage.data_ptr()) if storage.nbytes() else None


def _first_opaque(value: Any) -> Opaque | None:
    if isinstance(value, Opaque):
        return value
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, (list, tuple, set)):
        items = value
    return next((odd for item in items if (odd := _first_opaque(item))), None)


# --------------------------------------------------------------------------------------------- judging


def expect(
    got: Any,
    want: Any,
    *,
    mistakes: Mapping[Any, str] | Sequence[tuple[Any, str]] = (),
    about: str = "",
    tolerance: float | None = None,
    hint: str = "",
) -> None:
    """Raise :class:`Mismatch` unless ``got`` is ``want``.

    Numbers agree by value (128 and 128.0; floats within ``tolerance``, relative, 1e-6 if not given; a tensor
    without dimensions counts as its number), but a truth value is not a number. Lists and tuples agree item
    by item. Tensors agree in shape, dtype and elements (floats within a tolerance that suits the dtype, or
    within ``tolerance`` times the largest magnitude expected).

    ``mistakes`` maps values that well-known mistakes lead to (or is a list of pairs) to what to tell the
    student. ``about`` names what is compared where it is not the returned value. ``hint`` is said whenever
    nothing in ``mistakes`` matches, once the exercise has been begun.
    """
    problem = difference(got, want, tolerance)
    if problem is None:
        return
    mistake = None
    if not isinstance(got, Raised):
        pairs = mistakes.items() if isinstance(mistakes, Mapping) else mistakes
        for value, text in pairs:
            if difference(got, value, tolerance) is None:
                mistake = text
                break
    lines = [f"✗ {_last.call or 'this check'}" + (f": {about}" if about else "")]
    if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor):
        lines.append(f"    {problem}")
    else:
        lines += [f"    got       {_describe(got)}", f"    expected  {_describe(want)}"]
    begun = not (isinstance(got, Raised) and got.not_begun)
    if isinstance(want, bool) and type(got) is int and not mistake:
        hint = "Wanted is True or False; a number that counts as one of them is not the same."
    if advice := mistake or (hint if begun else ""):
        lines.append(f"  {advice}")
    raise Mismatch("\n".join(lines), mistake)


def difference(got: Any, want: Any, tolerance: float | None = None, *, exact: bool = False) -> str | None:
    """How ``got`` differs from ``want``, in words, or None where it does not."""
    if isinstance(want, torch.Tensor):
        return _tensor_difference(got, want, tolerance, exact)
    if isinstance(got, torch.Tensor) and got.dim() == 0 and isinstance(want, (bool, int, float, complex)):
        got = got.item()
    wrong = f"got {_describe(got)}, expected {_describe(want)}"
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return wrong
        return next(
            (d for g, w in zip(got, want, strict=True) if (d := difference(g, w, tolerance, exact=exact))),
            None,
        )
    if isinstance(want, dict):
        if not isinstance(got, dict) or got.keys() != want.keys():
            return wrong
        return next((d for k in want if (d := difference(got[k], want[k], tolerance, exact=exact))), None)
    if isinstance(want, bool) or want is None or isinstance(got, bool):
        return None if got is want else wrong
    if isinstance(want, (int, float, complex)):
        if not isinstance(got, (int, float, complex)):
            return wrong
        if got == want or (got != got and want != want):
            return None
        if exact or (isinstance(want, int) and tolerance is None):
            return wrong
        if isinstance(want, complex) or isinstance(got, complex):
            return None if abs(got - want) <= (tolerance or 1e-6) * abs(want) else wrong
        return None if math.isclose(got, want, rel_tol=tolerance or 1e-6) else wrong
    return None if type(got) is type(want) and got == want else wrong


def _tensor_difference(got: Any, want: torch.Tensor, tolerance: float | None, exact: bool) -> str | None:
    if not isinstance(got, torch.Tensor):
        return f"got {_describe(got)}, expected {_describe(want)}"
    if got.shape != want.shape:
        return f"shape: got {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"dtype: got {_short(got.dtype)}, expected {_short(want.dtype)}"
    if want.device.type == "meta" or got.device.type == "meta" or want.numel() == 0:
        return None if got.device.type == want.device.type else f"got {got.device}, expected {want.device}"
    if want.dtype.itemsize == 1 and want.dtype.is_floating_point:  # fp8 has no comparisons of its own
        got, want = got.float(), want.float()
    if exact or not (want.is_floating_point() or want.is_complex()):
        same = (got == want) | ((got != got) & (want != want))
    elif tolerance is not None:
        scale = want[torch.isfinite(want)].abs().max().item() if torch.isfinite(want).any() else 0.0
        same = torch.isclose(got, want, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    else:
        rtol, atol = _TOLERANCES.get(want.dtype, (1e-5, 1e-6))
        same = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if bool(same.all()):
        return None
    count = int((~same).sum())
    place = tuple(int(i) for i in (~same).nonzero()[0])
    at = f"at {list(place)}: " if place else ""
    few = f" ({count} of {want.numel()} elements differ)" if want.numel() > 1 else ""
    return f"{at}got {_number(got[place].item())}, expected {_number(want[place].item())}{few}"


# ------------------------------------------------------------------------------------------- describing


def _label(label: int | str) -> str:
    return "" if isinstance(label, int) else f"{label}="


def _name(target: Callable[..., Any]) -> str:
    return str(getattr(target, "__name__", type(target).__name__)).strip("_")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _number(value: Any) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    return repr(value)


def _describe(value: Any) -> str:
    """A value in one readable line, short enough for a message."""
    if isinstance(value, torch.Tensor):
        text = f"{_short(value.dtype)}{list(value.shape)}"
        if value.numel() and value.dim() and not value.is_contiguous():
            text += f" with strides {tuple(value.stride())}"
        if value.device.type != "meta" and 0 < value.numel() <= _SHOWN:
            text += f" = {_describe(value.tolist())}"
        return text
    if isinstance(value, (Raised, Opaque)):
        return str(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, (list, tuple)):
        left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
        items = [_describe(item) for item in value[:_SHOWN]]
        more = ", …" if len(value) > _SHOWN else ","[: isinstance(value, tuple) and len(value) == 1]
        return left + ", ".join(items) + more + right
    if isinstance(value, dict):
        items = [f"{_describe(k)}: {_describe(v)}" for k, v in list(value.items())[:_SHOWN]]
        return "{" + ", ".join(items) + (", …" if len(value) > _SHOWN else "") + "}"
    if isinstance(value, (int, float)):
        return _number(value)
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


# --------------------------------------------------------------------------------------- drawing inputs


class Draw:
    """Random inputs for tests, the same on every run for one seed, without touching anybody's generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._torch = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return self._random.randint(low, high)

    def choice(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return self._random.choice(options)

    def sizes(self, count: int, low: int = 2, high: int = 7) -> tuple[int, ...]:
        """``count`` different sizes, so that swapped dimensions show."""
        return tuple(self._random.sample(range(low, high + 1), count))

    def tensor(self, *shape: int, dtype: torch.dtype = torch.float32, contiguous: bool = True) -> torch.Tensor:
        """A random tensor: normal for floats, −9 to 9 for integers, fair coins for bools.

        With ``contiguous=False`` its dimensions lie permuted in a larger storage, with an offset and gaps.
        """
        if contiguous:
            return self._fill(shape, dtype)
        order = list(range(len(shape)))
        self._random.shuffle(order)
        room = [shape[d] + self._random.randint(1, 2) for d in order]
        x = self._fill(tuple(room), dtype)
        for place, d in enumerate(order):
            start = self._random.randint(0, room[place] - shape[d])
            x = x.narrow(place, start, shape[d])
        return x.permute([order.index(d) for d in range(len(shape))])

    def _fill(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self._torch).bool()
        if dtype.is_floating_point or dtype.is_complex:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(shape, generator=self._torch, dtype=wide).to(dtype)
        low = 0 if dtype == torch.uint8 else -9
        return torch.randint(low, 10, shape, generator=self._torch).to(dtype)


def draws(seed: int | None = None) -> Draw:
    """Random inputs; the seed is the one given, else ``COURSE_SEED`` from the environment, else 0."""
    if seed is None:
        text = os.environ.get(SEED_VARIABLE, "0")
        try:
            seed = int(text)
        except ValueError:
            sys.exit(f"{SEED_VARIABLE} must be a whole number, got {text!r}")
    return Draw(seed)
