"""The encoding of observations that the student's process sends to the judge: plain data and nothing else.

A message is one JSON text followed by blobs (the storages of tensors, and bytes). Decoding runs no code and trusts
nothing: it checks sizes, depth, names of dtypes and the bounds of every tensor, and raises :class:`WireError`.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import torch

from course_utils.testing.observing import Observation
from course_utils.testing.plain import Opaque, Raised

_DIMENSIONS = 16  # of a tensor: no lecture has half as many, and some operations take memory for each
LIMIT = 2**28  # bytes of one message; the largest hidden inputs take a tenth of it
_DEPTH = 40
_NODES = 300_000  # values in one message
_TEXT = 2**24  # bytes of JSON: parsed, they take some twenty times as much
_MARKS = 4_000_000  # commas and brackets in it, which bound how many objects parsing makes
_HASHED = 10_000  # items of sets and keys of dicts
_ALIKE = 20  # of these that may have one hash: numbers can be chosen to collide, and then they cost their square
# Bytes that a value takes once it's decoded, beside what it takes in its message: a tensor on meta is 40 bytes there.
# A text's own size comes on top: with a single emoji in it, each of its letters takes four bytes.
_COSTS = {"tensor": 1000, "set": 250, "frozenset": 250}
_COST = 100  # of any other
_DIGITS = 4_000  # of a whole number; Python refuses to read more
_HEAD = struct.Struct("<II")  # bytes of JSON, number of blobs; the blobs' sizes follow
_SIZE = struct.Struct("<Q")
FRAME = struct.Struct("<Q")  # in a pipe, a message comes after its length
_DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
_READABLE = {
    name
    for name, dtype in _DTYPES.items()
    if re.fullmatch(r"bool|u?int(8|16|32|64)", name) or dtype.is_complex or dtype.is_floating_point
} - {"float4_e2m1fn_x2"}  # the dtypes whose elements can be read: others cannot be printed or compared
_FIELDS = ("call", "value", "error", "message", "shares", "mutated", "printed")
_TENSOR_FIELDS = ("shape", "stride", "offset", "dtype", "device", "requires_grad")


class WireError(Exception):
    """The message isn't in this encoding, or is too large; the text says what's wrong with it."""


def pack(value: Any, place: Callable[[bytes], int] | None = None) -> bytes:
    """``value`` as a message. Raises WireError if it isn't plain data or takes more than `LIMIT` bytes.

    With ``place``, the storages of tensors aren't part of the message: ``place`` stores each one and returns its place.
    """
    packer = _Packer(place)
    try:
        text = json.dumps(packer.node(value, 0), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise WireError("the value is nested too deep") from None
    if len(text) > _TEXT:
        raise WireError(f"the value takes {len(text):,} bytes of text; at most {_TEXT:,} can be sent")
    head = _HEAD.pack(len(text), len(packer.blobs)) + b"".join(_SIZE.pack(len(blob)) for blob in packer.blobs)
    size = len(head) + len(text) + sum(map(len, packer.blobs))
    if size > LIMIT:
        raise WireError(f"the value takes {size:,} bytes; at most {LIMIT:,} can be sent")
    return b"".join([head, text, *packer.blobs])


def _nowhere(place: int, size: int) -> Any:
    raise WireError("a tensor that is not in its message")


def unpack(
    message: bytes, find: Callable[[int, int], Any] = _nowhere, spend: Callable[[int], None] = lambda size: None
) -> Any:
    """The value in a message. Raises WireError for anything that `pack` did not make.

    ``find`` returns the memory of a given size at a place that `pack`'s ``place`` returned; it isn't copied.
    ``spend`` is told how many bytes the message and its value take.
    """
    if len(message) > LIMIT or len(message) < _HEAD.size:
        raise WireError(f"a message of {len(message):,} bytes")
    text_size, count = _HEAD.unpack_from(message)
    if count > _NODES:  # each blob belongs to a value
        raise WireError(f"a message with {count:,} blobs")
    start = _HEAD.size + count * _SIZE.size
    if start + text_size > len(message):
        raise WireError("the message is cut short")
    if text_size > _TEXT:
        raise WireError(f"a message with {text_size:,} bytes of text")
    sizes = [_SIZE.unpack_from(message, _HEAD.size + i * _SIZE.size)[0] for i in range(count)]
    if start + text_size + sum(sizes) != len(message):
        raise WireError("the message is longer or shorter than it says")
    blobs, place = [], start + text_size
    for size in sizes:
        blobs.append(message[place : place + size])
        place += size
    text = message[start : start + text_size]
    if sum(map(text.count, (b",", b"[", b"{"))) > _MARKS:
        raise WireError("the value has too many parts")
    unpacker = _Unpacker(blobs, find)
    try:
        node = json.loads(text.decode("ascii"), parse_constant=_no_constant)
        value = unpacker.value(node, 0)
    except WireError:
        raise
    except RecursionError:
        raise WireError("the value is nested too deep") from None
    except Exception as error:  # whatever a made-up message leads to
        raise WireError(f"not a message that pack made ({type(error).__name__}: {error})"[:500]) from None
    spend(len(message) + unpacker.cost)
    return value


def framed(message: bytes) -> bytes:
    """A message as it is written to a pipe."""
    return FRAME.pack(len(message)) + message


def receive(stream: BinaryIO, find: Callable[[int, int], Any]) -> Any:
    """Read one framed message; ``find`` as in `unpack`. Raises EOFError at the end, WireError for any other bytes."""
    head = stream.read(FRAME.size)
    if len(head) < FRAME.size:
        raise EOFError
    (size,) = FRAME.unpack(head)
    if size > LIMIT:
        raise WireError(f"a message of {size:,} bytes")
    message = stream.read(size)
    if len(message) < size:
        raise EOFError
    return unpack(message, find)


def _no_constant(name: str) -> None:
    raise WireError(f"{name} is not JSON")


class _Packer:
    def __init__(self, place: Callable[[bytes], int] | None) -> None:
        self.blobs: list[bytes] = []
        self._place = place
        self._storages: dict[int, int | list[int]] = {}
        self._count = self._hashed = 0

    def node(self, value: Any, depth: int) -> Any:
        self._count += 1
        if depth > _DEPTH or self._count > _NODES:
            raise WireError("the value is nested too deep, or has too many parts")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            if value.bit_length() > 3 * _DIGITS:
                raise WireError("a whole number with too many digits")
            return {"int": str(value)}
        if kind is float:
            return {"float": value.hex()}
        if kind is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if kind is bytes:
            self.blobs.append(value)
            return {"bytes": len(self.blobs) - 1}
        if kind is list:
            return [self.node(item, depth + 1) for item in value]
        if kind in (set, frozenset, dict):
            self._hashed += len(value)
            if self._hashed > _HASHED:
                raise WireError(f"sets and dicts with more than {_HASHED:,} items")
        for name, container in (("tuple", tuple), ("size", torch.Size), ("set", set), ("frozenset", frozenset)):
            if kind is container:
                return {name: self._nodes(value, depth)}
        if kind is dict:
            return {"dict": [self._nodes(pair, depth) for pair in value.items()]}
        if kind is torch.dtype:
            return {"dtype": str(value).removeprefix("torch.")}
        if kind is torch.device:
            return {"device": str(value)}
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            return {"tensor": self._tensor(value)}
        if kind is Raised:
            return {"raised": [value.kind, value.message, value.line, list(value.classes)]}
        if kind is Opaque:
            return {"opaque": value.what}
        if kind is Observation:
            names = _FIELDS + (_TENSOR_FIELDS if value.shape is not None else ())
            return {"observation": self._nodes([getattr(value, name) for name in names], depth)}
        raise WireError(f"an object of type {kind.__name__} is not plain data")

    def _nodes(self, items: Iterable[Any], depth: int) -> list[Any]:
        return [self.node(item, depth + 1) for item in items]

    def _tensor(self, x: torch.Tensor) -> list[Any]:
        if str(x.dtype).removeprefix("torch.") not in _READABLE:
            raise WireError(f"a tensor of dtype {x.dtype} is not plain data")
        about = [str(x.dtype).removeprefix("torch."), list(x.shape), list(x.stride()), x.storage_offset()]
        if x.device.type == "meta":
            return [*about, x.requires_grad, None]
        if x.device.type != "cpu" or x.layout != torch.strided:
            raise WireError(f"a tensor on {x.device} of layout {x.layout} is not plain data")
        storage = x.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            size = storage.nbytes()
            if size > LIMIT:
                raise WireError(f"a tensor's storage takes {size:,} bytes; at most {LIMIT:,} can be sent")
            raw = torch.empty(0, dtype=torch.uint8)
            raw.set_(storage, 0, (size,), (1,))
            content = raw.numpy().tobytes()
            if self._place is not None:
                self._storages[key] = [self._place(content), size]
            else:
                self.blobs.append(content)
                self._storages[key] = len(self.blobs) - 1
        return [*about, x.requires_grad, self._storages[key]]


class _Unpacker:
    def __init__(self, blobs: list[bytes], find: Callable[[int, int], Any]) -> None:
        self.blobs = blobs
        self._find = find
        self._storages: dict[tuple[int, ...], torch.UntypedStorage] = {}
        self._truth: dict[int, bool] = {}
        self._count = self._hashed = self._shown = self.cost = 0
        self._observed = False

    def value(self, node: Any, depth: int) -> Any:
        self._count += 1
        self.cost += _COST
        if depth > _DEPTH or self._count > _NODES:
            raise WireError("the value is nested too deep, or has too many parts")
        if isinstance(node, str):
            return self._kept(node)
        if node is None or isinstance(node, bool):
            return node
        if isinstance(node, list):
            return self._values(node, depth)
        if not isinstance(node, dict) or len(node) != 1:
            raise WireError(f"a {type(node).__name__} where a value is expected")
        ((name, content),) = node.items()
        self.cost += _COSTS.get(name, 0)
        if name in ("set", "frozenset", "dict"):
            self._hashed += len(content)
            if self._hashed > _HASHED:
                raise WireError(f"sets and dicts with more than {_HASHED:,} items")
        match name:
            case "int":
                if len(_text(content)) > _DIGITS:
                    raise WireError("a whole number with too many digits")
                return int(content)
            case "float":
                return float.fromhex(_text(content))
            case "complex":
                real, imaginary = (float.fromhex(_text(part)) for part in content)
                return complex(real, imaginary)
            case "bytes":
                found = self.blobs[_index(content)]
                self._show(len(found))
                return found
            case "tuple":
                return tuple(self._values(content, depth))
            case "size":
                return torch.Size([_index(size) for size in self._values(content, depth)])
            case "set":
                return set(_spread(self._values(content, depth)))
            case "frozenset":
                return frozenset(_spread(self._values(content, depth)))
            case "dict":
                pairs = [self._values(pair, depth) for pair in content]
                _spread([key for key, _ in pairs])
                return {key: value for key, value in pairs}
            case "dtype":
                return _DTYPES[_text(content)]
            case "device":
                return torch.device(_text(content))
            case "tensor":
                return self._tensor(content)
            case "raised":
                kind, message, line = map(self._kept, content[:3])
                (classes,) = content[3:]
                if type(classes) is not list or len(classes) > 50:
                    raise WireError("an error without a list of classes, or with too many")
                return Raised(kind, message, line, tuple(map(self._kept, classes)))
            case "opaque":
                return Opaque(self._kept(content))
            case "observation":
                if self._observed:  # one inside another has no meaning, and nobody who reads it expects one
                    raise WireError("more than one observation")
                self._observed = True
                return self._observation(self._values(content, depth))
        raise WireError(f"{name!r} is not a kind of value")

    def _kept(self, node: Any) -> str:
        """A text that is part of the value, which takes memory as long as the value does."""
        text = _text(node)
        self.cost += sys.getsizeof(text)
        return text

    def _values(self, nodes: Any, depth: int) -> list[Any]:
        if not isinstance(nodes, list):
            raise WireError(f"a {type(nodes).__name__} where a list is expected")
        return [self.value(node, depth + 1) for node in nodes]

    def _tensor(self, content: list[Any]) -> torch.Tensor:
        name, shape, stride, offset, requires_grad, blob = content
        if _text(name) not in _READABLE:
            raise WireError(f"a tensor of dtype {name:.50}")
        dtype = _DTYPES[name]
        shape, stride = [_index(size) for size in shape], [_index(step) for step in stride]
        if len(shape) != len(stride) or len(shape) > _DIMENSIONS or type(requires_grad) is not bool:
            raise WireError("a tensor with inconsistent fields")
        last = _index(offset) + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        # On meta there is nothing to look at but the shape.
        if last > 2**62 or (blob is not None and math.prod(size for size in shape if size) > LIMIT * 16):
            raise WireError("a tensor that is too large")
        if math.prod(size for size in shape if size) > 2**62:
            raise WireError("a tensor with more elements than can be counted")
        if blob is None:
            made = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        else:
            storage = self._storage(blob)
            if math.prod(shape) and (last + 1) * dtype.itemsize > storage.nbytes():
                raise WireError("a tensor that reaches beyond its storage")
            if not math.prod(shape) and offset * dtype.itemsize > storage.nbytes():
                raise WireError("a tensor that begins beyond its storage")
            self._show(math.prod(shape) * dtype.itemsize)
            if dtype == torch.bool and not self._all_truth_values(storage):
                raise WireError("a truth value that is neither true nor false")
            made = torch.empty(0, dtype=dtype)
            made.set_(storage, offset, shape, stride)
        return made.requires_grad_() if requires_grad else made

    def _show(self, size: int) -> None:
        """A view can show a few bytes as many elements; reading them all takes time and memory as if they existed."""
        self._shown += size
        if self._shown > LIMIT:
            raise WireError("views that expand beyond the size limit")

    def _storage(self, blob: Any) -> torch.UntypedStorage:
        key = tuple(map(_index, blob if isinstance(blob, list) else [blob]))
        if key not in self._storages:
            memory = bytearray(self.blobs[key[0]]) if len(key) == 1 else self._find(*key)
            raw = torch.frombuffer(memory, dtype=torch.uint8) if len(memory) else torch.empty(0)
            self._storages[key] = raw.untyped_storage()
        return self._storages[key]

    def _all_truth_values(self, storage: torch.UntypedStorage) -> bool:
        """Whether each byte of a storage is 0 or 1. Checked once, no matter how many tensors are views of it."""
        if storage._cdata not in self._truth:
            raw = torch.empty(0, dtype=torch.uint8)
            raw.set_(storage, 0, (storage.nbytes(),), (1,))
            self._truth[storage._cdata] = not storage.nbytes() or int(raw.max()) <= 1
        return self._truth[storage._cdata]

    def _observation(self, values: list[Any]) -> Observation:
        if len(values) not in (len(_FIELDS), len(_FIELDS) + len(_TENSOR_FIELDS)):
            raise WireError("an observation with the wrong number of fields")
        seen = dict(zip(_FIELDS + _TENSOR_FIELDS, values, strict=False))
        kinds: dict[str, tuple[type, ...]] = {
            "call": (str,), "error": (str, type(None)), "message": (str,), "shares": (list,), "mutated": (list,),
            "printed": (str,), "shape": (tuple,), "stride": (tuple,), "offset": (int,), "dtype": (torch.dtype,),
            "device": (str,), "requires_grad": (bool,),
        }  # fmt: skip
        for name, allowed in kinds.items():
            if name in seen and type(seen[name]) not in allowed:
                raise WireError(f"an observation whose {name} is a {type(seen[name]).__name__}")
        if not all(type(each) is int for each in (*seen.get("shape", ()), *seen.get("stride", ()))):
            raise WireError("an observation whose shape or stride holds non-integers")  # the judge multiplies by them
        if not all(type(label) in (int, str) for label in (*seen["shares"], *seen["mutated"])):
            raise WireError("an observation that names arguments by neither position nor keyword")
        return Observation(**seen)


def _spread(keys: list[Any]) -> list[Any]:
    """The keys of a set or dict. Raises WireError if so many have the same hash that a lookup would take forever.

    (Equal keys have the same hash, too. A dict keeps one of them, and no honest message has more than a few.)
    """
    if keys and max(Counter(map(hash, keys)).values()) > _ALIKE:
        raise WireError("keys that were chosen to collide")
    return keys


def _text(node: Any) -> str:
    if type(node) is not str:
        raise WireError(f"a {type(node).__name__} where text is expected")
    return node


def _index(node: Any) -> int:
    if type(node) is not int or not 0 <= node < 2**62:
        raise WireError(f"{node!r:.50} where a size is expected")
    return node
