/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_SWITCH_H
#define COLLECT_TRACE_SWITCH_H

/*
 * Which events a running process can write, and which of them are on. The agent and liballium.so both obey the control
 * page of the process (wire/control_page.h): bits of the control word are for the agent's events, and a list is for the
 * program's own events.
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
    bool has_agent;   /* the agent has made rings: calls of the allocator can be events */
    bool has_begin;   /* calls of the allocator have events at their beginning, too */
    bool has_library; /* the process uses liballium.so: it may have events of its own */
    bool has_tags;    /* calls of code tags are events */
    bool is_on;       /* the process writes the selected events */
    bool alloc;       /* the agent's events are selected */
    /* the selected events of the program; alloc and begin in it mean nothing: `alloc` tells */
    char list[LEDGER_EVENT_LIST_BYTES];
};

/** Reads the state of the ledger's process, which must be running. Returns 0, or -errno with a line. */
int trace_switch_read(struct trace_switch *s, const struct ledger_entry *ledger, struct error *e);
/** Returns whether the process can write any events. */
bool trace_switch_any(const struct trace_switch *s);
/**
 * Sets the error line: the process writes no events and must be restarted under allium. `of`: " of malloc": it lacks
 * only these; "": it writes none at all. Returns -ENOENT.
 */
int trace_switch_explain(pid_t pid, const char *of, struct error *e);
/**
 * Selects the events of the list (wire/event_list.h), and switches them on. Returns 0, or -errno with a line; then the
 * earlier state is restored as far as it can be written. -ENOENT: the process was started in a way that makes some of
 * these events impossible.
 */
int trace_switch_select(const struct trace_switch *before, const struct ledger_entry *ledger,
                        const char *list, struct error *e);
/** Switches the selected events on, or all events off. Returns as trace_switch_select() does. */
int trace_switch_turn(const struct trace_switch *before, const struct ledger_entry *ledger, bool on,
                      struct error *e);
/** Restores each part of the state of trace_switch_read() that can be written. Returns 0, or -errno with a line. */
int trace_switch_restore(const struct trace_switch *before, const struct ledger_entry *ledger,
                         struct error *e);
/** Appends "trace on: alloc,shop:*", or "trace off"; nothing if the process can write no events. */
void trace_switch_print(const struct trace_switch *s, struct buf *b);

#endif
