"""Finds answers that are identical although that's unlikely: worth a look, but not proof of anything.

Two answers are identical if they're the same program apart from names, comments and layout. Identical short answers
mean nothing, nor do common mistakes; what's left are rare wrong answers, and long ones. Two files that are the same in
every byte are listed as well, if they answer anything. Students who work together look the same here as students who
used the same source, so this only shows where a conversation may be worthwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.grading.marks import Result
from autograder.grading.source import Lecture

from .syntax import parsed

# Sizes in nodes of the syntax tree, beyond those of the code that was handed out.
_SOME = 20  # at this size, two people who make the same mistake rarely write the same program
_LONG = 80  # at this size, two people who are right rarely do, either
_FEW = 0.05  # of the students who answered: if more of them share a wrong answer, it's a common mistake


@dataclass(frozen=True)
class Alike:
    """Students with identical answers to an exercise, or with identical files; then ``exercise`` and ``code`` are "".

    ``published``: this project's own solution is identical, too.
    """

    exercise: str
    students: tuple[str, ...]
    right: bool
    published: bool
    code: str


def find(
    lecture: Lecture,
    found: Mapping[str, Result],
    answers: Mapping[str, Mapping[str, str]],
    files: Mapping[str, str] = {},
) -> list[Alike]:
    """The identical files, and the identical answers among those graded.

    ``answers`` are the cells' texts, by student and exercise; ``files`` are the digests of what students handed in.
    """
    same: dict[str, list[str]] = defaultdict(list)
    stubs = {exercise.name: exercise.stub.strip() for exercise in lecture.exercises}
    for student, digest in files.items():
        theirs = answers.get(student, {})
        if any(theirs.get(name, stub).strip() not in ("", stub) for name, stub in stubs.items()):
            same[digest].append(student)
    listed = [Alike("", tuple(each), False, False, "") for each in same.values() if len(each) > 1]
    for exercise in lecture.exercises:
        handed_out, published = parsed(exercise.stub), parsed(exercise.solution)
        groups: dict[str, list[str]] = defaultdict(list)
        sizes: dict[str, int] = {}
        right: dict[str, bool] = {}
        for student, theirs in answers.items():
            mark = next((mark for mark in found[student].marks if mark.exercise == exercise.name), None)
            program = parsed(theirs.get(exercise.name, ""))
            key = program.normalized
            if mark is None or found[student].points is None or not program.size or key == handed_out.normalized:
                continue
            groups[key].append(student)
            sizes[key] = program.size - handed_out.size
            right[key] = (mark.points if mark.tests is None else mark.tests) >= mark.worth
        few = max(3, int(_FEW * sum(map(len, groups.values()))))
        for key, students in groups.items():
            of_ours = key == published.normalized
            rare = not right[key] and sizes[key] >= _SOME and 2 <= len(students) <= few
            long = sizes[key] >= _LONG and (of_ours or len(students) >= 2)
            said = not of_ours and any(set(students) <= set(each) for each in same.values())  # with the files
            if (rare or long) and not said:
                code = answers[students[0]][exercise.name]
                listed.append(Alike(exercise.name, tuple(students), right[key], of_ours, code))
    return listed
