#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys memleak` of real programs that nobody prepared, against the ledger of allium's agent, which knows every
object; and the programs do what they do without it.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal, private_dir, wait_until

EXACT = ("--period", "1", "--max-cost", "0", "--json", "--top", "0")
SQL = ("create table t(a, b); insert into t select value, hex(randomblob(100)) from generate_series(1, 2000); "
       "select count(*), sum(a) from t;")
QUERIES = (b"create table t(a int, b text);\n"
           b"insert into t select i, md5(i::text) from generate_series(1, 20000) i;\n"
           b"create index on t(b);\nselect sum(a) from t where b < '5';\n")
RUNS = 20
# strings, and arenas that come and go
PYTHON = "kept = [str(i) * 50 for i in range(2000)]; gone = [bytearray(i) for i in range(2000)]; del gone; print(len(kept))"
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0", "LC_ALL": "C"}


def report(path, *options):
    return json.loads(tap.succeed([built("ALLIUM"), "report", path, "--json", "--top", "0", *options]).stdout)


def observed(folder, command, *options):
    """The command line of memleak, which runs the agent, which runs the program: both see each call. A shell sleeps until
    its probes are attached, then executes the program, which has them from its start.
    """
    later = ["sh", "-c", 'sleep 0.5; exec "$@"', "sh", *command]
    ledger = ["run", "--quiet", "--period", "1", "-o", folder + "/ledger", "--", *later]
    return [built("ALLIUM"), "sys", "memleak", *EXACT, "--children", "--even-observed", *options, "--", built("ALLIUM"),
            *ledger]


def totals(folder, out):
    """(objects, bytes) that are live at the end, as memleak and as the ledger know it, of the program."""
    ledger = report(folder + "/ledger", "--where", "!comm:sh !comm:sleep")
    process = ledger["processes"][-1]
    rows = [row for row in lib.stream(out, "memleak")[:-1] if row["pid"] == process["pid"]]
    return [(sum(row["live_objects"] for row in rows), sum(row["live_bytes"] for row in rows)),
            (ledger["total"]["live_objects"], ledger["total"]["live_bytes"])]


def runs_through(*command):
    """A program that ends by itself."""
    with private_dir() as folder:
        done = tap.run(observed(folder, command, "--by", "process"), env=ENVIRONMENT)
        equal(done.returncode, 0, "exit code (%s)" % done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
        ours, ledger = totals(folder, b"\n".join(lines))
    check(ledger[0] > 5, "objects:", ledger)
    equal(ours, ledger, "live objects and bytes")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def server(folder, command, port):
    """It is served under observation. Afterwards: .out, what memleak printed."""
    with open(folder + "/out", "w+b") as out:
        process = subprocess.Popen(observed(folder, command, "--by", "process"), stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.PIPE, env=ENVIRONMENT)
        try:
            wait_until(lambda: answers(port), tap.TIMEOUT, "the server answers")
            yield process
            errors = process.communicate(timeout=tap.TIMEOUT)[1]
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
    equal(process.returncode, 0, "exit code (%s)" % errors)


def rows_of(folder):
    with open(folder + "/out", "rb") as file:
        return b"\n".join(line for line in file.read().splitlines() if line.startswith(b"{"))


def redis():
    """It has jemalloc inside."""
    port = free_port()
    with private_dir() as folder:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--daemonize", "no"]
        with server(folder, command, port):
            for i in range(300):
                tap.succeed(["redis-cli", "-p", str(port), "set", "key%d" % i, "x" * i])
            tap.run(["redis-cli", "-p", str(port), "shutdown", "nosave"])
        ours, ledger = totals(folder, rows_of(folder))
    check(ledger[0] > 300, "objects:", ledger)
    equal(ours, ledger, "live objects and bytes")


def nginx():
    port = free_port()
    with private_dir() as folder:
        with open(folder + "/conf", "w") as file:
            file.write("daemon off; master_process off; pid %s/pid; error_log %s/log;\nevents {}\nhttp { access_log off;\n"
                       "server { listen 127.0.0.1:%d; location / { return 200 'here'; } } }\n" % (folder, folder, port))
        with server(folder, ["nginx", "-c", folder + "/conf"], port):
            for _ in range(100):
                equal(urllib.request.urlopen("http://127.0.0.1:%d/" % port).read(), b"here", "the answer")
            with open(folder + "/pid") as file:
                os.kill(int(file.read()), signal.SIGQUIT)
        ours, ledger = totals(folder, rows_of(folder))
    check(ledger[0] > 10, "objects:", ledger)
    equal(ours, ledger, "live objects and bytes")


def postgres():
    """Its server alone, which reads from stdin, as another user."""
    found = glob.glob("/usr/lib/postgresql/*/bin")
    check(found, "postgresql is not installed: tools/setup long")
    with private_dir() as folder:
        os.chmod(folder, 0o777)
        data = folder + "/data"
        tap.succeed(["setpriv", "--reuid", "nobody", "--clear-groups", "env", "HOME=" + folder, found[0] + "/initdb",
                     "-D", data, "-U", "me", "-A", "trust", "--no-sync", "--locale=C"])
        command = [found[0] + "/postgres", "--single", "-D", data, "-F", "postgres"]
        done = tap.run(observed(folder, command, "--by", "process", "--user", "nobody"), input=QUERIES,
                       env=ENVIRONMENT)
        equal(done.returncode, 0, "exit code (%s)" % done.stderr)
        lines = done.stdout.replace(b"backend> ", b"").splitlines()  # its prompts
        ours, ledger = totals(folder, b"\n".join(line for line in lines if line.startswith(b"{")))
    check(ledger[0] > 100, "objects:", ledger)
    equal(ours, ledger, "live objects and bytes")


def by_call(*command):
    """Each call has the objects and bytes that the ledger of another run has: the program does the same again."""
    with private_dir() as folder:
        seen = tap.succeed([built("ALLIUM"), "sys", "memleak", *EXACT, "--by", "site", "--", *command], env=ENVIRONMENT)
        tap.succeed([built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", folder + "/ledger", "--", *command],
                    env=ENVIRONMENT)
        ledger, ours = {}, {}
        for row in report(folder + "/ledger")["rows"]:
            add(ledger, row["name"], row["self"])
        for row in lib.stream(b"\n".join(line for line in seen.stdout.splitlines() if line.startswith(b"{")))[:-1]:
            add(ours, row["site"].split(" ")[0], row)
    check(len(ledger) >= 3, "calls:", ledger)
    # A function that jumps to malloc() at its end has no frame: the ledger names it from the debug information, and the
    # call site cannot.
    equal(sorted(ours.values()), sorted(ledger.values()), "live objects and bytes by call")
    check(len(set(ours) & set(ledger)) >= len(ledger) - 1, "calls:", ours, ledger)


def add(sums, name, row):
    have = sums.get(name, (0, 0))
    if row["live_objects"]:
        sums[name] = (have[0] + row["live_objects"], have[1] + row["live_bytes"])


def without_glibc():
    """A program with musl in it, static, with symbols."""
    with private_dir() as folder:
        with open(folder + "/one.c", "w") as file:
            file.write("#include <stdlib.h>\nvoid *volatile p[9];\nint main(void)\n{\n"
                       "    for (int i = 0; i < 9; i++)\n        p[i] = calloc(7, i + 1);\n"
                       "    free(p[0]);\n    p[1] = realloc(p[1], 5000);\n    return 3;\n}\n")
        tap.succeed(["musl-gcc", "-static", "-fno-builtin", "-o", folder + "/one", folder + "/one.c"])
        done = tap.run([built("ALLIUM"), "sys", "memleak", *EXACT, "--by", "site", "--", folder + "/one"])
    equal(done.returncode, 3, "exit code (%s)" % done.stderr)
    sums = {}
    for row in lib.stream(done.stdout)[:-1]:
        add(sums, row["site"].split(" ")[0], row)
    equal(sums, {"main": (8, 5000 + sum(7 * (i + 1) for i in range(2, 9)))}, "live objects and bytes")


def does_the_same():
    """Output and exit code, time after time, of programs that are stopped at each of their allocations."""
    with private_dir() as folder:
        for command, code in ((["sqlite3", ":memory:", SQL], 0), (["sh", "-c", "echo $((6 * 7)); exit 5"], 5)):
            bare = tap.run(command)
            for number in range(RUNS // 2):
                path = "%s/%d" % (folder, number)
                done = tap.run([built("ALLIUM"), "sys", "memleak", "--children", "--", "sh", "-c",
                                'exec "$@" >%s' % path, "sh", *command])
                with open(path, "rb") as file:
                    equal((done.returncode, file.read()), (code, bare.stdout), "code, output (%s)" % done.stderr)


def needs(program, test):
    def run():
        check(shutil.which(program), program, "is not installed: tools/setup")
        test()
    return run


lib.main([
    ("python3 and the agent agree", lambda: runs_through("/usr/bin/python3", "-S", "-E", "-c", PYTHON)),
    ("sqlite3 and the agent agree", needs("sqlite3", lambda: runs_through("sqlite3", ":memory:", SQL))),
    ("a server with jemalloc and the agent agree: redis", needs("redis-server", redis)),
    ("a server and the agent agree: nginx", needs("nginx", nginx)),
    *([("a server and the agent agree: postgres", postgres)] if tap.LONG else []),
    ("each call of python3", lambda: by_call("/usr/bin/python3", "-S", "-E", "-c", PYTHON)),
    ("each call of sqlite3", needs("sqlite3", lambda: by_call("sqlite3", ":memory:", SQL))),
    ("a program with musl", needs("musl-gcc", without_glibc)),
    ("output and exit code are the program's own, %d of %d" % (RUNS, RUNS), needs("sqlite3", does_the_same)),
])
