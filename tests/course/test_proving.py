"""The tool that tests the checks: whatever is weak in an exercise's file is found and said."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from autograder import project
from autograder.authoring import checks, exercise, in_process, mutants, proving
from autograder.grading import source
from autograder.grading.exercises import Exercise

# What CONTRIBUTING.md offers to copy: a lecture with an exercise, and the exercise's file.
BLOCKS = re.findall(r"```python\n(.*?)```", (project.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
LECTURE_TEXT, SOUND = BLOCKS
LECTURE = source.parse(Path("20_ranges.py"), LECTURE_TEXT, built=False)
(CELLS,) = LECTURE.exercises


def read(folder: Path, text: str, cells: Exercise = CELLS) -> exercise.Spec:
    path = folder / "clamp.py"
    path.write_text(text, encoding="utf-8")
    return exercise.read(path, cells)


def problems(folder: Path, text: str) -> list[str]:
    return proving.prove(read(folder, text), draws=300, seeds=range(5)).problems


def test_a_sound_exercise_has_no_problem(tmp_path: Path) -> None:
    report = proving.prove(read(tmp_path, SOUND), draws=80, seeds=range(20))
    assert report.problems == [] and report.mutants >= 10 and report.equivalent == 2


def without_cell(kind: str, title: str) -> Callable[[str], str]:
    return lambda text: re.sub(rf"# %% {kind}: {re.escape(title)}.*?(?=# %% |\Z)", "", text, flags=re.DOTALL)


def replaced(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert text.count(old) == 1, text.count(old)
        return text.replace(old, new)

    return edit


FEW = "visible=[given(3, 0, 2), given(-1, 0, 2), given(1, 0, 2)]"
# Wrong only if both ends are equal, and no visible case has that.
NO_ENDS = """def clamp(x, low, high):
    if low >= high:
        raise ValueError
    return min(max(x, low), high)
"""
WEAK = {
    "no case below the range": (
        lambda text: text.replace(FEW, "visible=[given(3, 0, 2), given(1, 0, 2)]"),
        r"mistake 'min\(max\(x, low\), high\) → min\(x, high\)' fails no visible case",
    ),
    "no case that shows a wrong program": (
        lambda text: text + "\n# %% wrong: nothing is nearest\n" + NO_ENDS,
        r"wrong 'nothing is nearest' fails no visible case\n  → add one, or say why not: `# unseen: …`",
    ),
    "a domain that draws nothing outside, and no other case": (
        lambda text: text.replace(FEW, "visible=[given(1, 0, 2)]").replace(
            "lambda x, ends: given(x, *ends)", "lambda x, ends: given(ends[0], *ends)"
        ),
        r"max\(x, low\)' .*|agrees with the reference on every input",
    ),
    "an edge that nobody thought of": (
        lambda text: (
            text.replace('"equal ends are in order": given(3, 2, 2)', '"other": given(3, 0, 9)')
            .replace('"nothing between": given(5, 2, 2)', '"other": given(5, 2, 3)')
            .replace("st.tuples(numbers, numbers).map(sorted)", "st.just((0, 2))")
            .replace(
                "domain=st.builds(given, numbers, numbers, numbers)",
                "domain=st.builds(lambda x, high: given(x, 307, high), numbers, st.integers(270, 340))",
            )
        ),
        r"mistake 'low > high → low >= high' passes with \d of 5 seeds, so the check has a hole\n"
        r"  → add an edge to .*given\(0, 307, 307\)",  # the smallest
    ),
    "no contrast: everything raises": (
        lambda text: (
            text.replace("visible=[given(3, 2, 0), given(3, 0, 2)]", "visible=[given(3, 2, 0)]")
            .replace('"equal ends are in order": given(3, 2, 2)', '"more": given(3, 4, 0)')
            .replace(
                "domain=st.builds(given, numbers, numbers, numbers)",
                "domain=st.builds(given, numbers, st.just(5), st.just(1))",
            )
        ),
        r"a degenerate answer \(ValueError everywhere\) meets 'ends in|an answer that always raises meets",
    ),
    "a right answer that is wrong": (
        replaced(
            "return low if x < low else high if x > high else x", "return low if x < low else high if x > 8 else x"
        ),
        r"right 'by cases' is right but fails 'a number outside .* got \d, expected \d",
    ),
    "a wrong answer that is right": (
        replaced(
            "        raise ValueError\n    return low\n",
            "        raise ValueError\n    return min(max(low, x), high)\n",
        ),
        "wrong 'always the lower end .*' agrees with the reference on every input",
    ),
    "a mistake told another's sentence": (
        replaced(
            'exercise.mistake("Your result ignores the upper end',
            'exercise.mistake("Something else.", "max(x, low), high → x, high")\n'
            'exercise.mistake("Your result ignores the upper end',
        ),
        r"gets the sentence 'Your result ignores the lower end.' instead of 'Something else.'",
    ),
    "two mistakes together told a third's sentence": (
        replaced(
            'exercise.mistake("Your result ignores the upper end',
            'exercise.mistake("A third.", "if low > high → if 0 > 1", "min(max(x, low), high) → min(high, x)")\n'
            'exercise.mistake("Your result ignores the upper end',
        ),
        r"'min\(max\(x, low\), high\) → min\(x, high\)' and 'if low > high → if False' together get the sentence "
        r"'A third.'\n  → add `together_with=\['if low > high → if False'\]` to the first",
    ),
    "an error that the statement doesn't ask for": (
        replaced('"equal ends are in order": given(3, 2, 2)', '"equal ends are in order": given("3", 2, 2)'),
        r"the reference raises TypeError for a hidden input: given\('3', 2, 2\)",
    ),
    "an input that contradicts an annotation": (
        replaced(
            '"equal ends are in order": given(3, 2, 2)',
            '"equal ends are in order": given(__import__("torch").tensor(3), 2, 2)',
        ),
        r"right 'the reference, its annotations checked' is right but fails 'ends in",
    ),
    "two requirements that are one": (
        lambda text: text.replace(
            'exercise.mistake("Your result ignores the lower',
            'exercise.requirement("again", points=1, visible=[given(3, 0, 2)], '
            "domain=st.builds(lambda x, ends: given(x, *ends), numbers, ranges))\n"
            'exercise.mistake("Your result ignores the lower',
        ),
        "no wrong program fails only 'again'",
    ),
    "an equivalent mutant that is not": (
        replaced("# %% equivalent: max(x, low) → max(low, x)", "# %% equivalent: max(x, low) → min(x, low)"),
        "min\\(x, low\\)': this mutant fails, or no longer exists|max\\(low, x\\)' agrees with the reference",
    ),
    "an equivalent mutant that a rare input shows": (
        lambda text: (
            text.replace('"equal ends are in order": given(3, 2, 2)', '"other": given(3, 0, 9)').replace(
                '"nothing between": given(5, 2, 2)', '"other": given(5, 2, 3)'
            )
            + "\n# %% equivalent: low > high → low >= high\n# why: equal ends are rare\n"
        ),
        r"equivalent 'low > high → low >= high' is not equivalent: given\(",
    ),
    "too few wrong programs": (
        lambda text: without_cell("wrong", "halfway")(without_cell("wrong", "always")(text)),
        "only 7 wrong programs, expected 8",
    ),
    "too few right programs": (without_cell("right", "by sorting"), "only 2 right programs, expected 3"),
    "no domain": (replaced("    domain=st.builds(given, numbers, numbers, numbers),\n", ""), "has no domain"),
}


def test_points_that_depend_on_the_class_are_found_with_many_draws(tmp_path: Path) -> None:
    """A program that fails visibly in one requirement breaks another one only on rare draws."""
    rare = "domain=st.builds(lambda x, high: given(x, 307, high), numbers, st.integers(270, 340))"
    wide = SOUND.replace("domain=st.builds(given, numbers, numbers, numbers)", rare)
    wide = wide.replace('"equal ends are in order": given(3, 2, 2)', '"other": given(3, 0, 9)')
    wide += "\n# %% wrong: refuses one end, and ignores the lower one\n" + NO_ENDS.replace("max(x, low)", "x")
    for draws, found in ((200, False), (201, True)):
        prover = proving.Prover(read(tmp_path, wide), draws, range(5), 0)
        prover.wrong()
        says = [each for each in prover.report.problems if "so its points depend on the class" in each]
        assert bool(says) is found, prover.report.problems
    assert all("given(0, 307, 307)" in each for each in says)


def test_a_hole_that_few_inputs_show_is_reported_with_its_smallest_input(tmp_path: Path) -> None:
    """With more draws, the search for the smallest input goes on for longer."""
    spec = read(tmp_path, replaced("st.integers(-9, 9)", "st.integers(0, 2_000)")(SOUND))
    wrong = CELLS.solution.replace("if low > high:", "if low > high or x == 777:")
    prover = proving.Prover(spec, 5_000, (), 0)
    found = prover.shrunk(checks.trial(spec, exercise.KnownProgram("wrong", "one number", wrong)), prover.pools[0])
    assert found is not None and found.args == (777, 0, 0)


def test_a_wrong_program_that_no_visible_case_shows_may_say_why(tmp_path: Path) -> None:
    explained = "\n# %% wrong: nothing is nearest\n# unseen: only an edge has equal ends\n" + NO_ENDS
    assert problems(tmp_path, SOUND + explained) == []


@pytest.mark.parametrize("what", WEAK)
def test_what_is_weak_is_found(what: str, tmp_path: Path) -> None:
    weaken, problem = WEAK[what]
    weak = weaken(SOUND)
    assert weak != SOUND
    found = problems(tmp_path, weak)
    assert any(re.search(problem, each, re.DOTALL) for each in found), found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (replaced("exercise = Exercise(", "made = Exercise("), "NameError|builds no exercise"),
        (
            replaced("if low > high → if False", "if low < high → if False"),
            r"clamp.py:\d+: `if low < high` occurs 0 times",
        ),
        (replaced("if low > high → if False", "high → low"), r"clamp.py:\d+: `high` occurs \d times"),
        (replaced("if low > high → if False", "if low > high"), r"is not an edit: write `old → new`"),
        (replaced("# says: A number inside the range stays the same.\n", ""), "has no note"),
        (replaced("# %% wrong: always", "# %% bad: always"), "'bad' is not a kind of program"),
        (replaced("    return x\n", "    return x\n\n# %% right: nothing\n\n"), "'nothing' is empty"),
        (
            replaced('"if low > high → if False")', '"if low > high → if False", together_with=["high → low"])'),
            r"clamp.py:\d+: together_with: 0 mistakes have 'high → low'",
        ),
        (replaced("numbers = st.integers(-9, 9)", "numbers = st.integer(-9, 9)"), r"clamp.py:6: AttributeError"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_what_is_wrong(
    change: Callable[[str], str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(exercise.ExerciseError, match=problem):
        read(tmp_path, change(SOUND))


def test_two_mistakes_together_come_last_with_the_sentence_of_the_one_that_names_the_other(tmp_path: Path) -> None:
    lower, order = "min(max(x, low), high) → min(x, high)", "if low > high → if False"
    spec = read(tmp_path, replaced(f'"{order}")', f'"{order}", together_with=["{lower}"])')(SOUND))
    *others, both = spec.mistakes
    assert both.together and both.edits == (lower, order) and not any(each.together for each in others)
    assert both.note == next(each.note for each in others if each.title == order)
    assert checks.visible_check(spec).together == 1 and checks.visible_check(read(tmp_path, SOUND)).together == 0


def test_a_missing_file_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(exercise.ExerciseError, match=r"has no file\n  → CONTRIBUTING"):
        exercise.read(tmp_path / "clamp.py", CELLS)


def test_hidden_cases_are_the_edges_and_forty_draws_that_repeat_with_their_seed(tmp_path: Path) -> None:
    spec = read(tmp_path, SOUND)
    first, again, other = (checks.hidden_check(spec, seed) for seed in (7, 7, 8))
    assert first.pack() == again.pack() != other.pack()
    for requirement, promise in zip(first.requirements, spec.promises, strict=True):
        given = [case.args for case in requirement.cases]
        assert len(given) == len(set(given)) >= 40 and set(given).isdisjoint({case.args for case in promise.visible})
        assert given[0] == next(iter(promise.edges.values())).args
        assert all(not case.mistakes for case in requirement.cases), "a grader needs none"


def test_students_get_no_program_and_no_edge(tmp_path: Path) -> None:
    text = repr(checks.visible_check(read(tmp_path, SOUND)))
    assert "sorted" not in text and "5, 2, 2" not in text and "min(" not in text


def test_a_check_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SIZE_LIMIT", 100)
    with pytest.raises(checks.CheckError, match="make the visible cases smaller"):
        checks.visible_check(read(tmp_path, SOUND))


# Right wherever a visible case or an edge looks, wrong for numbers that only draws have.
RARE = """
# %% wrong: seven is too large
# unseen: no visible case has a seven
def clamp(x, low, high):
    if low > high:
        raise ValueError
    return min(max(x, low), high) if x < 7 else low
"""


def runs(spec: exercise.Spec, seeds: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many cases each program is run on, by its code, while a check is tested with so many seeds."""
    counted: Counter[str] = Counter()

    class Counting(in_process.Trial):
        def __init__(self, setup: str, code: str, **more: Any) -> None:
            super().__init__(setup, code, **more)
            self.code = code

        def outcomes(self, *about: Any) -> Iterator[Any]:
            for each in super().outcomes(*about):
                counted[self.code] += 1
                yield each

    for module in (proving, checks):
        monkeypatch.setattr(module, "Trial", Counting)
    proving.prove(spec, draws=80, seeds=range(seeds))
    return counted


def test_only_a_program_that_passes_all_visible_cases_and_edges_is_run_on_the_draws_of_every_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = read(tmp_path, SOUND + RARE)
    one, many = (runs(spec, seeds, monkeypatch) for seeds in (1, 12))
    wrong = spec.of("mistake", "wrong")
    assert all(one[program.code] for program in wrong)
    assert [p.title for p in wrong if many[p.code] != one[p.code]] == ["seven is too large"]


def test_an_exercise_that_draws_nothing_is_run_as_often_with_many_seeds_as_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = read(tmp_path, re.sub(r"    domain=.*\n", "", SOUND))
    assert all(promise.domain is None for promise in spec.promises)
    one, many = (runs(spec, seeds, monkeypatch) for seeds in (1, 12))
    assert one == many and one[spec.cells.solution]


PROBE = """
import torch

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("hint")


def helper(n):
    return n + 1


def look(student, n):
    return {"value": student.clamp(helper(n), 0, 9)}
"""


def test_a_probe_brings_the_functions_of_its_file_that_it_uses(tmp_path: Path) -> None:
    use = 'exercise.requirement("r", points=1, probe=look, visible=[given(3, says="clamp of four")])\n'
    (requirement,) = checks.visible_check(read(tmp_path, PROBE + use)).requirements
    assert "def helper" in requirement.probe and requirement.cases[0].expected["value"] == {"value": 4}


SHARED = """from autograder.authoring.probing import with_gradient


def look(student, n):
    import torch

    return with_gradient(lambda x: student.clamp(x, 0, n), "x", [torch.ones(2)])
"""


def test_a_probe_brings_the_shared_functions_that_it_uses_and_its_check_depends_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = '\nexercise.requirement("r", points=1, probe=look, visible=[given(3, says="the gradient")])\n'
    spec = read(tmp_path, PROBE[: PROBE.index("def helper")] + SHARED + use)
    assert "def with_gradient" in spec.promises[0].probe
    before = checks.digest(spec.path, spec.cells)
    monkeypatch.setattr(checks.inspect, "getsource", lambda module: "another text")
    assert checks.digest(spec.path, spec.cells) != before
    alone = read(tmp_path, PROBE + use)
    other = checks.digest(alone.path, alone.cells)
    monkeypatch.undo()
    assert checks.digest(alone.path, alone.cells) == other


@pytest.mark.parametrize(
    ("probe", "problem"),
    [
        ("def look(student, n):\n    return torch.ones(n)", "uses torch from outside"),
        ("def look():\n    return 1", "has no first parameter `student`"),
    ],
)
def test_a_probe_that_cannot_run_elsewhere_is_refused(probe: str, problem: str, tmp_path: Path) -> None:
    text = PROBE[: PROBE.index("def helper")] + probe
    text += '\nexercise.requirement("r", points=1, probe=look, visible=[given(3, says="x")])\n'
    with pytest.raises(exercise.ExerciseError, match=problem):
        read(tmp_path, text)


def test_a_visible_case_of_a_probe_says_what_it_does(tmp_path: Path) -> None:
    use = 'exercise.requirement("r", points=1, probe=look, visible=[given(3)])\n'
    with pytest.raises(checks.CheckError, match="does not say what it does"):
        checks.visible_check(read(tmp_path, PROBE + use))


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n        pass",
        "raise SystemExit",
        "import os\n    os.abort.x",
        "return object()",
        "return clamp(x, low, high)",
        "class Slow:\n        def __del__(self):\n            for _ in range(9):\n                pass\n"
        "    while True:\n        Slow()",  # most of its time passes where an exception goes no further
    ],
)
def test_a_program_that_hangs_exits_or_returns_anything_is_wrong_and_ends_nothing(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "BRIEF", 0.3)
    code = f"def clamp(x, low, high):\n    {body}\n"
    assert problems(tmp_path, SOUND + f"\n# %% wrong: odd\n{code}") == []


def test_a_program_that_runs_out_of_time_leaves_no_module_half_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or whatever is tried next in this process, even a reference, would find a module without some of its names."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "takes_long.py").write_text("for _ in range(10_000_000):\n    pass\nwhole = True\n")
    code = "def clamp(x, low, high):\n    import takes_long\n    while takes_long.whole:\n        pass"
    spec = read(tmp_path, SOUND)
    promise = spec.promises[0]
    ran = in_process.Trial(spec.cells.setup, code, seconds=0.05)
    outcome = ran.outcome("clamp", promise, promise.visible[0])
    assert str(getattr(outcome["value"], "kind", "")) == "OutOfTime"
    assert sys.modules["takes_long"].whole
    monkeypatch.delitem(sys.modules, "takes_long")


def test_nothing_that_a_program_sets_for_all_of_torch_stays() -> None:
    def settings() -> list[object]:
        hooks = [len(value) for name, value in vars(nn.modules.module).items() if name.endswith("_hooks")]
        return [*hooks, torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()]

    before = settings()
    code = """torch.set_default_dtype(torch.float64), torch.set_grad_enabled(False), torch.set_num_threads(2)
for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
    getattr(torch.nn.modules.module, f"register_module_{kind}_hook")(print)"""
    in_process.Trial("import torch", code)
    assert settings() == before


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
    titles = {m.title for m in mutants.mutants(Exercise("f", 1, "", code, 1, b""))}
    wanted = {
        "x.sum(dim=-1, keepdim=True) → x.sum(dim=-1)", "-1 → 1", "1 → 2", "n > 1 → n >= 1", "x.sum → x.mean",
        "n > 1 and (not x.numel() == 0) → n > 1 or not x.numel() == 0", "torch.where(x, y, n) → torch.where(y, x, n)",
        "torch.float32 → torch.float64", "1: → :", "-y → y", "True → False", "y = torch.where(x, y, n) → (dropped)",
        "'b d k -> b d' → 'b d k -> d b'", "x.numel() == 0 → x.numel() != 0",
    }  # fmt: skip
    assert wanted <= titles, wanted - titles
    assert not any("Kept" in title for title in titles)
