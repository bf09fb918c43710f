# %% wrong: loads and restores nothing
# says: Loaded, but nothing is restored
def save_checkpoint(path, model, optimizer, step, generator):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)


def load_checkpoint(path, model, optimizer, generator):
    return torch.load(path)["step"]

# %% wrong: model only
# says: Only the model is restored
def save_checkpoint(path, model, optimizer, step, generator):
    torch.save({"model": model.state_dict(), "step": step}, path)


def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    return contents["step"]

# %% wrong: model and optimizer, no generators
# says: No generator is restored
def save_checkpoint(path, model, optimizer, step, generator):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)


def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(path)
    model.load_state_dict(contents["model"])
    optimizer.load_state_dict(contents["optimizer"])
    return contents["step"]

# %% wrong: no optimizer
# says: The optimizer's state is not restored
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: forgets the global generator
# says: PyTorch's global generator is not restored
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state()]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    return step

# %% wrong: forgets the data's generator
# says: The data's generator is not restored
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, torch.get_rng_state()]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: seeds anew in place of restoring
# says: No generator is restored
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.manual_seed(step)
    torch.manual_seed(step)
    return step

# %% wrong: the step after the next
# says: The step is not the one that was saved
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step + 1

# %% wrong: writes in place
# says: Only half of the new one is there
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: in place, through an open file
# says: Only half of the new one is there
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    with open(path, "wb") as file:
        torch.save(contents, file)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: in place, by way of a buffer
# says: The old file itself was written to
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    buffer = io.BytesIO()
    torch.save(contents, buffer)
    path.write_bytes(buffer.getvalue())


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: deletes the old one first
# says: The old one is gone
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    path.unlink(missing_ok=True)
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: swallows the error
# says: The error must be passed on
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    try:
        torch.save(contents, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)
    except OSError:
        print("could not save")


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: in the folder for temporary files
# says: a rename cannot cross file systems
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    with tempfile.NamedTemporaryFile(delete=False) as file:
        torch.save(contents, file)
    os.replace(file.name, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: leaves the other file behind
# says: The file under the other name is left behind
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    partial = path.with_name(path.name + ".partial")
    torch.save(contents, partial)
    path.write_bytes(partial.read_bytes())


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: pickles whole objects
# says: it does not load with weights_only=True
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model, optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def load_checkpoint(path, model, optimizer, generator):
    loaded, state, step, own, everybodys = torch.load(path, weights_only=False)
    model.load_state_dict(loaded.state_dict())
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: in memory, not on disk
# says: files in the folder
remembered = {}


def save_checkpoint(path, model, optimizer, step, generator):
    remembered[str(path)] = [
        copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()), step,
        generator.get_state(), torch.get_rng_state(),
    ]


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = remembered[str(path)]
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: draws a number while saving
# says: by saving
def save_checkpoint(path, model, optimizer, step, generator):
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    other = path.with_name(f"{int(torch.randint(10**9, (1,)))}.new")
    torch.save(contents, other)
    os.replace(other, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: deletes, then renames
# says: For a moment there is no file at all
def save_checkpoint(path, model, optimizer, step, generator):
    partial = path.with_name(path.name + ".partial")
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, partial)
    path.unlink(missing_ok=True)
    partial.rename(path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: parameters without buffers
# says: state_dict() holds buffers as well
def save_checkpoint(path, model, optimizer, step, generator):
    partial = path.with_name(path.name + ".partial")
    contents = [dict(model.named_parameters()), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights, strict=False)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: the optimizer's averages without its settings
# says: The optimizer's state is not restored
def save_checkpoint(path, model, optimizer, step, generator):
    partial = path.with_name(path.name + ".partial")
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state["state"]})
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: clears the gradients
# says: not its gradients either
def save_checkpoint(path, model, optimizer, step, generator):
    partial = path.with_name(path.name + ".partial")
    optimizer.zero_grad()
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% wrong: leaves the model in evaluation mode
# says: Is the model still in training mode
def save_checkpoint(path, model, optimizer, step, generator):
    partial = path.with_name(path.name + ".partial")
    model.eval()
    contents = [model.state_dict(), optimizer.state_dict(), step, generator.get_state(), torch.get_rng_state()]
    torch.save(contents, partial)
    os.replace(partial, path)


def load_checkpoint(path, model, optimizer, generator):
    weights, state, step, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.set_rng_state(everybodys)
    return step

# %% right: a temporary file beside it, cleaned up after an error
def save_checkpoint(path, model, optimizer, step, generator):
    contents = {
        "m": model.state_dict(), "o": optimizer.state_dict(), "s": torch.tensor(step),
        "g": generator.get_state(), "r": torch.random.get_rng_state(),
    }
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            torch.save(contents, file)
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def load_checkpoint(path, model, optimizer, generator):
    found = torch.load(path, map_location="cpu", weights_only=True)
    torch.random.set_rng_state(found["r"])
    generator.set_state(found["g"])
    optimizer.load_state_dict(found["o"])
    model.load_state_dict(found["m"])
    return found["s"].item()

# %% right: a buffer first, then another file
def save_checkpoint(path, model, optimizer, step, generator):
    buffer = io.BytesIO()
    torch.save((step, model.state_dict(), optimizer.state_dict(), generator.get_state(), torch.get_rng_state()), buffer)
    partial = path.parent / ("_" + path.name)
    with open(partial, "wb") as file:
        file.write(buffer.getvalue())
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load_checkpoint(path, model, optimizer, generator):
    step, weights, state, own, everybodys = torch.load(path)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    generator.set_state(own)
    torch.default_generator.set_state(everybodys)
    return step

# %% right: weights copied one by one
def save_checkpoint(path, model, optimizer, step, generator):
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    contents = {"weights": weights, "optimizer": optimizer.state_dict(), "step": step}
    contents["chance"] = [generator.get_state(), torch.get_rng_state()]
    beside = Path(f"{path}~")
    torch.save(contents, str(beside))
    beside.rename(path)


def load_checkpoint(path, model, optimizer, generator):
    contents = torch.load(str(path))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(contents["weights"][name])
    optimizer.load_state_dict(contents["optimizer"])
    for one, state in zip((generator, torch.default_generator), contents["chance"]):
        one.set_state(state)
    return contents["step"]
