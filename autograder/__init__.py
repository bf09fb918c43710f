"""The instructor's side: build the notebooks, check the exercises, grade a class, keep its records.

It has four packages, and imports between them go one way: ``cli`` → ``authoring``, ``records`` → ``grading`` →
``inside`` → ``course_utils``. Submissions can read ``inside``. ``inside`` and ``grading`` together determine the
points.
"""


class CourseError(Exception):
    """A problem that a person can fix; the message says what's wrong and what to do."""
