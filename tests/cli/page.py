# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --html`: the page has every stack and figure, loads and sends nothing, and a browser shows the
intervals that `allium report` gives.
"""
import json
import math
import os
import re
import shutil
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import tap
from page_reader import Page, Shown, between
from tap import built, check, equal
from workdir import placed, program

# Four functions of Python's standard library hold blocks of many sizes; regular expressions make temporary ones.
WORK = """
import collections, json, re
kept = [json.loads('{"a": [1, 2, 3, {"b": "c%d"}]}' % i) for i in range(3000)]
words = collections.Counter(re.findall("[a-z]+", "one two three four " * 3000))
text = "".join(str(i) for i in range(20000))
del kept[1500:]
"""
GROWS = """
import time
kept = []
for i in range(200):
    kept.append(bytearray(50000))
    time.sleep(0.025)
"""
METRICS = ("live", "peak", "allocated", "temporary")


def record(place, name, *words, work=WORK):
    place.allium("run", "--quiet", "--force", "-o", name, *words, "--", "/usr/bin/python3", "-S", "-c", work,
                 env={"PYTHONMALLOC": "malloc", "ALLIUM_SEED": "5"})


def page(place, source, *words, name="page.html"):
    place.allium("export", source, "--html", "--force", "-o", name, *words)
    return Page(place.path(name))


def folded(place, source, metric, *words):
    lines = place.allium("export", source, "--folded", metric, *words).out.splitlines()
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}


def same_stacks(place, found, source, *words):
    for metric in METRICS:
        have = {name: round(value) for name, value in found.stacks(metric).items()}
        equal(have, folded(place, source, metric, *words), "stacks of " + metric)
    counts = {name: round(value) for name, value in found.stacks("allocated", "count").items()}
    equal(counts, folded(place, source, "allocations", *words), "allocations")


def exact(place):
    """Every stack, to the byte; of what --where selects, too."""
    record(place, "exact.allium", "--period", "1")
    found = page(place, "exact.allium")
    found.policy()
    check(len(found.stacks("allocated")) > 300, len(found.stacks("allocated")))
    same_stacks(place, found, "exact.allium")
    where = "--where", "module:libc*"
    same_stacks(place, page(place, "exact.allium", *where), "exact.allium", *where)
    size = len(found.text) - sum(
        len(between(found.text, begin, end)) for begin, end in (('id="data">', "</script>"), ("<pre>", "</pre>")))
    check(size <= 130 * 1000, "the page without its data and text:", size)
    again = page(place, "exact.allium", name="again.html")
    equal(again.text, found.text, "a second page of it")


def intervals(place):
    """A browser gives each function the interval that the report gives, and the sum of all stacks that of the total."""
    record(place, "sampled.allium", "--period", "2K")
    found = page(place, "sampled.allium")
    for metric, key in (("live", "live_bytes"), ("peak", "peak_bytes"), ("allocated", "allocated_bytes")):
        report = json.loads(place.allium("report", "sampled.allium", "--json", "--by", "function", "--top", "0",
                                         "--sort", metric).out)
        rows = [row for row in report["rows"] if row["inclusive"][key] != row["inclusive"][key + "_high"]]
        check(len(rows) > 20, "rows:", len(rows))
        for row in rows[0], rows[3], rows[len(rows) // 2]:
            name, value, low, high = Shown(place, "page.html", view="flame", metric=metric, direction="callees",
                                           focus=row["name"]).details()
            want = row["inclusive"]
            equal((name, math.floor(low), math.ceil(high)), (row["name"], want[key + "_low"], want[key + "_high"]),
                  metric + " of a function")
            check(abs(value - want[key]) <= 0.5, name, value, want[key])
        # What lies below the outermost function is everything. The page's script has the total from the command.
        total, = [m["total"]["bytes"] for m in found.header["profile"]["metrics"] if m["key"] == metric]
        outer = next(iter(found.stacks(metric))).split(";")[0]
        shown = Shown(place, "page.html", view="flame", metric=metric, direction="callees", focus=outer).details()
        if abs(shown[1] - total["value"]) < 1:
            for have, want in zip(shown[1:], (total["value"], total["low"], total["high"])):
                check(abs(have - want) <= 1e-9 * want, "of all:", shown, total)


def tables(place):
    """The table by function has the rows of the report, in its order; a search leaves those that match."""
    record(place, "exact.allium", "--period", "1")
    page(place, "exact.allium")
    report = json.loads(place.allium("report", "exact.allium", "--json", "--by", "function", "--top", "0", "--sort",
                                     "allocated").out)
    rows = Shown(place, "page.html", view="tables", metric="allocated").rows()
    equal(rows[0][:4], ["Function", "Allocated, self ▾", "95 % interval", "Allocated, total"], "columns")
    equal([row[0] for row in rows[1:8]], [row["name"] for row in report["rows"][:7]], "functions with most bytes")
    rows = Shown(place, "page.html", view="tables", metric="allocated", search="^_?PyUnicode").rows()
    check(len(rows) > 2 and all("PyUnicode" in row[0] for row in rows[1:]), rows)


def hostile_names(place):
    """Names are text, whatever is in them."""
    evil = "</script><img src=x onerror=document.title=1>\u202e\x1b[2J"
    folder = place.path("d")
    os.mkdir(folder)
    shutil.copy(program("holder"), os.path.join(folder, "<b>&\u202ex"))
    place.allium("run", "--quiet", "--period", "1", "-o", "evil<i>.allium", "--", os.path.join(folder, "<b>&\u202ex"),
                 "1", evil, code=None)
    found = page(place, "evil<i>.allium")
    found.policy()
    check("<img" not in found.text and "<b>&" not in found.text and "<i>" not in found.text, "markup of a name")
    check("\u202e" not in found.text and "\x1b" not in found.text, "characters that are not seen")
    for view in "flame", "treemap", "tables", "text":
        shown = Shown(place, "page.html", view=view)
        check("<img" not in shown.dom and "\u202e" not in shown.dom, view)
        check("<title>evil&lt;i&gt;.allium" in shown.dom, "title")
    for kind in "flame", "treemap", "timeline":
        root, text = picture(place, "evil<i>.allium", kind, *(["--metric", "allocated"] if kind != "timeline" else []))
        check("\u202e" not in text and root.find(SVG + "title").text.startswith("evil<i>.allium: "), text[:500])


def nothing(place):
    """Of a recording without a sample, too, there is a page; none goes to a terminal."""
    place.allium("run", "--quiet", "--period", "1G", "-o", "none.allium", "--", "true")
    done = place.allium("export", "none.allium", "--html", "-o", "page.html")
    check("the exported profile is empty" in done.err, done.err)
    for view in "flame", "treemap", "tables", "text":
        Shown(place, "page.html", view=view)
    text = Page(place.path("page.html")).text
    check("nothing was sampled" in text.split("<pre>")[1], "what is said without JavaScript")
    done = place.allium("export", "none.allium", "--html", "--speedscope", code=2)
    check("one format at a time" in done.err, done.err)


def of_several(place):
    """Each process is a box of its own below the root."""
    place.allium("run", "--quiet", "--period", "1", "-o", "two.allium", "--", "sh", "-c", '"$0" 1 & "$0" 1; wait',
                 program("holder"), code=None)
    found = page(place, "two.allium")
    roots = {name.split(";")[0] for name in found.stacks("allocated")}
    check(sum(bool(re.fullmatch(r"holder \(\d+\)", name)) for name in roots) == 2, roots)
    sums = {}
    for stack, value in found.stacks("allocated").items():
        rest = stack.split(";", 1)[1]
        sums[rest] = sums.get(rest, 0) + round(value)
    equal(sums, folded(place, "two.allium", "allocated"), "sums over the processes")


def filtered(place):
    """What --where leaves out is said, and the course of all memory is not shown for a part of it."""
    record(place, "exact.allium", "--period", "1")
    found = page(place, "exact.allium", "--where", "module:libc*")
    check("module:libc*" in found.text.split("<title>")[1].split("</title>")[0], "title")
    check("module:libc*" in found.text.split("<pre>")[1].split("</pre>")[0], "text")
    check("points" not in found.header["profile"], "points in time")
    none = page(place, "exact.allium", "--where", "func:nothing_at_all")
    equal(none.stacks("allocated"), {}, "stacks")
    for view in "flame", "treemap", "tables":
        Shown(place, "page.html", view=view)
    done = place.allium("export", "exact.allium", "--svg", "timeline", "--where", "module:libc*", code=2)
    check("leave out --where" in done.err, done.err)
    _, text = picture(place, "exact.allium", "flame", "--where", "module:libc*", "--metric", "peak")
    check("module:libc*" in text, text[:500])


def still_running(place):
    """Of a moment in which processes still ran, none has ended; at the end all have. They run for five seconds, so that a
    busy machine has started both after four.
    """
    place.allium("run", "--quiet", "--period", "1K", "-o", "r.allium", "--", "sh", "-c",
                 '"$0" -S -c "$1" & "$0" -S -c "$1"; wait', "/usr/bin/python3", GROWS)
    for source, ended in ("r.allium@4s", False), ("r.allium", True):
        images = [image for image in page(place, source).header["profile"]["images"] if "python" in image["program"]]
        equal([image["ended"] for image in images], [ended] * 2, "ended, of " + source)


def rows_of(place, source, group, metric):
    done = place.allium("report", source, "--json", "--by", group, "--top", "0", "--sort", metric)
    return json.loads(done.out)["rows"]


def same(have, want, key, what):
    """(value, low, high), against whole numbers that were rounded outwards."""
    check(abs(have[0] - want[key]) <= 0.5, what, have, want)
    equal((math.floor(have[1]), math.ceil(have[2])), (want[key + "_low"], want[key + "_high"]), what)


def whole(name):
    return "^%s$" % re.escape(name)


def sums(place):
    """Parts of a treemap, rows of tables by file and library, and what a search finds have the report's intervals."""
    record(place, "sampled.allium", "--period", "2K")
    page(place, "sampled.allium")
    for metric, key in ("allocated", "allocated_bytes"), ("peak", "peak_bytes"):
        modules = rows_of(place, "sampled.allium", "module", metric)
        row = max(modules, key=lambda row: row["self"][key])
        part = os.path.basename(row["name"])
        shown = Shown(place, "page.html", view="treemap", parts="module", metric=metric, part=part)
        equal(shown.details()[0], part, "the part")
        same(shown.details()[1:], row["self"], key, "part " + part)
        shown = Shown(place, "page.html", view="tables", by="module", metric=metric, search=whole(row["name"]))
        same(shown.found(), row["self"], key, "rows " + part)
        files = rows_of(place, "sampled.allium", "file", metric)
        row = files[len(files) // 4]
        shown = Shown(place, "page.html", view="tables", by="file", metric=metric, search=whole(row["name"]))
        same(shown.found(), row["self"], key, row["name"])
        function = rows_of(place, "sampled.allium", "function", metric)[2]
        shown = Shown(place, "page.html", view="flame", metric=metric, search=whole(function["name"]))
        same(shown.found(), function["inclusive"], key, function["name"])


def colours(place):
    """Owners and ages of the data are those of the report; the page says what colours mean."""
    record(place, "exact.allium", "--period", "1")
    found = page(place, "exact.allium")
    profile = found.header["profile"]
    strings, functions = found.column(profile["strings"]), found.column(profile["frames"]["function"])
    frames = found.column(profile["nodes"]["frame"])
    have = {}
    for owner, value in zip(found.column(profile["row_owner"]), found.values("allocated", "bytes")):
        name = strings[functions[frames[owner]]]
        have[name] = have.get(name, 0) + value
    want = {}
    for row in rows_of(place, "exact.allium", "owner", "allocated"):
        want[row["name"]] = want.get(row["name"], 0) + row["self"]["allocated_bytes"]
    equal({name: round(value) for name, value in have.items() if value}, want, "owners")
    total = json.loads(place.allium("report", "exact.allium", "--json").out)["total"]
    equal(max(found.column(profile["row_oldest_ns"])), total["oldest_age_ns"], "the oldest object")
    shown = Shown(place, "page.html", view="flame", colour="age")
    check('class="legend"' in shown.dom and "coloured by owner" in shown.dom, "the choice, and what it means")
    for view, colour in ("treemap", "age"), ("treemap", "owner"), ("flame", "owner"):
        Shown(place, "page.html", view=view, colour=colour)
    check("coloured by age" not in Shown(place, "page.html", view="tables").dom, "tables have no colours")


def unnamed(place):
    """What code without a name requested belongs to its nearest caller with a name, and is marked."""
    bare = place.path("bare")
    shutil.copy(program("holder"), bare)
    check(tap.run(["strip", "-s", bare]).returncode == 0, "strip")
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", bare, "1", code=None)
    found = page(place, "r.allium")
    nameless = sum(value for stack, value in found.stacks("allocated").items() if "bare+0x" in stack.split(";")[-1])
    check(nameless > 0, list(found.stacks("allocated"))[:5])
    table = Shown(place, "page.html", view="tables", metric="allocated").rows()
    column = table[0].index("Of it without a name")
    marked = [row for row in table[1:] if row[column] != "0 B"]
    check(len(marked) == 1 and "+0x" not in marked[0][0], "who has it:", table[:4])
    equal(marked[0][table[0].index("Allocated, self ▾")] != "0 B", True, "it is part of the caller's")
    shown = Shown(place, "page.html", view="treemap", metric="allocated", parts="module")
    check("[unnamed]" in shown.dom, "the treemap")


def moments(place):
    """At each stored moment the page shows what FILE@TIME is, with its intervals; and the band of the timeline is that of
    all live memory.
    """
    record(place, "r.allium", "--period", "2K", work=GROWS.replace("200", "80"))
    found = page(place, "r.allium")
    profile = found.header["profile"]
    times = {key: found.column(c) for key, c in profile["moments"]["times"].items()}
    check(len(times["time_ms"]) >= 5, "moments:", times)
    check("stored moments" not in found.text.split("<pre>")[1].split("</pre>")[0], "none is left out")
    checked = 0
    for i in range(1, len(times["time_ms"]), max(1, len(times["time_ms"]) // 4)):
        after_ms = math.ceil(times["time_ms"][i] - profile["started_ms"])
        if any(later - profile["started_ms"] <= after_ms for later in times["time_ms"][i + 1:i + 2]):
            continue  # the next moment lies within the same millisecond, and @TIME is that one
        after = "%.3f" % (after_ms / 1000)
        checked += 1
        then = page(place, "r.allium@%ss" % after, name="then.html").header["profile"]["metrics"]
        live, = [m["total"]["bytes"] for m in then if m["key"] == "live"]
        band = [times["live_bytes" + end][i] for end in ("", "_low", "_high")]
        close(band, [live[key] for key in ("value", "low", "high")], "band @" + after)
        report = json.loads(place.allium("report", "r.allium@%ss" % after, "--json", "--by", "function", "--top", "0",
                                         "--sort", "live").out)
        for metric in "live", "allocated":
            row = report["rows"][min(i, len(report["rows"]) - 1)]
            name, value, low, high = Shown(place, "page.html", view="flame", metric=metric, direction="callees",
                                           focus=row["name"], at=after).details()
            want, key = row["inclusive"], metric + "_bytes"
            equal((name, math.floor(low), math.ceil(high)), (row["name"], want[key + "_low"], want[key + "_high"]),
                  "%s of a function @%s" % (metric, after))
            check(abs(value - want[key]) <= 0.5, name, value, want[key])
        shown = Shown(place, "page.html", view="flame", metric="live", at=after).details()
        close(shown[1:], [live[key] for key in ("value", "low", "high")], "of all @" + after)
    check(checked >= 2, "moments of a millisecond of their own:", checked)
    root, _ = picture(place, "r.allium", "timeline")
    band, = [points.get("points") for points in root.iter(SVG + "polygon")]
    heights = [float(point.split(",")[1]) for point in band.split()]
    equal(len(heights), 2 * len(times["time_ms"]), "points of the band")
    lines = [grid.get("d") for grid in root.iter(SVG + "path")]
    ground = max(float(line.split()[1].split("H")[0]) for line in lines if "H" in line)
    want = times["live_bytes_high"] + times["live_bytes_low"][::-1]
    scale = max(want) / (ground - min(heights))
    for height, bytes_at in zip(heights, want):
        check(abs((ground - height) * scale - bytes_at) <= 0.002 * max(want), "the picture's band", height, bytes_at)
    shown = Shown(place, "page.html", view="timeline")
    equal(len(re.findall("<li>moment @", shown.dom)), len(times["time_ms"]), "moments that are told")
    check("<li>@" in shown.dom and ": peak</li>" in shown.dom, "the peak is marked")


def moments_of_several(place):
    """Of processes that had ended, what was left then counts, as in FILE@TIME."""
    place.allium("run", "--quiet", "--period", "2K", "-o", "r.allium", "--", "sh", "-c",
                 '"$0" -S -c "$1" & "$0" -S -c "$2"; wait', "/usr/bin/python3", GROWS.replace("200", "20"),
                 GROWS.replace("200", "60"))
    profile = page(place, "r.allium").header["profile"]
    check(len(profile["images"]) >= 2, profile["images"])
    for after in "0.4", "0.9", "1.4":
        then = page(place, "r.allium@%ss" % after, name="then.html").header["profile"]["metrics"]
        live, = [m["total"]["bytes"] for m in then if m["key"] == "live"]
        shown = Shown(place, "page.html", view="flame", metric="live", at=after)
        close(shown.details()[1:], [live[key] for key in ("value", "low", "high")], "of all @" + after)


def moments_left_out(place):
    """Stored moments take the room that the stacks leave, and it is said if there is too little."""
    record(place, "r.allium", "--period", "64", work=WORK + GROWS.replace("200", "60"))
    said, kept = [], []
    whole = page(place, "r.allium")
    size = len(between(whole.text, 'id="data">', "</script>"))
    check(size > 100 << 10, "bytes of data:", size)
    less = "%dK" % ((size - 8000) >> 10)
    for name, words in ("whole", ()), ("small", ("--html-size", less)), ("least", ("--html-size", "64K")):
        found = page(place, "r.allium", *words, name=name + ".html")
        kept.append(found.header["profile"].get("moments", {"times": {"time_ms": {"n": 0}}})["times"]["time_ms"]["n"])
        said.append("stored moments" in found.text.split("<pre>")[1].split("</pre>")[0])
        Shown(place, name + ".html", view="flame", at="0.5")
    equal(said, [False, True, True], "what is said of moments")
    check(kept[0] > kept[1] >= kept[2] == 0, "moments:", kept)


def close(have, want, what):
    for a, b in zip(have, want):
        check(abs(a - b) <= 1e-9 * abs(b), what, have, want)


def site_rows(place):
    """A row for each line that requests memory, with the metric that is chosen."""
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"), "1")
    page(place, "r.allium")
    rows = Shown(place, "page.html", view="tables", by="site", metric="allocated", amount="count").rows()
    equal(rows[0][:3], ["Site", "Function", "Allocations ▾"], "columns")
    done = place.allium("report", "r.allium", "--json", "--sort", "allocations", "--top", "0")
    stacks = json.loads(done.out)["rows"]
    sums = {}
    for stack in stacks:
        frame = stack["stack"][0]
        if frame["file"]:
            place_of = "%s:%d" % (frame["file"], frame["line"])
            sums[place_of] = sums.get(place_of, 0) + stack["self"]["allocations"]
    check(sums, "no lines:", stacks[:1])
    shown = {row[0]: row[2] for row in rows[1:]}
    equal({name: shown.get(name) for name in sums}, {name: str(n) for name, n in sums.items()}, "allocations by line")


def beside(place):
    """run and report write the same page as export."""
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--html", "run.html", "--", program("holder"),
                 "1")
    page(place, "r.allium")
    place.allium("report", "r.allium", "--html", "report.html")
    stacks = Page(place.path("page.html")).stacks("allocated")
    for name in "run.html", "report.html":
        found = Page(place.path(name))
        found.policy()
        equal(found.stacks("allocated"), stacks, name)
        equal(os.stat(place.path(name)).st_mode & 0o777, 0o600, "mode of " + name)
    done = place.allium("report", "r.allium", "--html", "report.html", code=1)
    check("exists; use --force" in done.err and done.err.count("\n") == 1, done.err)
    place.allium("report", "r.allium", "--html", "report.html", "--force")
    place.allium("report", "r.allium", "--force", code=2)
    done = place.allium("run", "--html", "x", "--json", "x", "--", "true", code=2)
    check("same file" in done.err, done.err)


def bounded(place):
    """Of a profile that is too large, what is left out is [rest]: the sums and the intervals are those of all."""
    calls = "\n".join("def f%d(n):\n  return [bytearray(4000 + n)] + (g[(n * 7 + %d) %% 300](n - 1) if n else [])" % (i, i)
                      for i in range(300))
    record(place, "large.allium", "--period", "1K",
           work=calls + "\ng = [globals()['f%d' % i] for i in range(300)]\nkept = [g[i](i % 25) for i in range(300)]\n")
    whole, small = page(place, "large.allium"), page(place, "large.allium", "--html-size", "64K", name="small.html")
    data = [len(between(found.text, 'id="data">', "</script>")) for found in (whole, small)]
    check(data[1] <= 64 << 10 < data[0], "bytes of data:", data)
    check("[rest]" in small.text.split("<pre>")[1] and "[rest]" not in whole.text.split("<pre>")[1], "what is said")
    for metric in "peak", "allocated":
        have, want = small.stacks(metric), whole.stacks(metric)
        check(len(have) < len(want), metric, len(have), len(want))
        check(abs(sum(have.values()) - sum(want.values())) <= 1e-6 * sum(want.values()), "sum of " + metric)
        for stack, value in have.items():
            if not stack.endswith(";[rest]"):  # one of several nodes with these names may be in a [rest]
                check(value <= want[stack] * (1 + 1e-9), stack, value, want[stack])
    report = json.loads(place.allium("report", "large.allium", "--json", "--by", "function", "--top", "0", "--sort",
                                     "allocated").out)
    row = max(report["rows"], key=lambda row: row["inclusive"]["allocated_bytes"] if row["name"] == "main" else 0)
    shown = Shown(place, "small.html", view="flame", metric="allocated", direction="callees",
                  focus=row["name"]).details()
    want = row["inclusive"]
    equal((math.floor(shown[2]), math.ceil(shown[3])), (want["allocated_bytes_low"], want["allocated_bytes_high"]),
          "interval of " + row["name"])
    place.allium("export", "large.allium", "--folded", "live", "--html-size", "64K", code=2)


def accounts(place):
    """The exact accounts of sites: columns of the page have the values of --json."""
    place.allium("run", "--quiet", "--sites", "-o", "r.allium", "--", "/usr/bin/python3", "-S", "-c", WORK)
    place.allium("sites", "r.allium", "--html", "page.html", "--top", "2")
    rows = json.loads(place.allium("sites", "r.allium", "--json").out)["rows"]
    found = Page(place.path("page.html"))
    found.policy()
    table = found.header["table"]
    equal(table["rows"], len(rows), "rows")
    numbers = {c["key"]: found.column(c["values"]) for c in table["columns"] if c["kind"] == "number"}
    for key in "total", "slack", "requested", "live":
        equal(sum(numbers[key]), sum(row[key + "_bytes"] for row in rows), key)
    functions, = [c for c in table["columns"] if c["key"] == "function"]
    texts = found.column(functions["texts"])
    equal({texts[number - 1] for number in found.column(functions["of"]) if number},
          {row["function"] for row in rows if row["function"]}, "functions")
    first = Shown(place, "page.html", view="tables").rows()[1]
    check(max(rows, key=lambda row: row["total_bytes"])["function"] in first, "the first row:", first)
    Shown(place, "page.html", view="treemap")
    done = place.allium("sites", "r.allium", "--html", "page.html", code=1)
    check("exists; use --force" in done.err, done.err)
    place.allium("sites", "r.allium", "--html", "page.html", "--force", "--allocinfo", code=2)


SVG = "{http://www.w3.org/2000/svg}"


def picture(place, source, kind, *words):
    """-> (elements with a class of their own, the text): checked for what no picture may have."""
    text = place.allium("export", source, "--svg", kind, *words).out
    equal(place.allium("export", source, "--svg", kind, *words).out, text, "the same picture again")
    check(len(text.encode()) <= 100 << 10, kind, len(text))
    root = xml.etree.ElementTree.fromstring(text)
    kinds = {element.tag for element in root.iter()} - {
        SVG + name for name in ("svg", "g", "title", "style", "rect", "text", "path", "polygon", "polyline")
    }
    equal(kinds, set(), "elements of a picture")
    equal([word for word in ("href", "url(", "@import", "onload") if word in text], [], "what would load or run")
    return root, text


def boxes(root):
    """[(name, x, y, width, height)], the sizes as they are without the gaps between boxes."""
    found = []
    for group in root.iter(SVG + "g"):
        title, rect = group.find(SVG + "title"), group.find(SVG + "rect")
        if title is not None:
            found.append((title.text.split("\n")[0], *(float(rect.get(key)) for key in ("x", "y", "width", "height"))))
    return found


def pictures(place):
    """Widths of a flame graph and areas of a treemap are as the bytes are; a curve ends at what was live."""
    record(place, "exact.allium", "--period", "1")
    total = json.loads(place.allium("report", "exact.allium", "--json").out)["total"]
    root, _ = picture(place, "exact.allium", "flame", "--metric", "allocated")
    found = boxes(root)
    stacks = folded(place, "exact.allium", "allocated")
    whole = sum(stacks.values())
    equal(whole, total["allocated_bytes"], "allocated bytes")
    want = {}
    for stack, value in stacks.items():
        names = stack.split(";")
        for depth in range(len(names)):
            key = names[depth], depth + 1
            want[key] = want.get(key, 0) + value
    widths = {}
    for name, _, y, width, _ in found:
        key = name, round((y - 44) / 18)
        widths[key] = widths.get(key, 0) + width + 0.7
    equal(widths[("all", 0)], 1200, "the root")
    drawn = [key for key in want if want[key] * 1200 / whole > 100]
    check(len(drawn) > 10, drawn)
    for key in drawn:
        # what is too narrow to be drawn is in no box of the name
        check(0.93 * want[key] <= widths[key] * whole / 1200 <= want[key] * 1.03 + 2, key, want[key], widths[key])
    root, _ = picture(place, "exact.allium", "treemap", "--metric", "allocated")
    functions = {row["name"]: row["self"]["allocated_bytes"]
                 for row in json.loads(place.allium("report", "exact.allium", "--by", "function", "--json", "--top",
                                                    "0", "--sort", "allocated").out)["rows"]}
    largest = {}
    for name, _, _, width, height in boxes(root):
        largest[name.rpartition("/")[2]] = width * height
    names = sorted((name for name in functions if name in largest), key=functions.get, reverse=True)[:6]
    check(len(names) == 6, largest)
    for a, b in zip(names, names[1:]):
        # the heads and edges of the boxes around take some of the area
        wrong = math.log(largest[a] / largest[b]) - math.log(functions[a] / functions[b])
        check(abs(wrong) < 0.5, a, b, largest, functions)
    root, text = picture(place, "exact.allium", "timeline")
    check("live bytes over time" in text, text)
    check("flame graph</title>" in picture(place, "exact.allium", "flame")[1], "title")
    done = place.allium("export", "exact.allium", "--svg", "pie", code=2)
    check("use flame, treemap or timeline" in done.err, done.err)
    done = place.allium("export", "exact.allium", "--html", "--metric", "live", code=2)
    check("--metric is for --svg" in done.err, done.err)


def large_picture(place):
    """A picture of very many calls keeps to its limit."""
    calls = "\n".join("def f%d(n):\n  return [bytearray(4000 + n)] + (g[(n * 7 + %d) %% 500](n - 1) if n else [])" % (i, i)
                      for i in range(500))
    record(place, "large.allium", "--period", "1",
           work=calls + "\ng = [globals()['f%d' % i] for i in range(500)]\nkept = [g[i](i % 9) for i in range(500)]\n")
    for kind in "flame", "treemap", "timeline":
        picture(place, "large.allium", kind, *([] if kind == "timeline" else ["--metric", "allocated"]))


tap.main([
    ("every stack is in the page, to the byte", placed(exact)),
    ("intervals in a browser", placed(intervals)),
    ("tables in a browser", placed(tables)),
    ("names with markup and hidden characters", placed(hostile_names)),
    ("a recording of nothing", placed(nothing)),
    ("several processes", placed(of_several)),
    ("a part that --where selects", placed(filtered)),
    ("processes that still run", placed(still_running)),
    ("intervals of parts, rows and searches", placed(sums)),
    ("colours by owner and age", placed(colours)),
    ("code without a name", placed(unnamed)),
    ("stored moments", placed(moments)),
    ("stored moments of several processes", placed(moments_of_several)),
    ("stored moments that have no room", placed(moments_left_out)),
    ("rows by line", placed(site_rows)),
    ("pages of run and report", placed(beside)),
    ("accounts of sites", placed(accounts)),
    ("a page of bounded size", placed(bounded)),
    ("pictures are drawn to scale", placed(pictures)),
    ("a picture of very many calls", placed(large_picture)),
])
