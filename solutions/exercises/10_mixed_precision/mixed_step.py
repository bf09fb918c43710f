import math

import torch
from hypothesis import strategies as st

from autograder.authoring.exercise import Exercise, given
from autograder.authoring.strategies import any_of

exercise = Exercise("For each line, ask which gradients it works on: from which batches, scaled or true, clipped or not?")


def train(
    student, weight, batches, max_norm=1e6, factor=1024.0, stale=False, frozen=False, moved=False, apart=False
):
    """Steps of SGD with lr 1 for a linear layer, whose bias is the last column of weight.

    With ``moved`` the notebook's ``device`` is one that x is not on; with ``apart`` the bias has a group of its own.
    """
    import torch

    notebook = getattr(student.mixed_step, "__globals__", {})
    device = notebook.get("device")
    if moved:
        notebook["device"] = torch.device("cuda")
    try:
        return steps_of(student, weight, batches, max_norm, factor, stale, frozen, apart)
    finally:
        if device is not None:
            notebook["device"] = device


def steps_of(student, weight, batches, max_norm, factor, stale, frozen, apart):
    import torch

    model = torch.nn.Linear(weight.shape[1] - 1, weight.shape[0])
    model.weight.data, model.bias.data = weight[:, :-1].clone(), weight[:, -1].clone()
    model.bias.requires_grad_(not frozen)
    computed, steps = [], []
    model.register_forward_hook(lambda layer, given, output: computed.append(output.detach().clone()))
    groups = [{"params": [p]} for p in model.parameters()] if apart else model.parameters()
    optimizer = torch.optim.SGD(groups, lr=1.0)
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    scaler = torch.amp.GradScaler("cpu", init_scale=factor, growth_interval=2)
    for p in model.parameters() if stale else []:
        p.grad = torch.full_like(p, 7 * factor)
    outputs, returned, weights, moved, factors = [], [], [], [], []
    for x, y in batches:
        computed.clear()
        before = [p.detach().clone() for p in model.parameters()]
        returned.append(student.mixed_step(model, optimizer, scaler, x.clone(), y.clone(), max_norm))
        outputs.append(computed[0] if computed else None)
        weights.append(torch.cat([model.weight.detach(), model.bias.detach()[:, None]], dim=1))
        moved.append(not all(map(torch.equal, before, model.parameters())))
        factors.append(scaler.get_scale())
    return {
        "the model's output": outputs,
        "dtypes of the parameters": sorted({str(p.dtype) for p in model.parameters()}),
        "losses": [float(loss) if loss is not None else None for loss in returned],
        "types of the losses": sorted({type(loss).__name__ for loss in returned}),
        "weights and bias after each step": weights,
        "did a weight change?": moved,
        "optimizer steps": len(steps),
        "factor after each step": factors,
    }


DTYPES = ("the model's output", "dtypes of the parameters")
LOSSES = ("losses", "types of the losses")
WEIGHTS = ("weights and bias after each step",)
SKIPPED = ("did a weight change?", "optimizer steps", "factor after each step")


def only(*keys):
    return dict.fromkeys(sorted({*DTYPES, *LOSSES, *WEIGHTS, *SKIPPED} - {*keys}), "ignored")


def matrix(*rows):
    return torch.tensor([[float(value) for value in row] for row in rows])


origin = matrix([1, 2, 0])  # two weights and a bias; their gradients for this batch are 1, 2 and 3
batch = (matrix([1, 0], [0, 1]), matrix([0], [0]))
other = (matrix([1, 1]), matrix([1]))
far = (matrix([1, 0], [0, 1]), matrix([60_000], [0]))  # its scaled gradient is beyond 65,504
LAYER = "a linear layer with the weights 1 and 2 and the bias 0"
norms = any_of(0.25, 0.5, 1.0, 3.0, 1e6)


@st.composite
def lines(draw, count=(1, 3), overflows=False, max_norm=norms):
    """Whole numbers, which float16 has.

    Gradients overflow only if they should, even after the factor has doubled. All steps go up, and no weight is
    negative: what's left of a weight that a step cancels would be float16's rounding.
    """
    d, k = draw(st.integers(1, 3)), draw(st.integers(1, 2))

    def whole(rows, columns, low, high):
        row = st.lists(st.integers(low, high), min_size=columns, max_size=columns)
        return matrix(*draw(st.lists(row, min_size=rows, max_size=rows)))

    batches = []
    for _ in range(draw(st.integers(*count))):
        rows = draw(st.integers(1, 4))
        x, y = whole(rows, d, 1, 3), whole(rows, k, 60, 90)  # far from what a weight of 3 makes of x
        if overflows and draw(st.booleans()):
            y = y * 700
        batches.append((x, y))
    return given(whole(k, d + 1, 0, 3), batches, draw(max_norm), factor=draw(any_of(32.0, 64.0) if overflows else any_of(16.0, 32.0)))


exercise.requirement(
    "the model runs under autocast in float16 with float32 weights, and the unscaled loss is returned as a Python float",
    points=1,
    probe=train,
    rules=only(*DTYPES, *LOSSES) | {"losses": 2e-3},
    visible=[given(origin, [batch], says=f"a step for {LAYER}, with a loss of 2.5 and a factor of 1024")],
    edges={
        "two outputs": given(matrix([1, 2], [3, 4]), [(matrix([1]), matrix([1, 9]))]),
        "a step that overflows": given(origin, [far]),
        "its square is beyond float16": given(origin, [(matrix([1, 1]), matrix([1000]))], factor=8.0),
        "a loss of 0": given(origin, [(matrix([1, 1]), matrix([3]))]),
        "a factor of 1": given(origin, [batch], factor=1.0),
        "x is not on the notebook's device": given(origin, [batch], moved=True),
        "a target that float16 rounds": given(origin, [(matrix([2048, 0]), matrix([2049]))], factor=1.0),
        "numbers that float16 rounds": given(matrix([1.0001, 2.0003, 0.1]), [batch]),
    },
    domain=lines((1, 1)),
    hint="Put autocast around the forward pass and the loss. It makes its own 16-bit copies, so leave the model in float32.",
)
exercise.requirement(
    "the step uses the true gradients of this batch alone, clipped to a total norm of at most max_norm",
    points=1,
    probe=train,
    rules=only(*WEIGHTS),
    tolerance=2e-3,
    visible=[
        given(origin, [batch], 1.0, says=f"a step with lr = 1 and max_norm = 1 for {LAYER}, whose gradients are 1, 2 and 3"),
        given(origin, [batch], 5.0, says=f"a step with lr = 1 and max_norm = 5 for {LAYER}, whose gradients are 1, 2 and 3"),
        given(origin, [batch], 1.0, stale=True, says=f"a step with lr = 1 and max_norm = 1 for {LAYER}, whose gradients "
              "are 1, 2 and 3; before the step, .grad contains older ones"),
        given(origin, [batch], 1.0, frozen=True, says=f"a step with lr = 1 and max_norm = 1 for {LAYER}, which is frozen; "
              "the weights' gradients are 1 and 2"),
    ],
    edges={
        "two steps": given(origin, [batch, other], 0.5),
        "two steps without clipping": given(origin, [(batch[0], batch[1] + 1), other]),
        "two outputs": given(matrix([1, 2], [3, 4]), [(matrix([1], [2]), matrix([1, 9], [4, 4]))], 2.0),
        "a frozen parameter, and no clipping": given(origin, [batch], frozen=True),
        "two groups": given(origin, [batch], 1.0, apart=True),
        "max_norm 0": given(origin, [batch], 0.0),
        "no gradient to speak of": given(origin, [(matrix([1, 1]), matrix([3]))], 1.0),
        "a factor of 1": given(origin, [batch], 1.0, factor=1.0),
        "max_norm infinite": given(origin, [batch], math.inf),
        "just at max_norm": given(matrix([0, 0]), [(matrix([0]), matrix([-0.5]))], 1.0),
        "squares beyond float16": given(origin, [(matrix([1, 1]), matrix([1000]))], 1.0, factor=8.0),
        "a small factor": given(origin, [batch], 1.0, factor=0.5),
        "gradients that bfloat16 rounds": given(
            matrix([0, 0, 0, 1]), [(matrix(*[[1, 1, 1]] * 3, [1, 1, 3]), matrix([60], [60], [61], [80]))], 0.25, factor=16.0
        ),
    },
    domain=lines((1, 1)) | lines((2, 3), max_norm=any_of(0.25, 0.5, 1.0)),
    hint="Which gradients are in .grad when the call begins? Are the gradients still scaled when they're clipped?",
)  # fmt: skip
exercise.requirement(
    "after an overflow no weight changes, and after every step, skipped or not, the scaler is told to adapt its factor",
    points=1,
    probe=train,
    rules=only(*SKIPPED),
    visible=[
        given(origin, [far, batch], 1.0, says=f"two steps for {LAYER}; in the first the scaled gradients overflow"),
        given(origin, [batch, other], 0.5, says=f"two steps for {LAYER}, with a scaler whose growth_interval is 2"),
    ],
    edges={
        "two overflows": given(origin, [far, far, batch], 0.5, factor=4096.0),
        "an overflow after a good step": given(origin, [batch, far, batch], 0.5),
        "NaN": given(origin, [(matrix([math.nan, 1]), matrix([1])), batch], 0.5),
        "infinite targets": given(origin, [(matrix([1, 1]), matrix([math.inf])), batch], 0.5),
        "one step": given(origin, [batch], 0.5),
        "a parameter without a gradient": given(origin, [far, batch], 0.5, frozen=True),
        "old gradients, and an overflow": given(origin, [far], 1.0, stale=True),
        "only a sum over the elements would overflow": given(
            matrix([0, 0, 0], [0, 0, 0]), [(matrix(*[[3, 3]] * 4), matrix(*[[60, 60]] * 4))], 0.5, factor=64.0
        ),
    },
    domain=lines((1, 3), overflows=True, max_norm=any_of(0.25, 0.5, 1.0)),
    hint="The scaler knows whether a gradient overflowed: let it decide whether to step, and tell it when the step is over.",
)

clip = "nn.utils.clip_grad_norm_(model.parameters(), max_norm)"
piled = "Old gradients are still included: each call should use only those of its own batch."
exercise.mistake("The weights have to stay float32: autocast makes its own 16-bit copies of them.",
                 "optimizer.zero_grad() → model.half(); optimizer.zero_grad()")  # fmt: skip
exercise.mistake("Run model(x) under autocast, in float16 and for the device of x: don't rely on the defaults.",
                 "with torch → out = model(x)\n    with torch", "F.mse_loss(model(x), y) → F.mse_loss(out, y)")  # fmt: skip
exercise.mistake("Run model(x) under autocast, in float16 and for the device of x: don't rely on the defaults.",
                 ", dtype=torch.float16 → ")  # fmt: skip
exercise.mistake("Run model(x) under autocast, in float16 and for the device of x: don't rely on the defaults.",
                 'x.device.type → "cuda"')  # fmt: skip
exercise.mistake("Your result is the scaled loss; the factor is only for the backward pass.",
                 "F.mse_loss(model(x), y) → scaler.scale(F.mse_loss(model(x), y))",
                 "scaler.scale(loss).backward() → loss.backward()")  # fmt: skip
exercise.mistake("Return a Python float, not a tensor.", "loss.item() → loss.detach()")
exercise.mistake("The loss is the mean over all elements, not their sum.",
                 "F.mse_loss(model(x), y) → F.mse_loss(model(x), y, reduction='sum')")  # fmt: skip
exercise.mistake(piled, "optimizer.zero_grad() → pass")
exercise.mistake("Clear .grad before the backward pass: at the end of the call it's too late for older gradients.",
                 "optimizer.zero_grad() → pass", "scaler.update() → scaler.update(); optimizer.zero_grad()")  # fmt: skip
exercise.mistake("You clipped the scaled gradients; max_norm is the limit for the true ones.",
                 "scaler.unscale_(optimizer) → pass")  # fmt: skip
exercise.mistake("You clipped the scaled gradients; max_norm is the limit for the true ones.",
                 "scaler.unscale_(optimizer) → pass", f"{clip} → {clip}; scaler.unscale_(optimizer)")  # fmt: skip
exercise.mistake("The gradients aren't clipped yet when the optimizer steps.", f"{clip} → pass")
exercise.mistake("The gradients aren't clipped yet when the optimizer steps.",
                 f"{clip} → pass", f"scaler.step(optimizer) → scaler.step(optimizer); {clip}")  # fmt: skip
exercise.mistake("You clipped each parameter's gradient separately; max_norm is the limit for the norm of all of them together.",
                 f"{clip} → [nn.utils.clip_grad_norm_(p, max_norm) for p in model.parameters()]")  # fmt: skip
exercise.mistake("You clipped each element separately; max_norm is the limit for the norm of all gradients together.",
                 "clip_grad_norm_ → clip_grad_value_")  # fmt: skip
exercise.mistake("If the norm is below max_norm, the gradients must not change.",
                 f"{clip} → total = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])\n"
                 "    for p in model.parameters():\n"
                 "        if p.grad is not None:\n"
                 "            p.grad *= max_norm / total")  # fmt: skip
exercise.mistake("You divide the gradients by the factor, but you didn't multiply the loss by it.",
                 "scaler.scale(loss).backward() → scaler.scale(loss); loss.backward()")  # fmt: skip
exercise.mistake("The gradients are still scaled when the optimizer steps.", "scaler.unscale_(optimizer) → pass",
                 "scaler.step(optimizer) → optimizer.step()", "scaler.update() → pass", f"{clip} → pass")  # fmt: skip
exercise.mistake("The weights don't change: your code clears the gradients before the step.", "optimizer.zero_grad() → pass",
                 "scaler.step(optimizer) → optimizer.zero_grad(set_to_none=False); scaler.step(optimizer)")  # fmt: skip
exercise.mistake("The optimizer steps even after an overflow: leave that decision to the scaler.",
                 "scaler.step(optimizer) → optimizer.step()")  # fmt: skip
exercise.mistake("A finite loss doesn't mean that the scaled gradients are finite: check those.",
                 "scaler.step(optimizer) → optimizer.step() if loss.isfinite() else None")  # fmt: skip
exercise.mistake("The scaler isn't told that the step is over, so it never adapts its factor.",
                 "scaler.update() → pass")  # fmt: skip
exercise.mistake("Your factor adapts only if nothing overflows; it also has to be halved after an overflow.",
                 "scaler.update() → if all(p.isfinite().all() for p in model.parameters()) and loss < 1e6: scaler.update()")  # fmt: skip

# %% mistake: the weights are converted, and the factor is divided out by hand
# says: The weights have to stay float32: autocast makes its own 16-bit copies of them.
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    model.half()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x.half()), y.half())
    (loss * scaler.get_scale()).backward()
    for p in model.parameters():
        p.grad /= scaler.get_scale()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()

# %% wrong: squares in float16
# unseen: only hidden inputs have a loss beyond the range of float16
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = ((model(x) - y.half()) ** 2).mean().float()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: divides by the factor once more
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= scaler.get_scale()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: every parameter has a gradient
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    total = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    for p in model.parameters():
        p.grad *= min(1.0, max_norm / (total.item() + 1e-6))
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: divides the scaled loss by the factor of the next step (from the statement)
# unseen: only hidden inputs have a step that changes the factor
import torch
import torch.nn.functional as F
from torch import nn


def mixed_step(model, optimizer, scaler, x, y, max_norm):
    """One training step in float16, with clipping and a scaled loss; the loss without its factor."""
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return scaled.item() / scaler.get_scale()

# %% wrong: autocasts on the notebook's device, not on that of x (from the statement)
# unseen: only hidden inputs are on another device than the notebook's
import torch
import torch.nn.functional as F
from torch import nn


def mixed_step(model, optimizer, scaler, x, y, max_norm):
    """One training step in float16, with clipping and a scaled loss; the loss without its factor."""
    optimizer.zero_grad()
    kind = device.type if "device" in globals() else "cpu"
    with torch.autocast(kind, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clears the gradients at the end, for the next call (from the statement)
import torch
import torch.nn.functional as F
from torch import nn


def mixed_step(model, optimizer, scaler, x, y, max_norm):
    """One training step in float16, with clipping and a scaled loss; the loss without its factor."""
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item()

# %% wrong: the targets in float16, too (from the statement)
# unseen: the visible targets are numbers of float16
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        output = model(x)
        loss = F.mse_loss(output, y.to(torch.float16))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% wrong: clips each group alone (from the statement)
# unseen: the visible optimizers have one group
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    model.zero_grad(set_to_none=True)
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for group in optimizer.param_groups:
        nn.utils.clip_grad_norm_(group["params"], max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: everything but the update inside of autocast
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    with torch.amp.autocast(x.device.type, torch.float16):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
        scaler.step(optimizer)
    scaler.update()
    return float(loss)

# %% right: gradients cleared at the end too, and the loss written out
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    for p in model.parameters():
        p.grad = None
    with torch.autocast(device_type=x.device.type, dtype=torch.float16):
        out = model(x)
        loss = ((out.float() - y) ** 2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return loss.item()

# %% right: a decorated forward pass, clipping the optimizer's parameters
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    @torch.autocast(x.device.type, dtype=torch.float16)
    def forward():
        return nn.functional.mse_loss(model(x), y)

    model.zero_grad()
    loss = forward()
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: clips the scaled gradients to a scaled norm
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% right: looks for itself whether all are finite
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    optimizer.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None):
        optimizer.step()
    scaler.update()
    return loss.item()

# %% right: torch.autograd.grad, and the loss outside of autocast
def mixed_step(model, optimizer, scaler, x, y, max_norm):
    parameters = [p for p in model.parameters() if p.requires_grad]
    with torch.autocast(x.device.type, dtype=torch.float16):
        out = model(x)
    loss = F.mse_loss(out.float(), y)
    for p, g in zip(parameters, torch.autograd.grad(scaler.scale(loss), parameters), strict=True):
        p.grad = g
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

# %% equivalent: F.mse_loss(model(x), y) → F.mse_loss(y, model(x))
# why: the square of a difference doesn't depend on its sign
