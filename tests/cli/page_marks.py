# SPDX-License-Identifier: BSD-2-Clause
"""The page of a trace beside its events: spans that have not ended, the events that --where leaves, and the marks of what
is not known for sure. The truth is what babeltrace2's library reads, what the program was made to do, and `allium events`.
"""
import collections
import json
import os
import sys

import bt2

sys.dont_write_bytecode = True
import tap
from page_reader import Page, Shown
from tap import built, check, equal, succeed
from trace_forge import Trace
from workdir import placed

LIBRARY = built("TEST_TAGS_LIBRARY")
INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
SECOND = 1000000000
# Below the agent: malloc(777) does not return.
BELOW = """
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
void *malloc(size_t size)
{
    if (size == 777)
        kill(getpid(), SIGKILL);
    return __libc_malloc(size);
}
"""
# Two threads are within spans when the program is killed within malloc().
OPEN = """
#include <allium/event.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
ALLIUM_SPAN(shop, whole, ALLIUM_U64(n));
ALLIUM_SPAN(shop, part, ALLIUM_U64(n));
static pthread_barrier_t barrier;
static void *work(void *arg)
{
    allium_begin(shop, part, .n = 1);
    allium_begin(shop, whole, .n = 2);
    for (int i = 0; i < 5; i++) {
        allium_begin(shop, part, .n = 3);
        free(malloc(50));
        allium_end(shop, part);
    }
    pthread_barrier_wait(&barrier);
    pause();
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    allium_begin(shop, whole, .n = 4);
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 20; i++)
        free(malloc(100 + i));
    void *volatile p = malloc(777);
    free(p);
    allium_end(shop, whole);
    return 0;
}
"""
# Blocks of sizes that tell who made them; some live on. outer() calls inner(), which calls malloc().
CALLS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#define FAR __attribute__((noinline, noclone))
static void *volatile first_ones[50], *volatile second_ones[50];
FAR static void *inner(size_t size) { void *volatile p = malloc(size); return p; }
FAR static void *outer(size_t size) { void *volatile p = inner(size); return p; }
FAR static void *first(size_t size) { void *volatile p = malloc(size); return p; }
static void *work(void *arg)
{
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < 30; i++)
        free(first(5000 + i));
    return arg;
}
int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 50; i++) {
        first_ones[i] = first(1000 + i);
        second_ones[i] = outer(3000 + i);
        free(inner(2000 + i));
    }
    for (int i = 0; i < 50; i++) {
        first_ones[i] = realloc(first_ones[i], 4000 + i);
        if (i % 2)
            free(first_ones[i]);
        if (i % 5)
            free(second_ones[i]);
    }
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""


def build(place, name, text, *words):
    with open(place.path(name + ".c"), "w") as file:
        file.write(text)
    out, plain = place.path(name), ("-fno-builtin", "-fno-optimize-sibling-calls")
    succeed(["cc", "-O1", "-g", *plain, "-I", INCLUDE, place.path(name + ".c"), "-o", out, *words])
    return out


def page(place, source, *words, name="page.html"):
    place.allium("export", source, "--html", "--force", "-o", name, *words)
    found = Page(place.path(name))
    found.policy()
    return found


def printed(place, *words, source="t"):
    """-> the events, and the last line"""
    lines = [json.loads(line) for line in place.allium("events", source, "--json", *words).out.splitlines()]
    return lines[1:-1], lines[-1]


def listed(found):
    return [json.loads(line) for line in found.column(found.header["events"]["lines"])]


def said(found):
    return found.text.split("<pre>")[1].split("</pre>")[0]


def read_by_bt2(folder):
    """-> [(ns, name, thread)] of all events, [(CPU, from, to, number)] of losses; times since the first event"""
    events, lost = [], []
    for m in bt2.TraceCollectionMessageIterator(folder):
        if type(m) is bt2._EventMessageConst:
            thread = int(m.event.common_context_field["vtid"])
            events.append((m.default_clock_snapshot.ns_from_origin, m.event.name, thread))
        elif type(m) is bt2._DiscardedEventsMessageConst:
            first, last = m.beginning_default_clock_snapshot, m.end_default_clock_snapshot
            lost.append((first.ns_from_origin, last.ns_from_origin, m.count))
    began = min(ns for ns, _, _ in events)
    return [(ns - began, name, thread) for ns, name, thread in events], [(a - began, b - began, n) for a, b, n in lost]


# ---- open spans ----

def open_by_bt2(events):
    """-> {(name, thread, begin, duration): depth} of what does not end; the last event is the end of the trace"""
    last, stacks = max(ns for ns, _, _ in events), collections.defaultdict(list)
    for ns, name, thread in events:
        name = name.replace("allium:", "")
        if name.endswith("_begin") and not name.startswith("process") and not name.startswith("thread"):
            stacks[thread].append((name[:-6], ns))
        elif name == "free":
            stacks[thread].append((name, ns))
        elif name in ("malloc", "calloc", "memalign") or name.endswith("_end") and not name.startswith("thread"):
            equal(stacks[thread].pop()[0], name.replace("_end", ""), "the span that ends")
    return {(name, thread, ns, last - ns): depth
            for thread, stack in stacks.items() for depth, (name, ns) in enumerate(stack)}


def record_open(place):
    below = build(place, "libbelow.so", BELOW, "-shared", "-fPIC")
    program = build(place, "open", OPEN, below, LIBRARY, "-lpthread",
                    "-Wl,-rpath,%s:%s" % (place.folder, os.path.dirname(LIBRARY)))
    place.allium("trace", "--quiet", "--events", "alloc,begin,user", "-o", "t", "--", program, code=137)


def open_spans(place):
    record_open(place)
    want = open_by_bt2(read_by_bt2(place.path("t"))[0])
    equal(sorted(name for name, *_ in want), ["malloc", "shop:part", "shop:whole", "shop:whole"], want)
    events, last = printed(place)
    found = page(place, "t")
    equal(listed(found), events, "events")
    header = found.header["events"]
    for where, spans in ("page", header["open"]), ("events", last["open_spans"]):
        equal({(s["name"], s["thread"], s["since_began_ns"], s["duration_ns"]): s["depth"] for s in spans}, want, where)
        lengths = [s["duration_ns"] for s in spans]
        equal(lengths, sorted(lengths, reverse=True), where)
    equal(header["open_spans"], 4, "open spans")
    for span, row in zip(header["open"], header["open_rows"]):  # no event is left out here: a row is a number
        e = events[row]
        equal((e["event"].replace("allium:", "").replace("_begin", ""), e["thread"], e["since_began_ns"]),
              (span["name"], span["thread"], span["since_began_ns"]), "the row of a beginning")
    text = place.allium("events", "t").err
    check("4 spans have begun and not ended: shop:whole of thread " in text, text)
    place.allium("export", "t", "--chrome", "-o", "c.json")
    with open(place.path("c.json")) as file:
        slices = [r for r in json.load(file)["traceEvents"] if r.get("args", {}).get("unfinished")]
    equal({(r["name"], r["tid"], round(r["ts"] * 1000), round(r["dur"] * 1000)) for r in slices}, set(want), "slices")
    shown = Shown(place, "page.html", view="events")
    for name, thread, *_ in want:
        check("<li>%s: open for " % name in shown.dom, name)
    check("4 spans have begun and not ended." in shown.dom and "▸ open spans" in shown.dom, "sentence and legend")
    rows = Shown(place, "page.html", view="events", search=r"\bopen$").rows()
    equal([row[rows[0].index("Mark")] for row in rows[1:]], ["open"] * 4, rows)


def open_in_a_part(place):
    """What is open at the end of a part; what matches --where alone."""
    record_open(place)
    events, _ = printed(place)
    row, = json.loads(place.allium("sql", "--json", "t/profile.allium",
                                   "SELECT value FROM meta WHERE key = 'started_ns'").out)["rows"]
    middle = [i for i, e in enumerate(events) if e["event"] == "shop:part_begin"][3]
    header = page(place, "t@%dns" % (events[middle]["time_ns"] - int(row["value"]))).header["events"]
    part = [(e["since_began_ns"], e["event"], e["thread"]) for e in events if e["time_ns"] <= events[middle]["time_ns"]]
    equal({(s["name"], s["thread"], s["since_began_ns"], s["duration_ns"]): s["depth"] for s in header["open"]},
          open_by_bt2(part), "open at the end of a part")
    header = page(place, "t", "--where", "size=777").header["events"]
    equal([(s["name"], s["depth"]) for s in header["open"]], [("malloc", 1)], "open spans that match")
    equal([e["event"] for e in printed(place, "--where", "size=777")[0]], ["allium:malloc_begin"], "events --where")
    equal([s["name"] for s in printed(place, "--where", "size=777")[1]["open_spans"]], ["malloc"], "open_spans --where")


# ---- --where ----

def of_blocks(events, matches):
    """The events that match, and the ends of the lives of blocks whose beginnings do, as the program made them."""
    kept, blocks, moving = [], set(), {}
    for e in events:
        name, ptr, thread = e["event"].replace("allium:", ""), e["fields"].get("ptr"), e["thread"]
        if name == "free":
            is_left = ptr in blocks
            blocks.discard(ptr)
        elif name == "realloc_begin":
            is_left = moving[thread] = ptr in blocks
            blocks.discard(ptr)
        else:
            is_left = matches(e) or name == "realloc_end" and moving.pop(thread)
            if is_left and name in ("malloc", "calloc", "memalign", "realloc_end"):
                blocks.add(ptr)
        if is_left:
            kept.append(e)
    return kept


def where(place):
    program = build(place, "calls", CALLS, "-lpthread")
    place.allium("trace", "--quiet", "--stacks", "full", "--period", "1", "-o", "t", "--", program)
    events, _ = printed(place)
    process, = {e["process"] for e in events if e["event"] == "allium:malloc"}
    worker, = {e["thread"] for e in events if e["fields"].get("size_bytes") == 5000}
    size = lambda e: e["fields"].get("size_bytes", -1)
    cases = [
        ("size:1k..2k", lambda e: 1024 <= size(e) <= 2048),
        ("func:first", lambda e: e["function"] == "first"),
        ("func:inner", lambda e: e["function"] == "inner"),
        ("func:outer", lambda e: 3000 <= size(e) < 3050),  # only the whole stack has it
        ("func:inner !func:outer size>0", lambda e: e["function"] == "inner" and 2000 <= size(e) < 2050),
        ("file:calls.c size:1000..1009", lambda e: 1000 <= size(e) < 1010),
        ("thread:worker size>=5000", lambda e: e["thread"] == worker and size(e) >= 5000),
        ("pid:%d" % process, lambda e: e["process"] == process),
        ("pid:1", lambda e: False),
        ("age>0s", lambda e: False),
    ]
    for query, matches in cases:
        want = of_blocks(events, matches)
        found = page(place, "t", "--where", query)
        equal(listed(found), want, "events that " + query + " leaves")
        header = found.header["events"]
        equal((header["all_events"], header["events"]), (len(events), len(want)), query)
        words = header["filter"].replace(">", "&gt;").replace("<", "&lt;")
        check(words.startswith("where " + query[:3]), words, query)
        have = {k["name"]: sum(found.column(k["counts"])) for k in header["kinds"]}
        equal(have, dict(collections.Counter(e["event"] for e in want)), "events by name")
        text = "The page lists all %d events that match (%s), of %d.\n" % (len(want), words, len(events))
        check(text in said(found), said(found)[-400:])
        equal("no age" in said(found), "age" in query, query)
        if query in ("size:1k..2k", "func:first", "func:inner"):  # `allium events` knows these, too
            same = [e for e in printed(place, "--where", query)[0] if "size_bytes" in e["fields"]]
            equal([e for e in want if "size_bytes" in e["fields"] and matches(e)], same, "events --where " + query)
    found = page(place, "t", "--where", "func:first")
    live, blocks = found.column(found.header["events"]["live_most_bytes"]), {}
    for e in listed(found):
        if e["event"] in ("allium:free", "allium:realloc_begin"):
            blocks.pop(e["fields"]["ptr"])
        else:
            blocks[e["fields"]["ptr"]] = size(e)
    equal(sum(blocks.values()), sum(4000 + i for i in range(0, 50, 2)), "bytes that first() has in the end")
    check(live[-1] >= sum(blocks.values()), live[-5:])
    shown = Shown(place, "page.html", view="events")
    text = "All %d events that match (where func:first), of %d." % (len(listed(found)), len(events))
    check(text in shown.dom, text)
    place.allium("report", "t", "--html", "report.html", "--where", "func:first")
    equal(listed(Page(place.path("report.html"))), listed(found), "events in the page of report")
    place.allium("report", "t", "--html", "older.html", "--older-than", "1ns")
    equal(listed(Page(place.path("older.html"))), [], "events have no age")


# ---- marks ----

def doubts(place):
    """The order of two events is in doubt, and a time was not measured: as `allium events` marks them."""
    trace = Trace(place.path("t"))
    trace.stream(0, (SECOND, "malloc", 16, 100), (SECOND + 3000, "malloc", 32, 1000), (SECOND + 9000, "malloc", 32, 7),
                 (SECOND + 20000, "malloc", 48, 5))
    trace.stream(1, (SECOND + 2990, "free", 32), (SECOND + 19999, "free", 64))
    for clocks, marked in ((), [2]), ([(0, 2000)], [2, 5]):
        trace.describe(*clocks)
        events, _ = printed(place)
        found = page(place, "t")
        equal(listed(found), events, "events")
        equal([i for i, e in enumerate(events) if e["doubtful"]], sorted(set(marked)), events)
        shown = Shown(place, "page.html", view="events")
        rows = shown.rows()
        at = rows[0].index("Mark")
        equal([row[at] for row in rows[1:]], ["<" if e["doubtful"] else "" for e in events], "the column")
        check("<b>&lt;</b> The event happened before an event above it" in shown.dom, "the words")
        check('title="The event happened before an event above it' in shown.dom, "the tooltip")
    place.allium("trace", "--quiet", "--clock", "every:8", "-o", "e", "--", "sh", "-c", "true")
    events, _ = printed(place, source="e")
    found = page(place, "e")
    equal(listed(found), events, "events of which some have times")
    check(any(e["flags"] & 4 for e in events), events[:20])
    rows = Shown(place, "page.html", view="events").rows()
    at = rows[0].index("Mark")
    equal([row[at] for row in rows[1:]], ["~" if e["flags"] & 4 else "" for e in events[:len(rows) - 1]], "the column")
    check(found.header["events"]["bounds"], "the order of events is not sure: live bytes are bounds")


def losses(place):
    """Stretches in which events were lost, as babeltrace2 has them."""
    trace = Trace(place.path("t"))
    at = lambda us: SECOND + us * 1000
    trace.packets(0, (0, (at(0), "malloc", 16, 100), (at(10), "malloc", 32, 100)),
                  (7, (at(500), "malloc", 48, 100), (at(510), "free", 16)),
                  (7, (at(600), "malloc", 64, 100)),
                  (9, (at(2000), "malloc", 80, 100)), (9, (at(5000), "malloc", 96, 100)))
    trace.packets(1, (0, (at(1), "malloc", 112, 5), (at(4000), "malloc", 128, 5)))
    _, lost = read_by_bt2(place.path("t"))
    found = page(place, "t")
    header = found.header["events"]
    equal([(l["from_ns"], l["to_ns"], l["events"]) for l in header["lost"]], lost, "stretches")
    equal(sum(n for *_, n in lost), 9, "babeltrace2's count")
    equal((header["lost_events"], header["bounds"], [l["cpu"] for l in header["lost"]]), (9, True, [0, 0]), "losses")
    events, _ = printed(place)
    equal(listed(found), events, "events")
    shown = Shown(place, "page.html", view="events")
    rows = shown.rows()
    column = rows[0].index("Mark")
    want = ["lost" if e["cpu"] == 0 and any(a <= e["since_began_ns"] <= b for a, b, _ in lost) else "" for e in events]
    equal([row[column] for row in rows[1:]], want, "the column")
    check(want.count("lost") not in (0, len(want)), want)
    for words in ("9 events were lost while the trace was recorded.", "<b>lost</b> The event is from a CPU and a time of which",
                  "lost on CPU 0: 7 events at 0.000010000 – 0.000510000", "live bytes, up to ~", "events were lost</span>",
                  "~ marks a figure that may be too high or too low"):
        check(words in shown.dom, words)
    trace.packets(0, (0, (at(0), "malloc", 16, 100), (at(10), "malloc", 32, 100)))
    header = page(place, "t").header["events"]
    equal([header[key] for key in ("lost", "lost_events", "bounds", "open")], [[], 0, False, []], "without losses")
    dom = Shown(place, "page.html", view="events").dom
    check("Mark</button>" not in dom and "~" not in dom.split('class="events"')[1], "marks without a reason")


tap.main([
    ("spans that have not ended", placed(open_spans)),
    ("open spans of a part, and those that match", placed(open_in_a_part)),
    ("the events that --where leaves", placed(where)),
    ("events whose order or time is not sure", placed(doubts)),
    ("where events were lost", placed(losses)),
])
