/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
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
#include "cli/gzip_file.h"
#include "cli/source.h"
#include "view/formats/folded.h"
#include "view/formats/heaptrack.h"
#include "view/formats/pprof.h"
#include "view/formats/speedscope.h"

static const struct option_doc options[] = {
    {"pprof", 0, NULL, "write the format of `go tool pprof`"},
    {"folded", 0, "METRIC", "write a line for each stack: live, peak, allocated, allocations or temporary"},
    {"speedscope", 0, NULL, "write all metrics for speedscope.app"},
    {"heaptrack", 0, NULL, "write the format of heaptrack_gui and heaptrack_print"},
    {"output", 'o', "FILE", "write to FILE (standard output); compress it if the name ends in .gz"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"where", 0, "QUERY", "export only matching objects, see allium-query(7)"},
    DEBUGINFOD_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium export server.4711.allium --pprof -o heap.pb.gz && go tool pprof -http=: heap.pb.gz",
    "show a profile with pprof",
    "allium export --folded live | flamegraph.pl > live.svg",
    "draw a flame graph of the newest recording",
    "allium export --speedscope -o heap.speedscope.json",
    "write a file for https://www.speedscope.app, which reads it in the browser and uploads nothing",
    "allium export --heaptrack -o heap.heaptrack.gz && heaptrack_gui heap.heaptrack.gz",
    "show a profile over time with heaptrack; heaptrack_print prints it",
    NULL,
};

enum format { FORMAT_PPROF, FORMAT_FOLDED, FORMAT_SPEEDSCOPE, FORMAT_HEAPTRACK, FORMATS };
static const char *const formats[FORMATS] = {"pprof", "folded", "speedscope", "heaptrack"};

static int run(int argc, char **argv);

const struct command command_export = {
    .name = "export",
    .usage = "[SOURCE] --pprof|--folded METRIC|--speedscope|--heaptrack [-o FILE] [--force] [--where QUERY] "
             "[--debuginfod DURATION]",
    .summary = "write a profile for other tools: pprof, flame graphs, speedscope, heaptrack",
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
    {"temporary", ROLLUP_SORT_TEMPORARY},
};
#define N_METRICS (sizeof(metrics) / sizeof(*metrics))

static int parse_metric(const char *text, enum rollup_sort *metric)
{
    for (size_t i = 0; i < N_METRICS; i++)
        if (!strcmp(metrics[i].name, text)) {
            *metric = metrics[i].sort;
            return -1;
        }
    return command_misuse(&command_export,
                          "unknown --folded %s: use live, peak, allocated, allocations or temporary", text);
}

static int refuse_metric(const struct rollup_values *known)
{
    struct buf can = BUF_INIT;
    for (size_t i = 0; i < N_METRICS; i++)
        if (rollup_sort_known(metrics[i].sort, known))
            buf_printf(&can, "%s%s", can.len ? ", " : "; use ", metrics[i].name);
    int code = command_misuse(&command_export, "this is not known for a moment in the past%s", buf_str(&can));
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

/* May `path` be written to? Devices and pipes may; a file that exists may with --force. -1: yes, else an exit code. */
static int refuse_output(const char *path, const struct source *s, bool force)
{
    struct stat st;
    if (!path || !strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode))
        return -1;
    if (s->path && is_of_source(&st, s->path))
        return command_fail(EXIT_FAILED, "%s is the recording that is exported: write to another file", path);
    return force ? -1 : command_fail(EXIT_FAILED, "%s exists; use --force or another -o", path);
}

/* "wbe" into `path`, compressed if it says so and the format is not already; standard output if there is none. */
static FILE *open_output(const char *path, enum format format)
{
    size_t len = path ? strlen(path) : 0;
    if (!path || !strcmp(path, "-"))
        return stdout;
    if (format != FORMAT_PPROF && len > 3 && !strcmp(path + len - 3, ".gz"))
        return gzip_file_open(path);
    return fopen(path, "wbe");
}

static void write_heaptrack(struct sink *out, const struct profile *p, const struct rollup_options *o)
{
    uint64_t each = heaptrack_write(out, p, &(struct heaptrack_options){.keep = o->keep, .arg = o->arg});
    if (each > 1)
        fprintf(stderr,
                "allium: each call in it stands for %" PRIu64 ", and sizes are that much larger: there are "
                "too many to write them one by one\n",
                each);
}

static int export(const struct arguments *a, const struct source *s, struct profile_filter *f,
                  enum format format, enum rollup_sort metric)
{
    const char *path = command_value(&command_export, a, "output");
    struct rollup_options o = {.group = ROLLUP_BY_STACK, .sort = metric};
    int refused = refuse_output(path, s, command_value(&command_export, a, "force") != NULL);
    if (refused >= 0)
        return refused;
    profile_filter_apply(f, &o);
    bool ask = format == FORMAT_FOLDED || (format == FORMAT_SPEEDSCOPE && f->samples);
    struct rollup *r = ask ? rollup_new(s->profile, &o) : NULL;
    if (r && !rollup_sort_known(metric, &r->total)) {
        int code = refuse_metric(&r->total);
        rollup_free(r);
        return code;
    }
    FILE *file = open_output(path, format);
    if (!file) {
        rollup_free(r);
        return command_fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    struct sink out = sink_to_file(file);
    if (format == FORMAT_FOLDED)
        folded_write(&out, r, metric);
    else if (format == FORMAT_PPROF)
        pprof_write(&out, s->profile, &(struct pprof_options){.keep = o.keep, .arg = o.arg});
    else if (format == FORMAT_SPEEDSCOPE)
        speedscope_write(&out, s->profile, &o, "allium@" ALLIUM_VERSION);
    else
        write_heaptrack(&out, s->profile, &o);
    rollup_free(r);
    if (file == stdout)
        return command_written(&out, EXIT_DONE);
    int bad = sink_finish(&out);
    if (fclose(file) && !bad)
        bad = -errno;
    return bad ? command_fail(EXIT_FAILED, "%s: %s", path, strerror(-bad)) : EXIT_DONE;
}

/* Reads the option that names the format: one, not several. -1, or an exit code. */
static int parse_format(const struct arguments *a, enum format *format)
{
    int asked = 0;
    for (int i = 0; i < FORMATS; i++)
        if (command_value(&command_export, a, formats[i])) {
            *format = (enum format)i;
            asked++;
        }
    if (asked != 1)
        return command_misuse(
            &command_export,
            "missing format: use one of --pprof, --speedscope, --heaptrack and --folded METRIC");
    if (*format == FORMAT_PPROF && !command_value(&command_export, a, "output") && isatty(STDOUT_FILENO))
        return command_misuse(&command_export,
                              "pprof's format is binary: write it to a file with -o, or into a pipe");
    return -1;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct profile_filter f;
    struct source s;
    enum rollup_sort metric = ROLLUP_SORT_LIVE;
    enum format format = FORMATS;
    int code = command_parse(&command_export, argc, argv, false, &a);
    if (code < 0)
        code = parse_format(&a, &format);
    if (code < 0 && a.n_rest > 1)
        code = command_misuse(&command_export, "too many sources: leave out %s", a.rest[1]);
    if (code < 0 && format == FORMAT_FOLDED)
        code = parse_metric(command_value(&command_export, &a, "folded"), &metric);
    if (code >= 0)
        return code;
    if (profile_filter_init(&f, command_value(&command_export, &a, "where"), NULL, &e))
        return command_misuse(&command_export, "%s", e.text);
    if (f.samples && format != FORMAT_SPEEDSCOPE && (format != FORMAT_FOLDED || metric != ROLLUP_SORT_LIVE))
        code = command_misuse(
            &command_export,
            "age and size in --where are known for live objects only: use --folded live, or --speedscope");
    else if (source_open(&s, a.n_rest ? a.rest[0] : NULL, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code < 0) {
        code = export(&a, &s, &f, format, metric);
        source_release(&s);
    }
    profile_filter_release(&f);
    return code;
}
