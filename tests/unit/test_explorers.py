"""What all explorers share: pure functions of their settings, whatever these are, and every one has its place."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import explorers
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from course_utils import predict
from course_utils.explorers import Explorer, Impossible, Panel, Picture
from course_utils.explorers.drawing import Axis, Drawing, curve, power, wide
from course_utils.explorers.explorer import NARROW, WIDE, load

ROOT = Path(__file__).parents[2]
SHARED = {"__init__", "explorer", "drawing", "live"}
NAMES = sorted({path.stem for path in (ROOT / "course_utils" / "explorers").glob("*.py")} - SHARED)
BANNED = ("torch", "numpy", "matplotlib", "IPython", "ipywidgets", "anywidget", "einops")


def explored() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "solutions").glob("*.py")}


@pytest.mark.parametrize("name", NAMES)
def test_an_explorer_is_in_a_lecture_or_has_a_page(name: str) -> None:
    assert name == "planner" or any(f"{name}.explore(" in text for text in explored().values())


def test_explorers_need_nothing_that_a_browser_lacks() -> None:
    """The reader's page has Python's standard library and course_utils, nothing else."""
    code = f"""
import sys
for name in {BANNED}:
    sys.modules[name] = None
from course_utils.explorers.explorer import load
for name in {NAMES}:
    frame = load(name, {{}}).frame()
    assert frame["svg"] and not frame["problem"], name
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def settings(explorer: Explorer) -> list[dict[str, Any]]:
    """Each control at its ends and its middle, and all at one end, from the first setting on."""
    first = explorer.frame()
    found: list[dict[str, Any]] = [{}]
    for end in (0, -1):
        found.append({c["name"]: c["options"][end] for c in first["controls"] if c["options"]})
        found.append({c["name"]: end == 0 for c in first["controls"] if c["kind"] == "switch"})
    for control in first["controls"]:
        options = control["options"] or ([True, False] if control["kind"] == "switch" else [])
        every = control["kind"] == "choice" and len(options) <= 9
        picked = options if every else [options[i] for i in (0, len(options) // 2, -1) if options]
        found += [{control["name"]: value} for value in picked]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_title_a_finding_and_a_drawing_that_fits(name: str) -> None:
    explorer = load(name, {})
    seen = set()
    for state in settings(explorer):
        for width in (WIDE, NARROW):
            frame = explorer.frame(state, next(iter(state), ""), width)
            if frame["problem"]:  # two settings may exclude each other; then the message says what to do
                assert frame["at"] in {control["name"] for control in frame["controls"]}, frame["problem"]
                continue
            assert frame["title"] and len(frame["title"]) <= 90, frame["title"]
            assert frame["finding"].endswith((".", "!", "?")), frame["finding"]
            assert len(frame["svg"]) < 20_000, f"{state}: {len(frame['svg'])} bytes"
            assert json.loads(json.dumps(frame)) == frame
            texts_inside(frame["svg"], f"{state} at {width}")
            texts_apart(frame["svg"], f"{state} at {width}")
            seen.add((frame["svg"], frame["title"]))
    assert len(seen) > 4


def texts_inside(svg: str, where: str) -> None:
    """No text begins or ends outside of the drawing."""
    root = BeautifulSoup(svg, "html.parser").svg
    assert root is not None
    right, bottom = (float(n) for n in str(root["viewbox"]).split()[2:])
    for text in root.find_all("text"):
        if text.get("transform"):
            continue
        places, y = [float(x) for x in str(text["x"]).split()], float(str(text["y"]))
        words = [text.text] if len(places) == 1 else list(text.text)  # several places: one for each letter
        for x, word in zip(places, words, strict=True):
            length = wide(word, float(str(text.get("font-size", 12))))
            start = x - length * {"start": 0, "middle": 0.5, "end": 1}[str(text.get("text-anchor", "start"))]
            assert start >= -12 and start + length <= right + 12 and 6 < y <= bottom + 2, f"{word!r}, {where}"


def texts_apart(svg: str, where: str) -> None:
    """No text overlaps another by more than a pixel. (Gliders may: each is a box that covers what it passes.)"""
    boxes = []
    for text in BeautifulSoup(svg, "html.parser").select("text[x][y]"):
        group, places = text.find_parent("g"), [float(x) for x in str(text["x"]).split()]
        kind = str((group.get("class") or [""])[0] if group else "")
        if kind == "course-glide":
            continue
        size = 11.0 if kind == "course-numbers" else float(str(text.get("font-size", 12)))
        anchor = "middle" if kind == "course-numbers" else str(text.get("text-anchor", "start"))
        for x, word in zip(places, [text.text] if len(places) == 1 else text.text, strict=True):
            y, length = float(str(text["y"])), wide(word, size)
            start = x - length * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
            if text.get("transform"):  # turned: it reads from below to above
                boxes.append((word, x - 0.7 * size, y + x - start - length, x + 0.2 * size, y + x - start))
            else:
                boxes.append((word, start, y - 0.7 * size, start + length, y + 0.2 * size))
    for (one, *a), (other, *b) in itertools.combinations(boxes, 2):
        across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert across <= 1 or down <= 1, f"{one!r} and {other!r} overlap: {where}"


# What is drawn behind depends on these choices alone: they decide what is drawn.
AXES = {
    "float_bits": {"format", "number"},
    "loss_scaling": {"form"},
    "memory_budget": {"card"},
    "patterns": {"example", "pattern", "shapes", "sizes", "colors"},
    "planner": {"task"},
    "sharding": {"model", "card", "zoom"},
    "training_time": {"card"},
    "valley": {"ratio", "turn"},
}


@pytest.mark.parametrize("name", NAMES)
def test_axes_and_rows_stay_where_they_are(name: str) -> None:
    def behind(frame: dict[str, Any]) -> str:
        return str(frame["svg"]).partition('<g class="course-front">')[0].partition('<g class="course-back">')[2]

    explorer, change = load(name, {}), set()
    for moved, choices in explorers.reached(explorer).items():
        for width in (WIDE, NARROW):
            first = explorer.frame(choices, "", width)
            control = next(each for each in first["controls"] if each["name"] == moved)
            values = control["options"] or (
                [not control["value"]] if control["kind"] == "switch" else [explorers.another(explorer, first, moved)]
            )
            if control["kind"] == "slider":
                values = [values[0], values[len(values) // 2], values[-1]]
            for value in values:
                frame = explorer.frame({**first["state"], moved: value}, moved, width)
                if frame["svg"] and behind(frame) != behind(first):
                    change.add(moved)
    assert change == AXES.get(name, set())


@pytest.mark.parametrize(
    "name", ["checkpointing", "initialization", "model_or_data", "ring", "stride_walk", "timetable", "valley"]
)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_of_the_setting_before_only_dashed_lines_stay_and_they_have_a_caption(name: str, width: int) -> None:
    """The script leaves texts and the look "now" out of the faint copy, and the style sheet dashes the look "past"."""
    explorer, unlike, dashed = load(name, {}), [], 0
    for state in settings(explorer):
        drawn = BeautifulSoup(explorer.frame(state, next(iter(state), ""), width)["svg"], "html.parser")
        if not drawn.select(".course-front"):
            continue
        (caption,) = drawn.select(".course-front .t-before")
        assert caption.text.startswith("dashed: the ") and caption.text.endswith(" before")
        stay = [s for s in drawn.select(".course-front :not(text, title)") if not {"f-now", "l-now"} & {*s["class"]}]
        dashed += any("l-past" in shape["class"] for shape in stay)
        unlike += [s for s in stay if not {"l-past", "course-handle"} & {*s["class"]} and name != "stride_walk"]
    assert dashed > 3
    assert {str(shape.get("r", "")) for shape in unlike} <= ({"3"} if name == "valley" else set()), unlike


MACHINES = {  # roof and bandwidth, and the four operations of lecture 05
    "CPU": (1e11, 2e10, [1.7e9, 1.2e10, 5e10, 9e10]),
    "slow CPU": (3e10, 8e9, [7e8, 5e9, 1.5e10, 2.8e10]),
    "disturbed CPU": (6e10, 4e9, [1.9e9, 1.9e9, 1e10, 2e10]),
    "H100": (9.9e14, 3e12, [4.6e11, 2.9e12, 1e11, 7e14]),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_measurements_under_the_roofline_have_labels_that_can_be_read(machine: str) -> None:
    peak, bandwidth, rates = MACHINES[machine]
    intensities = (0.17, 1.0, 21.0, 2_730.0) if machine == "H100" else (0.083, 0.5, 10.7, 171.0)
    names = ("addition", "matrix × vector", "matmul 64 × 64", "matmul 8,192 × 8,192")
    card = {"name": "this machine", "peak": {"float32": peak}, "bandwidth": bandwidth}
    measured = [list(each) for each in zip(names, intensities, rates, strict=True)]
    explorer = load("roofline", {"measured": measured, "card": card, "m": 64, "k": 8_192, "n": 8_192})
    for state, width in itertools.product(settings(explorer), (WIDE, NARROW)):
        svg = explorer.frame(state, "", width)["svg"]
        texts_inside(svg, f"{state} at {width}")
        texts_apart(svg, f"{state} at {width}")
        drawn = BeautifulSoup(svg, "html.parser")
        axis = max(float(str(line["d"]).split()[-1]) for line in drawn.select(".course-back .l-ink"))
        dots = [(float(str(dot["cx"])), float(str(dot["cy"]))) for dot in drawn.select(".f-measured")]
        if state.get("card", "this machine") != "this machine":
            assert not dots and not {each.text for each in drawn.select("text")} & {*names}
            continue
        assert len(dots) == len(names)
        for name in names:
            (text,) = (each for each in drawn.select("text") if each.text == name)
            x, y, length = float(str(text["x"])), float(str(text["y"])), wide(name, 11)
            assert y < axis, f"{name!r} is on the axis: {state} at {width}"
            assert not any(x < across < x + length and y - 8 < down < y + 2 for across, down in dots), (name, state)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_described_in_the_page_makes_the_same_explorer(name: str) -> None:
    explorer = load(name, {})
    still = BeautifulSoup(explorer.still(), "html.parser").figure
    assert still is not None
    described = json.loads(str(still["data-explorer"]))
    assert load(**described).frame() == explorer.frame()
    assert len(still.select("svg")) == 2 and still.select_one(".course-finding").text == explorer.frame()["finding"]


odd = st.one_of(st.text(max_size=300), st.booleans(), st.integers(), st.none(), st.lists(st.text(max_size=3)))


@given(odd, odd, odd, odd)
def test_a_panel_takes_any_setting_and_offers_what_it_offers(card: Any, size: Any, on: Any, text: Any) -> None:
    panel = Panel({"card": card, "size": size, "on": on, "text": text, "other": 1})
    assert panel.choice("card", {"one": 1, "two": 2}, "two") == (1 if card == "one" else 2)
    assert panel.slider("size", [1, 2, 4], 2) in (1, 2, 4)
    assert panel.switch("on") is (on is True)
    assert len(panel.text("text", "x")) <= 200
    with pytest.raises(ValueError, match="asked for twice"):
        panel.text("card", "x")


def test_two_values_with_the_same_words_are_refused() -> None:
    with pytest.raises(ValueError, match="the same words"):
        Panel({}).slider("size", [1.01, 1.02], 1.01, "{:.1f}".format)


def test_a_problem_is_said_at_its_control_and_leaves_the_other_settings() -> None:
    def show(panel: Panel) -> Picture:
        if panel.text("a", "1") == "x":
            raise Impossible("a is not a number: write 1, 2, …", "a")
        panel.text("b", "1")
        return Picture("title", Drawing(10, 10), "finding.")

    frame = Explorer("none", show).frame({"a": "x", "b": "7"}, "a")
    assert (frame["problem"], frame["at"], frame["svg"]) == ("a is not a number: write 1, 2, …", "a", "")
    assert frame["state"] == {"a": "x", "b": "7"}


def test_a_drawing_escapes_what_readers_write() -> None:
    drawing = Drawing(100, 50)
    drawing.text(1, 10, "<script>&\"'")
    drawing.rect(0, 0, 1, 1, tip='"><b>')
    drawing.button(0, 0, 5, 5, "<b>", sets=("a", '"x'), label="<i>")
    page = BeautifulSoup(drawing.svg('"><script>'), "html.parser")
    assert not page.find_all(["script", "b", "i"])


def test_powers_of_ten_are_written_as_in_figures() -> None:
    values = [1e-5, 1e-3, 1, 1e3, 1e4, 1e5, 1e10]
    assert [power(value) for value in values] == ["10⁻⁵", "0.001", "1", "1,000", "10,000", "10⁵", "10¹⁰"]


@pytest.mark.parametrize("axis", [Axis(0, 10, 50, 250), Axis(1e-3, 1e6, 40, 300, log=True), Axis(5, -5, 0, 100)])
def test_an_axis_finds_the_value_of_each_place_and_keeps_values_beyond_its_ends_on_it(axis: Axis) -> None:
    for place in range(int(axis.start), int(axis.end), 7):
        assert axis(axis.value(place)) == pytest.approx(place)
    assert axis(1e99) in (axis.start, axis.end) and axis.ticks() if axis.high > axis.low else True


@pytest.mark.parametrize("log", [False, True])
def test_a_curve_ends_where_it_leaves_the_scale(log: bool) -> None:
    x, y = Axis(1, 101, 0, 100), Axis(1, 100, 200, 0, log=log)
    points = [(each, 0.5 * each**1.5) for each in range(1, 102, 10)]
    (found,) = curve(x, y, points)
    assert found[0][1] == pytest.approx(y.start) and found[-1][1] == pytest.approx(y.end)
    assert [each for each in found[1:-1]] == [(x(a), y(b)) for a, b in points if y.low < b < y.high]
    assert curve(x, y, [(1, 5), (101, 5)]) == [[(0, y(5)), (100, y(5))]]
    assert curve(x, y, [(1, 0.1), (101, 0.2)]) == curve(x, y, [(1, 300), (101, 300)]) == []
    below, back = curve(x, y, [(1, 50), (26, 0.1), (76, 0.1), (101, 50)])
    assert below[-1][1] == pytest.approx(y.start) == back[0][1], "it doesn't run along the edge"
    assert below[-1][0] < 25 and back[0][0] > 75


def test_a_point_off_the_scale_stands_inside_with_an_arrow_and_its_value() -> None:
    y = Axis(1, 100, 200, 20, log=True)
    for value, place, tip in ((1_000, 50, 22), (0.5, 170, 198), (10, 110, None)):
        for x in (10.0, 290.0):
            drawing = Drawing(300, 220)
            assert drawing.point(x, y, value, f"{value:,}%", sets="p", within=(0, 0, 300, 220), label="drag") == place
            drawn = BeautifulSoup(drawing.svg("a"), "html.parser")
            handle, arrow = drawn.select_one(".course-handle"), drawn.select_one("[data-key=off]")
            assert handle is not None and float(str(handle["cy"])) == place
            assert (arrow is None) == (tip is None)
            if arrow is not None:
                assert str(arrow["d"]).startswith(f"M{x:g} {place} L{x:g} {tip} ")
                texts_inside(drawing.svg("a"), f"{value}")
                assert [text.text for text in drawn.select("text")] == [f"{value:,}%"]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("m", ["1", "2"])
def test_the_point_is_on_the_roof_that_is_drawn(machine: str, m: str) -> None:
    """Also on a machine so slow that the axis has to reach further down."""
    peak, bandwidth, rates = MACHINES[machine]
    card = {"name": "this machine", "peak": {"float32": peak}, "bandwidth": bandwidth}
    measured = [["lowest", 0.083, min(rates)]]
    explorer = load("roofline", {"measured": measured, "card": card, "m": 64, "k": 8_192, "n": 8_192})
    drawn = BeautifulSoup(explorer.frame({"m": m})["svg"], "html.parser")
    (x0, y0), (x1, y1) = (
        [float(each) for each in pair.split()]
        for pair in str(drawn.select_one("[data-key='roof memory-bound']")["d"]).removeprefix("M").split(" L")
    )
    handle, dot = drawn.select_one(".course-handle"), drawn.select_one(".f-measured")
    x, y = float(str(handle["cx"])), float(str(handle["cy"]))
    assert y0 + (x - x0) * (y1 - y0) / (x1 - x0) == pytest.approx(y, abs=0.3)
    decade = (y0 - y1) / math.log10(peak / (0.01 * bandwidth))  # in pixels
    assert (float(str(dot["cy"])) - y1) / decade == pytest.approx(math.log10(peak / min(rates)), abs=0.02)


def test_a_guess_is_compared_with_the_answer_and_asked_for_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(predict.FILE_VARIABLE, str(tmp_path / "predictions.json"))
    plain, what, asks = load("sharding", {}), f"stage 3, {tmp_path}", "How many GB does each card hold at stage 3?"
    assert plain.predicted(what, asks) is plain, "its cell runs alone"

    predict.reconcile(what, None, 16.1, "GB")
    asking = plain.predicted(what, asks)
    assert load(**json.loads(json.dumps(asking.described()))).frame() == asking.frame()
    first = asking.frame()
    assert first["controls"][0]["name"] == "guess" and first["guess"] == f"S{what[1:]}: 16.1 GB"
    assert first["controls"][0]["label"] == f"Guess first: {asks}" and first["controls"][0]["entered"]
    assert first["asking"] and not plain.frame()["asking"]
    assert first["svg"] == plain.frame()["svg"], "a reader need not guess"
    assert first["title"] in asking.still(), "without a script, the page shows it"
    shown = [asking.frame({"guess": text}, "guess") for text in ("20", " 20 GB", "2e1")]
    assert [each["guess"] for each in shown] == [f"S{what[1:]}: 16.1 GB; you said 20, high by a factor of 1.24"] * 3
    assert not any(each["asking"] for each in shown)
    for text in ("0", "-5"):
        assert asking.frame({"guess": text}, "guess")["guess"].endswith(
            f"; you said {text}, but the answer is positive"
        )
    for text in ("twenty", "nan", "1e999"):
        refused = asking.frame({"guess": text}, "guess")
        assert refused["at"] == "guess" and text in refused["problem"] and refused["asking"]

    predict.reconcile(what, 20, 16.1, "GB")
    predict.reconcile(what, 16, 16.1, "GB")  # a second guess is no prediction
    known = plain.predicted(what, asks).frame()
    assert known["guess"] == shown[0]["guess"] and known["guess"][1:] == capsys.readouterr().out.splitlines()[1][1:]
    assert known["controls"] == plain.frame()["controls"] and not known["asking"]
    assert shown[0]["guess"] in plain.predicted(what, asks).still()


PREDICTED = r"""\.predicted\(\s*"([^"]+)",\s*f?"[A-Z][^"]+\?",?\s*\)"""


def test_an_explorers_prediction_is_one_that_its_lecture_reconciles() -> None:
    found = 0
    for lecture, text in explored().items():
        assert text.count(".predicted(") == len(re.findall(PREDICTED, text)), f"{lecture}: ask a whole question"
        for what in re.findall(PREDICTED, text):
            found += 1
            assert re.search(rf"""\breconcile\(\s*"{re.escape(what)}",""", text), (
                f"{lecture}: nothing reconciles {what!r}"
            )
    assert found >= 5


ANSWERS = {  # to the lecture's prediction, and the settings of its question
    "decoding": ("30.4 times", {"batch": "64"}),
    "model_or_data": ("5.65 billion", {"ratio": "20"}),
    "sharding": ("30.1 GB", {"cards": "8"}),
    "timetable": ("bubble of 25%", {"microbatches": "9"}),
    "training_time": ("180 days", {"tokens": "15 trillion"}),
    "valley": ("in 75 steps", {"turn": "45°"}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_explorer_that_asks_a_question_begins_with_its_settings_and_shows_its_answer(name: str) -> None:
    (explorer,) = (
        eval(call, {name: import_module(f"course_utils.explorers.{name}"), "a_quarter": 9})
        for text in explored().values()
        for call in re.findall(rf"\b{name}\.explore\([^()]*\)", text)
    )
    answer, state = ANSWERS[name]
    for width in (WIDE, NARROW):
        first = explorer.frame({}, "", width)
        assert state.items() <= first["state"].items()
        assert answer in BeautifulSoup(f"{first['title']} {first['svg']} {first['finding']}", "html.parser").text
