"""What runs beside a submission, and so everything of ours that its code can read: no test, no answer, no name.

The sandbox mounts this folder and ``course_utils``, nothing else of the project.
"""
