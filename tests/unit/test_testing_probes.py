"""probe: what it sees, and what it may use."""

import pytest
import torch

from course_utils.testing import observe, probe


def test_a_probe_sees_the_names_of_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    @probe
    def twice(student, x):  # type: ignore[no-untyped-def]
        import torch

        return torch.stack([student.answer(x), student.answer(x)])

    monkeypatch.setitem(globals(), "answer", lambda x: x + 1)
    assert torch.equal(observe(twice, torch.zeros(2)).value, torch.ones(2, 2))
    monkeypatch.delitem(globals(), "answer")
    seen = observe(twice, torch.zeros(2))
    assert "`answer` is not defined" in seen.message
    assert seen.value.line.startswith("return torch.stack("), "a line of the probe, not of the package that runs it"


def test_a_probe_that_uses_outside_names_or_lacks_its_parameter_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="uses torch from outside"):

        @probe
        def leans_on_the_test(student):  # type: ignore[no-untyped-def]
            return torch.ones(1)

    with pytest.raises(TypeError, match="no first parameter"):

        @probe
        def has_no_student() -> None: ...


def test_a_probe_may_nest_functions_classes_and_comprehensions() -> None:
    @probe
    def nested(student, n):  # type: ignore[no-untyped-def]
        import math

        class Inner:
            size = 3

            def area(self) -> float:
                return math.pi * n

        def inner(k: int) -> float:
            return k * n * Inner().area()

        return [inner(i) for i in range(n)]

    assert len(observe(nested, 2).value) == 2
