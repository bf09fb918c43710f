"""What runs beside a submission, and so all of our code that it can read: no tests, no answers, no names.

The sandbox mounts this folder and ``course_utils``, and nothing else in the project.
"""
