"""The device that the notebooks run on: pick it, describe it, wait for it."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch

from course_utils.units import format_bytes


def pick_device(name: str | None = None) -> torch.device:
    """The device to run on: `name`, else the environment variable COURSE_DEVICE, else CUDA, MPS or the CPU.

    The result has an index where a tensor's device has one (`cuda:0`, `mps:0`, plain `cpu`), so that
    `x.device == pick_device()` holds for a tensor created on it.

    Raises:
        ValueError: the name isn't one of the devices that this course supports.
        RuntimeError: this machine doesn't have the device, or this torch was built without it.
    """
    asked_by = "pick_device"
    if name is None or not name.strip():
        name, asked_by = os.environ.get("COURSE_DEVICE", ""), "the environment variable COURSE_DEVICE"
    name = name.strip().lower()
    if not name:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps"):
        raise ValueError(
            f"{asked_by} was given {name!r}; expected 'cpu', 'cuda', 'cuda:1', … or 'mps'. "
            "Leave it out to take the fastest device that this machine has."
        )
    if device.type == "cuda":
        if not torch.cuda.is_available():
            built = torch.version.cuda or torch.version.hip
            why = "finds no usable GPU" if built else "was built without CUDA"
            raise RuntimeError(
                f"{asked_by} was given {name!r}, but torch {torch.__version__} {why}. Use 'cpu', or "
                + ("see whether nvidia-smi lists a GPU." if built else "install a torch built for CUDA.")
            )
        index = torch.cuda.current_device() if device.index is None else device.index
        count = torch.cuda.device_count()
        if index >= count:
            raise RuntimeError(
                f"{asked_by} was given {name!r}, but {count} CUDA device(s) are visible: "
                f"use 'cuda:0'{f' to cuda:{count - 1}' if count > 1 else ''}."
            )
        return torch.device("cuda", index)
    if device.type == "mps":
        if not torch.backends.mps.is_available():
            raise RuntimeError(
                f"{asked_by} was given {name!r}, but this machine has no Apple GPU that torch "
                f"{torch.__version__} can use (Apple silicon with macOS 14 or newer is needed). Use 'cpu'."
            )
        return torch.device("mps", 0)
    return torch.device("cpu")


def on_gpu(device: torch.device | str) -> bool:
    """Whether `device` is a GPU (CUDA, ROCm or MPS). The notebooks choose their problem sizes accordingly."""
    return torch.device(device).type in ("cuda", "mps")


def require(dtype: torch.dtype, device: torch.device | str) -> None:
    """Raise an error unless `device` can store tensors of `dtype` and convert them to and from float32.

    Raises:
        TypeError: `dtype` is not a torch.dtype.
        RuntimeError: this device, or this version of torch, doesn't support the dtype.

    Example:
        >>> require(torch.bfloat16, "cpu")
    """
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"require was given {dtype!r} as a dtype; expected a torch.dtype, such as torch.bfloat16.")
    device = torch.device(device)
    try:
        torch.ones(1, device=device).to(dtype).float()
    except (RuntimeError, TypeError, NotImplementedError, AssertionError) as error:  # AssertionError: no CUDA in torch
        reason = str(error).strip().partition("\n")[0].partition(". ")[0]
        do = "install a newer torch" if device.type == "cpu" else "use the device 'cpu' here"
        raise RuntimeError(
            f"require was given {dtype} on {str(device)!r}, and torch {torch.__version__} cannot store numbers of that "
            f"dtype there ({reason}). Use another dtype, or {do}."
        ) from None


def synchronize(device: torch.device | str) -> None:
    """Wait until everything queued on `device` is done. (On a CPU, an operation is done when it returns.)

    Raises:
        ValueError: this course doesn't know how to wait for a device of this type.
    """
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    elif device.type != "cpu":
        raise ValueError(f"synchronize was given {str(device)!r}; expected a cpu, cuda or mps device.")


def device_name(device: torch.device | str) -> str:
    """The name of the chip: the card for CUDA, the processor's model for the CPU and for Apple's GPU."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    if platform.system() == "Darwin":
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        if asked.stdout.strip():
            return asked.stdout.strip()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown processor"


def total_memory(device: torch.device | str) -> int | None:
    """Bytes of memory that `device` can address, or None if the system doesn't say (a CPU under Windows)."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def describe(device: torch.device | str) -> str:
    """One readable line: the chip, its memory, its cores or SMs, threads on a CPU, and the version of torch.

    Example:
        >>> describe("cuda")  # doctest: +SKIP
        'NVIDIA H200 (cuda:0) · 151 GB = 140 GiB · 132 SMs · torch 2.11.0+cu130'
    """
    device = torch.device(device)
    parts = [f"{device_name(device)} ({device})"]
    if (memory := total_memory(device)) is not None:
        parts.append(format_bytes(memory) + (" shared with the CPU" if device.type == "mps" else ""))
    if device.type == "cuda":
        parts.append(f"{torch.cuda.get_device_properties(device).multi_processor_count} SMs")
    elif device.type == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        parts.append(f"{cores} logical cores, {torch.get_num_threads()} threads")
    parts.append(f"torch {torch.__version__}")
    return " · ".join(parts)
