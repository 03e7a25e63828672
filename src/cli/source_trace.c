/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/source_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/debuginfod.h"
#include "cli/source.h"
#include "collect/ledger/profile_names.h"
#include "collect/trace/trace_profile.h"
#include "store/profile_load.h"

/* The recording tells the images, where they have their modules, and most names. A trace that was cut short may be
 * without one. */
static int load_recording(struct profile **p, const char *path, const uint64_t *until_ns, struct error *e)
{
    if (access(path, F_OK) && errno == ENOENT) {
        *p = profile_new();
        return 0;
    }
    return recording_load(p, path, until_ns, e);
}

/* Locations that are only in the trace: the recording was cut short. */
static void add_names(struct profile *p)
{
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    symbols_use_servers(symbols, debuginfod_servers());
    profile_names_apply(symbols, p, "");
    symbols_free(symbols);
    debuginfod_report();
    free(cache);
}

/* Images that ran at that time are shown as of then. */
static void set_time(struct profile *p, uint64_t until_ns)
{
    vec_each (struct profile_image, i, &p->images)
        if (i->past)
            i->taken_ns = until_ns;
    p->taken_ns = until_ns;
}

/* Appends the path of the recording. `folder` may also be one of the two folders of CTF in a trace. */
static void add_recording(struct buf *path, const char *folder)
{
    buf_printf(path, "%s/metadata", folder);
    const bool is_inner = !access(buf_str(path), F_OK);
    buf_reset(path);
    buf_printf(path, "%s/%s" SOURCE_TRACE_RECORDING, folder, is_inner ? "../" : "");
}

int source_trace_names(struct profile **p, const char *folder, struct error *e)
{
    struct buf path = BUF_INIT;
    add_recording(&path, folder);
    const int bad = load_recording(p, buf_str(&path), NULL, e);
    buf_release(&path);
    return bad;
}

int source_trace_read(struct profile **p, const char *folder, const char *time, struct error *e)
{
    struct buf path = BUF_INIT;
    uint64_t until_ns = UINT64_MAX;
    struct trace_profile_counts counts;
    *p = NULL;
    buf_printf(&path, "%s/" SOURCE_TRACE_RECORDING, folder);
    int bad = time ? source_when(buf_str(&path), time, &until_ns, e) : 0;
    bad = bad ? bad : load_recording(p, buf_str(&path), time ? &until_ns : NULL, e);
    buf_release(&path);
    if (!bad && time)
        set_time(*p, until_ns);
    bad = bad ? bad : trace_profile_read(*p, folder, until_ns, &counts, e);
    if (bad) {
        profile_free(*p);
        *p = NULL;
        return bad;
    }
    (*p)->trace = (struct profile_trace){
        .known = true, .cut_packets = counts.losses.cut_packets, .unknown_frees = counts.unknown_frees};
    if ((*p)->images.len)
        (*p)->images.at[0].losses[PROFILE_LOST_SAMPLES] += counts.losses.events;
    add_names(*p);
    return 0;
}
