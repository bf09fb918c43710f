"""Attacks on the grader, one a file in tests/hostile/attacks: none earns more than its honest part, and none survives.

A file says what it tries, what its honest part earns (``# earns: 1``) and which exercise is answered honestly beside
it (``# honest: …``, causal_mask if left out): before the attack where that spoils its own process, else after it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from autograder import project
from autograder.grading import judge, source
from autograder.grading.sandbox import Gone, Limits, Sandbox, SandboxError

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.sandboxed,
]

ATTACKS = sorted((Path(__file__).parent.parent / "hostile" / "attacks").glob("*.py"))
LIMITS = Limits(seconds=3, seconds_in_all=60, memory=2**30)
LECTURE = source.read(project.SOLUTIONS / "01_tensors.py")
REFERENCE = {exercise.name: exercise.solution for exercise in LECTURE.exercises}
WORTH = {exercise.name: exercise.points for exercise in LECTURE.exercises}
CANARY = "canary-5f1e0c"


@dataclass
class Attack:
    tries: str
    earns: float
    honest: str
    cells: dict[str, str]
    not_promised: bool


def read(path: Path) -> Attack:
    head, *cells = re.split(r"^# %% ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = dict(re.findall(r"^# (\w[\w ]*): (.+)$", head, re.MULTILINE))
    answers = {name: text for name, _, text in (cell.partition("\n") for cell in cells)}
    tries = head.splitlines()[0].removeprefix("# ")
    return Attack(tries, float(said["earns"]), said.get("honest", "causal_mask"), answers, "not promised" in said)


class Boxes:
    """One sandbox for all attacks, renewed where one was lost, so that the next test says something too."""

    def __init__(self) -> None:
        self.box = Sandbox(LIMITS)
        self.own = descendants(self.box._process.pid)

    def renew(self) -> None:
        self.box.close()
        self.__init__()  # type: ignore[misc]


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    secret = project.ROOT / "build" / f"{CANARY}.ipynb"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text(CANARY)
    os.environ["COURSE_CANARY"] = CANARY
    found = Boxes()
    yield found
    found.box.close()
    del os.environ["COURSE_CANARY"]
    secret.unlink(missing_ok=True)


def descendants(ancestor: int) -> set[int]:
    """The processes that come from one, seen from outside; those that have ended and wait to be reaped left out."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != "Z":
            parents[int(path.parent.name)] = int(parent)
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


LEFT = """
import os

left = [place + "/" + name for place in ("/tmp", "/dev/shm") for name in os.listdir(place)]
for name in ("/", "/course", "/course/autograder", "/dev"):
    left += [name + "/" + found for found in os.listdir(name) if "attack" in found or found in ("torch.py", "x")]
raise RuntimeError(f"left: {left}")
"""


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_an_attack(path: Path, boxes: Boxes) -> None:
    attack = read(path)
    assert attack.honest not in attack.cells
    answers = {attack.honest: REFERENCE[attack.honest], **attack.cells}
    try:
        grading = judge.grade(LECTURE, answers, boxes.box)
        with boxes.box.conversation() as talk:
            left = talk.ask(Run(LEFT, "left"))
    except BaseException:
        boxes.renew()
        raise

    marks = {mark.exercise: mark for mark in grading.marks}
    said = "\n".join([*(m.message + str(m.mistake) for m in grading.marks), *grading.notes])
    assert [mark.exercise for mark in grading.marks] == [exercise.name for exercise in LECTURE.exercises]
    assert marks[attack.honest].points == WORTH[attack.honest], f"honest work lost its points: {said}"
    earned = sum(mark.points for mark in grading.marks) - marks[attack.honest].points
    assert earned <= attack.earns, f"paid: {said}"
    if attack.not_promised:
        assert grading.notes, "what is not promised must be shown to a person"

    assert CANARY not in said and "HIDDEN TESTS" not in said and "won:" not in said, said
    assert len(said) < 40_000 and all(c == "\n" or c.isprintable() for c in said), "not for a terminal or a file"
    said.encode("utf-8")
    assert left["error"] == "RuntimeError: left: []"
    assert descendants(boxes.box._process.pid) == boxes.own, "a process survives"


def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 60
    assert len({read(path).tries for path in ATTACKS}) == len(ATTACKS)


def test_honest_work_is_paid_between_attacks(boxes: Boxes) -> None:
    grading = judge.grade(LECTURE, REFERENCE, boxes.box)
    assert {mark.exercise: mark.points for mark in grading.marks} == WORTH and grading.notes == []


class Unlucky:
    """A sandbox in which given cells end the process, each in the conversation with that number."""

    def __init__(self, box: Sandbox, ends: set[tuple[int, str]]) -> None:
        self.box, self.ends, self.limits, self.count = box, ends, box.limits, 0

    @contextmanager
    def conversation(self, end: float | None = None) -> Iterator["Unlucky"]:
        self.count += 1
        with self.box.conversation(end) as talk:
            self.talk, self.ended = talk, ""
            yield self

    def ask(self, request: dict[str, Any], seconds: float | None = None) -> Any:
        if (self.count, request.get("title")) in self.ends:
            raise Gone("the process ended")
        return self.talk.ask(request, seconds)

    def asked(self) -> Any:
        return self.talk.asked()


def test_a_cell_that_ends_its_second_process_keeps_its_points_and_takes_nobody_elses(boxes: Boxes) -> None:
    box = Unlucky(boxes.box, {(1, "copy_cost"), (2, "tensor_bytes")})
    grading = judge.grade(LECTURE, REFERENCE, cast(Sandbox, box))
    assert {mark.exercise: mark.points for mark in grading.marks} == {**WORTH, "copy_cost": 0}
    assert grading.notes == ["copy_cost: the process ended", "tensor_bytes: the process ended"]


def test_a_sandbox_that_fails_in_our_own_cells_is_no_zero(boxes: Boxes) -> None:
    with pytest.raises(SandboxError, match="before it came to the student's code"):
        judge.grade(LECTURE, REFERENCE, cast(Sandbox, Unlucky(boxes.box, {(1, "setup")})))


def test_a_copy_that_is_reported_as_a_view_is_none(boxes: Boxes) -> None:
    lecture = source.read(project.SOLUTIONS / "04_einops.py")
    honest = next(exercise.solution for exercise in lecture.exercises if exercise.name == "split_heads")
    copies = honest.replace("h=heads)", "h=heads).contiguous()")
    forged = f"{copies}\n" + (
        "import dataclasses\nimport course_utils.testing as testing\nreal = testing.witness\n"
        "testing.witness = lambda *given: dataclasses.replace(real(*given), shares=[0])"
    )
    assert copies != honest
    for text, points in ((honest, 2.0), (copies, 0.0), (forged, 0.0)):
        marks = {mark.exercise: mark for mark in judge.grade(lecture, {"split_heads": text}, boxes.box).marks}
        assert marks["split_heads"].points == points, marks["split_heads"].message
    assert "splitting needs no copy" in marks["split_heads"].message


def test_time_in_all_is_for_the_whole_submission() -> None:
    slow = {name: "import time\ntime.sleep(1000)" for name in WORTH}
    with Sandbox(Limits(seconds=0.5, seconds_in_all=1.2)) as box:
        grading = judge.grade(LECTURE, slow, box)
    assert [mark.points for mark in grading.marks] == [0] * len(WORTH)
    assert "no time was left" in grading.notes[-1]


def test_what_takes_too_much_memory_is_told_so(boxes: Boxes) -> None:
    attack = next(read(path) for path in ATTACKS if path.stem == "many_small_floods")
    notes = judge.grade(LECTURE, attack.cells, boxes.box).notes
    assert any("more than 1,024 MiB of memory" in note for note in notes), notes


def test_time_stretches_where_a_process_waits_for_a_processor_and_only_there() -> None:
    """Beside another process on the same processor, one that works gets more time; one that sleeps does not."""
    processor = min(os.sched_getaffinity(0))
    pin = f"import os, time\nos.sched_setaffinity(0, {{{processor}}})\n"
    rival = subprocess.Popen([sys.executable, "-c", f"{pin}while True: pass"])
    try:
        with Sandbox(Limits(seconds=1)) as box, box.conversation() as talk:
            works = f"{pin}while time.process_time() < 0.6: pass\nprint('done')"
            assert talk.ask(Run(works, "works")) == {"error": None, "printed": "done\n"}
    finally:
        rival.kill()
        rival.wait()
