"""A lecture is run once for all who want its outputs, and again as soon as something changes that they depend on."""

import dataclasses
import functools
import itertools
import math
import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import torch

from autograder import project
from autograder.authoring import build
from autograder.authoring import exercise as exercise_file
from autograder.authoring.kernel import execution
from autograder.grading import source
from course_utils import device as devices
from course_utils import plots, timing
from course_utils.units import readable


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for what was run."""
    monkeypatch.setattr(execution, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the lectures that were run, one for each time; nothing is really run."""
    found: list[str] = []

    def run(lecture: source.Lecture) -> object:
        found.append(lecture.name)
        return lecture.notebook

    monkeypatch.setattr(execution, "_run", run)
    return found


def lecture(folder: Path, code: str = "print(6 * 7)") -> source.Lecture:
    path = folder / "11_made_up.py"
    path.write_text(f'# %% [markdown]\nr"""\n# 11 · Made up\n"""\n\n# %%\n{code}\n', encoding="utf-8")
    return source.read(path)


def test_a_lecture_has_the_outputs_of_its_run(tmp_path: Path, kept: Path) -> None:
    found = execution.executed(lecture(tmp_path, "import os\nprint(os.path.basename(os.getcwd()))"))
    assert found.cells[1].outputs[0].text == "11_made_up\n"
    assert [path.suffix for path in sorted(kept.iterdir())] == [".ipynb", ".lock"]


def test_the_same_lecture_is_run_once(tmp_path: Path, runs: list[str]) -> None:
    assert execution.executed(lecture(tmp_path)) == execution.executed(lecture(tmp_path))
    assert runs == ["11_made_up"]


def test_whatever_the_outputs_depend_on_has_it_run_again(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "course_utils/explorers/panel.py"
    code = [tmp_path / name for name in (deep, "autograder/inside/preload.py", "autograder/authoring/kernel/new.py")]
    for path in code:
        assert (project.ROOT / path.relative_to(tmp_path)).parent.is_dir()
        path.parent.mkdir(parents=True)
        path.write_text("size = 1\n")
    monkeypatch.setattr(execution, "ROOT", tmp_path)
    execution.executed(lecture(tmp_path))
    for number, change in enumerate(
        [
            lambda: monkeypatch.setenv("COURSE_PRESET", "large"),
            lambda: (
                monkeypatch.setattr(execution, "_packages", execution._packages.__wrapped__),  # without its cache
                monkeypatch.setattr(execution.importlib.metadata, "distributions", lambda: []),
            ),
            lambda: monkeypatch.setattr(execution.sys, "version", "3.99"),
            lambda: monkeypatch.setattr(execution.os, "cpu_count", lambda: 999),
            *(functools.partial(path.write_text, "size = 2\n") for path in code),
        ],
        2,
    ):
        change()
        execution.executed(lecture(tmp_path))
        execution.executed(lecture(tmp_path))
        assert len(runs) == number
    execution.executed(lecture(tmp_path, "print(43)"))
    assert len(runs) == 9


def test_only_the_latest_versions_are_kept(tmp_path: Path, runs: list[str], kept: Path) -> None:
    for number in range(4):
        execution.executed(lecture(tmp_path, f"print({number})"))
        for path in kept.glob("*.ipynb"):  # a clock that is too coarse would make them equally old
            os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10**9))
    assert len(list(kept.glob("*.ipynb"))) == 2
    execution.executed(lecture(tmp_path, "print(3)"))
    assert len(runs) == 4


def test_a_run_that_fails_says_where_and_is_not_kept(tmp_path: Path, kept: Path) -> None:
    for _ in range(2):
        with pytest.raises(build.BuildError, match=r"(?s)11_made_up: a cell fails:.*one is not two"):
            execution.executed(lecture(tmp_path, "assert 1 == 2, 'one is not two'"))
    assert not list(kept.glob("*.ipynb"))


def test_a_reference_that_does_not_meet_its_check_fails_the_run(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = source.read(project.SOLUTIONS / "00_napkin_math.py")
    exercise = real.exercises[0]
    cells = [cell for cell in real.notebook.cells if cell.id in (exercise.name, f"test_{exercise.name}")]
    setup = next(cell for cell in real.notebook.cells if cell.cell_type == "code")
    for text, found in ((exercise.solution, ""), (exercise.stub, f"the reference of {exercise.name} gets ['0.0']")):
        cells[0].source = text
        notebook = nbformat.from_dict({**real.notebook, "cells": [setup, *cells]})
        made = dataclasses.replace(real, name="11_made_up", notebook=notebook, exercises=(exercise,))
        if found:
            with pytest.raises(build.BuildError, match=re.escape(found)):
                execution.executed(made)
        else:
            execution.executed(made)


def _execute(path: Path, kept: Path) -> None:
    execution.KEPT = kept
    execution.executed(source.read(path))


def test_processes_that_ask_at_once_share_one_run(tmp_path: Path, kept: Path) -> None:
    ran = tmp_path / "ran"
    path = lecture(tmp_path, f"import time\nopen({str(ran)!r}, 'a').write('x')\ntime.sleep(0.5)").path
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_execute, args=(path, kept)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert ran.read_text() == "x"


def test_a_disturbed_measurement_is_repeated_and_not_published(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataclasses.replace(lecture(tmp_path), timed=(1,))
    clock = iter([(0.0, 0.0), (100.0, 40.0)] * 2 + [(0.0, 0.0), (100.0, 5.0)])  # of all processors, of others
    monkeypatch.setattr(execution, "_processors", lambda: next(clock))
    found = execution.executed(made)
    assert found.metadata.run.others == 0.4 and found.metadata.run.disturbed, "a draft takes it"
    with pytest.raises(build.BuildError, match=r"11_made_up: other programs used 40% .* Close them .*--draft"):
        execution.executed(made, undisturbed=True)
    assert execution.executed(made, undisturbed=True).metadata.run.others == 0.05
    assert execution.executed(made, undisturbed=True).metadata.run.others == 0.05, "kept"
    assert next(clock, None) is None

    made = dataclasses.replace(lecture(tmp_path, "print(43)"), timed=())
    monkeypatch.setattr(execution, "_processors", iter([(0.0, 0.0), (100.0, 40.0)]).__next__)
    assert not execution.executed(made, undisturbed=True).metadata.run.disturbed, "it shows no timing"


NAMES = "addition", "matrix × vector", "matmul 64 × 64", "matmul 1,024 × 1,024"
ROOFLINE = {
    "dtype": torch.float32, "peaks": {torch.float32: None}, "ceilings": {torch.float32: 1e11}, "roof": 1e11,
    "bandwidth": 2e10, "size": 4, "large": 1_024, "device": torch.device("cpu"),
    "intensities": dict(zip(NAMES, [1 / 12, 0.5, 64 / 6, 1_024 / 6], strict=True)),
    "predicted": dict(zip(NAMES, [1.7e9, 1e10, 1e11, 1e11], strict=True)),
}  # fmt: skip
# For each figure: its lecture, how its finding begins, timings of an idle machine, and timings that were disturbed.
MEASURED: dict[str, tuple[str, str, dict[str, object], list[dict[str, object]]]] = {
    "01": (
        "01_tensors",
        "times the bytes take",
        {
            "device": torch.device("cpu"), "copy_sizes": [2**10, 2**15, 2**20], "copy_seconds": [1e-6, 0.9e-6, 1e-4],
            "copy_cost": lambda sizes, seconds: (1e-6, 1e10),
        },
        [
            {"copy_seconds": [1e-6, 1e-4, 1e-5]},
            {"copy_cost": lambda sizes, seconds: (-1e-6, 1e10)},
        ],
    ),
    "03": (
        "03_strides_and_views",
        "A view takes the same time",
        {"sizes": [4_096, 16_384, 65_536], "measured": {"x.T": [1e-6] * 3, "in order": [2e-6, 1.9e-6, 8e-6]}},
        [
            {"measured": {"x.T": [1e-6, 1e-6, 9e-6], "in order": [2e-6, 4e-6, 8e-6]}},
            {"measured": {"x.T": [1e-6] * 3, "in order": [2e-6, 9e-6, 3e-6]}},
        ],
    ),
    "05, sizes": (
        "05_flops_and_mfu",
        "Size matters",
        {
            "widths_tried": [32, 256, 2_048],
            "peaks": {torch.float32: None, torch.bfloat16: None},
            "ceilings": {torch.float32: 1e11, torch.bfloat16: 5e9},
            # No bfloat16 arithmetic: slow, and no faster at a large size, whatever else runs.
            "speeds": {torch.float32: [2e10, 1e11, 9e10], torch.bfloat16: [5e9, 5e9, 4e9]},
        },
        [
            {"speeds": {torch.float32: [2e10, 1e11, 1e10], torch.bfloat16: [5e9, 5e9, 4e9]}},
            {"peaks": {torch.float32: 9e10, torch.bfloat16: None}},
        ],
    ),
    "05, roofline": (
        "05_flops_and_mfu",
        "Share of the roof reached",
        ROOFLINE | {"measured": dict(zip(NAMES, [1.9e9, 1.4e10, 5e10, 9e10], strict=True))},
        [
            {"measured": dict(zip(NAMES, rates, strict=True))}
            for rates in (
                [4.3e9, 1.4e10, 5e10, 9e10],  # the addition is too fast, the addition is too slow …
                [0.5e9, 1.4e10, 5e10, 9e10],
                [1.9e9, 1.4e10, 5e10, 2e11],  # … and so for the large matmul
                [1.9e9, 1.4e10, 5e10, 3e10],
            )
        ],
    ),
    "13": (
        "13_inference",
        "16 sequences at once",
        {
            "device": torch.device("cpu"), "PROMPT": 128, "overhead": 1e-3, "writer": None,
            "planned_seconds": lambda batch, new, context: 0.01 + 0.0002 * batch,
            "product_seconds": lambda batch: 0.01 + 0.0005 * batch,
            "step_seconds": lambda model, batch: 0.012 + 0.0006 * batch,
        },
        [
            {"product_seconds": lambda batch: 0.01 * batch**1.1},
            {"planned_seconds": lambda batch, new, context: 0.01 * batch**0.9},
        ],
    ),
    "14, faster steps": (
        "14_capstone",
        "A training step, from",
        {
            "promised": None, "first": 0.5, "best": 0.8,
            "shares": {"float32": 0.5, "bfloat16": 0.7, "twice the batch": 0.8},
        },
        [
            {"best": 1.2, "shares": {"float32": 0.5, "bfloat16": 1.2, "twice the batch": 1.1}},
            {"shares": {"float32": 0.5, "bfloat16": 0.8, "twice the batch": 0.4}},
        ],
    ),
    "14, the answer": (
        "14_capstone",
        "Time: ",
        {
            "planned": {"parameters": 1e6, "seconds": 100.0}, "measured": {"parameters": 1e6, "seconds": 110.0},
            "planned_seconds": 100.0, "run_seconds": 110.0, "off": set(), "baseline": 2.4, "final_loss": 2.0,
        },
        [{"measured": {"parameters": 1e6, "seconds": 200.0}, "run_seconds": 200.0, "off": {"seconds"}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("figure", MEASURED)
def test_a_figure_of_disturbed_timings_says_so_instead_of_its_finding(
    figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, finding, idle, disturbances = MEASURED[figure]
    path = project.SOLUTIONS / f"{name}.py"
    cells = source.parse(path, path.read_text(encoding="utf-8"), built=False).notebook.cells
    (code,) = (cell.source for cell in cells if "plots.show" in cell.source and finding in cell.source)
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr(plots, "show", lambda fig, alt: shown.append((" ".join(t.get_text() for t in fig.texts), alt)))
    tools = {
        "plots": plots, "timing": timing, "math": math, "itertools": itertools, "torch": torch, "devices": devices,
        "readable": readable,
    }  # fmt: skip
    for disturbance in ({}, *disturbances):
        exec(code, {**tools, **idle, **disturbance})
        title, alt = shown[-1]
        assert (finding in title) == (finding in alt) == (not disturbance), title
        assert ("Timings disturbed" in title) == ("Timings disturbed" in alt) == bool(disturbance), title


def test_what_a_run_itself_computes_is_not_counted_as_another_programs() -> None:
    """Others may be busy meanwhile; without what is ours, a busy child would always add a whole processor."""
    before = execution._processors()
    code = "import time\nwhile time.process_time() < 2: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    mine = multiprocessing.get_context("spawn").Process(target=_busy)
    mine.start()
    mine.join()
    in_all, others = (now - then for now, then in zip(execution._processors(), before, strict=True))
    assert 0 <= round(others, 1) <= in_all - 4


def _busy() -> None:
    while time.process_time() < 2:
        pass


def test_a_cell_that_asks_for_more_than_a_statement_is_reported() -> None:
    solved = source.read(project.SOLUTIONS / "03_strides_and_views.py")
    [exercise] = [each for each in solved.exercises if each.name == "contiguous_strides"]
    notebook = nbformat.v4.new_notebook()
    strict = 'assert type(contiguous_strides((2, 3))) is tuple, "no tuple"'
    cells = [exercise.setup, exercise.solution, "contiguous_strides((2, 3))", strict]
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in cells]
    notebook.cells[1]["id"] = exercise.name
    made = dataclasses.replace(solved, notebook=notebook)
    same = exercise_file.KnownProgram("right", "a tuple", "def contiguous_strides(shape): return (3, 1)")
    other = exercise_file.KnownProgram("right", "a list", "def contiguous_strides(shape): return [3, 1]")
    assert not list(execution.too_strict(made, {exercise.name: [same]}))
    [problem] = execution.too_strict(made, {exercise.name: [same, other]})
    assert "AssertionError: no tuple" in problem and strict in problem and "a list" in problem
