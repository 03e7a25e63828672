/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "model/accounts/allocinfo_table.h"
#include "view/accounts/accounts_shown.h"
#include "view/table/table_view.h"

static void add_figure(struct buf *b, enum text_unit unit, double value)
{
    if (value < 0)
        buf_addch(b, '-');
    text_add_value(b, &(struct estimate){.value = value < 0 ? -value : value}, unit);
}

static void add_inexact(struct buf *b, const struct account_sum *sum)
{
    if (!sum->inexact)
        return;
    buf_addstr(b, "; ");
    text_add_words(b, sum->inexact, "of these sites {is|are} inexact (accurate:no)");
}

/* "8 sites hold 12.3 MiB in 45 objects" */
static void add_tag_sum(struct buf *b, const struct account_sum *sum)
{
    int64_t objects = account_live_objects(sum);
    text_add_number(b, sum->places, "site");
    buf_addstr(b, sum->places == 1 ? " holds " : " hold ");
    add_figure(b, TEXT_BYTES, (double)account_live_bytes(sum));
    buf_printf(b, " in %lld object%s", (long long)objects, objects == 1 ? "" : "s");
}

/* "total bytes allocated: ... requested: ... slack: ... (x.x %)   allocations: ...  frees: ...  sites: ..." */
static void add_site_sum(struct buf *b, const struct account_sum *sum)
{
    const uint64_t *of = sum->of;
    bool known = account_slack_is_known(sum);
    double requested = (double)of[ACCOUNT_ALLOCATED_BYTES],
           total = known ? (double)of[ACCOUNT_ALLOCATED_USABLE] : requested;
    double slack = total - requested;
    buf_addstr(b, "total bytes allocated: ");
    add_figure(b, TEXT_BYTES, total);
    buf_addstr(b, "  requested: ");
    add_figure(b, TEXT_BYTES, (double)of[ACCOUNT_ALLOCATED_BYTES]);
    buf_addstr(b, "  slack: ");
    if (known) {
        add_figure(b, TEXT_BYTES, slack);
        buf_printf(b, " (%.1f %%)", total > 0 ? slack * 100 / total : 0);
    } else {
        buf_addstr(b, "unknown");
    }
    buf_printf(b, "   allocations: %" PRIu64 "  frees: %" PRIu64 "  sites: %" PRIu32,
               of[ACCOUNT_ALLOCATED_CALLS], of[ACCOUNT_RELEASED_CALLS], sum->places);
    add_inexact(b, sum);
}

/* "freed: ...  frees: ...  sites: ..." */
static void add_freed_sum(struct buf *b, const struct account_sum *sum)
{
    buf_addstr(b, "bytes freed: ");
    add_figure(b, TEXT_BYTES, (double)sum->of[ACCOUNT_FREED_BY_SITE_BYTES]);
    buf_printf(b, "  frees: %" PRIu64 "  sites: %" PRIu32, sum->of[ACCOUNT_FREED_BY_SITE_CALLS], sum->places);
    add_inexact(b, sum);
}

/* "1,234 sites hold 12.3 MiB in 4.56k calls; 2 of them are not accurate" */
static void add_kernel_sum(struct buf *b, const struct account_sum *sum)
{
    text_add_number(b, sum->places, "site");
    buf_addstr(b, sum->places == 1 ? " holds " : " hold ");
    add_figure(b, TEXT_BYTES, (double)account_live_bytes(sum));
    buf_addstr(b, " in ");
    add_figure(b, TEXT_COUNT, (double)sum->of[ACCOUNT_ALLOCATED_CALLS]);
    buf_addstr(b, sum->of[ACCOUNT_ALLOCATED_CALLS] == 1 ? " call" : " calls");
    add_inexact(b, sum);
}

void accounts_add_sum(struct buf *b, const struct account_shape *shape, const struct account_sum *sum)
{
    static void (*const add[])(struct buf * b,
                               const struct account_sum *sum) = {[ACCOUNT_OF_TAGS] = add_tag_sum,
                                                                 [ACCOUNT_OF_SITES] = add_site_sum,
                                                                 [ACCOUNT_OF_SITES_FREED] = add_freed_sum,
                                                                 [ACCOUNT_OF_KERNEL] = add_kernel_sum};
    add[shape->kind](b, sum);
}

/* "+1.20 MiB and -3 calls", per second if rates are shown */
static void add_kernel_change(struct buf *b, const struct account_shape *shape,
                              const struct account_row *total)
{
    double seconds = shape->view == ACCOUNT_RATE ? shape->seconds : 1;
    text_add_change(b, (double)allocinfo_bytes_change(total) / seconds, TEXT_BYTES);
    buf_addstr(b, " and ");
    text_add_change(b, (double)allocinfo_calls_change(total) / seconds, TEXT_COUNT);
    buf_addstr(b, " calls");
}

void accounts_add_change(struct buf *b, const struct account_shape *shape, const struct account_row *total)
{
    if (shape->kind == ACCOUNT_OF_KERNEL) {
        add_kernel_change(b, shape, total);
        return;
    }
    const struct account_sum *before = &total->of[ACCOUNT_BEFORE], *after = &total->of[ACCOUNT_AFTER];
    text_add_change(b, (double)(account_live_bytes(after) - account_live_bytes(before)), TEXT_BYTES);
    buf_addstr(b, " and ");
    text_add_change(b, (double)(account_live_objects(after) - account_live_objects(before)), TEXT_COUNT);
    buf_addstr(b, " objects live, ");
    text_add_change(
        b, (double)(int64_t)(after->of[ACCOUNT_ALLOCATED_BYTES] - before->of[ACCOUNT_ALLOCATED_BYTES]),
        TEXT_BYTES);
    buf_addstr(b, " in ");
    text_add_change(
        b, (double)(int64_t)(after->of[ACCOUNT_ALLOCATED_CALLS] - before->of[ACCOUNT_ALLOCATED_CALLS]),
        TEXT_COUNT);
    buf_addstr(b, " allocations");
}
