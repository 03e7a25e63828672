# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys oomkill`: kills in memory cgroups, against /proc/vmstat, the kernel's own lines and what /proc tells of
the victim while it lives. Figures are exact, but those that the kernel's lines have only roughly (LINE_OFF_PAGES), and
how near a memory cgroup is to its limit when it kills (USAGE_OFF_PAGES).
"""
import contextlib
import os
import re
import signal
import subprocess
import time

from lib import IN_NAMESPACE, built, check, equal, load, loses, main, only, tool, vmstat, wait_until
import tap

ROOT = "/sys/fs/cgroup/memory"
LIMIT = 20 << 20
METHODS = ("tp_btf", "raw_tp")
PAGE = os.sysconf("SC_PAGESIZE")
CPUS = os.sysconf("SC_NPROCESSORS_CONF")
# The kernel's lines leave out what each CPU has not added up: less than max(32, 2 * CPUs) pages on each.
LINE_OFF_PAGES = max(32, 2 * CPUS) * CPUS
# Each CPU charges 64 pages (MEMCG_CHARGE_BATCH) at once: it adds them to the counter, takes them back where they go
# beyond the limit, and gives back what it has kept when memory is short.
USAGE_OFF_PAGES = 64 * CPUS
KILLED = re.compile(r"Killed process (\d+) \((.*?)\) total-vm:(\d+)kB, anon-rss:(\d+)kB, file-rss:(\d+)kB, "
                    r"shmem-rss:(\d+)kB, UID:(\d+) pgtables:(\d+)kB oom_score_adj:(-?\d+)")


@contextlib.contextmanager
def cgroup(limit=LIMIT):
    """A memory cgroup of v1 with a limit, gone afterwards."""
    path = "%s/allium-oomkill-%d-%d" % (ROOT, os.getpid(), time.monotonic_ns())
    os.mkdir(path)
    try:
        write(path + "/memory.limit_in_bytes", limit)
        write(path + "/memory.swappiness", 0)
        yield path
    finally:
        with open(path + "/cgroup.procs") as file:
            left = [int(line) for line in file]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: removed(path), tap.TIMEOUT, "the cgroup can be removed")


def removed(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.exists(path)


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def eater(path, *words, score=0, uid=0):
    """tests/sys/eater.c in the cgroup."""
    def enter():
        write(path + "/cgroup.procs", os.getpid())
        write("/proc/self/oom_score_adj", score)
        os.setuid(uid)
    return subprocess.Popen([built("TEST_EATER"), *map(str, words)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, preexec_fn=enter)


def grow(path, **how):
    """A process that grows until it is killed; its pid."""
    process = eater(path, "grow", **how)
    equal(process.wait(tap.TIMEOUT), -signal.SIGKILL, "end of the one that grows")
    process.stdout.close()
    return process.pid


def status(pid):
    with open("/proc/%d/status" % pid) as file:
        lines = dict(line.split(":", 1) for line in file)
    return {name: int(text.split()[0]) << 10 for name, text in lines.items() if text.strip().endswith("kB")}


def kernel_lines(pids):
    """What the kernel has written about these victims."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    found = {}
    try:
        while True:
            try:
                match = KILLED.search(os.read(log, 8192).decode(errors="replace"))
            except BlockingIOError:
                return found
            except BrokenPipeError:  # overwritten while we read: the next read goes on behind it
                continue
            if match and int(match.group(1)) in pids:
                found[int(match.group(1))] = match
    finally:
        os.close(log)


def of_ours(rows, pids):
    return [row for row in rows if row["victim_pid"] in pids]


def uses_its_limit(row):
    """The kernel changes the counter while a tool reads it, so that two tools may read different values at the same
    kill.
    """
    off = abs(row["limit_bytes"] - row["usage_bytes"]) // PAGE
    check(off <= USAGE_OFF_PAGES, "pages between usage and limit:", off, row)


def many_kills(env, method, times):
    """So many, by /proc/vmstat, the kernel's lines and our own count."""
    outer = vmstat()["oom_kill"]
    with cgroup() as path, tool("oomkill", "--attach", method, env=env) as it:
        before = vmstat()["oom_kill"]
        pids = [grow(path) for _ in range(times)]
        least = vmstat()["oom_kill"] - before
        it.stop()
        most = vmstat()["oom_kill"] - outer
        equal(it.method, method, "method")
    equal([row["victim_pid"] for row in of_ours(it.rows, pids)], pids, "victims in their order")
    killed = [row for row in it.rows if row["outcome"] == "killed"]  # also for others on this machine
    check(least <= len(killed) <= most, "kills:", len(killed), "but oom_kill in /proc/vmstat went", least, "to", most)
    equal(sorted(kernel_lines(pids)), sorted(pids), "victims of /dev/kmsg")
    # An upper bound, of programs that others' events met, too; what is missing, the counts above tell.
    # A stack by frame pointers may end where nothing lies: such a frame has no name, and is no loss.
    told = ("missed_events", "nameless_frames")
    equal(sum(n for name, n in it.lost.items() if name not in told), 0, "losses %s" % it.lost)
    for row in of_ours(it.rows, pids):
        equal((row["outcome"], row["scope"], row["scope_is"]), ("killed", "memcg", "inferred"), "what it was")
        equal((row["memcg"], row["limit_bytes"]), (path[len(ROOT):], LIMIT), "its cgroup")
        uses_its_limit(row)
        equal(row["pid"], row["victim_pid"], "trigger, of one who asks for himself")
        check(any("mem_cgroup_out_of_memory" in frame for frame in row["kernel_stack"]), row["kernel_stack"])


def test_many(method):
    with load():
        loses(lambda env: many_kills(env, method, 20 if not env else 3), most=2)


def victim_figures(method):
    """A victim that holds still, so that /proc has its exact figures; who asks is another."""
    with cgroup() as path, tool("oomkill", "--attach", method) as it:
        victim = eater(path, "hold", 2600, score=921, uid=65534)
        victim.stdout.readline()
        wait_until(lambda: sleeps(victim.pid), tap.TIMEOUT, "it sleeps")
        was = status(victim.pid)
        trigger = eater(path, "grow")
        equal(victim.wait(tap.TIMEOUT), -signal.SIGKILL, "end of the victim")
        trigger.wait(tap.TIMEOUT)
        line = kernel_lines([victim.pid])[victim.pid]
        it.stop()
    row = only(it.rows, victim_pid=victim.pid)
    equal((row["pid"], row["victim_uid"], row["oom_score_adj"]), (trigger.pid, 65534, 921), "trigger, uid, score")
    equal((row["anon_bytes"], row["shmem_bytes"], row["swap_bytes"], row["total_vm_bytes"]),
          (was["RssAnon"], was["RssShmem"], was["VmSwap"], was["VmSize"]), "figures of /proc/PID/status")
    equal(row["page_tables_bytes"], was["VmPTE"], "page tables")
    equal(row["approximate"], False, "approximate")
    for ours, number in (("anon_bytes", 4), ("file_bytes", 5), ("shmem_bytes", 6)):
        off = abs(row[ours] - (int(line.group(number)) << 10))
        check(off <= LINE_OFF_PAGES * PAGE, ours, "is off the kernel's line by", off)
    equal((row["total_vm_bytes"], row["victim_uid"], row["page_tables_bytes"], row["oom_score_adj"]),
          (int(line.group(3)) << 10, int(line.group(7)), int(line.group(8)) << 10, int(line.group(9))),
          "the kernel's line")


def test_two_cgroups():
    with cgroup() as one, cgroup(2 * LIMIT) as other, tool("oomkill") as it:
        first, second = eater(one, "grow"), eater(other, "grow")
        first.wait(tap.TIMEOUT), second.wait(tap.TIMEOUT)
        it.stop()
    for process, path, limit in ((first, one, LIMIT), (second, other, 2 * LIMIT)):
        row = only(it.rows, victim_pid=process.pid)
        equal((row["memcg"], row["limit_bytes"], row["victim_cgroup"]), (path[len(ROOT):], limit, path[len(ROOT):]),
              "cgroup")


def test_nested():
    """The limit is the upper cgroup's, the victim is in the lower one, which has none."""
    with cgroup() as path:
        os.mkdir(path + "/inner")
        try:
            with tool("oomkill") as it:
                pid = grow(path + "/inner")
                it.stop()
        finally:
            wait_until(lambda: removed(path + "/inner"), tap.TIMEOUT, "the inner cgroup can be removed")
    row = only(it.rows, victim_pid=pid)
    equal((row["memcg"], row["victim_cgroup"]), (path[len(ROOT):], path[len(ROOT):] + "/inner"), "cgroups")
    equal(row["victim_container_pid"], None, "number in a container")


def test_sharing():
    with cgroup() as path, tool("oomkill") as it:
        victim = eater(path, "share", 1000, score=900)
        victim.stdout.readline()
        trigger = eater(path, "grow")
        victim.wait(tap.TIMEOUT), trigger.wait(tap.TIMEOUT)
        it.stop()
    rows = [row for row in it.rows if row["sharing_processes"] == 1]
    equal(len(rows), 1, "victims that share their memory with one other, of %s" % it.rows)


def test_largest():
    """Three that are larger than most have the figures of /proc, and nobody larger is left out."""
    with cgroup(900 << 20) as path, tool("oomkill") as it:
        held = [eater(path, "hold", 60000 + 100 * i) for i in range(3)]
        for process in held:
            process.stdout.readline()
            wait_until(lambda: sleeps(process.pid), tap.TIMEOUT, "it sleeps")
        was = {process.pid: status(process.pid)["VmRSS"] for process in held}
        victim = grow(path, score=1000)
        it.stop()
        for process in held:
            process.kill(), process.wait()
    largest = only(it.rows, victim_pid=victim)["largest"]
    equal(len(largest), 10, "how many")
    resident = [p["rss_bytes"] for p in largest]
    equal(resident, sorted(resident, reverse=True), "order")
    ours = {p["pid"]: p["rss_bytes"] for p in largest if p["pid"] in was}
    equal(ours, {pid: bytes for pid, bytes in was.items() if bytes > resident[-1]}, "resident memory of ours")
    for p in largest:
        if p["pid"] in was:
            equal((p["in_memcg"], p["oom_score_adj"], p["comm"]), (1, 0, "eater"), "who")


def test_two_methods():
    """Two ways to attach at once say the same of the same kills."""
    with cgroup() as path, tool("oomkill", "--attach", METHODS[0]) as a, tool("oomkill", "--attach", METHODS[1]) as b:
        pids = [grow(path) for _ in range(5)]
        a.stop(), b.stop()
    equal([row["victim_pid"] for row in of_ours(a.rows, pids)], pids, "victims")
    own = ("time_ns", "usage_bytes", "largest", "load_1", "load_5", "load_15", "load_later_ns", "kernel_stack",
           "user_stack", "processes")
    for x, y in zip(of_ours(a.rows, pids), of_ours(b.rows, pids)):
        equal({k: v for k, v in x.items() if k not in own}, {k: v for k, v in y.items() if k not in own}, "a row")
        uses_its_limit(x), uses_its_limit(y)


def test_no_memory():
    """What it shows takes no memory: its address space may not grow, and no page is faulted in."""
    with cgroup() as path, tool("oomkill", "--stacks", "kernel") as it:
        pid = it.process.pid
        before = faults(pid)
        subprocess.run(["prlimit", "--pid", str(pid), "--as=%d" % status(pid)["VmSize"]], check=True)
        check(status(pid)["VmLck"] > 4 << 20, "locked", status(pid)["VmLck"])
        pids = [grow(path) for _ in range(20)]
        wait_until(lambda: sleeps(pid), tap.TIMEOUT, "it sleeps")
        equal(faults(pid), before, "faults, minor and major")
        it.stop()
    equal([row["victim_pid"] for row in of_ours(it.rows, pids)], pids, "victims")


def faults(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])


def sleeps(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


def test_namespace():
    """In a PID namespace kills outside are told, too; numbers are those that are seen there, 0 of what is outside."""
    inside = ["sh", "-c", 'echo $$; echo 0 >"$0"/cgroup.procs; exec "$@"']
    with cgroup() as path, tool("oomkill", before=IN_NAMESPACE) as it:
        grow(path)
        done = subprocess.run(["nsenter", "--pid=/proc/%d/ns/pid" % it.pid, *inside, path, built("TEST_EATER"), "grow"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        it.stop()
    rows = [row for row in it.rows if row["memcg"] == path[len(ROOT):]]
    number = int(done.stdout.split()[0])
    equal(
        [(row["pid"], row["victim_pid"], row["victim_comm"]) for row in rows],
        [(0, 0, "eater"), (number, number, "eater")],
        "kills",
    )
    check({p["pid"]
           for p in rows[1]["largest"]} <= {0, 1, number}, "none but", number, "and allium:", rows[1]["largest"])


def test_ring_full():
    """What the ring has no room for is counted: two events fit into none of 4 KiB while nobody reads."""
    with cgroup() as path, tool("oomkill", "--ring", 4096) as it:
        it.process.send_signal(signal.SIGSTOP)
        pids = [grow(path) for _ in range(6)]
        it.process.send_signal(signal.SIGCONT)
        it.stop()
    check(it.lost["lost_events"] > 0, "none was lost", it.lost)
    check(len(it.rows) + it.lost["lost_events"] >= len(pids), "rows and what was lost", it.rows, it.lost)


def in_container(path):
    """The second process of a PID namespace grows until it is killed."""
    shell = subprocess.Popen(["unshare", "--pid", "--fork", "sh", "-c", '"$0" grow; :', built("TEST_EATER")],
                             stdin=subprocess.DEVNULL, preexec_fn=lambda: write(path + "/cgroup.procs", os.getpid()))
    equal(shell.wait(tap.TIMEOUT), 0, "end of the namespace's first process")


def test_container():
    """The kernel's line has the victim's number outside, the row has both."""
    with cgroup() as path, tool("oomkill") as it:
        in_container(path)
        it.stop()
        row = only(it.rows, victim_cgroup=path[len(ROOT):])
    check(kernel_lines([row["victim_pid"]]), "the kernel's log has no victim", row["victim_pid"])
    equal((row["victim_comm"], row["victim_container_pid"]), ("eater", 2), "the victim, inside")


def story_of(kill, before=()):
    """What is printed of one, and what kill() returns. `before`: a namespace, in which kill() is given a process."""
    it = subprocess.Popen([*before, built("ALLIUM"), "sys", "oomkill"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    allium = it.pid
    try:
        check(b"ready" in it.stderr.readline(), "it is not ready")
        allium = int(open("/proc/%d/task/%d/children" % (it.pid, it.pid)).read()) if before else it.pid
        killed = kill(allium) if before else kill()
    finally:
        os.kill(allium, signal.SIGINT)
        out = it.communicate(timeout=tap.TIMEOUT)[0].decode()
    return out, killed


def test_story_in_a_namespace():
    """What is outside has no number there, and is said to be; what is inside has one, not another one "in its
    container".
    """
    def within(allium):
        done = subprocess.run([
            "nsenter",
            "--pid=/proc/%d/ns/pid" % allium, "sh", "-c", 'echo $$; echo 0 >"$0"/cgroup.procs; exec "$@"', path,
            built("TEST_EATER"), "grow"
        ], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        return int(done.stdout.split()[0])
    with cgroup() as path:
        outside, _ = story_of(lambda _: grow(path), IN_NAMESPACE)
        inside, number = story_of(within, IN_NAMESPACE)
    check("eater (outside of this PID namespace) was killed" in outside, outside)
    check("eater (pid %d) was killed" % number in inside, inside)
    for story in outside, inside:
        check(" pid 0" not in story and not re.search(r"^ *[* ] +0 ", story, re.M), "a process has number 0:", story)


def test_story():
    with cgroup() as path:
        out, pid = story_of(lambda: grow(path))
        inner, _ = story_of(lambda: in_container(path))
    for words in ("eater (pid %d) was killed: memory cgroup %s is full (inferred)" % (pid, path[len(ROOT):]),
                  "memory used: ", "of a limit of 20 MiB", "the victim requested the memory", "largest of "):
        check(words in out, words, "is not in", out)
    check(
        re.search(
            r"eater \(pid \d+, in its container 2\) was killed: memory cgroup %s is" % re.escape(path[len(ROOT):]),
            inner), inner)


main([
    ("20 kills are 20 events, on tp_btf, beside another load; a lost one is noticed", lambda: test_many("tp_btf")),
    ("the same on raw_tp", lambda: test_many("raw_tp")),
    ("the victim's figures are exact, who asked is another, on tp_btf", lambda: victim_figures("tp_btf")),
    ("the same on raw_tp", lambda: victim_figures("raw_tp")),
    ("two cgroups at once", test_two_cgroups),
    ("the limit of a cgroup above", test_nested),
    ("a process that shares the victim's memory", test_sharing),
    ("the largest processes", test_largest),
    ("two methods at once", test_two_methods),
    ("no memory is taken when it matters", test_no_memory),
    ("in a PID namespace", test_namespace),
    ("a ring that is full", test_ring_full),
    ("the story", test_story),
    ("the story, in a PID namespace", test_story_in_a_namespace),
    ("a victim in a container has its number there, too", test_container),
])
