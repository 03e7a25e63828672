# SPDX-License-Identifier: BSD-2-Clause
"""allium sys, the overview: its figures against free, swapon, ps, pmap and the kernel's own, with programs of known
size.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal

MIB = 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
MANUAL = os.path.join(HERE, "../../man/allium-json.5.scd")


def look(place, *words):
    return json.loads(place.allium("sys", "--json", "--duration", "50ms", *words).out)


def need_root():
    if os.geteuid():
        raise tap.Skipped("needs root")


def start_sized(place, file="", anon=0, shmem=0, swap=0):
    process = place.start(program("sized"), file, str(anon), str(shmem), str(swap))
    equal(process.stdout.readline(), b"ready\n", "what sized says")
    return process


def row(seen, pid):
    found = [row for row in seen["processes"] if row["pid"] == pid]
    check(len(found) == 1, "rows of process", pid, found)
    return found[0]


def status(pid):
    """The sizes of /proc/PID/status in bytes."""
    with open("/proc/%d/status" % pid) as file:
        return {key: int(number) << 10 for key, number in re.findall(r"^(\w+):\s+(\d+) kB$", file.read(), re.M)}


def counters():
    with open("/proc/vmstat") as file:
        return {name: int(number) for name, number in (line.split() for line in file)}


def totals(place):
    """What does not change is what free and meminfo say."""
    free = tap.succeed(["free", "-b"], env=dict(os.environ, LC_ALL="C")).stdout.decode().splitlines()
    seen = look(place)["memory"]
    equal(seen["total_bytes"], int(free[1].split()[1]), "memory in all, as free has it")
    equal(seen["swap_total_bytes"], int(free[2].split()[1]), "swap in all, as free has it")
    for key in "free_bytes", "available_bytes", "unaccounted_bytes", "cpu_lists_bytes":
        check(0 <= seen[key] < seen["total_bytes"], key, seen[key])
    for key in ("active_anon_bytes", "slab_unreclaimable_bytes", "page_tables_bytes", "kernel_stacks_bytes",
                "vmalloc_bytes"):
        check(0 < seen[key] < seen["total_bytes"], key, seen[key])


def counts(place):
    """Counters only grow: each lies between what the kernel said before and after."""
    page = os.sysconf("SC_PAGESIZE")
    names = {
        "faults": ("pgfault", 1),
        "major_faults": ("pgmajfault", 1),
        "read_bytes": ("pgpgin", 1024),
        "written_bytes": ("pgpgout", 1024),
        "swapped_in_bytes": ("pswpin", page),
        "swapped_out_bytes": ("pswpout", page),
        "freed_bytes": ("pgfree", page),
        "scanned_kswapd_bytes": ("pgscan_kswapd", page),
        "stolen_kswapd_bytes": ("pgsteal_kswapd", page),
        "refaulted_anon_bytes": ("workingset_refault_anon", page),
        "refaulted_file_bytes": ("workingset_refault_file", page),
        "kswapd_runs": ("pageoutrun", 1),
        "oom_kills": ("oom_kill", 1),
        "huge_faults": ("thp_fault_alloc", 1),
    }
    before, seen, after = counters(), look(place), counters()
    for told in before, after:  # pages of zeros come and go as well (Linux 6.12)
        for name in "pswpin", "pswpout":
            told[name] += told.get(name[1:] + "_zero", 0)
    for key, (name, unit) in names.items():
        check(before[name] * unit <= seen["activity"][key] <= after[name] * unit, key, before[name] * unit,
              seen["activity"][key], after[name] * unit)
        check(seen["rates"][key + "_per_s"] >= 0, "rate of", key)
    scanned = sum(seen["activity"]["scanned_%s_bytes" % who] for who in ("kswapd", "direct", "cgroup"))
    check((before["pgscan_anon"] + before["pgscan_file"]) * page <= scanned <=
          (after["pgscan_anon"] + after["pgscan_file"]) * page, "all that was scanned:", scanned)


def kernel_zones():
    """{(node, zone): [managed, min, low, high]} of those with memory, in bytes."""
    with open("/proc/zoneinfo") as file:
        parts = re.split(r"^(?=Node )", file.read(), flags=re.M)[1:]
    found = {}
    for part in parts:
        node, name = re.match(r"Node (\d+), zone +(\w+)", part).groups()
        marks = [
            int(re.search(r"^ +%s +(\d+)" % mark, part, re.M).group(1)) * 4096
            for mark in ("managed", "min", "low", "high")
        ]
        if marks[0]:
            found[int(node), name] = marks
    return found


def zones(place):
    """Each zone with memory, with its watermarks. Where a machine gets memory and loses it, they change: then once
    more.
    """
    def equal_ones():
        before, seen, after = kernel_zones(), look(place)["zones"], kernel_zones()
        return before == after and (after, {(zone["node"], zone["zone"]):
                                            [zone[key + "_bytes"] for key in ("managed", "min", "low", "high")]
                                            for zone in seen})
    want, have = tap.wait_until(equal_ones, 30, "zones that stay as they are for a look")
    equal(have, want, "zones")


def sizes(place):
    """A program of known size: anonymous, file and shared memory as it took them; RSS and mappings as ps and pmap have
    them.
    """
    path = place.path("file")
    with open(path, "wb") as file:
        file.write(os.urandom(3 * MIB))
    process = start_sized(place, path, anon=24, shmem=8)
    process.send_signal(signal.SIGSTOP)
    tap.wait_until(lambda: open("/proc/%d/stat" % process.pid).read().split()[2] == "T", 20, "stopped")
    own = status(process.pid)
    seen = row(look(place, "--top", "0"), process.pid)
    equal(seen["rss_bytes"],
          int(tap.succeed(["ps", "-o", "rss=", "-p", str(process.pid)]).stdout) << 10, "RSS, as ps has it")
    for key, name in (
        ("anon_bytes", "RssAnon"),
        ("file_bytes", "RssFile"),
        ("shmem_bytes", "RssShmem"),
        ("swap_bytes", "VmSwap"),
    ):
        equal(seen[key], own[name], key)
    # the kernel's counters may be behind by a batch for each CPU
    slack = MIB
    check(24 * MIB - slack <= seen["anon_bytes"] < 25 * MIB + slack, "anonymous:", seen["anon_bytes"])
    check(8 * MIB - slack <= seen["shmem_bytes"] + seen["file_bytes"] - 3 * MIB < 14 * MIB, "shmem and file:", seen)
    equal((seen["process"], seen["state"], seen["note"], seen["threads"]), ("sized", "T", None, 1), "its row")
    check(seen["command"].startswith(program("sized") + " " + path), "command:", seen["command"])
    mapped = json.loads(place.allium("sys", "--json", "-p", str(process.pid), "--top", "0").out)
    equal(mapped["asked"], "answered", "what came of asking")
    printed = tap.succeed(["pmap", "-x", str(process.pid)]).stdout.decode().splitlines()
    want = {int(found.group(1), 16): (int(found.group(2)) << 10, int(found.group(3)) << 10, int(found.group(4)) << 10)
            for found in (re.match(r"([0-9a-f]{16}) +(\d+) +(\d+) +(\d+) ", line) for line in printed) if found}
    have = {
        int(one["address"], 16): (one["size_bytes"], one["rss_bytes"], one["dirty_bytes"])
        for one in mapped["mappings"]
    }
    # pmap calls [vsyscall] by a number of 16 digits as well, in some versions only
    gate = {at for at in have if at >> 63}
    equal({at: have[at]
           for at in have if at not in gate}, {at: want[at]
                                               for at in want if not at >> 63}, "mappings, as pmap has them")
    check(mapped["total"]["anon_bytes"] >= 24 * MIB and mapped["total"]["rss_bytes"] >= 35 * MIB, mapped["total"])
    held = [one for one in mapped["mappings"] if one["name"] == path]
    equal([(one["rss_bytes"], one["anon_bytes"]) for one in held], [(3 * MIB, 0)], "the file's mapping")
    share = row(look(place, "--top", "0", "--pss"), process.pid)
    check(share["pss_bytes"] is None or 24 * MIB <= share["pss_bytes"] <= mapped["total"]["rss_bytes"], "PSS:",
          share["pss_bytes"])


@contextlib.contextmanager
def swap_file(bytes_):
    """A swap file of our own, for as long; on a disk, as a tmpfs can have none."""
    with tempfile.TemporaryDirectory(prefix="allium test ", dir=os.path.dirname(built("TEST_CLI"))) as folder:
        path = folder + "/swap file"
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(bytes(bytes_))
            os.fsync(file.fileno())
        tap.succeed(["mkswap", path])
        tap.succeed(["swapon", "--priority", "5", path])
        try:
            yield path
        finally:
            tap.succeed(["swapoff", path])


def swapped(place):
    """Swap: the device as swapon has it, and what lies there of a program that asked for it."""
    need_root()
    with swap_file(64 * MIB) as path:
        process = start_sized(place, anon=4, swap=16)
        try:
            process.send_signal(signal.SIGSTOP)
            seen = look(place, "--top", "0", "--sort", "swap")
            listed = tap.succeed(["swapon", "--show=SIZE,PRIO", "--bytes", "--raw",
                                  "--noheadings"]).stdout.decode().split("\n")
            (device,) = [one for one in seen["swaps"] if one["swap"] == path]
            check("%d %d" % (device["size_bytes"], device["priority"]) in listed, "swapon:", listed, device)
            equal((device["type"], device["priority"]), ("file", 5), "type and priority")
            own = row(seen, process.pid)
            equal(own["swap_bytes"], status(process.pid)["VmSwap"], "in swap, as the kernel has it")
            check(own["swap_bytes"] >= 14 * MIB, "in swap:", own["swap_bytes"])
            check(device["used_bytes"] >= 14 * MIB, "used:", device)
            check(seen["activity"]["swapped_out_bytes"] >= 14 * MIB, "swapped out since boot:", seen["activity"])
            listed = [one["swap_bytes"] or 0 for one in seen["processes"]]  # others may have more there
            equal(listed, sorted(listed, reverse=True), "what each has in swap, with --sort swap")
            mapped = json.loads(place.allium("sys", "--json", "-p", str(process.pid)).out)
            equal(mapped["total"]["swap_bytes"], own["swap_bytes"], "in swap, by mappings")
        finally:
            process.send_signal(signal.SIGCONT)
            tap.stop(process, signal.SIGKILL)


@contextlib.contextmanager
def memory_group(limit):
    """A control group of our own; of version 1 where that has memory. -> its path on this machine, and its name."""
    one = "/sys/fs/cgroup/memory"
    top = one if os.path.isdir(one) else "/sys/fs/cgroup"
    name = "/allium-test-%d" % os.getpid()
    if top != one:
        with open(top + "/cgroup.subtree_control", "w") as file:
            file.write("+memory")
    os.mkdir(top + name)
    try:
        with open(top + name + ("/memory.limit_in_bytes" if top == one else "/memory.max"), "w") as file:
            file.write(str(limit))
        tap.keep_from_swap(top + name)
        yield top + name, name
    finally:
        tap.wait_until(lambda: not open(top + name + "/cgroup.procs").read(), 20, "the group's processes have ended")
        tap.wait_until(lambda: not remove(top + name), 20, "the group is removed")


def remove(folder):
    try:
        os.rmdir(folder)
    except OSError as error:
        return error


def start_in(place, group, *words):
    return place.start("sh", "-c", "echo $$ > %s/cgroup.procs && exec \"$@\"" % group, "sh", program("sized"), *words)


def grouped(place):
    """A cgroup of known size, with its limit; and a kill in it is listed with its figures, and counted once."""
    need_root()
    with memory_group(20 * MIB) as (group, name):
        process = start_in(place, group, "", "12", "0", "0")
        equal(process.stdout.readline(), b"ready\n", "what sized says")
        def held():  # what the kernel has counted on each CPU it adds up within some seconds
            (seen,) = [one for one in look(place, "--top", "0")["cgroups"] if one["cgroup"] == name]
            return seen["anon_bytes"] >= 11 * MIB and seen
        seen = tap.wait_until(held, 30, "12 MiB in the group")
        tap.stop(process, signal.SIGKILL)
        equal(seen["limit_bytes"], 20 * MIB, "its limit")
        check(12 * MIB <= seen["memory_bytes"] <= 20 * MIB and seen["anon_bytes"] <= 14 * MIB, "its size:", seen)
        before = counters()["oom_kill"]
        process = start_in(place, group, "", "64", "0", "0")
        equal(process.wait(60), -signal.SIGKILL, "how it ended")
        report = look(place, "--top", "0")
        (kill,) = [one for one in report["oom_kills"] if one["pid"] == process.pid and one["cgroup"] == name]
        equal((kill["killed"], kill["asked"], kill["limit_of"], kill["uid"]),
              ("sized", "sized", "cgroup", os.geteuid()), "the kill")
        check(10 * MIB < kill["anon_bytes"] <= 20 * MIB and 0 <= kill["ago_ns"] < 10 ** 11, kill)
        check(abs(kill["at_ns"] + kill["ago_ns"] - report["taken_ns"]) < 10 ** 6, "its times:", kill)
        check(before + 1 <= report["activity"]["oom_kills"] <= counters()["oom_kill"], "the kernel's count:", before)
        latest = min(report["oom_kills"], key=lambda one: one["ago_ns"])["cgroup"] or ""  # others may have kills, too
        check(any(note["urgent"] and "OOM kill" in note["text"] and latest in note["text"] for note in report["notes"]),
              report["notes"])
        (seen,) = [one for one in report["cgroups"] if one["cgroup"] == name]
        equal(seen["oom_kills"], 1, "kills of the group")
        first = place.allium("sys", "--duration", "50ms").out.split("\nMemory\n")[0]
        check("URGENT" in first and "OOM kill" in first, "what the screen begins with:", first)


THRASHER = """
import mmap, os, sys
file = open(sys.argv[1], "r+b")
file.truncate(48 << 20)
os.posix_fallocate(file.fileno(), 0, 48 << 20)
os.fsync(file.fileno())
os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("ready", flush=True)
while True:
    for at in range(0, len(pages), 4096):
        pages[at]
"""


def thrashing(place):
    """A process that reads more than its cgroup may hold is named with it, also at 80 x 24, and the limit once."""
    need_root()
    path = "/var/tmp/allium-thrash-%d" % os.getpid()  # a tmpfs has nothing to read back
    with open(path, "wb"), memory_group(20 * MIB) as (group, name):
        try:
            process = place.start("sh", "-c", "echo $$ > %s/cgroup.procs; exec \"$@\"" % group, "sh", sys.executable,
                                  "-c", THRASHER, path)
            equal(process.stdout.readline(), b"ready\n", "what it says")
            whose = "(pid %d), " % process.pid

            def named():
                notes = look(place)["notes"]
                return any("a cgroup thrashes; " in note["text"] and whose in note["text"] for note in notes) and notes
            notes = tap.wait_until(named, 60, "a note of who thrashes")
            of_it = [note for note in notes if name + ", which uses" in note["text"] or name + " uses" in note["text"]]
            check(len(of_it) == 1 and of_it[0]["urgent"] and "of its limit of 20 MiB" in of_it[0]["text"], notes)
            tap.wait_until(lambda: "a cgroup thrashes; " in re.sub("\\s+", " ", " ".join(screen_of(
                80, "--duration", "50ms", rows=24))), 60, "it on a small screen")
        finally:
            os.unlink(path)
            tap.stop(process, signal.SIGKILL)


def stuck(place):
    """A process in state D whose memory map is locked: shown with what is known, marked, and nobody waits for it."""
    need_root()
    folder = place.path("mount")
    os.mkdir(folder)
    server = place.start("unshare", "-m", sys.executable, "-B", HERE + "/locked_mmap.py", folder)
    pid = int(server.stdout.readline())
    tap.wait_until(lambda: open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0] == "D", 20, "state D")
    other = start_sized(place, anon=4)

    def asked():  # all of a look have one time to answer: on a busy machine it may be over before these two were asked
        seen = look(place, "--top", "0", "--pss")
        return row(seen, pid)["note"] and row(seen, other.pid)["command"] and seen
    seen = tap.wait_until(asked, 60, "a look that has asked both")
    own = row(seen, pid)
    equal((own["state"], own["note"], own["command"], own["pss_bytes"]), ("D", "no answer", None, None), "its row")
    equal(own["anon_bytes"], status(pid)["RssAnon"], "its anonymous memory")
    check(own["anon_bytes"] > 0 and seen["uninterruptible_tasks"] >= 1, own)
    check(any("pid %d" % pid in note["text"] for note in seen["notes"]), "notes:", seen["notes"])
    alone = json.loads(place.allium("sys", "--json", "-p", str(pid)).out)
    equal((alone["asked"], alone["total"], alone["mappings"]), ("no answer", None, []), "what -p says")
    equal(alone["anon_bytes"], own["anon_bytes"], "its anonymous memory, with -p")
    check("memory map of the process is locked" in place.allium("sys", "-p", str(pid)).out, "the screen of -p")
    series = place.allium("sys", "--interval", "50ms", "--duration", "220ms", "--top", "0", "--json").out.splitlines()
    check(
        len(series) >= 1 and all(row(json.loads(line), pid)["note"] in ("no answer", None) for line in series),
        "a series:", len(series))


def vanishing(place):
    """Processes that come and go all the time are no error."""
    place.start("sh", "-c", "while :; do /bin/true & /bin/true; wait; done")
    for _ in range(5):
        done = place.allium("sys", "--json", "--duration", "20ms", "--top", "0")
        equal(done.err, "", "stderr")
        check(len(json.loads(done.out)["processes"]) >= 2, "processes")


def series(place):
    """--interval gives an object a line, and ends with --duration or ^C. Intervals do not drift: on a busy machine one
    that came late is followed by a shorter one, and only their sum is known.
    """
    lines = place.allium("sys", "--json", "--interval", "60ms", "--duration", "200ms").out.splitlines()
    check(1 <= len(lines) <= 3, "lines:", len(lines))
    seen = list(map(json.loads, lines))
    equal({(each["schema"], each["version"]) for each in seen}, {("allium-sys", 1)}, "schema")
    intervals = [each["interval_ns"] for each in seen]
    check(min(intervals) > 0 and sum(intervals) >= (len(seen) - 1) * 60_000_000, "intervals:", intervals)
    for count in 1, 3:
        equal(len(place.allium("sys", "--json", "--interval", "60ms", "--count", str(count)).out.splitlines()), count,
              "screens")
    process = place.start_allium("sys", "--json", "--interval", "20ms")
    check(json.loads(process.stdout.readline())["schema"] == "allium-sys", "first line")
    equal(tap.stop(process, signal.SIGINT), 0, "code after ^C")


def keys(value):
    if isinstance(value, dict):
        return set(value) | {key for one in value.values() for key in keys(one)}
    return {key for one in value for key in keys(one)} if isinstance(value, list) else set()


def documented(place):
    """Each key of its JSON is in the manual."""
    with open(MANUAL) as file:
        page = re.search(r"^# SYS\n.*?^# EXAMPLES", file.read(), re.M | re.S).group(0)
    told = set(re.findall(r"\*([a-z][a-z0-9_]*)\*", page)) | {"schema", "version"}
    have = keys(look(place, "--pss")) | keys(json.loads(place.allium("sys", "-p", str(os.getpid()), "--json").out))
    missing = {key for key in have - told if not (key.endswith("_per_s") and key[:-len("_per_s")] in told)}
    equal(missing, set(), "keys that the manual does not have")


def screen_of(columns, *words, rows=50):
    """What it prints on a terminal that is so wide, and so high."""
    main, other = pty.openpty()
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    process = subprocess.Popen([built("ALLIUM"), "sys", "--no-pager", *words], stdin=subprocess.DEVNULL, stdout=other,
                               env=dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm", NO_COLOR="1"))
    os.close(other)
    text = b""
    with contextlib.suppress(OSError):
        while True:
            text += os.read(main, 65536)
    os.close(main)
    equal(process.wait(20), 0, "code")
    return text.decode().replace("\r", "").splitlines()


def screens(place):
    """At 80 and 120 columns nothing is cut off at the right, and all parts are there."""
    start_sized(place, anon=4)
    for columns in 80, 120:
        lines = screen_of(columns, "--all", "--duration", "50ms")
        wide = [line for line in lines if len(line) > columns]
        check(not wide, "lines wider than %d:" % columns, wide)
        text = "\n".join(lines)
        for part in ("Memory\n", "  programs ", "  files ", "  kernel ", "  swap ", "ZONE", "page faults", "OOM kills",
                     "PROCESS"):
            check(part in text, "no %r at %d columns in" % (part, columns), text)
        check(
            any(len(line) > columns for line in screen_of(columns, "-p", str(os.getpid()))) is False, "-p is too wide")


def fits(place):
    """Without --all a screen fits its terminal, and has what matters; a pipe gets all of it."""
    start_sized(place, anon=4)
    for rows, columns in (24, 80), (40, 120), (60, 200):
        lines = screen_of(columns, "--duration", "50ms", rows=rows)
        check(len(lines) <= rows - 1, "%d lines on %d rows" % (len(lines), rows), lines)
        equal([line for line in lines if len(line) > columns], [], "lines wider than %d" % columns)
        text = "\n".join(lines)
        for part in ("  memory ", "  swap ", "  pressure ", "  per second ", "PROCESS", "--all has"):
            check(part in text, "no %r at %d rows in" % (part, rows), text)
        check(len(re.findall(r"^ *\d+  ", text, re.M)) >= 3, "fewer than three processes in", text)
    check("ZONE" in place.allium("sys", "--duration", "50ms").out, "a pipe does not get all")
    twice = screen_of(80, "--interval", "300ms", "--duration", "650ms", rows=24)
    equal("\n".join(twice).count("\033[H\033[2J"), 2, "screens in 650 ms")


def refused(place):
    """Wrong usage says so in a line."""
    for words, code, said in ((("--interval", "0"), 2, "too short"), (("--sort", "size"), 2, "use memory"),
                              (("--top", "x"), 2, "--top"), (("-p", "none"), 2, "invalid process id"),
                              (("-p", "2147483647"), 1, "there is no process")):
        done = place.allium("sys", *words, code=code)
        check(said in done.err and done.out == "", words, done.err)


tap.main(
    [
        (name, placed(function))
        for name, function in (
            ("memory in all is what free says", totals),
            ("counters are the kernel's", counts),
            ("zones and watermarks are the kernel's", zones),
            ("a program of known size, against ps and pmap", sizes),
            ("a swap file, and what lies there", swapped),
            ("a cgroup of known size, and a kill in it", grouped),
            ("who thrashes at the limit of its cgroup", thrashing),
            ("a process that hangs with its memory map locked", stuck),
            ("processes that vanish", vanishing),
            ("a series of looks", series),
            ("keys of JSON are documented", documented),
            ("screens of 80 and 120 columns", screens),
            ("a screen fits its terminal", fits),
            ("wrong usage", refused),
        )
    ]
)
