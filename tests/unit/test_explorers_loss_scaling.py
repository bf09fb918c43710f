"""Counts by bins say exactly what PyTorch's conversion makes of each scaled gradient."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch

from course_utils.explorers import loss_scaling
from course_utils.explorers.explorer import load
from course_utils.units import raised

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8, E5M2": torch.float8_e5m2,
    "float8, E4M3": torch.float8_e4m3fn,
}


def by_torch(x: torch.Tensor, form: str) -> dict[str, int]:
    """How many become zero, subnormal, normal and too large, read from what PyTorch converts them to."""
    info, stored = torch.finfo(DTYPES[form]), x.to(DTYPES[form]).float().abs()
    over = ~stored.isfinite()
    if form == "float8, E4M3":  # what is cut looks like the largest number; 464 is halfway to the next, and rounds down
        over = x.abs() > 464
    zero, subnormal = stored == 0, (stored > 0) & (stored < info.smallest_normal)
    kinds = {"zero": zero, "subnormal": subnormal, "normal": ~(over | zero | subnormal), "too large": over}
    return {kind: int(each.sum()) for kind, each in kinds.items()}


def near_decisions() -> torch.Tensor:
    """For every exponent of float32: significands at each edge of the bins, just around it, and in between."""
    significands = []
    for edge in (*loss_scaling.EDGES, 1.25, 1.5, 1.9):
        significands += [edge - 2**-23, edge, edge + 2**-23]
    inside = torch.tensor([s for s in significands if 1 <= s < 2], dtype=torch.float64)
    exponents = 2.0 ** torch.arange(-126, 128, dtype=torch.float64)
    x = (inside[:, None] * exponents).flatten().float()
    return torch.cat([x, -x, 2.0 ** torch.arange(-149, -126)])  # and subnormal ones


@pytest.mark.parametrize("form", loss_scaling.FORMATS)
def test_every_number_becomes_what_torch_makes_of_it(form: str) -> None:
    x = near_decisions()
    for scale in (-8, -1, 0, 3, 40):
        scaled = x.double() * 2.0**scale
        exact = (scaled.float().double() == scaled) & scaled.float().isfinite()  # else float32 would round it first
        rows = loss_scaling.counts(x[exact])
        found = loss_scaling.by_kind(rows, form, scale)
        total = {kind: sum(kinds[kind] for kinds in found.values()) for kind in loss_scaling.KINDS}
        assert total == by_torch(scaled.float()[exact], form)
        assert sum(total.values()) == int(exact.sum())


def test_random_gradients_too_at_every_scale() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3_000, generator=generator) * 2.0 ** torch.randint(-45, 5, (3_000,), generator=generator)
    explorer = loss_scaling.explore(x)
    for form in loss_scaling.FORMATS:
        verdicts = set()
        for scale in loss_scaling.SCALES[::4]:
            want = {kind: number / 3_000 for kind, number in by_torch(x * 2.0**scale, form).items()}
            assert loss_scaling.shares(loss_scaling.counts(x), form, scale) == want
            frame = explorer.frame({"form": form, "scale": f"2{raised(scale)}"})
            said = re.search(
                r", (.*)% become 0 in .*, (.*)% are subnormal, (.*)% .* and (.*)% are normal", frame["finding"]
            )
            assert said, frame["finding"]
            for text, kind in zip(said.groups(), ("zero", "subnormal", "too large", "normal"), strict=True):
                if text[0].isdigit():
                    assert float(text) == pytest.approx(100 * want[kind], abs=0.051)
            verdicts.add("too large" if "too large" in frame["title"] else "0" if "become 0" in frame["title"] else "")
            assert ("too large" in frame["title"]) == (want["too large"] > 0)
        assert "too large" in verdicts or form == "bfloat16"


def test_zeros_infinities_and_nans_are_left_out_and_counts_are_plain_data() -> None:
    odd = torch.tensor([0.0, math.inf, math.nan, 1.0, -2.0])
    explorer = loss_scaling.explore(odd, exponent=0)
    assert explorer.frame()["title"] == "At 2⁰, 100% of the gradients are normal in float16"
    arguments = json.loads(json.dumps(explorer.arguments))
    assert load("loss_scaling", arguments).frame() == explorer.frame()
    with pytest.raises(ValueError, match="no gradient is finite and not zero"):
        loss_scaling.explore(torch.zeros(3))


def test_what_e4m3_makes_of_large_numbers_is_what_this_torch_does() -> None:
    explorer = loss_scaling.explore(torch.tensor([1.0]), exponent=20, form="float8, E4M3")
    cut = torch.tensor(1e9).to(torch.float8_e4m3fn).float().item() == 448
    assert ("become 448" in explorer.frame()["finding"]) == cut
    never = loss_scaling.explore(torch.tensor([1.0]), exponent=20, form="float8, E4M3", cut=not cut)
    assert ("become 448" in never.frame()["finding"]) != cut


def test_the_gradients_follow_the_hand() -> None:
    explorer = loss_scaling.explore(torch.tensor([2.0**-20]), exponent=0)
    place = 44 + (-10 + 52 + 0.5) / 76 * 700  # where 2⁻¹⁰ is
    assert explorer.frame({**explorer.frame()["state"], "shift": f"{place:.1f} 0"}, "shift")["state"]["scale"] == "2¹⁰"
