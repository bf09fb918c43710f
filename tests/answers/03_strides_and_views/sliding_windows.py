# %% wrong: copies
# says: a copy, or memory wrapped anew, does not
def sliding_windows(x, size):
    return torch.stack([x[i : i + size] for i in range(len(x) - size + 1)])

# %% wrong: picks by a matrix of indices
# says: a copy, or memory wrapped anew, does not
def sliding_windows(x, size):
    return x[torch.arange(len(x) - size + 1)[:, None] + torch.arange(size)]

# %% wrong: unfold with a copy
# says: a copy, or memory wrapped anew, does not
def sliding_windows(x, size):
    return x.unfold(0, size, 1).contiguous()

# %% wrong: a stride of 1 taken for granted
# says: x need not have stride 1
def sliding_windows(x, size):
    return x.as_strided((len(x) - size + 1, size), (1, 1))

# %% wrong: only within a window is the stride minded
# says: Both steps go from one element of x to the next
def sliding_windows(x, size):
    return x.as_strided((len(x) - size + 1, size), (1, x.stride(0)))

# %% wrong: only between windows is the stride minded
# says: Both steps go from one element of x to the next
def sliding_windows(x, size):
    return x.as_strided((len(x) - size + 1, size), (x.stride(0), 1))

# %% wrong: the same memory, wrapped anew
# says: a copy, or memory wrapped anew, does not
def sliding_windows(x, size):
    from numpy.lib.stride_tricks import sliding_window_view

    return torch.from_numpy(sliding_window_view(x.numpy(), size))

# %% wrong: made contiguous first
# says: a copy, or memory wrapped anew, does not
def sliding_windows(x, size):
    return x.contiguous().as_strided((len(x) - size + 1, size), (1, 1))

# %% wrong: the last window is missing
# says: The last window is missing
def sliding_windows(x, size):
    return x.as_strided((len(x) - size, size), (x.stride(0), x.stride(0)))

# %% wrong: one window too many
# says: out of bounds
def sliding_windows(x, size):
    return x.as_strided((len(x) - size + 2, size), (x.stride(0), x.stride(0)))

# %% wrong: transposed
# says: one window per row
def sliding_windows(x, size):
    step = x.stride(0)
    return x.as_strided((size, len(x) - size + 1), (step, step))

# %% wrong: windows side by side
# says: Those windows do not overlap
def sliding_windows(x, size):
    return x.unfold(0, size, size)

# %% wrong: begins at slot 0
# says: x need not begin at slot 0
def sliding_windows(x, size):
    step = x.stride(0)
    return x.as_strided((len(x) - size + 1, size), (step, step), 0)

# %% wrong: a list of views
# says: got       [
def sliding_windows(x, size):
    return [x[i : i + size] for i in range(len(x) - size + 1)]

# %% right: unfold
def sliding_windows(x, size):
    return x.unfold(0, size, 1)

# %% right: a storage given anew
def sliding_windows(x, size):
    windows = torch.empty(0, dtype=x.dtype)
    step = x.stride(0)
    return windows.set_(x.untyped_storage(), x.storage_offset(), (len(x) - size + 1, size), (step, step))

# %% right: with the offset said
def sliding_windows(x, size):
    return torch.as_strided(x, [x.numel() - size + 1, size], [*x.stride(), *x.stride()], x.storage_offset())

# %% right: the other way round, then transposed
def sliding_windows(x, size):
    step = x.stride(0)
    return x.as_strided((size, len(x) - size + 1), (step, step)).T
