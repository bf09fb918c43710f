"""Every number that the course takes from elsewhere, in one table, with its unit, source and date.

    from course_utils.facts import FACTS

    FACTS["GPT-3 training FLOPs"].value  # 3.14e+23
    FACTS["H100 SXM memory"].value  # 80_000_000_000

The accelerators' peaks, memory and bandwidth are in `course_utils.hardware`; they also appear here as rows, named
"<card> <dtype> peak", "<card> memory" and "<card> bandwidth". Looking one of those up loads PyTorch.
"""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from course_utils.units import plain, readable, takes_prefix

Unit = Literal[
    "FLOPs", "FLOP/s", "B", "B/s", "s", "parameters", "tokens", "tokens/s", "devices", "layers", "heads", "elements",
    "GPU-hours", "days", "interruptions", "share", "USD", "USD/GPU-hour",
]  # fmt: skip
UNITS: tuple[str, ...] = get_args(Unit)


@dataclass(frozen=True)
class Fact:
    """A number that somebody else measured, counted or promised.

    Attributes:
        value: in ``unit``, without prefix: 175e9 parameters.
        unit: one of `UNITS`. "share" is a number from 0 to 1; "elements" are numbers in a vector.
        source: who says so, and where.
        date: year and month in which the source was published; of pages that change (prices, data sheets) and of our
            own reading of a source, when they were read.
        note: what to know before using it.
    """

    value: float
    unit: Unit
    source: str
    date: str
    note: str = ""

    def __str__(self) -> str:
        """The value with its unit, for a person: ``"175 billion parameters"``, ``"46.2 %"``, ``"80 GB"``."""
        if self.unit == "share":
            return f"{100 * self.value:.3g} %"
        if takes_prefix(self.unit):
            return readable(self.value, self.unit)
        for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
            if self.value >= size:
                return f"{self.value / size:.4g} {word} {self.unit}"
        return f"{plain(self.value) if self.value < 1000 else f'{self.value:,.0f}'} {self.unit}"


class UnknownFact(KeyError):
    """There's no fact of that name; the message lists similar names."""

    def __init__(self, name: object, near: list[str]) -> None:
        super().__init__(name)
        self.name, self.near = name, near

    def __str__(self) -> str:
        given = f"there is no fact called {self.name!r}"
        if self.near:
            return f"{given}. Near it: {', '.join(map(repr, self.near))}"
        return f"{given}. facts.table() shows them all."


class Facts(Mapping[str, Fact]):
    """Facts by name, in order. Looking up an accelerator's row, or all names, loads PyTorch."""

    def __init__(self, written: Mapping[str, Fact]) -> None:
        self._written = dict(written)

    def __getitem__(self, name: str) -> Fact:
        found = self._written.get(name) or self._accelerators.get(name)
        if found is None:
            raise UnknownFact(name, near(name, list(self)))
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._written
        yield from self._accelerators

    def __len__(self) -> int:
        return len(self._written) + len(self._accelerators)

    @cached_property
    def _accelerators(self) -> dict[str, Fact]:
        from course_utils.hardware import ACCELERATORS, TABLE_DATE

        rows: dict[str, Fact] = {}
        for card in ACCELERATORS.values():
            about = (card.source, TABLE_DATE, card.note)
            for dtype, rate in card.peak.items():
                rows[f"{card.name} {str(dtype).removeprefix('torch.')} peak"] = Fact(rate, "FLOP/s", *about)
            if card.memory_bytes is not None:
                rows[f"{card.name} memory"] = Fact(card.memory_bytes, "B", *about)
            rows[f"{card.name} bandwidth"] = Fact(card.bandwidth, "B/s", *about)
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
        cells = [(name, str(fact), f"{fact.source}, {fact.date}") for name, fact in self._rows.items()]
        widths = [max((len(row[i]) for row in cells), default=0) for i in range(2)]
        return "\n".join(f"{name:<{widths[0]}}  {value:>{widths[1]}}  {source}" for name, value, source in cells)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Jupyter's hook."""
        head = "".join(f'<th style="text-align:left">{title}</th>' for title in ("what", "how much", "who says so"))
        body = []
        for name, fact in self._rows.items():
            note = f"<br><small>{html.escape(fact.note)}</small>" if fact.note else ""
            source = f"{html.escape(fact.source)}, {fact.date}{note}"
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


def _model(name: str, source: str, date: str, **numbers: tuple[float, Unit]) -> dict[str, Fact]:
    """One fact for each number of a model: ``GPT-3``, ``layers=(96, "layers")`` gives "GPT-3 layers"."""
    return {f"{name} {what.replace('_', ' ')}": Fact(*number, source, date) for what, number in numbers.items()}


def _shape(
    name: str, source: str, date: str, layers: int, width: int, heads: int, kv_heads: int, feed_forward: int
) -> dict[str, Fact]:
    return _model(
        name,
        source,
        date,
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
        _MOSAIC_DATE,
        parameters=(parameters, "parameters"),
        layers=(layers, "layers"),
        width=(width, "elements"),
        heads=(heads, "heads"),
        context=(context, "tokens"),
        devices=(devices, "devices"),
        throughput=(throughput, "tokens/s"),
    )


_GPT2 = "Radford et al., Language Models are Unsupervised Multitask Learners (GPT-2), the smallest model as released"
_GPT3 = "Brown et al., Language Models are Few-Shot Learners (GPT-3)"
_GOPHER = "Rae et al., Scaling Language Models (Gopher)"
_CHINCHILLA = "Hoffmann et al., Training Compute-Optimal Large Language Models"
_PALM = "Chowdhery et al., PaLM"
_PALM_3 = f"{_PALM}, table 3"
_MEGATRON = "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (Megatron-LM)"
_KORTHIKANTI = "Korthikanti et al., Reducing Activation Recomputation, table 5"
_MTNLG = "Smith et al., Megatron-Turing NLG 530B (arXiv:2201.11990)"
_MTNLG_RATES = f"{_MTNLG}, section 2.4 and its shape, by way of github.com/cli99/llm-analysis"
_RECOMPUTED = "per GPU, recomputed activations counted as work"
_FALCON = "Almazrouei et al., The Falcon Series of Open Language Models (arXiv:2311.16867), table 1"
_OLMO2 = "OLMo Team, 2 OLMo 2 Furious (arXiv:2501.00656)"
_OLMO2_CARD = "OLMo 2 model card"
_MOSAIC = "MosaicML, llm-foundry, scripts/train/benchmarking"
_MOSAIC_DATE = "2026-11"
_LLAMA2 = "Llama 2 model card"
_LLAMA3 = "Llama 3.1 model card"
_HERD = "The Llama 3 Herd of Models"
_HERD_4 = f"{_HERD}, table 4"
_DEEPSEEK = "DeepSeek-V3 Technical Report"
_COUNTED = "counted from the published shapes"
_PETAFLOP_DAY = 1e15 * 86_400  # FLOPs
_MAMF = "Stas Bekman, mamf-finder, github.com/stas00/ml-engineering"

_TRAINING_FLOPS = {
    "GPT-3 training FLOPs": Fact(3.14e23, "FLOPs", f"{_GPT3}, table D.1", "2020-05"),
    "Gopher training FLOPs": Fact(
        5.76e23, "FLOPs", _CHINCHILLA, "2022-03", "the budget that Gopher and Chinchilla share"
    ),
    "Chinchilla training FLOPs": Fact(
        5.76e23, "FLOPs", _CHINCHILLA, "2022-03", "the budget that Gopher and Chinchilla share"
    ),
    "GPT-4 training FLOPs": Fact(
        2.1e25,
        "FLOPs",
        "Epoch AI, database of notable AI models",
        "2026-11",
        "an outsider's estimate: OpenAI has published nothing",
    ),
    "Llama 3.1 405B training FLOPs": Fact(3.8e25, "FLOPs", _HERD, "2024-07"),
    "PaLM 540B training FLOPs": Fact(
        2.53e24, "FLOPs", f"{_PALM}, by way of secondary sources", "2022-04", "printed there as 2.53 billion petaFLOPs"
    ),
    "Falcon 40B training FLOPs": Fact(
        2_800 * _PETAFLOP_DAY, "FLOPs", f"{_FALCON}, by way of Epoch AI", "2023-11", "printed as 2,800 petaFLOP/s-days"
    ),
    "Falcon 180B training FLOPs": Fact(
        43_500 * _PETAFLOP_DAY,
        "FLOPs",
        f"{_FALCON}, by way of Epoch AI",
        "2023-11",
        "printed as 43,500 petaFLOP/s-days",
    ),
    "OLMo 2 7B training FLOPs": Fact(1.8e23, "FLOPs", _OLMO2_CARD, "2024-11"),
    "OLMo 2 13B training FLOPs": Fact(4.6e23, "FLOPs", _OLMO2_CARD, "2024-11"),
    "Llama 2 13B training FLOPs": Fact(1.6e23, "FLOPs", _OLMO2_CARD, "2024-11", "an outsider's estimate"),
    "Llama 3.1 8B training FLOPs": Fact(7.2e23, "FLOPs", _OLMO2_CARD, "2024-11", "an outsider's estimate"),
    "US reporting threshold": Fact(
        1e26,
        "FLOPs",
        "Executive Order 14110, section 4.2(b)",
        "2023-10",
        "revoked in January 2025 (Executive Order 14148)",
    ),
    "EU systemic-risk threshold": Fact(
        1e25, "FLOPs", "Regulation (EU) 2024/1689 (AI Act), article 51(2)", "2024-07", "applies since August 2025"
    ),
}

_MODELS = (
    _model(
        "GPT-3",
        f"{_GPT3}, tables 2.1 and 2.2",
        "2020-05",
        parameters=(175e9, "parameters"),
        tokens=(300e9, "tokens"),
        layers=(96, "layers"),
        width=(12_288, "elements"),
        heads=(96, "heads"),
        feed_forward_width=(49_152, "elements"),
        context=(2_048, "tokens"),
        vocabulary=(50_257, "tokens"),
    )
    | _model(
        "GPT-2 small",
        _GPT2,
        "2019-02",
        layers=(12, "layers"),
        width=(768, "elements"),
        heads=(12, "heads"),
        context=(1_024, "tokens"),
        vocabulary=(50_257, "tokens"),
    )
    | {
        "GPT-2 small parameters": Fact(
            124_439_808, "parameters", _COUNTED, "2019-02", "the tied table counted once; the paper says 117M"
        )
    }
    | _model("Gopher", _GOPHER, "2021-12", parameters=(280e9, "parameters"), tokens=(300e9, "tokens"))
    | _model("Chinchilla", _CHINCHILLA, "2022-03", parameters=(70e9, "parameters"), tokens=(1.4e12, "tokens"))
    | _model(
        "PaLM 540B",
        f"{_PALM}, table 1 and sections 2 and 4.1",
        "2022-04",
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
        f"{_PALM}, appendix B (by way of Smith et al.)",
        "2022-04",
        parameters=(530e9, "parameters"),
        layers=(105, "layers"),
        width=(20_480, "elements"),
        context=(2_048, "tokens"),
        devices=(2_240, "devices"),
        throughput=(65.43e3, "tokens/s"),
    )
    | {"MT-NLG 530B heads": Fact(128, "heads", _MTNLG_RATES, "2022-01")}
    | _mosaic("MosaicML 1B, long context", 1_445_974_016, 24, 2_048, 16, 65_536, 8, 44_050)
    | _mosaic("MosaicML 7B", 6_658_859_008, 32, 4_096, 32, 2_048, 8, 85_144)
    | _mosaic("MosaicML 13B", 12_853_954_560, 40, 5_120, 40, 2_048, 8, 38_336)
    | _mosaic("MosaicML 70B", 64_862_437_376, 80, 8_192, 64, 2_048, 64, 66_523)
    | {"MosaicML vocabulary": Fact(50_368, "tokens", "MosaicML, llm-foundry, scripts/train/yamls", _MOSAIC_DATE)}
    | _model(
        "OLMo 2 7B",
        f"{_OLMO2} and the released weights, by way of secondary sources",
        "2024-12",
        parameters=(7_298_617_344, "parameters"),
        tokens=(4.05e12, "tokens"),
    )
    | _model(
        "OLMo 2 13B",
        f"{_OLMO2} and the released weights, by way of secondary sources",
        "2024-12",
        parameters=(13_716_198_400, "parameters"),
        tokens=(5.6e12, "tokens"),
    )
    | _model("Falcon 40B", _FALCON, "2023-11", parameters=(40e9, "parameters"), tokens=(1.0e12, "tokens"))
    | _model("Falcon 180B", _FALCON, "2023-11", parameters=(180e9, "parameters"), tokens=(3.5e12, "tokens"))
    | {
        "Llama 2 7B parameters": Fact(6_738_415_616, "parameters", _COUNTED, "2023-07"),
        "Llama 2 13B parameters": Fact(13_015_864_320, "parameters", _COUNTED, "2023-07"),
        "Llama 2 70B parameters": Fact(68_976_648_192, "parameters", _COUNTED, "2023-07"),
        "Llama 2 tokens": Fact(2.0e12, "tokens", _LLAMA2, "2023-07"),
        "Llama 3.1 8B parameters": Fact(8_030_261_248, "parameters", _COUNTED, "2024-07"),
        "Llama 3.1 70B parameters": Fact(70_553_706_496, "parameters", _COUNTED, "2024-07"),
        "Llama 3.1 405B parameters": Fact(405_853_388_800, "parameters", _COUNTED, "2024-07"),
        "Llama 3.1 tokens": Fact(15e12, "tokens", _LLAMA3, "2024-07", "the card says 15T+, more than 15 trillion"),
        "Llama 3.1 405B tokens": Fact(15.6e12, "tokens", _HERD, "2024-07"),
        "Llama 2 vocabulary": Fact(32_000, "tokens", "the released weights", "2023-07"),
        "Megatron vocabulary": Fact(51_200, "tokens", "github.com/NVIDIA/Megatron-LM, README", "2026-11"),
        "Llama 3.1 vocabulary": Fact(128_256, "tokens", "the released weights", "2024-07"),
    }
    | _shape("Llama 2 7B", "the released weights", "2023-07", 32, 4_096, 32, 32, 11_008)
    | _shape("Llama 2 13B", "the released weights", "2023-07", 40, 5_120, 40, 40, 13_824)
    | _shape("Llama 2 70B", "the released weights", "2023-07", 80, 8_192, 64, 8, 28_672)
    | _shape("Llama 3.1 8B", f"{_HERD}, table 3", "2024-07", 32, 4_096, 32, 8, 14_336)
    | _shape("Llama 3.1 70B", f"{_HERD}, table 3", "2024-07", 80, 8_192, 64, 8, 28_672)
    | _shape("Llama 3.1 405B", f"{_HERD}, table 3", "2024-07", 126, 16_384, 128, 8, 53_248)
    | _model(
        "DeepSeek-V3",
        _DEEPSEEK,
        "2024-12",
        parameters=(671e9, "parameters"),
        active_parameters=(37e9, "parameters"),
        tokens=(14.8e12, "tokens"),
    )
)

_RUNS = {
    "GPT-3 on A100s devices": Fact(1_024, "devices", f"{_MEGATRON}, section 5.1", "2021-04"),
    "GPT-3 on A100s rate": Fact(140e12, "FLOP/s", f"{_MEGATRON}, section 5.1", "2021-04", _RECOMPUTED),
    "GPT-3 on A100s duration": Fact(34, "days", f"{_MEGATRON}, section 5.1", "2021-04", "an estimate of its authors"),
    "1T model on A100s parameters": Fact(1e12, "parameters", f"{_MEGATRON}, section 5.1", "2021-04"),
    "1T model on A100s tokens": Fact(450e9, "tokens", f"{_MEGATRON}, section 5.1", "2021-04"),
    "1T model on A100s devices": Fact(3_072, "devices", f"{_MEGATRON}, section 5.1", "2021-04"),
    "1T model on A100s rate": Fact(163e12, "FLOP/s", f"{_MEGATRON}, section 5.1", "2021-04", _RECOMPUTED),
    "1T model on A100s duration": Fact(
        84, "days", f"{_MEGATRON}, section 5.1", "2021-04", "an estimate of its authors"
    ),
    "Llama 2 7B GPU-hours": Fact(184_320, "GPU-hours", _LLAMA2, "2023-07", "A100 80GB"),
    "Llama 2 13B GPU-hours": Fact(368_640, "GPU-hours", _LLAMA2, "2023-07", "A100 80GB"),
    "Llama 2 70B GPU-hours": Fact(1_720_320, "GPU-hours", _LLAMA2, "2023-07", "A100 80GB"),
    "Llama 3.1 8B GPU-hours": Fact(1.46e6, "GPU-hours", _LLAMA3, "2024-07", "H100 80GB"),
    "Llama 3.1 70B GPU-hours": Fact(7.0e6, "GPU-hours", _LLAMA3, "2024-07", "H100 80GB"),
    "Llama 3.1 405B GPU-hours": Fact(30.84e6, "GPU-hours", _LLAMA3, "2024-07", "H100 80GB"),
    "Llama 3.1 405B devices": Fact(16_384, "devices", _HERD_4, "2024-07", "8,192 in an earlier stage"),
    "Llama 3.1 405B observed": Fact(54, "days", f"{_HERD}, section 3.3.4", "2024-07", "a stretch of its pre-training"),
    "Llama 3.1 405B unexpected interruptions": Fact(
        419, "interruptions", f"{_HERD}, section 3.3.4", "2024-07", "in those 54 days; 47 more were planned"
    ),
    "Llama 3.1 405B effective training time": Fact(
        0.9, "share", f"{_HERD}, section 3.3.4", "2024-07", "over 90 %, they say"
    ),
    "MT-NLG 530B tokens in a step": Fact(1_920 * 2_048, "tokens", _MTNLG_RATES, "2022-01"),
    "MT-NLG 530B step on 2,240 GPUs": Fact(60.1, "s", _MTNLG_RATES, "2022-01"),
    "MT-NLG 530B step on 2,800 GPUs": Fact(50.2, "s", _MTNLG_RATES, "2022-01"),
    "MT-NLG 530B step on 3,360 GPUs": Fact(44.4, "s", _MTNLG_RATES, "2022-01"),
    "MT-NLG 530B rate on 2,240 GPUs": Fact(126e12, "FLOP/s", _MTNLG_RATES, "2022-01", _RECOMPUTED),
    "MT-NLG 530B rate on 2,800 GPUs": Fact(121e12, "FLOP/s", _MTNLG_RATES, "2022-01", _RECOMPUTED),
    "MT-NLG 530B rate on 3,360 GPUs": Fact(113e12, "FLOP/s", _MTNLG_RATES, "2022-01", _RECOMPUTED),
    "Llama 3.1 405B context": Fact(
        8_192, "tokens", f"{_HERD}, section 3.4.1", "2024-07", "of its initial pre-training; longer at the end"
    ),
    "DeepSeek-V3 pre-training GPU-hours": Fact(2.664e6, "GPU-hours", _DEEPSEEK, "2024-12", "H800"),
    "DeepSeek-V3 GPU-hours": Fact(2.788e6, "GPU-hours", _DEEPSEEK, "2024-12", "H800; all stages"),
    "DeepSeek-V3 cost": Fact(
        5.576e6, "USD", _DEEPSEEK, "2024-12", "rent of the final run only: no research, no staff, no failed runs"
    ),
}

_ZERO = "Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, figure 1"

_SHARDING = {
    "ZeRO example parameters": Fact(7.5e9, "parameters", _ZERO, "2019-10"),
    "ZeRO example devices": Fact(64, "devices", _ZERO, "2019-10"),
} | {
    f"ZeRO example memory, stage {stage}": Fact(size, "B", _ZERO, "2019-10", "on each device, without activations")
    for stage, size in enumerate((120e9, 31.4e9, 16.6e9, 1.9e9))
}

_UTILIZATION = {
    "GPT-3 MFU": Fact(0.213, "share", _PALM_3, "2022-04"),
    "Gopher MFU": Fact(0.325, "share", _PALM_3, "2022-04"),
    "MT-NLG 530B MFU": Fact(0.302, "share", _PALM_3, "2022-04"),
    "MT-NLG 530B MFU without attention": Fact(0.297, "share", f"{_PALM}, appendix B", "2022-04"),
    "PaLM 540B MFU": Fact(0.462, "share", _PALM_3, "2022-04"),
    "PaLM 540B MFU without attention": Fact(0.457, "share", f"{_PALM}, appendix B", "2022-04"),
    "PaLM 540B HFU": Fact(0.578, "share", f"{_PALM}, section 4.1", "2022-04", "recomputed activations counted as work"),
    "Megatron 175B MFU": Fact(0.514, "share", _KORTHIKANTI, "2022-05"),
    "Megatron 175B HFU": Fact(0.528, "share", _KORTHIKANTI, "2022-05"),
    "Megatron 1T MFU": Fact(0.563, "share", _KORTHIKANTI, "2022-05"),
    "Megatron 1T HFU": Fact(0.570, "share", _KORTHIKANTI, "2022-05"),
    "MosaicML 1B, long context MFU": Fact(0.2634, "share", _MOSAIC, _MOSAIC_DATE),
    "MosaicML 7B MFU": Fact(0.4644, "share", _MOSAIC, _MOSAIC_DATE),
    "MosaicML 13B MFU": Fact(0.3979, "share", _MOSAIC, _MOSAIC_DATE),
    "MosaicML 70B MFU": Fact(0.4257, "share", _MOSAIC, _MOSAIC_DATE),
    "Llama 3.1 405B MFU, 8,192 GPUs": Fact(0.43, "share", _HERD_4, "2024-07"),
    "Llama 3.1 405B MFU, 16,384 GPUs": Fact(0.41, "share", _HERD_4, "2024-07"),
    "Llama 3.1 405B MFU, long context": Fact(0.38, "share", _HERD_4, "2024-07", "16,384 GPUs, 131,072 tokens"),
    "Llama 3.1 405B rate, 8,192 GPUs": Fact(430e12, "FLOP/s", _HERD_4, "2024-07", "per GPU"),
    "Llama 3.1 405B rate, 16,384 GPUs": Fact(400e12, "FLOP/s", _HERD_4, "2024-07", "per GPU"),
    "Llama 3.1 405B rate, long context": Fact(
        380e12, "FLOP/s", _HERD_4, "2024-07", "per GPU; 16,384 GPUs, 131,072 tokens"
    ),
}

# Read in transcripts of these pages: Lambda's in github.com/api-evangelist/lambda-labs (2026-09-20), the other two in
# github.com/datareceipts/data-receipts (2026-11-09; AWS asks 55.04 USD an hour for eight cards).
_LAMBDA = "Lambda, lambda.ai/instances, eight cards on demand"
_RUNPOD = "RunPod, community cloud, runpod.io/pricing"
_AWS = "AWS, p5.48xlarge on demand, us-east-1"

_CARDS = {
    "H100 SXM sparse peak, as printed": Fact(
        1979e12,
        "FLOP/s",
        "NVIDIA H100 product page",
        "2026-11",
        "16 bit, for 2:4 sparse matrices; half of it for others",
    ),
    "H100 SXM memory, as nvidia-smi reports it": Fact(
        81_559 * 2**20, "B", "nvidia-smi, printed as 81559MiB; modal-client pull request 2797", "2025-01"
    ),
    "H100 SXM PCIe bandwidth": Fact(
        128e9, "B/s", "NVIDIA H100 product page", "2026-11", "PCIe Gen5 x16, both directions together"
    ),
    "MaxText 32B MFU on TPU v5e": Fact(
        0.6686, "share", "Google, MaxText, README of github.com/AI-Hypercomputer/maxtext", "2025-05", "256 chips"
    ),
    "TPU v4 bfloat16 peak": Fact(275e12, "FLOP/s", f"{_PALM}, appendix B", "2022-04"),
    "A100 SXM fastest matmul": Fact(271e12, "FLOP/s", _MAMF, "2026-08", "bfloat16, the best of many shapes"),
    "H100 SXM fastest matmul": Fact(794.5e12, "FLOP/s", _MAMF, "2026-08", "bfloat16, the best of many shapes"),
    "H100 SXM NVLink bandwidth": Fact(
        900e9, "B/s", "NVIDIA H100 product page", "2026-11", "both directions together, within a server"
    ),
    "Llama 3.1 405B network": Fact(
        50e9, "B/s", f"{_HERD}, section 3.3.1", "2024-07", "400 Gbit/s for each GPU, between servers"
    ),
}

_PRICES = {
    "A100 SXM 80GB rent": Fact(2.79, "USD/GPU-hour", _LAMBDA, "2026-09"),
    "H100 SXM rent": Fact(3.99, "USD/GPU-hour", _LAMBDA, "2026-09"),
    "B200 rent": Fact(6.69, "USD/GPU-hour", _LAMBDA, "2026-09"),
    "H100 SXM rent, cheap": Fact(2.69, "USD/GPU-hour", _RUNPOD, "2026-11", "cards of third-party hosts"),
    "H100 SXM rent, dear": Fact(6.88, "USD/GPU-hour", _AWS, "2026-11"),
    "H800 rent, DeepSeek's assumption": Fact(2.00, "USD/GPU-hour", _DEEPSEEK, "2024-12"),
}

FACTS = Facts(_TRAINING_FLOPS | _MODELS | _RUNS | _SHARDING | _UTILIZATION | _CARDS | _PRICES)
