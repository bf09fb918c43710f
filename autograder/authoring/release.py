"""Makes the students' release from an allowlist: a folder and a zip that open with `make lab`."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import tomlkit

from autograder.grading import source
from autograder.project import CHECKS, ROOT, SOLUTIONS, checks_of
from course_utils import validating

from . import build

# What students need besides the notebooks. Those are built again, so that locally solved copies never get in.
FILES = ("bootstrap.py", "environment.yml", "LICENSE", "Makefile", "requirements.lock")
FOLDERS = ("course_utils", "jupyter")
ASSISTANTS = "docs/for-assistants.md"
# The earliest time that a zip can store; a fixed time makes releases reproducible.
EPOCH = (1980, 1, 1, 0, 0, 0)


def place(destination: Path) -> Path:
    """The folder of a release in ``destination``; its zip is beside it, with the same name."""
    project = _project()["project"]
    return destination / f"{project['name']}-{project['version']}"


def notebooks(folder: Path) -> list[str]:
    """The names of the lectures in a release's folder; none if there's no release."""
    return sorted(path.stem for path in folder.glob("notebooks/*/*.ipynb"))


def _project() -> tomlkit.TOMLDocument:
    return tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def make_release(destination: Path, lectures: Sequence[Path] | None = None, own: Path | None = None) -> Path:
    """Write ``destination/every-byte-every-flop-VERSION/`` and, next to it, a zip of it; return the folder.

    It has the notebooks of all lectures, or of the sources in ``lectures``, which may be none. ``own`` is a folder with
    a class's own lectures, which are included with their checks. Replaces an older release of the same version. The
    same sources give the same bytes. Raises ``SourceError`` or ``BuildError`` if a notebook can't be built,
    ``FileNotFoundError`` for a missing file.
    """
    folder = place(destination)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    if lectures is None:
        lectures = [*source.lectures(SOLUTIONS), *(source.lectures(own) if own else ())]
    if lectures:
        with tempfile.TemporaryDirectory() as scratch:  # separate, so that two releases can be built at once
            build.students_notebooks(folder / "notebooks", Path(scratch), sources=lectures)
    for file in FILES:
        shutil.copyfile(ROOT / file, folder / file)
    for each in FOLDERS:
        shutil.copytree(ROOT / each, folder / each, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    if own:
        _add_checks(checks_of(own), folder / CHECKS.relative_to(ROOT))
    students_page = ROOT / "docs" / "students.md"
    shutil.copyfile(students_page if students_page.exists() else ROOT / "README.md", folder / "README.md")
    shutil.copyfile(ROOT / ASSISTANTS, folder / "AGENTS.md")  # where coding assistants look for it
    (folder / "pyproject.toml").write_text(students_project(_project()), encoding="utf-8", newline="\n")
    _zip(folder, destination / f"{folder.name}.zip")
    return folder


def _add_checks(own: Path, checks: Path) -> None:
    for path in own.glob("*.check"):
        shutil.copyfile(path, checks / path.name)
    known = [json.loads((each / validating.FILE).read_bytes()) for each in (checks, own)]
    (checks / validating.FILE).write_text(
        json.dumps(known[0] | known[1], indent=1) + "\n", encoding="utf-8", newline="\n"
    )


def students_project(project: tomlkit.TOMLDocument) -> str:
    """pyproject.toml without the instructors' parts: the autograder, its entry points, and the tools' settings."""
    project = tomlkit.parse(project.as_string())
    for key in ("optional-dependencies", "scripts", "entry-points"):
        del project["project"][key]
    hatch = project["tool"]["hatch"]
    for tool in [key for key in project["tool"] if key != "hatch"]:
        del project["tool"][tool]
    hatch["build"]["targets"]["wheel"]["packages"] = ["course_utils"]
    return project.as_string()


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), EPOCH)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
