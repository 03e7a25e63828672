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
    """-> (the folder of pages, the recording, what was said)"""
    raw, out = folder + "/raw", folder + "/live.allium"
    shutil.rmtree(raw, ignore_errors=True)
    said = allium("sys", "record", "--raw", raw, "-o", out, "--force", *options, "--", *command).stderr.decode()
    return raw, out, said
