# SPDX-License-Identifier: BSD-2-Clause
"""The command as its users meet it: exit codes, signals, files, sources, what is said when something is missing."""
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import tap
from terminal import Terminal
from workdir import placed, program
from tap import built, check, equal, wait_until

HELD, WASTED = 100 * 10000, 50 * 20000


def total(place, source, *words):
    return json.loads(place.allium("report", source, "--json", "--top", "0", *words).out)


def estimate(value):
    return value["estimate"] if isinstance(value, dict) and "estimate" in value else value


def figures(report, function):
    """{metric: bytes} of a function in a report --by function."""
    for row in report["rows"]:
        if row["name"] == function:
            return {key: estimate(value) for key, value in row["inclusive"].items()}
    raise tap.Failed("no row %s among %s" % (function, [row["name"] for row in report["rows"]]))


def shell_codes(place):
    run = ("run", "--quiet", "-o", "x.allium", "--force", "--")
    place.allium(*run, "sh", "-c", "exit 42", code=42)
    place.allium(*run, "true", code=0)
    for sig in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT):
        place.allium(*run, "sh", "-c", "kill -%d $$" % sig, code=128 + sig)
    place.allium(*run, "sh", "-c", "exit 255", code=255)


def cannot_run(place):
    for name, mode, text in (("plain", 0o644, "#!/bin/sh\n"), ("lost", 0o755, "#!/no/such/interpreter\n"),
                             ("bare", 0o755, "exit 5\n")):
        with open(place.path(name), "w") as file:
            file.write(text)
        os.chmod(place.path(name), mode)
    for command, code in (("no-such-command-anywhere", 127), ("./no-such-file", 127), ("./plain", 126), (".", 126),
                          ("./lost", 127)):
        equal(tap.run(["env", command], cwd=place.folder).returncode, code, "what env(1) gives for " + command)
        done = place.allium("run", "--", command, code=code)
        check(done.err.startswith("allium: ") and done.err.count("\n") == 1, command, "said", repr(done.err))
    equal([name for name in os.listdir(place.folder) if name.endswith(".allium")], [], "recordings of nothing")
    place.allium("run", "--quiet", "--", "./bare", code=5)  # no magic number: a script for sh


def refused(place):
    shutil.copy("/bin/true", place.path("gains"))
    os.chown(place.path("gains"), 1 if os.geteuid() == 0 else -1, -1)
    os.chmod(place.path("gains"), 0o4755)
    wanted = [(program("static"), "statically linked"), (program("sanitized"), "sanitizer")]
    if os.stat(place.path("gains")).st_uid != os.geteuid():
        wanted.append(("./gains", "privileges"))
    for command, why in wanted:
        done = place.allium("run", "--", command, code=125)
        check(why in done.err and done.err.count("\n") == 1, command, "said", repr(done.err))
        equal(done.out, "", "what it printed: it must not have run")
    equal(place.ledgers(), [], "ledgers")


def usage(place):
    for words in (
        ("run",),
        ("run", "--"),
        ("run", "--nonsense", "--", "true"),
        ("run", "--period", "0", "--", "true"),
        ("run", "--period", "x", "--", "true"),
        ("report", "--by", "nonsense"),
        ("report", "--top", "-1"),
        ("report", "--sort", "allocated", "--older-than", "1s"),
        ("report", "a", "b"),
        ("report", "--where", "size>"),
        ("export",),
        ("export", "--pprof", "--folded", "live"),
        ("export", "--speedscope", "--heaptrack"),
        ("export", "--heaptrack", "--where", "age>1s"),
        ("export", "--folded", "nonsense"),
        ("snapshot",),
        ("snapshot", "x"),
        ("snapshot", "-1"),
        ("report", "--where", "--"),
        ("run", "-o", "--", "true"),
        ("ps", "x"),
        ("nonsense",),
        ("doctor", "x"),
    ):
        done = place.allium(*words, code=2)
        check(done.err.startswith("allium: "), words, "said", repr(done.err))
        equal(done.out, "", "stdout of %s" % " ".join(words))


def forgotten(place):
    """The -- before a command is no value of the option before it."""
    for option in ("--wrapper", "--period", "-o"):
        line = place.allium("run", "--sites", option, "--", "true", code=2).err
        check(line.startswith("allium: option %s needs a value, " % option) and line.count("\n") == 1, "it said", line)


def meant(place):
    """A typing error is answered with what is close to it, and with nothing where nothing is."""
    for words, word in ((("reprot",), "report"), (("snap",), "snapshot"), (("help", "dif"), "diff"),
                        (("report", "--whre", "x"), "--where"), (("report", "--tpo=3"), "--top"),
                        (("run", "--perid", "1K", "--", "true"), "--period")):
        line = place.allium(*words, code=2).err
        check("did you mean %s?" % word in line.replace('"', "") and line.count("\n") == 1, words, "said", repr(line))
    for words in (("xyz",), ("report", "--oops"), ("report", "-x"), ("help", "xyz")):
        line = place.allium(*words, code=2).err
        check("did you mean" not in line and line.count("\n") == 1, words, "said", repr(line))
    for words in (("report", "--json=1"), ("report", "--help=1")):
        check("takes no value" in place.allium(*words, code=2).err, words)
    equal(place.allium("help", "ps").out, place.allium("ps", "--help").out, "allium help ps")


def output_file(place):
    with open(place.path("there"), "w") as file:
        file.write("mine")
    done = place.allium("run", "-o", "there", "--", "touch", "ran", code=125)
    check("there" in done.err, "it said", done.err)
    check(not os.path.exists(place.path("ran")), "the command ran")
    with open(place.path("there")) as file:
        equal(file.read(), "mine", "the file that was there")
    place.allium("run", "--quiet", "--force", "-o", "there", "--", "true")
    total(place, "there")
    done = place.allium("run", "-o", "no/such/folder/x", "--", "touch", "ran", code=125)
    check(not os.path.exists(place.path("ran")), "the command ran")


def default_name(place):
    done = place.allium("run", "--quiet", "--period", "1", "--", "sh", "-c", "echo $$")
    name = "sh.%d.allium" % int(done.out)
    check(os.path.exists(place.path(name)), name, "is not among", os.listdir(place.folder))
    equal(done.err, "", "stderr with --quiet")


def summary(place):
    done = place.allium("run", "--period", "1K", "--", program("holder"), "1")
    equal(done.out, "ready\n", "stdout: it is the command's alone")
    check(re.search(r"allium report \S*holder\.\d+\.allium|holder\.\d+\.allium", done.err),
          "the summary names no file:", done.err)


def nothing_kept(place):
    """A recording without anything in it is kept only under a name that was asked for."""
    done = place.allium("run", "--period", "1G", "--", "true")
    check("nothing was sampled: run again with --period 1\n" in done.err and "allium report" not in done.err, done.err)
    place.allium("run", "--quiet", "--period", "1G", "--", "true")
    equal([name for name in os.listdir(place.folder) if ".allium" in name], [], "recordings of nothing")
    place.allium("run", "--quiet", "--period", "1G", "-o", "named.allium", "--", "true")
    place.allium("run", "--quiet", "--", program("static"), code=125)
    place.allium("run", "--quiet", "--period", "1G", "--", "sh", "-c", "exec " + program("static"))
    kept = [name for name in os.listdir(place.folder) if name.endswith(".allium")]
    check(len(kept) == 2 and "named.allium" in kept, "recordings:", kept)


def summary_json(place):
    """run --json: one object in a file of its own, or on stderr, that agrees with the report."""
    place.allium("run", "--quiet", "--json", "run.json", "--period", "1", "-o", "r.allium", "--", program("holder"),
                 "1")
    with open(place.path("run.json")) as file:
        told = json.load(file)
    report = total(place, "r.allium")
    equal((told["schema"], told["version"], told["exit_status"], told["signal"], told["recording"], told["exact"]),
          ("allium-run", 2, 0, None, "r.allium", True), "head")
    for key in "total", "processes", "lost", "unobserved", "resident":
        equal(told[key], report[key], key)
    equal(place.allium("run", "--quiet", "--json", "run.json", "--", "touch", "begun", code=125).err.count("\n"), 1,
          "lines about a file that exists")
    check(not os.path.exists(place.path("begun")), "it ran")
    done = place.allium("run", "--quiet", "--force", "--json", "run.json", "--period", "1", "--", "sh", "-c",
                        "kill -9 $$", code=137)
    with open(place.path("run.json")) as file:
        told = json.load(file)
    equal((told["exit_status"], told["signal"]), (None, "SIGKILL"), "a signal")
    done = place.allium("run", "--quiet", "--json", "-", "--period", "1G", "--", "true")
    equal((json.loads(done.err)["recording"], done.out), (None, ""), "on stderr, without a recording")


def language_runtimes(place):
    """Python's own arenas: said in summary and report, and no more with PYTHONMALLOC=malloc."""
    script = "import time; kept = [[i, str(i)] for i in range(200000)]; time.sleep(1.5)"
    for malloc, hinted in (None, True), ("malloc", False):
        env = {"PYTHONMALLOC": malloc} if malloc else {}
        done = place.allium("run", "--force", "-o", "r.allium", "--", "/usr/bin/python3", "-c", script, env=env)
        shown = place.allium("report", "r.allium").out
        for text in done.err, shown:
            words = " ".join(text.split())
            equal("PYTHONMALLOC=malloc" in words, hinted, "hint with %s in %s" % (malloc, text))
            peak = re.search(r"peak (\S+ \S+ \(\S+\)) at", words).group(1)
            equal("malloc gave it %s at its peak" % peak in words, hinted, "the peak %s in %s" % (peak, text))
        # It ends before its memory was read, or has freed all by then.
        done = place.allium("run", "--", "/usr/bin/python3", "-c", "kept = [[i] for i in range(100000)]", env=env)
        equal("PYTHONMALLOC=malloc" in " ".join(done.err.split()), hinted, "hint with %s in %s" % (malloc, done.err))
    # What malloc gave it explains its memory.
    done = place.allium("run", "--", "/usr/bin/python3", "-c", "import time; kept = b'x' * (100 << 20); time.sleep(1.5)")
    check("PYTHONMALLOC" not in done.err, done.err)


def go_programs(place):
    """Built by go: one that is static, and one that is not, as it calls C."""
    main = "package main\n%s\nvar kept [][]byte\nfunc main() { %s; kept = append(kept, make([]byte, 1<<24)) }\n"
    c = "// #include <stdlib.h>\nimport \"C\""
    for name, head, call in (("static", "", ""), ("calls_c", c, "C.free(C.malloc(9))")):
        with open(place.folder + "/%s.go" % name, "w") as file:
            file.write(main % (head, call))
        tap.succeed(["go", "build", "-o", name, name + ".go"], cwd=place.folder, timeout=300,
                    env={**os.environ, "HOME": place.folder, "GOCACHE": place.folder + "/cache", "GOFLAGS": "-mod=mod"})
    done = place.allium("run", "--", "./static", code=125)
    check("./static is statically linked, and written in Go, whose heap is not malloc's" in done.err, done.err)
    done = place.allium("run", "--", "./calls_c")
    check("The Go heap is mapped by Go's runtime and not seen" in " ".join(done.err.split()), done.err)
    check("Go" not in place.allium("run", "--", "true").err, "a program that is none")


def by_function(place):
    """Functions are sorted by what they allocate themselves; a filter that nothing matches is said in a line."""
    source = place.recording("1")
    rows = total(place, source, "--by", "function")["rows"]
    own = [row["self"]["live_bytes"] for row in rows]
    equal(own, sorted(own, reverse=True), "bytes of their own")
    check(own[0] > 0 and rows[0]["name"] not in ("_start", "__libc_start_main", "main"), rows[0]["name"])
    done = place.allium("report", source, "--where", "func:no_such_function")
    equal((done.out, done.err.count("\n")), ("", 1), "lines of nothing: %s" % done.err)
    check("no_such_function" in done.err and "compares whole names" in done.err, done.err)
    for where in "pid:1", "size>1G", "func:no_such*":
        done = place.allium("report", source, "--where", where)
        check("no sample matches" in done.err and "whole names" not in done.err, where, done.err)


def of_nothing(place):
    """Every command that reads a recording says of one without a sample that it has none, and ends as wanted."""
    place.allium("run", "--quiet", "-o", "none.allium", "--", "true")
    for words, code, line in (("report", 0, "nothing was sampled"), ("watch", 0, "nothing was sampled"),
                              ("diff none.allium", 0, "nothing sampled, before or after"),
                              ("frees", 0, "nothing was sampled"), ("who none.allium 0x1000", 1, "in no known block"),
                              ("export --folded live", 0, "no allocation was sampled"),
                              ("export --pprof -o none.pb.gz", 0, "no allocation was sampled"),
                              ("export --speedscope", 0, '"name":"nothing"'), ("export --heaptrack", 0, "X nothing"),
                              ("report --callers main", 1, "no function main"), ("sites", 1, "no accounts of sites"),
                              ("tags", 1, "no accounts of tags")):
        words = words.split() if words.startswith("who") else [*words.split(), "none.allium"]
        done = place.allium(*words, code=code)
        check(line in done.out + done.err, words, done.out + done.err)
    for command in "report", "watch":
        equal(json.loads(place.allium(command, "none.allium", "--json").out)["schema"], "allium-" + command, "schema")


def nameless(place):
    """A program without symbols: the summary says what names its functions."""
    shutil.copy(program("holder"), place.path("bare"))
    tap.succeed(["strip", place.path("bare")])
    for name, has in ("./bare", False), (program("holder"), True):
        said = place.allium("run", "--period", "1", "-o", "r.allium", "--force", "--", name, "1",
                            stdin=subprocess.DEVNULL, code=None).err
        equal("  symbols    bare has none there: install its debug symbols" in said, not has, "the line in " + said)


def silence(place):
    """Nothing was sampled: at most so much can have gone unseen, as far as the period is known."""
    said = place.allium("run", "--period", "1G", "-o", "r.allium", "--", "true").err
    for text in said, place.allium("report", "r.allium").out:
        check("nothing was sampled" in text and "1 GiB" in text and "at most 3.69 GiB" in " ".join(text.split()),
              "said", text)
    report = total(place, "r.allium")
    equal((report["processes"], report["periods_bytes"]), ([], [1 << 30]), "processes and periods")
    high = report["total"]["allocated_bytes_high"]
    check(3.68 < high / (1 << 30) < 3.69, "at most", high)
    with contextlib.closing(sqlite3.connect(place.path("r.allium"), isolation_level=None)) as db:
        db.execute("DELETE FROM meta WHERE key = 'period_bytes'")
    check("at most" not in place.allium("report", "r.allium").out, "a bound without a period")
    equal(total(place, "r.allium")["total"]["allocated_bytes_high"], None, "bound without a period")


def signals(place):
    for sig in (signal.SIGTERM, signal.SIGHUP):
        process = place.start_allium("run", "--quiet", "--", "sh", "-c",
                                     "trap 'exit 9' %d; echo up; while :; do sleep 0.02; done" % sig)
        equal(process.stdout.readline(), b"up\n", "the command's word")
        process.send_signal(sig)
        equal(process.wait(20), 9, "code after signal %d" % sig)
    for sig in (signal.SIGINT, signal.SIGQUIT):
        process = place.start_allium("run", "--quiet", "--", "sh", "-c", "echo up; read x; exit 8")
        equal(process.stdout.readline(), b"up\n", "the command's word")
        process.send_signal(sig)
        time.sleep(0.1)
        equal(process.poll(), None, "code right after signal %d: it must go on" % sig)
        process.stdin.close()
        equal(process.wait(20), 8, "code")


def streams(place):
    text = os.urandom(300_000)
    done = place.allium("run", "--quiet", "--", "cat", input=text)
    equal(done.stdout == text, True, "cat gives back its input")
    done = place.allium("run", "--quiet", "--", "ls", "/proc/self/fd")
    bare = tap.run(["ls", "/proc/self/fd"], cwd=place.folder)
    equal(done.stdout, bare.stdout, "descriptors that the command has")
    done = place.allium("run", "--quiet", "--", "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    bare = tap.run(["sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"], cwd=place.folder)
    equal(done.stdout, bare.stdout, "signals that the command ignores and blocks")


def preload_kept(place):
    done = place.allium("run", "--quiet", "--", "sh", "-c", "echo $LD_PRELOAD",
                        env={"LD_PRELOAD": "libSegFault-not-there.so"})
    check(done.out.split(":")[-1:] == ["libSegFault-not-there.so\n"], "LD_PRELOAD:", done.out)


def missing(place):
    for words, why in ((("report",), "no recording"), (("report", "none.allium"), "none.allium"),
                       (("export", "--folded", "live"), "no recording"), (("report", "999999999"), "999999999"),
                       (("report", str(gone())), "no process"), (("snapshot", str(gone())), "no process"),
                       (("report", "1"), "1"), (("report", "/etc/passwd"), "/etc/passwd"), (("report", "."), ".")):
        done = place.allium(*words, code=1)
        check(why in done.err and done.err.startswith("allium: ") and done.err.count("\n") == 1, words, "said",
              repr(done.err))


def gone():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def reported(place):
    place.recording("1")
    newest = json.loads(place.allium("report", "--json").out)
    named = total(place, "r.allium", "--by", "function")
    equal(figures(named, "hold")["live_bytes"], HELD, "live bytes of hold()")
    equal(figures(named, "waste")["allocated_bytes"], WASTED, "allocated bytes of waste()")
    equal(figures(named, "waste")["live_bytes"], 0, "live bytes of waste()")
    equal(newest["total"], total(place, "r.allium")["total"], "totals of the newest recording")
    for words in ((), ("--by", "module"), ("--by", "thread"), ("--by", "size"), ("--by", "file"), ("--sort", "peak"),
                  ("--sort", "allocations"), ("--sort", "temporary"), ("--sort", "age"), ("--older-than", "0s"),
                  ("--where", "func:hold"), ("--where", "size>9k age<1h")):
        text = place.allium("report", "r.allium", *words)
        check(text.out and not text.err, words, "said", text.err)
        place.allium("report", "r.allium", "--json", *words)
    only = total(place, "r.allium", "--where", "func:waste", "--sort", "allocated")
    equal(estimate(only["total"]["allocated_bytes"]), WASTED, "allocated bytes where func:waste")


def of_process(place):
    process = place.start_holder()
    row = wait_until(lambda: place.row(process.pid), 5, "a row in allium ps")
    equal((row["state"], row["program"]), ("running", "holder"), "state and program in allium ps")
    by_pid = total(place, str(process.pid), "--by", "function")
    equal(figures(by_pid, "hold")["live_bytes"], HELD, "live bytes of the running process")
    place.allium("snapshot", str(process.pid))
    name = "holder.%d.snapshot.allium" % process.pid
    equal(figures(total(place, name, "--by", "function"), "hold")["live_bytes"], HELD, "live bytes in the snapshot")
    place.allium("snapshot", str(process.pid), code=1)  # the file is there
    place.allium("snapshot", str(process.pid), "--force")
    equal(process.poll(), None, "the process goes on")
    process.kill()
    process.wait()
    equal(place.row(process.pid)["state"], "ended", "state after SIGKILL")
    place.allium("snapshot", str(process.pid), "-o", "dead.allium")
    dead = total(place, "dead.allium", "--by", "function")
    equal(figures(dead, "hold")["live_bytes"], HELD, "live bytes in the snapshot of the dead")
    equal(figures(total(place, str(process.pid), "--by", "function"), "hold")["live_bytes"], HELD, "report of the dead")


def many_ledgers(place):
    """On a terminal the largest twenty, and a line about the rest; all of them elsewhere."""
    where = place.path("ledgers")
    os.mkdir(where, 0o700)
    processes = [place.start_holder(ALLIUM_DIR=where) for _ in range(22)]
    for process in processes:
        process.kill()
        process.wait()
    env = {"ALLIUM_DIR": where, "LC_ALL": "C"}
    whole = place.allium("ps", env=env).out
    for process in processes:
        check(re.search(r"^ *%d +holder +ended" % process.pid, whole, re.M), process.pid, whole)
    shown = Terminal(place, ["ps"], rows=60, **env).end()[0]
    equal(len(re.findall(r"^ *\d+ .*(?:running|ended|unsampled|exited)", shown, re.M)), 20, "rows of " + shown)
    check(re.search(r"20 of \d+ rows are shown; --top 0 shows all", shown), shown)
    few = place.allium("ps", "--top", "3", env=env)
    equal(few.out.count("\n"), 4, "lines of " + few.out)
    lives = place.allium("ps", "--columns", "live", "--exact", env=env).out.splitlines()[1:]
    numbers = [int(line.split(" B")[0].strip().replace(",", "")) for line in lives if " B" in line and "<" not in line]
    equal(numbers, sorted(numbers, reverse=True), "live bytes")
    check(len(numbers) >= 22, numbers)


def own_directory(place):
    """$ALLIUM_DIR is looked into when it is set, and is one where the agent would keep a ledger. Who runs is found
    anyway.
    """
    where, link = place.path("ledgers"), place.path("link")
    os.mkdir(where, 0o700)
    process = place.start_holder(ALLIUM_DIR=where)
    pid, env = str(process.pid), {"ALLIUM_DIR": where}
    equal(place.row(process.pid)["state"], "running", "state in allium ps, without ALLIUM_DIR")
    equal(figures(total(place, pid, "--by", "function"), "hold")["live_bytes"], HELD, "live bytes, without ALLIUM_DIR")
    process.kill()
    process.wait()
    equal(place.row(process.pid), None, "its row in allium ps at its end, without ALLIUM_DIR")
    place.allium("snapshot", pid, code=1)
    place.allium("report", pid, code=1)
    equal(place.row(process.pid, **env)["state"], "ended", "state in allium ps")
    place.allium("snapshot", pid, "-o", "s.allium", env=env)
    for report in total(place, "s.allium", "--by", "function"), json.loads(
            place.allium("report", pid, "--json", "--by", "function", env=env).out):
        equal(figures(report, "hold")["live_bytes"], HELD, "live bytes of hold()")
    other = place.start_holder()
    rows = json.loads(place.allium("ps", "--json", env={"ALLIUM_DIR": place.runtime + "/allium"}).out)["rows"]
    equal([row["pid"] for row in rows].count(other.pid), 1, "rows of what lies where allium looks anyway")
    os.symlink(where, link)
    equal(place.row(process.pid, ALLIUM_DIR=link), None, "its row by a symbolic link")
    os.chmod(where, 0o750)
    equal(place.row(process.pid, **env), None, "its row where others may look")
    os.chmod(where, 0o700)
    if os.geteuid() == 0:
        os.chown(where, 12345, -1)
        equal(place.row(process.pid, **env), None, "its row in somebody else's directory")
        os.chown(where, 0, -1)
    with tap.private_dir("/tmp") as disk:
        if os.stat("/tmp").st_dev != os.stat("/dev/shm").st_dev:
            tap.succeed(["cp", "-a", where + "/.", disk])
            equal(place.row(process.pid, ALLIUM_DIR=disk), None, "its row from a disk")
    check(place.row(process.pid, **env), "nothing was wrong with it")


def zombies(parent):
    """Children of a process that have ended, and that it has not heard of yet."""
    with open("/proc/%d/task/%d/children" % (parent, parent)) as file:
        children = file.read().split()
    return [pid for pid in children if re.search(r"^State:\s+Z", open("/proc/%s/status" % pid).read(), re.M)]


def lifetime(place):
    """To its exit, though its last sample was long before; of one that was killed, at least up to that. By our own
    clock.
    """
    started = time.monotonic_ns()
    process = place.start_holder()
    time.sleep(0.3)
    process.stdin.close()
    equal(process.wait(20), 0, "code of holder")
    lived = time.monotonic_ns() - started
    time.sleep(0.5)
    row = place.row(process.pid)
    equal(row["state"], "exited", "state after an exit")
    check(0.3e9 <= row["age_ns"] <= lived, "age after at least 0.3 s of life and at most", lived, "ns:", row["age_ns"])
    line = place.line(process.pid)
    check(">=" not in line, "its age is not known to the end:", line)
    started = time.monotonic_ns()
    killed = place.start_holder()
    busy = time.monotonic_ns() - started
    time.sleep(0.3)
    killed.kill()
    killed.wait()
    row = place.row(killed.pid)
    equal(row["state"], "ended", "state after SIGKILL")
    check(row["age_ns"] <= busy, "age by what its ledger tells:", row["age_ns"], "it was ready after", busy)
    line = place.line(killed.pid)
    check(re.search(r"ended +>= \d", line), "no >= before its age:", line)
    # A recorder that comes late knows when it was.
    started = time.monotonic_ns()
    process = place.start_allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"), "300")
    equal(process.stdout.readline(), b"ready\n", "the command's word")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: zombies(process.pid), 60, "the end of the holder")
    lived = time.monotonic_ns() - started
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    equal(process.wait(20), 0, "code of allium run")
    (image,) = total(place, "r.allium")["processes"]
    check(0.3e9 <= image["taken_ns"] - image["began_ns"] <= lived, "recorded life:", image, "at most", lived)


def pruned(place):
    """In a mount namespace with nobody else's ledgers: pruning them is not ours to do."""
    script = """
        mount -t tmpfs -o mode=1777 none /dev/shm || exit 90
        unset XDG_RUNTIME_DIR; mkfifo in; exec 9<>in
        LD_PRELOAD=$AGENT ALLIUM_PERIOD=1 $HOLDER 1 >&2
        mkdir /dev/shm/run-x; own=/dev/shm/run-x/own; ALLIUM_DIR=$own LD_PRELOAD=$AGENT ALLIUM_PERIOD=1 $HOLDER 1 >&2
        LD_PRELOAD=$AGENT ALLIUM_PERIOD=1 $HOLDER <in >out &
        while ! grep -q ready out; do sleep 0.05; done
        $ALLIUM ps --json >before; $ALLIUM ps --prune >&2; $ALLIUM ps --json >after
        kill $!; wait; ls $own | grep -c . >own; ALLIUM_DIR=$own $ALLIUM ps --prune >&2; [ -d $own ] || exit 91; find /dev/shm -type f >&2; $ALLIUM ps
    """
    env = dict(place.env, AGENT=built("ALLIUM_AGENT"), HOLDER=program("holder"), ALLIUM=built("ALLIUM"))
    done = tap.run([*tap.unshare(), "sh", "-c", script], cwd=place.folder, env=env)
    equal(done.returncode, 0, "code, stderr: " + done.stderr.decode())
    for name, want in (("before", ["exited", "running"]), ("after", ["running"])):
        with open(place.path(name)) as file:
            ours = [row for row in json.load(file)["rows"]  # others' run in the namespace outside
                    if row["container"] is None and row["state"] != "unsampled" and not row["accounts"]]
            equal(sorted(row["state"] for row in ours), want, "states %s ps --prune" % name)
    with open(place.path("own")) as file:
        equal(file.read(), "2\n", "files in a directory that only ALLIUM_DIR named, before it did")
    check("/dev/shm/" not in done.stderr.decode(), "left after all has ended:", done.stderr.decode())


def exported(place):
    place.recording("1")
    place.allium("export", "r.allium", "--pprof", "-o", "heap.pb.gz")
    with gzip.open(place.path("heap.pb.gz")) as file:
        check(len(file.read()) > 100, "hardly anything in it")
    env = dict(place.env, HOME=place.folder, PPROF_TMPDIR=place.folder)
    for sample, function, size in (
        ("live_space", "hold", HELD),
        ("inuse_space", "hold", HELD),
        ("alloc_space", "waste", WASTED),
    ):
        done = tap.run(["go", "tool", "pprof", "-top", "-unit=B", "-sample_index=" + sample, "heap.pb.gz"],
                       cwd=place.folder, env=env)
        if sample == "live_space" and done.returncode:
            continue  # one of two names of the same
        equal(done.returncode, 0, "code of pprof: " + done.stderr.decode()[-300:])
        lines = [line for line in done.stdout.decode().splitlines() if line.split()[-1:] == [function]]
        check(lines and lines[0].split()[3] in (str(size) + "B", str(size)), sample, done.stdout.decode())
    report = total(place, "r.allium")["total"]
    for metric, key in (("live", "live_bytes"), ("allocated", "allocated_bytes"), ("peak", "peak_bytes"),
                        ("allocations", "allocations")):
        lines = place.allium("export", "r.allium", "--folded", metric).out.splitlines()
        equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines), round(estimate(report[key])),
              "sum of folded " + metric)


def moments(place):
    """By our own clock hold() runs between `before` and `after`; no wait is bound to a time but the 60 s that are too
    long.
    """
    path = place.path("r.allium")
    process = place.start_allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", "sh", "-c",
                                 "read x; exec " + program("holder"))
    wait_until(lambda: recording_reader.moment(path, "true"), 60, "a moment of the shell, in the recording")
    before = time.time_ns()
    process.stdin.write(b"\n")
    process.stdin.flush()
    equal(process.stdout.readline(), b"ready\n", "the holder's word")
    after = time.time_ns()
    held = "live_bytes >= %d AND time_ns > %d" % (HELD, after)  # the shell's last moment may be later, too
    at = "r.allium@%dns" % wait_until(lambda: recording_reader.moment(path, held), 60,
                                      "a moment of the holder, in the recording")
    process.stdin.close()
    equal(process.wait(tap.TIMEOUT), 0, "code of allium run")
    late = total(place, at, "--by", "function")
    equal(figures(late, "hold")["live_bytes"], HELD, "live bytes of hold() at " + at)
    ((started,),) = recording_reader.rows(path, "SELECT value FROM meta WHERE key = 'started_ns'")
    early = total(place, "r.allium@%dns" % (before - started), "--by", "function")
    equal([p["program"] for p in early["processes"]], ["sh"], "processes before the holder ran")
    check(estimate(early["total"]["live_bytes"]), "the shell holds nothing:", early["total"])
    check("hold" not in [row["name"] for row in early["rows"]], "hold() holds memory before it ran")
    newest = total(place, "@%dns" % (before - started), "--by", "function")
    equal(newest["total"], early["total"], "of @TIME alone, which is a moment of the newest recording")
    place.allium("report", "r.allium@1h", code=1)
    place.allium("report", "r.allium@x", code=2)
    place.allium("report", "r.allium@0", code=1)
    for words in (("report", "--sort", "temporary"), ("report", "--sort", "age"), ("report", "--older-than", "1s"),
                  ("report", "--where", "size>1"), ("export", "--folded", "temporary")):
        told = place.allium(words[0], at, *words[1:], code=2).err
        check("not known for a moment in the past" in told, words, told)


def children(place):
    script = "for i in $(seq 50); do %s 1 & [ $((i %% 8)) = 0 ] && wait; done; wait" % program("holder")
    place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", "bash", "-c", script)
    report = total(place, "r.allium", "--by", "function")
    holders = [p for p in report["processes"] if p["program"] == "holder"]
    equal(len(holders), 50, "processes named holder")
    equal(len({p["image"] for p in report["processes"]}), len(report["processes"]), "different images")
    equal({p["state"] for p in holders}, {"exited"}, "their states")
    equal(figures(report, "hold")["allocated_bytes"], 50 * HELD, "allocated bytes of hold(), of all")
    check(report["lost"]["samples"] == 0 and not report["lost"]["inconsistent"], report["lost"])
    place.allium("run", "--quiet", "--no-follow", "--period", "1", "-o", "one.allium", "--", "bash", "-c", script)
    alone = total(place, "one.allium")
    check(
        {p["program"] for p in alone["processes"]} <= {"bash"},
        "with --no-follow:",
        {p["program"] for p in alone["processes"]},
    )
    equal(place.ledgers(), [], "ledgers that are left")


def still_running(place):
    script = "%s 60000 >said 2>&1 & echo $!; while ! grep -qs ready said; do sleep 0.02; done" % program("holder")
    with open(place.path("out"), "w") as out:
        tap.run([built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", "r.allium", "--", "sh", "-c", script],
                cwd=place.folder, env=place.env, stdout=out, stderr=subprocess.PIPE)
    with open(place.path("out")) as file:
        pid = int(file.read())
    try:
        report = total(place, "r.allium", "--by", "function")
        # Two images may have that pid: the shell's fork, which ended with exec, and what it executed.
        states = [p["state"] for p in report["processes"] if p["pid"] == pid]
        check("running" in states, "the child is not running: %s of %s" % (states, report["processes"]))
        equal(figures(report, "hold")["live_bytes"], HELD, "live bytes of hold()")
        check(re.search("still running|running", place.allium("report", "r.allium").out), "the report does not say so")
        equal(place.row(pid)["state"], "running", "state in allium ps")
        place.allium("snapshot", str(pid), "-o", "later.allium")
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: place.row(pid)["state"] == "ended", 5, "its end in allium ps")


def orphaned(place):
    process = place.start_allium("run", "--quiet", "--period", "1", "--", "sh", "-c",
                                 "echo $$; exec " + program("holder"))
    pid = int(process.stdout.readline())
    equal(process.stdout.readline(), b"ready\n", "the command's word")
    process.kill()
    process.wait()
    time.sleep(0.2)
    os.kill(pid, 0)  # it does not notice
    equal(place.row(pid)["state"], "running", "state in allium ps")
    place.allium("snapshot", str(pid), "-o", "s.allium")
    equal(figures(total(place, "s.allium", "--by", "function"), "hold")["live_bytes"], HELD, "live bytes of hold()")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: place.row(pid)["state"] == "ended", 5, "its end in allium ps")
    place.allium("snapshot", str(pid), "-o", "t.allium")
    left = [name for name in os.listdir(place.folder) if name.startswith("sh.") and name.endswith(".allium")]
    equal(len(left), 1, "recordings that were begun: %s" % left)
    code = place.allium("report", left[0], code=None)
    check(code.returncode in (0, 1) and (code.returncode == 0 or code.err.count("\n") == 1), "report of it:", code)


def doctor(place):
    done = place.allium("doctor", "--json")
    rows = {row["what"]: row["works"] for row in json.loads(done.out)["rows"]}
    check("agent" in rows and rows["agent"] == "yes", rows)
    place.allium("doctor")
    place.allium("--help")
    check(place.allium("--version").out.strip(), "no version")
    for command in ("run", "ps", "snapshot", "report", "diff", "who", "frees", "export", "sql", "doctor"):
        check("usage: allium " + command in place.allium(command, "--help").out, "no usage of", command)


tap.main([(name, placed(function)) for name, function in [
    ("run ends with the command's code", shell_codes),
    ("run ends with 126 and 127 as env does", cannot_run),
    ("run refuses what cannot be observed, with 125", refused),
    ("wrong usage is 2, and says what is wrong", usage),
    ("the -- before a command is no value", forgotten),
    ("a typing error is answered with what was meant, perhaps", meant),
    ("run does not overwrite a file unless told to", output_file),
    ("run names the recording after the program and its pid", default_name),
    ("run's summary goes to stderr and names the recording", summary),
    ("a recording of nothing is kept only if it was named", nothing_kept),
    ("run --json is the summary as one object", summary_json),
    ("a Python of which little is seen is told of PYTHONMALLOC", language_runtimes),
    ("a Go program is told that its heap is not seen", go_programs),
    ("report --by function is sorted by SELF, and --where without a match is one line", by_function),
    ("commands that read a recording of nothing say so", of_nothing),
    ("a program without symbols is told what names its functions", nameless),
    ("a run of which nothing was sampled has an upper bound", silence),
    ("SIGTERM and SIGHUP are passed on, SIGINT and SIGQUIT left to the terminal", signals),
    ("the command has its stdin, its descriptors and its signal masks", streams),
    ("a library that was preloaded stays preloaded", preload_kept),
    ("what is not there is named in one line", missing),
    ("report says what a recording holds", reported),
    ("ps, report and snapshot read a running process, and one that was killed", of_process),
    ("ps lists the largest ledgers first", many_ledgers),
    ("ps, report and snapshot look into $ALLIUM_DIR too, if it is the user's alone", own_directory),
    ("a process lived until its exit, or, if it was killed, at least so long", lifetime),
    ("ps --prune removes the ledgers of what has ended, and no other", pruned),
    ("exports add up, and go tool pprof reads them", exported),
    ("FILE@TIME is the state at that time", moments),
    ("fifty children are in one recording, or not with --no-follow", children),
    ("a child that runs on is in the recording as running, and keeps its ledger", still_running),
    ("a command whose allium was killed runs on, and can be read", orphaned),
    ("doctor, help and version", doctor),
]])
