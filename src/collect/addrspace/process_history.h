/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESS_HISTORY_H
#define COLLECT_PROCESS_HISTORY_H

/*
 * Processes that live or have lived, by number and time: the book behind address_spaces.h, which says how it is written.
 *
 * Runs in: the tool. Threads: one. Owns: the processes, their images and names, until lives_release().
 */

#include <sys/types.h>

#include "collect/addrspace/vma_history.h"

#define LIFE_NAME_BYTES 16

/** What a process runs from one exec to the next. */
struct life_image {
    uint64_t from_ns; /* 0: from before we listened */
    struct layers *maps;
    bool told;        /* every mapping since it began, or it was read */
    bool started;     /* the kernel is through with exec: what is mapped now, the program maps */
    uint64_t program; /* where the first segment of the program begins, and all of them end */
    uint64_t program_end;
    uint64_t heap; /* where what brk makes begins; 0: not known */
};

struct life_name {
    uint64_t from_ns;
    char text[LIFE_NAME_BYTES];
};

struct life {
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
    struct VEC(struct life_image) images; /* at least one */
    struct VEC(struct life_name) names;
    struct life *before;        /* of the same number */
    struct life *older, *newer; /* among the ended ones, by their ends */
};

struct lives {
    struct mapping_files files;
    struct map numbers; /* pid -> index in latest */
    struct VEC(struct life *) latest;
    struct life *oldest_end, *newest_end;
    size_t living, ended, ended_max;
    uint64_t forgotten;
};

void lives_release(struct lives *l);

/** The latest of that number, ended or not; NULL: none. */
struct life *lives_latest(const struct lives *l, pid_t pid);
/** The one that had the number then; NULL: not known. */
struct life *lives_at(const struct lives *l, pid_t pid, uint64_t time_ns);
/** A new one, with an image on `maps`, whose reference is taken over. Whoever has the number has ended. */
struct life *lives_begin(struct lives *l, pid_t pid, uint64_t time_ns, struct layers *maps);
void lives_end(struct lives *l, struct life *life, uint64_t time_ns);
/** It has not ended after all. */
void lives_revive(struct lives *l, struct life *life);

/** The image that it ran at that time, the first one if it is earlier than all. */
struct life_image *life_image_at(const struct life *life, uint64_t time_ns);
const char *life_name_at(const struct life *life, uint64_t time_ns);
/** An image, or a name, that begins; those that had ended by settled_ns are forgotten. */
struct life_image *life_exec(struct lives *l, struct life *life, uint64_t time_ns, uint64_t settled_ns);
void life_rename(struct life *life, const char *name, uint64_t time_ns, uint64_t settled_ns);

#endif
