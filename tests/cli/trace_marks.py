# SPDX-License-Identifier: BSD-2-Clause
"""What a trace does not know for sure is marked: the order of events that are closer than the clock is good, events that
happened before those above them, and the figures of a trace of which events were lost. Of forged traces, so that each
case happens at every run.
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import json_schemas
import tap
from tap import built, check, equal, private_dir, succeed
from trace_forge import Trace

ALLIUM = built("ALLIUM")
CALLER = os.path.join(built("TEST_CLI"), "caller")
SECOND = 1000000000


def listed(trace):
    """-> the lines of JSON, which are those of the text, and what was said on stderr"""
    done = succeed([ALLIUM, "events", trace.folder, "--json"])
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for line in lines:
        json_schemas.check(line, "allium-events")
    text = succeed([ALLIUM, "events", trace.folder])
    signs = re.findall(r"^ *\d+\.\d{9}(.)", text.stdout.decode(), re.M)
    equal([sign == "<" for sign in signs], [line["doubtful"] for line in lines[1:-1]], text.stdout.decode())
    return lines[1:], text.stderr.decode()


def doubts(trace):
    return [e["doubtful"] for e in listed(trace)[0][:-1]]


def close():
    """Events of different CPUs that are closer than the largest residual of the clock."""
    with private_dir() as folder:
        trace = Trace(folder + "/t")
        trace.stream(0, (SECOND, "malloc", 16, 1), (SECOND + 4000, "malloc", 32, 1), (SECOND + 4100, "malloc", 48, 1),
                     (SECOND + 90000, "malloc", 64, 1))
        trace.stream(1, (SECOND + 3000, "malloc", 80, 1), (SECOND + 20000, "malloc", 96, 1),
                     (SECOND + 20001, "malloc", 112, 1), (SECOND + 90000, "malloc", 128, 1))
        for clocks, want in (([(0, 5000)], [0, 1, 1, 1, 0, 0, 0, 1]), ([(0, 800)], [0, 0, 0, 0, 0, 0, 0, 1]),
                             ([(0, 1000), (0, 30)], [0, 0, 0, 0, 0, 0, 0, 1]),
                             ([(0, 1001), (0, 30)], [0, 0, 1, 0, 0, 0, 0, 1]), ([(0, 100)], [0] * 8), ([], [0] * 8)):
            trace.describe(*clocks)
            equal(doubts(trace), list(map(bool, want)), clocks)
            rows, said = listed(trace)
            most = max((residual for _, residual in clocks), default=None)
            equal(rows[-1]["residual_ns"], most, "the largest residual")
            equal("may be in another order: the later one has a <" in said, any(want), said)
            for words in ["--json"], ["--by", "cpu"], ["--sum", "malloc.size"]:
                said = succeed([ALLIUM, "events", trace.folder, *words]).stderr.decode()
                equal("may be in another order\n" in said, any(want), (words, said))


def before():
    """A free on another CPU whose time is before that of its block's allocation."""
    with private_dir() as folder:
        trace = Trace(folder + "/t")
        trace.stream(0, (SECOND, "malloc", 16, 100), (SECOND + 3000, "malloc", 32, 1000),
                     (SECOND + 9000, "malloc", 32, 7), (SECOND + 20000, "malloc", 48, 5))
        trace.stream(1, (SECOND + 2990, "free", 32), (SECOND + 19999, "free", 64))
        equal(doubts(trace), [False, False, True, False, False, False], "the second allocation was before the free")
        total = json.loads(succeed([ALLIUM, "report", trace.folder, "--json"]).stdout)
        equal((total["total"]["live_bytes"], total["trace"]["early_frees"]), (112, 1), "report")
        succeed([ALLIUM, "export", trace.folder, "--chrome", "-o", folder + "/c.json"])
        with open(folder + "/c.json") as file:
            counted = [e["args"] for e in json.load(file)["traceEvents"] if e["ph"] == "C"]
        equal([sum(args.values()) for args in counted], [100, 107, 112], "the counter of live bytes")


def wall():
    """Steps of the wall clock: the last one, from the beginning on, counts."""
    with private_dir() as folder:
        trace = Trace(folder + "/t")
        trace.stream(0, (SECOND, "malloc", 16, 100))
        for clocks, step, words in (([(0, 0)], 0, ""), ([(90 * SECOND, 0)], 90 * SECOND, "forward by 90 s"),
                                    ([(5000, 0)], 0, ""), ([(9, 0), (-SECOND, 0)], -SECOND, "back by 1 s")):
            trace.describe(*clocks)
            rows, said = listed(trace)
            equal(rows[-1]["wall_step_ns"], step, "events")
            check(words in said and bool(words) == ("time of day" in said), said)
            report = json.loads(succeed([ALLIUM, "report", trace.folder, "--json"]).stdout)
            equal(report["trace"]["wall_step_ns"], step, "report")
            shown = " ".join(succeed([ALLIUM, "report", trace.folder, "--no-pager"]).stdout.decode().split())
            check(words in shown and bool(words) == ("time of day" in shown), shown)


def figures(text):
    """-> with or without the mark, the lines of totals and the rows below"""
    return re.findall(r"~?\d[\d.]* (?:B|KiB|MiB)", text)


def bounds():
    """After losses each figure is marked, and the JSON says so; without, none is."""
    with private_dir() as folder:
        trace = Trace(folder + "/t")
        for lost in 0, 7:
            trace.stream(0, (SECOND, "malloc", 16, 100), (SECOND + 5, "malloc", 32, 50), (SECOND + 9, "free", 16),
                         lost=lost)
            done = json.loads(succeed([ALLIUM, "report", trace.folder, "--json"]).stdout)
            json_schemas.check(done, "allium-report")
            equal(done["trace"]["bounds"], bool(lost), "report --json")
            for words in (["report", trace.folder], ["report", trace.folder, "--sort", "allocated"],
                          ["report", trace.folder, "--by", "function"], ["diff", trace.folder, trace.folder]):
                shown = succeed([ALLIUM, *words, "--no-pager"]).stdout.decode()
                part = shown.split("\nLost")[0]
                found = figures(part)
                check(found, shown)
                equal({figure[0] == "~" for figure in found}, {bool(lost)}, shown)
                equal("too high or too low" in shown, bool(lost), shown)
            two = json.loads(succeed([ALLIUM, "diff", trace.folder, trace.folder, "--json"]).stdout)
            json_schemas.check(two, "allium-diff")
            equal((two["before"]["bounds"], two["after"]["bounds"]), (bool(lost), bool(lost)), "diff --json")
            sites = json.loads(succeed([ALLIUM, "sites", trace.folder, "--json"]).stdout)
            equal({row["accurate"] for row in sites["rows"]}, {not lost}, "sites --json")
            table = succeed([ALLIUM, "events", trace.folder, "--sum", "malloc.size"]).stdout.decode()
            equal(["≥" in table, "~" in table], [bool(lost)] * 2, table)
            sums = json.loads(succeed([ALLIUM, "events", trace.folder, "--sum", "malloc.size", "--json"]).stdout)
            json_schemas.check(sums, "allium-sums")
            equal([row["lost_events"] for row in sums["rows"]], [lost or None], "events --sum --json")
            folded = succeed([ALLIUM, "export", trace.folder, "--folded=live", "-o", folder + "/folded%d" % lost])
            notes = folded.stderr.decode()
            equal(("%d events were lost" % lost in notes, "ledger" in notes), (bool(lost), False), notes)


def order():
    """Without an order of events, what was allocated has no mark, and the rest has."""
    with private_dir() as folder:
        succeed([ALLIUM, "trace", "--quiet", "--clock", "none", "-o", folder + "/t", "--", CALLER, "make", "50", "111"])
        shown = succeed([ALLIUM, "report", folder + "/t", "--no-pager"]).stdout.decode()
        found = re.findall(r"^  (at \w+|peak|allocated) +(\S+)", shown, re.M)
        equal({name: figure[0] == "~" for name, figure in found}, {"allocated": False, "peak": True, "at exit": True},
              shown)
        for sort, marked in ("peak", True), ("allocated", False):
            shown = succeed([ALLIUM, "report", folder + "/t", "--no-pager", "--sort", sort]).stdout.decode()
            row = re.search(r"^ *%s +SHARE.*\n *(\S+)" % sort.upper(), shown, re.M)
            check(row and (row.group(1)[0] == "~") == marked, sort, shown)


tap.main([
    ("events that are closer than the clock is good", close),
    ("a free before its block's allocation", before),
    ("the wall clock was set", wall),
    ("figures after losses", bounds),
    ("figures without an order", order),
])
