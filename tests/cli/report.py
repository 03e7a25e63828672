# SPDX-License-Identifier: BSD-2-Clause
"""What is asked of a report day by day: who asked behind the wrappers, who called whom, what was temporary, which
thread.
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal

TABLE, NAMES, LEAVES, FORMATTED = 100 * 10000, 200 * 1000, 60 * 500, 50 * 20000


def asked(place):
    place.allium("run", "--quiet", "--period", "1", "-o", "a.allium", "--", program("asker"))


def report(place, *words, **how):
    return json.loads(place.allium("report", "--json", "--top", "0", *words, **how).out)


def rows(place, *words, metric="live_bytes", which="self", **how):
    """{name: bytes}; of period 1, so that estimates are exact."""
    found = {}
    for row in report(place, *words, **how)["rows"]:
        if row[which][metric]:
            found[row["name"]] = found.get(row["name"], 0) + bytes_of(row[which][metric])
    return found


def bytes_of(value):
    return value["estimate"] if isinstance(value, dict) else value


def part(text, caption):
    """The lines of a report from its caption to the next empty one, blanks as one; without what came before main()."""
    lines = [re.sub(r"(?<=\S) +", " ", line.rstrip()) for line in text.splitlines()]
    check(caption in lines, "no %r in" % caption, text)
    begin = lines.index(caption)
    lines = [line.strip() for line in lines[begin + 1:lines.index("", begin)]]
    return [line for line in lines if not re.search(r"\b_start\b|__libc_start", line)]


def own_list(place, text):
    folder = place.path("config/allium")
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/wrappers", "wb") as file:
        file.write(text)
    return {"XDG_CONFIG_HOME": place.path("config")}


def wrappers(place):
    asked(place)
    have = rows(place, "--by", "function")
    equal(have, {"load_table": TABLE, "keep_names": NAMES, "leaf": LEAVES}, "rows by function")
    raw = rows(place, "--by", "function", "--raw")
    equal(raw, {"xmalloc": TABLE + NAMES, "leaf": LEAVES}, "the same with --raw")
    equal(rows(place, "--by", "owner"), have, "rows by owner")
    equal(rows(place, "--by", "function", which="inclusive")["main"], TABLE + NAMES + LEAVES, "what main() asked for")
    stacks = report(place)["rows"]
    equal(stacks[0]["stack"][0]["function"], "xmalloc", "innermost of the largest stack: those are whole")


def wrappers_screen(place):
    asked(place)
    said = place.allium("report", "--by", "function", "--sort", "allocated", "--where", "!func:keep_names").out
    equal(part(said, "Allocated in all, by function; SELF without its callees, TOTAL with them"), [
        "SELF SHARE TOTAL SHARE CALLS TEMP LIVE FUNCTION MODULE",
        "977 KiB 49 % 977 KiB 49 % 50 100 % 0 B format asker",
        "977 KiB 49 % 977 KiB 49 % 100 0 % 977 KiB load_table asker",
        "29.3 KiB 1.5 % 29.3 KiB 1.5 % 60 0 % 29.3 KiB leaf asker",
        "0 B 0 % 1.94 MiB 100 % 0 0 B main asker",
        "0 B 0 % 29.3 KiB 1.5 % 0 0 B walk asker"], "screen")
    said = place.allium("run", "--period", "1", "-o", "b.allium", "--", program("asker")).err
    check(re.search(r"held by .*load_table", said), "the summary does not say who asked:", said)


def own_wrappers(place):
    asked(place)
    env = own_list(place, b"# ours\nload_table\n  !xstrdup  # we look at this one\n")
    have = rows(place, "--by", "function", env=env)
    equal(have, {"main": TABLE, "xstrdup": NAMES, "leaf": LEAVES}, "rows with a list of one's own")
    env = own_list(place, b"ok\n!\n*\nleaf\na\x01b\n")
    done = place.allium("report", "--by", "function", "--json", env=env)
    equal(done.err, "allium: %s:2: a ! without a pattern; it and 2 more lines are left out, the rest is used\n"
          % place.path("config/allium/wrappers"), "what is said of bad lines")
    check("walk" in rows(place, "--by", "function", env=env), "the rest of the list was not used")
    env = own_list(place, b"?*\n")
    check("fits every function; the line is left out" in place.allium("report", env=env).err,
          "one bad line is not told")
    os.remove(place.path("config/allium/wrappers"))
    os.mkdir(place.path("config/allium/wrappers"))
    done = place.allium("report", "--by", "function", "--json", env=env)
    check(done.err.count("\n") == 1 and "left out" in done.err, "a list that is a directory:", done.err)
    check("xmalloc" not in rows(place, "--by", "function", env=env), "the list that came with allium was not used")


def wrappers_elsewhere(place):
    """diff groups as report does; queries still see the wrapper."""
    place.allium("run", "--quiet", "--period", "1", "-o", "small.allium", "--", program("holder"), "1")
    asked(place)
    grew = json.loads(place.allium("diff", "small.allium", "a.allium", "--by", "function", "--json", "--top",
                                   "0").out)["rows"]
    names = {row["name"] for row in grew}
    check("load_table" in names and "xmalloc" not in names, "diff has", names)
    raw = json.loads(place.allium("diff", "small.allium", "a.allium", "--by", "function", "--raw",
                                  "--json").out)["rows"]
    check("xmalloc" in {row["name"] for row in raw}, "diff --raw has", raw)
    equal(bytes_of(report(place, "a.allium", "--where", "func:xmalloc")["total"]["live_bytes"]), TABLE + NAMES,
          "where func:xmalloc")


def tree(place, *words):
    """[(depth, name, live bytes)] of a tree of calls, without what came before main()."""
    found = report(place, *words)
    for number, row in enumerate(found["rows"]):
        above = row["parent_row"]
        check(
            row["depth"] == 0
            if above is None else above < number and found["rows"][above]["depth"] == row["depth"] - 1, row)
    return [(row["depth"], row["name"], bytes_of(row["inclusive"]["live_bytes"])) for row in found["rows"]
            if not re.search("^_start$|^__libc_start", row["name"])]


def callers(place):
    asked(place)
    equal(tree(place, "--callers", "xmalloc"), [
        (0, "xmalloc", TABLE + NAMES), (1, "load_table", TABLE), (2, "main", TABLE), (1, "xstrdup", NAMES),
        (2, "keep_names", NAMES), (3, "main", NAMES)], "callers of xmalloc")
    inclusive = rows(place, "--by", "function", which="inclusive")
    for function in ("walk", "leaf", "keep_names", "main"):
        for way in ("--callers", "--callees"):
            found = report(place, way, function)
            equal((found["rows"][0]["name"], bytes_of(found["rows"][0]["inclusive"]["live_bytes"])),
                  (function, inclusive[function]), "what %s %s begins with" % (way, function))
            equal(bytes_of(found["total"]["live_bytes"]), inclusive[function], "the total of %s %s" % (way, function))
            equal(sum(bytes_of(row["self"]["live_bytes"]) for row in found["rows"]), inclusive[function],
                  "all that is at ends")
    equal(tree(place, "--callers", "walk")[:2], [(0, "walk", LEAVES), (1, "main", LEAVES)], "a recursion, from outside")
    equal(tree(place, "--callees", "walk"), [(0, "walk", LEAVES), (1, "leaf", LEAVES)], "a recursion, from inside")
    equal(tree(place, "--callees", "keep_*"), [(0, "keep_names", NAMES)], "callees, wrappers passed over")
    equal(tree(place, "--callees", "keep_names", "--raw"),
          [(0, "keep_names", NAMES), (1, "xstrdup", NAMES), (2, "xmalloc", NAMES)], "callees with --raw")
    equal(tree(place, "--callees", "xmalloc"), [(0, "xmalloc", TABLE + NAMES)], "callees of a wrapper")
    equal({row[1:]
           for row in tree(place, "--callees", "*_?a*e*")}, {("load_table", TABLE), ("keep_names", NAMES)}, "a pattern")


def callers_screen(place):
    asked(place)
    said = place.allium("report", "--callers", "xmalloc", "--sort", "allocated", "--top", "3").out
    equal(
        part(said, "Allocated in all in xmalloc: below each function its callers"),
        [
            "ALLOCATED SHARE CALLS TEMP LIVE FUNCTION",
            "2.10 MiB 100 % 350 45 % 1.14 MiB xmalloc",
            "977 KiB 45 % 50 100 % 0 B format < main",
            "977 KiB 45 % 100 0 % 977 KiB load_table < main",
            "… 1 more",
        ],
        "callers",
    )
    check("only in xmalloc and its callees" in said, "not said what the totals are of:", said)
    said = place.allium("report", "--callees", "main", "--sort", "allocated", "--where", "func:walk").out
    equal(
        part(said, "Allocated in all in main: below each function its callees"),
        [
            "ALLOCATED SHARE CALLS TEMP LIVE FUNCTION",
            "29.3 KiB 100 % 60 0 % 29.3 KiB main",
            "29.3 KiB 100 % 60 0 % 29.3 KiB walk",
            "19.5 KiB 67 % 40 0 % 19.5 KiB walk",
            "9.77 KiB 33 % 20 0 % 9.77 KiB leaf",
            "9.77 KiB 33 % 20 0 % 9.77 KiB walk > leaf",
            "9.77 KiB 33 % 20 0 % 9.77 KiB leaf",
        ],
        "callees",
    )


def callers_elsewhere(place):
    """Of a process, of a past moment, of what is old; and what cannot be asked."""
    asked(place)
    process = place.start(program("asker"), env=dict(place.env, LD_PRELOAD=tap.built("ALLIUM_AGENT"),
                                                     ALLIUM_PERIOD="1"))
    equal(process.stdout.readline(), b"ready\n", "the asker's word")
    equal(tree(place, str(process.pid), "--callees", "walk"), [(0, "walk", LEAVES), (1, "leaf", LEAVES)],
          "of a process")
    equal(
        tree(place, str(process.pid), "--callees", "walk", "--older-than", "1us")[0], (0, "walk", LEAVES),
        "what is old")
    equal(tree(place, "--callees", "walk", "--older-than", "1h"), [], "what is older than all")
    done = place.allium("report", "--callers", "load_tabel", code=1)
    equal((done.out, done.err), ("", "allium: no function load_tabel is on any stack; similar names: load_table\n"),
          "a wrong name")
    done = place.allium("report", "--callees", "no such thing at all", code=1)
    check(
        done.err.startswith("allium: no function no such thing at all is on any stack (") and done.err.count("\n") == 1,
        done.err)
    for words in (("--callers", "a", "--callees", "b"), ("--callers", "a", "--by", "stack"), ("--callers", ""),
                  ("--temporary", "--sort", "live"), ("--temporary", "--older-than", "1s"), ("--callers",)):
        done = place.allium("report", *words, code=2)
        check(done.err.startswith("allium: ") and done.err.count("\n") == 1 and not done.out, words, "said", done.err)


def temporary(place):
    asked(place)
    have = rows(place, "--temporary", "--by", "function", metric="temporary_bytes")
    equal(have, {"format": FORMATTED}, "temporary bytes")
    said = place.allium("report", "--temporary").out
    equal(
        part(said, "Freed before the thread's next allocation, by stack, innermost call first")[:3],
        ["TEMPORARY SHARE OBJECTS ALLOCATED TEMP LIVE", "977 KiB 100 % 50 977 KiB 100 % 0 B", "xmalloc asker.c:17"],
        "screen")
    place.allium("run", "--quiet", "--period", "8K", "-o", "sampled.allium", "--", program("asker"))
    said = place.allium("report", "sampled.allium", "--temporary").out
    head = part(said, "Freed before the thread's next allocation, by stack, innermost call first")[0]
    equal(head, "TEMPORARY SHARE 95 % INTERVAL OBJECTS 95 % INTERVAL ALLOCATED TEMP LIVE", "columns of samples")


def threads(place):
    """Names as they are now, of a process, and as they were last seen, of a recording."""
    process = place.start(program("named"), env=dict(place.env, LD_PRELOAD=tap.built("ALLIUM_AGENT"),
                                                     ALLIUM_PERIOD="1"))
    equal(process.stdout.readline(), b"ready\n", "its word")
    pid, want = str(process.pid), {"named/early": 100000, "named/late": 100000, "named/thread": 100000}

    def have(*words):
        found = {name.rsplit(" (", 1)[0]: size for name, size in rows(place, *words, "--by", "thread").items()}
        return {name: size for name, size in found.items() if name != "named"}  # what libc's own affairs took

    equal(have(pid), want, "threads of a process")
    for query, which in (("thread:early", "early"), ("thread:la*", "late"), ("thread:named/thread", "thread"),
                         ("thread:*/late", "late")):
        equal(have(pid, "--where", query), {"named/" + which: 100000}, "where " + query)
    recorder = place.start_allium("run", "--quiet", "--period", "1", "-o", "n.allium", "--", program("named"))
    equal(recorder.stdout.readline(), b"ready\n", "its word")
    count = "SELECT count(*) FROM thread JOIN string ON string.id = name WHERE text = 'late'"
    tap.wait_until(lambda: place.allium("sql", "n.allium", "--csv", count, code=None).out.split()[1:] == ["1"], 30,
                   "the later name")
    recorder.stdin.close()
    equal(recorder.wait(20), 0, "code")
    equal(have("n.allium"), want, "threads of a recording, which have ended")


def peak_of_threads(place):
    """Threads hand on what they hold in lots; what lies between is at the peak all the same, when nothing was ever
    freed.
    """
    process = place.start(program("named"), env=dict(place.env, LD_PRELOAD=tap.built("ALLIUM_AGENT"),
                                                     ALLIUM_PERIOD="1"))
    equal(process.stdout.readline(), b"ready\n", "its word")
    for source in (str(process.pid), "p.allium"):
        report = json.loads(place.allium("report", source, "--by", "thread", "--json").out)
        check(report["total"]["live_bytes"] >= 300000, "the blocks of three threads:", report["total"])
        for what in (report["total"], *(row["self"] for row in report["rows"])):
            equal(what["peak_bytes"], what["live_bytes"], "peak and live of " + source)
        if source != "p.allium":
            place.allium("snapshot", source, "-o", "p.allium")


def screens(place):
    """--columns, --wide and --exact: headings of the table of functions, in 60 columns, and whole numbers."""
    def table(*words):
        lines = place.allium("report", "a.allium", "--by", "function", *words, env={**place.env, "COLUMNS": "60"}).out
        lines = lines.split("Still held")[1].splitlines()
        at = next(i for i, line in enumerate(lines) if "FUNCTION" in line)
        return lines[at].split("  "), lines[at + 1]

    def headings(*words):
        return [word.strip() for word in table(*words)[0] if word.strip()]
    asked(place)
    narrow, wide = headings(), headings("--wide")
    check(len(wide) > len(narrow) and "FUNCTION" in narrow and {*narrow} < {*wide}, narrow, wide)
    equal(headings("--columns", "function, Total"), ["TOTAL", "FUNCTION"], "headings")
    first = rows(place, "a.allium", "--by", "function")
    exact = table("--exact", "--columns", "self,function")[1].strip()
    largest = max(first.values())
    check(exact.startswith(format(largest, ",") + " B"), exact, largest)
    # A table that has none of the columns is shown as it is.
    done = place.allium("report", "a.allium", "--by", "process", "--columns", "function", code=2)
    check("PROCESS" in done.out, done.out)
    check("allium: --columns: no table has a column 'function'; there is LIVE, " in done.err, done.err)
    done = place.allium("report", "a.allium", "--columns", "liev", code=2)
    check("no table has a column 'liev'; did you mean LIVE? There is LIVE, " in done.err, done.err)
    # ... with the names that found no column of their own, too.
    place.allium("run", "--quiet", "--sites", "-o", "sites.allium", "--", program("asker"))
    narrow = {**place.env, "COLUMNS": "60"}
    whole = place.allium("sites", "sites.allium", env=narrow).out
    equal(place.allium("sites", "sites.allium", "--columns", "no such", env=narrow, code=2).out, whole, "the table")
    # Names twice, with blanks around them; a column that is hidden, since none of its values is known.
    named = place.allium("sites", "sites.allium", "--columns", " live ,LIVE, failed,", "--exact").out.splitlines()
    equal((named[3].split(), "iB" in "".join(named)), (["LIVE"], False), "columns, and whole numbers above them")
    # What a condition says is said, too.
    place.allium("run", "--quiet", "--sites", "-o", "ls.allium", "--", "ls")
    done = place.allium("sites", "ls.allium", "sites.allium", "--fail-if", "live+1B", "--columns", "nosuch", code=4)
    check("live+1B: met: +" in done.err and "no table has a column" in done.err, done.err)


def recorder(place):
    """The CPU time and memory of `allium run` itself, against the kernel's account of it, which has all until its end.
    """
    command = [built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", "c.allium", "--", "sleep", "1"]
    process = subprocess.Popen(command, cwd=place.folder, env=place.env)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    equal(status, 0, "wait status")
    cost = report(place, "c.allium")["cost"]
    cpu_ns = (usage.ru_utime + usage.ru_stime) * 1e9
    check(0.3 * cpu_ns <= cost["recorder_cpu_ns"] <= cpu_ns, "CPU time", cost, cpu_ns)
    check(0.5 * usage.ru_maxrss * 1024 <= cost["recorder_peak_bytes"] <= usage.ru_maxrss * 1024, "memory", cost, usage)
    footer = place.allium("report", "c.allium").out
    check(
        re.search(r"\n  The recorder \(allium run\) took [\d.]+ m?s of CPU and at most [\d.]+ MiB of memory\n", footer),
        footer)


def no_samples(place):
    """Processes that only have accounts of call sites are counted in the summary."""
    done = place.allium("run", "--sites", "--period", "1G", "-o", "s.allium", "--", "sh", "-c", "sh -c true; exit 0")
    check(re.search(r"\n  processes  \d+, none with a sample\n", done.err), "summary", done.err)


tap.main([(name, placed(function)) for name, function in [
    ("wrappers are passed over by function and owner, and shown with --raw and in stacks", wrappers),
    ("reports and summaries name who asked", wrappers_screen),
    ("a list of one's own adds and takes away, and bad lines are told", own_wrappers),
    ("diff passes over wrappers, queries do not", wrappers_elsewhere),
    ("callers and callees add up to the function's row, and recursion counts once", callers),
    ("callers and callees have a screen", callers_screen),
    ("callers and callees of processes and of what is old, and what cannot be asked", callers_elsewhere),
    ("threads have the names that were seen last", threads),
    ("the peak of several threads is no less than what they hold", peak_of_threads),
    ("what was temporary, with counts and their intervals", temporary),
    ("columns, wide and exact screens", screens),
    ("what recording takes itself is in the cost", recorder),
    ("processes without a sample are counted", no_samples),
]])
