# SPDX-License-Identifier: BSD-2-Clause
"""What tests of reclaim share: memory cgroups with a limit, swap on a file, and programs that make the kernel reclaim
pages of a known kind. Everything is undone, also after a failure.
"""
import contextlib
import os
import signal
import subprocess

import lib
from lib import Failed, check, tap, wait_until

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
V1 = "/sys/fs/cgroup/memory"
DISK = "/var/tmp"  # of a disk: what lies on a tmpfs is anonymous to reclaim


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


class Group:
    """A memory cgroup of either version."""

    def __init__(self, name, limit_mib=None, parent=None):
        self.v1 = os.path.exists(V1 + "/cgroup.procs")
        root = V1 if self.v1 else "/sys/fs/cgroup"
        self.folder = os.path.join(parent.folder if parent else root, name)
        self.path = self.folder[len(root):]
        os.mkdir(self.folder)
        if limit_mib:
            write(self.folder + ("/memory.limit_in_bytes" if self.v1 else "/memory.max"), limit_mib * MIB)

    def command(self, command):
        """The command, run in the group: its shell goes in, and becomes it."""
        return ["sh", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' % self.folder, "sh", *command]

    def does_not_swap(self):
        swap = "/memory.swappiness" if self.v1 else "/memory.swap.max"
        if os.path.exists(self.folder + swap):
            write(self.folder + swap, 0)

    def remove(self):
        def gone():
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
            return not os.path.exists(self.folder)
        wait_until(gone, 20, "the cgroup can be removed")


@contextlib.contextmanager
def group(limit_mib=None, name="", parent=None):
    it = Group("allium-test-%d%s" % (os.getpid(), name), limit_mib, parent)
    try:
        yield it
    finally:
        it.remove()


@contextlib.contextmanager
def file_on_disk(mib):
    """A file, written and clean, and not in the page cache."""
    with tap.private_dir(DISK) as folder:
        path = folder + "/file"
        with open(path, "wb") as file:
            for _ in range(mib):
                file.write(os.urandom(4096) * (MIB // 4096))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield path


@contextlib.contextmanager
def swap(mib=128):
    """Swap on a file."""
    with tap.private_dir(DISK) as folder:
        path = folder + "/swap"
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, mib * MIB)
        os.chmod(path, 0o600)
        tap.succeed(["/usr/sbin/mkswap", path])
        tap.succeed(["/usr/sbin/swapon", path])
        try:
            yield
        finally:
            tap.succeed(["/usr/sbin/swapoff", path])


def reads(path):
    """Clean pages of a file."""
    return ["cat", path]


def writes(path, mib):
    """Dirty pages of a file."""
    return ["dd", "if=/dev/zero", "of=" + path, "bs=1M", "count=%d" % mib, "conv=notrunc", "status=none"]


def touches(mib):
    """Anonymous pages."""
    return ["/usr/bin/python3", "-c", "b = bytearray(%d << 20)\nfor i in range(0, len(b), 4096): b[i] = 1" % mib]


def run_in(where, command):
    """Runs it in the group; -> its pid, when it has ended."""
    process = subprocess.Popen(where.command(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if process.wait(tap.TIMEOUT):
        lib.excuse(process.returncode == -signal.SIGKILL)
        raise Failed("%s ended with %d" % (command, process.returncode))
    return process.pid


def counters():
    """/proc/vmstat, of which those that begin with nr_ are exact only when each CPU has added what it keeps for itself.
    """
    write("/proc/sys/vm/stat_refresh", 1)
    return lib.vmstat()


class Counted:
    """How far counters of /proc/vmstat go while a tool is at work: `least` since it was ready and before it was
    stopped, `most` from before it was started until after it has ended. With nothing else going on both are the same.
    """

    def __init__(self):
        self.before = counters()

    def ready(self):
        self.begin = counters()

    def through(self):
        self.end = counters()

    def holds(self, what, value, *names):
        after = counters()
        least = sum(self.end[name] - self.begin[name] for name in names)
        most = sum(after[name] - self.before[name] for name in names)
        check(least <= value <= most, "%s is %d, but %s of /proc/vmstat went %d to %d" % (
            what, value, "+".join(names), least, most))
        return least


def total(rows, key):
    return sum(row[key] or 0 for row in rows)
