"""The settings of every kernel of this environment: lectures get one clear line instead of some tracebacks."""

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (IPython defines it when it loads this file)

c.IPKernelApp.extensions = ["course_utils.kernel"]
