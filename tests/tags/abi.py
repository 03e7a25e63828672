# SPDX-License-Identifier: BSD-2-Clause
"""The numbers of include/allium/ABI.md, one version for all of them, and names and numbers of tags that programs may
have.
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from building import HERE, HOOKS, INCLUDE, accounts, linked, program, quiet, scratch, tap
from tap import built, check, equal, private_dir, succeed

COMPILERS = ("gcc", "clang")
LAYOUT = """
#include <allium/helper.h>
#include <stddef.h>
#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #field)
_Static_assert(sizeof(struct allium_tag) == 32 && sizeof(struct allium_thread) == 16 && sizeof(struct allium_helper_scope) == 32, "sizes");
AT(allium_tag, version, 0); AT(allium_tag, state, 4); AT(allium_tag, counters, 8); AT(allium_tag, entry, 12);
AT(allium_tag, code, 16); AT(allium_tag, text, 20); AT(allium_tag, control, 24); AT(allium_tag, line, 28);
AT(allium_thread, counters, 0); AT(allium_thread, objects, 8);
_Static_assert(ALLIUM_UNIT_SHIFT == 22 && ALLIUM_BYTES_BITS == 12 && ALLIUM_INLINE_BYTES_MAX == 4095, "the map of objects");
_Static_assert(ALLIUM_BYTES_OF(0x12345678) == 0x678 && ALLIUM_COUNTERS_OF(0x12345678u) == 0x12345 * 32, "an entry");
_Static_assert(ALLIUM_TAG_UNREGISTERED == 1 && ALLIUM_TAG_NO_ACCOUNT == 0, "counters without an account");
struct allium_tag *tag(void);
struct allium_tag *tag(void) { return ALLIUM_TAG("class", "name"); }
"""
OLD = """
#include <allium/tag.h>
int main(void)
{
    allium_account(ALLIUM_TAG("old", "one"), 3);
    allium_account(ALLIUM_TAG("old", "two"), 3);
    return 0;
}
"""
NAMES = ["a{b", "c|d}", "{e|f}", "100%", "%0", 'say "x"', "back\\slash", "tab\there", "ä", "semi;colon#", "1st"]


def version():
    with open(os.path.join(INCLUDE, "allium", "tag.h")) as file:
        return int(re.search(r"#define ALLIUM_TAG_VERSION (\d+)", file.read()).group(1))


def layout(compiler):
    """What inlined code is compiled to: if this fails, raise ALLIUM_TAG_VERSION, and write the new numbers here and in
    ABI.md.
    """
    def test():
        equal(version(), 3, "ALLIUM_TAG_VERSION")
        source, out = scratch("layout.c", LAYOUT), scratch("layout.so")
        quiet([compiler, "-O2", "-fPIC", "-shared", *HOOKS[:2], source, "-o", out])
        sections = succeed(["readelf", "-SW", out]).stdout.decode()
        offset, size = re.search(r" allium_tags +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", sections).groups()
        with open(out, "rb") as file:
            file.seek(int(offset, 16))
            data = file.read(int(size, 16))
        words = [int.from_bytes(data[at:at + 4], "little", signed=True) for at in range(0, 32, 4)]
        equal((len(data), words[:4], words[7] > 0), (32, [3, -1, 1, 0], True), "a descriptor")
        symbols = succeed(["readelf", "-sW", out]).stdout.decode()
        at = {
            name: int(address, 16)
            for address, name in re.findall(r": ([0-9a-f]+) .* (allium_control(?:_page)?)$", symbols, re.M)
        }
        equal((at["allium_control_page"] % 4096, at["allium_control"] - at["allium_control_page"]), (0, 16),
              "the control page")
    return test


def one_number():
    """The library's name and the version of its symbols have the header's number."""
    library = built("TEST_TAGS_LIBRARY")
    check("[liballium.so.%d]" % version() in succeed(["readelf", "-dW", library]).stdout.decode(), "its soname")
    symbols = succeed(["nm", "-D", "--defined-only", library]).stdout.decode().split("\n")
    equal({name.partition("@@")[2]
           for name in symbols if "allium_" in name}, {"ALLIUM_%d" % version()}, "versions of symbols")


def old_header():
    """Objects of an old header, linked with this library, run; each reading says in one line that their places are not
    counted.
    """
    old = scratch("include-old")
    shutil.copytree(INCLUDE, old, dirs_exist_ok=True)
    with open(os.path.join(old, "allium", "tag.h"), "r+") as file:
        text = file.read()
        file.seek(0)
        file.write(
            text.replace("#define ALLIUM_TAG_VERSION %d" % version(),
                         "#define ALLIUM_TAG_VERSION %d" % (version() - 1)))
    path = scratch("old")
    quiet(["gcc", "-I", old, scratch("old.c", OLD), "-o", path, *linked()])
    with private_dir() as ledgers:
        p = subprocess.Popen([path], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(p.wait(60), 0, "its code")
        rows, said = accounts(ledgers, p.pid)
    equal(rows, [], "rows")
    equal(
        said,
        "allium: 2 tags were not counted: recompile them with the installed version of <allium/tag.h>\n",
        "what is said")


def names(compiler):
    """A tag has the name that the source gives it, whatever characters it has; so say the accounts, and the list of a
    program.
    """
    def test():
        lines = "".join("    allium_account(ALLIUM_TAG(%s, %s), %d);\n" %
                        (json.dumps("of " + name, ensure_ascii=False), json.dumps(name, ensure_ascii=False), n)
                        for n, name in enumerate(NAMES, 1))
        source = scratch("names.c", "#include <allium/tag.h>\nint main(void)\n{\n" + lines + "    return 0;\n}\n")
        path = program(compiler, ["-O2"], source)
        with private_dir() as ledgers:
            p = subprocess.Popen([path], env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal(p.wait(60), 0, "its code")
            rows, said = accounts(ledgers, p.pid)
        equal((sorted((row["live_bytes"], row["class"], row["name"]) for row in rows), said),
              ([(n, "of " + name, name) for n, name in enumerate(NAMES, 1)], ""), "accounts")
        listed = json.loads(succeed([built("ALLIUM"), "tags", path, "--json", "--top", "0"]).stdout)["rows"]
        equal(sorted((row["class"], row["name"]) for row in listed), sorted(("of " + name, name) for name in NAMES),
              "the list")
    return test


def in_proportion():
    """Five times the tags, each with a name of its own, take about five times the instructions: 27 times when strings
    were searched one by one.
    """
    path = program("gcc", ["-O2"], os.path.join(HERE, "named.c"))
    # valgrind 3.19 gives up at the debug information of clang
    library = os.path.realpath(built("TEST_TAGS_LIBRARY"))
    succeed(["strip", "-g", library, "-o", scratch("liballium.so.3")])
    took = []
    for tags in 2000, 10_000:
        with private_dir() as ledgers:
            env = dict(os.environ, ALLIUM_DIR=ledgers, LD_LIBRARY_PATH=os.path.dirname(scratch("liballium.so.3")))
            done = succeed(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", path, str(tags)], env=env)
        took.append(int(re.search(r"Collected : (\d+)", done.stderr.decode()).group(1)))
    check(took[1] < 7 * took[0], "instructions:", took)


def replaced():
    """allium-tags(1) lists the functions of the C library that the libraries replace, and no others."""
    with open(os.path.join(HERE, "..", "..", "man", "allium-tags.1.scd")) as file:
        section = re.search(r"^# REPLACED FUNCTIONS\n(.*?)^# ", file.read(), re.M | re.S).group(1)
    have = {}
    for name, variable in ("liballium.so", "TEST_TAGS_LIBRARY"), ("liballium-frees.so", "TEST_TAGS_FREES"):
        lines = succeed(["nm", "-D", "--defined-only", built(variable)]).stdout.decode().splitlines()
        names = [line.split()[2].partition("@")[0] for line in lines if line.split()[1] in "TWi"]
        have[name] = {symbol for symbol in names if not symbol.startswith("allium_")}
    wanted = {}
    for names, library in re.findall(r"^(\*.*), by _(.*)_$", section, re.M):
        wanted.setdefault(library, set()).update(re.findall(r"\*(\w+)\*\([23]\)", names))
    equal(wanted, have, "the manual, and the libraries")


tap.main(
    [("%s: inlined code is as ABI.md says" % compiler, layout(compiler)) for compiler in COMPILERS]
    + [
        ("one number is the version of header, library and symbols", one_number),
        ("an old header is told apart in one line", old_header),
    ]
    + [("%s: any name of a tag stays as it is" % compiler, names(compiler)) for compiler in COMPILERS]
    + [
        ("the manual lists what is replaced", replaced),
        ("many tags with names of their own take work in proportion", in_proportion),
    ]
)
