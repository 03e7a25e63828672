/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_SWITCH_H
#define COLLECT_TRACE_SWITCH_H

/*
 * Which events a running process can write, and which of them are on. Both the agent and liballium.so obey its control
 * page (wire/control_page.h): the agent's events have bits in the control word, the program's own a list.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "collect/ledger/ledger_dir.h"
#include "wire/control_page.h"

struct trace_switch {
    bool has_agent;   /* its agent has rings: calls of the allocator can be events */
    bool has_begin;   /* these have events at their beginning, too */
    bool has_library; /* it uses liballium.so: it may have events of its own */
    bool has_tags;    /* calls of code tags are events */
    bool is_on;       /* what is selected is written */
    /* what is selected: */
    bool alloc;
    /* of the program's own events; groups in it mean nothing here */
    char list[LEDGER_EVENT_LIST_BYTES];
};

/** Reads it. The process of the ledger runs. Returns 0, or -errno with a line. */
int trace_switch_read(struct trace_switch *s, const struct ledger_entry *ledger, struct error *e);
/** Returns whether the process can write any events. */
bool trace_switch_any(const struct trace_switch *s);
/**
 * Selects what the list has (wire/event_list.h), and switches it on. Returns 0, or -errno with a line:
 * -ENOENT: the process was not started for that, and nothing was changed.
 */
int trace_switch_select(const struct trace_switch *before, const struct ledger_entry *ledger,
                        const char *list, struct error *e);
/** Switches all off, or what was selected before on. Returns 0, or -errno with a line. */
int trace_switch_turn(const struct trace_switch *before, const struct ledger_entry *ledger, bool on,
                      struct error *e);
/** Makes it as it was when it was read. Returns 0, or -errno with a line. */
int trace_switch_restore(const struct trace_switch *before, const struct ledger_entry *ledger,
                         struct error *e);
/** Appends "trace on: alloc,shop:*", or "trace off"; nothing if the process can write no events. */
void trace_switch_print(const struct trace_switch *s, struct buf *b);

#endif
