"""What a student's cells use that no answer needs: words that a person should read, whatever the code earned.

This looks at text, so it finds only what's written plainly; the threat model says what that's worth.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Set

import torch

from .exercises import Exercise
from .program import Kind, Program

# By what they're for; each is a part of a regular expression. Here and below, what a repetition scans is bounded, or is
# scanned once: otherwise a submission's thousand repetitions would be scanned a million times.
_ODD_WORDS = {
    "other frames, and the variables of functions": (
        r"_getframe",
        r"_current_frames",
        r"currentframe",
        r"inspect\.(?:stack|trace)",
        r"tb_frame",
        r"[.\x22\x27]f_(?:back|locals|globals|code)\b",
        r"__(?:globals|code|subclasses|builtins|closure|getattribute|bases|mro|loader|traceback)__",
        r"sys\.(?:settrace|setprofile)",
        r"sys\.monitoring",
        r"\bgc\.(?!collect|enable|disable|isenabled|get_stats|get_count)\w+",
    ),
    "memory, files and processes below Python's own": (
        r"ctypes",
        r"/proc\b",
        r"\bos\.(?:write|read|open|kill\w*|fork\w*|_exit|dup2?|closerange|pipe2?|exec\w+|symlink)\b",
    ),
    "other threads": (r"\bto_thread\b", r"\bThreadPool\w*", r"\brun_in_executor\b"),
    "the grader": (r"\bcourse_utils\b[ .]+(?:import )?testing", r"\bautograder\b"),
    "modules by another name": (
        r"sys\.(?:modules|meta_path|path_hooks)",
        r"\bbuiltins\b",
        r"__import__",
        r"\bimportlib\.(?!reload\b|metadata\b)\w+",
        r"\bfrom[ \t]+importlib\b(?!\.metadata\b|[ \t]+import[ \t]+reload\b)",
        r"\b(?:pkgutil|pydoc|resolve_name|run_module)\b",
        r"\brun_path\b(?!\(f\x22\{course\}/course_utils/colab\.py\x22\))",  # as the first cell does on Colab
    ),
    "code from text": (
        r"(?<![.\w])exec(?=[ \t]{0,9}\()",
        r"[=(,\[:][ \t]{0,9}exec\b",
        r"\b(?:return|or|and|else|yield|in)[ \t]{1,9}exec\b",
        r"(?<![.\w])compile\(",
        r"get_ipython\(\)\.(?:ex|run_cell)\b",
        r"\battrgetter\b",
        r"\b(?:fromhex|unhexlify|b64decode|b85decode)\b",
    ),
    "what PyTorch does below, or before, an operation": (
        r"Torch(?:Dispatch|Function)Mode",
        r"\b__torch_(?:dispatch|function)__",
        r"\b_python_dispatch\b",
        r"\bas_subclass\b",
        r"\b_make_\w*subclass\b",
        r"\b(?:make_fx|symbolic_trace)\b",
        r"\btorch\._C\b",
        r"\b_disable_current_modes\b",
        r"\b_engine_run_backward\b",
        r"\b_no_grad_\w+",
        r"\btorch\.(?:ops|jit|_(?!_|foreach_|int_mm|C\b)\w+)",
        r"\bfrom[ \t]+torch[\w.]{0,60}[ \t]+import[^\n]{0,200}?\b(?:jit\b|ops\b|_[a-z]\w*)",
        r"\bvars\([ \t]{0,9}(?:torch|nn|F|optim)\b",
        r"\b(?:torch|nn|F|optim)(?:\.\w{1,60}){0,3}\.__dict__",
    ),
}
_ODD = re.compile("|".join(word for words in _ODD_WORDS.values() for word in words))
# Modules that let code run while a probe does, or where a probe doesn't look: what it watches in torch, it watches in
# one thread. Elsewhere these words are names of tensors, too.
_ODD_MODULES = re.compile(
    r"(?:^|[:;])[ \t]*(import[ \t]+[^\n#;]*|from[ \t]+[\w.]{1,100}[ \t]+import\b[^\n#;]*)", re.MULTILINE
)
_ODD_NAMES = frozenset(["threading", "_thread", "concurrent", "atexit", "signal", "marshal", "mmap"])
# What the course's library has under an exercise's name.
_READY_MADE = r"\b(?:checkpoint|data|flops|timing)[ \t]{{0,9}}\.[ \t]{{0,9}}(?:{0})\b|\bnapkin\.[\w.]{{1,60}}"
# PyTorch's own function or class of the exercise's name: as an attribute, in an import, and by its text.
_TORCHS = (
    r"\b(?:torch|nn|F|optim)\.(?!backends\b)(?:\w+\.){{0,3}}(?i:{0})\b|"
    r"\bfrom[ \t]+torch[\w.]{{0,60}}[ \t]+import[^\n]{{0,200}}?\b(?i:{0})\b|"
    r"""\bgetattr\([^\n"']{{0,100}}["'](?i:{0})["']\)"""
)
# For PyTorch's classes: an attribute of whatever its module was called.
_CLASS = r"(?<!\w)(\w*+)(?<!\bself)(\.(?=[A-Z])(?i:{0}))\b"
_PYTORCH = frozenset(name.lower() for module in (torch, torch.nn, torch.optim) for name in dir(module))
_OWN_CLASS = re.compile(r"^[ \t]{0,40}class[ \t]{1,9}(\w{1,60})", re.MULTILINE)
_ASSIGNED = re.compile(r"\b(\w{1,60})[ \t]{0,9}=")
_OPTIMIZER = re.compile(  # one of PyTorch's, where the solution has none
    r"(?:(?<!\w)(\w*+)(?<!\bself)(?=\.)|(?=\bimport\b))"
    r"((?:\.|import\b[^\n]{0,200}?\b)"
    r"(?:Ada(?:m\w*|grad|delta|factor)|SGD|RMSprop|[NR]Adam|ASGD|Rprop|Muon|LBFGS|SparseAdam)\b)"
)
_EXPLORER = r"(?<![\w.]){0}\b(?!\.explore\b)"
# A module as a whole, as in `lib = data`.
_MODULE = re.compile(r"(?<![\w.])(checkpoint|data|flops|memory|napkin|timing)\b(?![ \t]{0,9}(?:\.(?!__)|\w))")
# A cell's own variable, parameter or import of that name.
_VARIABLE = (
    r"\b{0}[ \t]*(?::[^=\n]{{0,60}})?=[^=]|\b(?:as|import|def|class|lambda)\b[^\n:]{{0,100}}\b{0}\b|"
    r"\bfor\b[^\n:]{{0,100}}?\b{0}\b(?=[^\n:]{{0,60}}\bin\b)|"
    r"\b{0},[^\n=]{{0,60}}=[^=]|,[ \t]*{0}\b|\n[ \t]{{1,40}}{0}[ \t]*:[^=\n]{{1,60}},[ \t]*\n"
)
# Unless that variable is the module: `def get_batch(data=data)`, `data = data` in a class, `for data in [data]`.
_DEFAULT = (
    r"\b(?:def|lambda)\b[^\n]{{0,200}}\b{0}[ \t]*(?::[^=\n]{{0,60}})?=[ \t]*{0}\b|"
    r"(?m:^[ \t]*{0}[ \t]*=[ \t]*{0}[ \t]*$)|\bfor[ \t]+{0}[ \t]+in\b[^\n:]{{0,60}}\b{0}\b(?![.(\[])"
)
# A parameter's name is free in its function alone, so not where a line begins.
_AT_TOP = r"(?m:^\w[^\n=]*=[^\n=]*(?<![\w.]){0}[ \t]*$)"
_SET_AT_TOP = (
    r"(?m:^(?:{0}[ \t]*(?::[^=\n]*)?=(?!=)|"
    r"[^\n=]{{0,99}}(?:\b{0},|,[ \t]{{0,9}}{0}\b)[^\n=]{{0,99}}=|(?:for|with)\b[^\n]*\b{0}\b))"
)
# What computes by itself what several exercises ask for: PyTorch's counters and other ways to a derivative.
_TOOLS = re.compile(
    r"\b(?:FlopCounterMode|flop_counter|forward_ad|make_dual|gradcheck|get_numerical_jacobian|jvp|jacfwd|jacrev)\b|"
    r"\bfrom[ \t]+torch[\w.]{0,60}[ \t]+import[ \t]*\*|\btype\(\s?optimizer\s?\)(?!\.__name__)|"
    r"\breload\(\s?torch\b[\w.]{0,60}"
)
# Strings and comments. Whatever isn't closed ends with its line, or with the text: looking on from each quote in vain
# would take time with the square of their number.
_TEXT = re.compile(
    r"""\"{3}(?:\\(?:[\s\S]|\Z)|[^\\])*?(?:\"{3}|\Z)|'{3}(?:\\(?:[\s\S]|\Z)|[^\\])*?(?:'{3}|\Z)|"""
    r""""(?:\\[\s\S]|[^"\\\n])*+"?|'(?:\\[\s\S]|[^'\\\n])*+'?|#[^\n]*"""
)
# A docstring that begins with two words. If these were code after a string's end, they would be a syntax error, unless
# one is a keyword.
_NO_CODE = rf"(?!(?:{'|'.join([*keyword.kwlist, *keyword.softkwlist])})\b)"
_DOCSTRING = re.compile(rf"\"{{3}}\s*{_NO_CODE}[A-Za-z`]\w*`?[ \t]+{_NO_CODE}[A-Za-z`]\w*[^\w\"'][\s\S]*")
_MAGIC = re.compile(r"^[ \t]*[!%?][^\n]*|^[^\n\"'#]*=[ \t]*[!%][^\n]*", re.MULTILINE)
_DOT = re.compile(r" ?(?:\\?\n ?){0,3}(?<!\.)\.(?!\.)(?: ?\\?\n){0,3} ?")
_FROM = re.compile(r"\bfrom[ \t]+(course_utils[\w.]*)[ \t]+import[ \t]*(\([^()]*|[^\n;]*)")
_IMPORT = re.compile(r"\bimport[ \t]+([\w., \t]+)")
# A name in an import. Nothing else gets into a note, or into a pattern.
_NAMED = re.compile(r"(?:[\w.]{1,80}(?: as \w{1,60})?|\*)\Z")
_OF_MEMORY = re.compile(r"(?<![\w.])memory\.\w{1,60}")
# Parts that compute what exercises ask for, and the library as a whole, which has them all.
_COMPUTES = re.compile(
    r"course_utils(?:\.(?:napkin|data|flops|checkpoint|memory|timing|explorers)\b|\.\*|(?: as \w+)?\Z)"
)
_EXPLORERS = "course_utils.explorers."
_FREE = re.compile(r"(?:course_utils\.)?napkin\b(?! as)|course_utils(?: as \w+)?\Z")


def _library(text: str) -> set[str]:
    """What a cell imports from those parts of the course's library that compute what exercises ask for."""
    text = text.replace("\\\n", " ")
    found = {name for names in _IMPORT.findall(text) for name in _listed(names)}
    for module, names in _FROM.findall(text):
        found |= {f"{module}.{name}" for name in _listed(re.sub("#.*", "", names).strip("( \t"))}
    return {each for each in found if _COMPUTES.match(each)}


def _listed(names: str) -> Iterator[str]:
    """The names in an import. Nothing follows the last one that counts: a string may have any text there."""
    for name in names.split(","):
        if not _NAMED.match(name := " ".join(name.split())):
            return
        yield name


def _bare_modules(text: str, known: set[str]) -> set[str]:
    """The modules of the library that a cell takes from the lecture as a whole, for instance to rename one; and of
    explorers, those of which it uses more than the lecture does.
    """
    given, code = {name.rpartition(".")[2] for name in known}, _TEXT.sub("''", text)
    bare = given.intersection(_MODULE.findall(code))
    explorers = {name.removeprefix(_EXPLORERS) for name in known if name.startswith(_EXPLORERS)}
    explorers = {name.split(" ")[-1] for name in explorers if name != "*"}
    bare |= {name for name in explorers if re.search(_EXPLORER.format(name), code)}
    return {
        name for name in bare
        if not re.search(_VARIABLE.format(name), code)
        or re.search(_DEFAULT.format(name), code)
        or (re.search(_AT_TOP.format(name), code) and not re.search(_SET_AT_TOP.format(name), code))
    }  # fmt: skip


def _functions(text: str, known: set[str], exercise: Exercise) -> set[str]:
    """The functions of those parts of the library that an answer calls, of those that the lecture imports, if their
    names have a word in common with the exercise's: ``count_flops`` in `model_flops`.
    """
    code = _IMPORT.sub("''", _FROM.sub("''", _TEXT.sub("''", text)))
    names = {name.rpartition(".")[2].split(" ")[-1] for name in known} - {"*"}
    called = {name for name in names if re.search(rf"(?<![\w.]){name}\b", code)}  # also `work = count_flops`
    called = {name for name in called if not re.search(_VARIABLE.format(name), code)} | set(_OF_MEMORY.findall(code))
    return {name for name in called if {*exercise.name.split("_")}.intersection(re.split(r"[._]", name))}


def _plain(text: str, imports: Set[str]) -> str:
    """A cell's text as Python reads it, which takes `𝐒GD` for `SGD`, without docstrings, comments and the lecture's
    ``imports``, as far as text alone shows that they are.
    """
    text = re.sub(r"\r\n?", "\n", _NOT_ASCII.sub(_as_name, text)).replace("\f", " ")
    text = _MAGIC.sub(lambda line: re.sub("\"{3}|'{3}", "''", line[0]), text)  # for the shell, these begin no string
    text = _TEXT.sub(_without_docstring, text)
    lines = [line for line in text.split("\n") if line.strip() not in imports]
    above = ["", *(line[-1:] for line in lines)]  # after a backslash, a string may go on
    plain = "\n".join(map(_without_comment, lines, above))
    # Twice if Python reads more than one line, or blanks, around a dot: `data . get_batch`.
    bare = re.sub(r"[ \t]+", " ", _TEXT.sub(lambda found: "" if found[0][0] == "#" else found[0], plain))
    joined = _DOT.sub(".", bare)
    return plain if joined == bare else f"{plain}\n{joined}"


def _without_docstring(found: re.Match[str]) -> str:
    """A string or a comment as it is, unless it's a docstring, the first thing on its line, below a line that ends with
    a colon.
    """
    above, _, before = found.string[max(0, found.start() - 500) : found.start()].rpartition("\n")
    first = not before.strip() and (above.rstrip().endswith(":") or not above.strip())
    return '""' if first and _DOCSTRING.fullmatch(found[0]) else found[0]


def _without_comment(line: str, above: str) -> str:
    """A line up to what can only be a comment or a part of a string: what follows a # without a quote, or the whole
    line if it begins with # and no string can end in it.
    """
    if line.lstrip().startswith("#") and above != "\\" and not re.search("\"{3}|'{3}", line):
        return ""
    begin = line.find("#", 1 + max(line.rfind('"'), line.rfind("'")))
    return line if begin < 0 else line[:begin]


_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def _as_name(found: re.Match[str]) -> str:
    """Characters as Python reads them in a name. Others stay as they are: a wide quotation mark is no part of a name,
    and some characters would become eighteen.
    """
    plain = unicodedata.normalize("NFKC", found[0])
    return plain if re.fullmatch(r"\w+", plain) and len(plain) <= 4 * len(found[0]) else found[0]


def notes(program: Program) -> list[str]:
    """Notes on what the student's cells use that no answer needs, whatever they earned.

    What the lecture itself uses is not noted outside answers, since it may be a copy of the lecture's cells. The
    course's library has some of the functions that a lecture asks for (``data.get_batch``), or the formula behind them
    (``napkin.collectives.sent``, ``count_flops``): using these in an answer is noted, too, unless the reference does,
    and so is importing what the lecture doesn't.
    An answer that uses what PyTorch has under the exercise's name may be right, but a person should see it. To an
    answer belong the student's other cells that define what it uses.
    """
    exercises = program.problems.exercises
    lecture = "\n".join(cell.text for cell in program.problems.cells)
    lines = {line.strip() for line in lecture.splitlines()}
    imports = {line.strip() for line in lecture.splitlines() if line.startswith(("import ", "from "))}
    theirs = {n: _plain(step.cell.text, imports) for n, step in enumerate(program.steps) if step.kind is Kind.THEIRS}
    known = _library(lecture)
    modules = known.union(*map(_library, theirs.values()))
    classes = {name for text in theirs.values() for name in _OWN_CLASS.findall(text)}
    classes -= {name for text in theirs.values() for name in _ASSIGNED.findall(text)}
    helps: dict[int, list[Exercise]] = defaultdict(list)
    for each in exercises:
        for number in program.helpers(each):
            helps[number].append(each)
    notes, others = list[str](), list[str]()
    for number, text in theirs.items():
        step = program.steps[number]
        behind = [step.exercise] if step.exercise else helps[number]
        own = text if step.exercise else "\n".join(each for each in text.splitlines() if each.strip() not in lines)
        names = "|".join(exercise.name for exercise in ([step.exercise] if step.exercise else exercises))
        found = [*_odd(text), *sorted(set(re.findall(_READY_MADE.format(names), text)))]
        if step.exercise is None:
            found = [each for each in found if each not in lecture]
        for exercise in behind:
            called, ours = (_functions(each, known, exercise) for each in (own, exercise.solution))
            found += sorted(_of_pytorch(text, exercise, classes))
            found += sorted(set(_TOOLS.findall(text)) - set(_TOOLS.findall(exercise.solution)))
            found += [*sorted(_bare_modules(own, modules)), *sorted(called - ours)]
        found += sorted(_library(text) - known)
        if not behind:  # a cell with which no answer has to do may ask the planner, and look at the library
            found = [each for each in found if not _FREE.match(each)]
        found = list(dict.fromkeys(_DOT.sub(".", each.strip(" =(,[:")) for each in found))
        if found:
            who = step.exercise.name if step.exercise else step.cell.title
            said = f"{who}: its code uses {', '.join(found[:5])}, which no answer needs; read it"
            (notes if step.exercise else others).append(said)
    return notes + others  # only the first of very many are told


def _odd(text: str) -> list[str]:
    imported = " ".join(_ODD_MODULES.findall(text))
    return sorted({*_ODD.findall(text), *_ODD_NAMES.intersection(re.findall(r"\w+", imported))})


def _of_pytorch(text: str, exercise: Exercise, classes: Set[str]) -> set[str]:
    """What a cell takes from PyTorch under the exercise's name, or, for an optimizer, under any optimizer's.

    An attribute of one of the student's own ``classes`` isn't PyTorch's.
    """
    name = exercise.name
    if found := set(re.findall(_TORCHS.format(name), text)):
        return found
    if name != name.lower() and name.lower() in _PYTORCH:
        found = {attribute for of, attribute in re.findall(_CLASS.format(name), text) if of not in classes}
    if not found and "optim.Optimizer" in exercise.solution and not _OPTIMIZER.search(exercise.solution):
        found = {attribute for of, attribute in _OPTIMIZER.findall(text) if of not in classes}
    return found
