# SPDX-License-Identifier: BSD-2-Clause
"""Builds programs as users of <allium/malloc_hooks.h> would, and reads their accounts."""
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import built, equal, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
HOOKS = ["-I", INCLUDE, "-include", "allium/malloc_hooks.h"]
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-tags-")


def linked():
    """Words for the linker."""
    library = built("TEST_TAGS_LIBRARY")
    return [library, "-Wl,-rpath," + os.path.dirname(library), "-lpthread", "-ldl"]


def scratch(name, text=None):
    """Path of a file of ours, with that text."""
    path = os.path.join(SCRATCH.name, name)
    if text is not None:
        with open(path, "w") as file:
            file.write(text)
    return path


def quiet(command, **how):
    """A compiler that has nothing to say."""
    done = succeed(command, **how)
    equal((done.stdout + done.stderr).decode(), "", "what it says")


def program(compiler, options, source, hooks=True, words=()):
    """Builds a source of this folder, or with a path, once; -> the program."""
    out = scratch(
        "-".join([os.path.basename(source), compiler] + [o.strip("-") for o in options] + ["" if hooks else "plain"])
    )
    if not os.path.exists(out):
        quiet([
            compiler, "-g", *options, *STRICT, *(HOOKS if hooks else []),
            os.path.join(HERE, source), "-o", out, *words, *(linked() if hooks else ["-lpthread", "-ldl"])
        ])
    return out


def accounts(ledgers, pid, *options):
    """-> (rows, what stands on stderr)"""
    done = succeed([built("ALLIUM"), "tags", str(pid), "--json", "--top", "0", *options],
                   env=dict(os.environ, ALLIUM_DIR=ledgers))
    return json.loads(done.stdout)["rows"], done.stderr.decode()


def by_function(rows):
    """{function: (allocations, bytes, live objects, live bytes)}"""
    sums = {}
    for row in rows:
        have = sums.get(row["function"], (0, 0, 0, 0))
        numbers = (row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"])
        sums[row["function"]] = tuple(a + b for a, b in zip(have, numbers))
    return sums
