"""`check` in a notebook: one line that defines nothing and answers with the rubric."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from course_utils.markup import as_html
from course_utils.testing import check, wire
from course_utils.testing.comparing import Comparison
from course_utils.testing.observing import Observation
from course_utils.testing.requirements import Case, Check, Requirement, load, summarized
from course_utils.testing.rubric import Met, score

NAME = "matmul_flops"
RIGHT = """
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    batch = torch.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return 2 * math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]
"""
STUB = "def matmul_flops(x_shape, w_shape):\n    raise NotImplementedError()"


def notebook(text: str, **names: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": "__main__", "check": check, **names}
    exec("import math\nimport torch\n" + text, made)
    return made


def run(names: dict[str, Any], line: str = f"check({NAME!r})") -> Any:
    return eval(line, names)


def test_a_right_answer_meets_every_requirement() -> None:
    rubric = run(notebook(RIGHT))
    assert rubric.points == rubric.worth == load(NAME).points and rubric.failure is None
    assert all(line.met is Met.YES for line in rubric.lines)


def test_an_empty_stub_and_a_name_that_is_not_there_are_not_tried_yet() -> None:
    for names in (notebook(STUB), notebook("")):
        rubric = run(names)
        assert rubric.points == 0 and {line.met for line in rubric.lines} == {Met.NOT_TRIED}
        assert "✗" not in str(rubric) and "run" in rubric.failure.advice


def test_a_known_mistake_is_shown_with_a_call_both_values_and_its_sentence() -> None:
    rubric = run(notebook(RIGHT.replace("return 2 * math", "return math")))
    assert 0 < rubric.points < rubric.worth and rubric.mistake in load(NAME).mistakes
    text = str(rubric)
    assert "matmul_flops((3, 4), (4, 5))" in text and "got       60" in text and "expected  120" in text
    assert rubric.mistake in text


def test_what_stands_between_backticks_is_code_on_a_page_and_everything_is_escaped() -> None:
    assert as_html("unless `a < b` is None") == "unless <code>a &lt; b</code> is None"
    assert as_html("`<b>` and a ` alone") == "<code>&lt;b&gt;</code> and a ` alone"
    assert as_html("``") == "``" and as_html("<code>x</code>") == "&lt;code&gt;x&lt;/code&gt;"


def test_an_error_that_nobody_asked_for_is_shown_with_the_students_line() -> None:
    rubric = run(notebook("def matmul_flops(x_shape, w_shape):\n    return x_shape @ w_shape"))
    assert rubric.mistake is None and "TypeError: unsupported operand" in rubric.failure.got


def test_the_output_is_a_rubric_and_as_plain_text_a_number_for_nbgrader() -> None:
    shown = run(notebook(RIGHT.replace("return 2 * math", "return math")))._repr_mimebundle_()
    assert float(shown["text/plain"]) == 0.5 and shown["text/plain"] == "0.5"
    assert "✗" in shown["text/html"] and "<script" not in shown["text/html"]


def test_what_a_student_returns_is_text_on_the_page() -> None:
    shown = run(notebook("def matmul_flops(x_shape, w_shape):\n    return '<img src=x onerror=alert(1)>'"))
    assert "<img" not in shown._repr_mimebundle_()["text/html"]


def test_nothing_is_defined_and_no_generator_is_moved() -> None:
    names = notebook(RIGHT + "\nrandom_before = torch.get_rng_state()")
    before, states = set(names), (np.random.get_state()[1].tobytes(), random.getstate())  # type: ignore[index, union-attr]
    run(names)
    assert set(names) - before <= {"__builtins__"}
    assert torch.equal(torch.get_rng_state(), names["random_before"])
    assert (np.random.get_state()[1].tobytes(), random.getstate()) == states  # type: ignore[index, union-attr]


def test_an_answer_that_changes_torchs_settings_changes_them_for_neither_the_next_case_nor_the_notebook() -> None:
    names = notebook(
        """
seen = []

def matmul_flops(x_shape, w_shape):
    seen.append((torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()))
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(threads + 1)
    raise NotImplementedError
""",
        threads=(threads := torch.get_num_threads()),
    )
    run(names)
    now = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    assert now == (True, torch.float32, threads) and len(names["seen"]) > 1 and set(names["seen"]) == {now}


def test_a_cell_that_cannot_be_read_is_named_and_not_the_version_before_it() -> None:
    broken = "def matmul_flops(x_shape, w_shape:\n    return 1"
    rubric = run(notebook(RIGHT, In=["", RIGHT, broken, "check('matmul_flops')"]))
    assert rubric.points == 0 and "cannot read" in rubric.failure.advice and "line 1" in rubric.failure.advice
    assert run(notebook(RIGHT, In=["", broken, RIGHT])).points == 2
    assert run(notebook(RIGHT, In=["", "import asyncio\n\nawait asyncio.sleep(0)\n" + RIGHT])).points == 2


def test_a_name_that_is_no_exercise_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"no exercise 'matmul_flop' .* update"):
        run(notebook(RIGHT), "check('matmul_flop')")


def test_hidden_cases_are_those_of_the_class_above_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only_matrices = RIGHT.replace("math.prod(batch)", "(1 if batch == (5, 5) else math.prod(batch))")
    (below := tmp_path / "autograded" / "ada" / "05").mkdir(parents=True)
    monkeypatch.chdir(below)
    line = f"check({NAME!r}, hidden=True)"
    assert run(notebook(only_matrices), line).points == 2
    assert "class's hidden cases are not on this machine" in capsys.readouterr().out
    visible = load(NAME)
    case = Case(((5, 5, 2, 3), (3, 4)), {}, {"value": 25 * 48, "mutated": []})
    empty = [Requirement(r.text, r.points, r.target, r.probe, r.comparison, r.hint, ()) for r in visible.requirements]
    batches = empty[1]
    empty[1] = Requirement(
        batches.text, batches.points, batches.target, "", batches.comparison, batches.hint, (case,)
    )  # fmt: skip
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / f"{NAME}.check").write_bytes(Check(NAME, tuple(empty), ()).pack())
    rubric = run(notebook(only_matrices), line)
    assert rubric.points == 1 and rubric.lines[1].met is Met.HIDDEN
    assert "25" not in str(rubric) and "(5, 5" not in str(rubric), "nothing of a hidden case is shown"
    assert run(notebook(RIGHT), line).points == 2


def made(values: list[Any], mistakes: list[dict[int, int]], sentences: tuple[str, ...], together: int = 0) -> Check:
    def outcome(value: int) -> dict[str, Any]:
        return {"value": value, "mutated": []}

    cases = tuple(
        Case((n,), {}, outcome(value), "", {m: outcome(v) for m, v in wrong.items()})
        for n, (value, wrong) in enumerate(zip(values, mistakes, strict=True))
    )
    return Check("f", (Requirement("all", 1.0, "f", "", Comparison(), "hint", cases),), sentences, "", together)


def told(check: Check, values: list[int]) -> str | None:
    return score(check, {0: [({"value": v, "mutated": []}, "f()") for v in values]}).mistake


def test_a_mistake_is_named_over_all_cases_and_not_from_the_first() -> None:
    both = made([1, 2, 3], [{0: 9, 1: 9}, {0: 8}, {1: 7}], ("first", "second"))
    assert told(both, [9, 8, 3]) == "first" and told(both, [9, 2, 7]) == "second"
    assert told(both, [1, 2, 3]) is None and told(both, [5, 6, 4]) is None
    # Two at once: the one that explains most of what fails, unless a case passes in which it would fail.
    assert told(made([1, 2, 3], [{0: 9}, {0: 8}, {1: 7}], ("first", "second")), [9, 8, 7]) == "first"
    assert told(made([1, 2, 3], [{0: 9}, {0: 8}, {}], ("first",)), [9, 2, 5]) is None


def test_two_mistakes_together_are_recognized_only_if_they_explain_every_case() -> None:
    three = [{0: 9, 2: 9}, {1: 8, 2: 7}, {2: 5}], ("first", "second", "first")
    assert told(made([1, 2, 3], *three, together=1), [9, 7, 5]) == "first"
    assert told(made([1, 2, 3], *three, together=1), [6, 7, 5]) is None, "it explains two of three"
    assert told(made([1, 2, 3], *three), [6, 7, 5]) == "first", "as a single mistake would"
    # Two pairs that do the same: nobody knows which it is. A single mistake that does it comes first.
    twins = [{0: 9, 1: 9}, {0: 7, 1: 7}], ("first", "second")
    assert told(made([1, 2], *twins, together=2), [9, 7]) is None
    assert told(made([1, 2], *twins, together=1), [9, 7]) == "first"


LONG = [*range(20)]
WAVES = torch.arange(9) * (1 + 1j)


@pytest.mark.parametrize(
    ("got", "want", "shown"),
    [
        (1 + 2**-40, 1, "1.0000000000009095"),
        (1.0000000001, 1, "1.0000000001"),
        (True, 1, "True"),
        ("1", 1, "'1'"),
        (LONG[:19], LONG, "19 items"),
        ([LONG[:19]], [LONG], "19 items"),
        ({n: n for n in LONG[:19]}, {n: n for n in LONG}, "without 19"),
        ({n: n for n in LONG}, {n: n for n in LONG[:19]}, "with 19"),
        ({n: n for n in LONG} | {19: 0}, {n: n for n in LONG}, "0"),
        ({*LONG, -1}, {*LONG}, "with -1"),
        ("a" * 300, "a" * 299 + "b", "300 characters; from character 300: 'a'"),
        ("a" * 299, "a" * 300, "299 characters; from character 300: ''"),
        (b"a" * 300, b"a" * 299 + b"b", "300 characters; from character 300: b'a'"),
        (["a" * 300, 1], ["a" * 299 + "b", 1], "item 1: 300 characters; from character 300: 'a'"),
        ([{1: LONG[:9]}], [{1: LONG[:10]}], "9 items"),
        (WAVES.conj().resolve_conj(), WAVES, "(1-1j)"),
        (WAVES[:3].conj().resolve_conj(), WAVES[:3], "[-0j, (1-1j), (2-2j)]"),
    ],
)
def test_values_that_differ_never_look_alike(got: Any, want: Any, shown: str) -> None:
    failure = score(made([want], [{}], ()), {0: [({"value": got, "mutated": []}, "f()")]}).failure
    assert failure is not None and failure.got != failure.expected
    assert shown in failure.got and shown not in failure.expected


def test_a_check_survives_packing_and_damage_is_an_error() -> None:
    check = load(NAME)
    assert Check.unpack(check.pack()).pack() == check.pack()
    both = made([1], [{0: 2, 1: 3}], ("first", "second"), together=1)
    assert Check.unpack(both.pack()) == both
    for damaged in (b"", b"{}", check.pack()[:-5], check.pack()[:40], b"{}\n" + check.pack(), b"[]\nx"):
        with pytest.raises(wire.WireError):
            Check.unpack(damaged)


@pytest.mark.parametrize(
    "within",
    [lambda x: x, lambda x: {x}, lambda x: {x: 1}, lambda x: [({"a": x},)]],
    ids=["bare", "set", "key", "nested"],
)
def test_an_expanded_view_of_a_single_byte_is_not_summarized(within: Callable[[torch.Tensor], Any]) -> None:
    """In float64, the numbers that it shows would take two gigabytes, in each step of a summary."""
    seen = Observation("f()", within(torch.zeros(1, dtype=torch.uint8).expand(2**28)))
    told = summarized(seen, "def summary(value):\n    return value.double().sum()", "summary", Case((), {}, {}))
    assert told.error == "ValueError" and told.message == "268,435,456 numbers are too many"
