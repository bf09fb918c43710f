# %% wrong: adds up the parts' means
# says: weight it with its share of all rows
def accumulate(model, loss, x, y, size):
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        part = loss(model(rows), targets)
        part.backward()
        total += part.item()
    return total

# %% wrong: averages the parts' means, as if all were of one size
# says: The parts are not of one size
def accumulate(model, loss, x, y, size):
    parts = math.ceil(len(x) / size)
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        part = loss(model(rows), targets) / parts
        part.backward()
        total += part.item()
    return total

# %% wrong: one backward for all parts together
# says: One backward at the end
def accumulate(model, loss, x, y, size):
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        total = total + loss(model(rows), targets) * len(rows) / len(x)
    total.backward()
    return total.item()

# %% wrong: leaves the last part out
# says: The last part is missing
def accumulate(model, loss, x, y, size):
    total = 0.0
    for number in range(len(x) // size):
        rows = slice(number * size, (number + 1) * size)
        part = loss(model(x[rows]), y[rows])
        part.backward()
        total += part.item()
    return total

# %% wrong: the whole batch at once
# says: Pass at most `size` rows at once
def accumulate(model, loss, x, y, size):
    mean = loss(model(x), y)
    mean.backward()
    return mean.item()

# %% wrong: clears the gradients before each part
# says: do not clear them in between
def accumulate(model, loss, x, y, size):
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        model.zero_grad()
        part = loss(model(rows), targets) * len(rows) / len(x)
        part.backward()
        total += part.item()
    return total

# %% wrong: clears the gradients at the beginning
# says: Let gradients add to what is in .grad
def accumulate(model, loss, x, y, size):
    model.zero_grad()
    total = 0.0
    for rows, targets in zip(x.split(size), y.split(size)):
        part = loss(model(rows), targets) * len(rows) / len(x)
        part.backward()
        total += part.item()
    return total

# %% wrong: returns the mean of the parts' losses
# says: return the mean loss of all *rows*
def accumulate(model, loss, x, y, size):
    losses = []
    for rows, targets in zip(x.split(size), y.split(size)):
        part = loss(model(rows), targets)
        (part * len(rows) / len(x)).backward()
        losses.append(part.item())
    return sum(losses) / len(losses)

# %% wrong: returns the last part's loss
# says: the last part's only
def accumulate(model, loss, x, y, size):
    for rows, targets in zip(x.split(size), y.split(size)):
        mean = loss(model(rows), targets)
        (mean * len(rows) / len(x)).backward()
    return mean.item() * len(rows) / len(x)

# %% right: split, and weights from the rows that are left
def accumulate(model, loss, x, y, size):
    total, n = 0.0, x.shape[0]
    for rows, targets in zip(torch.split(x, size), torch.split(y, size), strict=True):
        weighted = (rows.shape[0] / n) * loss(model(rows), targets)
        weighted.backward()
        total += float(weighted.detach())
    return total

# %% right: the weight goes into backward
def accumulate(model, loss, x, y, size):
    total = torch.zeros((), dtype=torch.float64)
    for start in range(0, len(x), size):
        part = loss(model(x[start : start + size]), y[start : start + size])
        share = min(size, len(x) - start) / len(x)
        part.backward(torch.full_like(part, share))
        total += part.detach().double() * share
    return total.item()

# %% right: parts by their rows' numbers
def accumulate(model, loss, x, y, size):
    total, rows = 0.0, list(range(len(x)))
    while rows:
        now, rows = rows[:size], rows[size:]
        part = loss(model(x[now]), y[now]) * (len(now) / len(x))
        part.backward()
        total += part.item()
    return total
