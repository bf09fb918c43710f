"""Probes: what they see of a notebook."""

from typing import Any

import torch

from course_utils.testing import observe
from course_utils.testing.probes import from_source

TWICE = """
def twice(student, x):
    import torch

    return torch.stack([student.answer(x), student.answer(x)])
"""


def test_a_probe_sees_the_names_of_the_notebook() -> None:
    names: dict[str, Any] = {"answer": lambda x: x + 1}
    twice = from_source(TWICE, "twice", names)
    assert torch.equal(observe(twice, torch.zeros(2)).value, torch.ones(2, 2))
    del names["answer"]
    seen = observe(twice, torch.zeros(2))
    assert "`answer` is not defined" in seen.message
    assert seen.value.line == "", "a line of the probe is none of the student's"
    assert list(names) == [], "nothing is defined among the notebook's names"


def test_a_probe_may_nest_functions_classes_and_comprehensions() -> None:
    source = """
def helper(k):
    return 2 * k

def nested(student, n):
    class Inner:
        size = 3

        def area(self):
            return self.size * n

    def inner(k):
        return helper(k) * Inner().area()

    return [inner(i) for i in range(n)]
"""
    assert observe(from_source(source, "nested", {}), 2).value == [0, 12]
