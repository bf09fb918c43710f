"""A made-up semester: a class, its work on several lectures, and the points that everybody must end up with.

Students hand in early and late, twice or not at all; some leave, some change their names; each week's work comes from a
different system. Two TAs give points by hand at the same moment, and some of their students hand in again after that. A
wrong test of the class's own lecture is corrected. Everything is drawn from a seed. The points that each student must
end up with are worked out here, from the programs in the exercises' files, independently of the grader.
"""

from __future__ import annotations

import copy
import json
import math
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from autograder.authoring import build, checks
from autograder.grading.marks import State
from autograder.grading.source import Lecture
from autograder.project import ROOT, source_path
from autograder.records import collect, decisions
from autograder.records.folder import SETTINGS, ClassFolder

LECTURES = ("00_napkin_math",)
OWN = ("20_ours", "21_ours", "22_ours", "23_ours")  # of the class's own; the last one has a wrong test at first
START = datetime(2026, 11, 2, 23, 59, tzinfo=UTC)  # when the first lecture is due
PER_DAY, AT_MOST = 0.1, 0.5  # the late penalty
_VERSIONS = 6  # different notebooks per lecture; students share them, so that a class is graded quickly
# Where each week's work comes from; only the exchange says when it was handed in.
_FROM = ("canvas", "moodle", "exchange", "exchange", "exchange")

_OWN_LECTURE = '''\
# %% [markdown]
# # LECTURE: a lecture that no repository has

# %%
from course_utils.testing import check

# %% [markdown]
# ### Exercise NUMBER.1 · Round up

# %% nbgrader={"solution": true, "grade_id": "multiple_NUMBER"}
def multiple_NUMBER(n: int, step: int) -> int:
    """The smallest multiple of step that is at least n."""
    ### BEGIN SOLUTION
    return REFERENCE
    ### END SOLUTION


# %% nbgrader={"grade": true, "locked": true, "grade_id": "test_multiple_NUMBER"}
check("multiple_NUMBER")
'''
_OWN_EXERCISE = """\
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Which multiple comes next?")
numbers = st.integers(0, 99)

exercise.requirement(
    "between two multiples it is the larger one",
    points=1,
    visible=[given(7, 4), given(9, 2), given(11, 6)],
    domain=st.builds(
        lambda k, step, more: given(k * step + 1 + more % (step - 1), step), numbers, st.integers(2, 9), numbers
    ),
)
exercise.requirement(
    "a multiple is its own result, and a number just above it is not",
    points=2,
    visible=[given(8, 4), given(6, 2), given(9, 4), given(3, 2), given(0, 5)],
    domain=st.builds(lambda k, step, more: given(k * step + more, step), numbers, st.integers(2, 9), st.integers(0, 1)),
)

# %% mistake: the next one
# says: A multiple of step is already what is asked for.
def multiple_NUMBER(n, step):
    return n // step * step + step

# %% mistake: the one below
# says: The multiple has to be at least n.
def multiple_NUMBER(n, step):
    return n // step * step

# %% mistake: the number of steps
# says: The result is a multiple of step, not the number of steps.
def multiple_NUMBER(n, step):
    return -(-n // step)

# %% right: by negative division
def multiple_NUMBER(n, step):
    return -(-n // step) * step

# %% right: by the remainder
def multiple_NUMBER(n, step):
    return n + (-n) % step

# %% right: by counting
def multiple_NUMBER(n, step):
    return next(m for m in range(n, n + step) if m % step == 0)

# %% wrong: the nearest one (from the statement)
def multiple_NUMBER(n, step):
    return (n + step // 2) // step * step

# %% wrong: n itself (from the statement)
def multiple_NUMBER(n, step):
    return n

# %% wrong: n and a step (from the statement)
def multiple_NUMBER(n, step):
    return n + step

# %% wrong: a step too much
def multiple_NUMBER(n, step):
    return (n + 2 * step - 1) // step * step

# %% wrong: only just above a multiple
def multiple_NUMBER(n, step):
    return n // step * step + step * (n % step == 1)
"""
# Somebody at a terminal, who types what comes in, a line for each command, and says when it's done.
_TERMINAL = """
import contextlib, io, json, sys
from autograder import cli

print("ready", flush=True)
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()):
        failed = cli.app(json.loads(line), standalone_mode=False)
    print("failed" if failed else "done", flush=True)
"""
_WRONG_REFERENCE, _RIGHT_REFERENCE = "(n // step + 1) * step", "(n + step - 1) // step * step"


@dataclass(frozen=True)
class Work:
    """What one student handed in once: one of a lecture's versions, and when."""

    version: int
    when: datetime


@dataclass
class Semester:
    """A class and its planned results.

    ``points`` has the points of each lecture and version by exercise; ``given`` has points given by hand, by lecture,
    student and exercise. ``again`` has those that had to be given once more because there was new work, by student and
    exercise; ``asked`` is what a person was then told, by student.
    """

    folder: ClassFolder
    students: list[str]
    lectures: list[Lecture]
    left: set[str]
    renamed: set[str]
    work: dict[tuple[str, str], list[Work]] = field(default_factory=dict)
    answers: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    points: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    given: dict[tuple[str, str, str], float] = field(default_factory=dict)
    again: dict[tuple[str, str], float] = field(default_factory=dict)
    asked: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def due(self, week: int) -> datetime:
        """When a lecture is due."""
        return START + timedelta(weeks=week)

    def expected(self, week: int, student: str) -> float | None:
        """The points that a student must end up with for a lecture, or None for no work."""
        if not (chosen := self._chosen(week, student)):
            return None
        total = sum(self.marks(week, student).values())
        return total - round(self._worth(week, chosen)[1] * total, 2)

    def marks(self, week: int, student: str) -> dict[str, float]:
        """The points that a student must end up with for each exercise, before the late penalty."""
        if not (chosen := self._chosen(week, student)):
            return {}
        name = self.lectures[week].name
        by_hand = {exercise: points for (n, s, exercise), points in self.given.items() if (n, s) == (name, student)}
        return self.points[name, chosen.version] | by_hand

    def _chosen(self, week: int, student: str) -> Work | None:
        """The attempt with the most points after the late penalty; if several are equal, the latest."""
        theirs = self.work.get((self.lectures[week].name, student), [])
        worth = [(self._worth(week, one)[0], place) for place, one in enumerate(theirs)]
        return theirs[max(worth)[1]] if worth else None

    def _worth(self, week: int, one: Work) -> tuple[float, float]:
        """An attempt's points after the late penalty, and the penalty as a fraction of them."""
        total = sum(self.points[self.lectures[week].name, one.version].values())
        late = one.when - self.due(week)
        known = _FROM[week] == "exchange" and late >= timedelta(0)  # what's due at noon is late at noon
        share = min(AT_MOST, PER_DAY * max(1, math.ceil(late / timedelta(days=1)))) if known else 0.0
        return total - round(share * total, 2), share


def make(root: Path, size: int, seed: int = 0, lectures: Sequence[str] = LECTURES) -> Semester:
    """Make a class's folder ``root/class`` and its own exercises, with a wrong test, and plan what students hand in.

    The hidden inputs are drawn from a seed that isn't secret.
    """
    chance = random.Random(seed)
    own = root / "our-exercises"
    for name in OWN:
        path = own / "exercises" / name / f"multiple_{name[:2]}.py"
        path.parent.mkdir(parents=True)
        path.write_text(_OWN_EXERCISE.replace("NUMBER", name[:2]), encoding="utf-8")
    folder = ClassFolder(root / "class")
    folder.root.mkdir()
    names = [f"s{number:03}" for number in range(size)]
    made = Semester(folder, names, [], set(names[4::10]), set(names[7::20]))
    due = "\n".join(f"{name} = {made.due(week).isoformat()}" for week, name in enumerate((*lectures, *OWN)))
    (folder.root / SETTINGS).write_text(
        f'exercises = "../our-exercises"\nattempt = "best"\n\n[due]\n{due}\n\n[late]\nper_day = {PER_DAY}\n'
        f"at_most = {AT_MOST}\n",
        encoding="utf-8",
    )
    write_roster(made)
    made.lectures = build.course_directory(folder.root, map(source_path, lectures))
    correct(made, _WRONG_REFERENCE)
    for week, lecture in enumerate(made.lectures):
        _choose_versions(made, lecture)
        for place, name in enumerate(names):
            if (name in made.left and week > place % 3) or chance.random() < 0.05:
                continue
            late = timedelta(days=chance.choice([0, 0, 0, 0, 1, 2, 9])) if place % 3 == 0 else timedelta(0)
            times = [made.due(week) - timedelta(hours=chance.randrange(1, 60)) + late]
            # Systems that don't record when something was handed in have only the last attempt.
            if _FROM[week] == "exchange" and chance.random() < 0.3:
                times.append(times[0] + timedelta(hours=chance.randrange(1, 40)))
            made.work[lecture.name, name] = [Work(chance.randrange(_VERSIONS), when) for when in times]
    return made


def correct(made: Semester, reference: str = _RIGHT_REFERENCE) -> None:
    """Write and build the class's own lectures, the last one with this reference; update each version's points."""
    own = made.folder.own
    assert own is not None
    write_lectures(own, reference)
    build.students_checks(folder=own)
    lectures = build.course_directory(made.folder.root, [own / f"{name}.py" for name in OWN])
    made.lectures = [*(each for each in made.lectures if each.name not in OWN), *lectures]
    for (name, version), answers in made.answers.items():
        if name == OWN[-1]:
            exercises = lectures[-1].exercises
            made.points[name, version] = {e.name: checks.earned(name, e, answers[e.name]) for e in exercises}


def write_lectures(own: Path, reference: str = _RIGHT_REFERENCE) -> None:
    """Write the class's own lectures, the last one with this reference."""
    for name in OWN:
        text = _OWN_LECTURE.replace("NUMBER", name[:2]).replace("LECTURE", name)
        text = text.replace("REFERENCE", reference if name == OWN[-1] else _RIGHT_REFERENCE)
        (own / f"{name}.py").write_text(text, encoding="utf-8")


def _choose_versions(made: Semester, lecture: Lecture) -> None:
    """Make six notebooks (all right, nothing done, and mixtures) and work out the points that each must get."""
    for version in range(_VERSIONS):
        answers = {}
        for place, exercise in enumerate(lecture.exercises):
            programs = checks.programs(lecture.name, exercise)
            right = [p.code for p in programs if p.kind == "right"]
            wrong = [p.code for p in programs if p.kind != "right"]
            chosen = right if version == 0 or (place + version) % 3 == 0 else wrong
            answers[exercise.name] = exercise.stub if version == _VERSIONS - 1 else chosen[version % len(chosen)]
        made.answers[lecture.name, version] = answers
        made.points[lecture.name, version] = {
            e.name: checks.earned(lecture.name, e, answers[e.name]) for e in lecture.exercises
        }


def write_roster(made: Semester, *, renamed: bool = False, without_those_who_left: bool = False) -> None:
    """Write the roster, as at the beginning or after names have changed and students have left."""
    rows = ["id,first_name,last_name,lms_user_id,login,email,also"]
    for place, name in enumerate(made.students):
        if without_those_who_left and name in made.left:
            continue
        old = f"Person{place} Before{place}"
        last, also = (f"After{place}", old) if renamed and name in made.renamed else (f"Before{place}", "")
        rows.append(f"{name},Person{place},{last},{1000 + place},u{name},{name}@example.org,{also}")
    made.folder.roster.write_text("\n".join(rows) + "\n", encoding="utf-8")


def hand_in(made: Semester, week: int, target: Path) -> Path:
    """Write a lecture's submissions in the format of the week's system; return the path for `course collect`."""
    lecture = made.lectures[week]
    contents = [_notebook(lecture, made.answers[lecture.name, version]) for version in range(_VERSIONS)]
    theirs = [(place, name, made.work.get((lecture.name, name), [])) for place, name in enumerate(made.students)]
    if _FROM[week] == "exchange":
        inbound = target / f"{lecture.name}-inbound"
        for _, name, work in theirs:
            for one in work:
                folder = inbound / f"u{name}+{lecture.name}+{one.when:%Y-%m-%d %H:%M:%S.%f} UTC+x"
                folder.mkdir(parents=True)
                (folder / f"{lecture.name}.ipynb").write_bytes(contents[one.version])
        return inbound
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path := target / f"{lecture.name}-{_FROM[week]}.zip", "w", zipfile.ZIP_STORED) as archive:
        for place, _, work in theirs:
            for one in work[-1:]:
                upload = f"{1000 * len(work) + 4000 + place}_{lecture.name}-{len(work)}"
                canvas = f"before{place}person{place}_{1000 + place}_{upload}.ipynb"
                # Students who have changed their names still have the old one in the zip.
                moodle = f"Person{place} Before{place}_{7000 + place}_assignsubmission_file_/{lecture.name} (1).ipynb"
                archive.writestr(canvas if _FROM[week] == "canvas" else moodle, contents[one.version])
    return path


def _notebook(lecture: Lecture, answers: dict[str, str]) -> bytes:
    """A submission: the lecture's code with these answers, without its text, which nothing depends on."""
    notebook = copy.deepcopy(lecture.notebook)
    texts = answers | {f"test_{e.name}": e.tests for e in lecture.exercises}
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.source = texts.get(cell.id, cell.source)
    return json.dumps(notebook).encode()


def take(made: Semester, week: int, path: Path) -> collect.Summary:
    """Collect a week's work, as `course collect` does."""
    return collect.collect(made.folder, made.lectures[week].name, path, [each.stem for each in made.folder.lectures])


def give_by_hand(made: Semester, week: int) -> None:
    """Let two TAs at two terminals give points by hand, each pair of commands at the same moment.

    Tess decides about every student's first exercise, Theo about the last one. Before that, both decide about the first
    exercise of three students, and disagree.
    """
    lecture = made.lectures[week]
    first, last = lecture.exercises[0], lecture.exercises[-1]
    # Only students with one attempt, because points given by hand for one attempt don't count for another.
    graded = [name for name in made.students if len(made.work.get((lecture.name, name), [])) == 1]

    def typed(who: str, student: str, exercise: str, points: float) -> list[str]:
        return ["decide", str(made.folder), lecture.name, student, exercise, "--points", f"{points}", "--by", who]

    pairs = []
    for place, name in enumerate(graded[: 8 if len(graded) > 50 else 3]):
        one, other = (first.points * (each % 3) / 2 for each in (place, place + 1))
        made.given[lecture.name, name, first.name] = one
        made.given[lecture.name, name, last.name] = other_points = last.points * (place % 3) / 2
        if place < 3:
            pairs.append([typed("Tess", name, first.name, one), typed("Theo", name, first.name, other)])
        pairs.append([typed("Tess", name, first.name, one), typed("Theo", name, last.name, other_points)])
    _at_once(pairs)


def _at_once(pairs: Sequence[Sequence[Sequence[str]]]) -> None:
    """Run the command ``course`` in two processes, with each pair of arguments at the same moment."""
    command = [sys.executable, "-c", _TERMINAL]
    with ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        said = [one.stdout.readline() for one in both if one.stdout]
        for pair in pairs:
            for one, arguments in zip(both, pair, strict=True):
                if one.stdin:
                    one.stdin.write(json.dumps(arguments) + "\n")
                    one.stdin.flush()
            said = [one.stdout.readline() for one in both if one.stdout]
            if said != ["done\n"] * 2:
                raise RuntimeError(f"course {pair}: {said}")


def hand_in_again(made: Semester, week: int) -> None:
    """Some who have points by hand, and had mistakes, hand in once more, with none. What they end up with is decided.

    Points by hand that equal those of the new work need no second decision.
    """
    lecture = made.lectures[week]
    right = made.points[lecture.name, 0]
    given = [(student, exercise) for name, student, exercise in made.given if name == lecture.name]
    for student in list(dict.fromkeys(student for student, _ in given))[:5]:
        if (work := made.work[lecture.name, student])[-1].version != 0:
            work.append(Work(0, made.due(week)))
            for exercise in (each for name, each in given if name == student):
                if made.given[lecture.name, student, exercise] != right[exercise]:
                    made.given[lecture.name, student, exercise] = made.again[student, exercise] = right[exercise] * 0.75


def decide_again(made: Semester, week: int) -> None:
    """Tess answers what she is asked, and nothing else: with a decision that is about other work, she gives points."""
    name = made.lectures[week].name
    for student, found in decisions.table(made.folder, name, made.students).items():
        for mark in found.marks if found.state is State.NEEDS_REVIEW else ():
            if mark.open:
                made.asked[student] = found.notes
                points = made.again[student, mark.exercise]
                decisions.decide(made.folder, name, student, mark.exercise, points=points, by="Tess")


def run(made: Semester, scratch: Path, grade: Callable[[str], object], say: Callable[[str], None] = print) -> None:
    """Run the whole semester; ``grade`` grades the lecture of a name. Raises whatever the steps raise."""
    for week, lecture in enumerate(made.lectures):
        if week == 1:
            write_roster(made, renamed=True)
        found = take(made, week, hand_in(made, week, scratch))
        counts = f"{len(found.new)} attempts collected, {len(found.unmatched)} not matched"
        say(f"{lecture.name}: {counts} ({_FROM[week]})")
        grade(lecture.name)
        if week == 0:
            give_by_hand(made, week)
            say(f"{lecture.name}: two TAs have given points by hand")
            hand_in_again(made, week)
            take(made, week, hand_in(made, week, scratch / "again"))
            grade(lecture.name)
            decide_again(made, week)
            say(f"{lecture.name}: {len(made.asked)} students have handed in again, and their points were decided again")
    correct(made)
    grade(OWN[-1])
    say(f"{OWN[-1]}: a wrong test was corrected, and its students are graded again")
    write_roster(made, renamed=True, without_those_who_left=True)
