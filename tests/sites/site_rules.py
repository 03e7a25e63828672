# SPDX-License-Identifier: BSD-2-Clause
"""`allium set` of call sites: their stacks, counted exactly from the next call on and while it is asked, beside what
the program was told to do.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import agent_env, built, check, equal, private_dir, run, succeed

SCRATCH = tempfile.TemporaryDirectory(prefix="allium-sites-asked-")
PERIOD = 512 << 10
PLUGIN = """#include <stdlib.h>
extern void *volatile kept;
void *volatile kept;
void plug(size_t bytes) { kept = malloc(bytes); free(kept); __asm__ volatile("" ::: "memory"); }
"""


def compiled():
    out = os.path.join(SCRATCH.name, "asked")
    if not os.path.exists(out):
        succeed([
            "gcc", "-g", "-O1", "-fno-builtin", "-Wall", "-Wextra", "-Wshadow", "-Werror",
            os.path.join(HERE, "site_rules.c"), "-o", out
        ])
    return out


def plugin():
    out = os.path.join(SCRATCH.name, "plugin.so")
    if not os.path.exists(out):
        with open(out + ".c", "w") as source:
            source.write(PLUGIN)
        succeed(["gcc", "-g", "-O1", "-fno-builtin", "-fPIC", "-shared", out + ".c", "-o", out])
    return out


class Asked:
    """site_rules.c at work."""

    def __init__(self, ledgers, **env):
        self.env = dict(os.environ, ALLIUM_DIR=ledgers)
        self.process = subprocess.Popen([compiled()], env=agent_env(ledgers, PERIOD, ALLIUM_SITES="1", **env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        equal(self.process.wait(30), 0, "its code")
        self.process.stdout.close()

    def do(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        return self.process.stdout.readline().decode().strip()

    def set(self, *words, pid=None):
        return succeed([built("ALLIUM"), "set", str(pid or self.pid), *words], env=self.env).stdout.decode()

    def stacks(self, *words, pid=None):
        """{(function, who called it): (calls, bytes)}, and what stands on stderr"""
        done = succeed([built("ALLIUM"), "sites", str(pid or self.pid), "--stacks", "--json", *words], env=self.env)
        rows = {}
        for row in json.loads(done.stdout)["rows"]:
            functions = [line.split(" (")[0] for line in row["stack"]]
            caller = next(f for f in functions if f in ("by_one", "by_two"))
            key = row["function"], caller
            check(key not in rows and functions[-1] == "_start" and row["function"] in functions[:2], "stack", row)
            rows[key] = row["allocations"], row["allocated_bytes"]
        return rows, done.stderr.decode()

    def made(self, function, pid=None):
        done = succeed([built("ALLIUM"), "sites",
                        str(pid or self.pid), "--json", "--where", "func:" + function], env=self.env)
        return sum(row["allocations"] for row in json.loads(done.stdout)["rows"])

    def note(self, pid=None):
        listed = json.loads(succeed([built("ALLIUM"), "ps", "--json"], env=self.env).stdout)["rows"]
        return [row.get("note") for row in listed if row["pid"] == (pid or self.pid)][-1]


def on_and_off():
    with private_dir() as ledgers, Asked(ledgers) as asked:
        for line in "one foo 10 100", "two foo 20 100", "one bar 10 100":
            asked.do(line)
        said = asked.set("--where", "func:foo", "stacks")
        check(
            said.startswith("%d (asked): 2 of " % asked.pid)
            and said.endswith(" sites: stacks; stored for sites first called later\n"), said)
        equal(asked.note(), "stacks of 2 sites; sites first called later: stacks where func:foo", "what allium ps says")
        for line in "one foo 7 100", "two foo 5 64", "one bar 9 100", "two foo 100000 10", "one foo 1 1":
            asked.do(line)
        want = {("foo", "by_one"): (8, 701), ("foo", "by_two"): (100005, 1000320)}
        equal(asked.stacks(), (want, ""), "stacks")
        said = asked.set("--where", "func:foo", "stacks=off")
        check(said.endswith(" sites: stacks=off; no longer stored for sites first called later\n"), said)
        equal(asked.note(), None, "what allium ps says")
        for line in "one foo 1000 100", "two foo 1000 64", "one bar 1000 100":
            asked.do(line)
        equal(asked.stacks(), (want, ""), "stacks, off")
        equal((asked.made("foo"), asked.made("bar")), (10 + 20 + 7 + 5 + 100000 + 1 + 2000, 1019), "all calls")
        asked.set("--where", "func:foo", "stacks")
        asked.do("one foo 3 10")
        equal(asked.stacks()[0][("foo", "by_one")], (11, 731), "on again")
        folded = succeed([built("ALLIUM"), "sites", str(asked.pid), "--folded"],
                         env=asked.env).stdout.decode().splitlines()
        equal(sorted(int(line.split()[-1]) for line in folded), [11, 100005], "folded")


def first_called_later():
    with private_dir() as ledgers, Asked(ledgers) as asked:
        asked.do("one foo 10 100")
        said = asked.set("--where", "func:late or func:plug", "stacks")
        check(": no site of " in said and said.endswith("; stored for sites first called later\n"), said)
        asked.do("load " + plugin())
        for line in "two late 4 10", "one foo 10 100", "one plug 6 10":
            asked.do(line)
        equal(asked.stacks()[0], {("late", "by_two"): (4, 40), ("plug", "by_one"): (6, 60)}, "stacks")
        asked.set("stacks=off")
        for line in "two late 4 10", "one plug 6 10":
            asked.do(line)
        equal(asked.stacks()[0], {("late", "by_two"): (4, 40), ("plug", "by_one"): (6, 60)}, "stacks, off")


def all_of_them():
    with private_dir() as ledgers, Asked(ledgers) as asked:
        asked.do("one foo 10 100")
        asked.set("stacks")
        for line in "one foo 4 10", "two bar 5 100":
            asked.do(line)
        equal(asked.stacks()[0], {("foo", "by_one"): (4, 40), ("bar", "by_two"): (5, 500)}, "stacks")
        equal(asked.stacks("--where", "func:bar")[0], {("bar", "by_two"): (5, 500)}, "stacks where")


def wrappers():
    """Its callers are the sites; the wrapper stands in their stacks."""
    with private_dir() as ledgers, Asked(ledgers) as asked:
        asked.do("one wrapped 3 10")
        asked.set("--where", "func:wrapped", "stacks")
        asked.do("two wrapped 5 10")
        asked.do("one foo 5 10")
        equal(asked.stacks(), ({("wrapped", "by_two"): (5, 50)}, ""), "stacks")


def for_a_time():
    def lasting(seconds, is_over):
        with private_dir() as ledgers, Asked(ledgers) as asked:
            asked.do("one foo 10 100")
            asked.set("--where", "func:foo", "--for", "%ds" % seconds, "stacks")
            asked.do("one foo 3 10")
            if is_over():
                return True
            time.sleep(seconds + 0.1)
            asked.do("one foo 50 10")
            equal(asked.stacks()[0], {("foo", "by_one"): (3, 30)}, "stacks")
            equal(asked.note(), None, "what allium ps says")
    tap.in_time(lasting, 2, 8, 32)


def children():
    with private_dir() as ledgers, Asked(ledgers) as asked:
        asked.do("one foo 10 100")
        asked.set("--where", "func:foo", "stacks")
        asked.do("one foo 2 10")
        child = int(asked.do("fork"))
        for line in "two foo 3 10", "one bar 5 10":
            asked.do(line)
        equal(asked.stacks(pid=child)[0], {("foo", "by_two"): (3, 30)}, "stacks of the child")
        asked.set("--where", "func:foo", "stacks=off", pid=child)
        asked.do("two foo 3 10")
        equal(asked.stacks(pid=child)[0], {("foo", "by_two"): (3, 30)}, "stacks of the child, off")
        equal(asked.do("end"), "back", "the parent")
        asked.do("two foo 4 10")
        equal(asked.stacks()[0], {("foo", "by_one"): (2, 20), ("foo", "by_two"): (4, 40)}, "stacks of the parent")


def refusals():
    with private_dir() as ledgers, Asked(ledgers) as asked:
        asked.do("one foo 10 100")
        for words in ("--where", "func:foo", "latency"), ("--where", "func:foo", "fail=once"):
            done = run([built("ALLIUM"), "set", str(asked.pid), *words], env=asked.env)
            equal(done.returncode, 1, "code of " + words[-1])
            check(b"for call sites (`allium run --sites`), only stacks can be requested" in done.stderr,
                  done.stderr)
        done = run([built("ALLIUM"), "set", str(asked.pid), "--where", "func:nothing line:3", "stacks"], env=asked.env)
        equal((done.returncode, b"no site of process %d" % asked.pid in done.stderr), (1, True),
              "what fits none and cannot be kept")
        said = asked.stacks()
        equal(said[0], {}, "stacks")
        check("request them with `allium set %d --where QUERY stacks`" % asked.pid in said[1], said[1])
        for words in (["--interval",
                       "1s"], ["--interval", "1s", "--count",
                               "2"], ["--faults",
                                      "1s"], ["--openmetrics"], ["--allocinfo"], ["--freed"], ["--by", "file"]):
            for option in "--stacks", "--folded":
                done = run([built("ALLIUM"), "sites", str(asked.pid), option, *words], env=asked.env)
                equal((done.returncode, done.stdout), (2, b""), "code of %s with %s" % (option, words))
                check(done.stderr.startswith(b"allium: %s lists calls as they are: leave out --" % option.encode()),
                      done.stderr)
        for source in "none.allium", "a@1s":
            done = run([built("ALLIUM"), "sites", source, "--stacks"], env=asked.env)
            equal((done.returncode, b"--stacks takes one process id" in done.stderr), (2, True), "stacks of " + source)
    # Who has ended is asked for nothing any more.
    with private_dir() as ledgers:
        with Asked(ledgers) as asked:
            asked.do("one foo 10 100")
        done = succeed([built("ALLIUM"), "sites", str(asked.pid), "--stacks"], env=asked.env)
        check(
            b"no stacks of calls were recorded: nobody requested them while process %d ran" % asked.pid in done.stderr,
            done.stderr)


tap.main([
    ("stacks of some sites, on, off and on again, to the call", on_and_off),
    ("sites that are first called later, one in a library loaded later", first_called_later),
    ("all sites", all_of_them),
    ("callers of a wrapper", wrappers),
    ("for a time", for_a_time),
    ("children begin with it, and are asked for themselves", children),
    ("what cannot be asked", refusals),
])
