"""observe: what is seen of a call, of its errors and of what it does to its arguments."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from course_utils.testing import Raised, observe
from course_utils.testing.comparing import compare
from course_utils.testing.describing import describe


def test_a_view_is_observed_with_its_value_layout_and_sharing() -> None:
    seen = observe(lambda x: x.T[1:], torch.arange(12.0).reshape(3, 4))
    assert torch.equal(seen.value, torch.arange(12.0).reshape(3, 4).T[1:])
    assert seen.shares == [0] and seen.mutated == [] and seen.error is None
    assert (seen.shape, seen.stride, seen.offset, seen.dtype) == ((3, 3), (1, 4), 1, torch.float32)


def test_a_copy_and_an_empty_tensor_share_nothing() -> None:
    assert observe(lambda x: x.clone(), torch.ones(3)).shares == []
    assert observe(lambda x: x[:0], torch.zeros(0)).shares == [], "storage of no bytes cannot be shared"


def test_arguments_are_copies_with_the_same_layout() -> None:
    base = torch.arange(24.0)
    x = base.as_strided((2, 3), (1, 4), 5)
    seen = observe(lambda x: (x.zero_(), x.stride(), x.storage_offset(), x.untyped_storage().nbytes())[1:], x)
    assert seen.value == ((1, 4), 5, 24 * 4)
    assert seen.mutated == [0]
    assert torch.equal(base, torch.arange(24.0)), "the test's own input is untouched"


def test_arguments_that_share_storage_are_copied_so_that_they_still_do() -> None:
    base = torch.zeros(6)
    seen = observe(lambda a, b: a.add_(1) is None or b.tolist(), base[:4], base[2:])
    assert seen.value == [1, 1, 0, 0] and seen.mutated == [0, 1]


def test_keyword_arguments_are_named() -> None:
    seen = observe(lambda *, x, y: y, x=torch.ones(2), y=torch.ones(2))
    assert seen.shares == ["y"]
    assert "x=" in seen.call


def test_numbers_in_a_call_have_all_the_digits_that_matter() -> None:
    assert observe(lambda x, y: x, 65519.98, torch.tensor([1 / 3])).call.endswith(
        "(65519.98, float32[1] = [0.33333334])"
    )


def test_an_appended_item_a_tiny_change_and_a_resize_are_mutations() -> None:
    def append(items: list[int]) -> None:
        items.append(1)

    assert observe(append, [0]).mutated == [0]
    assert observe(lambda x: x.mul_(1 + 1e-7), torch.full((3,), 1.5)).mutated == [0]
    assert observe(lambda x: x.resize_(2), torch.ones(4)).mutated == [0]


def test_an_exception_is_observed_with_its_line() -> None:
    def fails(x: int) -> float:
        return x / 0

    seen = observe(fails, 1)
    assert seen.error == "ZeroDivisionError" and isinstance(seen.value, Raised)
    assert "division" in seen.message
    assert "ZeroDivisionError" in describe(seen.value) and "return x / 0" in describe(seen.value)


def test_an_empty_stub_has_not_begun() -> None:
    def stub() -> None:
        raise NotImplementedError

    assert observe(stub).value.not_begun


def test_a_class_that_only_has_the_name_of_pythons_error_is_another_error() -> None:
    own = type("ValueError", (BaseException,), {})
    kind = type("Mine", (ValueError,), {})
    for raised, right in ((ValueError, True), (kind, True), (UnicodeDecodeError, True), (own, False)):
        arguments = ("utf-8", b"", 0, 1, "why") if raised is UnicodeDecodeError else ()

        def fails(raised: type[BaseException] = raised, arguments: tuple[Any, ...] = arguments) -> None:
            raise raised(*arguments)

        found = compare(observe(fails).value, Raised("ValueError", ""))
        assert (found is None) is right, raised


def test_a_librarys_own_not_implemented_error_is_not_an_empty_stub() -> None:
    def fails() -> None:
        raise NotImplementedError('"add_stub" not implemented for Float8_e4m3fn')

    assert not observe(fails).value.not_begun and "add_stub" in describe(observe(fails).value)


def test_c_plus_plus_addresses_are_cut_from_an_errors_message() -> None:
    def fails() -> None:
        raise RuntimeError("too large\nException raised from here at there.cpp:1\nframe #0: 0x7f")

    assert observe(fails).message == "too large"


@pytest.mark.parametrize("ending", [SystemExit, GeneratorExit, Exception])
def test_an_exception_of_any_kind_is_observed_and_does_not_end_the_test(ending: type[BaseException]) -> None:
    def leave() -> None:
        raise ending("bye")

    assert observe(leave).error == ending.__name__


@pytest.mark.slow
def test_output_and_warnings_go_to_stdout() -> None:
    program = """
import warnings
from course_utils.testing import observe

def chatty():
    print("hello")
    warnings.warn("careful")

print(len(observe(chatty).printed))
"""
    ran = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True)
    assert "hello" in ran.stdout and "careful" in ran.stdout
    assert ran.stderr == "", "nbgrader takes a cell's points away for anything on stderr"


def test_long_output_is_cut() -> None:
    assert len(observe(lambda: print("x" * 10**6)).printed) <= 20_000


def test_an_argument_that_is_not_plain_data_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="use a probe"):
        observe(lambda m: m, torch.nn.Linear(2, 2))


def test_something_that_cannot_be_called_raises_what_python_raises() -> None:
    seen = observe(3)  # type: ignore[arg-type]
    assert seen.error == "TypeError" and "not callable" in seen.message
