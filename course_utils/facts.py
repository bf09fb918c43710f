"""Every number that the course takes from elsewhere, in one table, with its unit, source and dates.

    from course_utils.facts import FACTS

    FACTS["GPT-3 training FLOPs"].value  # 3.14e+23
    FACTS["H100 SXM memory"].value  # 80_000_000_000

The accelerators' peaks, memory and bandwidth are in `course_utils.hardware`; they also appear here as rows, named
"<card> <dtype> peak", "<card> memory" and "<card> bandwidth".
"""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from course_utils.cards import ACCELERATORS
from course_utils.papers import CHINCHILLA, KORTHIKANTI, LORA, MEGATRON, MUON, PALM, POPE, ZERO
from course_utils.sources import Source, Sourced, arxiv
from course_utils.units import plain, readable, takes_prefix

Unit = Literal[
    "FLOPs", "FLOP/s", "B", "B/s", "s", "parameters", "tokens", "tokens/s", "devices", "layers", "heads", "elements",
    "GPU-hours", "days", "interruptions", "experts", "steps", "kWh", "share", "perplexity", "bits",
    "USD", "USD/GPU-hour",
]  # fmt: skip
UNITS: tuple[str, ...] = get_args(Unit)


@dataclass(frozen=True)
class Fact:
    """A number that somebody else measured, counted or promised.

    Attributes:
        value: in ``unit``, without prefix: 175e9 parameters.
        unit: one of `UNITS`. "share" is a fraction from 0 to 1; "elements" counts the numbers in a vector.
        source: who published it, where, its kind, when it was published and when our number was last compared with it.
        note: what to know before using it.
    """

    value: float
    unit: Unit
    source: Source
    note: str = ""

    @property
    def date(self) -> str:
        """The source's date, ``YYYY-MM``."""
        return self.source.date

    @property
    def number(self) -> Sourced:
        """The value, which remembers this source in calculations."""
        return Sourced(self.value, self.source)

    def __str__(self) -> str:
        """The value with its unit, as people write it: ``"175 billion parameters"``, ``"46.2%"``, ``"80 GB"``."""
        if self.unit == "share":
            return f"{100 * self.value:.3g}%"
        if takes_prefix(self.unit):
            return readable(self.value, self.unit)
        for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
            if self.value >= size:
                return f"{self.value / size:.4g} {word} {self.unit}"
        return f"{plain(self.value) if self.value < 1000 else f'{self.value:,.0f}'} {self.unit}"


class UnknownFact(KeyError):
    """There's no fact of that name; the message lists similar names."""

    def __init__(self, name: object, names: list[str]) -> None:
        super().__init__(name)
        self.name, self._names = name, names

    @cached_property
    def near(self) -> list[str]:
        """Similar names, looked for where somebody asks: ``FACTS.get`` raises this error, too, and nobody reads it."""
        return near(self.name, self._names)

    def __str__(self) -> str:
        given = f"there is no fact called {self.name!r}"
        if self.near:
            return f"{given}. Similar names: {', '.join(map(repr, self.near))}"
        return f"{given}. facts.table() shows them all."


class Facts(Mapping[str, Fact]):
    """Facts by name, in order; those of accelerators come last."""

    def __init__(self, written: Mapping[str, Fact]) -> None:
        self._written = dict(written)

    def __getitem__(self, name: str) -> Fact:
        found = self._written.get(name) or self._accelerators.get(name)
        if found is None:
            raise UnknownFact(name, list(self))
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._written
        yield from self._accelerators

    def __len__(self) -> int:
        return len(self._written) + len(self._accelerators)

    @cached_property
    def _accelerators(self) -> dict[str, Fact]:
        rows: dict[str, Fact] = {}
        for card in ACCELERATORS.values():
            about = (*card.sources, card.note)
            for dtype, rate in card.peak.items():
                rows[f"{card.name} {dtype} peak"] = Fact(rate, "FLOP/s", *about)  # type: ignore[arg-type]
            if card.memory_bytes is not None:
                rows[f"{card.name} memory"] = Fact(card.memory_bytes, "B", *about)  # type: ignore[arg-type]
            rows[f"{card.name} bandwidth"] = Fact(card.bandwidth, "B/s", *about)  # type: ignore[arg-type]
        return rows


def near(name: object, names: list[str]) -> list[str]:
    """Up to four names that resemble ``name`` or contain all of its words."""
    wanted = str(name).lower()
    lower = {known.lower(): known for known in names}
    words = set(wanted.split())
    holding = [known for known in lower if words and words <= set(known.split())]
    similar = difflib.get_close_matches(wanted, lower, n=4, cutoff=0.6)
    return [lower[known] for known in dict.fromkeys([*holding, *similar])][:4]


class Table:
    """Facts for display: HTML in a notebook, aligned text in a terminal."""

    def __init__(self, rows: Mapping[str, Fact]) -> None:
        self._rows = dict(rows)

    def __str__(self) -> str:
        cells = [(name, str(fact), str(fact.source)) for name, fact in self._rows.items()]
        widths = [max((len(row[i]) for row in cells), default=0) for i in range(2)]
        return "\n".join(f"{name:<{widths[0]}}  {value:>{widths[1]}}  {source}" for name, value, source in cells)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Jupyter's hook."""
        head = "".join(f'<th style="text-align:left">{title}</th>' for title in ("what", "how much", "source"))
        body = []
        for name, fact in self._rows.items():
            note = f"<br><small>{html.escape(fact.note)}</small>" if fact.note else ""
            url, title = html.escape(fact.source.url), html.escape(fact.source.title)
            source = f'<a href="{url}">{title}</a>, {fact.date}{note}'
            cells = (html.escape(name), html.escape(str(fact)), source)
            body.append("".join(f'<td style="text-align:left">{cell}</td>' for cell in cells))
        rows = "".join(f"<tr>{row}</tr>" for row in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def table(*names: str) -> Table:
    """The facts with these names, or all facts, as a table with unit, source and date.

    Raises:
        UnknownFact: a name is not in `FACTS`.
    """
    return Table({name: FACTS[name] for name in names or FACTS})


def _model(name: str, source: Source, **numbers: tuple[float, Unit]) -> dict[str, Fact]:
    """One fact for each number of a model: ``GPT-3``, ``layers=(96, "layers")`` gives "GPT-3 layers"."""
    return {f"{name} {what.replace('_', ' ')}": Fact(*number, source) for what, number in numbers.items()}


def _shape(
    name: str, source: Source, layers: int, width: int, heads: int, kv_heads: int, feed_forward: int
) -> dict[str, Fact]:
    return _model(
        name,
        source,
        layers=(layers, "layers"),
        width=(width, "elements"),
        heads=(heads, "heads"),
        key_and_value_heads=(kv_heads, "heads"),
        feed_forward_width=(feed_forward, "elements"),
    )


def _mosaic(
    name: str, parameters: int, layers: int, width: int, heads: int, context: int, devices: int, throughput: int
) -> dict[str, Fact]:
    return _model(
        name,
        _MOSAIC,
        parameters=(parameters, "parameters"),
        layers=(layers, "layers"),
        width=(width, "elements"),
        heads=(heads, "heads"),
        context=(context, "tokens"),
        devices=(devices, "devices"),
        throughput=(throughput, "tokens/s"),
    )


# In November 2026 these were compared with stored copies of the papers, model cards and files themselves, except for
# ZeRO, GPT-3, Gopher, Chinchilla, MT-NLG, Falcon, OLMo 2, Pope and the two regulations, which were compared with texts
# that quote them. The shapes of released weights are those in litgpt's config.py and nanoGPT's model.py.
_GPT2 = Source(
    "Radford et al., Language Models are Unsupervised Multitask Learners (GPT-2), the models as released",
    "https://github.com/openai/gpt-2",
    "paper",
    "2019-02",
    "2026-11",
)
_GPT3 = arxiv(
    "Brown et al., Language Models are Few-Shot Learners (GPT-3)", "2005.14165", "2020-05", verified="2026-11"
)
_GOPHER = arxiv("Rae et al., Scaling Language Models (Gopher)", "2112.11446", "2021-12", verified="2026-11")
_CHINCHILLA = replace(CHINCHILLA, verified="2026-11")
_PALM_3, _PALM_B = PALM.at("table 3"), PALM.at("appendix B")
_MEGATRON = MEGATRON.at("section 5.1", verified="2026-11")
_KORTHIKANTI = KORTHIKANTI.at("table 5", verified="2026-11")
_MTNLG = arxiv(
    "Smith et al., Megatron-Turing NLG 530B, sections 2.4 and 3.2", "2201.11990", "2022-01", verified="2026-11"
)
_RECOMPUTED = "per GPU, recomputed activations counted as work"
_FALCON = arxiv(
    "Almazrouei et al., The Falcon Series of Open Language Models, table 1", "2311.16867", "2023-11", verified="2026-11"
)
_OLMO2 = arxiv("OLMo Team, 2 OLMo 2 Furious", "2501.00656", "2024-12", verified="2026-11")
_OLMO2_CARD = Source(
    "OLMo 2 model card", "https://huggingface.co/allenai/OLMo-2-1124-13B", "paper", "2024-11", "2026-11"
)
_MOSAIC = Source(
    "MosaicML, llm-foundry, scripts/train/benchmarking",
    "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/benchmarking",
    "measured",
    "2026-11",
    "2026-11",
)
_MOSAIC_YAMLS = Source(
    "MosaicML, llm-foundry, scripts/train/yamls",
    "https://github.com/mosaicml/llm-foundry/tree/main/scripts/train/yamls",
    "paper",
    "2026-11",
    "2026-11",
)
_LLAMA2 = Source(
    "Llama 2 model card",
    "https://github.com/meta-llama/llama/blob/main/MODEL_CARD.md",
    "paper",
    "2023-07",
    "2026-11",
)
_LLAMA3 = Source(
    "Llama 3.1 model card",
    "https://github.com/meta-llama/llama-models/blob/main/models/llama3_1/MODEL_CARD.md",
    "paper",
    "2024-07",
    "2026-11",
)
_HERD = arxiv("The Llama 3 Herd of Models", "2407.21783", "2024-07", verified="2026-11")
_HERD_3, _HERD_4, _HERD_INTERRUPTED = _HERD.at("table 3"), _HERD.at("table 4"), _HERD.at("section 3.3.4")
_DEEPSEEK = arxiv("DeepSeek-V3 Technical Report", "2412.19437", "2024-12", verified="2026-11")
_COUNTED = "counted from the published shapes"


def _weights(model: str, date: str, what: str = "the released weights") -> Source:
    """Weights on Hugging Face, with the configuration beside them."""
    return Source(f"{model}, {what}", f"https://huggingface.co/{model}", "paper", date, "2026-11")


def _llama2(size: str, what: str = "the released weights") -> Source:
    return _weights(f"meta-llama/Llama-2-{size}", "2023-07", what)


def _llama3(size: str, what: str = "the released weights") -> Source:
    return _weights(f"meta-llama/Llama-3.1-{size}", "2024-07", what)


_PETAFLOP_DAY = 1e15 * 86_400  # FLOPs
_MAMF = Source(
    "Stas Bekman, mamf-finder, github.com/stas00/ml-engineering",
    "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/README.md",
    "measured",
    "2026-08",
    "2026-11",
)

_TRAINING_FLOPS = {
    "GPT-3 training FLOPs": Fact(3.14e23, "FLOPs", _GPT3.at("table D.1")),
    "Gopher training FLOPs": Fact(5.76e23, "FLOPs", _CHINCHILLA, "the budget that Gopher and Chinchilla share"),
    "Chinchilla training FLOPs": Fact(5.76e23, "FLOPs", _CHINCHILLA, "the budget that Gopher and Chinchilla share"),
    "GPT-4 training FLOPs": Fact(
        2.1e25,
        "FLOPs",
        Source(
            "Epoch AI, database of notable AI models",
            "https://epoch.ai/data/notable-ai-models",
            "estimate",
            "2026-11",
            "2026-11",
        ),
        "an outsider's estimate: OpenAI has published nothing",
    ),
    "Llama 3.1 405B training FLOPs": Fact(3.8e25, "FLOPs", _HERD),
    "PaLM 540B training FLOPs": Fact(
        2.56e24, "FLOPs", PALM.at("table 22"), "with attention; table 21 has 6 · N · D without it, 2.5272e24"
    ),
    "Falcon 40B training FLOPs": Fact(2_800 * _PETAFLOP_DAY, "FLOPs", _FALCON, "printed as 2,800 petaFLOP/s-days"),
    "Falcon 180B training FLOPs": Fact(
        43_500 * _PETAFLOP_DAY,
        "FLOPs",
        _FALCON,
        "printed as 43,500 petaFLOP/s-days",
    ),
    "OLMo 2 7B training FLOPs": Fact(1.8e23, "FLOPs", _OLMO2_CARD),
    "OLMo 2 13B training FLOPs": Fact(4.6e23, "FLOPs", _OLMO2_CARD),
    "Llama 2 13B training FLOPs": Fact(
        1.6e23, "FLOPs", replace(_OLMO2_CARD, kind="estimate"), "an outsider's estimate"
    ),
    "Llama 3.1 8B training FLOPs": Fact(
        7.2e23, "FLOPs", replace(_OLMO2_CARD, kind="estimate"), "an outsider's estimate"
    ),
    "US reporting threshold": Fact(
        1e26,
        "FLOPs",
        Source(
            "Executive Order 14110, section 4.2(b)",
            "https://www.federalregister.gov/d/2023-24283",
            "paper",
            "2023-10",
            "2026-11",
        ),
        "revoked in January 2025 (Executive Order 14148)",
    ),
    "EU systemic-risk threshold": Fact(
        1e25,
        "FLOPs",
        Source(
            "Regulation (EU) 2024/1689 (AI Act), article 51(2)",
            "https://eur-lex.europa.eu/eli/reg/2024/1689/oj",
            "paper",
            "2024-07",
            "2026-11",
        ),
        "applies since August 2025",
    ),
}

_MODELS = (
    _model(
        "GPT-3",
        _GPT3.at("tables 2.1 and 2.2"),
        parameters=(175e9, "parameters"),
        tokens=(300e9, "tokens"),
        layers=(96, "layers"),
        width=(12_288, "elements"),
        heads=(96, "heads"),
        feed_forward_width=(49_152, "elements"),
        context=(2_048, "tokens"),
    )
    | {"GPT-3 vocabulary": Fact(50_257, "tokens", _GPT2, "GPT-3 uses GPT-2's vocabulary")}
    | _model(
        "GPT-2 small",
        _GPT2,
        layers=(12, "layers"),
        width=(768, "elements"),
        heads=(12, "heads"),
        context=(1_024, "tokens"),
        vocabulary=(50_257, "tokens"),
    )
    | {
        "GPT-2 small parameters": Fact(
            124_439_808,
            "parameters",
            replace(_GPT2, title=_COUNTED),
            "the tied embedding counted once; the paper says 117M",
        )
    }
    | _model("Gopher", _GOPHER, parameters=(280e9, "parameters"), tokens=(300e9, "tokens"))
    | _model("Chinchilla", _CHINCHILLA, parameters=(70e9, "parameters"), tokens=(1.4e12, "tokens"))
    | _model(
        "PaLM 540B",
        PALM.at("table 1 and sections 2 and 4.1"),
        parameters=(540.35e9, "parameters"),
        tokens=(780e9, "tokens"),
        layers=(118, "layers"),
        width=(18_432, "elements"),
        heads=(48, "heads"),
        head_width=(256, "elements"),
        feed_forward_width=(73_728, "elements"),
        vocabulary=(256_000, "tokens"),
        context=(2_048, "tokens"),
        devices=(6_144, "devices"),
        throughput=(238.3e3, "tokens/s"),
    )
    | _model(
        "MT-NLG 530B",
        _PALM_B,
        parameters=(530e9, "parameters"),
        devices=(2_240, "devices"),
        throughput=(65.43e3, "tokens/s"),
    )
    | _model(
        "MT-NLG 530B",
        _MTNLG,
        layers=(105, "layers"),
        width=(20_480, "elements"),
        heads=(128, "heads"),
        context=(2_048, "tokens"),
    )
    | _mosaic("MosaicML 1B, long context", 1_445_974_016, 24, 2_048, 16, 65_536, 8, 44_050)
    | _mosaic("MosaicML 7B", 6_658_859_008, 32, 4_096, 32, 2_048, 8, 85_144)
    | _mosaic("MosaicML 13B", 12_853_954_560, 40, 5_120, 40, 2_048, 8, 38_336)
    | _mosaic("MosaicML 70B", 64_862_437_376, 80, 8_192, 64, 2_048, 64, 66_523)
    | {"MosaicML vocabulary": Fact(50_368, "tokens", _MOSAIC_YAMLS)}
    | {
        "OLMo 2 7B parameters": Fact(7_298_617_344, "parameters", _weights("allenai/OLMo-2-1124-7B", "2024-11")),
        "OLMo 2 7B tokens": Fact(4.05e12, "tokens", _OLMO2),
        "OLMo 2 13B parameters": Fact(13_716_198_400, "parameters", _weights("allenai/OLMo-2-1124-13B", "2024-11")),
        "OLMo 2 13B tokens": Fact(5.6e12, "tokens", _OLMO2),
    }
    | _model("Falcon 40B", _FALCON, parameters=(40e9, "parameters"), tokens=(1.0e12, "tokens"))
    | _model("Falcon 180B", _FALCON, parameters=(180e9, "parameters"), tokens=(3.5e12, "tokens"))
    | {
        "Llama 2 7B parameters": Fact(6_738_415_616, "parameters", _llama2("7b", _COUNTED)),
        "Llama 2 13B parameters": Fact(13_015_864_320, "parameters", _llama2("13b", _COUNTED)),
        "Llama 2 70B parameters": Fact(68_976_648_192, "parameters", _llama2("70b", _COUNTED)),
        "Llama 2 tokens": Fact(2.0e12, "tokens", _LLAMA2),
        "Llama 3.1 8B parameters": Fact(8_030_261_248, "parameters", _llama3("8B", _COUNTED)),
        "Llama 3.1 70B parameters": Fact(70_553_706_496, "parameters", _llama3("70B", _COUNTED)),
        "Llama 3.1 405B parameters": Fact(405_853_388_800, "parameters", _llama3("405B", _COUNTED)),
        "Llama 3.1 tokens": Fact(15e12, "tokens", _LLAMA3, "the model card says 15T+, more than 15 trillion"),
        "Llama 3.1 405B tokens": Fact(15.6e12, "tokens", _HERD),
        "Llama 2 vocabulary": Fact(32_000, "tokens", _llama2("7b")),
        "Megatron vocabulary": Fact(51_200, "tokens", _MEGATRON),
        "Llama 3.1 vocabulary": Fact(128_256, "tokens", _llama3("8B")),
    }
    | _shape("Llama 2 7B", _llama2("7b"), 32, 4_096, 32, 32, 11_008)
    | _shape("Llama 2 13B", _llama2("13b"), 40, 5_120, 40, 40, 13_824)
    | _shape("Llama 2 70B", _llama2("70b"), 80, 8_192, 64, 8, 28_672)
    | _shape("Llama 3.1 8B", _HERD_3, 32, 4_096, 32, 8, 14_336)
    | _shape("Llama 3.1 70B", _HERD_3, 80, 8_192, 64, 8, 28_672)
    | _shape("Llama 3.1 405B", _HERD_3, 126, 16_384, 128, 8, 53_248)
    | _model(
        "DeepSeek-V3",
        _DEEPSEEK,
        parameters=(671e9, "parameters"),
        active_parameters=(37e9, "parameters"),
        tokens=(14.8e12, "tokens"),
    )
)

_GPT2_XL = _GPT2.at("1558M")
_MISTRAL = _weights("mistralai/Mistral-7B-v0.1", "2023-09")
_MIXTRAL_WEIGHTS = _weights("mistralai/Mixtral-8x7B-v0.1", "2023-12")
_MIXTRAL = arxiv("Jiang et al., Mixtral of Experts", "2401.04088", "2024-01", verified="2026-11")
_DEEPSEEK_4 = _DEEPSEEK.at("section 4.2")
_NANOCHAT = Source(
    "Karpathy, nanochat, dev/LEADERBOARD.md, run 1 (d24 on eight H100s)",
    "https://github.com/karpathy/nanochat/blob/master/dev/LEADERBOARD.md",
    "measured",
    "2026-01",
    "2026-11",
)
_NANOCHAT_CODE = replace(
    _NANOCHAT, title="Karpathy, nanochat, the model's code", url="https://github.com/karpathy/nanochat", kind="paper"
)

_MORE_MODELS = (
    _model(
        "GPT-2 XL",
        _GPT2_XL,
        layers=(48, "layers"),
        width=(1_600, "elements"),
        heads=(25, "heads"),
        context=(1_024, "tokens"),
        vocabulary=(50_257, "tokens"),
        parameters=(1_557_611_200, "parameters"),
    )
    | _shape("Mistral 7B", _MISTRAL, 32, 4_096, 32, 8, 14_336)
    | _shape("Mixtral 8x7B", _MIXTRAL_WEIGHTS, 32, 4_096, 32, 8, 14_336)
    | _model(
        "Mixtral 8x7B",
        _MIXTRAL,
        experts=(8, "experts"),
        experts_per_token=(2, "experts"),
        active_parameters=(13e9, "parameters"),
    )
    | {
        "Mistral vocabulary": Fact(32_000, "tokens", _MISTRAL),
        "Mistral 7B parameters": Fact(7_241_732_096, "parameters", _MISTRAL),
        "Mixtral 8x7B parameters": Fact(47e9, "parameters", _MIXTRAL),
    }
    | _model(
        "DeepSeek-V3",
        _DEEPSEEK_4,
        layers=(61, "layers"),
        width=(7_168, "elements"),
        heads=(128, "heads"),
        head_width=(128, "elements"),
        kv_rank=(512, "elements"),
        query_rank=(1_536, "elements"),
        rope_width=(64, "elements"),
        dense_layers=(3, "layers"),
        routed_experts=(256, "experts"),
        shared_experts=(1, "experts"),
        experts_per_token=(8, "experts"),
        expert_width=(2_048, "elements"),
    )
    | _model(
        "DeepSeek-V3",
        Source(
            "DeepSeek-V3, inference/configs/config_671B.json",
            "https://github.com/deepseek-ai/DeepSeek-V3/blob/main/inference/configs/config_671B.json",
            "paper",
            "2024-12",
            "2026-11",
        ),
        feed_forward_width=(18_432, "elements"),
        vocabulary=(129_280, "tokens"),
    )
    | {
        "DeepSeek-V3 tokens in a step": Fact(
            15_360 * 4_096,
            "tokens",
            _DEEPSEEK_4,
            "batches of 15,360 sequences of 4,096 tokens; smaller at the beginning",
        )
    }
    | _model(
        "nanochat d24",
        _NANOCHAT_CODE,
        layers=(24, "layers"),
        width=(1_536, "elements"),
        heads=(12, "heads"),
        context=(2_048, "tokens"),
        vocabulary=(32_768, "tokens"),
        tokens_in_a_step=(524_288, "tokens"),
    )
    | _model(
        "nanochat d24",
        _NANOCHAT,
        training_FLOPs=(4.330784131228946e19, "FLOPs"),
        duration=(10_949.46713, "s"),
        steps=(16_704, "steps"),
        devices=(8, "devices"),
    )
)

_RUNS = {
    "GPT-3 on A100s devices": Fact(1_024, "devices", _MEGATRON),
    "GPT-3 on A100s rate": Fact(140e12, "FLOP/s", _MEGATRON, _RECOMPUTED),
    "GPT-3 on A100s duration": Fact(34, "days", replace(_MEGATRON, kind="estimate"), "its authors' estimate"),
    "1T model on A100s parameters": Fact(1e12, "parameters", _MEGATRON),
    "1T model on A100s tokens": Fact(450e9, "tokens", _MEGATRON),
    "1T model on A100s devices": Fact(3_072, "devices", _MEGATRON),
    "1T model on A100s rate": Fact(163e12, "FLOP/s", _MEGATRON, _RECOMPUTED),
    "1T model on A100s duration": Fact(84, "days", replace(_MEGATRON, kind="estimate"), "its authors' estimate"),
    "Llama 2 7B GPU-hours": Fact(184_320, "GPU-hours", _LLAMA2, "A100 80GB"),
    "Llama 2 13B GPU-hours": Fact(368_640, "GPU-hours", _LLAMA2, "A100 80GB"),
    "Llama 2 70B GPU-hours": Fact(1_720_320, "GPU-hours", _LLAMA2, "A100 80GB"),
    "Llama 3.1 8B GPU-hours": Fact(1.46e6, "GPU-hours", _LLAMA3, "H100 80GB"),
    "Llama 3.1 70B GPU-hours": Fact(7.0e6, "GPU-hours", _LLAMA3, "H100 80GB"),
    "Llama 3.1 405B GPU-hours": Fact(30.84e6, "GPU-hours", _LLAMA3, "H100 80GB"),
    "Llama 3.1 405B devices": Fact(16_384, "devices", _HERD_4, "8,192 in an earlier stage"),
    "Llama 3.1 405B observed": Fact(54, "days", _HERD_INTERRUPTED, "a stretch of its pre-training"),
    "Llama 3.1 405B unexpected interruptions": Fact(
        419, "interruptions", _HERD_INTERRUPTED, "in those 54 days; 47 more were planned"
    ),
    "Llama 3.1 405B effective training time": Fact(0.9, "share", _HERD_INTERRUPTED, "the paper says over 90%"),
    "MT-NLG 530B tokens in a step": Fact(1_920 * 2_048, "tokens", _MTNLG),
    "MT-NLG 530B step on 2,240 GPUs": Fact(60.1, "s", _MTNLG),
    "MT-NLG 530B step on 2,800 GPUs": Fact(50.2, "s", _MTNLG),
    "MT-NLG 530B step on 3,360 GPUs": Fact(44.4, "s", _MTNLG),
    "MT-NLG 530B rate on 2,240 GPUs": Fact(126e12, "FLOP/s", _MTNLG, _RECOMPUTED),
    "MT-NLG 530B rate on 2,800 GPUs": Fact(121e12, "FLOP/s", _MTNLG, _RECOMPUTED),
    "MT-NLG 530B rate on 3,360 GPUs": Fact(113e12, "FLOP/s", _MTNLG, _RECOMPUTED),
    "Llama 3.1 405B context": Fact(
        8_192, "tokens", _HERD.at("section 3.4.1"), "of its initial pre-training; longer at the end"
    ),
    "DeepSeek-V3 pre-training GPU-hours": Fact(2.664e6, "GPU-hours", _DEEPSEEK, "H800"),
    "DeepSeek-V3 GPU-hours": Fact(2.788e6, "GPU-hours", _DEEPSEEK, "H800; all stages"),
    "DeepSeek-V3 cost": Fact(
        5.576e6, "USD", _DEEPSEEK, "rent of the final run only: no research, no staff, no failed runs"
    ),
}

_ZERO = ZERO.at("figure 1", verified="2026-11")

_SHARDING = {
    "ZeRO example parameters": Fact(7.5e9, "parameters", _ZERO),
    "ZeRO example devices": Fact(64, "devices", _ZERO),
} | {
    f"ZeRO example memory, stage {stage}": Fact(size, "B", _ZERO, "on each device, without activations")
    for stage, size in enumerate((120e9, 31.4e9, 16.6e9, 1.9e9))
}

_UTILIZATION = {
    "GPT-3 MFU": Fact(0.213, "share", _PALM_3),
    "Gopher MFU": Fact(0.325, "share", _PALM_3),
    "MT-NLG 530B MFU": Fact(0.302, "share", _PALM_3),
    "MT-NLG 530B MFU without attention": Fact(0.297, "share", _PALM_B),
    "PaLM 540B MFU": Fact(0.462, "share", _PALM_3),
    "PaLM 540B MFU without attention": Fact(0.457, "share", _PALM_B),
    "PaLM 540B HFU": Fact(0.578, "share", PALM.at("section 4.1"), "recomputed activations counted as work"),
    "MosaicML 1B, long context MFU": Fact(0.2634, "share", _MOSAIC),
    "MosaicML 7B MFU": Fact(0.4644, "share", _MOSAIC),
    "MosaicML 13B MFU": Fact(0.3979, "share", _MOSAIC),
    "MosaicML 70B MFU": Fact(0.4257, "share", _MOSAIC),
    "Llama 3.1 405B MFU, 8,192 GPUs": Fact(0.43, "share", _HERD_4),
    "Llama 3.1 405B MFU, 16,384 GPUs": Fact(0.41, "share", _HERD_4),
    "Llama 3.1 405B MFU, long context": Fact(0.38, "share", _HERD_4, "16,384 GPUs, 131,072 tokens"),
    "Llama 3.1 405B rate, 8,192 GPUs": Fact(430e12, "FLOP/s", _HERD_4, "per GPU"),
    "Llama 3.1 405B rate, 16,384 GPUs": Fact(400e12, "FLOP/s", _HERD_4, "per GPU"),
    "Llama 3.1 405B rate, long context": Fact(380e12, "FLOP/s", _HERD_4, "per GPU; 16,384 GPUs, 131,072 tokens"),
}

# Read in transcripts of these pages: Lambda's in github.com/api-evangelist/lambda-labs (2026-09-20), the other two in
# github.com/datareceipts/data-receipts (2026-11-09; AWS asks 55.04 USD an hour for eight cards).
_LAMBDA = Source(
    "Lambda, lambda.ai/instances, eight cards on demand",
    "https://lambda.ai/instances",
    "data sheet",
    "2026-09",
    "2026-09",
)
_RUNPOD = Source(
    "RunPod, community cloud, runpod.io/pricing", "https://www.runpod.io/pricing", "data sheet", "2026-11", "2026-11"
)
_AWS = Source(
    "AWS, p5.48xlarge on demand, us-east-1",
    "https://aws.amazon.com/ec2/instance-types/p5/",
    "data sheet",
    "2026-11",
    "2026-11",
)
_H100_PAGE = Source(
    "NVIDIA H100 product page", "https://www.nvidia.com/en-us/data-center/h100/", "data sheet", "2026-11", "2026-11"
)

_CARDS = {
    "tf32 mantissa": Fact(
        10,
        "bits",
        Source(
            "PyTorch, numerical accuracy, TensorFloat-32",
            "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
            "paper",
            "2026-11",
            "2026-11",
        ),
        "of float32's 23; tensor cores also read the sign and the 8 exponent bits",
    ),
    "H100 SXM sparse peak, as printed": Fact(
        1979e12,
        "FLOP/s",
        _H100_PAGE,
        "16-bit, for 2:4 sparse matrices; half that for dense ones",
    ),
    "H100 SXM memory, as nvidia-smi reports it": Fact(
        81_559 * 2**20,
        "B",
        Source(
            "nvidia-smi, printed as 81559MiB; modal-client pull request 2797",
            "https://github.com/modal-labs/modal-client/pull/2797",
            "measured",
            "2025-01",
            "2026-11",
        ),
    ),
    "H100 SXM PCIe bandwidth": Fact(128e9, "B/s", _H100_PAGE, "PCIe Gen5 x16, both directions together"),
    "MaxText 32B MFU on TPU v5e": Fact(
        0.6686,
        "share",
        Source(
            "Google, MaxText, configs/tpu/v5e/README.md",
            "https://github.com/AI-Hypercomputer/maxtext/blob/main/src/maxtext/configs/tpu/v5e/README.md",
            "measured",
            "2023-11",
            "2026-11",
        ),
        "256 chips",
    ),
    "TPU v4 bfloat16 peak": Fact(275e12, "FLOP/s", _PALM_B),
    "A100 SXM fastest matmul": Fact(271.2e12, "FLOP/s", _MAMF, "bfloat16, the best of many shapes"),
    "H100 SXM fastest matmul": Fact(794.5e12, "FLOP/s", _MAMF, "bfloat16, the best of many shapes"),
}

_PRICES = {
    "A100 SXM 80GB rent": Fact(2.79, "USD/GPU-hour", _LAMBDA),
    "H100 SXM rent": Fact(3.99, "USD/GPU-hour", _LAMBDA),
    "B200 rent": Fact(6.69, "USD/GPU-hour", _LAMBDA),
    "H100 SXM rent, cheap": Fact(2.69, "USD/GPU-hour", _RUNPOD, "cards of third-party hosts"),
    "H100 SXM rent, expensive": Fact(6.88, "USD/GPU-hour", _AWS),
    "H800 rent, DeepSeek's assumption": Fact(2.00, "USD/GPU-hour", _DEEPSEEK),
}

# The planner is compared with these, and with facts above, in docs/published.md.
_KORTHIKANTI_3 = KORTHIKANTI.at("table 3", verified="2026-11")
_NEMO = Source(
    "NVIDIA NeMo Framework 24.12, performance summary",
    "https://docs.nvidia.com/nemo-framework/user-guide/24.12/nemotoolkit/performance/performance_summary.html",
    "measured",
    "2024-12",
    "2026-11",
)
_POPE = POPE.at("table 2", verified="2026-11")
_LORA = replace(LORA, verified="2026-11")
_BLOOM = arxiv("Luccioni et al., Estimating the Carbon Footprint of BLOOM", "2211.02001", "2022-11", verified="2026-11")
_GPT_FAST = Source(
    "pytorch-labs/gpt-fast, README",
    "https://github.com/pytorch-labs/gpt-fast",
    "measured",
    "2023-11",
    "2026-11",
)
_NIM = Source(
    "NVIDIA NIM 1.8.0, performance of Llama 3.3 70B, fp8 on two H100s, 5,000 tokens in, 500 out, one request",
    "https://docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance",
    "measured",
    "2025-05",
    "2026-11",
)
_SCALING_BOOK = Source(
    "Austin et al., How to Scale Your Model, part 6",
    "https://jax-ml.github.io/scaling-book/applied-training/",
    "estimate",
    "2025-02",
    "2026-11",
)
_DEEPSEEK_HARDWARE = arxiv(
    "DeepSeek-AI, Insights into DeepSeek-V3, table 1", "2505.09343", "2025-05", verified="2026-11"
)
_LLAMA_CPP = Source(
    "Caches that llama.cpp allocates for 2,048 tokens, a user's table",
    "https://huggingface.co/dranger003/c4ai-command-r-v01-iMat.GGUF/discussions/6",
    "measured",
    "2024-04",
    "2026-11",
)
_LLAMA_1 = arxiv("Touvron et al., LLaMA, section 2.4", "2302.13971", "2023-02", verified="2026-11")
_VLLM = arxiv("Kwon et al., PagedAttention, section 3", "2309.06180", "2023-09", verified="2026-11")


def _megatron(
    name: str, layers: int, width: int, heads: int, sequences: int, devices: int, seconds: float, mfu: float, hfu: float
) -> dict[str, Fact]:
    """A row of the paper on activation recomputation, with sequences of 2,048 tokens."""
    shape = _model(
        f"Megatron {name}",
        _KORTHIKANTI_3,
        layers=(layers, "layers"),
        width=(width, "elements"),
        heads=(heads, "heads"),
        devices=(devices, "devices"),
        tokens_in_a_step=(sequences * 2_048, "tokens"),
    )
    return shape | _model(f"Megatron {name}", _KORTHIKANTI, step=(seconds, "s"), MFU=(mfu, "share"), HFU=(hfu, "share"))


def _nemo(name: str, throughput: int, rate: float) -> dict[str, Fact]:
    numbers = {"throughput per GPU": (throughput, "tokens/s"), "rate per GPU": (rate * 1e12, "FLOP/s")}
    return {f"NeMo {name} {what}": Fact(value, unit, _NEMO) for what, (value, unit) in numbers.items()}  # type: ignore[arg-type]


def _pope(name: str, seconds: float, mfu: float) -> dict[str, Fact]:
    where = "64 TPU v4"
    return {
        f"PaLM 540B {name}, latency": Fact(seconds, "s", _POPE, where),
        f"PaLM 540B {name}, MFU": Fact(mfu, "share", _POPE, where),
    }


_CHECKED = (
    _megatron("22B", 48, 6_144, 64, 4, 8, 1.10, 0.415, 0.437)
    | _megatron("175B", 96, 12_288, 96, 64, 64, 13.75, 0.514, 0.528)
    | _megatron("530B", 105, 20_480, 128, 280, 280, 37.83, 0.560, 0.570)
    | _megatron("1T", 128, 25_600, 160, 512, 512, 71.49, 0.563, 0.570)
    | _nemo("GPT-3 on 128 H100s", 716, 771)
    | _nemo("GPT-3 on 512 H100s", 825, 888)
    | _nemo("Llama 2 7B", 16_934, 780)
    | _nemo("Llama 2 13B", 8_715, 760)
    | _nemo("Llama 2 70B", 1_728, 768)
    | _nemo("Llama 3.1 8B", 12_273, 711)
    | _nemo("Llama 3.1 70B", 1_524, 734)
    | _pope("prefill of one prompt", 0.29, 0.43)
    | _pope("prefill of 512 prompts", 85.2, 0.76)
    | _pope("64 tokens for 64 requests", 1.82, 0.14)
    | _pope("64 tokens for 512 requests", 6.0, 0.33)
    | {
        "LoRA on GPT-3, rank 1": Fact(4.7e6, "parameters", _LORA.at("table 4"), "of queries and values"),
        "LoRA on GPT-3, rank 4": Fact(
            18e6, "parameters", _LORA.at("section 7.1"), "of queries and values; a budget, rounded"
        ),
        "LoRA on GPT-3, rank 8": Fact(37.7e6, "parameters", _LORA.at("table 4"), "of queries and values"),
        "Muon's FLOPs, width 768, 524,288 tokens": Fact(0.007, "share", MUON, "of training FLOPs"),
        "Muon's FLOPs, width 16,384, 16 million tokens": Fact(0.005, "share", MUON, "of training FLOPs"),
        "BLOOM GPU-hours": Fact(1_082_990, "GPU-hours", _BLOOM, "A100 80GB, 400 W"),
        "BLOOM energy": Fact(433_196, "kWh", _BLOOM, "of the GPUs alone"),
        "Llama 2 7B on one A100, gpt-fast": Fact(104.9, "tokens/s", _GPT_FAST, "one request; power limited to 330 W"),
        "Llama 2 7B in 8 bits on one A100, gpt-fast": Fact(155.58, "tokens/s", _GPT_FAST, "one request"),
        "Llama 2 70B on eight A100s, gpt-fast": Fact(62.50, "tokens/s", _GPT_FAST, "one request"),
        "Llama 2 7B on one die of an MI250X, gpt-fast": Fact(76.33, "tokens/s", _GPT_FAST, "one request"),
        "Llama 3.3 70B on two H100s, first token": Fact(0.40677, "s", _NIM),
        "Llama 3.3 70B on two H100s, between tokens": Fact(0.01858, "s", _NIM),
        "Llama 3 70B on a TPU v5p pod": Fact(44, "days", _SCALING_BOOK, "at an MFU of 0.4"),
        "DeepSeek-V3 cache of a token": Fact(70_272, "B", _DEEPSEEK_HARDWARE),
        "Llama 3.1 405B cache of a token": Fact(516_096, "B", _DEEPSEEK_HARDWARE),
        "Llama 3 8B cache": Fact(256 * 2**20, "B", _LLAMA_CPP, "printed as 256 MiB"),
        "Llama 3 70B cache": Fact(640 * 2**20, "B", _LLAMA_CPP, "printed as 640 MiB"),
        "Mixtral 8x7B cache": Fact(256 * 2**20, "B", _LLAMA_CPP, "printed as 256 MiB"),
        "OPT-13B cache of a token": Fact(800 * 1024, "B", _VLLM, "printed as 800 KB"),
        "OPT-13B layers": Fact(40, "layers", _VLLM),
        "OPT-13B width": Fact(5_120, "elements", _VLLM),
        "LLaMA 65B throughput per GPU": Fact(380, "tokens/s", _LLAMA_1, "A100 80GB"),
        "LLaMA 65B devices": Fact(2_048, "devices", _LLAMA_1),
        "LLaMA 65B tokens": Fact(1.4e12, "tokens", _LLAMA_1),
        "LLaMA 65B duration": Fact(21, "days", _LLAMA_1),
    }
)

_TORCHAO = Source(
    "torchao v0.13.0, torchao/quantization/README.md, benchmarks",
    "https://github.com/pytorch/ao/blob/v0.13.0/torchao/quantization/README.md",
    "measured",
    "2025-09",
    "2026-11",
)
_TENSORRT = Source(
    "TensorRT-LLM v0.5, docs/source/performance.md, low latency",
    "https://github.com/NVIDIA/TensorRT-LLM/blob/v0.5.0/docs/source/performance.md",
    "measured",
    "2023-10",
    "2026-11",
)
_ONE_SEQUENCE = "one sequence with little context"

_INFERENCE = (
    {"Llama 3.1 maximum context": Fact(131_072, "tokens", _LLAMA3, "the model card says 128k")}
    | {
        f"Llama 3 8B decode, A100, {dtype}": Fact(rate, "tokens/s", _TORCHAO, f"80 GB; {_ONE_SEQUENCE}")
        for dtype, rate in (("bfloat16", 95.64), ("int8", 153.03), ("int4", 180.80))
    }
    | {
        f"Llama 3 8B size, {dtype}": Fact(size, "B", _TORCHAO, "without the token embedding")
        for dtype, size in (("bfloat16", 15.01e9), ("int8", 7.52e9), ("int4", 4.22e9))
    }
    | {
        f"Llama 3 8B perplexity, {dtype}": Fact(value, "perplexity", _TORCHAO, "on WikiText")
        for dtype, value in (("bfloat16", 7.441), ("int8", 7.447), ("int4", 8.316))
    }
    | {
        "Llama 3.1 8B decode, H100, bfloat16": Fact(
            126.90, "tokens/s", _TORCHAO, f"{_ONE_SEQUENCE}; the source doesn't say which kind of H100"
        ),
        "Llama 7B prefill, A100, float16": Fact(0.133, "s", _TENSORRT, "one prompt of 2,048 tokens"),
    }
)

FACTS = Facts(
    _TRAINING_FLOPS
    | _MODELS
    | _MORE_MODELS
    | _RUNS
    | _SHARDING
    | _UTILIZATION
    | _INFERENCE
    | _CHECKED
    | _CARDS
    | _PRICES
)
