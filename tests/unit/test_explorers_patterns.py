"""The explorer of patterns moves every element to where einops does."""

import itertools
import math
import random
import re
from typing import Any

import einops
import pytest
import torch

from course_utils.explorers import patterns
from course_utils.explorers.explorer import Impossible

Settings = tuple[str, str, str, str]


def real(settings: Settings) -> torch.Tensor:
    """What einops makes of tensors whose elements are their places."""
    operation, text, shapes, sizes = settings
    tensors = [
        torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
        for shape in (tuple(map(int, part.split())) for part in shapes.split(","))
    ]
    given = {pair.partition("=")[0].strip(): int(pair.partition("=")[2]) for pair in sizes.split(",") if pair.strip()}
    if operation == "einsum":
        if given:
            raise ValueError("einsum takes no sizes")
        return einops.einsum(*tensors, text)  # type: ignore[call-overload]
    if len(tensors) > 1 or "," in text:
        raise ValueError("one tensor")
    if operation.startswith("reduce, "):
        return einops.reduce(tensors[0], text, operation.removeprefix("reduce, "), **given)
    return getattr(einops, operation)(tensors[0], text, **given)


def views(settings: Settings) -> bool:
    """Whether `rearrange` returns a view."""
    _, text, shapes, sizes = settings
    given = {pair.partition("=")[0].strip(): int(pair.partition("=")[2]) for pair in sizes.split(",") if pair.strip()}
    x = torch.zeros(tuple(map(int, shapes.split())))
    return bool(einops.rearrange(x, text, **given).untyped_storage().data_ptr() == x.untyped_storage().data_ptr())


def moved(settings: Settings) -> patterns.Moves:
    operation, text, shapes, sizes = settings
    return patterns.moves(operation, text, patterns.shapes_of(shapes), patterns.sizes_of(sizes))


def check(settings: Settings) -> None:
    wanted, found = real(settings), moved(settings)
    assert found.shape == tuple(wanted.shape), settings
    torch.testing.assert_close(torch.tensor(found.values, dtype=torch.float64), wanted.flatten())
    if settings[0] == "rearrange":
        assert found.view == views(settings), settings


def state_of(settings: Settings) -> dict[str, Any]:
    return dict(zip(("operation", "pattern", "shapes", "sizes"), settings, strict=True))


def gliders(frame: dict[str, Any]) -> list[tuple[str, float, float, str]]:
    """Key, place and text of what moves."""
    pattern = r'data-key="([^"]+)" style="transform:translate\(([\d.]+)px,([\d.]+)px\)">.*?<text[^>]*>([^<]+)</text>'
    return [(key, float(x), float(y), text) for key, x, y, text in re.findall(pattern, frame["svg"])]


@pytest.mark.parametrize("example", patterns.EXAMPLES)
def test_an_example_is_what_einops_makes_and_its_elements_move_there(example: str) -> None:
    explorer, settings = patterns.explore(example), patterns.EXAMPLES[example]
    check(settings)
    count = len(moved(settings).sources)
    made = [f"{value:.3g}" if value % 1 else f"{value:.0f}" for value in real(settings).flatten().tolist()]
    for width in (760, 380):
        frame = explorer.frame(width=width)
        assert not frame["problem"] and frame["state"]["elements placed"] == f"{count}"
        assert frame["state"]["example"] == example and len(frame["svg"].encode()) < 20_000
        there = gliders(frame)[-count:]
        assert [text for *_, text in there] == made, "the result in row-major order"
        spots = [(x, y) for _, x, y, _ in there]
        assert len(set(spots)) == count and f"M{spots[0][0]:g} {spots[0][1]:g}h" in frame["svg"]
        shape = moved(settings).shape
        if len(shape) > 1 and shape[-1] > 1:  # the last dim goes to the right, the one before it down
            assert spots[1][1] == spots[0][1] and spots[1][0] > spots[0][0]
            if shape[-2] > 1:
                assert spots[shape[-1]][1] > spots[0][1] and spots[shape[-1]][0] == spots[0][0]
        start = explorer.frame({**frame["state"], "elements placed": "0"}, "elements placed", width)
        home = {(key, text): (x, y) for key, x, y, text in gliders(start)}
        first = explorer.frame({**frame["state"], "elements placed": "1"}, "elements placed", width)
        for key, x, y, text in gliders(first):
            if key in (f"{made[0]}", f"0 of {made[0]}") or key.startswith("0: "):
                assert home[key, text] != (x, y) and (x, y) == spots[0], "it came from its place in the argument"


def grouped(draw: random.Random, names: list[str]) -> list[list[str]]:
    groups: list[list[str]] = []
    for name in names:
        if groups and draw.random() < 0.4:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def written(groups: list[list[str]]) -> str:
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in groups)


def test_random_patterns_move_elements_as_einops_does() -> None:
    draw, explorer = random.Random(0), patterns.explore()
    frame = explorer.frame()
    for _ in range(150):
        names = draw.sample("abcdefg", draw.randint(1, 4))
        size = dict(zip(names, draw.choices(range(1, 4), k=len(names)), strict=True))
        if math.prod(size.values()) > 24:
            continue
        left, right = grouped(draw, names), grouped(draw, draw.sample(names, len(names)))
        operation, extra = draw.choice(patterns.OPERATIONS), ""
        kept = names
        if operation.startswith("reduce") or operation == "einsum":
            kept = draw.sample(names, draw.randint(0, len(names)))
            right = grouped(draw, kept)
        if operation == "repeat":
            extra = draw.choice([" new", " 2"])
        if operation == "einsum":
            left, right = [[n] for n in names], [[n] for n in kept]
        text = f"{written(left)} -> {written(right)}{extra}"
        given = ", ".join(f"{n}={size[n]}" for group in left for n in group[1:])
        if extra == " new":
            given = f"new=2, {given}"
        settings = operation, text, " ".join(f"{math.prod(size[n] for n in group)}" for group in left), given
        check(settings)
        frame = explorer.frame({**frame["state"], **state_of(settings)}, "pattern", draw.choice([760, 380]))
        assert not frame["problem"] and frame["state"]["example"] == patterns.OWN, frame["problem"]
        assert f"→ {list(real(settings).shape)}" in frame["title"]


@pytest.mark.parametrize(
    "settings",
    [
        ("rearrange", "... d -> d ...", "2 3 4", ""),
        ("rearrange", "... d -> d (...)", "2 3 4", ""),
        ("rearrange", "a ... -> (... a)", "2 3 4", ""),
        ("rearrange", "... d -> ... d", "4", ""),
        ("rearrange", "1 a () -> a 1", "1 3 1", ""),
        ("reduce, max", "b (y 2) -> b y", "2 6", ""),
        ("reduce, mean", "... -> ", "2 3", ""),
        ("repeat", "a -> a 3", "2", ""),
        ("repeat", "a -> (a n)", "2", "n=1"),
        ("repeat", "a ... -> (2 ...) a", "2 3 2", ""),
        ("einsum", "i i -> i", "4 4", ""),
        ("einsum", "b t d, b s d -> b t s", "2 3 4, 1 2 4", ""),
        ("einsum", "... a, ... a ->  ...", "3 3, 2 3 3", ""),
        ("einsum", "... a, ... a -> a", "3 3, 2 3 3", ""),
        ("einsum", "a -> ... a", "3", ""),
        ("einsum", "a b, b c, c d -> a d", "2 3, 3 2, 2 4", ""),
        ("einsum", "a, -> a", "4,", ""),
    ],
)
def test_dots_ones_and_repeated_names_are_read_as_einops_reads_them(settings: Settings) -> None:
    check(settings)
    frame = patterns.explore().frame(state_of(settings), "pattern")
    assert not frame["problem"]


@pytest.mark.parametrize(
    ("settings", "at", "said"),
    [
        (("rearrange", "b d -> d b", "2 3 4", ""), "shapes", "3 dimensions, and the pattern says 2"),
        (("rearrange", "b t d -> b d", "2 3 4", ""), "pattern", "write t on the right, too"),
        (("reduce, sum", "b t -> b d", "2 3", ""), "pattern", "write d on the left, too"),
        (("rearrange", "b t (h e) -> b h t e", "2 3 4", "h=3"), "sizes", "a dimension of size 4 doesn't match h=3"),
        (("reduce, sum", "(b 2) -> b", "5", ""), "shapes", "a dimension of size 5 doesn't match 2"),
        (("rearrange", "b t (h e) -> b h t e", "2 3 4", ""), "sizes", "give the size of h"),
        (("repeat", "a -> a b", "2", ""), "sizes", "give the size of b"),
        (("rearrange", "b t d", "2 3 4", ""), "pattern", "one arrow"),
        (("rearrange", "a -> a -> a", "2", ""), "pattern", "one arrow"),
        (("rearrange", "a -> a", "2, 3", ""), "shapes", "1 tensor: write one shape"),
        (("rearrange", "a, b -> a b", "2, 3", ""), "pattern", "only einsum"),
        (("rearrange", "a -> a", "2", "a=5"), "sizes", "a dimension of size 2 doesn't match a=5"),
        (("rearrange", "a -> a", "2", "z=5"), "sizes", "z isn't in the pattern"),
        (("rearrange", "a b c -> c (a b) ...", "2 3 4", ""), "pattern", "... on the left"),
        (("rearrange", "(... a) -> a ...", "4", "a=2"), "pattern", "in parentheses on the left"),
        (("rearrange", "a (b -> a b", "2 3", ""), "pattern", "a ( has no )"),
        (("rearrange", "((a) b) -> a b", "6", "a=2"), "pattern", "each ( needs its )"),
        (("rearrange", "a 2 -> 2 a", "3 2", ""), "pattern", "the only number allowed is 1"),
        (("rearrange", "a.b -> a.b", "3", ""), "pattern", "“a.b” isn't a name"),
        (("rearrange", "a -> a", "2 x", ""), "shapes", "write sizes from 1 to 48"),
        (("rearrange", "a -> a", "0", ""), "shapes", "write sizes from 1 to 48"),
        (("rearrange", "a -> a", "2", "a:2"), "sizes", "write sizes like h=2"),
        (("rearrange", "a b -> b a", "7 7", ""), "shapes", "too many to draw"),
        (("repeat", "a -> a 99999999999999999999", "2", ""), "shapes", "too many to draw"),
        (("einsum", "b h s d, b h s d -> b h s s", "2 3 5 1, 2 3 5 1", ""), "pattern", "use two names"),
        (("einsum", "a b, b c -> a c", "3 4, 5 6", ""), "shapes", "b is 4 in one place and 5 in another"),
        (("einsum", "i i -> i", "4 1", ""), "shapes", "i is 4 in one place and 1 in another"),
        (("einsum", "a, b -> a", "2", ""), "shapes", "2 tensors: write one shape"),
        (("einsum", "(a b) -> a b", "4", ""), "pattern", "neither parentheses nor 1"),
        (("einsum", "a -> a", "2", "a=2"), "sizes", "clear the sizes"),
        (("einsum", "a, b, c, d -> a", "2, 3, 4, 5", ""), "shapes", "at most 3"),
        (("einsum", "a, b ->", "48, 48", ""), "shapes", "more than 400 products"),
    ],
)
def test_an_impossible_pattern_says_at_its_control_what_to_change(settings: Settings, at: str, said: str) -> None:
    frame = patterns.explore().frame(state_of(settings), "pattern")
    assert frame["at"] == at and said in frame["problem"]
    assert len(frame["problem"]) < 100
    again = patterns.explore().frame({**frame["state"], "example": "transpose"}, "example")
    assert not again["problem"] and again["state"]["pattern"] == "b t d -> b d t"


def test_random_text_is_taken_and_refused_as_einops_does() -> None:
    draw = random.Random(0)
    usual = ["a", "b", "...", "1", "(a b)", "2", ","]
    words = [*4 * usual, "(", ")", "->", "_", "if", "[", "a_", "", "é", "0", "(...)", "ab", "(2 a)", "(b 2)"]
    taken = 0
    for _ in range(3000):
        text = " ".join([*draw.choices(words, k=draw.randint(0, 3)), "->", *draw.choices(words, k=draw.randint(0, 3))])
        shapes = draw.choice(["", "2", "2 3", "4 4 4", "2, 2", "2 2, 2 3", "1"])
        settings = draw.choice(patterns.OPERATIONS), text, shapes, draw.choice(["", "", "a=2", "b=2, a=1"])
        try:
            real(settings)
        except (einops.EinopsError, ValueError, RuntimeError, TypeError, NotImplementedError):
            with pytest.raises(Impossible):
                moved(settings)
            continue
        try:
            check(settings)
            taken += 1
        except Impossible as problem:
            assert re.search("too many|too large|neither parentheses", f"{problem}"), (settings, problem)
    assert taken > 30


@pytest.mark.parametrize("placed", ["0", "7", "36"])
def test_the_title_says_whether_the_elements_are_copied(placed: str) -> None:
    for example, how in {"split and move": "a view: nothing is copied", "move and merge": "a copy"}.items():
        frame = patterns.explore(example).frame({"elements placed": placed}, "elements placed")
        assert frame["state"]["elements placed"] == placed and frame["title"].endswith(f"36 elements ({how})")


def test_all_colors_and_places_make_a_picture() -> None:
    explorer = patterns.explore("attention scores")
    for color, placed, width in itertools.product("btse", ("0", "1", "23", "24"), (760, 380)):
        frame = explorer.frame({"colors": color, "elements placed": placed}, "colors", width)
        assert not frame["problem"] and len(frame["svg"].encode()) < 20_000
        assert frame["state"]["colors"] == color and frame["state"]["elements placed"] == placed
    large = "a b c d, a b c d, a b c d -> a b c d"
    frame = explorer.frame(state_of(("einsum", large, "2 2 3 4, 2 2 3 4, 2 2 3 4", "")), "pattern")
    assert frame["problem"] or len(frame["svg"].encode()) < 20_000


def test_other_shapes_are_shown_with_all_their_elements_placed() -> None:
    explorer = patterns.explore()
    state = explorer.frame()["state"] | {"operation": "rearrange", "pattern": "a -> a", "shapes": "4", "sizes": ""}
    state = explorer.frame(state, "shapes")["state"]
    assert state["elements placed"] == "4"
    state = explorer.frame(state | {"elements placed": "2"}, "elements placed")["state"]
    assert state["elements placed"] == "2"
    assert explorer.frame(state | {"shapes": "40"}, "shapes")["state"]["elements placed"] == "40"
