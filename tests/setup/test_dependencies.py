"""One list of dependencies: the lock and conda's file say what pyproject.toml says."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
# What the lock serves: every system that PyTorch is built for.
PLATFORMS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]


def locked(environment: dict[str, str] | None = None) -> dict[str, str]:
    """Version of each package in the lock for a system and Python; this one if none is given."""
    found = [Requirement(line) for line in LOCK.splitlines() if line and not line.startswith("#")]
    here = [each for each in found if each.marker is None or each.marker.evaluate(environment)]
    for each in here:
        assert re.fullmatch(r"==[^*,]+", str(each.specifier)), f"requirements.lock: {each} is no exact version"
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in here}


def required() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    found = [Requirement(text) for part in [PROJECT["dependencies"], *extras] for text in part]
    return [each for each in found if each.name != PROJECT["name"]]


@pytest.fixture(scope="module")
def bootstrap() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", ["3.11.2", "3.11.9", "3.12.4", "3.14.0"])
def test_the_lock_satisfies_every_requirement(system: str, python: str) -> None:
    versions = locked(
        {"sys_platform": system, "python_version": python[:4], "python_full_version": python, "os_name": "nt"}
    )
    for each in required():
        version = versions.get(canonicalize_name(each.name))
        assert version, f"{each.name} is in pyproject.toml and not in requirements.lock: make lock"
        assert each.specifier.contains(version), (
            f"pyproject.toml wants {each}, requirements.lock has {version}: make lock"
        )


def test_what_this_environment_installed_is_what_the_lock_says() -> None:
    versions, todo, seen = locked(), [(each.name, each.extras) for each in required()], set()
    while todo:
        name, extras = todo.pop()
        if (canonicalize_name(name), frozenset(extras)) in seen:
            continue
        seen.add((canonicalize_name(name), frozenset(extras)))
        distribution = importlib.metadata.distribution(name)
        if not Path(str(distribution.locate_file(""))).is_relative_to(sys.prefix):
            continue  # the machine's own, as PyTorch on a machine with a GPU (bootstrap.py --system-torch)
        version = versions.get(canonicalize_name(name))
        assert version, f"{name} is installed and not in requirements.lock: make lock"
        installed = distribution.version.partition("+")[0]  # a local build, as 2.13.0+cpu, is that version
        assert installed == version, f"{name} {installed} is installed, the lock has {version}: python3 bootstrap.py"
        for each in map(Requirement, distribution.requires or []):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in [*extras, ""]):
                todo.append((each.name, each.extras))
    assert len(seen) > 100


def test_the_lock_names_no_place(bootstrap: ModuleType) -> None:
    assert not re.search(r"https?:|file:|--|@|/", re.sub(r"^#.*", "", LOCK, flags=re.MULTILINE))
    assert "+" not in LOCK, "a local build (torch==…+cpu) exists on one system only"


@pytest.mark.slow
def test_every_system_and_python_finds_wheels_of_the_locked_versions(bootstrap: ModuleType) -> None:
    """Reads the index through uv; nothing is downloaded but metadata, nothing may have to be compiled."""
    pythons = [f"3.{minor}" for minor in range(bootstrap.OLDEST[1], bootstrap.NEWEST[1] + 1)]
    assert bootstrap.OLDEST[0] == bootstrap.NEWEST[0] == 3 and len(pythons) >= 3
    wanted = list(itertools.product(PLATFORMS, pythons))

    def resolve(one: tuple[str, str]) -> subprocess.CompletedProcess[str]:
        system, python = one
        command = ["-m", "uv", "pip", "compile", "--quiet", "--no-python-downloads", "--only-binary=:all:"]
        command += ["--python-version", python, "--python-platform", system, "--extra=test"]
        return subprocess.run(
            [sys.executable, *command, "-c", "requirements.lock", "pyproject.toml"],
            cwd=ROOT,
            env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
            capture_output=True,
            text=True,
        )

    with ThreadPoolExecutor(len(wanted)) as pool:  # most of the time goes into waiting for the index
        for (system, python), run in zip(wanted, pool.map(resolve, wanted), strict=True):
            assert run.returncode == 0, f"{system}, Python {python}:\n{run.stderr}"


def test_conda_installs_what_bootstrap_installs(bootstrap: ModuleType) -> None:
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert conda["name"] == PROJECT["name"]
    python, pip, section = conda["dependencies"]
    assert pip == "pip"
    assert section == {"pip": [" ".join(pair) for pair in bootstrap.REQUIREMENTS]}
    version = re.fullmatch(r"python=(3\.\d+)", python)
    assert version, f"environment.yml: {python!r} names no one Python, and some services then take an old one"
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(version[1])
    assert tuple(map(int, version[1].split("."))) <= bootstrap.NEWEST


def test_bootstrap_wants_the_python_that_the_project_requires(bootstrap: ModuleType) -> None:
    assert PROJECT["requires-python"] == ">={}.{}".format(*bootstrap.OLDEST)
    assert list(bootstrap.EXTRAS) == ["", *PROJECT["optional-dependencies"]]


def test_nothing_else_lists_dependencies() -> None:
    lists = ["requirements*.txt", "setup.py", "setup.cfg", "Pipfile*", "*.lock", "environment*.y*ml", "constraints*"]
    found = {path.name for pattern in lists for path in ROOT.glob(pattern)}
    assert found == {"requirements.lock", "environment.yml"}


def imported(folder: Path) -> set[str]:
    """Names of the packages of others that a folder's modules import."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"course_utils", "autograder"}


@pytest.mark.parametrize(("folder", "extras"), [("course_utils", []), ("autograder", ["gpu", "instructor", "book"])])
def test_what_is_imported_is_required_by_name(folder: str, extras: list[str]) -> None:
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    names = {canonicalize_name(Requirement(text).name) for each in lists for text in each}
    owners = importlib.metadata.packages_distributions()
    modules = imported(ROOT / folder)
    assert "torch" in modules
    missing = {name for name in modules if not names & {canonicalize_name(each) for each in owners[name]}}
    assert not missing, f"{folder} imports {sorted(missing)}, which pyproject.toml does not name"
