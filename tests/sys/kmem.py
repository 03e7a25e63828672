#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys kmem`: objects by the call that asks for them, against files and timers made, and the sizes of
/proc/slabinfo.
"""
import os
import re
import sys
import time

sys.dont_write_bytecode = True
import anytool
import lib
from lib import alike, check, equal, load, loses, maker, one_row_by_comm, only, tool

METHODS = ("tp_btf", "raw_tp", "tp")
N, TIMERS = 700, 30
OPENING, TIMER = "alloc_empty_file", "timer"  # do_timer_create; alloc_posix_timer where that is not inlined
BYTES = ("allocated_bytes", "requested_bytes")


def object_bytes(cache):
    with open("/proc/slabinfo") as file:
        return next(int(line.split()[3]) for line in file if line.split()[0] == cache)


def slot_bytes():
    """{cache: what an object takes}, of all caches in /proc/slabinfo."""
    with open("/proc/slabinfo") as file:
        return {words[0]: int(words[3]) for words in map(str.split, list(file)[2:])}


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


def live_caches():
    """A report in which nothing happened to an object names its cache, too."""
    with maker() as m:
        for part, key in ("cache", "cache"), ("site", "call_site"):
            with tool("kmem", "-p", m.pid, "--live", "--by", part, "--interval", "300ms") as it:
                m.do("files %d" % N)
                time.sleep(0.8)
                it.stop()
            m.do("close")
            quiet = [row for row in it.rows if not row["allocations"] + row["frees"] and row["live_objects"]]
            check(quiet, "no report of files that stay open, by", part)
            equal([row for row in quiet if not row["cache"]], [], "rows without a cache, by " + part)
            files = {row["live_objects"] for row in quiet
                     if row["cache"] == "filp" and (part == "cache" or OPENING in row[key])}
            equal(files, {N}, "open files in quiet reports by " + part)


def live_full():
    """Too small a map of live objects: what found no place is counted, to the unit."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--live-objects", 100) as it:
            m.do("files %d" % N)
            it.stop()
    allocations = sum(row["allocations"] for row in it.rows)
    check(it.lost["lost_live_objects"] >= N - 100, it.lost, "of", allocations)
    check(sum(row["live_objects"] for row in it.rows) <= 100, "more live objects than there is room for")


def function_of(site):
    site, _, module = site.partition(" ")
    return re.sub(r"(\.(part|isra|constprop|cold|llvm)(\.\d+)?)*\+0x[0-9a-f]+$", "",
                  site) + (" " + module if module else "")


def grouped_anew():
    """Recorded rows by site are shown by function: sums, the cache with most bytes, all flags. What sites do not tell is
    refused.
    """
    with lib.tap.private_dir() as folder, maker() as m:
        path = folder + "/sites.allium"
        process = anytool.begin(anytool.About("kmem"), "-o", path, "-p", m.pid)
        m.do("files %d" % N, "timers %d" % TIMERS, "pipes 40", "touch 50", "untimers")
        process.terminate()
        process.communicate(timeout=lib.tap.TIMEOUT)

        def shown(*options):
            return lib.stream(lib.tap.succeed(anytool.sys_("kmem", "--from", path, "--json", *options)).stdout)[:-1]
        sites, functions = shown(), shown("--by", "function")
        equal(shown("--by", "site"), sites, "by what it was recorded")
        check(": the rows of %s are by site, which does not tell it" % path in anytool.refused(
            1, "kmem", "--from", path, "--by", "process"), "--by process")
        check("--sort uses the column call_site, which rows by function do not have" in anytool.refused(
            2, "kmem", "--from", path, "--by", "function", "--sort", "call_site"), "--sort by what is gone")
        check("leave out --frees" in anytool.refused(2, "kmem", "--from", path, "--frees"), "--frees of a recording")
    equal(len(functions), len({row["function"] for row in functions}), "functions, each once")
    equal({row["function"] for row in functions}, {function_of(row["call_site"]) for row in sites}, "functions")
    for row in functions:
        check("call_site" not in row and "gfp" not in row, row)
        of_it = [site for site in sites if function_of(site["call_site"]) == row["function"]]
        for key in *BYTES, "allocations", "frees", "freed_bytes":
            equal(row[key], sum(site[key] for site in of_it), key + " of " + row["function"])
        largest = max(of_it, key=lambda site: site["allocated_bytes"])["cache"]
        if largest:
            equal(row["cache"].removesuffix(" and others"), largest.removesuffix(" and others"), row["function"])


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
        row["function"] = function_of(row["call_site"])
    alike(it, beside, ("function",), BYTES)
    equal(len({row["function"] for row in it.rows}), len(it.rows), "rows, each function once")
    equal(only(it.rows, function=OPENING)["live_objects"], N + 80, "files that are open")


def caches(method):
    """Objects of kmalloc have their cache, too: of each row of one cache, the bytes are those of so many of its objects.
    What a pipe has as its buffer is freed when it is closed.
    """
    with maker() as m, load():
        with tool("kmem", "--attach", method) as it, tool("kmem", "--attach", method, "--by", "cache") as by_cache, \
                tool("kmem", "--attach", method, "-p", m.pid) as of_maker:
            m.do("pipes 40", "close")
            for each in it, by_cache, of_maker:
                each.stop()
    bytes_of, seen = slot_bytes(), set()
    for row in [*it.rows, *by_cache.rows]:
        if row["cache"] in bytes_of:
            equal((row["allocated_bytes"], row["freed_bytes"]),
                  tuple(row[key] * bytes_of[row["cache"]] for key in ("allocations", "frees")), row)
            seen.add(row["cache"])
    check(any(name.startswith("kmalloc-") for name in seen) and len(seen) > 10, "caches", seen)
    equal(len({row["cache"] for row in by_cache.rows}), len(by_cache.rows), "rows, each cache once")
    buffers = 40 * bytes_of["kmalloc-cg-1k"]  # of 16 struct pipe_buffer each
    equal(at(of_maker, "free_pipe_info", "freed_bytes"), buffers, "freed bytes of pipes")
    nothing_lost(it)


def largest_cache():
    """A function that takes from several caches names the one with most bytes, as the rows of its sites do."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--by", "process") as it, tool("kmem", "-p", m.pid, "--by", "cache") as beside, \
                tool("kmem", "-p", m.pid, "--by", "directory") as by_directory:
            m.do("files %d" % N, "timers %d" % TIMERS, "pipes 40")
            for each in it, beside, by_directory:
                each.stop()
    check("cache" not in it.rows[0], "a process has no one cache", it.rows[0])
    if len(by_directory.rows) == 1:  # no vmlinux with sources: all are "[unknown]"
        largest = max(beside.rows, key=lambda row: row["allocated_bytes"])
        equal(by_directory.rows[0]["cache"], largest["cache"] + " and others", "the cache with most bytes")
    total = [sum(row["allocated_bytes"] for row in each.rows) for each in (it, beside, by_directory)]
    check(total[0] == total[1] == total[2], "bytes by process, cache, directory", total)


def aliases():
    """Caches that the kernel merged: those whose links in /sys/kernel/slab lead to one folder."""
    folder = "/sys/kernel/slab/"
    links = {name: os.readlink(folder + name) for name in os.listdir(folder) if os.path.islink(folder + name)}
    with load():
        with tool("kmem", "--by", "cache") as it:
            time.sleep(0.5)
            it.stop()
    known = [row for row in it.rows if row["cache"] in links]
    for row in known:
        want = {name for name, target in links.items() if target == links[row["cache"]]} - {row["cache"]}
        equal(set((row["aliases"] or "").split()), want, "other names of %s" % row["cache"])
    check(any(row["aliases"] for row in known), "no cache of several names in", it.rows)


def frees_by_stack():
    """Without --frees no stack is taken for one; with it all are counted, as by process."""
    with maker() as m:
        with tool("kmem", "-p", m.pid, "--by", "stack") as it, \
                tool("kmem", "-p", m.pid, "--by", "stack", "--frees") as frees, \
                tool("kmem", "-p", m.pid, "--by", "process") as beside:
            m.do("pipes 40", "files 40", "close")
            for each in it, frees, beside:
                each.stop()
    check(not any("frees" in row or "freed_bytes" in row for row in it.rows), "frees that nobody asked for")
    for key, runs in (("allocations", (it, frees)), ("frees", (frees,)), ("freed_bytes", (frees,))):
        for each in runs:
            equal(sum(row[key] for row in each.rows), sum(row[key] for row in beside.rows), key)
    check(all(row["allocations"] for row in it.rows), "a stack without an allocation")
    nothing_lost(frees)


def order():
    """Rows that only free come last, those with most bytes first."""
    with maker() as m:
        with tool("kmem", "-p", m.pid) as it:
            m.do("pipes 40", "files 40", "close", "timers 20", "untimers")
            it.stop()
    keys = [(row["allocated_bytes"], row["freed_bytes"]) for row in it.rows]
    equal(keys, sorted(keys, reverse=True), "order")
    check(sum(not allocated and freed > 0 for allocated, freed in keys) > 1, "rows that only free", keys)


TESTS = [("files and timers are counted, with a load beside it, by " + method, lambda method=method: made(method))
         for method in METHODS]
TESTS += [("all objects have their cache, by " + method, lambda method=method: caches(method)) for method in METHODS]
TESTS += [
    ("ways to attach show the same rows", agree),
    ("rows by function add up those by site", by_function),
    ("recorded rows by site are shown by function", grouped_anew),
    ("a free has a stack only with --frees", frees_by_stack),
    ("rows that only free come last", order),
    ("processes of one name are one row by comm", lambda: one_row_by_comm("kmem", "files 100", "allocations")),
    ("merged caches have all their names", aliases),
    ("of several caches the largest is named", largest_cache),
    ("live objects are those that are held", live),
    ("live objects have their cache in a report in which nothing happens", live_caches),
    ("a full map of live objects is counted", live_full),
    ("a test of files made fails when a row is missing", lambda: loses(lambda env: made("tp_btf", env))),
    ("a test of live objects fails when a row is missing", lambda: loses(live)),
]

lib.main(TESTS)
