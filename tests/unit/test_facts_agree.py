"""Published numbers against each other: what can be computed from some of the facts agrees with the others."""

import pytest

from course_utils.facts import FACTS


def value(name: str) -> float:
    return FACTS[name].value


SIX_N_D = {  # published count, model, tokens, how far 6·N·D may be off
    "GPT-3 training FLOPs": ("GPT-3 parameters", "GPT-3 tokens", 0.01),
    "Chinchilla training FLOPs": ("Chinchilla parameters", "Chinchilla tokens", 0.03),
    "Gopher training FLOPs": ("Gopher parameters", "Gopher tokens", 0.13),  # they counted attention and more
    "Llama 3.1 405B training FLOPs": ("Llama 3.1 405B parameters", "Llama 3.1 405B tokens", 0.01),
}


@pytest.mark.parametrize("name", SIX_N_D)
def test_six_n_d_gives_the_published_training_flops(name):
    parameters, tokens, spread = SIX_N_D[name]
    assert 6 * value(parameters) * value(tokens) == pytest.approx(value(name), rel=spread)


def mfu(run: str, attention_width: float, peak: str, *, attention: bool) -> float:
    per_token = 6 * value(f"{run} parameters")
    if attention:
        per_token += 12 * value(f"{run} layers") * attention_width * value(f"{run} context")
    return per_token * value(f"{run} throughput") / (value(f"{run} devices") * value(peak))


@pytest.mark.parametrize(
    ("run", "peak", "attention"),
    [
        ("PaLM 540B", "TPU v4 bfloat16 peak", True),
        ("PaLM 540B", "TPU v4 bfloat16 peak", False),
        ("MT-NLG 530B", "A100 SXM 80GB bfloat16 peak", True),
        ("MT-NLG 530B", "A100 SXM 80GB bfloat16 peak", False),
        ("MosaicML 7B", "H100 SXM bfloat16 peak", True),
    ],
)
def test_published_throughput_gives_the_published_mfu(run, peak, attention):
    name = f"{run} MFU" if attention else f"{run} MFU without attention"
    head = f"{run} head width"
    width = value(head) * value(f"{run} heads") if head in FACTS else value(f"{run} width")
    digits = 0.00005 if run == "MosaicML 7B" else 0.001  # as many as were printed
    assert mfu(run, width, peak, attention=attention) == pytest.approx(value(name), abs=digits)


@pytest.mark.parametrize("run", ["8,192 GPUs", "16,384 GPUs", "long context"])
def test_llama_3s_published_rates_give_its_published_utilization(run):
    share = value(f"Llama 3.1 405B rate, {run}") / value("H100 SXM bfloat16 peak")
    assert share == pytest.approx(value(f"Llama 3.1 405B MFU, {run}"), abs=0.01)


@pytest.mark.parametrize(("run", "model"), [("GPT-3 on A100s", "GPT-3"), ("1T model on A100s", "1T model on A100s")])
def test_megatrons_formula_gives_the_days_that_megatron_published(run, model):
    work = 8 * value(f"{model} parameters") * value(f"{model} tokens")  # 8, not 6: activations are recomputed
    days = work / (value(f"{run} devices") * value(f"{run} rate")) / 86_400
    assert days == pytest.approx(value(f"{run} duration"), abs=1)


@pytest.mark.parametrize(
    ("run", "card", "low", "high"),
    [
        ("Llama 2 7B", "A100 SXM 80GB", 0.39, 0.40),
        ("Llama 2 13B", "A100 SXM 80GB", 0.37, 0.38),
        ("Llama 2 70B", "A100 SXM 80GB", 0.42, 0.43),
        ("Llama 3.1 8B", "H100 SXM", 0.13, 0.14),
        ("Llama 3.1 70B", "H100 SXM", 0.25, 0.26),
        ("Llama 3.1 405B", "H100 SXM", 0.34, 0.36),
    ],
)
def test_published_gpu_hours_give_a_utilization_in_a_narrow_range(run, card, low, high):
    tokens = (
        value("Llama 2 tokens") if "Llama 2" in run else FACTS.get(f"{run} tokens", FACTS["Llama 3.1 tokens"]).value
    )
    work = 6 * value(f"{run} parameters") * tokens
    assert low < work / (value(f"{run} GPU-hours") * 3600 * value(f"{card} bfloat16 peak")) < high


def test_deepseeks_cost_is_its_hours_times_its_price():
    assert value("DeepSeek-V3 GPU-hours") * value("H800 rent, DeepSeek's assumption") == value("DeepSeek-V3 cost")


def test_published_shapes_give_the_published_numbers_of_parameters():
    vocabulary = value("Llama 3.1 vocabulary")
    for size in ("8B", "70B", "405B"):
        layers, d, heads, kv, hidden = (
            value(f"Llama 3.1 {size} {what}")
            for what in ("layers", "width", "heads", "key and value heads", "feed forward width")
        )
        layer = 2 * d * d + 2 * d * d * kv / heads + 3 * d * hidden + 2 * d
        assert layers * layer + 2 * vocabulary * d + d == value(f"Llama 3.1 {size} parameters")
    d, layers = value("GPT-3 width"), value("GPT-3 layers")
    matrices = layers * (4 * d * d + 2 * d * value("GPT-3 feed forward width"))
    embeddings = (value("GPT-3 vocabulary") + value("GPT-3 context")) * d
    assert matrices + embeddings == pytest.approx(value("GPT-3 parameters"), rel=0.005)
