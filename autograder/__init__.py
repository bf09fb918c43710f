"""The instructor's side: builds notebooks from their sources, checks them, and prepares releases and courses."""


class CourseError(Exception):
    """Something that a person can mend; the message says what is wrong and what to do. Its kinds are in the modules."""
