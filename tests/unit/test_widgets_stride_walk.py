"""The explorer of strides says of every view what PyTorch says."""

import itertools
import math
import random
import re

import pytest
import torch

from course_utils import plots
from course_utils.widgets import explorer as explorers
from course_utils.widgets import stride_walk
from course_utils.widgets.explorer import Explorer, Impossible


def fresh() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4)


def check(explorer: Explorer) -> bool:
    """What is said and drawn now, against PyTorch's own view of fresh numbers. False: there is no such view."""
    shape, steps, offset, new, read = explorer.controls["view"].value
    numbers = fresh()
    try:
        x = numbers.as_strided(shape, steps, offset)
    except RuntimeError:
        assert ("storage ends" in explorer.problem and "→" in explorer.problem) or "too many" in explorer.problem
        return False
    if x.numel() > stride_walk.MAX_ELEMENTS:
        assert "too many" in explorer.problem and "→" in explorer.problem
        return False
    assert explorer.problem == ""
    said, figure = explorer.picture.finding, explorer.picture.figure
    assert said.startswith(f"Shape {tuple(x.shape)} with strides {x.stride()} is ")
    assert (" is contiguous" in said) == x.is_contiguous() == (" is not contiguous" not in said)

    slots = [(address - numbers.data_ptr()) // 4 for address in addresses(x)]
    touched = len(set(slots))
    assert f" {x.numel()} element{'s' * (x.numel() != 1)} on {touched} slot{'s' * (touched != 1)}" in said
    assert f"({4 * touched} of 48 B)" in said
    assert ("elements share slots" in said) == (touched < x.numel())

    reshaped = x.reshape(new)
    if reshaped.untyped_storage().data_ptr() == numbers.untyped_storage().data_ptr():
        assert f"is a view with strides {reshaped.stride()}." in said
    else:
        assert f"has to copy {reshaped.untyped_storage().nbytes()} B." in said
    assert ("has to copy" in said) == ("has to copy" in "".join(text.get_text() for text in figure.axes[0].texts))

    assert f"element {read} of {x.numel()} is" in said and said.endswith(f" {slots[read - 1]}.")
    lit = {patch.get_gid() for patch in figure.axes[0].patches if (patch.get_gid() or "").startswith("highlight slot")}
    assert lit == {f"highlight slot {slot}" for slot in slots[:read]}
    return True


def addresses(x: torch.Tensor) -> list[int]:
    """Where each element lies in memory, in reading order."""
    return [x[index].data_ptr() for index in itertools.product(*map(range, x.shape))]


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the SVG, which is not what is tested here."""
    monkeypatch.setattr(explorers, "to_html", lambda figure, alt: "")


@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("operation", stride_walk.OPERATIONS)
def test_an_operation_is_what_its_name_says(operation: str) -> None:
    explorer = stride_walk.explore(operation)
    x = eval(operation, {"x": fresh()})
    shape, steps, offset, *_ = explorer.controls["view"].value
    assert (shape, steps, offset) == (tuple(x.shape), x.stride(), x.storage_offset())
    walk = explorer.controls["view"]
    assert check(explorer)
    for new in [value for _, value in walk.reshape.options]:
        walk.reshape.value = new
        assert check(explorer)
    for read in {1, (x.numel() + 1) // 2, x.numel()}:
        walk.read.value = read
        assert check(explorer)


@pytest.mark.usefixtures("unseen")
def test_random_moves_of_the_controls_show_what_pytorch_gives() -> None:
    draw = random.Random(0)
    explorer = stride_walk.explore()
    walk = explorer.controls["view"]
    possible = 0
    for _ in range(200):
        name = draw.choice(list(walk.members))
        control = walk.members[name]
        before = control.value
        if hasattr(control, "max"):
            control.value = draw.choice([control.min, draw.randint(control.min, min(control.max, 4)), control.max])
        else:
            control.value = draw.choice(
                [option[1] if isinstance(option, tuple) else option for option in control.options]
            )
        possible += check(explorer)
        if control.value != before and name not in ("operation", "then reshape", "elements read"):
            assert walk.operation.value == stride_walk.FREE
        if explorer.problem and draw.random() < 0.7:
            walk.operation.value = draw.choice(list(stride_walk.OPERATIONS))
            possible += check(explorer)
    assert possible > 130, "most of them are to be views"


def test_every_shape_offered_for_reshape_holds_all_elements() -> None:
    for elements in range(1, 37):
        shapes = stride_walk.reshapes(elements)
        assert all(math.prod(shape) == elements for shape in shapes) and len(set(shapes)) == len(shapes)
        assert (elements,) in shapes and (1, elements) in shapes and (elements, 1) in shapes


def test_an_impossible_view_says_what_to_change() -> None:
    with pytest.raises(Impossible, match=r"beyond slot 11.* → make a size"):
        stride_walk.draw(((3, 4), (11, 1), 0, (12,), 1))
    with pytest.raises(Impossible, match=r"25 elements are too many.* → "):
        stride_walk.draw(((5, 5), (1, 1), 0, (25,), 1))


@pytest.mark.usefixtures("unseen")
def test_sliders_of_missing_dimensions_are_disabled() -> None:
    walk = stride_walk.explore("x").controls["view"]
    for dims in (0, 1, 2, 3):
        walk.dims.value = dims
        assert [size.disabled for size in walk.sizes] == [dim >= dims for dim in range(3)]
        assert [stride.disabled for stride in walk.strides] == [dim >= dims for dim in range(3)]
        assert len(walk.value[0]) == dims


def test_the_same_settings_give_the_same_bytes() -> None:
    one, two = (stride_walk.explore("x[:, ::2]") for _ in range(2))
    assert one.png() == two.png()
    html = [plots.to_html(x.picture.figure, alt=x.picture.finding) for x in (one, two)]
    assert html[0] == html[1]
    assert re.search(r"strides \(2,\)", one.picture.finding)
