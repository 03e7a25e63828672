# SPDX-License-Identifier: BSD-2-Clause
"""allium sys ffaults: against pages touched, the kernel's own count for the process (getrusage), /proc/vmstat, the numbers
of files that stat() gives, pages in memory by mincore(), and the rows of `allium sys faults --by file`.

Where the originals (bcc, bpftrace) are wrong or silent: they show the last name of a path alone, so that two files of
one name are one row; memory without a file is one row without a name; a fault that waits for a disk is counted each
time that it is tried; nothing tells that a file was deleted or replaced.
"""
import contextlib
import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import lib
from huge import pool
from lib import built, check, equal, loses, only, tool, toucher, vmstat
from memory import before_6_1, file_of, load

N = 200
SPARSE = 1 << 16  # pages
METHODS = ["perf", "tp_btf", "raw_tp", "tp"]  # fexit: tests/kernels/guest/ffaults.sh
LIBC = ctypes.CDLL(None, use_errno=True)


def add_up(rows, column="faults"):
    return sum(row[column] or 0 for row in rows)


def device(status):
    return "%d:%d" % (os.major(status.st_dev), os.minor(status.st_dev))


def lost_nothing(it):
    """Of the records of what is mapped, some may be lost where the whole machine maps much: they name code alone."""
    lost = {key: value for key, value in it.lost.items() if value and key not in ("own_events", "lost_mappings")}
    equal(lost, {}, "lost")


def touched(method, *words, options=(), env=None):
    """(rows, minor, major) of one process that did these things, with a load beside it; faults by getrusage."""
    with load(), toucher() as t:
        before = t.do("nothing")
        with tool("ffaults", "--attach", method, "-p", t.pid, *options, env=env) as it:
            for line in words:
                after = t.do(line)
            it.stop()
        equal({row["pid"] for row in it.rows}, {t.pid}, "processes")
    lost_nothing(it)
    return it.rows, after[0] - before[0], after[1] - before[1]


@contextlib.contextmanager
def shared_name():
    """A path that is free, in a tmpfs that is mounted below the root."""
    name = "/dev/shm/ffaults-%d" % os.getpid()
    try:
        yield name
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def kinds(method, env=None):
    """A different number of pages of each kind: rows of their own, which add up to what the kernel counted."""
    with file_of(N) as name, shared_name() as shm, pool(2):
        rows, minor, major = touched(method, "heap %d" % N, "anonymous %d" % (N + 1), "shared %d" % (N + 2),
                                     "memfd %d" % (N + 3), "sysv %d" % (N + 4), "shmem %d %s" % (N + 5, shm),
                                     "written %d %s" % (N, name), "hugetlb 2", "shared 7", "stack 90", env=env)
        on_disk, in_memory = os.stat(name), os.stat(shm)
    equal(add_up(rows), minor + major, "faults in all rows, by getrusage")
    for kind, mapped, faults, file in (
            ("heap", "[heap]", N, None), ("anonymous", "[anonymous]", N + 1, None),
            ("shared", "[shared]", N + 2 + 7, None), ("hugetlb", "[hugetlb]", 2, None),
            ("memfd", "/memfd:touched (deleted)", N + 3, False), ("sysv", "/SYSV00000000 (deleted)", N + 4, False),
            ("shmem", shm, N + 5, in_memory), ("file", name, N, on_disk)):
        row = only(rows, mapped=mapped)
        equal((row["kind"], row["faults"]), (kind, faults), "kind and faults of " + mapped)
        if file is not False:
            equal((row["device"], row["inode"]), (device(file), file.st_ino) if file else (None, None), mapped)
    check(add_up(row for row in rows if row["kind"] == "stack") >= 50, "pages of the stack", rows)


def one_name():
    """Two files of one name are two rows, with their whole paths."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        names = ["%s/%s/libx.so" % (folder, part) for part in ("one", "other")]
        for name in names:
            os.mkdir(os.path.dirname(name))
            with open(name, "wb") as file:
                file.write(os.urandom(4096) * N)
        rows, minor, major = touched("perf", *("written %d %s" % (N - 10 * i, name) for i, name in enumerate(names)))
    equal([only(rows, mapped=name)["faults"] for name in names], [N, N - 10], "faults by file")
    equal(add_up(rows), minor + major, "faults in all rows")


COLUMNS = ("faults", "minor", "major", "brought_in_pages", "read_ahead_pages", "user", "kernel", "read", "write",
           "execute")


def by_file(it):
    """{file: values}: the same, whoever had the faults."""
    sums = {}
    for row in it.rows:
        key = tuple(row[name] for name in ("kind", "mapped", "device", "inode"))
        sums[key] = [a + (row.get(name) or 0) for a, name in zip(sums.get(key, [0] * len(COLUMNS)), COLUMNS)]
    return sums


def agree(method, env=None):
    """ffaults, ffaults --by file and faults --by file: at once, to the unit."""
    with file_of(N) as name, load(), toucher() as t, contextlib.ExitStack() as all_of:
        tools = [all_of.enter_context(tool(*words, "--attach", method, "-p", t.pid, env=env))
                 for words in (["ffaults"], ["ffaults", "--by", "file"], ["faults", "--by", "file"])]
        for line in ("dropped %d %s" % (N, name), "heap 50", "memfd 60", "shared 70", "zero 20", "kernel 30"):
            t.do(line)
        of_tools = [by_file(it.stop()) for it in tools]
    equal(len(of_tools[0]), 5, "rows")
    for other in of_tools[1:]:
        equal(other, of_tools[0], "rows by file")


def deleted_and_replaced():
    """A mapped file that is unlinked, and one in whose place another comes: they keep their numbers, and are marked. What
    is touched is 4 MiB apart: a fault may map all pages that the kernel keeps together, of 2 MiB at most.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, toucher() as t, toucher() as u:
        names = [folder + "/gone", folder + "/new", folder + "/moved"]
        for name in [*names, folder + "/next"]:
            with open(name, "wb") as file:
                file.write(os.urandom(4096) * 1100)
        old = [os.stat(name) for name in names]
        with tool("ffaults", "--by", "file", "--comm", "toucher") as it:
            for who, name in ((t, names[0]), (u, names[1])):
                who.do("keep 1100 " + name)
                who.do("at 0")
            os.unlink(names[0])
            os.rename(folder + "/next", names[1])
            for who in t, u:
                who.do("at 1050")
            new = os.stat(names[1])
            t.do("keep 1100 " + names[1])
            t.do("at 0")
            u.do("keep 1100 " + names[2])
            u.do("at 0")
            os.rename(names[2], folder + "/there")
            u.do("at 1050")
            it.stop()
    for mapped, file in ((names[0], old[0]), (names[0] + " (deleted)", old[0]), (names[1] + " (replaced)", old[1]),
                         (names[1], new)):
        row = only(it.rows, mapped=mapped, inode=file.st_ino)
        equal((row["device"], row["faults"]), (device(file), 1), mapped)
    equal(only(it.rows, mapped=folder + "/there (renamed)")["faults"], 2, "faults in the file that was renamed")


def in_memory(name):
    """Which pages of a file are in memory."""
    with open(name, "r+b") as file, mmap.mmap(file.fileno(), 0) as all_of_it:
        at = (ctypes.c_char * len(all_of_it)).from_buffer(all_of_it)
        pages = (ctypes.c_ubyte * (len(all_of_it) // 4096))()
        failed = LIBC.mincore(at, ctypes.c_size_t(len(all_of_it)), pages)
        del at
        equal(failed, 0, "mincore")
        return [bool(page & 1) for page in pages]


def read_ahead(env=None):
    """What is in memory afterwards was brought in by faults, but for what a read(2) has brought in. The file has holes
    only: their pages are there at once, and no page is on its way when mincore() looks.
    """
    with file_of(0) as name, file_of(N) as other, toucher() as t:
        os.truncate(name, SPARSE * 4096)
        equal(sum(in_memory(name)), 0, "pages in memory before")
        with tool("ffaults", "-p", t.pid, env=env) as it:
            t.do("keep %d %s" % (SPARSE, name))
            missed = 0
            for page in (0, 5, 9000, 9001, 9002, 9003, 9500, 20000, 20100, 40000, SPARSE - 1):
                missed += not in_memory(name)[page]
                t.do("at %d" % page)
            t.do("read %d %s" % (N, other))
            t.do("dropped %d %s" % (N, other))
            it.stop()
        pages = sum(in_memory(name))
    row = only(it.rows, mapped=name)
    check(missed >= 5 and 2 * missed < pages < SPARSE // 2, "pages that were missing, in memory then:", missed, pages)
    equal((row["brought_in_pages"], row["read_ahead_pages"]), (pages, pages - missed), "pages brought in, read ahead")
    row = only(it.rows, mapped=other)  # MADV_RANDOM: nothing is read ahead
    equal((row["major"], row["brought_in_pages"], row["read_ahead_pages"]), (N, N, 0), "pages one by one")
    lost_nothing(it)


def not_shown(method):
    """A method that sees only beginnings has no such columns, and does not make figures up."""
    with file_of(N) as name:
        rows, minor, major = touched(method, "written %d %s" % (N, name))
    equal(add_up(rows), minor + major, "faults in all rows")
    for name in "minor", "major", "brought_in_pages", "read_ahead_pages":
        check(name not in rows[0], name, rows[0])


def processes():
    """Of many processes that end at once: the sum of their rows is what the kernel counted for them."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        program = shutil.copy(built("TEST_TOUCHER"), folder + "/ff%d" % os.getpid())
        with load(), tool("ffaults", "--comm", os.path.basename(program)) as it:
            counted = []
            for i in range(8):
                done = subprocess.run([program], input=b"nothing 0\nheap %d\nnothing 0\n" % (20 + i), check=True,
                                      stdout=subprocess.PIPE)
                answers = [sum(map(int, line.split())) for line in done.stdout.splitlines()]
                counted.append(answers[2] - answers[0])
            it.stop()
    heaps = [row for row in it.rows if row["mapped"] == "[heap]"]
    equal(len({row["pid"] for row in heaps}), 8, "processes")
    equal(len({row["pid"] for row in it.rows if row["mapped"] == program}), 8, "processes with their program's file")
    check(all(row["faults"] >= 20 for row in heaps), heaps)
    check(add_up(it.rows) >= sum(counted), "faults in all rows", add_up(it.rows), sum(counted))
    lost_nothing(it)


def whole_machine():
    """All rows together are no more than the kernel counted, and no fewer than what is known to have been. The kernel's
    counter has faults that fail, and pages that are asked for in advance, too.
    """
    with toucher() as t, file_of(N) as name:
        outer = vmstat()
        with tool("ffaults") as it:
            t.do("anonymous %d" % N)
            t.do("dropped %d %s" % (N, name))
            it.stop()
    counted = vmstat()["pgfault"] - outer["pgfault"]
    known = [only(it.rows, pid=t.pid, mapped=mapped)["faults"] for mapped in ("[anonymous]", name)]
    equal(known, [N, N], "known faults")
    check(2 * N <= add_up(it.rows) + it.lost["own_events"] <= counted, "faults in all rows", add_up(it.rows), counted)


def stacks():
    """Rows by stack and by instruction have the file, too."""
    for part, column in (("stack", "user_stack"), ("place", "place")):
        with file_of(N) as name:
            rows, minor, major = touched("perf", "written %d %s" % (N, name), "heap 20", options=["--by", part])
        found = [row for row in rows if "write_pages" in str(row[column])]
        equal({row["mapped"]: row["faults"] for row in found}, {name: N, "[heap]": 20}, "faults of write_pages")
        equal(add_up(rows), minor + major, "faults in all rows")


def only_some():
    with file_of(N) as name:
        rows, _, _ = touched("perf", "heap 50", "memfd 60", "dropped %d %s" % (N, name),
                             options=["--only", "major,file"])
    equal([(row["mapped"], row["faults"]) for row in rows], [(name, N)], "what is left")


def names():
    """A name may hold anything: nothing of it is printed raw. The beginning of a very long path is missing, and that is
    marked; the end is there.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        hostile = os.fsencode(folder) + b"/a\x1b[31m\t\\b"
        deep = folder + "".join("/" + letter * 240 for letter in "abcdef")
        os.makedirs(deep)
        for name in hostile, os.fsencode(deep) + b"/end":
            with open(name, "wb") as file:
                file.write(os.urandom(4096) * N)
        short = shutil.copy(hostile, folder + "/t")
        os.rename(short, short + "x")
        with toucher() as t, tool("ffaults", "-p", t.pid) as it:
            link = folder + "/link"  # the commands' words have no blanks, nor that long a path
            for target in hostile, os.fsencode(deep) + b"/end":
                os.symlink(target, link)
                t.do("written %d %s" % (N, link))
                os.unlink(link)
            it.stop()
    equal(only(it.rows, mapped=folder + "/a\\033[31m\\011\\134b")["faults"], N, it.rows)
    cut, = [row["mapped"] for row in it.rows if row["mapped"].endswith("/end")]
    check(cut.startswith(".../") and cut.endswith("f" * 240 + "/end"), cut)


def too_many_files():
    """Files whose names find no room have numbers, and that is counted."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, toucher() as t:
        with tool("ffaults", "-p", t.pid) as it:
            for i in range(4200):
                t.do("shmem 1 %s/%d" % (folder, i))
            it.stop()
    files = [row for row in it.rows if row["kind"] in ("shmem", "shared")]
    numbers = [row for row in files if row["mapped"].startswith("inode ")]
    equal((len(files), add_up(files)), (4200, 4200), "rows, faults")
    equal(len({row["inode"] for row in files}), 4200, "files")
    check(numbers and it.lost["file_names_lost"] >= len(numbers), len(numbers), it.lost)
    row = numbers[0]
    equal(row["mapped"], "inode %d of device %s" % (row["inode"], row["device"]), row)


def no_tree():
    """Without the kernel's tree of mappings it is refused in a line."""
    with before_6_1() as before:
        done = lib.tap.run([*before, *lib.with_tracefs([built("ALLIUM"), "sys", "ffaults", "--duration", "20ms"])])
    equal((done.returncode, len(done.stderr.splitlines())), (3, 1), "code, lines (%s)" % done.stderr)
    check(b"cannot see mappings; before Linux 6.1" in done.stderr, done.stderr)


def recorded():
    """Rows of a recording by process are shown by file, and the sums are the same."""
    with lib.tap.private_dir() as folder:
        path = folder + "/faults.allium"
        lib.tap.succeed([built("ALLIUM"), "sys", "ffaults", "-o", path, "--", "sh", "-c", "ls / >&2; ls / >&2"])

        def shown(*options):
            return lib.stream(lib.tap.succeed([built("ALLIUM"), "sys", "ffaults", "--from", path, "--json",
                                               *options]).stdout)[:-1]
        rows, files = shown(), shown("--by", "file")
    check("pid" not in files[0] and len(files) < len(rows), len(files), len(rows))
    for row in files:
        of_it = [one for one in rows if all(one[key] == row[key] for key in ("kind", "mapped", "device", "inode"))]
        for column in "faults", "minor", "user", "write", "brought_in_pages":
            equal(row[column] or 0, add_up(of_it, column), column)


TESTS = []
for method in METHODS:
    TESTS += [("memory of each kind is a row, and the rows add up, by " + method, lambda method=method: kinds(method)),
              ("faults by file and ffaults agree to the unit, by " + method, lambda method=method: agree(method))]
    if method != "perf":
        TESTS += [("what cannot be seen is not shown, by " + method, lambda method=method: not_shown(method))]
TESTS += [("two files of one name are two rows", one_name),
          ("files that are deleted, replaced or renamed are marked", deleted_and_replaced),
          ("pages that faults bring in, and read ahead", read_ahead),
          ("short-lived processes have rows of their own", processes),
          ("all rows together fit the kernel's own count", whole_machine),
          ("rows by stack and by instruction have the file", stacks), ("--only leaves out the rest", only_some),
          ("names are printed harmlessly, and marked if they are cut", names),
          ("files without room for a name have numbers", too_many_files),
          ("without the kernel's tree of mappings it is refused", no_tree),
          ("recorded rows by process are shown by file", recorded),
          ("a test of kinds fails when a row is missing", lambda: loses(lambda env: kinds("perf", env), 12)),
          ("a test of read-ahead fails when a row is missing", lambda: loses(read_ahead, 2)),
          ("a test of agreement fails when a row is missing", lambda: loses(lambda env: agree("perf", env), 8)), ]

lib.main(TESTS)
