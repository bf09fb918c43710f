"""Try what a student wrote, and say of each requirement of the statement whether it is met.

The cell below an exercise has one line, ``check("tensor_bytes")``. The exercise's check (``course_utils/checks``) holds
its requirements, and for each of them cases with what is expected. A case is a call: of the student's function, or of
a *probe*, which runs beside the student's code and does what takes several steps. ``observe`` makes the call with
copies of the arguments (same shapes, strides, offsets and shared storages) and returns plain values, along with what
happened during the call; nothing else ever looks at a student's objects.

The modules, each of which imports only from those before it: ``plain`` (what an observation may hold), ``describing``
(values in words), ``comparing``, ``observing``, ``probes``, ``requirements`` (a check and its file), ``rubric`` (what
the student is shown), ``checking``. ``wire`` stands beside them: plain data as bytes.
"""

from course_utils.testing.checking import check
from course_utils.testing.observing import Observation, observe, witness
from course_utils.testing.plain import Opaque, Raised, freeze, tensors

__all__ = ["Observation", "Opaque", "Raised", "check", "freeze", "observe", "tensors", "witness"]
