"""nbgrader's settings for the whole environment (Validate button and command line alike)."""

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (Jupyter defines it when it loads this file)

# The capstone trains for minutes; nbgrader's own limit is 30 seconds a cell.
c.Execute.timeout = 900
