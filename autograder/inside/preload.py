"""Imports the lectures' libraries, so that forks of this process don't have to."""

from __future__ import annotations

import importlib
import pkgutil


def preload() -> None:
    """Import the lectures' libraries. Does nothing else: operations would start threads, which forks don't inherit."""
    import beartype  # noqa: F401
    import einops  # noqa: F401
    import jaxtyping  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numpy  # noqa: F401
    import torch._dynamo  # otherwise imported by the first dispatch mode or optimizer, which takes a second
    import torch.utils.flop_counter  # noqa: F401

    import course_utils

    for module in pkgutil.iter_modules(course_utils.__path__):
        importlib.import_module(f"course_utils.{module.name}")
