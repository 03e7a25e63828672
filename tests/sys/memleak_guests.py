#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys memleak` of processes that are hard to observe: each is counted exactly, or refused in one line, and is as it
was afterwards.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal, only, private_dir, tool, wait_until

EXACT = ("--period", "1", "--max-cost", "0")
METHODS = ("session", "uprobe")


class Leaker(lib.Maker):
    """leaker.c: answers like a maker."""

    def __init__(self):
        self.process = subprocess.Popen([built("TEST_LEAKER")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.do("churn 1")

    def kill(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def leaker():
    it = Leaker()
    try:
        yield it
    finally:
        it.kill()


def kept(seen, name):
    """(objects, bytes) of a function."""
    rows = [row for row in seen.rows if row["site"].startswith(name + " ")]
    return sum(row["live_objects"] for row in rows), sum(row["live_bytes"] for row in rows)


def in_strict_mode(method):
    """A process that may only read, write and exit: the kernel's return probe makes a system call that the program did not
    make.
    """
    with leaker() as it:
        it.do("strict")
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site", "--attach", method) as seen:
            it.do("many 10")
            seen.stop()
        it.do("many 10")
        equal(it.process.poll(), None, "it was ended")
    equal(kept(seen, "leak_many"), (10, 5500), "live")


def stopped():
    """Probes come and go while it is stopped."""
    with leaker() as it:
        os.kill(it.pid, signal.SIGSTOP)
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as idle:
            idle.stop()
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
            os.kill(it.pid, signal.SIGCONT)
            it.do("many 10")
            os.kill(it.pid, signal.SIGSTOP)
            seen.stop()
        os.kill(it.pid, signal.SIGCONT)
        it.do("frees")
    equal(idle.rows, [], "rows of a process that did nothing")
    equal(kept(seen, "leak_many"), (10, 5500), "live")


def debugged():
    """gdb has a breakpoint, and goes on."""
    with leaker() as it, private_dir() as folder:
        script = folder + "/script"
        with open(script, "w") as file:
            file.write("set pagination off\nbreak leak_many\ncommands\nsilent\nshell touch %s/hit\ncontinue\nend\n"
                       "shell touch %s/ready\ncontinue\n" % (folder, folder))
        words = ["gdb", "-q", "-nx", "-batch", "-p", str(it.pid), "-x", script]
        gdb = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(folder + "/ready"), tap.TIMEOUT, "gdb is attached")
            with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
                it.do("many 10")
                seen.stop()
            check(os.path.exists(folder + "/hit"), "gdb's own breakpoint was not hit")
            it.do("many 10")
        finally:
            gdb.terminate()
            gdb.wait()
        it.do("frees")
    equal(kept(seen, "leak_many"), (10, 5500), "live")


def many_children():
    """A thousand, each with probes of its own while it is there; no descriptor is left of them."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "process", "--children") as seen:
            folder = "/proc/%d/fd" % seen.pid
            before = len(os.listdir(folder))
            it.do("children 1000", "many 10")
            wait_until(lambda: len(os.listdir(folder)) <= before, tap.TIMEOUT, "links to children are gone")
            seen.stop()
    row = only(seen.rows, pid=it.pid)
    equal((row["live_objects"], row["live_bytes"]), (10, 5500), "live in the parent")
    equal(seen.lost["lost_processes"], 0, "processes that were not noticed")


def reopens():
    """A library with an allocator comes and goes; what is observed meanwhile is whole."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
            it.do("reopen %s 200" % built("TEST_POOL"), "many 10")
            seen.stop()
    equal(kept(seen, "leak_many"), (10, 5500), "live")


def from_deep():
    """A stack of 1,000 calls is shown as far as it reaches, and its objects are counted."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "stack") as seen:
            it.do("deep 1000")
            seen.stop()
    row = only(seen.rows, live_objects=10)
    equal(row["live_bytes"], 330, "live")
    check(sum(line.startswith("leak_deep ") for line in row["user_stack"]) >= 100, "stack:", row["user_stack"])


def too_many():
    """Objects for which there is no room are counted."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site", "--objects", 100) as seen:
            it.do("many 1000")
            seen.stop()
    objects = sum(row["live_objects"] for row in seen.rows)
    equal(objects + seen.lost["lost_live_objects"], 1000, "live and lost")
    check(100 <= objects <= 200, objects, "had room")  # the kernel has some of it on each CPU


def of_a_strange_name():
    """Control characters are not printed raw."""
    with leaker() as it:
        it.do("called \x1b[2Jred\x07")
        words = [built("ALLIUM"), "sys", "memleak", "-p", str(it.pid), *EXACT, "--by", "process"]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(b": ready: " in run.stderr.readline(), "not ready")
        it.do("many 10")
        run.send_signal(signal.SIGINT)
        out, errors = run.communicate(timeout=tap.TIMEOUT)
    check(b"red" in out and b"\x1b" not in out + errors and b"\x07" not in out + errors, out, errors)


def of_another_user():
    """Without the right to look into it, it is refused in one line."""
    with leaker() as it:
        other = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps", "-all,+bpf,+perfmon", "--ambient-caps",
                 "+bpf,+perfmon", "--bounding-set", "-all,+bpf,+perfmon", built("ALLIUM")]
        tap.succeed([*other, "--version"])
        done = tap.run([*other, "sys", "memleak", "-p", str(it.pid), "--duration", "1s"])
        it.do("many 1")
    said = done.stderr.decode()
    check(done.returncode == 3 and re.fullmatch("allium: .*cannot read .* process %d: .*root.*\n" % it.pid, said), done)


lib.main([
    *(("a process in seccomp's strict mode lives on, by " + method, lambda method=method: in_strict_mode(method))
      for method in METHODS),
    ("one that is stopped", stopped),
    ("one with a debugger", debugged),
    ("one with 1,000 children", many_children),
    ("one that opens and closes a library again and again", reopens),
    ("stacks of 1,000 calls", from_deep),
    ("more objects than there is room", too_many),
    ("a name with control characters", of_a_strange_name),
    ("one of another user", of_another_user),
])
