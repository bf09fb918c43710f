"""Python for the reader's page: Pyodide's files and the part of `course_utils` that runs in it.

Pyodide is CPython as WebAssembly (https://pyodide.org, MPL-2.0). The book serves it itself and asks no other host.
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
# What npm's registry says of this version, checked again here: a mirror could hand out anything.
SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# What explorers and the planner import; all else in course_utils needs torch or a notebook.
PARTS = ("*.py", "explorers/*.py", "explorers/*.json", "napkin/*.py")


class NoPyodide(Exception):
    """Pyodide can't be had here; the message says why."""


def package() -> Path:
    """The folder of Pyodide's files, fetched once with npm and kept in the build folder.

    Raises NoPyodide if npm is missing or fetches nothing, or something else.
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
                assert member is not None  # the checksum says what is in it
                (new / name).write_bytes(member.read())
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(new, kept)
    return kept


def archive() -> bytes:
    """`course_utils` as a zip file, as far as it runs without torch. The same sources give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as files:
        for path in sorted({path for part in PARTS for path in (ROOT / "course_utils").glob(part)}):
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            files.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def install(static: Path) -> None:
    """Put all that a page needs to be live into ``static/explorers``. Raises NoPyodide."""
    explorers = static / "explorers"
    shutil.copytree(package(), explorers / "pyodide")
    (explorers / "course.zip").write_bytes(archive())
