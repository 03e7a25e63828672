/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/kernel_store.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/sys/sys_losses.h"
#include "cli/sys/sys_regroup.h"
#include "sys/session.h"
#include "view/text/text.h"

/* `point`: without a time. Frees the profile. */
static int store_image(struct recording *r, struct profile *p, struct profile_point point, bool first,
                       struct error *e)
{
    int bad = first ? recording_put_image(r, p, false, e) : 0;
    point.time_ns = p->images.at[0].taken_ns;
    bad = bad ? bad : recording_put_point(r, p->images.at[0].id, &point, p, NULL, e);
    profile_free(p);
    return bad;
}

static int store_page_image(struct recording *r, struct kernel_capture *c, bool first, struct error *e)
{
    const double page = (double)c->page_bytes;
    const struct page_totals *t = page_accounts_totals(c->pages);
    const uint64_t live = c->pages_alone ? t->live_pages : t->live_other_pages,
                   allocated = c->pages_alone ? t->allocated_pages : t->other_pages;
    return store_image(r, kernel_capture_page_profile(c),
                       (struct profile_point){.live_bytes = (double)live * page,
                                              .allocated_bytes = (double)allocated * page},
                       first, e);
}

int kernel_store_moment(struct recording *r, struct kernel_capture *c, bool first, struct error *e)
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    int bad = first ? recording_set_number(r, RECORDING_REQUESTED, 1, e) : 0;
    const struct profile_point point = {.live_bytes = (double)t->live_bytes,
                                        .allocated_bytes = (double)t->allocated_bytes};
    if (!bad && !c->pages_alone)
        bad = store_image(r, kernel_capture_profile(c), point, first, e);
    if (!bad && c->pages)
        bad = store_page_image(r, c, first, e);
    return bad ? bad : recording_commit(r, e);
}

/* The counts that these tools record, too. */
static int store_counts(struct recording *r, const struct kernel_capture *c, const char *source,
                        struct error *e)
{
    const struct sys_attach_method method = {.name = source};
    struct sys_session as_kmem = {.tool = sys_tool_find("kmem"), .method = &method};
    struct sys_session as_kpages = {.tool = sys_tool_find("kpages"), .method = &method};
    kernel_capture_count(c, as_kmem.counted);
    int bad = sys_losses_record(&as_kmem, r, e);
    if (bad || !c->pages)
        return bad;
    kernel_capture_count_pages(c, as_kpages.counted);
    return sys_losses_record(&as_kpages, r, e);
}

int kernel_store_cost(struct recording *r, struct error *e)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    int bad = recording_set_number(r, RECORDING_CPU, (int64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID), e);
    return bad ? bad : recording_set_number(r, RECORDING_MEMORY, usage.ru_maxrss * 1024, e);
}

/* `by`: the parts by which the rows of the table are told apart; NULL: there are none. */
static int store_rows(struct recording *r, const char *rows, const char *by, const struct table *t,
                      uint64_t taken_ns, struct error *e)
{
    char key[64], name[64];
    if (!by)
        return 0;
    snprintf(key, sizeof(key), SYS_REGROUP_KEY, rows);
    snprintf(name, sizeof(name), "sys_%s", rows);
    int bad = recording_set_text(r, key, by, e);
    return bad ? bad : recording_put_rows(r, name, t, taken_ns, e);
}

static struct table *new_table(const char *tool_name)
{
    const struct sys_tool *tool = sys_tool_find(tool_name);
    return table_new("sys", 1, tool->columns, tool->n_columns);
}

static int store_objects(struct recording *r, struct kernel_capture *c, uint64_t taken_ns, struct error *e)
{
    int bad = 0;
    for (int k = 0; k < KERNEL_CAPTURE_ROWS && !bad; k++) {
        struct table *t = new_table("kmem");
        const char *by = kernel_capture_add_rows(c, (enum kernel_capture_rows)k, t);
        bad = store_rows(r, kernel_capture_rows_names[k], by, t, taken_ns, e);
        table_free(t);
    }
    return bad;
}

static int store_pages(struct recording *r, struct kernel_capture *c, uint64_t taken_ns, struct error *e)
{
    int bad = 0;
    for (int k = 0; k < KERNEL_CAPTURE_PAGE_ROWS && !bad; k++) {
        struct table *t = new_table("kpages");
        const char *by = kernel_capture_add_page_rows(c, (enum kernel_capture_page_rows)k, t);
        bad = store_rows(r, kernel_capture_page_rows_names[k], by, t, taken_ns, e);
        table_free(t);
    }
    return bad;
}

/* How large live objects are, for `allium sys advise`. */
static int store_sizes(struct recording *r, const struct kernel_capture *c, uint64_t ended_ns,
                       struct error *e)
{
    struct table *t = kernel_capture_sizes();
    kernel_capture_add_sizes(c, t);
    int bad = recording_put_rows(r, KERNEL_STORE_SIZES, t, ended_ns, e);
    table_free(t);
    return bad;
}

int kernel_store_end(struct recording *r, struct kernel_capture *c, const char *source, uint64_t ended_ns,
                     struct error *e)
{
    int bad = store_objects(r, c, ended_ns, e);
    bad = bad ? bad : store_pages(r, c, ended_ns, e);
    bad = bad ? bad : store_sizes(r, c, ended_ns, e);
    bad = bad ? bad : store_counts(r, c, source, e);
    bad = bad ? bad : recording_set_number(r, RECORDING_KERNEL_PAGE, (int64_t)c->page_bytes, e);
    if (!bad && c->settle_ns) {
        const uint64_t settled = kmem_accounts_totals(c->accounts)->settled_bytes;
        bad = recording_set_number(r, RECORDING_KERNEL_SETTLE, (int64_t)c->settle_ns, e);
        bad = bad ? bad : recording_set_number(r, RECORDING_KERNEL_SETTLED, (int64_t)settled, e);
    }
    return bad ? bad : recording_set_number(r, RECORDING_ENDED, (int64_t)ended_ns, e);
}

static void add_amount(struct buf *b, uint64_t count, const char *noun, uint64_t bytes)
{
    char size[UNITS_TEXT_BYTES];
    text_add_number(b, count, noun);
    buf_printf(b, " of %s", units_format_size(size, (double)bytes));
}

/* Frees that are not of a known object, each kind with its reason. */
static void add_other_frees(struct buf *b, const struct kmem_totals *t, bool is_filtered)
{
    buf_addstr(b, "\n  older      ");
    if (is_filtered) {
        buf_addstr(b, "frees of objects that are not recorded are not counted; ");
    } else {
        text_add_number(b, t->older_frees, "free");
        buf_addstr(b, " of objects whose allocation was not seen; ");
    }
    text_add_number(b, t->null_frees, "free");
    buf_addstr(b, " of NULL");
    if (t->frees_after_loss) {
        buf_addstr(b, "\n             ");
        text_add_number(b, t->frees_after_loss, "free");
        buf_addstr(b, " of objects whose allocation may be among the lost events");
    }
    if (t->unexplained_frees) {
        buf_addstr(b, "\n             ");
        text_add_number(b, t->unexplained_frees, "free");
        buf_addstr(b, " of objects that came without an event, where others had been freed");
    }
}

void kernel_store_add_live(struct buf *b, const struct kernel_capture *c)
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    buf_addstr(b, "\n  live       ");
    add_amount(b, t->live_objects, "object", t->live_bytes);
}

static void add_pages(struct buf *b, const struct kernel_capture *c)
{
    char size[UNITS_TEXT_BYTES];
    const double page = (double)c->page_bytes;
    const struct page_totals *t = page_accounts_totals(c->pages);
    buf_printf(b, "\n  pages      %s allocated in ",
               units_format_size(size, (double)t->allocated_pages * page));
    text_add_number(b, t->allocations, "block");
    buf_printf(b, ", %s live", units_format_size(size, (double)t->live_pages * page));
    buf_printf(b, "; %s of the live pages hold the objects above",
               units_format_size(size, (double)t->live_slab_pages * page));
    if (t->fallbacks) {
        buf_addstr(b, "\n             ");
        text_add_words(b, t->fallbacks,
                       "block{s} {was|were} taken from another migrate type (sys kpages --by type)");
    }
}

void kernel_store_add_summary(struct buf *b, const struct kernel_capture *c)
{
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    char size[UNITS_TEXT_BYTES], time[UNITS_TEXT_BYTES];
    text_add_number(b, t->events, "event");
    buf_addstr(b, "\n  allocated  ");
    add_amount(b, t->allocations, "object", t->allocated_bytes);
    buf_printf(b, ", of which %s requested", units_format_size(size, (double)t->requested_bytes));
    buf_addstr(b, "\n  freed      ");
    add_amount(b, t->frees, "object", t->freed_bytes);
    if (t->frees_without_event) {
        buf_addstr(b, ", and ");
        text_add_number(b, t->frees_without_event, NULL);
        buf_addstr(b, " without an event, whose address was allocated again");
    }
    add_other_frees(b, t, c->is_filtered);
    kernel_store_add_live(b, c);
    buf_printf(b, "; at the peak %s", units_format_size(size, (double)t->peak_bytes));
    if (c->settle_ns) {
        buf_addstr(b, "\n             of these, ");
        add_amount(b, t->settled_objects, "object", t->settled_bytes);
        buf_printf(b, " %s freed within %s after the end, by RCU for example",
                   t->settled_objects == 1 ? "was" : "were",
                   units_format_duration(time, (double)c->settle_ns));
    }
    if (c->pages)
        add_pages(b, c);
}

void kernel_store_add_lost(struct buf *b, uint64_t events, const char *advice)
{
    buf_addstr(b, "\n  lost       ");
    if (!events) {
        buf_addstr(b, "nothing");
        return;
    }
    text_add_number(b, events, "event");
    buf_printf(b, ": live figures may be too high or too low (%s)", advice);
}
