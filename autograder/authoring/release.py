"""Makes the students' release, a folder and a zip that open with `make lab`, from an allow-list."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import tomlkit

from autograder.project import ROOT

from . import build

# Everything a student needs beside the notebooks, which are built anew: a locally solved copy never gets in.
FILES = ("bootstrap.py", "environment.yml", "LICENSE", "Makefile", "requirements.lock")
FOLDERS = ("course_utils", "jupyter")
# Earliest time a zip can hold; a fixed one makes equal releases equal bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


def make_release(destination: Path, lectures: Sequence[Path] | None = None) -> Path:
    """Write ``destination/every-byte-every-flop-VERSION/`` and the same as a zip beside it; return the folder.

    It has the notebooks of all lectures, or of those sources that ``lectures`` names, which may be none. Replaces an
    older release of the same version. The same sources give the same bytes. Raises ``SourceError`` or ``BuildError`` if
    a notebook can't be built, ``FileNotFoundError`` for a missing file.
    """
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    name = f"{project['project']['name']}-{project['project']['version']}"
    folder = destination / name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    if lectures is None or lectures:
        with tempfile.TemporaryDirectory() as scratch:  # its own, so that two at once do not meet
            build.students_notebooks(folder / "notebooks", Path(scratch), sources=lectures or ())
    for file in FILES:
        shutil.copyfile(ROOT / file, folder / file)
    for each in FOLDERS:
        shutil.copytree(ROOT / each, folder / each, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    students_page = ROOT / "docs" / "students.md"
    shutil.copyfile(students_page if students_page.exists() else ROOT / "README.md", folder / "README.md")
    (folder / "pyproject.toml").write_text(students_project(project), encoding="utf-8", newline="\n")
    _zip(folder, destination / f"{name}.zip")
    return folder


def students_project(project: tomlkit.TOMLDocument) -> str:
    """pyproject.toml without the instructors' parts: the autograder, its entry points, and settings of tools."""
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
