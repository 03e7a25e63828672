# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --speedscope` and `--heaptrack`: heaptrack_print and readers of our own find what `allium report`
says.
"""
import contextlib
import gzip
import json
import os
import re
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import export_readers
import tap
from workdir import placed, program
from tap import built, check, equal, wait_until

METRICS = {
    "live": "live bytes", "peak": "bytes at the peak", "allocated": "allocated bytes", "allocations": "allocations",
    "temporary": "temporary bytes"
}
SAW = """
import sys, time
kept = []
for i in range(3):
    brief = [bytearray(8000) for _ in range(2000)]
    kept.append([bytearray(3000) for _ in range(800)])
    time.sleep(0.3)
    del brief
    print("low", flush=True)
    sys.stdin.readline()
del kept[1:]
time.sleep(0.2)
for i in range(4000): bytearray(25000)
"""


def points_since(path, time_ns):
    with contextlib.suppress(sqlite3.OperationalError):  # while it is being made
        return recording_reader.rows(path, "SELECT count(*) FROM point WHERE time_ns > %d" % time_ns)[0][0]
    return 0


def run_saw(place, period):
    """It goes on when the recording has followed it through each trough, however slow the machine is. -> the recording,
    of one its moment
    """
    process = place.start(built("ALLIUM"), "run", "--quiet", "--period", period, "-o", "saw.allium", "--",
                          "/usr/bin/python3", "-c", SAW, env=dict(place.env, PYTHONMALLOC="malloc"))
    path, moment = place.path("saw.allium"), 0
    for _ in range(3):
        equal(process.stdout.readline(), b"low\n", "its word")
        now = time.time_ns()
        wait_until(lambda: points_since(path, now) >= 20, 60, "points of a trough")
        moment = moment or wait_until(lambda: recording_reader.moment(path, "time_ns > %d" % now), 60,
                                      "a moment of a trough")
        process.stdin.write(b"\n")
        process.stdin.flush()
    equal(process.wait(tap.TIMEOUT), 0, "code of allium run")
    return "saw.allium", "saw.allium@%dns" % moment


def totals(place, source, *words):
    report = json.loads(place.allium("report", source, "--json", "--top", "0", *words).out)
    return report["total"], report


def folded(place, source, metric, *words):
    lines = place.allium("export", source, "--folded", metric, *words).out.splitlines()
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}


def heaptrack(place, source, *words, name="x.heaptrack.gz"):
    place.allium("export", source, "--heaptrack", "--force", "-o", name, *words)
    return export_readers.Heaptrack(place.path(name))


def printed(place, name, *options):
    """What heaptrack_print says, which must have understood all of it."""
    done = tap.run(["heaptrack_print", "--disable-builtin-suppressions", "--shorten-templates=0", name, *options],
                   cwd=place.folder)
    equal((done.returncode, done.stderr), (0, b""), "code and stderr of heaptrack_print")
    return done.stdout.decode(errors="surrogateescape")


def cost(place, name, which):
    """The sum over the stacks that heaptrack_print knows, in full digits."""
    printed(place, name, "-F", "stacks.txt", "--flamegraph-cost-type", which)
    with open(place.path("stacks.txt"), errors="surrogateescape") as file:
        return sum(int(line.rpartition(" ")[2]) for line in file)


def reader_agrees(place, name, mine):
    """heaptrack_print and our own reader of the format make the same of it."""
    text = printed(place, name)
    calls, = re.findall(r"^calls to allocation functions: (\d+)", text, re.M)
    temporary, = re.findall(r"^temporary memory allocations: (\d+)", text, re.M)
    equal((int(calls), int(temporary)), (mine.calls, mine.temporary),
          "calls and temporary ones that heaptrack_print has")
    for which, want in (
        ("allocations", mine.calls),
        ("temporary", mine.temporary),
        ("peak", mine.peak),
        ("leaked", mine.live),
    ):
        equal(cost(place, name, which), want, which + " that heaptrack_print has")
    return text


def same_speedscope(place, source, metrics=METRICS, words=()):
    done = place.allium("export", source, "--speedscope", *words)
    found = export_readers.speedscope(done.stdout)
    equal(sorted(found), sorted(METRICS[metric] for metric in metrics), "profiles in the file")
    for metric in metrics:
        equal(dict(found[METRICS[metric]]), folded(place, source, metric, *words), "what --folded has, of " + metric)
    return found


def same_heaptrack(place, source, words=(), threads=1):
    """Of a source that is exact: each stack has what --folded says."""
    mine = heaptrack(place, source, *words)
    total, report = totals(place, source, *words)
    equal((mine.calls, mine.live, mine.peak),
          tuple(total[key] for key in ("allocations", "live_bytes", "peak_bytes")),
          "calls, bytes leaked and at the peak")
    check(
        abs(mine.temporary - total["temporary_allocations"]) <= threads, "temporary:", mine.temporary,
        total["temporary_allocations"])
    for metric, counter in (("live", None), ("peak", mine.stack_peak or {}), ("allocations", mine.stack_calls)):
        equal(dict(mine.folded(counter)), folded(place, source, metric, *words), "what --folded has, of " + metric)
    reader_agrees(place, "x.heaptrack.gz", mine)
    return mine, report


def exact(place):
    for command in ([program("holder"), "1"], [os.path.join(built("TEST_PROGRAMS"), "operators"), "100"],
                    ["/usr/bin/python3", "-c", "import json"]):
        place.allium("run", "--quiet", "--force", "--period", "1", "-o", "r.allium", "--", *command)
        mine, _ = same_heaptrack(place, "r.allium")
        check(os.path.basename(command[0]) in mine.command, "command:", mine.command)
        same_speedscope(place, "r.allium")


def temporary(place):
    """The order of the events in the file makes no allocation temporary that the profile does not count as such."""
    for way, want in (("pairs", 1000), ("ring", 0)):
        place.allium("run", "--quiet", "--force", "--period", "1", "-o", "r.allium", "--", program("crossed"), way)
        mine, _ = same_heaptrack(place, "r.allium")
        check(abs(mine.temporary - want) <= 1, way, "has", mine.temporary, "temporary allocations, not", want)


def top_functions(place):
    place.recording("1")
    place.allium("export", "r.allium", "--heaptrack", "-o", "r.heaptrack")
    text = printed(place, "r.heaptrack", "--print-leaks")
    for heading, words in (("MOST CALLS TO ALLOCATION FUNCTIONS",
                            "100 calls to allocation functions with 1000.00K peak "
                            "consumption from\nhold\n  at %s:16\n  in %s\n"),
                           ("PEAK MEMORY CONSUMERS",
                            "1000.00K peak memory consumed over 100 calls from\nhold\n  at %s:16\n"
                            "  in %s\n"), ("MEMORY LEAKS",
                                           "1000.00K leaked over 100 calls from\nhold\n  at %s:16\n  in %s\n")):
        source, = re.findall(r"^  at (\S*/holder.c):16$", text, re.M)[:1]
        check(heading + "\n" + words % (source, program("holder")) in text, heading, "is not as it should be:", text)
    check("50 temporary allocations of 50 allocations in total (100.00%) from\nwaste\n" in text, text)


def sampled(place):
    source, _ = run_saw(place, "16K")
    same_speedscope(place, source)
    mine = heaptrack(place, source)
    total, _ = totals(place, source)
    rows = len(mine.infos)  # each rounds at most once
    for what, have, key in (("calls", mine.calls, "allocations"), ("leaked", mine.live, "live_bytes"),
                            ("peak", mine.peak, "peak_bytes"), ("temporary", mine.temporary, "temporary_allocations")):
        check(abs(have - total[key]) <= rows, what, have, "is not", total[key], "within", rows)
    check(mine.calls > 5000 and mine.peak > 10 << 20, "hardly anything in it:", mine.calls, mine.peak)
    check("sampled every 16 KiB" in mine.command, mine.command)
    reader_agrees(place, "x.heaptrack.gz", mine)


def timeline(place):
    source, _ = run_saw(place, "1")
    mine = heaptrack(place, source)
    _, report = totals(place, source)
    image, = report["processes"]
    peak_ms = (image["peak_ns"] - image["began_ns"]) // 1000000
    check(abs(mine.peak_ms - peak_ms) <= 1, "peak at", mine.peak_ms, "ms, not at", peak_ms)
    points = [((time - image["began_ns"]) // 1000000, live) for time, live in recording_reader.rows(
        place.path(source), "SELECT time_ns, live_bytes FROM point ORDER BY time_ns")]
    check(len(points) > 40, "points:", len(points))
    near = [abs(mine.live_at(ms + 1) - live) < 0.03 * mine.peak for ms, live in points]
    low = [live for ms, live in points if ms < peak_ms and live < 0.6 * mine.peak]
    check(len(low) > 1, "there is no trough to follow")
    check(sum(near) > 0.95 * len(near), "%d of %d points are followed" % (sum(near), len(near)))
    printed(place, "x.heaptrack.gz", "-M", "massif.txt")
    with open(place.path("massif.txt")) as file:
        snapshots = re.findall(r"^time=(\S+)\nmem_heap_B=(\d+)$", file.read(), re.M)
    highest, time = max((int(live), -float(time)) for time, live in snapshots)
    equal(highest, mine.peak, "highest snapshot")
    check(abs(-time * 1000 - peak_ms) <= 2, "highest snapshot at", -time, "s, peak at", peak_ms, "ms")
    check(
        mine.rss *
        4096 == max(rss for rss, in recording_reader.rows(place.path(source), "SELECT rss_anon_bytes FROM point")) //
        4096 * 4096, "peak of anonymous memory:", mine.rss)


def several(place):
    script = "for i in 1 2 3; do %s 1 & done; wait" % program("holder")
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", "bash", "-c", script)
    _, report = totals(place, "r.allium")
    names = {"%s (%d)" % (image["program"], image["pid"]) for image in report["processes"]}
    mine, _ = same_heaptrack(place, "r.allium", threads=len(report["processes"]))
    check("and %d more" % (len(report["processes"]) - 1) in mine.command, mine.command)
    found = export_readers.speedscope(place.allium("export", "r.allium", "--speedscope").stdout)
    for metric, name in METRICS.items():
        have = {}
        for stack, value in found[name].items():
            process, _, stack = stack.partition(";")
            check(process in names, "no process", process, "among", names)
            have[stack] = have.get(stack, 0) + value
        equal(have, folded(place, "r.allium", metric), "what --folded has of all processes, of " + metric)
    live = found[METRICS["live"]]
    holders = [value for stack, value in live.items() if stack.startswith("holder (") and stack.endswith(";hold")]
    equal(holders, [1000000] * 3, "live bytes of hold() in each process")
    pid = next(image["pid"] for image in report["processes"] if image["program"] == "holder")
    where = ("--where", "pid:%d comm:holder" % pid)
    same_heaptrack(place, "r.allium", where)


HOSTILE = [
    b'"quoted" \\ back', b"two\nlines\r\n", b"\xff\xfe broken \xc3", b"a;b c", b"\x01\x1b[31m\x7f",
    b"std::map<int, A&&>::f()", "\u20ac \U0001f9c5".encode(), b"[", b"c 10\n- 0", b" "
]


def hostile(place):
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--",
                 os.path.join(built("TEST_PROGRAMS"), "operators"))
    path = place.path("r.allium")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        used = [row for row, in db.execute("SELECT DISTINCT function FROM line UNION SELECT DISTINCT file FROM line "
                                           "UNION SELECT comm FROM image UNION SELECT args FROM image")]
        for number, row in enumerate(row for row in used if row):
            text = HOSTILE[number % len(HOSTILE)] + (b"%d" % number if number >= len(HOSTILE) else b"")
            db.execute("UPDATE string SET text = CAST(? AS TEXT) WHERE id = ?", (text, row))
    same_heaptrack(place, "r.allium")
    found = same_speedscope(place, "r.allium")
    text = "\n".join(found[METRICS["allocated"]])
    check(not re.search("[\x00-\x09\x0b-\x1f\x7f]", text), "control characters in", repr(text))
    check('"quoted" \\ back' in text and "\U0001f9c5" in text and "std::map<int, A&&>::f()" in text, repr(text))


def absurd(place):
    """Figures that no program can have: files are written, and are what the formats want."""
    place.recording("1")
    path = place.path("r.allium")
    for column in ("allocated_bytes", "allocated_count", "peak_bytes", "peak_count", "temporary_bytes"):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE cell SET period_bytes = 4096, %s = 1.7e308" % column)
            db.execute("UPDATE point SET live_bytes = 1.7e308, allocated_bytes = 1.7e308")
        export_readers.speedscope(place.allium("export", "r.allium", "--speedscope").stdout)
        place.allium("export", "r.allium", "--heaptrack", "--force", "-o", "x.heaptrack.gz", timeout=60)
        check("calls to allocation functions: " in printed(place, "x.heaptrack.gz"), "heaptrack_print has no total")
        place.allium("export", "r.allium", "--pprof", "--force", "-o", "heap.pb.gz")
        raw = tap.run(["go", "tool", "pprof", "-raw", "heap.pb.gz"], cwd=place.folder,
                      env=dict(place.env, HOME=place.folder, PPROF_TMPDIR=place.folder)).stdout.decode()
        values = [int(value) for line in re.findall(r"^ +(-?\d[-\d ]*):", raw, re.M) for value in line.split()]
        check(values and min(values) >= 0, "values in pprof:", sorted(values)[:3])


def missing(place):
    """Each export says what is missing from it; the file of pprof says it, too."""
    place.recording("1")
    with contextlib.closing(sqlite3.connect(place.path("r.allium"), isolation_level=None)) as db:
        db.execute("UPDATE image SET lost_samples = 12, lost_stack_broken = 1, off_ns = 2e9")
    lost = place.allium("export", "r.allium", "--pprof", "-o", "r.pb.gz").err
    for words in ("12 samples found no room", "1 stack could not be walked", "sampling was off for 2 s of "):
        check(re.search("^allium: " + words, lost, re.M), words, "is missing:", lost)
    equal(lost.count("\n"), 3, "lines: " + lost)
    comments = tap.run(["go", "tool", "pprof", "-comments", "r.pb.gz"], cwd=place.folder,
                       env=dict(place.env, HOME=place.folder, PPROF_TMPDIR=place.folder)).stdout.decode()
    equal([line for line in comments.splitlines() if line.startswith("allium: ")], lost.splitlines(), "in the file")
    for words in (("--speedscope",), ("--heaptrack",), ("--folded", "live")):
        equal(place.allium("export", "r.allium", *words).err, lost, "what %s says" % (words,))


def nothing(place):
    place.allium("run", "--quiet", "--period", "1G", "-o", "none.allium", "--", "true")
    for words in (("--pprof",), ("--speedscope",), ("--heaptrack",), ("--folded", "live")):
        equal(place.allium("export", "none.allium", *words).err,
              "allium: the exported profile is empty: no allocation was sampled\n", "what %s says" % (words,))
    mine = heaptrack(place, "none.allium")
    equal((mine.calls, mine.peak, mine.live), (0, 0, 0), "calls and bytes of nothing")
    reader_agrees(place, "x.heaptrack.gz", mine)
    check(not any(same_speedscope(place, "none.allium").values()), "samples of nothing")
    place.recording("1")
    where = ("--where", "func:nobody")
    equal(heaptrack(place, "r.allium", *where).calls, 0, "calls where nothing fits")
    check(not any(same_speedscope(place, "r.allium", words=where).values()), "samples where nothing fits")


def narrowed(place):
    place.recording("1")
    for name, want in (("hold", (100, 1000000, 1000000)), ("waste", (50, 20000, 0))):
        mine = heaptrack(place, "r.allium", "--where", "func:" + name)
        equal((mine.calls, mine.peak, mine.live), want, "calls, peak and live of " + name)
        reader_agrees(place, "x.heaptrack.gz", mine)
        same_speedscope(place, "r.allium", words=("--where", "func:" + name))
    same_speedscope(place, "r.allium", ["live"], ("--where", "size>9k"))
    place.allium("export", "r.allium", "--heaptrack", "--where", "size>9k", code=2)


def moments(place):
    _, source = run_saw(place, "1")
    mine = heaptrack(place, source)
    total, _ = totals(place, source)
    equal((mine.calls, mine.live), (total["allocations"], total["live_bytes"]), "calls and live bytes then")
    check(mine.peak >= mine.live, "peak", mine.peak, "below", mine.live)
    check(mine.live > 2 << 20, "hardly anything in it:", mine.live)
    reader_agrees(place, "x.heaptrack.gz", mine)
    known = [
        metric for metric in METRICS if metric != "temporary" and (metric != "peak" or total["peak_bytes"] is not None)
    ]
    same_speedscope(place, source, known)
    place.allium("export", source, "--speedscope", "--where", "age>1ms", code=2)


def processes(place):
    process = place.start_holder()
    wait_until(lambda: place.row(process.pid), 5, "a row in allium ps")
    same_heaptrack(place, str(process.pid))
    same_speedscope(place, str(process.pid))
    process.kill()
    process.wait()
    same_heaptrack(place, str(process.pid))


def many_calls(place):
    """As many as would make a file of hundreds of megabytes: an event stands for several, the bytes stay."""
    place.recording("1")
    with contextlib.closing(sqlite3.connect(place.path("r.allium"), isolation_level=None)) as db:
        db.execute("UPDATE cell SET allocated_count = allocated_count + 1e8, freed_count = freed_count + 1e8, "
                   "period_bytes = 4096 WHERE temporary_bytes > 0")
    before = totals(place, "r.allium")[0]
    done = place.allium("export", "r.allium", "--heaptrack", "-o", "x.heaptrack.gz")
    each = int(re.search(r"in the file, one call stands for (\d+) calls", done.err).group(1))
    text = printed(place, "x.heaptrack.gz")
    check("[allium: estimates, sampled every 4 KiB: each call stands for %d]\n" % each in text, text)
    calls = cost(place, "x.heaptrack.gz", "allocations")
    check(calls <= 10000000 + 10 and abs(calls * each - before["allocations"]) < 200 * each, calls, "times", each)
    equal((cost(place, "x.heaptrack.gz", "peak"), cost(place, "x.heaptrack.gz", "leaked")),
          (before["peak_bytes"], before["live_bytes"]), "bytes at the peak and leaked")


def compressed(place):
    place.recording("1")
    for words in (("--speedscope",), ("--heaptrack",), ("--folded", "live")):
        place.allium("export", "r.allium", *words, "--force", "-o", "plain")
        place.allium("export", "r.allium", *words, "--force", "-o", "small.gz")
        out = place.allium("export", "r.allium", *words).stdout
        with open(place.path("plain"), "rb") as plain, gzip.open(place.path("small.gz")) as small:
            equal((plain.read() == out, small.read() == out), (True, True),
                  "%s: the files hold what is printed" % (words,))
        place.allium("export", "r.allium", *words, "-o", "no/such/folder/x.gz", code=1)
        os.symlink("/dev/full", place.path("full.gz"))
        done = place.allium("export", "r.allium", *words, "-o", "full.gz", code=1)
        check("full.gz" in done.err and "space" in done.err and done.err.count("\n") == 1, "it said", done.err)
        os.unlink(place.path("full.gz"))


def overwriting(place):
    """No export writes onto its source, whatever that is called, nor onto another file without --force."""
    place.recording("1")
    os.symlink("r.allium", place.path("symlink"))
    os.link(place.path("r.allium"), place.path("hardlink"))
    with open(place.path("r.allium"), "rb") as file:
        recording = file.read()
    for words in (("--pprof",), ("--speedscope",), ("--heaptrack",), ("--folded", "live")):
        for name in ("r.allium", "./r.allium", "symlink", "hardlink"):
            for force in ((), ("--force",)):
                done = place.allium("export", "r.allium", *words, "-o", name, *force, code=1)
                equal(done.err, "allium: %s is the recording that is exported: write to another file\n" % name,
                      "what it said")
        with open(place.path("other"), "w") as file:
            file.write("precious")
        done = place.allium("export", "r.allium", *words, "-o", "other", code=1)
        equal(done.err, "allium: other exists; use --force or another -o\n", "what it said")
        with open(place.path("other")) as file:
            equal(file.read(), "precious", "in the file that was there")
        place.allium("export", "r.allium", *words, "-o", "other", "--force")
        check(os.path.getsize(place.path("other")) > 20, "the file was not replaced")
        place.allium("export", "r.allium", *words, "-o", "/dev/null")
    with open(place.path("r.allium"), "rb") as file:
        check(file.read() == recording, "the recording has changed")


tap.main([(name, placed(function)) for name, function in [
    ("no export overwrites its source, nor another file without --force", overwriting),
    ("of an exact recording all is found, of each stack", exact),
    ("no allocation is temporary in the heaptrack export alone", temporary),
    ("heaptrack_print names the functions and places", top_functions),
    ("of a sampled recording the estimates are found", sampled),
    ("heap over time follows what was recorded, with the peak where it was", timeline),
    ("several processes are added, and speedscope has them apart", several),
    ("names that hold anything do no harm", hostile),
    ("figures that cannot be do no harm", absurd),
    ("nothing is a file, too", nothing),
    ("each export says what is missing from it", missing),
    ("--where narrows all of it", narrowed),
    ("FILE@TIME is what was known then", moments),
    ("a process and what it left can be exported", processes),
    ("very many calls are written in bounded room", many_calls),
    ("a name that ends in .gz is compressed, and a full disk is said", compressed),
]])
