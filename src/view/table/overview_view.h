/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_OVERVIEW_VIEW_H
#define VIEW_OVERVIEW_VIEW_H

/* A machine's memory on one screen, or as JSON. Unusual facts come first, in words. See allium-sys(1). */

#include "model/overview/mapping.h"
#include "model/overview/overview.h"
#include "view/text/sink.h"
#include "view/text/text.h"

/** `top`: number of OOM kills to show; the other lists are shown whole. */
void overview_write(struct sink *out, const struct overview *m, uint32_t top, const struct text_style *style);
/**
 * Writes what fits a terminal of so many rows: the notes, memory, swap, pressure, rates, and the largest processes and
 * cgroups, as many as there is room for. The last line does not end with a newline.
 */
void overview_brief_write(struct sink *out, const struct overview *m, unsigned rows,
                          const struct text_style *style);
/** Writes the same in one line: schema allium-sys, see allium-json(5). */
void overview_json_write(struct sink *out, const struct overview *m, uint32_t top);

/** Writes one process and the first `top` (0: all) of its mappings; none if it did not answer. */
void mappings_write(struct sink *out, const struct overview_process *p, const struct mappings *maps,
                    uint32_t top, const struct text_style *style);
/** Writes the same in one line: schema allium-sys-process. */
void mappings_json_write(struct sink *out, uint64_t taken_ns, const struct overview_process *p,
                         const struct mappings *maps, uint32_t top);

#endif
