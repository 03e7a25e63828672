#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every option that --help of a tool lists changes something: what is seen, loaded, shown or recorded. An option that is new has to be
told here how to see that. What would do nothing beside other options is refused.
"""
import contextlib
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import anytool
import lib
import reclaim
from anytool import refused, sys_
from lib import check, equal, tap

NOBODY = 54321
ROOM = {"rows": 4097, "stack-slots": 512, "ring": 1 << 16, "sample-ring": 1 << 17, "live-objects": 999, "live-blocks": 888}


class Run:
    """A tool that saw what stir() does, with these options and without, side by side."""

    def __init__(self, t, stirring, options, *, beside=(), json=True):
        common = ["--cgroup", stirring.group.folder] if "--cgroup" not in options else []
        shown = ["--json"] if json else []
        interval = [] if "--interval" in options or "--interval" in beside else t.one_report
        self.tools = []
        for words in ([*beside, *options], [*beside]):
            self.tools.append(begin(t, *shown, *interval, *common, *words))
        self.rooms = [rooms(process.pid) for process in self.tools]
        for _ in range(1 if t.has_rows else 3):  # kills are few
            subprocess.run(stirring.command(0), check=True)
        self.out, self.errors = [], []
        for process in self.tools:
            if process.poll() is None:
                process.terminate()
            out, errors = process.communicate(timeout=tap.TIMEOUT)
            self.out.append(out)
            self.errors.append(process.said.partition(b"allium: ready: ")[0] + errors)

    def rows(self, which=0):
        return anytool.parse(self.out[which])[0]


def begin(t, *options):
    """The tool, ready. What has to find tracefs does."""
    process = subprocess.Popen(lib.with_tracefs(sys_(t.name, *options)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.said = b""
    for line in process.stderr:
        process.said += line
        if b": ready: " in line:
            return process
    process.kill()
    process.communicate()
    raise lib.Failed("not ready: %s" % process.said.decode())


def rooms(pid):
    """max_entries of all maps that it holds."""
    found = []
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
            found += map(int, re.findall(r"^max_entries:\s*(\d+)", file.read(), re.M))
    return found


def sees_nothing(*words):
    """A choice of whom nobody is: no rows, where there are some without."""
    def look(t, s):
        run = Run(t, s, [str(word() if callable(word) else word) for word in words])
        check(run.rows(1), "nothing was seen without")
        equal(run.rows(0), [], "rows of nobody")
    return look


def sees_nothing_in_a_group(t, s):
    with reclaim.group(name="-empty") as other:
        sees_nothing("--cgroup", other.folder)(t, s)


def makes_room(option, *beside):
    """As many entries in some map, which no map has without."""
    def look(t, s):
        given = [*beside, *(["--by", "stack"] if option in ("stack-slots", "sample-ring") and t.has_rows else [])]
        run = Run(t, s, ["--" + option, ROOM[option]], beside=given)
        check(ROOM[option] in run.rooms[0] and ROOM[option] not in run.rooms[1], ROOM[option], "entries:", run.rooms)
    return look


def differs(*words, beside=(), by_stack=False):
    """Something else is written."""
    def look(t, s):
        given = [*beside, *(["--by", "stack"] if by_stack and t.has_rows else [])]
        run = Run(t, s, [*words], beside=given)
        check(shape(run.out[0]) != shape(run.out[1]), "the same is shown:", run.out[0][:300])
    return look


def shape(out):
    """What is shown, without what two runs of the same may differ in: the keys of each row, and texts of the first."""
    lines = out.splitlines()
    return [sorted(lib.json.loads(line)) if line.startswith(b"{") else line[:40] for line in lines[:3]], len(lines)


def one_row(t, s):
    run = Run(t, s, ["--top", 1])
    check(len(run.rows(1)) > 1, "too little was seen")
    equal(len(run.rows(0)), 1, "rows")


def orders(t, s):
    """By the first column that is a number and has two values."""
    rows = Run(t, s, [], beside=["--top", 0]).rows(0)
    for key in rows[0]:
        values = {row.get(key) for row in rows}
        if key in t.columns and len(values) > 1 and all(type(value) is int for value in values):
            for sign in ("+", "-"):
                got = [row[key] for row in Run(t, s, ["--sort", sign + key]).rows(0)]
                equal(got, sorted(got, reverse=sign == "-"), "rows by " + sign + key)
            return
    raise lib.Failed("no column to sort by")


def reports_often(t, s):
    run = Run(t, s, ["--interval", "30ms"], json=t.has_rows)
    if t.has_rows:
        check(len({row["time_ns"] for row in run.rows(0)}) > 1, "all rows are of one report")
    else:
        check(b"after the start, the last" in run.out[0] and b"after the start" not in run.out[1], "reports:", run.out)


def keeps(t, s):
    """Of events that are kept: what finds no room is said."""
    run = Run(t, s, ["--rows", 1], beside=["--sort", "pid"])
    check(len(run.rows(1)) > 1 == len(run.rows(0)), "rows:", len(run.rows(0)), len(run.rows(1)))


def tells_apart(t, s):
    """Each part but the first shows other columns than that; of one part alone there is nothing to choose."""
    for part in t.parts[1:]:
        differs("--by", part)(t, s)
    equal(refused(2, t.name, "--by", "none-such").count("it can be " + t.parts[0]), 1, "what --by takes")


def ends_itself(t, s):
    tap.succeed(sys_(t.name, "--duration", "50ms", "--quiet"))


def starts_as(t, s):
    equal(tap.succeed(sys_(t.name, "--quiet", "--json", "--user", "nobody", "--", "sh", "-c", "id -un >&2")).stderr, b"nobody\n", "user")


def attaches(t, s):
    done = tap.run(lib.with_tracefs(sys_(t.name, "--attach", t.rungs[-1], "--duration", "20ms")))
    equal(done.returncode, 0, "exit code (%s)" % done.stderr)
    check(b"using " + t.rungs[-1].encode() in done.stderr, done.stderr)


def writes_objects(t, s):
    with_it, without = (Run(t, s, [], json=json).out[0] for json in (True, False))
    check(with_it.startswith(b"{") and not without.startswith(b"{"), with_it[:100], without[:100])


def records(t, s):
    """-o, and --from."""
    path = s.folder + "/%s.allium" % t.name
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    run = Run(t, s, ["-o", path], json=False)
    check(run.out[1] and not run.out[0], "beside -o is shown", run.out[0])
    rows, _ = anytool.parse(tap.succeed(sys_(t.name, "--from", path, "--json")).stdout)
    os.unlink(path)
    check(rows, "nothing was recorded")


def fits_none(t, s):
    column, by = text_of(t)
    equal(Run(t, s, ["--where", column + ":none-such"], beside=by).rows(0), [], "rows that fit nothing")


def text_of(t):
    """A column of text that every row has, and the rows to choose for it."""
    column = next(column for column in t.columns if column in ("comm", "call_site", "cache", "reclaim"))
    return column, ["--by", "process"] if t.has_rows and t.parts[0] == "stack" else []


def alerts(t, s):
    """--alert says so, and --exec does."""
    column, by = text_of(t)
    run = Run(t, s, ["--alert", column + ":*", "--exec", "touch %s/told" % s.folder], beside=by)
    check(b"allium: alert: " in run.errors[0] and b": alert: " not in run.errors[1], run.errors)
    lib.wait_until(lambda: os.path.exists(s.folder + "/told"), 20, "its command has run")
    os.unlink(s.folder + "/told")


def takes_stacks(t, s):
    """Each choice fills other columns."""
    by = ["--by", "stack"] if t.has_rows else []
    filled = set()
    for which in ("none", "kernel", "user", "both"):
        rows = Run(t, s, ["--stacks", which], beside=by).rows(0)
        filled.add(tuple(any(row.get(key) for row in rows) for key in ("kernel_stack", "user_stack")))
    equal(len(filled), 4, "kinds of stacks that are filled: %s" % filled)


def folds(t, s):
    by = ["--by", "stack"] if t.has_rows else ["--stacks", "kernel"]
    out = tap.succeed(sys_(t.name, *t.one_report, *by, "--folded", "--quiet", "--", *s.command(0))).stdout
    check(re.search(rb"^[^;\n]+;[^\n]* \d+$", out, re.M), "no folded lines", out[:200])


def measures(t, s):
    run = Run(t, s, ["--hist"])
    check(any("_histogram_" in key and row[key] for row in run.rows(0) for key in row), "no histogram")
    check(not any("_histogram_" in key for row in run.rows(1) for key in row), "a histogram that nobody asked for")


def is_silent(t, s):
    check(Run(t, s, [], json=False).errors[0], "nothing is said at the end")
    equal(tap.succeed(sys_(t.name, "--quiet", "--duration", "20ms")).stderr, b"", "said under --quiet")


def samples(t, s):
    """Rows are estimates; events that were not sampled have no stack."""
    by = ["--by", "stack"] if t.has_rows else []
    run = Run(t, s, ["--sample", 1], beside=by)
    check(b"user stacks were sampled" in run.errors[0] or b'"samples"' in run.out[0], run.errors[0])
    check(b'"samples"' not in run.out[1], "samples that nobody asked for")


def names_lines(t, s):
    """With files and lines, or a line that says why not."""
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    run = Run(t, s, ["--lines"], beside=by, json=False)
    check(b"files of the kernel's source are not known" in run.errors[0] or re.search(rb"\.[ch]:\d", run.out[0]), run.errors[0])
    check(b"files of the kernel's source" not in run.errors[1] and not re.search(rb"\.[ch]:\d", run.out[1]), run.errors[1])


def takes_them_from(t, s):
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    done = tap.run(sys_(t.name, *by, "--lines", "--vmlinux", "/none/such", "--duration", "20ms"))
    check(done.returncode and b"/none/such" in done.stderr, done)


def asks_servers(t, s):
    """Where there is nobody to ask that is said."""
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    env = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
    done = tap.run(sys_(t.name, *by, "--lines", "--debuginfod", "1s", "--duration", "20ms"), env=env)
    check(b"there is nobody to ask" in done.stderr, done)


def sleeper():
    """The number of a process that does nothing: this one."""
    return os.getpid()


LOOKS = {
    "pid": sees_nothing("--pid", sleeper), "tid": sees_nothing("--tid", sleeper), "uid": sees_nothing("--uid", NOBODY),
    "comm": sees_nothing("--comm", "nobody-is-this"), "cgroup": sees_nothing_in_a_group, "user": starts_as, "duration": ends_itself,
    "attach": attaches, "json": writes_objects, "output": records, "from": records, "where": fits_none, "alert": alerts, "exec": alerts,
    "stacks": takes_stacks, "stack-slots": makes_room("stack-slots", "--stacks", "kernel"), "folded": folds, "quiet": is_silent,
    "interval": reports_often, "by": tells_apart, "sort": orders, "top": one_row, "rows": makes_room("rows"), "ring": makes_room("ring"),
    "hist": measures, "sample": samples, "sample-ring": makes_room("sample-ring", "--sample", 10),
    "live": differs("--live"), "live-objects": makes_room("live-objects", "--live"), "live-blocks": makes_room("live-blocks", "--live"),
    "lines": names_lines, "vmlinux": takes_them_from, "debuginfod": asks_servers, "growth": differs("--growth"), "only": sees_nothing("--only", "hugetlb"), "help": lambda t, s: check("examples:" in t.help, t.help),
}
OF_EVENTS = {"rows": keeps}

IDLE = [  # what would do nothing: (options, of which tools, words of the refusal)
    (["-o", "/none/such", "--json"], "all", "-o shows nothing"),
    (["-o", "/none/such", "--sort", "pid"], "all", "-o records all rows: leave out --sort"),
    (["-o", "/none/such", "--top", "3"], "all", "-o records all rows: leave out --top"),
    (["-o", "/none/such", "--hist"], "events", "-o records events as they are"),
    (["-o", "/none/such", "--interval", "1s"], "events", "leave out --interval"),
    (["--folded", "--json"], "stacks", "two ways to write rows"),
    (["--folded", "--hist"], "stacks", "leave out --hist"),
    (["--hist", "--top", "3"], "events", "--hist shows no events: leave out --top"),
    (["--sample-ring", "1M"], "samples", "give --sample"),
    (["--rows", "10"], "events", "--rows is room to keep events"),
    (["--stacks", "none", "--stack-slots", "100"], "stacks", "none are taken"),
    (["--stacks", "none", "--folded"], "stacks", "none are taken"),
    (["--debuginfod", "off"], "kernel", "--debuginfod is for the kernel's files and lines"),
    (["--user", "nobody"], "all", "give a command after --"),
    (["--exec", "true"], "all", "--exec is for --alert"),
]


def does_nothing(t):
    has = {"all": True, "kernel": "--debuginfod" in t.help, "events": not t.has_rows, "stacks": "kernel_stack" in t.help, "samples": "--sample " in t.help}
    for words, of, why in IDLE:
        if not has[of]:
            continue
        by = ["--by", "stack"] if t.has_rows and of in ("stacks", "samples") else []
        words = [t.columns[0] if word == "pid" else word for word in words]
        check(why in refused(2, t.name, *by, *words), words)


def option_names(t):
    found = re.findall(r"^  +(?:-\w, +)?--([a-z-]+)", t.help, re.M)
    check(len(found) > 15, "options of --help:", found)
    return found


def all_do_something(t):
    names = option_names(t)
    equal([name for name in names if name not in LOOKS], [], "options of which nobody looks what they do")
    looks = {**LOOKS, **({} if t.has_rows else OF_EVENTS)}
    with anytool.Stirring() as s:
        done = set()
        for name in names:
            # Where there are no stacks, what is about them is refused, and the first of oomkill's kinds has but one part.
            if name in ("stacks", "stack-slots", "folded") and "kernel_stack" not in t.help or looks[name] in done:
                continue
            done.add(looks[name])
            try:
                looks[name](t, s)
            except lib.Failed as why:
                raise lib.Failed("--%s: %s" % (name, why)) from why


TESTS = []
for about in map(anytool.About, anytool.names()):
    TESTS += [("%s: each of its options does something" % about, lambda t=about: all_do_something(t)),
              ("%s: what would do nothing is refused" % about, lambda t=about: does_nothing(t))]

lib.main(TESTS)
