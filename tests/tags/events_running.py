# SPDX-License-Identifier: BSD-2-Clause
"""The events of a process that runs already, switched by `allium set PID trace=LIST` and by `allium trace PID`: with
liballium.so alone, and beside the agent. What happened while a list was in force is what the program was told to do.
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter

sys.dont_write_bytecode = True
import building
import tap
from building import linked, quiet, scratch
from tap import built, check, equal, private_dir, run

HERE = os.path.dirname(os.path.abspath(__file__))
ALLIUM = built("ALLIUM")
OWN = re.compile(r" shop:(tick|noisy|late): .* count = (\d+) \}$")
CALL = re.compile(r" allium:(malloc|malloc_begin|free|free_end): .*(?:size = 1111|ptr = )")


def program():
    out = scratch("running")
    if not os.path.exists(out):
        quiet(["gcc", "-O2", "-I", building.INCLUDE, *building.STRICT, os.path.join(HERE, "running.c"), "-o", out,
               *linked()])
    return out


def late_library():
    out = scratch("running_late.so")
    if not os.path.exists(out):
        quiet(["gcc", "-O2", "-fPIC", "-shared", "-I", building.INCLUDE, *building.STRICT,
               os.path.join(HERE, "running_late.c"), "-o", out, *linked()])
    return out


def read(folder):
    """-> {"tick": the counts in their order, "noisy": ..., "late": ... if there are any, "malloc": how many, ...};
    babeltrace2 warns of nothing.
    """
    done = run(["babeltrace2", folder + "/ust"])
    equal((done.returncode, done.stderr.decode()), (0, ""), "babeltrace2")
    found, calls = {"tick": [], "noisy": []}, Counter()
    for line in done.stdout.decode().splitlines():
        own, call = OWN.search(line), CALL.search(line)
        if own:
            found.setdefault(own.group(1), []).append(int(own.group(2)))
        elif call:
            calls[call.group(1)] += 1
    return {**found, **calls}


class Running:
    """The program, which has begun; `ticks` are those that it has written, or not, as they were off."""

    def __init__(self, folder, options, agent_options, word):
        self.folder, self.ticks = folder, 0
        os.makedirs(folder + "/runtime", mode=0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=folder + "/runtime")
        lines = ""
        if options is not None:
            lines = tap.succeed([ALLIUM, "env", *options], env=self.env).stdout.decode()
            lines += 'export ALLIUM_SITES="${ALLIUM_SITES:-0}%s"; ' % agent_options
        self.process = subprocess.Popen(["sh", "-c", lines + 'exec "$@"', "sh", program(), *word], env=self.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = str(self.process.pid)
        self.work(1)

    def work(self, n):
        """-> the counts of the events that it writes now; or loads a library, and writes none"""
        before = self.ticks
        self.process.stdin.write(b"%s\n" % str(n).encode())
        self.process.stdin.flush()
        self.ticks = int(self.process.stdout.readline())
        return list(range(before + 1, self.ticks + 1))

    def call(self, *words, code=0):
        """-> what it printed"""
        done = run([ALLIUM, *words], env=self.env, cwd=self.folder)
        equal(done.returncode, code, "%s: %s" % (words, done.stderr))
        return (done.stdout + done.stderr).decode()

    def set(self, action):
        """-> what is said of events"""
        return re.search(r"(?:, |: )trace (.*)\n", self.call("set", self.pid, *([action] if action else []))).group(1)

    @contextlib.contextmanager
    def traced(self, name, *options):
        """-> the trace, once it has ended"""
        found = {}
        tracer = subprocess.Popen([ALLIUM, "trace", "-o", name, *options, self.pid], env=self.env, cwd=self.folder,
                                  stderr=subprocess.PIPE, text=True)
        try:
            line = tracer.stderr.readline()
            check("tracing process %s into %s; Ctrl-C ends the trace" % (self.pid, name) in line, line)
            yield found
            tracer.send_signal(signal.SIGINT)
            _, said = tracer.communicate(timeout=60)
            equal(tracer.returncode, 0, said)
            check(", 0 lost\n" in said, said)
            found.update(read(self.folder + "/" + name))
        finally:
            tracer.kill()
            tracer.wait()


@contextlib.contextmanager
def running(options=None, agent_options="", word=()):
    with private_dir() as folder:
        p = Running(folder, options, agent_options, word)
        try:
            yield p
        finally:
            p.process.kill()
            p.process.communicate()


def library_alone():
    """Nobody has started it for a trace. Each trace has what happened in it, and leaves the switch as it was."""
    with running() as p:
        equal(p.set(None), "off", "at first")
        with p.traced("all") as found:
            want = p.work(50)
            equal(p.set(None), "on: user", "meanwhile")
        equal((found["tick"], found["noisy"]), (want, want), "all events")
        equal(p.set(None), "off", "after it")
        p.work(60)
        with p.traced("some", "--events", "shop:*,!shop:noisy") as found:
            want = p.work(70)
        equal((found["tick"], found["noisy"]), (want, []), "the second trace, in rings that were there")
        p.work(60)
        with p.traced("where", "--where", "event:shop:noisy") as found:
            want = p.work(10)
        equal((found["tick"], found["noisy"]), ([], want), "--where")


def selected():
    """Events that are switched on without a reader stay in the rings."""
    with running() as p:
        equal(p.set("trace=shop:noisy"), "on: shop:noisy", "set")
        want = p.work(30)
        equal(p.set("trace=off"), "off", "off")
        p.work(40)
        equal(p.set("trace=on"), "on: shop:noisy", "what was selected")
        want += p.work(20)
        p.call("snapshot", p.pid, "--trace", "-o", "s")
        equal(read(p.folder + "/s"), {"tick": [], "noisy": want}, "snapshot")
        with p.traced("t", "--events", "shop:tick") as found:
            want = p.work(5)
        equal((found["tick"], found["noisy"]), (want, []), "a trace with another list")
        equal(p.set(None), "on: shop:noisy", "the selection is back")
        for again in range(3):
            with p.traced("on%d" % again) as found:
                want = p.work(5)
            equal((found["tick"], found["noisy"]), ([], want), "a trace of what is selected")


def beside_agent():
    """An agent that is ready to trace: its calls and the program's events, each by itself."""
    with running(["--trace"]) as p:
        equal(p.set(None), "off", "at first")
        for number, (listed, calls, ticks, noisy) in enumerate((
                (None, 1, 0, 0), ("shop:*", 0, 1, 1), ("alloc,shop:tick", 1, 1, 0), ("user,!shop:tick", 0, 0, 1),
                ("alloc", 1, 0, 0))):
            with p.traced("t%d" % number, *(["--events", listed] if listed else [])) as found:
                want = p.work(40)
                equal(p.set(None), "on: %s" % (listed or "alloc"), "meanwhile")
            equal((found.get("malloc", 0), found.get("free", 0)), (40 * calls, 40 * calls), "calls: %s" % listed)
            equal((found["tick"], found["noisy"]), (want * ticks, want * noisy), "own events: %s" % listed)
            equal(p.set(None), "off", "after it")
        equal(p.set("trace=shop:noisy"), "on: shop:noisy", "set")
        equal(p.set("trace=off"), "off", "set")
        equal(p.set("trace=on"), "on: shop:noisy", "set")
        equal(p.set("trace=alloc,user"), "on: alloc,user", "set")


def beside_samples():
    """An agent that only samples: the program's own events go into rings of the library."""
    with running([]) as p:
        check("trace" not in p.call("set", p.pid, "period=64K"), "nothing is said of events that nobody asked for")
        with p.traced("t") as found:
            want = p.work(40)
        equal(found, {"tick": want, "noisy": want}, "own events")


def chosen_at_start():
    """The events at the beginning of calls need hooks of their own."""
    with running(["--trace"], ",begin") as p:
        equal(p.set("trace=begin"), "on: begin", "set")
        p.set("trace=off")
        with p.traced("t", "--events", "begin,shop:tick") as found:
            want = p.work(30)
        calls = dict.fromkeys(("malloc", "malloc_begin", "free", "free_end"), 30)
        equal(found, {"tick": want, "noisy": [], **calls}, "events")
        with p.traced("u", "--events", "shop:tick") as found:
            want = p.work(30)
        equal(found, {"tick": want, "noisy": []}, "without calls")


def loaded_later():
    """A list is in force for the events of libraries that are loaded later, also for the second time; then another."""
    library = "load " + late_library()
    for options in None, ["--trace"]:
        with running(options) as p:
            with p.traced("t", "--events", "shop:*,!shop:noisy") as found:
                ticks, late = p.work(10), []
                for n in 20, 7:
                    p.work(library)
                    late += p.work(n)
                    p.work("unload")
                    ticks += late[-n:] + p.work(5)
            equal(found, {"tick": ticks, "noisy": [], "late": late}, "of a process, %s" % options)
            p.work(library)
            p.work(9)
            with p.traced("u", "--events", "shop:*,!shop:late") as found:
                want = p.work(6)
                p.set("trace=shop:late")
                late = p.work(8)
            twice = [count for count in want for _ in range(2)]
            equal(found, {"tick": want, "noisy": twice, "late": late}, "another list, %s" % options)


def busy():
    """Lists change to and fro while three threads write: each event once at most, in order, and none of another list."""
    with running(word=["busy"]) as p:
        with p.traced("t", "--events", "shop:tick") as found:
            for i in range(40):
                p.set("trace=" + ("shop:tick", "off", "shop:*,!shop:noisy", "on", "other:*")[i % 5])
        counts = found["tick"]
        equal(found["noisy"], [], "never on")
        equal(len(counts), len(set(counts)), "each once")
        equal(p.set(None), "off", "after it")
        last = p.work(1)[-1]
        check(counts and max(counts) <= last, len(counts), last)


def mistakes():
    """What the process cannot write gets one line, and changes nothing."""
    with running() as p, running(["--trace"]) as agent:
        for of, listed, line in ((p, "alloc", "writes no events of malloc: restart it with allium trace"),
                                 (p, "shop:*,begin", "writes no events of malloc"),
                                 (p, "tag", "writes no events of code tags: restart it with allium trace --events tag"),
                                 (agent, "begin", "at the beginning of calls: restart it with allium trace --events b"),
                                 (agent, "alloc,tag", "writes no events of code tags")):
            for words in (("set", of.pid, "trace=" + listed), ("trace", "-o", "t", "--events", listed, of.pid)):
                said = of.call(*words, code=1)
                check(line in said and said.count("\n") == 1, words, said)
            check(not os.path.exists(of.folder + "/t"), "no folder is left")
            equal(of.set(None), "off", "nothing has changed")
        for listed in ("", "maybe", "alloc,"):
            said = p.call("set", p.pid, "trace=" + listed, code=2)
            check("use on, off or a list of events" in said and said.count("\n") == 1, said)
        said = p.call("snapshot", p.pid, "--trace", code=1)
        check("has written no events yet: allium set %s trace=user" % p.pid in said, said)


tap.main([
    ("a process with liballium.so alone", library_alone),
    ("a selection stays", selected),
    ("beside an agent that is ready to trace", beside_agent),
    ("beside an agent that samples", beside_samples),
    ("groups that were chosen at the start", chosen_at_start),
    ("libraries that are loaded later", loaded_later),
    ("switched while threads write", busy),
    ("what a process cannot write", mistakes),
])
