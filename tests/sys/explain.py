#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `allium sys` says of its tools: --list, --explain, and the names under which a tool is found. What a tool hooks is
compared with the links that the kernel has of it, the way to attach with what `allium doctor` says.
"""
import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
import anytool
import json_schemas
from anytool import begin, refused, sys_
from lib import Failed, built, check, equal, tap

BOOK = ("oomkill memleak mmapsnoop brkstack shmsnoop faults ffaults vmscan drsnoop swapin hfaults kmem kpages "
        "slabratetop numamove").split()
SUFFIXES = "-bpfcc", ".bt"
LABELS = ["", "answers", "hooks", "costs", "cannot show", "see also"]
LINES_MOST, SCREEN_LINES = 30, 24
UNITS = {"ns": 1, "us": 1000, "μs": 1000, "ms": 1000000}
UNPRIVILEGED = ("setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all", "--inh-caps", "-all")


def explained(t, *options, before=()):
    """{label: text} of --explain; the first label is the name of the tool."""
    done = tap.succeed([*before, *sys_(t.name, "--explain", *options)])
    equal(done.stderr, b"", "stderr")
    return labelled(done.stdout.decode(), t)


def labelled(text, t):
    """Fails if it is not half a page with all its parts."""
    found, lines = {}, text.splitlines()
    check(len(lines) <= LINES_MOST, len(lines), "lines")
    for line in lines:
        label = line[:13].strip()
        check(line[13] == " " and (label or found), "an odd line:", line)
        if label:
            found[label] = []
        found[list(found)[-1]].append(line[14:])
    equal([label for label in found if label != "does not work"], [t.base, *LABELS[1:]], "parts")
    return {label: " ".join(words) for label, words in found.items()}


def listing(*before):
    done = tap.succeed([*before, *sys_("--list", "--json")])
    document = json.loads(done.stdout)
    json_schemas.check(document)
    return {row["tool"]: row for row in document["rows"]}, done.stderr.decode()


def is_explained(t):
    """Each text is there; options that they name are options of the tool."""
    parts = explained(t)
    questions = re.findall(r"\S[^?]*\?(?: \([^)]*\))?", parts["answers"])
    check(len(questions) >= 2, "questions:", parts["answers"])
    equal(" ".join(questions), parts["answers"], "questions alone")
    for option in re.findall(r"--[a-z-]+", " ".join(parts[label] for label in ("answers", "cannot show"))):
        check(re.search(r"^ .*%s( |$)" % option, t.help, re.M), option, "is not in --help")
    for part in re.findall(r"--by ([a-z]+)", parts["answers"]):
        check(part in t.parts, part, "is no part of", t.parts)
    check(t.help.splitlines()[2] == parts[t.base], "summary", parts[t.base])
    try:
        labelled("%-13s what\nanswers       Who?\n" % t.base, t)
    except Failed:
        return
    raise Failed("a text without all its parts is accepted")


def costs_what_is_listed(t):
    """The figure of --list, for one event; and where it was measured."""
    words = explained(t)["costs"]
    if t.name != t.base:
        return check(" for " in words, words)  # the tool itself is listed
    cost = listing()[0][t.name]["event_cost_ns"]
    if cost is None:
        check("is too rare" in words, words)
        return
    number, unit = re.match(r"([\d.]+) (\S+) for \w", words).groups()
    equal(round(float(number) * UNITS[unit]), cost, "cost")
    check(re.search(r"\(.*\b(%s)\b.*Linux \d" % "|".join(t.methods), words), "where was it measured?", words)


def raw_tracepoints(pid):
    """Tracepoints that the process has links to, as the kernel names them."""
    found = set()
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as file:
            found.update(re.findall(r"^tp_name:\s*(\w+)", file.read(), re.M))
    return found


def hooks_what_it_says(t):
    """By raw_tp the kernel tells the tracepoints. Another way that shows the same is attached to the same ones."""
    compared = False
    for method in t.methods:
        done = tap.run(sys_(t.name, "--explain", "--attach", method))
        equal(done.returncode, 0, "exit code (%s)" % done.stderr)
        said = labelled(done.stdout.decode(), t)["hooks"]
        check(said.startswith(method + ": "), said)
        places = set(said.partition(": ")[2].partition(". ")[0].split(", "))
        check(all(re.fullmatch(r"[\w ]+", place) for place in places), "places:", places)
        if tap.run(sys_(t.name, "--attach", method, "--duration", "20ms")).returncode:
            continue
        process = begin(t, "--attach", method, "--comm", "nobody-has-this")
        linked = raw_tracepoints(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=tap.TIMEOUT)
        check(linked <= places, linked - places, "are hooked, and not among", places)
        if method == "raw_tp":
            equal(linked, places, "tracepoints")
            compared = True
    check(compared or "raw_tp" not in t.methods, "raw_tp was not compared")


def is_not_known_without_privilege(t):
    """Everything but what a load tells."""
    parts = explained(t, before=UNPRIVILEGED)
    check("not known without CAP_BPF and CAP_PERFMON" in parts["cannot show"], parts["cannot show"])
    for label in "answers", "costs":
        equal(parts[label], explained(t)[label], label)
    check(parts["hooks"].startswith(t.methods[0] + ": "), parts["hooks"])


def has_other_names(t):
    """As Debian calls those of bcc, and bpftrace its own."""
    for suffix in SUFFIXES:
        other = t.name.replace(t.base, t.base + suffix)
        equal(tap.succeed(sys_(other, "--help")).stdout.decode(), t.help, "help of " + other)
        check("unknown tool %sx%s" % (t.base, suffix) in refused(2, t.base + "x" + suffix), "a wrong name")
        check("ready: " + t.name in tap.succeed(sys_(other, "--duration", "20ms")).stderr.decode(), suffix)


def is_compared_with_its_original(t):
    with open(os.path.realpath(__file__ + "/../../../man/allium-sys.1.scd")) as file:
        table = file.read().split("\n# ORIGINALS\n")[1].split("\n# ")[0]
    check(re.search(r"^\|  .*\n:  \*%s\*\n:  \S" % t.base, table, re.M), "no row in ORIGINALS of allium-sys(1)")


def memleak_of_processes():
    """It is explained, unless --kernel asks for the other half."""
    texts = [tap.succeed(sys_("memleak", "--explain", *more)).stdout.decode() for more in ([], ["--kernel"])]
    for text, word in zip(texts, ("processes", "kernel")):
        check(word in text.splitlines()[0], text)


def names_of_the_book():
    """Each works, or is refused in a line that says that this version has it not."""
    names = anytool.names()
    for name in BOOK:
        for suffix in ("", *SUFFIXES):
            if name in names:
                tap.succeed(sys_(name + suffix, "--help"))
            else:
                check("has no %s yet: allium sys --list" % name in refused(2, name + suffix), name + suffix)
    check("did you mean kmem?" in refused(2, "kmen-bpfcc"), "a name that is similar")
    check("unknown tool -bpfcc" not in refused(2, "-bpfcc"), "a suffix alone is an option")
    check("unknown tool .bt" in refused(2, ".bt"), "a suffix alone")


def listed_as_doctor_says():
    rows, errors = listing()
    equal(errors, "", "stderr")
    equal(list(rows), anytool.names(), "tools")
    doctor = json.loads(tap.succeed([built("ALLIUM"), "doctor", "--json"]).stdout)["rows"]
    told = {row["what"][4:]: row["found"] for row in doctor if row["what"].startswith("sys ")}
    for name, row in rows.items():
        found = row["attach"] + (" (cannot show %s)" % row["cannot_show"] if row["cannot_show"] else "")
        equal((found, row["why_not"]), (told[name], None), name)
    text = tap.succeed(sys_("--list")).stdout.decode().splitlines()
    check(len(text) == len(rows) + 1 <= SCREEN_LINES, "lines:", text)
    for line, row in zip(text[1:], rows.values()):
        check(re.match(r"%s +%s " % (row["tool"], row["attach"]), line) and row["shows"] in line, line)


def listed_without_privilege():
    rows, errors = listing(*UNPRIVILEGED)
    for row in rows.values():
        equal(row["attach"], None, "attach")
        check("not known without CAP_BPF and CAP_PERFMON" in row["why_not"], row)
    equal(errors.count("\n"), 1, "lines")
    done = tap.succeed([*UNPRIVILEGED, *sys_("--list")])
    check(b"not known without CAP_BPF and CAP_PERFMON: run it as root" in done.stderr, done.stderr)
    equal(len(done.stdout.splitlines()), len(rows) + 1, "lines")


def others_are_refused():
    check("leave out --top" in refused(2, "--list", "--top", "3"), "--list with --top")
    check("leave out kmem" in refused(2, "--list", "kmem"), "--list with a name")
    for words in (["--json"], ["--duration", "1s"], ["--by", "site"]):
        check("--explain observes nothing: leave out " + words[0] in refused(2, "kmem", "--explain", *words), words)
    check("leave out -- CMD" in refused(2, "kmem", "--explain", "--", "true"), "--explain with CMD")
    check("unknown --attach" in refused(2, "kmem", "--explain", "--attach", "none-such"), "--explain --attach")


ABOUT = anytool.all_about()
TESTS = []
for about in ABOUT:
    TESTS += [("%s: %s" % (about, what), lambda do=do, about=about: do(about)) for what, do in (
        ("--explain has all its parts, in half a page", is_explained),
        ("an event costs what --list says", costs_what_is_listed),
        ("it hooks what --explain says", hooks_what_it_says),
        ("without privilege it says what is not known", is_not_known_without_privilege),
        ("it is found by the names of bcc and bpftrace", has_other_names),
        ("the manual compares it with its original", is_compared_with_its_original),
    )]
TESTS += [
    ("the names of the book work, or are refused in a line", names_of_the_book),
    ("--list says of each tool what doctor says", listed_as_doctor_says),
    ("without privilege --list says why it cannot know", listed_without_privilege),
    ("options that would do nothing are refused", others_are_refused),
    ("memleak is explained for processes, and with --kernel for the kernel", memleak_of_processes),
]
tap.main(TESTS)
