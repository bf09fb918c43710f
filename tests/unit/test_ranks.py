"""course_utils.ranks: what collectives return and send, from real processes and simulated ones alike."""

import itertools
import os
import sys
from pathlib import Path

import pytest
import torch

from course_utils.ranks import Group, launch, simulate, wire_bytes


def everything(group: Group, x: torch.Tensor) -> list[torch.Tensor]:
    mine = x[group.rank].requires_grad_()  # collectives carry numbers, not graphs
    return [group.all_reduce(mine), group.all_gather(mine), group.reduce_scatter(mine.repeat(group.size))]


def by_hand(x: torch.Tensor) -> list[list[torch.Tensor]]:
    size, n = x.shape
    return [[x.sum(0), x.flatten(), x.sum(0).repeat(size)[rank * n : (rank + 1) * n]] for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_simulated_collectives_return_what_is_computed_by_hand(size: int) -> None:
    x = torch.arange(5.0 * size).view(size, 5) ** 2
    for got, want in zip(simulate(everything, size, x), by_hand(x), strict=True):
        assert [g.tolist() for g in got] == [w.tolist() for w in want]
        assert not any(g.requires_grad for g in got)


@pytest.mark.slow
def test_real_processes_agree_with_simulated_ones() -> None:
    x = torch.arange(10.0).view(2, 5) ** 2
    assert [[v.tolist() for v in got] for got in launch(everything, 2, x)] == [
        [v.tolist() for v in got] for got in simulate(everything, 2, x)
    ]


def swaps(group: Group) -> list[torch.Tensor]:
    """Part i has i + 1 rows if it comes from an odd rank, and none otherwise."""
    return group.all_to_all(
        [torch.full((group.rank % 2 * (i + 1), 2), 10.0 * group.rank + i) for i in range(group.size)]
    )


@pytest.mark.slow
def test_all_to_all_takes_parts_of_any_length_and_real_ranks_agree_with_simulated_ones() -> None:
    empty: list[list[float]] = []
    for rank, got in enumerate(simulate(swaps, 3)):
        assert [part.tolist() for part in got] == [empty, [[10.0 + rank] * 2] * (rank + 1), empty]
    by_real = [[part.tolist() for part in got] for got in launch(swaps, 2)]
    assert by_real == [[part.tolist() for part in got] for got in simulate(swaps, 2)]


def test_all_to_all_wants_a_part_for_each_rank() -> None:
    with pytest.raises(ValueError, match="given 1 parts for 2 ranks"):
        simulate(lambda group: group.all_to_all([torch.ones(1)]), 2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_simulated_ranks_count_what_each_collective_sends(size: int) -> None:
    def counts(group: Group) -> list[float]:
        x, sent = torch.ones(12, dtype=torch.bfloat16), [group.sent]
        group.all_reduce(x)
        sent.append(group.sent)
        group.all_gather(x)
        sent.append(group.sent)
        group.reduce_scatter(x)
        sent.append(group.sent)
        group.all_to_all([x[: 2 + i] for i in range(group.size)])
        return [after - before for before, after in itertools.pairwise([*sent, group.sent])]

    others = size - 1
    for rank, found in enumerate(simulate(counts, size)):
        uneven = sum(2 * (2 + i) for i in range(size) if i != rank)
        assert found == pytest.approx([2 * others * 24 / size, others * 24, others * 24 / size, uneven])


def sends(group: Group) -> list[int | None]:
    x, sent = torch.ones(500_000), [wire_bytes()]
    for collective in (group.all_reduce, group.all_gather, group.reduce_scatter):
        collective(x)
        sent.append(wire_bytes())
    return sent


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts")
def test_wire_bytes_counts_what_each_collective_sends() -> None:
    for counts in launch(sends, 2):
        carried = [after - before for before, after in itertools.pairwise(counts)]
        for got, want in zip(carried, (2_000_000, 2_000_000, 1_000_000), strict=True):
            assert want <= got < want + 10_000


def test_a_function_from_a_notebook_is_sent_with_what_it_uses() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    code = "class Doubler:\n    def __call__(self, x): return factor * x\nfactor = 2\n"
    exec(code + "def job(group, x): return Doubler()(x) + group.rank", names)
    assert launch(names["job"], 2, 20) == [40, 41]  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [launch, simulate])
def test_a_size_of_zero_is_refused(run: object) -> None:
    with pytest.raises(ValueError, match="size=0"):
        run(everything, 0)  # type: ignore[operator]


def test_ranks_are_forks_of_one_process_and_take_over_what_has_changed_since_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks(group: Group) -> tuple[int, str, str | None, str, int]:
        return os.getppid(), os.getcwd(), os.environ.get("A_SETTING"), sys.path[0], torch.get_num_threads()

    first, *_ = launch(looks, 1)[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A_SETTING", "as it is now")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    wanted = (str(tmp_path), "as it is now", str(tmp_path / "modules"), 1)
    for parent, *found in launch(looks, 2):
        assert tuple(found) == wanted
        if sys.platform != "win32":
            assert parent == first != os.getpid()
