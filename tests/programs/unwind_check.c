/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preloaded library that walks the stack of every allocation of a real program twice, with our unwinder and with
 * another one, and compares the two frame by frame. The other one is libgcc's, or, in a program that says where its
 * chain of frame pointers ends (frame_chain.c), that chain.
 *
 * Each process image writes to a file of its own, $UNWIND_CHECK_DIR/PID.NUMBER.unwind, through a shared mapping, so
 * that it survives _exit, exec and SIGKILL: struct result, read by unwinder.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "unwind/module.h"
#include "unwind/walk.h"
#include "unwind/walk_cache.h"

#define DEPTH_MAX    512u /* of one walk; a hash keeps it in its lowest ten bits */
#define DEPTH_MASK   1023u
#define DISTINCT_MAX (1u << 20)
#define PCS_MAX      (1u << 20)
#define PROBES_MAX   64
#define TEXT_BYTES   8192

struct result {
    _Atomic uint64_t compared, whole, differences, distinct, text_used;
    char text[TEXT_BYTES];
    uint64_t stacks[DISTINCT_MAX]; /* hashes, the same in every process that has the stack; and the depth */
};

/* A fork child finds all of it zero, and begins anew. */
static struct state {
    struct result *result;
    atomic_flag opening;
    struct word_cache cache;
    _Atomic uintptr_t pcs[PCS_MAX]; /* a frame's number is where its pc stands */
    _Atomic uint64_t keys[PCS_MAX]; /* module and offset: what a stack is told by */
    _Atomic uint64_t seen[DISTINCT_MAX * 2];
} * state;

/* The outermost frame of a program's own, once it is running; the program has this only if it keeps frame pointers. */
extern uintptr_t frame_chain_end __attribute__((weak));

static char folder[256];
static uint32_t never_sealed;
static _Thread_local struct stack_bounds bounds;
static _Thread_local int busy;

/* Each thread has one walk cache, so that its frames are those of another place more often than in the agent. */
struct along {
    struct walk_cache cache;
    struct walk_cache_walk walk;
};
static _Thread_local struct along *along;

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t key_of(uint32_t module, uintptr_t pc)
{
    if (module == MODULE_NONE)
        return 1; /* where code made at run time lies says nothing */
    const struct unwind_module *m = &unwind_modules.at[module];
    uint64_t h = m->build_id_word;
    for (const char *c = m->name; !h && *c; c++)
        h = mix(h, (uint8_t)*c);
    return mix(h, pc - m->bias);
}

static uint32_t name(void *arg, uint32_t module, uintptr_t pc, bool exact)
{
    (void)arg;
    (void)exact;
    for (uint32_t i = (uint32_t)(mix(0, pc) >> 32) % PCS_MAX, n = 0; n < PROBES_MAX;
         i = (i + 1) % PCS_MAX, n++) {
        uintptr_t have = 0;
        if (!atomic_compare_exchange_strong(&state->pcs[i], &have, pc) && have != pc)
            continue;
        state->keys[i] = key_of(module, pc);
        return i;
    }
    return WALK_NO_ID;
}

struct trace {
    uintptr_t pc[DEPTH_MAX + 8]; /* theirs has our own frames first */
    unsigned depth, first;
};

#define TRACE_MAX (sizeof(((struct trace *)0)->pc) / sizeof(uintptr_t))

static _Unwind_Reason_Code take(struct _Unwind_Context *context, void *arg)
{
    struct trace *t = arg;
    uintptr_t pc = _Unwind_GetIP(context);
    if (pc && t->depth < TRACE_MAX)
        t->pc[t->depth++] = pc;
    return t->depth < TRACE_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* A chain that is broken ends early, and is a difference. */
static void follow_chain(struct trace *t, uintptr_t pc, uintptr_t fp)
{
    t->pc[t->depth++] = pc;
    for (uintptr_t below = 0; fp > below && fp <= frame_chain_end && t->depth < TRACE_MAX;) {
        t->pc[t->depth++] = ((const uintptr_t *)fp)[1];
        below = fp;
        fp = *(const uintptr_t *)fp;
    }
}

static void say(const char *line, int length)
{
    uint64_t at = state->result->text_used;
    if (at + (uint64_t)length >= TEXT_BYTES)
        return;
    memcpy(state->result->text + at, line, (size_t)length);
    state->result->text_used = at + (uint64_t)length;
}

static void say_frame(uintptr_t pc, const char *after)
{
    char line[128];
    Dl_info in = {0};
    if (pc)
        dladdr((void *)pc, &in);
    const char *base = in.dli_fname ? strrchr(in.dli_fname, '/') : NULL;
    say(line, snprintf(line, sizeof(line), "  %#lx %.30s%s", pc - (uintptr_t)in.dli_fbase,
                       base           ? base + 1
                       : in.dli_fname ? in.dli_fname
                                      : "-",
                       after));
}

static void report(const struct trace *ours, const struct trace *theirs, enum walk_end end)
{
    char line[128];
    unsigned rest = theirs->depth - theirs->first;
    if (state->result->text_used > TEXT_BYTES / 2)
        return; /* one or two tell enough */
    say(line, snprintf(line, sizeof(line), "difference: end %d, ours %u frames, theirs %u\n", end,
                       ours->depth, rest));
    for (unsigned i = 0; i < ours->depth || i < rest; i++) {
        say_frame(i < ours->depth ? ours->pc[i] : 0, "");
        say_frame(i < rest ? theirs->pc[theirs->first + i] : 0, "\n");
    }
}

static void count_distinct(struct result *r, const uint32_t *ids, unsigned depth)
{
    uint64_t h = depth;
    for (unsigned i = 0; i < depth; i++)
        h = mix(h, state->keys[ids[i]]);
    h = (h & ~(uint64_t)DEPTH_MASK) | depth;
    for (uint32_t i = (uint32_t)(h >> 32), n = 0; n < PROBES_MAX; i++, n++) {
        uint64_t have = 0;
        if (atomic_compare_exchange_strong(&state->seen[i % (DISTINCT_MAX * 2)], &have, h)) {
            uint64_t at = atomic_fetch_add(&r->distinct, 1);
            if (at < DISTINCT_MAX)
                r->stacks[at] = h;
            return;
        }
        if (have == h)
            return;
    }
}

/* Beyond the end of a chain are two more frames: libc's, and the one where all began. */
static bool same(const struct trace *ours, const struct trace *theirs, enum walk_end end)
{
    unsigned rest = theirs->depth - theirs->first;
    bool cut = ours->depth == DEPTH_MAX && rest >= DEPTH_MAX;
    bool beyond = &frame_chain_end && end == WALK_WHOLE && ours->depth > rest && ours->depth <= rest + 2;
    if (!cut && !beyond && rest != ours->depth)
        return false;
    return !memcmp(ours->pc, theirs->pc + theirs->first,
                   (cut || !beyond ? ours->depth : rest) * sizeof(uintptr_t));
}

static void open_result(void)
{
    char path[320];
    int fd = -1;
    if (atomic_flag_test_and_set(&state->opening))
        return;
    for (unsigned number = 0; fd < 0 && number < 100; number++) {
        snprintf(path, sizeof(path), "%s/%d.%u.unwind", folder, (int)getpid(), number);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (fd < 0)
        return;
    if (!ftruncate(fd, sizeof(struct result))) {
        void *p = mmap(NULL, sizeof(struct result), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        state->result = p == MAP_FAILED ? NULL : p;
    }
    close(fd);
}

/* NULL: no memory. A fork child finds it zero, too. */
static struct along *own_cache(void)
{
    if (!along) {
        void *p = mmap(NULL, sizeof(*along), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || madvise(p, sizeof(*along), MADV_WIPEONFORK))
            return NULL;
        along = p;
    }
    return along;
}

/* Does the walk with a cache give the same frames as the one without, as far as it goes? */
static bool same_along(const struct walker *w, const struct walk_start *start, const uint32_t *ids,
                       unsigned depth, enum walk_end end)
{
    struct along *own = own_cache();
    unsigned along_depth, most = depth < WALK_CACHE_MAX ? depth : WALK_CACHE_MAX;
    enum walk_end along_end;
    if (!own)
        return false;
    const uint32_t *along_ids =
        walk_along(w, &own->cache, &own->walk, &bounds, start, 1, &along_depth, &along_end);
    return along_depth == most && along_end == (depth > WALK_CACHE_MAX ? WALK_CUT : end) &&
           !memcmp(along_ids, ids, most * sizeof(*ids));
}

static __attribute__((noinline)) void compare(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    static _Thread_local uint32_t ids[DEPTH_MAX];
    static _Thread_local struct trace ours, theirs;
    struct walk_start start = {pc, sp, fp};
    struct walker w = {.cache = &state->cache, .name = name, .sealed = &never_sealed};
    enum walk_end end;
    if (&frame_chain_end && !frame_chain_end)
        return;
    if (!state->result)
        open_result();
    struct result *r = state->result;
    if (!r)
        return;
    ours.depth = walk_stack(&w, &bounds, &start, ids, DEPTH_MAX, &end);
    for (unsigned i = 0; i < ours.depth; i++)
        ours.pc[i] = state->pcs[ids[i]];
    theirs.depth = theirs.first = 0;
    if (&frame_chain_end)
        follow_chain(&theirs, pc, fp);
    else
        _Unwind_Backtrace(take, &theirs);
    while (theirs.first < theirs.depth && theirs.pc[theirs.first] != pc)
        theirs.first++;
    r->compared++;
    r->whole += end == WALK_WHOLE;
    count_distinct(r, ids, ours.depth);
    if (!same(&ours, &theirs, end) || !same_along(&w, &start, ids, ours.depth, end)) {
        r->differences++;
        report(&ours, &theirs, end);
    }
}

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
} real;

static void find(void)
{
    busy++;
    real.malloc = dlsym(RTLD_NEXT, "malloc");
    real.calloc = dlsym(RTLD_NEXT, "calloc");
    real.realloc = dlsym(RTLD_NEXT, "realloc");
    busy--;
}

#define CHECK(fn)                                                                                            \
    do {                                                                                                     \
        int saved = errno;                                                                                   \
        if (state && !busy++)                                                                                \
            compare((uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_frame_address(0) + 16,      \
                    *(uintptr_t *)__builtin_frame_address(0));                                               \
        busy -= state != NULL;                                                                               \
        if (!real.fn)                                                                                        \
            find();                                                                                          \
        errno = saved;                                                                                       \
    } while (0)

void *malloc(size_t size)
{
    CHECK(malloc);
    return real.malloc(size);
}

void *calloc(size_t n, size_t each)
{
    CHECK(calloc);
    return real.calloc(n, each);
}

void *realloc(void *p, size_t size)
{
    CHECK(realloc);
    return real.realloc(p, size);
}

__attribute__((constructor)) static void begin(void)
{
    const char *dir = getenv("UNWIND_CHECK_DIR");
    struct trace t = {0};
    busy++;
    _Unwind_Backtrace(take, &t); /* loads and allocates what it needs */
    module_init();               /* some modules stay: their frames are cached */
    void *p = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (dir && p != MAP_FAILED && !madvise(p, sizeof(*state), MADV_WIPEONFORK)) {
        snprintf(folder, sizeof(folder), "%s", dir);
        state = p;
    }
    busy--;
}
