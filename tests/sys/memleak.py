#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys memleak` of processes: live objects and bytes of a program that allocates known numbers by each function,
whatever else it does; and the program is as it was when allium has gone, however it went.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import lib
import tap
from lib import Failed, built, check, equal, loses, tool, wait_until

METHODS = ("session", "uprobe")
EXACT = ("--period", "1", "--max-cost", "0")
# What leaker.c's "leak" keeps: function, objects, requested bytes.
LEAKS = {
    "leak_malloc": (100, 100 * 100),
    "leak_calloc": (50, 50 * 210),
    "leak_moved": (50, 50 * 5000),  # by realloc, to another address
    "leak_failed": (50, 50 * 30),  # realloc fails, and the object stays; bcc's memleak forgets it
    "leak_memalign": (10, 10 * 1000),
    "leak_aligned_alloc": (10, 10 * 640),
    "leak_posix_memalign": (10, 10 * 500),
    "leak_valloc": (10, 10 * 77),
    "leak_pvalloc": (10, 10 * 78),
    "leak_reallocarray": (10, 10 * 330),
    "leak_large": (1, 10 << 20),  # has a mapping of its own, made within malloc
}


class Leaker(lib.Maker):
    """leaker.c: answers like a maker."""

    def __init__(self, *before):
        self.process = subprocess.Popen([*before, built("TEST_LEAKER")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.do("churn 1")


@contextlib.contextmanager
def leaker(*before):
    it = Leaker(*before)
    try:
        yield it
    finally:
        it.end()


def live(rows, key="site"):
    """Objects and bytes by function; a site is "function (file)"."""
    sums = {}
    for row in rows:
        name = row[key].split(" ")[0]
        have = sums.get(name, (0, 0))
        sums[name] = (have[0] + row["live_objects"], have[1] + row["live_bytes"])
    return sums


def exact(method, env=None):
    """Each function of the family, beside objects that are freed again; a failing realloc changes nothing."""
    with leaker() as it, leaker() as other:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site", "--attach", method, env=env) as seen:
            equal(seen.method, method, "method")
            it.do("leak", "churn 500")
            other.do("leak")  # another process with the same library
            seen.stop()
    equal(live(seen.rows), LEAKS, "live objects and bytes by function")
    equal({row["pid"] for row in seen.rows}, {it.pid}, "processes")
    for name in ("frees_from_before", "frees_not_seen", "lost_calls", "lost_live_objects"):
        equal(seen.lost[name], 0, name)


def sees_frees():
    """What was there before is no leak when it is freed, and what is freed is not live."""
    with leaker() as it:
        it.do("leak")
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "process") as seen:
            it.do("frees", "leak", "frees", "many 10")
            seen.stop()
    equal(seen.lost["frees_from_before"], sum(n for n, _ in LEAKS.values()), "frees from before")
    equal(live(seen.rows, "comm"), {"leaker": (10, 5500)}, "live")


def has_stacks(by):
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", by) as seen:
            it.do("leak")
            seen.stop()
    sums = {}
    for row in seen.rows:
        names = [line.split(" ")[0] for line in row["user_stack"]]
        check(names[0].startswith("leak_") and "main" in names, "not a whole stack:", names)
        have = sums.get(names[0], (0, 0))
        sums[names[0]] = (have[0] + row["live_objects"], have[1] + row["live_bytes"])
    equal(sums, LEAKS, "live objects and bytes by stack")


def samples_without_bias():
    """40,000 objects of 100 to 1,000 bytes at a period of 8 KiB: some 2,600 samples, whose sum has a standard deviation
    of 2 % (of the bytes) and about 4 % (of the objects). Six of them: it fails once in a billion runs.
    """
    objects, size = 40000, 40000 * 550
    with leaker() as it:
        with tool("memleak", "-p", it.pid, "--period", "8K", "--max-cost", "0", "--by", "site") as seen:
            for _ in range(2):  # the second half, when calls are not sampled need no return any more
                it.do("many %d" % (objects // 2))
                time.sleep(1.5)
            seen.stop()
    row = lib.only(seen.rows, site=[row["site"] for row in seen.rows if row["site"].startswith("leak_many")][0])
    for key, truth, most in (("live_bytes", size, 0.12), ("live_objects", objects, 0.24)):
        check(abs(row[key] - truth) <= most * truth, key, row[key], "is too far from", truth)
        check(row[key + "_low"] < row[key] < row[key + "_high"], "an interval:", row)
    check(row["live_bytes"] != size, "nothing was sampled")


def counts_realloc_once():
    """realloc(NULL, n) goes on in malloc(): it is sampled as one call, also when calls are not followed to their end any
    more. Some 312 samples of 40,000 objects: 6 standard deviations are 34 %, and twice as many would be 100 %.
    """
    objects = 40000
    with leaker() as it:
        with tool("memleak", "-p", it.pid, "--period", "8K", "--max-cost", "0", "--by", "site") as seen:
            it.do("churn 500")
            time.sleep(1.5)
            it.do("reallocs %d" % objects)
            seen.stop()
    row, = [row for row in seen.rows if row["site"].startswith("leak_reallocs ")]
    check(abs(row["live_objects"] - objects) <= 0.34 * objects, "live objects:", row)


def touches_nobody():
    """Who only asks whether it works has no probe put anywhere."""
    with leaker() as it:
        before, looks = text_of(it.pid), 0
        process = subprocess.Popen([built("ALLIUM"), "sys", "--list"], stdout=subprocess.DEVNULL)
        while process.poll() is None:
            equal(text_of(it.pid) == before, True, "the text is the original one")
            looks += 1
    equal(process.returncode, 0, "exit code")
    check(looks > 10, "looks:", looks)


def records():
    """A recording has each estimate with its interval, for the screen and for SQL."""
    objects, size = 20000, 20000 * 550
    with leaker() as it, tap.private_dir() as folder:
        path = folder + "/recording"
        words = [built("ALLIUM"), "sys", "memleak", "-p", str(it.pid), "--period", "64K", "--max-cost", "0", "-o", path]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until(lambda: b": ready: " in process.stderr.readline(), tap.TIMEOUT, "it is ready")
        it.do("many %d" % objects)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=tap.TIMEOUT)[1]
        equal(process.returncode, 0, "exit code (%s)" % errors)
        shown = [built("ALLIUM"), "sys", "memleak", "--from", path, "--json", "--top", "0"]
        by_stack = lib.stream(tap.succeed(shown).stdout, "memleak")[:-1]
        sql = tap.succeed([built("ALLIUM"), "sql", path,
                           "SELECT sum(live_bytes), min(live_bytes_low < live_bytes AND live_bytes < live_bytes_high) "
                           "FROM sys_memleak", "--json"]).stdout.decode()
    total = sum(row["live_bytes"] for row in by_stack)
    check(0.5 * size < total < 1.5 * size, total, "is too far from", size)  # some 170 samples: 6 deviations
    for row in by_stack:
        check(row["live_bytes_low"] < row["live_bytes"] < row["live_bytes_high"], "an interval:", row)
    check(str(total)[:4] in sql and re.search(r"\b1\b", sql), sql, total)


def links(seen):
    """Descriptors of probes that allium has."""
    folder = "/proc/%d/fd" % seen.pid
    return sum(os.readlink(folder + "/" + name) == "anon_inode:bpf_link" for name in os.listdir(folder))


def forks():
    """A child that frees its copies of the objects takes nothing from its parent."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as alone, \
                tool("memleak", "-p", it.pid, *EXACT, "--by", "process", "--children") as all_:
            it.do("leak")
            before = links(all_)
            it.begin("fork")
            wait_until(lambda: links(all_) > before, tap.TIMEOUT, "the child has probes")
            time.sleep(1)
            it.begin("go on")
            equal(it.process.stdout.readline(), b"leaked\n", "the child")
            alone.stop()
            all_.stop()
            it.begin("end")
            equal(it.process.stdout.readline(), b"done\n", "the parent")
    equal(live(alone.rows), LEAKS, "live objects and bytes of the parent")
    equal(len(all_.rows), 2, "processes: %s" % all_.rows)
    child = [row for row in all_.rows if row["pid"] != it.pid][0]
    equal((child["live_objects"], child["live_bytes"]), LEAKS["leak_malloc"], "live in the child")


def follows_exec():
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
            it.do("leak", "exec", "leak")
            seen.stop()
    ours = {name: sums for name, sums in live(seen.rows).items() if name.startswith("leak_")}
    equal(ours, LEAKS, "live objects and bytes of the new program")
    check(seen.lost["objects_of_exec"] >= sum(n for n, _ in LEAKS.values()), "objects of the old one", seen.lost)


def names_the_program():
    """By the name of its last program, also if it has ended before anybody could look."""
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "process") as seen:
            os.kill(seen.pid, signal.SIGSTOP)
            it.do("exec", "leak")  # of /proc/self/exe
            it.end()
            os.kill(seen.pid, signal.SIGCONT)
            seen.stop()
    equal([row["comm"] for row in seen.rows], ["exe"], "names of processes")


def outlives_a_crash():
    """Of a program that crashes there is what it had, and who shares its library has the original text."""
    with leaker() as it, leaker() as other:
        before, library = text_of(other.pid), os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
        with open(library, "rb") as file:
            bytes_before = file.read()
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
            it.do("leak")
            it.begin("crash")
            equal(it.process.wait(tap.TIMEOUT), -signal.SIGSEGV, "how it ended")
            equal(text_of(other.pid) == before, True, "the text of another one is the original")
            seen.stop()
        with open(library, "rb") as file:
            equal(file.read() == bytes_before, True, "the file is as it was")
        other.do("leak")
    equal(live(seen.rows), LEAKS, "live objects and bytes by function")


def of_threads():
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site") as seen:
            it.do("threads")
            seen.stop()
    equal(live(seen.rows)["run_thread"], (800, 800 * 48), "what threads that have ended allocated")


def own_functions():
    """An allocator with other names, in a library that is loaded later."""
    names = "libpool.so:alloc=pool_get,free=pool_put,size=arg1*arg2"
    with leaker() as it:
        with tool("memleak", "-p", it.pid, *EXACT, "--by", "site", "--functions", names) as seen:
            before = links(seen)
            it.do("leak", "load " + built("TEST_POOL"))
            wait_until(lambda: links(seen) > before, tap.TIMEOUT, "the library has probes")
            time.sleep(1)
            it.do("pool")
            seen.stop()
    equal(live(seen.rows), {"leak_pool": (10, 420)}, "live objects and bytes of the pool")


def command(*options, words=(), code=0):
    run = subprocess.run([built("ALLIUM"), "sys", "memleak", "--json", *options, "--", *words],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=tap.TIMEOUT, check=False)
    equal(run.returncode, code, "exit code: " + run.stderr)
    return run


def refuses(options, words, code, what):
    run = subprocess.run([built("ALLIUM"), "sys", "memleak", *options], capture_output=True, text=True,
                         timeout=tap.TIMEOUT, check=False)
    equal(run.returncode, code, "exit code: " + run.stderr)
    lines = run.stderr.splitlines()
    check(len(lines) in (1, 2) and re.search(what, lines[0]), words, "is refused with one line:", run.stderr)


def refusals():
    refuses(["-p", str(os.getpid()), "-t", "1"], "a thread", 2, "use --pid in place of --tid")
    refuses(["-p", str(os.getpid()), "--period", "x"], "a bad period", 2, "invalid --period")
    refuses(["-p", str(os.getpid()), "--functions", "alloc=x"], "half a pair", 2, "invalid --functions")
    refuses(["--functions", "alloc=leek_malloc,free=free", "--", built("TEST_LEAKER")],
            "a function that is not there", 2, "function leek_malloc.*leak_malloc")
    with tap.private_dir() as folder:
        source = folder + "/static.c"
        with open(source, "w") as file:
            file.write("#include <stdlib.h>\nvoid *volatile p; int main(void) { p = malloc(77); return 0; }\n")
        subprocess.run(["cc", "-static", "-fno-builtin", "-o", folder + "/static", source], check=True)
        subprocess.run(["strip", "-o", folder + "/stripped", folder + "/static"], check=True)
        refuses(["--", folder + "/stripped"], "a stripped static program", 2, "install its debug symbols")
        run = command("--by", "site", *EXACT, words=[folder + "/static"])
        rows = lib.stream(run.stdout, "memleak")[:-1]
        equal(live(rows)["main"], (1, 77), "a static program")


NEWS = """
#include <new>
#include <cstdlib>
#include <sys/resource.h>
static void *volatile keep[200];
__attribute__((noinline)) static void leak_array() { for (int i = 0; i < 100; i++) keep[i] = new char[100]; }
__attribute__((noinline)) static void leak_new() { for (int i = 100; i < 150; i++) keep[i] = ::operator new(50); }
static int caught()
{
    try { keep[199] = ::operator new(2ul << 30); } catch (std::bad_alloc &) { return 1; }
    return 0;
}
int main()
{
    leak_array();
    leak_new();
    for (int i = 0; i < 50; i++) delete[] static_cast<char *>(keep[i]);
    struct rlimit least = {1ul << 30, 1ul << 30};
    setrlimit(RLIMIT_AS, &least);
    return %s;
}
"""


def of_other_allocators():
    """operator new of an allocator of its own counts once, and an exception gets past it."""
    with tap.private_dir() as folder:
        for name, result in (("plain", "0"), ("throws", "caught() ? 0 : 1")):
            with open("%s/%s.cc" % (folder, name), "w") as file:
                file.write(NEWS % result)
            subprocess.run(["g++", "-O1", "-g", "-fno-builtin", "-o", "%s/%s" % (folder, name),
                            "%s/%s.cc" % (folder, name)], check=True)
        for library, program in (("libjemalloc.so.2", "plain"), ("libtcmalloc_minimal.so.4", "throws")):
            words = ["env", "LD_PRELOAD=" + library]
            # Another process has the same library, which another allium observes.
            with leaker(*words) as other, tool("memleak", "-p", other.pid, *EXACT):
                run = command("--by", "site", *EXACT, words=[*words, folder + "/" + program])
            sums = live(lib.stream(run.stdout, "memleak")[:-1])
            equal((sums.get("leak_array"), sums.get("leak_new")), ((50, 5000), (50, 2500)), "with " + library)


def mapped(pid, name):
    """Address and offset of the code of a file that a process has mapped."""
    with open("/proc/%d/maps" % pid) as file:
        for line in file:
            words = line.split()
            if "x" in words[1] and words[-1].endswith(name):
                low, high = (int(word, 16) for word in words[0].split("-"))
                return low, high
    raise Failed("%s is not mapped" % name)


def text_of(pid):
    low, high = mapped(pid, "libc.so.6")
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as file:
        file.seek(low)
        return file.read(high - low)


def leaves_text(how):
    """The code of the program is byte for byte what it was, when allium has ended or was killed."""
    with leaker() as it:
        before = text_of(it.pid)
        with tool("memleak", "-p", it.pid, *EXACT) as seen:
            check(text_of(it.pid) != before, "no probe in the text")
            it.do("churn 10")
            os.kill(seen.pid, how)
            seen.process.communicate(timeout=tap.TIMEOUT)
        wait_until(lambda: text_of(it.pid) == before, tap.TIMEOUT, "the text is the original one")
        it.do("churn 10", "leak")


def command_goes_on():
    """A command runs on when allium is killed."""
    with tap.private_dir() as folder:
        script = "echo >%s/begun; sleep 1; echo >%s/through" % (folder, folder)
        with tool("memleak", "--", "sh", "-c", script) as seen:
            wait_until(lambda: os.path.exists(folder + "/begun"), tap.TIMEOUT, "the command begins")
            os.kill(seen.process.pid, signal.SIGKILL)  # its child is the command
            seen.process.communicate(timeout=tap.TIMEOUT)
        wait_until(lambda: os.path.exists(folder + "/through"), tap.TIMEOUT, "the command ends by itself")


def limits_its_cost():
    with leaker() as it:
        with tool("memleak", "-p", it.pid, "--period", "1", "--by", "site") as seen:
            before = text_of(it.pid)
            it.begin("spin")
            wait_until(lambda: text_of(it.pid) != before, tap.TIMEOUT, "the probes are removed")
            it.process.stdin.write(b"churn 1\n")
            it.process.stdin.flush()
            for _ in range(2):
                equal(it.process.stdout.readline(), b"done\n", "the answer")
            seen.stop()
    check(b"the probes were removed" in seen.errors, "it does not say why:", seen.errors.decode())


def knows_the_agent():
    with subprocess.Popen([built("ALLIUM"), "run", "--", built("TEST_LEAKER")], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        run.stdin.write(b"churn 10\n")
        run.stdin.flush()
        run.stdout.readline()
        with open("/proc/%d/task/%d/children" % (run.pid, run.pid)) as file:
            pid = int(file.read().split()[0])
        refuses(["-p", str(pid)], "a process with the agent", 2, "--even-observed")
        with tool("memleak", "-p", pid, "--even-observed", *EXACT, "--by", "process") as seen:
            run.stdin.write(b"many 10\n")
            run.stdin.flush()
            run.stdout.readline()
            seen.stop()
        run.stdin.close()
    check(live(seen.rows, "comm")["leaker"][0] >= 10, "live objects:", seen.rows)


lib.main([
    *(("each function of the family is counted exactly, by %s; a dropped row is noticed" % method,
       lambda method=method: loses(lambda env: exact(method, env)) if method == "session" else exact(method))
      for method in METHODS),
    ("frees of objects from before count apart", sees_frees),
    ("stacks are whole, by the rules of the files", lambda: has_stacks("stack")),
    ("stacks are whole, by frame pointers", lambda: has_stacks("fp-stack")),
    ("samples tell live memory without bias, each figure with its interval", samples_without_bias),
    ("realloc() is sampled once", counts_realloc_once),
    ("--list puts no probe into a process", touches_nobody),
    ("a recording has estimates with their intervals", records),
    ("a forked child changes nothing in its parent, and is followed on request", forks),
    ("another program after exec is followed from its beginning", follows_exec),
    ("a process has the name of its program, however soon it ends", names_the_program),
    ("a program that crashes leaves its rows, and nothing in others", outlives_a_crash),
    ("objects of threads that have ended stay", of_threads),
    ("an allocator with other names, in a library that is loaded later", own_functions),
    ("what cannot be observed is refused with one line that helps; a static program has symbols", refusals),
    ("allocators with an operator new of their own, which may throw", of_other_allocators),
    ("the text is the original one after an end", lambda: leaves_text(signal.SIGINT)),
    ("the text is the original one after a kill", lambda: leaves_text(signal.SIGKILL)),
    ("a command runs on when allium is killed", command_goes_on),
    ("probes that cost too much are removed, and it says so", limits_its_cost),
    ("a process with the agent is left to its ledger, unless asked for", knows_the_agent),
])
