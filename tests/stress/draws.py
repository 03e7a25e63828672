# SPDX-License-Identifier: BSD-2-Clause
"""ALLIUM_SEED: the same samples again, other ones with another seed; threads and fork children draw for themselves."""
import math
import os
import sys

sys.dont_write_bytecode = True
import recording_reader
import tap
from tap import built, check, equal, pick, private_dir, succeed

PROGRAM = os.path.join(built("TEST_STRESS"), "draws")
WORKERS, FIRST_BYTES, PERIOD = 8, 1000, 4096
# beyond them once in 4 * 10^11 times; 28 pairs and 8 counts, in three tests whose seeds are not given: 3 * 10^-10 a run
SIGMAS = 7


def recorded(how, blocks, seed=None, before=()):
    """-> {worker: {serial: size}}, and what the cells of each add up to"""
    with private_dir() as folder:
        path = folder + "/r.allium"
        env = dict(os.environ, XDG_RUNTIME_DIR=folder, **({"ALLIUM_SEED": str(seed)} if seed is not None else {}))
        succeed([*before, built("ALLIUM"), "run", "--quiet", "--period", str(PERIOD), "-o", path, "--", PROGRAM, how,
                 str(blocks)], env=env)
        cells = recording_reader.cells(path)
        ages = {
            image: age
            for age, (image,) in enumerate(recording_reader.rows(path, "SELECT id FROM image ORDER BY began_ns"))
        }
        worker = {c.id: c.ordinal if how == "threads" else ages[c.image] for c in cells}
        drawn, sums = {}, {}
        for sample in recording_reader.samples(path):
            drawn.setdefault(worker[sample.cell], {})[sample.serial] = sample.size
        for cell in cells:
            sums.setdefault(worker[cell.id], []).append((cell.function, cell.size_class, cell.allocated, cell.freed))
        return drawn, {who: sorted(rows, key=str) for who, rows in sums.items()}


def seeded(how):
    def test():
        blocks, fixed = pick(5000, 10_000), ("setarch", "-R")
        one = recorded(how, blocks, 42, fixed)
        check(sum(len(samples) for samples in one[0].values()) > WORKERS * 1000, "hardly a sample")
        for before, what in ((fixed, "at fixed addresses"), ((), "at random addresses"), ((), "at other random ones")):
            again = recorded(how, blocks, 42, before)
            equal(again[0], one[0], "samples of the same seed, " + what)
            equal(again[1], one[1], "sums of the same seed, " + what)
        for seed in (43, 42 + (1 << 40), 0):
            other = recorded(how, blocks, seed, fixed)
            equal(sorted(other[0]), sorted(one[0]), "workers")
            for who in one[0]:
                check(other[0][who] != one[0][who], "seeds 42 and %d give worker %s the same samples" % (seed, who))
    return test


def independent(how, seed):
    """With p the chance of a block to be sampled, (sampled - p) / sqrt(p (1 - p)) has mean 0 and variance 1. For
    workers that share no draw the mean over n blocks of the product of two is 0, with a standard error of 1 / sqrt(n):
    28 pairs all stay within SIGMAS of these. Workers with the same draws have a mean of 1: of sqrt(n) standard errors,
    which are 70 or more.
    """
    def test():
        n = pick(5000, 10_000)
        chance = [1 - math.exp(-(FIRST_BYTES + i) / PERIOD) for i in range(n)]
        drawn, _ = recorded(how, n, seed)
        scores = []
        for samples in drawn.values():
            sizes = {size - FIRST_BYTES for size in samples.values() if FIRST_BYTES <= size < FIRST_BYTES + n}
            if len(sizes) < n / 20:
                continue  # the main thread, which is no worker
            expected, error = sum(chance), math.sqrt(sum(p * (1 - p) for p in chance))
            check(
                abs(len(sizes) - expected) < SIGMAS * error,
                "%d samples, expected %.0f +- %.0f" % (len(sizes), expected, error))
            scores.append([((i in sizes) - p) / math.sqrt(p * (1 - p)) for i, p in enumerate(chance)])
        equal(len(scores), WORKERS, "workers with samples")
        worst = 0
        for i, one in enumerate(scores):
            for j, other in enumerate(scores[:i]):
                together = abs(sum(a * b for a, b in zip(one, other))) / math.sqrt(n)
                worst = max(worst, together)
                check(together < SIGMAS, "workers %d and %d: %.1f standard errors from independent" % (i, j, together))
        print("# %d pairs, the most correlated one at %.1f standard errors" % (WORKERS * (WORKERS - 1) // 2, worst))
    return test


tap.main(
    [
        ("a seed gives threads the same samples again, wherever they run", seeded("threads")),
        ("a seed gives fork children the same samples again, wherever they run", seeded("forks")),
    ]
    + [
        ("%s do not share draws, with %s" % (what, "a seed" if seed else "none"), independent(how, seed))
        for how, what, seeds in (
            ("threads", "threads", (None, 42)),
            ("forks", "fork children", (None, 42)),
            ("clones", "children of the bare clone call", (None, 42)),
        )
        for seed in seeds
    ]
)
