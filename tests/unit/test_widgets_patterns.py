"""The explorer of patterns says of every pattern what einops does with real numbers."""

import math
import random
from collections.abc import Iterator

import einops
import pytest
import torch

from course_utils import plots
from course_utils.widgets import explorer as explorers
from course_utils.widgets import patterns
from course_utils.widgets.explorer import Explorer, Impossible


@pytest.fixture(scope="module")
def shared() -> Iterator[Explorer]:
    """One explorer for all tests, without the SVG, which is not what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorers, "to_html", lambda figure, alt: "")
        yield patterns.explore()


@pytest.fixture
def explorer(shared: Explorer) -> Explorer:
    """The shared explorer, as it is at first."""
    shared.controls["pattern"].example.value = "split and move"
    assert shared.controls["pattern"].value == patterns.EXAMPLES["split and move"] and shared.problem == ""
    return shared


def real(operation: str, text: str, shapes: list[tuple[int, ...]], sizes: dict[str, int]) -> torch.Tensor:
    """The operation on tensors of ones."""
    tensors = [torch.ones(shape, dtype=torch.float64) for shape in shapes]
    if operation == "einsum":
        return einops.einsum(*tensors, text)
    if operation == "repeat":
        return einops.repeat(tensors[0], text, **sizes)
    if operation == "rearrange":
        return einops.rearrange(tensors[0], text, **sizes)
    return einops.reduce(tensors[0], text, operation.removeprefix("reduce, "), **sizes)


def drawn(explorer: Explorer) -> tuple[list[str], list[str], int]:
    """Texts, gids of lines, and how many frames there are."""
    (ax,) = explorer.picture.figure.axes
    gids = [line.get_gid() for line in ax.lines if line.get_gid()]
    return [text.get_text() for text in ax.texts], gids, sum(patch.get_gid() == "dimension" for patch in ax.patches)


def check(explorer: Explorer) -> None:
    operation, text, shapes_text, sizes_text = explorer.controls["pattern"].value
    shapes = [tuple(int(n) for n in part.split()) for part in shapes_text.split(",")]
    sizes = {name.strip(): int(n) for name, n in (pair.split("=") for pair in sizes_text.split(",") if pair.strip())}
    result = real(operation, text, shapes, sizes)
    assert explorer.problem == ""
    said, (texts, _, frames) = explorer.picture.finding, drawn(explorer)
    assert f"→ {list(result.shape)}" in said
    assert any(t.startswith(f"result {list(result.shape)}: {result.numel():,} element") for t in texts)
    for name, shape in zip("xyz", shapes, strict=False):
        assert any(t.startswith(f"{name} {list(shape)}: {math.prod(shape):,} element") for t in texts)
    inputs, output = patterns.named_sides(operation, text, shapes, sizes)
    by_key: dict[str, set[int]] = {}
    for dims, shape in zip([*inputs, output], [*shapes, tuple(result.shape)], strict=True):
        assert tuple(math.prod(axis.size for axis in axes) for axes in dims) == shape
        for axis in (axis for axes in dims for axis in axes):
            by_key.setdefault(axis.key, set()).add(axis.size)
    assert all(len(found - {1}) <= 1 for found in by_key.values()), "one name, one size (or 1, which broadcasts)"
    ones = sum(t == "1" for t in texts)
    assert frames <= sum(map(len, shapes)) + result.dim() <= frames + ones
    if operation in ("einsum", "reduce, sum"):  # a sum of ones counts what was summed
        many = int(result.flatten()[0])
        assert f"sum of {many:,} " in said if many > 1 else ("is one " in said or "sum of 1 element." in said)
    if operation == "rearrange":
        assert result.numel() == math.prod(shapes[0]) and "nothing is computed" in said
    if operation == "repeat":
        times = result.numel() // math.prod(shapes[0])
        assert f"each stands there {times:,} time{'s' * (times != 1)}." in said


@pytest.mark.parametrize("example", patterns.EXAMPLES)
def test_an_example_is_what_einops_makes(explorer: Explorer, example: str) -> None:
    explorer.controls["pattern"].example.value = example
    assert explorer.controls["pattern"].value == patterns.EXAMPLES[example]
    check(explorer)


@pytest.mark.parametrize("seed", range(2))
def test_random_patterns_are_drawn_as_einops_moves_them(explorer: Explorer, seed: int) -> None:
    draw = random.Random(seed)
    controls = explorer.controls["pattern"]
    for _ in range(20):
        names = draw.sample("abcdefg", draw.randint(1, 5))
        size = dict(zip(names, draw.choices(range(2, 6), k=len(names)), strict=True))
        left, right = grouped(draw, names), grouped(draw, draw.sample(names, len(names)))
        operation = draw.choice(["rearrange", "repeat", "reduce, sum", "reduce, max", "einsum"])
        kept, extra = names, ""
        if operation.startswith("reduce") or operation == "einsum":
            kept = draw.sample(names, draw.randint(0, len(names)))
            right = grouped(draw, kept)
        if operation == "repeat":
            extra = " new"
        if operation == "einsum":
            left, right = [[n] for n in names], [[n] for n in kept]
        shape = [math.prod(size[n] for n in group) for group in left]
        text = f"{written(left)} -> {written(right)}{extra}"
        given = ", ".join(f"{n}={size[n]}" for group in left for n in group[1:])  # what einops cannot know
        if extra:
            given = f"new=3, {given}"
        values = operation, text, " ".join(map(str, shape)), given
        for part, value in zip(controls.parts, values, strict=True):
            part.value = value
        assert controls.value == values
        check(explorer)
        inputs, output = patterns.named_sides(operation, text, [tuple(shape)], patterns.sizes_of(given))
        assert [[(a.name, a.size) for a in axes] for axes in inputs[0]] == [[(n, size[n]) for n in g] for g in left]
        new = [[("new", 3)]] if extra else []
        assert [[(a.name, a.size) for a in axes] for axes in output] == [[(n, size[n]) for n in g] for g in right] + new
        _, gids, _ = drawn(explorer)
        assert sorted(gids) == sorted(
            [
                *(f"line {n}" for n in kept),
                *(f"end {n}" for n in names if n not in kept),
                *(["new new"] if extra else []),
            ]
        )


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


@pytest.mark.parametrize(
    ("operation", "text", "shapes", "sizes", "lines"),
    [
        ("rearrange", "... d -> d ...", "2 3 4", "", {"line … 2", "line … 1", "line d"}),
        ("rearrange", "... d -> d (...)", "2 3 4", "", {"line … 2", "line … 1", "line d"}),
        ("rearrange", "... d -> ... d", "4", "", {"line d"}),
        ("rearrange", "1 a () -> a 1", "1 3 1", "", {"line a"}),
        ("reduce, max", "b (y 2) -> b y", "2 6", "", {"line b", "line y", "end 2 #0"}),
        ("reduce, mean", "... -> ", "2 3", "", {"end … 2", "end … 1"}),
        ("repeat", "a -> a 3", "2", "", {"line a", "new 3 #0"}),
        ("repeat", "a -> (a n)", "2", "n=1", {"line a", "new n"}),
        ("einsum", "i i -> i", "4 4", "", {"line i"}),
        ("einsum", "b t d, b s d -> b t s", "2 3 4, 1 5 4", "", {"line b", "line t", "line s", "end d"}),
        ("einsum", "... a, ... a ->  ...", "7 3, 5 7 3", "", {"line … 2", "line … 1", "end a"}),
        ("einsum", "a b, b c, c d -> a d", "2 3, 3 4, 4 5", "", {"line a", "line d", "end b", "end c"}),
    ],
)
def test_ellipses_ones_and_repeated_names_are_drawn_as_einops_reads_them(
    explorer: Explorer, operation: str, text: str, shapes: str, sizes: str, lines: set[str]
) -> None:
    for part, value in zip(explorer.controls["pattern"].parts, (operation, text, shapes, sizes), strict=True):
        part.value = value
    check(explorer)
    _, gids, _ = drawn(explorer)
    assert set(gids) == lines and (operation == "einsum" or len(gids) == len(lines)), "a line for each name"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("rearrange", "b d -> d b", "2 3 4", ""), "expected 2 dims.*name each dimension"),
        (("rearrange", "b t d -> b d", "2 3 4", ""), "only on one side.*on both sides"),
        (("rearrange", "b t (h e) -> b h t e", "2 3 4", "h=3"), "can't divide axis of length 4.*size that divides"),
        (("rearrange", "b t (h e) -> b h t e", "2 3 4", ""), "Could not infer.*under sizes"),
        (("rearrange", "b t d", "2 3 4", ""), "no arrow.*names -> names"),
        (("rearrange", "a -> a", "2, 3", ""), "takes one tensor.*choose einsum"),
        (("rearrange", "a -> a", "2", "a=5"), "2 != 5.*size that the shape has"),
        (("rearrange", "a -> a", "2", "z=5"), "not used.*clear that name"),
        (("rearrange", "a b c -> c (a b) ...", "2 3 4", ""), "Ellipsis.*on both sides"),
        (("rearrange", "a -> a", "2 x", ""), "not a shape.*2 3 4"),
        (("rearrange", "a -> a", "0", ""), "not a shape"),
        (("rearrange", "a -> a", "2", "a:2"), "no sizes.*h=2"),
        (("rearrange", "a " * 60 + "->", "2", ""), "too long"),
        (("einsum", "b h s d, b h s d -> b h s s", "2 3 5 4, 2 3 5 4", ""), 'duplicate dimension "s".*two names'),
        (("einsum", "a b, b c -> a c", "3 4, 5 6", ""), "broadcast.*same size"),
        (("einsum", "a, b -> a", "2", ""), "fewer operands.*commas"),
        (("einsum", "a -> a", "2", "a=2"), "takes no sizes.*clear"),
        (("einsum", "a, b, c, d -> a", "2, 3, 4, 5", ""), "too much.*at most 3 tensors"),
        (("repeat", "a -> a 99999999999999999999", "2", ""), "refuses.*→"),
        (("repeat", "a -> a" + " 2" * 14, "2", ""), "do not fit.*leave some out"),
    ],
)
def test_an_impossible_pattern_says_what_to_change(explorer: Explorer, settings: patterns.Pattern, said: str) -> None:
    with pytest.raises(Impossible, match=said) as caught:
        patterns.draw(settings)
    assert "→" in str(caught.value)
    for part, value in zip(explorer.controls["pattern"].parts, settings, strict=True):
        part.value = value
    assert explorer.problem == str(caught.value)


@pytest.mark.filterwarnings("ignore:It is discouraged to use axes names that are keywords")  # such as "if" below
def test_random_text_is_drawn_or_refused_with_advice() -> None:
    draw = random.Random(0)
    words = ["a", "b", "(", ")", "->", "...", "1", "2", ",", "_", "if", "…", "[", "a_", "", "é", "(a b)", "0"]
    for _ in range(400):
        text = " ".join([*draw.choices(words, k=draw.randint(0, 4)), "->", *draw.choices(words, k=draw.randint(0, 4))])
        shapes = draw.choice(["", "2", "2 3", "4 4 4", "2, 2", "2 2, 2 3", "1"])
        try:
            patterns.draw((draw.choice(patterns.OPERATIONS), text, shapes, draw.choice(["", "a=2", "b=2, a=1"])))
        except Impossible as problem:
            assert "→" in str(problem)


def test_the_same_settings_give_the_same_bytes() -> None:
    one, two = (patterns.explore("max pooling") for _ in range(2))
    assert one.png() == two.png()
    html = [plots.to_html(x.picture.figure, alt=x.picture.finding) for x in (one, two)]
    assert html[0] == html[1]
