/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/process.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>

#include "agent/clock.h"
#include "agent/exec/preload_env.h"
#include "agent/ledger_writer.h"
#include "agent/reentry.h"
#include "agent/sampler/live_table.h"
#include "agent/sites_link.h"
#include "agent/tag_bridge.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/str.h"
#include "target/fork_placeholder.h"
#include "wire/unobserved_list.h"

#define LIMIT_SAMPLING (64ull << 20)
#define LIMIT_EXACT    (2ull << 30)
#define LIMIT_SMALLEST (1ull << 20)
#define PERIODS_MAX    250u /* below UINT8_MAX, because several threads may add the last period at once */
#define CONTROL_TRIES  4

struct agent_state agent_state;

/*
 * A copy of the ledger's header. process_before_fork() makes it if a signal handler forks that interrupted code which
 * uses the ledger. process_after_fork() writes it to the memory that the child has in place of the ledger.
 */
static char header_at_fork[LEDGER_HEADER_BYTES];

static bool read_setting(char *entry)
{
    static const char period[] = "ALLIUM_PERIOD=", dir[] = "ALLIUM_DIR=", size[] = "ALLIUM_LEDGER_SIZE=";
    static const char follow[] = "ALLIUM_FOLLOW=0", seed[] = "ALLIUM_SEED=";
    static const char exact[] = "ALLIUM_SITES="; /* LEDGER_WITH_* */
    static const char wrappers[] = "ALLIUM_WRAPPERS=";
    static const char tags[] = "ALLIUM_TAGS=off"; /* stays in the environment: liballium.so reads it */
    if (text_starts(entry, tags))
        process_control_at_start(LEDGER_CONTROL_TAGS_OFF);
    if (text_starts(entry, period))
        agent_state.period_at_start = text_size(entry + sizeof(period) - 1);
    else if (text_starts(entry, dir))
        text_copy(process.config.dir, sizeof(process.config.dir), entry + sizeof(dir) - 1);
    else if (text_starts(entry, size))
        process.config.limit_bytes = text_size(entry + sizeof(size) - 1);
    else if (text_starts(entry, follow))
        agent_state.alone = true;
    else if (text_starts(entry, exact))
        process.config.sites = sites && entry[sizeof(exact) - 1] <= '9' ? entry[sizeof(exact) - 1] & 15 : 0;
    else if (text_starts(entry, wrappers))
        agent_state.wrappers = entry + sizeof(wrappers) - 1;
    else if (text_starts(entry, seed))
        agent_state.seed_given = text_number(entry + sizeof(seed) - 1) | 1ull << 63;
    else
        return false;
    return true;
}

/* Reads one entry of the environment. True: the entry is a setting of the agent, and is to be removed. */
static bool read_variable(char *entry)
{
    static const char runtime[] = "XDG_RUNTIME_DIR=";
    if (text_starts(entry, runtime) && entry[sizeof(runtime) - 1] == '/')
        text_copy(process.config.runtime_dir, sizeof(process.config.runtime_dir),
                  entry + sizeof(runtime) - 1);
    return text_starts(entry, "ALLIUM_") && read_setting(entry);
}

static void read_environment(void)
{
    const Elf64_auxv_t *aux = preload_env_take_out(read_variable);
    if (agent_state.alone)
        preload_env_forget();
    for (; aux && aux->a_type != AT_NULL; aux++)
        if (aux->a_type == AT_RANDOM)
            __builtin_memcpy(&agent_state.seed, (const char *)aux->a_un.a_val + 8, 8);
        else if (aux->a_type == AT_EXECFN)
            process.exec_name = (const char *)aux->a_un.a_val;
}

void process_begin_library(void)
{
    process.config.samples = process.config.tags = true;
    agent_state.period_at_start = LEDGER_PERIOD_DEFAULT;
    if (!sites || !sites->read_settings())
        read_environment();
    if (!agent_state.period_at_start || agent_state.period_at_start > LEDGER_PERIOD_MAX)
        agent_state.period_at_start = LEDGER_PERIOD_DEFAULT;
    agent_state.in_force = agent_state.period_at_start;
    if (!process.config.limit_bytes)
        process.config.limit_bytes = agent_state.period_at_start == 1 ? LIMIT_EXACT : LIMIT_SAMPLING;
    if (process.config.limit_bytes < LIMIT_SMALLEST)
        process.config.limit_bytes = LIMIT_SMALLEST;
    clock_init();
    process.config.image_id = agent_state.seed;
    if (agent_state.seed_given)
        agent_state.seed = agent_state.seed_given & ~(1ull << 63);
}

void process_become_child(void)
{
    uint64_t mix = agent_state.seed ^ ((uint64_t)agent_state.forks << 32);
    bool by_fork = agent_state.forked; /* false after a bare clone(), which `forks` does not count */
    if (!agent_state.seed_given || !by_fork)
        mix ^= process.forked_ticks ^ (uint64_t)process.pid << 20;
    agent_state.seed = draw_next(&mix);
    agent_state.control_word = 0;
    if (agent_state.alone)
        store_release(&process.stage, LEDGER_STAGE_FAILED);
    agent_state.has_room = 0;
    agent_state.threads = 0;
    agent_state.forks = 0;
    agent_state.forked = false;
    agent_state.in_force = agent_state.period_at_start;
    for (int i = 0; i < LEDGER_LOSSES; i++)
        agent_state.early_losses[i] = 0;
    live_table_disinherit();
    if (sites)
        sites->become_child();
}

static void attach_thread(struct thread *t)
{
    uint64_t ordinal = __atomic_fetch_add(&agent_state.threads, 1, __ATOMIC_RELAXED);
    t->random = agent_state.seed + ordinal * 0xd1342543de82ef95u;
    draw_next(&t->random);
    t->left = t->rest = 0;
    if (sites)
        sites->begin_thread(t);
    t->last_serial = t->left_mark = 0;
    t->has_row = 0;
    t->shard = (uint8_t)(ordinal < LEDGER_SHARDS_OWNED
                             ? ordinal
                             : LEDGER_SHARDS_OWNED + ordinal % (LEDGER_SHARDS - LEDGER_SHARDS_OWNED));
    t->row = 0;
    t->period = UINT8_MAX; /* no gap drawn yet */
    t->weighed_size = 0;
    t->generation = process.generation;
}

bool process_ensure_current_cold(struct thread *t)
{
    if (!load_acquire(&process.generation))
        return false;
    if (unlikely(!process_is_current())) {
        if (t->reentry_depth) /* a signal handler forked: the code that it interrupted uses the parent's ledger */
            return false;
        if (!process_update())
            return false;
    }
    if (t->generation != process.generation)
        attach_thread(t);
    return true;
}

void process_before_fork(void)
{
    agent_state.forks++;
    if (sites)
        sites->before_fork();
    bool writes = thread_self.reentry_depth && process_has_ledger();
    if (writes)
        __builtin_memcpy(header_at_fork, process.ledger.header, sizeof(header_at_fork));
    fork_placeholder_note(PART_LEDGER, process.ledger.header,
                          writes ? ledger_mapped_bytes(process.ledger.header) : 0);
    fork_placeholder_note(PART_CONTROL, process.ledger.control,
                          writes && process.ledger.control != &ledger_no_control ? LEDGER_PAGE_BYTES : 0);
}

void process_after_fork(void)
{
    if (fork_placeholder_put() & 1u << PART_LEDGER)
        __builtin_memcpy(process.ledger.header, header_at_fork, sizeof(header_at_fork));
    process_leave_control();
    agent_state.forked = true;
    store_release(process.alive, PROCESS_STALE);
    thread_self.left = 0;
}

/* Fills in the header, and adds the records that each ledger starts with. */
static void begin_tables(void)
{
    struct ledger_header *h = process.ledger.header;
    process_describe(clock_is_tsc ? LEDGER_CLOCK_TSC : LEDGER_CLOCK_NS);
    h->seed = agent_state.seed;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        h->shards[i].vacant = LEDGER_NONE;
    ledger_append(&process.ledger, LEDGER_THREADS, 1);              /* record 0: "other" */
    writer_add_period(agent_state.period_at_start, h->began_ticks); /* record 0 */
    for (int i = 0; i < LEDGER_LOSSES; i++)
        h->losses[i] += agent_state.early_losses[i];
}

/* Returns the reason why ledger_make() failed. `bad`: the -errno that it returned. */
static enum preload_check_result why_unobserved(int bad)
{
    return bad == -EFBIG                      ? PRELOAD_CHECK_FILE_SIZE
           : bad == -ENOSPC                   ? PRELOAD_CHECK_NO_ROOM
           : bad == -ENOMEM || bad == -EAGAIN ? PRELOAD_CHECK_NO_MEMORY
                                              : PRELOAD_CHECK_NO_LEDGER;
}

enum ledger_stage process_begin_ledger(void)
{
    const struct ledger_control *inherited = process.config.initial_control;
    if (process.generation > 1)
        writer_reset(); /* here and not at the fork, because most fork children of a shell make no ledger */
    int bad = ledger_make(&process.ledger, &process.config);
    if (bad) {
        unobserved_mark(&process.config, process.config.image_id, why_unobserved(bad),
                        process.exec_name ? process.exec_name : "", true);
        return LEDGER_STAGE_FAILED;
    }
    begin_tables();
    if (agent_api_tags)
        ledger_keep_control(&process.ledger);
    if (!agent_api_tags)
        process_drop_control(inherited);
    if (process.config.sites)
        sites->begin_ledger();
    process.ledger.header->magic = LEDGER_MAGIC; /* last, because readers then take the ledger as complete */
    return LEDGER_STAGE_MADE;
}

uint64_t process_ticks(void)
{
    return clock_ticks();
}

/* Returns the index of the record of a period; adds it if it is new. LEDGER_NONE: too many periods, or no room. */
static uint32_t period_record(uint64_t period)
{
    const struct ledger_region *r = &process.ledger.header->regions[LEDGER_PERIODS];
    uint32_t used = (uint32_t)load_acquire(&r->used);
    for (uint32_t i = 0; i < used; i++)
        if (ledger_at(&process.ledger, LEDGER_PERIODS, struct ledger_period, i)->period_bytes == period)
            return i;
    return used < PERIODS_MAX ? writer_add_period(period, clock_ticks()) : LEDGER_NONE;
}

/* Stores in the header when sampling was switched off; when it is switched on again, adds the time to `off_ticks`. */
static void switch_off(bool off)
{
    struct ledger_header *h = process.ledger.header;
    uint64_t since = load_relaxed(&h->off_since_ticks), now = clock_ticks();
    if (off == (since != 0) || !atomic_swap_if64(&h->off_since_ticks, since, off ? now : 0))
        return;
    if (!off)
        atomic_add64(&h->off_ticks, now - since);
}

/* Applies a word of the control page: switches and period. Returns whether this changed them. Ignores a bad period. */
static bool apply_control_word(uint64_t word)
{
    word &= ~(LEDGER_CONTROL_TAGS_OFF | LEDGER_CONTROL_SEALED | LEDGER_CONTROL_ALLOC_BITS);
    uint64_t switches = word & (LEDGER_CONTROL_OFF | LEDGER_CONTROL_FREE_STACKS);
    uint64_t period = word & ~switches ? word & ~switches : agent_state.period_at_start;
    uint32_t index = period <= LEDGER_PERIOD_MAX ? period_record(period) : LEDGER_NONE;
    if (index >= PERIODS_MAX)
        return false;
    switch_off(switches & LEDGER_CONTROL_OFF);
    uint64_t wanted = switches | (uint64_t)index << PROCESS_INDEX_SHIFT | period;
    return __atomic_exchange_n(&agent_state.in_force, wanted, __ATOMIC_ACQ_REL) != wanted;
}

/*
 * Only the thread that stores a new word in control_word applies the word. If this thread is interrupted in between,
 * another thread may apply a newer word, which the first thread then replaces by the older one. So a thread that has
 * applied a word applies the present word of the page again until nothing changes, CONTROL_TRIES times at most.
 */
void process_apply_control_cold(void)
{
    const struct ledger_control *c = process.ledger.control;
    if (load_relaxed(&process.stage) != LEDGER_STAGE_MADE || load_relaxed(&c->magic) != LEDGER_CONTROL_MAGIC)
        return;
    for (int tries = 0; tries < CONTROL_TRIES; tries++) {
        uint64_t wanted = load_relaxed(&c->word), seen = load_relaxed(&agent_state.control_word);
        if (wanted != seen && !atomic_swap_if64(&agent_state.control_word, seen, wanted))
            return;
        if (!apply_control_word(wanted))
            return;
    }
}

static void add_losses(enum ledger_loss what, uint64_t n)
{
    struct thread *t = &thread_self;
    uint8_t outside = ledger_enter(t);
    uint64_t *losses = process_has_ledger() ? process.ledger.header->losses : agent_state.early_losses;
    atomic_add64(&losses[what], n);
    ledger_exit(t, outside);
}

void process_count_loss(enum ledger_loss what)
{
    add_losses(what, 1);
}

void process_uncount_loss(enum ledger_loss what)
{
    add_losses(what, (uint64_t)-1);
}

void process_seal(void)
{
    /* Takes room for further records in advance, while system calls are still allowed. */
    if (!process.ledger.sealed && process_ensure_current(&thread_self) && process_open_ledger())
        writer_take_room();
    if (sites)
        sites->seal(!process.ledger.sealed);
    __atomic_fetch_add(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
}

void process_unseal(void)
{
    __atomic_fetch_sub(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
    if (sites)
        sites->unseal();
}
