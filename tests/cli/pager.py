# SPDX-License-Identifier: BSD-2-Clause
"""Screens on a terminal, and the pager: a pty stands for the terminal, small programs for pagers."""
import os
import signal
import sys

sys.dont_write_bytecode = True
import tap
from terminal import Terminal
from workdir import placed, program
from tap import check, equal


def show(place, *words, **how):
    return Terminal(place, words, **how).end()


def recorded(place):
    place.allium("run", "--quiet", "--period", "1", "-o", "a.allium", "--", program("asker"))


def file(place, name):
    with open(place.path(name)) as found:
        return found.read()


def plain(place, *words, **env):
    return place.allium(*words, env={"LC_ALL": "C", **env}).out


def long_and_short(place):
    """A long screen goes to the pager whole, a short one and one for nobody's eyes does not."""
    recorded(place)
    wide = ("report", "--by", "function")
    keep = "cat >paged"
    shown, code = show(place, *wide, columns=120, PAGER=keep, NO_COLOR="1")
    equal((shown, code), ("", 0), "on the terminal, and its code")
    equal(file(place, "paged"), plain(place, *wide), "what the pager got")
    show(place, *wide, columns=120, PAGER=keep)
    check("\x1b[" in file(place, "paged"), "no colours for the pager")
    os.remove(place.path("paged"))
    whole = plain(place, *wide)
    rows = whole.count("\n")
    for words, how in ((wide, {"rows": rows + 1, "PAGER": keep}), (wide, {"PAGER": ""}), (wide, {"PAGER": "cat"}),
                       (wide, {"PAGER": keep, "TERM": "dumb"}), ((*wide, "--no-pager"), {"PAGER": keep})):
        shown, code = show(place, *words, columns=120, NO_COLOR="1", **how)
        equal((shown, code), (whole, 0), "screen with %s" % how)
        check(not os.path.exists(place.path("paged")), "paged with", how)
    show(place, *wide, rows=rows, columns=120, PAGER=keep)
    check(os.path.exists(place.path("paged")), "one row too long, and not paged")
    os.remove(place.path("paged"))
    show(place, "sql", "SELECT %s AS x" % ("'%s'" % ("y" * 1500)), rows=10, columns=100, PAGER=keep)
    check(os.path.exists(place.path("paged")), "two long lines are more rows than two")


def commands(place):
    """Each command that has long screens, with its code."""
    recorded(place)
    place.allium("run", "--quiet", "--period", "1", "-o", "b.allium", "--", program("holder"), "1")
    for words, want in (
        (("diff", "b.allium", "a.allium"), 0),
        (("diff", "b.allium", "a.allium", "--fail-if", "live+1%"), 4),
        (("frees", "a.allium"), 0),
        (("who", "a.allium", "1"), 1),
        (("sql", "a.allium", "SELECT * FROM string"), 0),
        (("report", "a.allium", "--json"), 0),
    ):
        shown, code = show(place, *words, rows=3, columns=120, PAGER="cat >paged", NO_COLOR="1")
        equal(code, want, "code of %s" % (words,))
        out = place.allium(*words, env={"LC_ALL": "C"}, code=want)
        equal(file(place, "paged"), out.out, "what the pager got of %s" % (words,))
        equal(shown, out.err, "what else %s shows" % (words,))
        os.remove(place.path("paged"))
    shown, code = show(place, "report", "--callers", "nobody", "a.allium", PAGER="cat >paged")
    check(code == 1 and "no function nobody" in shown and not os.path.exists(place.path("paged")), "an error:", shown)


def left_early(place):
    recorded(place)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    for words, want in ((("report",), 0), (("who", "a.allium", "1"), 1), (("sql", "a.allium", endless), 0)):
        shown, code = show(place, *words, rows=3, PAGER="head -n 1 >first")
        equal((shown, code), ("", want), "left early: %s" % (words,))
        equal(file(place, "first").count("\n"), 1, "lines that were read")


def no_pager_there(place):
    """A pager that is not there costs nothing but a line."""
    recorded(place)
    whole = plain(place, "report", "a.allium")
    for ignored in ((), (signal.SIGCHLD,)):
        shown, code = show(place, "report", "a.allium", columns=120, ignored=ignored, PAGER="/no/such/pager -x",
                           NO_COLOR="1")
        check(code == 0 and shown.endswith(whole), "code %d, and" % code, shown)
        check("allium: the pager /no/such/pager -x could not be run" in shown, "not said:", shown)
    shown, code = show(place, "report", "a.allium", columns=120, PAGER=None, PATH="/nonexistent", NO_COLOR="1")
    equal((shown, code), (whole, 0), "without less")


def less_by_default(place):
    recorded(place)
    os.mkdir(place.path("bin"))
    with open(place.path("bin/less"), "w") as script:
        script.write('#!/bin/sh\necho "$LESS" >%s\nexec cat\n' % place.path("options"))
    os.chmod(place.path("bin/less"), 0o755)
    path = place.path("bin") + ":" + os.environ["PATH"]
    for less, want in ((None, "FRX\n"), ("-S", "-S\n")):
        shown, code = show(place, "report", columns=120, PAGER=None, LESS=less, PATH=path, NO_COLOR="1")
        equal((shown, code), (plain(place, "report"), 0), "screen")
        equal(file(place, "options"), want, "LESS")


def interrupted(place):
    """^C is the pager's own affair: allium waits for it, and for all that it has still to say."""
    recorded(place)
    pager = "trap '' INT; cat >got; touch reading; sleep 1; touch over"
    terminal = Terminal(place, ("report", "--top", "0"), PAGER=pager, NO_COLOR="1", columns=120)
    terminal.read(place.path("reading"))
    os.write(terminal.fd, b"\x03")
    _, code = terminal.end()
    check(os.path.exists(place.path("over")), "it did not wait for the pager")
    equal(code, 0, "code")
    equal(file(place, "got"), plain(place, "report", "--top", "0"), "what the pager got")


tap.main([(name, placed(function)) for name, function in [
    ("a long screen goes through the pager, a short one does not", long_and_short),
    ("every command with long screens has a pager, and its own code", commands),
    ("a pager may be left early", left_early),
    ("a pager that cannot be run is told, and the screen shown", no_pager_there),
    ("without PAGER it is less, with LESS=FRX", less_by_default),
    ("an interrupt is for the pager", interrupted),
]])
