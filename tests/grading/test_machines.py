"""Machines as they are: other ones that share no files with the command and get lost, and disks that are full."""

import contextlib
import gc
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from classroom import CRASH, FIRST, LECTURE, LIMITS, NAME, files, hand_in, scores

from autograder import project
from autograder.grading import engine, sandbox
from autograder.grading.worker import EngineError, Failed, Task
from autograder.records import grade
from autograder.records.folder import ClassFolder

pytestmark = pytest.mark.sandboxed


def autograded(course: Path) -> dict[str, bytes]:
    return {path.parts[-3]: path.read_bytes() for path in (course / "autograded").rglob("*.ipynb")}


def dask(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dask", *arguments]


@contextlib.contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, and at the end of the block none."""
    # Nothing of this checkout but what the installed course is.
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=log.parent, env={**os.environ, **environment}
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(what: str, found: Path, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not found.exists():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_machines_that_share_no_files_grade_a_class_although_one_is_lost(tmp_path: Path) -> None:
    """Two workers that see no file of the class; one dies with a submission in flight; the grades are those of here."""
    course, here = tmp_path / "class", tmp_path / "here"
    for number in range(8):
        hand_in(course, f"s{number}", **({FIRST.name: CRASH} if number % 2 else {}))
    shutil.copytree(course, here)
    grade.grade_class(ClassFolder(here), NAME, workers=0)
    wanted, address = files(here), tmp_path / "scheduler.json"
    # What another machine is: this system and this course, and nothing of /tmp; another home, another folder.
    machine = [
        sandbox.require(), "--dev-bind", "/", "/", "--tmpfs", "/tmp", "--dir", "/tmp/home", "--setenv", "HOME",
        "/tmp/home", "--chdir", "/tmp/home", "--die-with-parent", "--unshare-pid", "--proc", "/proc",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        start = [*dask("scheduler"), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        path = {"PYTHONPATH": str(project.ROOT)}
        stack.enter_context(running([*start, "--scheduler-file", str(address)], tmp_path / "scheduler", **path))
        wait_for("no scheduler", address)
        url = json.loads(address.read_text())["address"]
        work = [*machine, *dask("worker"), url, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        machines = [stack.enter_context(running(work, tmp_path / f"worker{n}", **path)) for n in range(2)]
        words = [sys.executable, "-m", "autograder.cli", "grade", str(course), NAME, "--scheduler", url]
        command = stack.enter_context(running(words, tmp_path / "command", **path))
        while command.poll() is None and not (course / "results" / NAME / "s0.json").exists():
            time.sleep(0.01)
        assert command.poll() is None, (tmp_path / "command").read_text()
        for number, one in enumerate(machines):
            seen = Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split()
            assert one.poll() is None and seen, (tmp_path / f"worker{number}").read_text()
            root = Path(f"/proc/{seen[0]}/root")
            assert (root / "tmp" / "home").is_dir() and not Path(f"{root}{course}").exists()
        machines[1].kill()  # as a machine goes: all at once
        assert len(files(course)) < 8, "too late to lose anything"
        assert command.wait(timeout=600) == 0, (tmp_path / "command").read_text()
        assert machines[0].poll() is None
    assert files(course) == wanted and autograded(course) == autograded(here)
    for number in range(8):
        assert scores(course, f"s{number}") == scores(here, f"s{number}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes and a hundred files."""
    place = tmp_path / "class"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=100", "none", str(place)]
    if not shutil.which("mount") or (ran := subprocess.run(command, capture_output=True, text=True)).returncode:
        pytest.skip(f"only root can mount a small disk: {ran.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path, room: int) -> None:
    """Leave so many bytes."""
    with open(disk / "ballast", "wb") as ballast:
        about = os.statvfs(disk)
        os.posix_fallocate(ballast.fileno(), 0, about.f_bavail * about.f_frsize - room)


@pytest.mark.usefixtures("one_box")
def test_a_full_disk_loses_nothing_that_was_graded(tmp_path: Path, disk: Path) -> None:
    """Full at this result or that, at its notebook or at the gradebook: all that was graded stays, and it goes on."""
    for number in range(6):
        hand_in(disk, f"s{number}", **({FIRST.name: CRASH} if number % 2 else {}))
    here = Path(shutil.copytree(disk, tmp_path / "here"))
    grade.grade_class(ClassFolder(here), NAME, workers=0, limits=LIMITS)
    wanted, said = files(here), []
    for room in (0, 8_192, 100_000, 300_000, 0, 50_000, 200_000):
        before = files(disk) if (disk / "results").exists() else {}
        fill(disk, room)
        try:
            problem = grade.grade_class(ClassFolder(disk), NAME, workers=0, limits=LIMITS).gradebook_problem
        except EngineError as error:
            problem = str(error)
        said.append(problem)
        assert "cannot be written" in problem and "run the same command again" in problem
        after = files(disk)
        assert before.items() <= after.items() <= wanted.items()
    results_full = [text for text in said if "the result of" in text]
    assert results_full and len(results_full) < len(said), "both results and gradebook must meet the full disk"
    (disk / "ballast").unlink()
    for number in range(100):
        with contextlib.suppress(OSError):
            (disk / f"file{number}").touch()
    (disk / "results").rename(disk / "kept")
    with pytest.raises(EngineError, match=r"cannot be written.*No space left(.|\n)*free some disk space"):
        grade.grade_class(ClassFolder(disk), NAME, workers=0, limits=LIMITS)
    for path in disk.glob("file*"):
        path.unlink()
    (disk / "kept").rename(disk / "results")
    summary = grade.grade_class(ClassFolder(disk), NAME, workers=0, limits=LIMITS)
    assert summary.complete and files(disk) == wanted and autograded(disk) == autograded(here)
    assert not list(disk.rglob("*.partial"))
    for number in range(6):
        assert scores(disk, f"s{number}") == scores(here, f"s{number}")


def tasks(count: int) -> Iterator[Task]:
    """Large submissions that a worker refuses at once, because another version of the course sends them."""
    for number in range(count):
        yield Task(f"s{number}", LECTURE.problems, os.urandom(200_000), "a key", LIMITS, grader=b"another version's")


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["workers", "scheduler"])
def test_memory_does_not_grow_with_the_number_of_submissions(spread: str, tmp_path: Path) -> None:
    """What the command keeps of a task, its submission above all, goes when the task is done."""
    used = []
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {"workers": 1}
        if spread == "scheduler":
            address, path = tmp_path / "scheduler.json", {"PYTHONPATH": str(project.ROOT)}
            start = [*dask("scheduler"), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            stack.enter_context(running([*start, "--scheduler-file", str(address)], tmp_path / "scheduler", **path))
            wait_for("no scheduler", address)
            options = {"scheduler": json.loads(address.read_text())["address"]}
            work = [*dask("worker"), options["scheduler"], "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            stack.enter_context(running(work, tmp_path / "worker", **path))
        for number, (_, outcome) in enumerate(engine.grade_all(tasks(500), LIMITS, **options), 1):
            assert isinstance(outcome, Failed) and "another version" in outcome.reason
            if number in (100, 300, 500):
                gc.collect()
                used.append(psutil.Process().memory_full_info().uss)
    assert len(used) == 3
    # What is kept would be kept each time; an allocator's arena comes once.
    assert min(after - before for before, after in itertools.pairwise(used)) < 10e6, f"200 are 40 MB: {used}"
