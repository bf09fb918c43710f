# %% wrong: the sum in place of the mean
# says: The loss is a mean
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    g2 = 2 * (h1 @ w2)
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: no factor of two
# says: The slope of h² is 2 h
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = h2 / h2.numel()
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: neither
# says: The loss is the mean of h²
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    g2 = h1 @ w2
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: the mean over tokens only
# says: not by B alone
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / len(x)
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: w2 first
# says: wanted is the gradient of w1 first
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    return h1.T @ g2, x.T @ (g2 @ w2.T)

# %% wrong: transposed
# says: yours is the transpose
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    return (g2 @ w2.T).T @ x, g2.T @ h1

# %% wrong: back through w2, not its transpose, where that fits
# says: through the transpose of w2
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    g1 = g2 @ (w2 if w2.shape[0] == w2.shape[1] else w2.T)
    return x.T @ g1, h1.T @ g2

# %% wrong: skips w2, where that fits
# says: w1's gradient has to come back through w2
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    g1 = g2 if w2.shape[0] == w2.shape[1] else g2 @ w2.T
    return x.T @ g1, h1.T @ g2

# %% wrong: autograd
# says: Nothing can be recorded here
def gradients_by_hand(x, w1, w2):
    w1, w2 = w1.clone().requires_grad_(), w2.clone().requires_grad_()
    (x @ w1 @ w2).square().mean().backward()
    return w1.grad, w2.grad

# %% wrong: works in place on its arguments
# says: somebody else's
def gradients_by_hand(x, w1, w2):
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    g1 = g2 @ w2.T
    grad_w2 = h1.T @ g2
    grad_w1 = x.T @ g1
    w1 -= 0.1 * grad_w1
    return grad_w1, grad_w2

# %% wrong: float32 throughout
# says: A gradient has the dtype of its tensor
def gradients_by_hand(x, w1, w2):
    x, w1, w2 = x.float(), w1.float(), w2.float()
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% wrong: autograd outside of inference mode
# says: Nothing can be recorded here
def gradients_by_hand(x, w1, w2):
    with torch.inference_mode(False), torch.enable_grad():
        x, a, b = x.clone(), w1.clone().requires_grad_(), w2.clone().requires_grad_()
        (x @ a @ b).square().mean().backward()
        return a.grad, b.grad

# %% wrong: torch.func
# says: Nothing can be recorded here
def gradients_by_hand(x, w1, w2):
    return torch.func.grad(lambda a, b: (x @ a @ b).square().mean(), argnums=(0, 1))(w1, w2)

# %% wrong: float64 throughout
# says: A gradient has the dtype of its tensor
def gradients_by_hand(x, w1, w2):
    x, w1, w2 = x.double(), w1.double(), w2.double()
    h1 = x @ w1
    h2 = h1 @ w2
    g2 = 2 * h2 / h2.numel()
    return x.T @ (g2 @ w2.T), h1.T @ g2

# %% right: einsum, letters in the order of the triples
def gradients_by_hand(x, w1, w2):
    h = torch.einsum("bd,dh->bh", x, w1)
    g = torch.einsum("bh,hk->bk", h, w2) * (2 / (x.shape[0] * w2.shape[1]))
    return torch.einsum("bd,bk,hk->dh", x, g, w2), torch.einsum("bh,bk->hk", h, g)

# %% right: token by token
def gradients_by_hand(x, w1, w2):
    grad_w1, grad_w2 = torch.zeros_like(w1), torch.zeros_like(w2)
    count = x.shape[0] * w2.shape[1]
    for row in x:
        hidden = row @ w1
        out = 2 / count * (hidden @ w2)
        grad_w2 += torch.outer(hidden, out)
        grad_w1 += torch.outer(row, w2 @ out)
    return grad_w1, grad_w2

# %% right: broadcasting and sums, as a list
def gradients_by_hand(x, w1, w2):
    h1 = (x[:, :, None] * w1).sum(1)
    h2 = (h1[:, :, None] * w2).sum(1)
    g2 = h2.mul(2).div(h2.numel())
    g1 = (g2[:, None, :] * w2).sum(-1)
    return [(x[:, :, None] * g1[:, None, :]).sum(0), (h1[:, :, None] * g2[:, None, :]).sum(0)]

# %% right: the products of weights first
def gradients_by_hand(x, w1, w2):
    y = x.mm(w1.mm(w2))
    outer = x.t().mm(y) / (y.numel() / 2)
    return outer.mm(w2.t()), w1.t().mm(outer)
