# SPDX-License-Identifier: BSD-2-Clause
"""Code that comes and goes, and stacks with no room: every sample has its stack, and nothing crashes."""
import collections
import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, numbers, pick, private_dir, succeed, totals

FOLDER = built("TEST_STRESS")


def program(name):
    return os.path.join(FOLDER, name)


def twins(threads):
    def test():
        paths = [program("twin-one.so"), program("twin-two.so")]
        equal(os.path.getsize(paths[0]), os.path.getsize(paths[1]), "sizes of the two libraries")
        with private_dir() as ledgers:
            done = succeed([program("twins"), str(pick(1000, 20000)), str(threads), *paths], env=agent_env(ledgers, 1))
            said = numbers(done.stdout.decode())
            (ledger,) = totals(ledgers)
            stacks = totals(ledgers, "--stacks")
        tap.no_losses(ledger)
        equal(ledger["stacks_broken"] + ledger["stacks_cut"], 0, "broken or cut stacks")
        check(said["shared"], "the libraries never stood at one address: nothing was tried")
        for path in paths:
            with_it = [s for s in stacks if any(frame[0] == path for frame in s["frames"])]
            equal(sum(s["allocated"] for s in with_it), said["blocks"], "blocks of " + os.path.basename(path))
            equal(sum(s["freed"] for s in with_it), said["blocks"], "freed blocks of " + os.path.basename(path))
            for stack in with_it:
                equal([frame[0] for frame in stack["frames"]][:2], [path, path], "the innermost frames")
                check(not any(other in [f[0] for f in stack["frames"]] for other in paths if other != path), "both",
                      stack)
    return test


def functions_named():
    """`allium report` names the function that each library has, though both stood at one address."""
    with private_dir() as folder:
        recording = folder + "/twins.allium"
        paths = [program("twin-one.so"), program("twin-two.so")]
        succeed([
            built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", recording, "--",
            program("twins"), "50", "0", *paths
        ])
        done = succeed([built("ALLIUM"), "report", recording, "--by", "function", "--sort", "allocations", "--top", "0",
                        "--json"])
        rows = {row["name"]: row for row in tap.json.loads(done.stdout)["rows"]}
    for name, path in (("twin_one", paths[0]), ("twin_two", paths[1])):
        check(name in rows, name, "is not among", sorted(rows))
        equal(rows[name]["module"], path, "module of " + name)


def lookalikes(*how):
    """Stacks that differ in a return address alone are told apart, also when each was remembered from the time before.
    """
    def test():
        with private_dir() as ledgers:
            done = succeed([program("lookalikes"), str(pick(2000, 50000)), *how], env=agent_env(ledgers, 1))
            want = sorted(int(count) for count in done.stdout.split())
            (ledger,) = totals(ledgers)
            stacks = totals(ledgers, "--stacks")
        tap.no_losses(ledger)
        equal(len(want), 64, "stacks that the program took")
        leaves = collections.Counter(tuple(s["frames"][0]) for s in stacks)
        (leaf, _), = leaves.most_common(1)
        equal(sorted(s["allocated"] for s in stacks if tuple(s["frames"][0]) == leaf), want, "requests by stack")
    return test


def constructor():
    """The loader calls it, from code that has no unwind rules; the loader's first frame is the outermost one."""
    library = program("constructor.so")
    with private_dir() as ledgers:
        succeed(["true"], env=agent_env(ledgers, 1, [library]))
        (ledger,) = totals(ledgers)
        stacks = totals(ledgers, "--stacks")
    tap.no_losses(ledger)
    equal(ledger["stacks_broken"] + ledger["stacks_cut"], 0, "broken or cut stacks")
    made = [stack for stack in stacks if stack["allocated"] and stack["frames"][0][0] == library]
    equal(sorted(stack["allocated"] for stack in made), [50, 50], "blocks of the library, by stack")
    for stack in made:
        check(re.match("ld-linux", os.path.basename(stack["frames"][-1][0])), "the outermost frame:",
              stack["frames"][-1])


def small(how, size=None, count=None):
    def test():
        n = count or pick(2000, 50000)
        with private_dir() as ledgers:
            for period in (1, 10000):
                done = succeed([program("small_stacks"), how, str(n)] + ([str(size)] if size else []),
                               env=agent_env(ledgers, period))
                said = numbers(done.stdout.decode())
                bare = subprocess.run([program("small_stacks"), how, str(n)] + ([str(size)] if size else []),
                                      capture_output=True)
                equal(done.stdout, bare.stdout, "what it says")
                if period == 1:
                    (ledger,) = totals(ledgers)
                    stacks = totals(ledgers, "--stacks")
        tap.no_losses(ledger)
        equal(ledger["stacks_broken"] + ledger["stacks_cut"], 0, "broken or cut stacks")
        # gcc 14 unrolls a loop, so that there are four places; what else the program asks for is a request or two
        seen = sum(s["allocated"] for s in stacks if s["allocated"] >= said["made"] // 4)
        equal(seen, said["made"], "blocks, of stacks %s" % re.sub(r"'frames.*?]]", "", str(stacks))[:500])
    return test


def least():
    """The kernel's frame for a handler, on this processor."""
    with open("/proc/self/auxv", "rb") as file:
        words = struct.iter_unpack("QQ", file.read())
    return dict(words).get(51, 2048)  # AT_MINSIGSTKSZ


tap.main([
    ("stacks that differ in return addresses alone are told apart", lookalikes()),
    ("and those with a frame found by rbp", lookalikes("frame")),
    ("two libraries at one address: each block is booked to the one that made it", twins(0)),
    ("two libraries at one address, with other threads allocating", twins(3)),
    ("two libraries at one address: functions are named as they were", functions_named),
    ("the constructor of a library has whole stacks", constructor),
    ("a coroutine made by makecontext on 8 KiB", small("context")),
    ("a coroutine switched to by hand on 8 KiB", small("switch")),
    ("a thread with the least stack there is", small("thread", os.sysconf("SC_THREAD_STACK_MIN"))),
    ("a handler on an alternate stack of 8 KiB", small("sigaltstack", 8192)),
    ("a handler on an alternate stack of 6 KiB more than the kernel's least", small("sigaltstack", least() + 6144)),
])
