# %% wrong: PyTorch only
# says: Python's random global generator does not stand
def seed_everything(seed):
    torch.manual_seed(seed)

# %% wrong: forgets Python's
# says: Python's random global generator does not stand
def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)

# %% wrong: forgets NumPy's
# says: NumPy's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)

# %% wrong: forgets PyTorch's
# says: PyTorch's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)

# %% wrong: a NumPy generator of its own, thrown away
# says: NumPy's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    np.random.default_rng(seed)
    torch.manual_seed(seed)

# %% wrong: a torch generator of its own
# says: PyTorch's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.Generator().manual_seed(seed)

# %% wrong: only the GPUs
# says: PyTorch's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.cuda.manual_seed_all(seed)

# %% wrong: a constant
# says: not with a constant
def seed_everything(seed):
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)

# %% wrong: another seed for each
# says: NumPy's global generator does not stand
def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed + 1)
    torch.manual_seed(seed + 2)

# %% wrong: returns the generator
# says: Return nothing
def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    return torch.manual_seed(seed)

# %% right: the CPU and each GPU, said explicitly
def seed_everything(seed):
    torch.random.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    np.random.seed(seed)
    random.seed(seed)

# %% right: states of new generators
def seed_everything(seed):
    random.setstate(random.Random(seed).getstate())
    np.random.set_state(np.random.RandomState(seed).get_state())
    torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())

# %% right: a loop
def seed_everything(seed):
    for seeder in (random.seed, np.random.seed, torch.manual_seed):
        seeder(seed)

# %% right: the default generator
def seed_everything(seed):
    random.seed(seed, version=2)
    np.random.mtrand.seed(seed)
    torch.default_generator.manual_seed(seed)
