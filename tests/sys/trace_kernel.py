# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --kernel`: what the kernel does for a program whose steps are known, beside what the program and the
kernel count themselves; on one clock with the program's own events; losses to the unit.
"""
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Each step is between two allocations of its own size, and prints what it knows.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void mark(size_t size) { free(malloc(size)); }
static struct rusage usage(void) { struct rusage u; getrusage(RUSAGE_SELF, &u); return u; }
static long rounds;


static void touch(char *at) { *(volatile char *)at = 1; }

/* On another CPU the agent would make room for that CPU's events. */
static void stay(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    mark(20000);
}

static void step_faults(void)
{
    stay();
    char *pages = mmap(NULL, 4096 * rounds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096 * rounds, MADV_NOHUGEPAGE);
    mark(10001);
    struct rusage before = usage();
    for (long i = 0; i < rounds; i++)
        touch(pages + 4096 * i);
    struct rusage after = usage();
    mark(10002);
    printf("faults %ld %ld %p\n", after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt, pages);
}

static void step_classes(void)
{
    char *heap = sbrk(4096 * 4) + 8192, *shared, *file;
    int fd = open("/proc/self/exe", O_RDONLY);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *stack = (char *)__builtin_frame_address(0) - 200000;
    touch(heap); touch(shared); touch(file); touch(stack);
    printf("classes %p %p %p %p\n", heap, shared, file, stack);
}

static void step_maps(void)
{
    void *now = (void *)syscall(SYS_brk, 0);
    stay();
    mark(20001);
    char *a = mmap(NULL, 40960, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long failed = syscall(SYS_mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int p = mprotect(a, 4096, PROT_READ);
    char *b = mremap(a + 8192, 32768, 65536, MREMAP_MAYMOVE);
    int d = madvise(b, 4096, MADV_DONTNEED), wrong = madvise(b, 4096, 12345);
    void *up = (void *)syscall(SYS_brk, (char *)now + 8192);
    int u = munmap(a, 8192);
    mark(20002);
    printf("maps %p %ld %d %p %d %d %p %p %d\n", a, failed, p, b, d, wrong, now, up, u);
}

/* Each kind of call so often, with the results that it had: done, and failed. */
static void step_counts(void)
{
    enum { MMAP, MUNMAP, MREMAP, MADVISE, MPROTECT, KINDS };
    static const char *const names[] = {"mmap", "munmap", "mremap", "madvise", "mprotect"};
    long done[KINDS] = {0}, failed[KINDS] = {0}, random = 1;
    char *at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stay();
    mark(50001);
    for (long i = 0; i < rounds; i++) {
        random = (random * 1103515245 + 12345) & 0x7fffffff;
        const int kind = random >> 8 & 7, wrong = random >> 12 & 1;
        long result;
        if (kind >= KINDS)
            continue;
        if (kind == MMAP || kind == MUNMAP) {
            result = syscall(SYS_mmap, 0, wrong ? 0 : 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            (result == -1 ? failed : done)[MMAP]++;
            result = syscall(SYS_munmap, result == -1 ? 1 : result, 4096);
            (result ? failed : done)[MUNMAP]++;
            continue;
        }
        if (kind == MREMAP)
            result = syscall(SYS_mremap, at + wrong, 65536, 65536, 0, 0);
        if (kind == MADVISE)
            result = syscall(SYS_madvise, at, 4096, wrong ? 12345 : MADV_NORMAL);
        if (kind == MPROTECT)
            result = syscall(SYS_mprotect, at + wrong, 4096, PROT_READ | PROT_WRITE);
        (result == -1 ? failed : done)[kind]++;
    }
    mark(50002);
    for (int k = 0; k < KINDS; k++)
        printf("%s %ld %ld\n", names[k], done[k], failed[k]);
}

/* What the kernel finds in the page tables, in kB. */
static long anonymous(void)
{
    static char text[4096];
    int fd = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    char *at = strstr(text, "Anonymous:");
    return at ? atol(at + 10) : -1;
}

static void step_rss(void)
{
    char *pages = mmap(NULL, 4096 * rounds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096 * rounds, MADV_NOHUGEPAGE);
    stay();
    anonymous();
    const long before = anonymous();
    mark(60001);
    for (long i = 0; i < rounds; i++)
        touch(pages + 4096 * i);
    mark(60002);
    const long most = anonymous();
    mark(70001);
    madvise(pages, 4096 * (rounds / 2), MADV_DONTNEED);
    mark(70002);
    printf("rss %ld %ld %ld\n", before, most, anonymous());
}

static long switches(void) { struct rusage u = usage(); return u.ru_nvcsw + u.ru_nivcsw; }

/* Inside of the marks and outside of them: another program may take the CPU between a mark and a count. */
static void step_sched(void)
{
    const long outside = switches();
    mark(30001);
    const long inside = switches();
    for (long i = 0; i < rounds / 10; i++)
        usleep(50);
    const long least = switches() - inside;
    mark(30002);
    printf("sched %ld %ld\n", least, switches() - outside);
}

static void step_kernel_memory(void)
{
    char *pages = mmap(NULL, 4096 * rounds, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096 * rounds, MADV_NOHUGEPAGE);
    usleep(1000);
    mark(40001);
    usleep(2000); /* the kernel's own trace has microseconds */
    for (long i = 0; i < rounds / 10; i++) {
        int ends[2];
        if (pipe(ends))
            abort();
        if (write(ends[1], "x", 1) != 1)
            abort();
        close(ends[0]);
        close(ends[1]);
        touch(pages + 4096 * i);
    }
    usleep(2000);
    mark(40002);
}

static void step_children(void)
{
    pid_t child = fork();
    if (!child) {
        char *pages = mmap(NULL, 4096 * 777, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, 4096 * 777, MADV_NOHUGEPAGE);
        for (long i = 0; i < 777; i++)
            touch(pages + 4096 * i);
        printf("child %d %p\n", (int)getpid(), pages);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void step_order(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < rounds; i++) {
        void *volatile p = malloc(50001);
        madvise(page, 4096, MADV_DONTNEED);
        free(p);
    }
}

int main(int argc, char **argv)
{
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    rounds = atol(argv[1]);
    mark(30000); /* what the marks need is there */
    usage();
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "faults")) step_faults();
        if (!strcmp(argv[i], "classes")) step_classes();
        if (!strcmp(argv[i], "maps")) step_maps();
        if (!strcmp(argv[i], "counts")) step_counts();
        if (!strcmp(argv[i], "rss")) step_rss();
        if (!strcmp(argv[i], "sched")) step_sched();
        if (!strcmp(argv[i], "memory")) step_kernel_memory();
        if (!strcmp(argv[i], "children")) step_children();
        if (!strcmp(argv[i], "order")) step_order();
        if (!strcmp(argv[i], "fail")) return 3;
        fflush(stdout);
    }
}
"""
LINE = re.compile(r"^\[(\d+)\] (?:\S+ )*?(?:\(\S+\) )?(kernel|allium):(\w+): \{ cpu_id = (\d+), vpid = (\d+), .*? \}, "
                  r"\{ flags = (\d+), vtid = (\d+) \}, \{ (.*) \}$")
DISCARDED = re.compile(r"discarded (\d+) events? .*/kernel/")
FIELD = re.compile(r'(\w+) = (?:\( "([^"]*)" : container = -?\d+ \)|"([^"]*)"|(-?\w+))')


class Event:
    def __init__(self, line):
        found = LINE.match(line)
        check(found, line)
        self.ns, self.origin, self.name = int(found.group(1)), found.group(2), found.group(3)
        self.cpu, self.pid, self.tid = int(found.group(4)), int(found.group(5)), int(found.group(7))
        for name, label, text, number in FIELD.findall(found.group(8)):
            if number:
                self.__dict__["f_" + name] = int(number, 16 if number.startswith("0x") else 10)
            else:
                self.__dict__["f_" + name] = label or text

    def __getattr__(self, name):
        raise AttributeError(name)

    def fields(self, *names):
        return tuple(self.__dict__["f_" + name] for name in names)


def compiled(folder):
    with open(folder + "/steps.c", "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-O1", "-fno-builtin", folder + "/steps.c", "-o", folder + "/steps"])
    return folder + "/steps"


class Traced:
    """A run of the program: its events in the order of time, what it printed, what allium said."""

    def __init__(self, folder, groups, rounds, *steps, options=(), before=(), inside=(), env=None):
        done = tap.run([*before, ALLIUM, "trace", *(["--kernel", groups] if groups else []), *options, "-o",
                        folder + "/t", "--", *inside, compiled(folder), str(rounds), *steps],
                       env=dict(os.environ, ALLIUM_KERNEL_COUNTS="1", **(env or {})))
        equal(done.returncode, 0, done.stderr)
        self.said = done.stderr.decode()
        found = re.search(r"allium: (\d+) events of the kernel, (\d+) lost(.*)\n", self.said)
        check(found, self.said)
        self.written, self.lost = int(found.group(1)), int(found.group(2))
        apart = re.search(r"; (\d+) counted", found.group(3))
        missed = re.search(r"; up to (\d+) more may", found.group(3))
        self.counted, self.missed = int(apart.group(1)), int(missed.group(1)) if missed else 0
        lib.excuse(self.missed)
        self.printed = {words[0]: words[1:] for words in map(str.split, done.stdout.decode().splitlines())}
        self.pid = int(self.printed["pid"][0]) if "pid" in self.printed else None
        shown = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", folder + "/t"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.warned = shown.stderr
        equal(shown.returncode, 0, shown.stderr)
        self.events = [Event(line) for line in shown.stdout.splitlines()]
        equal(sum(e.origin == "kernel" for e in self.events), self.written, "events of the kernel in the folder")
        equal(self.written + self.lost, self.counted, "events that the programs counted")

    def between(self, mark):
        """The kernel's events between the allocations of these sizes"""
        sizes = [(i, e.f_size) for i, e in enumerate(self.events) if e.name == "malloc"]
        begin = [i for i, size in sizes if size == mark * 10000 + 1]
        end = [i for i, size in sizes if size == mark * 10000 + 2]
        equal((len(begin), len(end)), (1, 1), "marks")
        self.span = self.events[begin[0]].ns, self.events[end[0]].ns
        return [e for e in self.events[begin[0]:end[0]] if e.origin == "kernel"]


def faults():
    """As many as the kernel counts for the process; each page's once; the class of memory of each."""
    with private_dir() as folder:
        t = Traced(folder, "faults", 20000, "faults", "classes")
        equal((t.lost, t.warned), (0, ""), t.said)
        minor, major, pages = int(t.printed["faults"][0]), int(t.printed["faults"][1]), int(t.printed["faults"][2], 16)
        inside = t.between(1)
        ends = [e for e in inside if e.name == "page_fault_end" and e.f_pid == t.pid]
        equal([sum(e.f_kind == k for e in ends) for k in ("minor", "major")], [minor, major], "as getrusage counts")
        begun = [e for e in inside if e.name == "page_fault_begin" and e.f_pid == t.pid]
        equal([e.f_address & ~4095 for e in begun if pages <= e.f_address < pages + 4096 * 20000],
              [pages + 4096 * i for i in range(20000)], "pages")
        equal({(e.f_mode, e.f_access, e.f_class) for e in begun if pages <= e.f_address < pages + 4096 * 20000},
              {("user", "write", "anonymous")}, "kind")
        classes = {e.f_address: e.f_class for e in t.events if e.name == "page_fault_begin"}
        equal([classes.get(int(at, 16)) for at in t.printed["classes"]], ["heap", "shared", "file", "stack"], "classes")


def maps():
    """Each call with its arguments and its result, failures, too, in order, each after its beginning."""
    with private_dir() as folder:
        t = Traced(folder, "maps", 1, "maps", options=("--period", "1T"))  # no sample amid it
        equal((t.lost, t.warned), (0, ""), t.said)
        a, failed, p, b, d, wrong, now, up, u = t.printed["maps"]
        del failed, p, d, wrong, u
        a, b, now, up = int(a, 16), int(b, 16), int(now, 16), int(up, 16)
        equal(up, now + 8192, "brk")
        inside = t.between(2)
        calls = [e for e in inside if e.name != "map_begin"]
        equal([e.f_call for e in inside if e.name == "map_begin"], [e.name for e in calls], "beginnings")
        equal([e.name for e in inside[::2]], ["map_begin"] * len(calls), "in turns")
        got = [(e.name, *e.fields(*names)) for e in calls for names in [{
            "mmap": ("address", "length", "prot", "flags", "fd", "offset", "result"),
            "mprotect": ("address", "length", "prot", "result"),
            "mremap": ("address", "old_length", "length", "flags", "result"),
            "madvise": ("address", "length", "advice", "result"),
            "brk": ("asked", "result"), "munmap": ("address", "length", "result")}[e.name]]]
        equal(got, [("mmap", 0, 40960, 3, 0x22, -1, 0, a), ("mmap", 0, 0, 1, 0x22, -1, 0, -22),
                    ("mprotect", a, 4096, 1, 0), ("mremap", a + 8192, 32768, 65536, 1, b),
                    ("madvise", b, 4096, 4, 0), ("madvise", b, 4096, 12345, -22), ("brk", up, up),
                    ("munmap", a, 8192, 0)], "calls")


def counts():
    """As many calls of each kind, done and failed, as the program counts."""
    with private_dir() as folder:
        t = Traced(folder, "maps", 20000, "counts", options=("--period", "1T"))
        equal((t.lost, t.warned), (0, ""), t.said)
        inside = t.between(5)
        for name in ("mmap", "munmap", "mremap", "madvise", "mprotect"):
            results = [e.f_result for e in inside if e.name == name]
            failed = sum(-4096 < result < 0 for result in results)
            check(failed > 100 and len(results) - failed > 100, name, len(results), failed)
            equal([len(results) - failed, failed], [int(n) for n in t.printed[name]], name)
        equal(sum(e.name == "map_begin" for e in inside), len(inside) / 2, "beginnings")


def rss():
    """Resident memory is what the page tables have."""
    with private_dir() as folder:
        t = Traced(folder, "rss", 5000, "rss", options=("--period", "1T"))
        equal((t.lost, t.warned), (0, ""), t.said)
        before, most, after = (1024 * int(kb) for kb in t.printed["rss"])
        grown, shrunk = ([e.f_bytes for e in t.between(mark)
                          if e.f_pid == t.pid and e.f_own and e.f_kind == "anonymous"] for mark in (6, 7))
        check(most - before >= 4096 * 5000 and most - after >= 4096 * 2400, before, most, after)
        equal((grown[-1], shrunk[-1]), (most, after), "bytes")
        check(before < grown[0] <= before + 65536 and grown == sorted(grown), "from page to page", before, grown[0])


SPINNER = """
import os, resource, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    pass
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_nvcsw, usage.ru_nivcsw)
"""


def takers():
    """Who takes the CPU, though it is not traced: a program that spins on the same one, and counts its switches."""
    with private_dir() as folder:
        cpu = str(max(os.sched_getaffinity(0)))
        spinner = subprocess.Popen([sys.executable, "-S", "-c", SPINNER, cpu, folder + "/stop"],
                                   stdout=subprocess.PIPE, text=True)
        try:
            equal(spinner.stdout.readline(), "ready\n", "the program that spins")
            t = Traced(folder, "sched", 20000, "sched", inside=("taskset", "-c", cpu))
            open(folder + "/stop", "w").close()
            waits, preempted = map(int, spinner.communicate(timeout=60)[0].split())
        finally:
            spinner.kill()
        equal((t.lost, t.warned), (0, ""), t.said)
        at_all = [e for e in t.events if e.name == "sched_switch"]
        taken = [e for e in at_all if e.f_pid == t.pid and e.f_next_pid == spinner.pid]
        given = [e for e in at_all if e.f_pid == spinner.pid and e.f_next_pid == t.pid]
        check(taken, "it took the CPU at least once")
        check(given, "it gave it back")
        equal({e.f_next_tid for e in taken} | {e.tid for e in given}, {spinner.pid}, "its thread")
        runnable = sum(e.f_state == "runnable" for e in given)
        check(0 < runnable <= preempted, "times that it was preempted", runnable, preempted)
        check(len(given) - runnable <= waits, "times that it waited", len(given) - runnable, waits)


def sched():
    """As many switches as the kernel counts for the process; who takes the CPU is named."""
    with private_dir() as folder:
        t = Traced(folder, "sched", 20000, "sched")
        equal((t.lost, t.warned), (0, ""), t.said)
        inside = [e for e in t.between(3) if e.name == "sched_switch"]
        left = [e for e in inside if e.f_pid == t.pid]
        least, most = map(int, t.printed["sched"])
        check(least <= len(left) <= most, "switches, as getrusage counts", len(left), least, most)
        check(sum(e.f_state == "sleeping" for e in left) >= 1900, "sleeps")
        came = [e for e in inside if e.f_next_pid == t.pid]
        # Kernels are seen that run no program at some switches, of all those away from certain threads of others.
        check(len(left) * 0.98 <= len(came) <= len(left), "comes back as often", len(came), len(left))
        check(all(e.f_comm == "steps" for e in left) and all(e.f_next_comm == "steps" for e in came), "names")
        check(all(e.f_next_comm for e in left), "who took the CPU")
        prio = 20 + os.getpriority(os.PRIO_PROCESS, 0)
        equal({e.f_prio for e in left} | {e.f_next_prio for e in came}, {prio}, "priority")
        woken = [e for e in t.between(3) if e.name == "sched_wakeup" and e.f_woken_pid == t.pid]
        equal({(e.f_woken_comm, e.f_woken_prio) for e in woken}, {("steps", prio)}, "who was woken")
        check(all(e.f_target_cpu < os.cpu_count() for e in woken), "where to")
        last = [e for e in t.events if e.name == "sched_switch" and e.f_pid == t.pid][-1]
        equal(last.f_state, "zombie", "state at the end")
        names = [e.name for e in t.events if e.origin == "kernel"]
        equal((names.count("process_exec"), names.count("thread_exit")), (1, 1), "of one process")


# The kernel's own trace of the same program, in an instance of its own.
BESIDE = '''
cd %s/instances && mkdir allium-test && cd allium-test || exit 99
trap 'echo 0 > tracing_on; cat trace > "$OUT"; cd ..; rmdir allium-test' EXIT
echo mono > trace_clock; echo 65536 > buffer_size_kb
echo 1 > options/event-fork; echo $$ > set_event_pid
for event in kmalloc kfree kmem_cache_alloc kmem_cache_free mm_page_alloc mm_page_free rss_stat; do
    echo 1 > events/kmem/$event/enable
done
cd "$HERE"; "$@"; code=$?; cd - >/dev/null; exit $code
''' % lib.TRACEFS
RECORD = re.compile(r"^\s*.{1,16}-(\d+)\s+\[\d+\] \S+\s+(\d+)\.(\d{6}): (\w+): (.*)$")
FTRACE = {"kmalloc": ("kmalloc", ("bytes_req", "bytes_alloc")), "kfree": ("kfree", ()),
          "kmem_cache_alloc": ("cache_alloc", ("name", "bytes_req", "bytes_alloc")),
          "kmem_cache_free": ("cache_free", ("name",)), "mm_page_alloc": ("page_alloc", ("pfn", "order")),
          "mm_page_free": ("page_free", ("pfn", "order")), "rss_stat": ("rss", ("type", "size"))}
RSS = {"MM_FILEPAGES": "file", "MM_ANONPAGES": "anonymous", "MM_SWAPENTS": "swapped", "MM_SHMEMPAGES": "shared"}
OURS = {"kmalloc": ("requested", "allocated"), "kfree": (), "cache_alloc": ("cache", "requested", "allocated"),
        "cache_free": ("cache",), "page_alloc": ("pfn", "order"), "page_free": ("pfn", "order"),
        "rss": ("kind", "bytes")}


def value(name, text):
    if name in ("name", "type"):
        return RSS.get(text, text)
    return int(text.rstrip("B"), 0)


def memory():
    """Objects, pages and resident memory: those of the kernel's own trace, with their values."""
    with private_dir() as folder:
        t = Traced(folder, "kmem,pages,rss", 20000, "memory", before=lib.with_tracefs(["sh", "-c", BESIDE, "sh"]),
                   env={"OUT": folder + "/trace", "HERE": os.getcwd()})
        equal((t.lost, t.warned), (0, ""), t.said)
        inside = [e for e in t.between(4) if e.f_pid == t.pid]
        begin, end = t.span[0] + 1000000, t.span[1] - 1000000  # it sleeps at both
        want = []
        with open(folder + "/trace") as file:
            for line in file:
                found = RECORD.match(line)
                check(found or line.startswith("#") or not line.strip(), line)
                if not found or int(found.group(1)) != t.pid or found.group(4) not in FTRACE:
                    continue
                us = int(found.group(2)) * 1000000 + int(found.group(3))
                if not begin // 1000 <= us <= end // 1000:
                    continue
                name, fields = FTRACE[found.group(4)]
                values = dict(re.findall(r"(\w+)=(\S+)", found.group(5)))
                want.append((name, *(value(f, values[f]) for f in fields)))
        got = [(e.name, *e.fields(*OURS[e.name])) for e in inside if begin <= e.ns <= end]
        check(len(got) > 2000 * 6, len(got))
        for name in OURS:
            check(name == "page_free" or any(e[0] == name for e in got), name)
        # An interrupt between both traces' turns at one event has its own events in another order.
        ours, theirs = collections.Counter(got), collections.Counter(want)
        equal((ours - theirs, theirs - ours), ({}, {}), "events of one trace alone")


def children():
    """Children are traced, and nobody else is."""
    with private_dir() as folder:
        t = Traced(folder, "faults,sched", 1, "children")
        child, pages = int(t.printed["child"][0]), int(t.printed["child"][1], 16)
        theirs = [e for e in t.events if e.name == "page_fault_begin" and pages <= e.f_address < pages + 4096 * 777]
        equal(len([e for e in theirs if e.f_pid == child]), 777, "faults of the child")
        equal({e.f_pid for e in t.events if e.name.startswith("page_fault")}, {t.pid, child}, "processes")
        equal([e.f_child_pid for e in t.events if e.name == "process_fork"], [child], "forks")


def order(rounds=100000):
    """The system call between two events of the program lies between them, on the clock of both."""
    with private_dir() as folder:
        t = Traced(folder, "maps", rounds, "order")
        equal((t.lost, t.warned), (0, ""), t.said)
        ours = [e.name for e in t.events if e.name == "free" or e.name == "madvise" and e.f_advice == 4 or
                e.name == "malloc" and e.f_size == 50001]
        at = ours.index("malloc")
        equal(ours[at:at + 3 * rounds], ["malloc", "madvise", "free"] * rounds, "order")


def flight():
    """With --flight the kernel's rings overwrite; a snapshot has both parts, and each CPU's is complete from a time on.
    So the program stays on one: the ring of a CPU that it left would have older events."""
    with private_dir() as folder:
        cpu = str(max(os.sched_getaffinity(0)))
        done = tap.run([ALLIUM, "trace", "--flight", "--kernel", "maps,faults", "--kernel-buffer", "1M",
                        "--snapshot-on", "exit!=0", "-o", folder + "/t", "--", "taskset", "-c", cpu, compiled(folder),
                        "50000", "order", "faults", "fail"],
                       env=dict(os.environ, ALLIUM_KERNEL_COUNTS="1"))
        said = done.stderr.decode()
        equal((done.returncode, sorted(os.listdir(folder + "/t"))), (3, ["1-exit", "profile.allium"]), said)
        found = re.search(r"allium: (\d+) events of the kernel in the last snapshot, (\d+) lost", said)
        check(found and "only while allium runs" in said, said)
        shown = tap.run(["babeltrace2", "--clock-cycles", "--no-delta", folder + "/t/1-exit"])
        equal(shown.returncode, 0, shown.stderr)
        events = [Event(line) for line in shown.stdout.decode().splitlines()]
        kernel = [e for e in events if e.origin == "kernel"]
        equal((len(kernel), int(found.group(2))), (int(found.group(1)), 0), "events of the kernel, lost")
        pages = int(dict(line.split(None, 1) for line in done.stdout.decode().splitlines())["faults"].split()[2], 16)
        touched = [(e.f_address - pages) // 4096 for e in kernel if e.name == "page_fault_begin" and
                   pages <= e.f_address < pages + 4096 * 50000]
        check(len(touched) > 5000, len(touched))
        equal(sorted(touched), list(range(50000 - len(touched), 50000)), "the last pages")
        check(any(e.name == "malloc" and e.f_size == 10002 for e in events), "the program's part")


def discarded(warned):
    return sum(map(int, DISCARDED.findall(warned)))


def losses():
    """A ring that is too small: written and lost are together what the programs counted; babeltrace2 says so, too."""
    with private_dir() as folder:
        t = Traced(folder, "faults,maps,rss", 200000, "order", options=("--kernel-buffer", "32K"))
        check(t.lost > 0, t.said)
        check(t.written + t.lost >= 2 * 200000, t.said)
        equal(discarded(t.warned), t.lost, "events that babeltrace2 says are discarded")


# allium sleeps while the program runs, and nothing happens behind what is lost.
ASLEEP = 'kill -STOP $PPID; "$@"; kill -CONT $PPID'


def losses_at_the_end():
    """Losses behind the last packet of a ring are in the trace, too, and those of a CPU are the kernel's and the
    program's.
    """
    with private_dir() as folder:
        t = Traced(folder, "maps", 20000, "order", options=("--kernel-buffer", "32K", "--buffer", "64K"),
                   inside=("sh", "-c", ASLEEP, "sh"))
        own = int(re.search(r"allium: \d+ events of \d+ process.*, (\d+) lost\n", t.said).group(1))
        check(t.lost > 20000 and own > 10000, t.said)
        equal(discarded(t.warned), t.lost, "events that babeltrace2 says are discarded")
        shown = tap.run([ALLIUM, "events", "--by", "cpu", folder + "/t"])
        check(b"allium: %d events were lost" % (t.lost + own) in shown.stderr, shown.stderr)
        rows = succeed([ALLIUM, "events", "--by", "cpu", "--json", folder + "/t"]).stdout.splitlines()[1:-1]
        equal(sum(json.loads(row)["lost_events"] for row in rows), t.lost + own, "losses of the CPUs")


def mistakes():
    """Without privileges, or with a wrong list: one line, and the program does not run."""
    with private_dir() as folder:
        for before, words, code, line in (
                (("setpriv", "--bounding-set=-all", "--inh-caps=-all"), ("--kernel", "faults"), 3, "as root"),
                ((), ("--kernel", "faults,nosuch"), 2, "unknown events in --kernel: nosuch: use kmem"),
                ((), ("--kernel", ""), 2, "unknown events"), ((), ("--kernel-buffer", "1M"), 2, "is for --kernel"),
                ((), ("--kernel", "rss", "--kernel-buffer", "1"), 2, "out of range"),
                ((), ("--kernel", "rss", "--kernel-all"), 2, "leave one out")):
            done = tap.run([*before, ALLIUM, "trace", *words, "-o", folder + "/t", "--", "touch", folder + "/ran"])
            equal(done.returncode, code, words)
            check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr)
        equal(os.listdir(folder), [], "what is left behind")


def everything():
    """All groups at once; the kernel's programs are gone afterwards."""
    with private_dir() as folder:
        t = Traced(folder, None, 1000, "faults", "maps", "memory", "sched", "children", options=("--kernel-all",))
        equal((t.lost, t.warned), (0, ""), t.said)
        names = {e.name for e in t.events if e.origin == "kernel"}
        check({"kmalloc", "kfree", "cache_alloc", "cache_free", "page_alloc", "page_free", "rss", "mmap", "brk",
               "page_fault_begin", "page_fault_end", "sched_switch", "process_fork"} <= names, names)


lib.main([
    ("faults are those that the kernel counts, with their class", faults),
    ("mappings: arguments and results", maps),
    ("as many calls as the program counts, done and failed", counts),
    ("resident memory is that of the page tables", rss),
    ("switches are those that the kernel counts", sched),
    ("who takes the CPU", takers),
    ("objects, pages and resident memory are those of the kernel's own trace", memory),
    ("children are traced, others are not", children),
    ("the program's events and the kernel's are on one clock", order),
    ("--flight", flight),
    ("losses are exact", losses),
    ("losses behind the last packet", losses_at_the_end),
    ("all groups at once", everything),
    ("first mistakes", mistakes),
])
