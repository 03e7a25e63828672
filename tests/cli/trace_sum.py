# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --sum`: figures by key, against those that programs count themselves, and against Python's, computed from
a trace of the same program; alerts; first mistakes.
"""
import collections
import json
import math
import os
import signal
import sys

sys.dont_write_bytecode = True
import json_schemas
import replaced_libraries
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
CALLS, ORDERS = (os.path.join(built("TEST_CLI"), name) for name in ("trace_sum", "trace_sum_events"))
EXACT = ("count", "sum", "min", "max", "below_0", "value_histogram")


def run_sum(spec, *words, options=(), code=0, **env):
    """-> rows of the JSON, what the program printed, and what allium said"""
    with private_dir() as folder:
        done = tap.run([ALLIUM, "trace", "--sum", spec, "--json", "--top", "0", "-o", folder + "/sums", *options, "--",
                        *words], env=dict(os.environ, **env))
        equal(done.returncode, code, (words, done.stderr))
        with open(folder + "/sums") as file:
            document = json.load(file)
    json_schemas.check(document)
    check(b"before there was a table" not in done.stderr, done.stderr)
    return document["rows"], done.stdout.decode(), done.stderr.decode()


def plain(row, names):
    """The figures without their units."""
    unit = "_bytes" if "sum_bytes" in row else ""
    return tuple(row[name + ("" if name in ("count", "below_0") else unit)] for name in names)


def threads_and_children():
    """Four threads, signal handlers that interrupt them, children that are killed, an executed program, SIGKILL."""
    with private_dir() as folder:
        with open(folder + "/counts", "w") as file:
            file.write("\0" * 4096)
        rows, printed, _ = run_sum("malloc.size,by=site", CALLS, code=128 + signal.SIGKILL, COUNTS=folder + "/counts")
    found = {row["site"].split()[0]: row for row in rows}
    for line in printed.splitlines():
        name, n, high, low, least, most = line.split()
        total = min((int(high) << 64) + int(low), (1 << 64) - 1)
        equal(plain(found[name], ("count", "sum", "min", "max")), (int(n), total, int(least), int(most)), name)
        equal(sum(slot["count"] for slot in found[name]["value_histogram_bytes"]), int(n), "values of " + name)
    equal([name for name in ("one", "two", "three", "four") if " " in found[name]["site"]],
          ["one", "two", "three", "four"], "file and line")
    equal(printed.count("\n"), 4, printed)


def by_fields():
    """The keys of the agent's events, and what they add up to."""
    with private_dir() as folder:
        for keys in ("thread", "pid,thread", "cpu", "event", "site,thread,cpu,pid"):
            with open(folder + "/counts", "w") as file:
                file.write("\0" * 4096)
            rows, printed, _ = run_sum("alloc,by=" + keys, CALLS, code=128 + signal.SIGKILL, COUNTS=folder + "/counts")
            counted = sum(int(line.split()[1]) for line in printed.splitlines())
            total = sum(row["count"] for row in rows)
            check(counted <= total <= counted + 200, keys, counted, total)  # libc allocates, too
            check(all(key in row for row in rows for key in keys.split(",")), rows)
            if keys == "pid,thread":
                equal(sum(row["count"] >= 50000 for row in rows), 4, "threads")
                equal(sum(1000 <= row["count"] < 1100 for row in rows), 5, "children")
            if keys == "event":
                check({"malloc"} <= {row["event"] for row in rows} <= {"malloc", "calloc", "realloc_end", "memalign"},
                      rows)


def slot_of(value):
    return 0 if value < 2 else 1 << int(math.log2(int(value)))


def expected(events, field, keys):
    """The figures that Python makes of a trace's events, by key."""
    groups = collections.defaultdict(list)
    for event in events:
        fields = {key.removesuffix("_bytes"): value for key, value in event["fields"].items()}
        groups[tuple(fields.get(key, event.get(key)) for key in keys)].append(fields[field])
    out = {}
    for key, values in groups.items():
        slots = collections.Counter(slot_of(value) for value in values if value >= 0)
        out[key] = (len(values), sum(values), min(values), max(values), sum(value < 0 for value in values) or None,
                    sorted(slots.items()))
    return out


def figures(rows, keys):
    found = {}
    for row in rows:
        count, total, least, most, below, slots = plain(row, EXACT)
        key = tuple(row[name] if name in row else row[name + "_bytes"] for name in keys)
        found[key] = (count, total, least, most, below, [(slot["from"], slot["count"]) for slot in slots])
        check(abs(plain(row, ("mean",))[0] - total / count) <= 1e-9 * abs(total) + 1e-9, row)
    return found


def traced(spec, folder, events, *words):
    """-> the events of the trace of that name, and the rows of `allium events --sum`"""
    name = spec.split(",")[0].split(".")[0]
    buffer = ("--buffer", "64M") if events == "alloc" else ()  # it is of the agent's rings
    succeed([ALLIUM, "trace", "--force", "-o", folder + "/t", *buffer, "--events", events, "--", *words])
    listed = succeed([ALLIUM, "events", folder + "/t", "--json", "--where", "event:" + json.dumps(name)]).stdout
    summed = json.loads(succeed([ALLIUM, "events", folder + "/t", "--sum", spec, "--top", "0", "--json"]).stdout)
    json_schemas.check(summed)
    return [event for event in map(json.loads, listed.splitlines()) if "fields" in event], summed["rows"]


def against_a_trace():
    """Figures of one program, as it runs and of its trace: those of Python."""
    with private_dir() as folder:
        for spec, words, events, keys in (
            ("malloc.size", (CALLS, "calm"), "alloc", ()),
            ("malloc.size,by=size", (CALLS, "calm"), "alloc", ("size",)),
            ("shop:order_done.price", (ORDERS, "many"), "user", ()),
            ("shop:order_done.price,by=kind,by=change", (ORDERS, "many"), "user", ("kind", "change")),
            ("shop:order_done.change,by=weight,status", (ORDERS, "many"), "user", ("weight", "status")),
            ("shop:order_done.id,by=kind", (ORDERS, "many"), "user", ("kind",)),
        ):
            rows = run_sum(spec, *words)[0]
            listed, summed = traced(spec, folder, events, *words)
            field = spec.split(",")[0].split(".")[1]
            want = expected(listed, field, keys)
            if "weight" in keys:
                want = {(format(key[0], "g"), *key[1:]): value for key, value in want.items()}
            check(len(listed) > 10000, spec, len(listed))
            equal(figures(rows, keys), want, spec)
            equal(figures(summed, keys), want, spec + " of a trace")
        for spec in ("malloc.size,by=site,event", "shop:order_done.price,by=customer,kind"):
            words, events = ((CALLS, "calm"), "alloc") if "malloc" in spec else ((ORDERS, "many"), "user")
            have, want = ([{key: value for key, value in row.items() if key != "count_per_s"} for row in rows]
                          for rows in (run_sum(spec, *words)[0], traced(spec, folder, events, *words)[1]))
            equal(have, want, spec)
        customers = {row["customer"] for row in want}
        equal(customers, {"Ann", "a name that is longer than a key…"}, "a text that is cut, between characters")


def own_events():
    """Threads, signal handlers, a child that is killed, seccomp, SIGKILL; a library without the agent's events."""
    rows, printed, _ = run_sum("shop:order_done.price,by=status", ORDERS, code=128 + signal.SIGKILL)
    counted = {int(status): int(n) for status, n in map(str.split, printed.splitlines())}
    equal({row["status"]: row["count"] for row in rows}, counted, "events by status")
    sums = {row["status"]: row["sum"] for row in rows}
    price = lambda i: (i % 100) / 4 - 3
    for status in range(-2, 2):
        equal(sums[status], sum(map(price, range(20000))), status)
    equal((sums[-4], sums[4]), (sum(map(price, range(1000))),) * 2, "of the child, and in seccomp")
    equal(sums[3], counted[3] * price(8), "in signal handlers")


def without_room():
    """6,000 keys: each event is counted, by its key or in the row of other keys."""
    rows, _, said = run_sum("shop:order_done.price,by=id", ORDERS, "many")
    keyed, other = ([row for row in rows if bool(row["other_keys"]) == which] for which in (False, True))
    equal((len(keyed), len(other)), (4095, 1), "rows")
    equal({row["id"] for row in keyed}, set(range(4095)), "keys")
    equal({row["count"] for row in keyed}, {2}, "events of each key")
    price = lambda i: (i % 100) / 4 - 3
    equal((other[0]["count"], other[0]["sum"]), (2 * 1905, 2 * sum(map(price, range(4095, 6000)))), "the others")
    check("3810 events are in the row of other keys" in said, said)


def replaced():
    """Libraries that are loaded at the address of one that was unloaded, many times, while a thread runs the code of
    another one that may be unloaded: each call is that of its own library, and the room for keys suffices."""
    turns = tap.pick(3000, 30000)
    with replaced_libraries.built_in_folder() as words:
        for _ in range(5):  # until both were at one address: the thread's memory may come there first
            rows, printed, _ = run_sum("malloc.size,by=site", *words, str(turns))
            same, taken = map(int, printed.split())
            if same > turns // 2:
                break
    check(same > turns // 2, "the libraries were not at one address", same)
    replaced_libraries.check_calls(rows, turns, taken)


def lacks():
    """Fields and events that are not there."""
    for spec, words, line in (("shop:order_done.colour,by=taste,status", (ORDERS, "many"),
                               "shop:order_done has no field colour that can be added up, and shop:order_done has no field taste"),
                              ("shop:nothing", (ORDERS, "many"), "no event shop:nothing came")):
        _, _, said = run_sum(spec, *words)
        check(line in said, said)


def reports():
    """Tables at intervals, and an alert that runs a command once."""
    with private_dir() as folder:
        script = "for i in 1 2 3 4 5 6 7 8; do /bin/true; sleep 0.1; done"
        done = tap.run([ALLIUM, "trace", "--sum", "alloc.size,by=pid", "--interval", "100ms", "--json", "--alert",
                        "count>=1 pid>0", "--exec", 'echo "$ALLIUM_ROW" >>%s/alerts' % folder,
                        "--", "sh", "-c", script])
        equal(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            json_schemas.check(row, "allium-sums")
        check(len({row["time_ns"] for row in rows}) >= 3, "reports", rows)
        with open(folder + "/alerts") as file:
            alerts = [json.loads(line) for line in file]
        equal(len(alerts), 1, alerts)
        check(alerts[0]["count"] >= 1 and b"alert: count>=1 pid>0" in done.stderr, alerts, done.stderr)
        text = tap.run([ALLIUM, "trace", "--sum", "malloc.size", "--", CALLS, "calm"])
        check(b"COUNT" in text.stdout and b"VALUE" in text.stdout and b"32 B" in text.stdout, text.stdout)
        text = tap.run([ALLIUM, "trace", "--sum", "malloc.size,by=size", "--top", "3", "--", CALLS, "calm"])
        check(b"VALUE" not in text.stdout and text.stdout.count(b"\n") == 4, text.stdout)
        check(b"more rows: use --top 0" in text.stderr, text.stderr)


def mistakes():
    for words, code, line in (
        (("--sum", "", "--", "true"), 2, "is no name of an event"),
        (("--sum", "mallok", "--", "true"), 2, "there is no event mallok"),
        (("--sum", "malloc.ptr", "--", "true"), 2, "malloc has no field ptr to add up: use size"),
        (("--sum", "free.size", "--", "true"), 2, "free has no field size"),
        (("--sum", "malloc,by=colour", "--", "true"), 2, "malloc has no field colour"),
        (("--sum", "malloc,site", "--", "true"), 2, "'site' is not expected: use by=site"),
        (("--sum", "malloc,by=site,site", "--", "true"), 2, "twice"),
        (("--sum", "a:b,by=a,b,c,d,e", "--", "true"), 2, "more than 4 fields"),
        (("--sum", "malloc"), 2, "missing command or PID: allium trace --sum malloc -- CMD ARG..."),
        (("--sum", "malloc", "999999999"), 1, "there is no process 999999999"),
        (("--sum", "malloc", "1", "more"), 2, "too many arguments after PID: leave out more"),
        (("--sum", "malloc", "--no-follow", "1"), 2, "--no-follow needs a command"),
        (("--sum", "malloc", "--period", "1", "1"), 2, "--period needs a command"),
        (("--sum", "malloc", "--limit", "1M", "1"), 2, "--limit is not for --sum"),
        (("--sum", "malloc", "--duration", "1s", "--", "true"), 2, "--duration with --sum needs a PID"),
        (("--sum", "malloc", "--kernel", "sched", "--", "true"), 2, "--kernel is not for --sum"),
        (("--sum", "malloc", "--kernel-buffer", "1M", "--", "true"), 2, "--kernel-buffer is for events of the kernel"),
        (("--sum", "kernel:nosuch", "--", "true"), 2, "there is no event kernel:nosuch: see EVENTS OF THE KERNEL"),
        (("--sum", "maps", "--", "true"), 2, "maps is a group of events of the kernel: use one of kernel:map_begin"),
        (("--sum", "kernel:brk.size", "--", "true"), 2, "kernel:brk has no field size to add up: use pid, asked, result"),
        (("--sum", "kernel:process_exec.comm", "--", "true"), 2, "has no field comm to add up: use pid"),
        (("--sum", "kernel:brk,by=site", "--", "true"), 2, "has no field site: use thread, cpu, event, pid, asked, result"),
        (("--sum", "kernel:brk", "--no-follow", "--", "true"), 2, "--no-follow is not for --sum of the kernel's events"),
        (("--sum", "kernel:mmap.length", "--alert", "nope>1", "--", "true"), 2, "--alert"),
        (("--sum", "malloc", "--where", "size>1k", "--", "true"), 2, "--where is not for --sum"),
        (("--sum", "malloc", "--flight", "--", "true"), 2, "--flight is not for --sum"),
        (("--sum", "malloc", "--exec", "x", "--", "true"), 2, "--exec needs --alert QUERY, such as --alert 'count>1000'"),
        (("--sum", "malloc", "--alert", "nope>1", "--", "true"), 2, "--alert"),
        (("--json", "--", "true"), 2, "--json is for --sum"),
        (("--sum", "malloc", "--", "nosuch"), 127, "command not found"),
    ):
        done = tap.run([ALLIUM, "trace", *words])
        equal(done.returncode, code, (words, done.stderr))
        check(line in done.stderr.decode() and done.stderr.count(b"\n") <= 2, done.stderr)
    forms = [line.split()[-2:] for line in tap.succeed([ALLIUM, "trace", "--help"]).stdout.decode().split("\n\n")[0]
             .split("allium trace ")[1:]]
    equal([" ".join(form).split(" ", 1)[0] for form in forms], ["CMD", "PID|-p", "CMD", "PID|-p"], forms)


tap.main([
    ("threads, signal handlers, children, exec, SIGKILL: each call once", threads_and_children),
    ("by thread, CPU, process, event", by_fields),
    ("sums, extremes and histograms are those of a trace", against_a_trace),
    ("events of a program: threads, signal handlers, a child, seccomp", own_events),
    ("more keys than there is room for", without_room),
    ("libraries that take the place of others", replaced),
    ("fields that no event has", lacks),
    ("--interval, --alert, --top", reports),
    ("first mistakes", mistakes),
])
