# SPDX-License-Identifier: BSD-2-Clause
"""When and how a trace ends: images that end while it goes on, limits, time, full disks; the summary, and folders that
exist. The program's calls are known (caller.c); each is in the trace, or counted as one that is not.
"""
import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import built, check, equal, private_dir, unshare
from trace_reader import count

ALLIUM = built("ALLIUM")
CALLER = os.path.join(built("TEST_CLI"), "caller")


def trace(folder, options, *words, code=0):
    done = tap.run([ALLIUM, "trace", "-o", folder + "/t", *options, "--", CALLER, *map(str, words)], cwd=folder)
    equal(done.returncode, code, done.stderr)
    return done.stderr.decode()


def images():
    """Rings of images that have ended are read to the end and removed while the program runs; one process can have
    several images."""
    with private_dir() as folder:
        runtime = folder + "/runtime"
        os.mkdir(runtime, 0o700)
        process = subprocess.Popen(
            [ALLIUM, "trace", "-o", folder + "/t", "--", CALLER, "fork", "40", "make", "5", "777", "exec", "make", "6",
             "888", "say", "now", "wait", "make", "1", "999"], env=dict(os.environ, XDG_RUNTIME_DIR=runtime),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(process.stdout.readline(), b"now\n", "the program")

        def rings():
            return [name for _, _, names in os.walk(runtime) for name in names if name.endswith(".ring")]
        tap.wait_until(lambda: len(rings()) == 1, 10, "the rings of 41 images are removed")
        tap.wait_until(lambda: open("/proc/%d/maps" % process.pid).read().count(".ring") == 1, 10,
                       "the reader maps the last image's rings alone")
        files = [os.readlink(entry.path) for entry in os.scandir("/proc/%d/fd" % process.pid)]
        check(sum("/ust/events" in name for name in files) <= os.cpu_count() + 1, files)
        _, said = process.communicate(b"x")
        equal(process.returncode, 0, said)
        found = trace_reader.events(folder + "/t")
        equal([count(found, size) for size in (33333, 777, 888, 999)], [400, 5, 6, 1], "events")
        check("of 42 processes" in said.decode(), said)
        equal([names for _, _, names in os.walk(runtime) if names], [], "what is left beside the ledgers")


def sleeps(pid):
    """How often threads of the process have gone to sleep."""
    total = 0
    for task in os.scandir("/proc/%d/task" % pid):
        with contextlib.suppress(FileNotFoundError), open(task.path + "/status") as status:  # it may have ended
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read(), re.M).group(1))
    return total


def streams(folder):
    """-> the bytes of events that the trace has"""
    return sum(entry.stat().st_size for entry in os.scandir(folder + "/ust") if entry.name != "metadata")


def shortened():
    """Someone shortens the files by which program and reader work: the reader goes on, ends as usual, and what it had
    read before is in the trace.
    """
    for suffix, options in (".ring", []), (".ring", ["--flight"]), (
            ".sums.events", ["--sum", "malloc"]):
        with private_dir() as folder:
            runtime = folder + "/runtime"
            os.mkdir(runtime, 0o700)
            where = ["--interval", "50ms"] if "--sum" in options else ["-o", folder + "/t"]
            process = subprocess.Popen(
                [ALLIUM, "trace", *options, *where, "--", CALLER, "make", "9", "777", "say", "now", "wait", "exit",
                 "5"],
                env=dict(os.environ, XDG_RUNTIME_DIR=runtime), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            printed = b""  # a table may come amid what the program writes
            while b"now" not in printed or ("--sum" in options and b"\n    9 " not in printed):
                line = process.stdout.readline()
                check(line, suffix, options, "the program has ended")
                printed += line
            tap.wait_until(lambda: "-o" not in where or "--flight" in options or streams(folder + "/t"), 10, "events")
            (file,) = [os.path.join(at, name) for at, _, names in os.walk(runtime) for name in names
                       if name.endswith(suffix)]
            os.truncate(file, 0)
            before = sleeps(process.pid)
            tap.wait_until(lambda: process.poll() is not None or sleeps(process.pid) > before + 10, 10, "readings")
            tables, said = (text.decode() for text in process.communicate(b"x"))
            # the program, which writes into the file itself, may end by SIGBUS
            check(process.returncode in (5, 128 + signal.SIGBUS), suffix, options, process.returncode, said)
            if "--sum" in options:
                check(tables.count("COUNT  PER S\n") >= 2, "tables after that", tables, said)
            elif "--flight" in options:
                check(re.fullmatch(r"allium: 0 snapshots in %s/t; [01] process(es)? traced\n" % folder, said), said)
            else:
                found = trace_reader.events(folder + "/t")
                equal((len(found), 0, 0), trace_reader.calls(said, folder + "/t"), said)
                equal((len(found), count(found, 777)), (18, 9), "events")
                equal(len(re.findall(r"\d parts? of rings w.* damaged by the program itself", said)), suffix == ".ring", said)


def limit():
    """The folder stays below its limit; later events are counted, to the last."""
    with private_dir() as folder:
        said = trace(folder, ["--limit", "1M"], "make", 200000, 555)
        size = sum(os.path.getsize(folder + "/t/ust/" + name) for name in os.listdir(folder + "/t/ust"))
        check(900000 < size < (1 << 20) + 8192, size)
        found = trace_reader.events(folder + "/t", losses=True)
        written, lost, later = trace_reader.said(said)
        equal(len(found), written - trace_reader.life(folder + "/t"), said)
        trace_reader.check_all(written + lost + later, 400000)
        check(lost + later > 300000 and "1 MiB are full (--limit)" in said, said)


def duration():
    with private_dir() as folder:
        said = trace(folder, ["--duration", "300ms"], "make", 10, 555, "slow", 1000, 666, code=0)
        found = trace_reader.events(folder + "/t")
        written, lost, later = trace_reader.said(said)
        equal((len(found), lost), (written - trace_reader.life(folder + "/t"), 0), said)
        trace_reader.check_all(written + later, 2020)
        check(count(found, 555) == 10 and 0 < count(found, 666) < 700 and "--duration" in said, said)


def disk():
    """A full file system ends the trace, not the program."""
    with private_dir() as folder:
        os.mkdir(folder + "/disk")
        script = 'mount -t tmpfs -o size=24m none "$1" && shift && "$@"; code=$?; cp -r disk/t . ; exit $code'
        words = [*unshare(), "sh", "-c", script, "sh", folder + "/disk", ALLIUM, "trace", "-o", folder + "/disk/t",
                 "--limit", "1G", "--", CALLER, "make", "2000", "555", "fill", folder + "/disk/full", "make",
                 "300000", "666", "exit", "9"]
        done = tap.run(words, cwd=folder)
        said = done.stderr.decode()
        equal(done.returncode, 9, said)
        found = trace_reader.events(folder + "/t", losses=True)
        written, lost, later = trace_reader.said(said)
        equal(len(found), written - trace_reader.life(folder + "/t"), said)
        trace_reader.check_all(written + lost + later, 604000)
        check("its file system is full: 12 MiB are to stay free" in said, said)


def memory():
    """The file system of the rings is full: events without memory are lost, and counted; the program goes on."""
    with private_dir() as folder:
        os.mkdir(folder + "/runtime")
        script = 'mount -t tmpfs -o size=16m,mode=700 none "$1" && export XDG_RUNTIME_DIR="$1" && shift && exec "$@"'
        words = [*unshare(), "sh", "-c", script, "sh", folder + "/runtime", ALLIUM, "trace", "-o", folder + "/t", "--",
                 CALLER, "make", "100", "555", "fill", folder + "/runtime/full", "make", "100000", "666", "exit", "9"]
        done = tap.run(words, cwd=folder)
        said = done.stderr.decode()
        equal(done.returncode, 9, said)
        found = trace_reader.events(folder + "/t", losses=True)
        written, lost, later = trace_reader.said(said)
        equal((len(found), count(found, 555)), (written - trace_reader.life(folder + "/t"), 100), said)
        trace_reader.check_all(written + lost + later, 2 * 100100)
        check(re.search(r"lost: (.*, )?\d+ without memory for the ring", said), said)
        listed = json.loads(tap.succeed([ALLIUM, "events", folder + "/t", "--json"]).stdout.splitlines()[-1])
        equal(listed["lost_events"], lost, "lost")


def quarter():
    """Without --limit the folder takes a quarter of the free space at most."""
    with private_dir() as folder:
        os.mkdir(folder + "/disk")
        script = 'mount -t tmpfs -o size=24m none "$1" && shift && "$@"; code=$?; cp -r disk/t . ; exit $code'
        words = [*unshare(), "sh", "-c", script, "sh", folder + "/disk", ALLIUM, "trace", "--buffer", "64M", "-o",
                 folder + "/disk/t", "--", CALLER, "make", "300000", "666"]
        done = tap.run(words, cwd=folder)
        said = done.stderr.decode()
        equal(done.returncode, 0, said)
        size = sum(os.path.getsize(folder + "/t/ust/" + name) for name in os.listdir(folder + "/t/ust"))
        check(5 << 20 < size <= (6 << 20) + 8192 and " MiB are full (--limit)" in said, size, said)
        trace_reader.check_all(sum(trace_reader.said(said)), 600000)


def summary():
    with private_dir() as folder:
        said = trace(folder, [], "make", 50000, 555).splitlines()
        check(re.match(r"allium: 10000\d events of 1 process within \d.* \(\d.* a second\), \d.* MiB in .*/t, 0 lost$",
                       said[0]), said)
        check(re.match(r"allium: rings of \S+ MiB for each of \d+ CPUs: at the highest rate, \d.*iB/s in one, the reader "
                       r"may sleep \d.* m?s; it used \d.* \S?s of CPU time(; times agree with the kernel's clock to \d.* \S?s)?$", said[1]), said)
        equal(said[2:], ["allium: next: allium report %s/t, or allium events %s/t" % (folder, folder)], "the last line")


# The clocks of `allium trace`, which go forward when the test says so: by 90 s, and by 1 ms. Each anchor of the CPU's
# counter comes with a look at the time of day, which is read 16 times: the readings are counted.
CLOCKS = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile struct {
    long stepped, readings;
} *shared;
__attribute__((constructor)) static void begin(void)
{
    const int file = open(getenv("STEPPED"), O_RDWR);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsetenv("LD_PRELOAD"); /* not for the program */
}
int clock_gettime(clockid_t id, struct timespec *t)
{
    const long bad = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME)
        __atomic_fetch_add(&shared->readings, 1, __ATOMIC_RELAXED);
    if (!bad && shared->stepped && id == CLOCK_REALTIME)
        t->tv_sec += 90;
    if (!bad && shared->stepped && id == CLOCK_MONOTONIC && (t->tv_nsec += 1000000) >= 1000000000) {
        t->tv_sec++;
        t->tv_nsec -= 1000000000;
    }
    return bad;
}
"""


def clocks():
    """Steps of the time of day, and a change of the rate at which the CPU's counter runs, are said."""
    trace_reader.needs_tsc()
    with private_dir() as folder:
        with open(folder + "/clocks.c", "w") as file:
            file.write(CLOCKS)

        def readings():
            with open(folder + "/stepped", "rb") as file:
                return struct.unpack("2Q", file.read())[1]
        tap.succeed(["cc", "-O1", "-shared", "-fPIC", folder + "/clocks.c", "-o", folder + "/clocks.so"])
        for step in False, True:
            with open(folder + "/stepped", "wb") as file:
                file.write(bytes(16))
            began = time.monotonic()
            process = subprocess.Popen(
                [ALLIUM, "trace", "--force", "-o", folder + "/t", "--", CALLER, "make", "9", "555", "say", "a", "wait"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=dict(os.environ, LD_PRELOAD=folder + "/clocks.so", STEPPED=folder + "/stepped"))
            equal(process.stdout.readline(), b"a\n", "the program")
            time.sleep(0.1)
            with open(folder + "/stepped", "r+b") as file:
                file.write(b"\1" if step else b"\0")
            time.sleep(time.monotonic() - began + 0.1)  # an anchor comes when twice the time is over
            if step:  # then one comes every 10 ms, for a second; without a step, 20 would take 15 s at least
                before, began = readings(), time.monotonic()
                tap.wait_until(lambda: readings() >= before + 20 * 16, 10, "anchors")
                check(time.monotonic() - began < 10, "20 anchors took", time.monotonic() - began)
            said = process.communicate(b"x")[1].decode()
            equal(process.returncode, 0, said)
            words = "set forward by 90 s", "the rate of the CPU's counter changed: events of different CPUs"
            equal([word in said for word in words][:1 + step], [step] * (1 + step), said)
            listed = tap.succeed([ALLIUM, "events", folder + "/t", "--json"]).stdout.decode().splitlines()
            last = json.loads(listed[-1])
            equal(round(last["wall_step_ns"] / 1e9, 1), 90.0 if step else 0, "the step")
            check(not step or last["residual_ns"] > 100000, last)
            shown = tap.run([ALLIUM, "events", folder + "/t"]).stderr.decode()
            equal([word in shown for word in words][:1 + step], [step] * (1 + step), shown)
            shown = " ".join(tap.succeed([ALLIUM, "report", folder + "/t", "--no-pager"]).stdout.decode().split())
            equal(words[0] in shown, step, shown)
            report = json.loads(tap.succeed([ALLIUM, "report", folder + "/t", "--json"]).stdout)
            equal(report["trace"]["wall_step_ns"], last["wall_step_ns"], "the report")


def folders():
    """--force replaces traces, and nothing else; the default name has the number of the program."""
    with private_dir() as folder:
        trace(folder, [], "make", 3, 555)
        equal(os.stat(folder + "/t").st_mode & 0o777, 0o700, "mode")
        check("use --force to replace it" in trace(folder, [], "make", 3, 555, code=125), "an existing trace")
        trace(folder, ["--force"], "make", 4, 555)
        equal(count(trace_reader.events(folder + "/t"), 555), 4, "the new trace")
        os.mkdir(folder + "/other")
        os.mkdir(folder + "/other/t")
        open(folder + "/other/t/letter", "w").close()
        check("is not a trace" in trace(folder + "/other", ["--force"], "make", 3, 555, code=125), "a folder")
        check("--force" not in trace(folder + "/other", [], "make", 3, 555, code=125), "a folder")
        equal(os.listdir(folder + "/other/t"), ["letter"], "what a stranger's folder has")
        done = tap.run(["sh", "-c", '"$0" trace -- "$1" exec say x', ALLIUM, CALLER], cwd=folder + "/other")
        equal(done.returncode, 0, done.stderr)
        name = [name for name in os.listdir(folder + "/other") if name != "t"]
        check(len(name) == 1 and re.match(r"caller\.\d+\.trace$", name[0]), name)


tap.main([
    ("rings of ended images go at once", images),
    ("files that are made shorter", shortened),
    ("--limit", limit),
    ("--duration", duration),
    ("a full disk", disk),
    ("no memory for rings", memory),
    ("the limit without --limit", quarter),
    ("the summary", summary),
    ("clocks that are set", clocks),
    ("folders that exist", folders),
])
