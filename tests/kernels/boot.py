# SPDX-License-Identifier: BSD-2-Clause
"""Boots a kernel in qemu, and tells what became of the guest and of each of its tests. init says what it prints."""
import ctypes
import os
import re
import secrets
import shutil
import signal
import subprocess
import time

import initramfs

BOOTS_MOST = 3
SILENCE_SECONDS = 60  # of a guest that hangs, beyond what its longest test may take
PR_SET_PDEATHSIG = 1
OVER, PANICKED, HUNG, DIED = "over", "panicked", "hung", "ended without a word"

# No mitigations, no self-tests: emulated, they take a good part of a boot, and no test is about them.
KERNEL_WORDS = "console=ttyS0 panic=-1 mitigations=off cryptomgr.notests tsc=reliable no_timer_check"


class Ran:
    """One guest test: what it printed; code and seconds are None if it did not end."""

    def __init__(self, output, code=None, seconds=None):
        self.output, self.code, self.seconds = output, code, seconds


class Boot:
    """`fate` is one of those above, or qemu's own complaint; `ran` is test's name -> Ran, in the order they began."""

    def __init__(self, fate, ran, console, boot_seconds):
        self.fate, self.ran, self.console, self.boot_seconds = fate, ran, console, boot_seconds
        self.panics_before = 0  # of this kernel, until it came to its first test

    def panic(self):
        """The kernel's last words on why."""
        return (re.findall(r"Kernel panic - .*", self.console) or [""])[-1]

    def complaints(self):
        """What a kernel says that found itself damaged; not that it was slow, for that is emulation."""
        return re.findall(r"^\[ *\d+\.\d+\] ((?:BUG|WARNING|Oops|general protection)\b.*)", self.console, re.M)


def qemu(kernel, machine, token, folder):
    """The command. Nothing of qemu's defaults: no network, no disk, no display, no configuration of the user.
    """
    words = "%s allium.token=%s allium.cgroup=%s %s" % (KERNEL_WORDS, token, machine.cgroup, machine.parameters)
    return [
        initramfs.need("qemu-system-x86_64", "qemu-system-x86"), "-accel", "tcg,thread=multi", "-cpu", machine.cpu,
        "-smp", machine.smp(), "-m", machine.memory, *machine.numa(), "-nodefaults", "-no-user-config", "-display",
        "none", "-no-reboot",
        "-kernel", kernel.image, "-initrd", folder + "/initramfs", "-append", words, "-serial",
        "file:%s/console" % folder, "-serial",
        "file:%s/results" % folder
    ]


def boot(kernel, tests, folder, build, silence=None):
    """Runs tests that share a machine, in a new FOLDER that is left with what the guest printed."""
    return until_begun(lambda: boot_once(kernel, tests, folder, build, silence))


def until_begun(once):
    """A kernel that panics before its first test does so for itself, or for the emulator: nothing of ours has run in
    it. (Seen once: a double fault within its first second.) It boots again.
    """
    for panics in range(BOOTS_MOST):
        booted = once()
        booted.panics_before = panics
        if booted.ran or booted.fate != PANICKED:
            break
    return booted


def boot_once(kernel, tests, folder, build, silence):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    initramfs.make(folder, kernel, tests, build)
    silence = silence or SILENCE_SECONDS + max(test.seconds for test in tests)
    most = 3 * SILENCE_SECONDS + 2 * sum(test.seconds for test in tests)
    token = secrets.token_hex(8)
    with open(folder + "/qemu", "wb") as said:
        process = subprocess.Popen(qemu(kernel, tests[0].machine, token, folder), stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=said, preexec_fn=end_with_parent)
        try:
            hung, boot_seconds = watch(process, folder, silence, most)
        finally:
            process.kill()
            process.wait()
    ran, over = parse(read(folder + "/results"), token)
    console = read(folder + "/console")
    if over:
        fate = OVER
    elif hung:
        fate = HUNG
    elif "Kernel panic - " in console:
        fate = PANICKED
    elif process.returncode:
        fate = "ended as qemu did, code %d: %s" % (process.returncode, read(folder + "/qemu").strip())
    else:
        fate = DIED
    return Boot(fate, ran, console, boot_seconds)


def end_with_parent():
    """No guest goes on for ever when we are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def watch(process, folder, silence, most):
    """Waits for qemu's end. Returns whether the guest fell silent, or would not end; and how long it took to its first
    test.
    """
    began = changed = time.monotonic()
    before, boot_seconds = None, None
    while process.poll() is None:
        time.sleep(0.1)
        now, sizes = time.monotonic(), [size(folder + "/" + name) for name in ("console", "results")]
        if sizes != before:
            changed, before = now, sizes
        if sizes[1] and boot_seconds is None:
            boot_seconds = now - began
        if now - changed > silence or now - began > most:
            return True, boot_seconds
    return False, boot_seconds


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def read(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def parse(text, token):
    """({name: Ran}, whether the guest came to its end) of what came through the second port."""
    mark = re.compile(re.escape(token) + r" (?:(begin) (\S+)|(end) \S+ (\d+) (\d+)|over)")
    ran, now, over = {}, Ran(""), False
    *lines, rest = text.split("\n")  # one without an end may be half a mark
    for line in lines:
        found = mark.fullmatch(line)
        if not found:
            now.output += line + "\n"
        elif found.group(1):
            now = ran[found.group(2)] = Ran("")
        elif found.group(3):
            now.code, now.seconds = int(found.group(4)), int(found.group(5))
            now = Ran("")
        else:
            over = True
    now.output += rest
    return ran, over
