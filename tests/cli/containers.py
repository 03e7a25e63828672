# SPDX-License-Identifier: BSD-2-Clause
"""Processes in other namespaces and roots: found, named and asked from here, whatever they put in our way."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import tap
from container import AGENT, Container, first_process, kill, namespaces, ready
from workdir import Place, program
from tap import built, check, equal

HELD_BYTES, HELD_OBJECTS = 1_000_000, 100  # by holder


def report(place, pid, *words):
    return json.loads(place.allium("report", str(pid), "--json", *words).out)


def rows(place, **env):
    return json.loads(place.allium("ps", "--json", env=env).out)["rows"]


def prune(place):
    """Of what is not in this place nothing is seen: pruning that is not ours to do."""
    script = """
        mount --bind "$XDG_RUNTIME_DIR" /mnt && mount -t tmpfs none /dev/shm && mount -t tmpfs none /run || exit 90
        XDG_RUNTIME_DIR=/mnt exec "$0" ps --prune
    """
    tap.succeed([*tap.unshare(), "sh", "-c", script, built("ALLIUM")], env=place.env)


def names(report_):
    return {row["name"] for row in report_["rows"]}


def seen(place):
    """holder in a container: listed, read, kept and set from outside, exactly; and gone without a trace."""
    container = Container(place)
    container.put(program("holder"))
    process = container.start("./holder", period=1)
    ready(process)
    pid = first_process(process, "holder")
    row = place.row(pid)
    equal((row["program"], row["state"], row["lost"], row["note"]), ("holder", "running", 0, None),
          "what ps says of it")
    equal(row["container_pid"], 1, "its pid in the container")
    equal(row["container"], os.readlink("/proc/%d/ns/mnt" % pid), "its container")
    check(HELD_BYTES <= row["live_bytes"] <= HELD_BYTES + 100_000, "live by ps:", row["live_bytes"])
    printed = place.allium("ps", env={"LC_ALL": "C"}).out
    check("CONTAINER PID" in printed.splitlines()[0] and row["container"] in place.line(pid), printed)
    held = [row for row in report(place, pid, "--by", "function")["rows"] if row["name"] == "hold"]
    equal([(row["self"]["live_bytes"], row["self"]["live_objects"]) for row in held], [(HELD_BYTES, HELD_OBJECTS)],
          "held by hold()")
    shown = report(place, pid)
    equal((shown["processes"][0]["pid"], shown["processes"][0]["state"]), (pid, "running"), "process in the report")
    place.allium("snapshot", str(pid), "-o", "s.allium")
    equal(recording_reader.rows(place.path("s.allium"), "SELECT pid FROM image"), [(pid,)], "pid in the snapshot")
    changed = place.allium("set", str(pid), "period=64K", "off").out
    equal(changed, "%d (holder): off, period 64 KiB, stacks of some sampled frees\n" % pid, "what set says")
    before = sorted(os.listdir("/proc/%d/root/dev/shm" % pid))
    prune(place)
    equal(sorted(os.listdir("/proc/%d/root/dev/shm" % pid)), before, "files in the container after --prune")
    equal(place.row(pid)["state"], "running", "state after --prune")
    kill(process)
    tap.wait_until(lambda: not os.path.exists("/proc/%d" % pid), 20, "process 1 is gone")
    equal(place.row(pid), None, "what ps lists of a container that is gone")
    done = place.allium("report", str(pid), code=1)
    check("no process %d" % pid in done.err, done.err)


def no_columns(place):
    """Where there are no containers the screen has no columns for them; JSON does."""
    holder = place.start_holder()
    check("CONTAINER" not in place.allium("ps").out or any(row["container"] for row in rows(place)),
          "columns for containers, and none is in one")
    row = place.row(holder.pid)
    equal((row["program"], row["container"]), ("holder", None), "its row")
    equal((row["container_pid"], row["note"]), (None, None), "what is null")


def shared_directory(place):
    """Another PID namespace, the same directory: the name has another number. It is listed by ours, and is no leftover.
    """
    env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    process = place.start(*tap.unshare(), "--pid", "--fork", "--kill-child", "env", "-u", "X", program("holder"),
                          env=env)
    ready(process)
    pid = first_process(process, "holder")
    row = place.row(pid)
    equal((row["state"], row["container_pid"]), ("running", 1), "state and inner pid")
    check(row["container"].startswith("mnt:"), row)
    prune(place)
    equal([os.path.basename(name).split("-")[0] for name in place.ledgers() if "/1-" in name], ["1"],
          "its ledger after --prune")
    equal(report(place, pid)["total"]["live_objects"] >= HELD_OBJECTS, True, "objects")
    process.stdin.close()
    process.wait(20)
    equal([row["state"] for row in rows(place) if row["pid"] == 1 and row["program"] == "holder"], ["exited"],
          "state at its end")
    prune(place)
    equal(place.ledgers(), [], "ledgers after --prune")


KEEPER = """
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[100];
__attribute__((noinline)) static void NAME(void) { for (int i = 0; i < 100; i++) kept[i] = malloc(10000); }
int main(void) { char c; NAME(); if (write(1, "ready\\n", 6) != 6) return 1; while (read(0, &c, 1) > 0) {} return 0; }
"""


def compile_keeper(where, name, *options):
    with open(where + "/keeper.c", "w") as file:
        file.write(KEEPER)
    tap.succeed(["gcc", "-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-DNAME=" + name, *options,
                 "-o", where + "/keeper", where + "/keeper.c"])
    os.unlink(where + "/keeper.c")


def names_of_its_own(place):
    """A program of the same path is here too, and is another one: its names are nobody's."""
    for options in ((), ("-Wl,--build-id=none",)):
        compile_keeper(place.folder, "outside", *options)
        container = Container(place)
        compile_keeper(container.inside, "inside", *options)
        process = container.start(place.path("keeper"), period=1)
        ready(process)
        pid = first_process(process, "keeper")
        for _ in range(2):  # a cache must not remember it either
            found = names(report(place, pid, "--by", "function"))
            check("inside" in found and "outside" not in found, "names, built with %s:" % (options,), found)
        kill(process)
        here = place.start(
            place.path("keeper"), env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
        )
        ready(here)
        check("outside" in names(report(place, here.pid, "--by", "function")), "names of the one here")
        kill(here)
        prune(place)
        for path in (container.root, container.inside):
            shutil.rmtree(path)


LIAR = r"""
import mmap, os, struct, sys
real = bytearray(open("real", "rb").read(4096))
REGIONS, REGION = 192, 40  # offsetof(struct ledger_header, regions)
def header(change):
    h = bytearray(real)
    change(h)
    return bytes(h)
def all_ready(h):
    for t in range(10):
        offset, limit, ready, used = struct.unpack_from("<4Q", h, REGIONS + REGION * t)
        struct.pack_into("<4Q", h, REGIONS + REGION * t, 4096, 1 << 33, 1 << 33, 1 << 40)
def other_version(h):
    struct.pack_into("<I", h, 8, 77)
def nonsense(h):
    h[100:] = os.urandom(len(h) - 100)
folder = "/dev/shm/allium-0"
os.mkdir(folder, 0o700)
maps = []
def lie(number, data, size, where=folder):
    name = "%s/%d-%016x.ledger" % (where, number, number)
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, size)
    os.pwrite(fd, data, 0)
    maps.append(mmap.mmap(fd, 4096))
    os.close(fd)
how = sys.argv[1]
if how == "sparse":
    lie(1, header(all_ready), 1 << 40)
elif how == "version":
    lie(1, header(other_version), 1 << 20)
elif how == "nonsense":
    lie(1, header(nonsense), 1 << 20)
elif how == "empty":
    lie(1, b"", 4096)
elif how == "disk":
    lie(1, bytes(real), 1 << 20, os.getcwd())
elif how == "names":
    for name in ("x\n1-0000000000000001.ledger", "1-0000000000000001.ledger (deleted)", "9" * 200 + "-1.ledger", "-1-1.ledger", "1-z.ledger",
                 "%s%n-1.ledger", "99999999999-1.ledger", "1-11111111111111111111.ledger", ".ledger", "\x1b]0;x\x07 2-0000000000000002.ledger"):
        fd = os.open(folder + "/" + name, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(fd, 4096)
        maps.append(mmap.mmap(fd, 4096))
elif how == "device":
    os.mknod(folder + "/1-0000000000000001.ledger", 0o600 | 0o020000, os.makedev(1, 5))
    maps.append(mmap.mmap(os.open(folder + "/1-0000000000000001.ledger", os.O_RDWR), 4096, mmap.MAP_PRIVATE))
elif how == "exchanged":
    lie(1, bytes(real), 1 << 20)
    os.unlink(folder + "/1-0000000000000001.ledger")
    os.mkfifo(folder + "/1-0000000000000001.ledger")
elif how == "linked":
    lie(1, bytes(real), 1 << 20)
    open(folder + "/1-0000000000000001.control", "w").close()
    os.unlink(folder + "/1-0000000000000001.control")
    os.symlink(os.getcwd() + "/precious", folder + "/1-0000000000000001.control")
for n in range(999000002, 999000009):
    os.mkfifo("%s/%d-%016x.ledger" % (folder, n, n)) if n % 2 else os.symlink("/etc/passwd", "%s/%d-%016x.ledger" % (folder, n, n))
print("ready", flush=True)
sys.stdin.read()
"""


def lies(place):
    """A container's owner plants what he likes: nothing hangs, follows a link, or takes memory; and the rest is listed.
    """
    holder = place.start_holder()
    with open(place.ledgers()[0], "rb") as file:
        real = file.read(4096)
    precious = place.path("precious")
    with open(precious, "wb") as file:
        file.write(b"precious" * 100)
    container = Container(place)
    container.write("liar.py", LIAR)
    with open(container.inside + "/real", "wb") as file:
        file.write(real)
    for how in ("sparse", "version", "nonsense", "empty", "disk", "exchanged", "linked", "names") + (
        ("device",) if os.geteuid() == 0 else ()):
        process = container.start("/usr/bin/python3", "liar.py", how)
        ready(process)
        pid = first_process(process)
        limit = ["sh", "-c", 'ulimit -v 3000000; exec "$@"', "sh", built("ALLIUM")]
        done = tap.run([*limit, "ps", "--json"], env=place.env)
        equal((done.returncode, b"rror" in done.stderr), (0, False),
              "code and words of ps: %s, %s" % (how, done.stderr))
        listed = {row["pid"]: row for row in json.loads(done.stdout)["rows"]}
        equal(listed[holder.pid]["program"], "holder", "what else there is: " + how)
        check(pid in listed or how == "names", "no row for the liar:", how, listed)
        if how not in ("linked", "exchanged", "nonsense", "names"):
            equal(listed[pid]["live_bytes"], None, "what is estimated from nothing: " + how)
            done = tap.run([*limit, "report", str(pid)], env=place.env)
            equal((done.returncode, done.stdout), (1, b""), "report: " + how)
            check(done.stderr.startswith(b"allium: ") and done.stderr.count(b"\n") == 1, how, done.stderr)
        place.allium("set", str(pid), "off", code=1)
        with open(precious, "rb") as file:
            equal(file.read(), b"precious" * 100, "a file of ours, after " + how)
        equal(set(listed) & set(range(999000002, 999000009)), set(), "pipes and links that were taken for ledgers")
        prune(place)
        left = os.listdir("/proc/%d/root/dev/shm/allium-0" % pid)
        check(len(left) >= 7, "files that --prune left in the container:", left)
        kill(process)


def foreign_page(place):
    """What is called like a control page and is none stays as it is."""
    holder = place.start_holder()
    path = place.ledgers()[0].replace(".ledger", ".control")
    empty = bytes(4096)
    for text, mode in (
        (b"precious" * 512, 0o600),
        (bytes(8) + b"x" * 4088, 0o600),
        (empty + b"x", 0o600),
        (empty, 0o644),
    ):
        with open(path, "r+b") as file:
            file.truncate(len(text))
            file.write(text)
        os.chmod(path, mode)
        done = place.allium("set", str(holder.pid), "off", code=1)
        check("is not the control page of an agent" in done.err and done.err.count("\n") == 1, done.err)
        with open(path, "rb") as file:
            equal(file.read(), text, "the file after set")
    os.chmod(path, 0o600)
    for _ in range(2):
        place.allium("set", str(holder.pid), "off")


MUTE = """
import ctypes, os, subprocess, sys
keeper = subprocess.Popen(["./keeper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
keeper.stdout.readline()
fuse = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse
assert not ctypes.CDLL(None).mount(b"mute", os.getcwd().encode(), b"fuse", 0, options), "mount"
print("ready", flush=True)
sys.stdin.read()
"""


def mute(place):
    """Over the directory of its program lies a file system that never answers: there are figures, and no names of that
    file.
    """
    if os.geteuid() or not os.path.exists("/dev/fuse"):
        return
    container = Container(place, shm="16m")  # the ledgers of python and of keeper
    compile_keeper(container.inside, "inside")
    container.write("mute.py", MUTE)
    process = container.start("/usr/bin/python3", "mute.py", period=1)
    ready(process)
    namespace = os.readlink("/proc/%d/ns/mnt" % first_process(process))
    (row,) = [row for row in rows(place) if row["container"] == namespace and row["program"] == "keeper"]
    shown = report(place, row["pid"], "--by", "function", "--top", "0")
    check(shown["total"]["live_bytes"] >= HELD_BYTES, "live:", shown["total"])
    found = names(shown)
    check("inside" not in found and any(name.startswith("keeper+0x") for name in found), "names:", found)
    kill(process)


def images(place, name="r.allium"):
    """{comm: [(pid, state, bytes held by hold())]} of a recording."""
    found = {}
    report_ = json.loads(place.allium("report", name, "--json").out)
    for process in report_["processes"]:
        held = json.loads(
            place.allium("report", name, "--json", "--by", "function", "--where",
                         "func:hold pid:%d" % process["pid"]).out)
        found.setdefault(process["program"], []).append((process["pid"], process["state"], held["total"]["live_bytes"]))
    return found


FOLLOWED = """
    SELECT max(time_ns) - min(time_ns) FROM point JOIN image ON image.id = image JOIN string s ON s.id = comm WHERE s.text = 'holder'"""


def followed_ns(place):
    """For how long the recording that is being made has followed holder; None: it has not."""
    with contextlib.suppress(sqlite3.Error):  # there is none yet, or one without tables
        return recording_reader.rows(place.path("r.allium"), FOLLOWED)[0][0]
    return None


def record(place, *words, ns=0, **env):
    """allium run of a holder that ends when the recording has followed it for so long, and no sooner, however loaded
    the machine is.
    """
    process = place.start(built("ALLIUM"), "run", "--quiet", "--force", "--period", "1", "-o", "r.allium", "--", *words,
                          env=dict(place.env, **env))
    ready(process)
    tap.wait_until(lambda: (followed_ns(place) or -1) >= ns, 60, "holder is in the recording for %d ns" % ns)
    process.stdin.close()
    equal((process.wait(60), process.stderr.read()), (0, b""), "code of allium run, and what it said")


def recorded(place):
    """allium run of a whole container: what runs in it is in the recording, with our pids and its names."""
    container = Container(place, agent=built("ALLIUM_AGENT"))
    container.put(program("holder"))
    record(place, *container.words("./holder"), XDG_RUNTIME_DIR="")
    found = images(place)
    ((pid, state, held),) = found["holder"]
    equal((state, held), ("exited", HELD_BYTES), "state of holder, bytes held by hold()")
    check(pid > 1 and [row[0] for row in found["unshare"]] != [pid], "pids:", found)


def comings_and_goings(place):
    """In a mount namespace that has our directory of ledgers: what begins while processes are looked at is recorded
    once, not twice.
    """
    script = "i=0; while [ $i -lt 300 ]; do ./holder 1; i=$((i + 1)); done >told"
    shutil.copy(program("holder"), place.folder)
    done = place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", *tap.unshare(), "sh", "-c", script)
    equal(done.err, "", "what allium run said")
    found = recording_reader.rows(place.path("r.allium"),
                                  "SELECT count(*) FROM image JOIN string s ON s.id = comm WHERE s.text = 'holder'")
    equal(found, [(300,)], "how many were recorded")


def other_pids(place):
    """In another PID namespace, with the recorder's own directory: it runs until it has ended."""
    record(place, *tap.unshare(), "--pid", "--fork", program("holder"), ns=10 ** 9)
    ((pid, state, held),) = images(place)["holder"]
    check(pid > 1, "its pid:", pid)
    equal((state, held), ("exited", HELD_BYTES), "state of holder, bytes held by hold()")
    equal(place.ledgers(), [], "ledgers that are left")


def small_root(place, name):
    """A directory with holder, the agent where it is here, and their libraries; no /dev/shm, no /proc."""
    root = place.path(name)
    for path in (built("ALLIUM_AGENT"), "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(path), root + path)
    shutil.copy(program("holder"), root + "/holder")
    return root


def without_tmpfs(place):
    """In a root without a tmpfs the ledger has no name: it is recorded while its process lives, and counted in any
    case.
    """
    small_root(place, "root")
    words = [
        *CHROOT, "/usr/bin/python3", "-c",
        "import os, sys; os.chroot('root'); os.chdir('/'); os.execv('/holder', ['holder', *sys.argv[1:]])"
    ]
    for waits in (True, False):
        if waits:
            record(place, *words)
            equal([row[1:] for row in images(place)["holder"]], [("exited", HELD_BYTES)],
                  "state of holder, bytes held by hold()")
        else:
            place.allium("run", "--quiet", "--force", "--period", "1", "-o", "r.allium", "--", *words, "1")
        equal(recording_reader.rows(place.path("r.allium"), "SELECT sum(lost_children) FROM image"), [(1,)],
              "programs that might be lost")
        said = place.allium("report", "r.allium").out
        check("have no place for a ledger" in " ".join(said.split()), said)
    # By ps, report and set.
    process = place.start(*words, env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1"))
    ready(process)
    pid = process.pid
    (row,) = [row for row in rows(place) if row["pid"] == pid and row["state"] == "running"]
    equal((row["program"], row["container"]), ("holder", place.path("root")), "its row")
    if os.geteuid():  # the kernel lets only the privileged open what has no name
        return
    check("no file name" in row["note"], row)
    held = [row for row in report(place, pid, "--by", "function")["rows"] if row["name"] == "hold"]
    equal([row["self"]["live_bytes"] for row in held], [HELD_BYTES], "held by hold()")
    place.allium("set", str(pid), "period=1M")


CHROOT = [] if os.geteuid() == 0 else ["unshare", "-r"]


def not_ours(place):
    """Who may not look at others is told how many there are."""
    process = place.start_holder()
    if os.geteuid():
        return
    done = tap.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", built("ALLIUM"), "ps"])
    said = re.findall(r"^allium: (\d+) process(?:es)? of other users could not be read: this requires root",
                      done.stderr.decode(), re.M)
    equal((done.returncode, len(said)), (0, 1), "code and lines: %s" % done.stderr)
    users = [name for name in os.listdir("/proc") if name.isdigit() and os.path.exists("/proc/%s/exe" % name)]
    check(1 <= int(said[0]) <= len(users) + 50, "how many:", said, "of", len(users))
    equal(place.row(process.pid)["state"], "running", "for root")


def few_capabilities(place):
    """The root of a container may not ask for leases nor look at other users' processes: it still knows what runs."""
    if os.geteuid():
        return
    script = """
        mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs -o mode=755 none /run && mkdir /run/bin || exit 90
        cp "$ALLIUM" "$AGENT" "$HOLDER" /run/bin && mkfifo /run/told && cd /run || exit 91
        unset XDG_RUNTIME_DIR
        holder="setpriv --reuid 65534 --regid 65534 --clear-groups /run/bin/holder"
        mine() { setpriv --inh-caps -all --bounding-set -all,+dac_override,+fowner,+setgid,$1 bin/allium $2 $3; }
        LD_PRELOAD=/run/bin/liballium-agent.so ALLIUM_PERIOD=1 $holder 60000 >told &
        read ready <told
        ls /dev/shm/allium-65534/*.ledger
        mine +setuid ps
        mine +setuid ps --prune
        mine +chown ps --prune
        unshare --pid --fork --mount-proc setpriv --inh-caps -all --bounding-set -all,+dac_override,+fowner bin/allium ps --prune
        ls /dev/shm/allium-65534/*.ledger
        kill $(ls /dev/shm/allium-65534 | sed -n 's/-.*ledger//p'); wait
        while mine +setuid ps --prune 2>said; grep -q "removed 0" said; do sleep 0.05; done # who reads its /proc holds it a little longer
        cat said >&2
        ls /dev/shm/allium-65534
        setpriv --inh-caps -all --bounding-set -all,+dac_override,+fowner,+setgid,+setuid bin/allium run --quiet --period 1 -o r.allium -- $holder 1500
        bin/allium report r.allium --json >"$OUT"
    """
    env = dict(place.env, OUT=place.path("report"), ALLIUM=built("ALLIUM"), AGENT=built("ALLIUM_AGENT"),
               HOLDER=program("holder"))
    done = tap.succeed([*tap.unshare(), "sh", "-c", script], env=env)
    lines = done.stdout.decode().splitlines()
    said = [line for line in done.stderr.decode().splitlines() if re.match("allium: (removed|kept)", line)]
    equal(len(set(line for line in lines if line.startswith("/dev/shm/allium-65534/"))), 1,
          "the ledger before and after: %s" % lines)
    equal([line.split()[1:3] for line in lines if re.match(r" *\d+ +holder", line)], [["holder", "running"]],
          "what ps lists: %s" % lines)
    equal([" ".join(line.split()[1:3]) for line in said],
          ["removed 1", "removed 0", "removed 0", "kept 1", "removed 1"], "what ps --prune says")
    (lived,) = [
        row["taken_ns"] - row["began_ns"] for row in json.load(open(place.path("report")))["processes"]
        if row["program"] == "holder"
    ]
    check(lived >= 1_400_000_000, "how long the holder was followed:", lived)


def housed(function):
    """Programs are copied to where they can be executed; ledgers lie on a tmpfs."""
    def test():
        with tap.private_dir("/var/tmp") as folder, tap.private_dir("/dev/shm") as runtime:
            place = Place(folder)
            place.runtime = place.env["XDG_RUNTIME_DIR"] = runtime
            try:
                function(place)
            finally:
                place.release()
    return test


tap.main([(name, housed(test)) for name, test in [
    ("a process in a container is listed, read, kept and set from outside", seen),
    ("without containers there are no columns for them", no_columns),
    ("a process in another PID namespace whose ledger lies among ours", shared_directory),
    ("names come from the container's files", names_of_its_own),
    ("what a container's owner plants does no harm", lies),
    ("a file that is no control page is not written", foreign_page),
    ("a file system that never answers keeps nobody", mute),
    ("allium run records what runs in a container", recorded),
    ("allium run records once what comes and goes in another mount namespace", comings_and_goings),
    ("allium run records what runs in another PID namespace", other_pids),
    ("a ledger without a name in a root without a tmpfs", without_tmpfs),
    ("who may not look at others is told so", not_ours),
    ("the root of a container knows what runs", few_capabilities),
]])
