# SPDX-License-Identifier: BSD-2-Clause
"""A ledger outlives its process, whatever instant that was killed at; and a steady process makes no system call for us.
"""
import os
import random
import re
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, pick, private_dir, succeed, totals

FOLDER = built("TEST_STRESS")
STEP = 16  # blocks between two messages of confirmed.c


def program(name):
    return os.path.join(FOLDER, name)


def killed():
    random.seed(20240101)
    times, confirmed = pick(50, 1000), 0
    for number in range(times):
        with private_dir() as ledgers:
            delay = random.random() * 0.08  # from before its exec on, or from its first words
            process = subprocess.Popen([program("confirmed")], env=agent_env(ledgers, 1), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, bufsize=0)
            first = process.stdout.read(16) if number % 2 else b""
            try:
                process.communicate(timeout=delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            said = first + process.communicate()[0]
            equal(process.returncode, -signal.SIGKILL, "code")
            allocated, freed = struct.unpack("QQ", said[-16:]) if said else (0, 0)
            confirmed += allocated > 0
            found = totals(ledgers)
            if not allocated and (not found or "error" in found[0]):
                continue  # before its first block, or while the ledger was being made
            equal(len(found), 1, "ledgers after %d confirmed blocks" % allocated)
            (ledger,) = found
            tap.no_losses(ledger)
            equal(ledger["alive"], False, "alive")
            stacks = totals(ledgers, "--stacks")
        mine = sum(s["allocated"] for s in stacks if is_main(s))
        mine_freed = sum(s["freed"] for s in stacks if is_main(s))
        where = "kill %d after %.3f s, confirmed %d and %d freed" % (number, delay, allocated, freed)
        check(allocated <= mine <= allocated + STEP + 30, where, "ledger has", mine)
        check(freed <= mine_freed <= freed + STEP + 30, where, "ledger has freed", mine_freed)
        torn = ledger["allocated_samples"] - ledger["freed_samples"] - ledger["live_samples"]
        check(abs(torn) <= 2, where, "live objects and sums differ by", torn)
        check(ledger["begun"] - ledger["done"] <= 2, where, "operations under way:", ledger["begun"] - ledger["done"])
        check(ledger["torn"] <= 2, where, "torn", ledger["torn"])
    check(confirmed >= times // 2, "of", times, "only", confirmed, "had confirmed anything")
    print("# %d of %d had confirmed something" % (confirmed, times))


def is_main(stack):
    """churn() is called by libc, and so is main(); but that is called by the program's own entry."""
    frames = [frame[0] for frame in stack["frames"]]
    return frames[:1] == [program("confirmed")] == frames[-1:]


def calls_between_marks(env):
    with private_dir("/tmp") as folder:
        log = folder + "/log"
        succeed(
            ["strace", "-f", "-o", log, "-E", "LD_PRELOAD=" + env.get("LD_PRELOAD", ""),
             program("steady"), "100000"], env={name: value
                                                for name, value in env.items() if name != "LD_PRELOAD"})
        with open(log) as file:
            lines = [re.sub(r"^\d+ +", "", line) for line in file]
    marks = [i for i, line in enumerate(lines) if line.startswith("getpgid")]
    equal(len(marks), 2, "marks in the log")
    return [line.split("(")[0] for line in lines[marks[0] + 1:marks[1]]], len(lines)


def steady():
    bare, _ = calls_between_marks(dict(os.environ))
    with private_dir() as ledgers:
        calls, _ = calls_between_marks(agent_env(ledgers, "512K"))
        (ledger,) = totals(ledgers)
    check(ledger["allocated_samples"] > 100, "hardly a sample was taken:", ledger["allocated_samples"])
    extra = [call for call in calls if call not in bare]
    equal(extra, [], "system calls that are the agent's")
    equal(len(calls), len(bare), "system calls between the marks")


tap.main([
    ("a ledger holds what was confirmed before SIGKILL", killed),
    ("a steady process makes no system call more than without the agent", steady),
])
