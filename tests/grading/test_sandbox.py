"""Where a sandbox is refused: a place that submissions could read, and a root that may not make one."""

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from autograder import project
from autograder.authoring import checks
from autograder.grading import conversation, judge, sandbox, source
from autograder.grading.exercises import Cell
from autograder.inside.limits import Limits
from autograder.inside.messages import Call, Names, Ran, ReadNames, Run, Seen
from autograder.records import grade
from autograder.records.folder import ClassFolder
from course_utils.testing import wire

NAME = "01_tensors"


@pytest.mark.parametrize("place", ["prefix", "base_prefix"])
def test_a_project_inside_the_folder_of_this_python_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `python -m venv .` in the project: what is bound for Python's sake would bring the solutions along."""
    monkeypatch.setattr(sys, place, str(project.ROOT))
    with pytest.raises(sandbox.SandboxError, match=r"is in .*which every submission can read(.|\n)*→ move it"):
        sandbox.Wall(False)


@pytest.mark.parametrize("shown", ["autograder/inside", "course_utils"])
def test_a_class_in_a_folder_that_the_sandbox_shows_is_refused(shown: str) -> None:
    with pytest.raises(sandbox.SandboxError, match="every submission can read"):
        sandbox.require_hidden(project.ROOT / shown / "class")
    sandbox.require_hidden(project.ROOT / "class")


def test_a_link_into_a_readable_place_is_followed_and_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(project.ROOT)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    with pytest.raises(sandbox.SandboxError, match="every submission can read"):
        sandbox.require_hidden(project.ROOT)
    (tmp_path / "class").symlink_to("/usr/share")
    with pytest.raises(sandbox.SandboxError, match="every submission can read"):
        sandbox.require_hidden(tmp_path / "class" / "mine")


@pytest.mark.parametrize(
    "part",
    ["results", "hidden", "decisions", "attempts", "exports", "reports", "submitted", "submitted/ada", "gradebook.db",
     "submitted/ada/01_tensors", "attempts/ada/01_tensors", "autograded/ada", "feedback/ada", "class.json"],
)  # fmt: skip
def test_a_class_of_which_a_part_is_a_link_into_a_readable_place_is_refused(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    course = ClassFolder(tmp_path / "class")
    (course.root / part).parent.mkdir(parents=True)
    (course.root / "feedback" / "bob").mkdir(parents=True, exist_ok=True)
    (course.root / "feedback" / "bob" / "01_tensors").symlink_to("01_tensors")  # to itself
    for place in course.places():
        sandbox.require_hidden(place)
    (course.root / part).symlink_to(tmp_path / "python" / "part", target_is_directory=True)
    with pytest.raises(sandbox.SandboxError, match="every submission can read"):
        grade.grade_class(course, "01_tensors", workers=1)


def test_a_gradebook_in_a_readable_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    (tmp_path / "class").mkdir()
    with pytest.raises(sandbox.SandboxError, match="every submission can read"):
        grade.grade_class(
            ClassFolder(tmp_path / "class"), NAME, workers=1, database=f"sqlite:///{tmp_path}/python/gradebook.db"
        )


@pytest.mark.parametrize("hidden", ["/tmp", "/dev/shm", "/proc"])
def test_a_python_that_the_sandbox_would_hide_is_refused(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", f"{hidden}/venv")
    with pytest.raises(sandbox.SandboxError, match="is private to each submission"):
        sandbox.Wall(False)


def test_a_class_where_submissions_could_read_it_is_not_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course = tmp_path / "class"
    path = project.notebook_path(course / "submitted" / "ada", NAME)
    path.parent.mkdir(parents=True)
    path.write_text('{"cells": [')
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(sandbox.SandboxError, match=f"{course} is in {tmp_path}, which every submission can read"):
        grade.grade_class(ClassFolder(course), NAME, workers=0)
    assert not (course / "results").exists()
    assert grade.grade_class(ClassFolder(course), NAME, workers=0, unsafe=True, database=None).graded == ("ada",)


@pytest.mark.parametrize("moved", ["a link", "submitted", "feedback", "gradebook"])
def test_a_class_that_keeps_something_where_submissions_could_read_it_is_not_graded(
    moved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nbgrader's configuration puts elsewhere counts too."""
    course, readable = tmp_path / "class", tmp_path / "readable"
    course.mkdir()
    submitted = readable if moved in ("a link", "submitted") else course / "submitted"
    (submitted / "ada" / NAME).mkdir(parents=True)
    (submitted / "ada" / NAME / f"{NAME}.ipynb").write_text('{"cells": [')
    setting = f"{moved}_directory = {str(readable)!r}"
    if moved == "a link":
        (course / "submitted").symlink_to(readable)
        setting = "course_id = 'linked'"
    elif moved == "gradebook":
        setting = f"db_url = 'sqlite:///{readable}/book.db'"
    (course / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.{setting}\n")
    monkeypatch.setattr(sys, "base_prefix", str(readable))
    with pytest.raises(sandbox.SandboxError, match=f"{readable}, which every submission can read"):
        grade.grade_class(ClassFolder(course), NAME, workers=0)


@pytest.mark.sandboxed
def test_a_submission_is_nobody_and_alone_in_its_network() -> None:
    """A socket without a file is reached from everywhere in its network, whatever files are hidden."""
    with socket.socket(socket.AF_UNIX) as listener, sandbox.Sandbox() as box, box.conversation() as talk:
        listener.bind(f"\0course-{os.getpid()}")
        listener.listen()
        with socket.socket(socket.AF_UNIX) as here:
            here.connect(listener.getsockname())
        reach = f"import socket\nsocket.socket(socket.AF_UNIX).connect({listener.getsockname()!r})"
        assert talk.ask(Run(reach)) == Ran("ConnectionRefusedError: [Errno 111] Connection refused", "")
        who = talk.ask(Run("import getpass, os\nprint(os.getuid(), getpass.getuser())"))
        assert isinstance(who, Ran) and who.printed.split() == ["65534", "nobody"]


@pytest.mark.sandboxed
def test_a_submissions_memory_does_not_say_what_is_mounted_where() -> None:
    """What its process has read and freed before any code of a student's runs, it can search for."""
    told = (b" - tmpfs ", bytes(project.ROOT))  # the first is from a line of mountinfo
    with sandbox.Sandbox() as box, box.conversation() as talk:
        assert talk.ask(Run("x = 1")) == Ran("", "")
        submission = psutil.Process(box._process.pid).children(recursive=True)[-1].pid
        found: set[bytes] = set()
        try:
            with open(f"/proc/{submission}/mem", "rb", 0) as memory:
                for line in Path(f"/proc/{submission}/maps").read_text().splitlines():
                    if " rw" in line and (ours := re.match(r"([0-9a-f]+)-([0-9a-f]+) rw[^/]*$", line)):
                        start, end = (int(part, 16) for part in ours.groups())
                        memory.seek(start)
                        content = memory.read(end - start)
                        found |= {each for each in told if each in content}
        except PermissionError:
            pytest.skip("this user may not read another process's memory")
    assert not found


@pytest.mark.sandboxed
def test_a_submission_changes_nothing_that_another_sees_and_has_no_terminal_of_ours() -> None:
    """The command is started from a terminal, which bubblewrap knows how to show. All is read-only that is mounted for
    a later submission, too; only so do its times and modes stay."""
    (ours, terminal), output = os.openpty(), os.dup(1)
    os.dup2(terminal, 1)
    try:
        box = sandbox.Sandbox()
    finally:
        os.dup2(output, 1)
        for descriptor in (ours, terminal, output):
            os.close(descriptor)
    with box, box.conversation() as talk:
        # More commands than it has terminals, each of which gets one.
        ran = talk.ask(Run("import os\nfor _ in range(20):\n    !tty\nprint(os.path.exists('/dev/console'))"))
        below = psutil.Process(box._process.pid).children(recursive=True)
        mounts = [Path(f"/proc/{each.pid}/mountinfo").read_text().splitlines() for each in (below[1], below[-1])]
    assert isinstance(ran, Ran) and set(ran.printed.splitlines()) == {"/dev/pts/0", "False"}
    server, own = ({(line.split()[2], line.split()[5][:2]) for line in lines} for lines in mounts)
    assert len(below) == 4 and {(device, "rw") for device, _ in server} & own == set()


@pytest.mark.sandboxed
def test_the_sandbox_shows_of_this_project_what_runs_inside_it_and_nothing_else() -> None:
    look = (
        "import os\nfor folder, folders, files in os.walk('/course'):\n"
        "    folders[:] = [name for name in folders if name not in ('__pycache__', 'inside', 'course_utils')]\n"
        "    print(folder, sorted(os.listdir(folder)))\n"
        f"print(os.path.exists({str(project.SOLUTIONS)!r}), sorted(os.listdir('/course/autograder/inside')))"
    )
    inside = sorted(path.name for path in (project.ROOT / "autograder" / "inside").iterdir())
    with sandbox.Sandbox(Limits(seconds=60)) as box, box.conversation() as talk:
        ran = talk.ask(Run(look))
    assert isinstance(ran, Ran) and ran.error == ""
    assert ran.printed.splitlines() == [
        "/course ['autograder', 'course_utils']",
        "/course/autograder ['inside']",
        f"False {inside}",
    ]


@pytest.mark.sandboxed
def test_nothing_that_a_submission_can_read_says_where_the_course_is_installed() -> None:
    """In particular nothing that an installation notes: `*.pth`, `direct_url.json`, compiled modules."""
    environment = project.ROOT if Path(sys.prefix).is_relative_to(project.ROOT) else Path(sys.prefix)
    look = f"""
import os, sys

wanted = [{str(project.ROOT)!r}.encode(), {str(environment)!r}.encode()]
found = [sys.executable, sys.prefix, *sys.path, *map(str, os.environ.items())]
found = [each for each in found if any(word in each.encode() for word in wanted)]
for top in ("/environment", "/course", "/proc", "/etc", "/tmp", "/dev"):
    for folder, _, files in os.walk(top):
        for name in files:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read(2**22) if os.path.isfile(file.name) else b""
            except OSError:
                continue
            if any(word in text for word in wanted):
                found.append(file.name)
print(found)
"""
    with sandbox.Sandbox(Limits(seconds=120)) as box, box.conversation() as talk:
        assert talk.ask(Run(look)) == Ran("", "[]\n")


@pytest.mark.sandboxed
def test_python_may_be_called_by_a_path_that_the_sandbox_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `../.venv/bin/python -m autograder.cli …` in docs/, a folder that is not in the sandbox."""
    program = Path(sys.executable)
    monkeypatch.setattr(sys, "executable", f"{program.parent}/elsewhere/../{program.name}")
    with sandbox.Sandbox() as box, box.conversation() as talk:
        assert talk.ask(ReadNames("x = y")) == Names(["x"], ["y"])


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can give a capability up")
@pytest.mark.sandboxed
def test_a_root_without_the_capability_is_told_what_to_do() -> None:
    code = "from autograder.grading import sandbox\nsandbox.Sandbox()"
    command = ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)
    assert "SandboxError: the sandbox did not start" in ran.stderr and "as an ordinary user" in ran.stderr, ran.stderr


@pytest.mark.sandboxed
def test_answers_that_are_too_large_together_cost_their_exercise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "_ANSWERS_LIMIT", 2**25)
    problems = checks.problems(source.read(project.source_path(NAME)))
    answers = {exercise.name: exercise.solution for exercise in problems.exercises}
    floods = {  # large in their messages, and large once they are decoded
        "tensor_bytes": "'x' * 8_000_000",
        "bytes_copied": "[torch.empty(0, device='meta') for _ in range(40_000)]",
        "rms_normalize": "[set() for _ in range(100_000)]",
    }
    answers |= {name: f"import torch\ndef {name}(*_, **__):\n    return {flood}" for name, flood in floods.items()}
    with sandbox.Sandbox() as box:
        marks, notes = judge.grade(problems, problems.answered(answers), box)
    assert {mark.exercise for mark in marks if mark.points < mark.worth} == floods.keys()
    said = {note.partition(" (tested: ")[0] for note in notes}
    assert {f"{name}: its answers are too large" for name in floods} <= said, notes


@pytest.mark.sandboxed
def test_cells_that_answer_with_too_much_together_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "_ANSWERS_LIMIT", 2**25)
    problems = checks.problems(source.read(project.source_path(NAME)))
    *answered, left = problems.exercises
    answers = {exercise.name: exercise.solution for exercise in answered}
    flood = """
from autograder.inside import messages, student
real = student.Notebook._run
async def run(self, source):
    ran = await real(self, source)
    return messages.Ran("x" * 8_000_000, "") if source.startswith("pass") else ran
student.Notebook._run = run
"""
    own = [Cell(text) for text in (flood, *(f"pass  # {n}" for n in range(8)))]
    with sandbox.Sandbox() as box:
        marks, notes = judge.grade(problems, [*own, *problems.answered(answers)], box)
    assert [mark.exercise for mark in marks if mark.points < mark.worth] == [left.name], (marks, notes)
    assert sum("was left out: its answers are too large" in note for note in notes) >= 3, notes


@pytest.mark.sandboxed
def test_what_cannot_be_compared_costs_its_exercise_alone_and_a_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("nobody thought of this")

    problems = checks.problems(source.read(project.source_path(NAME)))
    answers = {exercise.name: exercise.solution for exercise in problems.exercises}
    answers["tensor_bytes"] = "def tensor_bytes(x, dtype=None):\n    return 'odd'"
    real = judge.outcome
    monkeypatch.setattr(judge, "outcome", lambda seen, how: fails() if seen.value == "odd" else real(seen, how))
    with sandbox.Sandbox() as box:
        marks, notes = judge.grade(problems, problems.answered(answers), box)
    assert [mark.exercise for mark in marks if mark.points < mark.worth] == ["tensor_bytes"]
    assert any("nobody thought of this" in note for note in notes)


def test_nobody_makes_the_memory_of_arguments_shorter_or_longer() -> None:
    shared = conversation.Shared()
    try:
        for size in (0, wire.LIMIT - 4096, wire.LIMIT + 4096):
            with pytest.raises(PermissionError):
                os.ftruncate(shared.descriptor, size)
        with pytest.raises(PermissionError):  # what would keep the judge from writing
            fcntl.fcntl(shared.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    finally:
        os.close(shared.descriptor)


def test_without_isolation_no_memfd_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with sandbox.Sandbox(unsafe=True) as box, box.conversation() as talk:
        assert talk.ask(Run("def double(x):\n    return x.mul_(2)")) == Ran("", "")
        seen = talk.ask(Call("double", (torch.ones(3),), {}))
        asked = talk.asked()
        assert isinstance(seen, Seen) and isinstance(asked, Call)
        assert seen.observation.value.tolist() == asked.args[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("share", "lasts"),
    [
        ([1.0], 4.0),  # it had a processor to itself
        ([0.5], 8.0),
        ([0.3, 0.9], 5.7),  # to itself at last: what it was kept waiting before is not forgotten
        ([0.0], 24.0),  # six times, and no more
        ([-1.0], 4.0),  # a process has ended, so that nothing can be said
    ],
)
def test_while_a_request_is_starved_only_its_processor_time_counts(
    monkeypatch: pytest.MonkeyPatch, share: list[float], lasts: float
) -> None:
    now, used, looks, current = 100.0, 5.0, iter(share), share[0]

    def load(deadline: conversation._Deadline) -> tuple[float, bool]:
        nonlocal current
        current = next(looks, share[-1])
        return used, True

    monkeypatch.setattr(conversation._Deadline, "_load", load)
    monkeypatch.setattr(conversation.time, "monotonic", lambda: now)
    deadline = conversation._Deadline(4.0, 1000.0, 0)
    with pytest.raises(conversation.Gone, match="longer than 4 seconds"):
        while now < 200:
            deadline.check()
            wait = deadline.left()
            now, used = now + wait, used + current * wait
    assert now - 100 == pytest.approx(lasts, abs=0.4)


@pytest.mark.parametrize(
    ("said", "excused"),
    [
        (["folio_wait_bit_common"], True),
        (["0", "0", "rpc_wait_bit_killable"], True),  # just woken, and asleep again
        (["rwsem_down_read_slowpath"], False),  # a lock, which another of its threads may hold
        (["unheard_of"], False),
        (["0"] * 10, False),
    ],
)
def test_a_wait_counts_as_one_for_a_disk_only_where_the_kernel_has_waits_for_disks(
    said: list[str], excused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(said)
    monkeypatch.setattr(Path, "read_text", lambda path: next(answers))
    assert conversation._for_a_disk(7) is excused


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere this is not called sleep of a disk")
def test_who_waits_for_a_child_to_begin_does_not_wait_for_a_disk(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    opens = f"[(os.POSIX_SPAWN_OPEN, 0, {str(tmp_path / 'pipe')!r}, os.O_RDONLY, 0)]"
    code = f"import os; os.posix_spawn('/bin/true', ['true'], {{}}, file_actions={opens})"
    with subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", code], process_group=0) as above:
        try:
            below = psutil.Process(above.pid).children
            while [each.status() for each in below(recursive=True)] != ["disk-sleep", "sleeping"]:
                time.sleep(0.01)
            assert not conversation._Deadline(5, 100, above.pid)._load()[1]
        finally:
            os.killpg(above.pid, signal.SIGKILL)
