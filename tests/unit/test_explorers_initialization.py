"""The table is what PyTorch measures, and the lines are what it predicts."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from course_utils.explorers import initialization

SOLUTIONS = Path(__file__).parents[2] / "solutions"
PHI: dict[str, Any] = {"ReLU": torch.relu, "tanh": torch.tanh, "GELU": nn.functional.gelu, "none": nn.Identity()}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("name", initialization.NONLINEARITIES)
def test_the_table_is_what_is_measured_again(name: str, residual: bool) -> None:
    for place, (initializer, gain) in enumerate(itertools.product(initialization.INITIALIZERS, (0.5, 1.0, 2**0.125))):
        width = (32, 32, 128)[place % 3]
        factor = gain**2 * initialization.INITIALIZERS[initializer](width)
        again = initialization.measure(factor, name, width, residual)
        table = initialization.measured(initializer, gain, name, width, residual)
        for had, got in zip(table, again, strict=True):
            if name == "tanh" and gain > 1:
                # With large weights that's chaotic: the last bit of a tanh differs between processors, and grows layer
                # by layer until gradients of 1e19 differ by a factor. The drawing is logarithmic.
                assert [math.log10(each) for each in had] == pytest.approx([math.log10(each) for each in got], abs=0.7)
            else:
                assert had == pytest.approx(got, rel=2e-3)


def test_the_table_has_a_row_for_every_setting() -> None:
    every = itertools.product(
        initialization.INITIALIZERS, initialization.GAINS, initialization.NONLINEARITIES, initialization.WIDTHS,
        (False, True),
    )  # fmt: skip
    for setting in every:
        outputs, gradients = initialization.measured(*setting)
        assert len(outputs) == len(gradients) == len(initialization.SHOWN) and gradients[-1] == 1
    again = initialization.measure(2.0, "ReLU", 512, True)
    assert initialization.measured("Kaiming", 1.0, "ReLU", 512, True)[0] == pytest.approx(again[0], rel=2e-3)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.GELU, nn.Identity])
def test_what_is_measured_is_what_modules_and_autograd_do(activation: type[nn.Module], residual: bool) -> None:
    width, std = 32, 0.15
    data, weights, last = initialization._numbers(width)
    x, outputs = data, []
    for number, weight in enumerate(weights):
        linear = nn.Linear(width, width, bias=False, dtype=torch.float64)
        linear.weight.data = std * weight.T
        z = linear(activation()(x) if number else x)
        x = x + z if residual and number else z
        x.retain_grad()
        outputs.append(x)
    x.backward(last)  # type: ignore[no-untyped-call]
    name = {"Tanh": "tanh", "Identity": "none"}.get(activation.__name__, activation.__name__)
    measured = initialization.measure(width * std**2, name, width, residual)
    shown = [outputs[layer - 1] for layer in initialization.SHOWN]
    assert measured[0] == pytest.approx([z.detach().square().mean().sqrt().item() for z in shown])
    back = [z.grad.square().mean().sqrt().item() for z in shown]
    assert measured[1] == pytest.approx([each / back[-1] for each in back])


@pytest.mark.parametrize("name", initialization.NONLINEARITIES)
@pytest.mark.parametrize("q", [1e-30, 1e-3, 0.3, 1.0, 7.0, 300.0, 1e12])
def test_moments_are_those_of_a_fine_grid(name: str, q: float) -> None:
    root = math.sqrt(q)
    # Fine where the functions bend, around 0, and as far out as the density goes; even, so that 0, ReLU's kink, is out.
    edges = torch.cat([torch.linspace(0, min(8.0, 40 / root), 40_000), torch.linspace(min(8.0, 40 / root), 8, 40_000)])
    edges = edges.double()
    middle, step = (edges[1:] + edges[:-1]) / 2, edges.diff()
    z = (root * torch.cat([middle, -middle])).requires_grad_()
    weight = torch.cat([step, step]) * torch.exp(-((z.detach() / root) ** 2) / 2) / math.sqrt(2 * math.pi)
    y = PHI[name](z)
    (slope,) = torch.autograd.grad(y.sum(), z)
    want = [(weight * each.detach() ** 2).sum().item() for each in (y, slope)]
    assert initialization._moments(name, q) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("relu", [False, True])
def test_lines_are_what_lecture_07_predicts(relu: bool) -> None:
    lecture = solution("07_models_and_init.py", "stds_through_depth")
    for width, std in itertools.product((32, 256), (1.0, 0.02, 0.11)):
        outputs, gradients = initialization.predict(width * std**2, "ReLU" if relu else "none", False)
        chain = [width] * 51, [std] * 50, relu
        assert outputs == pytest.approx(lecture["stds_through_depth"](*chain))
        assert gradients == pytest.approx(lecture["gradient_stds_through_depth"](*chain))


def solution(name: str, wanted: str) -> dict[str, Any]:
    """The names of a lecture's cell that defines what is wanted, after its imports."""
    cells = re.split(r"^# %%", (SOLUTIONS / name).read_text(encoding="utf-8"), flags=re.M)
    code = [cell.partition("\n")[2] for cell in cells if "[markdown]" not in cell.partition("\n")[0]]
    names: dict[str, Any] = {"__name__": "a_lecture"}
    exec(code[1], names)
    exec(next(cell for cell in code if re.search(rf"^def {wanted}\b", cell, re.M)), names)
    return names


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


def test_the_questions_of_lecture_07() -> None:
    """Without a nonlinearity one notch of the gain is noticed at most; residual connections save the smallest start."""
    explorer = initialization.explore("LeCun = Glorot", "ReLU", width=128)
    for gain in initialization.GAINS:
        title = explorer.frame({"nonlinearity": "none", "gain": f"{gain:.2f}"})["title"]
        assert ("keep their scale" in title) == (abs(gain - 1) < 0.05), title
    saved = set()
    for name in initialization.INITIALIZERS:
        before, after = (explorer.frame({"initializer": name, "residual": on})["title"] for on in (False, True))
        saved |= {name} if "vanish" in before and after.startswith("Outputs") and "keep their scale" in after else set()
    assert saved == {"std 0.02, as GPT-2"}


def test_title_and_finding_say_what_the_points_show() -> None:
    explorer = initialization.explore()
    for gain, phi, residual in itertools.product(
        ("0.50", "1.00", "2.00"), initialization.NONLINEARITIES, (False, True)
    ):
        frame = explorer.frame({"gain": gain, "nonlinearity": phi, "residual": residual})
        outputs, gradients = initialization.measured("LeCun = Glorot", float(gain), phi, 128, residual)
        changes = [float(n.replace(",", "")) for n in re.findall(r"× ([\d.,e-]+)\)", frame["title"])]
        assert changes == pytest.approx([outputs[-1] / outputs[0], gradients[0]], rel=0.06)
        for before in ("a factor of", "has a std of"):
            said = re.search(rf"{before} ([\d.,e-]+)(?: in layer 1)? \(predicted: ([\d.,e-]+)\)", frame["finding"])
            assert said, frame["finding"]
            number, guess = said.groups()
            assert f"× {number})" in frame["title"]
            assert (
                not (drawn := re.findall(r">predicted: ([\d.,e-]+)<", frame["svg"]))
                or guess in drawn
                or (1e-10 < float(guess.replace(",", "")) < 1e10)
            )
        fates = ["explode" if c > 10 else "vanish" if c < 0.1 else "keep their scale" for c in changes]
        assert all(fate in frame["title"] for fate in fates)
        predicted = initialization.predict(float(gain) ** 2, phi, residual)
        biggest = max(*outputs, *gradients, *predicted[0], *predicted[1])
        assert ("would overflow" in frame["finding"]) == (biggest > torch.finfo(torch.float32).max)
