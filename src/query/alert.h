/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_ALERT_H
#define QUERY_ALERT_H

/*
 * The conditions of `watch --alert`. A text becomes a list of terms, and each term is evaluated at every
 * snapshot. Pure: no I/O, no clock, no globals.
 *
 *     alert = term { "or" term }
 *     term  = ( "live" ">" SIZE | "growing" ) [ "for" DURATION ]
 *
 * For `live`, DURATION is how long the condition must have held at every snapshot. Growth always spans some
 * time: for `growing`, DURATION is the least length of that time. It is an hour if none is given, because
 * memory that a service adds while it warms up is growth, too.
 *
 * Runs in: the tool. Threads: a parsed alert never changes. Owns: an alert owns all that it points to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ALERT_TERMS_MAX  8
#define ALERT_GROWING_NS 3600000000000ull /* of `growing` without a DURATION */

enum alert_kind {
    ALERT_LIVE_ABOVE,
    ALERT_GROWING,
};

struct alert_term {
    enum alert_kind kind;
    uint64_t bytes;  /* of live */
    uint64_t for_ns; /* 0: at once */
    char *text;      /* as it was written, without blanks around it */
};

/** The values that terms are compared with, at one snapshot. */
struct alert_facts {
    uint64_t time_ns;  /* time of the snapshot; the clock may go back */
    double live_bytes; /* lower bound of the live bytes */
    /* the longest time over which something has grown and still does; 0: nothing grows */
    uint64_t growing_ns;
};

/** The state of one term between snapshots; zero at first. */
struct alert_state {
    bool holds;
    uint64_t since_ns; /* since when `holds` has had its value at every snapshot */
    bool reported;
};

struct alert {
    struct alert_term terms[ALERT_TERMS_MAX];
    size_t n;
};

/**
 * Returns 0, or -EINVAL with nothing to release. Then `e` says in one line what is wrong, where, and what to
 * write instead, and *column is the place, in bytes from 1. `e` and `column` may be NULL.
 */
int alert_parse(struct alert *a, const char *text, struct error *e, size_t *column);
void alert_release(struct alert *a);
/** Evaluates the term at one more snapshot. Returns true if the alert is to be reported now. An alert re-arms
 * once its condition has been false for as long as it had to be true. */
bool alert_judge(const struct alert_term *t, struct alert_state *s, const struct alert_facts *f);

#endif
