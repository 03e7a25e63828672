# SPDX-License-Identifier: BSD-2-Clause
"""The agent's tables under threads, signals, forks: the books are exact, compared with the program's own count."""
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, numbers, pick, private_dir, succeed, totals

FOLDER = built("TEST_STRESS")


def program(name):
    return os.path.join(FOLDER, name)


def observed(command, preload=(), **more):
    """-> (what it printed as numbers, its ledgers)"""
    with private_dir() as ledgers:
        done = succeed(command, env=agent_env(ledgers, 1, preload, **more))
        return numbers(done.stdout.decode()), totals(ledgers)


def difference(some, none, key):
    return round(some[key] - none[key])


def grown(command, nothing, preload=()):
    """-> (numbers of command, its ledger, ledger of the run that does nothing), without losses"""
    _, (none,) = observed(nothing, preload)
    said, (some,) = observed(command, preload)
    tap.no_losses(some)
    return said, some, none


def handoff():
    blocks = pick(2_000_000, 20_000_000)
    said, some, none = grown([program("handoff"), str(blocks)], [program("handoff"), "0"])
    for key, want in (("allocated_samples", said["made"]), ("freed_samples", said["made"]), ("live_samples", 0),
                      ("allocated_bytes", said["bytes"]), ("freed_bytes", said["bytes"])):
        equal(difference(some, none, key), want, key)
    equal(said["made"], blocks, "blocks made")


def crowded(allocator=()):
    def test():
        objects, times = pick("60000", "1000000"), "2"
        said, some, none = grown([program("crowded"), objects, times], [program("crowded"), objects, "0"], allocator)
        for key, want in (("allocated_samples", said["made"]), ("freed_samples", said["made"]), ("live_samples", 0),
                          ("allocated_bytes", said["bytes"]), ("freed_bytes", said["bytes"])):
            equal(difference(some, none, key), want, key)
    return test


def realloc_churn():
    rounds = pick(100_000, 2_000_000)
    said, some, none = grown([program("realloc_churn"), str(rounds)], [program("realloc_churn"), "0"])
    equal(said["wrong"], 0, "blocks whose content is not theirs, or reallocs that should have failed")
    for key, want in (
        ("allocated_samples", said["allocated"]),
        ("freed_samples", said["freed"]),
        ("live_samples", said["live"]),
        ("live_seen_bytes", said["live_bytes"]),
        ("failed", said["failed"]),
    ):
        equal(difference(some, none, key), want, key)


def signals(threads):
    def test():
        alloc = [program("signal-alloc.so")]
        count = pick(1000, 60_000)  # not so many seconds: who waits for a processor gets few
        said, some, none = grown([program("signals"), str(count), str(threads)],
                                 [program("signals"), "0", str(threads)], alloc)
        check(said["signals"] >= count, "too few signals:", said)
        equal(said["missing"], 0, "failed requests")
        for key, want in (("allocated_samples", said["allocated"]), ("freed_samples", said["freed"]),
                          ("live_samples", said["live"]), ("allocated_bytes", said["bytes"])):
            equal(difference(some, none, key), want, "%s after %d signals" % (key, said["signals"]))
    return test


def many_threads():
    threads = pick(2000, 20000)
    said, (ledger,) = observed([program("many_threads"), str(threads)])
    tap.no_losses(ledger)
    with private_dir() as ledgers:
        succeed([program("many_threads"), str(threads)], env=agent_env(ledgers, 1))
        stacks = totals(ledgers, "--stacks")
    counts = sorted((s["allocated"], s["freed"]) for s in stacks)
    for want in (said["of_1000"], said["of_2000"]):
        check((want, want) in counts, "no stack with", want, "allocations and frees:", counts[-5:])
    table = ledger["threads"]
    check(table < threads, "all threads have a record: nothing was tried", table)
    # The main thread and those with a record are known, `other` is the table's first record.
    check(ledger["lost_threads"] >= (threads - table) * 6, "lost_threads", ledger["lost_threads"])


def forked(how, threads=0, most=None):
    def test():
        count = min(pick(500, 10000), most or 10000)
        said, ledgers = observed([program("forks"), how, str(count), str(threads)])
        parents = [ledger for ledger in ledgers if ledger["comm"] == "forks" and ledger["parent_id"] == "0" * 16]
        equal(len(parents), 1, "ledgers without a parent")
        parent = parents[0]
        children = [ledger for ledger in ledgers if ledger["parent_id"] == parent["id"]]
        for ledger in ledgers:
            tap.no_losses(ledger)
        equal(said["bad"], 0, "children that did not end well")
        _, none = observed([program("forks"), how, "0", str(threads)])
        if not threads:  # threads churn on while nothing else happens
            equal(difference(parent, none[0], "allocated_bytes"), said["made"] * 999, "what the parent allocated")
            equal(difference(parent, none[0], "live_samples"), 0, "the parent's live blocks")
        else:
            check(difference(parent, none[0], "allocated_samples") > 0, "nothing counted")
            equal(parent["live_samples"], none[0]["live_samples"], "the parent's live blocks")
        if how in ("spawn", "vfork"):
            return
        equal(len(children), count, "ledgers that name the parent")
        for child in children:
            for key, want in (("allocated_samples", 5), ("allocated_bytes", 5 * 1234), ("freed_samples", 2),
                              ("live_samples", 3), ("inherited_frees", 3)):
                equal(round(child[key]), want, "%s of child %d" % (key, child["pid"]))
    return test


def chain():
    count = pick(100, 300)
    _, ledgers = observed([program("forks"), "chain", str(count)])
    counted, by_id = 0, {ledger["id"]: ledger for ledger in ledgers}
    equal(len(ledgers), count + 1, "ledgers")
    for ledger in ledgers:
        tap.no_losses(ledger)
        if ledger["parent_id"] == "0" * 16:
            continue
        check(ledger["parent_id"] in by_id, "an unknown parent", ledger["parent_id"])
        equal((ledger["allocated_samples"], ledger["live_samples"]), (3, 3), "allocated and live of %d" % ledger["pid"])
        counted += ledger["inherited_frees"] == 3
    # One generation in about forty forgets what it inherited: the agent's tables of that have an end.
    check(counted >= count * 0.95, "of", count, "only", counted, "counted what they freed of their parents'")


def minimal_allocator():
    """What a replacement of malloc must have is malloc, calloc, realloc and free; the others it may leave to nobody."""
    command = [program("realloc_churn"), "0"]
    want = succeed(command, env=dict(os.environ, LD_PRELOAD=program("minimal-alloc.so"))).stdout
    for period in (1, 512 << 10):
        with private_dir() as ledgers:
            done = succeed(command, env=agent_env(ledgers, period, [program("minimal-alloc.so")]))
            equal(done.stdout, want, "what it says")


tap.main([
    ("an allocator of four functions is enough", minimal_allocator),
    ("blocks that another thread frees are counted once, and none stays", handoff),
    ("a table that grows under four threads loses nothing", crowded()),
    ("nor with blocks of 8 bytes side by side", crowded(["libjemalloc.so.2"])),
    ("a failing realloc leaves the block's entry as it was", realloc_churn),
    ("handlers that allocate anywhere are counted exactly", signals(1)),
    ("handlers that allocate anywhere are counted exactly, with four threads", signals(4)),
    ("threads beyond the table are `other`, and nothing else is lost", many_threads),
    ("fork children keep their own books", forked("fork")),
    ("children of the bare clone call keep their own books", forked("clone")),
    ("children whose first requests fail keep their own books", forked("odd")),
    ("vfork and exec leave the parent's books alone", forked("vfork", most=2000)),
    ("posix_spawn leaves the parent's books alone", forked("spawn", most=2000)),
    ("a long line of descendants: each knows its parent, and frees what it inherited", chain),
    ("fork under churn in four threads ends, and children keep their own books", forked("fork", 4)),
    ("bare clone under churn in four threads ends", forked("clone", 4)),
])
