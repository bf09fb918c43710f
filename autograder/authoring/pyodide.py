"""Python in the reader's browser: Pyodide's files and the part of `course_utils` that runs in it.

Pyodide is CPython as WebAssembly (https://pyodide.org, MPL-2.0). The book serves it itself and contacts no other host.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from autograder.project import BUILD, ROOT

VERSION = "314.0.7"
# This version's checksum in npm's registry, verified here because a mirror could serve anything.
SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# What explorers and the planner import; everything else in course_utils needs torch or a notebook.
PARTS = ("*.py", "explorers/*.py", "explorers/*.json", "napkin/*.py")


class NoPyodide(Exception):
    """Pyodide isn't available here; the message says why."""


def package() -> Path:
    """The folder with Pyodide's files, fetched once with npm and kept in the build folder.

    Raises NoPyodide if npm is missing or fails, or if the checksum is wrong.
    """
    kept = BUILD / "caches" / f"pyodide-{VERSION}"
    if all((kept / name).is_file() for name in FILES):
        return kept
    npm = shutil.which("npm")
    if npm is None:
        raise NoPyodide("npm is not installed")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--cache", str(Path(scratch, "cache"))]
        ran = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
        archive = Path(scratch, f"pyodide-{VERSION}.tgz")
        if ran.returncode or not archive.is_file():
            raise NoPyodide(f"npm could not fetch it: {(ran.stderr or ran.stdout).strip()[-300:]}")
        data = archive.read_bytes()
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != SHA512:
            raise NoPyodide(f"what npm fetched is not Pyodide {VERSION}: its checksum differs")
        new = Path(scratch, "new")
        new.mkdir()
        with tarfile.open(fileobj=io.BytesIO(data)) as files:
            for name in FILES:
                member = files.extractfile(f"package/{name}")
                assert member is not None  # guaranteed by the checksum
                (new / name).write_bytes(member.read())
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(new, kept)
    return kept


def archive() -> bytes:
    """The part of `course_utils` that runs without torch, as a zip file. The same sources give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as files:
        for path in sorted({path for part in PARTS for path in (ROOT / "course_utils").glob(part)}):
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            files.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def install(static: Path) -> None:
    """Put everything that interactive pages need into ``static/explorers``. Raises NoPyodide."""
    explorers = static / "explorers"
    shutil.copytree(package(), explorers / "pyodide")
    (explorers / "course.zip").write_bytes(archive())
