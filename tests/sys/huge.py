# SPDX-License-Identifier: BSD-2-Clause
"""What tests of huge pages share: settings of the whole machine, which are put back, also after a failure, and a program
that touches a known number of huge pages. One test at a time changes such settings.
"""
import contextlib
import fcntl
import re
import subprocess

import lib
from lib import built, check, equal

POOL = "/proc/sys/vm/nr_hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/"
BYTES = 2 << 20


def read(path):
    with open(path) as file:
        return file.read().strip()


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def chosen(path):
    """"madvise" of "always [madvise] never"; the value of any other setting."""
    text = read(path)
    word = re.search(r"\[(.*)\]", text)
    return word.group(1) if word else text


@contextlib.contextmanager
def alone():
    with open(POOL) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def settings(values):
    """Of {path: value}, put back in the end. Within alone()."""
    with contextlib.ExitStack() as undo:
        for path, value in values.items():
            before = chosen(path)
            undo.callback(write, path, before)
            write(path, value)
        yield


def free_pages():
    """Of the pool of 2 MiB pages, as far as nobody else has them reserved."""
    folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
    return int(read(folder + "free_hugepages")) - int(read(folder + "resv_hugepages"))


@contextlib.contextmanager
def pool(count):
    """So many more pages in the pool; how many are free then."""
    with alone(), settings({POOL: int(read(POOL)) + count}):
        check(free_pages() >= count, "the machine has no room for", count, "huge pages")
        yield free_pages()


@contextlib.contextmanager
def transparent(**values):
    """Transparent huge pages for memory that is advised so; values: other settings, such as defrag."""
    paths = {"enabled": "madvise", **values}
    with alone(), settings({THP + name.replace("__", "/"): value for name, value in paths.items()}):
        yield


class Huge:
    """tests/sys/huge.c: do() returns the number of failures."""

    def __init__(self, before=()):
        self.process = subprocess.Popen([*before, built("TEST_HUGE")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.do("nothing")

    def begin(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, words):
        self.begin(words)
        return int(self.process.stdout.readline())

    def smaps(self, key):
        """Bytes."""
        return 1024 * sum(map(int, re.findall(r"^%s: +(\d+) kB" % key, read("/proc/%d/smaps" % self.pid), re.M)))

    @property
    def huge_pages(self):
        return self.smaps("AnonHugePages") // BYTES


@contextlib.contextmanager
def huge(before=()):
    it = Huge(before)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.communicate()


@contextlib.contextmanager
def load():
    """Two other programs, of which one gets huge pages all the time."""
    with lib.load(), huge() as other:
        other.begin("churn")
        yield


def is_quiet(lost):
    """Frees in an interrupt are missed now and then, where it came while the same program was running."""
    allowed = ("own_events", "outside_of_faults", "missed_events")
    equal({key: value for key, value in lost.items() if value and key not in allowed}, {}, "lost")
