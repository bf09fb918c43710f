"""``python -m course_utils.ranks FOLDER RANK SIZE SECONDS``: one process of a launch, which is what starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from course_utils.ranks import rank

if __name__ == "__main__":
    rank.main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
