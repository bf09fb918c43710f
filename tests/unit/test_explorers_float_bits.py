"""The explorer of bits says of every number what PyTorch says."""

import functools
import itertools
import math
import random
import re
from decimal import Decimal
from typing import Any

import pytest
import torch

from course_utils.explorers import float_bits
from course_utils.explorers.float_bits import FORMATS, Format, decoded, encoded, neighbors

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "E4M3": torch.float8_e4m3fn,
    "E5M2": torch.float8_e5m2,
}
SMALL = ("float16", "bfloat16", "E4M3", "E5M2", "E2M1")
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]  # PyTorch has no conversion: the values of lecture 02


@functools.cache
def every(name: str) -> list[float]:
    """All values of a small format, by code."""
    if name == "E2M1":
        return [*FP4, *(-value for value in FP4)]
    if FORMATS[name].bits == 8:
        return torch.arange(256, dtype=torch.uint8).view(DTYPES[name]).double().tolist()
    return torch.arange(65536).to(torch.int16).view(DTYPES[name]).double().tolist()


def some_float32() -> list[int]:
    draw = random.Random(0)
    edges = [0, 1, 2**23 - 1, 2**23, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF]
    return [code + sign for code in [*edges, *(draw.randrange(2**31) for _ in range(500))] for sign in (0, 2**31)]


def float32(codes: list[int]) -> list[float]:
    signed = [code - 2**32 if code >= 2**31 else code for code in codes]
    return torch.tensor(signed, dtype=torch.int32).view(torch.float32).double().tolist()


def same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))


_LOWER = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-", ",")
_FORMULA = re.compile(r"\(−1\)([⁰¹]) · \(([01]) \+ ([\d,]+)/2([⁰-⁹¹²³]+)\) · 2([⁰-⁹¹²³]+)⁻([⁰-⁹¹²³]+)")


def number(text: str) -> int:
    return int(text.translate(_LOWER))


def exactly(text: str) -> float | Decimal:
    """What `float_bits.exact` has written, without rounding it."""
    found = re.fullmatch(r"(−?\d+) · 2(\S+) ≈ \S+|(−?[\d.]+)", text)
    assert found is not None, text
    return Decimal(found[3].translate(_LOWER)) if found[3] else math.ldexp(number(found[1]), number(found[2]))


def check_words(form: Format, code: int, value: float) -> None:
    """Formula and sentence say what PyTorch reads."""
    text, said = float_bits.formula(form, code), float_bits.meaning(form, code)
    assert said.startswith(f"In {form.name}, ") and f"{code:0{form.bits}b}" in said.replace(" ", "")
    assert (" NaN, " in said) == math.isnan(value) and ("∞: " in said) == math.isinf(value)
    assert (" subnormal " in said) == (0 < abs(value) < form.normal)
    if not math.isfinite(value):
        assert text == ""
        return
    found = _FORMULA.fullmatch(text)
    assert found is not None, text
    sign, one, mantissa, scale, exponent, bias = map(number, found.groups())
    assert math.copysign(math.ldexp(one + mantissa / 2**scale, exponent - bias), 1 - 2 * sign) == value, text
    assert one == ("1" in float_bits.split(form, code)[1])
    assert exactly(float_bits.exact(value)) == value
    gaps = {abs(value - n) for n in neighbors(form, code) if n is not None and math.isfinite(n)}
    assert {2.0 ** number(power) for power in re.findall(r"2(\S+) away", said)} == gaps


@pytest.mark.parametrize("name", SMALL)
def test_every_code_of_a_small_format_is_what_pytorch_reads(name: str) -> None:
    form, values = FORMATS[name], every(name)
    line = sorted({value for value in values if not math.isnan(value)})
    place = {value: i for i, value in enumerate(line)}
    for code, value in enumerate(values):
        assert same(decoded(form, code), value)
        if code % 7 and len(values) > 256:
            continue
        if not math.isnan(value):
            assert encoded(form, value) == code
        if code % 13 and len(values) > 256:
            continue
        check_words(form, code, value)
        below, above = neighbors(form, code)
        if math.isnan(value):
            assert below is above is None
        else:
            i = place[value]
            assert below == (line[i - 1] if i else None) and above == (line[i + 1] if i + 1 < len(line) else None), code


def test_random_float32_codes_are_what_pytorch_reads() -> None:
    form, codes = FORMATS["float32"], some_float32()
    for code, value in zip(codes, float32(codes), strict=True):
        assert same(decoded(form, code), value)
        check_words(form, code, value)
        if not math.isnan(value):
            assert encoded(form, value) == code
            here = torch.tensor(value, dtype=torch.float32)
            for other, end in zip(neighbors(form, code), (-math.inf, math.inf), strict=True):
                assert other == (None if value == end else torch.nextafter(here, torch.tensor(end)).item())


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded_as_pytorch_rounds_them(name: str) -> None:
    form, draw = FORMATS[name], random.Random(1)
    values = [draw.uniform(-2, 2) * 2.0 ** draw.randint(-30, 20) for _ in range(500)]
    values += [draw.uniform(-2, 2) * 2.0 ** draw.randint(-160, 140) for _ in range(500)] + [5e-324, 1e308, 0.0, -0.0]
    codes = range(form.top) if form.bits <= 8 else [*draw.sample(range(form.top), 500), 0, form.top - 1]
    for low, high in ((decoded(form, code), decoded(form, code + 1)) for code in codes):
        middle = (low + high) / 2 if math.isfinite(high) else low * (1 + 2.0 ** (-form.mantissa - 2))
        values += [low, middle, -middle, *(math.nextafter(middle, end) for end in (0, math.inf))]
    if name == "E2M1":
        for value in values:
            size = min(abs(torch.tensor(value).item()), 6.0)  # as float32; larger than 6 becomes 6
            code = min(range(8), key=lambda code: (abs(FP4[code] - size), code % 2))
            assert encoded(form, value) == code + 8 * (math.copysign(1, value) < 0), value
        return
    stored = torch.tensor(values, dtype=torch.float64).to(DTYPES[name]).double().tolist()
    for value, wanted in zip(values, stored, strict=True):
        if name == "E4M3" and math.isnan(wanted):
            wanted = math.copysign(448, value)  # before PyTorch 2.12, NaN
        assert same(decoded(form, encoded(form, value)), wanted), value
    assert math.isnan(decoded(form, encoded(form, math.nan)))


def stored(frame: dict[str, Any]) -> tuple[Format, int]:
    """The format and the bits on the buttons."""
    bits = re.findall(r'aria-pressed="(true|false)"[^>]* data-value="(\d+)"', frame["svg"])
    assert [int(place) for _, place in bits] == list(range(len(bits) - 1, -1, -1))
    form = FORMATS[frame["state"]["format"].split()[0]]
    assert len(bits) == form.bits
    return form, int("".join("01"[on == "true"] for on, _ in bits), 2)


def test_each_bit_of_each_format_can_be_flipped_and_back() -> None:
    for form in FORMATS.values():
        explorer = float_bits.explore("1.5", form.name)
        state = explorer.frame()["state"]
        for bit in [b for b in range(form.bits) for _ in range(2)]:
            _, before = stored(explorer.frame(state))
            frame = explorer.frame({**state, "flip": f"{bit}"}, "flip")
            state = frame["state"]
            assert stored(frame) == (form, before ^ 1 << bit) and state["flip"] == "" and not frame["problem"]
            assert same(float(state["number"]), decoded(*stored(frame)))
            assert frame["title"] == f"In {form.name} these bits are {float_bits.exact(decoded(*stored(frame)))}"
            assert stored(explorer.frame(state)) == stored(frame), "what was flipped stays"


def test_flipped_bits_give_way_to_a_number_that_is_written_and_clear_one_that_is_none() -> None:
    explorer = float_bits.explore("nan", "E5M2")
    flipped = explorer.frame({**explorer.frame()["state"], "flip": "0"}, "flip")
    assert stored(flipped)[1] == 0b0_11111_10 and flipped["state"]["number"] == "nan"
    written = explorer.frame({**flipped["state"], "number": "0.1"}, "number")
    assert decoded(*stored(written)) == 0.09375 and written["title"].startswith("0.1 in E5M2 is ")
    for text in ("x", "1,5,5", "0x10", "1/0", "1e9999999", "", "-", "__import__('os')", "1" * 50, "٣"):
        refused = explorer.frame({**written["state"], "number": text}, "number")
        assert refused["at"] == "number" and ": write it like 0.1" in refused["problem"], text
        again = explorer.frame({**refused["state"], "flip": "7"}, "flip")
        assert decoded(*stored(again)) == -0.09375 and not again["problem"]
    commas = {"0,1": "0.1, with a point", "-1,5e3": "-1.5e3, with a point", "65,504": "65504, without commas"}
    for text, said in commas.items():
        refused = explorer.frame({**written["state"], "number": text}, "number")
        assert refused["problem"] == f"“{text}” isn't a number: write {said}"
        assert not explorer.frame({**written["state"], "number": said.split(", ")[0]}, "number")["problem"]
    other = explorer.frame({**written["state"], "format": "float32"}, "format")
    assert other["state"]["number"] == "0.1" and stored(other)[1] == encoded(FORMATS["float32"], 0.1)
    no_nan = explorer.frame({**flipped["state"], "format": "E2M1 (FP4)"}, "format")
    assert no_nan["at"] == "number" and "no NaN" in no_nan["problem"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("float16", "0.1", "0.1 is rounded: the stored number is 2.44e-5 less, or 0.0244%."),
        ("float16", "0.5", "0.5 is stored exactly."),
        ("float16", "1e9", "1e9 becomes ∞: the largest finite number is 65,504."),
        ("float16", "65505", "65505 becomes 65504, the largest finite number."),
        ("float16", "-1e-9", "-1e-9 becomes −0: the smallest positive number is 2⁻²⁴."),
        ("E5M2", "1e-999", "1e-999 becomes 0: the smallest positive number is 2⁻¹⁶."),
        ("E4M3", "460", "460 becomes 448, the largest number: E4M3 has no infinity."),
        ("E4M3", "inf", "inf becomes 448, the largest number: E4M3 has no infinity."),
        ("E2M1", "-1e999", "-1e999 becomes −6, the largest number: E2M1 has no infinity."),
        ("E5M2", "-inf", "-inf is stored exactly."),
        ("bfloat16", "nan", "nan is stored as one of bfloat16's codes for NaN."),
        ("E4M3", "1/3", "1/3 is rounded: the stored number is 0.0104 more, or 3.12%."),
    ],
)
def test_the_finding_says_what_became_of_the_number(name: str, text: str, said: str) -> None:
    frame = float_bits.explore(text, name).frame()
    assert frame["finding"].endswith(f" {said}") and not frame["problem"]
    assert frame["title"].startswith(f"{text} in {name} is ")
    wanted = "asked for" in frame["svg"]
    assert wanted == ("exactly" not in said and "as such" not in said and text not in ("inf", "nan"))


def test_all_extremes_make_a_picture() -> None:
    texts = ("0", "-0", "inf", "-inf", "1e999", "-1e-999", "6e-8", "1" + "/3" * 1, "448", "464", "1." + "3" * 30)
    for form, text, width in itertools.product(FORMATS.values(), texts, (760, 380)):
        frame = float_bits.explore(text, form.name).frame(width=width)
        assert not frame["problem"] and len(frame["svg"].encode()) < 20_000
        assert frame["svg"].count('data-key="here"') == 1
