# SPDX-License-Identifier: BSD-2-Clause
"""allium sys faults: against pages touched, the kernel's own count for the process (getrusage), /proc/vmstat and VmRSS.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import huge
import lib
from lib import Failed, built, check, equal, loses, one_row_by_comm, only, tool, toucher, vmstat
from memory import before_6_1, file_of, load

N = 300
METHODS = ["perf", "tp_btf", "raw_tp", "tp"]  # fexit: tests/kernels/guest/faults.sh
CLASSES = ["heap", "stack", "anonymous", "file", "shared", "hugetlb", "other"]


def touched(method, *words, options=(), env=None):
    """(row, minor, major) of one process that did these things, with a load beside it; faults by getrusage."""
    with load(), toucher() as t:
        before = t.do("nothing")
        with tool("faults", "--attach", method, "-p", t.pid, *options, env=env) as it:
            for line in words:
                after = t.do(line)
            it.stop()
        row = only(it.rows, pid=t.pid)
        equal({key: value for key, value in it.lost.items() if value and key != "own_events"}, {}, "lost")
        return row, after[0] - before[0], after[1] - before[1]


def right(row, minor, major, **want):
    """All of its faults are there, and of each group the sum is the same."""
    equal(row["faults"], minor + major, "faults")
    if "minor" in row:
        equal((row["minor"], row["major"]), (minor, major), "minor and major faults")
    for group in (["user", "kernel"], ["read", "write", "execute", "access_unknown"], CLASSES):
        equal(sum(row.get(name) or 0 for name in group), minor + major, "sum of " + " ".join(group))
    for name, value in want.items():
        equal(row[name] or 0, value, name)


def memory(method, env=None):
    """A different number of pages of each kind, at once."""
    row, minor, major = touched(method, "heap %d" % N, "anonymous %d" % (N + 1), "shared %d" % (N + 2),
                                "zero %d" % (N + 3), env=env)
    equal((minor, major), (4 * N + 6, 0), "faults by getrusage")
    right(row, minor, major, heap=N, anonymous=2 * N + 4, shared=N + 2, user=4 * N + 6, write=3 * N + 3, read=N + 3)


def stack(method):
    row, minor, major = touched(method, "stack %d" % N)
    check(N - 40 <= minor <= 2 * N + 2, "pages of the stack:", minor)  # a frame is a page and a little
    right(row, minor, major, stack=minor, write=minor)


def by_kernel(method):
    row, minor, major = touched(method, "kernel %d" % N)
    right(row, minor, major, kernel=N, user=0, anonymous=N)


def from_disk(method):
    with file_of(N) as name:
        row, minor, major = touched(method, "dropped %d %s" % (N, name))
    equal(major, N, "major faults by getrusage")
    right(row, minor, major, file=N, read=N)


def written_file(method):
    with file_of(N) as name:
        row, minor, major = touched(method, "written %d %s" % (N, name))
    right(row, minor, major, file=N, write=N)


def hugetlb(method):
    with huge.pool(3):
        row, minor, major = touched(method, "hugetlb 3")
    right(row, minor, major, hugetlb=3)


def looking(method):
    """A tool that takes the stack finds pages of it missing: that is no fault of the program's, whichever tool tells of
    it.
    """
    with toucher() as t:
        before = t.do("nothing")
        with tool("faults", "--attach", method, "-p", t.pid, "--by", "stack", "--sample", "1") as it, \
                tool("faults", "--attach", method, "-p", t.pid, "--by", "stack", "--stacks", "user") as other:
            after = t.do("hole %d" % N)
            it.stop()
            other.stop()
    minor = after[0] - before[0]
    check(N <= minor <= N + 4, "faults by getrusage", minor)
    for rows in (it.rows, other.rows):
        equal([sum(row[name] for row in rows) for name in ("faults", "user", "kernel", "write")],
              [minor, minor, 0, minor], rows)


def transparent(method):
    """One fault for 512 pages, where the kernel has such a page to give."""
    row, minor, major = touched(method, "huge 4")
    check(4 <= minor <= 4 * 512, "faults of four huge pages", minor)
    right(row, minor, major, anonymous=minor)


def copied(method):
    """A fork: parent and child write the same pages; the child has a row of its own."""
    with load(), tool("faults", "--attach", method, "--comm", "copier") as it, toucher() as t:
        t.do("copied %d" % N)
        it.stop()
    row = only(it.rows, comm="copier")
    check(row["pid"] != t.pid, "the child is another process")
    check(N <= row["anonymous"] <= N + 4, "pages the child wrote", row)
    check(row["write"] >= N, row)


def changing(method):
    """What was found for an address does not outlive the mapping there."""
    row, minor, major = touched(method, "changing %d" % N)
    right(row, minor, major, anonymous=N, shared=N, write=2 * N)


def methods_agree():
    """Two at once see the same."""
    shared = ["faults", "user", "kernel", "read", "write", "execute", *CLASSES]
    with load(), toucher() as t, contextlib.ExitStack() as stack_of:
        tools = [stack_of.enter_context(tool("faults", "--attach", method, "-p", t.pid)) for method in METHODS]
        for line in ("heap 100", "stack 50", "kernel 70", "shared 90", "zero 30", "anonymous 20"):
            t.do(line)
        rows = [only(it.stop().rows, pid=t.pid) for it in tools]
    for row, method in zip(rows, METHODS):
        equal({key: row[key] for key in shared}, {key: rows[0][key] for key in shared}, "columns of " + method)


def whole_machine():
    """All rows together are no more than the kernel counted, and no fewer than what is known to have been."""
    outer = vmstat()
    with tool("faults") as it, toucher() as t, file_of(N) as name:
        inner = vmstat()
        t.do("anonymous %d" % N)
        t.do("dropped %d %s" % (N, name))
        seen = vmstat()
        it.stop()
    after = vmstat()
    own = it.lost["own_events"]
    for column, counter in (("faults", "pgfault"), ("major", "pgmajfault")):
        total = sum(row[column] for row in it.rows)
        check(total <= after[counter] - outer[counter], column, "in all rows", total, after[counter] - outer[counter])
        check(total >= N, column, total)
    check(seen["pgmajfault"] - inner["pgmajfault"] >= N, "major faults of the machine")
    check(own >= 0, own)
    row = only(it.rows, pid=t.pid, comm="toucher")
    check(row["major"] == N and row["anonymous"] >= N, row)


def only_some():
    row, _, _ = touched("perf", "heap 50", "anonymous 60", "kernel 70", options=["--only", "anonymous,kernel"])
    equal((row["faults"], row["anonymous"], row["kernel"], row["heap"], row["user"]), (70, 70, 70, 0, 0),
          "what is left")


def by_file():
    with file_of(N) as name, toucher() as t, tool("faults", "--by", "file", "-p", t.pid) as it:
        t.do("dropped %d %s" % (N, name))
        t.do("heap 20")
        it.stop()
    equal(only(it.rows, mapped=name)["major"], N, "major faults in the file")
    equal(only(it.rows, mapped="[heap]")["faults"], 20, "faults in the heap")


def by_code():
    """The instruction and the stack have the function's name; both add up to the process."""
    for part, column in (("place", "place"), ("stack", "user_stack")):
        with toucher() as t, tool("faults", "--by", part, "-p", t.pid) as it:
            t.do("anonymous %d" % N)
            it.stop()
        found = [row for row in it.rows if "write_pages" in str(row[column])]
        equal(sum(row["faults"] for row in found), N, "faults of write_pages by " + part)
        equal(sum(row["faults"] for row in it.rows), N, "faults by " + part)


def ended_before():
    """Of a program that was there before and ended before the report, code has its names: nobody can be asked then."""
    for part, column in (("place", "place"), ("stack", "user_stack")):
        with toucher() as t, tool("faults", "--by", part, "-p", t.pid) as it:
            t.do("anonymous %d" % N)
            t.process.kill()
            t.process.wait()
            it.stop()
        found = [row for row in it.rows if "write_pages (" in str(row[column])]
        equal(sum(row["faults"] for row in found), N, "faults of write_pages by " + part)
        equal(it.lost["nameless_frames"], 0, "frames without a name")


def code_during_exec():
    """While exec runs, the faults in the new memory are of whoever called it."""
    with lib.private_dir() as folder:
        program = shutil.copy("/bin/true", folder + "/exec-%d" % os.getpid())
        with tool("faults", "--by", "stack", "--comm", os.path.basename(program)) as it:
            for _ in range(3):
                subprocess.run([program], check=True)
            it.stop()
    found = [row["user_stack"][0] for row in it.rows if row["user_stack"]]
    check("execve (libc.so.6)" in found, found)
    equal([name for name in found if name.startswith("0x")], [], "places without a name")
    equal(it.lost["nameless_frames"], 0, "frames without a name")


def folded():
    """Stacks as lines, the weight is faults."""
    with toucher() as t:
        command = [built("ALLIUM"), "sys", "faults", "--by", "stack", "--folded", "-p", str(t.pid)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while b": ready:" not in process.stderr.readline():
                check(process.poll() is None, "it ended")
            t.do("anonymous %d" % N)
            process.send_signal(signal.SIGINT)
            out = process.communicate(timeout=lib.tap.TIMEOUT)[0].decode()
    lines = [line.rpartition(" ") for line in out.splitlines()]
    equal(sum(int(weight) for stack, _, weight in lines if "write_pages" in stack), N, out)


def hostile_name():
    """A program's name may hold anything: no control character is printed, frames stay what they are."""
    with lib.private_dir() as folder:
        program = shutil.copy(built("TEST_TOUCHER").encode(), os.fsencode(folder) + b"/a;b\n\x1b[31m\xff")
        command = [built("ALLIUM"), "sys", "faults", "--by", "stack", "--comm", os.path.basename(program), "--quiet"]

        def run(how):
            done = subprocess.run([*command, how, "--", program], input=b"heap %d\n" % N, stdout=subprocess.PIPE,
                                  check=True)
            return [line for line in done.stdout.splitlines() if b"write_pages" in line][0]
        equal(run("--folded").rpartition(b"write_pages ")[2], b"(a:b??[31m?) %d" % N, "frame and weight")
        stack = json.loads(run("--json"))["user_stack"]
        equal([frame.split()[0] for frame in stack[:4]], ["write_pages", "heap", "touch", "main"], stack)


def growth(env=None):
    """Of a process that was there before, and of memory that was given back."""
    with load(), toucher() as t:
        before = t.resident()
        with tool("faults", "--growth", "--attach", "tp", "-p", t.pid, env=env) as it:
            t.do("anonymous %d" % (4 * N))
            t.do("shared %d" % N)
            t.do("heap %d" % N)
            after = t.resident()
            it.stop()
    equal(only(it.rows, pid=t.pid)["growth_bytes"], 6 * N * 4096, "growth by pages touched")
    equal(after - before, 6 * N * 4096, "growth by VmRSS")


def no_tree(method):
    """What lies at an address cannot be told: no class is guessed, all faults are counted, and that is said."""
    with before_6_1() as before, toucher() as t:
        with tool("faults", "--attach", method, "-p", t.pid, before=before) as it:
            t.do("heap %d" % N)
            it.stop()
        row = only(it.rows, pid=t.pid)
        check(row["faults"] >= N and row["write"] >= N, "faults that write:", row)
        equal(row["class_unknown"], row["faults"], "of no known class")
        equal([name for name in CLASSES if row.get(name) is not None], [], "classes")
        check(b"which memory it was" in it.errors.splitlines()[0], it.errors)
        for words in (["--by", "file"], ["--only", "major,heap"]):
            done = lib.tap.run(
                [*before, *lib.with_tracefs([built("ALLIUM"), "sys", "faults", "--attach", method, *words])])
            equal((done.returncode, len(done.stderr.splitlines())), (3, 1),
                  "code, lines of %s: %s" % (words, done.stderr))
            check(b"this attach method" in done.stderr, done.stderr)


def no_tree_is_told():
    with before_6_1() as before:
        lines = lib.tap.run([*before, built("ALLIUM"), "doctor"]).stdout.decode().split("\nsys ")
    told, = [" ".join(line.split()) for line in lines if line.startswith("faults ")]
    check("which memory it was" in told, told)


def without_tracefs():
    """What all ways lack is told once, and the line is not cut."""
    bare = [
        "unshare", "-m", "sh", "-c",
        "umount %s 2>/dev/null; umount /sys/kernel/debug 2>/dev/null; exec \"$@\"" % lib.TRACEFS, "sh"
    ]
    done = lib.tap.run([*bare, built("ALLIUM"), "sys", "faults", "--growth", "--duration", "20ms"])
    equal((done.returncode, len(done.stderr.splitlines())), (3, 1), "code, lines (%s)" % done.stderr)
    check(done.stderr.count(b"kmem/rss_stat: tracefs is not mounted") == 1, "not once:", done.stderr)
    check(done.stderr.endswith(b"/sys/kernel/tracing\n"), "it is cut:", done.stderr)


def table_full():
    with load(), toucher() as t:
        with tool("faults", "--rows", "1", "--by", "place", "--comm", "toucher") as it:
            for kind in ("heap", "anonymous", "kernel", "stack"):
                t.do(kind + " 20")
            it.stop()
    equal(len(it.rows), 1, "rows")
    check(it.lost["lost_rows"] > 0, it.lost)


def process_gone():
    with tool("faults", "--comm", "toucher") as it:
        with toucher() as t:
            t.do("anonymous %d" % N)
        it.stop()
    check(only(it.rows, pid=t.pid)["anonymous"] >= N, it.rows)


def refused():
    for words, code in ((["--attach", "kprobe"], 2), (["--only", "nonsense"], 2), (["--growth", "--by", "file"], 2)):
        done = lib.tap.run([built("ALLIUM"), "sys", "faults", *words])
        equal(done.returncode, code, "exit code of %s: %s" % (words, done.stderr.decode()))
        equal(len(done.stderr.splitlines()), 1, "lines")


def grouped_anew():
    """Rows by place tell the process and its name."""
    with lib.tap.private_dir() as folder:
        path = folder + "/places.allium"
        lib.tap.succeed([built("ALLIUM"), "sys", "faults", "--by", "place", "-o", path, "--", "sh", "-c",
                         "ls / >&2; ls / >&2"])

        def shown(*options):
            return lib.stream(lib.tap.succeed([built("ALLIUM"), "sys", "faults", "--from", path, "--json",
                                               *options]).stdout)[:-1]
        places, processes, comms = shown(), shown("--by", "process"), shown("--by", "comm")
    for rows, keys in (processes, ("pid", "comm")), (comms, ("comm",)):
        check("place" not in rows[0] and len(rows) < len(places), rows[0])
        for row in rows:
            of_it = [place for place in places if all(place[key] == row[key] for key in keys)]
            for number in "faults", "minor", "user", "kernel", "write":
                equal(row[number], sum(place[number] for place in of_it), number)
        equal(sum(row["faults"] for row in rows), sum(place["faults"] for place in places), "faults of all rows")
    check(len([row for row in processes if row["comm"] == "ls"]) == 2, "two processes of one name", processes)
    equal(len([row for row in comms if row["comm"] == "ls"]), 1, "rows of one name")


TESTS = []
for method in METHODS:
    TESTS += [(what + ", by " + method, lambda method=method, test=test: test(method)) for what, test in (
        ("pages of each kind are counted, with a load beside it", memory), ("pages of the stack", stack),
        ("the kernel's own touches", by_kernel), ("pages read from a disk", from_disk),
        ("pages of a file that are written", written_file), ("huge pages of hugetlb", hugetlb),
        ("transparent huge pages", transparent),
        ("who looks at its stack makes no faults", looking), ("pages that a child copies", copied),
        ("pages at an address where mappings change", changing))]
TESTS += [("all methods at once show the same", methods_agree),
          ("all rows together fit the kernel's own count", whole_machine), ("--only leaves out the rest", only_some),
          *(("without the kernel's tree of mappings no class is guessed, by " + method, lambda method=method: no_tree(method))
            for method in METHODS), ("doctor tells that classes are missing", no_tree_is_told),
          ("growth without tracefs: one line says what to mount", without_tracefs),
          ("processes of one name are one row by comm", lambda: one_row_by_comm("faults", "touch 200", "faults")),
          ("recorded rows by place are shown by process and comm", grouped_anew),
          ("rows by file have the file's name", by_file), ("rows by code have the function's name", by_code),
          ("code of a program that was there before, and ended, has names", ended_before),
          ("code has names while exec runs", code_during_exec), ("folded stacks weigh faults", folded),
          ("a hostile name of a program is harmless", hostile_name), ("resident memory grows as VmRSS says", growth),
          ("a test of pages fails when a row is missing", lambda: loses(lambda env: memory("perf", env), 1)),
          ("a test of growth fails when a row is missing", lambda: loses(growth, 1)),
          ("a full table of rows is counted", table_full), ("a process that is gone keeps its row", process_gone),
          ("what makes no sense is refused in a line", refused),]

lib.main(TESTS)
