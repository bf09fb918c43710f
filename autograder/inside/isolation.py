"""Isolate a submission's process: namespaces, a system call filter, and the kernel's limits. Linux only.

The outer layer is the sandbox (bubblewrap), which hides the file system and the network. This is the inner layer: it
separates a submission from the next one and from the fork server, which all run in the same sandbox.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
from collections.abc import Callable
from pathlib import Path

from .limits import Limits

NOBODY = 65534
_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000  # user mnt pid net ipc uts
_MOUNT_PRIVATE, _MOUNT_READ_ONLY = 0x4000 | 0x40000, 0x20 | 0x1000 | 0x1  # MS_REC | …; MS_REMOUNT | MS_BIND | …
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 0x2, 0x4, 0x8  # MS_NOSUID and so on, which statvfs calls ST_NOSUID
# Without /dev/zero: a shared mapping of it is memory that no process accounts for once all but a page is unmapped.
_DEVICES = (b"/dev/null", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty")
# From <linux/prctl.h>
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_SECCOMP, _CAPBSET_DROP, _SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_AF_UNIX = 1


def become_nobody() -> None:
    """Give up root for good, because the kernel's limit on processes doesn't apply to root."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # After a change of user, a process's files in /proc belong to root until it is made dumpable again. Until then, it
    # could not write its own uid_map.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1, 0, 0, 0)


def isolate(limits: Limits, join: int | None = None) -> None:
    """Move into new namespaces for good, with only a small /tmp, /dev/shm and /dev/pts to write to.

    Returns in a new process, the first of the new PID namespace. If ``join`` is given (a descriptor of a control
    group's process list), that process joins the group. The calling process stays outside: it waits for the new one,
    ends it on SIGTERM, and never returns. SIGTERM and SIGCHLD must be blocked beforehand. Raises OSError if the kernel
    refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    user, group = os.getuid(), os.getgid()
    # All in one call: the kernel makes the user namespace first, which allows us to make the others without being root.
    check(libc.unshare(_NAMESPACES), "unshare")
    # The kernel requires this order: without "deny", an ordinary user may not write a gid_map at all.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {user} 1"), ("gid_map", f"{NOBODY} {group} 1")):
        with open(f"/proc/self/{name}", "w") as mapping:
            mapping.write(text)
    # unshare moves only our children into the new PID namespace, so the submission has to be a child. As the
    # namespace's first process, it takes all others in it along when it ends, daemons included.
    if (child := os.fork()) != 0:
        _wait_outside(child, limits)
    if join is not None:
        os.write(join, b"0")  # this process; the waiting one stays out, or the kernel might kill it instead
    os.setsid()  # a process can signal its whole process group, even members that its namespace hides
    libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)  # if the fork server is killed, so is this process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
    # Otherwise our mounts would propagate to the namespace that we came from.
    check(libc.mount(b"none", b"/", None, _MOUNT_PRIVATE, None), "mount --make-private /")
    check(libc.setdomainname(b"(none)", 6), "setdomainname")  # the new namespace begins with the machine's
    processor = Path("/proc/cpuinfo").read_bytes()  # torch reads it at its first operation

    # Existing mounts outlive this submission, and some are shared with the whole machine: even a changed timestamp of
    # /dev/null would leak information. (A device on a read-only mount can still be written to.)
    def remount() -> None:
        for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
            place, options = line.split()[4:6]
            if not options.startswith(b"ro"):
                # In a user namespace, a remount must keep the restrictions that the mount already has.
                kept = os.statvfs(place).f_flag & (_NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
                kept |= 0 if place in _DEVICES else _NO_DEVICES
                check(libc.mount(None, place, None, _MOUNT_READ_ONLY | kept, None), f"remount {place.decode()}")

    _apart(remount)
    # The kernel refuses to mount a new proc here, because the sandbox hides parts of the outer one; an empty /proc will
    # do.
    for place, size in ((b"/tmp", limits.scratch), (b"/dev/shm", limits.scratch), (b"/proc", 2**20)):
        options = f"size={size},nr_inodes=10000,mode=1777".encode()
        check(libc.mount(b"tmpfs", place, b"tmpfs", _NO_SUID | _NO_DEVICES, options), f"mount {place.decode()}")
    # IPython runs a `!command` in a pseudoterminal. The kernel has 4096 of them for the whole machine.
    options = b"newinstance,ptmxmode=0666,mode=0620,max=16"
    check(libc.mount(b"devpts", b"/dev/pts", b"devpts", _NO_SUID | _NO_PROGRAMS, options), "mount /dev/pts")
    Path("/proc/cpuinfo").write_bytes(processor)
    kept = _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    check(libc.mount(None, b"/proc", None, _MOUNT_READ_ONLY | kept, None), "remount /proc")
    # From here on, no privilege can be regained. The creator of a user namespace has every capability in it, enough to
    # unmount what now covers /proc. So we drop them all, starting with the bounding set while we are still allowed to.
    check(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    for number in range(64):
        libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)  # refused beyond the last capability
    check(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()), "capset")
    # Dumpable again, so that the fork server can read this process's memory use in /proc. The submission itself sees
    # nothing of /proc.
    libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)
    set_limits(limits)
    # The filter comes last: it refuses several of the calls above.
    steps = system_call_filter(platform.machine())
    program = (ctypes.c_uint64 * len(steps))(*steps)
    about = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    check(libc.prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, about, 0, 0), "seccomp")


def _apart(work: Callable[[], None]) -> None:
    """Run ``work`` in a separate process. Otherwise what it reads (the mounts, with the machine's paths) would remain
    in this process's freed memory, where a submission could search for it. Raises OSError if ``work`` does.
    """
    if (child := os.fork()) == 0:
        number = -1
        try:
            work()
            number = 0
        except OSError as error:
            number = error.errno or -1
        finally:
            os._exit(number & 0xFF)
    _, status = os.waitpid(child, 0)
    if number := os.waitstatus_to_exitcode(status):
        raise OSError(number, f"remount: {os.strerror(number)}")


def _wait_outside(child: int, limits: Limits) -> None:
    """Wait until the submission's first process ends, or end it when told to. Never returns."""
    # Both signals have been blocked since before the fork, so none is missed. A parent-death signal alone would not be
    # enough, because a process can turn off its own.
    told = signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM
    if told:
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    # Who sent SIGKILL? Nobody in its namespace: there, the kernel drops signals to the first process. The kernel itself
    # does when the processor time is used up. Any other SIGKILL came from outside, such as the OOM killer's, and this
    # process ends the same way to tell the fork server. The student is then not to blame, unless the control group ran
    # out of memory.
    own_fault = used.ru_utime + used.ru_stime > limits.cpu_seconds - 1
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not told and not own_fault:
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def set_limits(limits: Limits) -> None:
    """Set the kernel's limits for this process and its descendants."""
    for kind, value in (
        (resource.RLIMIT_AS, limits.address_space),
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_FSIZE, limits.scratch),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_SIGPENDING, 1024),  # timers count, too
        (resource.RLIMIT_RTPRIO, 0),  # the grading account may have a higher limit than submissions should inherit
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_CORE, 1),  # 0 would not stop a machine from piping core dumps to a program: core(5)
    ):
        resource.setrlimit(kind, (value, value))


# System calls that no lecture needs:
# - new namespaces and mounts (with a tmpfs as large as memory), tracing, keys that outlive a process;
# - memory that belongs to no process, and memory held by pipes or by a file's extended attributes;
# - information about mounts, the kernel's log, and handles of files;
# - reading or changing which pages of a file are cached: the next process could find them;
# - signals with a forged sender (one from "the kernel" kills even a namespace's first process, as if the machine had);
# - whatever the kernel limits per user, across other submissions and perhaps the judge, such as descriptors that were
#   sent and not yet received;
# - writing everybody's files to the disk (a submission's own files are in memory);
# - further filters and rules for a process, and the newest parts of the kernel.
# Numbers for x86_64 and aarch64; None: it doesn't exist there.
_REFUSED: dict[str, tuple[int, int | None]] = {
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "open_tree": (428, 428), "move_mount": (429, 429), "mount_setattr": (442, 442), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "open_by_handle_at": (304, 265),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "setrlimit": (160, 164), "statmount": (457, 457),
    "fadvise64": (221, 223), "readahead": (187, 213), "cachestat": (451, 451), "mincore": (27, 232),
    "preadv2": (327, 286), "listmount": (458, 458), "open_tree_attr": (467, 467), "listns": (470, 470),
    "syslog": (103, 116), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "epoll_create": (213, None), "epoll_create1": (291, 20), "io_setup": (206, 0),
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "vmsplice": (278, 75),
    "seccomp": (317, 277), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "sync": (162, 81), "syncfs": (306, 267), "sync_file_range": (277, 84),
    "name_to_handle_at": (303, 264),
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, 56), "aarch64": (0xC00000B7, 220)}  # audit's name, the number of clone
_CLONE3 = 435  # on both
_LATER = 472  # newer calls, which this list doesn't cover, start here; on both
# These are allowed in part: sockets between processes of one machine (an event loop has a pair of them), reading a
# limit but not setting one, and everything that a process may do to itself (prctl) except adding a filter.
_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}
_PRLIMIT = (302, 261)
_SETSOCKOPT = (54, 208)
_SO_SNDBUF = 7  # from <asm/socket.h>, the same on both
# SO_ATTACH_FILTER and so on: the kernel compiles these filters, as it does ours, into limited memory of the machine's.
_SO_FILTERS = (26, 50, 51, 52)
_PRCTL = (157, 167)
# Of Linux's own fcntl commands (leases, directory notifications, larger pipes, seals), only these are allowed:
# F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_GET_SEALS.
_FCNTL = (72, 25)
_FCNTL_LINUX, _FCNTL_ALLOWED = 1024, (1030, 1032, 1034)
# Of the requests to devices and files, only those of terminals and pipes are allowed ('T'): a file system reports its
# label and UUID, which identify the machine.
_IOCTL = (16, 29)
_IOCTL_KIND, _IOCTL_OURS = 0xFF00, 0x5400
# Shared memory has to be in a file, where it is counted: anonymous shared memory is accounted for nowhere once all but
# a page of it is unmapped. Huge pages belong to the whole machine.
_MMAP = (9, 222)
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_HUGETLB = 0x1, 0x20, 0x40000


def system_call_filter(machine: str) -> list[int]:
    """A seccomp program, in classic BPF, that refuses these calls; each instruction is a 64-bit number.

    A program reads one word of ``struct seccomp_data`` at a time: offset 0 is the call's number, 4 the architecture, 16
    and 20 the low and high halves of its first argument, 24 and 28 those of its second, and so on. A jump is given as
    the number of instructions to skip. Raises OSError for an unknown architecture.
    """
    if machine not in _MACHINES:
        raise OSError(f"no list of system calls for {machine}: grade on x86_64 or aarch64")
    audit, clone = _MACHINES[machine]
    column = list(_MACHINES).index(machine)
    load, equal, at_least, any_bit, give, mask = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
    allow, no_permission, not_there = 0x7FFF0000, 0x00050001, 0x00050026  # SECCOMP_RET_ALLOW, _ERRNO
    no_family = 0x00050061  # EAFNOSUPPORT
    not_of_this = 0x00050019  # ENOTTY
    nothing_done = 0x00050000  # report success without making the call

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> int:
        return code | then << 16 | otherwise << 24 | value << 32

    # A 32-bit call on a 64-bit kernel has other numbers, which aren't in this list: refuse that architecture.
    steps = [step(load, 4), step(equal, audit, 1), step(give, no_permission), step(load, 0)]
    steps += [step(at_least, 0x40000000, 0, 1), step(give, no_permission)]  # x86_64's second set of numbers
    for numbers in _REFUSED.values():
        if (number := numbers[column]) is not None:
            steps += [step(equal, number, 0, 1), step(give, no_permission)]
    # clone makes threads, but also namespaces if its flags say so. A filter cannot follow the pointer to clone3's
    # flags; told that clone3 doesn't exist, the C library uses clone, whose flags are its first argument.
    steps += [step(equal, _CLONE3, 0, 1), step(give, not_there)]
    steps += [step(at_least, _LATER, 0, 1), step(give, not_there)]
    steps += [step(equal, clone, 0, 4), step(load, 16), step(any_bit, 0x7E020000, 0, 1), step(give, no_permission)]
    steps += [step(give, allow)]
    for numbers in _SOCKETS.values():
        steps += [step(equal, numbers[column], 0, 4), step(load, 16), step(equal, _AF_UNIX, 0, 1)]
        steps += [step(give, allow), step(give, no_family)]
    # The fork server counts each socket's buffer at its default size, so SO_SNDBUF is ignored. It reports success,
    # because the kernel, too, treats the size only as a hint.
    steps += [step(equal, _SETSOCKOPT[column], 0, 5 + len(_SO_FILTERS)), step(load, 32), step(equal, _SO_SNDBUF, 0, 1)]
    steps += [step(give, nothing_done)]
    steps += [step(equal, option, len(_SO_FILTERS) - place) for place, option in enumerate(_SO_FILTERS)]
    steps += [step(give, allow), step(give, no_permission)]
    steps += [step(equal, _PRCTL[column], 0, 4), step(load, 16), step(equal, _SET_SECCOMP, 0, 1)]
    steps += [step(give, no_permission), step(give, allow)]
    steps += [step(equal, _FCNTL[column], 0, 4 + len(_FCNTL_ALLOWED)), step(load, 24)]
    steps += [step(at_least, _FCNTL_LINUX, 0, 1 + len(_FCNTL_ALLOWED))]
    steps += [step(equal, command, len(_FCNTL_ALLOWED) - place) for place, command in enumerate(_FCNTL_ALLOWED)]
    steps += [step(give, no_permission), step(give, allow)]
    steps += [step(equal, _IOCTL[column], 0, 5), step(load, 24), step(mask, _IOCTL_KIND), step(equal, _IOCTL_OURS, 1)]
    steps += [step(give, not_of_this), step(give, allow)]
    steps += [step(equal, _MMAP[column], 0, 6), step(load, 40), step(any_bit, _MAP_HUGETLB, 2)]
    steps += [step(any_bit, _MAP_ANONYMOUS, 0, 2), step(any_bit, _MAP_SHARED, 0, 1)]
    steps += [step(give, no_permission), step(give, allow)]
    # prlimit's third argument points to the new limit: both halves of it are 0 if the call only reads the limit.
    steps += [step(equal, _PRLIMIT[column], 0, 5), step(load, 32), step(equal, 0, 0, 2), step(load, 36)]
    steps += [step(equal, 0, 1), step(give, no_permission)]
    return [*steps, step(give, allow)]
