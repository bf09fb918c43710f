# Returns a tensor of NaN of the right shape and dtype.
# earns: 0
# %% rms_normalize
import torch


def rms_normalize(x, eps=1e-6):
    return torch.full_like(x, float("nan"))
