# SPDX-License-Identifier: BSD-2-Clause
"""What the agent and the library of tags take of the limits of a program: data (RLIMIT_DATA) and address space
(RLIMIT_AS).
"""
import os
import resource
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import tap
from tap import agent_env, built, check, private_dir, succeed

FOLDER = built("TEST_STRESS")
DATA_MOST_KIB = 16 << 10
LIBRARIES_MOST_KIB = 14 << 10  # both libraries, with their own variables
FILL_LESS_KIB = 1 << 10  # what a program may get less than without us: the rounding of its heap

WAYS = {  # program, settings of the agent; None: there is no agent
    "default": ("limits", 512 << 10, {}),
    "period 1": ("limits", 1, {}),
    "sites": ("limits", 512 << 10, {"ALLIUM_SITES": "1"}),
    "sites, period 1": ("limits", 1, {"ALLIUM_SITES": "1"}),
    "tags": ("limits-tagged", None, {}),
    "tags and sites": ("limits-tagged", 512 << 10, {"ALLIUM_SITES": "1"}),
}


def numbers_of(way, *args, **how):
    """What the program prints, and what it prints without the agent."""
    program, period, settings = WAYS[way]
    bare = succeed([os.path.join(FOLDER, "limits"), *args], **how).stdout
    with private_dir() as ledgers:
        env = agent_env(ledgers, period, **settings) if period else {"ALLIUM_DIR": ledgers}
        done = succeed([os.path.join(FOLDER, program), *args], env=env, **how)
    return [int(n) for n in done.stdout.split()], [int(n) for n in bare.split()]


def data(way):
    def test():
        (data, _), (bare, _) = numbers_of(way, "data")
        check(data - bare < DATA_MOST_KIB, "KiB of data more than without us:", data - bare)
    return test


def shares(way):
    """Under `ulimit -v` the ledger and all tables together take an eighth of the limit at most; code and .bss come to
    it.
    """
    def test():
        for limit_kib in 400_000, 2_000_000, 4_000_000, 8_000_000:
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (limit_kib << 10, limit_kib << 10))
            (_, size), (_, bare) = numbers_of(way, "data", preexec_fn=limit)
            check(size - bare <= limit_kib // 8 + LIBRARIES_MOST_KIB, "of", limit_kib, "KiB we took", size - bare)
    return test


def fills(way):
    def test():
        for limit in "as", "data-limit":
            for size in 1000, 100_000, 4 << 20:
                (got,), (bare,) = numbers_of(way, limit, str(size))
                check(got >= bare - FILL_LESS_KIB - (size >> 10), limit, "in blocks of", size, "it got", got,
                      "KiB, and without us", bare)
    return test


tap.main(
    [("%s: little is data" % way, data(way)) for way in WAYS] +
    [("%s: under a limit of its address space we take an eighth at most" % way, shares(way)) for way in WAYS] +
    [("%s: a program that limits itself later gets what it gets without us" % way, fills(way)) for way in WAYS])
