/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESS_HISTORY_H
#define COLLECT_PROCESS_HISTORY_H

/*
 * Processes that live or have lived, by number and time: the book behind address_spaces.h, which says how it is
 * written.
 *
 * Runs in: the tool. Threads: one. Owns: the processes, their images and names, until process_history_release().
 */

#include <sys/types.h>

#include "collect/addrspace/vma_history.h"

#define PROCESS_LIFE_NAME_BYTES 16

/** What a process runs from one exec to the next. */
struct process_life_image {
    uint64_t from_ns; /* 0: from before we listened */
    struct vma_history *maps;
    bool told;        /* every mapping since it began, or it was read */
    bool started;     /* the kernel is through with exec: what is mapped now, the program maps */
    uint64_t program; /* where the first segment of the program begins, and all of them end */
    uint64_t program_end;
    uint64_t heap; /* where what brk makes begins; 0: not known */
};

struct process_life_name {
    uint64_t from_ns;
    char text[PROCESS_LIFE_NAME_BYTES];
};

struct process_life {
    pid_t pid, parent_pid;
    uint64_t began_ns;        /* 0: before we listened */
    uint64_t ended_ns;        /* 0: lives */
    uint64_t seen_ns;         /* the latest time at which it was known to live */
    long threads;             /* 0: not known */
    uint64_t boot_ns;         /* when it began by /proc, CLOCK_BOOTTIME; 0: not read */
    uint64_t suspect_ns;      /* records may be missing since; 0: none */
    uint64_t suspect_late_ns; /* and once more since then: the latest beginning of a gap */
    bool unreadable;          /* it was tried, and will not get better */
    size_t stale_at;          /* mappings that were known when it was looked at for having too many */
    struct VEC(struct process_life_image) images; /* at least one */
    struct VEC(struct process_life_name) names;
    struct process_life *before;        /* of the same number */
    struct process_life *older, *newer; /* among the ended ones, by their ends */
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

/** The latest of that number, ended or not; NULL: none. */
struct process_life *process_history_latest(const struct process_history *l, pid_t pid);
/** The one that had the number then; NULL: not known. */
struct process_life *process_history_at(const struct process_history *l, pid_t pid, uint64_t time_ns);
/** A new one, with an image on `maps`, whose reference is taken over. Whoever has the number has ended. */
struct process_life *process_history_begin(struct process_history *l, pid_t pid, uint64_t time_ns,
                                           struct vma_history *maps);
void process_history_end(struct process_history *l, struct process_life *life, uint64_t time_ns);
/** It has not ended after all. */
void process_history_revive(struct process_history *l, struct process_life *life);

/** The image that it ran at that time, the first one if it is earlier than all. */
struct process_life_image *process_life_image_at(const struct process_life *life, uint64_t time_ns);
const char *process_life_name_at(const struct process_life *life, uint64_t time_ns);
/** An image, or a name, that begins; those that had ended by settled_ns are forgotten. */
struct process_life_image *process_life_exec(struct process_history *l, struct process_life *life,
                                             uint64_t time_ns, uint64_t settled_ns);
void process_life_rename(struct process_life *life, const char *name, uint64_t time_ns, uint64_t settled_ns);

#endif
