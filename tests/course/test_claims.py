"""A number about hardware, a library or a published run is in the table of facts or asserted, never only in prose.

What follows a name in the same sentence is looked at: "an H100 has 80 GB". It has to be a number of the H100 in the
table, or to stand in an assert of the same section (in the opening and the takeaways, of the whole lecture).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from autograder import project
from autograder.grading import source
from course_utils.cards import ACCELERATORS
from course_utils.facts import FACTS

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]

# Things that have numbers in the tables, by a word of their keys there; then makers, links and libraries.
_PRODUCTS = (
    r"[ABH]\d00|GH200|GB[23]00|V100|T4|L4|L40S|RTX \d{4}|MI\d{3}X|TPU v\d\w?|GPT-\d|Llama|LLaMA|PaLM|Gopher|Chinchilla|"
    "DeepSeek|Mixtral|Mistral|MT-NLG|Falcon|OLMo|MaxText|MosaicML|nanochat|Megatron|BLOOM|ZeRO|tf32"
)
_OTHERS = (
    "NVLink|InfiniBand|PCIe|Ethernet|Ampere|Hopper|Ada|Blackwell|tensor cores?|NVIDIA|AMD|Apple|Google|Meta|OpenAI|"
    "CS336|PyTorch|NumPy|NCCL|gloo|FlashAttention|FSDP2?|Transformer Engine|torchao|Adafactor|Lion|Muon|LoRA|QLoRA"
)
NAME = re.compile(rf"\b(?:(?P<product>{_PRODUCTS})|(?:{_OTHERS}))\b")
SENTENCE = re.compile(r"""(?<=[.?!:;])["*)]*\s+(?=[A-Z(*`$">])|\n\s*\n|\n(?=- |> |\d\. )|\|""")
SUPPOSED = re.compile(r"\b(?:[Ss]uppose|[Aa]ssum(?:e|ing)|[Tt]ake|[Ii]magine)\b")  # what follows is no claim
MEASURED = ("B", "B/s", "FLOP/s", "share")
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_WORDS = {"million": 1e6, "billion": 1e9, "trillion": 1e12, "thousand": 1e3}
_UNITS = (
    "FLOPs?|parameters|tokens|GPU-hours|hours|days|minutes|seconds|years|layers|heads|W|dollars|bytes?|bits|experts|numbers"
    "|steps|GPUs|cards|chips|elements|interruptions|multiprocessors"
)
QUANTITY = re.compile(
    r"(?<![\w.^{\-·])(?P<digits>\d[\d,]*(?:\.\d+)?)(?: \\cdot 10\^\{?(?P<power>\d+)\}?)?"
    r"(?:[ -](?P<word>million|billion|trillion|thousand))?"
    r"(?:(?P<percent>%)|[ -](?:(?P<prefix>[kMGTP]|[KMG]i)?(?P<metric>B/s|B|FLOP/s)|(?P<small>ms|µs)|Gbit/s|"
    rf"(?:{_UNITS}))(?![\w/]))?"
)


class Quantity(NamedTuple):
    """A number with a unit: as it's written, what it is in base units, as printed, and half of its last digit."""

    written: str
    value: float
    half: float
    unit: str  # "B", "B/s", "FLOP/s", "share", or "" for things that are counted
    printed: float
    half_printed: float


def quantities(sentence: str) -> Iterator[Quantity]:
    """Those in a sentence."""
    text = sentence.replace("{,}", ",").replace("\\,", "").replace("$", "").replace("\\%", "%")
    text = " ".join(re.sub(r"\]\([^)]*\)|arXiv:[\d.]+|`[^`]*`", "] ", text).split())
    for found in QUANTITY.finditer(text):
        if not any(found[group] for group in ("power", "word", "percent")) and found[0] == found["digits"]:
            continue  # no unit
        digits = found["digits"].rstrip(",").replace(",", "")
        number, half = float(digits), 0.5 * 10.0 ** -len(digits.partition(".")[2])
        scale = 10.0 ** int(found["power"] or 0) * _WORDS.get(found["word"] or "", 1.0)
        scale *= 0.01 if found["percent"] else {"ms": 1e-3, "µs": 1e-6}.get(found["small"] or "", 1.0)
        scale *= 1e9 / 8 if found[0].endswith("Gbit/s") else _SCALES[found["prefix"] or ""]
        unit = found["metric"] or ("share" if found["percent"] else "")
        unit = "B/s" if found[0].endswith("Gbit/s") else "B" if re.search("bytes?$", found[0]) else unit
        yield Quantity(found[0], number * scale, half * scale, unit, number, half)


def known_of(name: str | None) -> list[tuple[float, str]]:
    """What the tables say of a product, in which unit; of everything for None."""
    facts = {key: fact for key, fact in FACTS.items() if name is None or name.lower() in key.lower()}
    values: list[tuple[float, str]] = [
        (fact.value, fact.unit if fact.unit in MEASURED else "") for fact in facts.values()
    ]
    values += [(float(size) * 1e9, "") for size in re.findall(r"\b(\d+)B\b", " ".join(facts))]  # in a model's own name
    for card in ACCELERATORS.values():
        if name is None or name.lower() in card.name.lower():
            links = (*card.links, *([card.host] if card.host else []))
            values += [(times * link.bandwidth, "B/s") for link in links for times in (1, 2)]  # one way, and both
            values += [(float(value), "") for value in (card.power, card.multiprocessors) if value is not None]
    return values


NUMERAL = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def asserted(code: str) -> set[float]:
    """The numbers in the asserts of a cell, in texts as well."""
    numbers: set[float] = set()
    for node in ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*$", "pass", code))):
        if not isinstance(node, ast.Assert):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, (int, float)):
                numbers.add(float(part.value))
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                numbers |= {float(n.replace(",", "")) for n in NUMERAL.findall(part.value)}
            elif isinstance(part, ast.BinOp):
                try:
                    numbers.add(float(eval(ast.unparse(part), {"__builtins__": {}})))
                except Exception:  # it's made of names
                    continue
    return numbers


def unsupported(lecture: source.Lecture) -> list[str]:
    """Each number about a named thing that neither the tables nor an assert has, with its sentence."""
    section, proven, prose = 0, dict[int, set[float]](), list[tuple[int, str]]()
    for cell in lecture.notebook.cells:
        if cell.cell_type == "code":
            proven.setdefault(section, set()).update(asserted(cell.source))
            continue
        for part in re.split(r"(?m)^(?=## )", cell.source):
            section += part.startswith("## ")
            prose.append((section, part))
    everything = set().union(*proven.values()) if proven else set()
    missing = []
    for section, part in prose:
        numbers = everything if not section or part.startswith("## Takeaways") else proven.get(section, set())
        for sentence in SENTENCE.split(part):
            named = [found["product"] for found in NAME.finditer(sentence)]
            known = [pair for name in named for pair in known_of(name)]
            for q in quantities(sentence) if named and not SUPPOSED.search(sentence) else ():
                if q.written.endswith("steps") and not any(named):
                    continue  # our own, with PyTorch
                values = [*numbers, *(value for value, unit in known if unit == q.unit)]
                near = any(abs(value - q.value) <= 1.0001 * q.half for value in values)
                if not near and not any(abs(value - q.printed) <= 1.0001 * q.half_printed for value in numbers):
                    missing.append(f"{q.written!r} in {' '.join(sentence.split())!r}")
    return missing


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_number_about_a_product_is_in_the_tables_or_asserted(lecture: source.Lecture) -> None:
    missing = unsupported(lecture)
    assert not missing, "\n".join(["neither in facts.py, cards.py nor in an assert of its section:", *missing])


@pytest.mark.parametrize(
    ("sentence", "code", "wrong"),
    [
        ("An H100 has 80 GB of memory and draws 700 W.", "", []),
        ("An H100 has 100 GB of memory.", "", ["'100 GB'"]),
        ("An A100 has 141 GB.", "", ["'141 GB'"]),  # an H200 has
        ("An H100 has 100 GB of memory.", "assert size == 100", []),
        ("An H100 has 100 GB of memory.", "size = 100", ["'100 GB'"]),
        ("PaLM reached 46%, and GPT-3 took $3.14 \\cdot 10^{23}$ FLOPs.", "", []),
        ("PaLM reached 47%, and GPT-3 took $3.2 \\cdot 10^{23}$ FLOPs.", "", ["'47%'", "'3.2 \\\\cdot 10^{23} FLOPs'"]),
        ("DeepSeek-V3 was trained on 14.8 trillion tokens.", "", []),
        ("DeepSeek-V3 was trained on 16 trillion tokens.\n\n- My dog has 9 GB.", "", ["'16 trillion tokens'"]),
        ("NCCL waits for 17 minutes.", "assert True", ["'17 minutes'"]),
        ("Llama 3.1 405B is larger than GPT-3.", "", []),
        ("Suppose that an H100 had 100 GB of memory.", "", []),
        ("PyTorch's optimizer takes 30 steps here, and nanochat took 30 steps.", "", ["'30 steps'", "'30 steps'"]),
        ("PyTorch's optimizer takes 30 steps here.", "", []),
        ("An H100's memory passes 80 GB/s.", "", ["'80 GB/s'"]),  # it holds 80 GB
    ],
)
def test_such_a_number_is_noticed(sentence: str, code: str, wrong: list[str]) -> None:
    text = f'# %% [markdown]\nr"""\n# 11 · Demo\n\n## 1 · Cards\n\n{sentence}\n"""\n\n# %%\nimport torch\n{code}\n'
    lecture = source.parse(project.SOLUTIONS / "11_demo.py", text, built=False)
    assert [found.partition(" in ")[0] for found in unsupported(lecture)] == wrong


def test_there_are_such_numbers() -> None:
    sentences = [
        sentence
        for lecture in LECTURES
        for cell in lecture.notebook.cells
        if cell.cell_type == "markdown"
        for sentence in SENTENCE.split(cell.source)
        if NAME.search(sentence)
    ]
    assert sum(len(list(quantities(sentence))) for sentence in sentences) > 100
