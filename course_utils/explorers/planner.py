"""The planner, `course_utils.napkin`, with controls: a training run or a served model, all lines with their sources."""

from __future__ import annotations

import re

from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, axes, power, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture
from course_utils.napkin.inference import FORMATS, Serving
from course_utils.napkin.lines import Plan
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.planner import plan
from course_utils.napkin.serving import serve
from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import OPTIMIZERS, RECIPES, Step
from course_utils.units import counted, duration, parse, readable

OWN = "one of your own"
_ZERO = {"no": 0, "optimizer state": 1, "and gradients": 2, "and parameters": 3}
# The seconds that are drawn, each in a row of its own, whether a plan has it or not.
_ROWS = {
    "train": (
        "a step's compute time", "a step's minimum compute time", "a step's memory traffic", "a step's gradients",
        "a step's parameters", "a step's tensor", "a step's experts", "a step's pipeline",
    ),
    "serve": ("to the first token", "a token", "a request"),
}  # fmt: skip


def explore() -> Explorer:
    """Controls for a model, cards, and how they train or serve it, above bytes and seconds and the plan's lines."""
    return Explorer("planner", show)


def show(panel: Panel) -> Picture:
    """A plan, drawn and line by line."""
    task = panel.choice("task", ("train", "serve"), "train")
    model, name = _model(panel)
    card = panel.choice("card", tuple(ACCELERATORS), "H100 SXM")
    panel.row()
    make = _train if task == "train" else _serve
    try:
        found = make(panel, model, name, card)
    except Impossible:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise Impossible(f"{error}", _control(f"{error}", panel)) from None
    return Picture(_title(found), _drawn(panel, found, card), _finding(found), tuple(found.lines))


def _model(panel: Panel) -> tuple[Transformer, str]:
    name = panel.choice("model", (*PUBLISHED, OWN), "Llama 3.1 8B")
    if name != OWN:
        return PUBLISHED[name], name
    panel.row()
    layers, width, heads, words = (
        _count(panel, key, text, label)
        for key, text, label in (
            ("layers", "32", "layers"),
            ("width", "4096", "width"),
            ("heads", "32", "heads"),
            ("vocabulary", "128k", "vocabulary"),
        )
    )
    try:
        return Transformer(layers, width, heads, words), "a model of your own"
    except ValueError as error:
        raise Impossible(f"{error}", "width") from None


def _train(panel: Panel, model: Transformer, name: str, card: str) -> Plan:
    cards = _count(panel, "cards", "64", "cards")
    zero = panel.choice("zero", _ZERO, "and parameters", label="sharded across groups")
    tensor = _count(panel, "tensor", "1", "tensor")
    pipeline = _count(panel, "pipeline", "1", "pipeline")
    expert = _count(panel, "expert", "1", "expert") if model.experts else 1
    panel.row()
    batch = _count(panel, "batch", "1", "sequences")
    context = _count(panel, "context", "8192", "tokens in each")
    accumulation = _count(panel, "accumulation", "1", "accumulated")
    recompute = panel.switch("recompute", True, label="recompute each layer")
    panel.row()
    recipe = panel.choice("recipe", tuple(RECIPES), "bfloat16, float32 master copy", label="numbers")
    optimizer = panel.choice("optimizer", tuple(OPTIMIZERS), "AdamW")
    tokens = _amount(panel, "tokens", "15T", "tokens to train on")
    mfu = _amount(panel, "mfu", "0.41", "MFU")
    step = Step(
        batch, context, recipe, optimizer, cards, zero, recompute, tensor=tensor, pipeline=pipeline, expert=expert,
        accumulation=accumulation,
    )  # fmt: skip
    return plan(model.reaching(context), step, card=card, tokens=tokens, mfu=mfu, name=name)


def _serve(panel: Panel, model: Transformer, name: str, card: str) -> Plan:
    cards = _count(panel, "cards", "1", "cards")
    batch = _count(panel, "batch", "8", "sequences")
    prompt = _count(panel, "prompt", "2048", "tokens of prompt")
    output = _count(panel, "output", "256", "tokens of output")
    panel.row()
    weights = panel.choice("weights", tuple(FORMATS), "bfloat16")
    cache = panel.choice("cache", tuple(FORMATS), "bfloat16")
    return serve(model, Serving(batch, prompt, output, weights, cache, cards), card=card, name=name)


def _amount(panel: Panel, name: str, default: str, label: str) -> float:
    text = panel.text(name, default, label=label)
    if panel.moved == "task" and name in ("cards", "batch"):  # both tasks ask for these, and mean something else
        panel.put(name, text := default)
    try:
        return parse(text, "")
    except ValueError as error:
        raise Impossible(f"{error}", name) from None


def _count(panel: Panel, name: str, default: str, label: str) -> int:
    found = _amount(panel, name, default, label)
    if not found.is_integer() or not 1 <= found <= 1e9:
        raise Impossible(f"{label}: expected an integer of at least 1, such as 8 or 4k", name)
    return int(found)


def _control(problem: str, panel: Panel) -> str:
    """The control that a message of the planner is about: the one that it names first, or the first one."""
    places = {name: re.search(rf"\b{name}\b", problem) for name in panel.controls}
    named = [(found.start(), name) for name, found in places.items() if found]
    return min(named)[1] if named else "task"


def _values(found: Plan, group: str, unit: str = "", *, without: str = "") -> dict[str, float]:
    lines = [line for line in found.lines if line.group == group and unit in ("", line.unit) and line.what != without]
    return {line.what: float(line.value) for line in lines}


def _title(found: Plan) -> str:
    times = _values(found, "time")
    fits = "" if found.fits is not False else "Doesn't fit: "
    if "training" in times:
        cost = _values(found, "cost").get("rent")
        rent = f", {counted(cost)} USD" if cost is not None else ""
        return f"{fits}{duration(times['training'])} of training{rent}"
    if "a token" in times:
        rate = _values(found, "throughput")["while generating"]
        return f"{fits}{readable(times['a token'], 's')} for each token, {counted(rate)} tokens/s in all"
    return found.title


def _finding(found: Plan) -> str:
    parts = [f"{found.title}.", found.verdict]
    parts += [f"To make it fit: {found.advice[0]}"] if found.advice else []
    parts += [f"Warning: {warning}" for warning in found.warnings]
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)


def _drawn(panel: Panel, found: Plan, card: str) -> Drawing:
    top, pitch = 124.0, 30.0 if panel.narrow else 21.0
    height = top + pitch * len(_ROWS["train"]) + 40
    drawing = Drawing(panel.width, height)
    memory = ACCELERATORS[card].memory_bytes or 80 * 10**9
    left, right = 12.0, panel.width - 16.0
    drawing.text(left, 16, "bytes on each card", bold=True, behind=True)
    x = Axis(0, 1.5 * memory, left, right)
    kinds = _values(found, "bytes on each card", "B", without="in all")
    at, bar = 0.0, (28.0, 34.0)
    limit = x(memory)
    for number, (what, size) in enumerate(kinds.items()):
        start, end = x(at), x(at + size)
        drawing.rect(
            start, bar[0], end - start, bar[1], "data edged" + (" soft" if number % 2 else " half"), key=what,
            tip=f"{what}: {readable(size, 'B')}",
        )  # fmt: skip
        said = f"{what} {readable(size, 'B')}"
        if end - start > wide(said) + 8:
            drawing.text((start + end) / 2, bar[0] + 22, said, anchor="middle", key=f"{what} text")
        elif end - start > wide(what) + 8:
            drawing.text((start + end) / 2, bar[0] + 22, what, anchor="middle", key=f"{what} text")
        at += size
    drawing.line([(limit, 22), (limit, bar[0] + bar[1] + 8)], "highlight", width=2, key="limit")
    drawing.text(limit, bar[0] + bar[1] + 22, f"{card}: {readable(memory, 'B')}", anchor="middle", key="limit text")
    total = readable(at, "B")
    if at > 1.5 * memory:
        drawing.text(right, 16, f"{total} in all, beyond the edge →", anchor="end", key="total")
    else:
        drawing.text(right, 16, f"{total} in all", anchor="end", key="total")

    times = _values(found, "time", "s")
    rows = _ROWS[str(panel.controls["task"].value)]
    longest = max(rows, key=lambda what: times.get(what, 0.0))
    label = 0.0 if panel.narrow else 190.0
    drawing.text(left, top, "seconds, on a logarithmic axis", bold=True, behind=True)
    t = Axis(1e-6, 1e5, left + label, right, log=True)
    axes(drawing, t, Axis(0, 1, height - 22, top + 14), xlabel="", ylabel="", xwords=power, ywords=str, yticks=[])
    for number, what in enumerate(rows):
        y, seconds = top + 22 + pitch * number, times.get(what, 0.0)
        if panel.narrow:
            drawing.text(left + 5, y - 4, what, size=11, behind=True)
        else:
            drawing.text(left + label - 8, y + 11, what, anchor="end", behind=True)
        if not seconds:
            drawing.text(t.start + 6, y + 11, "none", look="quiet", key=f"s {what}")
            continue
        look = "compute" if "comput" in what or "prompt" in what else "data"
        drawing.rect(
            t.start, y, t(seconds) - t.start, 12, look if what == longest else f"{look} soft edged", key=f"bar {what}"
        )
        words = readable(seconds, "s")
        place = t(seconds) + 6 if t(seconds) + wide(words) + 8 < right else t(seconds) - 6
        drawing.text(
            place, y + 11, words, anchor="start" if place > t(seconds) else "end", key=f"s {what}", bold=what == longest
        )
    return drawing
