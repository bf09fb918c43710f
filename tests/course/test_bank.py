"""The tools that test the tests: a bank that is malformed, a judge that is fooled, mutants that are missed."""

from pathlib import Path

import pytest

from autograder import project
from autograder.authoring import bank, in_process, mutants
from autograder.grading.source import Exercise

TESTS = """\
from course_utils.testing import expect, observe
expect(observe(f, 3).value, 7, mistakes={6: "That forgets the one."})
### BEGIN HIDDEN TESTS
expect(observe(f, 0).value, 1)
### END HIDDEN TESTS"""
EXERCISE = Exercise(
    "f", 1, "import math", "def f(x):\n    ### BEGIN SOLUTION\n    return 2 * x + 1\n    ### END SOLUTION", TESTS, 1
)


def test_the_judge_runs_setup_answer_and_tests_in_this_order() -> None:
    assert in_process.judge_in_process(EXERCISE, EXERCISE.solution).passed
    assert in_process.judge_in_process(EXERCISE, "def f(x):\n    return math.floor(2 * x + 1)").passed
    assert not in_process.judge_in_process(EXERCISE, EXERCISE.stub).passed
    only_visible = "def f(x):\n    return 7"
    assert in_process.judge_in_process(EXERCISE, only_visible, hidden=False).passed
    assert not in_process.judge_in_process(EXERCISE, only_visible).passed


def test_the_judge_names_the_mistake() -> None:
    verdict = in_process.judge_in_process(EXERCISE, "def f(x):\n    return 2 * x")
    assert verdict.mistake == "That forgets the one." and "expected  7" in verdict.message


@pytest.mark.parametrize(
    "code",
    [
        "def f(x:",
        "raise ValueError('no')",
        "",
        "def f(x):\n    while True:\n        pass",
        "import sys; sys.exit(0)",
    ],
)
def test_an_answer_that_breaks_hangs_or_exits_is_rejected_and_ends_nothing_else(code: str) -> None:
    assert not in_process.judge_in_process(EXERCISE, code, seconds=0.5).passed


def write(folder: Path, text: str) -> Path:
    path = folder / "f.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_bank_is_read_as_its_answers_with_kind_title_note_and_line(tmp_path: Path) -> None:
    wrong, right = "# %% wrong: a\n# says: b\ndef f(x): ...\n", "# %% right: c\ndef f(x): ...\n"
    path = write(tmp_path, f"{wrong}\n{right}\n# %% equivalent: d → e\n# why: because\n")
    assert [(a.kind, a.title, a.note, a.line) for a in bank.read_bank(path)] == [
        ("wrong", "a", "b", 1), ("right", "c", "", 5), ("equivalent", "d → e", "because", 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [("# %% good: a\nx\n", "no kind of answer"), ("# %% wrong: a\ndef f(x): ...\n", "begin the cell with `# says: …`"),
     ("# %% right: a\n\n# %% right: b\nx\n", "'a' is empty")],
)  # fmt: skip
def test_a_malformed_bank_is_refused_with_the_line_and_the_problem(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(bank.BankError, match=r"f\.py:1: ") as caught:
        bank.read_bank(write(tmp_path, text))
    assert problem in str(caught.value)


def test_a_missing_bank_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(bank.BankError, match=r"has no answer bank\n  → .*CONTRIBUTING"):
        bank.read_bank(tmp_path / "f.py")


def test_every_kind_of_problem_with_a_bank_is_found() -> None:
    answers = [
        bank.Answer("wrong", "passes", "x", EXERCISE.solution, 1),
        bank.Answer("wrong", "told otherwise", "the moon", "def f(x):\n    return 2 * x", 2),
        bank.Answer("right", "fails", "", "def f(x):\n    return 7", 3),
    ]
    found = "\n".join(bank.problems(EXERCISE, answers, seeds=range(3)))
    assert "'passes' is wrong and passes" in found
    assert "in place of 'the moon'" in found
    assert "'fails' is right and fails" in found
    assert "only 2 wrong answers" in found and "only 1 right answers" in found
    assert "named mistake" not in found, "one of two is half of them"
    assert "only 0 of 1 wrong answers meet a named mistake" in "\n".join(bank.problems(EXERCISE, answers[:1]))


# Each draws, or may draw, in its own way; `two` is what the visible test wants.
RANDOM = {
    "torch": "def two():\n    return torch.randint(2, 3, ()).item()",
    "torch, and the old state put back": """
def two():
    state = torch.get_rng_state()
    drawn = torch.randint(2, 3, ()).item()
    torch.set_rng_state(state)
    return drawn""",
    "torch, aside": "def two():\n    with torch.random.fork_rng():\n        return torch.randint(2, 3, ()).item()",
    "torch, then seeded": """
def two():
    drawn = torch.randint(2, 3, ()).item()
    torch.manual_seed(0)
    return drawn""",
    "torch's own generator": "def two():\n    return 2 + 0 * torch.default_generator.initial_seed()",
    "the seed itself": "def two():\n    return 2 + 0 * torch.initial_seed()",
    "NumPy": "import numpy as np\n\ndef two():\n    return 2 + 0 * np.random.rand()",
    "NumPy, a generator nobody seeded": """
import numpy as np

def two():
    return 2 + 0 * np.random.default_rng().random()""",
    "Python": "import random\n\ndef two():\n    return random.randint(2, 2)",
    "Python, a generator nobody seeded": "import random\n\ndef two():\n    return random.Random().randint(2, 2)",
    "while the cell runs": "drawn = torch.randn(1)\n\ndef two():\n    return 2",
    "the environment": "import os\n\ndef two():\n    return 2 if os.environ else 3",
}
NOT_RANDOM = {
    "nothing random": "def two():\n    return 2",
    "a generator of its own": """
def two():
    own = torch.Generator().manual_seed(5)
    return torch.randint(2, 3, (), generator=own).item()""",
    "seeded first": "def two():\n    torch.manual_seed(0)\n    return torch.randint(2, 3, ()).item()",
    "an error": "def two(:",
}
VISIBLE = "from course_utils.testing import expect, observe\nexpect(observe(two).value, 2)\n"
DRAWS = "### BEGIN HIDDEN TESTS\nfrom course_utils.testing import draws\ndraws().integer(1, 9)\n### END HIDDEN TESTS"


def times_judged(tests: str, code: str, monkeypatch: pytest.MonkeyPatch, hidden: bool = True) -> int:
    """How often an answer is run for five seeds."""
    ran: list[int] = []
    real = in_process.run_tests
    monkeypatch.setattr(in_process, "run_tests", lambda *given: ran.append(1) or real(*given))
    exercise = Exercise("two", 1, "import torch", code, tests, 1)
    verdicts = in_process.judge_for_seeds(exercise, code, range(5), hidden=hidden)
    assert len(verdicts) == 5
    return len(ran)


@pytest.mark.parametrize("code", RANDOM.values(), ids=RANDOM)
def test_an_answer_that_may_use_randomness_is_judged_with_every_seed(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert times_judged(VISIBLE, code, monkeypatch) == 5


@pytest.mark.parametrize("code", NOT_RANDOM.values(), ids=NOT_RANDOM)
def test_an_answer_that_uses_no_randomness_is_judged_once(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert times_judged(VISIBLE, code, monkeypatch) == 1


def test_hidden_tests_that_draw_are_run_with_every_seed_and_only_if_they_are_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, wrong = "def two():\n    return 2", "def two():\n    return 3"
    assert times_judged(VISIBLE + DRAWS, right, monkeypatch) == 5
    assert times_judged(VISIBLE + DRAWS, right, monkeypatch, hidden=False) == 1
    assert times_judged(VISIBLE + DRAWS, wrong, monkeypatch) == 1


def test_a_seed_that_decides_is_found() -> None:
    tests = VISIBLE + DRAWS.replace("draws().integer(1, 9)", "expect(draws().integer(0, 9) == 3, False)")
    exercise = Exercise("two", 1, "import torch", "def two():\n    return 2", tests, 1)
    found = [problem for problem in bank.problems(exercise, [], seeds=range(40)) if "the reference fails" in problem]
    assert found and all("(seed " in problem for problem in found)


def test_in_this_process_only_draws_reads_the_seeds_variable() -> None:
    """`in_process` watches it, and so knows who depends on the seed."""
    modules = [path for path in (project.ROOT / "course_utils").rglob("*.py") if "COURSE_SEED" in path.read_text()]
    assert [path.name for path in modules] == ["drawing.py"]
    assert modules[0].read_text().count("os.environ") == 1


def test_weak_tests_let_mutants_live() -> None:
    strong = mutants.run_mutants(EXERCISE, [])
    assert strong.rejected == 1 and not strong.problems
    weak = Exercise("f", 1, "", EXERCISE.solution, "assert f(0) == 1\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS", 1)
    report = mutants.run_mutants(weak, [])
    assert "2 * x → 2 + x" not in [m.title for m in report.unexplained], "f(0) tells these apart"
    assert "2 → 3" in [m.title for m in report.unexplained]
    assert report.rejected < mutants.REJECTED and "95% wanted" in report.problems[-1]


def test_an_explanation_of_a_mutant_that_is_dead_or_gone_is_a_problem() -> None:
    gone = bank.Answer("equivalent", "9 → 8", "no such mutant", "", 5)
    assert mutants.run_mutants(EXERCISE, [gone]).problems == ["line 5: this mutant is dead or gone: 9 → 8"]


def test_every_kind_of_mutant_is_made_and_docstrings_are_left_alone() -> None:
    code = """def f(x, n=2):
    \"\"\"Kept as it is.\"\"\"
    ### BEGIN SOLUTION
    y: int = x.sum(dim=-1, keepdim=True)
    if n > 1 and not x.numel() == 0:
        y = torch.where(x, y, n)
    z = [i for i in range(n) if i % 2]
    y += einsum(x, "b d k -> b d")
    return y[1:].to(torch.float32) if z else -y
    ### END SOLUTION"""
    titles = {m.title for m in mutants.mutants(Exercise("f", 1, "", code, "", 1))}
    wanted = {
        "x.sum(dim=-1, keepdim=True) → x.sum(dim=-1)", "-1 → 1", "1 → 2", "n > 1 → n >= 1", "x.sum → x.mean",
        "n > 1 and (not x.numel() == 0) → n > 1 or not x.numel() == 0", "torch.where(x, y, n) → torch.where(y, x, n)",
        "torch.float32 → torch.float64", "1: → :", "-y → y", "True → False", "y = torch.where(x, y, n) → (dropped)",
        "'b d k -> b d' → 'b d k -> d b'", "x.numel() == 0 → x.numel() != 0",
    }  # fmt: skip
    assert wanted <= titles, wanted - titles
    assert not any("Kept" in title for title in titles)
