# SPDX-License-Identifier: BSD-2-Clause
"""Whole programs with the agent, a floor and peers, each at the same time as the same program without it.

Both share the CPUs, and so the kernel gives them turns of a few milliseconds: what a machine does meanwhile falls on
both alike, and the ratio of their CPU times has a tenth of the spread that one run after the other has. The figure is
the median of these ratios. Addresses stay random: the luck of one layout would be a bias, the luck of many is in the
interval. Pairs are run until its half width is a third of the margin, or the time is up.
"""
import concurrent.futures
import importlib.machinery
import importlib.util
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = float(os.environ.get("ALLIUM_BENCH_SECONDS", "600"))  # for the turns of one workload
PEERS_EVERY = 4  # turns: the more pairs are ours, the sooner our interval is narrow
LEAST_TURNS = 6  # whatever the time: fewer have no interval of 95 %
SLOW_RUNS, SLOW_SECONDS = 2, 60
SHORT_SECONDS = 300  # a run given less does without slow peers


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # that no program outlives a benchmark that timed out


def load_script(name):
    """A benchmark without a suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, "%s/%s" % (os.path.dirname(os.path.realpath(__file__)), name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    arguments, sys.argv = sys.argv, [name]
    loader.exec_module(module)
    sys.argv = arguments
    return module


class Way:
    """One way to run the workload: with these variables, as a ratio to the way `base`."""

    def __init__(self, name, env=None, base="bare", every=1):
        self.name, self.env, self.base, self.every = name, env or {}, base, every
        self.seconds, self.resident, self.ratios = [], [], []  # of each run; MiB; of each pair


class Ratio:
    """The median of these ratios and its 95 % interval, exact, by rank (the sign test's)."""

    def __init__(self, ratios):
        ratios = sorted(ratios)
        self.runs, self.value = len(ratios), statistics.median(ratios)
        beyond = rank = 0
        while (beyond := beyond + math.comb(self.runs, rank) / 2**self.runs) <= 0.025:
            rank += 1
        self.low, self.high = ratios[max(rank, 1) - 1], ratios[-max(rank, 1)]

    def __str__(self):
        return "%7.3f  (%.3f-%.3f)" % (self.value, self.low, self.high)


class TooSlow(Exception):
    pass


class Scratch:
    """A directory in memory, new for every run, with one for ledgers inside."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="allium-bench-", dir="/dev/shm")
        os.mkdir(self.folder + "/ledgers", 0o700)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


def run(cost, workload, way, timeout=None):
    """(seconds or whatever the program printed, resident MiB)"""
    with Scratch() as scratch:
        folder = scratch.folder
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "ALLIUM_DIR": folder + "/ledgers", **workload.env}
        only = ["%s=%s" % (name, value.replace("FOLDER", folder)) for name, value in way.env.items()]
        command = [cost, folder + "/cost", *only, *workload.prepare(folder)]
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            workload.drive(folder, process, timeout)
            printed, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TooSlow
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        seconds, resident, status = open(folder + "/cost").read().split()
        # A library that is not there costs nothing, and proves nothing.
        absent = b"cannot be preloaded" in printed or way.name == "Allium" and not os.listdir(folder + "/ledgers")
        if int(status) or absent:
            raise SystemExit("%s, %s: status %s%s\n%s" % (workload.name, way.name, status, ", not observed" * absent,
                                                         printed.decode()))
        return float(printed.split()[-1] if workload.prints else seconds), int(resident) / 1024


def run_pair(cost, workload, way, base):
    """Both at once, started in random order."""
    pair = random.sample((way, base), 2)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for each, result in zip(pair, [pool.submit(run, cost, workload, each) for each in pair]):
            seconds, resident = result.result()
            each.seconds.append(seconds)
            each.resident.append(resident)
    way.ratios.append(way.seconds[-1] / base.seconds[-1])


def measure(cost, workload, ways, margin):
    """Runs the turns; the number of them, and the ratio of our way."""
    began, turn, look = time.monotonic(), 0, 3 * LEAST_TURNS
    while True:
        for way in ways.values():
            if way is not ways["bare"] and turn % way.every == 0:
                run_pair(cost, workload, way, ways[way.base])
        turn += 1
        ended = turn >= LEAST_TURNS and time.monotonic() - began > SECONDS
        if ended or turn >= look:
            look = turn * 6 // 5  # seldom, since who looks often enough sees a narrow interval by luck
            ratio = Ratio(ways["Allium"].ratios)
            if ended or (ratio.high - ratio.low) / 2 <= margin / 3:
                return turn, ratio


def verdict(low, high, bound):
    """Missed is a bound that the whole interval lies above, reached one that none of it does."""
    return "reached" if high <= bound else "MISSED" if low > bound else "undecided: the interval holds the bound"


def report(cost, workload, ways, slow, bound):
    """Measures and prints; whether no bound was missed."""
    turns, ratio = measure(cost, workload, ways, bound - 1)
    bare, ours = ways["bare"], ways["Allium"]
    unit = "ns" if workload.prints else "s"
    print("%s; %d pairs" % (workload.what, turns))
    print("  %-42s %9.4g %s   %6.1f MiB resident" % ("bare", statistics.median(bare.seconds), unit,
                                                     statistics.median(bare.resident)))
    said = verdict(ratio.low, ratio.high, bound)
    print("  %-42s %s   at most %.2f   %s" % ("Allium", ratio, bound, said))
    reached = said != "MISSED"
    if workload.weighs:
        most = 1.03 * statistics.median(bare.resident) + 4
        holds = statistics.median(ours.resident)
        print(
            "  %-42s %7.1f MiB   at most %.1f MiB   %s" % ("Allium, resident", holds, most, verdict(holds, holds, most))
        )
        reached = reached and holds <= most
    for way in ways.values():
        if way not in (bare, ours):
            of = Ratio(way.ratios)
            print("  %-42s %s   %d pairs, %.1f MiB" % ("%s / %s" % (way.name, way.base), of, of.runs,
                                                      statistics.median(way.resident)))
    for way in slow:
        print("  %-42s %s" % (way.name + " / " + way.base, slowly(cost, workload, way, bare)), flush=True)
    if slow:
        print("  %-42s     n/a: not packaged" % "Poireau", flush=True)
    return reached


def slowly(cost, workload, way, bare):
    """A peer that takes several times as long: once or twice is enough."""
    if SECONDS < SHORT_SECONDS:
        return "    n/a: left out of a short run"
    try:
        for _ in range(SLOW_RUNS):
            seconds, resident = run(cost, workload, way, SLOW_SECONDS)
            way.seconds.append(seconds)
            way.resident.append(resident)
    except TooSlow:
        if not way.seconds:
            return "more than %d s" % SLOW_SECONDS
    return "%7.2f   %d runs, %.1f MiB" % (statistics.median(way.seconds) / statistics.median(bare.seconds),
                                         len(way.seconds), statistics.median(way.resident))
