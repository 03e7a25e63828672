/* SPDX-License-Identifier: BSD-2-Clause */
/* The accounts of a trace as a recording, and what they lack. */
#include "cli/sys/import/import_trace.h"

#include "cli/sys/frag/frag_rows.h"
#include "cli/sys/import/import_moment.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/state_rows.h"
#include "store/recording.h"
#include "symbol/tree/source_finder.h"
#include "view/text/text.h"

/* What recordings say that their events come from. */
static const char *const sources[] = {[IMPORT_TEXT] = "text",
                                      [IMPORT_PERF_DATA] = "perf.data",
                                      [IMPORT_RAW] = "raw",
                                      [IMPORT_TRACE_DAT] = "trace.dat",
                                      [IMPORT_ALLOCINFO] = "allocinfo",
                                      [IMPORT_SLAB_TRACES] = "slab_traces",
                                      [IMPORT_PAGE_OWNER] = "page_owner"};

/* The sites of objects that pin slabs are those of the end. */
static int store_states(struct recording *r, const struct import_trace *t, struct error *e)
{
    int bad = 0;
    const struct kernel_state none = {.texts = {0}};
    const struct kernel_state *before = &none;
    vec_each (const struct raw_state, s, &t->states.moments) {
        bad = bad ? bad : state_rows_put(r, &s->state, before, s->taken_ns, e);
        before = &s->state;
    }
    if (bad || !t->states.moments.len)
        return bad;
    const struct raw_state *last = &t->states.moments.at[t->states.moments.len - 1];
    return frag_rows_put(r, kernel_import_capture(t->import), &last->state, e);
}

int import_trace_store(const struct import_trace *t, const char *path, bool force, struct error *e)
{
    struct recording *r;
    struct kernel_capture *c = kernel_import_capture(t->import);
    int bad = recording_create(&r, path, force, e);
    if (bad)
        return bad;
    bad = recording_set_number(r, RECORDING_PERIOD, 1, e);
    bad = bad ? bad : recording_set_number(r, RECORDING_STARTED, (int64_t)c->began_ns, e);
    if (!bad && import_trace_is_unchecked(t))
        bad = recording_set_text(r, KERNEL_STORE_UNCHECKED, t->request->vmlinux, e);
    bad = bad ? bad : kernel_store_moment(r, c, true, e);
    bad = bad ? bad : store_states(r, t, e);
    bad = bad ? bad : import_moment_store(r, t, e);
    bad = bad ? bad : kernel_store_end(r, c, sources[t->format], c->ended_ns, e);
    struct error closing = {""};
    int closed = recording_close(r, bad ? &closing : e);
    return bad ? bad : closed;
}

/* Which source the files are of, if it may be the wrong one. */
static void add_source(const struct import_trace *t, struct buf *b, const char *begin)
{
    const struct import_names *n = &t->names;
    const char *version = source_finder_version(n->finder);
    buf_printf(b, "%s%s%s: --source is of %s, and its files are used all the same", begin,
               *n->release ? "the source of its kernel, " : "any word on the version of its kernel",
               n->release, *version ? version : "an unknown version");
}

/* A line; the first one has the heading. */
static const char *line_of(bool first)
{
    return first ? "\n  lacks      " : "\n             ";
}

static void add_counts(const struct import_trace *t, struct buf *b)
{
    const struct kernel_import_counts *n = kernel_import_counts(t->import);
    const bool named = t->request->kallsyms != NULL;
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
        {n->without_gfp, "allocation{s} {does|do} not tell {its|their} flags"},
        {n->unnumbered_gfp, "event format{s} {names|name} flags of allocations without the numbers of their "
                            "bits: no row has flags"},
        {n->without_process, "event{s} {does|do} not tell the process: rows by process lack {it|them}"},
        {n->without_cpus, "allocation{s} of percpu memory {has|have} the requested bytes of one CPU: how "
                          "many there are is not "
                          "known"},
        {n->unknown_forms, "kind{s} of events {has|have} a form that is not known, and {was|were} left out"},
        {n->without_name,
         named ? "event{s} {has|have} an address that --kallsyms does not name"
               : "event{s} {has|have} an address in place of a name: give --kallsyms FILE of that kernel"},
        {n->unread_buffers,
         "file{s} {has|have} events of several instances: only those of the first are read"},
        {n->other_calls,
         "event{s} {is|are} by calls beyond the first 262,144 different ones: they share a row"},
        {n->without_size,
         "object{s} of unknown size {counts|count} as 0 bytes: copy CACHE/object_size beside "
         "alloc_traces, or give --state"},
        {n->without_requested,
         "object{s} of kmalloc() of which the kernel does not tell what was requested: the size of the cache "
         "stands for it"},
        {n->without_stack,
         "allocation{s} {is|are} shown without a stack: it was not found, or lacks the call"},
    };
    size_t before = b->len;
    for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
        if (!lacks[i].n)
            continue;
        buf_addstr(b, line_of(b->len == before));
        text_add_words(b, lacks[i].n, lacks[i].words);
    }
}

void import_trace_add_lacks(const struct import_trace *t, struct buf *b)
{
    const size_t before = b->len;
    const struct {
        bool is;
        const char *text;
    } others[] = {
        {import_moment_is(t),
         "all that was freed before: allocated and requested are what is live, and the peak is now"},
        {kernel_import_lacks_page_bytes(t->import),
         "the size of a page: that of this machine stands for it, unless --state tells it"},
        {import_trace_is_unchecked(t),
         "any word on its kernel: --vmlinux may be of another one, and its files are used all the same"},
    };
    add_counts(t, b);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (others[i].is)
            buf_printf(b, "%s%s", line_of(b->len == before), others[i].text);
    if (import_names_differ(&t->names))
        add_source(t, b, line_of(b->len == before));
}

bool import_trace_is_unchecked(const struct import_trace *t)
{
    return t->names.vmlinux.path && t->names.vmlinux.unchecked;
}
