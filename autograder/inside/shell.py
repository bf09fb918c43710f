"""The IPython that runs a student's cells: what their own kernel has, without a screen, a history, or a person to ask.

Magics, ``!commands``, ``?``, ``await`` and ``display`` work as in JupyterLab, because it is the same IPython. Nothing
here isolates: the process that it runs in is isolated.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import warnings
from typing import Any, NoReturn

from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from . import names
from .messages import Names

_OPTIONS = re.compile(r"\A(?:\s*-\w+(?:\s+\d+)?)*\s*")  # of a magic: -n 10 -r3
_TIMED = "-n1 -r1 "  # a time that nobody sees is not worth a thousand runs


class Shell(InteractiveShell):
    """IPython's shell as ipykernel configures it, as far as a cell can tell."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False  # a file, and a thread that writes it
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "NoColor"
        config.DisplayFormatter.active_types = ["text/plain"]
        super().__init__(config=config, user_ns={"__name__": "__main__"})

    def init_ipython_dir(self, ipython_dir: str) -> None:
        """Nothing: no configuration is read or written."""

    init_profile_dir = init_ipython_dir

    async def run(self, text: str) -> BaseException | None:
        """Run a cell as a kernel does; what stopped it, if anything did."""
        transformed, failed = text, None
        try:
            transformed = self._as_python(text)
        except Exception:  # as IPython: an open bracket, say
            failed = sys.exc_info()
        result = await self.run_cell_async(text, transformed_cell=transformed, preprocessing_exc_tuple=failed)
        return result.error_before_exec or result.error_in_exec

    def enable_gui(self, gui: str | None = None) -> None:
        """Nothing: there is no event loop of a window. (`%matplotlib inline` asks for one.)"""

    def showtraceback(self, *_: Any, **__: Any) -> None:
        """Nothing: what a cell raised is in the result, and drawing a traceback takes longer than the cell."""

    showsyntaxerror = showtraceback

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """As IPython's; `%timeit` runs its statement once."""
        line = _TIMED + line if magic_name == "timeit" else line
        return super().run_line_magic(magic_name, line, _stack_depth + 1)

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        """As IPython's; `%%timeit` runs its cell once."""
        line = _TIMED + line if magic_name == "timeit" else line
        return super().run_cell_magic(magic_name, line, cell)

    def system(self, cmd: str) -> None:
        """As IPython's; a command that cannot be started is no error in a notebook either."""
        try:
            self.system_piped(cmd)
        except OSError as error:
            print(f"{cmd}: {error.strerror}")

    def read_names(self, text: str) -> Names:
        """Which names a cell defines and uses, its magics included. The cell is not run."""
        try:
            plain = self._as_python(text)
        except Exception:
            plain = text
        pairs = [names.both(part) for part in (plain, *_arguments_of_magics(plain))]
        return Names(*(sorted(set().union(*each)) for each in zip(*pairs, strict=True)))

    def _as_python(self, text: str) -> str:
        """The cell without IPython's own syntax. Most have none, and Python sees that sooner than IPython.

        A single line goes to IPython even so: `ls` is a magic where no name hides it.
        """
        if "\n" not in text.strip():
            return str(self.transform_cell(text))
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
            return text
        return str(self.transform_cell(text))


def no_input(prompt: object = "") -> NoReturn:
    """`input` where nobody can answer: what a kernel says that has no frontend to ask."""
    raise StdinNotImplementedError("raw_input was called, but this frontend does not support input requests.")


def _arguments_of_magics(text: str) -> list[str]:
    """The code that a cell's magics run: all of `%%time`'s cell, what stands behind `%time`."""
    if "_magic(" not in text:
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            last = node.args[-1]
            if node.func.attr in ("run_line_magic", "run_cell_magic") and isinstance(last, ast.Constant):
                found.append(_OPTIONS.sub("", str(last.value)))
    return found
