/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_OOMKILL_TEXT_H
#define SYS_OOMKILL_TEXT_H

/* An event of `allium sys oomkill` as a few lines for a person who was woken by it. */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "bpf/oomkill.h"

/** Facts besides the event itself. */
struct oomkill_context {
    double loads[3];
    bool loads_known;
    uint64_t loads_later_ns;                         /* time of reading after the event; 0: at the event */
    struct oomkill_process largest[OOMKILL_LARGEST]; /* sorted by size, largest first */
    uint32_t n_largest;
    const char *gfp, *container; /* NULL: not known; borrowed */
};

/** Gets the load averages at the event or, if the kernel's could not be read then, the present ones. */
void oomkill_loads(const struct oomkill_event *e, struct oomkill_context *context);
/** Sorts out the largest processes. */
void oomkill_largest(const struct oomkill_event *e, struct oomkill_context *context);
/** Returns the resident pages. */
int64_t oomkill_resident(const struct oomkill_process *p);
/** Appends the name of a process, which may contain newlines and control characters. */
void oomkill_add_comm(struct buf *b, const char comm[static SYS_COMM_BYTES]);
/** Appends "/batch/job-7"; "/.../c/b/a" if the path has more levels; "/": the root. */
void oomkill_add_path(struct buf *b, const struct oomkill_path *path);
/** Returns the report: lines that end with \n; the first one is a sentence. */
void oomkill_text(struct buf *b, const struct oomkill_event *e, const struct oomkill_context *context);

#endif
