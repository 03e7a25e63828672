# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import`: what the kernel prints of its own events, read again; against a naive account of the same text,
made here, and against what perf records.
"""
import gzip
import json
import os
import re
import resource
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal
from traces import Repeats

CAPTURE = """
set -e
mount -t tracefs none "$1"
mkdir "$1/instances/allium-test-$$"; cd "$1/instances/allium-test-$$"
trap 'cd /; rmdir "$1/instances/allium-test-$$"' EXIT
echo 32768 >buffer_size_kb; echo mono >trace_clock
for event in kmalloc kfree kmem_cache_alloc kmem_cache_free; do
    [ -z "$3" ] || case $event in *alloc*) echo "$3" >events/kmem/$event/trigger;; esac
    echo 1 >events/kmem/$event/enable
done
echo 1 >tracing_on
"$4" -S -c 'import os; kept = [os.pipe() for _ in range(400)]'
echo 0 >tracing_on
cat trace >"$2"; cat per_cpu/cpu*/stats >"$2.stats"
"""
LINE = re.compile(r"\[(\d+)\] (\S+) +[\d.]+: (kmalloc|kfree|kmem_cache_alloc|kmem_cache_free): call_site=(.*?) ptr=(\S+)(.*)")
NO_OBJECT = ("(nil)", "(null)", "0000000000000000", "0000000000000010")


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def captured(folder, trigger=""):
    """-> the path of the text that tracefs has of a program that makes 400 pipes"""
    os.makedirs(folder + "/tracefs", exist_ok=True)
    done = tap.run([*tap.unshare(), "sh", "-c", CAPTURE, "sh", folder + "/tracefs", folder + "/trace.txt", trigger,
                    sys.executable])
    equal(done.returncode, 0, done.stderr.decode())
    return folder + "/trace.txt"


def naive(path):
    """-> ({(call, comm): [allocations, bytes]}, live objects, live bytes, events) of a trace"""
    sums, live, events, repeats = {}, {}, 0, Repeats()
    with open(path, errors="surrogateescape") as file:
        for line in file:
            found = LINE.search(line)
            if not found:
                continue
            events += 1
            cpu, flags, kind, site, address, rest = found.groups()
            thread = line[:found.start()].strip()
            comm = thread.rpartition("-")[0]
            first = repeats.first_of_text(cpu, thread, flags, address, site, rest, kind == "kmalloc")
            if address in NO_OBJECT:
                continue
            if "alloc" in kind:
                size = int(re.search(r"bytes_alloc=(\d+)", rest).group(1))
                total = sums.setdefault((re.sub("/0x[0-9a-f]+", "", site), comm), [0, 0])
                total[0] += 1
                total[1] += size
                live[address] = size
                if first:
                    before = sums[re.sub("/0x[0-9a-f]+", "", first), comm]
                    before[0] -= 1
                    before[1] -= size
            else:
                live.pop(address, None)
    return {key: total for key, total in sums.items() if total[0]}, len(live), sum(live.values()), events


def rows(path):
    return json.loads(allium("sql", "--json", path, "SELECT * FROM sys_kmem").stdout)["rows"]


def sums_of(path):
    sums = {}
    for row in rows(path):
        if row["allocations"]:
            total = sums.setdefault((row["call_site"].replace(" (helper)", ""), row["comm"]), [0, 0])
            total[0] += row["allocations"]
            total[1] += row["allocated_bytes"]
    return sums


def text():
    """Each call and program has what the lines say; no line is lost."""
    with tap.private_dir() as folder:
        path, out = captured(folder), folder + "/r.allium"
        said = allium("sys", "import", path, "-o", out).stderr.decode()
        want, live, live_bytes, events = naive(path)
        with open(path + ".stats") as file:
            stats = re.findall(r"^(entries|overrun): (\d+)", file.read(), re.M)
        equal(sum(int(n) for _, n in stats), events, "events by the kernel's own count")
        check("%s events" % format(events, ",") in said and "lacks" not in said, said)
        have = {key: value for key, value in sums_of(out).items() if key[1] != "[interrupt]"}
        # what an interrupt has done stands with the program, in the naive account
        for key, value in have.items():
            check(key in want and value[0] <= want[key][0] and value[1] <= want[key][1], key, value, want.get(key))
        equal([sum(value[i] for value in sums_of(out).values()) for i in (0, 1)],
              [sum(value[i] for value in want.values()) for i in (0, 1)], "allocations and bytes")
        total = json.loads(allium("report", out, "--json").stdout)["total"]
        equal((total["live_objects"], total["live_bytes"]), (live, live_bytes), "live objects and bytes")
        pipes = sum(value[0] for key, value in have.items() if key[0].startswith("alloc_pipe_info+"))
        check(pipes >= 800, "pipes:", pipes)
        # One line less is one event less.
        with open(path) as file:
            lines = file.read().splitlines(True)
        at = next(i for i, line in enumerate(lines) if " kmalloc: " in line)
        with open(path, "w") as file:
            file.writelines(lines[:at] + lines[at + 1:])
        said = allium("sys", "import", path, "-o", out, "--force").stderr.decode()
        check("%s events" % format(events - 1, ",") in said, said)


def compressed():
    """gzip, zstd, standard input, a file that is cut, and one that has nothing."""
    with tap.private_dir() as folder:
        path, out = captured(folder), folder + "/r.allium"
        allium("sys", "import", path, "-o", folder + "/plain.allium", "--quiet")
        want = sums_of(folder + "/plain.allium")
        with open(path, "rb") as file:
            data = file.read()
        packed = gzip.compress(data)
        with open(folder + "/trace.gz", "wb") as file:
            file.write(packed)
        allium("sys", "import", folder + "/trace.gz", "-o", out, "--quiet")
        equal(sums_of(out), want, "of a compressed file")
        allium("sys", "import", "-", "-o", out, "--quiet", "--force", input=data)
        equal(sums_of(out), want, "of standard input")
        zstd = tap.succeed(["zstd", "-q", "-c", path]).stdout
        allium("sys", "import", "-", "-o", out, "--quiet", "--force", input=zstd)
        equal(sums_of(out), want, "of zstd")
        newline = tap.succeed(["zstd", "-qc"], input=b"\n").stdout
        for several in (gzip.compress(data[:1000]) + gzip.compress(data[1000:]) + bytes(512), zstd + newline):
            allium("sys", "import", "-", "-o", out, "--quiet", "--force", input=several)
            equal(sums_of(out), want, "of compressed files that were joined")
        for name, whole in (("gz", packed), ("zst", zstd)):
            with open(folder + "/cut." + name, "wb") as file:
                file.write(whole[:len(whole) // 2])
            os.unlink(out)
            done = allium("sys", "import", folder + "/cut." + name, "-o", out, code=1)
            check(b"damaged or cut" in done.stderr and b"--partial keeps" in done.stderr
                  and done.stderr.count(b"\n") == 1, done.stderr)
            check(not os.path.exists(out), "a recording of a damaged file")
            allium("sys", "import", folder + "/cut." + name, "-o", out, "--partial")
            check(0 < len(sums_of(out)) <= len(want), "what was read")
        for name, code, words in (("/none", 1, "No such file"), ("/tracefs", 1, "is not a folder of"), ("/r.allium", 1,
                                                                                                   "no kmem event")):
            done = allium("sys", "import", folder + name, "-o", folder + "/x.allium", code=code)
            check(words in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr)
        for words in ([path], [], [path, path, "-o", "x"]):
            done = allium("sys", "import", *words, code=2)
            check(done.stderr.count(b"\n") == 1, done.stderr)


def of_perf():
    """perf script prints the same events in another form."""
    with tap.private_dir() as folder:
        data, out = folder + "/perf.data", folder + "/r.allium"
        events = ",".join("kmem:" + name for name in ("kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free"))
        # perf mounts tracefs where it is not: in mounts of its own
        tap.succeed([*tap.unshare(), "perf", "record", "-q", "-a", "-m", "4096", "-e", events, "-o", data, "--",
                     sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(400)]"])
        printed = tap.succeed([*tap.unshare(), "perf", "script", "-i", data]).stdout
        allium("sys", "import", "-", "-o", out, input=printed)
        found, repeats = [], Repeats()
        for line in printed.decode(errors="replace").splitlines():
            event = re.search(r"^(.*) \[(\d+)\] .*kmem:(k\w+): call_site=(\S+) .*?ptr=(\S+)(.*)", line)
            thread, cpu, kind, site, address, rest = event.groups() if event else [""] * 6
            if not event or repeats.first_of_text(cpu, thread, "", address, site, rest, kind == "kmalloc"):
                continue
            found += re.findall(r" bytes_alloc=(\d+)", rest)
        check(len(found) > 800, len(found))
        have = sums_of(out)
        equal([sum(value[i] for value in have.values()) for i in (0, 1)], [len(found), sum(map(int, found))],
              "allocations and bytes")
        comms = {comm for _, comm in have}
        check(any(comm.startswith("python") for comm in comms), comms)
        by_comm = allium("sys", "kmem", "--from", out, "--by", "comm", "--json").stdout.decode()
        equal({json.loads(line)["comm"] for line in by_comm.splitlines() if '"allocations"' in line} >= comms, True,
              "programs")


def stacks():
    """The stacks that ftrace prints behind events."""
    with tap.private_dir() as folder:
        path, out = captured(folder, "stacktrace"), folder + "/r.allium"
        allium("sys", "import", path, "-o", out, "--quiet")
        want, *_ = naive(path)
        folded = allium("export", out, "--folded", "allocations").stdout.decode().splitlines()
        equal(sum(int(line.rpartition(" ")[2]) for line in folded), sum(n for n, _ in want.values()), "allocations")
        pipes = sum(int(line.rpartition(" ")[2]) for line in folded
                    if re.search(r"do_syscall_64;.*do_pipe2;.*create_pipe_files;.*alloc_pipe_info \d+$", line))
        check(pipes >= 800, pipes, [line for line in folded if "pipe" in line][:3])


def interleaved():
    """A stack belongs to the event before it on its CPU, in its context; those of other events are nobody's."""
    event = "%s-%d [%03d] %s 1.%06d: %s: call_site=%s+0x1/0x2 ptr=%016x bytes_req=8 bytes_alloc=8\n"
    stack = "%s-%d [%03d] %s 1.%06d: <stack trace>\n => tracer+0x1/0x2\n%s"
    calls = lambda *names: "".join(" => %s+0x5/0x9\n" % name for name in names)
    lines = [
        event % ("a", 1, 0, ".....", 1, "kmalloc", "one", 0x1000),
        event % ("b", 2, 1, ".....", 2, "kmalloc", "two", 0x2000),
        event % ("a", 1, 0, "..s..", 3, "kmalloc", "irq", 0x3000),
        stack % ("a", 1, 0, "..s..", 3, calls("irq", "softirq")),
        stack % ("a", 1, 0, ".....", 1, calls("one", "above_one")),
        stack % ("b", 2, 1, ".....", 2, calls("two", "above_two")),
        "a-1 [000] ..... 1.000004: mm_page_alloc: page=1\n",
        stack % ("a", 1, 0, ".....", 4, calls("one", "wrong")),
        event % ("a", 1, 0, ".....", 5, "kmalloc", "alone", 0x4000),
        "a-1 [000] ..... 1.000006: mm_page_free: page=1\n",
        stack % ("a", 1, 0, ".....", 6, calls("alone", "wrong")),
        event % ("a", 1, 0, ".....", 7, "kmalloc", "last", 0x5000),
        "a-1 [000] ..... 1.000007: <user stack trace>\n" + calls("last", "wrong"),
    ]
    with tap.private_dir() as folder:
        allium("sys", "import", "-", "-o", folder + "/r.allium", "--quiet", input="".join(lines).encode())
        folded = allium("export", folder + "/r.allium", "--folded", "allocations").stdout.decode()
        equal(sorted(folded.splitlines()),
              sorted(["above_one;one 1", "above_two;two 1", "softirq;irq 1", "alone 1", "last 1"]), "stacks")


def pages():
    """Pages, percpu memory and names of threads, as kernels of all years print them."""
    line = "%s-%d [000] .... 1.%06d: %s\n"
    text = "# entries-in-buffer/entries-written: 10/10   #P:2\n" + "".join(line % (comm, pid, at, words) for at, (comm, pid, words) in enumerate([
        ("a", 1, "mm_page_alloc: page=00000000ab pfn=0x1f000 order=2 migratetype=1 gfp_flags=GFP_KERNEL"),
        ("a", 1, "mm_page_alloc: page=ffffea0001 pfn=200 order=0 migratetype=0 gfp_flags=GFP_ATOMIC|__GFP_COMP"),
        ("a", 1, "mm_page_alloc: page=          (null) pfn=0 order=9 migratetype=0 gfp_flags=GFP_NOWAIT"),
        ("a", 1, "mm_page_alloc_extfrag: page=00000000ab pfn=0x1f000 alloc_order=2 fallback_order=9 pageblock_order=9 "
         "alloc_migratetype=1 fallback_migratetype=0 fragmenting=0 change_ownership=0"),
        ("a", 1, "task_rename: pid=1 oldcomm=a newcomm=b c oom_score_adj=0"),
        ("a", 1, "mm_page_free: page=00000000ab pfn=0x1f001 order=0"),
        ("x", 7, "task_newtask: pid=8 comm=d clone_flags=1200000 oom_score_adj=0"),
        ("x", 8, "percpu_alloc_percpu: call_site=f+0x1/0x2 reserved=0 is_atomic=0 size=16 align=8 "
         "base_addr=00000000cd off=8 ptr=00000000abcd0000 bytes_alloc=64 gfp_flags=GFP_KERNEL"),
        ("x", 8, "percpu_alloc_percpu: call_site=f+0x1/0x2 reserved=0 is_atomic=0 size=16 align=8 "
         "base_addr=00000000cd off=8 ptr=00000000abcd1000 bytes_alloc=128 gfp_flags=GFP_KERNEL"),
        ("x", 8, "percpu_free_percpu: base_addr=00000000cd off=8 ptr=00000000abcd0000"),
    ]))
    with tap.private_dir() as folder:
        path, out = folder + "/trace.txt", folder + "/r.allium"
        with open(path, "w") as file:
            file.write(text)
        said = " ".join(allium("sys", "import", path, "-o", out).stderr.decode().split())
        check("20 KiB allocated in 2 blocks, 16 KiB live" in said, said)
        check("1 allocation of percpu memory has the requested bytes of one CPU" in said, said)
        columns = "comm, \"order\", migrate_type, allocations, failures, fallbacks, frees, live_bytes"
        equal([tuple(row.values()) for row in asked(out, "SELECT %s FROM sys_kpages ORDER BY 1, 2, 3, 4" % columns)], [
            ("a", 0, "0", 1, 0, 0, 0, 4096), ("a", 2, "1", 0, 0, 1, 0, 0), ("a", 2, "1", 1, 0, 0, 0, 12288),
            ("a", 9, "0", 0, 1, 0, 0, 0), ("b c", 0, None, 0, 0, 0, 1, 0)], "pages")
        columns = "call_site, comm, cache, allocated_bytes, requested_bytes, frees, live_bytes"
        equal([tuple(row.values()) for row in asked(out, "SELECT %s FROM sys_kmem ORDER BY 1" % columns)], [
            ("[unknown]", "d", "(percpu)", 0, 0, 1, 0), ("f+0x1", "d", "(percpu)", 192, 48, 0, 128)], "percpu memory")


def asked(path, query):
    return json.loads(allium("sql", "--json", path, query).stdout)["rows"]


def lacks():
    """What the trace says that it lost, and what it hides; the trace itself is not overwritten."""
    line = "a-1 [000] .... 1.%06d: %s\n"
    text = "".join([
        "# entries-in-buffer/entries-written: 5/1005   #P:1\n", "CPU:0 [LOST 12 EVENTS]\n", "CPU:1 [EVENTS DROPPED]\n",
        line % (5, "kmalloc: call_site=f+0x1/0x2 ptr=00000000abcd0000 bytes_req=40 bytes_alloc=64"),
        line % (4, "kfree: call_site=f+0x1/0x2 ptr=          (null)"),
        line % (6, "kfree: call_site=f+0x1/0x2 ptr=(____ptrval____)"), line % (7, "kfree: call_site=f+0x1/0x2"),
        line % (8, "kmalloc: call_site=c0123456 ptr=00000000abcd1000 bytes_req=40"),
    ])
    with tap.private_dir() as folder:
        path, out = folder + "/trace.txt", folder + "/r.allium"
        with open(path, "w") as file:
            file.write(text)
        os.utime(path, (1600000000, 1600000000))
        said = " ".join(allium("sys", "import", path, "-o", out).stderr.decode().split())
        for words in (
            "1,012 events are missing", "1 place at which events are missing", "1 line or record of events was not",
            "1 event hides", "1 event is older", "1 allocation does not say", "1 event has an address", "1 free of NULL"
        ):
            check(words in said, words, "is not in", said)
        with open(out, "rb") as file:
            check(b"c0123456" not in file.read(), "the address is stored")
        report = allium("report", out).stdout.decode()
        check("2020-09-13" in report, report[:400])
        done = allium("sys", "import", path, "-o", path, "--force", code=1)
        check(b"is the trace that is read" in done.stderr, done.stderr)
        with open(path) as file:
            equal(file.read(), text, "the trace")


def names():
    """Addresses are named by a copy of kallsyms; without one, no address is stored."""
    with tap.private_dir() as folder:
        with open("/proc/kallsyms") as file:
            symbols = {name: int(address, 16) for address, _, name, *_ in map(str.split, file)}
        address = symbols["alloc_pipe_info"] + 0x4a
        line = "a-1 [000] .... 1.0: kmalloc: call_site=%016x ptr=00000000abcd0000 bytes_req=40 bytes_alloc=64\n" % address
        allium("sys", "import", "-", "-o", folder + "/a.allium", "--kallsyms", "/proc/kallsyms", input=line.encode())
        row, = rows(folder + "/a.allium")
        equal((row["call_site"], row["cache"], row["allocations"]), ("alloc_pipe_info+0x4a", "(kmalloc 64)", 1), "row")
        if "__pfx_alloc_pipe_info" in symbols: # a frame at the beginning of a function, behind its padding
            text = line.replace("%016x" % address, "%016x" % symbols["alloc_pipe_info"])
            out = folder + "/p.allium"
            allium("sys", "import", "-", "-o", out, "--kallsyms", "/proc/kallsyms", input=text.encode())
            equal([row["call_site"] for row in rows(out)], ["alloc_pipe_info"], "row")
        done = allium("sys", "import", "-", "-o", folder + "/b.allium", input=line.encode())
        check(b"give --kallsyms FILE" in done.stderr, done.stderr)
        row, = rows(folder + "/b.allium")
        equal(row["call_site"], "[unknown]", "call without a name")
        with open(folder + "/b.allium", "rb") as file:
            check(b"%016x" % address not in file.read(), "the address is stored")
        done = allium("sys", "import", "-", "-o", folder + "/c.allium", "--kallsyms", "/dev/null", input=b"", code=1)
        check(b"has no symbols" in done.stderr, done.stderr)


def many_calls():
    """More different calls than any kernel has: the rest shares a row, and the memory has a bound."""
    most, more = 1 << 18, 5000
    line = b"a-1 [000] .... 1.0: kmalloc: call_site=f%d+0x1/0x2 ptr=%016x bytes_req=8 bytes_alloc=8\n"
    text = b"".join(line % (n, 4096 + 8 * n) for n in range(most + more))
    with tap.private_dir() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = allium("sys", "import", "-", "-o", folder + "/a.allium", input=text)
        check("%s events are by calls beyond" % format(more, ",") in done.stderr.decode(), done.stderr)
        most_kib = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        check(most_kib < 700 << 10, "KiB", most_kib)
        query = "SELECT allocations FROM sys_kmem WHERE call_site = '[other calls]'"
        equal(json.loads(allium("sql", "--json", folder + "/a.allium", query).stdout)["rows"], [{"allocations": more}],
              "row of the others")


ALLOCINFO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "recorded", "allocinfo-6.12-")


def held(path):
    """-> {(file:line, function): (bytes, calls)} of a copy of /proc/allocinfo"""
    of = {}
    with open(path) as file:
        for size, calls, place, function in re.findall(r"^ *(-?\d+) +(\d+) (\S+).* func:(\S+)", file.read(), re.M):
            if int(size) > 0 or int(calls):
                of[place, function] = int(size), int(calls)
    return of


def allocinfo():
    """Copies of /proc/allocinfo: each line's figures, as tables, report, page and diff have them."""
    with tap.private_dir() as folder:
        for name in "before", "after":
            want, path = held(ALLOCINFO + name), folder + "/" + name
            said = allium("sys", "import", ALLOCINFO + name, "-o", path).stderr.decode()
            total = sum(size for size, _ in want.values()), sum(calls for _, calls in want.values())
            check("by %d calls\n" % len(want) in said and "{:,} objects of ".format(total[1]) in said, said)
            check("lacks      all that was freed before" in said, said)
            rows = json.loads(allium("sql", "--json", path, "SELECT line, function, sum(live_bytes) AS bytes, "
                                     "sum(live_objects) AS calls FROM sys_kmem GROUP BY 1, 2").stdout)["rows"]
            plain = [(row["line"], re.sub(r" (\[.*|\(helper\))$", "", row["function"])) for row in rows]
            equal(sorted(zip(plain, ((row["bytes"], row["calls"]) for row in rows))), sorted(want.items()), "lines")
            live = json.loads(allium("report", path, "--json").stdout)["total"]
            equal((live["live_bytes"], live["live_objects"]), total, "the report's total")
        shown = allium("sys", "kmem", "--from", ALLOCINFO + "after", "--by", "directory", "--json").stdout
        rows = [json.loads(line) for line in shown.splitlines()]
        equal(sum(row["live_bytes"] for row in rows if row.get("directory") == "mm"),
              sum(size for (place, _), (size, _) in want.items() if place.startswith("mm/")), "a directory")
        changed = json.loads(allium("diff", folder + "/before", folder + "/after", "--json").stdout)
        before = held(ALLOCINFO + "before")
        equal(changed["total"]["live"]["change_bytes"], total[0] - sum(size for size, _ in before.values()),
              "the change")
        with open(folder + "/bad", "w") as file:
            file.write("allocinfo - version: 7.0\n")
        said = allium("sys", "import", folder + "/bad", "-o", folder + "/bad.allium", code=1).stderr.decode()
        check(said.count("\n") == 1 and "version" in said, said)


lib.main([
    ("a trace in text, to the unit", text),
    ("compressed, piped, damaged, wrong", compressed),
    ("what perf script prints", of_perf),
    ("stacks in a trace", stacks),
    ("stacks between other lines", interleaved),
    ("pages and percpu memory", pages),
    ("what a trace lacks", lacks),
    ("names of addresses", names),
    ("more calls than any kernel has", many_calls),
    ("copies of /proc/allocinfo", allocinfo),
])
