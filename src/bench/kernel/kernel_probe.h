/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_KERNEL_PROBE_H
#define BENCH_KERNEL_PROBE_H

/*
 * Events of one process that the kernel records: an instruction with a uprobe, the return of a function, a system call,
 * a function of the kernel.
 * And what the kernel does at each of them: a sink. Each sink counts the events that it has seen and lost.
 *
 * Runs in: the tool, as root. Threads: one. Owns: what it attaches, until kernel_probe_close(). Events of tracefs are
 * removed also if the command is killed (undo_later.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum kernel_probe_kind {
    KERNEL_PROBE_ENTRY,  /* a uprobe on the instruction at `offset` of `file` */
    KERNEL_PROBE_RETURN, /* ... on the return of the function that begins there */
    KERNEL_PROBE_CALL,   /* the tracepoint of the system call getppid */
    KERNEL_PROBE_KPROBE, /* a kprobe on the kernel's function of that system call */
    KERNEL_PROBE_FENTRY, /* a BPF program at its entry (fentry): no other sink can be there */
};

struct kernel_probe_target {
    enum kernel_probe_kind kind;
    pid_t pid;        /* all its threads; events of other processes are neither counted nor recorded */
    const char *file; /* of a uprobe, and */
    uint64_t offset;
};

#define KERNEL_PROBE_FUNCTION "__do_sys_getppid"

/** Returns whether the instruction or function is in a file, and not in the kernel. */
static inline bool kernel_probe_is_uprobe(const struct kernel_probe_target *target)
{
    return target->kind == KERNEL_PROBE_ENTRY || target->kind == KERNEL_PROBE_RETURN;
}

/** Since the previous kernel_probe_read(). */
struct kernel_probe_counts {
    uint64_t seen;  /* events that the sink has counted or recorded */
    uint64_t lost;  /* events that the sink knows to be lost */
    uint64_t bytes; /* of records */
};

struct kernel_probe;

struct kernel_probe_sink {
    const char *name; /* for --sink */
    bool knows_hits;
    bool records; /* into a buffer, which has room for a limited number of events */
    int (*open)(struct kernel_probe *p, struct error *e);
    int (*read)(struct kernel_probe *p, struct kernel_probe_counts *out); /* adds to *out */
    uint64_t (*memory)(
        const struct kernel_probe *p); /* bytes of buffers and maps; 0: not known. NULL: it has none */
    void (*close)(struct kernel_probe *p);
};

/** Ends with a name of NULL. */
extern const struct kernel_probe_sink kernel_probe_sinks[];

struct kernel_probe {
    const struct kernel_probe_sink *sink;
    struct kernel_probe_target target;
    void *own; /* the sink's */
};

/**
 * Attaches. Returns 0; or -errno with a line, which says why this machine cannot do it, and the way out.
 */
int kernel_probe_open(struct kernel_probe *p, const struct kernel_probe_sink *sink,
                      const struct kernel_probe_target *target, struct error *e);
/** Takes what has been recorded. Returns 0 or -errno. */
int kernel_probe_read(struct kernel_probe *p, struct kernel_probe_counts *out);
/** Returns the bytes of memory that the sink holds, 0 if they are not known. */
uint64_t kernel_probe_memory(const struct kernel_probe *p);
void kernel_probe_close(struct kernel_probe *p);

#endif
