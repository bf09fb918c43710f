"""Imports what the lectures use, so that a fork of this process need not."""

from __future__ import annotations

import importlib
import pkgutil


def preload() -> None:
    """Import what the lectures use. Only imports: an operation would start threads, and a fork has none of them."""
    import beartype  # noqa: F401
    import einops  # noqa: F401
    import jaxtyping  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numpy  # noqa: F401
    import torch._dynamo  # the first dispatch mode and the first optimizer import it, which takes a second
    import torch.utils.flop_counter  # noqa: F401

    import course_utils

    for module in pkgutil.iter_modules(course_utils.__path__):
        importlib.import_module(f"course_utils.{module.name}")
