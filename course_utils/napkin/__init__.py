"""What a training run will take: parameters, FLOPs, bytes by purpose, time and cost.

    from course_utils import napkin

    model = napkin.PUBLISHED["Llama 3.1 70B"]
    step = napkin.Step(batch=1, context=8_192, cards=64, zero=3, checkpointing=True)
    napkin.plan(model, step, card="H100 SXM", tokens=15e12)  # a table: each number with its formula and its source

    napkin.memory(model, step)  # {'parameters': …, 'gradients': …, 'master copy': …, 'optimizer state': …, …}
    napkin.training(model.parameters, 15e12, peak=989.4e12, mfu=0.4).days(cards=1_024)
    napkin.trace(lambda: MyModel(), torch.empty(1, 8_192, dtype=torch.int64, device="meta"))  # any nn.Module

On a command line: ``python -m course_utils.napkin --help``.

This is a ledger, not a simulation: it leaves out what frameworks add (fragmentation, communication buffers,
temporaries).
"""

from course_utils.napkin.ledger import (
    OPTIMIZERS,
    PUBLISHED,
    RECIPES,
    SHARDED,
    Recipe,
    Run,
    Step,
    Transformer,
    activations,
    memory,
    recomputed_flops,
    run,
    training,
    training_flops,
)
from course_utils.napkin.modules import Traced, trace
from course_utils.napkin.planner import Line, Plan, plan

__all__ = [
    "OPTIMIZERS",
    "PUBLISHED",
    "RECIPES",
    "SHARDED",
    "Line",
    "Plan",
    "Recipe",
    "Run",
    "Step",
    "Traced",
    "Transformer",
    "activations",
    "memory",
    "plan",
    "recomputed_flops",
    "run",
    "trace",
    "training",
    "training_flops",
]
