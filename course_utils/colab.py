"""Google Colab: whether a kernel runs on it, and the setup that the course needs there.

A lecture on Colab begins with a cell that unpacks the course and runs this file, before anything can be imported.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

# What lectures import apart from Python's own modules and PyTorch. Only what is missing is installed, and nothing here
# requires PyTorch, so pip has no reason to replace Colab's.
PACKAGES = ("anywidget", "beartype", "cloudpickle", "einops", "jaxtyping", "matplotlib", "numpy", "tqdm")


def on_colab() -> bool:
    """Whether this kernel runs on Google Colab, whose menus differ and whose pages have no links to cells."""
    return "google.colab" in sys.modules


def set_up(course: str, lecture: str) -> None:
    """Install what is missing, make the unpacked folder ``course`` importable, and work in the lecture's folder.

    Raises RuntimeError, with pip's reason, if a package can't be installed.
    """
    if missing := [name for name in PACKAGES if not importlib.util.find_spec(name)]:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-color", *missing]
        if (ran := subprocess.run(pip, capture_output=True, text=True)).returncode:
            reason = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise RuntimeError(f"pip can't install {', '.join(missing)} ({reason})")
        importlib.invalidate_caches()
    course = os.path.abspath(course)
    sys.path.insert(0, course)
    # Processes that a lecture starts import the course, too.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [course, os.environ.get("PYTHONPATH")]))
    os.chdir(os.path.join(course, "notebooks", lecture))
