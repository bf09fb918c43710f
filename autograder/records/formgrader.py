"""Records what people decide in nbgrader's Formgrader as soon as they save it.

This is a server extension, which `course formgrader` and a hub load together with Formgrader itself (the settings are
in ``autograder/jupyter``). Without it, points and comments would be only in the gradebook until the next `course`
command, and deleting the gradebook would lose them.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nbgrader.server_extensions.formgrader.apihandlers import CommentHandler, GradeHandler
from tornado.ioloop import IOLoop

from autograder import CourseError
from autograder.grading import source

from . import gradebook
from .folder import ClassFolder

_ONE = ThreadPoolExecutor(1, thread_name_prefix="decisions")


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: object) -> None:
    """Make Formgrader record what it saves before it responds."""
    GradeHandler.put = recording(GradeHandler.put, lambda book, number: book.find_grade_by_id(number))
    CommentHandler.put = recording(CommentHandler.put, lambda book, number: book.find_comment_by_id(number))


def recording(put: Callable[[Any, str], None], saved: Callable[[Any, str], Any]) -> Callable[..., Awaitable[None]]:
    """Extend nbgrader's handler ``put`` to record the decision that it saved, which ``saved`` looks up.

    If recording fails, the log says why. The decision is still in the gradebook, and the next `course` command records
    it.
    """

    @functools.wraps(put)
    async def put_and_record(handler: Any, number: str) -> None:
        put(handler, number)
        lecture_name = saved(handler.gradebook, number).notebook.assignment.name
        folder = ClassFolder(Path(handler.coursedir.root))
        try:
            # In a thread, because it has to wait while `course grade` is writing the gradebook.
            await IOLoop.current().run_in_executor(_ONE, _record, folder, lecture_name)
        except (CourseError, OSError) as error:
            handler.log.error("Saved, but it will only be recorded by the next `course` command: %s", error)

    return put_and_record


def _record(folder: ClassFolder, lecture_name: str) -> None:
    gradebook.take_over(folder, source.read(folder.source(lecture_name)))
