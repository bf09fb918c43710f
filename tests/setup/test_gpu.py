"""`make gpu` on made-up lectures and tests, and on a real lecture at a CPU's size."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from autograder import project

ROOT = project.ROOT
GOOD = """\
# %%
from course_utils import plots
from course_utils.predict import reconcile, record

reconcile("a matmul", None, 7e14, "FLOP/s")
record("best bfloat16 matmul", 0.8, "MFU")
record("best bfloat16 matmul", 0.7, "MFU")
record("training step of the capstone, at its best", 0.4, "MFU")
print("x")

# %%
plots.show(plots.mfu_ladder({"float32": 0.04, "compiled": 0.5}, title="Up"), alt="Up.")
"""
BAD = """\
# %%
import os

from course_utils.device import pick_device

assert str(pick_device()) == "cpu" and os.environ["COURSE_PRESET"] == "small"

# %%
1 / 0
"""
TEST = """\
import pytest

from course_utils.predict import record


def test_good():
    record("bandwidth", 3e12, "B/s")


def test_not_here():
    pytest.skip("no such card")
"""
# Lecture 00 as far as its first measurement: executing all of it would take ten times as long.
MEASURES = 'reconcile("GPT-3 on this machine", guess, gpt3 / ceiling.flops_per_second / year, "years"'
FAILING = TEST + "\n\ndef test_bad():\n    assert 1 == 2, 'too slow'\n"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/gpu.py with lectures and tests of its own, in a folder of its own."""
    module = loaded("gpu")
    for name, text in {"solutions/01_good.py": GOOD, "tests/test_made_up.py": TEST}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "SOLUTIONS", tmp_path / "solutions")
    monkeypatch.setattr(module, "TESTS", tmp_path / "tests")
    monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.delenv("COURSE_PRESET", raising=False)
    return module


def run(gpu: ModuleType, folder: Path, *options: str) -> tuple[int, dict]:
    status = gpu.main(["--device", "cpu", "--results", str(folder), *options])
    [file] = folder.glob("*.json")
    assert re.fullmatch(r"gpu-[a-z0-9-]+-\d{4}-\d\d-\d\d\.json", file.name)
    return status, json.loads(file.read_text(encoding="utf-8"))


def test_all_that_came_out_is_in_one_file(gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, results = run(gpu, tmp_path / "results")
    assert status == 0 and results["passed"] and results["finished"]
    assert results["machine"]["torch"] == torch.__version__ and results["machine"]["driver"] is None
    [lecture] = results["lectures"]
    assert lecture["name"] == "01_good" and lecture["passed"] and 0 < lecture["seconds"] < results["seconds"]
    assert {test["name"]: test["outcome"] for test in results["tests"]} == {
        "test_made_up::test_good": "passed", "test_made_up::test_not_here": "skipped"
    }  # fmt: skip
    rows = [(row["lecture"], row["what"], row["measured"], row["unit"]) for row in results["measurements"]]
    assert ("01_good", "a matmul", 7e14, "FLOP/s") in rows and ("", "bandwidth", 3e12, "B/s") in rows
    assert [(target["measured"], target["met"]) for target in results["targets"]] == [(0.8, True), (0.4, False)]
    [picture] = results["pictures"]
    assert (tmp_path / "results" / picture).read_text(encoding="utf-8").startswith("<svg")
    said = capsys.readouterr().out
    assert "✓ 01_good" in said and "80.0%" in said and "wanted 50%: missed" in said


def test_it_goes_on_after_failures_and_tells_them(
    gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (gpu.SOLUTIONS / "00_bad.py").write_text(BAD)
    (gpu.SOLUTIONS / "02_unsound.py").write_text("hello")
    (gpu.TESTS / "test_made_up.py").write_text(FAILING)
    status, results = run(gpu, tmp_path / "results")
    assert status == 1 and results["finished"] and not results["passed"]
    bad, good, unsound = results["lectures"]
    assert not bad["passed"] and "ZeroDivisionError" in bad["error"] and "\x1b" not in bad["error"]
    assert good["passed"] and "does not begin with a cell" in unsound["error"]
    assert "ZeroDivisionError" in (gpu.WORK / "00_bad.ipynb").read_text(encoding="utf-8")  # to be looked at
    failed = [test for test in results["tests"] if test["outcome"] == "failed"]
    assert [test["name"] for test in failed] == ["test_made_up::test_bad"] and "too slow" in failed[0]["error"]
    assert "✗ 00_bad" in capsys.readouterr().out


def test_tests_that_cannot_be_run_have_failed(gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gpu.TESTS / "test_made_up.py").write_text("import not_on_this_machine\n")
    status, results = run(gpu, tmp_path / "results", "--only")
    assert status == 1 and results["lectures"] == []
    assert any("not_on_this_machine" in (test["error"] or "") for test in results["tests"])
    monkeypatch.setattr(gpu, "TESTS", tmp_path / "nowhere")  # pytest ends without a test
    status, results = run(gpu, tmp_path / "results", "--only")
    [failed] = results["tests"]
    assert status == 1 and failed["outcome"] == "failed" and "nowhere" in failed["error"]


def test_an_interrupted_run_leaves_what_it_had(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(environ: dict[str, str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "run_tests", interrupted)
    status, results = run(gpu, tmp_path / "results")
    assert status == 1 and not results["finished"] and not results["passed"] and results["lectures"][0]["passed"]


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--device", "cpu", "--only", "17"], "there is no lecture 17"), (["--device", "tpu"], "expected 'cpu', 'cuda'")],
)
def test_what_cannot_be_run_is_said_in_one_line(
    gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert gpu.main([*options, "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err
    assert says in said and said.startswith("Nothing was run: ") and said.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_without_a_gpu_it_says_what_to_do() -> None:
    ran = subprocess.run([sys.executable, "benchmarks/gpu.py"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1
    assert "was given 'cuda', but torch" in ran.stderr and "Use 'cpu'" in ran.stderr


def test_the_first_measurement_of_a_real_lecture_and_the_real_tests(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, measures, _ = (ROOT / "solutions" / "00_napkin_math.py").read_text(encoding="utf-8").partition(MEASURES)
    (gpu.SOLUTIONS / "00_napkin_math.py").write_text(before + measures + ")\n", encoding="utf-8")
    monkeypatch.setattr(gpu, "TESTS", ROOT / "tests" / "gpu")
    status, results = run(gpu, tmp_path / "results", "--only", "00")
    assert status == 0 and [lecture["passed"] for lecture in results["lectures"]] == [True], results
    assert "GPT-3 on this machine" in {row["what"] for row in results["measurements"]}
    assert len(results["tests"]) > 20


def test_what_a_gpu_machine_gets_is_what_pyproject_lists() -> None:
    wheels = loaded("wheels")
    names = {re.split(r"[^\w-]", text)[0] for text in wheels.wanted()}
    assert {"numpy", "matplotlib", "ipykernel", "jupytext", "nbclient", "pytest"} <= names
    assert not names & {"torch", "jupyterlab", "nbgrader", "sphinx", "playwright"}
