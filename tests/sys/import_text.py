# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import` of text: flags of allocations and processes, as far as the text tells them. The pages of the same
events, which `trace` does not consume, must give the same rows.
"""
import collections
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import check, equal
from traces import allium, recorded

# Text, and then the pages, of an instance that runs meanwhile: its events are others than those of the recorder.
CAPTURE = """
set -e
mount -t tracefs none "$1"
was=$(cat "$1/options/record-tgid"); echo 1 >"$1/options/record-tgid"
mkdir "$1/instances/allium-test-$$"; cd "$1/instances/allium-test-$$"
trap 'cd /; rmdir "$1/instances/allium-test-$$"; echo "$was" >"$1/options/record-tgid"' EXIT
echo 32768 >buffer_size_kb; echo mono >trace_clock; echo 0 >options/hash-ptr; echo 1 >options/record-tgid
for event in kmem/kmalloc kmem/kfree kmem/kmem_cache_alloc kmem/kmem_cache_free kmem/mm_page_alloc kmem/mm_page_free \
    percpu/percpu_alloc_percpu percpu/percpu_free_percpu task/task_newtask task/task_rename; do
    echo 1 >events/$event/enable
done
"$3" -S -c 'import os, threading
t = [threading.Thread(target=lambda: [os.pipe() for _ in range(100)]) for _ in range(3)]
[one.start() for one in t]; [one.join() for one in t]; kept = [os.pipe() for _ in range(300)]'
unshare -m true
echo 0 >tracing_on
cat trace >"$2/trace.txt"
for cpu in per_cpu/cpu*; do
    mkdir -p "$2/$cpu"; cat $cpu/stats >"$2/$cpu/stats"
    timeout 2 dd if=$cpu/trace_pipe_raw of="$2/$cpu/trace_pipe_raw" bs=4096 iflag=nonblock 2>/dev/null || true
done
"""
ALLOCATES = r"(kmalloc|kmem_cache_alloc|percpu_alloc_percpu)"
LINE = re.compile(r"^ *(.*)-(\d+) +\( *(\d+|-+)\) \[\d+\] (\S+) +[\d.]+: (\w+): (.*)")


def captured(folder):
    """-> (the text, a folder of --raw with the pages of its events)"""
    os.makedirs(folder + "/tracefs")
    os.makedirs(folder + "/own")
    raw, _, _ = recorded(folder, "--events", "slab,page,percpu", "--settle", "0s", command=[
        *tap.unshare(), "sh", "-c", CAPTURE, "sh", folder + "/tracefs", folder + "/own", sys.executable])
    for path in glob.glob(folder + "/own/per_cpu/*/*"):
        os.replace(path, path.replace("/own/", "/raw/"))
    with open(raw + "/allium") as file:
        about = file.read()
    with open(raw + "/allium", "w") as file:
        file.write(re.sub(r"(?m)^own_tid.*\n", "", about))
    return folder + "/own/trace.txt", raw


def table(path, tool, part):
    """-> {what names the row: its figures}"""
    shown = allium("sys", tool, "--from", path, "--json", "--top", "0", "--by", part).stdout
    rows = map(json.loads, shown.splitlines())
    return {row[part] if part != "process" else row["pid"]: tuple(
        row.get(key) for key in ("allocated_bytes", "allocations", "frees", "freed_bytes", "live_bytes"))
        for row in rows if "frees" in row}


def summed(path, tool):
    rows = collections.Counter()
    for line in allium("sys", tool, "--from", path, "--json", "--top", "0", "--by", "process").stdout.splitlines():
        row = json.loads(line)
        for key in "allocated_bytes", "allocations", "frees", "live_bytes":
            rows[row.get("pid"), key] += row.get(key) or 0
    return rows


def as_raw():
    """Rows by flags and by process, of objects and of pages."""
    with tap.private_dir() as folder:
        text, raw = captured(folder)
        shown = []
        for path, name in ((text, "text.allium"), (raw, "raw.allium")):
            said = allium("sys", "import", path, "-o", folder + "/" + name).stderr.decode()
            check("flags" not in said and "not tell the process" not in said, said)
            shown.append(folder + "/" + name)
        for tool in "kmem", "kpages":
            have, want = (table(path, tool, "gfp") for path in shown)
            check(len(want) > 4 and any("|" in name for name in want), want)
            equal(have, want, "%s by gfp" % tool)
            have, want = (summed(path, tool) for path in shown)
            check(len(want) > 8, want)
            equal(dict(have.items() - want.items()), dict(want.items() - have.items()), "%s by process" % tool)
        naive, threads, large = collections.Counter(), collections.defaultdict(set), {}
        with open(text, errors="surrogateescape") as file:
            for found in filter(None, map(LINE.match, file)):
                _, thread, process, _, event, words = found.groups()
                if re.fullmatch(ALLOCATES, event):
                    threads[process].add(thread)
                    sizes = re.search(r"ptr=(\S+) bytes_req=(\d+) bytes_alloc=(\d+)", words)
                    if sizes and int(sizes.group(3)) > 8192 and large.pop(thread, None) == sizes.groups():
                        continue  # the second event of a large object
                    large[thread] = sizes and sizes.groups()
                    naive[re.search(r"gfp_flags=(\S+)", words).group(1)] += 1
        made = {name: row[1] for name, row in table(shown[0], "kmem", "gfp").items() if row[1]}
        equal(made, naive, "by a naive account")
        check(max(map(len, threads.values())) >= 4, "no process with threads", threads)


def partly():
    """Lines without flags or a process are counted, and no row is guessed."""
    line = "%s-%d %s[000] ..... 1.%06d: kmalloc: call_site=f+0x1/0x2 ptr=%016x bytes_req=8 bytes_alloc=8%s\n"
    lines = [line % ("a", 8, "(      7) ", 1, 0x1000, " gfp_flags=GFP_KERNEL node=-1"),
             line % ("b c", 9, "(-------) ", 2, 0x2000, " gfp_flags=GFP_KERNEL|__GFP_ZERO"),
             line % ("<...>", 10, "(     10) ", 3, 0x3000, ""),
             line % ("<idle>", 0, "(-------) ", 4, 0x4000, " gfp_flags=GFP_KERNEL")]
    with tap.private_dir() as folder:
        out = folder + "/r.allium"
        said = " ".join(allium("sys", "import", "-", "-o", out, input="".join(lines).encode()).stderr.decode().split())
        check("1 allocation does not tell its flags" in said and "1 event does not tell the process" in said, said)
        equal({name: row[1] for name, row in table(out, "kmem", "gfp").items()},
              {"GFP_KERNEL": 2, "GFP_KERNEL|__GFP_ZERO": 1, "[unknown]": 1}, "by gfp")
        equal({pid: row[1] for pid, row in table(out, "kmem", "process").items()}, {7: 1, 10: 1, 0: 1}, "by process")
        equal(set(table(out, "kmem", "comm")), {"a", "b c", "[unknown]", "[idle]"}, "programs")
        text = "".join(re.sub(r"\(.*?\) | gfp_flags.*", "", one) for one in lines)
        said = allium("sys", "import", "-", "-o", out, "--force", input=text.encode()).stderr.decode()
        check("not tell the process" not in said and "4 allocations do not tell their flags" in said, said)
        for part in "gfp", "process":
            done = allium("sys", "kmem", "--from", out, "--by", part, code=1)
            check(done.stderr.count(b"\n") == 1, done.stderr)
        done = allium("sys", "kmem", "--from", out, "--by", "pair,stack", code=2)
        equal(done.stderr, b"allium: --by pair,stack: rows are by one part, use --by pair (allium sys kmem --help)\n",
              "two parts")
        event = "a 7/%d [000] 1.%06d: kmem:kmalloc: call_site=f+0x1 ptr=%#x bytes_req=8 bytes_alloc=8\n"
        text = "".join(event % (n, n, n << 12) for n in (7, 8))
        allium("sys", "import", "-", "-o", out, "--force", input=text.encode())
        equal({pid: row[1] for pid, row in table(out, "kmem", "process").items()}, {7: 2}, "by process, of perf script")


def page_size():
    """Pages of a machine that has larger ones: where its state tells it, also when the recording is looked at."""
    text = "a-1 [000] ..... 1.000001: mm_page_alloc: page=1 pfn=16 order=1 migratetype=0 gfp_flags=GFP_KERNEL\n"
    with tap.private_dir() as folder:
        path, out, state = folder + "/trace.txt", folder + "/r.allium", folder + "/state/proc"
        os.makedirs(state)
        with open(path, "w") as file:
            file.write(text)
        said = allium("sys", "import", path, "-o", out).stderr.decode()
        check("lacks      the size of a page: that of this machine" in said, said)
        for name, words in (("meminfo", "AnonPages: 640000 kB\nMapped: 64000 kB\n"),
                            ("vmstat", "nr_anon_pages 10001\nnr_mapped 999\n"),
                            ("buddyinfo", "Node 0, zone Normal 3 0 0 0 0 0 0 0 0 0 0\n")):
            with open(state + "/" + name, "w") as file:
                file.write(words)
        said = allium("sys", "import", path, "-o", out, "--force", "--state", folder + "/state").stderr.decode()
        check("128 KiB allocated in 1 block" in said and "size of a page" not in said, said)
        for shown in (out, ), (path, "--state", folder + "/state"):
            done = allium("sys", "kpages", "--from", *shown, "--json").stdout
            equal([row["live_bytes"] for row in lib.stream(done, "kpages")[:-1]], [131072], "live bytes")
        report = json.loads(allium("report", out, "--json").stdout)["total"]
        equal(report["live_bytes"], 131072, "live bytes of the report")
        free = json.loads(allium("sys", "frag", "--from", out, "--json").stdout)
        equal((free["page_bytes"], free["orders"][1]["block_bytes"]), (65536, 131072), "pages of sys frag")


lib.main([
    ("flags and processes of text are those of the pages", as_raw),
    ("text that tells them in part", partly),
    ("the size of a page", page_size),
])
