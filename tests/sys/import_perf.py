# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import` of perf.data: compressed or not, from a file or a pipe, with stacks; against what perf itself says
of the same file.
"""
import collections
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal

EVENTS = ",".join("kmem:" + name for name in ("kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free"))
PIPES = [sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(400)]"]
CELLS = """SELECT call_site, cache, sum(allocated_bytes), sum(slack_bytes), sum(requested_bytes), sum(allocations),
    sum(frees), sum(freed_bytes), sum(live_bytes), sum(live_objects) FROM sys_kmem GROUP BY 1, 2 ORDER BY 1, 2"""
COMMS = "SELECT call_site, comm, sum(allocations) FROM sys_kmem GROUP BY 1, 2"


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def no_helpers(folder):
    """An environment in which no function is a helper: with stacks, and without, each call has its own cells."""
    os.makedirs(folder + "/config/allium", exist_ok=True)
    with open(folder + "/config/allium/kernel-helpers", "w") as file:
        file.write("!*\n")
    return {**os.environ, "XDG_CONFIG_HOME": folder + "/config"}


def imported(path, out, *options, **how):
    return allium("sys", "import", path, "-o", out, "--force", "--kallsyms", "/proc/kallsyms", *options,
                  env=no_helpers(os.path.dirname(out)), **how).stderr.decode()


def cells(path, query=CELLS):
    return [tuple(row.values()) for row in json.loads(allium("sql", "--json", path, query).stdout)["rows"]]


def perf(*words):
    """perf mounts tracefs where it is not: in mounts of its own"""
    return tap.succeed([*tap.unshare(), "perf", *words]).stdout


def recorded(path, *options, events=EVENTS, command=PIPES):
    """-> the path of what perf has recorded of a program that makes 400 pipes"""
    data = perf("record", "-q", "-a", "-m", "4096", "-e", events, *options, "--", *command)
    if data:
        with open(path, "wb") as file:
            file.write(data)
    return path


def every_form():
    """Each cell is that of the text which perf script prints of the file; where perf says of interrupts that they are of
    the program which they interrupt, the sums are the same."""
    with tap.private_dir() as folder:
        for name, options in (("file", ["-o", folder + "/file"]), ("stacks", ["-g", "-o", folder + "/stacks"]),
                              ("packed", ["-z", "-o", folder + "/packed"]), ("pipe", ["-o", "-"])):
            path = recorded(folder + "/" + name, *options)
            with open(folder + "/text", "wb") as file:
                file.write(perf("script", "-i", path, "--show-lost-events"))
            said, as_text = imported(path, folder + "/a.allium"), imported(folder + "/text", folder + "/b.allium")
            check("lacks" not in said, said)
            events = re.search(r"[\d,]+ events", said).group(0)
            check(events in as_text and int(events.split()[0].replace(",", "")) > 1600, name, said, as_text)
            equal(cells(folder + "/a.allium"), cells(folder + "/b.allium"), "cells of " + name)
            want = {row[:2]: row[2] for row in cells(folder + "/b.allium", COMMS)}
            for site, comm, allocations in cells(folder + "/a.allium", COMMS):
                if comm not in ("[interrupt]", "[unknown]"): # perf script prints the thread's number for the latter
                    check(allocations <= want[site, comm], name, site, comm, allocations, want[site, comm])
            if name == "file": # of this boot: the symbols are found
                allium("sys", "import", path, "-o", folder + "/c.allium", env=no_helpers(folder))
                equal(cells(folder + "/c.allium"), cells(folder + "/a.allium"), "cells without --kallsyms")


def stacks():
    """Each stack is the kernel's part of what perf prints, from the call on."""
    with tap.private_dir() as folder:
        path = recorded(folder + "/data", "-g", "-o", folder + "/data")
        imported(path, folder + "/a.allium")
        folded = allium("export", folder + "/a.allium", "--folded", "allocations").stdout.decode().splitlines()
        have = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in folded}
        lacks, want, large = [], collections.Counter(), {}  # by address: thread and sizes of a large object, its stack
        printed = perf("script", "-i", path, "-F", "tid,event,ip,sym,symoff,dso,trace").decode(errors="replace")
        for event in printed.split("\n\n"):
            head, *frames = event.strip("\n").split("\n")
            found = re.search(r"kmem:\S*alloc\S*: .*?call_site=(\S+).* ptr=0x(\S+)", head)
            if not found or int(found.group(2), 16) <= 16:
                freed = re.search(r"kmem:\S*free: .* ptr=0x(\S+)", head)
                large.pop(freed and freed[1], None)
                continue
            # what looks like the kernel's without being in it is what perf took for a frame of the program
            names = [frame.split()[1] for frame in frames
                     if int(frame.split()[0], 16) >> 63 and not frame.endswith("([unknown])")]
            if found[1] not in names:  # the stack that perf prints lacks the call
                lacks.append(event)
                continue
            names = names[names.index(found[1]):]
            stack = ";".join(re.sub(r"(\.(part|isra|constprop|cold)[^+]*)?\+.*", "", name) for name in reversed(names))
            want[stack] += 1
            sizes = re.search(r"^ *(\d+) .*kmem:kmalloc: .* bytes_req=(\d+) bytes_alloc=(\d+)", head)
            first_sizes, first_stack = large.pop(found[2], (None, None))
            if sizes and sizes.groups() == first_sizes:  # the second event of a large object
                want[first_stack] -= 1
            elif sizes and int(sizes[3]) > 8192:
                large[found[2]] = sizes.groups(), stack
        want = +want
        equal(sum(have.values()), sum(want.values()) + len(lacks), "allocations")
        check(len(lacks) <= sum(want.values()) // 100, lacks)
        differ = [(stack, have.get(stack, 0), want.get(stack, 0)) for stack in sorted(have.keys() | want.keys())
                  if not 0 <= have.get(stack, 0) - want.get(stack, 0) <= len(lacks)]
        equal(differ, [], "stacks, and how often: here, by perf")


def pages():
    """Pages, percpu memory and processes: against sums of what perf script prints of the same file."""
    with tap.private_dir() as folder:
        path = recorded(folder + "/data", "-o", folder + "/data", events="kmem:mm_page*,percpu:percpu_*_percpu",
                        command=["unshare", "-m", *PIPES])
        said = imported(path, folder + "/a.allium")
        made, asked, taken = collections.Counter(), 0, 0
        for line in perf("script", "-i", path, "-F", "pid,tid,event,trace").decode(errors="replace").splitlines():
            page = re.search(r"^ *(\d+)/\d+ +kmem:mm_page_alloc: .*pfn=(?!0x0 )\S+ order=(\d+)", line)
            percpu = re.search(r"percpu_alloc_percpu: .* size=(\d+) .* bytes_alloc=(\d+)", line)
            if page:
                made[int(page.group(1))] += 4096 << int(page.group(2))
            if percpu:
                asked += int(percpu.group(1)) * os.sysconf("SC_NPROCESSORS_CONF")
                taken += int(percpu.group(2))
        row, = cells(folder + "/a.allium", "SELECT sum(allocated_bytes), sum(requested_bytes) FROM sys_kmem")
        check(asked, "percpu memory")
        equal(row, (taken, asked), "percpu memory")
        row, = cells(folder + "/a.allium", "SELECT sum(allocated_bytes) FROM sys_kpages")
        equal(row[0], sum(made.values()), "pages")
        rows = dict(cells(folder + "/a.allium", "SELECT pid, sum(allocated_bytes) FROM sys_kpages_process GROUP BY 1"))
        check(len(rows) > 1, rows)
        for process, size in rows.items():  # interrupts are those of no process
            check(process == 0 or size <= made[process], process, size, made[process])
        equal(sum(rows.values()), sum(made.values()), "pages of processes")
        check(re.search(r"pages +.* allocated in [\d,]+ blocks", said), said)


def damaged():
    """A file that is cut, of another machine, without an event; one record less."""
    with tap.private_dir() as folder:
        out = folder + "/a.allium"
        with open(recorded(folder + "/pipe", "-o", "-"), "rb") as file:
            pipe = file.read()
        with open(recorded(folder + "/file", "-o", folder + "/file"), "rb") as file:
            whole = file.read()
        for data, words in ((whole[:len(whole) // 2], "is damaged or cut"),
                            (whole.replace(b"x86_64\0", b"s390x\0\0"), "is of a machine of s390x"),
                            (b"2ELIFREP" + whole[8:], "is of a big-endian machine"),
                            (whole[:100], "is damaged or cut"), (whole[:8], "is damaged or cut"),
                            (whole.replace(b"tracing0.6\0\0", b"tracing0.6\0\1"), "is of a big-endian machine")):
            done = allium("sys", "import", "-", "-o", out, code=1, input=data)
            check(words in done.stderr.decode() and done.stderr.count(b"\n") == 1, words, done.stderr)
        cut = pipe[:next(at for at, _ in samples(pipe) if at > len(pipe) // 2) + 20] # in a record
        done = allium("sys", "import", "-", "-o", out, code=1, input=cut)
        check(b"damaged or cut; --partial keeps" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        allium("sys", "import", "-", "-o", out, "--partial", input=cut)
        check(len(cells(out)) > 5, cells(out))
        done = allium("sys", "import", "-", "-o", out, "--force", "--format", "text", code=1, input=whole)
        check(b"no kmem event" in done.stderr, done.stderr)
        done = allium("sys", "import", "-", "-o", out, "--force", "--format", "perf.data", code=1, input=b"a\n" * 99)
        check(b"not a file of perf record" in done.stderr, done.stderr)
        with open("/proc/kallsyms", "rb") as symbols, open(folder + "/moved", "wb") as file:
            file.write(re.sub(rb"(?m)^(f{8})(........)( T _text)$", rb"\g<1>93000000\3", symbols.read()))
        done = allium("sys", "import", folder + "/file", "-o", out, "--force", "--kallsyms", folder + "/moved", code=1)
        check(b"of another boot" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        said = imported("-", out, input=pipe)
        at = next(sample for sample in samples(pipe) if b"filp\0" in sample[1])
        less = imported("-", out, input=pipe[:at[0]] + pipe[at[0] + len(at[1]):])
        events = [int(re.search(r"([\d,]+) events", text).group(1).replace(",", "")) for text in (said, less)]
        equal(events[0] - events[1], 1, "events that are missing")


def samples(pipe):
    """-> (offset, bytes) of the samples in what perf wrote to a pipe"""
    at = 16
    while at < len(pipe):
        kind, size = int.from_bytes(pipe[at:at + 4], "little"), int.from_bytes(pipe[at + 6:at + 8], "little")
        if kind == 9:
            yield at, pipe[at:at + size]
        at += size + (int.from_bytes(pipe[at + 8:at + 12], "little") + 7 & ~7 if kind == 66 else 0)


lib.main([
    ("each form of perf.data, cell by cell", every_form),
    ("stacks of perf.data", stacks),
    ("pages and percpu memory of perf.data, by process", pages),
    ("perf.data that is cut, foreign or of another boot", damaged),
])
