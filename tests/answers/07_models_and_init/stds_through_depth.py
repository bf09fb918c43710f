# %% wrong: mean squares
# says: Those are mean squares
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(m)
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, g)
    return out

# %% wrong: halves in the first layer, too
# says: nothing is halved in the first layer
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: ignores the ReLU
# says: A ReLU between two layers halves
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: the variance of a ReLU
# says: not the variance of a ReLU
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 - 0.5 / math.pi if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: halves the std
# says: halves the mean square, not the std
def stds_through_depth(widths, weight_stds, relu):
    s, out = 1.0, []
    for i, std in enumerate(weight_stds):
        s *= math.sqrt(widths[i]) * std * (0.5 if relu and i else 1)
        out.append(s)
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    s, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        s *= math.sqrt(widths[i + 1]) * weight_stds[i] * (0.5 if relu else 1)
        out.insert(0, s)
    return out

# %% wrong: outputs forward
# says: Forward each output is a sum over the layer's inputs
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i + 1] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: inputs backward
# says: Going back, each sum runs over the layer's outputs
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: gradients from the last layer on
# says: wanted is the order of the layers
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.append(math.sqrt(g))
    return out

# %% wrong: the gradient of the data, too
# says: the gradient of the data is not asked for
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, -1, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu and i else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: the data's std in the list
# says: begin with the outputs of the first layer
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, [1.0]
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: each layer on its own
# says: factors multiply with depth
def stds_through_depth(widths, weight_stds, relu):
    return [math.sqrt(d / (2 if relu and i else 1)) * s for i, (d, s) in enumerate(zip(widths, weight_stds))]


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i + 1] * weight_stds[i] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: the layer's own weights for its own gradient
# says: comes back through the weights of layer i + 1
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std**2 * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    g, out = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        g *= widths[i] * weight_stds[i - 1] ** 2 * (0.5 if relu else 1)
        out.insert(0, math.sqrt(g))
    return out

# %% wrong: the std of the weights, not squared
# says: std squared
def stds_through_depth(widths, weight_stds, relu):
    m, out = 1.0, []
    for i, std in enumerate(weight_stds):
        m *= widths[i] * std * (0.5 if relu and i else 1)
        out.append(math.sqrt(m))
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    return [1.0] * len(weight_stds)

# %% wrong: the gradient of what leaves the ReLU
# says: That is the gradient of what leaves the ReLU
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i, std in enumerate(weight_stds):
        square *= widths[i] * std**2 * (0.5 if relu and i else 1.0)
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, [1.0]
    for i in range(len(weight_stds) - 1, 0, -1):
        square *= widths[i + 1] * weight_stds[i] ** 2
        found.insert(0, square**0.5)
        square *= 0.5 if relu else 1.0
    return found

# %% wrong: a ReLU after the last layer
# says: There is no ReLU after the last layer
def stds_through_depth(widths, weight_stds, relu):
    square, found = 1.0, []
    for i, std in enumerate(weight_stds):
        square *= widths[i] * std**2 * (0.5 if relu and i else 1.0)
        found.append(square**0.5)
    return found

def gradient_stds_through_depth(widths, weight_stds, relu):
    half = 0.5 if relu else 1.0
    square, found = half, [half**0.5]
    for i in range(len(weight_stds) - 1, 0, -1):
        square *= widths[i + 1] * weight_stds[i] ** 2 * half
        found.insert(0, square**0.5)
    return found

# %% right: products of slices
def stds_through_depth(widths, weight_stds, relu):
    half = 2.0 if relu else 1.0
    return [
        math.sqrt(math.prod(d * s * s for d, s in zip(widths[: i + 1], weight_stds[: i + 1])) / half**i)
        for i in range(len(weight_stds))
    ]


def gradient_stds_through_depth(widths, weight_stds, relu):
    half, depth = 2.0 if relu else 1.0, len(weight_stds)
    return [
        math.sqrt(math.prod(widths[j + 1] * weight_stds[j] ** 2 / half for j in range(i + 1, depth)))
        for i in range(depth)
    ]

# %% right: stds all the way, roots of the factors
def stds_through_depth(widths, weight_stds, relu):
    s, out = math.sqrt(2.0) if relu else 1.0, []
    for d, w in zip(widths, weight_stds):
        s = s * w * d**0.5 * (0.5**0.5 if relu else 1.0)
        out += [s]
    return out


def gradient_stds_through_depth(widths, weight_stds, relu):
    s, out = 1.0, []
    for d, w in zip(widths[:0:-1], weight_stds[::-1]):
        out = [s, *out]
        s = s * w * d**0.5 * (0.5**0.5 if relu else 1.0)
    return out

# %% right: logarithms, as tuples
def stds_through_depth(widths, weight_stds, relu):
    log, out = 0.0, []
    for i, (d, w) in enumerate(zip(widths[:-1], weight_stds)):
        log += math.log(d) / 2 + math.log(w) - (math.log(2) / 2 if relu and i > 0 else 0)
        out.append(math.exp(log))
    return tuple(out)


def gradient_stds_through_depth(widths, weight_stds, relu):
    log, out = 0.0, [1.0]
    for d, w in list(zip(widths[2:], weight_stds[1:]))[::-1]:
        log += math.log(d) / 2 + math.log(w) - (math.log(2) / 2 if relu else 0)
        out.append(math.exp(log))
    return tuple(reversed(out))
