# Returns a tensor of a gigabyte.
# earns: 0
# %% rms_normalize
import torch


def rms_normalize(x, eps=1e-6):
    return torch.zeros(2**28)
