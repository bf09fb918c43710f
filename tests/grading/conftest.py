"""Tests marked ``sandboxed`` run where a sandbox can be had, and elsewhere say why they do not.

Classes that tests write by hand have no hidden cases: they are drawn, from a seed that is no secret, when they are
asked for. tests/grading/test_hidden_inputs.py has what happens otherwise.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import wraps

import pytest

from autograder.authoring import build
from autograder.grading import conversation, sandbox, worker
from autograder.grading.exercises import hidden_path, made_from
from autograder.grading.source import Lecture
from autograder.inside.limits import Limits
from autograder.inside.messages import Run
from autograder.records.folder import ClassFolder


def tried() -> sandbox.Sandbox:
    """A sandbox in which code has run. Skips the test, with the reason, where there is none."""
    try:
        box = sandbox.Sandbox()
        try:
            with box.conversation() as talk:
                talk.ask(Run(""))
        except BaseException:
            box.close()
            raise
    except (sandbox.SandboxError, conversation.Gone) as error:
        pytest.skip(f"no sandbox: {error}")
    return box


class Shared:
    """One sandbox for all tests of this process that only want to grade in one: its start takes longer than most."""

    box: sandbox.Sandbox | None = None
    refusal: str | None = None  # why there is no sandbox here, or nothing

    @classmethod
    def get(cls) -> sandbox.Sandbox:
        """The sandbox with its usual limits, started again if something ended it. Skips the test if there's none."""
        if cls.refusal:
            pytest.skip(cls.refusal)
        if cls.box is not None and (cls.box._process.poll() is not None or not works(cls.box)):
            cls.close()
        if cls.box is None:
            try:
                cls.box = tried()
            except pytest.skip.Exception as error:
                cls.refusal = str(error)
                raise
        cls.refusal, cls.box.limits = "", Limits()
        return cls.box

    @classmethod
    def close(cls) -> None:
        if cls.box is not None:
            cls.box.close()
            cls.box = None


def works(box: sandbox.Sandbox) -> bool:
    try:
        with box.conversation() as talk:
            talk.ask(Run(""))
    except (sandbox.SandboxError, conversation.Gone):
        return False
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    has_one = "box" in getattr(item, "fixturenames", ())  # which is tried where it is made
    if not item.get_closest_marker("sandboxed") or has_one:
        return
    if Shared.refusal is None:
        Shared.get()
    if item.get_closest_marker("hostile"):
        Shared.close()  # these flood what all sandboxes share
    if Shared.refusal:
        pytest.skip(Shared.refusal)


@pytest.fixture(scope="module")
def box() -> sandbox.Sandbox:
    return Shared.get()


@pytest.fixture
def one_box() -> Iterator[None]:
    """What grades in this process starts one sandbox, and not one for each command."""
    with worker.kept_box():
        yield


@pytest.fixture(autouse=True, scope="session")
def shared() -> Iterator[None]:
    yield
    Shared.close()


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
