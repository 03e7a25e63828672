/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys NAME --from FILE`. */
#include <stdio.h>

#include "cli/sys/kernel_store.h"
#include "cli/sys/sys_columns.h"
#include "cli/sys/sys_losses.h"
#include "cli/sys/sys_page.h"
#include "cli/sys/sys_regroup.h"
#include "cli/sys/sys_report.h"
#include "store/profile_load.h"
#include "view/text/notes.h"

struct show {
    struct sys_report report;
    struct sys_show *options;
    const char *path;
    struct recording_summary recording;
    char rows[64];  /* the name of the rows that are shown, without "sys_" */
    const char *by; /* the parts that the recording lists for these, see sys_regroup.h */
    bool any;       /* a report came before this one */
    bool regroups;
    uint64_t regrouped; /* bits of the columns that rows had before they were grouped anew, and not since */
    bool over;
    int code;
};

static const struct sys_part *first_part(const struct sys_tool *tool, uint64_t hidden, const char *by)
{
    const struct sys_regroup_recorded recorded = sys_regroup_recorded(tool, hidden, by);
    const struct sys_part *p = tool->parts;
    while (p[1].name && !sys_regroup_possible(&recorded, p))
        p++;
    return p;
}

/* Which columns were recorded is known before the first report. */
static int group_anew(struct show *w)
{
    struct table *t = w->report.table;
    const struct sys_tool *tool = w->report.tool;
    if (w->by && !w->options->regroup) /* as a running tool would show them, as far as they tell that */
        w->options->regroup = first_part(tool, t->hidden, w->by);
    const struct sys_part *wanted = w->options->regroup;
    if (!wanted)
        return -1;
    if (!w->any) {
        const struct sys_regroup_recorded recorded = sys_regroup_recorded(tool, t->hidden, w->by);
        if (!recorded.names)
            return command_fail(EXIT_FAILED, "--by: %s does not tell by what its rows were grouped", w->path);
        if (!sys_regroup_possible(&recorded, wanted))
            return command_fail(EXIT_FAILED, "--by %s: the rows of %s are by %s, which does not tell it%s",
                                wanted->name, w->path, recorded.by,
                                w->by && wanted->source ? ": record with --vmlinux" : "");
        w->regroups = recorded.of_several || recorded.names != wanted->names;
    }
    if (w->regroups) {
        const uint64_t before = t->hidden;
        sys_regroup(tool, wanted, t);
        w->regrouped |= t->hidden & ~before;
    }
    return -1;
}

/* Frees can be charged to who allocated where rows are of the whole time, and tell what is live. */
static int check_charge(const struct show *w)
{
    const struct sys_charge *c = w->report.tool->charge;
    if (!w->options->charge_allocator)
        return -1;
    if (w->any)
        return command_fail(EXIT_FAILED, "--charge: %s has several reports, each of an interval", w->path);
    return table_hides(w->report.table, c->live)
               ? command_fail(EXIT_FAILED,
                              "--charge: the rows of %s do not tell what is live: record with --live, "
                              "or with allium sys record",
                              w->path)
               : -1;
}

/* Each report is of the time before it. */
static bool is_in_span(const struct show *w, uint64_t time_ns)
{
    const struct sys_span *s = &w->options->span;
    int64_t began_ns = 0;
    recording_number(&w->recording, RECORDING_STARTED, &began_ns);
    const uint64_t offset_ns = time_ns > (uint64_t)began_ns ? time_ns - (uint64_t)began_ns : 0;
    return !s->given || (offset_ns > s->from_ns && offset_ns <= s->to_ns);
}

static void count_report(void *arg, uint64_t time_ns)
{
    (void)time_ns;
    ++*(size_t *)arg;
}

/* The rows of one report are of the whole time. */
static int check_span(const struct show *w, const char *path, const char *name)
{
    struct error e;
    size_t reports = 0;
    int64_t began_ns;
    const struct sys_tool *tool = w->report.tool;
    if (!w->options->span.given)
        return -1;
    if (!recording_number(&w->recording, RECORDING_STARTED, &began_ns))
        return command_fail(
            EXIT_FAILED, "--time: %s does not tell when it began: it was made by an older allium", w->path);
    struct table *t = table_new("sys", 1, tool->columns, tool->n_columns);
    recording_load_rows(path, name, t, count_report, &reports, &e);
    table_free(t);
    return reports != 1
               ? -1
               : command_fail(EXIT_FAILED,
                              "--time: the rows of %s are of its whole time: compare moments with allium "
                              "diff %s@10s %s@20s, or show the events that allium sys record --raw keeps",
                              w->path, w->path, w->path);
}

static void show_recorded(void *arg, uint64_t time_ns)
{
    struct show *w = arg;
    struct sys_report *r = &w->report;
    const struct sys_show *o = r->o;
    if (w->over)
        return;
    if (!is_in_span(w, time_ns)) {
        table_clear(r->table);
        return;
    }
    w->code = check_charge(w);
    if (w->code < 0)
        w->code = group_anew(w);
    if (w->code < 0)
        w->code = sys_columns_check_recorded(o, r->table, w->regrouped, w->path);
    if (w->code >= 0) {
        w->over = true;
        return;
    }
    if (o->json && !w->any)
        sys_report_begin_json(r);
    r->taken_ns = time_ns;
    r->report_ns = r->tool->event ? 0 : time_ns;
    if (!r->tool->event && !o->json && !o->folded) {
        buf_printf(&r->heading, "%s--- ", w->any ? "\n" : "");
        text_add_instant(&r->heading, time_ns);
    }
    w->any = true;
    w->code = EXIT_DONE;
    sys_report_write(r);
    w->over = r->over;
}

/* Files of the source that may be those of another kernel. */
static void add_doubt(const struct show *w, struct buf *b)
{
    const struct sys_part *by = w->options->regroup;
    const char *file = recording_text(&w->recording, KERNEL_STORE_UNCHECKED);
    if (file && by && by->source)
        buf_printf(
            b,
            "files are those of %s, which may be of another kernel: the trace tells neither its release "
            "nor its build ID",
            file);
}

/* As the end of a running tool, with the losses that were recorded. */
static void close_recorded(struct show *w)
{
    uint64_t counted[SYS_COUNTS] = {0};
    const struct sys_tool *tool = w->report.tool;
    const struct sys_show *o = w->report.o;
    struct sys_losses lost = {tool, NULL, counted, w->report.kept.not_stored};
    struct buf doubt = BUF_INIT;
    add_doubt(w, &doubt);
    if (!sys_losses_recorded(tool, &w->recording, counted))
        lost.counted = NULL;
    if (o->page) {
        struct buf notes = BUF_INIT;
        if (doubt.len)
            notes_add(&notes, "%s", buf_str(&doubt));
        sys_losses_note(&lost, &notes);
        sys_page_note(o->page, &notes);
        buf_release(&notes);
    }
    if (o->json && !w->any)
        sys_report_begin_json(&w->report);
    if (o->json)
        sys_losses_write_json(&lost, &w->report.out);
    else if (!o->quiet) {
        if (!w->report.any)
            fprintf(stderr, "allium: no %s%s was recorded\n", tool->event ? "event" : "row",
                    o->where.query ? " that matches --where" : "");
        sys_losses_say(&lost);
        if (tool->event)
            sys_report_say_cut(&w->report);
    }
    if (doubt.len && !o->quiet)
        command_fail(0, "%s", buf_str(&doubt));
    buf_release(&doubt);
}

/* Which rows: the tool's, or others that the recording has for this part alone. */
static void choose_rows(struct show *w, const struct sys_tool *tool)
{
    const struct sys_part *wanted = w->options->regroup;
    const char *const names[] = {wanted ? wanted->rows : NULL, tool->name};
    char key[80];
    for (size_t i = 0; i < 2 && !w->by; i++) {
        if (!names[i])
            continue;
        snprintf(w->rows, sizeof(w->rows), "%s", names[i]);
        snprintf(key, sizeof(key), SYS_REGROUP_KEY, names[i]);
        w->by = tool->event ? NULL : recording_text(&w->recording, key);
    }
}

int sys_show_recorded(struct sys_show *o, const struct sys_tool *tool, const char *path)
{
    struct error e = {""};
    char name[80];
    struct show w = {.path = o->shown_name ? o->shown_name : path, .options = o};
    if (recording_summarize(&w.recording, path, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    choose_rows(&w, tool);
    sys_report_begin(&w.report, o, tool);
    snprintf(name, sizeof(name), "sys_%s", w.rows);
    const int refused = check_span(&w, path, name);
    w.code = refused < 0 ? EXIT_DONE : refused;
    int bad = refused < 0 ? recording_load_rows(path, name, w.report.table, show_recorded, &w, &e) : 0;
    if (!bad && w.code == EXIT_DONE && tool->event)
        sys_report_events(&w.report);
    if (!bad && w.code == EXIT_DONE)
        close_recorded(&w);
    int code = bad ? command_fail(EXIT_FAILED, "%s", e.text) : command_written(&w.report.out, w.code);
    sys_report_end(&w.report);
    recording_summary_release(&w.recording);
    return code;
}
