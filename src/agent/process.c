/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/exec/preload_env.h"
#include "agent/ledger_writer.h"
#include "agent/reentry.h"
#include "agent/sampler/live_table.h"
#include "agent/sites_link.h"
#include "agent/tag_bridge.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/deferred_rules.h"
#include "wire/headroom.h"
#include "wire/unobserved_list.h"

#define LIMIT_SAMPLING (64ull << 20)
#define LIMIT_EXACT    (2ull << 30)
#define LIMIT_SMALLEST (1ull << 20)
#define PERIODS_MAX    250u /* an index is a byte; a few may be added at once */
#define CONTROL_TRIES  4
#define WAIT_YIELDS    100   /* turns of others; a few are usual */
#define WAIT_MOMENTS   5000u /* milliseconds, of all threads together */
#define MAKING_SPINS   20000 /* some 300 microseconds */

enum { NEW_CHILD, CURRENT = PROCESS_CURRENT };

static uint32_t before_boot = NEW_CHILD;
struct process process = {.ledger.control = &ledger_no_control, .alive = &before_boot};

static uint32_t alive_fallback = CURRENT;

/* The control page of tags until there is a ledger. */
static union {
    struct ledger_control control;
    char page[LEDGER_PAGE_BYTES];
} control_at_start;

/* The header, for a child that a signal handler forks while its thread writes to the ledger; see
 * process_after_fork(). */
static char header_at_fork[LEDGER_HEADER_BYTES];
static uint64_t ledger_bytes_at_fork; /* 0: the forking thread does not write to the ledger */

static bool read_setting(char *entry)
{
    static const char period[] = "ALLIUM_PERIOD=", dir[] = "ALLIUM_DIR=", size[] = "ALLIUM_LEDGER_SIZE=";
    static const char follow[] = "ALLIUM_FOLLOW=0", seed[] = "ALLIUM_SEED=";
    static const char exact[] = "ALLIUM_SITES=1"; /* accounts of call sites */
    static const char wrappers[] = "ALLIUM_WRAPPERS=";
    static const char tags[] = "ALLIUM_TAGS=off"; /* stays in the environment: the library reads it, too */
    if (!process.config.asked && text_starts(entry, tags)) {
        control_at_start.control.word = LEDGER_CONTROL_TAGS_OFF;
        process.config.asked = &control_at_start.control;
    }
    if (text_starts(entry, period))
        process.period_at_start = text_size(entry + sizeof(period) - 1);
    else if (text_starts(entry, dir))
        text_copy(process.config.dir, sizeof(process.config.dir), entry + sizeof(dir) - 1);
    else if (text_starts(entry, size))
        process.config.limit_bytes = text_size(entry + sizeof(size) - 1);
    else if (text_starts(entry, follow))
        process.alone = true;
    else if (text_starts(entry, exact))
        process.config.sites = sites_linked;
    else if (text_starts(entry, wrappers))
        process.wrappers = entry + sizeof(wrappers) - 1;
    else if (text_starts(entry, seed))
        process.seed_given = text_number(entry + sizeof(seed) - 1) | 1ull << 63;
    else
        return false;
    return true;
}

/* A variable of the program's own, or one of the agent's settings. */
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
    if (process.alone)
        preload_env_forget();
    for (; aux && aux->a_type != AT_NULL; aux++)
        if (aux->a_type == AT_RANDOM)
            __builtin_memcpy(&process.seed, (const char *)aux->a_un.a_val + 8, 8);
        else if (aux->a_type == AT_EXECFN)
            process.exec_name = (const char *)aux->a_un.a_val;
}

void process_init(void)
{
    process.config.samples = process.config.tags = true;
    process.period_at_start = LEDGER_PERIOD_DEFAULT;
    read_environment();
    if (!process.period_at_start || process.period_at_start > LEDGER_PERIOD_MAX)
        process.period_at_start = LEDGER_PERIOD_DEFAULT;
    process.in_force = process.period_at_start;
    if (!process.config.limit_bytes)
        process.config.limit_bytes = process.period_at_start == 1 ? LIMIT_EXACT : LIMIT_SAMPLING;
    if (process.config.limit_bytes < LIMIT_SMALLEST)
        process.config.limit_bytes = LIMIT_SMALLEST;
    clock_init();
    headroom_begin();
    process.pid = (int32_t)sys_call(SYS_getpid, 0);
    process.began_ticks = clock_ticks();
    process.config.image_id = process.seed ^ process.began_ticks;
    process.config.image_id = draw_next(&process.config.image_id);
    if (process.seed_given)
        process.seed = process.seed_given & ~(1ull << 63);
    long page = sys_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    process.alive = &alive_fallback;
    if (!sys_failed(page)) {
        process.alive = (uint32_t *)page;
        *process.alive = CURRENT;
        sys_call(SYS_madvise, page, 4096, MADV_WIPEONFORK);
    }
    store_release(&process.generation, 1);
}

/* Lets go of the parent's control page. If it is still mapped, tags in this process read it until they have their
 * own copy. */
static void leave_control(void)
{
    if (process.ledger.control_stays)
        process.config.asked = process.ledger.control;
    process.ledger.control_stays = false;
    process.ledger.control = &ledger_no_control;
}

/* The ledger of the parent is not mapped in the child (MADV_DONTFORK): nothing may read it. */
static void become_child(void)
{
    uint64_t mix = process.seed ^ ((uint64_t)process.forks << 32);
    if (process.stage == LEDGER_STAGE_MADE)
        process.parent_image_id = process.config.image_id;
    if (!process.ledger.sealed) { /* if it is sealed, there will be no ledger to write them to */
        process.parent_pid = (int32_t)sys_call(SYS_getppid, 0);
        process.pid = (int32_t)sys_call(SYS_getpid, 0);
    }
    process.forked_ticks = process.began_ticks = clock_ticks();
    if (!process.seed_given ||
        !process.forked) /* children of a bare clone() differ in nothing but their pid */
        mix ^= process.forked_ticks ^ (uint64_t)process.pid << 20;
    process.seed = draw_next(&mix);
    uint64_t id = process.config.image_id ^ process.forked_ticks ^ (uint64_t)process.pid << 40;
    process.config.image_id = draw_next(&id);
    process.ledger.header = NULL;
    leave_control();
    process.control_word = 0;
    process.stage = process.alone ? LEDGER_STAGE_FAILED : LEDGER_STAGE_NONE;
    process.has_room = 0;
    process.threads = 0;
    process.forks = 0;
    process.forked = false;
    process.in_force = process.period_at_start;
    for (int i = 0; i < LEDGER_LOSSES; i++)
        process.early_losses[i] = 0;
    live_table_disinherit();
    sites_become_child();
    store_release(&process.generation, process.generation + 1);
}

static void attach_thread(struct thread *t)
{
    uint64_t ordinal = __atomic_fetch_add(&process.threads, 1, __ATOMIC_RELAXED);
    t->random = process.seed + ordinal * 0xd1342543de82ef95u;
    draw_next(&t->random);
    t->left = t->rest = 0;
    sites_begin_thread(t);
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

/* The value of *alive while thread `t` updates the process. */
static uint32_t update_by(const struct thread *t)
{
    return (uint32_t)((uintptr_t)t >> 3) | 2;
}

static bool is_updated_elsewhere(const struct thread *t)
{
    uint32_t is = load_acquire(process.alive);
    return is != NEW_CHILD && is != CURRENT && is != update_by(t);
}

/* A signal handler during the update would find no ledger and its samples would be lost. False: sealed by seccomp. */
static bool block_handlers(uint64_t *mask)
{
    static const uint64_t all = ~0ull;
    return headroom_may_call(&process.ledger.sealed) &&
           !sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, sizeof(all));
}

static void unblock_handlers(uint64_t mask)
{
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask));
}

static bool update_child(struct thread *t)
{
    uint32_t unaware = NEW_CHILD;
    uint64_t mask;
    bool blocked = block_handlers(&mask);
    bool first = __atomic_compare_exchange_n(process.alive, &unaware, update_by(t), false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED);
    if (first) {
        become_child();
        store_release(process.alive, CURRENT);
    }
    if (blocked)
        unblock_handlers(mask);
    return first;
}

bool process_ensure_current_cold(struct thread *t)
{
    if (!load_acquire(&process.generation))
        return false;
    if (unlikely(load_acquire(process.alive) != CURRENT)) {
        if (t->reentry_depth) /* a signal handler forked: the code it interrupted keeps the ledger until its end */
            return false;
        if (!update_child(t))
            return false;
    }
    if (t->generation != process.generation)
        attach_thread(t);
    return true;
}

void process_before_fork(void)
{
    process.forks++;
    sites_before_fork();
    ledger_bytes_at_fork = 0;
    if (!thread_self.reentry_depth || !process_is_current() || process.stage != LEDGER_STAGE_MADE)
        return;
    __builtin_memcpy(header_at_fork, process.ledger.header, sizeof(header_at_fork));
    ledger_bytes_at_fork = ledger_mapped_bytes(process.ledger.header);
}

/* False: another fork handler has already mapped something there. */
static bool put_memory_at(const void *place, uint64_t bytes)
{
    return !sys_failed(sys_call(SYS_mmap, place, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0));
}

/*
 * The ledger is not mapped in a child. If a signal handler forked while its thread was writing to the ledger, the child
 * goes on writing, to memory of its own in the same place, which nobody reads.
 */
void process_after_fork(void)
{
    if (ledger_bytes_at_fork) {
        if (put_memory_at(process.ledger.header, ledger_bytes_at_fork))
            __builtin_memcpy(process.ledger.header, header_at_fork, sizeof(header_at_fork));
        if (process.ledger.control != &ledger_no_control)
            put_memory_at(process.ledger.control, LEDGER_PAGE_BYTES);
    }
    leave_control();
    sites_after_fork();
    process.forked = true;
    store_release(process.alive, NEW_CHILD);
    thread_self.left = 0;
}

static void describe_image(struct ledger *l)
{
    struct ledger_header *h = l->header;
    static char exe[LEDGER_PATH_BYTES * 4]; /* only one thread gets here, perhaps on a small stack */
    h->clock = clock_is_tsc ? LEDGER_CLOCK_TSC : LEDGER_CLOCK_NS;
    h->began_ticks = clock_ticks();
    h->began_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    h->began_realtime_ns = clock_ns(CLOCK_REALTIME);
    h->parent_pid = process.parent_pid ? process.parent_pid : (int32_t)sys_call(SYS_getppid, 0);
    h->parent_image_id = process.parent_image_id;
    h->forked_ticks = process.forked_ticks;
    h->seed = process.seed;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        h->shards[i].vacant = LEDGER_NONE;
    sys_call(SYS_prctl, PR_GET_NAME, h->comm);
    long len = sys_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof(exe) - 1);
    exe[sys_failed(len) ? 0 : len] = '\0';
    if (sys_failed(len) && process.exec_name && process.exec_name[0] == '/') /* no /proc in this root */
        text_copy(exe, sizeof(exe), process.exec_name);
    writer_add_string(""); /* string 0 */
    h->exe = writer_add_string(exe);
    ledger_append(l, LEDGER_THREADS, 1);                        /* thread 0: other */
    writer_add_period(process.period_at_start, h->began_ticks); /* record 0 */
    for (int i = 0; i < LEDGER_LOSSES; i++)
        h->losses[i] += process.early_losses[i];
}

/* Another thread makes the ledger, which takes some system calls. A signal handler of that very thread does not
 * wait. */
static bool wait_for_ledger(void)
{
    if (load_relaxed(&process.maker) == &thread_self)
        return false;
    for (int n = 0; n < MAKING_SPINS && load_acquire(&process.stage) == LEDGER_STAGE_MAKING; n++)
        __builtin_ia32_pause();
    return load_acquire(&process.stage) == LEDGER_STAGE_MADE;
}

/*
 * The other thread needs some system calls, and on a busy machine other programs run first: after some yields the wait
 * sleeps. All threads together sleep for at most WAIT_MOMENTS ms, because the other thread may never come back.
 */
void process_wait_for_others(const struct thread *t)
{
    static uint32_t slept;
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int n = 0; !load_relaxed(&process.ledger.sealed) &&
                    (is_updated_elsewhere(t) || (load_acquire(&process.stage) == LEDGER_STAGE_MAKING &&
                                                 load_relaxed(&process.maker) != t));
         n++)
        if (n < WAIT_YIELDS)
            sys_call(SYS_sched_yield, 0);
        else if (__atomic_fetch_add(&slept, 1, __ATOMIC_RELAXED) < WAIT_MOMENTS)
            sys_call(SYS_nanosleep, &moment, NULL);
        else
            return;
}

/* Replaces the parent's control page by zeros. Code that a forking signal handler interrupted may still read it. */
static void drop_control(const struct ledger_control *of)
{
    if (!of || of == &control_at_start.control)
        return;
    const char *page = (const char *)of;
    sys_call(SYS_mmap, page, LEDGER_PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    sys_call(SYS_munmap, page + LEDGER_PAGE_BYTES, LEDGER_CONTROL_TAG_BYTES - LEDGER_PAGE_BYTES);
    process.config.asked = NULL;
}

/* The reason that ledger_make() has failed for. */
static enum carrier why_unobserved(int bad)
{
    return bad == -EFBIG                      ? PRELOAD_CHECK_FILE_SIZE
           : bad == -ENOSPC                   ? PRELOAD_CHECK_NO_ROOM
           : bad == -ENOMEM || bad == -EAGAIN ? PRELOAD_CHECK_NO_MEMORY
                                              : PRELOAD_CHECK_NO_LEDGER;
}

static bool make_ledger(void)
{
    store_relaxed(&process.maker, &thread_self);
    const struct ledger_control *inherited = process.config.asked;
    if (process.generation > 1)
        writer_reset(); /* here and not at the fork: most children of shells make no ledger */
    int bad = ledger_make(&process.ledger, &process.config);
    if (bad) {
        unobserved_mark(&process.config, process.config.image_id, why_unobserved(bad),
                        process.exec_name ? process.exec_name : "", true);
        store_release(&process.stage, LEDGER_STAGE_FAILED);
        return false;
    }
    describe_image(&process.ledger);
    if (agent_api_tags || process.config.sites)
        ledger_keep_control(&process.ledger);
    if (!agent_api_tags)
        drop_control(inherited);
    if (process.config.sites)
        sites_begin_ledger();
    process.ledger.header->magic = LEDGER_MAGIC; /* last: a reader finds the ledger complete or not at all */
    store_release(&process.stage, LEDGER_STAGE_MADE);
    return true;
}

bool process_open_ledger_cold(void)
{
    uint32_t stage = load_acquire(&process.stage);
    if (stage == LEDGER_STAGE_MAKING)
        return wait_for_ledger();
    if (stage != LEDGER_STAGE_NONE || !headroom_may_call(&process.ledger.sealed) ||
        sys_call(SYS_getpid, 0) != process.pid)
        return false;
    uint64_t mask;
    bool blocked = block_handlers(&mask);
    bool mine = __atomic_compare_exchange_n(&process.stage, &stage, LEDGER_STAGE_MAKING, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    bool made = mine && make_ledger();
    if (blocked)
        unblock_handlers(mask);
    return mine ? made : wait_for_ledger();
}

/* Finds or adds the record of a period. LEDGER_NONE: there are too many. */
static uint32_t period_record(uint64_t period)
{
    const struct ledger_region *r = &process.ledger.header->regions[LEDGER_PERIODS];
    uint32_t used = (uint32_t)load_acquire(&r->used);
    for (uint32_t i = 0; i < used; i++)
        if (ledger_at(&process.ledger, LEDGER_PERIODS, struct ledger_period, i)->period_bytes == period)
            return i;
    return used < PERIODS_MAX ? writer_add_period(period, clock_ticks()) : LEDGER_NONE;
}

/* Adds up the time that sampling was off, which readers report. */
static void switch_off(bool off)
{
    struct ledger_header *h = process.ledger.header;
    uint64_t since = load_relaxed(&h->off_since_ticks), now = clock_ticks();
    if (off == (since != 0) || !atomic_swap_if64(&h->off_since_ticks, since, off ? now : 0))
        return;
    if (!off)
        atomic_add64(&h->off_ticks, now - since);
}

/* Applies a word of the control page; an invalid one changes nothing. */
static void apply_control_word(uint64_t word)
{
    word &= ~LEDGER_CONTROL_TAGS_OFF;
    uint64_t switches = word & (LEDGER_CONTROL_OFF | LEDGER_CONTROL_FREE_STACKS);
    uint64_t period = word & ~switches ? word & ~switches : process.period_at_start;
    uint32_t index = period <= LEDGER_PERIOD_MAX ? period_record(period) : LEDGER_NONE;
    if (index >= PERIODS_MAX)
        return;
    switch_off(switches & LEDGER_CONTROL_OFF);
    store_release(&process.in_force, switches | (uint64_t)index << PROCESS_INDEX_SHIFT | period);
}

/* The thread that wins the exchange applies the word, and then checks again: a faster thread may have applied a
 * later word. */
void process_apply_control_cold(void)
{
    const struct ledger_control *c = process.ledger.control;
    if (load_relaxed(&process.stage) != LEDGER_STAGE_MADE || load_relaxed(&c->magic) != LEDGER_CONTROL_MAGIC)
        return;
    for (int tries = 0; tries < CONTROL_TRIES; tries++) {
        uint64_t asked = load_relaxed(&c->word), seen = load_relaxed(&process.control_word);
        if (asked == seen || !atomic_swap_if64(&process.control_word, seen, asked))
            return;
        apply_control_word(asked);
    }
}

static void add_losses(enum ledger_loss what, uint64_t n)
{
    struct thread *t = &thread_self;
    uint8_t outside = ledger_enter(t);
    bool made = process_is_current() && load_acquire(&process.stage) == LEDGER_STAGE_MADE;
    atomic_add64(made ? &process.ledger.header->losses[what] : &process.early_losses[what], n);
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
    /* The last moment at which system calls are allowed: reserve room for some more records. */
    if (!process.ledger.sealed && process_ensure_current(&thread_self) && process_open_ledger())
        writer_take_room();
    sites_seal(!process.ledger.sealed);
    __atomic_fetch_add(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
}

void process_unseal(void)
{
    __atomic_fetch_sub(&process.ledger.sealed, 1, __ATOMIC_RELAXED);
    sites_unseal();
}
