# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others, from Debian's sources, built with <allium/malloc_hooks.h> and with no change to them, by two
compilers at two levels: the compiler has nothing new to say, what they do and what their own tests find is what it is
without tags, and `allium tags` has of them what an independent count below has (counts.c).

A case is a program, a compiler and a level: meson test "tags real git" --test-args="'git, clang -O2'". How they are
built stands in real_builds.py, what they are put to in real_trials.py.
"""
import os
import re
import signal
import struct
import sys

sys.dont_write_bytecode = True
from building import HERE, accounts, scratch, tap
from real_builds import PROGRAMS, Build, Variant, digest
from real_trials import LIMIT, TRIALS
from tap import Failed, check, equal, private_dir, succeed


def counter():
    """The library that counts."""
    path = scratch("counts.so")
    if not os.path.exists(path):
        succeed([
            "gcc", "-O1", "-fno-optimize-sibling-calls", "-fno-builtin", "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall",
            "-Wextra", "-Werror", HERE + "/counts.c", "-o", path, "-ldl"
        ])
    return path


def progress(name, *words):
    print("# %s: %s" % (name, " ".join(map(str, words))), flush=True)


def works(build, env):
    with private_dir("/tmp") as here:
        return TRIALS[build.program][0](build.folder, env, here)


def tests(build, env):
    with private_dir("/tmp") as here:
        return TRIALS[build.program][1](build.folder, env, here)


def bare(program, compiler):
    """The build without tags; kept, as nothing of ours is in it."""
    return Build(program, Variant(compiler, "-O2" if compiler == "gcc" else "-O0", False))


def found_by(build):
    """What a build without tags does, and what its own tests find: kept, too."""
    found = []
    for what, do in ("works", works), ("tests", tests):
        kept = "%s/allium-%s.%s" % (build.folder, what, digest([HERE + "/real_trials.py"]))
        if not os.path.exists(kept):
            progress(build.name, what)
            text = do(build, dict(os.environ))
            with open(kept, "w") as file:
                file.write(text)
        with open(kept, newline="") as file:
            found.append(file.read())
    return found


def differing(have, want):
    """The lines that are not the same in two texts."""
    a, b = have.splitlines(), want.splitlines()
    return [line for line in a if line not in b][:20], [line for line in b if line not in a][:20]


# What allium-tags(1) says that clang warns of: redis declares malloc() and its kin deprecated, behind our inline ones.
SAID_IN_MANUAL = re.compile(r"server\.h: attribute declaration must precede definition \[-Wignored-attributes\]")
FIGURES = ("allocations", "allocated_bytes", "live_objects", "live_bytes")


def summed(rows):
    return [sum(row[key] for row in rows) for key in FIGURES]


def sound(name, rows, said):
    """What is true of the accounts of any program."""
    equal([row for row in rows if row["live_objects"] < 0 or row["live_bytes"] < 0], [], name + ": below zero")
    equal(
        [row for row in rows if row["live_objects"] > row["allocations"] or row["live_bytes"] > row["allocated_bytes"]],
        [], name + ": more live than made")
    check("damaged" not in said and "followed" not in said, name, said)


def exact(build, ledgers, counts):
    """Each process that the program's files were: its accounts against the count below. -> all rows"""
    every, compared, unsure = [], 0, 0
    for pid in sorted(map(int, os.listdir(counts))):
        with open("%s/%d" % (counts, pid), "rb") as file:
            data = file.read()
        *want, doubtful, doubtful_bytes = struct.unpack("6q", data[:48])
        if not data[48:].split(b"\0")[0].decode().startswith(build.folder) or not want[0] or compared >= 30:
            continue
        rows, said = accounts(ledgers, pid)
        sound(build.name, rows, said)
        have = summed([row for row in rows if row["class"] != "mmap"])
        equal(have[:2], want[:2], "%s: allocations and their bytes, process %d" % (build.name, pid))
        check(want[2] - doubtful <= have[2] <= want[2] and want[3] - doubtful_bytes <= have[3] <= want[3], build.name,
              "live, and their bytes: have", have[2:], "want", want[2:], "of which perhaps", doubtful, doubtful_bytes)
        every, compared, unsure = every + rows, compared + 1, unsure + doubtful
    check(compared, "no process was compared")
    progress(build.name, "%d processes compared, %d allocations, %d objects of which it is not sure whether they live" %
             (compared, sum(row["allocations"] for row in every), unsure))
    return every


def counted(build, **env):
    """-> what it does, and its rows"""
    progress(build.name, "works")
    with private_dir() as ledgers, private_dir("/tmp") as counts:
        out = works(build, dict(os.environ, ALLIUM_DIR=ledgers, LD_PRELOAD=counter(), COUNTS_DIR=counts, **env))
        return out, exact(build, ledgers, counts)


def planted(program):
    """One allocation that the count below leaves out."""
    try:
        counted(Build(program, Variant("gcc", "-O2")), COUNTS_SKIP="1")
    except Failed as error:
        check("allocations and their bytes" in str(error), error)
    else:
        check(False, "nothing was found")


def case(program, compiler, level):
    def test():
        reference, build = bare(program, compiler), Build(program, Variant(compiler, level))
        signal.alarm(LIMIT)
        bare_works, bare_tests = found_by(reference)
        new = sorted(words for words in build.warnings() - reference.warnings()
                     if not (compiler == "clang" and SAID_IN_MANUAL.fullmatch(words)))
        equal(new, [], build.name + ": new warnings")

        out, rows = counted(build)
        check(out == bare_works, build.name, "does other things than without tags:", *differing(out, bare_works))
        own = [row for row in rows if row["module"].startswith(build.folder)]
        named = [row for row in own if row["place"] and ":" in row["place"]]
        check(own and len(named) >= len(own) * 0.9, build.name, "rows:", len(own), "of which have a line:", len(named))
        files = {os.path.basename(row["place"].rsplit(":", 1)[0]) for row in named}
        equal([name for name in TRIALS[program][2] if name not in files], [], "files without a row")

        progress(build.name, "its own tests")
        with private_dir() as ledgers:
            out = tests(build, dict(os.environ, ALLIUM_DIR=ledgers))
            check(out == bare_tests, build.name, "tests find other things than without tags:",
                  *differing(out, bare_tests))
            files = sorted((os.stat(entry.path).st_blocks, entry.name) for entry in os.scandir(ledgers)
                           if entry.name.endswith(".tags"))
            for _, name in files[-5:]:
                sound(build.name, *accounts(ledgers, name.split("-")[0]))
        signal.alarm(0)

    def bounded():
        try:
            test()
        finally:
            signal.alarm(0)
    return "%s, %s %s" % (program, compiler, level), bounded


def too_long(*_):
    raise Failed("took longer than %d s" % LIMIT)


signal.signal(signal.SIGALRM, too_long)
LEVELS = {"redis with its jemalloc": ["-O2"]}
# of what is left tap.main() picks
wanted = [sys.argv.pop(1)[:-1]] if sys.argv[1:] and sys.argv[1].endswith(",") else list(PROGRAMS)
tap.main([
    case(program, compiler, level) for program in wanted for compiler in ("gcc", "clang")
    for level in LEVELS.get(program, ["-O0", "-O2"])
] + [("%s: a count that is left out is found" % program, lambda program=program: planted(program))
     for program in wanted if program in ("bash", "ninja")])
