# SPDX-License-Identifier: BSD-2-Clause
"""`allium set` of places in modules that are loaded later: the process finds them by itself, nobody else is there."""
import glob
import os
import random
import struct
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from building import HOOKS, STRICT, linked, quiet, scratch
from steps import Steps
from tap import built, check, equal, private_dir, run, succeed


def plugin(name="liblater.so", *options):
    out = scratch(name)
    if not os.path.exists(out):
        quiet([
            "gcc", "-g", "-O2", *STRICT, *HOOKS, "-shared", "-fPIC", *options,
            os.path.join(HERE, "late_plugin.c"), "-o", out, *linked()
        ])
    return out


def made(steps, pid=None):
    """{function: (allocations, failed)} of what the plugin has."""
    return {f: (row[0], row[4]) for f, row in steps.rows(pid).items() if f.startswith("later_")}


def by_each_field():
    for query, place in (
        ("func:later_inner", "later_call"),
        ("func:*_inner", "later_call"),
        ("module:liblater", "later_call"),
        ("class:cache", "later_own"),
        ("name:*tenant=blue*", "later_own"),
        ("file:late_plugin.c class:cache", "later_own"),
        ("class:cache or func:at_?", "later_own"),
        ("!func:at_* !class:malloc", "later_own"),
        ("!(class:malloc or func:none)", "later_own"),
        ("func:later_line", "later_line"),
        ("comm:steps* class:cache", "later_own"),
    ):
        with private_dir() as ledgers, Steps(ledgers) as steps:
            steps.do("make a 1 10")
            said = steps.set("--where", query, "fail=every:2")
            met = "no tag of 3 matches now" if "at_" not in query or "!" in query else "3 of 3 tags"
            equal(said, "%d (%s): %s: fail=every:2; stored for modules loaded later\n" % (steps.pid, steps.comm, met),
                  query)
            equal(steps.do("open " + plugin()), 1, "loaded")
            for function in "later_call", "later_line", "later_own":
                hit = function == place or query.startswith("module:")
                equal(steps.do("call %s 10 20" % function), 5 if hit else 10, "made by %s with %s" % (function, query))
            if query.startswith("class:cache"):
                equal(made(steps), {"later_inner": (10, 0), "later_line": (10, 0), "later_own": (5, 5)}, "rows")


def what_it_cannot_know():
    """Lines and figures are not kept; files of malloc's callers, and names of C++, are neither yes nor no."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        for query in "line:40..50 or func:at_a", "live>1 or func:at_a", "dir:tags func:at_a":
            check(
                "; not for modules loaded later, of which only class, name, module, func and file are known"
                in steps.set("--where", query, "stacks"), query)
        equal(steps.note(), "stacks of 1 tags", "what ps says")
        code, said = steps.refused("--where", "line:4000", "stacks")
        check(code == 1 and "fits --where" in said, said)
        for query in ("file:late_plugin.c class:malloc", "!file:late_plugin.c", "func:later_cc*",
                      "!func:later_cc* class:cache"):
            steps.set("--where", query, "fail=every:1")
        equal(steps.do("open " + plugin()), 1, "loaded")
        equal(steps.do("call later_call 10 20"), 10, "made")
        equal(steps.do("call _Z8later_ccm 10 20"), 10, "made")
        equal(steps.do("call later_own 10 20"), 0, "made by what is not called so")
        # Who reads it knows: with the next command they are found.
        steps.set("--where", "func:none", "stacks")
        equal((steps.do("call later_call 10 20"), steps.do("call _Z8later_ccm 10 20")), (0, 0),
              "made after somebody looked")


def stripped():
    """Names of functions that the loader knows are left, and no others."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("--where", "func:later_*", "fail=every:1")
        equal(steps.do("open " + plugin("libbare.so", "-s")), 1, "loaded")
        equal([steps.do("call %s 3 20" % f) for f in ("later_own", "later_line", "later_call")], [0, 0, 3], "made")


def taken_back():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("--where", "class:cache", "fail=every:2")
        steps.set("--where", "module:liblater", "stacks")
        steps.set("--where", "class:cache", "latency", "--for", "60s")
        equal(steps.note(),
              "modules loaded later: fail where class:cache; stacks where module:liblater; latency where class:cache",
              "what ps says")
        said = steps.set("--where", "class:cache", "fail=off", "latency=off")
        equal(
            said, "%d (%s): no tag of 0 matches now: fail=off, latency=off; no longer stored for modules loaded later\n" %
            (steps.pid, steps.comm), "what it says")
        steps.set("--where", "func:later_inner", "stacks=off")
        equal(steps.note(), "modules loaded later: stacks where module:liblater; no stacks where func:later_inner",
              "what ps says")
        steps.do("open " + plugin())
        for function in "later_call", "later_line", "later_own":
            equal(steps.do("call %s 10 20" % function), 10, "made")
        equal({row["function"]: row["allocations"]
               for row in steps.details("--stacks")[0]}, {"later_line": 10, "later_own": 10}, "stacks")
        steps.set("stacks=off")
        equal(steps.note(), None, "what ps says")
        for function in "later_call", "later_line", "later_own":
            equal(steps.do("call %s 10 20" % function), 10, "made")
        equal({row["function"]: row["allocations"]
               for row in steps.details("--stacks")[0]}, {"later_line": 10, "later_own": 10}, "stacks")


def for_a_time():
    def lasting(seconds, is_over):
        with private_dir() as ledgers, Steps(ledgers) as steps:
            steps.set("--where", "class:cache", "--for", "%ds" % seconds, "fail=every:1")
            steps.do("open " + plugin())
            made = steps.do("call later_own 10 20")
            if is_over():
                return True
            equal(made, 0, "made at once")
            time.sleep(seconds + 0.1)
            equal(steps.do("call later_own 10 20"), 10, "made afterwards")
            equal(steps.note(), None, "what ps says")
    tap.in_time(lasting, 4, 16, 64)


def off():
    """Off and on again, of those that are counted; and all of them off."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("--where", "class:cache", "off")
        steps.do("open " + plugin())
        for function in "later_call", "later_own":
            equal(steps.do("call %s 10 20" % function), 10, "made")
        equal(made(steps), {"later_inner": (10, 0)}, "rows")
        steps.set("--where", "class:cache", "on")
        equal(steps.note(), None, "what ps says")
        steps.do("call later_own 4 20")
        equal(made(steps), {"later_inner": (10, 0), "later_own": (4, 0)}, "rows")
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("off")
        steps.set("--where", "class:cache", "on")
        equal(steps.note(), "tags off; modules loaded later: on where class:cache", "what ps says")
        steps.do("open " + plugin())
        for function in "later_call", "later_own":
            equal(steps.do("call %s 10 20" % function), 10, "made")
        equal(made(steps), {"later_own": (10, 0)}, "rows")
        steps.set("on")
        equal(steps.note(), None, "what ps says")


def children():
    """What a child loads that its parent has not; and what an exec'd program is not asked."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        steps.set("--where", "class:cache", "fail=every:2")
        child = steps.do("fork")
        steps.do("open " + plugin())
        equal(steps.do("call later_own 10 20"), 5, "made by the child")
        equal(made(steps, child), {"later_own": (5, 5)}, "rows of the child")
        equal(steps.note(child), "modules loaded later: fail where class:cache", "what ps says of the child")
        steps.set("--where", "class:cache", "fail=off", pid=child)
        equal(steps.do("call later_own 10 20"), 10, "made by the child, off")
        equal(steps.do("end"), 0, "its code")
        steps.do("open " + plugin())
        equal(steps.do("call later_own 10 20"), 5, "made by the parent")
        grandchild = steps.do("fork")
        equal(steps.do("call later_own 10 20"), 5, "made by a child of one that has it")
        equal(made(steps, grandchild), {"later_own": (5, 5)}, "its rows")
        equal(steps.do("end"), 0, "its code")
        steps.set("--where", "class:*", "fail=every:1")
        steps.process.stdin.write(b"exec %s\n" % os.readlink("/proc/%d/exe" % steps.pid).encode())
        equal(steps.do("make a 10 10"), 10, "made by the program that it becomes")
        equal(steps.note(), None, "what ps says of it")


def seen_by_others():
    """Once somebody has looked, what is asked is by place: it goes on as before, and is changed as any other."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("--where", "func:later_*", "fail=nth:15")
        steps.do("open " + plugin())
        equal(steps.do("call later_call 10 20"), 10, "made")
        said = steps.set("--where", "class:cache", "stacks")
        check("1 of 3 tags" in said, said)  # those with a descriptor: the third one was not met yet
        equal(steps.do("call later_call 10 20"), 9, "made, the 15th fails")
        steps.set("--where", "func:later_inner", "fail=every:1")
        equal(steps.do("call later_call 10 20"), 0, "made")
        steps.set("fail=off")
        equal(steps.do("call later_call 10 20"), 10, "made")


def apart():
    """A place that no file tells of, but by being met: what was found of it then counts, not what its process would
    say.
    """
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("open " + plugin())
        steps.set("--where", "func:later_outer", "fail=every:2")
        equal(steps.do("call later_outer 10 20"), 5, "made by a function that has another one inlined")
        said = steps.set("--where", "func:later_outer", "fail=every:1")
        check("no tag of" in said, said)
        equal(steps.do("call later_outer 10 20"), 10, "made by it after somebody looked, who knows better")
        child = steps.do("fork")
        equal(steps.do("call later_outer 10 20"), 10, "made by a child")
        steps.set("--where", "func:later_inlined", "fail=every:1", pid=child)
        equal(steps.do("call later_outer 10 20"), 0, "made by a child")
        steps.do("end")


def reloaded():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.set("--where", "func:later_inner", "fail=every:2")
        for _ in range(3):
            equal((steps.do("open " + plugin()), steps.do("call later_call 10 20"), steps.do("close")), (1, 5, 1),
                  "loaded, made, gone")
        equal((steps.do("open " + plugin("libother.so", "-DOTHER=1")), steps.do("call later_call 10 20")), (1, 5),
              "another one")


def too_many():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        for i in range(32):
            steps.set("--where", "class:none%d" % i, "stacks", *["fail=every:2"] * (i == 5))
        before = steps.note()
        check("stacks, fail where class:none5;" in before, before)
        steps.refused("--where", "class:none5", "fail=every:3")
        equal(steps.note(), before, "what a change that cannot be stored leaves")
        code, said = steps.refused("--where", "class:more", "stacks")
        check(code == 1 and "fits --where" in said and "not for modules loaded later: no room for more queries" in said,
              said)
        steps.do("make a 1 10")
        said = steps.set("--where", "func:at_a", "stacks")
        check(": 1 of 3 tags: stacks; not for modules loaded later: no room for more queries" in said, said)
        screen = succeed([built("ALLIUM"), "ps"], env=steps.env).stdout.decode().split()
        said = " ".join(screen)
        check(
            "stacks where class:none0; stacks where class:none1; stacks where class:none2; and 29 more queries" in said,
            said)
        check(steps.note().endswith("stacks where class:none31"), "JSON has them all", steps.note())
        steps.set("stacks=off")
        steps.set("--where", "class:cache", "fail=every:1")
        steps.do("open " + plugin())
        equal(steps.do("call later_own 10 20"), 0, "made")
        long = ",".join("x%d" % i for i in range(400))
        check("; not for modules loaded later" in steps.set("--where", "class:malloc,cache," + long, "latency"),
              "a query that is too long to be kept")


PAGE, LIST, PART, QUERY = 4096, 32768 * 64, 4096 + 32 * 2048, 2048  # as wire/ledger.h and wire/deferred_rules.h have it


def damage(file, draw):
    """What stands in the control file, changed here and there; and a state that all look at anew."""
    for _ in range(draw.randrange(1, 6)):
        side = draw.randrange(2)
        base = draw.choice(
            (16, 20, PAGE + side * LIST, PAGE + 2 * LIST + side * PART, PAGE + 2 * LIST + side * PART + PAGE))
        at = base + (draw.randrange(4) if base < PAGE else draw.randrange(3 * QUERY))
        many = bytes([draw.choice((0, 1, 3, 0x80, 0xff, draw.randrange(256)))]) * draw.choice(
            (1, 1, 2, 8, 300 if base >= PAGE else 1))
        os.pwrite(file, many, at)
    (state,) = struct.unpack("<i", os.pread(file, 4, 16))
    os.pwrite(file, struct.pack("<i", (state + 2) & 0x7ffffffe), 16)


def nonsense():
    """In the control file: the program lives, counts what is there, and whoever reads it says a line at most."""
    draw = random.Random(int(os.environ.get("ALLIUM_SEED", "1")))
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        steps.do("open " + plugin())
        (path,) = glob.glob(ledgers + "/*.control")
        file = os.open(path, os.O_RDWR)
        for turn in range(tap.pick(150, 3000)):
            os.pwrite(file, struct.pack("<Q", 0x314c5254434c4141), 0)
            if turn % 15 == 0:
                os.pwrite(file, bytes(PAGE - 8), 8)
                for query, word in (("class:cache or !(name:x* func:y)", "stacks"), ("func:later_*,at_*", "latency"),
                                    ("module:steps*,liblater", "fail=every:3")):
                    steps.set("--where", query, word)
            damage(file, draw)
            for what in ("make a 3 10", "make b 3 10", "call later_call 3 10", "call later_own 3 10",
                         "call later_line 3 10"):
                check(0 <= steps.do(what) <= 3, "turn", turn, what)
            if turn % 5 == 0:
                for words in ["ps"], ["set", str(steps.pid), "--where", "class:cache",
                                      "stacks=off"], ["tags", str(steps.pid)]:
                    done = run([built("ALLIUM"), *words], env=steps.env)
                    check(done.returncode in (0, 1) and done.stderr.count(b"\n") <= 2, "turn", turn, words, done)
        os.close(file)


def beside_the_agent():
    """One ledger for both: what is asked lies behind the agent's page."""
    with private_dir() as ledgers, Steps(ledgers, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1") as steps:
        steps.do("make a 1 10")
        steps.set("--where", "class:cache or func:later_inner", "fail=every:2")
        child = steps.do("fork")
        steps.do("open " + plugin())
        equal([steps.do("call %s 10 20" % f) for f in ("later_call", "later_own", "later_line")], [5, 5, 10],
              "made by a child")
        check("modules loaded later: fail where class:cache or func:later_inner" in steps.note(child),
              steps.note(child))
        equal(steps.do("end"), 0, "its code")
        steps.do("open " + plugin())
        equal([steps.do("call %s 10 20" % f) for f in ("later_call", "later_own", "later_line")], [5, 5, 10], "made")
        steps.set("fail=off")
        equal(steps.do("call later_own 10 20"), 10, "made")


tap.main([
    ("a plugin's places, by each field that the process knows", by_each_field),
    ("what is not known there is neither yes nor no", what_it_cannot_know),
    ("a plugin without a symbol table", stripped),
    ("queries are taken back, and one says no where another says yes", taken_back),
    ("what is kept for a time", for_a_time),
    ("off and on", off),
    ("children", children),
    ("places that somebody has looked for since", seen_by_others),
    ("a plugin that comes and goes", reloaded),
    ("places that no file tells of", apart),
    ("more than can be kept", too_many),
    ("nonsense in the control file", nonsense),
    ("with the agent in the process", beside_the_agent),
])
