#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys swapin`: a program touches a known number of pages that are in swap. Each is a fault; the pages that were
read, and those read ahead, are those of /proc/vmstat. Swap is a file, zram, or has zswap before it.
"""
import contextlib
import os
import subprocess

import lib
import reclaim
from lib import Skipped, built, check, equal, loses, only, tool
from reclaim import Counted, group, total
from tap import wait_until

METHODS = ("tp_btf", "raw_tp", "perf")
SEES_PAGES = ("tp_btf", "raw_tp")
ONCE = ("--interval", "1h")
PAGES = 400
ZSWAP = "/sys/module/zswap/parameters/"
ZRAM = "/sys/class/zram-control/"
ACCOUNTING = "/proc/sys/kernel/task_delayacct"
SOURCES = ("device_pages", "zram_pages", "zswap_pages", "zero_pages")


class Swapper:
    """tests/sys/swapper.c in a cgroup of its own: its memory is what it was told to map."""

    def __init__(self, where):
        self.where = where
        self.process = subprocess.Popen(where.command([built("TEST_SWAPPER")]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.ask("nothing")

    def ask(self, words):
        """(pages in swap, major faults, minor faults)"""
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        equal(len(answer), 3, "numbers after " + words)
        return [int(number) for number in answer]

    def cached(self):
        """Bytes of the group that are in memory and in swap."""
        with open(self.where.folder + "/memory.stat") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("swapcached "))

    def squeeze(self):
        """The group gives up what it can, so that the swap cache is empty."""
        with contextlib.suppress(OSError):
            if self.where.v1:
                reclaim.write(self.where.folder + "/memory.limit_in_bytes", 0)
            else:
                reclaim.write(self.where.folder + "/memory.reclaim", "%dM" % (PAGES * reclaim.PAGE // reclaim.MIB + 1))
        return not self.cached()

    def swap_out(self, kind, how="private", pages=PAGES):
        self.ask("map %d %s %s" % (pages, kind, how))
        self.ask("out")
        wait_until(self.squeeze, lib.tap.TIMEOUT, "the swap cache is empty")
        in_swap = self.ask("nothing")[0]
        equal(in_swap, 0 if how == "shared" else pages, "pages in swap")


@contextlib.contextmanager
def swapper(name=""):
    with group(None, name) as where:
        it = Swapper(where)
        try:
            yield it
        finally:
            it.process.kill()
            it.process.communicate()


@contextlib.contextmanager
def setting(path, value):
    with open(path) as file:
        before = file.read()
    reclaim.write(path, value)
    try:
        yield
    finally:
        reclaim.write(path, before)


@contextlib.contextmanager
def zram(mib=64):
    """Swap on zram; -> its path."""
    if not os.path.exists(ZRAM + "hot_add"):
        raise Skipped("this kernel has no zram")
    with open(ZRAM + "hot_add") as file:
        number = file.read().strip()
    path = "/dev/zram" + number
    try:
        wait_until(lambda: os.path.exists(path), lib.tap.TIMEOUT, path)
        reclaim.write("/sys/block/zram%s/disksize" % number, "%dM" % mib)
        lib.tap.succeed(["/usr/sbin/mkswap", path])
        lib.tap.succeed(["/usr/sbin/swapon", path])
        try:
            yield path
        finally:
            lib.tap.succeed(["/usr/sbin/swapoff", path])
    finally:
        reclaim.write("/sys/block/zram%s/reset" % number, 1)
        reclaim.write(ZRAM + "hot_remove", number)


@contextlib.contextmanager
def zswap():
    """A file, with zswap before it."""
    if not os.path.exists(ZSWAP + "enabled"):
        raise Skipped("this kernel has no zswap")
    with setting(ZSWAP + "enabled", "Y"), reclaim.swap():
        yield


def agrees(it, counted):
    """All rows together, with the kernel's own counts. What a method knows of faults alone must be at most what had to be
    read, and all but a twentieth of it.
    """
    rows = [row for row in it.rows if row["comm"] != "[unattributed]"]
    equal(it.lost["lost_rows"] + it.lost["replaced"], 0, "lost rows and faults")
    if it.method not in SEES_PAGES:
        reads = total(rows, "faults") - total(rows, "cached_faults")
        read = sum(counted.end[name] - counted.begin[name] for name in ("pswpin", "zswpin", "swpin_zero"))
        needed = read - (counted.end["swap_ra"] - counted.begin["swap_ra"])
        check(0.95 * needed <= reads, "faults that had to read:", reads, "needed:", needed)
        return
    counted.holds("from a device or zram", total(rows, "device_pages") + total(rows, "zram_pages"), "pswpin")
    counted.holds("from zswap", total(rows, "zswap_pages"), "zswpin")
    counted.holds("zero", total(rows, "zero_pages"), "swpin_zero")
    counted.holds("read ahead", total(rows, "read_ahead_pages"), "swap_ra")
    for row in rows:
        equal(sum(row[name] for name in SOURCES), row["pages"], "pages of all sources")


def swapped(method, kind, how="private", words="touch 0 %d 1" % PAGES, options=(), env=None):
    """Its row, and by how much its own faults went on: [major, minor]. Others churn beside it."""
    with lib.load(), swapper() as it:
        it.swap_out(kind, how)
        counted = Counted()
        with tool("swapin", "--attach", method, *ONCE, *options, env=env) as watch:
            equal(watch.method, method, "method")
            counted.ready()
            before = it.ask("nothing")
            after = it.ask(words)
            counted.through()
            watch.stop()
        agrees(watch, counted)
        row = only(watch.rows, pid=it.pid)
        check(row["share_percent"] > 95, "share:", watch.rows)
        with open("/proc/%d/status" % it.pid) as file:
            status = dict(line.split(":", 1) for line in file)
        equal(row["swapped_bytes"], int(status["VmSwap"].split()[0]) << 10, "VmSwap")
    return row, [new - old for new, old in zip(after[1:], before[1:])]


def has_pages(row, method, source):
    """All pages are of this source."""
    if method in SEES_PAGES:
        equal({name: row[name] for name in SOURCES if row[name]}, {source: row["pages"]}, "sources")
        equal(row["faults"] - row["cached_faults"] + row["read_ahead_pages"], row["pages"], "events and read-ahead")


def private(method, kind, source, env=None):
    """Each page that is touched is one fault: the page is read, or was read ahead of it."""
    row, (major, _) = swapped(method, kind, env=env)
    equal(row["faults"], PAGES, "faults")
    read = row["faults"] - row["cached_faults"]
    # A fault that waits for a page that is being read ahead is a major one to the kernel, and found it in the cache.
    check(read == major if method == "perf" else 0 < read <= major, read, "of", major, "major faults had to read")
    has_pages(row, method, source)
    check(0 < row["longest_ns"] <= row["duration_ns"], row)
    equal(row["mean_ns"], row["duration_ns"] // PAGES, "mean")


def of_file(method, env=None):
    with reclaim.swap():
        private(method, "random", "device_pages", env)


def of_zram(method, env=None):
    with zram():
        private(method, "random", "zram_pages", env)


def of_zswap(method, env=None):
    with zswap():
        private(method, "same", "zswap_pages", env)


def of_zeros(method, env=None):
    """The original, which counts reads, shows them as reads of the device."""
    with reclaim.swap():
        private(method, "zero", "zero_pages", env)


def shared(method):
    """A page of shared memory that was read ahead is no major fault, and its counters do not tell."""
    with zram():
        row, (major, _) = swapped(method, "random", "shared")
    read = row["faults"] - row["cached_faults"]
    check(0 < read <= major, read, "of", major, "major faults had to read")
    has_pages(row, method, "zram_pages")
    if method in SEES_PAGES:
        equal(row["pages"], PAGES, "pages")


def some_pages():
    """Of 40 pages 10 apart each is a fault, but some were read ahead: the original counts them as swap-ins, too."""
    with reclaim.swap():
        row, _ = swapped("tp_btf", "random", words="touch 0 40 10")
    equal(row["faults"], 40, "faults")
    check(row["swapped_bytes"] > 0, row)
    equal(row["faults"] - row["cached_faults"] + row["read_ahead_pages"], row["pages"], "events and read-ahead")


def by_kernel():
    """The kernel reads the pages for a system call: faults of which perf knows nothing."""
    with zram():
        row, _ = swapped("tp_btf", "random", words="peek 0 %d" % PAGES)
    equal(row["faults"], PAGES, "faults")
    has_pages(row, "tp_btf", "zram_pages")


def without_fault():
    """madvise(MADV_WILLNEED) reads all, and nobody has waited in a fault; then all are in the cache."""
    with reclaim.swap(), swapper() as it:
        it.swap_out("random")
        counted = Counted()
        with tool("swapin", *ONCE) as watch:
            counted.ready()
            it.ask("ahead")
            it.ask("touch 0 %d 1" % PAGES)
            counted.through()
            watch.stop()
        row = only(watch.rows, pid=it.pid)
    counted.holds("pages", total(watch.rows, "device_pages"), "pswpin")
    equal((row["pages"], row["no_fault_pages"], row["read_ahead_pages"]), (PAGES, PAGES, 0), "pages without a fault")
    equal((row["faults"], row["cached_faults"]), (PAGES, PAGES), "faults")


def delays():
    """With delay accounting the kernel counts each page that a thread has read, and how long that took."""
    with setting(ACCOUNTING, 1), zram():
        row, _ = swapped("tp_btf", "random")
    equal(row["delays"], row["pages"], "delays")
    check(0 < row["delay_ns"] < row["duration_ns"], row)
    with zram():
        row, _ = swapped("tp_btf", "random")
    equal((row["delays"], row["delay_ns"]), (None, None), "delays that are not accounted")


def by_cgroup(env=None):
    """Two groups, of which one touches a quarter."""
    with zram(), swapper("a") as one, swapper("b") as other:
        one.swap_out("random")
        other.swap_out("random")
        counted = Counted()
        with tool("swapin", "--by", "cgroup", *ONCE, env=env) as watch:
            counted.ready()
            one.ask("touch 0 %d 1" % PAGES)
            other.ask("touch 0 %d 1" % (PAGES // 4))
            counted.through()
            watch.stop()
    counted.holds("from zram", total(watch.rows, "zram_pages"), "pswpin")
    equal(only(watch.rows, cgroup=one.where.path)["faults"], PAGES, "faults of one")
    equal(only(watch.rows, cgroup=other.where.path)["faults"], PAGES // 4, "faults of the other")


def by_device():
    """The only area is known; of several it is said that none is."""
    with zram() as path, swapper() as it:
        it.swap_out("random")
        with tool("swapin", "--by", "device", *ONCE) as watch:
            it.ask("touch 0 %d 1" % (PAGES // 2))
            watch.stop()
        equal(only(watch.rows, swap=path)["faults"], PAGES // 2, "faults")
        with reclaim.swap(), tool("swapin", "--by", "device", *ONCE) as watch:
            it.ask("touch %d %d 1" % (PAGES // 2, PAGES // 2))
            watch.stop()
        row = only(watch.rows, swap=None)
        equal((row["faults"], row["device_pages"], row["zram_pages"]), (PAGES // 2, None, None), "of two areas")


def unattributed(method, processes, percent):
    """So much at most belongs to nobody, and is shown."""
    with reclaim.swap(), contextlib.ExitStack() as stack:
        them = [stack.enter_context(swapper(str(i))) for i in range(processes)]
        for it in them:
            it.swap_out("random")
        with tool("swapin", "--attach", method, *ONCE) as watch:
            for it in them:
                it.process.stdin.write(b"touch 0 %d 1\n" % PAGES)
                it.process.stdin.flush()
            for it in them:
                it.process.stdout.readline()
            watch.stop()
        for it in them:
            equal(only(watch.rows, pid=it.pid)["faults"], PAGES, "faults")
    shares = [row["share_percent"] for row in watch.rows]
    check(abs(sum(shares) - 100) < 1e-6, "shares:", shares)
    share = sum(row["share_percent"] for row in watch.rows if row["comm"] == "[unattributed]")
    print("# %s, %d processes: %.1f %% unattributed" % (method, processes, share))
    check(share <= percent, watch.rows)


def methods_agree():
    """All at work at once: columns that two of them have are the same."""
    same = ("faults", "cached_faults")
    pages = (*same, "pages", "read_ahead_pages", *SOURCES)
    with zram(), swapper() as it:
        it.swap_out("random")
        mine = ("--pid", it.pid, *ONCE)
        with tool("swapin", "--attach", "tp_btf", *mine) as a, tool("swapin", "--attach", "raw_tp", *mine) as b:
            with tool("swapin", "--attach", "perf", *mine) as c:
                it.ask("touch 0 %d 1" % PAGES)
                rows = [only(one.stop().rows, pid=it.pid) for one in (a, b, c)]
    equal([rows[1][name] for name in pages], [rows[0][name] for name in pages], "columns of raw_tp")
    equal([rows[2][name] for name in same], [rows[0][name] for name in same], "columns of perf")


def histogram():
    with zram():
        row, _ = swapped("tp_btf", "random", options=("--hist",))
    equal(sum(slot["count"] for slot in row["duration_histogram_ns"]), PAGES, "faults in all slots")


TESTS = [("pages of a file, by " + method, lambda method=method: of_file(method)) for method in METHODS]
for name, test in (("pages of zram", of_zram), ("pages in zswap", of_zswap), ("zero pages", of_zeros),
                   ("shared memory", shared)):
    TESTS += [(name + ", by " + method, lambda test=test, method=method: test(method)) for method in ("tp_btf", "perf")]
TESTS += [("%s: at most %d %% of %d processes is unattributed" % (method, percent, processes),
           lambda method=method, processes=processes, percent=percent: unattributed(method, processes, percent))
          for method in ("tp_btf", "perf") for processes, percent in ((1, 5), (5, 20))]
TESTS += [
    ("a missing row is noticed", lambda: loses(lambda env: of_zram("tp_btf", env))),
    ("some pages, others are read ahead", some_pages),
    ("faults of the kernel for a system call", by_kernel),
    ("pages read without a fault", without_fault),
    ("the kernel's delay accounting", delays),
    ("cgroups", by_cgroup),
    ("the area is known if there is one", by_device),
    ("ways to attach agree", methods_agree),
    ("a histogram has each fault", histogram),
]

if __name__ == "__main__":
    lib.main(TESTS)
