# SPDX-License-Identifier: BSD-2-Clause
"""What is not there, not ours, full or taken: one line that says what to do, the right code, and nothing lost."""
import json
import os
import re
import shutil
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal, wait_until

HELD, NOBODY = 100 * 10000, 65534
PYTHON = "/usr/bin/python3"


def one_line(err, *words):
    check(err.startswith("allium: ") and err.count("\n") == 1, "said", repr(err))
    for word in words:
        check(re.search(word, err), "no", word, "in", repr(err))


def apart(place, script, *words, **env):
    """Runs a script in a mount namespace with an empty /dev/shm, where everybody can run what was built."""
    before = "mount -t tmpfs -o mode=1777 none /dev/shm && mkdir /dev/shm/bin && cp $BUILT /dev/shm/bin || exit 90\n" \
             "PATH=/dev/shm/bin:$PATH; unset XDG_RUNTIME_DIR XDG_CACHE_HOME\n"
    files = (built("ALLIUM"), built("ALLIUM_AGENT"), program("holder"))
    done = tap.run([*tap.unshare(), "sh", "-c", before + script, "sh", *words], cwd=place.folder,
                   env=dict(place.env, BUILT=" ".join(files), **env))
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    check(done.returncode != 90, "no mount namespace:", done.err)
    return done


def process_without_ledger(place):
    process = place.start("sleep", "60")
    for words in (
        ("snapshot", str(process.pid)),
        ("report", str(process.pid)),
        ("export", str(process.pid), "--folded", "live"),
    ):
        one_line(place.allium(*words, code=1).err, "is not observed", "allium run")
    equal(os.listdir(place.folder), [], "files that were made")


def process_of_another(place):
    """Another user's, with a ledger and without one."""
    if os.geteuid():
        return
    script = """
        sleep 60 & bare=$!
        mkfifo in; exec 9<>in; LD_PRELOAD=/dev/shm/bin/liballium-agent.so ALLIUM_PERIOD=1 holder <in >out & seen=$!
        while ! grep -qs ready out; do sleep 0.05; done
        cd /; for pid in $bare $seen; do for what in snapshot report; do
            setpriv --reuid 65534 --regid 65534 --clear-groups allium $what $pid; echo $?
        done; done; kill $bare $seen
    """
    done = apart(place, script)
    equal(done.out, "1\n" * 4, "codes")
    for line in done.err.splitlines(True):
        one_line(line, "belongs to another user", "root")
    equal(done.err.count("\n"), 4, "lines")


def own_allocator(place):
    """An executable with a malloc of its own, or one under another name, runs, and what is not seen is said."""
    for name, symbol in (("own_malloc", "malloc"), ("own_je_malloc", "je_malloc")):
        done = place.allium("run", "-o", name + ".allium", "--", program(name))
        equal(done.out, "done\n", "stdout")
        check("defines %s itself" % symbol in done.err, "not said:", done.err)


def killed_recorder(place):
    """A recording whose `run` was killed does not say that its process runs now."""
    process = place.start_allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"))
    equal(process.stdout.readline(), b"ready\n", "the holder's word")
    wait_until(lambda: "live now" in place.allium("report", "r.allium", code=None).out, 10,
               "the process in the recording")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    report = place.allium("report", "r.allium").out
    check("running when last seen; the recording was cut short" in report and "live now" not in report, "report",
          report)
    equal([i["state"] for i in json.loads(place.allium("report", "r.allium", "--json").out)["processes"]],
          ["cut_short"], "JSON")


def crash(place):
    """The signal that ended the command is named; an image that exec replaced was ended by none."""
    script = "import os; os.kill(os.getpid(), %d)" % signal.SIGSEGV
    done = place.allium("run", "--period", "1", "-o", "r.allium", "--", PYTHON, "-c", script, code=128 + signal.SIGSEGV)
    for text in done.err, place.allium("report", "r.allium").out:
        check(", killed by SIGSEGV" in text, "said", text)
    place.allium("run", "--quiet", "--force", "--period", "1", "-o", "r.allium", "--", "sh", "-c", 'exec "$@"', "sh",
                 PYTHON, "-c", script, code=128 + signal.SIGSEGV)
    images = json.loads(place.allium("report", "r.allium", "--json").out)["processes"]
    equal(sorted((i["program"][:6], i["signal"]) for i in images), [("python", "SIGSEGV"), ("sh", None)], "signals")


def unfinished_ledger(place):
    """What is left of a ledger whose process was killed while making it goes with the run, or by ps --prune."""
    gone = 2 ** 22 - 1  # beyond what Linux gives out here
    name = "%d-0123456789abcdef" % gone
    make = "head -c 49152 /dev/zero >$1/%s.ledger; : >$1/%s.control" % (name, name)
    done = place.allium("run", "--quiet", "--", "sh", "-c", 'set -- $XDG_RUNTIME_DIR/allium/run-*; %s; echo $1' % make)
    check(not os.path.exists(done.out.strip()), "left:", done.out)
    beside = os.path.dirname(done.out.strip())
    tap.succeed(["sh", "-c", make, "sh", beside])
    place.allium("ps", "--prune")
    check(not os.path.exists(beside + "/" + name + ".ledger"), "not pruned")


def recording_exists(place):
    process = place.start_holder()
    wait_until(lambda: place.row(process.pid), 5, "a row in allium ps")
    with open(place.path("mine"), "w") as file:
        file.write("mine")
    one_line(place.allium("run", "-o", "mine", "--", "touch", "ran", code=125).err, "mine exists", "--force", "-o")
    one_line(place.allium("snapshot", str(process.pid), "-o", "mine", code=1).err, "mine exists", "--force", "-o")
    os.mkdir(place.path("folder"))
    one_line(place.allium("run", "-o", "folder", "--force", "--", "touch", "ran", code=125).err, "folder", "-o")
    one_line(place.allium("run", "-o", "no/such/x", "--", "touch", "ran", code=125).err, "no/such", "check its folder")
    with open(place.path("mine")) as file:
        equal(file.read(), "mine", "the file that was there")
    check(not os.path.exists(place.path("ran")), "the command ran")


def ledger_directory(place):
    """Where allium run would keep ledgers there is something else: it says what to do, and does not start the command.
    """
    script = """
        at=/dev/shm/allium-$(id -u); umask 000; mkdir -m 777 /dev/shm/else
        case $1 in other) mkdir -m 700 $at && chown 12345 $at;; group) mkdir -m 770 $at;; world) mkdir -m 777 $at;;
        mine) mkdir -m 700 /dev/shm/mine && ln -s /dev/shm/mine $at;; link) ln -s /dev/shm/else $at;; file) : >$at;; esac
        allium run -o r.allium -- touch ran; code=$?; ls -A /dev/shm/else $at; exit $code
    """
    for what, why in (("other", "belongs to another user"), ("group", "belongs to another user"),
                      ("world", "belongs to another user"), ("mine", "not a directory"), ("link", "not a directory"),
                      ("file", "not a directory")):
        if what == "other" and os.geteuid():
            continue
        done = apart(place, script, what)
        equal(done.returncode, 125, "code with " + what)
        one_line(done.err, why, "remove it")
        equal(os.listdir(place.folder), [], "files that were made, with " + what)
        check(".ledger" not in done.out and "run-" not in done.out, "made in it:", done.out)
    done = apart(place, "umount /dev/shm; mount --bind / /dev/shm || exit 90; %s run -- touch ran" % built("ALLIUM"))
    equal(done.returncode, 125, "code without a tmpfs")
    one_line(done.err, "no tmpfs", "mount one")


def runtime_on_disk(place):
    """A runtime directory on a disk is none: the recording is whole, and nothing is left on the disk."""
    with tap.private_dir("/tmp") as disk:
        if os.stat("/tmp").st_dev == os.stat("/dev/shm").st_dev:
            return
        place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"), "1",
                     env={"XDG_RUNTIME_DIR": disk})
        equal(os.listdir(disk), [], "files on the disk")
    equal([p["program"] for p in processes(place, "r.allium")], ["holder"], "processes")


def processes(place, source):
    return json.loads(place.allium("report", source, "--json", "--top", "0").out)["processes"]


def full_disk(place):
    """
    The disk gets full at various times. The command runs on, and its code is allium's; each of its processes is in the
    recording, or its ledger is still there.
    """
    script = """
        mkdir -p disk out && mount -t tmpfs -o size=$1 none disk || exit 90
        $ALLIUM run --period 1 -o disk/r.allium -- sh -c "$WORK"; code=$?
        cp -a disk/. out; exit $code
    """
    work = "for i in 1 2 3; do $HOLDER 300; %s -c 'import json'; done; $HOLDER 1; exit 7" % PYTHON
    env = dict(place.env, ALLIUM=built("ALLIUM"), HOLDER=program("holder"), WORK=work)
    failed = 0
    for size in tap.pick(("300k", "600k", "1m"),
                         ("200k", "300k", "400k", "500k", "600k", "700k", "800k", "900k", "1m", "100m")):
        done = tap.run([*tap.unshare(), "sh", "-c", script, "sh", size], cwd=place.folder, env=env)
        err = done.stderr.decode()
        equal((done.returncode, done.stdout), (7, b"ready\n" * 4), "code and stdout on %s; it said %s" % (size, err))
        if size != "100m":
            one_line(err, "disk is full", "make room", "allium ps", "allium snapshot")
            failed += 1
        recorded = {(p["image"], p["program"])
                    for p in processes(place, "out/r.allium") if p["state"] not in ("running", "cut_short")}
        kept = {(ledger["id"], ledger["comm"]) for path in {os.path.dirname(path) for path in place.ledgers()}
                for ledger in tap.totals(path)}
        print("# %s: %d processes recorded, %d ledgers kept" % (size, len(recorded), len(kept)))
        names = [comm for _, comm in recorded | kept]
        equal((names.count("holder"), names.count("python3")), (4, 3),
              "processes on %s: %s and %s" % (size, recorded, kept))
        for path in place.ledgers():
            pid = int(os.path.basename(path).split("-")[0])
            place.allium("snapshot", str(pid), "--force", "-o", "s.allium")
        for name in os.listdir(place.runtime + "/allium"):
            shutil.rmtree(os.path.join(place.runtime, "allium", name))
        shutil.rmtree(place.path("out"))
    check(failed, "the disk was never full: nothing was tried")


def other_user(place):
    """
    Programs that change their user, and then execute another, fork, or go on: what they are then may not write where
    allium's ledgers are. All of it is recorded, and nothing stays behind.
    """
    if os.geteuid():
        return
    drop = "import os; os.setgroups([]); os.setgid(%d); os.setuid(%d); " % (NOBODY, NOBODY)
    ways = {
        "exec": ([PYTHON, "-c", drop + "os.execvp('holder', ['holder', '1'])"], ["holder", "python3"]),
        "setpriv": (["setpriv", "--reuid", str(NOBODY), "--clear-groups", "holder", "1"], ["holder", "setpriv"]),
        "children": (
            [PYTHON, "-c", drop + "import subprocess as s; [s.run(['holder', '1']) for i in range(5)]"],
            ["holder"] * 5 + ["python3"],
        ),
        "fork": (
            [PYTHON, "-c", drop + "os.fork() or os._exit(len(str(list(range(100000)))) and 0); os.wait()"],
            ["python3"] * 2,
        ),
        "go on": ([PYTHON, "-c", drop + "x = [str(i) * 100 for i in range(200000)]"], ["python3"]),
    }
    for way, (command, names) in ways.items():
        done = apart(place, 'allium run --period 1 --force -o r.allium -- "$@"; code=$?; cd /dev/shm; '
                            "find allium-* -mindepth 1 >&2; ls -d allium-* >&2; exit $code", *command)
        equal(done.returncode, 0, "code of %s, which said %s" % (way, done.err))
        check("ledger" not in done.err and "run-" not in done.err, "left behind:", done.err)
        report = json.loads(place.allium("report", "r.allium", "--by", "function", "--top", "0", "--json").out)
        equal(sorted(p["program"] for p in report["processes"]), names, "processes, with " + way)
        lost = report["lost"]
        check(not lost["samples"] and not lost["inconsistent"] and not lost["ledger_full"], way, lost)
        held = sum(row["self"]["live_bytes"] for row in report["rows"] if row["name"] == "hold")
        equal(held, HELD * names.count("holder"), "bytes held, with " + way)
    # What still runs as another user at the end is said to, and keeps its ledger.
    script = """
        allium run --period 1 --quiet --force -o r.allium -- sh -c ': >said; setpriv --reuid 65534 --clear-groups holder 60000 >said &
            echo $!; while ! grep -q ready said; do sleep 0.02; done'
        allium ps --json; cd /dev/shm; ls allium-*/run-*/*.ledger >&2; kill $(sed -n 1p)
    """
    done = apart(place, script.replace("$(sed -n 1p)", "$(ls allium-65534/run-*/ | sed -n 's/-.*ledger//p')"))
    pid = int(done.out.split("\n", 1)[0])
    rows = json.loads(done.out.split("\n", 1)[1])["rows"]
    (row,) = [row for row in rows if row["container"] is None]  # others' run in the namespace outside
    equal((row["pid"], row["state"]), (pid, "running"), "allium ps")
    check(re.fullmatch(r"allium-65534/run-\w+/%d-\w+\.ledger\n" % pid, done.err), "ledgers:", done.err)
    equal([p["state"] for p in processes(place, "r.allium") if p["program"] == "holder"], ["running"],
          "its state in the recording")


def children_ignored(place):
    """Who starts us with SIGCHLD ignored gets the command's code; and the command has it as it was."""
    for ignored in (True, False):
        how = {
            "preexec_fn": lambda ignored=ignored: signal.signal(
                signal.SIGCHLD, signal.SIG_IGN if ignored else signal.SIG_DFL
            )
        }
        options = ("run", "--quiet", "--force", "-o", "r.allium", "--")
        place.allium(*options, "sh", "-c", "exit 7", code=7, **how)
        said = place.allium(*options, "grep", "SigIgn", "/proc/self/status", **how).out
        equal(int(said.split()[1], 16) >> signal.SIGCHLD - 1 & 1, ignored, "whether the command ignores SIGCHLD")


def planted_links(place):
    """A link in the place of a user's directory of ledgers, or of one in it, leads root nowhere, nor is a directory of
    another name one of ledgers: nothing is read or removed there.
    """
    if os.geteuid():
        return
    script = """
        cd /dev/shm && mkdir -m 700 victim && echo kept >victim/unobserved && exec 3>&1 >&2
        LD_PRELOAD=$PWD/bin/liballium-agent.so ALLIUM_DIR=$PWD/victim ALLIUM_PERIOD=1 holder 0
        link() { setpriv --reuid 65534 --regid 65534 --clear-groups ln -s "$@" || exit 91; }
        mkdir -m 700 allium-65534 && chown 65534:65534 allium-65534 || exit 92
        cp -a victim allium-mine # whose name is no user's
        link /dev/shm/victim allium-1
        link /dev/shm/victim allium-65534/run-abc
        ls victim | sort >before
        allium ps --json >&3
        allium ps --prune
        XDG_RUNTIME_DIR= allium run --quiet --period 1 -o r.allium -- sh -c '
            holder 0; setpriv --reuid 65534 --regid 65534 --clear-groups ln -s /dev/shm/victim allium-65534/$(ls allium-0)'
        for dir in allium-1 allium-65534/run-abc; do XDG_RUNTIME_DIR= allium set $(ls victim | sed -n 's/-.*ledger//p') off; done
        ls victim | sort | diff before - && grep -q kept victim/unobserved && ls -A allium-0 &&
            ls allium-mine | sort | diff before - && echo untouched >&3
        allium report r.allium --json >report
    """
    done = apart(place, script)
    rows, end = json.JSONDecoder().raw_decode(done.out)
    equal([row["program"] for row in rows["rows"] if row["container"] is None], [],
          "ledgers that links lead to: %s" % done.err)
    equal(done.out[end:].strip(), "untouched", "what was there: %s" % done.err)
    check("removed 0 ledgers" in done.err, done.err)


READER = """
import ctypes, fcntl, os, struct, sys
USERFAULTFD, API, REGISTER, MISSING = 323, 0xc018aa3f, 0xc020aa00, 1
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
faults = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
fcntl.ioctl(faults, API, struct.pack("<3Q", 0xaa, 0, 0))
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)  # private and anonymous: nobody will ever fill it
fcntl.ioctl(faults, REGISTER, struct.pack("<4Q", page, 4096, MISSING, 0))
fd = os.open("/proc/%s/environ" % sys.argv[1], os.O_RDONLY)
print("0", hex(fd), hex(page), flush=True)  # the call of read(2) as /proc/PID/syscall has it
libc.read(fd, ctypes.c_void_p(page), 4096)
"""


def read_meanwhile(place):
    """Somebody who reads a process's /proc holds its memory, and the ledger in it, when it has ended. It has, and is
    recorded so.
    """
    if os.geteuid():
        return
    process = place.start_allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"))
    equal(process.stdout.readline(), b"ready\n", "the holder's word")
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
        (pid,) = file.read().split()
    reader = place.start(PYTHON, "-c", READER, pid)
    call = reader.stdout.readline().decode().strip()
    wait_until(lambda: open("/proc/%d/syscall" % reader.pid).read().startswith(call + " "), 20, "the reader reads")
    process.stdin.close()
    equal(process.wait(60), 0, "code of allium run")
    equal(reader.poll(), None, "the reader's code")
    equal([p["state"] for p in processes(place, "r.allium")], ["exited"], "its state in the recording")
    equal(place.ledgers(), [], "ledgers that are left")


def ends_meanwhile(place):
    """A process that ends after its ledger was found, and before its memory map is read, is shown as it ended."""
    holder = place.start_holder()
    reader = place.start("strace", "-f", "-qq", "-o", "/dev/null", "-P", "/proc/%d/maps" % holder.pid, "-e",
                         "trace=openat", "-e", "inject=openat:delay_enter=600000", built("ALLIUM"), "report", "--json",
                         str(holder.pid))
    time.sleep(0.3)
    holder.stdin.close()
    equal(holder.wait(20), 0, "the holder's code")
    out, err = reader.communicate(timeout=60)
    equal(reader.returncode, 0, "code of allium report, which said %s" % err.decode())
    equal([image["state"] for image in json.loads(out)["processes"]], ["exited"], "its state")


def another_version(place):
    """A process that began with an agent of another build: each command says so, and nothing of it is changed."""
    holder = place.start_holder(ALLIUM_SITES="1")
    pid, (ledger,) = str(holder.pid), place.ledgers()
    with open(ledger, "r+b") as file:
        head = file.read(12)
        file.seek(0)
        file.write(head[:8] + struct.pack("<I", struct.unpack("<I", head[8:])[0] - 1))
    with open(ledger.replace(".ledger", ".control"), "rb") as file:
        before = file.read()
    words = ("the ledger is of version", "use the allium that started the program")
    for command in (
        ["report", pid],
        ["sites", pid],
        ["tags", pid],
        ["tags", pid, "--stacks"],
        ["snapshot", pid],
        ["set", pid, "off"],
        ["set", pid, "period=64K"],
        ["set", pid, "stacks"],
        ["set", pid, "--where", "func:x", "stacks"],
    ):
        one_line(place.allium(*command, code=1).err, *words)
    for word in words:
        check(word in place.row(holder.pid)["note"], "no", word, "in", place.row(holder.pid))
    with open(ledger.replace(".ledger", ".control"), "rb") as file:
        equal(file.read(), before, "the control page")


def no_process_has_it(place):
    """2^32 + 1 is not process 1."""
    for number in "4294967297", "99999999999999999999", "0":
        for command, code in (
            (["set", number, "off"], 2),
            (["set", number, "stacks"], 2),
            (["tags", number, "--faults", "1s"], 2),
            (["tags", number], 2),
            (["tags", number, "--stacks"], 2),
            (["sites", number], 2),
            (["snapshot", number], 2),
            (["report", number], 2),
            (["diff", number, number], 2),
            (["sys", "--pid", number], 2),
            (["tags", number, "--interval", "1s"], 2),
        ):
            one_line(place.allium(*command, code=code).err, r"\b%s\b.* process id|process id '%s'" % (number, number))


tap.main(
    [
        (
            name,
            placed(function, "/tmp" if function in (process_of_another, ledger_directory, other_user) else "/dev/shm"),
        )
        for name, function in [
            ("a process without a ledger is named in one line", process_without_ledger),
            ("a process of another user is named in one line", process_of_another),
            ("a recorder that was killed", killed_recorder),
            ("a command that crashes", crash),
            ("an allocator that goes past the agent is said", own_allocator),
            ("half a ledger is tidied up", unfinished_ledger),
            ("a recording that exists, or cannot be made, is named in one line", recording_exists),
            ("a directory of ledgers that is not ours is named in one line", ledger_directory),
            ("a runtime directory on a disk is not used, and nothing is missing", runtime_on_disk),
            ("a disk that gets full while recording: the command ends as it would, and no process is lost", full_disk),
            ("what runs as another user is recorded", other_user),
            ("a number that no process can have is none", no_process_has_it),
            ("a ledger of another version is named in one line", another_version),
            ("links in the place of directories of ledgers lead nowhere", planted_links),
            ("a process whose /proc is being read ends all the same", read_meanwhile),
            ("a process ends while it is looked for", ends_meanwhile),
            ("the command's code reaches who ignores his children", children_ignored),
        ]
    ]
)
