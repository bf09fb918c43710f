"""The encoding between the student's process and the judge: what is sent arrives, and damage is an error, no more."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.grading import conversation
from autograder.inside import messages
from autograder.inside.messages import Call, Names, Seen
from course_utils.testing import Observation, Opaque, Raised, wire
from course_utils.testing.comparing import compare


def passed(value: Any) -> Any:
    return wire.unpack(wire.pack(value))


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, 1, -7, 10**3000, -(2**64), 0.0, -0.0, 0.1, 1e308, 5e-324, math.inf, -math.inf, 1 + 2j,
        "", "ä\ud800\x00\U0001f600", b"", bytes(range(256)), [], (), {}, set(), frozenset({1}),
        [1, (2, [3.0, {"a": {4}}])],
        {1: "a", (2, 3): None, "x": {b"y"}}, torch.Size([2, 3]), torch.float32, torch.float8_e4m3fn,
        torch.device("cuda:3"), Raised("ValueError", "no", "x = 1"),
    ],
    ids=lambda value: repr(value)[:30].encode("ascii", "replace").decode(),
)  # fmt: skip
def test_plain_values_arrive_with_their_types(value: Any) -> None:
    got = passed(value)
    assert type(got) is type(value) and got == value
    assert repr(got) == repr(value)  # also of what is inside, and of −0.0


def test_nan_bools_and_opaque_objects_arrive_as_they_were() -> None:
    assert math.isnan(passed(math.nan))
    assert [type(x) for x in passed([True, 1, 1.0])] == [bool, int, float]
    opaque = passed(Opaque("a function"))
    assert type(opaque) is Opaque and opaque.what == "a function"


@pytest.mark.parametrize("name", sorted(wire._READABLE))
def test_tensors_of_every_readable_dtype_arrive(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.arange(6, dtype=torch.uint8).bool() if dtype == torch.bool else torch.empty(6, dtype=dtype)
    if dtype != torch.bool:
        x.view(torch.uint8).copy_(torch.arange(6 * dtype.itemsize) % 60)
    got = passed(x)
    assert got.dtype == dtype
    assert torch.equal(got.view(torch.uint8), x.view(torch.uint8))
    compare(got, x)  # whatever arrives can be compared


def test_tensors_can_lie_outside_the_message() -> None:
    kept = bytearray(1000)

    def place(content: bytes) -> int:
        kept[96 : 96 + len(content)] = content
        return 96

    base = torch.arange(24.0)
    message = wire.pack([base, base.view(4, 6)[1:, 2]], place)
    got, column = wire.unpack(message, lambda start, size: memoryview(kept)[start : start + size])
    assert torch.equal(got, base) and torch.equal(column, base.view(4, 6)[1:, 2])
    column.zero_()
    assert got[8] == 0  # one storage still, and not a copy of what was kept
    assert torch.frombuffer(kept, dtype=torch.float32, offset=96, count=24).tolist() == got.tolist()
    with pytest.raises(wire.WireError, match="not in its message"):
        wire.unpack(message)


def test_every_storage_has_a_place_of_its_own() -> None:
    shared = conversation.Shared()
    given = [torch.empty(0), torch.empty(0), torch.arange(16.0), torch.tensor(7)]
    message = wire.pack(given, shared.place)
    got = wire.unpack(message, shared.find)
    assert len({x.untyped_storage()._cdata for x in got}) == len(given)
    assert all(torch.equal(x, y) for x, y in zip(got, given, strict=True))
    os.close(shared.descriptor)


def test_a_calls_arguments_never_overlap() -> None:
    shared = conversation.Shared()
    third = bytes(wire.LIMIT // 3)
    assert [shared.place(third), shared.place(third)] == [0, len(third) // 64 * 64 + 64]
    with pytest.raises(wire.WireError, match="take more than 134,217,728 bytes"):
        shared.place(third)
    shared.begin()
    assert shared.place(third) == 0
    os.close(shared.descriptor)


def test_tensors_keep_their_layout_and_what_they_share() -> None:
    base = torch.arange(24.0)
    column = base.view(4, 6)[1:, 2]
    row = torch.zeros(1, 3).expand(5, 3)
    parameter = torch.ones(2, requires_grad=True)
    got = passed({"column": column, "base": base, "row": row, "parameter": parameter, "empty": torch.empty(0, 3)})
    assert torch.equal(got["column"], column)
    assert (got["column"].stride(), got["column"].storage_offset()) == ((6,), 8)
    assert got["column"].untyped_storage().data_ptr() == got["base"].untyped_storage().data_ptr()
    assert got["row"].stride() == (0, 1) and got["row"].untyped_storage().nbytes() == 12
    assert got["parameter"].requires_grad and not got["base"].requires_grad
    assert got["empty"].shape == (0, 3)
    got["base"][8] = -1
    assert got["column"][0] == -1


def test_meta_tensors_have_no_memory() -> None:
    got = passed(torch.empty(12288, 49152, device="meta", dtype=torch.bfloat16))
    assert got.device.type == "meta" and got.shape == (12288, 49152) and got.dtype == torch.bfloat16


def test_an_observation_arrives_with_its_fields() -> None:
    seen = Observation("f(1)", torch.ones(2), shares=[0, "x"], mutated=[1], printed="hi", shape=(2,), stride=(1,),
                       offset=0, dtype=torch.float32, device="cpu", requires_grad=False)  # fmt: skip
    got = passed(seen)
    assert got.shape == (2,) and got.shares == [0, "x"] and got.mutated == [1] and got.dtype == torch.float32


class Number(int):
    pass


@pytest.mark.parametrize(
    "value",
    [object(), Number(3), len, 10**5000, list(range(400_000)), dict.fromkeys(range(20_000)), torch.eye(2).to_sparse(),
     ["x" * (wire._TEXT + 1)]],
    ids=["object", "subclass", "function", "digits", "items", "keys", "sparse", "text"],
)  # fmt: skip
def test_values_that_are_not_plain_data_or_too_large_are_refused(value: Any) -> None:
    with pytest.raises(wire.WireError):
        wire.pack(value)


def test_an_observation_inside_another_is_refused() -> None:
    inner = Observation("f()", 1, None)
    assert passed(inner).value == 1
    with pytest.raises(wire.WireError, match="more than one observation"):
        passed(Observation("f()", [inner], None))


def test_a_tensor_of_many_dimensions_is_refused() -> None:
    assert passed(torch.zeros([1] * 16)).dim() == 16
    with pytest.raises(wire.WireError, match="inconsistent fields"):
        passed(torch.zeros(1).expand([2] * 22 + [1] * 42))


def test_a_value_nested_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(wire.WireError, match="deep"):
        wire.pack(deep)


def message(text: bytes, *blobs: bytes) -> bytes:
    sizes = b"".join(wire._SIZE.pack(len(blob)) for blob in blobs)
    return wire._HEAD.pack(len(text), len(blobs)) + sizes + text + b"".join(blobs)


def tensor(dtype: str, shape: str, stride: str, offset: str = "0", grad: str = "false", blob: str = "0") -> bytes:
    return f'{{"tensor":["{dtype}",{shape},{stride},{offset},{grad},{blob}]}}'.encode()


FALSE = {
    "nothing": b"",
    "no JSON": message(b"{"),
    "NaN": message(b"NaN"),
    "a number": message(b"3"),
    "two kinds": message(b'{"int":"1","float":"0x1p0"}'),
    "unknown": message(b'{"pickle":"x"}'),
    "digits": message(b'{"int":"' + b"1" * 5000 + b'"}'),
    "JSON digits": message(b"[" + b"1" * 5000 + b"]"),
    "a set of lists": message(b'{"set":[[]]}'),
    "a dict of threes": message(b'{"dict":[["a","b","c"]]}'),
    "no such blob": message(b'{"bytes":0}'),
    "brackets": message(b"[" * 100_000),
    "many parts": message(b"[" + b"[]," * 2_500_000 + b"[]]"),
    "collisions": message(b'{"set":[' + b",".join(b'{"int":"%d"}' % (i * (2**61 - 1)) for i in range(20_000)) + b"]}"),
    "beyond its storage": message(tensor("int64", "[2]", "[1]"), bytes(8)),
    "begins beyond it": message(tensor("int64", "[0]", "[1]", "99"), bytes(8)),
    "a wide stride": message(tensor("int64", "[2]", str([2**61])), bytes(8)),
    "a negative stride": message(tensor("int64", "[2]", "[-1]", "1"), bytes(16)),
    "fractions": message(tensor("int64", "[1.5]", "[1]"), bytes(16)),
    "many elements": message(tensor("int8", str([2**60]), "[0]"), bytes(8)),
    "no elements, huge sizes": message(tensor("int8", str([0, 2**40, 2**40]), "[1,1,1]"), bytes(8)),
    "a gigabyte in one byte": message(tensor("int8", str([2**30]), "[0]"), bytes(8)),
    "packed bits": message(tensor("bits8", "[1]", "[1]"), bytes(8)),
    "quantized": message(tensor("quint8", "[1]", "[1]"), bytes(8)),
    "neither true nor false": message(tensor("bool", "[2]", "[1]"), b"\x01\x02"),
    "integers with a gradient": message(tensor("int64", "[1]", "[1]", grad="true"), bytes(8)),
    "other fields": message(b'{"observation":["f",null]}'),
    "another kind of field": message(b'{"observation":[["f"],null,null,"",[],[],""]}'),
    "no device": message(b'{"device":"nowhere"}'),
    "many tiny blobs": message(b"null", *[b""] * 400_000),
    "a size that is none": message(b'{"size":["x"]}'),
}


@pytest.mark.parametrize("name", FALSE)
def test_made_up_messages_are_refused(name: str) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack(FALSE[name])


def collide(kind: str, count: int) -> bytes:
    """Keys of a set or dict that all have one hash."""
    keys = [b'{"tuple":[{"int":"%d"},{"int":"1"}]}' % (i * (2**61 - 1)) for i in range(count)]
    if kind == "dict":
        keys = [b"[%s,null]" % key for key in keys]
    return message(b'{"%s":[%s]}' % (kind.encode(), b",".join(keys)))


def shown_often(dtype: str, times: int, size: int) -> bytes:
    """A few bytes that are shown as many, over and over."""
    return message(b"[" + b",".join([tensor(dtype, str([size]), "[0]")] * times) + b"]", bytes(8))


# Each costs its reader much more than its bytes, unless the reader looks out.
COSTLY = {
    "a view of 256 MiB, 2,000 times": shown_often("bool", 2_000, 2**28),
    "a view of 1 MiB, 50,000 times": shown_often("bool", 50_000, 2**20),
    "many views of one large storage": message(
        b"[" + b",".join([tensor("bool", "[8]", "[1]")] * 50_000) + b"]", bytes(2**24)
    ),
    "a view in 20 dimensions": message(tensor("bool", str([2] * 28), str([0] * 28)), bytes(8)),
    "a set of keys that collide": collide("set", 9_999),
    "a dict of keys that collide": collide("dict", 9_999),
    "small dicts of keys that collide": message(
        b"[" + b",".join([collide("dict", 20)[wire._HEAD.size :]] * 499) + b"]"
    ),
    "brackets, deep": message(b"[" * 2**24),
    "brackets, wide": message(b"[" + b"[]," * 1_900_000 + b"[]]"),
    "dicts, deep": message(b'{"tuple":[' * 1_000_000),
    "digits": message(b"[" + b",".join([b'{"int":"%s"}' % (b"9" * 4000)] * 4000) + b"]"),
    "a long fraction": message(b'{"float":"0x1.%sp0"}' % (b"f" * 2**23)),
    "one blob, many times": message(b"[" + b",".join([b'{"bytes":0}'] * 100_000) + b"]", b"x" * 2**20),
    "one blob, many times, in a set": message(
        b'{"set":[{"tuple":[' + b",".join([b'{"bytes":0}'] * 100_000) + b"]}]}", b"x" * 2**20
    ),
    "many blobs": message(b"[" + b",".join(b'{"bytes":%d}' % i for i in range(200_000)) + b"]", *[b"x"] * 200_000),
}


# Reads each file in a process of its own. What is known of a process's memory is the peak of its whole life, so one
# that has read something else before would hide what this takes; a fork has no past.
MEASURES = """
import contextlib, json, os, resource, sys, time
from pathlib import Path
from course_utils.testing import wire


def reads_often(message):
    return message * 64


read = {"unpack": wire.unpack, "reads_often": reads_often}[sys.argv[1]]
for name in sys.argv[2:]:
    if os.fork() == 0:
        message = Path(name).read_bytes()
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        with contextlib.suppress(wire.WireError):
            read(message)
        took, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([took, peak - before]), flush=True)
        os._exit(0)
    os.wait()
"""


def measured(read: str, *paths: Path) -> list[tuple[float, float]]:
    """Seconds of the processor and KiB that reading each of these files takes."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURES, read, *paths], stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, float]]:
    paths = []
    for number, costly in enumerate(COSTLY.values()):
        paths.append(tmp_path_factory.mktemp("costly") / str(number))
        paths[-1].write_bytes(costly)
    found = measured("unpack", *paths)
    for path in paths:
        path.unlink()
    return dict(zip(COSTLY, found, strict=True))


@pytest.mark.parametrize("name", COSTLY)
def test_reading_a_message_costs_time_and_memory_in_proportion_to_its_bytes(
    name: str, costs: dict[str, tuple[float, float]]
) -> None:
    """Refused or not. A second of the processor for 16 MiB is what plain numbers take. These have up to thirty, and no
    gigabytes; what grew with a square would take hours."""
    seconds, kibibytes = costs[name]
    assert seconds < 0.5 + 30 * len(COSTLY[name]) / 2**24
    assert kibibytes < 2**10 * 100 + 60 * len(COSTLY[name]) / 2**10


def test_memory_that_reading_takes_is_seen_whatever_was_read_before(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(bytes(2**23))
    small.write_bytes(bytes(2**21))
    [(_, before), (_, after)] = measured("reads_often", large, small)
    assert before > 500 * 2**10 and 120 * 2**10 < after < 200 * 2**10


LONG = b"\\ud83d\\ude42" + b"x" * 4_000_000  # one letter of four bytes, so all take four
WITH_TEXT = {
    "a text": b'"%s"',
    "a list": b'["%s"]',
    "a key": b'{"dict":[["%s",null]]}',
    "an opaque value": b'{"opaque":"%s"}',
    "an error's message": b'{"raised":["ValueError","%s","",[]]}',
    "an error's class": b'{"raised":["ValueError","","",["%s"]]}',
    "an observation's output": b'{"observation":["f()",null,null,"",[],[],"%s"]}',
}


@pytest.mark.parametrize("name", WITH_TEXT)
def test_a_text_counts_with_the_memory_that_it_takes(name: str) -> None:
    spent: list[int] = []
    wire.unpack(message(WITH_TEXT[name] % LONG), spend=spent.append)
    assert sum(spent) > 5 * 4_000_000  # in its message and decoded


def test_keys_that_happen_to_be_alike_arrive() -> None:
    for value in ({-1, -2}, {0, 2**61 - 1, 2 * (2**61 - 1)}, {number: number for number in range(10_000)}):
        assert passed(value) == value


def test_damaged_messages_are_an_error_or_a_value() -> None:
    """Truncations, flipped bytes and swapped parts of real messages, from a fixed seed."""
    chance = random.Random(0)
    x = torch.arange(12.0).view(3, 4)
    originals = [
        wire.pack(value)
        for value in (
            messages.plain(Seen(Observation("f(x)", [x, x.T, x[1:, ::2]], shares=[0], printed="…"))),
            messages.plain(Call("f", (1, 2.5, None, True, 3j, b"abc", {1, 2}), {"dtype": torch.int8}, "def f(): ...")),
            messages.plain(Names(["f", "λ"], ["torch"])),
            [torch.zeros(2, dtype=dtype) for dtype in (torch.bool, torch.float8_e5m2, torch.complex64)],
            {"raised": Raised("ValueError", "x", "y"), "size": torch.Size([1]), "device": torch.device("cpu")},
        )
    ]
    refused = strangers = 0
    for _ in range(6000):
        damaged = bytearray(chance.choice(originals))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(damaged))
            match chance.randrange(4):
                case 0:
                    damaged[place] ^= 1 << chance.randrange(8)
                case 1:
                    damaged[place] = chance.choice(b'0123456789[]{},":-ntf')
                case 2:
                    del damaged[place : place + chance.randint(1, 9)]
                case 3:
                    damaged[place:place] = damaged[: chance.randint(1, 30)]
            if not damaged:
                break
        try:
            value = wire.unpack(bytes(damaged))
        except wire.WireError:
            refused += 1
            continue
        repr(value)
        for read in (messages.answer, messages.request):
            try:
                repr(read(value))
            except wire.WireError:
                strangers += 1
    assert 1000 < refused < 6000 and strangers


def test_every_truncation_is_refused() -> None:
    whole = wire.pack(messages.plain(Seen(Observation("f(x)", torch.ones(3)))))
    for size in range(len(whole)):
        with pytest.raises(wire.WireError):
            wire.unpack(whole[:size])
