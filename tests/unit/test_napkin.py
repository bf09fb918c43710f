"""The ledger against torch, the lectures and published runs: parameters, FLOPs, bytes and time."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from course_utils import napkin
from course_utils.facts import FACTS
from course_utils.flops import count_flops
from course_utils.memory import saved_bytes

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def lecture(name: str, *wanted: str) -> dict[str, Any]:
    """The names of a lecture's imports and of the cells that define what is wanted."""
    cells = re.split(r"^# %%", (SOLUTIONS / name).read_text(encoding="utf-8"), flags=re.M)
    code = [cell.partition("\n")[2] for cell in cells if "[markdown]" not in cell.partition("\n")[0]]
    names: dict[str, Any] = {"__name__": "a_lecture"}
    exec(code[1], names)
    for definition in wanted:
        (cell,) = [cell for cell in code if re.search(rf"^(def|class) {definition}\b", cell, re.M)]
        exec(cell, names)
    return names


@pytest.fixture(scope="module")
def optimizers() -> dict[str, Any]:
    return lecture("08_optimizers.py", "Transformer", "transformer_numbers")


class RMSNorm(torch.autograd.Function):
    """A fused norm: what a backward pass needs is its input and a number for each token, in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        scale = x.float().square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        ctx.save_for_backward(x, scale, weight)
        return (x * scale).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, scale, weight = ctx.saved_tensors
        g = grad * weight
        of_x = scale * (g - x * scale.square() * (g * x).mean(-1, keepdim=True))
        return of_x.to(x.dtype), (grad * x * scale).sum((0, 1)).to(weight.dtype)


class LlamaLayer(nn.Module):
    """A layer as Llama has it: grouped keys and values, a gated feed-forward, no biases."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int, head: int) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.q, self.out = nn.Linear(width, heads * head, bias=False), nn.Linear(heads * head, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.scale_1, self.scale_2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        normed = RMSNorm.apply(x, self.scale_1)
        q = self.q(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (part(normed).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for part in (self.k, self.v))
        grouped = self.heads != self.kv_heads
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        normed = RMSNorm.apply(x, self.scale_2)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """A language model of such layers."""

    def __init__(self, shape: napkin.Transformer) -> None:
        super().__init__()
        kv_heads = shape.kv_heads or shape.heads
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        layer = (shape.width, shape.heads, kv_heads, shape.hidden, shape.head_width or shape.width // shape.heads)
        self.layers = nn.Sequential(*(LlamaLayer(*layer) for _ in range(shape.layers)))
        self.scale = nn.Parameter(torch.ones(shape.width))
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(RMSNorm.apply(self.layers(self.tokens(ids)), self.scale))


class Again(nn.Module):
    """A layer that keeps its input only."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.layer, x, use_reentrant=False)


def loss(model: nn.Module, ids: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())


LLAMA_LIKE = napkin.Transformer(3, 64, 4, 300, kv_heads=4, feed_forward=160, gated=True, norm_vectors=1)
SHAPES = (LLAMA_LIKE, replace(LLAMA_LIKE, kv_heads=2), replace(LLAMA_LIKE, heads=3, kv_heads=3, head_width=40))


@pytest.mark.parametrize("name", napkin.PUBLISHED)
def test_published_shapes_have_the_published_number_of_parameters(name: str) -> None:
    counted, published = napkin.PUBLISHED[name].parameters, FACTS[f"{name} parameters"].value
    # GPT-3's paper rounds to 175 billion; the others are exact.
    assert counted == published or (name == "GPT-3" and math.isclose(counted, published, rel_tol=3e-3))


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


def test_sixteen_bits_halve_all_but_statistics_and_the_loss() -> None:
    shape, step = LLAMA_LIKE, napkin.Step(4, 32, "bfloat16, float32 master copy")
    model, ids = Llama(shape).bfloat16(), torch.randint(shape.vocabulary, (4, 32))
    assert saved_bytes(loss, model, ids) == sum(napkin.activations(shape, step).values())


def test_with_recomputation_only_inputs_of_layers_are_kept() -> None:
    shape, step = LLAMA_LIKE, napkin.Step(4, 32, "float32", checkpointing=True)
    model, ids = Llama(shape), torch.randint(shape.vocabulary, (4, 32))
    parts = napkin.activations(shape, step)
    again = parts.pop("one layer again")

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


def test_korthikanti_counts_the_same_without_dropout() -> None:
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
def test_state_is_what_the_optimizer_keeps(name: str, make: Any) -> None:
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
    assert set(recipes) == set(napkin.RECIPES)
    for recipe, (parameters, gradients, master) in recipes.items():
        for optimizer in napkin.OPTIMIZERS:
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


def test_sharing_among_one_changes_nothing_and_never_adds() -> None:
    for cards in (1, 2, 7, 1_024):
        totals = [sum(napkin.memory(LLAMA_LIKE, napkin.Step(2, 8, cards=cards, zero=z)).values()) for z in range(4)]
        assert totals == sorted(totals, reverse=True)
        assert (len(set(totals)) == 1) == (cards == 1)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: napkin.Transformer(1, 64, 5, 10), "5 heads cannot share a width of 64 evenly"),
        (lambda: napkin.Transformer(1, 64, 4, 10, kv_heads=3), "4 heads cannot share 3 of keys and values"),
        (lambda: napkin.Transformer(0, 64, 4, 10), "layers is 0"),
        (lambda: napkin.Step(0, 8), "batch is 0"),
        (lambda: napkin.Step(1, 8, "float8"), "recipe is 'float8': wanted one of float32, "),
        (lambda: napkin.Step(1, 8, zero=4), "zero is 4: wanted one of 0, 1, 2, 3"),
        (lambda: napkin.training(0, 1, peak=1, mfu=0.5), "parameters is 0"),
        (lambda: napkin.training(1, 1, peak=1, mfu=50), "give it as a share of the peak"),
        (lambda: napkin.run(math.inf, peak=1, mfu=0.5), "flops is inf: it must be positive and finite"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        make()


def test_a_training_takes_the_days_of_lecture_00() -> None:
    days = lecture("00_napkin_math.py", "training_days")["training_days"]
    for n, d, cards, mfu in [(70e9, 15e12, 1_024, 0.5), (1e6, 1e8, 1, 0.01), (4e11, 1e13, 16_384, 1.0)]:
        assert napkin.training(n, d, peak=989.5e12, mfu=mfu).days(cards) == pytest.approx(
            days(n, d, cards, 989.5e12, mfu)
        )
    assert round(napkin.training(70e9, 15e12, peak=989.5e12, mfu=0.5).days(1_024), 1) == 143.9


# ------------------------------------------------------------------------------------------- published runs
# What is predicted has to agree with what was published as far as that was written down: each printed number stands
# for all that round to it.

Range = tuple[float, float]


def printed(text: str) -> Range:
    """The numbers that are printed like this: ``"1.4e12"`` is 1.35e12 to 1.45e12."""
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    half = Decimal(5).scaleb(exponent - 1)
    return float(number - half), float(number + half)


def fact(name: str, text: str) -> Range:
    """The range of a fact, given as it is printed in its source."""
    assert FACTS[name].value == pytest.approx(float(text), rel=1e-12)
    return printed(text)


def exact(value: float) -> Range:
    return value, value


def agree(first: Range, second: Range) -> bool:
    """Whether there are numbers that are in both ranges."""
    return first[0] <= second[1] and second[0] <= first[1]


@pytest.mark.parametrize(
    ("run", "flops", "parameters", "data", "tokens"),
    [
        ("GPT-3", "3.14e23", None, "GPT-3", "300e9"),
        ("Chinchilla", "5.76e23", "70e9", "Chinchilla", "1.4e12"),
        ("PaLM 540B", "2.53e24", "540.35e9", "PaLM 540B", "780e9"),
        ("Llama 2 13B", "1.6e23", None, "Llama 2", "2.0e12"),
        ("Llama 3.1 8B", "7.2e23", None, "Llama 3.1", "15e12"),
        ("Llama 3.1 405B", "3.8e25", None, "Llama 3.1 405B", "15.6e12"),
        ("OLMo 2 7B", "1.8e23", "7298617344", "OLMo 2 7B", "4.05e12"),
        ("OLMo 2 13B", "4.6e23", "13716198400", "OLMo 2 13B", "5.6e12"),
        ("Falcon 40B", "28e2", "40e9", "Falcon 40B", "1.00e12"),
        ("Falcon 180B", "435e2", "180e9", "Falcon 180B", "3.5e12"),
    ],
)
def test_published_training_flops(run: str, flops: str, parameters: str | None, data: str, tokens: str) -> None:
    n = fact(f"{run} parameters", parameters) if parameters else exact(napkin.PUBLISHED[run].parameters)
    d = fact(f"{data} tokens", tokens)
    low, high = (napkin.training(n[i], d[i], peak=1, mfu=1).flops for i in range(2))
    name = f"{run} training FLOPs"
    if run.startswith("Falcon"):  # in petaFLOP/s-days
        want = tuple(1e15 * 86_400 * end for end in printed(flops))
        assert FACTS[name].value == 1e15 * 86_400 * float(flops)
    else:
        want = fact(name, flops)
    assert agree((low, high), (want[0], want[1]))
    assert high / low < 1.1 and want[1] / want[0] < 1.07  # two digits say no less


def shape_of(run: str, vocabulary: str, **more: Any) -> napkin.Transformer:
    layers, width, heads = (int(FACTS[f"{run} {what}"].value) for what in ("layers", "width", "heads"))
    return napkin.Transformer(layers, width, heads, int(FACTS[vocabulary].value), **more)


def gpt_of(run: str, vocabulary: str) -> napkin.Transformer:
    positions = int(FACTS[f"{run} context"].value)
    return shape_of(run, vocabulary, positions=positions, tied=True, biases=True)


@pytest.mark.parametrize(
    ("run", "mfu", "throughput"),
    [
        ("MosaicML 1B, long context", "0.2634", "44050"),
        ("MosaicML 7B", "0.4644", "85144"),
        ("MosaicML 13B", "0.3979", "38336"),
        ("MosaicML 70B", "0.4257", "66523"),
        ("MT-NLG 530B", "0.302", "65.43e3"),
        ("PaLM 540B", "0.462", "238.3e3"),
    ],
)
def test_published_mfu(run: str, mfu: str, throughput: str) -> None:
    """All of these count 6 for each parameter, whether it multiplies or not, and attention."""
    if run.startswith("MosaicML"):
        shape, peak = gpt_of(run, "MosaicML vocabulary"), FACTS["H100 SXM sparse peak, as printed"].value / 2
        assert shape.parameters == FACTS[f"{run} parameters"].value
    elif run == "PaLM 540B":
        head, hidden = (int(FACTS[f"{run} {what} width"].value) for what in ("head", "feed forward"))
        ways = {"kv_heads": 1, "gated": True, "tied": True, "norm_vectors": 1}
        shape = shape_of(run, f"{run} vocabulary", feed_forward=hidden, head_width=head, **ways)
        peak = FACTS["TPU v4 bfloat16 peak"].value
        # Of the last digit printed our norms are a half too many.
        assert shape.parameters == pytest.approx(FACTS[f"{run} parameters"].value, abs=0.01e9)
    else:
        shape, peak = gpt_of(run, "Megatron vocabulary"), FACTS["A100 SXM 80GB bfloat16 peak"].value
        assert agree(exact(shape.parameters), fact(f"{run} parameters", "530e9"))
    context = int(FACTS[f"{run} context"].value)
    flops = 6 * shape.parameters + napkin.training_flops(shape, context)["attention"]
    speed, reached = fact(f"{run} throughput", throughput), fact(f"{run} MFU", mfu)
    # In hours for each token of a single card: the time that is planned, against the time that was measured.
    planned = [napkin.run(flops, peak=peak, mfu=share).gpu_hours for share in reversed(reached)]
    measured = [FACTS[f"{run} devices"].value / rate / 3600 for rate in reversed(speed)]
    assert agree((planned[0], planned[1]), (measured[0], measured[1]))
    assert planned[1] / planned[0] < 1.004


@pytest.mark.parametrize(
    ("cards", "seconds", "rate"), [(2_240, "60.1", "126e12"), (2_800, "50.2", "121e12"), (3_360, "44.4", "113e12")]
)
def test_published_steps_with_checkpointing(cards: int, seconds: str, rate: str) -> None:
    """Megatron-Turing's rates count what is computed again."""
    shape = gpt_of("MT-NLG 530B", "Megatron vocabulary")
    flops = sum(napkin.training_flops(shape, 2_048).values()) + napkin.recomputed_flops(shape, 2_048)
    work = flops * FACTS["MT-NLG 530B tokens in a step"].value
    low, high = (work / cards / end for end in reversed(fact(f"MT-NLG 530B rate on {cards:,} GPUs", rate)))
    assert agree((low, high), fact(f"MT-NLG 530B step on {cards:,} GPUs", seconds))
    assert high / low < 1.01


def test_published_gpu_hours() -> None:
    """Llama 3.1 405B was trained at an MFU of 38 to 43 %, for more than 90 % of the time."""
    reached = [FACTS[f"Llama 3.1 405B MFU, {when}"].value for when in ("8,192 GPUs", "long context")]
    run = {"tokens": FACTS["Llama 3.1 405B tokens"].value, "card": "H100 SXM"}
    step = napkin.Step(1, int(FACTS["Llama 3.1 405B context"].value), cards=8_192, zero=3)
    fast, slow = (
        napkin.plan(napkin.PUBLISHED["Llama 3.1 405B"], step, mfu=mfu, **run)["time", "of one card"] for mfu in reached
    )
    share = FACTS["Llama 3.1 405B effective training time"].value
    assert fast < FACTS["Llama 3.1 405B GPU-hours"].value < slow / share
    assert slow / share < 1.3 * fast
