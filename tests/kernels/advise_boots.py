# SPDX-License-Identifier: BSD-2-Clause
"""What `allium sys advise` says of a boot is done to the next ones: each measure that a parameter of the kernel's command
line can apply saves what was printed, and so does `shrink`.

Five boots begin with a large log buffer, a large table of dentries, and KFENCE. Then, for each of the measures that
advise has for these, five boots with the parameter that the measure names, and all else as before. What the kernel takes
at boot is missing in MemTotal, to the byte; so the difference of the medians of MemTotal is what was saved. Slabs are
counted in /sys/kernel/slab. Of MemFree, which changes from boot to boot, the difference is a comment only. (MemAvailable
also changes with the watermarks, which the kernel sets anew by the size of its memory: by more than is saved.)
"""
import json
import re
import shutil
import statistics

import boot
import debian
import tests

NAME, KERNEL = "advise_boots", "6.12"
BOOTS = 5
LEAST = 256 << 10  # measures that save less are not worth a boot
BEFORE = "log_buf_len=4M dhash_entries=1048576 kfence.sample_interval=100"
# Tables and the like are aligned: their last page may be shared.
PAGE = 4096


class Booted:
    """What one boot said."""

    def __init__(self, output):
        self.kib = {name: int(n) for name, n in re.findall(r"^# figure (\w+) (\d+)$", output, re.M)}
        self.shrunk = [(name, *map(int, numbers)) for name, *numbers in re.findall(
            r"^# shrunk (\S+) (\d+) (\d+) (-?\d+)$", output, re.M)]
        self.measures = json.loads("".join(re.findall(r"^# advice (.*)$", output, re.M)))["measures"]

    def measure(self, name):
        """The measure that changes the parameter of that name; None: there is none"""
        found = [m for m in self.measures if re.match(r"boot with(out)? %s\b" % re.escape(name), m["change"])]
        return found[0] if found else None


def applied(parameters, change):
    """The parameters, changed as the measure says: "boot with NAME=VALUE" or "boot without NAME=VALUE"."""
    how, name, value = re.match(r"boot (with|without) ([\w.]+)=(\S+)$", change).groups()
    rest = [word for word in parameters.split() if not word.startswith(name + "=")]
    return " ".join(rest + [name + "=" + value] * (how == "with"))


def boots(kernel, script, parameters, folder, build):
    """-> [Booted], or what is wrong"""
    found = []
    for _ in range(BOOTS):
        test = tests.Test(script)
        test.machine.parameters += " " + parameters
        booted = boot.boot(kernel, [test], folder, build)
        ran = booted.ran.get(test.name)
        if booted.fate != boot.OVER or ran.code or "not ok" in ran.output:
            return "the guest %s:\n%s" % (booted.fate, ran.output[:2000] if ran else booted.console[-2000:])
        found.append(Booted(ran.output))
    shutil.rmtree(folder)
    return found


def median(booted, figure):
    return statistics.median(each.kib[figure] for each in booted) * 1024


def shrinks(booted, report, comment):
    """What "shrink" frees of each cache, and of all."""
    for each in booted:
        for name, low, high, freed in each.shrunk:
            if not low <= freed <= high:
                report(False, "%s: %s shrinks within its bounds" % (NAME, name), "%d..%d, %d" % (low, high, freed))
    low, high, freed = (statistics.median(sum(cache[i] for cache in each.shrunk) for each in booted) for i in (1, 2, 3))
    comment("shrink of %d caches: low %d, high %d, saved %d" % (len(booted[0].shrunk), low, high, freed))
    report(high >= LEAST and low <= freed <= high, NAME + ": shrink frees what was printed",
           "%d..%d, %d" % (low, high, freed))


def judge(here, build, script, report, comment):
    """`report(whether it is so, name, why)` of each measure"""
    kernel, folder = debian.get(KERNEL, here), here + "/" + NAME
    before = boots(kernel, script, BEFORE, folder, build)
    report(isinstance(before, list), "%s: %d boots are advised" % (NAME, BOOTS), before)
    if not isinstance(before, list):
        return
    shrinks(before, report, comment)
    for word in BEFORE.split():
        name = word.partition("=")[0]
        measure = before[0].measure(name)
        report(measure is not None and measure["high_bytes"] >= LEAST, "%s: there is a measure for %s" % (NAME, word),
               [m["change"] for m in before[0].measures[:5]])
        if not measure:
            continue
        after = boots(kernel, script, applied(BEFORE, measure["change"]), folder, build)
        if not isinstance(after, list):
            report(False, "%s: %s boots" % (NAME, measure["change"]), after)
            continue
        saved, free = (median(after, figure) - median(before, figure) for figure in ("MemTotal", "MemFree"))
        low, high = measure["low_bytes"], measure["high_bytes"]
        comment("%s: low %d, high %d, saved %d; MemFree %+d" % (measure["change"], low, high, saved, free))
        report(low - PAGE <= saved <= high + PAGE, "%s: %s saves what was printed" % (NAME, measure["change"]),
               "%d..%d, %d" % (low, high, saved))
        again = after[0].measure(name)
        report(not again or again["high_bytes"] < LEAST, "%s: then there is none for %s" % (NAME, name), again)
