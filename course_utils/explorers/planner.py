"""The planner, `course_utils.napkin`, with controls: a training run or a served model, all lines with their sources."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Axis, Drawing, axes, power, wide
from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture
from course_utils.napkin import arguments
from course_utils.napkin.inference import FORMATS
from course_utils.napkin.lines import Plan
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.planner import SENDING
from course_utils.napkin.step import OPTIMIZERS, RECIPES
from course_utils.units import counted, duration, readable

OWN = "one of your own"
_ZERO = {"nothing": 0, "optimizer state": 1, "all but parameters": 2, "everything": 3}
# Controls that both tasks have, each with a value of its own.
_EACH = ("cards", "batch", "mfu")
# Controls that mean something else once the card is another: they begin anew then.
_ANEW = ("peak", "memory", "bandwidth", "price")
_LISTED = "from the table"
# What a card holds, with its look in the bar and the legend.
_KINDS = {
    "parameters": "data", "weights": "data", "frozen parameters": "data soft", "gradients": "compute",
    "optimizer state": "measured", "master copy": "measured soft", "KV cache": "measured", "activations": "context",
}  # fmt: skip
# What a row is called where its line's name would mislead.
_LABELS = {
    "a step's compute at the MFU": "the model's FLOPs at the MFU",
    "a step's compute at the peak": "all FLOPs and idle time, at peak",
}
# The seconds that are drawn, each in a row of its own, whether a plan has it or not.
_ROWS = {
    "train": (
        "a step's compute at the MFU", "a step's compute at the peak", "a step's memory traffic", *SENDING.values(),
    ),
    "serve": ("to the first token", "a token", "a request"),
}  # fmt: skip


def explore() -> Explorer:
    """Controls for a model, cards, and how they train or serve it, above bytes and seconds and the plan's lines."""
    return Explorer("planner", show)


def show(panel: Panel) -> Picture:
    """A plan, drawn and line by line: the one that the command makes from the same settings."""
    task = panel.choice("task", ("train", "serve"), "train")
    trains = task == "train"
    panel.keep(besides=_ANEW)  # whoever turns to the other task and back finds their plan again
    form = _Form(panel, arguments.add_training if trains else arguments.add_serving)
    form.known("model", PUBLISHED, "Llama 3.1 8B")
    form.known("card", ACCELERATORS, "H100 SXM")
    more = panel.switch("more", label="more settings")
    panel.row()
    if form.given.model is None:
        _shape(form)
    if more or form.given.card is None:
        _card(form)
    (_train if trains else _serve)(form, more)
    try:
        found = (arguments.training if trains else arguments.serving)(form.given)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Impossible(f"{error}", _control(f"{error}", panel)) from None
    return Picture(_title(found), _drawn(panel, found, form.given.card or "your card"), _finding(found), found.lines)


class _Form:
    """Asks a panel for the command's options. ``given`` has their values, as the command would have them."""

    def __init__(self, panel: Panel, add: Callable[[argparse.ArgumentParser], None]) -> None:
        self.panel, self.given = panel, argparse.Namespace(**arguments.left_out(add))

    def known(self, name: str, names: Mapping[str, Any], default: str) -> None:
        """One of ``names``, or `OWN`, which leaves the option out."""
        chosen = self.panel.choice(name, (*names, OWN), default)
        setattr(self.given, name, None if chosen == OWN else chosen)

    def choice(self, name: str, options: Mapping[str, Any] | Sequence[str], default: str, label: str = "") -> None:
        setattr(self.given, name, self.panel.choice(name, options, default, label=label))

    def switch(self, name: str, label: str = "") -> None:
        setattr(self.given, name, self.panel.switch(name, label=label))

    def text(
        self,
        name: str,
        default: str,
        label: str = "",
        *,
        read: Callable[[str], Any] = arguments.count,
        without: str | None = None,
        hint: str = "",
    ) -> None:
        """What ``read`` makes of a text. Nothing, or the word ``without``, leaves the option out."""
        panel = self.panel
        text = panel.text(name, default, label=label, hint=hint)
        if name in _ANEW and panel.moved == "card":
            panel.put(name, text := default)
        if name in _EACH:
            mine = f"{name} to {panel.controls['task'].value}"
            before = panel.memory(mine, default)
            if panel.moved == "task":
                panel.put(name, text := before)
            panel.put(mine, text)
        try:
            left_out = without is not None and text.strip() in ("", without)
            setattr(self.given, name, None if left_out else read(text))
        except argparse.ArgumentTypeError as error:
            raise Impossible(f"{error}", name) from None

    def optional(self, name: str, default: str, label: str = "", **how: Any) -> None:
        """A text that begins with the words for leaving the option out."""
        self.text(name, default, label, without=default, **how)


def _shape(form: _Form) -> None:
    panel = form.panel
    form.text("layers", "32")
    form.text("width", "4096")
    form.text("heads", "32")
    form.text("vocabulary", "128k")
    more = panel.switch("shape", label="more of its shape")
    panel.row()
    if not more:
        return
    form.optional("kv_heads", "heads", "key-value heads")
    form.optional("head_width", "width / heads", "head width")
    form.optional("feed_forward", "4 · width", "feed-forward width")
    panel.row()
    form.optional("window", "all tokens", "attention window")
    form.optional("positions", "none", "learned positions")
    form.switch("rms_norm", "RMSNorm")
    form.switch("gated")
    form.switch("biases")
    panel.row()
    form.switch("tied", "tied embedding")
    if panel.switch("mixture", label="mixture of experts"):
        form.text("experts", "8")
        form.text("active_experts", "2", "active")
        form.text("expert_width", "14336", "width of each")
        form.optional("shared_experts", "none", "shared")
        form.optional("dense_layers", "none", "dense layers")
    panel.row()


def _card(form: _Form) -> None:
    own = form.given.card is None
    if own:
        form.text("peak", "1000 TFLOP/s", read=arguments.peak)
        form.text("memory", "80 GB", read=arguments.memory, without="unknown")
        form.text("bandwidth", "3 TB/s", read=arguments.bandwidth)
    else:
        form.optional("peak", _LISTED, read=arguments.peak)
        form.optional("memory", _LISTED, read=arguments.memory)
        form.optional("bandwidth", _LISTED, read=arguments.bandwidth)
    form.optional("price", "unknown" if own else _LISTED, "USD per GPU-hour", read=arguments.number)
    form.panel.row()


def _train(form: _Form, more: bool) -> None:
    panel, given = form.panel, form.given
    form.text("cards", "64", read=arguments.cards)
    form.choice("zero", _ZERO, "everything", "sharded across groups")
    form.text("tensor", "1")
    form.text("pipeline", "1")
    if PUBLISHED[given.model].experts if given.model else given.experts:
        form.text("expert", "1")
    panel.row()
    form.text("batch", "1", "sequences")
    form.text("context", "8192", "tokens in each")
    if more:
        form.optional("global_batch", "as accumulated", "tokens in a step")
    if given.global_batch is None:
        form.text("accumulation", "1", "accumulated")
    given.checkpointing = panel.switch("recompute", True, label="recompute each layer")
    panel.row()
    form.choice("recipe", tuple(RECIPES), "bfloat16, float32 master copy")
    form.choice("optimizer", tuple(OPTIMIZERS), "AdamW")
    form.text("tokens", "15T", "tokens to train on", read=arguments.number)
    form.text("mfu", "0.41", "MFU", read=arguments.share)
    panel.row()
    if more:
        form.switch("unfused_attention", "unfused attention")
        if panel.switch("adapters", label="adapters (LoRA)"):
            form.text("lora", "16", "rank")
            form.optional("adapted", "all", read=str, hint="or queries, values, …")


def _serve(form: _Form, more: bool) -> None:
    form.text("cards", "1", read=arguments.cards)
    form.text("batch", "8", "sequences")
    form.text("prompt", "2048", "tokens of prompt")
    form.text("output", "256", "tokens of output")
    form.panel.row()
    for name in ("weights", "cache"):
        form.choice(name, tuple(FORMATS), "bfloat16")
    if more:
        form.optional("mfu", "0.5", "MFU of prefill", read=arguments.share)


def _control(problem: str, panel: Panel) -> str:
    """The control that a message of the planner is about: the one just moved, or the first that the message names."""
    named: dict[str, int] = {}
    for name, control in panel.controls.items():
        words = "|".join(map(re.escape, (name, name.replace("_", " "), control.label)))
        if found := re.search(rf"\b({words})\b", problem, re.IGNORECASE):
            named[name] = found.start()
    if panel.moved in named or (panel.moved in panel.controls and not named):
        return panel.moved
    return min(named, key=lambda name: named[name], default="task")


def _values(found: Plan, group: str, unit: str = "", *, without: str = "") -> dict[str, float]:
    lines = [line for line in found.lines if line.group == group and unit in ("", line.unit) and line.what != without]
    return {line.what: float(line.value) for line in lines}


def _title(found: Plan) -> str:
    if found.fits is False and found.held is not None and found.limit is not None:
        more = readable(found.held - found.limit, "B")
        return f"Doesn't fit: {more} too much on each card, which has {readable(found.limit, 'B')}"
    times = _values(found, "time")
    if "training" in times:
        cost = _values(found, "cost").get("rent")
        rent = f", {counted(cost)} USD" if cost is not None else ""
        return f"{duration(times['training'])} of training{rent}"
    if "a token" in times:
        rate = _values(found, "throughput")["while generating"]
        return f"{readable(times['a token'], 's')} for each token, {counted(rate)} tokens/s in all"
    return found.title


def _finding(found: Plan) -> str:
    parts = [f"{found.title}.", found.verdict]
    parts += [f"To make it fit: {found.advice[0]}"] if found.advice else []
    said = " ".join(_ended(part) for part in parts if part)
    return "\n".join([said, *(f"⚠ {_ended(warning)}" for warning in found.warnings)])


def _ended(part: str) -> str:
    return part if part.endswith((".", "!", "?")) else f"{part}."


def _drawn(panel: Panel, found: Plan, card: str) -> Drawing:
    columns = 2 if panel.narrow else 3  # of the legend; there are at most six kinds
    top, pitch = 114.0 + 18 * 6 / columns, 30.0 if panel.narrow else 21.0
    height = top + pitch * len(_ROWS["train"]) + 40
    drawing = Drawing(panel.width, height)
    memory = found.limit or max(80 * 10**9, found.held or 0)
    left, right = 12.0, panel.width - 16.0
    drawing.text(left, 16, "bytes on each card", bold=True, behind=True)
    x = Axis(0, 1.5 * memory, left, right)
    kinds = {what: size for what, size in _values(found, "bytes on each card", "B", without="in all").items() if size}
    at, bar = 0.0, (28.0, 34.0)
    limit = x(memory)
    for number, (what, size) in enumerate(kinds.items()):
        start, end, said = x(at), x(at + size), f"{what}: {readable(size, 'B')}"
        drawing.rect(start, bar[0], end - start, bar[1], f"{_KINDS[what]} edged", key=what, tip=said)
        row, column = divmod(number, columns)
        place, line = left + column * (right - left) / columns, 106 + 18.0 * row
        drawing.rect(place, line - 10, 11, 11, f"{_KINDS[what]} edged now", key=f"{what} sign")
        drawing.text(place + 17, line, said, size=11 if panel.narrow else 12, key=f"{what} text")
        at += size
    if found.limit:
        drawing.line([(limit, 22), (limit, bar[0] + bar[1] + 8)], "highlight", width=2, key="limit")
        drawing.text(limit, bar[0] + bar[1] + 22, f"{card}: {readable(memory, 'B')}", anchor="middle", key="limit text")
    where = (230, 16) if panel.narrow else (right, bar[0] + bar[1] + 22)
    drawing.before(*where, words="faint: before")
    total = readable(at, "B")
    if at > 1.5 * memory:
        beyond = f"{total} in all →" if panel.narrow else f"{total} in all, beyond the edge →"
        drawing.text(right, 16, beyond, anchor="end", key="total")
    else:
        drawing.text(right, 16, f"{total} in all", anchor="end", key="total")

    times = _values(found, "time", "s")
    rows = _ROWS[str(panel.controls["task"].value)]
    longest = max(rows, key=lambda what: times.get(what, 0.0))
    label = 0.0 if panel.narrow else 214.0
    drawing.text(left, top, "seconds, on a logarithmic axis", bold=True, behind=True)
    t = Axis(1e-6, 1e5, left + label, right, log=True)
    axes(drawing, t, Axis(0, 1, height - 22, top + 14), xlabel="", ylabel="", xwords=power, ywords=str, yticks=[])
    for number, what in enumerate(rows):
        y, seconds = top + 22 + pitch * number, times.get(what, 0.0)
        if panel.narrow:
            drawing.text(left + 5, y - 4, _LABELS.get(what, what), size=11, behind=True)
        else:
            drawing.text(left + label - 8, y + 11, _LABELS.get(what, what), anchor="end", behind=True)
        if not seconds:
            unknown = what in SENDING.values() and any("communication isn't counted" in each for each in found.warnings)
            drawing.text(t.start + 6, y + 11, "unknown" if unknown else "none", look="quiet", key=f"s {what}")
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
