# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --clock counter|none|every:N`: traces without times, or with those of some events. Their counts and sums
are those of a trace with times; python3-bt2 reads them. With a counter, lives of one address do not overlap, also if it
is reused across CPUs; nor do those of a profile with the clock tsc.
"""
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
ROUNDS = 6000
# Two threads, each on a CPU of its own, pass each block on to the other, which frees it and allocates the next one: the
# allocator returns the same few addresses, in turns on both CPUs. The sizes tell the lives of an address apart. After a
# realloc() in place, which can be shorter than what a time is early by (early_frees.h), the thread yields.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile block;
static volatile long turn;
static void *work(void *arg)
{
    const long me = (long)arg;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(me %% sysconf(_SC_NPROCESSORS_ONLN), &mine);
    sched_setaffinity(0, sizeof(mine), &mine);
    for (long i = me; i < %d; i += 2) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
            sched_yield();
        free(block);
        block = malloc(24 + i %% 1000);
        if (i %% 7 == 0) {
            block = realloc(block, 5000 + i %% 10);
            sched_yield();
        }
        if (i %% 1000 == 0)
            malloc(77);
        __atomic_store_n(&turn, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)1);
    work(NULL);
    pthread_join(other, NULL);
    if (!fork()) {
        free(block);
        for (int i = 0; i < 500; i++)
            free(malloc(33333));
        _exit(0);
    }
    wait(NULL);
    return 0;
}
""" % ROUNDS
# What is live at the end: the blocks of 77 bytes, and the last one. (Of the C library, 288.)
LIVE = [77 * (ROUNDS // 1000), 5000 + (ROUNDS - 1) % 10]
# Two threads, each on a CPU of its own, which take blocks from each other, and wait for nothing but the allocator.
RIVALS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *arg)
{
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET((long)arg %% sysconf(_SC_NPROCESSORS_ONLN), &mine);
    sched_setaffinity(0, sizeof(mine), &mine);
    static volatile int here;
    __atomic_fetch_add(&here, 1, __ATOMIC_SEQ_CST);
    while (here < 2)
        sched_yield();
    for (long i = 0; i < %d; i++) {
        void *volatile block = malloc(40);
        block = i %% 5 ? block : realloc(block, 50 + i %% 7);
        free(block);
    }
    return NULL;
}
int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)1);
    work(NULL);
    pthread_join(other, NULL);
    return 0;
}
""" % ROUNDS
# The events of a folder as python3-bt2 reads them. Every warning is an error.
READER = """
import sys, bt2
bt2.set_global_logging_level(bt2.LoggingLevel.WARNING)
n, last = 0, 0
for m in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(m) is bt2._EventMessageConst:
        now = m.default_clock_snapshot.value
        assert now >= last, (now, last)
        last, n = now, n + 1
    assert "Discarded" not in type(m).__name__, m
print(n)
"""


def traced(folder, clock, *options, name="reuse", env=None):
    done = tap.run([ALLIUM, "trace", "-o", "%s/%s" % (folder, clock), "--clock", clock, *options, "--",
                    "%s/%s" % (folder, name)], env=dict(os.environ, **(env or {})))
    said = done.stderr.decode()
    equal(done.returncode, 0, said)
    found = trace_reader.events("%s/%s" % (folder, clock))
    written, lost, later = trace_reader.calls(said, "%s/%s" % (folder, clock))
    equal((written, lost, later), (len(found), 0, 0), said)
    return found, said


def program(folder):
    for name, text in ("reuse", PROGRAM), ("rivals", RIVALS):
        with open("%s/%s.c" % (folder, name), "w") as file:
            file.write(text)
        succeed(["cc", "-w", "-O1", "-fno-builtin", "%s/%s.c" % (folder, name), "-lpthread", "-o",
                 "%s/%s" % (folder, name)])


def kinds(events):
    return collections.Counter((e.name.replace("calloc", "malloc"), e.size) for e in events)


def sums(folder, clock):
    """-> what was allocated, and is live, by function"""
    report = json.loads(succeed([ALLIUM, "report", "%s/%s" % (folder, clock), "--json"]).stdout)
    # the order of sites differs by address: sites of one sum are alike
    rows = sorted((row["name"], row["self"]["allocated_bytes"], row["self"]["allocations"], row["self"]["live_bytes"])
                  for row in report["rows"])
    return rows, report["trace"]


def live(rows):
    return sorted(row[3] for row in rows if row[3] and row[0] == "work")


def lives(events):
    """-> (frees whose time is before that of their block's allocation by another CPU, those that have its time, all other
    events that do not fit the lives of their address); in the first process
    """
    live, freed, early, same, bad = {}, {}, 0, 0, 0
    for e in (e for e in events if e.process == events[0].process and e.address):
        if e.name in ("free", "realloc_begin"):
            if e.address in live:
                birth = live.pop(e.address)
                same += birth.ns == e.ns and birth.cpu != e.cpu
            else:
                bad += e.address in freed
                freed[e.address] = e
        elif e.address in freed and freed[e.address].cpu != e.cpu:
            ns = freed.pop(e.address).ns
            early += ns < e.ns
            same += ns == e.ns
        else:
            bad += e.address in live
            live[e.address] = e
    return early, same, bad + len(freed)


def overlaps(events):
    """-> frees of what is not live, allocations where something lives; in the first process"""
    live, bad = set(), 0
    for e in (e for e in events if e.process == events[0].process):
        if e.name in ("free", "realloc_begin"):
            bad += bool(e.address) and e.address not in live
            live.discard(e.address)
        elif e.address:
            bad += e.address in live
            live.add(e.address)
    return bad


def with_times():
    """With the CPUs' counters the lives of an address follow each other, but for frees that a CPU has stamped before it
    had the block's address: the other CPU's allocation is later then. The report counts these, and is exact.
    """
    trace_reader.needs_tsc()
    with private_dir() as folder:
        program(folder)
        found, said = traced(folder, "tsc")
        check("CLOCK_MONOTONIC" not in said, said)
        check(len({e.cpu for e in found}) > 1 or len(os.sched_getaffinity(0)) < 2, "CPUs")
        early, same, bad = lives(found)
        equal(bad, 0, "events that do not fit the lives of their address")
        rows, about = sums(folder, "tsc")
        said = about.pop("early_frees")
        # Where the CPUs' counters differ by hundreds of ns, single frees are early by two events. The report and this
        # test count those differently; seen: 3 of 600. What is live is exact all the same.
        most = 1 + early // 100
        check(early - most <= said <= early + same + most, "frees before their allocation", early, said, same)
        equal(about, {"where": None, "clock": None, "bounds": False, "wall_step_ns": 0}, "tsc")
        equal(live(rows), LIVE, "live")
        print("# %d frees before their allocation, %d at its time" % (early, same))


def rivals():
    """A beginning is written when the block is the program's, an end while it still is: with numbers of one counter, no
    two lives of an address overlap, though threads take blocks from each other at any instant. With the CPUs' counters
    hardly any do.
    """
    with private_dir() as folder:
        program(folder)
        for clock, *options in ("tsc",), ("counter",), ("counter", "--stacks", "full", "--force"):  # hooks differ
            found, _ = traced(folder, clock, *options, name="rivals", env={
                "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"})
            last, taken = {}, 0
            for e in found:
                taken += e.name == "malloc" and last.get(e.address, e.cpu) != e.cpu
                last[e.address] = e.cpu
            print("# %d blocks were taken from the other thread" % taken)  # chance: 1 to hundreds
            wrong = sum(lives(found))
            check(wrong <= (len(found) // 1000 if clock == "tsc" else 0), "overlap", wrong, clock, options)


def without_times(*clocks):
    """Counts, and sums by site, are those of a trace with times. With a counter the order is that of the program."""
    with private_dir() as folder:
        program(folder)
        want, _ = traced(folder, "tsc")
        rows, _ = sums(folder, "tsc")
        for clock in clocks:
            found, said = traced(folder, clock)
            check(kinds(found) == kinds(want), clock, kinds(found) - kinds(want), kinds(want) - kinds(found))
            if clock == "counter":
                equal(lives(found), (0, 0, 0), clock)
            its, about = sums(folder, clock)
            equal(about, {"where": None, "clock": clock, "bounds": clock != "counter", "early_frees": 0,
                          "wall_step_ns": 0}, clock)
            equal([row[:3] for row in its], [row[:3] for row in rows], clock + ": sums by site")
            if clock == "counter":
                equal(live(its), LIVE, "live")
            unsure = re.search(r"(\d+) (?:events|of the others) have no sure place in the order", said)
            equal(bool(unsure), clock != "counter", said)
            check(clock != "every:8" or overlaps(found) <= int(unsure.group(1)), "lives that overlap", clock)
            price = re.search(r"a number of --clock counter costs ([\d.]+) ns here(?:, and ([\d.]+) ns)?", said)
            equal(bool(price), clock == "counter", said)
            check(not price or 0.5 < float(price.group(1)) < 1000, said)


def readers():
    """python3-bt2 reads the folders, without steps back, and is warned of nothing; the views have no times."""
    with private_dir() as folder:
        program(folder)
        for clock in "counter", "none":
            found, _ = traced(folder, clock)
            done = subprocess.run(["/usr/bin/python3", "-c", READER, "%s/%s/ust" % (folder, clock)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            life = trace_reader.life("%s/%s" % (folder, clock))
            equal((done.returncode, done.stderr, done.stdout), (0, "", "%d\n" % (len(found) + life)), clock)
            done = tap.run([ALLIUM, "events", "%s/%s" % (folder, clock), "--json", "--top", "100"])
            rows = [json.loads(line) for line in done.stdout.decode().splitlines()][1:-1]
            equal({row["time_ns"] for row in rows}, {None}, clock)
            equal([row["number"] for row in rows], sorted(row["number"] for row in rows), clock)
            text = tap.run([ALLIUM, "events", "%s/%s" % (folder, clock), "--top", "3"])
            check("has no times (--clock %s): NUMBER is " % clock in text.stderr.decode(), text.stderr)
            said = succeed([ALLIUM, "events", "%s/%s" % (folder, clock), "--by", "event"]).stderr.decode()
            check("has no times (--clock %s)\n" % clock in said, said)
            text = succeed([ALLIUM, "report", "%s/%s" % (folder, clock), "--no-pager"]).stdout.decode()
            check("--clock %s)" % clock in text, text)
            failed = tap.run([ALLIUM, "report", "%s/%s@1ms" % (folder, clock)])
            check(failed.returncode, "DIR@TIME")


def interpolated():
    """Each eighth event of a CPU has a time; those between are marked, and no time of a CPU goes back."""
    trace_reader.needs_tsc()
    with private_dir() as folder:
        program(folder)
        found, _ = traced(folder, "every:8")
        done = subprocess.run(["/usr/bin/python3", "-c", READER, folder + "/every:8/ust"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        life = trace_reader.life(folder + "/every:8")
        equal((done.returncode, done.stderr, done.stdout), (0, "", "%d\n" % (len(found) + life)), "bt2")
        rows = [json.loads(line) for line in
                succeed([ALLIUM, "events", folder + "/every:8", "--json"]).stdout.decode().splitlines()][1:-1]
        equal(len(rows), len(found) + life, "events")
        rings = collections.defaultdict(list)
        for row in rows:
            rings[row["process"], row["cpu"]].append(row)
        for ring in rings.values():
            marked = [bool(row["flags"] & 4) for row in ring]
            check(not marked[0], "the first event has a time")
            gaps = "".join("~" if mark else " " for mark in marked).split(" ")
            check(max(map(len, gaps)) <= 7, "events without a time in a row", max(map(len, gaps)))
            times = [row["time_ns"] for row in ring]
            equal(times, sorted(times), "times of a CPU")
        share = sum(bool(row["flags"] & 4) for row in rows) / len(rows)
        check(0.6 < share <= 7 / 8, "share of events without a time", share)
        text = tap.run([ALLIUM, "events", folder + "/every:8", "--top", "20"])
        check("those with ~ are interpolated" in text.stderr.decode(), text.stderr)
        for words in ["--by", "thread"], ["--sum", "malloc.size"]:
            said = succeed([ALLIUM, "events", folder + "/every:8", *words]).stderr
            check(b"(--clock every:8): the others are interpolated\n" in said, words, said)
        check(re.search(r"^ *\d+\.\d{9}~", text.stdout.decode(), re.M), text.stdout)
        text = succeed([ALLIUM, "report", folder + "/every:8", "--no-pager"]).stdout.decode()
        check("--clock every:N)" in " ".join(text.split()), text)
        at = json.loads(succeed([ALLIUM, "report", folder + "/every:8@1ms", "--json"]).stdout)
        equal(at["trace"]["bounds"], True, "DIR@TIME is a bound")


def filtered(*clocks):
    """With --where as well."""
    with private_dir() as folder:
        program(folder)
        want = None
        for clock in "tsc", *clocks:
            found, said = traced(folder, clock, "--where", "size>=5000")
            lost = int(re.search(r", (\d+) filtered, 0 lost\n", said).group(1))
            # without an order, an end may be taken for that of another life
            got = kinds(e for e in found if e.name not in ("free", "realloc_begin")), len(found) + lost
            want = want or got
            check(got[0] == want[0], clock, got[0] - want[0], want[0] - got[0])
            equal(got[1], want[1], clock)


def mistakes():
    """What needs times is refused."""
    with private_dir() as folder:
        for words, line in [(["--flight"], "--flight needs them"), (["--kernel", "faults"], "--kernel needs them"),
                            (["--where", "time>1s"], "there is no time with --clock none"),
                            (["--events", "user"], "needs alloc in --events")]:
            done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--clock", "none", *words, "--", "true"])
            equal(done.returncode, 2, done.stderr)
            check(line in done.stderr.decode(), words, done.stderr)
        for clock, line in [("every:3", "use a power of two"), ("every:", "use a power of two"),
                            ("every:N", "as in every:8"), ("evry", "unknown --clock evry")]:
            done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--clock", clock, "--", "true"])
            equal(done.returncode, 2, done.stderr)
            check(line in done.stderr.decode(), clock, done.stderr)
        for words in (["--kernel", "faults"], ["--function", "libc.so.6:getenv"], ["--flight"], ["--events", "user"],
                      ["--where", "time>1s"]):
            done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--clock", "sun", *words, "--", "true"])
            equal(done.returncode, 2, done.stderr)
            check("unknown --clock sun" in done.stderr.decode(), words, done.stderr)
        done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--clock", "every:8", "--flight", "--", "true"])
        check("every:8 has not all times, and --flight needs them" in done.stderr.decode(), done.stderr)


def every(test):
    """The test with times of some events."""
    def run():
        trace_reader.needs_tsc()
        test("every:8")
    return run


tap.main([
    ("lives of an address by the CPUs' counters", with_times),
    ("traces without times have the same counts and sums", lambda: without_times("counter", "none")),
    ("and so have traces with the times of some events", every(without_times)),
    ("lives of an address for which threads compete", rivals),
    ("readers of traces without times", readers),
    ("every:N", interpolated),
    ("--where", lambda: filtered("counter", "none")),
    ("--where, with the times of some events", every(filtered)),
    ("mistakes", mistakes),
])
