"""Observe what a function does, then judge plain data.

A test cell never looks at a student's objects. It asks for an observation and compares the answer::

    from course_utils.testing import expect, observe

    seen = observe(tensor_bytes, torch.zeros(4, 8))
    expect(seen.value, 128, mistakes={32: "That counts elements; each of them takes several bytes."})

``observe`` calls the function with copies of the arguments (same shapes, strides, offsets and shared storages) and
returns plain values, along with what happened during the call. ``expect`` raises :class:`Mismatch`. Its message says
where the difference is, what came out, what was expected and, if the value matches a known mistake, which one.

A test of several steps runs a :func:`probe` beside the student's code. Expected values stay out of probes.

The modules, each of which imports only from those before it: ``plain`` (what an observation may hold), ``describing``
(values in words), ``judging``, ``observing``; ``probes`` and ``drawing`` (random inputs) stand alone.
"""

from course_utils.testing.drawing import SEED_VARIABLE, Draw, draws
from course_utils.testing.judging import Mismatch, difference, expect
from course_utils.testing.observing import Observation, observe, observing_elsewhere, witness
from course_utils.testing.plain import Opaque, Raised, freeze, tensors
from course_utils.testing.probes import probe

__all__ = [
    "SEED_VARIABLE",
    "Draw",
    "Mismatch",
    "Observation",
    "Opaque",
    "Raised",
    "difference",
    "draws",
    "expect",
    "freeze",
    "observe",
    "observing_elsewhere",
    "probe",
    "tensors",
    "witness",
]
