"""The student's process: runs a submission's cells and answers requests for observations. It knows no tests.

It exchanges the messages of :mod:`autograder.inside.messages` over two pipes and a block of shared memory, until the
judge closes its ends.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import getpass
import mmap
import os
import sys
import threading
from typing import Any, BinaryIO

from course_utils.testing import wire
from course_utils.testing.observing import Printed

from . import messages
from .shell import ZMQInteractiveShell, no_input

_TURNS = 100  # of the event loop after a cell, for tasks that are still running


class Notebook:
    """The names that a submission's cells have defined so far, and the requests about them."""

    def __init__(self, shell: ZMQInteractiveShell) -> None:
        self._shell = shell
        self._names: dict[str, Any] = shell.user_ns
        # For all cells the same: what one puts in its place is still there in the next.
        self._printed = sys.stdout = sys.stderr = Printed()

    async def answer(self, request: messages.Request) -> messages.Answer:
        """Answer one request. An error in the student's code is part of the answer."""
        self._printed.seek(0)
        self._printed.truncate()
        match request:
            case messages.ReadNames(source):
                return self._shell.read_names(source)
            case messages.Run(source):
                return await self._run(source)
            case messages.Call():
                return self._call(request)

    def _call(self, call: messages.Call) -> messages.Answer:
        from course_utils.testing import witness
        from course_utils.testing.checking import SEED, generators_left_alone, seed_all, settings_left_alone
        from course_utils.testing.probes import from_source

        if call.probe:
            target = from_source(call.probe, call.name, self._names)
        elif call.name in self._names:
            target = self._names[call.name]
        else:
            return messages.Missing(call.name)
        # As in a notebook: what one answer sets is not the next one's trouble, nor is what it drew.
        with settings_left_alone(), generators_left_alone():
            seed_all(SEED)
            before = _company()
            return messages.Seen(witness(target, call.args, call.kwargs), max(before, _company()))

    async def _run(self, source: str) -> messages.Ran:
        try:
            raised = await self._shell.run(source)
            # Lets the tasks that the cell left behind go on, as a kernel does while nobody runs anything.
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if len(asyncio.all_tasks()) == 1:
                    break
        except BaseException as error:  # IPython lets some through, such as for a cell nested too deep
            raised = error
        said = ""
        if raised is not None:
            said = type(raised).__name__
            with contextlib.suppress(BaseException):  # str() of an error may run the student's code
                said += f": {raised}"[: messages.TEXT]
        return messages.Ran(said, self._printed.getvalue()[: messages.PRINTED], _company())


def _company() -> int:
    """How many other threads of this process run Python, besides that of a progress bar; and one more for children."""
    monitor = getattr(sys.modules.get("tqdm._monitor"), "TMonitor", None)
    watching = {each.ident for each in threading.enumerate() if type(each) is monitor}
    threads = len(set(sys._current_frames()) - {threading.get_ident(), *watching})
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return threads
    return threads + 1


async def converse(requests: BinaryIO, answers: BinaryIO, shared: int, shell: ZMQInteractiveShell) -> None:
    """Answer requests until they end. Tensors among the arguments are in the shared memory of descriptor ``shared``.

    A coroutine, because a kernel's cells also run in an event loop: there, `await` works and `asyncio.run` doesn't.
    """
    memory = memoryview(mmap.mmap(shared, wire.LIMIT))
    os.close(shared)
    builtins.input = getpass.getpass = no_input
    sys.argv = ["ipykernel_launcher.py", "-f", "/tmp/kernel.json"]  # as a kernel's: code for notebooks parses them
    # A module that a cell writes twice within a second, and reloads, would otherwise be read from its cache.
    sys.dont_write_bytecode = True
    shell.builtin_trap.activate()  # `display` and `get_ipython`, also while a function is called
    notebook = Notebook(shell)
    while True:
        try:
            request = messages.request(wire.receive(requests, lambda place, size: memory[place : place + size]))
        except EOFError:
            return
        try:
            reply = wire.pack(messages.plain(await notebook.answer(request)))
        except wire.WireError as error:  # the student returned something that can't be sent
            reply = wire.pack(messages.plain(messages.Unsendable(str(error))))
        answers.write(wire.framed(reply))
        answers.flush()
