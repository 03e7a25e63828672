/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/attach_process.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "attach/remote_call.h"
#include "attach/entries.h"
#include "attach/refusal.h"
#include "attach/safe_point.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/process/proc.h"
#include "wire/ledger.h"

#define AGENT      "liballium-agent-full.so"
#define RTLD_FLAGS (2 | 0x1000) /* RTLD_NOW, RTLD_NODELETE, of glibc */

struct work {
    struct target t;
    const struct attach_options *o;
    struct attached *out;
    uint64_t deadline_ns;
    unsigned looks, refused;
    char where[128]; /* of the last thread that was not at a safe point */
};

static uint64_t begin_stop(void)
{
    stop_hurry(true);
    return clock_ns(CLOCK_MONOTONIC);
}

static void note_stop(struct work *w, uint64_t began_ns)
{
    const uint64_t took = clock_ns(CLOCK_MONOTONIC) - began_ns;
    stop_hurry(false);
    if (took > w->out->longest_stop_ns)
        w->out->longest_stop_ns = took;
}

/* Calls in one thread, if it is at a safe point. Returns 0; -EAGAIN: another one may do; or an error with a line. */
static int call_in(struct work *w, pid_t tid, const struct call *c, struct error *e)
{
    struct stopped s = {.pid = w->t.pid};
    struct error why_not = {""};
    const uint64_t began = begin_stop();
    int bad = stop_thread(&s, tid, &why_not);
    const char *place = bad ? NULL : safe_point_refuse(&w->t, &s.threads.at[0]);
    w->looks++;
    if (place)
        bad = error_set(&why_not, EAGAIN, "%s", place);
    if (!bad)
        bad = call_function(&w->t, &s.threads.at[0], c, &why_not);
    stop_release(&s);
    note_stop(w, began);
    if (bad == -EAGAIN || bad == -ESRCH) { /* the thread has ended: the others have not */
        w->refused++;
        snprintf(w->where, sizeof(w->where), "%s", why_not.text);
        return -EAGAIN;
    }
    return bad ? error_set(e, -bad, "%s", why_not.text) : 0;
}

/* Calls the function on any thread at a safe point; the others run. */
static int call(struct work *w, const struct call *c, struct error *e)
{
    const struct timespec a_while = {.tv_nsec = 2000000};
    for (;;) {
        struct thread_ids ids = {0};
        int bad =
            stop_list(w->t.pid, &ids) ? -EAGAIN : error_set(e, ESRCH, "process %d has ended", (int)w->t.pid);
        vec_each (const pid_t, tid, &ids)
            if (bad == -EAGAIN)
                bad = call_in(w, *tid, c, e);
        vec_release(&ids);
        if (bad != -EAGAIN)
            return bad;
        if (clock_ns(CLOCK_MONOTONIC) > w->deadline_ns)
            return error_set(
                e, EAGAIN,
                "found no safe moment to load the library into process %d: %u times of %u a thread was "
                "busy, the last one %s",
                (int)w->t.pid, w->refused, w->looks, w->where);
        nanosleep(&a_while, NULL);
        if ((bad = target_read_maps(&w->t, e)))
            return bad;
    }
}

/* Returns the agent's module, and reads its state; NULL: it is not there, or of another version. */
static const struct target_module *find_agent(struct target *t, struct attach_state *state, uint64_t *at)
{
    const struct target_module *agent = target_module(t, AGENT);
    *at = agent ? target_symbol(agent, "allium_attach_state", NULL) : 0;
    if (!*at || !target_read(t, *at, state, sizeof(*state)) || state->magic != ATTACH_MAGIC ||
        state->bytes != sizeof(*state))
        return NULL;
    entries_look(t, state->entries);
    return agent;
}

static int load_agent(struct work *w, struct error *e)
{
    const struct target_module *libc = target_module(&w->t, "libc.so.");
    const uint64_t dlopen_at = libc ? target_symbol(libc, "dlopen", NULL) : 0;
    if (!dlopen_at)
        return error_set(e, ENOSYS, "process %d has no dlopen() in its C library: it is static, or too old",
                         (int)w->t.pid);
    const struct call c = {
        .function = dlopen_at, .text = w->o->agent, .arguments = {0, RTLD_FLAGS}, .timeout_ms = 1000};
    const int bad = call(w, &c, e);
    return bad ? bad : target_read_maps(&w->t, e);
}

static void copy_state(struct attach_state *state, const struct work *w, const struct entries *n)
{
    state->period_bytes = w->o->period_bytes;
    state->limit_bytes = w->o->limit_bytes;
    state->sites = w->o->sites;
    snprintf(state->dir, sizeof(state->dir), "%s", w->o->dir ? w->o->dir : "");
    state->result = ATTACH_NOT_CALLED;
    memcpy(state->entries, n->at, sizeof(state->entries));
}

static int start_agent(struct work *w, const struct target_module *agent, const struct entries *n,
                       uint64_t at, struct attach_state *state, struct error *e)
{
    const uint64_t code = target_symbol(agent, "allium_attach_code", NULL);
    const struct call c = {.function = target_symbol(agent, "allium_attach", NULL), .timeout_ms = 1000};
    copy_state(state, w, n);
    if (!code || !c.function || !target_write(&w->t, code, n->code, sizeof(n->code)) ||
        !target_write(&w->t, at, state, offsetof(struct attach_state, process)))
        return error_set(e, EIO, "cannot write to process %d", (int)w->t.pid);
    const int bad = call(w, &c, e);
    if (bad)
        return bad;
    if (!target_read(&w->t, at, state, sizeof(*state)) || state->result != ATTACH_DONE)
        return state->result == ATTACH_PRELOADED
                   ? error_set(e, EEXIST, "process %d was started with the agent: see allium report %d",
                               (int)w->t.pid, (int)w->t.pid)
                   : error_set(e, EIO, "the agent does not start in process %d", (int)w->t.pid);
    return 0;
}

/* Stops all threads, and calls `change` when none is in the way. */
static int change_entries(struct work *w, struct entries *n, bool patch, struct error *e)
{
    const struct timespec a_while = {.tv_nsec = 1000000};
    for (;;) {
        struct stopped s = {.pid = w->t.pid};
        const uint64_t began = begin_stop();
        int bad = stop_all(&s, e);
        const bool is_free = !bad && (!patch || entries_are_free(&w->t, &s, n->at));
        w->out->threads = (unsigned)s.threads.len;
        if (is_free)
            bad = patch ? entries_patch(&w->t, n) : entries_restore(&w->t, n->at);
        stop_release(&s);
        note_stop(w, began);
        if (bad < 0 || is_free)
            return bad < 0 && !e->text[0] ? error_set(e, -bad, "cannot write to process %d", (int)w->t.pid)
                                          : bad;
        if (clock_ns(CLOCK_MONOTONIC) > w->deadline_ns)
            return error_set(e, EAGAIN, "threads of process %d are in its allocator all the time",
                             (int)w->t.pid);
        nanosleep(&a_while, NULL);
        if ((bad = target_read_maps(&w->t, e)))
            return bad;
    }
}

/* Writes back what a tool has patched that was killed before it had patched all. */
static int undo_half(struct work *w, const struct attach_state *state, struct error *e)
{
    struct entries n = {.functions = 0};
    unsigned entries = 0, patched = 0;
    memcpy(n.at, state->entries, sizeof(n.at));
    for (int k = 0; k < ATTACH_COUNT; k++) {
        entries += n.at[k].at != 0;
        patched += n.at[k].is_patched;
    }
    if (patched && patched == entries)
        return error_set(e, EEXIST, "process %d is observed already: see allium report %d", (int)w->t.pid,
                         (int)w->t.pid);
    const int undone = patched ? change_entries(w, &n, false, e) : 0;
    return undone < 0 ? undone : 0;
}

static int begin(struct work *w, struct error *e)
{
    struct attach_state state;
    struct entries n;
    uint64_t at;
    const struct target_module *agent = find_agent(&w->t, &state, &at);
    int bad = agent ? 0 : load_agent(w, e);
    if (bad)
        return bad;
    if (!agent && !(agent = find_agent(&w->t, &state, &at)))
        return error_set(e, EIO, "process %d cannot load %s", (int)w->t.pid, w->o->agent);
    if ((bad = undo_half(w, &state, e)) || (bad = entries_find(&w->t, agent, &n, e)) ||
        (bad = start_agent(w, agent, &n, at, &state, e)))
        return bad;
    bad = change_entries(w, &n, true, e);
    if (bad)
        return bad;
    w->out->functions = n.functions;
    memcpy(w->out->library, n.library, sizeof(n.library));
    return 0;
}

static int open_work(struct work *w, pid_t pid, unsigned timeout_ms, struct error *e)
{
    struct buf name = BUF_INIT;
    w->deadline_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000ull;
    *w->out = (struct attached){.threads = 0};
    const int bad = target_open(&w->t, pid, e);
    proc_name(pid, &name);
    snprintf(w->out->comm, sizeof(w->out->comm), "%s", buf_str(&name));
    buf_release(&name);
    return bad;
}

int attach_begin(pid_t pid, const struct attach_options *o, struct attached *out, struct error *e)
{
    struct work w = {.o = o, .out = out};
    int bad = refusal_of_process(pid, e);
    w.t.memory = -1;
    if (!bad)
        bad = open_work(&w, pid, o->timeout_ms, e);
    if (!bad)
        bad = refusal_of_maps(&w.t, e);
    if (!bad)
        bad = begin(&w, e);
    target_close(&w.t);
    return bad;
}

/* The ledger's last words, as the process itself would write them. */
static void end_ledger(const struct target *t, const struct attach_state *state)
{
    struct ledger_header h;
    uint64_t at = 0;
    if (!target_read(t, state->process, &at, sizeof(at)) || !target_read(t, at, &h, sizeof(h)) ||
        h.magic != LEDGER_MAGIC || h.map_start != at || h.state != LEDGER_RUNNING)
        return;
    h.state = LEDGER_DETACHED;
    h.ended_ticks = h.clock == LEDGER_CLOCK_TSC ? __rdtsc() : clock_ns(CLOCK_MONOTONIC);
    if (target_write(t, at + offsetof(struct ledger_header, ended_ticks), &h.ended_ticks,
                     sizeof(h.ended_ticks)))
        target_write(t, at + offsetof(struct ledger_header, state), &h.state, sizeof(h.state));
}

int attach_end(pid_t pid, unsigned timeout_ms, struct attached *out, struct error *e)
{
    struct work w = {.out = out};
    struct attach_state state;
    struct entries n = {.functions = 0};
    uint64_t at;
    int bad = open_work(&w, pid, timeout_ms, e);
    if (!bad && !find_agent(&w.t, &state, &at))
        bad = error_set(e, ENOENT, "process %d is not attached to", (int)pid);
    if (!bad) {
        memcpy(n.at, state.entries, sizeof(n.at));
        bad = change_entries(&w, &n, false, e);
    }
    if (bad >= 0) {
        out->functions = (unsigned)bad;
        if (out->functions)
            end_ledger(&w.t, &state);
        bad = out->functions ? 0 : error_set(e, ENOENT, "process %d is not attached to", (int)pid);
    }
    target_close(&w.t);
    return bad;
}
