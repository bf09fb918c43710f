"""The bytes that one card holds in a training step, by purpose."""

from __future__ import annotations

import math
from dataclasses import dataclass

from course_utils.napkin.shapes import Transformer
from course_utils.napkin.step import OPTIMIZERS, RECIPES, SHARDED, Step
from course_utils.napkin.work import adapters


@dataclass(frozen=True)
class Weights:
    """How many numbers of each kind a training run has in total.

    Attributes:
        trained, frozen: parameters that aren't in a routed expert.
        experts: parameters in routed experts; ``experts_frozen`` is whether these are frozen.
        kept: numbers of optimizer state, without that of ``experts``.
        kept_for_experts: numbers of optimizer state for ``experts``.
    """

    trained: int
    frozen: int
    experts: int
    experts_frozen: bool
    kept: float
    kept_for_experts: float


def weights(model: Transformer, step: Step) -> Weights:
    """The numbers in a training run, before anything is divided among cards."""
    optimizer = OPTIMIZERS[step.optimizer]
    if step.lora:  # adapters are matrices of a layer, and nothing else is trained
        count = adapters(model, step)
        kept = float(optimizer.matrices * count)  # adapters are so narrow that factoring saves next to nothing
        return Weights(count, model.parameters - model.routed, model.routed, True, kept, 0)
    if optimizer.factored:
        kept, of_experts = float(model.rows_and_columns), 0.0
        if model.experts:
            shapes = model.block(model.experts.width).values()
            of_experts = model.moe_layers * model.experts.routed * sum(rows + columns for rows, columns in shapes)
        return Weights(model.parameters - model.routed, 0, model.routed, False, kept - of_experts, of_experts)
    others = model.parameters - model.in_matrices
    kept = optimizer.matrices * (model.in_matrices - model.routed) + optimizer.others * others
    return Weights(model.parameters - model.routed, 0, model.routed, False, kept, optimizer.matrices * model.routed)


def per_parameter(step: Step) -> dict[str, float]:
    """Bytes per trained parameter, by purpose, before anything is divided; without optimizer state."""
    recipe = RECIPES[step.recipe]
    return {"parameters": recipe.parameters, "gradients": recipe.gradients, "master copy": recipe.master}


def states(counted: Weights, step: Step) -> dict[str, int]:
    """Bytes of parameters, gradients, master copy and optimizer state that one card holds, rounded up.

    Tensor and pipeline parallelism divide everything; expert parallelism divides the routed experts; ZeRO divides the
    kinds in `SHARDED` among the groups that would otherwise hold copies.
    """
    one = step.tensor * step.pipeline  # cards that share a model

    def share(kind: str, dense: float, experts: float) -> int:
        copies, of_experts = (step.groups, step.groups // step.expert) if kind in SHARDED[step.zero] else (1, 1)
        return math.ceil(dense / (one * copies) + experts / (one * step.expert * of_experts))

    trained_experts = 0 if counted.experts_frozen else counted.experts
    size = per_parameter(step)
    found = {kind: share(kind, each * counted.trained, each * trained_experts) for kind, each in size.items()}
    found["optimizer state"] = share("optimizer state", 4 * counted.kept, 4 * counted.kept_for_experts)
    frozen_experts = counted.experts if counted.experts_frozen else 0
    if counted.frozen or frozen_experts:
        each = size["parameters"]
        found["frozen parameters"] = share("frozen parameters", each * counted.frozen, each * frozen_experts)
    return found


def activations(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that a forward pass saves for the backward pass on one card, by part of the model.

    The ledger of lecture 08, section 8, for N = batch · context tokens: in each layer the inputs and outputs of two
    norms, the queries, keys, values and result of attention, and what the feed-forward's matrices and nonlinearity
    need. Without dropout it agrees with Korthikanti et al. 2022, arXiv:2205.05198, section 4.1, which gives
    s·b·h·34 + 5·a·s²·b bytes in 16 bits; 2·s·b·h and 3·a·s²·b of these are dropout's. Inputs (ids) aren't counted.

    It counts what fused norms save, and the loss. `trace` counts what a given module saves, which differs if its
    norms consist of several operations, or if it returns logits rather than a loss.

    With checkpointing, "layers" are the inputs of all layers (section 5.1: 2·s·b·h bytes each). The parts of the one
    layer that is being recomputed are added, because they exist during its backward pass.

    Tensor parallelism, with the sequence divided where matrices aren't, divides all of it (section 4.2.2). For a
    pipeline the numbers are those of its fullest stage: the first holds its layers' activations for as many batches as
    there are stages, or all if fewer (section 4.2.3), the last also the output layer's.
    """
    recipe, tokens = RECIPES[step.recipe].activations, step.batch * step.context
    layer = _layer(model, step, recipe, tokens)
    ends = {
        "statistics of norms": 4 * tokens * model.norm_vectors,
        "last norm and head": recipe * tokens * 2 * model.width,
        "loss": 4 * (tokens * model.vocabulary + 1),
    }
    if step.checkpointing:
        inputs = recipe * tokens * model.width
        kept, again = {"layers": inputs * model.layers}, {"recomputed layer": _largest(model, layer) - inputs}
    else:
        kept, again = {name: sum(part.values()) for name, part in layer.items()}, {}
    waiting = min(step.pipeline, step.accumulation)
    stages = [(waiting / step.pipeline, step.pipeline == 1), (1 / step.pipeline, True)]
    found = [_stage(kept, ends if last else {}, again, share, step.tensor) for share, last in stages]
    return max(found, key=lambda parts: sum(parts.values()))


def _stage(
    kept: dict[str, int], ends: dict[str, int], again: dict[str, int], share: float, tensor: int
) -> dict[str, int]:
    held = {name: share * part for name, part in kept.items()}
    for name, part in (ends | again).items():
        held[name] = held.get(name, 0) + part
    return {name: math.ceil(part / tensor) for name, part in held.items()}


def _layer(model: Transformer, step: Step, size: int, tokens: int) -> dict[str, dict[str, int]]:
    """What all layers save, by part and by kind of layer."""
    between_norms = 4 * model.width  # inputs and outputs of the two norms
    if model.latent:  # queries, keys, values, result, and the narrow vectors that they are made from
        wide = 2 * model.query_width + 2 * model.heads * model.latent.value
        attention = wide + model.latent.query_rank + model.latent.kv_rank + model.latent.rope
    else:
        attention = 2 * model.query_width + 2 * model.kv_width  # queries and result, keys and values
    # GELU: its input and output. Gated: the input of SiLU, the product's two factors, and the product.
    each = 4 if model.gated else 2
    dense = model.layers - model.moe_layers
    values = {"dense": dense * (between_norms + attention + each * model.hidden)}
    if model.experts:
        used = model.experts.active + model.experts.shared
        sent = model.experts.active * model.width  # a copy for each expert that a token goes to
        experts = between_norms + attention + each * model.experts.width * used + sent
        values["experts"] = model.moe_layers * experts
    weights = 4 * tokens * model.heads * model.layers
    if not step.fused_attention:
        weights = size * tokens * model.heads * model.attended(step.context)
    return {
        "layers": {kind: size * tokens * value for kind, value in values.items()},
        "attention weights": {"all": weights},
        "statistics of norms": {"all": 4 * tokens * 2 * model.norm_vectors * model.layers},
    }


def _largest(model: Transformer, layer: dict[str, dict[str, int]]) -> int:
    """Bytes saved by one layer of the kind that saves the most."""
    counts = {"dense": model.layers - model.moe_layers, "experts": model.moe_layers}
    largest = max(part // counts[kind] for kind, part in layer["layers"].items() if counts[kind])
    return largest + sum(sum(layer[name].values()) for name in layer if name != "layers") // model.layers


def memory(model: Transformer, step: Step) -> dict[str, int]:
    """Bytes that one card holds in a training step, by purpose, rounded up.

    The sum is a budget, not the peak (see lecture 08).
    """
    return states(weights(model, step), step) | {"activations": sum(activations(model, step).values())}
