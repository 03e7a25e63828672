# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys kmem` and `kpages --from TRACE`, and --time: the tables are those of an import, and of a naive account of
the events of that time, made here.
"""
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import check, equal
from traces import PIPES, Repeats, allium, recorded

NAMES = "kmalloc|kfree|kmem_cache_alloc|kmem_cache_free"
EVENT = re.compile(
    r" *(\S.*?) +\[(\d+)\] (\S+) +([\d.]+): (%s): call_site=(.*?)(?:/0x\S+)? ptr=(\S+)(.*? bytes_alloc=(\d+).*)?" % NAMES)
NO_OBJECT = ("(nil)", "(null)", "0000000000000000", "0000000000000010")


def shown(path, tool, *words, **how):
    """-> the rows, and what was said"""
    done = allium("sys", tool, "--from", path, "--json", "--top", "0", *words, **how)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{**row, "time_ns": 0} for row in rows if "frees" in row or "allocations" in row], done.stderr.decode()


def same():
    """As of the imported recording; nothing is left behind."""
    with tap.private_dir() as folder:
        raw, live, _ = recorded(folder, "--events", "slab,page,extfrag")
        env = {**os.environ, "TMPDIR": folder + "/tmp"}
        os.mkdir(folder + "/tmp")
        for tool, part in (("kmem", "site"), ("kmem", "process"), ("kmem", "pair"), ("kpages", "order"),
                           ("kpages", "cgroup")):
            rows, said = shown(raw, tool, "--by", part, env=env)
            check(len(rows) > 1, tool, part, rows)
            equal(rows, shown(live, tool, "--by", part)[0], "%s by %s" % (tool, part))
            check(said.startswith("allium: reading " + raw), said)
        equal(os.listdir(folder + "/tmp"), [], "what is left")
        equal(allium("sys", "kmem", "--from", raw, "--quiet", env=env).stderr, b"", "what is said with --quiet")
        text = allium("sys", "kmem", "--from", raw, "--slab-account", env=env).stdout
        check(b"number of callers" in text, text)
        allium("sys", "kmem", "--from", raw, "--html", folder + "/k.html")
        pages = max(glob.glob(raw + "/per_cpu/*/trace_pipe_raw"), key=os.path.getsize)
        os.truncate(pages, os.path.getsize(pages) - 100)
        done = allium("sys", "kmem", "--from", raw, code=1)
        check(b"; --partial keeps what was read" in done.stderr and done.stderr.count(b"\n") == 2, done.stderr)
        check(shown(raw, "kmem", "--partial")[0], "what was read")
        for words, code, line in (
            ((live, "--kallsyms", "/proc/kallsyms"), 2, "is a recording: leave out --kallsyms"),
            ((live, "--time", "1s.."), 1, "rows of %s are of its whole time" % live),
            ((raw, "--time", "1s"), 2, "--time needs FROM..TO"),
            ((raw, "--time", "2s..1s"), 2, "ends before it begins"),
            ((raw, "--time", "1s..", "--charge", "allocator"), 2, "leave out --charge"),
            ((folder + "/none",), 1, "none"),
        ):
            done = allium("sys", "kmem", "--from", *words, code=code)
            check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, line, done.stderr)
        done = allium("sys", "kmem", "--time", "1s..", code=2)
        check(b"--time needs --from" in done.stderr, done.stderr)
        raw, _, _ = recorded(folder, "--events", "slab")
        done = allium("sys", "kpages", "--from", raw, code=1)
        check(b"has no event of pages" in done.stderr, done.stderr)


CAPTURE = """
mount -t tracefs none "$1" && mkdir "$1/instances/allium-test-$$" && cd "$1/instances/allium-test-$$" || exit 1
trap 'cd /; rmdir "$1/instances/allium-test-$$"' EXIT
echo 32768 >buffer_size_kb; echo mono >trace_clock
for event in kmalloc kfree kmem_cache_alloc kmem_cache_free; do echo 1 >events/kmem/$event/enable; done
"$3" -S -c 'import os, time
kept = [os.pipe() for _ in range(300)]; time.sleep(0.1)
for pair in kept[:100]: [os.close(end) for end in pair]
more = [os.pipe() for _ in range(200)]; time.sleep(0.1)
for pair in kept[100:]: [os.close(end) for end in pair]'
echo 0 >tracing_on; cat trace >"$2"
"""


def naive(path, begin_us, end_us):
    """-> {call: [allocations, bytes, frees, live objects]} of this time, and of the live objects of its end"""
    sums, live, first, repeats = {}, {}, None, Repeats()
    with open(path, errors="surrogateescape") as file:
        for line in file:
            found = EVENT.search(line)
            if not found:
                continue
            thread, cpu, flags, at, name, site, address, rest, size = found.groups()
            at = int(at.replace(".", ""))
            first = at if first is None else first
            if at - first > end_us:
                break
            row = sums.setdefault(site, [0, 0, 0, 0])
            inside = at - first >= begin_us
            if address in NO_OBJECT:
                continue
            before = live.pop(address, None)
            if repeats.first_of_text(cpu, thread, flags, address, site, rest or "", name == "kmalloc"):
                sums[before][0] -= inside
                sums[before][1] -= int(size) * inside
            if before:
                sums[before][3] -= 1
            if "alloc" in name:
                live[address] = site
                row[3] += 1
                row[0] += inside
                row[1] += int(size) * inside
            elif before:
                row[2] += inside
    return {site: row for site, row in sums.items() if any(row)}


def times():
    """Events of a time: what they allocate and free; what is live at its end, however old it is."""
    with tap.private_dir() as folder:
        os.mkdir(folder + "/tracefs")
        path = folder + "/trace.txt"
        done = tap.run([*tap.unshare(), "sh", "-c", CAPTURE, "sh", folder + "/tracefs", path, sys.executable])
        equal(done.returncode, 0, done.stderr.decode())
        for begin, end in ((0, 150000), (50000, 150000), (150000, 10**9), (0, 10**9), (10**8, 10**9)):
            words = "%dus..%dus" % (begin, end)
            rows, _ = shown(path, "kmem", "--by", "site", "--time", words)
            keys = "allocations", "allocated_bytes", "frees", "live_objects"
            have = {row["call_site"].replace(" (helper)", ""): [row[key] or 0 for key in keys] for row in rows}
            want = naive(path, begin, end)
            check(len(want) > 3, want)
            equal({site: row for site, row in have.items() if any(row)}, want, words)
        pairs, _ = shown(path, "kmem", "--by", "pair", "--time", "150ms..")
        check(sum(row["frees"] for row in pairs if row["call_site"].startswith("alloc_pipe_info")) >= 400, pairs)
        raw, live, _ = recorded(folder, "--events", "slab,page", command=PIPES)
        for tool in "kmem", "kpages":  # two halves are the whole
            parts = [shown(raw, tool, "--by", "comm", "--time", words)[0] for words in ("..20ms", "20000001ns..")]
            for key in "allocations", "frees", "allocated_bytes":
                equal(sum(row[key] for rows in parts for row in rows), sum(row[key] for row in shown(live, tool)[0]),
                      "%s of %s" % (key, tool))


STEADY = "import os, time\nfor _ in range(100): [os.close(end) for end in os.pipe()]; time.sleep(0.02)"


def reports():
    """Of a recording with several reports, those of the time."""
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        allium("sys", "kmem", "--interval", "200ms", "-o", path, "--", sys.executable, "-S", "-c", STEADY)
        out = allium("sys", "kmem", "--from", path).stdout.count(b"--- ")
        some = allium("sys", "kmem", "--from", path, "--time", "500ms..1100ms").stdout.count(b"--- ")
        check(out >= 5 and 1 <= some < out - 1, out, some)


lib.main([
    ("a trace is shown as its import is", same),
    ("events of a time", times),
    ("reports of a time", reports),
])
