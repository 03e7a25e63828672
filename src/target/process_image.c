/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/process_image.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "target/ledger_stacks.h"
#include "target/spin_wait.h"
#include "wire/deferred_rules.h"
#include "wire/headroom.h"

#define MAKING_SPINS 20000 /* some 300 microseconds */

static uint32_t alive_before = PROCESS_STALE, alive_fallback;
struct process process = {.ledger.control = &ledger_no_control, .alive = &alive_before};

static union {
    struct ledger_control control;
    char page[LEDGER_PAGE_BYTES];
} control_at_start;

void process_control_at_start(uint64_t word)
{
    control_at_start.control.word = word;
    process.config.initial_control = &control_at_start.control;
}

/* The value of *alive while the calling thread runs process_update(). */
static uint32_t updated_by_me(void)
{
    return (uint32_t)((uintptr_t)__builtin_thread_pointer() >> 3) | 2;
}

static bool is_updated_elsewhere(void)
{
    uint32_t is = load_acquire(process.alive);
    return is != PROCESS_STALE && is != PROCESS_CURRENT && is != updated_by_me();
}

static bool is_made_elsewhere(void)
{
    return load_acquire(&process.stage) == LEDGER_STAGE_MAKING &&
           load_relaxed(&process.maker) != __builtin_thread_pointer();
}

bool process_block_signals(uint64_t *mask)
{
    const uint64_t all = ~0ull; /* not static: a page that is read for the first time costs a page fault */
    return headroom_may_call(&process.ledger.sealed) &&
           !sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, mask, sizeof(all));
}

void process_unblock_signals(uint64_t mask)
{
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask));
}

/* ---- begin, and fork ---- */

static void next_image_id(uint64_t mix)
{
    process.config.image_id ^= mix;
    process.config.image_id = draw_next(&process.config.image_id);
}

/* Initialises `process`. Moves *alive, with its value, to a page that the kernel wipes in fork children. */
static void begin(void)
{
    process_begin_library();
    process.pid = (int32_t)sys_call(SYS_getpid, 0);
    process.began_ticks = process_ticks();
    next_image_id(process.began_ticks);
    long page =
        sys_call(SYS_mmap, 0, LEDGER_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *alive = sys_failed(page) ? &alive_fallback : (uint32_t *)page;
    *alive = updated_by_me();
    if (!sys_failed(page))
        sys_call(SYS_madvise, page, LEDGER_PAGE_BYTES, MADV_WIPEONFORK);
    store_release(&process.alive, alive);
}

/* If the parent's control page stays mapped in the fork child, tags read it until the child has a page of its own. */
void process_leave_control(void)
{
    if (process.ledger.control_stays)
        process.config.initial_control = process.ledger.control;
    process.ledger.control_stays = false;
    process.ledger.control = &ledger_no_control;
}

/* Updates `process` in a fork child. Must not read the parent's ledger, because the child has no mapping of it. */
static void become_child(void)
{
    if (process.stage == LEDGER_STAGE_MADE)
        process.parent_image_id = process.config.image_id;
    if (!process.ledger.sealed) { /* only a ledger needs the ids; a sealed process makes none */
        process.parent_pid = (int32_t)sys_call(SYS_getppid, 0);
        process.pid = (int32_t)sys_call(SYS_getpid, 0);
    }
    process.forked_ticks = process.began_ticks = process_ticks();
    next_image_id(process.forked_ticks ^ (uint64_t)process.pid << 40);
    process.ledger.header = NULL;
    process_leave_control();
    store_release(&process.stage, LEDGER_STAGE_NONE);
    process.waited_in_vain = false;
    process_become_child();
}

bool process_update(void)
{
    uint32_t stale = PROCESS_STALE;
    uint64_t mask;
    if (process_is_current())
        return true;
    if (!load_relaxed(&process.generation))
        headroom_begin();
    bool blocked = process_block_signals(&mask);
    bool first = __atomic_compare_exchange_n(process.alive, &stale, updated_by_me(), false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED);
    if (first) {
        process.generation ? become_child() : begin();
        store_release(&process.generation, process.generation + 1);
        store_release(process.alive, PROCESS_CURRENT);
    }
    if (blocked)
        process_unblock_signals(mask);
    return first;
}

/* ---- the ledger ---- */

/* Waits while another thread makes the ledger, at most MAKING_SPINS turns. Returns whether there is a ledger. */
static bool spin_until_made(void)
{
    for (int n = 0; n < MAKING_SPINS && is_made_elsewhere(); n++)
        __builtin_ia32_pause();
    return load_acquire(&process.stage) == LEDGER_STAGE_MADE;
}

bool process_open_ledger_cold(void)
{
    uint32_t stage = load_acquire(&process.stage);
    if (stage == LEDGER_STAGE_MAKING)
        return spin_until_made();
    if (stage != LEDGER_STAGE_NONE)
        return stage == LEDGER_STAGE_MADE;
    if (!headroom_may_call(&process.ledger.sealed) || sys_call(SYS_getpid, 0) != process.pid)
        return false;
    uint64_t mask;
    bool blocked = process_block_signals(&mask);
    bool mine = __atomic_compare_exchange_n(&process.stage, &stage, LEDGER_STAGE_MAKING, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (mine) {
        store_relaxed(&process.maker, __builtin_thread_pointer());
        stage = process_begin_ledger();
        store_release(&process.stage, stage);
    }
    if (blocked)
        process_unblock_signals(mask);
    return mine ? stage == LEDGER_STAGE_MADE : spin_until_made();
}

void process_wait(void)
{
    struct spin_wait w = {0};
    while (is_updated_elsewhere() || is_made_elsewhere())
        if (load_relaxed(&process.waited_in_vain) ||
            !spin_wait_turn(&w, !load_relaxed(&process.ledger.sealed))) {
            store_relaxed(&process.waited_in_vain, true);
            return;
        }
}

void process_drop_control(const struct ledger_control *inherited)
{
    if (!inherited || inherited == &control_at_start.control || inherited == process.ledger.control)
        return;
    const char *page = (const char *)inherited;
    sys_call(SYS_mmap, page, LEDGER_PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    sys_call(SYS_munmap, page + LEDGER_PAGE_BYTES, LEDGER_CONTROL_TAG_BYTES - LEDGER_PAGE_BYTES);
    process.config.initial_control = NULL;
}

const char *process_exe(void)
{
    static char exe[LEDGER_PATH_BYTES * 4]; /* static because the stack may be small; one thread runs this */
    if (exe[0])
        return exe;
    long length = sys_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof(exe) - 1);
    exe[sys_failed(length) ? 0 : length] = '\0';
    if (sys_failed(length) && process.exec_name && process.exec_name[0] == '/') /* no /proc in this root */
        text_copy(exe, sizeof(exe), process.exec_name);
    return exe;
}

void process_describe(enum ledger_clock clock)
{
    struct ledger_header *h = process.ledger.header;
    h->clock = clock;
    h->began_ticks = process_ticks();
    h->began_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    h->began_realtime_ns = clock_ns(CLOCK_REALTIME);
    h->parent_pid = process.parent_pid ? process.parent_pid : (int32_t)sys_call(SYS_getppid, 0);
    h->parent_image_id = process.parent_image_id;
    h->forked_ticks = process.forked_ticks;
    h->seccomp_filters = headroom_seccomp_filters();
    sys_call(SYS_prctl, PR_GET_NAME, h->comm);
    ledger_stacks_add_string(&process.ledger, ""); /* string 0 */
    h->exe = ledger_stacks_add_string(&process.ledger, process_exe());
}

void process_end(void)
{
    if (!process_has_ledger() || process.ledger.header->state != LEDGER_RUNNING)
        return;
    process.ledger.header->ended_ticks = process_ticks();
    store_release(&process.ledger.header->state, LEDGER_EXITED);
}
