"""Attacks on the grader, one per file in tests/hostile/attacks: none earns more than its honest part or leaves a trace.

The comments at the top of a file say what it tries, what its honest part earns (``# earns: 1``), and which exercise is
answered honestly beside it (``# honest: …``, causal_mask if left out): an earlier one where the attack spoils its own
process, otherwise a later one. ``# told: …`` is a part of what a person reads about it afterwards. An attack on our own
modules needs one, because a module that was renamed would disarm it without anybody noticing.
"""

import ast
import operator
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autograder import demo, project
from autograder.authoring import checks
from autograder.grading import judge, source
from autograder.grading.conversation import Conversation, Gone
from autograder.grading.marks import Mark
from autograder.grading.sandbox import Sandbox, SandboxError
from autograder.inside.limits import Limits
from autograder.inside.messages import Answer, Ran, Request, Run
from course_utils.testing.requirements import Check

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.sandboxed,
]

ATTACKS = sorted((Path(__file__).parent.parent / "hostile" / "attacks").glob("*.py"))
LIMITS = Limits(seconds=3, seconds_in_all=60, memory=2**30)
LECTURE = source.read(project.SOLUTIONS / "01_tensors.py")
REFERENCE = {exercise.name: exercise.solution for exercise in LECTURE.exercises}
MARKER = f"HIDDEN TESTS {secrets.token_hex(16)}"  # the beginning is what attacks look for; no file has the rest


def marked(packed: bytes) -> bytes:
    """Hidden cases whose words begin with the marker. The judge has these, and sends them to no process."""
    check = Check.unpack(packed)
    requirements = (
        replace(each, cases=tuple(replace(case, says=f"{MARKER} {case.says:80}") for case in each.cases))
        for each in check.requirements
    )
    return replace(check, requirements=tuple(requirements)).pack()


PROBLEMS = checks.problems(LECTURE)
PROBLEMS = replace(PROBLEMS, hidden={name: marked(packed) for name, packed in PROBLEMS.hidden.items()})
SOLVED = PROBLEMS.answered(REFERENCE)
WORTH = {exercise.name: exercise.points for exercise in LECTURE.exercises}
CANARY = "canary-5f1e0c"


@dataclass
class Attack:
    tries: str
    earns: float
    honest: str
    told: str
    cells: dict[str, str]
    not_promised: bool


def read(path: Path) -> Attack:
    text = path.read_text(encoding="utf-8")
    head = text.partition("\n# %% ")[0]
    said = dict(re.findall(r"^# (\w[\w ]*): (.+)$", head, re.MULTILINE))
    honest, told = said.get("honest", "causal_mask"), said.get("told", "")
    tries = head.splitlines()[0].removeprefix("# ")
    return Attack(tries, float(said["earns"]), honest, told, demo.cells_of(text), "not promised" in said)


class Boxes:
    """One sandbox for all attacks, renewed where one was lost, so that the next test says something too."""

    def __init__(self, *, group: bool = True) -> None:
        self.group = group
        self.box = Sandbox(LIMITS, group=group)
        self.own = descendants(self.box._process.pid)

    def renew(self) -> None:
        self.box.close()
        self.__init__(group=self.group)  # type: ignore[misc]


@pytest.fixture(scope="module")
def boxes_without_group() -> Iterator[Boxes]:
    found = Boxes(group=False)
    yield found
    found.box.close()


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
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
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
for name in ("/", "/course", "/course/autograder", "/course/autograder/inside", "/course/course_utils", "/dev"):
    left += [name + "/" + found for found in os.listdir(name) if "attack" in found or found in ("torch.py", "x")]
raise RuntimeError(f"left: {left}")
"""


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.stem)
def test_an_attack_earns_only_its_honest_part_and_leaves_nothing(path: Path, boxes: Boxes) -> None:
    attempt(read(path), boxes)


@pytest.mark.parametrize(
    "path",
    [path for path in ATTACKS if re.search("flood|memory|bomb|pages", path.stem)],
    ids=lambda path: path.stem,
)
def test_an_attack_on_memory_fails_without_a_control_group_too(path: Path, boxes_without_group: Boxes) -> None:
    attempt(read(path), boxes_without_group)


def attempt(attack: Attack, boxes: Boxes) -> None:
    assert attack.honest not in attack.cells
    answers = {attack.honest: REFERENCE[attack.honest], **attack.cells}
    # On a busy machine, three seconds can be over before the memory is full.
    boxes.box.limits = replace(LIMITS, seconds=20) if attack.told == "of memory" else LIMITS
    try:
        given, notes = judge.grade(PROBLEMS, PROBLEMS.answered(answers), boxes.box)
        with boxes.box.conversation() as talk:
            left = talk.ask(Run(LEFT))
    except BaseException:
        boxes.renew()
        raise

    marks = {mark.exercise: mark for mark in given}
    said = "\n".join([*(mark.message + str(mark.mistake) for mark in given), *notes])
    assert [mark.exercise for mark in given] == [exercise.name for exercise in LECTURE.exercises]
    assert marks[attack.honest].points == WORTH[attack.honest], f"honest work lost its points: {said}"
    earned = sum(mark.points for mark in given) - marks[attack.honest].points
    assert earned <= attack.earns, f"paid: {said}"
    assert attack.told in said, f"it did not do what it tries: {said}"
    if attack.not_promised:
        assert notes, "what is not promised must be shown to a person"

    assert CANARY not in said and "HIDDEN TESTS" not in said and "won:" not in said, said
    assert len(said) < 40_000 and all(c == "\n" or c.isprintable() for c in said), "not for a terminal or a file"
    said.encode("utf-8")
    assert left == Ran("RuntimeError: left: []", "")
    assert descendants(boxes.box._process.pid) == boxes.own, "a process survives"


@pytest.mark.parametrize("name", ["frames", "gc_search", "ctypes_memory"])
def test_an_attack_that_looks_for_hidden_cases_finds_those_of_the_process_it_is_in(name: str) -> None:
    case = Check.unpack(PROBLEMS.hidden["tensor_bytes"]).requirements[0].cases[0]
    names: dict[str, Any] = {}
    exec(next(read(path) for path in ATTACKS if path.stem == name).cells["tensor_bytes"], names)
    with pytest.raises(OSError, match=f"won: .*{MARKER}"):
        names["tensor_bytes"](*case.args)


def links_in(text: str) -> list[tuple[str, str]]:
    """The names of tests and attacks that a page links to, with their targets."""
    return re.findall(r"\[`([^`]+)`\]\((\.\./tests/[^)#]+)\)", text)


def names_in(text: str) -> set[str]:
    """What a page shows as code outside of links."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"\[`[^`]+`\]", "", text)))


def test_what_the_threat_model_names_exists() -> None:
    """Each test and attack is a link to its file, or to the folder of attacks for those whose names begin alike."""
    docs = project.ROOT / "docs"
    page = (docs / "threat-model.md").read_text(encoding="utf-8")
    links = links_in(page)
    missing = set()
    for name, target in links:
        path = (docs / target).resolve()
        if name.startswith("test_"):
            found = path.is_file() and re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        elif "/" in name:
            found = path == project.ROOT / name and path.exists()
        else:
            folder = path if "*" in name else path.parent
            found = folder == ATTACKS[0].parent and any(fnmatch(attack.stem, name) for attack in ATTACKS)
            found = found and (path == folder or path.stem == name)
        if not found:
            missing.add((name, target))
    assert len(links) >= 100 and missing == set()

    unlinked = names_in(page)
    attacks = {attack.stem for attack in ATTACKS}
    assert {name for name in unlinked if name.startswith("test_") or name in attacks} == set()
    ours = {name for name in unlinked if re.match(r"(?:autograder|course_utils|tests|docs)/", name)}
    assert len(ours) >= 4 and {name for name in ours if not (project.ROOT / name).exists()} == set()
    table = page.partition("| promise |")[2].partition("## ")[0]
    tests = [row.rpartition(" | ")[2] for row in table.splitlines() if row.startswith("| ")]
    assert len(tests) >= 30
    assert [cell for cell in tests if not links_in(cell) or names_in(cell)] == []


def test_each_of_at_least_sixty_attacks_tries_something_else() -> None:
    assert len(ATTACKS) >= 60
    assert len({read(path).tries for path in ATTACKS}) == len(ATTACKS)


ON_OURS = [path for path in ATTACKS if re.search(r"(?m)^(?:import|from) (?:autograder|course_utils)", path.read_text())]


def test_an_attack_on_our_modules_says_how_to_tell_that_it_took_place() -> None:
    assert len(ON_OURS) >= 20 and [path.stem for path in ON_OURS if not read(path).told] == []


def test_what_attacks_name_in_our_modules_exists() -> None:
    """``wire.pack``, or ``module.compare`` where an attack goes through all modules of the package. If it were renamed,
    the attack would set a name that nobody reads.
    """
    package = [module for name, module in sys.modules.items() if name.startswith("course_utils.testing")]
    anywhere = SimpleNamespace(**{name: value for module in package for name, value in vars(module).items()})
    looked, missing = 0, []
    for path in ON_OURS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names: dict[str, Any] = {}
        exec("\n".join(line for line in imports if re.search("autograder|course_utils", line)), names)
        names["module"] = anywhere
        for dotted in {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}:
            first, _, rest = dotted.partition(".")
            if first in names and re.fullmatch(r"[\w.]+", rest):
                looked += 1
                try:
                    operator.attrgetter(rest)(names[first])
                except AttributeError:
                    missing.append((path.stem, dotted))
    assert looked >= 30 and missing == []


def test_honest_work_is_paid_between_attacks(boxes: Boxes) -> None:
    marks, notes = judge.grade(PROBLEMS, SOLVED, boxes.box)
    assert {mark.exercise: mark.points for mark in marks} == WORTH and notes == []


@pytest.mark.parametrize("kind", ["", "test_"])
def test_cells_with_exchanged_names_cost_at_most_their_own_exercises(kind: str, boxes: Boxes) -> None:
    """Of two answers, nothing: both have run where the first is tested. Of two test cells, what is tested too early."""
    first, second = f"{kind}tensor_bytes", f"{kind}bytes_copied"
    exchanged = {first: second, second: first}
    cells = [replace(cell, name=exchanged.get(cell.name, cell.name)) for cell in SOLVED]
    marks, notes = judge.grade(PROBLEMS, cells, boxes.box)
    assert {mark.exercise: mark.points for mark in marks} == {**WORTH, **({"bytes_copied": 0} if kind else {})}
    assert {note.partition(":")[0] for note in notes} == ({"bytes_copied"} if kind else set())


class Unlucky:
    """A sandbox in which cells with given text end the process, each in the conversation with that number."""

    def __init__(self, box: Sandbox, ends: set[tuple[int, str]]) -> None:
        self.box, self.ends, self.limits, self.count = box, ends, box.limits, 0
        self.talk: Conversation

    @contextmanager
    def conversation(self, end: float | None = None) -> Iterator["Unlucky"]:
        self.count += 1
        with self.box.conversation(end) as talk:
            self.talk, self.ended = talk, ""
            yield self

    def ask(self, request: Request, seconds: float | None = None) -> Answer:
        if isinstance(request, Run) and (self.count, request.source) in self.ends:
            raise Gone("the process ended")
        return self.talk.ask(request, seconds)

    def asked(self) -> Request:
        return self.talk.asked()

    @property
    def received(self) -> int:
        return self.talk.received


def test_a_cell_that_ends_its_second_process_keeps_its_points_and_takes_nobody_elses(boxes: Boxes) -> None:
    box = Unlucky(boxes.box, {(1, REFERENCE["copy_cost"]), (2, REFERENCE["tensor_bytes"])})
    marks, notes = judge.grade(PROBLEMS, SOLVED, cast(Sandbox, box))
    assert {mark.exercise: mark.points for mark in marks} == {**WORTH, "copy_cost": 0}
    assert notes == ["copy_cost: the process ended", "the cell tensor_bytes was left out: the process ended"]


def test_a_sandbox_that_fails_in_our_own_cells_is_no_zero(boxes: Boxes) -> None:
    with pytest.raises(SandboxError, match="before any of the student's code ran"):
        judge.grade(PROBLEMS, SOLVED, cast(Sandbox, Unlucky(boxes.box, {(1, SOLVED[0].text)})))


def test_a_copy_that_claims_to_be_a_view_is_found_out(boxes: Boxes) -> None:
    lecture = source.read(project.SOLUTIONS / "04_einops.py")
    honest = next(exercise.solution for exercise in lecture.exercises if exercise.name == "split_heads")
    copies = honest.replace("h=heads)", "h=heads).contiguous()")
    forged = f"{copies}\n" + (
        "import dataclasses\nimport course_utils.testing as testing\nreal = testing.witness\n"
        "testing.witness = lambda *given: dataclasses.replace(real(*given), shares=[0])"
    )
    assert copies != honest

    def grade(text: str) -> list[Mark]:
        return judge.grade(lecture.problems, lecture.problems.answered({"split_heads": text}), boxes.box)[0]

    for text, points in ((honest, 2.0), (copies, 1.5), (forged, 1.5)):  # without the line for the shared storage
        found = {mark.exercise: mark for mark in grade(text)}
        assert found["split_heads"].points == points, found["split_heads"].message
        assert ("splitting needs no copy" in found["split_heads"].message) is (points < 2)


def test_seconds_in_all_end_a_submission_whose_every_cell_sleeps() -> None:
    slow = {name: "import time\ntime.sleep(1000)" for name in WORTH}
    with Sandbox(Limits(seconds=0.5, seconds_in_all=1.2)) as box:
        marks, notes = judge.grade(PROBLEMS, PROBLEMS.answered(slow), box)
    assert [mark.points for mark in marks] == [0] * len(WORTH)
    assert "no time was left" in notes[-1]


def test_a_note_says_that_a_submission_took_too_much_memory(boxes: Boxes) -> None:
    attack = next(read(path) for path in ATTACKS if path.stem == "many_small_floods")
    _, notes = judge.grade(PROBLEMS, PROBLEMS.answered(attack.cells), boxes.box)
    assert any("more than 1,024 MiB of memory" in note for note in notes), notes


def test_a_request_gets_more_time_while_its_process_waits_for_a_processor() -> None:
    """It computes for 0.6 s of a limit of 1 s, beside another process on the same processor."""
    processor = min(os.sched_getaffinity(0))
    pin = f"import os, time\nos.sched_setaffinity(0, {{{processor}}})\n"
    rival = subprocess.Popen([sys.executable, "-c", f"{pin}while True: pass"])
    try:
        with Sandbox(Limits(seconds=1)) as box, box.conversation() as talk:
            works = f"{pin}while time.process_time() < 0.6: pass\nprint('done')"
            assert talk.ask(Run(works)) == Ran("", "done\n")
    finally:
        rival.kill()
        rival.wait()
