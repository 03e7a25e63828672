# SPDX-License-Identifier: BSD-2-Clause
"""Snapshots of a heap that four threads change all the while: no torn row, and a bound on what sums may differ by."""
import collections
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import recording_reader
import tap
from tap import agent_env, built, check, equal, pick, private_dir, succeed, wait_until

PROGRAM = os.path.join(built("TEST_STRESS"), "moving")
THREADS, FUNCTIONS = 4, 3


def rows_fit(path, ordinals):
    """What a block's size says of its thread and its function is what its cell says."""
    cells, count = {cell.id: cell for cell in recording_reader.cells(path)}, 0
    serials = [sample.serial for sample in recording_reader.samples(path)]
    equal(len(set(serials)), len(serials), "different serials")
    for sample in recording_reader.samples(path):
        cell = cells[sample.cell]
        equal(sample.size.bit_length() - 1 if sample.size else 0, cell.size_class, "size class of %s" % (sample,))
        if not (cell.function or "").startswith("make_"):
            continue
        count += 1
        equal("make_%d" % (sample.size.bit_length() - 7), cell.function, "function of %s" % (sample,))
        equal(ordinals.setdefault(cell.ordinal, sample.size % THREADS), sample.size % THREADS,
              "thread of %s" % (sample,))
    return cells, count


def bounded(path, cells):
    """
    Each operation under way may be in one of a row's figures and not yet in another. And a free takes its object from
    the table just before it begins to book it: one object more for each thread.
    """
    (image,) = recording_reader.images(path).values()
    equal((image["inconsistent"], image["lost_samples"], image["lost_live"]), (0, 0, 0), "inconsistent, lost")
    open_ones = image["begun"] - image["done"]
    check(open_ones >= 0, "more was done than begun:", image)
    live = collections.Counter(sample.cell for sample in recording_reader.samples(path))
    apart = sum(abs(cell.allocated.samples - cell.freed.samples - live[cell.id]) for cell in cells.values())
    check(apart <= open_ones + THREADS + image["torn"], "rows differ by", apart, "objects, under way:", open_ones,
          "torn:", image["torn"])
    for what, unit in (("count", 1), ("bytes", 320)):  # no block of moving.c has more bytes
        for cell in cells.values():
            if (cell.function or "").startswith("make_"):
                for sums in (cell.allocated, cell.freed):
                    off = abs(getattr(sums, what) - (sums.samples if what == "count" else sums.seen))
                    check(off <= unit * open_ones, what, "of", cell, "under way:", open_ones)
    return open_ones, apart


def snapshots():
    with private_dir() as runtime:
        os.mkdir(runtime + "/allium", 0o700)
        env = dict(os.environ, XDG_RUNTIME_DIR=runtime)
        process = subprocess.Popen([PROGRAM], env=agent_env(runtime + "/allium", 1), stdin=subprocess.PIPE)
        try:
            wait_until(lambda: os.listdir(runtime + "/allium"), 20, "a ledger")
            worst, moved, ordinals, path = [0, 0], 0, {}, runtime + "/s.allium"
            for number in range(pick(50, 200)):
                succeed([built("ALLIUM"), "snapshot", str(process.pid), "--force", "-o", path], env=env)
                cells, count = rows_fit(path, ordinals)
                if number:
                    check(count > 100, "live blocks in snapshot %d: %d" % (number, count))
                open_ones, apart = bounded(path, cells)
                worst, moved = [max(worst[0], open_ones), max(worst[1], apart)], moved + (open_ones > 0)
                said = succeed([built("ALLIUM"), "report", path], env=env).stdout.decode()
                statement = re.search(r"([\d.,]+k?M?) operations? under way[^.]*sums may differ by that many",
                                      " ".join(said.split()))
                check(
                    bool(statement) == (open_ones > 0),
                    "%d under way, and the report says %s" % (open_ones, said[-900:]))
            equal(process.poll(), None, "the program goes on")
            check(moved > 10, "it hardly ever moved: nothing was tried")
            print(
                "# %d snapshots in motion; at most %d operations under way, rows apart by at most %d" % (moved, *worst))
        finally:
            process.stdin.close()
            process.wait()


tap.main([("no row of a snapshot is torn, and sums differ by no more than it says", snapshots)])
