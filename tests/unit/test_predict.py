"""Guesses beside measurements: shown, kept, and drawn at the end of the course."""

import json
import os
from pathlib import Path

import pytest

from course_utils import plots
from course_utils.predict import (
    FILE_VARIABLE,
    MEASUREMENTS_VARIABLE,
    Prediction,
    calibration,
    predictions,
    reconcile,
    record,
)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "guesses.json"
    monkeypatch.setenv(FILE_VARIABLE, str(path))
    return path


@pytest.mark.parametrize(
    ("guess", "part"),
    [(None, "x: 100 B\n"), (100, "; you said 100 B: right\n"), (104, "; you said 104 B: right\n"),
     (200, "; you said 200 B, high by a factor of 2\n"), (25, "; you said 25 B, low by a factor of 4\n"),
     (0, "; you said 0 B, but the answer is positive\n"), (-5, "; you said -5 B, but the answer is positive\n")],
)  # fmt: skip
def test_reconcile_says_how_far_off_a_guess_is(
    guess: float | None, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reconcile("x", guess, 100, "B")
    out = capsys.readouterr().out
    assert out.startswith("x: 100 B") and out.endswith(part) and out.count("\n") == 1


def test_measurements_are_collected_where_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "measurements.jsonl", tmp_path / "05_flops_and_mfu"
    record("before", 1, "B")
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv(MEASUREMENTS_VARIABLE, str(path))
    reconcile("no guess", None, 2, "µs")
    reconcile("a guess", 3, 4.5, "FLOP/s")
    record("neither", 0.5, "MFU")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["what"], row["measured"], row["unit"]) for row in rows] == [
        ("no guess", 2.0, "µs"), ("a guess", 4.5, "FLOP/s"), ("neither", 0.5, "MFU")
    ]  # fmt: skip
    assert {row["lecture"] for row in rows} == {"05_flops_and_mfu"}


@pytest.mark.parametrize("guess", ["12", float("nan"), float("inf"), True])
def test_a_guess_that_is_not_a_finite_number_is_refused(guess: object, file: Path) -> None:
    with pytest.raises(ValueError, match="a guess is a number in B"):
        reconcile("x", guess, 100, "B")  # type: ignore[arg-type]
    assert not file.exists()


@pytest.mark.parametrize(
    ("guess", "part"),
    [
        (5, "5 cards; you said 5: right"),
        (6, "you said 6, high by 1"),
        (0, "you said 0, low by 5"),
        (-5, "you said -5, but the answer is positive"),
    ],
)
def test_a_guess_of_a_small_count_is_judged_by_the_difference(
    guess: float, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reconcile("cards", guess, 5, "cards")
    assert part in capsys.readouterr().out


def test_the_first_guess_is_kept_and_a_missing_one_is_not(file: Path) -> None:
    reconcile("seen first", None, 100, "B")
    assert not file.exists()
    reconcile("x", 200, 100, "B")
    reconcile("x", 100, 100, "B")
    reconcile("cards", 0, 5, "cards")
    assert predictions() == [Prediction("", "x", 200, 100, "B"), Prediction("", "cards", 0, 5, "cards")]
    assert os.listdir(file.parent) == [file.name]


def test_lectures_share_a_file_beside_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    for lecture in ("01_tensors", "02_dtypes"):
        (tmp_path / lecture).mkdir()
        monkeypatch.chdir(tmp_path / lecture)
        reconcile("x", 1, 2, "B")
    assert [p.lecture for p in predictions(tmp_path / "predictions.json")] == ["01_tensors", "02_dtypes"]


@pytest.mark.parametrize("content", ["{", "[1]", '[{"what": 1}]', "\udcff"])
def test_a_broken_file_is_named_left_alone_and_stops_no_lecture(
    content: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content.encode(errors="surrogateescape")
    file.write_bytes(before)
    reconcile("x", 1, 2, "B")
    assert "Your guess could not be saved" in capsys.readouterr().out and file.read_bytes() == before
    with pytest.raises(ValueError, match="Move it away to start again"):
        calibration()


def test_a_full_disk_loses_no_earlier_guess(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reconcile("x", 1, 2, "B")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    reconcile("y", 1, 2, "B")
    assert "No space left" in capsys.readouterr().out
    assert [p.what for p in predictions()] == ["x"] and os.listdir(file.parent) == [file.name]


def test_calibration_counts_and_draws_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration()
    assert "Guesses saved so far: 0." in capsys.readouterr().out
    guesses = [1000, 1000, 300, 300, 300, 150, 150, 100, 60, 60]
    for i, guess in enumerate(guesses):
        reconcile(f"x{i}", guess, 100, "B")
    reconcile("nothing", 0, 5, "cards")
    capsys.readouterr()
    drawn: list[tuple[str, float]] = []
    draw = plots.calibration
    monkeypatch.setattr(plots, "calibration", lambda rows, title: drawn.extend(rows) or draw(rows, title=title))
    calibration()
    out = capsys.readouterr().out
    assert "5 of your 10 guesses are within a factor of 2; the median factor is 2.33" in out
    assert "(3 in the first 5 and 1.5 in the others)" in out
    assert drawn == [("other", pytest.approx(guess / 100)) for guess in guesses]
