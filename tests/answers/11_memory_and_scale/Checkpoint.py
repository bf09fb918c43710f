# %% wrong: no gradients for the parameters
# says: The parameters got no gradient
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        return None, torch.autograd.grad(output, x, gradient)[0]

# %% wrong: keeps the graph of the first pass
# says: is not run again in backward
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.x = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.output = block(ctx.x)
        return ctx.output.detach()

    @staticmethod
    def backward(ctx, gradient):
        ctx.output.backward(gradient)
        return None, ctx.x.grad

# %% wrong: runs the block again without gradients
# says: does not require grad
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        output = ctx.block(x)
        output.backward(gradient)
        return None, x.grad

# %% wrong: x is still tied to the graph before it
# says: on x.detach().requires_grad_()
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            output = ctx.block(x)
        x.retain_grad()
        output.backward(gradient)
        return None, x.grad

# %% wrong: the gradients of the output are forgotten
# says: Begin the backward pass with the gradient that you are given
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.block(x).sum().backward()
        return None, x.grad

# %% wrong: the two gradients in the wrong order
# says: returned a gradient different than None
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        output.backward(gradient)
        return x.grad, None

# %% wrong: keeps the output as well
# says: save only x
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        output = block(x)
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, gradient):
        x, _ = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            output = ctx.block(x)
        output.backward(gradient)
        return None, x.grad

# %% wrong: the parameters' gradients are added twice
# says: Run the block once more in backward, not twice
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            ctx.block(x).backward(gradient)
            slope = torch.autograd.grad(ctx.block(x), x, gradient)[0]
        return None, slope

# %% right: puts x on ctx itself
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.kept = block, x.detach()
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        block, x = ctx.kept
        with torch.enable_grad():
            x = x.clone().requires_grad_()
            torch.autograd.backward(block(x), gradient)
        return None, x.grad

# %% right: asks for all gradients by name, and adds the parameters' by hand
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        parameters = [p for p in ctx.block.parameters() if p.requires_grad]
        with torch.enable_grad():
            found = torch.autograd.grad(ctx.block(x), [x, *parameters], gradient)
        for p, slope in zip(parameters, found[1:]):
            p.grad = slope if p.grad is None else p.grad + slope
        return None, found[0]

# %% right: a vector-Jacobian product of the block
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.save_for_backward(x)
        ctx.run = block.forward
        return block.forward(x)

    @staticmethod
    def backward(ctx, gradient):
        leaf = ctx.saved_tensors[0].detach()
        leaf.requires_grad = True
        torch.set_grad_enabled(True)
        out = ctx.run(leaf)
        (out * gradient).sum().backward()
        torch.set_grad_enabled(False)
        return None, leaf.grad
