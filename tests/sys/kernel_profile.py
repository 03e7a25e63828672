# SPDX-License-Identifier: BSD-2-Clause
"""The kernel in the profile: its pages beside its objects, nothing counted twice; requested bytes and slack."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

sys.dont_write_bytecode = True
import json_schemas
import page_reader
import tap
from lib import built, check, equal

PAGES = 3000
# Touches so many pages of its own, and holds them; small ones, whatever the machine does with large ones.
HOLDS = """
import mmap, os
pipes = [os.pipe() for _ in range(400)]
kept = mmap.mmap(-1, %d * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
kept.madvise(15)
for i in range(%d):
    kept[i * 4096] = 1
open('/proc/self/comm', 'w').write('holder')
more = mmap.mmap(-1, %d * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
more.madvise(15)
for i in range(%d):
    more[i * 4096] = 1
""" % (PAGES, PAGES, PAGES, PAGES)
ALL = "kernel", "kernel pages"


def allium(*words, code=0):
    done = tap.run([built("ALLIUM"), *map(str, words)])
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def recorded(folder, *words):
    path = folder + "/k.allium"
    allium("sys", "record", "--force", "--quiet", "-o", path, "--buffer", "64M", "--settle", "0s", *words, "--",
           sys.executable, "-S", "-c", HOLDS)
    return path


def report(path, *words):
    document = json.loads(allium("report", path, "--json", *words).stdout)
    json_schemas.check(document)
    return document


def asked(path, question):
    return json.loads(allium("sql", "--json", path, question).stdout)["rows"]


def folded(path, metric, *words):
    """-> {stack: bytes}"""
    lines = allium("export", path, "--folded", metric, *words).stdout.decode().splitlines()
    return {stack: int(value) for stack, _, value in (line.rpartition(" ") for line in lines)}


def page_rows(path, use="other"):
    rows, = asked(path, "SELECT sum(allocated_bytes) AS allocated, sum(live_bytes) AS live, sum(allocations) AS n "
                  "FROM sys_kpages WHERE use = '%s'" % use)
    return {key: value or 0 for key, value in rows.items()}


def images():
    """Two images: the objects as `sys kmem` has them, and the pages as `sys kpages` has them, without those of objects."""
    with tap.private_dir() as folder:
        path = recorded(folder)
        whole = report(path, "--by", "process", "--top", "0")
        equal(sorted(each["program"] for each in whole["processes"]), sorted(ALL), "images")
        rows = {row["name"]: row["self"] for row in whole["rows"]}
        objects, = asked(path, "SELECT sum(allocated_bytes) AS allocated, sum(live_bytes) AS live, "
                         "sum(allocations) AS n FROM sys_kmem")
        for name, want in (("kernel", objects), ("kernel pages", page_rows(path))):
            for key, figure in (("allocated_bytes", "allocated"), ("live_bytes", "live"), ("allocations", "n")):
                equal(rows[name][key], want[figure], "%s of %s" % (key, name))
                equal(rows[name][key + "_low"], rows[name][key + "_high"], "the interval of an exact figure")
        under = page_rows(path, "slab")["allocated"], page_rows(path, "kmalloc")["allocated"]
        check(under[0] > 0, "no page was known to be under objects:", under)
        for key in "allocated_bytes", "live_bytes", "peak_bytes":
            equal(whole["total"][key], sum(row[key] for row in rows.values()), "the sum of both, " + key)
        # at the peak it is what the image says, to the byte
        for each in whole["processes"]:
            equal(rows[each["program"]]["peak_bytes"], each["peak_bytes"], "the peak of " + each["program"])
            check(each["began_ns"] <= each["peak_ns"] <= each["taken_ns"], each)


def held(path, what, metric="allocated"):
    """-> bytes of this program's pages with these flags"""
    found = folded(path, metric, "--where", 'comm:"kernel pages"')
    return sum(value for stack, value in found.items() if "[program holder]" in stack and what in stack)


def known_pages():
    """Pages of a program count under its name, and under what the kernel was asked for."""
    with tap.private_dir() as folder:
        path = recorded(folder)
        ours = held(path, "GFP_HIGHUSER_MOVABLE")
        # what the interpreter itself touches is little
        check(PAGES * 4096 <= ours < (PAGES + 300) * 4096, ours)
        row, = [row for row in report(path, "--by", "function", "--where", 'comm:"kernel pages"', "--top", "0")["rows"]
                if row["name"] == "[program holder]"]
        equal(row["inclusive"]["allocated_bytes"], held(path, ""), "its sum")
        # it has ended, but pages of its kernel stacks and page tables, for example, are freed later
        check(row["inclusive"]["live_bytes"] < 100 * 4096, "what is left of it:", row["inclusive"]["live_bytes"])
        sizes = report(path, "--by", "size", "--where", 'comm:"kernel pages"', "--top", "0")["rows"]
        check(all(row["least_size_bytes"] >= 4096 for row in sizes), sizes)
        text = allium("report", path).stdout.decode()
        check(text.startswith("the kernel, recorded\n") and "its pages without those that hold objects" in text
              and "objects and pages each at their own peak" in text and "(0)" not in text, text)


def page_stacks():
    """With stacks, pages are at the code that takes them: helpers of the page allocator are passed over."""
    with tap.private_dir() as folder:
        path = recorded(folder, "--stacks", "kernel")
        rows = {row["name"]: row for row in report(path, "--by", "function", "--where", 'comm:"kernel pages"',
                                                   "--top", "0", "--sort", "allocated")["rows"]}
        check("do_anonymous_page" in rows, sorted(rows))
        check(rows["do_anonymous_page"]["self"]["allocated_bytes"] >= 2 * PAGES * 4096, rows["do_anonymous_page"])
        stored, = asked(path, "SELECT sum(allocated_bytes) AS bytes FROM sys_kpages WHERE use = 'other'")
        equal(sum(folded(path, "allocated", "--where", 'comm:"kernel pages"').values()), stored["bytes"], "all stacks")
        check(not any("trace_event_raw" in stack for stack in folded(path, "allocated")), "the tracing's own frame")
        with open(path, "rb") as file:
            check(not re.search(rb"ffff[0-9a-f]{12}", file.read()), "addresses of the kernel in the recording")


def metrics():
    """Requested bytes and slack, as `sys kmem` has them, in every form; of pages all was requested."""
    with tap.private_dir() as folder:
        path = recorded(folder)
        sums, = asked(path, "SELECT sum(allocated_bytes) AS allocated, sum(requested_bytes) AS requested, "
                      "sum(slack_bytes) AS slack FROM sys_kmem")
        pages = page_rows(path)["allocated"]
        total = report(path)["total"]
        equal(total["slack_bytes"], sums["slack"], "slack")
        equal(total["requested_bytes"], sums["requested"] + pages, "requested")
        for key in "requested", "slack":
            equal(sum(folded(path, key).values()), total[key + "_bytes"], "folded " + key)
            rows = report(path, "--by", "function", "--sort", key, "--top", "0")["rows"]
            equal(sum(row["self"][key + "_bytes"] for row in rows), total[key + "_bytes"], "rows by " + key)
            order = [row["self"][key + "_bytes"] for row in rows]
            equal(order, sorted(order, reverse=True), "the order")
            heads = allium("report", path, "--by", "function", "--sort", key).stdout.decode()
            check("REQUESTED" in heads or "SLACK" in heads, heads)
        lines = allium("sys", "kmem", "--from", path, "--by", "function", "--json", "--top", "0").stdout.splitlines()
        tables = {re.sub(r" (\[.*|\(helper\))$", "", row["function"]): row["slack_bytes"]
                  for row in map(json.loads, lines) if "function" in row}
        ours = report(path, "--by", "function", "--where", "comm:kernel", "--top", "0")["rows"]
        same = [row["name"] for row in ours if tables.get(row["name"]) == row["self"]["slack_bytes"]]
        # functions of one name in several modules are one row there
        check(len(same) > 0.95 * len(ours), len(same), len(ours))
        scope = json.loads(allium("export", path, "--speedscope").stdout)
        check(any(each["name"].startswith("slack bytes") for each in scope["profiles"]),
              [each["name"] for each in scope["profiles"]])
        check(b"slack bytes" in allium("export", path, "--svg", "flame", "--metric", "slack").stdout, "the picture")


def refused():
    """Of a program it is not known what the allocator added: a line says what there is."""
    with tap.private_dir() as folder:
        path = folder + "/p.allium"
        allium("run", "--quiet", "--period", "1", "-o", path, "--", sys.executable, "-S", "-c", "pass")
        for words in (("report", path, "--sort", "slack"), ("export", path, "--folded", "requested")):
            said = allium(*words, code=2).stderr.decode()
            equal(said.count("\n"), 1, "lines of " + said)
            check("a program, allocated is what it requested" in said and "live, peak, allocated" in said, said)
        total = report(path)["total"]
        equal((total["requested_bytes"], total["slack_bytes"]), (None, None), "what is not known")


def other_commands():
    """diff, sql, pprof and moments work with both images as with those of programs."""
    with tap.private_dir() as folder:
        path = folder + "/k.allium"
        allium("sys", "record", "--quiet", "-o", path, "--buffer", "64M", "--interval", "300ms", "--", sys.executable,
               "-S", "-c", HOLDS + "import time\ntime.sleep(3)\n")
        rows = asked(path, "SELECT text AS name, count(*) AS cells FROM cell JOIN image ON image.id = cell.image "
                     "JOIN string ON string.id = image.comm GROUP BY text ORDER BY text")
        equal([row["name"] for row in rows], sorted(ALL), "images of the cells")
        text = allium("diff", path, path, "--by", "function").stdout.decode()
        check(text.startswith("the kernel"), text)
        started, = [row["value"] for row in asked(path, "SELECT value FROM meta WHERE key = 'started_ns'")]
        times = [(row["time_ns"] - started) // 1000000 + 1 for row in asked(
            path, "SELECT time_ns FROM point WHERE moment IS NOT NULL ORDER BY time_ns")]
        moments = ["%s@%dms" % (path, ms) for ms in times[1:-1]]
        # while the program sleeps
        check(any(held(at, "MOVABLE", "live") >= PAGES * 4096 for at in moments), moments)
        check(held(path, "", "live") < 100 * 4096, "what it holds in the end:", held(path, "", "live"))
        then = report(moments[-1], "--where", 'comm:"kernel pages"')["total"]
        equal(then["requested_bytes"], then["allocated_bytes"], "requested pages")
        check(len(allium("export", path, "--pprof").stdout) > 100, "pprof")
        other = folder + "/other.allium"
        allium("sys", "record", "--quiet", "-o", other, "--events", "slab", "--", "true")
        said = allium("diff", other, path, "--by", "process").stdout.decode()
        check("kernel pages" in said, said)


def fallbacks():
    """`sys frag` has who took blocks of other types, by stack, as many as `sys kpages` counts."""
    with tap.private_dir() as folder:
        path = folder + "/k.allium"
        allium("sys", "record", "--quiet", "-o", path, "--buffer", "64M", "--", "find", "/usr", "-xdev", "-type", "f",
               "-name", "*.py")
        known, = asked(path, "SELECT sum(fallbacks) AS n FROM sys_kpages")
        frag = json.loads(allium("sys", "frag", "--from", path, "--json").stdout)
        json_schemas.check(frag)
        equal(sum(row["fallbacks"] for row in frag["fallbacks"]), known["n"] or 0, "blocks that were taken")
        order = [row["fallbacks"] for row in frag["fallbacks"]]
        equal(order, sorted(order, reverse=True), "the order")
        for row in frag["fallbacks"]:
            check(row["migrate_type"] and row["comm"], row)
            check(not row["kernel_stack"] or not row["kernel_stack"][0].startswith("__traceiter"), row)
            check(not re.search("ffff[0-9a-f]{12}", json.dumps(row)), row)
        text = allium("sys", "frag", "--from", path).stdout.decode()
        check(re.search(r"^  taken +[\d,]+ requests? took a block of another migrate type", text, re.M), text)
        check("STACK" not in allium("sys", "kpages", "--from", path, "--top", "3").stdout.decode(), "stacks of pages")
        while_it_runs = json.loads(allium("sys", "frag", "--json", "--", "true").stdout)
        check(isinstance(while_it_runs["fallbacks"], list), while_it_runs["fallbacks"])
        equal(json.loads(allium("sys", "frag", "--json").stdout)["fallbacks"], None, "without a capture")
        allium("sys", "record", "--quiet", "--force", "-o", path, "--events", "slab", "--", "true")
        frag = json.loads(allium("sys", "frag", "--from", path, "--json").stdout)
        equal(frag["fallbacks"], None, "without the event")


MEMCG = "/sys/fs/cgroup/memory"


def killed(group):
    """A program grows in a memory cgroup until the OOM killer ends it."""
    def enter():
        with open(group + "/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    with subprocess.Popen([built("TEST_EATER"), "grow"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          preexec_fn=enter) as process:
        equal(process.wait(tap.TIMEOUT), -signal.SIGKILL, "the end of the program that grows")


def kills():
    """A kill of the OOM killer is a mark of the timeline, where the recording has the counts before and after it."""
    with tap.private_dir() as folder:
        path, group = folder + "/k.allium", "%s/allium-marks-%d" % (MEMCG, os.getpid())
        os.mkdir(group)
        try:
            with open(group + "/memory.limit_in_bytes", "w") as file:
                file.write(str(20 << 20))
            with subprocess.Popen([built("ALLIUM"), "sys", "record", "-o", path, "--interval", "200ms", "--events",
                                   "slab,extfrag"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as recorder:
                check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
                before = time.time()
                killed(group)
                time.sleep(1)
                recorder.send_signal(signal.SIGINT)
                recorder.communicate(timeout=tap.TIMEOUT)
        finally:
            os.rmdir(group)
        allium("export", path, "--html", "-o", folder + "/k.html")
        marks = page_reader.Page(folder + "/k.html").header["profile"]["marks"]
        equal(sum(int(m["text"].rpartition(" ")[2]) if ":" in m["text"] else 1 for m in marks) >= 1, True, "marks")
        check(all(m["bad"] and m["time_ms"] >= before * 1000 for m in marks), marks, before)
        svg = allium("export", path, "--svg", "timeline").stdout.decode()
        check(">OOM kill" in svg and "(0)" not in svg, "marks of the picture")
        place = types.SimpleNamespace(folder=folder, env=os.environ, path=lambda name: folder + "/" + name)
        shown = page_reader.Shown(place, "k.html", view="timeline").dom
        check("OOM kill" in shown, "the list of events")


TESTS = [
    ("objects and pages are two images, and nothing is counted twice", images),
    ("pages of a program, by its name", known_pages),
    ("pages with stacks", page_stacks),
    ("requested bytes and slack", metrics),
    ("metrics that a source lacks", refused),
    ("other commands", other_commands),
    ("who took blocks of other types", fallbacks),
    ("kills by the OOM killer in the timeline", kills),
]

if __name__ == "__main__":
    tap.main(TESTS)
