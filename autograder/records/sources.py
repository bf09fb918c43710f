"""Submissions as other systems export them: files, and whose each one is, according to the source.

A source is a zip or a folder. Each entry is read according to the system that its name comes from: Canvas or Moodle
(their zips, or a folder unpacked from them), nbgrader's exchange (its folder ``inbound``), or a repository for each
student, as GitHub Classroom clones them. Nothing is ever extracted to a path that a source gives.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder import CourseError
from autograder.grading import submission
from autograder.grading.submission import SIZE_LIMIT
from autograder.grading.text import one_line

from .exchange import SECRET, TIMESTAMP, usable_secret

NOTEBOOK = ".ipynb"
FILES_LIMIT = 20_000  # per student: a repository may contain an environment by accident
_NOT_THEIRS = {"__MACOSX", "__pycache__", "node_modules", "Thumbs.db", "desktop.ini"}  # created by programs


class CollectError(CourseError):
    """A source can't be read at all; the message says why and what to do."""


class Unusable(Exception):
    """A file can't be collected; the message says why."""


class Kind(StrEnum):
    """The system that an entry of a source comes from."""

    CANVAS = "Canvas"
    MOODLE = "Moodle"
    EXCHANGE = "nbgrader's exchange"
    REPOSITORY = "repository"


@dataclass(frozen=True)
class File:
    """A file in a source. ``read`` returns its content, or raises :class:`Unusable`."""

    parts: tuple[str, ...]  # of its path relative to the source
    read: Callable[[], bytes]
    modified: float = 0.0  # seconds since the epoch, used only to tell older copies from newer ones
    path: Path | None = None  # None in a zip

    @property
    def name(self) -> str:
        """Its name without folders."""
        return self.parts[-1]


@dataclass(frozen=True)
class Chosen:
    """The notebook that counts, or all files if there's none; each with the name that the student gave it.

    ``others``: the lectures after which all notebooks in there are named, if it's others than the one to collect.
    ``besides``: more notebooks with the lecture's name.
    """

    notebook: bool
    files: tuple[tuple[str, File], ...]
    others: tuple[str, ...] = ()
    besides: tuple[tuple[str, File], ...] = ()


@dataclass(frozen=True)
class Delivery:
    """What one person handed in at one time, according to the source.

    ``called`` is the source's name for that person and ``number`` its number, or "". ``order`` sorts the deliveries of
    one kind by time. ``marked``: the order identifies a delivery; otherwise it may be just the time at which the source
    was made, and differ for the same work. ``owner`` is the user who owns the files on this machine, if that's
    meaningful. ``secret`` is nbgrader's submission secret, by which it returns feedback, or "".
    """

    kind: Kind
    item: str
    called: str
    number: str
    chosen: Chosen
    order: float = 0.0
    marked: bool = False
    when: datetime | None = None
    late: bool = False
    owner: str = ""
    secret: str = ""


# ada_12345_67890_file, ada_LATE_12345_67890_file; text or a link entered in Canvas has no second number.
_CANVAS = re.compile(
    r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d{1,20})_(?:(?P<file>\d{1,20})_)?(?P<rest>.+)", re.I | re.S
)
# A folder for each student, or files, depending on the instructor's choice; Moodle replaces underscores in names.
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_[a-z]+(?:_(?P<rest>.*))?", re.S)
_EXCHANGE = re.compile(
    r"(?P<user>.+)\+(?P<lecture>[^+]+)\+(?P<time>\d{4}-\d\d-\d\d \d[^+]*(?:\+\d{4})?)(?:\+.*)?", re.S
)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(|Z|[+-]\d\d:?\d\d|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*)"
)
# What browsers, JupyterLab, file managers and Canvas append to the name of a second copy.
_COPY = re.compile(r"(?:[ _+]?\(\d{1,6}\)|-\d{1,3}|[ _-]{1,3}copy ?\d{0,6}|_\d|(?<=\D) \d)$", re.I)
_NAME_LIMIT = 255  # characters, as in most file systems; a zip may contain names of any length


def deliveries(source: Path, lecture_name: str, lectures: Sequence[str], logins: Iterable[str]) -> list[Delivery]:
    """What a source has for one lecture, in the order in which it was handed in, as far as the source tells.

    ``lectures`` are the names of all lectures; repositories' names are expected to end in one of ``logins``. Raises
    :class:`CollectError` if the source doesn't exist, or is neither a zip nor a folder.
    """
    root, files = _files(source)
    items: dict[str, list[File]] = defaultdict(list)
    for file in files:
        items[file.parts[0]].append(file)
    people: dict[tuple[Kind, str, str], list[tuple[str, str, File, re.Match[str]]]] = defaultdict(list)
    found: list[Delivery] = []
    repositories: dict[str, list[File]] = {}
    for item, inside in items.items():
        flat = len(inside[0].parts) == 1
        if (match := _MOODLE.fullmatch(item)) and (not flat or match["rest"]):
            for file in inside:
                people[Kind.MOODLE, match["name"], match["number"]].append(
                    (item, match["rest"] if flat else file.name, file, match)
                )
        elif flat and (match := _CANVAS.fullmatch(item)):
            people[Kind.CANVAS, match["name"], match["user"]].append((item, match["rest"], inside[0], match))
        elif not flat and (match := _EXCHANGE.fullmatch(item)):
            if match["lecture"] == lecture_name:
                when = moment(match["time"])
                theirs = [(file.name, file) for file in inside if file.name not in (TIMESTAMP, SECRET)]
                chosen = _chosen(theirs, lecture_name, lectures)
                order = when.timestamp() if when else 0.0
                owner, secret = _owner(root, item), _secret(inside)
                found.append(
                    Delivery(Kind.EXCHANGE, item, match["user"], "", chosen, order, True, when, False, owner, secret)
                )
        elif flat:
            found.append(Delivery(Kind.REPOSITORY, item, item, "", Chosen(False, ((item, inside[0]),))))
        else:
            repositories[item] = inside
    for (kind, called, number), each in people.items():
        if kind is Kind.MOODLE:
            chosen = _chosen([(name, file) for _, name, file, _ in each], lecture_name, lectures)
            order = max(file.modified for _, file in chosen.files)
            found.append(Delivery(kind, each[0][0], called, number, chosen, order))
        else:
            found += _of_canvas(called, number, each, lecture_name, lectures)
    found += _of_repositories(root, repositories, lecture_name, lectures, logins)
    return sorted(found, key=lambda one: (one.kind, one.order, one.item))


def _of_canvas(
    called: str,
    number: str,
    each: list[tuple[str, str, File, re.Match[str]]],
    lecture_name: str,
    lectures: Sequence[str],
) -> Iterator[Delivery]:
    """One delivery for each of the lecture's notebooks, since Canvas keeps several; or one for everything."""
    groups = [[one] for one in each if _alike(one[1], lecture_name)] or [each]
    for group in groups:
        chosen = _chosen([(name, file) for _, name, file, _ in group], lecture_name, lectures)
        order = max(float(match["file"] or 0) for *_, match in group)
        late = any(match["late"] for *_, match in group)
        yield Delivery(Kind.CANVAS, group[0][0], called, number, chosen, order, True, None, late)


def _of_repositories(
    root: Path | None,
    repositories: dict[str, list[File]],
    lecture_name: str,
    lectures: Sequence[str],
    logins: Iterable[str],
) -> Iterator[Delivery]:
    prefix = _assignment(list(repositories), {login.casefold() for login in logins})
    for item, inside in repositories.items():
        chosen = _chosen([(file.name, file) for file in inside], lecture_name, lectures)
        when = _committed(root / item, chosen.files[0][1]) if root and chosen.notebook else None
        order = when.timestamp() if when else max(file.modified for _, file in chosen.files)
        called = item[len(prefix) :] if item.startswith(prefix) else item
        yield Delivery(Kind.REPOSITORY, item, called, "", chosen, order, False, when)


def _assignment(names: Sequence[str], logins: set[str]) -> str:
    """The prefix before the login in repositories' names: the one that leaves the most known logins.

    Both logins and assignments may contain hyphens, so a single name can be ambiguous.
    """
    votes: dict[str, int] = defaultdict(int)
    for name in names:
        for end in [0, *(place + 1 for place, letter in enumerate(name) if letter == "-")]:
            votes[name[:end]] += name[end:].casefold() in logins
    return max(votes, key=lambda prefix: (votes[prefix], -len(prefix)), default="")


def _committed(repository: Path, file: File) -> datetime | None:
    """When the last commit that changed a file was made, according to its author; None if git can't tell."""
    if file.path is None or not os.path.isdir(repository / ".git"):
        return None
    quiet = ["-c", "core.fsmonitor=false", "-c", "log.showSignature=false"]  # both run programs
    command = ["git", *quiet, "-C", str(repository), "log", "-1", "--format=%cI", "--", os.path.abspath(file.path)]
    # Our GIT_ variables may be about another repository. And this repository's configuration may make git fetch missing
    # objects, with a program of its choice, so no protocol is allowed.
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings |= {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
    try:
        ran = subprocess.run(
            command, env=settings, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return moment(ran.stdout.strip()) if ran.returncode == 0 else None


def _chosen(files: Sequence[tuple[str, File]], lecture_name: str, lectures: Sequence[str]) -> Chosen:
    """The file that is the lecture's notebook, or else all files.

    Among several notebooks, prefers the lecture's exact name, then the last copy, then the folder closest to the top.
    A notebook of any other name is the lecture's if it's the only one and isn't named after another lecture.
    """
    alike = [(name, file) for name, file in files if _alike(name, lecture_name)]
    if alike:
        own = [one for one in alike if one[0] == f"{lecture_name}{NOTEBOOK}"]
        last = max(_copies(name, lecture_name) for name, _ in alike)
        best = own or [one for one in alike if _copies(one[0], lecture_name) == last]
        chosen = min(best, key=lambda one: (len(one[1].parts), one[1].parts))
        return Chosen(True, (chosen,), besides=tuple(one for one in alike if one is not chosen))
    notebooks = [(name, file) for name, file in files if name.lower().endswith(NOTEBOOK)]
    others = [next((other for other in lectures if _alike(name, other)), "") for name, _ in notebooks]
    if others == [""]:
        return Chosen(True, (notebooks[0],))
    if others and all(others):
        return Chosen(False, tuple(notebooks), tuple(sorted(set(others))))
    return Chosen(False, tuple(files))


def _alike(name: str, lecture_name: str) -> bool:
    """Whether a file is named after a lecture, as ``01_tensors (1).ipynb`` and ``01-Tensors-Copy1.ipynb`` are."""
    return _ending(name, lecture_name) is not None


def _ending(name: str, lecture_name: str) -> str | None:
    """What follows the lecture's name in a file's, without the extension; None if the file isn't named after it."""
    stem, ending = os.path.splitext(name)
    if ending.lower() != NOTEBOOK or len(name) > _NAME_LIMIT:
        return None
    whole = stem
    for _ in range(4):  # a copy of a copy
        if _plain(stem) == _plain(lecture_name):
            return whole[len(stem) :]
        stem = _COPY.sub("", stem)
    return None


def _copies(name: str, lecture_name: str) -> int:
    return max(map(int, re.findall(r"\d{1,6}", _ending(name, lecture_name) or "")), default=0)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def moment(text: str) -> datetime | None:
    """The time in a text such as ``2026-11-22 12:00:00.000000 UTC``; None if it's invalid, or has no time zone.

    (Whoever writes a time by hand and leaves out the zone hardly means UTC, as nbgrader assumes.)
    """
    if not (found := _TIME.fullmatch(text.strip())) or not found[2]:
        return None
    zone: timezone | ZoneInfo = UTC
    try:
        if found[2][:1] in ("+", "-"):
            hours, minutes = int(found[2][1:3]), int(found[2][-2:])
            zone = timezone(timedelta(hours=hours, minutes=minutes) * (-1 if found[2][0] == "-" else 1))
        elif found[2] not in ("Z", "UTC"):
            zone = ZoneInfo(found[2])  # it rejects paths outside its own folder
        return datetime.fromisoformat(found[1]).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError, OSError, LookupError):
        return None


def _owner(root: Path | None, item: str) -> str:
    """The user who owns a folder on this machine, since anybody can name a folder in the exchange after anybody."""
    with contextlib.suppress(OSError, KeyError, NotImplementedError):
        return (root / item).owner() if root else ""
    return ""


def _secret(inside: Iterable[File]) -> str:
    """The submission secret, by which nbgrader returns feedback; "" if it's missing or not nbgrader's."""
    for file in inside:
        if file.parts[1:] == (SECRET,):
            with contextlib.suppress(Unusable):
                return usable_secret(file.read())
    return ""


def _files(source: Path) -> tuple[Path | None, list[File]]:
    """The folder that a source's files are in (None for a zip), and the files, without a folder around all of them."""
    try:
        if source.is_dir():
            inbound = source / "inbound"
            root = (inbound if inbound.is_dir() else source).resolve()
            return _unwrapped(root, list(_in_folder(root)))
        if not source.exists():
            raise CollectError(f"{source} is missing\n  → name the zip or the folder with the submissions")
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise CollectError(
            f"{source} is not a zip ({one_line(str(error))})\n  → download it again, or name a folder"
        ) from error
    return _unwrapped(None, list(_in_zip(archive)))


def _unwrapped(root: Path | None, files: list[File]) -> tuple[Path | None, list[File]]:
    """Strip a folder that contains everything else, as programs that create or unpack a zip often add."""
    while len(tops := {file.parts[0] for file in files}) == 1:
        top = tops.pop()
        inside = [file.name for file in files if len(file.parts) == 2]
        theirs = any(name.lower().endswith(NOTEBOOK) and not _CANVAS.fullmatch(name) for name in inside)
        theirs |= root is not None and os.path.exists(root / top / ".git")
        named = _MOODLE.fullmatch(top) or _EXCHANGE.fullmatch(top)
        if theirs or named or any(len(file.parts) == 1 for file in files):
            break
        root, files = (root / top if root else None), [_below(file) for file in files]
    return root, files


def _below(file: File) -> File:
    return File(file.parts[1:], file.read, file.modified, file.path)


def _ignored(parts: Sequence[str]) -> bool:
    return any(part in _NOT_THEIRS or part.startswith(".") for part in parts)


def _in_folder(root: Path) -> Iterator[File]:
    for top in sorted(os.scandir(root), key=lambda entry: entry.name):
        if _ignored([top.name]):
            continue
        if not top.is_dir(follow_symlinks=False):
            yield _on_disk(root, Path(top.path))
            continue
        count = 0
        # Not os.walk: it is recursive, and a student may nest folders beyond Python's recursion limit.
        places = [top.path]
        while places and count < FILES_LIMIT:
            try:
                entries = sorted(os.scandir(places.pop()), key=lambda entry: entry.name)
            except OSError:  # not permitted, or the path is too long
                continue
            entries = [entry for entry in entries if not _ignored([entry.name])]
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            places += reversed(folders)
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False) and count < FILES_LIMIT:
                    count += 1
                    yield _on_disk(root, Path(entry.path))
        if not count:  # report it, whether it's empty or can't be read
            yield File((top.name, "(a folder)"), _refuse("nothing in it can be read"))


def _on_disk(root: Path, path: Path) -> File:
    def read() -> bytes:
        found = submission.read(path)
        if found.data is None:
            missing = "it has disappeared" if found.error is None else f"{found.error.strerror}"
            raise Unusable(found.finding.problem if found.finding else missing)
        return found.data

    try:
        modified = path.lstat().st_mtime
    except OSError:
        modified = 0.0
    return File(path.relative_to(root).parts, read, modified, path)


def _in_zip(archive: zipfile.ZipFile) -> Iterator[File]:
    counts: dict[str, int] = defaultdict(int)
    for entry in archive.infolist():
        name = _name(entry)
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if entry.is_dir() or not parts or _ignored([part for part in parts if part != ".."]):
            continue
        counts[parts[0]] += 1
        if counts[parts[0]] > FILES_LIMIT:
            continue
        read = _reader(archive, entry)
        if ".." in parts or name.startswith("/"):
            read = _refuse("its path leads outside the zip")
            parts = tuple(part for part in parts if part != "..") or ("..",)
        try:
            modified = datetime(*entry.date_time, tzinfo=UTC).timestamp()
        except ValueError:
            modified = 0.0
        yield File(parts, read, modified)


def _name(entry: zipfile.ZipInfo) -> str:
    """An entry's name. Not all programs that write UTF-8 set its flag; without it, zipfile decodes names as cp437."""
    if entry.flag_bits & 0x800:
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return entry.filename


def _reader(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        mode = entry.external_attr >> 16
        if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise Unusable("it is a link, or something else that is not a file")
        try:
            with archive.open(entry) as file:
                data = file.read(SIZE_LIMIT + 1)  # bounded, in case it's a zip bomb
        except Exception as error:  # a broken or hostile entry may raise anything
            raise Unusable(f"it cannot be unpacked ({type(error).__name__}: {one_line(str(error))[:200]})") from error
        if len(data) > SIZE_LIMIT:
            raise Unusable(f"it has more than {SIZE_LIMIT:,} bytes")
        return data

    return read


def _refuse(why: str) -> Callable[[], bytes]:
    def read() -> bytes:
        raise Unusable(why)

    return read
