"""Numbers with units, as a person reads them."""

import pytest

from course_utils.units import counted, duration, format_bytes, readable, ticks


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2_415_919_104, "B", "2.42 GB"),
        (128, "B", "128 B"),
        (0, "B", "0 B"),
        (999_600, "B", "1 MB"),
        (999.4, "B", "999 B"),
        (-2e6, "B", "-2 MB"),
        (float("inf"), "B", "inf B"),
        (5.4e-8, "s", "54 ns"),
        (0.0149, "s", "14.9 ms"),
        (2.5, "s", "2.5 s"),
        (1234, "s", "1,234 s"),
        (3e-12, "s", "0.003 ns"),
        (2 * 16_384 * 32_768 * 8192, "FLOPs", "8.8 TFLOPs"),
        (1e18, "FLOPs", "1 EFLOPs"),
        (3.14e23, "FLOPs", "3.14e23 FLOPs"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (0.25, "FLOP/B", "0.25 FLOP/B"),
        (1e-4, "FLOP/B", "1.00e-4 FLOP/B"),
        (0.5, "of 1", "0.5 of 1"),
        (1024, "", "1,024"),
        (5, "cards", "5 cards"),
        (float("nan"), "cards", "nan cards"),
    ],
)
def test_readable_writes_three_digits_with_prefix_and_unit(value: float, unit: str, text: str) -> None:
    assert readable(value, unit) == text


@pytest.mark.parametrize(
    ("values", "unit", "words"),
    [
        ([0.001, 1, 500, 100_000], "", ["0.001", "1", "500", "100,000"]),
        ([2e-5, 1e-3, 10], "s", ["20 µs", "1 ms", "10 s"]),
        ([1e4, 1e7], "s", ["10⁴ s", "10⁷ s"]),
        ([1e-10, 2e-4, 0.1, 1, 50, 1000], "", ["10⁻¹⁰", "2 · 10⁻⁴", "10⁻¹", "1", "50", "10³"]),
        ([9.58e21, 3.8e25], "FLOPs", ["9.58 · 10²¹ FLOPs", "3.8 · 10²⁵ FLOPs"]),
        ([1e5, 2.5e11], "tokens", ["10⁵ tokens", "2.5 · 10¹¹ tokens"]),
        ([], "", []),
    ],
)
def test_an_axis_has_one_notation(values, unit, words):
    assert ticks(values, unit) == words


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (128, "128 B"),
        (1023, "1023 B"),
        (8192, "8.19 kB = 8 KiB"),
        (999_600, "1 MB = 0.953 MiB"),
        (10**6, "1 MB = 0.954 MiB"),
        (49_152 * 12_288 * 4, "2.42 GB = 2.25 GiB"),
        (6.4e11, "640 GB = 596 GiB"),
        (-4096, "-4.1 kB = -4 KiB"),
    ],
)
def test_format_bytes_gives_both_units(n, text):
    assert format_bytes(n) == text


@pytest.mark.parametrize("n", [float("nan"), float("inf")])
def test_format_bytes_refuses_nan_and_infinity(n):
    with pytest.raises(ValueError, match="expected a finite number of bytes"):
        format_bytes(n)


@pytest.mark.parametrize(
    ("value", "text"),
    [(70e9, "70 billion"), (15e12, "15 trillion"), (1_024, "1,024"), (999_600, "1 million"), (0.5, "0.5"), (0, "0")],
)
def test_counted_writes_millions_billions_and_trillions_in_words(value: float, text: str) -> None:
    assert counted(value) == text


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0.5 / 86_400, "0.5 seconds"),
        (119 / 86_400, "119 seconds"),
        (120 / 86_400, "2 minutes"),
        (0.5, "12 hours"),
        (1.99, "47.8 hours"),
        (34, "34 days"),
        (2 * 365.25, "2 years"),
    ],
)
def test_duration_picks_the_unit_from_seconds_to_years(days: float, text: str) -> None:
    assert duration(days) == text
