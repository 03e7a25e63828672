# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys record --raw` and `allium sys import` of its folder: the accounts are those of the live run, and what a
naive reader of the pages, made here, finds in them.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal
from traces import PAGE, Repeats, allium, cells, events_of, folded, recorded, records

def field(text, name):
    """-> (offset, size) of a field in a format"""
    return tuple(map(int, re.search(r" %s;\toffset:(\d+);\tsize:(\d+);" % name, text).groups()))


def read_events(raw):
    """-> (records that the kernel says were read, records in the pages)"""
    counted = pages = 0
    for path in glob.glob(raw + "/per_cpu/*/stats"):
        with open(path) as file:
            found = dict(re.findall(r"^(entries|overrun|dropped events|read events): (\d+)$", file.read(), re.M))
        equal([int(found[key]) for key in ("entries", "overrun", "dropped events")], [0, 0, 0], "what was not read")
        counted += int(found["read events"])
    for path in glob.glob(raw + "/per_cpu/*/trace_pipe_raw"):
        with open(path, "rb") as file:
            data = file.read()
        pages += sum(len(list(records(data[begin:begin + PAGE]))) for begin in range(0, len(data), PAGE))
    return counted, pages


def naive(raw):
    """-> (events, allocations of objects, their bytes) in the pages"""
    texts, repeats = {}, Repeats()
    for path in glob.glob(raw + "/events/kmem/k*/format"): # not those of pages
        with open(path) as file:
            text = file.read()
        texts[int(re.search(r"^ID: (\d+)", text, re.M).group(1))] = text
    events = allocations = total = 0
    for path in glob.glob(raw + "/per_cpu/*/trace_pipe_raw"):
        with open(path, "rb") as file:
            data = file.read()
        for begin in range(0, len(data), PAGE):
            page = data[begin:begin + PAGE]
            for at, _ in records(page):
                text = texts.get(int.from_bytes(page[at:at + 2], "little"))
                events += text is not None
                if not text or repeats.first_of_record(path, page, at, text) or "bytes_alloc;" not in text:
                    continue
                address, size = field(text, "ptr")[0], field(text, "bytes_alloc")[0]
                if struct.unpack_from("<Q", page, at + address)[0] > 16:
                    allocations += 1
                    total += struct.unpack_from("<Q", page, at + size)[0]
    return events, allocations, total


def settled(said):
    return re.search(r" of these, ([\d,]+ objects? of .*) after the end", said).group(1)


def lasting(lines):
    """Of stacks, those without code that may have been unloaded between the recording and its copy of the symbols."""
    return {line for line in lines if "[unknown]" not in line and "[bpf]" not in line}


TABLES = ("sys_kmem", "sys_kmem_process", "sys_kmem_pair", "sys_kmem_sizes", "sys_kpages", "sys_kpages_process",
          "sys_frag_sites", "sys_state")
# Percpu memory, blocks of several orders, a program with another name, a process that others free for.
WORK = ["sh", "-c", 'unshare -m true; "$0" -S -c "import mmap, os; kept = [os.pipe() for _ in range(400)]; '
        'm = mmap.mmap(-1, 8 << 20); m.write(bytes(8 << 20)); os.fork() or os._exit(0); os.wait()"; find /usr/lib -xdev',
        sys.executable]


def shown(path, tool, *words):
    return allium("sys", tool, "--from", path, "--json", "--top", "0", *words).stdout


def whole():
    """All events and what the kernel's files say: the tables of the recording, cell by cell, and what is made of them."""
    with tap.private_dir() as folder:
        raw, live, said = recorded(folder, "--events", "slab,page,extfrag,percpu", "--buffer", "64M",
                                   "--interval", "1s", command=WORK)
        out = folder + "/import.allium"
        allium("sys", "import", raw, "-o", out)
        for table in TABLES:
            rows = cells(out, "SELECT * FROM " + table)
            check(rows, table)
            want = cells(live, "SELECT * FROM " + table)
            equal(sorted(set(rows) - set(want)), sorted(set(want) - set(rows)), "cells of " + table)
            equal(rows, want, "all cells of " + table)
        check(any("(percpu)" in row for row in cells(out)), "percpu memory")
        for tool, part in (("kmem", "process"), ("kmem", "cgroup"), ("kmem", "comm"), ("kpages", "order"),
                           ("kpages", "type"), ("kpages", "process"), ("kpages", "cgroup"), ("kpages", "use")):
            have, want = ([json.loads(line) for line in shown(path, tool, "--by", part).splitlines()]
                          for path in (out, live))
            check(len(have) > 2, tool, part, have)
            rows = ["frees" in row and {**row, "time_ns": 0} for row in have]
            equal(rows, ["frees" in row and {**row, "time_ns": 0} for row in want], "%s by %s" % (tool, part))
        check(b'"unmovable"' in shown(out, "kpages", "--by", "type"), "names of migrate types")
        equal(allium("sys", "frag", "--from", out).stdout, allium("sys", "frag", "--from", live).stdout, "sys frag")
        have, want = (allium("sys", "advise", "--from", path).stdout.partition(b"\n")[2] for path in (out, live))
        equal(have, want, "sys advise")
        allium("sys", "import", raw, "-o", out, "--force")
        shutil.rmtree(raw + "/state")  # then types are numbers
        allium("sys", "import", raw, "-o", out, "--force")
        equal({row["migrate_type"] for row in map(json.loads, shown(out, "kpages", "--by", "type").splitlines())
               if row.get("migrate_type")} - set("0123456789"), set(), "types without names")


def lacking():
    """An event of pages less, and one of percpu memory: the tables differ. (On a CPU whose only such event came after the
    end, while objects settle, they do not.)
    """
    with tap.private_dir() as folder:
        raw, _, _ = recorded(folder, "--events", "page,percpu", command=WORK)
        for name, table in (("kmem/mm_page_alloc", "sys_kpages"), ("percpu/percpu_alloc_percpu", "sys_kmem")):
            out, again = folder + "/a.allium", folder + "/b.allium"
            allium("sys", "import", raw, "-o", out, "--force")
            with open(raw + "/events/%s/format" % name) as file:
                without_event.kind = int(re.search(r"^ID: (\d+)", file.read(), re.M).group(1)).to_bytes(2, "little")
            differ = False
            for path in sorted(glob.glob(raw + "/per_cpu/*/trace_pipe_raw")):
                with contextlib.suppress(lib.Failed):
                    changed(raw, os.path.relpath(path, raw), without_event)
                    allium("sys", "import", raw, "-o", again, "--force")
                    differ = differ or cells(out, "SELECT * FROM " + table) != cells(again, "SELECT * FROM " + table)
            check(differ, name)


def as_live():
    """Each cell and each stack is that of the live run."""
    with tap.private_dir() as folder:
        for options in (["--settle", "0s"], ["--stacks", "kernel", "--settle", "0s"], ["--settle", "300ms"]):
            raw, live, said = recorded(folder, "--buffer", "64M", *options)
            out = folder + "/import.allium"
            imported = allium("sys", "import", raw, "-o", out, "--force").stderr.decode()
            equal(events_of(imported), events_of(said), "events")
            check(events_of(said) > 1600 and "nothing\n" in said, said)
            equal(cells(out), cells(live), "cells with %s" % options)
            for metric in ("live", "allocations", "peak"):
                have, want = folded(out, metric), folded(live, metric)
                equal(*(sum(int(line.rpartition(" ")[2]) for line in lines) for lines in (have, want)),
                      "sum of " + metric)
                equal(lasting(have) - lasting(want), lasting(want) - lasting(have), "%s with %s" % (metric, options))
            equal(*read_events(raw), "records that the kernel counted, and those in the pages")
            total, = json.loads(allium("sql", "--json", out, "SELECT sum(allocations) AS allocations, "
                                       "sum(allocated_bytes) AS allocated_bytes FROM sys_kmem").stdout)["rows"]
            have = events_of(imported), total["allocations"], total["allocated_bytes"]
            if options[-1] == "0s":
                equal(have, naive(raw), "naive account")
            else: # pages go on after the end
                check(have < naive(raw), have, naive(raw))
                equal(settled(imported), settled(said), "what was freed after the end")
            for path in glob.glob(raw + "/**/*", recursive=True):
                equal(os.stat(path).st_mode & 0o77, 0, "rights of others on " + path)


def changed(raw, name, change):
    with open(raw + "/" + name, "rb") as file:
        data = file.read()
    with open(raw + "/" + name, "wb") as file:
        file.write(change(data))
    return data


def without_event(data):
    """A free becomes an event that nobody knows."""
    for begin in range(0, len(data), PAGE):
        for at, size in records(data[begin:begin + PAGE]):
            if data[begin + at:begin + at + 2] == without_event.kind and size:
                return data[:begin + at] + b"\xff\x0f" + data[begin + at + 2:]
    return check(False, "no such event")


def damaged():
    """Pages that are cut or shuffled, a folder of another machine, of nothing; one event less."""
    with tap.private_dir() as folder:
        raw, live, said = recorded(folder, "--events", "slab") # so that each page has some
        out, pages = folder + "/import.allium", max(glob.glob(raw + "/per_cpu/*/trace_pipe_raw"), key=os.path.getsize)
        pages = os.path.relpath(pages, raw)
        for name, change, words in (
            (pages, lambda data: data[:-1000], "damaged or cut"),
            (pages, lambda data: data[PAGE * 5:PAGE * 9] + data[:PAGE * 5] + data[PAGE * 9:], "damaged or cut"),
            ("allium", lambda data: data.replace(os.uname().machine.encode(), b"s390x"), "is of a machine of s390x"),
            ("allium", lambda data: data.replace(b"version 1", b"version 9"), "by another version"),
            ("allium", lambda data: b"", "is damaged"),
            ("events/header_page", lambda data: b"\n", "is not known"),
            ("events/kmem/kfree/format", lambda data: data[:50], "is not known"),
        ):
            before = changed(raw, name, change)
            done = allium("sys", "import", raw, "-o", out, code=1)
            check(words in done.stderr.decode() and done.stderr.count(b"\n") == 1, words, done.stderr)
            if name == pages:
                part = allium("sys", "import", raw, "-o", out, "--partial").stderr.decode()
                check(0 < events_of(part) <= events_of(said) and cells(out), "what was read", part, said)
                os.unlink(out)
            changed(raw, name, lambda data: before)
        done = allium("sys", "import", folder, "-o", out, code=1)
        check(b"is not a folder of allium sys record --raw" in done.stderr, done.stderr)
        done = allium("sys", "record", "--raw", raw, "-o", folder + "/x", "--", "true", code=1)
        check(b"cannot make the folder" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        for event in "kfree", "kmem_cache_alloc": # frees of NULL are in no row
            with open(raw + "/events/kmem/%s/format" % event) as file:
                without_event.kind = int(re.search(r"^ID: (\d+)", file.read(), re.M).group(1)).to_bytes(2, "little")
            before = changed(raw, pages, without_event)
            less = allium("sys", "import", raw, "-o", out, "--force").stderr.decode()
            equal(events_of(said) - events_of(less), 1, "events that are missing")
            check(event == "kfree" or cells(out) != cells(live), "a record less, and all rows are as before")
            changed(raw, pages, lambda data: before)


def full():
    """A disk that is full while pages are kept: one line; the recording is whole, the folder is gone."""
    with tap.private_dir() as folder:
        small = folder + "/small"
        os.mkdir(small)
        script = 'mount -t tmpfs -o size=1M none "$1"; shift; exec "$@"'
        done = tap.run([*tap.unshare(), "sh", "-c", script, "sh", small, built("ALLIUM"), "sys", "record", "--quiet",
                        "--raw", small + "/raw", "-o", folder + "/r.allium", "--", "sh", "-c",
                        "for i in $(seq 300); do /bin/true; done"])
        equal(done.returncode, 1, done.stderr.decode())
        check(("the disk of %s/raw is full" % small).encode() in done.stderr and done.stderr.count(b"\n") == 1,
              done.stderr)
        # the last of 300 programs is in it
        whole = json.loads(allium("report", folder + "/r.allium", "--json").stdout)
        check(whole["total"]["allocations"] > 30000 and whole["kernel"]["settle_ns"], whole["total"], whole["kernel"])
        check(b"cut short" not in allium("report", folder + "/r.allium").stdout, "the recording was cut short")
        check(len(cells(folder + "/r.allium")) > 100, "rows")


def full_recording():
    """A disk that is full of the recording itself: one line, also while pages are kept elsewhere."""
    with tap.private_dir() as folder:
        small = folder + "/small"
        os.mkdir(small)
        script = 'mount -t tmpfs -o size=200K none "$1"; shift; exec "$@"'
        done = tap.run([*tap.unshare(), "sh", "-c", script, "sh", small, built("ALLIUM"), "sys", "record", "--quiet",
                        "--settle", "0s", "-o", small + "/r.allium", "--raw", folder + "/raw", "--", "true"])
        equal(done.returncode, 1, done.stderr.decode())
        check(b"the disk is full" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)


def left_behind():
    """No folder before the recording's file, nor without a recording."""
    with tap.private_dir() as folder:
        raw, out = folder + "/raw", folder + "/r.allium"
        nowhere = folder + "/none/r.allium"
        for words, code in ((["-o", nowhere, "--", "true"], 1), (["-o", out, "--", "/none/such"], 127),
                            (["-o", out, "-p", "4194305", "--", "true"], 1)):
            allium("sys", "record", "--raw", raw, *words, code=code)
            equal(os.listdir(folder), [], "what %s left" % words)
        allium("sys", "record", "--quiet", "--settle", "0s", "-o", out, "--", "true")
        with open(out, "rb") as file:
            before = file.read()
        allium("sys", "record", "--raw", raw, "-o", out, "--", "true", code=1) # it exists
        equal(os.listdir(folder), ["r.allium"], "what is there")
        os.mkdir(raw)
        allium("sys", "record", "--force", "--raw", raw, "-o", out, "--", "true", code=1)
        with open(out, "rb") as file:
            equal(file.read() == before, True, "the file is as it was")


lib.main([
    ("kept pages give the accounts of the live run", as_live),
    ("... with pages, percpu memory, processes and the kernel's state", whole),
    ("... and not if an event is dropped", lacking),
    ("a folder of pages that is damaged or foreign", damaged),
    ("no room for the pages", full),
    ("no room for the recording", full_recording),
    ("no folder is left without a recording", left_behind),
])
