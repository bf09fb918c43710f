"""The student's process: runs the cells of a submission and answers observations. It knows no test.

It talks over two pipes and one piece of shared memory, in the messages of :mod:`autograder.inside.messages`, until the
judge closes its ends.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import mmap
import os
from typing import Any, BinaryIO

from . import messages, names, wire

_PRINTED = 20_000  # characters of a cell's output that are kept


class Notebook:
    """The names that a submission's cells have defined so far, and what may be asked of them."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def answer(self, request: messages.Request) -> messages.Answer:
        """Answer one request. What the student's code raises is part of the answer."""
        match request:
            case messages.ReadNames(source):
                return messages.Names(sorted(names.defined(source)), sorted(names.used(source)))
            case messages.Run(source, title):
                return self._run(source, title)
            case messages.Call():
                return self._call(request)

    def _call(self, call: messages.Call) -> messages.Answer:
        from course_utils.testing import Mismatch, probe, witness

        if call.probe:
            self.names["probe"] = probe
            self._exec(call.probe, "<probe>")
        try:
            target = self.names[call.name]
        except KeyError:
            return messages.Missing(call.name)
        try:
            return messages.Seen(witness(target, call.args, call.kwargs))
        except Mismatch as mismatch:
            return messages.Mismatched(str(mismatch))

    def _run(self, source: str, title: str) -> messages.Ran:
        printed = io.StringIO()
        error = ""
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                self._exec(source, f"<{title}>")
            except BaseException as raised:  # in a notebook, SystemExit and its like end a cell, not the kernel
                error = f"{type(raised).__name__}: {raised}"[:2000]
        return messages.Ran(error, printed.getvalue()[:_PRINTED])

    def _exec(self, source: str, filename: str) -> None:
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), self.names)


def converse(requests: BinaryIO, answers: BinaryIO, shared: int) -> None:
    """Answer requests until they end. The tensors among their arguments are in the memory behind ``shared``."""
    memory = memoryview(mmap.mmap(shared, wire.LIMIT))
    os.close(shared)
    notebook = Notebook()
    while True:
        try:
            request = messages.request(wire.receive(requests, lambda place, size: memory[place : place + size]))
        except EOFError:
            return
        try:
            reply = wire.pack(messages.plain(notebook.answer(request)))
        except wire.WireError as error:  # the student returned what no message can hold
            reply = wire.pack(messages.plain(messages.Unsendable(str(error))))
        answers.write(wire.framed(reply))
        answers.flush()
