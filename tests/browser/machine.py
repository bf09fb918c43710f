"""A machine with Unix users of its own, for tests: nothing of it is visible outside, and nothing outside is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Where Python, its environment and the checkout are. Other users must get there, also where root's home holds them.
NEEDED = sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT})


class NoMachine(Exception):
    """Such a machine can't be had here; the message says why."""


class Machine:
    """A mount namespace in which /etc, /home and /srv are folders below ``place``, and whatever ``over`` puts in place.

    Each command gets a namespace with the same mounts; processes and network are everybody's. Raises NoMachine.
    """

    def __init__(self, place: Path, over: dict[Path, Path]) -> None:
        missing = [name for name in ("unshare", "setpriv", "useradd", "chpasswd", "runuser") if not shutil.which(name)]
        if os.geteuid() != 0 or missing:
            raise NoMachine(f"other users need root, and {', '.join(missing) or 'this is an ordinary user'}")
        shutil.copytree("/etc", place / "etc", symlinks=True)
        for name in ("home", "srv"):
            (place / name).mkdir()
        mounts = [(place / name, Path("/", name)) for name in ("etc", "home", "srv")]
        others = [(what, where) for where, what in over.items()]
        self._script = "\n".join(["set -e", *_reachable(place, mounts), *_binds(others)])
        self.etc, self.home, self.srv = (place / name for name in ("etc", "home", "srv"))
        ran = subprocess.run(self.command("root", "true"), capture_output=True, text=True)
        if ran.returncode:
            raise NoMachine(f"mounting isn't allowed here: {ran.stderr.strip()[-200:]}")

    def command(self, user: str, *command: str, cwd: str = "") -> list[str]:
        """A command line that runs `command` as a user of the machine, in its home or `cwd`."""
        change = f"cd {cwd or f'~{user}'}"  # the shell knows the machine's users
        become = "" if user == "root" else f"setpriv --reuid={user} --regid={user} --init-groups --reset-env "
        path = f"export PATH={sys.prefix}/bin:$PATH PYTHONDONTWRITEBYTECODE=1; " if user == "root" else ""
        shell = "" if user == "root" else f"env PATH={sys.prefix}/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 "
        script = f'{self._script}\n{path}cd /\n{change}\nexec {become}{shell}"$@"'
        return ["unshare", "--mount", "bash", "-c", script, "bash", *command]

    def run(self, user: str, *command: str, cwd: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(self.command(user, *command, cwd=cwd), capture_output=True, text=True, timeout=300)

    def add(self, *users: str) -> None:
        """Add users whose passwords are their names."""
        lines = [f"useradd --create-home --shell /bin/bash {name} && echo {name}:{name} | chpasswd" for name in users]
        added = self.run("root", "bash", "-ec", "\n".join(lines), cwd="/")
        assert added.returncode == 0, added.stderr


def _binds(pairs: Sequence[tuple[Path, Path]]) -> list[str]:
    return [f"mount --bind '{what}' '{where}'" for what, where in pairs]


def _reachable(place: Path, mounts: Sequence[tuple[Path, Path]]) -> list[str]:
    """These mounts, and some that let other users to what they need, and to nothing else: through folders which are
    root's alone, or which a mount covers.
    """
    lines = []
    covers = {where: what for what, where in mounts}
    closed: dict[Path, list[Path]] = {}
    for path in NEEDED:
        barred = [above for above in reversed(path.parents) if above in covers or not above.stat().st_mode & 0o001]
        if barred:
            closed.setdefault(barred[0], []).append(path)
    for top, paths in closed.items():
        kept = [place / "kept" / str(number) for number in range(len(paths))]
        lines += [f"mkdir -p '{each}'" for each in kept] + _binds(list(zip(paths, kept, strict=True)))
        lines += _binds([(covers.pop(top), top)]) if top in covers else [f"mount -t tmpfs -o mode=755 tmpfs '{top}'"]
        lines += [f"mkdir -p '{path}'" for path in paths] + _binds(list(zip(kept, paths, strict=True)))
    return lines + _binds([(what, where) for where, what in covers.items()])
