"""nbgrader's settings for the whole environment (Validate button and command line alike)."""

from course_utils.validating import restore_checks

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (Jupyter defines it when it loads this file)

# The capstone trains for minutes; nbgrader's own limit is 30 seconds a cell.
c.Execute.timeout = 900
# Validate reports a check that was deleted, too: without this, a notebook without checks "passes all the tests".
c.Execute.on_notebook_start = restore_checks
