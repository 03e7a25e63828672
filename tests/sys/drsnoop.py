#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys drsnoop`: who reclaimed, for which cgroup, how many pages: against the kernel's counts, and on every way
to attach.
"""
import contextlib
import fcntl
import json
import os
import pty
import pwd
import re
import signal
import struct
import subprocess
import sys
import termios

sys.dont_write_bytecode = True
import lib
import reclaim
from lib import check, equal, load, loses, tap, tool, wait_until
from reclaim import MIB, Counted, file_on_disk, group, reads, run_in, swap, total, touches

METHODS = ("tp_btf", "raw_tp", "tp")
LIMIT = 32  # MiB
SAME = ("pid", "tid", "comm", "uid", "cgroup", "reclaim", "reclaimed_pages", "scanned_pages", "order", "gfp", "memcg",
        "limit_of", "memcg_limit_bytes")
V2 = "/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"

# Reads a file in a thread of its own, and says which.
THREADED = """
import sys, threading
def work():
    print(threading.get_native_id(), flush=True)
    with open(sys.argv[1], "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""



def pages(method, env=None):
    """All reclaims together looked at, and gave, what /proc/vmstat counted; each by the process that made them."""
    with file_on_disk(80) as path, load(), group(LIMIT) as where:
        counted = Counted()
        with tool("drsnoop", "--attach", method, env=env) as it:
            equal(it.method, method, "method")
            counted.ready()
            pid = run_in(where, reads(path))
            counted.through()
            it.stop()
        counted.holds("scanned", total(it.rows, "scanned_pages"), "pgscan_file", "pgscan_anon")
        counted.holds("reclaimed", total(it.rows, "reclaimed_pages"), "pgsteal_file", "pgsteal_anon")
        ours = [row for row in it.rows if row["pid"] == pid]
        check(len(ours) >= 8, "too few reclaims:", it.rows)
        for row in ours:
            equal((row["comm"], row["tid"], row["uid"], row["reclaim"], row["under_way"]),
                  ("cat", pid, 0, "memcg", False), "who")
            equal((row["memcg"], row["memcg_limit_bytes"]), (where.path, LIMIT * MIB), "the cgroup at its limit")
            # What did not fit is at most what is read ahead at once.
            check(row["memcg_usage_bytes"] > (LIMIT - 4) * MIB, "it was not full:", row)
            check(abs(row["efficiency_percent"] - 100 * row["reclaimed_pages"] / row["scanned_pages"]) < 1e-9, row)
        equal(it.lost["lost_events"], 0, "lost events")


def vmstat_free():
    """Bytes."""
    return lib.vmstat()["nr_free_pages"] * 4096


def free_memory(method):
    """Is what /proc/vmstat has, about: other programs take and give meanwhile, but not half of it."""
    before = vmstat_free()
    with file_on_disk(64) as path, group(LIMIT) as where, tool("drsnoop", "--attach", method) as it:
        pid = run_in(where, reads(path))
        it.stop()
    free = [row["free_bytes"] for row in it.rows if row["pid"] == pid]
    after = vmstat_free()
    check(free, "no reclaim")
    check(min(before, after) / 2 <= min(free) and max(free) <= 2 * max(before, after), "free", before, free, after)


def methods_agree():
    """All at work at once see the same events."""
    with file_on_disk(64) as path, group(LIMIT) as where, contextlib.ExitStack() as stack:
        tools = [stack.enter_context(tool("drsnoop", "--attach", method, "--comm", "cat")) for method in METHODS]
        pid = run_in(where, reads(path))
        seen = [[{key: row[key] for key in SAME} for row in it.stop().rows if row["pid"] == pid] for it in tools]
    check(seen[0], "nothing was seen")
    equal([it.lost["lost_events"] for it in tools], [0] * len(METHODS), "lost events")
    for other in seen[1:]:
        equal(other, seen[0], "events of another method")


def ancestor():
    """A task in a cgroup without a limit, below one that has it: that one is named."""
    with file_on_disk(48) as path, group(LIMIT) as outer, group(name="inner", parent=outer) as inner:
        with tool("drsnoop", "--cgroup", outer.folder) as it:
            run_in(inner, reads(path))
            it.stop()
    check(it.rows, "nothing was seen")
    for row in it.rows:
        equal((row["memcg"], row["memcg_limit_bytes"]), (outer.path, LIMIT * MIB), "the cgroup at its limit")


# Has so many MiB in swap, for the most part, when it says so; then it reads a file.
SWAPPED = """
import sys
held = bytearray(%d << 20)
for i in range(0, len(held), 4096): held[i] = 1
print("held", flush=True)
sys.stdin.readline()
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
"""


def memory_and_swap():
    """Version 1 has a limit of memory and swap together: when that one is met there is room below the other. Version 2
    has none. The kernel counts how often the one of memory was met; the other one's count newer kernels leave at 0.
    """
    failures = "/memory.failcnt"
    with file_on_disk(64) as path, swap(), group(24) as where:
        if where.v1:
            reclaim.write(where.folder + "/memory.memsw.limit_in_bytes", 56 * MIB)
        process = subprocess.Popen(where.command(["/usr/bin/python3", "-c", SWAPPED % 40, path]), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        equal(process.stdout.readline(), b"held\n", "what it says")
        limits = {"memory": 24}
        if where.v1:
            limits = {"memory": 50, "memory+swap": 56}
            reclaim.write(where.folder + "/memory.limit_in_bytes", 50 * MIB)
            reclaim.write(where.folder + failures, 0)
        with tool("drsnoop", "-p", process.pid) as it:
            process.communicate(b"\n", timeout=tap.TIMEOUT)
            it.stop()
        if where.v1 and not int(open(where.folder + failures).read()):
            del limits["memory"]
    check(len(it.rows) >= 8, "too few reclaims:", it.rows)
    equal({row["limit_of"] for row in it.rows} - set(limits), set(), "limits that were not met")
    for row in it.rows:
        limit = limits[row["limit_of"]]
        equal((row["memcg"], row["memcg_limit_bytes"]), (where.path, limit * MIB), "the limit that was met")


def threads():
    """A thread that reclaims is told by its own number, beside its process's."""
    with file_on_disk(64) as path, group(LIMIT) as where, tool("drsnoop", "--comm", "python3") as it:
        process = subprocess.Popen(where.command(["/usr/bin/python3", "-c", THREADED, path]), stdout=subprocess.PIPE)
        tid = int(process.communicate(timeout=tap.TIMEOUT)[0])
        it.stop()
    check(it.rows and tid != process.pid, "nothing was seen")
    for row in it.rows:
        equal((row["pid"], row["tid"]), (process.pid, tid), "process and thread")


def anonymous():
    """Anonymous memory that goes to swap: pages of both kinds count."""
    with swap(), group(LIMIT) as where:
        counted = Counted()
        with tool("drsnoop") as it:
            counted.ready()
            run_in(where, touches(64))
            counted.through()
            it.stop()
        counted.holds("scanned", total(it.rows, "scanned_pages"), "pgscan_file", "pgscan_anon")
        counted.holds("reclaimed", total(it.rows, "reclaimed_pages"), "pgsteal_file", "pgsteal_anon")
        check(total(it.rows, "reclaimed_pages") >= 32 * MIB // reclaim.PAGE, it.rows[-3:])


def filters():
    """-p, -t, -u and --comm let through what they name, and nothing else: each beside the same without it."""
    nobody = pwd.getpwnam("nobody")
    with file_on_disk(64) as path, group(LIMIT) as where, contextlib.ExitStack() as stack:
        os.chmod(os.path.dirname(path), 0o755)
        worker = stack.enter_context(subprocess.Popen(
            where.command(["sh", "-c", 'read -r go; exec cat "$1" >/dev/null', "sh", path]), stdin=subprocess.PIPE))
        options = {
            "pid": ("-p", worker.pid), "tid": ("-t", worker.pid), "uid": ("-u", "nobody"), "comm": ("--comm", "dd")
        }
        tools = {name: stack.enter_context(tool("drsnoop", *option)) for name, option in options.items()}
        everything = stack.enter_context(tool("drsnoop"))
        worker.communicate(b"\n", timeout=tap.TIMEOUT)
        run_in(
            where,
            [
                "setpriv",
                "--reuid",
                str(nobody.pw_uid),
                "--clear-groups",
                "dd",
                "if=" + path,
                "of=/dev/null",
                "bs=1M",
                "status=none",
            ],
        )
        seen = everything.stop().rows
        want = {"pid": worker.pid, "tid": worker.pid, "uid": nobody.pw_uid, "comm": "dd"}
        for name, it in tools.items():
            mine = [{key: row[key] for key in SAME} for row in seen if row[name] == want[name]]
            check(mine and len(mine) < len(seen), name, "tells nothing apart:", seen[-3:])
            equal([{key: row[key] for key in SAME} for row in it.stop().rows], mine, "rows by " + name)


def cgroups():
    """--cgroup takes a group of the memory controller and one of version 2, and those below; not the ones beside it."""
    with file_on_disk(64) as path, group(LIMIT) as outer, group(name="inner", parent=outer) as inner:
        with group(LIMIT, "beside") as beside, contextlib.ExitStack() as stack:
            tools = [stack.enter_context(tool("drsnoop", "--cgroup", where.folder)) for where in (outer, inner, beside)]
            everything = stack.enter_context(tool("drsnoop", "--comm", "cat"))  # others' stalls may be many
            pid = run_in(inner, reads(path))
            seen = [[row for row in it.stop().rows if row["pid"] == pid] for it in (*tools, everything)]
    check(seen[3], "nothing was seen")
    equal([it.lost["lost_events"] for it in (*tools, everything)], [0] * 4, "lost events")
    equal([len(rows) for rows in seen], [len(seen[3]), len(seen[3]), 0, len(seen[3])],
          "rows by cgroup: outer, inner, beside, all")


def cgroup_v2():
    """The same of version 2, also where memory is of version 1: then the cgroup at its limit still has its own name."""
    folder = "%s/allium-test-v2-%d" % (V2, os.getpid())
    os.makedirs(folder + "/below")
    try:
        with file_on_disk(64) as path, group(LIMIT) as where:
            with tool("drsnoop", "--cgroup", folder) as it, tool("drsnoop", "--cgroup", folder + "/below") as below:
                if where.v1:
                    go = 'echo $$ >%s/cgroup.procs && exec cat "$1"' % folder
                    run_in(where, ["sh", "-c", go, "sh", path])
                    check(it.stop().rows, "nothing was seen")
                    equal({row["memcg"] for row in it.rows}, {where.path}, "the cgroup at its limit")
                else:
                    run_in(where, reads(path))
                    equal(it.stop().rows, [], "rows of a cgroup beside it")
                equal(below.stop().rows, [], "rows of a cgroup below it")
    finally:
        os.rmdir(folder + "/below")
        os.rmdir(folder)


def refused():
    """A cgroup that is none, and one of another controller, are refused by a line."""
    wrong = ["/no/such/cgroup"] + (["/sys/fs/cgroup/cpu"] if os.path.exists("/sys/fs/cgroup/cpu") else [])
    for path in wrong:
        done = tap.run([lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", path])
        equal(done.returncode, 2, "exit code for " + path)
        equal(done.stderr.count(b"\n"), 1, "lines on stderr: %s" % done.stderr)
        check(path.encode() in done.stderr, done.stderr)


def under_way():
    """What has begun before and what has not ended are counted: of many at it all the time, some are always so."""
    before = after = 0
    with swap(), group(8) as where:
        churn = where.command(["sh", "-c", "for i in 1 2 3 4; do (while :; do %s; done) & done; wait" % " ".join(
            ["dd", "if=/dev/zero", "of=/dev/null", "bs=24M", "count=4", "status=none"])])
        process = subprocess.Popen(churn, start_new_session=True)
        try:
            for _ in range(30):
                with tool("drsnoop", "--cgroup", where.folder) as it:
                    tap.time.sleep(0.2)
                    it.stop()
                open_rows = [row for row in it.rows if row["under_way"]]
                equal(len(open_rows), it.lost["under_way"], "rows under way, and their count")
                for row in open_rows:
                    equal(row["reclaimed_pages"], None, "what it gave is not known yet")
                before += it.lost["begun_before"]
                after += len(open_rows)
                if before and after:
                    return
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lib.check(False, "of all reclaims %d had begun before and %d had not ended" % (before, after))


def ring_full():
    """A reader that is held up, and a ring of one page: what was lost is counted to the event."""
    with file_on_disk(80) as path, group(LIMIT) as where:
        with tool("drsnoop", "--cgroup", where.folder) as whole, tool(
            "drsnoop", "--cgroup", where.folder, "--ring", "4096"
        ) as small:
            reader = child_allium(small.process.pid)
            os.kill(reader, signal.SIGSTOP)
            try:
                for _ in range(4):
                    run_in(where, reads(path))
            finally:
                os.kill(reader, signal.SIGCONT)
            whole.stop()
            small.stop()
    check(small.lost["lost_events"], "nothing was lost in so small a ring:", len(small.rows))
    equal(len(small.rows) + small.lost["lost_events"], len(whole.rows), "shown and lost, together")


def ring_full_recorded():
    """The whole way into a recording: what came faster than it was kept is counted there, to the event."""
    def asked(question):
        return json.loads(tap.succeed([lib.built("ALLIUM"), "sql", "--json", path, question]).stdout)["rows"][0]["n"]
    with tap.private_dir() as folder, file_on_disk(80) as data, group(LIMIT) as where, tool(
            "drsnoop", "--cgroup", where.folder) as whole:
        path = folder + "/kept.allium"
        kept = subprocess.Popen(
            [lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", where.folder, "--ring", "4096", "-o", path],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            check(b": ready: " in kept.stderr.readline(), "it did not get ready")
            run_in(where, reads(data))
            kept.send_signal(signal.SIGSTOP)
            for _ in range(3):
                run_in(where, reads(data))
            kept.send_signal(signal.SIGCONT)
            run_in(where, reads(data))
            kept.send_signal(signal.SIGINT)
            said = kept.communicate(timeout=tap.TIMEOUT)[1].decode()
        finally:
            kept.kill()
            kept.wait()
        whole.stop()
        equal(kept.returncode, 0, "exit code (%s)" % said)
        rows = asked("SELECT count(*) AS n FROM sys_drsnoop")
        lost = asked("SELECT value AS n FROM meta WHERE key = 'sys_drsnoop_lost_events'")
    check(
        re.search("%s events? lost" % format(lost, ","), said)
        and re.search("recorded %s rows?;" % format(rows, ","), said), said)
    check(rows and lost, "rows %d, lost %d" % (rows, lost))
    equal(rows + lost, len(whole.rows), "kept and lost, together")
    equal(whole.lost["lost_events"], 0, "lost by the one beside it")


def child_allium(pid):
    """unshare and sh have become it: the same process."""
    wait_until(lambda: open("/proc/%d/comm" % pid).read().strip() == "allium", 5, "allium runs")
    return pid


def quiet_machine():
    """Where nothing happens, the tool says so: an empty screen would leave open whether it worked."""
    with group(LIMIT) as where:
        for words, line in ((), "no event in "), (("--where", "pid:1"), "no event that matches --where in "):
            done = tap.succeed([lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", where.folder, "--duration", "200ms",
                                *words])
            equal(done.stdout, b"", "rows")
            check("allium: " + line in done.stderr.decode(), done.stderr)


def histogram():
    """--hist is the same events, added up."""
    with file_on_disk(64) as path, group(LIMIT) as where, contextlib.ExitStack() as stack:
        each, all_ = (stack.enter_context(tool("drsnoop", "--cgroup", where.folder, *how)) for how in ((), ("--hist",)))
        run_in(where, reads(path))
        each.stop()
        all_.stop()
    equal(len(all_.rows), 1, "rows: " + json.dumps(all_.rows))
    equal(all_.rows[0]["events"], len(each.rows), "events")
    equal(sum(slot["count"] for slot in all_.rows[0]["duration_histogram_ns"]), len(each.rows), "in all slots")


def shown_together():
    """--sort, --top and --interval keep events and show them together: of each, what a run beside it shows one by one.
    """
    last = "--sort", "+scanned_pages", "--top", "7"
    with tap.private_dir() as folder, file_on_disk(64) as path, group(LIMIT) as where, contextlib.ExitStack() as stack:
        def beside(*options):
            return stack.enter_context(tool("drsnoop", "--cgroup", where.folder, *options))
        each, longest, least = beside(), beside("--sort", "-duration", "--top", "5"), beside(*last)
        few, often = beside("--rows", "6", "--sort", "duration"), beside("--interval", "10ms")
        alerts = beside("--interval", "1h", "--alert", "scanned_pages>=0")
        record = subprocess.Popen(
            lib.with_tracefs(
                [lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", where.folder, "-o", folder + "/all.allium"]),
            stderr=subprocess.PIPE)
        stack.callback(record.kill)
        check(b": ready: " in record.stderr.readline(), "not ready")
        for _ in range(2):
            run_in(where, reads(path))
        all_ = each.stop().rows
        record.send_signal(signal.SIGINT)
        record.communicate(timeout=tap.TIMEOUT)

        def sorted_by(rows, key, most=True):
            return sorted((row[key] for row in rows), reverse=most)
        check(len(all_) > 40, "too few events:", len(all_))
        durations = sorted_by(longest.stop().rows, "duration_ns")
        equal([row["duration_ns"] for row in longest.rows], durations, "in order")
        equal(len(durations), 5, "rows of --top 5")
        equal([row["scanned_pages"] for row in least.stop().rows],
              sorted_by(all_, "scanned_pages", False)[:7], "least first")
        equal((len(few.stop().rows), few.lost["not_kept_events"]), (6, len(all_) - 6), "kept, and not kept")
        equal(sorted_by(often.stop().rows, "tid"), sorted_by(all_, "tid"), "events of all intervals")
        check(len(sorted_runs(often.rows)) > 1, "all came in one interval")
        said = [line for line in alerts.stop().errors.splitlines() if line.startswith(b"allium: alert: ")]
        equal((len(said), len(alerts.rows)), (len(all_), len(all_)), "alerts, rows")
        from_ = [lib.built("ALLIUM"), "sys", "drsnoop", "--from", folder + "/all.allium", "--json"]
        recorded = lib.stream(tap.succeed(from_).stdout, "drsnoop")
        equal((len(recorded) - 1, "lost" in recorded[-1]), (len(all_), True), "events recorded, and then what was lost")
        again = [row["scanned_pages"] for row in lib.stream(tap.succeed([*from_, *last]).stdout, "drsnoop")[:-1]]
        equal(again, [row["scanned_pages"] for row in least.rows], "least first, of a recording")


def on_terminal(columns, *options):
    """Lines of a short report, as a terminal of that width gets them."""
    main_end, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with file_on_disk(48) as path, group(LIMIT) as where, os.fdopen(main_end, "rb", buffering=0) as screen:
        with subprocess.Popen([lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", where.folder, "--top", "5", *options],
                              stdin=subprocess.DEVNULL, stdout=its_end, stderr=subprocess.PIPE) as it:
            check(b": ready: " in it.stderr.readline(), "not ready")
            run_in(where, reads(path))
            it.send_signal(signal.SIGINT)
            it.communicate(timeout=tap.TIMEOUT)
        os.close(its_end)
        out = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while part := screen.read(4096):
                out += part
    return out.decode().replace("\r", "").splitlines()


def narrow():
    """80 columns have all that one needs, 60 who and for how long; no line is longer."""
    for columns, headers in ((80, ["TIME", "PID", "COMM", "RECLAIM", "DURATION",
                                   "MEMCG"]), (60, ["TIME", "PID", "COMM", "RECLAIM", "DURATION"])):
        named, *lines = on_terminal(columns)
        named = re.sub("\x1b\\[[0-9]*m", "", named)
        check(re.match(r"no room for TID, UID, .* and \d+ more$", named) and len(named) <= columns, "named:", named)
        equal(re.split("  +", lines[0].strip()), headers, "columns")
        equal((len(lines), max(map(len, lines)) <= columns), (6, True), "lines, none too long: %s" % lines)


def sorted_runs(rows):
    """How often rows that go from the longest to the shortest begin anew: the lengths of these."""
    runs = [0]
    for before, row in zip([None] + rows, rows):
        if before and row["duration_ns"] > before["duration_ns"]:
            runs.append(0)
        runs[-1] += 1
    return runs


def headings():
    """Each interval of events says how many it had, and how many of them it shows."""
    with file_on_disk(64) as path, group(LIMIT) as where, tool("drsnoop", "--cgroup", where.folder) as each:
        reader = where.command(["sh", "-c", "cat %s >/dev/null; sleep 0.3; cat %s >/dev/null" % (path, path)])
        done = tap.succeed(
            lib.with_tracefs([
                lib.built("ALLIUM"), "sys", "drsnoop", "--cgroup", where.folder, "--interval", "100ms", "--top", "2",
                "--", *reader
            ]))
        each.stop()
    text = done.stdout.decode()
    found = re.findall(r"^--- .* after the start, the last .*: (?:(\d+) of )?(\d+) events?$", text, re.M)
    check(each.rows and len(found) >= 3, "too few intervals:", text)
    equal(sum(int(all_) for _, all_ in found), len(each.rows), "events in the headings of " + text)
    for few, all_ in found:
        equal(few, "2" if int(all_) > 2 else "", "events shown of " + all_)
    equal(len(re.findall("^ *TIME ", text, re.M)), sum(all_ != "0" for _, all_ in found), "lines of headers in " + text)


TESTS = [("pages are those that the kernel counted, by " + method, lambda method=method: pages(method)) for method in METHODS]
TESTS += [("free memory is that of /proc/vmstat, by " + method, lambda method=method: free_memory(method)) for method in METHODS]
TESTS += [
    ("a missing event is noticed", lambda: loses(lambda env: pages("tp_btf", env))),
    ("ways to attach agree", methods_agree),
    ("the limit of a cgroup above", ancestor),
    ("the limit of memory and swap together", memory_and_swap),
    ("threads and processes", threads),
    ("anonymous pages", anonymous),
    ("filters by process, thread, user and name", filters),
    ("filter by cgroup", cgroups),
    ("filter by cgroup of version 2", cgroup_v2),
    ("cgroups that are none of ours are refused", refused),
    ("what had begun before, and what has not ended", under_way),
    ("a full ring loses what it says", ring_full),
    ("a recording of events that come too fast says how many are missing", ring_full_recorded),
    ("--hist adds the events up", histogram),
    ("a quiet machine is told of", quiet_machine),
    ("narrow screens have what fits", narrow),
    ("events kept, sorted and cut are those that come one by one", shown_together),
    ("each interval of events tells how many there were", headings),
]

lib.main(TESTS)
