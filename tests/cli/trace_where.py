# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --where`: which events are kept, of a program whose sizes and threads are known; what is counted."""
import collections
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import built, check, equal, private_dir, succeed
from traced_service import service

ALLIUM = built("ALLIUM")
BLOCKS = 20000
# The first thread allocates BLOCKS blocks of 100 to 2,099 bytes, which the second one frees at once.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile passed[%d];
static volatile long posted;
static void *other(void *arg)
{
    for (long i = 0; i < %d; i++) {
        while (__atomic_load_n(&posted, __ATOMIC_ACQUIRE) <= i)
            ;
        free(passed[i]);
        if (i %% 100 == 0)
            free(malloc(5000));
    }
    return NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (long i = 0; i < %d; i++) {
        passed[i] = malloc(100 + i %% 2000);
        __atomic_store_n(&posted, i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    void *volatile p = malloc(3000);  /* kept, and stays so when it shrinks */
    p = realloc(p, 50);
    p = realloc(p, 4000);
    p = realloc(p, (size_t)1 << 62);  /* fails */
    p = malloc(10);                   /* begins to be kept when it grows */
    p = realloc(p, 7777);
    free(p);
    p = calloc(10, 300);
    if (!fork()) {
        free(p);                      /* inherited */
        for (int i = 0; i < 100; i++)
            free(malloc(i < 50 ? 33333 : 33));
        p = malloc(44444);
        _exit(0);
    }
    wait(NULL);
    p = malloc(8888);
    return 0;
}
""" % (BLOCKS, BLOCKS, BLOCKS)


def program(folder):
    with open(folder + "/sizes.c", "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-w", "-O1", "-fno-builtin", folder + "/sizes.c", "-lpthread", "-o", folder + "/sizes"])
    return folder + "/sizes"


def traced(folder, name, *options, before=(), says=""):
    """-> events, (written, lost, filtered)"""
    done = tap.run([ALLIUM, "trace", "-o", "%s/%s" % (folder, name), *options, "--", *before, folder + "/sizes"])
    said = done.stderr.decode()
    check(says in said, said)
    equal(done.returncode, 0, said)
    found = trace_reader.events("%s/%s" % (folder, name))
    written, lost, later = trace_reader.calls(said, "%s/%s" % (folder, name))
    filtered = re.search(r", (\d+) filtered, \d+ lost\n", said)
    equal((written, lost, later, bool(filtered)), (len(found), 0, 0, "--where" in options), said)
    return found, (written, lost, int(filtered.group(1)) if filtered else 0)


def kept(events, fits):
    """The rule of block_filter.h, in the order of time."""
    live, moving, out = set(), {}, []
    for e in events:
        block, call = (e.process, e.address), (e.process, e.thread)
        if e.name == "free":
            keep = block in live
            live.discard(block)
        elif e.name == "realloc_begin":
            keep = block in live
            moving[call] = block if keep else None
            live.discard(block)
        else:
            old = moving.pop(call, None) if e.name == "realloc_end" else None
            keep = fits(e) or old is not None
            if old and not e.address and e.size:
                live.add(old)
            if e.address:
                (live.add if keep else live.discard)(block)
        if keep:
            out.append(e)
    return out


def kinds(events):
    """Counts by name and size, and by which of the processes it was."""
    order = list(dict.fromkeys(e.process for e in events))
    return collections.Counter((order.index(e.process), e.name, e.size) for e in events)


QUERIES = {
    "size>=2000": lambda e: e.size >= 2000 and e.name != "free" and e.name != "realloc_begin",
    "(size>=2000 or size=1234567)": lambda e: e.size >= 2000,
    "size:100..199,5000": lambda e: 100 <= e.size < 200 or e.size == 5000,
    "!size>500 size>100": lambda e: 100 < e.size <= 500,
    "event:calloc,realloc_end": lambda e: e.name in ("calloc", "realloc_end"),
    "size>4k event:malloc": lambda e: e.size > 4096 and e.name == "malloc",
    "event:free": lambda e: False,
}


def exact():
    """What is kept is exactly what the rule keeps of a trace of all; written + filtered is all that happened."""
    with private_dir() as folder:
        program(folder)
        every, (written, _, _) = traced(folder, "all")
        for n, (query, fits) in enumerate(QUERIES.items()):
            some, counts = traced(folder, "t%d" % n, "--where", query)
            want = kept(every, fits)
            check(kinds(some) == kinds(want), query, kinds(some) - kinds(want), kinds(want) - kinds(some))
            equal(sum(counts), written, "all that happened: " + query)


def figures():
    """The report has the live bytes of the blocks that were kept, and says which these are; events agree with
    `events --where` on a trace of all."""
    with private_dir() as folder:
        program(folder)
        every, _ = traced(folder, "all")
        traced(folder, "t", "--where", "size>=2000")
        report = json.loads(succeed([ALLIUM, "report", folder + "/t", "--json"]).stdout)
        # 4,000 by realloc, 3,000 by calloc, 8,888; and 44,444 in the child
        equal((report["total"]["live_bytes"], report["total"]["live_objects"]), (4000 + 3000 + 8888 + 44444, 4), "live")
        equal(report["trace"]["where"], "size>=2000", "trace")
        text = succeed([ALLIUM, "report", folder + "/t", "--no-pager"]).stdout.decode()
        check("those with size>=2000\n" in text, text)

        def births(name, *options):
            out = succeed([ALLIUM, "events", "%s/%s" % (folder, name), "--json", *options]).stdout.decode()
            rows = [json.loads(line) for line in out.splitlines()]
            return collections.Counter((r["event"], r["fields"]["size_bytes"]) for r in rows
                                       if r.get("event") in ("allium:malloc", "allium:calloc", "allium:realloc_end"))
        want = births("all", "--where", "size>=2000")
        want[("allium:realloc_end", 50)] += 1  # of the block that was kept
        equal(births("t"), want, "as events --where")


def threads():
    """Of a process that runs: the events of one thread, and the ends of its blocks."""
    for query, want in ("thread=%s size=222", 120), ("!thread=%s", 0):
        with service(["--trace"], "make", 50, 111, "say", "a", "wait", "make", 60, 222, "say", "b", "wait") as s:
            s.reach("a")
            tracer = s.begin("-o", "t", "--where", query % s.pid)
            s.go_on()
            s.reach("b")
            said = s.end(tracer)
            equal(trace_reader.calls(said, s.folder + "/t"), (want, 0, 0), said)
            check(", %d filtered, " % (120 - want) in said, said)


def agent():
    """Allocations that the agent excludes are not in the rings; frees are. It does not know a thread before the first
    event."""
    for options, want in ((",sizes=0-100+200-300", (0, 60, 110)), (",sizes=111-111", (50, 0, 110)),
                          (",threads=1-1", (1, 0, 110)), (",sizes=1-0", (0, 0, 110)), ("", (50, 60, 110))):
        with service(["--trace", "--flight"], "make", 50, 111, "make", 60, 222, "say", "a", "wait",
                     agent_options=options) as s:
            s.reach("a")
            s.call("snapshot", s.pid, "--trace", "-o", "t")
            found = trace_reader.events(s.folder + "/t")
            equal((trace_reader.count(found, 111), trace_reader.count(found, 222),
                   sum(e.name == "free" for e in found)), want, options)


def lost(folder, name, *options):
    """-> filtered and lost events of a program whose rings are too small for the ends of its blocks."""
    done = tap.run([ALLIUM, "trace", "-o", "%s/%s" % (folder, name), "--buffer", "64K", *options, "--",
                    folder + "/sizes"])
    said = done.stderr.decode()
    written, lost_events, later = trace_reader.said(said)
    return written + lost_events + later + int(re.search(r", (\d+) filtered", said).group(1)), lost_events


def room():
    """Also with losses, each event is counted once; babeltrace2 is told of losses, not of what is filtered."""
    with private_dir() as folder:
        program(folder)
        written = trace_reader.said(tap.run([ALLIUM, "trace", "-o", folder + "/all", "--",
                                             folder + "/sizes"]).stderr.decode())[0]
        happened, lost_events = lost(folder, "t", "--where", "size>=2000")
        # how many events of the group `life` there are differs
        check(abs(happened - written) <= trace_reader.LIFE_MOST, happened, written)
        found = trace_reader.events(folder + "/t", losses=lost_events > 0)
        check(len(found) <= 2 * BLOCKS // 10, len(found))


def ahead():
    """A clock that is a day ahead: the events are judged while the program runs, and in their order."""
    before = [*(["unshare"] if os.geteuid() == 0 else ["unshare", "-r"]), "--time", "--monotonic", "86400", "--fork"]
    with private_dir() as folder:
        program(folder)
        options = "--clock", "mono"
        everything, _ = traced(folder, "all", *options, before=before)
        found, _ = traced(folder, "t", *options, "--where", "size>=2000", before=before,
                          says=" of the events are in the future: ")
        equal(kinds(found), kinds(kept(everything, QUERIES["size>=2000"])), "counts")


def mistakes():
    """What --where cannot judge gets one line, before the program starts."""
    with private_dir() as folder:
        for words, line in [
                (["--where", "func:main"], "known only when the trace has ended: use allium events DIR --where"),
                (["--where", "size>"], "--where: query:"), (["--where", "colour:red"], "unknown field"),
                (["--where", "size>99999999999999999999"], "too large"),
                (["--flight", "--where", "size>1"], "--flight keeps all events: leave out --where")]:
            done = tap.run([ALLIUM, "trace", "-o", folder + "/t", *words, "--", "true"])
            equal(done.returncode, 2, done.stderr)
            check(line in done.stderr.decode(), words, done.stderr)
            check(not os.path.exists(folder + "/t"), words)


tap.main([
    ("the events that are kept, and the counts", exact),
    ("the figures of the blocks that are kept", figures),
    ("the events of one thread", threads),
    ("what the agent excludes", agent),
    ("losses", room),
    ("a clock that is ahead", ahead),
    ("mistakes", mistakes),
])
