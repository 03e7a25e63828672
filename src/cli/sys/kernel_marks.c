/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/kernel_marks.h"

#include <inttypes.h>
#include <string.h>

#include "cli/sys/state_rows.h"
#include "collect/kernel/proc_text.h"

/* Returns whether the state has the count of kills since the boot. */
static bool kills_of(const struct kernel_state *s, uint64_t *kills)
{
    const char *text = kernel_state_text(s, "/proc/vmstat");
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (proc_text_value(line, "oom_kill", kills))
            return true;
    }
    return false;
}

static void add_mark(struct profile *p, uint64_t time_ns, uint64_t kills)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, "OOM kill");
    if (kills > 1)
        buf_printf(&b, "s: %" PRIu64, kills);
    const uint32_t text = profile_string(p, buf_str(&b));
    *vec_push(&p->marks) = (struct profile_mark){.time_ns = time_ns, .text = text, .is_bad = true};
    buf_release(&b);
}

void kernel_marks_add(struct profile *p, const char *path)
{
    struct state_rows rows;
    struct error ignored;
    uint64_t before = 0, kills;
    bool known = false;
    if (!state_rows_load(&rows, path, &ignored))
        vec_each (const struct state_moment, m, &rows.moments) {
            if (!kills_of(&m->state, &kills))
                continue;
            if (known && kills > before)
                add_mark(p, m->taken_ns, kills - before);
            before = kills;
            known = true;
        }
    state_rows_release(&rows);
}
