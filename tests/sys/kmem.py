#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys kmem`: objects by the call that asks for them, against files and timers made, and the sizes of
/proc/slabinfo.
"""
import re
import sys

sys.dont_write_bytecode = True
import lib
from lib import alike, check, equal, load, loses, maker, only, tool

METHODS = ("tp_btf", "raw_tp", "tp")
N, TIMERS = 700, 30
OPENING, TIMER = "alloc_empty_file", "timer"  # do_timer_create; alloc_posix_timer where that is not inlined
BYTES = ("allocated_bytes", "requested_bytes")


def object_bytes(cache):
    with open("/proc/slabinfo") as file:
        return next(int(line.split()[3]) for line in file if line.split()[0] == cache)


def at(it, site, key="allocations"):
    return sum(row[key] for row in it.rows if site in row["call_site"])


def nothing_lost(it):
    for loss in ("lost_rows", "lost_live_objects"):
        equal(it.lost[loss], 0, loss)


def made(method, env=None):
    """Files and timers, with a load beside it that makes others."""
    with maker() as m, load():
        with tool("kmem", "--attach", method, "-p", m.pid, env=env) as it, tool("kmem", "-p", m.pid) as beside:
            equal(it.method, method, "method")
            m.do("files %d" % N, "timers %d" % TIMERS)
            it.stop()
            beside.stop()
    alike(it, beside, ("call_site",), BYTES)
    equal(at(it, OPENING), N, "files")
    equal(at(it, OPENING, "allocated_bytes"), N * object_bytes("filp"), "bytes of files")
    equal(at(it, TIMER), TIMERS, "timers")
    for row in it.rows:
        equal(row["slack_bytes"], row["allocated_bytes"] - row["requested_bytes"], "slack of %s" % row["call_site"])
    nothing_lost(it)


def agree():
    """All ways to attach, at once, show the same rows of the same program."""
    with maker() as m:
        with tool("kmem", "--attach", "tp_btf", "-p", m.pid) as a, \
                tool("kmem", "--attach", "raw_tp", "-p", m.pid) as b, \
                tool("kmem", "--attach", "tp", "-p", m.pid) as c:
            m.do("files 300", "timers 20", "pipes 40", "touch 50", "close", "untimers", "drop")
            for it in (a, b, c):
                it.stop()
    equal(at(a, OPENING), 300 + 2 * 40, "files, two of each pipe")
    for it in b, c:
        alike(it, a, ("call_site",), BYTES)


def live(env=None):
    """What is held is told until it is freed, also in a report in which nothing happened to it."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--live", env=env) as it, tool("kmem", "-p", m.pid) as beside:
            m.do("timers %d" % TIMERS, "files %d" % N)
            it.stop()
            beside.stop()
    alike(it, beside, ("call_site",), BYTES)
    equal(at(it, OPENING, "live_objects"), N, "files that are open")
    equal(at(it, OPENING, "live_bytes"), N * object_bytes("filp"), "their bytes")
    nothing_lost(it)


def live_full():
    """Too small a map of live objects: what found no place is counted, to the unit."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--live-objects", 100) as it:
            m.do("files %d" % N)
            it.stop()
    allocations = sum(row["allocations"] for row in it.rows)
    check(it.lost["lost_live_objects"] >= N - 100, it.lost, "of", allocations)
    check(sum(row["live_objects"] for row in it.rows) <= 100, "more live objects than there is room for")


def by_function():
    """Rows of a function are the sums of those of its call sites, of a run beside it."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--live", "--by", "function") as it, tool(
            "kmem", "-p", m.pid, "--live"
        ) as beside:
            m.do("files %d" % N, "timers %d" % TIMERS, "pipes 40", "touch 50", "untimers")
            it.stop()
            beside.stop()
    for row in beside.rows:
        site, _, module = row["call_site"].partition(" ")
        row["function"] = re.sub(r"(\.(part|isra|constprop|cold|llvm)(\.\d+)?)*\+0x[0-9a-f]+$", "",
                                 site) + (" " + module if module else "")
    alike(it, beside, ("function",), BYTES)
    equal(len({row["function"] for row in it.rows}), len(it.rows), "rows, each function once")
    equal(only(it.rows, function=OPENING)["live_objects"], N + 80, "files that are open")


TESTS = [("files and timers are counted, with a load beside it, by " + method, lambda method=method: made(method))
         for method in METHODS]
TESTS += [
    ("ways to attach show the same rows", agree),
    ("rows by function add up those by site", by_function),
    ("live objects are those that are held", live),
    ("a full map of live objects is counted", live_full),
    ("a test of files made fails when a row is missing", lambda: loses(lambda env: made("tp_btf", env))),
    ("a test of live objects fails when a row is missing", lambda: loses(live)),
]

lib.main(TESTS)
