/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/export_heaptrack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/source.h"
#include "cli/source_trace.h"
#include "model/trace/clock_kind.h"
#include "view/text/notes.h"

struct place {
    char *folder;
    const char *time; /* NULL: all of it */
};

static int play(void *arg, const struct object_listener *listener, struct error *e)
{
    const struct place *at = arg;
    return source_trace_lives(at->folder, at->time, listener, e);
}

static uint64_t calls_of(const struct profile *p)
{
    uint64_t calls = 0;
    vec_each (const struct profile_cell, c, &p->cells)
        calls += c->allocated.samples;
    return calls;
}

int export_heaptrack(struct sink *out, const char *source, const struct profile *p,
                     const struct heaptrack_options *o, struct buf *notes, struct error *e)
{
    struct place at = {NULL, NULL};
    if (source && p->trace.known && !clock_kind_has_numbers(profile_text(p, p->trace.clock)) &&
        calls_of(p) <= HEAPTRACK_CALLS) {
        if (source_kind(source) != SOURCE_MOMENT)
            at.folder = mem_strdup(source);
        else if (source_moment(source, &at.folder, &at.time, e))
            at.folder = NULL;
    }
    if (at.folder) {
        const int bad = heaptrack_write_lives(out, p, o, play, &at, e);
        free(at.folder);
        return bad;
    }
    const uint64_t each = heaptrack_write(out, p, o);
    if (each > 1)
        notes_add(notes,
                  "too many calls to write each one: in the file, one call stands for %" PRIu64
                  " calls, with their bytes",
                  each);
    return 0;
}
