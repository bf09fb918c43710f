"""The layout of a tensor in storage: what is drawn where, and errors for bad input."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
from figures import STORAGE, figure_of, labeled, texts
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils import plots


@pytest.mark.parametrize("name", STORAGE)
def test_every_element_is_drawn_in_the_slot_that_torch_reads(name: str) -> None:
    x = STORAGE[name]()
    slots = x.untyped_storage().nbytes() // x.element_size()
    # torch's own answer: number the slots, and look at the numbers through the same strides.
    numbered = torch.arange(slots).as_strided(x.shape, x.stride(), x.storage_offset())
    expected = {
        f"element {index} in slot {numbered[index].item()}" for index in itertools.product(*map(range, x.shape))
    }
    named: dict[str, list] = {"element": [], "slot": [], "shared": []}
    for artist in figure_of(name).findobj(lambda artist: artist.get_gid()):
        named.setdefault(artist.get_gid().split()[0], []).append(artist)
    elements = named["element"]
    assert {cell.get_gid() for cell in elements} == expected
    assert len(elements) == x.numel()

    drawn = {int(cell.get_gid().split()[1]): cell for cell in named["slot"]}
    assert sorted(drawn) == list(range(slots))
    filled = {slot for slot, cell in drawn.items() if cell.get_facecolor()[3] > 0}
    assert filled == set(numbered.flatten().tolist())
    for cell in elements:  # the same shade here and there
        assert cell.get_facecolor() == drawn[int(cell.get_gid().split()[-1])].get_facecolor()

    times = {slot: int((numbered == slot).sum()) for slot in filled}
    badges = {int(t.get_gid().split()[1]): t.get_text() for t in named["shared"]}
    assert badges == {slot: f"×{count}" for slot, count in times.items() if count > 1}


def text_in(fig: Figure, cell: Rectangle) -> list[str]:
    (x, y), side = cell.get_xy(), cell.get_width()
    found = [t for t in fig.axes[0].texts if x < t.get_position()[0] < x + side and y < t.get_position()[1] < y + side]
    return [t.get_text() for t in found]


def test_cells_show_their_value_and_their_slot() -> None:
    x = (torch.arange(12) * 100).reshape(3, 4).T[1:]
    fig = plots.storage_layout(x)
    for cell in labeled(fig, "element "):
        i, j, slot = map(int, re.findall(r"\d+", cell.get_gid()))
        assert text_in(fig, cell) == [str(x[i, j].item()), str(slot)]
    for cell in labeled(fig, "slot "):  # the slots that the view does not touch show what they hold, too
        slot = int(cell.get_gid().split()[1])
        assert text_in(fig, cell) == [str(slot * 100), str(slot)]


@pytest.mark.parametrize(
    "x, words",
    [
        (torch.arange(12).reshape(3, 4).T, ["+1\nto the next row", "+4 to the next column"]),
        (torch.arange(24).reshape(2, 3, 4), ["+12 to the next slice", "+4\nto the next row", "+1 to the next column"]),
        (torch.zeros(3).expand(2, 3), ["+0\nto the next row", "+1 to the next column"]),
        (torch.arange(9)[2::3], ["+3 to the next element", "storage_offset 2"]),
    ],
)
def test_strides_and_offset_are_written(x: torch.Tensor, words: list[str]) -> None:
    assert set(words) <= set(texts(plots.storage_layout(x)))


def test_steps_in_storage_are_labeled_even_across_lines() -> None:
    assert {"+1", "+8", "+32"} <= set(texts(plots.storage_layout(torch.arange(64).reshape(2, 4, 8))))


def test_a_dim_of_size_one_has_no_step() -> None:
    words = " ".join(texts(plots.storage_layout(torch.arange(4).reshape(1, 4))))
    assert "next column" in words and "next row" not in words


@pytest.mark.parametrize("highlight", [(1, -1), [(1, 3)], [[1, 3], (-3, 3)], [(1, 3), (0, 3)]])
def test_highlight_marks_the_element_and_its_slot(highlight: object) -> None:
    x = torch.arange(12).reshape(3, 4)
    marked = {a.get_gid() for a in labeled(plots.storage_layout(x, highlight=highlight), "highlight ")}
    assert {"highlight element (1, 3) in slot 7", "highlight slot 7"} <= marked
    assert ("highlight slot 3" in marked) == (len(marked) == 4)


def test_a_meta_tensor_is_drawn_without_values() -> None:
    fig = plots.storage_layout(torch.empty(2, 3, device="meta"))
    assert all(set(text_in(fig, cell)) <= {"", cell.get_gid().split()[-1]} for cell in labeled(fig, "element "))


@pytest.mark.parametrize(
    "x, finding",
    [
        (torch.arange(6).reshape(2, 3), "Contiguous"),
        (torch.arange(6).reshape(2, 3).T, "Not contiguous"),
        (torch.arange(6).reshape(2, 3)[1], "contiguous view of 3 of 6"),
        (torch.arange(6).reshape(2, 3)[:, ::2], "touches 4 of 6"),
        (torch.zeros(1).expand(3), "3 elements in 1 slot:"),
    ],
)
def test_the_default_title_states_the_finding(x: torch.Tensor, finding: str) -> None:
    assert finding in texts(plots.storage_layout(x))[0]


@pytest.mark.parametrize(
    "x, error, message",
    [
        ([[1, 2]], TypeError, "draws a torch.Tensor, got list"),
        (torch.zeros(2, 2, 2, 2), ValueError, r"shape \(2, 2, 2, 2\): at most 3 dims.*slice"),
        (torch.zeros(0, 3), ValueError, r"shape \(0, 3\): an empty tensor"),
        (torch.zeros(65), ValueError, "storage of 65 slots: at most 64"),
        (torch.zeros(10, 10)[:2, :2], ValueError, r"storage of 100 slots.*\.clone\(\)"),
        (torch.zeros(1).expand(65), ValueError, "at most 64 elements"),
        (torch.zeros(2, 32), ValueError, "at most 16 in a dim"),
        (torch.eye(3).to_sparse(), ValueError, r"sparse.*to_dense"),
    ],
)
def test_a_tensor_that_cannot_be_drawn_is_refused_with_the_reason(
    x: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plots.storage_layout(x)  # type: ignore[arg-type]


@pytest.mark.parametrize("highlight", [(1,), (3, 0), [(0, 0), (0, 4)], (0, -5)])
def test_a_highlight_outside_the_tensor_is_an_error(highlight: object) -> None:
    with pytest.raises(ValueError, match=r"not an element of a tensor of shape \(3, 4\)"):
        plots.storage_layout(torch.zeros(3, 4), highlight=highlight)  # type: ignore[arg-type]
