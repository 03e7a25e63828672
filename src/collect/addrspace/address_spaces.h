/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ADDRESS_SPACES_H
#define COLLECT_ADDRESS_SPACES_H

/*
 * The address spaces of processes over time, from the side band: what was mapped at an address when an event
 * happened, also after the process has ended. For processes that ran before, /proc is read by
 * address_spaces_meet(), or at their first query or fork.
 *
 * To query an event: take the event out of its ring, call address_spaces_drain(), then query with the event's
 * own time.
 *
 * Only new mappings are known. Memory that was unmapped or moved away (munmap, mremap, a shrunk brk) seems to
 * be mapped still, until something else is mapped over it or address_spaces_reread() reads the maps; memory
 * that was moved is not known at its new place until then. address_spaces_drain() marks processes to be read
 * again whose records were lost, or whose known mappings are so many that most must be gone. A process that
 * shares its space with another one (vfork, clone with CLONE_VM) is treated as if it had a copy.
 *
 * Runs in: the tool. Threads: one.
 * Owns: all that it returns, until the next address_spaces_drain() or address_spaces_free().
 * Invariant: no answer is about another process with the same pid: a process is identified by pid and start.
 */

#include "collect/addrspace/vma_history.h"
#include "collect/perf/sideband.h"

struct address_spaces;

struct address_spaces_options {
    size_t ended_max; /* ended processes to remember, the latest ones; 0: 4096 */
    /* for how long a query may look back, or may follow the end of a process; 0: 2 s */
    uint64_t back_ns;
};

/** `options` may be NULL. The band belongs to the caller and may be NULL: then records come only by
 * address_spaces_take(). */
struct address_spaces *address_spaces_new(struct sideband *band,
                                          const struct address_spaces_options *options);
void address_spaces_free(struct address_spaces *s);

/** Processes all records of what happened before this call. */
void address_spaces_drain(struct address_spaces *s);
/**
 * Reads the mappings of the running processes that no record has told, so that they are known after a process
 * ends. Takes at most `most_ns`, or as long as one process that does not answer. Returns true when all are
 * read; else the next call goes on.
 */
bool address_spaces_meet(struct address_spaces *s, uint64_t most_ns);
/** Processes one record. */
void address_spaces_take(struct address_spaces *s, const struct sideband_record *record);

/**
 * Finds what was mapped at `address` of process `pid` at time_ns (CLOCK_MONOTONIC). Returns false, with
 * out->kind MAPPING_NONE, if nothing is known to be. An address that the stack may grow to at once belongs to
 * the stack.
 */
bool address_spaces_find(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                         struct space_mapping *out);

/** Like address_spaces_find() for an address of code; while exec runs, the code may still be that of the old
 * program. */
bool address_spaces_find_code(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                              struct space_mapping *out);

struct address_spaces_process {
    const char *name;  /* of its main thread, at that time */
    uint64_t began_ns; /* 0: before recording began */
    uint64_t ended_ns; /* 0: it lives, as far as known */
    uint64_t image_ns; /* when it executed the program that it ran at that time; 0: before recording began */
    pid_t parent_pid;  /* the process that forked it; 0: not known */
    /*
     * its mappings are complete, apart from what records never tell; false if they could not be read in time
     */
    bool complete;
};

/** Finds the process with that pid at that time. Returns false if it is not known. */
bool address_spaces_process(struct address_spaces *s, pid_t pid, uint64_t time_ns,
                            struct address_spaces_process *out);
/** Reads the present mappings of a process. Returns as proc_maps_read() does; -ESRCH also if another process
 * has the pid by now. */
int address_spaces_reread(struct address_spaces *s, pid_t pid);

struct address_spaces_counts {
    size_t living, ended;               /* known now */
    uint64_t forgotten;                 /* ended processes that were removed to make room */
    uint64_t lost;                      /* lost records */
    uint64_t readings, readings_failed; /* of /proc/PID/maps */
};
struct address_spaces_counts address_spaces_counts(const struct address_spaces *s);

#endif
