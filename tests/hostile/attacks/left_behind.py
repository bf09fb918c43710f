# Earns points with a cell that returns, and leaves a task behind that ends the process while another exercise runs.
# earns: 2
# honest: tensor_bytes
# told: batched_linear: the process ended
# %% causal_mask
import asyncio
import os

import torch


async def later():
    while "batched_linear" not in globals():
        await asyncio.sleep(0)
    os._exit(0)


task = asyncio.ensure_future(later())


def causal_mask(size):
    return torch.ones(size, size, dtype=torch.bool).tril()

# %% batched_linear
import torch


def batched_linear(x, w, b):
    return torch.matmul(x, w) + b
