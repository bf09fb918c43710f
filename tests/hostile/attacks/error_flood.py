# Answers everything with an error of 16 MB, which the judge might keep.
# earns: 0
# honest: tensor_bytes
# told: answer is not of the kind
# %% batched_linear
from autograder.inside import messages, student

error = "x" * 16_000_000 + "\U0001f600"


async def answer(self, request):
    return messages.Ran(error, "")


student.Notebook.answer = answer
