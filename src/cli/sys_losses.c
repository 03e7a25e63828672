/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys_losses.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "machine/names.h"
#include "machine/samples.h"
#include "view/json.h"

struct said {
    uint32_t count;
    const char *words, *key;
    bool lost;
};

static const struct said losses[] = {
    {SYS_RING_FULL, "events lost: the ring was full (--ring makes it larger)", "lost_events", true},
    {SYS_TABLE_FULL, "events lost: the table of rows was full (--rows makes it larger)", "lost_rows", true},
    {SYS_STACK_FAILED, "stacks could not be read", "stacks_failed", true},
    {SYS_STACKS_FULL, "stacks lost: no room for more (--stack-slots makes it)", "stacks_lost", true},
    {SYS_MISSED,
     "events, wanted or not, came while our program for them was at work on that CPU, and were missed",
     "missed_events", true},
    {SYS_LIVE_FULL, "live objects lost: no room for more", "lost_live_objects", true},
    {SYS_SAMPLE_LOST,
     "samples of user stacks lost: no room for them (--sample-ring makes it), or no program of 64 bits",
     "lost_samples", true},
    {SYS_MAPS_LOST, "records of what processes map were lost: code of some that ended since has no name",
     "lost_mappings", true},
    {SYS_OWN, "events of allium itself, left out", "own_events", false},
};

/* How walks of sampled stacks ended. */
static void say_samples(const struct sys_session *s)
{
    const struct samples_counts *c = samples_counted(s);
    uint32_t n = s->settings.config.sample;
    if (!c)
        return;
    fprintf(stderr, "allium: %" PRIu64 " user stacks were sampled, one for every %" PRIu32 " events%s\n",
            c->taken, n,
            n > 1 && !s->tool->event ? "; figures are estimates, _low and _high their 95 % interval" : "");
    for (enum captured_end end = CAPTURED_DEEP; end < CAPTURED_ENDS; end++)
        if (c->ends[end])
            fprintf(stderr, "allium: %" PRIu64 " of them are not whole: %s\n", c->ends[end],
                    samples_end_words(end));
    if (c->not_found)
        fprintf(stderr, "allium: %" PRIu64 " of their %" PRIu64 " frames lie in nothing that is known\n",
                c->not_found, c->frames);
}

static void write_samples_json(const struct sys_session *s, struct json *j)
{
    const struct samples_counts *c = samples_counted(s);
    if (!c)
        return;
    json_open(j, "samples", '{');
    json_whole(j, "events_each", s->settings.config.sample);
    json_whole(j, "taken", c->taken);
    json_whole(j, "in_exec", c->in_exec);
    json_whole(j, "whole", c->ends[CAPTURED_WHOLE]);
    for (enum captured_end end = CAPTURED_DEEP; end < CAPTURED_ENDS; end++)
        json_whole(j, samples_end_key(end), c->ends[end]);
    json_whole(j, "frames", c->frames);
    json_whole(j, "frames_not_found", c->not_found);
    json_close(j, '}');
}

static void say_count(const struct sys_session *s, const struct said *l, unsigned *lost)
{
    uint64_t n = s->counted[l->count];
    if (!n)
        return;
    *lost += l->lost;
    fprintf(stderr, "allium: %" PRIu64 " %s\n", n, l->words);
}

void sys_losses_write_json(const struct sys_session *s, uint64_t not_kept, struct sink *out)
{
    struct json j = {.out = out, .line = true};
    json_open(&j, NULL, '{');
    json_open(&j, "lost", '{');
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
        json_whole(&j, losses[i].key, s->counted[losses[i].count]);
    for (const struct sys_counted *c = s->tool->counted; c && c->words; c++)
        json_whole(&j, c->key, s->counted[c->count]);
    if (s->tool->event)
        json_whole(&j, "not_kept_events", not_kept);
    json_close(&j, '}');
    write_samples_json(s, &j);
    json_close(&j, '}');
}

int sys_losses_record(const struct sys_session *s, struct recording *recording, struct error *e)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "sys_%s_rung", s->tool->name);
    int bad = recording_set_text(recording, buf_str(&key), s->rung->name, e);
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses) && !bad; i++) {
        buf_reset(&key);
        buf_printf(&key, "sys_%s_%s", s->tool->name, losses[i].key);
        bad = recording_set_number(recording, buf_str(&key), (int64_t)s->counted[losses[i].count], e);
    }
    for (const struct sys_counted *c = s->tool->counted; c && c->words && !bad; c++) {
        buf_reset(&key);
        buf_printf(&key, "sys_%s_%s", s->tool->name, c->key);
        bad = recording_set_number(recording, buf_str(&key), (int64_t)s->counted[c->count], e);
    }
    buf_release(&key);
    return bad;
}

void sys_losses_say(const struct sys_session *s, uint64_t not_kept)
{
    unsigned lost = 0;
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
        say_count(s, &losses[i], &lost);
    for (const struct sys_counted *c = s->tool->counted; c && c->words; c++)
        say_count(s, &(struct said){c->count, c->words, c->key, c->lost}, &lost);
    if (not_kept)
        fprintf(stderr, "allium: %" PRIu64 " events not shown: no room to keep them (--rows makes it)\n",
                not_kept);
    lost += not_kept != 0;
    say_samples(s);
    if (names_untrusted(s->names))
        fprintf(stderr,
                "allium: %" PRIu64
                " frames of user stacks are marked ?: code without frame pointers, see allium-sys(1)\n",
                names_untrusted(s->names));
    if (!lost)
        fprintf(stderr, "allium: nothing was lost\n");
}
