/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "sys/stack_samples.h"
#include "view/formats/json.h"
#include "view/text/text.h"

struct said {
    uint32_t count;
    const char *words, *key;
    bool lost;
};

static const struct said losses[] = {
    {SYS_RING_FULL, "event{s} lost: the ring was full (--ring makes it larger)", "lost_events", true},
    {SYS_TABLE_FULL, "event{s} lost: the table of rows was full (--rows makes it larger)", "lost_rows", true},
    {SYS_STACK_FAILED, "stack{s} could not be read", "stacks_failed", true},
    {SYS_STACKS_FULL, "stack{s} lost: no room for more (--stack-slots makes it)", "stacks_lost", true},
    {SYS_MISSED,
     "event{s}, wanted or not, came while our program for {it|them} was at work on that CPU, and {was|were} "
     "missed",
     "missed_events", true},
    {SYS_LIVE_FULL, "live object{s} lost: no room for more", "lost_live_objects", true},
    {SYS_SAMPLE_LOST,
     "sample{s} of user stacks lost: no room for {it|them} (--sample-ring makes it), or no program of 64 "
     "bits",
     "lost_samples", true},
    {SYS_MAPS_LOST,
     "record{s} of what processes map {was|were} lost: code of some that ended since has no name",
     "lost_mappings", true},
    {SYS_OWN, "event{s} of allium itself, left out", "own_events", false},
    {SYS_UNTRUSTED,
     "frame{s} of user stacks {is|are} marked ?: code without frame pointers, see allium-sys(1)",
     "untrusted_frames", false},
    {SYS_NAMELESS,
     "frames of user stacks have no name: what lay there is gone, or may not be read (CAP_SYS_PTRACE)",
     "nameless_frames", false},
};

#define LOSSES (sizeof(losses) / sizeof(*losses))

static const struct stack_samples_counts *samples_of(const struct sys_losses *l)
{
    return l->session ? stack_samples_counted(l->session) : NULL;
}

/* A line: so many of what the words say. */
static void say(uint64_t n, const char *words)
{
    struct buf b = BUF_INIT;
    text_add_words(&b, n, words);
    fprintf(stderr, "allium: %s\n", buf_str(&b));
    buf_release(&b);
}

/* How walks of sampled stacks ended. */
static void say_samples(const struct sys_losses *l)
{
    const struct stack_samples_counts *c = samples_of(l);
    if (!c)
        return;
    uint32_t n = l->session->settings.config.sample;
    struct buf b = BUF_INIT;
    text_add_words(&b, c->taken, "user stack{s} {was|were} sampled, one for ");
    if (n == 1)
        buf_addstr(&b, "each event");
    else
        buf_printf(&b, "every %" PRIu32 " events%s", n,
                   l->tool->event ? "" : "; figures are estimates, _low and _high their 95 % interval");
    fprintf(stderr, "allium: %s\n", buf_str(&b));
    for (enum stack_dump_end end = STACK_DUMP_DEEP; end < STACK_DUMP_ENDS; end++) {
        buf_reset(&b);
        buf_printf(&b, "of them {is|are} not whole: %s", stack_samples_end_words(end));
        if (c->ends[end])
            say(c->ends[end], buf_str(&b));
    }
    buf_reset(&b);
    text_add_number(&b, c->frames, NULL);
    char *frames = buf_detach(&b);
    buf_printf(&b, "of their %s frames {lies|lie} in nothing that is known", frames);
    if (c->not_found)
        say(c->not_found, buf_str(&b));
    free(frames);
    buf_release(&b);
}

static void write_samples_json(const struct sys_losses *l, struct json *j)
{
    const struct stack_samples_counts *c = samples_of(l);
    if (!c)
        return;
    json_open(j, "samples", '{');
    json_whole(j, "events_each", l->session->settings.config.sample);
    json_whole(j, "taken", c->taken);
    json_whole(j, "in_exec", c->in_exec);
    json_whole(j, "whole", c->ends[STACK_DUMP_WHOLE]);
    for (enum stack_dump_end end = STACK_DUMP_DEEP; end < STACK_DUMP_ENDS; end++)
        json_whole(j, stack_samples_end_key(end), c->ends[end]);
    json_whole(j, "frames", c->frames);
    json_whole(j, "frames_not_found", c->not_found);
    json_close(j, '}');
}

static void say_count(uint64_t n, const char *words, bool is_loss, unsigned *lost)
{
    if (!n)
        return;
    *lost += is_loss;
    say(n, words);
}

void sys_losses_say(const struct sys_losses *l)
{
    unsigned lost = 0;
    if (!l->counted) {
        fprintf(stderr, "allium: what was lost is not known: the recording goes on still, or was cut off\n");
        return;
    }
    for (size_t i = 0; i < LOSSES; i++)
        say_count(l->counted[losses[i].count], losses[i].words, losses[i].lost, &lost);
    for (const struct sys_counted *c = l->tool->counted; c && c->words; c++)
        say_count(l->counted[c->count], c->words, c->lost, &lost);
    say_count(l->not_kept, "event{s} not shown: no room to keep {it|them} (--rows makes it)", true, &lost);
    say_samples(l);
    if (!lost)
        fprintf(stderr, "allium: nothing was lost\n");
}

void sys_losses_write_json(const struct sys_losses *l, struct sink *out)
{
    struct json j = {.out = out, .line = true};
    json_open(&j, NULL, '{');
    if (!l->counted) {
        json_null(&j, "lost");
        json_close(&j, '}');
        return;
    }
    json_open(&j, "lost", '{');
    for (size_t i = 0; i < LOSSES; i++)
        json_whole(&j, losses[i].key, l->counted[losses[i].count]);
    for (const struct sys_counted *c = l->tool->counted; c && c->words; c++)
        json_whole(&j, c->key, l->counted[c->count]);
    if (l->tool->event)
        json_whole(&j, "not_kept_events", l->not_kept);
    json_close(&j, '}');
    write_samples_json(l, &j);
    json_close(&j, '}');
}

/* Calls for each key under which a count is recorded; stops at what is not 0. */
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
    int bad = recording_set_text(recording, key, s->rung->name, e);
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
    recording_number(g->recording, key, &n); /* what an older version did not count stays 0 */
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
