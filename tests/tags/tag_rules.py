# SPDX-License-Identifier: BSD-2-Clause
"""`allium set` of places: on, off, made to fail; each from the next call on, by what the program counts itself."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from building import program, scratch
from steps import Steps
from tap import built, check, equal, private_dir, run, succeed


def off_and_on():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        for place in "abc":
            equal(steps.do("make %s 10 100" % place), 10, "made")
        said = steps.set("--where", "func:at_a", "off")
        equal(said, "%d (%s): 1 of 3 tags: off; stored for modules loaded later\n" % (steps.pid, "steps.c-gcc-O2-"),
              "what it says")
        for place in "abc":
            steps.do("make %s 5 100" % place)
        want = {"at_a": (10, 1000, 10, 1000, 0), "at_b": (15, 1500, 15, 1500, 0), "at_c": (15, 1500, 15, 1500, 0)}
        equal(steps.rows(), want, "rows")
        equal(steps.do("drop a 5"), 5, "dropped")  # born while it was off
        equal(steps.rows(), want, "after what was not counted was freed")
        equal(steps.do("drop a 4"), 4, "dropped")
        equal(steps.rows()["at_a"], (10, 1000, 6, 600, 0), "after counted ones were freed")
        steps.set("--where", "func:at_a", "on")
        steps.do("make a 1 64")
        equal(steps.rows()["at_a"], (11, 1064, 7, 664, 0), "on again")


def not_met_yet():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        equal(steps.set("--where", "func:at_b", "fail=every:2"),
              "%d (steps.c-gcc-O2-): 1 of 3 tags: fail=every:2; stored for modules loaded later\n" % steps.pid,
              "what it says")
        equal((steps.do("make b 10 10"), steps.do("make c 10 10")), (5, 10), "made at places that had not been met")


def in_a_folder_named_deleted():
    """What the kernel appends to the path of a deleted file may also stand within a path."""
    with private_dir() as ledgers, private_dir("/tmp") as here:
        folder = here + "/a (deleted) folder"
        os.mkdir(folder)
        with Steps(ledgers, folder=folder) as steps:
            steps.do("make a 1 10")
            check(": 1 of 3 tags: " in steps.set("--where", "func:at_b", "fail=every:2"), "tags that were not met yet")


def of_a_replaced_file():
    """Tags of the file that has taken the place of the program's are not the program's."""
    with private_dir() as ledgers, private_dir("/tmp") as here:
        with Steps(ledgers, folder=here) as steps:
            steps.do("make a 1 10")
            running = os.path.join(here, os.path.basename(program("gcc", ["-O2"], "steps.c")))
            os.unlink(running)
            os.rename(shutil.copy(program("gcc", ["-O2"], "own.c"), here), running)
            check("no tag of 1 matches now" in steps.set("--where", "class:cache", "fail=every:2"), "tags of another")


def all_of_them():
    with private_dir() as ledgers, Steps(ledgers, ALLIUM_TAGS="off") as steps:
        for place in "ab":
            steps.do("make %s 10 100" % place)
        equal(steps.rows(), {}, "rows of a program that was started with them off")
        equal(steps.set("--where", "func:at_b", "on"),
              "%d (steps.c-gcc-O2-): 1 of 3 tags: on; stored for modules loaded later\n" % steps.pid, "what it says")
        for place in "abc":
            steps.do("make %s 10 100" % place)
        equal(steps.rows(), {"at_b": (10, 1000, 10, 1000, 0)}, "rows")
        equal(steps.set("on"), "%d (steps.c-gcc-O2-): all tags on\n" % steps.pid, "what it says")
        for place in "abc":
            steps.do("make %s 1 50" % place)
        equal(steps.rows(), {"at_a": (1, 50, 1, 50, 0), "at_b": (11, 1050, 11, 1050, 0), "at_c": (1, 50, 1, 50, 0)},
              "rows")
        steps.set("off")
        for place in "abc":
            steps.do("make %s 7 50" % place)
            steps.do("drop %s 8" % place)
        equal(steps.rows(), {"at_a": (1, 50, 0, 0, 0), "at_b": (11, 1050, 10, 1000, 0), "at_c": (1, 50, 0, 0, 0)},
              "rows")


def failures():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        for place in "abc":
            steps.do("make %s 1 10" % place)
        steps.set("--where", "func:at_a", "fail=once")
        equal(steps.do("make a 100 10"), 99, "made of 100, one fails")
        steps.set("--where", "func:at_a", "fail=nth:30")
        equal((steps.do("make a 29 10"), steps.do("make a 1 10"), steps.do("make a 100 10")), (29, 0, 100), "made")
        steps.set("--where", "func:at_b or func:at_c", "fail=every:10")
        equal((steps.do("make b 100 10"), steps.do("make c 1000 10"), steps.do("make a 100 10")), (90, 900, 100),
              "made")
        equal(steps.rows(),
              {"at_a": (329, 3290, 329, 3290, 2), "at_b": (91, 910, 91, 910, 10), "at_c": (901, 9010, 901, 9010, 100)},
              "rows")
        steps.set("--where", "func:at_b", "fail=off")
        equal(steps.do("make b 100 10"), 100, "made")
        steps.set("--where", "func:at_c", "off")
        equal(steps.do("make c 100 10"), 100, "made while it is off")
        steps.set("--where", "func:at_c", "on")
        equal(steps.do("make c 100 10"), 90, "made when it is on again")
        steps.set("off")
        equal(steps.do("make c 100 10"), 100, "made while all are off")
        steps.set("on")
        equal(steps.do("make c 100 10"), 90, "made when all are on again")
        # Of 20,000 draws at 0.1, mean 2,000 and standard deviation 42.4: beyond 6 of them by chance 2 in a thousand
        # million times.
        steps.set("--where", "func:at_a", "fail=p:0.1")
        made = steps.do("make a 20000 10")
        check(abs(20000 - made - 2000) <= 254, "failed of 20000 with a chance of 0.1:", 20000 - made)
        steps.set("fail=off")
        equal([steps.do("make %s 100 10" % place) for place in "abc"], [100] * 3, "made")


def for_a_time():
    def lasting(seconds, is_over):
        with private_dir() as ledgers, Steps(ledgers) as steps:
            steps.do("make a 1 10")
            steps.set("--where", "func:at_a", "--for", "%ds" % seconds, "fail=every:1")
            made = steps.do("make a 10 10")
            if is_over():
                return True
            equal(made, 0, "made at once")
            steps.set("--where", "func:at_a", "--for", "1s", "off")
            time.sleep(seconds + 0.1)
            equal(steps.do("make a 10 10"), 10, "made afterwards")
            equal(steps.rows(), {"at_a": (11, 110, 11, 110, 10)}, "rows")
    tap.in_time(lasting, 2, 8, 32)


def children():
    """A child begins with what is asked of its parent; then each is asked for itself."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        steps.do("make b 1 10")
        steps.set("--where", "func:at_a", "fail=every:2")
        child = steps.do("fork")
        equal((steps.do("make a 10 10"), steps.do("make b 10 10")), (5, 10), "made by the child")
        equal(steps.rows(child), {"at_a": (5, 50, 5, 50, 5), "at_b": (10, 100, 10, 100, 0)}, "rows of the child")
        steps.set("--where", "func:at_b", "off", pid=child)
        steps.do("make b 10 10")
        equal(steps.rows(child)["at_b"], (10, 100, 10, 100, 0), "of the child, off")
        equal(steps.do("end"), 0, "its code")
        steps.do("make b 10 10")
        equal((steps.do("make a 10 10"), steps.rows()["at_b"]), (5, (11, 110, 11, 110, 0)), "of the parent")


def vfork_children():
    """Until it calls execve() a vfork child maps its parent's ledger: it is the parent's all the same."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        equal(steps.do("vfork"), 0, "the child")
        steps.set("--where", "func:at_a", "fail=every:2")
        listed = json.loads(succeed([built("ALLIUM"), "ps", "--json"], env=steps.env).stdout)["rows"]
        notes = [row["note"] for row in listed if row["pid"] == steps.pid]
        check(len(notes) == 1 and notes[0].startswith("fail of 1 tag"), "what ps says of the parent:", notes)
        check(steps.do("") > 0, "no child")
        equal(steps.do("make a 10 10"), 5, "made")


def failing_again():
    """How often a place was called counts from each change on, also when nothing was asked of it in between."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        steps.set("--where", "func:at_a", "fail=p:0.000001")
        steps.do("make a 50 10")
        steps.set("--where", "func:at_a", "fail=off")
        steps.set("--where", "func:at_a", "fail=once")
        equal(steps.do("make a 100 10"), 99, "made")


def details(steps, *words):
    done = succeed([built("ALLIUM"), "tags", str(steps.pid), "--json", *words], env=steps.env)
    return json.loads(done.stdout)["rows"], done.stderr.decode()


def stacks():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        for place in "abc":
            steps.do("make %s 3 10" % place)
        said = details(steps, "--stacks")[1]
        check("no stacks of calls were recorded: request them with `allium set" in said, said)
        steps.set("--where", "func:at_a or func:at_c", "stacks")
        for place, n in ("a", 10), ("b", 20), ("c", 30), ("a", 5):
            steps.do("make %s %d 100" % (place, n))
        listed = json.loads(succeed([built("ALLIUM"), "ps", "--json"], env=steps.env).stdout)["rows"]
        equal([row["note"] for row in listed if row["pid"] == steps.pid],
              ["stacks of 2 tags; modules loaded later: stacks where func:at_a or func:at_c"], "what ps says")
        rows, said = details(steps, "--stacks")
        equal(said, "", "what it says")
        equal({row["function"]: (row["allocations"], row["allocated_bytes"])
               for row in rows}, {"at_a": (15, 1500), "at_c": (30, 3000)}, "rows")
        for row in rows:
            frames = [frame.split(" ")[0] for frame in row["stack"]]
            equal(frames[:3], [row["function"], "make", "main"], "its stack")
        steps.set("stacks=off")
        steps.do("make a 10 100")
        equal(details(steps, "--stacks", "--where", "func:at_a")[0][0]["allocations"], 15, "after it was turned off")
        equal(steps.rows()["at_a"], (28, 2530, 28, 2530, 0), "the account")
        child = steps.do("fork")
        steps.do("make b 1 100")
        steps.set("--where", "func:at_b", "stacks", pid=child)
        steps.do("make b 7 100")
        done = succeed([built("ALLIUM"), "tags", str(child), "--folded"], env=steps.env)
        folded = done.stdout.decode().splitlines()
        check(
            len(folded) == 1 and [part.split(" ")[0] for part in folded[0].split(";")[-3:]] == ["main", "make", "at_b"]
            and folded[0].endswith(" 7"), folded)
        steps.do("end")


def stacks_of_new_places():
    """A place that is called for the first time while the stacks are read: its records are no damage."""
    functions = "".join("__attribute__((noinline)) static void f%d(void) { free(malloc(1)); usleep(2000); }\n" % n
                        for n in range(200))
    calls = "".join("    f%d();\n" % n for n in range(200))
    scratch("new_places.c", """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
%sint main(void) {
    free(malloc(1)); puts("0"); fflush(stdout); getchar(); getchar();
%s    while (getchar() != EOF) { }
}
""" % (functions, calls))
    with private_dir() as ledgers, Steps(ledgers, scratch("new_places.c")) as steps:
        steps.process.stdout.readline()
        steps.set("stacks")
        steps.process.stdin.write(b"\n\n")
        while True:
            rows, said = details(steps, "--stacks")
            check("damaged" not in said, "after", len(rows), "places:", said)
            if len(rows) == 200:
                break


def latency():
    """Beside a clock of our own: the sum of all calls is no longer than that took, and each is in one class."""
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        steps.do("make b 1 10")
        steps.set("--where", "func:at_a", "latency")
        began = time.monotonic_ns()
        steps.do("make a 5000 10")
        steps.do("make b 5000 10")
        took = time.monotonic_ns() - began
        (row,), said = details(steps, "--latency")
        equal((said, row["function"], row["calls"]), ("", "at_a", 5000), "what was timed")
        check(0 < row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["longest_ns"], row)
        check(row["longest_ns"] <= row["total_ns"] <= took, row["total_ns"], "of", took)
        equal(sum(slot["count"] for slot in row["latency_ns"]), 5000, "calls in classes")
        # Half of them took at least the least of the median's class, which is an eighth below its most.
        check(row["total_ns"] >= 2499 * row["p50_ns"] * 7 // 8, row)


MAPS = """#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
__attribute__((noinline)) static void maps(void) { munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096); }
__attribute__((noinline)) static void prints(void) { char *p; if (asprintf(&p, "%d", 3) > 0) free(p); }
int main(void) { do { maps(); prints(); puts("0"); fflush(stdout); } while (getchar() != EOF); return 0; }
"""


def details_of_others():
    """Functions that are not malloc() have stacks and times, too."""
    scratch("maps.c", "#define _GNU_SOURCE 1\n" + MAPS)
    with private_dir() as ledgers, Steps(ledgers, scratch("maps.c")) as steps:
        steps.process.stdout.readline()
        steps.set("--where", "func:maps or func:prints", "stacks", "latency")
        for _ in range(9):
            steps.do("")
        for option, figure in ("--stacks", "allocations"), ("--latency", "calls"):
            rows, _ = details(steps, option)
            equal({row["function"]: row[figure] for row in rows}, {"maps": 9, "prints": 9}, option)


def own_tags():
    """A program's own accounts: they fail, are timed and have stacks when that is asked; fields are found by --where.
    """
    with private_dir() as ledgers, Steps(ledgers, "own.c") as steps:
        equal((steps.do("put 10"), steps.do("take 3")), (10, 3), "done")
        (row,) = details(steps, "--where", "name:*tenant=blue*")[0]
        equal((row["class"], row["name"], row["live_bytes"], row["allocations"]),
              ("cache", "entry tenant=blue tier=2", 700, 10), "row")
        steps.set("--where", "class:cache", "fail=every:4", "latency", "stacks")
        equal(steps.do("put 20"), 15, "put of 20, each fourth fails")
        (row,) = details(steps)[0]
        equal((row["live_bytes"], row["allocations"], row["failed"]), (2200, 25, 5), "row")
        (row,) = details(steps, "--latency")[0]
        check(row["calls"] == 15 and row["p50_ns"] >= 50000, "each slept 50 us", row)
        (row,) = details(steps, "--stacks")[0]
        equal((row["allocations"], [frame.split(" ")[0] for frame in row["stack"][-5:-3]]), (15, ["put", "main"]),
              "stack")
        steps.set("fail=off")
        steps.set("off")
        equal((steps.do("put 5"), details(steps)[0][0]["allocations"]), (5, 25), "off")
        notes = succeed(["readelf", "-n", program("gcc", ["-O2"], "own.c")]).stdout.decode()
        check("Provider: allium_tag" in notes and "Name: cache_put" in notes and "8@%" in notes, notes)


def mistakes():
    with private_dir() as ledgers, Steps(ledgers) as steps:
        steps.do("make a 1 10")
        for words, code, line in (
            (
                ("--where", "func:none live>1G", "stacks"),
                1,
                "no tag of process %d (steps.c-gcc-O2-) fits --where" % steps.pid,
            ),
            (("--where", "fnc:at_a", "stacks"), 2, 'did you mean "func"?'),
            (("fail=twice",), 2, "use once, nth:N"),
            (("fail=every:0",), 2, "use once"),
            (("fail=p:2",), 2, "use once"),
            (("stack",), 2, "unknown action"),
            (("--where", "func:a", "period=1M"), 2, "whole processes"),
            (("stacks", "period=1M"), 2, "use two commands"),
            (("--for", "soon", "stacks"), 2, "invalid time"),
            (("--for", "1s", "on"), 2, "--for ends actions"),
        ):
            have, text = steps.refused(*words)
            check(have == code and line in text and text.startswith("allium") and len(text.splitlines()) <= 2, words,
                  "->", have, text)
    with private_dir() as ledgers:
        done = run([built("ALLIUM"), "set", "999999999", "stacks"], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal((done.returncode, done.stderr.decode()), (1, "allium: there is no process 999999999\n"), "no process")
        done = run([built("ALLIUM"), "set", str(os.getpid()), "stacks"], env=dict(os.environ, ALLIUM_DIR=ledgers))
        check(done.returncode == 1 and b"process %d has no tags that this user may change" % os.getpid() in done.stderr,
              done.stderr)


tap.main([
    ("places are turned off and on from the next call on", off_and_on),
    ("places of which it is asked before they are called", not_met_yet),
    ("a folder that looks like a deleted file", in_a_folder_named_deleted),
    ("a program whose file was replaced", of_a_replaced_file),
    ("all places are, also those that are met later", all_of_them),
    ("a place fails when it is told to, and counts it", failures),
    ("what is asked for a time is not asked afterwards", for_a_time),
    ("children", children),
    ("a vfork child is not taken for its parent", vfork_children),
    ("a place that failed before, and was told not to", failing_again),
    ("stacks of calls, by place", stacks),
    ("stacks of places that come while they are read", stacks_of_new_places),
    ("how long calls take", latency),
    ("stacks and times of mmap() and asprintf()", details_of_others),
    ("accounts of a program's own", own_tags),
    ("mistakes are told in a line", mistakes),
])
