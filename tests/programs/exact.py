# SPDX-License-Identifier: BSD-2-Clause
"""With period 1 the ledger's sums are the truth: real programs, counted by an independent shim in front of the agent.

Of every process: allocations and their bytes are the shim's; frees, together with the frees of what was inherited from a
parent, are the shim's; the live samples are the difference; nothing was lost.

A thread that is in the middle of a call when the process ends has its operation on one side of the two only. Programs
that end while other threads run may differ by one operation for each such thread; SLACK says which do, and by how many.
"""
import collections
import glob
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import tap
import workloads
from tap import built, check, equal, private_dir, succeed, totals

SLACK = {}  # filled below: program -> operations that may be under way at its end


def shim_counts(folder):
    """{pid: [allocations, bytes, frees, failures]}"""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path in glob.glob(folder + "/*.count"):
        with open(path, "rb") as file:
            for k, value in enumerate(struct.unpack("4Q", file.read(32))):
                sums[int(os.path.basename(path).split(".")[0])][k] += value
    return sums


def compare(ledgers, shim, slack=0, probe=(0, 0)):
    """Checks both against each other; -> processes that allocated. `probe`: allocations and bytes only the shim saw."""
    of_pid = collections.defaultdict(list)
    for ledger in totals(ledgers):
        tap.no_losses(ledger)
        of_pid[ledger["pid"]].append(ledger)
    counts = shim_counts(shim)
    busy = {pid for pid, have in counts.items() if have[0] or have[2]}
    check(busy, "the shim counted nothing")
    extra = set(of_pid) - set(counts)
    check(not extra, "ledgers of processes that the shim does not know:", extra)
    wrong = []
    for pid in busy:
        mine = of_pid[pid]
        names = {ledger["comm"] for ledger in mine}

        def total(key):
            return sum(ledger[key] for ledger in mine)

        allocations, size, frees, _ = counts[pid]
        allocations, size = allocations - probe[0], size - probe[1]
        inherited = total("inherited_frees")
        rows = [("allocations", total("allocated_samples"), allocations, slack),
                ("allocations, weighted", round(total("allocated_count")), allocations, slack),
                ("bytes", round(total("allocated_bytes")), size, slack << 24),
                ("frees", total("freed_samples") + inherited, frees, slack),
                ("live", total("live_samples"), total("allocated_samples") - total("freed_samples"), slack)]
        if not mine and not allocations:
            continue  # it only freed what it had inherited, and that needs no ledger
        wrong += ["pid %d (%s, %d images): %s: ledger %d, shim %d" % (pid, ",".join(names), len(mine), what, have, want)
                  for what, have, want, most in rows if abs(have - want) > most]
    check(not wrong, "\n".join(wrong))
    return len(busy)


def counted(workload):
    def test():
        with private_dir() as ledgers, private_dir() as shim, private_dir() as folder:
            workload.prepare(folder)
            env = tap.agent_env(ledgers, 1, ["+" + built("COUNT_SHIM")], COUNT_SHIM_DIR=shim, **workload.env)
            for command in workload.commands:
                stdin = open(os.path.join(folder, workload.stdin)) if workload.stdin else tap.subprocess.DEVNULL
                tap.run(command, cwd=folder, env=env, stdin=stdin)
            n = compare(ledgers, shim, SLACK.get(workload.name, 0))
            print("# %d processes" % n)
    return test


def probe_of(command):
    """
    Redis comes with jemalloc, which the agent does not know: at start it calls each of its functions once, with 64 bytes.
    Those that stand on another one of the family reach that through the shim. -> (allocations, bytes) only the shim saw.
    """
    with private_dir() as ledgers, private_dir() as shim:
        succeed(command, env=tap.agent_env(ledgers, 1, ["+" + built("COUNT_SHIM")], COUNT_SHIM_DIR=shim))
        (ledger,), (counts,) = totals(ledgers), shim_counts(shim).values()
    seen = counts[0] - ledger["allocated_samples"], counts[1] - round(ledger["allocated_bytes"])
    check(0 <= seen[0] < 20 and seen[1] == 64 * seen[0], "not what a probe would ask for:", seen)
    return seen


def counted_redis():
    probe = probe_of(["redis-server", "--version"])
    with private_dir() as ledgers, private_dir() as shim, private_dir() as folder:
        env = tap.agent_env(ledgers, 1, ["+" + built("COUNT_SHIM")], COUNT_SHIM_DIR=shim)
        with workloads.redis(folder, env) as (port, process):
            succeed(["redis-benchmark", "-p", str(port), "-q", "-n", str(tap.pick(2000, 100000)), "-c", "10", "-P", "4",
                     "-r", "1000", "-d", "100", "-t", "set,get,lpush,lrange_100,sadd,hset,zadd"])
            tap.run(["redis-cli", "-p", str(port), "shutdown", "nosave"])
            process.wait(20)
        compare(ledgers, shim, SLACK.get("redis", 0), probe)


tests = [("every allocation of %s is counted once" % w.name, counted(w)) for w in workloads.WORKLOADS]
tests.append(("every allocation of redis-server under redis-benchmark is counted once", counted_redis))
tap.main(tests)
