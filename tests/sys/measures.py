#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""--hist of the tools with rows: against calls made, pages touched, and how long they were kept waiting or open by the
test's clock.
"""
import os
import sys
import time

sys.dont_write_bytecode = True
import anytool
import lib
from lib import alike, built, check, equal, load, loses, maker, only, tap, tool, toucher

PAGE = os.sysconf("SC_PAGE_SIZE")
N = 600
ONE_REPORT = ("--interval", "1h")


def sizes(row, key):
    """{from: count} of a histogram; {} where there is none."""
    return {slot["from"]: slot["count"] for slot in row[key] or []}


def holds(row, key, count, total=None):
    """It has so many, and what they can be together has `total` in it."""
    slots = row[key] or []
    equal(sum(slot["count"] for slot in slots), count, "in all slots of %s" % row)
    for slot in slots:
        check(slot["count"] and (slot["to"] == 2 * slot["from"] or (slot["from"], slot["to"]) == (0, 2)),
              "an odd slot:", slot)
    if total is not None:
        least = sum(slot["count"] * slot["from"] for slot in slots)
        most = sum(slot["count"] * (slot["to"] - 1) for slot in slots)
        check(least <= total <= most, total, "is not what these can be together:", row)


def object_bytes(cache):
    with open("/proc/slabinfo") as file:
        return next(int(line.split()[3]) for line in file if line.split()[0] == cache)


def slot_of(value):
    return 1 << value.bit_length() - 1


def requested(method, env=None):
    """Each allocation is in the slot of the bytes that it asked for; rings of pipes are 16 times 40 bytes."""
    with maker() as m, load():
        with tool("kmem", "--hist", "--attach", method, "-p", m.pid, env=env) as it, \
                tool("kmem", "-p", m.pid) as beside:
            m.do("files %d" % N, "pipes 50")
            it.stop()
            beside.stop()
    for row in it.rows:
        holds(row, "requested_histogram_bytes", row["allocations"], row["requested_bytes"])
    alike(it, beside, ("call_site",), ("requested_bytes",))
    files = only([row for row in it.rows if "alloc_empty_file" in row["call_site"]], frees=0)
    equal(sizes(files, "requested_histogram_bytes"), {slot_of(object_bytes("filp")): N + 100}, "files")
    check({512: 50} in [sizes(row, "requested_histogram_bytes") for row in it.rows], "no rings of pipes in", it.rows)


def by_function():
    """Call sites of a function that become one row have one histogram, and a process of all it asked for has one of
    several slots.
    """
    with maker() as m:
        with tool("kmem", "--hist", "-p", m.pid, "--by", "function") as it, tool(
            "kmem", "--hist", "-p", m.pid, "--by", "process"
        ) as of_all:
            m.do("files %d" % N, "pipes 50", "timers 20", "close", "untimers")
            it.stop()
            of_all.stop()
    key, together = "requested_histogram_bytes", {}
    for row in it.rows:
        holds(row, key, row["allocations"], row["requested_bytes"])
        for size, count in sizes(row, key).items():
            together[size] = together.get(size, 0) + count
    equal(sizes(only(of_all.rows, pid=m.pid), key), together, "of the process, and of all its functions")
    check(len(together) > 2, "slots:", together)


def blocks(method, env=None):
    """A page is in the slot of its bytes, and so is a huge page; what failed or was freed is in none."""
    with maker() as m, load():
        m.do("touch 1", "drop")
        with tool("kpages", "--hist", "--attach", method, "-p", m.pid, "--by", "type", env=env) as it:
            m.do("touch %d" % N)
            it.stop()
    row = only(it.rows, migrate_type="movable")
    equal(sizes(row, "block_histogram_bytes"), {PAGE: N}, "pages touched")


def blocks_by_order():
    """Of a process: as many in each slot as a run beside it has of that order."""
    with maker() as m:
        with tool("kpages", "--hist", "-p", m.pid, "--by", "process") as it, tool(
            "kpages", "-p", m.pid, "--by", "order"
        ) as beside:
            m.do("touch %d" % N, "huge 2", "pipes 20", "forks 3", "close", "drop")
            it.stop()
            beside.stop()
    orders = {PAGE << row["order"]: row["allocations"] for row in beside.rows if row["allocations"]}
    row = only(it.rows, pid=m.pid)
    equal(sizes(row, "block_histogram_bytes"), orders, "blocks by their size")
    holds(row, "block_histogram_bytes", row["allocations"], row["allocated_bytes"])


def lifetimes(method, env=None):
    """Files that are open for a while live for so long, each, however busy the machine is; what is open still is in no
    slot.
    """
    key = "lifetime_histogram_ns"
    with maker() as m, load():
        with tool("slabratetop", "--hist", "--attach", method, "-p", m.pid, *ONE_REPORT, env=env) as it:
            began = time.monotonic_ns()
            m.do("files %d" % N)
            opened = time.monotonic_ns()
            time.sleep(0.2)
            closing = time.monotonic_ns()
            m.do("close")
            closed = time.monotonic_ns()
            m.do("files 77")
            it.stop()
    row = only(it.rows, cache="filp")
    equal((row["allocations"], row["frees"]), (N + 77, N), "files")
    holds(row, key, N)
    for slot in row[key]:
        check(closing - opened < slot["to"] and slot["from"] <= closed - began, "a life of", slot, "of", began, opened,
              closing, closed)
    equal(it.lost["lost_live_objects"], 0, "lost")


def lifetimes_alike():
    """Rows are the same as without."""
    with maker() as m:
        with tool("slabratetop", "--hist", "-p", m.pid, *ONE_REPORT) as it, tool(
            "slabratetop", "-p", m.pid, *ONE_REPORT
        ) as beside:
            m.do("files %d" % N, "pipes 50", "close", "forks 10")
            it.stop()
            beside.stop()
    alike(it, beside, ("cache",), ("allocated_bytes",))
    for row in it.rows:
        check(sum(sizes(row, "lifetime_histogram_ns").values()) <= row["frees"], "more lives than frees:", row)


def waits(method, env=None):
    """Each fault has a time, and they are not more than passed; pages that come 0.1 s after they were touched take
    that.
    """
    key = "duration_histogram_ns"
    with toucher() as t, toucher() as other:
        other.begin("churn")
        before = t.do("nothing")
        with tool("faults", "--hist", "--attach", method, "-p", t.pid, env=env) as it:
            began = time.monotonic_ns()
            t.do("anonymous %d" % N)
            t.do("late 3")
            after = t.do("kernel 20")
            took = time.monotonic_ns() - began
            it.stop()
    row = only(it.rows, pid=t.pid)
    equal(row["faults"], sum(after) - sum(before), "faults, by getrusage")
    holds(row, key, row["user"] + row["kernel"])
    check(sum(slot["from"] * slot["count"] for slot in row[key]) <= took, "longer than", took, row)
    slow = sum(slot["count"] for slot in row[key] if slot["to"] > 100_000_000)
    check(slow >= 3, slow, "of 0.1 s:", row)


def not_told():
    """A way to attach that sees beginnings alone cannot tell how long a fault takes: said in a line."""
    line = anytool.refused(2, "faults", "--hist", "--attach", "raw_tp", "--duration", "20ms")
    check("--hist uses the column duration_histogram, which sys faults cannot show using raw_tp" in line, line)


def sampled():
    """With --sample each one in the histogram stands for as many events as its row says."""
    with maker() as m:
        with tool("kmem", "--hist", "-p", m.pid, "--by", "stack", "--sample", 3) as it:
            m.do("files %d" % N, "pipes 20")
            it.stop()
    check(it.rows, "nothing was sampled")
    for row in it.rows:
        holds(row, "requested_histogram_bytes", row["allocations"], row["requested_bytes"])
        equal(sum(sizes(row, "requested_histogram_bytes").values()) % 3, 0, "of three each")


def recorded():
    """What was recorded with --hist has it when it is asked for; without, it is said that it has not."""
    with tap.private_dir() as folder, maker() as m:
        with_it, without = folder + "/with.allium", folder + "/without.allium"
        first = anytool.begin(anytool.About("kmem"), "--hist", "-o", with_it, "-p", m.pid)
        second = anytool.begin(anytool.About("kmem"), "-o", without, "-p", m.pid)
        with tool("kmem", "--hist", "-p", m.pid) as it:
            m.do("files %d" % N, "pipes 20")
            it.stop()
        for process in first, second:
            process.terminate()
            process.communicate(timeout=tap.TIMEOUT)

        def shown(path, *options):
            rows, lost = anytool.parse(tap.succeed(anytool.sys_("kmem", "--from", path, "--json", *options)).stdout)
            lib.note(lost)  # each of the three misses others
            return sorted(str({key: value for key, value in row.items() if key != "time_ns"}) for row in rows)
        had, lacked = shown(with_it), shown(without)
        equal(shown(with_it, "--hist"), sorted(map(str, it.rows)), "rows with histograms")
        equal(had, lacked, "rows without")
        line = anytool.refused(1, "kmem", "--from", without, "--hist")
        check("--hist uses the column requested_histogram, which was not recorded in " + without in line, line)


def on_screen():
    """Below its row, under a heading that says what of, with bounds in its unit."""
    with maker() as m:
        process = anytool.begin(anytool.About("kmem"), "--hist", "-p", m.pid, "--by", "process")
        m.do("pipes 50")
        process.terminate()
        out = process.communicate(timeout=tap.TIMEOUT)[0].decode()
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split() == ["REQUESTED", "COUNT"])
    check(lines[at - 1].split()[0] == str(m.pid), "it does not stand below its row:", out)
    check(any(line.split()[:2] == ["512", "B"] and line.split()[3:5] == ["1", "KiB"] for line in lines[at:]), "bounds:",
          out)
    check(all(len(line) <= 80 for line in lines[at:]), "too wide:", out)


def all_have_one():
    """--help of each tool says what its histogram is of."""
    for name in anytool.names():
        help_ = tap.succeed([built("ALLIUM"), "sys", name, "--help"]).stdout.decode()
        line = next((line for line in help_.splitlines() if line.split()[:1] == ["--hist"]), "")
        check("as a histogram" in line, name + ":", line)


TESTS = [("requested bytes of each allocation, by " + method, lambda method=method: requested(method))
         for method in ("tp_btf", "raw_tp", "tp")]
TESTS += [("sizes of blocks, by " + method, lambda method=method: blocks(method)) for method in ("raw_tp", "tp")]
TESTS += [("how long objects live, by " + method, lambda method=method: lifetimes(method))
          for method in ("tp_btf", "raw_tp", "tp")]
TESTS += [
    ("how long faults take", lambda: waits("perf")),
    ("a way to attach that cannot tell it is refused", not_told),
    ("sites of a function have one histogram", by_function),
    ("sizes of blocks are their orders", blocks_by_order),
    ("rows are the same with and without lifetimes", lifetimes_alike),
    ("samples count for what they stand for", sampled),
    ("a recording has what was asked for", recorded),
    ("on the screen it stands below its row", on_screen),
    ("all tools have one", all_have_one),
    ("a test of requested bytes fails when a row is missing", lambda: loses(lambda env: requested("tp_btf", env))),
    ("a test of lifetimes fails when a row is missing", lambda: loses(lambda env: lifetimes("tp_btf", env))),
    ("a test of blocks fails when a row is missing", lambda: loses(lambda env: blocks("raw_tp", env))),
]

lib.main(TESTS)
