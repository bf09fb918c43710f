"""Runs cells of ours in this process: a lecture's first cell, and test cells. A submission's cells never come here."""

from __future__ import annotations

import contextlib
import functools
import io
import linecache
import os
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import Any

import einops.einops
import torch

from course_utils.testing import SEED_VARIABLE

from .exercises import HIDDEN
from .marks import Verdict


def run_cell(text: str, title: str, names: dict[str, Any]) -> None:
    """Run a cell as a kernel would, over a notebook's names."""
    names.setdefault("__name__", "__main__")
    filename = f"<{title}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(_compiled(text, filename), names)


@functools.lru_cache  # one test cell judges a whole class
def _compiled(text: str, filename: str) -> CodeType:
    return compile(text, filename, "exec")


def run_tests(tests: str, names: dict[str, Any]) -> Verdict:
    """Run a test cell over a notebook's names, and say what it found."""
    try:
        run_cell(tests, "tests", names)
    except (Exception, SystemExit) as error:
        message = f"{error}" or type(error).__name__
        return Verdict(False, message, getattr(error, "mistake", None), _in_hidden_part(tests, error))
    return Verdict(True)


def _in_hidden_part(tests: str, error: BaseException) -> bool:
    """Whether a test cell had come to its hidden part; what is defined above it may be called from there."""
    lines = [line.strip() for line in tests.splitlines()]
    here = [number for frame, number in traceback.walk_tb(error.__traceback__) if _is_test(frame.f_code)]
    return HIDDEN[0] in lines and bool(here) and here[0] > lines.index(HIDDEN[0])


def _is_test(code: CodeType) -> bool:
    return code.co_filename == "<tests>" and code.co_name == "<module>"


@contextlib.contextmanager
def quietly(seed: int = 0) -> Iterator[None]:
    """What is drawn inside is drawn from ``seed``; nothing is printed, and no setting of torch outlives it."""
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy machine a second one spins, and costs more than it gives
    _forget_shapes()
    with _seed(seed), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
            torch.set_grad_enabled(True)


def _forget_shapes() -> None:
    # einops remembers what it worked out for a call by value, and 2.0 == 2: whether `size=4 / 2` fails would depend on
    # what ran before.
    for cached in ("_prepare_transformation_recipe", "_reconstruct_from_shape"):
        getattr(einops.einops, cached).cache_clear()


@contextlib.contextmanager
def _seed(seed: int) -> Iterator[None]:
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = str(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before
