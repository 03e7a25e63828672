# SPDX-License-Identifier: BSD-2-Clause
"""The program's own events (<allium/event.h>), read by babeltrace2's library: each value at its limits, each count, in C
and C++, with the agent and without; switched by patterns, while the program runs, too; after dlclose(), in fork
children, before SIGKILL.
"""
import contextlib
import itertools
import json
import os
import re
import signal
import struct
import subprocess
import sys
from collections import Counter

import bt2

sys.dont_write_bytecode = True
import building
import lttng_form
import tap
from building import linked, quiet, scratch
from tap import agent_env, built, check, equal, private_dir, run, succeed

HERE = os.path.dirname(os.path.abspath(__file__))
ALLIUM, RINGS = built("ALLIUM"), built("TEST_EVENT_RINGS")
COMPILERS = {
    "gcc": ["gcc", "-std=gnu11", "-Wpedantic"], "clang": ["clang", "-std=c11", "-D_GNU_SOURCE", "-Wpedantic"],
    "g++": ["g++", "-x", "c++", "-std=c++11", "-Wpedantic"], "clang++": ["clang++", "-x", "c++", "-std=c++17"],
    "g++20": ["g++", "-x", "c++", "-std=c++20", "-Wpedantic"], "O0": ["gcc", "-O0"], "lto": ["gcc", "-flto"],
}
THREADS, TICKS, FULL, CHILDREN, OF_CHILD = 4, 10000, 400000, 40, 1000


def program(compiler="gcc", name="events"):
    out = scratch("%s-%s" % (name, compiler))
    if not os.path.exists(out):
        sources = [os.path.join(HERE, "events.c"), os.path.join(HERE, "events_other.c")]
        quiet([*COMPILERS[compiler], "-O2" if compiler != "O0" else "-g", "-I", building.INCLUDE, *building.STRICT,
               *sources, "-x", "none", "-o", out, *linked()])
    return out


def plugin():
    out = scratch("events_plugin.so")
    if not os.path.exists(out):
        quiet(["gcc", "-O2", "-fPIC", "-shared", "-I", building.INCLUDE, *building.STRICT,
               os.path.join(HERE, "events_other.c"), "-o", out, *linked()])
    return out


def plain(field):
    if isinstance(field, bt2._StructureFieldConst):
        return {name: plain(field[name]) for name in field}
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(element) for element in field]
    if isinstance(field, bt2._EnumerationFieldConst):
        with contextlib.suppress(AssertionError):  # what bt2 2.0.4 does for a value without a label
            return int(field), sorted(field.labels)
        return int(field), []
    return str(field) if isinstance(field, bt2._StringFieldConst) else float(field) if isinstance(
        field, bt2._RealFieldConst) else int(field)


def events(folder):
    """-> [(name, process, thread, flags, fields, id of the class)] in the order of time"""
    found = []
    if not os.path.exists(folder + "/metadata"):
        return found
    with contextlib.suppress(FileNotFoundError):
        if len(os.listdir(folder)) < 2:
            return found
    for message in bt2.TraceCollectionMessageIterator(folder):
        if type(message) is bt2._EventMessageConst:
            event = message.event
            context = plain(event.common_context_field)
            found.append((event.name, int(event.packet.context_field["vpid"]), context["vtid"], context["flags"],
                          plain(event.payload_field), event.cls.id))
    return found


def traced(command, listed, *more, ends=0):
    """-> (events, what the program said, what allium said)"""
    with private_dir() as folder:
        done = run([ALLIUM, "trace", "--events", listed, "-o", folder + "/t", *more, "--", *command])
        equal(done.returncode, ends, done.stderr)
        said = done.stderr.decode()
        check(", 0 lost" in said, said)
        found = events(folder + "/t/ust")
        check_exported(folder, found)
        return found, done.stdout.decode(), said


def check_exported(folder, found):
    """In LTTng's form all events but the calls of malloc are the same, but for the flags."""
    run([ALLIUM, "export", folder + "/t", "--ctf", "-o", folder + "/l"])
    exported = lttng_form.events(folder + "/l/ust/uid/%d/64-bit" % os.getuid())
    equal(len(exported), len(found), "exported events")
    have = [(e.name, e.process, e.thread, e.fields) for e in exported if not e.name.startswith("lttng_ust_libc:")]
    calls = ("malloc", "calloc", "memalign", "realloc_begin", "realloc_end", "free")
    want = [(e[0], e[1], e[2], e[4]) for e in found if e[0] not in ["allium:" + call for call in calls]]
    equal(sorted(map(repr, have)), sorted(map(repr, want)), "events in LTTng's form")


@contextlib.contextmanager
def follower(folder):
    """-> the lines that say what was read, once it has ended"""
    said = []
    command = [RINGS, "follow", folder, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), b"ready\n", "follower")
        yield said
        p.stdin.close()
        said.append([int(n) for n in p.stdout.read().split()])
    equal(p.returncode, 0, "follower")


def alone(command, listed):
    """The same without the agent, into rings of the library's own."""
    with private_dir() as folder:
        with follower(folder) as said:
            done = succeed(command, env=dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS=listed))
        found = events(folder + "/ust")
        equal((said[0][0], said[0][1]), (len(found), 0), "events, lost")
        equal([name for name in os.listdir(folder) if name.endswith((".ring", ".events"))], [], "left behind")
        return found, done.stdout.decode(), said[0]


def single(number):
    return struct.unpack("f", struct.pack("f", number))[0]


NONE = {"u8": 0, "i8": 0, "u16": 0, "i16": 0, "u32": 0, "i32": 0, "u64": 0, "i64": 0, "f32": 0.0, "f64": 0.0, "hex": 0,
        "ptr": 0, "size": 0, "kind": (0, []), "text": ""}
MOST = {"u8": 255, "i8": 127, "u16": 65535, "i16": 32767, "u32": 2**32 - 1, "i32": 2**31 - 1, "u64": 2**64 - 1,
        "i64": 2**63 - 1, "f32": 3.4028234663852886e38, "f64": sys.float_info.max, "hex": 2**64 - 1, "size": 2**64 - 1,
        "kind": (2**31 - 1, ["FOOD"]), "text": "12345"}
LEAST = {"i8": -128, "i16": -2**15, "i32": -2**31, "i64": -2**63, "f32": -1.1754943508222875e-38, "f64": 5e-324,
         "kind": (-2**31, ["TOY"]), "text": "12345"}
KEYWORDS = ("clock", "env", "event", "stream", "trace", "string", "integer", "floating_point", "typealias", "variant",
            "align", "callsite", "id", "timestamp")


def check_limits(found, said, noisy):
    evaluated, address = said.split()
    equal(int(evaluated), noisy, "arguments that were evaluated")
    own = [e for e in found if not e[0].startswith("allium:")]
    want = [
        ("shop:limits", 0, NONE), ("shop:limits", 0, {**MOST, "ptr": int(address, 16)}),
        ("shop:limits", 2, {**NONE, **LEAST}),
        ("shop:limits", 2, {**NONE, "f64": -0.1, "kind": (1, ["BOOK"]), "text": "1234"}),
        ("shop:limits", 0, {**NONE, "kind": (5, []), "text": "123\xe4"}), ("shop:empty", 0, {}),
        ("stream:event", 0, {**dict.fromkeys(KEYWORDS, 0), "clock": 1, "event": 2, "stream": 3, "string": 4,
                             "variant": 5, "timestamp": 6}),
        ("shop:large", 0, {"head": "x" * 4000, "n": 9, "tail": "end"}), ("shop:parse_begin", 0, {"bytes": 77}),
        ("shop:parse_end", 0, {}), ("shop:log", 0, {"message": "12 and text"}), ("shop:log", 2, {"message": "x" * 256}),
        ("shop:log", 2, {"message": "x" * 255}),
        *[("shop:noisy", 0, {"n": 7})] * noisy, ("shop:odd", 0, {"number": 5}),
        ("shop:tick", 0, {"thread": 1000, "count": 1}), ("shop:odd", 0, {"why": "text"}),
    ]
    for have, expected in zip(own, want):
        equal((have[0], have[3], have[4]), expected, "an event")
    equal(len(own), len(want), "events")
    odd = {e[5] for e in own if e[0] == "shop:odd"}
    equal(len(odd), 2, "classes of two events with one name")


def every_type():
    for compiler in COMPILERS:
        found, said, _ = traced([program(compiler), "limits"], "alloc,shop:*,stream:*")
        check_limits(found, said, 1)
        check(any(e[0] == "allium:malloc" for e in found), "events of the agent")
        found, said, counts = alone([program(compiler), "limits"], "user,!shop:noisy")
        check_limits(found, said, 0)
        equal(counts[2:], [1, 4, 0], "images, cut, unknown")


def check_threads(traced_ones, processes):
    found, said, _ = traced_ones
    ticks = Counter((e[1], e[4]["thread"]) for e in found if e[0] == "shop:tick")
    equal(sorted(ticks.values()), [TICKS] * THREADS * processes, "events of each thread")
    for key in ticks:
        mine = [e for e in found if e[0] == "shop:tick" and (e[1], e[4]["thread"]) == key]
        equal([e[4]["count"] for e in mine], list(range(TICKS)), "the order of %s" % (key,))
        equal(len({e[2] for e in mine}), 1, "threads of %s" % (key,))
    equal(len({e[2] for e in found if e[0] == "shop:tick"}), THREADS * processes, "thread numbers")
    equal(len({e[5] for e in found if e[0] == "shop:tick"}), 1, "classes")
    for line in said.splitlines():
        pid, signals = map(int, line.split())
        have = sorted(e[4]["n"] for e in found if e[0] == "shop:noisy" and e[1] == pid)
        equal(have, list(range(1, signals + 1)), "events of a signal handler")
    equal(len(said.splitlines()), processes, "processes that say something")


def threads():
    for way in (traced, alone):
        check_threads(way([program(), "threads"], "shop:*"), 1)
        check_threads(way([program(), "forks"], "user"), 2)
    check_threads(traced([program("g++"), "threads", "kill"], "alloc,user", ends=128 + signal.SIGKILL), 1)


def vforks():
    """Children of vfork(), clone() and of their system calls write as their parent: each event once."""
    for way, listed in ((traced, "shop:*"), (alone, "user"), (traced, "alloc,user")):
        found = way([program(), "vforks"], listed)[0]
        for thread, n in [*((thread, TICKS) for thread in range(THREADS)), (8, CHILDREN), (9, CHILDREN * OF_CHILD)]:
            mine = [e[4]["count"] for e in found if e[0] == "shop:tick" and e[4]["thread"] == thread]
            equal(sorted(mine), list(range(n)), "events of thread %d" % thread)
        equal(len({e[1] for e in found}), 1, "processes")


def frozen():
    """When the program forbids itself to read the counter, the clock stops; each event is there, in its order."""
    for way, listed in ((traced, "shop:*"), (alone, "user")):
        found = [e[4]["count"] for e in way([program(), "frozen"], listed)[0] if e[0] == "shop:tick"]
        equal(found, list(range(2 * TICKS)), "events")


def full():
    """Without a reader a ring keeps its first events; those that were written and those that were lost are all."""
    with private_dir() as folder:
        env = dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="shop:tick")
        succeed([program(), "full"], env=env)
        with follower(folder) as said:
            pass
        found = events(folder + "/ust")
        equal((said[0][0], said[0][0] + said[0][1]), (len(found), FULL), "events, and those that happened")
        check(0 < said[0][1] < FULL, said)
        equal([e[4]["count"] for e in found[:1000]], list(range(1000)), "the first ones")


def tight():
    """Where RLIMIT_AS is small, so are the rings; each event is there or counted."""
    sizes = []
    for limit in (64 << 20, 1 << 30):
        with private_dir() as folder:
            env = dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="shop:tick")
            succeed(["prlimit", "--as=%d" % limit, program(), "full"], env=env)
            sizes += [file.stat().st_size for file in os.scandir(folder) if file.name.endswith(".ring")]
            with follower(folder) as said:
                pass
            equal(said[0][0] + said[0][1], FULL, "events, and those that were lost")
    check(len(sizes) == 2 and sizes[0] < sizes[1], sizes)


TABLE_MOST, TABLE_BYTES = 2000, (512 << 10) - 16384  # descriptions, and their bytes (wire/event_table.h)


def described(labels):
    """-> bytes of the description of a kind of events_many.c"""
    return len("many:k0000\n") + len("e 4 n\n") + labels * len(" L0000=0") + sum(len(str(i)) - 1 for i in range(labels))


def many():
    out = scratch("events_many")
    if not os.path.exists(out):
        quiet(["gcc", "-O2", "-D_GNU_SOURCE", "-I", building.INCLUDE, *building.STRICT,
               os.path.join(HERE, "events_many.c"), "-o", out, *linked()])
    return out


def too_many_kinds():
    """More kinds of events than the table holds, by number and by their descriptions' bytes: events of the others are
    lost, each is counted, and the readers say so.
    """
    out = many()
    for kinds, rounds, labels in ((TABLE_MOST + 77, 3, 0), (40, 50, 2000)):
        fit = min(TABLE_MOST, TABLE_BYTES // described(labels))
        lost = (kinds - fit) * rounds
        check(10 < fit < kinds, fit)
        want = {"many:k%04d" % k: list(range(rounds)) for k in range(fit)}
        command = [out, str(kinds), str(rounds), str(labels)]
        with private_dir() as folder:
            done = run([ALLIUM, "trace", "--events", "alloc,many:*", "-o", folder + "/t", "--", *command])
            said = done.stderr.decode()
            equal(done.returncode, 0, said)
            check(", %d lost\n" % lost in said and "lost: %d without a ring" % lost in said, said)
            shown = run([ALLIUM, "events", "--by", "event", "--json", folder + "/t"])
            rows = [json.loads(line) for line in shown.stdout.splitlines()]
            equal({row["event"]: row["events"] for row in rows[1:-1] if row["event"].startswith("many:")},
                  dict.fromkeys(want, rounds), "with the agent")
            equal(rows[-1]["lost_events"], lost, "lost")
            if not labels:  # babeltrace2 takes long to read so many kinds
                continue
            equal(counts_of(events(folder + "/t/ust")), want, "with the agent, as babeltrace2 reads them")
            shown = run(["babeltrace2", folder + "/t/ust"])
            equal(sum(map(int, re.findall(rb"discarded (\d+) event", shown.stderr))), lost, "babeltrace2")
        with private_dir() as folder:
            with follower(folder) as said:
                succeed(command, env=dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="many:*"))
            equal(counts_of(events(folder + "/ust")), want, "without the agent")
            equal(said[0][:2], [fit * rounds, lost], "events, lost")


def lost_in_children():
    """Losses of children that share the memory, on other CPUs than their parent, are counted one by one, too; with
    registered sequences and without.
    """
    command = [many(), str(TABLE_MOST + 1), "1", "0", "30000"]
    for registered in "1", "0":
        env = dict(os.environ, GLIBC_TUNABLES="glibc.pthread.rseq=" + registered)
        with private_dir() as folder:
            done = run([ALLIUM, "trace", "--events", "alloc,many:*", "-o", folder + "/t", "--", *command], env=env)
            check(b", %d lost\n" % (1 + int(done.stdout)) in done.stderr, "with the agent", done.stdout, done.stderr)
        with private_dir() as folder:
            with follower(folder) as said:
                done = succeed(command, env=dict(env, ALLIUM_DIR=folder, ALLIUM_EVENTS="many:*"))
            equal(said[0][:2], [TABLE_MOST, 1 + int(done.stdout)], "without the agent: events, lost")


def counts_of(found):
    """-> {name of a kind: the values of its events, in their order}"""
    values = {}
    for name, *_, fields, _ in found:
        if name.startswith("many:"):
            values.setdefault(name, []).append(fields["n"] if isinstance(fields["n"], int) else fields["n"][0])
    return values


def slow():
    """The rings of a process without the agent are read until it has ended."""
    with private_dir() as folder:
        with follower(folder) as said:
            succeed([program(), "slow"], env=dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="user"))
        equal(said[0][:2], [4, 0], "events, lost")


def sealed():
    """In seccomp no system call is made: what needs memory that is not ready is lost, and counted."""
    for mode, happened in (("sealed", 6 * TICKS + 1), ("late", 0)):
        with private_dir() as folder:
            with follower(folder) as said:
                succeed([program(), mode], env=dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="user"))
            equal(said[0][0] + said[0][1], happened, "events, and those that were lost")
            check(said[0][0] >= happened // 2, "the events before", said)


def foreign_tables():
    """What a program says of its events may be anything: then they are left out, and counted."""
    def damage(folder, change):
        succeed([program(), "limits"], env=dict(os.environ, ALLIUM_DIR=folder, ALLIUM_EVENTS="user"))
        name, = [name for name in os.listdir(folder) if name.endswith(".events")]
        with open(folder + "/" + name, "r+b") as file:
            change(file)
        with follower(folder) as said:
            pass
        equal(said[0][0], len(events(folder + "/ust")), "events")
        return said[0][0], said[0][4]
    def put(at, data):
        return lambda file: (file.seek(at), file.write(data))
    for change, good, bad in (
        (put(0, b""), 17, 0), (put(0, b"\0" * 8), 0, 17), (lambda file: file.truncate(4096), 0, 17),
        (put(16384, b"a:b\nu 8 x\n"), 12, 5), (put(16384, b"\0"), 12, 5), (put(16384 + 5, b"\n"), 12, 5),
        (put(64, struct.pack("<Q", 2**64 - 1)), 12, 5), (put(64, struct.pack("<Q", 8 << 32 | 20)), 12, 5),
        (put(64, bytes(16000)), 0, 17),
    ):
        with private_dir() as folder:
            equal(damage(folder, change), (good, bad), "events that were read, and left out")


def flown(command, listed, *triggers, ends=0):
    """-> ({name of a snapshot: its events}, what allium said)"""
    with private_dir() as folder:
        options = [word for trigger in triggers for word in ("--snapshot-on", trigger)]
        options += ["--events", listed] if listed else []
        done = run([ALLIUM, "trace", "--flight", *options, "-o", folder + "/t", "--", *command])
        equal(done.returncode, ends, done.stderr)
        names = sorted(name for name in os.listdir(folder + "/t") if name[0].isdigit())
        return {name: events("%s/t/%s/ust" % (folder, name)) for name in names}, done.stderr.decode()


def reasons(found):
    return [e[4]["reason"] for e in found if e[0] == "allium:snapshot"]


def asks():
    """ALLIUM_SNAPSHOT(): a snapshot with that name, which has the event, too; a second within a second is only counted;
    in seccomp, too.
    """
    for compiler in ("gcc", "g++"):
        found, said = flown([program(compiler), "ask"], "alloc,shop:*")
        equal(list(found), ["1-the_queue_is_full_now", "2-sealed"], said)
        first, last = found.values()
        equal(reasons(first)[:1] + reasons(last)[-1:], ["the queue is full/now", "sealed"], "reasons")
        equal([e[4]["count"] for e in first if e[0] == "shop:tick"], list(range(100)), "events before it")
        equal([e[4]["count"] for e in last if e[0] == "shop:tick"][-1], 7777, "events before the last one")
        check("allium: 1 more trigger came within a second" in said, said)
    found, said = flown([program(), "ask sealed"], None)
    equal(list(found), ["1-sealed"], said)
    found, said = flown([program(), "ask"], "alloc,!allium:snapshot")
    equal(found, {}, said)
    found = alone([program(), "ask"], "user")[0]
    equal(reasons(found), ["the queue is full/now", "again", "sealed"], "as events, without --flight")


def event_triggers():
    """event:NAME where QUERY, of the program's own events, which it switches on."""
    found, said = flown([program(), "ask"], "alloc,!allium:*", "event:shop:tick where count=7777")
    equal(list(found), ["1-event"], said)
    equal([e[4]["count"] for e in found["1-event"] if e[0] == "shop:tick"][-1], 7777, "the event")
    found, said = flown([program(), "threads"], None, "event:shop:tick where count=%d own-thread=3" % (TICKS - 1))
    equal(list(found), ["1-event"], said)
    found, said = flown([program(), "threads"], None, "event:shop:t?ck where number>5", "event:shop:never")
    equal(found, {}, said)
    check('could not fire: query: unknown field "number"' in said and "no event shop:never was seen" in said, said)


def shadowed():
    """Fields with the names of what all events have are own-NAME in --where; DIR/ust has the names of calls, too."""
    with private_dir() as folder:
        succeed([ALLIUM, "trace", "--events", "alloc,stream:*", "-o", folder + "/t", "--", program(), "limits"])
        for query, n in (("own-event=2", 1), ("own-event=3", 0), ("event:stream:event own-event=2", 1)):
            shown = succeed([ALLIUM, "events", folder + "/t", "--where", query, "--json"]).stdout
            equal(shown.count(b"\n") - 2, n, query)
        for part in ("/t", "/t/ust"):
            shown = succeed([ALLIUM, "events", folder + part, "--json"]).stdout
            check(shown.count(b'"module":"' + os.fsencode(program())) + shown.count(b"libc.so") > 0, part, "names")


def reloads():
    for way in (traced, alone):
        found = way([program(), "reload", plugin()], "shop:*")[0]
        want = [("shop:tick", {"thread": 1000, "count": 1}), ("shop:odd", {"why": "text"})] * 3
        equal([(e[0], e[4]) for e in found], want, "events of a library that is loaded three times")
        equal(len({e[5] for e in found}), 2, "classes")


LISTS = [None, "shop:*", "shop:*,!shop:noisy", "", "other:*", "user", "!shop:tick,user"]


def switched(env, folder):
    """Switches the events of a process at run time; -> what is in its trace"""
    with follower(folder) as said:
        with subprocess.Popen([program(), "input"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as p:
            for number, listed in enumerate(LISTS):
                if listed is not None:
                    ledger, = [name for name in os.listdir(folder)
                               if name.startswith("%d-" % p.pid) and name.endswith((".tags", ".ledger"))]
                    succeed([RINGS, "set", folder + "/" + ledger, listed])
                p.stdin.write(b"%d\n" % number)
                p.stdin.flush()
                equal(p.stdout.readline(), b"done\n", "program")
            p.stdin.write(b"fork\n8\n")
            p.stdin.close()
            equal(p.stdout.read(), b"done\n", "child")
    found = events(folder + "/ust")
    equal(said[0][:2], [len(found), 0], "events, lost")
    return [(e[0][5:], e[4].get("count", e[4].get("n"))) for e in found if e[0].startswith("shop:")]


def at_run_time():
    want = [("tick", 1), ("noisy", 7), ("tick", 2), ("tick", 5), ("noisy", 7), ("noisy", 7), ("noisy", 7)]
    for preload in (None, "", "2"):
        with private_dir() as folder:
            env = dict(os.environ, ALLIUM_DIR=folder)
            if preload is not None:
                env = agent_env(folder, 1, **({"ALLIUM_SITES": preload} if preload else {}))
            equal(switched(env, folder), want, "with the agent: %s" % preload)


OFF = """
#include <allium/event.h>
#define KINDS(X) X(A, 1)
ALLIUM_EVENT(shop, order, ALLIUM_U64(id), ALLIUM_ENUM(kind, KINDS), ALLIUM_STR(customer, 24));
unsigned long next_id(void);
const char *name_of(unsigned long id);
void work(void);
void work(void)
{
    %s;
}
"""
STATEMENTS = ("allium_emit(shop, order, .id = next_id(), .customer = name_of(5))", "ALLIUM_SNAPSHOT(name_of(5))")


def costs():
    """Off: a load, a test, a branch that is not taken; nothing else before the function returns."""
    compilers = (["gcc", "-O2"], ["clang", "-O2"], ["g++", "-O2", "-x", "c++", "-fPIC"], ["gcc", "-O3"])
    for statement, compiler in itertools.product(STATEMENTS, compilers):
        source, out = scratch("off.c", OFF % statement), scratch("off.o")
        quiet([*compiler, "-fcf-protection=none", "-I", building.INCLUDE, *building.STRICT, "-c", source, "-o", out])
        text = succeed(["objdump", "-d", "--no-show-raw-insn", out]).stdout.decode()
        body = re.search(r"<(?:work|_Z4workv)>:\n(.*?)(?:\n\n|\Z)", text, re.S).group(1)
        code = [line.split("\t")[1].split() for line in body.splitlines() if "\t" in line]
        path = []
        for words in code:
            path.append(words[0])
            if words[0].startswith("ret"):
                break
        path = [word for word in path if word not in ("push", "pop", "sub", "add")]  # of the function around it
        check(path[:3] in (["mov", "test", "jne"], ["cmpl", "jne", "ret"], ["cmpl", "jne", "retq"]), compiler, path)
        check(path[3:] in (["ret"], ["retq"], []) or path[2].startswith("ret"), compiler, path)


STEPPED = """
#include <allium/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
ALLIUM_EVENT(shop, tick, ALLIUM_U64(n));
int main(void)
{
    int status;
    allium_emit(shop, tick, .n = 0);
    const pid_t child = fork();
    if (!child) {
        allium_emit(shop, tick, .n = 1); /* makes its rings */
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
            _exit(1);
        for (int i = 0; i < 5; i++)
            allium_emit(shop, tick, .n = 2);
        _exit(0);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
            abort();
    return status;
}
"""


def aborts():
    """In a program that a debugger steps, each sequence is aborted: the one of the library, then 16 of the agent."""
    out = scratch("stepped_events")
    quiet(["gcc", "-O2", "-I", building.INCLUDE, *building.STRICT, scratch("stepped_events.c", STEPPED), "-o", out,
           *linked()])
    with private_dir() as folder:
        succeed([out], env=agent_env(folder, 1 << 40, ALLIUM_SITES="2", ALLIUM_EVENTS="shop:*"))
        counts = []
        for name in os.listdir(folder):
            if name.endswith(".ring"):
                with open(os.path.join(folder, name), "rb") as file:
                    counts.append(struct.unpack_from("Q", file.read(64), 56)[0])  # struct ring_header.aborted
        check(len(counts) == 2 and max(counts) >= 5 * 17, "aborted", counts)


def mistakes():
    """What --events refuses."""
    for listed, line in (("", "its items"), ("shop", "its items"), ("alloc,", "comma"), ("a:b;c", "its items"),
                         ("*", "its items"), ("!alloc", "its items"), ("x:" + "y" * 2000, "too long")):
        done = run([ALLIUM, "trace", "--events", listed, "--", "true"])
        equal(done.returncode, 2, listed)
        check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr)


tap.main([
    ("every type of field at its limits, in C and C++, with the agent and without", every_type),
    ("threads, signals, fork children, SIGKILL: each event once", threads),
    ("children that share memory", vforks),
    ("a program that forbids itself the counter", frozen),
    ("a ring that is full: what is lost is counted", full),
    ("a small address space", tight),
    ("more kinds of events than there is room for", too_many_kinds),
    ("losses in children that share memory", lost_in_children),
    ("a process that lives for long", slow),
    ("seccomp", sealed),
    ("descriptions that are damaged", foreign_tables),
    ("a library that is loaded and unloaded", reloads),
    ("fields with the names of others", shadowed),
    ("ALLIUM_SNAPSHOT() in C and C++", asks),
    ("events that make a snapshot", event_triggers),
    ("switched while the program runs, and in its children", at_run_time),
    ("an event that is off is three instructions", costs),
    ("sequences that are aborted are counted", aborts),
    ("lists that are none", mistakes),
])
