"""One sandbox for all tests of a process that only want to grade in one, since its start takes longer than most."""

from __future__ import annotations

import pytest

from autograder.grading import conversation, sandbox
from autograder.inside.limits import Limits
from autograder.inside.messages import Run


def tried() -> sandbox.Sandbox:
    """A sandbox in which code has run. Skips the test, with the reason, if no sandbox starts here."""
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
