/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_life.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/process.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_put.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_write.h"
#include "unwind/module.h"

#define NAME_BYTES  16
#define TEXT_WORDS  (EVENT_PATH_BYTES / 8)
#define KEYS_READY  32 /* of pthread keys, those for which libc has made room in each thread */
#define LAST_ROUND  4  /* of destructors (PTHREAD_DESTRUCTOR_ITERATIONS) */
#define KEY_NOT_YET UINT32_MAX

/* For glibc before 2.34, where programs without threads do not have them. */
extern int pthread_key_create(pthread_key_t *, void (*)(void *)) __attribute__((weak));
extern int pthread_setspecific(pthread_key_t, const void *) __attribute__((weak));

static uint32_t key = KEY_NOT_YET;  /* its destructor writes that a thread ends */
static uint8_t is_told[MODULE_MAX]; /* module_loaded was written, and module_unloaded was not */
static uint64_t looked_at;          /* size of the ledger's table of modules when all of them had events */

static void append(enum event_id id, uint64_t *event, uint32_t words)
{
    event[1] |= ring_what((uint16_t)id, words, 0);
    tracer_append_cold(event, words);
}

/* Copies the text; if it is longer, marks the event. */
static void put_text(uint64_t *event, uint32_t at, const char *text)
{
    if (text_copy((char *)&event[at], EVENT_PATH_BYTES, text) == EVENT_PATH_BYTES - 1)
        event[1] |= (uint64_t)RING_FLAG_CUT << (16 + RING_SIZE_BITS);
}

/* `name` NULL: asks for it. */
static void put_thread(enum event_id id, const char *name)
{
    uint64_t event[4] = {0};
    if (name)
        memcpy(&event[2], name, NAME_BYTES);
    else if (ledger_may_call(&process.ledger))
        sys_call(SYS_prctl, PR_GET_NAME, &event[2]);
    append(id, event, 4);
}

/* ---- threads ---- */

/* Runs again in each round, so that most destructors of the program are done before it writes. */
static void thread_ends(void *round)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if ((uintptr_t)round < LAST_ROUND) {
        pthread_setspecific(key, (char *)round + 1);
        return;
    }
    if (!tracer_begin_cold(t, &outside))
        return;
    put_thread(EVENT_thread_end, NULL);
    tracer_end_cold(t, outside);
}

/* Only threads that libc has made: others may have no place for a key. */
static void watch_end(void)
{
    const uint32_t k = load_relaxed(&key);
    if (k < KEYS_READY && !(tracer_thread & TRACER_UNREGISTERED))
        pthread_setspecific(k, (void *)1);
}

void tracer_life_thread_begins(void)
{
    watch_end();
    put_thread(EVENT_thread_begin, NULL);
}

/* ---- the process ---- */

void tracer_life_begin(void)
{
    pthread_key_t made;
    if (pthread_key_create && pthread_setspecific && !pthread_key_create(&made, thread_ends))
        key = made;
}

void tracer_life_process_begins(void)
{
    uint64_t event[6] = {0, 0, (uint64_t)process.parent_pid, process.parent_image_id};
    const char *name = process.ledger.header->comm; /* process_describe() has just asked for it */
    memcpy(&event[4], name, NAME_BYTES);
    memset(is_told, 0, sizeof(is_told));
    looked_at = 0;
    tracer_know_thread();
    append(EVENT_process_begin, event, 6);
    watch_end();
    put_thread(EVENT_thread_begin, name);
}

__attribute__((destructor)) static void process_exits(void)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    uint64_t event[3] = {0, 0, agent_state.threads};
    if (!tracer_on || !tracer_rings_made() || !tracer_begin_cold(t, &outside))
        return;
    append(EVENT_process_exit, event, 3);
    tracer_end_cold(t, outside);
}

void tracer_life_executes(const char *path, int error)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    uint64_t event[3 + TEXT_WORDS] = {0};
    if (!tracer_on || !tracer_rings_made() || !tracer_begin_cold(t, &outside))
        return;
    event[2] = error ? (uint64_t)error : (uint64_t)sys_call(SYS_getpid, 0);
    if (!error)
        put_text(event, 3, path);
    append(error ? EVENT_exec_failed : EVENT_exec, event, error ? 3 : 3 + TEXT_WORDS);
    tracer_end_cold(t, outside);
}

/* ---- modules ---- */

static void put_module(enum event_id id, const struct unwind_module *m)
{
    uint64_t event[4 + TEXT_WORDS] = {0, 0, m->start, m->end};
    const uint32_t row = load_acquire(&m->ledger_id) - 1;
    const struct ledger_module *in_ledger =
        ledger_at(&process.ledger, LEDGER_MODULES, struct ledger_module, row);
    put_text(event, 4, ledger_at(&process.ledger, LEDGER_STRINGS, char, in_ledger->path));
    append(id, event, 4 + TEXT_WORDS);
}

/* Returns whether this thread is the one that writes the event. */
static bool take(uint32_t module, uint8_t from, uint8_t to)
{
    return __atomic_compare_exchange_n(&is_told[module], &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static void tell_loaded(uint32_t module)
{
    const struct unwind_module *m = &unwind_modules.at[module];
    if (!load_relaxed(&is_told[module]) && load_acquire(&m->ready) && load_acquire(&m->ledger_id) &&
        module_is_current(module, m->start) && take(module, 0, 1))
        put_module(EVENT_module_loaded, m);
}

void tracer_life_modules_loaded(void)
{
    const uint64_t in_ledger = load_acquire(&process.ledger.header->regions[LEDGER_MODULES].used);
    if (likely(in_ledger == load_relaxed(&looked_at)))
        return;
    for (uint32_t k = 0; k < load_acquire(&unwind_modules.used) && k < MODULE_MAX; k++)
        tell_loaded(k);
    store_relaxed(&looked_at, in_ledger);
}

void tracer_life_site(uintptr_t site)
{
    const uint32_t module = module_find(site);
    if (module < MODULE_MAX)
        tell_loaded(module);
}

void tracer_life_modules_unloaded(void)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (!tracer_on || !tracer_rings_made() || !tracer_begin_cold(t, &outside))
        return;
    for (uint32_t k = 0; k < load_acquire(&unwind_modules.used) && k < MODULE_MAX; k++) {
        const struct unwind_module *m = &unwind_modules.at[k];
        if (load_relaxed(&is_told[k]) && !module_is_current(k, m->start) && take(k, 1, 0))
            put_module(EVENT_module_unloaded, m);
    }
    tracer_end_cold(t, outside);
}
