# SPDX-License-Identifier: BSD-2-Clause
"""Rows of tags are the same whatever linker made the program, and however: compilers, linkers, --gc-sections, LTO,
debug files.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from building import HOOKS, accounts, scratch
from tap import LONG, built, check, equal, private_dir, run, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-linkers-")
SOURCES = ["places.cc", "places_other.cc"]
LINKERS = ["bfd", "gold", "lld"]
GC = ["-Wl,--gc-sections"]
# Of each place: its class and name, and what it holds at the end: allocations, bytes, live objects, live bytes. The
# arena's are accounts of bytes: two that came, one that went.
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
            done = succeed([
                compiler, "-g", *options, "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-include",
                "allium/malloc_hooks.h", "-c",
                os.path.join(HERE, source), "-o", out
            ])
            equal(done.stderr.decode(), "", "what the compiler says")
        made.append(out)
    return made


def linked(compiler, options, linker, how):
    out = os.path.join(SCRATCH.name, "linked")
    succeed([compiler, *options, *objects(compiler, options), "-o", out, "-fuse-ld=" + linker, *how, LIBRARY,
             "-Wl,-rpath," + os.path.dirname(LIBRARY)])
    return out


def named(rows):
    return {
        LINES.get(os.path.basename(row["place"] or ""), row["function"] + " " + str(row["place"])): row
        for row in rows
    }


def running(program):
    """Rows of a run of it."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        p = subprocess.Popen([program], env=env, stdout=subprocess.DEVNULL)
        equal(p.wait(60), 0, "its code")
        done = succeed([built("ALLIUM"), "tags", str(p.pid), "--json", "--top", "0"], env=env)
        equal(done.stderr, b"", "losses")
        return json.loads(done.stdout)["rows"]


def listed(program, *options, cache=None):
    """What `allium tags` says of it when it does not run, and on stderr."""
    env = dict(os.environ, XDG_CACHE_HOME=cache) if cache else None
    done = succeed([built("ALLIUM"), "tags", program, "--json", *options], env=env)
    return json.loads(done.stdout), done.stderr.decode()


def told(row):
    return tuple(row[key] for key in ("class", "name", "function", "place", "module"))


def compare(program, what):
    """The rows of a run and of the file, and the list."""
    keys = ("class", "name", "allocations", "allocated_bytes", "live_objects", "live_bytes")
    rows = named(running(program))
    equal({place: tuple(row[key] for key in keys) for place, row in rows.items()}, PLACES, what)
    document, said = listed(program)
    equal((said, document["not_understood"]), ("", 0), "what is missing")
    equal(sorted(map(told, document["rows"])), sorted(map(told, rows.values())), (what, "of the file"))
    copies = {place: row["copies"] for place, row in named(document["rows"]).items()}
    for place, most in ("ordinary", 2), ("twin", 4), ("several", 8), ("other", 1), ("arena", 1):
        check(1 <= copies[place] <= most, what, place, "has", copies[place], "copies")


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
    for compiler, linker in (
        ("g++", "bfd"),
        ("g++", "gold"),
        ("clang++", "lld"),
        ("clang++", "bfd"),
        ("clang++", "gold"),
    ):
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
        for options in (["-O0"], ["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-O2", "-flto"], ["-O2", "-fno-pie", "-no-pie"],
                        ["-O2", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all"],
                        ["-O2", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all"]):
            if compiler == "clang" and options[-1] == "-flto":
                options = options + ["-fuse-ld=lld"]
            program = os.path.join(SCRATCH.name, "alike")
            succeed([
                compiler, "-g", *options, "-I", INCLUDE, "-include", "allium/malloc_hooks.h",
                os.path.join(HERE, "alike.c"), "-o", program, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
            ])
            equal({int(row["place"].split(":")[1]): row["allocations"] for row in running(program)}, want, options)
    return test


def debug_files():
    """Where debug information lies elsewhere, is shared, or was stripped."""
    program = linked("g++", ["-O2"], "bfd", [])
    whole = sorted(
        (row["class"], row["name"], row["function"], row["place"], row["copies"]) for row in listed(program)[0]["rows"])
    cut = lambda path, cache: sorted((row["class"], row["name"], row["function"], row["place"], row["copies"])
                                     for row in listed(path, cache=cache)[0]["rows"])
    with tempfile.TemporaryDirectory(dir=SCRATCH.name) as folder:
        at = lambda name: os.path.join(folder, name)
        succeed(["objcopy", "--only-keep-debug", program, at("p.debug")])
        succeed(["objcopy", "--strip-all", "--add-gnu-debuglink=" + at("p.debug"), program, at("split")])
        equal(cut(at("split"), at("cache1")), whole, "with the debug file beside it")
        shutil.copy(program, at("dwz1")), shutil.copy(program, at("dwz2"))
        succeed(["dwz", "-m", at("shared"), at("dwz1"), at("dwz2")])
        equal(cut(at("dwz2"), at("cache2")), whole, "after dwz")
        os.remove(at("p.debug"))
        for option, functions in ("--strip-debug", {"main", "ordinary", "other_unit", "twin",
                                                    "several<char>"}), ("--strip-all", None):
            succeed(["strip", option, "-o", at("stripped"), program])
            document, said = listed(at("stripped"), cache=at("cache" + option))
            rows = [row for row in document["rows"] if row["class"] == "malloc"]
            check(all(row["place"] is None for row in rows), option, rows)
            have = {row["function"] for row in rows}
            check(
                have <= functions | {"several<int>", "several<double>", "main [clone .cold]"} if functions else all(
                    re.fullmatch(r"stripped\+0x[0-9a-f]+", name) for name in have), option, have)
            equal([row["place"].split("/")[-1].split(":")[0] for row in document["rows"] if row["class"] == "arena"],
                  ["places.cc"], "its own words")
            check(
                re.fullmatch(
                    r"allium: \d+ sites have neither file nor line: they have no debug information \(cc -g\), or it was stripped\n",
                    said), said)


def asked():
    """Groups, queries, what is not shown; what cannot be asked of a file."""
    program = linked("g++", ["-O2"], "bfd", [])
    groups = {
        group: listed(program, "--by", group)[0]["rows"]
        for group in ("class", "module", "directory", "file", "function")
    }
    equal([(row["class"], row["sites"]) for row in groups["class"]], [("arena", 1), ("malloc", 4)], "classes")
    equal([(row["module"], row["sites"]) for row in groups["module"]], [(os.path.realpath(program), 5)], "modules")
    equal([row["sites"] for row in groups["directory"]], [5], "directories")
    equal([(os.path.basename(row["place"]), row["sites"]) for row in groups["file"]],
          [("places.cc", 2), ("places.h", 2), ("places_other.cc", 1)], "files")
    equal(
        sorted(
            os.path.basename(row["place"])
            for row in listed(program, "--where", "func:main or file:*/places.h")[0]["rows"]),
        sorted(line for line, name in LINES.items() if name in ("arena", "several", "twin")), "with a query")
    done = succeed([built("ALLIUM"), "tags", program, "--top", "2"])
    lines = done.stdout.decode().splitlines()
    check(
        re.fullmatch(re.escape(program) + r": 5 sites, in \d+ copies", lines[0]) and not lines[1] and len(lines) == 5,
        lines)
    equal(done.stderr.decode(), "allium: 2 of 5 rows are shown; --top 0 shows all\n", "what is said")
    equal([line.split()[-2].split("/")[-1].split(":")[0] for line in lines[3:]], ["places.cc", "places.cc"],
          "the order")
    done = succeed([built("ALLIUM"), "tags", program, "--where", "func:nothing"])
    equal(done.stderr.decode(), "allium: no site matches func:nothing\n", "what is said")
    for words in ["--sort", "live"], ["--allocinfo"], ["--by", "process"]:
        done = run([built("ALLIUM"), "tags", program, *words])
        check(
            done.returncode == 2
            and b"is a program file without counters: leave out " + words[0].encode() in done.stderr, words, done)


ODD_NAMES = ["back\\slash\\n.c", "%b per%%cent %0.c", "{bra|ce}s.c", "it's so.c", 'quo"te.c']


def odd_files(compiler):
    """Files are called anything: what assembly text would take for something else is part of the name."""
    def test():
        text = "#include <allium/tag.h>\n#include <stdlib.h>\nint main(void)\n{\n    %s\n    free(malloc(9));\n    return 0;\n}\n"
        for name in ODD_NAMES:
            # gcc itself writes such a name, unchanged, into a comment beside each statement of that kind in that file
            tag = "" if compiler == "gcc" and '"' in name else 'allium_account(ALLIUM_TAG("arena", "block"), 3);'
            for flags in ["-g", "-O0"], ["-g", "-O2", "-fPIC"], ["-O1"], ["-O2", "-flto", "-g0"]:
                source, program = scratch(name, text % tag), scratch("odd")
                succeed([
                    compiler, *flags, *HOOKS, source, "-o", program, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
                ])
                want = [("block", source + ":5")] * bool(tag) + [("malloc", source + ":6" if "-g" in flags else None)]
                with private_dir() as ledgers:
                    process = subprocess.Popen([program], env=dict(os.environ, ALLIUM_DIR=ledgers))
                    equal(process.wait(), 0, "its code")
                    rows, _ = accounts(ledgers, process.pid)
                for rows in listed(program)[0]["rows"], rows:
                    equal(sorted((row["name"], row["place"]) for row in rows), want, "%s %s" % (name, flags))
    return test


def one_line(compiler):
    """Calls of one function on one line are one place, whose copies are counted; of others they are rows of their own.
    """
    def test():
        text = "#include <stdlib.h>\n#define TWICE(a, b) (free(malloc(a)), free(malloc(b)))\nstatic void both(void *a, void *b) { free(a), free(b); }\n" \
               "int main(void)\n{\n    both(malloc(1), malloc(2));\n    TWICE(3, 4);\n    both(malloc(5), calloc(1, 6));\n    return 0;\n}\n"
        for level in "-O0", "-O2":
            source, program = scratch("line.c", text), scratch("line")
            succeed([
                compiler, "-g", level, "-fno-inline-functions", *HOOKS, source, "-o", program, LIBRARY,
                "-Wl,-rpath," + os.path.dirname(LIBRARY)
            ])
            with private_dir() as ledgers:
                process = subprocess.Popen([program], env=dict(os.environ, ALLIUM_DIR=ledgers))
                equal(process.wait(), 0, "its code")
                rows, _ = accounts(ledgers, process.pid)
            figures = lambda rows, *keys: sorted(
                (int(row["place"].split(":")[1]), row["name"], *(row[key] for key in keys)) for row in rows)
            equal(
                figures(rows, "allocations", "allocated_bytes"),
                [(6, "malloc", 2, 3), (7, "malloc", 2, 7), (8, "calloc", 1, 6), (8, "malloc", 1, 5)],
                "rows",
            )
            equal(
                figures(listed(program)[0]["rows"], "copies"),
                [(6, "malloc", 2), (7, "malloc", 2), (8, "calloc", 1), (8, "malloc", 1)],
                "copies",
            )
    return test


def no_such():
    """Each is told in a line of its own."""
    with tempfile.TemporaryDirectory(dir=SCRATCH.name) as folder:
        at = lambda name: os.path.join(folder, name)
        program = linked("g++", ["-O2"], "bfd", [])
        data = open(program, "rb").read()
        for name, content in (("cut", data[:len(data) // 2]), ("tiny", data[:40]),
                              ("other", data[:18] + b"\xb7" + data[19:]),
                              ("headless", data[:40] + bytes(8) + data[48:58] + bytes(6) + data[64:]),
                              ("archive", b"!<arch>\n"), ("core", data[:16] + b"\4" + data[17:])):
            with open(at(name), "wb") as file:
                file.write(content)
        with open(at("old"), "wb") as file:  # the descriptors are of another version
            offset, size = section(program, "allium_tags")
            file.write(data[:offset] + b"".join(b"\x77" + data[at_ + 1:at_ + 32]
                                                for at_ in range(offset, offset + size, 32)) + data[offset + size:])
        succeed(["objcopy", "--only-keep-debug", program, at("debug")])
        for path, text in ((at("cut"), "is cut short, or damaged"),
                           (at("tiny"), "is not an ELF program or library, or is truncated"),
                           (at("other"), "is for another architecture"), (at("headless"), "has no section headers"),
                           (at("archive"), "is an archive"), (at("core"), "is not an ELF program or library"),
                           (objects("g++", ["-O2"])[0], "is an object file"),
                           (at("debug"), "has only debug information"),
                           (at("old"), "has tags of another version"),
                           ("/bin/sh", "has no tags: it is not built with")):
            done = run([built("ALLIUM"), "tags", path])
            equal((done.returncode, done.stdout), (1, b""), path)
            lines = done.stderr.decode().splitlines()
            check(len(lines) == 1 and lines[0].startswith("allium: %s %s" % (path, text)), path, "->", lines)


def section(path, name):
    """Where it is in the file, and how long."""
    text = succeed(["readelf", "-SW", path]).stdout.decode()
    offset, size = re.search(r" %s +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)" % name, text).groups()
    return int(offset, 16), int(size, 16)


def static_ones():
    """Without a loader there is no liballium.so: the linker says so."""
    for linker in LINKERS:
        for how in "-static", "-static-pie":
            done = run([
                "g++", "-O2", *objects("g++", ["-O2"]), "-o",
                os.path.join(SCRATCH.name, "static"), "-fuse-ld=" + linker, how, LIBRARY
            ])
            check(done.returncode, linker, how, "made a program")
            check(re.search(rb"static link|-static|dynamic object|no-dynamic-linker", done.stderr), linker, how, "->",
                  done.stderr[-300:])


usual = [("g++", "bfd", ["-O2"], [[], GC]), ("g++", "gold", ["-O0"], [GC]), ("g++", "lld", ["-O2"], [GC]),
         ("clang++", "bfd", ["-O0"], [GC]), ("clang++", "gold", ["-O2"], [GC]), ("clang++", "lld", ["-O2"], [[], GC])]
every = [(compiler, linker, ["-O0", "-O2"], [[], GC]) for compiler in ("g++", "clang++") for linker in LINKERS]
tap.main([("%s, %s: rows are those of the list" % row[:2], matrix(*row)) for row in (every if LONG else usual)] + [
    ("link-time optimization keeps the rows", whole_program),
    ("gcc: places with the same code are rows of their own", alike("gcc")),
    ("clang: places with the same code are rows of their own", alike("clang")),
    ("gcc: calls on one line are one place", one_line("gcc")),
    ("clang: calls on one line are one place", one_line("clang")),
    ("gcc: files with names that assembly text cannot have", odd_files("gcc")),
    ("clang: files with names that assembly text cannot have", odd_files("clang")),
    ("debug information in files of its own, shared, or stripped", debug_files),
    ("what can be asked of a program that does not run", asked),
    ("what is no program with tags is told in a line", no_such),
    ("static programs cannot be linked", static_ones),
])
