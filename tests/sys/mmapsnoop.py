#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys mmapsnoop`: each call that changes an address space, as the program that makes it knows it from its own
results and from /proc/self/maps; sums against the kernel's own size of the address space; losses to the unit.
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
from lib import built, check, equal, load, loses, only, private_dir, tap, tool

METHODS = ("tp_btf", "raw_tp")
MARK = 4711  # the advice of a call that does nothing
PAGE = 4096


def mapper(*words, before=()):
    """Its process id, and what it printed."""
    process = subprocess.Popen([*before, built("TEST_MAPPER"), *map(str, words)], stdout=subprocess.PIPE)
    out = process.communicate(timeout=tap.TIMEOUT)[0].decode()
    equal(process.returncode, 0, "exit code of the mapper")
    return process.pid, out


def summed(*options, **how):
    """The tool with rows."""
    return tool("mmapsnoop", *options, shows="mmapsnoop_summary", **how)


def between_marks(rows, pid):
    """The rows of the process between its two marker calls."""
    rows = [row for row in rows if row["pid"] == pid]
    marks = [n for n, row in enumerate(rows) if (row["call"], row["flags"]) == ("madvise", str(MARK))]
    equal(len(marks), 2, "marks in %s" % rows)
    return rows[marks[0] + 1:marks[1]]


def same_change(want, row):
    """Compares each key that the mapper printed. A renamed file may already have its new name."""
    was = want.pop("was", None)
    if was:
        before, after = want["mapped"].rsplit("/", 1)[0] + "/before", "/after\\001 (renamed)"
        want["mapped"] = row["mapped"] if was == "before" and row["mapped"] == before else before[:-7] + after
    equal({key: row[key] for key in want}, want, "change")


def steps(method, env=None):
    """Each kind of call, with its arguments, its result, and what is mapped there."""
    with private_dir() as folder, load(), tool("mmapsnoop", "--brk", "--attach", method, env=env) as it:
        pid, said = mapper("steps", folder)
        it.stop()
    are_steps(it, pid, said)


def steps_in_an_overlay():
    """What is mapped there is a file of a layer, which has another path, inode and device."""
    mounts = "mount -t overlay overlay -o lowerdir=%(of)s/lower,upperdir=%(of)s/upper,workdir=%(of)s/work %(of)s/seen"
    with private_dir() as folder, tool("mmapsnoop", "--brk") as it:
        for name in ("lower", "upper", "work", "seen"):
            os.mkdir(folder + "/" + name)
        before = ["unshare", "-m", "sh", "-c", mounts % {"of": folder} + ' && exec "$@"', "sh"]
        pid, said = mapper("steps", folder + "/seen", before=before)
        it.stop()
    are_steps(it, pid, said)


def are_steps(it, pid, said):
    wanted = [json.loads(line, strict=False) for line in said.splitlines()]
    have = [row for row in between_marks(it.rows, pid)]
    equal([row["call"] for row in have], [row["call"] for row in wanted], "calls")
    for want, row in zip(wanted, have):
        same_change(want, row)
        check(row["duration_ns"] > 0 and row["comm"] == "mapper" and row["tid"] == pid, row)
    equal(it.lost["lost_events"], 0, "lost events")


def methods_agree():
    """Both at work at once see the same."""
    with private_dir() as folder, tool("mmapsnoop", "--brk", "--attach", "tp_btf") as one, \
            tool("mmapsnoop", "--brk", "--attach", "raw_tp") as other:
        pid, _ = mapper("steps", folder)
        one.stop()
        other.stop()
    seen = [[{key: value for key, value in row.items() if key not in ("time_ns", "duration_ns")}
             for row in it.rows if row["pid"] == pid] for it in (one, other)]
    check(len(seen[0]) > 40, "too few events:", seen[0])
    equal(seen[1], seen[0], "events of the other method")


def without_brk():
    """Calls of brk() come when they are asked for."""
    with private_dir() as folder, tool("mmapsnoop") as it:
        pid, said = mapper("steps", folder)
        it.stop()
    calls = {row["call"] for row in between_marks(it.rows, pid)}
    equal(calls, {json.loads(line, strict=False)["call"] for line in said.splitlines()} - {"brk"}, "calls")


def sums(method, env=None):
    """Calls, failures, and the growth of the address space, as the kernel has it, while mappings are replaced and holes
    unmapped.
    """
    wanted = ("mmap", "munmap", "mremap")
    with load(), tool("mmapsnoop", "--comm", "mapper", "--attach", method, env=env) as it, \
            summed("--summary", "--attach", method, env=env) as by_process, \
            summed("--by", "call", "--comm", "mapper", "--attach", method, env=env) as by_call:
        pid, said = mapper("random", 3000)
        for one in (it, by_process, by_call):
            one.stop()
    calls, failed, grown = map(int, said.split())
    inside = between_marks(it.rows, pid)
    equal((len(inside), sum(row["error"] is not None for row in inside)), (calls, failed), "calls, failed")
    equal(sum((row["added_bytes"] or 0) - (row["removed_bytes"] or 0) for row in inside), grown, "growth")
    ours = [row for row in it.rows if row["pid"] == pid]
    total = only(by_process.rows, pid=pid)
    equal((total["calls"], total["failed"]), (len(ours), sum(row["error"] is not None for row in ours)), "sums")
    for key in ("added_bytes", "removed_bytes"):
        equal(total[key], sum(row[key] or 0 for row in ours if row["call"] not in ("exec", "exit")), key)
    equal(total["net_bytes"], total["added_bytes"] - total["removed_bytes"], "net")
    for call in wanted:
        mine = [row for row in ours if row["call"] == call]
        equal(only(by_call.rows, call=call)["calls"], len(mine), call)


def abbreviated():
    """An option that is abbreviated selects rows, too."""
    for words in ["--summ"], ["--summary"], ["--by=call"]:
        out = tap.succeed([built("ALLIUM"), "sys", "mmapsnoop", *words, "--json", "--", "true"]).stdout
        lib.stream(out, "mmapsnoop_summary")


def by_file():
    """A row for each file, by the path that /proc/PID/maps has."""
    with private_dir() as folder, summed("--by", "file", "--comm", "mapper") as it:
        mapper("steps", folder)
        it.stop()
        path = folder + "/kept"
    row = only(it.rows, mapped=path)
    equal((row["calls"], row["failed"]), (4, 0), "three mappings, and one that is arranged anew")
    check(any(row["mapped"] == folder + "/gone (deleted)" for row in it.rows), "the deleted file", it.rows)
    equal(only(it.rows, mapped=folder + "/after\\001 (renamed)")["calls"], 2, "the renamed file")


def by_stack():
    """Each stack leads to the function that maps."""
    with private_dir() as folder, summed("--by", "stack", "--sample", 1, "--comm", "mapper") as it:
        mapper("steps", folder)
        it.stop()
    inside = [row for row in it.rows if any("files (" in frame for frame in row["user_stack"] or [])]
    equal(sum(row["calls"] for row in inside), 9, "calls in files() of %s" % it.rows)


def recorded():
    """The commands that are printed show a recording's rows."""
    with private_dir() as folder:
        path = folder + "/sums.allium"
        said = tap.succeed([built("ALLIUM"), "sys", "mmapsnoop", "--summary", "-o", path, "--", "true"]).stderr.decode()
        command = re.search(r"`allium (.*)` shows", said).group(1).split()
        rows = lib.stream(tap.succeed([built("ALLIUM"), *command, "--json"]).stdout, "mmapsnoop_summary")
        check(len(rows) > 1 and rows[0]["calls"] > 0, "rows", rows)
        other = tap.run([built("ALLIUM"), "report", path]).stderr.decode()
        equal(re.search(r"use allium (.*)\n", other).group(1).split(), command, "what report says")


def exec_and_exit():
    """The size at the exit is the size after the last exec plus the changes since."""
    with tool("mmapsnoop") as it:
        pid, _ = mapper("exec", "-")
        it.stop()
    ours = [row for row in it.rows if row["pid"] == pid]
    began = [row["mapped"] for row in ours if row["call"] == "exec"]
    equal(began, [os.path.realpath(built("TEST_MAPPER")), os.path.realpath("/bin/true")], "programs")
    ended = only(ours, call="exit")
    last = max(n for n, row in enumerate(ours) if row["call"] == "exec")
    grown = sum((row["added_bytes"] or 0) - (row["removed_bytes"] or 0) for row in ours[last:-1])
    # the heap and the stack grow by themselves
    check(0 <= ended["removed_bytes"] - grown <= 1 << 20, "size at the end", ended, grown)


def losses():
    """In a ring that is too small, the events shown and the events lost are all that were made."""
    with tool("mmapsnoop", "--comm", "mapper") as it:
        mapper("pairs", 0)
        it.stop()
    beside = len(it.rows)
    pairs = 20000
    with tool("mmapsnoop", "--comm", "mapper", "--ring", "4K") as it:
        mapper("pairs", pairs)
        it.stop()
    check(it.lost["lost_events"] > 1000, "nothing was lost in such a ring", it.lost)
    equal(len(it.rows) + it.lost["lost_events"], beside + 2 * pairs * os.cpu_count(), "shown and lost")


def denied():
    """The kernel tells only the end of a call that a filter denies."""
    with tool("mmapsnoop") as it:
        pid, _ = mapper("denied", 37)
        it.stop()
    ours = [row for row in it.rows if row["pid"] == pid and row["call"] == "mlock"]
    equal([(row["error"], row["size_bytes"], row["duration_ns"]) for row in ours], [("EPERM", PAGE, None)] * 37,
          "calls")


def one_exit():
    """A process ends once, however many threads it has; one that shares its parent's address space removes nothing."""
    for _ in range(10):
        with tool("mmapsnoop", "--comm", "mapper") as it:
            pid, _ = mapper("ends", 64)
            it.stop()
        exits = [row for row in it.rows if row["call"] == "exit"]
        equal(sorted(row["pid"] == pid for row in exits), [False, True], "exits")
        equal(only(exits, comm="mapper", removed_bytes=None)["pid"] == pid, False, "of the child")


def of_32_bits():
    """Their numbers and registers are others: they are counted."""
    with tool("mmapsnoop") as it:
        pid, _ = mapper("old", 37)
        it.stop()
    equal(it.lost["calls_of_32_bits"], 37, "calls")
    shown = [row for row in it.rows if row["pid"] == pid and row["call"] == "munmap" and row["address"] == "0x0"]
    equal(shown, [], "rows")


lib.main([
    ("each kind of change, using tp_btf", lambda: loses(lambda env: steps("tp_btf", env))),
    ("each kind of change, using raw_tp", lambda: steps("raw_tp")),
    ("what is mapped in an overlay has the path that is seen", steps_in_an_overlay),
    ("both methods agree", methods_agree),
    ("brk() is shown when it is asked for", without_brk),
    *[("sums, using " + method, lambda method=method: sums(method)) for method in METHODS],
    ("abbreviated options", abbreviated),
    ("by file", by_file),
    ("by stack", by_stack),
    ("a recording of sums is shown by the command that is printed", recorded),
    ("new and ended address spaces", exec_and_exit),
    ("losses are exact", losses),
    ("calls of 32-bit programs are counted", of_32_bits),
    ("calls that a filter denies are shown", denied),
    ("a process ends once", one_exit),
])
