"""Days and the bill of a training run: the days by number of cards, the GPU-hours beside those of published runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, power, wide
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.facts import FACTS
from course_utils.units import counted, duration, plain, readable

OWN = "one of your own"
# Runs with published GPU-hours, and whose parameters and tokens go with them in the table of facts.
RUNS = {
    "Llama 2 7B": ("Llama 2 7B parameters", "Llama 2 tokens"),
    "Llama 2 13B": ("Llama 2 13B parameters", "Llama 2 tokens"),
    "Llama 2 70B": ("Llama 2 70B parameters", "Llama 2 tokens"),
    "Llama 3.1 8B": ("Llama 3.1 8B parameters", "Llama 3.1 tokens"),
    "Llama 3.1 70B": ("Llama 3.1 70B parameters", "Llama 3.1 tokens"),
    "Llama 3.1 405B": ("Llama 3.1 405B parameters", "Llama 3.1 405B tokens"),
    "DeepSeek-V3 pre-training": ("DeepSeek-V3 active parameters", "DeepSeek-V3 tokens"),
}
PARAMETERS = [float(f"{digit}e{power}") for power in range(6, 13) for digit in (1, 1.5, 2, 3, 5, 7)]
TOKENS = [float(f"{digit}e{power}") for power in range(8, 14) for digit in (1, 1.5, 2, 3, 5, 7)]
CARDS = [name for name, card in ACCELERATORS.items() if "bfloat16" in card.peak]
COUNTS = [2**k for k in range(17)]
MFUS = [k / 100 for k in range(1, 101)]
_TIMES = {"1 hour": 1 / 24, "1 day": 1.0, "30 days": 30.0, "1 year": 365.25, "10 years": 3652.5, "100 years": 36_525.0}


def explore(
    parameters: float = 70e9,
    tokens: float = 15e12,
    *,
    cards: int = 1_024,
    card: str = "H100 SXM",
    mfu: float = 0.4,
) -> Explorer:
    """Controls for model, data, cards and MFU, above the days that it takes and the GPU-hours that it costs.

    Args:
        parameters: the initial model's, one of `PARAMETERS`.
        tokens: one of `TOKENS`.
        cards: the number of cards, one of `COUNTS`.
        card: one of `CARDS`, those with a promised rate in bfloat16.
        mfu: one of `MFUS`.
    """
    arguments: dict[str, Any] = {"parameters": parameters, "tokens": tokens, "cards": cards, "card": card, "mfu": mfu}
    return Explorer("training_time", partial(show, **arguments), arguments)


def show(panel: Panel, *, parameters: float, tokens: float, cards: int, card: str, mfu: float) -> Picture:
    """Left, days against cards; right, GPU-hours, which don't depend on the number of cards."""
    run = panel.choice("run", [OWN, *RUNS], OWN, label="model")
    chosen = panel.choice("card", CARDS, card)
    panel.row()
    if run == OWN:
        n = panel.slider("parameters", PARAMETERS, parameters, counted)
        d = panel.slider("tokens", TOKENS, tokens, counted)
        panel.row()
    else:
        n, d = (FACTS[name].value for name in RUNS[run])
    count = panel.slider("cards", COUNTS, cards, "{:,}".format)
    used = panel.slider("mfu", MFUS, mfu, "{:.2f}".format, label="MFU")
    place = panel.dragged("point")

    left = Axis(1, COUNTS[-1], 62, 280 if not panel.narrow else panel.width - 22, log=True)
    y = Axis(1 / 24, 36_525, 264 if not panel.narrow else 168, 34, log=True)
    if place:
        count = left.nearest(COUNTS, place[0])
        panel.put("cards", f"{count:,}")

    training = napkin.training(n, d, peak=ACCELERATORS[chosen].peak["bfloat16"], mfu=used)
    hours, days = training.gpu_hours, training.days(count)
    taken = None if run == OWN else FACTS[f"{run} GPU-hours"]
    rent = FACTS.get(f"{chosen} rent")

    drawing = Drawing(panel.width, 304 if not panel.narrow else 424)
    _days(drawing, left, y, hours, count, taken.value if taken else 0.0)
    top = 34.0 if not panel.narrow else 240.0
    right = Axis(1e3, 1e9, *((432, 690) if not panel.narrow else (132, 310)), log=True)
    _bill(drawing, right, top, 28.75 if not panel.narrow else 18.0, hours, run, rent.value if rent else 0.0)

    unit = "TPU-hours" if chosen.startswith("TPU") else "GPU-hours"
    bill = f"{counted(hours * rent.value)} USD" if rent else f"{counted(hours)} {unit}"
    title = f"{duration(days).capitalize()} and {bill} on {count:,} × {chosen}"
    finding = (
        f"6 · {counted(n)} parameters · {counted(d)} tokens = {readable(training.flops, 'FLOPs')}: at an MFU of "
        f"{used:.2f} that's {counted(hours)} {unit}"
    )
    finding += f", {counted(hours * rent.value)} USD at {rent.value:.2f} an hour" if rent else ""
    finding += f", and {duration(days)} if {count:,} share them." if count > 1 else f", and {duration(days)} on one."
    if not rent:
        finding += f" The facts have no price of a {chosen}."
    if taken and taken.note.split()[0] == chosen.split()[0]:
        times = f"{plain(taken.value / hours)} times that"
        finding += f" The published figure is {counted(taken.value)} ({taken.note}): {times}."
    elif taken:
        finding += f" The published figure is {counted(taken.value)}, on another card ({taken.note})."
    return Picture(title, drawing, finding)


def _days(drawing: Drawing, x: Axis, y: Axis, hours: float, cards: int, published: float) -> None:
    """Days by number of cards: a straight line down, along which the number of cards moves the point."""
    for count in COUNTS[::4]:
        drawing.line([(x(count), y.start), (x(count), y.end)], "grid", width=1, behind=True)
        drawing.text(x(count), y.start + 16, f"{count:,}", anchor="middle", size=11, behind=True)
    for words, value in _TIMES.items():
        drawing.line([(x.start, y(value)), (x.end, y(value))], "grid", width=1, behind=True)
        drawing.text(x.start - 6, y(value) + 4, words, anchor="end", size=11, behind=True)
    drawing.line([(x.start, y.end), (x.start, y.start), (x.end, y.start)], "ink", width=1, behind=True)
    drawing.text((x.start + x.end) / 2, y.start + 33, "number of cards", anchor="middle", behind=True)
    drawing.text(4, 14, "Time, by number of cards", bold=True, behind=True)

    for total, look, dashes, key in ((published, "context", "5 4", "published"), (hours, "compute", "", "yours")):
        first, last = max(x.low, total / 24 / y.high), min(x.high, total / 24 / y.low)
        if total and first < last:
            line = [(x(count), y(total / 24 / count)) for count in (first, last)]
            drawing.line(line, look, width=2.5 if key == "yours" else 2, dashes=dashes, key=f"line {key}")
    if published:
        drawing.text(x.end - 4, y.end + 14, "dashed: published", anchor="end", size=11, key="dashed")
    drawing.before(x.end - 4, y.end + 28, words="faint: before")
    days = hours / 24 / cards
    said = duration(days)
    if y.low <= days <= y.high:
        ways = [(x(cards), y.start), (x(cards), y(days)), (x.start, y(days))]
        drawing.line(ways, "highlight", width=1, key="to axes")
        if x(cards) - x.start > wide(said) + 24:
            drawing.text(x.start + 6, max(y(days) - 5, y.end + 12), said, key="days", bold=True)
    drawing.point(
        x(cards), y, days, said, sets="point", within=(x.start, y.end, x.end, y.start),
        label="drag: the number of cards",
    )  # fmt: skip


def _bill(drawing: Drawing, x: Axis, top: float, pitch: float, hours: float, run: str, rent: float) -> None:
    """GPU-hours of this run, and below those of published ones, on one axis."""
    bottom = top + pitch * (len(RUNS) + 1)
    for place, value in enumerate(x.ticks()):
        drawing.line([(x(value), top), (x(value), bottom)], "grid", width=1, behind=True)
        if place % 2:
            drawing.text(x(value), bottom + 16, power(value), anchor="middle", size=11, behind=True)
            if rent:
                drawing.text(x(value), bottom + 30, _money(rent * value), anchor="middle", size=11, behind=True)
    drawing.line([(x.start, bottom), (x.end, bottom)], "ink", width=1, behind=True)
    drawing.text(x.start - 8, bottom + 16, "GPU-hours", anchor="end", size=11, behind=True)
    if rent:
        drawing.text(x.start - 8, bottom + 30, f"USD at {rent:.2f}/h", anchor="end", size=11, behind=True)
    head = "The bill, beside published runs"
    drawing.text(x.start - 134 if x.start > 300 else 4, top - 20, head, bold=True, behind=True)

    size = 12.0 if x.start > 300 else 11.0
    shown = x.low <= hours <= x.high
    if shown:
        drawing.line([(x(hours), top), (x(hours), bottom)], "highlight", width=1, key="hours")
    for place, name in enumerate(["this run", *RUNS]):
        middle, fact = top + pitch * (place + 0.5), FACTS.get(f"{name} GPU-hours")
        value, label = hours, name.removesuffix(" pre-training")
        if fact:
            value, label = fact.value, f"{label}, {fact.note.split()[0]}"
        bold = fact is None or name == run
        small = min(1.0, (x.start - 12) / (1.08 * wide(label, size)))  # bold letters are wider
        drawing.text(x.start - 8, middle + 4, label, anchor="end", size=size * small, bold=bold, key=f"name {name}")
        drawing.text(
            drawing.width - 2, middle + 4, _short(value), anchor="end", size=11, bold=fact is None, key=f"number {name}"
        )
        if fact:
            tip = f"{name}: {counted(value)} GPU-hours on {fact.note}"
            drawing.rect(x(value) - 4, middle - 4, 8, 8, "paper edged", key=f"bill {name}", tip=tip)
            continue
        if shown:
            drawing.circle(x(value), middle, 6, "highlight edged", key="bill", tip=f"{counted(value)} GPU-hours")
            continue
        tail = x(value) + (-24 if value > x.high else 24)  # an arrow to the end of the axis, and the value beside it
        drawing.line([(tail, middle), (x(value), middle)], "highlight", width=2, arrow=True, key="bill off")
        said = f"{counted(value)} GPU-hours"
        drawing.beside(tail, middle + 4, said, within=(x.start, x.end), before=value > x.high, key="bill off text")


def _short(value: float) -> str:
    """A count in few letters: ``"3.53 M"``."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{plain(value / size)} {letter}"
    return plain(value)


def _money(value: float) -> str:
    return _short(value).replace("G", "B")
