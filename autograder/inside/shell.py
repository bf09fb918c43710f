"""The IPython shell that runs a student's cells: like their own kernel, but without a screen, a history, or a user.

Magics, ``!commands``, ``?``, ``await`` and ``display`` work as in JupyterLab, because it is the same IPython. This
module isolates nothing; the process that it runs in is isolated.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from . import names
from .messages import Names

_OPTIONS = re.compile(r"\A(?:\s*-\w+(?:\s+\d+)?)*\s*")  # a magic's, such as -n 10 -r3
_RUNS = re.compile(r"(?<!\S)-[nr]\s*\d+(?!\S)")  # how often a magic times a statement
# Magics for interactive use, which affect only what is shown, or the next session.
_FOR_THE_SCREEN = frozenset(
    [
        "autosave",
        "clear",
        "cls",
        "connect_info",
        "edit",
        "less",
        "man",
        "more",
        "qtconsole",
        "rehashx",
        "store",
        "subshell",
    ]
)
# What a kernel's module has, and what VS Code and JupyterLab put there.
_GIVEN = {"__name__": "__main__", "__vsc_ipynb_file__": "/tmp/notebook.ipynb", "__session__": "/tmp/notebook.ipynb"}


class ZMQInteractiveShell(InteractiveShell):
    """IPython's shell, configured like ipykernel's as far as a cell can tell. Many notebooks check for its name."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False  # a file, and a thread that writes it
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "NoColor"
        config.DisplayFormatter.active_types = ["text/plain"]
        config.IPKernelApp.user_ns = None  # by this section, libraries recognize a notebook
        super().__init__(config=config, user_ns=dict(_GIVEN))
        self.db = {}  # what some magics remember for the next session
        self._lacks: UsageError | None = None  # a `%store -r` that found nothing, in a cell that went on

    def init_ipython_dir(self, ipython_dir: str) -> None:
        """Do nothing: no configuration is read or written."""

    init_profile_dir = init_ipython_dir

    async def run(self, text: str) -> BaseException | None:
        """Run a cell as a kernel does, and return what stopped it, if anything."""
        transformed, failed, self._lacks = text, None, None
        try:
            transformed = self._as_python(text)
        except Exception:  # such as an open bracket; IPython does the same
            failed = sys.exc_info()
        result = await self.run_cell_async(
            text, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=failed
        )
        # A kernel triggers these after a cell; `run_cell_async` leaves that to its caller.
        self.events.trigger("post_execute")
        self.events.trigger("post_run_cell", result)
        return result.error_before_exec or result.error_in_exec or self._lacks

    def ask_exit(self) -> None:
        """Do nothing: grading goes on after `exit`."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there's no GUI event loop. (`%matplotlib inline` calls this.)"""

    def showtraceback(self, *_: Any, **__: Any) -> None:
        """Do nothing: the result has the error, and formatting a traceback takes longer than the cell."""

    showsyntaxerror = showtraceback

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """As IPython's, but `%timeit` runs its statement once, and magics for interactive use do nothing."""
        if magic_name == "store" and "-r" in line.split():
            error = UsageError("%store -r: variables stored by an earlier kernel are not available here")
            if len(line.split()) > 1:
                raise error
            self._lacks = error  # without names, it restores whatever is stored, which may be nothing
        if magic_name in _FOR_THE_SCREEN:
            return None
        return super().run_line_magic(magic_name, _once(magic_name, line), _stack_depth + 1)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """As IPython's, but `%%timeit` runs its cell once, and no thread is left of `%%bash`."""
        try:
            return super().run_cell_magic(magic_name, _once(magic_name, line), cell)
        finally:
            scripts: Any = self.magics_manager.registry.get("ScriptMagics")
            if getattr(scripts, "event_loop", None) is not None and not scripts.bg_processes:
                for thread in threading.enumerate():  # asyncio's, one for each process, before Python 3.12
                    if thread.name.startswith("asyncio-waitpid-"):
                        thread.join(1.0)
                scripts.stop_event_loop()

    def system(self, cmd: str) -> None:
        """As IPython's. A command that can't be started isn't an error in a notebook, either."""
        try:
            self.system_piped(cmd)
        except OSError as error:
            print(f"{cmd}: {error.strerror}")

    def read_names(self, text: str) -> Names:
        """Which names a cell defines and uses, including its magics. The cell isn't run."""
        pairs = [names.both(part) for part in self._parts(text, 3)]
        return Names(*(sorted(set().union(*each)) for each in zip(*pairs, strict=True)))

    def _parts(self, text: str, depth: int) -> Iterator[str]:
        """A cell as Python, and the code that its magics run, whose magics in turn may run some."""
        try:
            plain = self._as_python(text)
        except Exception:
            plain = text
        yield plain
        for part in _arguments_of_magics(plain) if depth else ():
            yield from self._parts(part, depth - 1)
            if "\n" not in part:  # options that take a word, as in `%prun -s time f(x)`: the code is what can be parsed
                words = part.split(" ", 8)
                yield from (" ".join(words[left:]) for left in range(1, len(words)))

    def _as_python(self, text: str) -> str:
        """The cell with IPython's own syntax turned into Python. Most cells have none, which Python detects faster.

        A single line always goes to IPython, because `ls` is a magic unless a variable shadows it.
        """
        if "\n" not in text.strip():
            return str(self.transform_cell(text))
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
            return text
        return str(self.transform_cell(text))


def _once(magic_name: str, line: str) -> str:
    """The line of a magic; a timing magic runs its code only once, because nobody sees the time."""
    return "-n1 -r1 " + _RUNS.sub("", line) if magic_name == "timeit" else line


def no_input(prompt: object = "", stream: object = None) -> NoReturn:
    """`input` and `getpass` when nobody can answer: raises what a kernel without a frontend raises."""
    raise StdinNotImplementedError("raw_input was called, but this frontend does not support input requests.")


def _arguments_of_magics(text: str) -> list[str]:
    """The code that a cell's magics run: the rest of the line after `%time`, the rest of the cell after `%%time`."""
    if "_magic(" not in text:
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="run_line_magic" | "run_cell_magic"), args=[_, *texts]):
                found += [_OPTIONS.sub("", str(each.value)) for each in texts if isinstance(each, ast.Constant)]
    return found
