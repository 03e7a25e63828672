# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import` of trace-cmd's files. trace-cmd does not record on every kernel: the files are made here of pages
that `allium sys record --raw` kept, as trace-cmd.dat.v6(5) and v7(5) say. If trace-cmd is there, it also makes files of
them (`trace-cmd restore`, `convert`), and its text of them must give the same.
"""
import glob
import os
import re
import shutil
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import lib
import tap
from lib import check, equal
from traces import PIPES, allium, cells, events_of, folded, recorded

MAGIC = b"\x17\x08\x44tracing"
PAGE = 4096
# Allocated on one CPU, freed on the other.
MESSAGES = """
import os, socket
a, b = socket.socketpair()
if os.fork():
    os.sched_setaffinity(0, {0})
    for _ in range(2000): a.send(b"x"), a.recv(1)
else:
    os.sched_setaffinity(0, {1})
    for _ in range(2000): b.recv(1), b.send(b"x")
"""
MADE = """SELECT call_site, cache, sum(allocated_bytes), sum(requested_bytes), sum(allocations) FROM sys_kmem
    WHERE allocations > 0 GROUP BY 1, 2 ORDER BY 1, 2"""

# trace-cmd's text does not tell interrupts, so programs may differ.
PAGES = """SELECT "order", migrate_type, use, sum(allocated_bytes), sum(allocations), sum(frees), sum(live_bytes)
    FROM sys_kpages GROUP BY 1, 2, 3"""


def u16(n):
    return struct.pack("<H", n)


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def sized(path, size=u64):
    data = read(path)
    return size(len(data)) + data


def formats(folder):
    paths = sorted(glob.glob(folder + "/*/format"))
    return u32(len(paths)) + b"".join(map(sized, paths))


def parts(raw):
    """-> header pages, ftrace formats, event formats, kallsyms, printk formats, names of threads"""
    groups = [path for path in sorted(glob.glob(raw + "/events/*/")) if not path.endswith("/ftrace/")]
    return [
        b"header_page\0" + sized(raw + "/events/header_page") + b"header_event\0" +
        sized(raw + "/events/header_event"),
        formats(raw + "/events/ftrace"),
        u32(len(groups)) + b"".join(os.path.basename(path[:-1]).encode() + b"\0" + formats(path) for path in groups),
        sized(raw + "/kallsyms", u32),
        u32(0),
        sized(raw + "/saved_cmdlines"),
    ]


def cpus(raw):
    return [read(raw + "/per_cpu/cpu%d/trace_pipe_raw" % n) for n in range(len(glob.glob(raw + "/per_cpu/cpu*")))]


def option(number, data):
    return u16(number) + u32(len(data)) + data


def version6(raw, clock=b"[mono]", instance=False):
    pages, data = cpus(raw), MAGIC + b"6\0\0\x08" + u32(PAGE) + b"".join(parts(raw))
    head = data + u32(len(pages)) + b"options  \0"
    options = option(4, b"local global " + clock + b"\0") + option(5, b"Linux a 6 " + os.uname().machine.encode())
    room = len(head) + 1000
    room += -room % PAGE
    table = b"flyrecord\0"
    at = room
    for data in pages:
        table += u64(at) + u64(len(data))
        at += len(data)
    if instance:  # the buffer of the machine has nothing, that of an instance has all
        options += option(3, u64(at) + b"mine\0")
        head += options + u16(0) + b"flyrecord\0" + bytes(16 * len(pages))
        return head + bytes(room - len(head)) + b"".join(pages) + table
    head += options + u16(0) + table
    return head + bytes(room - len(head)) + b"".join(pages)


def packed(method, data):
    if method == "zlib":
        small = zlib.compress(data)
    else:
        small = tap.succeed(["zstd", "-qc"], input=data).stdout
    return u32(len(small)) + u32(len(data)) + small


def version7(raw, method="none"):
    data = MAGIC + b"7\0\0\x08" + u32(PAGE) + method.encode() + b"\0" + b"1\0"
    out, places = bytearray(data + u64(0)), {}

    def section(number, body, pack=method != "none"):
        at = len(out)
        body = packed(method, body) if pack else body
        out.extend(u16(number) + u16(pack) + u32(0) + u64(len(body)) + body)
        return at

    for number, part in zip((16, 17, 18, 19, 20, 21), parts(raw)):
        places[number] = section(number, part)
    buffer = len(out)
    out.extend(u16(3) + u16(method != "none") + u32(0) + u64(0))
    table = b""
    for cpu, pages in enumerate(cpus(raw)):
        out.extend(bytes(-len(out) % PAGE))
        at, size = len(out), len(pages)
        if method != "none":
            # trace-cmd's chunks have ten pages; of all of these zstd would run thousands of times.
            ends = [*range(0, min(len(pages), 100 * PAGE), 10 * PAGE), *range(100 * PAGE, len(pages), 500 * PAGE)]
            chunks = [packed(method, pages[a:b]) for a, b in zip(ends, ends[1:] + [len(pages)])]
            pages = u32(len(chunks)) + b"".join(chunks)
            size = len(pages) - 4
        out.extend(pages)
        table += u32(cpu) + u64(at) + u64(size)
    mine = option(3, u64(buffer) + b"\0mono\0" + u32(PAGE) + u32(len(cpus(raw))) + table)
    last = section(0, option(8, u32(len(cpus(raw)))) + mine + option(0, u64(0)), False)
    first = section(0, b"".join(option(n, u64(at)) for n, at in places.items()) + option(0, u64(last)), False)
    out[len(data):len(data) + 8] = u64(first)
    return bytes(out)


def imported(data, folder, *options, code=0):
    """-> what was said of these bytes"""
    with open(folder + "/trace.dat", "wb") as file:
        file.write(data)
    return allium("sys", "import", folder + "/trace.dat", "-o", folder + "/dat.allium", "--force", *options,
                  code=code).stderr.decode()


def each_version():
    """All cells are those of the pages' own folder, and the stacks."""
    with tap.private_dir() as folder:
        raw, _, _ = recorded(folder, "--stacks", "kernel", "--events", "slab,page,extfrag,percpu",
                             command=["unshare", "-m", *PIPES])
        with open(raw + "/allium") as file:
            about = file.read()
        with open(raw + "/allium", "w") as file: # a file of trace-cmd has no rows of allium itself
            file.write(about[:about.index("own_tid")])
        os.unlink(raw + "/groups")  # ... nor processes, nor names of migrate types
        shutil.rmtree(raw + "/state")
        want, out = folder + "/want.allium", folder + "/dat.allium"
        said = allium("sys", "import", raw, "-o", want).stderr.decode()
        for name, data in (("6", version6(raw)), ("6, of an instance", version6(raw, instance=True)),
                           ("7", version7(raw)), ("7 by zlib", version7(raw, "zlib")),
                           ("7 by zstd", version7(raw, "zstd"))):
            again = imported(data, folder)
            equal(events_of(again), events_of(said), "events of version " + name)
            equal("lacks" in again, "lacks" in said, "whether version %s lacks something" % name)
            for table in "sys_kmem", "sys_kpages":
                rows = cells(out, "SELECT * FROM " + table)
                check(len(rows) > 10, table, rows)
                equal(rows, cells(want, "SELECT * FROM " + table), "cells of version %s in %s" % (name, table))
            equal(folded(out, "live"), folded(want, "live"), "stacks of version " + name)
        sum_of = "SELECT sum(allocated_bytes), sum(live_bytes) FROM sys_kpages"
        before = [int(n) for n in re.findall(r"(\d+)\)", cells(out, sum_of)[0])]
        large = version6(raw)
        imported(large[:len(MAGIC) + 4] + u32(65536) + large[len(MAGIC) + 8:], folder)
        after = [int(n) for n in re.findall(r"(\d+)\)", cells(out, sum_of)[0])]
        equal(after, [16 * n for n in before], "bytes in pages of 64 KiB")
        again = allium("sys", "import", "-", "-o", out, "--force", input=version7(raw, "zstd")).stderr.decode()
        equal(events_of(again), events_of(said), "events from a pipe")


def trace_cmd():
    """What trace-cmd makes of these pages, and its text of that."""
    if not shutil.which("trace-cmd"):
        return
    with tap.private_dir() as folder:
        raw, _, said = recorded(folder, "--events", "slab,page,extfrag,percpu", "--settle", "0s",
                                command=["unshare", "-m", *PIPES])  # of its file all events count
        # trace-cmd mounts tracefs, whatever it does: in mounts of its own
        script = 'mount -t tracefs none /sys/kernel/tracing 2>/dev/null; cd "$1" && trace-cmd restore -c -o head.dat &&' \
            'trace-cmd restore -i head.dat -o 7.dat raw/per_cpu/cpu*/trace_pipe_raw'
        tap.succeed([*tap.unshare(), "sh", "-c", script, "sh", folder])
        files = ["7.dat"]
        for name, options in (("6.dat", ["--file-version", "6"]),
                              ("zstd.dat", ["--file-version", "7", "--compression", "zstd"])):
            tap.succeed([*tap.unshare(), "trace-cmd", "convert", "-i", folder + "/7.dat", "-o", folder + "/" + name,
                         *options])
            files.append(name)
        text = tap.succeed([*tap.unshare(), "trace-cmd", "report", "-i", folder + "/7.dat"]).stdout
        allium("sys", "import", "-", "-o", folder + "/text.allium", input=text)
        for name in files:
            again = imported(read(folder + "/" + name), folder)
            equal(events_of(again), events_of(said), "events of " + name)
            # trace-cmd says that the clock is "local": which free is whose is another question
            for query in MADE, PAGES:
                rows = cells(folder + "/dat.allium", query)
                check(len(rows) > 5, query, rows)
                want = cells(folder + "/text.allium", query)
                equal([row for row in rows if row not in want], [row for row in want if row not in rows],
                      "cells of " + name)


def clocks():
    """The clock of one CPU is 50 us behind that of the other: pairs are put right if it is each CPU's own."""
    with tap.private_dir() as folder:
        raw, _, _ = recorded(folder, command=[sys.executable, "-S", "-c", MESSAGES])
        name = raw + "/per_cpu/cpu1/trace_pipe_raw"
        pages = bytearray(read(name))
        for at in range(0, len(pages), PAGE):
            pages[at:at + 8] = u64(struct.unpack_from("<Q", pages, at)[0] - 50000)
        with open(name, "wb") as file:
            file.write(pages)
        said = imported(version6(raw, b"[local]"), folder)
        pairs = re.search(r"([\d,]+) pairs of events were put", said)
        check(pairs and int(pairs.group(1).replace(",", "")) > 100, said)
        check("of events were put" not in imported(version6(raw), folder), "pairs of one clock")


def damaged():
    """Files that are cut or foreign: one line."""
    with tap.private_dir() as folder:
        raw, _, _ = recorded(folder)
        six, seven = version6(raw), version7(raw, "zstd")
        for data, words in (
            (six[:len(six) - PAGE * 3 - 100], "is damaged or cut"),
            (six[:20000], "is damaged or cut"),
            (six[:40], "damaged or cut"),
            (seven[:len(seven) // 2], "is damaged or cut"),
            (MAGIC + b"6\0\1\x08" + six[14:], "is of a big-endian machine"),
            (MAGIC + b"6\0\0\x04" + six[14:], "is of a 32-bit machine"),
            (MAGIC + b"5\0\0\x08" + six[14:], "is of version 5"),
            (MAGIC + b"8\0\0\x08" + six[14:], "is of version 8"),
            (six.replace(b"Linux a 6 x86_64", b"Linux a 6 mips64"), "is of a machine of mips64"),
            (seven.replace(b"zstd\0", b"lzma\0", 1), "is packed with lzma"),
            (seven.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"), "is damaged or cut"),
            (six.replace(b"flyrecord", b"latency  "), "is of a latency tracer"),
        ):
            said = imported(data, folder, code=1)
            check(words in said and said.count("\n") == 1, words, said)
        said = imported(version6(raw, b"[counter]"), folder)
        check("ticks of a clock" in said, said)


lib.main([
    ("each version of trace-cmd's files, cell by cell", each_version),
    ("files that trace-cmd made", trace_cmd),
    ("clocks of CPUs that differ", clocks),
    ("trace-cmd's files that are damaged or foreign", damaged),
])
