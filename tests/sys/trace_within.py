# SPDX-License-Identifier: BSD-2-Clause
"""`allium events` and `allium export --chrome` of a trace with the kernel's events: what lies within what, and how long it
took, beside what babeltrace2's library reads in the same folder and what the program knows of itself.
"""
import collections
import gzip
import json
import os
import re
import subprocess
import sys

import bt2
import jsonschema

sys.dont_write_bytecode = True
import lib
import tap
from page_reader import Page
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
LIBRARY = built("TEST_TAGS_LIBRARY")
INCLUDE = os.path.realpath(__file__ + "/../../../include")
# Below the agent: malloc(777) sleeps, and says how long that was at most.
BELOW = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), __libc_free(void *);
void *calloc(size_t n, size_t each) { return __libc_calloc(n, each); }
void *realloc(void *old, size_t size) { return __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) { return !(*out = __libc_memalign(alignment, size)); }
void free(void *p) { __libc_free(p); }
int64_t slept_ns;
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
void *malloc(size_t size)
{
    if (size == 777) {
        const int64_t begin = now();
        usleep(2000);
        slept_ns += now() - begin;
    }
    return __libc_malloc(size);
}
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <allium/event.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#define SIZE (256 * 4096)
extern int64_t slept_ns;
ALLIUM_SPAN(shop, parse, ALLIUM_U64(bytes), ALLIUM_STR(name, 16));
ALLIUM_SPAN(shop, other, ALLIUM_I64(number));
ALLIUM_EVENT(shop, done, ALLIUM_I32(status), ALLIUM_F64(price), ALLIUM_STR(who, 24), ALLIUM_HEX(at), ALLIUM_U64(most));
static long faults(void) { struct rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_minflt + u.ru_majflt; }

/* calloc() clears memory that it had before, and whose pages the kernel took since. */
static long touch(void)
{
    char *all = malloc(SIZE);
    memset(all, 1, SIZE);
    char *begin = (char *)(((uintptr_t)all + 4095) & -4096);
    free(all);
    madvise(begin, SIZE - 8192, MADV_DONTNEED);
    const long before = faults();
    char *cleared = calloc(1, SIZE);
    const long after = faults();
    free(cleared);
    return after - before;
}

static void *work(void *arg)
{
    pthread_setname_np(pthread_self(), "say \"hello\"");
    for (int i = 0; i < 100; i++) {
        allium_begin(shop, parse, .bytes = i, .name = "a\"b\\\n\x01\xff\xc3\xa9");
        char *p = malloc(100);
        allium_begin(shop, other, .number = -i);
        p = realloc(p, 2000);
        allium_end(shop, parse); /* crosses */
        free(p);
        allium_end(shop, other);
        allium_emit(shop, done, .status = -i, .price = i / 3.0, .who = "caf\xc3\xa9", .at = i, .most = UINT64_MAX);
    }
    return arg;
}

int main(void)
{
    long met = 0;
    pthread_t thread;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    touch();
    faults();
    free(malloc(16 * 1024));
    for (int i = 0; i < 20; i++)
        met += touch();
    for (int i = 0; i < 10; i++)
        free(malloc(777));
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    printf("%d %ld %lld\n", (int)getpid(), met, (long long)slept_ns);
    fflush(stdout);
    allium_begin(shop, parse, .bytes = 7); /* never ends */
    return 0;
}
"""
ENDS = {"malloc": "malloc", "calloc": "calloc", "memalign": "memalign", "free_end": "free", "realloc_end": "realloc",
        "page_fault_end": "page fault", "reclaim_end": "reclaim"}
BEGINS = {"malloc_begin": "malloc", "calloc_begin": "calloc", "memalign_begin": "memalign", "free": "free",
          "realloc_begin": "realloc", "page_fault_begin": "page fault", "reclaim_begin": "reclaim"}
CALLS = ("malloc", "calloc", "memalign", "realloc", "free")

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number", "minimum": 0}


def record(phase, **members):
    return {"type": "object", "additionalProperties": False, "required": ["ph", "name", "pid", *members],
            "properties": {"ph": {"const": phase}, "name": TEXT, "pid": WHOLE, **members}}


OF_THREAD = {"tid": WHOLE, "cat": {"enum": ["allocator", "program", "kernel", "sched"]}, "ts": NUMBER}
ARGS = {"args": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}}
# By the Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["traceEvents", "displayTimeUnit", "otherData"],
    "properties": {
        "displayTimeUnit": {"const": "ns"},
        "otherData": {"type": "object", "required": ["exporter", "began_realtime_ns"]},
        "traceEvents": {"type": "array", "items": {"anyOf": [
            {**record("M", tid=WHOLE, args={"type": "object", "required": ["name"], "properties": {"name": TEXT}})},
            record("X", dur=NUMBER, **OF_THREAD, **ARGS),
            record("i", s={"const": "t"}, **OF_THREAD, **ARGS),
            record("C", ts=NUMBER, args={"type": "object", "required": ["bytes"], "additionalProperties": False,
                                         "properties": {"bytes": {"type": "integer", "minimum": 0}}}),
            record("b", id=TEXT, **OF_THREAD, **ARGS), record("e", id=TEXT, **OF_THREAD),
        ]}},
    },
}


class Event:
    def __init__(self, message):
        event = message.event
        self.ns = message.default_clock_snapshot.ns_from_origin
        self.origin, self.name = event.name.split(":", 1)
        self.thread = int(event.common_context_field["vtid"])
        self.process = int(event.packet.context_field["vpid"])
        self.fields = event.payload_field

    def number(self, name):
        return int(self.fields[name])


class Traced:
    def __init__(self, folder, kernel="faults,reclaim,sched,rss"):
        for name, text in ("below", BELOW), ("within", PROGRAM):
            with open("%s/%s.c" % (folder, name), "w") as file:
                file.write(text)
        succeed(["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", folder + "/below.c", "-o", folder + "/libbelow.so"])
        succeed(["cc", "-O1", "-g", "-fno-builtin", "-I", INCLUDE, folder + "/within.c", "-o", folder + "/within",
                 folder + "/libbelow.so", LIBRARY, "-Wl,-rpath," + folder + ":" + os.path.dirname(LIBRARY)])
        done = tap.run([ALLIUM, "trace", "--events", "alloc,begin,user", "--kernel", kernel, "--period", "1T", "-o",
                        folder + "/t", "--", folder + "/within"])
        equal(done.returncode, 0, done.stderr)
        self.folder, self.said = folder + "/t", done.stderr.decode()
        missed = re.search(r"; up to (\d+) more may", self.said)
        lib.excuse(int(missed.group(1)) if missed else 0)
        equal(re.findall(r"(\d+) lost", self.said), ["0", "0"], self.said)
        lib.excuse(self.said.count("have no end in the trace") + self.said.count("have no beginning"))
        check("no end in the trace" not in self.said and "no beginning" not in self.said, self.said)
        pid, met, slept = done.stdout.decode().split()
        self.pid, self.met, self.slept_ns = int(pid), int(met), int(slept)
        self.events = [Event(m) for m in bt2.TraceCollectionMessageIterator(self.folder)
                       if type(m) is bt2._EventMessageConst]
        self.spans = spans(self.events, self.pid)


def spans(events, process):
    """-> {(thread, name): [(begin, end)]} of what ends; each kind by itself, without a stack of all."""
    found, begun = collections.defaultdict(list), {}
    for e in events:
        if e.name == "sched_switch":
            if e.number("pid") == process:
                begun[e.thread, "off CPU"] = [e.ns]
            key = e.number("next_tid"), "off CPU"
            if begun.get(key):
                found[key].append((begun[key].pop(), e.ns))
        name = BEGINS.get(e.name) if e.origin != "shop" else e.name.endswith("_begin") and "shop:" + e.name[:-6]
        if name:
            begun.setdefault((e.thread, name), []).append(e.ns)
        name = ENDS.get(e.name) if e.origin != "shop" else e.name.endswith("_end") and "shop:" + e.name[:-4]
        if name and begun.get((e.thread, name)):
            found[e.thread, name].append((begun[e.thread, name].pop(), e.ns))
    return found


def union(intervals):
    """-> how long the union of intervals is"""
    total = end = 0
    for begin, until in sorted(intervals):
        total += max(0, until - max(begin, end))
        end = max(end, until)
    return total


def clipped(intervals, begin, end):
    return [(max(a, begin), min(b, end)) for a, b in intervals if a < end and b > begin]


def listed(trace, *words):
    done = tap.run([ALLIUM, "events", trace.folder, "--json", *words])
    equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in done.stdout.decode().splitlines()[1:-1]]


def nested():
    """The faults that the program has met in calloc() lie in it; so does its sleep in malloc(); durations are exact."""
    with private_dir() as folder:
        t = Traced(folder)
        rows = listed(t)
        large = {}  # thread: within a calloc() of the large block
        met = slept = 0
        for e in rows:
            name = e["event"]
            if name == "allium:calloc_begin" and e["fields"]["size_bytes"] == 256 * 4096:
                large[e["thread"]] = 0
            if name == "allium:calloc" and e["thread"] in large:
                met += large.pop(e["thread"]) if e["fields"]["size_bytes"] == 256 * 4096 else 0
            if name == "kernel:page_fault_end" and e["within"] == "calloc" and e["thread"] in large:
                large[e["thread"]] += 1
                check(e["depth"] == 1 and e["duration_ns"] > 0, e)
            if name == "kernel:sched_switch" and e["fields"]["state"] == "sleeping" and e["within"] == "malloc":
                slept += 1
        ends = {e.ns for e in t.events if e.name == "calloc" and e.number("size") == 256 * 4096}
        calls = [(a, b) for a, b in t.spans[t.pid, "calloc"] if b in ends]
        equal(len(calls), 21, "callocs")
        inside = [len(clipped(t.spans[t.pid, "page fault"], a, b)) for a, b in calls]
        # Where a call begins a packet of the agent's ring, getrusage counts its 16 pages: they come without a fault.
        made = t.met - sum(inside[1:])
        check(made % 16 == 0 and 0 <= made <= 4 * 16, "faults that getrusage counts in calloc()", t.met, inside)
        equal(met, sum(inside), "faults within calloc")
        equal(slept, 10, "sleeps within malloc")
        durations = collections.Counter((e["thread"], e["duration_ns"]) for e in rows if e["duration_ns"] is not None)
        want = collections.Counter((thread, b - a) for (thread, name), all in t.spans.items() if name != "off CPU"
                                   for a, b in all)
        equal(durations, want, "durations")
        equal(collections.Counter(e["off_cpu_ns"] for e in rows if e["off_cpu_ns"] is not None),
              collections.Counter(b - a for (_, name), all in t.spans.items() if name == "off CPU" for a, b in all),
              "times off the CPU")


def paged():
    """The page has all events, also the kernel's, with what they lie in and how long it took."""
    with private_dir() as folder:
        t = Traced(folder)
        done = tap.run([ALLIUM, "export", t.folder, "--html", "-o", folder + "/page.html"])
        equal(done.returncode, 0, done.stderr)
        found = Page(folder + "/page.html")
        events, rows = found.header["events"], listed(t)
        have = [json.loads(line) for line in found.column(events["lines"])]
        equal(have, [rows[int(number)] for number in found.column(events["numbers"])], "events")
        check(len(rows) > 20000 or len(have) == len(rows), len(rows), len(have))
        equal({k["name"]: sum(found.column(k["counts"])) for k in events["kinds"]},
              dict(collections.Counter(e["event"] for e in rows)), "events by name")
        named = {(m["name"], m["tid"]): m["args"]["name"] for m in events["tracks"]}
        for m in json.loads(tap.run([ALLIUM, "export", t.folder, "--chrome"]).stdout.decode())["traceEvents"]:
            check(m["ph"] != "M" or named[m["name"], m["tid"]] == m["args"]["name"], "name of a thread:", m, named)


def shares():
    """--by call, and the summary's line: unions of intervals within calls, to the nanosecond."""
    with private_dir() as folder:
        t = Traced(folder)
        rows = {row["call"]: row for row in listed(t, "--by", "call")}
        sums = collections.Counter()
        for call in CALLS:
            want = collections.Counter()
            for (thread, name), all in t.spans.items():
                for begin, end in all if name == call else ():
                    parts = {key: clipped(t.spans.get((thread, kind), []), begin, end) for key, kind in (
                        ("faults_ns", "page fault"), ("reclaim_ns", "reclaim"), ("off_cpu_ns", "off CPU"))}
                    want.update({"calls": 1, "time_ns": end - begin, **{key: union(i) for key, i in parts.items()}})
                    want["rest_ns"] += end - begin - union([i for each in parts.values() for i in each])
            if want["calls"]:
                row = rows.pop(call)
                equal({key: row[key] for key in row if key not in ("call", "longest_ns")},
                      {key: want[key] for key in row if key not in ("call", "longest_ns")}, call)
                sums += want
        equal(rows, {}, "other rows")
        check(20000000 <= sums["off_cpu_ns"] and t.slept_ns >= 20000000, sums, t.slept_ns)
        line = "%d calls of the allocator took" % sums["calls"]
        check(line in t.said and "off the CPU" in t.said, t.said)
        share = float(re.search(r"page faults [^(]*\((\S+) %\)", t.said).group(1))
        check(abs(share - 100 * sums["faults_ns"] / sums["time_ns"]) <= 0.051, share, sums)


def chrome():
    """Each span is a slice, each event an instant; names, counters, nesting; as a file of gzip, too."""
    with private_dir() as folder:
        t = Traced(folder)
        done = tap.run([ALLIUM, "export", t.folder, "--chrome", "-o", folder + "/o.json.gz"])
        equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "export")
        with gzip.open(folder + "/o.json.gz") as file:
            document = json.loads(file.read().decode())
        plain = tap.run([ALLIUM, "export", t.folder, "--chrome"])
        equal(json.loads(plain.stdout.decode()), document, "without gzip")
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        records = collections.defaultdict(list)
        for r in document["traceEvents"]:
            records[r["ph"]].append(r)
        began = min(e.ns for e in t.events)

        def ns(micro):
            return round(micro * 1000)

        have = collections.Counter((r["tid"], r["name"], ns(r["ts"]) + began, ns(r["dur"]))
                                   for r in records["X"] if not r["args"].get("unfinished"))
        ends = {(r["id"], r["tid"]): r for r in records["e"]}
        have.update((r["tid"], r["name"], ns(r["ts"]) + began, ns(ends[r["id"], r["tid"]]["ts"]) - ns(r["ts"]))
                    for r in records["b"])
        want = collections.Counter((thread, name, a, b - a) for (thread, name), all in t.spans.items() for a, b in all)
        equal((have - want, want - have), ({}, {}), "slices")
        equal((len(records["b"]), len(records["e"])), (100, 100), "spans that cross")
        open_ones = [r for r in records["X"] if r["args"].get("unfinished") and r["cat"] == "program"]
        equal([(r["name"], r["args"]["bytes"]) for r in open_ones], [("shop:parse", 7)], "unfinished")
        last_end = {}
        for r in sorted(records["X"], key=lambda r: (r["tid"], r["ts"], -r["dur"])):
            stack = last_end.setdefault(r["tid"], [])
            while stack and stack[-1] <= ns(r["ts"]):
                stack.pop()
            check(not stack or ns(r["ts"]) + ns(r["dur"]) <= stack[-1], "it does not nest:", r)
            stack.append(ns(r["ts"]) + ns(r["dur"]))
        done = [r["args"] for r in records["i"] if r["name"] == "shop:done"]
        equal(done[99], {"status": -99, "price": 33.0, "who": "café", "at": "0x63", "most": 2 ** 64 - 1}, "arguments")
        equal(sorted(ns(r["ts"]) + began for r in records["i"] if r["cat"] == "program"),
              [e.ns for e in t.events if e.origin == "shop" and e.name == "done"], "instants")
        parse = [r["args"] for r in records["b"] if r["name"] == "shop:parse"]
        equal(parse[1], {"bytes": 1, "name": "a\"b\\\n\x01\\xffé"}, "escapes")
        names = {(r["name"], r["tid"]): r["args"]["name"] for r in records["M"]}
        equal(names["process_name", t.pid], "within", "process")
        check('say "hello"' in names.values(), names)
        counters(t, records["C"], began, ns)


def counters(t, records, began, ns):
    blocks, points, live = {}, [], 0
    for e in (e for e in t.events if e.origin == "allium"):
        before = live
        if e.name in ("free", "realloc_begin"):
            live -= blocks.pop(e.number("ptr"), 0)
        if e.name in ("malloc", "calloc", "memalign", "realloc_end"):
            blocks[e.number("ptr")] = e.number("size")
            live += e.number("size")
        if live != before:
            points.append((e.ns, live))
    equal([(ns(r["ts"]) + began, r["args"]["bytes"]) for r in records if r["name"] == "live"], points, "live bytes")
    resident = [(e.ns, e.number("bytes")) for e in t.events
                if e.name == "rss" and e.number("own") and "anonymous" in e.fields["kind"].labels]
    equal([(ns(r["ts"]) + began, r["args"]["bytes"]) for r in records if r["name"] == "resident: anonymous"], resident,
          "resident")


def unknown():
    """What was not recorded is not said to be 0."""
    with private_dir() as folder:
        t = Traced(folder, "sched")
        check("not recorded: page faults, reclaim" in t.said, t.said)
        for row in listed(t, "--by", "call"):
            equal((row["faults_ns"], row["reclaim_ns"], row["off_cpu_ns"] is None), (None, None, False), row)


lib.main([
    ("faults and sleeps lie in the calls that met them", nested),
    ("the allocator's time", shares),
    ("a file for Chrome", chrome),
    ("the page of a trace has them all", paged),
    ("parts that were not recorded", unknown),
])
