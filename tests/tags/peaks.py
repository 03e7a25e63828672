# SPDX-License-Identifier: BSD-2-Clause
"""The peak of a tag's live bytes is a range, and what the program itself saw at most lies in it."""
import os
import sys

sys.dont_write_bytecode = True
from building import accounts, program, tap
from tap import check, equal, private_dir, succeed


def peak_of(*words):
    """-> (surely live at once, perhaps live at once, peak and its upper end as told), of the one place that makes
    objects
    """
    with private_dir() as ledgers:
        done = succeed([program("gcc", ["-O2"], "peaks.c"), *map(str, words)], env=dict(os.environ, ALLIUM_DIR=ledgers))
        surely, maybe = map(int, done.stdout.split())
        pid = next(int(name.split("-")[0]) for name in os.listdir(ledgers) if name.endswith(".tags"))
        row = next(row for row in accounts(ledgers, pid)[0] if row["name"] == "malloc")
        equal(row["live_bytes"], 0, "live at the end")
        return surely, maybe, row["peak_bytes"], row["peak_high_bytes"]


def holds(surely, maybe, low, high, words):
    check(low <= maybe and surely <= high, "%s: %d-%d is not between %d and %d" % (words, low, high, surely, maybe))


def grown():
    """Looked for after each 32nd part more, or after 64 KiB of objects whose size is not in their entry: so much may be
    missing below, and no more is added above.
    """
    sizes = (1, 7), (5, 100), (99, 24), (3000, 64), (50000, 100), (2000, 4095), (2000, 4096), (100, 10000), (3, 1 << 30)
    for n, each in sizes:
        surely, maybe, low, high = peak_of("grow", n, each)
        equal((surely, maybe), (n * each, n * each), "the program's own")
        holds(surely, maybe, low, high, (n, each))
        part = max(min(n // 32 + 1, 1023) * each, 65536 if 4096 <= each < 1 << 20 else 0)
        check(low >= surely - part and high <= surely + part, "%d of %d: %d-%d" % (n, each, low, high))


def churned():
    """Of several threads a sum that was looked for at one moment is surely right, and each may have more in between."""
    for threads, turns, seed in (1, 20000, 1), (2, 20000, 2), (4, 10000, 3), (8, 4000, 4), (30, 2000, 5), (40, 300, 6):
        surely, maybe, low, high = peak_of("churn", threads, turns, seed)
        holds(surely, maybe, low, high, (threads, turns, seed))
        check(low >= 0.5 * surely and (threads > 8 or high <= 4 * maybe),
              "%d threads, %d: %d-%d is no use" % (threads, surely, low, high))


def huge():
    """What is a multiple of 4 GiB leaves the lower half of a sum as it was."""
    for n, each in (1, 1 << 32), (2, 3 << 32), (3, 3 << 30), (1, (1 << 40) + 5):
        surely, maybe, low, high = peak_of("huge", n, each)
        equal((surely, maybe, low), (each, each, each), (n, each))
        check(high < each + (1 << 20), "%d of %d: up to %d" % (n, each, high))


tap.main([
    ("of what grows, to a 32nd part", grown),
    ("of what is told to be huge", huge),
    ("of threads that make and free at random", churned),
])
