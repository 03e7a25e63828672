# SPDX-License-Identifier: BSD-2-Clause
"""Random programs over an allocator that counts for itself (below.c): `allium tags` says what it says, to the byte."""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import random_places
import tap
from random_runs import BARE, DIRECT, FIELDS, HERE, INCLUDE, LIBRARY, SCRATCH, THREADS, WARNINGS
from random_runs import Program, Run, booked, differences, ended
from tap import built, check, equal, pick, private_dir, run, succeed, wait_until


def exact(compiler, *options):
    def test():
        total = 0
        for round in range(pick(1, 25)):
            program = Program.of(1 + round // 2 * 10, compiler, *options)
            for words in (
                (),
                ("threads=%d" % THREADS,),
                ("threads=30", "fails=7"),
                ("threads=4", "forks", "timers"),
                ("threads=%d" % THREADS, "foreign", "forks"),
                ("threads=3", "foreign", "forks", "timers", "fails=11"),
                ("maps", "fails=9"),
                ("threads=%d" % THREADS, "maps"),
                ("threads=%d" % THREADS, "maps", "foreign", "forks", "fails=7"),
            ):
                wrong, rows, said = ended(program, 1000 + round, *words)
                equal(wrong, {}, "what differs, seed %d, %s" % (1000 + round, words))
                check("foreign" in words or not said, words, "->", said)
                total += rows
        check(total > 250, "few rows were compared:", total)
    return test


def planted():
    """Of each function one call is left out of the count below: the comparison tells, and where. In a longer run an
    object whose free was left out would come to light when its address is used again.
    """
    program = Program.of(1, "gcc", "-O2")
    kinds = program.writer.kinds
    for kind in [*random_places.KINDS, *random_places.WHOLE, "ACCOUNT"]:
        numbers = [number for number in kinds if kinds[number] == kind and number in program.writer.where]
        given_back = random_places.KINDS.get(kind, ("", None))[1]  # else it is found where the object was made
        place = given_back or numbers[0]
        wrong, _, _ = ended(program, 5, "maps", steps=3000, env={"BELOW_SKIP": str(place)})
        (what,), = (differing.items() for differing in wrong.values())
        where, (have, want) = what
        if not given_back:
            equal(where, program.place_of(place), kind + ": where it is found")
        one = [a - b for a, b in zip(have, want)]
        if kind == "MUNMAP":  # of a part, as likely as not
            check(one[0] == 0 and one[2] in (0, -1) and one[3] < 0 and one[3] % 4096 == 0, kind, one)
        else:
            equal((one[0], one[2]), (0, -1) if kind == "FREE" else (1, 1), kind)


def toggled(compiler):
    """Tags are turned off and on between rounds: only what is born while a tag is on counts, whenever it is freed."""
    def test():
        program, chance = Program.of(1, compiler, "-O2"), random.Random(4)
        names = {n: "in_%s_%d" % (program.writer.where[n][0].split(".")[0], n) for n in program.writer.plain_ones}
        for seed in range(pick(1, 12)):
            with Run(program, 300 + seed, 2000, "threads=%d" % THREADS, "timers", "foreign", "forks", "fails=11",
                     "maps", "rounds", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as run:
                off = set()
                for _ in range(pick(5, 12)):
                    equal(run.process.stdout.readline(), b"rest\n", "what it says")
                    equal(run.compare()[0], {}, "what differs with these off: %s, seed %d" % (sorted(off), 300 + seed))
                    for number in chance.sample(sorted(names), 8):
                        off ^= {number}
                        succeed([built("ALLIUM"), "set", str(run.process.pid), "--where", "func:" + names[number],
                                 "off" if number in off else "on"], env=dict(os.environ, ALLIUM_DIR=run.ledgers))
                    run.process.stdin.write(" ".join(map(str, sorted(off))).encode() + b"\n")
                run.process.stdin.close()
                equal(run.process.wait(tap.TIMEOUT), 0, "its code")
                wrong, rows, _ = run.compare()
                equal(wrong, {}, "what differs at the end")
                run.process.stdout.close()
    return test


def many():
    out = os.path.join(SCRATCH.name, "many")
    if not os.path.exists(out):
        succeed(["gcc", "-g", "-O2", *WARNINGS, "-I", INCLUDE, os.path.join(HERE, "many.c"), "-o", out, LIBRARY,
                 "-Wl,-rpath," + os.path.dirname(LIBRARY), "-lpthread"])
    return out


def failures_everywhere():
    """Threads fail at each of many places at once, of which it is the first use."""
    places = 10_000
    for _ in range(pick(5, 100)):
        with private_dir() as ledgers:
            p = subprocess.Popen([many(), str(places), str(THREADS), "failed"],
                                 env=dict(os.environ, ALLIUM_DIR=ledgers), stdout=subprocess.DEVNULL)
            equal(p.wait(tap.TIMEOUT), 0, "its code")
            rows, _ = booked(ledgers, p.pid)
            equal(len(rows), places, "places")
            equal({place: row for place, row in rows.items() if row[4] != THREADS}, {}, "failures")


RELOADS = """#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int n, char **v) { char c; void *l = 0, *(*make)(size_t) = 0;
for (int i = 0; i < atoi(v[2]); i++) { if (l) dlclose(l); l = dlopen(v[1], RTLD_NOW); if (!l) return 3;
make = (void *(*)(size_t))dlsym(l, "plugin_make"); free(make(9)); }
if (write(1, "rest\\n", 5) != 5 || read(0, &c, 1) != 1) return 4;
for (int i = 0; i < 5; i++) free(make(9)); return n != 3; }
"""


def reloaded():
    """A library that is loaded hundreds of times can still be turned off, and its place is one row."""
    times, folder = pick(400, 5000), tempfile.mkdtemp(dir=SCRATCH.name)
    source, plugin, binary = (os.path.join(folder, name) for name in ("reloads.c", "plugin.so", "reloads"))
    with open(source, "w") as file:
        file.write(RELOADS)
    succeed([
        "gcc", "-I", INCLUDE, "-include", "allium/malloc_hooks.h", source, "-o", binary, "-ldl", LIBRARY,
        "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    succeed([
        "gcc", "-g", "-O2", "-fPIC", "-shared", "-I", INCLUDE, "-include", "allium/malloc_hooks.h",
        os.path.join(HERE, "plugin.c"), "-o", plugin, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        p = subprocess.Popen([binary, plugin, str(times)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             bufsize=0)
        equal(p.stdout.readline(), b"rest\n", "what it says")
        succeed([built("ALLIUM"), "set", str(p.pid), "--where", "func:plugin_make", "off"], env=env)
        p.communicate(b"\n")
        equal(p.returncode, 0, "its code")
        rows, said = booked(ledgers, p.pid)
        equal(([row[:3] for row in rows.values()], said), ([(times, 9 * times, 0)], ""), "rows")


SITES = {"LD_PRELOAD": built("ALLIUM_AGENT_FULL"), "ALLIUM_SITES": "1"}


def of_sites(program, seed, *words, **more):
    """({pid: differences}, places compared) of the accounts of call sites, after a run."""
    wrong, compared = {}, 0
    with Run(program, seed, pick(3000, 30000), *words, env=dict(SITES, **more)) as it:
        equal(it.process.wait(tap.TIMEOUT), 0, "its code")
        for pid in it.pids():
            want = program.counted(it.counts, pid, sites=True)
            done = succeed([built("ALLIUM"), "sites", str(pid), "--json", "--top", "0"],
                           env=dict(os.environ, ALLIUM_DIR=it.ledgers))
            have = {}
            for row in json.loads(done.stdout)["rows"]:
                place = os.path.basename(row["place"] or "")
                if place in want:  # copies of a place are sites of their own
                    figures = (row[key] or 0
                               for key in ("allocations", "requested_bytes", "live_objects", "live_bytes", "failed"))
                    have[place] = tuple(map(sum, zip(have.get(place, (0,) * 5), figures)))
            if differences(have, want):
                wrong[pid] = differences(have, want)
            compared += len(want)
    return wrong, compared


def sites():
    """The same programs without tags, under --sites: places are known by where calls return to. All frees are seen."""
    program, compared = Program.of(1, "gcc", "-O2", BARE), 0
    for seed in range(pick(1, 20)):
        for words in ((), ("threads=8", "fails=9"), ("threads=8", "foreign"), ("threads=4", "forks"),
                      ("threads=30", "timers", "fails=7"), ("threads=8", "forks", "foreign", "fails=7")):
            wrong, places = of_sites(program, 500 + seed, *words)
            equal(wrong, {}, "what differs, seed %d %s" % (500 + seed, words))
            compared += places
    check(compared > 150, "few rows were compared:", compared)


def sites_planted():
    program = Program.of(1, "gcc", "-O2", BARE)
    kinds = program.writer.kinds
    for kind in [*DIRECT, "FREE"]:
        place = (
            random_places.FREES
            if kind == "FREE"
            else next(n for n in kinds if kinds[n] == kind and n in program.writer.where)
        )
        # what is freed first may be the C library's own, whose sites are not compared
        for later in range(20 if kind == "FREE" else 1):
            wrong = [
                item for differing in of_sites(program, 5, BELOW_SKIP="%d,%d" % (place, later))[0].values()
                for item in differing.items()
            ]
            if wrong:
                break
        (where, (have, want)), = wrong
        check(kind == "FREE" or where == program.place_of(place), kind, "is found at", where)
        equal((have[0] - want[0], have[2] - want[2]), (0, -1) if kind == "FREE" else (1, 1), kind)


def churn(compiler, sanitizer):
    out, flags = os.path.join(SCRATCH.name,
                              "churn-%s-%s" % (compiler, sanitizer)), ["-g", "-O1", "-fsanitize=" + sanitizer]
    for source, hooks in ("churn", ["-include", "allium/malloc_hooks.h"]), ("foreign", []):
        succeed([
            compiler, *flags, *WARNINGS, "-I", INCLUDE, *hooks, "-c",
            os.path.join(HERE, source + ".c"), "-o",
            "%s-%s.o" % (out, source)
        ])
    succeed([
        compiler, *flags, out + "-churn.o", out + "-foreign.o", "-o", out, LIBRARY,
        "-Wl,-rpath," + os.path.dirname(LIBRARY), "-lpthread"
    ])
    return out


def churned(out, ledgers, pid):
    """What it printed and what the command says, of the parent and its child."""
    own = {}
    for line in out.splitlines():
        process, place, *numbers = line.split()
        own.setdefault(int(process), {})[place] = tuple(map(int, numbers))
    check(pid in own and len(own) == 2, "processes:", sorted(own))
    for process, places in own.items():
        rows = json.loads(succeed([built("ALLIUM"), "tags", str(process), "--json", "--top", "0", "--by", "function"],
                                  env=dict(os.environ, ALLIUM_DIR=ledgers)).stdout)["rows"]
        have = {
            row["function"]:
            tuple(row[key] or 0 for key in ("allocations", "allocated_bytes", "live_objects", "live_bytes", "failed"))
            for row in rows
        }
        yield have, places


def sanitized(compiler, sanitizer):
    """No word of the sanitizer's. Where it brings an allocator of its own, churn.c counts for itself instead of
    below.c.
    """
    def over_its_allocator():
        program = churn(compiler, sanitizer)
        with private_dir() as ledgers:
            env = dict(os.environ, ALLIUM_DIR=ledgers, ASAN_OPTIONS="detect_leaks=0")
            p = subprocess.Popen([program, "4", str(pick(3000, 100000)), "asked"], env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)

            def ask(*words):
                run([built("ALLIUM"), "set", str(p.pid), "--where", *words], env=env)
            wait_until(lambda: os.listdir(ledgers), 20, "a ledger")
            ask("func:by_calloc or func:by_posix or func:by_realloc or func:by_strdup", "fail=every:5")
            p.stdin.write(b"\n")
            p.stdin.flush()
            while p.poll() is None:  # what this place counts is anybody's guess
                ask("func:by_large", "off")
                ask("func:by_large", "on")
            equal((p.wait(), p.stderr.read().decode()), (0, ""), "its code, and what the sanitizer says")
            for have, places in churned(p.stdout.read().decode(), ledgers, p.pid):
                check(have.pop("by_large", (0,))[0] <= places.pop("by_large")[0], "more than there was")
                equal(have, places, "rows")
                check(
                    min(places[name][4] for name in ("by_calloc", "by_posix", "by_realloc", "by_strdup")) > 100,
                    "few failed:", places)
            p.stdin.close(), p.stdout.close(), p.stderr.close()

    def over_ours():
        options = "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-fno-sanitize=vptr"
        wrong, _, _ = ended(Program.of(1, compiler, *options), 9, "threads=%d" % THREADS, "foreign", "forks",
                            "fails=11", "maps")
        equal(wrong, {}, "what differs")
    return over_ours if sanitizer == "undefined" else over_its_allocator


def states(run, pid):
    return run.program.counted(run.counts, pid)


def within(before, have, after, pending):
    """Figures that were read between two looks at what lies below. An operation is counted below and by the library
    one after the other: each that is under way may be in one of them alone. -> what is beyond that, by place
    """
    zero, bad = (0,) * len(FIELDS), {}
    for place in {*before, *have, *after}:
        b, h, a = (of.get(place, zero) for of in (before, have, after))
        gone = [of[0] - of[2] for of in (b, h, a)]
        if not (b[0] - pending <= h[0] <= a[0] + pending and gone[0] - pending <= gone[1] <= gone[2] + pending and
                b[4] - pending <= h[4] <= a[4] + pending):
            bad[place] = b, h, a
    return bad


def read_under_load():
    """Readings while it runs, none stopped: off by no more than the operations under way, one for each thread and one
    for a handler above it; and nothing below zero.
    """
    program, pending = Program.of(1, "gcc", "-O2"), 2 * (THREADS + 1)
    below_zero, readings = 0, 0
    with Run(program, 7, 3000, "threads=%d" % THREADS, "timers", "fails=9", "ends") as run:
        time.sleep(0.3)
        pid = run.process.pid
        for _ in range(pick(25, 500)):
            before = states(run, pid)
            have, _ = booked(run.ledgers, pid)
            after = states(run, pid)
            equal(within(before, have, after, pending), {}, "beyond what is under way")
            negative = {place: row for place, row in have.items() if row[2] < 0 or row[3] < 0}
            negative = {place: row for place, row in negative.items() if program.kind_at(place) != "ACCOUNT"}
            equal(negative, {}, "below zero")
            readings += 1
        check(run.process.poll() is None, "it ended")


def killed():
    """SIGKILL at any moment: what is read afterwards is off by the operations that were under way."""
    program = Program.of(1, "gcc", "-O2")
    for round in range(pick(8, 200)):
        with Run(program, 20 + round, 3000, "threads=%d" % THREADS, "timers", "foreign", "ends") as run:
            time.sleep(0.02 + 0.3 * random.Random(round).random())
            run.process.send_signal(signal.SIGKILL)
            run.process.wait()
            pid = run.process.pid
            if not os.listdir(run.ledgers):
                continue
            want, (have, _) = states(run, pid), booked(run.ledgers, pid)
            off = sum(abs(h[i] - w[i]) for h, w in differences(have, want).values() for i in (0, 2))
            check(off <= 4 * 2 * (THREADS + 1), "off by", off, differences(have, want))


TESTS = [
    ("gcc: random programs hold what the allocator below has counted", exact("gcc", "-O2")),
    ("clang -O1: random programs hold what the allocator below has counted", exact("clang", "-O1")),
    ("gcc: tags that are turned off and on", toggled("gcc")),
    ("one miscount of each function is found", planted),
    ("accounts of call sites hold what the allocator below has counted", sites),
    ("one miscount of each function is found in accounts of call sites", sites_planted),
    ("a library that is loaded hundreds of times is turned off", reloaded),
    *(("%s: under -fsanitize=%s" % (compiler, sanitizer), sanitized(compiler, sanitizer))
      for compiler in ("gcc", "clang") for sanitizer in ("address", "undefined", "thread")),
    ("failures at places that many threads reach at once", failures_everywhere),
    ("read while it runs", read_under_load),
    ("read after it was killed at any moment", killed),
]
if tap.LONG:
    TESTS += [("gcc -O0: random programs hold what the allocator below has counted", exact("gcc", "-O0")),
              ("clang: tags that are turned off and on", toggled("clang"))]
if __name__ == "__main__":
    tap.main(TESTS)
