/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/attached.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/hooks/next.h"
#include "agent/process.h"
#include "agent/thread_state.h"
#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "unwind/module.h"
#include "wire/attach_state.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * One function of the allocator may call another: realloc(NULL) of glibc calls malloc(). That call runs into the jump
 * at malloc(), and would be counted a second time. So while any function but malloc() and free() runs, the thread's
 * counter is so large that no request becomes a sample. A block that realloc() frees inside needs no counting: our hook
 * has removed its sample before.
 */
#define UNCOUNTED (UINT64_MAX >> 1)

EXPORT struct attach_state allium_attach_state = {
    .magic = ATTACH_MAGIC,
    .bytes = sizeof(struct attach_state),
    .process = (uint64_t)(uintptr_t)&process.ledger.header,
};

/* Of int3: nothing jumps there before the tool has written it. */
EXPORT __attribute__((section(".text.attach_code"), aligned(64)))
const uint8_t allium_attach_code[ATTACH_COUNT * ATTACH_CODE_BYTES] = {
    [0 ... ATTACH_COUNT * ATTACH_CODE_BYTES - 1] = 0xcc};

static struct next real; /* the functions as they were */
static bool is_attached;

#define UNCOUNTED_CALL(call)                                                                                 \
    struct thread *t = &thread_self;                                                                         \
    const uint64_t left = t->left;                                                                           \
    t->left = UNCOUNTED;                                                                                     \
    const __auto_type result = call;                                                                         \
    t->left = left;                                                                                          \
    return result

static void *uncounted_calloc(size_t count, size_t each)
{
    UNCOUNTED_CALL(real.calloc(count, each));
}

static void *uncounted_realloc(void *old, size_t size)
{
    UNCOUNTED_CALL(real.realloc(old, size));
}

static int uncounted_posix_memalign(void **out, size_t alignment, size_t size)
{
    UNCOUNTED_CALL(real.posix_memalign(out, alignment, size));
}

static void *uncounted_aligned_alloc(size_t alignment, size_t size)
{
    UNCOUNTED_CALL(real.aligned_alloc(alignment, size));
}

static void *uncounted_memalign(size_t alignment, size_t size)
{
    UNCOUNTED_CALL(real.memalign(alignment, size));
}

static void *uncounted_valloc(size_t size)
{
    UNCOUNTED_CALL(real.valloc(size));
}

static void *uncounted_pvalloc(size_t size)
{
    UNCOUNTED_CALL(real.pvalloc(size));
}

static void take_ways(void)
{
    const struct attach_entry *e = allium_attach_state.entries;
#define X(name)                                                                                              \
    if (e[ATTACH_##name].at)                                                                                 \
        real.name = (void *)(uintptr_t)e[ATTACH_##name].code;
    ATTACH_FUNCTIONS(X)
#undef X
    next.malloc = real.malloc;
    next.free = real.free;
#define X(name)                                                                                              \
    if (real.name)                                                                                           \
        next.name = uncounted_##name;
    X(calloc)
    X(realloc)
    NEXT_ALIGNED(X)
#undef X
    __builtin_memcpy(&next_hot, &next, sizeof(next_hot));
}

bool attached_read_settings(void)
{
    const struct attach_state *s = &allium_attach_state;
    if (!is_attached)
        return false;
    agent_state.period_at_start = s->period_bytes;
    process.config.limit_bytes = s->limit_bytes;
    process.config.sites = (uint8_t)s->sites;
    text_copy(process.config.dir, sizeof(process.config.dir), s->dir);
    agent_state.seed = clock_ns(CLOCK_MONOTONIC);
    return true;
}

/* Puts memory of zeros in the place of the ledger: a thread that still writes to it does no harm. */
static void leave_ledger(void)
{
    struct ledger_header *h = process_has_ledger() ? process.ledger.header : NULL;
    if (h)
        sys_call(SYS_mmap, h, ledger_mapped_bytes(h), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* The ledger of the time before has ended: a new image begins, which is no child of that one. */
static void begin_anew(void)
{
    leave_ledger();
    process_begin_library();
    store_release(process.alive, PROCESS_STALE);
    process_update();
    process.parent_image_id = process.forked_ticks = 0;
    process.parent_pid = 0;
}

static void begin(void)
{
    boot_is_inert = false;
    boot_agent();
    module_init_late();
    pthread_atfork(process_before_fork, NULL, process_after_fork);
}

void allium_attach(void);

/* Called by the tool, on a thread that is at a safe point, and before it writes the jumps. */
EXPORT void allium_attach(void)
{
    const struct attach_entry *e = allium_attach_state.entries;
    if (!is_attached && process.generation) {
        allium_attach_state.result = ATTACH_PRELOADED;
        return;
    }
    if (!e[ATTACH_malloc].at || !e[ATTACH_free].at) {
        allium_attach_state.result = ATTACH_NO_ALLOCATOR;
        return;
    }
    const bool again = is_attached;
    is_attached = true;
    take_ways();
    if (again)
        begin_anew();
    else
        begin();
    allium_attach_state.result = ATTACH_DONE;
}
