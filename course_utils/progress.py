"""A panel in the notebook with a lecture's exercises and the latest results of their visible checks.

`show_progress` displays a panel below the setup cell. It's updated whenever a check cell has run, and saved in
``progress.json`` beside the lectures' folders (the environment variable COURSE_PROGRESS can name another file, or
``off`` to disable the panel). The file stays on this machine; delete it to start again. Grading doesn't use it.
"""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_utils import keeping, kernel
from course_utils.colab import on_colab
from course_utils.notebook import Exercise, find_notebook, read_exercises

FILE_VARIABLE = "COURSE_PROGRESS"
_DISPLAY_ID = "course-progress"
_STATES = {True: ("✓", "done"), False: ("✗", "does not pass yet"), None: ("○", "to do")}


def show_progress() -> None:
    """Show the panel and keep it up to date.

    Does nothing where nobody would see it: outside IPython, under nbgrader, and in folders other than a lecture's.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or os.environ.get("NBGRADER_EXECUTION") or os.environ.get(FILE_VARIABLE) == "off":
        return
    path = find_notebook()
    if path is None:
        return
    kernel.watch(shell)
    for callback in [c for c in shell.events.callbacks["post_run_cell"] if isinstance(c, _Panel)]:
        shell.events.unregister("post_run_cell", callback)  # left by an earlier run of the setup cell
    try:
        panel = _Panel(keeping.lecture() or path.stem, read_exercises(path))
    except (OSError, ValueError) as error:
        text = (
            f"Your progress cannot be shown, because {path.name} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}. Save the notebook in this folder and run this cell again."
        )
        _display(f"<p>{html.escape(text)}</p>", text)
        return
    panel.show()
    shell.events.register("post_run_cell", panel)


def load(path: Path) -> tuple[dict[str, dict[str, bool]], str]:
    """A dict lecture → exercise → whether its visible check passed on its last run, and a message for the reader.

    A damaged file is moved aside, and the message names the new file; otherwise the message is "".

    Raises:
        OSError: the file exists and cannot be read or moved.
    """
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(passed, bool) for checks in kept.values() for passed in checks.values()):
            raise ValueError("it doesn't hold your progress")
        return kept, ""
    except FileNotFoundError:
        return {}, ""
    except (ValueError, AttributeError, RecursionError) as error:
        count = 1
        while (aside := path.with_name(f"{path.stem}.damaged-{count}{path.suffix}")).exists():
            count += 1
        os.replace(path, aside)
        return {}, f"{path.name} was damaged ({error}). It is now {aside.name}, and your progress starts again."


class _Panel:
    """Shows a lecture's exercises; IPython calls it after each cell."""

    def __init__(self, lecture: str, exercises: list[Exercise]) -> None:
        self.lecture, self.exercises = lecture, exercises
        self.file = keeping.file(FILE_VARIABLE, "progress.json")
        self.passed: dict[str, bool] = {}
        self.trouble = ""
        try:
            self._read()
        except OSError as error:
            self.trouble = f"Your earlier progress cannot be read: {error}."

    def __call__(self, result: Any) -> None:
        """Record a check that has run; ``result`` is IPython's ExecutionResult."""
        exercise = self._checked(result.info)
        if exercise is None or isinstance(result.error_in_exec, KeyboardInterrupt):
            return
        passed, trouble = _passed(result), ""
        try:
            kept = self._read()
            self._note(exercise, passed)
            keeping.write(self.file, {**kept, self.lecture: self.passed})
        except OSError as error:
            self._note(exercise, passed)
            trouble = f" This could not be saved: {error}."
        self.show(update=True)
        if passed:
            done = sum(self.passed.get(e.name, False) for e in self.exercises)
            text = f"✓ {exercise.name}: {_points(exercise.points)} on the visible checks; "
            text += f"{done} of {len(self.exercises)} exercises done.{trouble}"
            after, after_text = _next(self.exercises, self.passed)
            _display(f"<p role='status'>{html.escape(text)} {after}</p>", f"{text} {after_text}")
        elif trouble:
            print(trouble.strip())

    def _note(self, exercise: Exercise, passed: bool | None) -> None:
        if passed is None:
            self.passed.pop(exercise.name, None)
        else:
            self.passed[exercise.name] = passed

    def _read(self) -> dict[str, dict[str, bool]]:
        kept, trouble = load(self.file)
        self.passed |= kept.get(self.lecture, {})
        self.trouble = trouble or self.trouble
        return kept

    def _checked(self, cell: Any) -> Exercise | None:
        """The exercise whose check this cell is, found by its id if the front end sends one, else by its source."""
        same = [e for e in self.exercises if e.check_id and e.check_id == getattr(cell, "cell_id", None)]
        same += [e for e in self.exercises if e.check == (cell.raw_cell or "").strip()]
        return same[0] if same else None

    def show(self, *, update: bool = False) -> None:
        """Display the panel or, with ``update``, refresh the one on display."""
        done = [e for e in self.exercises if self.passed.get(e.name)]
        count = (
            f"{len(done)} of {len(self.exercises)} exercises done, {sum(e.points for e in done):g} of "
            f"{_points(sum(e.points for e in self.exercises))} on the visible checks"
        )
        rows, lines = "", []
        for exercise in self.exercises:
            mark, state = _STATES[self.passed.get(exercise.name)]
            rows += (
                f"<tr><td style='text-align: left'><span aria-hidden='true'>{mark}</span> {state}</td>"
                f"<th scope='row' style='text-align: left; font-weight: normal'>{_link(exercise)}</th>"
                f"<td>{exercise.points:g}</td></tr>"
            )
            lines.append(f"  {mark} {state}: {exercise.title} ({_points(exercise.points)})")
        marks = "".join(_STATES[self.passed.get(e.name)][0] for e in self.exercises)
        after, after_text = _next(self.exercises, self.passed)
        about = f"Hidden tests decide the grade. Saved in {self.file.name} on this machine and sent nowhere."
        _display(
            "<div role='region' aria-label='Your progress'><details><summary>"
            f"<span aria-hidden='true'>{marks}</span> {count}</summary>"
            "<table><thead><tr><th scope='col' style='text-align: left'>State</th>"
            "<th scope='col' style='text-align: left'>Exercise</th>"
            f"<th scope='col'>Points</th></tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{html.escape(about)}</p></details>"
            f"<p>{after}</p>" + (f"<p>{html.escape(self.trouble)}</p>" if self.trouble else "") + "</div>",
            "\n".join([f"{marks} {count}", *lines, after_text, *filter(None, [self.trouble])]),
            display_id=_DISPLAY_ID,
            update=update,
        )


def _passed(result: Any) -> bool | None:
    """Whether a check cell passed; None if its rubric says that nothing has been tried yet."""
    rubric = result.result
    if not result.success or not hasattr(rubric, "worth"):
        return bool(result.success)
    if all(line.met == "not tried yet" for line in rubric.lines):
        return None
    return bool(rubric.points == rubric.worth)


def _next(exercises: list[Exercise], passed: Mapping[str, bool]) -> tuple[str, str]:
    """What to do next, as HTML and as text."""
    for exercise in exercises:
        if not passed.get(exercise.name):
            points = _points(exercise.points)
            return f"Next: {_link(exercise)} ({points})", f"Next: {exercise.title} ({points})"
    again = "Runtime ▸ Restart session and run all" if on_colab() else "Validate, in the toolbar,"
    text = f"All visible checks pass. {again} runs them once more from a fresh start."
    return text, text


def _link(exercise: Exercise) -> str:
    title = html.escape(exercise.title)
    return f"<a href='{exercise.link}'>{title}</a>" if exercise.link else title


def _points(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"


def _display(markup: str, text: str, **options: Any) -> None:
    from IPython.display import display

    display({"text/html": markup, "text/plain": text}, raw=True, **options)  # type: ignore[no-untyped-call]
