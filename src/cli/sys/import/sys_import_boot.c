/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/sys_import_boot.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/sys/import/boot_report.h"
#include "cli/sys/frag/frag_rows.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/state_rows.h"
#include "cli/sys/sys_source.h"
#include "cli/sys/sys_vmlinux.h"
#include "cli/wrapper_lists.h"
#include "store/recording.h"
#include "sys/record/early_memory.h"
#include "sys/record/kernel_recorder.h"
#include "view/text/text.h"

struct session {
    const struct sys_import_boot *q;
    struct kernel_recorder *recorder;
    struct wrappers helpers;
    struct recording *recording;
    struct kernel_state state; /* of the moment at which the trace ended */
    struct slab_traces traces;
    struct early_memory early;
    uint64_t ended_ns; /* CLOCK_REALTIME then */
};

/*
 * The state is read at once, as it is compared with what the trace holds live. slabinfo and the kernel's records of
 * objects come first: reading the rest leaves thousands of inodes of sysfs behind.
 */
static int stop(struct session *s, struct error *e)
{
    int bad = kernel_recorder_begin(s->recorder, e);
    if (bad)
        return bad;
    struct error ignored; /* without slub_debug=U there are no such files */
    s->ended_ns = clock_ns(CLOCK_REALTIME);
    kernel_state_read(&s->state, "", KERNEL_STATE_SLABS);
    slab_traces_read(&s->traces, &ignored);
    kernel_state_read(&s->state, "", KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
    if (!s->q->quiet)
        fprintf(stderr, "allium: ended the trace that began with the boot; now reading its buffers, which "
                        "empties them\n");
    const struct kernel_state before = {.texts = {0}};
    return state_rows_put(s->recording, &s->state, &before, s->ended_ns, e);
}

static int store(struct session *s, struct error *e)
{
    struct recording *r = s->recording;
    struct kernel_capture *c = kernel_recorder_capture(s->recorder);
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    int bad = recording_set_number(r, RECORDING_PERIOD, 1, e);
    bad = bad ? bad : recording_set_number(r, RECORDING_STARTED, (int64_t)t->first_ns + c->realtime_ns, e);
    bad = bad ? bad : kernel_store_moment(r, c, true, e);
    bad = bad ? bad : frag_rows_put(r, c, &s->state, e);
    early_memory_compute(&s->early, &s->state, c, kernel_recorder_boot(s->recorder), &s->traces);
    bad = bad ? bad : boot_report_store(r, &s->early, s->ended_ns, e);
    bad = bad ? bad : kernel_store_cost(r, e);
    return bad ? bad : kernel_store_end(r, c, "tracefs", s->ended_ns, e);
}

static void add_boot(struct buf *b, const struct session *s)
{
    char took[UNITS_TEXT_BYTES], first[UNITS_TEXT_BYTES];
    const struct kmem_totals *t = kmem_accounts_totals(kernel_recorder_capture(s->recorder)->accounts);
    buf_printf(b, "the kernel's boot, from %s to %s, ", units_format_duration(first, (double)t->first_ns),
               units_format_duration(took, (double)t->last_ns));
    kernel_store_add_summary(b, kernel_recorder_capture(s->recorder));
    kernel_store_add_lost(b, kernel_recorder_losses(s->recorder).events,
                          "a larger trace_buf_size= makes room");
}

/* If much came before the trace, that is said first. */
static void say(const struct session *s)
{
    struct buf b = BUF_INIT;
    const bool leads = boot_report_leads(&s->early);
    buf_addstr(&b, "allium: ");
    if (leads) {
        boot_report_add_line(&b, &s->early);
        buf_addstr(&b, "\nallium: ");
    }
    add_boot(&b, s);
    if (!leads) {
        buf_addstr(&b, "\nallium: ");
        boot_report_add_line(&b, &s->early);
    }
    buf_addch(&b, '\n');
    boot_report_add_details(&b, &s->early);
    fprintf(stderr, "%s  next       allium report %s\n             allium sys kmem --from %s --by comm\n",
            buf_str(&b), s->q->output, s->q->output);
    buf_release(&b);
}

/* The recorder is open, and the trace goes on until the recording is there. */
static int import(struct session *s)
{
    struct error e = {""}, closing = {""};
    if (recording_create(&s->recording, s->q->output, s->q->force, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    int bad = stop(s, &e);
    const bool stopped = !bad;
    bad = bad ? bad : kernel_recorder_end(s->recorder, &e);
    const bool empty = !bad && !kmem_accounts_totals(kernel_recorder_capture(s->recorder)->accounts)->events;
    bad = bad || empty ? bad : store(s, &e);
    int closed = recording_close(s->recording, bad ? &closing : &e);
    if (!stopped || empty)
        unlink(s->q->output);
    if (bad || closed)
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (empty)
        return command_fail(EXIT_IMPOSSIBLE,
                            "the top-level buffers of tracefs hold no event of kmem: others have "
                            "overwritten them, or trace_buf_size= is too small");
    if (!s->q->quiet)
        say(s);
    return EXIT_DONE;
}

int sys_import_boot(const struct sys_import_boot *q)
{
    struct error e = {""};
    struct vmlinux vmlinux = {.path = NULL};
    struct session s = {.q = q};
    struct source_finder *finder = NULL;
    int code = sys_vmlinux_open(&vmlinux, q->vmlinux, q->quiet);
    code = code < 0 ? sys_source_of_running(&finder, q->source, vmlinux.path, q->quiet) : code;
    const struct kernel_recorder_options o = {.boot = true,
                                              .vmlinux = vmlinux.path ? &vmlinux : NULL,
                                              .finder = finder,
                                              .older = early_memory_take_free,
                                              .arg = &s.early};
    if (code < 0 && kernel_recorder_open(&s.recorder, &o, &e))
        code = command_fail(EXIT_IMPOSSIBLE, "%s", e.text);
    if (code < 0) {
        wrapper_lists_read_helpers(&s.helpers);
        kernel_recorder_capture(s.recorder)->helpers = &s.helpers;
        code = import(&s);
    }
    kernel_recorder_close(s.recorder);
    wrappers_release(&s.helpers);
    early_memory_release(&s.early);
    slab_traces_release(&s.traces);
    kernel_state_release(&s.state);
    sys_vmlinux_report(&vmlinux, q->quiet);
    vmlinux_release(&vmlinux);
    source_finder_free(finder);
    return code;
}
