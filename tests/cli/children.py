# SPDX-License-Identifier: BSD-2-Clause
"""What a program under the agent starts: observed if it can be, else as if nobody observed, and named in the recording.
"""
import contextlib
import ctypes.util
import json
import os
import shutil
import sqlite3
import sys

sys.dont_write_bytecode = True
import recording_reader
import tap
from workdir import placed, program
from tap import built, check, equal

WAYS = 15  # of starter.c that start the program
KINDS = {  # how a program of each kind is called, and why it cannot be observed
    "child": None,
    "child_sanitized": "is built with a sanitizer",
    "child_sanitized_clang": "is built with a sanitizer",
    "child_static": "is statically linked",
    "child_own_malloc": "has an allocator of its own",
    "child_privileged": "gains privileges when it starts",
    "child_foreign": "is for another architecture, word size or C library",
    "script": None,
    "script_sanitized": "is built with a sanitizer",
    "not_executable": None,
}


def install(place):
    """A program of each kind in the place's folder."""
    for name in ("child", "child_own_malloc", "child_sanitized", "child_static"):
        shutil.copy(program(name), place.folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest_child.c")
    tap.succeed(["clang", "-fsanitize=address", "-o", place.path("child_sanitized_clang"), source])
    # Another C library's loader, by name: where it lies there is a link to the real one.
    loader = place.path("ld-other-x86-64.so.1")
    os.symlink("/lib64/ld-linux-x86-64.so.2", loader)
    tap.succeed(["gcc", "-o", place.path("child_foreign"), source, "-Wl,--dynamic-linker=" + loader])
    for name, interpreter in (("script", "child"), ("script_sanitized", "child_sanitized")):
        with open(place.path(name), "w") as file:
            file.write("#! %s\n" % place.path(interpreter))
    for name in ("script", "script_sanitized"):
        os.chmod(place.path(name), 0o755)
    shutil.copy(program("child_sanitized"), place.path("not_executable"))
    os.chmod(place.path("not_executable"), 0o644)


def started(place, way, kind, *before):
    env = dict(place.env, PATH=place.folder + ":" + os.environ["PATH"], ASAN_OPTIONS="detect_leaks=0", LSAN_OPTIONS="")
    return tap.run([*before, program("starter"), way, kind], cwd=place.folder, env=env)


def same(place, way, kind):
    bare = started(place, way, kind)
    name = "%s.%s.allium" % (kind, way)
    seen = started(place, way, kind, built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", name, "--")
    equal(seen.returncode, bare.returncode, "code of starter")
    equal(seen.stderr, bare.stderr, "stderr of %s by %s" % (kind, way))
    equal(seen.stdout, bare.stdout, "environments of %s by %s, and how they ended" % (kind, way))
    ran = bare.stdout.count(b"ASAN_OPTIONS=")
    unobserved = recording_reader.rows(place.path(name), """
        SELECT r.text, sum(processes) FROM unobserved JOIN string r ON r.id = reason GROUP BY reason HAVING sum(processes) > 0""")
    images = recording_reader.rows(
        place.path(name),
        "SELECT count(*) FROM image JOIN string s ON s.id = comm WHERE s.text NOT IN ('starter', 'sh')")[0][0]
    reason = KINDS[kind]
    equal(unobserved, [(reason, WAYS)] if reason else [], "what is said of %s by %s" % (kind, way))
    equal(images, 0 if reason else ran, "observed children of %s by %s" % (kind, way))
    return ran


def each_kind(place):
    """By each function that starts programs, from a child that has memory of its own and from one that shares ours."""
    install(place)
    if os.geteuid() == 0:
        shutil.copy(program("child"), place.path("child_privileged"))
        os.chown(place.path("child_privileged"), 65534, 65534)
        os.chmod(place.path("child_privileged"), 0o4755)
    for kind in KINDS:
        if not os.path.exists(place.path(kind)):
            continue
        for way in ("fork", "vfork"):
            ran = same(place, way, kind)
            equal(ran, 0 if kind == "not_executable" else WAYS, "children of %s that ran" % kind)


def faults(place):
    """What is passed is right, missing, or partly outside of memory; and environments of unusual form."""
    shutil.copy(program("child"), place.folder)
    env = dict(place.env, PATH=place.folder + ":" + os.environ["PATH"], LD_PRELOAD="")
    command = [program("exec_faults"), "child"]
    bare = tap.succeed(command, cwd=place.folder, env=env)
    seen = tap.succeed([built("ALLIUM"), "run", "--quiet", "--period", "1", "-o", "f.allium", "--", *command],
                       cwd=place.folder, env=env)
    equal(seen.stdout.split(b"\n"), bare.stdout.split(b"\n"), "results, errors and environments")
    equal(seen.stderr, bare.stderr, "stderr")
    ran = sum(bare.stdout.count(b"status %d00\n" % code) for code in (1, 7))  # 1: without its argument
    images = recording_reader.rows(place.path("f.allium"),
                                   "SELECT count(*) FROM image JOIN string s ON s.id = comm WHERE s.text = 'child'")
    check(ran >= 130, "only so many children ran:", ran)
    equal(images, [(ran,)], "observed children")


def empty_preload(place):
    """A program that is started with an empty LD_PRELOAD has one, and so have its children."""
    env = dict(place.env, LD_PRELOAD="")
    for words in [], [built("ALLIUM"), "run", "--quiet", "-o", "e.allium", "--"]:
        done = tap.succeed([*words, "sh", "-c", "env; env"], cwd=place.folder, env=env)
        equal(done.stdout.splitlines().count(b"LD_PRELOAD="), 2, "empty LD_PRELOADs after %s" % words)


def other_root(place):
    """In a root without our files."""
    if os.geteuid():
        return
    root = place.path("root")
    os.mkdir(root)
    shutil.copy(program("child_static"), root + "/child_static")
    shutil.copy(program("child"), root + "/child")
    for name in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        os.makedirs(root + os.path.dirname(name), exist_ok=True)
        shutil.copy(os.path.realpath(name), root + name)
    script = "import os; os.chroot('root'); os.chdir('/'); os.execv('/child', ['child', 'argument'])"
    done = place.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", "/usr/bin/python3", "-c", script,
                        code=7)
    check("LD_PRELOAD" not in done.out and not done.err, done.out, done.err)
    equal(recording_reader.rows(place.path("r.allium"), "SELECT lost_children FROM image"), [(1,)],
          "children that are counted")


def said(place):
    """The summary and the report name them."""
    install(place)
    script = "for n in 1 2 3; do ./child_sanitized argument; done; ./child_static argument; ./child argument"
    done = place.allium("run", "--period", "1", "-o", "r.allium", "--", "sh", "-c", script, code=7)
    check("  unobserved 3 starts of ./child_sanitized, which is built with a sanitizer\n"
          "             1 start of ./child_static, which is statically linked\n" in done.err, done.err)
    equal([name for _, names, files in os.walk(place.runtime) for name in names + files if name != "allium"], [],
          "what is left beside the recording")
    report = place.allium("report", "r.allium").out
    check("Not observed\n"
          "  3 starts of ./child_sanitized, which is built with a sanitizer\n"
          "  1 start of ./child_static, which is statically linked\n" in report, report)
    equal(json.loads(place.allium("report", "r.allium", "--json").out)["unobserved"],
          [{"program": "./child_sanitized", "reason": "is built with a sanitizer", "processes": 3},
           {"program": "./child_static", "reason": "is statically linked", "processes": 1}], "JSON")


def nothing_else(place):
    """All that a wrapper starts cannot be observed, and nothing of the wrapper is sampled: no bound is claimed for
    either. The shell asks for less than 1 MB: of 10,000 runs at the period below ten have a sample of it.
    """
    install(place)
    own, static = "1 start of ./child_own_malloc, which has an allocator of its own\n", "1 start of ./child_static, which is statically linked\n"
    for command, words, programs in (
        (
            ["sh", "-c", "./child_own_malloc argument; ./child_static argument"],
            own,
            ["./child_own_malloc", "./child_static"],
        ),
        (["sh", "-c", "./child_static argument"], static, ["./child_static"]),
        (["./child_own_malloc", "argument"], own, ["./child_own_malloc"]),
    ):
        done = place.allium("run", "--force", "--period", "1G", "-o", "r.allium", "--", *command, code=7)
        check("nothing was sampled" in done.err and "  unobserved " + words in done.err, "summary", done.err)
        report = place.allium("report", "r.allium").out
        check("\nNot observed\n  " + words in report, "report", report)
        check("certainty" not in report + done.err and "could not be observed" in report, "a bound", report)
        told = json.loads(place.allium("report", "r.allium", "--json").out)
        equal([it["program"] for it in told["unobserved"]], programs, "JSON")
        equal(told["total"]["allocated_bytes"], None, "bound in JSON")


def other_names(place):
    """Children whose allocator has a name of its own: one that only their symbol table has, one that they export."""
    shutil.copy(program("own_mi_malloc"), place.path("own_mi_malloc_stripped"))
    tap.succeed(["strip", place.path("own_mi_malloc_stripped")])
    own = [program("own_je_malloc"), program("own_mi_malloc"), place.path("own_mi_malloc_stripped")]
    for name in [*own, program("child")]:
        done = place.allium("run", "--force", "-o", "r.allium", "--", "sh", "-c", '"$@"; exit 0', "sh", name,
                            "argument")
        said = "1 start of %s, which has an allocator of its own\n" % name
        for text in done.err, place.allium("report", "r.allium").out:
            equal(said in text, name in own, "said of %s: %s" % (name, text))


def by_link(place):
    """A program that is executed by a descriptor, or by a link of /proc, is named as if by its path; one below such a link
    by the path that was given.
    """
    shutil.copy(program("child_static"), place.folder)
    path = place.path("child_static")
    for file, name in (
        ("fd", path),
        ("'/proc/self/fd/%d' % fd", path),
        ("'/proc/self/root%s'" % path, "/proc/self/root" + path),
    ):
        script = "import os; fd = os.open('child_static', os.O_RDONLY); "
        script += "os.execve(%s, ['child_static', 'argument'], os.environ)" % file
        done = place.allium("run", "--force", "-o", "r.allium", "--", "/usr/bin/python3", "-c", script, code=7)
        check("1 start of %s, which is statically linked" % name in done.err, "not said", done.err)


def without_ledger(place):
    """A process that can make no ledger is named with its reason, and so is what it starts without the agent."""
    install(place)
    small = "mount -t tmpfs -o size=4k,mode=1777 none /dev/shm && exec "
    run = [built("ALLIUM"), "run", "--force", "--period", "1", "-o", "r.allium", "--", "sh", "-c"]
    for before, script, reason in (
            ([], "ulimit -f 0; ", "may not make a file of a ledger's size (RLIMIT_FSIZE)"),
            ([*tap.unshare(), "sh", "-c", small + '"$@"', "sh"], "", "found no room for a ledger on its tmpfs")):
        env = dict(place.env)
        if before:
            del env["XDG_RUNTIME_DIR"]
        done = tap.run([*before, *run, script + "./child_static argument; ./child argument"], cwd=place.folder, env=env)
        equal(done.returncode, 7, "code, after " + done.stderr.decode())
        found = recording_reader.rows(place.path("r.allium"), """
            SELECT p.text, r.text, processes FROM unobserved JOIN string p ON p.id = program JOIN string r ON r.id = reason""")
        equal(sorted(row for row in found if row[0].startswith("./")),
              [("./child", reason, 1), ("./child_static", "is statically linked", 1)], "table")
        report = place.allium("report", "r.allium").out
        for text in report, done.stderr.decode():
            check("1 start of ./child, which " + reason in text and "certainty" not in text, "said", text)
        left = [name for _, names, files in os.walk(place.runtime) for name in names + files if name != "allium"]
        equal(left, [], "what is left beside the recording")


ELSEWHERE = r'''
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
if "NEW_ROOT" in os.environ:
    os.chroot(os.environ["NEW_ROOT"])
    os.chdir("/")
if os.fork() == 0:
    kept = [bytearray(1000) for _ in range(100)]  # samples: it would make a ledger
    sys.stdin.read()
    os._exit(0)
os.wait()
'''


def without_mark(place):
    """A process that can leave no file at all is found while it lives: in a root without a tmpfs, on a tmpfs without an
    inode.
    """
    reason = "may not make a file of a ledger's size (RLIMIT_FSIZE)"
    os.mkdir(place.path("root"))
    few = "mount -t tmpfs -o nr_inodes=4,mode=1777 none /dev/shm && exec "
    command = [
        built("ALLIUM"), "run", "--force", "--period", "1", "-o", "r.allium", "--", "/usr/bin/python3", "-c", ELSEWHERE
    ]
    ways = [(command, dict(place.env, NEW_ROOT=place.path("root")))] if os.geteuid() == 0 else []
    ways.append(([*tap.unshare(), "sh", "-c", few + '"$@"', "sh",
                  *command], {k: v
                              for k, v in place.env.items() if k != "XDG_RUNTIME_DIR"}))
    for words, env in ways:
        process = place.start(*words, env=env)

        def row():
            with contextlib.suppress(sqlite3.OperationalError):  # it may be in the making
                return recording_reader.rows(place.path("r.allium"), """
                    SELECT p.text, r.text, processes FROM unobserved JOIN string p ON p.id = program JOIN string r ON r.id = reason""")
        tap.wait_until(row, 20, "it is found")
        equal(row(), [("/usr/bin/python3", reason, 1)], "table")
        summary = process.communicate()[1].decode()
        equal(process.returncode, 0, "code, after " + summary)
        for text in place.allium("report", "r.allium").out, summary:
            check("1 start of /usr/bin/python3, which " + reason in text, "said", text)
        equal(json.loads(place.allium("report", "r.allium", "--json").out)["unobserved"],
              [{"program": "/usr/bin/python3", "reason": reason, "processes": 1}], "JSON")
        os.unlink(place.path("r.allium"))


def streams(place):
    """Threads open and close streams of popen all the time: none looks at what another has closed."""
    env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"))
    for _ in range(4):
        done = tap.run([program("popener"), "50"], cwd=place.folder, env=env)
        equal((done.returncode, done.stderr), (0, b""), "code of popener, and what it said")


def before_its_allocator(place):
    """Where the agent stands before an allocator, it does so in what is executed, too: behind it nothing would be seen.
    """
    library = ctypes.util.find_library("jemalloc")
    check(library, "jemalloc is missing")
    seen = {}
    for words in [], ["env"], ["env", "env"]:
        with tap.private_dir() as ledgers:
            tap.succeed([*words, program("holder"), "5"], cwd=place.folder, env=tap.agent_env(ledgers, 1, [library]))
            seen[len(words)] = [
                found["allocated_samples"] for found in tap.totals(ledgers) if found["comm"] == "holder"
            ]
    check(seen[0] and seen[0][0] >= 5, "samples", seen)
    equal(seen, dict.fromkeys(seen, seen[0]), "samples, by how many programs came in between")


tap.main([(name, placed(test, "/var/tmp")) for name, test in [
    ("each kind of program, started in each way, does what it does bare", each_kind),
    ("a call that is wrong fails as it does bare, and each environment arrives as it was given", faults),
    ("an empty LD_PRELOAD stays", empty_preload),
    ("a program in another root does", other_root),
    ("what was not observed is said", said),
    ("a run of which nothing could be observed says so", nothing_else),
    ("a child with an allocator of another name is named", other_names),
    ("a program that is executed by a link of /proc is named by its path", by_link),
    ("a process that can make no ledger is named", without_ledger),
    ("a process that can leave no file at all is named", without_mark),
    ("threads open and close streams of popen", streams),
    ("the agent keeps its place before an allocator", before_its_allocator),
]])
