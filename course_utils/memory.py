"""Memory in bytes: what a storage takes, which tensors share one, what autograd saves, what a step allocates."""

from __future__ import annotations

import gc
import linecache
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def storage_bytes(x: torch.Tensor) -> int:
    """Bytes of the whole storage behind `x`. (Even a view of one element keeps all of it alive.)

    Raises:
        TypeError: x is not a tensor, or is sparse and so has no single storage.
    """
    return _storage(x, "storage_bytes").nbytes()


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether `a` and `b` are views of one storage, so that writing to one can change the other.

    Works where `data_ptr` misleads: for views with different offsets, and for empty tensors and tensors on the meta
    device, whose address is always 0. Two storages over one block of memory, such as those from two calls of
    torch.from_numpy with the same array, count as the same.

    Raises:
        TypeError: one of them is not a tensor, or is sparse and so has no single storage.
    """
    first, second = _storage(a, "same_storage"), _storage(b, "same_storage")
    if first is second:  # PyTorch keeps one Python object per storage
        return True
    if first.device != second.device or first.device.type == "meta":
        return False
    return first.data_ptr() == second.data_ptr() != 0


def saved_bytes(
    fn: Callable[..., Any], *args: Any, exclude: Iterable[Any] | torch.Tensor | torch.nn.Module = ()
) -> int:
    """Bytes that autograd keeps for the backward pass once `fn(*args)` has returned.

    Every storage counts once and in full, no matter how many saved tensors are views of it. Not counted: storages of
    tensors in `args`, of the parameters and buffers of `fn` when it is a module, and of `exclude`. `fn`
    should return its loss and not call backward, which frees what was saved. For custom autograd functions, only
    what they pass to save_for_backward is counted.

    Args:
        fn: a function or module; its result is kept until the count is done.
        args: the positional arguments for `fn`.
        exclude: tensors and modules whose memory is counted elsewhere, e.g. `model.parameters()`.

    Raises:
        TypeError: `fn` cannot be called.
    """
    if not callable(fn):
        raise TypeError(f"saved_bytes was given a {type(fn).__name__}; expected a function or a module.")
    others = [exclude] if isinstance(exclude, torch.Tensor | torch.nn.Module) else list(exclude)
    known = []
    for leaf in tree_leaves([fn, args, others]):
        if isinstance(leaf, torch.nn.Module):
            known += [*leaf.parameters(), *leaf.buffers()]
        elif isinstance(leaf, torch.Tensor):
            known.append(leaf)
    excluded = {id(_storage(tensor, "saved_bytes")) for tensor in known}
    saved: dict[int, weakref.ref[torch.UntypedStorage]] = {}  # weak, so as not to keep what autograd releases

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = _storage(tensor, "saved_bytes")
        if id(storage) not in excluded:
            saved[id(storage)] = weakref.ref(storage)
        return tensor.detach()  # otherwise an output would hold its own graph in a cycle that is never freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = fn(*args)
    alive = [storage for reference in saved.values() if (storage := reference()) is not None]
    total = sum(storage.nbytes() for storage in alive)
    del result
    return total


class Tracker:
    """What `track` measures. All values are in bytes and no longer change after the `with` block."""

    @property
    def live(self) -> int:
        """Bytes requested for tensors inside the block and not freed yet."""
        raise NotImplementedError

    @property
    def peak(self) -> int:
        """The highest value of `live` so far."""
        raise NotImplementedError

    @property
    def allocated_live(self) -> int:
        """Bytes that the allocator reserved for `live`: on CUDA every block is rounded up to 512 B."""
        return self.live

    @property
    def allocated_peak(self) -> int:
        """The highest value of `allocated_live` so far."""
        return self.peak


@contextmanager
def track(device: torch.device | str) -> Iterator[Tracker]:
    """Measure, to the byte, the memory of tensors allocated inside a `with` block on `device`.

    Example:
        >>> with track("cpu") as memory:
        ...     x = torch.zeros(32, 32)
        >>> memory.live
        4096

    On a CPU (and on MPS and the meta device) every operation is watched: a storage counts from the operation
    that returned it until it is freed. Not counted: memory that an operation allocates and frees internally,
    and copies made outside PyTorch's operations (copy.deepcopy, torch.load).

    On CUDA the numbers are the caching allocator's, relative to the start of the block: `live` and
    `peak` are bytes requested, `allocated_live` and `allocated_peak` the same after rounding. They include
    workspaces, so do one matmul beforehand: the first call takes several MB for cuBLAS. Freeing an older
    tensor inside the block subtracts its bytes. The allocator's peak statistics are reset.

    Raises:
        RuntimeError: this machine doesn't have the device.
    """
    from course_utils.device import pick_device

    device = torch.device(device)
    if device.type != "meta":
        device = pick_device(str(device))
    gc.collect()  # otherwise older garbage might be freed inside the block and, on CUDA, subtracted
    if device.type == "cuda":
        torch.cuda.init()  # type: ignore[no-untyped-call]  # the next line fails where nothing has used CUDA yet
        torch.cuda.reset_peak_memory_stats(device)
        allocator = _CudaTracker(device)
        try:
            yield allocator
        finally:
            allocator.stop()
    else:
        operations = _OperationTracker(device.type)
        try:
            with operations.mode:
                yield operations
        finally:
            operations.stop()


class _CudaTracker(Tracker):
    """Reads the caching allocator's statistics; `requested` is before and `allocated` after rounding."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last: dict[str, int] | None = None
        self._start = self._read()

    def _read(self) -> dict[str, int]:
        if self._last is not None:
            return self._last
        return dict(torch.cuda.memory_stats(self._device))

    def _since_start(self, kind: str, moment: str) -> int:
        # Before the first allocation of the process the statistics are empty.
        return self._read().get(f"{kind}_bytes.all.{moment}", 0) - self._start.get(f"{kind}_bytes.all.current", 0)

    def stop(self) -> None:
        self._last = self._read()

    @property
    def live(self) -> int:
        return self._since_start("requested", "current")

    @property
    def peak(self) -> int:
        return self._since_start("requested", "peak")

    @property
    def allocated_live(self) -> int:
        return self._since_start("allocated", "current")

    @property
    def allocated_peak(self) -> int:
        return self._since_start("allocated", "peak")


class _OperationTracker(Tracker):
    """Adds each new storage that an operation returns; a finalizer subtracts it when it is freed."""

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type
        self._sizes: dict[int, int] = {}  # id of each living storage allocated inside → its bytes
        self._live = 0
        self._peak = 0
        self._running = True
        self.mode = _WatchOperations(self)

    @property
    def live(self) -> int:
        return self._live

    @property
    def peak(self) -> int:
        return self._peak

    def stop(self) -> None:
        self._running = False

    def storages(self, values: Any) -> list[torch.UntypedStorage]:
        found = {}
        for x in tree_leaves(values):
            if isinstance(x, torch.UntypedStorage):
                found[id(x)] = x
            elif isinstance(x, torch.Tensor) and x.layout == torch.strided:
                found[id(x.untyped_storage())] = x.untyped_storage()
        return [storage for storage in found.values() if storage.device.type == self._device_type]

    def set_size(self, storage: torch.UntypedStorage) -> None:
        key, size = id(storage), storage.nbytes()
        if key not in self._sizes:
            weakref.finalize(storage, self._freed, key).atexit = False
        self._live += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self._peak = max(self._peak, self._live)

    def resized(self, storage: torch.UntypedStorage, before: int) -> bool:
        return storage.nbytes() != self._sizes.get(id(storage), before)

    def _freed(self, key: int) -> None:
        size = self._sizes.pop(key)
        if self._running:
            self._live -= size


class _WatchOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, tracker: _OperationTracker) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tracker = tracker

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = [(s, s.nbytes()) for s in self._tracker.storages([args, kwargs or {}])]
        result = func(*args, **(kwargs or {}))
        older = {id(storage) for storage, _ in given}
        for storage, before in given:
            if self._tracker.resized(storage, before):  # out= and resize_ give an old storage new memory
                self._tracker.set_size(storage)
        for storage in self._tracker.storages(result):
            # torch.tensor and torch.from_numpy both end in lift_fresh, which returns its argument. Only a tensor from
            # torch.tensor owns memory from PyTorch's allocator, and only that can be resized.
            fresh = func is torch.ops.aten.lift_fresh.default and storage.resizable()
            if fresh or id(storage) not in older:
                self._tracker.set_size(storage)
        return result


@dataclass(frozen=True)
class Block:
    """Memory that CUDA's allocator handed out while its history was recorded.

    Attributes:
        nbytes: bytes requested, before rounding.
        where: the line of Python outside PyTorch that asked for it; "" if there's none, as in the backward pass.
        since: the number of allocations and frees recorded before its allocation.
        until: the number recorded before it was freed; None if it wasn't freed.
    """

    nbytes: int
    where: str
    since: int
    until: int | None


def blocks(events: Iterable[Mapping[str, Any]]) -> list[Block]:
    """The blocks in one device's events of a memory snapshot, in the order of their allocation.

    ``events`` is ``torch.cuda.memory._snapshot()["device_traces"][device.index]``, recorded since
    ``torch.cuda.memory._record_memory_history()``. Blocks that are older than the recording are left out.
    """
    kept = [event for event in events if event["action"] in ("alloc", "free_requested")]
    found: list[Block] = []
    alive: dict[int, int] = {}  # address → index in `found`
    for number, event in enumerate(kept):
        if event["action"] == "alloc":
            alive[event["addr"]] = len(found)
            found.append(Block(event["size"], _line(event.get("frames", [])), number, None))
        elif (index := alive.pop(event["addr"], None)) is not None:
            block = found[index]
            found[index] = Block(block.nbytes, block.where, block.since, number)
    return found


def held_at_peak(found: Iterable[Block]) -> list[Block]:
    """The blocks that were allocated at the moment of peak memory."""
    found = list(found)
    moments = [block.since for block in found]  # memory peaks right after an allocation
    held = ([b for b in found if b.since <= now and (b.until is None or now < b.until)] for now in moments)
    return max(held, key=lambda blocks: sum(b.nbytes for b in blocks), default=[])


def _line(frames: Iterable[Mapping[str, Any]]) -> str:
    """The text of the innermost line of Python outside PyTorch, or file and line number if the text is unavailable."""
    inside = os.path.dirname(torch.__file__) + os.sep
    for frame in frames:
        file, line = frame["filename"], frame["line"]
        if not file.startswith(inside) and file.endswith((".py", ">")) and not file.startswith("<frozen"):
            return linecache.getline(file, line).strip() or f"{os.path.basename(file)}, line {line}"
    return ""


def _storage(x: Any, function: str) -> torch.UntypedStorage:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{function} was given a {type(x).__name__}; expected a tensor.")
    if x.layout != torch.strided:
        raise TypeError(
            f"{function} was given a tensor of layout {x.layout}, which has no single storage; "
            "expected a dense tensor: look at its parts (x.indices(), x.values(), …) one by one."
        )
    return x.untyped_storage()
