"""The bits of one number: set them, or write a number, and see what's stored."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import ipywidgets
import torch

from course_utils.plots import DATA, bit_pattern
from course_utils.plots.formats import superscript
from course_utils.units import plain
from course_utils.widgets.explorer import Explorer, Impossible, Picture
from course_utils.widgets.group import Group

FORMATS = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "E4M3": torch.float8_e4m3fn,
    "E5M2": torch.float8_e5m2,
}
_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_NUMBER = re.compile(r"[+-]?(\d+/0*[1-9]\d*|(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?|inf|nan)", re.IGNORECASE)
# The shades of plots.bit_pattern.
_LOOK = (
    "<style>.course-bits{margin-right:0.5rem}.course-bits button{width:1.5rem;padding:0;margin:1px}"
    ".course-bits button.mod-active{font-weight:bold;box-shadow:inset 0 0 0 2px currentColor}"
    ".course-bits button:focus-visible{outline:3px dashed currentColor!important;outline-offset:-3px}"
    ".course-bits{flex-flow:row wrap}"
    + "".join(
        f".course-bits-{name} button,.course-bits-{name} button.mod-active{{background-color:{DATA}{alpha}}}"
        for name, alpha in (("sign", "ff"), ("exponent", "a6"), ("mantissa", "40"))
    )
    + "</style>"
)


def decoded(name: str, code: int) -> float:
    """What PyTorch reads in these bits."""
    dtype = FORMATS[name]
    return float(torch.tensor(code).to(_WHOLE[dtype.itemsize]).view(dtype).double())


def encoded(name: str, value: float) -> int:
    """The bits that PyTorch stores for this number."""
    dtype = FORMATS[name]
    stored = torch.tensor(value, dtype=torch.float64).to(dtype).view(_WHOLE[dtype.itemsize])
    return int(stored.item()) % (1 << 8 * dtype.itemsize)


def split(name: str, code: int) -> dict[str, str]:
    """The bits of sign, exponent and mantissa, as text."""
    dtype = FORMATS[name]
    mantissa = -int(math.log2(torch.finfo(dtype).eps))
    text = f"{code:0{8 * dtype.itemsize}b}"
    return {"sign": text[0], "exponent": text[1:-mantissa], "mantissa": text[-mantissa:]}


def neighbors(name: str, code: int) -> tuple[float | None, float | None]:
    """The next numbers below and above; None if there's none. NaN has neither."""
    value, top = decoded(name, code), 2 ** (8 * FORMATS[name].itemsize - 1)
    if math.isnan(value):
        return None, None
    place = code if code < top else top - code  # on the number line: both zeros are 0
    found = [decoded(name, p if p >= 0 else top - p) for p in (place - 1, place + 1)]
    below, above = (None if math.isnan(number) else number for number in found)
    return below, above


def exact(value: float) -> str:
    """All digits of a number; if there are many, an integer times a power of two."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{Decimal(value):f}"
    if len(text) <= 18:
        return text.replace("-", "−")
    top, bottom = value.as_integer_ratio()
    power = 1 - bottom.bit_length()
    while top % 2 == 0:
        top, power = top // 2, power + 1
    return f"{top} · 2{superscript(power)} ≈ {value:.9g}".replace("-", "−")


def formula(name: str, code: int) -> str:
    """The lecture's formula with this number's fields."""
    fields, value = split(name, code), decoded(name, code)
    exponent, mantissa = int(fields["exponent"], 2), int(fields["mantissa"], 2)
    if math.isnan(value):
        return f"exponent {exponent:,}, mantissa {mantissa:,}: this pattern is kept for NaN, not a number"
    if math.isinf(value):
        return f"exponent {exponent:,}, mantissa 0: this pattern is kept for {exact(value)}"
    bias = 1 - int(math.log2(torch.finfo(FORMATS[name]).smallest_normal))
    one, field = (1, exponent) if exponent else (0, 1)
    scale = superscript(len(fields["mantissa"]))
    sign = superscript(fields["sign"])
    return f"(−1){sign} · ({one} + {mantissa:,}/2{scale}) · 2{superscript(f'{field}-{bias}')} = {exact(value)}"


def parsed(text: str) -> tuple[float, Fraction | None]:
    """A number as float64, and exactly (None: infinite or NaN)."""
    text = text.strip().replace("−", "-").lower()
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        raise Impossible(f"“{text[:40]}” cannot be read as a number, → write it like 0.1, -3, 1e-5, 1/3 or inf")
    if text.strip("+-") in ("inf", "nan"):
        return float(text), None
    number = Fraction(text)
    return (float(number) if "/" in text else float(text)), number


def draw(number: tuple[str, int, str]) -> Picture:
    """The picture for a format, the bits as an integer, and the requested number ("": none)."""
    name, code, asked = number
    info, value = torch.finfo(FORMATS[name]), decoded(name, code)
    below, above = neighbors(name, code)
    finding, title, rounded = meaning(name, code), f"In {name} these bits are {exact(value)}", None
    if asked:
        short = asked.strip() if len(asked.strip()) <= 20 else f"{asked.strip()[:19]}…"
        wanted, precisely = parsed(asked)
        title = f"{short} in {name} is {exact(value)}"
        finding += f" {_stored(short, wanted, precisely, number)}"
        if precisely is not None and math.isfinite(value) and Fraction(value) != precisely:
            rounded = short, wanted
    fig = bit_pattern(
        split(name, code),
        formula(name, code),
        near=(below, value, above),
        limits=(decoded(name, 1), info.smallest_normal, info.max),
        asked=rounded,
        title=title,
    )
    return Picture(fig, finding)


def meaning(name: str, code: int) -> str:
    """A sentence that says what a bit pattern means and how far its neighbors are."""
    value, (below, above) = decoded(name, code), neighbors(name, code)
    begin = f"In {name}, {' '.join(split(name, code).values())} is {exact(value)}"
    if math.isnan(value):
        why = (
            "all bits below the sign are 1" if name == "E4M3" else "all exponent bits are 1, and the mantissa is not 0"
        )
        return f"{begin}, not a number: {why}."
    if math.isinf(value):
        return f"{begin}: all exponent bits are 1, and the mantissa is 0."
    if value == 0:
        away = _log(decoded(name, 1))
        return f"{begin}: there are two zeros, and the next number on either side is 2{away} away."
    kind = "normal" if abs(value) >= torch.finfo(FORMATS[name]).smallest_normal else "subnormal"
    if below is not None and above is not None and value - below == above - value:
        return f"{begin}, a {kind} number: its neighbors are 2{_log(above - value)} away."
    said = []
    for other, where in ((below, "below"), (above, "above")):
        if other is None:
            said.append(f"there is none {where}")
        else:
            away = exact(other) if math.isinf(other) else f"2{_log(abs(other - value))} away"
            said.append(f"the next one {where} is {away}")
    return f"{begin}, a {kind} number: {' and '.join(said)}."


def _stored(asked: str, wanted: float, precisely: Fraction | None, number: tuple[str, int, str]) -> str:
    """What happened to the requested number."""
    name, code, _ = number
    value, largest, smallest = decoded(name, code), torch.finfo(FORMATS[name]).max, decoded(name, 1)
    if precisely is None:
        same = wanted == value or (math.isnan(wanted) and math.isnan(value))
        return (
            f"{asked} is stored as such." if same else f"{asked} becomes {exact(value)}: this format has no infinity."
        )
    if not math.isfinite(value) or abs(precisely) > Fraction(largest):
        return f"{asked} becomes {exact(value)}: the largest finite number is {plain(largest)}."
    if Fraction(value) == precisely:
        return f"{asked} is stored exactly."
    if value == 0:
        return f"{asked} becomes {exact(value)}: the smallest positive number is 2{_log(smallest)}."
    error = abs(precisely - Fraction(value))
    much, share = plain(float(error)), plain(float(100 * error / abs(precisely)))
    return f"{asked} is rounded: what is stored is {much} {'less' if value < precisely else 'more'}, {share} % of it."


def _log(power_of_two: float) -> str:
    return superscript(int(math.log2(power_of_two)))


class Bits(Group):
    """A format, a number as text, and a toggle button for each bit. Its value is what :func:`draw` takes."""

    def __init__(self, number: str, name: str) -> None:
        self.buttons = [ipywidgets.ToggleButton() for _ in range(32)]
        self.boxes = {field: ipywidgets.HBox() for field in ("sign", "exponent", "mantissa")}
        for field, box in self.boxes.items():
            box.add_class("course-bits")
            box.add_class(f"course-bits-{field}")
        members = {
            "format": ipywidgets.Dropdown(options=list(FORMATS), value=name, description="format"),
            "number": ipywidgets.Text(number, description="number", continuous_update=False),
        }
        rows = [list(members.values()), [ipywidgets.HTML(_LOOK), *self.boxes.values()]]
        buttons = {f"bit {i}": button for i, button in enumerate(self.buttons)}
        super().__init__({**members, **buttons}, rows)

    def settle(self, moved: str) -> tuple[str, int, str]:
        name, text = self.members["format"].value, self.members["number"].value
        if moved.startswith("bit"):
            bits = [button.value for button in self.buttons[: 8 * FORMATS[name].itemsize]]
            code, asked = int("".join(str(int(bit)) for bit in bits), 2), ""
            self.members["number"].value = repr(decoded(name, code))
        else:
            try:
                code, asked = encoded(name, parsed(text)[0]), text
            except Impossible:
                return name, 0, text or " "  # draw says what is wrong
        self._show(name, code)
        return name, code, asked

    def _show(self, name: str, code: int) -> None:
        at = 0
        for field, bits in split(name, code).items():
            buttons = self.buttons[at : at + len(bits)]
            for place, (button, bit) in enumerate(zip(buttons, bits, strict=True)):
                button.value, button.description = bit == "1", bit
                button.tooltip = f"{field} bit {place + 1} of {len(bits)}"
            self.boxes[field].children = buttons
            at += len(bits)


def explore(number: str = "0.1", format: str = "float16") -> Explorer:
    """An explorer of the bits of a number in one of ``FORMATS``."""
    return Explorer(draw, {"number": Bits(number, format)})
