"""What students are handed: complete, the same bytes every time, and without a line that is not for them."""

from __future__ import annotations

import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import project
from autograder.authoring import build
from autograder.authoring.release import make_release
from autograder.cli import app
from autograder.grading import source
from course_utils.testing.requirements import Check

ROOT = Path(__file__).parents[2]
MARKED = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)
RIGHT = re.compile(r"^# %% right: .*\n((?:(?!# %% ).*\n?)*)", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def again(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second release, over an older one, while `build.BUILD` is a folder beside it that is not there."""
    place = tmp_path_factory.mktemp("again")
    older = Path(shutil.copytree(folder, place / folder.name))
    (older / "notes.md").write_text("left by hand")
    place.joinpath(folder.name + ".zip").write_text("left by hand")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "BUILD", place / "shared")
        return make_release(place)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def leaks(text: str, runs: set[str]) -> set[str]:
    """Runs of lines that stand in the text: as whole lines, or anywhere if they are too long to be there by chance."""
    framed = "\n".join(["", *lines(text), ""])
    return {run for run in runs if (run if len(run) > 40 else f"\n{run}\n") in framed}


def secret_runs(length: int, of: re.Pattern[str] = MARKED) -> set[str]:
    """Runs of so many lines in all references, or other right programs, that students are not shown anyway."""
    secret, shown = set(), []
    for path in source.lectures(project.SOLUTIONS):
        text = path.read_text(encoding="utf-8")
        files = [path] if of is MARKED else sorted((project.EXERCISES / path.stem).glob("*.py"))
        for part in [part for file in files for part in of.findall(file.read_text(encoding="utf-8"))]:
            inside = lines(part)
            secret |= {"\n".join(inside[i : i + length]) for i in range(len(inside) - length + 1)}
        shown += [line.removeprefix("# ") for line in lines(MARKED.sub("", text))]
    # Python's keywords alone ("try:", "yield", "finally:") are nobody's solution.
    secret = {run for run in secret if len(run) > 12 and set(re.findall(r"\w+", run)) - set(keyword.kwlist)}
    return secret - leaks("\n".join(shown), secret)


def members(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def checked(content: bytes) -> str:
    """All that stands in a check."""
    check = Check.unpack(content)
    return "\n".join([*check.mistakes, *(each.probe for each in check.requirements), repr(check)])


def test_it_holds_what_students_need_and_nothing_else(folder: Path) -> None:
    names = set(members(folder))
    lectures = {path.stem for path in source.lectures(project.SOLUTIONS)}
    top = {
        "AGENTS.md",
        "bootstrap.py",
        "environment.yml",
        "LICENSE",
        "Makefile",
        "README.md",
        "pyproject.toml",
        "requirements.lock",
    }
    assert {name for name in names if "/" not in name} == top
    assert {name for name in names if name.startswith("notebooks/")} == {
        "notebooks/glossary.md",
        *(f"notebooks/{lecture}/{lecture}.ipynb" for lecture in lectures),
    }
    others = {name for name in names - top if not name.startswith("notebooks/")}
    assert {name.split("/")[0] for name in others} == {"course_utils", "jupyter"}
    assert {Path(name).suffix for name in others} <= {".py", ".typed", ".json", ".check", ".js", ".css"}
    assert "course_utils/__init__.py" in names and "jupyter/nbgrader_config.py" in names


def test_it_asks_assistants_to_tutor_and_not_to_solve(folder: Path) -> None:
    text = (folder / "AGENTS.md").read_text(encoding="utf-8")
    assert "Don't write answers to exercises" in text and "tutor" in text
    # What it speaks of is what students have.
    notebook = (folder / "notebooks" / "01_tensors" / "01_tensors.ipynb").read_text(encoding="utf-8")
    assert all(each in text and each in notebook for each in ("# YOUR CODE HERE", "guess = None"))
    assert (folder / "course_utils" / "checks").is_dir() and "course_utils/checks" in text


def test_no_byte_of_it_is_a_solution(folder: Path) -> None:
    secret = secret_runs(1)
    # A helper may share a line with a solution by chance ("def forward(self, x):"), but not several in a row.
    secret_in_helpers, secret_in_checks = secret_runs(2) | secret_runs(3, RIGHT), secret_runs(3) | secret_runs(3, RIGHT)
    assert secret and secret_in_helpers, "solutions/ has no marked solution: this scan looks at nothing"
    for name, content in members(folder).items():
        text = content.decode("utf-8") if not name.endswith(".check") else checked(content)
        if name.endswith(".ipynb"):
            # In JSON quotation marks and line ends are escaped: look at the cells too, as the student sees them.
            cells = nbformat.reads(text, as_version=4).cells
            text += "\n".join(cell.source for cell in cells)
            assert all(cell.get("outputs", []) == [] for cell in cells), name
        assert "BEGIN SOLUTION" not in text and "BEGIN HIDDEN" not in text, name
        kinds = {".py": secret_in_helpers, ".check": secret_in_checks}
        assert leaks(text, kinds.get(Path(name).suffix, secret)) == set(), name


def test_the_project_file_knows_no_autograder(folder: Path) -> None:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    ours, theirs = (tomllib.loads(each) for each in [(ROOT / "pyproject.toml").read_text(encoding="utf-8"), text])
    assert theirs["project"]["dependencies"] == ours["project"]["dependencies"]
    assert set(ours["project"]) - set(theirs["project"]) == {"optional-dependencies", "scripts", "entry-points"}
    assert "autograder" not in text


def test_links_of_the_students_page_lead_somewhere(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    assert [link for link in links if not (folder / link).exists()] == []


def test_the_zip_is_the_folder_and_repeats_byte_by_byte(folder: Path, again: Path) -> None:
    archive = folder.with_name(folder.name + ".zip")
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assert {name: opened.read(name) for name in names} == {
            f"{folder.name}/{name}": content for name, content in members(folder).items()
        }
        assert names == sorted(names)
    assert again.with_name(again.name + ".zip").read_bytes() == archive.read_bytes()


def test_a_release_is_built_in_a_folder_of_its_own(again: Path) -> None:
    assert not (again.parent / "shared").exists()


def test_an_older_release_leaves_nothing_behind(folder: Path, again: Path) -> None:
    assert members(again) == members(folder)


def test_targets_for_instructors_are_refused_in_the_students_copy(folder: Path) -> None:
    for target in ["quick", "test", "notebooks", "release", "gpu", "wheels", "lock"]:
        run = subprocess.run(["make", target], cwd=folder, capture_output=True, text=True)
        assert run.returncode != 0 and "This is the students' copy" in run.stderr, target


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_unpacked_elsewhere_it_installs_and_opens(folder: Path, tmp_path: Path) -> None:
    """The whole way of a student: unpack, `make lab`, an address that answers, a helper that imports."""
    shutil.unpack_archive(folder.with_name(folder.name + ".zip"), tmp_path)
    course = tmp_path / folder.name
    environ = {name: text for name, text in os.environ.items() if name not in {"COURSE_VENV", "DISPLAY", "VIRTUAL_ENV"}}
    environ |= {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "PYTHON": sys.executable}
    environ["PIP_COMPILE"] = "0"  # half a minute for modules of which few are imported here
    with (tmp_path / "log").open("w") as log:
        lab = subprocess.Popen(["make", "lab", "ARGS=--port=0"], cwd=course, env=environ, stdout=log, stderr=log)
    servers: list[dict[str, Any]] = []
    try:
        text = ""
        while not (servers and re.search(r"http://\S+\?token=\w+", text)):
            with pytest.raises(subprocess.TimeoutExpired):  # it has not ended
                lab.wait(timeout=0.1)
            text = (tmp_path / "log").read_text(encoding="utf-8")
            written = [path.read_text() for path in (tmp_path / "runtime").glob("jpserver-*.json")]
            servers = [json.loads(entry) for entry in written if entry.endswith("}")]  # it may be half-written
        assert [server["root_dir"] for server in servers] == [str(course / "notebooks")]
    finally:
        for server in servers:
            os.kill(server["pid"], 15)
        lab.terminate()
        lab.wait(timeout=60)
    python = course / ".venv/bin/python"
    script = "import course_utils, importlib.util as u; print(course_utils.__file__, u.find_spec('autograder'))"
    run = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(course / "course_utils/__init__.py"), "None"]
    shutil.rmtree(course / ".venv")  # gigabytes that pytest would keep


def test_lectures_can_be_handed_out_one_by_one(tmp_path: Path) -> None:
    chosen = source.lectures(project.SOLUTIONS)[:1]
    name = chosen[0].stem
    made = make_release(tmp_path / "one", chosen)
    notebooks = made / "notebooks" / name / f"{name}.ipynb"
    assert notebooks.read_bytes() == project.notebook_path(project.NOTEBOOKS, name).read_bytes()
    assert sorted(path.name for path in (made / "notebooks").iterdir()) == sorted([name, "glossary.md"])
    ran = CliRunner().invoke(app, ["release", str(tmp_path / "none"), "--no-notebooks"])
    assert ran.exit_code == 0, ran.output
    bare = members(Path(ran.output.splitlines()[0]))
    assert "course_utils/__init__.py" in bare and not [path for path in bare if path.startswith("notebooks/")]
    zipped = tmp_path / "one" / f"{made.name}.zip"
    for options, contents, replaced in (
        (["--no-notebooks"], "with 0 lectures", f"It replaced the release with 1 lecture ({name})"),
        (["--lecture", name], f"with 1 lecture ({name})", ""),
        (["--lecture", name], f"with 1 lecture ({name})", ""),
    ):
        ran = CliRunner().invoke(app, ["release", str(tmp_path / "one"), *options])
        first, second, *more = ran.output.splitlines()
        assert Path(first) == made and second == f"{zipped}: for students, {contents}" and zipped.is_file()
        assert "".join(more).startswith(replaced) and bool(more) == bool(replaced), ran.output
    for options in (["--lecture", name, "--no-notebooks"], ["--lecture", "nothing"]):
        ran = CliRunner().invoke(app, ["release", str(tmp_path / "wrong"), *options])
        assert ran.exit_code == 2 and not (tmp_path / "wrong").exists(), ran.output
