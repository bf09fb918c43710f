"""Talks to a student's process: requests through a pipe, tensors in shared memory, with a time limit."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import tempfile
import time
from pathlib import Path

import psutil

from autograder.inside import messages
from autograder.inside.limits import Limits
from autograder.inside.messages import READY
from course_utils.testing import wire

IN_ALL = "the submission exceeded its total time limit"
_TO_BEGIN = 10.0  # seconds for a fork and its namespaces, which usually take milliseconds
_STRETCH = 6  # on a busy machine, a request gets at most this many times its seconds
# Prefixes of the kernel functions in which a process waits for a disk or a file server. Other waits also count as "disk
# sleep", and a submission can cause those: waiting for a child made by vfork, or for a lock.
_DISK = (
    "folio_wait", "__folio_lock", "wait_on_page", "__lock_page", "filemap_", "do_swap_page", "swap_", "balance_dirty",
    "__wait_on_buffer", "__lock_buffer", "__sync_dirty_buffer", "io_schedule", "bit_wait_io", "submit_bio", "bio_",
    "blk_", "blkdev_", "rq_qos_", "wbt_", "get_request", "dm_", "md_", "ext4_", "jbd2_", "do_get_write_access",
    "wait_transaction_locked", "xfs_", "xlog_", "btrfs_", "f2fs_", "erofs_", "squashfs_", "ovl_", "zio_",
    "cv_wait_common", "nfs", "rpc_", "fuse_", "request_wait_answer", "p9_", "ceph_", "cifs_", "smb2_",
)  # fmt: skip
_STARVED = 0.7  # processors: a runnable process that gets less is being kept waiting by others


class Gone(BaseException):
    """The student's process ended, ran out of time, or sent something that isn't a message.

    ``why`` says which, in our own words, because the student's page shows it. ``detail`` is for the instructor, and may
    quote what was sent, which the process controls.

    Not an Exception, so that a test cell can't mistake it for a student's error.
    """

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail


class _Deadline:
    """The time limit of one request, on a machine that may be busy with other things.

    The limit is wall time, because sleeping counts. But on a busy machine, other processes may keep a runnable process
    waiting, which isn't its fault. So a request's time is divided into intervals. In an interval in which the
    submission's processes were *starved* (some were runnable, but together they got less than `_STARVED` of a
    processor), only the processor time that they got counts; in any other interval, all of the wall time does.

    Measuring takes milliseconds, so the first measurement comes after a tenth of the limit, which most requests don't
    reach. How much of that tenth counts depends on the interval after it.
    """

    def __init__(self, seconds: float, end: float, sandbox: int) -> None:
        """``end``: when the submission's total time is up (monotonic). ``sandbox``: the id of its sandbox's process."""
        self._seconds, self._end, self._sandbox = seconds, end, sandbox
        self._spent = 0.0  # seconds of the limit used up to `_counted`
        self._counted = now = time.monotonic()
        self._last = now + _STRETCH * seconds  # the limit, however busy the machine
        self._next = now + seconds / 10
        self._before: tuple[float, float] | None = None  # the last measurement: its time, and processor time so far

    def left(self) -> float:
        """Seconds until the next measurement."""
        return max(0.0, min(self._next, self._end) - time.monotonic())

    def check(self) -> None:
        """Raise Gone if the time is up."""
        now = time.monotonic()
        if now >= self._end:
            raise Gone(IN_ALL)
        if now < self._next:
            return
        used, waiting = self._load()
        if self._before is not None:
            since, before = self._before
            # Negative if a process has ended, since its processor time is no longer known: then all time counts.
            share = (used - before) / (now - since)
            starved = waiting and 0 <= share < _STARVED
            self._spent += (share if starved else 1.0) * (now - self._counted)
            if self._spent >= self._seconds or now >= self._last:
                raise Gone(f"it took longer than {self._seconds:g} seconds")
            self._counted = now
        self._before = now, used
        left = self._seconds - self._spent
        # When the limit may be reached, but not so soon that measuring takes most of the time, nor so late that a short
        # burst of other work is averaged away.
        self._next = min(now + min(max(left, self._seconds / 10), self._seconds / 2), self._last)

    def _load(self) -> tuple[float, bool]:
        """Processor seconds that the sandbox's processes got, and whether one is runnable or waiting for a disk."""
        used, waiting = 0.0, False
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._sandbox).children(recursive=True):
                with contextlib.suppress(psutil.Error), process.oneshot():
                    used += sum(process.cpu_times()[:4])  # its own, and its reaped children's
                    status = process.status()
                    waiting |= status == psutil.STATUS_RUNNING
                    waiting |= status == psutil.STATUS_DISK_SLEEP and _for_a_disk(process.pid)
        return used, waiting


def _for_a_disk(process: int) -> bool:
    """Whether a process in "disk sleep" is waiting for a disk, as far as the kernel tells."""
    with contextlib.suppress(OSError):  # the process has ended, or this isn't Linux
        for _ in range(10):  # the kernel reports 0 while the process isn't asleep
            if (where := Path(f"/proc/{process}/wchan").read_text()) not in ("", "0"):
                return where.startswith(_DISK)
    return False


class Shared:
    """Memory shared with a student's process. It holds the tensors in a call's arguments, so we can inspect them."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self.descriptor, wire.LIMIT)  # only pages that are written take memory
            seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        else:  # not Linux, where there is no isolation either
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
            os.ftruncate(self.descriptor, wire.LIMIT)
        self._next = 0

    def begin(self) -> None:
        """Make room for a call's arguments. Reuses earlier calls' memory only if less than half is free."""
        if self._next > wire.LIMIT // 2:
            self._next = 0

    def place(self, content: bytes) -> int:
        """Copy the content into the memory and return its offset. Raises WireError if there's no room left."""
        start = self._next
        if start + len(content) > wire.LIMIT:
            raise wire.WireError(f"the arguments of a call take more than {wire.LIMIT // 2:,} bytes")
        for done in range(0, len(content), 2**20):
            os.pwrite(self.descriptor, content[done : done + 2**20], start + done)
        self._next = (start + len(content)) // 64 * 64 + 64  # so that no two offsets are equal, even of empty tensors
        return start

    def find(self, place: int, size: int) -> bytearray:
        """A copy of ``size`` bytes of the current content from this offset."""
        return bytearray(os.pread(self.descriptor, size, place))


class Conversation:
    """Requests to one student's process, and its answers. Methods raise :class:`Gone` if there is no answer.

    After the conversation, ``ended`` says why the sandbox ended the process, or is empty if it didn't. ``received`` is
    the memory, in bytes, that the answers take in this process. ``sandbox`` is the id of the sandbox's outermost
    process.
    """

    def __init__(self, requests: int, answers: int, shared: Shared, limits: Limits, end: float, sandbox: int) -> None:
        self._requests, self._answers, self._shared, self._limits, self._end = requests, answers, shared, limits, end
        self._sandbox, self._asked = sandbox, b""
        self.ended, self.received = "", 0
        os.set_blocking(requests, False)
        os.set_blocking(answers, False)

    def begun(self) -> bool:
        """Wait for the process to report that it's isolated; False if it doesn't, which isn't the student's fault.

        No student code has run by then, so nothing else can arrive.
        """
        with contextlib.suppress(Gone):
            return self._read(len(READY), _Deadline(_TO_BEGIN, math.inf, self._sandbox)) == READY
        return False

    def ask(self, request: messages.Request, seconds: float | None = None) -> messages.Answer:
        """The answer to one request, within ``seconds`` (default: the limit for one cell)."""
        if time.monotonic() >= self._end:  # the judge's work on earlier answers takes time, too
            raise Gone(IN_ALL)
        self._shared.begin()
        self._asked = message = wire.pack(messages.plain(request), self._shared.place)
        seconds = self._limits.seconds if seconds is None else seconds
        deadline = _Deadline(seconds, self._end, self._sandbox)
        self._write(wire.framed(message), deadline)
        (size,) = wire.FRAME.unpack(self._read(wire.FRAME.size, deadline))
        if size > wire.LIMIT:
            raise Gone("the answer is too large", f"it would take {size:,} bytes")
        message = self._read(size, deadline)
        try:
            return messages.answer(wire.unpack(message, spend=self._spend))
        except wire.WireError as error:
            raise Gone("the answer is damaged", f"{error}") from None

    def _spend(self, size: int) -> None:
        self.received += size

    def asked(self) -> messages.Request:
        """The last request, with its tensors' current content, which the process may have changed."""
        try:
            return messages.request(wire.unpack(self._asked, self._shared.find))
        except wire.WireError as error:
            raise Gone("it damaged its arguments", f"{error}") from None

    def _write(self, data: bytes, deadline: _Deadline) -> None:
        view = memoryview(data)
        while view:
            self._wait([], [self._requests], deadline)
            try:
                view = view[os.write(self._requests, view[:65536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise Gone("the process ended") from None

    def _read(self, size: int, deadline: _Deadline) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._wait([self._answers], [], deadline)
            try:
                part = os.read(self._answers, min(size - len(parts), 2**20))
            except BlockingIOError:
                continue
            if not part:
                raise Gone("the process ended")
            parts += part
        return bytes(parts)

    def _wait(self, reading: list[int], writing: list[int], deadline: _Deadline) -> None:
        while not any(select.select(reading, writing, [], deadline.left())):
            deadline.check()

    def close(self) -> None:
        """Close the pipes, which tells the process to end, and the shared memory."""
        os.close(self._requests)
        os.close(self._answers)
        os.close(self._shared.descriptor)
