# Says that its result cannot be sent, for a reason as long as a book.
# earns: 0
# honest: tensor_bytes
# told: <b>You passed!</b>\ud800<b>
# %% batched_linear
from autograder.inside import messages, student

reason = messages.Unsendable("<b>You passed!</b>\ud800" * 100_000)


async def answer(self, request):
    return reason


student.Notebook.answer = answer
