"""Parallelism: collectives against simulated ranks, bytes of each card, what a step sends; LoRA and optimizers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from small_models import LLAMA_LIKE, Llama
from torch import nn

from course_utils import napkin
from course_utils.cards import ACCELERATORS, Accelerator, Link
from course_utils.napkin.collectives import levels

H100 = ACCELERATORS["H100 SXM"]
SEVENTY, DEEPSEEK = napkin.PUBLISHED["Llama 3.1 70B"], napkin.PUBLISHED["DeepSeek-V3"]


def ring(buffers: list[list[float]]) -> list[int]:
    """All-reduce the buffers in place as a ring of messages; numbers that each rank sends."""
    ranks, sent = len(buffers), [0] * len(buffers)
    edges = [round(i * len(buffers[0]) / ranks) for i in range(ranks + 1)]
    for phase in range(2):  # reduce-scatter, all-gather
        for turn in range(ranks - 1):
            parts = [(r - turn + phase) % ranks for r in range(ranks)]
            messages = [buffers[r][edges[p] : edges[p + 1]] for r, p in enumerate(parts)]
            for r, (p, message) in enumerate(zip(parts, messages, strict=True)):
                target = buffers[(r + 1) % ranks]
                for i, number in enumerate(message, edges[p]):
                    target[i] = target[i] + number if phase == 0 else number
                sent[r] += len(message)
    return sent


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_rank_sends_in_an_all_reduce_what_a_simulated_ring_sends(ranks: int) -> None:
    size = 24 * ranks
    buffers = [[float(r * size + i) for i in range(size)] for r in range(ranks)]
    total = [sum(column) for column in zip(*buffers, strict=True)]
    sent = ring(buffers)
    assert all(buffer == total for buffer in buffers)
    assert set(sent) == {napkin.sent("all_reduce", size, ranks)}
    assert 2 * napkin.sent("reduce_scatter", size, ranks) == 2 * napkin.sent("all_gather", size, ranks) == sent[0]


def test_a_ring_is_best_for_long_buffers_and_a_tree_for_short_ones() -> None:
    how = {"ranks": 64, "bandwidth": 50e9, "latency": 5e-6}
    assert napkin.all_reduce(1e9, **how) < napkin.all_reduce(1e9, algorithm="tree", **how)
    assert napkin.all_reduce(1e3, **how) > napkin.all_reduce(1e3, algorithm="tree", **how)
    assert napkin.all_reduce(1e9, 64, 50e9, algorithm="tree") == pytest.approx(2 * 6 * 1e9 / 50e9)
    assert napkin.all_reduce(16e9, 8, 450e9) == pytest.approx(2 * 7 / 8 * 16e9 / 450e9)
    assert napkin.all_reduce(1e9, 1, 50e9) == napkin.all_reduce(1e9, 1, 50e9, algorithm="tree") == 0
    assert (
        napkin.all_gather(8e9, 8, 1e9, latency=1e-3)
        == pytest.approx(7 + 7e-3)
        == napkin.all_to_all(8e9, 8, 1e9, latency=1e-3)
    )
    with pytest.raises(ValueError, match="0 ranks"):
        napkin.sent("all_reduce", 1, 0)


def test_a_collective_crosses_the_links_that_its_ranks_need() -> None:
    def names(ranks: int, stride: int = 1, card: Accelerator = H100) -> list[tuple[str, int]]:
        return [(link.name, count) for link, count in levels(card, ranks, stride)]

    assert names(8) == [("NVLink 4 with NVSwitch", 8)]
    assert names(16) == [("NVLink 4 with NVSwitch", 8), ("InfiniBand NDR", 2)]
    assert names(4, 8) == [("InfiniBand NDR", 4)]  # one card of each machine
    assert names(8, 2) == [("NVLink 4 with NVSwitch", 4), ("InfiniBand NDR", 2)]
    assert names(1) == []
    pairs = ACCELERATORS["H100 PCIe"]
    assert names(8, card=pairs) == [("NVLink bridge", 2), ("PCIe 5.0 x16", 4)]
    with pytest.raises(ValueError, match="H100 PCIe has no link in the table that connects 16 cards"):
        levels(pairs, 16)
    # Between machines each card moves only its share of what its machine has summed up.
    both = napkin.collective("all_reduce", 8e9, 16, H100)
    assert both == pytest.approx(max(2 * 7 / 8 * 8e9 / 450e9, 2 * 1 / 2 * 1e9 / 50e9))
    assert both.sources == H100.sources


def test_tensor_pipeline_and_expert_parallelism_divide_what_a_card_holds() -> None:
    alone = napkin.memory(SEVENTY, napkin.Step(1, 2_048))
    kinds = set(alone) - {"activations"}
    for tensor, pipeline in [(8, 1), (1, 8), (4, 2)]:
        step = napkin.Step(1, 2_048, cards=8, tensor=tensor, pipeline=pipeline)
        held = napkin.memory(SEVENTY, step)
        assert step.groups == 1 and all(held[kind] == math.ceil(alone[kind] / 8) for kind in kinds)
    # Routed experts are divided among groups, the rest is not; ZeRO divides all among all.
    step = napkin.Step(1, 8, cards=64, expert=32)
    held = napkin.memory(DEEPSEEK, step)
    rest = DEEPSEEK.parameters - DEEPSEEK.routed
    assert held["parameters"] == math.ceil(2 * (rest + DEEPSEEK.routed / 32))
    sharded = napkin.memory(DEEPSEEK, replace(step, zero=3))
    assert sharded["parameters"] == math.ceil(2 * DEEPSEEK.parameters / 64)


def test_a_pipelines_first_stage_holds_a_batch_for_each_stage() -> None:
    one = napkin.activations(SEVENTY, napkin.Step(1, 2_048))
    full = napkin.Step(1, 2_048, cards=8, pipeline=8, accumulation=8)
    assert napkin.activations(SEVENTY, full)["layers"] == one["layers"]  # 8 batches of an eighth of the layers
    two = napkin.activations(SEVENTY, replace(full, accumulation=2))
    assert two["layers"] == one["layers"] / 4
    divided = napkin.activations(SEVENTY, napkin.Step(1, 2_048, cards=8, tensor=8))
    assert sum(divided.values()) == pytest.approx(sum(one.values()) / 8, rel=1e-6)
    assert napkin.bubble(full) == 7 / 15 and napkin.bubble(napkin.Step(1, 8)) == 0


def test_a_step_sends_what_each_kind_of_parallelism_needs() -> None:
    step = napkin.Step(1, 4_096, cards=64, zero=0)
    sent = napkin.communication(SEVENTY, step, H100)
    assert set(sent) == {"gradients"}
    assert sent["gradients"].nbytes == pytest.approx(2 * 63 / 64 * 2 * SEVENTY.parameters)
    assert sent["gradients"].link == "InfiniBand NDR"
    once, twice = (napkin.communication(SEVENTY, replace(step, zero=z, accumulation=4), H100) for z in (1, 3))
    gathered = 63 / 64 * 2 * SEVENTY.parameters
    assert once["parameters"].nbytes == pytest.approx(gathered)
    assert twice["parameters"].nbytes == pytest.approx(2 * 4 * gathered)
    assert once["gradients"].nbytes == twice["gradients"].nbytes == pytest.approx(gathered)

    tensor = napkin.communication(SEVENTY, napkin.Step(1, 4_096, cards=8, tensor=8), H100)
    assert set(tensor) == {"tensor"}
    one = 2 * 4_096 * SEVENTY.width
    assert tensor["tensor"].nbytes == pytest.approx(4 * 80 * 2 * 7 / 8 * one)
    assert tensor["tensor"].seconds == pytest.approx(tensor["tensor"].nbytes / 450e9)
    again = napkin.communication(SEVENTY, napkin.Step(1, 4_096, cards=8, tensor=8, checkpointing=True), H100)
    assert again["tensor"].nbytes == pytest.approx(1.5 * tensor["tensor"].nbytes)

    pipeline = napkin.communication(SEVENTY, napkin.Step(1, 4_096, cards=8, pipeline=8, accumulation=3), H100)
    assert set(pipeline) == {"pipeline"} and pipeline["pipeline"].nbytes == 2 * 3 * one

    experts = napkin.communication(DEEPSEEK, napkin.Step(1, 4_096, cards=64, expert=64), H100)
    assert experts["experts"].nbytes == pytest.approx(4 * 58 * 63 / 64 * 2 * 4_096 * 8 * 7_168)


def test_a_plan_is_as_slow_as_its_slowest_part_and_says_which() -> None:
    slow = replace(H100, links=(Link("a wire", 1e9, None),))
    step = napkin.Step(1, 2_048, cards=8)
    fast, waiting = (napkin.plan(SEVENTY, step, card=card, tokens=1e12) for card in (H100, slow))
    assert fast["time", "a step"] == fast["time", "a step's compute at the MFU"]
    assert waiting["time", "a step"] == waiting["time", "sending gradients"]
    assert waiting["time", "MFU reached"] < fast["time", "MFU"]
    assert ("time", "MFU reached") not in {(line.group, line.what) for line in fast.lines}
    assert waiting["cost", "rent"] > fast["cost", "rent"] and waiting["energy", "cards alone"] > 0


def test_recomputation_is_not_the_models_work() -> None:
    plain, again = (
        napkin.plan(SEVENTY, napkin.Step(1, 2_048, cards=8, checkpointing=c), tokens=1e12) for c in (False, True)
    )
    assert plain["FLOPs", "training"] == again["FLOPs", "training"]
    assert plain["time", "a step's compute at the MFU"] == again["time", "a step's compute at the MFU"]
    peak = [
        napkin.plan(SEVENTY, napkin.Step(1, 2_048, checkpointing=c), tokens=1e12, mfu=1)["time", "a step"]
        for c in (0, 1)
    ]
    assert peak[1] / peak[0] == pytest.approx(4 / 3, abs=0.01)  # at the peak there is no time for it


class LoRA(nn.Module):
    """A frozen matrix with an adapter."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + self.up(self.down(x))


def test_adapters_are_those_of_a_module_and_take_its_flops() -> None:
    """The first layer's frozen matrices need no gradient of their input: the module does a little less."""
    shape, rank, ids = replace(LLAMA_LIKE, layers=4), 4, torch.empty(2, 24, dtype=torch.int64, device="meta")

    def adapted() -> nn.Module:
        model = Llama(shape).requires_grad_(False)
        for layer in model.layers:
            for name, part in list(layer.named_children()):
                setattr(layer, name, LoRA(part, rank))
        return model

    found = napkin.trace(adapted, ids)
    step = napkin.Step(2, 24, lora=rank)
    assert found.parameters == napkin.adapters(shape, step) and found.frozen == shape.parameters
    whole = sum(napkin.training_flops(shape, 24, step).values()) * ids.numel()
    assert 0.85 * whole < found.flops < whole
    kinds = napkin.memory(shape, step)
    assert kinds["frozen parameters"] == 2 * shape.parameters
    assert kinds["optimizer state"] == 8 * found.parameters and kinds["gradients"] == 2 * found.parameters
    planned = napkin.plan(shape, step, tokens=1e6)
    assert planned["parameters", "adapters"] == found.parameters
    assert planned["FLOPs", "training"] == pytest.approx(whole / ids.numel() * 1e6)


@pytest.mark.parametrize("name", napkin.OPTIMIZERS)
def test_an_optimizer_keeps_what_torch_keeps(name: str) -> None:
    shape = replace(LLAMA_LIKE, width=128, heads=4, kv_heads=2, feed_forward=320)
    model = Llama(shape)
    tables = {id(model.tokens.weight), id(model.head.weight)}
    matrices = [p for p in model.parameters() if p.dim() == 2 and id(p) not in tables]
    others = [p for p in model.parameters() if p.dim() != 2 or id(p) in tables]
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    made = {
        "SGD": lambda: [torch.optim.SGD(model.parameters())],
        "SGD with momentum": lambda: [torch.optim.SGD(model.parameters(), momentum=0.9)],
        "AdamW": lambda: [torch.optim.AdamW(model.parameters())],
        "Adafactor": lambda: [torch.optim.Adafactor(model.parameters())],
        "Muon": lambda: [torch.optim.Muon(matrices), torch.optim.AdamW(others)],
    }
    if name == "Lion":  # torch has none; it keeps one moment
        kept = 4 * shape.parameters
    else:
        optimizers = made[name]()
        for optimizer in optimizers:
            optimizer.step()
        tensors = [
            v for o in optimizers for s in o.state.values() for v in s.values() if torch.is_tensor(v) and v.dim()
        ]
        kept = sum(v.nbytes for v in tensors)
    for found in (shape, napkin.trace(lambda: Llama(shape))):
        planned = napkin.plan(found, napkin.Step(1, 8, "float32", name), tokens=1e6)
        assert planned["bytes on each card", "optimizer state"] == kept


def test_muon_multiplies_matrices_by_themselves() -> None:
    """122,880 FLOPs for each weight of a 4,096 × 4,096 matrix, as five rounds of three products."""
    n, m = 64, 96
    x = torch.empty(n, m, device="meta")

    def rounds() -> None:
        y = x
        for _ in range(5):
            gram = y @ y.T
            y = (gram @ gram + gram) @ y

    assert count(rounds) == napkin.orthogonalizing_flops(n, m) == napkin.orthogonalizing_flops(m, n)
    assert napkin.orthogonalizing_flops(4_096, 4_096) / 4_096**2 == 122_880
    model = napkin.PUBLISHED["Llama 3.1 8B"]
    step = napkin.Step(1, 8, optimizer="Muon")
    assert napkin.optimizer_flops(model, replace(step, optimizer="AdamW")) == 0
    layer = [*model.attention.values(), *model.block(model.hidden).values()]
    assert napkin.optimizer_flops(model, step) == 32 * sum(napkin.orthogonalizing_flops(*shape) for shape in layer)


def count(fn: object) -> int:
    from course_utils.flops import count_flops

    return count_flops(fn)  # type: ignore[arg-type]


def test_narrow_recipes_take_the_peak_of_their_dtype_where_they_multiply_in_it() -> None:
    model = napkin.PUBLISHED["Llama 3.1 70B"]
    bf16 = napkin.plan(model, napkin.Step(1, 8_192), card="B200", tokens=1e9)
    recipes = ("float8, float32 master copy", "NVFP4, float32 master copy")
    fp8, fp4 = (napkin.plan(model, napkin.Step(1, 8_192, r), card="B200", tokens=1e9) for r in recipes)
    assert bf16["time", "peak"] == 2250e12 and fp8["time", "peak in layers"] == 4500e12
    assert fp4["time", "peak in layers"] == 9000e12 and fp4["time", "peak elsewhere"] == 2250e12
    assert 2250e12 < fp8["time", "peak"] < 4500e12 < 2 * fp4["time", "peak"] < 18_000e12
    assert fp8["bytes on each card", "parameters"] == model.parameters
    assert fp4["bytes on each card", "parameters"] == 0.5625 * model.parameters
    with pytest.raises(ValueError, match="the table has no 4-bit peak of H100 SXM: choose the recipe 'float32'"):
        napkin.plan(model, napkin.Step(1, 8, recipes[1]), card="H100 SXM")


def test_a_plan_that_nobody_would_run_is_warned_of() -> None:
    eight = napkin.PUBLISHED["Llama 3.1 8B"]

    def said(step: napkin.Step, **how: object) -> str:
        return " ".join(napkin.plan(eight, step, **how).warnings)  # type: ignore[arg-type]

    assert said(napkin.Step(1, 8_192, cards=64, zero=3), tokens=15e12) == ""
    assert "134 million tokens in a step; the most in the table" in said(
        napkin.Step(1, 8_192, cards=16_384), tokens=15e12
    )
    assert "only 76.3 steps" in said(napkin.Step(1, 8_192, cards=16), tokens=1e7)
    assert "an MFU of 0.9 is above the best" in said(napkin.Step(1, 8_192), mfu=0.9)
    assert "tensor parallelism over 16 cards goes beyond NVLink 4" in said(napkin.Step(1, 8_192, cards=16, tensor=16))
    idle = said(napkin.Step(1, 8_192, cards=8, pipeline=8))
    assert "are idle for 88% of a step" in idle and "for all FLOPs at the peak (recomputation" in idle
    assert "T4 has no bfloat16; this plan uses float16" in said(napkin.Step(1, 8), card="T4")
    shown = str(napkin.plan(eight, napkin.Step(1, 8), card="T4"))
    assert shown.splitlines()[0].endswith("1 × T4, float16, float32 master copy, AdamW") and "Warning: T4" in shown
    assert "Warning: T4" in napkin.plan(eight, napkin.Step(1, 8), card="T4")._repr_html_()
