# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import --vmlinux`: files, lines and functions of calls in a trace that has only their names, of the kernel
and of a module; helpers; and which vmlinux is refused. Kernel and module are small ones of the test's own; the truth is
what addr2line says.
"""
import json
import os
import re
import struct
import sys

sys.dont_write_bytecode = True
import lib
import tap
import vmlinux
from lib import built, check, equal

SOURCES = {
    "init/main.c": """
__attribute__((used)) void _stext(void) {}
%s
void start_kernel(void);
void start_kernel(void) { __asm__ volatile("nop"); }
""",
    "include/linux/slab.h": """
void *slab_alloc(unsigned bytes);
__attribute__((always_inline)) static inline void *kmalloc(unsigned bytes)
{
    return (char *)slab_alloc(bytes | 7) + 1;
}
char *kstrdup(const char *text, volatile int *n);
""",
    "mm/util.c": """
#include "linux/slab.h"
void *slab_alloc(unsigned bytes) { return (void *)(long)bytes; }
char *kstrdup(const char *text, volatile int *n)
{
    char *copy = kmalloc(8);
    *n += copy[0] + text[0];
    return copy;
}
""",
    "fs/pipe.c": """
#include "linux/slab.h"
void *alloc_pipe(volatile int *n);
__attribute__((always_inline)) static inline void *get_pipe(volatile int *n)
{
    char *pipe = kmalloc(192);
    *n += pipe[1];
    return pipe;
}
__attribute__((noinline)) static void *same_name(volatile int *n)
{
    char *p = kmalloc(64);
    *n += p[2];
    return p;
}
void *alloc_pipe(volatile int *n)
{
    return (char *)get_pipe(n) + (same_name(n) != 0) + *kstrdup("", n);
}
__attribute__((noinline, used)) static void *alike(volatile int *n)
{
    char *p = kmalloc(32);
    *n += p[2];
    return p;
}
""",
    "net/sock.c": """
#include "linux/slab.h"
void *alloc_sock(volatile int *n);
__attribute__((noinline)) static void *same_name(volatile int *n)
{
    for (int i = 0; i < *n; i++)
        *n += 7 * i;
    char *p = kmalloc(96);
    *n += p[2] + *kstrdup("", n) + *kstrdup(p, n);
    return p;
}
void *alloc_sock(volatile int *n)
{
    return same_name(n);
}
__attribute__((noinline, used)) static void *alike(volatile int *n)
{
    char *p = kmalloc(32);
    *n += p[2];
    return p;
}
""",
    "drivers/disk.c": """
#include "linux/slab.h"
void *disk_open(volatile int *n);
__attribute__((always_inline)) static inline void *disk_buffer(volatile int *n)
{
    char *p = kmalloc(512);
    *n += p[9];
    return p;
}
void *disk_open(volatile int *n)
{
    *n += 3;
    return disk_buffer(n);
}
""",
}
CC = ("cc", "-g", "-O2", "-ffreestanding", "-fno-pie", "-fcf-protection=none", "-Iinclude", "-c")
BANNER = '__attribute__((used)) const char linux_banner[] = "Linux version %s (builder) #1";'
EVENT = "cat-7 [000] ..... 1.%06d: kmalloc: call_site=%s ptr=%016x bytes_req=%d bytes_alloc=%d gfp_flags=GFP_KERNEL\n"
ROWS = "SELECT call_site, function, file, line, sum(allocated_bytes) bytes FROM sys_kmem GROUP BY 1, 2, 3, 4"


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


class Kernel:
    """FOLDER/vmlinux, and beside it disk.ko."""

    def __init__(self, folder, release=None, build_id="none"):
        self.folder, self.vmlinux, self.module = folder, folder + "/vmlinux", folder + "/disk.ko"
        for path, text in SOURCES.items():
            os.makedirs(os.path.dirname(folder + "/tree/" + path), exist_ok=True)
            with open(folder + "/tree/" + path, "w") as file:
                file.write(text % (BANNER % release if release else "") if path == "init/main.c" else text)
        objects = []
        for path in SOURCES:
            if path.endswith(".c"):
                objects.append(path[:-1] + "o")
                tap.succeed([*CC, path, "-o", objects[-1], *(["-mcmodel=large"] if "disk" in path else [])],
                            cwd=folder + "/tree")
        *own, disk = objects
        tap.succeed(["ld", "--build-id=" + build_id, "-Ttext=0x81000000", "-e", "_stext", "-o", self.vmlinux, *own],
                    cwd=folder + "/tree")
        tap.succeed(["ld", "-r", "-o", self.module, disk], cwd=folder + "/tree")

    def functions(self, name, path=None):
        """[(address, bytes)] of the functions of this name."""
        lines = tap.succeed(["nm", "-S", path or self.vmlinux]).stdout.decode().splitlines()
        return [(int(words[0], 16), int(words[1], 16)) for words in map(str.split, lines)
                if len(words) == 4 and words[3] == name]

    def chain(self, address, path=None):
        """[(function, "file:line")] of a byte, the innermost first."""
        lines = tap.succeed(["addr2line", "-i", "-f", "-e", path or self.vmlinux, hex(address)]).stdout.decode()
        lines = [re.sub(r" \(.*", "", line).replace(self.folder + "/tree/", "") for line in lines.splitlines()]
        return list(zip(lines[::2], lines[1::2]))

    def imported(self, text, *options, code=0, said=None):
        """-> {call_site: [(function, file, line, bytes)]} of a trace."""
        done = allium("sys", "import", "-", "-o", self.folder + "/r.allium", "--force", "--vmlinux", self.vmlinux,
                      *options, input=text.encode(), code=code, env={**os.environ, "XDG_CACHE_HOME": self.folder})
        if said:
            check(said in done.stderr.decode(), "not said:", said, done.stderr.decode())
        return self.rows() if not code else {}

    def rows(self):
        found = {}
        query = allium("sql", "--json", self.folder + "/r.allium", ROWS)
        for row in json.loads(query.stdout)["rows"]:
            found.setdefault(row["call_site"], []).append(tuple(list(row.values())[1:]))
        return found


def wanted(chain):
    """The innermost function that no header has."""
    while len(chain) > 1 and ".h:" in chain[0][1]:
        chain = chain[1:]
    return chain[0]


def every_byte():
    """A call behind each byte of each function, with the sizes that the kernel would print."""
    with tap.private_dir() as folder:
        kernel = Kernel(folder)
        lines, truth, seen = [], {}, 0
        for path, module, names in ((kernel.vmlinux, "", ("alloc_pipe", "alloc_sock", "same_name", "kstrdup")),
                                    (kernel.module, " [disk]", ("disk_open", ))):
            for name in names:
                for address, size in kernel.functions(name, path):
                    for at in range(size):
                        site = "%s+0x%x/0x%x%s" % (name, at + 1, size, module)
                        seen += 1
                        lines.append(EVENT % (seen, site, 4096 * seen, seen, seen))
                        truth[seen] = (re.sub("/0x[0-9a-f]+", "", site), wanted(kernel.chain(address + at, path)))
        rows = kernel.imported("".join(lines), said="lacks      any word on its kernel")
        by_bytes = {row[3]: (site, row) for site, all in rows.items() for row in all}
        check(seen > 200, seen)
        inlined = 0
        for number, (site, (function, line)) in truth.items():
            have_site, (have_function, file, have_line, _) = by_bytes[number]
            helper = " (helper)" if site.startswith("kstrdup") else ""
            module = " [disk]" if "[disk]" in site else ""
            equal(have_site, site + helper, "site")
            equal((have_function, have_line), (function + module + helper, line), "function and line of " + site)
            equal(file, line.rpartition(":")[0], "file of " + site)
            inlined += function in ("get_pipe", "disk_buffer")
        check(inlined > 20, "inlined functions that no header has:", inlined)
        shown = allium("sys", "kmem", "--from", folder + "/r.allium", "--by", "function", "--json")
        names = {row["function"] for row in lib.stream(shown.stdout, "kmem")[:-1]}
        check({"get_pipe", "disk_buffer [disk]", "kstrdup (helper)"} <= names, names)
        check("may be of another kernel" in shown.stderr.decode() + allium(
            "sys", "kmem", "--from", folder + "/r.allium", "--by", "file").stderr.decode(), "no doubt is told")


def packed():
    """A module's file is read as well if it is compressed; not if it is cut."""
    with tap.private_dir() as folder:
        kernel = Kernel(folder)
        (address, size), = kernel.functions("disk_open", kernel.module)
        text = "".join(EVENT % (at, "disk_open+0x%x/0x%x [disk]" % (at + 1, size), 4096 * at, at, at)
                       for at in range(1, size))
        want = kernel.imported(text)
        check({row[1] for all in want.values() for row in all} == {"drivers/disk.c"}, want)
        plain = tap.succeed(["cat", kernel.module]).stdout
        os.unlink(kernel.module)
        for tail, how in ((".zst", ["zstd", "-qc"]), (".debug.zst", ["zstd", "-qc"]), (".xz", ["xz", "-c"]),
                          (".debug.gz", ["gzip", "-c"])):
            data = tap.succeed(how, input=plain).stdout
            for whole in True, False:
                with open(kernel.module + tail, "wb") as file:
                    file.write(data if whole else data[:-20])
                have = kernel.imported(text)
                if whole:
                    equal(have, want, "of disk.ko" + tail)
                else:
                    check(have != want, "of what is cut")
            os.unlink(kernel.module + tail)


def names_that_several_have():
    """Sizes tell functions apart; where they do not, or there are none, the row is marked."""
    with tap.private_dir() as folder:
        kernel = Kernel(folder)
        lines = []
        for number, (address, size) in enumerate(kernel.functions("same_name"), 1):
            lines.append(EVENT % (number, "same_name+0x9/0x%x" % size, 4096 * number, number, number))
        (_, size), (_, other) = kernel.functions("alike")
        equal(size, other, "the size of both")
        lines.append(EVENT % (5, "alike+0x9/0x%x" % size, 4096 * 5, 8, 8))
        lines.append(EVENT % (6, "same_name+0xa", 4096 * 6, 16, 16))
        lines.append(EVENT % (7, "same_name+0xb/0x7770", 4096 * 7, 32, 32))
        rows = kernel.imported("".join(lines))
        places = {row[3]: row[2] for row in rows["same_name+0x9"]}
        for number, (address, _) in enumerate(kernel.functions("same_name"), 1):
            equal(places[number], wanted(kernel.chain(address + 8))[1], "line")
        equal(len(set(places.values())), 2, "lines of the two")
        for site in ("alike+0x9 ?", "same_name+0xa ?"):
            name = site.partition("+")[0]
            equal([row[:3] for row in rows[site]], [(name, "[unknown] %s ?" % name, None)], site)
        equal([row[1] for row in rows["same_name+0xb"]], ["[unknown] same_name"], "a size that none has")


def helpers():
    """With stacks a helper's allocations are its caller's; without, its row says so."""
    def stack(time, *names):
        calls = "".join(" => %s\n" % name for name in names)
        return "cat-7 [000] ..... 1.%06d: <stack trace>\n%s" % (time, calls)
    with tap.private_dir() as folder:
        kernel = Kernel(folder)
        (helper, helper_size), = kernel.functions("kstrdup")
        (caller, caller_size), = kernel.functions("alloc_pipe")
        site = "kstrdup+0x10/0x%x" % helper_size
        call = "alloc_pipe+0x20/0x%x" % caller_size
        text = EVENT % (1, site, 4096, 8, 8) + stack(1, site, call, "above+0x5/0x50") + EVENT % (2, site, 8192, 16, 16)
        text += EVENT % (3, "kvasprintf+0x9/0x90", 12288, 32, 32)
        text += stack(3, "kvasprintf+0x9/0x90", "kasprintf+0x8/0x80", "name_it+0x7/0x70 [disk]")
        rows = kernel.imported(text)
        function, line = wanted(kernel.chain(caller + 0x1f))
        equal(rows["alloc_pipe+0x20"], [(function, line.rpartition(":")[0], line, 8)], "the caller's row")
        equal([(row[0], row[3]) for row in rows["kstrdup+0x10 (helper)"]], [("kstrdup (helper)", 16)],
              "the helper's row")
        equal([row[0] for row in rows["name_it+0x7 [disk]"]], ["name_it [disk]"], "the caller's caller")
        check(len(rows) == 3, rows)
        report = allium("report", folder + "/r.allium", "--by", "function", "--json")
        functions = [row["name"] for row in json.loads(report.stdout)["rows"]]
        check("kvasprintf" not in functions and "name_it" in functions, functions)
        # without any source
        allium("sys", "import", "-", "-o", folder + "/s.allium", input=text.encode())
        shown = allium("sys", "kmem", "--from", folder + "/s.allium", "--by", "function", "--json")
        names = {row["function"]: row["allocated_bytes"] for row in lib.stream(shown.stdout, "kmem")[:-1]}
        equal(names, {"alloc_pipe": 8, "kstrdup (helper)": 16, "name_it [disk]": 32}, "by function")
        # the user's own list
        os.makedirs(folder + "/config/allium")
        with open(folder + "/config/allium/kernel-helpers", "w") as file:
            file.write("alloc_pipe\n!kasprintf\n")
        allium("sys", "import", "-", "-o", folder + "/s.allium", "--force", input=text.encode(),
               env={**os.environ, "XDG_CONFIG_HOME": folder + "/config"})
        shown = allium("sys", "kmem", "--from", folder + "/s.allium", "--by", "function", "--json")
        names = {row["function"] for row in lib.stream(shown.stdout, "kmem")[:-1]}
        equal(names, {"above", "kstrdup (helper)", "kasprintf"}, "by function, with a list of the user")


def pages():
    """Of addresses, the files are those of the recording that was made of the same events."""
    names = [name for name in ("alloc_pipe_info", "alloc_empty_file") if name in vmlinux.symbols()]
    pipes = [sys.executable, "-S", "-c", "import os; kept = [os.pipe() for _ in range(200)]"]
    with tap.private_dir() as folder:
        path, env = vmlinux.make(folder, {"fs/pipe.c": names}), {**os.environ, "XDG_CACHE_HOME": folder}
        tap.succeed(
            lib.with_tracefs([
                built("ALLIUM"), "sys", "record", "--events", "slab", "-o", folder + "/own.allium", "--raw",
                folder + "/raw", "--vmlinux", path, "--quiet", "--", *pipes
            ]), env=env)
        allium("sys", "import", folder + "/raw", "-o", folder + "/r.allium", "--vmlinux", path, env=env)
        own, imported = (json.loads(allium("sql", "--json", folder + name, ROWS).stdout)["rows"]
                         for name in ("/own.allium", "/r.allium"))
        key = lambda row: [str(value) for value in row.values()]
        equal(sorted(imported, key=key), sorted(own, key=key), "rows")
        check(sum(row["bytes"] for row in own if row["file"] == "fs/pipe.c") > 200 * 192, own)


def shown():
    """A trace that is only shown has the files, too; of a recording they are what it has."""
    with tap.private_dir() as folder:
        kernel = Kernel(folder)
        (address, size), = kernel.functions("alloc_sock")
        with open(folder + "/trace.txt", "w") as file:
            file.write(EVENT % (1, "alloc_sock+0x5/0x%x" % size, 4096, 8, 8))
            file.write("cat-7 [000] ..... 1.000002: mm_page_alloc: page=1 pfn=7 order=0 migratetype=0 gfp_flags=none\n")
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        trace = "--from", folder + "/trace.txt", "--vmlinux", kernel.vmlinux
        for part, want in (("directory", "net"), ("file", "net/sock.c"), ("site", "alloc_sock+0x5")):
            done = allium("sys", "kmem", *trace, "--by", part, "--json", env=env)
            row, = lib.stream(done.stdout, "kmem")[:-1]
            equal(row["call_site" if part == "site" else part], want, "row by " + part)
            check("may be of another" in done.stderr.decode(), done.stderr)
        allium("sys", "kpages", *trace, env=env)
        code, line = 1, "--vmlinux: /none/such"
        for words in (("--from", folder + "/trace.txt", "--vmlinux", "/none/such"), None):
            if not words:
                allium("sys", "import", folder + "/trace.txt", "-o", folder + "/r.allium")
                words = "--from", folder + "/r.allium", "--vmlinux", kernel.vmlinux
                code, line = 2, "is a recording: leave out --vmlinux"
            said = allium("sys", "kmem", *words, "--quiet", code=code).stderr.decode()
            check(line in said and said.count("\n") == 1, said)


def refused():
    """A vmlinux that is not of the kernel that the trace tells: by build id, else by release."""
    with tap.private_dir() as folder:
        def tried(release, build_id="none"):
            kernel = Kernel(folder, release, build_id)
            done = tap.run([built("ALLIUM"), "sys", "import", folder + "/raw", "-o", folder + "/r.allium", "--force",
                            "--vmlinux", kernel.vmlinux])
            return done.returncode, done.stderr.decode()
        tap.succeed(lib.with_tracefs([built("ALLIUM"), "sys", "record", "-o", folder + "/own.allium", "--raw",
                                      folder + "/raw", "--quiet", "--", "true"]))
        with open(folder + "/raw/allium") as file:
            about = file.read()
        own = os.uname().release
        equal(re.search("^build_id (.*)", about, re.M).group(1), vmlinux.build_id(), "the build id that is kept")
        code, said = tried(own, "0x" + "5a" * 20)
        check(code == 1 and "belongs to another kernel: its build ID is not that of the trace" in said, code, said)
        equal(len(said.splitlines()), 1, said)
        equal(tried("0.0-other", "0x" + vmlinux.build_id())[0], 0, "the same build id")
        code, said = tried("0.0-other")
        check(code == 1 and "it is of 0.0-other, and the trace of " + own in said, code, said)
        code, said = tried(own)
        check(code == 0 and "any word on its kernel" not in said, code, said)
        code, said = tried(None)
        check(code == 0 and "any word on its kernel" in said, code, said)
        with open(folder + "/raw/allium", "w") as file:
            file.write("".join(line for line in about.splitlines(True) if "build_id" not in line))
        code, said = tried("0.0-other", "0x" + "5a" * 20)
        check(code == 1 and "it is of 0.0-other, and the trace of " + own in said, code, said)
        equal(tried(own, "0x" + "5a" * 20)[0], 0, "the same release")
        for options, why in (((folder + "/none-such", ), "No such file"), ((folder, ), "not an ELF file")):
            done = allium("sys", "import", folder + "/raw", "-o", folder + "/n.allium", "--vmlinux", *options, code=1)
            check(re.fullmatch("allium: --vmlinux: .*%s.*\n" % why, done.stderr.decode()), done.stderr)
        check(not os.path.exists(folder + "/n.allium"), "something was written")


def refused_of_perf():
    """The same of perf.data: build ids stand in its head, in records of mappings, or in records of their own."""
    with tap.private_dir() as folder:
        def tried(release, build_id):
            kernel = Kernel(folder, release, build_id)
            done = tap.run([built("ALLIUM"), "sys", "import", folder + "/data", "-o", folder + "/r.allium", "--force",
                            "--vmlinux", kernel.vmlinux])
            return done.returncode, done.stderr.decode()
        for options in ([], ["--buildid-mmap"], ["--buildid-mmap", "-o", "-"], ["-o", "-"]):
            done = tap.succeed([*tap.unshare(), "perf", "record", "-q", "-a", "-m", "4096", "-e", "kmem:kmalloc",
                                *options, *([] if "-" in options else ["-o", folder + "/data"]), "--",
                                sys.executable, "-S", "-c", "import os; os.pipe()"])
            if "-" in options:
                with open(folder + "/data", "wb") as file:
                    file.write(done.stdout)
            if options == ["-o", "-"]: # as perf inject adds it
                name = b"[kernel.kallsyms]".ljust(64, b"\0")
                with open(folder + "/data", "ab") as file:
                    file.write(struct.pack("<IHHi20sB3x64s", 67, 1 << 15 | 1, 100, -1,
                                           bytes.fromhex(vmlinux.build_id()), 20, name))
            code, said = tried(os.uname().release, "0x" + "5a" * 20)
            check(code == 1 and "its build ID is not that of the trace" in said, options, code, said)
            equal(len(said.splitlines()), 1, said)
            check(not os.path.exists(folder + "/r.allium"), "something was written")
            release = os.uname().release if options == ["-o", "-"] else "0.0-other"
            equal(tried(release, "0x" + vmlinux.build_id())[0], 0, "the same build id, %s" % options)
            os.unlink(folder + "/r.allium")


lib.main([
    ("calls behind every byte have the lines of addr2line, in the kernel and in a module", every_byte),
    ("modules that are compressed", packed),
    ("functions of one name are told apart by size, or marked", names_that_several_have),
    ("helpers pass a call on, or say that they are some", helpers),
    ("of addresses the files are those of a recording", pages),
    ("files of a trace that is only shown", shown),
    ("a vmlinux of another kernel is refused", refused),
    ("so it is of perf.data", refused_of_perf),
])
