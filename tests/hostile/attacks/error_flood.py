# Answers that every cell stopped, each with an error of 16 MB, of which the judge would keep all.
# earns: 0
# honest: tensor_bytes
# told: its code uses autograder, which no answer needs
# %% batched_linear
from autograder.inside import messages, student

error = "x" * 16_000_000 + "\U0001f600"


async def _run(self, source):
    return messages.Ran(error, "")


student.Notebook._run = _run
