#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What all tools of `allium sys` have in common, of each of them: how they begin, end, and say what they saw."""
import collections
import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import anytool
import lib
from anytool import begin, json_of, parse, refused, sys_, well_said
from lib import Failed, built, check, equal, tap, wait_until

ROOM = 16384  # for rows, and events that are sorted
# of instructions: some 50 ms; the programs take up to 30,500 when clang 14 or 19 has compiled them
VERIFIED_MOST = 40000
UNITS = ("_bytes", "_ns", "_pages", "_kib", "_ms")
PER_SECOND = "_per_s"
COMMON = ("--pid", "--tid", "--uid", "--comm", "--cgroup", "--user", "--duration", "--attach", "--json", "--output",
          "--from", "--where", "--alert", "--exec", "--stacks", "--stack-slots", "--folded", "--quiet")


def ends(process, code=0):
    out, errors = process.communicate(timeout=tap.TIMEOUT)
    equal(process.returncode, code, "exit code (%s)" % errors.decode())
    return out, errors


def has_help(t):
    check(re.search(r"^examples:\n  allium sys %s" % t.base, t.help, re.M), "no example in:", t.help)
    for option in COMMON + ("--hist", "--sort", "--top", "--rows", "--interval", "--by" if t.has_rows else "--ring"):
        check(re.search(r"^ .*%s( |$)" % option, t.help, re.M), option, "is not in --help")


def documented(t):
    """The words in bold of allium-json(5): of all tools, and of this one."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/allium-json.5.scd")) as file:
        page = file.read().split("\n# TOOLS OF SYS\n")[1].split("\n# ")[0].split("\n## ")
    return set(re.findall(r"\*([^*\s]+)\*", page[0] + next(part for part in page if part.startswith(t.name + "\n"))))


def runs_a_command(t):
    """From ready to the command's end: its exit code, rows, the losses at the end, and no word too much."""
    rows, lost, errors = json_of(t)
    check(rows, "nothing was seen")
    check(
        errors.startswith(b"allium: ready: %s using %s" % (t.name.encode(), t.methods[0].encode()))
        or any(errors.startswith(b"allium: ready: %s using %s" % (t.name.encode(), r.encode())) for r in t.methods),
        errors)
    well_said(errors)
    unknown = {key for line in (*rows, lost) for key in line} - documented(t)
    equal(unknown, set(), "keys that are not in allium-json(5)")
    for key, value in lost.items():
        check(isinstance(value, int) and value >= 0, "loss", key, value)
    for row in rows:
        for column in t.columns:
            check(
                any(key in row for key in keys(column)) or column.endswith(("_stack",)) or column not in row, "column",
                column, "in", row)
        check(all(value is None or isinstance(value, (int, float, str, list, bool)) for value in row.values()), row)


def passes_on_codes(t):
    def code_of(*command):
        return tap.run(sys_(t.name, "--quiet", "--", *command)).returncode
    equal(code_of("sh", "-c", "exit 42"), 42, "exit code of CMD")
    equal(code_of("sh", "-c", "kill -TERM $$"), 128 + 15, "exit code of CMD that was killed")
    line = tap.run(sys_(t.name, "--quiet", "--", "/none/such"))
    equal((line.returncode, len(line.stderr.splitlines())), (127, 1), "CMD that is not there (%s)" % line.stderr)
    line = tap.run(sys_(t.name, "--quiet", "--", "/etc/passwd"))
    equal((line.returncode, len(line.stderr.splitlines())), (126, 1), "CMD that cannot run (%s)" % line.stderr)


def starts_as_user(t):
    with tap.private_dir() as folder:
        os.chmod(folder, 0o777)
        path = folder + "/who"
        tap.succeed(
            sys_(t.name, "--user", "nobody", "--quiet", "--", "sh", "-c", "id -un >%s; id -Gn >>%s" % (path, path)))
        equal(open(path).read().split(), ["nobody", "nogroup"], "who ran it")
    check("unknown user" in refused(1, t.name, "--user", "none-such", "--", "true"), "--user")


ENDS = (signal.SIGINT, signal.SIGTERM)


@functools.cache
def all_end():
    """Runs all tools on the same events, each of them twice: one run ends by --duration, the other by a signal. {(tool,
    way): (its output, its messages, its exit code)}.
    """
    with anytool.Stirring() as s, contextlib.ExitStack() as stack:
        running = {}
        for t in ABOUT:
            for how in (None, signal_of(t)):  # None: by --duration
                words = sys_(t.name, "--json", *(t.one_report_after("8s") if how is None else t.one_report))
                running[t, how] = process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
                stack.callback(process.kill)
        for (t, _), process in running.items():
            line = process.stderr.readline()
            check(b": ready: " in line, t, "is not ready:", line)
        subprocess.run(s.command(0), check=True)
        for (_, how), process in running.items():
            if how is not None:
                process.send_signal(how)
        return {
            key: (*process.communicate(timeout=tap.TIMEOUT), process.returncode)
            for key, process in running.items()
        }


def signal_of(t):
    """Half of the tools get SIGINT, half SIGTERM."""
    return ENDS[ABOUT.index(t) % 2]


def ends_by(t, how):
    """By --duration or a signal, with what it has seen."""
    out, errors, code = all_end()[t, how]
    equal(code, 0, "exit code (%s)" % errors.decode())
    check(parse(out)[0], "nothing was seen")


def is_quiet(t):
    done = tap.succeed(sys_(t.name, "--quiet", "--duration", "20ms"))
    equal(done.stderr, b"", "stderr under --quiet")


def stops_for_a_closed_pipe(t):
    """As under `| head -1`: nobody reads any more, and there is more to say."""
    with anytool.Stirring() as s:
        process = begin(t, *(["--interval", "30ms"] if t.has_rows else []))
        process.stdout.close()
        for _ in range(20):
            if process.poll() is None:
                subprocess.run(s.command(0), check=True)
        code = process.wait(tap.TIMEOUT)
        errors = process.stderr.read()
    check(code in (0, 128 + 13, -13), "exit code", code)
    well_said(errors)


def leaves_nothing(t):
    """Killed, it leaves no program, map or link in the kernel, and no file; another one works meanwhile and after it.
    """
    before = set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))
    first, second = begin(t), begin(t, "--json", *t.one_report)
    things = anytool.objects(first.pid)
    check(any(kind == "prog_id" for kind, _ in things) and any(kind == "map_id" for kind, _ in things), things)
    check(all(map(anytool.there, things)), "not in the kernel")
    others = anytool.objects(second.pid)
    equal(things & others, set(), "shared by two runs")
    first.kill()
    first.communicate(timeout=tap.TIMEOUT)
    wait_until(lambda: not any(map(anytool.there, things)), 60, "nothing of it is in the kernel")
    ours = [name for name in (set(os.listdir("/dev/shm")) | set(os.listdir("/tmp"))) - before if str(first.pid) in name]
    equal(ours, [], "files left")
    check(all(map(anytool.there, others)), "what the other one has is gone, too")
    second.send_signal(signal.SIGTERM)
    parse(ends(second)[0])


def is_soon_verified(t):
    """What the verifier goes through decides how long a start takes. The kernel counts it, however busy the machine is.
    """
    sampled = [[*(["--by", "stack"] if t.has_rows else []), "--sample", "20"]] if "--sample " in t.help else []
    for options in [[], ["--hist"], *sampled]:
        process = begin(t, *options, "--comm", "nobody-has-this")
        steps = anytool.verified(process.pid)
        process.send_signal(signal.SIGTERM)
        ends(process)
        check(0 < steps <= VERIFIED_MOST, steps, "instructions are verified with", options)


def leaves_itself_out(t):
    """A copy of allium with a name of its own: under its name nothing is seen, whatever its namespace. Events of its
    own are seldom, so that there may be none in a run.
    """
    with tap.private_dir() as folder:
        copy = folder + "/own-%d" % os.getpid()
        subprocess.run(["cp", built("ALLIUM"), copy], check=True)
        busy = {**os.environ, "MALLOC_TOP_PAD_": "0", "MALLOC_TRIM_THRESHOLD_": "0"}  # it moves its heap's end at once

        def left_out(*before):
            done = tap.succeed([
                *before, copy, "sys", *t.name.split(), "--json", *t.one_report_after("300ms"), "--comm",
                os.path.basename(copy)
            ], env=busy)
            rows, lost = parse(done.stdout)
            equal([row for row in rows if row.get("pid")], [], "rows of its own")
            return lost["own_events"] > 0
        if all(left_out() for _ in range(3)):  # not of a tool that sees one by chance
            check(any(left_out("unshare", "--pid", "--fork", "--mount-proc") for _ in range(30)),
                  "none in a PID namespace")


def number(row, column):
    for key in keys(column):
        if key in row:
            return row[key]
    return None


def keys(column):
    """What a column may be called in JSON: of a rate the unit of what counts in a second stands before the second."""
    if column.endswith(PER_SECOND):
        return [column, *(column[:-len(PER_SECOND)] + unit + PER_SECOND for unit in UNITS)]
    return [column, *(column + unit for unit in (*UNITS, "_percent"))]


def said_number(words, errors):
    """The number before these words, 0: they were not said."""
    found = re.search(rb"([\d,]+) " + words, errors)
    return int(found.group(1).replace(b",", b"")) if found else 0


def beside(t, stirring, path):
    """What one tells, and what another one beside it says that keeps its rows in a file. An event that comes while a
    program of a tool is at work on that CPU is missed by that tool, so that the two may differ: also told is in how
    many. On a busy machine there is no run without.
    """
    # By stack a few rows of interrupts may differ: a program does not run where it was interrupted itself.
    # A process that is killed, and has no turn to end, lets others try to reclaim again and again.
    by = ["--by", next(part for part in t.parts if part != "stack")] if t.has_rows else ["--ring", "64M"]
    for left in reversed(range(10)):
        direct = begin(t, "--json", *t.one_report, *by, "--cgroup", stirring.group.folder)
        kept = begin(t, "-o", path, *t.one_report, *by, "--cgroup", stirring.group.folder)
        subprocess.run(stirring.command(0), check=True)
        for process in direct, kept:
            process.send_signal(signal.SIGINT)
        rows, lost = parse(ends(direct)[0])
        out, errors = ends(kept)
        check(out, "nothing is shown beside -o")
        missed = lost["missed_events"] + said_number(rb"events? (?:was|were) missed: ", errors)
        fits = len(rows) < ROOM / 2 and not lost["lost_events"] and not re.search(rb"events? lost", errors)
        if fits and (not missed or left < 5):
            return rows, errors, missed
        os.unlink(path)
    raise Failed("events were lost in each of ten runs")


def shows_losses_again(t, path, errors):
    """What was said when it was recorded is said when it is shown, and in JSON; what is about observing is refused."""
    def said(text):
        return [line for line in text.splitlines() if not re.search(rb": ready: |: recorded |are shown", line)]
    equal(said(tap.succeed(sys_(t.name, "--from", path, "--top", 1)).stderr), said(errors), "closing lines")
    lost = parse(tap.succeed(sys_(t.name, "--from", path, "--json")).stdout)[1]
    equal(lost["own_events"], said_number(rb"events? of allium itself", errors), "events of its own")
    for words in (["--pid", 1], ["--attach", t.methods[0]], ["--alert", "pid>1"], ["--duration", "1s"],
                  ["--stack-slots", "4K"], ["--", "true"], *([] if t.has_rows else [["--ring", "4K"]])):
        check("--from shows a recording" in refused(2, t.name, "--from", path, *words), words)
    check("exists" in refused(1, t.name, "-o", path, "--duration", "20ms"), "-o with a file that is there")


def columns_without_values(t):
    """A column that rows of a run do not have cannot be asked for; all the others can, in one question."""
    rows, _, _ = json_of(t)
    check(rows, "nothing was seen")
    terms = []
    for column in re.findall(r"([a-z_0-9]+)(?:\[\w+\])?", t.help.split("in brackets:\n")[1].split("\n\n")[0]):
        key = next((key for key in keys(column) if key in rows[0]), None)
        values = [row[key] for row in rows if row.get(key) is not None] if key else []
        if not key or column.endswith("_stack") and not values:
            done = tap.run(sys_(t.name, "--sort", column, "--duration", "20ms"))
            check(done.returncode in (2, 3) and b"--sort uses the column %s" % column.encode() in done.stderr, column,
                  done)
            check(len(done.stderr.splitlines()) == 1, "not one line:", done.stderr)
        elif values:
            text = isinstance(values[0], (str, list))
            if text and re.fullmatch("0x[0-9a-f]+", str(values[0])):  # an address, or a text of such digits
                text = tap.run(sys_(t.name, "--where", column + ">=0", "--duration", "20ms")).returncode != 0
            terms.append(column + (":*" if text else ">=0"))
    check(terms, "no column has a value")
    both = tap.succeed(
        sys_(t.name, "--quiet", "--where", " or ".join(terms), "--alert", " or ".join(terms), "--duration", "20ms"))
    equal([line for line in both.stderr.splitlines() if b": alert: " not in line], [], "stderr")


def doctor_tells():
    """Of each tool the way that works here, and of the better ones what --attach says of them."""
    rows = lib.json.loads(tap.succeed([built("ALLIUM"), "doctor", "--json"]).stdout)["rows"]
    told = {row["what"]: row for row in rows if row["what"].startswith("sys ")}
    equal(sorted(told), sorted("sys " + name for name in anytool.names()), "tools")
    for name in anytool.names():
        t = anytool.About("memleak --comm none" if name == "memleak" else name)
        row = told["sys " + name]
        equal(row["works"], "yes", "works, %s" % t)
        used = row["found"].split()[0]
        check(used in t.methods, used, "is no way to attach", t)
        for method in t.methods[:t.methods.index(used)]:
            line = refused(3, t.name, "--attach", method)
            why = line.partition("cannot attach to this kernel: ")[2]
            check("not " + why in row["what_to_do"], why, "is not in", row["what_to_do"])
            check(
                method not in ("fentry", "fexit", "kprobe")
                or re.search("not %s: .*would help" % method, row["what_to_do"]), row)
        check(used != t.methods[0] or row["what_to_do"] is None, row)
        equal(len(t.methods), len(set(t.methods)), "names in %s" % t.methods)


def is_cut_off():
    """Of a recording whose writer was killed nobody knows what was lost."""
    about = anytool.About("slabratetop")
    with tap.private_dir() as folder:
        path = folder + "/cut.allium"
        process = begin(about, "-o", path, "--interval", "50ms")

        def has_rows():
            return tap.run(sys_("slabratetop", "--from", path, "--json")).returncode == 0
        wait_until(has_rows, tap.TIMEOUT, "rows are committed")
        for _ in range(2):
            done = tap.succeed(sys_("slabratetop", "--from", path, "--top", 1))
            check(b"losses are unknown" in done.stderr, done.stderr)
            out = tap.succeed(sys_("slabratetop", "--from", path, "--json")).stdout
            equal(out.splitlines()[-1], b'{"lost":null}', "the last line")
            process.kill()
            process.communicate(timeout=tap.TIMEOUT)
        check("no rows of kmem, only of slabratetop" in refused(1, "kmem", "--from", path), "what else it has")
        done = tap.run([built("ALLIUM"), "sql", path, "SELECT * FROM slabratetop"])
        check(b", sys_slabratetop\n" in done.stderr, "the tables there are", done.stderr)


def records_on():
    """Whoever reads the screen of a tool that records may go, and its disk may be full: the recording is whole."""
    command = sys_("slabratetop", "--interval", "100ms", "--duration", "1500ms", "-o")
    with tap.private_dir() as folder, lib.load():
        for way, code in (">/dev/full", 1), ("| head -1", 0):
            path = folder + "/%d.allium" % code
            done = tap.run(["sh", "-c", "exec 3>&1; { %s %s; echo $? >&3; } %s" % (" ".join(command), path, way)])
            equal(done.stdout.split()[-1], b"%d" % code, "exit code of %s, which said %s" % (way, done.stderr))
            check(b"allium: recorded " in done.stderr, done.stderr)
            equal(done.stderr.count(b"cannot write: No space left"), code, "lines that say why")
            lines = tap.succeed(sys_("slabratetop", "--from", path, "--json")).stdout.splitlines()
            check(lines[-1] != b'{"lost":null}', "losses", lines[-1])
            times = {re.search(rb'"time_ns":(\d+)', line).group(1) for line in lines[1:-1]}
            check(len(times) > 5, "reports in a recording of 1.5 s:", len(times))


def records(t):
    """A recording shows what a second run beside it showed, sorted and chosen by each column, and to SQL."""
    timed = re.compile("time|_ns$|per_s|^histogram|_at_|ago")
    with tap.private_dir() as folder, anytool.Stirring() as s:
        path = folder + "/one.allium"
        rows, errors, missed = beside(t, s, path)

        def shown(*options):
            return parse(tap.succeed(sys_(t.name, "--from", path, "--json", *options)).stdout)[0]
        again = shown()
        shows_losses_again(t, path, errors)
        equal(len(again), said_number(rb"rows?; ", errors), "rows that were recorded")

        def stable(all_rows):
            return sorted(
                tuple((key, str(value)) for key, value in row.items() if not timed.search(key)) for row in all_rows)
        equal({frozenset(dict(row))
               for row in stable(again)}, {frozenset(dict(row))
                                           for row in stable(rows)}, "keys of recorded rows")
        text = [column for column in t.columns if any(isinstance(row.get(column), str) for row in rows)]

        def words(all_rows):  # of several caches each run names the one that it happened to meet
            return collections.Counter(tuple(re.sub(".+(?= and others$)", "", str(row.get(column))) for column in text)
                                       for row in all_rows)
        differ = (words(again) - words(rows)) + (words(rows) - words(again))
        # What is live is looked at when each ends: an object that is freed between the two is in one of them.
        moving = len(rows) // 10 if t.base == "memleak" else 0
        check(differ.total() <= 2 * missed + moving, "rows differ, of", missed, "missed events:", differ)
        count = tap.succeed([built("ALLIUM"), "sql", path, "SELECT count(*) FROM sys_%s" % t.table]).stdout
        check(str(len(again)) in count.decode(), "sql counts", count)
        for column in t.columns:
            values = [number(row, column) for row in again]
            if not values or not all(type(value) in (int, float) for value in values):
                continue
            middle = sorted(values)[len(values) // 2]
            where = "%s>%s" % (column, middle)
            got = [number(row, column) for row in shown("--sort", column)]
            equal(got, sorted(values, reverse=True), "sorted by " + column)
            equal([number(row, column) for row in shown("--sort", "+" + column, "--top", 1)], [min(values)],
                  "the least " + column)
            # A number alone is no duration in a query.
            alone = not column.endswith("_per_s") and column + "_ns" not in again[0]
            if alone and all(type(value) is int for value in values):
                equal(len(shown("--where", where)), sum(value > middle for value in values), where)


def tells_rows_apart(t):
    for part in t.parts:
        rows, _, errors = json_of(t, "--by", part)
        check(rows, "nothing by", part)
        well_said(errors)


def folds(t):
    """Stacks of each kind, as a flame graph's maker reads them."""
    part = ["--by", "stack"] if "stack" in t.parts else []
    has = [column for column in t.columns if column.endswith("_stack")]
    if "kernel_stack" not in t.help:
        return refuses_stacks(t)
    with anytool.Stirring() as s:
        check("needs stacks" in refused(2, t.name, "--folded", *part, "--stacks", "none"), "--folded without stacks")
        for which in ("kernel", "user", "both"):
            done = tap.run(
                sys_(t.name, "--folded", "--comm", "cat", *t.one_report, *part, "--stacks", which, "--quiet", "--",
                     *s.command(0)))
            equal((done.returncode, done.stderr), (0, b""), "--folded --stacks " + which)
            lines = done.stdout.decode(errors="replace").splitlines()
            for line in lines:
                check(re.fullmatch(r"[^;]+(;[^;]+)* \d+", line), "no folded line:", line)
                frames = line.rsplit(" ", 1)[0].split(";")
                check(which != "kernel" or all(frame.endswith("_[k]") for frame in frames), "no frames of the kernel:",
                      line)
                check(not any(frame.startswith("? ") for frame in frames), "a frame that cannot be trusted:", line)
            if which == "both" and part and has:
                check(lines, "no folded lines")


def refuses_stacks(t):
    """What is about stacks is refused in one line where there are none: of the tool, or of rows that are told apart by
    something else.
    """
    about = (["--stacks", "kernel"], ["--stacks", "none"], ["--folded"], ["--stack-slots", "1000"])
    has = "kernel_stack" in t.help  # the columns that a refusal names may be cut
    for options in about:
        if not has:
            check("sys %s takes no stacks: leave out %s" % (t, options[0]) in refused(2, t.name, *options), options)
        for part in t.parts:
            words = ["--by", part, *options]
            if has and part != "stack":
                check(
                    "%s: rows by %s have no stacks, use --by stack" % (options[0], part) in refused(2, t.name, *words),
                    words)
            elif has:
                equal(
                    tap.run(sys_(t.name, "--duration", "20ms", "--quiet", *words)).returncode, 0,
                    "exit code of %s" % words)


def what_fits_all(t):
    """A condition that holds of each row, but of those without what tells rows apart: they are of the machine."""
    rows, _, _ = json_of(t, within=True)
    rows = [row for row in rows if row.get(t.columns[0]) is not None] or rows
    for column in t.columns:
        if rows and all(isinstance(row.get(column), str) for row in rows):
            return column + ":*"
        if rows and all(type(number(row, column)) is int for row in rows):
            return column + ">=0"
    raise lib.Failed("no column has a value in each of %d rows" % len(rows))


def alerts(t):
    """Of rows it is told once, though they fit again and again; of events, of each."""
    condition = what_fits_all(t)
    with tap.private_dir() as folder, anytool.Stirring() as s:
        path = folder + "/told"
        process = begin(t, *(["--interval", "100ms"] if t.has_rows else []), "--cgroup", s.group.folder, "--alert",
                        condition, "--exec", "printf '%%s\\n' \"$ALLIUM_ROW\" >>%s" % path)
        for _ in range(2):
            subprocess.run(s.command(0), check=True)
        wait_until(lambda: os.path.exists(path), 20, "its command has run")
        process.send_signal(signal.SIGINT)
        _, errors = ends(process)
        said = [line for line in errors.splitlines() if line.startswith(b"allium: alert: ")]
        runs = len(said) - said_number(rb"alerts? (?:was|were) still waiting", errors)
        wait_until(lambda: len(open(path).readlines()) >= runs, 20, "all %d commands have run" % runs)
        equal([lib.json.loads(line) for line in open(path)],
              [lib.json.loads(line.partition(b": {")[2].join((b"{", b""))) for line in said[:runs]],
              "rows that the command got")
        if t.has_rows:
            check(1 <= len(said) <= 20, "alerts:", len(said))


def knows_its_words(t):
    check("did you mean --attach?" in refused(2, t.name, "--atach", "x"), "--atach")
    equal(listed_methods(t), t.methods, "methods")
    check("did you mean " in refused(2, t.name, "--where", t.columns[-1][:-1] + "=1"), "--where")
    check("none, kernel, user or both" in refused(2, t.name, "--stacks", "both-of-them"), "--stacks")
    for option in ("--pid", "--tid", "--stack-slots", "--duration"):
        refused(2, t.name, option, "1x1")
    check("use the name or number of a user" in refused(2, t.name, "--uid", "none-such"), "--uid")
    refused(2, t.name, "extra")
    if t.has_rows:
        word = t.parts[-1]
        check("did you mean %s?" % word in refused(2, t.name, "--by", word + "x"), "--by")
    for sign in ("", "+", "-"):
        check("did you mean %s?" % t.columns[0] in refused(2, t.name, "--sort", sign + t.columns[0] + "x"), "--sort")
    refused(2, t.name, "--from", "/none", "--interval", "1s")
    for condition in re.findall(r"'(\w+>\w+ for 30s)'", t.help):
        if not re.search(r"--interval .*\(\d+s\)$", t.help, re.M):
            check("use --interval" in refused(2, t.name, "--alert", condition), "--alert without --interval")
        tap.succeed(sys_(t.name, "--alert", condition, "--interval", "20ms", "--duration", "20ms"))


def listed_methods(t):
    return anytool.listed(refused(2, t.name, "--attach", "no-method"))


def attaches_each_way(t):
    """A way to attach works, or one line says why not. Without tracefs those that ask for names say what to mount."""
    worked = 0
    for method in t.methods:
        done = tap.run(lib.with_tracefs(sys_(t.name, "--attach", method, "--duration", "20ms", "--json")))
        lines = done.stderr.decode().splitlines()
        if done.returncode == 0:
            check(lines[0].startswith("allium: ready: %s using %s" % (t, method)), lines)
            worked += 1
        else:
            equal((done.returncode, len(lines)), (3, 1), "code, lines of %s: %s" % (method, lines))
            check(
                re.match("allium: sys %s (cannot attach to this kernel|may not load .* forbids it): %s: " % (t, method),
                         lines[0]), lines)
    check(worked, "none of", t.methods, "works here")
    bare = tap.run([
        "unshare", "-m", "sh", "-c",
        "umount %s 2>/dev/null; umount /sys/kernel/debug 2>/dev/null; exec \"$@\"" % lib.TRACEFS, "sh",
        *sys_(t.name, "--attach", t.methods[-1], "--duration", "20ms")
    ])
    check(bare.returncode == 0 or bare.returncode == 3 and b"mount -t tracefs" in bare.stderr, bare)


def drops_privileges(t):
    """What it has and could get again, once it is ready, is what reading takes."""
    names = {
        1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 5: "KILL", 19: "SYS_PTRACE", 34: "SYSLOG", 38: "PERFMON", 39: "BPF"
    }
    process = begin(t)

    def sets():
        with open("/proc/%d/status" % process.pid) as file:
            return {line.split()[0]: int(line.split()[1], 16) for line in file if line.startswith("Cap")}
    for kind, bits in sets().items():
        check(bits & ~sum(1 << number for number in names) == 0, kind, "%x" % bits)
    process.send_signal(signal.SIGTERM)
    ends(process)


def takes_two_capabilities(t):
    """CAP_BPF and CAP_PERFMON will do. What has no name for want of others is told."""
    def only(*capabilities):
        return ["setpriv", "--bounding-set", ",".join(("-all", *("+" + name for name in capabilities)))]
    command = sys_(t.name, "--json", *t.one_report_after("200ms"))
    if t.has_rows and "site" in t.parts:
        command = sys_(t.name, "--json", *t.one_report, "--", "cat", "/proc/self/status")
    done = tap.run([*only("bpf", "perfmon"), *command])
    equal(done.returncode, 0, "exit code (%s)" % done.stderr.decode())
    if any(
            str(row.get("call_site", "")).startswith("0x") for line in done.stdout.splitlines() if line.startswith(b"{")
            for row in [lib.json.loads(line)]):
        check(b"CAP_SYSLOG" in done.stderr or b"kptr_restrict" in done.stderr, "no word about addresses:", done.stderr)
    line = tap.run([*only("bpf"), *command])
    equal((line.returncode, line.stdout, len(line.stderr.splitlines())), (3, b"", 1), "code, output, lines")
    check(b"lacks CAP_PERFMON:" in line.stderr, line.stderr)


def lacks_privilege(t):
    line = tap.run([
        "setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all", *sys_(t.name)
    ])
    equal((line.returncode, len(line.stderr.splitlines())), (3, 1), "code, lines")
    check(b"lacks CAP_BPF and CAP_PERFMON" in line.stderr, line.stderr)
    with tap.private_dir() as folder:
        open(folder + "/empty", "w").close()
        line = tap.run([
            "unshare", "-m", "sh", "-c",
            'mount --bind %s/empty /sys/kernel/btf/vmlinux && exec "$@"' % folder, "sh", *sys_(t.name)
        ])
    equal((line.returncode, len(line.stderr.splitlines())), (3, 1), "code, lines without BTF (%s)" % line.stderr)
    check(b"no BTF" in line.stderr, line.stderr)
    check("there is no process" in refused(1, t.name, "-p", 2**22 + 1), "-p")


ABOUT = anytool.all_about()
# No tool's own code takes part in these.
SHARED = (knows_its_words, lacks_privilege, takes_two_capabilities, drops_privileges, passes_on_codes, starts_as_user,
          is_quiet, stops_for_a_closed_pipe, refuses_stacks, alerts)


def is_tested(t, test):
    return test not in SHARED or anytool.takes_turn(t, SHARED.index(test), 3)


TESTS = []
for about in ABOUT:
    TESTS += [("%s: %s" % (about, what), lambda do=do, about=about: do(about)) for what, do in (
        ("--help tells its options, with examples", has_help),
        ("it knows its words, and says what is meant", knows_its_words),
        ("each way to attach works, or says why not", attaches_each_way),
        ("without privilege or BTF one line says so", lacks_privilege),
        ("two capabilities will do", takes_two_capabilities),
        ("what is no longer needed is dropped", drops_privileges),
        ("a command is observed from ready to its end", runs_a_command),
        ("exit codes of a command are passed on", passes_on_codes),
        ("a command is started as another user", starts_as_user),
        ("it ends by --duration, with a report", lambda t: ends_by(t, None)),
        ("it ends by a signal, with a report", lambda t: ends_by(t, signal_of(t))),
        ("--quiet says nothing", is_quiet),
        ("it ends in peace when nobody reads", stops_for_a_closed_pipe),
        ("killed, it leaves nothing, and two run at once", leaves_nothing),
        ("its programs are verified in few steps", is_soon_verified),
        ("its own events are left out, in a PID namespace, too", leaves_itself_out),
        ("rows are told apart by each part", tells_rows_apart),
        ("stacks are folded", folds),
        ("what is about stacks is refused where there are none", refuses_stacks),
        ("an alert runs its command, once", alerts),
        ("a recording shows the same rows", records),
        ("columns without values cannot be asked for", columns_without_values),
    ) if is_tested(about, do)]
TESTS.append(("doctor tells of each tool how it attaches, and why not better", doctor_tells))
TESTS.append(("of a recording that was cut off nobody knows what was lost", is_cut_off))
TESTS.append(("a recording goes on when nobody reads the screen any more", records_on))

lib.main(TESTS)
