#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys vmscan`: pages and objects that reclaim looks at and frees, by its kind and theirs, as /proc/vmstat
counts them.
"""
import contextlib
import os
import select
import sys

sys.dont_write_bytecode = True
import lib
import reclaim
import tap
from lib import Skipped, check, equal, load, loses, only, tool
from reclaim import Counted, file_on_disk, group, reads, run_in, swap, total, touches, writes
from tap import wait_until

METHODS = ("tp_btf", "raw_tp", "tp")
ONCE = ("--interval", "1h")
NODE = "/sys/devices/system/node/node0/reclaim"
SPARED = "/proc/sys/vm/min_unmapped_ratio"  # percent of a node's memory: of less page cache it gives nothing up
LIMIT = 32  # MiB
ASKS = 'for i in $(seq 1000); do [ -e "$1.$i" ]; done; '  # what is not there is remembered in slab of the cgroup


def agrees(it, counted):
    """All rows together, with the kernel's own counts; -> (scanned, reclaimed) that must have been."""
    pages = [row for row in it.rows if "slab" not in row["reclaim"]]
    least = [counted.holds("scanned of files", total(pages, "scanned_file_pages"), "pgscan_file"),
             counted.holds("scanned, anonymous", total(pages, "scanned_anonymous_pages"), "pgscan_anon"),
             counted.holds("reclaimed of files", total(pages, "clean_pages"), "pgsteal_file"),
             counted.holds("reclaimed, anonymous", total(pages, "anonymous_pages"), "pgsteal_anon"),
             counted.holds("written", total(pages, "written_folios"), "nr_vmscan_write"),
             counted.holds("objects", total(it.rows, "scanned_objects"), "slabs_scanned")]
    for row in pages:
        equal(row["scanned_pages"], row["scanned_file_pages"] + row["scanned_anonymous_pages"], "scanned of both kinds")
        equal(row["reclaimed_pages"], row["clean_pages"] + row["anonymous_pages"], "reclaimed of both kinds")
        if row["scanned_pages"]:
            check(abs(row["efficiency_percent"] - 100 * row["reclaimed_pages"] / row["scanned_pages"]) < 1e-9, row)
    equal(it.lost["lost_rows"], 0, "lost rows")
    return least


def of_memcg(rows):
    return only(rows, reclaim="memcg")


def watched(method, command, env=None):
    """What the tool tells of a command in a cgroup that is too small for it, others left out; what it tells of all is
    checked beside.
    """
    with load(), group(LIMIT) as where:
        counted = Counted()
        with tool("vmscan", "--attach", method, *ONCE, env=env) as it, tool(
            "vmscan", "--attach", method, "--cgroup", where.folder, *ONCE
        ) as within:
            equal((it.method, within.method), (method, method), "methods")
            counted.ready()
            run_in(where, command)
            counted.through()
            within.stop()
            it.stop()
        least = agrees(it, counted)
        return within.rows, least


def clean(method, env=None):
    """Reading 100 MiB through 32: 68 MiB at least are given up, all clean, none of them anonymous."""
    with file_on_disk(100) as path:
        rows, least = watched(method, ["sh", "-c", ASKS + 'exec cat "$1"', "sh", path], env)
    row = of_memcg(rows)
    check(only(rows, reclaim="memcg/slab")["times"], "shrinkers are asked, too:", rows)
    check(row["clean_pages"] >= 68 * reclaim.MIB // reclaim.PAGE, row)
    equal(row["dirty_pages"], 0, "pages found dirty")
    check(least[2] >= 68 * reclaim.MIB // reclaim.PAGE, "the kernel counted less:", least)


def dirty(method, env=None):
    """Writing: pages are met while they are dirty, and only reclaimed when they are clean."""
    with file_on_disk(1) as path:
        row = of_memcg(watched(method, writes(path, 100), env)[0])
    check(row["dirty_pages"], "no dirty page was met:", row)
    check(row["clean_pages"] >= 68 * reclaim.MIB // reclaim.PAGE, row)


def anonymous(method, env=None):
    """64 MiB touched in a cgroup of 32: what does not fit goes to swap, each page by a write."""
    with swap():
        row = of_memcg(watched(method, touches(64), env)[0])
    check(row["anonymous_pages"] >= 32 * reclaim.MIB // reclaim.PAGE, row)
    check(row["written_folios"], "nothing was written to swap:", row)


def methods_agree():
    """All at work at once: each column that does not measure time is the same."""
    same = ("times", "scanned_pages", "reclaimed_pages", "clean_pages", "dirty_pages", "writeback_pages",
            "anonymous_pages", "activated_pages", "written_folios")
    with file_on_disk(64) as path, group(LIMIT) as where:
        cat = ("--cgroup", where.folder, *ONCE)  # others may reclaim, too, while one of them begins or ends
        with tool("vmscan", "--attach", "tp_btf", *cat) as a, tool("vmscan", "--attach", "raw_tp", *cat) as b:
            with tool("vmscan", "--attach", "tp", *cat) as c:
                run_in(where, reads(path))
                for it in (a, b, c):
                    it.stop()
    rows = [of_memcg(it.rows) for it in (a, b, c)]
    check(rows[0]["times"], rows)
    for other in rows[1:]:
        equal({key: other[key] for key in same}, {key: rows[0][key] for key in same}, "columns of another method")


def by_process(env=None):
    """Each of two that reclaim at once pays for its own; the one that has ended has its name still."""
    with file_on_disk(64) as one, file_on_disk(64) as two, group(LIMIT, "a") as a, group(LIMIT, "b") as b:
        counted = Counted()
        with tool("vmscan", "--by", "process", *ONCE, env=env) as it:
            counted.ready()
            first = run_in(a, reads(one))
            second = run_in(b, ["dd", "if=" + two, "of=/dev/null", "bs=1M", "status=none"])
            counted.through()
            it.stop()
        agrees(it, counted)
    for pid, comm in ((first, "cat"), (second, "dd")):
        row = only(it.rows, reclaim="memcg", pid=pid)
        equal(row["comm"], comm, "name")
        check(row["reclaimed_pages"] >= 32 * reclaim.MIB // reclaim.PAGE, row)


@contextlib.contextmanager
def nothing_is_spared():
    """A machine that has read little yet gives up its page cache, too."""
    with open(SPARED) as file:
        before = file.read()
    reclaim.write(SPARED, 0)
    try:
        yield
    finally:
        reclaim.write(SPARED, before)


def node_and_slab(env=None):
    """The node's file asks for 8 MiB: a row of its own, with slab caches shrunk within it."""
    if not os.path.exists(NODE):
        raise Skipped("this kernel has no %s" % NODE)
    with file_on_disk(64) as path, nothing_is_spared():
        lib.tap.succeed(["cat", path], stdout=lib.tap.subprocess.DEVNULL)
        counted = Counted()
        with tool("vmscan", *ONCE, env=env) as it:
            counted.ready()
            with contextlib.suppress(BlockingIOError):  # there was less to reclaim, which is counted all the same
                reclaim.write(NODE, "8M")
            counted.through()
            it.stop()
        agrees(it, counted)
    node, slab = only(it.rows, reclaim="node"), only(it.rows, reclaim="node/slab")
    check(node["times"] and node["reclaimed_pages"], node)
    check(slab["duration_ns"] <= node["duration_ns"], "what lies within is not longer:", slab, node)


def histograms():
    """Each of the times is in one slot, and the slots hold the sum and the longest."""
    with file_on_disk(64) as path, group(LIMIT) as where:
        with tool("vmscan", "--hist", *ONCE) as it:
            run_in(where, reads(path))
            it.stop()
    for row in it.rows:
        if row["duration_ns"] is None:
            continue
        slots = row["duration_histogram_ns"]
        equal(sum(slot["count"] for slot in slots), row["times"], "times in all slots")
        least = sum(slot["count"] * slot["from"] for slot in slots)
        most = sum(slot["count"] * (slot["to"] - 1) for slot in slots)
        check(least <= row["duration_ns"] <= most, "the sum lies without its slots:", row)
        check(slots[-1]["from"] <= row["longest_ns"] < slots[-1]["to"], "the longest is not in the last slot:", row)


def intervals():
    """Rows of several reports, which are told apart by their time, are together what was reclaimed."""
    with file_on_disk(100) as path, group(LIMIT) as where:
        counted = Counted()
        with tool("vmscan", "--interval", "10ms") as it:
            counted.ready()
            run_in(where, reads(path))
            wait_until(lambda: select.select([it.process.stdout], [], [], 0)[0], tap.TIMEOUT, "the first report")
            run_in(where, reads(path))
            counted.through()
            it.stop()
        agrees(it, counted)
    check(len({row["time_ns"] for row in it.rows}) > 1, "all rows are of one report")


def shrinkers():
    """They are called by their functions, which have no offset: those that the kernel's table of symbols has."""
    with open("/proc/kallsyms") as file:
        functions = {line.split()[2] for line in file}
    with file_on_disk(100) as path, group(LIMIT) as where:
        with tool("vmscan", "--by", "shrinker", *ONCE) as it:
            run_in(where, ["sh", "-c", ASKS + 'exec cat "$1"', "sh", path])
            it.stop()
    names = {row["shrinker"] for row in it.rows if row["shrinker"]}
    check(names, "no shrinker was asked:", it.rows)
    odd = {name for name in names if name.split()[0] not in functions or name.startswith("__pfx_")}
    check(not odd, "no functions:", odd)


def no_room():
    """A table of one row has no place for the second process: that is said."""
    with file_on_disk(48) as path, group(LIMIT) as where:
        with tool("vmscan", "--by", "process", "--rows", "1", *ONCE) as it:
            run_in(where, reads(path))
            run_in(where, ["dd", "if=" + path, "of=/dev/null", "bs=1M", "status=none"])
            it.stop()
    check(it.lost["lost_rows"], "nothing was said to be lost:", it.lost, it.rows)


TESTS = [("clean pages, by " + method, lambda method=method: clean(method)) for method in METHODS]
TESTS += [("dirty pages, by " + method, lambda method=method: dirty(method)) for method in METHODS]
TESTS += [("anonymous pages go to swap, by " + method, lambda method=method: anonymous(method)) for method in METHODS]
TESTS += [
    ("a missing row is noticed", lambda: loses(lambda env: clean("tp_btf", env))),
    ("ways to attach agree", methods_agree),
    ("who pays", by_process),
    ("a node, and slab within it", node_and_slab),
    ("shrinkers have the names of their functions", shrinkers),
    ("histograms hold what was measured", histograms),
    ("reports every 10 ms miss nothing in between", intervals),
    ("rows for which there is no room are counted", no_room),
]

lib.main(TESTS)
