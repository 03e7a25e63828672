# SPDX-License-Identifier: BSD-2-Clause
"""With period 1 the ledger's sums are the truth: real programs, counted by an independent shim in front of the agent.

Of every process: allocations and their bytes are the shim's; frees, together with the frees of what was inherited from
a parent, are the shim's; the live samples are the difference; nothing was lost.
"""
import collections
import glob
import os
import struct
import sys

sys.dont_write_bytecode = True
import tap
import workloads
from tap import built, check, private_dir, succeed, totals


def shim_counts(folder):
    """{pid: [allocations, bytes, frees, failures]}"""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path in glob.glob(folder + "/*.count"):
        with open(path, "rb") as file:
            for k, value in enumerate(struct.unpack("4Q", file.read(32))):
                sums[int(os.path.basename(path).split(".")[0])][k] += value
    return sums


def compare(ledgers, shim, probe):
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
        rows = [("allocations", total("allocated_samples"), allocations),
                ("allocations, weighted", round(total("allocated_count")), allocations),
                ("bytes", round(total("allocated_bytes")), size),
                ("frees", total("freed_samples") + total("inherited_frees"), frees),
                ("live", total("live_samples"), total("allocated_samples") - total("freed_samples"))]
        if not mine and not allocations:
            continue  # it only freed what it had inherited, and that needs no ledger
        wrong += ["pid %d (%s, %d images): %s: ledger %d, shim %d" % (pid, ",".join(names), len(mine), what, have, want)
                  for what, have, want in rows if have != want]
    check(not wrong, "\n".join(wrong))
    return len(busy)


def probe_of(command):
    """Redis comes with jemalloc, which the agent does not know: at start it calls each of its functions once, with 64
    bytes. Those that stand on another one of the family reach that through the shim. -> (allocations, bytes) only the
    shim saw.
    """
    with private_dir() as ledgers, private_dir() as shim:
        succeed(command, env=tap.agent_env(ledgers, 1, ["+" + built("COUNT_SHIM")], COUNT_SHIM_DIR=shim))
        (ledger,), (counts,) = totals(ledgers), shim_counts(shim).values()
    seen = counts[0] - ledger["allocated_samples"], counts[1] - round(ledger["allocated_bytes"])
    check(0 <= seen[0] < 20 and seen[1] == 64 * seen[0], "not what a probe would ask for:", seen)
    return seen


def counted(workload):
    def test():
        workload.lengthen()
        probe = probe_of(["redis-server", "--version"]) if isinstance(workload, workloads.Redis) else (0, 0)
        with private_dir() as ledgers, private_dir() as shim, private_dir("/tmp") as folder:
            workload.run(folder, tap.agent_env(ledgers, 1, ["+" + built("COUNT_SHIM")], COUNT_SHIM_DIR=shim))
            print("# %d processes" % compare(ledgers, shim, probe))
    return test


tap.main([("every allocation of %s is counted once" % w.name, counted(w)) for w in workloads.WORKLOADS])
