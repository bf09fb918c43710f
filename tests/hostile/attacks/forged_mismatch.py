# Claims a mismatch of its own, with a text as long as a book.
# earns: 0
# honest: tensor_bytes
# told: <b>You passed!</b>\ud800<b>
# %% batched_linear
from autograder.inside import messages, student

mismatch = messages.Mismatched("<b>You passed!</b>\ud800" * 100_000)


async def answer(self, request):
    return mismatch


student.Notebook.answer = answer
