"""A sandbox for all tests of this folder that only want to grade in one.

Classes that tests write by hand have no hidden cases: they are drawn, from a seed that is no secret, when they are
asked for. tests/grading/test_hidden_inputs.py has what happens otherwise.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import wraps

import pytest
from shared_sandbox import Shared

from autograder.authoring import build
from autograder.grading import sandbox, worker
from autograder.grading.exercises import hidden_path, made_from
from autograder.grading.source import Lecture
from autograder.inside.limits import Limits
from autograder.records.folder import ClassFolder


@pytest.fixture(scope="module")
def box() -> sandbox.Sandbox:
    return Shared.get()


@pytest.fixture
def one_box() -> Iterator[None]:
    """What grades in this process starts one sandbox, and not one for each command."""
    with worker.kept_box():
        yield


@pytest.fixture
def warm(box: sandbox.Sandbox) -> Iterator[None]:
    """What grades in this process takes `box` instead of starting a sandbox, and leaves it open."""

    def take(limits: Limits, *, unsafe: bool, **_: object) -> sandbox.Sandbox:
        if box._process.poll() is not None:  # something ended it; that is not what these tests are about
            return sandbox.Sandbox(limits, unsafe=unsafe)
        # These it was started with; the other limits are those of each conversation.
        assert (box.limits.isolate, box.limits.memory) == (not unsafe, limits.memory)
        box.limits = replace(limits, isolate=not unsafe)
        return box

    with pytest.MonkeyPatch.context() as patch:  # not the test's own, which it may undo
        patch.setattr(worker, "Sandbox", take)
        patch.setattr(box, "close", lambda: None)
        yield
        worker.close_box()


@pytest.fixture(autouse=True, scope="session")
def hidden_cases() -> Iterator[None]:
    real = ClassFolder.require_cases
    known: dict[tuple[str, str], bytes] = {}  # drawn once for all classes of this process

    @wraps(real)
    def drawn(folder: ClassFolder, lecture: Lecture) -> None:
        for cells in lecture.exercises:
            path = hidden_path(folder.root, cells.name)
            if (cells.name, cells.made_from) in known and made_from(path) != cells.made_from:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(known[cells.name, cells.made_from])
        for name in build.draw_hidden(folder.root, lecture, 0):
            path = hidden_path(folder.root, name)
            known[name, made_from(path)] = path.read_bytes()
        real(folder, lecture)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClassFolder, "require_cases", drawn)
        yield
