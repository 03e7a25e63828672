/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESS_HISTORY_H
#define COLLECT_PROCESS_HISTORY_H

/*
 * Processes that live or have lived, by pid and time: the data behind address_spaces.h.
 *
 * Runs in: the tool. Threads: one.
 * Owns: the processes, their images and names, until process_history_release().
 */

#include <sys/types.h>

#include "collect/addrspace/vma_history.h"

#define PROCESS_LIFE_NAME_BYTES 16

/** The program of a process between one exec and the next. */
struct process_life_image {
    uint64_t from_ns; /* 0: since before recording began */
    struct vma_history *maps;
    bool complete;    /* all mappings since its beginning are known, or were read */
    bool started;     /* the kernel has finished exec: further mappings are the program's own */
    uint64_t program; /* start of the program's first segment, and end of the last one */
    uint64_t program_end;
    uint64_t heap; /* where the brk heap begins; 0: not known */
};

struct process_life_name {
    uint64_t from_ns;
    char text[PROCESS_LIFE_NAME_BYTES];
};

struct process_life {
    pid_t pid, parent_pid;
    uint64_t began_ns;        /* 0: before recording began */
    uint64_t ended_ns;        /* 0: it lives */
    uint64_t seen_ns;         /* the latest time at which it was known to live */
    long threads;             /* 0: not known */
    uint64_t boot_ns;         /* its start by /proc, CLOCK_BOOTTIME; 0: not read */
    uint64_t suspect_ns;      /* records may be missing since this time; 0: none */
    uint64_t suspect_late_ns; /* the latest start of such a gap */
    bool unreadable;          /* reading failed for good */
    size_t stale_at;          /* number of known mappings when it was last read for having too many */
    struct VEC(struct process_life_image) images; /* at least one */
    struct VEC(struct process_life_name) names;
    struct process_life *before;        /* the previous process with this pid */
    struct process_life *older, *newer; /* neighbours among the ended ones, sorted by their ends */
};

struct process_history {
    struct mapped_files files;
    struct map numbers; /* pid -> index in latest */
    struct VEC(struct process_life *) latest;
    struct process_life *oldest_end, *newest_end;
    size_t living, ended, ended_max;
    uint64_t forgotten;
};

void process_history_release(struct process_history *l);

/** Returns the latest process with that pid, ended or not; NULL: none. */
struct process_life *process_history_latest(const struct process_history *l, pid_t pid);
/** Returns the process that had the pid at that time; NULL: not known. */
struct process_life *process_history_at(const struct process_history *l, pid_t pid, uint64_t time_ns);
/** Adds a process with an image on `maps`; takes over the reference. A present process with that pid is
 * marked as ended. */
struct process_life *process_history_begin(struct process_history *l, pid_t pid, uint64_t time_ns,
                                           struct vma_history *maps);
void process_history_end(struct process_history *l, struct process_life *life, uint64_t time_ns);
/** Reverts process_history_end(). */
void process_history_revive(struct process_history *l, struct process_life *life);

/** Returns the image at that time; the first one if the time is earlier than all. */
struct process_life_image *process_life_image_at(const struct process_life *life, uint64_t time_ns);
const char *process_life_name_at(const struct process_life *life, uint64_t time_ns);
/** Add an image or a name. Those that had ended by oldest_query_ns are removed. */
struct process_life_image *process_life_exec(struct process_history *l, struct process_life *life,
                                             uint64_t time_ns, uint64_t oldest_query_ns);
void process_life_rename(struct process_life *life, const char *name, uint64_t time_ns,
                         uint64_t oldest_query_ns);

#endif
