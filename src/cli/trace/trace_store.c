/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_store.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/trace/trace_summary.h"
#include "collect/trace/trace_dir.h"
#include "run/trace/trace_snapshot.h"
#include "run/trace/traced_process.h"

static void print(const struct trace_snapshot_counts *n, const char *folder)
{
    struct buf b = BUF_INIT;
    char text[UNITS_TEXT_BYTES];
    buf_printf(&b, "wrote %" PRIu64 " events", n->events);
    if (n->events)
        buf_printf(&b, " of the last %s", units_format_duration(text, (double)(n->newest_ns - n->oldest_ns)));
    if (n->complete_ns > n->oldest_ns && n->newest_ns > n->complete_ns)
        buf_printf(&b, ", of all CPUs for the last %s",
                   units_format_duration(text, (double)(n->newest_ns - n->complete_ns)));
    buf_printf(&b, ", into %s; %" PRIu64 " before them are gone, %" PRIu64 " lost", folder, n->older,
               n->lost);
    command_fail(0, "%s", buf_str(&b));
    if (n->damaged)
        command_fail(0, "%" PRIu64 " parts of rings were damaged by the program itself, and left out",
                     n->damaged);
    command_fail(0, "next: allium report %s, or allium events %s", folder, folder);
    buf_release(&b);
}

static int write(const struct trace_store_options *o, const struct traced_process *t, const char *folder)
{
    struct trace_snapshot_counts counts;
    struct error e = {""};
    const struct trace_snapshot_source source = {t->dir, t->rings};
    if (trace_dir_make(folder, o->force, &e) ||
        trace_snapshot_write(folder, &source, 1, &(struct trace_snapshot_options){.last_ns = o->last_ns},
                             &counts, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    print(&counts, folder);
    trace_summary_print_user(&counts.user);
    return EXIT_DONE;
}

int trace_store_write(const struct trace_store_options *o, char **folder)
{
    struct traced_process t;
    struct error e = {""};
    struct buf name = BUF_INIT;
    *folder = NULL;
    if (traced_process_find(&t, o->pid, false, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (o->output)
        buf_addstr(&name, o->output);
    else
        buf_printf(&name, "%s.%d.snapshot.trace", t.comm, (int)o->pid);
    const int code = write(o, &t, buf_str(&name));
    traced_process_release(&t);
    *folder = code == EXIT_DONE ? buf_detach(&name) : NULL;
    buf_release(&name);
    return code;
}
