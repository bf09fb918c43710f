"""Sources that cannot become notebooks: each is refused with its file, its line, and what to do."""

import importlib.util
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import hand_made
import pytest

from autograder import project
from autograder.grading import source

META = (
    '# %% nbgrader={{"grade": {}, "grade_id": "{}", "locked": {}, {}'
    '"schema_version": 3, "solution": {}, "task": false}}'
)
SOLUTION = META.format("false", "f", "false", "", "true")
TESTS = META.format("true", "test_f", "true", "", "false")
SOUND = f"""\
# %% [markdown]
r\"\"\"
# A lecture with $\\alpha$
\"\"\"

# %% tags=["item-7", "error-12"]
import torch

assert torch.ones(1) == 1


{SOLUTION}
def f(x):
    ### BEGIN SOLUTION
    return x + 1
    ### END SOLUTION


{TESTS}
check("f")
"""


@pytest.fixture(autouse=True)
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a check of ``f``, worth 1.5 points, and no other."""
    hand_made.write(tmp_path / "checks", hand_made.check_of("f", 1.5, {1: 2}))
    monkeypatch.setattr(source, "CHECKS", tmp_path / "checks")


def read(folder: Path, text: str) -> source.Lecture:
    path = folder / "01_test.py"
    path.write_text(text, encoding="utf-8")
    return source.read(path)


def test_a_sound_source_is_read_with_its_exercises_and_proofs(tmp_path: Path) -> None:
    lecture = read(tmp_path, SOUND)
    (exercise,) = lecture.exercises
    assert [(p.kind, p.number, p.cell, p.line) for p in lecture.proofs] == [("item", 7, 1, 6), ("error", 12, 1, 6)]
    assert (exercise.name, exercise.points) == ("f", 1.5) and exercise.setup.startswith("import torch")
    assert exercise.stub == "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert exercise.tests == 'check("f")'
    assert [cell.id for cell in lecture.notebook.cells][2:] == ["f", "test_f"]
    assert lecture.notebook.cells[3].metadata.nbgrader.points == 1.5
    assert 'check("f", hidden=True)' in lecture.notebook.cells[3].source.partition("### BEGIN HIDDEN TESTS")[2]
    assert lecture.notebook.cells[0].source == "# A lecture with $\\alpha$"
    numbered = SOUND.replace("# A lecture", "### Exercise 1.1 · F\n\n### Exercise 2 · G\n\n# 01 · A lecture")
    assert read(tmp_path, numbered).exercises[0].name == "f"


BROKEN = {
    "a stray first line": ("hello\n" + SOUND, 1, "does not begin with a cell"),
    "nothing at all": ("", 1, "does not begin with a cell"),
    "malformed metadata": (SOUND.replace('"task": false}', '"task": false', 1), 12, "malformed"),
    "an unclosed text": (SOUND.replace('\n"""\n', "\n", 1), 1, "is not closed"),
    "an unclosed solution": (SOUND.replace("    ### END SOLUTION\n", ""), 12, "do not come in pairs"),
    "a duplicate grade_id": (SOUND + "\n" + SOUND[SOUND.index(SOLUTION) :], 22, "'f' is used twice, first on line 12"),
    "tests of its own": (SOUND.replace('check("f")', "assert f(1) == 2"), 19, 'is not the line `check("f")`'),
    "an exercise without a check": (SOUND.replace('"f"', '"g"').replace('"test_f"', '"test_g"'), 19, "cannot be read"),
    "no solution region": (
        SOUND.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION\n", ""),
        12,
        "no `### BEGIN SOLUTION`",
    ),
    "tests that are not below": (SOUND.replace(TESTS, "# %%\nx = 1\n\n" + TESTS), 19, "does not follow it"),
    "tests of another name": (SOUND.replace('"test_f"', '"test_g"'), 19, "its test cell does not follow it"),
    "tests without a solution": (
        SOUND.replace(SOLUTION, "# %%").replace("SOLUTION\n", "X\n"),
        19,
        "does not follow a solution",
    ),
    "tests that can be edited": (SOUND.replace('"locked": true', '"locked": false'), 19, "not locked"),
    "an empty cell": (SOUND.replace("import torch\n\nassert torch.ones(1) == 1\n", "\n"), 6, "is empty"),
    "a tag of no use": (SOUND.replace("error-12", "item-x"), 6, "'item-x' has no meaning"),
    "a tag that nothing proves": (SOUND.replace("assert torch", "torch"), 6, "tagged item-7 and proves nothing"),
    "a title with another number": (
        SOUND.replace("# A lecture", "# 20 · A lecture"),
        1,
        "'20' does not fit the name 01_",
    ),
    "an exercise with another number": (
        SOUND.replace('$\n"""', '$\n\n### Exercise 20.1 · F\n"""'),
        1,
        "'Exercise 20.1' does not fit the name 01_test.py",
    ),
    "no code": (SOUND[: SOUND.index("# %% tags")], 1, "no code cell"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_source_is_refused_with_the_line_the_problem_and_a_remedy(name: str, tmp_path: Path) -> None:
    text, line, problem = BROKEN[name]
    with pytest.raises(source.SourceError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / '01_test.py'}:{line}: "), message
    assert problem in message and "\n  → " in message, message


def test_a_source_or_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(source.SourceError, match="no such source"):
        source.read(tmp_path / "07_nothing.py")
    with pytest.raises(FileNotFoundError, match=r"there are no lectures in .*\n  → name their sources NN_topic.py"):
        source.lectures(tmp_path)
    (tmp_path / "3_ours.py").write_text(SOUND, encoding="utf-8")
    (tmp_path / "24_ours.py").write_text(SOUND, encoding="utf-8")
    with pytest.raises(source.SourceError, match=r"begin with two digits\n  → rename it, for instance to 23_ours.py"):
        source.lectures(tmp_path)


def test_equal_cells_get_different_ids(tmp_path: Path) -> None:
    lecture = read(tmp_path, SOUND + "\n# %%\nprint(1)\n\n# %%\nprint(1)\n")
    ids = [cell.id for cell in lecture.notebook.cells]
    assert len(set(ids)) == len(ids)


def test_a_lecture_links_to_the_one_before_and_the_one_after() -> None:
    paths = source.lectures(project.SOLUTIONS)
    lectures = [source.parse(path, path.read_text(encoding="utf-8"), built=False) for path in paths]
    for before, after in itertools.pairwise(lectures):
        texts = [cell.source for cell in before.notebook.cells if cell.cell_type == "markdown"]
        link = f"(../{after.name}/{after.name}.ipynb)"
        assert link in texts[0], f"{before.name} begins without a link to {after.name}"
        assert f"Next: [{_title(after)}]{link}" in texts[-1], f"{before.name} ends without a link to {after.name}"
        back = f"[← {_title(before)}](../{before.name}/{before.name}.ipynb)"
        assert back in after.notebook.cells[0].source, f"{after.name} begins without a link to {before.name}"


def _title(lecture: source.Lecture) -> str:
    return lecture.notebook.cells[0].source.splitlines()[0].removeprefix("# ")


@pytest.mark.parametrize("path", source.lectures(project.SOLUTIONS), ids=lambda path: path.stem)
def test_a_lecture_uses_the_result_of_each_of_its_exercises(path: Path) -> None:
    lecture = source.parse(path, path.read_text(encoding="utf-8"), built=False)
    for exercise in lecture.exercises:
        own = (exercise.name, f"test_{exercise.name}")
        others = [c.source for c in lecture.notebook.cells if c.cell_type == "code" and c.id not in own]
        made = re.findall(r"^(?:def|class) (\w+)", exercise.solution, re.MULTILINE)
        used = [name for name in made if any(re.search(rf"\b{name}\b", text) for text in others)]
        assert used, f"{lecture.name} never uses {' or '.join(made)}, although exercise {exercise.name} asks for it"


def test_what_requires_is_linted_where_programs_of_students_are_not(tmp_path: Path) -> None:
    """A program that does what students do may be as careless as they are."""
    for path in project.EXERCISES.glob("*/*.py"):
        text = re.split(r"^# %% ", path.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
        (tmp_path / f"{path.parent.name}_{path.name}").write_text(text.rstrip() + "\n", encoding="utf-8")
    rules = ["--isolated", "--target-version", "py311", "--select", "E,F,UP", "--ignore", "E501,E731"]
    command = [sys.executable, "-m", "ruff", "check", *rules, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("folder", ["solutions", "course_utils", "autograder", "docs", "tests"])
def test_no_text_has_control_characters(folder: str) -> None:
    paths = [path for kind in ("*.py", "*.md", "*.toml") for path in (project.ROOT / folder).rglob(kind)]
    odd = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
    assert paths and [path.name for path in paths if odd.search(path.read_text(encoding="utf-8"))] == []


def test_no_formula_runs_over_the_lines_of_a_quotation() -> None:
    """JupyterLab takes formulas out of the text before it removes a quotation's marks, so one would be shown in it."""
    texts = [path.read_text(encoding="utf-8") for path in source.lectures(project.SOLUTIONS)]
    lines = [line for text in texts for line in text.splitlines()]
    quoted = [line for line in lines if line.startswith("> ")]
    assert len(quoted) > 50 and [line for line in quoted if re.sub(r"\\.", "", line).count("$") % 2] == []


@pytest.fixture(scope="module")
def native() -> Any:
    """What draws the web book's formulas and diagrams; the book itself takes minutes to say that it can't draw one."""
    spec = importlib.util.spec_from_file_location("native", project.ROOT / "book" / "native.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_formula_of_the_lectures_can_be_drawn(native: Any) -> None:
    drawn = 0
    for path in source.lectures(project.SOLUTIONS):
        lecture = source.parse(path, path.read_text(encoding="utf-8"), built=False)
        for cell in lecture.notebook.cells:
            if cell.cell_type == "markdown":
                text = re.sub(r"```.*?```|`[^`\n]*`|\\\$", "", cell.source, flags=re.DOTALL)
                for display, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, re.DOTALL):
                    assert native.mathml(display or inline, "block").startswith("<math")
                    drawn += 1
    assert drawn > 500
    with pytest.raises(ValueError, match="can't draw & in this formula"):
        native.mathml(r"\begin{aligned} a &= b \end{aligned}", "block")


def test_every_diagram_of_the_lectures_can_be_drawn(native: Any) -> None:
    texts = [path.read_text(encoding="utf-8") for path in source.lectures(project.SOLUTIONS)]
    diagrams = [
        found for text in texts for found in re.findall(r"^```mermaid\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    ]
    assert diagrams
    for text in diagrams:
        svg, description = native.diagram(text)
        assert "<svg" in svg and description
