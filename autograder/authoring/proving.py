"""Tests an exercise's check: what passes but shouldn't, what fails although it's right, and what students are told.

Every promise of a statement is tested. Right answers must agree with the reference on the whole domain. Every wrong
answer, and every mutant that any drawn input distinguishes from the reference, must fail on a class's cases, whichever
seed drew them. If one doesn't, the check has a hole, and the report has the smallest input that shows it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import hypothesis
import torch

from course_utils.testing.checking import SEED
from course_utils.testing.comparing import Comparison
from course_utils.testing.describing import describe
from course_utils.testing.plain import Raised
from course_utils.testing.requirements import Check, Outcome
from course_utils.testing.rubric import Met, Rubric, score

from . import mutants
from .checks import DRAWN, draw, expected, reference, trial, visible_check, without_twins
from .exercise import FROM_THE_STATEMENT, Given, KnownProgram, Promise, Spec, edited
from .in_process import SECONDS, Trial

SEEDS = range(20)
DRAWS = 200  # inputs for each exercise, spread over its requirements; a nightly run uses more
WRONG_PROGRAMS = 8  # at least, including mistakes
FROM_STATEMENT = 3  # at least this many of them by somebody who had read only the statement
RIGHT_PROGRAMS = 3
PAIRS = 60  # a sample of pairs of mistakes made together; a nightly run tries all

# An answer may check what the annotations say, as a lecture teaches: then no input may contradict them.
_TYPED = """
import beartype, inspect, jaxtyping
if inspect.isfunction({0}):
    conf = beartype.BeartypeConf(is_pep484_tower=True)  # a whole number is a float
    {0} = jaxtyping.jaxtyped(typechecker=beartype.beartype(conf=conf))({0})
"""


@dataclass
class Report:
    """What was found: ``problems`` as messages, and how much was tested. ``check`` is the one that students get."""

    check: Check
    problems: list[str] = field(default_factory=list)
    programs: int = 0
    mutants: int = 0
    equivalent: int = 0
    inputs: int = 0


@dataclass
class Pool:
    """One promise's inputs with expected outcomes: visible ones, edges, and what each seed draws."""

    spec: Spec
    promise: Promise
    right: Trial
    draws: int

    def __post_init__(self) -> None:
        self._drawn: dict[int, list[tuple[Given, Outcome]]] = {}

    def _with(self, cases: Iterable[Given]) -> list[tuple[Given, Outcome]]:
        cases = list(cases)
        return list(zip(cases, expected(self.spec, self.promise, cases, self.right), strict=True))

    @cached_property
    def visible(self) -> list[tuple[Given, Outcome]]:
        return self._with(self.promise.visible)

    @cached_property
    def edges(self) -> list[tuple[Given, Outcome]]:
        return self._with(without_twins(self.promise.edges.values(), self.promise.visible))

    @cached_property
    def many(self) -> list[tuple[Given, Outcome]]:
        """Additional draws, which aren't any class's."""
        return self._with(without_twins(draw(self.promise, self.draws, 10**9), self.promise.visible))

    def drawn(self, seed: int) -> list[tuple[Given, Outcome]]:
        """The draws of a class with this seed."""
        if seed not in self._drawn:
            self._drawn[seed] = self._with(without_twins(draw(self.promise, DRAWN, seed), self.promise.visible))
        return self._drawn[seed]


class Prover:
    """Tests the check of one exercise; call `prove`."""

    def __init__(self, spec: Spec, draws: int, seeds: Sequence[int], pairs: int) -> None:
        self.spec, self.seeds, self.pairs = spec, seeds, pairs
        self.name = spec.cells.name
        self.thorough = draws > DRAWS  # then also what takes too long for `make test`
        self.report = Report(visible_check(spec))
        self.right_answer = right = reference(spec)
        each = max(DRAWN, draws // len(spec.promises))
        self.pools = [Pool(spec, promise, right, each) for promise in spec.promises]

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        """All steps, the quickest first."""
        return (
            self.count,
            self.stub,
            self.right,
            self.threads,
            self.liar,
            self.wrong,
            self.pairs_of_mistakes,
            self.mutants,
        )

    def say(self, problem: str) -> None:
        self.report.problems.append(problem)

    def differs(self, program: Trial, pool: Pool, cases: Iterable[tuple[Given, Outcome]]) -> Given | None:
        """The first of these inputs on which a program differs from the reference."""
        promise, cases = pool.promise, list(cases)
        came = program.outcomes(self.name, promise, (case for case, _ in cases))
        for (case, want), got in zip(cases, came, strict=True):
            if promise.comparison.difference(got, want) is not None:
                return case
        return None

    def rubric(self, program: Trial, seed: int = SEED) -> Rubric:
        """The rubric for a student who wrote this program, and in whose kernel random numbers have this seed."""
        outcomes = {}
        for number, (requirement, pool) in enumerate(zip(self.report.check.requirements, self.pools, strict=True)):
            cases = [case for case, _ in pool.visible]
            came = program.outcomes(self.name, pool.promise, cases, seed)
            outcomes[number] = [(one, case.says or requirement.text) for one, case in zip(came, cases, strict=True)]
        return score(self.report.check, outcomes)

    def count(self) -> None:
        """There are enough programs, and each promise has a visible case, enough edges, and more than one outcome."""
        wrong = self.spec.of("mistake", "wrong")
        strangers = [program for program in wrong if FROM_THE_STATEMENT in program.title]
        for found, least, what in (
            (wrong, WRONG_PROGRAMS, "wrong programs"),
            (strangers, FROM_STATEMENT, f"wrong programs {FROM_THE_STATEMENT}"),
            (self.spec.of("right"), RIGHT_PROGRAMS, "right programs"),
        ):
            if len(found) < least:
                self.say(f"only {len(found)} {what}, expected {least}")
        for promise in self.spec.promises:
            if not promise.visible:
                self.say(f"{promise.text!r} has no visible case")
            if promise.domain is None and len(promise.edges) < 3:
                self.say(f"{promise.text!r} has no domain, and fewer than three edges")
        for pool in self.pools:
            hidden = [want for _, want in (*pool.edges, *pool.drawn(self.seeds[0]))]
            if all(pool.promise.comparison.difference(want, hidden[0]) is None for want in hidden):
                self.say(
                    f"{pool.promise.text!r} has the same outcome on all hidden inputs: an answer that always returns "
                    "it would pass"
                )
            asked_for = {want["value"].kind for _, want in pool.visible if isinstance(want["value"], Raised)}
            for case, want in (*pool.edges, *pool.drawn(self.seeds[0])):
                if isinstance(raised := want["value"], Raised) and raised.kind not in asked_for:
                    self.say(
                        f"{pool.promise.text!r}: the reference raises {raised.kind} for a hidden input: "
                        f"{_shown(case)}\n"
                        "  → if the statement asks for that error, add a visible case; otherwise change the input"
                    )

    def right(self) -> None:
        """Right answers agree with the reference everywhere, whatever the global generators' seeds."""
        solution = self.spec.cells.solution
        programs = [
            KnownProgram("right", "the reference", solution),
            KnownProgram("right", "the reference, its annotations checked", f"{solution}\n{_TYPED.format(self.name)}"),
            *self.spec.of("right"),
        ]
        for program in programs:
            ran = trial(self.spec, program)
            for pool in self.pools:
                for case, want in (*pool.visible, *pool.edges, *pool.many):
                    seed = random.Random(self.report.inputs).getrandbits(31)
                    self.report.inputs += 1
                    got = ran.outcome(self.name, pool.promise, case, seed)
                    if (found := pool.promise.comparison.difference(got, want)) is not None:
                        self.say(
                            f"{_where(program)} is right but fails {pool.promise.text!r}: {_shown(case)}: "
                            f"{found.where or 'the value'}: got {describe(found.got)}, expected {describe(found.want)}"
                            " (one of the two is wrong, or the statement has to exclude this input)"
                        )
                        break
            self.report.programs += 1

    def threads(self) -> None:
        """The expected outcomes also hold on a machine that sums in a different order, as with more threads."""
        ran = Trial(self.spec.cells.setup, self.spec.cells.solution, threads=2)
        for pool in self.pools:
            cases = [*pool.visible, *pool.edges, *pool.drawn(self.seeds[0])]
            if (case := self.differs(ran, pool, cases)) is not None:
                self.say(f"{pool.promise.text!r} depends on the number of threads: {_shown(case)}\n"
                         "  → draw inputs that don't cancel, round in the probe, or give a tolerance")  # fmt: skip

    def stub(self) -> None:
        """The empty stub earns nothing."""
        rubric = self.rubric(Trial(self.spec.cells.setup, self.spec.cells.stub))
        for line in rubric.lines:
            if line.met is Met.YES:
                self.say(f"the empty stub meets {line.text!r}")

    def wrong(self) -> None:
        """Wrong answers fail with every seed and, unless `unseen`, on a visible case; mistakes get their sentence."""
        alone: set[int] = set()
        for program in self.spec.of("mistake", "wrong"):
            self.report.programs += 1
            ran = trial(self.spec, program)
            told = self.rubric(ran)
            broken = seen = {n for n, line in enumerate(told.lines) if line.met is not Met.YES}
            if len(seen) < 2 and not (seen and seen <= alone):  # otherwise the edges show nothing new
                broken = seen | {
                    n for n, pool in enumerate(self.pools) if self.differs(ran, pool, pool.edges) is not None
                }
            if not broken and (drawn := self.by_draws(program, ran)) is None:
                self.say(f"{_where(program)} agrees with the reference on every input: what is wrong with it?")
                continue
            broken = broken or drawn or set()
            if len(broken) == 1 and not broken <= alone and not self.on_one_draw(ran, broken):
                alone |= broken
            if self.thorough:
                self.by_class(program, ran, seen)
            if not seen and not program.unseen:
                how = "`unseen`" if program.edits else "`# unseen: …` below its title"
                self.say(f"{_where(program)} fails no visible case\n  → add one, or say why not: {how}")
            if (shown := told.failure) and shown.expected and shown.got == shown.expected:
                self.say(f"{_where(program)} is shown {shown.got!r} as both got and expected")
            unnamed = program.together and told.mistake is None  # another two do the same
            if program.kind == "mistake" and seen and told.mistake != program.note and not unnamed:
                self.say(f"{_where(program)} gets the sentence {told.mistake!r} instead of {program.note!r}")
            single = program.kind == "mistake" and not program.together
            if single and any(promise.band for promise in self.spec.promises):
                other = self.rubric(ran, SEED + 1).mistake
                if other not in (None, program.note):
                    self.say(f"{_where(program)} gets the sentence {other!r} where it draws other random numbers")
        for number, pool in enumerate(self.pools):
            if number not in alone:
                self.say(f"no wrong program fails only {pool.promise.text!r}: is it a separate requirement?")

    def by_class(self, program: KnownProgram, ran: Trial, seen: set[int]) -> None:
        """A wrong program meets a promise in every class or in none, so that its points don't depend on the class."""
        for number, pool in enumerate(self.pools):
            if number in seen or self.differs(ran, pool, pool.edges) is not None:
                continue
            told = [case for seed in self.seeds if (case := self.differs(ran, pool, pool.drawn(seed))) is not None]
            if 0 < len(told) < len(self.seeds):
                self.say(
                    f"{_where(program)} fails {pool.promise.text!r} with {len(told)} of {len(self.seeds)} seeds, so "
                    f"its points depend on the class\n  → add an edge: {_shown(self.shrunk(ran, pool) or told[0])}"
                )

    def on_one_draw(self, ran: Trial, broken: set[int]) -> set[int]:
        """The other promises that a program breaks on the first seed's draws."""
        return {
            n for n, pool in enumerate(self.pools)
            if n not in broken and self.differs(ran, pool, pool.drawn(self.seeds[0])) is not None
        }  # fmt: skip

    def by_draws(self, program: KnownProgram, ran: Trial) -> set[int] | None:
        """The promises that a program breaks on drawn inputs, if it passes all visible cases and edges.

        None if no drawn input distinguishes it from the reference. If one does, each class must have such an input.
        """
        told = {
            n: seen for n, pool in enumerate(self.pools) if (seen := self.differs(ran, pool, pool.many)) is not None
        }
        if not told:
            return None
        missed = [
            seed for seed in self.seeds
            if all(self.differs(ran, self.pools[n], self.pools[n].drawn(seed)) is None for n in told)
        ]  # fmt: skip
        if missed:
            number, seen = next(iter(told.items()))
            pool = self.pools[number]
            self.say(
                f"{_where(program)} passes with {len(missed)} of {len(self.seeds)} seeds, so the check has a hole\n"
                f"  → add an edge to {pool.promise.text!r}: {_shown(self.shrunk(ran, pool) or seen)}"
            )
        return set(told)

    def shrunk(self, ran: Trial, pool: Pool) -> Given | None:
        """The smallest input found that distinguishes a program from the reference, or None if none is found again."""

        def tells(case: Given) -> bool:
            wanted = next(iter(expected(self.spec, pool.promise, [case], pool.right)))
            return self.differs(ran, pool, [(case, wanted)]) is not None

        settings = hypothesis.settings(
            max_examples=max(500, 4 * pool.draws),
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        try:
            assert pool.promise.domain is not None
            return hypothesis.find(pool.promise.domain, tells, settings=settings, random=random.Random(0))
        except hypothesis.errors.NoSuchExample:
            return None

    def pairs_of_mistakes(self) -> None:
        """Two mistakes made together get the sentence of one of them, or none, for a sample of all pairs."""
        single = [program for program in self.spec.mistakes if program.edits and not program.together]
        pairs = list(itertools.combinations(single, 2))
        random.Random(0).shuffle(pairs)
        for one, other in pairs[: self.pairs]:
            try:
                code = edited(self.spec.cells.solution, [*one.edits, *other.edits])
                compile(code, "<both>", "exec")
            except (ValueError, SyntaxError):
                continue
            told = self.rubric(Trial(self.spec.cells.setup, code)).mistake
            # The sentence of a mistake that combines both is fair, too.
            fair = {p.note for p in single if set(p.edits) <= {*one.edits, *other.edits}}
            if told is not None and told not in fair:
                self.say(f"{one.title!r} and {other.title!r} together get the sentence {told!r}\n"
                         f"  → add `together_with=[{other.edits[0]!r}]` to the first")  # fmt: skip

    def mutants(self) -> None:
        """Every mutant fails, or is listed as equivalent and agrees on every input."""
        explained = {program.title: program for program in self.spec.of("equivalent")}
        alive = set()
        # Some mutants never end. A mutant gets many times what the reference needs, so none is called slow by chance.
        enough = min(SECONDS, max(0.3, 8 * self.right_answer.longest))
        for mutant in mutants.mutants(self.spec.cells):
            self.report.mutants += 1
            seconds = SECONDS if mutant.title in explained else enough
            ran = Trial(self.spec.cells.setup, mutant.code, seconds=seconds)
            if any(self.differs(ran, pool, (*pool.visible, *pool.edges)) is not None for pool in self.pools):
                continue
            program = KnownProgram("mutant", mutant.title, mutant.code)
            if mutant.title in explained:
                program = explained[mutant.title]
                told = next((seen for pool in self.pools if (seen := self.differs(ran, pool, pool.many))), None)
                alive.add(mutant.title)
                self.report.equivalent += 1
                if told is not None:
                    self.say(f"{_where(program)} is not equivalent: {_shown(told)}")
            elif self.by_draws(program, ran) is None:
                self.say(f"{_where(program)} agrees with the reference on every input\n"
                         "  → widen the domain, or add a cell `# %% equivalent:` that says why")  # fmt: skip
        for title, program in explained.items():
            if title not in alive:
                self.say(f"{_where(program)}: this mutant fails, or no longer exists: remove the cell")

    def liar(self) -> None:
        """Constants, copies of visible values, errors everywhere, or a function that does nothing earn no points."""
        for number, pool in enumerate(self.pools):
            cases = [*pool.visible, *pool.edges, *pool.drawn(self.seeds[0])]
            for lie, tell in _lies(pool.visible):
                if all(_agrees(pool.promise.comparison, tell(case), want) for case, want in cases):
                    self.say(f"a degenerate answer ({lie}) meets {self.spec.promises[number].text!r}\n"
                             "  → add a contrasting case")  # fmt: skip
        for what, body in (("does nothing", "pass"), ("always raises", "raise ValueError")):
            code = self.spec.cells.stub.replace("raise NotImplementedError()", body)
            ran = Trial(self.spec.cells.setup, code)
            for pool in self.pools:
                cases = [*pool.visible, *pool.edges, *pool.drawn(self.seeds[0])]
                if self.differs(ran, pool, cases) is None:
                    self.say(f"an answer that {what} meets {pool.promise.text!r}\n  → add a contrasting case")


def prove(spec: Spec, draws: int = DRAWS, seeds: Sequence[int] = SEEDS, pairs: int = PAIRS) -> Report:
    """Test the check of an exercise. Slow: up to a minute."""
    prover = Prover(spec, draws, seeds, pairs)
    for step in prover.steps:
        step()
    return prover.report


def _where(program: KnownProgram) -> str:
    return (
        f"line {program.line}, {program.kind} {program.title!r}"
        if program.line
        else f"{program.kind} {program.title!r}"
    )


def _shown(case: Given | None) -> str:
    if case is None:
        return "?"
    parts = [repr(a) if not isinstance(a, torch.Tensor) else describe(a) for a in case.args]
    return f"given({', '.join([*parts, *(f'{k}={v!r}' for k, v in case.kwargs.items())])})"[:600]


def _agrees(how: Comparison, told: Any, want: Outcome) -> bool:
    outcome = {part: [] if part == "mutated" else None for part in how.parts} | {"value": told}
    if "error" in how.parts:
        outcome["error"] = told if isinstance(told, Raised) else None
    # For everything but the value, the degenerate answer reports what is expected.
    for part in how.parts:
        if part not in ("value", "error"):
            outcome[part] = want[part]
    return how.difference(outcome, want) is None


def _lies(visible: Sequence[tuple[Given, Outcome]]) -> Iterator[tuple[str, Any]]:
    value: Any
    for value in (None, True, False, 0, 1, 0.0, -1, float("nan"), float("inf"), "", [], (), {}):
        yield repr(value), lambda case, value=value: value
    errors = {w["value"].kind for _, w in visible if isinstance(w["value"], Raised)} | {"ValueError"}
    for kind in sorted(errors):
        raised = Raised(kind, "", "", (kind, "Exception"))
        yield f"{kind} everywhere", lambda case, raised=raised: raised
    for number, (_, want) in enumerate(visible, 1):
        value = want["value"]
        if isinstance(value, Raised):
            continue
        for what, changed in _changed(value):
            yield f"{what} of visible case {number}", lambda case, changed=changed: changed
    places = max((len(case.args) for case, _ in visible), default=0)
    for place in range(places):
        yield f"its argument {place}", lambda case, place=place: case.args[place] if place < len(case.args) else None
    yield "all its arguments", lambda case: list(case.args)


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    yield "the value", value
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        yield "zeros like the value", torch.zeros_like(value)
        if value.is_floating_point():
            yield "NaN like the value", torch.full_like(value, float("nan"))
    if isinstance(value, (list, tuple)):
        yield "nothing", type(value)()
        yield "half the value", value[: len(value) // 2]
        yield "twice the value", (*value, *value)
        yield "the reversed value", value[::-1]
        if value:
            yield "the first item, repeated,", [value[0]] * len(value)
