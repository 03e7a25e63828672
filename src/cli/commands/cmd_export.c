/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "allium_version.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/profile_filter.h"
#include "cli/profile_page.h"
#include "cli/gzip_file.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/trace/export_heaptrack.h"
#include "cli/trace/events_page.h"
#include "cli/trace/export_ctf.h"
#include "cli/trace/trace_chrome.h"
#include "cli/wrapper_lists.h"
#include "view/formats/folded.h"
#include "view/formats/pprof.h"
#include "view/formats/speedscope.h"
#include "view/profile/profile_summary.h"
#include "view/page/svg.h"
#include "view/text/notes.h"

static const struct option_doc options[] = {
    {"pprof", 0, NULL, "write the format of `go tool pprof`"},
    {"folded", 0, "METRIC",
     "write a line for each stack: live, peak, allocated, allocations, temporary; of the kernel requested, "
     "slack"},
    {"speedscope", 0, NULL, "write all metrics for speedscope.app"},
    {"heaptrack", 0, NULL, "write the format of heaptrack_gui and heaptrack_print"},
    {"chrome", 0, NULL, "write the slices and counters of a trace, for ui.perfetto.dev and chrome://tracing"},
    {"html", 0, NULL, "write a page for any browser, in one file: flame graph, treemap, timeline, tables"},
    {"html-size", 0, "SIZE", "leave out the calls with least memory where the page's data are larger (20M)"},
    {"svg", 0, "PICTURE", "write one picture without scripts: flame, treemap or timeline"},
    {"metric", 0, "METRIC", "draw METRIC in the picture: as for --folded (live, or peak if nothing is live)"},
    {"ctf", 0, NULL, "write the trace DIR into the folder -o DIR2 in the format of LTTng, see allium-ctf(7)"},
    {"output", 'o', "FILE", "write to FILE (standard output); compress it if the name ends in .gz"},
    {"force", 0, NULL, "replace FILE, or an earlier trace in DIR2, if it exists"},
    {"where", 0, "QUERY", "export only matching objects, see allium-query(7)"},
    DEBUGINFOD_OPTION,
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium export server.4711.allium --html -o heap.html",
    "write a page that a browser opens without a network, to look at and to share",
    "allium export server.4711.allium --pprof -o heap.pb.gz && go tool pprof -http=: heap.pb.gz",
    "show a profile with pprof",
    "allium export --folded live | flamegraph.pl > live.svg",
    "draw a flame graph of the newest recording",
    "allium export --speedscope -o heap.speedscope.json",
    "write a file for https://www.speedscope.app, which reads it in the browser and uploads nothing",
    "allium export --heaptrack -o heap.heaptrack.gz && heaptrack_gui heap.heaptrack.gz",
    "show a profile over time with heaptrack; heaptrack_print prints it",
    "allium export server.4711.trace --chrome -o trace.json.gz",
    "write a file for https://ui.perfetto.dev, which reads it in the browser: what each thread did, and when",
    "allium export server.4711.trace --ctf -o server.lttng",
    "write a trace for Trace Compass and other programs that read traces of LTTng",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_export = {
    .name = "export",
    .usage = "[SOURCE|-p PID] --html [--html-size SIZE]|--svg PICTURE [--metric METRIC]|--pprof|--folded "
             "METRIC|--speedscope|--heaptrack|--chrome|--ctf [-o "
             "FILE|DIR2] [--force] "
             "[--where "
             "QUERY] "
             "[--debuginfod DURATION]",
    .summary =
        "write a profile as an HTML page, or for other tools: pprof, flame graphs, speedscope, heaptrack, "
        "Trace Compass",
    .examples = examples,
    .options = options,
    .run = run,
};

static const struct {
    const char *name;
    enum rollup_sort sort;
} metrics[] = {
    {"live", ROLLUP_SORT_LIVE},           {"peak", ROLLUP_SORT_PEAK},
    {"allocated", ROLLUP_SORT_ALLOCATED}, {"allocations", ROLLUP_SORT_ALLOCATIONS},
    {"temporary", ROLLUP_SORT_TEMPORARY}, {"requested", ROLLUP_SORT_REQUESTED},
    {"slack", ROLLUP_SORT_SLACK},
};
#define N_METRICS (sizeof(metrics) / sizeof(*metrics))

static int parse_metric(const char *option, const char *text, enum rollup_sort *metric)
{
    for (size_t i = 0; i < N_METRICS; i++)
        if (!strcmp(metrics[i].name, text)) {
            *metric = metrics[i].sort;
            return -1;
        }
    return command_misuse(&command_export,
                          "unknown --%s %s: use live, peak, allocated, allocations, temporary, requested or "
                          "slack",
                          option, text);
}

/* What is exported. */
struct job {
    struct profile *profile;
    const char *label;             /* of the source */
    const char *filter;            /* in words; NULL: none */
    struct rollup_options options; /* of --where */
    enum rollup_sort metric;
    /* by stack; NULL unless the format takes a metric, or --where has age or size */
    const struct rollup *rollup;
    const struct picture *picture; /* of --svg */
    uint64_t html_bytes;           /* of --html-size; 0: not given */
    struct html_events *events;    /* of a page of a trace; NULL: none */
    struct buf notes;              /* for standard error, after the export */
    const char *source;            /* as the user wrote it; NULL: the newest recording */
    bool failed;                   /* with this error */
    struct error error;
};

static void write_pprof(struct sink *out, struct job *j)
{
    pprof_write(out, j->profile, &(struct pprof_options){.keep = j->options.keep, .arg = j->options.arg});
}

static void write_folded(struct sink *out, struct job *j)
{
    folded_write(out, j->rollup, j->metric);
}

static void write_speedscope(struct sink *out, struct job *j)
{
    speedscope_write(out, j->profile, &j->options, "allium@" ALLIUM_VERSION);
}

static void write_heaptrack(struct sink *out, struct job *j)
{
    const struct heaptrack_options o = {.keep = j->options.keep, .arg = j->options.arg};
    j->failed = export_heaptrack(out, j->source, j->profile, &o, &j->notes, &j->error) != 0;
}

static void write_html(struct sink *out, struct job *j)
{
    profile_page_write(out, j->profile,
                       &(struct profile_page){.label = j->label,
                                              .filter = j->filter,
                                              .like = &j->options,
                                              .most_bytes = j->html_bytes,
                                              .events = j->events});
}

static const struct picture {
    const char *name, *words;
    void (*write)(struct sink *out, const struct profile *p, const struct svg_options *o);
    bool of_all; /* of no metric, and whatever --where says: it knows sums only */
} pictures[] = {
    {"flame", "flame graph", svg_flame_write},
    {"treemap", "treemap", svg_treemap_write},
    {"timeline", "memory over time", svg_timeline_write, .of_all = true},
};
#define N_PICTURES (sizeof(pictures) / sizeof(*pictures))

static int parse_picture(const char *text, const struct picture **picture)
{
    for (size_t i = 0; i < N_PICTURES; i++)
        if (!strcmp(pictures[i].name, text)) {
            *picture = &pictures[i];
            return -1;
        }
    return command_misuse(&command_export, "unknown --svg %s: use flame, treemap or timeline", text);
}

static void write_svg(struct sink *out, struct job *j)
{
    struct buf title = BUF_INIT;
    wrapper_lists_mark(j->profile);
    profile_page_add_title(
        &title, &(struct profile_page){.label = j->label, .filter = j->filter, .like = &j->options},
        j->picture->words);
    j->picture->write(
        out, j->profile,
        &(struct svg_options){.title = buf_str(&title), .like = &j->options, .metric = j->metric});
    buf_release(&title);
}

/* Each format is chosen by the option of its name. */
static const struct format {
    const char *name;
    void (*write)(struct sink *out, struct job *j);
    bool takes_metric;
    bool draws_metric; /* that of --metric */
    /* --where may have age and size, which are known for live objects only; if there is a metric, it must be `live` */
    bool has_samples;
    bool is_gzip; /* binary, and compressed already */
    bool is_page; /* nothing that anybody reads on a terminal */
    /* of the events of a trace, and not of a profile; then there is no `write` */
    bool of_trace;
    bool makes_folder; /* the same, into a folder */
} formats[] = {
    {"html", write_html, .has_samples = true, .is_page = true},
    {"svg", write_svg, .has_samples = true, .draws_metric = true},
    {"pprof", write_pprof, .is_gzip = true},
    {"folded", write_folded, .takes_metric = true, .has_samples = true},
    {"speedscope", write_speedscope, .has_samples = true},
    {"heaptrack", write_heaptrack},
    {"chrome", .of_trace = true},
    {"ctf", NULL, .makes_folder = true},
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

static int refuse_metric(const char *option, enum rollup_sort metric, const struct rollup_values *known)
{
    const char *name = "";
    struct buf can = BUF_INIT;
    for (size_t i = 0; i < N_METRICS; i++) {
        if (metrics[i].sort == metric)
            name = metrics[i].name;
        if (rollup_sort_known(metrics[i].sort, known))
            buf_printf(&can, "%s%s", can.len ? ", " : "; use ", metrics[i].name);
    }
    const bool is_of_kernel = metric == ROLLUP_SORT_REQUESTED || metric == ROLLUP_SORT_SLACK;
    int code = command_misuse(&command_export, "--%s %s is not known %s%s", option, name,
                              is_of_kernel ? "here, but for the kernel (of a program, allocated is what it "
                                             "requested)"
                                           : "for a moment in the past, and temporary not for the kernel",
                              buf_str(&can));
    buf_release(&can);
    return code;
}

/* The recording, or one of the files that SQLite keeps beside it while it is written. */
static bool is_of_source(const struct stat *output, const char *recording)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    bool is = false;
    for (size_t i = 0; !is && i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        struct stat st;
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s%s", recording, suffixes[i]);
        is = !stat(buf_str(&path), &st) && st.st_dev == output->st_dev && st.st_ino == output->st_ino;
        buf_release(&path);
    }
    return is;
}

/* `path` NULL: there is no --output. */
static bool is_stdout(const char *path)
{
    return !path || !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

/* Returns -1 if `path` may be written to, else an exit code. Refuses a regular file that exists unless --force is
 * given, and the exported recording in any case. */
static int refuse_output(const char *path, const struct source *s, bool force)
{
    struct stat st;
    if (is_stdout(path) || stat(path, &st) || !S_ISREG(st.st_mode))
        return -1;
    if (s->path && is_of_source(&st, s->path))
        return command_fail(EXIT_FAILED, "%s is the recording that is exported: write to another file", path);
    return force ? -1 : command_fail(EXIT_FAILED, "%s exists; use --force or another -o", path);
}

/* Opens the output file. Its content will be compressed if the name ends in .gz and the format is not compressed. */
static FILE *open_output(const char *path, const struct format *format)
{
    size_t len = path ? strlen(path) : 0;
    if (is_stdout(path))
        return stdout;
    if (!format->is_gzip && len > 3 && !strcmp(path + len - 3, ".gz"))
        return gzip_file_open(path);
    return fopen(path, "wbe");
}

/* Adds notes that the formats cannot store: why the profile is empty, losses, and programs that were not observed. */
static void note_missing(struct job *j)
{
    const struct text_style style = terminal_style(stderr);
    const struct profile_summary f = profile_summary_of(j->profile);
    bool empty = true;
    for (uint32_t i = 0; empty && i < j->profile->cells.len; i++)
        empty = j->options.keep && !j->options.keep(j->options.arg, j->profile, i);
    if (!f.samples)
        notes_add(&j->notes, "the exported profile is empty: no allocation was sampled");
    else if (empty || (j->rollup && !(rollup_sort_value(j->metric, &j->rollup->total) > 0)))
        notes_add(&j->notes, "the exported profile is empty: %s",
                  j->options.keep || j->options.keep_sample ? "nothing matches --where" : "this metric is 0");
    profile_summary_note_missing(&j->notes, j->profile, &f, &style);
}

static int finish_file(struct sink *out, FILE *file, const char *path)
{
    int bad = sink_finish(out);
    if (fclose(file) && !bad)
        bad = -errno;
    return bad ? command_fail(EXIT_FAILED, "%s: %s", path, strerror(-bad)) : EXIT_DONE;
}

/* What the options ask for. */
struct choice {
    const struct format *format;
    const struct picture *picture; /* NULL: not --svg */
    const char *option;            /* that named the metric; NULL: none did */
    enum rollup_sort metric;
    uint64_t html_bytes; /* of a page; 0: the usual limit */
    char *filter;        /* in words; NULL: none */
};

static int export(const struct arguments *a, const struct source *s, struct profile_filter *f,
                  const struct choice *c)
{
    const char *path = command_value(&command_export, a, "output");
    const struct format *format = c->format;
    enum rollup_sort metric = c->metric;
    struct job j = {.profile = s->profile,
                    .source = a->n_rest ? a->rest[0] : NULL,
                    .label = s->label,
                    .filter = c->filter,
                    .picture = c->picture,
                    .html_bytes = c->html_bytes};
    int refused = refuse_output(path, s, command_value(&command_export, a, "force") != NULL);
    if (refused >= 0)
        return refused;
    profile_filter_apply(f, &j.options);
    if (c->picture && !c->option)
        metric = profile_page_metric(s->profile, &j.options);
    j.options.sort = j.metric = metric;
    struct rollup *r = c->option || f->samples ? rollup_new(s->profile, &j.options) : NULL;
    if (r && !rollup_sort_known(metric, &r->total)) {
        int code = refuse_metric(c->option, metric, &r->total);
        rollup_free(r);
        return code;
    }
    struct error e;
    if (format->is_page && events_page_read(&j.events, j.source, s->profile, f, c->html_bytes, &e)) {
        rollup_free(r);
        return command_fail(EXIT_FAILED, "%s", e.text);
    }
    FILE *file = open_output(path, format);
    if (!file) {
        rollup_free(r);
        html_events_free(j.events);
        return command_fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    struct sink out = sink_to_file(file);
    j.rollup = r;
    format->write(&out, &j);
    note_missing(&j);
    rollup_free(r);
    html_events_free(j.events);
    int code = file == stdout ? command_written(&out, EXIT_DONE) : finish_file(&out, file, path);
    command_notes(&j.notes);
    if (j.failed && !is_stdout(path))
        unlink(path); /* it is cut */
    return j.failed ? command_fail(EXIT_FAILED, "%s", j.error.text) : code;
}

/* Reads the option that names the format. Returns -1, or an exit code. */
static int parse_format(const struct arguments *a, const struct format **format)
{
    struct buf names = BUF_INIT;
    int given = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        buf_printf(&names, "%s--%s%s", i ? ", " : "", formats[i].name,
                   formats[i].takes_metric   ? " METRIC"
                   : formats[i].draws_metric ? " PICTURE"
                                             : "");
        if (command_value(&command_export, a, formats[i].name)) {
            *format = &formats[i];
            given++;
        }
    }
    int code = given == 1
                   ? -1
                   : command_misuse(&command_export, "%s: %s",
                                    given ? "one format at a time" : "missing format: use one of these",
                                    buf_str(&names));
    buf_release(&names);
    if (code < 0 && (*format)->is_page && is_stdout(command_value(&command_export, a, "output")) &&
        isatty(STDOUT_FILENO))
        code = command_misuse(&command_export, "a page is not for a terminal: write it to a file with -o");
    if (code < 0 && (*format)->is_gzip && is_stdout(command_value(&command_export, a, "output")) &&
        isatty(STDOUT_FILENO))
        code = command_misuse(&command_export,
                              "%s's format is binary: write it to a file with -o, or into a pipe",
                              (*format)->name);
    return code;
}

/* Reads the options that say what of the profile the format shows. Returns -1, or an exit code. */
static int parse_choice(const struct arguments *a, struct choice *c)
{
    const char *metric = command_value(&command_export, a, "metric");
    int code = -1;
    if (metric && !c->format->draws_metric)
        return command_misuse(&command_export, "--metric is for --svg");
    if (c->format->draws_metric)
        code = parse_picture(command_value(&command_export, a, c->format->name), &c->picture);
    if (code < 0 && c->picture && c->picture->of_all &&
        (metric || command_value(&command_export, a, "where")))
        code = command_misuse(&command_export, "--svg %s shows all memory: leave out --%s", c->picture->name,
                              metric ? "metric" : "where");
    c->option = c->format->takes_metric ? c->format->name : metric ? "metric" : NULL;
    if (code < 0 && c->option)
        code = parse_metric(c->option, command_value(&command_export, a, c->option), &c->metric);
    if (code < 0 && (c->format->of_trace || c->format->makes_folder) &&
        command_value(&command_export, a, "debuginfod"))
        code = command_misuse(
            &command_export,
            "--%s has the names that the trace has, and asks no server: leave out --debuginfod",
            c->format->name);
    const char *size = command_value(&command_export, a, "html-size");
    if (code < 0 && size && !c->format->is_page)
        code = command_misuse(&command_export, "--html-size is for --html");
    if (code < 0)
        code = option_values_parse_size(&command_export, "html-size", size, PROFILE_PAGE_LEAST,
                                        UINT64_C(1) << 40, &c->html_bytes);
    if (code < 0 && a->n_rest > 1)
        code = command_misuse(&command_export, "too many sources: leave out %s", a->rest[1]);
    return code;
}

/* --chrome. */
static int export_trace(const struct arguments *a, const struct choice *c)
{
    struct error e = {""};
    struct trace_chrome *t;
    struct buf notes = BUF_INIT;
    const char *path = command_value(&command_export, a, "output");
    if (!a->n_rest || command_value(&command_export, a, "where"))
        return command_misuse(&command_export,
                              a->n_rest ? "--chrome has all events: leave out --where"
                                        : "--chrome needs the folder of a trace: allium export DIR --chrome");
    int code = refuse_output(path, &(struct source){.path = NULL},
                             command_value(&command_export, a, "force") != NULL);
    if (code >= 0)
        return code;
    int bad = trace_chrome_open(&t, a->rest[0], &e);
    if (bad)
        return command_fail(bad == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", e.text);
    FILE *file = open_output(path, c->format);
    if (!file) {
        trace_chrome_close(t);
        return command_fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    struct sink out = sink_to_file(file);
    bad = trace_chrome_write(t, &out, &notes, &e);
    code = file == stdout ? command_written(&out, EXIT_DONE) : finish_file(&out, file, path);
    if (bad)
        code = command_fail(EXIT_FAILED, "%s", e.text);
    command_notes(&notes);
    trace_chrome_close(t);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct profile_filter f;
    struct source s;
    struct choice c = {.metric = ROLLUP_SORT_LIVE};
    int code = command_parse(&command_export, argc, argv, false, &a);
    if (code < 0)
        code = parse_format(&a, &c.format);
    if (code < 0)
        code = parse_choice(&a, &c);
    if (code >= 0)
        return code;
    if (c.format->makes_folder)
        return export_ctf(&command_export, &a);
    if (c.format->of_trace)
        return export_trace(&a, &c);
    if (profile_filter_init(&f, command_value(&command_export, &a, "where"), NULL, &e))
        return command_misuse(&command_export, "%s", e.text);
    if (f.samples && (!c.format->has_samples || c.metric != ROLLUP_SORT_LIVE))
        code = command_misuse(&command_export, "age and size in --where are known for live objects only: use "
                                               "--folded live, --html, --svg or --speedscope");
    int bad = code < 0 ? source_open_moments(&s, a.n_rest ? a.rest[0] : NULL, &e) : 0;
    if (bad)
        code = source_fail(bad, &e);
    if (code < 0) {
        c.filter = profile_filter_words(&f);
        code = export(&a, &s, &f, &c);
        free(c.filter);
        source_release(&s);
    }
    profile_filter_release(&f);
    return code;
}
