# SPDX-License-Identifier: BSD-2-Clause
"""A process that runs already: `allium env --trace`, `allium set PID trace=on|off`, `allium trace PID`."""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
import trace_reader
from tap import built, check, equal
from trace_reader import count
from traced_service import service


# Without it, nothing makes the second write to a control page fail: the word that switches malloc's events off.
NO_ALLOC_OFF = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at)
{
    uint64_t word = 0;
    memcpy(&word, data, bytes == 8 && at == 8 ? 8 : 0);
    if (!(word & 1ull << 58))
        return syscall(SYS_pwrite64, fd, data, bytes, at);
    errno = EIO;
    return -1;
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return pwrite64(fd, data, bytes, at); }
"""


def attach():
    """A trace has what happened while it was on: each call, none before, none after. A second trace is another one."""
    with service(["--trace"], "make", 50, 111, "say", "a", "wait", "make", 60, 222, "fork", 3, "say", "b", "wait",
                 "make", 70, 333, "say", "c", "wait", "make", 80, 444, "say", "d", "wait") as s:
        s.reach("a")
        tracer = s.begin("-o", "one")
        check("another allium trace reads the events" in s.call("trace", s.pid, code=1), "two at once")
        s.go_on()
        s.reach("b")
        said = s.end(tracer)
        equal(trace_reader.calls(said, s.folder + "/one"), (120, 0, 0), said)
        found = trace_reader.events(s.folder + "/one")
        equal((len(found), count(found, 222)), (120, 60), "the first trace")
        s.go_on()
        s.reach("c")
        tracer = s.begin()
        s.go_on()
        s.reach("d")
        folder = s.folder + "/caller.%s.trace" % s.pid
        equal(trace_reader.calls(s.end(tracer), folder), (160, 0, 0), "the second trace")
        equal(count(trace_reader.events(folder), 444), 80, "its events")


def earlier():
    """Frees of blocks from before the trace are counted, and are in no figure."""
    with service(["--trace"], "keep", 30, 111, "say", "a", "wait", "keep", 20, 222, "drop", "say", "b", "wait") as s:
        s.reach("a")
        tracer = s.begin("-o", "t")
        s.go_on()
        s.reach("b")
        equal(trace_reader.calls(s.end(tracer), s.folder + "/t"), (20 + 50, 0, 0), "events")
        report = s.call("report", "t")
        check(re.search(r"\n  30 frees of blocks whose allocation is not in the trace: they are in no figure", report),
              report)
        total = json.loads(s.call("report", "--json", "t"))["total"]
        equal((total["allocations"], total["allocated_bytes"], total["live_bytes"]), (20, 20 * 222, 0), "figures")


def lost_earlier():
    """What was lost before the trace, when nobody read the rings, is no loss of the trace."""
    with service(["--trace"], "make", 50, 1, "say", "a", "wait", "make", 100000, 111, "say", "b", "wait", "make", 60,
                 222, "say", "c", "wait", agent_options=",buffer=64K") as s:
        s.reach("a")
        s.call("set", s.pid, "trace=on")
        s.go_on()
        s.reach("b")
        tracer = s.begin("-o", "t")
        s.go_on()
        s.reach("c")
        said = s.end(tracer)
        equal(trace_reader.calls(said, s.folder + "/t"), (120, 0, 0), said)
        equal(count(trace_reader.events(s.folder + "/t"), 222), 60, "events, and babeltrace2 warns of none discarded")
        equal(json.loads(s.call("events", "t", "--json").splitlines()[-1])["lost_events"], 0, "events")


def switches():
    """Switched on at run time without a reader, events stay in the rings; off, there are none."""
    with service(["--trace"], "make", 50, 111, "say", "a", "wait", "make", 60, 222, "say", "b", "wait", "make", 70, 333,
                 "say", "c", "wait", "make", 5, 555, "say", "d", "wait") as s:
        s.reach("a")
        check(", trace on: alloc\n" in s.call("set", s.pid, "trace=on"), "set")
        s.go_on()
        s.reach("b")
        check(", trace off\n" in s.call("set", s.pid, "trace=off"), "set")
        s.go_on()
        s.reach("c")
        s.call("set", s.pid, "trace=on")
        tracer = s.begin("-o", "t")
        s.go_on()
        s.reach("d")
        said = s.end(tracer)
        equal(trace_reader.calls(said, s.folder + "/t"), (10, 0, 0), "what was in the rings before is passed over")
        check(", trace on: alloc\n" in s.call("set", s.pid, "period=default"), "a switch that was on stays on")


def half_switched():
    """If a change of the switches fails halfway, the first half is undone."""
    with service(["--trace"], "make", 50, 111, "say", "a", "wait") as s:
        s.reach("a")
        check(", trace on: alloc\n" in s.call("set", s.pid, "trace=on"), "set")
        library = s.folder + "/no_alloc_off.so"
        tap.succeed(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=NO_ALLOC_OFF.encode())
        s.env.update(LD_PRELOAD=library, ASAN_OPTIONS="verify_asan_link_order=0")
        for words in ("trace", "--events", "user", "-o", "t", s.pid), ("set", s.pid, "trace=user"):
            check("Input/output error" in s.call(*words, code=1), words)
        del s.env["LD_PRELOAD"]
        check(", trace on: alloc\n" in s.call("set", s.pid, "period=default"), "the switches are as before")
        check(not os.path.exists(s.folder + "/t"), "a trace that did not begin")


def threads():
    """Switched to and fro while calls are made, the trace stays readable, and the program runs on."""
    with service(["--trace"], "make", 1, 1, "say", "a", "slow", 2000, 222, "say", "b", "wait") as s:
        s.reach("a")
        tracer = s.begin("-o", "t")
        for i in range(60):
            s.call("set", s.pid, "trace=" + ("off", "on")[i % 2])
        s.reach("b")
        said = s.end(tracer)
        written, lost, _ = trace_reader.calls(said, s.folder + "/t")
        found = trace_reader.events(s.folder + "/t")
        equal((len(found), lost), (written, 0), said)
        check(0 < count(found, 222) < 2000, count(found, 222))


def ends():
    """The trace ends with the process."""
    with service(["--trace"], "hold", 1, 600000, "say", "a", "wait", "make", 60, 222) as s:
        s.reach("a")
        tracer = s.begin("-o", "t")
        s.go_on()
        _, said = tracer.communicate(timeout=60)
        equal((tracer.returncode, trace_reader.calls(said, s.folder + "/t")), (0, (120, 0, 0)), said)
        equal(count(trace_reader.events(s.folder + "/t"), 222), 60, "events")
        listed = tap.succeed([built("ALLIUM"), "events", s.folder + "/t", "--where", "func:make"]).stdout.decode()
        equal(listed.count("\n"), 1 + 120, "allocations and frees of the function, by its name")
        check("has ended" in s.call("trace", s.pid, code=1), "a process that has ended")


def mistakes():
    with service([], "hold", 60, 600000, "say", "a", "wait") as s:  # some of it is sampled for sure
        s.reach("a")
        for words, code, line in ((("trace", s.pid), 1, "writes no events: restart it with allium trace"),
                                  (("set", s.pid, "trace=on"), 1, "writes no events: restart it with allium trace"),
                                  (("set", s.pid, "trace=maybe"), 2, "invalid trace=maybe"),
                                  (("trace", "999999999"), 1, "999999999"),
                                  (("trace", str(os.getpid())), 1, "process %d" % os.getpid()),
                                  (("trace", s.pid, "more"), 2, "too many arguments after PID"),
                                  (("trace", "--buffer", "1M", s.pid), 2, "--buffer needs a command"),
                                  (("trace", "--clock", "mono", s.pid), 2, "--clock needs a command"),
                                  (("trace", "--no-follow", s.pid), 2, "--no-follow needs a command"),
                                  (("trace", "--events", "user", s.pid), 1, "writes no events: restart it"),
                                  (("trace", "--function", ":main", "999999999"), 1, "999999999"),
                                  (("trace", "--clock", "mono", "--events", "x:*", "--", "true"), 2,
                                   "--clock is for the rings of the agent: use --events alloc,x:*"),
                                  (("env", "--flight"), 2, "--flight needs --trace"),
                                  (("env", "--trace", "--sites"), 2, "exclude each other")):
            said = s.call(*words, code=code)
            check(line in said and said.count("\n") <= 2, words, said)


tap.main([
    ("a trace of a running process", attach),
    ("blocks from before the trace", earlier),
    ("losses from before the trace", lost_earlier),
    ("switches at run time", switches),
    ("a switch that fails halfway", half_switched),
    ("many switches amid calls", threads),
    ("the process ends", ends),
    ("first mistakes", mistakes),
])
