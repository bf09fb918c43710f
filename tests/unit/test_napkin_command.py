"""The planner's command, python -m course_utils.napkin: what it prints, takes and refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_models import SHAPES, Scorer

from course_utils import napkin
from course_utils.facts import FACTS
from course_utils.hardware import ACCELERATORS
from course_utils.napkin.__main__ import main
from course_utils.napkin.utilization import rates_in
from course_utils.units import readable

REPOSITORY = Path(__file__).parents[2]


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
    marks = {int(mark) for marks in re.findall(r"\[([\d, ]+)\]$", shown, re.M) for mark in marks.split(", ")}
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
    given = ["--module", "small_models:Scorer", "--json", "--peak", "1e12", "--memory", "16e9"]
    counted = json.loads(run(capsys, *given, "--input", "int64[2, 24]", "--cards", "2"))
    values = {(line["group"], line["what"]): line["value"] for line in counted["lines"]}
    found = napkin.trace(Scorer, torch.empty(2, 24, dtype=torch.int64, device="meta"))
    assert values["bytes on each card", "activations"] == found.activations
    assert values["FLOPs", "a token"] == found.flops / 48
    assert values["time", "peak"] == 1e12 and counted["fits"] and "of 16 GB" in counted["verdict"]
    ruled = json.loads(run(capsys, *given, "--batch", "4"))
    values = {(line["group"], line["what"]): line["value"] for line in ruled["lines"]}
    assert (
        values["FLOPs", "a token"] == 6 * found.parameters + 4 * found.frozen
        and values["time", "tokens in a step"] == 4 * 2_048
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], r"give a model: --model NAME, --module MODULE:FUNCTION, or a shape \(--layers, .* missing\)"),
        (["--layers", "2", "--width", "64"], r"\(--heads, --vocabulary missing\)"),
        (["--model", "Llama 3 70B"], "no model called 'Llama 3 70B'. Similar names: Llama 3.1 70B"),
        (["--model", "GPT-3", "--rms-norm"], "--rms-norm: GPT-3 already has a shape"),
        (["--model", "GPT-3", "--card", "H100"], "no card called 'H100'. Similar names: H100 SXM, H100 PCIe, H100 NVL"),
        (["--model", "GPT-3", "--card", "abacus"], "no card called 'abacus'. hardware.ACCELERATORS and --list"),
        (["--model", "GPT-3", "--memory", "1e9"], "--memory needs --card or --peak"),
        (["--model", "GPT-3", "--bandwidth", "1e12"], "--bandwidth needs --card or --peak"),
        (["serve", "--model", "GPT-3", "--peak", "989T"], "give the card's --bandwidth"),
        (["--model", "GPT-3", "--input", "int64[2]"], "--input is a module's input"),
        (["--model", "GPT-3", "--tokens", "many"], "--tokens: 'many' is not a number; expected one such as 0.4"),
        (["--model", "GPT-3", "--tokens", "-1"], "tokens is -1.0: it must be positive"),
        (["--model", "GPT-3", "--mfu", "41"], "the MFU is 41.0: give it as a fraction of the peak"),
        (["--model", "GPT-3", "--batch", "1.5"], "'1.5' is not a count; expected 1, 2, 3"),
        (["--model", "GPT-3", "--batch", "1e400"], "'1e400' is not a count; expected 1, 2, 3, … and at most 10¹⁵"),
        (["--model", "GPT-3", "--cards", "1e99"], "'1e99' is not a number of cards"),
        (["--model", "GPT-3", "--card", "H200", "--memory", "-1"], "memory is -1.0: it must be positive and finite"),
        (["--model", "GPT-3", "--card", "H200", "--memory", "inf"], "memory is inf: it must be positive and finite"),
        (["--model", "GPT-3", "--peak", "nan"], "peak is nan: it must be positive and finite"),
        (
            ["serve", "--model", "GPT-3", "--card", "T4", "--peak", "1e-200", "--mfu", "1e-200"],
            "'1e-200' is only 1e-200 FLOP/s",
        ),
        (["--model", "GPT-3", "--card", "H200", "--memory", "80"], "'80' is only 80 B; expected one such as 80GB"),
        (["--model", "GPT-3", "--peak", "989"], "'989' is only 989 FLOP/s; expected one such as 989T"),
        (["--model", "GPT-3", "--card", "H200", "--tokens", "1,5T"], "'1,5T' is not a number"),
        (["--model", "GPT-3", "--memory", "24 apples"], "'24 apples' is not a number; expected one such as 24G, 80GB"),
        (["--model", "abacus"], "no model called 'abacus'. --list shows them all"),
        (["--model", "GPT-3", "--global-batch", "5000"], "expected a multiple of 2,048, the tokens in one batch"),
        (["--model", "GPT-3", "--global-batch", "4096", "--accumulation", "2"], "leave out --accumulation"),
        (["--model", "GPT-3", "--adapted", "queries"], "--adapted needs --lora RANK"),
        (["--model", "GPT-3", "--lora", "8"], "most weights are frozen, and there is no rule .*: set tokens"),
        (
            ["--model", "GPT-3", "--lora", "8", "--adapted", "gate", "--tokens", "1M"],
            "adapted names 'gate': expected matrices of the model, queries, keys, values, output, up, down",
        ),
        (["--model", "GPT-3", "--cards", "8", "--tensor", "3"], "8 cards cannot be divided into groups of 3"),
        (["--model", "GPT-3", "--cards", "5", "--tensor", "5"], "96 heads cannot be divided among 5 cards"),
        (["--model", "GPT-3", "--cards", "97", "--pipeline", "97"], "96 layers cannot be divided among 97 stages"),
        (["--model", "GPT-3", "--cards", "2", "--expert", "2"], "no experts: they cannot be divided evenly"),
        (["--model", "Llama 2 7B", "--experts", "8"], "a mixture of experts needs --active-experts, --expert-width"),
        (
            ["--model", "GPT-3", "--card", "A10G", "--recipe", "float8, float32 master copy"],
            "no 8-bit peak of .*: choose",
        ),
        (["mfu", "--model", "GPT-3"], "give the speed in exactly one way: --tokens-per-second N"),
        (["mfu", "--model", "GPT-3", "--tokens-per-second", "1T"], "an MFU of .* is more than 1 × H100 SXM can do"),
        (["mfu", "--model", "GPT-3", "--tokens-per-second", "1", "--dtype", "int7"], "H100 SXM has no rate for 'int7'"),
        (["mfu", "--parameters", "1B", "--log", "no-such-file"], "No such file"),
        (["serve", "--model", "GPT-3", "--cards", "5"], "96 heads cannot be divided among 5 cards"),
        (["serve", "--model", "GPT-3", "--card", "RTX 4090", "--cards", "16"], "no link in the table that connects 16"),
        (["--model", "GPT-3", "--recipe", "float8"], "invalid choice: 'float8' .*bfloat16 alone"),
        (["--layers", "1", "--width", "64", "--heads", "5", "--vocabulary", "9"], "5 heads cannot share a width of 64"),
        (["--module", "small_models"], "expected MODULE:FUNCTION, such as my_package.model:make"),
        (["--module", "no_such_package:make"], "No module named 'no_such_package'; searched this folder"),
        (["--module", "small_models:no"], "small_models has no function no"),
        (["--module", "small_models:Scorer", "--checkpointing"], "--checkpointing cannot be combined with --module"),
        (["--module", "small_models:Scorer", "--input", "2, 24"], 'expected a dtype and a shape, such as "int64'),
        (
            ["--module", "small_models:Scorer", "--input", "int64[2, 24]", "--batch", "2"],
            "--batch and --context cannot",
        ),
        (["--module", "small_models:Scorer", "--input", "float32[2, 24]"], r"does not run on bfloat16\[2, 24\]"),
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
    assert len(examples) == 8
    for example in examples:
        example = example.partition(" (")[0]
        words = re.findall(r'"([^"]*)"|(\S+)', example.replace("my_package.model:make", "small_models:Scorer"))
        assert run(capsys, *(quoted or word for quoted, word in words))
    listed = run(capsys, "--list").split("\n  ")
    assert {*napkin.PUBLISHED, *ACCELERATORS} <= {line.splitlines()[0] for line in listed if line}


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "matplotlib", "pandas", "scipy"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from course_utils import cards, facts, flops, hardware, napkin, sources, units
from course_utils.napkin.__main__ import main
from course_utils.napkin.utilization import rates_in
from course_utils.units import readable
"""
COMMANDS = [
    ["--model", "DeepSeek-V3", "--cards", "64", "--zero", "3", "--tokens", "1T"],
    ["--layers", "2", "--width", "64", "--heads", "4", "--vocabulary", "99", "--batch", "1e7", "--card", "T4"],
    ["--model", "GPT-3", "--memory", "80GB", "--peak", "989T", "--json"],
    ["serve", "--model", "Llama 3.1 70B", "--cards", "4", "--weights", "float8"],
    ["mfu", "--model", "nanochat d24", "--tokens-per-second", "799829", "--cards", "8", "--dtype", "bf16"],
    ["--list"],
]


def test_everything_about_shapes_does_without_pytorch_numpy_and_matplotlib() -> None:
    """Imported, planned and printed where these packages cannot even be imported."""
    code = WITHOUT + f"for words in {COMMANDS!r}:\n    main(words)\n"
    code += "assert facts.FACTS['B200 bfloat16 peak'].value == hardware.peak_flops('B200', 'bfloat16')\n"
    code += "assert len(list(facts.FACTS)) > 400 and flops.mfu(1, 1, 2) == 0.5 and units.readable(1, 's')\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("MFU") > 3


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_command_does_not_import_pytorch_for_a_shape(words: list[str]) -> None:
    code = f"import sys; from course_utils.napkin.__main__ import main; main({words!r}); "
    code += "assert not {'torch', 'numpy', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "GPT-3", "--batch", "1e7"],
        ["--model", "GPT-3", "--batch", "1e15", "--context", "1e15"],
        ["--model", "Llama 3.1 405B", "--cards", "1e15"],
        ["--layers", "1e15", "--width", "1e15", "--heads", "1", "--vocabulary", "1e15", "--window", "9"],
        ["serve", "--model", "Llama 3.1 8B", "--batch", "1e15", "--prompt", "1e15", "--output", "1e15"],
        ["serve", "--model", "Llama 3.1 8B", "--card", "H200", "--memory", "1e15G"],
    ],
    ids=" ".join,
)
def test_no_number_is_so_large_that_the_command_hangs(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All of these are answered at once: nothing is counted up."""
    began = time.process_time()
    shown = run(capsys, *words)
    assert "fit" in shown and time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "value"), [("24G", 24e9), ("80GB", 80e9), ("80 GiB", 80 * 2**30), ("1e9", 1e9), ("2T", 2e12)]
)
def test_memory_is_given_as_people_write_it(text: str, value: float, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "--model", "GPT-2 small", "--card", "A10G", "--memory", text)
    assert re.search(rf"(of|card's) {readable(value, 'B')}[,.]", shown)


def test_mfu_is_found_in_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """nanochat's run: MFU 50%. The log's first steps are slow; the median is not."""
    log = tmp_path / "train.log"
    rates = [
        f"step {i:05d} | loss: 3.{i} | dt: 655.50ms | tok/sec: {r} | mfu: 1"
        for i, r in enumerate(["12,345", "799,829", "799,829", "799,829"])
    ]
    log.write_text("\n".join(rates))
    shown = json.loads(run(capsys, "mfu", "--model", "nanochat d24", "--cards", "8", "--log", str(log), "--json"))
    values = {line["what"]: line["value"] for line in shown["lines"]}
    model, facts_of = napkin.PUBLISHED["nanochat d24"], "nanochat d24"
    flops, seconds, peak = FACTS[f"{facts_of} training FLOPs"].value, FACTS[f"{facts_of} duration"].value, 989.4e12
    assert values["MFU"] == pytest.approx(flops / seconds / (8 * peak), rel=1e-4) == pytest.approx(0.4997, abs=1e-4)
    direct = napkin.mfu(model, 799_829, context=2_048, cards=8)
    assert direct["time", "MFU"] == values["MFU"] and shown["fits"] is None and "fit" not in str(direct)
    two = run(
        capsys,
        "mfu",
        "--model",
        "nanochat d24",
        "--cards",
        "8",
        "--tokens-per-step",
        "524288",
        "--seconds-per-step",
        "0.6555",
        "--json",
    )
    assert json.loads(two)["lines"][-1]["value"] == pytest.approx(values["MFU"], rel=1e-4)


@pytest.mark.parametrize(
    ("log", "rates"),
    [
        ("178k tokens/s", [178_000.0]),
        ("tokens_per_sec=1234.5 loss=2", [1234.5]),
        ("step 3/10 | 0.65 s | 1.2M tok/s | 54% MFU", [1.2e6]),
        ("throughput: 9,876 tokens per second\n9877 tokens per second", [9876.0, 9877.0]),
        ("512 tokens, 3 steps", []),
    ],
)
def test_rates_are_found_as_logs_print_them(log: str, rates: list[float]) -> None:
    assert rates_in(log) == rates


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE there")
def test_closing_the_pipe_early_is_not_an_error() -> None:
    command = [sys.executable, "-u", "-m", "course_utils.napkin", "--model", "GPT-3", "--json"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        assert running.stderr.read() == b""
