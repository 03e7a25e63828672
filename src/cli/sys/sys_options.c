/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_options.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/sys/about/tool_explain.h"
#include "cli/sys/sys_columns.h"
#include "cli/sys/import/import_shown.h"
#include "cli/sys/sys_charge.h"
#include "cli/sys/sys_command.h"
#include "cli/sys/sys_refusals.h"
#include "cli/sys/sys_regroup.h"
#include "cli/sys/sys_vmlinux.h"
#include "cli/option_values.h"
#include "query/field.h"
#include "collect/kernel/cgroup.h"
#include "sys/sampled_rows.h"
#include "view/text/column_choice.h"

#define INTERVAL_LEAST_NS 10000000u

#define RING_LEAST  4096u
#define TOP_DEFAULT 20u

void sys_options_release(struct sys_request *r)
{
    sys_command_release(r);
    sys_vmlinux_release(r);
    wrappers_release(&r->helpers);
    sampled_tool_free(r->sampled_tool);
    table_query_release(&r->show.where);
    sys_alert_release(&r->show.alert);
}

struct parse {
    struct sys_request *r;
    const struct arguments *a;
    int code; /* -1: fine */
};

static const char *value(const struct parse *p, const char *name)
{
    return command_value(&p->r->as_command, p->a, name);
}

static void refuse(struct parse *p, const char *name, const char *text, const char *what)
{
    p->code = command_misuse(&p->r->as_command, "invalid --%s '%s': use %s", name, text, what);
}

#define NAMES_MAX 64
#define SIZE_MOST (1u << 30)
/* A century: a later time may not fit a clock. */
#define FOREVER_NS (UINT64_C(100) * 365 * 86400 * 1000000000)

/* Of names that a tool has: which one may be meant, and all of them. */
static void refuse_name(struct parse *p, const char *option, const char *text,
                        const struct query_field *names, size_t n)
{
    struct buf b = BUF_INIT;
    size_t meant = query_field_closest(names, n, text, strlen(text));
    if (meant != QUERY_NO_FIELD)
        buf_printf(&b, " did you mean %s?", names[meant].name);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? ", " : " use ", names[i].name);
    p->code = command_misuse(&p->r->as_command, "unknown --%s %s:%s", option, text, buf_str(&b));
    buf_release(&b);
}

static bool read_number(const char *text, uint32_t *out)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    *out = (uint32_t)n;
    return *text && !*end && !errno && n <= UINT32_MAX && *text != '-';
}

/* Numbers: false when the option was not given. */
static bool number(struct parse *p, const char *name, uint32_t *out)
{
    const char *text = value(p, name);
    if (text && !read_number(text, out))
        refuse(p, name, text, "a number");
    return text != NULL;
}

static void duration(struct parse *p, const char *name, uint64_t *out)
{
    int code = option_values_parse_time(&p->r->as_command, name, value(p, name), INTERVAL_LEAST_NS, out);
    if (code >= 0)
        p->code = code;
}

static void size(struct parse *p, const char *name, uint32_t *out)
{
    const char *text = value(p, name);
    uint64_t n = 0;
    int code = option_values_parse_size(&p->r->as_command, name, text, 1, SIZE_MOST, &n);
    if (code >= 0)
        p->code = code;
    if (text)
        *out = (uint32_t)n;
}

/* The kernel's rings have a size that is a power of two, and whole pages. */
static void ring(struct parse *p, const char *name, uint32_t *out)
{
    char asked[UNITS_TEXT_BYTES], given[UNITS_TEXT_BYTES];
    uint32_t bytes = RING_LEAST;
    size(p, name, out);
    if (!*out || p->code >= 0)
        return;
    while (bytes < *out)
        bytes *= 2;
    if (bytes != *out && !value(p, "quiet"))
        command_fail(0, "--%s: %s is rounded up to %s, a power of two", name, units_format_size(asked, *out),
                     units_format_size(given, bytes));
    *out = bytes;
}

static void uid(struct parse *p)
{
    const char *text = value(p, "uid");
    const struct passwd *user = text ? getpwnam(text) : NULL;
    struct sys_config *c = &p->r->settings.config;
    if (!text)
        return;
    c->filters |= SYS_FILTER_UID;
    if (user)
        c->uid = user->pw_uid;
    else if (!read_number(text, &c->uid))
        refuse(p, "uid", text, "the name or number of a user");
}

static void cgroup(struct parse *p)
{
    const char *text = value(p, "cgroup");
    struct sys_config *c = &p->r->settings.config;
    struct error e = {""};
    struct cgroup_ref *group = text ? mem_alloc(sizeof(*group)) : NULL;
    if (!group)
        return;
    if (cgroup_find(text, group, &e))
        p->code = command_misuse(&p->r->as_command, "--cgroup: %s", e.text);
    else if (group->level == CGROUP_LEVEL_UNKNOWN)
        refuse(p, "cgroup", text,
               "a cgroup of this container, or run it outside: its hierarchy's root is not visible here");
    else
        c->filters |= group->hierarchy == CGROUP_V2 ? SYS_FILTER_CGROUP : SYS_FILTER_CGROUP_V1;
    c->cgroup_id = group->id;
    c->cgroup_level = (uint32_t)group->level;
    free(group);
}

static void filters(struct parse *p)
{
    struct sys_config *c = &p->r->settings.config;
    const char *comm = value(p, "comm");
    if (number(p, "pid", &c->tgid))
        c->filters |= SYS_FILTER_TGID;
    if (number(p, "tid", &c->tid))
        c->filters |= SYS_FILTER_TID;
    uid(p);
    cgroup(p);
    if (comm) {
        c->filters |= SYS_FILTER_COMM;
        if (!*comm)
            refuse(p, "comm", comm, "the name of a thread, as ps -L shows it");
        else if (strlen(comm) >= SYS_COMM_BYTES)
            refuse(p, "comm", comm, "at most 15 characters, the kernel's limit");
        else
            memcpy(c->comm, comm, strlen(comm));
    }
}

static void stacks(struct parse *p)
{
    static const struct word words[] = {{"none", 0},
                                        {"kernel", SYS_STACK_KERNEL},
                                        {"user", SYS_STACK_USER},
                                        {"both", SYS_STACK_KERNEL | SYS_STACK_USER},
                                        {NULL, 0}};
    int which = 0;
    int code = option_values_parse(&p->r->as_command, "stacks", value(p, "stacks"), words, &which);
    if (code >= 0)
        p->code = code;
    p->r->settings.config.stacks = value(p, "stacks") ? (uint32_t)which : p->r->tool->stacks;
}

/* --sample, after --by and --stacks, which say whether there are user stacks. */
static void sample(struct parse *p)
{
    struct sys_request *r = p->r;
    struct sys_settings *s = &r->settings;
    if (!sys_tool_takes_user_stacks(r->tool))
        return;
    if (s->part && value(p, "from")) /* a recording may have their columns */
        r->tool = r->sampled_tool = sampled_tool_new(r->tool);
    if (value(p, "from") || !number(p, "sample", &s->config.sample))
        return;
    if (!s->config.sample)
        refuse(p, "sample", "0", "a number of events, at least 1: one stack is sampled for each N events");
    else if (s->part && !sys_columns_part_has_stacks(r->tool, s->part))
        p->code = command_misuse(&r->as_command, "--sample takes user stacks: use --by stack");
    if (!value(p, "stacks"))
        s->config.stacks |= SYS_STACK_USER;
    else if (!(s->config.stacks & SYS_STACK_USER))
        p->code = command_misuse(&r->as_command, "--sample takes user stacks: leave out --stacks %s",
                                 value(p, "stacks"));
    ring(p, "sample-ring", &s->sample_ring_bytes);
    if (s->part)
        r->tool = r->sampled_tool = sampled_tool_new(r->tool);
}

/* Columns that have no values, as the option that fills them by this part was not given. */
static uint64_t columns_of_part_option(const struct sys_request *r)
{
    const struct sys_part *part = r->settings.part;
    return part->option && !sys_own_option(r, part->option) ? part->option_columns : 0;
}

/* An option that applies by other parts only. */
static void refuse_part_option(struct parse *p)
{
    const struct sys_part *now = p->r->settings.part;
    for (const struct sys_part *q = p->r->tool->parts; q->name && p->code < 0; q++)
        if (q->option && sys_own_option(p->r, q->option) &&
            (!now->option || strcmp(now->option, q->option) != 0))
            p->code = command_misuse(&p->r->as_command, "--%s goes with --by %s, not with --by %s", q->option,
                                     q->name, now->name);
}

/* --by, and which columns have a meaning then. */
static void part(struct parse *p)
{
    const char *text = value(p, "by");
    const struct sys_tool *tool = p->r->tool;
    const struct sys_part *found = tool->parts;
    struct query_field names[NAMES_MAX];
    size_t n = 0;
    if (!tool->parts)
        return;
    for (const struct sys_part *q = tool->parts; text && q->name; q++) {
        found = !strcmp(q->name, text) ? q : found;
        if (n < NAMES_MAX && (!q->recorded || value(p, "from")))
            names[n++] = (struct query_field){.name = q->name};
    }
    if (text && strchr(text, ','))
        p->code = command_misuse(&p->r->as_command, "--by %s: rows are by one part, use --by %.*s", text,
                                 (int)strcspn(text, ","), text);
    else if (text && strcmp(found->name, text))
        refuse_name(p, "by", text, names, n);
    if (found->recorded && !value(p, "from") && p->code < 0)
        p->code = command_misuse(
            &p->r->as_command, "--by %s needs all events: allium sys record -o FILE, then sys %s --from FILE",
            text, tool->name);
    p->r->settings.part = found;
    p->r->show.regroup = text && value(p, "from") ? found : NULL;
    for (const struct sys_part *q = tool->parts; q->name && !value(p, "from"); q++)
        p->r->show.hidden |= q->columns & ~found->columns;
    if (!value(p, "from")) {
        p->r->show.hidden |= columns_of_part_option(p->r);
        refuse_part_option(p);
    }
    if (found->stacks && !value(p, "stacks"))
        p->r->settings.config.stacks = found->stacks;
    if (found->samples && !value(p, "from"))
        p->r->settings.config.sample = 1;
}

/* Returns the column that `text` names. If there is none, refuses the option, and returns the number of columns. */
static uint32_t find_column(struct parse *p, const char *option, const char *text, size_t len)
{
    const struct sys_tool *tool = p->r->tool;
    struct query_field names[NAMES_MAX];
    const uint32_t at = sys_columns_find(tool, text, len);
    for (uint32_t i = 0; i < tool->n_columns && i < NAMES_MAX; i++)
        names[i] = (struct query_field){.name = tool->columns[i].name};
    if (at == tool->n_columns) {
        char *one = strndup(text, len);
        refuse_name(p, option, one ? one : text, names, tool->n_columns);
        free(one);
    }
    return at;
}

/* --columns NAME,NAME ... */
static void columns(struct parse *p)
{
    const char *text = value(p, "columns");
    const struct table_column *all = p->r->tool->columns;
    uint64_t *named = &p->r->show.columns;
    bool beside = false; /* one that is no stack or histogram, which stand below the others */
    if (!text)
        return;
    size_t len;
    for (const char *name; p->code < 0 && (name = column_choice_next(&text, &len));) {
        uint32_t at = find_column(p, "columns", name, len);
        if (at == p->r->tool->n_columns)
            continue;
        *named |= 1ull << at;
        beside = beside || (all[at].type != TABLE_LINES && all[at].type != TABLE_HISTOGRAM);
    }
    if (!beside && p->code < 0)
        p->code = command_misuse(
            &p->r->as_command, "--columns needs names of columns, with commas between them, and one at least "
                               "that is no stack");
    if (p->r->show.histogram)
        *named |= sys_tool_histograms(p->r->tool);
}

static void order(struct parse *p)
{
    const char *text = value(p, "sort");
    const struct sys_tool *tool = p->r->tool;
    struct sys_show *show = &p->r->show;
    const struct sys_part *by = p->r->settings.part;
    show->sort = by && by->weight && show->regroup ? by->weight : tool->weight;
    if (text && (*text == '+' || *text == '-')) {
        show->order = *text == '+' ? TABLE_LEAST_FIRST : TABLE_MOST_FIRST;
        text++;
    }
    if (text)
        show->sort = find_column(p, "sort", text, strlen(text));
}

/* --count N becomes a duration of N intervals. A late report does not lengthen it: fewer reports are printed. */
static void count(struct parse *p)
{
    struct sys_show *show = &p->r->show;
    uint32_t n = 0;
    uint64_t all_ns;
    int code = option_values_parse_count(&p->r->as_command, "count", value(p, "count"), 1, UINT32_MAX, &n);
    if (code < 0 && n && !show->interval_ns && !value(p, "from"))
        code = command_misuse(&p->r->as_command, "--count needs --interval");
    if (code >= 0)
        p->code = code;
    if (code >= 0 || !n || __builtin_mul_overflow(n, show->interval_ns, &all_ns))
        return;
    if (all_ns < FOREVER_NS && (!show->duration_ns || all_ns < show->duration_ns))
        show->duration_ns = all_ns;
}

/* A tool with rows always makes reports; a tool with events only with --interval, --sort, --top or --hist. */
static void reports(struct parse *p)
{
    struct sys_show *show = &p->r->show;
    const struct sys_tool *tool = p->r->tool;
    const char *choice = value(p, "sort") ? "sort" : value(p, "top") ? "top" : NULL;
    show->top = show->json || show->folded || show->slab_account ? 0 : TOP_DEFAULT;
    show->interval_ns = tool->interval_ns;
    duration(p, "interval", &show->interval_ns);
    if (p->code < 0)
        count(p);
    number(p, "top", &show->top);
    order(p);
    if (tool->parts) {
        size(p, "rows", &p->r->settings.rows_max);
        return;
    }
    size(p, "rows", &show->room);
    ring(p, "ring", &p->r->settings.ring_bytes);
    show->keep = !show->histogram && (show->interval_ns || choice);
}

/* Columns that have no values, as none of the tool's own options that fill them was given. */
static uint64_t columns_of_options(const struct sys_request *r)
{
    uint64_t all = 0, filled = 0;
    for (size_t i = 0; r->tool->options && r->tool->options[i].name; i++) {
        all |= r->tool->options[i].columns;
        filled |= r->own[i] ? r->tool->options[i].columns : 0;
    }
    return all & ~filled;
}

/* --hist: of rows they are made in the kernel; of events, when these are looked at. */
static void histogram(struct parse *p)
{
    struct sys_request *r = p->r;
    r->show.histogram = value(p, "hist") != NULL;
    r->settings.config.histograms = r->show.histogram && r->tool->parts;
    if (!r->show.histogram)
        r->show.hidden |= sys_tool_histograms(r->tool);
}

/* --attach: one of the tool's ways, of which several may have one name. */
static void method(struct parse *p)
{
    const char *text = value(p, "attach");
    const struct sys_attach_method *m = p->r->tool->methods;
    struct buf b = BUF_INIT;
    for (; text && m->name && strcmp(m->name, text); m++)
        if (m == p->r->tool->methods || strcmp(m[-1].name, m->name))
            buf_printf(&b, "%s%s", b.len ? ", " : "", m->name);
    if (text && !m->name)
        p->code = command_misuse(&p->r->as_command, "unknown --attach of %s: %s: use %s", p->r->name, text,
                                 buf_str(&b));
    buf_release(&b);
}

static void shape(struct parse *p)
{
    struct sys_show *show = &p->r->show;
    struct sys_settings *s = &p->r->settings;
    show->json = value(p, "json") != NULL;
    show->folded = value(p, "folded") != NULL;
    show->quiet = value(p, "quiet") != NULL;
    histogram(p);
    duration(p, "duration", &show->duration_ns);
    size(p, "stack-slots", &s->stacks_max);
    s->method = value(p, "attach");
    method(p);
    p->r->user = value(p, "user");
    p->r->output = value(p, "output");
    p->r->html = value(p, "html");
    p->r->force = value(p, "force") != NULL;
    p->r->from = value(p, "from");
    p->r->show.hidden |= p->r->from ? 0 : columns_of_options(p->r) | p->r->tool->recorded;
    if (p->code < 0)
        p->code = sys_charge_parse(p->r, p->a);
    if (p->code < 0)
        p->code = sys_regroup_parse(p->r, p->a);
    if (p->code < 0)
        p->code = import_shown_parse(p->r, p->a);
    columns(p);
    reports(p);
}

/* --where and --alert, whose columns are those of the tool. */
static void queries(struct parse *p)
{
    struct sys_request *r = p->r;
    struct error e = {""};
    if (table_query_init(&r->show.where, value(p, "where"), r->tool->columns, r->tool->n_columns, &e))
        p->code = command_misuse(&r->as_command, "--where: %s", e.text);
    struct table columns = {.columns = r->tool->columns, .n_columns = r->tool->n_columns};
    if (!r->from && /* a recording takes none */
        sys_alert_init(&r->show.alert, value(p, "alert"), value(p, "exec"), &columns, !r->tool->parts, &e))
        p->code = command_misuse(&r->as_command, "%s", e.text);
    if (r->show.alert.for_ns && !r->show.interval_ns)
        p->code = command_misuse(&r->as_command, "--alert with \"for\" compares reports: use --interval");
}

/* Each option by itself; then how they fit together, unless one of them is wrong: much would be wrong with it then. */
static int parse_all(struct parse *p)
{
    struct sys_request *r = p->r;
    if (sys_tool_names_kernel_code(r->tool)) {
        r->settings.lines = value(p, "lines") != NULL;
        r->vmlinux_file = value(p, "vmlinux");
        r->source_file = value(p, "source");
    }
    filters(p);
    stacks(p);
    part(p);
    sample(p);
    shape(p);
    queries(p);
    if (p->code < 0)
        p->code = sys_refusals_check(r, p->a);
    if (p->code < 0)
        p->code = sys_vmlinux_check(r);
    return p->code < 0 ? sys_columns_check(r) : p->code;
}

int sys_options_parse(struct sys_request *r, const struct sys_tool *tool, int argc, char **argv)
{
    struct arguments a;
    struct parse p = {.r = r, .a = &a, .code = -1};
    *r = (struct sys_request){.tool = tool};
    sys_command_make(r);
    int code = command_parse(&r->as_command, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (a.n_rest && strcmp(argv[argc - a.n_rest - 1], "--"))
        return command_misuse(&r->as_command, "%s does not take %s: write a command to start after --",
                              r->name, a.rest[0]);
    r->command = a.n_rest ? a.rest : NULL;
    if (value(&p, "explain"))
        return tool_explain_parse(r, &a);
    for (size_t i = 0; tool->options && tool->options[i].name; i++)
        r->own[i] = command_value(&r->as_command, &a, tool->options[i].name);
    r->settings.options = r->own;
    command_gather_begin();
    return command_gather_end(&r->as_command, parse_all(&p));
}
