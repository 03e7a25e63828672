# SPDX-License-Identifier: BSD-2-Clause
"""Rows of tags are the same whatever linker made the program, and however: compilers, linkers, --gc-sections, LTO, debug files."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import tap
from tap import LONG, built, check, equal, private_dir, run, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-linkers-")
SOURCES = ["places.cc", "places_other.cc"]
LINKERS = ["bfd", "gold", "lld"]
GC = ["-Wl,--gc-sections"]
# Of each place: its class and name, and what it holds at the end: allocations, bytes, live objects, live bytes. The arena's are
# accounts of bytes: two that came, one that went.
PLACES = {
    "ordinary": ("malloc", "malloc", 1, 100, 1, 100),
    "several": ("malloc", "malloc", 5, 57, 4, 45),
    "twin": ("malloc", "strdup", 2, 13, 2, 13),
    "other": ("malloc", "malloc", 1, 9, 0, 0),
    "arena": ("arena", "pages", 2, 12288, 1, 8192),
}


def lines_of_sources():
    """{"places.cc:14": "ordinary"}, from the comments that lines of places end with."""
    lines = {}
    for name in ["places.h", *SOURCES]:
        with open(os.path.join(HERE, name)) as file:
            for number, line in enumerate(file, 1):
                if "; // " in line:
                    lines["%s:%d" % (name, number)] = line.split("; // ")[1].split()[0]
    return lines


LINES = lines_of_sources()


def objects(compiler, options):
    """The two units, compiled as a user would, without a word from the compiler."""
    made = []
    for source in SOURCES:
        out = os.path.join(SCRATCH.name, "%s%s.%s.o" % (compiler, "".join(options), source))
        if not os.path.exists(out):
            done = succeed([compiler, "-g", *options, "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-include", "allium/malloc_hooks.h",
                            "-c", os.path.join(HERE, source), "-o", out])
            equal(done.stderr.decode(), "", "what the compiler says")
        made.append(out)
    return made


def linked(compiler, options, linker, how):
    out = os.path.join(SCRATCH.name, "linked")
    succeed([compiler, *options, *objects(compiler, options), "-o", out, "-fuse-ld=" + linker, *how, LIBRARY,
             "-Wl,-rpath," + os.path.dirname(LIBRARY)])
    return out


def named(rows):
    return {LINES.get(os.path.basename(row["place"] or ""), row["function"] + " " + str(row["place"])): row for row in rows}


def running(program):
    """Rows of a run of it."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        p = subprocess.Popen([program], env=env, stdout=subprocess.DEVNULL)
        equal(p.wait(60), 0, "its code")
        done = succeed([built("ALLIUM"), "tags", str(p.pid), "--json", "--top", "0"], env=env)
        equal(done.stderr, b"", "losses")
        return json.loads(done.stdout)["rows"]


def compare(program, what):
    keys = ("class", "name", "allocations", "allocated_bytes", "live_objects", "live_bytes")
    rows = named(running(program))
    equal({place: tuple(row[key] for key in keys) for place, row in rows.items()}, PLACES, what)


def matrix(compiler, linker, levels, hows):
    """Programs of that compiler and linker; with --gc-sections, code that nobody calls goes, and its tags with it."""
    def test():
        for level in levels:
            for how in hows:
                # what nobody calls refers to what is not there: it links only if nothing keeps it
                options = [level] + (["-ffunction-sections", "-fdata-sections", "-DUNUSED_CODE"] if how else [])
                compare(linked(compiler, options, linker, how), (level, how))
    return test


def whole_program():
    """Link-time optimization, where this machine's compilers and linkers can do it together."""
    tried = 0
    for compiler, linker in ("g++", "bfd"), ("g++", "gold"), ("clang++", "lld"), ("clang++", "bfd"), ("clang++", "gold"):
        if compiler == "clang++" and linker != "lld" and not plugin_of_clang():
            continue
        tried += 1
        for how in [], GC:
            options = ["-O2", "-flto"] + (["-ffunction-sections", "-DUNUSED_CODE"] if how else [])
            compare(linked(compiler, options, linker, how), (compiler, linker, how))
    check(tried >= 3, "tried", tried)


def plugin_of_clang():
    found = succeed(["clang", "-print-file-name=LLVMgold.so"]).stdout.decode().strip()
    return os.path.exists(found)


def alike(compiler):
    """Compilers make one of functions, and of branches, that have the same code: tagged ones stay apart."""
    def test():
        with open(os.path.join(HERE, "alike.c")) as file:
            want = {number: int(line.split("; // ")[1]) for number, line in enumerate(file, 1) if "; // " in line}
        equal(sorted(want.values()), [1, 2, 3, 4, 5, 6], "the list")
        for options in ["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-flto"], ["-O2", "-fno-pie", "-no-pie"], ["-O2", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all"], \
                ["-O2", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all"]:
            if compiler == "clang" and options[-1] == "-flto":
                options = options + ["-fuse-ld=lld"]
            program = os.path.join(SCRATCH.name, "alike")
            succeed([compiler, "-g", *options, "-I", INCLUDE, "-include", "allium/malloc_hooks.h", os.path.join(HERE, "alike.c"), "-o", program, LIBRARY,
                     "-Wl,-rpath," + os.path.dirname(LIBRARY)])
            equal({int(row["place"].split(":")[1]): row["allocations"] for row in running(program)}, want, options)
    return test


def static_ones():
    """Without a loader there is no liballium.so: the linker says so."""
    for linker in LINKERS:
        for how in "-static", "-static-pie":
            done = run(["g++", "-O2", *objects("g++", ["-O2"]), "-o", os.path.join(SCRATCH.name, "static"), "-fuse-ld=" + linker, how, LIBRARY])
            check(done.returncode, linker, how, "made a program")
            check(re.search(rb"static link|-static|dynamic object|no-dynamic-linker", done.stderr), linker, how, "->", done.stderr[-300:])


usual = [("g++", "bfd", ["-O2"], [[], GC]), ("g++", "gold", ["-O0"], [GC]), ("g++", "lld", ["-O2"], [GC]), ("clang++", "bfd", ["-O0"], [GC]),
         ("clang++", "gold", ["-O2"], [GC]), ("clang++", "lld", ["-O2"], [[], GC])]
every = [(compiler, linker, ["-O0", "-O2"], [[], GC]) for compiler in ("g++", "clang++") for linker in LINKERS]
tap.main([("%s, %s: rows are those of the list" % row[:2], matrix(*row)) for row in (every if LONG else usual)] + [
    ("link-time optimization keeps the rows", whole_program),
    ("gcc: places with the same code are rows of their own", alike("gcc")),
    ("clang: places with the same code are rows of their own", alike("clang")),
    ("static programs cannot be linked", static_ones),
])
