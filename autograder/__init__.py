"""The instructor's side: builds the notebooks, checks the exercises, grades a class, keeps its records.

Four rooms, and imports between them go one way: ``cli`` → ``authoring``, ``records`` → ``grading`` → ``inside`` →
``course_utils``. Submissions can read ``inside``; ``inside`` and ``grading`` together decide points.
"""


class CourseError(Exception):
    """Something that a person can mend: the message says what is wrong and what to do."""
