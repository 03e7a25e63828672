# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `allium sys NAME` share: a tool at work in the background, a program that makes known numbers of
kernel events, a load beside it, and the proof that a test fails when a record is missing.
"""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys

import json_schemas
import tap
from tap import Failed, Skipped, built, check, equal, private_dir, wait_until  # noqa: F401, for the tests

TRACEFS = "/sys/kernel/tracing"
IN_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")  # a PID namespace of its own


def with_tracefs(command):
    """Methods that ask for fields by name take tracefs: mounted where only this command sees it, if nobody has mounted
    it.
    """
    if os.path.exists(TRACEFS + "/events"):
        return command
    return ["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs %s && exec "$@"' % TRACEFS, "sh", *command]


ATTEMPTS = 5
excuses = 0  # events that were missed, as the tools of this attempt said, and programs that were killed
records = 1  # that the last tool showed


def main(tests):
    """tap.main(); a test that failed is done again when a tool said that it missed events: the kernel does not run a
    program within itself, and what an interrupt frees just then, perhaps in the name of the program under test, is not
    seen. So it is when the kernel killed the program: in a cgroup there is lack of memory, too, when the disk is slow
    to take what was written.
    """
    def attempts(test):
        global excuses
        for left in reversed(range(ATTEMPTS)):
            excuses = 0
            try:
                return test()
            except Failed as why:
                if not left or not excuses:
                    raise
                tap.retry("%d events were missed, or programs killed: %s" % (excuses, tap.shorten(str(why), 300)))
    tap.main([(name, lambda test=test: attempts(test)) for name, test in tests])


def excuse(number):
    """So much went otherwise in this attempt, and not by our doing."""
    global excuses
    excuses += number


def note(lost):
    """What a tool of this attempt says of its losses."""
    excuse(lost["missed_events"])


def stream(out, name=None):
    """The objects of --json behind the first one, which gives the schema: rows, and last the losses."""
    head, *lines = [json.loads(line) for line in out.splitlines()]
    check(head["schema"] == "allium-sys-" + name if name else head["schema"].startswith("allium-sys-"), "schema", head)
    equal((list(head), head["version"]), (["schema", "version"], 1), "the first line")
    for line in [*lines[:50], *lines[-1:]]:
        json_schemas.check(line, head["schema"])
    return lines


class Tool:
    """`allium sys NAME --json`, ready. After stop(): rows, lost (its counts), code, errors. `shows`: the name of what its
    options make it show, if that is another.
    """

    def __init__(self, name, *options, env=None, before=(), shows=None):
        command = [*before, *with_tracefs([built("ALLIUM"), "sys", name, "--json", *map(str, options)])]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.shows, self.errors = shows or name, b""
        for line in self.process.stderr:
            self.errors += line
            if b": ready:" in line:
                self.method = line.split(b" using ")[1].split()[0].decode().rstrip(",")
                break
        else:
            self.process.wait()
            raise Failed("%s did not get ready: %s" % (command, self.errors.decode()))

    @property
    def pid(self):
        """Of allium itself: unshare has it as a child."""
        with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2)) as file:
            return int((file.read().split() or [self.process.pid])[0])

    def stop(self):
        os.kill(self.pid, signal.SIGINT)
        try:
            out, errors = self.process.communicate(timeout=tap.TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.errors += errors
        self.code = self.process.returncode
        equal(self.code, 0, "exit code (%s)" % self.errors.decode())
        lines = stream(out, self.shows)
        self.lost = lines.pop()["lost"]
        self.rows = lines
        global records
        note(self.lost)
        records = max(len(lines), 1)
        return self

    def abandon(self):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.communicate()


@contextlib.contextmanager
def tool(name, *options, **how):
    """A Tool that is gone afterwards, whatever happens."""
    it = Tool(name, *options, **how)
    try:
        yield it
    finally:
        it.abandon()


class Maker:
    """tests/sys/maker.c: does what it is told, and is through when do() returns."""

    def __init__(self, program=None):
        self.process = subprocess.Popen([program or built("TEST_MAKER")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.do("close")  # of nothing: what it does to begin, and to answer, has been done then

    def begin(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, *commands):
        for words in commands:
            self.begin(words)
            equal(self.process.stdout.readline(), b"done\n", words)
        wait_until(self.sleeps, tap.TIMEOUT, "the maker sleeps")

    def sleeps(self):
        """Until then an interrupt in it may free what others have left, in its name."""
        with open("/proc/%d/stat" % self.pid) as file:
            return file.read().rpartition(")")[2].split()[0] == "S"

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(tap.TIMEOUT)


@contextlib.contextmanager
def maker(program=None):
    it = Maker(program)
    try:
        yield it
    finally:
        it.end()


class Toucher:
    """tests/sys/toucher.c: touches what it is told to."""

    def __init__(self):
        self.process = subprocess.Popen([built("TEST_TOUCHER")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        for _ in range(3):  # whatever it touches to answer has been touched then
            self.do("nothing")

    def begin(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, words):
        """(minor, major) faults of it so far."""
        self.begin(words)
        answer = self.process.stdout.readline().split()
        equal(len(answer), 2, "numbers after " + words)
        return int(answer[0]), int(answer[1])

    def resident(self):
        with open("/proc/%d/status" % self.pid) as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS:"))


@contextlib.contextmanager
def toucher():
    it = Toucher()
    try:
        yield it
    finally:
        it.process.kill()
        it.process.communicate()


@contextlib.contextmanager
def load():
    """Another program that makes the same kinds of events all the time."""
    with maker() as other:
        other.begin("churn")
        yield


def loses(test, most=50, attempts=300):
    """`test(env)` must pass, but fail when the right one of the records, of the first `most`, is dropped on purpose.
    Which number that one has is another one each time: tables of the kernel have no order.
    """
    test({})
    for _ in range(attempts):
        try:
            test({"ALLIUM_SYS_LOSE": str(random.randint(1, min(records, most)))})
        except Failed:
            return
    raise Failed("whichever of %d records is dropped, the test does not notice" % records)


def alike(one, two, part, others=()):
    """Two tools that ran at once have the same rows, by the columns `part`. Their allocations and frees differ by no
    more than the events that either missed: one that an interrupt makes in the name of the process, while a tool's
    program is at work on that CPU, is known to the other tool alone. Rows of equal counts have equal `others`.
    """
    def summed(it):
        sums = {}
        for row in it.rows:
            key = tuple(row[name] for name in part)
            have = sums.get(key, (0,) * (2 + len(others)))
            sums[key] = tuple(a + (row.get(name) or 0) for a, name in zip(have, ("allocations", "frees", *others)))
        return sums

    first, second, none, differ = summed(one), summed(two), (0,) * (2 + len(others)), 0
    missed = one.lost["missed_events"] + two.lost["missed_events"]
    for key in {*first, *second}:
        a, b = first.get(key, none), second.get(key, none)
        differ += abs(a[0] - b[0]) + abs(a[1] - b[1])
        check(a[:2] != b[:2] or a == b, key, "allocations, frees,", others, ": have", a, "want", b)
    check(differ <= missed, differ, "events differ,", missed, "were missed:",
          [(key, first.get(key), second.get(key)) for key in {*first, *second} if first.get(key) != second.get(key)])


def only(rows, **want):
    """The row that has these values."""
    found = [row for row in rows if all(row.get(key) == value for key, value in want.items())]
    equal(len(found), 1, "rows with %s in %s" % (want, rows))
    return found[0]


def one_row_by_comm(name, command, key):
    """Two processes of one name, which do the same, are two rows by process and one row by comm, with their sum."""
    with tap.private_dir() as folder:
        comm = "one%d" % os.getpid()  # other tests run makers at the same time
        program = shutil.copy(built("TEST_MAKER"), folder + "/" + comm)
        with maker(program) as one, maker(program) as other, tool(name, "--comm", comm, "--by", "comm") as it, \
                tool(name, "--comm", comm, "--by", "process") as beside:
            one.do(command)
            other.do(command)
            it.stop()
            beside.stop()
    by_process = [row for row in beside.rows if row["pid"]]  # not those of the machine
    equal({row["pid"] for row in by_process}, {one.pid, other.pid}, "processes")
    check("pid" not in it.rows[0], "a pid of two processes", it.rows[0])
    equal(only(it.rows, comm=comm)[key], sum(row[key] for row in by_process), key)


def vmstat():
    """/proc/vmstat, exact: the kernel adds up all CPUs when it is read."""
    with open("/proc/vmstat") as file:
        return {name: int(value) for name, value in (line.split() for line in file)}
