# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys record` of only a process, a thread, a program, a control group, or some objects: exactly those of a
program that makes pipes, while another one makes some, too; whoever frees them."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import reclaim
import tap
from lib import built, check, equal

PIPES = 500
PIPE_SITE = "alloc_pipe_info"
# Makes pipes in its own thread, or in one of another name, and its child closes the last copy of each.
MAKES_PIPES = """
import os, sys, threading
def work():
    if "thread" in sys.argv:
        open("/proc/self/task/%%d/comm" %% threading.get_native_id(), "w").write("named-thread")
        print(threading.get_native_id(), flush=True)
        sys.stdin.readline()
    kept = [os.pipe() for _ in range(%d)]
    ready, go = os.pipe()
    if not os.fork():
        os.read(ready, 1)
        for pair in kept: [os.close(end) for end in pair]
        more = [os.pipe() for _ in range(77)] # which are the child's own
        os._exit(0)
    for pair in kept: [os.close(end) for end in pair]
    os.write(go, b"x")
    os.wait()
print(os.getpid(), flush=True)
sys.stdin.readline()
if "thread" in sys.argv:
    t = threading.Thread(target=work); t.start(); t.join()
else:
    work()
""" % PIPES


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def asked(path, question):
    return json.loads(allium("sql", "--json", path, question).stdout)["rows"]


class Program:
    """It waits for a line before each thing it does."""

    def __init__(self, *words, before=()):
        self.process = subprocess.Popen([*before, sys.executable, "-S", "-c", MAKES_PIPES, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.says()

    def says(self):
        return int(self.process.stdout.readline())

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self):
        equal(self.process.wait(tap.TIMEOUT), 0, "the program")

    def abandon(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def recorded(folder, *options):
    """While it records, -> its process; then the recording is folder/r.allium, and `said` what it said."""
    command = [built("ALLIUM"), "sys", "record", "--force", "-o", folder + "/r.allium", "--buffer", "64M"]
    process = subprocess.Popen([*command, "--settle", "0s", *map(str, options)], stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        check(b": ready: " in process.stderr.readline(), "it did not get ready")
        yield process
        process.send_signal(signal.SIGINT)
        process.said = process.communicate(timeout=tap.TIMEOUT)[1].decode()
        equal(process.returncode, 0, process.said)
        check("lost       nothing" in process.said, process.said)
    finally:
        process.kill()
        process.wait()


def pipes_of(folder):
    row, = asked(folder + "/r.allium", "SELECT sum(allocations) AS made, sum(live_objects) AS live FROM sys_kmem "
                 "WHERE call_site LIKE '%s+%%'" % PIPE_SITE)
    frees, = asked(folder + "/r.allium", "SELECT sum(frees) AS freed FROM sys_kmem_pair WHERE call_site LIKE '%s+%%'" %
                   PIPE_SITE)
    return row["made"], row["live"], frees["freed"]


def exact(options, *words, before=(), made=2 * (PIPES + 1)):
    """A pipe takes two objects. All are freed, the most of them by the child, which is another process."""
    with tap.private_dir() as folder:
        one, other = Program(*words, before=before), Program()
        try:
            with recorded(folder, *options(one)) as recorder:
                for program in one, other:
                    program.go()
                    if "thread" in words and program is one:
                        one.says()
                        one.go()
                for program in one, other:
                    program.end()
            equal(pipes_of(folder), (made, 0, made), "objects of pipes: made, live, freed")
        finally:
            one.abandon()
            other.abandon()
        events, allocated, freed, silent, live = figures(recorder.said)
        equal(allocated, freed + silent + live, "allocations, and what became of them")
        whole = json.loads(allium("report", folder + "/r.allium", "--json").stdout)
        kernel = whole["kernel"]
        equal(kernel["filter"], " ".join(map(str, options(one))).replace("-p ", "--pid "), "the filter in the report")
        equal([kernel[key] for key in ("frees_of_unknown", "frees_after_loss", "frees_unexplained")], [0, 0, 0],
              "frees of others")
        check("All allocations but those of --" in allium("report", folder + "/r.allium").stdout.decode(), "report")


def figures(said):
    found = re.search(r"([\d,]+) events?\n +allocated +([\d,]+) objects? of .*\n +freed +([\d,]+) objects? of [^,\n]*"
                      r"(?:, and ([\d,]+) without an event.*)?\n +older +frees of objects that are not recorded .*\n"
                      r" +live +([\d,]+) objects? of ", said)
    check(found, "no summary:", said)
    return [int((n or "0").replace(",", "")) for n in found.groups()]


def by_thread():
    """A thread that is there before."""
    with tap.private_dir() as folder:
        program = Program("thread")
        try:
            program.go()
            tid = program.says()
            with recorded(folder, "--tid", tid):
                program.go()
                program.end()
            equal(pipes_of(folder)[0], 2 * (PIPES + 1), "objects of pipes")
            other = Program()
            with recorded(folder, "--tid", 1):
                other.go()
                other.end()
            equal(pipes_of(folder)[0], None, "objects of another one's pipes")
        finally:
            program.abandon()


def by_group():
    """A control group, and one that contains it."""
    root = reclaim.V1 if os.path.exists(reclaim.V1 + "/cgroup.procs") else "/sys/fs/cgroup"
    outer = "%s/allium-record-%d" % (root, os.getpid())
    inner = outer + "/inner"
    enter = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', inner]
    os.makedirs(inner)
    try:
        for group in inner, outer:
            # the child is in the group, too, with 77 pipes of its own
            exact(lambda _, group=group: ("--cgroup", group), before=enter, made=2 * (PIPES + 1 + 77))
    finally:
        os.rmdir(inner)
        os.rmdir(outer)


def objects():
    """--where: the same rows as of a recording of everything beside it, less those that do not match."""
    with tap.private_dir() as folder:
        whole = subprocess.Popen([built("ALLIUM"), "sys", "record", "-o", folder + "/whole.allium", "--buffer", "64M",
                                  "--events", "slab"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            check(b": ready: " in whole.stderr.readline(), "it did not get ready")
            program = Program()
            with recorded(folder, "--events", "slab", "--where", "allocated>=1024 function:%s" % PIPE_SITE):
                program.go()
                program.end()
            whole.send_signal(signal.SIGINT)
            check("lost       nothing" in whole.communicate(timeout=tap.TIMEOUT)[1].decode(), "losses")
        finally:
            whole.kill()
            whole.wait()
        query = ("SELECT cache, sum(allocations) AS n FROM sys_kmem WHERE allocations > 0 AND call_site LIKE '%s+%%' "
                 "%s GROUP BY cache ORDER BY cache")
        large = "AND allocated_bytes >= 1024 * allocations"
        have = asked(folder + "/r.allium", query % (PIPE_SITE, ""))
        all_of, = asked(folder + "/r.allium", "SELECT sum(allocations) AS n FROM sys_kmem")
        equal(sum(row["n"] for row in have), all_of["n"], "other objects")
        want = {row["cache"]: row["n"] for row in asked(folder + "/whole.allium", query % (PIPE_SITE, large))}
        check({row["cache"] for row in have} == set(want) and want, have, want)
        for row in have: # the other one began before, and ended later
            check(PIPES <= row["n"] <= want[row["cache"]], row, want)


def refused():
    """One line each."""
    with tap.private_dir() as folder:
        for words, line, code in (
            (["-p", 2**22 + 1], "there is no process", 1), (["--tid", 2**22 + 1], "there is no thread", 1),
            (["-p", "0"], "--pid 0 is out of range", 2), (["--pid", "x"], "--pid", 2),
            (["--comm", ""], "invalid --comm", 2), (["--comm", "sixteen-letters-"], "at most 15 characters", 2),
            (["--cgroup", "/none/such"], "does not exist", 2), (["--where", "allocated>1K"], "add --events slab", 2),
            (["--events", "slab", "--where", "pairs>1"], "unknown field", 2),
            (["--uid", "0"], "uid", 2), # events do not tell it
        ):
            done = allium("sys", "record", "-o", folder + "/r.allium", *words, "--", "true", code=code)
            check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, words, done.stderr)
            equal(os.listdir(folder), [], "what is left behind by %s" % words)
        inside = ["unshare", "--pid", "--fork", "--mount-proc"]
        done = tap.run([*inside, built("ALLIUM"), "sys", "record", "-o", folder + "/r.allium", "-p", "1", "--", "true"])
        equal(done.returncode, 3, done.stderr.decode())
        check(b"the machine's own process ids" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)


lib.main([
    ("-p: exactly the objects of a process, whoever frees them", lambda: exact(lambda one: ("-p", one.pid))),
    ("--comm: exactly those of a thread with this name", lambda: exact(
        lambda _: ("--comm", "named-thread"), "thread", made=2 * (PIPES + 1 + 77))), # the child inherits the name
    ("--tid: those of a thread", by_thread),
    ("--cgroup: those of a control group, with what lies below", by_group),
    ("--where: those of some objects", objects),
    ("what has no meaning is refused", refused),
])
