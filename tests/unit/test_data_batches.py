"""course_utils.data: batches that are what they should be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils import data


def batch_of(tokens: np.ndarray, batch: int, context: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    return data.get_batch(tokens, batch=batch, context=context, generator=torch.Generator().manual_seed(seed))


def test_targets_are_the_next_tokens(tmp_path: Path) -> None:
    data.write_tokens(tmp_path / "tokens.npy", np.random.default_rng(0).integers(0, 50_257, 1_000), vocab_size=50_257)
    tokens = data.open_tokens(tmp_path / "tokens.npy", vocab_size=50_257)
    inputs, targets = batch_of(tokens, 8, 16)
    assert inputs.shape == targets.shape == (8, 16) and inputs.dtype == targets.dtype == torch.int64
    text = tokens.tolist()
    for row, after in zip(inputs.tolist(), targets.tolist(), strict=True):
        (start,) = [i for i in range(len(text) - 16) if text[i : i + 16] == row]
        assert after == text[start + 1 : start + 17]


def test_every_window_is_drawn_about_equally_often() -> None:
    tokens = np.arange(7, dtype=np.uint16)
    inputs, _ = batch_of(tokens, 9_000, 4)
    counts = Counter(inputs[:, 0].tolist())
    assert sorted(counts) == [0, 1, 2] and min(counts.values()) > 2_700


def test_batches_depend_on_the_given_generator_alone() -> None:
    tokens, before = np.arange(1_000, dtype=np.uint16), torch.get_rng_state()
    assert torch.equal(batch_of(tokens, 4, 8, seed=1)[0], batch_of(tokens, 4, 8, seed=1)[0])
    assert not torch.equal(batch_of(tokens, 4, 8, seed=1)[0], batch_of(tokens, 4, 8, seed=2)[0])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("tokens", "batch", "context", "problem"),
    [
        (np.arange(8), 2, 8, "given 8 tokens for context=8; expected 9 or more"),
        (np.arange(0), 2, 8, "given 0 tokens"),
        (np.arange(8), 0, 2, "batch=0, context=2; expected both to be 1 or more"),
        (np.arange(8), 2, 0, "batch=2, context=0; expected both to be 1 or more"),
        (np.zeros((4, 4)), 2, 2, r"shape \(4, 4\); expected one dimension"),
    ],
)
def test_an_impossible_batch_is_refused_with_the_reason(
    tokens: np.ndarray, batch: int, context: int, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        batch_of(tokens, batch, context)


def test_the_only_window_is_drawn() -> None:
    inputs, targets = batch_of(np.array([5, 6, 7], dtype=np.uint8), 2, 2)
    assert inputs.tolist() == [[5, 6]] * 2 and targets.tolist() == [[6, 7]] * 2
