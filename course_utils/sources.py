"""Sources of numbers, and numbers that remember their sources.

from course_utils.sources import Source, Sourced

pope = Source("Pope et al., Efficiently Scaling …", "https://arxiv.org/abs/2211.05102", "paper", "2022-11", "2026-11")
seconds = Sourced(4e12, pope.at("table 2")) / 275e12
seconds.sources  # (Source(title='Pope et al., …, table 2', …),)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

Kind = Literal["data sheet", "paper", "measured", "estimate"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Source:
    """A page, paper or measurement.

    Attributes:
        title: who published it, and where.
        url: an address at which it can be read.
        kind: "data sheet": what a maker or seller promises (product pages, prices). "paper": what its authors publish
            (papers, model cards, released weights, laws). "measured": somebody ran it and wrote down the result.
            "estimate": calculated or guessed by an outsider, or a forecast.
        date: ``YYYY-MM``: when it was published or, for a page that changes, read.
        verified: ``YYYY-MM``: when our number was last compared with it, or with a text that quotes it; "" if it never
            was. Facts and cards require it.
    """

    title: str
    url: str
    kind: Kind
    date: str
    verified: str = ""

    def at(self, place: str, **changed: Any) -> Source:
        """This source, narrowed to a place such as "table 2". Keyword arguments replace other fields."""
        return replace(self, title=f"{self.title}, {place}", **changed)

    def __str__(self) -> str:
        return f"{self.title}, {self.date}"


def arxiv(title: str, number: str, date: str, kind: Kind = "paper", verified: str = "") -> Source:
    """A paper on arXiv, by its arXiv number such as "2211.05102"."""
    return Source(title, f"https://arxiv.org/abs/{number}", kind, date, verified)


class Sourced(float):
    """A number that keeps the sources of everything it was calculated from.

    ``+ - * /`` and ``-x`` keep them; other operations return a plain number.
    """

    sources: tuple[Source, ...]

    if TYPE_CHECKING:  # the methods are created below

        def __add__(self, other: float) -> Sourced: ...
        def __radd__(self, other: float) -> Sourced: ...
        def __sub__(self, other: float) -> Sourced: ...
        def __rsub__(self, other: float) -> Sourced: ...
        def __mul__(self, other: float) -> Sourced: ...
        def __rmul__(self, other: float) -> Sourced: ...
        def __truediv__(self, other: float) -> Sourced: ...
        def __rtruediv__(self, other: float) -> Sourced: ...
        def __neg__(self) -> Sourced: ...

    def __new__(cls, value: float, *sources: Source) -> Sourced:
        self = super().__new__(cls, value)
        self.sources = tuple(dict.fromkeys(sources))
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (float(self), *self.sources)


def sources_of(*numbers: float) -> tuple[Source, ...]:
    """The sources of all these numbers, without duplicates."""
    return tuple(dict.fromkeys(source for number in numbers for source in getattr(number, "sources", ())))


def total(numbers: Iterable[float]) -> Sourced:
    """The sum of the numbers, with the sources of all of them."""
    numbers = list(numbers)
    return Sourced(sum(map(float, numbers)), *sources_of(*numbers))


def longest(*numbers: float) -> Sourced:
    """The largest number, with its own sources only."""
    most = max(numbers)
    return Sourced(most, *sources_of(most))


def _operator(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: Sourced, *other: float) -> Any:
        result = plain(self, *other)
        return result if result is NotImplemented else Sourced(result, *sources_of(self, *other))

    method.__name__ = name
    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg"):
    setattr(Sourced, f"__{_name}__", _operator(f"__{_name}__"))
