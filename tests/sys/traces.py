# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `allium sys import` share."""
import json
import re
import shutil
import struct
import sys

import tap
from lib import built, equal

PIPES = [sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(400)]"]
PAGE = 4096
CONTEXT = 0x08 | 0x10 | 0x40  # common_flags: interrupt, softirq, NMI


def records(page):
    """-> (offset, bytes) of the records in a page; of the layout of x86-64"""
    at, end = 16, 16 + (int.from_bytes(page[8:12], "little") & 0xfffff)
    while at + 4 <= end:
        head, = struct.unpack_from("<I", page, at)
        kind, delta = head & 31, head >> 5
        if kind == 29 and not delta:
            break
        if kind in (30, 31):
            at += 8
        elif kind == 0 or kind == 29:
            size, = struct.unpack_from("<I", page, at + 4)
            if kind == 0:
                yield at + 8, size - 4
            at += 4 + size
        else:
            yield at + 4, 4 * kind
            at += 4 + 4 * kind


class Repeats:
    """Finds the second of the two events that the kernel has of a large object, by the rule of allium-kernel(7)."""

    def __init__(self):
        self.latest = {}  # CPU -> (thread, address, sizes, call)

    def first(self, cpu, thread, address, call, sizes, is_kmalloc=True):
        """-> the call of the first event if this one is the second; else None. Sizes: requested and allocated bytes, and
        the flags; None: a free"""
        before, call_before = None, None
        if cpu in self.latest and self.latest[cpu][0] == thread:
            *before, call_before = self.latest.pop(cpu)
        if sizes is None:
            self.latest = {at: latest for at, latest in self.latest.items() if latest[1] != address}
        elif before == [thread, address, sizes] and call != call_before:
            return call_before
        elif is_kmalloc and sizes[1] > 8192:
            self.latest[cpu] = (thread, address, sizes, call)
        return None

    def first_of_text(self, cpu, thread, flags, address, call, rest, is_kmalloc):
        sizes = re.search(r"bytes_req=(\d+) bytes_alloc=(\d+) gfp_flags=(\S+)", rest)
        sizes = sizes and (int(sizes[1]), int(sizes[2]), sizes[3])
        return self.first(cpu, (thread, flags[2:3]), address, call, sizes, is_kmalloc)

    def first_of_record(self, cpu, page, record, text):
        """`text`: of the file `format`."""
        def value(name, form):
            at = re.search(r" %s;\toffset:(\d+);" % name, text)
            return at and struct.unpack_from(form, page, record + int(at[1]))[0]
        flags, _, pid = struct.unpack_from("<BBi", page, record + 2)
        sizes = value("bytes_req", "<Q"), value("bytes_alloc", "<Q"), value("gfp_flags", "<Q")
        return self.first(cpu, (pid, flags & CONTEXT), value("ptr", "<Q"), value("call_site", "<Q"),
                          None if sizes[1] is None else sizes, "name: kmalloc" in text)


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def cells(path, query="SELECT * FROM sys_kmem"):
    """-> the rows of a query, without their times"""
    rows = json.loads(allium("sql", "--json", path, query).stdout)["rows"]
    return sorted(repr(sorted((key, value) for key, value in row.items() if key != "taken_ns")) for row in rows)


def folded(path, metric):
    # of objects: imported traces have no pages
    return sorted(allium("export", path, "--folded", metric, "--where", "comm:kernel").stdout.decode().splitlines())


def events_of(said):
    return int(re.search(r"([\d,]+) events?\b", said).group(1).replace(",", ""))


def recorded(folder, *options, command=PIPES):
    """-> (the folder of pages, the recording, what was said). The default of --settle is looked at in record.py."""
    options = options if "--settle" in options else ("--settle", "100ms", *options)
    raw, out = folder + "/raw", folder + "/live.allium"
    shutil.rmtree(raw, ignore_errors=True)
    said = allium("sys", "record", "--raw", raw, "-o", out, "--force", *options, "--", *command).stderr.decode()
    return raw, out, said
