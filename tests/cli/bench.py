# SPDX-License-Identifier: BSD-2-Clause
"""`allium bench`: times and losses that are planted into its helper appear, unavailable rows say why, and its JSON is that
of its schema. The clock of the planted helper is moved by its sinks alone: nothing here depends on the machine's speed.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import json_schemas
import tap
from tap import built, check, equal, private_dir

ALLIUM = built("ALLIUM")
HELPER = "allium-bench-hooks"
MARK = "allium-bench-test-%d" % os.getpid()
SWITCHES = "one_on_ns", "one_off_ns", "thousand_on_ns", "thousand_off_ns"
SINKS = "empty,event,count-thread,count-shared,fprintf"


def bench(folder, *words, code=0):
    done = tap.run([folder + "/allium", "bench", *words])
    equal(done.returncode, code, (words, done.stderr))
    return done.stdout.decode(), done.stderr.decode()


def planted(folder, name):
    """A command that finds another helper beside itself."""
    shutil.copy(ALLIUM, folder + "/allium")
    shutil.copy(os.path.join(built("TEST_CLI"), name), folder + "/" + HELPER)


def rows_of(text):
    document = json.loads(text)
    json_schemas.check(document, "allium-bench")
    return {(row["mechanism"], row["sink"]): row for row in document["rows"]}, document


def near(value, wanted, what):
    check(value is not None and abs(value - wanted) < 1e-3, what, value, "wanted:", wanted)


def times():
    """5 ns appear as 5 ns in each figure; of a tail of 2 %, p99 and the median of batches know."""
    with private_dir() as folder:
        planted(folder, "bench_planted")
        words = "--mechanism", "none,branch", "--sink", SINKS, "--threads", "1", "--time", "10ms"
        rows, document = rows_of(bench(folder, *words, "--json")[0])
        for mechanism in "none", "branch":
            row = rows[mechanism, "empty"]
            for key in "least_ns", "median_ns", "p90_ns", "p99_ns", "isolated_ns", "cold_ns":
                near(row[key], 5, key)
            equal((row["hits"], row["missing"], row["lost"]), (row["expected"], 0, 0), row)
            check(row["expected"] > 4096, row)
            tail = rows[mechanism, "event"]
            near(tail["p90_ns"], 5, "p90")
            near(tail["p99_ns"], 105, "p99")
            check(abs(tail["median_ns"] - 7) < 0.1, tail)
            near(tail["event_bytes"], 32, "bytes of an event")
        equal(document["explained"], None, "explained")
        equal([s["name"] for s in document["switching"]], ["branch"], "what has a switch")
        equal([document["switching"][0][key] for key in SWITCHES], [20] * 4, "the clock is read once")
        equal([(a["kernel"], a["clock"]) for a in document["advice"]], [(False, "tsc")], "whose events, which clock")
        advised = [(a["keeps"], a["rebuild"], a["mechanism"], a["sink"]) for a in document["advice"]]
        equal(advised, [("order", True, "branch", "event")], "advice: not what loses events")
        advice = document["advice"][0]
        near(advice["cpu_percent"], advice["event_ns"] * 1e6 / 1e9 * 100, "cpu")
        check(advice["buffer_bytes"] >= 32 * 1e6 / 2, advice)


def losses():
    """What the sink does not have is missing, what it knows to be lost is lost, and a reason is passed on."""
    with private_dir() as folder:
        planted(folder, "bench_planted")
        words = "--mechanism", "branch", "--sink", SINKS, "--threads", "1", "--time", "10ms"
        rows, _ = rows_of(bench(folder, *words, "--json")[0])
        holes, lossy = rows["branch", "count-thread"], rows["branch", "count-shared"]
        check(0.0009 < holes["missing"] / holes["expected"] < 0.0011, holes)
        equal(holes["lost"], 0, "lost")
        check(0.009 < lossy["lost"] / lossy["expected"] < 0.011, lossy)
        equal((lossy["missing"], lossy["hits"] + lossy["lost"]), (0, lossy["expected"]), lossy)
        refused = rows["branch", "fprintf"]
        equal((refused["unavailable"], refused["median_ns"]), ("planted reason: planted way out", None), refused)
        text, _ = bench(folder, *words)
        check(re.search(r"unavailable: planted reason: planted way out\n", text), text)
        check(re.search(r"\d+ of \d+ events are missing, and not counted as lost\n", text), text)
        check(re.search(r"lost \d+ of \d+ events\n", text), text)


def parts():
    """--explain: the parts of a row, their sum, and the whole."""
    with private_dir() as folder:
        planted(folder, "bench_planted")
        words = "--explain", "branch/count-shared", "--threads", "1", "--time", "10ms"
        _, document = rows_of(bench(folder, *words, "--json")[0])
        explained = document["explained"]
        near(explained["whole_ns"], 5, "whole")
        found = {part["part"]: part for part in explained["parts"]}
        equal(set(found), {"branch and call", "atomic addition"}, "parts")
        near(found["branch and call"]["alone_ns"], 5, "part")
        near(found["branch and call"]["gains_ns"], 0, "part")
        near(explained["sum_ns"], sum(part["alone_ns"] for part in explained["parts"]), "sum")
        text, _ = bench(folder, *words)
        check("difference:" not in text, text)
        uneven, _ = bench(folder, "--explain", "branch/event", *words[2:])
        check(re.search(r"^difference: [a-z, ]+ +(1\.9|2\.0)\d ", uneven, re.M), uneven)
        check(re.search(r"^branch with count-shared:\nPART .*\n(?:.*\n)*the whole +5.00 ", text, re.M), text)


def is_said(row):
    """A mechanism or a sink that needs a package is not there, and the row says which package that is."""
    return re.search(r": (install|build allium with) ", row["unavailable"])


def daemons():
    """Processes that the test's own commands have started, also in other sessions."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if int(pid) != os.getpid() and MARK.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def lttng():
    """Each event is in the trace, or counted as lost; a session daemon ends with its row, also after SIGKILL."""
    if not shutil.which("lttng-sessiond"):
        return
    env = dict(os.environ, ALLIUM_TEST_MARK=MARK)
    words = "bench", "--mechanism", "branch,instrument-functions", "--sink", "lttng", "--threads", "2", "--time", "1ms"
    rows, _ = rows_of(tap.succeed([ALLIUM, *words, "--json"], env=env).stdout)
    for row in rows.values():
        if row["unavailable"]:
            check(is_said(row), row)
            continue
        check(row["expected"] > 1000, row)
        equal((row["hits"] + row["lost"], row["missing"]), (row["expected"], 0), row)
        check(22 <= row["event_bytes"] < 23 and row["memory_bytes"] > 4 << 20, row)
    command = subprocess.Popen([ALLIUM, *words[:-1], "60s"], env=env, stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    try:
        tap.wait_until(lambda: len(daemons()) > 3 or row["unavailable"], 60, "no daemon")
    finally:
        command.kill()
        command.wait()
    tap.wait_until(lambda: not daemons(), 60, "a daemon is left")


def uftrace():
    """Each record is in uftrace's files or buffers; processes and files end with the row, also after SIGKILL."""
    with private_dir() as folder:
        words = "--sink", "uftrace", "--threads", "1", "--time", "1ms", "--json"
        rows, _ = rows_of(tap.succeed([ALLIUM, "bench", *words], env=dict(os.environ, PATH=folder)).stdout)
        equal(rows["mcount", "uftrace"]["unavailable"], "uftrace is not installed: install uftrace", rows)
    if not shutil.which("uftrace"):
        return
    before = glob.glob("/dev/shm/uftrace-*")
    env = dict(os.environ, ALLIUM_TEST_MARK=MARK)
    words = "bench", "--mechanism", "mcount", "--sink", "off,uftrace", "--threads", "2", "--time", "1ms"
    rows, _ = rows_of(tap.succeed([ALLIUM, *words, "--json"], env=env).stdout)
    equal(list(rows), [("mcount", "off"), ("mcount", "uftrace")], "rows")
    row = rows["mcount", "uftrace"]
    if row["unavailable"]:
        check("takes a mount namespace" in row["unavailable"], row)
        return
    check(row["expected"] > 1000 and row["events_per_call"] == 2 and row["event_bytes"] == 16, row)
    equal((row["hits"] + row["lost"], row["missing"]), (row["expected"], 0), row)
    command = subprocess.Popen([ALLIUM, *words[:-1], "60s"], env=env, stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    try:
        tap.wait_until(lambda: len(daemons()) > 2, 60, "no uftrace")
    finally:
        command.kill()
        command.wait()
    tap.wait_until(lambda: not daemons(), 60, "a process of uftrace is left")
    equal(glob.glob("/dev/shm/uftrace-*"), before, "buffers of uftrace")


def lttng_is_absent():
    with private_dir() as folder:
        os.symlink("/bin/true", folder + "/lttng-sessiond")
        words = "--mechanism", "none", "--sink", "lttng", "--threads", "1", "--time", "1ms", "--json"
        rows, _ = rows_of(tap.succeed([ALLIUM, "bench", *words], env=dict(os.environ, PATH=folder)).stdout)
        row = rows["none", "lttng"]
        equal((row["unavailable"], row["median_ns"], row["hits"]),
              ("LTTng's session daemon is not installed: install lttng-tools", None, None), row)


def real_rows():
    """Each mechanism and sink of the program itself can be measured here, and loses nothing but into a full ring."""
    with private_dir() as folder:
        text = tap.succeed([ALLIUM, "bench", "--list"]).stdout.decode()
        mechanisms, sinks = (re.findall(r"^([a-z0-9-]+) +(?:yes|no) ", half, re.M) for half in text.split("\n\n"))
        check({"none", "branch", "nop", "jump", "plt", "int3", "ptrace", "xray", "mcount"} <= set(mechanisms), text)
        check({"off", "empty", "count-cpu", "sum", "event", "fprintf"} <= set(sinks), sinks)
        sinks.remove("lttng")  # its turns are long: lttng() has fewer of them, switching() some of the kernel
        mechanisms = [name for name in mechanisms if not re.search("probe|tracepoint|usdt|kernel", name)]
        words = "--mechanism", ",".join(mechanisms), "--sink", ",".join(sinks), "--time", "10ms", "--json"
        rows, document = rows_of(tap.succeed([ALLIUM, "bench", *words], timeout=100).stdout)
        equal(document["turns"], 1, "turns")
        own = [row for row in rows.values() if row["sink"] not in ("none", "off", "empty")]
        check(len(own) >= 90, len(own))
        for row in own:
            check(not row["unavailable"] or "restartable" in row["unavailable"] or is_said(row) or
                  row["mechanism"] == "ptrace" and "ptrace_scope" in row["unavailable"] or
                  row["sink"] == "trace-marker" and "run as root" in row["unavailable"], row)
            if row["sink"] in ("event-full", "event-read", "trace-marker") and not row["unavailable"]:
                slow = row["expected"] < 1000  # ptrace on a busy machine: its ring has room for them
                check(row["lost"] > 0 or row["sink"] != "event-full" or slow, row)
                check(row["hits"] + row["lost"] == row["expected"], row)
            elif not row["unavailable"]:
                equal((row["hits"], row["missing"], row["lost"]), (row["expected"], 0, 0), row)
            wanted = 0 if row["unavailable"] else 1 + (row["mechanism"] in ("instrument-functions", "xray", "mcount"))
            equal(row["events_per_call"], wanted, row)
        sizes = {row["sink"]: row["event_bytes"] for row in own if row["mechanism"] == "none"}
        check(32 <= sizes["event"] < 33 and 40 <= sizes["event-site"] < 41 and 100 < sizes["event-frames"] < 113, sizes)
        held = {row["sink"]: row["memory_bytes"] for row in own if row["mechanism"] == "none"}
        check(held["count-thread"] < 1 << 20 and 4 << 20 <= held["event"] < 64 << 20, held)
        equal(os.listdir(folder), [], "files")


def payloads():
    """An event takes as many bytes more as its payload has, rounded up to words in a ring."""
    words = "--payload", "0,1,64,4000", "--threads", "1", "--time", "1ms", "--json"
    document = json.loads(tap.succeed([ALLIUM, "bench", *words], timeout=100).stdout)
    json_schemas.check(document, "allium-bench")
    wanted = {"event-payload": lambda n: 32 + (n + 7) // 8 * 8, "fprintf": lambda n: 34 + n + (n > 0),
              "fprintf-shared": lambda n: 34 + n + (n > 0), "lttng": lambda n: 22 + n + 2 * (n > 0)}
    equal([(row["mechanism"], row["sink"], row["payload_bytes"]) for row in document["rows"]],
          [("none", sink, n) for sink in ("lttng", "event-payload", "fprintf", "fprintf-shared") for n in
           (0, 1, 64, 4000)], "rows")
    for row in document["rows"]:
        if row["unavailable"]:
            check(row["sink"] == "lttng" and is_said(row), row)
            continue
        equal((row["hits"] + row["lost"], row["missing"]), (row["expected"], 0), row)
        least = wanted[row["sink"]](row["payload_bytes"])
        check(least <= row["event_bytes"] < least * 1.02 + 8, row)
    done = tap.succeed([ALLIUM, "bench", "--payload", "64", "--sink", "fprintf", "--time", "1ms"])
    check(re.search(rb"^none +fprintf +64 ", done.stdout, re.M), done.stdout)


def switching():
    """Code that is switched off is as it was, and each switch has a time or a reason."""
    words = "--mechanism", "branch,nop,xray,int3,uprobe-nop,usdt", "--sink", "empty,lttng,perf-count", "--time", "1ms"
    rows, document = rows_of(tap.succeed([ALLIUM, "bench", *words, "--threads", "1", "--json"], timeout=100).stdout)
    found = {s["name"]: s for s in document["switching"]}
    equal(list(found), ["branch", "nop", "xray", "int3", "uprobe-nop", "usdt", "lttng"], "what has a switch")
    for name, one in found.items():
        for key in SWITCHES:
            if one["unavailable"]:
                check(re.search("install|it takes", one["unavailable"]), one)
            elif name == "lttng" and key.startswith("thousand"):
                equal(one[key], None, one)
            else:
                check(one[key] > 0, name, one)
    for (mechanism, sink), row in rows.items():
        if sink != "empty" and not row["unavailable"]:
            equal((row["hits"] + row["lost"], row["missing"]), (row["expected"], 0), row)
    done = tap.succeed([ALLIUM, "bench", "--mechanism", "branch", "--sink", "off", "--time", "1ms"])
    check(re.search(rb"^SWITCH +1 ON +1 OFF +1000 ON +1000 OFF\nbranch +\d", done.stdout, re.M), done.stdout)
    check(b"user LTTng 227, printf 250, SystemTap 405" in done.stdout, done.stdout)
    check(b" in 0 s" not in done.stderr, done.stderr)


def kernel_functions():
    """A kprobe, and a BPF program at a function's entry: each call is counted, or the row says what it takes."""
    words = "--mechanism", "kprobe,kernel-fentry", "--sink", "perf-count,ftrace,bpf-count,bpf-ring", "--time", "1ms"
    rows, _ = rows_of(tap.succeed([ALLIUM, "bench", *words, "--threads", "1", "--json"], timeout=100).stdout)
    equal(list(rows), [("kprobe", sink) for sink in ("perf-count", "ftrace", "bpf-count", "bpf-ring")] +
          [("kernel-fentry", sink) for sink in ("bpf-count", "bpf-ring")], "rows")
    for row in rows.values():
        if row["unavailable"]:
            check(re.search("; it takes [a-zA-Z]", row["unavailable"]), row)
        else:
            equal((row["hits"] + row["lost"], row["missing"]), (row["expected"], 0), row)


def real_time():
    """5 ns of the machine's own time, among 100 (in the suite long alone)."""
    if not os.environ.get("ALLIUM_TEST_LONG"):
        return
    for _ in range(5):
        with private_dir() as folder:
            planted(folder, "bench_planted_time")
            words = "--mechanism", "none", "--sink", "empty,count-thread", "--threads", "1", "--time", "8s"
            rows, _ = rows_of(bench(folder, *words, "--json")[0])
        found = rows["none", "count-thread"]["median_ns"] - rows["none", "empty"]["median_ns"]
        if 4.5 < found < 5.5:
            return
    raise tap.Failed("5 ns appear as %.2f" % found)


def mistakes():
    for words, code, line in ((("--sink", "nosuch"), 2, "unknown sink 'nosuch'"),
                              (("--mechanism", "nop,"), 2, "unknown mechanism ''"),
                              (("--mechanism", "none", "--sink", "off"), 2, "do not go together"),
                              (("--explain", "int3"), 2, "'int3' is no row"),
                              (("--explain", "int3/off"), 2, "'int3/off' has no parts"),
                              (("--explain", "int3/event", "--sink", "off"), 2, "leave out --mechanism, --sink and --payload"),
                              (("--payload", "64,4001"), 2, "invalid --payload '64,4001'"),
                              (("--payload", ""), 2, "invalid --payload"), (("--payload", "1,"), 2, "from 0 to 4000"),
                              (("--payload", "1", "--sink", "off"), 2, "do not go together"),
                              (("--rate", "0"), 2, "--rate 0 is out of range"), (("--threads", "x"), 2, "--threads"),
                              (("--time", "0"), 2, "--time"), (("nop",), 2, "leave out nop")):
        done = tap.run([ALLIUM, "bench", *words])
        equal((done.returncode, done.stdout), (code, b""), (words, done.stderr))
        check(line in done.stderr.decode(), done.stderr)
        equal(done.stderr.count(b"\n"), 1, done.stderr)
    with private_dir() as folder:
        shutil.copy(ALLIUM, folder + "/allium")
        if not os.path.exists("/usr/local/libexec/allium"):
            check("is not in" in bench(folder, "--time", "1ms", code=1)[1], "no helper")
        shutil.copy("/bin/true", folder + "/" + HELPER)
        check("it did not begin" in bench(folder, "--time", "1ms", code=1)[1], "another program as helper")


tap.main([
    ("5 planted ns appear as 5 ns in each figure", times),
    ("planted losses appear as lost, and as missing", losses),
    ("the parts of a row and their sum", parts),
    ("each mechanism calls each sink as often as the program calls", real_rows),
    ("payloads of 0 to 4000 bytes", payloads),
    ("switching on and off", switching),
    ("functions of the kernel are probed, or the row says what that takes", kernel_functions),
    ("LTTng has each event, and its daemon ends", lttng),
    ("uftrace has each record, and leaves nothing", uftrace),
    ("without LTTng the row says what to install", lttng_is_absent),
    ("5 ns of real time appear as 5 ns", real_time),
    ("first mistakes", mistakes),
])
