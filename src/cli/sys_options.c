/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys_options.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/words.h"
#include "query/field.h"
#include "collect/cgroup.h"
#include "machine/sampled_rows.h"

#define INTERVAL_LEAST_NS 10000000u

static const struct option_doc common[] = {
    {"pid", 'p', "PID", "only this process"},
    {"tid", 't', "TID", "only this thread"},
    {"uid", 'u', "UID", "only this user, a name or number"},
    {"comm", 0, "NAME", "only processes of this name"},
    {"cgroup", 0, "PATH", "only this cgroup and those below it"},
    {"user", 0, "USER", "start CMD as this user"},
    {"duration", 0, "TIME", "end after so long"},
    {"attach", 0, "RUNG", "attach this way, see allium doctor"},
    {"json", 0, NULL, "an object a line, see allium-json(5)"},
    {"output", 'o', "FILE", "record rows there instead of showing them"},
    {"from", 0, "FILE", "show what was recorded"},
    {"where", 0, "QUERY", "only rows that fit, see allium-query(7); columns are its fields"},
    {"alert", 0, "CONDITION", "say when a row fits a query: 'allocated>1G', 'allocated>1G for 30s'"},
    {"exec", 0, "CMD", "and run CMD with sh; ALLIUM_ROW is the row, as JSON"},
    {"stacks", 0, "WHICH", "user, kernel, both or none"},
    {"folded", 0, NULL, "stacks as folded lines, for flame graphs"},
    {"stack-slots", 0, "N", "room for about so many different stacks (16384)"},
    {"quiet", 0, NULL, "say nothing on stderr"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that take user stacks. */
static const struct option_doc of_samples[] = {
    {"sample", 0, "N", "of one event in N the user stack's bytes: for code without frame pointers"},
    {"sample-ring", 0, "SIZE", "room for samples that were not read yet, a power of two (8M)"},
    {NULL, 0, NULL, NULL},
};

static const struct option_doc of_rows[] = {
    {"interval", 0, "TIME", "a report so often; without it, one at the end"},
    {"by", 0, "PART", NULL},
    {"sort", 0, "COLUMN", "rows with the most of it first"},
    {"top", 0, "N", "at most so many rows (20); 0: all"},
    {"rows", 0, "N", "room for so many rows (16384)"},
    {NULL, 0, NULL, NULL},
};

static const struct option_doc of_events[] = {
    {"ring", 0, "SIZE", "room for events that were not read yet, a power of two"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that measure how long things take: events whose weight is a duration, rows with histograms. */
static const struct option_doc of_durations[] = {
    {"hist", 0, NULL, "how many took how long, as a histogram"},
    {NULL, 0, NULL, NULL},
};

#define TOP_DEFAULT 20u

/* Bits of the columns that are histograms. */
static uint64_t histograms(const struct sys_tool *tool)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < tool->n_columns; i++)
        bits |= (uint64_t)(tool->columns[i].type == TABLE_HISTOGRAM) << i;
    return bits;
}

static bool has_durations(const struct sys_tool *tool)
{
    return tool->parts ? histograms(tool) != 0 : tool->columns[tool->weight].unit == TABLE_DURATION;
}

static void add_options(struct sys_request *r, size_t *n, const struct option_doc *o)
{
    for (; o->name; o++)
        r->options[(*n)++] = *o;
}

static bool takes_user_stacks(const struct sys_tool *tool)
{
    return tool->parts ? tool->user_stack_at != 0 : tool->event != NULL;
}

/* What `--by` takes, as help says it: the parts' names. */
static char *parts_doc(const struct sys_tool *tool)
{
    struct buf b = BUF_INIT;
    for (const struct sys_part *p = tool->parts; p->name; p++)
        buf_printf(&b, "%s%s", p == tool->parts ? "rows by " : p[1].name ? ", " : " or ", p->name);
    return buf_detach(&b);
}

static void make_command(struct sys_request *r)
{
    size_t n = 0;
    const struct sys_tool *tool = r->tool;
    for (const struct sys_option *o = tool->options; o && o->name; o++)
        r->options[n++] = (struct option_doc){o->name, 0, o->value, o->doc, false};
    add_options(r, &n, tool->parts ? of_rows : of_events);
    if (has_durations(tool))
        add_options(r, &n, of_durations);
    if (takes_user_stacks(tool))
        add_options(r, &n, of_samples);
    add_options(r, &n, common);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(r->options[i].name, "by"))
            r->options[i].doc = parts_doc(tool);
        else if (!strcmp(r->options[i].name, "interval") && tool->interval_ns)
            r->options[i].doc = "a report so often (1s)";
    snprintf(r->name, sizeof(r->name), "sys %s", tool->name);
    r->as_command = (struct command){
        .name = r->name,
        .usage = "[options] [-- CMD ARG...]",
        .summary = tool->summary,
        .examples = tool->examples,
        .options = r->options,
    };
}

void sys_options_release(struct sys_request *r)
{
    for (size_t i = 0; r->options[i].name; i++)
        if (!strcmp(r->options[i].name, "by"))
            free((char *)(uintptr_t)r->options[i].doc);
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
    p->code = command_misuse(&p->r->as_command, "--%s %s is no %s", name, text, what);
}

#define NAMES_MAX 64

/* Of names that a tool has: which one may be meant, and all of them. */
static void refuse_name(struct parse *p, const char *option, const char *text,
                        const struct query_field *names, size_t n)
{
    struct buf b = BUF_INIT;
    size_t meant = query_field_closest(names, n, text, strlen(text));
    if (meant != QUERY_NO_FIELD)
        buf_printf(&b, " did you mean %s?", names[meant].name);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? ", " : " it can be ", names[i].name);
    p->code = command_misuse(&p->r->as_command, "--%s %s is not known:%s", option, text, buf_str(&b));
    buf_release(&b);
}

/* Numbers: false when the option was not given. */
static bool number(struct parse *p, const char *name, uint32_t *out)
{
    const char *text = value(p, name);
    char *end;
    if (!text)
        return false;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (!*text || *end || errno || n > UINT32_MAX || *text == '-')
        refuse(p, name, text, "number");
    *out = (uint32_t)n;
    return true;
}

static void duration(struct parse *p, const char *name, uint64_t *out)
{
    const char *text = value(p, name);
    if (text && (units_parse_duration(text, out) || *out < INTERVAL_LEAST_NS))
        refuse(p, name, text, "time: write 500ms, 5s or 1h30m (10ms at least)");
}

static void size(struct parse *p, const char *name, uint32_t *out)
{
    const char *text = value(p, name);
    uint64_t n = 0;
    if (text && (units_parse_size(text, &n) || !n || n > 1u << 30))
        refuse(p, name, text, "size: write 64K or 4M");
    if (text)
        *out = (uint32_t)n;
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
    else
        number(p, "uid", &c->uid);
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
        refuse(p, "cgroup", text, "cgroup of a hierarchy whose root can be seen from here");
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
        if (strlen(comm) >= SYS_COMM_BYTES)
            refuse(p, "comm", comm, "name the kernel can have: it keeps 15 characters");
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
    int code = words_parse(&p->r->as_command, "stacks", value(p, "stacks"), words, &which);
    if (code >= 0)
        p->code = code;
    p->r->settings.config.stacks = value(p, "stacks") ? (uint32_t)which : p->r->tool->stacks;
}

/* --sample, after --by and --stacks, which say whether there are user stacks. */
static void sample(struct parse *p)
{
    struct sys_request *r = p->r;
    struct sys_settings *s = &r->settings;
    if (!takes_user_stacks(r->tool) || !number(p, "sample", &s->config.sample))
        return;
    if (!s->config.sample)
        refuse(p, "sample", "0", "number of events of which one is taken: at least 1");
    else if (s->part && !s->part->stacks)
        p->code = command_misuse(&r->as_command, "--sample is of user stacks: ask for rows --by stack");
    if (!value(p, "stacks"))
        s->config.stacks |= SYS_STACK_USER;
    else if (!(s->config.stacks & SYS_STACK_USER))
        p->code = command_misuse(&r->as_command, "--sample is of user stacks: leave out --stacks %s",
                                 value(p, "stacks"));
    size(p, "sample-ring", &s->sample_ring_bytes);
    if (s->part)
        r->tool = r->sampled_tool = sampled_tool_new(r->tool);
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
        if (n < NAMES_MAX)
            names[n++] = (struct query_field){.name = q->name};
    }
    if (text && strcmp(found->name, text))
        refuse_name(p, "by", text, names, n);
    p->r->settings.part = found;
    for (const struct sys_part *q = tool->parts; q->name && !value(p, "from"); q++)
        p->r->show.hidden |= q->columns & ~found->columns;
    if (found->stacks && !value(p, "stacks"))
        p->r->settings.config.stacks = found->stacks;
}

static void order(struct parse *p)
{
    const char *text = value(p, "sort");
    const struct sys_tool *tool = p->r->tool;
    struct sys_show *show = &p->r->show;
    show->sort = tool->weight;
    struct query_field names[NAMES_MAX];
    for (uint32_t i = 0; text && i < tool->n_columns && i < NAMES_MAX; i++) {
        names[i] = (struct query_field){.name = tool->columns[i].name};
        if (!strcmp(names[i].name, text)) {
            show->sort = i;
            return;
        }
    }
    if (text)
        refuse_name(p, "sort", text, names, tool->n_columns);
}

static void shape(struct parse *p)
{
    struct sys_show *show = &p->r->show;
    struct sys_settings *s = &p->r->settings;
    show->json = value(p, "json") != NULL;
    show->folded = value(p, "folded") != NULL;
    show->quiet = value(p, "quiet") != NULL;
    show->histogram = has_durations(p->r->tool) && value(p, "hist");
    if (!show->histogram && !value(p, "output")) /* who looks at a recording may ask for them */
        show->hidden |= histograms(p->r->tool);
    duration(p, "duration", &show->duration_ns);
    size(p, "stack-slots", &s->stacks_max);
    s->rung = value(p, "attach");
    p->r->user = value(p, "user");
    p->r->output = value(p, "output");
    p->r->from = value(p, "from");
    if (p->r->tool->parts) {
        show->top = show->json || show->folded ? 0 : TOP_DEFAULT;
        show->interval_ns = p->r->tool->interval_ns;
        duration(p, "interval", &show->interval_ns);
        number(p, "top", &show->top);
        size(p, "rows", &s->rows_max);
        order(p);
    } else {
        size(p, "ring", &s->ring_bytes);
    }
}

int sys_options_parse(struct sys_request *r, const struct sys_tool *tool, int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct parse p = {.r = r, .a = &a, .code = -1};
    *r = (struct sys_request){.tool = tool};
    make_command(r);
    int code = command_parse(&r->as_command, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (a.n_rest && strcmp(argv[argc - a.n_rest - 1], "--"))
        return command_misuse(&r->as_command, "%s takes no %s: a command to start stands after --", r->name,
                              a.rest[0]);
    r->command = a.n_rest ? a.rest : NULL;
    for (size_t i = 0; tool->options && tool->options[i].name; i++)
        r->own[i] = command_value(&r->as_command, &a, tool->options[i].name);
    r->settings.options = r->own;
    filters(&p);
    stacks(&p);
    part(&p);
    sample(&p);
    shape(&p);
    if (p.code >= 0)
        return p.code;
    if (table_query_init(&r->show.where, command_value(&r->as_command, &a, "where"), r->tool->columns,
                         r->tool->n_columns, &e))
        return command_misuse(&r->as_command, "--where: %s", e.text);
    struct table columns = {.columns = r->tool->columns, .n_columns = r->tool->n_columns};
    if (sys_alert_init(&r->show.alert, command_value(&r->as_command, &a, "alert"),
                       command_value(&r->as_command, &a, "exec"), &columns, !tool->parts, &e))
        return command_misuse(&r->as_command, "%s", e.text);
    return -1;
}
