"""The parameters, FLOPs and activations of any nn.Module, found on the meta device without allocating memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from course_utils.napkin.footprint import Weights
from course_utils.napkin.step import OPTIMIZERS, RECIPES, Step

if TYPE_CHECKING:  # importing PyTorch takes seconds, and a Transformer's plan needs only the card's table
    import torch


@dataclass(frozen=True)
class Traced:
    """What `trace` found.

    Attributes:
        name: the name of the module's class.
        parts: numbers of trained parameters by submodule; a shared parameter counts where it occurs first.
        frozen: the number of parameters that are not trained.
        buffers: bytes of buffers.
        batch, context: the input's first dimension and, for ids (integers), its second; otherwise 1.
        item: "token" if the input is ids or there is none, otherwise "sample".
        flops: of a forward and backward pass of that batch, nothing computed twice; None without input.
        recomputed: FLOPs that torch.utils.checkpoint adds in the backward pass.
        activations: bytes that the forward pass saves for the backward pass; None without input.
        recipe, fused_attention: as in `Step`; what the trace used.
        in_matrices: trained weights in matrices, without embeddings and an output layer of the same vocabulary.
        rows_and_columns: the sum of all trained matrices' rows and columns, plus trained numbers outside matrices.
    """

    name: str
    parts: Mapping[str, int]
    frozen: int
    buffers: int
    batch: int
    context: int
    item: Literal["token", "sample"]
    flops: int | None
    activations: int | None
    recipe: str
    fused_attention: bool
    in_matrices: int = 0
    rows_and_columns: int = 0
    recomputed: int = 0

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        return sum(self.parts.values())

    def weights(self, step: Step) -> Weights:
        """The numbers in a training run. Frozen parameters, which every card holds, have their own line in the plan."""
        optimizer = OPTIMIZERS[step.optimizer]
        kept = optimizer.matrices * self.in_matrices + optimizer.others * (self.parameters - self.in_matrices)
        return Weights(self.parameters, 0, 0, False, self.rows_and_columns if optimizer.factored else kept, 0)

    def step(self, **how: Any) -> Step:
        """A `Step` with the input that was traced; the other arguments are those of `Step`."""
        return Step(self.batch, self.context, self.recipe, fused_attention=self.fused_attention, **how)


def trace(
    build: Callable[[], torch.nn.Module],
    *inputs: torch.Tensor,
    recipe: str = Step.recipe,
    fused_attention: bool = True,
) -> Traced:
    """Build a module on the meta device and, if inputs are given, run it there forward and backward.

    On the meta device a tensor has a shape but no memory, so tracing a 70B model takes seconds and almost no memory.
    FLOPs are counted as in `flops.count_flops`, activations as in `memory.saved_bytes`. They are what the module itself
    saves, so let it return its loss if the loss should be included. Expect more than `napkin.activations` counts for
    the same shape if a norm consists of several operations, because it then saves what each of them needs.

    Args:
        build: a function that makes the module, such as ``lambda: MyModel(config)``.
        inputs: the arguments of its forward pass; only shapes and dtypes matter. Ids are integers, [batch, context].
        recipe: determines whether module and inputs are float32 or bfloat16; see `Step`.
        fused_attention: whether scaled_dot_product_attention saves no T × T weights; see `Step`.

    Raises:
        TypeError: ``build`` isn't a function that makes a module.
        ValueError: the module can't be built or run on the meta device, or has nothing to train.
    """
    import torch

    from course_utils.flops import count_flops
    from course_utils.memory import saved_bytes

    if recipe not in RECIPES:
        raise ValueError(f"recipe is {recipe!r}: expected one of {', '.join(RECIPES)}")
    dtype = torch.bfloat16 if RECIPES[recipe].activations == 2 else torch.float32
    module = _build(build)
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtype)
    parts = _parts(module)
    if not parts:
        raise ValueError(f"{type(module).__name__} has no trainable parameters: there is nothing to plan")

    given = [x.to("meta", dtype if x.is_floating_point() else x.dtype) for x in inputs]

    def forward() -> torch.Tensor:
        outputs = torch.utils._pytree.tree_leaves(module(*given))
        learnt = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
        if not learnt:
            raise ValueError("its output does not depend on any trained parameter")
        return torch.stack([x.float().sum() for x in learnt]).sum()

    flops = activations = None
    recomputed = 0
    if inputs:
        module.train()
        try:
            with _fused_attention() if fused_attention else nullcontext():
                activations = saved_bytes(module, *given)
            # Unfused: a fused backward pass recomputes its scores, but MFU counts only what the mathematics needs.
            with _without_recomputation():
                flops = count_flops(lambda: forward().backward())  # type: ignore[no-untyped-call]
            recomputed = count_flops(lambda: forward().backward()) - flops  # type: ignore[no-untyped-call]
        except Exception as error:
            shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in given)
            raise ValueError(f"{type(module).__name__} does not run on {shapes} on the meta device: {error}") from error
    in_matrices, rows_and_columns = _matrices(module)
    ids = bool(inputs) and not inputs[0].is_floating_point() and inputs[0].dim() > 1
    item: Literal["token", "sample"] = "token" if ids or not inputs else "sample"
    return Traced(
        name=type(module).__name__,
        parts=parts,
        frozen=sum(p.numel() for p in module.parameters() if not p.requires_grad),
        buffers=sum(b.nbytes for b in module.buffers()),
        batch=inputs[0].shape[0] if inputs and inputs[0].dim() else 1,
        context=inputs[0].shape[1] if ids else 1,
        item=item,
        flops=flops,
        activations=activations,
        recipe=recipe,
        fused_attention=fused_attention,
        in_matrices=in_matrices,
        rows_and_columns=rows_and_columns,
        recomputed=recomputed,
    )


@contextmanager
def _without_recomputation() -> Iterator[None]:
    """Make torch.utils.checkpoint save everything, under whatever name a module calls it."""
    from torch.utils import checkpoint

    class Plain:
        @staticmethod
        def apply(function: Callable[..., Any], _preserve: bool, *args: Any) -> Any:
            return function(*args)

    with (
        mock.patch.object(checkpoint, "_checkpoint_hook", lambda _frame: nullcontext()),
        mock.patch.object(checkpoint, "CheckpointFunction", Plain),
    ):
        yield


def _matrices(module: torch.nn.Module) -> tuple[int, int]:
    """`Traced.in_matrices` and ``rows_and_columns``."""
    import torch

    tables = [m for m in module.modules() if isinstance(m, torch.nn.Embedding)]
    vocabularies = {table.num_embeddings for table in tables}
    apart = {id(table.weight) for table in tables}
    apart |= {id(m.weight) for m in module.modules() if getattr(m, "out_features", None) in vocabularies}
    inside = sums = 0
    for parameter in module.parameters():
        if parameter.requires_grad:
            if parameter.dim() == 2 and id(parameter) not in apart:
                inside += parameter.numel()
            if parameter.dim() >= 2:
                *_, rows, columns = parameter.shape
                sums += parameter.numel() // (rows * columns) * (rows + columns)
            else:
                sums += parameter.numel()
    return inside, sums


def _build(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    import torch

    advice = "pass a function that builds the module from shapes alone (no weights loaded, no .item(), no device named)"
    if isinstance(build, torch.nn.Module) or not callable(build):
        raise TypeError(f"trace was given a {type(build).__name__}; {advice}: trace(lambda: MyModel())")
    try:
        with torch.device("meta"):
            module = build()
    except Exception as error:
        raise ValueError(f"the module cannot be built on the meta device: {error}; {advice}") from error
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"trace was given a function that returns {type(module).__name__}; expected an nn.Module")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.device.type != "meta":
            raise ValueError(f"{name} is on {tensor.device}, where it takes memory; {advice}")
    return module


def _parts(module: torch.nn.Module) -> dict[str, int]:
    """Trained parameters by submodule, one level below the first module that has more than one."""
    root, prefix = module, ""
    while len(children := dict(root.named_children())) == 1 and not list(root.parameters(recurse=False)):
        ((name, root),) = children.items()
        prefix += f"{name}."
    counts: dict[str, int] = {}
    for name, parameter in root.named_parameters():
        if parameter.requires_grad:
            part = prefix + name.partition(".")[0]
            counts[part] = counts.get(part, 0) + parameter.numel()
    return counts


@contextmanager
def _fused_attention() -> Iterator[None]:
    """Make scaled_dot_product_attention save on the meta device what its fused kernels save.

    By default it saves the T × T weights there, as the plain formula does. The operator itself is intercepted, so it
    doesn't matter under which name a module calls it.
    """
    import torch

    def fused(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return kernel(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]

    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("scaled_dot_product_attention", fused, "AutogradMeta")
        yield
