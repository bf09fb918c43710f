"""The planner's command, python -m course_utils.napkin: what it prints, takes and refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_models import SHAPES, Scorer

from course_utils import napkin
from course_utils.hardware import ACCELERATORS
from course_utils.napkin.__main__ import main

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
    given = ["--module", "small_models:Scorer", "--json", "--peak", "1e12", "--memory", "16e9"]
    counted = json.loads(run(capsys, *given, "--input", "int64[2, 24]", "--cards", "2"))
    values = {(line["group"], line["what"]): line["value"] for line in counted["lines"]}
    found = napkin.trace(Scorer, torch.empty(2, 24, dtype=torch.int64, device="meta"))
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
        (["--model", "GPT-3", "--tokens", "many"], "--tokens: 'many' is not a number; expected one such as 0.4"),
        (["--model", "GPT-3", "--tokens", "-1"], "tokens is -1.0: it must be positive"),
        (["--model", "GPT-3", "--mfu", "41"], "mfu is 41.0: give it as a share of the peak"),
        (["--model", "GPT-3", "--batch", "1.5"], "'1.5' is not a count; expected 1, 2, 3"),
        (["--model", "GPT-3", "--recipe", "float8"], "invalid choice: 'float8' .*bfloat16 alone"),
        (["--layers", "1", "--width", "64", "--heads", "5", "--vocabulary", "9"], "5 heads cannot share a width of 64"),
        (["--module", "small_models"], "expected MODULE:FUNCTION, such as my_package.model:make"),
        (["--module", "no_such_package:make"], "No module named 'no_such_package'; it is looked for here"),
        (["--module", "small_models:no"], "small_models has no function no"),
        (["--module", "small_models:Scorer", "--checkpointing"], "--checkpointing does not go with --module"),
        (["--module", "small_models:Scorer", "--input", "2, 24"], 'expected a dtype and a shape, such as "int64'),
        (
            ["--module", "small_models:Scorer", "--input", "int64[2, 24]", "--batch", "2"],
            "--batch and --context do not",
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
    assert len(examples) == 4
    for example in examples:
        words = re.findall(r'"([^"]*)"|(\S+)', example.replace("my_package.model:make", "small_models:Scorer"))
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
def test_closing_the_pipe_early_is_not_an_error() -> None:
    command = [sys.executable, "-u", "-m", "course_utils.napkin", "--model", "GPT-3", "--json"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        assert running.stderr.read() == b""
