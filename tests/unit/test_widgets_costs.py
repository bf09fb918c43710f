"""The explorers of costs and scales: every setting makes a picture, and says what torch and the lectures say."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from course_utils import napkin, plots
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.hardware import ACCELERATORS, Accelerator
from course_utils.widgets import explorer as explorers
from course_utils.widgets import initialization, loss_scaling, memory_budget, roofline, training_time
from course_utils.widgets.explorer import Explorer, Picture

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def solution(name: str, wanted: str) -> dict[str, Any]:
    """The names of a lecture's cell that defines what is wanted, after its imports."""
    cells = re.split(r"^# %%", (SOLUTIONS / name).read_text(encoding="utf-8"), flags=re.M)
    code = [cell.partition("\n")[2] for cell in cells if "[markdown]" not in cell.partition("\n")[0]]
    names: dict[str, Any] = {"__name__": "a_lecture"}
    exec(code[1], names)
    exec(next(cell for cell in code if re.search(rf"^def {wanted}\b", cell, re.M)), names)
    return names


def values(control: Any) -> list[Any]:
    """All that a control can be set to."""
    if hasattr(control, "options"):
        return [option[1] if isinstance(option, tuple) else option for option in control.options]
    if hasattr(control, "min"):
        steps = round((control.max - control.min) / control.step)
        return [type(control.value)(control.min + i * control.step) for i in range(steps + 1)]
    return [False, True]


def some(control: Any, chance: random.Random) -> list[Any]:
    """All that a control can be set to; of a long scale its ends, its middle and a few more."""
    found = values(control)
    if len(found) <= 17:
        return found
    inside = chance.sample(range(1, len(found) - 1), 7)
    return [found[i] for i in (0, len(found) // 2, len(found) - 1, *inside)]


def settings(explorer: Explorer, steps: int) -> Iterator[Picture]:
    """Moves one control after the other, to some of its values each, in random order, then all to their extremes.

    The others stay where they are, so that the values of all controls meet. ``steps`` random moves go on from there.
    """

    def put(name: str, value: Any) -> Picture:
        explorer.controls[name].value = value
        assert explorer.problem == ""
        return explorer.picture

    chance = random.Random(0)
    moves = [(name, value) for name, control in explorer.controls.items() for value in some(control, chance)]
    chance.shuffle(moves)
    for name, value in moves:
        possible = values(explorer.controls[name])  # another control may have changed them
        yield put(name, value if value in possible else chance.choice(possible))
    for end in (0, -1):
        yield from (put(name, values(control)[end]) for name, control in explorer.controls.items())
    for _ in range(steps):
        name = chance.choice(list(explorer.controls))
        yield put(name, chance.choice(values(explorer.controls[name])))


EXPLORERS: dict[str, Callable[[], Explorer]] = {
    "memory_budget": memory_budget.explore,
    "roofline": roofline.explore,
    "roofline with points": lambda: roofline.explore([("a", 0.1, 1e9), ("b", 30.0, 2e12)], card="T4"),
    "training_time": training_time.explore,
    "initialization": initialization.explore,
    "loss_scaling": loss_scaling.explore,
}


@pytest.mark.parametrize("name", EXPLORERS)
def test_an_explorer_draws_the_same_picture_each_time_and_names_every_control(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = EXPLORERS[name](), EXPLORERS[name]()
    assert first.png() == second.png() and first.picture.finding == second.picture.finding
    assert all(control.description for control in first.controls.values())
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")  # only the last picture is compared
    for explorer in (first, second):
        for control in explorer.controls.values():
            control.value = values(control)[-1]
    assert first.png() == second.png()


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the SVG, which is not what is tested here."""
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")


@pytest.fixture
def undrawn(unseen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the figures, too, where only what is said is tested."""
    for name in ("memory_stacks", "range_histograms", "through_depth"):
        monkeypatch.setattr(plots, name, lambda *numbers, **look: Figure())


def marks(picture: Picture, name: str) -> list[tuple[float, float]]:
    """Where the marks of that name are."""
    lines = [line for ax in picture.figure.axes for line in ax.lines if line.get_gid() == name]
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in lines]


def number(text: str) -> float:
    """``"1,234"`` and ``"3.14e23"`` as numbers."""
    return float(text.replace(",", ""))


@pytest.mark.usefixtures("unseen")
def test_memory_budget_draws_the_planners_bytes_at_every_setting() -> None:
    explorer = memory_budget.explore()
    sides, kinds_largest = set(), set()
    for picture in settings(explorer, 30):
        now = explorer.values
        if now["model"] == memory_budget.OWN:
            heads = now["width"] // 128
            shape = napkin.Transformer(now["layers"], now["width"], heads, now["vocabulary"], positions=now["context"])
        else:
            shape = napkin.PUBLISHED[now["model"]]
            if now["model"].startswith("GPT"):  # whose learned positional embedding needs a row for each position
                shape = replace(shape, positions=max(shape.positions, now["context"]))
        step = napkin.Step(**{name: now[name] for name in napkin.Step.__dataclass_fields__ if name in now})
        want = napkin.memory(shape, step)
        bars = {patch.get_gid(): patch.get_width() for patch in picture.figure.axes[0].patches if patch.get_gid()}
        drawn = {kind: bars[f"in all: {kind}"] for kind in want}
        assert drawn == want
        assert all(bars[f"{kind}: {kind}"] == drawn[kind] for kind in want if want[kind])
        card = ACCELERATORS[now["card"]].memory_bytes
        fits = sum(drawn.values()) <= card
        sides.add(fits)
        assert (" this fits: " in picture.finding) == fits == picture.figure.texts[0].get_text().startswith("Fits")
        assert ("does not fit" in picture.finding) != fits
        largest = max(drawn, key=lambda kind: drawn[kind])
        kinds_largest.add(largest)
        assert f"The largest part: {largest}, {drawn[largest] / sum(drawn.values()):.0%}; " in picture.finding
        assert picture.finding.startswith("On one card " if now["cards"] == 1 else f"On each of {now['cards']:,} cards")
    assert sides == {True, False} and "activations" in kinds_largest and len(kinds_largest) > 2


@pytest.mark.usefixtures("undrawn")
def test_memory_budget_answers_the_questions_of_lecture_08() -> None:
    """Lecture 08 asks for the one control that makes it fit, and where activations come from with recomputation."""
    explorer = memory_budget.explore("Llama 3.1 8B", "H100 SXM", batch=1, context=8_192, cards=8)
    assert "does not fit: 177 GB for 80 GB, 96.9 GB too much" in explorer.picture.finding
    start, fitting = explorer.values, set()
    for name in set(start) - {"model", "card", "cards"}:
        for value in values(explorer.controls[name]):
            explorer.controls[name].value = value
            fitting |= {(name, value)} if "this fits" in explorer.picture.finding else set()
        explorer.controls[name].value = start[name]
    assert fitting == {("zero", 2), ("zero", 3)}
    explorer.controls["zero"].value, explorer.controls["checkpointing"].value = 3, True
    shape, step = napkin.PUBLISHED["Llama 3.1 8B"], napkin.Step(1, 8_192, checkpointing=True)
    parts = napkin.activations(shape, step)
    assert max(parts, key=lambda part: parts[part]) == "loss"
    assert f"; of the activations: loss, {parts['loss'] / sum(parts.values()):.0%}." in explorer.picture.finding


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("own", [False, True])
def test_roofline_says_how_long_a_product_takes_and_what_bounds_it(own: bool) -> None:
    points = [("a", 0.1, 1e9), ("b", 30.0, 2e12)]
    mine = Accelerator("this machine", {torch.float32: 1e11}, 2e10, None, None, "measured")
    explorer = roofline.explore(points, card=mine if own else "H100 SXM")
    sides = set()
    for picture in settings(explorer, 30):
        now = explorer.values
        card = mine if now["card"] == "this machine" else ACCELERATORS[now["card"]]
        dtype = torch.float32 if now["dtype"] == "tf32" else getattr(torch, now["dtype"])
        m, k, n = now["m"], now["k"], now["n"]
        left, right, result = (torch.empty(s, dtype=dtype, device="meta") for s in [(m, k), (k, n), (m, n)])
        packed = 2 if dtype == torch.float4_e2m1fn_x2 else 1  # numbers in an element
        moving = (left.nbytes + right.nbytes + result.nbytes) / packed / card.bandwidth
        computing = count_flops(torch.mm, left.float(), right.float()) / card.peak[now["dtype"]]
        seconds = max(moving, computing)
        ((intensity, rate),) = marks(picture, "this product")
        assert rate == pytest.approx(computing * card.peak[now["dtype"]] / seconds)
        assert intensity == pytest.approx(computing * card.peak[now["dtype"]] / (moving * card.bandwidth))
        side = "memory-bound" if moving > computing else "compute-bound"
        sides.add(side)
        if not math.isclose(moving, computing):
            assert f": {side} on {now['card']}." in picture.finding
            assert side in picture.figure.texts[0].get_text()
        labels = " ".join(text.get_text() for text in picture.figure.axes[0].texts)
        own_roof = now["card"] == "this machine"  # it may be measured, and no maker has promised it
        assert (" roof" in labels, "peak, dense" in labels) == (own_roof, not own_roof), labels
        assert ("the roof" in picture.finding, "the peak" in picture.finding) == (own_roof, not own_roof)
        said = re.search(r"takes ([\d.,]+) (\w*)s\.$", picture.finding)
        assert said, picture.finding
        prefix = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0}[said[2]]
        assert number(said[1]) * prefix == pytest.approx(seconds, rel=6e-3)
        assert [marks(picture, name) for name, *_ in points] == [[(x, y)] for _, x, y in points]
    assert sides == {"memory-bound", "compute-bound"}


def test_roofline_offers_the_dtypes_that_a_card_has() -> None:
    explorer = roofline.explore(card="H100 SXM")
    explorer.controls["dtype"].value = "float8_e5m2"
    explorer.controls["card"].value = "T4"
    assert [dtype for _, dtype in explorer.controls["dtype"].options] == ["float32", "float16"]
    assert explorer.problem == "" and explorer.values["dtype"] in ACCELERATORS["T4"].peak
    explorer.controls["dtype"].value = "float16"
    explorer.controls["card"].value = "A100 SXM 80GB"
    assert explorer.values["dtype"] == "float16"  # stays where the new card has it


@pytest.mark.usefixtures("unseen")
def test_training_time_says_what_lecture_00_computes() -> None:
    training_days = solution("00_napkin_math.py", "training_days")["training_days"]
    explorer, words = training_time.explore(), {"million": 1e6, "billion": 1e9, "trillion": 1e12, None: 1.0}
    units = {"seconds": 1 / 86_400, "minutes": 1 / 1_440, "hours": 1 / 24, "days": 1.0, "years": 365.25}
    said_units, said_words, costs = set(), set(), set()
    for picture in settings(explorer, 50):
        now = explorer.values
        n, d = now["parameters"], now["tokens"]
        if now["run"] != training_time.OWN:
            n, d = (FACTS[name].value for name in training_time.RUNS[now["run"]])
        days = training_days(n, d, now["cards"], FACTS[f"{now['card']} bfloat16 peak"].value, now["mfu"])
        said = re.search(
            r"FLOPs: ([\d.,e-]+) (\w+) on .* at an MFU of ([\d.]+), ([\d.,e-]+)(?: (\w+))? GPU-hours", picture.finding
        )
        assert said, picture.finding
        assert number(said[1]) * units[said[2]] == pytest.approx(days, rel=6e-3)
        assert number(said[3]) == pytest.approx(now["mfu"])
        hours = 24 * now["cards"] * days
        assert number(said[4]) * words[said[5]] == pytest.approx(hours, rel=6e-3)
        said_units.add(said[2])
        said_words.add(said[5])
        ((place, _),) = marks(picture, "this training")
        assert place == pytest.approx(hours)
        rent = FACTS.get(f"{now['card']} rent")
        assert (" USD at " in picture.finding) == (rent is not None)
        costs.add(rent is not None)
        if now["run"] != training_time.OWN:
            times = number(re.search(r": ([\d.,e-]+) times that\.$", picture.finding)[1])
            assert times == pytest.approx(FACTS[f"{now['run']} GPU-hours"].value / hours, rel=6e-3)
    assert said_units == set(units) and said_words >= {None, "million"}
    assert costs == {True, False}


def test_training_time_answers_the_questions_of_lecture_00() -> None:
    explorer = training_time.explore(70e9, 15e12, cards=1_024, mfu=0.5)
    assert "144 days on 1,024 × H100 SXM" in explorer.picture.finding
    assert "14.1 million USD" in explorer.picture.finding
    explorer.controls["cards"].value = 2_048
    assert "72 days" in explorer.picture.finding and "14.1 million USD" in explorer.picture.finding
    explorer.controls["run"].value, explorer.controls["mfu"].value = "Llama 3.1 8B", 0.14
    assert explorer.picture.finding.endswith("Published are 1.46 million (H100 80GB): 1.01 times that.")


@pytest.mark.usefixtures("unseen")
def test_initialization_says_what_its_curves_show() -> None:
    explorer, fates = initialization.explore(), set()
    for picture in settings(explorer, 20):
        depth = explorer.values["depth"]
        curves = [line.get_ydata() for line in picture.figure.axes[0].lines if len(line.get_xdata()) == depth]
        outputs, gradients = curves[0], curves[1]
        said = re.search(
            r"from ([\d.,e-]+) in layer 1 to ([\d.,e-]+) in layer (\d+) .*: they ([a-z ]+)\. .* becomes ([\d.,e-]+) ",
            picture.finding,
        )
        assert said, picture.finding
        assert int(said[3]) == depth and number(said[1]) == pytest.approx(outputs[0], rel=6e-3)
        assert number(said[2]) == pytest.approx(outputs[-1], rel=6e-3)
        assert number(said[5]) == pytest.approx(gradients[0], rel=6e-3)
        change = outputs[-1] / outputs[0]
        assert said[4] == ("explode" if change > 10 else "die out" if change < 0.1 else "arrive")
        fates.add(said[4])
        biggest = max(*outputs, *gradients)
        assert ("would overflow" in picture.finding) == (biggest > 3.4028235e38)
    assert fates == {"explode", "die out", "arrive"}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.GELU, nn.Identity])
def test_initialization_measures_what_modules_and_autograd_do(activation: type[nn.Module], residual: bool) -> None:
    depth, width, std = 7, 64, 0.15
    data, weights, last = initialization._numbers(width)
    x, outputs = data, []
    for number, weight in enumerate(weights[:depth]):
        linear = nn.Linear(width, width, bias=False, dtype=torch.float64)
        linear.weight.data = std * weight.T
        z = linear(activation()(x) if number else x)
        x = x + z if residual and number else z
        x.retain_grad()
        outputs.append(x)
    x.backward(last)
    name = {"Tanh": "tanh", "Identity": "none"}.get(activation.__name__, activation.__name__)
    measured = initialization.measure(depth, width, std, name, residual)
    assert measured.outputs == pytest.approx([z.detach().square().mean().sqrt().item() for z in outputs])
    assert measured.gradients == pytest.approx([z.grad.square().mean().sqrt().item() for z in outputs])


@pytest.mark.parametrize("relu", [False, True])
def test_initialization_predicts_what_lecture_07_predicts(relu: bool) -> None:
    lecture = solution("07_models_and_init.py", "stds_through_depth")
    for width, std in itertools.product((32, 256), (1.0, 0.02, 0.11)):
        predicted = initialization.predict(50, width, std, "ReLU" if relu else "none", False)
        chain = [width] * 51, [std] * 50, relu
        assert predicted.outputs == pytest.approx(lecture["stds_through_depth"](*chain), rel=1e-3)
        assert predicted.gradients == pytest.approx(lecture["gradient_stds_through_depth"](*chain), rel=1e-3)


def test_initializers_have_the_standard_deviations_of_torch() -> None:
    width = 256
    torch.manual_seed(0)
    made = {
        "Kaiming": nn.init.kaiming_normal_(torch.empty(width, width)),
        "LeCun = Glorot": nn.init.xavier_normal_(torch.empty(width, width)),
        "nn.Linear": nn.Linear(width, width).weight,
        "torch.randn": torch.randn(width, width),
        "std 0.02, as GPT-2": nn.init.normal_(torch.empty(width, width), std=0.02),
    }
    assert set(made) == set(initialization.INITIALIZERS)
    for name, weight in made.items():
        variance = initialization.INITIALIZERS[name](width) / width
        assert weight.std().item() == pytest.approx(math.sqrt(variance), rel=0.02), name


@pytest.mark.usefixtures("undrawn")
def test_initialization_answers_the_questions_of_lecture_07() -> None:
    """Without a nonlinearity one notch of the gain is noticed at most; residual connections save the smallest start."""
    explorer = initialization.explore("LeCun = Glorot", "none", depth=50, width=128)
    assert "they arrive" in explorer.picture.finding
    for gain in (gain for gain in initialization.GAINS if abs(gain - 1) > 0.08):
        explorer.controls["gain"].value = gain
        assert "they arrive" not in explorer.picture.finding
    explorer = initialization.explore("LeCun = Glorot", "ReLU", depth=50, width=128)
    saved = set()
    for name in initialization.INITIALIZERS:
        explorer.controls["initializer"].value, explorer.controls["residual"].value = name, False
        died = "they die out" in explorer.picture.finding
        explorer.controls["residual"].value = True
        saved |= {name} if died and "they arrive" in explorer.picture.finding else set()
    assert saved == {"std 0.02, as GPT-2"}


def kinds_by_bits(x: torch.Tensor, dtype: torch.dtype) -> dict[str, float]:
    """Shares of zero, subnormal, too large and normal, read from the bits of the codes."""
    # Bits of exponent and mantissa, and what lies halfway between the largest number and where the next would be.
    exponent, mantissa, halfway = {
        torch.float16: (5, 10, 65_520),
        torch.bfloat16: (8, 7, math.inf),
        torch.float8_e5m2: (5, 2, 61_440),
        torch.float8_e4m3fn: (4, 3, 464),
    }[dtype]
    codes = x.to(dtype).view(torch.int16 if dtype.itemsize == 2 else torch.uint8).int()
    e, m = (codes >> mantissa) & (2**exponent - 1), codes & (2**mantissa - 1)
    over = x.abs() > halfway
    kinds = {"zero": (e == 0) & (m == 0), "subnormal": (e == 0) & (m > 0), "too large": over, "normal": (e > 0) & ~over}
    return {name: kind.double().mean().item() for name, kind in kinds.items()}


def check_loss_scaling(explorer: Explorer, nonzero: torch.Tensor) -> str:
    """Compares what is said now with the bits of the codes, and returns the first letter of the verdict."""
    finding = explorer.picture.finding
    dtype, scaled = loss_scaling.FORMATS[explorer.values["form"]], nonzero * 2.0 ** explorer.values["exponent"]
    want = kinds_by_bits(scaled, dtype)
    assert loss_scaling.shares(scaled, dtype) == pytest.approx(want)
    said = re.search(
        r", (.*)% become 0 in .*, (.*)% are subnormal, (.*)% (become|are cut) .*and (.*)% are normal\. (.)", finding
    )
    assert said, finding
    cut = torch.tensor(1e9).to(dtype).float().item() == torch.finfo(dtype).max
    assert (said[4] == "are cut") == cut
    assert ("nothing says so" in finding) == (cut and want["too large"] > 0)
    for kind, text in zip(("zero", "subnormal", "too large", "normal"), said.group(1, 2, 3, 5), strict=True):
        if text.startswith("less than"):
            assert 0 < want[kind] < 0.001
        elif text.startswith("more than"):
            assert 0.999 < want[kind] < 1
        else:
            assert float(text) == pytest.approx(100 * want[kind], abs=0.051)
            assert (text in ("0", "100")) == (want[kind] in (0, 1))
    assert ("Too large" in finding) == (want["too large"] > 0)
    assert ("A good scale" in finding) == (
        want["too large"] == 0 and want["zero"] <= 0.01 and want["subnormal"] <= 0.01
    )
    return said[6]


def wide_gradients() -> torch.Tensor:
    """Numbers from below to above the range of each narrow format."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3_000, generator=generator) * 2.0 ** torch.randint(-45, 5, (3_000,), generator=generator)


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("wide", [False, True])
def test_loss_scaling_draws_moves_of_its_controls(wide: bool) -> None:
    flat = wide_gradients() if wide else loss_scaling.example()
    explorer = loss_scaling.explore(flat if wide else None)
    for _ in settings(explorer, 10):
        check_loss_scaling(explorer, flat[flat != 0])


@pytest.mark.usefixtures("undrawn")
def test_loss_scaling_says_what_the_bits_of_the_codes_show_at_every_setting() -> None:
    verdicts = set()
    for flat in (loss_scaling.example(), wide_gradients()):
        explorer, nonzero = loss_scaling.explore(flat), flat[flat != 0]
        for form in loss_scaling.FORMATS:
            explorer.controls["form"].value = form
            for exponent in values(explorer.controls["exponent"]):
                explorer.controls["exponent"].value = exponent
                assert explorer.problem == ""
                verdicts.add(check_loss_scaling(explorer, nonzero))
    assert verdicts == {"T", "H", "A"}  # too large or small, hardly any lost, a good scale


def test_loss_scaling_leaves_out_zeros_infinities_and_nans() -> None:
    odd = torch.tensor([0.0, math.inf, math.nan, 1.0, -2.0])
    assert ", 0% become 0 in float16, 0% are subnormal, 0% become infinite and 100% are normal." in (
        loss_scaling.explore(odd).picture.finding
    )
    with pytest.raises(ValueError, match="no gradient is finite and not zero"):
        loss_scaling.explore(torch.zeros(3))
