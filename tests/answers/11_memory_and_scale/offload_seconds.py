# %% wrong: carries one way only
# says: Every byte travels twice
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    if overlap:
        return max(carry, forward) + 2 * forward
    return carry + 3 * forward

# %% wrong: carries back for nothing, with overlap
# says: Every byte travels twice
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    return max(carry, forward) + 2 * forward if overlap else 2 * carry + 3 * forward

# %% wrong: a backward pass as long as the forward pass
# says: twice the FLOPs of the forward pass
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    return 2 * (max(carry, forward) if overlap else carry + forward)

# %% wrong: as long as the forward pass, with overlap
# says: twice the FLOPs of the forward pass
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    return 2 * max(carry, forward) if overlap else 2 * carry + 3 * forward

# %% wrong: adds up in both cases
# says: nobody waits for the other
def offload_seconds(size, forward_flops, link, rate, overlap):
    return 2 * size / link + 3 * forward_flops / rate

# %% wrong: hides in both cases
# says: Without overlap the times add up
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    return max(carry, forward) + max(carry, 2 * forward)

# %% wrong: the slower of the two over the whole step
# says: is not caught up in the backward pass
def offload_seconds(size, forward_flops, link, rate, overlap):
    times = (2 * size / link, 3 * forward_flops / rate)
    return max(times) if overlap else sum(times)

# %% wrong: the faster of the two decides
# says: the slower one decides
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    if overlap:
        return min(carry, forward) + min(carry, 2 * forward)
    return 2 * carry + 3 * forward

# %% wrong: multiplies by the rates
# says: divide by `link` and by `rate`
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size * link, forward_flops * rate
    return max(carry, forward) + max(carry, 2 * forward) if overlap else 2 * carry + 3 * forward

# %% wrong: the carrying alone
# says: The computing takes time, too
def offload_seconds(size, forward_flops, link, rate, overlap):
    return 2 * size / link

# %% right: what sticks out is added to the computing
def offload_seconds(size, forward_flops, link, rate, overlap):
    total = 3 * forward_flops / rate
    for computing in (forward_flops / rate, 2 * forward_flops / rate):
        hidden = min(size / link, computing) if overlap else 0
        total += size / link - hidden
    return total

# %% right: case by case
def offload_seconds(size, forward_flops, link, rate, overlap):
    carry, forward = size / link, forward_flops / rate
    if not overlap or carry == 0:
        return 2 * carry + 3 * forward
    if carry <= forward:
        return 3 * forward
    if carry <= 2 * forward:
        return carry + 2 * forward
    return 2 * carry

# %% right: as a tensor
def offload_seconds(size, forward_flops, link, rate, overlap):
    times = torch.tensor([[size / link] * 2, [forward_flops / rate, 2 * forward_flops / rate]], dtype=torch.float64)
    return (times.amax(dim=0) if overlap else times.sum(dim=0)).sum().item()
