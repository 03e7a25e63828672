# SPDX-License-Identifier: BSD-2-Clause
"""allium sys allocinfo: what a kernel has written, against sums by Python alone; options, refusals, and what is wrong
with files.
"""
import collections
import gzip
import json
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import tap
from workdir import placed
from tap import built, check, equal

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/recorded")
SAMPLES = ("6.12-before", "6.12-after", "2.0-by-hand")
HEAD = "allocinfo - version: %s\n#     <size>  <calls> <tag info>\n"
KEYS = {
    "site": ("file", "line", "module", "function"), "file": ("file",), "directory": ("directory",),
    "module": ("module",), "function": ("module", "function")
}


def sample(name):
    with open("%s/allocinfo-%s" % (RECORDED, name)) as file:
        return file.read()


def put(place, name, text):
    with open(place.path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def samples(place):
    for name in SAMPLES:
        put(place, name, sample(name))


def sites(text):
    """[(bytes, calls, {file, line, module, function, directory}, accurate)], by an expression of its own."""
    found = []
    for line in text.splitlines()[2:]:
        match = re.fullmatch(r" *(-?\d+) +(\d+) (\S+):(\d+)(?: \[(\w+)\])? func:(\S+)( accurate:no)? *", line)
        check(match, "no row:", line)
        size, calls, file, number, module, function, inexact = match.groups()
        key = {
            "file": file, "line": int(number), "module": module, "function": function,
            "directory": os.path.dirname(file) or "."
        }
        found.append((int(size), int(calls), key, not inexact))
    return found


def sums(text, group):
    """{key: (bytes, calls)}"""
    added = collections.defaultdict(lambda: (0, 0))
    for size, calls, key, _ in sites(text):
        name = tuple(key[part] for part in KEYS[group])
        added[name] = (added[name][0] + size, added[name][1] + calls)
    return dict(added)


def ask(place, *words, **how):
    return json.loads(place.allium("sys", "allocinfo", *words, "--json", **how).out)


def named(answer, *values):
    return {
        tuple(row[part] for part in KEYS[answer["group"]]): tuple(row[value] for value in values)
        for row in answer["rows"]
    }


def groups(place):
    samples(place)
    for name in SAMPLES:
        text = sample(name)
        all_sites = sites(text)
        for group in KEYS:
            answer = ask(place, name, "--by", group)
            equal(named(answer, "size_bytes", "calls"), sums(text, group), "%s by %s" % (name, group))
            equal(len(answer["rows"]), answer["rows_in_all"], "rows")
            equal((answer["total"]["size_bytes"], answer["total"]["calls"], answer["total"]["sites"]),
                  (sum(site[0] for site in all_sites), sum(site[1] for site in all_sites), len(sums(text, "site"))),
                  "totals")
            equal((answer["after"]["malformed_lines"], answer["after"]["cut"]), (0, False), "losses")
        equal(answer["after"]["format"], text.split()[3], "its version")
        modules = {site[2]["module"] for site in all_sites}
        check(modules & {"brd", "ext4"}, "no row of a module in", name)
    inexact = [site for site in sites(sample("2.0-by-hand")) if not site[3]]
    answer = ask(place, "2.0-by-hand", "--where", "accurate:no")
    equal([(row["size_bytes"], row["accurate"]) for row in answer["rows"]], [(site[0], False) for site in inexact],
          "what is inexact")
    equal((len(inexact), answer["after"]["inexact"]), (1, 1), "how many are")


def again(place):
    """--allocinfo gives what is read back as the same; --where narrows it."""
    samples(place)
    for name in SAMPLES:
        done = place.allium("sys", "allocinfo", name, "--allocinfo")
        check(done.out.startswith(HEAD % "2.0") and not done.err, done.out[:200], done.err)
        equal(sums(done.out, "site"), sums(sample(name), "site"), "what is written again")
        put(place, "again", done.out)
        equal(place.allium("sys", "allocinfo", "again", "--allocinfo").out, done.out, "and again")
    some = place.allium("sys", "allocinfo", "6.12-after", "--allocinfo", "--where", "module:brd").out
    equal({site[2]["module"] for site in sites(some)}, {"brd"}, "modules")


def screen(place):
    samples(place)
    done = place.allium("sys", "allocinfo", "6.12-after", "--top", "3", env={"LC_ALL": "C"})
    lines = done.out.splitlines()
    found = sites(sample("6.12-after"))
    equal(lines[0], "6.12-after, version 1.0", "heading")
    check(re.match(r"  [\d,]+ sites hold [\d.]+ MiB in [\d.]+k calls$", lines[1]), lines[1])
    check("%s sites" % format(len(sums(sample("6.12-after"), "site")), ",") in lines[1], lines[1])
    equal((lines[3].split()[:3], len(lines)), (["SIZE", "CALLS", "AVERAGE"], 7), "the table")
    largest = max(found, key=lambda site: site[0])[2]
    check(largest["function"] in lines[4] and largest["file"] in lines[4], lines[4])
    check(re.fullmatch(r"allium: 3 of [\d,]+ rows are shown; --top 0 shows all\n", done.err), done.err)
    equal(len(place.allium("sys", "allocinfo", "6.12-after", "--top", "0").out.splitlines()),
          4 + len(sums(sample("6.12-after"), "site")), "all rows")
    check("(built-in)" in place.allium("sys", "allocinfo", "6.12-after", "--by", "module").out,
          "no name for what is built in")
    check("ACCURATE" in place.allium("sys", "allocinfo", "2.0-by-hand").out, "no word of what is inexact")
    check("1 of these sites is inexact (accurate:no)" in place.allium("sys", "allocinfo", "2.0-by-hand").out,
          "nor in the totals")


def order(place):
    samples(place)
    for words, key in ((("calls",), lambda row: -row["calls"]), (("+size",), lambda row: row["size_bytes"]),
                       (("name",), lambda row: (row["file"], row["line"])), (("-line",), lambda row: -row["line"]),
                       (("function",), lambda row: row["function"])):
        rows = ask(place, "6.12-after", "--sort", *words)["rows"]
        equal([key(row) for row in rows], sorted(map(key, rows)), "in order of " + words[0])
    for sort in "size", "+calls", "function", "-name", "average", "module":
        rows = ask(place, "6.12-after", "--sort", sort)["rows"]
        for top in 1, 2, 7, 100, len(rows) // 2, len(rows) - 1, len(rows):
            equal(
                ask(place, "6.12-after", "--sort", sort, "--top", str(top))["rows"], rows[:top],
                "the first %d by %s" % (top, sort))
    rows = ask(place, "6.12-after", "--sort", "average")["rows"]
    known = [row["average_bytes"] for row in rows if row["calls"]]
    equal(known, sorted(known, reverse=True), "averages")
    equal([row["average_bytes"] for row in rows[len(known):]], [None] * (len(rows) - len(known)),
          "what has none is last")


def queries(place):
    samples(place)
    found = sites(sample("6.12-after"))
    for query, holds in (
        ("dir:mm", lambda s: "mm" in s[2]["directory"].split("/")),
        ("module:*", lambda s: s[2]["module"]),
        ("!module:* size>=64k", lambda s: not s[2]["module"] and s[0] >= 65536),
        ("file:slub.c", lambda s: os.path.basename(s[2]["file"]) == "slub.c"),
        ("func:brd_* or calls=1", lambda s: s[2]["function"].startswith("brd_") or s[1] == 1),
    ):
        chosen = [site for site in found if holds(site)]
        answer = ask(place, "6.12-after", "--where", query)
        equal((answer["filter"], answer["total"]["size_bytes"]), (query, sum(site[0] for site in chosen)), query)
        check(chosen, "nothing is chosen by", query)
        equal(answer["after"]["size_bytes"], sum(site[0] for site in found), "of the whole file")


def changes(place):
    samples(place)
    before, after = sample("6.12-before"), sample("6.12-after")
    for group in KEYS:
        old, new = sums(before, group), sums(after, group)
        wanted = {}
        for key in old.keys() | new.keys():
            was, now = old.get(key, (0, 0)), new.get(key, (0, 0))
            if was != now:
                wanted[key] = (now[0] - was[0], was[0], now[0], now[1] - was[1], now[1])
        answer = ask(place, "6.12-before", "6.12-after", "--by", group)
        equal(named(answer, "change_bytes", "before_bytes", "size_bytes", "calls_change", "calls"), wanted,
              "changes by " + group)
        equal([row["change_bytes"] for row in answer["rows"]],
              sorted((row["change_bytes"] for row in answer["rows"]), reverse=True), "their order")
    check(wanted and any(key[0] == "loop" for key in sums(after, "module")), "nothing has changed, or no module came")
    equal(answer["total"]["change_bytes"],
          sum(site[0] for site in sites(after)) - sum(site[0] for site in sites(before)), "the sum")
    shown = place.allium("sys", "allocinfo", "6.12-before", "6.12-after", "--top", "5").out
    check("6.12-before, version 1.0" in shown and "CALLS CHANGE" in shown and "\nchange\n" in shown, shown)
    equal(ask(place, "6.12-after", "6.12-after")["rows"], [], "changes of nothing")
    done = place.allium("sys", "allocinfo", "6.12-before", "-", "--json", input=after.encode())
    equal(json.loads(done.out)["total"], answer["total"], "from standard input")


def rates(place):
    row = "%12d %8d a.c:1 func:f \n        4096        1 b.c:2 [m] func:g \n"
    put(place, "live", HEAD % "2.0" + row % (1000, 10) + "x\n")
    process = place.start_allium("sys", "allocinfo", "live", "--interval", "200ms", "--count", "3", "--json")
    first = process.stdout.readline()  # the rest begins with a reading that was before
    put(place, "new", HEAD % "2.0" + row % (1000 - 500, 30) + "x\n")
    os.rename(place.path("new"), place.path("live"))
    reports = [json.loads(line) for line in [first, *process.stdout]]
    equal((process.wait(tap.TIMEOUT), len(reports)), (0, 3), "code and reports")
    changed = [report for report in reports if report["rows"]]
    equal(len(changed), 1, "reports in which something has changed")
    (report,) = changed
    seconds = report["interval_ns"] / 1e9
    check(0.15 < seconds < 20, seconds)
    (found,) = report["rows"]
    check(
        abs(found["size_bytes_per_s"] + 500 / seconds) < 1e-3 and abs(found["calls_per_s"] - 20 / seconds) < 1e-3,
        found)
    equal((found["size_bytes"], found["calls"], found["function"], report["view"]), (500, 30, "f", "rate"), "the row")
    check(abs(report["total"]["size_bytes_per_s"] - found["size_bytes_per_s"]) < 1e-3, report["total"])
    check(abs(report["time_ns"] / 1e9 - time.time()) < 60, report["time_ns"])
    equal(process.stderr.read().decode().count("line 5"), 1, "times that the bad line is named")
    shown = place.allium("sys", "allocinfo", "live", "--interval", "20ms", "--duration", "50ms").out
    check(re.match(r"--- [\d.]+ ms after the start, the last [\d.]+ ms: 0 B and 0 calls a second, 0 rows\n", shown),
          shown)
    process = place.start_allium("sys", "allocinfo", "live", "--interval", "20ms")
    process.stdout.readline()
    equal(tap.stop(process, signal.SIGINT), 0, "code after ^C")
    done = place.allium("sys", "allocinfo", "gone", "--interval", "20ms", code=1)
    check("gone: No such file" in done.err, done.err)


def damage(place):
    """What is wrong with a file is counted and named, in any form."""
    good = "        4096        1 a.c:1 func:f \n"
    put(place, "bad", HEAD % "1.0" + "rubbish\n" + good + "1 2 a.c func:g \n" + good[:20])
    for words in ((), ("--by", "file"), ("--json",), ("--allocinfo",)):
        done = place.allium("sys", "allocinfo", "bad", *words)
        check(
            "allium: bad: 3 lines were skipped: line 3: invalid size, not a 64-bit number; line 5: no file and line; line 6:"
            in done.err and "the last line is incomplete" in done.err, done.err)
    after = ask(place, "bad")["after"]
    equal((after["malformed_lines"], [bad["line"] for bad in after["malformed"]], after["cut"], after["sites"]),
          (3, [3, 5, 6], True, 1), "in JSON")
    put(place, "many", HEAD % "1.0" + "x\n" * 100)
    check(
        "100 lines were skipped" in place.allium("sys", "allocinfo", "many").err
        and "and more" in place.allium("sys", "allocinfo", "many").err, "not counted")
    put(place, "odd", HEAD % "2.0" + "1 1 a\x1b[2J.c:1 [m\x07] func:\xff<b> \n")
    check(not re.search("[\x1b\x07]", place.allium("sys", "allocinfo", "odd").out), "bytes that move the cursor")
    equal(ask(place, "odd")["rows"][0]["file"], "a\x1b[2J.c", "in JSON, a name as it is")
    equal(
        place.allium("sys", "allocinfo", "odd", "--allocinfo").out.split()[-4:],
        ["1", "a?[2J.c:1", "[m?]", "func:\xff<b>"], "in the kernel's text")
    for name, text, words in (
        ("none", "MemTotal: 1 kB\n", "does not begin with"),
        ("empty", "", "does not begin with"),
        ("newer", HEAD % "3.0", "version 1 or 2"),
        ("zipped", gzip.compress(good.encode()), "compressed: use"),
    ):
        put(place, name, text)
        done = place.allium("sys", "allocinfo", name, code=1)
        check(
            done.err.count("\n") == 1 and done.err.startswith("allium: %s: " % name) and words in done.err
            and not done.out, done.err)
    for name, words in ((".", "Is a directory"), ("missing", "No such file")):
        check(words in place.allium("sys", "allocinfo", name, code=1).err, name)


def keys_of(value):
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from keys_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys_of(part)


def documented(place):
    """Each key of each form of JSON is in the manual, and each column that the manual of the command names is one."""
    samples(place)
    with open(os.path.join(RECORDED, "../../../man/allium-json.5.scd")) as file:
        page = re.search(r"^# ALLOCINFO$(.*?)^# ", file.read(), re.M | re.S).group(1)
    known = set(re.findall(r"\*([a-z_\\]+)\*", page)) | {"schema", "version"}
    put(place, "bad", HEAD % "1.0" + "x\n")
    found = set(keys_of(ask(place, "bad")))
    for group in KEYS:
        found |= set(keys_of(ask(place, "6.12-after", "--by", group))) | set(
            keys_of(ask(place, "6.12-before", "6.12-after", "--by", group)))
    row = "1 %d a.c:1 func:f\n"
    put(place, "live", HEAD % "1.0" + row % 1)
    process = place.start_allium("sys", "allocinfo", "live", "--interval", "100ms", "--json", "--count", "20")
    process.stdout.readline()
    put(place, "new", HEAD % "1.0" + row % 2)
    os.rename(place.path("new"), place.path("live"))
    for line in process.stdout:
        found |= set(keys_of(json.loads(line)))
    equal(process.wait(tap.TIMEOUT), 0, "its code")
    check("size_bytes_per_s" in found, found)
    equal(found - known, set(), "keys that the manual does not have")
    equal({word
           for word in known if word.endswith(("_bytes", "_per_s", "_ns"))} - found, set(),
          "keys that only the manual has")


def misuse(place):
    samples(place)
    for words, said in (
        (("a", "b", "c"), "too many files"),
        (("-", "-"), "can be only one of the two"),
        (("--by", "line"), "unknown --by line"),
        (("--sort", "change"), "unknown --sort change"),
        (("--by", "file", "--sort", "line"), "sites"),
        (("--top", "x"), "invalid number"),
        (("--count", "2"), "needs --interval"),
        (("--duration", "2"), "needs --interval"),
        (("--interval", "1ms"), "too short: use 10 ms or more"),
        (("--interval", "1", "--count", "0"), "out of range: use 1 to"),
        (("--interval", "1", "-"), "takes one file"),
        (("a", "b", "--interval", "1"), "takes one file"),
        (("--allocinfo", "--json"), "leave out --json"),
        (("--allocinfo", "--by", "file"), "leave out --by"),
        (("--allocinfo", "a", "b"), "takes one file"),
        (("--where", "pid=1"), "--where: "),
        (("--where", "size>"), "--where: "),
    ):
        done = place.allium("sys", "allocinfo", *words, code=2)
        check(said in done.err and done.err.count("\n") == 1, words, "said", done.err)


def old_name(place):
    """The command that was moved names its new place."""
    done = place.allium("allocinfo", "6.12-after", code=2)
    equal(done.err, "allium: unknown command \"allocinfo\"; it is now: allium sys allocinfo\n", "stderr")
    equal(done.out, "", "stdout")


def without(place):
    """Kernels that have none, or do not count, or tell only root; in a /proc of our own."""
    samples(place)
    for words, commands, code, said in (
        ((), "true", 3, "without CONFIG_MEM_ALLOC_PROFILING"),
        ((), "echo 0 >sys/vm/mem_profiling", 3, "sysctl.vm.mem_profiling=1"),
        ((), "cp FILE allocinfo; echo 0 >sys/vm/mem_profiling", 3, "switched off: sysctl vm.mem_profiling=1"),
        (("/proc/allocinfo",), "cp FILE allocinfo; echo 0 >sys/vm/mem_profiling", 0, ""),
        ((), "cp FILE allocinfo; echo 1 >sys/vm/mem_profiling", 0, ""),
        (("--json",), "cp FILE allocinfo", 0, ""),
        (("/proc/allocinfo",), "true", 3, "CONFIG_MEM_ALLOC_PROFILING"),
    ):
        script = "mount -t tmpfs none /proc && cd /proc && mkdir -p sys/vm && %s && exec \"$@\"" % commands.replace(
            "FILE", place.path("6.12-after"))
        done = tap.run([*tap.unshare(), "sh", "-c", script, "sh",
                        built("ALLIUM"), "sys", "allocinfo", *words], env=place.env)
        err = done.stderr.decode()
        equal(done.returncode, code, "code of %s after %s, which said %s" % (words, commands, err))
        check(said in err and (not code or err.count("\n") == 1), commands, err)
        check(bool(done.stdout) == (not code), "output", done.stdout[:100])
    script = (
        "mount -t tmpfs none /proc && cd /proc && cp \"$0\" allocinfo && chmod 400 allocinfo && cp \"$1\" allium && chmod 755 . allium &&"
        " exec setpriv --reuid 65534 --clear-groups ./allium sys allocinfo")
    if os.geteuid() == 0:
        done = tap.run([*tap.unshare(), "sh", "-c", script, place.path("6.12-after"), built("ALLIUM")], env=place.env)
        equal((done.returncode, done.stderr.decode().count("\n")), (3, 1), "code, and lines, of one who may not")
        check(b"only root may read it: sudo allium sys allocinfo" in done.stderr, done.stderr)


tap.main([
    ("sums of each group are those that Python adds up", placed(groups)),
    ("what --allocinfo writes is read back with the same sums", placed(again)),
    ("the screen has totals, the largest rows, and says that there are more", placed(screen)),
    ("rows come in the order that is asked for", placed(order)),
    ("a query chooses sites before they are added up", placed(queries)),
    ("changes are what is in one file less what is in the other", placed(changes)),
    ("rates are changes in a second, read again and again", placed(rates)),
    ("lines that are none are counted and named, files that are none refused", placed(damage)),
    ("each key of its JSON is in the manual", placed(documented)),
    ("wrong usage is said in one line", placed(misuse)),
    ("the name that the command had points to the one that it has", placed(old_name)),
    ("a kernel without it is told from one that does not count, and one that may not be asked", placed(without)),
])
