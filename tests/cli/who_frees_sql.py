# SPDX-License-Identifier: BSD-2-Clause
"""who, frees and sql: a real use after free, what is remembered against what SQLite alone reads, the manual's examples.
"""
import contextlib
import csv
import io
import json
import math
import os
import re
import signal
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import tap
from workdir import placed, program
from tap import built, check, equal, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "


def crash(place, *words, code=128 + signal.SIGSEGV, before=()):
    """Addresses by their names, of a program that has crashed and left d.allium."""
    done = place.allium("run", "--quiet", *words, "-o", "d.allium", "--force", "--", *before, program("dangling"),
                        code=code)
    return dict(line.split() for line in done.out.splitlines())


def waiting(place, *words):
    """A recorded program that goes on, and its addresses."""
    process = place.start_allium("run", "--quiet", *words, "-o", "d.allium", "--force", "--", program("dangling"),
                                 "wait")
    return process, addresses(process)


def addresses(process):
    at = {}
    while "ready" not in at:
        name, address = process.stdout.readline().decode().split()
        at[name] = address
    return at


def who(place, *words, code=0):
    return json.loads(place.allium("who", *words, "--json", code=code).out)


def functions(stack):
    return [frame["function"] for frame in stack["stack"]]


def use_after_free(place):
    """The three functions, from the address that the crash was at, without a source: the newest recording."""
    at = crash(place, "--period", "1")
    said = place.allium("who", at["field"]).out
    for word in "drop_session", "make_session", "main", "11 bytes into the 104 bytes", "before the end", "exact":
        check(word in said, "no", word, "in", said)
    (hit,) = who(place, at["field"][2:])["rows"]
    equal((hit["state"], hit["place"], hit["distance_bytes"], hit["size_bytes"], hit["address"], hit["reallocated"]),
          ("freed", "inside", 11, 104, at["session"], False), "the block")
    equal((functions(hit["allocated_by"])[:2], functions(hit["freed_by"])[0]),
          (["make_session", "main"], "drop_session"), "who")
    check(0 < hit["lifetime_ns"] == hit["freed_ns"] - hit["born_ns"] < 10e9, hit)
    equal(who(place, "d.allium", at["session"])["rows"][0]["distance_bytes"], 0, "bytes from its beginning")


def screen(place):
    """As a whole, but for addresses, times and numbers of processes; in a zone and without what UTF-8 has."""
    at = crash(place, "--period", "1")
    said = place.allium("who", "d.allium", at["handed"], env={"LC_ALL": "C", "TZ": "UTC"}).out
    said = re.sub(r"0x[0-9a-f]+", "ADDRESS", said)
    said = re.sub(r"\d\d:\d\d:\d\d", "CLOCK", re.sub(r"[\d.]+ (ns|us|ms|s)\b", "TIME", said))
    said = re.sub(r"(pid|dangling|sweeper) \d+", r"\1 N", said)
    equal(
        said.splitlines()[:9],
        [
            "ADDRESS in d.allium",
            "  exact: every allocation",
            "",
            "Freed in dangling (pid N): the first byte of the 41 bytes at ADDRESS",
            "  freed TIME before the end, at CLOCK, after a lifetime of TIME, by thread sweeper N",
        ]
        + said.splitlines()[5:9],
        "its beginning",
    )
    lines = [re.sub(r" +", " ", line.strip()) for line in said.splitlines()[5:]]
    check(re.match(r"sweep dangling\.c:\d+$", lines[0]), "who freed it:", lines)
    begin = lines.index("allocated by thread dangling N")
    check(re.match(r"make_ticket dangling\.c:\d+$", lines[begin + 1]), "who allocated it:", lines)
    check(re.match(r"main dangling\.c:\d+$", lines[begin + 2]), "its caller:", lines)


def live(place):
    """In a running process, and after it was killed."""
    process = place.start(
        program("dangling"), "wait", env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    )
    at, pid = addresses(process), str(process.pid)
    for state in "ago", "before the end":
        (hit,) = who(place, pid, at["ticket"])["rows"]
        equal((hit["state"], hit["place"], hit["distance_bytes"], hit["size_bytes"], hit["pid"], hit["freed_by"]),
              ("live", "inside", 38, 41, process.pid, None), "the ticket")
        equal(functions(hit["allocated_by"])[:2], ["make_ticket", "main"], "who allocated it")
        (hit,) = who(place, pid, at["slack"])["rows"]
        equal((hit["state"], hit["place"], hit["distance_bytes"]), ("live", "slack", 2), "past the end")
        check("2 bytes past the end of the 41 bytes" in place.allium("who", pid, at["slack"]).out, "not said")
        check(state in place.allium("who", pid, at["session"]).out, "not", state)
        process.kill()
        process.wait()


def reallocated(place):
    at = crash(place, "--period", "1")
    # others may lie there by now
    (hit,) = [hit for hit in who(place, at["grown"])["rows"] if hit["size_bytes"] == 5000]
    equal((hit["state"], hit["place"], hit["reallocated"]), ("freed", "inside", True), "the block")
    equal((functions(hit["allocated_by"])[0], functions(hit["freed_by"])[0]), ("main", "grow"), "who")
    check("by realloc" in place.allium("who", at["grown"]).out, "not said")


def unknown(place):
    at = crash(place, "--period", "1")
    said = place.allium("who", at["code"], code=1)
    check("malloc returned no block there" in said.out and not said.err, said.out, said.err)
    found = who(place, at["code"], code=1)
    equal((found["rows"], found["near"], found["exact"]), ([], [], True), "blocks")
    equal(found["frees"]["freed_samples"], found["frees"]["remembered"], "frees")
    header = "0x%x" % (int(at["session"], 16) - 8)  # of the allocator's own
    found = who(place, header, code=1)
    equal(found["rows"], [], "blocks")
    mine = [b for b in found["near"] if b["address"] == at["session"]]
    equal([(b["place"], b["distance_bytes"]) for b in mine], [("before", 8)], "the session near it")
    check("may have been overrun" in place.allium("who", header, code=1).out, "not marked as a hint")


def sampled(place):
    at = crash(place, "--period", "64M")
    place.allium("run", "--quiet", "--period", "16K", "-o", "h.allium", "--", program("holder"), "1")
    said = place.allium("who", "h.allium", at["code"], "--size", "4K", code=1).out
    check("allium run --period 1" in said and "22 %" in said and "4 KiB" in said, said)
    (chance,) = who(place, "h.allium", at["code"], "--size", "4K", code=1)["chances"]
    check(abs(chance["chance_percent"] / 100 - (1 - math.exp(-4096 / 16384))) < 1e-9, chance)


def processes(place):
    """At the same addresses in two processes: each hit says of which one it is."""
    script = "%s; %s; exit 0" % (program("dangling"), program("dangling"))
    done = place.allium("run", "--quiet", "--period", "1", "-o", "two.allium", "--", "setarch", "-R", "sh", "-c",
                        script)
    fields = [line.split()[1] for line in done.out.splitlines() if line.startswith("field")]
    equal((len(fields), len(set(fields))), (2, 1), "addresses of the field, without randomization")
    hits = who(place, "two.allium", fields[0])["rows"]
    hits = [hit for hit in hits if hit["program"] == "dangling"]
    pids = [
        row[0] for row in recording_reader.rows(
            place.path("two.allium"), "SELECT pid FROM image JOIN string ON string.id = comm"
            " WHERE text = 'dangling' ORDER BY began_ns DESC")
    ]
    equal([hit["pid"] for hit in hits], pids, "processes, the latest free first")
    for pid in pids:
        check("(pid %d)" % pid in place.allium("who", "two.allium", fields[0], "--top", "0").out, "no", pid)


def freed(place):
    """The list is that of the table, in the order of time."""
    crash(place, "--period", "1")
    listed = json.loads(place.allium("frees", "--json", "--top", "0").out)
    table = recording_reader.rows(
        place.path("d.allium"), "SELECT address, size_bytes, freed_ns, reallocated FROM recent_free"
        " ORDER BY freed_ns DESC")
    have = [(int(row["address"], 16), row["size_bytes"], row["freed_ns"], int(row["reallocated"]))
            for row in listed["rows"]]
    equal(have, table, "frees")
    check(len(table) >= 3 and listed["rows_in_all"] == len(table) == listed["frees"]["remembered"], listed["frees"])
    for where, sizes in (("func:drop_session", [104]), ("func:sweep", [41]), ("func:grow", [5000]), ("size=104", [104]),
                         ("func:make_*", [104, 41]), ("age>1h", []), ("func:nobody", [])):
        rows = json.loads(place.allium("frees", "--json", "--where", where).out)["rows"]
        equal([row["size_bytes"] for row in rows], sizes, "sizes where " + where)
    said = place.allium("frees", "--where", "func:drop_session,grow").out
    check(re.search(r"104 B .* make_session +free +drop_session", said), said)
    check(re.search(r"4\.88 KiB .* main +realloc +grow", said), said)
    check("1 more" in place.allium("frees", "--where", "size<=5000 !func:sweep", "--top", "1").out,
          "what --top leaves out")
    place.allium("run", "--quiet", "--period", "16K", "-o", "h.allium", "--", program("holder"), "1")
    check("STANDS FOR" in place.allium("frees", "h.allium").out, "not said that it is a sample")
    (size, weight) = [(r["size_bytes"], r["weight"])
                      for r in json.loads(place.allium("frees", "h.allium", "--json").out)["rows"]
                      if r["size_bytes"] == 20000][0]
    check(abs(weight * (1 - math.exp(-size / 16384)) - 1) < 1e-9, "weight", weight)


def kept_moment(place):
    """Nanoseconds from the beginning to a moment of the running d.allium by which all three frees had happened; 0: not
    yet.
    """
    return recording_reader.moment(place.path("d.allium"),
                                   "time_ns > (SELECT max(freed_ns) FROM recent_free HAVING count(*) >= 3)")


def past(place):
    process, at = waiting(place, "--period", "1")
    wait_until(lambda: kept_moment(place), 60, "a moment after the frees, in the recording")
    then = "d.allium@%dns" % kept_moment(place)
    process.stdin.close()
    equal(process.wait(20), 0, "code")
    said = place.allium("who", then, at["session"]).out
    check("drop_session" in said and "past moment" in said and "before that moment" in said, said)
    check("past moment" in place.allium("frees", then).out, "not said")
    (cells,) = json.loads(place.allium("sql", then, "--json", "SELECT sum(allocated_bytes) AS b FROM cell").out)["rows"]
    report = json.loads(place.allium("report", then, "--json").out)
    equal(round(cells["b"]), report["total"]["allocated_bytes"], "allocated bytes at " + then)


def examples(place):
    """Each of the manual's answers is that of SQLite alone, and is one: all find something in a real recording."""
    with open(ROOT + "/man/allium-sql.1.scd") as file:
        queries = [block for block in re.findall(r"^```\n(.*?)^```", file.read(), re.M | re.S)
                   if block.startswith(("SELECT", "WITH"))]
    check(len(queries) >= 8, "only", len(queries), "examples")
    process, _ = waiting(place, "--period", "1")
    count = ("sql", "d.allium", "--csv", "SELECT count(*) FROM live_sample")
    wait_until(lambda: int(place.allium(*count).out.split()[1]), 10, "a live sample, while it is recorded")
    equal(process.poll(), None, "its code, while it goes on")
    wait_until(
        lambda: recording_reader.rows(
            place.path("d.allium"), "SELECT 1 FROM point GROUP BY image HAVING count(*) >= 3"
        ),
        60,
        "three points of a process",
    )
    process.stdin.close()
    equal(process.wait(20), 0, "code")
    for query in queries:
        done = place.allium("sql", "d.allium", "--csv", query)
        names, *have = list(csv.reader(io.StringIO(done.out)))
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % place.path("d.allium"), uri=True)) as db:
            cursor = db.execute(query)
            equal(names, [column[0] for column in cursor.description], "columns of " + query)
            want = [["" if v is None else "%.15g" % v if isinstance(v, float) else str(v) for v in row]
                    for row in cursor]
        equal(sorted(have), sorted(want), "rows of " + query)
        check(have, "nothing answers", query)
        check(len(place.allium("sql", query).out.splitlines()) == len(have) + 1, "lines of", query)


def forms(place):
    crash(place, "--period", "1")
    query = "SELECT 1 AS n, 'a b' AS t UNION ALL SELECT 23456, NULL"
    equal(place.allium("sql", query).out, "    n  t\n    1  a b\n23456  -\n", "text")
    equal(place.allium("sql", "SELECT 'x' AS only WHERE 0").out, "only\n", "no rows")
    equal(json.loads(place.allium("sql", query, "--json").out),
          {"schema": "allium-sql", "version": 1, "rows": [{"n": 1, "t": "a b"}, {"n": 23456, "t": None}]}, "JSON")
    rows = json.loads(place.allium("sql", ENDLESS + "SELECT i, -i AS i FROM n LIMIT 3500", "--json").out)["rows"]
    equal(rows, [{"i": i, "i_2": -i} for i in range(1, 3501)], "many rows")
    equal(place.allium("sql", "SELECT 'a,\"b\"' AS x, 'c\nd' AS y", "--csv").out, 'x,y\r\n"a,""b""","c\nd"\r\n', "CSV")
    check("\x1b" not in place.allium("sql", "SELECT char(27) || '[2J' AS x, char(155) AS \"y\x1b\"").out,
          "it moves the cursor")


def of_process(place):
    process = place.start(
        program("dangling"), "wait", env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    )
    at = addresses(process)
    query = "SELECT size_bytes AS b, address AS a FROM live_sample WHERE size_bytes = 41"
    os.mkdir(place.path("tmp"))
    (row,) = json.loads(place.allium("sql", str(process.pid), "--json", query,
                                     env={"TMPDIR": place.path("tmp")}).out)["rows"]
    equal((row["b"], row["a"]), (41, int(at["ticket"], 16) - 38), "the ticket")
    equal(os.listdir(place.path("tmp")), [], "what is left in TMPDIR")


def wrong(place):
    crash(place, "--period", "1")
    done = place.allium("sql", "SELECT pid,\n  nonsense FROM image", code=2)
    equal((done.out, done.err),
          ("", "allium: no such column: nonsense; `allium sql 'PRAGMA table_info(TABLE)'` lists the columns of"
           " a table\n    nonsense FROM image\n    ^\n"), "where it is wrong")
    columns = json.loads(place.allium("sql", "PRAGMA table_info(cell)", "--json").out)["rows"]  # as it says
    check("allocated_bytes" in [column["name"] for column in columns], columns)
    done = place.allium("sql", "SELECT * FROM\n", code=2)
    equal(
        done.err,
        "allium: incomplete query: a word, a ) or a */ is missing at the end; man allium-sql has examples\n"
        "  SELECT * FROM\n               ^\n", "what ends too early")
    tables = place.allium("sql", "SELECT * FROM images", code=2).err
    have = [
        name
        for (name,) in recording_reader.rows(
            place.path("d.allium"), "SELECT name FROM sqlite_schema WHERE type = 'table'"
        )
    ]
    equal(tables, "allium: no such table: images; did you mean image? tables are %s\n" % ", ".join(have),
          "the tables there are")
    for source in ("d.allium", "4711"):
        told = place.allium("sql", source, code=2).err
        check("missing query: %s is a source: use allium sql %s 'SELECT ...'" % (source, source) in told, told)
    done = place.allium("sql", "SELECT 'ä', nonsense", code=2, env={"LC_ALL": "C.UTF-8"})
    equal(done.err.splitlines()[1:], ["  SELECT 'ä', nonsense", "              ^"],
          "where, behind letters of two bytes")
    for query in ("ATTACH 'x.db' AS x", "DELETE FROM cell", "SELECT load_extension('x')", "PRAGMA journal_mode = WAL"):
        done = place.allium("sql", query, code=2)
        check("queries can only read" in done.err and not done.out, query, "said", done.err)
    for words in (("sql",), ("sql", "a", "b", "c"), ("sql", "--json", "--csv", "SELECT 1"), ("who",),
                  ("who", "d.allium"), ("who", "a", "b", "c"), ("who", "xyz"), ("who", "0x"),
                  ("who", "0x11112222333344445"), ("who", "1", "--size", "x"), ("who", "--top", "-1", "1"),
                  ("frees", "a", "b"), ("frees", "--where", "size>"), ("frees", "--top", "x")):
        done = place.allium(*words, code=2)
        check(done.err.startswith("allium: ") and not done.out, words, "said", done.err)
    holder = place.start_holder()
    pid = str(holder.pid)
    for words, told in (((pid,),
                         "%s is a process: use allium who %s ADDRESS, or 0x%s for an address" % (pid, pid, pid)),
                        (("0x55d0c0a2b6d8", pid), "wrong order: use allium who %s 0x55d0c0a2b6d8" % pid),
                        (("55d0c0a2b6d8", "d.allium"), "wrong order: use allium who d.allium 55d0c0a2b6d8"),
                        ((pid, "d.allium"), "invalid address 'd.allium'"), ((pid, "what"), "invalid address 'what'"),
                        (("d.allium", "what"), "invalid address 'what'")):
        done = place.allium("who", *words, code=2)
        check(told in done.err and done.err.count("\n") == 1 and not done.out, words, "said", done.err, done.out)
    for words in ("0x" + pid,), (pid, pid), (pid, "0x10"), ("d.allium", pid):  # those are addresses, that nobody holds
        equal(who(place, *words, code=1)["rows"], [], "blocks that hold it")
    tap.stop(holder, signal.SIGKILL)
    check("is a process" in place.allium("who", pid, code=2).err, "of a process that has left a ledger")
    check("allium who d.allium ADDRESS" in place.allium("who", "d.allium", code=2).err, "not what to do")
    for words in (("sql", "none.allium", "SELECT 1"), ("who", "none.allium",
                                                       "1"), ("frees", "none.allium"), ("frees", "/etc/passwd"),
                  ("sql", "/etc/passwd", "SELECT 1"), ("sql", "d.allium@1h", "SELECT 1"), ("who", "999999999", "1")):
        done = place.allium(*words, code=1)
        check(done.err.startswith("allium: ") and done.err.count("\n") == 1, words, "said", repr(done.err))


def strangers(place):
    """Recordings whose schema is another, or whose values are rubbish."""
    for number, sql in enumerate(
        ("CREATE VIEW v AS SELECT load_extension('x')",
         "CREATE TRIGGER t AFTER INSERT ON cell BEGIN DELETE FROM meta; END",
         "ALTER TABLE meta RENAME TO m; CREATE VIEW meta AS SELECT writefile('owned', 'x') AS key, 1 AS value")):
        crash(place, "--period", "1")
        with contextlib.closing(sqlite3.connect(place.path("d.allium"), isolation_level=None)) as db:
            db.executescript(sql)
        for words in (("sql", "d.allium", "SELECT * FROM meta"), ("who", "d.allium", "1"), ("frees", "d.allium")):
            done = place.allium(*words, code=1)
            check("tables that allium does not create" in done.err and not done.out, words, "said", done.err)
        check(not os.path.exists(place.path("owned")), "a view wrote a file")
    at = crash(place, "--period", "1")
    with contextlib.closing(sqlite3.connect(place.path("d.allium"), isolation_level=None)) as db:
        db.executescript(
            "UPDATE live_sample SET size_bytes = 9223372036854775807, slack_bytes = 9223372036854775807, address = -9;"
            "UPDATE recent_free SET size_bytes = 9223372036854775807, freed_ns = 0;"
            "UPDATE string SET text = char(27) || '[2J' || id WHERE id > 0")
    done = place.allium("who", "d.allium", "ffffffffffffffff")
    check("\x1b" not in done.out + place.allium("frees", "d.allium").out, "it moves the cursor")
    check(who(place, "d.allium", at["field"])["rows"], "no hit")


def interrupted(place):
    """A question without an end is ended with SIGINT, also while rows come; no copy is left, and half an answer is no
    JSON.
    """
    crash(place, "--period", "1")
    for query, form in ((ENDLESS + "SELECT count(*) FROM n", ()), (ENDLESS + "SELECT i FROM n", ("--json",))):
        with open(place.path("out"), "w+b") as out:
            process = place.start("sh", "-c", 'exec "$@" >out', "sh", built("ALLIUM"), "sql", "d.allium", *form, query)
            if form:
                wait_until(lambda: os.path.getsize(place.path("out")) > 10000, 20, "rows")
            else:
                time.sleep(0.5)
            equal(process.poll(), None, "its code, while it goes on")
            process.send_signal(signal.SIGINT)
            equal(process.wait(20), -signal.SIGINT, "what ended it")
            said = out.read()
        if form:
            with contextlib.suppress(ValueError):
                json.loads(said)
                raise tap.Failed("half an answer is whole JSON")
        else:
            equal(said, b"", "rows of nothing")
    equal(sorted(name for name in os.listdir(place.folder)), ["d.allium", "out"], "files")


def is_taken(process, number):
    """None such waits for the process to run; or it has ended of it."""
    with open("/proc/%d/status" % process.pid) as file:
        waiting = re.findall(r"^(?:Sig|Shd)Pnd:\s+(\w+)", file.read(), re.M)
    return not any(int(mask, 16) >> number - 1 & 1 for mask in waiting)


def interrupted_twice(place):
    """SQLite does not look up from a single function that takes long: a second SIGINT does not ask it."""
    crash(place, "--period", "1")
    slow = "instr(printf('%.*c', 1000000, 'a'), printf('%.*c', 500000, 'a') || 'b')"
    process = place.start_allium("sql", "d.allium", "SELECT " + " + ".join([slow] * 30))
    time.sleep(0.5)
    equal(process.poll(), None, "its code, while it goes on")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: is_taken(process, signal.SIGINT), 60, "the signal has come")  # two that wait are one
    process.send_signal(signal.SIGINT)
    equal(process.wait(30), -signal.SIGINT, "what ended it")


tap.main([(name, placed(function)) for name, function in [
    ("who names the three functions of a use after free", use_after_free),
    ("who has a screen of its own, with the thread that freed it", screen),
    ("who knows a live block and its slack, in a running process and in a killed one", live),
    ("who tells realloc from free", reallocated),
    ("who says of an unknown address that it was none, and what lies near it", unknown),
    ("who says how likely a block had been sampled", sampled),
    ("who says of which process each block is", processes),
    ("frees lists what is remembered, the latest first, and narrowed", freed),
    ("of a past moment less is known, and that is said", past),
    ("sql answers the manual's examples as SQLite does", examples),
    ("sql writes text, JSON and CSV", forms),
    ("sql asks a running process, and leaves nothing behind", of_process),
    ("what is wrong is said, and where", wrong),
    ("recordings of strangers are harmless", strangers),
    ("a question without an end can be interrupted", interrupted),
    ("a single slow function is ended by a second SIGINT", interrupted_twice),
]])
