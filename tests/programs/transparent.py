# SPDX-License-Identifier: BSD-2-Clause
"""Under `allium run` a program does what it does without: stdout, stderr, exit code and the files that it writes."""
import concurrent.futures
import hashlib
import os
import sys

sys.dont_write_bytecode = True
import tap
import workloads
from tap import built, check, equal, pick, private_dir

TIMES = pick(2, 20)
AT_ONCE = pick(1, os.cpu_count())


def files(folder, ignore):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return {name: digest for name, digest in found.items() if name not in ignore}


def outcome(workload, period=None):
    """Everything that can be seen of a run: [(command, code, stdout, stderr)], files. Observed, if there is a period.
    """
    with private_dir("/tmp") as top:
        folder = os.path.join(top, "work")  # a name of its own would end up in what is compared
        recordings = []
        os.mkdir(folder)

        def wrap():
            recordings.append("%s/%d.allium" % (top, len(recordings)))
            return [built("ALLIUM"), "run", "--quiet", "--period", period, "-o", recordings[-1], "--"]

        ended = workload.run(folder, dict(os.environ), *([wrap] if period else []))
        check(all(map(os.path.exists, recordings)), "no recording of one of", [command for command, _ in ended])
        seen = [(command, done.returncode, plain(done.stdout, top), plain(done.stderr, top)) for command, done in ended]
        return seen, files(folder, workload.ignore)


def plain(text, top):
    return text.decode(errors="replace").replace(top, "TOP")


def compared(workload):
    def test():
        workload.lengthen()
        seen, left = outcome(workload)
        check(any(out for _, _, out, _ in seen) or left, "the workload shows nothing")

        def compare(period, turn):
            mine, my_left = outcome(workload, period)
            for want, have in zip(seen, mine):
                for what, a, b in zip(("exit code", "stdout", "stderr"), have[1:], want[1:]):
                    equal(a, b, "period %s, run %d, %s: %s" % (period, turn, " ".join(want[0]), what))
            wrong = [name for name in set(left) | set(my_left) if left.get(name) != my_left.get(name)]
            check(not wrong, "period %s, run %d: files differ: %s" % (period, turn, wrong))

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = [pool.submit(compare, period, turn) for period in ("512K", "1") for turn in range(TIMES)]
            try:
                for each in done:
                    each.result()
            finally:
                pool.shutdown(cancel_futures=True)
    return test


tap.main([("%s cannot tell that it is observed" % w.name, compared(w)) for w in workloads.WORKLOADS])
