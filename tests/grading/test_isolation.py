"""The filter for system calls, run on both kinds of machine by an interpreter of its few instructions."""

from __future__ import annotations

import errno

import pytest
from system_calls import syscalls

from autograder.inside import isolation

ALLOW = 0x7FFF0000
NAMES = {"x86_64": "x86_64", "aarch64": "arm64"}  # what the kernel calls a machine, and what the table does
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # <linux/audit.h>
# What a student's process needs, and must go on to have.
# fmt: off
NEEDED = {
    "read", "write", "openat", "close", "mmap", "munmap", "mprotect", "brk", "futex", "clock_gettime", "getrandom",
    "exit", "exit_group", "getpid", "gettid", "rt_sigaction", "rt_sigprocmask", "ppoll", "pselect6", "pipe2", "fcntl",
    "dup3", "execve", "wait4", "kill", "ioctl", "lseek", "fstat", "statx", "newfstatat", "getdents64", "getrlimit",
    "sched_getaffinity", "madvise", "mremap", "prctl", "set_robust_list", "rseq", "clone",
}
# fmt: on


def run(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says to a call: `ALLOW`, or an error's number."""
    words = [number, AUDIT[machine] if audit is None else audit, 0, 0]  # struct seccomp_data
    for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32]
    steps, place, accumulator = isolation.system_call_filter(machine), 0, 0
    for _ in steps:
        step = steps[place]
        code, then, otherwise, value = step & 0xFFFF, step >> 16 & 0xFF, step >> 24 & 0xFF, step >> 32
        place += 1
        match code:
            case 0x20:  # BPF_LD | BPF_W | BPF_ABS
                assert value % 4 == 0
                accumulator = words[value // 4]
            case 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
                place += then if accumulator == value else otherwise
            case 0x35:  # BPF_JGE
                place += then if accumulator >= value else otherwise
            case 0x45:  # BPF_JSET
                place += then if accumulator & value else otherwise
            case 0x54:  # BPF_ALU | BPF_AND | BPF_K
                accumulator &= value
            case 0x06:  # BPF_RET
                return ALLOW if value == ALLOW else value & 0xFFFF
            case _:
                raise AssertionError(f"no instruction {code:#x}")
    raise AssertionError("it does not end")


def number(name: str, machine: str) -> int:
    return int(syscalls().get(name, NAMES[machine]))


@pytest.mark.parametrize("machine", NAMES)
def test_each_refused_call_has_its_number_on_both_machines(machine: str) -> None:
    column = list(NAMES).index(machine)
    table = {**isolation._REFUSED, **isolation._SOCKETS, "prlimit64": isolation._PRLIMIT}
    table |= {"setsockopt": isolation._SETSOCKOPT, "prctl": isolation._PRCTL}
    table |= {"fcntl": isolation._FCNTL, "mmap": isolation._MMAP, "ioctl": isolation._IOCTL}
    table |= {"clone3": (isolation._CLONE3,) * 2, "clone": tuple(isolation._MACHINES[m][1] for m in NAMES)}
    listed = {name: numbers[column] for name, numbers in table.items()}
    known = syscalls().load_arch_table(NAMES[machine])
    assert listed == {name: number(name, machine) if name in known else None for name in table}
    gone = ["epoll_create", "inotify_init"] if machine == "aarch64" else []
    assert [name for name, value in listed.items() if value is None] == gone
    refused = [value for name in isolation._REFUSED if (value := listed[name]) is not None]
    assert {run(machine, value) for value in refused} == {errno.EPERM}


@pytest.mark.parametrize("machine", NAMES)
def test_every_other_call_is_allowed(machine: str) -> None:
    special = {*isolation._REFUSED, *isolation._SOCKETS, "clone3", "ioctl"}
    known = {name: int(value) for name, value in syscalls().load_arch_table(NAMES[machine]).items()}
    assert len(known) > 300 and known.keys() >= NEEDED
    refused = {name for name, value in known.items() if run(machine, value) != ALLOW}
    later = {name for name, value in known.items() if value >= isolation._LATER and value < 0x40000000}
    assert refused == (special | later) & known.keys()


@pytest.mark.parametrize("machine", NAMES)
def test_a_call_that_is_younger_than_the_list_is_not_there(machine: str) -> None:
    assert {run(machine, number) for number in (isolation._LATER, 500, 1000)} == {errno.ENOSYS}


@pytest.mark.parametrize("machine", NAMES)
def test_what_decides_is_in_the_arguments_of_some_calls(machine: str) -> None:
    def call(name: str, *arguments: int) -> int:
        return run(machine, number(name, machine), *arguments)

    for name in ("socket", "socketpair"):
        assert call(name, 1) == ALLOW  # AF_UNIX
        assert {call(name, family) for family in (0, *range(2, 60), 2**31)} == {errno.EAFNOSUPPORT}
    assert call("prlimit64", 0, 7, 0, 0x7FFF_1234_5678) == ALLOW  # asks
    assert {call("prlimit64", 0, 7, new, 0) for new in (1, 2**32, 2**40 + 4, 2**63)} == {errno.EPERM}  # sets
    assert call("setsockopt", 3, 1, 7) == 0  # done, it says
    filters = (26, 50, 51, 52)  # the machine has room for some
    assert {call("setsockopt", 3, 1, option) for option in filters} == {errno.EPERM}
    assert {call("setsockopt", 3, 1, option) for option in range(99) if option not in (7, *filters)} == {ALLOW}
    assert {call("prctl", what) for what in range(100) if what != 22} == {ALLOW}
    assert {call("prctl", what, 2) for what in (22, 22 | 2**32)} == {errno.EPERM}  # a filter of its own
    assert {call("fcntl", 3, what) for what in (*range(1024), 1030, 1032, 1034)} == {ALLOW}
    refused = [what for what in (*range(1024, 1100), 2**31) if what not in (1030, 1032, 1034)]  # leases, for one
    assert {call("fcntl", 3, what) for what in refused} == {errno.EPERM}
    terminals = (0x5401, 0x5413, 0x541B, 0x5421, 0x5451, 0x80045430, 0x40045431, 0x802C542A)
    assert {call("ioctl", 3, what) for what in terminals} == {ALLOW}
    labels = (0x81009431, 0x80111500, 0x80811501, 0x40049409, 0x80086601, 0xC020660B, 0, 0x54, 0x540000, 2**32)
    assert {call("ioctl", 3, what) for what in labels} == {errno.ENOTTY}
    private, shared, anonymous, huge = 2, 1, 0x20, 0x40000
    assert {call("mmap", 0, 1, 3, flags) for flags in (private | anonymous, private, shared, 3, 0x4022)} == {ALLOW}
    refused = [shared | anonymous, 3 | anonymous, shared | anonymous | 2**32, private | anonymous | huge, shared | huge]
    assert {call("mmap", 0, 1, 3, flags) for flags in refused} == {errno.EPERM}
    assert call("clone", 0x3D0F00) == ALLOW  # what makes a thread
    assert {call("clone", 1 << bit | 0x11) for bit in (17, 25, 26, 27, 28, 29, 30)} == {errno.EPERM}  # namespaces
    assert call("clone", 41) == call("clone", 198) == ALLOW  # flags are not taken for a call's number
    assert call("clone3") == errno.ENOSYS


@pytest.mark.parametrize("machine", NAMES)
def test_calls_by_another_door_are_refused(machine: str) -> None:
    """As a 32-bit process makes them, or those with x86_64's second set of numbers: their numbers mean other calls."""
    for audit in (0x40000003, 0x40000028, 0, AUDIT["x86_64" if machine == "aarch64" else "aarch64"]):
        assert run(machine, number("read", machine), audit=audit) == errno.EPERM
    assert run(machine, 0x40000000 | number("read", machine)) == errno.EPERM


def test_a_machine_without_a_list_is_refused() -> None:
    with pytest.raises(OSError, match="no list of system calls for riscv64"):
        isolation.system_call_filter("riscv64")
