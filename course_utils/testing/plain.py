"""Plain data: everything that an observation may contain. Anything else is replaced with a stand-in."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

_ITEM_LIMIT = 100_000  # items of a returned container kept per observation
_DEPTH_LIMIT = 20
_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)


@dataclass(frozen=True)
class Raised:
    """Takes the place of the value when a call raises: exception type, message, and the student's line.

    ``classes`` are the names of the type and all its base classes: a subclass of ValueError is a ValueError.
    """

    kind: str
    message: str
    line: str = ""
    classes: tuple[str, ...] = ()

    @property
    def not_begun(self) -> bool:
        """Whether this error comes from the exercise's stub. (PyTorch's own NotImplementedError has a message.)"""
        return self.kind == "NotImplementedError" and not self.message

    def __str__(self) -> str:
        if self.not_begun:
            return "nothing yet: write your code in the cell above, instead of `raise NotImplementedError()`"
        at = f"\nat `{self.line}`" if self.line else ""
        return f"{self.kind}: {self.message}{at}"


@dataclass(frozen=True, eq=False)
class Opaque:
    """Takes the place of an object that isn't plain data. It equals nothing, so no ``__eq__`` can pass a test."""

    what: str

    def __str__(self) -> str:
        return self.what


def class_names(kind: type) -> tuple[str, ...]:
    """The names of a class and its bases. A student's own class isn't the built-in one that has the same name."""
    return tuple(
        each.__name__ if getattr(builtins, each.__name__, each) is each else f"your own {each.__name__}"
        for each in kind.__mro__[:20]
    )


def freeze(value: Any, _depth: int = 0) -> Any:
    """``value`` as plain data: tensors copied to the CPU, NumPy scalars as numbers, anything else :class:`Opaque`."""
    kind = type(value)
    if value is None or kind in _PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        return _freeze_tensor(value)
    if isinstance(value, np.generic):
        return freeze(value.item(), _depth) if value.dtype.kind in "biufcU" else Opaque(f"a {kind.__name__}")
    # A subclass's number or text, by the method of int, float or str itself: its own __eq__ has no say.
    for plain in (int, float, str):
        if isinstance(value, plain):
            return getattr(plain, f"__{plain.__name__}__")(value)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        if _depth >= _DEPTH_LIMIT or len(value) > _ITEM_LIMIT:
            return Opaque(f"a {kind.__name__} that is too large to look at")
        # A subclass of a container becomes the container itself: torch.Size, a namedtuple, a defaultdict.
        if isinstance(value, dict):
            return {freeze(k, _depth + 1): freeze(v, _depth + 1) for k, v in value.items()}
        if isinstance(value, (set, frozenset)):
            return {freeze(item, _depth + 1) for item in value}
        # Nearly all items of long lists are numbers.
        items = [item if type(item) in _PLAIN else freeze(item, _depth + 1) for item in value]
        return items if kind is list else tuple(items)
    if isinstance(value, np.ndarray):
        return Opaque(f"a NumPy array of shape {list(value.shape)}")
    if isinstance(value, functools.partial) or (callable(value) and hasattr(value, "__name__")):
        return Opaque(f"the function or class {getattr(value, '__name__', kind.__name__)} itself, not called")
    return Opaque(f"an object of type {kind.__name__}")


def _freeze_tensor(x: torch.Tensor) -> torch.Tensor | Opaque:
    if x.layout != torch.strided or x.is_quantized:
        return Opaque(f"a tensor of layout {x.layout}")
    # A subclass can redefine every operation through __torch_function__, so take it off before using any.
    plain = x.detach().as_subclass(torch.Tensor)
    if plain.device.type == "meta":
        return torch.empty_strided(plain.shape, plain.stride(), dtype=plain.dtype, device="meta")
    if plain.device.type != "cpu":
        # A conjugate is lazy: conj() sets a bit and leaves the storage as it is, and the imaginary part of a conjugate
        # is a lazy negative. Compute the numbers, so that nothing downstream has to know the bits.
        return plain.to("cpu").resolve_conj().resolve_neg()
    # Copy what it spans of its storage, not the elements: messages show strides, and an expanded tensor stays small.
    # And not the whole storage: a result of ten numbers may be a view of a workspace of gigabytes.
    span = 1 + sum((size - 1) * step for size, step in zip(plain.shape, plain.stride(), strict=True))
    size = span * plain.element_size() if plain.numel() else 0
    start = plain.storage_offset() * plain.element_size() if size else 0
    if start + size > plain.untyped_storage().nbytes():
        return Opaque("a tensor whose memory was freed")
    if plain.is_contiguous() and not plain.is_conj() and not plain.is_neg():  # the usual case, in a single operation
        copy = plain.clone()
        if copy.stride() == plain.stride():  # those of a dimension of size 1 may differ
            return copy
    raw = torch.empty(0, dtype=torch.uint8)
    raw.set_(plain.untyped_storage(), start, (size,), (1,))
    numbers = torch.empty(0, dtype=plain.dtype)
    numbers.set_(raw.clone().untyped_storage(), 0, (size // plain.element_size(),), (1,))
    # The storage knows nothing of the bits of a lazy conjugate or negative.
    if plain.is_conj():
        numbers.conj_physical_()
    if plain.is_neg():
        numbers.neg_()
    return torch.empty(0, dtype=plain.dtype).set_(numbers.untyped_storage(), 0, plain.shape, plain.stride())


def copied(value: Any, copies: dict[int, torch.UntypedStorage]) -> Any:
    """A deep copy of plain data. Tensors keep their strides and offset; tensors that shared a storage still do.

    ``copies`` holds the storages copied so far. Pass the same dict for values that may share storages.
    """
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        storage = value.untyped_storage()
        # _cdata is the address of the storage object. No two are equal while the caller keeps all its tensors alive.
        if storage._cdata not in copies:
            copies[storage._cdata] = storage.clone()  # type: ignore[no-untyped-call]
        copy = torch.empty(0, dtype=value.dtype, device=value.device)
        copy.set_(copies[storage._cdata], value.storage_offset(), value.shape, value.stride())
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: copied(v, copies) for k, v in value.items()}
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item, copies) for item in value)
    return value


def tensors(value: Any) -> Iterable[torch.Tensor]:
    """The tensors in plain data."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors(key)
            yield from tensors(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            if type(item) not in _PLAIN:
                yield from tensors(item)


def storage_key(x: torch.Tensor) -> tuple[str, int] | None:
    """Equal for tensors that share a storage. None if the storage is empty, because all empty ones have address 0."""
    if x.layout != torch.strided or x.device.type == "meta":
        return None
    storage = x.untyped_storage()
    return (str(x.device), storage.data_ptr()) if storage.nbytes() else None


def first_opaque(value: Any) -> Opaque | None:
    """The first stand-in in frozen data, or None if all of it is plain."""
    if isinstance(value, Opaque):
        return value
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, (list, tuple, set)):
        items = value
    return next((odd for item in items if (odd := first_opaque(item))), None)
