"""Plans, line by line: bytes, formulas, defaults, verdict and advice."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
import torch
from small_models import LLAMA_LIKE, SHAPES, Llama, Scorer
from torch import nn

from course_utils import napkin
from course_utils.facts import FACTS
from course_utils.hardware import ACCELERATORS
from course_utils.memory import track
from course_utils.units import readable


def test_planned_bytes_are_those_that_a_training_step_takes() -> None:
    """Parameters, gradients and optimizer state to the byte, but for AdamW's counters; activations as well."""
    shape = SHAPES[2]
    planned = napkin.plan(shape, napkin.Step(2, 24, "float32"), tokens=1e6)
    ids = torch.randint(shape.vocabulary, (2, 24))
    with track("cpu") as memory:
        model = Llama(shape)
        parameters = memory.live
        optimizer = torch.optim.AdamW(model.parameters())
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        kept = memory.live - parameters - loss.nbytes
        loss.backward()
        del loss
        gradients = memory.live - parameters
        optimizer.step()
        state = memory.live - parameters - gradients
    counters = 4 * len(list(model.parameters()))
    kinds = {kind: planned["bytes on each card", kind] for kind in ("parameters", "gradients", "optimizer state")}
    assert kinds == {"parameters": parameters, "gradients": gradients, "optimizer state": state - counters}
    assert planned["bytes on each card", "activations"] == kept


def number(formula: str, **names: float) -> float | None:
    """What a formula of a plan comes to; None where it has words that are no quantity."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", formula).replace("·", "*")
    text = re.sub(r"\b(\d+) cards?\b", r"\1", text)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", repr(names[name]), text)
    return eval(text) if re.fullmatch(r"[\d\s.e+*/()-]+", text) else None


STEPS = [
    napkin.Step(1, 2_048),
    napkin.Step(4, 512, "float32", "SGD with momentum", cards=8, zero=2, fused_attention=False),
    napkin.Step(2, 1_024, "bfloat16 alone", cards=3, zero=3, checkpointing=True),
]


@pytest.mark.parametrize("step", STEPS, ids=["plain", "unfused", "checkpointed"])
@pytest.mark.parametrize("name", ["GPT-2 small", "Llama 3.1 8B"])
def test_every_line_is_what_its_formula_says(name: str, step: napkin.Step) -> None:
    model = napkin.PUBLISHED[name]
    planned = napkin.plan(model, step, tokens=3e11, mfu=0.3, price=2.5)
    lines = {(line.group, line.what): line for line in planned.lines}
    assert len(lines) == len(planned.lines)
    peak, flops = lines["time", "peak"].value, lines["FLOPs", "training"].value
    a_token = sum(line.value for line in planned.lines if line.what.startswith("a token's "))
    in_a_step = lines["time", "tokens in a step"].value
    size = model.width // model.heads * (model.kv_heads or model.heads)
    names = {
        "MFU": 0.3, "peak": peak, "layers": model.layers, "width": model.width, "queries": model.width,
        "keys": size, "hidden": model.hidden, "heads": model.heads, "vocabulary": model.vocabulary,
        "context": step.context, "norms": 2 * model.layers + 1, "parameters": model.parameters,
        "FLOPs of the training": flops, "FLOPs of a token": a_token, "tokens in a step": in_a_step,
        "GPU-hours": lines["time", "of one card"].value, "steps": lines["time", "steps"].value,
        "a step": lines["time", "a step"].value,
        "a step's compute at the MFU": lines["time", "a step's compute at the MFU"].value,
    }  # fmt: skip
    units = {"s": 1, "days": 86_400, "GPU-hours": 3600}
    checked = set()
    for key, line in lines.items():
        assert line.source and line.formula
        tokens = step.batch * step.context if line.group.startswith("activations") else 3e11
        want = number(line.formula.removesuffix(" USD"), tokens=tokens, **names)
        if want is not None:
            assert line.value == pytest.approx(ceil(want / units.get(line.unit, 1)) if line.unit == "B" else
                                               want / units.get(line.unit, 1), rel=1e-9), key  # fmt: skip
            checked.add(key)
    words = {("time", "peak"), ("time", "MFU"), ("FLOPs", "tokens"), ("FLOPs", "computed again")}
    words |= {("activations on each card", "recomputed layer"), ("bytes on each card", "activations")}
    words |= {key for key in lines if key[0] == "time" and key[1].startswith(("a step", "sending "))} | {
        ("energy", "cards alone")
    }
    rates = [lines[key].value for key in words if key in lines and key[1].startswith(("a step'", "sending "))]
    assert lines["time", "a step"].value == max(rates) and ("time", "a step's compute at the MFU") in checked
    assert planned["energy", "cards alone"] == pytest.approx(0.7 * lines["time", "of one card"].value)
    assert set(lines) - checked <= words | {("bytes on each card", "in all")}
    kinds = {what: line.value for (group, what), line in lines.items() if group == "bytes on each card"}
    assert kinds.pop("in all") == planned.held == sum(kinds.values())
    assert kinds == napkin.memory(model, step)
    assert flops == 3e11 * a_token
    if planned["time", "a step"] == planned["time", "a step's compute at the MFU"]:
        hours = napkin.run(flops, peak=peak, mfu=0.3).gpu_hours
        assert lines["time", "of one card"].value == pytest.approx(hours, rel=1e-12)
    else:
        assert planned["time", "MFU reached"] < 0.3


def test_defaults_are_taken_from_the_table_of_facts() -> None:
    model = napkin.PUBLISHED["GPT-2 small"]
    planned = napkin.plan(model, napkin.Step(1, 1_024))
    lines = {(line.group, line.what): line for line in planned.lines}
    assert planned["FLOPs", "tokens"] == 20 * model.parameters
    assert FACTS["Chinchilla tokens"].value == 20 * FACTS["Chinchilla parameters"].value
    assert planned["time", "MFU"] == FACTS["Llama 3.1 405B MFU, 16,384 GPUs"].value
    rent = FACTS["H100 SXM rent"]
    assert planned["cost", "rent"] == planned["time", "of one card"] * rent.value
    assert str(rent.source) in lines["cost", "rent"].sources and rent.date in str(rent.source)
    for card in ("RTX 4090", "T4", "Apple M4 Max"):
        lines = {(x.group, x.what): x for x in napkin.plan(model, napkin.Step(1, 8, "float32"), card=card).lines}
        assert ("cost", "rent") not in lines and str(ACCELERATORS[card].source) in lines["time", "peak"].sources


def test_a_card_without_bfloat16_takes_float16() -> None:
    model, step = napkin.PUBLISHED["GPT-2 small"], napkin.Step(1, 8)
    assert napkin.plan(model, step, card="T4")["time", "peak"] == ACCELERATORS["T4"].peak[torch.float16]
    with pytest.raises(ValueError, match="the table has no 16-bit peak of Apple M1: choose the recipe 'float32'"):
        napkin.plan(model, step, card="Apple M1")


def test_a_module_and_its_shape_have_the_same_plan() -> None:
    found = napkin.trace(lambda: Llama(SHAPES[1]), torch.empty(2, 24, dtype=torch.int64, device="meta"))
    step = found.step(cards=4, zero=2)
    by_shape = napkin.plan(SHAPES[1], step, tokens=1e9)
    by_module = napkin.plan(found, step, tokens=1e9)
    for key in [("parameters", "in all"), ("FLOPs", "training"), ("time", "training"), ("cost", "rent")]:
        assert by_module[key] == pytest.approx(by_shape[key], rel=1e-12)
    loss = by_shape["activations on each card", "loss"]
    assert by_module.held == by_shape.held - loss
    with pytest.raises(ValueError, match=r"Llama was traced for Step\(batch=2, context=24, .* traced.step"):
        napkin.plan(found, replace(step, batch=4))


def test_a_module_without_inputs_is_planned_with_six_flops_per_parameter_and_token() -> None:
    found = napkin.trace(Scorer)
    planned = napkin.plan(found, napkin.Step(8, 128), tokens=1e9)
    assert found.flops is None and found.activations is None
    assert planned["FLOPs", "training"] == 1e9 * (6 * found.parameters + 4 * found.frozen)
    assert str(planned).count("as no input was given") == 2
    # The table that is not trained is held in 16 bits, and so is the buffer.
    assert planned["bytes on each card", "frozen, buffers"] == 2 * 15 + 2 * 7
    assert planned.held == 16 * found.parameters + 44
    assert planned.verdict.startswith(f"It fits: {readable(planned.held, 'B')} without activations of 80 GB, ")


def changed(step: napkin.Step, advice: str) -> napkin.Step:
    """The step that an advice speaks of."""
    what: dict[str, Any] = {}
    if "fused attention" in advice:
        what["fused_attention"] = True
    if "checkpointing" in advice:
        what["checkpointing"] = True
    if batch := re.search(r"a batch of ([\d,]+)", advice):
        what["batch"] = int(batch[1].replace(",", ""))
    if zero := re.search(r"ZeRO (\d) on ([\d,]+) cards", advice):
        what |= {"zero": int(zero[1]), "cards": int(zero[2].replace(",", ""))}
    return replace(step, **what)


def test_following_the_advice_makes_the_plan_fit() -> None:
    kinds = set()
    for name, model in napkin.PUBLISHED.items():
        for card in ("RTX 4090", "H100 SXM"):
            for cards, batch, zero in [(1, 1, 0), (1, 16, 2), (8, 4, 1), (64, 2, 3)]:
                for fused in (True, False):
                    step = napkin.Step(batch, 2_048, cards=cards, zero=zero, fused_attention=fused)
                    planned = napkin.plan(model, step, card=card)
                    limit = ACCELERATORS[card].memory_bytes
                    assert planned.fits == (planned.held <= limit)
                    if planned.fits:
                        assert not planned.advice and planned.verdict.startswith("It fits: ")
                        continue
                    assert readable(planned.held - limit, "B") + " more than the card" in planned.verdict
                    for advice in planned.advice:
                        if advice.startswith("a card with"):
                            larger = re.fullmatch(r"a card with more memory: (.*), (.*)", advice)[1]
                            holding = [c.memory_bytes or 0 for c in ACCELERATORS.values()]
                            smallest = min(size for size in holding if size >= planned.held)
                            assert ACCELERATORS[larger].memory_bytes == smallest
                            kinds.add("card")
                        elif advice.startswith("a shorter context"):
                            kinds.add("context")
                        else:
                            held = sum(napkin.memory(model, changed(step, advice)).values())
                            assert held <= limit, (name, step, advice)
                            if advice.startswith("a batch") and "ZeRO" not in advice:
                                more = replace(step, batch=changed(step, advice).batch + 1)
                                assert sum(napkin.memory(model, more).values()) > limit
                            assert advice.endswith(f": {readable(held, 'B')} on each card")
                            kinds.add(" and ".join(re.findall("attention|checkpointing|batch|ZeRO", advice)))
    assert {"card", "checkpointing", "batch", "ZeRO"} <= kinds and any(" and " in kind for kind in kinds)


def test_a_plan_that_sharding_cannot_fit_advises_a_shorter_context_or_smaller_input() -> None:
    model = napkin.PUBLISHED["Llama 3.1 405B"]
    planned = napkin.plan(model, napkin.Step(1, 131_072))
    assert len(planned.advice) == 1
    assert planned.advice[0].startswith("a shorter context: activations take 695 GB on each card")
    found = napkin.trace(lambda: Llama(LLAMA_LIKE), torch.empty(8, 1_000, dtype=torch.int64))
    tight = replace(ACCELERATORS["H100 SXM"], memory_bytes=1_000_000)
    assert napkin.plan(found, found.step(), card=tight).advice[0].startswith("a smaller input: ")


def test_asking_for_a_missing_line_names_those_that_exist() -> None:
    planned = napkin.plan(LLAMA_LIKE, napkin.Step(1, 8))
    with pytest.raises(
        LookupError, match=r"\('time', 'tea'\) is not a line of this plan; it has .*\('time', 'training'\)"
    ):
        planned["time", "tea"]


def test_a_notebook_shows_a_table() -> None:
    planned = napkin.plan(LLAMA_LIKE, napkin.Step(1, 8), name="<mine>")
    shown = planned._repr_html_()
    assert shown.count("<tr>") == len(planned.lines) + len({line.group for line in planned.lines})
    assert "&lt;mine&gt;" in shown and planned.verdict in shown
