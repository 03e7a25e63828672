/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys import`: a recording of a trace of the kernel's allocators that another tool has written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/sys/import/import_names.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/import/sys_import_boot.h"
#include "cli/sys/sys_vmlinux.h"
#include "cli/wrapper_lists.h"
#include "collect/kernel/trace/perf_data.h"
#include "collect/kernel/trace/trace_lines.h"
#include "sys/record/kernel_import.h"
#include "sys/record/page_import.h"
#include "sys/record/perf_import.h"
#include "sys/record/text_import.h"
#include "view/text/text.h"

static const struct option_doc options[] = {
    {"output", 'o', "OUT", "write the recording to OUT"},
    {"force", 0, NULL, "replace OUT if it exists"},
    {"boot", 0, NULL, "read the running kernel's trace of its boot, see doctor --boot (needs root)"},
    {"format", 0, "NAME", "read FILE as text, perf.data, trace.dat or raw, whatever it looks like"},
    {"kallsyms", 0, "FILE", "take names from FILE, a copy of the traced kernel's /proc/kallsyms"},
    {"vmlinux", 0, "FILE",
     "take files and lines of the source from FILE, the traced kernel's, and its modules"},
    {"partial", 0, NULL, "keep what was read of a file that is damaged or cut"},
    {"quiet", 0, NULL, "print only errors"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium sys import trace.txt -o boot.allium",
    "make a recording of a copy of tracefs's file `trace`",
    "allium sys import perf.data -o kmem.allium",
    "make one of what perf record -a -e 'kmem:*' has written",
    "trace-cmd report trace.dat | allium sys import - -o cmd.allium",
    "make one of what another tool prints; perf script does as well",
    "sudo allium sys import --boot -o boot.allium",
    "make one of all kernel allocations since the boot, if the kernel was started with what doctor --boot "
    "prints",
    "allium sys kmem --from boot.allium --by comm",
    "show what each program made the kernel allocate",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_import = {
    .name = "sys import",
    .usage = "FILE|--boot -o OUT [--force] [--format NAME] [--kallsyms FILE] [--vmlinux FILE] [--partial] "
             "[--quiet]",
    .summary = "make a recording of a kernel trace that was recorded elsewhere or by another tool",
    .examples = examples,
    .options = options,
    .run = run,
};

enum format { BY_CONTENT, TEXT, PERF_DATA, RAW, TRACE_DAT };

static const struct word format_words[] = {
    {"text", TEXT}, {"perf.data", PERF_DATA}, {"raw", RAW}, {"trace.dat", TRACE_DAT}, {NULL, 0}};
/* What recordings say that their events come from. */
static const char *const sources[] = {
    [TEXT] = "text", [PERF_DATA] = "perf.data", [RAW] = "raw", [TRACE_DAT] = "trace.dat"};

struct request {
    const char *file, *output, *kallsyms, *vmlinux;
    int format;
    bool force, partial, quiet, boot;
};

struct session {
    const struct request *q;
    struct kernel_import *import;
    struct import_names names;
    struct wrappers helpers;
    int format;          /* of the file */
    uint64_t written_ns; /* when it was; CLOCK_REALTIME */
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
                          .vmlinux = command_value(c, &a, "vmlinux"),
                          .force = command_value(c, &a, "force") != NULL,
                          .partial = command_value(c, &a, "partial") != NULL,
                          .quiet = command_value(c, &a, "quiet") != NULL,
                          .boot = command_value(c, &a, "boot") != NULL};
    code = option_values_parse(c, "format", command_value(c, &a, "format"), format_words, &q->format);
    if (code >= 0)
        return code;
    if (q->boot && (q->file || q->kallsyms || q->partial || q->format))
        return command_misuse(c, "--boot reads the running kernel: leave out %s",
                              q->file       ? q->file
                              : q->kallsyms ? "--kallsyms"
                              : q->partial  ? "--partial"
                                            : "--format");
    if (!q->file && !q->boot)
        return command_misuse(c, "missing file: allium sys import FILE -o OUT; - is standard input");
    if (a.n_rest > 1)
        return command_misuse(c, "too many files: leave out %s", a.rest[1]);
    if (!q->output)
        return command_misuse(c, "missing -o OUT: the recording to write");
    return -1;
}

static int read_text(struct session *s, struct packed_input *in, struct error *e)
{
    struct trace_lines *lines = trace_lines_new(in);
    struct text_import *t = text_import_new(s->import);
    const char *line;
    size_t len;
    int more;
    struct kernel_identity untold = {.of = "trace"}; /* text does not tell its kernel */
    int bad = import_names_compare(&s->names, &untold, e);
    kernel_import_use_symbols(s->import, import_names_symbols(&s->names));
    while ((more = bad ? bad : trace_lines_next(lines, &line, &len, e)) > 0)
        text_import_line(t, line, len);
    text_import_end(t);
    text_import_free(t);
    trace_lines_free(lines);
    kernel_import_end(s->import, (int64_t)(packed_input_written_ns(in) - kernel_import_last_ns(s->import)));
    return more;
}

static int find_names(void *arg, const struct perf_data_about *about, struct error *e)
{
    struct session *s = arg;
    struct kernel_identity kernel = {.of = "trace"};
    snprintf(kernel.release, sizeof(kernel.release), "%s", about->release);
    int bad = import_names_check(&s->names, about, s->written_ns, e);
    bad = bad ? bad : import_names_compare(&s->names, &kernel, e);
    kernel_import_use_symbols(s->import, import_names_symbols(&s->names));
    return bad;
}

/* Of a packed file that is cut, what there is of it is read all the same. */
static int read_perf(struct session *s, struct packed_input *in, struct error *e)
{
    int fd;
    uint64_t bytes;
    struct perf_data *p;
    struct error later;
    s->written_ns = packed_input_written_ns(in);
    int cut = packed_input_file(in, &fd, &bytes, e);
    int bad = cut && !bytes ? cut : perf_data_open(&p, fd, bytes, s->q->file, cut ? &later : e);
    if (bad)
        return cut ? cut : bad;
    bad = perf_import_read(s->import, p, find_names, s, cut ? &later : e);
    const struct perf_data_about *about = perf_data_about(p);
    kernel_import_end(s->import, about->has_realtime ? about->realtime_ns
                                                     : (int64_t)(packed_input_written_ns(in) -
                                                                 kernel_import_last_ns(s->import)));
    perf_data_close(p);
    return cut ? cut : bad;
}

static int find_format(struct session *s, struct packed_input *in, struct error *e)
{
    const uint8_t *bytes;
    size_t n;
    int bad = packed_input_peek(in, &bytes, &n, e);
    const bool is_perf =
        n >= PERF_DATA_MAGIC_BYTES && (!memcmp(bytes, PERF_DATA_MAGIC, PERF_DATA_MAGIC_BYTES) ||
                                       !memcmp(bytes, PERF_DATA_MAGIC_OTHER, PERF_DATA_MAGIC_BYTES));
    const bool is_dat =
        n >= TRACING_DATA_MAGIC_BYTES && !memcmp(bytes, TRACING_DATA_MAGIC, TRACING_DATA_MAGIC_BYTES);
    s->format = s->q->format != BY_CONTENT ? s->q->format : is_perf ? PERF_DATA : is_dat ? TRACE_DAT : TEXT;
    return bad;
}

static int read_saved(struct session *s, const struct trace_saved *saved, struct error *e)
{
    struct kernel_identity kernel = {.of = "trace", .build_id_len = saved->build_id_len};
    memcpy(kernel.build_id, saved->build_id, saved->build_id_len);
    snprintf(kernel.release, sizeof(kernel.release), "%s", saved->release);
    import_names_take(&s->names, &saved->formats.kallsyms);
    kernel_import_use_symbols(s->import, import_names_symbols(&s->names));
    int bad = import_names_compare(&s->names, &kernel, e);
    bad = bad ? bad : page_import_read(s->import, saved, s->q->file, e);
    kernel_import_end(s->import, saved->has_realtime
                                     ? saved->realtime_ns
                                     : (int64_t)(s->written_ns - kernel_import_last_ns(s->import)));
    return bad;
}

static int read_folder(struct session *s, struct error *e)
{
    struct trace_saved saved;
    int bad = trace_folder_open(&saved, s->q->file, e);
    bad = bad ? bad : read_saved(s, &saved, e);
    trace_saved_release(&saved);
    return bad;
}

/* Of a packed file that is cut, what there is of it is read all the same. */
static int read_dat(struct session *s, struct packed_input *in, struct error *e)
{
    int fd;
    uint64_t bytes;
    struct error later;
    struct trace_saved saved = {.own_tid = 0};
    s->written_ns = packed_input_written_ns(in);
    int cut = packed_input_file(in, &fd, &bytes, e);
    int bad = cut && !bytes ? cut : trace_dat_open(&saved, fd, bytes, s->q->file, cut ? &later : e);
    bad = bad ? bad : read_saved(s, &saved, cut ? &later : e);
    trace_saved_release(&saved);
    return cut ? cut : bad;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Of a damaged file, what came before is accounted. */
static int read_trace(struct session *s, struct error *e)
{
    struct packed_input *in;
    s->format = s->q->format;
    if (s->format == RAW || (s->format == BY_CONTENT && is_folder(s->q->file))) {
        s->format = RAW;
        return read_folder(s, e);
    }
    int bad = packed_input_open(&in, s->q->file, e);
    if (bad)
        return bad;
    if (packed_input_is(in, s->q->output))
        bad = error_set(e, EINVAL, "%s is the trace that is read: write to another file", s->q->output);
    bad = bad ? bad : find_format(s, in, e);
    if (!bad)
        bad = s->format == PERF_DATA   ? read_perf(s, in, e)
              : s->format == TRACE_DAT ? read_dat(s, in, e)
                                       : read_text(s, in, e);
    packed_input_close(in);
    return bad;
}

/* Neither build id nor release tells that the source is that of the traced kernel. */
static bool is_unchecked(const struct session *s)
{
    return s->names.source && s->names.vmlinux.unchecked;
}

static int store(const struct session *s, struct error *e)
{
    struct recording *r;
    struct kernel_capture *c = kernel_import_capture(s->import);
    int bad = recording_create(&r, s->q->output, s->q->force, e);
    if (bad)
        return bad;
    const struct kmem_totals *t = kmem_accounts_totals(c->accounts);
    bad = recording_set_number(r, RECORDING_PERIOD, 1, e);
    bad = bad ? bad : recording_set_number(r, RECORDING_STARTED, (int64_t)t->first_ns + c->realtime_ns, e);
    if (!bad && is_unchecked(s))
        bad = recording_set_text(r, KERNEL_STORE_UNCHECKED, s->q->vmlinux, e);
    bad = bad ? bad : kernel_store_moment(r, c, true, e);
    bad =
        bad ? bad
            : kernel_store_end(r, c, sources[s->format], (uint64_t)((int64_t)t->last_ns + c->realtime_ns), e);
    struct error closing = {""};
    int closed = recording_close(r, bad ? &closing : e);
    return bad ? bad : closed;
}

/* A line for each thing that the trace lacks. */
static void add_lacks(struct buf *b, const struct kernel_import_counts *n, bool named, bool unchecked)
{
    const struct {
        uint64_t n;
        const char *words;
    } lacks[] = {
        {n->lost, "event{s} {is|are} missing in the trace: live figures may be too high or too low"},
        {n->lost_unknown, "place{s} at which events are missing, the trace does not say how many"},
        {n->broken, "line{s} or record{s} of events {was|were} not understood"},
        {n->sampled, "kind{s} of events {was|were} only sampled: most events are missing"},
        {n->without_address, "event{s} {hides|hide} the object's address and {was|were} left out"},
        {n->late, "event{s} {is|are} older than the one before"},
        {n->reversed,
         "pair{s} of events {was|were} put into the other order: each CPU has a clock of its own"},
        {n->ticks, "event{s} {has|have} ticks of a clock in place of a time: durations mean nothing"},
        {n->without_allocated,
         "allocation{s} {does|do} not say what was allocated: the requested bytes stand for it"},
        {n->without_name,
         named ? "event{s} {has|have} an address that --kallsyms does not name"
               : "event{s} {has|have} an address in place of a name: give --kallsyms FILE of that kernel"},
        {n->unread_buffers,
         "file{s} {has|have} events of several instances: only those of the first are read"},
        {n->other_calls,
         "event{s} {is|are} by calls beyond the first 262,144 different ones: they share a row"},
        {n->without_stack,
         "allocation{s} {is|are} shown without a stack: it was not found, or lacks the call"},
    };
    size_t before = b->len;
    for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
        if (!lacks[i].n)
            continue;
        buf_addstr(b, b->len == before ? "\n  lacks      " : "\n             ");
        text_add_words(b, lacks[i].n, lacks[i].words);
    }
    if (unchecked)
        buf_printf(
            b,
            "%sany word on its kernel: --vmlinux may be of another one, and its files are used all the same",
            b->len == before ? "\n  lacks      " : "\n             ");
}

static void say(const struct session *s)
{
    struct kernel_import *i = s->import;
    const struct request *q = s->q;
    const struct kmem_totals *t = kmem_accounts_totals(kernel_import_capture(i)->accounts);
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    buf_printf(&b, "the kernel, %s, ", units_format_duration(took, (double)(t->last_ns - t->first_ns)));
    text_add_number(&b, t->events, "event");
    kernel_store_add_summary(&b, kernel_import_capture(i));
    add_lacks(&b, kernel_import_counts(i), q->kallsyms != NULL, is_unchecked(s));
    fprintf(stderr,
            "allium: %s\n  next       allium report %s\n             allium sys kmem --from %s --by comm\n",
            buf_str(&b), q->output, q->output);
    buf_release(&b);
}

static int import(struct session *s)
{
    struct error e = {""};
    const struct request *q = s->q;
    int bad = read_trace(s, &e);
    const uint64_t events = kmem_accounts_totals(kernel_import_capture(s->import)->accounts)->events;
    if (bad && !(q->partial && events))
        return command_fail(EXIT_FAILED, "%s%s", e.text, events ? "; --partial keeps what was read" : "");
    if (bad)
        command_fail(0, "%s; what was read before is kept", e.text);
    if (!events)
        return command_fail(EXIT_FAILED,
                            "%s has no kmem event (kmalloc, kfree, kmem_cache_alloc, kmem_cache_free) in "
                            "a form that is understood",
                            q->file);
    if (store(s, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (!q->quiet)
        say(s);
    sys_vmlinux_report(&s->names.vmlinux, q->quiet);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct error e = {""};
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    if (q.boot)
        return sys_import_boot(&(struct sys_import_boot){
            .output = q.output, .vmlinux = q.vmlinux, .force = q.force, .quiet = q.quiet});
    struct session s = {.q = &q};
    if (import_names_open(&s.names, q.kallsyms, q.vmlinux, &e)) {
        code = command_fail(EXIT_FAILED, "%s", e.text);
    } else {
        s.import = kernel_import_new();
        kernel_import_use_source(s.import, s.names.source);
        wrapper_lists_read_helpers(&s.helpers);
        kernel_import_capture(s.import)->helpers = &s.helpers;
        code = import(&s);
        kernel_import_free(s.import);
    }
    import_names_release(&s.names);
    wrappers_release(&s.helpers);
    return code;
}
