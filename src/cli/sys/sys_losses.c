/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/command.h"
#include "sys/stack_samples.h"
#include "view/table/losses_view.h"

struct loss {
    uint32_t count;
    const char *words, *key;
    bool lost;
};

static const struct loss losses[] = {
    {SYS_RING_FULL, "event{s} lost: the ring was full (--ring makes it larger)", "lost_events", true},
    {SYS_TABLE_FULL, "event{s} lost: the table of rows was full (--rows makes it larger)", "lost_rows", true},
    {SYS_STACK_FAILED, "stack{s} could not be read", "stacks_failed", true},
    {SYS_STACKS_FULL, "stack{s} lost: no room for more (--stack-slots makes room)", "stacks_lost", true},
    {SYS_MISSED,
     "event{s} {was|were} missed: {it|they} came while the program that counts {it|them} was running on that "
     "CPU",
     "missed_events", true},
    {SYS_LIVE_FULL, "live object{s} lost: no room for more", "lost_live_objects", true},
    {SYS_SAMPLE_LOST,
     "sample{s} of user stacks lost: no room for {it|them} (--sample-ring makes room), or not a 64-bit "
     "program",
     "lost_samples", true},
    {SYS_MAPS_LOST, "record{s} of memory mappings {was|were} lost: code of some ended processes has no name",
     "lost_mappings", true},
    {SYS_OWN, "event{s} of allium itself, left out", "own_events", false},
    {SYS_UNTRUSTED,
     "frame{s} of user stacks {is|are} marked ?: code without frame pointers, see allium-sys(1)",
     "untrusted_frames", false},
    {SYS_NAMELESS,
     "frame{s} of user stacks {has|have} no name: the code is gone, or may not be read (CAP_SYS_PTRACE)",
     "nameless_frames", false},
};

#define LOSSES (sizeof(losses) / sizeof(*losses))
/* Of rows that were made of a kernel trace. */
#define TRACE_LOST                                                                                           \
    "event{s} of the trace lost, or not understood: live figures may be too high or too low (a larger "      \
    "--buffer "                                                                                              \
    "of sys record makes room)"

static void add(struct losses_counts *to, uint64_t n, const char *words, const char *key, bool lost)
{
    *vec_push(to) = (struct losses_count){n, words, key, lost};
}

static void add_samples(struct losses_samples *to, const struct stack_samples_counts *c,
                        const struct sys_losses *l)
{
    *to = (struct losses_samples){.events_each = l->session->settings.config.sample,
                                  .estimates = !l->tool->event,
                                  .taken = c->taken,
                                  .in_exec = c->in_exec,
                                  .whole = c->ends[STACK_DUMP_WHOLE],
                                  .frames = c->frames,
                                  .not_found = c->not_found};
    for (enum stack_dump_end end = STACK_DUMP_DEEP; end < STACK_DUMP_ENDS; end++)
        add(&to->ends, c->ends[end], stack_samples_end_words(end), stack_samples_end_key(end), true);
}

/* Fills the view; counts and samples are the caller's, and released by it. */
static struct losses_view view_of(const struct sys_losses *l, struct losses_counts *counts,
                                  struct losses_samples *samples)
{
    const struct stack_samples_counts *c = l->session ? stack_samples_counted(l->session) : NULL;
    if (!l->counted)
        return (struct losses_view){.counts = NULL};
    for (size_t i = 0; i < LOSSES; i++) {
        const bool of_trace =
            losses[i].count == SYS_RING_FULL && l->tool->parts; /* rows come through no ring */
        add(counts, l->counted[losses[i].count], of_trace ? TRACE_LOST : losses[i].words, losses[i].key,
            losses[i].lost);
    }
    for (const struct sys_counted *own = l->tool->counted; own && own->words; own++)
        add(counts, l->counted[own->count], own->words, own->key, own->lost);
    add(counts, l->not_stored, "event{s} not shown: no room to keep {it|them} (--rows makes room)",
        l->tool->event ? "not_kept_events" : NULL, true);
    if (c)
        add_samples(samples, c, l);
    return (struct losses_view){counts, c ? samples : NULL};
}

void sys_losses_note(const struct sys_losses *l, struct buf *notes)
{
    struct losses_counts counts = {0};
    struct losses_samples samples = {0};
    const struct losses_view view = view_of(l, &counts, &samples);
    losses_view_note(notes, &view);
    vec_release(&counts);
    vec_release(&samples.ends);
}

void sys_losses_say(const struct sys_losses *l)
{
    struct buf notes = BUF_INIT;
    sys_losses_note(l, &notes);
    command_notes(&notes);
}

void sys_losses_write_json(const struct sys_losses *l, struct sink *out)
{
    struct losses_counts counts = {0};
    struct losses_samples samples = {0};
    const struct losses_view view = view_of(l, &counts, &samples);
    losses_view_json(out, &view);
    vec_release(&counts);
    vec_release(&samples.ends);
}

/* Calls `f` for each key that a count is recorded under, until it returns something other than 0. */
static int each_key(const struct sys_tool *tool, int (*f)(void *arg, const char *key, uint32_t count),
                    void *arg)
{
    struct buf key = BUF_INIT;
    int stop = 0;
    for (size_t i = 0; i < LOSSES && !stop; i++) {
        buf_reset(&key);
        buf_printf(&key, "sys_%s_%s", tool->name, losses[i].key);
        stop = f(arg, buf_str(&key), losses[i].count);
    }
    for (const struct sys_counted *c = tool->counted; c && c->words && !stop; c++) {
        buf_reset(&key);
        buf_printf(&key, "sys_%s_%s", tool->name, c->key);
        stop = f(arg, buf_str(&key), c->count);
    }
    buf_release(&key);
    return stop;
}

struct put {
    const struct sys_session *session;
    struct recording *recording;
    struct error *e;
};

static int put(void *arg, const char *key, uint32_t count)
{
    const struct put *p = arg;
    return recording_set_number(p->recording, key, (int64_t)p->session->counted[count], p->e);
}

int sys_losses_record(const struct sys_session *s, struct recording *recording, struct error *e)
{
    char key[64];
    struct put p = {s, recording, e};
    snprintf(key, sizeof(key), "sys_%s_rung", s->tool->name);
    int bad = recording_set_text(recording, key, s->method->name, e);
    return bad ? bad : each_key(s->tool, put, &p);
}

struct get {
    const struct recording_summary *recording;
    uint64_t *counted;
};

static int get(void *arg, const char *key, uint32_t count)
{
    const struct get *g = arg;
    int64_t n = 0;
    recording_number(g->recording, key, &n); /* a count that the recording version did not have stays 0 */
    g->counted[count] = n > 0 ? (uint64_t)n : 0;
    return 0;
}

bool sys_losses_recorded(const struct sys_tool *tool, const struct recording_summary *recording,
                         uint64_t counted[static SYS_COUNTS])
{
    char key[64];
    struct get g = {recording, counted};
    snprintf(key, sizeof(key), "sys_%s_rung", tool->name);
    return recording_text(recording, key) && !each_key(tool, get, &g);
}
