/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_PACK_H
#define COLLECT_TRACE_PACK_H

/*
 * What the script of `allium sys import --script` packs: the folder, or a tar archive of it, with
 *
 *     trace                      the file of tracefs
 *     kallsyms                   a copy of /proc/kallsyms; may be missing
 *     state/proc/slabinfo ...    copies of files, under their paths
 *
 * An archive is read without unpacking it: only the trace goes to a temporary file without a name.
 *
 * Runs in: the tool. Threads: one. Owns: texts and the open trace, until trace_pack_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "collect/kernel/kernel_state.h"
#include "collect/kernel/trace/packed_input.h"

struct trace_pack {
    struct packed_input *trace;
    struct buf kallsyms; /* empty: not there */
    struct kernel_state state;
    uint64_t written_ns; /* when the trace was; CLOCK_REALTIME */
};

/** Returns whether the folder is such a one. */
bool trace_pack_is_folder(const char *path);
/** Returns whether these are the first bytes of a tar archive. */
bool trace_pack_is_archive(const uint8_t *bytes, size_t n);

/** Opens the folder. Returns 0, or -errno with a line. The caller releases `p` in any case. */
int trace_pack_open(struct trace_pack *p, const char *path, struct error *e);
/**
 * Reads the archive. `path` must outlive `p`. Returns as above: -EBADMSG: it is damaged, cut, or another archive; if
 * `p->trace` is not NULL then, what came before that can be read.
 */
int trace_pack_read(struct trace_pack *p, struct packed_input *archive, const char *path, struct error *e);
void trace_pack_release(struct trace_pack *p);

#endif
