from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("Which weights take part in a matrix product? What do attention's products cost, forward and backward?")


def without_context(student, parameters, layers, d, context, vocab, **tied):
    """The part of flops_per_token that does not grow with the context."""
    once, twice = (student.flops_per_token(parameters, layers, d, n * context, vocab, **tied) for n in (1, 2))
    return 2 * once - twice


def of_context(student, parameters, layers, d, context, vocab, **tied):
    """By how much flops_per_token grows when the context grows by as much again."""
    once, twice = (student.flops_per_token(parameters, layers, d, n * context, vocab, **tied) for n in (1, 2))
    return twice - once


def one_of_both(student, parameters, layers, d, context, vocab, tied):
    """As without_context, after somebody has asked for the other kind of model."""
    student.flops_per_token(parameters, layers, d, context, vocab, not tied)
    return without_context(student, parameters, layers, d, context, vocab, tied=tied)


def share(student, *model, **settings):
    """What six_n_error returns."""
    return student.six_n_error(*model, **settings)


small, tiny = (3_232, 4, 8, 16, 10), (212, 1, 4, 7, 5)
llama, long = (8_030_261_248, 32, 4_096, 8_192, 128_256), (8_030_261_248, 32, 4_096, 10**6, 128_256)


def words(model):
    parameters, layers, d, context, vocab = model
    return f"parameters={parameters}, layers={layers}, d={d}, vocab={vocab}", context


def fixed(model, **tied):
    of, context = words(model)
    asked = "".join(f", {name}={value}" for name, value in tied.items())
    says = f"flops_per_token for {of}{asked}: the part that doesn't grow with the context (twice the result for context={context} minus the result for context={2 * context})"
    return given(*model, says=says, **tied)


def grown(model, **tied):
    of, context = words(model)
    return given(*model, says=f"flops_per_token for {of}: the result for context={2 * context} minus the result for context={context}", **tied)


def error(model, **tied):
    of, context = words(model)
    asked = "".join(f", {name}={value}" for name, value in tied.items())
    return given(*model, says=f"six_n_error for {of}, context={context}{asked}", **tied)


@st.composite
def models(draw, tied=st.booleans()):
    """Transformers with matrices of d × d, so many in each layer."""
    layers, d, vocab = draw(st.integers(1, 12)), draw(st.integers(1, 64)), draw(st.integers(1, 999))
    context = draw(st.integers(1, 40)) * draw(any_of(1, 100))
    is_tied = draw(tied)
    parameters = draw(st.integers(1, 16)) * layers * d * d + (1 if is_tied else 2) * vocab * d
    return given(parameters, layers, d, context, vocab, tied=is_tied)


def not_by_accident(case):
    """Where 6N is nearly right, what is left depends on how a right answer rounds."""
    parameters, layers, d, context, vocab = case.args
    looked_up = 0 if case.kwargs["tied"] else vocab
    return looked_up == 2 * layers * context or abs(looked_up - 2 * layers * context) * d > 1e-4 * parameters


exercise.requirement(
    "each weight in a matrix product costs 6 FLOPs per token; an embedding table used only for lookups (untied, "
    "the default) costs none",
    points=0.75,
    probe=without_context,
    visible=[fixed(small, tied=False), fixed(small)],
    edges={
        "Llama 3 8B": fixed(llama, tied=False),
        "by default": fixed(llama),
        "one layer of width 1": fixed((14, 1, 1, 1, 1), tied=False),
        "a table that is most of the model": fixed((2 * 50_000 * 8 + 768, 1, 8, 128, 50_000), tied=False),
    },
    domain=models(st.just(False)),
)
exercise.requirement(
    "in each layer, attention's two matrix products count, forward and backward, although they have no parameters",
    points=0.75,
    probe=of_context,
    visible=[grown(small, tied=False), grown(tiny, tied=True)],
    edges={
        "Llama 3 8B": grown(llama, tied=False),
        "one layer of width 1": grown((14, 1, 1, 1, 1), tied=False),
        "a context of 1": grown((3_232, 4, 8, 1, 10), tied=False),
        "a long context": grown(long, tied=False),
        "next to nothing": grown((8_030_261_248, 32, 4_096, 1, 128_256), tied=False),
    },
    domain=models(),
)
exercise.requirement(
    "if the embedding table and the output layer are tied, that single matrix takes part in a matrix product and is counted once",
    points=0.5,
    probe=one_of_both,
    visible=[fixed(tiny, tied=True)],
    edges={
        "one layer of width 1": fixed((13, 1, 1, 1, 1), tied=True),
        "a wide one": fixed((8 * 10**9, 32, 4_096, 8_192, 128_256), tied=True),
        "most of the model": fixed((50_000 * 8 + 768, 1, 8, 128, 50_000), tied=True),
    },
    domain=models(st.just(True)),
    hint="A tied matrix is both the embedding table and the output layer. Which of its two uses costs FLOPs, and "
         "how many times does `parameters` count it?",
)
exercise.requirement(
    "six_n_error is (6N - exact) / exact, for tied matrices too",
    points=1,
    probe=share,
    tolerance=1e-9,
    visible=[error(small, tied=False), error(tiny, tied=True), error((3_232, 4, 8, 1, 10), tied=False)],
    edges={
        "by default not tied": error(small),
        "6N is right by accident": error((3_232, 4, 8, 16, 128), tied=False),
        "6N promises too much": error((2 * 50_000 * 8 + 768, 1, 8, 128, 50_000), tied=False),
        "6N promises nearly nothing": error(long, tied=False),
        "Llama 3 8B": error(llama, tied=False),
    },
    domain=models().filter(not_by_accident),
    hint="6N counts all parameters. Which function gives you the exact count to compare it with?",
)

exercise.mistake("The embedding table is used only for lookups, so it costs no FLOPs.",
                 "parameters if tied else parameters - vocab * d → parameters")  # fmt: skip
exercise.mistake("A tied matrix is also the output layer, where it does take part in a matrix product.",
                 "parameters if tied else parameters - vocab * d → parameters - vocab * d")  # fmt: skip
exercise.mistake("The output layer is a matrix product; only the lookup in the table costs nothing.",
                 "parameters if tied else parameters - vocab * d → parameters - (1 if tied else 2) * vocab * d")  # fmt: skip
exercise.mistake("You swapped the two cases: a tied table takes part in a matrix product, and an untied one is "
                 "used only for lookups.",
                 "parameters if tied else parameters - vocab * d → parameters if not tied else parameters - vocab * d",
                 together_with=["context, vocab, tied)\n    return → context, vocab)\n    return"])  # fmt: skip
exercise.mistake("By default, the embedding table and the output layer are two separate matrices: check the default of `tied`.", "tied: bool = False\n) -> int → tied: bool = True\n) -> int")
exercise.mistake("Attention is missing: its matrix products count, although they have no parameters.", "+ 12 * layers * d * context → ")
exercise.mistake("You counted only the forward pass of attention: add its backward pass.", "12 * layers → 4 * layers")
exercise.mistake("You counted only the backward pass of attention: add its forward pass.", "12 * layers → 8 * layers")
exercise.mistake("Attention computes two matrix products, the scores and the weighted sum: count both in full.", "12 * layers → 6 * layers")
exercise.mistake("Every layer has attention: count it in all of them.", "12 * layers * d → 12 * d")
exercise.mistake("A score takes more than one multiply-add: how many numbers does a token's vector have?", "12 * layers * d * context → 12 * layers * context")
exercise.mistake("You counted attention for a whole sequence; a single token is compared with `context` tokens.", "d * context → d * context**2")
exercise.mistake("You multiplied by the context twice. How many multiply-adds does a single score take?", "12 * layers * d * context → 12 * layers * context**2")
exercise.mistake("Your result is for a whole sequence; the exercise asks for one token.", "return 6 * multiplied + → return context * 6 * multiplied + context *")
exercise.mistake("You counted only the forward pass; training needs the backward pass, too.", "6 * multiplied → 2 * multiplied", "12 * layers → 4 * layers")
exercise.mistake("You counted only the backward pass: add the forward pass.", "6 * multiplied + 12 → 4 * multiplied + 8")
exercise.mistake("Your result includes recomputation, but nothing is recomputed here.", "6 * multiplied + 12 → 8 * multiplied + 16")
exercise.mistake("A multiply-add is two FLOPs.", "6 * multiplied + 12 → 3 * multiplied + 6")
exercise.mistake("You counted only the forward pass of the weights: add the two products of the backward pass.", "6 * multiplied → 2 * multiplied")
reverse = "The sign is reversed: the error is negative if 6N predicts too little."
exercise.mistake(reverse, "(6 * parameters - exact) → (exact - 6 * parameters)")
exercise.mistake("The error has a sign: it's negative if 6N predicts too little.", "(6 * parameters - exact) → abs(6 * parameters - exact)",
                 together_with=["- exact) / exact → - exact) / (6 * parameters)"])  # fmt: skip
exercise.mistake("Divide by the exact count, not by 6N.", "- exact) / exact → - exact) / (6 * parameters)")
exercise.mistake("Swap 6N and the exact count, both in the difference and in the denominator.",
                 "(6 * parameters - exact) / exact → (exact - 6 * parameters) / (6 * parameters)")  # fmt: skip
exercise.mistake("Your result is the ratio of 6N to the exact count; the exercise asks for the relative error.", "(6 * parameters - exact) / exact → 6 * parameters / exact")
exercise.mistake("Your result is the ratio of the exact count to 6N; the exercise asks for the relative error.",
                 "(6 * parameters - exact) / exact → exact / (6 * parameters)")  # fmt: skip
exercise.mistake("Your result is in percent; the exercise asks for a fraction.", "return (6 * parameters - exact) / → return 100 * (6 * parameters - exact) /")
exercise.mistake("Your result is in FLOPs; the exercise asks for the error relative to the exact count.", "(6 * parameters - exact) / exact → 6 * parameters - exact")
exercise.mistake("six_n_error also depends on whether the matrices are tied: pass `tied` on.", "context, vocab, tied)\n    return → context, vocab)\n    return")
exercise.mistake("6N counts all parameters, including the embedding table: that's one of its two errors.",
                 "return (6 * parameters - exact) → return (6 * (parameters if tied else parameters - vocab * d) - exact)")  # fmt: skip

# %% wrong: 6N
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 0.0

# %% wrong: look-ups counted, but not in the error
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = 6 * (parameters - vocab * d * (not tied)) + 12 * layers * d * context
    return 6 * parameters / exact - 1

# %% wrong: counts attention in the error only
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters - vocab * d * (not tied))

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied) + 12 * layers * d * context
    return 6 * parameters / exact - 1

# %% wrong: tied counts in the error only
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab) + (6 * vocab * d if tied else 0)
    return 6 * parameters / exact - 1

# %% wrong: whole numbers
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters if tied else parameters - vocab * d) + 12 * layers * d * context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) // exact

# %% wrong: six_n_error does not hand `tied` on (from the statement)
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    lookups = vocab * d if not tied else 0
    return 6 * (parameters - lookups) + 12 * layers * context * d


def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab)
    return (6 * parameters - exact) / exact

# %% wrong: the share is taken of 6N and not of the exact count (from the statement)
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    n = parameters if tied else parameters - vocab * d
    return 6 * n + 12 * layers * context * d


def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 1 - flops_per_token(parameters, layers, d, context, vocab, tied) / (6 * parameters)

# %% wrong: (beginner) embeddings are not a product, so their table goes, tied or not (from the statement)
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    return 6 * (parameters - vocab * d) + 12 * layers * context * d


def six_n_error(parameters, layers, d, context, vocab, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied)
    return (6 * parameters - exact) / exact

# %% wrong: tied only by name (from the statement)
def flops_per_token(parameters, layers, d, context, vocab, *, tied=False):
    lookups = 0 if tied else vocab * d
    return 6 * (parameters - lookups) + 12 * layers * d * context


def six_n_error(parameters, layers, d, context, vocab, *, tied=False):
    exact = flops_per_token(parameters, layers, d, context, vocab, tied=tied)
    return (6 * parameters - exact) / exact

# %% right: counts a model's products
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    lookups = 0 if tied else d * vocab
    forward = 2 * (parameters - lookups)
    for _ in range(layers):
        forward += 2 * d * context  # scores
        forward += 2 * context * d  # weighted sum
    return 3 * forward

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    return 6 * parameters / flops_per_token(parameters, layers, d, context, vocab, tied) - 1

# %% right: sequence first, then per token
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    sequence = 6 * context * (parameters - d * vocab * (not tied)) + 12 * layers * context**2 * d
    return sequence // context

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    lookups, attention = 6 * d * vocab * (not tied), 12 * layers * d * context
    return (lookups - attention) / (6 * parameters - lookups + attention)

# %% right: as floats
def flops_per_token(parameters, layers, d, context, vocab, tied=False):
    n = float(parameters)
    if not tied:
        n -= float(vocab) * d
    return 6.0 * (n + 2.0 * layers * d * context)

def six_n_error(parameters, layers, d, context, vocab, tied=False):
    promised = 6.0 * parameters
    truth = flops_per_token(parameters, layers, d, context, vocab, tied=tied)
    return promised / truth - truth / truth
