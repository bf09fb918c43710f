"""Helpers that the lectures import: plumbing only, never the code that a lecture teaches.

Modules are imported by name (``from course_utils import timing``); importing the package itself loads nothing.
"""
