/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_LTTNG_RULES_H
#define VIEW_LTTNG_RULES_H

/*
 * Which event of LTTng stands for an event of allium, and where its fields come from: the events of the libc wrapper of
 * LTTng-UST 2.13, and those of lttng-modules. An event that no rule names keeps its name and fields. See allium-ctf(7).
 *
 * Runs in: the tool. Pure data.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/event_class.h"

enum lttng_origin {
    LTTNG_FIELD,  /* the field `from` of the event; 0 or "" if the event lacks it */
    LTTNG_NUMBER, /* `number` */
    LTTNG_THREAD, /* the thread of the event */
    LTTNG_NAME,   /* the name of that thread */
    LTTNG_FAULT,  /* the error code of a page fault, from `mode` and `access` */
};

struct lttng_field {
    struct event_field as; /* EVENT_TEXT of 0 bytes: a string that ends with NUL, of any length */
    enum lttng_origin origin;
    const char *from;
    uint64_t number;
};

struct lttng_rule {
    const char *ours; /* NULL: LTTng declares this event, and allium has none that it stands for */
    const char *when; /* a field that has to be `is`; NULL: none */
    int64_t is;
    const char *theirs;
    /* Some fields are known only when the call ends. The event `waits` for a later one of its thread that `completes`
     * it: then its fields are written again, from that later event. */
    bool waits;
    const char *completes;
    bool if_failed; /* completes only after a failure: the address is 0, and the size is not */
    const struct lttng_field *fields;
    uint32_t n_fields;
};

/** Returns the rules for the domain "ust" or "kernel", and sets *n to their number. */
const struct lttng_rule *lttng_rules(bool kernel, uint32_t *n);

#endif
