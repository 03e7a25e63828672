/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_ALERT_H
#define CLI_SYS_ALERT_H

/*
 * --alert of `allium sys NAME`: a query about its rows, perhaps with a time for which one must fit, and the command
 * that is run then. Of rows it is told once, and not again before none has fitted; of events, for each that fits.
 *
 *     alert = QUERY [ "for" DURATION ]
 *
 * Runs in: the tool. Owns: what was parsed and the hook, until sys_alert_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/table/table_query.h"
#include "run/alert_exec.h"

struct sys_alert {
    char *text; /* NULL: none was asked for */
    struct table_query query;
    uint64_t for_ns;
    bool events;             /* each stands for itself */
    struct alert_exec *hook; /* NULL: only said */
    uint64_t since_ns;       /* something has fitted at every look; 0: not so */
    bool told;
};

/** `text` and `command` may be NULL. 0, or -EINVAL with a line. */
int sys_alert_init(struct sys_alert *a, const char *text, const char *command, const struct table *columns_of,
                   bool events, struct error *e);
void sys_alert_release(struct sys_alert *a);
/** Looks at all rows of the table; says what is to be told on stderr, and runs the command. */
void sys_alert_look(struct sys_alert *a, const char *tool, const struct table *t, uint64_t now_ns);
/** Reaps the command and starts the next one that waits. */
void sys_alert_step(struct sys_alert *a);
/** Says how many times the command will not be run any more, if any. */
void sys_alert_end(const struct sys_alert *a);

#endif
