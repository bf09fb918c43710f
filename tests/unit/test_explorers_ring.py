"""A ring all-reduce: its rounds, done with numbers, sum; bytes and seconds are the planner's."""

from __future__ import annotations

import random

import pytest

from course_utils import napkin
from course_utils.explorers import ring
from course_utils.units import readable


@pytest.mark.parametrize("ranks", ring.RANKS)
def test_the_rounds_sum_and_then_distribute(ranks: int) -> None:
    draw = random.Random(ranks)
    vectors = [[draw.randrange(1000) for _ in range(ranks)] for _ in range(ranks)]
    total = [sum(column) for column in zip(*vectors, strict=True)]
    held = [{piece: {rank} for piece in range(ranks)} for rank in range(ranks)]  # whose numbers are in each sum
    for number in range(1, 2 * ranks - 1):
        old = [list(vector) for vector in vectors]
        who = [{piece: set(of) for piece, of in mine.items()} for mine in held]
        for rank, piece in enumerate(ring.sends(ranks, number)):
            to = (rank + 1) % ranks
            if number < ranks:
                assert not who[to][piece] & who[rank][piece], "nobody is added twice"
                vectors[to][piece] += old[rank][piece]
                held[to][piece] |= who[rank][piece]
            else:
                assert old[rank][piece] == total[piece], "only what is complete is passed on"
                vectors[to][piece], held[to][piece] = old[rank][piece], who[rank][piece]
        assert ring.summed(ranks, number) == [[len(mine[piece]) for piece in range(ranks)] for mine in held]
        if number == ranks - 1:
            assert all(vectors[rank][rank] == total[rank] for rank in range(ranks)), "as reduce_scatter gives them"
    assert vectors == [total] * ranks


def test_bytes_and_seconds_are_the_planners() -> None:
    explorer = ring.explore()
    for ranks in ring.RANKS:
        for words, bandwidth in ring.LINKS.items():
            state = {"ranks": f"{ranks}", "link": words, "vector": "100 kB", "latency": "100 µs"}
            nbytes = readable(napkin.sent("all_reduce", 1e5, ranks), "B")
            seconds = readable(napkin.all_reduce(1e5, ranks, bandwidth, latency=1e-4), "s")
            title = explorer.frame(state | {"round": f"{2 * ranks - 2}"})["title"]
            assert title.endswith(f"each of {ranks} ranks has sent {nbytes}, in {seconds}")
            assert explorer.frame(state | {"round": "0"})["title"].endswith(f"sends {nbytes}, in {seconds}")
    halfway = explorer.frame({"round": "3"})
    assert "has sent 750 MB" in halfway["title"] and halfway["finding"].startswith("The reduce-scatter is over")


def test_latency_is_named_where_it_counts() -> None:
    explorer = ring.explore(size=1e3)
    assert "100% of it latency" in explorer.frame()["finding"]
    assert "latency" not in explorer.frame({"latency": "none"})["finding"]
    assert "takes 10 µs" in explorer.frame()["finding"]


def test_every_round_of_every_ring_has_a_picture() -> None:
    for ranks in ring.RANKS:
        for number in range(2 * ranks - 1):
            for width in (760, 380):
                frame = ring.explore(ranks).frame({"round": f"{number}"}, "round", width)
                assert not frame["problem"] and frame["state"]["round"] == f"{number}"
                assert frame["svg"].count('data-key="in ') == (ranks if number else 0)
