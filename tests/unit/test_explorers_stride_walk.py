"""The explorer of strides says of every view what PyTorch says."""

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from bs4 import BeautifulSoup

from course_utils.explorers import stride_walk
from course_utils.explorers.stride_walk import FREE, OPERATIONS


def fresh() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4)


def numbers(state: dict[str, Any], name: str) -> list[int]:
    return [int(state[f"{name} {dim}"]) for dim in range(3) if f"{name} {dim}" in state]


def check(frame: dict[str, Any]) -> bool:
    """What is said and drawn, against PyTorch's own view of fresh numbers. False: there is no such view."""
    state = frame["state"]
    shape, strides, offset = numbers(state, "size"), numbers(state, "stride"), int(state["offset"])
    try:
        x = fresh().as_strided(shape, strides, offset)
    except RuntimeError:
        assert "the storage ends" in frame["problem"] and frame["at"] in state
        return False
    if x.numel() > stride_walk.MOST:
        assert "too many" in frame["problem"] and frame["at"] in state
        return False
    assert frame["problem"] == ""
    slots, title, said = [int(value) for value in x.flatten()], frame["title"], frame["finding"]
    assert said.startswith(f"Shape {tuple(x.shape)} with strides {x.stride()} and offset {x.storage_offset()} is ")
    assert title.startswith("Contiguous") == (" is contiguous: " in said) == x.is_contiguous()
    assert title.startswith("Not contiguous") == (" is not contiguous: " in said) == (not x.is_contiguous())
    steps = {b - a for a, b in itertools.pairwise(slots)}
    found = re.findall(r"[+−]\d+|(?<= )0(?=[ ,])", title)
    assert {int(step.replace("−", "-")) for step in found} == steps
    try:
        x.view(x.numel())
    except RuntimeError:
        assert f"flattening copies {x.reshape(-1).untyped_storage().nbytes()} B" in title
    else:
        assert "flattening is a view" in title or title == "Contiguous: a single element"
    assert f" {len(slots)} element{'s' * (len(slots) > 1)} in {len(set(slots))} of 12 slots" in said
    assert ("share slots" in said) == (len(set(slots)) < len(slots))

    read = len(slots) if state["elements read"] == "all" else int(state["elements read"])
    assert f"element {read} of {len(slots)} is [" in said
    assert said.endswith(f"{slots[read - 1]}, at byte {4 * slots[read - 1]}.")
    index = [int(i) for i in re.findall(r"\d+", said.partition(" is [")[2].partition("]")[0])]
    if index:
        assert x[tuple(index)] == slots[read - 1]
    written = re.findall(r'data-key="number \d+">(\d+)<', frame["svg"])
    assert [int(text) for text in written] == slots
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"[^>]* data-key="step \d+"', frame["svg"])]
    boxes = [float(x) for x in re.findall(r'<rect x="([\d.]+)"[^>]* data-key="slot \d+"', frame["svg"])]
    half = (boxes[1] - boxes[0]) / 2
    assert places == [boxes[slot] + half for slot in slots[:read]]
    return True


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_what_its_name_says(operation: str) -> None:
    explorer = stride_walk.explore(operation)
    x = eval(operation, {"x": fresh()})
    assert OPERATIONS[operation] == (tuple(x.shape), x.stride(), x.storage_offset())
    assert OPERATIONS[operation][0] == tuple(numbers(explorer.frame()["state"], "size"))
    for read, width in itertools.product({1, (x.numel() + 1) // 2, x.numel()}, (760, 380)):
        assert check(explorer.frame({"elements read": f"{read}"}, width=width))


def test_random_moves_of_the_controls_show_what_pytorch_gives() -> None:
    draw, explorer = random.Random(0), stride_walk.explore()
    frame, possible = explorer.frame(), 0
    for _ in range(250):
        control = draw.choice(frame["controls"])
        low = control["options"][: draw.choice([4, 100])]
        frame = explorer.frame({**frame["state"], control["name"]: draw.choice(low)}, control["name"])
        possible += check(frame)
        if control["name"] not in ("operation", "elements read"):
            assert frame["state"]["operation"] == FREE
        if frame["problem"] and draw.random() < 0.7:
            frame = explorer.frame({**frame["state"], "operation": draw.choice(list(OPERATIONS))}, "operation")
            assert check(frame)
    assert possible > 150, "most of them are to be views"


def test_every_slider_of_the_first_view_can_move_both_ways() -> None:
    explorer = stride_walk.explore()
    first, moved = explorer.frame(), 0
    for control in first["controls"]:
        if control["kind"] == "slider" and control["name"] != "elements read":
            place = control["options"].index(control["value"])
            for step in (place - 1, place + 1):
                assert 0 <= step < len(control["options"])
                moved += check(
                    explorer.frame({**first["state"], control["name"]: control["options"][step]}, control["name"])
                )
    assert moved == 10
    longer = explorer.frame({**first["state"], "size 0": "4"}, "size 0")
    assert "element 8 of 8 is [" in longer["finding"], "all are read before and after"


def test_another_operation_is_shown_whole() -> None:
    explorer = stride_walk.explore("x[:, :3]")
    state = explorer.frame()["state"]
    one = explorer.frame({**state, "elements read": "1"}, "elements read")
    other = explorer.frame({**one["state"], "operation": "x.T"}, "operation")
    (read,) = [control["value"] for control in other["controls"] if control["name"] == "elements read"]
    assert read == "all"


def test_of_an_earlier_walk_only_the_path_stays() -> None:
    """What the script leaves out of the faint copy of the earlier setting has the look "now"; texts go, too."""
    drawn = BeautifulSoup(stride_walk.explore().frame()["svg"], "html.parser")
    shapes = [shape for shape in drawn.select(".course-front :not(text)") if shape.name != "title"]
    stay = {str(s["data-key"]).split()[0] for s in shapes if not {"f-now", "l-now"} & set(s.get("class") or [])}
    assert stay == {"path"}
    script = (Path(stride_walk.__file__).parent / "explorer.js").read_text(encoding="utf-8")
    assert 'querySelectorAll("text, title, .f-now, .l-now, .course-handle")) shape.remove()' in script


def test_only_the_sliders_of_an_operation_are_there_and_your_own_keeps_them() -> None:
    explorer = stride_walk.explore("x[:, :3]")
    for operation, (shape, *_) in OPERATIONS.items():
        frame = explorer.frame({"operation": operation}, "operation")
        assert len(frame["controls"]) == 3 + 2 * len(shape)
        moved = explorer.frame({**frame["state"], "offset": "0"}, "offset")
        assert moved["state"]["operation"] == FREE and len(moved["controls"]) == len(frame["controls"])
        assert check(explorer.frame(moved["state"])), "it stays your own"
    flat = explorer.frame({**explorer.frame()["state"], "stride 0": "3"}, "stride 0")
    assert flat["title"] == "Contiguous: every step is +1, so flattening is a view"


def test_the_largest_views_fit_into_the_drawing() -> None:
    explorer = stride_walk.explore("x.view(3, 2, 2)")
    for shape in itertools.product(range(1, 7), repeat=3):
        sizes = {f"size {dim}": f"{size}" for dim, size in enumerate(shape)}
        state = {"operation": FREE, **sizes, "stride 0": "0", "stride 1": "0", "stride 2": "1"}
        for width, below in ((760, 236), (380, 200)):
            frame = explorer.frame(state, "size 0", width)
            if frame["problem"]:
                continue
            assert len(frame["svg"].encode()) < 20_000
            for x, y in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"[^>]* data-key="element', frame["svg"]):
                assert float(y) + 30 <= below and float(x) + 34 <= (380 if width == 380 else 262)
