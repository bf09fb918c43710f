"""The rooms of the project, checked in the source itself: imports between them go one way, and never in a circle."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from imports import imports, reached

from autograder import project

# A module may import from its own room and from rooms on a lower floor.
FLOORS = {
    "course_utils": 0,
    "autograder.inside": 1,  # runs where there is no autograder/__init__.py
    "autograder": 1,  # this and the next two are single modules: what every room above may need
    "autograder.locks": 1,
    "autograder.project": 1,
    "autograder.grading": 2,
    "autograder.authoring": 3,
    "autograder.records": 3,
    "autograder.demo": 4,
    "autograder.semester": 4,
    "autograder.cli": 5,
}


RULE = [
    "  → import from the same room or a lower floor; what two rooms need belongs below both (docs/design.md):",
    *(f"    {floor}  {name}" for name, floor in sorted(FLOORS.items(), key=lambda item: -item[1])),
]


def room(module: str) -> str:
    """The room that a module is in, or "" where it is in none."""
    if module == "autograder":
        return module
    rooms = (name for name in FLOORS if name != "autograder" and f"{module}.".startswith(f"{name}."))
    return next(rooms, "")


def problems(root: Path) -> Iterator[str]:
    """Every import in the packages at ``root`` that goes up, sideways or round in a circle."""
    graph = imports(root)
    for module, targets in graph.items():
        if not room(module):
            yield f"{module} is in no room"
            continue
        for target in sorted(filter(room, targets)):
            if room(target) != room(module) and FLOORS[room(target)] >= FLOORS[room(module)]:
                yield f"{module} imports {target}"
    yield from circles(graph)


def circles(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """The groups of modules that import one another, sooner or later."""
    above = {module: reached([module], graph) for module in graph}
    groups = {frozenset(other for other in above[module] if module in above[other]) for module in graph}
    for group in sorted(map(sorted, groups)):
        if len(group) > 1:
            yield f"a circle of {', '.join(group)}"


def test_imports_between_the_rooms_go_one_way_and_never_in_a_circle() -> None:
    found = list(problems(project.ROOT))
    assert not found, "\n".join([*found, *RULE])


def test_every_room_has_modules_and_uses_the_room_below() -> None:
    """Otherwise the test above would look at nothing."""
    graph = imports(project.ROOT)
    used = {(room(module), room(target)) for module, targets in graph.items() for target in targets}
    assert {name for name in FLOORS if not any(room(module) == name for module in graph)} == set()
    assert used >= {
        ("autograder.inside", "course_utils"),
        ("autograder.grading", "autograder.inside"),
        ("autograder.records", "autograder.grading"),
        ("autograder.authoring", "autograder.grading"),
        ("autograder.cli", "autograder.records"),
    }


def test_the_picture_in_the_docs_shows_the_imports_between_the_packages() -> None:
    text = (project.ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"^```mermaid\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    drawn: dict[str, set[str]] = {}
    for start, end in re.findall(r"^ *(\w+) --> (\w+)$", picture, re.MULTILINE):
        drawn.setdefault(start, set()).add(end)
    packages = {name.removeprefix("autograder."): name for name in FLOORS}
    graph = imports(project.ROOT)
    shown = {*drawn, *itertools.chain(*drawn.values())}
    folders = {name for name, module in packages.items() if (project.ROOT / module.replace(".", "/")).is_dir()}
    assert shown == folders - {"autograder"} | {"cli"}  # other single modules are left out
    used = {(room(module), room(target)) for module, targets in graph.items() for target in targets}
    assert all((packages[start], packages[end]) in used for start in drawn for end in drawn[start])
    along = {start: reached([start], {name: drawn.get(name, set()) for name in shown}) for start in shown}
    for start, end in itertools.permutations(shown, 2):
        assert (packages[start], packages[end]) not in used or end in along[start], f"{start} imports {end}"


SOUND = {
    "course_utils/__init__.py": "",
    "course_utils/files.py": "import os",
    "autograder/__init__.py": "class CourseError(Exception): pass",
    "autograder/project.py": "from pathlib import Path",
    "autograder/inside/__init__.py": "",
    "autograder/inside/limits.py": "import json",
    "autograder/inside/messages.py": "import torch\nfrom course_utils.files import replacing",
    "autograder/grading/__init__.py": "",
    "autograder/grading/key.py": "from autograder.inside.limits import Limits\nfrom autograder import CourseError",
    "autograder/grading/judge.py": "from . import key\nfrom .key import digest",
    "autograder/authoring/__init__.py": "",
    "autograder/authoring/bank.py": "from autograder.grading import judge\nfrom autograder.project import ROOT",
    "autograder/records/__init__.py": "",
    "autograder/records/folder.py": "from autograder.grading.key import key",
    "autograder/records/grade.py": "def grade():\n    from .folder import ClassFolder\n",
    "autograder/demo.py": "from autograder.authoring import bank\nfrom autograder.records.folder import ClassFolder",
    "autograder/cli.py": "from autograder import demo\n\ndef run():\n    from autograder.records.grade import grade\n",
}
ADDED = {
    "up, at the top": ("autograder/grading/judge.py", "from autograder.records.folder import ClassFolder"),
    "up, as a whole module": ("autograder/grading/judge.py", "import autograder.records.folder"),
    "up, under another name": ("autograder/grading/judge.py", "import autograder.records.folder as place"),
    "up, relative": ("autograder/grading/judge.py", "from ..records import folder"),
    "up, from a room alone": ("autograder/grading/judge.py", "from .. import records"),
    "up, in a function": ("autograder/grading/judge.py", "def f():\n    from autograder.records import folder"),
    "up, in a method under a condition": (
        "autograder/grading/judge.py",
        "class A:\n    def f(self):\n        if True:\n            from autograder.records.folder import ClassFolder",
    ),
    "up, for types only": (
        "autograder/grading/judge.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from autograder.records.folder import ClassFolder",
    ),
    "up, all names": ("autograder/inside/messages.py", "from autograder.grading.key import *"),
    "up, from a room's own file": ("autograder/grading/__init__.py", "from autograder.records import folder"),
    "sideways, from records": ("autograder/records/grade.py", "from autograder.authoring import bank"),
    "sideways, from authoring": ("autograder/authoring/bank.py", "from autograder.records import folder"),
    "up to the command": ("autograder/records/grade.py", "from autograder import cli"),
    "up from the demo": ("autograder/demo.py", "from autograder.cli import run"),
    "a loose module that imports a room": ("autograder/project.py", "from autograder.inside.limits import Limits"),
    "the package itself imports a room": ("autograder/__init__.py", "def f():\n    from .grading import key"),
    "inside imports a loose module": ("autograder/inside/messages.py", "from autograder import CourseError"),
    "inside imports a loose file": ("autograder/inside/messages.py", "from ..project import ROOT"),
    "students' helpers import the grader": ("course_utils/files.py", "from autograder.project import ROOT"),
    "students' helpers import the grader in a function": ("course_utils/files.py", "def f():\n    import autograder"),
    "a circle of two": ("autograder/grading/key.py", "from . import judge"),
    "a circle of two, in a function": ("autograder/grading/key.py", "def f():\n    from .judge import grade"),
    "a circle in a function and for types": (
        "autograder/records/folder.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .grade import grade",
    ),
    "a circle of three": ("autograder/inside/limits.py", "from . import student"),
    "a module in no room": ("autograder/keeping.py", ""),
}


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return root


def test_a_made_up_tree_whose_imports_all_go_down_passes(tmp_path: Path) -> None:
    assert list(problems(tree(tmp_path, SOUND))) == []


@pytest.mark.parametrize("what", ADDED)
def test_one_import_that_does_not_go_down_is_found(what: str, tmp_path: Path) -> None:
    name, line = ADDED[what]
    made_up = dict(SOUND)
    if what == "a circle of three":
        made_up["autograder/inside/student.py"] = "def f():\n    from .messages import plain"
        made_up["autograder/inside/messages.py"] += "\nfrom .limits import Limits"
    tree(tmp_path, made_up)
    assert list(problems(tmp_path)) == []
    tree(tmp_path, {name: f"{made_up.get(name, '')}\n{line}"})
    found = list(problems(tmp_path))
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert any(module in problem for problem in found), found
