"""An all-reduce on a ring, round by round: what each rank holds and sends, and how long it takes over a link."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from course_utils import napkin
from course_utils.cards import ACCELERATORS
from course_utils.explorers.drawing import Drawing
from course_utils.explorers.explorer import Explorer, Panel, Picture
from course_utils.units import readable

RANKS = range(3, 9)
SIZES = [10.0**k for k in range(3, 12)]
LATENCIES = [0.0, 1e-6, 1e-5, 1e-4]
LINKS = {
    f"{link.name.replace(' with NVSwitch', '')}, {readable(link.bandwidth, 'B/s')}": link.bandwidth
    for link in sorted(
        {link for card in ACCELERATORS.values() for link in card.links}, key=lambda link: (-link.bandwidth, link.name)
    )
}


def explore(
    ranks: int = 4, size: float = 1e9, link: str = "NVLink 4, 450 GB/s", latency: float = 1e-5, after: int = 2
) -> Explorer:
    """Controls for the ranks, the vector, the link and the round, above the ring.

    Args:
        ranks: the initial number of ranks, 3 to 8.
        size: the vector's initial size in bytes, one of `SIZES`.
        link: the initial link, a key of `LINKS`.
        latency: the initial seconds that a message takes besides its bytes, one of `LATENCIES`.
        after: the initial number of finished rounds.
    """
    arguments: dict[str, Any] = {"ranks": ranks, "size": size, "link": link, "latency": latency, "after": after}
    return Explorer("ring", partial(show, **arguments), arguments)


def sends(ranks: int, number: int) -> list[int]:
    """The piece that each rank sends to the next one in round ``number``, from 1 to 2 · (ranks − 1).

    In the first half (reduce-scatter), the next rank adds what it gets to its own; in the second (all-gather) it keeps
    what it gets. Between the halves, rank r has piece r of the sum.
    """
    return [(rank - number) % ranks for rank in range(ranks)]


def summed(ranks: int, rounds: int) -> list[list[int]]:
    """How many ranks' numbers are in the sum that each rank has of each piece, after so many rounds."""
    held = [[1] * ranks for _ in range(ranks)]
    for number in range(1, rounds + 1):
        before = [row[:] for row in held]
        for rank, piece in enumerate(sends(ranks, number)):
            mine = held[(rank + 1) % ranks]
            mine[piece] = before[rank][piece] + (mine[piece] if number < ranks else 0)
    return held


def show(panel: Panel, *, ranks: int, size: float, link: str, latency: float, after: int) -> Picture:
    """The ring after some rounds, the last round's messages, and in the middle the bytes and time of all rounds."""
    ranks = panel.slider("ranks", RANKS, ranks)
    rounds = 2 * (ranks - 1)
    done = panel.slider("round", range(rounds + 1), after, play=900)
    panel.row()
    size = panel.slider("vector", SIZES, size, lambda nbytes: readable(nbytes, "B"))
    latency = panel.slider(
        "latency", LATENCIES, latency, lambda seconds: readable(seconds, "s") if seconds else "none",
        label="latency of a message",
    )  # fmt: skip
    panel.row()
    chosen = panel.choice("link", list(LINKS), link)
    bandwidth = LINKS[chosen]

    whole = napkin.sent("all_reduce", size, ranks)
    seconds = napkin.all_reduce(size, ranks, bandwidth, latency=latency)
    sent, past = whole * done / rounds, seconds * done / rounds
    drawing = Drawing(panel.width, 350 if panel.narrow else 312)
    _ring(drawing, panel.narrow, ranks, done)
    said = "number, height: ranks in the sum" if panel.narrow else "number and height: how many ranks are in the sum"
    drawing.text(
        4, drawing.height - (18 if panel.narrow else 4), f"a, b, …: pieces; {said}", size=11, look="quiet", behind=True
    )
    drawing.before(panel.width - 4, drawing.height - 4)
    _middle(drawing, panel.narrow, ranks, done, (sent, whole, size), (past, seconds))

    took = f"{readable(sent if done else whole, 'B')}, in {readable(past if done else seconds, 's')}"
    title = f"After {done} of {rounds} rounds, each of {ranks} ranks has sent {took}"
    if done == 0:
        title = f"To all-reduce {readable(size, 'B')}, each of {ranks} ranks sends {took}"
    piece, more = readable(size / ranks, "B"), done - ranks + 2
    if done == 0:
        finding = f"Each rank has only its own vector, in {ranks} pieces of {piece}."
    elif done < ranks - 1:
        finding = (
            f"Each rank sent a piece of {piece} to the next rank, which added it to its own: "
            f"a sum over {done + 1} of the {ranks} ranks."
        )
    elif done == ranks - 1:
        finding = "The reduce-scatter is over: each rank has a different piece of the complete sum."
    elif done < rounds:
        finding = f"Each rank sent a complete piece of {piece} to the next rank: each now has {more} of the {ranks}."
    else:
        finding = f"Each rank has the whole sum, and has sent {whole / size:.3g} times the vector's bytes."
    share = f", {latency * rounds / seconds:.0%} of it latency" if latency else ""
    finding += f" A round over {chosen.split(',')[0]} takes {readable(seconds / rounds, 's')}{share}."
    return Picture(title, drawing, finding)


def _ring(drawing: Drawing, narrow: bool, ranks: int, done: int) -> None:
    """Each rank's pieces, filled as high as there are ranks in its sum; arrows are the last round's messages."""
    cell, tall = (10.0 if narrow else 18.0), 24.0
    across, down = (140.0, 128.0) if narrow else (290.0, 116.0)
    middle = drawing.width / 2, down + 34

    def place(rank: float) -> tuple[float, float]:
        turn = 2 * math.pi * rank / ranks - math.pi / 2
        return middle[0] + across * math.cos(turn), middle[1] + down * math.sin(turn)

    places = [place(rank) for rank in range(ranks)]
    broad, high = cell * ranks / 2 + 4, tall / 2 + 17
    sent = sends(ranks, done) if done else []
    for rank, piece in enumerate(sent):
        ends = places[rank], places[(rank + 1) % ranks]
        arc = [place(rank + step / 40) for step in range(1, 40)]  # only the part outside both boxes is drawn
        arc = [(x, y) for x, y in arc if all(abs(x - at) > broad or abs(y - of) > high for at, of in ends)]
        drawing.line([*arc[:-1:2], arc[-1]], "highlight now", width=2, arrow=True)
        x, y = arc[len(arc) // 2]
        shorter = 1 - 11 / math.hypot(x - middle[0], y - middle[1])
        x, y = middle[0] + shorter * (x - middle[0]), middle[1] + shorter * (y - middle[1])
        drawing.text(x, y + 4, "abcdefgh"[piece], anchor="middle", bold=True)
    for rank, (held, (x, y)) in enumerate(zip(summed(ranks, done), places, strict=True)):
        left, top = round(x - cell * ranks / 2), round(y - tall / 2)
        for piece, count in enumerate(held):
            height = tall * count / ranks
            look = "compute now" if count == ranks else "data half now"
            drawing.rect(
                left + cell * piece, top + tall - height, cell, height, look,
                key=f"{rank}{piece}",
            )  # fmt: skip
        lines = "".join(f"M{left + cell * piece:g} {top}v{tall:g}" for piece in range(ranks + 1))
        lines += f"M{left} {top}h{cell * ranks:g}M{left} {top + tall:g}h{cell * ranks:g}"
        drawing.shape("path", d=lines, class_="l-ink l-now", stroke_width=1, data_key=f"frame {rank}")
        centers = [left + cell * (piece + 0.5) for piece in range(ranks)]
        for look in ("ink", "paper"):
            mine = [piece for piece in range(ranks) if (held[piece] == ranks) == (look == "paper")]
            counts = "".join(f"{held[piece]}" for piece in mine)
            drawing.letters([centers[piece] for piece in mine], top + 16, counts, look=look, key=f"{look} {rank}")
        drawing.letters(centers, top - 4, "abcdefgh"[:ranks], look="quiet")
        drawing.text(x, top + tall + 13, f"rank {rank}", anchor="middle", size=11)
        if sent:
            drawing.shape(
                "rect", x=left + cell * sent[rank - 1], y=top, width=cell, height=tall, class_="l-highlight l-now",
                stroke_width=2.5, data_key=f"in {rank}",
            )  # fmt: skip


def _middle(
    drawing: Drawing,
    narrow: bool,
    ranks: int,
    done: int,
    nbytes: tuple[float, float, float],
    seconds: tuple[float, float],
) -> None:
    """Which half it is, the bytes that a rank has sent on a scale of two vectors, and the time."""
    sent, whole, size = nbytes
    center, y = drawing.width / 2, 128.0 if narrow else 112.0
    last = 2 * (ranks - 1)
    half = "reduce-scatter" if done < ranks else "all-gather"
    now = "not begun" if not done else f"round {done if done < ranks else done - ranks + 1} of {ranks - 1}"
    if narrow:
        drawing.text(center, y - 15, half, anchor="middle", bold=True)
    drawing.text(center, y, now if narrow else f"{half}: {now}", anchor="middle", bold=True)
    broad = 160.0 if narrow else 240.0
    left = center - broad / 2
    drawing.text(center, y + 22, f"sent by each rank: {readable(sent, 'B')}", anchor="middle", size=11)
    for vectors in range(3):
        x = left + broad * vectors / 2
        drawing.line([(x, y + 30), (x, y + 50)], "ink", width=1, behind=True)
        said = ("0", "1 vector", "2 vectors" if not narrow else "2")[vectors]
        drawing.text(x, y + 62, said, anchor="middle", size=11, look="quiet", behind=True)
    length = broad * sent / size / 2
    drawing.rect(left, y + 34, length, 12, "data now", key="sent")
    drawing.past(f"M{left:g} {y + 34:g}h{length:g}v12h{-length:g}z", key="past")
    drawing.rect(left, y + 34, broad * whole / size / 2, 12, "none edged now", key="to send")
    past, total = (readable(each, "s") for each in seconds)
    time = f"{past} of {total}" if 0 < done < last else f"time: {total}"
    drawing.text(center, y + 84, time, anchor="middle", size=11)
