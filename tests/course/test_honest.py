"""Honest notebooks, each odd in another way: the grader says of every exercise what a kernel says of it.

Each runs from top to bottom in a real kernel, where a test cell passes or shows an error, and in a class that is
graded. What fails for a reason outside of the student's code is for a person to look at.
"""

from __future__ import annotations

import copy
import html
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from hand_made import check_of, write

from autograder import project
from autograder.authoring import build
from autograder.authoring.colab import first_cells
from autograder.authoring.kernel import execution
from autograder.grading import program, source, submission
from autograder.grading.marks import Result, State
from autograder.inside.limits import Limits
from autograder.project import notebook_path
from autograder.records import grade
from autograder.records.folder import ClassFolder
from course_utils.testing import comparing

pytestmark = [pytest.mark.sandboxed, pytest.mark.xdist_group("honest")]

LECTURE = """
# %%
import math

import torch

from course_utils.testing import check

# %%
offset = 10
sizes = [3, 4]


def scaled(x):
    return offset * x


# %%
sizes.append(5)
EXERCISE double return 2 * x
# %%
offset = 20
EXERCISE shift return x + offset
# %%
shown = [scaled(size) for size in sizes]
len(shown)
EXERCISE root return math.sqrt(x)
# %%
last = shown[-1]
"""
EXERCISE = """
# %% nbgrader={{"grade": false, "grade_id": "{name}", "locked": false, "schema_version": 3, "solution": true}}
def {name}(x):
    ### BEGIN SOLUTION
    {answer}
    ### END SOLUTION


# %% nbgrader={{"grade": true, "grade_id": "test_{name}", "locked": true, "schema_version": 3, \
"solution": false}}
check("{name}")

"""
# The points of each exercise, its visible cases, and those of the class.
CASES: dict[str, tuple[float, dict[int, float], dict[int, float]]] = {
    "double": (1, {3: 6}, {5: 10}),
    "shift": (2, {3: 23}, {5: 25}),
    "root": (4, {9: 3.0}, {16: 4.0}),
}
WORTH = {name: points for name, (points, *_) in CASES.items()}


def lecture_text() -> str:
    text = LECTURE.lstrip()
    for line in LECTURE.splitlines():
        if line.startswith("EXERCISE"):
            _, name, answer = line.split(" ", 2)
            text = text.replace(line, EXERCISE.format(name=name, answer=answer))
    return text


class Notebook:
    """The lecture as a student got it, with right answers, to be changed."""

    def __init__(self, lecture: source.Lecture) -> None:
        self.content: Any = json.loads(json.dumps(lecture.notebook))
        for exercise in lecture.exercises:
            self[exercise.name]["source"] = exercise.solution.replace("    ### BEGIN SOLUTION\n", "").replace(
                "\n    ### END SOLUTION", ""
            )
            self[f"test_{exercise.name}"]["source"] = exercise.tests

    @property
    def cells(self) -> list[Any]:
        return self.content["cells"]

    def __getitem__(self, which: str) -> Any:
        """The cell with this grade_id, or the first one whose text has this in it."""
        named = [c for c in self.cells if c["metadata"].get("nbgrader", {}).get("grade_id") == which]
        return (named or [cell for cell in self.cells if which in cell["source"]])[0]

    def place(self, which: str) -> int:
        return next(place for place, cell in enumerate(self.cells) if cell is self[which])

    def write(self, which: str, text: str) -> None:
        self[which]["source"] = text

    def add(self, text: str, *, before: str = "", after: str = "", kind: str = "code") -> Any:
        """A cell of the student's own; at the end, where no place is given."""
        made = dict(nbformat.v4.new_code_cell(text) if kind == "code" else nbformat.v4.new_markdown_cell(text))
        made["metadata"] = {}
        place = self.place(before) if before else self.place(after) + 1 if after else len(self.cells)
        self.cells.insert(place, made)
        return made

    def shows(self, exercise: str, points: str | list[str]) -> None:
        """The check's saved output."""
        data = {"text/plain": points}
        result = {"output_type": "execute_result", "execution_count": 3, "metadata": {}, "data": data}
        self[f"test_{exercise}"].update(outputs=[result], execution_count=3)

    def move(self, which: str, *, before: str = "", after: str = "") -> None:
        cell = self.cells.pop(self.place(which))
        self.cells.insert(self.place(before) if before else self.place(after) + 1, cell)


@dataclass(frozen=True)
class Case:
    change: Callable[[Notebook], object]
    fails: tuple[str, ...]  # in the grader
    in_kernel: tuple[str, ...]
    review: str  # part of what the instructor is told; "" where nobody need look
    bytes: Callable[[str], bytes]


CORPUS: dict[str, Case] = {}


def honest(
    *fails: str,
    in_kernel: tuple[str, ...] | None = None,
    review: str = "",
    bytes: Callable[[str], bytes] = str.encode,
) -> Callable[[Callable[[Notebook], object]], Callable[[Notebook], object]]:
    """Register a way to change the notebook. ``in_kernel`` has what fails there, if that's not what the grader says."""

    def register(change: Callable[[Notebook], object]) -> Callable[[Notebook], object]:
        CORPUS[change.__name__] = Case(change, fails, fails if in_kernel is None else in_kernel, review, bytes)
        return change

    return register


# Cells of the student's own.


@honest()
def nothing_odd(n: Notebook) -> None:
    pass


@honest()
def a_helper_before_the_answer(n: Notebook) -> None:
    n.add("def twice(x):\n    return 2 * x", before="double")
    n.write("double", "def double(x):\n    return twice(x)")


@honest()
def a_helper_between_answer_and_tests(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return twice(x)")
    n.add("def twice(x):\n    return 2 * x", after="double")


@honest(
    "double", review="it uses `twice`, which the cell that begins with `def twice(x):` defines, and that cell comes"
)
def a_helper_below_the_tests(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return twice(x)")
    n.add("def twice(x):\n    return 2 * x", after="test_double")


@honest()
def a_helper_at_the_top(n: Notebook) -> None:
    n.add("def root_of(x):\n    return x**0.5", before="import math")
    n.write("root", "def root(x):\n    return root_of(x)")


@honest()
def a_helper_in_another_exercises_cell(n: Notebook) -> None:
    n.write("double", n["double"]["source"] + "\n\n\ndef root_of(x):\n    return x**0.5")
    n.write("root", "def root(x):\n    return root_of(x)")


@honest()
def a_helper_that_uses_a_helper(n: Notebook) -> None:
    n.add("def one():\n    return 1", before="double")
    n.add("def twice(x):\n    return (one() + one()) * x", before="double")
    n.write("double", "def double(x):\n    return twice(x)")


@honest()
def an_answer_that_uses_another_answer(n: Notebook) -> None:
    n.write("shift", "def shift(x):\n    return double(x) - x + offset")


@honest()
def an_import_in_a_cell_of_its_own(n: Notebook) -> None:
    n.add("import functools\nfrom operator import mul", before="double")
    n.write("double", "def double(x):\n    return functools.reduce(mul, [2, x])")


@honest()
def an_import_in_the_first_cell(n: Notebook) -> None:
    n.write("import math", n["import math"]["source"] + "\nimport cmath")
    n.write("root", "def root(x):\n    return cmath.sqrt(x).real")


@honest()
def an_import_under_another_name(n: Notebook) -> None:
    n.add("import numpy as np", before="root")
    n.write("root", "def root(x):\n    return float(np.sqrt(x))")


# In a kernel no check can be run then: the first cell imports it.
@honest(
    "root",
    in_kernel=("double", "shift", "root"),
    review="it uses `math`, which is defined by a cell of the lecture that is not in this notebook",
)
def the_first_cell_was_lost(n: Notebook) -> None:
    n.cells.pop(n.place("import math"))


@honest()
def a_lecture_cell_that_was_changed(n: Notebook) -> None:
    n.write("shown = [", "shown = [scaled(size) for size in sizes[:2]]\nprint(shown)")


@honest("shift")
def a_lecture_cell_that_was_changed_for_the_worse(n: Notebook) -> None:
    n.write("offset = 20", "offset = 21")


@honest()
def an_answer_that_uses_a_lecture_cell_in_its_latest_state(n: Notebook) -> None:
    n.write("root", "def root(x):\n    return x**0.5 + offset - 20 + scaled(1) - 20")


@honest()
def an_answer_that_uses_what_an_earlier_cell_had_defined(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return scaled(x) * 2 // 10")


@honest()
def an_answer_that_uses_what_a_cell_far_above_computed_from_others(n: Notebook) -> None:
    n.write("root", "def root(x):\n    return x**0.5 + shown[0] - scaled(sizes[0])")


@honest()
def an_answer_that_uses_what_a_later_cell_changed(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return len(sizes) * x - x")


@honest("double", review="it uses the lecture's `sizes`, and so does the cell that begins with `shown = [")
def an_answer_that_counts_wrong(n: Notebook) -> None:
    n.move("shown = [", before="double")
    n.write("double", "def double(x):\n    return len(sizes) * x")


@honest()
def a_class_that_takes_a_lectures_name_for_its_own(n: Notebook) -> None:
    n.write("root", "class Config:\n    shown = shown\n\n\ndef root(x):\n    return x**0.5 + len(Config.shown) - 3")


# No name in the code asks for the lecture's cell.


@honest()
def a_lectures_name_in_a_text(n: Notebook) -> None:
    n.write("root", "three = len(eval('shown'))\n\n\ndef root(x):\n    return x**0.5 + three - 3")


@honest()
def a_lectures_name_in_pieces(n: Notebook) -> None:
    n.write("root", "def root(x):\n    return eval('x**0.5 + len({}) - 3'.format('sho' + 'wn'))")


@honest()
def a_lectures_names_from_the_main_module_and_among_the_globals(n: Notebook) -> None:
    n.write("double", "from __main__ import offset as ten\n\n\ndef double(x):\n    return 2 * x + ten - 10")
    n.write("root", "def root(x):\n    return x**0.5 + len(globals()['shown']) - 3")


@honest()
def a_lectures_name_in_a_shell_command(n: Notebook) -> None:
    n.write("root", "said = !echo {shown[0]}\n\n\ndef root(x):\n    return x**0.5 + int(said[0]) - 60")


@honest()
def what_a_cell_of_the_lecture_displayed(n: Notebook) -> None:
    n.write("root", "three = _\n\n\ndef root(x):\n    return x**0.5 + three - 3")


@honest("root")
def a_wrong_answer_that_asks_whether_it_is_the_main_module(n: Notebook) -> None:
    n.write("root", "def root(x):\n    return x  # shown\n\n\nif __name__ == '__main__':\n    print(root(4))")


@honest()
def a_cell_that_draws(n: Notebook) -> None:
    n.add("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", before="double")


@honest()
def a_scratch_cell_that_fails(n: Notebook) -> None:
    n.add("double(1 / 0)", after="double")


@honest()
def a_scratch_cell_that_is_not_python(n: Notebook) -> None:
    n.add("double(3) = ?? todo", after="double")


@honest()
def notes_in_markdown(n: Notebook) -> None:
    n.add("Two times $x$: `2 * x`", after="double", kind="markdown")


@honest()
def an_empty_cell(n: Notebook) -> None:
    n.add("", after="double")
    n.add("  \n", after="root")


@honest("root", review="it uses `data`, which the cell that begins with `data = open(")
def a_helper_reads_a_file_that_was_not_handed_in(n: Notebook) -> None:
    n.add("data = open('my-own-notes.txt').read()", before="root")
    n.write("root", "def root(x):\n    return x**0.5 + 0 * len(data)")


@honest("root", review="stopped here with ModuleNotFoundError")
def a_package_that_is_not_here(n: Notebook) -> None:
    n.write("root", "import a_package_of_my_own\n\n\ndef root(x):\n    return a_package_of_my_own.sqrt(x)")


@honest("root", review="here it ended with ModuleNotFoundError")
def a_package_that_is_not_here_in_a_function(n: Notebook) -> None:
    n.write("root", "def root(x):\n    import a_package_of_my_own\n    return a_package_of_my_own.sqrt(x)")


@honest()
def ordinary_tools_that_no_person_need_read_about(n: Notebook) -> None:
    n.add(
        "import gc, importlib, os, pickle, resource, socket, subprocess, sys\nsys.path.insert(0, '.')", before="double"
    )
    n.add("%%writefile its_own.py\nfactor = 3", before="double")
    n.add("import its_own", before="double")
    n.add("%%writefile its_own.py\nfactor = 2  # now right", before="double")
    n.add("importlib.reload(its_own)\nos.environ['FACTOR'] = str(its_own.factor)\ngc.collect()", before="double")
    n.add("print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, socket.gethostname())", before="double")
    n.add("signal = torch.ones(3)\nprint(signal.sum(), os.environ.get('HOME'))  # a signal", before="double")
    asked = "factor = int(subprocess.check_output(['echo', os.environ['FACTOR']]))\n"
    n.write("double", asked + "\n\ndef double(x):\n    return pickle.loads(pickle.dumps(factor)) * x")


@honest()
def processes_of_its_own(n: Notebook) -> None:
    pool = "import multiprocessing\n\n\ndef twice(x):\n    return 2 * x\n\n\n"
    pool += "with multiprocessing.get_context('fork').Pool(2) as pool:\n    pairs = pool.map(twice, range(9))\n\n\n"
    n.write("double", pool + "def double(x):\n    return pairs[x]")


@honest()
def output_that_goes_to_a_file_as_well(n: Notebook) -> None:
    tee = "import sys\n\n\nclass Tee:\n    said = ''\n\n    def write(self, text):\n        self.said += text\n\n"
    n.add(tee + "    def flush(self): ...\n\n\nscreen, sys.stdout = sys.stdout, Tee()", before="double")
    n.add("print('twice')", before="double")
    n.write(
        "double", "said, sys.stdout = sys.stdout.said, screen\n\n\ndef double(x):\n    return 2 * x * ('twice' in said)"
    )


# Wrong answers, in notebooks without outputs: what else is in them is no reason to look.


@honest("double", "root")
def assertions_that_test_ones_own_functions(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 3 * x\n\n\nassert double(3) == 6, 'no'")
    n.add("torch.testing.assert_close(torch.tensor(double(3)), torch.tensor(6))", after="double")
    n.add("def twice(x):\n    return root(x) + root(x)\n\n\nassert twice(9) == 6", after="root")
    n.write("root", "def root(x):\n    return x / 2")


@honest("double", review="stopped here with AssertionError")
def an_assertion_about_the_machine(n: Notebook) -> None:
    n.add("import os\nassert os.cpu_count() > 4096\ntwice = 2", before="double")
    n.write("double", "def double(x):\n    return twice * x")


@honest("double")
def cells_that_only_call_a_wrong_answer_or_have_nothing_to_do_with_it(n: Notebook) -> None:
    n.write("double", "import own_module\n\n\ndef double(x):\n    return own_module.factor * x")
    n.add("%%writefile own_module.py\nfactor = 3", before="double")
    n.add("import os\nprint(os.environ.get('HOME'), os.listdir('.'), open('own_module.py').read())", before="double")
    n.add("try:\n    import seaborn\nexcept ImportError:\n    seaborn = None", before="double")
    n.add("double('a', 3)", after="double")


@honest("double")
def a_wrong_answer_that_evaluates_a_text(n: Notebook) -> None:
    n.write("double", "def double(x):\n    shown = eval('1 + 2')\n    return shown * x  # offset")


@honest("double")
def a_helper_below_an_error_that_the_notebook_shows(n: Notebook) -> None:
    stopped = n.add("torch.zeros(2, 3).view(4)\ntwice = 2", before="double")
    stopped["outputs"] = [{"output_type": "error", "ename": "RuntimeError", "evalue": "shape", "traceback": []}]
    n.write("double", "def double(x):\n    return twice * x")


# What IPython understands.


@honest()
def a_line_magic_in_an_answer(n: Notebook) -> None:
    n.write("double", "%config InlineBackend.figure_format = 'svg'\n" + n["double"]["source"])


@honest()
def timeit_below_an_answer(n: Notebook) -> None:
    n.write("double", n["double"]["source"] + "\n\n\n%timeit double(3)\n%timeit double(4)\n%timeit -n 10 double(5)")


@honest()
def time_before_a_statement(n: Notebook) -> None:
    n.write("double", n["double"]["source"] + "\n\n\n%time nine = double(4) + 1")


@honest()
def a_cell_magic_over_an_answer(n: Notebook) -> None:
    n.write("double", "%%time\n" + n["double"]["source"])


@honest()
def a_cell_magic_over_a_helper(n: Notebook) -> None:
    n.add("%%time\ndef twice(x):\n    return scaled(x) / 5", before="double")
    n.write("double", "def double(x):\n    return twice(x)")


@honest()
def captured_output(n: Notebook) -> None:
    n.write("double", "%%capture\n" + n["double"]["source"] + "\nprint(double(1))")


@honest("double", review="should define `double`, which is missing")
def an_answer_that_only_timeit_runs(n: Notebook) -> None:
    n.write("double", "%%timeit -n 1 -r 1\n" + n["double"]["source"])


@honest()
def matplotlib_inline(n: Notebook) -> None:
    n.add("%matplotlib inline\nimport matplotlib.pyplot as plt", before="import math")


@honest()
def autoreload(n: Notebook) -> None:
    n.add("%load_ext autoreload\n%autoreload 2", before="import math")


@honest()
def a_shell_command(n: Notebook) -> None:
    n.write("double", "!ls\n" + n["double"]["source"] + "\n!no-such-command --at-all")


@honest()
def a_magic_without_its_percent_sign(n: Notebook) -> None:
    n.add("pwd", before="double")
    n.add("folder = _", before="double")
    n.write("double", "def double(x):\n    return 2 * x if isinstance(folder, str) else 0")


@honest()
def what_a_shell_command_said(n: Notebook) -> None:
    n.add("said = !echo 2", before="double")
    n.write("double", "def double(x):\n    return int(said[0]) * x")


@honest()
def a_loader_with_a_worker(n: Notebook) -> None:
    loader = "from torch.utils.data import DataLoader\n[batch] = DataLoader(torch.arange(3), 3, num_workers=1)"
    n.add(loader, before="double")
    n.write("double", "def double(x):\n    return int(batch[2]) * x")


@honest()
def pip_in_a_cell(n: Notebook) -> None:
    n.add("%pip --version", before="import math")


@honest()
def a_module_that_the_notebook_writes(n: Notebook) -> None:
    n.add("%%writefile twice_as_much.py\nfactor = 2", before="double")
    n.write("double", "import twice_as_much\n\n\ndef double(x):\n    return twice_as_much.factor * x")


@honest()
def a_script_in_another_language(n: Notebook) -> None:
    n.add("%%bash\necho $HOME", before="double")


@honest()
def magics_for_a_screen_in_an_answer(n: Notebook) -> None:
    n.write("double", "%autosave 60\n%clear\n%connect_info\n%store -r\n" + n["double"]["source"])


@honest("double", review="stored by an earlier kernel are not available")
def a_helper_from_an_earlier_session(n: Notebook) -> None:
    n.add("%store -r helper", before="double")
    n.write("double", "def double(x):\n    return helper(x)")


@honest("double", review="stored by an earlier kernel are not available")
def whatever_an_earlier_session_stored(n: Notebook) -> None:
    n.add("%store -r", before="double")
    n.write("double", "def double(x):\n    return helper(x)")


@honest("double", review="stopped here with ModuleNotFoundError")
def names_that_no_text_tells_from_a_file_that_is_not_here(n: Notebook) -> None:
    n.add("from my_helpers import *", before="double")
    n.write("double", "def double(x):\n    return twice(x)")


@honest("double", review="stopped here with FileNotFoundError")
def a_table_that_a_cell_would_have_filled_from_a_file(n: Notebook) -> None:
    n.add("TABLE = {}", before="double")
    n.add("import json\nTABLE.update(json.load(open('table.json')))", before="double")
    n.write("double", "def double(x):\n    return TABLE[str(x)]")


@honest("double", review="it may work on the student's machine")
def a_file_that_is_not_here_in_a_call(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return torch.load('mask.pt') * x")


@honest("double", review="stopped here with AssertionError")
def an_assertion_about_a_function_that_asks_the_machine(n: Notebook) -> None:
    n.add("import os\ndef workers():\n    return os.cpu_count()\n\nassert workers() > 4096\ntwice = 2", before="double")
    n.write("double", "def double(x):\n    return twice * x")


@honest("double", review="stopped here with NameError")
def a_result_that_ipython_numbers_differently(n: Notebook) -> None:
    n.add("twice = _999", before="double")
    n.write("double", "def double(x):\n    return twice * x")


@honest()
def a_lectures_name_that_is_changed_only_on_some_machines(n: Notebook) -> None:
    n.add("if torch.cuda.is_available():\n    offset = 5", before="double")
    n.add("def never():\n    global offset\n    offset = 0", before="double")
    n.write("double", "def double(x):\n    return 2 * x + 0 * offset")


@honest()
def names_in_a_cell_with_two_kinds_of_magics(n: Notebook) -> None:
    n.add("%%capture\n!echo installed\nfactor = len(sizes) * 0 + 2", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest()
def a_check_of_ones_own_after_a_helper_was_changed(n: Notebook) -> None:
    n.add("def twice(x):\n    return 2 * x", before="double")
    n.write("double", "def double(x):\n    return twice(x)")
    n.add("def twice(x):\n    return 0", after="test_double")
    n.add('check("double")', after="def twice(x):\n    return 0")


@honest()
def a_module_that_is_written_twice_within_a_second(n: Notebook) -> None:
    n.add("%%writefile helper.py\nfactor = 1", before="double")
    n.add("import helper", before="double")
    n.add("%%writefile helper.py\nfactor = 2", before="double")
    n.add("import importlib\nimportlib.reload(helper)", before="double")
    n.write("double", "def double(x):\n    return helper.factor * x")


@honest()
def a_task_that_takes_several_turns_of_the_loop(n: Notebook) -> None:
    text = "import asyncio\n\nasync def later():\n    global factor\n    for _ in range(3):\n        "
    n.add(text + "await asyncio.sleep(0)\n    factor = 2\n\ntask = asyncio.create_task(later())", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest()
def a_profile_of_a_cells_names(n: Notebook) -> None:
    n.add("%prun -q -s cumtime factor = len(sizes) * 0 + 2", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest()
def a_program_in_python(n: Notebook) -> None:
    n.add("two = !python -c 'print(2)'\nfactor = int(two[0])", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest("double", review="which the cell that begins with `factor = 2` should define")
def a_name_that_another_cell_takes_away(n: Notebook) -> None:
    n.add("factor = 2", before="double")
    n.add("import psutil\nglobals().pop('factor') if torch.cuda.device_count() == 0 else None", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest("double", review="may depend on something that is missing here")
def a_table_that_may_be_there(n: Notebook) -> None:
    n.add("TABLE = [3]\ntry:\n    TABLE = torch.load('table.pt')\nexcept Exception:\n    pass", before="double")
    n.write("double", "def double(x):\n    return TABLE[0] * x")


@honest("double", review="has no attribute")
def a_function_of_another_version(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return math.of_the_future(2, x)")


@honest("double", review="stopped here with SyntaxError")
def an_answer_in_a_newer_python(n: Notebook) -> None:
    n.write("double", 'def double(x):\n    names = {"a": 2}\n    print(f"{names["a"]} times")\n    return 2 * x')


@honest("double", in_kernel=(), review="here it ended with NameError")
def a_name_that_only_hidden_inputs_need(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 * x if x < 4 else from_a_startup_file * x")


@honest("double", review="that cell stopped with IndexError")
def the_first_of_the_files_that_are_not_here(n: Notebook) -> None:
    n.add("from pathlib import Path\n\nTABLE = {}\nTABLE.update(path=list(Path().glob('*.csv'))[0])", before="double")
    n.write("double", "def double(x):\n    return TABLE['path'] and 2 * x")


@honest("double", review="stopped here with AssertionError")
def an_answer_that_insists_on_a_gpu(n: Notebook) -> None:
    n.write("double", "assert torch.cuda.is_available()\n" + n["double"]["source"])


@honest("double", review="stopped here with ExceptionGroup")
def errors_in_a_group(n: Notebook) -> None:
    n.add("TABLE = {}", before="double")
    n.add("raise ExceptionGroup('mirrors', [OSError('no network')])\nTABLE[3] = 6", before="double")
    n.write("double", "def double(x):\n    return TABLE[x]")


@honest("double")
def a_cell_that_stopped_for_the_student_too(n: Notebook) -> None:
    stopped = n.add("torch.zeros(2, 3).view(4)", before="double")
    stopped["outputs"] = [{"output_type": "error", "ename": "RuntimeError", "evalue": "shape", "traceback": []}]
    n.write("double", "def double(x):\n    return 3 * x")


@honest("double", review="imports `pandas_of_the_future`, which isn't installed here")
def a_package_that_is_missed_without_an_error(n: Notebook) -> None:
    n.add("try:\n    import pandas_of_the_future as pd\nexcept ImportError:\n    pd = None", before="double")
    n.write("double", "def double(x):\n    return pd.Series([x, x]).sum()")


@honest("double", review="should define `double`, which is missing")
def an_answer_for_one_system_only(n: Notebook) -> None:
    n.write("double", "import sys\n\nif sys.platform == 'plan9':\n\n    def double(x):\n        return 2 * x")


@honest("double", review="its check shows 1 points in the notebook, but the same cases earn 0 here")
def a_check_that_passed_where_it_was_run(n: Notebook) -> None:
    n.write("double", "import os\n\n\ndef double(x):\n    return 2 * x if os.environ.get('HOSTNAME_OF_MINE') else x")
    n.shows("double", "1.0")


# In a notebook whose check has passed, a call that only the grader makes fails, for a reason outside of the code.


@honest("double", in_kernel=(), review="here it ended with FileNotFoundError")
def a_file_that_only_a_hidden_case_needs(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 * x if x < 4 else int(open(f'{x}.txt').read())")
    n.shows("double", "1.0")


@honest("double", in_kernel=(), review="here it ended with MemoryError")
def memory_that_only_a_hidden_case_needs(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 * x if x < 4 else len(bytearray(2**44))")
    n.shows("double", "1.0")


@honest("double", in_kernel=(), review="what it returned cannot be sent to the grader")
def a_result_that_cannot_be_sent_in_a_hidden_case_only(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 * x if x < 4 else x ** 9999")
    n.shows("double", "1.0")


@honest("double", in_kernel=())
def an_answer_that_is_wrong_in_a_hidden_case_only(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 * x if x < 4 else 0")
    n.shows("double", "1.0")


@honest("double")
def a_check_that_failed_where_it_was_run(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return torch.load('mask.pt') * x")
    n.shows("double", ["0.0"])


@honest("double", review="uses `exists`, and may depend on something that is missing here")
def a_file_that_is_missed_without_an_error(n: Notebook) -> None:
    n.add("from pathlib import Path\n\nfactor = 2 if Path('x.txt').exists() else 1", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest("double", review="uses `getenv`, and may depend on something that is missing here")
def a_variable_that_is_missed_without_an_error(n: Notebook) -> None:
    n.write("double", "import os\n\n\ndef double(x):\n    return int(os.getenv('FACTOR', '1')) * x")


@honest("root", in_kernel=(), review="uses the student's `scaled`, but did not run")
def a_count_of_what_the_lecture_calls(n: Notebook) -> None:
    n.add("calls = []\n\n\ndef scaled(x):\n    calls.append(x)\n    return 10 * x", before="shown = [")
    n.write("root", "def root(x):\n    return x**0.5 + len(calls) - 3")


@honest("double")
def a_slip_in_a_cell_of_the_students_own(n: Notebook) -> None:
    n.add("print(undefined_thing)", before="double")
    n.write("double", "def double(x):\n    return 3 * x")


@honest()
def something_that_is_done_after_each_cell(n: Notebook) -> None:
    n.add(
        "ran = []\nget_ipython().events.register('post_run_cell', lambda result: ran.append(result))", before="double"
    )
    n.add("pass", before="double")
    n.write("double", "def double(x):\n    return 2 * x if ran and ran[0].success else x")


@honest("double", review="it may work on the student's machine")
def another_kind_of_gpu(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return int(torch.tensor(2 * x).to('mps'))")


@honest("double", in_kernel=(), review="it may work on the student's machine; here it ended with BlockingIOError")
def more_processes_than_there_may_be_here(n: Notebook) -> None:
    n.write(
        "double",
        "import subprocess\n\n\ndef double(x):\n    those = [subprocess.Popen(['sleep', '60']) for _ in range(80)]\n"
        "    for each in those:\n        each.kill()\n        each.wait()\n    return 2 * x",
    )


@honest("double", review="it may work on the student's machine")
def more_memory_than_there_is_here(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return torch.zeros(2**44).sum()")


@honest()
def the_shell_by_its_other_name(n: Notebook) -> None:
    text = "from IPython import get_ipython as shell\nshell().run_line_magic('time', 'pass')\n"
    text += "shown = display('x', display_id=True)\nshown.update('y')\n"
    text += "from IPython.utils.capture import capture_output\nwith capture_output() as caught:\n    display(1)\n"
    n.write("double", text + "assert caught.outputs\n" + n["double"]["source"])


@honest()
def what_the_last_cells_were_and_said(n: Notebook) -> None:
    n.add("6 * 7", before="double")
    n.write("double", "assert _ == 42 and '6 * 7' in _i and Out[max(Out)] == 42\n" + n["double"]["source"])


@honest()
def output_that_is_closed(n: Notebook) -> None:
    n.write("double", n["double"]["source"] + "\nimport sys\nwith sys.stdout as out:\n    out.write('x')")


@honest()
def an_error_that_cannot_be_printed(n: Notebook) -> None:
    n.add("class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd", before="double")


@honest()
def another_folder(n: Notebook) -> None:
    n.write("double", "%cd -q /tmp\n" + n["double"]["source"])


@honest()
def a_cell_that_is_timed_ten_times(n: Notebook) -> None:
    n.add("%%timeit -n 10 -r 3\nx = 1", before="double")
    n.write("double", n["double"]["source"] + "\n%timeit -r 3 -n10 double(2)")


@honest()
def a_question_whether_this_is_a_notebook(n: Notebook) -> None:
    asked = "shell = get_ipython()\nassert 'IPKernelApp' in shell.config\n"
    asked += "assert type(shell).__name__ == 'ZMQInteractiveShell'\n"
    n.write("double", asked + n["double"]["source"])


@honest()
def a_progress_bar(n: Notebook) -> None:
    n.add("from tqdm.auto import tqdm\nfor _ in tqdm(range(3)):\n    pass", before="double")
    n.write("double", "def double(x):\n    return sum(x for _ in tqdm(range(2)))")


@honest()
def output_as_a_file(n: Notebook) -> None:
    text = "import subprocess, sys\nassert sys.stdout.encoding.lower() == 'utf-8'\n"
    n.write("double", text + "subprocess.run(['ls'], stdout=sys.stdout, check=True)\n" + n["double"]["source"])


@honest()
def output_as_a_file_in_a_call(n: Notebook) -> None:
    n.write(
        "double", "import sys\n\n\ndef double(x):\n    return 2 * x if sys.stdout.encoding and sys.stdout.name else 0"
    )


@honest()
def a_magic_that_does_not_exist(n: Notebook) -> None:
    n.add("%no_such_magic at all", before="double")


@honest()
def help_on_an_answer(n: Notebook) -> None:
    n.write("double", n["double"]["source"] + "\n\n\ndouble?\n")
    n.add("?math.sqrt", after="double")
    n.add("double??", after="test_double")


@honest()
def await_at_the_top(n: Notebook) -> None:
    n.write("double", "import asyncio\n\nawait asyncio.sleep(0)\n" + n["double"]["source"])


@honest()
def await_that_gives_a_value(n: Notebook) -> None:
    n.add("async def two():\n    return 2\n\n\nfactor = await two()", before="double")
    n.write("double", "def double(x):\n    return factor * x")


@honest()
def a_task_that_goes_on_between_cells(n: Notebook) -> None:
    n.add(
        "import asyncio\n\nfactors = []\n\n\nasync def fill():\n    factors.append(2)\n\n\n"
        "task = asyncio.create_task(fill())",
        before="double",
    )
    n.add("await task", before="double")
    n.write("double", "def double(x):\n    return factors[0] * x")


@honest("double")
def asyncio_run_inside_the_running_loop(n: Notebook) -> None:
    n.write(
        "double",
        "import asyncio\n\nasync def two():\n    return 2\n\n\ndef double(x):\n    return asyncio.run(two()) * x",
    )


@honest()
def display_above_and_inside_an_answer(n: Notebook) -> None:
    n.write("double", "display('double')\n\n\ndef double(x):\n    display(x)\n    return 2 * x")


@honest()
def an_imported_display(n: Notebook) -> None:
    n.add(
        "from IPython.display import HTML, Markdown, clear_output, display\n\ndisplay(HTML('<b>2</b>'))",
        before="double",
    )
    n.write("double", "def double(x):\n    clear_output()\n    display(Markdown('two'))\n    return 2 * x")


@honest()
def get_ipython_in_an_answer(n: Notebook) -> None:
    n.write("double", "shell = get_ipython()\nshell.run_line_magic('time', 'pass')\n" + n["double"]["source"])


@honest()
def a_setting_of_matplotlib_through_ipython(n: Notebook) -> None:
    n.add(
        "from matplotlib_inline.backend_inline import set_matplotlib_formats\nset_matplotlib_formats('svg')",
        before="double",
    )


@honest()
def the_last_result(n: Notebook) -> None:
    n.add("1 + 1", before="double")
    n.add("factor = _", before="double")
    n.write("double", "def double(x):\n    return factor * x")


# Cells that moved, or lost something.


@honest()
def an_answer_split_in_two(n: Notebook) -> None:
    n.add("def twice(x):\n    return 2 * x", before="double")
    n.write("double", "double = twice")


@honest(review="the cell double occurs 2 times")
def an_answer_and_its_copy(n: Notebook) -> None:
    wrong = copy.deepcopy(n["double"]) | {"id": "copy"}
    wrong["source"] = "def double(x):\n    return 3 * x"
    n.cells.insert(n.place("double"), wrong)


@honest("double", review="the cell double occurs 2 times")
def a_copy_that_is_wrong_comes_last(n: Notebook) -> None:
    wrong = copy.deepcopy(n["double"]) | {"id": "copy"}
    wrong["source"] = "def double(x):\n    return 3 * x"
    n.cells.insert(n.place("double") + 1, wrong)


@honest()
def an_answer_that_was_split_with_its_metadata(n: Notebook) -> None:
    """As *Split Cell* does it."""
    n.write("double", "def twice(x):\n    return 2 * x")
    n.cells.insert(n.place("double") + 1, copy.deepcopy(n["double"]) | {"id": "split", "source": "double = twice"})


@honest()
def an_answer_redefined_in_a_cell_of_its_own(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 3 * x")
    n.add("def double(x):\n    return 2 * x", after="double")


@honest()
def an_answer_redefined_below_its_tests(n: Notebook) -> None:
    n.add("def double(x):\n    return 3 * x", after="test_double")


@honest(review="the cell of exercise double is missing or has lost its metadata")
def an_answer_deleted_and_retyped(n: Notebook) -> None:
    text = n.cells.pop(n.place("double"))["source"]
    n.add(text, before="test_double")


@honest(review="the cell of exercise double is missing or has lost its metadata")
def an_answer_that_lost_its_mark(n: Notebook) -> None:
    n["double"]["metadata"] = {}


@honest(review="the cell my-double does not belong to")
def an_answer_that_was_renamed(n: Notebook) -> None:
    n["double"]["metadata"]["nbgrader"]["grade_id"] = "my-double"


@honest(review="the cell of exercise double is missing or has lost its metadata")
def a_notebook_whose_cells_all_lost_their_marks(n: Notebook) -> None:
    for cell in n.cells:
        cell["metadata"] = {}


@honest("double", review="the cell of exercise double is missing or has lost its metadata")
def an_answer_that_was_deleted(n: Notebook) -> None:
    n.cells.pop(n.place("double"))


@honest("double", review="the cell of exercise double is of type")
def an_answer_that_became_text(n: Notebook) -> None:
    n["double"]["cell_type"] = "raw"
    del n["double"]["outputs"], n["double"]["execution_count"]


@honest("double", review="it uses `double`, which the cell double defines, and that cell comes after its tests")
def an_answer_below_its_tests(n: Notebook) -> None:
    n.move("double", after="test_double")


@honest("double", review="defines `double` again, too late for its tests")
def a_better_version_below_the_tests(n: Notebook) -> None:
    n.add(n["double"]["source"], after="test_double")
    n.write("double", "def double(x):\n    return 3 * x")


@honest()
def exercises_in_another_order(n: Notebook) -> None:
    n.move("test_root", before="double")
    n.move("root", before="test_root")


@honest()
def a_lecture_cell_that_moved_down(n: Notebook) -> None:
    n.move("shown = [", after="test_root")


@honest()
def only_the_first_cell_and_the_exercises(n: Notebook) -> None:
    n.write("shift", "def shift(x):\n    return x + 20")
    n.content["cells"] = [c for c in n.cells if c["metadata"].get("nbgrader") or "import math" in c["source"]]


@honest(
    "double",
    in_kernel=(),
    review="it uses `twice`, which the cell test_double defines, and code in a test cell does not count",
)
def a_helper_in_a_test_cell(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return twice(x)")
    n.write("test_double", "def twice(x):\n    return 2 * x\n\n\n" + n["test_double"]["source"])


# Ways to write Python.


@honest()
def a_class_that_can_be_called(n: Notebook) -> None:
    n.write("double", "class Double:\n    def __call__(self, x):\n        return 2 * x\n\n\ndouble = Double()")


@honest()
def a_lambda(n: Notebook) -> None:
    n.write("double", "double = lambda x: 2 * x")


@honest()
def a_global_that_counts(n: Notebook) -> None:
    n.write("double", "calls = 0\n\n\ndef double(x):\n    global calls\n    calls += 1\n    return 2 * x")


@honest()
def a_cache(n: Notebook) -> None:
    n.write("double", "import functools\n\n\n@functools.cache\ndef double(x):\n    return 2 * x")


@honest()
def a_generator_inside(n: Notebook) -> None:
    n.write("double", "def parts(x):\n    yield x\n    yield x\n\n\ndef double(x):\n    return sum(parts(x))")


@honest()
def a_decorator_of_ones_own(n: Notebook) -> None:
    n.add("def logged(f):\n    def inner(x):\n        print(x)\n        return f(x)\n    return inner", before="double")
    n.write("double", "@logged\ndef double(x):\n    return 2 * x")


@honest()
def hints_of_names_that_come_later(n: Notebook) -> None:
    n.write(
        "double",
        "from __future__ import annotations\n\n\ndef double(x: Number) -> Number:\n    return 2 * x\n\n\n"
        "Number = int | float",
    )


@honest()
def a_dataclass_and_a_match(n: Notebook) -> None:
    n.write(
        "double",
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Two:\n    n: int = 2\n\n\ndef double(x):\n"
        "    match Two():\n        case Two(n=n):\n            return n * x",
    )


@honest()
def prints_and_warnings(n: Notebook) -> None:
    n.write(
        "double",
        "import warnings\n\nwarnings.warn('at the top')\n\n\ndef double(x):\n    print('x is', x)\n"
        "    warnings.warn('inside')\n    return 2 * x",
    )


@honest()
def source_of_ones_own_function(n: Notebook) -> None:
    n.write(
        "double",
        "import inspect\n\n\ndef double(x):\n    return 2 * x if 'inspect' in inspect.getsource(double) else 0",
    )


@honest("double", review="stopped here with StdinNotImplementedError")
def input_at_the_top(n: Notebook) -> None:
    n.write("double", "factor = int(input('factor? '))\n\n\ndef double(x):\n    return factor * x")


@honest("double", review="stopped here with StdinNotImplementedError")
def a_password_at_the_top(n: Notebook) -> None:
    n.write("double", "import getpass\n\ntoken = getpass.getpass('token: ')\n\n\n" + n["double"]["source"])


@honest()
def input_in_a_scratch_cell(n: Notebook) -> None:
    n.add("name = input('who are you? ')\nprint(name)", before="double")


@honest("double")
def an_answer_that_is_not_python(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return 2 x")


@honest("double")
def a_stub(n: Notebook) -> None:
    n.write("double", "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()")


@honest("double")
def a_name_that_no_cell_defines(n: Notebook) -> None:
    n.write("double", "def double(x):\n    return factor * x")


@honest()
def exit_at_the_end_of_an_answer(n: Notebook) -> None:
    n.write("double", "import sys\n\n\n" + n["double"]["source"] + "\n\n\nsys.exit()")


@honest()
def the_seed_and_the_default_type_changed(n: Notebook) -> None:
    n.add(
        "torch.manual_seed(7)\ntorch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)", before="double"
    )


@honest()
def an_answer_that_changes_settings_of_torch(n: Notebook) -> None:
    """In a notebook, each call of a check begins with the same settings."""
    double = n["double"]["source"].rstrip()
    changes = "    torch.set_grad_enabled(False)\n    torch.set_default_dtype(torch.float64)\n"
    n.write("double", double.replace("\n", "\n" + changes, 1))


# Files as editors write them.


@honest(bytes=lambda text: text.replace("\\n", "\\r\\n").replace("\n", "\r\n").encode())
def windows_ends_of_lines(n: Notebook) -> None:
    n.add("def twice(x):\n    return 2 * x", before="double")
    n.write("double", "def double(x):\n    return twice(x)")


@honest(bytes=lambda text: b"\xef\xbb\xbf" + text.encode())
def a_byte_order_mark(n: Notebook) -> None:
    n.write("shift", "def shift(x):\n    return x + offset  # größer")


@honest()
def colab(n: Notebook) -> None:
    n.cells[:0] = first_cells("01_small", "http://127.0.0.1:9/course.zip")  # nothing is fetched where graders run
    n.content["metadata"] |= {"colab": {"provenance": [], "toc_visible": True}, "accelerator": "GPU"}
    for number, cell in enumerate(n.cells):
        cell["metadata"] |= {"id": f"c{number}", "outputId": f"o{number}", "colab": {"base_uri": "https://localhost/"}}
        cell["source"] = cell["source"].splitlines(keepends=True)


@honest()
def vs_code(n: Notebook) -> None:
    n.content["metadata"]["language_info"] = {"name": "python", "version": "3.11.7", "mimetype": "text/x-python"}
    for cell in n.cells:
        cell["metadata"] |= {"vscode": {"languageId": "python"}}
        cell["source"] = [line + "\n" for line in cell["source"].split("\n")]


@honest()
def an_older_notebook_format(n: Notebook) -> None:
    n.content["nbformat_minor"] = 2
    for cell in n.cells:
        del cell["id"]


@honest()
def spaces_at_the_ends_of_lines(n: Notebook) -> None:
    for cell in n.cells:
        cell["source"] = cell["source"].replace("\n", "  \n") + "\n\n"


@honest()
def odd_spaces_at_the_end_of_a_comment(n: Notebook) -> None:
    n.cells[0]["source"] += "\n# \u00a0\u2028\u001f\x0c"


@honest("shift")
def a_no_break_space_behind_a_lectures_statement(n: Notebook) -> None:
    cell = next(cell for cell in n.cells if cell["source"] == "offset = 20")
    cell["source"] += "\u00a0"


@honest()
def outputs_and_counts_of_an_earlier_run(n: Notebook) -> None:
    for number, cell in enumerate(n.cells):
        if cell["cell_type"] == "code":
            cell["execution_count"] = 100 - number
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "done\n"}]


@dataclass(frozen=True)
class Class:
    folder: Path
    results: dict[str, Result]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Class]:
    """All of them, handed in and graded in one go."""
    root = tmp_path_factory.mktemp("honest")
    path = root / "01_small.py"
    path.write_text(lecture_text(), encoding="utf-8")
    write(root / "checks", *(check_of(name, points, shown) for name, (points, shown, _) in CASES.items()))
    write(root / "class" / "hidden", *(check_of(name, points, more) for name, (points, _, more) in CASES.items()))
    with pytest.MonkeyPatch.context() as patch:  # a failure in here leaves nothing patched for other tests
        patch.setattr(source, "CHECKS", root / "checks")
        patch.setattr(project, "source_path", lambda _: path)
        lecture = source.read(path)
        build.course_directory(root / "class", [path], seed=None)
        folder = ClassFolder(root / "class")
        for name, case in CORPUS.items():
            notebook = Notebook(lecture)
            case.change(notebook)
            place = folder.submission(name, lecture.name)
            place.parent.mkdir(parents=True)
            place.write_bytes(case.bytes(json.dumps(notebook.content, indent=1, ensure_ascii=False)))
        summary = grade.grade_class(folder, lecture.name, workers=1)
        yield Class(folder.root, dict(summary.results))


def test_the_corpus_has_at_least_sixty_notebooks() -> None:
    assert len(CORPUS) >= 60


@pytest.mark.parametrize("name", CORPUS)
def test_the_grader_says_of_an_honest_notebook_what_a_kernel_says(name: str, graded: Class) -> None:
    case, result = CORPUS[name], graded.results[name]
    marks = {mark.exercise: mark for mark in result.marks}
    said = "\n".join([*result.notes, *(mark.message for mark in result.marks)])
    assert {name: mark.points for name, mark in marks.items()} == {
        name: 0 if name in case.fails else points for name, points in WORTH.items()
    }, said
    assert result.state is (State.NEEDS_REVIEW if case.review else State.GRADED), said
    assert case.review in "\n".join(result.notes), said
    path = notebook_path(graded.folder / "submitted" / name, "01_small")
    kernel = kernel_says(path, graded)
    assert {exercise for exercise, points in kernel.points.items() if not points} == set(case.in_kernel), said
    for exercise in set(case.fails).intersection(case.in_kernel):
        message, _, stopped = marks[exercise].message.partition("\n  Your cell stopped with ")
        same = message.removeprefix(f"✗ {exercise}\n").strip() == kernel.said[exercise]
        # A kernel's check says it in other words if the answer doesn't exist, or the cell that imports `check` is lost.
        missing = re.search("is not defined|cannot read the cell", kernel.said[exercise])
        assert same or (missing and "got       NameError: name" in message), kernel
        assert stopped.partition(":")[0] == kernel.errors.get(exercise, ""), kernel
        told = set(re.findall(r"stopped (?:here )?with (\w+)", "\n".join(result.notes)))
        assert told - IN_WORDS <= set(kernel.errors.values()), kernel


def test_what_students_read_about_limits_is_so() -> None:
    limits, page = Limits(), (project.ROOT / "docs" / "students.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if "characters in a cell" in line]
    stated = [
        f"{limits.memory / 2**30:g} GiB of memory", f"{limits.processes} processes and threads",
        f"{limits.scratch / 2**20:g} MiB of files", f"{limits.cpu_seconds} seconds of processor time in one process",
        f"{limits.seconds_in_all:g} seconds in all", f"{submission.SIZE_LIMIT / 10**6:g} MB",
        f"{submission.CELLS_LIMIT:,} code cells", f"{submission.CELL_LIMIT:,} characters in a cell",
    ]  # fmt: skip
    assert re.findall(r"\d[\d,]*", row) == [each.split()[0] for each in stated]
    assert all(each in row for each in stated) and limits.seconds == 5 and page.count("more than five seconds") == 2


def test_what_students_read_about_last_digits_is_so() -> None:
    page = (project.ROOT / "docs" / "students.md").read_text(encoding="utf-8")
    stated = re.findall(r"([\d.e-]+)(?: of their size)? in (b?float\d+)", page)
    assert {getattr(torch, dtype): float(number) for number, dtype in stated} == comparing._TOLERANCES
    assert comparing._TOLERANCES[torch.float64] == comparing._OF_A_NUMBER


def test_what_a_submission_can_import_is_not_what_the_grader_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_the_grader.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    names = ("beside_the_grader", "hand_made", "numpy", "torch", "json", "course_utils", "no_such_package")
    assert [program.installed(name) for name in names] == [False, False, True, True, True, True, False]


@pytest.mark.parametrize(
    "unit", ["=!", "= %", "=" + 20 * " ", "\n=!", "assert ", "import *", "get_ipython", "=!" + 99 * " "]
)
def test_looking_for_names_in_texts_takes_time_in_proportion_to_the_text(unit: str) -> None:
    """No text takes three times as long as ordinary lines of the same length, on the same machine."""

    def seconds(unit: str) -> float:
        began = time.process_time()
        program._by_text(unit * (1_000_000 // len(unit)))
        return time.process_time() - began

    ordinary, took = map(min, zip(*((seconds("x = 1\n"), seconds(unit)) for _ in range(2)), strict=True))
    assert took < 3 * ordinary


# What ends a cell in the grader and is only printed by a kernel: an unknown variable of %store, and groups of errors.
IN_WORDS = {"UsageError", "ExceptionGroup"}
# A kernel looks for checks in course_utils, which has none of these exercises. Nothing is defined in the notebook.
THESE_CHECKS = """exec('''
from pathlib import Path
from course_utils.testing import checking
checking.load = lambda name: checking.Check.unpack(Path({!r}, name + ".check").read_bytes())
''', {{}})"""


@dataclass(frozen=True)
class InKernel:
    """What a kernel makes of a notebook: by exercise its points and why its check fails; by cell's name, or its text if
    it has none, the class of the error that the cell ends with."""

    points: dict[str, float]
    said: dict[str, str]
    errors: dict[str, str]


def kernel_says(path: Path, made: Class) -> InKernel:
    """What the checks say when the notebook runs from top to bottom, whatever fails in between."""
    notebook: Any = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(THESE_CHECKS.format(str(made.folder.parent / "checks"))))
    # With this variable, ipykernel gives a kernel's output no descriptor.
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with execution.warm_kernels():
        execution.run_cells(notebook, path.parent, 60, environ=environ, allow_errors=True, shutdown_kernel="immediate")
    found = InKernel({}, {}, {})
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in ran:
        for output in cell.outputs:
            if output.output_type == "error":
                found.errors[cell.metadata.get("nbgrader", {}).get("grade_id", cell.source)] = output.ename
    for exercise in CASES:
        checks = [cell for cell in ran if f'check("{exercise}")' in cell.source]
        named = [c for c in checks if c.metadata.get("nbgrader", {}).get("grade_id") == f"test_{exercise}"]
        [cell] = named or checks
        [result] = [each for each in cell.outputs if each.output_type in ("execute_result", "error")]
        if result.output_type == "error":
            found.points[exercise], found.said[exercise] = 0.0, f"{result.ename}: {result.evalue}"
            continue
        found.points[exercise], page = float(result.data["text/plain"]), result.data["text/html"]
        page = page.replace("<code>", "`").replace("</code>", "`")
        assert found.points[exercise] in (0.0, WORTH[exercise]), cell.outputs
        [reason] = re.findall(r"(?:<pre[^>]*>(.*)</pre>|>([^<]*)</div>)</div>$", page, re.DOTALL) or [("", "")]
        found.said[exercise] = html.unescape("".join(reason)).strip()
    return found
