/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADDRESS_SPACES_H
#define COLLECT_ADDRESS_SPACES_H

/*
 * The address spaces of processes over time, kept from the side band: what was mapped at an address when an event
 * happened, also after the process has ended. Processes that ran before are read from /proc by address_spaces_meet(),
 * or when they are first asked for, or fork.
 *
 * To ask about an event: take the event out of its ring, call address_spaces_drain(), then ask with the event's own
 * time.
 *
 * What is known is what was mapped. Memory that was unmapped or moved away (munmap, mremap, a shrunk brk) is taken to
 * be there still, until something else is mapped over it or address_spaces_reread() looks; what was moved to a new
 * place is not known there until then. address_spaces_drain() has processes looked at again of which records were lost,
 * and those whose known mappings are so many that most must be gone. A process that shares its space with another one
 * (vfork, clone with CLONE_VM) is taken to have a copy.
 *
 * Runs in: the tool. Threads: one. Owns: all it hands out, until the next address_spaces_drain() or
 * address_spaces_free().
 * Invariant: no answer is about another process of the same number: each is known by when it began.
 */

#include "collect/addrspace/vma_history.h"
#include "collect/perf/sideband.h"

struct address_spaces;

struct address_spaces_options {
    size_t ended_max; /* processes that are kept after their end, the latest ones; 0: 4096 */
    uint64_t
        back_ns; /* how far back one may ask about a process that lives, or how long before its end; 0: 2 s */
};

/** options may be NULL. The band is the caller's and may be NULL: then records come by address_spaces_take() alone. */
struct address_spaces *address_spaces_new(struct sideband *band,
                                          const struct address_spaces_options *options);
void address_spaces_free(struct address_spaces *s);

/** Takes in all that happened before this call. */
void address_spaces_drain(struct address_spaces *s);
/**
 * Reads what the processes that run now have mapped, as far as no record has told it: what ends later is known then. It
 * takes `most_ns` at most, or as long as one that does not answer; true: all are read. Else the next call goes on.
 */
bool address_spaces_meet(struct address_spaces *s, uint64_t most_ns);
/** Takes in one record. */
void address_spaces_take(struct address_spaces *s, const struct sideband_record *record);

/**
 * What was mapped at `address` of process `pid` at time_ns (CLOCK_MONOTONIC). False: nothing that is known; out->kind
 * is MAPPING_NONE then. An address that the stack may grow to at once is of the stack.
 */
bool address_spaces_find(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                         struct space_mapping *out);

/** The same for an address of code, which while exec runs may still be of the program before. */
bool address_spaces_find_code(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                              struct space_mapping *out);

struct address_spaces_process {
    const char *name;  /* its main thread's, at that time */
    uint64_t began_ns; /* 0: before we listened */
    uint64_t ended_ns; /* 0: it lives, as far as is known */
    uint64_t image_ns; /* when it executed the program that it ran at that time; 0: before we listened */
    pid_t parent_pid;  /* that forked it; 0: not known */
    bool
        complete; /* nothing of its space is missing but what was never told: false if it could not be read in time */
};

/** The process of that number at that time; false: not known. */
bool address_spaces_process(struct address_spaces *s, pid_t pid, uint64_t time_ns,
                            struct address_spaces_process *out);
/** Reads what a process maps now. 0; or as proc_maps_read(); -ESRCH also if another process has the number by now. */
int address_spaces_reread(struct address_spaces *s, pid_t pid);

struct address_spaces_counts {
    size_t living, ended;               /* known now */
    uint64_t forgotten;                 /* ended ones that had to make room */
    uint64_t lost;                      /* records */
    uint64_t readings, readings_failed; /* of /proc/PID/maps */
};
struct address_spaces_counts address_spaces_counts(const struct address_spaces *s);

#endif
