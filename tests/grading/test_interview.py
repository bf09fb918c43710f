"""Three questions about each student's own work, and equal answers, which are listed and judge nobody."""

from __future__ import annotations

import copy
import json
import random
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest
from html_scan import harmless
from typer.testing import CliRunner

from autograder import project
from autograder.cli import app
from autograder.grading import source, submission
from autograder.grading.marks import Mark, Result, State
from autograder.records import alike, decisions, interview, results, syntax
from autograder.records.folder import ClassFolder
from autograder.records.syntax import parsed

LECTURE = source.read(project.SOLUTIONS / "01_tensors.py")
FIRST, SECOND, *_ = LECTURE.exercises
MISTAKE = "Each element takes several bytes."
LONG = """def tensor_bytes(x, dtype=None):
    '''{0}'''
    {0}: dict = {{}}
    for {1}, {2} in enumerate(x.shape):  # {0}
        if {2} == 0:
            return 0
        {0}[{1}] = {2} * 2 + 1
    {2} = 1
    for {1} in {0}.values():
        {2} = {2} * (({1} - 1) // 2)
        if {2} > 10**12:
            {2} = {2} + 0
    return {2} * (x.element_size() if dtype is None else dtype.itemsize)
"""


def hand_in(
    course: Path, student: str, points: float = 1.0, guess: str = "None", mistake: str = "", **answers: str
) -> None:
    notebook = copy.deepcopy(LECTURE.notebook)
    texts = {e.name: e.stub for e in LECTURE.exercises} | answers
    for cell in notebook.cells:
        cell.source = texts.get(cell.id, cell.source)
        if cell.source.strip() == "guess = None  # weights":
            cell.source = f"guess = {guess}  # weights"
    path = ClassFolder(course).submission(student, LECTURE.name)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    marks = []
    for exercise in LECTURE.exercises:
        got = points if exercise.name in answers else 0.0
        met = "met" if got >= exercise.points else "not met"
        requirements = tuple((r.text, r.points, met) for r in exercise.check.requirements)
        marks.append(Mark(exercise.name, got, exercise.points, "", mistake or None, False, requirements))
    results.write(ClassFolder(course), Result(student, LECTURE.name, State.GRADED, "", tuple(marks)))


def asked(course: Path, student: str) -> list[interview.Question]:
    result = results.read(ClassFolder(course), LECTURE.name, student)
    assert result is not None
    read = submission.parse(ClassFolder(course).read(student, LECTURE.name), LECTURE.problems)
    return interview.questions(LECTURE, result, read, random.Random(0))


def run(course: Path, *arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(app, ["interview", str(course), LECTURE.name, *arguments])
    assert ran.exit_code == code, ran.output
    return ran.output


def page(course: Path, student: str = "") -> str:
    name = f"{LECTURE.name}.{student}.html" if student else f"{LECTURE.name}.html"
    return (course / "interviews" / name).read_text(encoding="utf-8")


def test_there_is_one_about_a_mistake_one_about_a_line_and_one_about_a_prediction(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", 0.5, "3e5", MISTAKE, **{FIRST.name: FIRST.solution, SECOND.name: SECOND.solution})
    mistake, line, prediction = asked(tmp_path, "ada")
    assert MISTAKE in mistake.text and mistake.code in (FIRST.solution, SECOND.solution)
    number, text = re.findall(r"Line (\d+) of your \w+ is `(.*?)`\. What", line.text)[0]
    assert line.code.splitlines()[int(number) - 1].strip() == text and line.code != mistake.code
    assert "You predicted 3e5 weights" in prediction.text and "3 standard" in prediction.text


def test_without_a_mistake_it_asks_what_is_not_met_or_what_is(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", 0.5, **{FIRST.name: FIRST.solution})
    hand_in(tmp_path, "bob", FIRST.points, **{FIRST.name: FIRST.solution})
    texts = [r.text for r in FIRST.check.requirements]
    ada, bob = asked(tmp_path, "ada")[0].text, asked(tmp_path, "bob")[0].text
    assert f"Your {FIRST.name} doesn't do this yet" in ada and any(text in ada for text in texts)
    assert f"Your {FIRST.name} does this" in bob and any(text in bob for text in texts)


def test_where_a_person_gave_the_points_it_does_not_ask_what_the_tests_missed(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", 0.5, "3e5", MISTAKE, **{FIRST.name: FIRST.solution})
    folder = ClassFolder(tmp_path)
    decisions.decide(folder, LECTURE.name, "ada", FIRST.name, points=FIRST.points)
    result = decisions.apply(folder, results.standing(folder, LECTURE.name, "ada"))
    read = submission.parse(folder.read("ada", LECTURE.name), LECTURE.problems)
    question = interview.questions(LECTURE, result, read, random.Random(0))[0].text
    assert question.startswith(f"How does your {FIRST.name} work?") and MISTAKE not in question


@pytest.mark.parametrize("answer", ["", "def f(:", "%timeit 1", "x = 1", "\ud800", "pass\n" * 3, "-" * 5000 + "1"])
def test_whatever_was_handed_in_there_are_three_questions_and_a_harmless_page(tmp_path: Path, answer: str) -> None:
    hand_in(tmp_path, "ada", 0.0, "<script>alert(1)</script>", **{FIRST.name: answer + "\n# <script>alert(1)</script>"})
    hand_in(tmp_path, "nothing")
    for student in ("ada", "nothing"):
        questions = asked(tmp_path, student)
        assert len(questions) == 3 and len({q.text for q in questions}) == 3
    run(tmp_path)
    harmless(page(tmp_path))


@pytest.mark.parametrize("answer", [FIRST.solution, "def f(:", ""])
def test_a_lecture_of_one_exercise_without_predictions_gives_three_questions_too(tmp_path: Path, answer: str) -> None:
    hand_in(tmp_path, "ada", 0.0, **({FIRST.name: answer} if answer else {}))
    short = copy.deepcopy(LECTURE)
    others = {each.name for each in LECTURE.exercises[1:]}
    short.notebook.cells = [
        cell
        for cell in short.notebook.cells
        if "**Predict.**" not in cell.source and cell.id.removeprefix("test_") not in others
    ]
    one = replace(short, exercises=LECTURE.exercises[:1])
    result = results.read(ClassFolder(tmp_path), LECTURE.name, "ada")
    read = submission.parse(ClassFolder(tmp_path).read("ada", LECTURE.name), one.problems)
    assert result is not None
    found = interview.questions(one, replace(result, marks=result.marks[:1]), read, random.Random(0))
    assert len({question.text for question in found}) == len(found) == 3


def test_the_same_work_gets_the_same_questions_and_another_student_others(tmp_path: Path) -> None:
    answers = {e.name: e.solution for e in LECTURE.exercises}
    for name in ("ada", "bob", "cy"):
        hand_in(tmp_path, name, 9.0, **answers)
    assert "questions for 3 students" in run(tmp_path)
    first = page(tmp_path)
    run(tmp_path)
    assert page(tmp_path) == first
    questions = [re.sub(r"<h2.*?</h2>", "", part) for part in first.split("<section>")[-3:]]
    assert len(set(questions)) == 3
    assert "questions for 1 student;" in run(tmp_path, "--student", "bob")
    assert 'class="name">bob<' in page(tmp_path, "bob") and 'class="name">ada<' not in page(tmp_path, "bob")
    assert page(tmp_path) == first
    assert "there is no student 'dora'" in run(tmp_path, "--student", "dora", code=1)


def test_equal_answers_are_found_whatever_their_names_and_layout(tmp_path: Path) -> None:
    hand_in(tmp_path, "ada", **{FIRST.name: LONG.format("a", "b", "c")})
    hand_in(tmp_path, "bob", **{FIRST.name: LONG.format("sizes", "n", "total").replace("    ", "  ")})
    hand_in(tmp_path, "cy", **{FIRST.name: LONG.format("a", "b", "c").replace("* 2 + 1", "* 3 + 1")})
    said = run(tmp_path)
    assert "1 group of identical answers or files deserves a look" in said
    assert '<strong class="name">ada, bob</strong>' in page(tmp_path) and "proves nothing" in page(tmp_path)


@pytest.mark.parametrize(
    ("count", "code", "right", "listed"),
    [
        (2, "def f(x):\n    return x * 2", False, 0),  # short: everybody's mistake
        (2, "def f(x):\n    return sum(i * 2 for i in x.shape if i > 3 and x.dim() == 2)", False, 1),
        (2, "def f(x):\n    return sum(i * 2 for i in x.shape if i > 3 and x.dim() == 2)", True, 0),
        (4, "def f(x):\n    return sum(i * 2 for i in x.shape if i > 3 and x.dim() == 2)", False, 0),  # four: common
        (2, LONG.format("a", "b", "c"), True, 1),
        (1, LONG.format("a", "b", "c"), True, 0),
    ],
)
def test_only_rare_wrong_answers_and_long_ones_are_listed(count: int, code: str, right: bool, listed: int) -> None:
    mark = Mark(FIRST.name, FIRST.points if right else 0.0, FIRST.points)
    names = [f"s{n}" for n in range(count)]
    found = {name: Result(name, LECTURE.name, State.GRADED, "", (mark,)) for name in names}
    equal = alike.find(LECTURE, found, {name: {FIRST.name: code} for name in names})
    assert len(equal) == listed and all(each.students == tuple(names) for each in equal)


@pytest.mark.parametrize("name", ["brackets_source", "deep_source"])
def test_an_answer_that_keeps_a_parser_busy_or_crashes_it_is_read_word_by_word(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (project.ROOT / "tests" / "hostile" / "attacks" / f"{name}.py").read_text(encoding="utf-8")
    code = f"x = 1 + 1  # not yet\n{text.partition('# %% tensor_bytes')[2].strip()}"
    monkeypatch.setattr(syntax, "_SECONDS", 1.0)
    found = parsed(code)
    assert found.lines == () and found.normalized.startswith("x = 1 + 1 # not yet tensor_bytes = ")
    assert parsed("y = 2 + 2").lines == ((1, "y = 2 + 2"),)  # by the next process


def test_a_guess_made_to_keep_a_pattern_busy_takes_no_time() -> None:
    began = time.process_time()
    for blanks in (" ", "\n", " #"):
        assert interview._GUESS.fullmatch(f"guess = x{99_000 * blanks}y\n") is None
    assert time.process_time() - began < 5


def test_a_long_answer_that_is_our_solution_is_named_even_alone() -> None:
    long = max(LECTURE.exercises, key=lambda e: parsed(e.solution).size - parsed(e.stub).size)
    lecture = replace(LECTURE, exercises=(replace(long, solution=long.solution + LONG.format("a", "b", "c")),))
    found = {"ada": Result("ada", LECTURE.name, State.GRADED, "", (Mark(long.name, long.points, long.points),))}
    code = re.sub(r" *### (BEGIN|END) SOLUTION\n", "", lecture.exercises[0].solution)
    [one] = alike.find(lecture, found, {"ada": {long.name: code}})
    assert one.published and one.right
    assert alike.find(lecture, found, {"ada": {long.name: long.stub}}) == []


def test_the_commands_of_the_instructors_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    block = (
        document.partition("\n### AI assistants and matching answers\n")[2].partition("```sh\n")[2].partition("```")[0]
    )
    hand_in(tmp_path, "ada", **{FIRST.name: FIRST.solution})
    monkeypatch.chdir(tmp_path)
    lines = block.splitlines()
    assert len(lines) == 2
    for line in lines:
        ran = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
        assert ran.exit_code == 0, ran.output
    assert 'class="name">ada<' in page(tmp_path)


def test_a_lectures_prompts_are_read_without_their_markup() -> None:
    for path in sorted(project.SOLUTIONS.glob("[0-9]*.py")):
        read = source.read(path)
        written = submission.HandedIn(path, data=json.dumps(read.notebook).encode())
        handed_in = submission.parse(written, read.problems)
        for question, _ in interview._about_predictions(read, handed_in):
            said = re.sub("`[^`]*`", "", question.text)
            assert not re.search(r"[$\\{}]|\*\*|\]\(|&nbsp;", said), said
            assert re.search("“(?!”).+”", question.known)
    assert interview._as_text(r"*GPT-3's* $3.14 \cdot 10^{23}$ `a * b` [x](y.md), $\sqrt{512} = 2^{4.5}$") == (
        "GPT-3's 3.14 · 10²³ `a * b` x, √(512) = 2^(4.5)"
    )
