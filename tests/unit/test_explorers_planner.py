"""The planner's page: it has the options of the command, `python -m course_utils.napkin`, and gives the same plans."""

from __future__ import annotations

import argparse
import json
from typing import Any

import explorers
import pytest
from bs4 import BeautifulSoup

from course_utils.cards import ACCELERATORS
from course_utils.explorers import Panel, planner
from course_utils.explorers.explorer import Control
from course_utils.explorers.planner import OWN
from course_utils.napkin.__main__ import main
from course_utils.napkin.models import PUBLISHED
from course_utils.units import readable

TASKS = ("train", "serve")
# Every control is there, whatever brings it.
OPEN = {
    "model": OWN, "card": OWN, "more": True, "shape": True, "mixture": True, "adapters": True, "cards": "1",
    "batch": "1",
}  # fmt: skip
LEFT_OUT = {
    "help": "it describes the command",
    "json": "it's how the command prints",
    "list": "the page's choices list all models and cards",
    "module": "a page can't import the reader's code",
    "input": "it's a module's",
}
RENAMED = {"checkpointing": "recompute"}  # addresses have had this name from the start
OPENING = {"task", "more", "shape", "mixture", "adapters"}  # these choose the command or bring other controls

# Each task's first settings, as options of the command.
FIRST: dict[str, dict[str, Any]] = {
    "train": {
        "model": "Llama 3.1 8B", "cards": 64, "zero": 3, "context": 8192, "checkpointing": True, "tokens": "15T",
        "mfu": 0.41,
    },
    "serve": {"model": "Llama 3.1 8B", "batch": 8},
}  # fmt: skip
SHAPE = {"model": None, "layers": 32, "width": 4096, "heads": 32, "vocabulary": "128k"}
EXPERTS = {**SHAPE, "experts": 8, "active_experts": 2, "expert_width": 14336}
MINE = {"model": OWN, "shape": True}
MIXED = {**MINE, "mixture": True}
BOTH: list[tuple[dict[str, Any], dict[str, Any]]] = [  # settings of either task, and the options that differ
    ({}, {}),
    ({"model": "GPT-3", "card": "A100 SXM 80GB", "cards": "16"},) * 2,
    ({"model": OWN}, SHAPE),
    *(
        ({**MINE, name: value}, {**SHAPE, name: value})
        for name, value in (
            ("layers", "12"), ("width", "1024"), ("heads", "64"), ("vocabulary", "50257"), ("kv_heads", "8"),
            ("head_width", "256"), ("feed_forward", "14336"), ("window", "1k"), ("positions", "2048"), ("gated", True),
            ("rms_norm", True), ("biases", True), ("tied", True),
        )
    ),
    ({**MINE, "kv_heads": "", "head_width": " ", "positions": "none"}, SHAPE),
    (MIXED, EXPERTS),
    *(
        ({**MIXED, name: value}, {**EXPERTS, name: value})
        for name, value in (
            ("experts", "16"), ("active_experts", "3"), ("expert_width", "2048"), ("shared_experts", "1"),
            ("dense_layers", "3"),
        )
    ),
    ({"card": OWN, "cards": "1"}, {"cards": 1, "peak": "1e15", "memory": "80e9", "bandwidth": "3e12"}),
    ({"card": OWN, "cards": "1", "peak": "2 PFLOP/s", "memory": "96 GiB", "bandwidth": "4 TB/s", "price": "1.5"},
     {"cards": 1, "peak": 2e15, "memory": "96GiB", "bandwidth": 4e12, "price": 1.5}),
    ({"card": OWN, "cards": "1", "memory": "unknown"}, {"cards": 1, "peak": "1e15", "bandwidth": "3e12"}),
    ({"more": True}, {}),
    ({"more": True, "card": "RTX 4090", "cards": "1", "peak": "200T", "memory": "48GB", "price": "1",
      "bandwidth": "2TB/s"},
     {"card": "RTX 4090", "cards": 1, "peak": "200T", "memory": "48GB", "bandwidth": 2e12, "price": 1.0}),
]  # fmt: skip
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "train": [
        *BOTH,
        ({"zero": "nothing", "tensor": "8", "pipeline": "2", "accumulation": "4"},
         {"zero": 0, "tensor": 8, "pipeline": 2, "accumulation": 4}),
        ({"model": "Mixtral 8x7B", "expert": "8"},) * 2,
        ({**MIXED, "expert": "4"}, {**EXPERTS, "expert": 4}),
        ({"batch": "2", "context": "4096", "recompute": False}, {"batch": 2, "context": 4096, "checkpointing": None}),
        ({"recipe": "float8, float32 master copy", "optimizer": "Muon"},) * 2,
        ({"tokens": "1e12", "mfu": "0.3"},) * 2,
        ({"more": True, "global_batch": "4194304"}, {"global_batch": 2**22}),
        ({"more": True, "unfused_attention": True}, {"unfused_attention": True}),
        ({"more": True, "adapters": True}, {"lora": 16}),
        ({"more": True, "adapters": True, "lora": "8", "adapted": "queries, values"},
         {"lora": 8, "adapted": "queries,values"}),
    ],
    "serve": [
        *BOTH,
        ({"model": "Llama 3.1 70B", "cards": "8", "batch": "32", "prompt": "512", "output": "1k"},) * 2,
        ({"weights": "NVFP4", "cache": "float8"},) * 2,
        ({"more": True, "mfu": "0.3"}, {"mfu": 0.3}),
    ],
}  # fmt: skip
ALL = [(task, state, options) for task, cases in CASES.items() for state, options in cases]


def words(task: str, options: dict[str, Any]) -> list[str]:
    """The command's words."""
    found = ["serve"] if task == "serve" else []
    for name, value in (FIRST[task] | options).items():
        if value is not None:
            found += [f"--{name.replace('_', '-')}", *([] if value is True else [f"{value}"])]
    return found


def opened(task: str) -> dict[str, Control]:
    """All controls of a task."""
    panel = Panel({**OPEN, "task": task})
    planner.show(panel)
    return {name: control for name, control in panel.controls.items() if control.kind != "memory"}


@pytest.mark.parametrize("task", TASKS)
def test_the_page_has_every_option_of_the_command(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, argparse.Action] = {}

    def parsed(parser: argparse.ArgumentParser, _: object) -> None:
        options.update({action.dest: action for action in parser._actions})
        raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(argparse.ArgumentParser, "parse_args", parsed)
        main(words(task, {}))
    controls = opened(task)
    assert {RENAMED.get(name, name) for name in options.keys() - LEFT_OUT} == controls.keys() - OPENING
    assert task == "serve" or LEFT_OUT.keys() < options.keys()
    for name, option in options.items():
        offered = controls[RENAMED.get(name, name)].options if name not in LEFT_OUT else ()
        if name == "zero":
            assert [planner._ZERO[each] for each in offered] == list(option.choices or ())
        elif option.choices:
            assert offered == tuple(option.choices)
        elif isinstance(option, argparse._StoreTrueAction) and name not in LEFT_OUT:
            assert controls[RENAMED.get(name, name)].kind == "switch"
    assert controls["model"].options == (*PUBLISHED, OWN) and controls["card"].options == (*ACCELERATORS, OWN)


@pytest.mark.parametrize("task", TASKS)
def test_every_control_has_a_name_and_says_its_value(task: str) -> None:
    controls = opened(task).values()
    assert len({control.label for control in controls}) == len(controls)
    assert all(control.label and "_" not in control.label and control.value != "" for control in controls)


@pytest.mark.parametrize(("task", "state", "options"), ALL)
def test_the_page_gives_the_commands_plan(
    task: str, state: dict[str, Any], options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*words(task, options), "--json"])
    planned = json.loads(capsys.readouterr().out)
    shown = planner.show(Panel({**state, "task": task}))
    assert [line.as_dict() for line in shown.lines] == planned["lines"]
    assert shown.finding.startswith(f"{planned['title']}. {planned['verdict']}")
    assert all(warning in shown.finding for warning in planned["warnings"])


@pytest.mark.parametrize("task", TASKS)
def test_every_control_is_moved_above(task: str) -> None:
    moved = {name for state, _ in CASES[task] for name in state}
    assert opened(task).keys() - {"task"} <= moved


def test_every_control_can_be_reached() -> None:
    found = explorers.reached(planner.explore())
    assert found.keys() == opened("train").keys() | opened("serve").keys()
    assert all(len(choices) <= 3 for choices in found.values())


def test_the_first_page_is_small() -> None:
    """What is needed rarely is behind a switch, or comes with a model or a card of one's own."""
    first, serving = (planner.explore().frame({"task": task})["controls"] for task in TASKS)
    assert (len(first), first[-1]["row"]) == (16, 3) and (len(serving), serving[-1]["row"]) == (10, 2)


def test_hidden_settings_have_no_effect() -> None:
    """Settings that the page doesn't show don't count, such as those left when a switch is turned off."""
    hidden = {
        "kv_heads": "8", "gated": True, "experts": "8", "peak": "1", "memory": "1", "price": "9", "lora": "8",
        "unfused_attention": True, "global_batch": "1",
    }  # fmt: skip
    explorer = planner.explore()
    assert {**explorer.frame(hidden), "state": {}} == {**explorer.frame(), "state": {}}
    own = {"model": OWN, "shape": False, "mixture": True}
    assert explorer.frame(own | hidden)["lines"] == explorer.frame({"model": OWN})["lines"]


def test_an_address_from_before_the_new_settings_still_makes_its_plan() -> None:
    """All the names that addresses have had from the start, with values that only they can have brought."""
    trained = {
        "task": "train", "model": OWN, "layers": "48", "width": "6144", "heads": "48", "vocabulary": "100k",
        "card": "H200", "cards": "128", "zero": "optimizer state", "tensor": "4", "pipeline": "2", "batch": "2",
        "context": "4096", "accumulation": "8", "recompute": False, "recipe": "bfloat16 alone", "optimizer": "Lion",
        "tokens": "2T", "mfu": "0.5",
    }  # fmt: skip
    served = {
        "task": "serve", "model": "Llama 3.1 70B", "card": "B200", "cards": "2", "batch": "4", "prompt": "1024",
        "output": "128", "weights": "float8", "cache": "int8",
    }  # fmt: skip
    explorer = planner.explore()
    for state in (trained, served, {"model": "DeepSeek-V3", "cards": "2048", "expert": "64"}):
        sent = explorer.frame({**explorer.frame()["state"], **state})
        assert not sent["problem"] and sent["state"] | state == sent["state"]
    assert "on 128 × H200, bfloat16 alone, Lion" in explorer.frame(trained)["finding"]


def test_a_plan_has_all_lines_with_their_sources() -> None:
    frame = planner.explore().frame({"model": "Llama 3.1 70B", "tokens": "15T"})
    assert "16.8 million" in frame["title"] or "million USD" in frame["title"]
    assert frame["lines"].count("<tr>") > 25 and 'href="https://arxiv.org/abs/1910.02054"' in frame["lines"]


def test_who_turns_to_serving_and_back_finds_both_plans_as_they_were() -> None:
    explorer = planner.explore()
    trained = {"cards": "2048", "mfu": "0.3", "batch": "2", "tensor": "8", "pipeline": "2", "tokens": "2T"}
    served = {"cards": "4", "batch": "32", "prompt": "512"}
    first = explorer.frame({**explorer.frame()["state"], **trained}, "tokens")
    serving = explorer.frame({**first["state"], "task": "serve"}, "task")
    assert serving["state"]["cards"] == "1"
    changed = explorer.frame({**serving["state"], **served}, "prompt")
    back = explorer.frame({**changed["state"], "task": "train"}, "task")
    assert back["lines"] == first["lines"] and back["controls"] == first["controls"]
    again = explorer.frame({**back["state"], "task": "serve"}, "task")
    assert again["lines"] == changed["lines"] and {name: again["state"][name] for name in served} == served


def test_a_card_chosen_while_its_numbers_are_hidden_keeps_none_of_the_last_ones() -> None:
    explorer = planner.explore()
    given = explorer.frame({"more": True, "card": "H200", "peak": "2P", "cards": "1"})["state"]
    hidden = explorer.frame({**given, "more": False}, "more")["state"]
    other = explorer.frame({**hidden, "card": "RTX 4090"}, "card")["state"]
    fresh = explorer.frame({"more": True, "card": "RTX 4090", "cards": "1"})
    assert explorer.frame({**other, "more": True}, "more")["lines"] == fresh["lines"]


def test_only_settings_that_are_not_the_defaults_belong_into_an_address() -> None:
    explorer = planner.explore()
    for state in ({}, {"task": "serve"}, {"more": True, "adapters": True}, {"card": OWN, "cards": "1"}):
        controls = explorer.frame(state)["controls"]
        changed = {each["name"]: each["value"] for each in controls if each["value"] != each["default"]}
        assert changed == state


def test_a_setting_of_an_address_that_is_unknown_is_said_at_its_control() -> None:
    explorer = planner.explore()
    sent = {"model": "Nonsense", "cards": "8", "more": "maybe"}
    frame = explorer.frame(sent)
    assert frame["replaced"] == {
        "model": "'Nonsense' isn't offered; shown: Llama 3.1 8B",
        "more": "'maybe' isn't offered; shown: off",
    }
    assert frame["lines"] == explorer.frame({"cards": "8"})["lines"] and not frame["problem"]
    assert not explorer.frame(sent, "cards")["replaced"], "a control that another one changes needs no word"


@pytest.mark.parametrize("task", TASKS)
def test_every_piece_of_the_memory_has_its_words_and_bytes_in_a_legend(task: str) -> None:
    frame = planner.explore().frame({"task": task})
    drawn = BeautifulSoup(frame["svg"], "html.parser")
    kinds = [
        line for line in planner.show(Panel({"task": task})).lines
        if line.group == "bytes on each card" and line.unit == "B" and line.value and line.what != "in all"
    ]  # fmt: skip
    assert len(kinds) >= 2
    for line in kinds:
        piece, sign = drawn.select_one(f"[data-key='{line.what}']"), drawn.select_one(f"[data-key='{line.what} sign']")
        assert [*piece["class"], "f-now"] == sign["class"]  # of the setting before, no sign without words stays
        assert drawn.select_one(f"[data-key='{line.what} text']").text == f"{line.what}: {readable(line.value, 'B')}"
    signs = [tuple(each["class"]) for each in drawn.select("[data-key$=' sign']")]
    assert len(set(signs)) == len(signs)


@pytest.mark.parametrize(
    ("state", "warning"),
    [
        ({"task": "train"}, "GPT-2 small takes at most 1,024 tokens, but this plan gives it 8,192 positions."),
        ({"task": "serve"}, "GPT-2 small takes at most 1,024 tokens, but prompt and output are 2,304."),
        ({"task": "train", "context": "1024"}, ""),
        ({"task": "serve", "prompt": "512"}, ""),
    ],
)
def test_a_context_beyond_a_models_positions_is_warned_of(state: dict[str, str], warning: str) -> None:
    finding = planner.explore().frame({"model": "GPT-2 small", "cards": "1", **state})["finding"]
    assert (f"⚠ {warning}" in finding) == bool(warning) and ("at most 1,024" in finding) == bool(warning)


def test_a_card_without_the_numbers_of_a_recipe_names_the_control() -> None:
    frame = planner.explore().frame({"card": "Apple M1", "cards": "1"})
    (control,) = [control for control in frame["controls"] if control["name"] == frame["at"]]
    assert f"choose the {control['label']} 'float32'" in frame["problem"] and "float32" in control["options"]


def test_an_mfu_can_be_a_percentage() -> None:
    explorer = planner.explore()
    assert explorer.frame({"mfu": "30%"})["lines"] == explorer.frame({"mfu": "0.3"})["lines"]
    assert "number of cards" in explorer.frame({"cards": "abc"})["problem"]


def test_who_turns_to_serving_begins_with_a_plan_that_is_possible() -> None:
    explorer = planner.explore()
    trained = explorer.frame({"cards": "2048", "more": True})["state"]
    served = explorer.frame({**trained, "task": "serve"}, "task")
    assert not served["problem"] and served["state"]["cards"] == "1" and served["state"]["mfu"] == "0.5"
    kept = explorer.frame({**served["state"], "cards": "4"}, "cards")["state"]
    assert explorer.frame(kept)["state"]["cards"] == "4", "an address that was sent says the same"


@pytest.mark.parametrize(("one", "other"), [("H200", "RTX 4090"), (OWN, "H200"), ("H200", OWN)])
def test_another_card_brings_its_own_numbers(one: str, other: str) -> None:
    explorer = planner.explore()
    changed = {"card": one, "more": True, "peak": "2P", "memory": "96 GB", "price": "9", "cards": "1"}
    state = explorer.frame({**explorer.frame(changed)["state"], "card": other}, "card")["state"]
    fresh = explorer.frame({"card": other, "more": True, "cards": "1"})["state"]
    assert {name: state[name] for name in ("peak", "memory", "price")} == {
        name: fresh[name] for name in ("peak", "memory", "price")
    }


def test_a_card_whose_memory_is_unknown_has_no_limit_in_the_drawing() -> None:
    explorer = planner.explore()
    for state in ({"card": OWN, "memory": "unknown"}, {"card": "Apple M1", "recipe": "float32"}):
        frame = explorer.frame({"cards": "1", **state})
        assert 'data-key="limit"' not in frame["svg"] and "this card's memory is unknown" in frame["finding"]
    assert 'data-key="limit"' in explorer.frame({"card": OWN})["svg"]


@pytest.mark.parametrize(
    ("state", "at"),
    [
        ({"cards": "many"}, "cards"), ({"cards": "63", "tensor": "2"}, "cards"), ({"mfu": "1.4"}, "mfu"),
        ({"context": "0"}, "context"), ({"tokens": "-1"}, "tokens"), ({"model": OWN, "width": "½"}, "width"),
    ],
)  # fmt: skip
def test_a_plan_that_is_none_says_at_which_control(state: dict[str, str], at: str) -> None:
    frame = planner.explore().frame(state)
    assert frame["problem"] and frame["at"] == at, (frame["problem"], frame["at"])
    assert frame["state"] | state == frame["state"]


LORA = {"more": True, "adapters": True}


@pytest.mark.parametrize(
    ("task", "state", "options", "at"),
    [
        ("train", {**MINE, "kv_heads": "5"}, {**SHAPE, "kv_heads": 5}, "kv_heads"),
        ("train", {**MINE, "heads": "5"}, {**SHAPE, "heads": 5}, "heads"),
        ("train", {**MIXED, "active_experts": "9"}, {**EXPERTS, "active_experts": 9}, "active_experts"),
        ("train", {**MIXED, "dense_layers": "40"}, {**EXPERTS, "dense_layers": 40}, "dense_layers"),
        ("train", {**MIXED, "expert": "3"}, {**EXPERTS, "expert": 3}, "expert"),
        ("train", {**MINE, "window": "0"}, {**SHAPE, "window": 0}, "window"),
        ("train", {"pipeline": "64"}, {"pipeline": 64}, "pipeline"),
        ("train", {"tensor": "64"}, {"tensor": 64}, "tensor"),
        ("train", {"more": True, "global_batch": "5000"}, {"global_batch": 5000}, "global_batch"),
        ("train", {**LORA, "lora": "½"}, {"lora": "½"}, "lora"),
        ("train", {**LORA, "adapted": "queries, keyes"}, {"lora": 16, "adapted": "queries, keyes"}, "adapted"),
        ("train", {"more": True, "price": "-1"}, {"price": "-1"}, "price"),
        ("train", {"more": True, "peak": "-1"}, {"card": "H100 SXM", "peak": "-1"}, "peak"),
        ("train", {"more": True, "memory": "inf"}, {"card": "H100 SXM", "memory": "inf"}, "memory"),
        ("train", {"card": OWN, "memory": "24 apples"}, {"peak": "1e15", "memory": "24 apples"}, "memory"),
        ("train", {"card": "A10G", "recipe": "float8, float32 master copy"},
         {"card": "A10G", "recipe": "float8, float32 master copy"}, "recipe"),
        ("serve", {"more": True, "mfu": "41"}, {"mfu": 41}, "mfu"),
        ("serve", {"card": OWN, "cards": "2"},
         {"peak": "1e15", "memory": "80G", "bandwidth": "3T", "cards": 2}, "cards"),
        ("serve", {"card": "TPU v5e", "weights": "float32"}, {"card": "TPU v5e", "weights": "float32"}, "weights"),
    ],
)  # fmt: skip
def test_an_impossible_setting_says_what_the_command_says(
    task: str, state: dict[str, Any], options: dict[str, Any], at: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = planner.explore().frame({"task": task, **state}, at)
    assert frame["at"] == at and not frame["svg"]
    with pytest.raises(SystemExit):
        main(words(task, options))
    assert capsys.readouterr().err.endswith(f": {frame['problem']}\n")


def test_of_two_settings_that_exclude_each_other_the_last_moved_is_named() -> None:
    explorer, state = planner.explore(), {**MINE, "heads": "32", "kv_heads": "5"}
    assert [explorer.frame(state, moved)["at"] for moved in ("", "kv_heads", "heads", "rms_norm")] == [
        "heads", "kv_heads", "heads", "heads",
    ]  # fmt: skip
