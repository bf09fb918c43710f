"""Which of a lecture's cells are run to grade a notebook."""

from __future__ import annotations

import re
import sys
import time

import pytest
from hand_made import check_of

from autograder.grading import judge
from autograder.grading.exercises import Cell, Exercise, ProblemSet
from autograder.grading.program import NOT_HERE, Kind, Program
from autograder.grading.sandbox import Sandbox
from autograder.inside.messages import Names, Ran, Run
from autograder.inside.names import defined, used
from course_utils.testing.comparing import Comparison
from course_utils.testing.requirements import Case, Check, Requirement

ANSWER = "def f(x):\n    return torch.relu(x)"


def problems_of(*lecture: str) -> ProblemSet:
    exercise = Exercise("f", 1.0, lecture[0], ANSWER, 1, check_of("f", 1, {1: 1}).pack())
    return ProblemSet("20_ours", (exercise,), tuple(map(Cell, lecture)))


def read(problems: ProblemSet, *cells: Cell) -> Program:
    program = Program(problems, [*cells, Cell('check("f")', "test_f")])
    for number in program.unread:
        text = program.steps[number].cell.text
        program.learn(number, Names(sorted(defined(text)), sorted(used(text))))
    return program


def runs(setup: str, later: str, *theirs: str) -> bool:
    """Whether the lecture's later cell runs, if the answer below it uses the name ``torch``.

    ``theirs``: the student's cells between the lecture's two.
    """
    program = read(problems_of(setup, later), Cell(setup), *map(Cell, theirs), Cell(later), Cell(ANSWER, "f"))
    ran = [program.steps[number].cell.text for number in program.to_run()]
    assert ANSWER in ran
    return later in ran


@pytest.mark.parametrize(
    "later", ["import torch.fx", "import re\nimport torch.fx, torch._dynamo\n\nprint(re, torch.fx)"]
)
def test_a_cell_that_imports_a_submodule_isnt_run_for_the_name_of_its_package(later: str) -> None:
    assert not runs("import math\n\nimport torch", later)
    assert not runs("import math\n\nimport torch", later, "x = 5")


@pytest.mark.parametrize(
    "later",
    [
        "import torch.fx as torch",
        "from course_utils import torch",
        "import torch.fx\n\ntorch = 5",
        "import torch.fx\n\n\ndef torch():\n    pass",
        "import torch.fx\n\n\ndef change():\n    global torch\n    torch = 5",
        "if True:\n    import torch.fx",
        "with open('a') as torch:\n    import torch.fx",
    ],
)
def test_one_that_may_give_the_name_another_value_is_run(later: str) -> None:
    assert runs("import torch", later)


@pytest.mark.parametrize(
    "setup, theirs",
    [
        ("import torch", "torch = 5"),
        ("import numpy as torch", ""),
        ("from einops import torch", ""),
        ("import math", ""),
    ],
)
def test_one_that_brings_the_module_back_is_run(setup: str, theirs: str) -> None:
    assert runs(setup, "import torch.fx", *filter(None, [theirs]))


@pytest.mark.parametrize(
    "asks",
    ["os.path.isfile('a')", "os.path.isdir('a')", "Path('a').is_file()", "next(os.walk('a'), 0)",
     "any(Path().iterdir())", "os.access('a', 4)", "shutil.which('a')", "which('a')", "os.system('a') == 0",
     "os.popen('a').read()", "subprocess.Popen('a')", "os.path.exists('a')", "os.environ.get('A')", "glob('*')",
     "torch.cuda.is_available()", "os.cpu_count() > 2", "torch.get_num_threads() > 2", "sys.platform == 'win32'",
     "Path.cwd().name == 'a'", "os.getcwd() == 'a'", "str(device) == 'cuda'"],
)  # fmt: skip
def test_a_person_looks_at_a_wrong_answer_that_asks_the_machine_for_something(asks: str) -> None:
    def reasons(lecture: str, answer: str) -> list[str]:
        program = read(problems_of("import os", lecture), Cell("import os"), Cell(answer, "f"))
        return list(program.excuses(2, 0, (), hidden=False))

    answer = f"def f(x):\n    return 1 if {asks} else 2"
    [why] = reasons("pass", answer)
    assert "may depend on something that is missing here" in why
    processors = re.search(
        "is_available|cpu_count|get_num_threads|device", asks
    )  # what they're used for is another matter
    assert bool(reasons(f"print({asks})", answer)) == bool(processors)  # the lecture asks for such things, too
    assert reasons("pass", "def f(x):\n    return 2  # which system does random access, or a walk?") == []


@pytest.mark.parametrize("patch", ["F.go = mine", "F.names['go'] = mine", "setattr(F, 'go', mine)"])
def test_a_cell_that_patches_the_answer_has_a_part_in_it(patch: str) -> None:
    def reasons(text: str) -> list[str]:
        program = read(problems_of("pass", "pass"), Cell("class f: ...", "f"), Cell(text))
        program.stopped[1] = "RuntimeError: not on this machine"
        return list(program.excuses(2, 0, (), hidden=False))

    [why] = reasons(f"assert here()\n{patch.replace('F', 'f')}")
    assert "stopped here with RuntimeError: not on this machine" in why
    assert reasons("assert here()\nf.go(x=1)") == []  # it only calls the answer


def test_a_wrong_answer_made_of_random_numbers_is_looked_at_if_a_cell_that_draws_did_not_run() -> None:
    def reasons(lecture: str, theirs: str) -> list[str]:
        cells = Cell(lecture), Cell(theirs), Cell("def f(x):\n    return order", "f")
        return list(read(problems_of("pass", lecture), *cells).excuses(3, 0, (), hidden=False))

    [why] = reasons("print(np.random.rand(3))", "order = np.random.permutation(4)")
    assert "uses `np.random.permutation`, which gives other numbers where all cells of the lecture run" in why
    assert reasons("print(np.ones(3))", "order = np.random.permutation(4)") == []
    assert reasons("print(np.random.rand(3))", "np.random.seed(1)\norder = np.random.permutation(4)") == []
    assert reasons("print(np.random.rand(3))", "order = np.random.default_rng(0).permutation(4)") == []
    assert reasons("print(torch.rand(3))", "order = torch.randperm(4, generator=mine)") == []


def test_names_in_annotations_that_are_only_texts_and_before_an_operator_are_used() -> None:
    text = "from __future__ import annotations\n@go.register\ndef _(rate: Card) -> list[Price]:\n    n: Kind = 1\n"
    assert {"Card", "Price", "Kind", "go"} <= used(text)
    assert used("def f(p):\n    p -= 1") == set() == used("class A:\n    def f(self):\n        n = 0\n        n += 1")
    assert used("if True:\n    total += 1") == {"total"} and used("annotations: total = (") == set()


@pytest.mark.sandboxed
def test_a_shell_cell_leaves_no_thread(box: Sandbox) -> None:
    with box.conversation() as talk:
        for text in ("%%bash\necho hello", "%%sh --out said\necho hello"):
            ran = talk.ask(Run(text))
            assert isinstance(ran, Ran) and not ran.error and not ran.company
        ran = talk.ask(Run("assert said == 'hello\\n'"))
        assert isinstance(ran, Ran) and not ran.error


@pytest.mark.sandboxed
@pytest.mark.parametrize(
    "asks",
    ["import urllib.request\nurllib.request.urlopen('https://example.com')",
     "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)",
     "import socket\nsocket.getaddrinfo('example.com', 80)",
     "import pwd\npwd.getpwuid(1234)", "import pwd\npwd.getpwnam('ada')",
     "import pathlib\npathlib.Path('/proc').group()", "import psutil\npsutil.Process(1)",
     "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (2**19, 2**20))",
     "import urllib3\nurllib3.PoolManager().request('GET', 'https://example.com')",
     "import sqlite3\nsqlite3.connect('/home/ada/points.db')",
     "open('data.csv')", "import a_package_that_is_not_here",
     "import torch\ntorch.zeros(1, device='cuda')",
     "import torch\ntorch.zeros(2**50)", "import torch\ntorch.ones(1).pin_memory()",
     "import torch\ntorch.accelerator.synchronize()"],
)  # fmt: skip
def test_errors_about_what_a_sandbox_lacks_are_for_a_person_to_look_at(asks: str, box: Sandbox) -> None:
    with box.conversation() as talk:
        ran = talk.ask(Run(asks))
    assert isinstance(ran, Ran) and NOT_HERE.match(ran.error), ran


@pytest.mark.parametrize(
    "error",
    [
        "AttributeError: 'int' object has no attribute 'is_integer'",
        "AttributeError: 'PosixPath' object has no attribute 'walk'",
        "AttributeError: type object 'float' has no attribute 'from_number'",
        "AttributeError: module 'torch' has no attribute 'of_the_future'",
        "TypeError: unhashable type: 'slice'",
        "TypeError: only 0-dimensional arrays can be converted to Python scalars",
        "TypeError: Random.expovariate() missing 1 required positional argument: 'lambd'",
        "TypeError: math.nextafter() takes no keyword arguments",
        "TypeError: str.replace() takes no keyword arguments",
        "TypeError: map() takes no keyword arguments",
        "TypeError: functools.reduce() takes no keyword arguments",
        "TypeError: NamedTemporaryFile() got an unexpected keyword argument 'delete_on_close'",
        "TypeError: Path.exists() got an unexpected keyword argument 'follow_symlinks'",
        "TypeError: unsupported format string passed to Fraction.__format__",
        "TypeError: unsupported operand type(s) for 'in': 'str' and 'EnumType'",
        "TypeError: super(type, obj): obj must be an instance or subtype of type",
        "RuntimeError: please choose a GPU runtime",
        "RuntimeError: Tried to instantiate dummy base class Event",
        "KeyError: 'allocated_bytes.all.current'",
        "DistStoreError: Failed to init uv loop",
    ],
)
def test_errors_about_another_python_or_build_of_pytorch_are_for_a_person_to_look_at(error: str) -> None:
    assert NOT_HERE.match(error)


def test_a_forgotten_return_is_nothing_to_look_at() -> None:
    assert not NOT_HERE.match("AttributeError: 'NoneType' object has no attribute 'shape'")


@pytest.mark.sandboxed
def test_a_cell_finds_the_arguments_of_a_kernel(box: Sandbox) -> None:
    parses = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('-f')\nassert parser.parse_args().f"
    )
    with box.conversation() as talk:
        ran = talk.ask(Run(parses))
    assert isinstance(ran, Ran) and ran.error == ""


def test_a_name_that_is_not_defined_is_not_taken_for_an_operating_system() -> None:
    assert not NOT_HERE.match("NameError: `sliding_windows` is not defined: run the cell that defines it first")


def _since(*version: int) -> pytest.MarkDecorator:
    return pytest.mark.skipif(sys.version_info >= version, reason=f"right since Python {version}")


@pytest.mark.sandboxed
@pytest.mark.parametrize(
    "stops",
    ["import torch\ntorch.ones(1, device='mps')", "import pathlib\npathlib.WindowsPath('a')",
     "print(__file_of_an_editor__)",
     pytest.param("print(f'{'\\n'.join(['a'])}')", marks=_since(3, 12)),
     pytest.param("def g(x: Optional[int]): ...", marks=_since(3, 14))],
)  # fmt: skip
def test_a_helpers_cell_that_stops_only_here_is_for_a_person_to_look_at(stops: str, box: Sandbox) -> None:
    cells = [Cell("import os"), Cell(f"{stops}\nONE = 1"), Cell("def f(x):\n    return x * ONE", "f")]
    [mark], notes = judge.grade(problems_of("import os"), [*cells, Cell('check("f")', "test_f")], box)
    assert mark.points == 0 and any("stopped here with" in note for note in notes), notes


@pytest.mark.sandboxed
def test_an_error_is_for_a_person_to_look_at_if_one_of_its_base_classes_is(box: Sandbox) -> None:
    answer = "class Unreachable(ConnectionError):\n    pass\n\ndef f(x):\n    raise Unreachable('example.com')"
    cells = [Cell("import os"), Cell(answer, "f"), Cell('check("f")', "test_f")]
    _, [note] = judge.grade(problems_of("import os"), cells, box)
    assert "here it ended with Unreachable: example.com" in note


@pytest.mark.sandboxed
def test_a_result_that_cannot_be_sent_is_for_a_person_to_look_at(box: Sandbox) -> None:
    cells = [Cell("import os"), Cell("def f(x):\n    return 10**100_000", "f"), Cell('check("f")', "test_f")]
    [mark], notes = judge.grade(problems_of("import os"), cells, box)
    assert mark.points == 0
    assert notes == ["f: what it returned cannot be sent to the grader: a whole number with too many digits"]


@pytest.mark.sandboxed
@pytest.mark.parametrize(("answer", "earned"), [("return 1", 0.0), ("return x", 1.0)])
@pytest.mark.parametrize("below", ["while True:\n    pass", "import os\nos._exit(1)"])
def test_what_hangs_or_ends_the_process_below_a_test_takes_nothing_away_and_gives_nothing(
    below: str, answer: str, earned: float, box: Sandbox
) -> None:
    """The hidden case is tried all the same: with the visible one alone, `return 1` would be right."""
    exercises = tuple(Exercise(n, 1.0, "import os", ANSWER, 1, check_of(n, 1, {1: 1}).pack()) for n in "fg")
    hidden = {n: check_of(n, 1, {2: 2}).pack() for n in "fg"}
    problems = ProblemSet("20_ours", exercises, (Cell("import os"),), hidden=hidden)
    cells = [Cell("import os"), Cell(f"def f(x):\n    {answer}", "f"), Cell('check("f")', "test_f"), Cell(below, "f")]
    cells += [Cell("def g(x):\n    return x", "g"), Cell('check("g")', "test_g")]
    marks, notes = judge.grade(problems, cells, box)
    assert [mark.points for mark in marks] == [earned, 1.0], notes


@pytest.mark.sandboxed
@pytest.mark.parametrize("ends", ["os._exit(1)", "while True: pass"])
@pytest.mark.parametrize(
    ("at", "met"),
    [
        ({2}, "met, not met, met, met"),
        ({6}, "met, not met, met, met"),
        ({2, 3}, "met, not met, not met, met"),
        ({30}, "met, met, not met on other inputs, met"),
        ({1, 20, 40}, "not met, not met on other inputs, met, not met on other inputs"),
        ({1, 2, 4}, ""),
        ({10, 20, 40}, ""),
    ],
)
def test_a_requirement_that_hangs_or_ends_the_process_costs_its_own_points_and_a_third_one_all(
    at: set[int], met: str, ends: str, box: Sandbox
) -> None:
    if ends == "while True: pass" and len(at) > 1:
        pytest.skip("each call takes all of its five seconds")

    def check(times: int) -> Check:
        """Four rules; the first has the cases 1 and 5, the last 4 and 8, each that many times."""
        case = [Case((n * times,), {}, {"value": n * times, "mutated": []}) for n in range(9)]
        rules = [
            Requirement(f"rule {n}", 1.0, "f", "", Comparison(), f"hint {n}", (case[n], case[n + 4]))
            for n in range(1, 5)
        ]
        return Check("f", tuple(rules), ())

    exercise = Exercise("f", 4.0, "import os", ANSWER, 1, check(1).pack())
    problems = ProblemSet("20_ours", (exercise,), (Cell("import os"),), hidden={"f": check(10).pack()})
    answer = f"def f(x):\n    if x in {at}:\n        {ends}\n    return x"
    cells = [Cell("import os"), Cell(answer, "f"), Cell('check("f")', "test_f")]
    [mark], notes = judge.grade(problems, cells, box)
    lines = [words for _, _, words in mark.requirements]
    assert ", ".join(lines) == met and mark.points == lines.count("met"), (mark, notes)
    notes = [note for note in notes if re.match("f: (the process ended|it took longer)", note)]
    assert len(notes) == len(at), notes
    first = min(at)
    if first >= 10:
        says = f"hint {first // 10}" if met else "It did not finish, or returned nothing usable"
        assert says in mark.message and "(" not in mark.message  # nothing about the inputs
    elif met:
        assert f"\nf({first})\n    got       no result: " in mark.message
        assert f"(tested: rule {(first - 1) % 4 + 1})" in notes[0]
    else:
        assert "Your code gave no result: " in mark.message


@pytest.mark.parametrize(
    "text",
    [
        "import my_tools",
        "try: import my_tools\nexcept ImportError: my_tools = None",
        "import os, my_tools.deep as tools",
        "import os; import my_tools as my",
        "with suppress(ImportError): import my_tools",
        "if True:\n    from my_tools.deep import f",
        'my = importlib.import_module("my_tools")',
    ],
)
def test_a_module_that_is_not_here_is_found_however_it_is_imported(text: str) -> None:
    program = read(problems_of("import torch"), Cell("import torch"), Cell(f"{text}\n\n{ANSWER}", "f"))
    assert "imports `my_tools`, which isn't installed here" in program._not_installed(len(program.steps) - 1)


def test_where_a_function_is_called_it_finds_what_the_lecture_has_redefined_by_then() -> None:
    setup, counts, again = "import torch\nx = 1", "def counted():\n    return x", "x = 2"
    problems = problems_of(setup, counts, again)
    for theirs in (["y = counted()"], ["def helper():\n    return counted()", "y = helper()"]):
        *before, last = map(Cell, theirs)
        program = read(
            problems, Cell(setup), Cell(counts), *before, Cell(again), last, Cell("def f(t):\n    return y", "f")
        )
        ran = [program.steps[number].cell.text for number in program.to_run()]
        assert again in ran
    program = read(problems, Cell(setup), Cell(counts), Cell("y = counted()"), Cell(again), Cell(ANSWER, "f"))
    assert again not in [program.steps[number].cell.text for number in program.to_run()]


def test_a_plan_that_would_take_long_runs_everything() -> None:
    names = [f"n{number}" for number in range(400)]
    uses = Cell("def f0():\n    return " + ", ".join(names))
    later = "def unused():\n    pass"
    cells = [Cell(f"{name} = f0()") for name in names]
    began = time.process_time()
    program = read(
        problems_of("import torch", later), Cell("import torch"), Cell(later), uses, *cells, Cell(ANSWER, "f")
    )
    assert later in [program.steps[number].cell.text for number in program.to_run()]
    assert time.process_time() - began < 20


def test_thousands_of_modules_that_are_not_here_are_looked_for_in_one_reading() -> None:
    words = Cell("x = '" + "word " * 20_000 + "'")
    imports = Cell("eval('1')\nif 0:\n" + "\n".join(f"    import a{n:05}  # a{n:05}/" for n in range(3_000)))
    program = read(problems_of("import torch"), Cell("import torch"), *50 * [words], imports, Cell(ANSWER, "f"))
    began = time.process_time()
    assert program._not_installed(len(program.steps) - 1) == ""
    assert time.process_time() - began < 10  # a search of every cell for each name would take minutes


def test_nobody_looks_at_an_exercise_that_was_left_as_it_was() -> None:
    problems = problems_of("pass", "pass")
    [exercise] = problems.exercises

    def reasons(answer: str, *more: str) -> list[str]:
        cells = [Cell("import os\nos.remove('x')"), Cell(answer, "f"), *map(Cell, more)]
        program = read(problems, *cells)
        program.stopped[0] = "FileNotFoundError: x"
        place = next(n for n, step in enumerate(program.steps) if step.kind is Kind.CHECK)
        return list(program.excuses(place, 0, (), hidden=False))

    assert reasons(exercise.stub) == []
    assert reasons("def f(x):\n    return 2") != []
    assert reasons(exercise.stub, "def f(x):\n    return 2") != []
