/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/import_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/sys/import/import_moment.h"
#include "collect/kernel/trace/perf_data.h"
#include "collect/kernel/trace/trace_lines.h"
#include "collect/kernel/trace/trace_pack.h"
#include "collect/kernel/trace/trace_saved.h"
#include "model/kernel/page_bytes.h"
#include "sys/record/import/allocinfo_import.h"
#include "sys/record/import/page_import.h"
#include "sys/record/import/perf_import.h"
#include "sys/record/import/text_import.h"

const struct word import_format_words[] = {{"text", IMPORT_TEXT},
                                           {"perf.data", IMPORT_PERF_DATA},
                                           {"raw", IMPORT_RAW},
                                           {"trace.dat", IMPORT_TRACE_DAT},
                                           {"allocinfo", IMPORT_ALLOCINFO},
                                           {"slab_traces", IMPORT_SLAB_TRACES},
                                           {"page_owner", IMPORT_PAGE_OWNER},
                                           {NULL, 0}};

int import_trace_use_names(struct import_trace *t, const struct kernel_identity *kernel, struct error *e)
{
    const char *folder = t->request->state;
    struct kernel_state given = {.texts = {0}};
    int bad = import_names_compare(&t->names, kernel, e);
    if (!bad && folder)
        kernel_state_read(&given, strcmp(folder, "/") ? folder : "", KERNEL_STATE_KERNEL);
    if (!bad)
        import_names_use_source(&t->names, kernel_state_text(&given, KERNEL_STATE_CONFIG));
    kernel_import_use_symbols(t->import, import_names_symbols(&t->names));
    kernel_import_use_source(t->import, t->names.source);
    kernel_state_release(&given);
    return bad;
}

static int read_text(struct import_trace *t, struct packed_input *in, struct error *e)
{
    struct trace_lines *lines = trace_lines_new(in);
    struct text_import *text = text_import_new(t->import);
    const char *line;
    size_t len;
    int more;
    struct kernel_identity untold = {.of = "trace"}; /* text does not tell its kernel */
    int bad = import_trace_use_names(t, &untold, e);
    while ((more = bad ? bad : trace_lines_next(lines, &line, &len, e)) > 0)
        text_import_line(text, line, len);
    text_import_end(text);
    text_import_free(text);
    trace_lines_free(lines);
    return more;
}

/* The clock of the trace is not the time of day: its last event was when it was written. */
static void end_text(struct import_trace *t, uint64_t written_ns)
{
    kernel_import_end(t->import, (int64_t)(written_ns - kernel_import_last_ns(t->import)));
}

static int read_text_file(struct import_trace *t, struct packed_input *in, struct error *e)
{
    int bad = read_text(t, in, e);
    end_text(t, packed_input_written_ns(in));
    return bad;
}

#define ALLOCINFO_MAGIC     "allocinfo - version"
#define ALLOCINFO_BYTES_MAX (64u << 20) /* kernels have some 5,000 lines of 100 bytes */
#define READ_BYTES          (64u << 10)

static int read_allocinfo(struct import_trace *t, struct packed_input *in, struct error *e)
{
    struct buf text = BUF_INIT;
    char *bytes = mem_alloc(READ_BYTES);
    size_t taken = 0;
    int bad;
    do {
        bad = packed_input_read(in, bytes, READ_BYTES, &taken, e);
        buf_add(&text, bytes, bad ? 0 : taken);
    } while (!bad && taken && text.len < ALLOCINFO_BYTES_MAX);
    const int parsed = allocinfo_import_read(t->import, buf_str(&text), text.len, packed_input_written_ns(in),
                                             bad ? NULL : e);
    free(bytes);
    buf_release(&text);
    return bad ? bad : parsed;
}

static struct kernel_identity identity_of(const struct perf_data_about *about)
{
    struct kernel_identity kernel = {.of = "trace", .build_id_len = about->build_id_len};
    memcpy(kernel.build_id, about->build_id, about->build_id_len);
    snprintf(kernel.release, sizeof(kernel.release), "%s", about->release);
    return kernel;
}

static int find_names(void *arg, const struct perf_data_about *about, struct error *e)
{
    struct import_trace *t = arg;
    const struct kernel_identity kernel = identity_of(about);
    int bad = import_names_check(&t->names, about, t->written_ns, e);
    return bad ? bad : import_trace_use_names(t, &kernel, e);
}

/* Of a packed file that is cut, what there is of it is read all the same. */
static int read_perf(struct import_trace *t, struct packed_input *in, struct error *e)
{
    int fd;
    uint64_t bytes;
    struct perf_data *p;
    struct error later;
    t->written_ns = packed_input_written_ns(in);
    int cut = packed_input_file(in, &fd, &bytes, e);
    int bad = cut && !bytes ? cut : perf_data_open(&p, fd, bytes, t->request->file, cut ? &later : e);
    if (bad)
        return cut ? cut : bad;
    bad = perf_import_read(t->import, p, find_names, t, cut ? &later : e);
    const struct perf_data_about *about = perf_data_about(p);
    const struct kernel_identity kernel = identity_of(about); /* in a pipe, build ids come last */
    bad = bad ? bad : import_names_compare(&t->names, &kernel, cut ? &later : e);
    kernel_import_end(t->import, about->has_realtime ? about->realtime_ns
                                                     : (int64_t)(packed_input_written_ns(in) -
                                                                 kernel_import_last_ns(t->import)));
    perf_data_close(p);
    return cut ? cut : bad;
}

static int find_format(struct import_trace *t, struct packed_input *in, struct error *e)
{
    const uint8_t *bytes;
    size_t n;
    int bad = packed_input_peek(in, &bytes, &n, e);
    const bool is_perf =
        n >= PERF_DATA_MAGIC_BYTES && (!memcmp(bytes, PERF_DATA_MAGIC, PERF_DATA_MAGIC_BYTES) ||
                                       !memcmp(bytes, PERF_DATA_MAGIC_OTHER, PERF_DATA_MAGIC_BYTES));
    const bool is_dat =
        n >= TRACING_DATA_MAGIC_BYTES && !memcmp(bytes, TRACING_DATA_MAGIC, TRACING_DATA_MAGIC_BYTES);
    const bool is_allocinfo =
        n >= strlen(ALLOCINFO_MAGIC) && !memcmp(bytes, ALLOCINFO_MAGIC, strlen(ALLOCINFO_MAGIC));
    const char *text = n ? (const char *)bytes : "";
    t->format = t->request->format != IMPORT_BY_CONTENT ? t->request->format
                : is_allocinfo                          ? IMPORT_ALLOCINFO
                : page_owner_is_text(text, n)           ? IMPORT_PAGE_OWNER
                : slab_traces_is_text(text, n)          ? IMPORT_SLAB_TRACES
                : is_perf                               ? IMPORT_PERF_DATA
                : is_dat                                ? IMPORT_TRACE_DAT
                : trace_pack_is_archive(bytes, n)       ? IMPORT_ARCHIVE
                                                        : IMPORT_TEXT;
    return bad;
}

static int read_saved(struct import_trace *t, const struct trace_saved *saved, struct error *e)
{
    struct kernel_identity kernel = {.of = "trace", .build_id_len = saved->build_id_len};
    memcpy(kernel.build_id, saved->build_id, saved->build_id_len);
    snprintf(kernel.release, sizeof(kernel.release), "%s", saved->release);
    import_names_take(&t->names, &saved->formats.kallsyms);
    int bad = import_trace_use_names(t, &kernel, e);
    bad = bad ? bad : page_import_read(t->import, saved, t->request->file, e);
    kernel_import_end(t->import, saved->has_realtime
                                     ? saved->realtime_ns
                                     : (int64_t)(t->written_ns - kernel_import_last_ns(t->import)));
    return bad;
}

static int read_folder(struct import_trace *t, struct error *e)
{
    struct trace_saved saved;
    int bad = trace_folder_open(&saved, t->request->file, e);
    bad = bad ? bad : read_saved(t, &saved, e);
    raw_states_load(&t->states, t->request->file);
    trace_saved_release(&saved);
    return bad;
}

/* Of a packed file that is cut, what there is of it is read all the same. */
static int read_dat(struct import_trace *t, struct packed_input *in, struct error *e)
{
    int fd;
    uint64_t bytes;
    struct error later;
    struct trace_saved saved = {.own_tid = 0};
    t->written_ns = packed_input_written_ns(in);
    int cut = packed_input_file(in, &fd, &bytes, e);
    int bad = cut && !bytes ? cut : trace_dat_open(&saved, fd, bytes, t->request->file, cut ? &later : e);
    bad = bad ? bad : read_saved(t, &saved, cut ? &later : e);
    trace_saved_release(&saved);
    return cut ? cut : bad;
}

static int read_pack(struct import_trace *t, struct trace_pack *p, struct error *e)
{
    t->format = IMPORT_TEXT;
    import_names_take(&t->names, &p->kallsyms);
    int bad = read_text(t, p->trace, e);
    end_text(t, p->written_ns);
    struct raw_state *s = vec_push(&t->states.moments);
    *s = (struct raw_state){kernel_import_capture(t->import)->ended_ns, p->state};
    p->state = (struct kernel_state){.texts = {0}};
    return bad;
}

/* Of an archive that is cut, what there is of the trace is read all the same. */
static int read_archive(struct import_trace *t, struct packed_input *in, struct error *e)
{
    struct trace_pack p;
    struct error later;
    int cut = trace_pack_read(&p, in, t->request->file, e);
    int bad = p.trace ? read_pack(t, &p, cut ? &later : e) : cut;
    trace_pack_release(&p);
    return cut ? cut : bad;
}

static int read_pack_folder(struct import_trace *t, struct error *e)
{
    struct trace_pack p;
    int bad = trace_pack_open(&p, t->request->file, e);
    bad = bad ? bad : read_pack(t, &p, e);
    trace_pack_release(&p);
    return bad;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Of a damaged file, what came before is accounted. */
static int read_file(struct import_trace *t, struct error *e)
{
    struct packed_input *in;
    t->format = t->request->format;
    if (t->format == IMPORT_BY_CONTENT && trace_pack_is_folder(t->request->file))
        return read_pack_folder(t, e);
    if ((t->format == IMPORT_BY_CONTENT || t->format == IMPORT_SLAB_TRACES) &&
        slab_traces_is_folder(t->request->file)) {
        t->format = IMPORT_SLAB_TRACES;
        return import_moment_slab_folder(t, e);
    }
    if (t->format == IMPORT_RAW || (t->format == IMPORT_BY_CONTENT && is_folder(t->request->file))) {
        t->format = IMPORT_RAW;
        return read_folder(t, e);
    }
    int bad = packed_input_open(&in, t->request->file, e);
    if (bad)
        return bad;
    if (t->request->output && packed_input_is(in, t->request->output))
        bad = error_set(e, EINVAL, "%s is the trace that is read: write to another file", t->request->output);
    bad = bad ? bad : find_format(t, in, e);
    if (!bad)
        bad = t->format == IMPORT_PERF_DATA     ? read_perf(t, in, e)
              : t->format == IMPORT_TRACE_DAT   ? read_dat(t, in, e)
              : t->format == IMPORT_ALLOCINFO   ? read_allocinfo(t, in, e)
              : t->format == IMPORT_SLAB_TRACES ? import_moment_slab_file(t, in, e)
              : t->format == IMPORT_PAGE_OWNER  ? import_moment_pages(t, in, e)
              : t->format == IMPORT_ARCHIVE     ? read_archive(t, in, e)
                                                : read_text_file(t, in, e);
    packed_input_close(in);
    return bad;
}

/* Files that the traced machine had, or their copies, as they lie in /proc and /sys. */
static int read_state(struct import_trace *t, struct error *e)
{
    const char *folder = t->request->state;
    if (!folder)
        return 0;
    struct raw_state *s = vec_push(&t->states.moments);
    *s = (struct raw_state){.taken_ns = kernel_import_capture(t->import)->ended_ns};
    kernel_state_read(&s->state, strcmp(folder, "/") ? folder : "",
                      KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
    return s->state.texts.len
               ? 0
               : error_set(e, ENODATA, "--state: %s has no file of a kernel, such as %s/proc/slabinfo",
                           folder, folder);
}

/* What the trace itself tells counts more. */
static void use_states(struct import_trace *t)
{
    vec_each (const struct raw_state, s, &t->states.moments) {
        if (kernel_import_lacks_page_bytes(t->import))
            kernel_import_use_page_bytes(t->import,
                                         page_bytes_find(kernel_state_text(&s->state, "/proc/meminfo"),
                                                         kernel_state_text(&s->state, "/proc/vmstat")));
        const char *text = kernel_state_text(&s->state, "/proc/pagetypeinfo");
        if (text && t->format != IMPORT_PAGE_OWNER) /* which has names of its own */
            kernel_import_use_types(t->import, text);
    }
}

int import_trace_read(struct import_trace *t, const struct import_request *q)
{
    struct error e = {""};
    *t = (struct import_trace){.request = q, .import = kernel_import_new()};
    if (q->span.given)
        kernel_import_set_span(t->import, q->span.from_ns, q->span.to_ns);
    const struct import_names_given given = {q->kallsyms, q->vmlinux, q->source};
    if (import_names_open(&t->names, &given, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    wrapper_lists_read_helpers(&t->helpers);
    kernel_import_capture(t->import)->helpers = &t->helpers;
    int bad = read_file(t, &e);
    const uint64_t events = kernel_import_events(t->import);
    if (bad && !(q->partial && events))
        return command_fail(EXIT_FAILED, "%s%s", e.text, events ? "; --partial keeps what was read" : "");
    if (bad)
        command_fail(0, "%s; what was read before is kept", e.text);
    if (!events)
        return command_fail(EXIT_FAILED,
                            "%s has no kmem event (kmalloc, kfree, kmem_cache_alloc, kmem_cache_free, "
                            "mm_page_alloc ...) in a form that is understood",
                            q->file);
    if (read_state(t, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    use_states(t);
    return -1;
}

void import_trace_release(struct import_trace *t)
{
    kernel_import_free(t->import);
    import_names_release(&t->names);
    wrappers_release(&t->helpers);
    raw_states_release(&t->states);
    slab_traces_release(&t->slabs);
    page_owner_rows_release(&t->owners);
}
