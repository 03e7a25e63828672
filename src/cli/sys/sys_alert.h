/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_ALERT_H
#define CLI_SYS_ALERT_H

/*
 * --alert of `allium sys NAME`: a query on its rows, possibly with a time for which a row must match, and the
 * command to run then. For rows the alert is reported once, and re-arms when no row matches; for events it is
 * reported for each that matches.
 *
 *     alert = QUERY [ "for" DURATION ]
 *
 * Runs in: the tool. Owns: the parsed alert and the hook, until sys_alert_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/table/table_query.h"
#include "run/alert_exec.h"

struct sys_alert {
    char *text; /* NULL: no alert */
    struct table_query query;
    uint64_t for_ns;
    bool events;             /* each row is an event of its own */
    struct alert_exec *exec; /* NULL: only print */
    uint64_t since_ns;       /* since when some row has matched in every report; 0: none has */
    bool reported;
};

/** `text` and `command` may be NULL. Returns 0, or -EINVAL with a line. */
int sys_alert_init(struct sys_alert *a, const char *text, const char *command, const struct table *columns_of,
                   bool events, struct error *e);
void sys_alert_release(struct sys_alert *a);
/** Evaluates all rows of the table; prints the alert on stderr, and runs the command. */
void sys_alert_check(struct sys_alert *a, const char *tool, const struct table *t, uint64_t now_ns);
/** Reaps the command and starts the next waiting one. */
void sys_alert_step(struct sys_alert *a);
/** Prints how many waiting commands are dropped, if any. */
void sys_alert_end(const struct sys_alert *a);

#endif
