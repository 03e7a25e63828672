# SPDX-License-Identifier: BSD-2-Clause
"""Builds and runs random programs (random_places.py) over an allocator that counts for itself (below.c), and compares
the accounts.
"""
import json
import os
import re
import struct
import subprocess
import tempfile

import random_places
import tap
from tap import built, check, equal, pick, private_dir, succeed

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-proof-")
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
ROW = struct.Struct("QQQQQqqQQ")  # struct below_row
PLACES = 1024
FIELDS = "made", "made_bytes", "live", "live_bytes", "failed"
THREADS = 8
BARE = "-DNO_TAGS"  # among the compiler's options: without the header, for accounts of call sites
# the C library calls for the others
DIRECT = "MALLOC", "CALLOC", "POSIX_MEMALIGN", "ALIGNED_ALLOC", "MEMALIGN", "REALLOC", "REALLOCARRAY"


def below():
    out = os.path.join(SCRATCH.name, "libbelow.so")
    if not os.path.exists(out):
        succeed(["gcc", "-g", "-O2", *WARNINGS, "-fPIC", "-shared", "-fno-builtin", os.path.join(HERE, "below.c"),
                 os.path.join(HERE, "below_maps.c"), "-o", out])
    return out


class Program:
    """One that was generated from a seed and built: where its places are, and what its runs counted."""
    _built = {}

    @classmethod
    def of(cls, seed, compiler, *options):
        key = seed, compiler, options
        if key not in cls._built:
            cls._built[key] = cls(*key)
        return cls._built[key]

    def __init__(self, seed, compiler, options):
        self.folder = tempfile.mkdtemp(dir=SCRATCH.name)
        self.writer = random_places.program(seed)
        random_places.write(self.writer, self.folder)
        flags = ["-g", *options, *WARNINGS, "-I", INCLUDE, "-I", HERE]
        hooks = [] if BARE in options else ["-include", "allium/malloc_hooks.h"]
        plus = {"gcc": "g++", "clang": "clang++"}[compiler]
        libraries = [
            LIBRARY,
            below(), *("-Wl,-rpath," + os.path.dirname(path) for path in (LIBRARY, below())), "-lpthread", "-ldl"
        ]
        objects, self.plugins = [], []
        for unit in [*self.writer.units, os.path.join(HERE, "random.c"), os.path.join(HERE, "random_maps.c")]:
            out = os.path.join(self.folder, os.path.basename(unit) + ".o")
            cc = plus if unit.endswith(".cc") else compiler
            if unit.startswith("plugin"):
                self.plugins.append(out[:-2] + ".so")
                succeed([
                    cc, *flags, *hooks, "-fPIC", "-shared",
                    os.path.join(self.folder, unit), "-o", self.plugins[-1], *libraries
                ])
            elif not unit.endswith(".h"):
                succeed([
                    cc, *flags, *([] if unit.startswith("/") else hooks), "-c",
                    os.path.join(self.folder, unit), "-o", out
                ])
                objects.append(out)
        self.binary = os.path.join(self.folder, "random")
        succeed([plus, *options, *objects, "-rdynamic", "-o", self.binary, *libraries])  # plugins call its streams

    def words(self, seed, steps, *words):
        return [self.binary, str(seed), str(steps), *words, *("plugin=" + path for path in self.plugins)]

    def place_of(self, number):
        unit, line = self.writer.where[number]
        return "%s:%d" % (unit, line)

    def kind_at(self, place):
        """The kind, or "" of a place that is none of ours."""
        return next((kind for number, kind in self.writer.kinds.items()
                     if number in self.writer.where and self.place_of(number) == place), "")

    def _rows(self, folder, pid):
        with open(os.path.join(folder, str(pid)), "rb") as file:
            data = file.read()
        return {number: ROW.unpack_from(data, 8 + number * ROW.size) for number in range(PLACES)}

    def asked(self, folder, pid):
        """{place: (requests, those of which nothing came)} by the program's own words."""
        rows = self._rows(folder, pid)
        return {self.place_of(number): rows[number][7:] for number in self.writer.where}

    def counted(self, folder, pid, sites=False):
        """{place: its figures} as the allocator below has them; `sites`: of call sites, whose frees are seen whoever
        makes them.
        """
        sums = {}
        for number, row in self._rows(folder, pid).items():
            made, made_bytes, gone, gone_bytes, failed, hidden, hidden_bytes, _, _ = row
            if sites:
                hidden = hidden_bytes = 0
            if sites and self.writer.kinds.get(number) not in DIRECT:
                continue
            if number in self.writer.where and (made or failed):  # the library has an account of what was reached
                sums[self.place_of(
                    number)] = made, made_bytes, made - gone + hidden, made_bytes - gone_bytes + hidden_bytes, failed
        return sums


def booked(ledgers, pid):
    """{place: its figures} as the command has them; -> and what stands on stderr."""
    done = succeed([built("ALLIUM"), "tags", str(pid), "--json", "--top", "0"],
                   env=dict(os.environ, ALLIUM_DIR=ledgers))
    rows = {}
    for row in json.loads(done.stdout)["rows"]:
        place = os.path.basename(row["place"])
        check(place not in rows, "two rows of", place)
        rows[place] = row["allocations"], row["allocated_bytes"], row["live_objects"], row[
            "live_bytes"], row["failed"] or 0
    return rows, done.stderr.decode()


def differences(have, want):
    """{place: (have, want)} where they differ."""
    zero = (0,) * len(FIELDS)
    return {place: (have.get(place, zero), want.get(place, zero)) for place in sorted({*have, *want})
            if have.get(place, zero) != want.get(place, zero)}


class Run:
    """A program that runs, with folders for both accounts."""

    def __init__(self, program, seed, steps, *words, env=(), **more):
        self.program = program
        self.dirs = private_dir(), private_dir()
        self.ledgers, self.counts = (d.__enter__() for d in self.dirs)
        self.process = subprocess.Popen(
            program.words(seed, steps, *words), env=dict(os.environ, ALLIUM_DIR=self.ledgers, BELOW_DIR=self.counts,
                                                         **dict(env)), **more)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.kill()
        self.process.wait()
        for d in self.dirs:
            d.__exit__(*why)

    def pids(self):
        return sorted(int(name) for name in os.listdir(self.counts))

    def unseen(self, pid):
        with open(os.path.join(self.counts, str(pid)), "rb") as file:
            return struct.unpack("Q", file.read(8))[0]

    def compare(self):
        """-> ({pid: differences}, rows compared, what was said)"""
        wrong, rows, words = {}, 0, ""
        for pid in self.pids():
            want = self.program.counted(self.counts, pid)
            have, said = booked(self.ledgers, pid) if want else ({}, "")
            rows, unseen = rows + len(want), self.unseen(pid)
            words += said
            told = re.search(r"([\d,]+) objects? w\w+ freed by code without tags", said)
            equal(int(told.group(1).replace(",", "")) if told else 0, unseen if want else 0, "frees that came to light")
            refused = {place: counts[1] for place, counts in self.program.asked(self.counts, pid).items() if counts[1]}
            equal({place: row[4]
                   for place, row in want.items() if row[4]}, refused, "what failed, by the program's own words")
            if differences(have, want):
                wrong[pid] = differences(have, want)
        return wrong, rows, words


def ended(program, seed, *words, steps=None, env=()):
    """Runs to the end; -> as Run.compare()"""
    with Run(program, seed, steps or pick(3000, 30000), *words, env=env) as run:
        try:
            equal(run.process.wait(tap.TIMEOUT), 0, "its code, seed %s %s" % (seed, words))
        except subprocess.TimeoutExpired:
            raise tap.Failed("it hangs, seed %s %s" % (seed, words))
        return run.compare()
