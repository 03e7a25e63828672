# SPDX-License-Identifier: BSD-2-Clause
"""Three boots of a kernel against three with one parameter changed: `allium diff` has what the parameter does on top, and
calls all that differs from boot to boot noise.

The parameter is apparmor.path_max, the size of the buffers that apparmor_init() allocates once: of one CPU 2, and 2 in
reserve. They have 8192 bytes each unless told. So the truth is known without any recording.
"""
import base64
import gzip
import json
import os
import re
import shutil
import subprocess

import boot
import debian
import tests

NAME, KERNEL = "diff_boots", "6.12"
BOOTS = 3
PARAMETER, CALL = "apparmor.path_max=65536", "apparmor_init"
CHANGE = 4 * (65536 - 8192)
RECORDING = re.compile(r"^# recording\n(.*?)^# end of the recording$", re.M | re.S)


def recorded(kernel, script, parameters, folder, build, path):
    """Boots, and leaves the recording in PATH; -> what is wrong, or None"""
    test = tests.Test(script)
    test.machine.parameters += " " + parameters
    booted = boot.boot(kernel, [test], folder, build)
    ran = booted.ran.get(test.name)
    found = RECORDING.search(ran.output) if ran else None
    if booted.fate != boot.OVER or ran.code or not found or "not ok" in ran.output:
        return "the guest %s:\n%s" % (booted.fate, ran.output[:2000] if ran else booted.console[-2000:])
    with open(path, "wb") as file:
        file.write(gzip.decompress(base64.b64decode(found.group(1).replace("# ", ""))))
    return None


class Compared:
    """What `allium diff` says of two lists of recordings, by function."""

    def __init__(self, build, before, after, sort):
        words = ["--by", "function", "--sort", sort, "--per", "boot", "--json"]
        command = [build + "/allium", "diff", ",".join(before), ",".join(after), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.rows = json.loads(done.stdout)["rows"]
        self.certain = [row["name"] for row in self.rows if not row["within_noise"]]
        self.noise = [row["name"] for row in self.rows if row["within_noise"]]


def results(build, recordings):
    """[(whether it is so, what, what was found)]"""
    before, after = recordings
    live = Compared(build, before, after, "live")
    first = live.rows[0]
    allocated = Compared(build, before, after, "allocated")
    return [
        (first["name"] == CALL and first["self"]["change_bytes_per_boot"] == CHANGE and not first["within_noise"],
         "the call that the parameter changed leads, to the byte",
         "%s: %s" % (first["name"], first["self"]["change_bytes_per_boot"])),
        (live.certain == [CALL], "all else is within noise", live.certain),
        (len(live.noise) > 2, "boots do differ", live.noise),
        (allocated.certain == [CALL], "all else allocated is within noise", allocated.certain),
    ]


def record(kernel, script, folder, build, report):
    """Boots all; -> the recordings of both sides, or None"""
    recordings = ([], [])
    for side, parameters in enumerate(("", PARAMETER)):
        for number in range(BOOTS):
            path = "%s/%s%d.allium" % (folder, "ab"[side], number)
            wrong = recorded(kernel, script, parameters, folder + "/boot", build, path)
            if wrong:
                report(False, "%s: boot %d%s is recorded" % (NAME, number, parameters and " with " + parameters), wrong)
                return None
            recordings[side].append(path)
    report(True, "%s: %d boots are recorded" % (NAME, 2 * BOOTS), "")
    return recordings


def compare(here, build, script, report, comment):
    """`report(whether it is so, name, why)`: of what was recorded and compared. A figure that takes one of two values by
    chance looks changed in up to 3 % of such comparisons (allium-diff(1)): so there is a second try.
    """
    kernel, folder = debian.get(KERNEL, here), here + "/" + NAME
    for last in (False, True):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        recordings = record(kernel, script, folder, build, report)
        found = results(build, recordings) if recordings else []
        wrong = [what for is_so, what, _ in found if not is_so]
        if last or not wrong:
            break
        comment("retry: not so: %s" % ", ".join(wrong))
    for is_so, what, have in found:
        report(is_so, "%s: %s" % (NAME, what), "have %s" % (have,))
    if found and not wrong:
        shutil.rmtree(folder)
