# SPDX-License-Identifier: BSD-2-Clause
"""Whatever the allocator, the agent changes nothing and counts each request once."""
import ctypes.util
import os
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, private_dir, succeed, totals

FOLDER = built("TEST_PROGRAMS")
ROUNDS = tap.pick(100, 20000)

# Arguments that leave out what fails without the agent too; the programs say why.
FAMILY = {"jemalloc": ["no-pvalloc"]}
OPERATORS = {"mimalloc": ["no-throw"]}


def program(name):
    return os.path.join(FOLDER, name)


def ledgers_of(command, preload=(), period=1):
    with private_dir() as ledgers:
        done = succeed(command, env=agent_env(ledgers, period, preload))
        return done, totals(ledgers)


def bare(command, preload=()):
    return succeed(command, env=dict(os.environ, LD_PRELOAD=":".join(preload)))


def same_output(command, preload=()):
    def test():
        want = bare(command, preload)
        for period in (1, 100, 512 << 10):
            done, _ = ledgers_of(command, preload, period)
            equal(done.stdout.decode(), want.stdout.decode(), "stdout at period %d" % period)
            equal(done.stderr.decode(), want.stderr.decode(), "stderr at period %d" % period)
    return test


def counts_operators(command, arguments, preload=(), aligned=(1000,)):
    """`aligned`: for how many bytes the six aligned forms may ask. Older libstdc++ rounds up to the alignment."""
    def test():
        _, (none,) = ledgers_of(command + ["0"] + arguments, preload)
        _, (some,) = ledgers_of(command + [str(ROUNDS)] + arguments, preload)
        for key, want in (
            ("allocated_samples", 12 * ROUNDS),
            ("freed_samples", 12 * ROUNDS),
            ("allocated_count", 12 * ROUNDS),
            ("live_samples", 0),
        ):
            equal(round(some[key] - none[key]), want, key)
        added = round(some["allocated_bytes"] - none["allocated_bytes"])
        check(added in [6 * ROUNDS * (1000 + bytes) for bytes in aligned], "allocated_bytes", added)
        tap.no_losses(some)
    return test


def counts_copies(preload):
    """strdup() and strndup() of a thousand bytes: each copy is one allocation, whoever has these functions."""
    def test():
        equal(
            ledgers_of([program("copies"), "10"], preload)[0].stdout,
            bare([program("copies"), "10"], preload).stdout, "stdout")
        _, (none,) = ledgers_of([program("copies"), "0"], preload)
        _, (some,) = ledgers_of([program("copies"), str(ROUNDS)], preload)
        for key, want in ("allocated_samples", 2), ("freed_samples", 2), ("allocated_bytes", 2000), ("live_samples", 0):
            equal(round(some[key] - none[key]), want * ROUNDS, key)
        tap.no_losses(some)
    return test


def counts_extension(loader):
    """In python3, which knows nothing of C++: a library loaded late, its symbols visible to nobody else."""
    def test():
        script = "import ctypes, sys\n%s\nprint(x.extension_churn(int(sys.argv[1])), x.extension_throw())" % loader
        def python(n):
            return ["/usr/bin/python3", "-c", script, str(n), program("extension.so")]
        want = bare(python(ROUNDS)).stdout
        _, (none,) = ledgers_of(python(0))
        done, (some,) = ledgers_of(python(ROUNDS))
        equal(done.stdout, want, "stdout")
        tap.no_losses(some)
        # python itself allocates a little more or less for longer numbers
        difference = some["allocated_samples"] - none["allocated_samples"]
        check(abs(difference - 2 * ROUNDS) <= 5, "counted", difference, "more, not", 2 * ROUNDS)
    return test


def plugins(*names):
    def test():
        command = [program("plugins"), "3", *map(program, names)]
        want = bare(command).stdout
        for period in (1, 512 << 10):
            done, ledgers = ledgers_of(command, (), period)
            equal(done.stdout, want, "stdout")
            for ledger in ledgers:
                tap.no_losses(ledger)
    return test


tests = []
for name, library in (
    ("glibc", None),
    ("jemalloc", "jemalloc"),
    ("tcmalloc", "tcmalloc_minimal"),
    ("mimalloc", "mimalloc"),
):
    preload = [ctypes.util.find_library(library)] if library else []
    check(None not in preload, name, "is not installed (tools/setup check)")
    tests.append(("every function of the malloc family works as ever on %s" % name,
                  same_output([program("family")] + FAMILY.get(name, []), preload)))
    tests.append(("every operator new and delete works as ever on %s" % name,
                  same_output([program("operators"), "100"] + OPERATORS.get(name, []), preload)))
    tests.append(("each copy of a string counts once on %s" % name, counts_copies(preload)))
    tests.append(("every operator new and delete counts once on %s" % name,
                  counts_operators([program("operators")], OPERATORS.get(name, []), preload, (1000,) if preload else
                                   (1000, 1024))))
tests += [
    ("each copy of a string counts once with an allocator that has its own strdup",
     counts_copies([program("own_copies.so")])),
    ("each copy of a string counts once with an allocator whose strdup calls malloc by its symbol",
     counts_copies([program("own_copies_through.so")])),
    ("the malloc family works as ever with a library that has malloc alone",
     same_output([program("family")], [program("malloc_alone.so")])),
    ("the malloc family works as ever with a library that has free alone",
     same_output([program("family")], [program("free_alone.so")])),
    ("each copy of a string counts once with a library that has malloc alone",
     counts_copies([program("malloc_alone.so")])),
    ("each copy of a string counts once with a library that has malloc and free, and no calloc",
     counts_copies([program("malloc_and_free.so")])),
    ("the malloc family works as ever in a program linked with jemalloc",
     same_output([program("family_jemalloc"), "no-pvalloc"])),
    ("operators work as ever in a program linked with jemalloc", same_output([program("operators_jemalloc")])),
    ("operators count once in a program linked with jemalloc", counts_operators([program("operators_jemalloc")], [])),
    ("a C++ library that python loads with RTLD_LOCAL is counted",
     counts_extension("x = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_LOCAL)")),
    ("a C++ library that python loads with RTLD_GLOBAL is counted",
     counts_extension("x = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)")),
    ("libraries with the shared libstdc++ come and go", plugins("extension.so", "extension_other.so")),
    ("libraries with a static libstdc++ come and go", plugins("extension_static.so", "extension.so")),
    ("a library with the shared operator new, then one with its own", plugins("extension.so", "extension_static.so")),
    ("a library with an operator new of its own comes and goes", plugins("extension_own1.so")),
    ("two libraries with different operators new use their own", plugins("extension_own1.so", "extension_own2.so")),
    ("after a library with an operator new of its own is gone, another one finds the shared operator",
     plugins("extension_own1.so", "extension.so")),
]
tap.main(tests)
