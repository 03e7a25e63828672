# SPDX-License-Identifier: BSD-2-Clause
"""Services as they are run: Python's multiprocessing in a container with little shared memory, redis by an init script.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import tap
from container import Container, first_process, kill
from workdir import placed
from tap import built, check, equal

PYTHON = "/usr/bin/python3"
# Workers of each kind keep blocks of 2 MB: at 64 KiB one of 10 ** 13 is no sample. What they hold tracemalloc counts.
SERVICE = r"""
import json, multiprocessing, os, signal, sys, tracemalloc

BLOCK = 2_000_000

def keep(blocks, end):
    tracemalloc.start(1)
    kept = [bytearray(BLOCK) for _ in range(blocks)]
    end.send((os.getpid(), tracemalloc.get_traced_memory()[0]))
    end.recv()
    end.send(sum(len(block) for block in kept))

def die(end):
    kept = [bytearray(BLOCK) for _ in range(5)]
    end.send(os.getpid())
    os.kill(os.getpid(), signal.SIGKILL)

def square(n):
    return n * n

if __name__ == "__main__":
    said, ends, workers = {}, {}, {}
    for how, blocks in (("fork", 8), ("spawn", 12)):
        context = multiprocessing.get_context(how)
        ends[how], other = context.Pipe()
        workers[how] = context.Process(target=keep, args=(blocks, other))
        workers[how].start()
        said[how] = ends[how].recv()
    pool = multiprocessing.get_context("fork").Pool(2)
    said["squares"] = sum(pool.map(square, range(10_000)))
    mine, other = multiprocessing.Pipe()
    doomed = multiprocessing.get_context("fork").Process(target=die, args=(other,))
    doomed.start()
    said["doomed"] = mine.recv()
    doomed.join()
    said["doomed_code"] = doomed.exitcode
    print(json.dumps(said), flush=True)
    sys.stdin.readline()
    said = {}
    for how, end in ends.items():
        end.send("enough")
        said[how] = end.recv()
        workers[how].join()
        said[how + "_code"] = workers[how].exitcode
    said["squares"] = sum(pool.map(square, range(5_000)))
    pool.close()
    pool.join()
    print(json.dumps(said), flush=True)
"""
FIRST = {"squares": sum(n * n for n in range(10_000)), "doomed_code": -9}
LAST = {
    "fork": 16_000_000, "fork_code": 0, "spawn": 24_000_000, "spawn_code": 0,
    "squares": sum(n * n for n in range(5_000))
}


def listed(place, namespace):
    """{pid in the container: row} of ps, of the processes in that mount namespace."""
    found = json.loads(place.allium("ps", "--json").out)["rows"]
    return {row["container_pid"]: row for row in found if row["container"] == namespace}


def serve(place, period):
    container = Container(place)
    container.write("service.py", SERVICE)
    process = container.start(PYTHON, "service.py", period=period, PYTHONMALLOC="malloc")
    said = json.loads(process.stdout.readline() or "{}")
    equal({key: said.get(key) for key in FIRST}, FIRST, "what the service answers")
    return process, said, os.readlink("/proc/%d/ns/mnt" % first_process(process))


def finish(process):
    process.stdin.write(b"\n")
    process.stdin.close()
    equal(json.loads(process.stdout.readline() or "{}"), LAST, "what the service answers in the end")
    equal((process.wait(30), process.stderr.read()), (0, b""), "its code and stderr")


def multiprocessing_service(place):
    """Each worker is there, by its own number, and holds what tracemalloc counted; who died is not, and nothing is
    lost.
    """
    process, said, namespace = serve(place, "64K")
    found = listed(place, namespace)
    for how in ("fork", "spawn"):
        inner, traced = said[how]
        row = found.get(inner)
        check(row, "no row for the worker of %s, %d:" % (how, inner), found)
        equal((row["state"], row["lost"], row["note"]), ("running", 0, None), "state, losses and note of %s" % how)
        report = json.loads(place.allium("report", str(row["pid"]), "--json", "--by", "size").out)
        big = sum(each["self"]["live_bytes"] for each in report["rows"] if each["least_size_bytes"] >= 1 << 20)
        check(
            abs(big - traced) < 0.12 * traced,
            "%s: %d bytes in large blocks, tracemalloc counted %d" % (how, big, traced))
        check(row["live_bytes_high"] >= traced, "interval of ps:", row, traced)
    check(said["doomed"] not in found, "a row for the worker that died:", found.get(said["doomed"]))
    check(len(found) >= 3, "rows of the container:", found)
    finish(process)


def little_room(place):
    """Every allocation, and 1 MiB for all ledgers: they stop, say why and count; the service neither fails nor errs."""
    process, _, namespace = serve(place, 1)
    found = listed(place, namespace)
    full = [row for row in found.values() if row["lost"]]
    check(full, "nothing was lost in 1 MiB:", found)
    for row in full:
        equal(row["note"], "the ledger stopped growing: its tmpfs is nearly full", "note of ps")
        printed = " ".join(place.allium("report", str(row["pid"])).out.split())
        check(
            "A ledger stopped growing: its tmpfs is nearly full." in printed and "found no room" in printed,
            printed)
    check("tmpfs" in place.allium("ps").out, "the screen of ps does not say why")
    check({row["state"] for row in found.values()} <= {"running", "unsampled"}, "states:", found)
    room = os.statvfs("/proc/%d/root/dev/shm" % full[0]["pid"])
    check(room.f_bavail * room.f_frsize >= 64 << 10, "what the ledgers have left of 1 MiB:",
          room.f_bavail * room.f_frsize)
    finish(process)


# Each becomes what daemons become, and then holds 100 blocks of 20,000 bytes more.
DAEMON = r"""
import ctypes, os, struct, sys
how = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
if how == "closed":
    os.closerange(3, 1024)
elif how == "root":
    os.mkdir("empty")
    os.chroot("empty")
    os.chdir("/")
elif how == "user":
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
elif how == "seccomp":
    allow = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000), 8)
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(allow)))
    assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program, 0, 0)
kept = [bytearray(20_000) for _ in range(int(sys.argv[2]))]
print("ready", flush=True)
sys.stdin.read()
"""


def held_by_large(place, pid):
    report = json.loads(place.allium("report", str(pid), "--json", "--by", "size").out)
    return sum(row["self"]["live_objects"] for row in report["rows"] if row["least_size_bytes"] == 16384), report


def daemons(place):
    """Who closes its descriptors, changes its root, becomes another user or enters seccomp is seen as before, or says
    why not.
    """
    # 30,000: more samples than there is room for when the program enters seccomp
    for how, blocks in (("nothing", 100), ("closed", 100), ("root", 100), ("user", 100), ("seccomp", 30_000)):
        if how in ("root", "user") and os.geteuid():
            continue
        env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1", ALLIUM_LEDGER_SIZE="256M")
        process = place.start(PYTHON, "-S", "-c", DAEMON, how, str(blocks), env=env)
        equal(process.stdout.readline(), b"ready\n", "the daemon's word: " + how)
        row = place.row(process.pid)
        counted, report = held_by_large(place, process.pid)
        equal(row["state"], "running", "its state: " + how)
        if how == "seccomp":
            check(row["lost"] and counted < blocks, "nothing was lost under seccomp:", row)
            equal(row["note"], "the ledger stopped growing: the program entered seccomp", "note of ps")
            printed = " ".join(place.allium("report", str(process.pid)).out.split())
            check("A ledger stopped growing: the program entered seccomp." in printed, printed)
        else:
            equal((row["lost"], row["note"]), (0, None), "losses and note: " + how)
            check(blocks <= counted <= blocks + 60, "blocks of 20,000 bytes: %d, %s" % (counted, how))
        equal(row["container"], place.path("empty") if how == "root" else None, "where it lives: " + how)
        equal(report["lost"]["samples"] + report["lost"]["live"], row["lost"], "lost, by report and ps")
        process.stdin.close()
        equal((process.wait(60), process.stderr.read()), (0, b""), "code and stderr: " + how)


INIT = r"""#!/bin/sh
### BEGIN INIT INFO
# Provides:          store
# Required-Start:    $remote_fs
# Required-Stop:     $remote_fs
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: a store of keys
### END INIT INFO
%(env)s
FOLDER=%(folder)s
PIDFILE=$FOLDER/pid
DAEMON=/usr/bin/redis-server
case $1 in
start)
    start-stop-daemon --start --quiet --oknodo --pidfile $PIDFILE %(user)s --exec $DAEMON -- \
        --port 0 --unixsocket $FOLDER/socket --daemonize yes --pidfile $PIDFILE --save '' --dir $FOLDER --logfile $FOLDER/log
    ;;
stop)
    start-stop-daemon --stop --quiet --oknodo --retry 30 --pidfile $PIDFILE --exec $DAEMON
    ;;
restart)
    "$0" stop && "$0" start
    ;;
*)
    exit 2
    ;;
esac
"""


class Machine:
    """As this one, with a /dev/shm that nobody else has used; no service of another test is in it."""

    def __init__(self, place):
        self.place = place
        self.env = {name: value for name, value in place.env.items() if name != "XDG_RUNTIME_DIR"}
        self.keeper = place.start(*tap.unshare(), "sh", "-c",
                                  "mount -t tmpfs -o mode=1777 none /dev/shm && echo ready && cat", env=self.env)
        equal(self.keeper.stdout.readline(), b"ready\n", "the first word of who keeps the namespace")

    def run(self, *words, **how):
        enter = ["nsenter", "-t", str(self.keeper.pid), "-m"] + (
            [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        )
        return tap.run([*enter, *words], env=self.env, cwd="/", **how)

    def said(self, *words, **how):
        done = self.run(*words, **how)
        equal((done.returncode, done.stderr), (0, b""), "code and stderr of " + " ".join(words[:3]))
        return done.stdout.decode()

    def redis(self, *words, **how):
        return self.said("redis-cli", "-s", self.place.path("socket"), *words, **how).strip()

    def info(self):
        return dict(line.split(":", 1) for line in self.redis("INFO").splitlines() if ":" in line)

    def row(self, pid):
        return next(row for row in json.loads(self.said(built("ALLIUM"), "ps", "--json"))["rows"] if row["pid"] == pid)


def compare(machine, pid, keys):
    """Live by allium, with what the allocator adds, is used_memory of INFO: 12 % are 7 sigmas of 2,500 keys at 4 KiB.
    """
    protocol = b"".join(b"SET key:%d %s\r\n" % (n, b"x" * 4000) for n in range(keys))
    machine.redis("--pipe", input=protocol)
    used = int(machine.info()["used_memory"])
    equal(machine.redis("DBSIZE"), str(keys), "keys")
    report = json.loads(machine.said(built("ALLIUM"), "report", str(pid), "--json"))
    live = report["total"]["live_bytes"] + report["resident"]["slack_bytes"]
    check(abs(live - used) < 0.12 * used, "live and slack: %d, used_memory: %d" % (live, used))
    return report


def by_init_script(place):
    """start, restart and stop of a daemon that forks, closes its descriptors and is another user."""
    user = "--chuid 65534:65534" if os.geteuid() == 0 else ""
    machine, script = Machine(place), place.path("store")
    lines = machine.said(built("ALLIUM"), "env", "--shell", "--period", "4K")
    with open(script, "w") as file:
        file.write(INIT % {"env": lines, "folder": place.folder, "user": user})
    os.chmod(script, 0o755)
    for name in (os.path.dirname(place.folder), place.folder):
        os.chmod(name, 0o777)
    pids = []
    try:
        for action, keys in (("start", 2500), ("restart", 5000)):
            machine.said(script, action)
            tap.wait_until(lambda: os.path.exists(place.path("socket")) and machine.redis("PING") == "PONG", 30,
                           "redis answers")
            pids.append(int(machine.info()["process_id"]))
            report = compare(machine, pids[-1], keys)
            equal((report["processes"][0]["program"], report["processes"][0]["state"]), ("redis-server", "running"),
                  "process")
            equal((report["lost"]["samples"], report["lost"]["live"], report["lost"]["ledger_full"]), (0, 0, None),
                  "what was lost")
            if user:
                equal(os.stat("/proc/%d" % pids[-1]).st_uid, 65534, "its user")
                row = place.row(pids[-1])
                equal(row["container"], os.readlink("/proc/%d/ns/mnt" % machine.keeper.pid),
                      "its namespace, seen from outside")
                equal(row["live_bytes"] > 0.8 * report["total"]["live_bytes"], True, "live, seen from outside")
    finally:
        stopped = machine.run(script, "stop")
    equal((stopped.returncode, stopped.stderr), (0, b""), "code and stderr of stop")
    check(pids[0] != pids[1], "one process for both:", pids)
    equal([machine.row(pid)["state"] for pid in pids], ["exited"] * 2, "states at the end")


tap.main([(name, placed(test, "/var/tmp")) for name, test in [
    ("a service of Python's multiprocessing in a container, seen from outside", multiprocessing_service),
    ("1 MiB of /dev/shm, and every allocation", little_room),
    ("what daemons do to themselves loses nothing, or is said", daemons),
    ("redis by an init script: start, restart, stop", by_init_script),
]])
