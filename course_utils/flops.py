"""Count FLOPs and interpret them: MFU, arithmetic intensity, the roofline."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any


def count_flops(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """FLOPs of the matrix work that `fn(*args, **kwargs)` does; one multiply-add is 2 FLOPs.

    Runs `fn` once under PyTorch's `FlopCounterMode`, on any device. On the meta device you can count a 70B model
    without allocating it.

    Counted: mm, addmm, bmm, baddbmm and everything that calls them (`@`, einsum, nn.Linear), mv, addmv, dot,
    vdot, addbmm, convolutions, scaled_dot_product_attention, in the forward and in the backward pass.

    Counted as 0: elementwise work, bias, softmax, norms, losses, embeddings, reductions, optimizers; outer
    products, F.bilinear, cdist, nn.LSTM on a CPU, and the fused fast path that nn.MultiheadAttention and
    nn.TransformerEncoderLayer take in eval mode.

    When you compare with a formula, note that
        - the backward pass of fused (flash) attention recomputes the scores: 2.5 times the forward pass, where
          the mathematics needs 2. The hardware does 2.5; for MFU, use 2.
        - causal attention is counted in full, not halved.
        - the backward pass of a grouped convolution is counted as if it weren't grouped.
        - a function from torch.compile is counted by running the original function: the number is the same,
          and a compiled function that has run under the counter would stay slow.

    Raises:
        TypeError: `fn` cannot be called.

    Source: torch.utils.flop_counter (PyTorch 2.13), whose formula for flash attention on a CPU is missing
    (pytorch/pytorch issue 195460) and is supplied here.
    """
    if not callable(fn):
        raise TypeError(f"count_flops was given a {type(fn).__name__}; expected a function: count_flops(lambda: x @ w)")
    import torch
    from torch.utils import flop_counter  # where triton is installed, this import is slow

    aten = torch.ops.aten

    def attention(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        return int(flop_counter.sdpa_flop_count(q, k, v))  # type: ignore[no-untyped-call]

    def attention_backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        return int(flop_counter.sdpa_backward_flop_count(grad, q, k, v))  # type: ignore[no-untyped-call]

    formulas = {
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
        aten.mv: lambda a, x, **_: 2 * math.prod(a),
        aten.addmv: lambda y, a, x, **_: 2 * math.prod(a),
        aten.dot: lambda a, b, **_: 2 * math.prod(a),
        aten.vdot: lambda a, b, **_: 2 * math.prod(a),
        aten.addbmm: lambda c, a, b, **_: 2 * math.prod(a) * b[-1],
    }
    fn = getattr(fn, "_orig_mod", getattr(fn, "_torchdynamo_orig_callable", fn))
    counter = flop_counter.FlopCounterMode(display=False, custom_mapping=formulas)
    counter.mod_tracker = _NoModules()  # type: ignore[assignment]
    with counter:
        fn(*args, **kwargs)
    return int(counter.get_total_flops())


class _NoModules:
    """Counts for the whole call alone. PyTorch's tracker, in its place, counts for each module, and its hooks on
    gradients make a backward pass fail that calls `torch.autograd.grad`, as that of a checkpoint may.
    """

    parents = ("Global",)

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


def mfu(flops: float, seconds: float, peak: float | None) -> float | None:
    """Model FLOPs utilization: the fraction of the promised FLOP/s that did useful work.

    Args:
        flops: FLOPs that the mathematics needs (without recomputation).
        seconds: the time they took.
        peak: promised dense FLOP/s for the dtype in use; None when unknown (see `hardware.peak_flops`).

    Returns:
        flops / seconds / peak, without unit, or None if the peak is unknown. Above 1.05 it also warns, because
        nothing is faster than its peak: the count, the time or the peak must be wrong.

    Raises:
        ValueError: flops is negative, or seconds or peak is not a positive number.

    Source: Chowdhery et al. 2022 (PaLM), appendix B.
    """
    if not math.isfinite(flops) or flops < 0:
        raise ValueError(f"mfu was given flops={flops}; expected a count, 0 or more.")
    _check_positive("mfu", "seconds", seconds)
    if peak is None:
        return None
    _check_positive("mfu", "peak", peak)
    share = flops / seconds / peak
    if share > 1.05:
        warnings.warn(
            f"an MFU of {share:.3g} is more than the hardware can do. Usual causes: no synchronize before the "
            "clock was read, the peak of another dtype, or FLOPs counted twice.",
            RuntimeWarning,
            stacklevel=2,
        )
    return share


def arithmetic_intensity(flops: float, bytes_moved: float) -> float:
    """FLOPs per byte read from or written to memory (FLOP/B).

    Raises:
        ValueError: flops is negative or bytes_moved is not a positive number.
    """
    if not math.isfinite(flops) or flops < 0:
        raise ValueError(f"arithmetic_intensity was given flops={flops}; expected a count, 0 or more.")
    _check_positive("arithmetic_intensity", "bytes_moved", bytes_moved)
    return flops / bytes_moved


def attainable_flops(intensity: float, peak: float, bandwidth: float) -> float:
    """The roofline: the FLOP/s that an operation of this intensity can reach, min(peak, intensity · bandwidth).

    Args:
        intensity: FLOP per byte moved, see `arithmetic_intensity`.
        peak: FLOP/s of the processor.
        bandwidth: bytes/s of its memory.

    Raises:
        ValueError: one of them is not a positive number (intensity may be 0).

    Source: Williams, Waterman and Patterson 2009.
    """
    if not math.isfinite(intensity) or intensity < 0:
        raise ValueError(f"attainable_flops was given intensity={intensity}; expected FLOP per byte, 0 or more.")
    _check_positive("attainable_flops", "peak", peak)
    _check_positive("attainable_flops", "bandwidth", bandwidth)
    return min(peak, intensity * bandwidth)


def _check_positive(function: str, name: str, value: float | None) -> None:
    if value is None or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{function} was given {name}={value}; expected a positive number.")
