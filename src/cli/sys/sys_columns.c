/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_columns.h"

#include <ctype.h>
#include <string.h>

#define COLUMNS_MOST 64u /* that have bits */

/* Which option asks for this column; NULL: none. */
static const char *used_by(const struct sys_show *show, uint32_t column)
{
    if (show->where.query && query_uses(show->where.query, column))
        return "--where";
    if (show->alert.query.query && query_uses(show->alert.query.query, column))
        return "--alert";
    return show->sort == column ? "--sort" : NULL;
}

/* Which option uses or only shows this column; NULL: none. A histogram has no one value: it can only be shown. */
static const char *shown_by(const struct sys_show *show, const struct table_column *c, uint32_t column)
{
    const char *option =
        c->type == TABLE_HISTOGRAM ? show->histogram ? "--hist" : NULL : used_by(show, column);
    return option ? option : show->columns >> column & 1 ? "--columns" : NULL;
}

/* Returns whether the text names the column: as in --help, in JSON, or in the heading ("LIVE BYTES"). */
static bool names_column(const struct table_column *c, const char *text, size_t len)
{
    struct buf key = BUF_INIT;
    table_add_key(&key, c);
    const char *const names[] = {c->name, buf_str(&key), c->header ? c->header : c->name};
    bool same = false;
    for (size_t i = 0; i < 3 && !same; i++) {
        same = strlen(names[i]) == len;
        for (size_t j = 0; same && j < len; j++)
            same = tolower((unsigned char)names[i][j]) == tolower((unsigned char)text[j]) ||
                   (strchr("_ -", names[i][j]) && strchr("_ -", text[j]));
    }
    buf_release(&key);
    return same;
}

uint32_t sys_columns_find(const struct sys_tool *tool, const char *text, size_t len)
{
    uint32_t at = 0;
    while (at < tool->n_columns && !names_column(&tool->columns[at], text, len))
        at++;
    return at;
}

/* Of rows: a column that has a meaning only by other parts. */
static void lacks_part(const struct sys_request *r, uint64_t bit, struct buf *why)
{
    const struct sys_part *now = r->settings.part;
    struct buf parts = BUF_INIT;
    for (const struct sys_part *p = r->tool->parts; p && p->name; p++)
        if (p->columns & bit)
            buf_printf(&parts, "%s%s", parts.len ? " or " : "", p->name);
    if (parts.len && !(now->columns & bit))
        buf_printf(why, "rows by %s do not have it: use --by %s", now->name, buf_str(&parts));
    buf_release(&parts);
}

/* A column that only an option of the tool's own fills. */
static void lacks_option(const struct sys_request *r, uint64_t bit, struct buf *why)
{
    const char *takes = NULL;
    const struct sys_part *part = r->settings.part;
    if (part && part->option && part->option_columns & bit && !sys_own_option(r, part->option))
        takes = part->option;
    for (size_t i = 0; r->tool->options && r->tool->options[i].name; i++) {
        if (!(r->tool->options[i].columns & bit))
            continue;
        if (r->own[i])
            return;
        takes = takes ? takes : r->tool->options[i].name;
    }
    if (takes)
        buf_printf(why, "it needs --%s", takes);
}

static void lacks_stacks(const struct sys_request *r, const char *name, struct buf *why)
{
    uint32_t taken = r->settings.config.stacks;
    if (!strcmp(name, "kernel_stack") && !(taken & SYS_STACK_KERNEL))
        buf_addstr(why, "it needs --stacks kernel or both");
    if (!strcmp(name, "user_stack") && !(taken & SYS_STACK_USER))
        buf_addstr(why, "it needs --stacks user or both");
}

/* Bits of the columns of stacks. */
static uint64_t stack_columns(const struct sys_tool *tool)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < tool->n_columns; i++)
        bits |= (uint64_t)(!strcmp(tool->columns[i].name, "kernel_stack") ||
                           !strcmp(tool->columns[i].name, "user_stack"))
                << i;
    return bits;
}

bool sys_columns_part_has_stacks(const struct sys_tool *tool, const struct sys_part *part)
{
    return part->columns & stack_columns(tool);
}

int sys_columns_check_stacks(const struct sys_request *r, const char *option)
{
    const uint64_t stacks = stack_columns(r->tool);
    const struct sys_part *part = r->settings.part;
    if (!stacks)
        return command_misuse(&r->as_command, "%s takes no stacks: leave out --%s", r->name, option);
    if (part && !sys_columns_part_has_stacks(r->tool, part) && !r->from)
        return command_misuse(&r->as_command, "--%s: rows by %s have no stacks, use --by stack", option,
                              part->name);
    return -1;
}

int sys_columns_check(const struct sys_request *r)
{
    int code = -1;
    for (uint32_t i = 0; i < COLUMNS_MOST && i < r->tool->n_columns && code < 0; i++) {
        const struct table_column *c = &r->tool->columns[i];
        const char *option = used_by(&r->show, i);
        struct buf why = BUF_INIT;
        if (option && c->type == TABLE_HISTOGRAM)
            buf_addstr(&why, "a histogram cannot be compared or sorted");
        else if ((option = shown_by(&r->show, c, i)) && c->type == TABLE_HISTOGRAM && !r->show.histogram)
            buf_addstr(&why, "it needs --hist");
        else if (option && !r->from) { /* what a recording has, it tells itself */
            if (r->tool->recorded >> i & 1)
                buf_addstr(&why, "only recordings have it, see allium-sys-record(1)");
            if (!why.len)
                lacks_part(r, 1ull << i, &why);
            if (!why.len)
                lacks_option(r, 1ull << i, &why);
            if (!why.len)
                lacks_stacks(r, c->name, &why);
        }
        if (why.len)
            code =
                command_misuse(&r->as_command, "%s uses the column %s: %s", option, c->name, buf_str(&why));
        buf_release(&why);
    }
    return code;
}

int sys_columns_check_attached(const struct sys_request *r, const struct sys_session *s)
{
    for (uint32_t i = 0; i < COLUMNS_MOST && i < r->tool->n_columns; i++)
        if (s->lacking >> i & 1 && shown_by(&r->show, &r->tool->columns[i], i))
            return command_fail(
                r->settings.method ? EXIT_USAGE : EXIT_IMPOSSIBLE,
                "%s uses the column %s, which %s cannot show using %s; `allium doctor` shows the reason",
                shown_by(&r->show, &r->tool->columns[i], i), r->tool->columns[i].name, r->name,
                s->method->name);
    return -1;
}

int sys_columns_check_recorded(const struct sys_show *show, const struct table *t, uint64_t regrouped,
                               const char *path)
{
    for (uint32_t i = 0; i < t->n_columns; i++) {
        const char *option = table_hides(t, i) ? shown_by(show, &t->columns[i], i) : NULL,
                   *name = t->columns[i].name;
        if (option && regrouped >> i & 1)
            return command_fail(EXIT_USAGE, "%s uses the column %s, which rows by %s do not have", option,
                                name, show->regroup->name);
        if (option)
            return command_fail(EXIT_FAILED, "%s uses the column %s, which was not recorded in %s", option,
                                name, path);
    }
    return -1;
}
