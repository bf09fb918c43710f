"""When a lecture is due, who is late, and the late penalty: applies the settings in ``class.toml`` to results.

Nothing is stored, so a changed rule or an extension takes effect wherever points are shown next.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.grading import submission
from autograder.grading.exercises import ProblemSet
from autograder.grading.marks import Result, State
from autograder.grading.submission import HandedIn
from autograder.grading.text import counted, one_line

from . import attempts, exchange
from .folder import SETTINGS, ClassFolder, FolderError
from .roster import Student
from .sources import moment

_DAY = timedelta(days=1)
UNCLEAR = "timestamp.txt has no time with a time zone, so no points are taken off"
BY_CANVAS = "handed in late, according to Canvas, whose zip doesn't say when, so no points are taken off"
ON_TIME_BY = "; on time if it came in by "


@dataclass(frozen=True)
class Rules:
    """The rules for one lecture.

    ``due`` is the first moment that's too late, or None. For each day begun after it, the fraction ``per_day`` of the
    points earned is taken off, ``at_most`` in all; up to ``grace`` after ``due`` still counts as on time. ``best``: the
    attempt with the most points counts, rather than the last one.
    """

    zone: tzinfo = UTC
    due: datetime | None = None
    per_day: float = 0.0
    at_most: float = 1.0
    grace: timedelta = timedelta()
    best: bool = False

    def limit(self, student: Student, until: str = "") -> datetime | None:
        """When it's due for one student, who may have extra days or an extension to the end of the day ``until``."""
        if self.due is None:
            return None
        own = self.due + student.extra_days * _DAY
        return max(own, _end_of(date.fromisoformat(until), self.zone)) if until else own

    def extended(self, student: Student, until: str = "") -> str:
        """The last day, or the moment, of one student's extra days or extension; "" if there's no such thing."""
        limit = self.limit(student, until)
        if self.due is None or limit is None:
            return until
        if limit <= self.due:
            return ""
        local = limit.astimezone(self.zone)
        return f"{local:%Y-%m-%d %H:%M}" if local.time() != time() else f"{local.date() - _DAY:%Y-%m-%d}"


def read(folder: ClassFolder, lecture_name: str) -> Rules:
    """The class's rules for a lecture, or the defaults. Raises :class:`FolderError` if ``class.toml`` is invalid."""
    path = folder.root / SETTINGS
    if not path.exists():
        return Rules()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        return _parsed(content, lecture_name, {path.stem for path in folder.lectures})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, _Unclear) as error:
        raise FolderError(f"{path}: {error}\n  → correct it; docs/instructors.md shows what it may contain") from error


class _Unclear(Exception):
    pass


def _parsed(content: Mapping[str, Any], lecture_name: str, lectures: set[str]) -> Rules:
    known: dict[str, set[str]] = {"late": {"per_day", "at_most", "grace_minutes"}}
    known["due"] = lectures
    for key, value in content.items():
        if key not in (top := {"timezone", "attempt", "exercises", *known}):
            raise _Unclear(f"there is no setting {key!r}")
        if key in known:
            if not isinstance(value, dict):
                raise _Unclear(f"{key} is not a table: write [{key}]")
            if below := value.keys() & top:
                raise _Unclear(f"{min(below)} is below [{key}], so it's taken for a part of it: write it above [{key}]")
            if more := value.keys() - known[key]:
                raise _Unclear(f"{key} has no {min(more)!r}; it has {', '.join(sorted(known[key]))}")
    name = content.get("timezone", "UTC")
    try:
        zone = ZoneInfo(name)
    except (LookupError, ValueError, TypeError, OSError) as error:
        raise _Unclear(f"timezone is {name!r}, not a name such as 'Europe/Berlin'") from error
    attempt = content.get("attempt", "last")
    if attempt not in ("last", "best"):
        raise _Unclear(f"attempt is {attempt!r}, not 'last' or 'best'")
    late = content.get("late", {})
    grace = _number(late, "grace_minutes", 0.0, 60 * 24 * 365.0)
    due = {each: _moment(each, value, zone) for each, value in content.get("due", {}).items()}
    per_day, at_most = _number(late, "per_day", 0.0, 1.0), _number(late, "at_most", 1.0, 1.0)
    return Rules(zone, due.get(lecture_name), per_day, at_most, timedelta(minutes=grace), attempt == "best")


def _number(late: Mapping[str, Any], key: str, default: float, most: float) -> float:
    value = late.get(key, default)
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise _Unclear(f"late.{key} is {value!r}, not a number from 0 to {most:g}")
    return float(value)


def _moment(lecture_name: str, value: object, zone: tzinfo) -> datetime:
    """When a lecture is due: a date means the end of that day, and a time without a zone is in the class's."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=zone)
    if isinstance(value, date):
        return _end_of(value, zone)
    raise _Unclear(f"due.{lecture_name} is not a date or time; write 2026-11-30 or 2026-11-30 18:00:00")


def _end_of(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day + _DAY, time(), zone)


def apply(folder: ClassFolder, rules: Rules, result: Result, student: Student) -> Result:
    """A result, to which decisions have been applied, after the late penalty; its ``late`` describes that."""
    if result.state is State.NOT_SUBMITTED:
        return result
    stored, this = _attempts(folder, result.lecture_name, result.student)
    if this and len(stored) > 1:
        result = replace(result, number=stored.index(this) + 1, last=len(stored))
        if this is not stored[-1] and (why := _unread(folder, result, stored[-1])):
            result = replace(result, unread=f"attempt {len(stored)} {why}")
    when = _handed_in(folder, result.lecture_name, result.student)
    # Where a person has copied an attempt's notebook, the time beside it is still that of the attempt before.
    if this and when in {each.time for each in stored if each.sha256 != this.sha256}:
        when = this.time
    if when is None:
        if unclear(folder, result.lecture_name, result.student):
            return replace(result, late=UNCLEAR)
        if not (this and this.late):
            return result
        last = rules.extended(student, result.until)  # about which Canvas may know nothing
        return replace(result, late=BY_CANVAS + (last and ON_TIME_BY + last))
    return charged(rules, result, rules.limit(student, result.until), when)


def charged(rules: Rules, result: Result, limit: datetime | None, when: datetime | None) -> Result:
    """A result after the late penalty for handing in at ``when``; none if ``when`` or ``limit`` is unknown."""
    if limit is None or when is None or when < limit + rules.grace:
        return result
    days = max(1, math.ceil((when - limit) / _DAY))
    share = min(rules.at_most, rules.per_day * days)
    off = round(share * (result.points or 0.0), 2)
    said = f"{counted(days, 'day')} late"
    return replace(result, off=off, late=f"{said}: {share:.0%} of the points are taken off, {off:g}" if share else said)


def table(
    folder: ClassFolder,
    lecture_name: str,
    found: Mapping[str, Result],
    students: Mapping[str, Student],
    rules: Rules | None = None,
) -> dict[str, Result]:
    """Each student's result after the late penalty, by name.

    The rules are read unless they're given. Raises :class:`FolderError` for invalid settings.
    """
    rules = rules or read(folder, lecture_name)
    return {name: apply(folder, rules, one, students.get(name) or Student(name)) for name, one in found.items()}


def _handed_in(folder: ClassFolder, lecture_name: str, student: str) -> datetime | None:
    """When a student handed in what's graded, if that's known."""
    return moment(_stamp(folder.assignment(student, lecture_name) / exchange.TIMESTAMP) or "")


def _stamp(path: Path) -> str | None:
    """The text of nbgrader's file with the time, or None if there's no such file."""
    stamp = submission.read(path).data
    return None if stamp is None else stamp[:200].decode("utf-8", "replace")


def by_hand(
    folder: ClassFolder, lecture_name: str, student: str, stored: Sequence[attempts.Attempt]
) -> datetime | None:
    """When a student handed in what's graded, if a person has written that: it's the time of no stored attempt."""
    when = _handed_in(folder, lecture_name, student)
    return None if when in {each.time for each in stored} else when


def unclear(folder: ClassFolder, lecture_name: str, student: str) -> str:
    """What is wrong with the file that tells when a student handed in, or ""; without that time nobody is late."""
    path = folder.assignment(student, lecture_name) / exchange.TIMESTAMP
    if (stamp := _stamp(path)) is None or moment(stamp) is not None:
        return ""
    return (
        f"{one_line(str(path))} has no time with a time zone, so nothing is late; write 2026-11-30 18:00:00 UTC, or "
        "+01:00 in place of UTC"
    )


def _unread(folder: ClassFolder, result: Result, last: attempts.Attempt) -> str:
    """Why nothing of the last attempt can be graded, or "" if it can."""
    if not last.notebook:
        return f"has no notebook that can be graded ({one_line(last.name)})"
    try:
        content = attempts.content_of(folder, result.lecture_name, result.student, last)
    except attempts.AttemptError:
        return ""  # this disk's fault, which `course grade` reports
    read = submission.parse(HandedIn(Path(), data=content), ProblemSet(result.lecture_name, ()))
    return "" if read.cells or not read.findings else f"could not be read ({one_line(read.findings[0].problem)})"


def _attempts(
    folder: ClassFolder, lecture_name: str, student: str
) -> tuple[list[attempts.Attempt], attempts.Attempt | None]:
    """A student's stored attempts, latest last, and the one that's graded, if it's one of them."""
    try:
        stored = attempts.read(folder, lecture_name, student)
    except attempts.AttemptError:
        return [], None
    if len(stored) < 2 and not any(one.late for one in stored):
        return stored, None  # which of them it is makes no difference
    digest = submission.digest(folder.read(student, lecture_name).data or b"")
    same = [one for one in stored if one.sha256 == digest]
    return stored, same[-1] if same else None
