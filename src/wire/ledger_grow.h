/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_GROW_H
#define WIRE_LEDGER_GROW_H

/*
 * Growth of a ledger, and of the private tables beside it, from inside the target. ledger_make.h makes the
 * ledger.
 *
 * Runs in: target, cold paths only. Threads: any; growth takes no lock.
 * Owns: the private memory that it hands out, until the image ends.
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
    /* Never NULL once the ledger is made; points to ledger_no_control if no file could be made. */
    const struct ledger_control *control;
    bool control_stays; /* fork children inherit the mapping of the control page */
    /* growth that the last check of the surroundings approved and that is not used yet */
    uint64_t approved_bytes;
    uint32_t sealed; /* number of reasons not to make a system call any more */
    char *pool;      /* private memory that ledger_private() gives out without a system call; NULL: none */
    uint64_t pool_bytes, pool_used;
    char dir[LEDGER_PATH_BYTES];
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
/** Backs the region up to `end_bytes`. Returns false if it cannot grow; the header tells the reason. */
ONE_COPY bool ledger_grow_cold(struct ledger *l, enum ledger_table table, uint64_t end_bytes);

/** Makes sure that the region is backed up to `end_bytes`. Returns false if it cannot grow. */
static inline bool ledger_reach(struct ledger *l, enum ledger_table table, uint64_t end_bytes)
{
    if (likely(end_bytes <= load_acquire(&l->header->regions[table].ready_bytes)))
        return true;
    return ledger_grow_cold(l, table, end_bytes);
}

/**
 * Returns zeroed private memory for a table beside the ledger, after the same checks as for growth of the ledger. NULL:
 * growth was refused; the header has the reason.
 */
ONE_COPY void *ledger_private(struct ledger *l, uint64_t bytes);
/** Gives back memory that ledger_private() has just returned, and that no other thread uses yet. */
void ledger_give_back(struct ledger *l, void *memory, uint64_t bytes);
/** Returns headroom_may_call(); false if the control page says that the process is sealed. */
bool ledger_may_call(struct ledger *l);
/**
 * Takes room in advance, so that later growth needs no system call: backs each table up to `ends` (in bytes; 0:
 * nothing), and maps a pool of private memory, whose pages are not backed yet. False, but no refusal is counted: file
 * system, memory cgroup or a limit of the program have too little free memory, or no system call may be made.
 */
bool ledger_take_room(struct ledger *l, const uint32_t ends[static LEDGER_TABLES], uint64_t pool_bytes);
/**
 * Frees the pages of memory from ledger_private(). Its addresses stay mapped, and read as zeros. Does nothing if no
 * system call may be made.
 */
void ledger_empty_private(struct ledger *l, void *memory, uint64_t bytes);
/** Counts a refusal to grow; if it is the first one, stores its reason. Always returns false. */
bool ledger_refuse(struct ledger *l, enum ledger_full why);
/** Reserves `count` records at the end of a table. Returns the index of the first one, or LEDGER_NONE. */
ONE_COPY uint32_t ledger_append(struct ledger *l, enum ledger_table table, uint32_t count);

#define ledger_at(l, table, type, index) ((type *)(l)->regions[table] + (index))

#endif
