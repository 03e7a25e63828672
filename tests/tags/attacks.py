# SPDX-License-Identifier: BSD-2-Clause
"""What programs and people may do to the library while it is at work: it goes on, as without it, and what it says is
so.
"""
import contextlib
import os
import re
import random
import select
import subprocess
import sys

sys.dont_write_bytecode = True
import building
import tap
from tap import built, check, equal, pick, private_dir, run

ACTIONS = ("on", "off", "stacks", "latency", "fail=once", "fail=every:50", "fail=p:0.01", "fail=off", "stacks=off",
           "latency=off")


class Case:
    """A case of attacks.c, or another program, with a folder for its ledgers."""

    def __init__(self, *words, binary=None, prefix=(), **env):
        self.folder = private_dir()
        self.env = dict(os.environ, ALLIUM_DIR=self.folder.__enter__())
        self.process = subprocess.Popen([*prefix, binary or building.program("gcc", ["-O2"], "attacks.c"), *words],
                                        env={**self.env,
                                             **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.kill()
        self.process.communicate()
        self.folder.__exit__(*why)

    def end(self):
        """Tells it to end; -> what it said last."""
        try:
            out, _ = self.process.communicate(b"\n", tap.TIMEOUT)
        except subprocess.TimeoutExpired:
            raise tap.Failed("it hangs")
        equal((self.process.returncode, out[-200:] if self.process.returncode else b""), (0, b""), "its code")
        return out.decode()

    def set(self, *words):
        return run([built("ALLIUM"), "set", str(self.process.pid), *words], env=self.env)

    def rows(self):
        rows, said = building.accounts(self.env["ALLIUM_DIR"], self.process.pid)
        equal([row for row in rows if row["live_objects"] < 0 or row["live_bytes"] < 0], [], "what is below zero")
        return {row["function"]: row for row in rows}, said


def mapping_handlers():
    """Handlers come in the midst of mmap() and its like, map as well, and fork: children return to what was
    interrupted.
    """
    with Case("mapping handlers", str(pick(1000, 10000))) as case:
        case.end()
        rows, said = case.rows()
        check(rows["by_main"]["allocations"] >= pick(1000, 10000), rows["by_main"])
        live = sum(row["live_objects"] for row in rows.values())
        check(not live or "could not be followed" in said or "not followed" in said, "mappings that live:", live, said)


@contextlib.contextmanager
def crowded():
    """Others want the one processor that is left to what is started here."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    others = []
    try:
        others += [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)
        for other in others:
            other.kill()
            other.wait()


def jumping_mappers():
    """A handler that leaves by a jump may leave the book of mappings locked: nobody waits for it time and again. Turns
    are long where others want the processor: who waits for so many hangs.
    """
    building.program("gcc", ["-O2"], "attacks.c")
    for machine in crowded, contextlib.nullcontext:
        with machine(), Case("jumping mappers", "2000") as case:
            equal(case.process.stdout.readline(), b"works\n", "what it says")
            case.end()
            case.rows()


def asked_all_the_time(words):
    """Whatever is asked of places while threads use them, load and unload them, and children are forked."""
    def test():
        chance = random.Random(8)
        with Case(*words()) as case:
            equal(case.process.stdout.readline(), b"works\n", "what it says")
            for _ in range(pick(25, 500)):
                where = chance.choice(((), ("--where", "func:small or func:plugin_make"), ("--where", "func:churn"),
                                       ("--where", "func:*a*")))
                what = chance.choice([action for action in ACTIONS if where or action in ("on", "off")])
                more = (
                    "--for",
                    "1s") if where and chance.randrange(2) and what not in ("on",) and not what.endswith("off") else ()
                case.set(*where, *more, what)
                if select.select([case.process.stdout], [], [], 0)[0]:
                    raise tap.Failed(
                        "it says %s, and its code is %s" % (case.process.stdout.read(), case.process.wait(tap.TIMEOUT)))
                if not chance.randrange(5):
                    case.rows()
            case.end()
            case.rows()
    return test


def plugin():
    path = building.scratch("plugin.so")
    building.quiet([
        "gcc", "-g", "-O2", "-fPIC", "-shared", *building.HOOKS,
        os.path.join(building.HERE, "plugin.c"), "-o", path, *building.linked()
    ])
    return path


def half_closed():
    """A library is unmapped before the loader forgets it; who forks in between has a child that is left with that."""
    for env in {}, {"LD_PRELOAD": built("ALLIUM_AGENT_FULL"), "ALLIUM_SITES": "1", "ALLIUM_PERIOD": "1"}:
        with Case("half closed", plugin(), **env) as case:
            case.end()


def little_stack():
    """A child's first request in a handler on a stack of 8 KiB, of which the kernel takes up to 3."""
    with Case("little stack", "8192") as case:
        case.end()


def first_in_child():
    """Of a child's threads one that it made comes to tags before the one that forked, whose words are its parent's
    still.
    """
    with Case("first in child") as case:
        child = int(case.end())
        rows, said = building.accounts(case.env["ALLIUM_DIR"], child)
        equal((building.by_function(rows)["small"], said), ((101, 2010, 50, 1000), ""), "the child's")


def limited():
    """Of a limit the program has three quarters at least; what it makes is followed where that leaves room, else
    counted.
    """
    for option, kib in ("-v", 7_000_000), ("-v", 4_500_000), ("-d", 1_100_000), ("-d", 2_200_000), ("-d", 6_000_000):
        with Case("fill", prefix=("sh", "-c", "ulimit %s %d; exec \"$@\"" % (option, kib), "sh")) as case:
            made = int(case.end())
            check(made << 10 >= kib * 3 // 4, "ulimit", option, kib, "leaves room for", made, "MiB")
            rows, said = case.rows()
            unfollowed = re.search(r"([\d,]+) objects are charged to no tag: there was no memory to follow them", said)
            check(unfollowed, "objects that are not followed are counted:", rows.get("small"), said)
            followed = rows["small"]["live_objects"] if "small" in rows else 0
            equal(followed + int(unfollowed.group(1).replace(",", "")), made, "objects, followed or not")


def interrupted():
    """A handler behind each of the library's instructions does what was interrupted, too: no count is wrong, and no
    peak absurd.
    """
    binary = building.program("gcc", ["-O2"], "stepped.c")
    with Case("like", str(pick(29, 1)), binary=binary) as case:
        turns = int(case.end())
        rows, _ = building.accounts(case.env["ALLIUM_DIR"], case.process.pid)
        by_name = {row["name"]: row for row in rows}
        for name in "told", "made":
            row = by_name[name]
            check(turns > pick(100, 2000) and row["allocations"] > 4 * turns, name, row["allocations"], "in", turns,
                  "turns")
            equal((row["live_objects"], row["live_bytes"]), (0, 0), "what lives of " + name)
            check(100000 <= row["peak_bytes"] <= row["peak_high_bytes"] < 300000, name, "peak", row["peak_bytes"],
                  row["peak_high_bytes"])


def interrupted_by_fork():
    """A child that goes on in what a handler interrupted that forked owes nothing for what was its parent's, whether or
    not it has used tags in the handler. If it has, what was interrupted may be added to its own counters: that is
    one object.
    """
    binary = building.program("gcc", ["-O2"], "stepped.c")
    for what in "fork", "both", "open":
        with Case(what, str(pick(17, 11)), binary=binary) as case:
            turns = int(case.end())
            ledgers = [name for name in os.listdir(case.env["ALLIUM_DIR"]) if name.endswith(".tags")]
            equal(len(ledgers), 1 + turns, "processes")
            for pid in sorted({int(name.split("-")[0]) for name in ledgers}):
                rows, _ = building.accounts(case.env["ALLIUM_DIR"], pid)
                owes = [(row["name"], row["live_objects"], row["live_bytes"]) for row in rows
                        if row["name"] != "told" and abs(row["live_objects"]) > (what != "fork")]
                equal(owes, [], "what lives of " + what)


def thrown():
    """Each failure of operator new is an exception, all of them are counted, and nothing is left of what was unwound.
    """
    for compiler in "g++", "clang++":
        binary = building.program(compiler, ["-O2"], "thrown.cc")
        with Case(str(pick(300, 20000)), binary=binary) as case:
            equal(case.process.stdout.readline(), b"works\n", "what it says")
            equal(case.set("--where", "class:new", "fail=every:7").returncode, 0, "code of set")
            caught = int(case.end())
            rows, said = building.accounts(case.env["ALLIUM_DIR"], case.process.pid)
            failed = sum(row["failed"] or 0 for row in rows)  # of two places in functions of one name, too
            check(caught == failed > 100 and not said, compiler, "caught", caught, "failed", failed, said)
            equal([row for row in rows if row["live_objects"]], [], "what lives")


tap.main([
    ("handlers that map, and fork in the midst of it", mapping_handlers),
    ("handlers that jump out of mmap() and its like", jumping_mappers),
    ("things are asked all the time", asked_all_the_time(lambda: ("churn",))),
    ("things are asked of a library that threads load and unload", asked_all_the_time(lambda: ("load", plugin()))),
    ("a child is made while a library is closed", half_closed),
    ("a handler on a little stack", little_stack),
    ("a child whose new thread comes to tags first", first_in_child),
    ("limits of address space and data", limited),
    ("a handler behind each instruction", interrupted),
    ("a handler that forks behind each instruction", interrupted_by_fork),
    ("operator new fails in the standard library's containers", thrown),
])
