# SPDX-License-Identifier: BSD-2-Clause
"""What the agent may take: stack for a sample, memory for the first one, and nothing before it; and where it takes it.
"""
import glob
import os
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, numbers, private_dir, run, succeed, totals

FOLDER = built("TEST_STRESS")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
STACK_MOST, EXEC_STACK_MOST, LEDGER_MOST = 2 * KIB, 1 * KIB, 64 * KIB
HUGE = 4 * GIB  # not touched; sampled with certainty at a period of 64 MiB, which nothing before it is


def program(name):
    return os.path.join(FOLDER, name)


def stack_use():
    for period, cold in ((1, 1000), (64 * MIB, HUGE), (512, 1000)):
        command = [program("stack_use"), str(cold)]
        bare = numbers(succeed(command).stdout.decode())
        with private_dir() as ledgers:
            some = numbers(succeed(command, env=agent_env(ledgers, period, ALLIUM_SEED=1)).stdout.decode())
            (ledger,) = totals(ledgers)
        check(ledger["allocated_samples"] >= (1 if period > MIB else 2000), "hardly a sample:", ledger)
        check(period > MIB or ledger["ledger_bytes"] > 200 * KIB, "the ledger did not grow:", ledger["ledger_bytes"])
        print("# period %d, bytes of stack (bare, with samples): %s" %
              (period, ", ".join("%s %d %d" % (name, bare[name], some[name]) for name in bare)))
        for name in bare:
            if name == "cold_malloc" or period < MIB:
                check(some[name] > bare[name] + 100, name, "was not sampled:", some)
            check(
                some[name] - bare[name] <= STACK_MOST, "%s at period %d: %d bytes deeper than the %d without samples" %
                (name, period, some[name] - bare[name], bare[name]))


def exec_stack():
    """Of each function that starts programs, with few and with many variables; also where the program cannot carry the
    agent.
    """
    with private_dir("/var/tmp") as folder:
        with open(folder + "/plain.c", "w") as file:
            file.write("#include <stdlib.h>\nint main(void) { void *volatile p = malloc(100); return !p; }\n")
        succeed(["gcc", "-o", folder + "/plain", folder + "/plain.c"])
        succeed(["gcc", "-static", "-o", folder + "/plain_static", folder + "/plain.c"])
        path = folder + ":" + os.environ["PATH"]
        for where in ("thread", "sigaltstack"):
            for started in ("plain", "plain_static"):
                for variables in (10, 2000, 5000):
                    command = [program("exec_stack"), where, str(variables), folder + "/" + started]
                    bare = numbers(succeed(command, env=dict(os.environ, PATH=path)).stdout.decode())
                    with private_dir() as ledgers:
                        os.mkdir(ledgers + "/run-1", 0o700)
                        some = numbers(
                            succeed(command, env=agent_env(ledgers + "/run-1", 64 * MIB, PATH=path)).stdout.decode())
                        observed = [ledger["comm"] for ledger in totals(ledgers + "/run-1")].count("plain")
                    equal(sorted(some), sorted(bare), "functions")
                    equal(observed, len(bare) if started == "plain" else 0, "children that are observed")
                    deeper = {name: some[name] - bare[name] for name in bare}
                    print("# %s, %d variables, %s: %s" % (where, variables, started, deeper))
                    check(max(deeper.values()) <= EXEC_STACK_MOST, "bytes of stack more than bare:", deeper)


def exec_memory():
    """What many calls by many threads leave behind."""
    command = [program("exec_stack"), "repeat", "3000", "/bin/true"]
    with private_dir() as ledgers:
        grown = numbers(succeed(command, env=agent_env(ledgers, 64 * MIB)).stdout.decode())["growth_kib"]
    check(grown <= 1024, "KiB of address space that are left behind:", grown)


class Late:
    """late.c under the agent, with a period at which only its huge blocks are sampled."""

    def __init__(self, env, folder=None):
        self.process = subprocess.Popen([program("late")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, cwd=folder)
        equal(self.process.stdout.readline(), b"before\n", "the program's word")

    def make(self, size):
        self.process.stdin.write(b"%d\n" % size)
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), b"made\n", "the program's word")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _, err = self.process.communicate()
        equal((self.process.returncode, err), (0, b""), "code and stderr")


def first_sample():
    with private_dir() as folder:
        for name in ("with/run-asked", "runtime"):
            os.makedirs(folder + "/" + name, 0o700)
        where = ((dict(ALLIUM_DIR=folder + "/with/run-asked"), folder + "/with/run-asked"),
                 (dict(ALLIUM_DIR="", XDG_RUNTIME_DIR=folder + "/runtime"), folder + "/runtime/allium"))
        for more, ledgers in where:
            with Late(dict(agent_env("", 64 * MIB, ALLIUM_SEED=1), **more)) as late:
                for size in (100, 1000, 10_000):
                    late.make(size)
                equal(glob.glob(ledgers + "/*"), [], "files before the first sample")
                late.make(HUGE)
                found = {
                    os.path.splitext(name)[1]: os.stat(os.path.join(ledgers, name))
                    for name in os.listdir(ledgers)
                }
                equal(sorted(found), [".control", ".ledger"], "files at the first sample")
                blocks = sum(entry.st_blocks * 512 for entry in found.values())
                print("# at the first sample %d bytes are allocated" % blocks)
                check(0 < blocks <= LEDGER_MOST, "bytes at the first sample:", blocks)
                for suffix, entry in found.items():
                    equal((stat.S_ISREG(entry.st_mode), entry.st_mode & 0o7777, entry.st_uid),
                          (True, 0o600, os.geteuid()), "kind, mode and owner of the " + suffix)
                equal(os.stat(ledgers).st_mode & 0o7777, 0o700, "mode of the directory")
                (totalled,) = totals(ledgers)
                equal((totalled["allocated_samples"], totalled["live_seen_bytes"]), (1, HUGE),
                      "samples and their bytes")


def steps_aside():
    """Where ledgers are kept there is something that is not ours, or that others can write: nothing is put into it,
    and the program is as without us. In a mount namespace with an empty /dev/shm.
    """
    script = """
        mount -t tmpfs -o mode=1777 none /dev/shm && cd /dev/shm && umask 000 && mkdir -m 777 elsewhere || exit 90
        at=/dev/shm/allium-$(id -u); case $1 in
        other) mkdir -m 700 $at && chown 12345 $at;; group) mkdir -m 770 $at;; world) mkdir -m 777 $at;;
        mine) mkdir -m 700 mine && ln -s /dev/shm/mine $at;; link) ln -s /dev/shm/elsewhere $at;; dangling) ln -s /dev/shm/nowhere $at;; file) : >$at;; fifo) mkfifo $at;; esac
        ALLIUM_DIR=$at ALLIUM_PERIOD=1 LD_PRELOAD=$AGENT $PROGRAM 100000 100 || exit $?
        ALLIUM_PERIOD=1 LD_PRELOAD=$AGENT $PROGRAM 100000 100 || exit $?
        find /dev/shm -name '*.ledger' -o -name '*.control' -o -name nowhere
    """
    env = dict(os.environ, AGENT=built("ALLIUM_AGENT"), PROGRAM=program("hungry"), XDG_RUNTIME_DIR="")
    bare = succeed([program("hungry"), "100000", "100"]).stdout
    for what in ("other", "group", "world", "mine", "link", "dangling", "file", "fifo"):
        if what == "other" and os.geteuid():
            continue
        done = run([*tap.unshare(), "sh", "-c", script, "sh", what], env=env)
        equal((done.returncode, done.stderr), (0, b""), "code and stderr, with " + what)
        equal(done.stdout, bare * 2, "what it says, and files that were made, with " + what)


tap.main([
    ("a sample takes at most 2 KiB of the thread's stack, the first one too", stack_use),
    ("to start a program takes at most 1 KiB of stack, with any number of variables", exec_stack),
    ("to start programs leaves no memory behind", exec_memory),
    ("there is no ledger before the first sample, and 64 KiB at most with it", first_sample),
    ("a directory that is not ours, a link, one that others can write: nothing is put there", steps_aside),
])
