import torch
from hypothesis import assume
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("At which guess do you stop, and how much of each token's target probability is still missing there?")


def verified(student, draft, target, tokens, uniforms):
    """What verify returns."""
    result = student.verify(draft, target, tokens, uniforms)
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    kept, probabilities = result if pair else (result, None)
    return {"two things": pair, "kept": kept, "probabilities": probabilities}


def of(draft, target, tokens, uniforms, dtype=torch.float64):
    """A case from lists, which the student reads."""
    def matrix(rows):
        return torch.tensor(rows, dtype=dtype)

    said = (
        f"draft    = torch.tensor({draft})\ntarget   = torch.tensor({target})\n"
        f"tokens   = torch.tensor({tokens})\nuniforms = torch.tensor({uniforms})\n"
        "verify(draft, target, tokens, uniforms)"
    )
    return given(matrix(draft), matrix(target), torch.tensor(tokens), matrix(uniforms), says=said)


@st.composite
def probabilities(draw, vocabulary, dense=False):
    """A row of probabilities, often with zeros."""
    low = 1 if dense else draw(any_of(0, 1))
    parts = draw(st.lists(st.integers(low, 20), min_size=vocabulary, max_size=vocabulary))
    if not any(parts):
        parts[draw(st.integers(0, vocabulary - 1))] = 1
    return [part / sum(parts) for part in parts]


@st.composite
def rounds(draw, ends=("kept", "replaced")):
    """A round of 1 to 5 guesses: all kept, or one of them replaced, with any uniform numbers after that."""
    k, vocabulary = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    stop = k if draw(any_of(*ends)) == "kept" else draw(st.integers(0, k - 1))
    target = [draw(probabilities(vocabulary)) for _ in range(k + 1)]
    draft, tokens, uniforms = [], [], []
    for i in range(k):
        row = draw(probabilities(vocabulary)) if draw(any_of(True, True, False)) else list(target[i])
        share = [p / q if q else -1.0 for p, q in zip(target[i], row, strict=True)]
        fits = [x for x in range(vocabulary) if (0 <= share[x] < 0.99 if i == stop else share[x] > 0.01)]
        if i > stop:
            fits = [x for x in range(vocabulary) if row[x]]
        assume(fits)
        token = draw(any_of(*fits))
        where = draw(st.integers(0, 999)) / 1000
        if i < stop:
            uniform = where * min(1.0, share[token]) * 0.99
        elif i == stop:
            uniform = share[token] + (1 - share[token]) * (0.005 + 0.99 * where) if share[token] else where
        else:
            uniform = 0.0 if where < 0.5 else where  # would often be kept
            assume(abs(uniform - share[token]) > 1e-3 or uniform == share[token] == 0)
        draft.append(row), tokens.append(token), uniforms.append(uniform)
    draft, target, uniforms = (torch.tensor(x, dtype=torch.float64) for x in (draft, target, uniforms))
    if draw(st.booleans()):  # rows that aren't next to each other in memory
        draft, target = draft.T.contiguous().T, target.T.contiguous().T
    return given(draft, target, torch.tensor(tokens), uniforms)


HALF, FAR = [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]
exercise.requirement(
    "the number of guesses that are kept: those before the first whose uniform number isn't less than p / q",
    points=0.5,
    probe=verified,
    rules={"probabilities": "ignored"},
    visible=[
        of([HALF, HALF, HALF], [[0.2, 0.3, 0.5]] * 4, [0, 1, 0], [0.3, 0.7, 0.1]),
        of([HALF, HALF], [[0.2, 0.3, 0.5]] * 3, [0, 1], [0.41, 0.1]),
        of([FAR, HALF], [[0.6, 0.2, 0.2], [0.4, 0.1, 0.5], HALF], [0, 0], [0.99, 0.79]),
        of([HALF], [[0.0, 0.3, 0.7], HALF], [0], [0.0]),
        of([[0.1, 0.8, 0.1]], [[0.25, 0.6, 0.15], HALF], [1], [0.7]),
        of([[0.5, 0.4, 0.1]], [[0.2, 0.7, 0.1], HALF], [0], [0.3]),
        of([[0.005, 0.995]], [[0.004, 0.996], [0.5, 0.5]], [0], [0.75]),
    ],
    edges={
        "one guess, kept": of([HALF], [FAR, HALF], [1], [0.3]),
        "one guess, not kept": of([HALF], [FAR, HALF], [1], [0.5]),
        "p is larger than q": of([FAR, FAR], [HALF] * 3, [0, 1], [0.999, 0.999]),
        "p equals q": of([FAR, FAR], [FAR] * 3, [0, 2], [0.999, 0.0]),
        "the last isn't kept": of([HALF] * 4, [[0.4, 0.4, 0.2]] * 5, [0, 1, 0, 1], [0.1, 0.7, 0.79, 0.81]),
        "the target never chooses it": of([HALF, HALF], [HALF, [0.0, 1.0, 0.0], HALF], [0, 0], [0.0, 0.0]),
        "zeros at the other tokens": of([[0.0, 1.0, 0.0]], [[0.5, 0.5, 0.0], HALF], [1], [0.6]),
        "float32": of([HALF, HALF], [[0.2, 0.3, 0.5]] * 3, [0, 1], [0.3, 0.7], torch.float32),
        "both are tiny": of([[1e-6, 1 - 1e-6]], [[5e-7, 1 - 5e-7], [0.5, 0.5]], [0], [0.51]),
        "many guesses": of([HALF] * 20, [[0.45, 0.45, 0.1]] * 21, [0, 1] * 10, [0.8] * 17 + [0.95, 0.1, 0.1]),
        "more guesses than bfloat16 can count": of([HALF] * 257, [HALF] * 258, [0] * 257, [0.5] * 257, torch.bfloat16),
        "numbers in float32, probabilities in bfloat16": given(
            torch.tensor([[0.25, 0.75]]).bfloat16(), torch.tensor([[0.5, 0.5]] * 2).bfloat16(), torch.tensor([0]),
            torch.tensor([0.9999])),
        "all after the first would be kept": of([HALF] * 4, [[0.4, 0.4, 0.2]] * 5, [0, 1, 0, 1], [0.9, 0.0, 0.0, 0.0]),
    },
    domain=rounds(),
    hint="Go through the guesses in order. What is p / q for each of them, and when do you stop?",
)
exercise.requirement(
    "if all guesses are kept, the next token has the probabilities in the target's last row",
    points=0.25,
    probe=verified,
    rules={"kept": "ignored"},
    visible=[
        of([HALF, FAR], [[0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.7, 0.1, 0.2]], [1, 1], [0.5, 0.2]),
        of([FAR], [[0.3, 0.3, 0.4], [0.0, 0.9, 0.1]], [0], [0.9]),
        of([HALF, HALF], [HALF, [0.3, 0.6, 0.1], FAR], [0, 1], [0.25, 0.125]),
    ],
    edges={
        "as in the draft": of([FAR, FAR], [FAR, FAR, HALF], [2, 2], [0.9, 0.1]),
        "one token is certain": of([HALF], [HALF, [0.0, 0.0, 1.0]], [0], [0.0]),
        "float32": of([HALF], [HALF, [0.25, 0.5, 0.25]], [0], [0.4], torch.float32),
        "many guesses": of([HALF] * 9, [HALF] * 9 + [FAR], [0, 1, 0] * 3, [0.5] * 9),
    },
    domain=rounds(ends=("kept",)),
    hint="target has one more row than draft. What is it for?",
)
exercise.requirement(
    "if a guess isn't kept, the next token's probabilities are such that kept guesses and replacements together "
    "give each token the target's probability",
    points=0.75,
    probe=verified,
    rules={"kept": "ignored"},
    visible=[
        of([HALF], [[0.2, 0.3, 0.5], [0.9, 0.1, 0.0]], [0], [0.7]),
        of([[0.1, 0.8, 0.1]], [[0.25, 0.6, 0.15], [0.1, 0.1, 0.8]], [1], [0.9]),
        of([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2]], [[0.5, 0.2, 0.3], [0.1, 0.65, 0.25], [0.3, 0.3, 0.4]], [0, 0], [0.2, 0.5]),
        of([[0.7, 0.1, 0.2], [0.4, 0.4, 0.2]], [[0.35, 0.2, 0.45], [0.1, 0.65, 0.25], [0.3, 0.3, 0.4]], [0, 1], [0.6, 0.5]),
    ],
    edges={
        "a little is missing": of([[0.5, 0.4995, 0.0005]], [[0.4985, 0.5, 0.0015], HALF], [0], [0.998]),
        "the draft was certain": of([[0.0, 1.0, 0.0]], [[0.3, 0.5, 0.2], HALF], [1], [0.6]),
        "the target is certain": of([HALF], [[0.0, 1.0, 0.0], FAR], [0], [0.4]),
        "nothing in common": of([HALF], [[0.0, 0.0, 1.0], HALF], [1], [0.0]),
        "nearly the same": of([[0.5, 0.3, 0.2]], [[0.45, 0.34, 0.21], HALF], [0], [0.95]),
        "a single token lacks something": of([[0.2, 0.4, 0.4]], [[0.6, 0.2, 0.2], HALF], [1], [0.8]),
        "float32": of([HALF], [[0.25, 0.25, 0.5], HALF], [0], [0.75], torch.float32),
        "two tokens": of([[0.75, 0.25]], [[0.25, 0.75], [1.0, 0.0]], [0], [0.5]),
        "the last of many": of([HALF] * 6, [HALF] * 5 + [FAR, HALF], [0] * 6, [0.5] * 5 + [0.3]),
    },
    domain=rounds(ends=("replaced",)),
    hint="Guesses that are kept already give each token some of its probability. How much, and how much is still "
         "missing?",
)

MISSING = "missing = (target[i] - draft[i]).clamp(min=0)"
TEST = "uniforms[i] >= target[i, token] / draft[i, token]"
exercise.mistake("If a replacement is drawn with the target's own probabilities, tokens that the kept guesses "
                 "already produce often enough appear too often.",
                 f"{MISSING} → missing = target[i]")  # fmt: skip
exercise.mistake("Your probabilities don't add up to 1.", "missing / missing.sum() → missing")
exercise.mistake("A probability can't be negative: where the target has less than the draft, nothing is missing.",
                 ".clamp(min=0) → ")  # fmt: skip
exercise.mistake("Where the target has less than the draft, nothing is missing; your code takes the absolute "
                 "value of the difference.",
                 ".clamp(min=0) → .abs()")  # fmt: skip
exercise.mistake("Replacements have to make up for tokens that the guesses produce too rarely, not for those "
                 "that they produce too often: look at the sign.",
                 "(target[i] - draft[i]) → (draft[i] - target[i])")  # fmt: skip
exercise.mistake("A division is enough to turn these numbers into probabilities; softmax changes their ratios.",
                 "missing / missing.sum() → missing.softmax(dim=-1)")  # fmt: skip
exercise.mistake("If all k guesses are kept, return the target's last row; yours is the one before it.",
                 "return len(tokens), target[-1] → return len(tokens), target[-2]")  # fmt: skip
exercise.mistake("If all k guesses are kept, return the target's last row; your code takes the first.",
                 "return len(tokens), target[-1] → return len(tokens), target[0]")  # fmt: skip
exercise.mistake("target[i] has the probabilities at the position of guess i; your code looks one row further.",
                 f"{TEST} → uniforms[i] >= target[i + 1, token] / draft[i, token]",
                 "(target[i] - draft[i]) → (target[i + 1] - draft[i])")  # fmt: skip
exercise.mistake("Take the replacement's probabilities from the position of the guess that it replaces, not from "
                 "the one after it.",
                 "(target[i] - draft[i]) → (target[i + 1] - draft[i])")  # fmt: skip
exercise.mistake("The fraction is upside down: guesses that are less probable under the target have to be kept "
                 "less often.",
                 f"{TEST} → uniforms[i] >= draft[i, token] / target[i, token]")  # fmt: skip
exercise.mistake("Compare the uniform number with p / q, not with p.", f"{TEST} → uniforms[i] >= target[i, token]")
exercise.mistake("A guess is kept if its uniform number is less than p / q; your code keeps the others.",
                 f"{TEST} → uniforms[i] < target[i, token] / draft[i, token]")  # fmt: skip
exercise.mistake("A guess with p = 0 is never kept, not even if its uniform number is 0.",
                 f"{TEST} → uniforms[i] > target[i, token] / draft[i, token]")  # fmt: skip
exercise.mistake("Your count includes the guess that isn't kept.", "return i, missing → return i + 1, missing")
exercise.mistake("Return how many guesses are kept, not how many are dropped.",
                 "return i, missing → return len(tokens) - i, missing", "return len(tokens), target → return 0, target")  # fmt: skip
exercise.mistake("Return both: the number of guesses that are kept, and the next token's probabilities.",
                 "return i, missing / missing.sum() → return i", "return len(tokens), target[-1] → return len(tokens)")  # fmt: skip
exercise.mistake("The guess is the token in `tokens`, which needn't be the draft model's most probable one.",
                 f"{TEST} → uniforms[i] >= target[i, draft[i].argmax()] / draft[i].max()")  # fmt: skip

# %% mistake: the rejected token ruled out
# says: Ruling out the guess isn't enough: other tokens may already appear often enough, too, and the rest don't all lack the same amount of probability.
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target[i, token] / draft[i, token]:
            rest = target[i].clone()
            rest[token] = 0
            return i, rest / rest.sum()
    return len(tokens), target[-1]

# %% mistake: replaces the last guess even if all are kept
# says: If all guesses are kept, none of them needs a replacement: what follows them?
def verify(draft, target, tokens, uniforms):
    kept = 0
    while kept < len(tokens) and uniforms[kept] * draft[kept, tokens[kept]] < target[kept, tokens[kept]]:
        kept += 1
    place = min(kept, len(tokens) - 1)
    missing = (target[place] - draft[place]).clamp(min=0)
    return kept, missing / missing.sum().clamp(min=1e-9)

# %% mistake: counts all that pass
# says: A guess after one that isn't kept is dropped, whatever its own uniform number says.
def verify(draft, target, tokens, uniforms):
    places = torch.arange(len(tokens))
    passed = uniforms < target[places, tokens] / draft[places, tokens]
    kept = int(passed.sum())
    if kept == len(tokens):
        return kept, target[-1]
    i = int(passed.int().argmin())
    missing = (target[i] - draft[i]).clamp(min=0)
    return kept, missing / missing.sum()

# %% mistake: subtracts in place
# says: Your code changes target: compute the difference in a new tensor.
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target[i, token] / draft[i, token]:
            target[i] -= draft[i]
            missing = target[i].clamp(min=0)
            return i, missing / missing.sum()
    return len(tokens), target[-1]

# %% wrong: never divides by a small number (from the statement)
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target[i, token] / draft[i, token].clamp(min=1e-2):
            missing = (target[i] - draft[i]).clamp(min=0)
            return i, missing / missing.sum()
    return len(tokens), target[-1]

# %% wrong: greedy, by the most likely tokens
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if target[i].argmax() != token:
            missing = (target[i] - draft[i]).clamp(min=0)
            return i, missing / missing.sum()
    return len(tokens), target[-1]

# %% wrong: keeps what the target likes more, without chance
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if target[i, token] < draft[i, token]:
            missing = (target[i] - draft[i]).clamp(min=0)
            return i, missing / missing.sum()
    return len(tokens), target[-1]

# %% wrong: the replacement's probabilities in float32
def verify(draft, target, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target[i, token] / draft[i, token]:
            missing = (target[i] - draft[i]).clamp(min=0).float()
            return i, missing / missing.sum()
    return len(tokens), target[-1]

# %% wrong: the first row in which anything is missing
def verify(draft, target, tokens, uniforms):
    k = len(tokens)
    ratio = target[:k].gather(1, tokens[:, None])[:, 0] / draft.gather(1, tokens[:, None])[:, 0]
    kept = int((uniforms < ratio).long().cumprod(0).sum())
    if kept == k:
        return kept, target[k]
    missing = (target[:k] - draft).clamp(min=0).sum(0)
    return kept, missing / missing.sum()

# %% wrong: the rejected guess stays the only one that can't come (from the statement)
def verify(draft, target, tokens, uniforms):
    kept = 0
    for q, p, x, u in zip(draft, target, tokens, uniforms):
        if u < min(1.0, float(p[x] / q[x])):
            kept += 1
            continue
        allowed = torch.ones_like(p)
        allowed[x] = 0.0
        return kept, (p * allowed) / (p * allowed).sum()
    return kept, target[kept]

# %% wrong: a mixture of what both models say (from the statement)
def verify(draft, target, tokens, uniforms):
    k = tokens.shape[0]
    for i in range(k):
        p, q = target[i, tokens[i]], draft[i, tokens[i]]
        if uniforms[i] < p / q:
            continue
        accept = torch.minimum(torch.ones_like(p), p / q)
        mixed = (target[i] - accept * draft[i]).clamp(min=0)
        return i, mixed / mixed.sum()
    return k, target[k]

# %% wrong: what's missing is weighted once more by the target (from the statement)
def verify(draft, target, tokens, uniforms):
    for i in range(len(tokens)):
        x = tokens[i]
        ratio = target[i, x] / draft[i, x]
        if uniforms[i] >= ratio:
            keep = torch.clamp(target[i] / draft[i].clamp(min=1e-12), max=1.0)
            left = target[i] * (1 - draft[i] * keep)
            return i, left / left.sum()
    return len(tokens), target[len(tokens)]

# %% wrong: counts guesses after the first that isn't kept (from the statement)
def verify(draft, target, tokens, uniforms):
    k = len(tokens)
    p = target[:k][range(k), tokens]
    q = draft[range(k), tokens]
    ok = uniforms < p / q
    n = int(ok.sum())
    if ok.all():
        return n, target[k]
    rest = torch.relu(target[n] - draft[n])
    return n, rest / rest.sum()

# %% wrong: the next row is used even if a guess is replaced (from the statement)
def verify(draft, target, tokens, uniforms):
    n = 0
    while n < len(tokens) and uniforms[n] < target[n, tokens[n]] / draft[n, tokens[n]]:
        n += 1
    return n, target[n]

# %% wrong: counts in the dtype of the probabilities (from the statement)
# unseen: there are few visible guesses
def verify(
    draft: Float[Tensor, "k vocabulary"],
    target: Float[Tensor, "k_plus_1 vocabulary"],
    tokens: Int[Tensor, "k"],
    uniforms: Float[Tensor, "k"],
) -> tuple[int, Float[Tensor, "vocabulary"]]:
    """How many of the draft's tokens are kept, and the probabilities of the token that follows them."""
    k = tokens.shape[0]
    rows = torch.arange(k, device=tokens.device)
    ratio = target[rows, tokens] / draft[rows, tokens]
    keep = (uniforms < ratio).to(draft.dtype)
    kept = int(keep.cumprod(dim=0).sum().item())
    if kept == k:
        return kept, target[k].clone()
    rest = torch.clamp(target[kept] - draft[kept], min=0)
    return kept, rest / rest.sum()

# %% wrong: rounds the uniform numbers to the dtype of the probabilities (from the statement)
# unseen: students see one dtype for both
def verify(
    draft: Float[Tensor, "k vocabulary"],
    target: Float[Tensor, "k_plus_1 vocabulary"],
    tokens: Int[Tensor, "k"],
    uniforms: Float[Tensor, "k"],
) -> tuple[int, Float[Tensor, "vocabulary"]]:
    """How many of the draft's tokens are kept, and the probabilities of the token that follows them."""
    k = tokens.shape[0]
    p = target[:k].gather(1, tokens[:, None]).squeeze(1)
    q = draft.gather(1, tokens[:, None]).squeeze(1)
    accepted = uniforms.to(draft.dtype) < torch.clamp(p / q, max=1)
    kept = k if bool(accepted.all()) else int((~accepted).int().argmax())
    if kept == k:
        return k, target[k]
    rest = (target[kept] - draft[kept]).clamp(min=0)
    return kept, rest / rest.sum()

# %% right: all guesses at once
def verify(draft, target, tokens, uniforms):
    k = len(tokens)
    p = target[:k].gather(1, tokens[:, None]).squeeze(1)
    q = draft.gather(1, tokens[:, None]).squeeze(1)
    kept = int((uniforms < p / q).long().cumprod(dim=0).sum())
    if kept == k:
        return kept, target[k].clone()
    lacking = torch.relu(target[kept] - draft[kept])
    return kept, lacking / lacking.sum()

# %% right: what the kept guesses give, subtracted
def verify(draft, target, tokens, uniforms):
    for i, (q, p, x, u) in enumerate(zip(draft, target, tokens, uniforms)):
        if u * q[x] >= p[x]:
            given_already = torch.minimum(p, q)
            return i, (p - given_already) / (1 - given_already.sum())
    return len(draft), target[len(draft)]

# %% right: a row of zeros after the draft's last
def verify(draft, target, tokens, uniforms):
    i = 0
    while i < len(tokens) and float(uniforms[i]) < float(target[i][tokens[i]]) / float(draft[i][tokens[i]]):
        i += 1
    padded = torch.cat([draft, torch.zeros_like(draft[:1])])
    lacking = torch.where(target[i] > padded[i], target[i] - padded[i], 0.0)
    return [i, torch.nn.functional.normalize(lacking, p=1.0, dim=0)]

# %% right: token by token
def verify(draft, target, tokens, uniforms):
    k, vocabulary = draft.shape
    kept = next((i for i in range(k) if uniforms[i] >= target[i, tokens[i]] / draft[i, tokens[i]]), k)
    numbers = [target[kept, x].item() for x in range(vocabulary)]
    if kept < k:
        numbers = [max(0.0, n - draft[kept, x].item()) for x, n in enumerate(numbers)]
    return kept, torch.tensor([n / sum(numbers) for n in numbers], dtype=target.dtype)
