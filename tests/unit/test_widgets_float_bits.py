"""The explorer of bits says of every number what PyTorch says."""

import functools
import math
import random
import re
from decimal import Decimal

import pytest
import torch

from course_utils import plots
from course_utils.widgets import explorer as explorers
from course_utils.widgets import float_bits
from course_utils.widgets.explorer import Explorer, Impossible

SMALL = ("float16", "bfloat16", "E4M3", "E5M2")


def every(name: str) -> torch.Tensor:
    """All values of a small format, as float64, by code."""
    dtype = float_bits.FORMATS[name]
    if dtype.itemsize == 1:
        return torch.arange(256, dtype=torch.uint8).view(dtype).double()
    return torch.arange(65536).to(torch.int16).view(dtype).double()


def some_float32() -> list[int]:
    draw = random.Random(0)
    edges = [0, 1, 2**23 - 1, 2**23, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF]
    return [code + sign for code in [*edges, *(draw.randrange(2**31) for _ in range(3000))] for sign in (0, 2**31)]


def float32(code: int) -> float:
    return torch.tensor([code - 2**32 if code >= 2**31 else code], dtype=torch.int32).view(torch.float32).item()


_LOWER = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-", ",")
_FORMULA = re.compile(r"\(−1\)([⁰¹]) · \(([01]) \+ ([\d,]+)/2([⁰-⁹¹²³]+)\) · 2([⁰-⁹¹²³]+)⁻([⁰-⁹¹²³]+) = (.+)")
_EXACT = re.compile(r"(−?\d+) · 2(\S+) ≈ \S+|(−?[\d.]+)")


def number(text: str) -> int:
    return int(text.translate(_LOWER))


def exactly(text: str) -> float | Decimal:
    """What float_bits.exact has written, without rounding it."""
    found = _EXACT.fullmatch(text)
    assert found is not None, text
    if not found[1]:
        return Decimal(found[3].translate(_LOWER))
    top, power = number(found[1]), number(found[2])
    assert abs(top) < 2**53 and power > -1_000, text  # a float64 holds it
    return math.ldexp(top, power)


def same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))


def check_formula(name: str, code: int, value: float) -> None:
    text = float_bits.formula(name, code)
    if not math.isfinite(value):
        assert float_bits.exact(value) in text and "kept for" in text
        return
    found = _FORMULA.fullmatch(text)
    assert found is not None, text
    sign, one, mantissa, scale, exponent, bias = (number(part) for part in found.groups()[:6])
    assert math.copysign(math.ldexp(one + mantissa / 2**scale, exponent - bias), 1 - 2 * sign) == value, text
    assert exactly(found[7]) == value, text
    fields = float_bits.split(name, code)
    assert (sign, mantissa, scale) == (int(fields["sign"]), int(fields["mantissa"], 2), len(fields["mantissa"]))
    assert (one, exponent) == ((1, int(fields["exponent"], 2)) if "1" in fields["exponent"] else (0, 1))


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has PyTorch read each code once: formulas and neighbors ask for it again and again."""
    monkeypatch.setattr(float_bits, "decoded", functools.cache(float_bits.decoded))


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("name", SMALL)
def test_every_code_of_a_small_format_is_what_pytorch_reads(name: str) -> None:
    values = every(name).tolist()
    line = sorted({value for value in values if not math.isnan(value)})
    place = {value: i for i, value in enumerate(line)}
    for code, value in enumerate(values):
        assert same(float_bits.decoded(name, code), value)
        check_formula(name, code, value)
        below, above = float_bits.neighbors(name, code)
        if math.isnan(value):
            assert below is above is None
            continue
        assert same(float_bits.decoded(name, float_bits.encoded(name, value)), value)
        i = place[value]
        assert below == (line[i - 1] if i else None) and above == (line[i + 1] if i + 1 < len(line) else None), code


def test_random_float32_codes_are_what_pytorch_reads() -> None:
    for code in some_float32():
        value = float32(code)
        assert same(float_bits.decoded("float32", code), value)
        check_formula("float32", code, value)
        below, above = float_bits.neighbors("float32", code)
        if math.isnan(value):
            assert below is above is None
            continue
        here = torch.tensor(value)
        for other, end in ((below, -math.inf), (above, math.inf)):
            wanted = torch.nextafter(here, torch.tensor(end)).item()
            assert other == (None if value == end else wanted)
        assert float_bits.encoded("float32", value) == code


def test_the_description_is_true_of_every_8_bit_code_and_a_sample_of_the_others() -> None:
    draw = random.Random(2)
    for name, dtype in float_bits.FORMATS.items():
        info, width = torch.finfo(dtype), 8 * dtype.itemsize
        codes = range(256) if width == 8 else [draw.randrange(2**width) for _ in range(2000)]
        for code in [*codes, 0, 1, 2 ** (width - 1), 2 ** (width - 1) - 1]:
            value, said = float_bits.decoded(name, code), float_bits.meaning(name, code)
            assert said.startswith(f"In {name}, ") and f"{code:0{width}b}" in said.replace(" ", "")
            assert (" NaN, " in said) == math.isnan(value) and ("∞: " in said) == math.isinf(value)
            assert (" subnormal " in said) == (0 < abs(value) < info.smallest_normal)
            assert (" normal " in said) == (info.smallest_normal <= abs(value) < math.inf)
            if not math.isfinite(value):
                continue
            assert exactly(re.split(r"[,:] (?:a |there)", said.partition(" is ")[2])[0]) == value
            gaps = {abs(value - n) for n in float_bits.neighbors(name, code) if n is not None and math.isfinite(n)}
            assert {2.0 ** number(power) for power in re.findall(r"2(\S+) away", said)} == gaps


@pytest.mark.parametrize("name", float_bits.FORMATS)
def test_codes_at_the_ends_of_each_format_are_drawn(name: str) -> None:
    top = 2 ** (8 * float_bits.FORMATS[name].itemsize - 1)
    info = torch.finfo(float_bits.FORMATS[name])
    normal, largest = float_bits.encoded(name, info.smallest_normal), float_bits.encoded(name, info.max)
    ends = {0, 1, 2, normal - 1, normal, top // 2, *range(largest - 1, min(largest + 3, top)), top - 1}
    for code in [c + sign for c in sorted(ends) for sign in (0, top)]:
        (ax,) = float_bits.draw((name, code, "")).figure.axes
        marked = {line.get_gid() for line in ax.lines}
        assert ("place" in marked) == ("here" in marked) == (not math.isnan(float_bits.decoded(name, code)))
        assert "asked" not in marked


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the SVG, which is not what is tested here."""
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")


def buttons(explorer: Explorer) -> list[object]:
    return explorer.controls["number"].buttons


def stored(explorer: Explorer) -> tuple[str, int]:
    name, code, _ = explorer.controls["number"].value
    shown = [int(button.value) for button in buttons(explorer)[: 8 * float_bits.FORMATS[name].itemsize]]
    assert int("".join(map(str, shown)), 2) == code, "the buttons show what is stored"
    assert all(button.description == str(int(button.value)) for button in buttons(explorer)[: len(shown)])
    return name, code


@pytest.mark.usefixtures("unseen")
def test_each_bit_of_each_format_can_be_set() -> None:
    explorer = float_bits.explore("1.5", "E4M3")
    members = explorer.controls["number"].members
    for name, dtype in float_bits.FORMATS.items():
        members["format"].value = name
        members["number"].value = "1.5"
        for place in range(8 * dtype.itemsize):
            _, before = stored(explorer)
            button = buttons(explorer)[place]
            button.value = not button.value
            assert stored(explorer) == (name, before ^ 1 << (8 * dtype.itemsize - 1 - place))
            assert (
                explorer.problem == ""
                and float_bits.exact(float_bits.decoded(*stored(explorer))) in explorer.picture.finding
            )
            assert same(float(members["number"].value), float_bits.decoded(*stored(explorer)))


@pytest.mark.usefixtures("unseen")
def test_random_changes_of_format_bits_and_number_show_what_is_stored() -> None:
    draw = random.Random(1)
    explorer = float_bits.explore()
    members = explorer.controls["number"].members
    texts = [
        "0.1",
        "-3",
        "1e-5",
        "1/3",
        "inf",
        "-inf",
        "nan",
        "-0",
        "1e9",
        "448",
        "6e-8",
        "1e999",
        "1e-999",
        ".5",
        "460",
    ]
    for _ in range(100):
        what = draw.randrange(3)
        if what == 0:
            members["format"].value = draw.choice(list(float_bits.FORMATS))
        elif what == 1:
            members["number"].value = draw.choice(texts)
        else:
            button = draw.choice(buttons(explorer)[: 8 * float_bits.FORMATS[members["format"].value].itemsize])
            button.value = not button.value
        assert explorer.problem == ""
        name, code = stored(explorer)
        if what != 2 and "/" not in members["number"].value:
            wanted = (
                torch.tensor(float(members["number"].value), dtype=torch.float64).to(float_bits.FORMATS[name]).double()
            )
            assert same(float_bits.decoded(name, code), wanted.item())
        assert explorer.picture.finding.startswith(f"In {name}, ")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("float16", "0.1", "0.1 is rounded: what is stored is 2.44e-5 less, 0.0244 % of it."),
        ("float16", "0.5", "0.5 is stored exactly."),
        ("float16", "1e9", "1e9 becomes ∞: the largest finite number is 65,504."),
        ("float16", "-1e-9", "-1e-9 becomes −0: the smallest positive number is 2⁻²⁴."),
        ("E5M2", "1e-999", "1e-999 becomes 0: the smallest positive number is 2⁻¹⁶."),
        ("E4M3", "460", ": the largest finite number is 448."),
        ("E4M3", "inf", ": this format has no infinity."),
        ("E5M2", "-inf", "-inf is stored as such."),
        ("bfloat16", "nan", "nan is stored as such."),
        ("E4M3", "1/3", "1/3 is rounded: what is stored is 0.0104 more, 3.12 % of it."),
    ],
)
def test_the_description_says_what_became_of_the_number_typed_in(name: str, text: str, said: str) -> None:
    explorer = float_bits.explore(text, name)
    assert explorer.picture.finding.endswith(said)
    marked = {line.get_gid() for line in explorer.picture.figure.axes[0].lines}
    value = float_bits.decoded(name, float_bits.encoded(name, float_bits.parsed(text)[0]))
    assert ("asked" in marked) == ("exactly" not in said and math.isfinite(value) and text != "inf")


def test_text_that_is_no_number_is_refused_and_setting_a_bit_clears_the_error() -> None:
    explorer = float_bits.explore()
    members = explorer.controls["number"].members
    for text in ("x", "1,5", "0x10", "1/0", "1e9999999", "", "__import__('os')", "1" * 50):
        members["number"].value = text
        assert "→" in explorer.problem, text
    members["number"].value = "x"
    buttons(explorer)[0].value = not buttons(explorer)[0].value
    assert explorer.problem == ""
    with pytest.raises(Impossible, match="→ write it like"):
        float_bits.draw(("float16", 0, "x"))


def test_the_number_typed_in_stays_when_the_format_changes() -> None:
    explorer = float_bits.explore("0.1", "float16")
    members = explorer.controls["number"].members
    for name in ("E4M3", "float32", "float16"):
        members["format"].value = name
        assert stored(explorer)[1] == float_bits.encoded(name, 0.1)


def test_sign_exponent_and_mantissa_are_drawn_with_their_values() -> None:
    (ax,) = float_bits.draw(("bfloat16", 0b1_01111110_1000000, "")).figure.axes
    drawn = [patch.get_gid() for patch in ax.patches if patch.get_gid()]
    assert drawn == ["sign"] + ["exponent"] * 8 + ["mantissa"] * 7
    texts = [text.get_text() for text in ax.texts]
    assert {"exponent 126", "mantissa 64", "−0.75"} <= set(texts) and "-" not in "".join(texts)


def test_the_same_settings_give_the_same_bytes() -> None:
    one, two = (float_bits.explore("0.1", "E5M2") for _ in range(2))
    assert one.png() == two.png()
    html = [plots.to_html(x.picture.figure, alt=x.picture.finding) for x in (one, two)]
    assert html[0] == html[1]
