/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_regroup.h"

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

const struct sys_part *sys_regroup_recorded(const struct sys_tool *tool, uint64_t hidden)
{
    for (const struct sys_part *p = tool->parts; p->name; p++)
        if (was_recorded_by(tool, p, hidden))
            return p;
    return NULL;
}

bool sys_regroup_possible(const struct sys_part *recorded, const struct sys_part *wanted)
{
    return recorded == wanted || !(wanted->names & ~recorded->names) ||
           (wanted->made_of && !(wanted->made_of & ~recorded->names));
}

void sys_regroup(const struct sys_tool *tool, const struct sys_part *wanted, struct table *t)
{
    for (uint32_t row = 0; tool->name_again && row < table_rows(t); row++)
        tool->name_again(t, row);
    table_merge(t, wanted->names, tool->weight);
    for (uint32_t row = 0; tool->derive_again && row < table_rows(t); row++)
        tool->derive_again(t, row);
    t->hidden |= columns_of_parts(tool) & ~wanted->columns;
    t->hidden &= ~wanted->names;
}
