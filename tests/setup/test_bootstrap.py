"""bootstrap.py as a student runs it: real environments and the real pip, on a project that needs no index."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Builds the little project without a download; a file named `slow` beside it makes the build hang, `broken` fail.
BACKEND = """\
import os, time, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    if os.path.exists("broken"):
        raise SystemExit(open("broken").read())
    while os.path.exists("slow"):
        open("building", "w").close()
        time.sleep(0.05)
    name = "little-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr("little.pth", os.getcwd())
        metadata = ["Metadata-Version: 2.1", "Name: little", "Version: 1.0"]
        metadata += ["Provides-Extra: " + extra for extra in ("gpu", "instructor", "test")]
        wheel.writestr("little-1.0.dist-info/METADATA", "\\n".join(metadata))
        wheel.writestr("little-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any")
        wheel.writestr("little-1.0.dist-info/RECORD", "")
        wheel.writestr("worth_compiling.py", "x = 1")
        wheel.writestr("no_python.py", "nor will it ever be")
    return name
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
# Prints a line for every process that bootstrap.py starts, then runs it; {setup} simulates a machine. What a shell
# starts in the background ignores Ctrl-C, and so would everything that it starts.
WATCHED = """
import signal, sys, runpy
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["bootstrap.py", *sys.argv[1:]]
sys.addaudithook(lambda event, args: event == "subprocess.Popen" and print("STARTED", *args[1], flush=True))
{setup}
runpy.run_path("bootstrap.py", run_name="__main__")
"""
# Read by every Python that starts with PYTHONPATH. `python -m venv` then copies a pip that is there: installing and
# compiling its own takes seconds, and the same files come out.
COPIED = """
import sys
if sys.orig_argv[1:3] == ["-m", "venv"]:
    import pathlib, shutil, venv
    def copy(builder, context):
        [packages] = pathlib.Path(context.env_dir).glob("lib/python*/site-packages")
        shutil.copytree({pip!r}, packages, dirs_exist_ok=True)
    venv.EnvBuilder._setup_pip = copy
"""


class Course:
    """A copy of bootstrap.py beside a project of one module; ``environ`` is what all of its processes see."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder, self.environ = folder, environ
        folder.mkdir()
        shutil.copy(ROOT / "bootstrap.py", folder)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "requirements.lock").write_text("torch==2.13.0\n")
        (folder / "little.py").touch()
        self.venv = folder / ".venv"
        self.python = self.venv / "bin" / "python"
        self.stamp = self.venv / "every-byte-every-flop.json"

    def start(self, *arguments: str, setup: str = "", **environ: str) -> subprocess.Popen[str]:
        clean = {name: text for name, text in os.environ.items() if name != "COURSE_VENV"}
        command = [sys.executable, "-c", WATCHED.format(setup=setup), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=clean | self.environ | environ,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, setup: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, setup=setup, **environ)
        out, err = process.communicate(timeout=400)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def set_up(self, *arguments: str) -> list[str]:
        """Run it, see it succeed; the processes it started. Nothing is compiled."""
        run = self.run(*arguments, PIP_COMPILE="0")
        assert run.returncode == 0, run.stdout + run.stderr
        return [line for line in run.stdout.splitlines() if line.startswith("STARTED")]

    def refusal(self, *arguments: str, setup: str = "", **environ: str) -> str:
        """Run it, see it refuse in one line and start nothing; that line."""
        run = self.run(*arguments, setup=setup, **environ)
        assert run.returncode != 0 and "STARTED" not in run.stdout
        assert run.stderr.startswith("Setup stopped: ") and run.stderr.count("\n") == 1, run.stderr
        return run.stderr

    def works(self) -> bool:
        run = subprocess.run([self.python, "-c", "import little"], cwd=self.venv, capture_output=True)
        return run.returncode == 0 and not self.venv.with_name(".venv.installing").exists()


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the pip of `ready`, which copies it here."""
    return tmp_path_factory.mktemp("pip")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, pip: Path) -> Course:
    """A course that is set up, with all that Python's own `venv` does; tests that use it leave it so."""
    course = Course(tmp_path_factory.mktemp("ready") / "course")
    started = course.set_up()
    assert len(started) == 2 and "-m venv" in started[0] and "pip install -c requirements.lock -e ." in started[1]
    [packages] = course.venv.glob("lib/python*/site-packages")
    for folder in packages.glob("pip*"):
        shutil.copytree(folder, pip / folder.name)
    customized = tmp_path_factory.mktemp("customized")
    (customized / "sitecustomize.py").write_text(COPIED.format(pip=str(pip)))
    course.environ["PYTHONPATH"] = str(customized)
    return course


@pytest.fixture
def course(tmp_path: Path, ready: Course) -> Course:
    return Course(tmp_path / "course", **ready.environ)


def test_what_is_installed_is_compiled_even_where_it_cannot_be(course: Course) -> None:
    run = course.run()
    assert run.returncode == 0 and run.stderr == "", run.stderr
    [packages] = course.venv.glob("lib/python*/site-packages")
    assert (packages / "no_python.py").exists() and not list(packages.glob("__pycache__/no_python.*"))
    assert list(packages.glob("__pycache__/worth_compiling.*.pyc")) and course.works()


def test_a_second_run_starts_nothing(ready: Course) -> None:
    assert ready.works()
    assert ready.set_up() == []


def test_what_is_installed_stays_when_less_is_asked_for(ready: Course) -> None:
    for extra in ["gpu", "instructor", "book", "test"]:
        [pip] = ready.set_up("--extra", extra)
        assert pip.endswith(f"-e .[{extra}]")
    assert ready.set_up("--extra", "instructor") == ready.set_up() == []


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock", "jupyter/settings.json"])
def test_a_change_of_what_decides_the_environment_installs_again(ready: Course, name: str) -> None:
    path = ready.folder / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write("\n")
    [pip] = ready.set_up()
    assert "pip install" in pip and ready.set_up() == []


def test_course_venv_puts_the_environment_into_another_folder(course: Course, tmp_path: Path) -> None:
    run = course.run(COURSE_VENV=str(tmp_path / "elsewhere" / "venv"))
    assert run.returncode == 0, run.stderr
    assert not course.venv.exists() and (tmp_path / "elsewhere/venv/bin/python").exists()


def test_a_moved_course_is_set_up_again(course: Course, tmp_path: Path) -> None:
    course.set_up()
    course.folder.rename(tmp_path / "moved")
    moved = Course.__new__(Course)
    moved.__dict__ = {**course.__dict__, "folder": tmp_path / "moved", "venv": tmp_path / "moved/.venv"}
    moved.python = moved.venv / "bin" / "python"
    assert "-m venv" in moved.set_up()[0]
    assert moved.works()


def test_another_courses_environment_is_left_alone(ready: Course, tmp_path: Path) -> None:
    before = ready.stamp.read_bytes()
    refusal = Course(tmp_path / "other").refusal(COURSE_VENV=str(ready.venv))
    assert f"{ready.venv} belongs to the course in {ready.folder}; name another folder in COURSE_VENV" in refusal
    assert ready.stamp.read_bytes() == before and ready.works()


def test_an_environment_whose_python_is_gone_is_made_again(ready: Course) -> None:
    ready.python.unlink()
    assert "-m venv" in ready.set_up()[0]
    assert ready.works()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_installation_starts_afresh(course: Course, end: signal.Signals) -> None:
    (course.folder / "slow").touch()
    process = course.start()
    wait_for(course.folder / "building", process)
    half = course.venv / "half-installed"
    half.touch()
    os.killpg(process.pid, end)
    _, err = process.communicate(timeout=400)
    assert process.returncode != 0
    if end == signal.SIGINT:
        assert "Setup interrupted: run the same command" in err
    (course.folder / "slow").unlink()
    assert "-m venv" in course.set_up()[0]
    assert course.works() and not half.exists()


def test_a_second_set_up_at_the_same_time_is_refused(course: Course) -> None:
    (course.folder / "slow").touch()
    first = course.start()
    wait_for(course.folder / "building", first)
    assert "another setup is working" in course.refusal()
    (course.folder / "slow").unlink()
    _, err = first.communicate(timeout=400)
    assert first.returncode == 0, err
    assert course.works() and course.set_up() == []


def test_after_a_failure_the_same_command_goes_on(ready: Course) -> None:
    (ready.folder / "broken").write_text("the build broke")
    (ready.folder / "requirements.lock").write_text("# so that there is something to install\n")
    run = ready.run()
    assert run.returncode == 1
    assert "the build broke" in run.stderr  # pip's own words are on the screen
    assert run.stderr.splitlines()[-1].startswith("Setup stopped: pip failed")
    (ready.folder / "broken").unlink()
    [pip] = ready.set_up()
    assert "pip install" in pip and ready.works()


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("Failed to establish a new connection: NewConnectionError('…')", "the package index could not be reached"),
        ("ERROR: ResolutionImpossible: for help visit", "pip finds no package of the locked version"),
    ],
)
def test_what_pip_says_becomes_advice(ready: Course, said: str, advice: str) -> None:
    lock = ready.folder / "requirements.lock"
    before = lock.read_text()
    (ready.folder / "broken").write_text(said)
    lock.write_text(f"# {said}\n")
    run = ready.run()
    (ready.folder / "broken").unlink()
    lock.write_text(before)
    assert run.returncode == 1 and advice in run.stderr.splitlines()[-1], run.stderr
    assert ready.set_up() == []  # nothing was installed, and what is installed is wanted again


def test_an_index_that_cannot_be_reached_is_reported_with_advice(course: Course) -> None:
    (course.folder / "pyproject.toml").write_text(PROJECT.replace("[]", '["not-on-this-disk"]', 1))
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    run = course.run(**offline)
    assert "check the network and `pip config list`" in run.stderr.splitlines()[-1], run.stderr


@pytest.mark.parametrize("version", [(3, 9, 1), (3, 15, 0)])
def test_the_wrong_python_is_refused(course: Course, version: tuple[int, int, int]) -> None:
    line = course.refusal(setup=f"sys.version_info = {version}", PATH="")
    assert f"this is Python {version[0]}.{version[1]} and the course needs Python 3.11 to 3.14" in line


def test_the_wrong_python_gives_way_to_the_right_one(course: Course, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.14").symlink_to("/nonexistent")
    broken = tmp_path / "bin" / "python3.13"  # as a version manager's name without a version behind it
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    (tmp_path / "bin" / "python3.12").symlink_to(sys.executable)
    run = course.run(setup="sys.version_info = (3, 9, 1)", PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert run.returncode == 0, run.stderr
    assert course.works()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_is_refused_with_what_to_install(course: Course, module: str) -> None:
    hide = (
        f"import importlib.util as u; find = u.find_spec; u.find_spec = lambda n: None if n == {module!r} else find(n)"
    )
    line = course.refusal(setup=hide)
    assert f"no {module} module" in line and f"apt install python3.{sys.version_info[1]}-venv" in line


def test_a_disk_without_room_is_refused_before_anything_starts(course: Course) -> None:
    line = course.refusal(setup="import shutil; shutil.disk_usage = lambda p: shutil._ntuple_diskusage(9, 9, 10**9)")
    assert "1.0 GB free and the environment needs 3 GB" in line


def test_a_folder_that_cannot_be_written_is_refused(course: Course, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(0o555)
    # The superuser writes anywhere, except where the kernel itself refuses.
    folder = Path("/proc/self") if os.geteuid() == 0 else locked
    line = course.refusal(COURSE_VENV=str(folder / "venv"))
    assert "cannot write to" in line and "COURSE_VENV" in line


@pytest.mark.parametrize(
    ("simulated", "advice"),
    [
        ("sys.maxsize = 2**31 - 1", "needs a 64-bit one"),
        ("import platform; sys.platform = 'darwin'; platform.machine = lambda: 'x86_64'", "Intel Macs"),
    ],
)
def test_a_system_that_pytorch_is_not_built_for_is_refused(course: Course, simulated: str, advice: str) -> None:
    assert advice in course.refusal(setup=simulated)


def test_a_folder_that_is_no_environment_is_left_alone(course: Course) -> None:
    course.venv.mkdir()
    (course.venv / "thesis.tex").touch()
    assert "is no Python environment; move it away" in course.refusal()
    assert (course.venv / "thesis.tex").exists()


def test_an_environment_of_ones_own_is_used_and_never_deleted(course: Course) -> None:
    subprocess.run([sys.executable, "-m", "venv", course.venv], env={**os.environ, **course.environ}, check=True)
    mine = course.venv / "mine"
    mine.touch()
    (course.folder / "slow").touch()
    process = course.start()
    wait_for(course.folder / "building", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=400)
    (course.folder / "slow").unlink()
    [pip] = course.set_up()
    assert "pip install" in pip and course.works() and mine.exists()
    course.python.unlink()
    assert "is no Python environment" in course.refusal() and mine.exists()


def test_the_machines_own_torch_is_left_out_of_the_lock(course: Course, pip: Path, tmp_path: Path) -> None:
    lock = "filelock==9.9\nnumpy==9.9\ntorch==9.9\n"
    (course.folder / "requirements.lock").write_text(lock)
    # A machine's Python with a torch and what it requires, at versions of its own.
    machine = tmp_path / "machine"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", machine], check=True)
    packages = next((machine / "lib").glob("python*")) / "site-packages"
    for name, metadata in {
        "torch-2.11.0+cu128": "Requires-Dist: filelock",
        "filelock-3.1": "",
        "numpy-1.0": "",
    }.items():
        (packages / f"{name}.dist-info").mkdir()
        text = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n{}\n".format(*name.split("-"), metadata)
        (packages / f"{name}.dist-info" / "METADATA").write_text(text)
    venv = {"COURSE_VENV": str(machine)}
    shutil.copytree(pip, packages, dirs_exist_ok=True)
    run = course.run("--system-torch", **venv)
    assert run.returncode == 0, run.stderr
    assert "own torch 2.11.0+cu128" in run.stdout
    assert (machine / "constraints.txt").read_text().split() == ["numpy==9.9", "torch==2.11.0+cu128"]
    assert course.run(**venv).stdout == ""  # remembered: `make lab` afterwards changes nothing


def test_on_binder_the_course_joins_the_torch_that_conda_installed(course: Course, pip: Path, tmp_path: Path) -> None:
    conda = tmp_path / "conda"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", conda], check=True)
    packages = next((conda / "lib").glob("python*")) / "site-packages"
    shutil.copytree(pip, packages, dirs_exist_ok=True)
    (packages / "torch-2.12.0.dist-info").mkdir()
    (packages / "torch-2.12.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.12.0\n"
    )
    shutil.copytree(ROOT / ".binder", course.folder / ".binder")
    shutil.copytree(ROOT / "course_utils", course.folder / "course_utils")
    shutil.copytree(ROOT / "notebooks" / "01_tensors", course.folder / "notebooks" / "01_tensors")
    environ = {name: text for name, text in os.environ.items() if name != "COURSE_VENV"}
    environ |= {"NB_PYTHON_PREFIX": str(conda), "PIP_COMPILE": "0"}
    ran = subprocess.run(["./.binder/postBuild"], cwd=course.folder, env=environ, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert (conda / "constraints.txt").read_text().split() == ["torch==2.12.0"]
    assert subprocess.run([conda / "bin" / "python", "-c", "import little"]).returncode == 0
    assert "01_tensors/01_tensors.ipynb" in (course.folder / "notebooks" / "home.md").read_text(encoding="utf-8")


def test_system_torch_is_refused_where_there_is_none(course: Course) -> None:
    process = course.run("--system-torch")
    if "own torch" in process.stdout:
        pytest.skip("this Python's base installation has a torch")
    assert process.returncode == 1
    assert process.stderr.startswith("Setup stopped: --system-torch") and "has no torch" in process.stderr


def test_a_damaged_stamp_has_the_packages_installed_again(ready: Course) -> None:
    ready.stamp.write_text("{")
    [pip] = ready.set_up()
    assert "pip install" in pip
    assert json.loads(ready.stamp.read_text())["python"] == "{}.{}".format(*sys.version_info)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until `path` is there; an error if the process ends without it."""
    while not path.exists():
        if process.poll() is not None:
            raise AssertionError("".join(process.communicate()))
        time.sleep(0.05)
