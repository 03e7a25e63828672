# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --function`: calls of functions and static probes, beside a program that prints each of its calls with
arguments, result and the time before and after it; as babeltrace2's library reads the events.
"""
import collections
import json
import os
import re
import subprocess
import sys

import bt2

sys.dont_write_bytecode = True
import lib
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Its first instruction is a nop, so that a call costs little.
LIBRARY = r"""
__attribute__((patchable_function_entry(1))) long half(long a) { return a / 2; }
"""
# "call NAME THREAD BEFORE AFTER RESULT ARGUMENT..." for each call of work(); the others are few.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noipa))
extern long half(long a);
static long rounds;
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000l + t.tv_nsec;
}

ALONE long work(long a, long b, long c, long d, long e, long f) { return a * 3 + b - c + d * 2 - e + f; }
ALONE long level(long n)
{
    long below = n ? level(n - 1) : half(82);
    __asm__ volatile("" : "+r"(below)); /* no loop */
    return below + 1;
}
ALONE long last(long n) { return n + 7; }
ALONE long tail(long n) { return last(n * 2); }
static jmp_buf there;
ALONE long jumps(long n) { if (n) longjmp(there, 1); return n; }
ALONE long around(long n) { if (!setjmp(there)) jumps(n); return half(n); }

static void call_all(const char *who, long count)
{
    const long tid = syscall(SYS_gettid);
    char *text = malloc((size_t)count * 200), *at = text;
    for (long i = 0; i < count; i++) {
        long a[6] = {i, -i, i << 40, tid, (long)who, -1}, before = now();
        long result = work(a[0], a[1], a[2], a[3], a[4], a[5]), after = now();
        at += sprintf(at, "call work %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", tid, before, after, result, a[0], a[1],
                      a[2], a[3], a[4], a[5]);
    }
    fwrite(text, 1, (size_t)(at - text), stdout);
    free(text);
}

static void *thread(void *who) { call_all(who, rounds); return NULL; }

int main(int argc, char **argv)
{
    rounds = atol(argv[1]);
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (argc > 2) { /* as fast as it can */
        long sum = 0;
        for (long i = 0; i < rounds; i++) sum += half(i);
        printf("sum %ld\n", sum);
        return 0;
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, thread, "thread");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    fflush(stdout);
    if (!fork()) {
        call_all("child", rounds);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    long before = now(), result = level(4), after = now();
    printf("level %ld %ld %ld\n", before, after, result);
    printf("tail %ld\n", tail(5));
    printf("around %ld\n", around(12));
}
"""
# Opens the library, and waits for a number.
SERVED = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long served(long a) { return a + 2; }
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    long (*half)(long) = (long (*)(long))dlsym(library, "half"), rounds = 0, sum = 0;
    puts("opened");
    fflush(stdout);
    if (scanf("%ld", &rounds) != 1)
        return 1;
    for (long i = 0; i < rounds; i++)
        sum = served(half(2 * i) * 2) - i * 2 + sum;
    if (!fork()) {
        for (long i = 0; i < rounds; i++)
            served(i);
        _exit((int)half(1));
    }
    wait(NULL);
    printf("%ld %ld\n", sum, half(rounds));
    return 0;
}
"""
# Macros: a function; a static probe.
MACROS = r"""
    .macro function name
    .globl \name
    .type \name, @function
    .balign 32
\name:
    .endm
    .macro probe name, semaphore, arguments
990: nop
    .pushsection .note.stapsdt, "", "note"
    .balign 4
    .4byte 992f - 991f, 994f - 993f, 3
991: .asciz "stapsdt"
992: .balign 4
993: .8byte 990b, _.stapsdt.base, \semaphore
    .asciz "test"
    .asciz "\name"
    .asciz "\arguments"
994: .balign 4
    .popsection
    .endm
    .pushsection .stapsdt.base, "aG", "progbits", .stapsdt.base, comdat
    .weak _.stapsdt.base
    .hidden _.stapsdt.base
_.stapsdt.base: .space 1
    .popsection
"""
# Functions with a known cheapest place, and static probes.
ASSEMBLY = MACROS + r"""
    .pushsection .probes, "aw", "progbits"
    .globl used
used: .2byte 0
    .balign 8
    .popsection
    .text
    function on_nop
    nop
    ret
    .size on_nop, . - on_nop
    function on_push
    endbr64
    movq %rdi, %rax
    push %rbx
    pop %rbx
    ret
    .size on_push, . - on_push
    function on_jump
    testq %rdi, %rdi
    je 1f
1:  ret
    .size on_jump, . - on_jump
    function on_step
    subq $8, %rsp
    addq $8, %rsp
    ret
    .size on_step, . - on_step
    function changes
    movq $1, %rdi
    push %rbx
    pop %rbx
    ret
    .size changes, . - changes
    function loops
    movl $3, %eax
2:  push %rbx
    pop %rbx
    decl %eax
    jne 2b
    ret
    .size loops, . - loops
    function probes
    push %rbx
    movq %rdi, %rbx
    probe registers, 0, "8@%rdi -4@%esi 4@%esi -2@%si -1@%sil 1@%sil"
    probe constants, 0, "-4@$-7 8@$0x10 4@$255"
    probe memory, 0, "8@(%rdx) -4@8(%rdx) 2@8(%rdx,%rcx,2) -1@-8+20(%rdx,%rcx) 8@(,%r8,8) 8@8(%rsp)"
    probe guarded, used, ""
    probe twelve, 0, "8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx 8@%rbx"
    probe vector, 0, "8f@%xmm0"
    probe several, 0, "-4@%esi"
    probe several, 0, "8@%rdi"
    probe uneven, 0, "8@%rdi"
    probe uneven, 0, "8@%rdi 8@%rsi"
    pop %rbx
    ret
    .size probes, . - probes
    .section .note.GNU-stack, "", @progbits
"""
CALLER = r"""
#include <stdio.h>
#include <stdlib.h>
extern long on_nop(long), on_push(long), on_jump(long), on_step(long), changes(long), loops(long);
extern void probes(long, long, const void *, long, long);
extern unsigned short used;
int main(int argc, char **argv)
{
    (void)argc;
    for (long i = 0; i < 100; i++)
        on_nop(i), on_push(i), on_jump(i), on_step(i), changes(i), loops(i);
    static struct { long a; short b[8]; } memory = {-5, {-2, -3, 40000, 5, 0x81, 7, 8, 9}};
    static long words[2] = {0x1122334455667788, 99};
    for (long i = 0; i < atol(argv[1]); i++) {
        memory.a = i;
        probes(-i, 0xfffffffffffffffel - i, &memory, 4, (long)words / 8);
    }
    printf("used %d\n", used);
}
"""
# A library with a function, and a static probe behind a semaphore; a program that loads it late, again and again.
LATE = MACROS + r"""
    .pushsection .probes, "aw", "progbits"
    .globl late_used
    .hidden late_used
late_used: .2byte 0
    .popsection
    .text
    function late
    movzwl late_used(%rip), %eax
    testl %eax, %eax
    je 1f
    probe late, late_used, "8@%rdi -4@%eax"
1:  ret
    .size late, . - late
    .section .note.GNU-stack, "", @progbits
"""
LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    long n = 0;
    for (int turn = 0; argc > 2 && turn < 3; turn++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        long (*late)(long) = library ? (long (*)(long))dlsym(library, "late") : NULL;
        if (!late)
            return 1;
        for (int i = 0; i < atoi(argv[2]); i++)
            printf("late %ld %ld\n", n, late(n)), n++;
        dlclose(library);
    }
    return 0;
}
"""
# Local functions of one name in two files; in a third one is exported beside a local one.
TWINS = r"""
#define ALONE __attribute__((noipa))
static ALONE long twin(long a) { return a + WHICH; }
LINKAGE ALONE long chosen(long a) { return a * WHICH; }
long CALL(long a) { return twin(a) + chosen(a); }
"""
TWINS_MAIN = r"""
extern long call_two(long a), call_three(long a);
int main(void)
{
    long sum = 0;
    for (long i = 0; i < 10; i++)
        sum += call_two(i) + call_three(i);
    return sum != 10 * 5 + 45 * 2 + 45 * 5;
}
"""


def compiled_late(folder):
    """The program and the library that it loads, the program with local functions"""
    for name, text in ("late.S", LATE), ("loader.c", LOADER), ("twins.c", TWINS), ("main.c", TWINS_MAIN):
        with open("%s/%s" % (folder, name), "w") as file:
            file.write(text)
    succeed(["gcc", "-shared", folder + "/late.S", "-o", folder + "/liblate.so"])
    succeed(["gcc", "-O1", folder + "/loader.c", "-o", folder + "/loader"])
    for which, number, linkage in ("two", 2, "static"), ("three", 3, ""):
        succeed(["gcc", "-O1", "-c", "-w", "-DWHICH=%d" % number, "-DCALL=call_" + which, "-DLINKAGE=" + linkage,
                 folder + "/twins.c", "-o", "%s/%s.o" % (folder, which)])
    succeed(["gcc", "-rdynamic", folder + "/main.c", folder + "/two.o", folder + "/three.o", "-o", folder + "/twins"])


def compiled(folder):
    """The programs and the library"""
    for name, text in ("half.c", LIBRARY), ("calls.c", PROGRAM), ("places.S", ASSEMBLY), ("caller.c", CALLER):
        with open("%s/%s" % (folder, name), "w") as file:
            file.write(text)
    succeed(["gcc", "-O2", "-shared", "-fPIC", folder + "/half.c", "-o", folder + "/libhalf.so"])
    succeed(["gcc", "-O2", "-pthread", folder + "/calls.c", "-o", folder + "/calls", "-L" + folder, "-lhalf",
             "-Wl,-rpath," + folder])
    succeed(["gcc", "-O1", folder + "/caller.c", folder + "/places.S", "-o", folder + "/places"])


Event = collections.namedtuple("Event", "ns name thread fields")


class Traced:
    """A run of a program: what it printed, what allium said, and its events as babeltrace2 reads them."""

    def __init__(self, folder, functions, *argv, options=()):
        words = [word for f in functions for word in ("--function", f)]
        done = tap.run([ALLIUM, "trace", *words, *options, "--force", "-o", folder + "/t", "--", *argv],
                       env=dict(os.environ, ALLIUM_KERNEL_COUNTS="1"))
        equal(done.returncode, 0, done.stderr)
        self.said = done.stderr.decode()
        self.printed = [line.split() for line in done.stdout.decode().splitlines()]
        found = re.search(r"allium: (\d+) events of functions, (\d+) lost; (\d+) counted apart\n", self.said)
        check(found, self.said)
        self.written, self.lost, counted = map(int, found.groups())
        equal(self.written + self.lost, counted, self.said)
        self.prices = self.said.splitlines()[0]
        check(self.prices.startswith("allium: probes: "), self.said)
        self.events = [self.read(m) for m in bt2.TraceCollectionMessageIterator(folder + "/t/kernel")
                       if type(m) is bt2._EventMessageConst]
        equal(len(self.events), self.written, "events that babeltrace2 reads")

    @staticmethod
    def read(message):
        e = message.event
        return Event(message.default_clock_snapshot.value, e.name, int(e["vtid"]),
                     {name: int(value) for name, value in e.payload_field.items()})

    def named(self, name):
        return [e for e in self.events if e.name == name]


def calls():
    """Each call of three threads and a fork child, once, with arguments and result, between two readings of the clock."""
    with private_dir() as folder:
        compiled(folder)
        t = Traced(folder, [":work"], folder + "/calls", "300")
        equal((t.lost, t.written), (0, 2400), t.said)
        by_thread, printed = collections.defaultdict(list), collections.defaultdict(list)
        for e in t.events:
            by_thread[e.thread].append(e)
        for line in t.printed:
            if line[0] == "call":
                printed[int(line[2])].append([int(word) for word in line[3:]])
        equal((len(printed), sum(map(len, printed.values()))), (4, 1200), "calls")
        for tid, lines in printed.items():
            events = by_thread[tid]
            equal(len(events), 2 * len(lines), "events of a thread")
            for (before, after, result, *arguments), begin, end in zip(lines, events[::2], events[1::2]):
                equal((begin.name, end.name), ("function:work_begin", "function:work_end"), "steps")
                check(before <= begin.ns <= end.ns <= after, "times", before, begin, end, after)
                equal([begin.fields["arg%d" % (i + 1)] for i in range(6)], [a % 2**64 for a in arguments], "arguments")
                equal(end.fields["result"], result % 2**64, "result")
        pid = int(t.printed[0][1])
        equal({e.fields["pid"] == pid for e in t.events}, {True, False}, "the program and its child")


def nests():
    """Recursion, a tail call, a longjmp; as allium events adds them up, and as slices."""
    with private_dir() as folder:
        compiled(folder)
        t = Traced(folder, [":level", "libhalf.so:half", "calls:tail", folder + "/calls:last", ":around", ":jumps"],
                   folder + "/calls", "1", options=("--events", "user"))
        steps = [e.name.split(":")[1] for e in t.events]
        equal(steps, ["level_begin"] * 5 + ["half_begin", "half_end"] + ["level_end"] * 5 +
              ["tail_begin", "last_begin", "last_end", "tail_end"] +
              ["around_begin", "jumps_begin", "half_begin", "half_end", "around_end"], "order")
        equal([e.fields["result"] for e in t.named("function:level_end")], [42, 43, 44, 45, 46], "results")
        equal([e.fields["arg1"] for e in t.named("function:level_begin")], [4, 3, 2, 1, 0], "arguments")
        before, after, result = next([int(word) for word in line[1:]] for line in t.printed if line[0] == "level")
        check(before <= t.events[0].ns and t.events[11].ns <= after and result == 46, "outside of its clock", before)
        done = succeed([ALLIUM, "events", folder + "/t", "--by", "call", "--json"])
        check(b"allocator's calls, only of functions (--function): record it" in done.stderr, done.stderr)
        table = done.stdout.splitlines()
        rows = {row["call"]: row for row in map(json.loads, table) if "call" in row}
        outer = t.events[11].ns - t.events[0].ns
        equal([rows["function:" + f]["calls"] for f in ("level", "half", "tail", "last", "around")], [1, 2, 1, 1, 1],
              "calls: those within themselves are parts")
        equal(rows["function:level"]["time_ns"], outer, "time of level()")
        succeed([ALLIUM, "export", folder + "/t", "--chrome", "-o", folder + "/c.json"])
        with open(folder + "/c.json") as file:
            slices = [r for r in json.load(file)["traceEvents"] if r.get("cat") == "function"]
        equal(collections.Counter(r["name"] for r in slices),
              {"level": 5, "half": 2, "tail": 1, "last": 1, "around": 1}, "slices")
        equal(max(round(r["dur"] * 1000) for r in slices if r["name"] == "level"), outer, "the longest")


def losses():
    """With a ring that is too small, what is written and what is lost are all calls."""
    with private_dir() as folder:
        compiled(folder)
        t = Traced(folder, ["libhalf.so:half"], folder + "/calls", "20000", "fast",
                   options=("--kernel-buffer", "32K", "--events", "user"))
        equal(t.written + t.lost, 40000, t.said)
        check(t.lost, t.said)


def places():
    """The cheapest place of each function; one event for each call there."""
    with private_dir() as folder:
        compiled(folder)
        names = "on_nop", "on_push", "on_jump", "on_step", "changes", "loops"
        t = Traced(folder, [":" + name for name in names], folder + "/places", "0")
        found = re.findall(r"(\w+) entry at \+(\d+) \((\w+), (\d+\.\d) us a call\), return \d+\.\d us", t.prices)
        equal([f[:3] for f in found],
              [("on_nop", "0", "nop"), ("on_push", "7", "push"), ("on_jump", "3", "jump"), ("on_step", "0", "stepped"),
               ("changes", "0", "stepped"), ("loops", "0", "stepped")], t.prices)
        check(all(float(f[3]) > 0 for f in found), t.prices)
        for name in names:
            begins = t.named("function:%s_begin" % name)
            equal([e.fields["arg1"] for e in begins], list(range(100)), name)
            equal(len(t.named("function:%s_end" % name)), 100, name)


def static_probes():
    """Values in registers, constants and memory, and a semaphore."""
    with private_dir() as folder:
        compiled(folder)
        names = ["registers", "constants", "memory", "guarded", "twelve"]
        t = Traced(folder, ["usdt:test:" + n for n in names[:3]] +
                   ["usdt:%s/places:test:%s" % (folder, n) for n in names[3:]], folder + "/places", "50")
        equal(t.printed[-1], ["used", "1"], "the semaphore")
        check("usdt:test:registers (nop, " in t.prices, t.prices)
        equal((t.lost, t.written), (0, 250), t.said)
        for i in range(50):
            hits = t.events[5 * i:5 * i + 5]
            equal([e.name for e in hits], ["usdt:test:" + n for n in names], "names")
            values = [[e.fields["arg%d" % (k + 1)] for k in range(len(e.fields) - 1)] for e in hits]
            second = -2 - i
            equal(values[0], [-i % 2**64, second, second % 2**32, second, second, second % 256], "registers")
            equal(values[1], [-7, 16, 255], "constants")
            equal(values[2][:5], [i, (-3 << 16) + 0xfffe, 0x81, 0x81 - 256, 0x1122334455667788], "memory")
            check(values[2][5], "the return address")
            equal(values[3:], [[], [-i % 2**64] * 12], "none, and twelve")
        equal(succeed([folder + "/places", "1"]).stdout, b"used 0\n", "the semaphore afterwards")
        succeed([ALLIUM, "export", folder + "/t", "--chrome", "-o", folder + "/c.json"])
        with open(folder + "/c.json") as file:
            marks = collections.Counter(r["name"] for r in json.load(file)["traceEvents"] if r["ph"] == "i")
        equal({n: marks["usdt:test:" + n] for n in names}, dict.fromkeys(names, 50), "marks")
        succeed([ALLIUM, "export", folder + "/t", "--ctf", "-o", folder + "/lttng"])
        read = [m.event.name for m in bt2.TraceCollectionMessageIterator(folder + "/lttng/kernel")
                if type(m) is bt2._EventMessageConst]
        equal(read, [e.name for e in t.events], "events in the form of LTTng")


def several_places():
    """A static probe at two places of a function: each is hit; its value is signed at one of them, and so at none."""
    with private_dir() as folder:
        compiled(folder)
        t = Traced(folder, ["usdt:test:several"], folder + "/places", "50")
        equal(t.lost, 0, t.said)
        want = [value for i in range(50) for value in ((-2 - i) % 2**32, -i % 2**64)]
        equal([e.fields["arg1"] for e in t.events], want, "values, in turns")


def loaded_late():
    """A library that the program loads after its start, three times: calls of its function, and its static probe, whose
    semaphore is up each time.
    """
    with private_dir() as folder:
        compiled_late(folder)
        library = folder + "/liblate.so"
        t = Traced(folder, [library + ":late", "usdt:%s:test:late" % library], folder + "/loader", library, "100")
        equal((t.lost, t.written), (0, 3 * 300), t.said)
        equal(t.printed, [["late", str(n), "1"] for n in range(300)], "calls, and the semaphore in them")
        for name, field, want in (("function:late_begin", "arg1", list(range(300))), ("function:late_end", "result",
                                  [1] * 300), ("usdt:test:late", "arg1", list(range(300))),
                                  ("usdt:test:late", "arg2", [1] * 300)):
            equal([e.fields[field] for e in t.named(name)], want, name)
        equal([e.name for e in t.events[:3]], ["function:late_begin", "usdt:test:late", "function:late_end"], "order")
        equal(succeed([folder + "/loader", library, "1"]).stdout.split()[2::3], [b"0"] * 3, "the semaphore afterwards")


def names():
    """Of functions of one name the exported one is taken; of local ones none, as nothing tells which."""
    with private_dir() as folder:
        compiled_late(folder)
        t = Traced(folder, [":chosen"], folder + "/twins")
        equal([e.fields["result"] for e in t.named("function:chosen_end")], [3 * i for i in range(10)], "results")
        done = tap.run([ALLIUM, "trace", "--function", ":twin", "-o", folder + "/u", "--", folder + "/twins"])
        said = done.stderr.decode()
        equal((done.returncode, said.count("\n")), (2, 1), said)
        check("several local functions of %s/twins are called twin" % folder in said, said)


def mistakes():
    """One line each, and the program does not run."""
    with private_dir() as folder:
        compiled(folder)
        for before, words, code, line in (
                (("setpriv", "--bounding-set=-all", "--inh-caps=-all"), ("--function", ":main"), 3, "as root"),
                ((), ("--function", "work"), 2, "use LIB:NAME"), ((), ("--function", "usdt:x"), 2, "use LIB:NAME"),
                ((), ("--function", ":wrok"), 2, "has no function wrok; similar names: work"),
                ((), ("--function", "libnone.so:x"), 2, "finds no library libnone.so"),
                ((), ("--function", folder + "/none:x"), 2, "No such file"),
                ((), ("--function", folder + "/half.c:x"), 2, "is not an ELF program or library"),
                ((), ("--function", "libc.so.6:strlen"), 2, "chooses one of several functions for strlen"),
                ((), ("--function", ":work", "--function", "calls:work"), 2, "work is given twice"),
                ((), ("--function", ":work") * 16, 2, "work is given twice"),
                ((), ("--function", ":work") * 17, 2, "--function is given more than 16 times"),
                ((), ("--flight", *("--snapshot-on", "signal") * 16, "--function", "work"), 2, "use LIB:NAME"),
                ((), ("--function", ':w"'), 2, "has no blanks or quotes"),
                ((), ("--function", "usdt:test:none"), 2, "test:none"),
                ((), ("--function", "usdt:%s/places:test:vectr" % folder), 2, "similar names: test:vector"),
                ((), ("--function", "usdt:%s/places:test:vector" % folder), 2, "at '8f@%xmm0', which cannot be read"),
                ((), ("--function", "usdt:%s/places:test:uneven" % folder), 2,
                 "test:uneven has different numbers of values at its places"),
                ((), ("--function", "usdt:test:late"), 2, "libraries that it is linked with have no static probe"),
                ((), ("--function", ":work", "--clock", "none"), 2, "--function needs them")):
            done = tap.run([*before, ALLIUM, "trace", *words, "-o", folder + "/t", "--", folder + "/calls", "1"])
            equal(done.returncode, code, (words, done.stderr))
            check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr)
            equal(done.stdout, b"", "the program ran")
        done = tap.run(["setpriv", "--reuid=65534", "--clear-groups", ALLIUM, "trace", "--function", ":x",
                        str(os.getpid())])
        check(done.returncode == 3 and b"as root" in done.stderr, done.stderr)
        for function, line in ((":no_such", "has no function no_such"),
                               ("libnone.so:x", "has no library libnone.so now")):
            done = tap.run([ALLIUM, "trace", "--function", function, str(os.getpid())])
            check(done.returncode == 2 and line in done.stderr.decode(), done.stderr)
        check(not os.path.exists(folder + "/t"), "what is left behind")


def compile_served(folder):
    compiled(folder)
    with open(folder + "/served.c", "w") as file:
        file.write(SERVED)
    succeed(["cc", "-O1", folder + "/served.c", "-o", folder + "/served"])


def traced_later(folder, functions, rounds, *command):
    """Runs the program, traces it once it has opened its library, and lets it go on. -> its id, what allium said"""
    served = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        equal(served.stdout.readline(), "opened\n", "the library")
        words = [word for function in functions for word in ("--function", function)]
        tracer = subprocess.Popen([ALLIUM, "trace", "--force", *words, "-o", folder + "/t", str(served.pid)],
                                  stderr=subprocess.PIPE, text=True)
        said = [tracer.stderr.readline() for _ in range(2)]
        check("probes: " in said[0] and "tracing process %d" % served.pid in said[1], said)
        served.stdin.write("%d\n" % rounds)
        served.stdin.close()
        equal(served.stdout.readline(), "%d %d\n" % (2 * rounds, rounds // 2), "results")
        said += tracer.communicate(timeout=60)[1].splitlines()
        equal((served.wait(timeout=60), tracer.returncode), (0, 0), said)
    finally:
        served.kill()
    return served.pid, said


def mounted():
    """Of a process that has another file at the path of its library than others have."""
    with private_dir() as folder:
        compile_served(folder)
        for name in "own", "lib":
            os.mkdir(folder + "/" + name)
        os.rename(folder + "/libhalf.so", folder + "/own/libhalf.so")
        library = folder + "/lib/libhalf.so"
        succeed(["gcc", "-O1", "-shared", "-fPIC", folder + "/half.c", "-o", library])  # which nobody has opened
        for named in library, "libhalf.so":
            mount = 'mount --bind "$1/own" "$1/lib" && exec "$1/served" "$2"'
            _, said = traced_later(folder, [named + ":half"], 50, "unshare", "-m", "sh", "-c", mount, "sh", folder,
                                   library)
            check(said[2].endswith(" 104 events of functions, 0 lost"), said)


def running():
    """Of a process that runs already: its program, a library that it has opened since, and its child."""
    with private_dir() as folder:
        compile_served(folder)
        os.symlink("libhalf.so", folder + "/libhalf.so.1")  # the name of a library is a link, as a rule
        pid, said = traced_later(folder, [":served", "libhalf.so.1:half"], 300, folder + "/served",
                                 folder + "/libhalf.so.1")
        check("served entry" in said[0] and "half entry" in said[0], said)
        check(said[2].endswith(" 1804 events of functions, 0 lost"), said)
        found = collections.Counter()
        for message in bt2.TraceCollectionMessageIterator(folder + "/t/kernel"):
            if type(message) is bt2._EventMessageConst:
                found[message.event.name, int(message.event.payload_field["pid"]) == pid] += 1
        equal(found, {("function:served_begin", True): 300, ("function:served_end", True): 300,
                      ("function:half_begin", True): 301, ("function:half_end", True): 301,
                      ("function:served_begin", False): 300, ("function:served_end", False): 300,
                      ("function:half_begin", False): 1, ("function:half_end", False): 1}, "events")


def flight():
    """A snapshot has the calls before the end, of a program that the command has started."""
    with private_dir() as folder:
        compiled(folder)
        done = tap.run([ALLIUM, "trace", "--flight", "--snapshot-on", "exit!=0", "--function", folder + "/calls:work",
                        "-o", folder + "/t", "--", "sh", "-c", folder + "/calls 20; exit 3"])
        equal(done.returncode, 3, done.stderr)
        check(b" 160 events of functions in the last snapshot" in done.stderr, done.stderr)


lib.main([
    ("each call has its arguments, result and time", calls),
    ("calls nest", nests),
    ("losses are exact", losses),
    ("probes are at the cheapest place", places),
    ("static probes have their values", static_probes),
    ("a static probe at several places", several_places),
    ("a library that is loaded after the start", loaded_late),
    ("functions of one name", names),
    ("a process that runs already", running),
    ("a process with mounts of its own", mounted),
    ("--flight", flight),
    ("first mistakes", mistakes),
])
