#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is asked for is seen, no more and no less: filters of `allium sys NAME`, on files opened a known number of
times; and what finds no room is counted, to the unit: shown and lost together are what a run with room shows.
"""
import collections
import contextlib
import ctypes
import os
import re
import signal
import sys
import threading

sys.dont_write_bytecode = True
import anytool
import lib
import reclaim
from lib import built, check, equal, load, maker, private_dir, tap, tool

N = 300
OPENING = "alloc_empty_file"  # the call that makes a file: one for each open(2)
CLONE3, SIGCHLD = 435, 17
UNIFIED = next(
    (path for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(path + "/cgroup.controllers")),
    None)


class Opener:
    """A process that opens as many files as it is told, in its first thread or in a second one."""

    def __init__(self, setup=lambda: None, pid=0):
        self.orders, orders = os.pipe(), None
        self.answers = os.pipe()
        self.pid = fork_as(pid) if pid else os.fork()
        if not self.pid:
            try:
                setup()
                self.obey()
            finally:
                os._exit(1)
        os.close(self.orders[0])
        os.close(self.answers[1])
        self.second = int(os.read(self.answers[0], 32))

    def obey(self):
        """In the child."""
        os.close(self.orders[1])
        turn, through, count = threading.Semaphore(0), threading.Semaphore(0), [0]

        def second():
            while turn.acquire():
                open_files(count[0])
                through.release()
        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        os.write(self.answers[1], b"%d" % thread.native_id)
        while order := os.read(self.orders[0], 32).split():
            if order[0] == b"1":
                open_files(int(order[1]))
            else:
                count[0] = int(order[1])
                turn.release()
                through.acquire()
            os.write(self.answers[1], b".")
        os._exit(0)

    def do(self, n, thread=1):
        os.write(self.orders[1], b"%d %d" % (thread, n))
        equal(os.read(self.answers[0], 1), b".", "answer")

    def end(self):
        os.close(self.orders[1])
        os.close(self.answers[0])
        os.waitpid(self.pid, 0)


def open_files(n):
    for _ in range(n):
        os.close(os.open("/dev/null", os.O_RDONLY))


def fork_as(pid):
    """fork(), with this number for the child."""
    number = (ctypes.c_int32 * 1)(pid)
    args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1, 0)
    child = ctypes.CDLL(None, use_errno=True).syscall(CLONE3, args, ctypes.sizeof(args))
    check(child >= 0, "clone3 with a number:", os.strerror(ctypes.get_errno()))
    return child


@contextlib.contextmanager
def opener(setup=lambda: None, pid=0):
    it = Opener(setup, pid)
    try:
        yield it
    finally:
        it.end()


def opened(it):
    for loss in ("lost_rows", "lost_events"):
        equal(it.lost[loss], 0, loss)
    return sum(row["allocations"] for row in it.rows if row["call_site"].startswith(OPENING))


def sees(setup, options, want=N, thread=1):
    """Of two processes, one set up so and one not, kmem with these options sees what the first one does, with a load
    beside it.
    """
    with opener(setup) as asked, opener() as other, load():
        with tool("kmem", *options(asked)) as it:
            asked.do(N, thread)
            other.do(77)
            asked.do(11, 3 - thread)
            it.stop()
    equal(opened(it), want, "files opened")


def named():
    with open("/proc/self/comm", "w") as file:
        file.write("asked for, 15 c")


@contextlib.contextmanager
def nested(root):
    """A cgroup and one within it, in a hierarchy."""
    outer = "%s/allium-asked-%d" % (root, os.getpid())
    os.mkdir(outer)
    try:
        os.mkdir(outer + "/inner")
        yield outer
    finally:
        for path in (outer + "/inner", outer):
            lib.wait_until(lambda path=path: not os.path.exists(path) or not remove(path), 20, path + " is gone")


def remove(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return os.path.exists(path)


def enter(folder):
    with open(folder + "/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


def in_cgroup(root):
    with nested(root) as outer:
        inner = outer + "/inner"
        sees(lambda: enter(inner), lambda o: ["--cgroup", inner], N + 11)
        sees(lambda: enter(inner), lambda o: ["--cgroup", outer], N + 11)
        sees(lambda: enter(outer), lambda o: ["--cgroup", inner], 0)


def cgroups_refused():
    done = anytool.refused(2, "kmem", "--cgroup", "/sys/fs/cgroup/none-such")
    check("none-such" in done, done)
    check("--cgroup" in anytool.refused(2, "kmem", "--cgroup", "/etc"), "/etc")
    if os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs"):
        line = anytool.refused(2, "kmem", "--cgroup", "/sys/fs/cgroup/cpu")
        check("memory" in line, "another controller's path:", line)


def in_namespace():
    """-p takes the number that it has where allium runs, and so do the rows."""
    script = """
        "$0" sys kmem --json --by process -p $$ >$1/out 2>$1/err & tool=$!
        until grep -q ready: $1/err; do sleep 0.05; done
        "$0" sys kmem --json -p $$ >$1/sites 2>$1/err2 & second=$!
        until grep -q ready: $1/err2; do sleep 0.05; done
        i=0; while [ $i -lt %d ]; do : </dev/null; i=$((i + 1)); done
        kill -INT $tool $second; wait
    """ % N
    with private_dir() as folder:
        tap.succeed(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, built("ALLIUM"), folder])
        rows, _ = anytool.parse(open(folder + "/out").read())
        sites, _ = anytool.parse(open(folder + "/sites").read())
    equal([(row["pid"], row["comm"]) for row in rows], [(1, "sh")], "rows")
    equal(sum(row["allocations"] for row in sites if row["call_site"].startswith(OPENING)), N, "files opened")


def reused(option):
    """The next process with the same number is another one."""
    with opener() as first:
        with tool("kmem", option, first.pid) as it:
            first.do(N)
            first.end()
            with opener(pid=first.pid) as second:
                equal(second.pid, first.pid, "number")
                second.do(55)
            it.stop()
            first.end = lambda: None
    equal(opened(it), N, "files opened")


COUNTS = ("allocations", "frees", "failures", "faults")


def events(it):
    return sum(row[key] for row in it.rows for key in COUNTS if key in row)


def table_full(name, rows):
    with maker() as m:
        with tool(name, "-p", m.pid, "--rows", rows) as small, tool(name, "-p", m.pid) as large:
            m.do("touch 50", "files 500", "pipes 20", "timers 5", "drop", "close", "untimers", "forks 3")
            small.stop()
            large.stop()
    check(len(large.rows) > rows >= len(small.rows), len(large.rows), "rows, and", len(small.rows))
    check(small.lost["lost_rows"] > 0, "nothing was lost")
    equal(large.lost["lost_rows"], 0, "lost with room")
    equal(events(small) + small.lost["lost_rows"], events(large), "shown and lost")


def ring_full():
    """A reader that does not come in time: what the ring could not take is counted."""
    def renamed():
        enter(group.folder)
        with open("/proc/self/comm", "w") as file:
            file.write("storm")
    with reclaim.group(12) as group, reclaim.file_on_disk(96) as path:
        with tool("drsnoop", "--ring", 4096, "--comm", "storm") as small, tool(
            "drsnoop", "--ring", "16M", "--comm", "storm"
        ) as large:
            small.process.send_signal(signal.SIGSTOP)
            child = os.fork()
            if not child:
                try:
                    renamed()
                    with open(path, "rb") as file:
                        while file.read(1 << 20):
                            pass
                    os._exit(0)
                finally:
                    os._exit(1)
            equal(os.waitpid(child, 0)[1], 0, "the storm")
            small.process.send_signal(signal.SIGCONT)
            small.stop()
            large.stop()
    equal(large.lost["lost_events"], 0, "lost with room")
    check(small.lost["lost_events"] > 0, "nothing was lost of", len(large.rows))
    equal(len(small.rows) + small.lost["lost_events"], len(large.rows), "shown and lost")


def by_stack(rows):
    sums = collections.Counter()
    for row in rows:
        sums[str(row["kernel_stack"])] += row["allocations"]
    return sums


def stacks_collide(slots, all_fit):
    """With so few slots that stacks collide none is taken for another: each has what it has where there is room for
    all.
    """
    work = ("files 400", "pipes 30", "timers 7", "touch 20", "forks 2")
    with maker() as m:
        options = ("-p", m.pid, "--by", "stack", "--stacks", "kernel")
        with tool("kmem", *options, "--stack-slots", slots) as small, tool("kmem", *options) as large:
            m.do(*work)
            small.stop()
            large.stop()
    few, many = by_stack(small.rows), by_stack(large.rows)
    equal(sum(few.values()), sum(many.values()), "allocations")
    check(len(many) > slots, len(many), "stacks in", slots, "slots do not collide")
    lost = few.pop(str(["[lost: no room for the stack, see --stack-slots]"]), 0)
    for stack, n in few.items():
        equal(n, many[stack], "allocations of\n" + stack)
    if all_fit:
        equal((lost, small.lost["stacks_lost"], len(few)), (0, 0, len(many)), "lost, stacks")
    else:
        check(lost and small.lost["stacks_lost"] >= lost, lost, "allocations without a stack,", small.lost)


def accounted():
    """Each tool has a test of its own that is shown to fail when one record is missing."""
    here = os.path.dirname(os.path.abspath(__file__))
    lacking = []
    for name in anytool.names():
        path = "%s/%s.py" % (here, name)
        if not os.path.exists(path) or "loses(" not in open(path).read():
            lacking.append(name)
    equal(lacking, [], "tools of which no test is shown to fail")


def counts_nothing_of_others():
    """Of a process that sleeps no free is told, of NULL or of what was not followed, while others free; without a
    choice some are.
    """
    tools = {
        "kmem": ("null_frees", "frees_of_unknown"), "kpages": ("freed_pages_of_unknown",),
        "slabratetop": ("null_frees",)
    }
    for name, counts in tools.items():
        live = ["--live"] if name != "slabratetop" else []
        with opener() as sleeps, opener() as other, load():
            with tool(name, "-p", sleeps.pid, *live) as it, tool(name, *live) as of_all:
                other.do(N)
                it.stop()
                of_all.stop()
        equal({count: it.lost[count]
               for count in counts}, dict.fromkeys(counts, 0), name + ", of a process that sleeps")
        check(all(of_all.lost[count] for count in counts if count != "null_frees"), "none of", counts, "of all",
              of_all.lost)


TESTS = [
    ("-p: one process, all its threads", lambda: sees(lambda: None, lambda o: ["-p", o.pid], N + 11)),
    ("-t: its first thread alone", lambda: sees(lambda: None, lambda o: ["-t", o.pid])),
    ("-t: its second thread alone", lambda: sees(lambda: None, lambda o: ["-t", o.second], thread=2)),
    ("-u: a user by number", lambda: sees(lambda: os.setuid(54321), lambda o: ["-u", 54321], N + 11)),
    ("-u: a user by name", lambda: sees(lambda: os.setuid(65534), lambda o: ["-u", "nobody", "-p", o.pid], N + 11)),
    ("--comm: a name", lambda: sees(named, lambda o: ["--comm", "asked for, 15 c"], N + 11)),
    ("filters that exclude one another see nothing",
     lambda: sees(named, lambda o: ["--comm", "asked for, 15 c", "-u", 54321], 0)),
    ("--cgroup: of version 2, with what lies below", lambda: in_cgroup(UNIFIED)),
    ("--cgroup: what is none, or another controller's, is refused", cgroups_refused),
    ("-p in a PID namespace is the number there", in_namespace),
    ("-p: a number that is used again is another process", lambda: reused("-p")),
    ("-t: a number that is used again is another thread", lambda: reused("-t")),
    ("-p: frees of others are not told", counts_nothing_of_others),
    ("a full table of kmem is counted, to the unit", lambda: table_full("kmem", 8)),
    ("a full ring is counted, to the unit", ring_full),
    ("stacks that collide stay apart", lambda: stacks_collide(16, False)),
    ("stacks that find no room are counted", lambda: stacks_collide(4, False)),
    ("each tool has a test that is shown to fail", accounted),
]
if os.path.exists(reclaim.V1 + "/cgroup.procs"):
    TESTS.insert(8, ("--cgroup: of version 1, with what lies below", lambda: in_cgroup(reclaim.V1)))

def command_goes_on():
    """One that has not ended when the time is over is left alone, and that is said; one that has is not spoken of."""
    command = [built("ALLIUM"), "sys", "slabratetop"]
    left = ["--interval", "200ms", "--duration", "200ms", "--", "sh", "-c", "exec sleep 60 >/dev/null 2>&1"]
    said = re.search(rb"allium: sh \(pid (\d+)\) keeps running\n", tap.succeed([*command, *left]).stderr)
    check(said, "it is not said")
    os.kill(int(said.group(1)), signal.SIGKILL)
    ended = tap.succeed([*command, "--interval", "1h", "--", "true"])
    check(b"keeps running" not in ended.stderr, "of one that has ended")


TESTS.append(("a command that is left running is told of", command_goes_on))
lib.main(TESTS)
