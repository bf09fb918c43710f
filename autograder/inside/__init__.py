"""The code that runs next to a submission, which can therefore read it: it has no tests, answers or students' names.

The sandbox mounts this folder and ``course_utils``, and nothing else of the project.
"""
