#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each tool of `allium sys` on a kernel that lacks what it attaches to: its own kernel's BTF and tracefs, with parts
taken away.
"""
import contextlib
import re
import sys

sys.dont_write_bytecode = True
import anytool
import lib
from anytool import sys_
from lib import check, equal, tap


@contextlib.contextmanager
def without_tracepoints():
    """What a command begins with that sees a kernel without a single tracepoint: neither its BTF nor tracefs knows one.
    """
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        btf = file.read()
    check(b"\0__traceiter_" in btf, "this BTF has no tracepoints")
    with tap.private_dir() as folder:
        with open(folder + "/btf", "wb") as file:
            file.write(btf.replace(b"\0__traceiter_", b"\0__nonesuch__").replace(b"\0btf_trace_", b"\0btf_nones_"))
        yield [
            "unshare", "-m", "sh", "-c",
            "mount --bind %s/btf /sys/kernel/btf/vmlinux && mount -t tracefs tracefs %s && "
            'mount -t tmpfs none %s/events && exec "$@"' % (folder, lib.TRACEFS, lib.TRACEFS), "sh"
        ]


def misses_tracepoints(t):
    """Where a tracepoint is missing one line says which, for each way to attach; a way that takes none is taken."""
    def why(done):
        lines = done.stderr.decode().splitlines()
        equal((done.returncode, len(lines), done.stdout), (3, 1, b""), "code, lines: %s" % lines)
        return lines[0]
    with without_tracepoints() as before:
        by_position, by_name = {"tp_btf", "raw_tp"} & set(t.methods), {"tp"} & set(t.methods)
        check(by_position | by_name, "no way takes tracepoints:", t.methods)
        for method in by_position | by_name:
            line = why(tap.run([*before, *sys_(t.name, "--attach", method, "--duration", "20ms")]))
            told = "BTF does not describe the arguments of " if method in by_position else "'tp/|tracepoint '"
            check(re.search(r"cannot attach to this kernel: %s: .*(%s)\w+" % (method, told), line), line)
        done = tap.run([*before, *sys_(t.name, "--duration", "20ms")])
        if done.returncode:
            line = why(done)
            for method in t.methods:
                check(re.search(r" %s[:,] " % method, line), method, "is not in", line)
        else:
            taken = done.stderr.decode().splitlines()[0].split(" using ")[1].split(",")[0]
            check(taken not in by_position | by_name, "taken:", done.stderr)


lib.main([("%s: without tracepoints it says which are missing" % about, lambda about=about: misses_tracepoints(about))
          for about in anytool.all_about()])
