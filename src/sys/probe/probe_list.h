/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PROBE_LIST_H
#define SYS_PROBE_LIST_H

/*
 * The functions and static probes whose calls a trace is to have: where they are in files, and the classes of their
 * events.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all texts and classes, until probe_list_free().
 */

#include "base/error.h"
#include "base/sigsafe/event_class.h"
#include "base/vec.h"
#include "symbol/probe/probe_place.h"
#include "symbol/probe/static_probe.h"

/** One place in a file. */
struct probe_site {
    char *file;
    uint64_t offset;           /* in the file */
    uint64_t semaphore_offset; /* of a static probe; 0: none */
    struct probe_place place;
    /* of a static probe: */
    unsigned n;
    struct static_operand operands[STATIC_PROBE_OPERANDS];
};

struct probe {
    char *name;     /* "getenv", "usdt:python:gc__start" */
    bool is_static; /* has one event, at the place; else two, at the entry and the return */
    uint16_t id;    /* of the first event */
    struct VEC(struct probe_site) sites;
};

struct probe_list;

/** The program or process in which functions and static probes are looked up. */
struct probe_target {
    const char *program; /* a path by which it can be opened */
    pid_t pid;           /* of a process that runs it; 0: it is to be started */
};

struct probe_list *probe_list_new(void);
void probe_list_free(struct probe_list *l); /* NULL is allowed */
/**
 * Adds what `text` names: LIB:NAME, :NAME, usdt:PROVIDER:NAME or usdt:LIB:PROVIDER:NAME, of the target. Returns
 * 0, or -errno with a line.
 */
int probe_list_add(struct probe_list *l, const char *text, const struct probe_target *target,
                   struct error *e);
/** Returns the probes and sets *n to their number. */
const struct probe *probe_list_all(const struct probe_list *l, size_t *n);
/** Returns the classes of their events and sets *n to their number. NULL is allowed: there are none. */
const struct event_class *probe_list_classes(const struct probe_list *l, uint32_t *n);

#endif
