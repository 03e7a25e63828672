# SPDX-License-Identifier: BSD-2-Clause
"""The rings of events under stress (rings.c), and errors that are planted into their sources, which it must find."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, equal, private_dir

ROOT = os.path.realpath(__file__ + "/../../..")
SECONDS = "20" if os.environ.get("ALLIUM_TEST_LONG") else "1"
HERE = os.path.dirname(os.path.realpath(__file__))


def built(folder, file=None, old=None, new=None):
    """rings, from sources in which `old` is replaced by `new` in `file`"""
    shutil.copytree(ROOT + "/src/ring", folder + "/ring")
    if file:
        with open(folder + "/ring/" + file) as source:
            text = source.read()
        equal(text.count(old), 1, "places for the error in " + file)
        with open(folder + "/ring/" + file, "w") as source:
            source.write(text.replace(old, new))
    sources = [folder + "/ring/" + name for name in ("ring_read.c", "ring_shared.c", "ring_write.c")]
    tap.succeed(["cc", "-O2", "-D_GNU_SOURCE", "-I" + folder, "-I" + ROOT + "/src", HERE + "/rings.c", *sources,
                 ROOT + "/src/base/sigsafe/atomic.c", "-lpthread", "-o", folder + "/rings"])
    return folder + "/rings"


def stress():
    with private_dir() as folder:
        done = subprocess.run([built(folder), SECONDS], stdout=subprocess.PIPE, text=True)
        check(done.returncode == 0 and done.stdout.count("\nok") == 6, done.stdout)
        print("# " + done.stdout.replace("\n", "\n# "))


def planted(*error):
    def test():
        with private_dir() as folder:
            done = subprocess.run([built(folder, *error), SECONDS, "0"], stdout=subprocess.PIPE, text=True)
            check("not ok" in done.stdout or done.returncode < 0, done.stdout)
    return test


tap.main([
    ("events are read or counted, to the unit", stress),
    ("sequences that are never aborted are found", planted("sequence_x86_64.h", "(2f - 1f)", "1")),
    ("a commit before the words are written is found", planted(
        "sequence_x86_64.h", '"leaq (%%rcx,%%r8,8), %%rcx\\n\\t"',
        '"leaq (%%rcx,%%r8,8), %%rcx\\n\\taddq %[step], %%rsi\\n\\tmovq %%rsi, (%%rdi)\\n\\tsubq %[step], %%rsi\\n\\t"')),
    ("so in the slow way",
     planted("sequence_x86_64.h", '"rep movsq\\n\\t"', '"movq %[after], (%[head])\\n\\trep movsq\\n\\t"')),
    ("a writer that does not look whether the head is as before is found",
     planted("sequence_x86_64.h", '"cmpq %[before], (%[head])', '"cmpq %[before], %[before]')),
    ("a full ring that does not discard is found",
     planted("ring_write.c", "if (!is_free(ring, cpu, next))", "if (0 && !is_free(ring, cpu, next))")),
    ("a slot that is taken from a sleeping writer is found",
     planted("ring_shared.c", "ring_slot_state(old) != RING_SLOT_BUSY && old < mine", "old < mine")),
])
