"""Model or data: what a budget of FLOPs buys at each ratio of tokens to parameters, by a published fit of the loss."""

from __future__ import annotations

import math
from functools import partial

from course_utils.explorers.drawing import Axis, Drawing, axes, power
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.sources import arxiv
from course_utils.units import counted, readable

BUDGETS = [float(f"{digit}e{exponent}") for exponent in range(18, 27) for digit in (1, 2, 5)]
RATIOS = [float(f"{digit}e{exponent}") for exponent in range(-1, 5) for digit in (1, 1.5, 2, 3, 5, 7)]
FIT = arxiv(
    "Besiroglu et al., Chinchilla Scaling: A replication attempt, fit of E + A / N^α + B / D^β",
    "2404.10102", "2024-04", verified="2026-11",
)  # fmt: skip
_E, _A, _B, _ALPHA, _BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658
_HEIGHT = 310.0


def loss(parameters: float, tokens: float) -> float:
    """The validation loss in nats per token that `FIT` predicts for a model trained on so many tokens.

    Fitted to models of up to 16 billion parameters; the text and the tokenizer were DeepMind's.
    """
    return float(_E + _A / parameters**_ALPHA + _B / tokens**_BETA)


def divided(budget: float, ratio: float) -> tuple[float, float]:
    """(parameters, tokens) with 6 · parameters · tokens = budget, and ``ratio`` tokens for each parameter."""
    parameters = math.sqrt(budget / (6 * ratio))
    return parameters, ratio * parameters


def best_ratio(budget: float) -> float:
    """The ratio of tokens to parameters at which the loss is smallest: where both terms fall at the same rate."""
    product = budget / 6
    parameters = (_ALPHA * _A / (_BETA * _B) * product**_BETA) ** (1 / (_ALPHA + _BETA))
    return float(product / parameters**2)


def enough(budget: float, ratio: float) -> float:
    """The fraction of the budget that reaches the same loss at the best ratio.

    There the loss less E falls as budget^(−αβ / (α + β)).
    """
    least = loss(*divided(budget, best_ratio(budget)))
    excess = (least - _E) / (loss(*divided(budget, ratio)) - _E)
    return float(excess ** ((_ALPHA + _BETA) / (_ALPHA * _BETA)))


def explore(budget: float = 5e23, *, ratio: float = 20) -> Explorer:
    """Controls for a budget of FLOPs and the ratio of tokens to parameters, above the loss at every ratio.

    Args:
        budget: training FLOPs; any number, which joins `BUDGETS`.
        ratio: tokens for each parameter, one of `RATIOS`.
    """
    arguments = {"budget": budget, "ratio": ratio}
    return Explorer("model_or_data", partial(show, budget=budget, ratio=ratio), arguments)


def show(panel: Panel, *, budget: float, ratio: float) -> Picture:
    """The predicted loss against the ratio, for one budget."""
    budget = panel.slider("budget", sorted({*BUDGETS, budget}), budget, lambda flops: readable(flops, "FLOPs"))
    panel.row()
    ratio = panel.slider("ratio", RATIOS, ratio, _words, label="tokens per parameter")
    place = panel.dragged("point")
    left, right = 40.0, panel.width - 16.0
    x = Axis(RATIOS[0], RATIOS[-1], left, right, log=True)
    y = Axis(0, 1, _HEIGHT - 44, 30)
    if place:
        ratio = x.nearest(RATIOS, place[0])
        panel.put("ratio", _words(ratio))

    best, here = best_ratio(budget), enough(budget, ratio)
    drawing = Drawing(panel.width, _HEIGHT)
    axes(
        drawing, x, y, xlabel="tokens per parameter", ylabel="",
        xwords=power, ywords="{:.0%}".format,
    )  # fmt: skip
    said = "share of the budget that the best ratio would need for the same loss"
    said = "what the best ratio needs for the same loss" if panel.narrow else said
    drawing.text(4, 12, said, behind=True)  # above the handle
    grid = [x.value(left + (right - left) * i / 80) for i in range(81)]
    drawing.line([(x(r), y(enough(budget, r))) for r in grid], "compute past", width=3, key="share")
    drawing.line([(x(best), y.end), (x(best), y.start)], "context now", dashes="3 4", key="best")
    drawing.line([(x(ratio), y(here)), (x(ratio), y.start)], "highlight past", width=1, key="drop")
    said = f"best: {_words(float(f'{best:.2g}'))}"
    drawing.text(x(best) + 6, y.start - 8, said, look="ink clear", key="best text")
    drawing.before(right, 26 if panel.narrow else 12)
    drawing.handle(x(ratio), y(here), sets="point", within=(left, 0, right, _HEIGHT), label="drag to another ratio")

    parameters, tokens = divided(budget, ratio)
    title = f"{counted(parameters)} parameters, {counted(tokens)} tokens: {_percent(1 - here)} of the FLOPs wasted"
    least, there = loss(*divided(budget, best)), _words(float(f"{best:.2g}"))
    finding = f"For {readable(budget, 'FLOPs')} the fit predicts a loss of {loss(parameters, tokens):.3f}"
    if f"{loss(parameters, tokens) - least:.3f}" == "0.000":
        finding += f", to three digits as low as with the best ratio, about {there} tokens per parameter."
    else:
        finding += (
            f" here and {least:.3f} at best, with {there} tokens per parameter; with that ratio, {_percent(here)} of "
            "the budget would reach the loss that you have here."
        )
    if ratio > 2 * best:
        finding += " Using the model may repay the waste, because a smaller one is cheaper to use."
    return Picture(title, drawing, finding)


def _percent(share: float) -> str:
    if not 5e-4 <= share <= 0.9995:
        return "none" if share < 0.5 else "all"
    return f"{share:.2%}" if not 0.01 <= share <= 0.99 else f"{share:.0%}"


def _words(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.3g}"
