# SPDX-License-Identifier: BSD-2-Clause
"""allium diff of several captures a side: means, their spread, and what is within it; figures per event, boot and second;
rows by directory; functions matched by name and file. The intervals are compared with an account of their own.
"""
import json
import math
import os
import statistics
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, equal
from workdir import placed, program

SMALL, EACH = 4096, 16  # of grower.c
HERE = os.path.dirname(os.path.realpath(__file__))


def record(place, name, words, newer=False):
    place.allium("run", "--quiet", "--force", "--period", "1", "-o", name, "--",
                 program("grower_newer" if newer else "grower"), *words.split())
    return name


def captures(place, letter, steps, newer=False):
    return ",".join(record(place, "%s%d.allium" % (letter, i), "1 %d 0" % n, newer) for i, n in enumerate(steps))


def diff(place, *words, code=0):
    return json.loads(place.allium("diff", *words, "--json", "--top", "0", code=code).out)


def rows(found):
    return {row["name"]: row for row in found["rows"]}


def student(tail, freedom):
    """The t that is exceeded with the probability `tail`: by the rule of Simpson, with t = tan(x)."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def density(x):
        return scale * (1 + math.tan(x)**2 / freedom)**(-(freedom + 1) / 2) / math.cos(x)**2

    def beyond(t, steps=2000):
        width = math.atan(t) / steps
        inner = sum(density(i * width) * (4 if i % 2 else 2) for i in range(1, steps))
        return 0.5 - width / 3 * (density(0) + inner + density(steps * width))

    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > tail else (low, middle)
    return low


def welch(before, after, tail):
    """-> the change and its interval"""
    v, w = (statistics.variance(side) / len(side) for side in (before, after))
    change = statistics.mean(after) - statistics.mean(before)
    if not v + w:
        return change, change, change
    half = student(tail, (v + w)**2 / (v**2 / (len(before) - 1) + w**2 / (len(after) - 1))) * math.sqrt(v + w)
    return change, change - half, change + half


def near(have, want, what):
    check(abs(have - want) <= 1e-5 * max(abs(want), 1), what, "is", have, "and not", want)


def interval(value, before, after, tail, what, per=""):
    keys = ["change_bytes" + per + end for end in ("", "_low", "_high")]
    for key, want in zip(keys, welch(before, after, tail)):
        near(value[key], want, what + ": " + key)
    equal(value["bytes_within_noise"], value[keys[1]] <= 0 <= value[keys[2]], what + " is noise")


def spread(place):
    """What the runs of each side differ by is within noise; what is new in one side is not."""
    steps = {"a": [10, 12, 11], "b": [11, 10, 13]}
    a, b = captures(place, "a", steps["a"]), captures(place, "b", steps["b"], newer=True)
    found = diff(place, a, b, "--by", "function")
    leaked = [[n * EACH * SMALL for n in steps[side]] for side in "ab"]
    equal([row["name"] for row in found["rows"]], ["added", "leak"], "rows")
    percent = 100 * (1 - 0.05 * 1 / 2)  # one of two rows is reported
    near(found["row_interval_percent"], percent, "the interval of rows")
    added, leak = (row["self"] for row in found["rows"])
    equal([added["change_bytes" + end] for end in ("", "_low", "_high")], [64 * SMALL] * 3, "added()")
    equal((added["before_captures_bytes"], added["after_captures_bytes"]), ([0] * 3, [64 * SMALL] * 3), "its captures")
    equal([leak["before_captures_bytes"], leak["after_captures_bytes"]], leaked, "captures of leak()")
    interval(leak, *leaked, (1 - percent / 100) / 2, "leak()")
    equal([row["within_noise"] for row in found["rows"]], [False, True], "what is within noise")
    live = found["total"]["live"]
    totals = [live["before_captures_bytes"], live["after_captures_bytes"]]
    equal([[n - min(side) for n in side] for side in totals], [[n - min(side) for n in side] for side in leaked],
          "all differs as leak() does")
    interval(live, *totals, 0.025, "live memory")
    near(live["before_bytes"], statistics.mean(totals[0]), "the mean before")
    equal([[capture["source"] for capture in found[side]["captures"]] for side in ("before", "after")],
          [a.split(","), b.split(",")], "sources")
    printed = place.allium("diff", a, b, "--by", "function", "--exact").out
    for words in ("before  a0.allium, a1.allium, a2.allium\n", "means of the captures", "grew          added",
                  "within noise  leak", "3 against 3 captures", "more captures detect smaller growth"):
        check(words in printed, repr(words), "is missing in", printed)
    # one capture against several is taken to vary as they do
    found = diff(place, a, "b0.allium", "--by", "function")
    mean, one = statistics.mean(leaked[0]), leaked[1][0]
    half = student(0.025, 2) * math.sqrt(statistics.variance(leaked[0]) * (1 / 3 + 1))
    live = found["total"]["live"]
    near(live["change_bytes_high"] - live["change_bytes"], half, "half of the interval of one against three")
    near(rows(found)["leak"]["self"]["change_bytes"], one - mean, "leak() of one against three")
    equal(live["after_bytes_low"], None, "the interval of one capture")


def conditions(place):
    """--fail-if: the interval of the total decides, and a spread that is too large is told with a remedy."""
    a, b = captures(place, "a", [10, 12, 11]), captures(place, "b", [31, 30, 32])
    found = diff(place, a, b, "--fail-if", "live+1MiB", "--fail-if", "live+2MiB", code=4)
    equal([c["met"] for c in found["conditions"]], [True, False], "what is met")
    done = place.allium("diff", a, b, "--fail-if", "live+1MiB", code=4)
    check(done.err.startswith("allium: live+1MiB: met: +1.2") and done.err.count("\n") == 1, done.err)
    # 20 steps more are 1.25 MiB; the share is of the mean before
    place.allium("diff", a, b, "--fail-if", "live+10%", code=4)
    place.allium("diff", a, b, "--fail-if", "live+99%", code=0)
    wide = captures(place, "c", [10, 40, 25])
    found = diff(place, a, wide, "--fail-if", "live+1MiB", code=3)
    condition, = found["conditions"]
    check(condition["undecided"] and condition["needed_captures"] > 3 and condition["needed_period_bytes"] is None,
          condition)
    done = place.allium("diff", a, wide, "--fail-if", "live+1MiB", code=3)
    check("take some %d captures of each side" % condition["needed_captures"] in done.err, done.err)
    place.allium("diff", a, wide, "--fail-if", "live+1MiB", "--coarse", code=0)


def names(place):
    """A comma may be part of a name; what cannot be compared is told in one line."""
    record(place, "a.allium", "1 1 0")
    record(place, "b.allium", "1 2 0")
    record(place, "a,b.allium", "1 3 0")
    record(place, "c,d", "1 4 0")
    for word, want in (("a,b.allium", ["a,b.allium"]), ("a.allium,b.allium", ["a.allium", "b.allium"]),
                       ("a.allium,a,b.allium", ["a.allium", "a,b.allium"]),
                       ("a,b.allium,b.allium", ["a,b.allium", "b.allium"])):
        equal([c["source"] for c in diff(place, word, "c,d")["before"]["captures"]], want, "sources of " + word)
    for words, code, said in (
        (("a.allium,b.allium", "a.allium"), 2, "a.allium and a.allium are of one run"),
        (("a.allium,,b.allium", "c,d"), 2, "a source is missing"),
        (("a.allium,", "c,d"), 2, "a source is missing"),
        (("a.allium,none.allium", "c,d"), 1, "none.allium"),
        (("a,b.allium@1h", "c,d"), 1, "a,b.allium ends"),
        (("a.allium", "b.allium", "c,d"), 2, "too many sources"),
        (("a.allium", "b.allium", "--per", "boot"), 2, "not a recording of the kernel"),
        (("a.allium", "b.allium", "--per", "day"), 2, "day"),
        (("a.allium", "a.allium", "--per", "s"), 2, "of one run"),
    ):
        done = place.allium("diff", *words, code=code)
        check(said in done.err and done.err.count("\n") == 1, words, done.err)
    place.allium("run", "--quiet", "--period", "4K", "-o", "s.allium", "--", program("grower"), "1", "9", "0")
    done = place.allium("diff", "s.allium", "a.allium", "--per", "event", code=2)
    check("s.allium was sampled" in done.err, done.err)


def rates(place):
    """--per divides by the allocations of each capture, or by its seconds."""
    a, b = captures(place, "a", [10, 14]), captures(place, "b", [40, 44])
    plain, event, second = (diff(place, a, b, "--by", "function", "--sort", "allocated", *per)
                            for per in ((), ("--per", "event"), ("--per", "s")))
    equal((plain["per"], event["per"], second["per"]), (None, "event", "s"), "per")
    count = plain["total"]["allocated"]
    for side in ("before", "after"):
        equal([c["divisor"] for c in event[side]["captures"]], count[side + "_captures_count"], "allocations, " + side)
        equal([c["divisor"] for c in plain[side]["captures"]], [1, 1], "divisors of none, " + side)
        times = [c["divisor"] for c in second[side]["captures"]]
        check(all(0 < time < 60 for time in times), times)
        for found, per in ((event, "_per_event"), (second, "_per_s")):
            name = side + "_captures_bytes"
            want = [n / c["divisor"] for n, c in
                    zip(rows(plain)["leak"]["self"][name], found[side]["captures"])]
            for have, each in zip(rows(found)["leak"]["self"][name + per], want):
                near(have, each, "leak() " + per)
    leak = rows(event)["leak"]["self"]
    tail = (1 - event["row_interval_percent"] / 100) / 2
    interval(leak, leak["before_captures_bytes_per_event"], leak["after_captures_bytes_per_event"], tail, "leak()",
             "_per_event")
    equal(event["total"]["allocated"]["change_count_per_event"], 0, "allocations per allocation")
    single = diff(place, "a0.allium", "b0.allium", "--per", "event", "--by", "function", "--sort", "allocated")
    near(rows(single)["leak"]["self"]["change_bytes_per_event"],
         leak["after_captures_bytes_per_event"][0] - leak["before_captures_bytes_per_event"][0], "one capture a side")
    printed = place.allium("diff", "a0.allium", "b0.allium", "--per", "s").out
    check("figures are per second" in printed and "Change in live bytes per second" in printed, printed)


def directories(place):
    """A directory has the memory that its files request, and each directory above has it, too."""
    record(place, "a.allium", "1 10 0")
    record(place, "b.allium", "1 30 0")
    found = rows(diff(place, "a.allium", "b.allium", "--by", "directory"))
    where, grown = [name for name in found if name.endswith("tests/cli")], 20 * EACH * SMALL
    equal(len(where), 1, "directories of the source")
    equal(found[where[0]]["self"]["change_bytes"], grown, "change of the directory")
    above = os.path.dirname(where[0])
    while above not in ("", "/"):
        equal((found[above]["self"]["change_bytes"], found[above]["inclusive"]["change_bytes"]), (0, grown), above)
        above = os.path.dirname(above)
    printed = place.allium("diff", "a.allium", "b.allium", "--by", "directory").out
    check("SELF" in printed and "DIRECTORY" in printed and "tests/cli" in printed, printed)
    report = rows(json.loads(place.allium("report", "b.allium", "--by", "directory", "--json").out))
    check(report[where[0]]["self"]["live_bytes"] > grown and report[above or os.path.dirname(where[0])], report)


def twins(place):
    """Functions of one name in two files are two, wherever they lie; an inlined function is one, too."""
    for name, of in (("a.allium", "twins"), ("b.allium", "twins_newer")):
        place.allium("run", "--quiet", "--period", "1", "-o", name, "--", program(of))
    found = diff(place, "a.allium", "b.allium")
    check(found["matched_by_name"], found)
    changed = [(row["name"], os.path.basename(row["stack"][0]["file"]), row["self"]["change_bytes"])
               for row in found["rows"]]
    equal(changed, [("make", "twins_other.c", 2000)], "what changed")
    found = diff(place, "a.allium", "b.allium", "--sort", "allocated", "--where", "func:chain")
    equal((found["rows"], found["rows_unchanged"]), ([], 1), "the inlined function")


# Each allocates twice the size of the one before, at other offsets in the second kernel.
CALLS = ["alloc_one", "alloc_two", "alloc_gone", "alloc_new"]


def trace(place, name, calls, offset):
    """A recording of a text of ftrace: of each call, so many objects of a size."""
    lines, address, time = ["# tracer: nop\n"], 0xffff888000000000, 1.0
    for number, (call, count) in enumerate(calls):
        for _ in range(count):
            lines.append("          insmod-77      [000] .....  %.6f: kmalloc: call_site=%s+0x%x/0x200 "
                         "ptr=%016x bytes_req=%d bytes_alloc=%d gfp_flags=GFP_KERNEL node=-1 accounted=false\n" %
                         (time, call, offset + 16 * number, address, 64 << number, 64 << number))
            address, time = address + 4096, time + 0.001
    with open(place.path("trace.txt"), "w") as file:
        file.writelines(lines)
    place.allium("sys", "import", "trace.txt", "-o", name, "--force", "--quiet")
    return name


def kernels(place):
    """Two kernels: their functions lie elsewhere, and are the same by name. Boots differ by the objects of alloc_one()."""
    sides = []
    for letter, offset, special in (("a", 0x10, "alloc_gone"), ("b", 0x80, "alloc_new")):
        sides.append(",".join(
            trace(place, "%s%d.allium" % (letter, i), [("alloc_one", 100 + n), ("alloc_two", 50), (special, 7)], offset)
            for i, n in enumerate((0, 3, 1))))
    found = diff(place, *sides, "--by", "function", "--per", "boot")
    equal(found["per"], "boot", "per")
    have = {row["name"]: (row["self"]["change_bytes_per_boot"], row["within_noise"]) for row in found["rows"]}
    # alloc_one() has the same captures on both sides
    equal(have, {"alloc_gone": (-7 * 256, False), "alloc_new": (7 * 256, False), "alloc_one": (0, True)}, "rows")
    equal(found["rows_unchanged"], 1, "rows without a change")
    printed = place.allium("diff", *sides, "--by", "function", "--per", "boot").out
    check("3 captures of the kernel, against 3 captures of the kernel" in printed and "per boot" in printed, printed)
    found = diff(place, *sides, "--by", "directory")
    equal([row["name"] for row in found["rows"]], ["[unknown]"], "directories")


tap.main([
    ("what captures of a side differ by is within noise", placed(spread)),
    ("conditions on several captures", placed(conditions)),
    ("names with commas, and what cannot be compared", placed(names)),
    ("figures per event and per second", placed(rates)),
    ("rows by directory", placed(directories)),
    ("functions of one name in two files", placed(twins)),
    ("captures of two kernels", placed(kernels)),
])
