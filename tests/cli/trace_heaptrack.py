# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --heaptrack` of a trace, as heaptrack_print reads it: the counts that a program keeps of itself, to the
unit, in all, for each of its functions, and for each size.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Each function that allocates counts what heaptrack shows of it. Threads run one after the other. To heaptrack an
# allocation is temporary if the next event is the free of a block of the same size and stack. argv: a number; "threads"
# or "one"; "full" if stacks are whole, so that calls by different callers have different ones.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define N 300
#define FUNCTIONS 5
struct block {
    char *at;
    size_t size;
    int function;
    int path; /* of its call */
};
struct counts {
    unsigned long calls, temporary, peak, live;
};
static struct block blocks[N];
static struct counts of[FUNCTIONS];
static unsigned long live, peak;
static struct block last; /* allocated by the event before; at NULL: that was none */
static unsigned long sizes[80000];
static int path, whole;
static unsigned x;

static void gone(struct block *b)
{
    if (!b->at)
        return;
    of[b->function].temporary +=
        last.at && b->function == last.function && b->size == last.size && (!whole || b->path == last.path);
    last.at = NULL;
    of[b->function].live -= b->size;
    live -= b->size;
    b->at = NULL;
}

static void born(struct block *b, char *at, size_t size, int function)
{
    last = *b = (struct block){at, size, function, path};
    sizes[size]++;
    of[function].calls++;
    of[function].live += size;
    live += size;
    if (live > peak) {
        peak = live;
        for (int k = 0; k < FUNCTIONS; k++)
            of[k].peak = of[k].live;
    }
}

static void drop(struct block *b)
{
    char *volatile at = b->at;
    gone(b);
    free(at);
}

__attribute__((noinline)) static void by_malloc(struct block *b, size_t size)
{
    drop(b);
    char *volatile at = malloc(size);
    born(b, at, size, 0);
}

__attribute__((noinline)) static void by_calloc(struct block *b, size_t size)
{
    drop(b);
    char *volatile at = calloc(3, size);
    born(b, at, 3 * size, 1);
}

__attribute__((noinline)) static void by_realloc(struct block *b, size_t size)
{
    char *volatile old = b->at;
    if (old && realloc(old, (size_t)1 << 62)) /* fails, and changes nothing */
        _exit(1);
    gone(b);
    char *volatile at = realloc(old, size);
    born(b, at, size, 2);
}

__attribute__((noinline)) static void by_memalign(struct block *b, size_t size)
{
    void *at = NULL;
    drop(b);
    if (posix_memalign(&at, 128, size))
        _exit(1);
    born(b, at, size, 3);
}

/* At once, and one that another allocation follows. */
__attribute__((noinline)) static void in_passing(struct block *b, size_t size)
{
    struct block own = {NULL, 0, 0, 0};
    for (int i = 0; i < 3; i++) {
        char *volatile at = malloc(size + i);
        born(&own, at, size + i, 4);
        path += 4;
        if (i == 1)
            by_malloc(b, size);
        path -= 4;
        drop(&own);
    }
}

static void *work(void *arg)
{
    static void (*const ways[])(struct block *, size_t) = {by_malloc, by_calloc, by_realloc, by_memalign, in_passing};
    for (long i = 0; i < (long)arg; i++) {
        x = x * 1664525 + 1013904223;
        struct block *b = &blocks[(x >> 8) % N];
        if (x >> 30)
            ways[(x >> 20) % FUNCTIONS](b, 1 + (x >> 17) % 5000);
        else
            drop(b);
    }
    return NULL;
}

/* The peak, by 64 blocks that are freed again. */
static void rise(size_t size)
{
    static struct block more[64];
    path = 2;
    for (int i = 0; i < 64; i++)
        (i % 2 ? by_memalign : by_calloc)(&more[i], size + i);
    for (int i = 0; i < 64; i++)
        drop(&more[i]);
    path = 0;
}

static void *other_work(void *arg)
{
    last.at = NULL; /* libc has allocated something for the thread */
    path = 1;
    work(arg);
    path = 0;
    last.at = NULL;
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"by_malloc", "by_calloc", "by_realloc", "by_memalign", "in_passing"};
    char line[200];
    const int threads = argv[2][0] == 't';
    char *volatile first = malloc(29999); /* never freed */
    sizes[29999]++;
    x = (unsigned)atoi(argv[1]);
    whole = argv[3][0] == 'f';
    (void)first, (void)argc;
    for (int turn = 0; turn < 4; turn++) {
        pthread_t other;
        work((void *)4000);
        if (turn == 2)
            rise(20000);
        if (threads && (pthread_create(&other, NULL, other_work, (void *)4000) || pthread_join(other, NULL)))
            return 1;
    }
    for (int k = 0; k < FUNCTIONS; k++)
        if (write(1, line, (size_t)snprintf(line, sizeof(line), "%s %lu %lu %lu %lu\n", names[k], of[k].calls,
                                            of[k].temporary, of[k].peak, of[k].live)) < 0)
            return 1;
    for (int size = 0; size < 80000; size++)
        if (sizes[size] && write(1, line, (size_t)snprintf(line, sizeof(line), "%d %lu\n", size, sizes[size])) < 0)
            return 1;
    return 0;
}
"""
FIGURES = "allocations", "temporary", "peak", "leaked"


def heaptrack_print(name, *options):
    """What it prints; it must have understood all of the file."""
    done = tap.run(["heaptrack_print", "--disable-builtin-suppressions", "--shorten-templates=0", name, *options])
    equal((done.returncode, done.stderr), (0, b""), "code and stderr of heaptrack_print")
    return done.stdout.decode()


def by_function(name, figure):
    """-> {innermost function of a stack: figure}, from the stacks that heaptrack_print writes"""
    heaptrack_print(name, "-F", name + ".stacks", "--flamegraph-cost-type", figure)
    found = {}
    with open(name + ".stacks") as file:
        for line in file:
            stack, _, number = line.rpartition(" ")
            function = stack.rstrip("; ").split(";")[-1].split(" (")[0]
            found[function] = found.get(function, 0) + int(number)
    return found


def exact(*words, stacks):
    with private_dir() as folder:
        with open(folder + "/counts.c", "w") as file:
            file.write(PROGRAM)
        succeed(["cc", "-O1", "-g", "-fno-builtin", "-pthread", folder + "/counts.c", "-o", folder + "/counts"])
        done = succeed([ALLIUM, "trace", "--stacks", stacks, "-o", folder + "/t", "--", folder + "/counts", *words])
        check(b", 0 lost\n" in done.stderr, done.stderr)
        want = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in done.stdout.decode().splitlines()}
        sizes = {int(size): want.pop(size)[0] for size in list(want) if size.isdigit()}
        check(len(want) == 5 and all(min(counts) > 0 for name, counts in want.items() if name != "in_passing"), want)
        name = folder + "/t.heaptrack"
        succeed([ALLIUM, "export", folder + "/t", "--heaptrack", "-o", name])
        for number, figure in enumerate(FIGURES):
            found = by_function(name, figure)
            equal({function: found.get(function, 0) for function in want},
                  {function: counts[number] for function, counts in want.items()}, figure)
            others = sum(found.values()) - sum(found.get(function, 0) for function in want)
            # what the C library allocates for threads
            check(others in (0, 1, 29999) or "threads" in words and others < 32000, "others", figure, others)
        heaptrack_print(name, "-H", name + ".sizes")
        with open(name + ".sizes") as file:
            found = dict(tuple(map(int, line.split())) for line in file)
        lacks = {size: n - found.get(size, 0) for size, n in sizes.items() if found.get(size, 0) < n}
        check(not lacks, "calls by size", lacks)
        more = sum(found.values()) - sum(sizes.values())
        check(more == 0 or "threads" in words and more < 50, "other calls", more)
        text = heaptrack_print(name)
        for figure, heading in (("allocations", "calls to allocation functions"),
                                ("temporary", "temporary memory allocations")):
            total, = re.findall(r"^%s: (\d+)" % heading, text, re.M)
            equal(int(total), sum(by_function(name, figure).values()), heading)


tap.main([
    ("a program of one thread", lambda: exact("1", "one", "site", stacks="site")),
    ("threads that free what others have allocated", lambda: exact("2", "threads", "site", stacks="site")),
    ("whole stacks", lambda: exact("3", "threads", "full", stacks="full")),
])
