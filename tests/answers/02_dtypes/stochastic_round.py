# %% wrong: to nearest
# says: The same neighbour comes each time
def stochastic_round(x, generator):
    return x.bfloat16()

# %% wrong: a fair coin
# says: That tosses a fair coin
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    up = torch.rand(x.shape, generator=generator) < 0.5
    up &= (bits & 0xFFFF) != 0
    return ((bits & -65536) + 65536 * up.int()).view(torch.float32).bfloat16()

# %% wrong: the wrong way round
# says: The wrong way round
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    share = (bits & 0xFFFF) / 65536
    up = (torch.rand(x.shape, generator=generator) > share) & (share > 0)
    return ((bits & -65536) + 65536 * up.int()).view(torch.float32).bfloat16()

# %% wrong: one draw for all
# says: one draw for all elements
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, (1,), generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: one draw for each column
# says: not each row or each column
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape[-1:], generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: another generator
# says: All randomness comes from the generator
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: rounded to nearest after the noise
# says: expected
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    return (x.view(torch.int32) + noise).view(torch.float32).bfloat16()

# %% wrong: noise of a fixed size
# says: expected
def stochastic_round(x, generator):
    return (x + (torch.rand(x.shape, generator=generator) - 0.5) * 2**-7).bfloat16()

# %% wrong: float32 comes out
# says: dtype of the result
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32)

# %% wrong: writes into x
# says: x is somebody else's
def stochastic_round(x, generator):
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    bits = x.view(torch.int32)
    bits += noise
    bits &= -65536
    return x.bfloat16()

# %% wrong: noise of eight bits
# says: Even a neighbour
def stochastic_round(x, generator):
    noise = torch.randint(0, 256, x.shape, generator=generator, dtype=torch.int32) * 256
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: noise up to and including 65,536
# says: What bfloat16 holds exactly stays as it is
def stochastic_round(x, generator):
    noise = torch.randint(0, 65537, x.shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: seeds anew
# says: A second call must draw anew
def stochastic_round(x, generator):
    generator.manual_seed(0)
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: away from zero for all negative numbers
# says: expected
def stochastic_round(x, generator):
    bits = x.view(torch.int32)
    noise = torch.randint(0, 65536, x.shape, generator=generator, dtype=torch.int32)
    noise = torch.where(x < 0, 65535, noise)
    return ((bits + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: one draw for each row
# says: not each row or each column
def stochastic_round(x, generator):
    shape = [size if dim == 0 else 1 for dim, size in enumerate(x.shape)]
    noise = torch.randint(0, 65536, shape, generator=generator, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: the global generator with the same seed
# says: A second call must draw anew
def stochastic_round(x, generator):
    torch.manual_seed(generator.initial_seed())
    noise = torch.randint(0, 65536, x.shape, dtype=torch.int32)
    return ((x.view(torch.int32) + noise) & -65536).view(torch.float32).bfloat16()

# %% wrong: up from the nearest, whichever side it lies on
# says: The same neighbour comes each time
def stochastic_round(x, generator):
    near = x.bfloat16()
    far = (near.view(torch.int16) + 1).view(torch.bfloat16)
    share = (x - near.float()) / (far.float() - near.float())
    return torch.where(torch.rand(x.shape, generator=generator) < share, far, near)

# %% right: compares with a share
def stochastic_round(x, generator):
    bits = x.contiguous().view(torch.int32)
    share = (bits & 0xFFFF).double() / 65536
    up = torch.rand(x.shape, generator=generator, dtype=torch.float64) < share
    return torch.where(up, (bits & -65536) + 65536, bits & -65536).view(torch.float32).to(torch.bfloat16)

# %% right: two neighbours, by their values
def stochastic_round(x, generator):
    near = (x.view(torch.int32) & -65536).view(torch.float32)
    far = ((x.view(torch.int32) & -65536) + 65536).view(torch.float32)
    share = (x.double() - near.double()) / (far.double() - near.double())
    draw = torch.rand(x.shape, generator=generator, dtype=torch.float64, device=x.device)
    return torch.where(draw < share, far, near).bfloat16()

# %% right: bernoulli, in whole numbers of 64 bits
def stochastic_round(x, generator):
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    up = torch.bernoulli((bits % 65536).double() / 65536, generator=generator).long()
    upper = (bits >> 16) + up
    return torch.where(upper >= 2**15, upper - 2**16, upper).to(torch.int16).view(torch.bfloat16)

# %% right: the nearest, or now and then the other one
def stochastic_round(x, generator):
    near = x.bfloat16()
    off = x.double() - near.double()
    step = torch.where((off > 0) == (x > 0), 1, -1).to(torch.int16)
    other = (near.view(torch.int16) + step).view(torch.bfloat16)
    share = (off / (other.double() - near.double())).abs()
    draw = torch.rand(x.shape, generator=generator, dtype=torch.float64)
    return torch.where((draw < share) & (off != 0), other, near)

# %% right: noise made in place, and the upper half shifted down
def stochastic_round(x, generator):
    noise = torch.empty(x.shape, dtype=torch.int32).random_(0, 65536, generator=generator)
    return ((x.view(torch.int32) + noise) >> 16).to(torch.int16).view(torch.bfloat16)

# %% survivor: torch.randint(0, 2 ** 16, x.shape, generator=generator, dtype=torch.int32, device=x.device) → torch.randint(0, 2 ** 16, x.shape, generator=generator, dtype=torch.int32)
# why: the tests run where there may be no GPU; on the CPU it makes no difference
