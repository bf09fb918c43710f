"""The planner's ledger against PyTorch and the lectures: parameters, FLOPs, bytes and time."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_models import LLAMA_LIKE, SHAPES, Again, Llama, RMSNorm, lecture, loss
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_utils import napkin
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.memory import saved_bytes


@pytest.fixture(scope="module")
def optimizers() -> dict[str, Any]:
    return lecture("08_optimizers.py", "Transformer", "transformer_numbers")


# As their papers print them; PaLM's layers have one norm where ours have two.
ROUNDED = {"GPT-3": 1e9, "PaLM 540B": 0.02e9, "Mixtral 8x7B": 1e9, "DeepSeek-V3": 1e9}


@pytest.mark.parametrize("name", [name for name in napkin.PUBLISHED if name != "nanochat d24"])
def test_published_shapes_have_the_published_number_of_parameters(name: str) -> None:
    counted, published = napkin.PUBLISHED[name].parameters, FACTS[f"{name} parameters"].value
    assert abs(counted - published) <= ROUNDED.get(name, 0) / 2


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_parameters_are_those_of_a_module(optimizers: dict[str, Any], biases: bool, tied: bool) -> None:
    with torch.device("meta"):
        model = optimizers["Transformer"](vocab=97, context=11, d=24, heads=3, layers=5)
        if biases:
            for block in model.blocks:
                block.biases = nn.ParameterList(
                    torch.empty(part.out_features) for part in block.modules() if isinstance(part, nn.Linear)
                )
        if tied:
            model.head.weight = model.tokens.weight
        llamas = {shape: Llama(shape) for shape in SHAPES}
    shape = napkin.Transformer(5, 24, 3, 97, positions=11, biases=biases, tied=tied)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert all(shape.parameters == sum(p.numel() for p in llama.parameters()) for shape, llama in llamas.items())


def test_activations_are_those_that_lecture_08_predicts_and_measures(optimizers: dict[str, Any]) -> None:
    sizes = {"vocab": 97, "context": 16, "d": 24, "heads": 3, "layers": 5}
    shape = napkin.Transformer(5, 24, 3, 97, positions=16)
    step = napkin.Step(batch=4, context=16, recipe="float32", fused_attention=False)
    want = optimizers["transformer_kept"](4, **sizes)
    got = napkin.activations(shape, step)
    assert sum(got.values()) == sum(want.values())
    assert got["attention weights"] == want["attention's weights"] and got["loss"] == want["the loss"]
    model, ids = optimizers["Transformer"](**sizes), torch.randint(97, (4, 16))
    assert saved_bytes(loss, model, ids) == sum(got.values())


@pytest.mark.parametrize(("batch", "context", "layers"), [(4, 32, 3), (1, 64, 1), (2, 33, 5)])
def test_fused_attention_and_gates_are_counted_as_torch_keeps_them(batch: int, context: int, layers: int) -> None:
    shape = replace(LLAMA_LIKE, layers=layers)
    model, ids = Llama(shape), torch.randint(shape.vocabulary, (batch, context))
    step = napkin.Step(batch, context, "float32", fused_attention=True)
    assert saved_bytes(loss, model, ids) == sum(napkin.activations(shape, step).values())


def test_keys_and_values_of_fewer_heads_take_less() -> None:
    few, step = replace(LLAMA_LIKE, kv_heads=1), napkin.Step(4, 32, "float32")
    saved = sum(napkin.activations(LLAMA_LIKE, step).values()) - sum(napkin.activations(few, step).values())
    assert saved == 4 * LLAMA_LIKE.layers * 4 * 32 * 2 * (64 - 16)


def test_activations_in_16_bits_are_counted_as_torch_keeps_them() -> None:
    shape, step = LLAMA_LIKE, napkin.Step(4, 32, "bfloat16, float32 master copy")
    model, ids = Llama(shape).bfloat16(), torch.randint(shape.vocabulary, (4, 32))
    assert saved_bytes(loss, model, ids) == sum(napkin.activations(shape, step).values())


def test_with_checkpointing_only_the_inputs_of_layers_are_kept() -> None:
    shape, step = LLAMA_LIKE, napkin.Step(4, 32, "float32", checkpointing=True)
    model, ids = Llama(shape), torch.randint(shape.vocabulary, (4, 32))
    parts = napkin.activations(shape, step)
    again = parts.pop("recomputed layer")

    def recomputed(ids: Tensor) -> Tensor:
        x = model.tokens(ids)
        for layer in model.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        logits = model.head(RMSNorm.apply(x, model.scale))
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())

    assert saved_bytes(recomputed, ids, exclude=model) == sum(parts.values())
    one, two = (
        sum(napkin.activations(replace(shape, layers=n), replace(step, checkpointing=False)).values()) for n in (1, 2)
    )
    assert again == two - one - parts["layers"] // shape.layers


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("batch", "context"), [(2, 24), (1, 7)])
def test_flops_are_those_that_torch_counts(shape: napkin.Transformer, batch: int, context: int) -> None:
    with torch.device("meta"):
        model, ids = Llama(shape), torch.empty(batch, context, dtype=torch.int64)
    parts = napkin.training_flops(shape, context)
    assert count_flops(lambda: loss(model, ids).backward()) == sum(parts.values()) * batch * context

    for i, layer in enumerate(model.layers):
        model.layers[i] = Again(layer)
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        twice = count_flops(lambda: loss(model, ids).backward())
    again = napkin.recomputed_flops(shape, context)
    assert twice == (sum(parts.values()) + again) * batch * context


@pytest.mark.parametrize("tied", [False, True])
def test_flops_are_those_of_lecture_08s_model(optimizers: dict[str, Any], tied: bool) -> None:
    with torch.device("meta"):
        model, ids = optimizers["Transformer"](97, 16, 24, 3, 5), torch.empty(4, 16, dtype=torch.int64)
        if tied:
            model.head.weight = model.tokens.weight
    parts = napkin.training_flops(napkin.Transformer(5, 24, 3, 97, positions=16, tied=tied), 16)
    assert count_flops(lambda: loss(model, ids).backward()) == sum(parts.values()) * 4 * 16


def test_activations_agree_with_korthikantis_formula_without_dropout() -> None:
    s, b, h, a = 2_048, 3, 4_096, 32
    shape = napkin.Transformer(7, h, a, 1_000)
    parts = napkin.activations(shape, napkin.Step(b, s, fused_attention=False))
    assert parts["layers"] == 7 * (34 - 2) * s * b * h
    assert parts["attention weights"] == 7 * (5 - 3) * a * s**2 * b


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("SGD", lambda p: torch.optim.SGD(p)),
        ("SGD with momentum", lambda p: torch.optim.SGD(p, momentum=0.9)),
        ("AdamW", torch.optim.AdamW),
    ],
)
def test_bytes_of_optimizer_state_are_what_the_optimizer_keeps(name: str, make: Any) -> None:
    model = Llama(LLAMA_LIKE)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer = make(model.parameters())
    optimizer.step()
    kept = [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v) and v.dim()]
    kinds = napkin.memory(LLAMA_LIKE, napkin.Step(1, 8, "float32", name))
    assert kinds["optimizer state"] == sum(v.nbytes for v in kept)
    assert kinds["parameters"] == kinds["gradients"] == sum(p.nbytes for p in model.parameters())
    assert kinds["master copy"] == 0


def test_recipes_take_the_bytes_of_lecture_00() -> None:
    per_parameter = lecture("00_napkin_math.py", "bytes_per_parameter")["bytes_per_parameter"]
    short, full = "bfloat16", "float32"
    recipes = {
        "float32": (full, full, None),
        "bfloat16, float32 master copy": (short, short, full),
        "bfloat16, float32 master copy and gradients": (short, full, full),
        "bfloat16 alone": (short, short, None),
    }
    assert set(napkin.RECIPES) - set(recipes) == {"float8, float32 master copy", "NVFP4, float32 master copy"}
    for recipe, (parameters, gradients, master) in recipes.items():
        for optimizer in ("SGD", "SGD with momentum", "AdamW"):
            kinds = napkin.memory(LLAMA_LIKE, napkin.Step(1, 8, recipe, optimizer))
            per = per_parameter(parameters, gradients, optimizer.split()[-1], master=master)
            assert sum(kinds.values()) - kinds["activations"] == per * LLAMA_LIKE.parameters


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, "120.0"), (1, "31.4"), (2, "16.6"), (3, "1.9")])
def test_zero_shards_as_its_paper_says(stage: Any, gigabytes: str) -> None:
    """Figure 1 there: 7.5 billion parameters on 64 cards, 2 + 2 + 12 bytes for each."""
    shape = napkin.PUBLISHED["Llama 3.1 8B"]
    kinds = napkin.memory(shape, napkin.Step(1, 1, cards=64, zero=stage))
    each = (sum(kinds.values()) - kinds["activations"]) / shape.parameters
    assert f"{each * 7.5:.1f}" == gigabytes


def test_no_zero_stage_adds_memory_and_with_one_card_all_are_equal() -> None:
    for cards in (1, 2, 7, 1_024):
        totals = [sum(napkin.memory(LLAMA_LIKE, napkin.Step(2, 8, cards=cards, zero=z)).values()) for z in range(4)]
        assert totals == sorted(totals, reverse=True)
        assert (len(set(totals)) == 1) == (cards == 1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: napkin.Transformer(1, 64, 5, 10), "5 heads cannot share a width of 64 evenly"),
        (lambda: napkin.Transformer(1, 64, 4, 10, kv_heads=3), "4 heads cannot share 3 key-value heads"),
        (lambda: napkin.Transformer(0, 64, 4, 10), "layers is 0"),
        (lambda: napkin.Step(0, 8), "batch is 0"),
        (lambda: napkin.Step(1, 8, "float8"), "recipe is 'float8': expected one of float32, "),
        (lambda: napkin.Step(1, 8, zero=4), "zero is 4: expected one of 0, 1, 2, 3"),
        (lambda: napkin.Step(1, 8, cards=12, tensor=4, pipeline=2), "12 cards cannot be divided into groups of 4 · 2"),
        (lambda: napkin.Step(1, 8, cards=8, expert=3), "8 groups cannot be split 3 ways for the experts"),
        (lambda: napkin.Step(1, 8, lora=-1), "lora is -1"),
        (lambda: napkin.Experts(4, 5, 8), "5 active experts of 4"),
        (lambda: napkin.Transformer(2, 8, 2, 9, experts=napkin.Experts(4, 1, 8, dense_layers=3)), "3 dense layers"),
        (lambda: napkin.training(0, 1, peak=1, mfu=0.5), "parameters is 0"),
        (lambda: napkin.training(1, 1, peak=1, mfu=50), "give it as a fraction of the peak"),
        (lambda: napkin.run(math.inf, peak=1, mfu=0.5), "flops is inf: it must be positive and finite"),
    ],
)
def test_impossible_shapes_steps_and_runs_are_refused(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        make()


def test_a_training_takes_the_days_of_lecture_00() -> None:
    days = lecture("00_napkin_math.py", "training_days")["training_days"]
    for n, d, cards, mfu in [(70e9, 15e12, 1_024, 0.5), (1e6, 1e8, 1, 0.01), (4e11, 1e13, 16_384, 1.0)]:
        assert napkin.training(n, d, peak=989.5e12, mfu=mfu).days(cards) == pytest.approx(
            days(n, d, cards, 989.5e12, mfu)
        )
    for mfu, said in ((0.4, 179.9), (0.5, 143.9)):  # the lecture's own, and CS336's
        assert round(napkin.training(70e9, 15e12, peak=989.5e12, mfu=mfu).days(1_024), 1) == said
