# SPDX-License-Identifier: BSD-2-Clause
"""Debug files from servers: the real debuginfod's, and of servers that hang, lie or are not there. All on loopback."""
import contextlib
import http.server
import itertools
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal, pick, wait_until

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "holder.c")
BUDGET_S = 2
HANG_S = 3600  # longer than any test may take: whoever waits for such a server fails, however slow the machine is
NAMES = """SELECT f.text AS function, p.text AS file, line_number AS line FROM line
           JOIN string f ON f.id = function JOIN string p ON p.id = file JOIN location l ON l.id = location
           JOIN module m ON m.id = l.module JOIN string o ON o.id = m.path WHERE o.text LIKE '%/bin/%'
           ORDER BY address, position"""
NEVER = re.compile(r"allium: debug files of (\d+) of (\d+) binaries did not arrive .* within 2 s; use --debuginfod wait .*\n")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", tap.succeed(["readelf", "-n", path]).stdout.decode()).group(1)


def split(place, name="holder", source=None):
    """bin/NAME without debug information, all of it in debug/NAME.debug; -> (path, build id)."""
    for folder in ("bin", "debug"):
        os.makedirs(place.path(folder), exist_ok=True)
    stripped, debug = place.path("bin/" + name), place.path("debug/%s.debug" % name)
    source = source or program("holder")
    tap.succeed(["objcopy", "--only-keep-debug", source, debug])
    tap.succeed(["objcopy", "--strip-all", source, stripped])
    return stripped, build_id(stripped)


@contextlib.contextmanager
def debuginfod(place):
    """The real one, serving debug/; -> its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(["debuginfod", "-p", str(port), "-d", ":memory:", "-F", "-t", "1", place.path("debug")],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=dict(place.env, HOME=place.folder))
    url = "http://127.0.0.1:%d" % port

    def serves(name):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen("%s/buildid/%s/debuginfo" % (url, build_id(place.path("debug/" + name))),
                                          timeout=5).read()
    try:
        for name in os.listdir(place.path("debug")):
            wait_until(lambda name=name: serves(name), 60, name + " from debuginfod")
        yield url
    finally:
        tap.stop(server)


def shared_by_dwz(place):
    """A debug file, and what it shares with another's in a third file: each by its build id."""
    for folder in ("built", "bin"):
        os.mkdir(place.path(folder))
    for name, words in (("holder", ()), ("other", ("-DOTHER",))):
        tap.succeed(["gcc", "-g", "-O0", "-fno-builtin", *words, "-o", "built/" + name, SOURCE], cwd=place.folder)
    shutil.copy(place.path("built/holder"), place.path("bin"))
    whole = record(place, place.path("bin/holder"))
    tap.succeed(["dwz", "-m", "common", "-M", "/nowhere/common", "holder", "other"], cwd=place.path("built"))
    stripped, _ = split(place, source=place.path("built/holder"))
    with debuginfod(place) as url:
        lost = record(place, stripped, DEBUGINFOD_URLS=url)
    shutil.copy(place.path("built/common"), place.path("debug"))
    with debuginfod(place) as url:
        found = record(place, stripped, DEBUGINFOD_URLS=url)
    equal(found, whole, "names")
    check(lost != found, "the shared file tells nothing")


class Server:
    """Answers each request by a function that is given the build id and the handler; counts them."""

    def __init__(self, answer):
        asked = self.asked = []
        self.begun, self.over = [], []  # when each request came, and when it was through: answered, or given up

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.begun.append(time.monotonic())
                asked.append(handler.path.split("/")[2])
                with contextlib.suppress(OSError):
                    answer(asked[-1], handler)
                self.over.append(time.monotonic())

            def log_message(handler, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def rounds(self):
        """How many times somebody came after all those were gone that had come before. No clock of ours: a slow machine
        has as many.
        """
        events = sorted([(at, 1) for at in self.begun] + [(at, -1) for at in self.over])
        under_way = list(itertools.accumulate(step for _, step in events))
        return sum(step > 0 and now == 1 for (_, step), now in zip(events, under_way))

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def send(handler, data, length=None, kind="Content-Length"):
    handler.send_response(200)
    handler.send_header(kind, str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def absent(_, handler):
    handler.send_error(404)


def until_gone(handler, seconds=HANG_S):
    """Hangs; -> whether the other side went before that."""
    return bool(select.select([handler.connection], [], [], seconds)[0]) and not handler.connection.recv(1)


def fresh(place, **more):
    """An environment whose caches, ours and the client's, know nothing. Time enough for a loaded machine, unless said.
    """
    fresh.n += 1
    cache = place.path("cache%d" % fresh.n)
    os.mkdir(cache)
    return dict(place.env, **dict(dict(XDG_CACHE_HOME=cache, HOME=cache, ALLIUM_DEBUGINFOD="60s"), **more))


fresh.n = 0


def record(place, *command, said="", **env):
    """A recording of a program that ends at once, made with empty caches; -> how it names the program's code."""
    done = place.allium("run", "--quiet", "--period", "1", "--force", "-o", "r.allium", "--", *command,
                        *(() if command[1:] else ("1",)), env=fresh(place, **env))
    equal(done.err, said, "what allium run said")
    return names(place)


def names(place, source="r.allium"):
    return json.loads(place.allium("sql", source, "--json", NAMES).out)["rows"]


def held(place, words=(), **env):
    """A process that holds memory, under the agent; -> words that report it, and an environment with empty caches."""
    process = place.start(
        place.path("bin/holder"), env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    )
    equal(process.stdout.readline(), b"ready\n", "the holder's word")
    return process, ("report", str(process.pid), "--json", "--by", "function", "--top", "0", *words), fresh(
        place, **env)


def functions(done):
    return {row["name"] for row in json.loads(done.out)["rows"]}


def bare(place, stripped):
    """How the program's code is named without a debug file."""
    found = record(place, stripped)
    check(
        found and all(row["file"] == "" and re.fullmatch(r"(holder\+0x[0-9a-f]+|_\w+|main)", row["function"])
                      for row in found), found)
    return found


def real(place):
    """The names and lines of a debug file that was sent are those of one that is installed."""
    stripped, _ = split(place)
    without = bare(place, stripped)
    with debuginfod(place) as url:
        sent = record(place, stripped, DEBUGINFOD_URLS=url)
        for _ in range(pick(15, 60)):  # the answer may come at any moment, also just when the names are stored
            equal(record(place, stripped, DEBUGINFOD_URLS=url), sent, "names, once more")
    os.mkdir(place.path("bin/.debug"))
    shutil.copy(place.path("debug/holder.debug"), place.path("bin/.debug"))
    tap.succeed(["objcopy", "--add-gnu-debuglink=" + place.path("debug/holder.debug"), stripped])
    installed = record(place, stripped)
    equal(sent, installed, "names")
    check(any(row["function"] == "hold" and row["file"].endswith("holder.c") and row["line"] for row in sent), sent)
    check(sent != without, "the debug file tells nothing")


def kept(place):
    """What was learnt once needs no server: in a recording, in allium's cache, and the file in the client's."""
    split(place)
    with debuginfod(place) as url:
        process, report, env = held(place, DEBUGINFOD_URLS=url)
        check({"hold", "main"} <= functions(place.allium(*report, env=env)), "no names")
        place.allium("snapshot", str(process.pid), "-o", "s.allium", env=env)
    done = place.allium(*report, env=env)
    equal((functions(done) >= {"hold", "main"}, done.err), (True, ""), "names, and words, with the server gone")
    shutil.rmtree(env["XDG_CACHE_HOME"] + "/allium")
    check({"hold", "main"} <= functions(place.allium(*report, env=env)), "no names from the client's cache")
    shutil.rmtree(env["XDG_CACHE_HOME"])
    check(any(row["function"] == "hold" for row in names(place, "s.allium")), "no names in the recording")


def watched(place):
    """allium watch names what it shows, and waits once."""
    split(place)
    with debuginfod(place) as url:
        process, _, env = held(place, DEBUGINFOD_URLS=url)
        done = place.allium("watch", str(process.pid), "--once", "--older-than", "1ms", env=env)
        check("holder.c:" in done.out, done.out)
    with Server(lambda _, handler: until_gone(handler)) as server:
        env = fresh(place, ALLIUM_DEBUGINFOD="", DEBUGINFOD_URLS=server.url)
        watch = place.start(built("ALLIUM"), "watch", str(process.pid), "--interval", "10ms", "--older-than", "1ms",
                            env=env)
        wait_until(lambda: server.begun, 30, "a request")
        time.sleep(BUDGET_S + 1)
        tap.stop(process)
        out, err = watch.communicate(timeout=tap.TIMEOUT)
        check(NEVER.fullmatch(err.decode()) and len(server.asked) == 1, err, server.asked)


def better_than_known(place):
    """Names that allium's cache had found without a debug file give way."""
    split(place)
    process, report, env = held(place)
    check("hold" not in functions(place.allium(*report, env=env)), "it was named without a debug file")
    with debuginfod(place) as url:
        check("hold" in functions(place.allium(*report, env=dict(env, DEBUGINFOD_URLS=url))), "the old name stayed")


def trickle(_, handler):
    """A byte now and then."""
    send(handler, b"\x7f", 1 << 20)
    while not until_gone(handler, 0.2):
        handler.wfile.write(b"E")


def leftovers(env):
    """Files in the client's cache, and its words that there is none."""
    return [name for _, _, names in os.walk(env["XDG_CACHE_HOME"] + "/debuginfod_client") for name in names
            if name.startswith("debuginfo")]


def hanging(place):
    """However a server hangs, the budget holds; it is said in one line, and soon nobody asks any more."""
    split(place)
    gone = threading.Event()

    def hang(_, handler):
        if until_gone(handler):
            gone.set()

    def trickle_on(*of):
        with contextlib.suppress(OSError):
            trickle(*of)
        gone.set()
    for behaviour in (hang, trickle_on):
        gone.clear()
        with Server(behaviour) as server:
            process, report, env = held(place, ALLIUM_DEBUGINFOD="", DEBUGINFOD_URLS=server.url)
            done = place.allium(*report, env=env)
            check(NEVER.fullmatch(done.err) and NEVER.fullmatch(done.err).groups() == ("1", "1"), repr(done.err))
            check("hold" not in functions(done), functions(done))
            check(gone.wait(tap.TIMEOUT), "somebody still asks")
            wait_until(lambda: not leftovers(env), 20, "nothing left of what came in part")
            tap.stop(process)


def black_hole(place):
    """A server whose machine does not answer at all."""
    split(place)
    with socket.socket() as server, contextlib.ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # its queue is full from then on: what else wants to connect gets no answer
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        process, report, env = held(place, ALLIUM_DEBUGINFOD="",
                                    DEBUGINFOD_URLS="http://127.0.0.1:%d" % server.getsockname()[1])
        done = place.allium(*report, env=env)
        check(NEVER.fullmatch(done.err), repr(done.err))


def one_budget(place):
    """Many files share it; at the end of a run, too."""
    libraries = 12
    with open(place.path("part.c"), "w") as file:
        file.write("#include <stdlib.h>\nvoid *volatile p;\nvoid NAME(void) { p = malloc(1000); }\n")
    with open(place.path("main.c"), "w") as file:
        calls = ["part%d" % i for i in range(libraries)]
        file.write("".join("void %s(void);\n" % name for name in calls) + "int main(void) { %s }\n" %
                   " ".join(name + "();" for name in calls))
    for i in range(libraries):
        tap.succeed(["gcc", "-g", "-shared", "-fPIC",
                     "-DNAME=part%d" % i, "-o",
                     "lib%d.so" % i, "part.c"], cwd=place.folder)
    tap.succeed(["gcc", "-g", "-o", "many", "main.c", *[place.path("lib%d.so" % i) for i in range(libraries)]],
                cwd=place.folder)
    for name in ["many"] + ["lib%d.so" % i for i in range(libraries)]:
        tap.succeed(["strip", name], cwd=place.folder)
    with Server(lambda _, handler: until_gone(handler)) as server:
        done = place.allium("run", "--period", "1", "-o", "r.allium", "--", "./many",
                            env=fresh(place, ALLIUM_DEBUGINFOD="", DEBUGINFOD_URLS=server.url))
        wait_until(lambda: len(server.over) == len(server.begun), tap.TIMEOUT, "nobody asks any more")
        # One after the other, with a budget each, they would come in as many rounds as there are files. The machine's
        # load may make one late for the first.
        check(server.rounds() <= 2 and len(server.begun) <= libraries + 1, server.begun, server.over)
        said = NEVER.search(done.err)
        check(said and int(said.group(2)) == libraries + 1 == int(said.group(1)), repr(done.err))
    place.allium("report", "r.allium")


def not_there(place):
    """A server that is down, one whose name nobody knows: said in one line."""
    stripped, _ = split(place)
    without = bare(place, stripped)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        process, report, env = held(place, DEBUGINFOD_URLS="http://127.0.0.1:%d" % closed.getsockname()[1])
        done = place.allium(*report, env=env)
        check(
            re.fullmatch("allium: debug files of 1 of 1 binaries could not be fetched from DEBUGINFOD_URLS: .*refused\n",
                         done.err), repr(done.err))
        check("hold" not in functions(done), functions(done))
        equal(record(place, stripped, DEBUGINFOD_URLS=env["DEBUGINFOD_URLS"]), without, "names")


def unasked(place):
    """Nobody is asked without servers, with off, and for what is known here; a server that has nothing is asked once.
    """
    stripped, wanted = split(place)
    with Server(absent) as server:
        process, report, env = held(place, DEBUGINFOD_URLS="")
        trace = place.path("trace")
        for urls in ({}, {"DEBUGINFOD_URLS": " "}):
            tap.succeed(
                ["strace", "-f", "-o", trace, "-e", "trace=network,fork,vfork,clone,clone3",
                 built("ALLIUM"), *report], cwd=place.folder, env=dict(fresh(place), **urls))
            calls = [line for line in open(trace).read().splitlines() if "(" in line and "CLONE_THREAD" not in line]
            equal(calls, [], "processes and connections")
            told = place.allium(*report, "--debuginfod", "wait", env=dict(env, **urls)).err
            check("has no effect: set DEBUGINFOD_URLS" in told and told.count("\n") == 1,
                  repr(told))
            equal(
                place.allium(*report, env=dict(env, ALLIUM_DEBUGINFOD="wait", **urls)).err, "",
                "words to who did not ask")
        asks = dict(env, DEBUGINFOD_URLS=server.url)
        place.allium(*report, "--debuginfod", "off", env=asks)
        place.allium(*report, env=dict(asks, ALLIUM_DEBUGINFOD="off"))
        equal(server.asked, [], "files asked for")
        for _ in range(2):
            equal(place.allium(*report, env=asks).err, "", "words about a file that does not exist")
        equal(server.asked, [wanted], "files asked for")
        whole = place.start_holder()  # has its debug information in itself
        place.allium("report", str(whole.pid), env=asks)
        equal(server.asked, [wanted], "files asked for")


def late(wait, debug):
    """Sends the file when wait(seconds) is over."""
    def answer(_, handler):
        wait(HANG_S)
        send(handler, debug)
    return answer


def patience(place):
    """A server that takes longer than the budget: --debuginfod says how long to wait."""
    split(place)
    debug = open(place.path("debug/holder.debug"), "rb").read()
    slow = threading.Event()
    with Server(late(slow.wait, debug)) as server:
        process, report, env = held(place, ALLIUM_DEBUGINFOD="", DEBUGINFOD_URLS=server.url)
        check(" within 100 ms;" in place.allium(*report, "--debuginfod", "100ms", env=env).err, "no word of 100 ms")
        equal("hold" in functions(place.allium(*report, env=env)), False, "names in time")
        timer = threading.Timer(BUDGET_S + 2, slow.set)
        timer.start()
        done = place.allium(*report, "--debuginfod", "wait", env=env)
        equal(("hold" in functions(done), done.err), (True, ""), "names, and words, of who waits")
        timer.join()
    for words, more in (
        (("--debuginfod", "soon"), {}),
        ((), {"ALLIUM_DEBUGINFOD": "soon"}),
        (("--debuginfod", "1000h"), {}),
    ):
        said = place.allium(*report, *words, env=more, code=2).err
        check(said.startswith("allium: ") and "off, wait" in said and said.count("\n") == 1, repr(said))


def while_it_runs(place):
    """allium run asks while the program runs: nobody waits, and names that were stored before become better."""
    split(place)
    debug = open(place.path("debug/holder.debug"), "rb").read()
    answer = threading.Event()

    def stored():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(
                sqlite3.connect("file:%s?mode=ro" % place.path("r.allium"), uri=True)) as db:
            return [row for row in db.execute(NAMES)]
    with Server(late(answer.wait, debug)) as server:
        env = fresh(place, DEBUGINFOD_URLS=server.url)
        process = place.start(built("ALLIUM"), "run", "-o", "r.allium", "--period", "1", "--", place.path("bin/holder"),
                              env=env)
        wait_until(stored, 30, "names in the recording")
        check(all(row[1] == "" for row in stored()), stored())
        answer.set()
        wait_until(lambda: any(row[0] == "hold" and row[2] for row in stored()), 60, "better names, while it runs")
        out, err = process.communicate(timeout=tap.TIMEOUT)
        equal((process.returncode, b"DEBUGINFOD" in err), (0, False), "code, and a word of what did not come")


def child_of_a_moment(place):
    """A process that ends long before its command does, and before the answer, gets its names, too."""
    stripped, _ = split(place)
    debug = open(place.path("debug/holder.debug"), "rb").read()
    ended, sent = place.path("ended"), place.path("sent")
    script = '%s 1; touch ended; while ! [ -e sent ]; do sleep 0.02; done' % stripped

    def after_its_end(_, handler):
        wait_until(lambda: os.path.exists(ended), HANG_S, "the end of the process")
        send(handler, debug)
        open(sent, "w").close()
    with Server(after_its_end) as server:
        found = record(place, "sh", "-c", script, DEBUGINFOD_URLS=server.url)
    check(any(row["function"] == "hold" and row["line"] for row in found), found)


def enough_of_it(place):
    """Whoever waits at the end of a run may interrupt that; the recording is whole."""
    split(place)
    with Server(lambda _, handler: until_gone(handler)) as server:
        process = place.start(built("ALLIUM"), "run", "-o", "r.allium", "--period", "1", "--debuginfod", "wait", "--",
                              place.path("bin/holder"), "1", env=fresh(place, DEBUGINFOD_URLS=server.url))
        wait_until(lambda: server.begun, 30, "a request")
        time.sleep(0.5)
        equal(process.poll(), None, "its code, while it waits")

        def interrupted():
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
            return process.poll() is not None
        wait_until(interrupted, tap.TIMEOUT, "its end")  # again: one that comes before it waits is the program's
        said = process.communicate(timeout=tap.TIMEOUT)[1]
        equal(process.returncode, 0, "code")
        check(said.endswith(b"allium: debug files of 1 of 1 binaries were not waited for\n"), said)
    equal(len(json.loads(place.allium("report", "r.allium", "--json").out)["processes"]), 1, "processes")


def endless(handler):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    piece = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    while True:
        handler.wfile.write(piece)


def hostile(place):
    """What is not the debug file asked for, or too long, changes nothing."""
    stripped, _ = split(place)
    without = bare(place, stripped)
    debug = open(place.path("debug/holder.debug"), "rb").read()
    split(place, "other", program("dangling"))
    other = open(place.path("debug/other.debug"), "rb").read()
    answers = {
        "nothing": lambda h: send(h, b""),
        "garbage": lambda h: send(h, random.Random(1).randbytes(100000)),
        "text": lambda h: send(h, b"<html>Please log in</html>"),
        "another program's": lambda h: send(h, other),
        "half of it": lambda h: send(h, debug[:len(debug) // 2]),
        "its header": lambda h: send(h, debug[:64]),
        "an end too soon": lambda h: send(h, debug, 2 * len(debug)),
        "an error": lambda h: h.send_error(500),
        "no HTTP": lambda h: h.wfile.write(b"\x00" * 1000),
        "in circles": lambda h: (h.send_response(302), h.send_header("Location", h.path), h.end_headers()),
        "ten GiB": lambda h: send(h, debug, 10 << 30),
        "no end": endless,
    }
    for name, answer in answers.items():
        with Server(lambda _, handler, answer=answer: answer(handler)) as server:
            env = fresh(place, DEBUGINFOD_URLS=server.url, DEBUGINFOD_MAXSIZE=str(1 << 20))
            place.allium("run", "--quiet", "--period", "1", "--force", "-o", "r.allium", "--", stripped, "1", env=env)
            check(server.asked, name, "was not asked for")
            equal(names(place), without, "names with " + name)
            sizes = [
                os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(env["XDG_CACHE_HOME"])
                for file in files
            ]
            check(max(sizes) <= 1 << 20, name, "left a file of", max(sizes))


def damaged(place):
    """A debug file with the right build id, and bytes that lie: names may be wrong, but nothing breaks."""
    stripped, _ = split(place)
    debug = open(place.path("debug/holder.debug"), "rb").read()
    note = debug.index(b"GNU\0") - 12
    process, report, env = held(place)
    for seed in range(tap.pick(20, 400)):
        rand, data = random.Random(seed), bytearray(debug)
        for _ in range(rand.choice((1, 5, 50))):
            at = rand.randrange(64, len(data))
            if not note <= at < note + 36:
                data[at] = rand.randrange(256)
        with Server(lambda _, handler: send(handler, bytes(data))) as server:
            done = place.allium(*report, env=fresh(place, DEBUGINFOD_URLS=server.url), code=None)
        equal(done.returncode, 0, "code with the damage of seed %d, which said %s" % (seed, done.err))


def no_library(place):
    """Without libdebuginfod all is as without servers, and allium doctor says so."""
    stripped, _ = split(place)
    without = bare(place, stripped)
    os.mkdir(place.path("lib"))
    open(place.path("lib/libdebuginfod.so.1"), "w").close()
    found = {}
    with Server(absent) as server:
        for name, env in (("here", {}), ("absent", {"LD_LIBRARY_PATH": place.path("lib")})):
            env["DEBUGINFOD_URLS"] = server.url
            if name == "absent":
                equal(record(place, stripped, **env), without, "names without the library")
            found[name] = {
                row["what"]: row
                for row in json.loads(place.allium("doctor", "--json", env=env).out)["rows"]
            }["debug file servers"]
    equal({name: row["works"]
           for name, row in found.items()}, {"here": "yes", "absent": "no"}, "what allium doctor says")
    check(server.url in found["here"]["found"] and "libdebuginfod" in found["absent"]["found"], found)
    equal(server.asked, [], "files asked for")


tap.main([(name, placed(function)) for name, function in [
    ("debuginfod's names and lines are those of an installed debug file", real),
    ("what dwz has moved into a third file comes, too", shared_by_dwz),
    ("what was learnt once needs no server", kept),
    ("allium watch asks once", watched),
    ("names found without a debug file give way to better ones", better_than_known),
    ("a server that hangs or trickles costs the budget and no more", hanging),
    ("a server that does not answer at all", black_hole),
    ("many files share one budget", one_budget),
    ("a server that is down is told in one line", not_there),
    ("nobody is asked when there is nothing to ask", unasked),
    ("--debuginfod says how long to wait", patience),
    ("while a program runs nobody waits", while_it_runs),
    ("what ends before the answer is named, too", child_of_a_moment),
    ("waiting at the end of a run can be interrupted", enough_of_it),
    ("what is not the file asked for changes nothing", hostile),
    ("damaged debug files break nothing", damaged),
    ("without the library all is as without servers", no_library),
]])
