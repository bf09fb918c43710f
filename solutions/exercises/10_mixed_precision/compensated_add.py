import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of, turned

exercise = Exercise("By how much should the weight change, and by how much did it really change?")


def add(student, weight, lost, update):
    """What one addition returns, the values apart from their dtype."""
    import torch

    returned = student.compensated_add(weight, lost, update)
    pair = isinstance(returned, (tuple, list)) and len(returned) == 2
    pair = pair and all(isinstance(t, torch.Tensor) for t in returned)
    found = list(returned) if pair else []
    values = [t.detach().double().flatten().tolist() if t.device.type != "meta" else None for t in found]
    memory = {t.untyped_storage().data_ptr() for t in (weight, lost, update) if t.numel()}
    return {
        "two tensors are returned": pair,
        "new_weight": values[0] if pair else None,
        "new_lost": values[1] if pair else None,
        "dtypes": [str(t.dtype) for t in found],
        "shapes": [list(t.shape) for t in found],
        "devices": [t.device.type for t in found],
        "shares memory with an argument": [t.untyped_storage().data_ptr() in memory for t in found],
    }


NEW = ("dtypes", "shapes", "devices", "shares memory with an argument")


def only(*keys):
    values = {"two tensors are returned", "new_weight", "new_lost"}
    return dict.fromkeys(sorted((values | {*NEW}) - {*keys}), "ignored")


GRID = 16  # small numbers are whole multiples of a gap's sixteenth, so that every right answer adds them without error
FORMATS = (torch.bfloat16, torch.float16, torch.float32)


@st.composite
def additions(draw):
    """A weight between 1 and 2, times a power of two, and up to a few of its gaps."""
    dtype = draw(any_of(*FORMATS))
    gap = torch.finfo(dtype).eps
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    count = torch.Size(shape).numel()

    def several(low, high):
        numbers = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
        return torch.tensor(numbers).double().reshape(shape)

    scale = 2.0 ** draw(st.integers(-8, 8))
    weight = (1 + several(0, int(1 / gap) - 1) * gap) * (1 - 2 * several(0, 1))
    if draw(any_of(False, False, False, True)):
        weight = weight * 0
    lost, update = several(-GRID // 2, GRID // 2) * gap / GRID, several(-40, 40) * gap / GRID
    return given(*(turned(draw, (t * scale).to(dtype)) for t in (weight, lost, update)))


def case(weight, lost, update, dtype=torch.bfloat16, says=""):
    args = [torch.tensor(x, dtype=dtype) for x in (weight, lost, update)]
    return given(*args, says=says or f"compensated_add({weight}, {lost}, {update}) in {str(dtype)[6:]}")


K = 1 / 1024
turned_matrices = given(*(t.bfloat16().mT for t in (torch.tensor([[1.0, 1.5, -1.25], [1.75, 2.0, -1.0]]),
                                                    torch.full((2, 3), 3 * K), torch.full((2, 3), 2 * K))))
only_the_weight = given(turned_matrices.args[0], *(t.contiguous() for t in turned_matrices.args[1:]))
# The sum of update and lost is a bfloat16, but what's left of either when the other has been added to weight isn't.
inexact = {"an error, and what was lost before": case([256.0], [-65 / 256], [260 / 256])}
exercise.requirement(
    "new_weight is weight + update + lost, rounded to the dtype",
    points=0.5,
    probe=add,
    parts=["value"],
    rules=only("two tensors are returned", "new_weight"),
    visible=[
        case([1.0], [0.0], [0.001]),
        case([1.0], [3 * K], [2 * K],
             says="compensated_add([1.0], [3/1024], [2/1024]) in bfloat16, where neighbors between 1 and 2 are 8/1024 apart"),
        case([1.5], [3 * K], [-9 * K],
             says="compensated_add([1.5], [3/1024], [-9/1024]) in bfloat16, where neighbors between 1 and 2 are 8/1024 apart"),
        case([1.0, -1.0], [0.0, 0.0], [1e-8, 2e-8], torch.float32),
        case([1.5], [0.0], [4 * K]),
        case([320.0], [0.0], [0.5]),
    ],
    edges={
        "from nothing": case([0.0, 0.0], [0.0, K], [K, 2 * K]),
        "just enough": case([1.0], [2 * K], [3 * K]),
        "a weight of 2**28": case([2.0**28], [0.0], [1.0]),
        "a tie": case([1.0, 1 + 8 * K], [2 * K, 2 * K], [2 * K, 2 * K]),
        "the other way": case([-1.5], [-3 * K], [-3 * K], torch.bfloat16),
        "back and forth": case([1.5], [3 * K], [-3 * K]),
        "past a power of two": case([1.9921875], [3 * K], [7 * K]),
        "large": case([300.0, -384.0], [0.75, 0.5], [0.125, -2.75]),
        "small": case([2.0**-8, -(2.0**-8)], [K * 2.0**-8, 0.0], [2 * K * 2.0**-8, 3 * K * 2.0**-8]),
        "some move, some do not": case([1.0, 1.0, -1.0], [3 * K, 0.0, 3 * K], [2 * K, 2 * K, 2 * K]),
        "float16": case([1.0], [0.0], [K / 3], torch.float16),
        "float32": case([1.0], [2.0**-25], [2.0**-24 * 1.5], torch.float32),
        "two small float32 numbers": case([1.0], [3 * 2.0**-26], [3 * 2.0**-26], torch.float32),
        "one number": case(1.0, 3 * K, 2 * K),
        "no numbers": given(*(torch.zeros(0, 3, dtype=torch.float16) for _ in range(3))),
        **inexact,
        "not contiguous": turned_matrices,
    },
    domain=additions(),
    tolerance=0,
    hint="You add two small numbers to a large one. Does the order matter?",
)  # fmt: skip
exercise.requirement(
    "new_lost is what this rounding lost",
    points=0.75,
    probe=add,
    parts=["value"],
    rules=only("new_lost"),
    visible=[
        case([1.0], [0.0], [0.001]),
        case([1.0], [3 * K], [2 * K],
             says="compensated_add([1.0], [3/1024], [2/1024]) in bfloat16, where neighbors between 1 and 2 are 8/1024 apart"),
        case([1.5], [3 * K], [-9 * K],
             says="compensated_add([1.5], [3/1024], [-9/1024]) in bfloat16, where neighbors between 1 and 2 are 8/1024 apart"),
        case([1.0, -1.0], [0.0, 0.0], [1e-8, 2e-8], torch.float32),
        case([1.5], [0.0], [4 * K]),
        case([320.0], [0.0], [0.5]),
        case([256.0], [255 / 256], [65 / 256], says="compensated_add([256], [255/256], [65/256]) in bfloat16"),
    ],
    edges={
        "from nothing": case([0.0, 0.0], [0.0, K], [K, 2 * K]),
        "nothing is lost": case([1.0, 1.0], [0.0, 4 * K], [8 * K, 4 * K]),
        "a weight of 2**28": case([2.0**28], [0.0], [1.0]),
        "nothing is added": case([1.0, 1.5], [3 * K, -2 * K], [0.0, 0.0]),
        "back and forth": case([1.5], [3 * K], [-3 * K]),
        "a tie": case([1.0, 1 + 8 * K], [2 * K, 2 * K], [2 * K, 2 * K]),
        "the other way": case([-1.5], [-3 * K], [-3 * K]),
        "past a power of two": case([1.9921875], [3 * K], [7 * K]),
        "large": case([300.0, -384.0], [0.75, 0.5], [0.125, -2.75]),
        "small": case([2.0**-8, -(2.0**-8)], [K * 2.0**-8, 0.0], [2 * K * 2.0**-8, 3 * K * 2.0**-8]),
        "some move, some do not": case([1.0, 1.0, -1.0], [3 * K, 0.0, 3 * K], [2 * K, 2 * K, 2 * K]),
        "float16": case([1.0], [0.0], [K / 3], torch.float16),
        "float32": case([1.0], [2.0**-25], [2.0**-24 * 1.5], torch.float32),
        "one number": case(1.0, 3 * K, 2 * K),
        **inexact,
        "not contiguous": turned_matrices,
        "only the weight isn't contiguous": only_the_weight,
    },
    domain=additions(),
    tolerance=0,
    hint="By how much did the weight really change, and how much of the intended change is missing?",
)  # fmt: skip
exercise.requirement(
    "both results are new tensors with weight's dtype, shape and device; the arguments are unchanged",
    points=0.75,
    probe=add,
    rules=only(*NEW),
    visible=[
        case([1.0, 1.5], [K, 2 * K], [3 * K, K],
             says="dtypes, shapes, devices and memory of the results for three bfloat16 tensors of shape [2]"),
        case(1.0, 3 * K, 2 * K, torch.float16,
             says="dtypes, shapes, devices and memory of the results for three 0-dimensional float16 tensors"),
    ],
    edges={
        "float16": case([1.0], [0.0], [K], torch.float16),
        "float32": case([1.0], [0.0], [K], torch.float32),
        "one number": case(1.0, 3 * K, 2 * K),
        "no numbers": given(*(torch.zeros(0, 3, dtype=torch.float16) for _ in range(3))),
        "nothing to do": case([1.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
        "on meta": given(*(torch.empty(2, 3, dtype=torch.bfloat16, device="meta") for _ in range(3))),
        "two dimensions": given(*(torch.ones(2, 3, dtype=torch.bfloat16) * n for n in (1, 0, K))),
    },
    domain=additions(),
)  # fmt: skip
WANTED, MOVED = "wanted = update + lost", "wanted - (new_weight - weight)"
exercise.mistake("new_lost leaves out what this rounding lost: compare the intended change with the actual one.",
                 f"{MOVED} → torch.zeros_like(lost)")
exercise.mistake("new_lost leaves out what this rounding lost: compare the intended change with the actual one.",
                 f"{WANTED} → wanted = update", f"{MOVED} → lost")
exercise.mistake("The sign of new_lost is reversed: adding it next time should make up for what's missing.",
                 f"{MOVED} → (new_weight - weight) - wanted")
exercise.mistake("You didn't use `lost`: what was lost before has to be added now.",
                 f"{WANTED} → wanted = update")
exercise.mistake("new_weight leaves out what was lost before: add it there, too.",
                 "return new_weight, → return weight + update,")
exercise.mistake("Two small numbers may each be rounded away although their sum isn't: check the order of your additions.",
                 "new_weight = weight + wanted → new_weight = weight + update + lost")
exercise.mistake("Add what was lost before; don't subtract it.", f"{WANTED} → wanted = update - lost")
exercise.mistake("new_lost is only what the rounding lost; yours contains most of the weight.", f"{MOVED} → new_weight - wanted")
exercise.mistake("Return two tensors, new_weight and new_lost.", f"return new_weight, {MOVED} → return new_weight")
exercise.mistake("Return two tensors, new_weight and new_lost.",
                 f"return new_weight, {MOVED} → return new_weight.tolist(), ({MOVED}).tolist()")
exercise.mistake("Rounding may lose something even when the weight changes: don't set new_lost to 0 in that case.",
                 f"{MOVED} → torch.where(new_weight == weight, wanted, torch.zeros_like(lost))")
exercise.mistake("new_lost may be negative: rounding can also change a weight by too much.",
                 f"{MOVED} → (new_weight - weight - wanted).abs()")
exercise.mistake("Your code changes the argument `update`: create new tensors instead.",
                 f"{WANTED} → wanted = update.add_(lost)")
exercise.mistake("Your results are in the wrong order: new_weight comes first.",
                 f"return new_weight, {MOVED} → return {MOVED}, new_weight")
exercise.mistake("To find what was lost, compare with the change in the weight, not with the new weight itself.", f"{MOVED} → wanted - new_weight")

# %% mistake: lost in float32
# says: Both results should have the dtype of weight: saving memory is the point of the method.
def compensated_add(weight, lost, update):
    total = weight.double() + lost.double() + update.double()
    new_weight = total.to(weight.dtype)
    return new_weight, (total - new_weight.double()).to(torch.promote_types(weight.dtype, torch.float32) if weight.dtype != torch.float32 else torch.float64)

# %% mistake: the sum stays in float64
# says: Round new_weight to the dtype of weight.
def compensated_add(weight, lost, update):
    return weight.double() + lost.double() + update.double(), torch.zeros_like(lost).double()

# %% mistake: what was lost before is still owed
# says: What was lost before has now been added: don't carry it over again.
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight, lost + wanted - (new_weight - weight)

# %% mistake: all that was wanted
# says: new_lost is only what's missing: part of the intended change has already reached the weight.
def compensated_add(weight, lost, update):
    wanted = update + lost
    return weight + wanted, wanted

# %% mistake: works in place
# says: Your code changes the argument `weight`: create new tensors instead.
def compensated_add(weight, lost, update):
    wanted = update + lost
    before = weight.clone()
    weight += wanted
    return weight, wanted - (weight - before)

# %% mistake: changes what was lost in place
# says: Your code changes the argument `lost`: create new tensors instead.
def compensated_add(weight, lost, update):
    lost.add_(update)
    new_weight = weight + lost
    return new_weight, lost - (new_weight - weight)

# %% mistake: bfloat16, whatever was given
# says: Round to the dtype of weight, which isn't always bfloat16.
def compensated_add(weight, lost, update):
    exact = weight.double() + lost.double() + update.double()
    new = exact.bfloat16()
    return new, (exact - new.double()).bfloat16()

# %% mistake: by float32, which loses what is lost of float32
# says: The tensors may be float32 themselves; then a sum in float32 swallows exactly what you want to keep.
def compensated_add(weight, lost, update):
    total = weight.float() + lost.float() + update.float()
    new_weight = total.to(weight.dtype)
    return new_weight, (total - new_weight.float()).to(weight.dtype)

# %% wrong: returns the old tensors where there is nothing to add
# unseen: only hidden inputs have an update of zeros
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    if not bool((wanted != 0).any()):
        return weight, lost
    return new_weight, wanted - (new_weight - weight)

# %% wrong: one dimension, whatever was given
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight.flatten(), (wanted - (new_weight - weight)).flatten()

# %% wrong: the weight alone where nothing is lost
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    left = wanted - (new_weight - weight)
    return (new_weight, left) if bool(left.any()) else new_weight

# %% wrong: ties away from zero
def compensated_add(weight, lost, update):
    exact = weight.double() + lost.double() + update.double()
    new = exact.to(weight.dtype)
    other = torch.nextafter(new, new.sign() * float("inf"))
    new = torch.where((other.double() - exact).abs() == (new.double() - exact).abs(), other, new)
    return new, (exact - new.double()).to(new.dtype)

# %% wrong: never owes more than half a gap of 1
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight, (wanted - (new_weight - weight)).clamp(-4 / 1024, 4 / 1024)

# %% wrong: the results are on the CPU
# unseen: only hidden inputs have tensors on the meta device
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    left = wanted - (new_weight - weight)
    return tuple(torch.zeros(t.shape, dtype=t.dtype) if t.is_meta else t.cpu() for t in (new_weight, left))

# %% wrong: a third tensor
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    return new_weight, wanted - (new_weight - weight), wanted

# %% wrong: looks at the values, to make sure that what it relies on is true (from the statement)
# unseen: only hidden inputs have tensors on the meta device
def compensated_add(weight, lost, update):
    """weight + update + lost, rounded, and what the rounding lost; all of one dtype."""
    step = update + lost
    if bool(((weight != 0) & (weight.abs() < step.abs())).any()):
        raise ValueError("the update is larger than the weight")
    new_weight = weight + step
    return new_weight, step - (new_weight - weight)

# %% wrong: adds what was lost to the update in place (from the statement)
def compensated_add(weight, lost, update):
    """weight + update + lost, rounded, and what the rounding lost; all of one dtype."""
    update += lost
    new_weight = weight + update
    return new_weight, update - (new_weight - weight)

# %% wrong: forgets in the second line what was lost before (from the statement)
def compensated_add(weight, lost, update):
    """weight + update + lost, rounded, and what the rounding lost; all of one dtype."""
    new_weight = weight + (update + lost)
    new_lost = update - (new_weight - weight)
    return new_weight, new_lost

# %% wrong: loses everything if the weight isn't contiguous (from the statement)
# unseen: only hidden inputs have a non-contiguous tensor
def compensated_add(weight, lost, update):
    wanted = update + lost
    new_weight = weight + wanted
    if not weight.is_contiguous():
        return new_weight, torch.zeros_like(new_weight)
    return new_weight, wanted - (new_weight - weight)

# %% wrong: float32 in between, which is too narrow for a large weight (from the statement)
# unseen: no visible case has so large a weight
def compensated_add(weight, lost, update):
    if weight.dtype == torch.float32:
        wanted = update + lost
        new_weight = weight + wanted
        return new_weight, wanted - (new_weight - weight)
    exact = weight.float() + (update.float() + lost.float())
    new_weight = exact.to(weight.dtype)
    return new_weight, (exact - new_weight.float()).to(weight.dtype)

# %% wrong: adds update first, and then its error and what was lost (from the statement)
# unseen: the visible numbers have few digits
def compensated_add(weight, lost, update):
    first = weight + update
    error = update - (first - weight)
    rest = error + lost
    new_weight = first + rest
    new_lost = rest - (new_weight - first)
    return new_weight, new_lost

# %% wrong: subtracts what was added from update, then adds what was lost (from the statement)
def compensated_add(weight, lost, update):
    new_weight = weight + (update + lost)
    moved = new_weight - weight
    new_lost = (update - moved) + lost
    return new_weight, new_lost

# %% right: one sum in float64, rounded twice
def compensated_add(weight, lost, update):
    total = weight.double() + lost.double() + update.double()
    new_weight = total.to(weight.dtype)
    return new_weight, (total - new_weight.double()).to(lost.dtype)

# %% right: by Knuth's two-sum, which needs no order of magnitude
def compensated_add(weight, lost, update):
    wanted = lost + update
    new_weight = wanted + weight
    part = new_weight - weight
    error = (weight - (new_weight - part)) + (wanted - part)
    return new_weight, error

# %% right: as a list, with torch.add
def compensated_add(weight, lost, update):
    wanted = torch.add(update, lost)
    new_weight = torch.add(weight, wanted)
    moved = torch.sub(new_weight, weight)
    return [new_weight, torch.sub(wanted, moved)]

# %% right: from the other end
def compensated_add(weight, lost, update):
    owed = lost + update
    new_weight = weight + owed
    return new_weight, (weight - new_weight) + owed

# %% right: in place, on copies
def compensated_add(weight, lost, update):
    owed = lost.clone().add_(update)
    new_weight = weight.clone().add_(owed)
    return new_weight, owed.sub_(new_weight - weight)

# %% right: two parts of one tensor
def compensated_add(weight, lost, update):
    both = lost + update
    new_weight = weight + both
    return torch.stack([new_weight, both - (new_weight - weight)]).unbind()

# %% right: in float64, from left to right
def compensated_add(
    weight: Float[Tensor, "*shape"],
    lost: Float[Tensor, "*shape"],
    update: Float[Tensor, "*shape"],
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """weight + update + lost, rounded, and what the rounding lost; all in one dtype."""
    exact = weight.double() + update.double() + lost.double()
    new_weight = exact.to(weight.dtype)
    new_lost = (exact - new_weight.double()).to(weight.dtype)
    return new_weight, new_lost
