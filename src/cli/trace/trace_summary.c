/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_summary.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "collect/trace/ctf_writer.h"
#include "model/trace/clock_kind.h"
#include "view/profile/common.h"

static void add_size(struct buf *b, double bytes)
{
    char text[UNITS_TEXT_BYTES];
    buf_addstr(b, units_format_size(text, bytes));
}

static void add_time(struct buf *b, double ns)
{
    char text[UNITS_TEXT_BYTES];
    buf_addstr(b, units_format_duration(text, ns));
}

static void add_reason(struct buf *b, uint64_t n, const char *reason)
{
    if (n)
        buf_printf(b, "%s%" PRIu64 " %s", b->len ? ", " : "", n, reason);
}

static void print_events(const struct ring_follow_counts *n, const char *folder)
{
    struct buf b = BUF_INIT;
    char rate[UNITS_TEXT_BYTES];
    buf_printf(&b, "%" PRIu64 " events of %" PRIu64 " process%s", n->events, n->images,
               n->images == 1 ? "" : "es");
    if (n->span_ns) {
        buf_addstr(&b, " within ");
        add_time(&b, (double)n->span_ns);
        buf_printf(&b, " (%s a second)",
                   units_format_count(rate, (double)(n->events + n->unwritten) * 1e9 / (double)n->span_ns));
    }
    buf_addstr(&b, ", ");
    add_size(&b, (double)n->bytes);
    buf_printf(&b, " in %s, ", folder);
    if (n->has_filter)
        buf_printf(&b, "%" PRIu64 " filtered, ", n->filtered);
    command_fail(0, "%s%" PRIu64 " lost", buf_str(&b), ring_follow_lost(n));
    buf_release(&b);
}

void trace_summary_print_user(const struct user_counts *n)
{
    if (n->cut)
        command_fail(0, "%" PRIu64 " of the program's own events have a text that was cut", n->cut);
    if (n->unknown)
        command_fail(0,
                     "%" PRIu64
                     " of the program's own events were left out: the program damaged their descriptions",
                     n->unknown);
}

void trace_summary_print_damages(const struct ring_follow_counts *n)
{
    if (n->damaged)
        command_fail(0, "%" PRIu64 " parts of rings were damaged by the program itself, and left out",
                     n->damaged);
    trace_summary_print_user(&n->user);
}

void trace_summary_add_reasons(struct buf *b, const struct ring_follow_counts *n)
{
    add_reason(b, n->full, "as the reader was late");
    add_reason(b, n->no_room, "without memory for the ring");
    add_reason(b, n->no_ring, "without a ring");
    add_reason(b, n->overwritten, "overwritten");
}

static void print_losses(const struct ring_follow_counts *n)
{
    struct buf b = BUF_INIT;
    uint64_t enough = n->ring_bytes;
    trace_summary_add_reasons(&b, n);
    while (enough < n->ring_bytes + n->worst_lost_bytes)
        enough *= 2;
    if (b.len && n->full)
        command_fail(0, "lost: %s; try --buffer %" PRIu64 "M", buf_str(&b), (enough + (1 << 20) - 1) >> 20);
    else if (b.len)
        command_fail(0, "lost: %s", buf_str(&b));
    if (clock_kind_interpolates(n->clock))
        command_fail(0,
                     "only some events have times (--clock %s): %" PRIu64
                     " of the others have no sure place in the order",
                     n->clock, n->ambiguous);
    else if (clock_kind_has_bounds(n->clock))
        command_fail(0,
                     "no event has a time (--clock %s): %" PRIu64 " events have no sure place in the order",
                     n->clock, n->ambiguous);
    if (n->ahead)
        command_fail(0,
                     "times of %" PRIu64
                     " of the events are in the future: of another clock, or the program wrote "
                     "them itself; --where may misjudge their order",
                     n->ahead);
    trace_summary_print_damages(n);
    buf_release(&b);
}

static void print_cost(const struct ring_follow_counts *n)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, "rings of ");
    add_size(&b, (double)n->ring_bytes);
    buf_printf(&b, " for each of %" PRIu64 " CPUs", n->rings - 1);
    if (n->busiest_bytes_per_s > 0) {
        buf_addstr(&b, ": at the highest rate, ");
        add_size(&b, n->busiest_bytes_per_s);
        buf_addstr(&b, "/s in one, the reader may sleep ");
        add_time(&b, (double)n->ring_bytes / n->busiest_bytes_per_s * 1e9);
    }
    buf_addstr(&b, "; it used ");
    add_time(&b, (double)n->cpu_ns);
    buf_addstr(&b, " of CPU time");
    if (n->residual_ns > 0) {
        buf_addstr(&b, "; times agree with the kernel's clock to ");
        add_time(&b, n->residual_ns < 1 ? 1 : n->residual_ns);
    }
    command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

/* The wall clock, whose steps the times of a trace do not follow. */
static void print_wall_clock(void)
{
    struct buf b = BUF_INIT;
    common_wall_step(&b, ctf_writer_clock_step_ns());
    if (b.len)
        command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

static void print_clocks(const struct ring_follow_counts *n)
{
    char text[UNITS_TEXT_BYTES];
    if (n->residual_ns > TICK_CLOCK_BOUND_NS)
        command_fail(
            0,
            "the rate of the CPU's counter changed: events of different CPUs, or of the program and the "
            "kernel, that are less than %s apart may be in another order",
            units_format_duration(text, n->residual_ns));
    print_wall_clock();
}

/* What the clock `counter` costs. */
static void print_price(const struct counter_price *p)
{
    if (p->together_ns > 0)
        command_fail(0,
                     "a number of --clock counter costs %.1f ns here, and %.1f ns while another CPU takes "
                     "numbers, too",
                     p->alone_ns, p->together_ns);
    else if (p->alone_ns > 0)
        command_fail(
            0,
            "a number of --clock counter costs %.1f ns here; while another CPU takes numbers, too, it is "
            "not known, as none was free",
            p->alone_ns);
}

static void print_stop(const struct ring_follow_counts *n)
{
    struct buf b = BUF_INIT;
    switch (n->stopped) {
    case TRACE_GOES_ON:
        return;
    case TRACE_AT_LIMIT:
        add_size(&b, (double)n->limit_bytes);
        buf_addstr(&b, " are full (--limit)");
        break;
    case TRACE_NO_SPACE:
        buf_addstr(&b, "its file system is full: ");
        add_size(&b, (double)n->spare_bytes);
        buf_addstr(&b, " are to stay free");
        break;
    case TRACE_BROKEN:
        buf_addstr(&b, "it could not be written");
        break;
    case TRACE_TIME_IS_UP:
        buf_addstr(&b, "its time was over (--duration)");
        break;
    }
    command_fail(0, "the trace stopped, as %s; %" PRIu64 " later events are not in it", buf_str(&b),
                 n->unwritten);
    buf_release(&b);
}

void trace_summary_print(const struct ring_follow_counts *n, const char *folder)
{
    print_events(n, folder);
    print_losses(n);
    print_stop(n);
    print_price(&n->price);
    if (n->images)
        print_cost(n);
    print_clocks(n);
    command_fail(0, "next: allium report %s, or allium events %s", folder, folder);
}

static void print_event_triggers(const struct trace_flight_counts *n)
{
    if (n->looked.unseen)
        command_fail(0,
                     "up to %" PRIu64 " events were overwritten before --snapshot-on looked at them (%" PRIu64
                     " were looked at); try a larger --buffer",
                     n->looked.unseen, n->looked.looked);
    for (int k = 0; k < TRACE_EVENTS_MAX; k++)
        if (*n->unfit[k].text)
            command_fail(0, "--snapshot-on could not fire: %s", n->unfit[k].text);
}

void trace_summary_print_flight(const struct trace_flight_counts *n, const char *folder)
{
    const unsigned written = n->snapshots - n->failed;
    command_fail(0, "%u snapshot%s in %s; %" PRIu64 " process%s traced", written - n->removed,
                 written - n->removed == 1 ? "" : "s", folder, n->images, n->images == 1 ? "" : "es");
    if (n->removed)
        command_fail(0, "%u older snapshot%s removed (--limit)", n->removed,
                     n->removed == 1 ? " was" : "s were");
    if (n->skipped)
        command_fail(0, "%" PRIu64 " more trigger%s came within a second after a snapshot", n->skipped,
                     n->skipped == 1 ? "" : "s");
    print_event_triggers(n);
    if (n->failed)
        command_fail(0, "%u snapshot%s could not be written", n->failed, n->failed == 1 ? "" : "s");
    print_wall_clock();
    if (*n->last)
        command_fail(0,
                     "the last one has %" PRIu64 " events, %" PRIu64 " lost; next: allium report %s/%s, or "
                     "allium events %s/%s",
                     n->events, n->lost, folder, n->last, folder, n->last);
    trace_summary_print_user(&n->user);
}

void trace_summary_print_kernel(const struct record_trace *t, const struct kernel_follow_counts *n,
                                uint64_t last)
{
    struct buf b = BUF_INIT;
    const char *whose = !t->probes         ? "the kernel"
                        : t->kernel_groups ? "the kernel and of functions"
                                           : "functions";
    if (n->missed)
        buf_printf(&b, "; " TRACE_SUMMARY_MISSED, n->missed);
    if (n->damaged)
        buf_printf(&b, "; %" PRIu64 " parts of rings were damaged, and left out", n->damaged);
    if (n->counted)
        buf_printf(&b, "; %" PRIu64 " counted apart", n->counted);
    if (t->flight)
        command_fail(0,
                     "%" PRIu64 " events of %s in the last snapshot, %" PRIu64
                     " lost%s; the kernel keeps them only while allium runs",
                     last, whose, n->lost, buf_str(&b));
    else
        command_fail(0, "%" PRIu64 " events of %s, %" PRIu64 " lost%s", n->events, whose, n->lost,
                     buf_str(&b));
    buf_release(&b);
}
