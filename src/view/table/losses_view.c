/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/losses_view.h"

#include <inttypes.h>

#include "view/formats/json.h"
#include "view/text/notes.h"
#include "view/text/text.h"

static void note_samples(struct buf *notes, const struct losses_samples *s)
{
    struct buf b = BUF_INIT;
    text_add_words(&b, s->taken, "user stack{s} {was|were} sampled, one for ");
    if (s->events_each == 1)
        buf_addstr(&b, "each event");
    else
        buf_printf(&b, "every %" PRIu32 " events%s", s->events_each,
                   s->estimates ? "; figures are estimates, _low and _high their 95 % interval" : "");
    notes_add(notes, "%s", buf_str(&b));
    vec_each (const struct losses_count, end, &s->ends) {
        buf_reset(&b);
        buf_printf(&b, "sampled stack{s} {is|are} incomplete: %s", end->words);
        notes_add_count(notes, end->n, buf_str(&b));
    }
    buf_reset(&b);
    text_add_number(&b, s->frames, NULL);
    char *frames = buf_detach(&b);
    buf_printf(&b, "of %s frames of sampled stacks {is|are} in unknown code", frames);
    notes_add_count(notes, s->not_found, buf_str(&b));
    free(frames);
    buf_release(&b);
}

void losses_view_note(struct buf *notes, const struct losses_view *v)
{
    bool lost = false;
    if (!v->counts) {
        notes_add(notes, "losses are unknown: the recording is not finished, or was cut off");
        return;
    }
    vec_each (const struct losses_count, c, v->counts) {
        lost = lost || (c->lost && c->n);
        notes_add_count(notes, c->n, c->words);
    }
    if (v->samples)
        note_samples(notes, v->samples);
    if (!lost)
        notes_add(notes, "nothing was lost");
}

static void write_counts(struct json *j, const struct losses_counts *counts)
{
    vec_each (const struct losses_count, c, counts)
        if (c->key)
            json_whole(j, c->key, c->n);
}

static void write_samples(struct json *j, const struct losses_samples *s)
{
    json_open(j, "samples", '{');
    json_whole(j, "events_each", s->events_each);
    json_whole(j, "taken", s->taken);
    json_whole(j, "in_exec", s->in_exec);
    json_whole(j, "whole", s->whole);
    write_counts(j, &s->ends);
    json_whole(j, "frames", s->frames);
    json_whole(j, "frames_not_found", s->not_found);
    json_close(j, '}');
}

void losses_view_json(struct sink *out, const struct losses_view *v)
{
    struct json j = {.out = out, .line = true};
    json_open(&j, NULL, '{');
    if (v->counts) {
        json_open(&j, "lost", '{');
        write_counts(&j, v->counts);
        json_close(&j, '}');
        if (v->samples)
            write_samples(&j, v->samples);
    } else {
        json_null(&j, "lost");
    }
    json_close(&j, '}');
}
