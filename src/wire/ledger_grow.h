/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_GROW_H
#define WIRE_LEDGER_GROW_H

/*
 * Growth of a ledger, and of the private tables beside it, from inside the target. ledger_make.h makes the
 * ledger.
 *
 * Runs in: target, cold paths only. Threads: any; growth takes no lock.
 * Owns: the memory that ledger_private() returns, until the image ends.
 * Invariant: no byte beyond `ready_bytes` of a region is ever touched, so a full file system cannot raise
 * SIGBUS. A region grows by mprotect() and madvise(MADV_POPULATE_WRITE) (Linux 5.14), which need neither a
 * descriptor nor a path. So growth works after chroot, after dropping privileges and after closing every
 * descriptor.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger.h"

#define LEDGER_PATH_BYTES 256

/* The target's private data of a ledger. */
struct ledger {
    struct ledger_header *header; /* NULL: there is no ledger */
    char *regions[LEDGER_TABLES];
    /* Not NULL once the ledger is made. If no file could be made for a page: ledger_no_control or an inherited page. */
    const struct ledger_control *control;
    bool control_stays; /* fork children inherit the mapping of the control page */
    /* bytes that the last check of file system and cgroups approved, less the growth since that check */
    uint64_t approved_bytes;
    uint32_t unchecked; /* number of requests since the last check, if that failed; 0: check the next one */
    uint32_t sealed;    /* number of reasons not to make a system call any more */
    char *pool;         /* private memory that ledger_private() returns without a system call; NULL: none */
    uint64_t pool_bytes, pool_used;
    char dir[LEDGER_PATH_BYTES]; /* the ledger's directory; "": the ledger is a memfd */
};

static inline uint64_t ledger_page_up(uint64_t n)
{
    return (n + LEDGER_PAGE_BYTES - 1) & ~(uint64_t)(LEDGER_PAGE_BYTES - 1);
}

/**
 * Makes pages of the ledger accessible and backs them with memory. All other pages stay inaccessible, because
 * mlockall(2) in the target would otherwise back all of them at once, without any check. Returns 0 or -errno.
 */
long ledger_back(char *from, uint64_t bytes);
/** Backs the region from its start up to `end_bytes`. False: it cannot grow; the refusal is counted in the header. */
ONE_COPY bool ledger_grow_cold(struct ledger *l, enum ledger_table table, uint64_t end_bytes);

/** Makes sure that the region is backed from its start up to `end_bytes`. Returns false if it cannot grow. */
static inline bool ledger_reach(struct ledger *l, enum ledger_table table, uint64_t end_bytes)
{
    if (likely(end_bytes <= load_acquire(&l->header->regions[table].ready_bytes)))
        return true;
    return ledger_grow_cold(l, table, end_bytes);
}

/**
 * Returns `bytes` of zeroed private memory for a table beside the ledger: from the pool, or newly mapped after the
 * checks for growth of the ledger and a check of RLIMIT_AS and RLIMIT_DATA. NULL: refused; if there is a ledger, the
 * refusal is counted in its header.
 */
ONE_COPY void *ledger_private(struct ledger *l, uint64_t bytes);
/**
 * Gives back memory that ledger_private() has just returned, and that no other thread uses yet. If the memory is from
 * the pool, does nothing.
 */
void ledger_give_back(struct ledger *l, void *memory, uint64_t bytes);
/** Returns the result of headroom_may_call(), or false if the control page has LEDGER_CONTROL_SEALED. */
bool ledger_may_call(struct ledger *l);
/**
 * Takes room in advance, so that later growth needs no system call: backs each table up to its offset in `ends` (bytes;
 * 0: nothing), and maps a pool of private memory, whose pages are not backed yet. False: there is a pool already, or
 * the file system, a memory cgroup or a limit has too little room, or no system call may be made, or one has failed. No
 * refusal is counted then.
 */
bool ledger_take_room(struct ledger *l, const uint32_t ends[static LEDGER_TABLES], uint64_t pool_bytes);
/**
 * Frees the pages of memory from ledger_private(). Its addresses stay mapped, and read as zeros. Does nothing if no
 * system call may be made.
 */
void ledger_empty_private(struct ledger *l, void *memory, uint64_t bytes);
/** Counts a refusal to grow in the header; if it is the first one, stores the reason `why`. Always returns false. */
bool ledger_refuse(struct ledger *l, enum ledger_full why);
/** Appends `count` backed records to a table. Returns the index of the first one; LEDGER_NONE: no room. */
ONE_COPY uint32_t ledger_append(struct ledger *l, enum ledger_table table, uint32_t count);

#define ledger_at(l, table, type, index) ((type *)(l)->regions[table] + (index))

#endif
