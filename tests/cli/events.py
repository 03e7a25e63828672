# SPDX-License-Identifier: BSD-2-Clause
"""`allium events`: each event as babeltrace2's library reads it from the same folder; queries; counts; mistakes."""
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import json_schemas
import tap
from tap import built, check, equal, private_dir

ALLIUM = built("ALLIUM")
CALLER = os.path.join(built("TEST_CLI"), "caller")
SQL = """create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000)
    insert into t select x, hex(x) from c; create index i on t(b);"""
# Prints each event as a line of JSON, as `allium events` is to.
READER = """
import bt2, json, sys
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._EventMessageConst:
        event, packet = message.event, message.event.packet
        print(json.dumps([message.default_clock_snapshot.ns_from_origin, event.name,
            int(packet.context_field["cpu_id"]), int(packet.context_field["vpid"]),
            int(event.common_context_field["vtid"]), int(event.common_context_field["flags"]),
            {name: str(value) if isinstance(value, bt2._StringFieldConst) else int(value)
             for name, value in event.payload_field.items()}]))
"""


def events(*words, code=0):
    done = tap.run([ALLIUM, "events", *words])
    equal(done.returncode, code, "exit code of %s: %s" % (words, done.stderr.decode()))
    return done.stdout.decode() if not code else done.stderr.decode()


def rows(*words):
    first, *lines, last = [json.loads(line) for line in events(*words, "--json").splitlines()]
    check("residual_ns" in last and not last["open_spans"], last)
    del last["residual_ns"], last["open_spans"]
    equal((first, last), ({"schema": "allium-events", "version": 1},
                          {"lost_events": 0, "cut_packets": 0, "wall_step_ns": 0}), words)
    return lines


def recorded(folder):
    tap.succeed([ALLIUM, "trace", "--quiet", "-o", folder + "/t", "--", "sh", "-c", "sqlite3 :memory: \"%s\" & "
                 "sqlite3 :memory: \"%s\"; wait" % (SQL, SQL)])
    return folder + "/t"


def each():
    with private_dir() as folder:
        trace = recorded(folder)
        read = subprocess.run(["/usr/bin/python3", "-c", READER, trace + "/ust"], stdout=subprocess.PIPE, check=True)
        want = [json.loads(line) for line in read.stdout.splitlines()]
        check(len(want) > 5000, len(want))

        def as_numbers(fields):
            return {key.replace("size_bytes", "size"): int(value, 16) if str(value).startswith("0x") else value
                    for key, value in fields.items()}

        listed = rows(trace)
        have = [[e["time_ns"], e["event"], e["cpu"], e["process"], e["thread"], e["flags"], as_numbers(e["fields"])]
                for e in listed]
        equal([e[0] for e in have], sorted(e[0] for e in have), "times")
        # events of one time are in no order
        equal(sorted(map(repr, have)), sorted(map(repr, want)), "events")
        lines = events(trace).splitlines()
        equal(len(lines), len(want) + 1, "lines")
        equal(len(events(trace, "--top", "7").splitlines()), 8, "lines of --top")
        large = [e for e in listed if e["fields"].get("size_bytes", 0) > 4096]
        check(large, "no large allocation")
        equal(rows(trace, "--where", "size>4k"), large, "--where size")
        equal(rows(trace, "--where", "event:free cpu:0"),
              [e for e in listed if e["event"] == "allium:free" and e["cpu"] == 0], "--where event and cpu")
        equal(rows(trace, "--where", "module:libsqlite3 !event:free"),
              [e for e in listed if "/libsqlite3.so" in str(e["module"]) and e["event"] != "allium:free"], "module")
        equal(rows(trace, "--where", "time<=3ms"), [e for e in listed if e["since_began_ns"] <= 3000000], "time")
        counted = collections.Counter(e["event"] for e in listed)
        by_event = {"allium:" + row["event"]: row["events"] for row in rows(trace, "--by", "event")}
        equal(by_event, dict(counted), "--by event")
        bytes_of = sum(e["fields"].get("size_bytes", 0) for e in listed)
        equal(sum(row["field_bytes"] or 0 for row in rows(trace, "--by", "cpu")), bytes_of, "bytes of --by cpu")
        equal({row["thread"]: row["events"] for row in rows(trace, "--by", "thread")},
              dict(collections.Counter(e["thread"] for e in listed)), "--by thread")
        equal(len(rows(trace, "--by", "thread", "--top", "1")), 1, "rows of --top")


def losses():
    """Those of each CPU are what babeltrace2 warns of, and together what the summary says."""
    with private_dir() as folder:
        said = tap.succeed([ALLIUM, "trace", "--buffer", "64K", "-o", folder + "/t", "--", CALLER, "make", "500000",
                            "111", "fork", "3"]).stderr.decode()
        lost = int(re.search(r", (\d+) lost\n", said).group(1))
        check(lost > 0, said)
        warned = collections.Counter()
        shown = tap.succeed(["babeltrace2", folder + "/t/ust"], stdout=subprocess.DEVNULL).stderr.decode()
        for number, cpu in re.findall(r'discarded (\d+) events? .* within stream "\S*_(\d+)"', shown):
            warned[int(cpu)] += int(number)
        lines = [json.loads(line) for line in events(folder + "/t", "--by", "cpu", "--json").splitlines()]
        for line in lines:
            json_schemas.check(line, "allium-events")
        by_cpu = {row["cpu"]: row["lost_events"] for row in lines[1:-1]}
        equal({cpu: number for cpu, number in by_cpu.items() if number}, dict(warned), "lost events")
        equal((sum(warned.values()), lines[-1]["lost_events"]), (lost, lost), said)
        text = events(folder + "/t", "--by", "cpu")
        check(re.match(r"CPU +EVENTS +BYTES +PER S +LOST\n", text), text)


def mistakes():
    with private_dir() as folder:
        trace = recorded(folder)
        for words, code, line in (([], 2, "missing folder"), ([trace, "x"], 2, "too many"),
                                  ([folder], 2, "not a trace"),
                                  ([trace + "/nosuch"], 1, "/nosuch: No such file"),
                                  ([trace, "--where", "siz>1"], 2, "size"),
                                  ([trace, "--by", "colour"], 2, "thread"), ([trace, "--top", "x"], 2, "--top")):
            said = events(*words, code=code)
            check(line in said and said.count("\n") <= 2, words, said)
        # a stream in a packet's middle, of a recorder that was killed
        stream = max((os.path.join(trace, "ust", name) for name in os.listdir(trace + "/ust") if name != "metadata"),
                     key=os.path.getsize)
        os.truncate(stream, os.path.getsize(stream) - 4)
        done = tap.run([ALLIUM, "events", trace])
        check(done.returncode == 0 and b"cut short" in done.stderr, done.stderr)


tap.main([
    ("each event as babeltrace2 reads it, queries, counts", each),
    ("losses by CPU", losses),
    ("mistakes", mistakes),
])
