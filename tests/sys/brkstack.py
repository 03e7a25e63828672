#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys brkstack`: calls of brk() and the bytes by which they move the end of the heap, against a program that
knows what its own calls returned (brker.c), and the size of the heap against /proc/PID/maps.
"""
import contextlib
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
from lib import built, check, equal, load, loses, only, tap, tool

METHODS = ("tp_btf", "raw_tp")
NUMBERS = ("calls", "queries", "failed", "grown_bytes", "shrunk_bytes")
PAGE = 4096


class Brker:
    """tests/sys/brker.c, at its first line."""

    def __init__(self, *words, program=None):
        self.process = subprocess.Popen([program or built("TEST_BRKER"), *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.process.stdout.readline()

    def go(self):
        """{column: number}, when it has done everything."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return dict(zip(NUMBERS, map(int, self.process.stdout.readline().split())))

    def heap(self):
        """Bytes of its heap, in whole pages."""
        with open("/proc/%d/maps" % self.pid) as file:
            lines = [line.split()[0].split("-") for line in file if line.rstrip().endswith("[heap]")]
        return sum(int(end, 16) - int(start, 16) for start, end in lines)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(tap.TIMEOUT)


@contextlib.contextmanager
def brker(*words, program=None):
    it = Brker(*words, program=program)
    try:
        yield it
    finally:
        it.end()


def shown(row):
    return {key: row[key] for key in NUMBERS}


def known(method, words, env=None):
    """Calls, failures and bytes are those that the program knows; the heap at the end is that of /proc/PID/maps."""
    with load(), brker(*words) as program, tool("brkstack", "-p", program.pid, "--by", "process", "--attach", method,
                                                env=env) as it:
        equal(it.method, method, "method")
        did = program.go()
        it.stop()
        row = only(it.rows, pid=program.pid)
        equal(row["heap_bytes"], program.heap(), "size of the heap")
    equal(shown(row), did, "what the program did")
    equal(row["net_bytes"], did["grown_bytes"] - did["shrunk_bytes"], "net")
    equal(row["comm"], "brker", "name")
    check(row["duration_ns"] > 0, row)
    equal({key: it.lost[key] for key in ("lost_events", "begun_before", "under_way", "calls_of_32_bits")},
          dict.fromkeys(("lost_events", "begun_before", "under_way", "calls_of_32_bits"), 0), "losses")


def methods_agree():
    """Both at once have the same rows, but for durations."""
    with brker("random", 500) as program, contextlib.ExitStack() as stack:
        tools = [stack.enter_context(tool("brkstack", "-p", program.pid, "--attach", method)) for method in METHODS]
        program.go()
        first, second = ([{key: value for key, value in row.items() if not key.startswith("duration")}
                          for row in it.stop().rows] for it in tools)
    check(first, "nothing was seen")

    def order(row):
        return str(row)
    equal(sorted(first, key=order), sorted(second, key=order), "rows of another method")


def function_of(row, functions):
    frames = [frame.split()[0].split("+")[0] for frame in row["user_stack"]]
    return next((name for name in frames if name in functions), None)


def stacks(sample=()):
    """Each function of the program has its own calls and bytes. To count calls, as the original does, would show as
    many for a function that only asks, and for one that only fails, as for one that grows the heap.
    """
    with brker("steps") as program, tool("brkstack", "-p", program.pid, *sample) as it:
        did = program.go()
        it.stop()
    want = {
        "asks": (3, 3, 0, 0, 0), "grows": (4, 0, 0, 100001 + (4 << 20), 0), "shrinks": (2, 0, 0, 0, 50003),
        "fails": (3, 0, 3, 0, 0)
    }
    have = {}
    for row in it.rows:
        name = function_of(row, want)
        have[name] = tuple(a + row[key] for a, key in zip(have.get(name, (0,) * 5), NUMBERS))
    equal(have, want, "calls by function")
    equal({key: sum(row[key] for row in it.rows) for key in NUMBERS}, did, "all stacks together")


def folded():
    """The stacks with the bytes by which each has grown the heap."""
    with brker("steps") as program:
        process = subprocess.Popen(lib.with_tracefs([built("ALLIUM"), "sys", "brkstack", "-p", str(program.pid),
                                                     "--folded"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(b": ready:" in process.stderr.readline(), "it is not ready")
        did = program.go()
        process.terminate()
        lines = process.communicate(timeout=tap.TIMEOUT)[0].decode().splitlines()
    grown = sum(int(line.rpartition(" ")[2]) for line in lines if "grows" in line)
    equal(grown, did["grown_bytes"], "bytes of grows() in %s" % lines)


def by_comm():
    """Two processes of one name are one row, which has no heap of its own."""
    with tap.private_dir() as folder:
        comm = "b%d" % os.getpid()
        program = shutil.copy(built("TEST_BRKER"), folder + "/" + comm)
        with brker("random", 100, program=program) as one, brker("steps", program=program) as other:
            with tool("brkstack", "--by", "comm", "--comm", comm) as it:
                first, second = one.go(), other.go()
                it.stop()
    row = only(it.rows, comm=comm)
    equal(shown(row), {key: first[key] + second[key] for key in NUMBERS}, "both together")
    check("heap_bytes" not in row and "pid" not in row, "of two processes", row)


def ended():
    """A process that has ended has no heap, and its rows are there."""
    with tool("brkstack", "--comm", "brker", "--by", "process") as it:
        with brker("steps") as program:
            program.go()
        it.stop()
    row = only(it.rows, pid=program.pid)
    equal((row["heap_bytes"], row["failed"]), (None, 3), "heap, failures")


def of_32_bits():
    """Calls of 32-bit programs are counted, and not shown."""
    with brker("old", 9) as program, tool("brkstack", "-p", program.pid) as it:
        program.go()
        it.stop()
    equal((it.rows, it.lost["calls_of_32_bits"]), ([], 9), "rows, calls of 32 bits")


def histogram():
    with brker("random", 200) as program, tool("brkstack", "-p", program.pid, "--by", "process", "--hist") as it:
        did = program.go()
        it.stop()
    row = only(it.rows, pid=program.pid)
    slots = row["duration_histogram_ns"]
    equal(sum(slot["count"] for slot in slots), did["calls"], "calls in all slots")
    check(sum(slot["count"] * slot["from"] for slot in slots) <= row["duration_ns"] <
          sum(slot["count"] * slot["to"] for slot in slots), "the sum lies outside of its slots:", row)


TESTS = [("calls and bytes, by " + method, lambda method=method: known(method, ("steps",))) for method in METHODS]
TESTS += [
    ("many calls", lambda: known("tp_btf", ("random", 20000))),
    ("a missing row is noticed", lambda: loses(lambda env: known("tp_btf", ("steps",), env))),
    ("ways to attach agree", methods_agree),
    ("each function has its own", stacks),
    ("each function has its own, by copied stacks", lambda: stacks(("--sample", "1"))),
    ("folded stacks have the bytes that were added", folded),
    ("processes of one name", by_comm),
    ("a process that has ended has no heap", ended),
    ("calls of 32 bits are counted", of_32_bits),
    ("the histogram holds each call", histogram),
]

lib.main(TESTS)
