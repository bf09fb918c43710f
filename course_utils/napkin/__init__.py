"""Estimate what training or serving a model takes: parameters, FLOPs, bytes by purpose, time, cost and energy.

    from course_utils import napkin

    model = napkin.PUBLISHED["Llama 3.1 70B"]
    step = napkin.Step(batch=1, context=8_192, cards=64, zero=3, checkpointing=True)
    napkin.plan(model, step, card="H100 SXM", tokens=15e12)  # a table: each number with its formula and its source

    napkin.memory(model, step)  # {'parameters': …, 'gradients': …, 'master copy': …, 'optimizer state': …, …}
    napkin.training(model.parameters, 15e12, peak=989.4e12, mfu=0.4).days(cards=1_024)
    napkin.trace(lambda: MyModel(), torch.empty(1, 8_192, dtype=torch.int64, device="meta"))  # any nn.Module

    napkin.serve(model, napkin.Serving(batch=8, prompt=2_048, output=256, cards=4))  # memory, seconds, tokens/s, cost
    napkin.kv_cache(model, context=2_048)  # 671_088_640 bytes
    napkin.mfu(model, 12_000, context=8_192, cards=8)  # from the tokens per second of a log
    napkin.all_reduce(16e9, ranks=8, bandwidth=450e9)  # seconds
    napkin.communication(model, step, ACCELERATORS["H100 SXM"])  # what a step sends, by kind of parallelism

On the command line: ``python -m course_utils.napkin --help``. Only `trace` needs PyTorch. docs/published.md shows how
close the estimates come to published numbers.

This is a ledger, not a simulation: it leaves out what frameworks add (fragmentation, communication buffers,
temporaries).
"""

from course_utils.napkin.collectives import (
    Transfer,
    all_gather,
    all_reduce,
    all_to_all,
    bubble,
    collective,
    communication,
    sent,
)
from course_utils.napkin.footprint import activations, memory
from course_utils.napkin.inference import (
    FORMATS,
    Serving,
    decode_flops,
    decode_seconds,
    forward_flops,
    generation_seconds,
    kv_cache,
    largest_batch,
    prefill_flops,
    prefill_rule,
    prefill_seconds,
    touched_experts,
    weights_read,
)
from course_utils.napkin.lines import Line, Plan
from course_utils.napkin.models import PUBLISHED
from course_utils.napkin.modules import Traced, trace
from course_utils.napkin.pipelines import kept, schedule
from course_utils.napkin.planner import plan
from course_utils.napkin.serving import serve
from course_utils.napkin.shapes import Experts, Latent, Transformer
from course_utils.napkin.step import OPTIMIZERS, RECIPES, SHARDED, Optimizer, Recipe, Step
from course_utils.napkin.utilization import Impossible, mfu
from course_utils.napkin.work import (
    Run,
    adapters,
    optimizer_flops,
    orthogonalizing_flops,
    recomputed_flops,
    run,
    training,
    training_flops,
)

__all__ = [
    "FORMATS",
    "OPTIMIZERS",
    "PUBLISHED",
    "RECIPES",
    "SHARDED",
    "Experts",
    "Impossible",
    "Latent",
    "Line",
    "Optimizer",
    "Plan",
    "Recipe",
    "Run",
    "Serving",
    "Step",
    "Traced",
    "Transfer",
    "Transformer",
    "activations",
    "adapters",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "bubble",
    "collective",
    "communication",
    "decode_flops",
    "decode_seconds",
    "forward_flops",
    "generation_seconds",
    "kept",
    "kv_cache",
    "largest_batch",
    "memory",
    "mfu",
    "optimizer_flops",
    "orthogonalizing_flops",
    "plan",
    "prefill_flops",
    "prefill_rule",
    "prefill_seconds",
    "recomputed_flops",
    "run",
    "schedule",
    "sent",
    "serve",
    "touched_experts",
    "trace",
    "training",
    "training_flops",
    "weights_read",
]
