# SPDX-License-Identifier: BSD-2-Clause
"""Programs that are built with <allium/tag.h>: accounts equal what the programs count themselves, to the byte."""
import ctypes.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import agent_env, built, check, equal, own_counts, pick, private_dir, run, succeed, totals, wait_until

INCLUDE = os.path.join(HERE, "..", "..", "include")
LIBRARY = built("TEST_TAGS_LIBRARY")
SCRATCH = tempfile.TemporaryDirectory(prefix="allium-tags-")
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
HOOKS = ["-include", "allium/malloc_hooks.h"]


def compiled(compiler, options, sources, name, link=True):
    """Builds as a user would, without a word from the compiler; -> the file."""
    out = os.path.join(SCRATCH.name, "%s-%s-%s" % (name, os.path.basename(compiler), "".join(options).strip("-")))
    if os.path.exists(out):
        return out
    objects = []
    for source in sources:
        hooks = [] if source.startswith("foreign") else HOOKS
        target = "%s.%s.o" % (out, source)
        done = succeed(
            [compiler, "-g", *options, *STRICT, "-I", INCLUDE, *hooks, "-c",
             os.path.join(HERE, source), "-o", target])
        equal(done.stderr.decode(), "", "what the compiler says")
        objects.append(target)
    succeed([
        compiler, *options, *objects, "-o", out, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY), "-lpthread", "-ldl"
    ])
    return out


def churn(compiler="gcc", options=("-O2",)):
    return compiled(compiler, list(options), ["churn.c", "foreign.c"], "churn")


def accounts(ledgers, pid, *options):
    """-> (rows, what stands on stderr)"""
    done = succeed([built("ALLIUM"), "tags", str(pid), "--json", "--top", "0", *options],
                   env=dict(os.environ, ALLIUM_DIR=ledgers))
    return json.loads(done.stdout)["rows"], done.stderr.decode()


def ledgers_in(directory):
    return [name for name in os.listdir(directory) if name.endswith(".tags")]


def by_function(rows):
    """What places of a function add up to."""
    sums = {}
    for row in rows:
        have = sums.get(row["function"], (0, 0, 0, 0))
        numbers = (row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"])
        sums[row["function"]] = tuple(a + b for a, b in zip(have, numbers))
    return sums


def churned(program, threads, *words, env=None):
    """Runs it, and compares each of its processes; -> stderr of the readings."""
    with private_dir() as ledgers:
        env = dict(env or os.environ, ALLIUM_DIR=ledgers)
        done = succeed(
            [program, str(threads),
             str(pick(20_000, 500_000) // (50 if "again" in words else 1)), *words], env=env)
        counts, said = own_counts(done.stdout.decode()), ""
        for pid, places in counts.items():
            rows, text = accounts(ledgers, pid)
            equal(by_function(rows), places, "places of process %d" % pid)
            said += text
        return len(counts), said


def exact(compiler, *options):
    def test():
        equal(churned(churn(compiler, options), 4), (1, ""), "processes, and losses")
    return test


def crowds():
    for threads in 1, 15, 16, 40:
        equal(churned(churn(), threads), (1, ""), "processes, and losses, with %d threads" % threads)


def turnover():
    """Hundreds of threads one after the other: each takes the words of one that has ended."""
    for threads in 2, 14, 30:
        equal(churned(churn(), threads, "again"), (1, ""), "processes, and losses, with %d threads" % threads)


def children():
    for threads in 1, 20:
        equal(churned(churn(), threads, "fork"), (2, ""), "processes, and losses")


def allocators():
    found = 0
    for name in "jemalloc", "tcmalloc_minimal", "mimalloc":
        library = ctypes.util.find_library(name)
        if not library:
            continue
        found += 1
        equal(churned(churn(), 4, env=dict(os.environ, LD_PRELOAD=library)), (1, ""), "with " + name)
    check(found == 3, "allocators missing:", 3 - found)


def foreign():
    """Of what code without tags freed, some addresses came again and are known; the others are live to this day."""
    with private_dir() as ledgers:
        done = succeed([churn(), "4", "20000"], env=dict(os.environ, ALLIUM_DIR=ledgers, FOREIGN="1"))
        (pid, places), = own_counts(done.stdout.decode()).items()
        rows, said = accounts(ledgers, pid)
        unseen = int(re.search(r"([\d,]+) objects were freed by code without tags", said).group(1).replace(",", ""))
        have = by_function(rows)
        for place, want in places.items():
            equal(have[place][:2], want[:2], place)
            check(have[place][2] >= want[2] and have[place][3] >= want[3], "too few are live:", place, have[place],
                  want)
        left = sum(have[place][2] - want[2] for place, want in places.items())
        check(unseen > 500, "few frees came to light:", unseen)
        check(left < unseen, "most frees were missed:", left, "of", left + unseen)


def beside_the_agent():
    """Each keeps its own books, and both are whole."""
    with private_dir() as ledgers:
        done = succeed([churn(), "4", "20000"], env=agent_env(ledgers, 1))
        (pid, places), = own_counts(done.stdout.decode()).items()
        rows, said = accounts(ledgers, pid)
        equal((by_function(rows), said), (places, ""), "accounts")
        ledger, = [found for found in totals(ledgers) if found["pid"] == pid]
        tap.no_losses(ledger)
        check(ledger["live_seen_bytes"] >= sum(place[3] for place in places.values()), "the agent's live bytes", ledger)


def read_while_it_runs():
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        p = subprocess.Popen([churn(), "4", "20000", "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            lines = "".join(p.stdout.readline().decode() for _ in range(8))
            places, = own_counts(lines).values()
            equal(by_function(accounts(ledgers, p.pid)[0]), places, "of a process that runs")
            p.send_signal(signal.SIGKILL)
            p.wait()
            equal(by_function(accounts(ledgers, p.pid)[0]), places, "of one that was killed")
        finally:
            p.kill()
            p.communicate()


def places(compiler, *options):
    """Rows of two units of C++, against the list that stands in their comments."""
    def test():
        program = compiled(compiler, list(options), ["places.cc", "places_other.cc"], "places")
        with private_dir() as ledgers:
            p = subprocess.Popen([program], env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal(p.wait(60), 0, "its code")
            rows, said = accounts(ledgers, p.pid)
        equal(said, "", "losses")
        lines = {}
        for name in "places.h", "places.cc", "places_other.cc":
            with open(os.path.join(HERE, name)) as file:
                for number, line in enumerate(file, 1):
                    if "; // " in line:
                        lines["%s:%d" % (name, number)] = line.split("; // ")[1].split()[0]
        have = {lines.get(os.path.basename(row["place"]), row["place"]):
                (row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"]) for row in rows}
        # the arena's are accounts of bytes: two that came, one that went
        want = {"ordinary": (1, 100, 1, 100), "several": (5, 57, 4, 45), "twin": (2, 13, 2, 13), "other": (1, 9, 0, 0),
                "arena": (2, 12288, 1, 8192)}
        equal(have, want, "rows")
        equal([(row["class"], row["name"]) for row in rows if "arena" == lines[os.path.basename(row["place"])]],
              [("arena", "pages")], "its words")
    return test


def unloaded():
    plugin = os.path.join(SCRATCH.name, "plugin.so")
    succeed([
        "gcc", "-g", "-O2", "-fPIC", "-shared", *STRICT, "-I", INCLUDE, *HOOKS,
        os.path.join(HERE, "plugin.c"), "-o", plugin, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    program = compiled("gcc", ["-O2"], ["loads.c"], "loads")
    with private_dir() as ledgers:
        p = subprocess.Popen([program, plugin], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(p.wait(60), 0, "its code")
        rows, said = accounts(ledgers, p.pid)
    equal(said, "", "losses")
    equal(by_function(rows), {"plugin_make": (3, 600, 2, 500), "main": (1, 50, 0, 0)}, "rows")


def plugin_of(name, *options):
    out = os.path.join(SCRATCH.name, name)
    succeed([
        "gcc", "-g", "-O2", "-fPIC", "-shared", *options, *STRICT, "-I", INCLUDE, *HOOKS,
        os.path.join(HERE, "plugin.c"), "-o", out, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    return out


def reloaded():
    """A library that is loaded again elsewhere is the same module; another at its address is none of it. In a fork
    child, too.
    """
    first, second = plugin_of("first.so"), plugin_of("second.so")
    program = compiled("gcc", ["-O2"], ["reloads.c"], "reloads")
    with private_dir() as ledgers:
        p = subprocess.Popen([program, first, second], env=dict(os.environ, ALLIUM_DIR=ledgers), stdout=subprocess.PIPE)
        *places, child = p.communicate(timeout=60)[0].decode().split()
        equal(p.returncode, 0, "its code")
        check(places[0] != places[1] and places[2] in places[:2], "where they lay:", places)
        rows, said = accounts(ledgers, p.pid)
        of_child, said_of_child = accounts(ledgers, int(child))
    equal((said, said_of_child), ("", ""), "losses")
    numbers = lambda row: (os.path.basename(row["module"]), row["allocations"], row["allocated_bytes"], row[
        "live_objects"], row["live_bytes"])
    equal(sorted(map(numbers, rows)), [("first.so", 5, 3600, 3, 2500), ("reloads-gcc-O2", 1, 4096, 0, 0),
                                       ("second.so", 4, 100, 3, 90)], "rows")
    equal(list(map(numbers, of_child)), [("second.so", 1, 7, 1, 7)], "rows of the child")


def of_libraries():
    """Shared libraries have rows of their own, also of places in headers; a static one is part of what it is linked
    into.
    """
    header, source, main = (os.path.join(SCRATCH.name, name) for name in ("common.h", "part.c", "whole.c"))
    with open(header, "w") as file:
        file.write("#include <stdlib.h>\nstatic inline void *common(size_t n)\n{\n    return malloc(n);\n}\n")
    with open(source, "w") as file:
        file.write('#include "common.h"\nvoid *PART(size_t n);\nvoid *PART(size_t n)\n{\n    return common(n);\n}\n')
    with open(main, "w") as file:
        file.write(
            '#include "common.h"\nvoid *of_static(size_t); void *of_shared(size_t);\nint main(void)\n{\n    of_static(1);\n    of_shared(20);\n'
            '    return !common(300) | !of_shared(4000);\n}\n')
    flags = ["gcc", "-g", "-O2", "-fPIC", *STRICT, "-I", INCLUDE, *HOOKS]
    at = lambda name: os.path.join(SCRATCH.name, name)
    succeed([*flags, "-DPART=of_static", "-c", source, "-o", at("static.o")])
    succeed(["ar", "rc", at("libpart.a"), at("static.o")])
    succeed([*flags, "-DPART=of_shared", "-shared", source, "-o", at("libshared.so"), LIBRARY])
    succeed([*flags, main, at("libpart.a"), at("libshared.so"), "-o", at("whole"), LIBRARY,
             "-Wl,-rpath,%s:%s" % (SCRATCH.name, os.path.dirname(LIBRARY))])
    with private_dir() as ledgers:
        p = subprocess.Popen([at("whole")], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(p.wait(60), 0, "its code")
        rows, said = accounts(ledgers, p.pid)
    equal(said, "", "losses")
    equal(
        sorted((os.path.basename(row["module"]), row["place"].split("/")[-1], row["allocations"], row["live_bytes"])
               for row in rows), [("libshared.so", "common.h:4", 2, 4020), ("whole", "common.h:4", 2, 301)], "rows")
    for module in "whole", "libshared.so":
        done = succeed([built("ALLIUM"), "tags", at(module), "--json"])
        equal([(row["place"].split("/")[-1], os.path.basename(row["module"]))
               for row in json.loads(done.stdout)["rows"]], [("common.h:4", module)], "of the file")


def little_room():
    """Objects cannot be followed without a table of their addresses, which is not taken from a program that has little
    room.
    """
    with private_dir() as ledgers:
        limit = ["prlimit", "--as=%d" % (1 << 30)]
        done = succeed([*limit, churn(), "1", "2000"], env=dict(os.environ, ALLIUM_DIR=ledgers))
        (pid, places), = own_counts(done.stdout.decode()).items()
        rows, said = accounts(ledgers, pid)
        equal(rows, [], "rows")
        objects = sum(place[0] for place in places.values())
        equal(said.splitlines()[0],
              "allium: {:,} objects are charged to no tag: there was no memory to follow them".format(objects),
              "losses")


def locked_in_memory():
    """mlockall(2) backs what is mapped, and counts it: not our tables, of which next to nothing is touched."""
    source = os.path.join(SCRATCH.name, "locks.c")
    with open(source, "w") as file:
        file.write(
            '#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\nstatic char big[20 << 20] = {1};\n'
            'int main(int n, char **v) { void *volatile before = malloc(10 << 20); (void)n; big[5]++;\n'
            'if (mlockall(atoi(v[1]))) { perror("mlockall"); return 2; } void *volatile p = malloc(10 << 20); char line[200];\n'
            'FILE *f = fopen("/proc/self/status", "r"); while (fgets(line, sizeof(line), f)) fputs(line, stdout);\n'
            'fclose(f); free(p); free(before); return 0; }\n')
    plain, tagged = os.path.join(SCRATCH.name, "locks-plain"), os.path.join(SCRATCH.name, "locks")
    succeed(["gcc", "-g", "-O1", source, "-o", plain])
    succeed([
        "gcc", "-g", "-O1", "-I", INCLUDE, *HOOKS, source, "-o", tagged, LIBRARY,
        "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    locked = {}
    with private_dir() as ledgers:
        for flags in "1", "2", "3", "5", "7":
            for program in plain, tagged:
                done = succeed([program, flags], env=dict(os.environ, ALLIUM_DIR=ledgers))
                numbers = dict(re.findall(r"Vm(RSS|Lck):\s+(\d+) kB", done.stdout.decode()))
                locked[program] = int(numbers["RSS"]), int(numbers["Lck"])
            for have, want, what in zip(locked[tagged], locked[plain], ("resident", "locked")):
                check(want - 100 <= have <= want + 4096, "flags", flags, what, "KiB: have", have, "and without tags",
                      want)
        limits = [
            "prlimit",
            "--memlock=%d" % (100 << 20), "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"
        ]
        if os.geteuid() == 0:
            for memlock, code in (100 << 20, 0), (1 << 20, 2):
                limits[1] = "--memlock=%d" % memlock
                if run([*limits, "true"]).returncode:
                    continue  # it may not be raised here
                for program in plain, tagged:
                    done = run([*limits, program, "3"], env=dict(os.environ, ALLIUM_DIR=ledgers))
                    equal((done.returncode, done.stderr),
                          (code, b"mlockall: Cannot allocate memory\n" if code else b""), "with a limit")
        done = run([tagged, "8"], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal((done.returncode, done.stderr), (2, b"mlockall: Invalid argument\n"), "with nonsense")


def gone_with_its_library():
    """A library with tags that brings ours along and is unloaded: threads that used it still end well."""
    source, program = os.path.join(SCRATCH.name, "thread.c"), os.path.join(SCRATCH.name, "thread")
    with open(source, "w") as file:
        file.write(
            '#include <dlfcn.h>\n#include <pthread.h>\n#include <stdlib.h>\n'
            'static void *run(void *path) { void *l = dlopen(path, RTLD_NOW), *(*make)(size_t);\n'
            'if (!l) abort(); make = (void *(*)(size_t))dlsym(l, "plugin_make"); free(make(9)); dlclose(l); return path; }\n'
            'int main(int n, char **v) { pthread_t t; void *end = 0; (void)n;\n'
            'for (int i = 0; i < 3; i++) { pthread_create(&t, 0, run, v[1]); pthread_join(t, &end); } return end != v[1]; }\n'
        )
    succeed(["gcc", source, "-o", program, "-lpthread", "-ldl"])
    plugin = os.path.join(SCRATCH.name, "alone.so")
    succeed([
        "gcc", "-g", "-O2", "-fPIC", "-shared", "-I", INCLUDE, *HOOKS,
        os.path.join(HERE, "plugin.c"), "-o", plugin, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    with private_dir() as ledgers:
        succeed([program, plugin], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(len(ledgers_in(ledgers)), 1, "ledgers")


def as_the_kernel_has_it():
    """--allocinfo is read back by `allium sys allocinfo` with the same sums."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        done = succeed([churn(), "2", "5000"], env=env)
        (pid, places), = own_counts(done.stdout.decode()).items()
        text = succeed([built("ALLIUM"), "tags", str(pid), "--allocinfo"], env=env).stdout
        check(text.startswith(b"allocinfo - version: 2.0\n"), text[:100])
        read = succeed([built("ALLIUM"), "sys", "allocinfo", "-", "--json", "--top", "0", "--by", "function"],
                       input=text, stdin=None)
        sums = {row["function"]: (row["calls"], row["size_bytes"]) for row in json.loads(read.stdout)["rows"]}
        equal(sums, {place: counts[2:] for place, counts in places.items()}, "live objects and bytes")


def pruned():
    """`allium ps --prune` removes what ended processes left, and nothing of one that runs."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        succeed([churn(), "1", "100"], env=env)
        p = subprocess.Popen([churn(), "1", "100", "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            wait_until(lambda: len(ledgers_in(ledgers)) == 2, 20, "two ledgers")
            succeed([built("ALLIUM"), "ps", "--prune"], env=env)
            equal({name.split("-")[0] for name in os.listdir(ledgers)}, {str(p.pid)}, "what is left")
        finally:
            p.communicate()


def of_one_number():
    """A program leaves accounts and executes another: those of the last one are shown, in whatever order files are
    found.
    """
    program = os.path.join(SCRATCH.name, "images")
    succeed([
        "gcc", "-g", "-O1", "-I", INCLUDE, *HOOKS,
        os.path.join(HERE, "images.c"), "-o", program, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY)
    ])
    with private_dir() as ledgers:
        p = subprocess.Popen([program], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(p.wait(60), 0, "its code")
        files = [os.path.join(ledgers, name) for name in ledgers_in(ledgers)]
        equal(len(files), 2, "ledgers")
        for file in files * 2:  # a copy is found at another place than what it was made of
            succeed(["cp", "--sparse=always", file, file + "-copy"])
            os.rename(file + "-copy", file)
            rows, _ = accounts(ledgers, p.pid)
            equal([(row["function"], row["allocated_bytes"]) for row in rows], [("after", 200)], "accounts of the last")


def groups():
    with private_dir() as ledgers:
        done = succeed([churn(), "2", "2000"], env=dict(os.environ, ALLIUM_DIR=ledgers))
        (pid, want), = own_counts(done.stdout.decode()).items()
        for group in "file", "directory", "module":
            row, = accounts(ledgers, pid, "--by", group)[0]
            equal((row["allocations"], row["allocated_bytes"], row["live_objects"], row["live_bytes"]),
                  tuple(map(sum, zip(*want.values()))), "by " + group)
        rows, _ = accounts(ledgers, pid, "--sort", "allocations")
        equal([row["allocations"] for row in rows], sorted((row["allocations"] for row in rows), reverse=True),
              "the order")


def queries():
    """What fits, by the program's own counts; what fits nothing says so; what is no query is told with its place."""
    with private_dir() as ledgers:
        (pid, want), = own_counts(
            succeed([churn(), "2", "2000"], env=dict(os.environ, ALLIUM_DIR=ledgers)).stdout.decode()).items()
        median = sorted(want.values())[4][0]
        for query, fits in (
            ("func:by_malloc", lambda name, numbers: name == "by_malloc"),
            ("func:by_*", lambda *_: True),
            ("file:churn.c class:malloc", lambda *_: True),
            ("!module:churn-*", lambda *_: False),
            ("name:strdup,strndup", lambda name, numbers: "str" in name),
            ("count>%d" % median, lambda name, numbers: numbers[0] > median),
            ("allocated>=%d" % want["by_calloc"][1], lambda name, numbers: numbers[1] >= want["by_calloc"][1]),
            ("objects<%d or live>100k" % median, lambda name, numbers: numbers[2] < median or numbers[3] > 100 << 10),
            ("pid:%d comm:churn-*" % pid, lambda *_: True),
            ("line:1..9", lambda *_: False),
            ("accurate:no", lambda *_: False),
        ):
            # of places, as by_function() adds them up: churn has one for each function, but for realloc, which is
            # inlined in two
            rows, said = accounts(ledgers, pid, "--where", query,
                                  *(["--by", "function"] if "count" not in query else []))
            equal(by_function(rows), {name: numbers for name, numbers in want.items() if fits(name, numbers)}, query)
            equal(said, "" if rows else "allium: no site matches %s\n" % query, query)
        for query, line in ("lvie>1", "lvie"), ("live>", "column 6"), ("func:(", "column 6"), ("live>1x", "column 6"):
            done = run([built("ALLIUM"), "tags", str(pid), "--where", query], env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal((done.returncode, done.stdout), (2, b""), query)
            check(
                line in done.stderr.decode() and "--where: " in done.stderr.decode()
                and len(done.stderr.splitlines()) <= 2, done.stderr)


def screen():
    """What people see: whose accounts they are, what all hold together, and how many rows are not shown."""
    with private_dir() as ledgers:
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        (pid, places), = own_counts(succeed([churn(), "1", "2000"], env=env).stdout.decode()).items()
        done = succeed([built("ALLIUM"), "tags", str(pid), "--top", "3"], env=env)
        heading, empty, columns, *rows = done.stdout.decode().splitlines()
        objects = sum(place[2] for place in places.values())
        check(
            re.fullmatch(
                r"churn-gcc-O2 \(pid %d\), ended: \d+ sites hold [\d.]+ [KM]iB in %d objects" % (pid, objects),
                heading), heading)
        equal((empty, len(rows)), ("", 3), "the rest")
        check(re.fullmatch(r"allium: 3 of \d+ rows are shown; --top 0 shows all\n", done.stderr.decode()), done.stderr)


def mistakes():
    allium = built("ALLIUM")
    for words, code, line in (
        (["0"], 2, "invalid process id '0'"),
        (["x"], 1, "x does not exist"),
        ([], 1, "no recording"),
        (["1", "2", "3"], 2, "leave out 3"),
        ([str(os.getpid())], 1, "has no accounts of tags"),
        (["2147483647"], 1, "there is no process 2147483647"),
        (["1", "--by", "size"], 2, "--by"),
        (["1", "--sort", "age"], 2, "--sort"),
    ):
        done = run([allium, "tags", *words])
        equal(done.returncode, code, words)
        text = done.stderr.decode()
        check(line in text and text.startswith("allium"), words, "->", text)
        equal(done.stdout, b"", words)


POOL = r"""
#include <stdlib.h>
struct pool { int unused; };
struct message { char text[64]; };
static struct message *pool_take(struct pool *p, size_t bytes) { (void)p; return malloc(bytes); }
static void pool_give_back(struct pool *p, struct message *m) { (void)p; free(m); }
struct message *message_new(struct pool *pool, size_t bytes);
void message_free(struct pool *pool, struct message *m);
%s
int main(void)
{
    struct pool pool = {0};
    struct message *m = message_new(&pool, 100);
    message_free(&pool, m);
    return !message_new(&pool, 50);
}
"""


def example():
    """The example of allium-tags(1) compiles without a warning, and counts."""
    with open(os.path.join(HERE, "../../man/allium-tags.1.scd")) as page:
        source = POOL % re.search(r"```\n(#include <allium/tag.h>.*?)```", page.read(), re.S).group(1)
    path, program = SCRATCH.name + "/pool.c", SCRATCH.name + "/pool"
    with open(path, "w") as file:
        file.write(source)
    for compiler in "gcc", "clang":
        for optimized in "-O0", "-O2":
            succeed([
                compiler, "-g", optimized, *STRICT, "-I", INCLUDE, path, "-o", program, LIBRARY,
                "-Wl,-rpath," + os.path.dirname(LIBRARY)
            ])
            with private_dir() as ledgers:
                child = subprocess.Popen([program], env=dict(os.environ, ALLIUM_DIR=ledgers))
                equal(child.wait(), 0, "code of the program")
                rows = by_function(accounts(ledgers, child.pid, "--where", "class:pool name:message")[0])
            equal(rows, {"message_new": (2, 150, 1, 50)}, "accounts")


tap.main([
    ("gcc: places hold what the program counts", exact("gcc", "-O2")),
    ("gcc -O0: places hold what the program counts", exact("gcc", "-O0")),
    ("clang: places hold what the program counts", exact("clang", "-O2")),
    ("clang -O0: places hold what the program counts", exact("clang", "-O0")),
    ("with more threads than there are shards", crowds),
    ("with threads that come and go", turnover),
    ("a fork child counts its own alone", children),
    ("with other allocators below", allocators),
    ("what code without tags frees comes to light with its address", foreign),
    ("beside the agent", beside_the_agent),
    ("while the process runs, and after it was killed", read_while_it_runs),
    ("g++: a row for each place in the source", places("g++", "-O2")),
    ("g++ -O0: a row for each place in the source", places("g++", "-O0")),
    ("clang++: a row for each place in the source", places("clang++", "-O2")),
    ("clang++ -O0: a row for each place in the source", places("clang++", "-O0")),
    ("of a library that was unloaded", unloaded),
    ("of a library that is loaded again, and of one in its place", reloaded),
    ("of static and shared libraries", of_libraries),
    ("a program with little address space keeps it", little_room),
    ("a program that locks its memory locks little of ours", locked_in_memory),
    ("of a library that is unloaded and brought ours along", gone_with_its_library),
    ("in the kernel's format, read back", as_the_kernel_has_it),
    ("ledgers of ended processes are removed when asked", pruned),
    ("of several programs of one number, the last one's", of_one_number),
    ("groups and orders", groups),
    ("queries choose places", queries),
    ("the screen tells whose it is, and what it leaves out", screen),
    ("mistakes are told in a line", mistakes),
    ("the example of the manual", example),
])
