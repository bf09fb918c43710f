"""Which cells of a student's notebook run, and where each exercise is judged.

A kernel runs all cells from top to bottom, and so does grading: helpers in a student's own cells, changed imports,
answers that were retyped elsewhere, all of it counts. Only cells that would take time and change nothing are left out:
unchanged cells of the lecture that neither define a name that anything uses nor change the object behind such a name.

Names are read from the text of the cells (:mod:`autograder.inside.names`). A student's cells are never parsed in this
process: their own process reports what they define and use.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from autograder.inside.messages import Names
from autograder.inside.names import defined, used

from .exercises import Cell, Exercise, ProblemSet

# Characters of the names that are read from one notebook; of a hostile one's millions, the first.
_NAMES = 1_000_000
# What is there in every kernel, without any cell.
_ALWAYS = frozenset(vars(builtins)) | {"__name__", "display", "get_ipython", "exit", "quit", "In", "Out", "_", "__"}
# What a kernel keeps of what cells displayed.
_DISPLAYED = frozenset(["Out", "_", "__", "___", "_oh"])
# What looks a name up that is in a text: `eval("std")`, `globals()["std"]`, `!echo $std`. Bounded, as what a submission
# repeats a thousand times would otherwise be read a million times.
_BY_TEXT = re.compile(
    r"(?<![.\w])(?:eval|exec|locals)\s{0,9}\(|\b(?:vars|dir)\(\s{0,9}\)|globals|\bget_type_hints\b|\buser_ns\b|"
    r"\bget_ipython\b|\bgetmodule\b|\bsys\.modules\b|%who|"
    r"""(?<!=["'])(?<!= ["'])\b__main__\b|(?:^|=)[ \t]{0,20}[!%][^\n]{0,100}[${]""",
    re.MULTILINE,
)
_IMPORTED = re.compile(r"^[ \t]{0,40}(?:import|from)[ \t]{1,9}([A-Za-z_]\w{0,60})", re.MULTILINE)
# What asks the machine for something that may be missing without an error: files, variables, users, times.
_ASKS = re.compile(
    r"\b(?:getenv|environ|open|glob|iglob|rglob|exists|is_file|is_dir|listdir|scandir|getuser|expanduser)\b"
)
# Errors of a cell that is the same on every machine.
_EVERYWHERE = ("SyntaxError", "IndentationError", "TabError", "NotImplementedError")


class Kind(Enum):
    """The kinds of cells in a student's notebook."""

    OURS = auto()  # as the lecture has it
    THEIRS = auto()
    CHECK = auto()  # a test cell: here the judge runs ours, and nothing runs in the student's process


@dataclass(frozen=True)
class Step:
    """A cell at its position. ``exercise`` is the one that it answers, or the one that is judged here."""

    cell: Cell
    kind: Kind
    exercise: Exercise | None = None


class Program:
    """A student's notebook as a list of steps, and what happened to them; steps are identified by their index.

    ``dropped`` are those that ended a process or took too long, with the reason; they don't run again. ``stopped`` are
    those that raised an error, with the error.
    """

    def __init__(self, problems: ProblemSet, cells: Sequence[Cell]) -> None:
        self.problems = problems
        self.steps = _steps(problems, cells)
        self.dropped: dict[int, str] = {}
        self.stopped: dict[int, str] = {}
        self._defined: dict[int, Set[str]] = {}
        self._used: dict[int, Set[str]] = {}
        self._definers: dict[str, list[int]] = defaultdict(list)  # in order
        self._changers: dict[str, list[int]] = defaultdict(list)  # of ours, in order
        self._displayed = False  # whether a cell of the student's uses what another displayed
        self._planned: tuple[tuple[int, int], list[int]] | None = None
        self._left = _NAMES
        tests = {Cell(exercise.tests).plain for exercise in problems.exercises}
        modules = frozenset().union(*(_imports(cell.text) for cell in problems.cells))
        for number, step in enumerate(self.steps):
            if step.kind is Kind.OURS or (step.kind is Kind.CHECK and step.cell.plain in {"", *tests}):
                self.learn(number, _names(step.cell.text))
            if step.kind is Kind.OURS:
                for name in _changes(step.cell.text) - modules:
                    self._changers[name].append(number)

    @property
    def unread(self) -> list[int]:
        """The cells whose names aren't known yet, because only the student's process can read them."""
        return [number for number in range(len(self.steps)) if number not in {*self._defined, *self.dropped}]

    def learn(self, number: int, names: Names) -> None:
        """Record which names a cell defines and uses."""
        self._left -= sum(len(name) + 1 for name in (*names.defined, *names.used))
        if self._left < 0:
            names = Names([], [])
        self._displayed |= bool((_DISPLAYED & set(names.used)) - set(names.defined))
        self._defined[number], self._used[number] = frozenset(names.defined), frozenset(names.used) - _ALWAYS
        for name in self._defined[number]:
            self._definers[name] = sorted([*self._definers[name], number])

    def to_run(self) -> list[int]:
        """The cells to run and the steps at which to judge, in order. All names must be known."""
        # A notebook made for it keeps this busy for seconds, and each answer that fails asks again.
        state = len(self._defined), len(self.dropped)
        if self._planned is None or self._planned[0] != state:
            self._planned = state, self._plan()
        return self._planned[1]

    def _plan(self) -> list[int]:
        # Where each name is looked up. What a function uses is looked up when it is called, so below its cell: where
        # the exercise is judged.
        wanted: set[tuple[str, int]] = set()
        for number, step in enumerate(self.steps):
            if step.kind is Kind.THEIRS:
                wanted |= {(name, number) for name in self._used.get(number, ())}
            elif step.kind is Kind.CHECK and step.exercise is not None:
                wanted |= {(name, number) for name in self._behind(step.exercise)}
        chosen: set[int] = set()
        open_ = list(wanted)
        while open_:
            for source in self._sources(*open_.pop()):
                if self.steps[source].kind is Kind.OURS and source not in chosen:
                    chosen.add(source)
                    new = {(name, source) for name in self._used[source]} - wanted
                    wanted |= new
                    open_ += new
        kept = (n for n, step in enumerate(self.steps) if step.kind is not Kind.OURS or n in chosen)
        return [number for number in kept if number not in self.dropped]

    def excuses(self, place: int, points: float, calls: Sequence[str]) -> Iterator[str]:
        """Why the answer that's judged at a step may have failed through no fault of its own; first what says most.

        ``points`` are what the cases that students see have earned, ``calls`` what its calls gave as reasons.
        """
        earned = self.steps[place].cell.earned
        if earned is not None and earned <= points:
            calls = ()  # it is the same for the student
        otherwise = functools.partial(self._otherwise, points=points)
        rest = (self._in_text, otherwise, self._not_installed, self._asks_the_machine)
        found = itertools.chain([self._out_of_reach(place)], dict.fromkeys(calls), (look(place) for look in rest))
        return filter(None, found)  # one by one, as whoever asks wants more

    def _out_of_reach(self, place: int) -> str:
        """Whether the answer uses a name that a cell defines that didn't run, didn't finish, or ran too late."""
        exercise = self._judged(place)
        own, behind = self._answers(exercise), sorted(self._behind(exercise))
        ran = {n for n in self.to_run() if n < place and self.steps[n].kind is not Kind.CHECK} - self.stopped.keys()
        for name in behind:
            definers = self._definers.get(name, [])
            if any(number in ran or (number in own and number < place) for number in definers):
                continue  # where its own cell stopped, that cell's error says why
            for number in definers:
                what = f"it uses `{name}`, which {self.steps[number].cell.title} defines, and "
                if number in self.dropped:
                    return what + f"that cell was left out: {self.dropped[number]}"
                if number in self.stopped and number < place:
                    return what + f"that cell stopped with {self.stopped[number]:.300}"
                if self.steps[number].kind is Kind.CHECK:
                    return what + "nothing in a test cell counts"
                return what + "that cell stands below its tests"
            asked_here = name in asked(exercise) and own
            if not asked_here and any(name in _names(cell.text).defined for cell in self.problems.cells):
                return f"it uses `{name}`, which a cell of the lecture defines that is not in this notebook"
        # A call may change what it is given, or count how often it was made, which no text tells.
        for number in self._definers_of(behind):
            if number < place and self.steps[number].exercise is None:
                for below in range(number + 1, place):
                    shared = self._defined[number] & self._used.get(below, frozenset())
                    if self.steps[below].kind is Kind.OURS and below not in ran and shared:
                        return f"{self.steps[below].cell.title} uses `{min(shared)}` of the student's, and did not run"
        for name in behind:
            for source in self._sources(name, place)[:1]:
                step = self.steps[source]
                first = step.cell.plain == self.problems.cells[0].plain  # modules and settings, which nobody changes
                if step.kind is not Kind.OURS or first:
                    continue
                for number in range(source + 1, place):
                    other = self.steps[number]
                    if other.kind is Kind.OURS and number not in ran and name in self._used[number]:
                        return f"it uses `{name}` of the lecture, and so does {other.cell.title}, which did not run"
        return ""

    def should_define(self, name: str) -> str:
        """The cell of the student's that defines a name, as far as its text tells, and that ran; or nothing."""
        ran = (n for n in self._definers.get(name, ()) if n not in self.stopped and n not in self.dropped)
        return next((self.steps[n].cell.title for n in ran if self.steps[n].kind is Kind.THEIRS), "")

    def _otherwise(self, place: int, points: float) -> str:
        """What the notebook's own outputs say otherwise, up to this test cell, or nothing: a cell that stopped here ran
        to its end there, or the check gave more ``points``.

        What a cell would have changed, no text tells, so it may be any of the student's. Of a cell without outputs
        nothing is known; a syntax error it has everywhere.
        """
        for number, error in self.stopped.items():
            cell, kind = self.steps[number].cell, error.partition(":")[0]
            the_same = kind == cell.ended or (cell.ended is None and (kind in _EVERYWHERE or self._undefined(error)))
            if number < place and not the_same:
                return f"{cell.title} stopped here with {error:.300}; look whether it does on the student's machine"
        earned = self.steps[place].cell.earned
        if earned is not None and earned > points:
            return (
                f"its check shows {earned:g} points in the notebook, and the same cases earn {points:g} here: the code "
                "was changed after that, or something isn't here"
            )
        return ""

    def _not_installed(self, place: int) -> str:
        """A module that the student's cells above import and that isn't here, or nothing."""
        for step in self.steps[:place]:
            if step.kind is Kind.THEIRS:
                for name in dict.fromkeys(_IMPORTED.findall(step.cell.text)):
                    if not _installed(name):
                        return f"{step.cell.title} imports `{name}`, which isn't here"
        return ""

    def _undefined(self, error: str) -> bool:
        """Whether it's about a name that no cell defines, here or in the lecture."""
        found = re.match(r"NameError: name '(\w{1,100})' is not defined", error)
        ours = (_names(cell.text).defined for cell in self.problems.cells)
        return found is not None and found[1] not in self._definers and not any(found[1] in names for names in ours)

    def _asks_the_machine(self, place: int) -> str:
        """What the student's cells above ask the machine for and the lecture doesn't, where nothing in the notebook
        says how that went there; or nothing. Whoever looks for a file and goes on without it gets no error.
        """
        if self.steps[place].cell.earned is not None:
            return ""
        lecture = {word for cell in self.problems.cells for word in _ASKS.findall(cell.text)}
        for step in self.steps[:place]:
            if step.kind is Kind.THEIRS and (found := [w for w in _ASKS.findall(step.cell.text) if w not in lecture]):
                return f"{step.cell.title} uses `{found[0]}`, and what that finds may not be here"
        return ""

    def _in_text(self, place: int) -> str:
        """Why an answer that failed may lack a cell of the lecture that no name in the student's code asks for, or
        nothing: if code looks a name up by a text, every word in the student's cells may be such a name.
        """
        ran = set(self.to_run())
        if self._displayed and any(s.kind is Kind.OURS and n not in ran for n, s in enumerate(self.steps[:place])):
            return "it may use what a cell of the lecture displayed, and not all of those ran"
        for words in self._words:
            for number, step in enumerate(self.steps[:place]):
                if step.kind is Kind.OURS and number not in ran and (found := sorted(self._defined[number] & words)):
                    return f"it may look up `{found[0]}`, which {step.cell.title} defines, and that cell did not run"
        return ""

    @functools.cached_property
    def _words(self) -> tuple[set[str], ...]:
        """If a cell of the student's looks names up by a text: the lecture's names among the words of such cells, then
        among those of all.
        """
        texts = [step.cell.text for step in self.steps if step.kind is Kind.THEIRS]
        such = [text for text in texts if _BY_TEXT.search(text)]
        ours = set().union(*(self._defined[n] for n, step in enumerate(self.steps) if step.kind is Kind.OURS))
        # One text at a time: all words of a hostile notebook take a gigabyte.
        return tuple(set().union(*(ours.intersection(re.findall(r"\w+", text)) for text in some))
                     for some in (such, texts) if such)  # fmt: skip

    def _sources(self, name: str, place: int) -> list[int]:
        """The cells that determine a name's value at a place.

        First the one that defines it: the last one above the place, or else the first one below. Then those of our
        cells that change its object after that.
        """
        found = [n for n in self._definers.get(name, ()) if self.steps[n].kind is not Kind.CHECK]
        above = [number for number in found if number < place]
        source = above[-1:] or found[:1]
        return source + [n for n in self._changers.get(name, ()) if source and source[0] < n < place]

    def _answers(self, exercise: Exercise) -> list[int]:
        """The cells marked as an exercise's answer."""
        return [n for n, s in enumerate(self.steps) if s.exercise is exercise and s.kind is not Kind.CHECK]

    def _behind(self, exercise: Exercise) -> set[str]:
        """The names that an answer uses, those used by the student's cells that define them, and so on."""
        found: set[str] = set()
        todo = set(asked(exercise)).union(*(self._used.get(number, ()) for number in self._answers(exercise)))
        while todo:
            found |= todo
            todo = set().union(*(self._used[number] for number in self._definers_of(todo))) - found
        return found

    def _judged(self, place: int) -> Exercise:
        """The exercise that's judged at a step."""
        exercise = self.steps[place].exercise
        assert exercise is not None
        return exercise

    def _definers_of(self, names: Collection[str]) -> list[int]:
        """The student's cells that define any of these names."""
        return sorted({n for name in names for n in self._definers.get(name, ()) if self.steps[n].kind is Kind.THEIRS})


@functools.lru_cache(maxsize=4096)
def _installed(name: str) -> bool:
    """Whether there's such a module. Only files are looked at: setuptools, asked for `distutils`, would replace it in
    this process. Cached, since a thousand cells can import the same ones."""
    there = name == "__main__" or name in sys.stdlib_module_names
    return there or importlib.machinery.PathFinder.find_spec(name) is not None


def _steps(problems: ProblemSet, cells: Sequence[Cell]) -> tuple[Step, ...]:
    exercises = {exercise.name: exercise for exercise in problems.exercises}
    named_tests = {f"test_{name}": exercise for name, exercise in exercises.items()}
    tests = {Cell(exercise.tests).plain: exercise for exercise in problems.exercises}
    ours = {cell.plain: cell for cell in problems.cells if not cell.name}
    steps: list[Step] = []
    for cell in cells:
        # Some tools drop the marks of cells; a test cell is then known by its text.
        if judged := named_tests.get(cell.name) if cell.name else tests.get(cell.plain):
            steps.append(Step(cell, Kind.CHECK, judged))
        elif not cell.name and cell.plain in ours:
            steps.append(Step(ours[cell.plain], Kind.OURS))
        else:
            steps.append(Step(cell, Kind.THEIRS, exercises.get(cell.name)))
    # An exercise is judged once: at the last of its test cells, else below its answer, else at the end.
    for exercise in problems.exercises:
        places = [n for n, step in enumerate(steps) if step.kind is Kind.CHECK and step.exercise is exercise]
        for number in reversed(places[:-1]):
            del steps[number]
        if not places:
            answers = [n for n, step in enumerate(steps) if step.exercise is exercise]
            check = Step(Cell("", f"test_{exercise.name}"), Kind.CHECK, exercise)
            steps.insert(answers[-1] + 1 if answers else len(steps), check)
    return tuple(steps)


@functools.lru_cache(maxsize=1024)
def asked(exercise: Exercise) -> frozenset[str]:
    """The names that an exercise asks for: those that its solution defines and its check uses."""
    tried = {exercise.name}.union(*(_of_student(each.probe) for each in exercise.check.requirements))
    return frozenset(defined(exercise.solution)) & tried


def _of_student(probe: str) -> set[str]:
    """The names that a probe takes from the notebook: ``student.AdamW``."""
    nodes = [node for node in ast.walk(ast.parse(probe)) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "student"}


@functools.lru_cache(maxsize=1024)
def _changes(text: str) -> frozenset[str]:
    """Names of objects that one of our cells changes in place: ``sizes.append(5)``, ``model.scale = 2``.

    Modules aren't among them: ``torch.manual_seed(0)`` is for its own cell.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                places = targets
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                places = [target]
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                places = [method]
            case _:
                continue
        for place in places:
            inner = place
            while isinstance(inner, (ast.Attribute, ast.Subscript)):
                inner = inner.value
            if inner is not place and isinstance(inner, ast.Name):
                found.add(inner.id)
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def _imports(text: str) -> frozenset[str]:
    """The names that one of our cells imports."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return frozenset((each.asname or each.name).partition(".")[0] for node in nodes for each in node.names)


@functools.lru_cache(maxsize=1024)
def _names(text: str) -> Names:
    """The names of one of our cells, cached because every submission has the same ones."""
    return Names(sorted(defined(text)), sorted(used(text)))
