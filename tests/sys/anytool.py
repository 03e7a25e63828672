# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of all tools share: which tools there are, by what the command itself says, and a program that gives
each of them something to see. A tool that is added is tested without a word here.
"""
import contextlib
import ctypes
import json
import os
import re
import subprocess

import lib
import reclaim
from lib import Failed, built, check, equal, tap

EXIT_OF_STIR = 7
LIMIT_MIB = 12
BPF_SYSCALL, PROG_BY_ID, MAP_BY_ID, LINK_BY_ID = 321, 13, 14, 30
# all that a run without errors may say
SAID = re.compile(
    rb"allium: (ready: [a-z -]+ using \w+.*|nothing was lost|the files of the kernel's source are not known: .*|[\d,]+ .*)")


def sys_(name, *words):
    """A command line of the tool with this name, which may have words of its own: "memleak --kernel"."""
    return [built("ALLIUM"), "sys", *name.split(), *map(str, words)]


def refused(code, *words):
    """The one line with which this is refused."""
    done = tap.run(sys_(*words))
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    equal(done.stdout, b"", "output")
    lines = done.stderr.decode().splitlines()
    check(len(lines) == 1 and lines[0].startswith("allium: "), "not one line:", lines)
    return lines[0]


def names():
    """The tools, by --help."""
    text = tap.succeed(sys_("--help")).stdout.decode()
    found = re.findall(r"^  ([a-z]+)  +\S", text.split("tools, by NAME:\n")[1].split("\n\n")[0], re.M)
    check(len(found) >= 6, "tools of --help:", found)
    return found


def takes_turn(t, number, turns):
    """Of what no tool's own code takes part in, one tool in `turns` is tested: for each thing, with its number, others.
    """
    return (names().index(t.base) + number) % turns == 0


def all_about():
    """Each tool; for memleak only --kernel, which needs no process. memleak of processes has its own tests."""
    return [About("memleak --kernel" if name == "memleak" else name) for name in names()]


def listed(line):
    return [
        word.strip()
        for word in re.sub(r" \(allium .*\)$", "", line)
        .rpartition(" use ")[2]
        .split(",")
    ]


class About:
    """A tool, by what it says when it is asked for what it has not."""

    def __init__(self, name):
        self.name = name
        self.base = name.partition(" ")[0]
        self.table = name.replace(" --", "_")
        self.help = tap.succeed(sys_(name, "--help")).stdout.decode()
        self.has_rows = re.search(r"^  --by\b", self.help, re.M) is not None
        self.methods = listed(refused(2, name, "--attach", "none-such"))
        fields = refused(2, name, "--where", "none-such=1")
        self.columns = re.sub(r" \(allium .*\)$", "", fields).rpartition("fields are ")[2].split(", ")
        self.columns = [column for column in self.columns if column != "..."]  # a long list is cut
        self.parts = listed(refused(2, name, "--by", "none-such")) if self.has_rows else []

    def __str__(self):
        return self.name

    @property
    def one_report(self):
        return ["--interval", "1h"] if self.has_rows else []

    def one_report_after(self, duration):
        return ["--duration", duration] + (["--interval", duration] if self.has_rows else [])


def stir(folder, group, code=EXIT_OF_STIR):
    """A command with something for every tool: files, programs, memory, also shared, huge pages, compaction, pages in
    swap, reclaim in a cgroup, and a kill for lack of memory. The shell itself is the last to be killed: there is lack
    of memory, too, when the disk is slow to take what was written.
    """
    script = """
        spare() { (echo 500 >/proc/self/oom_score_adj; exec "$@"); }
        echo $$ >%(group)s/cgroup.procs
        swaps_in() { printf '%%s\n' "map $1 zero private" out "touch 0 $1 1" | %(swapper)s >/dev/null; }
        swaps_in 200
        for i in 1 2 3 4 5 6 7 8; do cat /proc/self/status >/dev/null; done
        asks_for_huge() { for words in "hugetlb 2" "thp 1"; do echo "$words" | spare %(huge)s >/dev/null; done; }
        asks_for_huge
        for i in 1 2 3; do echo >/dev/shm/stir-$$; cat /dev/shm/stir-$$ >/dev/null; rm /dev/shm/stir-$$; done
        ipcrm -m 2147483647 2>/dev/null
        spare head -c %(much)d /dev/zero >%(folder)s/file
        (echo 1 >/proc/sys/vm/compact_memory)
        asks_for_huge
        swaps_in 300
        spare cat %(folder)s/file >/dev/null
        (spare head -c %(much)d /dev/zero | spare tail -c %(much)d >/dev/null) 2>/dev/null
        echo 1 >/proc/sys/vm/compact_memory
        exit %(code)d
    """ % {"group": group.folder, "folder": folder, "much": 3 * LIMIT_MIB << 20, "code": code,
           "huge": built("TEST_HUGE"), "swapper": built("TEST_SWAPPER")}
    return ["sh", "-c", script]


class Stirring:
    """A folder, a cgroup and swap for stir(), gone afterwards."""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(tap.private_dir(reclaim.DISK))
            stack.enter_context(reclaim.swap(4))
            self.group = stack.enter_context(reclaim.group(LIMIT_MIB))
            self.group.does_not_swap()  # it would be room; but for swapper
            if not self.group.v1:
                reclaim.write(self.group.folder + "/memory.swap.max", reclaim.MIB)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self.stack.close()

    def command(self, code=EXIT_OF_STIR):
        return stir(self.folder, self.group, code)


def objects(pid):
    """[(kind, id)] of the BPF programs, maps and links that a process holds."""
    found = set()
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
            found.update(re.findall(r"^(prog_id|map_id|link_id):\s*(\d+)", file.read(), re.M))
    return {(kind, int(number)) for kind, number in found}


def verified(pid):
    """Instructions that the kernel's verifier went through, of all programs that a process holds."""
    total = 0
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
            total += sum(map(int, re.findall(r"^verified_insns:\s*(\d+)", file.read(), re.M)))
    return total


def there(thing):
    """Is it still in the kernel?"""
    kind, number = thing
    command = {"prog_id": PROG_BY_ID, "map_id": MAP_BY_ID, "link_id": LINK_BY_ID}[kind]
    attr = (ctypes.c_uint32 * 32)(number)
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF_SYSCALL, command, attr, ctypes.sizeof(attr))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def parse(out):
    """(rows, losses) of --json."""
    lines = lib.stream(out)
    check(lines and list(lines[-1]) == ["lost"], "the last line tells no losses:", lines[-1:])
    check(all(isinstance(line, dict) and "lost" not in line for line in lines[:-1]), "an odd line")
    return lines[:-1], lines[-1]["lost"]


def json_of(about, *options, code=EXIT_OF_STIR, command=None, within=False):
    """Rows and losses of a tool under which the command, or stir(), ran; and what it said. `within`: only of its
    cgroup.
    """
    with Stirring() as s:
        done = tap.run(
            lib.with_tracefs(
                sys_(about.name, "--json", *about.one_report, *options,
                     *(["--cgroup", s.group.folder] if within else []), "--", *(command or s.command()))))
    equal(done.returncode, code, "exit code (%s)" % done.stderr.decode())
    return *parse(done.stdout), done.stderr


def well_said(errors):
    for line in errors.splitlines():
        check(SAID.fullmatch(line), "a line that should not be:", line)


def begin(about, *options, **how):
    """The tool at work, ready."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    process = subprocess.Popen(sys_(about.name, *options), **how)
    line = process.stderr.readline()
    if b": ready: " not in line:
        process.kill()
        raise Failed("%s: not ready: %s" % (about, (line + process.stderr.read()).decode()))
    return process
