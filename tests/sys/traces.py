# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `allium sys import` share."""
import json
import re
import shutil
import sys

import tap
from lib import built, equal

PIPES = [sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(400)]"]


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def cells(path, query="SELECT * FROM sys_kmem"):
    """-> the rows of a query, without their times"""
    rows = json.loads(allium("sql", "--json", path, query).stdout)["rows"]
    return sorted(repr(sorted((key, value) for key, value in row.items() if key != "taken_ns")) for row in rows)


def folded(path, metric):
    return sorted(allium("export", path, "--folded", metric).stdout.decode().splitlines())


def events_of(said):
    return int(re.search(r"([\d,]+) events?\b", said).group(1).replace(",", ""))


def recorded(folder, *options, command=PIPES):
    """-> (the folder of pages, the recording, what was said)"""
    raw, out = folder + "/raw", folder + "/live.allium"
    shutil.rmtree(raw, ignore_errors=True)
    said = allium("sys", "record", "--raw", raw, "-o", out, "--force", *options, "--", *command).stderr.decode()
    return raw, out, said
