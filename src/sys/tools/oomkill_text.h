/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_OOMKILL_TEXT_H
#define SYS_OOMKILL_TEXT_H

/*
 * An event of `allium sys oomkill` as a few lines that somebody reads who was woken by it.
 *
 * Runs in: the tool. Pure, but for oomkill_loads(), which may read a file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "bpf/oomkill.h"

/** What is told besides the event itself. */
struct oomkill_told {
    double loads[3];
    bool loads_known;
    uint64_t loads_later_ns;                         /* after the event; 0: of that moment */
    struct oomkill_process largest[OOMKILL_LARGEST]; /* the largest first */
    uint32_t n_largest;
    const char *gfp, *container; /* NULL: not known; borrowed */
};

/** The load averages of the event, or, where the kernel's were out of reach, those that the system tells now. */
void oomkill_loads(const struct oomkill_event *e, struct oomkill_told *told);
/** The largest processes in their order. */
void oomkill_largest(const struct oomkill_event *e, struct oomkill_told *told);
/** Resident pages. */
int64_t oomkill_resident(const struct oomkill_process *p);
/** The name of a process, of which any byte may be a newline or worse. */
void oomkill_add_comm(struct buf *b, const char comm[static SYS_COMM_BYTES]);
/** "/batch/job-7"; "/.../c/b/a" where more is above; "/": the root. */
void oomkill_add_path(struct buf *b, const struct oomkill_path *path);
/** The story: lines that end with \n, the first of them a sentence. */
void oomkill_text(struct buf *b, const struct oomkill_event *e, const struct oomkill_told *told);

#endif
