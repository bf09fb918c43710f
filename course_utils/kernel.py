"""A helpful line where a lecture's kernel would otherwise print an unhelpful traceback.

- If a cell needs an unsolved exercise, the line names the exercise, and *Run All* goes on to the next cell.
- If a name is missing because the earlier cell that defines it hasn't run in this kernel, the line says so.
- If another name or a module is missing, the line says which and where, above a fold with the traceback.
- If a cell is interrupted, the line shows where.

`watch` starts this for the lecture in whose folder the kernel runs; so does ``%load_ext course_utils.kernel``, which
the course's environment runs for every kernel. Elsewhere, and where graders run cells, nothing changes.
"""

from __future__ import annotations

import html
import linecache
import os
import traceback
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from course_utils import keeping
from course_utils.colab import on_colab
from course_utils.notebook import Cell, find_notebook, read_cells, read_exercises, steps


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext course_utils.kernel``: watch, if this is a lecture's kernel."""
    watch(shell)


def watch(shell: Any) -> None:
    """Watch the cells that ``shell`` runs, if it runs in a lecture's folder and not under nbgrader."""
    if os.environ.get("NBGRADER_EXECUTION") or not keeping.lecture() or getattr(shell, "course_guide", None):
        return
    if kernel := getattr(shell, "kernel", None):  # JupyterLab writes this into the notebook when it opens it
        kernel.language_info = {**kernel.language_info, "version": "3"}
    path = find_notebook()
    try:
        checks = frozenset(exercise.check for exercise in read_exercises(path)) if path else frozenset()
        guide = Guide(shell, read_cells(path) if path else [], checks)
    except (OSError, ValueError):  # the panel of exercises reports it
        return
    shell.course_guide = guide
    shell.events.register("pre_run_cell", guide.before)
    shell.events.register("post_run_cell", guide.after)
    shell.set_custom_exc((Exception, KeyboardInterrupt), guide.failed)


@dataclass
class Guide:
    """What a lecture's cells have defined so far in a kernel, and which names still depend on an unsolved exercise.

    ``cells`` are the notebook's code cells, ``checks`` the sources of its check cells, which are never skipped.
    ``waits`` maps a name to the exercise that must be solved before the name has its intended value.
    """

    shell: Any
    cells: list[Cell]
    checks: frozenset[str]
    waits: dict[str, Cell] = field(default_factory=dict)
    source: str = ""
    skipped: Cell | None = None

    def before(self, info: Any) -> None:
        """IPython calls this when a cell begins."""
        self.source, self.skipped = self.shell.transform_cell(info.raw_cell or ""), None

    def after(self, result: Any) -> None:
        """IPython calls this when a cell has ended. A skipped cell counts as run, so that the next one runs too."""
        for step in steps(self.source):
            needed = next((self.waits[name] for name in sorted(step.uses) if name in self.waits), None)
            for name in step.binds:
                own = next((cell for cell in self.cells if cell.exercise and name in cell.defines), None)
                if self.skipped or own or needed:
                    self._wait(name, (own if step.empty else None) if own else self.skipped or needed)
                else:
                    self.waits.pop(name, None)
            if found := self.skipped or needed:
                for name in step.changes:
                    self.waits.setdefault(name, found)
        if self.skipped:
            result.error_in_exec = None

    def _wait(self, name: str, cell: Cell | None) -> None:
        if cell is None:
            self.waits.pop(name, None)
        else:
            self.waits[name] = cell

    def failed(
        self, shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType, tb_offset: Any = None
    ) -> None:
        """IPython calls this instead of printing a traceback."""
        if isinstance(error, KeyboardInterrupt):
            _say("Interrupted" + self._place(trace) + ".")
        elif cell := self._missing_exercise(error, trace):
            self.skipped = cell
            title = html.escape(cell.exercise)
            link = f'<a href="{cell.link}">{title}</a>' if cell.link else title
            _say(f"○ Skipped: this cell needs {cell.exercise}", f"○ Skipped: this cell needs {link}")
        elif isinstance(error, NameError) and self._defined_elsewhere(error.name):
            above = "Runtime ▸ Run before" if on_colab() else "Run ▸ Run All Above Selected Cell"
            _say(
                f"NameError: `{error.name}` is defined in a cell above, which has not run in this kernel yet. "
                f"Choose {above}, then run this cell."
            )
        elif line := self._missing_name(error, trace):
            # Still an error in the saved notebook, which tells the grader what the student saw.
            shell._showtraceback(kind, error, [line])
            steps_to_it = "".join(traceback.format_exception(kind, error, trace.tb_next))  # the first is IPython's
            _say("", f"<details><summary>Traceback</summary><pre>{html.escape(steps_to_it)}</pre></details>")
        else:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)

    def _missing_exercise(self, error: BaseException, trace: TracebackType) -> Cell | None:
        """The unsolved exercise that caused this error."""
        if self.source.strip() in self.checks:
            return None
        frame, _ = list(traceback.walk_tb(trace))[-1]
        if isinstance(error, NotImplementedError) and not error.args and frame.f_globals is self.shell.user_ns:
            for name in frame.f_code.co_qualname.split("."):
                if cell := next((cell for cell in self.cells if cell.exercise and name in cell.defines), None):
                    return cell
        names = {name for step in steps(self.source) for name in step.uses}
        if isinstance(error, NameError) and error.name:
            names.add(error.name)  # a function defined earlier may be the one that uses it
        return next((self.waits[name] for name in sorted(names) if name in self.waits), None)

    def _missing_name(self, error: BaseException, trace: TracebackType) -> str:
        """What to say about a name or module that a cell's own code needs and nobody has; "" if it isn't that."""
        frame, number = list(traceback.walk_tb(trace))[-1]
        if frame.f_globals is not self.shell.user_ns:
            return ""
        if type(error) is NameError and str(error).startswith("name "):
            problem = f"NameError: `{error.name}` isn't defined. Is it misspelled, or is its import missing?"
        elif isinstance(error, ModuleNotFoundError):
            problem = (
                f"ModuleNotFoundError: there is no module `{error.name}` here. Is it misspelled? "
                "No exercise needs more than the first cell imports."
            )
        else:
            return ""
        name = frame.f_code.co_name
        place = "" if name.startswith("<") else f" in {name}"
        return f"{problem} (line {number}{place}: {linecache.getline(frame.f_code.co_filename, number).strip()})"

    def _defined_elsewhere(self, name: str | None) -> bool:
        return any(name in cell.defines for cell in self.cells)

    def _place(self, trace: TracebackType) -> str:
        """Where in the cell the error occurred, as text; "" if not in its own code."""
        lines = self.source.splitlines()
        for frame, number in traceback.walk_tb(trace):
            if frame.f_globals is self.shell.user_ns and frame.f_code.co_name.startswith("<") and number <= len(lines):
                return f" at line {number} of this cell: {lines[number - 1].strip()}"
        return ""


def _say(text: str, markup: str = "") -> None:
    from IPython.display import display

    markup = markup or html.escape(text)
    display({"text/plain": text, "text/html": f"<div role='status'>{markup}</div>"}, raw=True)  # type: ignore[no-untyped-call]
