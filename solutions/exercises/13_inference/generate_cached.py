import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise(
    "What do you pass to the model in the first call, and what in the later ones? How much room do the caches need?"
)


def write(student, ids, count, seed=0, device="cpu", scale=3.0):
    """What is written, what the model gets, and what its cache is. Its logits depend on every id, and its place."""
    import torch

    vocabulary = 7
    generator = torch.Generator().manual_seed(seed)
    calls, made, recorded = [], [], []

    class Cache:
        def __init__(self, batch):
            self.ids = torch.zeros(batch, 0, dtype=torch.int64, device=device)

        @property
        def length(self):
            return self.ids.shape[1]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(vocabulary, 5, generator=generator, dtype=torch.float64))
            self.places = torch.nn.Parameter(torch.randn(32, 5, generator=generator, dtype=torch.float64))

        def new_caches(self, batch, capacity):
            made.append([int(batch), int(capacity)])
            return [Cache(batch)]

        def forward(self, ids, caches=None):
            calls.append(ids.clone())
            recorded.append(torch.is_grad_enabled())
            known = ids
            if caches is not None:
                known = torch.cat([caches[0].ids, ids], dim=1)
                caches[0].ids = known
            x = self.table[known % vocabulary] + self.places[: known.shape[1]]
            return (scale * x.cumsum(dim=1).sin() @ self.table.T)[:, known.shape[1] - ids.shape[1] :]

    model, given_ids = Model().eval().to(device), ids.to(device, copy=True)
    student.generate_cached(model, (given_ids + 1) % vocabulary, count)  # what an earlier call left must make no difference
    torch.set_grad_enabled(True)
    calls.clear(), made.clear(), recorded.clear()
    result = student.generate_cached(model, given_ids, count)
    gradients = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return {
        "result": result.clone() if torch.is_tensor(result) else result,
        "ids afterward": given_ids,
        "ids passed to the model, call by call": calls,
        "the calls are recorded for a backward pass": any(recorded),
        "gradient recording is on afterward": gradients,
        "batch and capacity of the caches": made,
    }


WRITTEN = ("result", "ids afterward")
CALLS = (
    "ids passed to the model, call by call",
    "the calls are recorded for a backward pass",
    "gradient recording is on afterward",
)
ROOM = ("batch and capacity of the caches",)


def only(*keys):
    return dict.fromkeys(sorted({*WRITTEN, *CALLS, *ROOM} - {*keys}), "ignored")


def ids(*rows):
    return torch.tensor(rows)


@st.composite
def runs(draw, least=0):
    t, b = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 6), min_size=t, max_size=t)
    rows = torch.tensor(draw(st.lists(row, min_size=b, max_size=b)))
    return given(rows, draw(st.integers(least, 8)), draw(st.integers(0, 99)))


A_MODEL = "using a small test model"
rare = {
    "a prompt of one token": given(ids([3]), 4),
    "one token": given(ids([2, 2, 2]), 1),
    "as many rows as tokens": given(ids([1, 2, 3], [4, 5, 6], [0, 1, 2]), 3),
    "a transposed batch": given(ids([1, 2], [3, 4], [5, 6]).T, 2),
    "equal rows": given(ids([1, 2], [1, 2]), 3),
    "more new tokens than old ones": given(ids([1, 4]), 20),
    "fifty rows": given(torch.arange(100).reshape(50, 2) % 7, 2),
}
exercise.requirement(
    "each row is continued by `count` ids, the same as without a cache; `ids` isn't changed",
    points=0.75,
    probe=write,
    rules=only(*WRITTEN),
    visible=[
        given(ids([1, 4, 2]), 3, says=f"[[1, 4, 2]] continued by 3 tokens, {A_MODEL}"),
        given(ids([1, 4], [0, 6]), 4, says=f"[[1, 4], [0, 6]] continued by 4 tokens, {A_MODEL}"),
        given(ids([5, 3]), 0, says=f"[[5, 3]] continued by 0 tokens, {A_MODEL}"),
    ],
    edges={
        **rare,
        "nothing to write": given(ids([5], [6]), 0),
        "on another device": given(ids([1, 4], [0, 6]), 3, device="meta"),
        "logits that are all alike": given(ids([1, 4, 2], [0, 6, 5]), 3, scale=0.0),
        "logits that differ little": given(ids([1, 4, 2], [0, 6, 5]), 5, scale=1e-20),
    },
    domain=runs(),
    hint="The logits at the last position predict the next token.",
)
exercise.requirement(
    "the model processes the prompt in one call, then each new token alone, except the last; nothing is recorded for "
    "a backward pass",
    points=0.75,
    probe=write,
    rules=only(*CALLS),
    visible=[
        given(ids([1, 4, 2]), 3, says=f"the ids passed to the model: [[1, 4, 2]] continued by 3 tokens, {A_MODEL}"),
        given(ids([1, 4], [0, 6]), 2,
              says=f"the ids passed to the model: [[1, 4], [0, 6]] continued by 2 tokens, {A_MODEL}"),
        given(ids([1, 4]), 0, says=f"the ids passed to the model: [[1, 4]] continued by 0 tokens, {A_MODEL}"),
    ],
    edges={**rare, "nothing to write": given(ids([5], [6]), 0)},
    domain=runs(),
    hint="There are as many calls as new tokens. What do you pass in the first call, and what in each later one?",
)
exercise.requirement(
    "the caches are made once, for all rows, with room for exactly the tokens that are processed",
    points=0.5,
    probe=write,
    rules=only(*ROOM),
    visible=[
        given(ids([1, 4, 2]), 3, says=f"the caches for [[1, 4, 2]] continued by 3 tokens, {A_MODEL}"),
        given(ids([1, 4], [0, 6]), 5, says=f"the caches for [[1, 4], [0, 6]] continued by 5 tokens, {A_MODEL}"),
    ],
    edges=rare,
    domain=runs(1),
    hint="How many tokens does the model process in each row?",
)

room = "ids.shape[1] + count - 1"
step = "model(new, caches)[:, -1].argmax(dim=-1, keepdim=True)"
exercise.mistake("Use the logits at the last position, not those at the first.", "[:, -1] → [:, 0]")
exercise.mistake("Greedy decoding takes the token with the largest logit, not the smallest.", "argmax → argmin")
exercise.mistake(
    "Your code doesn't pass the caches, so the model processes the whole text in each call.",
    "model(new, caches) → model(ids)",
)  # fmt: skip
exercise.mistake("Don't pass tokens that are already in the cache. Pass only the new ones.",
                 "model(new, caches) → model(ids, caches)",
                 together_with=["new = ids → new, old = ids.clone(), ids"])  # fmt: skip
exercise.mistake("Your code makes new, empty caches in each call. Make them once.",
                 "new = model(new, caches) → new = model(new, model.new_caches(len(ids), ids.shape[1] + count - 1))")  # fmt: skip
exercise.mistake(
    "The caches need no room for the last new token, because it isn't processed.",
    f"{room} → ids.shape[1] + count",
)  # fmt: skip
exercise.mistake("The caches need room for the prompt, too.", f"{room} → count")
exercise.mistake("The caches need room for the new tokens, too.", f"{room} → ids.shape[1]")
exercise.mistake("Ask for exactly as much room as you need, not for a large fixed number of tokens.", f"{room} → 1_024")
exercise.mistake("Make the caches for all rows, not for one.", "len(ids) → 1")
exercise.mistake(
    "The batch size is the number of rows in `ids`, not the number of columns.",
    "new_caches(len(ids) → new_caches(ids.shape[1]",
)  # fmt: skip
exercise.mistake(
    "Return the prompt as well, followed by the new ids.",
    "    return ids → return ids[:, ids.shape[1] - count :]",
)  # fmt: skip
exercise.mistake("Your result has one token too many.", "range(count) → range(count + 1)", f"{room} → ids.shape[1] + count")
exercise.mistake("Your code stops one token early.", "range(count) → range(count - 1)")
exercise.mistake(
    "Put the new ids after the old ones, not before.",
    "torch.cat([ids, new], dim=1) → torch.cat([new, ids], dim=1)",
)  # fmt: skip
exercise.mistake("Choose the next token for each row separately.", f"{step} → {step}[:1].expand(len(ids), 1)")
exercise.mistake(
    "Your code records every call for a backward pass, so the memory fills up. Switch recording off.",
    "with torch.no_grad(): → if True:",
)  # fmt: skip
exercise.mistake(
    "Gradient recording is still off after your function has returned. Switch it off only while the function runs.",
    "with torch.no_grad(): → torch.set_grad_enabled(False)\n    if True:",
)  # fmt: skip
exercise.mistake("Your code processes the last new token as well, although nothing follows it.",
                 f"{room} → ids.shape[1] + count",
                 "    return ids → if count:\n        model(new, caches).detach()\n    return ids")  # fmt: skip
exercise.mistake("Your code changes `ids` in place. Make a new tensor instead.",
                 "new = ids → new, old = ids.clone(), ids",
                 "    return ids → old.resize_(ids.shape).copy_(ids)\n    return ids")  # fmt: skip

# %% mistake: the prompt token by token
# says: Pass the whole prompt in one call, not token by token.
def generate_cached(model, ids, count):
    with torch.no_grad():
        caches = model.new_caches(len(ids), max(ids.shape[1] + count - 1, 0))
        if not count:
            return ids
        for column in ids.split(1, dim=1):
            logits = model(column, caches)
        for number in range(count):
            new = logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, new], dim=1)
            if number + 1 < count:
                logits = model(new, caches)
    return ids

# %% wrong: the prompt is processed even if nothing is written
def generate_cached(model, ids, count):
    with torch.no_grad():
        caches = model.new_caches(len(ids), max(ids.shape[1] + count - 1, ids.shape[1]))
        new = model(ids, caches)[:, -1:].argmax(-1)
        columns = [ids]
        for number in range(count):
            columns.append(new)
            if number < count - 1:
                new = model(new, caches)[:, -1:].argmax(-1)
    return torch.cat(columns, dim=1)

# %% wrong: row by row
def generate_cached(model, ids, count):
    rows = []
    with torch.no_grad():
        for row in ids.split(1):
            caches, new = model.new_caches(1, row.shape[1] + count - 1), row
            for _ in range(count):
                new = model(new, caches)[:, -1].argmax(-1, keepdim=True)
                row = torch.cat([row, new], dim=1)
            rows.append(row)
    return torch.cat(rows)

# %% wrong: grows the cache by making another, which has to see the text again (from the statement)
def generate_cached(model, ids, count):
    with torch.no_grad():
        for _ in range(count):
            caches = model.new_caches(len(ids), ids.shape[1])
            logits = model(ids, caches)
            ids = torch.cat([ids, logits[:, -1].argmax(dim=-1)[:, None]], dim=1)
    return ids

# %% wrong: takes the token of all rows together (from the statement)
def generate_cached(model, ids, count):
    out = ids.clone()
    if count == 0:
        return out
    with torch.no_grad():
        caches = model.new_caches(ids.shape[0], ids.shape[1] + count - 1)
        logits = model(out, caches)
        for i in range(count):
            token = logits[:, -1].argmax() % logits.shape[-1]
            new = token.repeat(len(out), 1)
            out = torch.cat((out, new), 1)
            if i < count - 1:
                logits = model(new, caches)
    return out

# %% wrong: detaches instead of recording nothing (from the statement)
def generate_cached(model, ids, count):
    if not count:
        return ids.clone()
    caches = model.new_caches(len(ids), ids.shape[1] + count - 1)
    chunks, new = [ids], ids
    for _ in range(count):
        new = model(new, caches).detach()[:, -1].argmax(-1, keepdim=True)
        chunks.append(new)
    return torch.cat(chunks, 1)

# %% wrong: keeps the caches of an earlier call (from the statement)
_CACHES = {}

def generate_cached(model, ids, count):
    if count == 0:
        return ids
    b, t = ids.shape
    with torch.no_grad():
        key = (id(model), b, t + count - 1)
        if key not in _CACHES:
            _CACHES[key] = model.new_caches(b, t + count - 1)
        caches = _CACHES[key]
        out, step = ids, ids
        for _ in range(count):
            step = model(step, caches)[:, -1].argmax(dim=-1, keepdim=True)
            out = torch.cat([out, step], dim=1)
    return out

# %% wrong: from lists of Python's, so on the CPU (from the statement)
# unseen: only hidden inputs are on another device
@torch.no_grad()
def generate_cached(model, ids, count):
    rows = ids.tolist()
    caches, new = model.new_caches(len(ids), ids.shape[1] + count - 1) if count else None, ids
    for _ in range(count):
        best = model(new, caches)[:, -1].argmax(dim=-1).tolist()
        rows = [[*row, one] for row, one in zip(rows, best)]
        new = torch.tensor(best)[:, None]
    return torch.tensor(rows)

# %% wrong: takes the softmax first, in which small logits are equal (from the statement)
# unseen: the visible logits are of the usual size
@torch.no_grad()
def generate_cached(
    model: Any, ids: Int[Tensor, "b t"], count: int
) -> Int[Tensor, "b t_and_count"]:
    """ids, then `count` more in each row: prefill once, then decode token by token."""
    if count == 0:
        return ids.clone()
    b, t = ids.shape
    caches = model.new_caches(b, t + count - 1)
    result, new = ids, ids
    for _ in range(count):
        probabilities = model(new, caches)[:, -1, :].softmax(dim=-1)
        new = torch.argmax(probabilities, dim=-1, keepdim=True)
        result = torch.cat([result, new], dim=1)
    return result

# %% wrong: topk, which takes any of several largest logits (from the statement)
# unseen: students see no two logits that are alike
@torch.no_grad()
def generate_cached(
    model: Any, ids: Int[Tensor, "b t"], count: int
) -> Int[Tensor, "b t_and_count"]:
    """ids, then `count` more in each row: prefill once, then decode token by token."""
    if count == 0:
        return ids.clone()
    batch, length = ids.shape
    caches = model.new_caches(batch, length + count - 1)
    new, pieces = ids, [ids]
    for _ in range(count):
        logits = model(new, caches)[:, -1]
        new = logits.topk(1, dim=-1).indices
        pieces.append(new)
    return torch.cat(pieces, dim=1)

# %% right: prefill and decode apart, into a tensor of full size
@torch.no_grad()
def generate_cached(model, ids, count):
    b, t = ids.shape
    out = torch.empty(b, t + count, dtype=torch.int64, device=ids.device)
    out[:, :t] = ids
    if count:
        caches = model.new_caches(b, t + count - 1)
        logits = model(ids, caches)
        for end in range(t, t + count - 1):
            out[:, end] = logits[:, -1].argmax(-1)
            logits = model(out[:, end : end + 1], caches)
        out[:, -1] = logits[:, -1].argmax(-1)
    return out

# %% right: a list of columns
def generate_cached(model, ids, count):
    if count == 0:
        return ids.clone()
    columns = [ids]
    with torch.inference_mode():
        caches = model.new_caches(batch=len(ids), capacity=ids.shape[-1] + count - 1)
        while len(columns) <= count:
            columns.append(model(columns[-1], caches)[:, -1:].argmax(dim=2))
    return torch.hstack(columns)

# %% right: calls itself for the rest
def generate_cached(model, ids, count, caches=None, known=None):
    known = ids if known is None else known
    if count == 0:
        return known
    with torch.no_grad():
        if caches is None:
            caches = model.new_caches(ids.shape[0], ids.shape[1] + count - 1)
        new = model(ids, caches)[..., -1, :].max(dim=-1, keepdim=True).indices
    return generate_cached(model, new, count - 1, caches, torch.cat((known, new), dim=-1))

# %% equivalent: -1 → 1 #2
# why: the logits of one position have two dimensions, and the last is number 1
