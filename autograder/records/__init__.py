"""A class on disk: its students, the result of each submission, and everything made from those."""
