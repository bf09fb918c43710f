"""From the bytes of a submission to points. Together with ``inside`` and ``course_utils``, all that can change a point.

Nothing here knows of a class, its files or its gradebook: see ``records``.
"""
