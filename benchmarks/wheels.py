"""Make build/wheels, a folder of what `make gpu` needs besides Python and torch, for a machine without a network.

Run: make wheels     (ARGS="--python 3.13 --machine aarch64" for another Python or processor; Linux only)

Versions are those in requirements.lock. JupyterLab and nbgrader aren't included: lectures are run there, not opened.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from course_utils.units import format_bytes

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "build" / "wheels"
LEFT_OUT = ("torch", "jupyterlab", "nbgrader")
GLIBC = (17, 28)  # of the oldest and the newest system that a wheel may ask for: 2.17 to 2.28


def wanted() -> list[str]:
    """What lectures import and what runs them, according to pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["gpu"]]
    return [text for text in listed if re.split(r"[^\w.-]", text)[0] not in LEFT_OUT]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12", help="the Python of that machine, such as 3.12 (the default)")
    parser.add_argument("--machine", default="x86_64", choices=["x86_64", "aarch64"], help="its processor")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME", help="packages that it has already")
    options = parser.parse_args()
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    listing = WHEELS / "requirements.txt"
    here = [sys.executable, "-m"]
    subprocess.run(
        [*here, "uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--no-emit-index-url",
         "--no-emit-find-links", "--python-version", options.python, "--python-platform",
         f"{options.machine}-manylinux_2_{GLIBC[1]}", "-c", "requirements.lock", "-o", str(listing), "-"],
        cwd=ROOT, input="\n".join(wanted()), text=True, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    pinned = listing.read_text(encoding="utf-8").splitlines()
    kept = [line for line in pinned if line.partition("==")[0] not in options.without]
    listing.write_text("\n".join([*kept, ""]), encoding="utf-8")
    # pip takes these names literally: a wheel for 2.27 is not found by asking for 2.28.
    platforms = [f"manylinux_2_{minor}_{options.machine}" for minor in range(GLIBC[0], GLIBC[1] + 1)]
    platforms.append(f"manylinux2014_{options.machine}")
    subprocess.run(
        [*here, "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
         "--implementation=cp", f"--python-version={options.python}",
         *(f"--platform={each}" for each in platforms), "-d", str(WHEELS), "-r", str(listing)],
        cwd=ROOT, check=True,
    )  # fmt: skip
    wheels = list(WHEELS.glob("*.whl"))
    print(f"{WHEELS}: {len(wheels)} wheels for Python {options.python} on Linux {options.machine}, "
          f"{format_bytes(sum(each.stat().st_size for each in wheels))}")  # fmt: skip
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError:
        sys.exit("No wheels were made, see above: is there a network, and are there wheels for this Python?")
