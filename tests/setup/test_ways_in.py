"""Ways to work without installing anything: a simulated Colab, and what Binder and a dev container are told."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jaxtyping
import nbformat
import pytest
import yaml
from nbclient import NotebookClient
from packaging.requirements import Requirement
from typer.testing import CliRunner

from autograder.authoring import colab
from autograder.authoring.release import make_release
from autograder.cli import app
from autograder.grading import source
from autograder.project import notebook_path, source_path
from course_utils.colab import PACKAGES
from course_utils.notebook import read_cells

ROOT = Path(__file__).parents[2]
LECTURES = ["00_napkin_math", "01_tensors"]
# Colab's kernels import it before the first cell runs.
GOOGLE = """\
class _widgets:
    _installed_url = None


def enable_custom_widget_manager():
    _widgets._installed_url = "https://localhost/manager.js"
"""
WRONG = "def tensor_bytes(x, dtype=None):\n    return x.numel()"
EXPLORER = "from course_utils.explorers import roofline; roofline.explore()"
FACTS = """\
import json, os, subprocess, sys, google.colab, course_utils, torch
child = subprocess.check_output([sys.executable, "-c", "import course_utils; print(course_utils.__file__)"], text=True)
files = [torch.__file__, course_utils.__file__, child.strip(), os.getcwd()]
print(json.dumps({"files": files, "widgets": google.colab.output._widgets._installed_url}))
"""


# Runs the cells of each lecture in a fork of one process that has imported PyTorch, as Python but without a kernel, and
# prints what each cell showed and the error that it raised.
EACH = """\
import json, os, sys
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

lectures, results = json.load(open(sys.argv[1])), sys.argv[2]
for name, cells in lectures.items():
    if os.fork():
        _, status = os.wait()
        assert status == 0, name
        continue
    os.makedirs(name)
    os.chdir(name)
    shell, found = InteractiveShell.instance(), []
    for cell in cells:
        with capture_output() as shown:
            ran = shell.run_cell(cell, store_history=True)
        error = ran.error_before_exec or ran.error_in_exec
        returned = shell.display_formatter.format(ran.result)[0]
        found.append([shown.stdout + returned.get("text/html", ""), error and repr(error)])
    with open(f"{results}/{name}.json", "w") as file:
        json.dump(found, file)
    sys.stdout.flush()
    os._exit(0)
"""


class Colab:
    """Kernels of a Python with this environment's packages, but without the course, jaxtyping and an index.

    ``made`` has the notebooks that `course colab` made, whose first cell fetches the students' release.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
        self.made, self.venv, self.given = made, folder / "venv", folder / "given"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True)
        self.given.mkdir()
        absent = ("every_byte_every_flop", "_editable_impl", "jaxtyping", "__editable__")
        for path in Path(jaxtyping.__file__).parents[1].iterdir():
            if not path.name.startswith(absent) and path.suffix != ".pth":
                (self.given / path.name).symlink_to(path)
        (self.given / "google" / "colab").mkdir(parents=True)
        (self.given / "google" / "colab" / "__init__.py").write_text("from . import output\n")
        (self.given / "google" / "colab" / "output.py").write_text(GOOGLE)
        (self.given / "sitecustomize.py").write_text("import google.colab\n")
        kernel = folder / "jupyter" / "kernels" / "colab"
        kernel.mkdir(parents=True)
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.spec: dict[str, Any] = {
            "argv": [f"{self.venv}/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Colab",
            "language": "python",
            "env": {
                "PYTHONPATH": str(self.given),
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.wheels),
                "PIP_NO_CACHE_DIR": "1",
            },
        }
        (kernel / "kernel.json").write_text(json.dumps(self.spec))
        monkeypatch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        self.content = folder / "content"  # where Colab's notebooks run; the notebook itself isn't there
        self.content.mkdir()

    def pack_jaxtyping(self) -> None:
        """Make a wheel of the installed jaxtyping, for pip to find."""
        packages = Path(jaxtyping.__file__).parents[1]
        [info] = packages.glob("jaxtyping-*.dist-info")
        version = info.name.removesuffix(".dist-info")
        with zipfile.ZipFile(self.wheels / f"{version}-py3-none-any.whl", "w") as wheel:
            for path in [*(packages / "jaxtyping").rglob("*.py"), *info.rglob("*")]:
                if path.is_file():
                    wheel.write(path, path.relative_to(packages))

    def run(self, cells: list[Any]) -> list[list[Any]]:
        """Run cells in a new kernel, whatever fails; return their outputs."""
        notebook = nbformat.v4.new_notebook(cells=cells)
        resources = {"metadata": {"path": str(self.content)}}
        NotebookClient(
            notebook,
            timeout=120,
            kernel_name="colab",
            allow_errors=True,
            resources=resources,
            shutdown_kernel="immediate",
        ).execute()
        return [cell.outputs for cell in notebook.cells]

    def run_each(self, lectures: dict[str, list[str]]) -> dict[str, list[tuple[str, str | None]]]:
        """Run each lecture's cells in a process of its own; what each cell showed, and its error if it raised one."""
        (asked := self.content / "lectures.json").write_text(json.dumps(lectures))
        (results := self.content / "results").mkdir()
        command = [f"{self.venv}/bin/python", "-c", EACH, str(asked), str(results)]
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | self.spec["env"]
        ran = subprocess.run(command, cwd=self.content, env=environ, capture_output=True, text=True, timeout=500)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return {name: json.loads((results / f"{name}.json").read_bytes()) for name in lectures}

    def set_up(self) -> list[Any]:
        """Run the cell that fetches the course alone; return its outputs."""
        cells = [cell for cell in lecture_cells(self.made) if cell.get("id") == "fetch-course"]
        assert len(cells) == 1
        return self.run(cells)[0]


def lecture_cells(made: Path) -> list[Any]:
    """The code cells of lecture 01 as Colab opens it."""
    cells = nbformat.read(notebook_path(made / "notebooks", "01_tensors"), as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def name_of_a_later_cell(made: Path, number: int) -> str:
    """A name that the lecture defines below a code cell, and neither above nor in an exercise."""
    cells = read_cells(notebook_path(made / "notebooks", "01_tensors"))
    above = {name for cell in cells[: number + 1] for name in cell.defines}
    below = [name for cell in cells[number + 1 :] if not cell.exercise for name in sorted(cell.defines)]
    return next(name for name in below if name not in above)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A students' release as a zip."""
    folder = make_release(tmp_path_factory.mktemp("release"), [source_path("01_tensors")])
    return folder.with_name(folder.name + ".zip")


@pytest.fixture(scope="module")
def made(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `course colab` makes of two lectures; their first cell fetches the release."""
    folder = tmp_path_factory.mktemp("colab")
    options = ["--repository", "someone/course", "--archive", release.as_uri()]
    options += [part for lecture in LECTURES for part in ("--lecture", lecture)]
    ran = CliRunner().invoke(app, ["colab", str(folder), *options])
    assert ran.exit_code == 0 and ran.output.splitlines()[-1] == f"{folder}/README.md", ran.output
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path) -> Colab:
    return Colab(tmp_path, monkeypatch, made)


def said(outputs: list[Any]) -> str:
    """What a cell printed and returned, and its error as it's shown."""
    return "\n".join(
        o.get("text", "")
        + "".join(o.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html"))
        + "\n".join(o.get("traceback", []))
        for o in outputs
    )


def test_on_colab_an_exercise_gives_its_rubric_and_the_torch_that_was_there_stays(machine: Colab) -> None:
    machine.pack_jaxtyping()
    cells = lecture_cells(machine.made)
    check = next(number for number, cell in enumerate(cells) if cell.source == 'check("tensor_bytes")')
    exercises = source.read(source_path("01_tensors")).exercises
    [answer] = [each.solution for each in exercises if each.name == "tensor_bytes"]
    checked, later = cells[check].source, name_of_a_later_cell(machine.made, check)
    more = [nbformat.v4.new_code_cell(each) for each in (WRONG, checked, answer, checked, EXPLORER, later, FACTS)]
    outputs = [said(each) for each in machine.run([*cells[: check + 1], *more])]
    stub, wrong, right, found = outputs[check], outputs[-6], outputs[-4], json.loads(outputs[-1])
    assert "✓○○○○○ 1 of 6 exercises done" in "\n".join(outputs[:check]), "the panel is not there, or stays as it was"
    assert "tensor_bytes: 0 of 1 points" in stub and stub.count("○") == 4
    assert "tensor_bytes: 0 of 1 points" in wrong and "✗" in wrong and "Your code counts elements" in wrong
    assert "tensor_bytes: 1 of 1 points" in right and right.count("✓") >= 4 and "✗" not in right
    assert "1 of 6 exercises done" in right
    assert f"`{later}` is defined in a cell above" in outputs[-2] and "Runtime ▸ Run before" in outputs[-2]
    assert "<a href" not in "".join(outputs), "a link to a cell of JupyterLab"
    torch, course, child, folder = map(Path, found["files"])
    assert torch.is_relative_to(machine.given)
    assert course == child and course.is_relative_to(machine.content)
    assert folder == course.parents[1] / "notebooks" / "01_tensors"
    assert found["widgets"], "explorers stay pictures: Colab was not asked for its manager of other people's widgets"
    [packages] = machine.venv.glob("lib/python*/site-packages")
    assert {path.name.split("-")[0] for path in packages.iterdir()} == {"jaxtyping"}


def test_on_colab_each_lecture_runs_as_far_as_its_first_exercise(machine: Colab, tmp_path: Path) -> None:
    machine.pack_jaxtyping()
    archive = tmp_path / "course.zip"  # as GitHub packs the repository
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (path for folder in ("course_utils", "notebooks") for path in (ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                packed.write(path, Path("course-0123", path.relative_to(ROOT)))
    lectures = [source.read(path) for path in source.lectures(ROOT / "solutions")]
    cells = {}
    for lecture in lectures:
        notebook = nbformat.read(notebook_path(ROOT / "notebooks", lecture.name), as_version=4)
        [setup] = [cell for cell in colab.first_cells(lecture.name, archive.as_uri()) if cell.cell_type == "code"]
        code = [setup.source, *(cell.source for cell in notebook.cells if cell.cell_type == "code")]
        first = lecture.exercises[0]
        check = f'check("{first.name}")'
        cells[lecture.name] = [*code[: code.index(check) + 1], first.solution, check]
    for lecture, outputs in zip(lectures, machine.run_each(cells).values(), strict=True):
        first = lecture.exercises[0]
        assert (machine.content / lecture.name / "course-0123" / "course_utils").is_dir()
        errors = [error for _, error in outputs if error]
        assert not errors, (lecture.name, errors)
        stub, _, right = [shown for shown, _ in outputs[-3:]]
        assert f"{first.name}: 0 of {first.points:g} point" in stub and "○" in stub and "✓" not in stub, stub
        assert f"{first.name}: {first.points:g} of {first.points:g} point" in right and "✗" not in right, right


def test_on_colab_no_answer_is_fetched(machine: Colab) -> None:
    machine.pack_jaxtyping()
    assert said(machine.set_up()) == ""
    fetched = [path for path in machine.content.rglob("*") if path.is_file()]
    assert fetched and all(
        path.relative_to(machine.content).parts[1] in {"course_utils", "notebooks"} for path in fetched
    )


def test_without_a_network_the_first_cell_on_colab_fails_in_one_clear_line(machine: Colab, release: Path) -> None:
    [error] = machine.set_up()
    assert error.output_type == "error" and len(error.traceback) == 1 and "\n" not in error.traceback[0]
    assert error.traceback[0].startswith("Setup stopped: pip can't install jaxtyping (ERROR: No matching distribution")
    [cell] = [cell for cell in lecture_cells(machine.made) if cell.get("id") == "fetch-course"]
    cell.source = cell.source.replace(release.as_uri(), "http://127.0.0.1:9/course.zip")
    [[error]] = machine.run([cell])
    assert error.output_type == "error" and len(error.traceback) == 1 and "\n" not in error.traceback[0]
    assert error.traceback[0].startswith("Setup stopped: http://127.0.0.1:9/course.zip can't be fetched (")


def test_where_the_course_is_installed_the_first_cell_on_colab_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    colab.fetch_course("http://127.0.0.1:9/course.zip", "01_tensors")
    assert Path.cwd() == tmp_path and list(tmp_path.iterdir()) == []


def test_whatever_the_lectures_import_is_pytorch_jupyters_or_fetched() -> None:
    files = [*(ROOT / "course_utils").rglob("*.py"), *source.lectures(ROOT / "solutions")]
    found = set()
    for node in (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    jupyters = {"IPython", "nbformat", "traitlets"}  # Colab's kernel can't do without
    assert found - sys.stdlib_module_names - jupyters - {"course_utils", "torch"} == set(PACKAGES)


def test_the_page_has_a_badge_for_each_lecture_that_leads_to_its_notebook(made: Path) -> None:
    page = (made / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"colab-badge\.svg\)\]\((.+?)\)", page)
    assert links == [colab.address("someone/course", lecture) for lecture in LECTURES]
    start = "https://colab.research.google.com/github/someone/course/blob/colab/"
    for link in links:
        assert link.startswith(start) and (made / link.removeprefix(start)).is_file()
    assert all(missing in page for missing in ("lacks grading, the sandbox", "no grading, no sandbox", "can't grade"))


def test_a_lecture_on_colab_says_what_is_missing_and_links_to_the_others_there(made: Path) -> None:
    notebook = nbformat.read(notebook_path(made / "notebooks", "01_tensors"), as_version=4)
    nbformat.validate(notebook)
    released = nbformat.read(notebook_path(ROOT / "notebooks", "01_tensors"), as_version=4)
    title, note, setup, *others = notebook.cells
    assert "lacks grading, the sandbox" in note.source and "name the file `01_tensors.ipynb`" in note.source
    assert setup.cell_type == "code"
    texts = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert colab.address("someone/course", "00_napkin_math") in title.source and "](../" not in texts
    for cell, same in zip([title, *others], released.cells, strict=True):
        assert cell.metadata == same.metadata and cell.id == same.id
        assert cell.source == same.source or cell.cell_type == "markdown"


@pytest.mark.parametrize("repository", ["", "course", "https://github.com/someone/course"])
def test_without_a_repository_no_address_is_made_up(repository: str, tmp_path: Path) -> None:
    arguments = ["colab", str(tmp_path / "new"), *(["--repository", repository] if repository else [])]
    ran = CliRunner(env={"GITHUB_REPOSITORY": None}).invoke(app, arguments)
    assert ran.exit_code == 1 and "→ give --repository OWNER/NAME" in ran.output, ran.output
    assert list(tmp_path.iterdir()) == []


def test_the_commit_that_colab_fetches_is_the_workflows_or_the_one_checked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/course")
    for commit in ("0123abcd", None):
        ran = CliRunner(env={"GITHUB_SHA": commit}).invoke(app, ["colab", str(tmp_path), "--lecture", "01_tensors"])
        assert ran.exit_code == 0, ran.output
        git = ["git", "rev-parse", "HEAD"]
        wanted = commit or subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        text = notebook_path(tmp_path / "notebooks", "01_tensors").read_text(encoding="utf-8")
        assert f"https://github.com/someone/course/archive/{wanted}.zip" in text


def test_the_workflow_puts_the_lectures_and_nothing_else_on_their_branch(made: Path, tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "colab.yml").read_text(encoding="utf-8"))
    *_, command, publish = [step["run"] for step in workflow["jobs"]["publish"]["steps"] if "run" in step]
    assert command == ".venv/bin/course colab build/colab"

    def git(*arguments: str, folder: Path) -> str:
        options = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"]
        return subprocess.run(
            ["git", *options, *arguments], cwd=folder, capture_output=True, text=True, check=True
        ).stdout

    origin, clone = tmp_path / "origin", tmp_path / "clone"
    git("init", "--bare", str(origin), folder=tmp_path)
    for time in (1, 2):  # the second time, the branch is there
        shutil.rmtree(clone, ignore_errors=True)
        git("clone", str(origin), str(clone), folder=tmp_path)
        if time == 1:
            (clone / ".gitignore").write_text("build/\n")
            (clone / "solution.py").touch()
            git("add", "--all", folder=clone)
            git("commit", "-m", "the course", folder=clone)
            git("push", "origin", "HEAD:main", folder=clone)
        shutil.copytree(made, clone / "build" / "colab")
        subprocess.run(["sh", "-e", "-c", publish], cwd=clone, env={**os.environ, "GITHUB_SHA": "0123"}, check=True)
    names = git("ls-tree", "-r", "--name-only", "colab", folder=origin).split()
    assert sorted(names) == sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    assert "0123" in git("log", "colab", folder=origin) and git("rev-list", "--count", "colab", folder=origin) == "1\n"


def test_the_dev_container_installs_the_course_and_opens_its_environment() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    python, script = shlex.split(container["postCreateCommand"])
    assert python == "python3" and (ROOT / script).is_file()
    image, _, version = container["image"].partition(":")
    assert image == "python" and version in python_versions()
    workspace, _, rest = container["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"].partition(
        "/"
    )
    assert workspace == "${containerWorkspaceFolder}" and rest == ".venv/bin/python"
    assert "no grading, no sandbox" in container["name"]
    assert set(container) <= {
        "name", "image", "hostRequirements", "postCreateCommand", "postAttachCommand", "forwardPorts", "customizations"
    }  # fmt: skip


def test_binder_is_told_a_python_and_a_pytorch_that_the_course_takes() -> None:
    environment = yaml.safe_load((ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8"))
    python, pip, torch = environment["dependencies"]
    assert python.removeprefix("python=") in python_versions() and pip == "pip"
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    [needed] = [each for each in map(Requirement, dependencies) if each.name == "torch"]
    assert Requirement(torch) == Requirement(f"pytorch-cpu{needed.specifier}")
    assert os.access(ROOT / ".binder" / "postBuild", os.X_OK)


def python_versions() -> list[str]:
    """The versions of Python that bootstrap.py takes."""
    text = (ROOT / "bootstrap.py").read_text(encoding="utf-8")
    [oldest, newest] = re.findall(r"\(3, (\d+)\)", text.partition("OLDEST, NEWEST = ")[2].partition("\n")[0])
    return [f"3.{minor}" for minor in range(int(oldest), int(newest) + 1)]
