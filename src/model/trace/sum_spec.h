/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_SUM_SPEC_H
#define MODEL_SUM_SPEC_H

/*
 * What --sum asks for: EVENT[.FIELD][,by=FIELD[,FIELD]...]. Events of this name are added up for each value of the
 * fields of `by`; of FIELD there are sum, smallest, largest and a histogram.
 *
 * Runs in: the tool. Threads: pure. Owns: a copy of the text, until sum_spec_release().
 */

#include <stdbool.h>

#include "base/error.h"

#define SUM_SPEC_BY_MAX 4u

struct sum_spec {
    char *text;        /* what the members below point into */
    const char *event; /* "malloc", "alloc", "shop:order_done" */
    const char *field; /* NULL: events are only counted */
    unsigned n_by;
    const char *by[SUM_SPEC_BY_MAX];
};

/** Returns 0, or -EINVAL with what is wrong and nothing to release. */
int sum_spec_parse(struct sum_spec *s, const char *text, struct error *e);
void sum_spec_release(struct sum_spec *s);
/** Returns whether the events are those of a program: PROVIDER:NAME. */
bool sum_spec_is_user(const struct sum_spec *s);
/** Returns whether the events are the kernel's: kernel:NAME. */
bool sum_spec_is_kernel(const struct sum_spec *s);
/** Returns whether events of this name (trace_event_name()) are added up. */
bool sum_spec_has(const struct sum_spec *s, const char *event);

#endif
