"""Runs a lecture with its solutions, and keeps the outputs until something they depend on changes.

The web book shows these outputs, and the tests compare a second run with them. An executed notebook is stored in
``build/executed/``. Its name contains a hash of the lecture, the helper code, the installed packages, Python, the
machine, and the environment variables that lectures read, so an outdated one is never used. Delete the folder to run
everything again.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import psutil
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from autograder.grading.source import Lecture
from autograder.locks import locked
from autograder.project import BUILD, ROOT, notebook_path
from course_utils.files import replacing
from course_utils.progress import FILE_VARIABLE

from .. import build
from ..exercise import KnownProgram

KEPT = BUILD / "executed"
_VERSIONS = 2  # versions of a lecture to keep, such as the usual one and one with `COURSE_PRESET=small`
DISTURBED = 0.1  # if other programs use more than this share of processor time, a lecture's timings are wrong
_SOCKET_PATH = 80  # characters, which leave room for a socket's name: macOS allows 104, Linux 108
_SECONDS = 900  # for one cell: at full size, the capstone trains for minutes
_READ = ("COURSE_PRESET", "COURSE_DEVICE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# The code that lectures import, the code that runs them, and the code that preloads their libraries.
_CODE = ("course_utils", "autograder/authoring/kernel", "autograder/inside")


def executed(lecture: Lecture, *, undisturbed: bool = False) -> NotebookNode:
    """The instructor's notebook of a lecture with the outputs of a run from top to bottom.

    Its metadata has under ``run`` where and when it ran, the share of processor time that ``others`` used meanwhile,
    and whether that ``disturbed`` its timings.

    Runs the lecture if there's no stored run, or, with ``undisturbed``, if that one was disturbed. Processes that ask
    for the same lecture wait for the first one (on Windows, each runs it itself). Raises BuildError if a cell fails, in
    which case nothing is stored, or if ``undisturbed`` was requested but the run was disturbed.
    """
    path = KEPT / f"{lecture.name}.{_key(lecture)}.ipynb"
    KEPT.mkdir(parents=True, exist_ok=True)
    with locked(KEPT / f"{lecture.name}.lock"):
        if not path.exists() or (undisturbed and nbformat.read(path, as_version=4).metadata.run.disturbed):
            notebook = _run(lecture)
            with replacing(path, durable=False) as file:
                file.write(nbformat.writes(notebook).encode())
            versions = sorted(KEPT.glob(f"{lecture.name}.*.ipynb"), key=lambda each: each.stat().st_mtime_ns)
            for old in versions[:-_VERSIONS]:
                old.unlink()
        found: NotebookNode = nbformat.read(path, as_version=4)
    if undisturbed and found.metadata.run.disturbed:
        raise build.BuildError(
            f"{lecture.name}: other programs used {found.metadata.run.others:.0%} of the processors while it was "
            f"measured, and more than {DISTURBED:.0%} distorts its timings. Close them and run the command again: "
            "lectures that were not disturbed are not measured again. To look at the pages, make a draft (--draft)."
        )
    return found


def _run(lecture: Lecture) -> NotebookNode:
    notebook = copy.deepcopy(lecture.notebook)
    with _as_for_a_reader(lecture, notebook) as run_all:
        before = _processors()
        try:
            run_all()
        except CellExecutionError as error:
            raise build.BuildError(f"{lecture.name}: a cell fails:\n{error}") from None
        in_all, others = (now - then for now, then in zip(_processors(), before, strict=True))
    where = f"{_processor().rpartition(':')[2].strip()}, {os.cpu_count()} logical cores"
    share = round(max(0.0, others) / in_all, 3) if in_all else 0.0
    run = {"where": where, "date": f"{datetime.date.today()}", "others": share}
    notebook.metadata["run"] = run | {"disturbed": bool(lecture.timed) and share > DISTURBED}
    _require_full_points(lecture, notebook)
    return notebook


@contextlib.contextmanager
def _as_for_a_reader(lecture: Lecture, notebook: NotebookNode) -> Iterator[Callable[..., None]]:
    """What runs the cells of a lecture's notebook, on a warm kernel and in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch, warm_kernels():
        path = notebook_path(Path(scratch), lecture.name)
        path.parent.mkdir()
        build.write_notebook(notebook, path)
        environ = {**os.environ, FILE_VARIABLE: "off"}
        yield functools.partial(run_cells, notebook, path.parent, _SECONDS, environ=environ)


def run_cells(
    notebook: NotebookNode, folder: Path, seconds: int, *, environ: dict[str, str] | None = None, **settings: Any
) -> None:
    """Run a notebook's cells in a new kernel, and put their outputs into the notebook.

    The kernel works in ``folder``; a cell may take ``seconds``; ``settings`` are passed on to NotebookClient. Raises
    what NotebookClient raises, most often CellExecutionError.
    """
    quiet = ["--log-level=ERROR"]  # the kernel logs warnings about its own sockets
    resources = {"metadata": {"path": folder}}
    client = NotebookClient(notebook, timeout=seconds, extra_arguments=quiet, resources=resources, **settings)
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        # By default, jupyter_client picks five free ports, which the kernel opens a second later. If many kernels start
        # at the same time, another process may have taken one by then, and the kernel never answers.
        if sys.platform != "win32" and len(sockets) < _SOCKET_PATH:
            manager = client.create_kernel_manager()
            manager.transport, manager.ip = "ipc", f"{sockets}/socket"
        client.execute(env=environ or dict(os.environ))


def too_strict(lecture: Lecture, answers: Mapping[str, Sequence[KnownProgram]]) -> Iterator[str]:
    """What fails if a lecture's exercises are solved otherwise: a cell may ask no more of an answer than its statement.

    ``answers``: the right programs of each exercise. The lecture is run as often as the exercise with the most of them
    has programs, each time with the next one for every exercise.
    """
    for number in range(max(map(len, answers.values()), default=0)):
        notebook = copy.deepcopy(lecture.notebook)
        chosen = {name: programs[number % len(programs)] for name, programs in answers.items() if programs}
        for cell in notebook.cells:
            if cell.id in chosen:
                cell.source = chosen[cell.id].code
        with _as_for_a_reader(lecture, notebook) as run_all:
            try:
                run_all(allow_errors=True)
            except CellTimeoutError as error:
                yield f"{lecture.name}: with other right answers, a cell doesn't end: {error}{_titles(chosen)}"
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    why = f"{output.ename}: {output.evalue}\n{cell.source}"
                    used = {name: program for name, program in chosen.items() if name in cell.source}
                    yield f"{lecture.name}: with other right answers, a cell fails: {why}{_titles(used or chosen)}"


def _titles(answers: Mapping[str, KnownProgram]) -> str:
    return "\n  → the answers were " + "; ".join(f"{name}: {program.title}" for name, program in answers.items())


def _require_full_points(lecture: Lecture, notebook: NotebookNode) -> None:
    """Make sure that every check got full points. (A failed check shows a rubric and raises no error.)"""
    cells = {cell.id: cell for cell in notebook.cells}
    for exercise in lecture.exercises:
        results = [o.data for o in cells[f"test_{exercise.name}"].get("outputs", []) if "data" in o]
        shown = [data.get("text/plain", "") for data in results]
        if shown != [repr(float(exercise.points))]:
            rubric = "".join(data.get("text/html", "") for data in results)
            raise build.BuildError(f"{lecture.name}: the reference of {exercise.name} gets {shown}:\n{rubric}")


def _processors() -> tuple[float, float]:
    """Processor seconds since the machine started, in all, and those spent on other programs than ours."""
    times = psutil.cpu_times()._asdict()
    in_all = sum(seconds for name, seconds in times.items() if not name.startswith("guest"))  # included in "user"
    ours = 0.0
    for process in (here := psutil.Process(), *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            spent = process.cpu_times()
            ours += (
                spent.user + spent.system + getattr(spent, "children_user", 0) + getattr(spent, "children_system", 0)
            )
    return in_all, in_all - times["idle"] - times.get("iowait", 0.0) - ours


@contextlib.contextmanager
def warm_kernels() -> Iterator[None]:
    """A context in which this process's kernels start warm (`autograder.authoring.kernel`) if the system allows it."""
    factory = KernelProvisionerFactory.instance()
    before = factory.default_provisioner_name
    if sys.platform == "linux":
        factory.default_provisioner_name = "warm"
    try:
        yield
    finally:
        factory.default_provisioner_name = before


def _key(lecture: Lecture) -> str:
    """A hash of everything that a lecture's outputs depend on."""
    files = [path for folder in _CODE for path in (ROOT / folder).rglob("*.py")]
    parts = [
        nbformat.writes(lecture.notebook),
        [_hash(exercise.packed) for exercise in lecture.exercises],
        {str(path.relative_to(ROOT)): _hash(path.read_bytes()) for path in sorted(files)},
        _packages(),
        [sys.version, platform.platform(), _processor(), os.cpu_count()],
        {name: os.environ.get(name) for name in _READ},
    ]
    return _hash(json.dumps(parts, sort_keys=True).encode())[:16]


@functools.cache  # reading two hundred files takes a fifth of a second, and nothing is installed while lectures run
def _packages() -> list[str]:
    """The installed packages and their versions."""
    return sorted(f"{each.name}=={each.version}" for each in importlib.metadata.distributions())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _processor() -> str:
    """The processor's name: on another one, a library may choose other instructions, which round differently."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next((line for line in lines if line.startswith("model name")), platform.processor())
    return platform.processor()
