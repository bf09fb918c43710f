"""What a narrow format does to numbers: which magnitudes it can represent, and how a loss scale follows its limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from course_utils.plots.axes import add_title, chart, positive, wrap_title
from course_utils.plots.style import CONTEXT, DATA, HIGHLIGHT, INK, MEASURED, PREDICTED, styled
from course_utils.units import raised


def range_histograms(rows: Mapping[str, torch.Tensor], dtype: torch.dtype, *, title: str) -> Figure:
    """Draw histograms of magnitudes, one above the other, with the range of ``dtype``.

    Each bar goes from one power of two to the next. Numbers that the format turns into zero or infinity (or NaN, in a
    format without infinity) are hatched in another color and labeled with their share. Zeros, which have no magnitude,
    are left out.

    Args:
        rows: For each label the numbers, of any shape and floating-point dtype.
        dtype: The format to convert them to, such as torch.float16.
        title: The finding.

    Raises:
        TypeError: ``dtype`` isn't a floating-point format, or something that should be a tensor isn't.
        ValueError: There are no rows, or a row has no finite nonzero number.
    """
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype is {dtype!r}: give a floating-point dtype, such as torch.float16")
    if not rows:
        raise ValueError("nothing to draw: give at least one label with its numbers")
    exponents, lost = {}, {}
    for label, numbers in rows.items():
        if not isinstance(numbers, torch.Tensor):
            raise TypeError(f"{label!r} is a {type(numbers).__name__}: give a tensor of numbers")
        sizes = numbers.detach().cpu().float().abs().flatten()
        sizes = sizes[sizes.isfinite() & (sizes > 0)]
        if not sizes.numel():
            raise ValueError(f"{label!r} has no finite number that is not zero: nothing to draw")
        stored = sizes.to(dtype).float()
        powers, counts = torch.unique(torch.frexp(sizes).exponent - 1, return_counts=True)
        exponents[label] = dict(zip(powers.tolist(), (100 * counts / sizes.numel()).tolist(), strict=True))
        lost[label] = ((stored == 0).float().mean().item(), (~stored.isfinite()).float().mean().item())

    info = torch.finfo(dtype)
    smallest = int(math.log2(info.smallest_normal * info.eps))  # of the subnormal numbers
    zero, normal, top = smallest - 1, int(math.log2(info.smallest_normal)), math.frexp(info.max)[1]
    beyond = torch.tensor(math.inf).to(dtype).float()  # formats without infinity may cut to their largest number
    above = "cut" if beyond.isfinite() else "inf" if beyond.isinf() else "NaN"
    everything = [e for row in exponents.values() for e in row]
    low, high = min(*everything, zero - 6), max(*everything, top + 3) + 1

    width, per_row, left, right = 8.9, 1.35, 1.75, 0.3
    lines = wrap_title(title, width)
    head = 0.2 + 0.24 * len(lines) + 0.42
    height = head + per_row * len(rows) + 0.62
    with styled():
        fig = Figure(figsize=(width, height))
        add_title(fig, lines)
        for number, (label, row) in enumerate(exponents.items()):
            bottom = height - head - per_row * (number + 1) + 0.12
            box = (left / width, bottom / height, 1 - (left + right) / width, (per_row - 0.12) / height)
            ax = fig.add_axes(box)
            for exponent, share in row.items():
                gone = exponent < zero or (exponent >= top and above != "cut")
                ax.bar(
                    exponent,
                    share,
                    width=1,
                    align="edge",
                    color=to_rgba(HIGHLIGHT if gone else DATA, 0.75),
                    edgecolor=INK,
                    linewidth=0.6,
                    hatch="////" if gone else None,
                    gid=f"{label}: {exponent}",
                )
            ax.set(xlim=(low, high), ylim=(0, 1.45 * max(row.values())))
            for edge in (zero, normal, top):
                ax.axvline(edge, color=CONTEXT, linewidth=1.2, linestyle="-" if edge != normal else ":")
            for share, x, align, what in (
                (lost[label][0], zero, "right", "become 0"),
                (lost[label][1], top, "right", "become NaN" if above == "NaN" else "become infinite"),
            ):
                if share >= 0.0005:  # less would be written as 0.0%
                    ax.annotate(
                        f"{share:.1%} {what}",
                        (x, 1),
                        xycoords=("data", "axes fraction"),
                        xytext=(-5, -2),
                        textcoords="offset points",
                        ha=align,
                        va="top",
                        weight="bold",
                        size=9.5,
                    )
            ax.annotate(
                label,
                (0, 0.5),
                xycoords="axes fraction",
                xytext=(-8, 0),
                textcoords="offset points",
                ha="right",
                va="center",
            )
            ax.set_yticks([])
            ax.spines.left.set_visible(False)
            ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: "2" + raised(f"{v:.0f}")))
            step = 4 * math.ceil((high - low) / 60)
            ax.set_xticks(range(math.ceil(low / step) * step, high + 1, step))
            if number == 0:
                for start, end, name in (
                    (low, zero, "becomes 0"),
                    (zero, normal, "subnormal"),
                    (normal, top, "normal"),
                    (top, high, above),
                ):
                    room = (end - start) / (high - low) * (width - left - right)  # inches
                    if room > 0.1 + 0.07 * len(name):
                        at = ax.get_xaxis_transform()
                        ax.text((start + end) / 2, 1.04, name, transform=at, ha="center", size=9)
            if number < len(rows) - 1:
                ax.tick_params(labelbottom=False)
            else:
                ax.set_xlabel("magnitude")
    return fig


def loss_scale(
    scales: Sequence[float], skipped: Sequence[bool], *, limit: Sequence[float] | None = None, title: str
) -> Figure:
    """Draw a loss scale over the steps, with a mark at each step that was skipped because something overflowed.

    Args:
        scales: The scale used in each step.
        skipped: Whether the step was skipped.
        limit: The predicted largest scale at which the step doesn't overflow.
        title: The finding.

    Raises:
        TypeError: Something that should be a number isn't.
        ValueError: There's nothing to draw, lengths differ, or a number isn't positive and finite.
    """
    if not scales:
        raise ValueError("nothing to draw: give the scale of at least one step")
    for name, values in (("skipped", skipped), ("limit", limit if limit is not None else scales)):
        if len(values) != len(scales):
            raise ValueError(f"{name} has {len(values)} values for {len(scales)} steps: give one for each")
    for value in (*scales, *(limit or ())):
        positive(value, "a scale")
    steps = range(len(scales))
    with styled():
        fig, ax = chart(8.9, 3.9, title, left=0.9, right=0.3)
        ax.set_yscale("log", base=2)
        ax.set(xlabel="step", ylabel="loss scale", xlim=(-0.02 * len(scales), 1.02 * len(scales)))
        if limit is not None:
            ax.plot(steps, limit, color=PREDICTED, linestyle="--", linewidth=1.2, label="predicted limit")
        ax.plot(steps, scales, color=MEASURED, linewidth=2, drawstyle="steps-post", label="scale")
        at = [step for step in steps if skipped[step]]
        ax.plot(
            at,
            [scales[step] for step in at],
            "X",
            color=HIGHLIGHT,
            markeredgecolor=INK,
            markeredgewidth=0.8,
            label="step skipped",
            gid="skipped",
        )
        low = math.floor(math.log2(min(*scales, *(limit or scales)))) - 1
        high = math.ceil(math.log2(max(*scales, *(limit or scales)))) + 1
        ax.set_ylim(2.0**low, 2.0**high)
        every = max(1, math.ceil((high - low) / 8))
        ax.set_yticks([2.0**e for e in range(low, high + 1, every)])
        ax.set_yticks([], minor=True)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: "2" + raised(f"{math.log2(v):.0f}")))
        ax.grid(True)
        fig.legend(loc="lower right", ncols=3, frameon=False, fontsize=9)
    return fig
