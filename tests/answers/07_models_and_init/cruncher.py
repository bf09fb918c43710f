# %% wrong: a plain list
# says: PyTorch does not look into a plain list
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = [Linear(dim, dim) for _ in range(num_layers)]
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: one layer many times
# says: One layer used several times
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim)] * num_layers)
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: not scaled
# says: divide the weights by that
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: a parenthesis too early
# says: weight is not registered
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out)) / math.sqrt(d_in)

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: a plain tensor
# says: weight is not registered
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = torch.randn(d_in, d_out, requires_grad=True) / math.sqrt(d_in)

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: no super().__init__()
# says: before Module.__init__() call
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: stored as nn.Linear stores it
# says: x @ weight wants [d_in, d_out]
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight.T


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: nn.Linear in Cruncher
# says: use your own Linear
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_layers)])
        self.final = nn.Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: a bias
# says: Without a bias
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: squeezes the batch, too
# says: squeeze() drops every dimension
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze()

# %% wrong: a column
# says: That is [B, 1]
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x)

# %% wrong: ReLUs in between
# says: There is no ReLU in it
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.final(x).squeeze(-1)

# %% wrong: results of the layers are thrown away
# says: The result of each layer has to go into the next
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: .data in forward
# says: .data and detach() cut the graph
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return (x @ self.weight.data).requires_grad_()


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x.detach())
        return self.final(x.detach()).squeeze(-1)

# %% wrong: computes in float32 whatever it is given
# says: dtypes after .to(torch.float64)
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x.float() @ self.weight.float()


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: a seed inside
# says: do not set a seed inside
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: Kaiming's
# says: That is Kaiming's
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) * math.sqrt(2 / d_in))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: uniform, as nn.Linear's
# says: uniform, and √3 too small
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        bound = 1 / math.sqrt(d_in)
        self.weight = nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: PyTorch's initialiser on a matrix for x @ w
# says: That is for d_out
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        nn.init.kaiming_normal_(self.weight, nonlinearity="linear")

    def forward(self, x):
        return x @ self.weight


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: scaled at each use
# says: scaled when they are made
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.scale = 1 / math.sqrt(d_in)
        self.weight = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        return x @ self.weight * self.scale


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: uniform, with the right std
# says: That is a uniform distribution
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        end = math.sqrt(3 / d_in)
        self.weight = nn.Parameter(torch.empty(d_in, d_out).uniform_(-end, end))

    def forward(self, x):
        return x @ self.weight

class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% wrong: for two dimensions only
# says: any number of leading dimensions
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x.mm(self.weight)

class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.final(x).squeeze(-1)

# %% right: nn.Sequential, and randn
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(d_in**-0.5 * torch.randn(d_in, d_out))

    def forward(self, x):
        return torch.matmul(x, self.weight)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.final = Linear(dim, 1)
        self.layers = nn.Sequential(*[Linear(dim, dim) for _ in range(num_layers)])

    def forward(self, x):
        return self.final(self.layers(x))[:, 0]

# %% right: register_parameter, einsum, kaiming_normal_ on the transpose
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_parameter("weight", nn.Parameter(torch.empty(d_in, d_out)))
        nn.init.kaiming_normal_(self.weight.T, nonlinearity="linear")

    def forward(self, x):
        return torch.einsum("...i,io->...o", x, self.weight)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(Linear(dim, dim))
        self.final = Linear(dim, 1)

    def forward(self, x):
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        return self.final(x).flatten()

# %% right: fills the data, stores the transpose of a view
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_in, self.d_out = d_in, d_out
        self.weight = nn.Parameter(torch.zeros(d_in, d_out))
        self.weight.data.normal_(0, 1 / math.sqrt(d_in))

    def forward(self, x):
        return nn.functional.linear(x, self.weight.T)


class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList(modules=[Linear(dim, dim) for _ in range(num_layers)])
        self.final = Linear(dim, 1)

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer(h)
        return self.final(h).reshape(x.shape[0])

# %% right: an nn.ModuleDict, which gives the same names
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        nn.init.kaiming_normal_(self.weight.T, nonlinearity="linear")

    def forward(self, x):
        return torch.einsum("...i,ij->...j", x, self.weight)

class Cruncher(nn.Module):
    def __init__(self, dim, num_layers):
        super().__init__()
        self.final = Linear(dim, 1)
        self.layers = nn.ModuleDict({str(i): Linear(dim, dim) for i in range(num_layers)})

    def forward(self, x):
        for layer in self.layers.values():
            x = layer(x)
        return self.final(x)[:, 0]

# %% equivalent: -1 → 1
# why: what final puts out has two dimensions, so the last one is number 1
