/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CAPTURE_FRAG_H
#define SYS_CAPTURE_FRAG_H

/* What the live objects of a capture say of fragmentation, with the names of their code. Addresses stay here. */

#include "model/kernel/frag_sites.h"
#include "sys/record/kernel_capture.h"

/** Appends a row for each call and cache to a table made by frag_sites_table(); see frag_sites_compute(). */
void kernel_capture_add_frag(const struct kernel_capture *c, const struct memory_state *s, bool follows_freed,
                             struct table *t);

/** Appends who took blocks of other migrate types to a table made by frag_fallbacks_table(); there must be pages. */
void kernel_capture_add_fallbacks(const struct kernel_capture *c, struct table *t);

#endif
