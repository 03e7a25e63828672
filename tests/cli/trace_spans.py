# SPDX-License-Identifier: BSD-2-Clause
"""Parts of a trace as a source: a span against a replay of the events in Python, and a moment against the ledger that
was copied at that moment.
"""
import collections
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Two threads that allocate, move and free blocks of each other; sizes and calls repeat, so that cells have many blocks.
WORK = """
#include <pthread.h>
#include <stdlib.h>
#define N 400
static void *volatile shared[N];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg)
{
    unsigned x = (unsigned)(size_t)arg;
    for (int i = 0; i < 20000; i++) {
        x = x * 1664525 + 1013904223;
        const size_t at = x >> 8 & 255, size = 10 + (x >> 20) % 3000;
        pthread_mutex_lock(&lock);
        if (x >> 30 == 0)
            shared[at] = realloc(shared[at], size);
        else if (shared[at]) {
            if (!(x >> 26 & 7) && realloc(shared[at], (size_t)1 << 62))
                exit(1);
            free(shared[at]);
            shared[at] = NULL;
        } else
            shared[at] = x & 1 << 20 ? calloc(1, size) : malloc(size);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)7);
    work((void *)3);
    pthread_join(other, NULL);
    return 0;
}
"""
CELLS = """SELECT thread.tid, size_class, %s FROM cell JOIN thread ON thread.id = cell.thread
    JOIN stack ON stack.id = cell.stack GROUP BY thread.tid, size_class, stack.location""" % ", ".join(
        "sum(cell.%s)" % sum for sum in (
            "allocated_samples", "allocated_bytes", "freed_samples", "freed_bytes", "temporary_samples",
            "temporary_bytes", "peak_samples", "peak_bytes"))
LIVE = "SELECT address, size_bytes, born_ns FROM live_sample"


def allium(*words, code=0, **how):
    done = tap.run([ALLIUM, *words], **how)
    equal(done.returncode, code, "exit code of %s: %s" % (words, done.stderr.decode()))
    return done


def rows(source, query):
    return [tuple(row.values()) for row in json.loads(allium("sql", "--json", source, query).stdout)["rows"]]


def compiled(folder, name, text):
    path = folder + "/" + name
    with open(path, "w") as file:
        file.write(text)
    compiler = "c++" if name.endswith(".cc") else "cc"
    succeed([compiler, "-O1", "-g", "-fno-builtin", "-fno-inline", "-pthread", path, "-o", path + ".out"])
    return path + ".out"


class Replay:
    """The blocks that were allocated in a span, and the frees of earlier ones. It knows one process."""

    def __init__(self, events, began, ended):
        self.began, self.live, self.moving, self.last = began, {}, {}, {}
        self.cells = collections.defaultdict(lambda: [0] * 8)
        self.now = self.peak = self.serial = self.older = self.older_bytes = 0
        for e in events:
            if e["time_ns"] > ended:
                break
            self.take(e["time_ns"], e["thread"], e["event"][7:], e["fields"])
        for thread in list(self.moving):
            self.put_back(thread)

    def put_back(self, thread):
        at, block, _ = self.moving.pop(thread)
        if block:
            self.live.setdefault(at, block)

    def born(self, time, thread, fields):
        at, size = int(fields["ptr"], 16), fields["size_bytes"]
        check(at not in self.live, "two lives of one address")
        self.serial += 1
        self.last[thread] = self.serial
        cell = (thread, max(size.bit_length() - 1, 0), fields["site"]) if time > self.began else None
        self.live[at] = (cell, size, time, self.serial)
        if not cell:
            return
        self.cells[cell][0] += 1
        self.cells[cell][1] += size
        self.now += size
        if self.now > self.peak:
            self.peak = self.now
            for sums in self.cells.values():
                sums[6:] = sums[0] - sums[2], sums[1] - sums[3]

    def gone(self, time, thread, block):
        cell, size, _, serial = block
        if time <= self.began:
            return
        if not cell:
            self.older += 1
            self.older_bytes += size
            return
        self.now -= size
        temporary = serial == self.last.get(thread)
        for k, n in enumerate((1, size, temporary, temporary * size), 2):
            self.cells[cell][k] += n

    def take(self, time, thread, event, fields):
        if "ptr" not in fields:  # of the group life
            return
        at = int(fields["ptr"], 16)
        if event == "realloc_begin":
            self.moving[thread] = at, self.live.pop(at, None), time
        elif event == "realloc_end" and not at and fields["size_bytes"]:
            self.put_back(thread)
        elif event == "realloc_end":
            _, block, began = self.moving.pop(thread)
            if block:
                self.gone(began, thread, block)
            if at:
                self.born(time, thread, fields)
        elif event == "free":
            block = self.live.pop(at, None)
            if block:
                self.gone(time, thread, block)
        elif at:
            self.born(time, thread, fields)


def spans():
    with private_dir() as folder:
        trace = folder + "/t"
        said = allium("trace", "-o", trace, "--", compiled(folder, "work.c", WORK)).stderr.decode()
        check(", 0 lost\n" in said, said)
        events = [json.loads(line) for line in allium("events", "--json", trace).stdout.splitlines()[1:-1]]
        check(len(events) > 40000, len(events))
        zero = rows(trace + "/profile.allium", "SELECT value FROM meta WHERE key = 'started_ns'")[0][0]
        times = [e["time_ns"] - zero for e in events]
        n = len(events)
        middle, all_allocated = [], []
        # at events and between two; empty ones; each border is the end of one span and the beginning of the next one
        for a, b in ((0, n // 3), (n // 3, 2 * n // 3), (2 * n // 3, n - 1), (n // 2, n // 2 + 1),
                     (n // 4, 3 * n // 4)):
            source = "%s@%dns..%dns" % (trace, times[a], times[b])
            replay = Replay(events, times[a] + zero, times[b] + zero)
            have = rows(source, CELLS)
            equal(sorted(have), sorted((t, c, *sums) for (t, c, _), sums in replay.cells.items()), source)
            equal(sorted(rows(source, LIVE)), sorted((at, size, born) for at, (cell, size, born, _) in
                                                     replay.live.items() if cell), source)
            equal(rows(source, "SELECT peak_bytes FROM image"), [(replay.peak,)], source)
            middle.append(replay.older)
            all_allocated.append(sum(row[2] for row in have))
            report = allium("report", source).stdout.decode()
            said = "%s free" % format(replay.older, ",")
            check(not replay.older or said in report, said, report)
        check(middle[1] > 10 and middle[2] > 10, middle)
        first = sum(row[2] for row in rows("%s@%dns" % (trace, times[0]), CELLS))
        whole = sum(row[2] for row in rows(trace, CELLS))
        equal(first + sum(all_allocated[:3]), whole, "three spans, and what was before")
        # open ends
        for open_end, closed in (("%dns.." % times[n // 3], "%dns..%dns" % (times[n // 3], times[-1])),
                                 ("..%dns" % times[n // 3], "%dns" % times[n // 3])):
            equal(*(sorted(rows("%s@%s" % (trace, part), CELLS)) for part in (open_end, closed)), open_end)
        # before anything was allocated; the process may have begun or not
        for part in "..1ns", "0s..1ns":
            report = allium("report", "%s@%s" % (trace, part)).stdout.decode()
            check(report.startswith("nothing was allocated\n") and "no process had allocated yet" in report, report)
            check("without the agent" not in report and "--period" not in report, report)
        difference = json.loads(allium("diff", "--json", "%s@%dns..%dns" % (trace, times[0], times[n // 2]),
                                       "%s@%dns.." % (trace, times[n // 2])).stdout)
        check(difference["rows"], difference)


# Calls whose number is known, without a wrapper between them and the allocator; some fail, some free what others have
# allocated.
SITES = """
#include <stdlib.h>
static void *volatile kept[100];
__attribute__((noinline)) static void drop(int i) { free(kept[i]); kept[i] = NULL; }
__attribute__((noinline)) static void *grow(int i, size_t size) { return realloc(kept[i], size); }
int main(void)
{
    for (int i = 0; i < 100; i++) {
        void *p = NULL;
        kept[i] = malloc(10 + i);
        if (i % 3 == 0)
            kept[i] = grow(i, 5000);
        if (i % 5 == 0 && grow(i, (size_t)1 << 62))
            return 1;
        if (i % 7 == 0 && (malloc((size_t)1 << 62) || calloc((size_t)1 << 60, 4)))
            return 1;
        if (i % 2)
            drop(i);
        if (!posix_memalign(&p, 64, 3 * i + 1) && i % 4)
            free(p);
        free(calloc(7, i + 1));
    }
    for (int i = 0; i < 20; i++)
        drop(i);
    return 0;
}
"""
OPERATORS = """
#include <cstdlib>
#include <new>
struct alignas(128) wide { char bytes[384]; };
static void *volatile any;
static wide *volatile kept[100];
int main()
{
    for (int i = 0; i < 3000; i++) {
        delete kept[i % 100];
        kept[i % 100] = i % 3 ? new wide : nullptr;
        int *volatile one = new int;
        delete one;
        long *volatile many = new long[i + 1];
        if (i % 2)
            delete[] many;
        any = new (std::nothrow) char[i + 1];
        if (i % 10)
            operator delete(any);
        if (i % 30 == 0)
            any = new (std::nothrow) char[(size_t)1 << 62];
        any = malloc(i);
        free(any);
    }
}
"""
FIGURES = ("requested_bytes", "live_bytes", "live_objects", "allocations", "frees", "freed_here_bytes", "frees_here",
           "failed")


def accounts(source, *more):
    """-> the figures of each call site of the program, and of all sites with those of libraries"""
    found = json.loads(allium("sites", "--json", source, *more).stdout)
    own = {(row["function"], row["place"], row["name"], row["class"]): tuple(row.get(f) for f in FIGURES)
           for row in found["rows"] if row["module"].endswith(".out")}
    return own, {f: found["after"]["total"].get(f) for f in ("live_bytes", "allocated_bytes", "allocations", "frees",
                                                         "failed")}


def sites():
    """Two runs of one program, which does the same each time."""
    with private_dir() as folder:
        for name, text in (("sites.c", SITES), ("operators.cc", OPERATORS)):
            program, trace, recording = compiled(folder, name, text), folder + "/t", folder + "/r.allium"
            allium("trace", "--quiet", "--force", "-o", trace, "--", program)
            allium("run", "--sites", "--quiet", "--force", "-o", recording, "--", program)
            (have, all_have), (want, all_want) = accounts(trace), accounts(recording)
            check(len(want) >= 4, want)
            equal(have, want, name)
            equal(all_have, all_want, name + ", all sites")
            freed, _ = accounts(trace, "--freed")
            equal(freed, accounts(recording, "--freed")[0], name + ", by the sites that free")
            # the same accounts of a span that has all, and of two halves
            length = rows(trace, "SELECT max(taken_ns) - min(began_ns) AS x FROM image")[0][0]
            ends = ["..%dns" % (length // 2), "%dns.." % (length // 2)]
            parts = [accounts("%s@%s" % (trace, part))[1]["allocations"] for part in ends]
            equal((sum(parts), accounts(trace + "@0s..")[1]), (all_want["allocations"], all_want), name + ", spans")


# At each step it tells its process id and waits for a byte; nothing is under way in a thread then.
STEPS = """
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#define N 500
static void *volatile kept[N];
static unsigned x = 1;
static void one(int i)
{
    free(kept[i]);
    kept[i] = malloc(x >> 20);
}
static void two(int i) { kept[i] = realloc(kept[i], 1 + (x >> 18)); }
static void three(int i)
{
    void *p = NULL;
    free(kept[i]);
    kept[i] = posix_memalign(&p, 256, x >> 19) ? NULL : p;
    free(strdup("a text that is freed at once"));
}
static void *work(void *arg)
{
    for (int i = 0; i < (int)(size_t)arg; i++) {
        x = x * 1664525 + 1013904223;
        (x >> 8 & 1 ? one : x >> 9 & 1 ? two : three)((int)(x >> 10) % N);
    }
    return NULL;
}
int main(void)
{
    char word[20], byte;
    for (int step = 0; step < 6; step++) {
        const int length = snprintf(word, sizeof(word), "%d\\n", (int)getpid());
        pthread_t other;
        if (write(1, word, length) != length || read(0, &byte, 1) != 1)
            return 1;
        work((void *)(size_t)(50 << step));
        pthread_create(&other, NULL, work, (void *)(size_t)(500 << step));
        pthread_join(other, NULL);
        for (int i = step; i < N; i += 3) {
            free(kept[i]);
            kept[i] = NULL;
        }
    }
    return 0;
}
"""
# By thread, size class and innermost frame. The ledger's peak of several threads is not exact to the byte.
LEDGER_CELLS = """SELECT thread.tid, size_class, string.text AS path, location.address, %s FROM cell
    JOIN thread ON thread.id = cell.thread JOIN stack ON stack.id = cell.stack
    JOIN location ON location.id = stack.location JOIN module ON module.id = location.module
    JOIN string ON string.id = module.path GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4""" % ", ".join(
        "sum(cell.%s)" % sum for sum in (
            "allocated_samples", "allocated_bytes", "freed_samples", "freed_bytes", "temporary_samples",
            "temporary_bytes"))
LIVE_OF = """SELECT live_sample.address, live_sample.size_bytes, string.text AS path, location.address AS code FROM live_sample
    JOIN cell ON cell.id = live_sample.cell JOIN stack ON stack.id = cell.stack
    JOIN location ON location.id = stack.location JOIN module ON module.id = location.module
    JOIN string ON string.id = module.path ORDER BY 1"""


def snapshots():
    """The ledger has each allocation, too, so a copy of it has the same figures."""
    with private_dir() as folder:
        trace, program = folder + "/t", compiled(folder, "steps.c", STEPS)
        process = subprocess.Popen([ALLIUM, "trace", "--quiet", "--period", "1", "-o", trace, "--", program],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        moments = []
        for step, line in enumerate(process.stdout):
            if step:
                copy = "%s/%d.allium" % (folder, step)
                if step % 2:  # it makes no difference
                    os.kill(int(line), signal.SIGSTOP)
                allium("snapshot", line.decode().strip(), "-o", copy)
                moments.append((time.time_ns(), copy))
                os.kill(int(line), signal.SIGCONT)
            process.stdin.write(b"x")
            process.stdin.flush()
        equal((process.wait(timeout=60), len(moments)), (0, 5), "the program")
        began = rows(trace + "/profile.allium", "SELECT value FROM meta WHERE key = 'started_ns'")[0][0]
        for now, copy in moments:
            at = "%s@%dns" % (trace, now - began)
            for query in (LEDGER_CELLS, LIVE_OF):
                want, have = rows(copy, query), rows(at, query)
                check(len(want) > 20, want)
                differ = [(w, h) for w, h in zip(want, have) if w != h]
                equal((differ[:3], len(have)), ([], len(want)), at)


def mistakes():
    with private_dir() as folder:
        trace, recording = folder + "/t", folder + "/r.allium"
        allium("trace", "--quiet", "-o", trace, "--", "sqlite3", ":memory:", "select 1;")
        allium("run", "--quiet", "-o", recording, "--", "sqlite3", ":memory:", "select 1;")
        for source, line in ((trace + "@2ms..1ms", "ends before it begins"), (trace + "@1ms..1ms", "ends before it"),
                             (trace + "@1ms..1h", "ends"), (trace + "@x..1ms", "invalid time '@x'"),
                             (recording + "@1ms..2ms", "only a trace (allium trace) has spans")):
            done = tap.run([ALLIUM, "report", source])
            check(done.returncode in (1, 2) and line in done.stderr.decode() and done.stderr.count(b"\n") == 1,
                  source, done.returncode, done.stderr)


tap.main([
    ("a span has the blocks that were allocated in it", spans),
    ("accounts of call sites, beside those of `allium run --sites`", sites),
    ("a moment is what a snapshot at that moment has", snapshots),
    ("spans that there are not", mistakes),
])
