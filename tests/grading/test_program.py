"""Which of a lecture's cells are run to grade a notebook."""

from __future__ import annotations

import pytest
from hand_made import check_of

from autograder.grading.exercises import Cell, Exercise, ProblemSet
from autograder.grading.program import Program
from autograder.inside.messages import Names
from autograder.inside.names import defined, used

ANSWER = "def f(x):\n    return torch.relu(x)"


def runs(setup: str, later: str, *theirs: str) -> bool:
    """Whether the lecture's later cell runs, if the answer below it uses the name ``torch``.

    ``theirs``: the student's cells between the lecture's two.
    """
    check = check_of("f", 1, {1: 1}).pack()
    problems = ProblemSet("20_ours", (Exercise("f", 1.0, setup, ANSWER, 1, check),), (Cell(setup), Cell(later)))
    cells = [Cell(setup), *map(Cell, theirs), Cell(later), Cell(ANSWER, "f"), Cell('check("f")', "test_f")]
    program = Program(problems, cells)
    for number in program.unread:
        text = program.steps[number].cell.text
        program.learn(number, Names(sorted(defined(text)), sorted(used(text))))
    ran = [program.steps[number].cell.text for number in program.to_run()]
    assert ANSWER in ran
    return later in ran


@pytest.mark.parametrize(
    "later", ["import torch.fx", "import re\nimport torch.fx, torch._dynamo\n\nprint(re, torch.fx)"]
)
def test_a_cell_that_imports_a_submodule_isnt_run_for_the_name_of_its_package(later: str) -> None:
    assert not runs("import math\n\nimport torch", later)
    assert not runs("import math\n\nimport torch", later, "x = 5")


@pytest.mark.parametrize(
    "later",
    [
        "import torch.fx as torch",
        "from course_utils import torch",
        "import torch.fx\n\ntorch = 5",
        "import torch.fx\n\n\ndef torch():\n    pass",
        "import torch.fx\n\n\ndef change():\n    global torch\n    torch = 5",
        "if True:\n    import torch.fx",
        "with open('a') as torch:\n    import torch.fx",
    ],
)
def test_one_that_may_give_the_name_another_value_is_run(later: str) -> None:
    assert runs("import torch", later)


@pytest.mark.parametrize(
    "setup, theirs",
    [
        ("import torch", "torch = 5"),
        ("import numpy as torch", ""),
        ("from einops import torch", ""),
        ("import math", ""),
    ],
)
def test_one_that_brings_the_module_back_is_run(setup: str, theirs: str) -> None:
    assert runs(setup, "import torch.fx", *filter(None, [theirs]))
