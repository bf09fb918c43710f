"""The planner's trace of any module: the meta device against the same module on a CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import LLAMA_LIKE, SHAPES, Again, Llama, Scorer, lecture
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attend
from torch.utils.checkpoint import checkpoint

from course_utils import napkin
from course_utils.flops import count_flops
from course_utils.memory import saved_bytes

REPOSITORY = Path(__file__).parents[2]
IDS = torch.empty(2, 24, dtype=torch.int64, device="meta")


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
def test_a_trace_on_the_meta_device_finds_what_a_cpu_does(name: str, recipe: str) -> None:
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
        assert found.flops + found.recomputed == count_flops(lambda: model(ids).float().sum().backward())
    assert (found.recomputed > 0) == (name == "checkpointed")


class Reentrant(Again):
    """The older kind of checkpoint."""

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.layer, x, use_reentrant=True)


@pytest.mark.parametrize("kind", [Again, Reentrant])
def test_what_checkpoints_compute_again_is_not_the_models_work(kind: type[Again]) -> None:
    def make(wrap: Callable[[nn.Module], nn.Module]) -> nn.Module:
        layers = (wrap(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))) for _ in range(3))
        return nn.Sequential(nn.Embedding(9, 64), *layers)

    plain, again = (napkin.trace(lambda wrap=wrap: make(wrap), IDS) for wrap in (lambda layer: layer, kind))
    assert plain.flops == again.flops and plain.recomputed == 0
    assert again.recomputed in (plain.flops / 3, plain.flops / 6)  # it may stop before the last product
    assert again.activations < plain.activations
    planned = napkin.plan(again, again.step(), tokens=1e6, mfu=1)
    assert planned["FLOPs", "training"] == napkin.plan(plain, plain.step(), tokens=1e6)["FLOPs", "training"]
    assert planned["FLOPs", "computed again"] == pytest.approx(again.recomputed / IDS.numel() * 1e6)
    assert planned["time", "a step's compute at the peak"] > planned["time", "a step's compute at the MFU"]


def test_lecture_08s_model_is_traced_as_it_is_measured() -> None:
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
    with pytest.raises(ValueError, match="Sequential's inputs are not ids: set tokens to the number of samples"):
        napkin.plan(found, found.step())


def test_attention_without_fusing_keeps_its_weights() -> None:
    fused, plain = (napkin.trace(lambda: Llama(LLAMA_LIKE), IDS, fused_attention=fused) for fused in (True, False))
    assert fused.flops == plain.flops
    weights = 2 * 2 * LLAMA_LIKE.heads * 24 * 24 * LLAMA_LIKE.layers
    assert plain.activations - fused.activations >= weights - 4 * 2 * 24 * LLAMA_LIKE.heads * LLAMA_LIKE.layers


class ByName(nn.Module):
    """Attention that is called by a name of the module's own."""

    def __init__(self, called: Callable[..., Tensor]) -> None:
        super().__init__()
        self.tokens, self.mix, self.called = nn.Embedding(50, 64), nn.Linear(64, 3 * 64), called

    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = self.mix(self.tokens(ids)).unflatten(-1, (3, 4, 16)).movedim(2, 0).transpose(2, 3)
        return self.called(q, k, v, is_causal=True)


def test_attention_is_fused_by_whatever_name_a_module_calls_it() -> None:
    ids = torch.empty(2, 256, dtype=torch.int64)
    names: list[Callable[..., Tensor]] = [
        attend,
        torch._C._nn.scaled_dot_product_attention,
        lambda *args, **how: nn.functional.scaled_dot_product_attention(*args, **how),
    ]
    found = [napkin.trace(lambda name=name: ByName(name), ids, recipe="float32") for name in names]
    assert len({f.activations for f in found}) == len({f.flops for f in found}) == 1
    measured = saved_bytes(ByName(attend), torch.randint(50, ids.shape))
    assert found[0].activations == measured
    plain = napkin.trace(lambda: ByName(attend), ids, recipe="float32", fused_attention=False)
    assert plain.activations > 2 * 4 * 256 * 256 * 4  # the T × T weights of two sequences and four heads


class Adapter(nn.Module):
    """A frozen matrix, and LoRA beside it."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.frozen = nn.Linear(width, width, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))


def test_adapters_beside_frozen_matrices_are_counted_apart() -> None:
    width, rank = 64, 4
    make = lambda: nn.Sequential(nn.Embedding(50, width), *(Adapter(width, rank) for _ in range(3)))  # noqa: E731
    found = napkin.trace(make, IDS)
    adapters, frozen = 3 * 2 * width * rank, 3 * width**2
    assert (found.parameters, found.frozen) == (50 * width + adapters, frozen)
    # Trained weights take 6, frozen ones 4 FLOPs a token; nothing trained lies before the first adapter but the table.
    assert found.flops == IDS.numel() * (4 * frozen + 6 * adapters)
    alone = napkin.trace(lambda: nn.Sequential(*(Adapter(width, rank) for _ in range(3))), recipe="float32")
    planned = napkin.plan(alone, napkin.Step(2, 24, "float32"), tokens=1e9)
    assert planned["FLOPs", "training"] == planned["FLOPs", "rule of thumb"] == 1e9 * (4 * frozen + 6 * adapters)
    assert planned["bytes on each card", "optimizer state"] == 8 * adapters
    assert planned["bytes on each card", "frozen, buffers"] == 4 * frozen
    with pytest.raises(ValueError, match=r"most weights are frozen, and there is no rule .*: set tokens"):
        napkin.plan(alone, napkin.Step(2, 24))


@pytest.mark.parametrize(
    ("build", "inputs", "kind", "says"),
    [
        (nn.Linear(2, 2), [], TypeError, "trace was given a Linear; pass a function that builds the module"),
        (lambda: 3, [], TypeError, "a function that returns int; expected an nn.Module"),
        (lambda: nn.Linear(2, 2, device="cpu"), [], ValueError, "weight is on cpu, where it takes memory; pass"),
        (lambda: nn.Linear(int(torch.ones(1).item()), 2), [], ValueError, "cannot be built on the meta device: "),
        (lambda: nn.ReLU(), [], ValueError, "ReLU has no trainable parameters"),
        (lambda: nn.Linear(2, 2), [torch.empty(3, 5)], ValueError, "Linear does not run on bfloat16[3, 5] on the"),
    ],
)
def test_a_module_that_cannot_be_traced_is_refused_with_the_reason(
    build: Any, inputs: list[Tensor], kind: Any, says: str
) -> None:
    with pytest.raises(kind, match=re.escape(says)):
        napkin.trace(build, *inputs)


SEVENTY = """
import sys
sys.path.insert(0, "tests/unit")
import psutil, torch
from small_models import Llama
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


def test_tracing_seventy_billion_parameters_takes_almost_no_memory() -> None:
    done = subprocess.run([sys.executable, "-c", SEVENTY], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100e6  # one matrix of one layer has 470 MB
