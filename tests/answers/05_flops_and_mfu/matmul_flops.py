# %% wrong: multiply-adds
# says: a multiply-add is two FLOPs
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError
    batch = torch.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: two for each output
# says: each output needs d products
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return 2 * math.prod(x_shape[:-1]) * w_shape[-1]

# %% wrong: both sizes in full
# says: d is counted twice
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return 2 * math.prod(x_shape) * math.prod(w_shape)

# %% wrong: 2d - 1
# says: The first addition of each sum counts as well
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return math.prod(x_shape[:-1]) * w_shape[-1] * (2 * x_shape[-1] - 1)

# %% wrong: no batch
# says: The leading dimensions are missing
def matmul_flops(x_shape, w_shape):
    (b, d), (inner, k) = x_shape[-2:], w_shape[-2:]
    if d != inner:
        raise ValueError("inner sizes differ")
    return 2 * b * d * k

# %% wrong: each x with each w
# says: A batch dimension that both have is one dimension
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return 2 * math.prod(x_shape) * math.prod(w_shape) // w_shape[-2]

# %% wrong: the batch of x only
# says: w has batch dimensions of its own
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return 2 * math.prod(x_shape) * w_shape[-1]

# %% wrong: no error
# says: Nothing was raised
def matmul_flops(x_shape, w_shape):
    batch = torch.broadcast_shapes(x_shape[:-2], w_shape[:-2])
    return 2 * math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: takes both batches to be equal, or one to be empty
# says: has batch dimensions of its own
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    batch = max(x_shape[:-2], w_shape[:-2], key=len)
    return 2 * math.prod(batch) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: lines batches up from the left
# says: expected
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    pairs = itertools.zip_longest(x_shape[:-2], w_shape[:-2], fillvalue=1)
    return 2 * math.prod(max(p) for p in pairs) * x_shape[-2] * x_shape[-1] * w_shape[-1]

# %% wrong: leaves the error to PyTorch
# says: That is another error
def matmul_flops(x_shape, w_shape):
    y = torch.empty(x_shape, device="meta") @ torch.empty(w_shape, device="meta")
    return y.numel() * x_shape[-1] * 2

# %% right: the outputs of a product without memory
def matmul_flops(x_shape, w_shape):
    try:
        y = torch.empty(x_shape, device="meta") @ torch.empty(w_shape, device="meta")
    except RuntimeError as error:
        raise ValueError("these cannot be multiplied") from error
    return y.numel() * x_shape[-1] * 2

# %% right: asks PyTorch's counter
def matmul_flops(x_shape, w_shape):
    if x_shape[-1] != w_shape[-2]:
        raise ValueError("inner sizes differ")
    return count_flops(torch.matmul, torch.empty(x_shape, device="meta"), torch.empty(w_shape, device="meta"))

# %% right: broadcasts by hand
def matmul_flops(x_shape, w_shape):
    if list(x_shape)[-1] != list(w_shape)[-2]:
        raise ValueError("inner sizes differ")
    total = 2 * x_shape[-2] * x_shape[-1] * w_shape[-1]
    pairs = itertools.zip_longest(reversed(x_shape[:-2]), reversed(w_shape[:-2]), fillvalue=1)
    for a, b in pairs:
        total *= b if a == 1 else a
    return float(total)

# %% right: the larger of two sizes that broadcast
def matmul_flops(x_shape, w_shape):
    (*x_batch, b, d), (*w_batch, inner, k) = x_shape, w_shape
    if d != inner:
        raise ValueError("inner sizes differ")
    pairs = itertools.zip_longest(x_batch[::-1], w_batch[::-1], fillvalue=1)
    return math.prod(map(max, pairs)) * 2 * b * d * k

# %% equivalent: torch.broadcast_shapes(tuple(x_batch), tuple(w_batch)) → torch.broadcast_shapes(tuple(w_batch), tuple(x_batch))
# why: broadcasting does not depend on the order
