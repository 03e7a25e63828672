#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys kpages`: pages are counted once each, on every way to attach, against pages touched and the kernel's own
count.
"""
import collections
import os
import re
import struct
import sys

sys.dont_write_bytecode = True
import lib
from lib import alike, check, equal, load, loses, maker, one_row_by_comm, only, tool, vmstat

PAGE = os.sysconf("SC_PAGE_SIZE")
METHODS = ("raw_tp", "tp")
N = 3000
NEVER = ("lost_events", "lost_rows", "stacks_failed", "stacks_lost", "lost_live_objects")


# How much follows a type of BTF, by its kind: (bytes once, bytes for each of its vlen). include/uapi/linux/btf.h.
STRUCT = 4
BEHIND = {
    1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0),
    19: (0, 12)
}


def set_struct_size(btf, name, size):
    """Writes another size of a struct into the kernel's BTF."""
    header, type_at, type_bytes, text_at = struct.unpack_from("<IIII", btf, 4)
    at, end, texts = header + type_at, header + type_at + type_bytes, header + text_at
    found = 0
    while at < end:
        name_at, info = struct.unpack_from("<II", btf, at)
        kind, n = info >> 24 & 31, info & 0xffff
        if kind == STRUCT and btf[texts + name_at:texts + name_at + len(name) + 1] == name + b"\0":
            struct.pack_into("<I", btf, at + 8, size)
            found += 1
        once, each = BEHIND.get(kind, (0, 0))
        at += 12 + once + each * n
    equal(found, 1, "structs of that name")


def nothing_lost(it):
    for what in NEVER:
        equal(it.lost[what], 0, what)


def touched(method, env=None):
    """N pages touched by one process are N allocations of order 0, movable, of a page each."""
    with maker() as m, load():
        stay(m)
        m.do("touch 1", "drop")
        with tool("kpages", "--attach", method, "-p", m.pid, "--by", "type", env=env) as it:
            equal(it.method, method, "method")
            m.do("touch %d" % N)
            it.stop()
    row = only(it.rows, migrate_type="movable")
    equal((row["allocations"], row["allocated_bytes"], row["orders"], row["failures"]), (N, N * PAGE, "0", 0),
          "pages touched")
    check("frees" not in row, "a free does not tell a type:", row)
    nothing_lost(it)


def huge(method, env=None):
    """Eight transparent huge pages are eight blocks of order 9: the original counts 8 pages, not 4096."""
    with maker() as m:
        with tool("kpages", "--attach", method, "-p", m.pid, "--by", "order", env=env) as it:
            m.do("huge 8")
            with open("/proc/%d/smaps_rollup" % m.pid) as file:
                got = sum(int(line.split()[1]) for line in file if line.startswith("AnonHugePages")) // 2048
            it.stop()
    check(got, "this machine gave no huge page")
    row = only(it.rows, order=9)
    equal(row["allocations"], got, "huge pages, against smaps")
    equal(row["allocated_bytes"], row["allocations"] * 512 * PAGE, "bytes of blocks of order 9")


def stay(m):
    """On one processor: of pages that were touched on another, some lie in its batch for the LRU, and are only freed
    when that is full.
    """
    os.sched_setaffinity(int(m.pid), {min(os.sched_getaffinity(0))})


def live_until_dropped(method, env=None):
    """What is live is what was touched; after it is unmapped, nothing. Each page that comes back was freed once."""
    with maker() as m, load():
        stay(m)
        m.do("touch 1", "drop")
        with tool("kpages", "--attach", method, "-p", m.pid, "--by", "type", "--live", env=env) as held:
            with tool("kpages", "--attach", method, "-p", m.pid, "--by", "type", "--live", env=env) as gone:
                m.do("touch %d" % N)
                held.stop()
                m.do("drop")
                gone.stop()
    row = only(held.rows, migrate_type="movable")
    equal((row["live_blocks"], row["live_bytes"]), (N, N * PAGE), "live pages")
    row = only(gone.rows, migrate_type="movable")
    equal((row["allocations"], row["live_blocks"], row["live_bytes"]), (N, 0, 0), "after munmap")
    nothing_lost(held)
    nothing_lost(gone)


def freed_once(method, env=None):
    """munmap() gives pages back by the batch: mm_page_free and mm_page_free_batched both fire, and each page counts
    once: were it counted twice, there would be 2 N. Beyond the N pages: the page tables that mapped them, pages of
    pipes, and what an interrupt frees in the process's name just then, such as page tables of other processes that
    ended.
    """
    with maker() as m:
        stay(m)
        m.do("touch %d" % N)
        with tool("kpages", "--attach", method, "-p", m.pid, "--by", "order", env=env) as it:
            m.do("drop")
            it.stop()
    freed = only(it.rows, order=0)["freed_bytes"] // PAGE
    check(N <= freed < N + N // 2, freed, "pages freed of", N)


def whole_machine(method):
    """All rows together are not more than the kernel counted from before to after; frees, which all have an event, not
    less than what it counted in between. (Of allocations those in bulk have none.)
    """
    with load():
        outer = vmstat()
        with tool("kpages", "--attach", method, "--by", "order") as it, maker() as m:
            inner = vmstat()
            m.do("touch %d" % N, "drop", "forks 50")
            inner_end = vmstat()
            it.stop()
        outer_end = vmstat()

    def pages(before, after, what):
        return sum(after[name] - before[name] for name in after if name.startswith(what))
    allocated = sum(row["allocated_bytes"] for row in it.rows) // PAGE
    freed = sum(row["freed_bytes"] for row in it.rows) // PAGE
    check(N < allocated <= pages(outer, outer_end, "pgalloc_"), allocated, "allocated, the kernel",
          pages(outer, outer_end, "pgalloc_"))
    # What is not told may be blocks of several pages: those of up to eight are freed by each CPU.
    untold = 8 * (it.lost["own_events"] + it.lost["missed_events"])
    check(pages(inner, inner_end, "pgfree") - untold <= freed <= pages(outer, outer_end, "pgfree"), freed,
          "freed, the kernel", pages(inner, inner_end, "pgfree"), pages(outer, outer_end, "pgfree"))
    nothing_lost(it)


def page_cache(method):
    """A file that was dropped from the page cache takes its size in movable pages, in blocks of any order, when it is
    read.
    """
    size = 4 << 20
    with lib.private_dir(os.getcwd()) as folder, maker() as m:
        path = os.path.join(folder, "file")
        with open(path, "wb") as file:
            file.write(os.urandom(size))
            file.flush()
            os.fsync(file.fileno())
        m.do("read " + path)
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with tool("kpages", "--attach", method, "-p", m.pid, "--by", "type") as it:
            m.do("read " + path)
            it.stop()
    row = only(it.rows, migrate_type="movable")
    equal(row["allocated_bytes"], size, "of a file's pages (orders %s)" % row["orders"])


def methods_agree():
    """Two ways to attach, at once: the same rows for the same events, by each part."""
    for by, key in ("type", "migrate_type"), ("order", "order"), ("process", "pid"):
        with maker() as m, load():
            options = ("-p", m.pid, "--by", by)
            with tool("kpages", "--attach", METHODS[0], *options) as one, tool(
                "kpages", "--attach", METHODS[1], *options
            ) as two:
                m.do("touch %d" % N, "files 100", "drop", "close", "forks 3")
                one.stop()
                two.stop()
        check(sum(row["allocations"] for row in one.rows) > N, one.rows)
        alike(one, two, (key,), ("allocated_bytes", "freed_bytes", "failures"))


def stacks():
    """By stack, no page is lost: the rows add up to what rows by type say; each has a stack."""
    with maker() as m:
        m.do("touch 1", "drop")
        with tool("kpages", "-p", m.pid) as by_stack, tool("kpages", "-p", m.pid, "--by", "type") as by_type:
            m.do("touch %d" % N)
            by_stack.stop()
            by_type.stop()
    for what in ("allocations", "allocated_bytes"):
        equal(sum(row[what] for row in by_stack.rows), sum(row[what] for row in by_type.rows), what)
    check(max(row["allocations"] for row in by_stack.rows) == N, "the touched pages came on one way:", by_stack.rows)
    check(all(row["kernel_stack"] for row in by_stack.rows), by_stack.rows)
    nothing_lost(by_stack)


# What no row by function is: it allocates for others.
ALLOCATORS = ("alloc_pages", "alloc_frozen_pages", "folio_alloc", "vma_alloc", "get_zeroed_page", "free_frozen_pages",
              "free_pages", "free_unref", "folios_put_refs")


def function_of(row):
    """Of a row by stack, by this test's own list."""
    names = [re.sub(r"(\.(part|constprop|isra|cold)(\.\d+)?)*\+0x.*", "", frame) for frame in row["kernel_stack"]]
    return next(name for name in names if not any(name.strip("_").startswith(begin) for begin in ALLOCATORS))


def by_code():
    """By function, the touched pages are those of one function that is no part of the page allocator; by file and by
    directory, of the source that has this function. All rows together are those by stack.
    """
    with lib.private_dir() as folder, maker() as m, load():
        stay(m)
        m.do("touch 1", "drop")
        with tool("kpages", "-p", m.pid) as stacks_:
            m.do("touch %d" % N, "drop")
            stacks_.stop()
        function = function_of(max(stacks_.rows, key=lambda row: row["allocations"]))
        for path, text in (("Makefile", "VERSION = 1\nPATCHLEVEL = 2\nSUBLEVEL = 3\n"),
                           ("Kbuild", "obj-y += mm/\n"), ("mm/Makefile", "obj-y := memory.o\n"),
                           ("mm/memory.c", "static int %s(int fault)\n{\n}\n" % function)):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w") as file:
                file.write(text)
        recorded = os.path.join(folder, "r.allium")
        source = "--source", folder
        with tool("kpages", "-p", m.pid) as whole, tool("kpages", "-p", m.pid, "--by", "function", "--live") as code, \
                tool("kpages", "-p", m.pid, "--by", "file", *source) as files, \
                tool("kpages", "-p", m.pid, "--by", "directory", *source) as folders, \
                tool("kpages", "-p", m.pid, "--by", "file", *source, "-o", recorded) as kept:
            m.do("touch %d" % N)
            for it in whole, code, files, folders, kept:
                it.stop()
        command = [lib.built("ALLIUM"), "sys", "kpages", "--from", recorded, "--by", "directory", "--json"]
        again = lib.stream(lib.tap.succeed(command).stdout)[:-1]
    equal(only(again, directory="mm")["allocations"], N, "pages of the directory of recorded files")
    row = only(code.rows, function=function)
    equal((row["allocations"], row["live_blocks"]), (N, N), "pages of %s" % function)
    equal(only(files.rows, file="mm/memory.c ~")["allocations"], N, "pages of its file")
    equal(only(folders.rows, directory="mm")["allocations"], N, "pages of its directory")
    expected = collections.Counter()
    for row in whole.rows:
        expected[function_of(row)] += row["allocations"]
    equal({row["function"]: row["allocations"] for row in code.rows}, dict(expected), "allocations by function")
    for it in code, files, folders:
        for what in "allocated_bytes", "freed_bytes", "failures":
            equal(sum(row[what] for row in it.rows), sum(row[what] for row in whole.rows), what)
        nothing_lost(it)


def user_stacks():
    """The program's code that touched the pages has its name."""
    with maker() as m:
        m.do("touch 1", "drop")
        with tool("kpages", "-p", m.pid, "--stacks", "user", "--live") as it:
            m.do("touch %d" % N)
            it.stop()
    # More than one row: a compiler may unroll the loop, and each copy has an address of its own.
    named = [row for row in it.rows if row["user_stack"] and row["user_stack"][0].endswith("(maker)")]
    check(sum(row["allocations"] for row in named) >= N, named)


def live_map_full():
    """Too small a map of live blocks: what found no place is counted, to the unit."""
    with maker() as m:
        m.do("touch 1", "drop")
        with tool("kpages", "-p", m.pid, "--by", "order", "--live-blocks", 500) as it:
            m.do("touch %d" % N)
            it.stop()
    blocks = sum(row["allocations"] for row in it.rows)
    live = sum(row["live_blocks"] for row in it.rows)
    equal(live, 500, "followed")
    equal(live + it.lost["lost_live_objects"], blocks, "followed and lost")
    check(b"live objects lost" in it.errors or it.lost["lost_live_objects"] > N - 600, it.lost)


def table_full():
    """Too small a table of rows: the events that found no row are counted, to the unit."""
    with maker() as m:
        with tool("kpages", "-p", m.pid, "--rows", 3) as small, tool("kpages", "-p", m.pid) as large:
            m.do("touch 50", "files 500", "drop", "close", "forks 3")
            small.stop()
            large.stop()
    check(len(large.rows) > 3, large.rows)
    equal(len(small.rows), 3, "rows")

    def events(it):
        return sum(row["allocations"] + row["frees"] + row["failures"] for row in it.rows)
    equal(events(small) + small.lost["lost_rows"], events(large), "events kept and lost")


def process_gone():
    """A process that ended keeps its row, with its name; its pages came back."""
    with tool("kpages", "--by", "process", "--comm", "maker", "--live") as it:
        with maker() as m:
            m.do("touch %d" % N)
        it.stop()
    row = only(it.rows, pid=m.pid)
    equal(row["comm"], "maker", "name")
    check(row["allocations"] >= N and row["live_bytes"] < N * PAGE // 10, row)


def odd_pages():
    """Where struct page is of no power of two of bytes, its address does not tell the frame: --live takes the way that
    has it.
    """
    with lib.private_dir() as folder:
        odd = folder + "/btf"
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            text = bytearray(file.read())
        set_struct_size(text, b"page", 56)
        with open(odd, "wb") as file:
            file.write(text)

        def run(*options):
            return lib.tap.run([
                "unshare", "-m", "sh", "-c",
                'mount --bind %s /sys/kernel/btf/vmlinux && exec "$@"' % odd, "sh",
                *lib.with_tracefs([lib.built("ALLIUM"), "sys", "kpages", "--duration", "20ms", *options])
            ])
        refused = run("--live", "--attach", "raw_tp")
        equal((refused.returncode, len(refused.stderr.splitlines())), (3, 1), "code, lines (%s)" % refused.stderr)
        check(b"struct page has 56 bytes here" in refused.stderr, refused.stderr)
        for options, method in ((["--live"], b"tp"), ([], b"raw_tp")):
            done = run(*options)
            check(done.returncode == 0, options, done)
            check(done.stderr.startswith(b"allium: ready: kpages using %s\n" % method), options, done)


def names_no_such_method():
    done = lib.tap.run([lib.built("ALLIUM"), "sys", "kpages", "--attach", "kprobe"])
    equal(done.returncode, 2, "exit code")
    check(b"use raw_tp, tp" in done.stderr, done.stderr)


TESTS = []
for method in METHODS:
    TESTS += [
        ("pages touched are counted, with a load beside it, by " + method, lambda method=method: touched(method)),
        ("huge pages count as 512, by " + method, lambda method=method: huge(method)),
        ("pages are live until they are unmapped, by " + method, lambda method=method: live_until_dropped(method)),
        ("a page freed by a batch is freed once, by " + method, lambda method=method: freed_once(method)),
        ("all rows together fit the kernel's own count, by " + method, lambda method=method: whole_machine(method)),
        ("a file's pages are its size, by " + method, lambda method=method: page_cache(method)),
    ]
TESTS += [
    ("a test of pages touched fails when a row is missing", lambda: loses(lambda env: touched("raw_tp", env))),
    ("a test of live pages fails when a row is missing", lambda: loses(lambda env: live_until_dropped("raw_tp", env))),
    ("a test of pages freed fails when a row is missing", lambda: loses(lambda env: freed_once("raw_tp", env))),
    ("two ways to attach show the same rows", methods_agree),
    ("processes of one name are one row by comm", lambda: one_row_by_comm("kpages", "touch 200", "allocated_bytes")),
    ("rows by stack add up to rows by type", stacks),
    ("by function, file and directory pages are those of the code that uses the allocator", by_code),
    ("user stacks have names", user_stacks),
    ("a full map of live blocks is counted", live_map_full),
    ("a full table of rows is counted", table_full),
    ("a process that is gone keeps its row", process_gone),
    ("a struct page of another length is no frame number", odd_pages),
    ("an unknown way to attach is refused with those there are", names_no_such_method),
]

lib.main(TESTS)
