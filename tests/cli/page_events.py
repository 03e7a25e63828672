# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --html` of a trace: the page has the events that `allium events --json` prints, one by one, or as many of
them as it has room for, and a browser shows them.
"""
import collections
import json
import sys

sys.dont_write_bytecode = True
import tap
from page_reader import Page, Shown, between
from tap import check, equal, succeed
from workdir import placed

MOST_EVENTS, MOST_BYTES = 20000, 8 << 20
# One thread: blocks of 100 to 1,099 bytes, every other one freed at once, the others after some time.
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[100];
int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < n; i++) {
        void *volatile p = malloc(100 + i % 1000);
        free(i % 2 ? p : kept[i % 100]);
        if (i % 2 == 0)
            kept[i % 100] = p;
        if (i % 100 == 99 && n < 1000)
            usleep(20000);
    }
    return 0;
}
"""


def record(place, n):
    with open(place.path("blocks.c"), "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-O1", "-g", "-fno-builtin", place.path("blocks.c"), "-o", place.path("blocks")])
    place.allium("trace", "--quiet", "--events", "alloc,begin", "-o", "t", "--", place.path("blocks"), str(n))


def page(place, source, *words):
    place.allium("export", source, "--html", "--force", "-o", "page.html", *words)
    found = Page(place.path("page.html"))
    found.policy()
    return found


def printed(place):
    """-> the events, without the first line and the last one"""
    return [json.loads(line) for line in place.allium("events", "t", "--json").out.splitlines()[1:-1]]


def listed(found):
    """-> (numbers of events, the events)"""
    e = found.header["events"]
    return found.column(e["numbers"]), [json.loads(line) for line in found.column(e["lines"])]


def names(found):
    """-> {name: number of events}"""
    return {k["name"]: sum(found.column(k["counts"])) for k in found.header["events"]["kinds"]}


def live_of(events, header):
    """The most live bytes in each step, of a program that does not call realloc."""
    blocks, most, now, last = {}, [0] * header["steps"], 0, 0
    for e in events:
        step = (e["since_began_ns"] - header["first_ns"]) // header["step_ns"]
        for last in range(last + 1, step + 1):
            most[last] = now
        if e["event"] in ("allium:malloc", "allium:calloc", "allium:memalign"):
            blocks[e["fields"]["ptr"]] = e["fields"]["size_bytes"]
            now += e["fields"]["size_bytes"]
        elif e["event"] == "allium:free":
            now -= blocks.pop(e["fields"]["ptr"], 0)
        check("realloc" not in e["event"], e)
        most[step] = max(most[step], now)
    return most


def said(found):
    return found.text.split("<pre>")[1].split("</pre>")[0]


def every_event(place):
    record(place, 300)
    want, found = printed(place), page(place, "t")
    numbers, have = listed(found)
    equal(have, want, "events")
    equal(numbers, list(range(len(want))), "numbers")
    equal(names(found), dict(collections.Counter(e["event"] for e in want)), "events by name")
    header = found.header["events"]
    equal((header["events"], header["lost_events"]), (len(want), 0), "events of the trace")
    spans = [e for e in want if e["duration_ns"] is not None]
    equal((header["spans"], header["listed_spans"]), (len(spans), len(spans)), "spans")
    check(len(spans) >= 500, len(spans))
    check("The page lists all %d events." % len(want) in said(found), said(found)[-500:])
    # Steps of time: each event is in its own.
    counts = [0] * header["steps"]
    for e in want:
        counts[(e["since_began_ns"] - header["first_ns"]) // header["step_ns"]] += 1
    have = [found.column(k["counts"]) for k in header["kinds"]]
    equal([sum(of) for of in zip(*have)], counts, "events by step")
    equal(found.column(header["live_most_bytes"]), live_of(want, header), "live bytes")


def spans_of_time(place):
    """Of a part of the trace the page has the events of that time."""
    record(place, 300)
    row, = json.loads(place.allium("sql", "--json", "t/profile.allium",
                                   "SELECT value FROM meta WHERE key = 'started_ns'").out)["rows"]
    began, want = int(row["value"]), printed(place)
    from_ns, to_ns = (want[len(want) * quarter // 4]["time_ns"] for quarter in (1, 3))
    since, until = "%dns" % (from_ns - began), "%dns" % (to_ns - began)
    for source, first, last in (("t@%s..%s" % (since, until), from_ns, to_ns), ("t@" + until, 0, to_ns),
                                ("t@%s.." % since, from_ns, 1 << 63)):
        part = [e for e in want if first < e["time_ns"] <= last]
        check(0 < len(part) < len(want), source, len(part))
        equal(listed(page(place, source))[1], part, "events of " + source)


def bounded(place):
    """Of a trace that is too large, the longest spans and the last events."""
    record(place, 12000)
    want = printed(place)
    check(len(want) > 2 * MOST_EVENTS, len(want))
    for words, most_bytes in ((), MOST_BYTES), (("--html-size", "1M"), 1 << 19):
        found = page(place, "t", *words)
        header = found.header["events"]
        numbers, have = listed(found)
        size = sum(len(line) + 1 for line in found.column(header["lines"]))
        check(len(have) <= MOST_EVENTS and size <= most_bytes, words, len(have), size)
        check(len(have) == MOST_EVENTS or size > most_bytes - 8192, "room that is not used:", words, len(have), size)
        equal(have, [want[number] for number in numbers], "events")
        equal(header["events"], len(want), "events of the trace")
        equal(sum(names(found).values()), len(want), "events in the chart")
        tail = next(i for i in range(len(numbers)) if numbers[i:] == list(range(int(numbers[i]), len(want))))
        check(len(numbers) - tail >= len(numbers) / 3, "the last events:", len(numbers) - tail)
        chosen = set(numbers)
        left = [e["duration_ns"] for i, e in enumerate(want) if i not in chosen and e["duration_ns"] is not None]
        shown = [e["duration_ns"] for e in have[:tail]]
        check(None not in shown and min(shown) >= max(left), "a long span is left out:", words, min(shown), max(left))
        equal(header["listed_spans"], sum(e["duration_ns"] is not None for e in have), "spans")
        text = "The page lists %d of %d events: the longest spans, and the last events. All: allium events t"
        check(text % (len(have), len(want)) in said(found), said(found)[-500:])
        if words:
            data = len(between(found.text, 'id="data">', "</script>"))
            check(data <= 1 << 20, "bytes of data:", data)
    Shown(place, "page.html", view="events")


def browser(place):
    """A browser shows the table in the order of time; a search leaves the rows that match."""
    record(place, 300)
    want = printed(place)
    found = page(place, "t")
    shown = Shown(place, "page.html", view="events")
    rows = shown.rows()
    equal(rows[0], ["Time ▴", "Delta", "CPU", "Thread", "Event", "Took", "Fields", "Site"], "columns")
    check(len(rows) > 5, rows)
    for row, e in zip(rows[1:], want):
        equal((row[0], row[2], row[4]), ("%.9f" % (e["since_began_ns"] / 1e9), str(e["cpu"]), e["event"][7:]), "a row")
        check(row[3].endswith("(%d)" % e["thread"]) or row[3] == str(e["thread"]), row)
        size = e["fields"].get("size_bytes")
        check(size is None or "size_bytes=%d" % size in row[6], row, e)
    check("All %d events." % len(want) in shown.dom, "the sentence")
    for name, n in names(found).items():
        check("<li>%s: %d events</li>" % (name[7:], n) in shown.dom, "what is told of", name)
    check("<b>%d events</b>" % len(want) in shown.dom, "the line at the bottom")
    matching = [e for e in want if e["fields"].get("size_bytes") == 250]
    check(matching, "blocks of 250 bytes")
    shown = Shown(place, "page.html", view="events", search=r"\bsize_bytes=250\b")
    equal(len(shown.rows()) - 1, len(matching), "rows that match")
    check("<b>%d of %d events</b>" % (len(matching), len(want)) in shown.dom, "the line at the bottom")
    longest = max(e["duration_ns"] for e in want if e["duration_ns"] is not None)
    row = Shown(place, "page.html", view="events", sort="Took").rows()[1]
    e, = [e for e in want if e["duration_ns"] == longest][:1]
    equal(row[4], e["event"][7:], "the longest span")
    place.allium("report", "t", "--html", "report.html")
    equal(listed(Page(place.path("report.html"))), listed(found), "events in the page of report")


def others(place):
    """The pages of other sources have no events, nor what shows them."""
    found = page(place, place.recording("1"))
    check("events" not in found.header and "alliumEvents=" not in found.text, "events")
    check("Events</button>" not in Shown(place, "page.html", view="events").dom, "a view of events")


tap.main([
    ("every event of a trace is in the page", placed(every_event)),
    ("events of a part of the trace", placed(spans_of_time)),
    ("of many events the longest spans, and the last ones", placed(bounded)),
    ("events in a browser", placed(browser)),
    ("pages without events", placed(others)),
])
