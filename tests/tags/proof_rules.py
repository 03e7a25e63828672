# SPDX-License-Identifier: BSD-2-Clause
"""What `allium set` asks of places while random programs run (random_runs.py): failures at every place, tags turned off
and on.
"""
import math
import os
import random
import select
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from random_runs import THREADS, Program, Run, booked, differences
from tap import built, check, equal, pick, succeed

ONE_BY_ONE = ("MALLOC", "CALLOC", "STRDUP", "STRNDUP", "POSIX_MEMALIGN", "ALIGNED_ALLOC", "MEMALIGN", "WCSDUP",
              "REALLOC", "REALLOCARRAY")
ALL_MODES = "once", "nth:7", "every:3", "every:1", "p:0.2", "off"


class Asked(Run):
    """A program that does as it is told, round by round."""

    def __init__(self, program, seed, steps, *words):
        super().__init__(program, seed, steps, "rounds", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         bufsize=0)
        self.pid = self.process.pid
        self.function = {
            program.place_of(n): "in_%s_%d" % (program.writer.where[n][0].split(".")[0], n)
            for n in program.writer.plain_ones
        }
        self.rest()

    def __exit__(self, *why):
        self.process.stdin.close()
        self.process.stdout.close()
        super().__exit__(*why)

    def rest(self):
        equal(self.process.stdout.readline(), b"rest\n", "what it says")

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def do(self, line):
        self.say(line)
        self.rest()

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(tap.TIMEOUT), 0, "its code")

    def set(self, places, *actions):
        where = ["--where", " or ".join("func:" + self.function[place] for place in places)] if places else []
        succeed(
            [built("ALLIUM"), "set", str(self.pid), *where, *actions], env=dict(os.environ, ALLIUM_DIR=self.ledgers)
        )

    def asked(self):
        return self.program.asked(self.counts, self.pid)

    def counted(self):
        """As the allocator below has it; what failed, by the program's own words: that allocator was not always asked.
        """
        refused = {place: counts[1] for place, counts in self.asked().items()}
        return {place: (*row[:4], refused[place]) for place, row in self.program.counted(self.counts, self.pid).items()}

    def booked(self):
        return booked(self.ledgers, self.pid)


def deviations(n):
    """How far the failures of n requests with a chance of 0.2 may be from the mean: 6 standard deviations, and 3 where
    they are few.
    """
    return 6 * math.sqrt(n * 0.2 * 0.8) + 3


def wrong_failures(how, requests, refused):
    """Nothing, or what is wrong with it."""
    want = {
        "once": min(1, requests), "nth:7": int(requests >= 7), "every:3": requests // 3, "every:1": requests, "off": 0
    }.get(how)
    if want is not None:
        return refused != want and "%s of %d requests: %d failed" % (how, requests, refused)
    return abs(refused -
               0.2 * requests) > deviations(requests) and "%s of %d requests: %d failed" % (how, requests, refused)


def seen_below(run, before, after, asked):
    """Of functions that ask the allocator just once for each request: it saw all those that did not fail."""
    for number, kind in run.program.writer.kinds.items():
        place = run.program.writer.where.get(number) and run.program.place_of(number)
        if kind in ONE_BY_ONE and place in after:
            requests, refused = asked[place]
            equal(after[place][0] - before.get(place, (0,))[0], requests - refused,
                  "requests that reached the allocator, " + place)


def failures(compiler, *words):
    """Each place fails in each way in turn, and all of them at once."""
    def test():
        program = Program.of(1, compiler, "-O2")
        with Asked(program, 40, pick(3000, 10000), "threads=%d" % THREADS, "timers", *words) as run:
            run.do("")  # all places are known now
            for turn in range(pick(len(ALL_MODES), 5 * len(ALL_MODES))):
                how = {place: ALL_MODES[(i + turn) % len(ALL_MODES)] for i, place in enumerate(sorted(run.function))}
                for mode in ALL_MODES:
                    run.set([place for place in how if how[place] == mode], "fail=" + mode)
                before, asked_before = run.counted(), run.asked()
                run.do("")
                after, asked = run.counted(), {
                    place: tuple(a - b for a, b in zip(counts, asked_before[place]))
                    for place, counts in run.asked().items()
                }
                wrong = [(place, said) for place, mode in how.items() for said in [wrong_failures(mode, *asked[place])]
                         if said]
                equal(wrong, [], "places that fail otherwise than they should, turn %d" % turn)
                draws = [sum(asked[place][i] for place in how if how[place] == "p:0.2") for i in (0, 1)]
                check(draws[0] > 200 and not wrong_failures("p:0.2", *draws), "all draws of a turn:", draws)
                if "maps" not in words:
                    seen_below(run, before, after, asked)
                have, said = run.booked()
                equal((differences(have, after), "foreign" not in words and said), ({}, "foreign" not in words and ""),
                      "what differs, turn %d" % turn)
            run.end()
    return test


def miscounted():
    """One failure that the program does not tell of makes the comparison fail."""
    program = Program.of(1, "gcc", "-O2")
    number = next(n for n in program.writer.plain_ones if program.writer.kinds[n] == "CALLOC")
    os.environ["BELOW_SKIP"] = str(number | 1 << 17)
    try:
        failures("gcc")()
    except tap.Failed as error:
        check(program.place_of(number) in str(error), "it is found elsewhere:", error)
    else:
        raise tap.Failed("it is not found")
    finally:
        del os.environ["BELOW_SKIP"]


def once_while_it_runs():
    """`fail=once`, again and again while threads call the places: one call fails for each time that it was asked."""
    program = Program.of(1, "gcc", "-O2")
    with Asked(program, 50, 3000, "threads=%d" % THREADS) as run:
        run.do("")
        places = [place for place in run.function if program.kind_at(place) in ONE_BY_ONE]
        begun, least = run.asked(), dict.fromkeys(places, 0)
        times = pick(10, 200)
        run.say("go")
        for _ in range(times):
            run.set(places, "fail=once")
            before = run.asked()
            time.sleep(0.05)
            after = run.asked()
            for place in places:
                least[place] += after[place][0] > before[place][0] + 2 * THREADS
        run.do("")  # which ends it
        run.rest()
        ended = run.asked()
        refused = {place: ended[place][1] - begun[place][1] for place in places}
        equal({place: (n, least[place])
               for place, n in refused.items() if not least[place] <= n <= times}, {},
              "failures, and how many there should be at least")
        check(sum(least.values()) > times, "few places were called:", least)
        equal(differences(run.booked()[0], run.counted()), {}, "what differs")


def toggled(compiler, *words):
    """Tags are turned off and on while threads use them. What was born in between cannot be told from outside; but
    when all has been given back nothing may live, nothing was ever counted that was not there, and from then on all is
    exact again.
    """
    def test():
        program, chance = Program.of(1, compiler, "-O2"), random.Random(5)
        with Asked(program, 60, 3000, "threads=%d" % THREADS, "timers", "maps", "fails=11", *words) as run:
            run.do("")
            places = sorted(run.function)
            for turn in range(pick(3, 40)):
                run.say("go")
                for _ in range(pick(6, 20)):
                    some = chance.sample(places, 12)
                    run.set(some, chance.choice(("off", "on")))
                    if not chance.randrange(5):
                        run.set(None, chance.choice(("off", "on")))
                    check(not select.select([run.process.stdout], [], [], 0)[0], "it rests, or has ended")
                run.do("drain")
                run.rest()
                counted, (have, said) = run.counted(), run.booked()
                equal(said, "", "what is said")
                mine = {place: row for place, row in have.items() if program.kind_at(place) != "ACCOUNT"}
                equal({place: row
                       for place, row in mine.items() if row[2] or row[3]}, {},
                      "what lives though all was freed, turn %d" % turn)
                equal(too_many(program, have, counted), {}, "what was counted and never was")
                exact_again(run, have, counted)
            children_are_sane(run)
            run.end()
    return test


def too_many(program, have, counted):
    """{place: (have, counted)}. Of mappings the sums: who is charged with what is moved depends on which of its parts
    are known.
    """
    def sums(rows):
        out = {}
        for place, row in rows.items():
            key = "mappings" if program.kind_at(place).startswith("MMAP") else place
            out[key] = tuple(map(sum, zip(out.get(key, (0,) * 5), row)))
        return out
    have, counted = sums(have), sums(counted)
    return {
        place: (row, counted.get(place))
        for place, row in have.items() if any(row[i] > counted.get(place, (0,) * 5)[i] for i in (0, 1, 4))
    }


def exact_again(run, have, counted):
    run.set(None, "on")
    run.set(sorted(run.function), "on")
    run.do("")
    counted_then, (have_then, _) = run.counted(), run.booked()
    zero = (0,) * 5
    more = [{place: tuple(a - b for a, b in zip(row, before.get(place, zero))) for place, row in after.items()}
            for before, after in ((have, have_then), (counted, counted_then))]
    equal(differences(*more), {}, "what differs of a round with all tags on")


def children_are_sane(run):
    for pid in run.pids():
        counted = run.program.counted(run.counts, pid) if pid != run.pid else {}
        if counted:
            have, _ = booked(run.ledgers, pid)
            if any(not run.program.kind_at(place) for place in have):
                continue  # another program has had that number since, elsewhere
            equal(too_many(run.program, have, counted), {}, "what was counted and never was, of a child")
            equal(
                {place: row
                 for place, row in have.items() if min(row) < 0 and run.program.kind_at(place) != "ACCOUNT"}, {},
                "a child's")


TESTS = [("every place fails when it is told to, mappings and objects of others beside",
          failures("clang", "maps", "foreign", "forks")), ("a failure that is not told is missed", miscounted),
         ("once is once, while threads run", once_while_it_runs),
         ("tags are turned off and on while threads use them, and children are forked", toggled("gcc", "forks")),]
if tap.LONG:
    TESTS += [("gcc: every place fails when it is told to", failures("gcc")),
              ("clang: tags are turned off and on while threads use them", toggled("clang"))]
tap.main(TESTS)
