# SPDX-License-Identifier: BSD-2-Clause
"""Programs with tags under the agent: one ledger has samples, sites and tags, and each byte is charged once, to the
byte.
"""
import ctypes.util
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import building
import proof
import tap
from building import by_function, program, quiet, scratch
from tap import agent_env, agent_for, built, check, equal, own_counts, pick, private_dir, succeed, totals

AGENT, TAGS = built("ALLIUM_AGENT"), built("TEST_TAGS_LIBRARY")
ALLOCATORS = {name: ctypes.util.find_library(name) for name in ("jemalloc", "tcmalloc_minimal", "mimalloc")}
ALLOCATORS["one with strdup"] = os.path.join(built("TEST_PROGRAMS"), "own_copies.so")
ALLOCATORS["one whose realloc() calls malloc() and free()"] = os.path.join(built("TEST_PROGRAMS"), "own_copies_through.so")


def allium(ledgers, *words):
    return succeed([built("ALLIUM"), *map(str, words)], env=dict(os.environ, ALLIUM_DIR=ledgers))


def read(ledgers, command, source, *options):
    done = allium(ledgers, command, source, "--json", "--top", "0", *options)
    return json.loads(done.stdout)["rows"], done.stderr.decode()


def churn():
    foreign = scratch("foreign.o")
    if not os.path.exists(foreign):
        quiet(["gcc", "-O2", "-c", os.path.join(HERE, "foreign.c"), "-o", foreign])
    return program("gcc", ["-O2"], "churn.c", words=[foreign])


def late():
    """-> (a program without tags, a library with some)"""
    plugin = scratch("plugin.so")
    if not os.path.exists(plugin):
        quiet([
            "gcc", "-g", "-O2", *building.HOOKS, "-fPIC", "-shared",
            os.path.join(HERE, "plugin.c"), "-o", plugin, *building.linked()
        ])
    return program("gcc", ["-O2"], "late.c", hooks=False), plugin


def in_one_ledger(ledgers, pids):
    """Of each process there is one, and no other."""
    names = sorted(name for name in os.listdir(ledgers) if not name.endswith(".control"))
    equal([name.split("-")[0] for name in names], sorted(map(str, pids)), "ledgers %s" % names)
    check(all(name.endswith(".ledger") for name in names), names)


def of_tags(rows):
    """Of rows of sites: what tags have made, as by_function()"""
    return by_function([dict(row, allocated_bytes=row["requested_bytes"]) for row in rows if row["class"] == "tag"])


def charged_once(ledgers, pid, places, sampled, child):
    """Sites and tags have what the agent's samples have, which are of every request, and what is a tag's is so in both.
    """
    rows, said = read(ledgers, "sites", pid)
    check(not said or child and "allocated before" in said, "losses of sites:", said)
    equal(of_tags(rows), places, "tags among sites")
    for mine, theirs in (
        ("allocations", "allocated_samples"),
        ("requested_bytes", "allocated_bytes"),
        ("live_objects", "live_samples"),
        ("live_bytes", "live_seen_bytes"),
    ):
        equal(sum(row[mine] for row in rows), int(sampled[theirs]), "all sites, " + mine)


def compare(ledgers, text, sites):
    counts = own_counts(text)
    in_one_ledger(ledgers, counts)
    samples = {ledger["pid"]: ledger for ledger in totals(ledgers)}
    for pid, places in counts.items():
        rows, said = read(ledgers, "tags", pid)
        equal((by_function(rows), said), (places, ""), "tags of process %d" % pid)
        check(all(row["accurate"] for row in rows), rows)
        # threads of a child that come while the ledger is made may lose samples, which are counted
        if sites or len(counts) == 1:
            tap.no_losses(samples[pid])
        if sites:
            charged_once(ledgers, pid, places, samples[pid], len(counts) > 1)
    return counts


def churned(preload, *words, threads=4, rounds=20_000, **more):
    """Preloaded in this order; some is freed by code without tags."""
    with private_dir() as ledgers:
        env = agent_env(ledgers, 1, FOREIGN=1, **more)
        env["LD_PRELOAD"] = ":".join(agent_for(more) if name == AGENT else name for name in preload)
        done = succeed([churn(), str(threads), str(pick(rounds, rounds * 10)), *words], env=env)
        return compare(ledgers, done.stdout.decode(), more.get("ALLIUM_SITES"))


def orders(**more):
    def test():
        for preload in (
            [AGENT],
            [AGENT, TAGS],
            [TAGS, AGENT],
            [built("TEST_TAGS_FREES"), AGENT],
            [AGENT, built("TEST_TAGS_FREES")],
        ):
            churned(preload, **more)
        for threads in 1, 15, 40:
            churned([AGENT], threads=threads, **more)
    return test


def forks(**more):
    def test():
        equal(len(churned([AGENT], "fork", threads=5, **more)), 2, "processes")
        equal(len(churned([AGENT], "fork", threads=20, rounds=5000, **more)), 2, "processes")
    return test


def allocators(**more):
    def test():
        equal([name for name in ALLOCATORS if not ALLOCATORS[name]], [], "allocators missing")
        for library in ALLOCATORS.values():
            churned([AGENT, library], **more)
            churned([AGENT, library], "fork", rounds=5000, **more)
    return test


def loaded_late(**more):
    """What the host frees and resizes is seen, though it has no tags, and was there first."""
    def test():
        host, plugin = late()
        for threads in 1, 6, 30:
            for library in [], *([path] for path in ALLOCATORS.values()):
                with private_dir() as ledgers:
                    done = succeed([host, plugin, str(threads), str(pick(5000, 50000))],
                                   env=agent_env(ledgers, 1, library, **more))
                    compare(ledgers, done.stdout.decode(), more.get("ALLIUM_SITES"))
    return test


def below(words, seed=1, **env):
    """-> as proof.ended()"""
    env = dict(env, LD_PRELOAD=agent_for(env), ALLIUM_PERIOD="4096", BELOW_SEEN="1")
    return proof.ended(proof.Program.of(1, "gcc", "-O2"), 700 + seed, *words, env=env)


def random_programs(**env):
    def test():
        total = 0
        for seed in range(pick(1, 20)):
            for words in (
                ("foreign",),
                ("threads=8", "foreign", "fails=7"),
                ("threads=30", "foreign", "timers"),
                ("threads=4", "foreign", "forks"),
                ("threads=8", "maps", "foreign", "forks", "timers", "fails=11"),
            ):
                wrong, rows, said = below(words, seed, **env)
                equal(wrong, {}, "what differs, seed %d %s" % (seed, words))
                check("maps" in words or not said, words, "->", said)
                total += rows
        check(total > 250, "few rows were compared:", total)
    return test


def planted():
    """A call that the count below leaves out is found, and so is a free by code without tags that is not seen."""
    made = proof.Program.of(1, "gcc", "-O2")
    place = next(number for number in made.writer.kinds
                 if made.writer.kinds[number] == "MALLOC" and number in made.writer.where)
    wrong, _, _ = below((), BELOW_SKIP=str(place))
    (where, (have, want)), = (item for differing in wrong.values() for item in differing.items())
    equal((where, have[0] - want[0]), (made.place_of(place), 1), "what is found")
    with private_dir() as ledgers:
        done = succeed([churn(), "2", "20000"], env=dict(os.environ, ALLIUM_DIR=ledgers, FOREIGN="1"))
        (pid, places), = own_counts(done.stdout.decode()).items()
        check(by_function(read(ledgers, "tags", pid)[0]) != places, "without the agent all was seen")


def sealed():
    """Threads that come after seccomp, with a filter that kills for what is usually asked then: they live, and are
    counted.
    """
    path = program("gcc", ["-O2", "-D_GNU_SOURCE"], "sealed.c")
    want = {"freed_here": (210, 2100, 0, 0), "kept_here": (210, 4200, 210, 4200)}
    for way in "prctl", "syscall":
        for preload, sites in ([], ""), ([AGENT], ""), ([built("ALLIUM_AGENT_FULL")], "1"), ([TAGS, AGENT], ""):
            with private_dir() as ledgers:
                env = dict(os.environ, ALLIUM_DIR=ledgers, LD_PRELOAD=":".join(preload), ALLIUM_SITES=sites)
                pid = int(succeed([path, way], env=env).stdout)
                rows, said = read(ledgers, "tags", pid)
                equal((by_function(rows), said), (want, ""), "%s, %s, sites %s" % (way, preload, sites))


def screens():
    """The process is there once, and each screen has its part; also while it runs, in recordings, and when it has died.
    """
    for sites in "", "1":
        with private_dir() as ledgers:
            env = agent_env(ledgers, 1, ALLIUM_SITES=sites)
            p = subprocess.Popen([churn(), "4", "5000", "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            text = b"".join(p.stdout.readline() for _ in range(8))
            pid, places = p.pid, own_counts(text.decode())[p.pid]
            for state in "running", "exited":
                mine = [row for row in json.loads(allium(ledgers, "ps", "--json").stdout)["rows"] if row["pid"] == pid]
                equal([(row["accounts"], row["state"]) for row in mine], [("sites, tags" if sites else "tags", state)],
                      "ps")
                equal(by_function(read(ledgers, "tags", pid)[0]), places, "tags")
                check(json.loads(allium(ledgers, "report", pid, "--json").stdout)["rows"], "no rows of samples")
                text = allium(ledgers, "tags", pid, "--openmetrics").stdout.decode()
                equal(text.count("# EOF"), 1, "OpenMetrics")
                kept = scratch("%s%s.allium" % (state, sites))
                allium(ledgers, "snapshot", pid, "-o", kept)
                equal(by_function(read(ledgers, "tags", kept)[0]), places, "tags of a snapshot")
                if sites:
                    equal(of_tags(read(ledgers, "sites", kept)[0]), places, "sites of a snapshot")
                if state == "running":
                    allium(ledgers, "set", pid, "--where", "func:by_malloc", "off")
                    note, = [
                        row["note"] for row in json.loads(allium(ledgers, "ps", "--json").stdout)["rows"]
                        if row["pid"] == pid
                    ]
                    check("tags off" in note, note)
                    p.communicate(b"")
            path = scratch("run%s.allium" % sites)
            done = succeed([
                built("ALLIUM"), "run", "--quiet", *["--sites"] * bool(sites), "--period", "1", "-o", path, "--",
                churn(), "4", "5000", "fork"
            ], env=dict(os.environ, ALLIUM_DIR=ledgers))
            both = [
                sum(place[i] for counts in own_counts(done.stdout.decode()).values() for place in counts.values())
                for i in range(4)
            ]
            equal(
                [
                    sum(row[key] for row in read(ledgers, "tags", path)[0])
                    for key in ("allocations", "allocated_bytes", "live_objects", "live_bytes")
                ],
                both,
                "recorded",
            )


def turned_off_at_start():
    """ALLIUM_TAGS=off turns tags off, and not the samples, in fork children, too, which then need no accounts of tags."""
    with private_dir() as ledgers:
        done = succeed([churn(), "2", "1000", "fork"], env=agent_env(ledgers, 1, ALLIUM_TAGS="off"))
        counts = own_counts(done.stdout.decode())
        in_one_ledger(ledgers, counts)
        for ledger in totals(ledgers):
            check(ledger["allocated_samples"] >= sum(place[0] for place in counts[ledger["pid"]].values()), "samples",
                  ledger)
            words = [built("ALLIUM"), "tags", str(ledger["pid"]), "--json"]
            done = subprocess.run(words, env=dict(os.environ, ALLIUM_DIR=ledgers), capture_output=True, check=False)
            check(json.loads(done.stdout)["rows"] == [] if done.returncode == 0 else
                  b"no accounts of tags" in done.stderr, "tags", done)


READER = "import mmap, os, sys; m = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, prot=mmap.PROT_READ); print('ok', flush=True); sys.stdin.read()"


def only_read():
    """Who maps a ledger without writing to it is not its process. One that was never finished is said to be so."""
    with private_dir() as ledgers:
        done = succeed([churn(), "1", "100"], env=agent_env(ledgers, 1))
        (pid, _), = own_counts(done.stdout.decode()).items()
        name, = [name for name in os.listdir(ledgers) if name.endswith(".ledger")]
        p = subprocess.Popen([sys.executable, "-c", READER, os.path.join(ledgers, name)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"ok\n", "what it says")
        rows = json.loads(allium(ledgers, "ps", "--json").stdout)["rows"]
        equal([row["state"] for row in rows if row["pid"] in (pid, p.pid)], ["exited"], "ps")
        p.communicate(b"")
        with open(os.path.join(ledgers, "1-0123456789abcdef.ledger"), "wb") as file:
            file.truncate(1 << 20)
        notes = [row["note"] for row in json.loads(allium(ledgers, "ps", "--json").stdout)["rows"] if row["pid"] == 1]
        equal(notes,
              ["the ledger cannot be read: it is incomplete: it is being created now, or its process ended meanwhile"],
              "of one that is not finished")


tap.main([
    ("samples and tags are in one ledger, and exact, whichever library comes first", orders()),
    ("so with sites, of which each byte is one's alone", orders(ALLIUM_SITES=1)),
    ("fork children", forks()),
    ("fork children with sites", forks(ALLIUM_SITES=1)),
    ("other allocators below", allocators()),
    ("other allocators below, with sites", allocators(ALLIUM_SITES=1)),
    ("tags that come with dlopen(), when threads run", loaded_late()),
    ("tags that come with dlopen(), when threads run, with sites", loaded_late(ALLIUM_SITES=1)),
    ("random programs hold what the allocator below has counted", random_programs()),
    ("random programs hold what the allocator below has counted, with sites", random_programs(ALLIUM_SITES="1")),
    ("a miscount is found", planted),
    ("each screen has its part of the one ledger", screens),
    ("tags that are off from the beginning", turned_off_at_start),
    ("threads that come after seccomp", sealed),
    ("who only reads a ledger, and one that nobody finished", only_read),
])
