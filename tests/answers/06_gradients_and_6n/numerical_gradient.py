# %% wrong: forward difference
# says: That is the forward difference
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        moved = x.clone()
        moved[index] += step
        gradient[index] = (f(moved) - f(x)) / step
    return gradient

# %% wrong: divides by one step
# says: The two points are 2 · step apart
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / step
    return gradient

# %% wrong: Python divides, then multiplies
# says: Move one element at a time
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = f(up) - f(down) / 2 * step
    return gradient

# %% wrong: moves them all
# says: All elements moved at once
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    slope = (f(x + step) - f(x - step)) / (2 * step)
    return slope * torch.ones_like(x)

# %% wrong: in the dtype of x
# says: wanted is float64
def numerical_gradient(f, x, step=1e-5):
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (2 * step)
    return gradient

# %% wrong: computes in float32, returns float64
# says: in float32 the two values agree
def numerical_gradient(f, x, step=1e-5):
    gradient = torch.zeros(x.shape, dtype=torch.float64)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (2 * step)
    return gradient

# %% wrong: moves in float32, then converts
# says: in float32 the two values agree
def numerical_gradient(f, x, step=1e-5):
    gradient = torch.zeros(x.shape, dtype=torch.float64)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up.double()) - f(down.double())) / (2 * step)
    return gradient

# %% wrong: in place, and one step short of coming back
# says: back in its place
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
    return gradient

# %% wrong: moves x itself there and back, which rounding notices
# says: x is somebody else's
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
        x[index] += step
    return gradient

# %% wrong: never puts the element back
# says: back in its place
def numerical_gradient(f, x, step=1e-5):
    x = x.double().clone()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        x[index] += step
        up = f(x)
        x[index] -= 2 * step
        gradient[index] = (up - f(x)) / (2 * step)
    return gradient

# %% wrong: a step of its own
# says: use the step that is given
def numerical_gradient(f, x, step=1e-5):
    x, step = x.double(), 1e-5
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (2 * step)
    return gradient

# %% wrong: autograd after all
# says: That is the exact slope
def numerical_gradient(f, x, step=1e-5):
    x = x.double().clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0]

# %% wrong: down minus up
# says: The sign is wrong
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    gradient = torch.zeros_like(x)
    for index in itertools.product(*map(range, x.shape)):
        up, down = x.clone(), x.clone()
        up[index] += step
        down[index] -= step
        gradient[index] = (f(down) - f(up)) / (2 * step)
    return gradient

# %% wrong: hands f a flat tensor
# says: not a flat one
def numerical_gradient(f, x, step=1e-5):
    flat = x.double().flatten()
    slopes = []
    for i in range(flat.numel()):
        up, down = flat.clone(), flat.clone()
        up[i] += step
        down[i] -= step
        slopes.append((f(up) - f(down)) / (2 * step))
    return torch.stack(slopes).reshape(x.shape)

# %% wrong: a flat view, which a non-contiguous x has not
# says: x may be non-contiguous
def numerical_gradient(f, x, step=1e-5):
    x = x.to(torch.float64, copy=True)
    gradient = torch.zeros_like(x)
    for i in range(x.numel()):
        old = x.view(-1)[i].item()
        x.view(-1)[i] = old + step
        up = f(x).item()
        x.view(-1)[i] = old - step
        gradient.view(-1)[i] = (up - f(x).item()) / (2 * step)
        x.view(-1)[i] = old
    return gradient

# %% wrong: rows and columns only
# says: any number of dimensions
def numerical_gradient(f, x, step=1e-5):
    x = x.to(torch.float64, copy=True)
    out = torch.zeros(x.shape, dtype=torch.float64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            up, down = x.clone(), x.clone()
            up[i, j] += step; down[i, j] -= step
            out[i, j] = (f(up) - f(down)) / (2 * step)
    return out

# %% right: rows of a unit matrix
def numerical_gradient(f, x, step=1e-5):
    x = x.detach().to(torch.float64)
    slopes = []
    for unit in torch.eye(x.numel(), dtype=torch.float64):
        move = step * unit.reshape(x.shape)
        slopes.append(((f(x + move) - f(x - move)) / (2 * step)).item())
    return torch.tensor(slopes, dtype=torch.float64).reshape(x.shape)

# %% right: one contiguous copy, each element put back
def numerical_gradient(f, x, step=1e-5):
    moved = torch.empty(x.shape, dtype=torch.float64)
    moved.copy_(x)
    flat, gradient = moved.view(-1), torch.empty(x.numel(), dtype=torch.float64)
    for i in range(x.numel()):
        old = flat[i].item()
        flat[i] = old + step
        up = float(f(moved))
        flat[i] = old - step
        gradient[i] = up - float(f(moved))
        flat[i] = old
    return gradient.div_(2 * step).view(x.shape)

# %% right: recursion over the first dimension
def numerical_gradient(f, x, step=1e-5):
    x = x.double()
    if x.dim() == 1:
        out = []
        for i in range(len(x)):
            sides = []
            for sign in (1, -1):
                y = x.clone()
                y[i] += sign * step
                sides.append(f(y))
            out.append((sides[0] - sides[1]) / step / 2)
        return torch.stack(out)
    rows = []
    for i in range(x.shape[0]):

        def g(row, i=i):
            y = x.clone()
            y[i] = row
            return f(y)

        rows.append(numerical_gradient(g, x[i], step))
    return torch.stack(rows)

# %% right: NumPy, in a copy
def numerical_gradient(f, x, step=1e-5):
    import numpy as np
    a = x.detach().cpu().numpy().astype(np.float64).copy()
    g = np.zeros_like(a)
    it = np.nditer(a, flags=["multi_index"])
    while not it.finished:
        i = it.multi_index
        keep = a[i]
        a[i] = keep + step
        up = f(torch.from_numpy(a.copy())).item()
        a[i] = keep - step
        down = f(torch.from_numpy(a.copy())).item()
        a[i] = keep
        g[i] = (up - down) / (2 * step)
        it.iternext()
    return torch.from_numpy(g)

# %% equivalent: torch.zeros → torch.ones
# why: every element is written
