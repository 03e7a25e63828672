# SPDX-License-Identifier: BSD-2-Clause
"""Views of a trace: the figures of `report`, `sql` and others from events, against those that the agent's ledger has of
the same run, in which each allocation is a sample; at moments that the program tells; and damaged folders.
"""
import json
import os
import shutil
import signal
import sys

import bt2

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# All functions of the family, and those of them that fail.
CALLS = """
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept[4000];
int main(void)
{
    const size_t much = (size_t)1 << 62;
    for (int i = 0; i < 4000; i += 10) {
        void *p = NULL;
        kept[i] = malloc(i);
        kept[i + 1] = calloc(3, i);
        kept[i + 2] = realloc(malloc(i + 1), 3 * i + 7);
        kept[i + 3] = reallocarray(NULL, 2, i + 5);
        if (!posix_memalign(&p, 64, i + 9))
            kept[i + 4] = p;
        kept[i + 5] = aligned_alloc(32, 32 * (i + 1));
        kept[i + 6] = memalign(128, i + 3);
        kept[i + 7] = valloc(i + 1);
        kept[i + 8] = pvalloc(i + 1);
        kept[i + 9] = strdup("a text of the program");
        if (realloc(kept[i], much) || malloc(much) || calloc(much, 8) || reallocarray(kept[i + 1], much, 8))
            return 1;
        kept[i] = realloc(kept[i], 0) ? kept[i] : NULL;
        free(kept[i + 1 + i / 10 % 9]);
        kept[i + 1 + i / 10 % 9] = NULL;
        free(malloc(50));
    }
    return 0;
}
"""
OPERATORS = """
#include <map>
#include <string>
#include <thread>
#include <vector>
struct alignas(64) wide { char bytes[640]; };
static std::map<int, std::string> *all;
static void work(int first)
{
    std::vector<wide *> own;
    for (int i = 0; i < 500; i++)
        own.push_back(new wide);
    for (int i = 0; i < 400; i++)
        delete own[i];
    delete[] new long[first + 1000];
}
int main()
{
    all = new std::map<int, std::string>;
    for (int i = 0; i < 5000; i++)
        (*all)[i] = std::string(30 + i % 100, 'x');
    std::thread one(work, 1), two(work, 2);
    one.join();
    two.join();
    for (int i = 0; i < 5000; i += 3)
        all->erase(i);
}
"""
PEAKS = "peak_samples", "peak_bytes"
SUMS = ("allocated_samples", "allocated_bytes", "freed_samples", "freed_bytes", "temporary_samples", "temporary_bytes",
        *PEAKS)
# By process, thread, size class and stack.
CELLS = """SELECT image.pid, thread.tid, size_class, cell.stack, %s FROM cell
    JOIN image ON image.id = cell.image JOIN thread ON thread.id = cell.thread"""
STACK = "SELECT id, caller, location FROM stack"
FRAME = """SELECT location.id, string.text AS path, location.address FROM location
    JOIN module ON module.id = location.module JOIN string ON string.id = module.path"""
SAMPLES = "SELECT address, size_bytes FROM live_sample ORDER BY address"
LIFETIMES = tuple("lifetime_%d" % k for k in range(16))


def allium(*words, code=0):
    done = tap.run([ALLIUM, *words])
    equal(done.returncode, code, "exit code of %s: %s" % (words, done.stderr.decode()))
    return done


def rows(source, query):
    return [tuple(row.values()) for row in json.loads(allium("sql", "--json", source, query).stdout)["rows"]]


def compiled(folder, name, text, *libraries):
    path = folder + "/" + name
    with open(path, "w") as file:
        file.write(text)
    compiler = "c++" if name.endswith(".cc") else "cc"
    succeed([compiler, "-O1", "-g", "-fno-builtin", "-pthread", path, "-o", path + ".out", *libraries])
    return path + ".out"


def paths(source, depth):
    """-> the innermost `depth` frames of each stack"""
    stacks = {stack: rest for stack, *rest in rows(source, STACK)}
    frames = {location: tuple(rest) for location, *rest in rows(source, FRAME)}
    found = {}
    for stack in stacks:
        path, at = [], stack
        while len(path) < depth and stacks[at][1] is not None:
            path.append(frames.get(stacks[at][1]))
            at = stacks[at][0]
        found[stack] = tuple(path)
    return found


def cells(source, sums, depth):
    """-> the sums, by process, thread, size class and the innermost `depth` frames"""
    stacks, found = paths(source, depth), {}
    for row in rows(source, CELLS % ", ".join("cell." + sum for sum in sums)):
        key, in_sums = (*row[:3], *stacks[row[3]]), row[4:]
        found[key] = [a + b for a, b in zip(found.get(key, [0] * len(sums)), in_sums)]
    return found


class Replay:
    """What is live, by the events of a trace in the order of time, as babeltrace2's library reads them. It knows one
    process.
    """

    def __init__(self, trace):
        self.live, self.moving, self.now, self.peak, self.peak_ns, self.at_peak = {}, {}, 0, 0, 0, []
        last, ties = (0, 0), set()
        for message in bt2.TraceCollectionMessageIterator(trace + "/ust"):
            if type(message) is bt2._EventMessageConst:
                time = message.default_clock_snapshot.ns_from_origin
                cpu = int(message.event.packet.context_field["cpu_id"])
                if time == last[0] and cpu != last[1]:  # two events in no order
                    ties.add(time)
                last = time, cpu
                self.take(message.event, time)
        self.is_sure = self.peak_ns not in ties

    def take(self, event, time):
        fields, name, thread = event.payload_field, event.name.split(":")[1], int(event.common_context_field["vtid"])
        check(int(fields.get("site", 1)), name, "without the place of its call")
        if name == "free":
            self.gone(self.live.pop(int(fields["ptr"]), None))
        elif name == "realloc_begin":
            self.moving[thread] = int(fields["ptr"]), self.live.pop(int(fields["ptr"]), None)
        elif name in ("malloc", "calloc", "memalign", "realloc_end"):
            at, size = int(fields["ptr"]), int(fields["size"])
            was, block = self.moving.pop(thread) if name == "realloc_end" else (None, None)
            if block and not at and size:  # it failed
                self.live[was] = block
                return
            self.gone(block)
            if at:
                check(at not in self.live, "two lives of one address")
                number = int(fields["stack"]) if "stack" in fields else 0
                self.live[at] = size, (thread, max(size.bit_length() - 1, 0), number)
                self.now += size
            if self.now > self.peak:
                self.peak, self.peak_ns, self.at_peak = self.now, time, list(self.live.values())

    def gone(self, block):
        self.now -= block[0] if block else 0


def compare_peak(trace, depth):
    """The peak is the maximum over the events. Returns False if two of them came at its time."""
    replay, want, numbers = Replay(trace), {}, {}
    if not replay.is_sure:
        return False
    if depth > 1:
        numbers = dict(rows(trace + "/profile.allium", "SELECT number, stack FROM trace_stack"))
        check(numbers, "no stacks")
    stacks = {stack: path for stack, path in paths(trace + "/profile.allium", depth).items() if depth > 1}
    for size, (thread, size_class, number) in replay.at_peak:
        sums = want.setdefault((thread, size_class, *stacks.get(numbers.get(number), ())), [0, 0])
        sums[0] += 1
        sums[1] += size
    have = {}
    for (_, *key), sums in cells(trace, PEAKS, depth if depth > 1 else 0).items():
        if sums[0]:
            have[tuple(key)] = sums
    equal(have, want, "what is live at the peak")
    equal(rows(trace, "SELECT peak_bytes FROM image"), [(replay.peak,)], "the peak")
    return True


def compare_one(folder, *command, peak=True, stacks="site", options=(), turns=3):
    """Each figure of each cell is that of the ledger."""
    trace = folder + "/" + os.path.basename(command[0]) + ".trace"
    allium("trace", "--quiet", "--force", "--period", "1", "--stacks", stacks, *options, "-o", trace, "--", *command)
    sums, depth = SUMS if peak else SUMS[:-len(PEAKS)], {"none": 0, "site": 1, "full": 1000}[stacks]
    want, have = cells(trace + "/profile.allium", sums, depth), cells(trace, sums, depth)
    check(len(want) > 10, want)
    differ = [(key, want.get(key), have.get(key)) for key in {*want, *have} if want.get(key) != have.get(key)]
    equal(differ[:3], [], command)
    if stacks == "full":
        check(max(len(key) for key in have) > 5, "no stack has more than 2 frames")
    equal(rows(trace, SAMPLES), rows(trace + "/profile.allium", SAMPLES), "live objects")
    want, have = cells(trace + "/profile.allium", LIFETIMES, depth), cells(trace, LIFETIMES, depth)
    equal({key: sum(value) for key, value in have.items()}, {key: sum(value) for key, value in want.items()},
          "lifetimes of freed objects")
    # Both read the clock, one after the other: an object whose life is that near to a border may be on its other side.
    # On a busy machine others run between the two, and more lives are that near: then it is done again.
    moved = sum(abs(w - h) for key in want for w, h in zip(want[key], have[key]))
    most = 20 + sum(map(sum, want.values())) // 20
    if moved > most and turns > 1:
        tap.retry("lifetimes: %d of at most %d are in another class" % (moved, most))
        return compare_one(folder, *command, peak=peak, stacks=stacks, options=options, turns=turns - 1)
    check(moved <= most, moved, most)
    if not peak and not compare_peak(trace, depth):
        check(turns > 1, "two events came at the time of the peak")
        return compare_one(folder, *command, peak=peak, stacks=stacks, options=options, turns=turns - 1)
    return trace


def as_ledger(**how):
    with private_dir() as folder:
        def compare(*words, **more):
            return compare_one(*words, **how, **more)

        compare(folder, "sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select "
                "x + 1 from c where x < 3000) insert into t select x, hex(x) from c; create index i on t(b); select "
                "count(*) from t;")
        compare(folder, "/usr/bin/python3", "-S", "-c", "import json; json.dumps([str(i) for i in range(9000)])")
        compare(folder, "sh", "-c", "sqlite3 :memory: 'select 1;'; sqlite3 :memory: 'select 2;'")  # several images
        trace = compare(folder, compiled(folder, "calls.c", CALLS))
        Replay(trace)
        failed = "SELECT sum(failed_requests) FROM image"
        # reallocarray() whose product is too large fails in libc, without a request
        equal(rows(trace, failed), [(3 * 400,)], "failed requests")
        # The ledger's peak of several threads is exact to some bytes that threads have not added yet: that of the trace
        # is compared with its events.
        compare(folder, compiled(folder, "operators.cc", OPERATORS), peak=False)
        compare(folder, compiled(folder, "jemalloc.cc", OPERATORS, "-Wl,--no-as-needed", "-ljemalloc"), peak=False)


# Prints the time before and after each block that it keeps.
STEPS = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void *volatile kept[10];
static void tell(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    printf("%ld%09ld\\n", t.tv_sec, t.tv_nsec);
    usleep(30000);
}
__attribute__((noinline)) static void *hold(size_t size)
{
    void *volatile p = malloc(size);
    return p;
}
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 10; i++) {
        tell();
        kept[i] = hold(1000 << i);
        if (i == 6)
            free(kept[3]);
    }
    tell();
    raise(SIGKILL);
}
"""


def held(source):
    """-> bytes that hold() has allocated and that are live"""
    report = json.loads(allium("report", "--json", "--by", "function", source).stdout)
    return sum(row["self"]["live_bytes"] or 0 for row in report["rows"] if row["name"] == "hold")


def moments():
    """What is live at any time, of a program that is killed."""
    with private_dir() as folder:
        trace, program = folder + "/t", compiled(folder, "steps.c", STEPS)
        done = allium("trace", "--quiet", "-o", trace, "--", program, code=128 + signal.SIGKILL)
        times = [int(line) for line in done.stdout.split()]
        equal(len(times), 11, done.stdout)
        began = rows(trace + "/profile.allium", "SELECT value FROM meta WHERE key = 'started_ns'")[0][0]
        want = 0
        for i, time in enumerate(times):
            at = "%dus" % ((time + 15000000 - began) // 1000)
            if i < 10:  # at the last time it is dead
                equal(held("%s@%s" % (trace, at)), want, at)
                want += (1000 << i) - (8000 if i == 6 else 0)
        equal(held(trace), want, "at the end")


PLUGIN = """
#include <stdlib.h>
void *volatile kept[100];
__attribute__((noinline)) void *take_NAME(int i) { return kept[i] = malloc(SIZE); }
int go(int i) { return take_NAME(i) != NULL; }
"""
LOADER = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    for (int turn = 0; turn < 6; turn++) {
        void *library = dlopen(argv[1 + turn % 2], RTLD_NOW);
        int (*go)(int) = (int (*)(int))dlsym(library, "go");
        for (int i = 0; i < 10; i++)
            if (argc < 3 || !go(i))
                return 1;
        dlclose(library);
    }
    return 0;
}
"""


def replaced():
    """Libraries that are loaded at the address of one that was unloaded: each call is that of its own library."""
    with private_dir() as folder:
        libraries = []
        for name, size in ("one", 1000), ("two", 2000):
            text = PLUGIN.replace("NAME", name).replace("SIZE", str(size))
            libraries.append(compiled(folder, name + ".c", text, "-shared", "-fPIC"))
        trace = folder + "/t"
        loader, starts = compiled(folder, "loader.c", LOADER), {}
        for _ in range(5):  # until both were at one address: another mapping may come there first
            allium("trace", "--quiet", "--force", "-o", trace, "--", loader, *libraries)
            listed = [json.loads(line) for line in allium("events", "--json", trace).stdout.splitlines()[1:-1]]
            starts = {e["fields"]["path"]: e["fields"]["start"] for e in listed if
                      e["event"] == "allium:module_loaded" and e["fields"]["path"] in libraries}
            if len(set(starts.values())) == 1:
                break
        check(len(starts) == 2 and len(set(starts.values())) == 1, "the libraries were never at one address", starts)
        want = {"take_one": (30, 30000), "take_two": (30, 60000)}
        report = json.loads(allium("report", "--json", "--by", "function", trace).stdout)
        equal({row["name"]: (row["self"]["allocations"], row["self"]["allocated_bytes"]) for row in report["rows"]
               if row["name"] in want}, want, "report")
        sites = json.loads(allium("sites", "--json", trace).stdout)
        equal({row["function"]: (row["allocations"], row["requested_bytes"]) for row in sites["rows"]
               if row["function"] in want}, want, "sites")
        equal({(e["function"], e["fields"]["size_bytes"]) for e in listed if str(e["function"]).startswith("take_")},
              {("take_one", 1000), ("take_two", 2000)}, "events")
        sums = json.loads(allium("events", "--json", "--top", "0", "--sum", "malloc.size,by=site", trace).stdout)
        equal({row["site"].split()[0]: (row["count"], row["sum_bytes"]) for row in sums["rows"]
               if row["site"].startswith("take_")}, want, "sums")


def damaged():
    """One line for what is no trace; a stream that is cut gives what is whole."""
    with private_dir() as folder:
        trace = folder + "/t"
        allium("trace", "--quiet", "-o", trace, "--", "sqlite3", ":memory:", "select 1;")
        stream = max((os.path.join(trace, "ust", name) for name in os.listdir(trace + "/ust") if name != "metadata"),
                     key=os.path.getsize)
        size = os.path.getsize(stream)
        with open(stream, "rb") as file:
            content = file.read()

        def mistake(line, code=1):
            done = allium("report", trace, code=code)
            check(line in done.stderr.decode() and done.stderr.count(b"\n") <= 1, line, done.stderr)

        os.truncate(stream, size - 8)
        report = allium("report", trace).stdout.decode()
        check("1 packet at the end not whole" in report, report)
        for at, line in ((0, "is damaged behind 0 bytes"), (4, "is damaged"), (40, "is damaged"), (96, "is damaged")):
            with open(stream, "wb") as file:
                file.write(content[:at] + bytes([content[at] ^ 0xff, 0xff, 0xff]) + content[at + 3:])
            mistake(line, 2)
        os.unlink(stream)
        metadata = trace + "/ust/metadata"
        with open(metadata) as file:
            text = file.read()
        for foreign, line in ((text[:-40], "its metadata are damaged"), ("", "not a trace of allium"),
                              (text.replace('"allium"', '"lttng-ust"'), "not a trace of allium")):
            with open(metadata, "w") as file:
                file.write(foreign)
            mistake(line, 2)
        shutil.rmtree(trace + "/ust")
        mistake("is a directory")


tap.main([
    ("figures from events are those of the ledger, cell by cell", as_ledger),
    ("with whole stacks, too, also if calls have events at their beginning",
     lambda: as_ledger(stacks="full", options=("--events", "begin"))),
    ("without sites, figures of all calls", lambda: as_ledger(stacks="none")),
    ("what is live at any time, to the end by SIGKILL", moments),
    ("libraries that take the place of others", replaced),
    ("damaged and foreign folders", damaged),
])
