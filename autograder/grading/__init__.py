"""From the bytes of a submission to points. With ``inside`` and ``course_utils``, everything that can change a point.

Nothing here knows about a class, its files or its gradebook; see ``records``.
"""
