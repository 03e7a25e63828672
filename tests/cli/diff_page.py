# SPDX-License-Identifier: BSD-2-Clause
"""`allium diff --html`: a browser shows the changes, and their intervals, that `allium diff --json` has."""
import json
import math
import os
import sys

sys.dont_write_bytecode = True
import tap
from page_reader import Page, Shown, between
from tap import check, equal
from workdir import placed, program

BEFORE = """
import json
kept = [json.loads('{"a": [1, 2, {"b": "c%d"}]}' % i) for i in range(2000)]
blocks = [bytearray(5000) for i in range(50)]
"""
AFTER = """
import json
kept = [json.loads('{"a": [1, 2, {"b": "c%d"}]}' % i) for i in range(2000)]
blocks = [bytes(3000 + i) for i in range(80)]
text = {i: str(i) for i in range(3000)}
"""
METRICS = ("live", "peak", "allocated", "temporary")


def record(place, name, work, period="2K"):
    place.allium("run", "--quiet", "--period", period, "-o", name, "--", "/usr/bin/python3", "-S", "-c", work,
                 env={"PYTHONMALLOC": "malloc", "ALLIUM_SEED": "5"})


def page(place, *words, name="diff.html"):
    """-> (the page, what diff says in JSON)"""
    done = place.allium("diff", *words, "--json", "--html", name, "--force")
    found = Page(place.path(name))
    found.policy()
    return found, json.loads(done.out)


def change_of(place, name="diff.html", **state):
    return Shown(place, name, **state).details()


def changes(place):
    """Of each function that changed, and of all; both sides, in the treemap and the tables, too."""
    record(place, "a.allium", BEFORE)
    record(place, "b.allium", AFTER)
    found, said = page(place, "a.allium", "b.allium", "--by", "function", "--sort", "peak", "--top", "0")
    for metric in METRICS:
        total = found.header["profile"]["changes"][metric]["bytes"]
        want = said["total"][metric]
        equal((round(total["value"]), math.floor(total["low"]), math.ceil(total["high"])),
              (want["change_bytes"], want["change_bytes_low"], want["change_bytes_high"]), "total of " + metric)
        for view in ("flame", "treemap") if metric == "peak" else ("flame",):
            shown = change_of(place, view=view, metric=metric + " after")
            most = max(abs(total["low"]), abs(total["high"]))
            for have, key in zip(shown[1:], ("value", "low", "high")):
                check(abs(have - total[key]) <= 1e-9 * most, view, metric, key, shown, total)
    rows = said["rows"]
    check(sum(not row["within_noise"] for row in rows) > 3 and len(rows) > 20, "rows:", len(rows))
    for row in rows[:3] + rows[len(rows) // 2:len(rows) // 2 + 2]:
        # `before` shows what has gone, too
        want = row["inclusive"]
        side = "after" if want["after_bytes"] else "before"
        shown = change_of(place, view="flame", metric="peak " + side, direction="callees", focus=row["name"])
        equal((shown[0], math.floor(shown[2]), math.ceil(shown[3])),
              (row["name"], want["change_bytes_low"], want["change_bytes_high"]), "change of a function")
        check(abs(shown[1] - want["change_bytes"]) <= 1, shown, want)
    table = Shown(place, "diff.html", view="tables", metric="peak after").rows()
    equal(table[0][:6], ["Function", "Change ▾", "95 % interval", "Verdict", "Before", "After"], "columns")
    names = {row["name"]: row for row in rows}
    for row in table[1:6]:
        change = names[row[0]]["self"]["change_bytes"]
        verdict = "grew" if change > 0 else "shrank"
        equal(row[3], "within noise" if names[row[0]]["within_noise"] else verdict, row[0])
    rows.sort(key=lambda row: -abs(row["self"]["change_bytes"]))
    equal([row[0] for row in table[1:4]], [row["name"] for row in rows[:3]], "the largest changes")
    text = found.text.split("<pre>")[1].split("</pre>")[0]
    check("Change in bytes held at the peak" in text and "PyByteArray_Resize" in text, "the text without JavaScript")


def captures(place):
    """Several captures a side: the page computes the spread of what it shows. Sampled and exact ones."""
    for period in "2K", "1":
        for side, work in ("a", BEFORE), ("b", AFTER):
            for i in range(3):
                varied = work.replace("2000", str(2000 + 11 * i * i))
                record(place, "%s%d.%s.allium" % (side, i, period), varied, period)
        sides = [",".join("%s%d.%s.allium" % (side, i, period) for i in range(3)) for side in "ab"]
        found, said = page(place, *sides, "--by", "function", "--sort", "peak", "--top", "0")
        rows = said["rows"]
        check(sum(not row["within_noise"] for row in rows) > 2 and rows[-1]["within_noise"], "rows:", len(rows))
        near = next(row for row in rows if row["within_noise"])
        shown = {None: change_of(place, view="flame", metric="peak after")}
        for row in rows[0], near:
            side = "after" if row["inclusive"]["after_bytes"] else "before"
            shown[row["name"]] = change_of(place, view="flame", metric="peak " + side, direction="callees",
                                           focus=row["name"])
        for name, have in shown.items():
            want = said["total"]["peak"] if name is None else \
                next(row["inclusive"] for row in rows if row["name"] == name)
            most = max(abs(want["change_bytes_low"]), abs(want["change_bytes_high"]))
            for value, end in zip(have[1:], ("", "_low", "_high")):
                check(abs(value - want["change_bytes" + end]) <= 1e-9 * most, period, name, end, value, want)
        table = Shown(place, "diff.html", view="tables", metric="peak after")
        verdicts = {row[0]: row[3] for row in table.rows()[1:]}
        for row in rows:
            if row["name"] in verdicts:
                verdict = "grew" if row["self"]["change_bytes"] > 0 else "shrank"
                equal(verdicts[row["name"]], "within noise" if row["within_noise"] else verdict, row["name"])
        check("capture0" not in table.dom, "single captures in a menu")
        if period == "1":
            break
        small, _ = page(place, *sides, "--html-size", "64K", "--sort", "peak", name="small.html")
        check("[rest]" in small.text.split("<pre>")[1], "what is said of a page that is too small for all")
        have, want = change_of(place, "small.html", view="flame", metric="peak after"), said["total"]["peak"]
        check(abs(have[2] - want["change_bytes_low"]) <= 1e-9 * most, have, want)


def exact(place):
    """Where every allocation was sampled, changes are exact, and what did not change is grey."""
    record(place, "a.allium", BEFORE, "1")
    record(place, "b.allium", AFTER, "1")
    found, said = page(place, "a.allium", "b.allium", "--sort", "allocated")
    for side, key in ("before", "before_bytes"), ("after", "after_bytes"):
        sums = sum(found.stacks("allocated " + side).values())
        equal(round(sums), said["total"]["allocated"][key], "allocated, " + side)
    grew, shrank = (sum(found.stacks("allocated " + side).values()) for side in ("grew", "shrank"))
    equal(round(grew - shrank), said["total"]["allocated"]["change_bytes"], "the change")
    found, said = page(place, "a.allium", "a.allium")
    shown = Shown(place, "diff.html", view="flame", metric="peak after")
    equal(shown.details()[1:], (0, 0, 0), "nothing has changed")
    check("no change" in shown.dom, "what is said of it")


def several(place):
    """Sources with several processes: each program is a box below the root."""
    for name, n in ("a.allium", "1"), ("b.allium", "2"):
        place.allium("run", "--quiet", "--period", "1", "-o", name, "--", "sh", "-c", '"$0" %s & "$0" 1; wait' % n,
                     program("holder"), code=None)
    found, said = page(place, "a.allium", "b.allium", "--sort", "allocated")
    sums = [round(sum(found.stacks("allocated " + side).values())) for side in ("before", "after")]
    equal(sums, [said["total"]["allocated"]["before_bytes"], said["total"]["allocated"]["after_bytes"]], "both sides")
    shown = change_of(place, view="flame", metric="allocated after")
    equal(round(shown[1]), said["total"]["allocated"]["change_bytes"], "the change of all")


def options(place):
    """--html refuses what it cannot do in one line; the page keeps to its size; the exit code is that of the conditions."""
    record(place, "a.allium", BEFORE, "256")
    record(place, "b.allium", AFTER, "256")
    whole, _ = page(place, "a.allium", "b.allium")
    small, said = page(place, "a.allium", "b.allium", "--html-size", "64K", "--sort", "peak", name="small.html")
    data = [len(between(found.text, 'id="data">', "</script>")) for found in (whole, small)]
    check(data[1] <= 64 << 10 < data[0], "bytes of data:", data)
    check("[rest]" in small.text.split("<pre>")[1] and "[rest]" not in whole.text.split("<pre>")[1], "what is said")
    shown = change_of(place, "small.html", view="flame", metric="peak after")
    equal((math.floor(shown[2]), math.ceil(shown[3])),
          (said["total"]["peak"]["change_bytes_low"], said["total"]["peak"]["change_bytes_high"]), "the change of all")
    equal(os.stat(place.path("diff.html")).st_mode & 0o777, 0o600, "mode of the page")
    done = place.allium("diff", "a.allium", "b.allium", "--html", "diff.html", code=1)
    check("exists; use --force" in done.err and done.err.count("\n") == 1, done.err)
    place.allium("diff", "a.allium", "b.allium", "--html-size", "1M", code=2)
    place.allium("diff", "a.allium", "b.allium", "--force", code=2)
    done = place.allium("diff", "a.allium", "b.allium", "--html", "if.html", "--fail-if", "allocated+1KiB", code=4)
    check("<h1>a.allium → b.allium" in Page(place.path("if.html")).text, done.err)


tap.main([
    ("changes and their intervals in a browser", placed(changes)),
    ("exact changes, and none", placed(exact)),
    ("several captures", placed(captures)),
    ("several processes", placed(several)),
    ("options, and the size", placed(options)),
])
