"""What a student is shown: their points, their code, what went wrong; no solution, and nothing that runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from html_scan import NASTY, harmless
from test_broken import BREAKS
from typer.testing import CliRunner

from autograder import demo, project
from autograder.authoring import checks
from autograder.cli import app
from autograder.grading import source, submission
from autograder.grading.key import key
from autograder.grading.marks import Mark, Result, State
from autograder.grading.text import MESSAGE_LIMIT, NOTES_LIMIT, clean
from autograder.records import exchange, feedback, pages, report, results
from autograder.records.folder import ClassFolder

MARKED = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)


@pytest.fixture(scope="module")
def lecture() -> source.Lecture:
    return source.read(project.SOLUTIONS / "01_tensors.py")


def hand_in(course: Path, lecture: source.Lecture, student: str, answers: dict[str, str]) -> Path:
    path = project.notebook_path(course / "submitted" / student, lecture.name)
    path.parent.mkdir(parents=True)
    demo.hand_in(path, lecture, answers)
    return path


def marks(lecture: source.Lecture, message: str = "", mistake: str | None = None) -> tuple[Mark, ...]:
    """The same for each exercise, with a message as the judge leaves it."""
    message = clean(message, limit=MESSAGE_LIMIT)
    return tuple(Mark(e.name, 0.0 if message else e.points, e.points, message, mistake) for e in lecture.exercises)


def graded(course: Path, lecture: source.Lecture, path: Path, given: tuple[Mark, ...]) -> Result:
    made = key(path.read_bytes(), lecture.problems)
    result = Result(path.parts[-3], lecture.name, State.GRADED, made, given)
    results.write(ClassFolder(course), result)
    return result


def written(course: Path, lecture: source.Lecture) -> dict[str, feedback.Page]:
    folder = ClassFolder(course)
    students = [path.name for path in (course / "submitted").iterdir()]
    pages = feedback.write(folder, lecture, results.table(folder, lecture.name, students))
    return {page.path.parent.parent.name: page for page in pages}


def secret_lines(lecture: source.Lecture) -> set[str]:
    """Lines of the references that stand nowhere else in the source, found without the module under test."""
    text = lecture.path.read_text(encoding="utf-8")
    inside = {line.strip() for part in MARKED.findall(text) for line in part.splitlines()}
    shown = {line.strip() for line in MARKED.sub("", text).splitlines()}
    return {line for line in inside - shown if len(line) > 12}


def test_a_page_shows_points_code_message_and_hint(lecture: source.Lecture, tmp_path: Path) -> None:
    first, second = lecture.exercises[:2]
    code = "def tensor_bytes(x):\n    return x.numel() # <mine> & yours"
    path = hand_in(tmp_path, lecture, "ada", {first.name: code})
    message = "✗ tensor_bytes(float32[4, 8])\n    got       32\n    expected  128\n  Each takes several bytes."
    given = (Mark(first.name, 0.0, first.points, message, "Each"), Mark(second.name, second.points, second.points))
    graded(tmp_path, lecture, path, given)
    [page] = written(tmp_path, lecture).values()
    assert page.path == tmp_path / "feedback" / "ada" / "01_tensors" / "01_tensors.html" and page.current
    html = page.path.read_text(encoding="utf-8")
    text = harmless(html).text
    worth = sum(e.points for e in lecture.exercises)
    for part in ("01 · Tensors", "ada", f"{second.points:g} of {worth:g} points", "return x.numel() # <mine> & yours",
                 "got       32\n    expected  128", "Each takes several bytes.", f"✗ 0 of {first.points:g}",
                 f"✓ {second.points:g} of {second.points:g}", "1.1 · How many bytes?"):  # fmt: skip
        assert part in text, part
    assert '<span class="k">return</span>' in html and "<strong>Each takes several bytes.</strong>" in html
    assert feedback.CHANGED not in text


@pytest.mark.parametrize("nasty", NASTY)
def test_everything_from_a_submission_is_plain_text(lecture: source.Lecture, tmp_path: Path, nasty: str) -> None:
    student = nasty.replace("/", "∕")
    path = hand_in(tmp_path, lecture, student, {e.name: f"x = 1  # {nasty}\n'''{nasty}" for e in lecture.exercises})
    notebook = json.loads(path.read_text(encoding="utf-8"))
    stranger = {
        "grade": False,
        "solution": True,
        "locked": False,
        "task": False,
        "schema_version": 3,
        "grade_id": nasty,
    }
    stray = {"cell_type": "code", "id": "stray", "metadata": {"nbgrader": stranger}, "source": nasty, "outputs": [],
             "execution_count": None}  # fmt: skip
    shown = {"data": {"text/html": nasty}, "metadata": {}, "output_type": "display_data"}
    notebook["cells"] += [stray | {"outputs": [shown]}]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    given = marks(lecture, f"✗ {nasty}\n    got       {nasty}\n  {nasty}", nasty)
    result = Result(student, lecture.name, State.NEEDS_REVIEW, "", given, (nasty,))
    results.write(ClassFolder(tmp_path), result)
    page = harmless(written(tmp_path, lecture)[student].path.read_text(encoding="utf-8"))
    assert page.text.count(nasty) >= 4 * len(lecture.exercises) and student in page.text
    assert f"the cell {nasty} does not belong to" in page.text


def test_everything_from_the_hostile_class_is_plain_text(lecture: source.Lecture, tmp_path: Path) -> None:
    """Every attack's code, and the same text once more where a message stands; and every broken file."""
    attacks = demo.attacks(lecture)
    assert len(attacks) == len(list(demo.HOSTILE.glob("*.py")))
    for number, answers in enumerate(attacks):
        path = hand_in(tmp_path, lecture, f"mallory{number}", answers)
        given = [Mark(e.name, 0.0, e.points, answers.get(e.name, ""), answers.get(e.name)) for e in lecture.exercises]
        graded(tmp_path, lecture, path, tuple(given))
    for name, (spoil, says, _) in BREAKS.items():
        path = project.notebook_path(tmp_path / "submitted" / name, lecture.name)
        path.parent.mkdir(parents=True)
        spoil(path)
        result = Result(name, lecture.name, State.NEEDS_REVIEW, "", marks(lecture, f"✗ {says}"), (says,))
        results.write(ClassFolder(tmp_path), result)
    pages = written(tmp_path, lecture)
    assert len(pages) >= len(attacks) + len(BREAKS)
    handed_in = {line.strip() for answers in attacks for code in answers.values() for line in code.splitlines()}
    secret = secret_lines(lecture) - handed_in
    assert secret
    for page in pages.values():
        text = harmless(page.path.read_text(encoding="utf-8")).text
        assert [line for line in secret if line in text] == []
    harmless(report.page(lecture, results.table(ClassFolder(tmp_path), lecture.name, pages)))


def test_characters_that_hide_or_reorder_text_are_spelled_out(lecture: source.Lecture, tmp_path: Path) -> None:
    first = lecture.exercises[0]
    code = "x = '\u202eevil\u2066' # \x1b[2J \x00 \ud800 \ufeff\u2028 ordinary: é 漢 👍🏽"
    path = hand_in(tmp_path, lecture, "ada", {first.name: "x = 1"})
    raw = path.read_text(encoding="utf-8").replace('"x = 1"', json.dumps(code))
    path.write_text(raw, encoding="utf-8")
    graded(tmp_path, lecture, path, marks(lecture, "✗ \x1b[31m\u202e"))
    text = harmless(written(tmp_path, lecture)["ada"].path.read_text(encoding="utf-8")).text
    for part in ("\\u202eevil\\u2066", "\\x1b[2J", "\\x00", "\\ud800", "ordinary: é 漢 👍🏽", "✗ \\x1b[31m\\u202e"):
        assert part in text, part


def test_no_page_shows_a_solution_or_a_hidden_case(lecture: source.Lecture, tmp_path: Path) -> None:
    """Wrong programs of each exercise, with the message that they really get."""
    for number in range(6):
        wrong = {
            e.name: [p.code for p in checks.programs(lecture.name, e) if p.kind != "right"] for e in lecture.exercises
        }
        chosen = {name: codes[number % len(codes)] for name, codes in wrong.items()}
        path = hand_in(tmp_path, lecture, f"student{number}", chosen)
        told = {e.name: checks.rubric(lecture.name, e, chosen[e.name]) for e in lecture.exercises}
        given = [
            Mark(
                e.name, told[e.name].points, e.points, f"✗ {e.name}\n{told[e.name].failure}", told[e.name].mistake,
                requirements=tuple((line.text, line.points, line.met.value) for line in told[e.name].lines),
            )
            for e in lecture.exercises
        ]  # fmt: skip
        graded(tmp_path, lecture, path, tuple(given))
    for page in written(tmp_path, lecture).values():
        text = harmless(page.path.read_text(encoding="utf-8")).text
        assert "BEGIN SOLUTION" not in text and "expected" in text
        assert all(line.text.replace("`", "") in text for rubric in told.values() for line in rubric.lines)


@pytest.mark.parametrize("state", [State.NOT_SUBMITTED, State.QUEUED, State.FAILED_HERE])
def test_a_student_without_points_is_told_why_not_zero(lecture: source.Lecture, tmp_path: Path, state: State) -> None:
    hand_in(tmp_path, lecture, "ada", {})
    note = "Traceback: /home/teacher/grades/secret.db is locked"
    result = Result("ada", lecture.name, state, "", (), (note,))
    [page] = feedback.write(ClassFolder(tmp_path), lecture, {"ada": result})
    text = harmless(page.path.read_text(encoding="utf-8")).text
    assert feedback._HEADLINES[state] in text
    assert not re.search(r"\d of \d", text) and "✗" not in text
    assert "teacher" not in text and str(tmp_path) not in text
    assert ("not your fault" in text) == (state is State.FAILED_HERE)


def test_a_problem_with_the_file_is_named_without_our_paths(lecture: source.Lecture, tmp_path: Path) -> None:
    path = project.notebook_path(tmp_path / "submitted" / "ada", lecture.name)
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    finding = submission.parse(submission.read(path), lecture.problems).findings[0]
    result = Result("ada", lecture.name, State.NEEDS_REVIEW, "", marks(lecture, "✗ no"), (str(finding),))
    results.write(ClassFolder(tmp_path), result)
    text = harmless(written(tmp_path, lecture)["ada"].path.read_text(encoding="utf-8")).text
    assert "it is not JSON" in text and "A person will look" in text
    assert str(tmp_path) not in text and "ask the student" not in text


@pytest.mark.parametrize("deep", [False, True])
def test_a_link_to_anothers_folder_shows_nothing_of_theirs(lecture: source.Lecture, tmp_path: Path, deep: bool) -> None:
    path = hand_in(tmp_path, lecture, "ada", {lecture.exercises[0].name: "secret = 'of ada'"})
    graded(tmp_path, lecture, path, marks(lecture, "✗ no"))
    theirs, mallory = (path.parent, path.parents[2] / "mallory") if deep else (path.parents[1], path.parents[2] / "m")
    if deep:
        mallory.mkdir()
        (mallory / lecture.name).symlink_to(theirs)
    else:
        mallory.symlink_to(theirs)
    result = Result(mallory.name, lecture.name, State.NEEDS_REVIEW, "", marks(lecture, "✗ no"))
    results.write(ClassFolder(tmp_path), result)
    texts = {name: page.path.read_text(encoding="utf-8") for name, page in written(tmp_path, lecture).items()}
    assert "of ada" in texts["ada"] and "of ada" not in texts[mallory.name]
    assert "symbolic link" in texts[mallory.name]


def test_a_page_says_that_the_submission_changed_after_grading(lecture: source.Lecture, tmp_path: Path) -> None:
    path = hand_in(tmp_path, lecture, "ada", {})
    graded(tmp_path, lecture, path, marks(lecture, "✗ no"))
    demo.hand_in(path, lecture, {e.name: e.solution for e in lecture.exercises})
    page = written(tmp_path, lecture)["ada"]
    assert not page.current and feedback.CHANGED in page.path.read_text(encoding="utf-8")


def test_a_very_long_answer_is_shortened(lecture: source.Lecture, tmp_path: Path) -> None:
    path = hand_in(tmp_path, lecture, "ada", {lecture.exercises[0].name: "x = 1 + 2\n" * 15_000})
    graded(tmp_path, lecture, path, marks(lecture, "✗ " + "long " * 50_000))
    html = written(tmp_path, lecture)["ada"].path.read_text(encoding="utf-8")
    assert "Not all of it is shown" in html and len(html) < 600_000


def test_a_very_long_line_is_shortened_in_code_and_kept_in_prose() -> None:
    honest = "x = 1" + " + 1" * 120 + "\n"
    for end in ("\n", "\r", "\r\n"):
        long = f"y = 2{end}" + "x" * 5_000 + f"{end}z = 3"
        assert pages.shown(long) == "y = 2\n" + "x" * 500 + "… (4,500 more characters)\nz = 3"
        assert pages.shown(long, prose=True) == long.replace(end, "\n")
        assert pages.shortened(long) and not pages.shortened(long, prose=True)
    assert pages.shown(honest) == honest and not pages.shortened(honest)
    assert pages.shortened(honest * 1_000, prose=True)


def test_code_that_takes_too_long_to_color_is_shown_without_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def f(x):\n    return x < 1  # <b>\n" * 100
    colored = feedback.highlighted(code)
    monkeypatch.setattr(feedback, "_COLORING", -1.0)
    plain = feedback.highlighted(code)
    assert "<span" in colored and plain == code.replace("<", "&lt;").replace(">", "&gt;")
    assert re.sub("<[^>]*>", "", colored) == plain


def test_of_very_many_problems_with_a_file_a_page_names_the_first(lecture: source.Lecture, tmp_path: Path) -> None:
    path = hand_in(tmp_path, lecture, "ada", {})
    notebook = json.loads(path.read_text(encoding="utf-8"))
    twice = [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": f"odd-{n % 900}", "solution": True}},
              "source": "1", "outputs": [], "execution_count": None} for n in range(1800)]  # fmt: skip
    path.write_text(json.dumps(notebook | {"cells": notebook["cells"] + twice}), encoding="utf-8")
    assert len(submission.parse(submission.read(path), lecture.problems).findings) > 2 * NOTES_LIMIT
    graded(tmp_path, lecture, path, marks(lecture, "✗ no"))
    text = harmless(written(tmp_path, lecture)["ada"].path.read_text(encoding="utf-8")).text
    assert NOTES_LIMIT - 1 <= text.count("Your notebook: ") <= NOTES_LIMIT and " more" in text


def test_the_command_is_safe_to_repeat_and_accepts_an_empty_class(lecture: source.Lecture, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["feedback", str(tmp_path), lecture.name])
    assert ran.exit_code == 0 and "0 students" in ran.output
    path = hand_in(tmp_path, lecture, "ada", {})
    graded(tmp_path, lecture, path, marks(lecture, "✗ no"))
    hand_in(tmp_path, lecture, "bob", {})
    before = []
    for _ in range(2):
        ran = CliRunner().invoke(app, ["feedback", str(tmp_path), lecture.name])
        assert ran.exit_code == 0 and "2 students: 1 queued, 1 graded" in ran.output, ran.output
        before.append({p: p.read_bytes() for p in (tmp_path / "feedback").rglob("*.html")})
    assert before[0] == before[1] and len(before[0]) == 2
    for path in before[0]:
        path.unlink()
    ran = CliRunner().invoke(app, ["feedback", str(tmp_path), lecture.name, "--student", "ada"])
    assert ran.exit_code == 0 and "1 student: 1 graded" in ran.output, ran.output
    assert {p: p.read_bytes() for p in (tmp_path / "feedback").rglob("*.html")}.items() < before[0].items()
    assert CliRunner().invoke(app, ["feedback", str(tmp_path / "nowhere"), lecture.name]).exit_code == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nbgrader leaves a file open
def test_nbgrader_returns_the_pages_and_no_student_can_stop_that(lecture: source.Lecture, tmp_path: Path) -> None:
    """`nbgrader release_feedback` itself ends at the first page without the files that students have written."""
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default import ExchangeReleaseFeedback
    from nbgrader.utils import notebook_hash
    from traitlets.config import Config

    course = ClassFolder(tmp_path / "class")
    secret, forged = "c0ffee00" * 16, {"eve": b"", "mallory": b"\xff\xfe", "trudy": b"x" * 1000}
    for student in ("ada", *forged, "bob"):
        graded(course.root, lecture, hand_in(course.root, lecture, student, {}), marks(lecture))
        place = course.assignment(student, lecture.name)
        if student != "bob":  # who handed in by e-mail
            (place / exchange.SECRET).write_bytes(forged.get(student, secret.encode()))
            stamp = b"2026-11-22 12:00:00.000000 UTC" if student == "ada" else b"\xff\xff"
            (place / exchange.TIMESTAMP).write_bytes(stamp)
    found = results.table(course, lecture.name, ["ada", *forged, "bob", "nothing-handed-in"])
    pages = list(feedback.write(course, lecture, found))
    assert not any(page.problem for page in pages) and len(pages) == 6

    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.course_id = str(course.root), "cs336"
    config.CourseDirectory.assignment_id, config.Exchange.root = lecture.name, str(tmp_path / "exchange")
    (tmp_path / "exchange").mkdir()

    def release() -> dict[str, bytes]:
        theirs = CourseDirectory(config=config)
        ExchangeReleaseFeedback(coursedir=theirs, authenticator=Authenticator(config=config), config=config).start()
        return {path.stem: path.read_bytes() for path in (tmp_path / "exchange" / "cs336" / "feedback").iterdir()}

    released = release()
    address = notebook_hash(secret=secret, notebook_id=lecture.name)
    assert released[address] == course.feedback("ada", lecture.name).read_bytes()
    assert set(released.values()) == {page.path.read_bytes() for page in pages}
    # Repeated, each page goes where it went before.
    list(feedback.write(course, lecture, found))
    assert release() == released
    for student in ("eve", "bob"):
        assert (course.feedback(student, lecture.name).parent / exchange.SECRET).stat().st_mode & 0o077 == 0


def test_people_have_their_names_wherever_a_person_reads_about_them(lecture: source.Lecture, tmp_path: Path) -> None:
    for student in ("s1", "s2", "s3"):
        graded(tmp_path, lecture, hand_in(tmp_path, lecture, student, {}), marks(lecture))
    roster = "id,first_name,last_name\ns1,Ada,Lovelace\ns2,<b>Bob</b>,\u202egnibbiT\ns3,,\n"
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    name, course = lecture.name, ClassFolder(tmp_path)

    def run(*command: str) -> str:
        ran = CliRunner().invoke(app, [command[0], str(tmp_path), name, *command[1:]])
        assert ran.exit_code == 0, ran.output
        return ran.output

    for command in ("feedback", "report", "interview", "export"):
        run(command)
    bob = "<b>Bob</b> \\u202egnibbiT"
    one = harmless(course.feedback("s1", name).read_text(encoding="utf-8")).text
    assert "Feedback for s1 (Ada Lovelace)" in one and "Bob" not in one
    for path in (course.report(name), tmp_path / "interviews" / f"{name}.html"):
        text = harmless(path.read_text(encoding="utf-8")).text
        assert "s1 (Ada Lovelace)" in text and f"s2 ({bob})" in text and "s3" in text and "s3 (" not in text
    assert f"s1 (Ada Lovelace): {State.GRADED}" in run("show") and f"s2 ({bob})" in run("show")
    assert "Ada" not in run("show", "--anonymous")
    for ending in ("csv", "questions.csv", "json"):
        assert "Ada Lovelace" in (course.exports / f"{name}.{ending}").read_text(encoding="utf-8")


def test_a_page_shows_the_cell_that_defined_an_exercises_name_last(lecture: source.Lecture, tmp_path: Path) -> None:
    first = lecture.exercises[0]
    path = hand_in(tmp_path, lecture, "ada", {first.name: "def tensor_bytes(x): return 'shown'"})
    content = json.loads(path.read_text(encoding="utf-8"))
    place = next(n for n, cell in enumerate(content["cells"]) if cell["id"] == first.name)
    again = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "execution_count": None}
    content["cells"].insert(place + 1, again | {"source": "def tensor_bytes(x): return 'counts'"})
    path.write_text(json.dumps(content), encoding="utf-8")
    graded(tmp_path, lecture, path, marks(lecture))
    [page] = written(tmp_path, lecture).values()
    text = harmless(page.path.read_text(encoding="utf-8")).text
    assert text.index("'shown'") < text.index("Another cell defines it again") < text.index("'counts'")
