import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, tensors

exercise = Exercise("Compute one prediction for each example, compare the shapes, then average the squared differences.")


def gradient(student, outputs, targets):
    """The loss, and its gradient with respect to the outputs."""
    import torch

    leaf = outputs.clone().requires_grad_()
    loss = student.example_loss(leaf, targets)
    if torch.is_tensor(loss) and loss.requires_grad and loss.ndim == 0:
        loss.backward()
    return {"loss": loss.detach() if torch.is_tensor(loss) else loss, "gradient of the outputs": leaf.grad}


def refused(student, outputs, targets):
    """The class of the error, or the shape of what came."""
    import torch

    loss = student.example_loss(outputs, targets)
    return {"shape of the loss": list(loss.shape) if torch.is_tensor(loss) else None}


@st.composite
def batches(draw, dims=(1, 2)):
    batch, width = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    shape = (batch,) if draw(any_of(*dims)) == 1 else (batch, width)
    dtype = torch.float64
    # 10 away from what the model says: nothing cancels.
    return given(draw(tensors(shape, dtype, contiguous=None)), draw(tensors((batch,), dtype)) - draw(any_of(0, 10)))


@st.composite
def shapes(draw):
    """Targets of any shape, which broadcasting often lets through; some of them fit."""
    batch, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    outputs = draw(any_of((batch,), (batch, width)))
    near = [(batch,), (), (1,), (batch, 1), (1, batch), (batch, width), (width,), (batch + 1,), (batch, batch), (0,)]
    return given(draw(tensors(outputs, torch.float64)), draw(tensors(draw(any_of(*near)), torch.float64)))


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


square = numbers([1, 3, 2], [5, 7, 9], [0, 1, 8])
edges = {
    "a single example": given(numbers([1, 4]), numbers(2)),
    "a single number": given(numbers([3]), numbers(5)),
    "as many numbers as examples": given(square, numbers(1, 2, 3)),
    "one number for each example, in a column": given(numbers([1], [2], [4]), numbers(1, 1, 1)),
    "all of them right": given(numbers([1, 3], [5, 7]), numbers(2, 6)),
    "errors that cancel": given(numbers([1, 3], [2, 4]), numbers(3, 2)),
    "float32": given(square.float(), numbers(1, 2, 3).float()),
    "NaN": given(numbers([1, math.nan], [5, 7]), numbers(2, 5)),
    "large ones, close together": given(numbers([1e8 + 1, 1e8 + 3], [1e8, 1e8]), numbers(1e8, 1e8 + 1)),
    "not contiguous": given(square.T, numbers(1, 2, 3)),
    "many examples": given(torch.arange(1500.0).reshape(500, 3).double() % 17, torch.arange(500.0).double() % 5),
}
exercise.requirement(
    "outputs of shape [B, K]: the mean of each example's numbers is compared with its target, and gradients "
    "reach the outputs",
    points=1,
    probe=gradient,
    visible=[
        given(numbers([1, 3], [5, 7]), numbers(2, 5), says="outputs of shape [2, 2], targets of shape [2]; loss.backward()"),
        given(
            numbers([1, 2, 6], [0, 1, 5]), numbers(1, 4), says="outputs of shape [2, 3], targets of shape [2]; loss.backward()"
        ),
    ],
    edges=edges,
    domain=batches(dims=(2,)),
)
exercise.requirement(
    "outputs of shape [B]: each number is compared with its target, and gradients reach the outputs",
    points=0.25,
    probe=gradient,
    visible=[
        given(numbers(1, 2, 6), numbers(1, 4, 3), says="outputs and targets of shape [3]; loss.backward()"),
        given(numbers(2, 8), numbers(2, 5), says="outputs and targets of shape [2]; loss.backward()"),
    ],
    edges={
        "a single example": given(numbers(1), numbers(4)),
        "errors that cancel": given(numbers(1, 3), numbers(3, 1)),
        "a constant": given(numbers(2, 2, 2), numbers(2, 3, 4)),
        "float32": given(numbers(2, 7).float(), numbers(1, 9).float()),
        "NaN": given(numbers(math.nan, 7), numbers(1, 9)),
        "many examples": given(torch.arange(1500.0).double() % 17, torch.arange(1500.0).double() % 5),
    },
    domain=batches(dims=(1,)),
)
exercise.requirement(
    "targets of any shape but [B] raise a ValueError, even if they broadcast",
    points=0.75,
    probe=refused,
    parts=["error"],
    visible=[
        given(numbers(1, 2, 6), numbers([1], [4], [3]), says="outputs of shape [3], targets of shape [3, 1]"),
        given(numbers([1, 3], [5, 7]), numbers([1, 3], [5, 7]), says="outputs and targets of shape [2, 2]"),
        given(numbers([1, 3], [5, 7]), numbers(4)[0], says="outputs of shape [2, 2], targets of shape []"),
        given(numbers(1, 2, 6), numbers(4), says="outputs of shape [3], targets of shape [1]"),
        given(numbers([1, 3], [5, 7]), numbers(2, 6), says="outputs of shape [2, 2], targets of shape [2]"),
    ],
    edges={
        "one target for two examples": given(numbers(1, 2), numbers(3)),
        "a row": given(numbers(1, 2), numbers([1, 2])),
        "a column for a column": given(numbers([1], [2]), numbers([1], [2])),
        "too many": given(numbers(1, 2), numbers(1, 2, 3)),
        "too few": given(numbers([1, 2, 3], [4, 5, 6]), numbers(1)),
        "none": given(numbers(1, 2), numbers(1, 2)[:0]),
        "as many as numbers": given(numbers([1, 2, 3], [4, 5, 6]), numbers(1, 2, 3)),
        "one example, a column": given(numbers(1), numbers([1])),
        "one example, no dimension": given(numbers(1), numbers(1)[0]),
        "one example, as it should be": given(numbers([1, 2]), numbers(1)),
    },
    domain=shapes(),
    hint="Compare the shape of the targets with that of the predictions, before you subtract.",
)
MEAN, DIFFERENCE = "outputs.mean(dim=1)", "(predictions - targets).square().mean()"
exercise.mistake("A mean over dimension 0 averages the examples; average the numbers of each example.", f"{MEAN} → outputs.mean(dim=0)")
exercise.mistake("Each example's prediction is the mean of its numbers, not their sum.", f"{MEAN} → outputs.sum(dim=1)")
exercise.mistake("Each example's prediction is the mean of its numbers, not the first of them.", f"{MEAN} → outputs[:, 0]")
exercise.mistake("Each example's prediction is the mean of its numbers, not the largest.", f"{MEAN} → outputs.max(dim=1).values")
exercise.mistake("No error was raised: targets of another shape broadcast silently.", "if targets.shape != predictions.shape → if False")
exercise.mistake("Tensors with the same number of elements can differ in shape: [B] and [B, 1] broadcast to [B, B].",
                 "targets.shape != predictions.shape → targets.numel() != predictions.numel()")  # fmt: skip
exercise.mistake("The number of dimensions alone isn't the shape: a single target broadcasts to all examples.",
                 "targets.shape != predictions.shape → targets.ndim != predictions.ndim")  # fmt: skip
exercise.mistake("Raise a ValueError, not a different error.", "raise ValueError → raise AssertionError")
exercise.mistake("The errors are squared and then averaged, not the other way around.", f"{DIFFERENCE} → (predictions - targets).mean().square()")
exercise.mistake("The loss is the mean over the examples, not the sum.", f"{DIFFERENCE} → (predictions - targets).square().sum()")
exercise.mistake("Square the errors; your code takes their absolute values.", f"{DIFFERENCE} → (predictions - targets).abs().mean()")
exercise.mistake("The loss is the mean of the squares, not the root of "
                 "that mean.", f"{DIFFERENCE} → {DIFFERENCE}.sqrt()")
exercise.mistake("The loss is the mean of the squares, not half of it.", f"{DIFFERENCE} → {DIFFERENCE} / 2")
exercise.mistake("Your result is one loss for each example; return their mean.", f"{DIFFERENCE} → (predictions - targets).square()")
exercise.mistake("Your loss is detached from the graph, so it passes no "
                 "gradient back.", f"{DIFFERENCE} → {DIFFERENCE}.detach()")
exercise.mistake("A Python number has no gradient: return the tensor.", f"{DIFFERENCE} → {DIFFERENCE}.item()")

# %% mistake: as found
# says: That's the lecture's faulty loss: it has one prediction for the whole batch, which broadcasts. Each example needs a prediction of its own.
def example_loss(outputs, targets):
    return F.mse_loss(outputs.mean(), targets)

# %% mistake: as found, with the shapes compared
# says: The mean of everything is one prediction for the whole batch. Each example needs one of its own.
def example_loss(outputs, targets):
    if targets.shape != outputs.shape[:1]:
        raise ValueError
    return (outputs.mean() - targets).square().mean()

# %% mistake: every number compared with the target
# says: An example has one prediction, the mean of its numbers; don't compare each number with the target.
def example_loss(outputs, targets):
    if targets.shape != outputs.shape[:1]:
        raise ValueError
    column = outputs.reshape(len(outputs), -1)
    return (column - targets[:, None]).square().mean()

# %% wrong: targets brought into shape instead of refused
def example_loss(outputs, targets):
    predictions = outputs.reshape(len(outputs), -1).mean(dim=1)
    if targets.numel() != len(predictions):
        raise ValueError
    return F.mse_loss(predictions, targets.reshape(predictions.shape))

# %% wrong: what is of one dimension is averaged too
def example_loss(outputs, targets):
    predictions = outputs.mean(dim=-1)
    if targets.shape != outputs.shape[:1]:
        raise ValueError
    return (predictions - targets).square().mean()

# %% wrong: the first size alone
def example_loss(outputs, targets):
    predictions = outputs if outputs.ndim == 1 else outputs.mean(dim=1)
    if targets.ndim == 0 or len(targets) != len(predictions):
        raise ValueError
    return (predictions - targets).square().mean()

# %% wrong: a squeeze, for which a batch of one is a number (from the statement)
def example_loss(outputs, targets):
    predictions = outputs.reshape(len(outputs), -1).mean(dim=1)
    if targets.squeeze().shape != predictions.squeeze().shape:
        raise ValueError(f"targets must have shape [{len(outputs)}]")
    return torch.mean((predictions.squeeze() - targets.squeeze()) ** 2)

# %% wrong: a new tensor, which knows no history (from the statement)
def example_loss(outputs, targets):
    predictions = torch.tensor([row.mean().item() for row in outputs], dtype=outputs.dtype)
    if targets.shape != predictions.shape:
        raise ValueError(f"expected targets of shape {tuple(predictions.shape)}")
    return F.mse_loss(predictions, targets)

# %% wrong: waits for broadcasting to fail (from the statement)
def example_loss(outputs, targets):
    predictions = outputs if outputs.dim() == 1 else outputs.mean(1)
    try:
        difference = predictions - targets
    except RuntimeError as error:
        raise ValueError("the shapes don't fit") from error
    return difference.pow(2).mean()

# %% wrong: the first 200 examples (from the statement)
# unseen: only hidden inputs have so many
def example_loss(outputs, targets):
    predictions = outputs if outputs.ndim == 1 else outputs.mean(dim=1)
    if targets.shape != predictions.shape:
        raise ValueError
    return (predictions - targets)[:200].square().mean()

# %% wrong: leaves NaN out (from the statement)
# unseen: no visible case has NaN
def example_loss(outputs, targets):
    if targets.shape != outputs.shape[:1]:
        raise ValueError
    predictions = outputs.nanmean(dim=1) if outputs.ndim == 2 else outputs
    return (predictions - targets).square().nanmean()

# %% right: mse_loss behind the check
def example_loss(outputs, targets):
    if tuple(targets.shape) != (len(outputs),):
        raise ValueError("one target for each example, please")
    return F.mse_loss(outputs.reshape(len(outputs), -1).mean(dim=-1), targets)

# %% right: a column for whatever comes
def example_loss(outputs, targets):
    if targets.ndim != 1 or targets.shape[0] != outputs.shape[0]:
        raise ValueError
    wide = outputs[:, None] if outputs.ndim == 1 else outputs
    errors = wide.sum(dim=1) / wide.shape[1] - targets
    return errors @ errors / len(errors)

# %% right: example by example
def example_loss(outputs, targets):
    if list(targets.shape) != [outputs.shape[0]]:
        raise ValueError("targets")
    losses = [(output.mean() - target) ** 2 for output, target in zip(outputs, targets, strict=True)]
    return torch.stack(losses).mean()

# %% equivalent: predictions - targets → targets - predictions
# why: the square does not depend on the sign

# %% equivalent: targets.shape → targets.stride() #2
# why: the words of the error are the student's own
