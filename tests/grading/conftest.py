"""Tests marked ``sandboxed`` run where a sandbox can be had, and elsewhere say why they do not."""

from functools import cache

import pytest

from autograder.grading import conversation, sandbox
from autograder.inside.messages import Run


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
