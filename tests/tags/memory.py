# SPDX-License-Identifier: BSD-2-Clause
"""What tags take of memory: for each tag, thread and live object, over the same program without them."""
import ctypes.util
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import built, check, equal, pick, private_dir, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-memory-")


def program(name, tags=True):
    out = os.path.join(SCRATCH.name, name + ("" if tags else "-bare"))
    if not os.path.exists(out):
        hooks = ["-include", "allium/malloc_hooks.h"] if tags and name != "many" else []
        succeed([
            "gcc", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, *hooks,
            os.path.join(HERE, name + ".c"), "-o", out, "-lpthread",
            *([LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)] if tags else [])
        ])
    return out


def backed(ledgers):
    """Bytes of memory that the ledgers have, whoever touched them."""
    return sum(os.stat(os.path.join(ledgers, name)).st_blocks * 512 for name in os.listdir(ledgers))


def rows_of(ledgers, pid):
    done = succeed([built("ALLIUM"), "tags", str(pid), "--json", "--top", "0"],
                   env=dict(os.environ, ALLIUM_DIR=ledgers))
    equal(done.stderr, b"", "losses")
    return json.loads(done.stdout)["rows"]


def ran(ledgers, *words, preload=""):
    p = subprocess.Popen(words, env=dict(os.environ, ALLIUM_DIR=ledgers, LD_PRELOAD=preload), stdout=subprocess.PIPE)
    out, _ = p.communicate(timeout=tap.TIMEOUT)
    equal(p.returncode, 0, "its code")
    return p.pid, [int(word) for word in out.split()]


def objects(count, size, allocator=None):
    """At most 24 bytes for an object; the sums are exact."""
    def test():
        preload = ctypes.util.find_library(allocator) if allocator else ""
        check(preload is not None, allocator, "is missing")
        with private_dir() as ledgers:
            _, (bare,) = ran(ledgers, program("memory", False), str(count), str(size), preload=preload)
            pid, (tagged,) = ran(ledgers, program("memory"), str(count), str(size), preload=preload)
            each = (tagged + backed(ledgers) - bare) / count
            row, = (row for row in rows_of(ledgers, pid) if row["function"] == "make")
            equal((row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"]),
                  (count, count * size, count - count // 2, (count - count // 2) * size), "sums")
            print(
                "# %.2f bytes for each of %d objects of %d, ledger %d KiB" % (each, count, size, backed(ledgers) >> 10))
            check(each <= 24, each, "bytes for an object")
    return test


def tags(count, threads, most):
    """All touched by all threads: in the process over one that touches none, and in the ledger."""
    def test():
        with private_dir() as ledgers:
            pid, (before, after) = ran(ledgers, program("many"), str(count), str(threads), "account")
            # resident pages of the ledger are the process's and the file's: they count once
            rows = rows_of(ledgers, pid)
            equal((len(rows), {row["allocations"] for row in rows}), (count, {threads}), "rows")
            with private_dir() as others:
                _, (idle_before, idle_after) = ran(others, program("many"), "0", str(threads), "account")
                idle = backed(others)
            grown = after - before - (idle_after - idle_before)
            total = max(grown, 0) + idle
            print("# %d tags, %d threads: %d KiB more resident, ledger %d KiB; of a program that uses none %d KiB"
                  % (count, threads, grown >> 10, backed(ledgers) >> 10, idle >> 10))
            check(total <= most << 20, total, "bytes, more than", most, "MiB")
    return test


def untouched():
    """A tag that is never reached has its descriptor, and no more."""
    with private_dir() as ledgers:
        pid, _ = ran(ledgers, program("many"), "0", "1", "account")
        few = backed(ledgers)
        pid, _ = ran(ledgers, program("many"), "1", "1", "account")
        equal(
            backed(ledgers) <= 2 * few + 8192, True,
            "the ledger of 200,000 tags of which one is used: %d, %d" % (backed(ledgers), few))
        text = succeed(["size", "-A", program("many")]).stdout.decode()
        section = int(re.search(r"^allium_tags\s+(\d+)", text, re.M).group(1))
        equal(section, 200_000 * 32, "bytes of descriptors")


TESTS = [
    ("a million live objects of 64 bytes", objects(1_000_000, 64)),
    ("10,000 tags, all touched by 8 threads", tags(10_000, 8, 8)),
    ("10,000 tags, all touched by 100 threads", tags(10_000, 100, 8)),
    ("tags that are never touched", untouched),
]
if tap.LONG:
    TESTS += [
        ("ten million live objects of 8 bytes", objects(10_000_000, 8)),
        ("ten million live objects of 8 bytes, on jemalloc", objects(10_000_000, 8, "jemalloc")),
        ("ten million live objects of 8 bytes, on tcmalloc", objects(10_000_000, 8, "tcmalloc_minimal")),
    ]
tap.main(TESTS)
