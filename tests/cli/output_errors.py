# SPDX-License-Identifier: BSD-2-Clause
"""What every command does when its answer cannot be written: a full device is told, a reader that has gone is not."""
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from workdir import placed
from tap import built, check, equal, wait_until

LONG_ANSWER = "SELECT a.text FROM string a, string b, string c"

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "recorded", "allocinfo-6.12-after")

# Calls of each command that print something; {pid} is a process under the agent, r.allium a recording. The number is
# the code when it can be written. Those without calls write what they have to say to stderr: they print
# their help.
CALLS = {
    "run": [],
    "attach": [],
    "detach": [],
    "snapshot": [],
    "trace": [],
    "events": [("t.trace", 0), ("t.trace --json", 0), ("t.trace --by event", 0)],
    "env": [("--shell", 0), ("--systemd", 0), ("--docker", 0)],
    "ps": [("", 0), ("--json", 0)],
    "set": [("{pid} period=1", 0)],
    "report": [("r.allium", 0), ("r.allium --json", 0), ("{pid}", 0)],
    "watch": [("r.allium", 0), ("r.allium --json", 0), ("{pid} --once", 0)],
    "diff": [("r.allium r.allium", 0), ("r.allium r.allium --json", 0), ("r.allium r.allium --fail-if live+1k", 0)],
    "who": [("r.allium 0x1", 1), ("r.allium 0x1 --json", 1)],
    "frees": [("r.allium", 0), ("r.allium --json", 0)],
    "tags": [],  # needs a program with tags
    "sites": [("s.allium", 0), ("s.allium --json", 0), ("s.allium --freed", 0)],
    "export": [
        ("r.allium --folded live", 0),
        ("r.allium --pprof", 0),
        ("r.allium --speedscope", 0),
        ("r.allium --heaptrack", 0),
    ],
    "sql": [
        ("r.allium " + repr(LONG_ANSWER), 0),
        ("r.allium --csv " + repr(LONG_ANSWER), 0),
        ("r.allium --json 'SELECT 1'", 0),
    ],
    "bench": [("--list", 0)],  # more would tell its progress on stderr
    "doctor": [("", None), ("--json", None)],
    "sys": [
        ("--duration 100ms", 0),
        ("--duration 100ms --json", 0),
        ("-p {pid}", 0),
        ("--list", 0),
        ("--list --json", 0),
        ("kmem --explain", 0),
        ("advise", None),
        ("advise --json", None),
        ("allocinfo --help", 0),
        ("import --script", 0),
        ("allocinfo " + SAMPLE, 0),
        ("allocinfo %s --json" % SAMPLE, 0),
        ("allocinfo %s --allocinfo" % SAMPLE, 0),
    ],
}


def commands(place):
    return re.findall(r"^  ([a-z]+)  ", place.allium("--help").out.split("\noptions:")[0], re.M)


def calls(place):
    """(words, code) for all that prints."""
    equal(sorted(commands(place)), sorted(CALLS), "the commands: each belongs into this test")
    place.recording("1")
    place.allium("run", "--sites", "--quiet", "--force", "-o", "s.allium", "--", "sh", "-c", ":")
    place.allium("trace", "--quiet", "-o", "t.trace", "--", "sh", "-c", ":")
    process = place.start_holder()
    wait_until(lambda: place.row(process.pid), 5, "a row in allium ps")
    yield "--help", 0
    yield "--version", 0
    for name, several in CALLS.items():
        yield name + " --help", 0
        for words, code in several:
            yield "%s %s" % (name, words.format(pid=process.pid)), code


def call(place, words, stdout, **how):
    """The shell becomes the command: its code and what it says are all there is."""
    done = subprocess.run(["sh", "-c", "exec %s %s" % (built("ALLIUM"), words)], cwd=place.folder, env=place.env,
                          stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=tap.TIMEOUT, **how)
    return done.returncode, done.stderr.decode()


def full_device(place):
    with open("/dev/full", "wb") as full:
        for words, _ in calls(place):
            code, said = call(place, words, full)
            check(code == 1 and said.endswith("allium: cannot write: No space left on device\n"), words, "ended with",
                  code, "and said", repr(said))
            equal(said.count("cannot write"), 1, "lines of " + words)


def closed_pipe(place):
    """Who does not ignore SIGPIPE is ended by it, as cat is; who ignores it sees the command's own code and no
    complaint.
    """
    reading, writing = os.pipe()
    os.close(reading)
    try:
        for words, wanted in calls(place):
            equal(call(place, words, writing), (-signal.SIGPIPE, ""), words + " into a closed pipe")
            # Python ignores it, and so does what it starts
            code, said = call(place, words, writing, restore_signals=False)
            check("cannot write" not in said, words, "said", repr(said))
            check(code in (0, 2, 3) if wanted is None else code == wanted, words, "with SIGPIPE ignored ended with",
                  code, said)
    finally:
        os.close(writing)


def file_by_name(place):
    """export -o names the file that could not be written."""
    place.recording("1")
    for form in ("--folded live", "--pprof", "--speedscope", "--heaptrack"):
        code, said = call(place, "export r.allium %s -o /dev/full" % form, subprocess.DEVNULL)
        equal((code, said), (1, "allium: /dev/full: No space left on device\n"), form)


def size_limit(place):
    """A file that may not grow (ulimit -f) is told, and ends nothing; the program that is run has the signal as its
    caller had it.
    """
    done = tap.run(["sh", "-c", "ulimit -f 0; exec %s run -o limited.allium -- true" % built("ALLIUM")],
                   cwd=place.folder, env=place.env)
    said = done.stderr.decode()
    check(done.returncode == 125 and said.count("\n") == 1, done.returncode, said)
    check("limited.allium: File too large" in said, said)
    done = tap.run([built("ALLIUM"), "run", "--quiet", "-o", "s.allium", "--", "sh", "-c",
                    "ulimit -f 0; exec 3>limited; exec head -c 10 /dev/zero >&3"], cwd=place.folder, env=place.env)
    equal(done.returncode, 128 + signal.SIGXFSZ, "code of a program that the limit ends")


tap.main([(name, placed(function)) for name, function in [
    ("a full device: one line, and code 1", full_device),
    ("a reader that has gone", closed_pipe),
    ("a full device by its name", file_by_name),
    ("a limit of a file's size", size_limit),
]])
