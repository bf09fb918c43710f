"""Tests marked ``sandboxed`` run where a sandbox can be had, and elsewhere say why they do not.

Classes that tests write by hand have no hidden cases: they are drawn, from a seed that is no secret, when they are
asked for. tests/grading/test_hidden_inputs.py has what happens otherwise.
"""

from collections.abc import Iterator
from functools import cache, wraps

import pytest

from autograder.authoring import build
from autograder.grading import conversation, sandbox
from autograder.grading.exercises import hidden_path, made_from
from autograder.grading.source import Lecture
from autograder.inside.messages import Run
from autograder.records.folder import ClassFolder


@cache
def refusal() -> str:
    """Why there is no sandbox here, or nothing."""
    try:
        with sandbox.Sandbox() as box, box.conversation() as talk:
            talk.ask(Run(""))
    except (sandbox.SandboxError, conversation.Gone) as error:
        return f"no sandbox: {error}"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("sandboxed") and (why := refusal()):
        pytest.skip(why)


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
