# SPDX-License-Identifier: BSD-2-Clause
"""The control page: the period changes while the program runs, as a command would change it; and nonsense hurts nobody.
"""
import contextlib
import glob
import math
import mmap
import os
import random
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import recording_reader
import tap
from tap import agent_env, built, check, equal, pick, private_dir, succeed, totals

FOLDER = built("TEST_STRESS")
KIB, MIB = 1 << 10, 1 << 20
THREADS, KEPT = 4, 10  # of control.c
LOOK_BYTES = 4 * MIB   # of a thread's requests, after which it has seen a change: "a few MiB"
MAGIC = 0x314C5254434C4141  # the first word of a control page; the second is the period, 0: as started


class Steered:
    """control.c under the agent, and the words of its control page, mapped: each is stored at once."""

    def __init__(self, folder, period=None):
        env = agent_env(folder, period, ALLIUM_SEED=7) if period else dict(os.environ)
        self.folder = folder
        self.process = subprocess.Popen([os.path.join(FOLDER, "control")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def ask(self, phase, blocks, most):
        self.process.stdin.write(b"%d %d %d\n" % (phase, blocks, most))
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        return [int(word) for word in line.split()]

    def run(self, phase, blocks, most):
        self.ask(phase, blocks, most)
        said = self.answer()
        equal(said[:2], [phase, THREADS * blocks], "what the program says of phase %d" % phase)
        return said[2]

    @contextlib.contextmanager
    def words(self):
        (path,) = glob.glob(self.folder + "/%d-*.control" % self.process.pid)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as page, \
                memoryview(page) as octets, octets.cast("Q") as words:
            yield words

    def snapshot(self):
        path = self.folder + "/snapshot.allium"
        succeed([built("ALLIUM"), "snapshot", str(self.process.pid), "--force", "-o", path],
                env=dict(os.environ, XDG_RUNTIME_DIR=os.path.dirname(self.folder)))
        return path

    def set(self, *actions, code=0):
        """Through the command."""
        done = tap.run(
            [built("ALLIUM"), "set", *actions], env=dict(os.environ, XDG_RUNTIME_DIR=os.path.dirname(self.folder))
        )
        equal(done.returncode, code, "code of allium set %s, which said %s" % (" ".join(actions), done.stderr))
        return done.stdout.decode(), done.stderr.decode()

    def end(self):
        _, err = self.process.communicate()
        equal((self.process.returncode, err), (0, b""), "code and stderr")

    def release(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def steered(period=None):
    with private_dir() as runtime:
        os.mkdir(runtime + "/allium", 0o700)
        program = Steered(runtime + "/allium", period)
        try:
            yield program
        finally:
            program.release()


def sums(path):
    """{phase: {period: what was allocated and what was freed}}"""
    found = {}
    for cell in recording_reader.cells(path):
        if (cell.function or "").startswith("phase_"):
            found.setdefault(int(cell.function[6:]), {}).setdefault(cell.period, []).append(cell)
    return {
        phase: {
            period:
            (recording_reader.added([c.allocated for c in cells]), recording_reader.added([c.freed for c in cells]))
            for period, cells in periods.items()
        }
        for phase, periods in found.items()
    }


def near(estimate, truth, period, what):
    """Within 6 standard errors, of some hundred samples or more: once in 10^7 times it is further off by chance, as
    when threads see a change is not the seed's affair. A block of s bytes adds s * s * (1 - p) / p <= s * period to the
    variance.
    """
    error = math.sqrt(truth * period)
    check(abs(estimate - truth) <= 6 * error, "%s: %.0f, truly %d, %.1f standard errors off" %
          (what, estimate, truth, (estimate - truth) / error))


def kept(allocated, freed, period, most, what):
    """What is live by the sums: at most what the threads keep, each with the weight of that period."""
    live = allocated.bytes - freed.bytes
    check(0 <= live <= THREADS * KEPT * (period + most), what, "live:", live)


def late(found, truth, phase, what):
    """Bytes of a phase that went by before its threads saw that the period is 1 now, from which on each request is
    booked.
    """
    bytes_ = truth[phase] - found[phase].get(1, (recording_reader.added([]),))[0].seen
    print("# %s: %d of %d bytes went by before all threads saw it" % (what, bytes_, truth[phase]))
    check(bytes_ <= THREADS * (LOOK_BYTES + 1000), what, "was seen after", bytes_)


def changed():
    start, large = 64 * KIB, 8 * MIB
    # blocks of each thread; the latter are 500 bytes on average
    counted, settling = pick(20_000, 200_000), 3 * LOOK_BYTES // 1000
    with steered(start) as program:
        truth = {0: program.run(0, counted, 100_000)}
        with program.words() as words:
            words[0] = MAGIC
            for phase, period in ((1, 1), (3, large), (5, 1), (7, 0)):
                words[1] = period
                truth[phase] = program.run(phase, settling, 1000)
                truth[phase + 1] = program.run(phase + 1, counted, 100_000)
        found = sums(program.snapshot())
        program.end()
    for phase, period in ((0, start), (2, 1), (4, large), (6, 1), (8, start)):
        equal(sorted(found[phase]), [period], "periods that phase %d was sampled with" % phase)
        allocated, freed = found[phase][period]
        near(allocated.bytes, truth[phase], period, "bytes of phase %d" % phase)
        kept(allocated, freed, period, 100_000, "phase %d" % phase)
        print("# phase %d, period %d: %.0f of %d bytes" % (phase, period, allocated.bytes, truth[phase]))
        if period == 1:
            equal((allocated.samples, allocated.count, allocated.seen, allocated.bytes),
                  (THREADS * counted, THREADS * counted, truth[phase], truth[phase]), "what was allocated at period 1")
            equal(freed.samples, THREADS * (counted - KEPT), "what was freed at period 1")
    late(found, truth, 1, "from 64 KiB to 1")
    late(found, truth, 5, "from 8 MiB to 1")
    for phase in (3, 7):  # at period 1 a thread looks at each request
        after = found.get(phase, {}).get(1, (recording_reader.added([]),))[0].samples
        check(after <= THREADS, "booked at period 1 after it was left:", after)


def often():
    """As often as there is room for: what was booked with one period must not be weighed with another."""
    period, rounds = 64 * KIB, pick(1, 20)
    for _ in range(rounds):
        with steered(period) as program:
            truth = program.run(0, 50, 1000)
            with program.words() as words:
                words[0] = MAGIC
                program.ask(1, 1_500_000, 200)
                for change in range(250):
                    words[1] = 1 if change % 2 else period
                    time.sleep(0.002)
            _, _, truth = program.answer()
            found = sums(program.snapshot())[1]
            program.end()
        near(sum(allocated.bytes for allocated, _ in found.values()), truth, period, "bytes over 250 changes")
        for now, (allocated, freed) in found.items():
            kept(allocated, freed, now, 200, "over 250 changes, at period %d" % now)
        print("# %s, truly %d" % ({p: round(a.bytes) for p, (a, _) in found.items()}, truth))


def nonsense():
    plan = [(phase, 100_000, 2000) for phase in range(8)]
    with steered() as program:
        wanted = [program.run(*step) for step in plan]
        program.end()
    random.seed(20240102)
    for magic in (True, False):
        with steered(64 * KIB) as program:
            said, written = [program.run(*plan[0])], 0
            with program.words() as words:
                for step in plan[1:]:
                    program.ask(*step)
                    for _ in range(5000 // (len(plan) - 1) + 1):
                        words[0] = MAGIC if magic else random.getrandbits(64)
                        words[1] = random.getrandbits(random.randrange(65)) if written % 2 else random.getrandbits(64)
                        written += 1
                        time.sleep(0.0002)
                    said.append(program.answer()[2])
                words[1] = 4 * KIB  # which is none: it counts if the first word is right
                program.run(8, 100_000, 2000)
            check(written >= 5000, "only", written, "words")
            found = totals(program.folder)
            periods = {cell.period for cell in recording_reader.cells(program.snapshot())}
            program.end()
        equal(said, wanted, "what the program says")
        equal(len(found), 1, "ledgers")
        check("error" not in found[0] and not found[0]["inconsistent"], found[0])
        equal((found[0]["lost_samples"], found[0]["lost_live"], found[0]["frees_unseen"]), (0, 0, 0), "lost")
        check(all(1 <= period <= 1 << 40 for period in periods), "periods", periods)
        if not magic:
            equal(periods, {64 * KIB}, "periods, without the right first word")
        else:
            print("# %d periods" % len(periods))
            check(4 * KIB in periods, "no word is taken for a period any more:", periods)


def command():
    """What allium set says and does: off, on again, another period, the stack of each free."""
    period, settling = 4 * KIB, 3 * LOOK_BYTES // 1000
    with steered(period) as program:
        pid = str(program.process.pid)
        truth = {0: program.run(0, 5000, 1000)}
        began = time.monotonic()
        equal(program.set(pid, "off"),
              ("%s (control): off, period as started, stacks of some sampled frees\n" % pid, ""), "said")
        program.run(1, settling, 1000)
        program.run(2, 20_000, 1000)
        said, _ = program.set("--where", "comm:control pid:%s" % pid, "on", "period=8K", "free-stacks=all")
        off_s = time.monotonic() - began
        equal(said, "%s (control): on, period 8 KiB, stacks of all sampled frees\n" % pid, "said")
        program.run(3, settling, 1000)
        truth[4] = program.run(4, 50_000, 1000)
        path = program.snapshot()
        found = sums(path)
        ((off_ns,),) = recording_reader.rows(path, "SELECT off_ns FROM image")
        ((frees, stacks),) = recording_reader.rows(path, """
            SELECT count(*), count(free.stack) FROM recent_free free JOIN cell ON cell.id = free.cell JOIN stack ON stack.id = cell.stack
            JOIN line ON line.location = stack.location AND line.position = 0 JOIN string ON string.id = line.function
            WHERE string.text = 'phase_4'""")
        program.set(pid, "on", "period=default", "free-stacks=some")
        equal(program.set(pid)[0],
              "%s (control): on, period as started, stacks of some sampled frees\n" % pid, "shown")
        for words, what in (((), "missing PID"), ((pid, "of"), "unknown action"),
                            ((pid, "period=0"), "invalid period=0"), (("off",), "missing PID"),
                            ((pid, "--where", "com:x", "on"), "column")):
            out, err = program.set(*words, code=2)
            check(not out and err.startswith("allium: ") and what in err, words, "is answered by", out, err)
        for words, what in ((("1", "on"), "no running process 1"), (("--where", "comm:nobody", "on"), "fits --where")):
            out, err = program.set(*words, code=1)
            check(not out and err.count("\n") == 1 and what in err, words, "is answered by", out, err)
        program.end()
    near(found[0][period][0].bytes, truth[0], period, "bytes before")
    check(2 not in found, "sampled while it was off:", found.get(2))
    equal(list(found[4]), [8 * KIB], "periods after")
    near(found[4][8 * KIB][0].bytes, truth[4], 8 * KIB, "bytes after")
    check(0 < off_ns <= 1e9 * off_s, "off for %d ns, %.3f s at most" % (off_ns, off_s))
    check(frees > 20 and stacks == frees, "recent frees with a stack: %d of %d" % (stacks, frees))


def of_one_process():
    """The command reads no memory map of another process: a map may be locked, and the command would wait for it."""
    with steered(64 * KIB) as program:
        program.run(1, 2000, 1000)
        for actions in ("off",), ("stacks",), ("--where", "func:none", "stacks"):
            log = program.folder + "/strace"
            subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, built("ALLIUM"), "set",
                            str(program.process.pid), *actions], capture_output=True,
                           env=dict(os.environ, XDG_RUNTIME_DIR=os.path.dirname(program.folder)))
            with open(log) as file:
                pids = re.findall(r'openat\(AT_FDCWD, "/proc/(\d+)/maps"', file.read())
            equal(set(pids), {str(program.process.pid)}, "processes whose maps are read, " + " ".join(actions))
        program.end()


tap.main([
    ("allium set PID reads the memory map of this process only", of_one_process),
    ("allium set: off, on, a period, the stacks of all frees", command),
    ("a change of period: each span's figures are right, and no thread waits long", changed),
    ("250 changes under four threads leave the figures unbiased", often),
    ("10,000 words of nonsense on the control page change nothing for the program", nonsense),
])
