/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_MAKE_H
#define WIRE_LEDGER_MAKE_H

/*
 * Makes a ledger, from inside the target: its file, its mapping, its control page. ledger_grow.h lets it grow.
 *
 * Runs in: target, cold paths only.
 * Owns: the mapping, until the image ends; no descriptor stays open.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "wire/ledger.h"
#include "wire/ledger_grow.h"

/* Accounts of call sites; a trace of all events, in rings beside the ledger; the rings are a flight recorder: they
 * overwrite their oldest events, and no reader's position holds them back; there are rings, and nothing is written into
 * them until LEDGER_CONTROL_TRACE_OFF is cleared. */
#define LEDGER_WITH_SITES       1u
#define LEDGER_WITH_TRACE       2u
#define LEDGER_WITH_FLIGHT      4u
#define LEDGER_WITH_TRACE_LATER 8u

struct ledger_config {
    /* the value of ALLIUM_DIR; "": not set, the user's default directory is used */
    char dir[LEDGER_PATH_BYTES];
    char runtime_dir[LEDGER_PATH_BYTES]; /* XDG_RUNTIME_DIR; "": not set */
    uint64_t limit_bytes;                /* hard limit of the ledger's memory */
    uint64_t image_id;
    uint64_t period_bytes;
    bool samples, tags; /* which of these the ledger has */
    uint8_t sites;      /* what the full agent keeps besides: LEDGER_WITH_* */
    /* The control page from which the new page gets LEDGER_CONTROL_TAGS_OFF, LEDGER_CONTROL_TRACE_OFF and the rules.
     * NULL: there is none. */
    const struct ledger_control *initial_control;
};

/** A control page without settings and rules. */
extern const struct ledger_control ledger_no_control __attribute__((visibility("hidden")));
/**
 * Creates a ledger: file, mapping, first pages, a part of the header, and the control page. If this fails with the hard
 * limit `limit_bytes`, tries smaller limits. Returns 0 or -errno; on failure, removes the file.
 *
 * If the process cannot use a recorder's directory, for example because it has changed its user, the ledger is made in
 * a directory of the same name in the new user's directory of ledgers. The recorder searches there, too. If the process
 * can use no directory, the ledger is a memfd.
 */
ONE_COPY int ledger_make(struct ledger *l, const struct ledger_config *config);
/** Lets fork children inherit the control page: the tags of a child read it until the child has its own page. */
void ledger_keep_control(struct ledger *l);
/**
 * Opens the directory in which a ledger is made, and stores its path in `dir` ("" on failure). `make`: create the
 * directory if it does not exist. Returns a descriptor, which the caller closes, or -errno.
 */
ONE_COPY long ledger_open_dir(const struct ledger_config *config, char dir[static LEDGER_PATH_BYTES],
                              bool make);
/** Returns the last component of the path `requested` with its slash, "/run-...", if it is a recorder's; else "". */
const char *ledger_recorder_name(const char *requested);
/** Returns how many bytes of the target's address space the mapping of the ledger takes. */
static inline uint64_t ledger_mapped_bytes(const struct ledger_header *h)
{
    const struct ledger_region *last = &h->regions[LEDGER_TABLES - 1];
    return last->offset + last->limit_bytes;
}

#endif
