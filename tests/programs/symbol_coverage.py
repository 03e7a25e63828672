# SPDX-License-Identifier: BSD-2-Clause
"""Of a program with debug files at least 95 % of the sampled bytes are under named functions: every caller has its
name.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
import workloads
from tap import built, check, pick, private_dir, succeed

OWN = [os.path.join(built("TEST_PROGRAMS"), "operators"), str(pick(2000, 200000))]
UNNAMED = re.compile(r"(.*\+0x[0-9a-f]+|\[.*\])")  # module and offset, or why the stack ends there


def share(run, period):
    """Of the bytes sampled: those with nothing but named functions on their stack, in percent."""
    with private_dir("/tmp") as folder:  # with a cache of names of its own, too
        recording = folder + "/recording.allium"
        run(folder, lambda: ["env", "XDG_CACHE_HOME=" + folder, built("ALLIUM"), "run", "--quiet", "--period", period,
                             "-o", recording, "--"])
        folded = succeed([built("ALLIUM"), "export", recording, "--folded", "allocated"]).stdout.decode()
    named, total = 0, 0
    for line in folded.splitlines():
        frames, _, size = line.rpartition(" ")
        named += int(size) * (not any(map(UNNAMED.fullmatch, frames.split(";"))))
        total += int(size)
    check(total > 1 << 20, "hardly a byte was sampled:", total)
    return 100 * named / total


def own(folder, wrap):
    succeed(wrap() + OWN)


def stripped(folder, wrap):
    """No debug file of it is anywhere: what is looked for can be missing."""
    succeed(["strip", "-s", "-o", folder + "/stripped", OWN[0]])
    succeed(wrap() + [folder + "/stripped"] + OWN[1:])


def python(folder, wrap):
    (workload,) = (w for w in workloads.WORKLOADS if w.name == "python3 with PYTHONMALLOC=malloc")
    workload.lengthen()
    workload.run(folder, dict(os.environ), wrap)


def named(run, least, most):
    def test():
        for period in ("4K", "1"):
            percent = share(run, period)
            print("# period %s: %.2f %%" % (period, percent))
            check(least <= percent <= most, "%.2f %% of the bytes are under named functions" % percent)
    return test


tap.main([
    ("of our own program, built with -g", named(own, 95, 100)),
    ("of python3, whose debug file comes in a package", named(python, 95, 100)),
    ("nearly nothing, if there is no debug file", named(stripped, 0, 5)),
])
