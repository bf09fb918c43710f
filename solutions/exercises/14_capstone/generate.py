import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Which ids does the model get, which of its scores count, and what is different afterwards?")


def write(student, ids, count, context, training=True, fails=None, seed=0):
    """What is written, and all that goes in and out meanwhile. The model's scores depend on every id, and its place."""
    import torch

    vocabulary, places = 7, 16
    generator = torch.Generator().manual_seed(seed)
    seen, asked = [], []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(vocabulary, 5, generator=generator, dtype=torch.float64))
            self.places = torch.nn.Parameter(torch.randn(places, 5, generator=generator, dtype=torch.float64))
            self.dropout = torch.nn.Dropout(0.5)

        def forward(self, ids):
            seen.append({"ids": ids.clone(), "in training mode": self.training, "recorded": torch.is_grad_enabled()})
            x = self.dropout(self.table[ids % vocabulary] + self.places[: ids.shape[1]])
            return 3 * x.cumsum(dim=1).sin() @ self.table.T

    def pick(scores):
        if len(asked) == fails:
            raise KeyError("no such byte")
        asked.append({"shape": list(scores.shape), "requires a gradient": scores.requires_grad})
        return scores.argmax(dim=-1) if scores.dim() == 2 else torch.zeros(len(ids), dtype=torch.int64)

    model = Model().train(training)
    given_ids, error, result = ids.clone(), None, None
    try:
        result = student.generate(model, given_ids, count, context, pick)
    except KeyError as raised:
        error = str(raised)
    finally:
        gradients = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    return {
        "result": result.clone() if torch.is_tensor(result) else result,
        "the error of pick comes out": error,
        "ids afterwards": given_ids,
        "what the model gets, call by call": [each["ids"] for each in seen],
        "shapes of the scores that pick gets": [each["shape"] for each in asked],
        "model in training mode, while it writes": sorted({each["in training mode"] for each in seen}),
        "gradients recorded": any(each["recorded"] for each in seen) or any(a["requires a gradient"] for a in asked),
        "model in training mode, afterwards": [model.training, model.dropout.training],
        "gradients are recorded afterwards": gradients,
    }


WRITTEN = ("result", "ids afterwards", "shapes of the scores that pick gets")
WINDOWS = ("what the model gets, call by call",)
MODES = ("the error of pick comes out", "model in training mode, while it writes", "gradients recorded",
         "model in training mode, afterwards", "gradients are recorded afterwards")  # fmt: skip


def only(*keys):
    return dict.fromkeys(sorted({*WRITTEN, *WINDOWS, *MODES} - {*keys}), "ignored")


def ids(*rows):
    return torch.tensor(rows)


never, modes = st.none(), st.booleans()


@st.composite
def runs(draw, context=(1, 9), fails=never):
    t, b = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 6), min_size=t, max_size=t)
    rows = torch.tensor(draw(st.lists(row, min_size=b, max_size=b)))
    count = draw(st.integers(0, 6))
    return given(rows, count, draw(st.integers(*context)), draw(modes), draw(fails), draw(st.integers(0, 99)))


A_MODEL = "by a small model of our own, whose pick takes the largest score"
exercise.requirement(
    "each row goes on with `count` ids, picked by the scores at its last place; `ids` stays as it is",
    points=1.25,
    probe=write,
    rules=only(*WRITTEN),
    visible=[
        given(ids([1, 4, 2]), 3, 9, False, says=f"[[1, 4, 2]] continued by 3 tokens, {A_MODEL}"),
        given(ids([1, 4], [0, 6]), 2, 9, False, says=f"[[1, 4], [0, 6]] continued by 2 tokens, {A_MODEL}"),
        given(ids([5, 3]), 0, 9, False, says=f"[[5, 3]] continued by no token, {A_MODEL}"),
    ],
    edges={
        "a single id": given(ids([3]), 4, 9, False),
        "an id that no float32 holds": given(ids([2**24 + 1, 3]), 1, 9, False),
        "as many rows as places": given(ids([1, 2, 3], [4, 5, 6], [0, 1, 2]), 3, 9, False),
        "a transposed batch": given(ids([1, 2], [3, 4], [5, 6]).T, 2, 9, False),
        "one token": given(ids([2, 2, 2, 2]), 1, 9, False),
        "in training": given(ids([1, 4], [0, 6]), 3, 9),
        "longer than the context": given(ids([1, 4, 2, 0, 5, 6], [3, 3, 0, 1, 2, 4]), 2, 3, False),
    },
    domain=runs((16, 16)),
    hint="What came last is at the end of the window. The new ids are a column more.",
)
exercise.requirement(
    "for each new token the model is called once, with the last `context` ids, or all where there are fewer",
    points=0.75,
    probe=write,
    rules=only(*WINDOWS),
    visible=[
        given(ids([1, 4, 2]), 3, 2, False, says=f"what the model gets with context 2: [[1, 4, 2]] continued by 3 tokens, {A_MODEL}"),
        given(ids([1, 4]), 3, 4, False, says=f"what the model gets with context 4: [[1, 4]] continued by 3 tokens, {A_MODEL}"),
    ],
    edges={
        "a context of 1": given(ids([1, 4, 2]), 3, 1, False),
        "as long as the context": given(ids([1, 4, 2]), 3, 3, False),
        "nothing to write": given(ids([1, 4, 2]), 0, 2, False),
        "two rows": given(ids([1, 4, 2], [3, 3, 0]), 4, 3, False),
        "much longer than the context": given(ids([1, 4, 2, 0, 5, 6]), 2, 2, False),
    },
    domain=runs((1, 7)),
    hint="Count from the end of what there is: how does one slice the last `context` columns?",
)  # fmt: skip
exercise.requirement(
    "it writes in eval mode and records nothing; afterwards the model is in its old mode, also after an error",
    points=1,
    probe=write,
    rules=only(*MODES),
    visible=[
        given(ids([1, 4]), 2, 9, says="2 tokens, by a model that is in training mode"),
        given(ids([1, 4]), 2, 9, False, says="2 tokens, by a model that is in eval mode"),
        given(ids([1, 4]), 2, 9, True, 1, says="a pick that raises an error for the second token, and a model in training mode"),
    ],
    edges={
        "the first pick fails": given(ids([1, 4]), 2, 9, True, 0),
        "a pick fails in eval mode": given(ids([1, 4]), 3, 9, False, 2),
        "nothing to write": given(ids([1, 4]), 0, 9),
    },
    domain=runs(fails=never | any_of(0, 1, 2)),
    hint="Look at model.training before, and put it back whatever happens.",
)  # fmt: skip

exercise.mistake("The scores of the last place say what comes next, not those of the first.", "scores[:, -1] → scores[:, 0]")
exercise.mistake("pick gets a row of scores for each row of ids: those of its last place.", "pick(scores[:, -1])[:, None] → pick(scores)[:, -1:]")
exercise.mistake("The new id stands after the others.", "torch.cat([ids, pick(scores[:, -1])[:, None]], dim=1) → torch.cat([pick(scores[:, -1])[:, None], ids], dim=1)")
exercise.mistake("Return the ids that were there as well.", "    return ids → return ids[:, ids.shape[1] - count :]")
exercise.mistake("Your result has one token too many.", "range(count) → range(count + 1)")
exercise.mistake("Your code stops one token early.", "range(count) → range(count - 1)")
exercise.mistake("count says how many are added, not how many there are in the end.", "range(count) → range(count - ids.shape[1])")
exercise.mistake("The model has places for `context` tokens: give it no more.", "model(ids[:, -context:]) → model(ids)")
exercise.mistake("Your result is the beginning of the text: the window ends with the last token.", "model(ids[:, -context:]) → model(ids[:, :context])")
exercise.mistake("The window has one token less than the model has places for.", "ids[:, -context:] → ids[:, -context + 1 :] if context > 1 else ids[:, -1:]")
exercise.mistake("Only the last token is looked at: the window is `context` long.", "ids[:, -context:] → ids[:, -1:]")
exercise.mistake("The window begins where it began: it has to move with what is written.",
                 "training = model.training → training = model.training; start = max(ids.shape[1] - context, 0)", "ids[:, -context:] → ids[:, start:]")
exercise.mistake("While it writes the model is in eval mode: dropout would drop what it reads.", "model.eval() → pass")
exercise.mistake("The model was in training mode, and stays in eval mode.", "model.train(training) → pass")
exercise.mistake("The model was in eval mode, and is in training mode afterwards.", "model.train(training) → model.train()")
exercise.mistake("The backward pass is recorded, of every call: memory fills up.", "with torch.no_grad(): → with torch.enable_grad():")
exercise.mistake("Gradients stay switched off for everybody who comes later.", "with torch.no_grad(): → torch.set_grad_enabled(False)\n        if True:")
exercise.mistake("Where an error ends the writing, the model stays in eval mode.",
                 "try: → if True:", "finally: → if True:")  # fmt: skip
exercise.mistake("An error in the middle ends here, and nobody is told.", "finally: → except KeyError:\n        pass\n    if True:")
exercise.mistake("The model is asked once for each new token: here it is asked twice.",
                 "scores = model(ids[:, -context:]) → scores = model(ids[:, -context:]) + 0 * model(ids[:, -context:])")  # fmt: skip
exercise.mistake("Leave the ids that you were given: these have grown in place.",
                 "return ids → return ids", "training = model.training → training = model.training; given = ids",
                 "model.train(training) → model.train(training); given.resize_(ids.shape).copy_(ids)")  # fmt: skip

# %% wrong: all rows go on with what the first one goes on with
def generate(model, ids, count, context, pick):
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(count):
                new = pick(model(ids[:, -context:])[:, -1])[0]
                ids = torch.cat([ids, new.expand(len(ids), 1)], dim=1)
    finally:
        model.train(training)
    return ids

# %% wrong: row by row, with a call for each of them
def generate(model, ids, count, context, pick):
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            rows = []
            for row in ids:
                row = row[None]
                for _ in range(count):
                    row = torch.cat([row, pick(model(row[:, -context:])[:, -1])[:, None]], dim=1)
                rows.append(row)
    finally:
        model.train(training)
    return torch.cat(rows)

# %% wrong: as numbers of floating point
def generate(model, ids, count, context, pick):
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = torch.zeros(ids.shape[0], ids.shape[1] + count)
            out[:, : ids.shape[1]] = ids
            for end in range(ids.shape[1], out.shape[1]):
                out[:, end] = pick(model(out[:, max(end - context, 0) : end].long())[:, -1])
    finally:
        model.train(training)
    return out

# %% wrong: cuts the ids to the context, and then returns what was cut (from the statement)
def generate(
    model: nn.Module,
    ids: Int[Tensor, "b t"],
    count: int,
    context: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, and after them `count` more in each row, each picked by the scores at the last place."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(count):
                ids = ids[:, -context:]
                scores = model(ids)[:, -1]
                ids = torch.cat([ids, pick(scores).unsqueeze(-1)], dim=-1)
        return ids.clone()
    finally:
        model.train(before)

# %% wrong: an error in `pick` leaves the model in eval mode: only the model's call is guarded (from the statement)
def generate(
    model: nn.Module,
    ids: Int[Tensor, "b t"],
    count: int,
    context: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, and after them `count` more in each row, each picked by the scores at the last place."""
    training = model.training
    model.eval()
    out = ids.clone()
    with torch.no_grad():
        for _ in range(count):
            try:
                scores = model(out[:, -context:])
            except BaseException:
                model.train(training)
                raise
            out = torch.cat([out, pick(scores[:, -1])[:, None]], dim=1)
    model.train(training)
    return out

# %% wrong: detach the scores, then nothing is recorded (from the statement)
def generate(
    model: nn.Module,
    ids: Int[Tensor, "b t"],
    count: int,
    context: int,
    pick: Callable[[Float[Tensor, "b vocabulary"]], Int[Tensor, "b"]],
) -> Int[Tensor, "b t_and_count"]:
    """ids, and after them `count` more in each row, each picked by the scores at the last place."""
    mode = model.training
    model.eval()
    try:
        out = ids.detach().clone()
        for _ in range(count):
            scores = model(out[:, -context:]).detach()
            with torch.no_grad():
                out = torch.cat([out, pick(scores[:, -1])[:, None]], dim=1)
        return out
    finally:
        model.train(mode)

# %% right: into a tensor of its full size
def generate(model, ids, count, context, pick):
    before, (b, t) = model.training, ids.shape
    out = torch.empty(b, t + count, dtype=ids.dtype, device=ids.device)
    out[:, :t] = ids
    try:
        model.train(False)
        with torch.inference_mode():
            for end in range(t, t + count):
                out[:, end] = pick(model(out[:, max(0, end - context) : end])[:, -1, :])
    finally:
        model.train(before)
    return out

# %% right: a decorator, and a list of columns
@torch.no_grad()
def generate(model, ids, count, context, pick):
    from contextlib import ExitStack

    with ExitStack() as stack:
        stack.callback(model.train, model.training)
        model.eval()
        columns = list(ids.split(1, dim=1))
        for _ in range(count):
            scores = model(torch.hstack(columns[-context:])).select(1, -1)
            columns.append(pick(scores).unsqueeze(-1))
    return torch.hstack(columns)

# %% right: calls itself
def generate(model, ids, count, context, pick):
    if count == 0:
        return ids.clone()
    mode = model.training
    try:
        with torch.no_grad():
            last = model.eval()(ids[..., -context:])[..., -1, :]
            new = pick(last)
    finally:
        model.train(mode)
    return generate(model, torch.cat((ids, new.reshape(-1, 1)), 1), count - 1, context, pick)
