"""Test what a student wrote, and report for each requirement of the statement whether it's met.

The cell below an exercise has one line, ``check("tensor_bytes")``. The exercise's check (``course_utils/checks``) has
its requirements, each with cases and their expected results. A case is a call: of the student's function, or of a
*probe*, which runs beside the student's code and handles tests of several steps. ``observe`` makes the call with copies
of the arguments (same shapes, strides, offsets and shared storages) and returns plain values, along with what happened
during the call. Nothing else ever touches a student's objects.

The modules, each of which imports only from the ones before it: ``plain`` (what an observation may hold),
``describing`` (values in words), ``comparing``, ``observing``, ``probes``, ``requirements`` (a check and its file),
``rubric`` (what the student sees), ``checking``. ``wire``, apart from these, encodes plain data as bytes.
"""

from course_utils.testing.checking import check
from course_utils.testing.observing import Observation, observe, witness
from course_utils.testing.plain import Opaque, Raised, freeze, tensors

__all__ = ["Observation", "Opaque", "Raised", "check", "freeze", "observe", "tensors", "witness"]
