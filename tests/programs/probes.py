# SPDX-License-Identifier: BSD-2-Clause
"""What the agent's probes tell: to gdb, which needs no rights; to bpftrace and perf, by the kernel's uprobes.

The truth is what a program says that it did, and at period 1 the ledger's exact counts. tests/checks/probes looks at
the sites themselves.
"""
import collections
import contextlib
import ctypes
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import agent_env, built, check, equal, pick, private_dir, run, succeed, totals, wait_until

# Who listens to a file hears of every process that has it: other tests run beside this one, and so it has a copy of its
# own.
OWN = tempfile.TemporaryDirectory(prefix="allium-probes-")
tap.replace_built("ALLIUM_AGENT", shutil.copy(built("ALLIUM_AGENT"), OWN.name))
FOLDER = built("TEST_PROGRAMS")
PROBES = {"allium:malloc": 4, "allium:calloc": 4, "allium:realloc": 6, "allium:free": 4, "otel_memory:alloc": 3,
          "otel_memory:free": 1}
BEGINNINGS = ("allium:malloc", "allium:calloc", "allium:realloc")


def program(name):
    return os.path.join(FOLDER, name)


def told(*words):
    return [program("probe_calls"), *words]


class Heard:
    """Hits of probes in their order: [(name, argument, ...)]."""

    def __init__(self, hits):
        self.hits = hits

    def of(self, *names):
        return [hit for hit in self.hits if hit[0] in names]


def hits_in(text):
    """Of what a listener printed, a hit to a line."""
    words = [line.split() for line in text.splitlines()]
    return [(line[0], *map(int, line[1:])) for line in words if line and line[0] in PROBES]


def gdb(script, *words):
    return ["gdb", "-q", "-nx", "-batch", "-ex", "set startup-with-shell off", *script,
            "-ex", "source " + os.path.join(HERE, "listen.gdb.py"), *words]


def gdb_env(folder, names=PROBES):
    return dict(os.environ, LISTEN_TO=folder + "/heard", DEBUGINFOD_URLS="",
                LISTEN_FOR=" ".join("%s=%d" % (name, PROBES[name]) for name in names))


def heard_by_gdb(folder):
    text = read(folder + "/heard")
    equal(text[:10], "listening\n", "gdb's first word")
    return Heard(hits_in(text))


def under_gdb(command, period, names=PROBES):
    """-> (Heard, the program's output, its ledger)"""
    with private_dir() as folder:
        env = agent_env(folder + "/ledgers", period, ALLIUM_SEED=1)
        os.mkdir(folder + "/ledgers", 0o700)
        settings = [word for name in ("LD_PRELOAD", "ALLIUM_DIR", "ALLIUM_PERIOD", "ALLIUM_SEED")
                    for word in ("-ex", "set environment %s=%s" % (name, env[name]))]
        done = succeed(gdb(settings, "--args", *command), env=gdb_env(folder, names))
        (ledger,) = totals(folder + "/ledgers")
        tap.no_losses(ledger)
        return heard_by_gdb(folder), done.stdout.decode(), ledger


def as_told(lines, first):
    """The hits that a program's own words ask for at period 1; `first` is the serial of its first block."""
    serials, hits, serial = {}, [], first - 1
    for line in lines:
        call, p, size, *old = line.split()[:1] + [int(word, 16) for word in line.split()[1:]]
        if call == "free":
            hits += [("allium:free", p, size, size, serials.pop(p)), ("otel_memory:free", p)]
            continue
        if call == "failed":
            hits += [("otel_memory:free", p), ("otel_memory:alloc", p, size, size)]
            continue
        gone = serials.pop(old[0]) if old and old[0] else 0
        if gone:
            hits += [("otel_memory:free", old[0]), ("allium:free", old[0], old[1], old[1], gone)]
        if p:
            serial += 1
            serials[p] = serial
        beginning = ("allium:" + call, p, size, size, serial if p else 0)
        hits.append(beginning + (old[0], gone) if old else beginning)
        if p:
            hits.append(("otel_memory:alloc", p, size, size))
    return hits


WORDS = ("malloc", "calloc", "realloc", "free", "failed")


def each_call():
    heard, out, _ = under_gdb(told("calls"), 1)
    lines = [line for line in out.splitlines() if line.split(" ")[0] in WORDS]
    check(len(lines) > 20, "the program said little:", out)
    size = int(lines[0].split()[2], 16)
    first = next(hit for hit in heard.of("allium:malloc") if hit[1:3] == (int(lines[0].split()[1], 16), size))
    at = heard.hits.index(first)
    for number, (have, want) in enumerate(zip(heard.hits[at:], as_told(lines, first[4]))):
        equal(have, want, "hit %d" % number)
    equal(len(heard.hits) - at, len(as_told(lines, first[4])), "hits")


def beginnings(heard):
    """{serial: (address, size, weighted bytes)}; each serial once."""
    begun = {}
    for _, p, size, weight, serial, *_ in heard.of(*BEGINNINGS):
        if serial:
            check(serial not in begun, "serial", serial, "begins twice")
            begun[serial] = p, size, weight
    return begun


def ends(heard):
    """The same of what ends; and a realloc names what it ended."""
    ended = {}
    for _, p, size, weight, serial in heard.of("allium:free"):
        check(serial not in ended, "serial", serial, "ends twice")
        ended[serial] = p, size, weight
    for *_, old, gone in heard.of("allium:realloc"):
        check(not gone or ended[gone][0] == old, "realloc of serial", gone, "at", old)
    return ended


def agrees(heard, ledger):
    """Every life is told, and in pairs."""
    begun, ended = beginnings(heard), ends(heard)
    equal(len(begun), ledger["allocated_samples"], "beginnings and the ledger's allocations")
    equal(len(ended), ledger["freed_samples"], "ends and the ledger's frees")
    for serial, life in ended.items():
        equal(life, begun.get(serial), "end and beginning of serial %d" % serial)
    return begun


def exact(name, *words):
    def test():
        heard, _, ledger = under_gdb([program(name), *words], 1)
        begun = agrees(heard, ledger)
        check(len(begun) > 10, "hardly anything was told:", len(begun))
        equal(sum(size for _, size, _ in begun.values()), round(ledger["allocated_bytes"]), "bytes")
        equal(sum(weight for *_, weight in begun.values()), round(ledger["allocated_bytes"]), "weighted bytes")
        live = collections.Counter()  # by address, as a listener without serials does it
        for name_, p, *_ in heard.of("otel_memory:alloc", "otel_memory:free"):
            live[p] += 1 if name_ == "otel_memory:alloc" else -1
            check(live[p] in (0, 1), "otel_memory tells two lives of one address at a time")
        equal(sum(live.values()), ledger["live_samples"], "what otel_memory holds live")
    return test


def weights(period, blocks, samples):
    """Against the bytes that were asked for, within 5 standard deviations of the estimate: of sizes of 1 to 1024 bytes
    its variance is the sum of n^2 (1 - p) / p. And against the ledger's sum of the same samples, in 256ths: whole
    numbers differ from it by less than one each, up and down; so 8 standard deviations of as many fair roundings.
    """
    def test():
        heard, out, ledger = under_gdb(told("many", str(blocks)), period, ("allium:malloc", "allium:free"))
        begun = beginnings(heard)
        check(len(begun) >= samples, "only %d samples" % len(begun))
        equal(len(begun), ledger["allocated_samples"], "samples")
        estimate = sum(weight for *_, weight in begun.values())
        truth = int(re.search(r"bytes (\d+)", out)[1])
        chances = [1 - math.exp(-n / period) for n in range(1, 1025)]
        deviation = math.sqrt(blocks / 1024 * sum(n * n * (1 - p) / p for n, p in enumerate(chances, 1)))
        print("# %d samples: %d bytes, estimated as %d, deviation %.0f" % (len(begun), truth, estimate, deviation))
        check(abs(estimate - truth) < 5 * deviation, "far from the truth")
        drift = abs(estimate - ledger["allocated_bytes"])
        check(drift < 8 * math.sqrt(len(begun)) / 2, "drifts by %.1f from the ledger's" % drift)
        for serial, life in ends(heard).items():
            equal(life, begun[serial], "end and beginning of serial %d" % serial)
    return test


class Rounds:
    """probe_calls rounds under the agent, which does its pairs when it is told to."""

    def __init__(self, folder):
        os.mkdir(folder + "/ledgers", 0o700)
        self.ledgers = folder + "/ledgers"
        self.process = subprocess.Popen(told("rounds"), env=agent_env(self.ledgers, 1), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        equal(self.process.stdout.readline(), b"ready\n", "the program's word")

    def go(self, rounds):
        self.process.stdin.write(b"." * rounds)
        self.process.stdin.flush()
        for _ in range(rounds):
            equal(self.process.stdout.readline(), b"done\n", "the program's word")

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(tap.TIMEOUT), 0, "the program's code")
        (ledger,) = totals(self.ledgers)
        return ledger

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


def pairs_of_rounds(heard, rounds):
    """What was heard of allium:malloc and allium:free is so many rounds."""
    count = collections.Counter(hit[0] for hit in heard.hits)
    equal((count["allium:malloc"], count["allium:free"]), (100 * rounds,) * 2, "pairs told")
    equal(sorted(ends(heard).items()), sorted(beginnings(heard).items()), "ends and beginnings")
    equal({size for _, size, _ in beginnings(heard).values()}, {100}, "sizes")


def running_gdb():
    with private_dir() as folder, Rounds(folder) as rounds:
        rounds.go(2)
        listener = subprocess.Popen(gdb([], "-p", str(rounds.process.pid)), env=gdb_env(folder),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(folder + "/heard") and open(folder + "/heard").readline(), 60,
                       "gdb listens")
            rounds.go(3)
            rounds.end()
            listener.wait(tap.TIMEOUT)
        finally:
            tap.stop(listener, signal.SIGKILL)
        pairs_of_rounds(Heard(heard_by_gdb(folder).of("allium:malloc", "allium:free")), 3)


class Attribute(ctypes.Structure):
    """struct perf_event_attr, of as many bytes as its third version has."""
    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("unused", ctypes.c_uint64 * 6),
                ("path", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 3)]


def uprobes_denied():
    """Why the kernel gives us no uprobe in the agent's file; None if it does."""
    kind = "/sys/bus/event_source/devices/uprobe/type"
    if not os.path.exists(kind):
        return "the kernel has none"
    path = ctypes.create_string_buffer(built("ALLIUM_AGENT").encode())
    attribute = Attribute(type=int(open(kind).read()), size=ctypes.sizeof(Attribute), path=ctypes.addressof(path))
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(298, ctypes.byref(attribute), -1, 0, -1, 8)
    if fd < 0:
        return os.strerror(ctypes.get_errno())
    os.close(fd)
    return None


def needs_uprobes():
    why = uprobes_denied()
    if why:
        raise tap.Skipped("no uprobes here: " + why)


def doctor():
    """It says what the kernel does; and in a user namespace, where nobody has rights, that they lack."""
    for before, denied in ([], uprobes_denied()), (["unshare", "-U"], True):
        with private_dir() as folder:
            os.chmod(folder, 0o777)
            env = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_CACHE_HOME=folder)
            done = run([*before, built("ALLIUM"), "doctor", "--json"], env=env)
        (row,) = [row for row in json.loads(done.stdout)["rows"] if row["what"] == "probes"]
        equal(row["works"], "no" if denied else "yes", "doctor's word, who found: " + row["found"])
        equal("allium-probes(7)" in (row["what_to_do"] or ""), bool(denied), "advice")


# Counted in the kernel: printing each hit, it loses those that are under way when it is told to end. The intervals
# stand before and behind the probes, as it is not documented which end of the list is attached last.
BPFTRACE = """
interval:ms:50 { printf("ready1\\n"); }
usdt:AGENT:allium:malloc, usdt:AGENT:allium:calloc, usdt:AGENT:allium:realloc
/arg3/
{
    @begun = count(); @size = sum(arg1); @weight = sum(arg2);
    @live[pid, arg3] = arg2 + 1;
}
usdt:AGENT:allium:free
{
    @ended = count(); @gone = sum(arg2);
    if (@live[pid, arg3] == arg2 + 1) { @paired = count(); }
    delete(@live[pid, arg3]);
}
usdt:AGENT:otel_memory:alloc { @otel_begun = count(); @otel_size = sum(arg1); @otel_weight = sum(arg2); }
usdt:AGENT:otel_memory:free { @otel_ended = count(); }
interval:ms:50 { printf("ready2\\n"); }
"""


@contextlib.contextmanager
def bpftrace(folder, *options):
    """Listens; -> a dictionary that holds the sums when the block has ended."""
    needs_uprobes()
    sums, path = collections.Counter(), folder + "/bpftrace"
    with open(path, "wb") as out, open(path + ".err", "wb") as err:
        listener = subprocess.Popen(["bpftrace", "-q", "-B", "line", *options, "-e",
                                     BPFTRACE.replace("AGENT", built("ALLIUM_AGENT"))], stdout=out, stderr=err,
                                    stdin=subprocess.DEVNULL, env=dict(os.environ, BPFTRACE_MAP_KEYS_MAX="65536"))

    def ready():
        check(listener.poll() is None, "bpftrace ended:", read(path + ".err"))
        return {"ready1", "ready2"} <= set(read(path).split())
    try:
        wait_until(ready, 60, "bpftrace listens")
        yield sums
        listener.send_signal(signal.SIGINT)
        listener.wait(tap.TIMEOUT)
    finally:
        tap.stop(listener, signal.SIGKILL)
    sums.update({name: int(value) for name, value in re.findall(r"^@(\w+): (\d+)$", read(path), re.M)})
    sums["left"] = len(re.findall(r"^@live\[\d+, \d+\]:", read(path), re.M))


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def before_bpftrace(name, *words, processes=1):
    """Attached to the file, before anything runs that has it."""
    def test():
        with private_dir() as folder:
            with bpftrace(folder) as sums:
                succeed([program(name), *words], env=agent_env(folder + "/ledgers", 1))
            ledgers = totals(folder + "/ledgers")
        equal(len(ledgers), processes, "processes")
        begun, size, ended, live = (round(sum(ledger[name] for ledger in ledgers)) for name in (
            "allocated_samples", "allocated_bytes", "freed_samples", "live_samples"))
        check(begun > 10, "hardly a sample:", ledgers)
        equal((sums["begun"], sums["size"], sums["weight"]), (begun, size, size), "what begins, its bytes, weighted")
        equal((sums["ended"], sums["paired"], sums["left"]), (ended, ended, live), "what ends, pairs, is left")
        # and what a realloc that failed ends and begins anew
        anew = sums["otel_ended"] - ended
        check(anew >= 0, "otel_memory ends %d too few" % -anew)
        equal(sums["otel_begun"], begun + anew, "what otel_memory begins")
        check(anew or (sums["otel_size"], sums["otel_weight"]) == (size, size), "otel_memory tells other bytes:", sums)
    return test


def running_bpftrace():
    with private_dir() as folder, Rounds(folder) as rounds:
        rounds.go(2)
        with bpftrace(folder, "-p", str(rounds.process.pid)) as sums:
            rounds.go(3)
        ledger = rounds.end()
    equal((sums["begun"], sums["ended"], sums["paired"], sums["left"]), (300, 300, 300, 0),
          "begun, ended, paired, left")
    equal((sums["size"], sums["weight"], sums["gone"]), (30000,) * 3, "bytes")
    equal((sums["otel_begun"], sums["otel_ended"], sums["otel_weight"]), (300, 300, 30000), "the same of otel_memory")
    check(ledger["allocated_samples"] >= 500, "the ledger has less:", ledger)


PERF = """
set -e
cd "$HOME"
mount -t tracefs tracefs /sys/kernel/tracing
perf buildid-cache --add "$1"
trap 'perf probe -q -d "sdt_allium:*" 2>/dev/null' EXIT
perf probe -q sdt_allium:malloc
perf probe -q sdt_allium:free
shift
perf record -q -B -m 1024 -g -e 'sdt_allium:*' -o data "$@"
perf script -i data -F event,trace,ip,sym
"""


class Perf:
    """perf record, in a mount namespace of its own, where tracefs is mounted: no other test sees it, and it goes by
    itself.
    """

    def __init__(self, folder, *words):
        needs_uprobes()
        self.home = folder + "/home"
        os.mkdir(self.home)
        for name in ("control", "answer"):
            os.mkfifo(self.home + "/" + name)
        with open(self.home + "/errors", "wb") as errors, open(self.home + "/hits", "wb") as out:
            self.process = subprocess.Popen(
                ["unshare", "-m", "bash", "-c", PERF, "perf", built("ALLIUM_AGENT"), *words], stdin=subprocess.DEVNULL,
                stdout=out, stderr=errors, env=dict(os.environ, HOME=self.home), start_new_session=True)

    def enable(self):
        control, answer = (os.open(self.home + "/" + name, os.O_RDWR | os.O_NONBLOCK) for name in ("control", "answer"))
        try:
            os.write(control, b"enable\n")
            wait_until(lambda: answered(answer) or self.process.poll() is not None, 60, "perf listens")
        finally:
            os.close(control)
            os.close(answer)

    def hits(self, callers):
        """Of malloc and free, once the program has ended; `callers` are the functions on the stack behind the agent's:
        three at -O0.
        """
        equal(self.process.wait(tap.TIMEOUT), 0, "code of perf, which said " + read(self.home + "/errors"))
        hits = []
        for block in read(self.home + "/hits").split("\n\n"):
            for name, values in re.findall(r"sdt_allium:(\w+?)(?:_\d+)?:(.*)", block):
                hits.append(("allium:" + name, *map(int, re.findall(r"arg\d=(\d+)", values))))
                stack = re.findall(r"^\s+[0-9a-f]+ (\S+)", block, re.M)
                known = [k for k, function in enumerate(stack) if function == callers[0]]
                check(known in ([1], [2], [3]) and stack[known[0]:][:len(callers)] == callers, "the stack of", hits[-1],
                      "is", stack)
        return hits

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)  # not SIGKILL: the shell takes its events away
            self.process.wait(tap.TIMEOUT)


def answered(answer):
    with contextlib.suppress(BlockingIOError):
        return b"ack" in os.read(answer, 100)


def before_perf():
    with private_dir() as folder:
        env = agent_env(folder + "/ledgers", 1)
        settings = ["%s=%s" % (name, env[name]) for name in ("LD_PRELOAD", "ALLIUM_DIR", "ALLIUM_PERIOD")]
        with Perf(folder, "--", "env", *settings, *told("many", "2000")) as listener:
            heard = Heard(listener.hits(["many", "main"]))
        (ledger,) = totals(folder + "/ledgers")
    equal(len(agrees(heard, ledger)), 2000, "blocks")


def running_perf():
    with private_dir() as folder, Rounds(folder) as rounds:
        rounds.go(2)
        with Perf(folder, "-D", "-1", "--control", "fifo:control,answer", "-p", str(rounds.process.pid)) as listener:
            listener.enable()
            rounds.go(3)
            rounds.end()
            pairs_of_rounds(Heard(listener.hits(["rounds", "main"])), 3)


def main():
    tap.main([
        ("each call is told once, in its order, with what it was asked for", each_call),
        ("the malloc family: every life is told, in pairs", exact("family")),
        ("the same on jemalloc", exact("family_jemalloc", "no-pvalloc")),
        ("C++ operators", exact("operators")),
        ("C++ operators of jemalloc's own", exact("operators_jemalloc")),
        ("weighted bytes are unbiased", weights(1 << 17, pick(400_000, 4_000_000), pick(1000, 10_000))),
        ("their rounding is, too", weights(3, pick(1000, 10_000), pick(900, 9000))),
        ("gdb, attached to a program that runs", running_gdb),
        ("doctor says whether uprobes work", doctor),
        ("bpftrace, attached before the start", before_bpftrace("probe_calls", "many", "2000")),
        ("bpftrace, attached before the start: four threads", before_bpftrace("probe_calls", "threads", "5000")),
        ("bpftrace, attached before the start: a fork", before_bpftrace("probe_calls", "fork", processes=2)),
        ("bpftrace, attached before the start: the malloc family", before_bpftrace("family")),
        ("bpftrace, attached before the start: C++ operators of jemalloc's own", before_bpftrace("operators_jemalloc")),
        ("bpftrace, attached to a program that runs", running_bpftrace),
        ("perf, attached before the start", before_perf),
        ("perf, attached to a program that runs", running_perf),
    ])


if __name__ == "__main__":
    main()
