/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "store/sql_query.h"
#include "view/table/sql_result_view.h"

static const struct option_doc options[] = {
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {"csv", 0, NULL, "print comma-separated values"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium sql 'SELECT pid, peak_bytes FROM image ORDER BY peak_bytes DESC'",
    "show which process of the newest recording here held most; allium-sql(1) has more",
    "allium sql 4711 'SELECT size_bytes, count(*) FROM live_sample GROUP BY 1 ORDER BY 2 DESC LIMIT 5'",
    "show the most frequent sizes of live samples in a running process",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sql = {
    .name = "sql",
    .usage = "[SOURCE|-p PID] QUERY [--debuginfod DURATION] [--json|--csv] [--no-pager]",
    .summary = "run an SQL query on a recording",
    .examples = examples,
    .options = options,
    .run = run,
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
    (void)sig;
    stopped = 1;
}

/* Once: a second ^C ends us at once. */
static void catch_interrupt(void)
{
    struct sigaction a = {.sa_handler = stop, .sa_flags = SA_RESTART | SA_RESETHAND};
    struct sigaction before;
    if (!sigaction(SIGINT, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &a, NULL);
}

static int take(void *arg, const struct sql_result *rows, bool more)
{
    struct sql_result_view *v = arg;
    sql_result_view_write(v, rows, more);
    return v->out->error;
}

/* The line of the query that is wrong, and a caret beneath the place. */
static void point_at(const char *sql, size_t at)
{
    struct text_style style = terminal_style(stderr);
    struct buf before = BUF_INIT, line = BUF_INIT;
    size_t begin = at < strlen(sql) ? at : strlen(sql);
    size_t end = begin + strcspn(sql + begin, "\n");
    at = begin;
    while (begin && sql[begin - 1] != '\n')
        begin--;
    char *head = mem_strndup(sql + begin, at - begin), *whole = mem_strndup(sql + begin, end - begin);
    text_add_name(&before, &style, head);
    text_add_name(&line, &style, whole);
    fprintf(stderr, "  %s\n  %*s^\n", buf_str(&line), (int)text_width(buf_str(&before)), "");
    free(head);
    free(whole);
    buf_release(&before);
    buf_release(&line);
}

static int explain_error(const struct store_query *q, int bad, const struct error *e)
{
    if (bad == -EPIPE)
        return EXIT_DONE;
    if (bad == -EINTR) {
        /* As if it had not been caught: a shell's loop around us ends, too. */
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    bool misuse = bad == -EINVAL || bad == -EPERM;
    int code = command_fail(misuse ? EXIT_USAGE : EXIT_FAILED, "%s", *e->text ? e->text : strerror(-bad));
    if (q->wrong_at != STORE_QUERY_NOWHERE)
        point_at(q->sql, q->wrong_at);
    return code;
}

/* A single word is the question, and no question is the name of a file or a number. */
static bool names_source(const char *text)
{
    struct stat st;
    return *text && (!text[strspn(text, "0123456789")] || !stat(text, &st));
}

/* Sets *asked if a failure may come from the query: always for a file, which store_query_file() opens itself; else once
 * the source is open. */
static int put_question(const char *text, struct store_query *q, bool *asked, struct error *e)
{
    struct source s;
    char *path = NULL;
    int bad = source_file(text, &path, e);
    if (bad)
        return bad;
    *asked = path;
    if (path) {
        bad = store_query_file(q, path, e);
    } else {
        bad = source_open(&s, text, e);
        *asked = !bad;
        if (!bad) {
            bad = store_query_profile(q, s.profile, e);
            source_release(&s);
        }
    }
    free(path);
    return bad;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    int code = command_parse(&command_sql, argc, argv, false, &a);
    if (code >= 0)
        return code;
    bool json = command_value(&command_sql, &a, "json"), csv = command_value(&command_sql, &a, "csv");
    if (json && csv)
        return command_misuse(&command_sql, "--json or --csv, not both");
    if (!a.n_rest)
        return command_misuse(&command_sql, "missing query: write 'SELECT ...'");
    if (a.n_rest > 2)
        return command_misuse(&command_sql, "too many arguments: put the query in quotes, or leave out %s",
                              a.rest[2]);
    if (a.n_rest == 1 && names_source(a.rest[0]))
        return command_misuse(&command_sql, "missing query: %s is a source: use allium sql %s 'SELECT ...'",
                              a.rest[0], a.rest[0]);
    struct sink out = pager_sink(!command_value(&command_sql, &a, "no-pager"));
    struct sql_result_view v = {.out = &out,
                                .style = terminal_style(stdout),
                                .form = json  ? SQL_RESULT_AS_JSON
                                        : csv ? SQL_RESULT_AS_CSV
                                              : SQL_RESULT_AS_TEXT};
    struct store_query q = {.sql = a.rest[a.n_rest - 1],
                            .stop = &stopped,
                            .take = take,
                            .arg = &v,
                            .wrong_at = STORE_QUERY_NOWHERE};
    catch_interrupt();
    bool asked = false;
    int bad = put_question(a.n_rest == 2 ? a.rest[0] : NULL, &q, &asked, &e);
    if (pager_written(&out, EXIT_DONE) && !*e.text)
        return EXIT_FAILED;
    if (bad)
        return asked ? explain_error(&q, bad, &e) : source_fail(bad, &e);
    return EXIT_DONE;
}
