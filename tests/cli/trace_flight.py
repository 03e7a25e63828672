# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --flight`: snapshots at a crash, at an exit, at intervals, when memory grows, and on demand."""
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import built, check, equal, private_dir
from trace_reader import count

ALLIUM = built("ALLIUM")
CALLER = os.path.join(built("TEST_CLI"), "caller")


def fly(folder, options, *words, code=0):
    """-> the names of the snapshots, and what was said"""
    done = tap.run([ALLIUM, "trace", "--flight", "-o", folder + "/t", *options, "--", CALLER, *map(str, words)],
                   cwd=folder, env=dict(os.environ, XDG_RUNTIME_DIR=folder))
    equal(done.returncode, code, done.stderr)
    left = [name for _, _, names in os.walk(folder) for name in names if name.endswith((".ring", ".ledger"))]
    equal(left, [], "what is left of rings")
    return sorted(name for name in os.listdir(folder + "/t") if name[0].isdigit()), done.stderr.decode()


def crash():
    """The last events before SIGKILL are all there, whatever was overwritten before."""
    with private_dir() as folder:
        names, said = fly(folder, [], "make", 400000, 111, "fork", 3, "make", 500, 222, "raise", int(signal.SIGKILL),
                          code=137)
        equal(names, ["1-signal"], said)
        found = trace_reader.events(folder + "/t/1-signal", losses=True)
        equal([count(found, size) for size in (222, 33333)], [500, 30], "events, those of children that ended, too")
        check("next: allium report %s/t/1-signal" % folder in said, said)
        tap.succeed([ALLIUM, "report", folder + "/t/1-signal"], cwd=folder)
        os.mkdir(folder + "/t/12-older")  # is none: it has no metadata
        for words in (["report"], ["events"], ["sites"]):
            done = tap.run([ALLIUM, *words, folder + "/t"])
            check(done.returncode and done.stderr.decode().endswith("the newest, %s/t/1-signal\n" % folder), done)


def exits():
    with private_dir() as folder:
        for options, code, want in (([], 3, []), (["--snapshot-on", "exit!=0"], 0, []),
                                    (["--snapshot-on", "exit!=0"], 3, ["1-exit"])):
            names, said = fly(folder, options + ["--force"], "make", 70, 111, "exit", code, code=code)
            equal(names, want, said)
        equal(count(trace_reader.events(folder + "/t/1-exit"), 111), 70, "events")


def every():
    """At intervals; the newest stay within the limit."""
    with private_dir() as folder:
        names, said = fly(folder, ["--snapshot-on", "every:1s", "--limit", "150K"], "make", 1000, 111, "slow",
                          3300, 222)
        check(len(names) == 1 and re.match(r"[34]-every", names[0]), names, said)
        check("older snapshots were removed (--limit)" in said, said)
        found = trace_reader.events(folder + "/t/" + names[0])
        check(count(found, 111) == 1000 and count(found, 222) > 1000, count(found, 111), count(found, 222), said)


def alert():
    """A condition writes one snapshot when it becomes true; within a second, a second trigger is only counted."""
    with private_dir() as folder:
        names, said = fly(folder, ["--period", "1", "--snapshot-on", "live>5M", "--snapshot-on", "live>5M for 300ms"],
                          "make", 10, 111, "slow", 200, 333, "hold", 80, 100000, "slow", 600, 222)
        equal(names, ["1-alert"], said)
        found = trace_reader.events(folder + "/t/1-alert")
        equal((count(found, 100000), count(found, 333)), (80, 200), "events")
        check("allium: 1 more trigger came within a second" in said, said)


def event():
    """An event for which a query holds, also just before the end; one within a second is only counted."""
    with private_dir() as folder:
        names, said = fly(folder, ["--snapshot-on", "event:malloc where size=7777", "--snapshot-on",
                                   "event:allium:free where ptr=1"],
                          "make", 1000, 111, "slow", 100, 222, "make", 3, 7777, "slow", 100, 222)
        equal(names, ["1-event"], said)
        check("allium: 2 more triggers came within a second" in said, said)
        found = trace_reader.events(folder + "/t/1-event")
        check(count(found, 7777) >= 1 and count(found, 111) == 1000, said)
        check("overwritten before" not in said and "could not fire" not in said, said)
        names, said = fly(folder, ["--force", "--snapshot-on", "event:malloc where size>8000 size<9000"], "fork", 1,
                          "make", 1, 8500)
        equal(names, ["1-event"], said)


def unseen():
    """Events that were overwritten before anybody looked are counted: with those that were looked at they are all."""
    with private_dir() as folder:
        names, said = fly(folder, ["--buffer", "64K", "--snapshot-on", "event:malloc where size=7777"], "make", 2000000,
                          111)
        equal(names, [], said)
        found = re.search(r"up to (\d+) events were overwritten before .* \((\d+) were looked at\)", said)
        check(found, said)
        unseen, looked = int(found.group(1)), int(found.group(2))
        check(unseen > 0 and 4000000 <= unseen + looked <= 4000000 + 5000, unseen, looked)


GROWS = r"""
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (;;) {
        void *volatile lost = malloc(4000);
        usleep(5000);
    }
}
"""


def growing():
    """As `allium watch` finds it."""
    with private_dir() as folder:
        with open(folder + "/grows.c", "w") as file:
            file.write(GROWS)
        tap.succeed(["cc", "-O1", "-fno-builtin", folder + "/grows.c", "-o", folder + "/grows"])
        process = subprocess.Popen([ALLIUM, "trace", "--flight", "--period", "1", "-o", folder + "/t", "--snapshot-on",
                                    "growing for 0s", "--", folder + "/grows"], stderr=subprocess.PIPE,
                                   env=dict(os.environ, XDG_RUNTIME_DIR=folder))
        tap.wait_until(lambda: os.path.exists(folder + "/t/1-growing/ust"), 120, "a snapshot")
        process.terminate()
        _, said = process.communicate()
        equal(process.returncode, 128 + signal.SIGTERM, said)
        equal(sorted(name for name in os.listdir(folder + "/t") if name[0].isdigit())[:1], ["1-growing"], said)


def demand():
    """`allium snapshot PID --trace` of the program that runs."""
    with private_dir() as folder:
        env = dict(os.environ, XDG_RUNTIME_DIR=folder)
        process = subprocess.Popen([ALLIUM, "trace", "--flight", "-o", folder + "/t", "--", CALLER, "make", "60", "111",
                                    "say", "a", "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        equal(process.stdout.readline(), b"a\n", "the program")
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
            child = file.read().split()[0]
        tap.succeed([ALLIUM, "snapshot", child, "--trace", "-o", folder + "/s"], env=env)
        _, said = process.communicate(b"x")
        equal(process.returncode, 0, said)
        equal(count(trace_reader.events(folder + "/s"), 111), 60, "events")
        equal(os.listdir(folder + "/t"), ["profile.allium"], "nothing else is written")


def mistakes():
    with private_dir() as folder:
        for words, line in ((("--snapshot-on", "signal", "--", "true"), "needs --flight"),
                            (("--flight", "--snapshot-on", "sometimes", "--", "true"), "unknown trigger 'sometimes'"),
                            (("--flight", "--snapshot-on", "every:1ms", "--", "true"), "use a duration of 1s"),
                            (("--flight", "--snapshot-on", "growing for", "--", "true"), "or 'growing for 2h'"),
                            (("--flight", "--snapshot-on", "event:", "--", "true"), "use event:NAME or"),
                            (("--flight", "--snapshot-on", "event:malloc size>1", "--", "true"), "use event:NAME or"),
                            (("--flight", "--snapshot-on", "event:malloc where ", "--", "true"), "use event:NAME or"),
                            (("--flight", "--snapshot-on", "event:mallok", "--", "true"), "unknown event mallok: use"),
                            (("--flight", "--snapshot-on", "event:allium:x", "--", "true"), "unknown event allium:x"),
                            (("--flight", "--snapshot-on", "event:free where size>1", "--", "true"),
                             'unknown field "size"'),
                            (("--flight", "--snapshot-on", "event:free where func:main", "--", "true"),
                             "not known while"),
                            (("--flight", "--snapshot-on", "event:kernel:brk", "--", "true"), "are no triggers"),
                            (("--flight", "--events", "x:y", "--", "true"), "needs alloc in --events"),
                            (("--flight", "--duration", "1s", "--", "true"), "exclude each other"),
                            (("--flight", str(os.getpid())), "--flight needs a command")):
            done = tap.run([ALLIUM, "trace", *words], cwd=folder)
            equal(done.returncode, 2, words)
            check(line in done.stderr.decode() and done.stderr.count(b"\n") <= 2, done.stderr)
        equal(os.listdir(folder), [], "what is left behind")


tap.main([
    ("a crash", crash),
    ("exit codes", exits),
    ("intervals", every),
    ("conditions", alert),
    ("events", event),
    ("events that nobody has looked at", unseen),
    ("growth", growing),
    ("on demand", demand),
    ("first mistakes", mistakes),
])
