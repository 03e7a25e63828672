/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preloaded library that compares our unwinder with libgcc's at every allocation of a real program. Writes to
 * $UNWIND_CHECK_OUT, one line for each process: stacks compared, distinct ones, median depth, differences; the first
 * differences in full.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "unwind/module.h"
#include "unwind/walk.h"

#define DEPTH_MAX    512
#define DISTINCT_MAX (1u << 20)
#define PCS_MAX      (1u << 20)
#define SHOWN_MAX    3

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static struct walk_cache cache;
static uint32_t never_sealed;
static uintptr_t pcs[PCS_MAX];
static _Atomic uint32_t pcs_used;
static _Atomic uint64_t seen[DISTINCT_MAX];
static _Atomic uint32_t depths[DEPTH_MAX + 1];
static _Atomic uint64_t compared, distinct, differences, whole;
static _Thread_local struct stack_bounds bounds __attribute__((tls_model("initial-exec")));
static _Thread_local int busy __attribute__((tls_model("initial-exec")));
static int out = -1;

static uint32_t name(void *arg, uint32_t module, uintptr_t pc, bool exact)
{
    (void)arg;
    (void)module;
    (void)exact;
    uint32_t i = atomic_fetch_add(&pcs_used, 1);
    if (i >= PCS_MAX || i > WALK_ID_MAX)
        return WALK_NO_ID;
    pcs[i] = pc;
    return i;
}

struct trace {
    uintptr_t pc[DEPTH_MAX];
    unsigned depth;
};

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *arg)
{
    struct trace *t = arg;
    uintptr_t pc = _Unwind_GetIP(context);
    if (pc && t->depth < DEPTH_MAX)
        t->pc[t->depth++] = pc;
    return t->depth < DEPTH_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void report(const struct trace *theirs, unsigned first, const uint32_t *ids, unsigned depth, int end)
{
    char line[128];
    if (out < 0 || differences > SHOWN_MAX)
        return;
    int n = snprintf(line, sizeof(line), "difference: end %d, ours %u frames, theirs %u\n", end, depth,
                     theirs->depth - first);
    if (write(out, line, (size_t)n) < 0)
        return;
    for (unsigned i = 0; i < depth || first + i < theirs->depth; i++) {
        Dl_info a = {0}, b = {0};
        uintptr_t ours = i < depth ? pcs[ids[i]] : 0,
                  other = first + i < theirs->depth ? theirs->pc[first + i] : 0;
        dladdr((void *)ours, &a);
        dladdr((void *)other, &b);
        n = snprintf(line, sizeof(line), "  %#lx %.30s\t%#lx %.30s\n", ours - (uintptr_t)a.dli_fbase,
                     a.dli_fname ? strrchr(a.dli_fname, '/') : "-", other - (uintptr_t)b.dli_fbase,
                     b.dli_fname ? strrchr(b.dli_fname, '/') : "-");
        if (write(out, line, (size_t)n) < 0)
            return;
    }
}

static void count_distinct(const uint32_t *ids, unsigned depth)
{
    uint64_t h = depth;
    for (unsigned i = 0; i < depth; i++)
        h = (h ^ pcs[ids[i]]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    h |= 1;
    for (uint32_t i = (uint32_t)(h >> 20) % DISTINCT_MAX, n = 0; n < 64; i = (i + 1) % DISTINCT_MAX, n++) {
        uint64_t have = 0;
        if (seen[i] == h)
            return;
        if (atomic_compare_exchange_strong(&seen[i], &have, h)) {
            distinct++;
            depths[depth]++;
            return;
        }
        if (have == h)
            return;
    }
}

static __attribute__((noinline)) void check(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    if (busy)
        return;
    busy = 1;
    uint32_t ids[DEPTH_MAX];
    struct trace theirs = {.depth = 0};
    struct walk_start start = {pc, sp, fp};
    struct walker w = {.cache = &cache, .name = name, .sealed = &never_sealed};
    enum walk_end end;
    unsigned depth = walk_stack(&w, &bounds, &start, ids, DEPTH_MAX, &end), first = 0;
    _Unwind_Backtrace(take, &theirs);
    while (first < theirs.depth && theirs.pc[first] != pc)
        first++;
    unsigned both = theirs.depth - first < depth ? theirs.depth - first : depth;
    bool same = theirs.depth - first == depth || theirs.depth == DEPTH_MAX || depth == DEPTH_MAX;
    for (unsigned i = 0; i < both && same; i++)
        same = pcs[ids[i]] == theirs.pc[first + i];
    compared++;
    whole += end == WALK_WHOLE;
    count_distinct(ids, depth);
    if (!same) {
        differences++;
        report(&theirs, first, ids, depth, end);
    }
    busy = 0;
}

#define CHECK()                                                                                              \
    check((uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_frame_address(0) + 16,                \
          *(uintptr_t *)__builtin_frame_address(0))

void *malloc(size_t size)
{
    CHECK();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t each)
{
    CHECK();
    return __libc_calloc(n, each);
}

void *realloc(void *p, size_t size)
{
    CHECK();
    return __libc_realloc(p, size);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("UNWIND_CHECK_OUT");
    busy = 1;
    if (path)
        out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct trace t = {.depth = 0};
    _Unwind_Backtrace(take, &t); /* loads and allocates what it needs */
    busy = 0;
}

__attribute__((destructor)) static void finish(void)
{
    char line[256];
    uint64_t half = 0;
    unsigned median = 0;
    busy = 1;
    while (median < DEPTH_MAX && (half += depths[median]) * 2 < distinct)
        median++;
    int n = snprintf(line, sizeof(line), "compared %lu distinct %lu median %u whole %lu differences %lu\n",
                     compared, distinct, median, whole, differences);
    if (out >= 0 && write(out, line, (size_t)n) < 0)
        return;
}
