"""observe and expect: what is seen, what is judged, and what a student is told."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from course_utils.testing import Mismatch, Opaque, Raised, draws, expect, observe, probe


def told(got: object, want: object, **more: object) -> str:
    with pytest.raises(Mismatch) as caught:
        expect(got, want, **more)
    return str(caught.value)


# --- observing


def test_value_sharing_and_facts_of_a_view() -> None:
    seen = observe(lambda x: x.T[1:], torch.arange(12.0).reshape(3, 4))
    assert torch.equal(seen.value, torch.arange(12.0).reshape(3, 4).T[1:])
    assert seen.shares == [0] and seen.mutated == [] and seen.error is None
    assert (seen.shape, seen.stride, seen.offset, seen.dtype) == ((3, 3), (1, 4), 1, torch.float32)


def test_a_copy_shares_nothing() -> None:
    assert observe(lambda x: x.clone(), torch.ones(3)).shares == []
    assert observe(lambda x: x[:0], torch.zeros(0)).shares == [], "storage of no bytes cannot be shared"


def test_arguments_are_copies_with_the_same_layout() -> None:
    base = torch.arange(24.0)
    x = base.as_strided((2, 3), (1, 4), 5)
    seen = observe(lambda x: (x.zero_(), x.stride(), x.storage_offset(), x.untyped_storage().nbytes())[1:], x)
    assert seen.value == ((1, 4), 5, 24 * 4)
    assert seen.mutated == [0]
    assert torch.equal(base, torch.arange(24.0)), "the test's own input is untouched"


def test_arguments_that_shared_storage_still_do() -> None:
    base = torch.zeros(6)
    seen = observe(lambda a, b: a.add_(1) is None or b.tolist(), base[:4], base[2:])
    assert seen.value == [1, 1, 0, 0] and seen.mutated == [0, 1]


def test_keyword_arguments_are_named() -> None:
    seen = observe(lambda *, x, y: y, x=torch.ones(2), y=torch.ones(2))
    assert seen.shares == ["y"]
    assert "x=" in seen.call


def test_mutation_is_seen_in_lists_and_by_the_smallest_change() -> None:
    def append(items: list[int]) -> None:
        items.append(1)

    assert observe(append, [0]).mutated == [0]
    assert observe(lambda x: x.mul_(1 + 1e-7), torch.full((3,), 1.5)).mutated == [0]
    assert observe(lambda x: x.resize_(2), torch.ones(4)).mutated == [0]


def test_exceptions_are_observed() -> None:
    def fails(x: int) -> float:
        return x / 0

    seen = observe(fails, 1)
    assert seen.error == "ZeroDivisionError" and isinstance(seen.value, Raised)
    assert "division" in seen.message
    message = told(seen.value, 3, mistakes={4: "never"}, hint="divide by one")
    assert "ZeroDivisionError" in message and "return x / 0" in message and "never" not in message
    assert message.endswith("divide by one")


def test_an_exercise_not_begun_is_told_so() -> None:
    def stub() -> None:
        raise NotImplementedError

    message = told(observe(stub).value, 1, hint="too early")
    assert "write your code" in message and "too early" not in message


def test_what_a_library_has_not_implemented_is_no_empty_exercise() -> None:
    def fails() -> None:
        raise NotImplementedError('"add_stub" not implemented for Float8_e4m3fn')

    assert "add_stub" in told(observe(fails).value, 1)


def test_addresses_in_libraries_are_not_shown() -> None:
    def fails() -> None:
        raise RuntimeError("too large\nException raised from here at there.cpp:1\nframe #0: 0x7f")

    assert observe(fails).message == "too large"


def test_a_number_is_no_truth_value() -> None:
    assert "Wanted is True or False" in told(1, True)


@pytest.mark.parametrize("ending", [SystemExit, GeneratorExit, Exception])
def test_nothing_the_student_raises_ends_the_test(ending: type[BaseException]) -> None:
    def leave() -> None:
        raise ending("bye")

    assert observe(leave).error == ending.__name__


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


def test_endless_output_is_cut() -> None:
    assert len(observe(lambda: print("x" * 10**6)).printed) <= 20_000


def test_only_plain_data_goes_in() -> None:
    with pytest.raises(TypeError, match="use a probe"):
        observe(lambda m: m, torch.nn.Linear(2, 2))


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("value", [AlwaysEqual(), [AlwaysEqual()], {"a": AlwaysEqual()}])
def test_objects_with_opinions_decide_nothing(value: object) -> None:
    seen = observe(lambda: value)
    for want in (128, "x", None, [128], {"a": 1}, torch.ones(1)):
        assert "AlwaysEqual" in told(seen.value, want)


def test_number_like_things_become_numbers() -> None:
    assert type(observe(lambda: np.float32(1.5)).value) is float
    assert type(observe(lambda: np.int64(3)).value) is int
    expect(observe(lambda: torch.tensor(128)).value, 128)


def test_a_tensor_subclass_is_seen_by_value() -> None:
    seen = observe(lambda: torch.nn.Parameter(torch.ones(2)))
    assert type(seen.value) is torch.Tensor and seen.requires_grad is True


def test_meta_tensors_have_shapes_only() -> None:
    seen = observe(lambda x: x.T, torch.empty(3, 5, device="meta"))
    assert seen.shape == (5, 3) and seen.device == "meta"


def test_a_function_returned_uncalled() -> None:
    assert "not called" in told(observe(lambda x: x.numel, torch.ones(3)).value, 3)


def test_observing_no_function() -> None:
    with pytest.raises(Mismatch, match="expected a function"):
        observe(3)  # type: ignore[arg-type]


# --- probes


def test_a_probe_sees_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    @probe
    def twice(student, x):  # type: ignore[no-untyped-def]
        import torch

        return torch.stack([student.answer(x), student.answer(x)])

    monkeypatch.setitem(globals(), "answer", lambda x: x + 1)
    assert torch.equal(observe(twice, torch.zeros(2)).value, torch.ones(2, 2))
    monkeypatch.delitem(globals(), "answer")
    assert "`answer` is not defined" in observe(twice, torch.zeros(2)).message


def test_a_probe_stands_alone() -> None:
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


# --- judging


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (128, 128), (128.0, 128), (1e9 + 0.1, 1e9), (float("nan"), float("nan")), ((4, 1), [4, 1]), ([4, 1], (4, 1)),
        (True, True), (None, None), ("a", "a"), ({"a": [1]}, {"a": (1,)}), (torch.float16, torch.float16),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])), (1 + 2j, 1 + 2j),
        (torch.tensor(True), True), (torch.zeros(0, 3), torch.zeros(0, 3)),
        (torch.ones(2, dtype=torch.float8_e4m3fn), torch.ones(2, dtype=torch.float8_e4m3fn)),
    ],
)  # fmt: skip
def test_what_agrees(got: object, want: object) -> None:
    expect(got, want)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (127, 128), (1, True), (True, 1), (0, None), (None, 0), ("128", 128), (1.001, 1.0), ((4,), (4, 1)), (4, (4,)),
        ({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"a": 1}), (float("nan"), 1.0), (1.0, float("nan")), (math.inf, 1e308),
        (torch.ones(3), torch.ones(3, 1)), (torch.ones(3), torch.ones(3).double()), (torch.ones(3), [1.0, 1.0, 1.0]),
        ([1.0], torch.ones(1)), (torch.tensor([1, 2]), torch.tensor([1, 3])), (Opaque("x"), Opaque("x")),
        (torch.tensor([1.0, 1.01]), torch.ones(2)), (128.5, 128), (b"a", "a"), (torch.float16, torch.bfloat16),
    ],
)  # fmt: skip
def test_what_differs(got: object, want: object) -> None:
    told(got, want)


def test_a_message_says_where_got_expected_and_mistake() -> None:
    def area(x: torch.Tensor) -> int:
        return x.numel()

    seen = observe(area, torch.zeros(4, 8))
    with pytest.raises(Mismatch) as caught:
        expect(seen.value, 128, mistakes={32: "That counts elements."}, hint="not this")
    assert str(caught.value).splitlines() == [
        "✗ area(float32[4, 8])", "    got       32", "    expected  128", "  That counts elements.",
    ]  # fmt: skip
    assert caught.value.mistake == "That counts elements."
    assert caught.value._render_traceback_() == str(caught.value).splitlines()


def test_tensors_differ_at_a_place() -> None:
    got, want = torch.zeros(2, 3), torch.zeros(2, 3)
    want[1, 2] = 5
    assert "at [1, 2]: got 0.0, expected 5.0 (1 of 6 elements differ)" in told(got, want)
    assert "shape: got [2, 3], expected [3, 2]" in told(got, torch.zeros(3, 2))
    assert "dtype: got float32, expected float64" in told(got, got.double())


def test_mistakes_may_be_tensors_and_the_first_match_counts() -> None:
    mistakes = [(torch.ones(2), "ones"), (torch.ones(2), "later")]
    with pytest.raises(Mismatch) as caught:
        expect(torch.ones(2), torch.zeros(2), mistakes=mistakes)
    assert caught.value.mistake == "ones"


def test_a_hint_is_said_when_no_mistake_matches() -> None:
    assert told(1, 2, mistakes={3: "no"}, hint="think of two").endswith("think of two")


def test_tolerance_is_relative() -> None:
    expect(1.01, 1.0, tolerance=0.02)
    told(1.03, 1.0, tolerance=0.02)
    expect(torch.tensor([100.0, 1.0]), torch.tensor([100.0, 0.0]), tolerance=0.02)
    expect(101, 100, tolerance=0.02)


def test_long_values_are_cut_in_messages() -> None:
    assert len(told(list(range(10**5)), [1])) < 300
    assert len(told("x" * 10**6, "y")) < 500


# --- drawing


def test_draws_repeat_and_leave_generators_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, second = draws(7), draws(7)
    assert first.sizes(3) == second.sizes(3)
    assert torch.equal(first.tensor(3, 4), second.tensor(3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    monkeypatch.setenv("COURSE_SEED", "8")
    assert draws().integer(0, 10**9) == draws(8).integer(0, 10**9) != draws(7).integer(0, 10**9)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_layouts_have_the_shape_asked_for(seed: int) -> None:
    draw = draws(seed)
    shape = draw.sizes(3)
    assert len(set(shape)) == 3
    x = draw.tensor(*shape, contiguous=False)
    assert x.shape == shape and not x.is_contiguous()
    assert x.untyped_storage().nbytes() > x.numel() * 4


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.complex64])
def test_drawn_dtypes(dtype: torch.dtype) -> None:
    assert draws(0).tensor(3, dtype=dtype).dtype == dtype
