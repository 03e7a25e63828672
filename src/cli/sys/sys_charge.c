/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_charge.h"

#include <inttypes.h>
#include <string.h>

#include "cli/option_values.h"

int sys_charge_parse(struct sys_request *r, const struct arguments *a)
{
    static const struct word words[] = {{"freer", 0}, {"allocator", 1}, {NULL, 0}};
    const struct command *c = &r->as_command;
    struct sys_show *show = &r->show;
    int allocator = 0;
    if (!r->tool->charge)
        return -1;
    const char *charge = command_value(c, a, "charge");
    int code = option_values_parse(c, "charge", charge, words, &allocator);
    show->slab_account = command_value(c, a, "slab-account") != NULL;
    show->charge_allocator = allocator || show->slab_account;
    if (code < 0 && show->slab_account && charge && !allocator)
        code = command_misuse(
            c, "--slab-account counts frees where the object was allocated: leave out --charge");
    if (code < 0 && show->charge_allocator && !r->from && !sys_own_option(r, "live") &&
        !sys_own_option(r, "live-objects"))
        code = command_misuse(c, "--%s needs --live, or a recording (--from)",
                              show->slab_account ? "slab-account" : "charge allocator");
    const char *given = show->slab_account ? "slab-account" : "charge allocator";
    if (code < 0 && show->charge_allocator && command_value(c, a, "interval"))
        code =
            command_misuse(c, "--%s compares with what is live since the start: leave out --interval", given);
    if (code < 0 && show->charge_allocator && !strcmp(r->settings.part->name, "pair"))
        code = command_misuse(c, "--by pair tells who allocated and who freed: leave out --%s", given);
    if (show->slab_account && r->from)
        show->regroup = r->tool->parts; /* by site */
    return code;
}

static uint64_t whole(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    return v->known ? v->whole : 0;
}

static bool allocates(const struct table *t, uint32_t row, void *arg)
{
    const struct sys_charge *c = arg;
    return whole(t, row, c->allocations) || !table_at(t, row, c->allocations)->known;
}

static void set(struct table *t, uint32_t row, uint32_t column, uint64_t value)
{
    *table_cell(t, row, column) = (struct table_value){.known = true, .whole = value};
}

void sys_charge_allocator(const struct sys_charge *c, bool all_followed, struct table *t)
{
    struct sys_charge columns = *c;
    for (uint32_t row = 0; row < table_rows(t); row++) {
        if (!table_at(t, row, c->live)->known || !table_at(t, row, c->allocations)->known)
            continue;
        if (!all_followed) {
            table_cell(t, row, c->frees)->known = table_cell(t, row, c->freed)->known = false;
            continue;
        }
        set(t, row, c->frees, whole(t, row, c->allocations) - whole(t, row, c->live_objects));
        set(t, row, c->freed, whole(t, row, c->allocated) - whole(t, row, c->live));
    }
    table_keep(t, allocates, &columns);
}

static uint64_t sum(const struct table *t, uint32_t column)
{
    uint64_t all = 0;
    for (uint32_t row = 0; row < table_rows(t); row++)
        all += whole(t, row, column);
    return all;
}

void sys_charge_write_slab_account(const struct sys_charge *c, const struct table *t, struct sink *out)
{
    sink_printf(out,
                "total bytes allocated: %8" PRIu64 "\ntotal bytes requested: %8" PRIu64
                "\nslack bytes allocated: %8" PRIu64 "\nnumber of allocs:      %8" PRIu64
                "\nnumber of frees:       %8" PRIu64 "\nnumber of callers:     %8" PRIu32 "\n\n",
                sum(t, c->allocated), sum(t, c->requested), sum(t, c->slack), sum(t, c->allocations),
                sum(t, c->frees), table_rows(t));
    sink_printf(out, "  total    slack      req alloc/free  caller\n");
    for (uint32_t row = 0; row < table_rows(t); row++) {
        const struct table_value *site = table_at(t, row, c->site);
        sink_printf(out, "%7" PRIu64 " %8" PRIu64 " %8" PRIu64 " %5" PRIu64 "/%-6" PRIu64 " %s\n",
                    whole(t, row, c->allocated), whole(t, row, c->slack), whole(t, row, c->requested),
                    whole(t, row, c->allocations), whole(t, row, c->frees), site->known ? site->text : "?");
    }
}
