"""From the bytes of a submission to points. Together with ``inside`` and ``course_utils``, it determines every point.

Nothing here knows about a class, its files or its gradebook; see ``records``.
"""
