/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MEMLEAK_PROCESSES_H
#define SYS_MEMLEAK_PROCESSES_H

/*
 * Which processes `allium sys memleak` observes: those of the command line, and those that come later.
 *
 * Runs in: the tool, as root. Threads: one. Owns: s->own, until memleak_release().
 */

#include <bpf/libbpf.h>

#include "sys/session.h"
#include "sys/tools/memleak/memleak_cost.h"
#include "sys/uprobe/alloc_processes.h"

struct memleak_live;

struct memleak_settings {
    uint64_t period; /* bytes; 1: every object */
    uint64_t older_ns;
    double max_cost; /* percent of the processes' CPU time; 0: no limit */
};

struct memleak_own {
    struct memleak_settings settings;
    struct alloc_functions functions;
    struct alloc_processes *processes;
    struct ring_buffer *notices;
    struct memleak_cost cost;
    bool removed;                     /* the probes, as they cost too much */
    struct VEC(uint32_t) gone_images; /* of programs that were replaced by others */
    uint64_t left_out;                /* processes that fit the filters, and have no probes */
    uint64_t of_exec;                 /* their live objects */
    struct memleak_live *live;
};

/** Of struct sys_tool: ready() calls the first one, the others are as there. */
int memleak_open(struct sys_session *s, const struct memleak_settings *settings, struct error *e);
int memleak_begin(struct sys_session *s, struct error *e);
int memleak_step(struct sys_session *s);
void memleak_release(struct sys_session *s);

#endif
