/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/filter.h"
#include "cli/source.h"
#include "view/folded.h"
#include "view/pprof.h"

static const struct option_doc options[] = {
    {"pprof", 0, NULL, "for `go tool pprof` and whatever reads its format"},
    {"folded", 0, "METRIC", "a line a stack: live, peak, allocated, allocations or temporary"},
    {"output", 'o', "FILE", "where to (standard output)"},
    {"where", 0, "QUERY", "only what fits, see allium-query(7)"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium export server.4711.allium --pprof -o heap.pb.gz && go tool pprof -http=: heap.pb.gz",
    "look at it with pprof",
    "allium export --folded live | flamegraph.pl > live.svg",
    "a flame graph of the newest recording; speedscope.app opens the folded form as it is",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_export = {
    .name = "export",
    .usage = "[SOURCE] --pprof|--folded METRIC [-o FILE] [--where QUERY]",
    .summary = "a profile in a file format that other tools read",
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
                          "--folded %s is not known: live, peak, allocated, allocations or temporary", text);
}

static int refuse_metric(const struct rollup_values *known)
{
    struct buf can = BUF_INIT;
    for (size_t i = 0; i < N_METRICS; i++)
        if (rollup_sort_known(metrics[i].sort, known))
            buf_printf(&can, "%s%s", can.len ? ", " : "; known is ", metrics[i].name);
    int code = command_misuse(&command_export, "this is not known of a moment in the past%s", buf_str(&can));
    buf_release(&can);
    return code;
}

static int export(const struct arguments *a, const struct source *s, struct filter *f,
                  enum rollup_sort metric)
{
    const char *path = command_value(&command_export, a, "output");
    struct rollup_options o = {.group = ROLLUP_BY_STACK, .sort = metric};
    filter_apply(f, &o);
    struct rollup *r = command_value(&command_export, a, "folded") ? rollup_new(s->profile, &o) : NULL;
    if (r && !rollup_sort_known(metric, &r->total)) {
        int code = refuse_metric(&r->total);
        rollup_free(r);
        return code;
    }
    FILE *file = path && strcmp(path, "-") ? fopen(path, "wbe") : stdout;
    if (!file) {
        rollup_free(r);
        return command_fail(EXIT_FAILED, "%s: %s", path, strerror(errno));
    }
    struct sink out = sink_to_file(file);
    if (r)
        folded_write(&out, r, metric);
    else
        pprof_write(&out, s->profile, &(struct pprof_options){.keep = o.keep, .arg = o.arg});
    rollup_free(r);
    int bad = sink_finish(&out);
    if (file != stdout && fclose(file) && !bad)
        bad = -errno;
    if (!bad || bad == -EPIPE)
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "%s: %s", path ? path : "standard output", strerror(-bad));
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct filter f;
    struct source s;
    enum rollup_sort metric = ROLLUP_SORT_LIVE;
    int code = command_parse(&command_export, argc, argv, false, &a);
    if (code >= 0)
        return code;
    const char *folded = command_value(&command_export, &a, "folded");
    bool pprof = command_value(&command_export, &a, "pprof") != NULL;
    if (pprof == (folded != NULL))
        return command_misuse(&command_export, "say which format: --pprof, or --folded with a metric");
    if (a.n_rest > 1)
        return command_misuse(&command_export, "one source at a time, not also %s", a.rest[1]);
    if (pprof && !command_value(&command_export, &a, "output") && isatty(STDOUT_FILENO))
        return command_misuse(&command_export,
                              "pprof's format is binary: write it to a file with -o, or into a pipe");
    code = folded ? parse_metric(folded, &metric) : -1;
    if (code >= 0)
        return code;
    if (filter_init(&f, command_value(&command_export, &a, "where"), NULL, &e))
        return command_misuse(&command_export, "%s", e.text);
    if (f.samples && (pprof || metric != ROLLUP_SORT_LIVE))
        code =
            command_misuse(&command_export, "age and size are known of live objects only: use --folded live");
    else if (source_open(&s, a.n_rest ? a.rest[0] : NULL, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code < 0) {
        code = export(&a, &s, &f, metric);
        source_release(&s);
    }
    filter_release(&f);
    return code;
}
