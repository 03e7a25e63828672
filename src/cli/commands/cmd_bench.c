/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allium_version.h"
#include "base/installed_file.h"
#include "bench/bench_explain.h"
#include "bench/bench_run.h"
#include "cli/bench_memcg.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/screen_options.h"
#include "cli/terminal.h"
#include "view/bench/bench_view.h"
#include "view/text/columns.h"

static const struct option_doc options[] = {
    {"mechanism", 0, "LIST", "measure these mechanisms: branch,nop; all: each one"},
    {"sink", 0, "LIST", "measure these sinks: off,count-thread; all: each one"},
    {"list", 0, NULL, "list mechanisms and sinks, and measure nothing"},
    {"threads", 0, "N", "also call in N threads at once (the number of CPUs, at most 8)"},
    {"time", 0, "DURATION", "measure for this time in all (1.5s for each row, at most 75s)"},
    {"payload", 0, "LIST", "measure events with payloads of these sizes in bytes, 0 to 4000: 0,64,1000"},
    {"rate", 0, "N", "advise for N events in a second (1000000)"},
    {"explain", 0, "MECHANISM/SINK", "print the parts of which this row's cost consists"},
    {"memcg", 0, NULL, "measure what the kernel's allocations cost in a memory cgroup (15s)"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium bench",
    "print what each usual way to hook and to record costs here",
    "allium bench --mechanism branch,nop --sink off,count-thread",
    "compare two ways to switch a count on and off",
    "allium bench --explain int3/event",
    "print why an event costs what it costs at a breakpoint",
    "allium bench --payload 0,64,1000,4000",
    "print how the cost of an event grows with its size",
    "allium bench --memcg",
    "print what pipes, files, sockets and pages cost in a memory cgroup, and in the root",
    NULL,
};

#define ROW_NS        UINT64_C(1500000000)
#define ALL_NS        UINT64_C(75000000000)
#define LEAST_NS      UINT64_C(1000000)
#define PAYLOADS_MOST 32u
#define THREADS_MOST  1024u
#define RATE_USUAL    1000000u
#define THREADS_USUAL 8u

static int run(int argc, char **argv);

const struct command command_bench = {
    .name = "bench",
    .usage = "[--mechanism LIST] [--sink LIST] [--list] [--threads N] [--time DURATION] "
             "[--payload LIST] [--rate N] [--explain MECHANISM/SINK] [--memcg] " SCREEN_USAGE " [--json]",
    .summary = "measure what each way to hook and to record costs on this machine",
    .examples = examples,
    .options = options,
    .run = run,
};

/* ---- which rows ---- */

/* Returns whether the comma-separated list has the name; NULL: whether it is one of the usual ones. */
static bool is_chosen(const char *list, const char *name, bool is_default)
{
    if (!list)
        return is_default;
    for (const char *at = list; *at;) {
        const size_t len = strcspn(at, ",");
        if ((len == strlen(name) && !strncmp(at, name, len)) || (len == 3 && !strncmp(at, "all", len)))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static bool is_mechanism(const char *name, size_t len)
{
    for (const struct bench_mechanism *m = bench_mechanism_list; m->name; m++)
        if (strlen(m->name) == len && !strncmp(m->name, name, len))
            return true;
    return false;
}

static bool is_sink(const char *name, size_t len)
{
    for (const struct bench_sink_doc *s = bench_sink_list; s->name; s++)
        if (strlen(s->name) == len && !strncmp(s->name, name, len))
            return true;
    return false;
}

/* Returns -1, or an exit code after a line. */
static int check_list(const char *what, const char *list, bool (*is_known)(const char *, size_t))
{
    for (const char *at = list; at;) {
        const size_t len = strcspn(at, ",");
        if (!(len == 3 && !strncmp(at, "all", len)) && !is_known(at, len))
            return command_misuse(&command_bench, "unknown %s '%.*s': allium bench --list prints them", what,
                                  (int)len, at);
        at = at[len] ? at + len + 1 : NULL;
    }
    return -1;
}

/* The sizes of --payload. */
struct payloads {
    uint32_t bytes[PAYLOADS_MOST];
    unsigned n;
};

/* Returns -1, or an exit code after a line. */
static int read_payloads(const char *list, struct payloads *out)
{
    for (const char *at = list; at;) {
        char *end;
        errno = 0;
        const unsigned long bytes = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || bytes > BENCH_PAYLOAD_MOST || (*end && *end != ',') ||
            out->n == PAYLOADS_MOST)
            return command_misuse(&command_bench,
                                  "invalid --payload '%s': use up to %u numbers from 0 to %u, as in 0,64",
                                  list, PAYLOADS_MOST, BENCH_PAYLOAD_MOST);
        out->bytes[out->n++] = (uint32_t)bytes;
        at = *end ? end + 1 : NULL;
    }
    return -1;
}

static void add_pair(struct bench_options *o, const struct bench_mechanism *m, const struct bench_sink_doc *s,
                     const struct payloads *payloads)
{
    const bool has_payload = payloads->n;
    for (unsigned i = 0; i < payloads->n + !has_payload; i++)
        *vec_push(&o->pairs) = (struct bench_pair){
            m->name,  s->name,  bench_floor_of(m, s), m->needs,
            s->keeps, s->clock, has_payload,          has_payload ? payloads->bytes[i] : 0};
}

/* With --payload, only sinks count whose events can have one; and usually one mechanism, which adds little. */
static void choose(struct bench_options *o, const char *mechanisms, const char *sinks,
                   const struct payloads *payloads)
{
    for (const struct bench_mechanism *m = bench_mechanism_list; m->name; m++)
        for (const struct bench_sink_doc *s = bench_sink_list; s->name; s++) {
            const bool can = bench_has_payload(s),
                       usual = payloads->n ? !strcmp(m->name, "none") : m->is_default;
            if (is_chosen(mechanisms, m->name, usual) &&
                is_chosen(sinks, s->name, payloads->n ? can : s->is_default) && (can || !payloads->n) &&
                bench_makes_row(m, s))
                add_pair(o, m, s, payloads);
        }
}

/* ---- --list ---- */

static void add_line(struct columns *g, const char *name, bool is_default, enum bench_side side,
                     const char *doc)
{
    const char *const cells[] = {name, is_default ? "yes" : "no",
                                 side == BENCH_FROM_KERNEL ? "kernel" : "program", doc};
    columns_row(g);
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct buf b = BUF_INIT;
        buf_addstr(&b, cells[i]);
        columns_cell(g, &b);
    }
}

static void begin_list(struct columns *g, const char *what)
{
    columns_column(g, (struct columns_column){what, .left = true});
    columns_column(g, (struct columns_column){"DEFAULT", .left = true});
    columns_column(g, (struct columns_column){"WITH", .left = true});
    columns_column(g, (struct columns_column){"MEANING", .left = true, .elastic = true, .wrap = true});
}

static int list_all(void)
{
    const struct text_style style = terminal_style(stdout);
    struct sink out = sink_to_file(stdout);
    struct columns mechanisms = {.style = &style}, sinks = {.style = &style};
    begin_list(&mechanisms, "MECHANISM");
    for (const struct bench_mechanism *m = bench_mechanism_list; m->name; m++)
        add_line(&mechanisms, m->name, m->is_default, m->side, m->doc);
    columns_write(&mechanisms, &out);
    sink_char(&out, '\n');
    begin_list(&sinks, "SINK");
    for (const struct bench_sink_doc *s = bench_sink_list; s->name; s++)
        add_line(&sinks, s->name, s->is_default, s->side, s->doc);
    columns_write(&sinks, &out);
    columns_release(&mechanisms);
    columns_release(&sinks);
    return command_written(&out, EXIT_DONE);
}

/* ---- measuring ---- */

static void show_progress(double share)
{
    static int shown = -1;
    const int percent = (int)(share * 100);
    if (percent != shown)
        fprintf(stderr, "\rallium: measuring: %d %%", percent);
    shown = percent;
}

/* What was asked for. */
struct request {
    struct bench_options measured;
    struct bench_parts parts;
    bool explains, json;
    uint32_t rate;
};

static void show(struct sink *out, struct request *q, const struct bench_result *result)
{
    const struct text_style style = terminal_style(stdout);
    struct bench_advices advice = {NULL, 0, 0};
    if (q->explains)
        bench_parts_compute(&q->parts, result);
    else
        advice = bench_advice_find(result, q->rate);
    const struct bench_shown shown = {result, q->explains ? &q->parts : NULL, &advice, q->rate};
    if (q->json)
        bench_view_json(out, &shown);
    else
        bench_view_text(out, &shown, &style);
    vec_release(&advice);
}

static int measure(struct request *q)
{
    struct bench_result result;
    struct error e = {""};
    struct buf notes = BUF_INIT;
    const bool has_terminal = isatty(STDERR_FILENO);
    q->measured.progress = has_terminal ? show_progress : NULL;
    const int bad = bench_run(&q->measured, &result, &e);
    if (has_terminal)
        fputs("\r\033[K", stderr);
    struct sink out = sink_to_file(stdout);
    if (bad) {
        bench_result_release(&result);
        return command_fail(EXIT_FAILED, "%s", e.text);
    }
    show(&out, q, &result);
    fflush(stdout); /* the notes go to another stream, perhaps to the same place */
    bench_view_notes(&notes, &result);
    command_notes(&notes);
    bench_result_release(&result);
    return command_written(&out, EXIT_DONE);
}

/* Finds MECHANISM/SINK. Returns -1, or an exit code after a line. */
static int plan_explanation(struct request *q, const char *row)
{
    const char *sink = strchr(row, '/');
    if (sink && (!strcmp(sink, "/off") || !strcmp(sink, "/none")))
        return command_misuse(&command_bench, "'%s' has no parts: --explain wants a sink that does something",
                              row);
    const size_t len = strcspn(row, "/");
    for (const struct bench_mechanism *m = bench_mechanism_list; m->name; m++)
        for (const struct bench_sink_doc *s = bench_sink_list; s->name; s++)
            if (strlen(m->name) == len && !strncmp(m->name, row, len) && row[len] &&
                !strcmp(s->name, row + len + 1) && bench_makes_row(m, s)) {
                bench_explain_plan(&q->measured, &q->parts, m, s);
                q->explains = true;
                return -1;
            }
    return command_misuse(&command_bench,
                          "'%s' is no row: --explain wants a mechanism and a sink, as in int3/event", row);
}

/* Returns -1, or an exit code after a line. */
static int read_rows(const struct arguments *a, struct request *q)
{
    const struct command *c = &command_bench;
    const char *mechanisms = command_value(c, a, "mechanism"), *sinks = command_value(c, a, "sink"),
               *explained = command_value(c, a, "explain");
    if (explained && (mechanisms || sinks || command_value(c, a, "payload")))
        return command_misuse(
            c, "--explain chooses the rows itself: leave out --mechanism, --sink and --payload");
    if (explained)
        return plan_explanation(q, explained);
    struct payloads payloads = {.n = 0};
    int code = check_list("mechanism", mechanisms, is_mechanism);
    if (code < 0)
        code = check_list("sink", sinks, is_sink);
    if (code < 0)
        code = read_payloads(command_value(c, a, "payload"), &payloads);
    if (code >= 0)
        return code;
    choose(&q->measured, mechanisms, sinks, &payloads);
    if (!q->measured.pairs.len && !payloads.n) /* what was asked for goes with none of the usual ones */
        choose(&q->measured, mechanisms ? mechanisms : "all", sinks ? sinks : "all", &payloads);
    q->measured.switches = true;
    if (!q->measured.pairs.len)
        return command_misuse(c,
                              "these mechanisms and sinks do not go together: see SINKS in allium-bench(1)");
    return -1;
}

/* Returns -1, or an exit code after a line. */
static int read_options(const struct arguments *a, struct request *q)
{
    const struct command *c = &command_bench;
    struct bench_options *o = &q->measured;
    q->json = command_value(c, a, "json") != NULL;
    int code =
        option_values_parse_count(c, "threads", command_value(c, a, "threads"), 1, THREADS_MOST, &o->threads);
    if (code < 0)
        code = option_values_parse_count(c, "rate", command_value(c, a, "rate"), 1, UINT32_MAX, &q->rate);
    if (code < 0)
        code = read_rows(a, q);
    if (code >= 0)
        return code;
    o->time_ns = o->pairs.len * ROW_NS < ALL_NS ? o->pairs.len * ROW_NS : ALL_NS;
    return option_values_parse_time(c, "time", command_value(c, a, "time"), LEAST_NS, &o->time_ns);
}

static int run_request(struct request *q)
{
    char *helper = installed_file_find(BENCH_HELPER, ALLIUM_HELPER_BESIDE, ALLIUM_HELPER_DIR);
    if (!helper)
        return command_fail(EXIT_FAILED, BENCH_HELPER " is not in " ALLIUM_HELPER_DIR ": reinstall allium");
    q->measured.helper = helper;
    const int code = measure(q);
    free(helper);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    const unsigned cpus = bench_cpus();
    struct request q = {.measured = {.threads = cpus < THREADS_USUAL ? cpus : THREADS_USUAL},
                        .rate = RATE_USUAL};
    int code = command_parse(&command_bench, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest)
        return command_misuse(&command_bench, "too many arguments: leave out %s", a.rest[0]);
    if (command_value(&command_bench, &a, "memcg"))
        return bench_memcg_run(&command_bench, &a);
    if (command_value(&command_bench, &a, "list"))
        return list_all();
    code = read_options(&a, &q);
    if (code < 0)
        code = run_request(&q);
    vec_release(&q.measured.pairs);
    vec_release(&q.parts.list);
    return code;
}
