"""Create this course's environment and open its lectures. Needs only Python 3.11 to 3.14.

    python3 bootstrap.py                   make .venv and install everything      (on Windows: py bootstrap.py)
    python3 bootstrap.py lab               the same, then open JupyterLab on the lectures
    python3 bootstrap.py lab --port 9000   options that are not ours go to JupyterLab
    python3 bootstrap.py --extra test      with what instructors and the tests need (gpu: only what `make gpu` needs)
    python3 bootstrap.py --system-torch    use the PyTorch that this Python already has

The environment variable COURSE_VENV puts the environment into another folder than .venv. If
everything is installed already, a run takes no time. pip's own configuration (index, proxy, certificates) is used.
"""

# Only the standard library: this runs before anything is installed. It must parse on Python 3.6, to be able
# to say that 3.6 is too old.
import argparse
import collections
import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 14)  # NEWEST: the newest Python that the PyTorch of requirements.lock is built for
ROOT = Path(__file__).resolve().parent
LOCK = "requirements.lock"
# environment.yml installs exactly the same two lines; a test compares them.
REQUIREMENTS = (("-c", LOCK), ("-e", "."))
# An environment with the larger extra also serves who asks for the smaller one.
EXTRAS = ("", "gpu", "instructor", "book", "hub", "test")
STAMP = "every-byte-every-flop.json"
SPACE_NEEDED, SPACE_WITH_CUDA = 3e9, 8e9  # bytes; on Linux PyTorch may bring CUDA's libraries


class SetupError(Exception):
    """Setup can't continue; the message is one line that says what to do."""


def find_python():
    """Path of another suitable Python on this machine, the newest one, or None."""
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        path = shutil.which("python3.%d" % minor)  # noqa: UP031 (parses on old Pythons)
        with contextlib.suppress(OSError):
            # Version managers leave names on PATH that do not run.
            if path and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0:
                return path
    return None


def check_version(system_torch):
    """Continue in another Python if this one is too old or too new for the locked PyTorch."""
    version = tuple(sys.version_info[:2])
    if version >= OLDEST and (system_torch or version <= NEWEST):
        return
    path = None if system_torch else find_python()
    if path:
        sys.exit(subprocess.call([path, *sys.argv]))
    text = ["{}.{}".format(*each) for each in (OLDEST, NEWEST, version)]
    sys.exit(
        "Setup stopped: this is Python {2} and the course needs Python {0} to {1}; install one of these "
        "(python.org, or your system's packages), then run the same command with it.".format(*text)
    )


def venv_python(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def marker_of(venv: Path) -> Path:
    """The file beside `venv` that exists while the environment is being changed."""
    return venv.with_name(venv.name + ".installing")


def fingerprint() -> str:
    """Hash of everything that determines what gets installed in the environment."""
    digest = hashlib.sha256()
    for path in [ROOT / "pyproject.toml", ROOT / LOCK, *sorted((ROOT / "jupyter").rglob("*"))]:
        if path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def read_stamp(venv: Path) -> dict:
    """What was last installed in `venv`; {} if this script didn't create it."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
        return stamp if isinstance(stamp, dict) and stamp.get("extra") in EXTRAS else {}
    except (OSError, ValueError):
        return {}


def write_stamp(venv: Path, stamp: dict) -> None:
    new = venv / (STAMP + ".new")
    new.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    new.replace(venv / STAMP)


@contextlib.contextmanager
def installing(venv: Path):
    """Lock `venv` for this process; yields the marker file, open at its start.

    The file is left behind only if the process is killed or interrupted.
    """
    marker = marker_of(venv)
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        file = marker.open("a+", encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"cannot write to {marker.parent} ({error.strerror}); move the course to a folder of your own, "
            "or name a folder for the environment in COURSE_VENV."
        ) from None
    with file:
        file.seek(0)
        try:
            if os.name == "nt":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetupError(f"another setup is working in {venv}; wait until it has finished.") from None
        clean = True
        try:
            yield file
        except SetupError:
            raise
        except BaseException:
            clean = False
            raise
        finally:
            file.close()  # Windows deletes no open file
            if clean:
                marker.unlink()


def check_machine(venv: Path, system_torch: bool) -> None:
    """Raise SetupError for anything that would stop the installation halfway."""
    if sys.maxsize < 2**32:
        raise SetupError("this is a 32-bit Python and PyTorch needs a 64-bit one; install that from python.org.")
    if (sys.platform, platform.machine()) == ("darwin", "x86_64") and not system_torch:
        raise SetupError(
            "PyTorch is no longer built for Intel Macs, or this is an Intel Python on an Apple chip; "
            "install Python for Apple silicon, or work on another machine (Linux, Windows, a cloud notebook)."
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            package = "python{}.{}-venv".format(*sys.version_info)
            raise SetupError(
                f"this Python has no {module} module; on Debian and Ubuntu: sudo apt install {package}; "
                "elsewhere install Python from python.org."
            )
    free = shutil.disk_usage(venv.parent).free
    if free < SPACE_NEEDED:
        raise SetupError(
            f"{venv.parent} has {free / 1e9:.1f} GB free and the environment needs {SPACE_NEEDED / 1e9:.0f} GB "
            "(8 GB with CUDA); make room, or name a folder on a larger disk in COURSE_VENV."
        )
    if sys.platform == "linux" and free < SPACE_WITH_CUDA and not system_torch:
        print(f"Note: {free / 1e9:.1f} GB are free; PyTorch with CUDA takes about 8 GB, the CPU build under 3 GB.")


def make_venv(venv: Path, system_torch: bool) -> None:
    print(f"Making the environment {venv} with Python {platform.python_version()}...", flush=True)
    options = ["--clear", *(["--system-site-packages"] if system_torch else [])]
    # Not sys.executable, which may lie inside the very environment that is made again.
    base = getattr(sys, "_base_executable", None) or sys.executable
    if subprocess.call([base, "-m", "venv", *options, str(venv)]):
        raise SetupError(f"Python could not make {venv} (see above); put that right and run the same command again.")


def system_torch_constraints(python: Path, venv: Path) -> str:
    """Write the lock with the installed versions of torch and its requirements; returns its path."""
    script = """
import importlib.metadata as m, json, re, sys
def name(text): return re.sub("[-_.]+", "-", re.match("[A-Za-z0-9._-]+", text)[0]).lower()
found, todo = {}, ["torch"]
while todo:
    one = todo.pop()
    try: d = m.distribution(one)
    except m.PackageNotFoundError: continue
    if one not in found:
        found[one] = d.version
        todo += [name(r) for r in d.requires or [] if "extra ==" not in r]
print(json.dumps(found))
"""
    found = json.loads(subprocess.run([python, "-I", "-c", script], stdout=subprocess.PIPE, check=True).stdout)
    if "torch" not in found:
        raise SetupError(
            f"--system-torch: {sys.base_prefix} has no torch; run this with the Python that has it, "
            "or leave the option out to install the course's own."
        )
    print(f"Using this machine's own torch {found['torch']}.")
    locked = (ROOT / LOCK).read_text(encoding="utf-8").splitlines()
    kept = [line for line in locked if line.partition("==")[0].lower() not in found]
    path = venv / "constraints.txt"
    path.write_text("\n".join([*kept, f"torch=={found['torch']}", ""]), encoding="utf-8")
    return str(path)


# What pip writes to stderr, and what the reader can do about it.
PIP_FAILURES = (
    ("No space left on device", "the disk is full; make room (TMPDIR names pip's working folder, COURSE_VENV the "
     "environment's) and run the same command again"),
    ("Long Path", "Windows' limit on the length of paths; move the course to a short path such as C:\\course"),
    ("Permission denied", "a file could not be written; see pip's last lines above for which"),
    ("NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|connection broken",
     "the package index could not be reached; check the network and `pip config list`, then run this again"),
    ("No matching distribution found|ResolutionImpossible", "pip finds no package of the locked version for this "
     "Python and system; check the network and `pip config list`, or try another Python (3.11 to 3.14)"),
)  # fmt: skip


def pip_install(python: Path, arguments: list) -> None:
    """Run pip, showing its progress; raise SetupError with the cause if it fails."""
    command = [str(python), "-I", "-m", "pip", "install", *arguments]
    environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PIP_COMPILE": "0"}
    said: collections.deque = collections.deque(maxlen=300)
    pip = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True, errors="replace")
    for line in pip.stderr or ():
        sys.stderr.write(line)
        said.append(line)
    if pip.wait() != 0:
        for signs, advice in PIP_FAILURES:
            if re.search(signs, "".join(said), re.IGNORECASE):
                raise SetupError(advice + ".")
        raise SetupError("pip failed (its last lines are above); put that right and run the same command again.")


def compile_modules(python: Path) -> None:
    """Compile what was installed. pip does one module at a time; this uses all processors and saves half a minute on
    two.

    Some packages have modules that can't be compiled, so errors are ignored. The files don't say where they are, since
    submissions that are graded can read them.
    """
    ask = [str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    modules = subprocess.run(ask, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    subprocess.call([str(python), "-I", "-m", "compileall", "-qq", "-f", "-j", "0", "-s", modules, modules])


def set_up(venv: Path, extra: str, system_torch: bool) -> None:
    """Install the course with `extra` in `venv`, doing only what isn't done yet."""
    stamp = read_stamp(venv)
    owner = Path(stamp.get("root", ROOT))
    if owner != ROOT and (owner / "bootstrap.py").exists():  # it has not just been moved
        raise SetupError(f"{venv} belongs to the course in {owner}; name another folder in COURSE_VENV.")
    # What an environment already has is kept: `make lab` after `make test` removes nothing.
    extra = max(extra, stamp.get("extra", ""), key=EXTRAS.index)
    wanted = {
        "root": str(ROOT),
        "python": "{}.{}".format(*sys.version_info),
        "system_torch": system_torch or stamp.get("system_torch", False),
        "extra": extra,
        "fingerprint": fingerprint(),
        "made_here": stamp.get("made_here", False),
    }
    python = venv_python(venv)
    if stamp == wanted and python.exists() and not marker_of(venv).exists():
        return
    with installing(venv) as marker:
        check_machine(venv, wanted["system_torch"])
        new = not venv.exists() or not any(venv.iterdir())
        # Only what was made here is ever deleted; an environment of the user's own is installed into.
        interrupted = marker.read() != ""
        wanted["made_here"] |= new or interrupted
        if wanted["made_here"]:
            marker.write("made here")
            marker.flush()
        stale = any(stamp.get(key) != wanted[key] for key in ("root", "python", "system_torch")) or not python.exists()
        if new or interrupted or (wanted["made_here"] and stale):
            make_venv(venv, wanted["system_torch"])
            write_stamp(venv, {**wanted, "fingerprint": ""})
        elif not python.exists():
            raise SetupError(
                f"{venv} exists and is no Python environment; move it away, or name another folder in COURSE_VENV."
            )
        requirements = dict(REQUIREMENTS)
        if wanted["system_torch"]:
            requirements["-c"] = system_torch_constraints(python, venv)
        if extra:
            requirements["-e"] += f"[{extra}]"
        print("Installing the course's packages; the first time takes a few minutes...", flush=True)
        pip_install(python, [text for pair in requirements.items() for text in pair])
        if os.environ.get("PIP_COMPILE", "1").lower() not in ("0", "no", "off", "false"):
            compile_modules(python)
        write_stamp(venv, wanted)
    print(f"The environment {venv} is ready.", flush=True)


def open_lab(venv: Path, options: list) -> int:
    """Run JupyterLab on notebooks/ until it's stopped; without a screen, print its address."""
    notebooks = ROOT / "notebooks"
    if not notebooks.is_dir():
        raise SetupError(f"{notebooks} is missing; unpack the course again, or build it: make notebooks.")
    python = venv_python(venv)
    command = [str(python), "-m", "jupyterlab", *options]
    given = [option.partition("=")[2] for option in options if option.startswith("--ServerApp.root_dir=")]
    if not given:
        command.append(f"--ServerApp.root_dir={notebooks}")
    if subprocess.call([str(python), "-m", "course_utils.home", given[-1] if given else str(notebooks)]) == 0:
        command.append("--LabApp.default_url=/lab/tree/home.md")
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        command.append("--no-browser")
    if os.name == "posix" and os.geteuid() == 0:
        command.append("--allow-root")  # containers have no other user
    # So that `!pip` and nbgrader's helpers in a notebook are this environment's.
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    environ = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(venv)}
    print("JupyterLab opens in your browser, or open the address with ?token= below; stop it with Ctrl-C.", flush=True)
    if os.name == "posix":
        os.execve(python, command, environ)
    return subprocess.call(command, env=environ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["lab"], help="lab: open JupyterLab afterwards")
    parser.add_argument("--extra", choices=EXTRAS[1:], default="", help="also install what instructors or tests need")
    parser.add_argument("--system-torch", action="store_true", help="use the PyTorch that this Python already has")
    arguments, options = parser.parse_known_args()
    if options and arguments.command != "lab":
        parser.error("unknown options: " + " ".join(options))
    check_version(arguments.system_torch)
    venv = Path(os.path.abspath(ROOT / os.environ.get("COURSE_VENV", ".venv")))
    try:
        set_up(venv, arguments.extra, arguments.system_torch)
        return open_lab(venv, options) if arguments.command == "lab" else 0
    except (SetupError, OSError) as error:
        print(f"Setup stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Setup interrupted: run the same command to start it again.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
