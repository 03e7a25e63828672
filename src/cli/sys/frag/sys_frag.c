/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys frag`: fragmentation of the kernel's memory, now, in a recording, or while a command runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/intervals.h"
#include "cli/option_values.h"
#include "cli/output_file.h"
#include "cli/pager.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/sys/frag/frag_capture.h"
#include "cli/sys/frag/frag_rows.h"
#include "cli/sys/state_rows.h"
#include "cli/table_page.h"
#include "cli/terminal.h"
#include "collect/kernel/state/memory_parse.h"
#include "model/kernel/frag_tables.h"
#include "view/table/frag_view.h"

#define BUFFER_BYTES (UINT64_C(8) << 20)
#define BUFFER_LEAST (UINT64_C(64) << 10)
#define BUFFER_MOST  (UINT64_C(1) << 30)
#define TOP_DEFAULT  8
#define CLEAR_SCREEN "\033[H\033[2J"

static const struct option_doc options[] = {
    {"from", 0, "FILE", "show what a recording has: FILE, or FILE@TIME"},
    INTERVALS_OPTIONS("print a screen at each INTERVAL, with what compaction did in it",
                      "stop after N intervals"),
    {"buffer", 0, "SIZE", "with CMD, use a buffer of SIZE on each CPU (8M) for events that are not read yet"},
    {"top", 0, "N", "print N rows of each list (8, with --json all); 0: all"},
    {"html", 0, "FILE", "also write the slab caches as an HTML page"},
    {"force", 0, NULL, "replace the file of --html if it exists"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, one object a line, see allium-json(5)"},
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "sudo allium sys frag",
    "show what the slab allocator, the page allocator and vmalloc hold and cannot use",
    "sudo allium sys frag -- find / -xdev",
    "also show which calls keep half-empty slabs after a command, and ask for less than they get",
    "allium sys frag --from kernel.allium@10m",
    "show the same of a recording, ten minutes after its beginning",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_frag = {
    .name = "sys frag",
    .usage =
        "[--from FILE] [--interval INTERVAL] [--count N] [--duration DURATION] [--buffer SIZE] [--top N] "
        "[--html FILE] [--force] " SCREEN_USAGE " [--json] [--no-pager] [-- CMD ARG...]",
    .summary = "show the fragmentation of the kernel's memory: slab caches, free blocks, vmalloc",
    .examples = examples,
    .options = options,
    .run = run,
};

struct request {
    const char *from, *html;
    struct intervals intervals;
    struct frag_capture_request capture;
    uint32_t top;
    bool json, paged, force;
};

/* A state of the kernel's memory, and what is known of sites. */
struct reading {
    struct kernel_state texts;
    struct memory_state state;
    uint64_t taken_ns;
    struct table *sites;     /* NULL: there is no capture */
    struct table *fallbacks; /* NULL: they are not known */
    bool pins_known;
    uint64_t lost;
};

/* ---- options ---- */

static int refuse(const struct command *c, const struct arguments *a, bool command)
{
    static const char *const not_with_from[] = {"interval", "duration", "buffer", NULL};
    static const char *const not_with_interval[] = {"html", NULL};
    for (int i = 0; not_with_from[i] && command_value(c, a, "from"); i++)
        if (command_value(c, a, not_with_from[i]))
            return command_misuse(c, "--from reads a recording: leave out --%s", not_with_from[i]);
    if (command_value(c, a, "from") && command)
        return command_misuse(c, "--from reads a recording: leave out the command");
    for (int i = 0; not_with_interval[i] && command_value(c, a, "interval"); i++)
        if (command_value(c, a, not_with_interval[i]))
            return command_misuse(c, "a page has one moment: leave out --interval");
    if (command && command_value(c, a, "interval"))
        return command_misuse(c, "with a command there is one report, at its end: leave out --interval");
    if (!command && command_value(c, a, "buffer"))
        return command_misuse(c, "--buffer is for events while a command runs: write the command after --");
    if (command_value(c, a, "force") && !command_value(c, a, "html"))
        return command_misuse(c, "--force replaces the file of --html, which is missing");
    return -1;
}

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = &command_sys_frag;
    struct arguments a;
    *q = (struct request){.capture = {.buffer_bytes = BUFFER_BYTES}};
    int code = command_parse(c, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (a.n_rest && strcmp(argv[argc - a.n_rest - 1], "--"))
        return command_misuse(c, "sys frag does not take %s: write a command to start after --", a.rest[0]);
    code = refuse(c, &a, a.n_rest);
    if (code < 0)
        code = intervals_parse(&q->intervals, c, &a, a.n_rest ? &(struct intervals){0} : NULL);
    if (code < 0)
        code = option_values_parse_size(c, "buffer", command_value(c, &a, "buffer"), BUFFER_LEAST,
                                        BUFFER_MOST, &q->capture.buffer_bytes);
    q->json = command_value(c, &a, "json") != NULL;
    q->top = q->json ? 0 : TOP_DEFAULT;
    if (code < 0)
        code = option_values_parse_top(c, command_value(c, &a, "top"), &q->top);
    q->from = command_value(c, &a, "from");
    q->html = command_value(c, &a, "html");
    q->force = command_value(c, &a, "force") != NULL;
    q->paged = !command_value(c, &a, "no-pager") && !q->json;
    q->capture.command = a.n_rest ? a.rest : NULL;
    q->capture.duration_ns = q->intervals.duration_ns;
    return code;
}

/* ---- reading ---- */

static void release(struct reading *r)
{
    memory_state_release(&r->state);
    kernel_state_release(&r->texts);
    if (r->sites)
        table_free(r->sites);
    if (r->fallbacks)
        table_free(r->fallbacks);
    *r = (struct reading){.taken_ns = 0};
}

static void read_now(struct reading *r)
{
    r->taken_ns = clock_ns(CLOCK_REALTIME);
    kernel_state_read(&r->texts, "", KERNEL_STATE_MEMORY);
    memory_parse_state(&r->state, &r->texts, (uint64_t)sysconf(_SC_PAGESIZE));
}

static int read_capture(const struct request *q, struct reading *r, int *code)
{
    struct frag_capture c = {.state = &r->state, .texts = &r->texts};
    r->sites = c.sites = frag_sites_table();
    r->fallbacks = c.fallbacks = frag_fallbacks_table();
    int failed = frag_capture_run(&q->capture, &c, code);
    r->taken_ns = clock_ns(CLOCK_REALTIME);
    r->pins_known = true;
    r->lost = c.lost;
    return failed;
}

/* The text of a file at a moment of the recording, or before. */
struct moment {
    const struct state_rows *rows;
    size_t number;
};

static const char *text_at(void *arg, const char *path)
{
    const struct moment *m = arg;
    return state_rows_text(m->rows, m->number, path);
}

static bool any_value(const struct table *t, uint32_t column)
{
    bool known;
    frag_column_sum(t, column, &known);
    return known;
}

static void load_fallbacks(struct reading *r, const char *path)
{
    struct error none = {""};
    struct table *t = frag_fallbacks_table();
    if (frag_rows_load_fallbacks(t, path, &none))
        table_free(t);
    else
        r->fallbacks = t;
}

/* The sites are those of the end, and are left out for an earlier moment. */
static int load(struct reading *r, const char *path, const uint64_t *at_ns, struct error *e)
{
    struct state_rows rows;
    struct error none = {""};
    struct table *sites = frag_sites_table();
    int bad = state_rows_load(&rows, path, e),
        bad_sites = at_ns ? -ENODATA : frag_rows_load(sites, path, &none);
    if (bad == -ENODATA && !bad_sites)
        bad = 0; /* an imported trace */
    size_t n = rows.moments.len;
    while (at_ns && n && rows.moments.at[n - 1].taken_ns > *at_ns)
        n--;
    if (!bad && rows.moments.len && !n)
        bad = error_set(e, ERANGE,
                        "%s has no state of the kernel's memory at that time or earlier: use a later time",
                        path);
    struct moment m = {&rows, n ? n - 1 : 0};
    memory_parse(&r->state, text_at, &m, rows.page_bytes);
    r->taken_ns = n ? rows.moments.at[n - 1].taken_ns : 0;
    state_rows_release(&rows);
    if (!at_ns)
        load_fallbacks(r, path);
    if (bad_sites) {
        table_free(sites);
    } else {
        r->sites = sites;
        r->pins_known = any_value(sites, FRAG_SITE_PINNED_HIGH);
    }
    return bad;
}

static int read_recording(const struct request *q, struct reading *r)
{
    char *path = NULL;
    const char *time = NULL;
    uint64_t at_ns = 0;
    struct error e = {""};
    int bad = 0;
    if (source_kind(q->from) == SOURCE_MOMENT) {
        bad = source_moment(q->from, &path, &time, &e);
        bad = bad ? bad : source_when(path, time, &at_ns, &e);
    }
    bad = bad ? bad : load(r, path ? path : q->from, time ? &at_ns : NULL, &e);
    free(path);
    if (bad == -ENODATA)
        return command_fail(
            EXIT_FAILED, "%s has nothing of the kernel's memory: record it with allium sys record", q->from);
    return bad ? source_fail(bad, &e) : -1;
}

/* ---- output ---- */

static void report_of(struct frag_report *out, const struct request *q, const struct reading *r,
                      struct frag *f)
{
    const struct frag_range large =
        r->sites ? frag_large_bytes(r->sites) : (struct frag_range){.known = false};
    frag_compute(f, &r->state, &large);
    *out = (struct frag_report){.taken_ns = r->taken_ns,
                                .recorded = q->from != NULL,
                                .frag = f,
                                .sites = r->sites,
                                .fallbacks = r->fallbacks,
                                .pins_known = r->pins_known,
                                .lost = r->lost,
                                .top = q->top};
}

static void write_report(const struct request *q, struct sink *out, const struct frag_report *r)
{
    const struct text_style style = terminal_style(stdout);
    if (q->json)
        frag_json_write(out, r);
    else
        frag_write(out, r, &style);
}

static int write_page(const struct request *q, FILE *file, const struct frag *f)
{
    struct table *t = frag_caches_table(f);
    int bad = table_page_write(
        file, &(struct table_page){.title = "allium sys frag",
                                   .about = "What the kernel's slab caches hold, and how much "
                                            "of it holds no object.",
                                   .table = t,
                                   .weight = FRAG_CACHES_WEIGHT,
                                   .notes = ""});
    table_free(t);
    return bad ? command_fail(EXIT_FAILED, "%s: %s", q->html, strerror(-bad)) : -1;
}

static int show(const struct request *q, const struct reading *r, FILE *page, int code)
{
    struct frag f;
    struct frag_report report;
    report_of(&report, q, r, &f);
    struct sink out = pager_sink(q->paged);
    write_report(q, &out, &report);
    code = pager_written(&out, code);
    int bad = page ? write_page(q, page, &f) : -1;
    frag_release(&f);
    return bad < 0 ? code : bad;
}

static int show_once(const struct request *q)
{
    struct error e = {""};
    struct reading r = {.taken_ns = 0};
    int code = -1, of_command = EXIT_DONE;
    FILE *page = q->html ? output_file_open(q->html, q->force, &e) : NULL;
    if (q->html && !page)
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (q->from)
        code = read_recording(q, &r);
    else if (q->capture.command)
        code = read_capture(q, &r, &of_command);
    else
        read_now(&r);
    if (code < 0)
        code = show(q, &r, page, of_command);
    else if (page)
        fclose(page);
    release(&r);
    return code;
}

struct series {
    const struct request *q;
    struct reading before;
    struct sink out;
};

/* The first call reads what the changes of the first screen begin with. */
static int show_next(void *arg, uint64_t began_ns, uint64_t elapsed_ns)
{
    struct series *s = arg;
    struct reading now = {.taken_ns = 0};
    (void)began_ns;
    read_now(&now);
    if (elapsed_ns) {
        struct frag f;
        struct frag_report report;
        report_of(&report, s->q, &now, &f);
        report.before = &s->before.state;
        report.interval_ns = elapsed_ns;
        if (!s->q->json && !terminal_style(stdout).file)
            sink_text(&s->out, CLEAR_SCREEN);
        write_report(s->q, &s->out, &report);
        if (!s->q->json)
            sink_char(&s->out, '\n');
        frag_release(&f);
    }
    release(&s->before);
    s->before = now;
    return elapsed_ns && sink_finish(&s->out) ? EXIT_DONE : -1;
}

static int run(int argc, char **argv)
{
    struct request q;
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    if (!q.intervals.every_ns)
        return show_once(&q);
    struct series s = {.q = &q, .out = sink_to_file(stdout)};
    code = intervals_run(&q.intervals, show_next, &s);
    code = command_written(&s.out, code);
    release(&s.before);
    return code;
}
