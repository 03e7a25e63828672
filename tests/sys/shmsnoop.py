#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys shmsnoop`: each call about shared memory, against a program that knows its own calls and what the kernel
said of the segments (sharer.c); what is left at the end, against /proc/sysvipc/shm and /dev/shm.
"""
import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
from lib import built, check, equal, load, loses, only, tap, tool

METHODS = ("tp_btf", "raw_tp")
NAME = "allium-test-%d" % os.getpid()
LEFT = "/dev/shm/%s.left" % NAME
TIMED = ("shmget", "shmat", "shmdt", "shmctl", "mmap", "memfd_create")


class Sharer:
    """tests/sys/sharer.c, at its first line."""

    def __init__(self, what, argument, before=()):
        self.process = subprocess.Popen([*before, built("TEST_SHARER"), what, str(argument)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.pid = self.process.pid

    def go(self):
        """What it says that it did."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        lines = []
        while not lines or lines[-1]:
            lines.append(json.loads(self.process.stdout.readline()))
        return lines[:-1]

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(tap.TIMEOUT)


@contextlib.contextmanager
def sharer(what, argument=NAME):
    it = Sharer(what, argument)
    try:
        yield it
    finally:
        it.end()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(LEFT)


def events(it):
    return [row for row in it.rows if row["call"]]


def state_rows(it):
    return [row for row in it.rows if not row["call"]]


def each_call(method, env=None):
    """Every call that the program made is an event, in this order, with what the program knows; beside a load."""
    with load(), sharer("steps") as program:
        with tool("shmsnoop", "-p", program.pid, "--attach", method, env=env) as it:
            equal(it.method, method, "method")
            did = program.go()
            it.stop()
    rows = events(it)
    equal([row["call"] for row in rows], [call["call"] for call in did], "calls")
    for row, call in zip(rows, did):
        equal({key: row[key] for key in call}, call, "the event of %s" % call)
        equal((row["pid"], row["tid"], row["comm"], row["uid"]), (program.pid, program.pid, "sharer", 0), "who")
        check((row["duration_ns"] is not None) == (row["call"] in TIMED), "duration", row)
    equal({key: it.lost[key] for key in ("lost_events", "begun_before", "under_way", "calls_of_32_bits", "names_lost")},
          dict.fromkeys(("lost_events", "begun_before", "under_way", "calls_of_32_bits", "names_lost"), 0), "losses")


def at_the_end():
    """What the run was about, and is still there, with the processes that have it; and the file that nobody uses."""
    with sharer("steps") as program, tool("shmsnoop", "-p", program.pid) as it:
        program.go()
        it.stop()
        rows = state_rows(it)
        size = os.stat(LEFT).st_size
    orphans = [row["name"] for row in rows if row["state"] == "orphan"]
    equal(orphans, [LEFT], "files that no process uses")
    left = only(rows, name=LEFT)
    equal((left["segment_bytes"], left["mode"], left["attached"], left["creator_pid"], left["pids"]),
          (size, "0640", 0, program.pid, None), "the file that is left")
    used = {row["name"]: row for row in rows if row["state"] == "in use"}
    equal(set(used), {"/dev/shm/%s (deleted)" % NAME, "/memfd:a\\001name (deleted)", "/dev/zero (deleted)"}, "in use")
    for row in used.values():
        equal((row["pids"], row["attached"], row["creator_pid"]), (str(program.pid), 1, program.pid), row["name"])


def sysvipc():
    """{identifier: its line in /proc/sysvipc/shm, by column}"""
    with open("/proc/sysvipc/shm") as file:
        names, *lines = [line.split() for line in file]
    return {int(line[1]): dict(zip(names, line)) for line in lines}


def orphans():
    """Segments without a process are those of /proc/sysvipc/shm, also if they are older than the tool."""
    def made():
        out = tap.succeed(["ipcmk", "-M", "12345", "-p", "0604"]).stdout
        return int(re.search(rb"\d+$", out.strip()).group())
    old = made()
    new = None
    try:
        with tool("shmsnoop", "--where", "shmid>=0") as it:
            new = made()
            it.stop()
        want = {number: line for number, line in sysvipc().items() if line["nattch"] == "0"}
        have = {row["shmid"]: row for row in state_rows(it) if row["state"] == "orphan"}
        check({old, new} <= set(have), "not listed:", have)
        for number in (old, new):
            row, line = have[number], want[number]
            equal((int(row["key"], 16), row["segment_bytes"], row["creator_pid"], row["uid"]),
                  (int(line["key"]) & 0xffffffff, int(line["size"]), int(line["cpid"]), int(line["uid"])),
                  "the segment %d" % number)
            equal((row["mode"], row["attached"]), ("0604", 0), "mode, processes")
            equal(row["resident_bytes"], int(line["rss"]), "resident")
        created = only(events(it), shmid=new, call="shmget")
        equal((created["comm"], created["state"], created["creator_pid"]),
              ("ipcmk", "created", have[new]["creator_pid"]), "who has made it")
    finally:
        for number in filter(None, (old, new)):
            tap.run(["ipcrm", "-m", str(number)])


def everything():
    """With --all, shared memory that is older than the tool is listed, too, with each process that has it mapped."""
    with sharer("steps") as program:
        program.go()
        with tool("shmsnoop", "--all", "--comm", "nobody-has-this") as it:
            it.stop()
        rows = [row for row in it.rows if row["pids"] == str(program.pid)]
    equal({row["name"]: row["segment_bytes"] for row in rows},
          {
              "/dev/shm/%s (deleted)" % NAME: 2 * 4096, "/memfd:a\\001name (deleted)": 4096,
              "/dev/zero (deleted)": 7 * 4096
          }, "what the program has mapped")
    equal(only(it.rows, name=LEFT)["state"], "orphan", "the file that is left")


def attached():
    """A segment that this process has attached is in use, by this process, as often as /proc/sysvipc/shm says."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, 5 * 4096, 0o600)
    check(number >= 0, "no segment:", os.strerror(ctypes.get_errno()))
    try:
        first, second = libc.shmat(number, None, 0), libc.shmat(number, None, 0)
        ctypes.memset(first, 1, 2 * 4096)
        with tool("shmsnoop", "--all") as it:
            it.stop()
        row, line = only(state_rows(it), shmid=number), sysvipc()[number]
        equal((row["state"], row["attached"], row["pids"], row["resident_bytes"], row["segment_bytes"]),
              ("in use", int(line["nattch"]), str(os.getpid()), int(line["rss"]), 5 * 4096), "the segment")
        equal((row["attached"], row["resident_bytes"]), (2, 2 * 4096), "attached, resident")
        libc.shmdt(ctypes.c_void_p(first))
        libc.shmdt(ctypes.c_void_p(second))
    finally:
        libc.shmctl(number, 0, None)


def many(method):
    """Many calls, most of which fail: the kinds and failures are as many as the program made."""
    with load(), sharer("random", 5000) as program, tool("shmsnoop", "-p", program.pid, "--attach", method) as it:
        did = program.go()[0]
        it.stop()
    rows = [row for row in events(it) if row["call"].startswith("shm")]
    have = {call: sum(row["call"] == call for row in rows) for call in ("shmget", "shmat", "shmdt", "shmctl")}
    # At its end the program removes what is left, and says so to nobody: one call for each of its eight segments.
    have["shmctl"] -= 8
    errors = [row for row in rows[:-8] if row["error"]]
    equal({**have, "failed": len(errors)}, did, "calls and failures")
    equal(it.lost["lost_events"], 0, "lost events")


def ordinary():
    """Opens, mappings and sizes of files that are no shared memory are no events."""
    with sharer("opens", 200) as program, tool("shmsnoop", "-p", program.pid) as it:
        program.go()
        it.stop()
    equal(it.rows, [], "events of ordinary files")


def of_32_bits():
    with sharer("old", 9) as program, tool("shmsnoop", "-p", program.pid) as it:
        program.go()
        it.stop()
    equal((it.rows, it.lost["calls_of_32_bits"]), ([], 9), "rows, calls of 32 bits")


def methods_agree():
    """Both at once have the same events, but for times."""
    with sharer("steps") as program, contextlib.ExitStack() as stack:
        tools = [stack.enter_context(tool("shmsnoop", "-p", program.pid, "--attach", method)) for method in METHODS]
        program.go()
        first, second = ([{key: value for key, value in row.items() if key not in ("time_ns", "duration_ns")}
                          for row in events(it.stop())] for it in tools)
    check(len(first) > 30, "too few events:", first)
    equal(first, second, "events of another method")


def other_namespaces():
    """In another mount namespace /dev/shm is another file system; in another IPC namespace the same number is another
    segment, so that nothing is said of ours.
    """
    script = 'mount -t tmpfs tmpfs /dev/shm && echo >/dev/shm/%s.other && ipcmk -M 4096' % NAME
    with tool("shmsnoop") as it:
        out = tap.succeed(["unshare", "--mount", "--ipc", "sh", "-c", script]).stdout
        it.stop()
    number = int(re.search(rb"\d+$", out.strip()).group())
    mine = [row for row in events(it) if row["name"] == "/dev/shm/%s.other" % NAME]
    check(mine and all(row["comm"] == "sh" for row in mine), "the file in another /dev/shm", it.rows)
    segment = [row for row in events(it) if row["comm"] == "ipcmk" and row["call"] == "shmget"]
    equal([row["shmid"] for row in segment], [number], "the segment of another namespace")
    if number not in sysvipc():
        equal([row for row in state_rows(it) if row["shmid"] == number], [], "rows of it at the end")


def histogram():
    """Without --hist each call has its duration; with it these are in the histogram of their sum."""
    with sharer("random", 300) as program, tool("shmsnoop", "-p", program.pid, "--hist") as it:
        program.go()
        it.stop()
    row = it.rows[0]
    equal(sum(slot["count"] for slot in row["duration_histogram_ns"]), row["events"], "events in all slots")
    check(row["events"] >= 300, row)


TESTS = [("each call, by " + method, lambda method=method: each_call(method)) for method in METHODS]
TESTS += [("many calls, by " + method, lambda method=method: many(method)) for method in METHODS]
TESTS += [
    ("a missing event is noticed", lambda: loses(lambda env: each_call("tp_btf", env))),
    ("ways to attach agree", methods_agree),
    ("what is in use at the end, and what is left", at_the_end),
    ("all shared memory is listed on request", everything),
    ("a segment in use has its processes", attached),
    ("segments without a process are listed", orphans),
    ("ordinary files are no events", ordinary),
    ("calls of 32 bits are counted", of_32_bits),
    ("other namespaces have other memory", other_namespaces),
    ("the histogram holds each call", histogram),
]

lib.main(TESTS)
