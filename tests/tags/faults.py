# SPDX-License-Identifier: BSD-2-Clause
"""`allium tags PID --faults`: known pages of known objects are touched, and each is one fault of its place: minor, or,
once it was swapped out, major. There is no tolerance.
"""
import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sys"))
import tap
from tap import Failed, Skipped, built, check, equal, private_dir, run, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-faults-")
CLUSTER = "/proc/sys/vm/page-cluster"


def program(tagged=True):
    out = os.path.join(SCRATCH.name, "touches" if tagged else "untagged")
    hooks = ["-I", INCLUDE, "-include", "allium/malloc_hooks.h", LIBRARY, "-Wl,-rpath," +
             SCRATCH.name] if tagged else []
    if not os.path.exists(out):
        shutil.copy(LIBRARY, SCRATCH.name)
        succeed(["gcc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", os.path.join(HERE, "touches.c"), "-o", out, *hooks])
    return out


class Target:
    """The program; each order is obeyed when it returns."""

    def __init__(self, ledgers, prefix=(), group=(), command="tags"):
        self.env = dict(os.environ, ALLIUM_DIR=ledgers)
        self.command = command
        self.prefix = list(prefix)  # of what looks at it, too
        env = self.env if command == "tags" else tap.agent_env(ledgers, 65536, ALLIUM_SITES=1)
        self.process = subprocess.Popen([*group, *self.prefix, program(command == "tags")], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(self.process.stdout.readline(), "ready\n", "its first line")
        self.pid = self.process.pid

    def do(self, what, first=0, pages=0):
        self.process.stdin.write("%s %d %d\n" % (what, first, pages))
        self.process.stdin.flush()
        word, number = self.process.stdout.readline().split()
        equal(word, "done", what)
        return int(number)

    @contextlib.contextmanager
    def counted(self, *options, time_="100s"):
        """What is done within is counted; -> a dictionary that is filled then."""
        found = {}
        command = [*self.prefix, built("ALLIUM"), self.command, str(self.pid), "--faults", time_, "--json", *options]
        it = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        try:
            self.await_events(it)
            found["counts"] = it
            yield found
            it.send_signal(signal.SIGINT)
            out, said = it.communicate(timeout=tap.TIMEOUT)
            check(it.returncode == 0, it.returncode, said)
            found.update(json.loads(out), said=said.decode())
        finally:
            it.kill()
            it.communicate()

    def await_events(self, it):
        """Until it counts: two events of each CPU are open, and it waits in poll."""
        def waits():
            if it.poll() is not None:
                raise Failed("it ended: %s" % it.stderr.read().decode())
            links = 0
            for fd in os.listdir("/proc/%d/fd" % it.pid):
                with contextlib.suppress(OSError):
                    links += os.readlink("/proc/%d/fd/%s" % (it.pid, fd)) == "anon_inode:[perf_event]"
            return links >= 2 * os.cpu_count()
        tap.wait_until(waits, 30, "page faults can be counted")
        time.sleep(0.02)


@contextlib.contextmanager
def target(group=(), command="tags"):
    with private_dir() as ledgers:
        t = Target(ledgers, group=group, command=command)
        try:
            yield t
        finally:
            t.process.kill()
            t.process.communicate()


def faults(found):
    """{function: (minor, major, shared)}"""
    for row in found["rows"]:
        equal(row["faults"], row["minor"] + row["major"], "the sum")
    return {row["function"]: (row["minor"], row["major"], row["shared"]) for row in found["rows"]}


def lossless(found, system_calls=True):
    equal((found["lost"], found["ended"], found["system_calls"]), (0, 0, system_calls), "lost")


def first_touch():
    """Pages in different order, some of them twice: each is one minor fault."""
    with target() as t:
        with t.counted() as found:
            t.do("large", 500, 200)
            t.do("middle", 10, 80)
            t.do("large", 100, 7)
            t.do("large", 600, 150)
            t.do("middle", 0, 20)
        lossless(found)
        equal(faults(found), {"large_object": (257, 0, 0), "middle_objects": (90, 0, 0)}, "faults")
        equal((found["minor"], found["major"], found["shared"]), (347, 0, 0), "sums")
        with t.counted() as found:
            t.do("large", 500, 200)
            t.do("middle", 10, 80)
        equal(faults(found), {}, "faults of what was touched before")


def of_sites():
    """The same of call sites, of a program that is not built for it."""
    with target(command="sites") as t:
        with t.counted() as found:
            t.do("large", 500, 200)
            t.do("middle", 10, 80)
            t.do("large", 100, 7)
            t.do("mapped", 0, 33)
        lossless(found)
        equal((found["schema"], faults(found)),
              ("allium-sites-faults", {"large_object": (207, 0, 0), "middle_objects": (80, 0, 0)}), "faults")
        equal([row["live_objects"] for row in found["rows"]], [1, 100], "live objects")


def mapped():
    """What mmap gave, and is left of it."""
    with target() as t:
        with t.counted() as found:
            t.do("mapped", 0, 33)
            t.do("mapped", 1500, 400)
            t.do("again")
        lossless(found)
        equal(faults(found), {"mappings": (433, 0, 0)}, "faults")
        check(found["elsewhere"] + found["of_none"] >= 500, "others:", found)


def by_the_kernel():
    """Memory that a system call fills is touched, too, as far as the kernel tells us."""
    with target() as t:
        with t.counted() as found:
            t.do("kernel", 300, 123)
        lossless(found)
        equal(faults(found), {"large_object": (123, 0, 0)}, "faults")


@contextlib.contextmanager
def swapping():
    """A target in a cgroup, swap without reading ahead (a page that is read is one major fault), and what pages the
    target out.
    """
    if os.geteuid():
        raise Skipped("needs root")
    import reclaim
    with open(CLUSTER) as file:
        before = file.read()
    with reclaim.swap(64), reclaim.group() as group:
        try:
            reclaim.write(CLUSTER, 0)
            with target(group.command([])) as t:
                yield t, lambda: page_out(t, group, reclaim.write)
        finally:
            reclaim.write(CLUSTER, before)


def page_out(t, group, write):
    """All pages that it touches. They go to disk, and leave memory when that is asked for once more."""
    def is_out():
        try:
            write(group.folder + ("/memory.force_empty" if group.v1 else "/memory.reclaim"), "0" if group.v1 else "16M")
        except OSError as error:  # not all of it could be had
            check(error.errno in (errno.EAGAIN, errno.EBUSY, errno.EINTR), error)
        return t.do("resident", 0, 400) == 0
    t.do("out", 0, 400)
    tap.wait_until(is_out, 60, "it is paged out")


def from_swap():
    """MADV_PAGEOUT, and reclaim, send all to swap; some pages are read before anybody looks."""
    with swapping() as (t, out):
        t.do("large", 0, 400)
        t.do("middle", 0, 100)
        pages = t.do("neighbours")
        check(20 <= pages <= 40, "pages of neighbours:", pages)
        out()
        t.do("large", 0, 100)
        t.do("large", 300, 100)
        with t.counted() as found:
            t.do("large", 90, 30)  # 10 are there
            t.do("large", 250, 100)  # and so are 50 of these
            t.do("large", 390, 15)  # 5 were never touched
        lossless(found)
        equal(faults(found), {"large_object": (5, 70, 0)}, "faults")
        out()
        with t.counted() as found:
            t.do("middle", 20, 60)
            equal(t.do("neighbours"), pages, "pages")
        lossless(found)
        equal(faults(found), {"middle_objects": (0, 60, 0), "second_neighbour": (0, pages, pages)}, "faults")


def gone():
    """Objects that nobody could find any more are counted, and charged to nobody."""
    with target() as t:
        with t.counted() as found:
            found["counts"].send_signal(signal.SIGSTOP)  # or it might look for the object while that is there
            t.do("brief", 0, 300)
            found["counts"].send_signal(signal.SIGCONT)
            t.do("large", 0, 11)
        lossless(found)
        equal((faults(found).get("large_object"), faults(found).get("brief")), ((11, 0, 0), None), "faults")
        check(300 <= found["of_none"] + found["elsewhere"] <= 320, "of the brief object", found)
        check(re.search(r"page faults (were in objects that had been freed|were in memory without objects)", found["said"]),
              found["said"])


def looked(it):
    """Until it has looked at all that is there now: twice more it has waited for what comes."""
    def waits():
        with open("/proc/%d/status" % it.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))
    before = waits()
    tap.wait_until(lambda: waits() >= before + 3, 30, "it looks")


def ended():
    """The process ends while it is looked at."""
    with target() as t:
        command = [built("ALLIUM"), "tags", str(t.pid), "--faults", "100s", "--json"]
        it = subprocess.Popen(command, env=t.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        t.await_events(it)
        t.do("large", 0, 50)
        looked(it)
        t.process.kill()
        t.process.wait()
        out, said = it.communicate(timeout=tap.TIMEOUT)
        equal(it.returncode, 0, said)
        equal(faults(json.loads(out)), {"large_object": (50, 0, 0)}, "faults")


def not_root():
    """A user sees the faults of a process of his own, but for those that system calls have."""
    if os.geteuid():
        raise Skipped("needs root")
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        if int(file.read()) != 2:
            raise Skipped("kernel.perf_event_paranoid is not 2")
    with private_dir() as ledgers:
        os.chown(ledgers, 65534, 65534)
        program()
        os.chmod(SCRATCH.name, 0o755)
        # the build may lie where users may not look
        tap.replace_built("ALLIUM", shutil.copy(built("ALLIUM"), SCRATCH.name))
        t = Target(ledgers, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        try:
            with t.counted() as found:
                t.do("large", 0, 50)
                t.do("kernel", 100, 60)
            equal(faults(found), {"large_object": (50, 0, 0)}, "faults")
            lossless(found, system_calls=False)
            check("page faults in system calls were not counted: this requires CAP_PERFMON" in found["said"], found["said"])
        finally:
            t.process.kill()
            t.process.communicate()
        with target() as t:
            done = run([
                "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                built("ALLIUM"), "tags",
                str(t.pid), "--faults", "1s"
            ])
            check(done.returncode == 1 and b"belongs to another user" in done.stderr, done)


def screen():
    with target() as t:
        began = time.monotonic()
        it = subprocess.Popen([built("ALLIUM"), "tags", str(t.pid), "--faults", "100s"], env=t.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        t.await_events(it)
        t.do("large", 0, 50)
        t.do("middle", 0, 3)
        it.send_signal(signal.SIGINT)
        out, _ = it.communicate(timeout=tap.TIMEOUT)
        took, lines = time.monotonic() - began, out.decode().splitlines()
        said = re.fullmatch(
            r"touches \(pid \d+\): 53 page faults of its objects in ([\d.]+) (ms|s|min), 0 major", lines[0])
        check(said and 0 < float(said[1]) * {"ms": 1e-3, "s": 1, "min": 60}[said[2]] <= took * 1.01, lines, took)
        equal([re.match(r" *(\d+) +(\d+) +(\d+) +(\d+) .* (\w+_objects?) ", line).groups() for line in lines[3:]],
              [("50", "50", "0", "0", "large_object"), ("3", "3", "0", "0", "middle_objects")], "rows")
        with t.counted("--by", "class", "--where", "func:middle*") as found:
            t.do("middle", 50, 20)
            t.do("large", 500, 20)
        equal([(row["class"], row["minor"], row["sites"]) for row in found["rows"]], [("malloc", 20, 1)],
              "by class, with a query")


def itself():
    """It ends when its time is over."""
    with target() as t:
        began = time.monotonic()
        done = run([built("ALLIUM"), "tags", str(t.pid), "--faults", "300ms", "--json"], env=t.env)
        check(done.returncode == 0 and 0.3 <= json.loads(done.stdout)["seconds"] <= time.monotonic() - began, done)


def mistakes():
    allium, own = built("ALLIUM"), str(os.getpid())
    for words, code, line in (
        ([own, "--faults", "x"], 2, "invalid time"),
        ([own, "--faults", "0"], 2, "too short"),
        (["--faults", "1s"], 2, "needs one running process"),
        ([own, own, "--faults", "1s"], 2, "needs one running process"),
        ([own, "--faults", "1s", "--sort", "live"], 2, "leave out --sort"),
        ([own, "--faults", "1s", "--interval", "1s"], 2, "leave out --interval"),
        ([own, "--faults", "1s", "--allocinfo"], 2, "leave out --allocinfo"),
        ([own, "--faults", "1s", "--by", "process"], 2, "needs one running process"),
        ([own, "--faults", "1s"], 1, "has no accounts of tags"),
        (["2147483647", "--faults", "1s"], 1, "there is no process"),
    ):
        done = run([allium, "tags", *words])
        equal((done.returncode, done.stdout), (code, b""), words)
        check(line in done.stderr.decode(), words, "->", done.stderr)


tap.main([
    ("each page touched for the first time is one minor fault of its place", first_touch),
    ("pages of what call sites hold", of_sites),
    ("pages of mappings, and not of what lies in their place", mapped),
    ("pages that system calls touch", by_the_kernel),
    ("each page read back from swap is one major fault of its place", from_swap),
    ("what has gone before it is looked for is counted", gone),
    ("a process that ends meanwhile", ended),
    ("a user alone", not_root),
    ("the screen, groups and queries", screen),
    ("it ends when its time is over", itself),
    ("mistakes are told in a line", mistakes),
])
