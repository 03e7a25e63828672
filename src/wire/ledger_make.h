/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_MAKE_H
#define WIRE_LEDGER_MAKE_H

/*
 * Making a ledger and letting it grow, from inside the target.
 *
 * Runs in: target, cold paths only. Threads: any; growth takes no lock.
 * Owns: the mapping, until the image ends; no descriptor stays open.
 * Invariant: no byte beyond a region's ready_bytes is ever touched, so a full file system cannot raise SIGBUS. Growth
 * is mprotect and madvise(MADV_POPULATE_WRITE) (Linux 5.14): it needs no descriptor and no path, and so works after
 * chroot, after dropping privileges and after closing every descriptor.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger.h"

#define LEDGER_PATH_BYTES 256

struct ledger_config {
    char dir[LEDGER_PATH_BYTES];         /* asked for by who started us; "": the user's default directory */
    char runtime_dir[LEDGER_PATH_BYTES]; /* XDG_RUNTIME_DIR, "": none */
    uint64_t limit_bytes;
    uint64_t image_id;
    uint64_t period_bytes;
    bool samples, tags, sites; /* what it is for */
    /* What tags are asked when it begins: a whole page, and a list behind it. NULL: nothing. */
    const struct ledger_control *asked;
};

/* The target's private side of a ledger. */
struct ledger {
    struct ledger_header *header; /* NULL: there is none */
    char *regions[LEDGER_TABLES];
    const struct ledger_control
        *control;            /* never NULL once made; a page of zeros when no file could be had */
    bool control_stays;      /* in fork children */
    uint64_t approved_bytes; /* growth that the last look at the surroundings allowed, not yet used */
    uint32_t sealed;         /* no further system call, for that many reasons */
    char dir[LEDGER_PATH_BYTES];
};

/** A control page that asks for nothing. */
extern const struct ledger_control ledger_no_control __attribute__((visibility("hidden")));
/**
 * Creates file, mapping, header and first pages. 0 or -errno; on failure nothing is left behind.
 * A process that may not use the recorder's directory it was told (by now it runs as another user, say) makes one of
 * the same name in its own user's directory of ledgers, where the recorder looks as well.
 */
ONE_COPY int ledger_make(struct ledger *l, const struct ledger_config *config);
/** Fork children shall find its control page, too: tags look at it until they have their own. */
void ledger_keep_control(struct ledger *l);
/**
 * The directory it makes a ledger in, opened; its path, "" on failure. `make`: if it is not there. -errno: there is
 * none.
 */
ONE_COPY long ledger_open_dir(const struct ledger_config *config, char dir[static LEDGER_PATH_BYTES],
                              bool make);
/** The last part of the directory `asked`, "/run-...", if it is a recorder's; else "". */
const char *ledger_recorder_name(const char *asked);
/** Backs the region up to `end_bytes`. False when it cannot grow: the reason stands in the header. */
ONE_COPY bool ledger_grow_cold(struct ledger *l, enum ledger_table table, uint64_t end_bytes);

/** How much of the target's address space the ledger takes. */
static inline uint64_t ledger_mapped_bytes(const struct ledger_header *h)
{
    const struct ledger_region *last = &h->regions[LEDGER_TABLES - 1];
    return last->offset + last->limit_bytes;
}

/** True when the region is backed up to `end_bytes`, growing it if need be. */
static inline bool ledger_reach(struct ledger *l, enum ledger_table table, uint64_t end_bytes)
{
    if (likely(end_bytes <= load_acquire(&l->header->regions[table].ready_bytes)))
        return true;
    return ledger_grow_cold(l, table, end_bytes);
}

/**
 * Memory of the target's own beside the ledger, zeroed, asked for with the same care as growth of the ledger. NULL:
 * there is none, and the header says why.
 */
ONE_COPY void *ledger_private(struct ledger *l, uint64_t bytes);
/**
 * Of such memory only the addresses are still needed: whoever reads it finds zeros. Nothing when no call may be made.
 */
void ledger_empty_private(struct ledger *l, void *memory, uint64_t bytes);
/** Notes why there is no more room, for the first time, and counts the refusal. Always false. */
bool ledger_refuse(struct ledger *l, enum ledger_full why);
/** Reserves `count` records at the end of a table; the index of the first, or LEDGER_NONE. */
ONE_COPY uint32_t ledger_append(struct ledger *l, enum ledger_table table, uint32_t count);

#define ledger_at(l, table, type, index) ((type *)(l)->regions[table] + (index))

#endif
