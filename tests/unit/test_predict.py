"""Guesses beside measurements."""

import pytest

from course_utils.predict import reconcile


@pytest.mark.parametrize(
    ("guess", "part"),
    [(None, "write your own guess"), (100, "right."), (104, "right."), (200, "too high by a factor 2."),
     (25, "too low by a factor 4."), (0, "you guessed 0 B")],
)  # fmt: skip
def test_reconcile(guess: float | None, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    reconcile("x", guess, 100, "B")
    out = capsys.readouterr().out
    assert "x: 100 B" in out and part in out


@pytest.mark.parametrize("guess", ["12", float("nan"), True])
def test_a_guess_is_a_number(guess: object) -> None:
    with pytest.raises(ValueError, match="a guess is a number in B"):
        reconcile("x", guess, 100, "B")  # type: ignore[arg-type]


@pytest.mark.parametrize(("guess", "part"), [(5, "right."), (6, "too high by 1."), (0, "too low by 5.")])
def test_small_counts_differ_by_a_difference(guess: float, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    reconcile("cards", guess, 5, "cards")
    assert capsys.readouterr().out.strip().endswith(part)
