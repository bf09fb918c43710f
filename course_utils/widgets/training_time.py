"""How long a training run takes and what it costs, beside published runs."""

from __future__ import annotations

import ipywidgets

from course_utils import napkin, plots
from course_utils.facts import FACTS
from course_utils.hardware import ACCELERATORS
from course_utils.units import counted, duration, plain, readable
from course_utils.widgets.explorer import Explorer, Picture

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


def explore(
    parameters: float = 70e9,
    tokens: float = 15e12,
    *,
    cards: int = 1_024,
    card: str = "H100 SXM",
    mfu: float = 0.5,
) -> Explorer:
    """Controls for model, data, cards and MFU, above your GPU-hours among those of published runs.

    Args:
        parameters: the initial model's, one of `PARAMETERS`.
        tokens: one of `TOKENS`.
        cards: the number of cards, a power of two up to 65,536.
        card: one of `CARDS`, those with a promised rate in bfloat16.
        mfu: 0.01 to 1.
    """
    controls: dict[str, ipywidgets.Widget] = {
        "run": ipywidgets.Dropdown(options=[OWN, *RUNS], description="model"),
        "parameters": ipywidgets.SelectionSlider(
            options=[(counted(n), n) for n in PARAMETERS], value=parameters, description="parameters"
        ),
        "tokens": ipywidgets.SelectionSlider(
            options=[(counted(n), n) for n in TOKENS], value=tokens, description="tokens"
        ),
        "card": ipywidgets.Dropdown(options=CARDS, value=card, description="card"),
        "cards": ipywidgets.SelectionSlider(
            options=[(f"{2**k:,}", 2**k) for k in range(17)], value=cards, description="cards"
        ),
        "mfu": ipywidgets.FloatSlider(mfu, min=0.01, max=1, step=0.01, description="MFU"),
    }
    own = [controls["parameters"], controls["tokens"]]

    def show(_: object) -> None:
        for control in own:
            control.layout.display = None if controls["run"].value == OWN else "none"

    controls["run"].observe(show, "value")
    return Explorer(draw, controls, rows=[["run", "parameters", "tokens"], ["card", "cards", "mfu"]])


def draw(*, run: str, parameters: float, tokens: float, card: str, cards: int, mfu: float) -> Picture:
    """GPU-hours of this training run, in bfloat16, among published ones."""
    if run != OWN:
        parameters, tokens = (FACTS[name].value for name in RUNS[run])
    training = napkin.training(parameters, tokens, peak=ACCELERATORS[card].peak["bfloat16"], mfu=mfu)
    hours, days = training.gpu_hours, training.days(cards)
    published = {f"{name}, published": FACTS[f"{name} GPU-hours"].value for name in RUNS}
    yours = "this training"
    crew = f"{cards:,} × {card}"
    title = f"{duration(days)} on {crew}: {_hours(hours)}"
    figure = plots.magnitudes(
        published | {yours: hours},
        unit="GPU-h",
        lines={f"30 days of {crew}": 30 * 24.0 * cards},
        highlight=[yours],
        title=title,
    )
    finding = (
        f"6 · {counted(parameters)} parameters · {counted(tokens)} tokens = {readable(training.flops, 'FLOPs')}: "
        f"{duration(days)} on {crew} at an MFU of {mfu:.2g}, {_hours(hours)}"
    )
    rent = FACTS.get(f"{card} rent")
    finding += f", {counted(hours * rent.value)} USD at {rent.value:.2f} an hour." if rent else "."
    if run != OWN:
        taken = FACTS[f"{run} GPU-hours"]
        finding += f" Published are {counted(taken.value)} ({taken.note}): {plain(taken.value / hours)} times that."
    return Picture(figure, finding)


def _hours(hours: float) -> str:
    return f"{counted(hours)} GPU-hours"
