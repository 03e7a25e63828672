/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_sum.h"

#include <sys/mman.h>

#include "agent/exec/preload_env.h"
#include "agent/hooks/cold.h"
#include "agent/ledger_writer.h"
#include "agent/process.h"
#include "agent/reentry.h"
#include "agent/sites_link.h"
#include "agent/tracer/tracer_general.h"
#include "agent/tracer/tracer_rings.h"
#include "agent/tracer/tracer_size.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "sum/sum_table.h"
#include "target/fork_placeholder.h"
#include "unwind/module.h"
#include "wire/ring_file.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

bool tracer_sum_on;

/* The events, values and keys that the user asks for. */
static struct {
    uint64_t events; /* a bit for each */
    bool values;     /* add up sizes */
    uint32_t place;  /* the word of the key that has the address of the call; 0: none has it */
    char keys[SUM_BY_MAX + 1];
} asked;

/* A page that is zero in a fork child, which makes a table of its own at its first event. */
static struct {
    struct sum_table table;
    uint64_t early; /* events before there was a table */
    char unused[LEDGER_PAGE_BYTES - sizeof(struct sum_table) - sizeof(uint64_t)];
} hot __attribute__((aligned(LEDGER_PAGE_BYTES)));

static const char *find_options(void)
{
    static const char name[] = ",sum=";
    for (unsigned k = 0; k < PRELOAD_ENV_SETTINGS_MAX && preload_env_settings[k]; k++) {
        const char *found = text_starts(preload_env_settings[k], "ALLIUM_SITES=")
                                ? text_find(preload_env_settings[k], name)
                                : NULL;
        if (found)
            return found + sizeof(name) - 1;
    }
    return NULL;
}

static bool read_options(void)
{
    const char *at = find_options();
    if (!at)
        return false;
    asked.events = text_number(at);
    while (*at && *at != ':')
        at++;
    asked.values = *at && at[1] == 's';
    for (unsigned k = 0; *at && at[1] && at[2] && k < SUM_BY_MAX && at[3 + k] && at[3 + k] != ','; k++)
        if ((asked.keys[k] = at[3 + k]) == 'a')
            asked.place = k + 1;
    return true;
}

static bool reach(char *from, uint64_t bytes)
{
    return ledger_may_call(&process.ledger) && tracer_may_grow(bytes) && !ledger_back(from, bytes);
}

/* Hands over what came before there was a table. */
static void hand_over_early(void)
{
    struct sum_header *h = load_acquire(&hot.table.header);
    if (h)
        __atomic_fetch_add(&h->early, __atomic_exchange_n(&hot.early, 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void tracer_sum_begin_ledger(void)
{
    const uint32_t cell_bytes = asked.values ? sizeof(struct sum_cells) : SUM_COUNT_BYTES;
    struct sum_table t = {.area = tracer_rings_area(), .reach = reach};
    uint32_t cpus = t.area ? tracer_size_cpus() : 0;
    tracer_grow_anew();
    uint64_t bytes = sum_file_bytes(cpus, cell_bytes);
    char *map = ring_file_map_fitting(&process.ledger, &process.config, LEDGER_SUMS_SUFFIX, &bytes,
                                      sum_file_bytes(0, cell_bytes));
    if (bytes != sum_file_bytes(cpus, cell_bytes))
        cpus = 0;
    if (!map || ledger_back(map, sum_table_first_bytes(cpus)) ||
        !sum_table_begin(&t, map, cpus, asked.values, process.config.image_id))
        return;
    sum_table_type(&t, asked.values ? SUM_UNSIGNED : SUM_NONE);
    struct sum_header *header = t.header;
    t.header = NULL;
    hot.table = t;
    store_release(&hot.table.header, header);
    hand_over_early();
}

void tracer_sum_before_fork(void)
{
    const struct sum_table *t = &hot.table;
    const bool works = thread_self.reentry_depth && t->header;
    if (tracer_sum_on)
        fork_placeholder_note(PART_RINGS, t->header, works ? sum_file_bytes(t->cpus, t->cell_bytes) : 0);
}

void tracer_sum_seal(void)
{
    if (tracer_sum_on && hot.table.header)
        sum_table_take_room(&hot.table);
}

static inline uint32_t make_key(uint64_t key[static SUM_KEY_WORDS], enum event_id id, uint64_t size,
                                uintptr_t site)
{
    uint32_t n = 0;
    key[n++] = id;
    for (const char *k = asked.keys; *k; k++)
        switch (*k) {
        case 'a':
            key[n++] = site;
            break;
        case 's':
            key[n++] = size;
            break;
        case 't':
            key[n++] = tracer_thread & ~TRACER_UNREGISTERED;
            break;
        case 'c':
            key[n++] = sum_table_cpu();
            break;
        default: /* the tool knows it */
            key[n++] = 0;
            break;
        }
    return n;
}

/*
 * The table of this process, copied: in a child that a signal handler forks amid a call, the page is zero from the
 * first instruction on, and the interrupted call goes on with the parent's addresses, where the child then has memory
 * of its own (tracer_sum_before_fork()).
 */
static inline bool take_table(struct sum_table *t)
{
    *t = hot.table;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return likely(t->header) && likely(load_acquire(&hot.table.header) == t->header);
}

static uint64_t frame_of(uintptr_t site)
{
    const uint32_t frame = writer_caller(site);
    return frame == LEDGER_NONE ? 0 : frame + UINT64_C(1);
}

/* Returns whether the module at the address may be unloaded: other code may then be loaded there. */
static bool may_be_unloaded(uint64_t site)
{
    const uint32_t used = load_acquire(&unwind_modules.used);
    for (uint32_t k = 0; k < used && k < MODULE_MAX; k++) {
        const struct unwind_module *m = &unwind_modules.at[k];
        if (load_acquire(&m->ready) && m->permanent && site - m->start < m->end - m->start)
            return false;
    }
    return true;
}

/*
 * Returns the row of a key that sum_table_find() does not find. If the agent would not notice that a module is
 * unloaded, the rows of the module stay set aside, and each of its events comes here. `own`: the ledger may be used.
 */
static uint32_t insert(struct sum_table *t, const uint64_t *key, uint32_t words, uintptr_t site, bool own)
{
    if (!asked.place || !site)
        return sum_table_insert(t, key, words, 0);
    const uint64_t frame = own ? frame_of(site) : 0;
    if (!may_be_unloaded(site))
        return sum_table_insert(t, key, words, frame);
    const uint32_t module = own ? module_find(site) : MODULE_NONE;
    const bool stays = own && (module >= MODULE_MAX || sites->notices_unload(&unwind_modules.at[module]));
    return sum_table_insert_place(t, key, words, asked.place, frame, !stays);
}

void tracer_sum_forget_unloadable(void)
{
    struct sum_table t;
    if (!tracer_sum_on || !asked.place)
        return;
    const uint8_t outside = ledger_enter(&thread_self);
    if (take_table(&t))
        sum_table_set_aside(&t, asked.place, may_be_unloaded);
    ledger_exit(&thread_self, outside);
}

/* A key that is new, a thread that is not known yet, or a process without a table. */
static COLD void add_cold(enum event_id id, uint64_t size, uintptr_t site)
{
    struct thread *self = &thread_self;
    struct sum_table t;
    uint64_t key[SUM_KEY_WORDS];
    uint8_t outside;
    const bool own = ledger_enter_own(self, &outside);
    if (own && process_open_ledger())
        tracer_know_thread();
    if (!own)
        outside = ledger_enter(self);
    if (!take_table(&t)) {
        atomic_add64(&hot.early, 1);
        hand_over_early();
    } else {
        const uint32_t n = make_key(key, id, size, site);
        uint32_t row = sum_table_find(&t, key, n);
        if (!row)
            row = insert(&t, key, n, site, own);
        sum_table_count(&t, row, asked.values ? SUM_UNSIGNED : SUM_NONE, size);
    }
    ledger_exit(self, outside);
}

static HOT bool add_known(enum event_id id, uint64_t size, uintptr_t site)
{
    struct sum_table t;
    uint64_t key[SUM_KEY_WORDS];
    if (!take_table(&t) || !tracer_thread)
        return false;
    const uint32_t row = sum_table_find(&t, key, make_key(key, id, size, site));
    if (row)
        sum_table_count(&t, row, asked.values ? SUM_UNSIGNED : SUM_NONE, size);
    return row != 0;
}

HOT void tracer_sum_add(enum event_id id, uint64_t size, uintptr_t site)
{
    if (!(asked.events >> id & 1))
        return;
    const uint8_t outside = ledger_enter(&thread_self);
    const bool done = add_known(id, size, site);
    ledger_exit(&thread_self, outside);
    if (unlikely(!done))
        add_cold(id, size, site);
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

static HOT void *sum_malloc(size_t size)
{
    void *p = tracer_real.malloc(size);
    tracer_sum_add(EVENT_malloc, size, CALLER);
    return p;
}

static HOT void sum_free(void *p)
{
    if (likely(p))
        tracer_sum_add(EVENT_free, 0, CALLER);
    tracer_real.free(p);
}

static void *sum_calloc(size_t count, size_t each)
{
    void *p = tracer_real.calloc(count, each);
    tracer_sum_add(EVENT_calloc, count * each, CALLER);
    return p;
}

static void *sum_realloc(void *old, size_t size)
{
    void *p = tracer_real.realloc(old, size);
    tracer_sum_add(EVENT_realloc_end, size, CALLER);
    return p;
}

static int sum_posix_memalign(void **out, size_t alignment, size_t size)
{
    int error = tracer_real.posix_memalign(out, alignment, size);
    tracer_sum_add(EVENT_memalign, size, CALLER);
    return error;
}

#define ALIGNED(name, parameters, arguments)                                                                 \
    static void *sum_##name parameters                                                                       \
    {                                                                                                        \
        void *p = tracer_real.name arguments;                                                                \
        tracer_sum_add(EVENT_memalign, size, CALLER);                                                        \
        return p;                                                                                            \
    }
ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size))
ALIGNED(valloc, (size_t size), (size))
ALIGNED(pvalloc, (size_t size), (size))
#undef ALIGNED

bool tracer_sum_begin(void)
{
    if (!read_options() || sys_call(SYS_madvise, &hot, LEDGER_PAGE_BYTES, MADV_WIPEONFORK))
        return false;
    tracer_sum_on = true;
    next_hot = (struct next_hot){.malloc = sum_malloc,
                                 .calloc = sum_calloc,
                                 .realloc = sum_realloc,
                                 .free = sum_free,
                                 .posix_memalign = sum_posix_memalign,
                                 .aligned_alloc = sum_aligned_alloc,
                                 .memalign = sum_memalign,
                                 .valloc = sum_valloc,
                                 .pvalloc = sum_pvalloc};
    return true;
}
