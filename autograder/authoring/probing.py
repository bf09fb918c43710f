"""Functions that the probes of several exercises use.

A probe imports them at the top of its file, and their source becomes part of the probe's: it runs beside the student's
code, where this package doesn't exist. So each imports what it needs inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def alike(a: Any, b: Any) -> bool:
    """Whether two tensors agree to the last bit; torch.equal calls -0.0 and 0.0 equal."""
    import torch

    return torch.equal(a, b) and torch.equal(a.signbit(), b.signbit())


def causal_biases() -> Any:
    """A context in which code can make PyTorch's CausalBias while a TorchDispatchMode watches: otherwise that fails."""
    import contextlib

    import torch
    from torch.nn.attention.bias import CausalBias
    from torch.utils._python_dispatch import _disable_current_modes

    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return torch.Tensor.__new__(kind)

    @contextlib.contextmanager
    def patched() -> Any:
        setattr(CausalBias, "__new__", new)  # noqa: B010
        try:
            yield
        finally:
            del CausalBias.__new__

    return patched()


def state_on_its_device(new_optimizer: Callable[[Any], Any]) -> bool:
    """Whether an optimizer keeps a parameter's state on the parameter's device, if new_optimizer(p) makes one for p.

    It's tried on meta, which like a GPU has tensors of its own. An answer that needs numbers (by NumPy, or one by one)
    stops there, so it runs again with p on the CPU, while new tensors are made on meta. If it also fetches numbers from
    those, nothing speaks against it: code that mixes devices stops for another reason.
    """
    import torch

    fetched = 0
    for place, default in (("meta", "cpu"), ("cpu", "meta")):
        p = torch.nn.Parameter(torch.ones(2, device=place))
        p.grad = torch.ones(2, device=place)
        optimizer = new_optimizer(p)
        try:
            with torch.device(default):
                optimizer.step()
        except Exception as error:
            fetched += "meta tensor" in str(error)
            continue
        kept = [each for each in optimizer.state.get(p, {}).values() if torch.is_tensor(each)]
        return all(each.device == p.device for each in kept)
    return fetched == 2


def with_gradient(
    call: Callable[..., Any], names: Sequence[str], arguments: Sequence[Any], step: float = 1e-5
) -> list[str]:
    """The names of the arguments whose gradient says how the result changes with them.

    In float64, the gradient is compared with differences of the same function's results, so a function with other
    mistakes can still have the right gradient. In the arguments' own dtype, there must be one, without NaN. The result
    must be differentiable where the arguments are. ``call`` gets copies with the same order of strides. ``step``: about
    how far the arguments are moved; 1e-3 suits a function that may compute in float32.
    """
    import torch

    def weighted(y: Any) -> Any:  # unequal weights, so that an element counts for itself
        return (y * (torch.arange(y.numel()) % 7 + 1).reshape(y.shape)).sum()

    def back_to(leaves: list[Any]) -> Any:
        y = call(*(x * 1 for x in leaves))  # no leaves: to write into these is another mistake
        if not torch.is_tensor(y) or not y.requires_grad:
            return None
        torch.autograd.backward(weighted(y))
        return y.detach()

    own = [x.clone().requires_grad_() for x in arguments]
    back_to(own)
    exact = [x.double().clone().requires_grad_() for x in arguments]
    if (y := back_to(exact)) is None:
        return []
    found = []
    for place, name in enumerate(names):
        x = exact[place]
        moved = step * (torch.arange(x.numel()) % 5 - 2.5).reshape(x.shape)
        both = ([z.detach() + sign * moved if z is x else z.detach() for z in exact] for sign in (1, -1))
        up, down = (call(*each) for each in both)
        changed, nearly = weighted(up - down) / 2, step * step * (1 + y.abs().sum())
        right = x.grad is not None and (changed - (x.grad * moved).sum()).abs() < 1e-3 * changed.abs() + nearly
        if right and own[place].grad is not None and not own[place].grad.isnan().any():
            found.append(name)
    return found
