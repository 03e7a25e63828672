# SPDX-License-Identifier: BSD-2-Clause
"""allium sys hfaults: against huge pages touched, smaps and status of the process, /proc/vmstat and the kernel's pools.
"""
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True
import huge as h
import lib
import reclaim
from lib import built, check, equal, loses, one_row_by_comm, only, private_dir, tool, vmstat, wait_until

METHODS = ("perf", "tp")  # fexit, kprobe: tests/kernels/guest/hfaults.sh
SHARED = ("faults", "hugetlb_2m", "hugetlb_failed", "thp", "no_huge_page", "cgroup_limit", "collapsed")
KHUGEPAGED = {"khugepaged__scan_sleep_millisecs": 10, "khugepaged__pages_to_scan": 1 << 20}
NOT_TOUCHED = "too many pages not touched yet"


@contextlib.contextmanager
def all_methods(*options, env=None):
    """A tool for each method, all at once."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(tool("hfaults", "--attach", method, *options, env=env)) for method in METHODS]


def told(*words, env=None, before=(), last=lambda it: None, load=contextlib.nullcontext):
    """(row, [failures of each]) of one process that was told to do these things; all methods show the same."""
    with load(), h.huge(before) as it, all_methods("-p", it.pid, env=env) as shows:
        failures = [it.do(line) for line in words]
        last(it)
        rows = [only(show.stop().rows, pid=it.pid) for show in shows]
    for show, row in zip(shows, rows):
        h.is_quiet(show.lost)
        equal({name: row[name] for name in SHARED}, {name: rows[0][name] for name in SHARED}, "of " + show.method)
        check("zero_page" not in row and "zapped" not in row, "columns that no event tells:", row)
    return rows[0], failures


def numbers(row, **want):
    equal({name: row[name] for name in want}, want, "numbers")
    equal(row["fallback"], row["no_huge_page"] + row["cgroup_limit"], "of small pages instead")
    equal(row["faults"], sum(row[name] or 0 for name in ("hugetlb_2m", "hugetlb_1g", "hugetlb_other", "hugetlb_failed",
                                                         "thp", "fallback")), "sum")


def hugetlb(env=None):
    """Those for which the pool has none end with a signal, or fail a system call; the book's hfaults counts them like
    others, as it looks at the beginning of hugetlb_fault() alone.
    """
    held = []
    with h.pool(3) as free:
        row, failures = told("hugetlb %d" % (free + 2), "hugetlb_kernel 1", "drop", "hugetlb_kernel 2", env=env,
                             last=lambda it: held.append(it.smaps("Private_Hugetlb")), load=h.load)
    equal(failures, [2, 1, 0, 0], "failures")
    numbers(row, hugetlb_2m=free + 2, hugetlb_failed=3, thp=0, fallback=0)
    equal((row["hugetlb_bytes"], held[0]), (2 * h.BYTES,) * 2, "pages of hugetlbfs that it has")


def pool_is_told():
    with h.pool(3) as free, h.huge() as it, tool("hfaults") as shows:
        it.do("hugetlb 2")
        shows.stop()
    row = only(shows.rows, machine="pool of 2 MiB")
    equal(row["pool_free"], free - 2, "free pages of the pool")
    check(row["pool_pages"] >= 3, "pages of the pool", row)


def transparent(env=None):
    """Huge pages that the program or the kernel touches, beside small ones."""
    found = []
    with h.transparent():
        row, failures = told("thp 5", "thp_kernel 2", "small 1", "plain 1", env=env,
                             last=lambda it: found.append(it.huge_pages), load=h.load)
    equal((failures, found), ([0, 0, 0, 0], [7]), "failures, and huge pages by smaps")
    numbers(row, thp=7, fallback=0, hugetlb_2m=0, hugetlb_failed=0)
    equal(row["anon_huge_bytes"], 7 * h.BYTES, "huge pages that it has")


def no_room():
    """The cgroup has room for some."""
    found, before = [], vmstat()
    with h.transparent(), reclaim.group(7) as group:
        group.does_not_swap()  # another's swap would be room
        row, _ = told("thp 6", before=group.command([]), last=lambda it: found.append(it.huge_pages), load=h.load)
    after = vmstat()
    numbers(row, thp=found[0], no_huge_page=0, cgroup_limit=6 - found[0])
    check(0 < found[0] < 6, "huge pages by smaps:", found)
    check(after["thp_fault_fallback_charge"] - before["thp_fault_fallback_charge"] >= 6 - found[0], "by /proc/vmstat")


def defrag():
    """Whatever the kernel may do to make a huge page, those that there are were told."""
    for setting in ("always", "defer", "defer+madvise", "madvise", "never"):
        found = []
        with h.transparent(defrag=setting):
            row, _ = told("thp 4", last=lambda it, found=found: found.append(it.huge_pages))
        numbers(row, thp=found[0], no_huge_page=4 - found[0], cgroup_limit=0)


def shared():
    """Huge pages of a tmpfs are another class, and the program's others are not among them."""
    with private_dir() as folder, h.transparent():
        lib.tap.succeed(["mount", "-t", "tmpfs", "-o", "huge=always,size=64M", "tmpfs", folder])
        try:
            with h.huge() as it, all_methods("-p", it.pid, "--by", "class") as shows:
                before = vmstat()["thp_file_alloc"]
                it.do("file 3 %s/file" % folder)
                after = vmstat()["thp_file_alloc"]
                it.do("thp 2")
                rows = [show.stop().rows for show in shows]
        finally:
            lib.tap.succeed(["umount", folder])
    check(after - before >= 3, "by /proc/vmstat:", after - before)
    for of_method in rows:
        equal(only(of_method, **{"class": "shared"})["thp"], 3, "huge pages of the tmpfs")
        equal(only(of_method, **{"class": "anonymous"})["thp"], 2, "of the program's own")


def khugepaged():
    """What khugepaged does is told of the process whose memory it is."""
    with h.transparent(**KHUGEPAGED):
        row, _ = told("small 2", last=lambda it: wait_until(lambda: it.huge_pages == 2, 30, "khugepaged has come"))
    numbers(row, thp=0, fallback=0)
    equal(row["collapsed"], 2, "collapsed")
    check(row["scanned"] >= 2, row)


def results():
    """Results in words: one page touched of each 512 is too few, and each such scan is counted as in /proc/vmstat."""
    key = "thp_scan_exceed_none_pte"
    with h.transparent(**KHUGEPAGED, khugepaged__max_ptes_none=0), h.huge() as it:
        outer = vmstat()[key]
        with all_methods("--by", "result") as shows:
            inner = vmstat()[key]
            it.do("sparse 3")
            wait_until(lambda: vmstat()[key] - inner >= 6, 30, "khugepaged has come twice")
            seen = vmstat()[key]
            rows = [show.stop().rows for show in shows]
        after = vmstat()[key]
    for of_method in rows:
        total = sum(row["scanned"] for row in of_method if row["result"] == NOT_TOUCHED)
        check(seen - inner <= total <= after - outer, "scans", total, "want", seen - inner, "to", after - outer)
        row = only(of_method, pid=it.pid, result=NOT_TOUCHED)
        check(row["scanned"] >= 3 and row["collapsed"] == 0, row)


def advised():
    """MADV_COLLAPSE is no fault, and its huge pages are not lost: as results they say what came of it."""
    with h.transparent(), h.huge() as it, all_methods("-p", it.pid, "--by", "result") as shows:
        it.do("collapse 3")
        equal(it.huge_pages, 3, "huge pages by smaps")
        rows = [show.stop().rows for show in shows]
    for show, of_method in zip(shows, rows):
        row = only(of_method, pid=it.pid, result="collapsed")
        equal((row["scanned"], row["collapsed"], row["thp"]), (3, 3, 0), "scans, collapses, faults")
        equal(show.lost["outside_of_faults"], 3, "huge pages without a fault")


def splits():
    """Nobody tells whose they are here: the machine has a row for them."""
    with h.transparent(), h.huge() as it:
        outer = vmstat()["thp_split_pmd"]
        with tool("hfaults") as shows:
            inner = vmstat()["thp_split_pmd"]
            it.do("thp 4")
            it.do("punch")
            seen = vmstat()["thp_split_pmd"]
            shows.stop()
        after = vmstat()["thp_split_pmd"]
    check(seen - inner >= 4, "split mappings by /proc/vmstat:", seen - inner)
    split = only(shows.rows, machine="all processes")["split_mappings"]
    check(seen - inner <= split <= after - outer, "split mappings", split, seen - inner, after - outer)
    equal(only(shows.rows, pid=it.pid)["split_mappings"], None, "of the process")


def whole_machine():
    """All rows together are what the kernel counts."""
    with h.transparent(), h.huge() as it:
        outer = vmstat()
        with tool("hfaults", "--by", "class") as shows, h.load():
            inner = vmstat()
            it.do("thp 20")
            time.sleep(0.5)
            seen = vmstat()
            shows.stop()
        after = vmstat()
    own = [row for row in shows.rows if row["class"] in ("heap", "stack", "anonymous")]
    for name, key in (("thp", "thp_fault_alloc"), ("fallback", "thp_fault_fallback")):
        total = sum(row[name] for row in own)
        check(seen[key] - inner[key] <= total <= after[key] - outer[key], name, "in all rows:", total, "want",
              seen[key] - inner[key], "to", after[key] - outer[key])
    check(sum(row["thp"] for row in own) > 20, "others have huge pages, too", own)


def histogram():
    """Each fault is in a slot, failed ones too: they take time."""
    with h.pool(1) as free, h.huge() as it, tool("hfaults", "--hist", "-p", it.pid) as shows:
        it.do("hugetlb %d" % (free + 1))
        it.do("thp 3")
        shows.stop()
    row = only(shows.rows, pid=it.pid)
    equal(sum(slot["count"] for slot in row["duration_histogram_ns"]), free + 4, "faults in all slots")
    equal(row["faults"], free + 4, "faults")
    check(min(slot["from"] for slot in row["duration_histogram_ns"]) >= 128, "that soon?", row)


def by_stack():
    with h.transparent(), h.huge() as it, tool("hfaults", "--by", "stack", "-p", it.pid) as shows:
        it.do("thp 6")
        it.do("thp_kernel 2")
        shows.stop()
    found = {str(row["user_stack"]): row["thp"] for row in shows.rows if row["pid"]}
    equal(sum(n for stack, n in found.items() if "touch" in stack and "main" in stack), 6, found)
    equal(sum(n for stack, n in found.items() if "read (" in stack), 2, found)


def by_cgroup():
    """khugepaged's work is that of the process's cgroup, not of its own; a filter by cgroup has it."""
    with h.transparent(**KHUGEPAGED), reclaim.group() as group, h.huge(group.command([])) as it, \
            tool("hfaults", "--by", "cgroup") as all_of_them, tool("hfaults", "--cgroup", group.path) as inside:
        it.do("small 2")
        it.do("thp 3")
        wait_until(lambda: it.huge_pages == 5, 30, "khugepaged has come")
        all_of_them.stop()
        inside.stop()
    row = only(all_of_them.rows, cgroup=group.path)
    equal((row["thp"], row["collapsed"]), (3, 2), "faults and collapses of the cgroup")
    row, = [row for row in inside.rows if row["pid"]]
    equal((row["pid"], row["thp"], row["collapsed"]), (it.pid, 3, 2), "with the filter")


@contextlib.contextmanager
def before_6_1():
    """The kernel's BTF without its tree of mappings, as older kernels have it."""
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        btf = file.read()
    with private_dir() as folder:
        with open(folder + "/btf", "wb") as file:
            file.write(btf.replace(b"\0mm_mt\0", b"\0mm_rb\0"))
        yield ["unshare", "-m", "sh", "-c", 'mount --bind %s/btf /sys/kernel/btf/vmlinux && exec "$@"' % folder, "sh"]


def no_tree():
    """Pages of hugetlbfs cannot be told from others then: that is said, and no zero is shown."""
    with before_6_1() as before, h.transparent(), h.huge() as it, \
            tool("hfaults", "-p", it.pid, before=before) as shows:
        it.do("thp 3")
        shows.stop()
    row = only(shows.rows, pid=it.pid)
    equal((row["thp"], row.get("hugetlb_2m"), row.get("hugetlb_failed")), (3, None, None), "huge pages")
    check(b"faults of hugetlbfs" in shows.errors.splitlines()[0], shows.errors)


def process_gone():
    """It keeps its row, and what it held is not known."""
    with h.transparent(), tool("hfaults", "--comm", "huge") as shows:
        with h.huge() as it:
            it.do("thp 2")
        shows.stop()
    row = only(shows.rows, pid=it.pid)
    equal((row["thp"], row["anon_huge_bytes"], row["hugetlb_bytes"]), (2, None, None), "faults, and held")


def table_full():
    with h.transparent(), h.huge() as it, tool("hfaults", "--rows", "1", "--by", "stack", "-p", it.pid) as shows:
        for line in ("thp 2", "thp_kernel 2", "thp 1"):
            it.do(line)
        shows.stop()
    check(shows.lost["lost_rows"] > 0, shows.lost)


def refused():
    for words in (["--attach", "fexit"], ["--attach", "kprobe"]):
        done = lib.tap.run([built("ALLIUM"), "sys", "hfaults", *words, "--duration", "20ms"])
        lines = done.stderr.splitlines()
        equal((done.returncode, len(lines)), (3, 1), "code and lines of %s: %s" % (words, done.stderr))


TESTS = [
    ("pages of hugetlbfs, and those that the pool had not", hugetlb), ("transparent huge pages", transparent),
    ("a cgroup without room makes small pages", no_room), ("with each setting of defrag", defrag),
    ("huge pages of a tmpfs", shared), ("khugepaged", khugepaged), ("results in words", results),
    ("MADV_COLLAPSE", advised), ("split mappings", splits), ("what the pool has", pool_is_told),
    ("all rows together fit the kernel's own count", whole_machine), ("the duration of each fault", histogram),
    ("stacks of those who touch huge pages", by_stack), ("by cgroup", by_cgroup),
    ("without the kernel's tree of mappings", no_tree),
    ("processes of one name are one row by comm", lambda: one_row_by_comm("hfaults", "huge 2", "thp")),
    ("a test of hugetlbfs fails when a row is missing", lambda: loses(hugetlb, 1)),
    ("a test of transparent pages fails when a row is missing", lambda: loses(transparent, 1)),
    ("a process that is gone keeps its row", process_gone), ("a full table of rows is counted", table_full),
    ("ways that this kernel has not are refused in a line", refused),
]

check(os.geteuid() == 0, "these tests take root")
lib.main(TESTS)
