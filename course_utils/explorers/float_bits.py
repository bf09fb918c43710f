"""The bits of one number: flip them, or write a number, and see what's stored."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from course_utils.explorers.drawing import Axis, Drawing, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture
from course_utils.units import plain, raised


@dataclass(frozen=True)
class Format:
    """A sign bit, ``exponent`` bits and ``mantissa`` bits; ``family`` is shown beside the name.

    ``special``: how many codes after the largest finite number are infinity or NaN: "all" with the highest exponent,
    the "last" one alone, or "none".
    """

    name: str
    exponent: int
    mantissa: int
    special: str = "all"
    family: str = ""

    @cached_property
    def words(self) -> str:
        return f"{self.name} ({self.family})" if self.family else self.name

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @cached_property
    def bias(self) -> int:
        return int(2 ** (self.exponent - 1)) - 1

    @cached_property
    def top(self) -> int:
        """The code where positive numbers end: that of infinity, or of the largest number if there's none."""
        end = 1 << self.bits - 1
        return {"all": end - (1 << self.mantissa), "last": end - 2, "none": end - 1}[self.special]

    @cached_property
    def largest(self) -> float:
        return decoded(self, self.top - 1 if self.special == "all" else self.top)

    @cached_property
    def normal(self) -> float:
        """The smallest normal number."""
        return decoded(self, 1 << self.mantissa)

    @cached_property
    def smallest(self) -> float:
        """The smallest positive number."""
        return decoded(self, 1)


FORMATS = {
    each.name: each
    for each in (
        Format("float32", 8, 23),
        Format("float16", 5, 10),
        Format("bfloat16", 8, 7),
        Format("E5M2", 5, 2, family="fp8"),
        Format("E4M3", 4, 3, "last", "fp8"),
        Format("E2M1", 2, 1, "none", "FP4"),
    )
}
_NUMBER = re.compile(r"[+-]?([0-9]+/0*[1-9][0-9]*|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?|inf|nan)")


def decoded(form: Format, code: int) -> float:
    """The number that these bits represent, exactly."""
    sign, rest = divmod(code, 1 << form.bits - 1)
    field, mantissa = divmod(rest, 1 << form.mantissa)
    if rest > form.top:
        size = math.nan
    elif form.special == "all" and rest == form.top:
        size = math.inf
    else:  # a mantissa alone, or one in front of it
        size = math.ldexp(mantissa + (field > 0) * 2**form.mantissa, max(field, 1) - form.bias - form.mantissa)
    return -size if sign else size


def encoded(form: Format, value: float) -> int:
    """The bits that PyTorch (from 2.12 on) stores for a number, and those of the nearest one in E2M1."""
    if form.name != "float32":
        value = decoded(FORMATS["float32"], encoded(FORMATS["float32"], value))  # PyTorch rounds twice
    code, size, least = form.top, abs(value), 1 - form.bias
    if math.isnan(value):
        code = (1 << form.bits - 1) - (1 << form.mantissa - 1 if form.bits > 8 else 1)
    elif math.isfinite(value):
        exponent = max(math.frexp(size)[1] - 1, least) if size else least
        # `round` breaks ties to even. A carry moves on to the exponent field.
        steps = round(math.ldexp(size, form.mantissa - exponent))
        code = min(steps + (exponent - least << form.mantissa), form.top)
    return code + (1 << form.bits - 1 if math.copysign(1, value) < 0 else 0)


def split(form: Format, code: int) -> tuple[str, str, str]:
    """The bits of sign, exponent and mantissa, as text."""
    text = f"{code:0{form.bits}b}"
    return text[0], text[1 : -form.mantissa], text[-form.mantissa :]


def around(form: Format, code: int, reach: int) -> dict[int, float]:
    """The numbers up to ``reach`` places below and above, by place; both zeros are one. NaN has none."""
    top = 1 << form.bits - 1
    if math.isnan(decoded(form, code)):
        return {}
    here = code if code < top else top - code
    return {
        step: decoded(form, place if place >= 0 else top - place)
        for step in range(-reach, reach + 1)
        if abs(place := here + step) <= form.top
    }


def neighbors(form: Format, code: int) -> tuple[float | None, float | None]:
    """The next numbers below and above; None if there's none. NaN has neither."""
    found = around(form, code, 1)
    return found.get(-1), found.get(1)


def exact(value: float) -> str:
    """All digits of a number; if there are many, an integer times a power of two."""
    if math.isnan(value):
        return "NaN"
    sign = "−" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}∞"
    top, bottom = abs(value).as_integer_ratio()
    places = bottom.bit_length() - 1  # the bottom is a power of two, and 1/2ᵏ has k digits
    digits = f"{top * 5**places:0{places + 1}}"
    text = sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
    if len(text) <= 18:
        return text
    power = -places
    while top % 2 == 0:
        top, power = top // 2, power + 1
    return f"{sign}{top} · 2{raised(power)} ≈ {_nine(value)}"


def formula(form: Format, code: int) -> str:
    """The lecture's formula with this number's fields, up to the equals sign. Empty for infinity and NaN."""
    sign, exponent, mantissa = (int(bits, 2) for bits in split(form, code))
    if not math.isfinite(decoded(form, code)):
        return ""
    power = raised(f"{max(exponent, 1)}-{form.bias}")
    return f"(−1){raised(sign)} · ({min(exponent, 1)} + {mantissa:,}/2{raised(form.mantissa)}) · 2{power}"


def parsed(text: str) -> tuple[float, Fraction | None]:
    """A number as float64, and exactly (None: infinite or NaN)."""
    text = text.strip().replace("−", "-").lower()
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        how = "write it like 0.1, -3, 1e-5, 1/3 or inf"
        if re.fullmatch("[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+", text):
            how = f"write {text.replace(',', '')}, without commas"
        elif text.count(",") == 1 and _NUMBER.fullmatch(text.replace(",", ".")):
            how = f"write {text.replace(',', '.')}, with a point"
        raise Impossible(f"“{text[:20]}” isn't a number: {how}", "number")
    if text.strip("+-") in ("inf", "nan"):
        return float(text), None
    number = Fraction(text)
    try:
        return (float(number) if "/" in text else float(text)), number
    except OverflowError:  # a fraction that float64 doesn't reach
        return math.copysign(math.inf, number), number


def explore(number: str = "0.1", format: str = "float16") -> Explorer:
    """The bits of a number in one of ``FORMATS``, as buttons, and where it is among the format's numbers."""
    arguments: dict[str, Any] = {"number": number, "format": format}
    return Explorer("float_bits", partial(show, **arguments), arguments)


def show(panel: Panel, *, number: str, format: str) -> Picture:
    """Bits and formula, then three lines: all powers of two, the numbers between two of them, and the neighbors."""
    form: Format = panel.choice("format", {f.words: f for f in FORMATS.values()}, FORMATS[format].words)
    asked = panel.text("number", number)
    # The format, the bits, and, if they were set by hand, the number that they were: NaN has many patterns, and all of
    # them are written "nan".
    kept = [*panel.memory("bits", "").split(), "", "", ""]
    known = kept[0] == form.name and re.fullmatch(f"[01]{{{form.bits}}}", kept[1]) is not None
    flip = panel.pressed("flip")
    flipped = flip in [f"{bit}" for bit in range(form.bits)]
    by_hand = known and (flipped or kept[2] == asked != "")
    code = int(kept[1], 2) if by_hand else _asked(form, asked)
    if flipped:
        code, by_hand = code ^ 1 << int(flip), True
        asked = f"{decoded(form, code)!r}"
        panel.put("number", asked)
    panel.put("bits", f"{form.name} {code:0{form.bits}b} {asked if by_hand else ''}")

    value = decoded(form, code)
    finding, title, asked_for = meaning(form, code), f"In {form.name} these bits are {exact(value)}", None
    if not by_hand:
        short = asked.strip() if len(asked.strip()) <= 20 else f"{asked.strip()[:19]}…"
        title = f"{short} in {form.name} is {exact(value)}"
        finding += f" {_stored(form, code, short, *parsed(asked))}"
        precisely = parsed(asked)[1]
        if precisely is not None and (math.isinf(value) or Fraction(value) != precisely):
            asked_for = short, precisely
    return Picture(title, _draw(panel, form, code, asked_for), finding)


def _asked(form: Format, text: str) -> int:
    wanted, _ = parsed(text)
    if math.isnan(wanted) and form.special == "none":
        raise Impossible(f"{form.name} has no NaN: write a number, or choose another format", "number")
    return encoded(form, wanted)


def meaning(form: Format, code: int) -> str:
    """A sentence that says what a bit pattern means and how far away its neighbors are."""
    value, (below, above) = decoded(form, code), neighbors(form, code)
    begin = f"In {form.name}, {' '.join(split(form, code))} is {exact(value)}"
    if math.isnan(value):
        why = "all exponent bits are 1, and the mantissa isn't 0"
        return f"{begin}, not a number: {'all bits below the sign are 1' if form.special == 'last' else why}."
    if math.isinf(value):
        return f"{begin}: all exponent bits are 1, and the mantissa is 0."
    if value == 0:
        return f"{begin}: there are two zeros, and the next number on either side is {_power(form.smallest)} away."
    kind = "normal" if abs(value) >= form.normal else "subnormal"
    if below is not None and above is not None and value - below == above - value:
        return f"{begin}, a {kind} number: its neighbors are {_power(above - value)} away."
    said = []
    for other, where in ((below, "below"), (above, "above")):
        if other is None:
            said.append(f"no number lies {where}")
        else:
            away = exact(other) if math.isinf(other) else f"{_power(abs(other - value))} away"
            said.append(f"the next one {where} is {away}")
    return f"{begin}, a {kind} number: {' and '.join(said)}."


def _stored(form: Format, code: int, asked: str, wanted: float, precisely: Fraction | None) -> str:
    """What happened to the requested number."""
    value = decoded(form, code)
    if precisely is None:
        if math.isnan(value):
            return f"{asked} is stored as one of {form.name}'s codes for NaN."
        if wanted == value:
            return f"{asked} is stored exactly."
        return f"{asked} becomes {exact(value)}, the largest number: {form.name} has no infinity."
    if math.isinf(value):
        return f"{asked} becomes {exact(value)}: the largest finite number is {plain(form.largest)}."
    if Fraction(value) == precisely:
        return f"{asked} is stored exactly."
    if abs(precisely) > Fraction(form.largest):
        if form.special == "all":
            return f"{asked} becomes {exact(value)}, the largest finite number."
        return f"{asked} becomes {exact(value)}, the largest number: {form.name} has no infinity."
    if value == 0:
        return f"{asked} becomes {exact(value)}: the smallest positive number is {_power(form.smallest)}."
    error = abs(precisely - Fraction(value))
    much, share = plain(float(error)), plain(float(100 * error / abs(precisely)))
    return f"{asked} is rounded: the stored number is {much} {'less' if value < precisely else 'more'}, or {share}%."


def _power(value: float) -> str:
    return f"2{raised(math.frexp(value)[1] - 1)}"


def _nine(value: float) -> str:
    """Nine digits: enough to tell the neighbors of a float32 apart."""
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.9g}").replace("+", "").replace("inf", "∞").replace("-", "−")


LEFT = 10.0  # where bits, words and lines begin
_LINES = 14, 80, 162  # from the first line's words to the three lines


def _draw(panel: Panel, form: Format, code: int, asked: tuple[str, Fraction] | None) -> Drawing:
    narrow, value = panel.narrow, decoded(form, code)
    drawing = Drawing(panel.width, 424 if narrow else 328)
    top = _bits(drawing, form, code, narrow)
    said, result = formula(form, code), f"= {exact(value)}"
    if not said:
        said, result = f"This pattern is reserved for {exact(value)}.", ""
    drawing.text(LEFT, top, said if narrow else f"{said} {result}", size=12 if narrow else 14, key="formula")
    if narrow:
        drawing.text(LEFT, top + 18, result, key="result")
        top += 14
    ends = LEFT, panel.width - LEFT
    lines = [top + 28 + below for below in _LINES]
    places = (
        _range(drawing, form, value, Axis(-155, 142, *ends), lines[0]),
        _mantissa(drawing, form, code, ends, lines[1]),
    )
    _neighborhood(drawing, form, code, asked, ends, lines[2])
    for place, line, below in zip(places, lines[:-1], lines[1:], strict=True):
        if place is not None:  # each line is a part of the one above it
            for end in ends:
                drawing.line([(place, line), (end, below)], "grid", width=1, behind=True)
    return drawing


def _bits(drawing: Drawing, form: Format, code: int, narrow: bool) -> float:
    """The bits, so that exponent and mantissa of all formats meet at the same place. Returns where the next line is."""
    side, gap, height, top = (28, 6, 28, 18) if narrow else (22, 8, 28, 18)
    edge = LEFT + side + gap + 8 * side
    fields = split(form, code)
    places = [(edge - form.exponent * side - gap - side, top)]
    places += [(edge - (form.exponent - i) * side, top) for i in range(form.exponent)]
    for i in range(form.mantissa):
        row, column = divmod(i, 12)
        places.append(
            (LEFT + column * side, top + 62 + row * height) if narrow else (edge + gap + i * side, top)
        )  # fmt: skip
    drawing.text(places[0][0] + side / 2, top + height + 13, "sign", anchor="middle", size=11, key="sign")
    drawing.text(edge, top - 6, f"exponent {int(fields[1], 2)}", anchor="end", size=11, key="exponent")
    at = places[form.exponent + 1]
    drawing.text(at[0], at[1] - 6, f"mantissa {int(fields[2], 2):,}", size=11, key="mantissa")
    names = ("sign", "context half edged"), ("exponent", "data half edged"), ("mantissa", "data soft edged")
    place = 0
    for (name, look), bits in zip(names, fields, strict=True):
        for i, bit in enumerate(bits):
            drawing.button(
                *places[place], side, height, bit, sets=("flip", f"{form.bits - 1 - place}"), look=look, size=14,
                label=f"{name} bit {i + 1} of {len(bits)}", pressed=bit == "1",
                key=f"{name} {i - len(bits) * (name == 'exponent')}",
            )  # fmt: skip
            place += 1
    return top + 62 + 2 * height + 20 if narrow else top + height + 38


def _range(drawing: Drawing, form: Format, value: float, x: Axis, line: float) -> float | None:
    """The number's magnitude among the powers of two. Returns its place, if it is between two of them."""
    narrow = drawing.width < 500
    words = f"{form.name}: {'' if narrow else 'magnitudes from '}{_power(form.smallest)} to {plain(form.largest)}, "
    words += "subnormal left of the line" if narrow else "subnormal left of the line in the bar"
    drawing.text(x.start, line - 12, words, key="range")
    drawing.line([(x.start, line), (x.end, line)], "context", behind=True)
    for power in range(-128, 129, 64 if narrow else 32):
        drawing.line([(x(power), line - 6), (x(power), line + 6)], "context", width=1, behind=True)
        drawing.text(x(power), line + 19, f"2{raised(power)}" if power else "1", anchor="middle", size=11, behind=True)
    for end, name in ((x.start, "0"), (x.end, "∞")):
        drawing.text(end, line + 19, name, anchor="middle", size=11, behind=True)
    ends = [x(math.log2(size)) for size in (form.smallest, form.normal, form.largest)]
    drawing.rect(ends[0], line - 5, ends[1] - ends[0], 10, "data soft edged", key="subnormal")
    drawing.rect(ends[1], line - 5, ends[2] - ends[1], 10, "data half edged", key="normal")
    if math.isnan(value):
        return None
    inside = 0 < abs(value) < math.inf
    place = x(math.log2(abs(value))) if inside else x.start if value == 0 else x.end
    drawing.circle(place, line, 6, "highlight edged", key="size")
    return place if math.isfinite(value) else None


def _mantissa(drawing: Drawing, form: Format, code: int, ends: tuple[float, float], line: float) -> float | None:
    """Where the number is between two powers of two, which its mantissa says. Returns its place."""
    value, (left, right), count = decoded(form, code), ends, 1 << form.mantissa
    drawing.line([(left, line), (right, line)], "context", behind=True)
    marks = min(count, 16)
    for i in range(marks + 1):
        at = left + (right - left) * i / marks
        drawing.line([(at, line - 5), (at, line + 5)], "ink", width=1, key=f"mark {i}")
    if not math.isfinite(value):
        drawing.text(left, line - 12, f"{exact(value)} isn't between two powers of two", key="between")
        return None
    step, sign = int(split(form, code)[2], 2), "−" if math.copysign(1, value) < 0 else ""
    low, high = "0", form.normal
    if abs(value) >= form.normal:
        power = math.ldexp(0.5, math.frexp(value)[1])
        low, high = f"{sign}{_power(power)}", 2 * power
    names, share = [low, f"{sign}{_power(high)}"], step / count
    words = f"from {names[0]} to {names[1]}: step {step:,} of {count:,}"
    drawing.text(left, line - 12, words, key="between")
    if sign:  # more lies to the left
        names, share = names[::-1], 1 - share
    for end, name, anchor in ((left, names[0], "start"), (right, names[1], "end")):
        drawing.text(end, line + 19, name, anchor=anchor, size=11, key=f"power {anchor}")
    place = left + share * (right - left)
    drawing.circle(place, line, 6, "highlight edged", key="step")
    return place


def _neighborhood(
    drawing: Drawing,
    form: Format,
    code: int,
    asked: tuple[str, Fraction] | None,
    ends: tuple[float, float],
    line: float,
) -> None:
    """The number between its neighbors, true to scale, and the number that was asked for."""
    value, (left, right) = decoded(form, code), ends
    center, unit = (left + right) / 2, (right - left) / 5
    drawing.line([(left, line), (right, line)], "context", behind=True)
    near = around(form, code, 3)
    if not near:
        drawing.text(left, line - 28, "NaN has no neighbors: numbers can't be compared with it", key="neighbors")
        return
    away = {step: abs(near[step] - value) for step in (-1, 1) if step in near and math.isfinite(near[step] - value)}
    words = " and ".join(f"{_power(gap)} {'below' if step < 0 else 'above'}" for step, gap in away.items())
    drawing.text(left, line - 28, f"distance to the next numbers: {words or 'infinite'}", key="neighbors")
    gap = max(away.values(), default=0.0)
    for step, other in near.items():
        # Infinity is drawn one step away.
        share = (other - value) / gap if gap and math.isfinite(other) else float(step)
        if abs(share) > 2.45 or (gap and math.isinf(other) and abs(step) > 1):
            continue
        at = center + share * unit
        if step:
            drawing.line([(at, line - 8), (at, line + 8)], "ink", key=f"near {step}")
        if abs(step) <= 1:
            below = 35 if step else 21
            drawing.text(
                at, line + below, _nine(other), anchor="middle", bold=step == 0, size=11, key=f"name {step}"
            )  # fmt: skip
    if asked is not None:
        exactly = (asked[1] - Fraction(value)) / Fraction(gap) if gap else 3 * (1 if asked[1] > 0 else -1)
        share = float(max(min(exactly, 3), -3))
        beyond = abs(share) > 2.45
        at, half = center + max(min(share, 2.35), -2.35) * unit, wide(f"asked for {asked[0]}", 11) / 2
        words_at = min(max(at, left + half), right - half)
        drawing.text(words_at, line - 14, f"asked for {asked[0]}", anchor="middle", size=11, key="asked")
        if beyond:
            drawing.line([(at, line), (at + math.copysign(0.15, share) * unit, line)], "predicted", width=2, arrow=True)
        else:
            drawing.rect(at - 4, line - 4, 8, 8, "predicted", key="asked place", tip=f"asked for {asked[0]}")
    drawing.circle(center, line, 6, "highlight edged", key="here")
