from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given

exercise = Exercise("Entry [query, key] is True if key ≤ query and, with a window, if the key isn't too far back.")


def entries(student, t, *window):
    """For each query, the keys that it may look at; whatever kind of numbers the mask holds."""
    mask = student.causal_mask(t, *window)
    if tuple(mask.shape) != (t, t):
        return {"shape": list(mask.shape), "keys for each query": None}
    if t > 300:
        seen = mask != 0
        ends = {"first": seen.int().argmax(dim=1), "last": t - 1 - seen.flip(1).int().argmax(dim=1), "number": seen.sum(dim=1)}
        return {"shape": [t, t]} | {f"{end} of the keys for each query": keys.tolist() for end, keys in ends.items()}
    keys = [[key for key, seen in enumerate(row) if seen] for row in mask.tolist()]
    return {"shape": [t, t], "keys for each query": keys}


def kind(student, t, *window):
    """What the mask is made of; and whether the next one is the same, after somebody has written into this one."""
    import torch

    mask = student.causal_mask(t, *window)
    found = {"dtype": str(mask.dtype), "shape": list(mask.shape)}
    first = mask.clone()
    mask.zero_()
    return found | {"the next mask is the same, after somebody wrote into this one": torch.equal(student.causal_mask(t, *window), first)}


def case(t, *window):
    return given(t, *window, says=f"the keys that each query may look at in causal_mask({', '.join(map(str, (t, *window)))})")


@st.composite
def windows(draw):
    t = draw(st.integers(1, 40))
    return given(t, draw(st.integers(1, t + 3)))


exercise.requirement(
    "entry [query, key], for any t: a query may see itself and the keys before it, and none after it",
    points=0.75,
    probe=entries,
    visible=[case(3), case(5), case(3, None)],
    edges={"one token": given(1), "two": given(2), "four": given(4), "many": given(260), "None": given(7, None), "thousands": given(2_050)},
    domain=st.builds(given, st.integers(1, 60)) | st.builds(given, st.integers(1, 60), st.none()),
)
exercise.requirement(
    "with a window, a query sees at most `window` keys: the nearest ones, its own included",
    points=0.75,
    probe=entries,
    visible=[case(5, 2), case(4, 3), case(3, 1), case(3, 7)],
    edges={
        "one token": given(1, 1),
        "three": given(3, 2),
        "as wide as the text": given(5, 5),
        "one less": given(5, 4),
        "one more": given(5, 6),
        "many": given(260, 128),
        "thousands": given(2_050, 100),
    },
    domain=windows(),
    hint="How far back is the farthest key? Try it with a window of 1.",
)
exercise.requirement(
    "the entries are Booleans (the dtype is torch.bool), in a new tensor each time",
    points=0.5,
    probe=kind,
    visible=[given(3, says="causal_mask(3)"), given(4, 2, says="causal_mask(4, 2)")],
    edges={"one token": given(1), "many": given(130), "with a wide window": given(3, 9)},
    domain=st.builds(given, st.integers(1, 60)) | windows(),
    hint="The dtype must be torch.bool, and each call must make a new tensor.",
)

numbers = "Your entries are numbers; the exercise asks for Booleans."
exercise.mistake("Your result is the transpose: query 0 would see the whole text, the future included.", "tril() → triu()")
exercise.mistake("A token may see itself: the diagonal is True.", "tril() → tril(diagonal=-1)")
exercise.mistake("It's the other way around: True means that the query may see the key.", "tril() → triu(diagonal=1)")
exercise.mistake("Your code lets every query look one token ahead.", "tril() → tril(diagonal=1)")
exercise.mistake("In your mask every query sees every key, including the future.", ".tril() → ")
exercise.mistake("Your result is the diagonal alone; a query may also see the keys before it.", "tril() → tril().triu()")
exercise.mistake("Your code ignores the argument window.", "window is not None → False")
exercise.mistake("The token itself is one of the keys in its window: your mask has one too many.", "1 - window → -window")
exercise.mistake("Your mask has one key too few in each window.", "1 - window → 2 - window")
exercise.mistake("Your code cuts off the near keys and keeps the far ones.", "mask.triu(diagonal=1 - window) → mask.tril(diagonal=-window)")
exercise.mistake("The window lies before the token, not after it: change the sign of the diagonal's offset.", "mask.triu(diagonal=1 - window) → mask.triu(diagonal=window - 1)")
exercise.mistake(numbers, "dtype=torch.bool → dtype=torch.int64")
exercise.mistake(numbers, "dtype=torch.bool → dtype=torch.uint8")

# %% mistake: floats
# says: Your entries are numbers; the exercise asks for Booleans.
def causal_mask(t, window=None):
    return torch.tril(torch.ones(t, t)).triu(1 - (window or t))

# %% mistake: to be added to scores
# says: Your mask is additive: 0 where the query may see the key. Return Booleans instead, True where the query may see the key.
def causal_mask(t, window=None):
    return torch.zeros(t, t).masked_fill(~torch.ones(t, t).tril().triu(1 - (window or t)).bool(), float("-inf"))

# %% mistake: a list
# says: Your result is a list of lists; make it a tensor.
def causal_mask(t, window=None):
    return [[query - (window or t) < key <= query for key in range(t)] for query in range(t)]

# %% mistake: a window where nothing is said
# says: Without a window a query may see everything before it, however far back.
def causal_mask(t, window=3):
    position = torch.arange(t)
    back = position[:, None] - position[None, :]
    return (back >= 0) & (back < (window or 3))

# %% wrong: nobody may look
def causal_mask(t, window=None):
    return torch.zeros(t, t, dtype=torch.bool).tril()

# %% wrong: a batch dimension in front
def causal_mask(t, window=None):
    return torch.ones(1, t, t, dtype=torch.bool).tril().triu(1 - (window or t))

# %% wrong: at most a hundred keys
# unseen: only a text of more than a hundred tokens shows it
def causal_mask(t, window=100):
    return torch.ones(t, t, dtype=torch.bool).tril().triu(1 - (window or 100))

# %% wrong: the mask of four
def causal_mask(t, window=None):
    mask = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()[:t, :t]
    return mask.triu(1 - (window or t))

# %% wrong: the last query sees nothing
def causal_mask(t, window=None):
    mask = torch.zeros(t, t, dtype=torch.bool)
    for query in range(t - 1):
        mask[query, max(0, query + 1 - (window or t)) : query + 1] = True
    return mask

# %% wrong: a window wider than the text counts from the end
def causal_mask(t, window=None):
    mask = torch.zeros(t, t, dtype=torch.bool)
    for query in range(t):
        mask[query, (query + 1 - window if window else 0) : query + 1] = True
    return mask

# %% wrong: blocks in place of a window that moves along
def causal_mask(t, window=None):
    mask = torch.ones(t, t, dtype=torch.bool).tril()
    if window is not None:
        block = torch.arange(t) // window
        mask &= block[:, None] == block[None, :]
    return mask

# %% wrong: bytes compared, and turned back
def causal_mask(t, window=None):
    position = torch.arange(t)
    back = position[:, None] - position[None, :]
    return ((back >= 0) & (back < (window or t))).to(torch.uint8)

# %% wrong: a wide window is cut to t - 1 (from the statement)
def causal_mask(t: int, window: int | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may look at a key: at itself and at what came before, at most `window` keys in all."""
    mask = torch.ones(t, t, dtype=torch.bool).tril()
    if window is not None:
        window = min(window, t - 1)
        mask = mask.triu(diagonal=1 - window)
    return mask

# %% wrong: without a window the same matrix is returned again (from the statement)
from functools import lru_cache


@lru_cache
def _lower(t: int) -> Tensor:
    return torch.ones(t, t, dtype=torch.bool).tril()


def causal_mask(t: int, window: int | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may look at a key: at itself and at what came before, at most `window` keys in all."""
    mask = _lower(t)
    if window is not None:
        mask = mask & ~mask.tril(diagonal=-window)
    return mask

# %% wrong: a call with a window narrows later calls without one (from the statement)
_masks: dict[int, Tensor] = {}


def causal_mask(t: int, window: int | None = None) -> Bool[Tensor, "query key"]:
    """True where a query may look at a key: at itself and at what came before, at most `window` keys in all."""
    if t not in _masks:
        _masks[t] = torch.ones(t, t, dtype=torch.bool).tril()
    mask = _masks[t]
    if window is not None:
        mask &= torch.ones(t, t, dtype=torch.bool).triu(diagonal=1 - window)
    return mask.clone()

# %% right: compares positions
def causal_mask(t, window=None):
    back = torch.arange(t)[:, None] - torch.arange(t)
    return (back >= 0) & (back < (t if window is None else window))

# %% right: a plain loop
def causal_mask(t, window=None):
    return torch.tensor([[key <= query < key + (window or t) for key in range(t)] for query in range(t)])

# %% right: what is left of two triangles
def causal_mask(t, window=None):
    future = torch.triu(torch.ones(t, t), diagonal=1).bool()
    past = torch.zeros_like(future) if window is None else torch.ones(t, t).tril(-window).bool()
    return ~(future | past)

# %% right: the transpose of a band
def causal_mask(t, window=None):
    return torch.ones(t, t).triu().tril(t if window is None else window - 1).T == 1

# %% right: row by row
def causal_mask(t, window=None):
    mask = torch.zeros((t, t), dtype=torch.bool)
    for query in range(t):
        first = 0 if window is None else max(query - window + 1, 0)
        mask[query, first : query + 1] = True
    return mask
