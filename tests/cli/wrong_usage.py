# SPDX-License-Identifier: BSD-2-Clause
"""Wrong command lines: each is answered with one line, which says what is wrong and what to write instead, and with a
code for scripts: 2 for wrong usage, 1 where something is not found, 127 for a command that is not found.
"""
import os
import re
import shlex
import shutil
import sys

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import check, equal

# What is typed, the code, and words of the line. r.allium is a recording, holder a program of this directory, {pid} a
# process without the agent, whose program is called idler.
MISTAKES = [
    # commands of other tools, and typing errors
    ("", 2, "usage: allium COMMAND"),
    ("record ./server", 2, "allium run -- CMD"),
    ("top", 2, "allium ps"),
    ("list", 2, "allium ps"),
    ("flamegraph r.allium", 2, "allium export --folded live"),
    ("leaks {pid}", 2, "allium watch PID"),
    ("allocinfo", 2, "allium sys allocinfo"),
    ("reprot", 2, 'did you mean "report"'),
    ("frobnicate", 2, "allium --help lists all"),
    ("--bogus", 2, 'unknown option "--bogus"'),
    ("--verson", 2, 'unknown option "--verson"; did you mean "--version"'),
    ("help frobnicate", 2, "unknown command"),
    # run
    ("run", 2, "command"),
    ("run --", 2, "command"),
    ("run holder", 127, "holder: command not found.*use ./holder"),
    ("run nosuch", 127, "nosuch: command not found$"),
    ("run --period 64X -- true", 2, "invalid size '64X'.*64K, 1.5M or a number of bytes"),
    ("run --period 0 -- true", 2, "--period 0 is out of range"),
    ("run --perid 64K -- true", 2, "did you mean --period"),
    ("run -o r.allium -- true", 125, "r.allium exists.*--force"),
    ("run -o -- true", 2, "option -o needs a value, FILE: "),
    ("run --perid 64K --nosuch -- true", 2, "unknown option --perid; did you mean --period\\? "),
    ("report --nosuch r.allium --sorted peak", 2, "unknown option --nosuch; unknown option --sorted; did you mean --sort\\? "),
    ("report --nosuch --help", 2, r"unknown option --nosuch \("),
    ("report -xh", 2, r"unknown option -x \("),
    # sources
    ("report {pid}", 1, "is not observed: restart it under allium run.*allium env"),
    ("report 999999999", 1, "no process 999999999"),
    ("report 99999999999999999999", 2, "not a valid process id; .*write ./9999"),
    ("report ./4711", 1, "./4711 does not exist"),
    ("report idler", 1, "running processes named idler: {pid}$"),
    ("report nosuch", 1, "nosuch does not exist; use a file written by"),
    ("report holder", 1, "holder is not an allium recording"),
    ("report .", 1, "is a directory"),
    ("report r.allium@garbage", 2, "invalid time '@garbage'.*@10m"),
    ("report s.allium@0s", 1, "s.allium has no snapshot at @0s or earlier"),
    ("report r.allium@5h", 1, "r.allium ends .* use an earlier time"),
    ("report r.allium r.allium", 2, "too many sources"),
    ("report r.allium --columns ,", 2, "--columns needs names of columns"),
    ("report r.allium --json --wide", 2, "--json prints everything: leave out --wide"),
    ("ps --json --columns pid", 2, "--json prints everything: leave out --columns"),
    ("report -p idler", 2, "invalid process id 'idler'.*running processes named idler: {pid} "),
    ("report -p {pid} r.allium", 2, "too many sources"),
    ("report -p {pid} -p {pid}", 2, "-p is given twice"),
    ("sites idler", 1, "running processes named idler: {pid}$"),
    ("watch {pid} --once --count 2", 2, "exclude each other"),
    ("sql -p {pid} 'SELECT 1'", 1, "is not observed"),
    ("snapshot idler", 2, "invalid process id 'idler'.*running processes named idler: {pid} "),
    ("snapshot {pid}", 1, "is not observed"),
    ("attach", 2, "missing PID"),
    ("attach idler", 2, "invalid process id 'idler'.*running processes named idler: {pid} "),
    ("attach 999999999", 1, "there is no process 999999999"),
    ("detach", 2, "missing PID"),
    ("detach {pid}", 1, "process {pid} is not attached to"),
    ("set idler off", 2, "invalid process id 'idler'.*running processes named idler: {pid} "),
    ("set {pid} of", 2, "unknown action 'of'"),
    ("set", 2, "missing PID"),
    ("sys -p idler", 2, "running processes named idler: {pid} "),
    ("sites {pid}", 1, "is not observed: restart it under allium run --sites"),
    ("sites r.allium", 1, "no accounts of sites"),
    ("sites {pid} --stacks --fail-if live+1%", 2, "lists calls as they are: leave out --fail-if"),
    ("sites r.allium r.allium --freed --fail-if live+1%", 2, "leave out --freed"),
    ("tags holder", 1, "has no tags"),
    # values
    ("report r.allium --by nosuch", 2, "use stack, function"),
    ("report r.allium --by func", 2, "did you mean function\\? Use stack, function"),
    ("report r.allium --sort peek", 2, "did you mean peak\\?"),
    ("report r.allium --by", 2, "option --by needs a value, GROUP: .*stack"),
    ("report r.allium --top many", 2, "invalid number 'many' for --top"),
    ("report r.allium --older-than 5x", 2, "invalid time '5x'.*500ms, 30s or 1h30m"),
    ("report r.allium --where func=main", 2, "write func:PATTERN"),
    ("report r.allium --callers nosuch", 1, "no function nosuch"),
    ("report r.allium --callers main --by file", 2, "exclude each other"),
    ("watch r.allium --every 1s", 2, "it is now --interval"),
    ("diff r.allium", 2, "missing second source"),
    ("diff r.allium r.allium --fail-if live>10%", 2, "column 5: .*'\\+'"),
    ("diff r.allium r.allium --fail-if peak-10%", 2, "column 5: .*'\\+'"),
    ("diff r.allium r.allium --fail-if heap+10%", 2, "use live, peak"),
    ("diff r.allium r.allium --fail-if live-objects+10%", 2, "use live, peak"),
    ("diff r.allium r.allium --fail-if peak+10", 2, "column 6: missing unit: use 10%, 10MiB, or 10B for bytes"),
    ("diff r.allium r.allium --coarse", 2, "--coarse needs --fail-if"),
    ("run -p 1", 2, "unknown option -p: a running process cannot be attached to: start it with allium run"),
    ("run --attach 1", 2, "cannot be attached to"),
    ("run --json r.json -o r.json -- true", 2, "name the same file"),
    ("export r.allium --flamegraph", 2, "use --folded live"),
    ("report r.allium -n 5", 2, "unknown option -n: use --top N"),
    ("ps -n 5", 2, "unknown option -n: use --top N"),
    ("ps --prune --top 5", 2, "leave out --top"),
    ("doctor -n 5", 2, r"unknown option -n \("),
    ("who 0xzz", 2, "invalid address '0xzz'"),
    ("who r.allium", 2, "r.allium is a file: use allium who r.allium ADDRESS"),
    ("sql r.allium", 2, "r.allium is a source: use allium sql r.allium 'SELECT"),
    # exports
    ("export r.allium", 2, "missing format: .*--pprof"),
    ("export r.allium --folded", 2, "needs a value, METRIC: .*live, peak"),
    ("export r.allium --folded -o x", 2, "use live, peak"),
    ("export r.allium --pprof --folded live", 2, "one format at a time"),
    ("export r.allium --pprof -o r.allium", 1, "is the recording that is exported"),
    # the machine
    ("sys -p {pid} --sort faults", 2, "the largest first: leave out --sort"),
    ("sys -p {pid} --all", 2, "leave out --all"),
    ("sys --interval 2s --duration 1s", 2, "--interval 2s is longer than --duration 1s: use a shorter --interval"),
    ("sys --count 2", 2, "--count needs --interval"),
    ("sys nosuch", 2, "unknown tool nosuch.*oomkill"),
    ("sys kmem --by nosuch", 2, "use "),
    ("sys --list --top 3", 2, "--list lists the tools: leave out --top"),
    ("sys kmem --explain --json", 2, "--explain observes nothing: leave out --json"),
    ("sys kmem --pid x --uid no-such-user", 2, "invalid --pid 'x': use a number; invalid --uid 'no-such-user': use "),
    ("sys kmem --from nosuch --json", 1, "nosuch does not exist"),
    ("doctor --fix", 2, "unknown option --fix"),
]


def answered(place):
    place.recording("1")
    place.allium("run", "--quiet", "--sites", "--period", "1", "-o", "s.allium", "--", program("holder"), "1")
    shutil.copy(program("holder"), place.path("holder"))
    shutil.copy(shutil.which("sleep"), place.path("idler"))
    before = sorted(os.listdir(place.folder))
    pid = place.start("./idler", "600").pid
    tap.wait_until(lambda: os.readlink("/proc/%d/exe" % pid).endswith("/idler"), 5, "the idler's program")
    wrong = []
    for words, code, pattern in MISTAKES:
        done = place.allium(*shlex.split(words.format(pid=pid)), code=None)
        line = done.err.rstrip("\n")
        if words and "\n" in line:
            wrong.append((words, "several lines", done.err))
        if done.returncode != code or not re.search(pattern.format(pid=pid), line) or done.out:
            wrong.append((words, done.returncode, line, done.out[:200]))
    check(not wrong, "answers that are not as wanted:", *("\n  " + repr(each) for each in wrong))
    equal(sorted(os.listdir(place.folder)), before, "files after all mistakes")


tap.main([("each mistake is answered with a line that helps, and with its code", placed(answered))])
