# SPDX-License-Identifier: BSD-2-Clause
"""`allium tags` over time: changes, rates, recordings, metrics, against what a program was told to do."""
import contextlib
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
import building
from building import by_function, scratch, tap
from tap import LONG, Skipped, built, check, equal, private_dir, run, succeed, wait_until


class Phases:
    """phases.c, told what to do; it keeps count of what each place has made and freed."""

    def __init__(self, ledgers, command=()):
        self.env = dict(os.environ, ALLIUM_DIR=ledgers)
        self.process = subprocess.Popen([*command, building.program("gcc", ["-O2"], "phases.c")], env=self.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid, self.of = self.process.pid, {}

    def start(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def finish(self):
        return self.process.stdout.readline().decode().split()

    def _count(self, place, *change):
        have = self.of.get("place_%d" % place, (0, 0, 0, 0))
        self.of["place_%d" % place] = tuple(a + b for a, b in zip(have, change))

    def made(self, place, n, size):
        self.start("made", place, n, size)
        equal(self.finish(), ["ok"], "made")
        self._count(place, n, n * size, n, n * size)

    def gone(self, place, n, size):
        self.start("gone", place, n)
        equal(self.finish(), ["ok"], "gone")
        self._count(place, 0, 0, -n, -n * size)

    def tags(self, *words, code=0):
        done = run([built("ALLIUM"), "tags", *map(str, words)], env=self.env)
        equal(done.returncode, code, (words, done.stderr))
        return done

    def json(self, *words):
        return json.loads(self.tags(*words, "--json").stdout)


@contextlib.contextmanager
def phases(**how):
    with private_dir() as ledgers:
        p = Phases(ledgers, **how)
        try:
            yield p
        finally:
            p.process.stdin.close()
            p.process.wait(30)


def permits(old, new):
    """--fail-if, of the changes of two_moments(): -3,196 B live, 14 objects, -2,796 B in 18 allocations."""
    def ask(*conditions, code, where=()):
        options = [word for condition in conditions for word in ("--fail-if", condition)]
        words = [built("ALLIUM"), "tags", str(old.pid), str(new.pid), *where, *options]
        done = run(words, env=new.env)
        equal(done.returncode, code, "exit code of %s (%s)" % (conditions, done.stderr))
        found = json.loads(run([*words, "--json"], env=new.env).stdout)["conditions"]
        equal([row["condition"] for row in found], list(conditions), "conditions")
        return done.stderr.decode(), [row["met"] for row in found]
    equal(ask("live+0B", "allocated+0%", "objects+14", "allocations+90%", code=0)[1], [False] * 4, "not met")
    errors, met = ask("objects+13", "live+10%", "allocations+89%", code=4)
    equal(met, [True, False, True], "met")
    check("allium: objects+13: met: +14, +70.0 % of 20\n" in errors, errors)
    check("allium: allocations+89%: met: +18, +90.0 % of 20\n" in errors, errors)
    equal(ask("live+139B", code=4, where=("--where", "func:place_1"))[1], [True], "of some places")
    equal(ask("live+140B", code=0, where=("--where", "func:place_1"))[1], [False], "exactly as much as is permitted")
    errors, _ = ask("objects+5%", code=4, where=("--where", "func:place_3"))
    check("met: +1 on top of 0\n" in errors, errors)
    for words, why in ((("live+5",), "missing unit"), (("peak+10%",), "unknown figure: use live, objects, allocated"),
                       (("live>5%",), "use '+' here")):
        done = run([built("ALLIUM"), "tags", str(old.pid), str(new.pid), "--fail-if", *words], env=new.env)
        check(done.returncode == 2 and why in done.stderr.decode(), done)
    done = run([built("ALLIUM"), "tags", str(new.pid), "--fail-if", "live+5%"], env=new.env)
    check(done.returncode == 2 and "--fail-if compares two sources" in done.stderr.decode(), done)


def two_moments():
    """A process that is read twice, by way of two runs of it: live, objects, allocations and bytes."""
    with private_dir() as ledgers:
        old, new = Phases(ledgers), Phases(ledgers)
        for p in old, new:
            p.made(0, 10, 100)
            p.made(1, 5, 7)
            p.made(4, 2, 2)
        old.made(2, 3, 1000)
        new.made(1, 20, 7)
        new.made(3, 1, 64)
        new.gone(0, 4, 100)
        doc = new.json(old.pid, new.pid)
        have = {
            row["function"]:
            (row["live_change_bytes"], row["objects_change"], row["allocated_change_bytes"], row["allocations_change"])
            for row in doc["rows"]
        }
        equal(have, {"place_0": (-400, -4, 0, 0), "place_1": (140, 20, 140, 20), "place_2": (-3000, -3, -3000, -3),
                     "place_3": (64, 1, 64, 1)}, "changes")
        equal([row["function"] for row in doc["rows"]], ["place_1", "place_3", "place_0", "place_2"], "the order")
        equal((doc["view"], doc["seconds"], doc["before"]["total"]["live_bytes"], doc["after"]["total"]["allocations"]),
              ("change", 0, 4039, 38), "the head")
        check("allocated_bytes_per_s" not in doc["rows"][0], "rates between two processes", doc["rows"][0])
        screen = new.tags(old.pid, new.pid, "--top", "1").stdout.decode()
        check("-3.12 KiB and +14 objects live, -2.73 KiB in +18 allocations\n" in screen, screen)
        permits(old, new)
        same = new.tags(new.pid, new.pid)
        check("0 B and 0 objects live" in same.stdout.decode(), same.stdout)
        for p in old, new:
            p.process.communicate()


def rates():
    """A program that does n allocations each so many ms, and makes up for a turn that is late: what lies between two
    moments is known but for what it lags behind at each, half a second at most, of three; where it ends later still, it
    is not judged. The looks of a series are without gap or overlap, exactly.
    """
    with phases() as p:
        p.made(1, 1, 1)
        n, size, ms = 50, 64, 5
        p.start("steady", 0, n, size, ms)
        wait_until(lambda: any(row["function"] == "place_0" for row in p.json(p.pid)["rows"]), 20, "it works")
        before, began = p.json(p.pid), time.monotonic()
        done = p.tags(p.pid, "--interval", "500ms", "--count", "6", "--json")
        took = time.monotonic() - began
        after = p.json(p.pid)
        p.start("made", 2, 1, 1)
        turns, elapsed_ns, ok = p.finish()
        equal((ok, p.finish()), ("ok", ["ok"]), "its end")
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    equal(len(looks), 6, "looks")
    for look, following in zip(looks, looks[1:]):
        equal(look["after"]["total"], following["before"]["total"], "where one look ends and the next begins")
    for look in looks:
        equal((look["view"], [row["function"] for row in look["rows"]]), ("rate", ["place_0"]), "rows of what changed")
        row, made = look["rows"][0], look["after"]["total"]["allocations"] - look["before"]["total"]["allocations"]
        equal(made % 1, 0, "whole allocations")
        check(abs(row["allocations_per_s"] * look["seconds"] - made) < 1e-6 * made, "allocations a second", row, made)
        check(
            abs(row["allocated_bytes_per_s"] * look["seconds"] - made * size) < 1e-6 * made * size, "bytes a second",
            row, made)
    have, seconds = [looks[i][key]["total"]["allocations"]
                     for i, key in ((0, "before"), (-1, "after"))], sum(look["seconds"] for look in looks)
    check(2.9 < seconds < took, "seconds", seconds, took)
    counts = [by_function(doc["rows"])["place_0"][0] + 1 for doc in (before, after)]
    check(counts[0] <= have[0] <= have[1] <= counts[1] <= int(turns) * n + 1, "in order:", counts, have, turns)
    nominal, lag_s = seconds * 1000 / ms * n, int(elapsed_ns) / 1e9 - int(turns) * ms / 1e3
    check(
        abs(have[1] - have[0] - nominal) <= (500 / ms + 1) * n or abs(lag_s) > .5, "made", have[1] - have[0], "of",
        nominal, "lag", lag_s)


def series_that_end():
    """With its process; with as many looks as were asked for; and it reads processes alone."""
    with phases() as p:
        p.made(0, 1, 10)
        for words, line in (
            (["--interval", "1ms"], "use 10 ms or more"),
            (["--count", "3"], "--count needs --interval"),
            (["--interval", "1s", "--count", "0"], "out of range"),
            (["x.allium", "--interval", "1s"], "one running process"),
            (["--interval", "1s", "--allocinfo"], "leave out --interval"),
        ):
            done = p.tags(*([] if "x.allium" in words else [p.pid]), *words, code=2)
            check(line in done.stderr.decode(), words, done.stderr)
        series = subprocess.Popen([built("ALLIUM"), "tags", str(p.pid), "--interval", "50ms"], env=p.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(b"--- " in series.stdout.readline(), "a look")
        p.process.communicate()
        out, err = series.communicate(timeout=30)
    equal((series.returncode, err.decode()), (0, "allium: %d has ended\n" % p.pid), "the end")


# ---- recordings ----

def recorded():
    """What a recording has equals what was counted, at its end, at a moment in it, and between two; `allium run` leaves
    nothing behind.
    """
    with private_dir() as ledgers:
        path = scratch("recorded.allium")
        p = Phases(ledgers, command=[built("ALLIUM"), "run", "--quiet", "--force", "-o", path, "--"])
        p.made(0, 10, 100)
        p.made(1, 5, 7)
        time.sleep(.6)
        first = dict(p.of)
        wait_until(lambda: by_function(p.json(path)["rows"]) == first, 20, "the first phase, while it is recorded")
        recorded_s = time.time() - os.stat(path).st_ctime + 3
        p.made(1, 20, 7)
        p.gone(0, 4, 100)
        p.made(2, 1, 1 << 20)
        time.sleep(.5)
        p.process.communicate()
        equal(p.process.returncode, 0, "its code")
        doc = p.json(path)
        equal(by_function(doc["rows"]), p.of, "the end")
        process, = doc["after"]["processes"]
        equal((process["program"], process["running"], doc["after"]["source"]), ("phases.c-gcc-O2"[:15], False, path),
              "the process")
        moment = p.json(path + "@500ms")
        equal(by_function(moment["rows"]), first, "a moment")
        equal(moment["after"]["processes"][0]["running"], True, "it ran then")
        change = p.json(path + "@500ms", path)
        have = {
            row["function"]:
            (row["allocations_change"], row["allocated_change_bytes"], row["objects_change"], row["live_change_bytes"])
            for row in change["rows"]
        }
        equal(
            have,
            {
                place: tuple(b - a for a, b in zip(first.get(place, (0, 0, 0, 0)), now))
                for place, now in p.of.items()
                if now != first.get(place)
            },
            "the change",
        )
        check(.3 < change["seconds"] < recorded_s, "seconds", change["seconds"])
        for row in change["rows"]:
            check(
                abs(row["allocations_per_s"] * change["seconds"] - row["allocations_change"]) <
                1e-6 * change["seconds"] + 1e-3, row)
        equal(by_function(p.json(path, "--where", "func:place_1")["rows"]), {"place_1": p.of["place_1"]}, "of a query")
        text = p.tags(path, "--allocinfo").stdout
        read = json.loads(
            succeed([built("ALLIUM"), "sys", "allocinfo", "-", "--json", "--by", "function"], input=text,
                    stdin=None).stdout)["rows"]
        equal({row["function"]: (row["calls"], row["size_bytes"])
               for row in read}, {place: now[2:]
                                  for place, now in p.of.items()}, "as the kernel has it")
        for words, code, line in (([path + "@1h"], 1, "use an earlier time"),
                                  ([path + "@x"], 2, "invalid time"), ([path + "@1ms"], 1, "")):
            done = run([built("ALLIUM"), "tags", *words], env=p.env)
            check(done.returncode == code and len(done.stderr.splitlines()) == 1 and line in done.stderr.decode(),
                  words, done)
        equal(subprocess.run(["pgrep", "-f", path], stdout=subprocess.PIPE).stdout, b"", "what runs still")
        return path


def many_processes():
    """A fork child and its parent are two, and of those places that both have, the sums."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        path = scratch("churn.allium")
        churn = building.program("gcc", ["-O2"], "churn.c", words=[foreign()])
        done = succeed([built("ALLIUM"), "run", "-o", path, "--", churn, "2", "3000", "fork"], env=env)
        check(done.stderr.decode().endswith("allium: exact accounts, too: allium tags %s\n" % path), "the last line",
              done.stderr)
        counts = {}
        for line in done.stdout.decode().splitlines():
            pid, place, *numbers = line.split()
            counts.setdefault(int(pid), {})[place] = tuple(map(int, numbers))
        doc = json.loads(succeed([built("ALLIUM"), "tags", path, "--json", "--by", "process"], env=env).stdout)
        have = {
            row["pid"]: (row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"])
            for row in doc["rows"]
        }
        equal(have, {pid: tuple(map(sum, zip(*of.values()))) for pid, of in counts.items()}, "processes")
        for pid, of in counts.items():
            doc = json.loads(
                succeed([built("ALLIUM"), "tags", path, "--json", "--where",
                         "pid:%d" % pid], env=env).stdout)
            equal(by_function(doc["rows"]), of, "of one")
        both = {
            place: tuple(sum(of[place][i] for of in counts.values()) for i in range(4))
            for place in next(iter(counts.values()))
        }
        doc = json.loads(succeed([built("ALLIUM"), "tags", path, "--json"], env=env).stdout)
        equal(by_function(doc["rows"]), both, "of both")
        equal(os.listdir(ledgers), [], "ledgers that are left")


def foreign():
    """The object of what churn.c calls that is not tagged."""
    out = scratch("foreign.o")
    building.quiet(["gcc", "-g", "-O2", "-c", os.path.join(building.HERE, "foreign.c"), "-o", out])
    return out


def snapshots():
    """`allium ps` lists a process that has tags only; its snapshot is what it held, and says so when asked for what it
    has not.
    """
    with phases() as p:
        p.made(3, 7, 11)
        rows = [
            row for row in json.loads(succeed([built("ALLIUM"), "ps", "--json"], env=p.env).stdout)["rows"]
            if row["pid"] == p.pid
        ]
        equal([(row["accounts"], row["state"], row["live_bytes"], row["lost"]) for row in rows],
              [("tags", "running", 77, 0)], "ps")
        path = scratch("snapshot.allium")
        done = succeed([built("ALLIUM"), "snapshot", str(p.pid), "-o", path], env=p.env)
        check("show it with: allium tags " in done.stderr.decode(), done.stderr)
        p.made(3, 1, 1)
        equal(by_function(p.json(path)["rows"]), {"place_3": (7, 77, 7, 77)}, "what it held")
        equal(p.json(path, p.pid)["rows"][0]["allocations_change"], 1, "and what it made since")
        check(p.json(path, p.pid)["seconds"] > 0, "the same process")
        diff = [built("ALLIUM"), "diff", path, str(p.pid)]
        done = [json.loads(succeed([*diff, "--json", "--where", "func:place_*", *words], env=p.env).stdout)["rows"]
                for words in ([], ["--by", "module", "--sort", "failed"])]
        equal([[row["allocations_change"] for row in rows] for rows in done], [[1], [1]], "diff, too")
        equal("module" in done[1][0], True, "by what is asked for")
        done = run([*diff, "--coarse"], env=p.env)
        equal((done.returncode, done.stderr.decode().splitlines()[0]),
              (2, "allium: %s and %d have accounts of tags alone: leave out --coarse (allium diff --help)" %
               (path, p.pid)), "what it does not take")
        done = run([*diff, "--fail-if", "allocations+14%"], env=p.env)
        equal((done.returncode, done.stderr.decode().splitlines()[-1]),
              (4, "allium: allocations+14%: met: +1, +14.3 % of 7"), "diff --fail-if")
        done = run([built("ALLIUM"), "report", path], env=p.env)
        equal((done.returncode, done.stderr.decode()),
              (1, "allium: %s has no heap profile, but accounts of tags: use allium tags %s\n" % (path, path)), "a report")
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        plain = scratch("plain.allium")
        succeed([built("ALLIUM"), "run", "--quiet", "-o", plain, "--", "true"], env=env)
        done = run([built("ALLIUM"), "tags", plain], env=env)
        equal((done.returncode, done.stderr.decode()),
              (1, "allium: %s has no accounts of tags: record with allium run --sites for sites, see allium-tags(1) for tags\n" % plain), "one without")


def losses_once():
    """What was lost until the first of two readings of a process is among what was lost until the second."""
    with open(scratch("unseen.c"), "w") as file:
        file.write(
            "#include <stdlib.h>\n#include <unistd.h>\n"
            "void (*volatile untagged)(void *) = free;\nvoid *volatile kept;\n"
            "int main(void) { char c; untagged(kept = malloc(50)); kept = malloc(50); return write(1, \"x\", 1) + read(0, &c, 1) > 2; }\n"
        )
    with private_dir() as ledgers:
        env, path = dict(os.environ, ALLIUM_DIR=ledgers), scratch("unseen.allium")
        with subprocess.Popen([building.program("gcc", ["-O1"], scratch("unseen.c"))], env=env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            equal(p.stdout.read(1), b"x", "its word")
            succeed([built("ALLIUM"), "snapshot", str(p.pid), "-o", path], env=env)
            done = succeed([built("ALLIUM"), "tags", path, str(p.pid)], env=env)
            equal(done.stderr,
                  b"allium: 1 object was freed by code without tags, and counted as live until the address came back\n",
                  "what is said")
            p.stdin.close()


def all_kinds():
    """A snapshot has samples, accounts of tags and of sites, each as they were read of the process, which is at rest.
    """
    with private_dir() as ledgers:
        path, snapshot = scratch("kinds.allium"), scratch("kinds.snapshot.allium")
        p = Phases(ledgers, command=[built("ALLIUM"), "run", "--sites", "--period", "1", "--quiet", "-o", path, "--"])
        p.made(0, 10, 100)
        p.made(1, 5, 7)
        pid = int(subprocess.run(["pgrep", "-P", str(p.pid)], stdout=subprocess.PIPE).stdout)
        succeed([built("ALLIUM"), "snapshot", str(pid), "-o", snapshot], env=p.env)
        for command in "tags", "sites", "report":
            live, kept = (json.loads(succeed([built("ALLIUM"), command, source, "--json"], env=p.env).stdout)["rows"]
                          for source in (str(pid), snapshot))
            check(live, command, "no rows")
            if command == "report":  # ages differ
                live, kept = ([(row["name"], row["self"]["live_bytes"], row["self"]["allocations"]) for row in rows]
                              for rows in (live, kept))
            equal(kept, live, command)
            if command != "report":
                text = succeed([built("ALLIUM"), command, snapshot, "--allocinfo"], env=p.env).stdout
                read = json.loads(
                    succeed([built("ALLIUM"), "sys", "allocinfo", "-", "--json", "--top", "0"], input=text,
                            stdin=None).stdout)["rows"]
                equal((sum(row["size_bytes"] for row in read), sum(row["calls"] for row in read)),
                      (sum(row["live_bytes"] for row in live), sum(row["live_objects"] for row in live)),
                      "sums of --allocinfo, read back")
        p.process.communicate()
        for command in "tags", "sites":
            kept = json.loads(succeed([built("ALLIUM"), command, path, "--json"], env=p.env).stdout)["rows"]
            equal(sum(row["allocations"] for row in kept if row["function"].startswith("place_")), 15, command)


def in_sight_of_none():
    """A ledger without a name, and one below another root: as it is mapped."""
    if os.geteuid():
        raise Skipped("needs root")
    program = building.program("gcc", ["-O2"], "phases.c")
    for command in (
        ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$0"', program],
        ["unshare", "-m", "sh", "-c", 'mount -t ramfs none /dev/shm && exec env -u XDG_RUNTIME_DIR "$0"', program],
    ):
        env = {key: value for key, value in os.environ.items() if key != "ALLIUM_DIR"}
        path = scratch("stray.allium")
        for recorder in [], [built("ALLIUM"), "run", "--quiet", "--force", "-o", path, "--"]:
            p = subprocess.Popen([*recorder, *command], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                p.stdin.write(b"made 2 3 50\n")
                p.stdin.flush()
                equal(p.stdout.readline(), b"ok\n", "its answer")
                pid = p.pid
                if recorder:
                    time.sleep(1)  # long enough to be seen
                    pid = int(subprocess.run(["pgrep", "-P", str(p.pid)], stdout=subprocess.PIPE).stdout)
                doc = json.loads(succeed([built("ALLIUM"), "tags", str(pid), "--json"], env=env).stdout)
                equal(by_function(doc["rows"]), {"place_2": (3, 150, 3, 150)}, (command, recorder))
            finally:
                p.communicate()
        doc = json.loads(succeed([built("ALLIUM"), "tags", path, "--json"], env=env).stdout)
        equal(by_function(doc["rows"]), {"place_2": (3, 150, 3, 150)}, (command, "recorded"))


def hostile():
    """Texts that a recording may hold, and the strict parser must not choke on; and what refers to nothing."""
    import sqlite3
    with phases() as p:
        for place in 1, 2, 3:
            p.made(place, place, 10)
        path = scratch("hostile.allium")
        succeed([built("ALLIUM"), "snapshot", str(p.pid), "-o", path, "--force"], env=p.env)
        db = sqlite3.connect(path)
        db.execute("UPDATE account_place SET file = ?, class = ?, module = NULL WHERE function = 'place_1'",
                   ('a"b\\c\nd\te\u00e4', "c" * 100))
        db.execute(
            "UPDATE account_place SET function = CAST(x'ff22c3' AS TEXT), line_number = -5 WHERE function = 'place_2'")
        db.execute(
            "UPDATE account_count SET made_calls = -1, gone_calls = 5, made_bytes = 'x', failed = 1e300 WHERE place = 3"
        )
        db.execute(
            "INSERT INTO account_count SELECT taken_ns, 99, inexact, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 FROM account_count LIMIT 1"
        )
        db.execute("INSERT INTO account_place SELECT * FROM account_place LIMIT 1")
        db.commit()
        db.close()
        families, _ = parsed(p.tags(path, "--openmetrics").stdout.decode("utf-8"))
        files = [dict(labels).get("file") for labels in families["allium_tags_allocated_bytes"]]
        check('a"b\\c?d?e\u00e4' in files, files)
        done = p.tags(path)
        check("1 record of the ledger is damaged" in done.stderr.decode(), done.stderr)
        for words in ["--json"], ["--allocinfo"], ["--by", "directory"], [path], ["--where", "live>0"]:
            p.tags(path, *words)
        check(all(ord(c) >= 32 or c == "\n" for c in p.tags(path).stdout.decode("utf-8")), "the terminal")


# ---- OpenMetrics ----

def parsed(text):
    """By the strict parser: {family: {labels: value}}, and their types and units."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    families, kinds = {}, {}
    for family in text_string_to_metric_families(text):
        kinds[family.name] = (family.type, family.unit)
        values = families.setdefault(family.name, {})
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            check(key not in values, "twice:", sample)
            values[key] = sample.value
    return families, kinds


def metrics(p, *words):
    done = p.tags(p.pid, "--openmetrics", *words)
    check(done.stdout.endswith(b"\n# EOF\n") and b"\n\n" not in done.stdout, "its end", done.stdout[-100:])
    families, kinds = parsed(done.stdout.decode())
    for labels in (labels for values in families.values() for labels in values):
        check(not any(re.search(r"\b%d\b|0x" % p.pid, value) for _, value in labels), "a pid or an address:", labels)
    return families, kinds


OTHER = (("place", "other"),)


def openmetrics():
    """Sums are those of the accounts; names, units and types are what they should be."""
    with phases() as p:
        for place in range(8):
            p.made(place, place + 1, 1 << place)
        p.gone(7, 8, 128)
        families, kinds = metrics(p, "--top", "3")
        want = {
            "allocated_bytes": ("counter", "bytes"), "allocations": ("counter", ""),
            "freed_bytes": ("counter", "bytes"), "frees": ("counter", ""), "failed_requests": ("counter", ""),
            "live_bytes": ("gauge", "bytes"), "live_objects": ("gauge", ""), "lost": ("counter", ""),
            "inexact_places": ("gauge", "")
        }
        equal(kinds, {"allium_tags_" + name: kind for name, kind in want.items()}, "families")
        for family, at in ("allocations", 0), ("allocated_bytes", 1), ("live_objects", 2), ("live_bytes", 3):
            values = families["allium_tags_" + family]
            leading = sorted(((counts[at], place) for place, counts in p.of.items()), reverse=True)
            named = {dict(labels)["function"]: value for labels, value in values.items() if labels != OTHER}
            equal(named, {place: value for value, place in leading[:3]}, "of " + family)
            equal(values[OTHER], sum(value for value, _ in leading[3:]), "other of " + family)
        labels = next(dict(labels) for labels in families["allium_tags_allocations"] if labels != OTHER)
        check(labels["file"].endswith("/phases.c"), labels)
        equal(
            {key: labels[key] for key in labels if key != "file"},
            {
                "function": "place_7",
                "module": os.path.basename(building.program("gcc", ["-O2"], "phases.c")),
                "class": "malloc",
                "name": "malloc",
            },
            "labels",
        )
        families, _ = metrics(p, "--top", "0", "--where", "func:place_1,place_2")
        equal(sorted(families["allium_tags_allocations"].values()), [0, 2, 3], "of a query")
        for words in (
            ("--by", "file"),
            ("--json",),
            ("--sort", "live"),
            ("--interval", "1s"),
            (p.pid,),
            ("--where", "live>1"),
            ("--where", "!accurate:no"),
        ):
            p.tags(p.pid, "--openmetrics", *words, code=2)


def never_falls():
    """Places overtake each other all the time: no counter falls, "other" included, and all add up to the whole."""
    draw = random.Random(5)
    with phases() as p:
        last = {}
        for turn in range(tap.pick(60, 400)):
            for _ in range(draw.randrange(1, 4)):
                place, size = draw.randrange(8), 1 << draw.randrange(10)
                n = min(draw.randrange(1, 200), 1 << turn)
                p.made(place, n, size)
                if draw.random() < .7:
                    p.gone(place, n, size)
            families, kinds = metrics(p, "--top", "2")
            for family, values in families.items():
                if kinds[family][0] != "counter":
                    continue
                for labels, value in values.items():
                    check(value >= last.get((family, labels), 0), "turn", turn, family, labels, "fell from",
                          last.get((family, labels)), "to", value)
                    last[family, labels] = value
            for family, at in ("allium_tags_allocations", 0), ("allium_tags_allocated_bytes", 1):
                equal(sum(families[family].values()), sum(counts[at] for counts in p.of.values()),
                      "the whole of " + family)
        named = {dict(labels).get("function") for family, labels in last if family == "allium_tags_allocated_bytes"}
        check(len(named) > 4, "few came to lead:", named)


def scraped():
    """By prometheus itself, which refuses what is not as it should be."""
    if not shutil.which("prometheus"):
        raise Skipped("no prometheus here")
    with phases() as p:
        for place in range(8):
            p.made(place, place + 1, 1 << place)

        class Scrape(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = p.tags(p.pid, "--openmetrics", "--top", "3").stdout
                self.send_response(200)
                self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Scrape)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder = scratch("prometheus")
        config = scratch(
            "prometheus.yml",
            "scrape_configs:\n  - job_name: tags\n    scrape_interval: 500ms\n    scrape_timeout: 500ms\n    static_configs:\n"
            "      - targets: ['127.0.0.1:%d']\n" % server.server_port)
        own = http.server.HTTPServer(("127.0.0.1", 0), Scrape)
        port = own.server_port
        own.server_close()
        prometheus = subprocess.Popen([
            "prometheus", "--config.file=" + config, "--storage.tsdb.path=" + folder,
            "--web.listen-address=127.0.0.1:%d" % port
        ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def ask(query):
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/query?query=%s" % (port, query),
                                            timeout=5) as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return []
        try:
            wait_until(lambda: ask("allium_tags_allocations_total"), 60, "a scrape")
            have = {
                row["metric"].get("function", "other"): int(row["value"][1])
                for row in ask("allium_tags_allocations_total")
            }
            equal(have, {"place_7": 8, "place_6": 7, "place_5": 6, "other": 15}, "what it has")
            equal([row["value"][1] for row in ask("up")], ["1"], "up")
        finally:
            prometheus.terminate()
            prometheus.wait(30)
            server.shutdown()


tap.main([
    ("two readings are compared place by place", two_moments),
    ("rates are those of a program that counts its turns", rates),
    ("a series ends when its process does", series_that_end),
    ("a recording has what was counted, and when", recorded),
    ("processes of a recording", many_processes),
    ("snapshots, and what ps lists", snapshots),
    ("losses of a process that is read twice are said once", losses_once),
    ("a snapshot of all that there is", all_kinds),
    ("ledgers that are only mapped", in_sight_of_none),
    ("a recording that was tampered with", hostile),
    ("OpenMetrics, by the strict parser", openmetrics),
    ("no counter falls when places overtake each other", never_falls),
] + ([("scraped by prometheus", scraped)] if LONG else []))
