/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_regroup.h"

#include <string.h>

#include "cli/option_values.h"
#include "model/table/table_merge.h"

/* Bits of the columns that apply by some parts only. */
static uint64_t columns_of_parts(const struct sys_tool *tool)
{
    uint64_t bits = 0;
    for (const struct sys_part *p = tool->parts; p->name; p++)
        bits |= p->columns;
    return bits;
}

/* Which stacks are recorded is a choice (--stacks): one of the names will do. */
static bool was_recorded_by(const struct sys_tool *tool, const struct sys_part *p, uint64_t hidden)
{
    const bool named = p->stacks ? p->names & ~hidden : !(p->names & hidden);
    return named && !(columns_of_parts(tool) & ~p->columns & ~hidden);
}

static bool lists(const char *by, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = by; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && !strncmp(at, name, len))
            return true;
    return false;
}

struct sys_regroup_recorded sys_regroup_recorded(const struct sys_tool *tool, uint64_t hidden, const char *by)
{
    struct sys_regroup_recorded found = {.by = by, .of_several = by != NULL};
    for (const struct sys_part *p = tool->parts; p->name; p++) {
        if (by && lists(by, p->name))
            found.names |= p->names & ~hidden;
        else if (!by && was_recorded_by(tool, p, hidden))
            return (struct sys_regroup_recorded){.names = p->names, .by = p->name};
    }
    return found;
}

bool sys_regroup_possible(const struct sys_regroup_recorded *recorded, const struct sys_part *wanted)
{
    if (wanted->stacks && wanted->names & recorded->names) /* which of them are recorded is a choice */
        return true;
    return !(wanted->names & ~recorded->names) || (wanted->made_of && !(wanted->made_of & ~recorded->names));
}

int sys_regroup_parse(struct sys_request *r, const struct arguments *a)
{
    const struct command *c = &r->as_command;
    int code = r->tool->directory ? option_values_parse_count(c, "depth", command_value(c, a, "depth"), 1,
                                                              100, &r->show.depth)
                                  : -1;
    if (code < 0 && r->show.depth && strcmp(r->settings.part->name, "directory") != 0)
        code = command_misuse(c, "--depth needs --by directory");
    return code;
}

/* "net/core" of depth 1 is "net". What is not known stays. */
static void cut_directory(struct table *t, uint32_t row, uint32_t column, uint32_t depth)
{
    const struct table_value *v = table_at(t, row, column);
    char *end = v->known && *v->text != '[' ? v->text : NULL;
    for (uint32_t i = 0; end && i < depth; i++)
        end = strchr(i ? end + 1 : end, '/');
    if (end)
        *end = '\0';
}

void sys_regroup_cut(const struct sys_tool *tool, uint32_t depth, struct table *t)
{
    for (uint32_t row = 0; row < table_rows(t); row++)
        cut_directory(t, row, tool->directory, depth);
    table_merge(t, UINT64_C(1) << tool->directory, tool->weight);
}

void sys_regroup(const struct sys_tool *tool, const struct sys_part *wanted, struct table *t)
{
    for (uint32_t row = 0; tool->name_again && row < table_rows(t); row++)
        tool->name_again(t, row);
    table_merge(t, wanted->names, wanted->weight ? wanted->weight : tool->weight);
    for (uint32_t row = 0; tool->derive_again && row < table_rows(t); row++)
        tool->derive_again(t, row);
    t->hidden |= columns_of_parts(tool) & ~wanted->columns;
    t->hidden &= ~wanted->names;
    t->keys = wanted->names;
}
