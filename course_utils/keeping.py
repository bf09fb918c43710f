"""Files that store a reader's own work beside the lectures' folders, only on this machine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from course_utils.files import replacing

_LECTURE = re.compile(r"\d\d_\w+")


def lecture() -> str:
    """The lecture whose folder a notebook runs in, such as "01_tensors"; "" elsewhere."""
    name = Path.cwd().name
    return name if _LECTURE.fullmatch(name) else ""


def file(variable: str, name: str) -> Path:
    """The file that the environment variable ``variable`` names, else ``name`` beside the lectures' folders."""
    if named := os.environ.get(variable):
        return Path(named).absolute()
    return (Path.cwd().parent if lecture() else Path.cwd()) / name


def write(path: Path, content: Any) -> None:
    """Write ``content`` as JSON, completely or not at all.

    Raises:
        OSError: the file could not be written; ``path`` keeps its old content.
    """
    with replacing(path, durable=False) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False).encode())
