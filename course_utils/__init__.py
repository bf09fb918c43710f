"""Small helpers that the lectures import. They contain plumbing, never what a lecture teaches.

Modules are imported by name (``from course_utils import timing``); importing the package itself loads nothing.
"""
