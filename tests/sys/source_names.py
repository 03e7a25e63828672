# SPDX-License-Identifier: BSD-2-Clause
"""`--source`: files of calls by the names of their functions, from a small tree of the test's own, as a folder and as
an archive; where the names alone do not tell, the file is unknown. In recordings, tables, reports, exports and advice.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal

TREE = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n",
    "Kbuild": "obj-y += init/ fs/ mm/\nobj-$(CONFIG_NET) += net/\n",
    "init/Makefile": "obj-y := main.o\n",
    "init/main.c": "asmlinkage void start_kernel(void)\n{\n}\n",
    "fs/Makefile": "obj-y := pipe.o open.o\nobj-$(CONFIG_DISK) += disk/\n",
    "fs/pipe.c": "struct pipe *alloc_pipe(void)\n{\n}\nstatic int init_once(void *p)\n{\n}\n"
                 "int pipe_end(void)\n{\n}\n",
    "fs/open.c": "SYSCALL_DEFINE1(open, const char *, name)\n{\n}\n",
    "fs/disk/Makefile": "obj-$(CONFIG_DISK) += disk.o\ndisk-y := super.o\n",
    "fs/disk/super.c": "static int init_once(void *p)\n{\n}\n",
    "mm/Makefile": "obj-$(CONFIG_SLUB) += slub.o\nobj-$(CONFIG_SLOB) += slob.o\n",
    "mm/slub.c": "void *get_slab(void)\n{\n}\n",
    "mm/slob.c": "void *get_slab(void)\n{\n}\n",
    "net/Makefile": "obj-y := sock.o\n",
    "net/sock.c": "int make_sock(void)\n{\n}\nstatic int init_once(void *p)\n{\n}\n"
                  "int sock_end(void)\n{\n}\n",
    "include/slab.h": "static inline void *kmalloc_inline(void)\n{\n}\n",
}
SYMBOLS = """ffffffff81000000 T _stext
ffffffff81000100 T alloc_pipe
ffffffff81000200 t init_once
ffffffff81000300 T pipe_end
ffffffff81000400 T make_sock
ffffffff81000500 t init_once
ffffffff81000580 T sock_end
ffffffff81000600 T get_slab
ffffffff81000700 T _etext
"""
CONFIG = "CONFIG_X86=y\nCONFIG_NET=y\nCONFIG_SLUB=y\nCONFIG_DISK=m\n"
EVENT = "cat-7 [000] ..... 1.%06d: kmalloc: call_site=%s ptr=%016x bytes_req=%d bytes_alloc=%d\n"
SITES = ("alloc_pipe+0x9/0x100", "init_once+0x8/0x100", "init_once+0x7/0x80", "get_slab.part.0+0x6/0x100",
         "__x64_sys_open+0x5/0x50", "init_once+0x4/0x40 [disk]", "kmalloc_inline+0x3/0x30", "not_there+0x2/0x20")
TRACE = "".join(EVENT % (number, site, number << 24, number << 16, number << 16)
                for number, site in enumerate(SITES, 1))


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


class Place:
    """A folder with the tree, its archive, and what a kernel tells of itself."""

    def __init__(self, folder):
        self.folder, self.env = folder, {**os.environ, "XDG_CACHE_HOME": folder + "/cache"}
        state = {"state/proc/sys/kernel/osrelease": "6.12.3-test\n", "state/boot/config-6.12.3-test": CONFIG,
                 "kallsyms": SYMBOLS}
        for path, text in {**{"tree/" + path: text for path, text in TREE.items()}, **state}.items():
            os.makedirs(os.path.dirname(folder + "/" + path), exist_ok=True)
            with open(folder + "/" + path, "w") as file:
                file.write(text)
        tap.succeed(["tar", "-cJf", "tree.tar.xz", "tree"], cwd=folder)

    def imported(self, source, *options, code=0):
        """-> [file of each of SITES], and what was said."""
        done = allium("sys", "import", "-", "-o", self.folder + "/r.allium", "--force", "--source",
                      self.folder + "/" + source, *options, input=TRACE.encode(), env=self.env, code=code)
        if code:
            return [], done.stderr.decode()
        query = allium("sql", "--json", self.folder + "/r.allium",
                       "SELECT sum(allocated_bytes) bytes, file, line FROM sys_kmem GROUP BY file, call_site ORDER BY 1")
        rows = json.loads(query.stdout)["rows"]
        check(all(row["line"] is None for row in rows), "a line that nothing tells:", rows)
        return [row["file"] for row in rows], done.stderr.decode()


KNOWN = ["fs/pipe.c ~", "fs/pipe.c ~", "net/sock.c ~", "mm/slub.c ~", "fs/open.c ~", "fs/disk/super.c ~",
         "[unknown] kmalloc_inline", "[unknown] not_there"]
ALONE = ["fs/pipe.c ~", "[unknown] init_once ?", "[unknown] init_once ?", "[unknown] get_slab ?", "fs/open.c ~",
         "fs/disk/super.c ~", "[unknown] kmalloc_inline", "[unknown] not_there"]


def files():
    """With the configuration and the symbols all that can be known; without, no guess."""
    with tap.private_dir() as folder:
        place = Place(folder)
        for source in "tree", "tree.tar.xz":
            files, said = place.imported(source, "--state", folder + "/state", "--kallsyms", folder + "/kallsyms")
            equal(files, KNOWN, source)
            check("--source is of 6.12.3, and its files are used all the same" in said, said)
            equal(place.imported(source)[0], ALONE, "without anything else")
        equal(len([name for name in os.listdir(folder + "/cache/allium/symbols") if name.startswith("source-")]), 2,
              "indices")


def stale():
    """A change of the source makes the index anew; a damaged index is made anew, too."""
    with tap.private_dir() as folder:
        place = Place(folder)
        place.imported("tree")
        with open(folder + "/tree/fs/pipe.c", "a") as file:
            file.write("int not_there(void)\n{\n}\n")
        equal(place.imported("tree")[0][-1], "fs/pipe.c ~", "a new function")
        index, = os.listdir(folder + "/cache/allium/symbols")
        with open(folder + "/cache/allium/symbols/" + index, "r+b") as file:
            file.seek(100)
            file.write(b"\xff\xff\xff\xff")
        equal(place.imported("tree")[0][-1], "fs/pipe.c ~", "after damage")


def carried():
    """The mark is where a file is; directories and advice have the files without it."""
    with tap.private_dir() as folder:
        place = Place(folder)
        place.imported("tree", "--state", folder + "/state", "--kallsyms", folder + "/kallsyms")
        shown = allium("sys", "kmem", "--from", folder + "/r.allium", "--by", "directory", "--json")
        by = {row["directory"]: row["allocated_bytes"] for row in lib.stream(shown.stdout, "kmem")[:-1]}
        equal(by, {name: sum(numbers) << 16 for name, numbers in {
            "fs": (1, 2, 5), "net": (3, ), "mm": (4, ), "fs/disk": (6, ), "[unknown] kmalloc_inline": (7, ),
            "[unknown] not_there": (8, )}.items()},
              "by directory")
        report = allium("report", folder + "/r.allium", "--raw").stdout.decode()
        check("alloc_pipe  pipe.c ~" in report, report)
        advice = json.loads(allium("sys", "advise", "--from", folder + "/r.allium", "--source", folder + "/tree",
                                   "--json").stdout)
        changes = [measure["change"] for measure in advice["measures"]]
        check(any("CONFIG_NET" in change for change in changes), changes)
        shown = allium("sys", "kmem", "--from", "-", "--source", folder + "/tree", "--by", "file", "--json",
                       input=TRACE.encode(), env=place.env)
        names = {row["file"] for row in lib.stream(shown.stdout, "kmem")[:-1]}
        check("fs/pipe.c ~" in names, names)


def recorded():
    """Of the running kernel, whose symbols are in order; a source of another version is used, and that is said."""
    with tap.private_dir() as folder:
        place = Place(folder)
        with open(folder + "/tree/fs/pipe.c", "w") as file:
            file.write("struct pipe *alloc_pipe_info(void)\n{\n}\n")
        done = tap.succeed(
            lib.with_tracefs([
                built("ALLIUM"), "sys", "record", "--events", "slab", "-o", folder + "/own.allium", "--source",
                folder + "/tree", "--", sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(200)]"
            ]), env=place.env)
        check(b"tree is the source of 6.12.3, and the kernel is " in done.stderr, done.stderr)
        query = allium("sql", "--json", folder + "/own.allium",
                       "SELECT sum(allocated_bytes) bytes FROM sys_kmem WHERE file = 'fs/pipe.c ~'")
        check(json.loads(query.stdout)["rows"][0]["bytes"] > 200 * 192, query.stdout)


def refused():
    with tap.private_dir() as folder:
        place = Place(folder)
        for source, why in (("none", "No such file"), ("kallsyms", "is damaged, or no tar archive"),
                            ("state", "has no source")):
            said = place.imported(source, code=1)[1]
            check(said.startswith("allium: --source: ") and why in said and said.count("\n") == 1, said)
        place.imported("tree")
        said = allium("sys", "kmem", "--from", folder + "/r.allium", "--source", folder + "/tree", code=2).stderr
        check(b"r.allium is a recording: leave out --source" in said, said)
        said = allium("sys", "kmem", "--source", folder + "/tree", code=2).stderr
        check(b"--source needs --lines, or rows by file or directory" in said, said)


lib.main([
    ("files are found by name, configuration, module and order", files),
    ("an index that is stale or damaged is made anew", stale),
    ("marks are in files, not in directories", carried),
    ("the running kernel's files", recorded),
    ("what is no source is refused", refused),
])
