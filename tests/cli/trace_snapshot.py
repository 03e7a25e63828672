# SPDX-License-Identifier: BSD-2-Clause
"""`allium snapshot PID --trace`: what the rings of a process have that runs, is stopped, or was killed; rings that wait
for a reader, and rings that overwrite. The program's calls are known (caller.c).
"""
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import check, equal
from trace_reader import count
from traced_service import service


def numbers(said, folder=None):
    """-> events in the snapshot, without those of the group `life` if its folder is given; older ones, lost ones"""
    found = re.search(r"wrote (\d+) events.* into .*; (\d+) before them are gone, (\d+) lost\n", said)
    check(found, said)
    written, older, lost = map(int, found.groups())
    return written - (trace_reader.life(folder) if folder else 0), older, lost


def complete(said):
    """-> for how many seconds back there are events of all CPUs"""
    found = re.search(r"of all CPUs for the last ([\d.]+) (ns|\S?s)", said)
    return float(found[1]) * {"ns": 1e-9, "ms": 1e-3, "s": 1}.get(found[2], 1e-6) * 0.98 if found else 1e9


def state(pid):
    with open("/proc/%s/stat" % pid) as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def waiting():
    """A snapshot changes nothing: the next one has the same events, and a trace of the process is complete."""
    with service(["--trace"], "make", 50, 111, "say", "a", "wait", "hold", 60, 222, "say", "b", "wait", "make", 70, 333,
                 "say", "c", "wait") as s:
        s.reach("a")
        equal(numbers(s.call("snapshot", s.pid, "--trace", "-o", "none"))[0], 0, "before it is switched on")
        tracer = s.begin("-o", "t")
        s.go_on()
        s.reach("b")
        s.call("snapshot", s.pid, "--trace", "-o", "one")
        s.go_on()
        s.reach("c")
        s.call("snapshot", s.pid, "--trace", "-o", "two")
        said = s.end(tracer)
        equal(trace_reader.calls(said, s.folder + "/t"), (200, 0, 0), said)
        for name, want in (("one", (60, 0)), ("two", (60, 70)), ("t", (60, 70))):
            found = trace_reader.events(s.folder + "/" + name, losses=True)
            equal((count(found, 222), count(found, 333)), want, name)
        check(os.path.exists(s.folder + "/two/profile.allium"), "the recording beside it")


def stopped():
    """A process that is stopped stays so; one that was killed has left its last events."""
    with service(["--trace", "--flight"], "make", 50, 111, "hold", 9, 222, "say", "a", "wait", "make", 33, 444,
                 "raise", int(signal.SIGKILL)) as s:
        s.reach("a")
        s.process.send_signal(signal.SIGSTOP)
        tap.wait_until(lambda: state(s.pid) == "T", 10, "it is stopped")
        said = s.call("snapshot", s.pid, "--trace", "-o", "stopped")
        equal(numbers(said, s.folder + "/stopped"), (109, 0, 0), "events")
        equal(state(s.pid), "T", "state")
        s.process.send_signal(signal.SIGCONT)
        s.go_on()
        s.process.wait()
        equal(numbers(s.call("snapshot", s.pid, "--trace", "-o", "dead"), s.folder + "/dead"), (175, 0, 0), "events")
        found = trace_reader.events(s.folder + "/dead")
        equal([count(found, size) for size in (111, 222, 444)], [50, 9, 33], "the dead process")
        equal(len(trace_reader.events(s.folder + "/stopped")), 109, "the stopped process")
        again = "%s/caller.%s.snapshot.trace" % (s.folder, s.pid)
        equal(numbers(s.call("snapshot", s.pid, "--trace"), again)[0], 175, "again, into a folder of its own name")


def flight():
    """The newest events are all there; with the overwritten ones they are all that happened."""
    with service(["--trace", "--flight"], "make", 700000, 111, "make", 500, 222, "say", "a", "wait") as s:
        s.reach("a")
        written, older, lost = numbers(s.call("snapshot", s.pid, "--trace", "-o", "t"))
        trace_reader.check_all(written + older + lost, 1401000)
        found = trace_reader.events(s.folder + "/t", losses=True)
        equal((len(found), count(found, 222)), (written - trace_reader.life(s.folder + "/t"), 500), "events")
        check(older > 0, older)


def amid():
    """Amid calls a snapshot is one moment of all CPUs: a block is freed before the next one is allocated."""
    with service(["--trace", "--flight"], "make", 300000, 111, "say", "a", "make", 2000000000, 222) as s:
        s.reach("a")
        longest = 0
        for _ in range(tap.pick(4, 20)):
            said = s.call("snapshot", s.pid, "--trace", "-o", "t", "--force", "--last", "2ms")
            found = trace_reader.events(s.folder + "/t", losses=True)
            equal(numbers(said, s.folder + "/t")[0], len(found), said)
            names = [e.name for e in found if e.time > found[-1].time - complete(said)]
            longest = max(longest, len(names))
            wrong = [i for i in range(1, len(names)) if names[i] == names[i - 1]]
            equal(wrong, [], "two of one kind behind one another")
        check(longest > 1000, longest)


def last():
    with service(["--trace", "--flight"], "slow", 400, 111, "say", "a", "wait") as s:
        s.reach("a")
        whole = numbers(s.call("snapshot", s.pid, "--trace", "-o", "whole"), s.folder + "/whole")
        s.call("snapshot", s.pid, "--trace", "-o", "part", "--last", "100ms")
        equal(whole, (800, 0, 0), "all events")
        found, part = trace_reader.events(s.folder + "/whole"), trace_reader.events(s.folder + "/part", losses=True)
        want = [e for e in found if e.time >= found[-1].time - 0.1]
        check(abs(len(part) - len(want)) <= 1 and len(part) > 10, len(part), len(want))
        equal([(e.name, e.address) for e in part[1:]], [(e.name, e.address) for e in found[-len(part) + 1:]], "events")


def mistakes():
    with service([], "hold", 60, 600000, "say", "a", "wait") as s:
        s.reach("a")
        for words, code, line in (((s.pid, "--trace"), 1, "writes no events: restart it with allium trace"),
                                  ((s.pid, "--last", "1s"), 2, "--last needs --trace"),
                                  ((s.pid, "--trace", "--last", "soon"), 2, "--last"),
                                  (("999999999", "--trace"), 1, "999999999")):
            said = s.call("snapshot", *words, code=code)
            check(line in said and said.count("\n") <= 2, words, said)
        equal(sorted(os.listdir(s.folder)), ["runtime"], "what is left behind")


tap.main([
    ("a snapshot changes nothing", waiting),
    ("processes that are stopped, or were killed", stopped),
    ("rings that overwrite", flight),
    ("a snapshot amid calls", amid),
    ("--last", last),
    ("first mistakes", mistakes),
])
