#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where in the kernel's source: rows by file and directory against rows by call site, lines of calls and stacks, and
which file is taken for the kernel's. The debug information is of the test's own (vmlinux.py), of functions that open
files, make pipes and timers.
"""
import contextlib
import http.server
import json
import os
import re
import sys
import threading

sys.dont_write_bytecode = True
import lib
import vmlinux
from lib import built, check, equal, maker, only, private_dir, tap, tool

N, PIPES, TIMERS = 300, 40, 20
WORK = ("files %d" % N, "pipes %d" % PIPES, "timers %d" % TIMERS)
FILES = {"fs/file_table.c": ["alloc_empty_file"], "fs/pipe.c": ["alloc_pipe_info"],
         "kernel/time/posix-timers.c": ["do_timer_create", "alloc_posix_timer"], "mm/memory.c": ["handle_mm_fault"]}
SUMS = ("allocations", "frees", "allocated_bytes", "requested_bytes")
ADVICE = "allium: the files of the kernel's source are not known: install"


def files_here():
    """FILES, of functions that this kernel has under a name of their own."""
    there = vmlinux.symbols()
    return {
        path: [name for name in names if name in there]
        for path, names in FILES.items() if any(name in there for name in names)
    }


@contextlib.contextmanager
def made(**how):
    """A vmlinux and a folder for the cache of names, which would know what an earlier one told."""
    with private_dir() as folder:
        files = files_here()
        yield vmlinux.make(folder, files, **how), {"XDG_CACHE_HOME": folder}, files


def clean(site):
    """The function of a call site, as rows by function have it."""
    name, _, module = site.replace(" (helper)", "").partition(" ")
    return re.sub(r"(\.(part|isra|constprop|cold|llvm)(\.\d+)?)*\+0x[0-9a-f]+$", "",
                  name) + (" " + module if module else "")


def expected(rows, files, directory):
    """Sums of rows by call site, by what vmlinux tells of them."""
    sums = {}
    for row in rows:
        symbol = row["call_site"].partition("+")[0]
        path = next((path for path, names in files.items() if symbol in names), None)
        key = "[unknown] " + clean(row["call_site"]) if not path else os.path.dirname(path) if directory else path
        sums[key] = tuple(a + row[name] for a, name in zip(sums.get(key, (0,) * len(SUMS)), SUMS))
    return sums


def added_up(part):
    """Rows are the sums of those of call sites, of a run beside it."""
    with made() as (path, env, files), maker() as m:
        with tool("kmem", "-p", m.pid, "--by", part, "--live", "--vmlinux", path,
                  env=env) as it, tool("kmem", "-p", m.pid) as beside:
            m.do(*WORK, "touch 50", "untimers")
            it.stop()
            beside.stop()
    equal({row[part]: tuple(row[key] for key in SUMS)
           for row in it.rows}, expected(beside.rows, files, part == "directory"), "rows")
    opening = only(it.rows, **{part: "fs" if part == "directory" else "fs/file_table.c"})
    check(opening["live_objects"] >= N + 2 * PIPES, "files that are open:", opening)
    check(any(row[part].startswith("[unknown] ") for row in it.rows), "no function is unknown")


def lines_of_calls():
    """The line is that of the call, not of the header's function that is inlined there; what is not known has none."""
    with made() as (path, env, files), maker() as m:
        with tool("kmem", "-p", m.pid, "--lines", "--vmlinux", path, env=env) as it, tool(
            "kmem", "-p", m.pid
        ) as beside:
            m.do(*WORK)
            it.stop()
            beside.stop()
    file_of = {name: path for path, names in files.items() for name in names}
    want = []
    for row in beside.rows:
        file = file_of.get(row["call_site"].partition("+")[0])
        want.append(row["call_site"] + (" (%s:%d)" % (file, vmlinux.LINE) if file else ""))
    equal(sorted(row["call_site"] for row in it.rows), sorted(want), "call sites")
    check(
        sum(" (fs/file_table.c:%d)" % vmlinux.LINE in site for site in want) == 1, "files are not made in one place:",
        want)


def lines_of_stacks():
    """Each function that is inlined has a line of its own before the one that has the code; flame graphs have its name
    alone.
    """
    with made() as (path, env, _), maker() as m:
        with tool("kmem", "-p", m.pid, "--by", "stack", "--lines", "--vmlinux", path, env=env) as it:
            m.do("files %d" % N)
            it.stop()
        opening = [
            row["kernel_stack"] for row in it.rows
            if row["allocations"] >= N // 2 and "alloc_empty_file" in str(row["kernel_stack"])
        ]
        check(opening, it.rows)
        frames = opening[0]
        at = next(i for i, frame in enumerate(frames) if frame.startswith("alloc_empty_file+0x"))
        check(frames[at].endswith(" (fs/file_table.c:%d)" % vmlinux.LINE), frames)
        equal(frames[at - 1], "kmalloc (%s:%d)" % (vmlinux.HEADER, vmlinux.INLINED_LINE), "the inlined function")
        check(not any("(" in frame for frame in frames if "alloc_empty_file" not in frame and "kmalloc" not in frame),
              frames)
        done = tap.run(
            lib.with_tracefs([
                built("ALLIUM"), "sys", "kmem", "--by", "stack", "--folded", "--lines", "--vmlinux", path, "--quiet",
                "--", "cat", "/dev/null"
            ]), env={**os.environ, **env})
    equal((done.returncode, done.stderr), (0, b""), "--folded")
    folded = done.stdout.decode()
    check(";alloc_empty_file_[k];kmalloc_[k] " in folded or ";alloc_empty_file_[k];kmalloc_[k];" in folded,
          folded[:2000])


def lines_of_pages():
    """Of another tool, whose rows are by stack without being asked: pages that are touched come through
    handle_mm_fault().
    """
    with made() as (path, env, _), maker() as m:
        with tool("kpages", "-p", m.pid, "--lines", "--vmlinux", path, env=env) as it:
            m.do("touch 200")
            it.stop()
    faulting = [
        frame for row in it.rows if row["allocations"] >= 100 for frame in row["kernel_stack"] or ()
        if frame.startswith("handle_mm_fault+0x")
    ]
    check(faulting, "no page fault:", it.rows)
    check(all(frame.endswith(" (mm/memory.c:%d)" % vmlinux.LINE) for frame in faulting), faulting)


def recorded():
    """A recording has directories, and is shown by them."""
    with made() as (path, env, _), maker() as m, private_dir() as folder:
        done = tap.run(
            lib.with_tracefs([
                built("ALLIUM"), "sys", "kmem", "--by", "directory", "--vmlinux", path, "-o", folder + "/r.allium",
                "--quiet", "--", "cat", "/dev/null"
            ]), env={**os.environ, **env})
        equal((done.returncode, done.stderr), (0, b""), "-o")
        again = tap.succeed([built("ALLIUM"), "sys", "kmem", "--json", "--from", folder + "/r.allium"])
        rows = lib.stream(again.stdout, "kmem")
    check(only(rows[:-1], directory="fs")["allocations"] > 0, rows)


def run_kmem(*options, before=(), env=None, command=("true",)):
    done = tap.run([*before, built("ALLIUM"), "sys", "kmem", "--json", *options, "--", *command],
                   env={**os.environ, **(env or {})})
    rows = lib.stream(done.stdout, "kmem")[:-1] if done.stdout else []
    return done.returncode, rows, done.stderr.decode()


def refused(path, words):
    code, rows, errors = run_kmem("--by", "file", "--vmlinux", path)
    equal((code, rows), (2, []), "exit code and rows")
    check(re.fullmatch("allium: --vmlinux: .*%s.*\n" % re.escape(words), errors), "not so refused:", errors)


def files_that_are_not_it():
    """Another kernel's, one that is cut short, one without symbols or debug information, a file that is not ELF: one line
    each.
    """
    with made() as (path, _, _):
        folder = os.path.dirname(path)
        for name, options in (("bare", ["--strip-debug"]), ("nameless", ["--strip-symbol=_stext"])):
            tap.succeed(["objcopy", *options, path, folder + "/" + name])
        refused(folder + "/bare", "no debug information")
        refused(folder + "/nameless", "no symbol _stext")
        refused(folder + "/none-such", "No such file")
        refused(folder, "not an ELF file")
        with open(path, "rb") as file:
            whole = file.read()
        for part in (0, 3, 64, len(whole) // 2):
            with open(folder + "/cut", "wb") as file:
                file.write(whole[:part])
            code, _, errors = run_kmem("--by", "file", "--vmlinux", folder + "/cut")
            check(code == 2 and len(errors.splitlines()) == 1, part, "bytes:", code, errors)
    with made(the_id="0x" + "5a" * 20) as (path, _, _):
        refused(path, "belongs to another kernel")


def a_file_that_cannot_be_compared():
    """Without a build id it is taken, as it was named, and that is said."""
    with made(the_id="none") as (path, env, _):
        code, rows, errors = run_kmem("--by", "file", "--vmlinux", path, env=env, command=("cat", "/dev/null"))
    equal(code, 0, "exit code (%s)" % errors)
    check("may be of another kernel: it has no build id to compare" in errors, errors)
    check(only(rows, file="fs/file_table.c")["allocations"] > 0, rows)


def none_is_here():
    """Rows are by function then, and marked; a line says what would help."""
    code, rows, errors = run_kmem("--by", "directory", before=vmlinux.alone(), command=("cat", "/dev/null"))
    equal(code, 0, "exit code (%s)" % errors)
    equal([line.startswith(ADVICE) for line in errors.splitlines()].count(True), 1, errors)
    check("linux-image-%s-dbg" % os.uname().release in errors, errors)
    check(all(row["directory"].startswith("[unknown] ") for row in rows), rows)
    check(only(rows, directory="[unknown] alloc_empty_file")["allocations"] > 0, rows)
    code, _, errors = run_kmem("--by", "directory", "--quiet", before=vmlinux.alone())
    equal((code, errors), (0, ""), "--quiet")


def it_is_found():
    """Where distributions put it; and doctor says so, or what is missing."""
    def doctor(*commands):
        done = tap.run([*vmlinux.alone(*commands), built("ALLIUM"), "doctor", "--json"])
        return only(json.loads(done.stdout)["rows"], what="kernel source")
    with made() as (path, env, _):
        place = "/usr/lib/debug/boot/vmlinux-" + os.uname().release
        put = "mkdir -p /usr/lib/debug/boot && cp %s %s" % (path, place)
        code, rows, errors = run_kmem("--by", "directory", before=vmlinux.alone(put), env=env,
                                      command=("cat", "/dev/null"))
        found, missing = doctor(put), doctor()
    equal(code, 0, "exit code (%s)" % errors)
    check(ADVICE not in errors, errors)
    check(only(rows, directory="fs")["allocations"] > 0, rows)
    equal((found["works"], found["found"]), ("yes", place), "doctor")
    equal(missing["works"], "no", "doctor without it")
    check("linux-image-%s-dbg" % os.uname().release in missing["what_to_do"], missing)


def it_is_sent():
    """By a server of DEBUGINFOD_URLS, when none is installed."""
    asked = []
    with made() as (path, env, _):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                with open(path, "rb") as file:
                    data = file.read() if self.path == "/buildid/%s/debuginfo" % vmlinux.build_id() else b""
                self.send_response(200 if data else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {**env, "DEBUGINFOD_URLS": "http://127.0.0.1:%d" % server.server_port, "HOME": env["XDG_CACHE_HOME"]}
        try:
            words = ("--by", "directory", "--debuginfod")
            code, rows, errors = run_kmem(*words, "wait", before=vmlinux.alone(), env=env, command=("cat", "/dev/null"))
            count = len(asked)
            silent = run_kmem(*words, "off", before=vmlinux.alone(), env=env)
        finally:
            server.shutdown()
    equal(code, 0, "exit code (%s)" % errors)
    check(count, "the server was not asked:", errors)
    check(only(rows, directory="fs")["allocations"] > 0, rows)
    check(ADVICE in silent[2] and len(asked) == count, "--debuginfod off:", asked, silent[2])


def does_nothing():
    """Options that would do nothing are refused."""
    for words, why in ((["kmem", "--by", "process", "--lines"], "rows by process name no code"),
                       (["kmem", "--by", "file", "--lines"], "rows by file have no lines"),
                       (["kmem", "--vmlinux", "x"], "--vmlinux needs --lines"),
                       (["drsnoop", "--vmlinux", "x"], "--vmlinux needs --lines"),
                       (["drsnoop", "--lines", "--stacks", "user"], "--lines needs kernel stacks"),
                       (["oomkill", "--lines"], "unknown option --lines"),
                       (["kmem", "--from", "x", "--vmlinux", "x"], "leave out --vmlinux")):
        done = tap.run([built("ALLIUM"), "sys", *words])
        equal(done.returncode, 2, "exit code of %s" % words)
        check(why in done.stderr.decode() and len(done.stderr.splitlines()) == 1, words, done.stderr)


lib.main([
    ("rows by file add up those by call site", lambda: added_up("file")),
    ("rows by directory add up those by call site", lambda: added_up("directory")),
    ("calls have the line of who includes the header", lines_of_calls),
    ("stacks have lines, and inlined functions", lines_of_stacks),
    ("stacks of pages have lines", lines_of_pages),
    ("recordings keep directories", recorded),
    ("a file that is not the kernel's is refused in one line", files_that_are_not_it),
    ("a file without a build id is taken when it is named, and that is said", a_file_that_cannot_be_compared),
    ("without one rows stay by function, and a line says what would help", none_is_here),
    ("one that is installed is found, and doctor says so", it_is_found),
    ("a server is asked for it, if it may be", it_is_sent),
    ("options that would do nothing are refused", does_nothing),
])
