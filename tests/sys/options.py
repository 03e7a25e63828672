#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every option that --help of a tool lists changes something: what is seen, loaded, shown or recorded. An option that
is new has to be told here how to see that. What would do nothing beside other options is refused.
"""
import contextlib
import mmap
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import anytool
import lib
import page_reader
import reclaim
from anytool import refused, sys_
from lib import check, equal, tap

NOBODY = 54321
ROOM = {
    "rows": 4097, "stack-slots": 512, "ring": 1 << 17, "sample-ring": 1 << 17, "live-objects": 999, "live-blocks": 888
}


class Wanted:
    """What a look wants to see: the tool with these options, and without them, at the same events."""

    def __init__(self, options, *, beside=(), json=True):
        self.options, self.beside, self.json = options, beside, json

    def words(self, t, s):
        """Of both."""
        common = ["--cgroup", s.group.folder] if "--cgroup" not in self.options else []
        shown = ["--json"] if self.json else []
        interval = [] if "--interval" in self.options or "--interval" in self.beside else t.one_report
        return [[*shown, *interval, *common, *map(str, more)] for more in ([*self.beside, *self.options], self.beside)]


class Run:
    """What came of it, as Wanted has it: of the tool with the options, and without."""

    def __init__(self, tools):
        self.rooms, self.out, self.errors = ([getattr(tool, what) for tool in tools]
                                             for what in ("rooms", "out", "errors"))

    def rows(self, which=0):
        return anytool.parse(self.out[which])[0]


class Tool:
    """The tool, begun, until end(). What has to find tracefs does."""

    def __init__(self, t, words):
        self.file, self.said = tempfile.TemporaryFile(), b""
        self.process = subprocess.Popen(lib.with_tracefs(sys_(t.name, *words)), stdin=subprocess.DEVNULL,
                                        stdout=self.file, stderr=subprocess.PIPE)

    def wait(self):
        """Until it is ready."""
        said = b""
        for line in self.process.stderr:
            said += line
            if b": ready: " in line:
                break
        else:
            raise lib.Failed("not ready: %s" % said.decode())
        self.said = said.partition(b"allium: ready: ")[0]
        self.rooms = rooms(self.process.pid)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.errors = self.said + self.process.communicate(timeout=tap.TIMEOUT)[1]
        finally:
            if self.process.poll() is None:
                self.process.kill()
        self.file.seek(0)
        self.out = self.file.read()
        self.file.close()


class Looks:
    """Looks that go on side by side: each is a generator of lists of Wanted, and gets the Runs. In each round all that
    they want begins, stir() works once, and all ends. Who wants the same shares it.
    """

    TOGETHER = 12  # of them, each with some tools

    def __init__(self, t, s):
        self.t, self.s, self.waiting = t, s, []

    def go_on(self, name, look, runs):
        try:
            self.waiting.append((name, look, look.send(runs)))
        except StopIteration:
            pass
        except lib.Failed as why:
            raise lib.Failed("--%s: %s" % (name, why)) from why

    def begin(self, name, look):
        began = look(self.t, self.s)
        if began is not None:
            self.go_on(name, began, None)

    def round(self):
        now, self.waiting = self.waiting[:self.TOGETHER], self.waiting[self.TOGETHER:]
        tools = {}
        try:
            for name, _, wanted in now:
                for words in (words for one in wanted for words in one.words(self.t, self.s)):
                    if tuple(words) not in tools:
                        tools[tuple(words)] = Tool(self.t, words)
            for tool in tools.values():
                tool.wait()
            for _ in range(1 if self.t.has_rows else 3):  # kills are few
                subprocess.run(self.s.command(0), check=True)
        finally:
            for tool in tools.values():
                tool.end()
        for name, look, wanted in now:
            self.go_on(name, look,
                       [Run([tools[tuple(words)] for words in one.words(self.t, self.s)]) for one in wanted])

    def close(self):
        for _, look, _ in self.waiting:
            look.close()


def see(options, **how):
    """The Run of one."""
    run, = yield [Wanted(options, **how)]
    return run


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
        run = yield from see([word() if callable(word) else word for word in words])
        check(run.rows(1), "nothing was seen without")
        equal(run.rows(0), [], "rows of nobody")
    return look


def sees_nothing_in_a_group(t, s):
    with reclaim.group(name="-empty") as other:
        yield from sees_nothing("--cgroup", other.folder)(t, s)


def makes_room(option, *beside):
    """As many entries in some map, which no map has without."""
    def look(t, s):
        given = [word for word in beside if word != "--live" or "--live " in t.help]
        given += ["--by", "stack"] if option in ("stack-slots", "sample-ring") and t.has_rows else []
        run = yield from see(["--" + option, ROOM[option]], beside=given)
        check(ROOM[option] in run.rooms[0] and ROOM[option] not in run.rooms[1], ROOM[option], "entries:", run.rooms)
    return look


def differs(*words, beside=(), by_stack=False):
    """Something else is written."""
    def look(t, s):
        given = [*beside, *(["--by", "stack"] if by_stack and t.has_rows else [])]
        shows_others((yield from see(words, beside=given)))
    return look


def shows_others(run):
    check(shape(run.out[0]) != shape(run.out[1]), "the same is shown:", run.out[0][:300])


def shape(out):
    """What is shown, without what two runs of the same may differ in: the keys of each row, and texts of the first."""
    lines = out.splitlines()
    return [sorted(lib.json.loads(line)) if line.startswith(b"{") else line[:40] for line in lines[:4]], len(lines)


def one_row(t, s):
    run = yield from see(["--top", 1])
    check(len(run.rows(1)) > 1, "too little was seen")
    equal(len(run.rows(0)), 1, "rows")


def orders(t, s):
    """By the first column that is a number and has two values."""
    rows = (yield from see([], beside=["--top", 0])).rows()
    for key in rows[0]:
        values = {row.get(key) for row in rows} - {None}
        if key in t.columns and len(values) > 1 and all(type(value) is int for value in values):
            signs = ("+", "-")
            runs = yield [Wanted(["--sort", sign + key]) for sign in signs]
            for sign, run in zip(signs, runs):
                got = [row[key] for row in run.rows() if row[key] is not None]  # those come last
                equal(got, sorted(got, reverse=sign == "-"), "rows by " + sign + key)
            return
    raise lib.Failed("no column to sort by")


def reports_often(t, s):
    run = yield from see(["--interval", "30ms"], json=t.has_rows)
    if t.has_rows:
        check(len({row["time_ns"] for row in run.rows(0)}) > 1, "all rows are of one report")
    else:
        check(b"after the start, the last" in run.out[0] and b"after the start" not in run.out[1], "reports:", run.out)


def keeps(t, s):
    """Of events that are kept: what finds no room is said."""
    run = yield from see(["--rows", 1], beside=["--sort", "pid"])
    check(len(run.rows(1)) > 1 == len(run.rows(0)), "rows:", len(run.rows(0)), len(run.rows(1)))


def tells_apart(t, s):
    """Each part but the first shows other columns than that; of one part alone there is nothing to choose."""
    for run in (yield [Wanted(["--by", part]) for part in t.parts[1:]]):
        shows_others(run)
    equal(refused(2, t.name, "--by", "none-such").count("use " + t.parts[0]), 1, "what --by takes")


def ends_itself(t, s):
    tap.succeed(sys_(t.name, "--duration", "50ms", "--quiet"))


def counts_intervals(t, s):
    """Three reports, or less if the machine was too busy for one in time; and no rest of an interval after them."""
    done = tap.succeed(lib.with_tracefs(sys_(t.name, "--interval", "150ms", "--count", 3)))
    reports = [float(at) * (1000 if unit == b"s" else 1)
               for at, unit in re.findall(rb"^--- ([\d.]+) (m?s) after the start", done.stdout, re.M)]
    check(1 <= len(reports) <= 3 and reports[-1] >= 440, "reports at", reports, "ms")
    check("--count 0 is out of range" in refused(2, t.name, "--interval", "1s", "--count", "0"), "--count 0")
    if not re.search(r"--interval .*\(\d+s\)$", t.help, re.M):
        check("--count needs --interval" in refused(2, t.name, "--count", "2"), "--count alone")


def starts_as(t, s):
    equal(
        tap.succeed(sys_(t.name, "--quiet", "--json", "--user", "nobody", "--", "sh", "-c", "id -un >&2")).stderr,
        b"nobody\n", "user")


def attaches(t, s):
    done = tap.run(lib.with_tracefs(sys_(t.name, "--attach", t.methods[-1], "--duration", "20ms")))
    equal(done.returncode, 0, "exit code (%s)" % done.stderr)
    check(b"using " + t.methods[-1].encode() in done.stderr, done.stderr)


def writes_objects(t, s):
    with_it, without = (run.out[0] for run in (yield [Wanted([], json=json) for json in (True, False)]))
    check(with_it.startswith(b"{") and not without.startswith(b"{"), with_it[:100], without[:100])


def records(t, s):
    """-o, and --from."""
    path = s.folder + "/%s.allium" % t.name
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    run = yield from see(["-o", path, "--top", 1], json=True)
    check(1 <= len(run.rows(0)) <= 1 + len(run.rows(1)), "what is shown beside -o", run.out[0])
    rows, _ = anytool.parse(tap.succeed(sys_(t.name, "--from", path, "--json")).stdout)
    os.unlink(path)
    check(len(rows) > 1, "what was recorded, with --top 1", rows)


def writes_page(t, s):
    """The page has the rows that are printed beside it, and those that are recorded."""
    path, recording = s.folder + "/%s.html" % t.name, s.folder + "/%s-page.allium" % t.name
    for name in path, recording:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    run = yield from see(["--html", path, "-o", recording], json=True)
    same_page(path, run.rows(0))
    check("exists; use --force" in refused(1, t.name, "--from", recording, "--html", path), path)
    done = tap.run(sys_(t.name, "--from", recording, "--html", path, "--force", "--json"))
    same_page(path, anytool.parse(done.stdout)[0])
    os.unlink(path)
    os.unlink(recording)


def same_page(path, rows):
    """Columns of numbers have the values of the rows, and columns of texts their texts."""
    page = page_reader.Page(path)
    page.policy()
    table = page.header["table"]
    equal(table["rows"], len(rows), "rows")
    for c in (c for c in table["columns"] if c["kind"] != "stack"):
        end = {"bytes": "_bytes", "ns": "_ns", "percent": "_percent"}.get(c.get("unit"), "")
        name, per_s, _ = c["key"].partition("_per_s")
        values = [row.get(name + end + per_s, row.get(c["key"])) for row in rows]
        if c["kind"] == "number":
            have = ["%.9g" % value for value in page.column(c["values"])] # JSON has fewer digits than a double
            values = ["nan" if value is None else "%.9g" % value for value in values]
        else:
            texts = page.column(c["texts"])
            have = [texts[number - 1] if number else None for number in page.column(c["of"])]
            if not all(isinstance(value, str) for value in values):
                continue  # instants and flags are written for people
        equal(sorted(have, key=str), sorted(values, key=str), "%s of the page" % c["key"])


def headings(out):
    """Of a table; a report in words has none."""
    lines = [line for line in out.decode().splitlines() if re.match(r"[A-Z][A-Z -]*(  |$)", line)]
    return re.split("  +", lines[0].strip()) if lines else []


def shows_only(t, s):
    """Columns, by their headings."""
    wanted = headings((yield from see([], json=False)).out[0])[:2]
    if wanted:
        run = yield from see(["--columns", ",".join(wanted)], json=False)
        equal(headings(run.out[0]), wanted, "headings")
        path = s.folder + "/%s-columns.allium" % t.name
        yield from see(["-o", path], json=False)
        again = tap.succeed(sys_(t.name, "--from", path, "--columns", ",".join(wanted))).stdout
        equal(headings(again), wanted, "headings of what was recorded")
        os.unlink(path)
    check("use " + t.columns[0] in refused(2, t.name, "--columns", "none-such"), "what --columns takes")
    check("needs names" in refused(2, t.name, "--columns", ","), "--columns without a name")


def shown_again(t, s, option):
    """Recorded rows in 60 columns: without the option, and with it."""
    path = "%s/%s-%s.allium" % (s.folder, t.name, option)
    yield from see(["-o", path], json=False)
    show = sys_(t.name, "--from", path)
    env = dict(os.environ, COLUMNS="60")
    without, with_it = (tap.succeed([*show, *more], env=env).stdout for more in ([], ["--" + option]))
    os.unlink(path)
    return without, with_it


def shortens_nothing(t, s):
    narrow, wide = map(headings, (yield from shown_again(t, s, "wide")))
    check(len(wide) > len(narrow) or not wide, "columns:", narrow, wide)


def prints_whole_numbers(t, s):
    rounded, exact = yield from shown_again(t, s, "exact")
    if headings(exact):
        units = re.search(rb"\d [KMG]iB\b|\d\.\d+k\b|\d [mu]?s\b", exact)
        check(not units, units, exact[:500])
        check(re.search(rb"\d\.\d", rounded) or not re.search(rb"\d,\d{3}", exact), rounded[:500], exact[:500])


def replaces(t, s):
    """-o leaves a file that exists alone, unless with --force."""
    path = s.folder + "/there.allium"
    with open(path, "w") as file:
        file.write("mine")
    check("exists; use --force" in refused(1, t.name, *t.one_report_after("20ms"), "-o", path), path)
    equal(open(path).read(), "mine", "the file")
    tap.succeed(lib.with_tracefs(sys_(t.name, *t.one_report_after("20ms"), "-o", path, "--force", "--quiet")))
    tap.succeed(sys_(t.name, "--from", path, "--json"))
    os.unlink(path)


def fits_none(t, s):
    column, by = text_of(t)
    equal((yield from see(["--where", column + ":none-such"], beside=by)).rows(), [], "rows that fit nothing")


def text_of(t):
    """A column of text that every row has, and the rows to choose for it."""
    column = next(column for column in t.columns if column in ("comm", "call_site", "cache", "reclaim"))
    return column, ["--by", "process"] if t.has_rows and t.parts[0] == "stack" else []


def alerts(t, s):
    """--alert says so, and --exec does."""
    column, by = text_of(t)
    run = yield from see(["--alert", column + ":*", "--exec", "touch %s/told" % s.folder], beside=by)
    check(b"allium: alert: " in run.errors[0] and b": alert: " not in run.errors[1], run.errors)
    lib.wait_until(lambda: os.path.exists(s.folder + "/told"), 20, "its command has run")
    os.unlink(s.folder + "/told")


def takes_stacks(t, s):
    """Each choice fills other columns."""
    by = ["--by", "stack"] if t.has_rows else []
    runs = yield [Wanted(["--stacks", which], beside=by) for which in ("none", "kernel", "user", "both")]
    filled = {tuple(any(row.get(key) for row in run.rows()) for key in ("kernel_stack", "user_stack")) for run in runs}
    equal(len(filled), 4, "kinds of stacks that are filled: %s" % filled)


def folds(t, s):
    by = ["--by", "stack", "--stacks", "both"] if t.has_rows else ["--stacks", "kernel"]
    out = tap.succeed(sys_(t.name, *t.one_report, *by, "--folded", "--quiet", "--", *s.command(0))).stdout
    check(re.search(rb"^[^;\n]+;[^\n]* \d+$", out, re.M), "no folded lines", out[:200])


def lists_all(t, s):
    """Memory that this process shares with nobody, and that no event is about, is listed with it."""
    with mmap.mmap(-1, 12345):
        run = yield from see(["--all"])
    listed = [any(row.get("pids") == str(os.getpid()) for row in run.rows(which)) for which in (0, 1)]
    equal(listed, [True, False], "listed with the option, and without it")


def counts_frees(t, s):
    run = yield from see(["--frees"], beside=["--by", "stack"])
    check(any(row["frees"] for row in run.rows(0)), "no frees")
    check(not any("frees" in row for row in run.rows(1)), "frees that nobody asked for")


def charges(t, s):
    """What is allocated and not freed is live, in each row."""
    out = tap.succeed(sys_(t.name, "--live", "--charge", "allocator", "--json", "--quiet", "--", *s.command(0))).stdout
    rows = [row for row in map(lib.json.loads, out.splitlines()) if "allocations" in row]
    check(rows and all(row["allocations"] - row["frees"] == row["live_objects"] for row in rows), rows[:3])


def accounts(t, s):
    out = tap.succeed(sys_(t.name, "--live", "--slab-account", "--quiet", "--", *s.command(0))).stdout
    check(re.match(rb"total bytes allocated: +\d+\n(.*\n){6,7} +total +slack +req alloc/free  caller\n *\d+ ", out),
          out[:600])


def takes_time(t, s):
    """What it counts is looked at in import_shown.py."""
    check("--time needs --from" in refused(2, t.name, "--time", "1s.."), "--time alone")


def about_trace(option):
    """What they do is looked at in import_shown.py and import_pack.py."""
    def look(t, s):
        value = [] if option == "partial" else ["/"]
        check("is about traces: give one with --from" in refused(2, t.name, "--" + option, *value), option)
    return look


def cuts(t, s):
    """Whose name has how many parts, is looked at where the source is known: record.py."""
    check("--depth needs --by directory" in refused(2, t.name, "--depth", "1"), "--depth alone")
    run = yield from see(["--depth", 1], beside=["--by", "directory"])
    check(run.rows(0), "no rows")


def explains(t, s):
    """What it says is looked at in explain.py."""
    check(tap.succeed(sys_(t.name, "--explain")).stdout.startswith(t.base.encode() + b" "), "--explain")


def measures(t, s):
    run = yield from see(["--hist"])
    check(any("_histogram_" in key and row[key] for row in run.rows(0) for key in row), "no histogram")
    check(not any("_histogram_" in key for row in run.rows(1) for key in row), "a histogram that nobody asked for")


def is_silent(t, s):
    check((yield from see([], json=False)).errors[0], "nothing is said at the end")
    equal(tap.succeed(sys_(t.name, "--quiet", "--duration", "20ms")).stderr, b"", "said under --quiet")


def samples(t, s):
    """Rows are estimates; events that were not sampled have no stack."""
    by = ["--by", "stack"] if t.has_rows else []
    run = yield from see(["--sample", 1], beside=by)
    check(b"user stacks were sampled" in run.errors[0] or b'"samples"' in run.out[0], run.errors[0])
    check(b'"samples"' not in run.out[1], "samples that nobody asked for")


def names_lines(t, s):
    """With files and lines, or a line that says why not."""
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    run = yield from see(["--lines"], beside=by, json=False)
    check(b"files of the kernel's source are not known" in run.errors[0] or re.search(rb"\.[ch]:\d", run.out[0]),
          run.errors[0])
    check(b"files of the kernel's source" not in run.errors[1] and not re.search(rb"\.[ch]:\d", run.out[1]),
          run.errors[1])


def takes_them_from(t, s):
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    done = tap.run(sys_(t.name, *by, "--lines", "--vmlinux", "/none/such", "--duration", "20ms"))
    check(done.returncode and b"/none/such" in done.stderr, done)


def takes_source_from(t, s):
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    done = tap.run(sys_(t.name, *by, "--lines", "--source", "/none/such", "--duration", "20ms"))
    check(done.returncode and b"--source: cannot open /none/such" in done.stderr, done)


def asks_servers(t, s):
    """Where there is nobody to ask that is said."""
    by = [] if "site" in t.parts else ["--stacks", "kernel", *(["--by", "stack"] if t.has_rows else [])]
    env = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
    done = tap.run(sys_(t.name, *by, "--lines", "--debuginfod", "1s", "--duration", "20ms"), env=env)
    check(b"has no effect: set DEBUGINFOD_URLS" in done.stderr, done)


def follows_only(t, s):
    yield from differs("--only", "movable" if t.base == "memleak" else "hugetlb")(t, s)


def has_intervals(t, s):
    """Objects that are sampled, and not all of them: a figure is an estimate."""
    run = yield from see(["--period", "64K"])
    told = [any(row.get("live_low_bytes") is not None for row in run.rows(which)) for which in (0, 1)]
    equal(told, [True, False], "intervals with the option, and without it")


def sleeper():
    """The number of a process that does nothing: this one."""
    return os.getpid()


LOOKS = {
    "pid": sees_nothing("--pid", sleeper),
    "tid": sees_nothing("--tid", sleeper),
    "uid": sees_nothing("--uid", NOBODY),
    "comm": sees_nothing("--comm", "nobody-is-this"),
    "cgroup": sees_nothing_in_a_group,
    "user": starts_as,
    "duration": ends_itself,
    "count": counts_intervals,
    "attach": attaches,
    "explain": explains,
    "columns": shows_only,
    "wide": shortens_nothing,
    "exact": prints_whole_numbers,
    "json": writes_objects,
    "output": records,
    "html": writes_page,
    "force": replaces,
    "from": records,
    "where": fits_none,
    "alert": alerts,
    "exec": alerts,
    "stacks": takes_stacks,
    "stack-slots": makes_room("stack-slots", "--stacks", "kernel"),
    "folded": folds,
    "quiet": is_silent,
    "interval": reports_often,
    "by": tells_apart,
    "sort": orders,
    "top": one_row,
    "rows": makes_room("rows"),
    "ring": makes_room("ring"),
    "hist": measures,
    "sample": samples,
    "sample-ring": makes_room("sample-ring", "--sample", 10),
    "live": differs("--live"),
    "frees": counts_frees,
    "charge": charges,
    "slab-account": accounts,
    "depth": cuts,
    "time": takes_time,
    "kallsyms": about_trace("kallsyms"),
    "state": about_trace("state"),
    "partial": about_trace("partial"),
    "live-objects": makes_room("live-objects", "--live"),
    "live-blocks": makes_room("live-blocks", "--live"),
    "lines": names_lines,
    "vmlinux": takes_them_from,
    "source": takes_source_from,
    "debuginfod": asks_servers,
    "all": lists_all,
    "brk": differs("--brk"),
    "growth": differs("--growth"),
    "only": follows_only,
    "summary": differs("--summary"),
    "kernel": lambda t, s: check("with --pid" in t.help, t.help),
    "older-than": sees_nothing("--older-than", "1h"),
    "period": has_intervals,
    "help": lambda t, s: check("examples:" in t.help, t.help),
}
OF_EVENTS = {"rows": keeps}
# No tool's own code takes part in these: each is tested with a third of the tools.
SHARED = ("pid", "tid", "uid", "comm", "cgroup", "user", "duration", "count", "explain", "columns", "wide", "exact",
          "json", "html", "force", "alert", "exec", "stack-slots", "folded", "quiet", "interval", "top", "rows", "ring",
          "sample-ring", "lines", "vmlinux", "source", "debuginfod", "help")

IDLE = [  # what would do nothing: (options, of which tools, words of the refusal)
    (["--hist", "--columns", "comm"], "events", "--hist shows no events: leave out --columns"),
    (["--columns", "kernel_stack"], "stacks", "one at least that is no stack"),
    (["--columns", "pid,kernel_stack", "--stacks", "none"], "stacks", "--columns uses the column "),
    (["--json", "--wide"], "all", "--json shortens nothing"),
    (["--json", "--exact"], "all", "--json prints whole numbers"),
    (["--folded", "--json"], "stacks", "exclude each other"),
    (["--folded", "--hist"], "stacks", "leave out --hist"),
    (["--hist", "--top", "3"], "events", "--hist shows no events: leave out --top"),
    (["--sample-ring", "1M"], "samples", "needs --sample"),
    (["--rows", "10"], "events", "--rows needs"),
    (["--stacks", "none", "--stack-slots", "100"], "stacks", "needs stacks"),
    (["--stacks", "none", "--folded"], "stacks", "needs stacks"),
    (["--debuginfod", "off"], "kernel", "--debuginfod needs --lines"),
    (["--user", "nobody"], "all", "--user needs a command"),
    (["--exec", "true"], "all", "--exec needs --alert CONDITION: --help lists the columns"),
    (["--force"], "all", "--force needs -o or --html"),
    (["--interval", "3s", "--duration", "1s"], "all", "--interval 3s is longer than --duration 1s"),
    (["--comm", ""], "all", "invalid --comm ''"),
    (["--frees"], "kmem", "--frees goes with --by stack, not with --by site"),
    (["--charge", "allocator"], "kmem", "--charge allocator needs --live, or a recording"),
    (["--slab-account"], "kmem", "--slab-account needs --live, or a recording"),
    (["--live", "--interval", "1s", "--charge", "allocator"], "kmem", "leave out --interval"),
    (["--live", "--slab-account", "--by", "cache"], "kmem", "--slab-account is by site"),
    (["--live", "--slab-account", "--charge", "freer"], "kmem", "leave out --charge"),
    (["--by", "pair"], "kmem", "--by pair needs all events"),
    (["--sort", "at_peak"], "kmem", "--sort uses the column at_peak: only recordings have it"),
    (["--by", "stack", "--sort", "freed"], "kmem", "--sort uses the column freed: it needs --frees"),
]


SEVERAL = [  # wrong options together: (options, of which tools, words of the one line)
    (["--pid", "x", "--tid", "y"], "all", "invalid --pid 'x': use a number; invalid --tid 'y': use a number ("),
    (["--nosuch", "--pide", "3"], "all", "unknown option --nosuch; unknown option --pide; did you mean --pid? ("),
    (["--attach", "no-way", "--where", "nosuch=1", "--duration", "5x"], "all",
     "invalid time '5x' for --duration: .*; unknown --attach of sys .*: no-way: use .*; --where: "),
    (["--columns", "nosuch", "--sort", "nor-this"], "all", "unknown --columns nosuch: .*; unknown --sort nor-this: "),
    (["--json", "--wide", "--exact"], "all", "leave out --wide; --json prints whole numbers: leave out --exact ("),
    (["--hist", "--top", "3", "--columns", "comm"], "events", "leave out --columns; .*leave out --top ("),
    (["--from", "none.allium", "--pid", "3", "--duration", "1s"], "all", "leave out --pid, --duration ("),
]


def does_nothing(t):
    has = {
        "all": True, "kernel": "--debuginfod" in t.help, "events": not t.has_rows, "stacks": "kernel_stack" in t.help,
        "samples": "--sample " in t.help, "kmem": t.name == "kmem"
    }
    for words, of, why in IDLE:
        if not has[of]:
            continue
        by = ["--by", "stack"] if t.has_rows and of in ("stacks", "samples") else []
        words = [re.sub(r"^pid\b", t.columns[0], word) for word in words]
        check(why in refused(2, t.name, *by, *words), words)
    for words, of, why in SEVERAL:
        if has[of]:
            said, pattern = refused(2, t.name, *words), ".*".join(map(re.escape, why.split(".*")))
            check(re.search(pattern, said), words, "are answered by", said)


def option_names(t):
    found = re.findall(r"^  +(?:-\w, +)?--([a-z-]+)", t.help, re.M)
    check(len(found) > 15, "options of --help:", found)
    return found


def all_do_something(t):
    names = option_names(t)
    equal([name for name in names if name not in LOOKS], [], "options of which nobody looks what they do")
    looks = {**LOOKS, **({} if t.has_rows else OF_EVENTS)}
    with anytool.Stirring() as s, contextlib.closing(Looks(t, s)) as all_looks:
        done = set()
        for name in names:
            # Where there are no stacks, what is about them is refused, and the first of oomkill's kinds has but one
            # part.
            if name in ("stacks", "stack-slots", "folded") and "kernel_stack" not in t.help or looks[name] in done:
                continue
            if name in SHARED and not anytool.takes_turn(t, SHARED.index(name), 3):
                continue
            done.add(looks[name])
            all_looks.begin(name, looks[name])
        while all_looks.waiting:
            all_looks.round()


TESTS = []
for about in anytool.all_about():
    TESTS += [("%s: each of its options does something" % about, lambda t=about: all_do_something(t)),
              ("%s: what would do nothing is refused, several in one line" % about, lambda t=about: does_nothing(t))]

lib.main(TESTS)
