# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys record`: every event of the slab allocator, against what a program has done, and against BPF."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

sys.dont_write_bytecode = True
import lib
import page_reader
import tap
import traces
import vmlinux
from lib import built, check, equal

PIPES = 3000
# Each pipe takes one struct pipe_inode_info and one array of buffers; on the way it takes two files.
PIPE_SITE = "alloc_pipe_info"
MAKES_PIPES = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (3 * %d, 3 * %d))
kept = [os.pipe() for _ in range(%d)]
if sys.argv[1:]:
    print("made", flush=True)
    sys.stdin.readline()
for pair in kept:
    os.close(pair[0]); os.close(pair[1])
""" % (PIPES, PIPES, PIPES)


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def at_once(words):
    """What the recorder waits for after the end takes a second, and only one test is about it."""
    return words if "--settle" in words else ("--settle", "0s", *words)


def recorded(folder, *words, code=0):
    """-> (path, what stands on stderr)"""
    path = folder + "/r.allium"
    done = allium("sys", "record", "--force", "-o", path, "--buffer", "64M", *at_once(words), code=code)
    return path, done.stderr.decode()


def asked(path, question):
    return json.loads(allium("sql", "--json", path, question).stdout)["rows"]


def numbers(text):
    """The figures of the summary."""
    found = re.search(
        r"([\d,]+) events?\n +allocated +([\d,]+) objects? of .*\n +freed +([\d,]+) objects? of [^,\n]*"
        r"(?:, and ([\d,]+) without an event.*)?\n.*\n(?: {13}.*\n)*"
        r" +live +([\d,]+) objects? of .*\n(?: {13}.*\n)?(?: +pages .*\n(?: +[\d,]+ blocks? .*\n)?)?"
        r" +lost +(.*)\n", text)
    check(found, "no summary:", text)
    return [int((n or "0").replace(",", "")) for n in found.groups()[:5]] + [found.group(6)]


class Recorder:
    """One that records until it is told to end."""

    def __init__(self, path, *words):
        self.process = subprocess.Popen([built("ALLIUM"), "sys", "record", "--force", "-o", path, *at_once(words)],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        check(b": ready: " in self.process.stderr.readline(), "it did not get ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return numbers(self.process.communicate(timeout=tap.TIMEOUT)[1].decode())


def pipes():
    """A program that makes pipes: their allocations are found, each once; all are freed at its end."""
    with tap.private_dir() as folder:
        path, said = recorded(folder, "--", sys.executable, "-S", "-c", MAKES_PIPES)
        events, allocations, frees, unseen, live, lost = numbers(said)
        equal(lost, "nothing", "losses")
        equal(allocations, frees + unseen + live, "allocations, and what became of them")
        check(events > 4 * PIPES, events)
        row, = asked(path, "SELECT sum(allocations) AS n, sum(live_objects) AS live, sum(allocated_bytes) AS bytes "
                     "FROM sys_kmem WHERE call_site LIKE '%s+%%'" % PIPE_SITE)
        # others make pipes, too, but few
        check(2 * PIPES <= row["n"] < 2 * PIPES + 1000 and row["live"] < 1000, row)
        whole = json.loads(allium("report", path, "--json", "--by", "function", "--top", "0").stdout)
        check("ffffffff" not in json.dumps(whole), "addresses of the kernel in the report")
        with open(path, "rb") as file:
            check(not re.search(rb"ffff[0-9a-f]{12}", file.read()), "addresses of the kernel in the recording")
        found, = [each for each in whole["rows"] if each["name"] == PIPE_SITE]
        equal(found["self"]["allocations"], row["n"], "allocations of the function")
        equal(found["self"]["allocated_bytes"], row["bytes"], "its bytes")


def against_bpf():
    """`allium sys kmem` beside it counts the same allocations at the same calls."""
    with tap.private_dir() as folder:
        with subprocess.Popen([built("ALLIUM"), "sys", "kmem", "--json", "--by", "site"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as beside:
            try:
                check(b": ready: " in beside.stderr.readline(), "sys kmem did not get ready")
                path, _ = recorded(folder, "--", sys.executable, "-S", "-c", MAKES_PIPES)
                beside.send_signal(signal.SIGINT)
                out = beside.communicate(timeout=tap.TIMEOUT)[0]
            finally:
                beside.kill()
        rows = [json.loads(line) for line in out.splitlines()]
        bpf = {row["call_site"]: row for row in rows if "call_site" in row}
        sums = ", ".join("sum(%s) AS %s" % (key, key) for key in ("allocations", "allocated_bytes", "requested_bytes"))
        ours = {row["call_site"]: row
                for row in asked(path, "SELECT call_site, %s FROM sys_kmem GROUP BY call_site" % sums)}
        sites = [name for name in ours if name.startswith(PIPE_SITE + "+")]
        check(sites, "no calls of", PIPE_SITE)
        for site in sites:
            for key in "allocations", "allocated_bytes", "requested_bytes":
                # sys kmem began before, and ended later
                least, found = ours[site][key], bpf[site][key]
                check(least <= found <= least * 1.2, site, key, least, found)
        check(len(bpf) >= len(ours) * 0.9, "calls:", len(bpf), len(ours))


def held():
    """What is live at the end, while the program holds it; --duration ends the recording and not the program."""
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        recorder = subprocess.Popen([built("ALLIUM"), "sys", "record", "--buffer", "64M", "-o", path],
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
            with subprocess.Popen([sys.executable, "-S", "-c", MAKES_PIPES, "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as program:
                equal(program.stdout.readline(), b"made\n", "the program")
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=tap.TIMEOUT)[1].decode()
                program.stdin.close()
        finally:
            recorder.kill()
            recorder.wait()
        equal(recorder.returncode, 0, "code (%s)" % said)
        equal(numbers(said)[5], "nothing", "losses")
        row, = asked(path, "SELECT sum(live_objects) AS live FROM sys_kmem WHERE call_site LIKE '%s+%%'" % PIPE_SITE)
        check(2 * PIPES <= row["live"] < 2 * PIPES + 1000, row)
        text = allium("report", path, "--by", "function").stdout.decode()
        check(PIPE_SITE in text and "exact: every allocation" in text, text)
        words = " ".join(text.split())
        check(re.search(r"^  temporary  -$", text, re.M) and "TEMP" not in text, "what was not measured:", text)
        check(text.startswith("the kernel, recorded\n") and "The recorder (allium sys record) took" in words
              and "Objects and pages from before the recording" in words and "RssAnon" not in words, text)


FREES_OF = "frees_of_unknown", "frees_after_loss", "frees_unexplained"


def settled():
    """What was live at the end and is freed soon after it: in the line, the rows and the counts; and nothing else changes.

    Pipes that a program holds at the end of the recording, and closes then; RCU frees their files even later."""
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        holds = [sys.executable, "-S", "-c", MAKES_PIPES, "wait"]
        with Recorder(path, "--buffer", "64M", "--settle", "20s") as recorder, subprocess.Popen(
                holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            equal(program.stdout.readline(), b"made\n", "the program")
            recorder.process.send_signal(signal.SIGINT)
            time.sleep(3)  # the end is no later, also on a busy machine
            program.stdin.close()
            program.wait(tap.TIMEOUT)
            subprocess.run([sys.executable, "-S", "-c", MAKES_PIPES], check=True)  # is not counted
            recorder.process.send_signal(signal.SIGINT)  # it need not wait for 20 s
            said = recorder.process.communicate(timeout=tap.TIMEOUT)[1].decode()
        allocations, frees, unseen, live, lost = numbers(said)[1:]
        equal((allocations, lost), (frees + unseen + live, "nothing"), "allocations, and losses")
        row, = asked(path, "SELECT sum(live_objects) AS live, sum(live_bytes) AS bytes, sum(settled_bytes) AS settled, "
                     "sum(allocations) AS n FROM sys_kmem WHERE call_site LIKE '%s+%%'" % PIPE_SITE)
        check(2 * PIPES <= row["live"] <= row["n"] < 2 * PIPES + 1000, row)
        # others hold pipes, too, but few
        check(row["bytes"] * 0.9 <= row["settled"] <= row["bytes"], row)
        found = re.search(r"\n {13}of these, ([\d,]+) objects? of .* (?:was|were) freed within 20 s after the end", said)
        objects = int(found.group(1).replace(",", ""))
        check(2 * PIPES <= objects <= live, objects, live)
        whole, = asked(path, "SELECT sum(settled_bytes) AS bytes FROM sys_kmem")
        kernel = json.loads(allium("report", path, "--json").stdout)["kernel"]
        equal((kernel["settled_objects"], kernel["settled_bytes"], kernel["settle_ns"]),
              (objects, whole["bytes"], 20 * 10**9), "in the report")
        text = " ".join(allium("report", path).stdout.decode().split())
        check("Of the live objects, %s objects" % found.group(1) in text, text[-900:])
        for table in "sys_kmem_process", "sys_kmem":
            row, = asked(path, "SELECT sum(settled_bytes) AS bytes, max(settled_bytes > live_bytes) AS more FROM " + table)
            equal(row, {"bytes": whole["bytes"], "more": 0}, table)
        # Without it there is neither column nor line.
        path, said = recorded(folder, "--settle", "0s", "--", "true")
        check("of these" not in said and "SETTLED" not in allium("sys", "kmem", "--from", path).stdout.decode(), said)
        equal(json.loads(allium("report", path, "--json").stdout)["kernel"]["settle_ns"], None, "without --settle")


def sums():
    """Each kind of free is a line of the summary, of `report` and of `sys kmem`; all allocations are accounted for."""
    with tap.private_dir() as folder:
        with Recorder(folder + "/r.allium", "--buffer", "64K", "--settle", "100ms") as recorder:
            recorder.process.send_signal(signal.SIGSTOP) # so that something is lost
            subprocess.run([sys.executable, "-S", "-c", MAKES_PIPES], check=True)
            recorder.process.send_signal(signal.SIGCONT)
            time.sleep(0.2)
            subprocess.run([sys.executable, "-S", "-c", MAKES_PIPES], check=True)
            recorder.process.send_signal(signal.SIGINT)
            said = recorder.process.communicate(timeout=tap.TIMEOUT)[1].decode()
        path = folder + "/r.allium"
        _, allocations, frees, unseen, live, _ = numbers(said)
        equal(allocations, frees + unseen + live, "allocations, and what became of them")
        lines = allium("sys", "kmem", "--from", path, "--json", "--by", "cache").stdout.splitlines()
        last = json.loads(lines[-1])["lost"]
        row, = asked(path, "SELECT sum(allocations) AS allocations, sum(frees) AS frees, sum(live_objects) AS live "
                     "FROM sys_kmem")
        equal((row["allocations"], row["frees"], row["live"]), (allocations, frees, live), "rows")
        equal(last["frees_without_event"], unseen, "frees without an event")
        kernel = json.loads(allium("report", path, "--json").stdout)["kernel"]
        for key in (*FREES_OF, "null_frees", "frees_without_event", "settled_objects"):
            equal(kernel[key], last[key], key)
        check(kernel["null_frees"] and kernel["frees_after_loss"] > 0, kernel)
        words = " ".join(said.split()) + " ".join(allium("report", path).stdout.decode().split())
        for key, line in (("frees_of_unknown", "%s frees? of objects whose allocation was not seen"),
                          ("frees_after_loss", "%s frees? of objects whose allocation may be among the lost events"),
                          ("null_frees", "%s frees? of NULL")):
            equal(len(re.findall(line % "{:,}".format(kernel[key]), words)), 2, line)


def stacks():
    """--stacks kernel: how the kernel came to each call, up to the system call."""
    with tap.private_dir() as folder:
        path, said = recorded(folder, "--stacks", "kernel", "--", sys.executable, "-S", "-c",
                              MAKES_PIPES)
        _, allocations, frees, unseen, live, lost = numbers(said)
        equal((allocations, lost), (frees + unseen + live, "nothing"), "allocations, and losses")
        folded = allium("export", path, "--folded", "allocations", "--where",
                        "comm:kernel").stdout.decode().splitlines()
        found = [line.rpartition(" ") for line in folded if line.rpartition(" ")[0].endswith(";" + PIPE_SITE)]
        through = sum(int(count) for stack, _, count in found
                      if re.search(r"do_syscall_64;.*do_pipe2;.*create_pipe_files;%s$" % PIPE_SITE, stack))
        check(through >= 2 * PIPES, through, found[:3])
        equal(sum(int(line.rpartition(" ")[2]) for line in folded), allocations, "allocations of all stacks")


def rows_by(path, part, *words):
    """{the value of that column: row} of `allium sys kmem --from`."""
    out = allium("sys", "kmem", "--from", path, "--by", part, "--json", *words).stdout.decode()
    rows = [json.loads(line) for line in out.splitlines()]
    return {row[part]: row for row in rows if "allocations" in row}


def regrouped():
    """One recording by cache, function, file and directory: each is the sum of the same rows."""
    files = {"fs/pipe.c": [PIPE_SITE], "fs/file_table.c": ["alloc_empty_file"], "mm/memory.c": ["handle_mm_fault"]}
    with tap.private_dir() as folder:
        debug = vmlinux.make(folder, files)
        path, said = recorded(folder, "--vmlinux", debug, "--", sys.executable, "-S", "-c", MAKES_PIPES)
        allocations, frees = numbers(said)[1:3]
        stored = asked(path, "SELECT * FROM sys_kmem")
        for part, column in (("cache", "cache"), ("function", None), ("file", "file"), ("directory", None)):
            rows = rows_by(path, part)
            equal([sum(row[key] for row in rows.values()) for key in ("allocations", "frees")], [allocations, frees],
                  "allocations and frees by " + part)
            for name in filter(None, {row[column] for row in stored if column}):
                for key in "allocations", "frees", "live_bytes", "slack_bytes":
                    expected = sum(row[key] for row in stored if row[column] == name)
                    equal(rows[name][key], expected, "%s of %s" % (key, name))
        check(2 * PIPES <= rows["fs"]["allocations"], rows["fs"])
        equal(rows["fs"]["allocations"], sum(row["allocations"] for row in stored if row["file"].startswith("fs/")),
              "allocations in fs")
        line = [row for row in every_row(path, "line") if (row["line"] or "").startswith("fs/pipe.c:")]
        equal(sum(row["allocations"] for row in line), rows_by(path, "file")["fs/pipe.c"]["allocations"], "by line")
        check(any(name.startswith("[unknown] ") for name in rows), rows.keys())
        sizes = {row["cache"] for row in stored if row["call_site"].startswith(PIPE_SITE + "+")}
        check(any(re.fullmatch(r"\(kmalloc \d+\)", size) for size in sizes), sizes)
        # ... and the profile has the lines.
        row, = [row for row in json.loads(allium("report", path, "--by", "file", "--json").stdout)["rows"]
                if row["name"] == "fs/pipe.c"]
        equal(row["self"]["allocations"], rows_by(path, "file")["fs/pipe.c"]["allocations"], "of the profile's file")
        path, _ = recorded(folder, "--", "true")
        done = allium("sys", "kmem", "--from", path, "--by", "file", code=1)
        check(b"record with --vmlinux" in done.stderr, done.stderr)


def programs():
    """Which program was running: one that ran before, one that is started and executes another, a thread by its name."""
    with tap.private_dir() as folder:
        threads = ("import os, threading\ndef work():\n  open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w')"
                   ".write('named-thread')\n  kept.extend(os.pipe() for _ in range(300))\n"
                   "kept = []\nt = threading.Thread(target=work); t.start(); t.join()\n")
        with subprocess.Popen([sys.executable, "-S", "-c", "import sys\nsys.stdin.readline()\n" + MAKES_PIPES],
                              stdin=subprocess.PIPE) as early:
            path = folder + "/r.allium"
            with Recorder(path, "--buffer", "64M") as recorder:
                early.stdin.write(b"\n")
                early.stdin.close()
                early.wait(tap.TIMEOUT)
                subprocess.run(["sh", "-c", '"$0" -S -c "$1"; :', sys.executable, threads], check=True)
                recorder.end()
        question = "SELECT comm, sum(allocations) AS n FROM sys_kmem WHERE call_site LIKE '%s+%%' GROUP BY comm"
        found = {row["comm"]: row["n"] for row in asked(path, question % PIPE_SITE)}
        python = os.path.basename(os.path.realpath(sys.executable))[:15]
        check(found.get("named-thread", 0) >= 600, found)
        check(found.get(python, found.get("python3", 0)) >= 2 * PIPES, found)
        by_comm = rows_by(path, "comm")
        total, = asked(path, "SELECT sum(allocations) AS n FROM sys_kmem")
        equal(sum(row["allocations"] for row in by_comm.values()), total["n"], "sum")
        check("sh" in by_comm and "[unknown]" not in found, by_comm.keys(), found) # others may end as this begins


def grouped():
    """By process, control group, flags and pair: each has all that was allocated; who frees what others allocated."""
    code = ("import os, sys\nkept = [os.pipe() for _ in range(%d)]\nif not os.fork():\n"
            "  for pair in kept: [os.close(end) for end in pair]\n  os._exit(0)\nos.wait()\n"
            "for pair in kept: [os.close(end) for end in pair]\nprint(os.getpid())") % 500
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        with open("/proc/self/cgroup") as file:
            groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
        done = allium("sys", "record", "--force", "-o", path, "--buffer", "64M", "--", sys.executable, "-S", "-c", code)
        pid = int(done.stdout)
        allocations, frees = numbers(done.stderr.decode())[1:3]
        live = asked(path, "SELECT sum(live_objects) AS n FROM sys_kmem")[0]["n"]
        for part in "process", "cgroup", "gfp", "module":
            rows = every_row(path, part)
            equal(sum(row["allocations"] for row in rows), allocations, "allocations by " + part)
            equal(sum(row["frees"] for row in rows), frees, "frees by " + part)
            equal(sum(row["live_objects"] or 0 for row in rows), live, "live by " + part)
            if part == "process":
                own = [row for row in rows if row["pid"] == pid]
                check(sum(row["allocations"] for row in own) >= 1000, own)
                check(all(row["comm"] for row in rows), rows)
            elif part == "cgroup":
                group = groups.get("memory", groups.get(""))
                check([row["allocations"] for row in rows if row["cgroup"] == group][0] >= 1000, group, rows)
            elif part == "gfp":
                check(any("GFP_KERNEL_ACCOUNT" in (row["gfp"] or "") for row in rows), rows)
            else:
                check("vmlinux" in {row["module"] for row in rows}, rows)
        pairs = every_row(path, "pair")
        equal(sum(row["frees"] for row in pairs), frees, "frees by pair")
        ours = [row for row in pairs if row["call_site"].startswith(PIPE_SITE + "+") and "pipe" in row["free_site"]]
        check(sum(row["frees"] for row in ours) >= 1000, pairs)
        # Frees where the object was allocated: what is not free is live.
        charged = every_row(path, "site", "--charge", "allocator")
        check(all(row["allocations"] - row["frees"] == row["live_objects"] for row in charged), charged)
        check(all(row["allocated_bytes"] - row["freed_bytes"] == row["live_bytes"] for row in charged), charged)
        check(all(row["allocations"] for row in charged), "rows that only free")
        text = allium("sys", "kmem", "--from", path, "--slab-account").stdout.decode()
        head = dict(re.findall(r"^([a-z ]+): +(\d+)$", text, re.M))
        equal([int(head["number of allocs"]), int(head["number of callers"])], [allocations, len(charged)], text[:300])
        lines = re.findall(r"^ *(\d+) +(\d+) +(\d+) +(\d+)/(\d+) +(.+)$", text, re.M)
        equal({line[5]: int(line[3]) - int(line[4]) for line in lines},
              {row["call_site"]: row["live_objects"] for row in charged}, "live by slab_account")
        oldest = max(row["oldest_ns"] or 0 for row in charged)
        check(0 < oldest < 60e9, oldest)
        done = allium("sys", "kmem", "--from", path, "--by", "pair", "--charge", "allocator", code=2)
        check(b"leave out --charge allocator" in done.stderr, done.stderr)
        allium("sys", "kmem", "--duration", "50ms", "-o", folder + "/rows.allium")
        done = allium("sys", "kmem", "--from", folder + "/rows.allium", "--slab-account", code=1)
        check(b"do not tell what is live" in done.stderr, done.stderr)
        own = [row for row in every_row(path, "function") if row["function"].startswith("allium")]
        equal([row["function"] for row in own], ["allium itself"], "functions")
        done = allium("sys", "kmem", "--by", "pair", code=2)
        check(b"allium sys record -o FILE" in done.stderr, done.stderr)


def every_row(path, part, *words):
    out = allium("sys", "kmem", "--from", path, "--by", part, "--json", *words).stdout.decode()
    return [row for row in map(json.loads, out.splitlines()) if "frees" in row]


def held_pages():
    """What a program holds of pages, by process; all events against the sums; the slab's own pages, against slabinfo."""
    size = 64 << 20
    code = ("import mmap, os\npipes = [os.pipe() for _ in range(450)]\nkept = mmap.mmap(-1, %d)\nfor at in range(0, %d, 4096): kept[at] = 1\n"
            "print(os.getpid(), flush=True)\nkept.close()\nos.kill(os.getpid(), 9)") % (size, size)
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        done = allium("sys", "record", "--force", "-o", path, "--buffer", "64M", "--", sys.executable, "-S", "-c", code,
                      code=137)
        pid, said = int(done.stdout), done.stderr.decode()
        whole, = asked(path, "SELECT sum(allocated_bytes) AS a, sum(freed_bytes) AS f, sum(live_bytes) AS l "
                       "FROM sys_kpages")
        for part in "order", "type", "comm", "process", "cgroup", "use", "gfp":
            out = allium("sys", "kpages", "--from", path, "--by", part, "--json").stdout.decode()
            rows = [row for row in map(json.loads, out.splitlines()) if "allocations" in row]
            equal([sum(row[key] for row in rows) for key in ("allocated_bytes", "live_bytes")],
                  [whole["a"], whole["l"]], "by " + part)
            if part == "process":
                own = [row for row in rows if row["pid"] == pid]
                check(sum(row["allocated_bytes"] for row in own) >= size, own)
                check(sum(row["live_bytes"] for row in own) < size / 4, own)
            elif part == "use":
                uses = {row["use"]: row for row in rows}
                check(uses["slab"]["allocated_bytes"] and uses["other"]["allocated_bytes"] >= size, uses)
        check(re.search(r"pages +.* allocated in [\d,]+ blocks, .* live; .* of the live pages hold the objects above", said), said)
        shown = allium("sys", "kpages", "--from", path, "--top", "3")
        check(b"nothing was lost" in shown.stderr, shown.stderr)
        # Only what was asked for.
        path, said = recorded(folder, "--events", "slab", "--", "true")
        check("pages" not in said, said)
        done = allium("sys", "kpages", "--from", path, code=1)
        check(b"has no rows of kpages, only of" in done.stderr, done.stderr)
        path, said = recorded(folder, "--events", "page", "--stacks", "kernel", "--", "true")
        check("allocated  0 objects" in said, said)
        stacks = asked(path, "SELECT kernel_stack FROM sys_kpages WHERE kernel_stack IS NOT NULL")
        check(any(re.search("alloc_(frozen_)?pages", row["kernel_stack"]) for row in stacks), stacks)
        path, said = recorded(folder, "--settle", "0s", "--events", "percpu", "--raw", folder + "/raw",
                              "--", "unshare", "-m", "true")
        want = percpu_bytes(folder + "/raw")
        row, = asked(path, "SELECT sum(allocated_bytes) AS bytes, sum(requested_bytes) AS asked FROM sys_kmem "
                     "WHERE cache = '(percpu)' OR call_site = 'allium itself'")
        check(want[0] and (row["bytes"], row["asked"]) == want, row, want)
        done = allium("sys", "record", "--events", "slab,nosuch", code=2)
        check(b"nosuch" in done.stderr, done.stderr)


def percpu_bytes(raw):
    """-> (allocated, requested) bytes of the events in kept pages, on all CPUs"""
    with open(raw + "/events/percpu/percpu_alloc_percpu/format") as file:
        text = file.read()
    number = int(re.search(r"^ID: (\d+)", text, re.M)[1])
    at = {name: int(re.search(r" %s;\s*offset:(\d+)" % name, text)[1]) for name in ("size", "bytes_alloc", "ptr")}
    allocated = requested = 0
    for path in glob.glob(raw + "/per_cpu/*/trace_pipe_raw"):
        with open(path, "rb") as file:
            data = file.read()
        for begin in range(0, len(data), traces.PAGE):
            page = data[begin:begin + traces.PAGE]
            for record, _ in traces.records(page):
                if int.from_bytes(page[record:record + 2], "little") == number:
                    value = {key: int.from_bytes(page[record + a:record + a + 8], "little") for key, a in at.items()}
                    allocated += value["bytes_alloc"]
                    requested += value["size"] * os.sysconf("SC_NPROCESSORS_CONF")
    return allocated, requested


def pages():
    """The recording as a page, with its stacks; and the rows of sys kmem as one. Neither has an address."""
    with tap.private_dir() as folder:
        place = types.SimpleNamespace(folder=folder, env=os.environ, path=lambda name: folder + "/" + name)
        path, said = recorded(folder, "--stacks", "kernel", "--", sys.executable, "-S", "-c", MAKES_PIPES)
        allium("export", path, "--html", "-o", folder + "/stacks.html")
        page = page_reader.Page(folder + "/stacks.html")
        page.policy()
        found = {stack: n for stack, n in page.stacks("allocated", "count").items()
                 if not stack.startswith("kernel pages")}
        equal(sum(found.values()), numbers(said)[1], "allocations")
        folded = allium("export", path, "--folded", "allocations", "--where",
                        "comm:kernel").stdout.decode().splitlines()
        equal(len(found), len(folded), "stacks")
        _, value, low, high = page_reader.Shown(place, "stacks.html", view="flame", metric="allocated", amount="count",
                                                direction="callees", focus=PIPE_SITE).details()
        check(value == low == high >= 2 * PIPES, value, low, high)
        allium("sys", "kmem", "--from", path, "--by", "function", "--html", folder + "/rows.html")
        rows = page_reader.Shown(place, "rows.html", view="tables", metric="allocations", amount="count").rows()
        want = rows_by(path, "function", "--sort", "allocations")
        equal([row[0] for row in rows[1:6]], list(want)[:5], "functions")
        for name in "stacks.html", "rows.html":
            data = page_reader.Page(folder + "/" + name).data
            addresses = [at for at in re.findall(rb"(?:[0-9a-f]{16})", data) if at.startswith(b"ffff")]
            equal(addresses, [], "addresses in " + name)
        allium("export", path, "--svg", "treemap", "-o", folder + "/k.svg")


def allocations_of(source, name):
    rows = json.loads(allium("report", source, "--json", "--by", "function", "--top", "0").stdout)["rows"]
    return sum(row["self"]["allocations"] for row in rows if row["name"] == name)


def moments():
    """What is stored at intervals is there for FILE@TIME, and after the recorder was killed."""
    with tap.private_dir() as folder:
        path, _ = recorded(folder, "--interval", "100ms", "--", "sh", "-c",
                           'sleep 1; "$0" -S -c "$1"', sys.executable, MAKES_PIPES)
        before, after = allocations_of(path + "@800ms", PIPE_SITE), allocations_of(path, PIPE_SITE)
        check(before + 2 * PIPES <= after, before, after) # others make pipes, too
        change = json.loads(allium("diff", path + "@800ms", path, "--json", "--sort", "allocations").stdout)
        check(change["total"]["allocated"]["change_count"] >= 2 * PIPES, change["total"]["allocated"])
        with Recorder(path, "--interval", "50ms"):
            subprocess.run([sys.executable, "-S", "-c", MAKES_PIPES], check=True)
            tap.wait_until(lambda: allocations_of(path, PIPE_SITE) >= 2 * PIPES, 10, "what was stored meanwhile")
        check(2 * PIPES <= allocations_of(path, PIPE_SITE), "after SIGKILL")
        check(b"the recording was cut short" in allium("report", path).stdout, "report")


def slab_attribute(text, cache, name):
    found, = re.findall(r"^%s\t%s\t(.*)$" % (re.escape(cache), name), text, re.M)
    return found


def states():
    """What the kernel's files say at the beginning and at the end."""
    with tap.private_dir() as folder:
        path, _ = recorded(folder, "--", "true")
        rows = asked(path, "SELECT taken_ns, path, text FROM sys_state ORDER BY rowid")
    moments = sorted({r["taken_ns"] for r in rows})
    equal(len(moments), 2, "moments")
    first = {r["path"]: r["text"] for r in rows if r["taken_ns"] == moments[0]}
    last = {**{path: first[path] for path in first if path != "/proc/cmdline" and "osrelease" not in path},
            **{r["path"]: r["text"] for r in rows if r["taken_ns"] == moments[1]}}
    for file in ("/proc/buddyinfo", "/proc/meminfo", "/proc/pagetypeinfo", "/proc/slabinfo", "/proc/vmstat",
                 "/proc/zoneinfo"):
        with open(file) as now:
            head = now.readline().split()[0]
        for state in first, last:
            equal(state[file].split()[0], head, "beginning of " + file)
    area = last["/proc/vmallocinfo"].splitlines()[0]
    check(re.match(r"(\?|0x[0-9a-f]+-0x[0-9a-f]+) +\d+ ", area), area)
    for file in ("/proc/cmdline", "/proc/sys/kernel/osrelease"):
        with open(file) as now:
            equal(first[file], now.read(), file)
        check(file not in last, file, "twice")
    cache = "pid"
    if os.path.islink("/sys/kernel/slab/" + cache):
        target = os.readlink("/sys/kernel/slab/" + cache)
        equal(slab_attribute(last["/sys/kernel/slab"], cache, "->"), target, "the link of a merged cache")
        cache = target
    with open("/sys/kernel/slab/%s/object_size" % cache) as now:
        equal(slab_attribute(last["/sys/kernel/slab"], cache, "object_size"), now.read().strip(), "size of " + cache)


def unchanged_states():
    """A text that is the same as at the moment before is not stored again, and is known all the same."""
    with tap.private_dir() as folder:
        path, _ = recorded(folder, "--interval", "50ms", "--settle", "0s", "--", "sleep", "2")
        rows = asked(path, "SELECT taken_ns, path, text FROM sys_state ORDER BY rowid")
        moments, known, stored = sorted({r["taken_ns"] for r in rows}), {}, {}
        for row in rows:
            check(known.get(row["path"]) != row["text"], "stored again:", row["path"])
            known[row["path"]] = row["text"]
            stored[row["path"]] = stored.get(row["path"], 0) + 1
        check(len(moments) > 5 and min(stored[path] for path in stored if stored[path] > 1) < len(moments), stored)
        now = asked(path, "SELECT path, text, max(taken_ns) AS at FROM sys_state WHERE taken_ns <= %d GROUP BY path" %
                    moments[-1])
        equal({row["path"]: row["text"] for row in now}, known, "what is known at the end")
        frag = json.loads(allium("sys", "frag", "--from", path, "--json").stdout.splitlines()[0])
        check(frag, "sys frag")


def losses():
    """What finds no room is counted: by one that does not read, beside one that reads everything."""
    with tap.private_dir() as folder, Recorder(folder + "/whole.allium", "--buffer", "64M") as whole, Recorder(
            folder + "/small.allium", "--buffer", "64K") as small:
        small.process.send_signal(signal.SIGSTOP)
        subprocess.run([sys.executable, "-S", "-c", MAKES_PIPES], check=True)
        small.process.send_signal(signal.SIGCONT)
        seen, allocations, frees, unseen, live, lost = small.end()
        everything, *_, nothing = whole.end()
        equal(nothing, "nothing", "losses of the one that reads")
        found = re.fullmatch(r"([\d,]+) events?: live figures may be too high or too low .*", lost)
        check(found, lost)
        missing = int(found.group(1).replace(",", ""))
        # the other one has seen it begin and end, too
        check(missing > 4 * PIPES and seen + missing <= everything, seen, missing, everything)
        text = " ".join(allium("report", folder + "/small.allium").stdout.decode().split())
        check(re.search(r" exact but for [\d,]+ lost events? ", text), text[:400])
        check("Lost %s " % found.group(1) in text, text[-800:])
        equal(allocations, frees + unseen + live, "allocations, and what became of them")
        kept, = asked(folder + "/small.allium", "SELECT value AS n FROM meta WHERE key = 'sys_kmem_lost_events'")
        equal(int(kept["n"]), missing, "in the recording")


def ends():
    """The command's code is ours, and nothing of the instance is left; mistakes are one line."""
    with tap.private_dir() as folder:
        recorded(folder, "--quiet", "--", "sh", "-c", "exit 7", code=7)
        path, _ = recorded(folder, "--", "/none/such", code=127)
        check(not os.path.exists(path), "a recording of nothing is left")
        path, said = recorded(folder, "--duration", "300ms")
        check(0.25 < float(asked(path, "SELECT (taken_ns - began_ns) / 1e9 AS s FROM image")[0]["s"]) < 5, said)
        done = allium("sys", "record", "-o", path, code=1)
        check(b"exists" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        shown = allium("sys", "kmem", "--from", path, "--by", "function", "--top", "3")
        check(b"nothing was lost" in shown.stderr and shown.stdout.count(b"\n") >= 4, shown)
    for words, line in ((["--buffer", "1"], "--buffer 1 is out of range"), (["x"], "does not take x"),
                        (["--duration", "5x"], "invalid time")):
        done = allium("sys", "record", *words, code=2)
        check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, words, done.stderr)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    done = tap.run([*nobody, built("ALLIUM"), "sys", "record"])
    equal(done.returncode, 3, "code without privilege")
    check(b"cannot mount tracefs" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)


def instances(folder):
    return [name for name in os.listdir(folder + "/instances") if name.startswith("allium-")]


def name_of(pid):
    return "allium-%d.%d" % (pid, os.stat("/proc/%d/ns/pid" % pid).st_ino)


def killed():
    """What SIGKILL leaves behind is removed by the next recording."""
    with tap.private_dir() as folder:
        tracefs = folder + "/tracefs"
        os.mkdir(tracefs)
        script = 'mount -t tracefs none "$0" && exec "$@"'
        env = dict(os.environ, ALLIUM=built("ALLIUM"), PYTHONPATH=os.path.dirname(tap.__file__))
        done = tap.run([*tap.unshare(), "sh", "-c", script, tracefs, sys.executable, "-B", os.path.abspath(__file__),
                        "inside", tracefs], env=env)
        equal(done.returncode, 0, done.stderr.decode())


def still_on_after(tracefs):
    """Seconds for which events are still recorded after a SIGKILL."""
    recorder = subprocess.Popen([built("ALLIUM"), "sys", "record", "--force", "-o", tracefs + ".allium"],
                                stderr=subprocess.PIPE)
    check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
    name = tracefs + "/instances/" + name_of(recorder.pid)
    with open(name + "/tracing_on", "rb", buffering=0) as switch:
        equal(os.pread(switch.fileno(), 2, 0), b"1\n", "tracing_on")
        recorder.kill()
        killed = time.monotonic()
        while os.pread(switch.fileno(), 2, 0) == b"1\n" and time.monotonic() - killed < 5:
            pass
        took = time.monotonic() - killed
    recorder.wait()
    tap.wait_until(lambda: not os.path.exists(name), 5, "the instance goes with its process")
    return took


def inside(tracefs):
    # The least of some: on a busy machine all three processes have to wait for others.
    took = [still_on_after(tracefs) for _ in range(7)]
    check(min(took) <= 0.1, "events are recorded for so many seconds after a SIGKILL:", took)
    recorder = subprocess.Popen([built("ALLIUM"), "sys", "record", "--force", "-o", tracefs + ".allium"],
                                stderr=subprocess.PIPE)
    check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
    name = name_of(recorder.pid)
    check(name in instances(tracefs), instances(tracefs))
    recorder.kill()
    recorder.wait()
    tap.wait_until(lambda: name not in instances(tracefs), 5, "the instance goes with its process")
    # ... and of one whose child is killed, too, with the next recording.
    recorder = subprocess.Popen([built("ALLIUM"), "sys", "record", "--force", "-o", tracefs + ".allium"],
                                stderr=subprocess.PIPE)
    check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
    name = name_of(recorder.pid)
    with open("/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)) as file:
        guard, = map(int, file.read().split())
    recorder.send_signal(signal.SIGSTOP)
    os.kill(guard, signal.SIGKILL)
    recorder.kill()
    recorder.wait()
    check(name in instances(tracefs), "it is gone already")
    allium("sys", "record", "--quiet", "-o", tracefs + ".other", "--", "true")
    check(name not in instances(tracefs), "it stays")


if sys.argv[1:2] == ["inside"]:
    inside(sys.argv[2])
    sys.exit(0)

lib.main([
    ("pipes of a program, each counted once", pipes),
    ("the same as BPF counts", against_bpf),
    ("what is live while a program holds it", held),
    ("what is freed soon after the end", settled),
    ("all allocations, and all kinds of frees", sums),
    ("stacks of allocations", stacks),
    ("rows by cache, function, file and directory", regrouped),
    ("by program", programs),
    ("by process, group, flags and pair", grouped),
    ("pages of a program, and which ones hold objects", held_pages),
    ("pages of a recording, and of rows", pages),
    ("moments in the recording, and a recorder that is killed", moments),
    ("the state of the kernel at the beginning and the end", states),
    ("texts that have not changed are stored once", unchanged_states),
    ("events that found no room are counted", losses),
    ("codes, mistakes, and what is left behind", ends),
    ("SIGKILL switches tracing off within 0.1 s, and leaves no instance behind", killed),
])
