#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys slabratetop`: objects are counted in their cache, of kmalloc and kfree too, against calls made and
/proc/slabinfo.
"""
import os
import sys
import time
import types

sys.dont_write_bytecode = True
import lib
from lib import alike, check, equal, load, loses, maker, only, tool
from terminal import Terminal

METHODS = ("tp_btf", "raw_tp", "tp")
N = 2000
CLEAR = "\033[H\033[2J"
ONE_REPORT = ("--interval", "1h")
NEVER = ("lost_events", "lost_rows")


def slabinfo():
    """{cache: (active objects, objects, bytes of one, objects in a slab)}"""
    with open("/proc/slabinfo") as file:
        return {
            line.split()[0]: tuple(map(int,
                                       line.split()[1:5]))
            for line in file if not line.startswith(("slabinfo", "#"))
        }


def cache_of(name):
    """What a cache is called whose objects are of the same size as others': that of the first of them."""
    here = os.path.realpath("/sys/kernel/slab/" + name)
    same = [other for other in slabinfo() if os.path.realpath("/sys/kernel/slab/" + other) == here]
    equal(len(same), 1, "caches in slabinfo that are " + name)
    return same[0]


def counted(it, cache):
    rows = [row for row in it.rows if row["cache"] == cache]
    return tuple(sum(row[what] for row in rows) for what in ("allocations", "frees"))


def nothing_lost(it):
    for what in NEVER:
        equal(it.lost[what], 0, what)


def files(method, env=None):
    """N files opened are N objects of filp, which are freed when they are closed; with a load beside it that opens
    others.
    """
    with maker() as m, load():
        m.do("files %d" % N, "close")
        with tool("slabratetop", "--attach", method, "-p", m.pid, *ONE_REPORT, env=env) as it:
            equal(it.method, method, "method")
            m.do("files %d" % N, "close")
            it.stop()
    equal(counted(it, cache_of("filp")), (N, N), "files")
    row = only(it.rows, cache="filp")
    equal(row["allocated_bytes"], N * slabinfo()["filp"][2], "bytes")
    equal((row["net"], row["net_bytes_per_s"]), (0, 0), "net")
    nothing_lost(it)


def pipes(method, env=None):
    """The ring of each pipe is of kmalloc() and kfree(), which do not tell the cache: 16 times 40 bytes, of a 1024's.
    """
    name = "kmalloc-cg-1k" if "kmalloc-cg-1k" in slabinfo() else "kmalloc-1k"
    with maker() as m, load():
        m.do("files %d" % (2 * N), "close", "pipes 1", "close")
        before = slabinfo()[name]
        with tool("slabratetop", "--attach", method, "-p", m.pid, *ONE_REPORT, env=env) as made:
            m.do("pipes %d" % N)
            made.stop()
        after = slabinfo()[name]
        with tool("slabratetop", "--attach", method, "-p", m.pid, *ONE_REPORT, env=env) as gone:
            m.do("close")
            gone.stop()
    equal(counted(made, name), (N, 0), "pipes made")
    equal(counted(gone, name), (0, N), "pipes closed")
    row = only(made.rows, cache=name)
    equal((row["allocated_bytes"], row["net"], row["object_bytes"]), (N * 1024, N, 1024), "bytes")
    # Others have pipes, too, and close some meanwhile; but not so many.
    check(after[0] - before[0] > N // 2, "slabinfo grew by", after[0] - before[0])
    check(abs(row["active_objects"] - after[0]) < N // 2, row, after)
    equal(only(gone.rows, cache=name)["freed_bytes"], N * 1024, "bytes freed")


def forks(method, env=None):
    with maker() as m, load():
        with tool("slabratetop", "--attach", method, "-p", m.pid, *ONE_REPORT, env=env) as it:
            m.do("forks 100")
            it.stop()
    for cache in ("task_struct", "signal_cache", "sighand_cache"):
        equal(counted(it, cache_of(cache))[0], 100, cache)


def methods_agree():
    """Three ways to attach, at once: the same rows for the same events. Rates differ, as each has its own time, and so
    does what slabinfo said when each of them looked.
    """
    with maker() as m, load():
        options = ("-p", m.pid, *ONE_REPORT)
        with tool("slabratetop", "--attach", METHODS[0], *options) as a, \
                tool("slabratetop", "--attach", METHODS[1], *options) as b, \
                tool("slabratetop", "--attach", METHODS[2], *options) as c:
            m.do("files 500", "pipes 500", "forks 20", "close", "timers 100", "untimers", "touch 100", "drop")
            for it in a, b, c:
                it.stop()
    check(len(a.rows) > 10, a.rows)
    for it in b, c:
        alike(it, a, ("cache", "object_bytes", "aliases"), ("net", "allocated_bytes", "freed_bytes"))


def unseen():
    """Objects whose frees have no event (here: given back after a grace period, in bulk) are flagged when they come
    again; filp, whose frees all have one, is not.
    """
    name = cache_of("posix_timers_cache")
    with maker() as m, tool("slabratetop", *ONE_REPORT) as it:
        for _ in range(20):
            m.do("timers %d" % N, "untimers", "files 500", "close")
            time.sleep(0.05)
        it.stop()
    allocated, freed = counted(it, name)
    check(allocated >= 20 * N, allocated)
    row = only(it.rows, cache=name)
    equal(row["unseen_frees"], True if freed < allocated // 2 else None, "flag of %s" % row)
    equal(only(it.rows, cache=cache_of("filp"))["unseen_frees"], None, "flag of filp")
    check(any(row["unseen_frees"] for row in it.rows) == (it.lost["frees_without_event"] > 0), it.lost)


def rates():
    """Reports every interval: a rate is what was counted over the time of the report; together they are all there was.
    """
    began, added = time.monotonic(), 0
    with maker() as m:
        m.do("files %d" % N, "close")
        with tool("slabratetop", "-p", m.pid, "--interval", "200ms", "--where", "cache:filp") as it:
            for _ in range(5):
                m.do("files 400", "close")
                time.sleep(0.2)
            it.stop()
    equal(counted(it, "filp"), (N, N), "all reports together")
    check(len(it.rows) >= 2, it.rows)
    for row in it.rows:
        what = "allocations" if row["allocations"] else "frees"
        seconds = row[what] / row[what + "_per_s"]
        check(seconds < time.monotonic() - began, "a report of", seconds, "s")
        check(abs(row["frees"] - row["frees_per_s"] * seconds) < 0.5, row)
        check(abs(row["allocated_bytes"] - row["freed_bytes"] - row["net_bytes_per_s"] * seconds) < 0.5, row)
        added += seconds
    check(0.2 <= added < time.monotonic() - began, "reports of", added, "s")


def table_full():
    """Too small a table of caches: events that found no row are counted, to the unit."""
    with maker() as m:
        with tool("slabratetop", "-p", m.pid, "--rows", 3,
                  *ONE_REPORT) as small, tool("slabratetop", "-p", m.pid, *ONE_REPORT) as large:
            m.do("files 300", "pipes 300", "close", "forks 10")
            small.stop()
            large.stop()
    equal(len(small.rows), 3, "rows")

    def events(it):
        return sum(row["allocations"] + row["frees"] for row in it.rows)
    equal(events(small) + small.lost["lost_rows"], events(large), "events kept and lost")


def balanced(method):
    """All programs count for the same time: names_cache, whose objects live as long as a system call, is as often
    freed.
    """
    with load(), tool("slabratetop", "--attach", method, *ONE_REPORT) as it:
        time.sleep(0.5)
        it.stop()
    allocated, freed = counted(it, cache_of("names_cache"))
    check(allocated > 100 and abs(allocated - freed) <= 2 * os.cpu_count() + 8, allocated, freed)


def keeps_the_last():
    """Ctrl-C on a terminal, in the middle of an interval: the last whole one stays on the screen, and the recording has
    the rest, too.
    """
    with lib.tap.private_dir() as folder, load():
        path = folder + "/all.allium"
        terminal = Terminal(types.SimpleNamespace(env=os.environ, folder=folder),
                            ("sys", "slabratetop", "--interval", "1s", "-o", path), rows=24, columns=80)
        lib.wait_until(lambda: terminal.read_some().count(CLEAR) == 2, lib.tap.TIMEOUT, "two reports are shown")
        time.sleep(0.3)
        terminal.press("\x03")
        shown, code = terminal.end()
        recorded = lib.stream(lib.tap.succeed([lib.built("ALLIUM"), "sys", "slabratetop", "--json", "--from",
                                               path]).stdout)[:-1]
    equal((code, shown.count(CLEAR)), (0, 2), "code, reports")
    check("ms, less than an interval, are not shown above" in shown.split(CLEAR)[-1], shown.split(CLEAR)[-1])
    equal(len({row["time_ns"] for row in recorded}), 3, "reports that were recorded")


TESTS = []
for method in METHODS:
    TESTS += [
        ("files opened are objects of their cache, by " + method, lambda method=method: files(method)),
        ("kmalloc and kfree count in their cache, by " + method, lambda method=method: pipes(method)),
        ("forks are objects of their caches, by " + method, lambda method=method: forks(method)),
        ("allocations and frees are counted for the same time, by " + method, lambda method=method: balanced(method)),
    ]
TESTS += [
    ("a test of files fails when a row is missing", lambda: loses(lambda env: files("tp_btf", env))),
    ("a test of kmalloc fails when a row is missing", lambda: loses(lambda env: pipes("tp_btf", env))),
    ("a test of forks fails when a row is missing", lambda: loses(lambda env: forks("tp_btf", env))),
    ("three ways to attach show the same rows", methods_agree),
    ("caches whose frees have no event are flagged", unseen),
    ("rates are of their report's time", rates),
    ("Ctrl-C keeps the last whole interval on the screen", keeps_the_last),
    ("a full table of caches is counted", table_full),
]

lib.main(TESTS)
