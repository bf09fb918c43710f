"""Imports what the lectures use, so that forks of this process needn't."""

from __future__ import annotations

import importlib
import pkgutil


def preload() -> None:
    """Import what the lectures use. Does nothing else: an operation would start threads, which a fork wouldn't have."""
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
