# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --sum` of a process that runs already: figures against what the process was told to do; what was lost, to
the unit; libraries that take the place of others.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import json_schemas
import replaced_libraries
import tap
from tap import built, check, equal
from traced_service import service

ALLIUM = built("ALLIUM")
EVENTS = os.path.join(built("TEST_CLI"), "trace_sum_events")


class Sums:
    """`allium trace --sum` of the service. After the block: its rows, its text, what it said."""

    def __init__(self, s, spec, *options, json_rows=True):
        self.json_rows = json_rows
        words = ["--json", "--top", "0"] if json_rows else []
        self.tool = subprocess.Popen([ALLIUM, "trace", "--sum", spec, *words, *options, s.pid], env=s.env, cwd=s.folder,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.tool.stderr.readline()
        check("adding up events of process %s; Ctrl-C stops adding" % s.pid in line, line)

    def end(self, how=signal.SIGINT):
        if how:
            self.tool.send_signal(how)
        self.text, self.said = self.tool.communicate(timeout=60)
        equal(self.tool.returncode, 0, self.said)
        if self.json_rows:
            document = json.loads(self.text)
            json_schemas.check(document)
            self.rows = document["rows"]
        return self


@contextlib.contextmanager
def summed(s, spec, *options, **how):
    sums = Sums(s, spec, *options, **how)
    try:
        yield sums
        sums.end()
    finally:
        sums.tool.kill()
        sums.tool.wait()


def state(s):
    return re.search(r", trace (.*)\n", s.call("set", s.pid)).group(1)


def calls():
    """Each call while it ran, none before, none after; by each field; the selection of events stays as it was."""
    steps = []
    for i in range(8):
        steps += ["wait", "make", 60, 222, "hold", 7, 3000, "say", i]
    with service(["--trace"], "make", 50, 111, "say", "a", *steps, "wait") as s:
        s.reach("a")
        total = {"count": 67, "sum_bytes": 60 * 222 + 7 * 3000, "min_bytes": 222, "max_bytes": 3000}
        for i, (spec, key, want) in enumerate((
                ("malloc.size", None, {None: total}),
                ("malloc.size,by=size", "size_bytes", {222: {"count": 60, "sum_bytes": 60 * 222},
                                                       3000: {"count": 7, "sum_bytes": 7 * 3000}}),
                ("alloc.size,by=thread", "thread", {int(s.pid): total}),
                ("alloc.size,by=pid,event", "event", {"malloc": total}),
                ("free", None, {None: {"count": 60}}),
                ("malloc.size,by=site", "site", {"make": {"count": 60, "max_bytes": 222},
                                                 "two": {"count": 7, "min_bytes": 3000}}))):
            equal(state(s), "off", "before")
            with summed(s, spec) as sums:
                equal(state(s), "on: alloc", "meanwhile")
                s.go_on()
                s.reach(str(i))
            found = {row[key].split()[0] if key == "site" else row.get(key): row for row in sums.rows}
            equal({k: {name: found.get(k, {}).get(name) for name in figures} for k, figures in want.items()}, want,
                  spec)
            equal((len(found), {row["lost_events"] for row in sums.rows}, sums.said), (len(want), {None}, ""), spec)
        check(re.match(r"make caller\.c:\d+$", [row["site"] for row in sums.rows if row["count"] == 60][0]), sums.rows)
        with summed(s, "malloc,by=cpu") as sums:
            s.go_on()
            s.reach("6")
        equal(sum(row["count"] for row in sums.rows), 67, "events of all CPUs")
        check(all(0 <= row["cpu"] < os.cpu_count() for row in sums.rows), sums.rows)
        s.call("set", s.pid, "trace=alloc")
        with summed(s, "malloc.size,by=site", json_rows=False) as sums:
            s.go_on()
            s.reach("7")
            said = s.call("trace", "--sum", "malloc", s.pid, code=1)
            check("another allium trace reads the events of process" in said, said)
        check(re.search(r"SITE +COUNT .*\n(.*\n)?make caller\.c:\d+ +60 ", sums.text), sums.text)
        equal(state(s), "on: alloc", "a selection that was on")


def ends():
    """The process ends, or the time is over; reports at intervals; an alert."""
    with service(["--trace"], "make", 1, 1, "say", "a", "wait", "make", 60, 222, "say", "b", "wait", "make", 5,
                 333) as s:
        s.reach("a")
        done = s.call("trace", "--sum", "malloc", "--duration", "50ms", "--json", s.pid)
        equal((json.loads(done.split("allium: ")[0])["rows"], "no event malloc came" in done), ([], True), done)
        alerts = ["--alert", "count>=60", "--exec", "echo x >>%s/alerts" % s.folder]
        sums = Sums(s, "malloc.size", "--interval", "20ms", "-o", "table", *alerts, json_rows=False)
        s.go_on()
        s.reach("b")
        tap.wait_until(lambda: os.path.exists(s.folder + "/alerts"), 60, "the alert")
        s.go_on()
        sums.end(None)
        with open(s.folder + "/table") as file:
            tables = file.read().split("\n\n")
        check(len(tables) > 1 and re.search(r"COUNT.*\n +65 ", tables[-1]), tables[-1])
        with open(s.folder + "/alerts") as file:
            equal(file.read(), "x\n", "alerts")
        check("alert: count>=60" in sums.said, sums.said)


def replaced():
    """Libraries that come to the address of one that has gone: each call is that of its own library."""
    turns = tap.pick(200, 2000)
    with replaced_libraries.built_in_folder() as (loader, *words):
        for _ in range(5):  # until both were at one address: the thread's memory may come there first
            with service(["--trace"], *words, turns, "waits", program=loader) as s:
                s.reach("ready")
                with summed(s, "malloc.size,by=site") as sums:
                    s.go_on()
                    same, taken = map(int, s.process.stdout.readline().split())
            check("lost" not in sums.said, sums.said)
            replaced_libraries.check_calls(sums.rows, turns, taken, constructed=0)
            if same > turns // 2:
                return
    check(False, "the libraries were not at one address", same)


def own(s, n):
    s.process.stdin.write(b"%d\n" % n)
    s.process.stdin.flush()
    s.reach("done")


def price_of(n):
    return sum((i % 100) / 4 - 3 for i in range(n))


def own_events():
    """A process that carries liballium.so alone: sums by its fields, by thread and by CPU; then those of none."""
    with service(None, "steps", program=EVENTS) as s:
        own(s, 10)
        with summed(s, "shop:order_done.price,by=status,customer") as sums:
            own(s, 500)
        found = {(row["status"], row["customer"]): row["count"] for row in sums.rows}
        equal(found, {(status, name): n for status in range(3) for name, n in
                      (("Ann", 400), ("a name that is longer than a key…", 100))}, "rows")
        equal(sum(row["sum"] for row in sums.rows), 3 * price_of(500), "prices")
        with summed(s, "shop:order_done,by=thread,event") as sums:
            own(s, 300)
        equal(([row["count"] for row in sums.rows], {row["event"] for row in sums.rows}),
              ([300] * 3, {"shop:order_done"}), "threads")
        with summed(s, "shop:order_done.price,by=cpu") as sums:
            own(s, 300)
        equal(sum(row["count"] for row in sums.rows), 900, "events of all CPUs")
        for spec, line in (("shop:nothing", "no event shop:nothing came"),
                           ("shop:order_done,by=site", "shop:order_done has no field site")):
            with summed(s, spec) as sums:
                own(s, 10)
            check(line in sums.said, sums.said)
        said = s.call("trace", "--sum", "malloc", s.pid, code=1)
        check("writes no events of malloc: restart it with allium trace" in said, said)


def losses():
    """While allium is stopped the rings fill: what is in the rows and what is lost is what happened."""
    n = 100000
    with service(None, "steps", program=EVENTS) as s:
        own(s, 1)
        for as_json in True, False:
            with summed(s, "shop:order_done.id,by=status", json_rows=as_json) as sums:
                os.kill(sums.tool.pid, signal.SIGSTOP)
                own(s, n)
                os.kill(sums.tool.pid, signal.SIGCONT)
            lost = int(re.search(r"allium: (\d+) events were lost, and are in no row", sums.said).group(1))
            check("allium: lost: %d as the reader was late\n" % lost in sums.said, sums.said)
            if as_json:
                equal(sum(row["count"] for row in sums.rows) + lost, 3 * n, "events")
                equal({row["lost_events"] for row in sums.rows}, {lost}, sums.rows)
            else:
                check(re.search(r"\n *0 +(≥|>=) \S+ +(≥|>=) \S+ +(≥|>=) \S+ +~ \S+ +~ \S+ +(≥|>=) ", sums.text),
                      sums.text)


def mistakes():
    with service([], "hold", 60, 600000, "say", "a", "wait") as s:
        s.reach("a")
        for words, code, line in ((("malloc", s.pid), 1, "writes no events: restart it with allium trace"),
                                  (("x:y", s.pid), 1, "writes no events: restart it with allium trace"),
                                  (("malloc", str(os.getpid())), 1, "process %d" % os.getpid()),
                                  (("mallok", s.pid), 2, "there is no event mallok")):
            said = s.call("trace", "--sum", *words, code=code)
            check(line in said and said.count("\n") <= 2, words, said)


tap.main([
    ("calls of a running process, by each field", calls),
    ("the process ends, the time is over, reports, an alert", ends),
    ("libraries that take the place of others", replaced),
    ("a process with liballium.so alone", own_events),
    ("losses, to the unit", losses),
    ("first mistakes", mistakes),
])
