"""Checkpoints of a training run: written whole or not at all, restored whole or not at all.

A checkpoint holds what a run needs to continue as if it had never stopped: the model, the optimizer, the number of the
next step, the generators that draw data, and the global generators of torch (CPU and GPU), NumPy and Python.
"""

from __future__ import annotations

import errno
import os
import pickle
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn

from course_utils.files import replacing

_FORMAT = 1
_WHAT = "a checkpoint of this course"
_PARTS = {"format", "step", "model", "optimizer", "generators", "global"}


class CheckpointError(Exception):
    """The file cannot be restored; the message explains what is wrong with it and what to do."""


def save_checkpoint(
    path: str | os.PathLike[str],
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    generators: Mapping[str, torch.Generator] | None = None,
) -> None:
    """Write everything the run needs to continue. If this crashes or the disk is full, `path` keeps its old content.

    Args:
        path: the file, in an existing folder.
        model, optimizer: as they are after the update of step − 1.
        step: the next step to run.
        generators: the generators that draw data, by name; the global ones are always written.

    Raises:
        OSError: the file could not be written.
    """
    path = Path(path)
    contents = {
        "format": _FORMAT,
        "model": model.state_dict(),
        "step": step,
        "optimizer": optimizer.state_dict(),
        "generators": {name: generator.get_state() for name, generator in (generators or {}).items()},
        "global": _global_states(),
    }
    try:
        with replacing(path) as file:
            _write(contents, file)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint of step {step} was not written ({error.strerror}); "
            + ("the previous one is still there. " if path.exists() else "there is no checkpoint yet. ")
            + "Make room or choose another folder, then save again",
            str(path),
        ) from error


def load_checkpoint(
    path: str | os.PathLike[str],
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    generators: Mapping[str, torch.Generator] | None = None,
) -> int:
    """Restore the model, the optimizer and the generators, and return the next step to run.

    Everything is checked before anything is changed. No code in the file is run (``weights_only=True``).

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: the file is damaged, isn't a checkpoint, or belongs to another model, optimizer or set of
            generators.
    """
    path = Path(path)
    contents = _read(path)
    generators = generators or {}
    _compare_model(path, contents["model"], model.state_dict())
    _compare_optimizer(path, contents["optimizer"], optimizer.state_dict())
    if contents["generators"].keys() != generators.keys():
        raise CheckpointError(
            f"{path} holds the generators {sorted(contents['generators'])}, but you gave {sorted(generators)}: "
            "pass the ones that the run was saved with, under the same names."
        )
    optimizer.load_state_dict(contents["optimizer"])
    model.load_state_dict(contents["model"])
    for name, generator in generators.items():
        generator.set_state(contents["generators"][name])
    _set_global_states(contents["global"])
    return int(contents["step"])


class _Sink:
    """Keeps the OSError of a failed write, which torch.save replaces with an uninformative one."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self.file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self.file.flush()


def _write(contents: dict[str, Any], file: IO[bytes]) -> None:
    sink = _Sink(file)
    try:
        torch.save(contents, sink)  # type: ignore[arg-type]
    except RuntimeError as error:
        raise (sink.error or OSError(errno.EIO, str(error))) from error


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(
            errno.ENOENT, "there is no checkpoint; start from step 0, or check the folder", str(path)
        )
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch.load does not compare the checksums
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise CheckpointError(
            f"{path} has {size:,} bytes and is not a complete checkpoint ({error}): it was cut short, or is another "
            "kind of file. Use the previous checkpoint."
        ) from error
    if damaged is not None:
        raise CheckpointError(f"{path} is damaged: {damaged} fails its checksum. Use the previous checkpoint.")
    try:
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, KeyError) as error:
        raise CheckpointError(
            f"{path} holds more than plain data, or was not written by torch.save: expected {_WHAT}. "
            "Do not set weights_only=False for a file whose source you do not know: it would run the file's code."
        ) from error
    if not isinstance(contents, dict) or contents.get("format") != _FORMAT or contents.keys() != _PARTS:
        raise CheckpointError(f"{path} is not {_WHAT} (format {_FORMAT}): restore it with the code that saved it.")
    return contents


def _compare_model(path: Path, saved: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    for name in [*present, *(name for name in saved if name not in present)]:
        here, there = _kind(present.get(name)), _kind(saved.get(name))
        if here != there:
            raise CheckpointError(
                f"{path} is from another model: {name} is {there} in the file and {here} in the model. "
                "Build the model with the settings of the run that was saved."
            )


def _compare_optimizer(path: Path, saved: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    def settings(group: Mapping[str, Any]) -> set[str]:
        return set(group) - {"params"}

    old, new = saved["param_groups"], present["param_groups"]
    sizes = [len(group["params"]) for group in old], [len(group["params"]) for group in new]
    if sizes[0] != sizes[1]:
        raise CheckpointError(
            f"{path} is from another optimizer: its groups hold {sizes[0]} parameters; here they hold {sizes[1]}. "
            "Build the optimizer with the same groups."
        )
    for there, here in zip(old, new, strict=True):
        if odd := sorted(settings(there) ^ settings(here)):
            raise CheckpointError(
                f"{path} is from another optimizer: only one of the two has the setting {odd[0]!r}. "
                "Build the optimizer with the class and the options that the run was saved with."
            )


def _kind(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return type(value).__name__


def _global_states() -> dict[str, Any]:
    numpy_state = np.random.get_state(legacy=False)
    assert isinstance(numpy_state, dict)
    inner = numpy_state["state"]
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        # weights_only=True rejects NumPy arrays but accepts lists of numbers.
        "numpy": {**numpy_state, "state": {"key": inner["key"].tolist(), "pos": int(inner["pos"])}},
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def _set_global_states(states: Mapping[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    inner = states["numpy"]["state"]
    np.random.set_state({**states["numpy"], "state": {**inner, "key": np.array(inner["key"], dtype=np.uint32)}})
    if torch.cuda.is_available():
        for index, state in enumerate(states["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(state, index)
    if torch.backends.mps.is_available() and "mps" in states:
        torch.mps.set_rng_state(states["mps"])
