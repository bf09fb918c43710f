"""A liar handed in: whatever it is asked, it answers with a value that costs nothing to think of. It earns nothing.

It sits where an attacker would, in the student's process, between the judge's question and the answer.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder import project
from autograder.authoring import checks
from autograder.grading import judge, program, sandbox, source, suspicion
from autograder.grading.conversation import Conversation
from autograder.grading.exercises import Cell, Exercise, ProblemSet
from autograder.inside import names
from autograder.inside.limits import Limits
from autograder.inside.messages import Call, Names, Seen
from course_utils.testing import freeze, wire
from course_utils.testing.comparing import AT_MOST, BETWEEN, IGNORED, Comparison, compare
from course_utils.testing.plain import Raised
from course_utils.testing.rubric import Met

pytestmark = pytest.mark.sandboxed

LECTURES = source.lectures(project.SOLUTIONS)

# Runs in the first answer's cell. `lie` gets what a right answer would have done and the call, and gives the value. No
# lecture uses these names: a cell of a lecture that defined one would run in every grading.
LIAR = """
import dataclasses, math
import torch
import course_utils.testing as testing
from course_utils.testing import Raised

real_witness, first_told, known = testing.witness, [], [None]


def witness(target, args, kwargs):
    if target is remember:
        return real_witness(target, args, kwargs)
    asked = target if made_of_truth or not first_told else says_nothing  # what is not needed is not computed
    seen = real_witness(asked, args, kwargs)
    first_told.append(seen.value)
    told = lie(seen.value, (*args, *kwargs.values()), known[0])
    if told is seen.value:
        return seen
    about = dict(shape=None, stride=None, offset=None, dtype=None, device=None, requires_grad=None)
    if isinstance(told, torch.Tensor):
        about = dict(shape=tuple(told.shape), stride=told.stride(), offset=0, dtype=told.dtype, device="cpu",
                     requires_grad=told.requires_grad)
    return dataclasses.replace(seen, value=told, error=None, message="", **about)


def says_nothing(*args, **kwargs):
    return None


def remember(value):
    "What is to be told from now on."
    from copy import deepcopy  # here, because lectures have a `copy` of their own
    known[0] = deepcopy(value)  # its memory will have other arguments


def in_each(change, value):
    "All lists, tuples and tensors in a value, changed from the inside out."
    if isinstance(value, (list, tuple)) and type(value) is not torch.Size:
        return type(value)(change([in_each(change, item) for item in value]))
    if isinstance(value, dict):
        return {key: in_each(change, item) for key, item in value.items()}
    if isinstance(value, torch.Tensor) and value.dim():
        kept = change(list(value))
        return torch.stack(kept) if kept else value[:0]
    return value


def filled(number, value):
    "All numbers in a value, each replaced by one of its own type."
    if isinstance(value, torch.Tensor):
        return torch.full_like(value, number if value.is_floating_point() or math.isfinite(number) else 1)
    if isinstance(value, (list, tuple)) and type(value) is not torch.Size:
        return type(value)(filled(number, item) for item in value)
    if isinstance(value, dict):
        return {key: filled(number, item) for key, item in value.items()}
    if type(value) is int:
        return int(number) if math.isfinite(number) else number
    return type(value)(number) if type(value) in (bool, float, complex) else value


testing.witness = witness
"""
LIES = {
    "an empty list": "[]",
    "an empty tuple": "()",
    "an empty dict": "{}",
    "zero": "0",
    "one": "1",
    "nan": "math.nan",
    "infinity": "math.inf",
    "True": "True",
    "None": "None",
    "the first argument": "args[0] if args else None",
    "all arguments": "list(args)",
    "what the first call gave": "first_told[0]",
    "what is right in the requirement's first visible case": "known",
    "lists without their last": "in_each(lambda items: items[:-1], value)",
    "lists without anything": "in_each(lambda items: [], value)",
    "lists twice": "in_each(lambda items: items + items, value)",
    "lists of their first": "in_each(lambda items: items[:1] * len(items), value)",
    "lists backwards": "in_each(lambda items: items[::-1], value)",
    "only zeros": "filled(0, value)",
    "only ones": "filled(1, value)",
    "only nan": "filled(math.nan, value)",
    "only infinity": "filled(math.inf, value)",
}
# With an answer that does nothing, and these in place of every function of the course that a probe may call.
PATCHES = {"None": "None", "an empty list": "[]"}
# Spelled with getattr, because a cell that mentions that dict directly may use any name, and then all of the lecture's
# cells run.
PATCH = """
import sys, types

for its_name, a_module in list(getattr(sys, "modules").items()):
    if its_name.startswith("course_utils") and not its_name.startswith("course_utils.testing"):
        for an_attribute, its_value in list(vars(a_module).items()):
            if isinstance(its_value, types.FunctionType):
                setattr(a_module, an_attribute, lambda *args, **kwargs: LIE)
"""


class Told:
    """What the student's process answered, by exercise and requirement.

    A requirement that has failed a case isn't paid, so its other cases aren't asked: they all count as failed.
    ``knows`` has values, by exercise and requirement, that a liar is told before each call: no submission knows so well
    what it's asked about.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.by: dict[tuple[str, str], list[Any]] = {}
        self.how: dict[tuple[str, str], Comparison] = {}
        self.failed: dict[tuple[str, str], Any] = {}
        self.knows: dict[tuple[str, str], Any] = {}
        patch.setattr(judge, "_visible", functools.partial(self.judged, judge._visible))
        patch.setattr(judge, "_hidden", functools.partial(self.judged, judge._hidden))
        patch.setattr(judge, "_observe", self.observed)

    def judged(self, real: Any, exercise: Exercise, *rest: Any) -> Any:
        self.exercise = exercise.name
        return real(exercise, *rest)

    def begin(self, knows: dict[tuple[str, str], Any]) -> None:
        """Forget what was told: the next submission comes."""
        self.by.clear()
        self.failed.clear()
        self.knows = knows

    def observed(self, requirement: Any, case: Any, talk: Conversation, *rest: Any, real: Any = judge._observe) -> Any:
        key = self.exercise, requirement.text
        if key in self.failed:
            return self.failed[key], ""
        if key in self.knows:
            answer = talk.ask(Call("remember", (self.knows[key],), {}, ""))
            assert isinstance(answer, Seen) and answer.observation.error is None
        found = real(requirement, case, talk, *rest)
        if requirement.comparison.difference(found[0], case.expected) is not None:
            self.failed[key] = dict.fromkeys(requirement.comparison.parts) | {"value": Raised("NotAsked", "")}
        self.by.setdefault(key, []).append(found[0])
        self.how[key] = requirement.comparison
        return found

    def lied(self, key: tuple[str, str], truth: list[Any], *, derived: bool) -> bool:
        """Whether anything that was told is not the truth.

        What is ``derived`` from a right value may be as right, where a requirement is about its dtype, say, and not
        about the order of its numbers; but it is no smaller by right. A value that comes from nowhere is not.
        """
        told = self.by[key]
        if derived:
            how = self.how[key]
            kept = {name: rule for name, rule in how.rules.items() if rule not in (AT_MOST, BETWEEN)}
            bounded = [name for name, rule in how.rules.items() if rule == BETWEEN]  # right, whichever it is
            how = replace(how, rules=kept | dict.fromkeys(bounded, IGNORED))
            return any(how.difference(one, true) is not None for one, true in zip(told, truth, strict=True))
        pairs = zip(told, truth, strict=True)
        return any(compare(freeze(one["value"]), freeze(true["value"]), 0.0) is not None for one, true in pairs)


@pytest.fixture(scope="module")
def box() -> Iterator[sandbox.Sandbox]:
    with sandbox.Sandbox(Limits(seconds=1, seconds_in_all=20)) as found:
        yield found


@functools.cache
def with_few_cases(path: Path) -> ProblemSet:
    """A lecture's exercises with the edges and four drawn cases as hidden ones.

    What isn't paid for these isn't paid for a class's either, which has more of them.
    """
    lecture = source.read(path)
    hidden = {spec.cells.name: checks.hidden_check(spec, 0, drawn=4).pack() for spec in checks.specs(lecture)}
    return replace(lecture.problems, hidden=hidden)


def paid(problems: ProblemSet, box: sandbox.Sandbox, answers: dict[str, str]) -> set[tuple[str, str]]:
    """The requirements that were paid for, with their exercises."""
    marks, _ = judge.grade(problems, problems.answered(answers), box)
    return {(mark.exercise, text) for mark in marks for text, _, met in mark.requirements if met == "met"}


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lie_is_never_paid(path: Path, box: sandbox.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = with_few_cases(path)
    answers = {exercise.name: exercise.solution for exercise in problems.exercises}
    told = Told(monkeypatch)
    assert {exercise for exercise, _ in paid(problems, box, answers)} == answers.keys()
    truth = dict(told.by)
    first = problems.exercises[0].name
    visible = {key: outcomes[0]["value"] for key, outcomes in truth.items()}
    found = []
    for name, value in LIES.items():
        told.begin(visible if value == "known" else {})
        derived = "value" in value
        lie = f"def lie(value, args, known):\n    return {value}\n\n\nmade_of_truth = {derived}\n{LIAR}"
        for key in paid(problems, box, answers | {first: f"{answers[first]}\n\n\n{lie}"}):
            # A list that is the same backwards, and what has no list in it, is no lie.
            if told.lied(key, truth[key], derived=derived):
                found.append(f"{key}: {name}")
    assert not found


# Has learned what is right for some inputs, and has no idea of any other.
LEARNED = """
import hashlib
import course_utils.testing as testing
from course_utils.testing import wire

real_witness, learned = testing.witness, {learned!r}


def witness(target, args, kwargs):
    asked = hashlib.sha256(wire.pack([getattr(target, "__name__", ""), args, kwargs])).hexdigest()
    return real_witness(target if asked[:16] in learned else says_nothing, args, kwargs)


def says_nothing(*args, **kwargs):
    return None


testing.witness = witness
"""


def test_what_was_right_in_one_class_is_of_no_use_in_the_next(box: sandbox.Sandbox) -> None:
    """A table of the right answers to all visible inputs, and to all that were hidden in a class, earns all points of
    that class. In the next one, it earns no requirement whose inputs are drawn."""
    lecture = source.read(project.source_path("05_flops_and_mfu"))
    specs, learned = checks.specs(lecture), set()
    drawn = {(spec.cells.name, p.text) for spec in specs for p in spec.promises if p.domain is not None}
    first, second = ({spec.cells.name: checks.hidden_check(spec, seed) for spec in specs} for seed in (1, 2))
    for check in (*first.values(), *(exercise.check for exercise in lecture.problems.exercises)):
        for requirement in check.requirements:
            for case in requirement.cases:
                asked = hashlib.sha256(wire.pack([requirement.target, case.args, case.kwargs]))
                learned.add(asked.hexdigest()[:16])
    answers = {exercise.name: exercise.solution for exercise in lecture.exercises}
    answers[next(iter(answers))] += LEARNED.format(learned=learned)
    earned = [
        paid(replace(lecture.problems, hidden={name: check.pack() for name, check in each.items()}), box, answers)
        for each in (first, second)
    ]
    assert earned[0] == {(name, r.text) for name, check in first.items() for r in check.requirements}
    assert len(drawn) > 5 and not earned[1] & drawn


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_an_answer_that_does_nothing_is_never_paid_whatever_the_courses_helpers_are_made_to_say(path: Path) -> None:
    problems = with_few_cases(path)
    names = [asked for exercise in problems.exercises for asked in program.asked(exercise)]
    nothing = "\n".join(f"def {name}(*args, **kwargs): return None" for name in names)
    found = []
    # A probe whose helpers say nonsense may go on for ever; none of this needs a tenth of a second.
    with sandbox.Sandbox(Limits(seconds=0.15, seconds_in_all=20)) as box:
        for name, value in PATCHES.items():
            answers = {exercise.name: "" for exercise in problems.exercises}
            answers[problems.exercises[0].name] = nothing + PATCH.replace("LIE", value)
            found += [f"{exercise}: {name}" for exercise in paid(problems, box, answers)]
    assert not found


# Answers with summaries of numbers that nobody drew, and with numbers that are too simple to be those.
FORGER = """
import dataclasses
import torch
import course_utils.testing as testing

real_witness, all_summaries = testing.witness, {summaries!r}


def witness(target, args, kwargs):
    seen = real_witness(target, args, kwargs)
    if (kind := getattr(target, "__name__", "")) in all_summaries:
        return dataclasses.replace(seen, value=forged(all_summaries[kind], *args), error=None, message="")
    return seen


def forged(summary, *args):
    return {value}


def {name}(*args):
    return torch.zeros(2, 2)


testing.witness = witness
"""
FORGED = {
    "summary": "summary",
    "summaries": "[summary] * 20",
    "zeros": "torch.zeros(args[0] if isinstance(args[0], (list, tuple)) else 2)",
    "pairs of zeros": "[(torch.zeros(3, 4, dtype=torch.int64),) * 2]",
    "nothing": "[]",
}


@pytest.mark.parametrize(
    ("lecture", "name"), [("07_models_and_init", "truncated_normal"), ("09_training_loop", "get_batch")]
)
def test_a_made_up_summary_is_never_paid(lecture: str, name: str, box: sandbox.Sandbox) -> None:
    problems = checks.problems(source.read(project.source_path(lecture)))
    check = next(exercise.check for exercise in problems.exercises if exercise.name == name)
    summaries, asked = {}, {}
    for requirement in check.requirements:
        if requirement.summary:
            expected, rules = requirement.cases[0].expected["value"], requirement.comparison.rules
            value = {key: each if key not in rules else middle(each) for key, each in expected.items()}
            summaries[requirement.target] = asked[requirement.text] = value
            outcome = {"value": value, "mutated": []}
            assert requirement.comparison.difference(outcome, requirement.cases[0].expected) is None  # if believed
    assert len(asked) >= 2
    for forged in FORGED.values():
        answer = FORGER.format(name=name, summaries=summaries, value=forged)
        assert not {text for _, text in paid(problems, box, {name: answer})} & asked.keys()


def middle(bounds: Any) -> Any:
    """A value within bounds, or what is not bounds as it is."""
    if isinstance(bounds, (list, tuple)) and len(bounds) == 2 and all(type(each) in (int, float) for each in bounds):
        whole = all(type(each) is int for each in bounds)
        return sum(bounds) // 2 if whole else sum(bounds) / 2
    return [middle(each) for each in bounds] if isinstance(bounds, (list, tuple)) else bounds


# Saves nothing but where to look for it: on the function, in another file, on the class.
REMEMBERS = {
    "on the function": """
def save_checkpoint(path, model, optimizer, step, generator):
    kept = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    buffer = io.BytesIO()
    torch.save(kept, buffer)
    saved = save_checkpoint.__dict__.setdefault("saved", [])
    saved.append(buffer.getvalue())
    partial = path.with_name(path.name + ".partial")
    torch.save(len(saved) - 1, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    kept = torch.load(io.BytesIO(save_checkpoint.saved[torch.load(path)]))
""",
    "in another file": """
def save_checkpoint(path, model, optimizer, step, generator):
    kept = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    elsewhere = f"/tmp/{len(os.listdir('/tmp'))}.kept"
    torch.save(kept, elsewhere)
    partial = path.with_name(path.name + ".partial")
    torch.save(elsewhere, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    kept = torch.load(torch.load(path))
""",
    "on the class": """
    kept = []

    def state_dict(self):
        LossScaler.kept.append(vars(self).copy())
        return {"at": len(LossScaler.kept) - 1}

    def load_state_dict(self, state):
        vars(self).update(LossScaler.kept[state["at"]])
""",
}
LOADS = """    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    generator.set_state(kept[3])
    torch.set_rng_state(kept[4])
    return kept[2]
"""


@pytest.mark.parametrize("where", REMEMBERS)
def test_what_an_answer_only_remembers_is_not_saved(where: str, box: sandbox.Sandbox) -> None:
    scaler = where == "on the class"
    lecture = source.read(project.source_path("10_mixed_precision" if scaler else "09_training_loop"))
    exercise = next(each for each in lecture.exercises if each.name in ("save_checkpoint", "LossScaler"))
    begin, end = (exercise.solution.partition("    def state_dict")[0], "") if scaler else ("", LOADS)
    problems = checks.problems(lecture)
    saved = {r.text for each in problems.exercises for r in each.check.requirements if r.saves}
    assert saved <= {text for _, text in paid(problems, box, {exercise.name: exercise.solution})}
    marks, _ = judge.grade(problems, problems.answered({exercise.name: begin + REMEMBERS[where] + end}), box)
    (lines,) = (mark.requirements for mark in marks if mark.exercise == exercise.name)
    assert saved and {met for text, _, met in lines if text in saved} == {Met.HIDDEN.value}, lines


# What functions give that look at nothing.
CONSTANTS = {
    "0": "0",
    "1.0": "1.0",
    "neither infinite nor a number": "complex('nan+infj')",
    "zeros": "torch.zeros(4, 4)",
    "a pair of zeros": "(torch.zeros(4, 4), torch.zeros(4, 4))",
    "zeros like the first tensor": "next((torch.zeros_like(each) for each in args if torch.is_tensor(each)), 0)",
}


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_function_that_gives_a_constant_is_never_paid(path: Path, box: sandbox.Sandbox) -> None:
    """Not even for leaving everything as it was."""
    problems = with_few_cases(path)
    names = [asked for exercise in problems.exercises for asked in program.asked(exercise)]
    found = []
    for what, value in CONSTANTS.items():
        functions = [f"def {name}(*args, **kwargs): return {value}" for name in names]
        answers = {exercise.name: "" for exercise in problems.exercises}
        answers[problems.exercises[0].name] = "\n".join(["import torch", *functions])
        found += [f"{exercise}: {what}" for exercise in paid(problems, box, answers)]
    assert not found


@pytest.mark.parametrize(
    ("name", "code", "noted"),
    [
        ("get_batch", "from course_utils import data\nget_batch = data.get_batch", "data.get_batch"),
        ("get_batch", "from course_utils.data import get_batch", "course_utils.data.get_batch"),
        ("get_batch", "from course_utils import data as d\nget_batch = d.get_batch", "course_utils.data as d"),
        ("write_tokens", "import course_utils.data as d\nwrite_tokens = d.write_tokens", "course_utils.data as d"),
        (
            "warmup_cosine",
            "from course_utils import (\n    plots,\n    napkin as n,  # an alias\n)\nwarmup_cosine = n.step",
            "course_utils.napkin as n",
        ),
        ("get_batch", "get_batch = napkin.collectives.sent", "napkin.collectives.sent"),
        ("get_batch", "from course_utils import checkpoint, data, facts, plots\ndef get_batch(*rest): ...", None),
        ("write_tokens", "import ctypes\ndef write_tokens(path, tokens, vocab_size): ...", "ctypes"),
        ("get_batch", "with torch._C._DisableTorchDispatch():\n    pass\ndef get_batch(*rest): ...", "torch._C"),
        ("write_tokens", "def write_tokens(path, tokens, vocab_size):\n    data.get_batch(tokens)", None),
        ("get_batch", "def get_batch(tokens, *rest):\n    return mine(tokens.data, rest)", None),
        ("get_batch", "lib = data\nget_batch = lib.get_batch", "data"),
        ("get_batch", "get_batch = getattr(data, 'get_batch')", "getattr(data, 'get_batch'), data"),
        ("get_batch", "run = exec\nrun('def get_batch(*rest): ...')", "exec"),
        ("get_batch", "from multiprocessing.pool import ThreadPool\ndef get_batch(*rest): ...", "ThreadPool"),
        ("get_batch", "get_batch = data .get_batch", "data.get_batch"),
        ("get_batch", "import os, course_utils.data as d\nget_batch = d.get_batch", "course_utils.data as d"),
        ("get_batch", "from course_utils import \\\n  data as d\nget_batch = d.get_batch", "course_utils.data as d"),
        ("get_batch", "import course_utils as cu\nget_batch = cu.data.get_batch", "data.get_batch, course_utils as cu"),
        ("get_batch", "import os, course_utils\nlib = course_utils.data", "course_utils"),
        ("get_batch", "import course_utils.data as d, course_utils.device\nget_batch = d.get_batch",
         "course_utils.data as d"),
        ("get_batch", "import course_utils.device\nget_batch = course_utils.napkin.step", "napkin.step"),
        ("get_batch", "quoted = '\\''; lib = data #'\nget_batch = lib.get_batch", "data"),
        ("get_batch", "wide = '\uff02\uff02\uff02'\nlib = data", "data"),
        ("get_batch", "form = '\f#'; from course_utils.data import get_batch", "course_utils.data.get_batch"),
        ("get_batch", "# a comment\rfrom course_utils.data import get_batch", "course_utils.data.get_batch"),
        ("get_batch", "def get_batch(data, *rest):\n    return mine(data)", None),
        ("get_batch", "get_batch = data.𝐠et_batch", "data.get_batch"),
        ("get_batch", "from course_utils . data import get_batch as mine", "course_utils.data.get_batch as mine"),
        ("get_batch", "from course_utils.\\\n  data import get_batch as mine", "course_utils.data.get_batch as mine"),
        ("get_batch", "get_batch = (data.  # here\n get_batch)", "data.get_batch"),
        ("get_batch", "import pkgutil\nget_batch = pkgutil.resolve_name(name)", "pkgutil, resolve_name"),
        ("get_batch", "get_batch = runpy.run_module('course' + '_utils.data')['get_batch']", "run_module"),
        ("get_batch", "get_batch = runpy.run_path(data.__file__)['get_batch']", "run_path, data"),
        ("get_batch", "get_batch = data.__dict__['get_batch']", "data"),
        ("get_batch", "def get_batch(*rest, data=data):\n    lib = data\n    return lib.get_batch(*rest)", "data"),
        ("get_batch", "def get_batch(tokens, *rest):\n    data = tokens[:2]\n    return mine(data=data)", None),
        ("get_batch", "import\fcourse_utils.data as lib\nget_batch = lib.get_batch", "course_utils.data as lib"),
        ("get_batch", "text = \"\"\"\n# \"\"\"; get_batch = data.get_batch", "data.get_batch"),
        ("get_batch", "text = '\\\n# '; get_batch = data.get_batch", "data.get_batch"),
        ("get_batch", "text = '\u2028# '; get_batch = data.get_batch", "data.get_batch"),
        ("get_batch", "!echo \"\"\"Here\nget_batch = data.get_batch\ntext = \"\"\"there\"\"\"", "data.get_batch"),
        ("get_batch", "text = \"\"\"a\"\"\"R''; get_batch = data.get_batch; text = \"\"\"z\"\"\"", "data.get_batch"),
        ("get_batch", "def get_batch(*rest):\n    return mine(*rest)  # as data.get_batch does, but faster", None),
        ("get_batch", 'def get_batch(*rest):\n    """Like data.get_batch: \"mine\"."""\n    return mine(*rest)', None),
        ("get_batch", "# it isn't data.get_batch\ndef get_batch(*rest): ...", None),
        ("get_batch", '# """Windows of tokens.\nget_batch = data.get_batch\n# """', "data.get_batch"),
        ("get_batch", "a = '\"\"\"Windows of'\nget_batch = data.get_batch\nb = '\"\"\"'", "data.get_batch"),
        ("get_batch", "!true '''\nlib = data", "data"),
        ("get_batch", f"from course_utils.data import ({302 * chr(10)}get_batch)", "course_utils.data.get_batch"),
        ("get_batch", f"import {80 * 'os, '}course_utils.data as lib", "course_utils.data as lib"),
        ("get_batch", "def unused(data):\n    return 1\nlib = data", "data"),
        ("get_batch", "from course_utils import data\nlib = data", "data"),
        ("get_batch", "for lib in [data]: pass", "data"),
        ("get_batch", "for data in [data]:\n    lib = data", "data"),
        ("get_batch", "class Box:\n    data = data\nlib = Box.data", "data"),
        ("get_batch", "if True: import threading as th, signal", "signal, threading"),
        ("get_batch", "def get_batch(tokens, *rest):\n    for n, data in enumerate(tokens):\n        mine(data)", None),
        ("get_batch", "data = np.arange(9)\nmine = data\ndef get_batch(*rest): ...", None),
        ("get_batch", "from importlib import reload\ndef get_batch(model, *rest):\n    model.eval()", None),
        ("get_batch", 'def get_batch(*rest):\n    """\n    a version of data.get_batch\n    """\n    mine()', None),
        ("get_batch", "def get_batch(*rest):\n    print(f'exec time: {rest}')", None),
        ("get_batch", "def get_batch(*rest):\n    do = exec\n    eval(compile(rest))", "exec, compile"),
        ("get_batch", 'def get_batch(*rest):\n    """\n    from a signal, without copying\n    """', None),
        ("get_batch", "def get_batch(*rest):\n    fd = 3\n    os.close(fd)\n    f_fwd, f_back = 1, 2", None),
        ("get_batch", "from course_utils.testing import checking\nget_batch = checking", "course_utils.testing"),
        ("get_batch", "from course_utils.testing import check\ndef get_batch(*rest): ...", None),
        ("get_batch", "def get_batch(*rest):\n    # unlike os.read, in sys.modules\n    ...", None),
        ("get_batch", "def get_batch(tokens, *rest):\n    data = tokens[:2]\n    return mine(data)", None),
        ("get_batch", "def get_batch(tokens, *rest):\n    for data in tokens:\n        pass\n    return data", None),
        ("get_batch", "def get_batch(tokens, *rest):\n    with mine() as data:\n        return data", None),
    ],
)  # fmt: skip
def test_what_no_answer_needs_is_noted_for_a_person(
    name: str, code: str, noted: str | None, box: sandbox.Sandbox
) -> None:
    problems = checks.problems(source.read(project.source_path("09_training_loop")))
    _, notes = judge.grade(problems, problems.answered({name: code}), box)
    found = [note for note in notes if note.startswith(f"{name}: its code uses")]
    assert found == ([f"{name}: its code uses {noted}, which no answer needs; read it"] if noted else [])


@pytest.mark.parametrize(
    ("lecture", "name", "code", "noted"),
    [
        ("05_flops_and_mfu", "model_flops", "model_flops = lambda *both: count_flops(*both)", "count_flops"),
        ("05_flops_and_mfu", "model_flops", "def model_flops(*both):\n    work = count_flops\n    return work(*both)",
         "count_flops"),
        ("05_flops_and_mfu", "model_flops", "from course_utils.flops import count_flops\nmodel_flops = f", None),
        ("05_flops_and_mfu", "benchmark", "torch.backends.cudnn.benchmark = False\nbenchmark = f", None),
        ("03_strides_and_views", "shares_storage", "def shares_storage(a, b): return memory.same_storage(a, b)",
         "memory.same_storage"),
        ("05_flops_and_mfu", "model_flops", "count_flops = f\nmodel_flops = lambda *both: count_flops(*both)", None),
        ("00_napkin_math", "compute_optimal", "from course_utils.explorers.model_or_data import divided",
         "course_utils.explorers.model_or_data.divided"),
        ("12_scale", "ring_bytes", "from course_utils.explorers import sharding as s\nring_bytes = s.napkin",
         "course_utils.explorers.sharding as s"),
        ("02_dtypes", "decode", "def decode(bits, *how): return float_bits.decoded(how, bits)", "float_bits"),
        ("02_dtypes", "decode", "def decode(bits, *how):\n    float_bits.explore()", None),
        ("04_einops", "attention", "def attention(q, k, v):\n    patterns = 'b t e'\n    return patterns", None),
    ],
)  # fmt: skip
def test_functions_of_the_library_that_the_reference_does_without_are_noted(
    lecture: str, name: str, code: str, noted: str | None
) -> None:
    problems = checks.problems(source.read(project.source_path(lecture)))
    found = suspicion.notes(program.Program(problems, problems.answered({name: code})))
    assert found == ([f"{name}: its code uses {noted}, which no answer needs; read it"] if noted else [])


def test_no_reference_is_noted() -> None:
    for path in LECTURES:
        problems = checks.problems(source.read(path))
        right = {exercise.name: exercise.solution for exercise in problems.exercises}
        assert suspicion.notes(program.Program(problems, problems.answered(right))) == []


@pytest.mark.parametrize("said", ["*", "[", "x,(a+)+!", "x: all is well [bold]OK[/]", "(a+)+", "x as y.z"])
def test_nothing_but_names_of_an_import_gets_into_a_pattern_or_a_note(said: str) -> None:
    problems = checks.problems(source.read(project.source_path("00_napkin_math")))
    code = f'note = """\nfrom course_utils.explorers import {said}\n"""\n{"a" * 60} = 1'
    began = time.process_time()
    notes = suspicion.notes(program.Program(problems, problems.answered({"two_weeks": code})))
    assert time.process_time() - began < 10
    assert {each for note in notes for each in re.findall(r"explorers(\S*)", note)} <= {".*,", ".x,"}


@pytest.mark.parametrize(
    "line",
    [
        "from course_utils import ", "course_utils." + "a" * 60 + " ", "data." * 12, '"\\"', "\'\'\'", "\\",
        '"\n', "\ufdfa", "import a, ", '#"', '\\"""\n', "\\'''\n", "from course_utils import (", "x " + "# " * 9 + "'",
        "import threading: ", "class A: ", "data,", "for data in ", '"""A b ', "lib = data\n", "data, ",
    ],
)  # fmt: skip
def test_looking_for_what_no_answer_needs_takes_time_in_proportion_to_the_text(line: str) -> None:
    problems = checks.problems(source.read(project.source_path("09_training_loop")))
    began = time.process_time()
    suspicion.notes(program.Program(problems, problems.answered({"get_batch": f"lib = data\n{line * 20_000}\n\\"})))
    assert time.process_time() - began < 10  # twice the square of the text would take hours


IN_A_THREAD = {
    ("02_dtypes", "to_bfloat16_bits"): """
def to_bfloat16_bits(x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: x.to(torch.bfloat16).view(torch.int16).int() & 0xFFFF).result()
""",
    ("06_gradients_and_6n", "gradients_by_hand"): """
def by_autograd(x, w1, w2):
    w1, w2 = w1.clone().requires_grad_(), w2.clone().requires_grad_()
    return torch.autograd.grad((x @ w1 @ w2).square().mean(), [w1, w2])

def gradients_by_hand(x, w1, w2):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(by_autograd, x, w1, w2).result()
""",
}


@pytest.mark.parametrize(
    ("code", "noted"),
    [
        ("SGD = torch.optim.SGD", "torch.optim.SGD"),
        ("from torch import optim\nSGD = optim.sgd.SGD", "optim.sgd.SGD"),
        ("from torch.optim import SGD as Base\nclass SGD(Base): ...", "from torch.optim import SGD"),
        ("SGD = getattr(torch.optim, 'SGD')", "getattr(torch.optim, 'SGD')"),
        ("import torch.optim as o\nSGD = o.SGD", ".SGD"),
        ("class Mine:\n    class SGD(torch.optim.Optimizer): ...\nSGD = Mine.SGD", None),
        ("class Mine:\n    class SGD: ...\nMine = torch.optim\nSGD = Mine.SGD", ".SGD"),
        ("class SGD(torch.optim.Optimizer):\n    def step(self): self.group.sgd", None),
        ("class SGD(torch.optim.Adam): ...", ".Adam"),
        ("from torch.optim import RMSprop\nclass SGD(RMSprop): ...", "import RMSprop"),
        ("def step(self):\n    torch._fused_sgd_(self.params)", "torch._fused_sgd_"),
        ("step = torch.jit.script(torch.ops.aten.add_)", "torch.jit, torch.ops"),
        ("class SGD(vars(torch.optim)['AdaGrad'.title()]): ...", "vars(torch"),
        ("SGD = torch.optim.__dict__['SG' + 'D']", "torch.optim.__dict__"),
        ("SGD = torch.optim.𝐒GD", "torch.optim.SGD"),
        ("SGD = torch.optim. SGD", "torch.optim.SGD"),
        ("SGD = operator.attrgetter('SG' + 'D')(torch.optim)", "attrgetter"),
        ("from torch import _foreach_add_ as add", "from torch import _foreach_add_"),
        ("from torch import jit\nstep = jit.script(f)", "from torch import jit"),
        ("class M(torch.Tensor):\n    def __torch_dispatch__(self): ...", "__torch_dispatch__"),
        ("x = x.as_subclass(M)", "as_subclass"),
        ("class SGD(torch.optim.Optimizer): ...", None),
        ("class SGD(torch.optim.Optimizer):\n    def step(self):\n        self.SGD = 1", None),
    ],
)
def test_what_pytorch_has_under_an_exercises_name_is_noted(code: str, noted: str | None) -> None:
    problems = checks.problems(source.read(project.source_path("08_optimizers")))
    found = suspicion.notes(program.Program(problems, problems.answered({"SGD": code})))
    assert found == ([f"SGD: its code uses {noted}, which no answer needs; read it"] if noted else [])


@pytest.mark.parametrize(
    ("own", "noted"),
    [
        ("class Base(torch.optim.SGD): ...", True),
        ("def make():\n    return Base\n\nclass Base(torch.optim.Adam): ...", True),
        ("Base = object\nclass Other(torch.optim.SGD): ...", True),  # in a cell that the answer uses
        ("Base, _ = torch.optim.SGD, 1", True),
        ("if True:\n    Base = torch.optim.SGD", True),
        ("for Base in [torch.optim.SGD]: ...", True),
        ("from course_utils.napkin.work import training\nBase, _ = training, 1", True),
        ("from course_utils.napkin.work import training", False),  # no answer uses it
        ("class Mine:\n    class SGD(torch.optim.Optimizer): ...\nBase = Mine.SGD", False),
        ("class Base: ...", False),
        ("from torch.optim import SGD, Adam\nimport torch as Base", False),  # as many first cells do
    ],
)
def test_what_an_answer_takes_from_cells_of_the_students_own_is_noted(own: str, noted: bool) -> None:
    problems = checks.problems(source.read(project.source_path("08_optimizers")))
    cells = [Cell(own), *problems.answered({"SGD": "class SGD(Base):\n    pass"})]
    found = program.Program(problems, cells)
    for number in found.unread:
        text = found.steps[number].cell.text
        found.learn(number, Names(sorted(names.defined(text)), sorted(names.used(text))))
    assert bool(suspicion.notes(found)) is noted


@pytest.mark.parametrize(("lecture", "exercise"), IN_A_THREAD)
def test_what_a_probe_watches_for_cannot_happen_in_another_thread(
    lecture: str, exercise: str, box: sandbox.Sandbox
) -> None:
    problems = checks.problems(source.read(project.source_path(lecture)))
    code = "import torch\nfrom concurrent.futures import ThreadPoolExecutor\n" + IN_A_THREAD[lecture, exercise]
    marks, notes = judge.grade(problems, problems.answered({exercise: code}), box)
    [mark] = [mark for mark in marks if mark.exercise == exercise]
    assert mark.points == 0 and "can't start a thread or a process" in mark.message
    words = "ThreadPoolExecutor, concurrent"
    assert f"{exercise}: its code uses {words}, which no answer needs; read it" in notes


# Helpers that are there before a probe begins to watch, and the answer that they work for.
BESIDE = {
    "a thread": """
import queue
work, done = queue.Queue(), queue.Queue()
def serve():
    while True:
        done.put(bits(work.get()))
getattr(__import__("thread" "ing"), "Thread")(target=serve, daemon=True).start()
def to_bfloat16_bits(x):
    work.put(x)
    return done.get()
""",
    "a process": """
import multiprocessing
here, there = multiprocessing.Pipe()
def serve():
    while True:
        there.send(bits(torch.from_numpy(there.recv())).numpy())
multiprocessing.get_context("fork").Process(target=serve, daemon=True).start()
def to_bfloat16_bits(x):
    here.send(x.numpy())
    return torch.from_numpy(here.recv())
""",
}
BITS = "import torch\ndef bits(x):\n    return x.to(torch.bfloat16).view(torch.int16).int() & 0xFFFF\n"


@pytest.mark.parametrize("how", BESIDE)
def test_a_thread_or_process_that_was_there_before_a_probe_is_noted(how: str, box: sandbox.Sandbox) -> None:
    problems = checks.problems(source.read(project.source_path("02_dtypes")))
    _, notes = judge.grade(problems, problems.answered({"to_bfloat16_bits": BITS + BESIDE[how]}), box)
    note = "to_bfloat16_bits left a thread or a process running, which can do an answer's work unseen"
    assert any(note in each for each in notes), notes


def test_a_type_checker_that_refuses_a_hidden_input_is_for_a_person_to_look_at(box: sandbox.Sandbox) -> None:
    problems = checks.problems(source.read(project.source_path("00_napkin_math")))
    name = "compute_optimal"
    solution = next(each.solution for each in problems.exercises if each.name == name)
    imports = "from beartype import beartype\nfrom jaxtyping import jaxtyped\n"
    code = f"{imports}{solution}\n{name} = jaxtyped(typechecker=beartype)({name})"
    marks, notes = judge.grade(problems, problems.answered({name: code}), box)
    [mark] = [mark for mark in marks if mark.exercise == name]
    assert mark.points < mark.worth and any("a type checker (TypeCheckError) refused a hidden" in n for n in notes)


def test_the_courses_own_launch_leaves_nothing_running() -> None:
    problems = checks.problems(source.read(project.source_path("12_scale")))
    own = "from course_utils.ranks import launch\ndef hello(group):\n    return group.rank\nprint(launch(hello, 2))"
    answers = problems.answered({each.name: each.solution for each in problems.exercises})
    with sandbox.Sandbox() as box:  # with more time than the others here
        marks, notes = judge.grade(problems, [Cell(own), *answers], box)
    assert notes == [] and all(mark.points == mark.worth for mark in marks)


def test_a_process_that_an_answer_starts_is_refused_where_a_probe_watches(box: sandbox.Sandbox) -> None:
    problems = checks.problems(source.read(project.source_path("02_dtypes")))
    code = """
import multiprocessing
def to_bfloat16_bits(x):
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=lambda: there.send(bits(x).numpy()))
    child.start()
    return torch.from_numpy(here.recv())
"""
    marks, _ = judge.grade(problems, problems.answered({"to_bfloat16_bits": BITS + code}), box)
    [mark] = [mark for mark in marks if mark.exercise == "to_bfloat16_bits"]
    assert mark.points == 0 and "can't start a thread or a process" in mark.message


def test_threads_of_the_lectures_own_cells_are_not_noted() -> None:
    problems = checks.problems(source.read(project.source_path("12_scale")))
    first, *others = problems.answered({each.name: each.solution for each in problems.exercises})
    looks = Cell("names = globals()")  # a cell that may use any name: then all of the lecture's cells run
    with sandbox.Sandbox(Limits()) as box:
        marks, notes = judge.grade(problems, [first, looks, *others], box)
    assert not notes and all(mark.points == mark.worth for mark in marks)


def test_a_students_thread_is_noted_although_the_lecture_left_a_process() -> None:
    problems = checks.problems(source.read(project.source_path("12_scale")))
    first, *others = problems.answered({each.name: each.solution for each in problems.exercises})
    looks = Cell("names = globals()")  # a cell that may use any name: then all of the lecture's cells run
    starts = Cell(
        "import queue\nfrom logging.handlers import QueueListener\nheard = QueueListener(queue.Queue())\nheard.start()"
    )
    place = max(number for number, cell in enumerate(others) if cell.name.startswith("test"))
    with sandbox.Sandbox(Limits()) as box:
        _, notes = judge.grade(problems, [first, looks, *others[:place], starts, *others[place:]], box)
    assert any("left a thread or a process running" in note for note in notes), notes


@pytest.mark.parametrize(
    ("code", "answer", "noted"),
    [
        ("work = lambda *both: count_flops(*both)", "model_flops = lambda *both: work(*both)", "count_flops"),
        (
            "from torch.utils.flop_counter import FlopCounterMode as F_\nwork = F_",
            "model_flops = lambda *both: work(*both)",
            "FlopCounterMode, flop_counter",
        ),
        (
            "def work(\n    timing: int,\n    more: float,\n): return timing",
            "model_flops = lambda *both: work(*both)",
            "",
        ),
        ("from course_utils.flops import (\n    count_flops,\n)\nx = 1", "model_flops = lambda *both: 6", ""),
        ("mine = getattr(timing, 'x')", "model_flops = lambda *both: mine(*both)", "timing"),
        ("from course_utils import napkin", "model_flops = getattr(napkin, 'x')", "napkin"),
        ("from course_utils import napkin\nhelp(napkin.plan)", "model_flops = lambda *both: 6", ""),
        ("print(torch.__version__)\nfrom importlib.metadata import version", "model_flops = lambda *both: 6", ""),
    ],
)
def test_the_library_is_noted_behind_a_helper_and_not_where_nothing_needs_it(
    code: str, answer: str, noted: str, box: sandbox.Sandbox
) -> None:
    problems = checks.problems(source.read(project.source_path("05_flops_and_mfu")))
    cells = problems.answered({"model_flops": answer})
    place = next(number for number, cell in enumerate(cells) if cell.name == "model_flops")
    _, notes = judge.grade(problems, [*cells[:place], Cell(code), *cells[place:]], box)
    found = [note for note in notes if "which no answer needs" in note]
    assert [f"code uses {noted}, which no answer needs" in note for note in found] == [True] * bool(noted)


@pytest.mark.parametrize(
    "code",
    [
        "import course_utils.napkin as n",
        "import course_utils.flops as f",
        "from course_utils.flops import mfu as done",
        "from course_utils import flops as f",
    ],
)
def test_what_no_answer_needs_is_noted_in_a_helper_cell_too(code: str, box: sandbox.Sandbox) -> None:
    problems = checks.problems(source.read(project.source_path("05_flops_and_mfu")))
    first, *others = problems.answered({})
    _, notes = judge.grade(problems, [first, Cell(code), *others], box)
    assert [note for note in notes if "which no answer needs" in note], notes
