"""FLOPs of the model, of recomputation and of the optimizer, and how long a training run takes at a given rate."""

from __future__ import annotations

from dataclasses import dataclass

from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import OPTIMIZERS, Step, positive


def training_flops(model: Transformer, context: int, step: Step | None = None) -> dict[str, int]:
    """FLOPs to train on one token, forward and backward, by part; one multiply-add is 2.

    Exactly what `flops.count_flops` counts: 6 for each weight that multiplies, and for each layer
    12 · query width · context for attention, with all pairs of tokens counted (with a window, those in it), as in
    Chowdhery et al. 2022 (PaLM, arXiv:2204.02311), appendix B. Lecture 06 explains them. With adapters (``step.lora``)
    the model's own weights get no gradient, which saves 2 of the 6; the adapters' weights take 6. Recomputation isn't
    counted here: see `recomputed_flops`.
    """
    trained = adapters(model, step) if step else 0
    matrices = 4 * model.multiplied + 6 * trained if trained else 6 * model.multiplied
    return {"matrices": matrices, "attention": 6 * model.attended_width * model.attended(context)}


def adapters(model: Transformer, step: Step) -> int:
    """The number of parameters that LoRA trains: rank · (rows + columns) for each matrix that has an adapter.

    Raises:
        ValueError: the model has no such matrix.
    """
    if not step.lora:
        return 0
    matrices = model.attention | ({} if model.experts else model.block(model.hidden))
    unknown = [name for name in step.adapted if name not in matrices]
    if unknown:
        raise ValueError(f"adapted names {unknown[0]!r}: expected matrices of the model, {', '.join(matrices)}")
    chosen = [matrices[name] for name in step.adapted or matrices]
    return model.layers * step.lora * sum(rows + columns for rows, columns in chosen)


def recomputed_flops(model: Transformer, context: int) -> int:
    """FLOPs per token that checkpointing adds: a second forward pass through all layers."""
    whole = sum(training_flops(model, context).values())
    return (whole - 6 * model.vocabulary * model.width) // 3


def optimizer_flops(model: Transformer, step: Step) -> int:
    """FLOPs of matrix products in one update of all parameters: 0 unless the optimizer is Muon.

    For each n × m matrix (n ≤ m), each of Muon's five rounds computes X·Xᵀ, its square, and a weighted sum of the two
    times X: 4·n²·m + 2·n³ FLOPs. Source: Jordan et al. 2024, kellerjordan.github.io/posts/muon.
    """
    if not OPTIMIZERS[step.optimizer].orthogonalizes:
        return 0
    groups = [(model.layers, model.attention), (model.layers - model.moe_layers, model.block(model.hidden))]
    if model.experts:
        each = model.experts.routed + model.experts.shared
        groups.append((model.moe_layers * each, model.block(model.experts.width)))
        groups.append((model.moe_layers, {"router": (model.width, model.experts.routed)}))
    return sum(count * orthogonalizing_flops(*shape) for count, shapes in groups for shape in shapes.values())


def orthogonalizing_flops(rows: int, columns: int, rounds: int = 5) -> int:
    """FLOPs of Muon's Newton-Schulz iteration on one matrix."""
    n, m = sorted((rows, columns))
    return rounds * (4 * n * n * m + 2 * n**3)


@dataclass(frozen=True)
class Run:
    """The work of a training run and how fast one card does it.

    Attributes:
        flops: FLOPs for all tokens; `training` uses 6 · parameters · tokens (lecture 06; Kaplan et al. 2020,
            arXiv:2001.08361).
        rate: the FLOP/s that one card achieves.
    """

    flops: float
    rate: float

    @property
    def gpu_hours(self) -> float:
        """GPU-hours, which don't depend on how many cards divide the work."""
        return self.flops / self.rate / 3600

    def days(self, cards: int) -> float:
        """Days that the run takes on ``cards`` cards."""
        return self.gpu_hours / 24 / cards


def training(parameters: float, tokens: float, *, peak: float, mfu: float) -> Run:
    """Training a model of ``parameters`` parameters (for a mixture of experts, the active ones) on ``tokens`` tokens.

    Args:
        parameters: N, the number that take part in multiplications.
        tokens: D, the number of tokens; a token counts each time it's read.
        peak: dense FLOP/s of one card in the dtype of the multiplications.
        mfu: the fraction of the peak that is reached, more than 0 and at most 1.

    Raises:
        ValueError: a number isn't positive and finite, or mfu is more than 1.
    """
    positive(parameters=parameters, tokens=tokens)
    return run(6 * parameters * tokens, peak=peak, mfu=mfu)


def run(flops: float, *, peak: float, mfu: float) -> Run:
    """A training run of ``flops`` FLOPs; see `training`."""
    positive(flops=flops, peak=peak, mfu=mfu)
    if mfu > 1:
        raise ValueError(f"the MFU is {mfu}: give it as a fraction of the peak, such as 0.4")
    return Run(flops, peak * mfu)
