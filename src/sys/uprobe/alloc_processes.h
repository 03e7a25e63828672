/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ALLOC_PROCESSES_H
#define SYS_ALLOC_PROCESSES_H

/*
 * Processes whose allocators have uprobes. Each probe belongs to one process: others that have the same library mapped
 * never stop at it. The kernel removes the probes when allium ends, however it ends.
 *
 * Runs in: the tool, as root. Threads: one. Owns: the links, until alloc_processes_free().
 */

#include <sys/types.h>

#include "sys/session.h"
#include "sys/uprobe/alloc_places.h"
#include "sys/uprobe/uprobe_attach.h"

struct alloc_process {
    pid_t pid;
    char comm[16];   /* when it was looked at last */
    uint32_t number; /* of the cookie */
    bool ended;
    size_t calls, frees; /* probes on functions that allocate, and that free */
    struct uprobe_links links;
    struct uprobe_fds multi_fds;
    struct VEC(const struct alloc_file *) files; /* which have probes in it */
};

struct alloc_processes;
struct memleak_process; /* bpf/memleak.h */

/** `functions` must outlive it. Returns NULL with a line: there is no memory that the programs share. */
struct alloc_processes *alloc_processes_new(struct sys_session *s, const struct alloc_functions *functions,
                                            struct error *e);
void alloc_processes_free(struct alloc_processes *all);

/**
 * Puts probes on the allocators that the process has mapped, and begins to count. Returns 0, or -errno with a line;
 * -ENOENT: it has none with a name, and stays without probes.
 */
int alloc_processes_add(struct alloc_processes *all, pid_t pid, struct error *e);
/**
 * Puts probes on the allocators that the program will have when process `pid`, which waits, executes it; counting
 * begins then. Returns 0, or -errno with a line.
 */
int alloc_processes_add_command(struct alloc_processes *all, pid_t pid, const char *program, struct error *e);
/** Puts probes on allocators that a process has mapped meanwhile. */
void alloc_processes_again(struct alloc_processes *all, uint32_t number);
/** The same for a process that executes another program, which gives it this name. It may have ended already. */
void alloc_processes_executed(struct alloc_processes *all, uint32_t number, const char comm[SYS_COMM_BYTES]);
/** Removes the probes of a process that has ended. */
void alloc_processes_end(struct alloc_processes *all, uint32_t number);
/** The same for all that are gone: the end of a process that got its probes just then is not noticed otherwise. */
void alloc_processes_end_gone(struct alloc_processes *all);
/**
 * Judges each process by its first calls: if only functions whose code shows it call each other, sets is_flat, and the
 * programs note less. Returns whether some processes are not judged yet.
 */
bool alloc_processes_judge(struct alloc_processes *all);
/*
 * * The number of allium itself, and what the programs read of it: probes on its own functions measure what they
 * cost.
 */
#define ALLOC_PROCESS_OWN (MEMLEAK_PROCESSES - 1)
struct memleak_process *alloc_processes_own(struct alloc_processes *all);
/** Returns whether probes are attached with one link for many places. */
bool alloc_processes_at_once(const struct alloc_processes *all);
/** Removes all probes. */
void alloc_processes_detach(struct alloc_processes *all);

/** Returns the last process that had the number; NULL: none. */
const struct alloc_process *alloc_processes_find(const struct alloc_processes *all, pid_t pid);
/** Returns the processes and sets *n to their number. */
const struct alloc_process *alloc_processes_all(const struct alloc_processes *all, size_t *n);

#endif
