# SPDX-License-Identifier: BSD-2-Clause
"""Tags in programs and places that are hard on them: the program goes on as without them, and what is not kept is said.
"""
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import built, check, equal, pick, private_dir, run, succeed

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-hostile-")
os.chmod(SCRATCH.name, 0o755)
ROOM = "the ledger has no room for more"
# After seccomp the map of objects cannot grow. Once in a hundred times the heap lies so that the objects made from then
# on reach into another unit of 4 MiB.
NO_MAP = r"(allium: \d+ objects are charged to no tag: there was no memory to follow them\n)?"


def program(name, compiler="gcc"):
    out = os.path.join(SCRATCH.name, name + "-" + compiler)
    if not os.path.exists(out):
        succeed([
            compiler, "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-include", "allium/malloc_hooks.h",
            os.path.join(HERE, name + ".c"), "-o", out, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY), "-lpthread"
        ])
    return out


def read(ledgers, pid):
    """-> (rows by function, what stands on stderr)"""
    done = succeed([built("ALLIUM"), "tags", str(pid), "--json", "--top", "0"],
                   env=dict(os.environ, ALLIUM_DIR=ledgers))
    sums = {}
    for row in json.loads(done.stdout)["rows"]:
        have = sums.get(row["function"], (0, 0, 0, 0))
        sums[row["function"]] = tuple(
            map(sum, zip(have, (row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"]))))
    return sums, done.stderr.decode()


def start(ledgers, *words, prefix=(), **more):
    """Runs a case to its end; -> (pid, its output)"""
    p = subprocess.Popen([*prefix, program("hostile"), *words], env=dict(os.environ, ALLIUM_DIR=ledgers),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    try:
        out, err = p.communicate(timeout=tap.TIMEOUT)
    except subprocess.TimeoutExpired:
        p.kill()
        raise tap.Failed("%s hangs" % (words,))
    equal((p.returncode, err), (0, b""), "%s: code and stderr" % (words,))
    return p.pid, out


def usual():
    """What the plain case leaves."""
    with private_dir() as ledgers:
        pid, _ = start(ledgers, "plain")
        return read(ledgers, pid)[0]


def survives(*words, rows=True, said=r"", root=False):
    """The case ends well; its accounts, and of what is freed nothing lives."""
    def test():
        if root and os.geteuid():
            raise tap.Skipped("needs root")
        with private_dir() as ledgers:
            pid, _ = start(ledgers, *words)
            if not rows:
                return
            have, text = read(ledgers, pid)
            check("small" in have, "no accounts:", have)
            equal(
                {
                    f: row
                    for f, row in have.items()
                    if row[2:] != (0, 0) and f in ("small", "again", "late", "late_text")
                },
                {},
                "what lives",
            )
            check(re.fullmatch(said, text), words, "->", text)
    return test


def corrupted():
    with private_dir() as ledgers:
        pid, _ = start(ledgers, "corrupted")
        rows, said = read(ledgers, pid)
        equal(rows.get("corrupted", (0,))[0], 1 + 27, "a sound tag among the bad, and the malloc()s between them")
        check(re.match(r"allium: 8 tags were left out", said) and re.search(r"1 tag .*version", said), said)


def vfork_children():
    for _ in range(pick(2, 20)):
        with private_dir() as ledgers:
            pid, out = start(ledgers, "vfork thread")
            rows, said = read(ledgers, pid)
            equal((rows["small"][0], rows["small"][2], said), (int(out), 0, ""), "objects made and live")


def forks_in_handlers():
    with private_dir() as ledgers:
        pid, out = start(ledgers, "fork in handlers", str(pick(300_000, 5_000_000)))
        rows, said = read(ledgers, pid)
        check(not said, said)
        own = rows["forking_handlers"]
        equal(own[2:], (int(out), 3 * int(out)), "the parent's account")
        children = {int(name.split("-")[0]) for name in os.listdir(ledgers)} - {pid}
        check(len(children) >= 20, "few children:", len(children))
        for child in sorted(children)[:20]:
            have, _ = read(ledgers, child)
            equal(have["fork_in_handler"], (1, 9, 1, 9), "a child's")


def take_away(comm):
    """Removes what programs of that name have left where ledgers lie without a folder of their own. -> how many
    ledgers.
    """
    taken = 0
    for path in glob.glob("/dev/shm/allium-%d/*.tags" % os.geteuid()):
        with contextlib.suppress(FileNotFoundError):  # others tidy up, too
            with open(path, "rb") as file:
                if b"\0%s\0" % comm.encode() not in b"\0" + file.read(4096):
                    continue
            for name in path, path[:-len("tags")] + "control":
                os.unlink(name)
            taken += 1
    return taken


def folders():
    """Where the folder is none of the user's the accounts lie in /dev/shm, and the program does not notice."""
    own = os.path.join(SCRATCH.name, "own-%d" % os.getpid())  # tells its ledgers from those of others
    shutil.copy(program("hostile"), own)
    try:
        in_no_folder(own)
    finally:
        left = take_away(os.path.basename(own))
    check(left >= 8 * 3, "ledgers in /dev/shm:", left)


def in_no_folder(own):
    link, file = os.path.join(SCRATCH.name, "link"), os.path.join(SCRATCH.name, "file")
    os.symlink("/dev/shm", link)
    open(file, "w").close()
    for folder in "/nonexistent/below", "/proc/self", "/proc", link, file, "/dev/null", "x" * 5000, "relative":
        for case in "plain", "fork", "clone":
            done = run([own, case], env=dict(os.environ, ALLIUM_DIR=folder, XDG_RUNTIME_DIR=folder))
            equal((done.returncode, done.stdout, done.stderr), (0, b"", b""), "%s in %s" % (case, folder[:20]))


def in_namespace(script):
    """A shell with mounts of its own, which may fail for want of rights."""
    if os.geteuid() or run(["unshare", "-m", "true"]).returncode:
        raise tap.Skipped("needs root")
    return succeed(["unshare", "-m", "sh", "-ec", script])


def full_tmpfs():
    """Memory for the ledger runs out, at its start or later: what has no account is counted."""
    for kib in 4, 64, 300, 1024, 4096:
        with private_dir() as ledgers:
            done = in_namespace(
                "mount -t tmpfs -o size=%dk,mode=700 tmpfs %s; export ALLIUM_DIR=%s; %s 20000 2 account >/dev/null & wait $!; "
                "%s tags $! --json --top 0 2>&1 || true; %s plain; %s fork" %
                (kib, ledgers, ledgers, program("many"), built("ALLIUM"), program("hostile"), program("hostile")))
            text = done.stdout.decode()
            if "rows" not in text:
                check("accounts" in text, kib, "KiB:", text)  # there was none
                continue
            rows = json.loads(text[text.index("{"):text.rindex("}") + 1])["rows"]
            left = re.search(r"([\d,]+) tags? w\w+ left out", text)
            equal(
                len(rows) + (int(left.group(1).replace(",", "")) if left else 0), 20000,
                "%d KiB: kept and left out" % kib)
            equal({(row["allocations"], row["allocated_bytes"] - 2 * int(row["place"].split(":")[1]))
                   for row in rows}, {(2, -2)}, "accounts")


def strict_overcommit():
    """vm.overcommit_memory 2: reserved address space would count. What the library reads is another file here."""
    two = os.path.join(SCRATCH.name, "two")
    with open(two, "w") as file:
        file.write("2\n")
    with private_dir() as ledgers:
        done = in_namespace(
            "mount --bind %s /proc/sys/vm/overcommit_memory; export ALLIUM_DIR=%s; %s plain & wait $!; %s tags $! 2>&1"
            % (two, ledgers, program("hostile"), built("ALLIUM")))
        check(b"there was no memory to follow them" in done.stdout, done.stdout)


def more_than_fit():
    for tags in 40_000, 200_000:
        with private_dir() as ledgers:
            p = subprocess.Popen([program("many"), str(tags), "3", "account"], env=dict(os.environ, ALLIUM_DIR=ledgers),
                                 stdout=subprocess.DEVNULL)
            equal(p.wait(tap.TIMEOUT), 0, "its code")
            done = succeed([built("ALLIUM"), "tags", str(p.pid), "--json", "--top", "0"],
                           env=dict(os.environ, ALLIUM_DIR=ledgers))
            rows, said = json.loads(done.stdout)["rows"], done.stderr.decode()
            left = re.search(r"([\d,]+) tags? w\w+ left out", said)
            left = int(left.group(1).replace(",", "")) if left else 0
            equal(len(rows) + left, tags, "kept and left out")
            check((left > 0) == (tags > 100_000), "left out:", left)
            equal({(row["allocations"], row["allocated_bytes"] - 3 * int(row["place"].split(":")[1]))
                   for row in rows}, {(3, -3)}, "accounts")


def killed_and_read_while_it_grows():
    """Each reading is whole: no record that makes no sense, and numbers that only grow."""
    shots = random.Random(1)
    for _ in range(pick(6, 100)):
        with private_dir() as ledgers:
            p = subprocess.Popen([program("many"), "60000", "4", "account"], env=dict(os.environ, ALLIUM_DIR=ledgers),
                                 stdout=subprocess.DEVNULL)
            try:
                before, readings, end = {}, 0, time.monotonic() + shots.random() * 0.3
                while time.monotonic() < end or not readings:
                    done = run([built("ALLIUM"), "tags", str(p.pid), "--json", "--top", "0"],
                               env=dict(os.environ, ALLIUM_DIR=ledgers))
                    if not before and done.stderr:
                        check(b"has no accounts" in done.stderr or done.stderr == b"allium: no tag was used yet\n",
                              done.stderr)
                        continue
                    equal((done.returncode, done.stderr), (0, b""), "code, and what is said")
                    rows = {row["place"]: row["allocations"] for row in json.loads(done.stdout)["rows"]}
                    equal({place: (n, rows.get(place, 0))
                           for place, n in before.items() if rows.get(place, 0) < n}, {}, "what fell")
                    before, readings = rows, readings + 1
            finally:
                p.kill()
                p.wait()
            done = run([built("ALLIUM"), "tags", str(p.pid), "--json", "--top", "0"],
                       env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal((done.returncode, done.stderr), (0, b""), "after its end")


tap.main([
    ("a plain program", survives("plain")),
    ("in strict seccomp", survives("strict seccomp", said=NO_MAP)),
    ("under a filter that kills", survives("filter", said=NO_MAP)),
    ("under a filter that came by number", survives("filter", "1", said=NO_MAP)),
    ("a program that closes every descriptor", survives("close")),
    ("a program in another root, and its child", survives("chroot", root=True)),
    ("a program that becomes somebody else, and its child", survives("drop", root=True)),
    ("address space of 500 MB", survives("as", "500000000")),
    ("address space of 20 MB", survives("as", "20000000")),
    ("files of no bytes", survives("fsize", "0")),
    ("files of 100 kB", survives("fsize", "100000")),
    ("no descriptors", survives("nofile", "0")),
    ("children by the bare system call", survives("clone")),
    ("a vfork child that allocates", survives("vfork")),
    ("vfork children that come to tags before their threads", vfork_children),
    ("stacks of 16 KiB", survives("small stacks")),
    ("thousands of threads at once", survives("threads", str(pick(2000, 10000)))),
    ("descriptors that are corrupted", corrupted),
    ("handlers that jump out of what they interrupt", survives("jumping", rows=False)),
    ("handlers that fork", forks_in_handlers),
    ("folders that are none", folders),
    ("a full tmpfs", full_tmpfs),
    ("strict overcommit", strict_overcommit),
    ("more tags than the ledger holds", more_than_fit),
    ("killed, and read while it grows", killed_and_read_while_it_grows),
])
