"""Run one function on several ranks: in real processes with `launch`, in threads of this process with `simulate`.

    def mean(group, numbers):
        return group.all_reduce(numbers[group.rank]) / group.size

    launch(mean, 2, torch.tensor([1.0, 3.0]))     # [tensor(2.), tensor(2.)], from two processes
    simulate(mean, 2, torch.tensor([1.0, 3.0]))   # the same numbers, without processes or a network

The lecture measures `launch`. Tests use `simulate`: it starts at once, needs no network (a sandbox has none), and
detects a deadlock between ranks immediately.
"""

from course_utils.ranks.group import Group, RanksError
from course_utils.ranks.launching import launch
from course_utils.ranks.rank import wire_bytes
from course_utils.ranks.simulation import simulate

__all__ = ["Group", "RanksError", "launch", "simulate", "wire_bytes"]
