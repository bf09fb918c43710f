"""No grade is lost: whatever dies, and whenever, the same command ends with what an undisturbed run gives."""

import collections
import contextlib
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from classroom import CRASH, FIRST, NAME, SECOND, files, hand_in, scores

from autograder import project
from autograder.grading.marks import State
from autograder.records import results
from autograder.records.folder import ClassFolder

pytestmark = [pytest.mark.sandboxed, pytest.mark.hostile]

KINDS = ("command", "worker", "bwrap", "first process", "fork server", "waiter", "student")
WEIGHTS = (1, 1, 1, 2, 5, 10)  # of all but the command: a worker takes seconds to start again, a student none

# Every Python that finds this in a folder of PYTHONPATH imports it as it starts: the command does, and so do its
# workers, since -P takes no more than their working directory off the path; what is in a sandbox does not. It notes
# each submission that a worker begins and each result that is written.
HOOK = """
import os
import sys

def note(what, student):
    with open(os.environ["COURSE_NOTES"], "a") as notes:
        notes.write(f"{what} {student}\\n")

if any("autograder" in word for word in sys.orig_argv):
    from autograder.grading import worker
    from autograder.records import results

    student, judged = "", None

    def _grade(task, *arguments, real=worker._grade):
        from autograder.grading import judge  # only now, because it imports PyTorch

        global student, judged
        student = task.student
        if judged is None:
            judged, judge.grade = judge.grade, grade
        return real(task, *arguments)

    def grade(*arguments):
        note("begun", student)
        return judged(*arguments)

    def write(folder, result, real=results.write):
        real(folder, result)
        note("written", result.student)

    worker._grade, results.write = _grade, write
"""


def parents() -> dict[int, int]:
    """Each process and its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def below(top: int, parent: dict[int, int]) -> list[int]:
    """The processes that came from one, each after its parent."""
    found = [top]
    for process in found:  # grows on the way
        found += [child for child, its in parent.items() if its == process]
    return found[1:]


def tree(command: int) -> dict[str, list[int]]:
    """The living processes of a running command, by kind."""
    parent = parents()
    kind = {command: "command"}
    after = {"bwrap": "first process", "first process": "fork server", "fork server": "waiter", "waiter": "student"}
    for process in below(command, parent):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes()
            above = kind.get(parent[process], "")
            if above == "command" and b"\0autograder.grading.pool\0" in words:
                kind[process] = "worker"
            elif (above == "worker" and words.startswith(b"bwrap\0")) or words.partition(b"\0")[0].endswith(b"/bwrap"):
                kind[process] = after.get(above, "bwrap") if above == "bwrap" else "bwrap"
            elif above in after and words:
                kind[process] = after[above]
    found: dict[str, list[int]] = {name: [] for name in KINDS}
    for process, name in kind.items():
        found[name].append(process)
    return found


@pytest.fixture
def orphans() -> Iterator[None]:
    """What is left of a process that was killed becomes ours, and so can be found."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
    yield
    libc.prctl(36, 0, 0, 0, 0)


def none_left(known: set[int], seconds: float) -> list[str]:
    """The command lines of our processes that live on after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        left = []
        for process in set(below(os.getpid(), parents())) - known:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    left.append(Path(f"/proc/{process}/cmdline").read_text()[:200])
                else:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(process, os.WNOHANG)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def class_of(course: Path, size: int) -> None:
    kinds = ({}, {FIRST.name: CRASH}, {SECOND.name: SECOND.stub}, {FIRST.name: "raise ValueError('λ')"})
    for number in range(size):
        hand_in(course, f"s{number:02}", **kinds[number % 4])


def noted(notes: Path) -> collections.Counter[str]:
    return collections.Counter(line.split()[0] for line in notes.read_text().splitlines())


@pytest.mark.timeout(3600)
def test_sigkills_at_random_moments_lose_no_result_and_repeat_none(tmp_path: Path, orphans: None) -> None:
    """Any process below the command, at any moment; and the command itself, while it starts, grades, or derives.

    ``COURSE_KILLS`` says how many, ``COURSE_KILL_SEED`` which ones.
    """
    course, size, workers = tmp_path / "class", 96, 2
    class_of(course, size)
    undisturbed = Path(shutil.copytree(course, tmp_path / "undisturbed"))
    hooks, notes, said = (tmp_path / name for name in ("hooks", "notes", "said"))
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(HOOK)
    notes.touch()
    environment = {**os.environ, "PYTHONPATH": f"{hooks}{os.pathsep}{project.ROOT}", "COURSE_NOTES": str(notes)}
    known = set(below(os.getpid(), parents()))

    def grade(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "autograder.cli", "grade", str(folder), NAME, "--workers", str(workers)]
        with open(said, "wb") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, cwd=tmp_path, env=environment)

    def finished(folder: Path = course) -> dict[str, tuple[int, int]]:
        kept = [path for path in (folder / "results" / NAME).glob("[!.]*") if path.read_bytes() == wanted[path.name]]
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in kept}

    # How long it takes here to begin, and to end when all are graded.
    started = time.monotonic()
    run = grade(undisturbed)
    begun = graded = 0.0
    while run.poll() is None:
        if not begun and noted(notes)["begun"]:
            begun = time.monotonic() - started
        if not graded and noted(notes)["written"] == size:
            graded = time.monotonic()
        time.sleep(0.02)
    closing = time.monotonic() - graded
    grace = 10 + 2 * begun  # a worker that is still importing sees that its parent is gone when it is done
    assert run.returncode == 0, said.read_text()
    wanted = files(undisturbed)
    assert len(wanted) == size and noted(notes) == {"begun": size, "written": size} and none_left(known, grace) == []
    notes.write_text("")

    seed = int(os.environ.get("COURSE_KILL_SEED", time.time_ns() % 10**6))
    rounds = int(os.environ.get("COURSE_KILLS", "200"))
    chance = random.Random(seed)
    killed: collections.Counter[str] = collections.Counter()
    moments: collections.Counter[str] = collections.Counter()
    failed_here = runs = 0
    while killed.total() < rounds or killed["command"] < rounds // 13:
        runs += 1
        done = sorted(finished())
        for name in chance.sample(done, min(len(done), max(0, len(done) - size // 3))):  # something to do
            (course / "results" / NAME / name).unlink()
        if chance.random() < 0.5:
            (course / "gradebook.db").unlink(missing_ok=True)
        before, so_far = finished(), noted(notes)["begun"]
        moment = chance.choice(["start", "middle", "end"])
        left = chance.randrange(2) if moment == "start" else chance.randrange(16, 40)
        run = grade(course)
        if chance.random() < 0.7:
            while moment != "start" and run.poll() is None and noted(notes)["begun"] == so_far:
                time.sleep(0.05)
        while left and run.poll() is None and len(finished()) < size:
            time.sleep(chance.random() * (begun if moment == "start" else 0.4))
            (kind,) = chance.choices(KINDS[1:], WEIGHTS)
            if there := tree(run.pid)[kind]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(there), signal.SIGKILL)
                    killed[kind] += 1
            left -= 1
        while moment == "end" and run.poll() is None and len(finished()) < size:
            time.sleep(0.02)
        time.sleep(chance.random() * {"start": begun, "middle": 1.0, "end": closing}[moment])
        if run.poll() is None:
            run.kill()
            killed["command"] += 1
            moments[moment] += 1
        run.wait()
        told = said.read_text()
        assert run.returncode in (0, 1, -signal.SIGKILL) and "Traceback" not in told, told
        assert run.returncode != 1 or "→" in told or "failed here" in told, told
        assert none_left(known, grace) == []
        for name, content in files(course).items():
            if content != wanted[name]:
                result = results.read(ClassFolder(course), NAME, name.removesuffix(".json"))
                assert result is not None and result.state is State.FAILED_HERE and result.points is None
                failed_here += 1
        after = finished()
        assert {name: after.get(name) for name in before} == before, "what was finished was done again"
        print(f"{moment}: {run.returncode}, {len(after)} of {size} done;", dict(killed), flush=True)
    counted = noted(notes)
    last = grade(course)
    assert last.wait() == 0, said.read_text()
    assert files(course) == wanted
    assert not list(course.rglob("*.partial"))
    for number in range(size):
        assert scores(course, f"s{number:02}") == scores(undisturbed, f"s{number:02}")
    assert none_left(known, grace) == []
    print(f"seed {seed}: {killed.total()} killed in {runs} runs: {dict(killed)}, the command at its {dict(moments)};")
    # Each worker has begun one submission, and the command may be about to write another; everything else that can be
    # killed belongs to one submission.
    flying = {"command": workers + 1}
    allowed = sum(count * flying.get(kind, 1) for kind, count in killed.items())
    print(f"{dict(counted)}, at most {allowed} of them twice; {failed_here} failed here for the time being")
    assert counted["begun"] - counted["written"] <= allowed
    if rounds >= 200:
        assert all(killed[kind] >= 5 for kind in KINDS) and min(moments.values()) >= 2 and len(moments) == 3
