#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The container in rows of processes: by the cgroup that the process was in, also when both are gone."""
import contextlib
import json
import os
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import reclaim
from lib import check, equal, loses, only, tap, tool

ID = "%064x" % (0xa11 << 240 | os.getpid())
NAME = ID[:12]
TOOLS = {"kmem": "allocations", "kpages": "allocations", "faults": "faults"}
ONE_REPORT = ("--interval", "1h")


@contextlib.contextmanager
def container():
    """A cgroup that is called as docker under systemd calls it."""
    it = reclaim.Group("docker-%s.scope" % ID, limit_mib=32)
    try:
        yield it
    finally:
        if os.path.exists(it.folder):
            it.remove()


def run(command, before=()):
    """-> its pid, when it has ended."""
    process = subprocess.Popen([*before, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    equal(process.wait(tap.TIMEOUT), 0, "exit code of %s" % command)
    return process.pid


def row_of(it, pid, what):
    """The row of what it became last: before that it was a shell, and a fork of this test."""
    return max((row for row in it.rows if row.get("pid") == pid), key=lambda row: (row["comm"] == what))


def inside(name, by="process", env=None):
    """Who was in it has its id though he has ended; who was not, none."""
    with container() as where, tool(name, "--by", by, *ONE_REPORT, env=env) as it:
        pid = run(where.command(["cat", "/proc/self/status"]))
        other = run(["head", "-c", "100", "/dev/zero"])
        it.stop()
    row = row_of(it, pid, "cat")
    equal((row["comm"], row["container"]), ("cat", NAME), "who was inside")
    row = row_of(it, other, "head")
    equal((row["comm"], row["container"]), ("head", None), "who was not")


def removed(name, env=None):
    """A cgroup that is gone before anybody looks has its id, whether it was made before the tool began or after."""
    with container() as where, tool(name, "--by", "process", *ONE_REPORT, env=env) as it:
        pid = run(where.command(["cat", "/proc/self/status"]))
        where.remove()
        with container() as later:
            other = run(later.command(["cat", "/proc/self/status"]))
        it.stop()
    for one in pid, other:
        equal(row_of(it, one, "cat")["container"], NAME, "container")


def never_told(name):
    """Without the kernel's word on the removal, here as the tracepoint's arguments have other names, nobody knows."""
    with lib.private_dir() as folder:
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            text = file.read()
        check(text.count(b"\0cgrp\0") == 1, "the argument's name in BTF")
        with open(folder + "/btf", "wb") as file:
            file.write(text.replace(b"\0cgrp\0", b"\0gone\0"))
        with container() as where:
            command = where.command(["cat", "/proc/self/status"])
            script = "%s >/dev/null & wait $!; rmdir %s; echo $!" % (shlex.join(command), where.folder)
            mount = 'mount --bind %s/btf /sys/kernel/btf/vmlinux && exec "$@"' % folder
            kept = ["--by", "process", "--json", "--quiet", "--comm", "cat", *ONE_REPORT]
            command = [lib.built("ALLIUM"), "sys", name, *kept, "--", "sh", "-c", script]
            done = tap.succeed(["unshare", "-m", "sh", "-c", mount, "sh", *command])
    rows = [json.loads(line) for line in done.stdout.splitlines() if b'"comm":"cat"' in line]
    check(rows and all(row["container"] == "(unknown)" for row in rows), rows)


def reclaims():
    """Of vmscan, the one that pays."""
    with reclaim.file_on_disk(48) as path, container() as where, tool("vmscan", "--by", "process", *ONE_REPORT) as it:
        pid = reclaim.run_in(where, reclaim.reads(path))
        it.stop()
    equal(only(it.rows, reclaim="memcg", pid=pid)["container"], NAME, "container")


def victims():
    """An event has the one of who asked; a kill also that of who died, by the path that the kernel told then."""
    with container() as where, tool("oomkill") as it:
        process = subprocess.Popen(where.command([lib.built("TEST_EATER"), "grow"]), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        process.wait(tap.TIMEOUT)
        where.remove()
        it.stop()
    row = only(it.rows, victim_pid=process.pid)
    equal(row["victim_container"], NAME, "the victim's")
    equal(row["container"], NAME, "the container of who asked")


def only_of_processes():
    """Rows of something else have no such column: it cannot be asked for."""
    for name, by in (("kmem", "site"), ("kpages", "stack"), ("faults", "file"), ("vmscan", "phase")):
        with tool(name, "--by", by, *ONE_REPORT) as it:
            run(["cat", "/proc/self/status"])
            it.stop()
        check(all("container" not in row for row in it.rows), "rows by", by, it.rows)
        done = tap.run([lib.built("ALLIUM"), "sys", name, "--by", by, "--where", "container:a", "--duration", "20ms"])
        equal(done.returncode, 2, "exit code")
        check(b"use --by process" in done.stderr, done.stderr)


def on_screen():
    """A column where some row has one, and none where none has."""
    with container() as where:
        def shown(*words):
            return tap.succeed([
                lib.built("ALLIUM"), "sys", "kmem", "--by", "process", "--comm", "cat", "--quiet", "--", *words, "cat",
                "/proc/self/statm"
            ]).stdout.decode()
        out = shown("sh", "-c", 'echo $$ >%s/cgroup.procs && exec "$@"' % where.folder, "sh")
        check("CONTAINER" in out and NAME in out, out)
        out = shown("env")
        check("CONTAINER" not in out, out)


TESTS = [("who is inside has its id, who is not has none: %s" % name, lambda name=name: inside(name)) for name in TOOLS]
TESTS += [("a cgroup that is gone has its id: %s" % name, lambda name=name: removed(name)) for name in TOOLS]
TESTS += [
    ("who is inside has its id: faults by place", lambda: inside("faults", "place")),
    ("who pays for reclaim", reclaims),
    ("who died", victims),
    ("of a cgroup that is gone nobody knows where the kernel does not tell", lambda: never_told("kmem")),
    ("rows of something else have none", only_of_processes),
    ("a column on the screen where there is one", on_screen),
    ("a test fails when a row is missing", lambda: loses(lambda env: inside("kmem", env=env))),
]

lib.main(TESTS)
