"""A JupyterHub for a class: its settings, nbgrader's exchange, and a test of what students can read.

On a single machine, everybody is a Unix user. The class's folder belongs to an account of its own, and graders work in
that account's server; students fetch, submit and get feedback through nbgrader's exchange. In Kubernetes, where all
servers usually run as the same user, each gets a user id of its own, so that the exchange's permissions still work.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from autograder import CourseError
from autograder.project import ROOT, SOLUTIONS
from course_utils.files import replacing

from . import roster
from .folder import CONFIG, ClassFolder

EXCHANGE = Path("/srv/nbgrader/exchange")
CONFIG_OF_HUB = "jupyterhub_config.py"
_IDLE = 3600  # seconds without activity after which a kernel ends, and a server without kernels
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")  # what useradd(8) accepts; in an exchange, + and * are special
_COURSE_ID = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_MEMORY = re.compile(r"[0-9]+(\.[0-9]+)?[KMGT]")
# Enables nbgrader's list of assignments in students' JupyterLab, and the menu that leads to it.
_PAGE = {"disabledExtensions": {f"@jupyter/nbgrader:{name}": False for name in ("assignment-list", "menu")}}
# No login shell: that reads /etc/profile, which removes the environment's programs from the PATH.
_GRADERS: dict[str, object] = {"terminado_settings": {"shell_command": ["/bin/bash"]}}
_STUDENTS = _GRADERS | {
    "jpserver_extensions": {"nbgrader.server_extensions.assignment_list": True},
    "shutdown_no_activity_timeout": _IDLE,
}
# Prints what an account can open or enter. It runs as that account, so permissions, groups and ACLs all count.
_TRY = "import os, sys; print(*(p for p in sys.argv[1:] if os.access(p, os.R_OK) or os.access(p, os.X_OK)), sep='\\0')"


class HubError(CourseError):
    """A hub can't be set up for this class; the message says why and what to do."""


@dataclass(frozen=True)
class Hub:
    """A class on a JupyterHub.

    ``course_id`` is nbgrader's name for the class, the same for graders and students. ``place`` is the hub's own
    folder; ``account`` owns the class's folder. ``students`` and ``graders`` are user names, ``environment`` is the
    students' Python environment, ``memory`` and ``cpus`` limit each of their servers.
    """

    folder: ClassFolder
    course_id: str
    place: Path
    account: str
    students: tuple[str, ...]
    graders: tuple[str, ...]
    environment: Path
    exchange: Path
    memory: str
    cpus: float

    @property
    def root(self) -> Path:
        """The class's folder."""
        return self.folder.root.resolve()

    @property
    def private(self) -> Path:
        """The folder with the hub's state, which only root may read."""
        return self.place / "private"

    @property
    def own(self) -> Path:
        """The programs of the environment that this runs in, which graders and the hub use, too."""
        return Path(sys.prefix, "bin")

    @property
    def instructors(self) -> Path:
        """The Jupyter settings that enable Formgrader, which `course formgrader` uses, too."""
        return ROOT / "autograder" / "jupyter"


def of(
    folder: ClassFolder,
    place: Path,
    *,
    account: str = "",
    graders: Sequence[str] = (),
    environment: Path = Path(sys.prefix),
    exchange: Path = EXCHANGE,
    memory: str = "4G",
    cpus: float = 2.0,
) -> Hub:
    """A class's hub, with the students on its roster; ``account`` is the folder's owner if left out.

    Raises :class:`HubError` if the folder, the roster or an argument is unsuitable for a hub.
    """
    folder.require()
    if not (folder.root / CONFIG).is_file():
        raise HubError(f"{folder} is not a class folder\n  → `course init {folder}` makes it one")
    if not folder.roster.is_file():
        raise HubError(
            f"{folder.roster} is missing, so nobody could use the hub\n  → list the students there; id is the user name"
        )
    account = account or _owner(folder.root)
    students = [student.student for student in roster.read(folder.roster)]
    for name in (account, *students, *graders):
        if not _NAME.fullmatch(name):
            raise HubError(
                f"{name!r} can't be a user name: it needs 1 to 32 lowercase letters, digits, - or _\n"
                f"  → correct it in {folder.roster} (id), or in the command"
            )
    if account == "root" or account in students:
        raise HubError(
            f"the class's folder belongs to {account}, but graders work in its owner's server\n"
            f"  → give it an account of its own: useradd --create-home grader; chown -R grader: {folder.root.resolve()}"
        )
    if both := sorted({*students} & {*graders}):
        raise HubError(f"{', '.join(both)} can't be both a student and a grader\n  → use other accounts for graders")
    if not _MEMORY.fullmatch(memory):
        raise HubError(f"{memory!r} is not an amount of memory\n  → write 4G or 512M, for instance")
    place, environment, exchange = (Path(os.path.abspath(each)) for each in (place, environment, exchange))
    return Hub(
        folder,
        _course_id(folder.root / CONFIG),
        place,
        account,
        tuple(students),
        tuple(graders),
        environment,
        exchange,
        memory,
        cpus,
    )


def _course_id(path: Path) -> str:
    """The class's course id, from nbgrader's configuration.

    The configuration is a Python program that graders can change, and this may run as root, so it's only parsed.
    """
    found: object = ""
    try:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "c.CourseDirectory.course_id":
                found = node.value.value if isinstance(node.value, ast.Constant) else ast.unparse(node.value)
    except (ValueError, SyntaxError, RecursionError) as error:
        raise HubError(f"{path} can't be read ({type(error).__name__}: {error})\n  → correct it") from error
    if not isinstance(found, str) or not _COURSE_ID.fullmatch(found):
        raise HubError(
            f"{path}: course_id is {found!r:.60}, which can't be a folder in the exchange\n"
            '  → write c.CourseDirectory.course_id = "cs336", with letters, digits and hyphens'
        )
    return found


def _owner(folder: Path) -> str:
    try:
        return folder.owner()
    except KeyError as error:
        raise HubError(
            f"{folder} belongs to no user of this machine\n  → chown -R it to the class's account"
        ) from error


def write_values(hub: Hub) -> Path:
    """Write ``values.yaml`` for Zero to JupyterHub; returns its path. Raises :class:`HubError` if user ids clash."""
    numbers = {name: _number(name) for name in (hub.account, *hub.graders, *hub.students)}
    if len({*numbers.values()}) < len(numbers):
        raise HubError("two users would get the same user id in the cluster\n  → give one of them another name")
    users = [("root", 0, "/root"), *((name, number, "/home/jovyan") for name, number in numbers.items())]
    # nbgrader looks up the name of the user that it runs as, and of a submission's owner.
    passwd = "".join(f"{name}:x:{number}:{number}::{home}:/bin/bash\n" for name, number, home in users)
    files = {f"/srv/hub/{name}": text for name, text in _settings(hub).items()}
    # The settings of `course formgrader`, included because in the graders' image the project can be anywhere.
    files |= {
        f"/srv/hub/graders/{path.relative_to(hub.instructors).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted(hub.instructors.rglob("*.json"))
    }
    text = _filled("values.yaml", hub, numbers=numbers, files={"/etc/passwd": passwd, **files})
    return _put(hub.place / "values.yaml", text)


def _number(name: str) -> int:
    """A user's id in a cluster: always the same, so that files keep their owner when other users come and go."""
    return 100_000 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % 1_000_000_000


def _settings(hub: Hub) -> dict[str, str]:
    """Jupyter's and nbgrader's settings in students' servers and in the class's, by path below the hub's folder."""
    settings = {"ServerApp": _STUDENTS, "MappingKernelManager": {"cull_idle_timeout": _IDLE}}
    return {
        f"students/{CONFIG}": _filled(CONFIG, hub),
        f"graders/{CONFIG}": _filled(CONFIG, hub),
        "graders/jupyter_server_config.json": _json({"ServerApp": _GRADERS}),
        "students/jupyter_server_config.json": _json(settings),
        "students/labconfig/page_config.json": _json(_PAGE),
    }


def write(hub: Hub) -> list[Path]:
    """Write the hub's settings for one machine, and open the exchange. Returns the files.

    ``jupyterhub_config.py`` is written once and then left alone; everything else is rewritten. Raises
    :class:`HubError` if this process lacks the permissions, or if the account doesn't exist.
    """
    if not _known(hub.account):
        raise HubError(f"there is no user {hub.account} on this machine\n  → `useradd --create-home {hub.account}`")
    written = {
        "class_config.py": _filled("class_config.py", hub),
        "jupyterhub.service": _filled("jupyterhub.service", hub),
    }
    if not (hub.place / CONFIG_OF_HUB).exists():
        written[CONFIG_OF_HUB] = _filled(CONFIG_OF_HUB, hub)
    written |= _settings(hub)
    try:
        paths = [_put(hub.place / name, text) for name, text in written.items()]
        hub.private.mkdir(exist_ok=True)
        hub.private.chmod(0o700)
        _open_exchange(hub)
    except PermissionError as error:
        raise HubError(f"{error.filename} can't be written or changed\n  → run this as root") from error
    return paths


def _open_exchange(hub: Hub) -> None:
    """Make the exchange a folder that everybody can write to, with a folder for the class that the account owns.

    nbgrader requires that everybody may write to the exchange. With the sticky bit, nobody can move or delete other
    users' files there; and the class's folder exists before a student could create it.
    """
    hub.exchange.mkdir(parents=True, exist_ok=True)
    hub.exchange.chmod(0o1777)
    course = hub.exchange / hub.course_id
    if not course.exists():
        course.mkdir()
        course.chmod(0o755)
        entry = pwd.getpwnam(hub.account)
        os.chown(course, entry.pw_uid, entry.pw_gid)
    elif course.owner() != hub.account:
        raise HubError(
            f"{course} belongs to {course.owner()}, not to {hub.account}\n"
            f"  → if it's another class's, change course_id in {hub.folder.root / CONFIG}; otherwise chown -R it"
        )


def problems(hub: Hub) -> Iterator[str]:
    """What wouldn't work on this machine, or could be read by students, each with a remedy.

    Tests that as the users concerned, so it needs root.
    """
    if missing := [name for name in (*hub.students, *hub.graders) if not _known(name)]:
        yield f"no account on this machine: {_some(missing)}; run `useradd --create-home NAME` and set a password"
    python = str(hub.environment / "bin" / "python")
    uses = [(hub.account, str(hub.own / "python"), "autograder.cli, jupyterhub, nbgrader")]
    uses += [(name, python, "course_utils, jupyterhub, nbgrader") for name in _here(hub)[:1]]
    for name, program, modules in uses:
        if said := _run(name, [program, "-c", f"import {modules}"])[1]:
            yield f"{name} can't use {program} (import {modules}): {said}"
    for name, paths in _secrets(hub):
        for path in filter(None, _run(name, [python, "-c", _TRY, *map(str, paths)])[0].split("\0")):
            close = f"chmod 700 {path}" if path != str(SOLUTIONS) else f"chgrp {hub.account} {ROOT}; chmod 750 {ROOT}"
            yield f"{name} can open {path}: `{close}`"


def _secrets(hub: Hub) -> Iterator[tuple[str, list[Path]]]:
    """Pairs of a student and paths that they must not be able to open. The first student tests everybody's home but
    their own, and the second tests the first's.
    """
    here = _here(hub)
    homes = {name: Path(pwd.getpwnam(name).pw_dir) for name in (*here, hub.account)}
    for name in here[:2]:
        others = [home for other, home in homes.items() if other != name and (name == here[0] or other == here[0])]
        yield name, [*([hub.root, SOLUTIONS] if name == here[0] else []), *others]


def _here(hub: Hub) -> list[str]:
    return [name for name in hub.students if _known(name)]


def _known(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _run(name: str, command: Sequence[str]) -> tuple[str, str]:
    """Run a command as another user. Returns its output, and the last line of its errors, or "" if it succeeded."""
    entry = pwd.getpwnam(name)
    groups = os.getgrouplist(name, entry.pw_gid)
    environ = {"PATH": os.defpath, "HOME": entry.pw_dir}
    try:
        ran = subprocess.run(
            command, cwd="/", env=environ, user=entry.pw_uid, group=entry.pw_gid, extra_groups=list(groups),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    said = ran.stderr.strip().splitlines() or [f"it exited with {ran.returncode}"]
    return ran.stdout.strip("\n"), said[-1] if ran.returncode else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        os.chmod(file.name, 0o644)  # students' servers read their settings, which contain no secrets
        file.write(text.encode())
    return path


def _json(content: object) -> str:
    return json.dumps(content, indent=1) + "\n"


def _filled(name: str, hub: Hub, **more: object) -> str:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"repr": repr, "json": json.dumps}
    return made.get_template(f"hub/{name}.jinja").render(hub=hub, **more)
