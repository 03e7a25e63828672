/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef QUERY_ALERT_H
#define QUERY_ALERT_H

/*
 * The conditions of `watch --alert`: a text becomes a list of terms, and each term is judged again and again, whenever
 * somebody looks. Pure: no I/O, no clock, no globals.
 *
 *     alert = term { "or" term }
 *     term  = ( "live" ">" SIZE | "growing" ) [ "for" DURATION ]
 *
 * Of live that is how long it has been so at every look. Growth is found in a stretch of time anyhow: there it is how
 * long that must be, and an hour if nothing is said, since what a service adds while it warms up is growth, too.
 *
 * Runs in: the tool. Threads: a parsed alert never changes. Owns: an alert owns all it points to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ALERT_TERMS_MAX  8
#define ALERT_GROWING_NS 3600000000000ull /* of growing without a time */

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

/** What terms are about, at one look. */
struct alert_facts {
    uint64_t time_ns;    /* of the look; may go back */
    double live_bytes;   /* no less than that, for certain */
    uint64_t growing_ns; /* over so long something grows, and lasts; 0: nothing does */
};

/** What is known of one term from look to look; begins as zero. */
struct alert_state {
    bool holds;
    uint64_t since_ns; /* it has been so, or not so, at every look */
    bool told;
};

struct alert {
    struct alert_term terms[ALERT_TERMS_MAX];
    size_t n;
};

/**
 * 0, or -EINVAL with nothing to release: then `e` says in one line what is wrong, where, and what to write, and *column
 * is the place, in bytes from 1. `e` and `column` may be NULL.
 */
int alert_parse(struct alert *a, const char *text, struct error *e, size_t *column);
void alert_release(struct alert *a);
/** One more look: true if it is to be told now. That is once, and not again before it has been false for its time. */
bool alert_judge(const struct alert_term *t, struct alert_state *s, const struct alert_facts *f);

#endif
