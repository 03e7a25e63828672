# SPDX-License-Identifier: BSD-2-Clause
"""What `run --self-test` plants, and what must be said of it."""
import os
import tempfile

import boot
import debian
import tests

PASS, FAIL, SKIP = "passed", "failed", "skipped"  # as tests/run has them
PANIC = "the guest panicked: Kernel panic - not syncing: sysrq triggered crash"

HERE = os.path.dirname(os.path.realpath(__file__))
# Each is one boot: what is wrong with it; what boots in the kernel's place (None: the kernel); the silence in seconds
# that ends it (None: the usual); tests of plants/; the verdicts, of which what is said may begin so.
BOOTS = [
    (
        "tests that fail, in each way that a test can",
        None,
        None,
        ["complains", "crashes", "fails", "kills", "mute", "overruns", "passes", "skips"],
        [
            (PASS, "complains: one", ""),
            (PASS, "crashes: one", ""),
            (FAIL, "crashes", "ended with code 3"),
            (PASS, "fails: one", ""),
            (FAIL, "fails: two", "not ok"),
            (PASS, "kills: one", ""),
            (FAIL, "kills", "ended with code 137"),
            (FAIL, "mute", "printed no plan"),
            (PASS, "overruns: one", ""),
            (FAIL, "overruns", "not done within 2 s"),
            (PASS, "passes: one", ""),
            (PASS, "passes: nothing is left of those before", ""),
            (SKIP, "skips: one", "no such thing here"),
            (FAIL, "the kernel is well", "BUG: planted"),
        ],
    ),
    (
        "a guest that hangs",
        None,
        40,
        ["freezes", "passes"],
        [(FAIL, "freezes", "the guest hung in it"), (FAIL, "passes", "not begun: the guest hung")],
    ),
    (
        "a guest that panics",
        None,
        None,
        ["panics", "passes"],
        [(FAIL, "panics", PANIC + " in it"), (FAIL, "passes", "not begun: " + PANIC)],
    ),
    (
        "a guest that is reset",
        None,
        None,
        ["resets", "passes"],
        [
            (FAIL, "resets", "the guest ended without a word in it"),
            (FAIL, "passes", "not begun: the guest ended without"),
        ],
    ),
    (
        "a guest that does not boot",
        HERE + "/init",
        None,
        ["passes"],
        [(FAIL, "passes", "not begun: the guest ended as qemu did, code 1: ")],
    ),
]


def fits(said, expected):
    return len(said) == len(expected) and all(
        have[:2] == want[:2] and have[2].startswith(want[2]) for have, want in zip(said, expected))


def without_boot():
    """(name, whether it is so)"""
    yield "the newest kernel is the one of the highest number", debian.find("6.12", [
        "linux-image-6.12.9+deb12-cloud-amd64", "linux-image-6.12.100+deb12-cloud-amd64",
        "linux-image-6.12.101+deb12-cloud-amd64-unsigned", "linux-image-6.1.0-56-cloud-amd64",
    ]) == "linux-image-6.12.100+deb12-cloud-amd64"
    yield "no kernel fits, none is found", debian.find("6.12", ["linux-image-6.1.0-56-cloud-amd64"]) is None
    yield "a script's own words are read", read_script("#: seconds 7\n#: kernels 6.1\n#: cgroup v1\n#: long\n") == \
        (7, ["6.1"], "256M v1", True)
    yield "a script without any has the usual", read_script("plan 1\n") == (
        600,
        list(debian.PACKAGES),
        "256M v2",
        False,
    )
    for wrong in ("#: second 7\n", "#: kernels 5.15\n", "#: cgroup v3\n", "#: seconds 1\n#: seconds 2\n", "#:\n"):
        yield "a script with %s is refused" % wrong.split("\n")[-2], read_script(wrong) is None
    with tempfile.TemporaryDirectory(prefix="allium-check-") as empty:
        yield "without apt and a kernel one line says what to do", get_without_apt(empty).endswith(
            "then apt-get update")
        os.makedirs(empty + "/linux-image-6.12.9-cloud-amd64/boot")
        image = empty + "/linux-image-6.12.9-cloud-amd64/boot/vmlinuz-6.12.9-cloud-amd64"
        with open(image, "w"):
            pass
        yield "without apt the kernel fetched last is taken", get_without_apt(empty) == image
    ran, over = boot.parse("\nT begin a\nok\nT end a 1 2\nX over\n\nT begin b\nwell\nT end b 13", "T")
    yield "half a mark is none", not over and (ran["a"].code, ran["a"].seconds, ran["b"].code) == (1, 2, None)
    yield "output belongs to its test", (ran["a"].output, ran["b"].output) == ("ok\n", "well\nT end b 13")
    ends = [boot.Boot(boot.PANICKED, {}, "", None), boot.Boot(boot.PANICKED, {"a": boot.Ran("")}, "", 1)]
    booted = boot.until_begun(iter(ends).__next__)
    yield "a kernel that panics before its first test boots again, not after it", booted is ends[
        1] and booted.panics_before == 1
    never = boot.until_begun(lambda: boot.Boot(boot.PANICKED, {}, "", None))
    yield "one that always does is told", (never.fate, never.panics_before) == (boot.PANICKED, boot.BOOTS_MOST - 1)
    yield "the guest's end is told", boot.parse("T over\n", "T") == ({}, True)


def read_script(text):
    with tempfile.TemporaryDirectory(prefix="allium-check-") as folder:
        with open(folder + "/planted.sh", "w") as file:
            file.write(text)
        try:
            test, = tests.read(folder)
        except debian.Wrong:
            return None
        return test.seconds, test.kernels, str(test.machine), test.long


def get_without_apt(cache):
    """The image of the kernel that is found, or why there is none."""
    path = os.environ["PATH"]
    os.environ["PATH"] = cache
    try:
        return debian.get("6.12", cache).image
    except debian.Missing as why:
        return str(why)
    finally:
        os.environ["PATH"] = path
