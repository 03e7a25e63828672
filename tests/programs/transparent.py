# SPDX-License-Identifier: BSD-2-Clause
"""Under `allium run` a program does what it does without: stdout, stderr, exit code and the files that it writes."""
import hashlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import tap
import workloads
from tap import built, check, equal, pick, private_dir, shorten, succeed

TIMES = pick(2, 20)


def files(folder, ignore):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return {name: digest for name, digest in found.items() if name not in ignore}


def outcome(workload, wrap):
    """Everything that can be seen of a run: [(code, stdout, stderr)], files."""
    with private_dir("/tmp") as top:
        folder = os.path.join(top, "work")  # a name of its own would end up in what is compared
        recordings = os.path.join(top, "recordings")
        os.mkdir(folder)
        os.mkdir(recordings)
        workload.prepare(folder)
        env, seen = dict(os.environ, **workload.env), []
        for number, command in enumerate(workload.commands):
            stdin = open(os.path.join(folder, workload.stdin)) if workload.stdin else tap.subprocess.DEVNULL
            recording = "%s/%d.allium" % (recordings, number)
            done = tap.run((wrap(recording) if wrap else []) + command, cwd=folder, env=env, stdin=stdin)
            seen.append((command, done.returncode, plain(done.stdout, top), plain(done.stderr, top)))
            check(not wrap or os.path.exists(recording), "no recording of", command)
        return seen, files(folder, workload.ignore)


def plain(text, top):
    return text.decode(errors="replace").replace(top, "TOP")


def wrapper(period):
    return lambda recording: [built("ALLIUM"), "run", "--quiet", "--period", period, "-o", recording, "--"]


def compared(workload):
    def test():
        seen, left = outcome(workload, None)
        check(any(out for _, _, out, _ in seen) or left, "the workload shows nothing")
        for period in ("512K", "1"):
            for turn in range(TIMES):
                mine, my_left = outcome(workload, wrapper(period))
                for want, have in zip(seen, mine):
                    for what, a, b in zip(("exit code", "stdout", "stderr"), have[1:], want[1:]):
                        equal(a, b, "period %s, run %d, %s: %s" % (period, turn, " ".join(want[0]), what))
                wrong = [name for name in set(left) | set(my_left) if left.get(name) != my_left.get(name)]
                check(not wrong, "period %s, run %d: files differ: %s" % (period, turn, wrong))
    return test


def redis_replies(period):
    """What redis-cli reads, and the server's exit code."""
    words = ["SET key%d %s" % (i, "v" * (i % 300)) for i in range(500)]
    words += ["LPUSH list%d a b c %d" % (i % 7, i) for i in range(300)] + ["HSET hash f%d %d" % (i, i) for i in range(200)]
    words += ["LRANGE list3 0 -1", "HLEN hash", "DEBUG DIGEST", "DBSIZE", "GET key299", "EVAL 'return #KEYS' 1 a", "NONSENSE"]
    with private_dir() as folder:
        wrap = [built("ALLIUM"), "run", "--quiet", "--period", period, "-o", folder + "/r.allium", "--"] if period else []
        with workloads.redis(folder, dict(os.environ), wrap) as (port, process):
            done = succeed(["redis-cli", "-p", str(port)], input="\n".join(words).encode())
            tap.run(["redis-cli", "-p", str(port), "shutdown", "nosave"])
            return shorten(done.stdout.decode(), 1 << 20), process.wait(20)


def compared_redis():
    want = redis_replies(None)
    equal(want[1], 0, "exit code of redis-server")
    for period in ("512K", "1"):
        for _ in range(TIMES):
            equal(redis_replies(period), want, "replies and exit code, period " + period)


tests = [("%s cannot tell that it is observed" % w.name, compared(w)) for w in workloads.WORKLOADS]
tests.append(("redis-server cannot tell that it is observed", compared_redis))
tap.main(tests)
