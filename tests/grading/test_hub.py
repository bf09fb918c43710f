"""What `course hub` writes, and what it refuses; tests/browser/test_jupyterhub.py brings the hub up."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from traitlets.config import Config
from typer.testing import CliRunner

from autograder import cli, project
from autograder.records import hub
from autograder.records.folder import CONFIG, ClassFolder

root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can set up a hub")
PAGE = (project.ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path: Path) -> ClassFolder:
    folder = ClassFolder(tmp_path / "class")
    folder.root.mkdir()
    settings = 'c = get_config()\nc.CourseDirectory.course_id = "cs336"\n'
    (folder.root / CONFIG).write_text(settings, encoding="utf-8")
    folder.roster.write_text("id,email\nada,ada@example.org\nbob,\n", encoding="utf-8")
    return folder


def run(*arguments: object) -> tuple[int, str]:
    ran = CliRunner().invoke(cli.app, ["hub", *map(str, arguments)])
    return ran.exit_code, ran.output


def values(course: ClassFolder, *options: str) -> dict[str, Any]:
    code, said = run(course, course.root / "k8s", "--kubernetes", *options)
    assert code == 0, said
    read: dict[str, Any] = yaml.safe_load((course.root / "k8s" / "values.yaml").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize(
    ("roster", "options", "says"),
    [
        (None, [], "nobody could use the hub"),
        ("id\nAda Lovelace\n", [], "'Ada Lovelace' can't be a user"),
        ("id\na+b\n", [], "'a+b' can't be a user"),
        ("id\nada\n", ["--grader", "../x"], "'../x' can't be a user"),
        ("id\nada\n", ["--grader", "ada"], "ada can't be both a student and a grader"),
        ("id\ngrader\n", [], "give it an account of its own"),
        ("id\nada\n", ["--memory", "much"], "'much' is not an amount of memory"),
    ],
)
def test_what_no_hub_can_be_made_of_is_an_error_and_writes_nothing(
    course: ClassFolder, roster: str | None, options: list[str], says: str
) -> None:
    course.roster.unlink()
    if roster is not None:
        course.roster.write_text(roster, encoding="utf-8")
    code, said = run(course, course.root / "k8s", "--kubernetes", *options)
    assert code == 1 and says in said and "→" in said and "Traceback" not in said, said
    assert not (course.root / "k8s").exists()


def test_a_course_id_that_leads_elsewhere_is_an_error(course: ClassFolder) -> None:
    for name in ("../x", "", "a/b", "*", "a b"):
        (course.root / CONFIG).write_text(f"c = get_config()\nc.CourseDirectory.course_id = {name!r}\n")
        code, said = run(ClassFolder(course.root), course.root / "k8s", "--kubernetes")
        assert code == 1 and "course_id" in said, (name, said)


def test_the_classs_configuration_is_not_run(course: ClassFolder, tmp_path: Path) -> None:
    """Graders can change it, and whoever sets up the hub is root."""
    mine = f"c = get_config()\nc.CourseDirectory.course_id = 'cs336'\nopen({str(tmp_path / 'ran')!r}, 'w').close()\n"
    (course.root / CONFIG).write_text(mine, encoding="utf-8")
    assert "'cs336'" in values(course)["singleuser"]["extraFiles"]["srv-hub-students-nbgrader_config.py"]["stringData"]
    assert not (tmp_path / "ran").exists()
    for wrong in ("c.CourseDirectory.course_id = open('x').read()", "c.CourseDirectory.course_id = 3", "c = (", "\0"):
        (course.root / CONFIG).write_text(wrong, encoding="utf-8")
        code, said = run(course, course.root / "k8s", "--kubernetes")
        assert code == 1 and "→" in said and CONFIG in said, (wrong, said)


def test_a_folder_that_is_no_class_and_an_environment_that_is_not_named(course: ClassFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, said = run(tmp_path / "empty", tmp_path / "hub", "--environment", tmp_path)
    assert code == 1 and "is not a class folder" in said
    code, said = run(course, tmp_path / "hub")
    assert code == 2 and "--environment" in said


@root
def test_a_class_of_root_and_one_of_nobody_get_no_hub(course: ClassFolder, tmp_path: Path) -> None:
    code, said = run(course, tmp_path / "hub", "--environment", tmp_path)
    assert code == 1 and "belongs to root" in said and "useradd" in said
    os.chown(course.root, 54321, 54321)
    code, said = run(course, tmp_path / "hub", "--environment", tmp_path)
    assert code == 1 and "belongs to no user of this machine" in said
    assert not (tmp_path / "hub").exists()


@root
def test_it_is_written_again_but_for_what_is_yours(course: ClassFolder, tmp_path: Path) -> None:
    place, exchange = tmp_path / "hub", tmp_path / "exchange"
    made = hub.of(course, place, account="daemon", graders=["ines"], exchange=exchange)
    hub.write(made)
    assert exchange.stat().st_mode & 0o7777 == 0o1777  # nobody can move what others have there
    assert (exchange / "cs336").owner() == "daemon" and (exchange / "cs336").stat().st_mode & 0o777 == 0o755
    assert (place / "private").stat().st_mode & 0o777 == 0o700
    mine = place / hub.CONFIG_OF_HUB
    mine.write_text(mine.read_text() + "c.JupyterHub.bind_url = 'https://hub.example.org'\n")
    kept = mine.read_bytes()
    course.roster.write_text("id\nada\neve\n", encoding="utf-8")
    hub.write(hub.of(course, place, account="daemon", graders=["ines"], exchange=exchange))
    assert mine.read_bytes() == kept
    assert "['ada', 'eve']" in (place / "class_config.py").read_text(encoding="utf-8")
    with pytest.raises(hub.HubError, match="belongs to daemon, not to bin"):
        hub.write(hub.of(course, place, account="bin", exchange=exchange))
    with pytest.raises(hub.HubError, match="there is no user nobody-here"):
        hub.write(hub.of(course, place, account="nobody-here", exchange=exchange))


@root
def test_names_with_odd_characters_stay_text(course: ClassFolder, tmp_path: Path) -> None:
    """Folders can be called anything; none of it becomes code."""
    place = tmp_path / 'it\'s "x" {{ 1 + 1 }}; import os'
    made = hub.of(course, place, account="daemon", exchange=tmp_path / "ex'change")
    for path in hub.write(made):
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
    found = Config()
    text = (place / "students" / CONFIG).read_text(encoding="utf-8")
    exec(text, {"get_config": lambda: found})
    assert found.Exchange.root == str(tmp_path / "ex'change") and found.CourseDirectory.course_id == "cs336"


def test_what_systemd_and_the_hub_are_told_they_know(course: ClassFolder, tmp_path: Path) -> None:
    """Settings that a class doesn't have are ignored silently."""
    jupyterhub = pytest.importorskip("jupyterhub", reason="`python3 bootstrap.py --extra hub` installs it")
    systemd = pytest.importorskip("systemdspawner", reason="`python3 bootstrap.py --extra hub` installs it")
    from jupyterhub import app, auth, proxy

    assert jupyterhub
    made = hub.of(course, tmp_path / "hub", account="daemon", graders=["ines"], memory="3G", cpus=1.5)
    found = Config()
    exec(hub._filled("class_config.py", made), {"get_config": lambda: found})
    found.SystemdSpawner.unit_extra_properties = {"TasksMax": "1000"}
    classes = {
        "JupyterHub": app.JupyterHub,
        "Authenticator": auth.Authenticator,
        "ConfigurableHTTPProxy": proxy.ConfigurableHTTPProxy,
        "Spawner": systemd.SystemdSpawner,
        "SystemdSpawner": systemd.SystemdSpawner,
    }
    assert set(found) == set(classes)
    for name, section in found.items():
        traits = classes[name].class_traits(config=True)
        assert set(section) <= set(traits), (name, set(section) - set(traits))
    assert (found.Spawner.mem_limit, found.Spawner.cpu_limit) == ("3G", 1.5)
    assert found.Authenticator.allowed_users == {"daemon", "ines", "ada", "bob"}
    spawner = SimpleNamespace(user=SimpleNamespace(name="ada"), environment={"A": "b"}, mem_limit="4G")
    found.Spawner.pre_spawn_hook(spawner)
    assert spawner.environment["JUPYTER_CONFIG_PATH"] == str(tmp_path / "hub" / "students") and spawner.mem_limit
    spawner.user.name = "daemon"
    found.Spawner.pre_spawn_hook(spawner)
    assert spawner.environment["JUPYTER_CONFIG_PATH"].startswith(str(tmp_path / "hub" / "graders:"))
    assert spawner.mem_limit is None and spawner.notebook_dir == str(course.root.resolve())


def test_in_a_cluster_everybody_has_a_number_and_the_settings_of_one_machine(course: ClassFolder) -> None:
    found = values(course, "--grader", "ines", "--memory", "3G", "--cpus", "1.5")
    single = found["singleuser"]
    assert (single["memory"]["limit"], single["cpu"]["limit"]) == ("3G", 1.5)
    files = {each["mountPath"]: each["stringData"] for each in single["extraFiles"].values()}
    made = hub.of(course, course.root, account="grader", graders=["ines"])
    for name, text in hub._settings(made).items():
        assert files[f"/srv/hub/{name}"].strip() == text.strip()
        if name.endswith(".json"):
            json.loads(files[f"/srv/hub/{name}"])
    assert "formgrader" in files["/srv/hub/graders/labconfig/page_config.json"]

    c, asked = Config(), []
    scope = {"c": c, "get_config": lambda key: asked.append(key) or "graders:1"}
    c.JupyterHub.load_roles = [{"name": "another"}]
    exec(found["hub"]["extraConfig"]["class"], scope)
    passwd = {line.split(":")[0]: int(line.split(":")[2]) for line in files["/etc/passwd"].split()}
    spawners = {}
    for name in ("ada", "bob", "ines", "grader"):
        spawner = SimpleNamespace(user=SimpleNamespace(name=name), environment={}, image="students:1", cmd=None)
        c.KubeSpawner.pre_spawn_hook(spawner)
        assert spawner.uid == spawner.gid == spawner.fs_gid == passwd[name] > 100_000
        spawners[name] = spawner
    assert len({one.uid for one in spawners.values()}) == 4
    assert {name: one.image for name, one in spawners.items() if one.cmd} == {"grader": "graders:1"}
    assert asked == ["custom.gradersImage"] and c.JupyterHub.load_roles[0] == {"name": "another"}
    scopes = ["servers!user=grader", "access:servers!user=grader"]
    # Not through a group, where whoever has been in it stays.
    assert c.JupyterHub.load_roles[1] == {"name": "graders", "users": ["ines"], "scopes": scopes}
    # A number belongs to a name: it doesn't depend on who else is there.
    course.roster.write_text("id\nada\n", encoding="utf-8")
    assert f"ada:x:{passwd['ada']}:" in values(course)["singleuser"]["extraFiles"]["etc-passwd"]["stringData"]


def test_the_page_about_clusters_fits(course: ClassFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    section = PAGE[PAGE.index("### Kubernetes\n") : PAGE.index("## Change or add")]
    monkeypatch.chdir(course.root)
    command = shlex.split(section.split("```sh\n")[1].splitlines()[0], comments=True)
    ran = CliRunner().invoke(cli.app, command[1:])
    assert ran.exit_code == 0 and Path("k8s/values.yaml").is_file(), ran.output
    mine = yaml.safe_load(section.split("```yaml\n")[1].partition("```")[0])
    ours = yaml.safe_load(Path("k8s/values.yaml").read_text(encoding="utf-8"))
    mounts = [mount["name"] for mount in ours["singleuser"]["storage"]["extraVolumeMounts"]]
    assert mounts == [volume["name"] for volume in mine["singleuser"]["storage"]["extraVolumes"]]
    assert "gradersImage" in mine["custom"] and "custom.gradersImage" in ours["hub"]["extraConfig"]["class"]
    grader = ours["singleuser"]["extraFiles"]["etc-passwd"]["stringData"].split("grader:x:")[1].split(":")[0]
    assert f"install -d -o {grader} -g {grader} /exchange/cs336" in section


def test_the_images_that_the_page_builds_are_those_that_the_cluster_is_told_to_run() -> None:
    section = PAGE[PAGE.index("### Kubernetes\n") : PAGE.index("## Change or add")]
    lines = section.split("```dockerfile\n")[1].partition("```")[0].splitlines()
    instructions = [line.split(maxsplit=1) for line in lines]
    assert {name for name, _ in instructions} == {"FROM", "ARG", "ENV", "COPY", "RUN", "WORKDIR", "CMD"}
    arguments = {rest.partition("=")[0] for name, rest in instructions if name == "ARG"}
    about = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted: dict[str, Any] = {}
    for line in section.split("```sh\n")[2].partition("```")[0].splitlines():
        program, *given = shlex.split(line, comments=True)
        if program == "docker" and given[0] == "build":
            parser = argparse.ArgumentParser()
            parser.add_argument("-f")
            parser.add_argument("-t")
            parser.add_argument("--build-arg", action="append")
            parser.add_argument("context")
            read = parser.parse_args(given[1:])
            wanted[read.t] = read
    students, graders = wanted.values()
    assert students.context == f"build/{about['name']}-{about['version']}" and graders.context == "build/project"
    for one in wanted.values():
        made = dict(each.split("=", 1) for each in one.build_arg)
        assert made.keys() <= arguments and made["JUPYTERHUB"]
        option, extra = made.get("EXTRA", "--extra ").split(" ")
        assert option == "--extra" and extra in ("", *about["optional-dependencies"])
    mine = yaml.safe_load(section.split("```yaml\n")[1].partition("```")[0])
    image = mine["singleuser"]["image"]
    assert [f"{image['name']}:{image['tag']}", mine["custom"]["gradersImage"]] == list(wanted)
