# Puts HTML, terminal codes and lone surrogates where the message names the call.
# earns: 0
# honest: tensor_bytes
# %% batched_linear
import autograder.warm
from course_utils.testing import Observation, Raised

what = "<script>alert(1)</script>\x1b[2J\ud800\u202e\x00" + "A" * 5_000_000
autograder.warm.Student.answer = lambda self, request: {"seen": Observation(what, Raised(what, what, what), what, what)}
