# SPDX-License-Identifier: BSD-2-Clause
"""Ways to watch events of the kernel, each a context in which they are watched: the floor (bench/sys_floor), allium,
and what others have: bpftrace, perf record, ftrace's ring. Work that makes such events; and what watching costs it, in
turns with a bare run, with the median's interval.
"""
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import turns

TRACEFS = "/sys/kernel/tracing"
STATS = "/proc/sys/kernel/bpf_stats_enabled"
# Each pair of a file and an epoll takes two objects: a million of a few thousand descriptors.
MILLION_OBJECTS = """
import os, select
fds, kept = [os.eventfd(0) for _ in range(5000)], [select.epoll() for _ in range(100)]
for epoll in kept:
    for fd in fds:
        epoll.register(fd)
"""


def with_tracefs():
    """Begins this program anew where tracefs is mounted, seen by it alone."""
    if not os.path.exists(TRACEFS + "/events"):
        os.execvp("unshare",
                  ["unshare", "-m", "sh", "-c",
                   'mount -t tracefs t %s && exec "$@"' % TRACEFS, "sh", *sys.argv])


@contextlib.contextmanager
def beside(command, ready, stream):
    """A program that is at work meanwhile: from when it says so until its stdin ends, or it is told to."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: subprocess.PIPE}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **streams)
    try:
        for line in getattr(process, stream):
            if ready in line:
                break
        else:
            sys.exit("%s did not get ready" % command)
        yield process
    finally:
        process.stdin.close()
        process.stdin = None  # communicate() would flush it
        end(process)


def end(process):
    """Tells it to end; again, as bpftrace does not hear it while it begins."""
    while process.poll() is None:
        process.send_signal(2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)


def floor(prefix):
    return lambda: beside([os.environ["FLOOR"], os.environ["FLOOR_OBJECT"], prefix], b"ready", "stdout")


def allium(tool, *options):
    return lambda: beside([os.environ["ALLIUM"], "sys", tool, "--json", *options, "--duration", "1h"], b"ready",
                          "stderr")


def bpftrace(program):
    """A one-liner of bpftrace. What comes last is attached last, and says so; once, as each word of it takes time."""
    ready = ' interval:ms:1 /!@ready/ { @ready = 1; printf("ready\\n"); }'
    return lambda: beside(["bpftrace", "-B", "line", "-e", program + ready], b"ready", "stdout")


def ftrace(*events):
    @contextlib.contextmanager
    def way():
        folder = "%s/instances/allium-bench-%d" % (TRACEFS, os.getpid())
        os.mkdir(folder)
        try:
            for event in events:
                with open("%s/events/%s/enable" % (folder, event), "w") as file:
                    file.write("1")
            yield
        finally:
            os.rmdir(folder)
    return way


def perf(*words):
    """perf record, from when it has answered that its events are enabled."""
    @contextlib.contextmanager
    def way():
        (control, tell), (hear, ack) = os.pipe(), os.pipe()
        process = subprocess.Popen([
            "perf", "record", "-q", "-a", "-m", "1024", "-o", "/dev/null", "-D", "-1", "--control",
            "fd:%d,%d" % (control, ack), *words
        ], pass_fds=(control, ack), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(control)
        os.close(ack)
        try:
            os.write(tell, b"enable\n")
            if not os.read(hear, 16).startswith(b"ack"):
                sys.exit("perf record %s did not get ready" % " ".join(words))
            yield process
        finally:
            os.close(tell)
            os.close(hear)
            end(process)
    return way


def others(ways):
    """Those of {name: (program, way)} whose program is installed; what is not is said."""
    for name, (program, _) in ways.items():
        if not shutil.which(program):
            print("  %-26s n/a: %s is not installed" % (name, program))
    return {name: way for name, (program, way) in ways.items() if shutil.which(program)}


CALLS_AT_ONCE = 20000


def calls():
    """ns of CPU time of one open() and close()."""
    return float(subprocess.run([os.environ["CALLS"], str(CALLS_AT_ONCE)], stdout=subprocess.PIPE, check=True).stdout)


def events_of_a_call():
    """How many events of the slab allocator those two make."""
    command = [os.environ["ALLIUM"], "sys", "kmem", "--json", "--quiet", "--", os.environ["CALLS"], str(CALLS_AT_ONCE)]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines() if line.startswith(b'{"call_site"')]
    rows = [row for row in rows if row["allocations"] + row["frees"] >= CALLS_AT_ONCE]
    return sum(round((row["allocations"] + row["frees"]) / CALLS_AT_ONCE) for row in rows)


@contextlib.contextmanager
def held(program):
    """While this Python program, if it is one, waits after its work."""
    if not program:
        yield
        return
    process = subprocess.Popen([sys.executable, "-S", "-c", program + "print(flush=True)\ninput()\n"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.communicate(b"\n")


class FirstTouch:
    """first_touch: a page fault after the other, each of a page that the kernel has to allocate, from so many frames
    deep; with `file`, of pages of this file.
    """

    def __init__(self, depth, *file):
        self.process = subprocess.Popen([os.environ["FIRST_TOUCH"], str(depth), *file], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def rounds(self, n=5):
        """ns of CPU time of one fault."""
        seen = []
        for _ in range(n):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            seen.append(float(self.process.stdout.readline()))
        return statistics.median(seen)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def programs():
    return json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], stdout=subprocess.PIPE, check=True).stdout)


def run_time(way, work):
    """ns a run of the BPF programs of `way`, by the kernel's own clock: without what calling them takes. None: none
    ran.
    """
    with open(STATS) as file:
        before = file.read()
    theirs = {program["id"] for program in programs()}
    try:
        with open(STATS, "w") as file:
            file.write("1")
        with way():
            work()
            ours = [program for program in programs() if program["id"] not in theirs and program.get("run_cnt")]
    finally:
        with open(STATS, "w") as file:
            file.write(before)
    runs = sum(program["run_cnt"] for program in ours)
    return sum(program["run_time_ns"] for program in ours) / runs if runs else None


def measure(ways, work):
    """{way: [(ns without it, ns with it)]}: in each turn all of them in random order, and the work bare before each.
    For so long as ALLIUM_BENCH_SECONDS says, but a turn takes two seconds or three, and fewer than six have no
    interval.
    """
    took, began = {name: [] for name in ways}, time.monotonic()
    while len(took[next(iter(ways))]) < turns.LEAST_TURNS or time.monotonic() - began < turns.SECONDS:
        for name in random.sample(list(ways), len(ways)):
            bare = work()
            with ways[name]():
                work()  # rows and stacks are new
                took[name].append((bare, work()))
    return took


def report(took, each, of, bounds):
    """Prints what each way costs, by event, of which the work makes `each`; as a ratio to what the way `of` costs,
    which may be bounded (`bounds`: {way: ratio}). None: a ratio of the work with it to the bare work. True: no bound
    was missed.
    """
    reached = True
    base = of and [with_it - bare for bare, with_it in took[of]]
    bare = [bare for bare, _ in next(iter(took.values()))]
    print("  %-26s %7.1f ns of work an event, %d turns" % ("bare", statistics.median(bare) / each, len(bare)))
    for name, pairs in took.items():
        costs = [with_it - bare for bare, with_it in pairs]
        cost = turns.Ratio([cost / each for cost in costs])
        ratio = turns.Ratio([a / b for a, b in zip(costs, base)
                             if b] if of else [with_it / bare for bare, with_it in pairs])
        said = ""
        if name in bounds:
            said = "   at most %.2f   %s" % (bounds[name], turns.verdict(ratio.low, ratio.high, bounds[name]))
            reached = reached and "MISSED" not in said
        print("  %-26s + %6.1f ns (%.1f to %.1f)   %s: %s%s" %
              (name, cost.value, cost.low, cost.high, "of %s's" % of if of else "x", ratio, said))
    return reached
