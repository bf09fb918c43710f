"""Small helpers that the lectures import: plumbing only, never the thing that a lecture teaches.

Modules are imported by name (``from course_utils import timing``); importing the package itself loads nothing.
"""
