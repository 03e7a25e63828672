/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/accounts_show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/accounts/accounts_source.h"
#include "cli/output_file.h"
#include "cli/pager.h"
#include "cli/table_page.h"
#include "model/profile/frames.h"
#include "view/text/notes.h"

static void note_losses(const struct accounts_show *s, const struct accounts_reading *r)
{
    if (s->kind->losses)
        accounts_view_note_losses(s->notes, &r->accounts, s->kind->losses);
}

/* Notes about a reading that was shown. */
static void note_rest(const struct accounts_show *s, const struct accounts_reading *r, bool fits)
{
    size_t before = s->notes->len;
    note_losses(s, r);
    if (!s->kind->none)
        return;
    if (!r->accounts.rows.len && s->notes->len == before)
        notes_add(s->notes, "%s", s->kind->none);
    else if (r->accounts.rows.len && !fits)
        notes_add(s->notes, "no site matches %s", query_text(s->view.query));
}

/* --fail-if: one line for each condition that is met. */
static int judge(const struct accounts_view *v)
{
    int code = EXIT_DONE;
    for (size_t i = 0; i < v->n_growth; i++) {
        const struct account_growth *g = &v->growth[i];
        const enum text_unit unit = account_metric_counts(g->metric) ? TEXT_COUNT : TEXT_BYTES;
        struct buf b = BUF_INIT;
        if (!g->met)
            continue;
        buf_printf(&b, "%s: met: ", g->condition);
        text_add_change(&b, g->change, unit);
        text_add_base(&b, g->change, &(struct estimate){.value = g->before}, unit);
        code = command_fail(EXIT_CONDITION, "%s", buf_str(&b));
        buf_release(&b);
    }
    return code;
}

/* The first column of bytes that is shown; else the first one. */
static uint32_t weight_of(const struct table *t)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (!table_hides(t, i) && t->columns[i].unit == TABLE_BYTES)
            return i;
    return 0;
}

/* -1: it is written. */
static int write_page(const struct accounts_show *s, const struct accounts_reading *before,
                      const struct accounts_reading *after)
{
    struct error e = {""};
    struct buf title = BUF_INIT, notes = BUF_INIT;
    FILE *file = output_file_open(s->html, s->force, &e);
    if (!file)
        return command_fail(EXIT_FAILED, "--html: %s", e.text);
    struct table *t = accounts_view_table(&s->view, s->texts, before, after);
    if (s->kind->losses)
        accounts_view_note_losses(&notes, &after->accounts, s->kind->losses);
    buf_printf(&title, "%s: %s", after->label ? frame_basename(after->label) : "allium", s->kind->schema);
    int bad = table_page_write(file, &(struct table_page){.title = buf_str(&title),
                                                          .about = s->kind->command->summary,
                                                          .table = t,
                                                          .weight = weight_of(t),
                                                          .as_it_is = true,
                                                          .notes = buf_str(&notes)});
    table_free(t);
    buf_release(&title);
    buf_release(&notes);
    return bad ? command_fail(EXIT_FAILED, "--html: %s: %s", s->html, strerror(-bad)) : -1;
}

static int show_once(struct accounts_show *s, struct accounts_reading of[ACCOUNT_MOMENTS])
{
    bool two = s->n_sources == ACCOUNT_MOMENTS;
    const struct accounts_reading *before = two ? &of[ACCOUNT_BEFORE] : NULL, *after = &of[ACCOUNT_AFTER];
    int code = two ? s->kind->read_source(s, &of[ACCOUNT_BEFORE], s->sources[0]) : -1;
    if (code < 0)
        code = s->kind->read_source(s, &of[ACCOUNT_AFTER], s->sources[two]);
    if (code >= 0)
        return code;
    if (two)
        s->view.shape.seconds = accounts_seconds(&before->accounts, &after->accounts);
    s->view.time_ns = s->n_sources ? 0 : clock_ns(CLOCK_REALTIME);
    code = s->html ? write_page(s, before, after) : -1;
    if (code >= 0)
        return code;
    struct sink out = pager_sink(s->paged);
    bool fits = accounts_view_write(&out, &s->view, s->texts, before, after, s->notes);
    code = pager_written(&out, EXIT_DONE);
    if (two) {
        accounts_view_note_bad_lines(s->notes, before);
        if (s->view.shape.seconds <= 0) /* else its losses are among those of `after` */
            note_losses(s, before);
    }
    accounts_view_note_bad_lines(s->notes, after);
    note_rest(s, after, fits);
    command_notes(s->notes);
    int verdict = judge(&s->view);
    if (verdict != EXIT_DONE && code != EXIT_FAILED)
        code = verdict;
    if (s->kind->advise && s->view.format == ACCOUNTS_SCREEN)
        s->kind->advise(&after->accounts, s->texts);
    return code;
}

/* ---- a series ---- */

struct series {
    struct accounts_show *s;
    struct accounts_reading *of;
    int now;
    struct sink out;
    uint64_t noted; /* of the malformed lines that were reported last */
};

/* Malformed lines are reported when there are others than before. */
static void note_new_bad_lines(struct series *w)
{
    const struct account_text *text = &w->of[w->now].accounts.text;
    uint64_t bad = text->bad_lines * 2 + text->cut;
    if (bad != w->noted)
        accounts_view_note_bad_lines(w->s->notes, &w->of[w->now]);
    w->noted = bad;
    command_notes(w->s->notes);
}

/* True if all processes of the accounts have ended. The kernel's have no process. */
static bool is_over(const struct accounts *a)
{
    vec_each (const struct account_process, p, &a->processes)
        if (p->alive)
            return false;
    return a->processes.len;
}

static int read_next(void *arg, uint64_t began_ns, uint64_t elapsed_ns)
{
    struct series *w = arg;
    struct accounts_view *view = &w->s->view;
    w->now = !w->now;
    struct accounts_reading *r = &w->of[w->now];
    accounts_reading_release(r);
    int code = w->s->kind->read_source(w->s, r, w->s->sources[0]);
    if (code >= 0)
        return code;
    if (elapsed_ns) {
        view->began_ns = began_ns;
        view->elapsed_ns = elapsed_ns;
        view->shape.seconds = (double)elapsed_ns / 1e9;
        view->time_ns = clock_ns(CLOCK_REALTIME);
        accounts_view_write(&w->out, view, w->s->texts, &w->of[!w->now], r, w->s->notes);
    }
    note_new_bad_lines(w);
    if (sink_finish(&w->out))
        return EXIT_DONE;
    if (!is_over(&r->accounts))
        return -1;
    return command_fail(elapsed_ns ? EXIT_DONE : EXIT_FAILED, "%s has ended", w->s->sources[0]);
}

static int show_series(struct accounts_show *s, struct accounts_reading of[ACCOUNT_MOMENTS])
{
    struct series w = {.s = s, .of = of, .out = sink_to_file(stdout)};
    s->view.line = true;
    int code = intervals_run(&s->intervals, read_next, &w);
    note_losses(s, &of[w.now]);
    return command_written(&w.out, code);
}

int accounts_show(struct accounts_show *s)
{
    struct accounts_reading of[ACCOUNT_MOMENTS] = {{.label = NULL}};
    int code = s->intervals.every_ns ? show_series(s, of) : show_once(s, of);
    for (int moment = 0; moment < ACCOUNT_MOMENTS; moment++)
        accounts_reading_release(&of[moment]);
    return code;
}
