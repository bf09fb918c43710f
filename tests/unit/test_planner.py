"""The planner: modules on the meta device against the same on a CPU, plans line by line, and the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import torch
from test_napkin import LLAMA_LIKE, SHAPES, Again, Llama, lecture
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_utils import napkin
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.hardware import ACCELERATORS
from course_utils.memory import saved_bytes, track
from course_utils.napkin.__main__ import main
from course_utils.units import readable

REPOSITORY = Path(__file__).parents[2]
IDS = torch.empty(2, 24, dtype=torch.int64, device="meta")


class Scorer(nn.Module):
    """A language model that returns its loss, and a table that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Llama(LLAMA_LIKE)
        self.table = nn.Embedding(5, 3).requires_grad_(False)
        self.register_buffer("counter", torch.zeros(7))

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.model(ids).flatten(0, 1).float(), ids.flatten())


MODULES: dict[str, Callable[[], nn.Module]] = {
    "attention with a mask": lambda: nn.Sequential(
        nn.Embedding(50, 32), nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True), nn.Linear(32, 50)
    ),
    "grouped keys": lambda: Llama(SHAPES[1]),
    "wide heads": lambda: Llama(SHAPES[2]),
    "its own loss": Scorer,
    "checkpointed": lambda: nn.Sequential(nn.Embedding(9, 64), Again(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))),
}


@pytest.mark.parametrize("recipe", ["float32", "bfloat16, float32 master copy"])
@pytest.mark.parametrize("name", MODULES)
def test_the_meta_device_finds_what_a_cpu_does(name: str, recipe: str) -> None:
    found = napkin.trace(MODULES[name], IDS, recipe=recipe)
    torch.manual_seed(0)
    model = MODULES[name]().to(torch.float32 if recipe == "float32" else torch.bfloat16)
    ids = torch.randint(5, IDS.shape)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert found.parameters == sum(p.numel() for p in trained)
    assert found.frozen == sum(p.numel() for p in model.parameters()) - found.parameters
    assert found.buffers == sum(b.nbytes for b in model.buffers())
    assert (found.batch, found.context, found.item) == (2, 24, "token")
    measured = saved_bytes(model, ids)
    if name == "attention with a mask" and recipe != "float32":
        measured += 2 * 2 * 2 * ids.numel()  # two norms' two statistics, which a CPU keeps in 16 bits and a GPU in 32
    assert found.activations == measured
    with sdpa_kernel(SDPBackend.MATH):  # which does not compute scores a second time
        assert found.flops == count_flops(lambda: model(ids).float().sum().backward())


def test_lecture_08s_model_is_found_as_it_is_measured() -> None:
    names = lecture("08_optimizers.py", "Transformer", "transformer_numbers")

    def make() -> nn.Module:
        return names["Transformer"](vocab=97, context=24, d=24, heads=3, layers=5)

    found = napkin.trace(make, IDS, recipe="float32")
    with sdpa_kernel(SDPBackend.MATH):
        model = make()
        assert found.flops == count_flops(lambda: model(IDS.new_zeros(2, 24, device="cpu")).sum().backward())
    shape = napkin.Transformer(5, 24, 3, 97, positions=24)
    assert found.parameters == shape.parameters == sum(p.numel() for p in model.parameters())
    assert set(found.parts) == {name.partition(".")[0] for name, _ in model.named_parameters()}


def test_an_image_model_counts_samples() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))

    images = torch.empty(4, 3, 8, 8)
    found = napkin.trace(make, images, recipe="float32")
    assert (found.batch, found.context, found.item) == (4, 1, "sample")
    model = make()
    assert found.flops == count_flops(lambda: model(images).sum().backward())
    planned = napkin.plan(found, found.step(cards=3), tokens=1e6)
    assert planned["time", "samples in a step"] == 12
    assert planned["FLOPs", "training"] == pytest.approx(found.flops / 4 * 1e6)
    assert "tokens" not in str(planned)
    with pytest.raises(ValueError, match="Sequential takes no ids: say how many samples"):
        napkin.plan(found, found.step())


def test_attention_without_fusing_keeps_its_weights() -> None:
    fused, plain = (napkin.trace(lambda: Llama(LLAMA_LIKE), IDS, fused_attention=fused) for fused in (True, False))
    assert fused.flops == plain.flops
    weights = 2 * 2 * LLAMA_LIKE.heads * 24 * 24 * LLAMA_LIKE.layers
    assert plain.activations - fused.activations >= weights - 4 * 2 * 24 * LLAMA_LIKE.heads * LLAMA_LIKE.layers


@pytest.mark.parametrize(
    ("build", "inputs", "kind", "says"),
    [
        (nn.Linear(2, 2), [], TypeError, "trace was given a Linear; give a function that makes it"),
        (lambda: 3, [], TypeError, "a function that makes a int; wanted an nn.Module"),
        (lambda: nn.Linear(2, 2, device="cpu"), [], ValueError, "weight is on cpu, where it takes memory; give"),
        (lambda: nn.Linear(int(torch.ones(1).item()), 2), [], ValueError, "cannot be built on the meta device: "),
        (lambda: nn.ReLU(), [], ValueError, "ReLU has no parameters that are trained"),
        (lambda: nn.Linear(2, 2), [torch.empty(3, 5)], ValueError, "Linear does not run on bfloat16[3, 5] on the"),
    ],
)
def test_what_cannot_be_traced_says_why(build: Any, inputs: list[Tensor], kind: Any, says: str) -> None:
    with pytest.raises(kind, match=re.escape(says)):
        napkin.trace(build, *inputs)


SEVENTY = """
import sys
sys.path.insert(0, "tests/unit")
import psutil, torch
from test_napkin import Llama
from course_utils import napkin
shape = napkin.PUBLISHED["Llama 3.1 70B"]
small = napkin.Transformer(1, 64, 4, 10, kv_heads=2, gated=True, norm_vectors=1)
ids = torch.empty(1, 8_192, dtype=torch.int64, device="meta")
napkin.trace(lambda: Llama(small), ids)  # what PyTorch loads at first use
before = psutil.Process().memory_info().rss
found = napkin.trace(lambda: Llama(shape), ids)
grown = psutil.Process().memory_info().rss - before
assert found.parameters == shape.parameters, found
assert found.flops == 8_192 * sum(napkin.training_flops(shape, 8_192).values()), found
kept = napkin.activations(shape, found.step())
assert found.activations == sum(kept.values()) - kept["loss"], found
print(grown)
"""


def test_seventy_billion_parameters_take_no_memory() -> None:
    done = subprocess.run([sys.executable, "-c", SEVENTY], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100e6  # one matrix of one layer has 470 MB


# ------------------------------------------------------------------------------------------------- plans


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
        "GPU-hours": lines["time", "of one card"].value,
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
    words |= {("activations on each card", "one layer again"), ("bytes on each card", "activations")}
    assert set(lines) - checked <= words | {("bytes on each card", "in all")}
    kinds = {what: line.value for (group, what), line in lines.items() if group == "bytes on each card"}
    assert kinds.pop("in all") == planned.held == sum(kinds.values())
    assert kinds == napkin.memory(model, step)
    assert flops == 3e11 * a_token
    assert lines["time", "of one card"].value == napkin.run(flops, peak=peak, mfu=0.3).gpu_hours


def test_what_is_not_given_is_taken_from_the_table_of_facts() -> None:
    model = napkin.PUBLISHED["GPT-2 small"]
    planned = napkin.plan(model, napkin.Step(1, 1_024))
    lines = {(line.group, line.what): line for line in planned.lines}
    assert planned["FLOPs", "tokens"] == 20 * model.parameters
    assert FACTS["Chinchilla tokens"].value == 20 * FACTS["Chinchilla parameters"].value
    assert planned["time", "MFU"] == FACTS["Llama 3.1 405B MFU, 16,384 GPUs"].value
    rent = FACTS["H100 SXM rent"]
    assert planned["cost", "rent"] == planned["time", "of one card"] * rent.value
    assert rent.source in lines["cost", "rent"].source and rent.date in lines["cost", "rent"].source
    for card in ("RTX 4090", "T4", "Apple M4 Max"):
        lines = {(x.group, x.what): x for x in napkin.plan(model, napkin.Step(1, 8, "float32"), card=card).lines}
        assert ("cost", "rent") not in lines and lines["time", "peak"].source == ACCELERATORS[card].source


def test_a_card_without_bfloat16_takes_float16() -> None:
    model, step = napkin.PUBLISHED["GPT-2 small"], napkin.Step(1, 8)
    assert napkin.plan(model, step, card="T4")["time", "peak"] == ACCELERATORS["T4"].peak[torch.float16]
    with pytest.raises(ValueError, match="Apple M1 promises no rate in 16 bits: choose the recipe 'float32'"):
        napkin.plan(model, step, card="Apple M1")


def test_a_module_and_its_shape_have_the_same_plan() -> None:
    found = napkin.trace(lambda: Llama(SHAPES[1]), IDS)
    step = found.step(cards=4, zero=2)
    by_shape = napkin.plan(SHAPES[1], step, tokens=1e9)
    by_module = napkin.plan(found, step, tokens=1e9)
    for key in [("parameters", "in all"), ("FLOPs", "training"), ("time", "training"), ("cost", "rent")]:
        assert by_module[key] == pytest.approx(by_shape[key], rel=1e-12)
    loss = by_shape["activations on each card", "loss"]
    assert by_module.held == by_shape.held - loss
    with pytest.raises(ValueError, match=r"Llama was traced for Step\(batch=2, context=24, .* traced.step"):
        napkin.plan(found, replace(step, batch=4))


def test_a_module_without_inputs_is_planned_by_the_rule() -> None:
    found = napkin.trace(Scorer)
    planned = napkin.plan(found, napkin.Step(8, 128), tokens=1e9)
    assert found.flops is None and found.activations is None
    assert planned["FLOPs", "training"] == 6e9 * found.parameters
    assert str(planned).count("for want of an input") == 2
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


def test_advice_is_true() -> None:
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
                    assert readable(planned.held - limit, "B") + " too much" in planned.verdict
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


def test_what_no_sharing_helps_is_said() -> None:
    model = napkin.PUBLISHED["Llama 3.1 405B"]
    planned = napkin.plan(model, napkin.Step(1, 131_072))
    assert len(planned.advice) == 1
    assert planned.advice[0].startswith("a shorter context: its activations take 695 GB on each card")
    found = napkin.trace(lambda: Llama(LLAMA_LIKE), torch.empty(8, 1_000, dtype=torch.int64))
    tight = replace(ACCELERATORS["H100 SXM"], memory_bytes=1_000_000)
    assert napkin.plan(found, found.step(), card=tight).advice[0].startswith("a smaller input: ")


def test_a_line_that_is_not_there_names_those_that_are() -> None:
    planned = napkin.plan(LLAMA_LIKE, napkin.Step(1, 8))
    with pytest.raises(
        LookupError, match=r"\('time', 'tea'\) is no line of this plan; it has .*\('time', 'training'\)"
    ):
        planned["time", "tea"]


def test_a_notebook_shows_a_table() -> None:
    planned = napkin.plan(LLAMA_LIKE, napkin.Step(1, 8), name="<mine>")
    shown = planned._repr_html_()
    assert shown.count("<tr>") == len(planned.lines) + len({line.group for line in planned.lines})
    assert "&lt;mine&gt;" in shown and planned.verdict in shown


# ------------------------------------------------------------------------------------------- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def test_the_command_prints_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(
        capsys, "--model", "llama 3.1 70b", "--cards", "64", "--zero", "3", "--checkpointing", "--tokens", "15T"
    )
    step = napkin.Step(1, 2_048, cards=64, zero=3, checkpointing=True)
    model = napkin.PUBLISHED["Llama 3.1 70B"]
    assert shown == f"{napkin.plan(model, step, tokens=15e12, name='Llama 3.1 70B')}\n"
    marks = {int(mark) for mark in re.findall(r"\[(\d+)\]$", shown, re.M)}
    assert marks == {int(mark) for mark in re.findall(r"^\[(\d+)\] ", shown, re.M)} == set(range(1, max(marks) + 1))


def test_the_command_takes_a_shape_and_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--layers 3 --width 64 --heads 4 --vocabulary 300 --kv-heads 2 --feed-forward 160 --gated --rms-norm"
    arguments += " --head-width 32 --batch 2 --context 24 --recipe float32 --optimizer SGD --unfused-attention --json"
    arguments += " --card A10G --tokens 1B --mfu 0.2 --price 1.5"
    shape = replace(SHAPES[1], head_width=32)
    step = napkin.Step(2, 24, "float32", "SGD", fused_attention=False)
    planned = napkin.plan(shape, step, card="A10G", tokens=1e9, mfu=0.2, price=1.5)
    assert json.loads(run(capsys, *arguments.split())) == planned.as_dict()
    assert planned["cost", "rent"] == 1.5 * planned["time", "of one card"]


def test_the_command_gives_a_learned_table_a_row_for_each_place(capsys: pytest.CaptureFixture[str]) -> None:
    model = napkin.PUBLISHED["GPT-2 small"]
    for context in (64, model.positions, 4_096):
        planned = json.loads(run(capsys, "--model", "GPT-2 small", "--context", str(context), "--json"))
        values = {(line["group"], line["what"]): line["value"] for line in planned["lines"]}
        more = max(0, context - model.positions) * model.width
        assert values["parameters", "in all"] == model.parameters + more


def test_the_command_takes_a_module_and_a_card_of_your_own(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--module", "test_planner:Scorer", "--json", "--peak", "1e12", "--memory", "16e9"]
    counted = json.loads(run(capsys, *given, "--input", "int64[2, 24]", "--cards", "2"))
    values = {(line["group"], line["what"]): line["value"] for line in counted["lines"]}
    found = napkin.trace(Scorer, IDS)
    assert values["bytes on each card", "activations"] == found.activations
    assert values["FLOPs", "a token"] == found.flops / 48
    assert values["time", "peak"] == 1e12 and counted["fits"] and "of 16 GB" in counted["verdict"]
    ruled = json.loads(run(capsys, *given, "--batch", "4"))
    values = {(line["group"], line["what"]): line["value"] for line in ruled["lines"]}
    assert values["FLOPs", "a token"] == 6 * found.parameters and values["time", "tokens in a step"] == 4 * 2_048


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], r"give a model: --model NAME, --module MODULE:FUNCTION, or a shape \(--layers, .* missing\)"),
        (["--layers", "2", "--width", "64"], r"\(--heads, --vocabulary missing\)"),
        (["--model", "Llama 3 70B"], "no model called 'Llama 3 70B'. Near it: Llama 3.1 70B"),
        (["--model", "GPT-3", "--rms-norm"], "--rms-norm: the shape of GPT-3 is known"),
        (["--model", "GPT-3", "--card", "H100"], "no card called 'H100'. Near it: H100 SXM, H100 PCIe, H100 NVL"),
        (["--model", "GPT-3", "--card", "abacus"], "no card called 'abacus'. Near it: V100 SXM2 16GB, "),
        (["--model", "GPT-3", "--memory", "1e9"], "--memory needs --card or --peak"),
        (["--model", "GPT-3", "--input", "int64[2]"], "--input is that of a module"),
        (["--model", "GPT-3", "--tokens", "many"], "--tokens: 'many' is no number; wanted one such as 0.4"),
        (["--model", "GPT-3", "--tokens", "-1"], "tokens is -1.0: it must be positive"),
        (["--model", "GPT-3", "--mfu", "41"], "mfu is 41.0: give it as a share of the peak"),
        (["--model", "GPT-3", "--batch", "1.5"], "'1.5' is no count; wanted 1, 2, 3"),
        (["--model", "GPT-3", "--recipe", "float8"], "invalid choice: 'float8' .*bfloat16 alone"),
        (["--layers", "1", "--width", "64", "--heads", "5", "--vocabulary", "9"], "5 heads cannot share a width of 64"),
        (["--module", "test_planner"], "wanted MODULE:FUNCTION, such as my_package.model:make"),
        (["--module", "no_such_package:make"], "No module named 'no_such_package'; it is looked for here"),
        (["--module", "test_planner:no"], "test_planner has no function no"),
        (["--module", "test_planner:Scorer", "--checkpointing"], "--checkpointing does not go with --module"),
        (["--module", "test_planner:Scorer", "--input", "2, 24"], 'wanted a dtype and a shape, such as "int64'),
        (
            ["--module", "test_planner:Scorer", "--input", "int64[2, 24]", "--batch", "2"],
            "--batch and --context do not",
        ),
        (["--module", "test_planner:Scorer", "--input", "float32[2, 24]"], r"does not run on bfloat16\[2, 24\]"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    shown = capsys.readouterr()
    assert re.search(says, shown.err) and not shown.out


def test_help_has_examples_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    examples = re.findall(r"^  python -m course_utils.napkin (.*)$", capsys.readouterr().out, re.M)
    assert len(examples) == 4
    for example in examples:
        words = re.findall(r'"([^"]*)"|(\S+)', example.replace("my_package.model:make", "test_planner:Scorer"))
        assert run(capsys, *(quoted or word for quoted, word in words))
    listed = run(capsys, "--list").split("\n  ")
    assert {*napkin.PUBLISHED, *ACCELERATORS} <= {line.splitlines()[0] for line in listed if line}


def test_the_arithmetic_does_without_pytorch() -> None:
    code = "import sys; from course_utils import napkin; napkin.memory(napkin.PUBLISHED['GPT-3'], napkin.Step(1, 8))"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True, cwd=REPOSITORY)
    done = subprocess.run(
        [sys.executable, "-m", "course_utils.napkin", "--model", "GPT-4"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "no model called 'GPT-4'" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE there")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-u", "-m", "course_utils.napkin", "--model", "GPT-3", "--json"]
    running = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout and running.stderr
    running.stdout.close()
    assert running.stderr.read() == b""
    running.wait()
