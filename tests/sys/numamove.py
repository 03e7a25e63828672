#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys numamove`: pages that compaction moves, as /proc/vmstat counts them. A machine with one node has no other
migrations that a test can ask for: tests/kernels/guest/numamove.sh has them, between two nodes.
"""
import contextlib
import ctypes
import mmap
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import check, equal, load, loses, only, tool
from reclaim import Counted, total

METHODS = ("tp_btf", "raw_tp", "tp")
ONCE = ("--interval", "1h")
COMPACT = "/proc/sys/vm/compact_memory"
PAGE = os.sysconf("SC_PAGE_SIZE")
SCATTERED = 8192  # pages
TRIES = 20
MADV_NOHUGEPAGE = 15
MOVE_PAGES = 279
MPOL_MF_MOVE = 2
SHARED = ("calls", "pages", "moved_bytes", "failed_pages", "huge_pages", "failed_huge_pages", "split_huge_pages")
MS = 1_000_000


@contextlib.contextmanager
def scattered():
    """Memory of which every second page is kept: there is something to compact."""
    with mmap.mmap(-1, SCATTERED * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(MADV_NOHUGEPAGE)
        for page in range(SCATTERED):
            memory[page * PAGE] = 1
        for page in range(0, SCATTERED, 2):
            memory.madvise(mmap.MADV_DONTNEED, page * PAGE, PAGE)
        yield memory


def compact():
    """A process that compacts all memory; -> its pid."""
    process = subprocess.Popen(["sh", "-c", "echo 1 >" + COMPACT])
    equal(process.wait(tap.TIMEOUT), 0, "exit code of the one that compacts")
    return process.pid


def compact_some():
    """The same until pages were moved: memory may be compact already. -> the last process."""
    for _ in range(TRIES):
        before = lib.vmstat()["pgmigrate_success"]
        with scattered():
            pid = compact()
        if lib.vmstat()["pgmigrate_success"] > before:
            return pid
    raise lib.Failed("in %d tries no page was moved" % TRIES)


def agrees(it, counted):
    """All rows together, with the kernel's own counts."""
    counted.holds("moved", total(it.rows, "pages"), "pgmigrate_success")
    counted.holds("failed", total(it.rows, "failed_pages"), "pgmigrate_fail")
    counted.holds("huge pages", total(it.rows, "huge_pages"), "thp_migration_success")
    counted.holds("failed huge pages", total(it.rows, "failed_huge_pages"), "thp_migration_fail")
    counted.holds("split huge pages", total(it.rows, "split_huge_pages"), "thp_migration_split")
    for row in it.rows:
        equal(row["moved_bytes"], (row["pages"] or 0) * PAGE, "bytes of the pages")
    equal(it.lost["lost_rows"], 0, "lost rows")


def compaction(method, env=None):
    """The pages are those of /proc/vmstat, in the rows of the two processes that compact; they belong to anybody, so that
    no process is called their owner.
    """
    with load(), scattered():
        counted = Counted()
        with tool("numamove", "--attach", method, *ONCE, env=env) as it:
            equal(it.method, method, "method")
            counted.ready()
            first, second = compact_some(), compact_some()
            counted.through()
            it.stop()
    agrees(it, counted)
    for pid in first, second:
        row = only(it.rows, pid=pid)
        equal((row["reason"], row["comm"]), ("compaction", "sh"), "reason and name")
        equal([row[key] for key in ("owner_pid", "owner", "from_node", "to_node", "tasks")], [None] * 5, "not known")
        check(row["pages"], "nothing was moved:", row)


def methods_agree():
    """All at work at once: each column that does not measure time is the same."""
    with scattered(), tool("numamove", "--attach", "tp_btf", *ONCE) as a, tool(
        "numamove", "--attach", "raw_tp", *ONCE
    ) as b, tool("numamove", "--attach", "tp", *ONCE) as c:
        pid = compact()
        for it in (a, b, c):
            it.stop()
    rows = [only(it.rows, pid=pid) for it in (a, b, c)]
    for other in rows[1:]:
        equal({key: other[key] for key in SHARED}, {key: rows[0][key] for key in SHARED}, "columns of another method")


def parts():
    """However rows are grouped, they have the same pages; a mover has the columns of --by alone."""
    names = ("process", "owner", "comm", "reason")
    with scattered(), contextlib.ExitStack() as stack:
        tools = [stack.enter_context(tool("numamove", "--by", name, *ONCE)) for name in names]
        pid = compact()
        for it in tools:
            it.stop()
    sums = [tuple(total([row for row in it.rows if row["reason"] == "compaction"], key) for key in SHARED)
            for it in tools]
    # If not, the kernel has compacted, too, perhaps while only some of the tools were at work.
    if all(it.rows and {row.get("pid", pid) for row in it.rows} == {pid} for it in tools):
        equal(sums, [sums[0]] * len(sums), "sums by " + " ".join(names))
    has = [{key for key in ("pid", "comm", "owner_pid", "owner") if key in it.rows[0]} for it in tools]
    equal(has, [{"pid", "comm", "owner_pid", "owner"}, {"owner_pid", "owner"}, {"comm"}, set()], "columns")


def times(env=None):
    """Each call is in one slot, and the slots hold their sum and the longest. Most calls take less than a millisecond:
    whoever adds up whole milliseconds of each adds zeros.
    """
    with scattered(), tool("numamove", "--hist", *ONCE, env=env) as it:
        pid = compact()
        it.stop()
    row = only(it.rows, pid=pid)
    slots = row["duration_histogram_ns"]
    equal(sum(slot["count"] for slot in slots), row["calls"], "calls in all slots")
    least = sum(slot["count"] * slot["from"] for slot in slots)
    most = sum(slot["count"] * (slot["to"] - 1) for slot in slots)
    check(least <= row["duration_ns"] <= most, "the sum lies without its slots:", row)
    check(slots[-1]["from"] <= row["longest_ns"] < slots[-1]["to"], "the longest is not in the last slot:", row)
    check(sum(slot["count"] for slot in slots if slot["to"] <= MS), "no call of less than a millisecond:", slots)
    equal(it.lost["untimed"], 0, "calls without a time")


def stays():
    """Pages that are where move_pages(2) wants them to be are not migrated, and have no row."""
    libc = ctypes.CDLL(None, use_errno=True)
    with scattered() as memory, tool("numamove", "-p", os.getpid(), *ONCE) as it:
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        pages = (ctypes.c_void_p * 100)(*(at + (2 * i + 1) * PAGE for i in range(100)))
        status = (ctypes.c_int * 100)(*[-1] * 100)
        equal(libc.syscall(MOVE_PAGES, 0, 100, pages, (ctypes.c_int * 100)(), status, MPOL_MF_MOVE), 0, "move_pages")
        equal(set(status), {0}, "nodes")
        it.stop()
    equal(it.rows, [], "rows")


def untold():
    """A way to attach that cannot tell why pages fail says so, and does not show what it cannot tell."""
    with tool("numamove", *ONCE) as it:
        it.stop()
    check(b"cannot show the nodes of pages" in it.errors and b"why pages fail" in it.errors, it.errors)
    done = tap.run([lib.built("ALLIUM"), "sys", "numamove", "--sort", "pinned_pages", "--duration", "20ms"])
    equal(done.returncode, 3, "exit code of --sort pinned_pages (%s)" % done.stderr)
    check(b"--sort uses the column pinned_pages, which sys numamove cannot show using" in done.stderr, done.stderr)


def no_room():
    """A table of one row has no place for the second process: that is said."""
    with tool("numamove", "--rows", "1", *ONCE) as it:
        for _ in range(2):
            with scattered():
                compact()
        it.stop()
    check(it.lost["lost_rows"], "nothing was said to be lost:", it.lost, it.rows)


TESTS = [("compaction, by " + method, lambda method=method: compaction(method)) for method in METHODS]
TESTS += [
    ("a missing row is noticed", lambda: loses(lambda env: compaction("tp_btf", env))),
    ("ways to attach agree", methods_agree),
    ("rows by other parts", parts),
    ("times are told in nanoseconds", times),
    ("a missing row of times is noticed", lambda: loses(times)),
    ("pages that stay are no migration", stays),
    ("what cannot be shown is said", untold),
    ("rows for which there is no room are counted", no_room),
]

lib.main(TESTS)
