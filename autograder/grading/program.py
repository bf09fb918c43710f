"""Which cells of a student's notebook run, and where each exercise is judged.

A kernel runs all cells from top to bottom, and so does grading: helpers in a student's own cells, changed imports, and
answers retyped in other cells all count. Only cells that would take time without any effect are left out: unchanged
cells of the lecture that neither define a name that is used nor change the object behind such a name.

Names are found by parsing cells (:mod:`autograder.inside.names`). A student's cells are never parsed in this process:
the student's process reports what they define and use.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import itertools
import re
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from autograder.inside.messages import Names
from autograder.inside.names import defined, later, used

from .exercises import Cell, Exercise, ProblemSet
from .submission import made

# Characters of names that are kept of one notebook; a hostile one may have any number.
_NAMES = 1_000_000
# Most places at which names are looked up that a plan follows; a hostile notebook may have any number. Whoever has more
# gets all cells run.
_LOOKUPS = 50_000
# Names that every kernel has before its first cell.
_ALWAYS = frozenset(vars(builtins)) | {"__name__", "display", "get_ipython", "exit", "quit", "In", "Out", "_", "__"}
# Draws from PyTorch's, NumPy's or Python's common source of random numbers, which every cell that draws moves on.
_DRAWS = re.compile(
    r"\b(?:np|numpy)\.random\.(?!default_rng|Generator|RandomState|SeedSequence)\w+|(?<![.\w])random\.[a-z]\w*(?=\()|"
    r"\bfrom[ \t]+(?:numpy[ \t]+import[ \t]+random|(?:numpy\.)?random[ \t]+import)\b|"
    r"\btorch\.(?:rand\w*|normal|bernoulli|multinomial)\((?![^\n]{0,200}\bgenerator\b)|"
    r"\.(?:uniform|normal|random|bernoulli|exponential|geometric|cauchy|log_normal)_(?=\()(?![^\n]{0,200}\bgenerator\b)|"
    # Layers draw their weights, and dropout what it drops.
    r"\bnn\.(?:Linear|Bilinear|Embedding\w*|Conv\w+|LSTM\w*|GRU\w*|RNN\w*|Transformer\w*|MultiheadAttention)(?=\()|"
    r"\binit\.(?:\w+_)?(?:uniform|normal|orthogonal|sparse)_(?=\()|\b(?:alpha_|feature_)?dropout\d?d?(?=\()"
)
_SEEDS = re.compile(r"\b(?:manual_)?seed\(")
# Names under which a kernel keeps what cells displayed.
_DISPLAYED = frozenset(["Out", "_", "__", "___", "_oh"])
# Ways to look up a name that no cell mentions: `eval("std")`, `globals()["std"]`, `from __main__ import std`. Bounded,
# since a submission's thousand repetitions would otherwise be scanned a million times.
_BY_TEXT = re.compile(
    r"(?<![.\w])(?:eval|exec|locals)\s{0,9}\(|\b(?:vars|dir)\(\s{0,9}\)|globals|\bget_type_hints\b|\buser_ns\b|"
    r"\bget_ipython\b(?!\(\)\.(?:run_line_magic|config|events)\b)|\bgetmodule\b|\bsys\.modules\b|%who|"
    r"""(?<!=["'])(?<!= ["'])\b__main__\b"""
)
_SHELL = re.compile(r"(?:^|=)[ \t]{0,20}[!%]", re.MULTILINE)  # and `!echo $std`, `%time {std}`
# `import a, b.c as d`, also after `try:` and semicolons, `from a import b`, and `import_module("a")`.
_IMPORTED = re.compile(
    r"(?:^|[;:])[ \t]{0,40}(?:from[ \t]{1,9}([A-Za-z_]\w{0,60})[\w.]{0,100}[ \t]{1,9}import\b|"
    r"import[ \t]{1,9}([A-Za-z_][\w., \t]{0,300}))|"
    r"""\b(?:import_module|__import__)\([ \t]{0,9}["']([A-Za-z_]\w{0,60})""",
    re.MULTILINE,
)
# What imports define: `b` in `import a as b` and in `from a import b`, `a` in `import a.c`.
_BINDS = re.compile(
    r"(?:^|[;:])[ \t]{0,40}(?:import[ \t]{1,9}([\w., \t]{1,300})|"
    r"from[ \t]{1,9}[\w.]{1,200}[ \t]{1,9}import[ \t]{0,9}(\([^)]{0,1000}|[^\n;#]{0,300}))",
    re.MULTILINE,
)
_LAST_NAME = re.compile(r"(?:\bas[ \t]{1,9}|^\s{0,99}(?!\w{1,60}(?:\.\w{1,60}){0,9}[ \t]{1,9}as\b))(\w{1,60})")
_MODULES_FILE = re.compile(r"\b(\w+)(?:\.py\b|/)")
# Ways to ask the machine for something that may be missing without an error: files, environment variables, users,
# programs. Those that are also words of a comment count only in a call.
_ASKS = re.compile(
    r"(?m:^[ \t]{0,40}(?:\w{1,40}[ \t]?=[ \t]?)?(?:!|%(?:sx|system)\b))|%%(?:bash|sh|sx|system)\b|"
    r"\b(?:getenv|environ|open|glob|iglob|rglob|exists|is_file|isfile|is_dir|isdir|listdir|scandir|iterdir|getuser|"
    r"expanduser|subprocess|getoutput|[pP]open|is_available|device_count|cpu_count|get_num_threads|accelerator|"
    r"is_built|get_device_\w+)\b|\bdevice\.type(?=[ \t]?[!=]=)|(?<![.\w])device\b(?=\)?[ \t]?[!=]=)|"
    r"\b(?:cwd|getcwd|access|system|walk|which|load|loadtxt|genfromtxt|fromfile|memmap|"
    r"gethostname|urlopen|urlretrieve|getlines?|connect|read(?:_\w{1,20}|lines?|all|into)?)(?=\()|"
    r"\bsys\.(?:platform|version\w*|getwindowsversion)\b|\bos\.(?:name|uname)\b|(?<![.\w])platform\.\w+(?=\()|"
    r"\btorch\.version\.\w+|\btorch\.__version__|"
    # Not the machine; but it gives up after eight kinds of input, and hidden inputs are of more kinds than visible.
    r"\bfullgraph\b"
)
# Those of them that the student's own code may use for other purposes than the lecture does.
_ABOUT_PROCESSORS = frozenset(
    ["is_available", "device_count", "cpu_count", "get_num_threads", "accelerator", "is_built", "get_device_name"]
) | {"device", "device.type"}
# Errors whose cause may be a difference between this machine and the student's: packages, files, keyboard input, the
# operating system, GPUs, memory.
NOT_HERE = re.compile(
    r"(?:ModuleNotFound|FileNotFound|Permission|OS|BlockingIO|Memory|StdinNotImplemented|URL|HTTP|gai|g?herror|SSL|"
    r"Connect\w*|Dist\w*|NameResolution|MaxRetry|Tcl|NoSuchProcess|AccessDenied|Operational)(?:Error|error)?:|"
    r"Error: unsupported locale|"
    r".*(?:Address family not supported|cannot resolve|get(?:pw|gr)(?:uid|gid|nam)|not allowed to raise|NVIDIA|CUDA|"
    r"CuDNN|\bGPU\b|\bMPS\b|\bXPU\b|\baccelerator\b|(?-i:Windows)|latex|enforce fail|can't allocate|"
    r"can't start new thread|too many open files|no space left)|"
    # Other versions of Python or of a package than the student's. From 3.12 on, integers have `is_integer`, slices can
    # be hashed, paths have `walk`, fractions take formats, `in` takes an enumeration's values, and `super()` works in
    # comprehensions; later versions add arguments.
    r"AttributeError: module '[\w.]{1,60}' has no attribute|ImportError: cannot import name|"
    r"AttributeError: '(?:int|Fraction)' object has no attribute 'is_integer'|AttributeError:.*'from_number'|"
    r"AttributeError: '\w*Path' object has no attribute|TypeError: unhashable type: 'slice'|"
    r"TypeError: [\w.]{1,60}\(\) takes no keyword arguments|TypeError: no positional arguments expected|"
    r"TypeError: [\w.]{1,60}\(\) got an unexpected keyword argument '(?:autocommit|buffersize|case_sensitive|"
    r"delete_on_close|deprecated|eager_start|follow_symlinks|initial|method|newline|onexc|recurse_symlinks|strict|"
    r"walk_up)'|TypeError: Random\.expovariate\(\) missing 1|TypeError: only 0-dimensional arrays can be converted|"
    r"TypeError: unsupported (?:format string passed to Fraction|operand type\(s\) for 'in': .{1,60}'Enum)|"
    r"TypeError: super\(type, obj\): obj must be|"
    # Another build of PyTorch than the student's.
    r"KeyError: '\w{1,60}\.(?:all|small_pool|large_pool)\.|.*dummy base class|"
    # Because of a shell without a front end: missing magics, streams that aren't files, no kernel.
    r"UsageError:|UnsupportedOperation:|AttributeError:.*(?:Shell|kernel|parent_header)|KeyError:.*IPKernelApp",
    re.IGNORECASE,
)
# Ways to change names that the cell doesn't mention.
_CHANGES_ANYTHING = re.compile(r"import[ \t]{1,9}\*|^[ \t]{0,40}%(?:run|load|store|reset|env)", re.MULTILINE)
_ASSERTS = re.compile(r"^.{0,200}?\bassert\w{0,40}\b.{0,400}", re.MULTILINE)
_OURS = ("course_utils", "autograder")  # the parts of this project that a submission can import
# What may be a syntax error only in this Python: type parameters are from 3.12, exceptions without brackets from 3.14.
_NEWER = re.compile(
    r"^[ \t]{0,40}(?:type[ \t]{1,9}\w{1,60}[^=\n]{0,200}=|(?:async[ \t]{1,9})?(?:def|class)[ \t]{1,9}\w{1,60}[ \t]{0,9}"
    r"\[|except[ \t]{1,9}[\w.]{1,60}[ \t]{0,9},)",
    re.MULTILINE,
)
# From 3.12 on, what's in the braces of an f-string may be on several lines, and have the same quotes and backslashes.
_FORMATTED = re.compile(r"""\b(?:[rR]?[fFtT]|[fFtT][rR])["']""")
# Errors that a cell raises on every machine.
_EVERYWHERE = ("SyntaxError", "IndentationError", "TabError", "NotImplementedError")


class Kind(Enum):
    """The kinds of cells in a student's notebook."""

    OURS = auto()  # an unchanged cell of the lecture
    THEIRS = auto()
    CHECK = auto()  # a test cell: here the judge runs our tests, and the cell itself doesn't run


@dataclass(frozen=True)
class Step:
    """A cell at its position. ``exercise`` is the one that the cell answers, or the one that is judged here."""

    cell: Cell
    kind: Kind
    exercise: Exercise | None = None


class Program:
    """A student's notebook as a list of steps, identified by their index, and what happened to them.

    ``dropped`` has the steps that ended a process or took too long, with the reason; they don't run again. ``stopped``
    has those that raised an error, with the error.
    """

    def __init__(self, problems: ProblemSet, cells: Sequence[Cell]) -> None:
        self.problems = problems
        self.steps = _steps(problems, cells)
        self.dropped: dict[int, str] = {}
        self.stopped: dict[int, str] = {}
        self._defined: dict[int, Set[str]] = {}
        self._used: dict[int, Set[str]] = {}
        self._definers: dict[str, list[int]] = defaultdict(list)  # in order
        self._changers: dict[str, list[int]] = defaultdict(list)  # the lecture's cells, in order
        theirs = [number for number, step in enumerate(self.steps) if step.kind is Kind.THEIRS]
        looking = {number for number in theirs if _by_text(self.steps[number].cell.text)}
        # The student's cells that may use or change names that they don't mention. If one may use some, all of the
        # lecture's cells run.
        self._untold = looking | {n for n in theirs if _CHANGES_ANYTHING.search(self.steps[n].cell.text)}
        self._all = bool(looking)
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
        theirs = self.steps[number].kind is Kind.THEIRS
        self._all |= theirs and bool((_DISPLAYED & set(names.used)) - set(names.defined))
        self._defined[number], self._used[number] = frozenset(names.defined), frozenset(names.used) - _ALWAYS
        for name in self._defined[number]:
            self._definers[name] = sorted([*self._definers[name], number])

    def to_run(self) -> list[int]:
        """The cells to run and the steps at which to judge, in order. All names must be known."""
        # A hostile notebook can make planning take seconds, and every failed answer asks for the plan again.
        state = len(self._defined), len(self.dropped)
        if self._planned is None or self._planned[0] != state:
            self._planned = state, self._plan()
        return self._planned[1]

    def _plan(self) -> list[int]:
        everything = [number for number in range(len(self.steps)) if number not in self.dropped]
        if self._all:
            return everything
        # Names, with the step where each is looked up. What a function uses is looked up where it's called: in another
        # cell, or where the exercise is judged. Between its cell and that, the lecture may have redefined it.
        wanted: set[tuple[str, int]] = set()
        for number, step in enumerate(self.steps):
            if step.kind is Kind.THEIRS:
                wanted |= {(name, number) for name in self._used.get(number, ())}
            elif step.kind is Kind.CHECK and step.exercise is not None:
                wanted |= {(name, number) for name in self._behind(step.exercise)}
        chosen: set[int] = set()
        open_ = list(wanted)
        while open_:
            name, place = open_.pop()
            for source in self._sources(name, place):
                new = {(each, place) for each in self._later(source)}
                if self.steps[source].kind is Kind.OURS and source not in chosen:
                    chosen.add(source)
                    new |= {(each, source) for each in self._used[source]}
                new -= wanted
                wanted |= new
                open_ += new
            if len(wanted) > _LOOKUPS:
                return everything
        return [number for number in everything if self.steps[number].kind is not Kind.OURS or number in chosen]

    def excuses(self, place: int, points: float, calls: Sequence[str], *, hidden: bool) -> Iterator[str]:
        """Why the answer that's judged at a step may have failed through no fault of its own; most specific first.

        ``points`` are those that the cases that students see have earned, ``calls`` the reasons found in its calls,
        which had hidden inputs if ``hidden`` is True.
        """
        earned = self.steps[place].cell.earned
        if self._unanswered(place) and not (earned is not None and earned > points):
            return filter(None, ())
        if not hidden and earned is not None and earned <= points:
            calls = ()  # the student got the same result; of hidden inputs, no output of theirs says anything
        otherwise = functools.partial(self._otherwise, points=points)
        rest = (otherwise, self._not_installed, self._asks_the_machine)
        found = itertools.chain([self._out_of_reach(place)], dict.fromkeys(calls), (look(place) for look in rest))
        return filter(None, found)  # lazily: the caller may need only the first ones

    def _out_of_reach(self, place: int) -> str:
        """A note if the answer uses a name whose cell didn't run, didn't finish, or ran too late; or nothing."""
        exercise = self._judged(place)
        own, behind = self._answers(exercise), sorted(self._behind(exercise))
        ran = {n for n in self.to_run() if n < place and self.steps[n].kind is not Kind.CHECK} - self.stopped.keys()
        for name in behind:
            definers = self._definers.get(name, [])
            if any(number in ran or (number in own and number < place) for number in definers):
                continue  # if the answer's own cell stopped, its error says why
            for number in definers:
                what = f"it uses `{name}`, which {self.steps[number].cell.title} defines, and "
                if number in self.dropped:
                    return what + f"that cell was left out: {self.dropped[number]}"
                if self._as_at_home(number):
                    continue
                if number in self.stopped and number < place:
                    return what + f"that cell stopped with {self.stopped[number]:.300}"
                if self.steps[number].kind is Kind.CHECK:
                    return what + "code in a test cell does not count"
                return what + "that cell comes after its tests"
            asked_here = name in asked(exercise) and own
            if not asked_here and any(name in _names(cell.text).defined for cell in self.problems.cells):
                return f"it uses `{name}`, which is defined by a cell of the lecture that is not in this notebook"
        for name in sorted(asked(exercise)):
            for number in self._definers.get(name, []):
                if number >= place and number not in self.dropped and not self._as_at_home(number):
                    return f"{self.steps[number].cell.title} defines `{name}` again, too late for its tests"
        # A call may change its arguments or other state, which the cells' text doesn't show.
        for number in self._definers_of(behind):
            if number < place and self.steps[number].exercise is None:
                for below in range(number + 1, place):
                    shared = self._defined[number] & self._used.get(below, frozenset())
                    if self.steps[below].kind is Kind.OURS and below not in ran and shared:
                        return f"{self.steps[below].cell.title} uses the student's `{min(shared)}`, but did not run"
        for name in behind:
            for source in self._sources(name, place)[:1]:
                step = self.steps[source]
                first = step.cell.plain == self.problems.cells[0].plain  # imports and settings, which nobody changes
                if step.kind is not Kind.OURS or first:
                    continue
                for number in range(source + 1, place):
                    other = self.steps[number]
                    if other.kind is Kind.OURS and number not in ran and name in self._used[number]:
                        return f"it uses the lecture's `{name}`, and so does {other.cell.title}, which did not run"
        return ""

    def should_define(self, name: str) -> str:
        """The title of a cell that ran and defines a name according to its text, or of the lecture's that didn't run,
        or "".
        """
        gone = {*self.stopped, *self.dropped}
        kinds = [(n, self.steps[n].kind) for n in self._definers.get(name, ()) if n not in gone]
        found = [n for n, kind in kinds if kind is Kind.THEIRS] + [n for n, kind in kinds if kind is Kind.OURS]
        return self.steps[found[0]].cell.title if found else ""

    def _otherwise(self, place: int, points: float) -> str:
        """How the notebook's saved outputs differ from what happened here, up to this test cell, or nothing: a cell
        that stopped here ran to its end there, or the check gave more ``points``.

        If a cell stopped because something isn't here, the text doesn't show what it would have changed, so it may be
        any of the student's cells. If it stopped for another reason, the answer has to depend on it.
        """
        bearing, exercise = self._bearing_on(place), self._judged(place)
        for number, error in sorted(self.stopped.items(), key=lambda one: self.steps[one[0]].exercise is not exercise):
            unread = self._newer(number)  # so nobody knows which names it would have defined
            may_matter = number in bearing or NOT_HERE.match(error) or "ExceptionGroup" in error or unread
            if number < place and may_matter and not self._as_at_home(number):
                title = self.steps[number].cell.title
                return f"{title} stopped here with {error:.300}; check whether it also does on the student's machine"
        earned = self.steps[place].cell.earned
        if earned is not None and earned > points:
            return (
                f"its check shows {earned:g} points in the notebook, but the same cases earn {points:g} here: the code "
                "was changed afterwards, or something is missing here"
            )
        return ""

    def _not_installed(self, place: int) -> str:
        """A note about a module that isn't installed here and that the answer depends on, or nothing."""
        for number in self._bearing_on(place):
            cell = self.steps[number].cell
            for name in dict.fromkeys(_imported(cell.text)):
                if not installed(name) and name not in self._written:
                    return f"{cell.title} imports `{name}`, which isn't installed here"
        return ""

    @functools.cached_property
    def _written(self) -> frozenset[str]:
        """The names of files and folders of modules in the student's cells, which may have written them.

        All of them at once: there may be thousands of imports, and a search for each would read every cell.
        """
        theirs = (step.cell.text for step in self.steps if step.kind is Kind.THEIRS)
        return frozenset(name for text in theirs for name in _MODULES_FILE.findall(text))

    def _as_at_home(self, number: int) -> bool:
        """Whether a cell that stopped does so on the student's machine, too.

        If the notebook has its outputs, they tell. Otherwise it does with a syntax error, with a name that no cell
        defines (outside annotations), and if every assertion in it calls what an exercise asks for: then it's a test
        of that. (An assertion about a function of their own may be about the machine.)
        (PyTorch raises NotImplementedError on machines without an Apple GPU, and pathlib for a WindowsPath. What's a
        syntax error in this Python may be right in a newer one.)
        """
        if number not in self.stopped:
            return False
        cell, error = self.steps[number].cell, self.stopped[number]
        kind = error.partition(":")[0]
        if cell.ended is not None:
            return kind == cell.ended
        everywhere = kind in _EVERYWHERE and not NOT_HERE.match(error) and not self._newer(number)
        undefined = self._undefined(error) and not _annotates(cell.text, error)
        return everywhere or undefined or (kind == "AssertionError" and self._tests(cell.text))

    def _newer(self, number: int) -> bool:
        """Whether a cell stopped with what may be a syntax error only in this Python."""
        text = self.steps[number].cell.text
        written = _FORMATTED.search(text) or _NEWER.search(text)
        return self.stopped[number].startswith("SyntaxError:") and written is not None

    def _tests(self, text: str) -> bool:
        """Whether every line of a cell that asserts something names what an exercise asks for."""
        lines = [set(re.findall(r"\w+", line)) for line in _ASSERTS.findall(text)]
        names = frozenset().union(*map(asked, self.problems.exercises))
        return bool(lines) and all(words & names for words in lines)

    def _bearing_on(self, place: int) -> list[int]:
        """The student's cells above a step that can make a difference to the answer judged there.

        They are its own, those that define or use a name that it uses, and those whose effect no text tells. Modules
        don't count, or every cell would; and a cell that only calls the answer doesn't change it.
        """
        exercise = self._judged(place)
        modules = frozenset().union(*(_imports(cell.text) for cell in self.problems.cells))
        patches = _patches(asked(exercise))
        behind, own = self._behind(exercise) - modules, self._answers(exercise)
        called = behind - asked(exercise)
        return [
            number
            for number, step in enumerate(self.steps[:place])
            if step.kind is Kind.THEIRS
            and (
                number in own
                or not behind.isdisjoint(self._defined.get(number, ()))
                or not called.isdisjoint(self._used.get(number, ()))
                or number in self._untold
                or patches.search(step.cell.text)
            )
        ]

    def _undefined(self, error: str) -> bool:
        """Whether an error is about a name that no cell defines, here or in the lecture, and no editor or kernel: VS
        Code gives every notebook a `__vsc_ipynb_file__`, JupyterLab a `__session__`, and IPython keeps the results of
        cells as `_2`, with numbers that depend on what ran before.
        """
        found = re.match(r"NameError: name '(?!__|_i?\d*')(\w{1,100})' is not defined", error)
        ours = (_names(cell.text).defined for cell in self.problems.cells)
        return found is not None and found[1] not in self._definers and not any(found[1] in names for names in ours)

    def _asks_the_machine(self, place: int) -> str:
        """What the cells on which the answer depends ask the machine for, unlike the lecture's, or nothing. Code that
        looks for a file and goes on without it raises no error, so this matters if the notebook doesn't show its
        check's result.
        """
        if self.steps[place].cell.earned is not None:
            return ""
        ours = [*(cell.text for cell in self.problems.cells), *(each.solution for each in self.problems.exercises)]
        ordinary = {word for text in ours for word in _ASKS.findall(text)} - _ABOUT_PROCESSORS
        bearing = self._bearing_on(place)
        for number in bearing:
            cell = self.steps[number].cell
            if found := [word for word in _ASKS.findall(cell.text) if word not in ordinary]:
                return f"{cell.title} uses `{found[0]}`, and may depend on something that is missing here"
        return self._drawn(place, bearing)

    def _drawn(self, place: int, bearing: Sequence[int]) -> str:
        """A note if the answer may depend on random numbers that aren't the ones the student had, or nothing.

        They aren't if cells that were left out would have seeded the common source, or drawn from it. ``bearing`` are
        the cells on which the answer depends.
        """
        left_out = set(range(place)) - set(self.to_run())
        if not any(_DRAWS.search(self.steps[number].cell.text) for number in left_out):
            return ""
        for number in bearing:
            cell = self.steps[number].cell
            found = _DRAWS.search(cell.text)
            if found and self.steps[number].exercise is None and not _SEEDS.search(cell.text):
                return f"{cell.title} uses `{found[0]}`, which gives other numbers where all cells of the lecture run"
        return ""

    def _later(self, number: int) -> Set[str]:
        """Names that a cell's functions look up when they're called; of a student's cell, all that it uses."""
        step = self.steps[number]
        return _called(step.cell.text) if step.kind is Kind.OURS else self._used.get(number, frozenset())

    def _sources(self, name: str, place: int) -> list[int]:
        """The cells that determine a name's value at a place.

        First the cell that defines it: the last one above the place, or else the first one below. If it's a student's,
        then the last one of the lecture's above it. Then the lecture's cells that change the object between the first
        and the place.
        """
        found = [n for n in self._definers.get(name, ()) if self.steps[n].kind is not Kind.CHECK]
        above = [number for number in found if number < place]
        # `import torch.fx` leaves the name `torch` as `import torch` has made it.
        while len(above) > 1 and self._imports(above[-1], name) and self._imports(above[-2], name):
            above.pop()
        source = above[-1:] or found[:1]
        theirs = bool(above) and self.steps[above[-1]].kind is Kind.THEIRS
        # It may define the name only in an `if`, or in a function that nobody calls.
        ours = [n for n in above[:-1] if theirs and self.steps[n].kind is Kind.OURS]
        return source + ours[-1:] + [n for n in self._changers.get(name, ()) if source and source[0] < n < place]

    def _imports(self, number: int, name: str) -> bool:
        """Whether a cell is the lecture's and gives a name no other value than the module with that name."""
        step = self.steps[number]
        return step.kind is Kind.OURS and name in _modules(step.cell.text)

    def _answers(self, exercise: Exercise) -> list[int]:
        """The cells marked as an exercise's answer."""
        return [n for n, s in enumerate(self.steps) if s.exercise is exercise and s.kind is not Kind.CHECK]

    def _unanswered(self, place: int) -> bool:
        """Whether the cell of the exercise judged at a step is as it was handed out, and no other has a part in it."""
        exercise = self._judged(place)
        own, stub = self._answers(exercise), Cell(exercise.stub).plain
        if not own or self._untold or any(self.steps[number].cell.plain != stub for number in own):
            return False
        return {*self._bearing_on(place)} <= {*own} and not any(self._newer(number) for number in self.stopped)

    def _behind(self, exercise: Exercise) -> set[str]:
        """The names that an answer uses, the names used by the student's cells that define those, and so on."""
        found: set[str] = set()
        todo = set(asked(exercise)).union(*(self._used.get(number, ()) for number in self._answers(exercise)))
        while todo:
            found |= todo
            todo = set().union(*(self._used[number] for number in self._definers_of(todo))) - found
        return found

    def helpers(self, exercise: Exercise) -> list[int]:
        """The student's cells, apart from the answer's own, with functions, classes or variables that it uses."""
        behind = self._behind(exercise)
        theirs = (number for number in self._definers_of(behind) if self.steps[number].exercise is None)
        return [n for n in theirs if not behind.isdisjoint(self._made(n))]

    def _made(self, number: int) -> set[str]:
        """The names that a student's cell defines other than by imports alone."""
        text = self.steps[number].cell.text
        return made(text) | set(self._defined.get(number, ())) - _bound(text)

    def _judged(self, place: int) -> Exercise:
        """The exercise that's judged at a step."""
        exercise = self.steps[place].exercise
        assert exercise is not None
        return exercise

    def _definers_of(self, names: Collection[str]) -> list[int]:
        """The student's cells that define any of these names."""
        return sorted({n for name in names for n in self._definers.get(name, ()) if self.steps[n].kind is Kind.THEIRS})


def _imported(text: str) -> Iterator[str]:
    """The modules that code imports, in order, without what is below them."""
    for package, several, asked_for in _IMPORTED.findall(text):
        for name in several.split(",") if several else (package or asked_for,):
            if found := re.match(r"\s*([A-Za-z_]\w*)", name):
                yield found[1]


def _bound(text: str) -> set[str]:
    """The names that imports seem to define."""
    lists = (several or names.strip("( \t") for several, names in _BINDS.findall(text.replace("\\\n", " ")))
    return {found[1] for names in lists for each in names.split(",") if (found := _LAST_NAME.search(each))}


def _annotates(text: str, error: str) -> bool:
    """Whether the name that an error misses is in an annotation, which Python 3.14 doesn't evaluate."""
    name = error.split("'")[1]
    return re.search(rf"(?:->|:)[^\n=]{{0,100}}\b{name}\b", text) is not None


def _by_text(text: str) -> bool:
    """Whether code may look up names that it doesn't contain as names."""
    if _BY_TEXT.search(text):
        return True
    return any((mark := _SHELL.search(line)) and re.search(r"[${]", line[mark.end() :]) for line in text.splitlines())


@functools.lru_cache(maxsize=4096)
def installed(name: str) -> bool:
    """Whether a submission can import a module of this name.

    Searches files only, because asking every finder has side effects: setuptools, asked for `distutils`, would replace
    it in this process. And only files of the environment: unlike a submission, this process may import from its working
    folder or from an editable installation. Cached, since a thousand cells may import the same ones.
    """
    if name == "__main__" or name in sys.stdlib_module_names or name in _OURS:
        return True
    shown = {sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib")}
    places = [place for place in sys.path if place in shown or place.startswith("/usr/")]
    return importlib.machinery.PathFinder.find_spec(name, [*shown, *places]) is not None


def _steps(problems: ProblemSet, cells: Sequence[Cell]) -> tuple[Step, ...]:
    exercises = {exercise.name: exercise for exercise in problems.exercises}
    named_tests = {f"test_{name}": exercise for name, exercise in exercises.items()}
    tests = {Cell(exercise.tests).plain: exercise for exercise in problems.exercises}
    ours = {cell.plain: cell for cell in problems.cells if not cell.name}
    steps: list[Step] = []
    for cell in cells:
        # Some tools drop cells' metadata; then a test cell is recognized by its text.
        if judged := named_tests.get(cell.name) if cell.name else tests.get(cell.plain):
            steps.append(Step(cell, Kind.CHECK, judged))
        elif not cell.name and cell.plain in ours:
            steps.append(Step(ours[cell.plain], Kind.OURS))
        else:
            steps.append(Step(cell, Kind.THEIRS, exercises.get(cell.name)))
    # An exercise is judged once: at the last of its test cells (of those with metadata, if any has), else below its
    # answer, else at the end.
    for exercise in problems.exercises:
        places = [n for n, step in enumerate(steps) if step.kind is Kind.CHECK and step.exercise is exercise]
        last = next((n for n in reversed(places) if steps[n].cell.name), places[-1] if places else None)
        for number in reversed(places):  # copies, such as a `check("…")` in a cell of the student's own
            if number != last:
                del steps[number]
        if not places:
            answers = [n for n, step in enumerate(steps) if step.exercise is exercise]
            check = Step(Cell("", f"test_{exercise.name}"), Kind.CHECK, exercise)
            steps.insert(answers[-1] + 1 if answers else len(steps), check)
    return tuple(steps)


@functools.lru_cache(maxsize=1024)
def asked(exercise: Exercise) -> frozenset[str]:
    """The names that an exercise asks for: those defined by its solution and used by its check."""
    tried = {exercise.name}.union(*(_of_student(each.probe) for each in exercise.check.requirements))
    return frozenset(defined(exercise.solution)) & tried


def _of_student(probe: str) -> set[str]:
    """The names that a probe takes from the notebook: ``student.AdamW``."""
    nodes = [node for node in ast.walk(ast.parse(probe)) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "student"}


@functools.lru_cache(maxsize=1024)
def _patches(names: frozenset[str]) -> re.Pattern[str]:
    """Code that changes what's behind one of these names: ``LossScaler.scale = mine``, ``setattr(LossScaler, …``."""
    any_of = "|".join(sorted(map(re.escape, names)))
    return re.compile(rf"\b(?:{any_of})[ \t]?[.\[][\w.\[\]\"' ]{{0,100}}=(?!=)|\bsetattr\([ \t]*(?:{any_of})\b")


@functools.lru_cache(maxsize=1024)
def _changes(text: str) -> frozenset[str]:
    """Names whose objects one of the lecture's cells may change in place: ``sizes.append(5)``, ``model.scale = 2``."""
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
    """The names that one of the lecture's cells imports."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return frozenset((each.asname or each.name).partition(".")[0] for node in nodes for each in node.names)


@functools.lru_cache(maxsize=1024)
def _modules(text: str) -> frozenset[str]:
    """The names that one of the lecture's cells defines by ``import torch`` or ``import torch.fx``, and in no other
    way."""
    tree = ast.parse(text)
    lines = [node for node in tree.body if isinstance(node, ast.Import) and not any(each.asname for each in node.names)]
    tree.body = [node for node in tree.body if node not in lines]
    names = frozenset(each.name.partition(".")[0] for node in lines for each in node.names)
    return names - defined(ast.unparse(tree))


@functools.lru_cache(maxsize=1024)
def _called(text: str) -> frozenset[str]:
    """The names that functions of one of the lecture's cells look up when they're called."""
    return frozenset(later(text)) - _ALWAYS


@functools.lru_cache(maxsize=1024)
def _names(text: str) -> Names:
    """The names of one of the lecture's cells, cached because every submission has the same ones."""
    return Names(sorted(defined(text)), sorted(used(text)))
