/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys import`: a recording of a trace of the kernel's allocators that another tool has written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/read_file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/sys/kernel_store.h"
#include "collect/kernel/trace/trace_lines.h"
#include "symbol/kallsyms.h"
#include "sys/record/kernel_import.h"
#include "sys/record/text_import.h"
#include "view/text/text.h"

#define KALLSYMS_BYTES_MAX (256u << 20)

static const struct option_doc options[] = {
    {"output", 'o', "OUT", "write the recording to OUT"},
    {"force", 0, NULL, "replace OUT if it exists"},
    {"kallsyms", 0, "FILE", "take names from FILE, a copy of the traced kernel's /proc/kallsyms"},
    {"partial", 0, NULL, "keep what was read of a file that is damaged"},
    {"quiet", 0, NULL, "print only errors"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium sys import trace.txt -o boot.allium",
    "make a recording of a copy of tracefs's file `trace`",
    "trace-cmd report trace.dat | allium sys import - -o cmd.allium",
    "make one of what another tool prints; perf script does as well",
    "allium sys kmem --from boot.allium --by comm",
    "show what each program made the kernel allocate",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_import = {
    .name = "sys import",
    .usage = "FILE -o OUT [--force] [--kallsyms FILE] [--partial] [--quiet]",
    .summary = "make a recording of a kernel trace in text, of ftrace, trace-cmd or perf script",
    .examples = examples,
    .options = options,
    .run = run,
};

struct request {
    const char *file, *output, *kallsyms;
    bool force, partial, quiet;
};

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = &command_sys_import;
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code >= 0)
        return code;
    *q = (struct request){.file = a.n_rest ? a.rest[0] : NULL,
                          .output = command_value(c, &a, "output"),
                          .kallsyms = command_value(c, &a, "kallsyms"),
                          .force = command_value(c, &a, "force") != NULL,
                          .partial = command_value(c, &a, "partial") != NULL,
                          .quiet = command_value(c, &a, "quiet") != NULL};
    if (!q->file)
        return command_misuse(c, "missing file: allium sys import FILE -o OUT; - is standard input");
    if (a.n_rest > 1)
        return command_misuse(c, "too many files: leave out %s", a.rest[1]);
    if (!q->output)
        return command_misuse(c, "missing -o OUT: the recording to write");
    return -1;
}

static int read_text(struct kernel_import *i, struct packed_input *in, struct error *e)
{
    struct trace_lines *lines = trace_lines_new(in);
    struct text_import *t = text_import_new(i);
    const char *line;
    size_t len;
    int more;
    while ((more = trace_lines_next(lines, &line, &len, e)) > 0)
        text_import_line(t, line, len);
    text_import_end(t);
    text_import_free(t);
    trace_lines_free(lines);
    return more;
}

/* Of a damaged file, what came before is accounted. */
static int read_trace(const struct request *q, struct kernel_import *i, struct error *e)
{
    struct packed_input *in;
    int bad = packed_input_open(&in, q->file, e);
    if (bad)
        return bad;
    if (packed_input_is(in, q->output))
        bad = error_set(e, EINVAL, "%s is the trace that is read: write to another file", q->output);
    bad = bad ? bad : read_text(i, in, e);
    kernel_import_end(i, (int64_t)(packed_input_written_ns(in) - kernel_import_last_ns(i)));
    packed_input_close(in);
    return bad;
}

static int store(const struct request *q, struct kernel_import *i, struct error *e)
{
    struct recording *r;
    struct kernel_capture *c = kernel_import_capture(i);
    int bad = recording_create(&r, q->output, q->force, e);
    if (bad)
        return bad;
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    bad = recording_set_number(r, RECORDING_PERIOD, 1, e);
    bad = bad ? bad : recording_set_number(r, RECORDING_STARTED, (int64_t)t->first_ns + c->realtime_ns, e);
    bad = bad ? bad : kernel_store_moment(r, c, true, e);
    bad = bad ? bad : kernel_store_end(r, c, "text", (uint64_t)((int64_t)t->last_ns + c->realtime_ns), e);
    struct error closing = {""};
    int closed = recording_close(r, bad ? &closing : e);
    return bad ? bad : closed;
}

/* A line for each thing that the trace lacks. */
static void add_lacks(struct buf *b, const struct kernel_import_counts *n, bool named)
{
    const struct {
        uint64_t n;
        const char *words;
    } lacks[] = {
        {n->lost, "event{s} {is|are} missing in the trace: live figures may be too high or too low"},
        {n->lost_unknown, "place{s} at which events are missing, the trace does not say how many"},
        {n->broken, "line{s} of kmem events {was|were} not understood"},
        {n->without_address, "event{s} {hides|hide} the object's address and {was|were} left out"},
        {n->late, "event{s} {is|are} older than the one before"},
        {n->ticks, "event{s} {has|have} ticks of a clock in place of a time: durations mean nothing"},
        {n->without_allocated,
         "allocation{s} {does|do} not say what was allocated: the requested bytes stand for it"},
        {n->without_name,
         named ? "event{s} {has|have} an address that --kallsyms does not name"
               : "event{s} {has|have} an address in place of a name: give --kallsyms FILE of that kernel"},
    };
    size_t before = b->len;
    for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
        if (!lacks[i].n)
            continue;
        buf_addstr(b, b->len == before ? "\n  lacks      " : "\n             ");
        text_add_words(b, lacks[i].n, lacks[i].words);
    }
}

static void say(const struct request *q, struct kernel_import *i)
{
    const struct kmem_totals *t = kmem_accounts_totals(kernel_import_capture(i)->accounts);
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    buf_printf(&b, "the kernel, %s, ", units_format_duration(took, (double)(t->last_ns - t->first_ns)));
    text_add_number(&b, t->events, "event");
    kernel_store_add_summary(&b, t);
    add_lacks(&b, kernel_import_counts(i), q->kallsyms != NULL);
    fprintf(stderr,
            "allium: %s\n  next       allium report %s\n             allium sys kmem --from %s --by comm\n",
            buf_str(&b), q->output, q->output);
    buf_release(&b);
}

static int import(const struct request *q, struct kernel_import *i)
{
    struct error e = {""};
    int bad = read_trace(q, i, &e);
    const uint64_t events = kmem_accounts_totals(kernel_import_capture(i)->accounts)->events;
    if (bad && !(q->partial && events))
        return command_fail(EXIT_FAILED, "%s%s", e.text, events ? "; --partial keeps what was read" : "");
    if (bad)
        command_fail(0, "%s; what was read before is kept", e.text);
    if (!events)
        return command_fail(EXIT_FAILED,
                            "%s has no kmem event (kmalloc, kfree, kmem_cache_alloc, kmem_cache_free) in "
                            "a line that is understood",
                            q->file);
    if (store(q, i, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (!q->quiet)
        say(q, i);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct kallsyms symbols = {.lines = 0};
    struct buf text = BUF_INIT;
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    int bad = q.kallsyms ? file_read(q.kallsyms, KALLSYMS_BYTES_MAX, &text) : 0;
    if (bad) {
        buf_release(&text);
        return command_fail(EXIT_FAILED, "--kallsyms: %s: %s", q.kallsyms, strerror(-bad));
    }
    kallsyms_parse(&symbols, buf_str(&text), "");
    if (q.kallsyms && !symbols.all.len)
        code = command_fail(EXIT_FAILED, "--kallsyms: %s has no %s", q.kallsyms,
                            symbols.hidden ? "addresses: copy /proc/kallsyms as root" : "symbols");
    struct kernel_import *i = kernel_import_new(symbols.all.len ? &symbols : NULL);
    code = code < 0 ? import(&q, i) : code;
    kernel_import_free(i);
    kallsyms_release(&symbols);
    buf_release(&text);
    return code;
}
