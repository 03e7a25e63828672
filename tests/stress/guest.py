# SPDX-License-Identifier: BSD-2-Clause
"""What the agent must not do to its host: each program says and returns under it what it does without.

Where it may have books all the same, they are looked at too: a guest that has left has no part in these tests.
"""
import math
import itertools
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, numbers, pick, private_dir, run, totals

FOLDER = built("TEST_STRESS")
EXACT = (1, 100)  # period, and bytes of a block: each is a sample
SAMPLED = ("64K", 100_000)  # three of four are
CERTAIN = ("4K", 100_000)  # all but one of 10^10
# Once memory is locked: the agent's own variables (2 MiB), and the ledger; with the room for 20,000 live samples, which
# the agent takes at the first sample after 100 ms, also the filter of live samples (8 MiB) and tables (1 MiB).
MORE_RESIDENT_KIB = {"before": 5 << 10, "after": 14 << 10}
SIGMAS = 6


def program(name):
    return os.path.join(FOLDER, name)


def said_by(done):
    return numbers(done.stdout.decode())


def as_bare(command, period, preload=(), look=None):
    """
    Runs a command bare and under the agent: the same code, stdout and stderr. Where a pid is among what it says, that
    differs, and look(name of the run, what it said, totals of its ledgers, function for their stacks) judges instead.
    -> what it said under the agent
    """
    behind = [name.lstrip("+") for name in preload]
    bare = run(command, timeout=pick(60, 600), env=dict(os.environ, LD_PRELOAD=":".join(behind)))
    check(bare.returncode in (0, 42), command, "ended bare with", bare.returncode, bare.stderr)
    with private_dir() as ledgers:
        done = run(command, timeout=pick(60, 600), env=agent_env(ledgers, period, preload, ALLIUM_SEED=1))
        what = "%s at period %s" % (" ".join(os.path.basename(word) for word in command), period)
        equal(done.returncode, bare.returncode, "code of " + what)
        if look:
            look(what, said_by(done), totals(ledgers), lambda: totals(ledgers, "--stacks"))
        else:
            equal((done.stdout, done.stderr), (bare.stdout, bare.stderr), "stdout and stderr of " + what)
    return said_by(done)


def flag():
    for period in (1, "512K"):
        as_bare([program("guest_calls"), "flag", str(pick(50_000, 1_000_000))], period)


def words():
    for period in (1, "512K"):
        said = as_bare([program("guest_calls"), "words", str(pick(300, 10_000))], period)
        check(said["enough"], "hardly a store: nothing was tried")


def locked(when):
    """Where we may lock all; where a limit stands in the way the agent's address space counts, too."""
    def killed_first():
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    def test():
        command = [program("guest_calls"), "mlockall-" + when]
        bare = said_by(run(command))
        for period in (1, "4K"):
            with private_dir() as ledgers:
                done = run(command, env=agent_env(ledgers, period), preexec_fn=killed_first)
                (ledger,) = totals(ledgers)
            equal(done.returncode, 0, "code at period %s (-9: the kernel's killer)" % period)
            check(ledger["allocated_samples"] > 90, "hardly a sample:", ledger)
            said = said_by(done)
            if os.geteuid() == 0:
                equal(said["mlockall"], bare["mlockall"], "what mlockall returned at period %s" % period)
            for key in ("locked", "later"):
                check(said[key] <= bare[key] + MORE_RESIDENT_KIB[when],
                      "%s: resident at period %s: %d KiB, bare %d KiB" % (key, period, said[key], bare[key]))
    return test


def fork_in_handler(how, preload=()):
    def test():
        for period, size in (EXACT, SAMPLED):
            preloaded = [program(name) for name in preload]
            as_bare([program("guest_fork"), how, str(size), str(pick(300, 5000))], period, preloaded)
    return test


def filtered_fork():
    for period in (1, "64K", "512K"):
        as_bare([program("guest_seccomp"), "fork"], period)


def stacks_not_ours(how):
    def test():
        for period, size in (EXACT, CERTAIN):
            as_bare([program("guest_stacks"), how, str(size)], period)
    return test


def inner_stacks(stack, how):
    """Each block has its sample, and each stack of a sample is whole."""
    def look(what, said, found, _):
        (ledger,) = found
        tap.no_losses(ledger)
        # Wrong rules break the 20 times 25 stacks of the coroutine, and those of its frees. Some 600 frees a second
        # have a stack: how many of these 500 have one depends on how long the program takes.
        if how in ("guarded", "torn"):
            check(500 <= ledger["stacks_broken"] <= 1000, ledger["stacks_broken"], "broken stacks:", what)
        else:
            equal(ledger["stacks_broken"] + ledger["stacks_cut"], 0, "broken or cut stacks: " + what)
        check(ledger["allocated_samples"] >= said["made"], what, "has", ledger["allocated_samples"], "samples of", said)

    def test():
        for period, size in (EXACT, CERTAIN):
            as_bare([program("inner_stacks"), stack, how, str(size)], period, look=look)
    return test


def reopened():
    """The child books blocks of a library whose name lay elsewhere when the parent first saw it."""
    library = program("twin-one.so")

    def look(what, said, found, stacks):
        equal(said, {"same_place": 1, "status": 0}, "what is said by " + what)
        (parent,) = [ledger for ledger in found if ledger["parent_id"] == "0" * 16]
        (child,) = [ledger for ledger in found if ledger["parent_id"] == parent["id"]]
        all_stacks = stacks()
        for ledger, blocks in ((parent, 2), (child, 1)):
            tap.no_losses(ledger)
            own = [stack for stack in all_stacks if stack["pid"] == ledger["pid"]]
            known = {name for stack in own for name, _ in stack["frames"]}
            who = "%s, %s" % ("child" if ledger is child else "parent", what)
            equal([name for name in known if not os.path.exists(name)], [], "modules that there are not: " + who)
            made = [stack for stack in own if stack["frames"][0][0] == library]
            equal(sum(stack["allocated"] for stack in made), blocks, "blocks of the library: " + who)
    for period, size in (EXACT, CERTAIN):
        as_bare([program("guest_fork"), "reopen", str(size), library], period, look=look)


def worker(how, period, size, blocks):
    """A forked worker keeps what it made under its filter: so do its books, of as many as the sandbox's hold."""
    def test():
        share = 1.0 if period == 1 else 1 - math.exp(-size / (4 << 10))
        likely, spread = blocks * share, SIGMAS * math.sqrt(blocks * share * (1 - share))

        def look(what, said, found, _):
            equal(said["status"], 0, "how the worker ended (31: the filter killed it)")
            (child,) = [ledger for ledger in found if ledger["pid"] == said["pid"]]
            equal((child["lost_samples"], child["lost_live"], child["frees_unseen"]), (0, 0, 0),
                  "lost samples, lost live ones, unseen frees: " + what)
            equal(child["allocated_samples"] - child["freed_samples"], child["live_samples"], "allocated less freed")
            check(not child["inconsistent"], "inconsistent")
            check(abs(child["live_samples"] - likely) <= spread,
                  "live samples: %d, want %.0f +- %.0f" % (child["live_samples"], likely, spread))
        as_bare([program("guest_seccomp"), how, str(size), str(blocks)], period, look=look)
    return test


def asked(how):
    def test():
        blocks, size = 40_000, 1000
        command = [program("guest_seccomp"), how, str(size), str(blocks)]
        answer = said_by(run(command))
        for period in (1, "4K"):
            def look(what, said, found, _):
                equal(said, answer, "what is said by " + what)
                (ledger,) = found
                tap.no_losses(ledger)
                check(ledger["allocated_samples"] >= (blocks if period == 1 else blocks // 6), "samples:", ledger)
            as_bare(command, period, look=look)
    return test


def first_in_vfork():
    blocks, size = 3000, 32 << 10
    for period, share in ((1, 1.0), ("64K", 1 - math.exp(-0.5))):
        def look(what, said, found, _):
            named = [ledger["pid"] for ledger in found if ledger["comm"] == "guest_fork"]
            equal(named, [said["pid"]], "pids of its ledgers (the child was %d): %s" % (said["child"], what))
            (ledger,) = [ledger for ledger in found if ledger["pid"] == said["pid"]]
            check(ledger["lost_samples"] <= 1, "lost:", ledger["lost_samples"], "(the child's own one may be)")
            equal((ledger["lost_live"], ledger["frees_unseen"], ledger["inconsistent"]), (0, 0, False), "other losses")
            likely, spread = blocks * share, SIGMAS * math.sqrt(blocks * share * (1 - share)) + 2
            check(abs(ledger["allocated_samples"] - likely) <= spread,
                  "samples: %d, want %.0f +- %.0f" % (ledger["allocated_samples"], likely, spread))
        as_bare([program("guest_fork"), "vfork", str(size), str(blocks)], period, look=look)


INNER_STACKS = {
    "protected": "is protected after use",
    "unmapped": "is unmapped after use",
    "replaced": "is replaced by pages of an empty file after use",
    "overwritten": "is overwritten after use",
    "upper": "loses its upper half",
    "lower": "loses its lower half",
    "handler": "is a signal handler's, and protected after use",
    "guarded": "has a guard page above it, and wrong unwind rules",
    "torn": "has a guard page above it, and wrong unwind rules that read a word across its end",
}


def opened_late():
    """By dlopen() of a program that was started without the agent: each exported function forwards, and nothing is
    observed.
    """
    def names(list_of_exports):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "checks", list_of_exports)) as file:
            return {line.strip() for line in file if line.strip() and not line.startswith("#")}
    exports = {
        "ALLIUM_AGENT": names("agent-exports.txt"),
        "ALLIUM_AGENT_FULL": names("agent-exports.txt") | {
            name for name in names("agent-full-exports.txt") if not name.startswith("allium_attach")  # for the tool
        }
    }
    for (agent, exported), how in itertools.product(exports.items(), ("global", "local")):
        for preloaded, *more in [""], ["", "libstdc++.so.6"], ["libjemalloc.so.2"]:
            with private_dir() as ledgers:
                env = dict(agent_env(ledgers, 1), LD_PRELOAD=preloaded)
                done = run([program("opened_late"), built(agent), how, *more], env=env)
                what = "%s opened %s, after %s" % (agent, how, more or preloaded)
                equal((done.returncode, done.stderr), (0, b""), "code and stderr, " + what)
                lines = done.stdout.decode().splitlines()
                equal([line for line in lines if line.startswith("wrong")], [], what)
                equal(exported - set(lines), set(), "exported functions that were not called, " + what)
                equal(os.listdir(ledgers), [], "ledgers, " + what)


tap.main([
    ("a flag on the stack of a thread that calls syscall() stays set", flag),
    ("stores to the stack of a thread that calls syscall() last", words),
    ("mlockall before the first sample locks what it would, and little more", locked("before")),
    ("mlockall after the first sample locks what it would, and little more", locked("after")),
    ("fork in a signal handler: children return from it, go on, and end well", fork_in_handler("handler")),
    ("fork in a signal handler: children allocate in it, go on, and end well",
     fork_in_handler("handler-allocates", ["signal-alloc.so"])),
    ("a seccomp filter that knows fork and malloc: children live", filtered_fork),
    ("malloc is the first function on a stack that ends there", stacks_not_ours("tail")),
    ("a stack is smaller than the one that was there before", stacks_not_ours("stale")),
    ("a crash handler allocates, rsp was in a page that may not be touched", stacks_not_ours("inaccessible")),
    ("a crash handler allocates, rsp was where nothing is", stacks_not_ours("unmapped")),
    ("a crash handler allocates, rsp was no address", stacks_not_ours("impossible")),
    *[("a stack inside the stack of %s %s" % (what, text), inner_stacks(stack, how))
      for stack, what in (("main", "the main thread"), ("thread", "another thread"))
      for how, text in INNER_STACKS.items()],
    ("a library that was opened again has its name in the child's books", reopened),
    ("a worker that enters seccomp keeps 20,000 blocks, sampled: so do its books", worker("worker", "4K", 200, 20_000)),
    ("a worker that enters seccomp keeps 1,000 blocks: so do its books", worker("worker", 1, 200, 1000)),
    ("a worker that enters seccomp keeps 20,000 blocks, sampled, the first there are: so do its books",
     worker("worker-first", "4K", 200, 20_000)),
    ("a worker that enters seccomp keeps 1,000 blocks, the first there are: so do its books",
     worker("worker-first", 1, 200, 1000)), ("asking nothing of seccomp loses nothing", asked("ask-nothing")),
    ("asking prctl whether there are filters loses nothing", asked("ask-prctl")),
    ("asking which actions filters have loses nothing", asked("ask-avail")),
    ("a vfork child that enters strict seccomp loses nothing for its parent", asked("ask-vfork")),
    ("strict mode refused after rdtsc was forbidden: it stays forbidden to us", asked("ask-tsc")),
    ("an agent that dlopen() brings forwards each function and observes nothing", opened_late),
    ("the first sample is a vfork child's that executes: the books are the parent's", first_in_vfork),
])
