"""course_utils.data: files of tokens that are what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from course_utils import data

VOCAB = 50_257


def ids(count: int, vocab_size: int = VOCAB) -> np.ndarray:
    return np.random.default_rng(0).integers(0, vocab_size, count)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    data.write_tokens(tmp_path / "tokens.npy", ids(1_000), vocab_size=VOCAB)
    return tmp_path / "tokens.npy"


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [(1, "|u1"), (256, "|u1"), (257, "<u2"), (2**16, "<u2"), (2**16 + 1, "<u4"), (2**32, "<u4")],
)
def test_the_dtype_is_the_smallest_that_holds_the_vocabulary(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    assert data.token_dtype(vocab_size).str == dtype
    data.write_tokens(tmp_path / "a.npy", [0, vocab_size - 1], vocab_size=vocab_size)
    read = data.open_tokens(tmp_path / "a.npy", vocab_size=vocab_size, check_ids=True)
    assert read.dtype.str == dtype and read.tolist() == [0, vocab_size - 1]
    assert np.load(tmp_path / "a.npy").dtype.str == dtype  # a .npy file like any other


@pytest.mark.parametrize("vocab_size", [0, -1, 2**32 + 1])
def test_a_vocabulary_size_out_of_range_is_refused(vocab_size: int) -> None:
    with pytest.raises(ValueError, match=r"expected 1 to 2\*\*32"):
        data.token_dtype(vocab_size)


def test_a_file_is_mapped_and_cannot_be_written(path: Path) -> None:
    tokens = data.open_tokens(path, vocab_size=VOCAB)
    assert isinstance(tokens, np.memmap) and not tokens.flags.writeable
    assert tokens.tolist() == ids(1_000).tolist()


def test_long_arrays_are_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_BLOCK", 7)
    data.write_tokens(tmp_path / "a.npy", ids(100), vocab_size=VOCAB)
    assert data.open_tokens(tmp_path / "a.npy", vocab_size=VOCAB, check_ids=True).tolist() == ids(100).tolist()
    wrong = np.append(ids(93), [60_000, 7])
    with pytest.raises(ValueError, match="token 93 is 60000"):
        data.write_tokens(tmp_path / "a.npy", wrong, vocab_size=VOCAB)


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        ([3, VOCAB], "token 1 is 50257; expected 0 to 50,256"),
        ([3, 4, -1], "token 2 is -1; expected 0 to 50,256"),
        ([[1, 2]], r"shape \(1, 2\); expected one or more integers"),
        ([0.5], "given float64"),
        (np.array([], dtype=np.int64), "one or more"),
    ],
)
def test_tokens_that_are_not_a_row_of_ids_are_not_written(path: Path, tokens: object, problem: str) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match=problem):
        data.write_tokens(path, tokens, vocab_size=VOCAB)  # type: ignore[arg-type]
    assert path.read_bytes() == before and [found.name for found in path.parent.iterdir()] == ["tokens.npy"]


def test_a_file_name_that_does_not_end_in_npy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"given 'tokens.bin'; expected a name ending in .npy"):
        data.write_tokens(tmp_path / "tokens.bin", [1], vocab_size=VOCAB)


def test_a_write_that_fails_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(data.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        data.write_tokens(path, [1, 2, 3], vocab_size=VOCAB)
    assert path.read_bytes() == before and [found.name for found in path.parent.iterdir()] == ["tokens.npy"]


BROKEN = {
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:-100]), "has 2,028 bytes; expected 2,128 .* cut short"),
    "too long": (lambda p: p.write_bytes(p.read_bytes() + b"xx"), "2,130 bytes; expected 2,128 .* has extra bytes"),
    "raw bytes": (lambda p: ids(1_000).astype(np.uint16).tofile(p), "raw bytes from tofile"),
    "empty": (lambda p: p.write_bytes(b""), "does not start like a .npy file"),
    "half a header": (lambda p: p.write_bytes(p.read_bytes()[:40]), "damaged header"),
    "big-endian": (lambda p: np.save(p, ids(9).astype(">u2")), "holds >u2, in the opposite byte order"),
    "int64": (lambda p: np.save(p, ids(9)), "holds <i8; expected <u2, the dtype for 50,257 ids"),
    "signed": (lambda p: np.save(p, ids(9).astype(np.int16)), "holds <i2; expected <u2"),
    "a matrix": (lambda p: np.save(p, ids(9).astype(np.uint16)[None]), r"shape \(1, 9\); expected one dimension"),
    "no tokens": (lambda p: np.save(p, ids(0).astype(np.uint16)), "holds no tokens"),
    "a strange id": (lambda p: np.save(p, np.array([1, VOCAB], dtype=np.uint16)), "token 1 is 50257"),
    "objects": (lambda p: np.save(p, np.array([{}], dtype=object)), r"holds \|O"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_its_name_and_the_reason(name: str, path: Path) -> None:
    spoil, problem = BROKEN[name]
    spoil(path)
    with pytest.raises(ValueError, match=problem) as caught:
        data.open_tokens(path, vocab_size=VOCAB, check_ids=True)
    assert str(path) in str(caught.value)


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        data.open_tokens(tmp_path / "none.npy", vocab_size=VOCAB)
