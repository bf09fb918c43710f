"""Test what a student wrote, and report which requirements of the exercise's statement it meets.

The cell below an exercise has one line, ``check("tensor_bytes")``. The exercise's check (``course_utils/checks``) has
its requirements, each with cases and their expected results. A case calls the student's function, or a *probe*: a test
function that runs beside the student's code, for tests that take several steps. ``observe`` makes the call with copies
of the arguments (same shapes, strides, offsets and shared storages) and returns the result as plain data, along with
what the call did. Nothing else ever touches a student's objects.

Each module imports only from those listed before it: ``plain`` (what an observation may hold),
``describing`` (values in words), ``comparing``, ``observing``, ``probes``, ``requirements`` (a check and its file),
``rubric`` (what the student sees), ``checking``. ``wire``, apart from these, encodes plain data as bytes.
"""

from course_utils.testing.checking import check
from course_utils.testing.observing import Observation, observe, witness
from course_utils.testing.plain import Opaque, Raised, freeze, tensors

__all__ = ["Observation", "Opaque", "Raised", "check", "freeze", "observe", "tensors", "witness"]
