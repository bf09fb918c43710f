# Puts HTML, terminal codes and lone surrogates where the message names the call.
# earns: 0
# honest: tensor_bytes
# told: <script>alert(1)</script>\x1b[2J\ud800\u202e\x00AAA
# %% batched_linear
from autograder.inside import messages, student
from course_utils.testing import Observation, Raised

what = "<script>alert(1)</script>\x1b[2J\ud800\u202e\x00" + "A" * 1_000_000
seen = messages.Seen(Observation(what, Raised(what, what, what), what, what))


async def answer(self, request):
    return seen


student.Notebook.answer = answer
