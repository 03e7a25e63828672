# SPDX-License-Identifier: BSD-2-Clause
"""allium diff as its users meet it: a program whose growth is known, at two moments, in two runs, in two versions."""
import contextlib
import json
import os
import re
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import tap
from workdir import placed, program
from tap import built, check, equal

LARGE, SMALL, EACH, ADDED = 128 * 1024 - 64, 4096, 16, 64  # of grower.c
LEAKED = EACH * SMALL  # in one step
SLEEP_CALLS = "35", "230"  # the numbers of nanosleep() and clock_nanosleep() on x86-64


def reads(path):
    with open(path) as file:
        return file.read()


def diff(place, *words, code=0):
    return json.loads(place.allium("diff", *words, "--json", "--top", "0", code=code).out)


def record(place, name, *words, newer=False, **env):
    place.allium("run", "--quiet", "--force", "-o", name, *words[:-1], "--",
                 program("grower_newer" if newer else "grower"), *words[-1].split(), env=env)
    return name


def rows(found):
    return {row["name"]: row for row in found["rows"]}


def in_pause(place, name):
    """A moment of a recording that is being made: of the pause in which the grower is. (A time would be another one on
    a busy machine.)
    """
    later = "time_ns > %d AND image IN (SELECT image.id FROM image JOIN string ON string.id = comm WHERE text = 'grower')"
    later %= time.time_ns()
    return "%s@%dns" % (name, tap.wait_until(lambda: recording_reader.moment(place.path(name), later), 60,
                                             "a moment in a pause"))


def paused(place, name, *words, **env):
    """As record(), of a grower that pauses; -> a moment in each pause, of which the first one comes before all steps.
    """
    _, steps, pause = (int(word) for word in words[-1].split())
    process = place.start(built("ALLIUM"), "run", "--quiet", "-o", name, *words[:-1], "--", program("grower"),
                          *words[-1].split(), env=dict(place.env, **env))
    moments = []
    for word in [b"settled\n"] + [b"paused\n"] * (steps // pause):
        equal(process.stdout.readline(), word, "what it said")
        moments.append(in_pause(place, name))
        process.stdin.write(b"\n")
        process.stdin.flush()
    process.stdin.close()
    equal((process.stdout.readline(), process.wait(tap.TIMEOUT)), (b"grown\n", 0), "what it said at last, and its code")
    return moments


def numbers(text):
    """Each figure of a screen in bytes or objects: "+1.25 MiB" -> 1310720."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1, "k": 1e3, "M": 1e6}
    return [float(number) * units[unit or ""] for number, unit in re.findall(r"([-+]?[0-9.]+) ?(B|[KMG]iB|k|M)?", text)]


def close(have, want, what):
    check(abs(have - want) <= abs(want) * 0.006 + 0.5, what, "is", have, "and not", want)


def exact(place):
    _, first, second, _ = paused(place, "r.allium", "--period", "1", "10 150 50")
    for words, steps in (((first, second), 50), ((first, "r.allium"), 100)):
        found = diff(place, *words, "--by", "function")
        leak, total = rows(found)["leak"]["self"], found["total"]
        check(found["before"]["exact"] and found["after"]["exact"] and found["images_in_both"] == 1, found["before"])
        grown = steps * LEAKED
        equal([leak["change_" + key] for key in ("bytes", "bytes_low", "bytes_high", "count")],
              [grown] * 3 + [steps * EACH], "leak()")
        equal((total["live"]["change_bytes"], total["allocated"]["change_bytes"]), (grown, 2 * grown + steps * LARGE),
              "in all")
        check("settle" not in rows(found) and found["rows"][0]["name"] == "leak", rows(found).keys())
    for metric in ("live", "allocated"):
        one, two, all = (diff(place, *words)["total"][metric]["change_bytes"] for words in
                         ((first, second), (second, "r.allium"), (first, "r.allium")))
        equal(one + two, all, metric + ": the change in two parts and in one")


def twice(place):
    before, _ = paused(place, "r.allium", "16 20 20", ALLIUM_SEED="1")
    for words in (("r.allium", "r.allium"), (before, before)):
        found = diff(place, *words)
        equal(found["rows"], [], "rows that changed")
        for metric, total in found["total"].items():
            if total:
                equal(
                    [total["change_" + key] for key in ("bytes", "bytes_low", "bytes_high", "count_low", "count_high")],
                    [0] * 5, "change of " + metric)
        check("no change" in place.allium("diff", *words).out, "the screen does not say so")
        place.allium("diff", *words, "--fail-if", "live+0%", code=0)


def sampled(place):
    """Of 1 GiB, known to some 30 MiB either way, 10 MiB more show; what is only replaced does not."""
    settled, _ = paused(place, "r.allium", "1024 160 160", ALLIUM_SEED="1")
    found = diff(place, settled, "r.allium")
    live = found["total"]["live"]
    equal(found["before"]["periods_bytes"], [512 * 1024], "the period unless told")
    check(live["after_bytes_high"] - live["after_bytes_low"] > 4 * live["change_bytes"] > 0, "the heap is too sure:",
          live)
    check(not live["bytes_within_noise"] and live["change_bytes_low"] > 0, "noise:", live)
    named = rows(found)
    check(not named["leak"]["within_noise"] and found["rows"][0]["name"] == "leak",
          [row["name"] for row in found["rows"]])
    for name in ("turn", "shift", "settle"):
        check(name not in named or named[name]["within_noise"], name, "changed for certain:", named.get(name))
    check(live["change_bytes_low"] <= 160 * LEAKED <= live["change_bytes_high"], live)  # leak() is all that grew
    told = place.allium("diff", settled, "r.allium").out
    check(re.search(r"\n  live +\+[0-9.]+ MiB \(\+.* an hour\n", told), told)
    place.allium("diff", settled, "r.allium", "--fail-if", "live+50MiB", "--fail-if", "live+10%", code=0)
    done = place.allium("diff", settled, "r.allium", "--fail-if", "live+50MiB", "--fail-if", "live+1MiB", code=4)
    check(done.err.startswith("allium: live+1MiB: met: +") and done.err.count("\n") == 1, done.err)


def running(place):
    process = place.start_allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("grower"), "1",
                                 "60", "60")
    equal(process.stdout.readline(), b"settled\n", "what it said")
    begun = in_pause(place, "r.allium")
    process.stdin.write(b"\n")
    process.stdin.flush()
    equal([process.stdout.readline() for _ in range(2)], [b"paused\n", b"grown\n"], "what it said")
    pid, = {int(os.path.basename(path).split("-")[0]) for path in place.ledgers()}
    found = diff(place, begun, str(pid), "--by", "function")
    equal((found["images_in_both"], found["matched_by_name"]), (1, False), "images in both, and how they are matched")
    leak = rows(found)["leak"]["self"]
    equal((leak["after_bytes"], leak["change_bytes"]), (60 * LEAKED,) * 2, "bytes of leak(), and by how much they grew")
    check(found["apart_ns"] > 0 and found["live_bytes_per_hour"] > 0, found["apart_ns"])
    back = diff(place, str(pid), begun, "--by", "function")
    equal(rows(back)["leak"]["self"]["change_bytes"], -60 * LEAKED, "the change backwards")
    check("EARLIER" in place.allium("diff", str(pid), begun).out, "the order is not told")
    swapped = place.allium("diff", str(pid), begun, "--fail-if", "live+10%", code=2)
    check(" earlier than %d: give the older one first" % pid in swapped.err, swapped.err)
    still = diff(place, str(pid), str(pid))["total"]["live"]
    equal((still["change_bytes_low"], still["change_bytes_high"]), (0, 0), "what an idle process grew by")
    process.stdin.close()
    equal(process.wait(20), 0, "its code")
    done = diff(place, begun, "r.allium", "--by", "function")
    equal(rows(done)["leak"]["self"]["change_bytes"], 60 * LEAKED, "the change when it had ended")


def one_of_several(place):
    """A recording of two processes against one of them: the other one is in neither side. The one is compared twice,
    and must not allocate in between: its shell has become sleep, and that has started and sleeps.
    """
    process = place.start_allium(
        "run", "--quiet", "--period", "1", "-o", "r.allium", "--", "sh", "-c",
        "exec 3<&0; %s 64 5 5 <&3 & p=$!; read line <&3; echo $p; exec sleep 1000" % program("grower"))
    equal(process.stdout.readline(), b"settled\n", "what it said")
    begun = in_pause(place, "r.allium")
    process.stdin.write(b"\n")
    process.stdin.flush()
    pid = int(process.stdout.readline())
    shell, = {int(os.path.basename(path).split("-")[0]) for path in place.ledgers()} - {pid}
    tap.wait_until(lambda: reads("/proc/%d/comm" % shell) == "sleep\n"
                   and reads("/proc/%d/syscall" % shell).split()[0] in SLEEP_CALLS, 20, "the shell has become sleep")
    alone, of_all = diff(place, begun, str(shell))["total"], diff(place, begun, "r.allium")["total"]
    check(alone["live"]["before_bytes"] < LARGE <= of_all["live"]["before_bytes"], alone["live"], of_all["live"])
    equal(diff(place, begun, str(shell), "--where", "pid:%d" % shell)["total"], alone, "with the process in --where")
    os.kill(shell, 9)
    process.stdin.close()
    process.wait(20)


def newest_at(place):
    """@TIME is a moment of the newest recording here, for each command that takes a SOURCE."""
    record(place, "old.allium", "--sites", "--period", "1", "1 0 0")
    record(place, "new.allium", "--sites", "--period", "1", "1 0 0")
    for command in "report", "sites", "frees":
        said = place.allium(command, "@1h", code=1).err
        check("new.allium" in said, command, "said", said)


def reasons(place):
    """Each command gives the same reason why a process cannot be read."""
    said = {command: place.allium(command, "1", code=1).err for command in ("report", "sites")}
    if "is not observed" not in said["report"]:
        equal(said["sites"], said["report"], "what is said of process 1")


def versions(place):
    record(place, "old.allium", "--period", "1", "1 5 0")
    record(place, "new.allium", "--period", "1", "1 5 0", newer=True)
    found = diff(place, "old.allium", "new.allium")
    equal([row["name"] for row in found["rows"]], ["added"], "what is new")
    row = found["rows"][0]
    equal((row["self"]["change_bytes"], row["self"]["change_count"]), (ADDED * SMALL, ADDED), "its bytes and objects")
    equal([frame["function"] for frame in row["stack"]][:2], ["added", "main"], "its stack")
    check(found["matched_by_name"] and found["images_in_both"] == 0 and found["apart_ns"] is None, "matched otherwise")
    equal(
        rows(diff(place, "new.allium", "old.allium"))["added"]["self"]["change_bytes"], -ADDED * SMALL,
        "the change back")
    equal(len(diff(place, "old.allium", "new.allium", "--by", "process")["rows"]), 1, "rows by process")
    for condition, code in (("live+1B", 4), ("live+10%", 4), ("live+%dB" % (ADDED * SMALL), 0), ("live+50%", 0),
                            ("peak+100K", 4), ("allocations+63", 4), ("allocations+64", 0), ("temporary+1B", 0),
                            ("allocated+1G", 0)):
        done = place.allium("diff", "old.allium", "new.allium", "--fail-if", condition, code=code)
        equal(done.err.count("\n"), 1 if code else 0, "lines about " + condition)
    place.allium("diff", "old.allium", "new.allium", "--fail-if", "live+1B", "--where", "func:leak", code=0)
    place.allium("diff", "old.allium", "new.allium", "--fail-if", "live+1B", "--where", "func:added", code=4)
    found = diff(place, "old.allium", "new.allium", "--fail-if", "live+1G", "--fail-if", "peak+1K", code=4)
    equal([(told["condition"], told["met"], told["undecided"]) for told in found["conditions"]],
          [("live+1G", False, False), ("peak+1K", True, False)], "conditions")
    equal([found["total"][metric]["smallest_growth_bytes"] for metric in ("live", "peak")], [0, 0], "smallest growth")
    for words, order in ((("peak+1K",), "peak"), (("live+1G", "peak+1K"), "live")):  # what the condition is about
        conditions = [word for condition in words for word in ("--fail-if", condition)]
        equal(diff(place, "old.allium", "new.allium", *conditions, code=4 if "peak+1K" in words else 0)["sort"], order,
              "order of %s" % (words,))


def freed_at_the_end(place):
    """Of programs that free all before they end, live memory says nothing, and a condition on it says so."""
    for name, size in ("small.allium", 1000000), ("large.allium", 1200000):
        place.allium("run", "--quiet", "--period", "1", "-o", name, "--", "/usr/bin/python3", "-S", "-c",
                     "kept = bytes(%d); del kept; kept = bytes(%d * 100)" % (size, size))
    hint = "(less than a tenth of the peak; --sort peak shows what was held at the peak)\n"
    for words, told in (((), True), (("--by", "function"), True), (("--sort", "peak"), False)):
        check((hint in place.allium("report", "small.allium", *words).out) is told, "report", words)
    hint = "both hold less than a tenth of their peak: peak+10% compares the peaks"
    for condition, code in ("live+10%", 0), ("peak+10%", 4):
        done = place.allium("diff", "small.allium", "large.allium", "--fail-if", condition, code=code)
        equal(hint in done.err, not code, "hint with " + condition)


def silent_beside_sites(place):
    """A ledger for accounts of sites, in which nothing was sampled, does not say that there was nothing."""
    for name in "a.allium", "b.allium":
        place.allium("run", "--quiet", "--sites", "--period", "1G", "-o", name, "--", program("holder"), "1")
    total = json.loads(place.allium("report", "a.allium", "--json").out)["total"]
    check(total["live_bytes"] == 0 and total["live_bytes_high"] > 1 << 30, total)
    place.allium("diff", "a.allium", "b.allium", "--fail-if", "live+10%", code=3)
    place.allium("run", "--quiet", "--period", "1", "-o", "exact.allium", "--", program("holder"), "1")
    place.allium("diff", "a.allium", "exact.allium", "--fail-if", "live+10%", code=3)


def runs(place):
    """Two runs of one program at a sampling period: nothing is certain but what differs."""
    record(place, "a.allium", "--period", "64K", "16 20 0", ALLIUM_SEED="11")
    record(place, "b.allium", "--period", "64K", "16 20 0", ALLIUM_SEED="12")
    record(place, "c.allium", "--period", "64K", "64 20 0", ALLIUM_SEED="13")
    found = diff(place, "a.allium", "b.allium")
    check(found["total"]["live"]["bytes_within_noise"] and all(row["within_noise"] for row in found["rows"]),
          found["rows"])
    place.allium("diff", "a.allium", "b.allium", "--fail-if", "live+25%", code=0)
    told = place.allium("diff", "a.allium", "b.allium").out
    check("within noise: " in told and "grew" not in told and "shrank" not in told, told)
    smallest = found["total"]["live"]["smallest_growth_bytes"]
    check(2 << 20 < smallest < 8 << 20, "of 16 MiB, known to 256 samples, growth is seen from", smallest)
    for condition, code in ("live+1%", 3), ("live+%dB" % (smallest + 4096), 0), ("live+1K", 3):
        done = place.allium("diff", "a.allium", "b.allium", "--fail-if", condition, code=code)
        place.allium("diff", "a.allium", "b.allium", "--fail-if", condition, "--coarse", code=0)
        check(not code or re.search(r"undecided: .*--period [0-9]+K?, or let it pass "
                                    r"with --coarse", done.err), done.err)
    found = diff(place, "a.allium", "c.allium")
    equal(rows(found)["settle"]["within_noise"], False, "settle() is within noise")
    low, high = (found["total"]["live"]["change_bytes_" + end] for end in ("low", "high"))
    check(low < 48 << 20 < high, "48 MiB are not between", low, "and", high)
    place.allium("diff", "a.allium", "c.allium", "--fail-if", "peak+150%", code=4)


def screen(place):
    """What is printed is what JSON has, rounded."""
    _, then, _ = paused(place, "r.allium", "--period", "64K", "64 60 30", ALLIUM_SEED="5")
    for group in ("stack", "function", "file", "module", "owner", "thread", "size", "process"):
        for sort in ("live", "allocated", "allocations"):
            words = (then, "r.allium", "--by", group, "--sort", sort, "--top", "0")
            found = diff(place, *words[:-2])
            key = "count" if sort == "allocations" else "bytes"
            value = "self" if group == "stack" else "inclusive"
            told = place.allium("diff", *words, env={"LC_ALL": "C"}).out
            lines = [line for line in told.splitlines() if re.search(r"(grew|shrank|within noise)(  |$)", line)]
            lines = [line for line in lines if not re.match(r"  (live|objects|peak|allocat)", line)]
            equal(len(lines), len(found["rows"]), "rows by " + group)
            for line, row in zip(lines, found["rows"]):
                have = numbers(line.split("  ")[1] if line.startswith("  +") else line.strip().split("  ")[0])
                close(have[0], row[value]["change_" + key], "change in " + line)
                equal("within noise" in line, row["within_noise"], "noise in " + line)
    told = place.allium("diff", then, "r.allium", env={"LC_ALL": "C"}).out
    total = diff(place, then, "r.allium")["total"]["live"]
    line = re.search(r"  live +(.*)", told).group(1)
    wanted = [total["change_bytes"], None, total["change_bytes_high"], total["before_bytes"], total["after_bytes"]]
    for have, want in zip(numbers(line), wanted):
        if want is not None:
            close(have, want, "a figure of " + line)
    check(told.isascii(), "not ASCII:", told)


def misused(place):
    _, then, _ = paused(place, "r.allium", "--period", "1", "1 30 15")
    for condition, column in (
        ("live", 5),
        ("live+", 6),
        ("", 1),
        ("liv+1", 1),
        ("age+1", 1),
        ("live10%", 1),
        ("live+x", 6),
        ("live+1x", 6),
        ("live+10%%", 6),
        ("live+%", 6),
        ("peak+-1", 6),
        ("live+1.2.3%", 6),
        ("live+10", 6),
        ("allocations+1M", 13),
        ("allocations+", 13),
        ("live+1e3", 6),
        (" live+1", 1),
        ("live+99999999999999999999999", 6),
        ("x" * 5000, 1),
        ("live+" + "9" * 400 + "%", 6),
    ):
        done = place.allium("diff", "r.allium", "r.allium", "--fail-if", condition, code=2)
        check("column %d:" % column in done.err or len(condition) > 400, repr(condition[:40]), "said", done.err)
        equal((done.err.count("\n"), done.out), (1, ""), "lines of stderr, and stdout, for " + condition[:40])
    for words in ((), ("r.allium",), ("r.allium",) * 3, ("r.allium", "r.allium", "--by", "x"),
                  ("r.allium", "r.allium", "--sort", "age"), ("r.allium", "r.allium", "--where", "size>4k"),
                  ("r.allium", "r.allium", "--where", "func:"), (then, "r.allium", "--sort", "temporary"),
                  (then, "r.allium", "--fail-if", "peak+1B"), ("r.allium", "r.allium", "--top", "x"),
                  ("r.allium", "r.allium") + ("--fail-if", "live+1B") * 17):
        done = place.allium("diff", *words, code=2)
        equal((done.err.count("\n"), done.out), (1, ""), "lines of stderr, and stdout, for %s" % (words,))
    for words in (("none.allium", "r.allium"), ("r.allium", "none.allium"), ("r.allium", "r.allium@1h")):
        equal(place.allium("diff", *words, code=1).err.count("\n"), 1, "lines about %s" % (words,))


def silent(place):
    """Of what nothing was sampled the period tells how much it may have been. Of periods that
    long a sample falls into the program's megabyte once in a million runs."""
    record(place, "s.allium", "--period", "1T", "1 0 0")
    record(place, "r.allium", "--period", "1", "1 0 0")
    live = diff(place, "s.allium", "s.allium")["total"]["live"]
    check(live["change_bytes"] == 0 and live["change_bytes_high"] > 3 * (1 << 40), live)
    live = diff(place, "s.allium", "r.allium")["total"]["live"]
    check(live["change_bytes"] > 1 << 20 and live["bytes_within_noise"], live)
    # A recording of every allocation that has none: the program did not start, and does not take less.
    with contextlib.closing(sqlite3.connect(place.path("s.allium"), isolation_level=None)) as db:
        db.execute("UPDATE meta SET value = 1 WHERE key = 'period_bytes'")
    done = place.allium("diff", "r.allium", "s.allium", "--fail-if", "peak+10%", code=3)
    check("s.allium has every allocation, and there was none: did the program start?" in done.err, done.err)
    place.allium("diff", "r.allium", "s.allium", "--fail-if", "peak+10%", "--coarse", code=0)


def not_observed(place):
    """What ran without the agent on one side is told of that side only, with its reason."""
    for name, child in (("a.allium", "child"), ("b.allium", "child_static")):
        place.allium("run", "--quiet", "--period", "1", "-o", name, "--", "sh", "-c",
                     "%s; %s 1" % (program(child), program("holder")))
    told = {}
    for words in (
        ("a.allium", "b.allium"),
        ("b.allium", "a.allium"),
        ("a.allium", "a.allium"),
        ("b.allium", "b.allium"),
    ):
        found = diff(place, *words)
        told[words] = [[(os.path.basename(u["program"]), u["reason"], u["processes"])
                        for u in found[side]["unobserved"]] for side in ("before", "after")]
        printed = place.allium("diff", *words).out
        for side, name in zip(("before", "after"), words):
            heading, line = "Not observed %s\n" % side, "1 start of %s, which is statically linked" % program(
                "child_static")
            equal(heading in printed, name == "b.allium", "%s of %s" % (heading, words))
            equal(" ".join(printed.split()).count(line), words.count("b.allium"), "lines of %s" % (words,))
    static = [("child_static", "is statically linked", 1)]
    equal(
        told, {("a.allium", "b.allium"): [[], static], ("b.allium", "a.allium"): [static, []],
               ("a.allium", "a.allium"): [[], []], ("b.allium", "b.allium"): [static, static]}, "what was not observed")


tap.main([(name, placed(function)) for name, function in [
    ("two moments of an exact recording differ by what was leaked", exact),
    ("the same twice has not changed", twice),
    ("a leak of 1 % in 1 GiB is seen at the default period", sampled),
    ("a recording against the process it is of", running),
    ("a recording against one process of several", one_of_several),
    ("@TIME is a moment of the newest recording", newest_at),
    ("a process that cannot be read has one reason", reasons),
    ("two versions differ by the site that one has more", versions),
    ("memory that is freed at the end is told to be", freed_at_the_end),
    ("two runs of one program differ by noise, and a larger one is larger", runs),
    ("what is printed agrees with JSON", screen),
    ("what cannot be read is told with its place", misused),
    ("nothing sampled is not nothing", silent),
    ("nothing sampled beside accounts of sites is not nothing", silent_beside_sites),
    ("what ran without the agent is told of its side", not_observed),
]])
