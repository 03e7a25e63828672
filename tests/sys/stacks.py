#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""allium sys --sample: whole user stacks of code without frame pointers, against gdb's at the same place, pages
touched, and rows without samples.
"""
import contextlib
import json
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
from lib import built, check, equal

PAGES = 1000  # that stacked touches
PYTHON = """
import mmap, signal, sys
page = mmap.mmap(-1, 64 * 4096)
print("ready", flush=True)
sys.stdin.readline()
def touch():
    for i in range(64):
        page[i * 4096] = 1
    print("done", flush=True)
    signal.pause()
touch()
"""


class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        equal(self.process.stdout.readline(), b"ready\n", "first words of " + command[0])

    def do(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        equal(self.process.stdout.readline(), b"done\n", words)


@contextlib.contextmanager
def program(*command):
    it = Program(*command)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.communicate()


def sample(*options, env=None, each=1):
    """A tool whose last line is kept whole: how stacks ended is beside what was lost."""
    return lib.tool("faults", "--by", "stack", "--sample", each, *options, env=env)


def stop(it):
    """(rows, samples, lost)"""
    it.process.send_signal(signal.SIGINT)
    out, errors = it.process.communicate(timeout=lib.tap.TIMEOUT)
    equal(it.process.returncode, 0, errors.decode())
    lines = lib.stream(out, "faults")
    last = lines.pop()
    return lines, last["samples"], last["lost"]


def plain_name(words):
    """Without the file, and without what tells names of one place apart."""
    return re.sub(r"(_impl|_alias_\d+|(\.(part|isra|constprop|cold)(\.\d+)?)+)$", "",
                  words.split(" (")[0].split("@")[0]).lstrip("_").removeprefix("GI_").lstrip("_")


def gdb_stack(pid):
    """Names of frames, innermost first; ?? where there is none."""
    run = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off",
                          "-ex", "set backtrace past-main on", "-ex", "thread apply all bt"],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=lib.tap.TIMEOUT)
    threads = re.split(r"\nThread \d+ ", run.stdout)
    frames = [
        re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(<signal handler called>|[^ (]+)", text, re.M) for text in threads
    ]
    check(any(frames), run.stdout, run.stderr)
    return [[plain_name(name) for name in thread] for thread in frames if thread]


def without_raise(frames):
    """What libc does to raise a signal is inlined in ways that not all know of."""
    within = [i for i, name in enumerate(frames) if name.startswith(("<signal", "restore_rt"))]
    end = frames.index("raise_below") if within else 0
    return frames[:within[0] + 1] + frames[end:] if within else frames


def same(ours, theirs):
    """Names of ours, as names of gdb's: it has ?? where we have the place in the file, and a word for signals."""
    def fits(mine, its):
        return its == mine or (its == "??" and "+0x" in mine) or (its.startswith("<signal") and mine == "restore_rt")
    return len(ours) == len(theirs) and all(map(fits, ours, theirs))


def touched(words, env=None, each=1):
    """The row of touch_pages(), its frames from its caller on, all of gdb's threads, how samples ended."""
    with program(built("TEST_STACKED")) as p, sample("-p", p.pid, env=env, each=each) as it:
        p.do(words)
        theirs = gdb_stack(p.pid)
        rows, ended, lost = stop(it)
    rows = [row for row in rows if row["user_stack"] and row["user_stack"][0].startswith("touch_pages ")]
    equal(len(rows), 1, "stacks of touch_pages()")
    return rows[0], [plain_name(frame) for frame in rows[0]["user_stack"][1:]], theirs, ended, lost


def as_gdb(words, env=None):
    row, ours, theirs, ended, lost = touched(words, env)
    theirs = [without_raise(t[t.index("wait_here") + 1:]) for t in theirs if "wait_here" in t]
    ours = without_raise(ours)
    equal(len(theirs), 1, "threads of gdb's that wait")
    check(same(ours, theirs[0]), words, "\nours", ours, "\ngdb's", theirs[0])
    equal((row["faults"], row["samples"], row["faults_low"], row["faults_high"]), (PAGES,) * 4, "faults and samples")
    equal(lost["lost_samples"], 0, "lost samples")
    return ended


def plain():
    as_gdb("plain 7")
    try:  # a sample in the midst of the thousand that the row is made of
        as_gdb("plain 7", {"ALLIUM_SYS_LOSE": str(PAGES // 2)})
    except lib.Failed:
        return
    check(False, "a sample is dropped, and the test does not notice")


def python():
    with program("/usr/bin/python3", "-c", PYTHON) as p, sample("-p", p.pid) as it:
        p.do("go")
        theirs = next(t for t in gdb_stack(p.pid) if "PyEval_EvalFrameDefault" in t)
        rows, _, _ = stop(it)
    rows = [row for row in rows if row["faults"] == 64]
    equal(len(rows), 1, "stacks with 64 faults")
    ours = [plain_name(frame) for frame in rows[0]["user_stack"]]
    begins = "PyEval_EvalFrameDefault"
    ours, theirs = ours[ours.index(begins):], theirs[theirs.index(begins):]
    check(same(ours, theirs) and len(ours) > 5, "\nours", ours, "\ngdb's", theirs)


def too_deep():
    """Deeper than the bytes that are taken: cut, and said, with every frame that is shown right."""
    row, ours, _, ended, _ = touched("plain 1000", each=20)
    check(row["user_stack"][-1].startswith("["), "the last line says that it is cut", row["user_stack"][-1])
    check(len(ours) > 100 and set(ours[:-1]) == {"go_down"}, ours[:5], len(ours))
    check(ended["cut"] + ended["too_deep"] >= PAGES // 20 - 2, ended)


def one_in_ten():
    """Drawn within each ten: so many samples, give or take those that others had their turn in."""
    row, _, _, _, _ = touched("plain 3", each=10)
    check(PAGES // 10 - 2 <= row["samples"] <= PAGES // 10 + 2, row["samples"], "samples")
    equal(row["faults"], 10 * row["samples"], "faults")
    check(row["faults_low"] <= PAGES <= row["faults_high"], row)


def exact_beside():
    """All rows of samples, at one for each, are all faults that rows without samples have."""
    with program(built("TEST_STACKED")) as p, sample("-p", p.pid) as it, lib.tool("faults", "-p", p.pid) as exact:
        p.do("plain 20")
        rows, _, _ = stop(it)
        exact.stop()
    equal(sum(row["faults"] for row in rows), sum(row["faults"] for row in exact.rows), "faults")


def in_namespace():
    """In a PID namespace the process has another number than the kernel's own."""
    words = 'coproc "$0"; read <&${COPROC[0]}; echo plain 7 >&${COPROC[1]}; read <&${COPROC[0]}; kill $COPROC_PID'
    done = lib.tap.run([
        *lib.IN_NAMESPACE,
        built("ALLIUM"), "sys", "faults", "--by", "stack", "--sample", "1", "--comm", "stacked", "--json", "--", "bash",
        "-c", words,
        built("TEST_STACKED")
    ])
    rows = lib.stream(done.stdout, "faults")[:-1]
    row = max(rows, key=lambda row: row["faults"])
    equal((row["faults"], plain_name(row["user_stack"][0])), (PAGES, "touch_pages"), "faults, of")


def no_room():
    """Where there is no room for a sample, its event is still counted, and the loss is."""
    with program(built("TEST_STACKED")) as p, sample("-p", p.pid, "--sample-ring", 4096) as it:
        p.do("plain 7")
        rows, ended, lost = stop(it)
    check(lost["lost_samples"] > 0, lost)
    total = sum(row["samples"] for row in rows)
    equal(total, ended["taken"] + lost["lost_samples"], "samples in rows")
    check(total >= PAGES, total)
    told = [row for row in rows if row["user_stack"][0].startswith("[lost: no room for the sample (see --sample-ring)")]
    equal(sum(row["samples"] for row in told), lost["lost_samples"], "samples in rows that tell that they were lost")


def few_texts():
    """The names of so many stacks are kept as --stack-slots says. The samples of all further ones are in rows that tell that
    they were lost; no event is.
    """
    slots, depths = 6, (3, 7, 11)
    with sample("--comm", "stacked", "--stack-slots", slots) as it:
        for depth in depths:
            with program(built("TEST_STACKED")) as p:
                p.do("plain %d" % depth)
        rows, ended, lost = stop(it)
    equal(sum(row["samples"] for row in rows), ended["taken"] + lost["lost_samples"], "samples in rows")
    check(ended["taken"] >= PAGES * len(depths), ended)
    told = [row for row in rows if (row["user_stack"] or [""])[0].startswith("[lost: no room for the stack")]
    equal(sum(row["samples"] for row in told), lost["stacks_lost"], "samples in rows that tell the loss")
    check(lost["stacks_lost"] >= PAGES * (len(depths) - 1), lost)
    texts = {tuple(row["user_stack"]) for row in rows if row["user_stack"]}
    check(len(texts) <= slots + 3, len(texts), "texts")


def short_lived(programs, each, asleep=False):
    """Programs that live a millisecond; `asleep`: allium gets no turn as long as they run. What the kernel tells of
    their mappings meanwhile must find room, and what it tells of other programs' that come and go on this machine, too.
    """
    with sample("--comm", "true", each=each) as it:
        it.process.send_signal(signal.SIGSTOP if asleep else signal.SIGCONT)
        subprocess.run(["sh", "-c", "for i in $(seq %d); do /bin/true; done" % programs], check=True)
        it.process.send_signal(signal.SIGCONT)
        _, ended, lost = stop(it)
    check(ended["taken"] > 20 * programs // each, ended)
    check(ended["frames"] > ended["taken"], ended)
    check(ended["frames_not_found"] * 100 <= ended["frames"], ended, lost)


lib.main([
    ("a C++ program without frame pointers: the stack is gdb's, all faults are in its row", plain),
    ("a handler on a stack of its own: through the signal to main", lambda: as_gdb("signal 3")),
    ("a thread's stack ends where the thread begins", lambda: as_gdb("thread 5")),
    ("python3 as Debian ships it: the interpreter's stack is gdb's", python),
    ("a recursion deeper than what is taken is cut, and said to be", too_deep),
    ("one in ten: rows are estimates with an interval", one_in_ten),
    ("one in one: the same sum as without samples", exact_beside),
    ("in a PID namespace stacks have names", in_namespace),
    ("a full ring loses stacks, not events", no_room),
    ("the texts of stacks are bounded, and no event is lost", few_texts),
    ("programs of a millisecond: 99 % of frames are found", lambda: short_lived(1000, 20)),
    ("the same, where allium has no turn as long as they run", lambda: short_lived(300, 60, asleep=True)),
])
