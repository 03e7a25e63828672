# SPDX-License-Identifier: BSD-2-Clause
"""`allium doctor --boot` and `allium sys import --boot` on a machine that was not booted with what the former prints.
The boots themselves are tests/kernels/guest/boot_trace.sh and boot_stacks.sh.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal

EVENTS = ["kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free"]


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def prints():
    """One line of parameters, with the events of this kernel and a size that fits the memory; and what to do then."""
    said = allium("doctor", "--boot").stdout.decode()
    line, = re.findall(r"^  (trace_event=.*)$", said, re.M)
    parameters = dict(word.split("=", 1) for word in line.split())
    equal(sorted(parameters), ["trace_buf_size", "trace_clock", "trace_event", "trace_options"], "parameters")
    events = parameters["trace_event"].split(",")
    check(set("kmem:" + name for name in EVENTS) < set(events), events)
    check("task:task_rename" in events, events)
    mib = int(re.fullmatch(r"(\d+)M", parameters["trace_buf_size"]).group(1))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    check(mib & (mib - 1) == 0 and mib * (1 << 20) * os.sysconf("SC_NPROCESSORS_CONF") <= memory // 8, mib, memory)
    equal((parameters["trace_clock"], parameters["trace_options"]), ("global", "nooverwrite"), "the rest")
    check("allium sys import --boot -o boot.allium" in said, said)
    check("nohash-ptr" in said, said)
    for name in parameters:
        check(re.search(r"^%s " % name, said, re.M), "no reason for", name, said)


def needs_root():
    with tap.private_dir() as folder:
        for words in ["doctor", "--boot"], ["sys", "import", "--boot", "-o", folder + "/b.allium"]:
            done = tap.run(["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                            built("ALLIUM"), *words])
            equal(done.returncode, 3, "exit code of %s as nobody: %s" % (words, done.stderr.decode()))
            equal(done.stderr.count(b"\n"), 1, done.stderr)
        check(not os.path.exists(folder + "/b.allium"), "a recording")


def refuses():
    """Nothing was traced at the boot: one line, code 3, no recording, and tracefs as before."""
    with open("/proc/cmdline") as file:
        check("trace_event=" not in file.read(), "this machine traces its boot")
    with tap.private_dir() as folder:
        out = folder + "/b.allium"
        done = allium("sys", "import", "--boot", "-o", out, code=3)
        equal(done.stderr.decode().strip(), "allium: no event of kmem is traced since the boot: `allium doctor --boot` "
              "prints what to add to the kernel's command line", "what it says")
        check(not os.path.exists(out), "there is a recording")
        with open("/proc/mounts") as file:
            check(folder not in file.read(), "something is mounted")


def wrong_usage():
    for words, part in (
        (["sys", "import", "--boot"], "missing -o OUT"),
        (["sys", "import", "--boot", "x", "-o", "y"], "leave out x"),
        (["sys", "import", "--boot", "--partial", "-o", "y"], "leave out --partial"),
        (["sys", "import", "--boot", "--kallsyms", "x", "-o", "y"], "leave out --kallsyms"),
        (["doctor", "--boot", "--json"], "leave out --json"),
    ):
        done = allium(*words, code=2)
        check(part in done.stderr.decode(), done.stderr)


lib.main([
    ("the parameters for a boot", prints),
    ("without root", needs_root),
    ("a boot that was not traced", refuses),
    ("wrong usage", wrong_usage),
])
