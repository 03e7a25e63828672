#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys memleak` of the kernel: what is live, how old it is and whether it grows, against files, timers, pipes and
pages that are held for real, the sizes of /proc/slabinfo, and the events of an ftrace instance.
"""
import collections
import contextlib
import math
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import anytool
import lib
from lib import Failed, alike, check, equal, load, loses, maker, only, tool

TOOL = "memleak"
RCU_S = 0.5  # after which the kernel has freed what it frees later
METHODS = ("tp_btf", "raw_tp", "tp")
PAGE = os.sysconf("SC_PAGE_SIZE")
N, TIMERS, PIPES = 700, 30, 40
OPENING, TIMER = "alloc_empty_file", "timer"  # do_timer_create; alloc_posix_timer where that is not inlined
PERIOD = 16384
# An estimate is this many standard deviations off once in 500 million runs.
SIGMAS = 6


def object_bytes(cache):
    with open("/proc/slabinfo") as file:
        return next(int(line.split()[3]) for line in file if line.split()[0] == cache)


def leaks(m, *options, **how):
    """The tool, of the maker alone, with one report."""
    options = ("-p", m.pid, *("--interval", "1h") * ("--interval" not in options), *options)
    return tool(TOOL, "--kernel", *options, shows="memleak_kernel", **how)


def warm(m, *commands):
    """Does all that the test will do, and gives it back: pages of the maker itself, such as those of its lists of files,
    are there already then.
    """
    m.do(*commands, "close", "untimers", "drop")


def at(rows, site, key="objects"):
    return sum(row[key] for row in rows if site in (row.get("call_site") or ""))


def nothing_lost(it):
    for loss in ("lost_rows", "lost_live_objects", "lost_frees", "stacks_lost", "cache_names_lost"):
        equal(it.lost[loss], 0, loss)


def held(method):
    """Files and timers that are held are live, to the unit; those that were given back, with a load beside, are not."""
    with maker() as m, load():
        with leaks(m, "--attach", method) as it:
            equal(it.method, method, "method")
            m.do("files 300", "pipes 20", "close", "files %d" % N, "timers %d" % TIMERS)
            it.stop()
    nothing_lost(it)
    files = only(it.rows, cache="filp")
    check(OPENING in files["call_site"], files)
    equal((files["kind"], files["objects"], files["live_bytes"]), ("slab", N, N * object_bytes("filp")), "open files")
    equal(at(it.rows, TIMER), TIMERS, "timers")
    for row in it.rows:
        equal((row["live_low_bytes"], row["objects_high"], row["samples"]), (None, None, None), "estimates, of all")


def pages(method):
    """Pages are apart from objects, and those that may be moved from those that may not, each at the call that takes
    them. Pages of pipes may not be moved; memory of a process may.
    """
    with maker() as m, load():
        warm(m, "pipes %d" % PIPES, "fill", "touch %d" % N)
        with leaks(m, "--attach", method) as it:
            m.do("touch 300", "drop", "pipes %d" % PIPES, "fill", "touch %d" % N)
            it.stop()
    nothing_lost(it)
    of_pipes = only(it.rows, kind="pages", objects=PIPES)
    check("pipe" in of_pipes["call_site"], "the call that takes pages of pipes:", of_pipes)
    equal(of_pipes["live_bytes"], PIPES * PAGE, "bytes of pages in pipes")
    touched = [row for row in it.rows if row["kind"] == "movable pages"]
    equal((sum(row["objects"] for row in touched), sum(row["live_bytes"] for row in touched)), (N, N * PAGE), "touched")
    check("anonymous" in max(touched, key=lambda row: row["objects"])["call_site"], touched)
    check(all("alloc_pages" not in row["call_site"] for row in it.rows), "a call in the page allocator:", it.rows)


def few(kind, command, key, value, env):
    """Of so few rows that the one which is dropped is soon the one that counts."""
    with maker() as m:
        warm(m, command)
        with leaks(m, "--only", kind, env=env) as it:
            m.do(command)
            it.stop()
    equal(max((row[key] for row in it.rows), default=0), value, command)


def only_kinds():
    """--only leaves the other kinds out."""
    kinds = {"slab": {"slab"}, "pages": {"pages"}, "movable": {"movable pages"},
             "slab,movable": {"slab", "movable pages"}}
    with maker() as m, contextlib.ExitStack() as stack:
        tools = {kind: stack.enter_context(leaks(m, "--only", kind)) for kind in kinds}
        m.do("pipes %d" % PIPES, "fill", "touch %d" % N)
        for kind, it in tools.items():
            equal({row["kind"] for row in it.stop().rows}, kinds[kind], "kinds with --only " + kind)


def huge():
    """A huge page is one block; of one that was split and partly given back, the rest stays live."""
    with maker() as m:
        with leaks(m, "--only", "movable") as it:
            m.do("huge 4")
            with open("/proc/%d/smaps_rollup" % m.pid) as file:
                got = sum(int(line.split()[1]) for line in file if line.startswith("AnonHugePages")) << 10
            it.stop()
    check(got, "this machine gave no huge page")
    equal(sum(row["live_bytes"] for row in it.rows if row["live_bytes"] == 512 * PAGE * row["objects"]), got,
          "bytes of huge pages, against smaps")


def agree():
    """All ways to attach, at once, show the same rows of the same program."""
    with maker() as m, contextlib.ExitStack() as stack:
        tools = [stack.enter_context(leaks(m, "--attach", method)) for method in METHODS]
        m.do("pipes 40", "fill", "files 300", "timers 20", "touch 50", "close", "untimers", "files 200", "timers 10")
        time.sleep(RCU_S)
        for it in tools:
            it.stop()
    def of(it):
        return {(row["kind"], row["call_site"], row["cache"]): (row["objects"], row["live_bytes"]) for row in it.rows}
    first = of(tools[0])
    missed = sum(it.lost["missed_events"] for it in tools)
    for it in tools[1:]:
        rows = of(it)
        differ = [(key, first.get(key), rows.get(key)) for key in {*first, *rows} if first.get(key) != rows.get(key)]
        check(len(differ) <= missed, differ, "differ,", missed, "were missed")
    equal([value[0] for key, value in first.items() if OPENING in key[1]], [200], "open files")


TRACE = """
set -e
mount -t tracefs none /sys/kernel/tracing
mkdir /sys/kernel/tracing/instances/allium-test-$$
cd /sys/kernel/tracing/instances/allium-test-$$
trap 'cd /; rmdir /sys/kernel/tracing/instances/allium-test-$$' EXIT
echo 65536 >buffer_size_kb
echo 0 >options/hash-ptr
echo mono >trace_clock
for event in kmalloc kmem_cache_alloc kfree kmem_cache_free; do echo 1 >events/kmem/$event/enable; done
echo ready
read end
echo 0 >tracing_on
cat trace
grep -h overrun per_cpu/*/stats
"""


EVENT = re.compile(r"-(\d+) +\[\d+\] \S+ +(\d+\.\d+): (kmalloc|kmem_cache_alloc|kfree|kmem_cache_free): "
                   r"call_site=([^/ ]+)\S* ptr=(\S+)")


def live_by_site(trace, pid, until):
    """{call site: objects} of those that the process has allocated and that are not freed until then, by the kernel's own
    events. An address that is handed out again, to whomever, was freed.
    """
    live = {}
    for found in EVENT.finditer(trace):
        task, at_s, event, site, address = found.groups()
        if float(at_s) > until:
            continue
        live.pop(address, None)
        if "alloc" in event and int(task) == pid:
            live[address] = site
    return collections.Counter(live.values())


@contextlib.contextmanager
def traced():
    """A function that ends the trace and returns its text."""
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", TRACE], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    equal(process.stdout.readline(), "ready\n", "ftrace")

    def end():
        out, _ = process.communicate("\n", timeout=lib.tap.TIMEOUT)
        equal(process.returncode, 0, "exit code of ftrace")
        equal({line for line in out.splitlines() if "overrun:" in line}, {"overrun: 0", "commit overrun: 0"}, "losses")
        return out
    try:
        yield end
    finally:
        if process.poll() is None:
            process.stdin.close()
            process.wait(lib.tap.TIMEOUT)


def events_agree():
    """Objects by call site are those of which the kernel's events, in ftrace's ring, have an allocation and no free. The
    maker sleeps when both begin and end; what is freed while they end may be live or not.
    """
    with maker() as m:
        with traced() as end, leaks(m, "--only", "slab") as it:
            m.do("files 500", "timers 20", "pipes 40", "close", "files %d" % N, "forks 3", "pipes 10")
            stopping = time.monotonic()
            it.stop()
            stopped = time.monotonic()
            trace = end()
    have = collections.Counter()
    for row in it.rows:
        have[row["call_site"].split(" ")[0]] += row["objects"]
    most, least = live_by_site(trace, m.pid, stopping), live_by_site(trace, m.pid, stopped)
    differ = [(site, have[site], least[site], most[site]) for site in {*have, *most}
              if not least[site] <= have[site] <= most[site]]
    off = sum(max(least_ - have_, have_ - most_) for _, have_, least_, most_ in differ)
    check(off <= it.lost["missed_events"], off, "objects differ:", differ)
    check(at(it.rows, OPENING) == most[next(site for site in most if OPENING in site)] == N + 20, "open files", it.rows)


def ages():
    """The oldest, the newest and all the others between them: their ages by the test's clock."""
    with maker() as m:
        with leaks(m, "--hist", "--only", "slab") as it:
            began = time.monotonic_ns()
            m.do("files 300")
            first = time.monotonic_ns()
            time.sleep(0.6)
            again = time.monotonic_ns()
            m.do("files 200")
            last, stopping = time.monotonic_ns(), time.monotonic_ns()
            it.stop()
            stopped = time.monotonic_ns()
    row = only(it.rows, cache="filp")
    check(stopping - first <= row["oldest_ns"] <= stopped - began, row["oldest_ns"], "age of the oldest")
    check(0 < row["newest_ns"] <= stopped - again, row["newest_ns"], "age of the newest")
    slots = row["age_histogram_ns"]
    equal(sum(slot["count"] for slot in slots), 500, "in all slots")
    old = sum(slot["count"] for slot in slots if slot["to"] > again - first)
    new = sum(slot["count"] for slot in slots if slot["from"] < stopped - again)
    check(old >= 300 and new >= 200, "ages:", slots)


def older_than():
    """Of the files those that are as old are shown, and no others."""
    with maker() as m, load():
        with leaks(m, "--older-than", "700ms", "--only", "slab") as it:
            m.do("files %d" % N, "timers %d" % TIMERS)
            time.sleep(1)
            stopping = time.monotonic()
            m.do("files 200")
            it.stop()
    if time.monotonic() - stopping > 0.6:
        lib.excuse(1)  # on a busy machine the last files were old, too
    equal((at(it.rows, OPENING), at(it.rows, TIMER)), (N, TIMERS), "old files and timers")


def grows():
    """Files that are opened all the time grow, by what was opened; files that are opened and closed, and timers that
    were made at the beginning, do not.
    """
    rounds, each = 24, 50
    with maker() as leaking, maker() as steady, load():
        with leaks(leaking, "--only", "slab", "--interval", "100ms") as it, \
                leaks(steady, "--only", "slab", "--interval", "100ms") as beside:
            steady.do("timers %d" % TIMERS)
            leaking.do("timers %d" % TIMERS)
            for _ in range(rounds):
                leaking.do("files %d" % each)
                steady.do("files %d" % each, "close")
                time.sleep(0.1)
            it.stop()
            beside.stop()
    growing = {(row["time_ns"], row["growing"]): row for row in it.rows if OPENING in row["call_site"]}
    check(any(state in ("yes", "lasting") for _, state in growing), "files do not grow:", list(growing))
    files = [row for row in it.rows if OPENING in row["call_site"]]
    times = [row["time_ns"] for row in files]
    slope = (files[-1]["live_bytes"] - files[0]["live_bytes"]) / ((times[-1] - times[0]) / 3600e9)
    last = files[-1]
    # Each period of time that ends now has nearly the same slope; the last report comes at once after the last files.
    check(abs(last["slope_per_hour_bytes"] / slope - 1) < 0.5, last["slope_per_hour_bytes"], "an hour, have", slope)
    equal((last["slope_per_hour_low_bytes"], last["slope_per_hour_high_bytes"]), (None, None), "an interval, of all")
    for rows in it.rows, beside.rows:
        states = {row["growing"] for row in rows if TIMER in row["call_site"]}
        check(states <= {None, "no", "so far"}, "timers grow:", states)
    states = {row["growing"] for row in beside.rows if OPENING in row["call_site"]}
    check(states <= {None, "no", "so far"}, "files that are closed grow:", states)


def no_growth_of_one():
    """One report shows no growth: it is not known."""
    with maker() as m, leaks(m, "--only", "slab") as it:
        m.do("files %d" % N)
        it.stop()
    equal({(row["growing"], row["slope_per_hour_bytes"]) for row in it.rows}, {(None, None)}, "growth")


def sampled():
    """By stack, estimates without a bias: of several tools at once the mean lies as near to what is held as their number
    demands, and their intervals contain it.
    """
    files, timers, touched, tools = 12000, 3000, 3000, 6
    sizes = {"alloc_empty_file+": (files, "filp"), "timer_create": (timers, None), "do_anonymous_page": (touched, None)}
    made = ["files %d" % files, "timers %d" % timers, "touch %d" % touched]
    with maker() as m, contextlib.ExitStack() as stack:
        warm(m, *made)
        exact = stack.enter_context(leaks(m, "--by", "stack", "--period", 1))
        all_tools = [stack.enter_context(leaks(m, "--by", "stack")) for _ in range(tools)]
        m.do("files 1000", "close", *made)
        exact.stop()
        for it in all_tools:
            it.stop()

    def of(it, word, cache):
        rows = [row for row in it.rows if any(word in frame for frame in row["kernel_stack"])]
        return max((row for row in rows if cache in (None, row["cache"])), key=lambda row: row["objects"], default=None)
    for word, (number, cache) in sizes.items():
        row = of(exact, word, cache)
        check(row and row["objects"] == number and row["samples"] is None, word, "of every object:", row)
        each = row["live_bytes"] / number
        chance = 1 - math.exp(-each / PERIOD)
        deviation = math.sqrt((1 - chance) / chance / number)  # of the estimate, in proportion to it
        estimates = [of(it, word, cache) for it in all_tools]
        mean = sum(row["objects"] for row in estimates) / tools
        check(abs(mean / number - 1) <= SIGMAS * deviation / math.sqrt(tools), mean, "is not the mean of", number, word)
        inside = [row["objects_low"] <= number <= row["objects_high"] and
                  row["live_low_bytes"] <= number * each <= row["live_high_bytes"] for row in estimates]
        # Intervals of 95 %: five of six miss the truth once in a million runs, and half of them once in 200.
        check(sum(inside) >= 2, "intervals without", number, estimates)
        for row in estimates:
            check(row["live_low_bytes"] <= row["live_bytes"] <= row["live_high_bytes"] and row["samples"] > 10, row)
    check(all(it.lost["sampled_allocations"] > 0 for it in all_tools), "none was sampled")


def sampled_by_site():
    """With --period also by site; a large object is always sampled, and known exactly."""
    with maker() as m, leaks(m, "--period", "64", "--only", "movable") as it:
        m.do("touch %d" % N)
        it.stop()
    row = max(it.rows, key=lambda row: row["objects"])
    equal((row["objects"], row["objects_low"], row["objects_high"], row["samples"]), (N, N, N, N), "pages")


def flags():
    """Nodes of maple trees are freed without an event, which memleak of bcc takes for leaks: the row says so. Files have
    an event each, and their row says nothing.
    """
    with maker() as m:
        with leaks(m, "--by", "cache", "--only", "slab") as it, leaks(m, "--only", "slab") as by_site:
            m.do("mappings 5000")
            time.sleep(RCU_S)
            m.do("mappings 5000", "files %d" % N)  # gets addresses anew
            it.stop()
            by_site.stop()
    nodes = only(it.rows, cache="maple_node")
    check(nodes["unseen_frees"] > 1000 and nodes["caution"], nodes)
    check(it.lost["frees_without_event"] >= nodes["unseen_frees"], it.lost)
    files = only(it.rows, cache="filp")
    equal((files["objects"], files["unseen_frees"], files["caution"]), (N, 0, None), "files")
    equal({row["caution"] for row in by_site.rows if row["cache"] == "maple_node" and row["unseen_frees"]},
          {"frees without event"}, "caution by site")


def full():
    """Too small a map of live objects: what found no place is counted, to the unit."""
    with maker() as m, leaks(m, "--only", "slab", "--live-objects", 100) as it, leaks(m, "--only", "slab") as beside:
        m.do("files %d" % N)
        it.stop()
        beside.stop()
    kept, made = (sum(row["objects"] for row in rows) for rows in (it.rows, beside.rows))
    check(kept <= 100, kept, "objects are followed, more than there is room for")
    check(N - 100 <= it.lost["lost_live_objects"] <= made, it.lost, "of", made)


def refusals():
    for words, said in ((["--only", "none"], "use slab, pages, movable"), (["--only", ""], "use slab, pages, movable"),
                        (["--period", "0"], "use 1, which follows every object"), (["--period", "1G"], "up to 16M"),
                        (["--older-than", "soon"], "use a duration such as 30s"),
                        (["--live-objects", "0"], "use a number such as 512K"),
                        (["--where", "age_histogram>1"], "a histogram cannot be compared")):
        line = anytool.refused(2, TOOL, *words)
        check(said in line, words, "are refused with", line)


TESTS = [("what is held is live, what was given back is not, by " + method, lambda method=method: held(method))
         for method in METHODS]
TESTS += [("pages are apart, at the call that takes them, by " + method, lambda method=method: pages(method))
          for method in METHODS]
TESTS += [
    ("ways to attach show the same objects", agree),
    ("the objects are those of the kernel's events in ftrace", events_agree),
    ("kinds that are not wanted are left out", only_kinds),
    ("a huge page is a block", huge),
    ("objects have their age", ages),
    ("young objects are left out", older_than),
    ("what grows is told from what comes and goes", grows),
    ("one report shows no growth", no_growth_of_one),
    ("estimates of samples have no bias, and their intervals hold", sampled),
    ("objects far larger than the period are all sampled", sampled_by_site),
    ("a cache whose frees have no event is flagged", flags),
    ("a full map of live objects is counted", full),
    ("options that make no sense are refused", refusals),
    ("a test of objects that are held fails when a row is missing",
     lambda: loses(lambda env: few("slab", "timers %d" % TIMERS, "objects", TIMERS, env))),
    ("a test of pages fails when a row is missing",
     lambda: loses(lambda env: few("movable", "touch %d" % N, "live_bytes", N * PAGE, env))),
]

lib.main(TESTS)
