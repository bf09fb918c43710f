# %% wrong: no latency
# says: no room for the latency
def copy_cost(sizes, seconds):
    return 0.0, sum(sizes) / sum(seconds)

# %% wrong: bandwidth of the largest copy
# says: no room for the latency
def copy_cost(sizes, seconds):
    return 0, max(sizes) / max(seconds)

# %% wrong: the slope itself
# says: The slope of the line is seconds per byte
def copy_cost(sizes, seconds):
    slope, latency = np_fit(sizes, seconds)
    return latency, slope


def np_fit(x, y):
    import numpy as np

    return np.polyfit(x, y, 1)

# %% wrong: swapped
# says: The order is (latency, bandwidth)
def copy_cost(sizes, seconds):
    import numpy as np

    slope, latency = np.polyfit(sizes, seconds, 1)
    return 1 / slope, latency

# %% wrong: gigabytes
# says: That is in GB/s
def copy_cost(sizes, seconds):
    import numpy as np

    slope, latency = np.polyfit(sizes, seconds, 1)
    return latency, 1 / slope / 1e9

# %% wrong: the first and the last point
# says: That joins the first and the last point
def copy_cost(sizes, seconds):
    bandwidth = (sizes[-1] - sizes[0]) / (seconds[-1] - seconds[0])
    return seconds[0] - sizes[0] / bandwidth, bandwidth

# %% wrong: a line through the origin
# says: expected
def copy_cost(sizes, seconds):
    slope = sum(x * y for x, y in zip(sizes, seconds)) / sum(x * x for x in sizes)
    return 0.0, 1 / slope

# %% wrong: float32
# says: in float64
def copy_cost(sizes, seconds):
    x, y = torch.tensor(sizes).float(), torch.tensor(seconds)
    x0, y0 = x.mean(), y.mean()
    slope = ((x - x0) @ (y - y0)) / ((x - x0) @ (x - x0))
    return (y0 - slope * x0).item(), 1 / slope.item()

# %% wrong: the latency is the quickest copy
# says: The latency is the time of a copy of 0 bytes
def copy_cost(sizes, seconds):
    import numpy as np

    slope, _ = np.polyfit(sizes, seconds, 1)
    return min(seconds), 1 / slope

# %% wrong: no latency is negative
# says: its intercept may be negative
def copy_cost(sizes, seconds):
    import statistics

    line = statistics.linear_regression(sizes, seconds)
    return max(line.intercept, 0.0), 1 / line.slope

# %% wrong: the first three points
# says: The best line looks at every point
def copy_cost(sizes, seconds):
    import statistics

    line = statistics.linear_regression(sizes[:3], seconds[:3])
    return line.intercept, 1 / line.slope

# %% wrong: sorts sizes and seconds apart from each other
# says: in the order given
def copy_cost(sizes, seconds):
    import statistics

    line = statistics.linear_regression(sorted(sizes), sorted(seconds))
    return line.intercept, 1 / line.slope

# %% wrong: keeps the order of sizes by sorting in place
# says: expected
def copy_cost(sizes, seconds):
    import statistics

    sizes.sort()
    seconds.sort()
    line = statistics.linear_regression(sizes, seconds)
    return line.intercept, 1 / line.slope

# %% right: numpy
def copy_cost(sizes, seconds):
    import numpy as np

    slope, latency = np.polyfit(np.array(sizes) - np.mean(sizes), seconds, 1)
    return latency - slope * np.mean(sizes), 1 / slope

# %% right: plain Python
def copy_cost(sizes, seconds):
    n = len(sizes)
    mx, my = sum(sizes) / n, sum(seconds) / n
    slope = sum((x - mx) * (y - my) for x, y in zip(sizes, seconds)) / sum((x - mx) ** 2 for x in sizes)
    return [my - slope * mx, 1 / slope]

# %% right: the statistics module
def copy_cost(sizes, seconds):
    import statistics

    line = statistics.linear_regression(sizes, seconds)
    return line.intercept, 1 / line.slope

# %% equivalent: y - y.mean() → y + y.mean()
# why: a constant added to y drops out of Σ dx · dy, because the dx add up to 0
# %% equivalent: y - y.mean() → y
# why: as above
# %% equivalent: y.mean → y.sum
# why: as above
