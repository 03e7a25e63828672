/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_SCAN_H
#define COLLECT_LEDGER_SCAN_H

/*
 * All ledgers there are on this machine: those in the directories where they lie, and those that processes map, in
 * whatever namespaces and roots. A pid is always the one of our own namespace, as far as it is known.
 *
 * Runs in: the tool. Owns: its list, until ledger_scan_release().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"

struct ledger_scan {
    struct ledger_list list;
    struct ledger_list
        tags; /* ledgers that have accounts of tags; those of `list` among them are not `tags` themselves */
    unsigned unreadable;       /* processes that we may not look at */
    unsigned stuck;            /* processes whose memory maps stay locked, or have no end */
    struct VEC(pid_t) without; /* processes that carry the agent and have no ledger */
};

/* A process that has no ledger, or one that may not be read. */
struct ledger_mark {
    uint64_t id;   /* of its image */
    int why;       /* an enum carrier; negative: a start that is taken back */
    char *program; /* "": not known */
};

struct ledger_strays {
    struct ledger_list list;
    struct VEC(struct ledger_mark) marks;
};

/** Everything. */
void ledger_scan_all(struct ledger_scan *s);
/** Only what process `pid` maps, or, if that is nothing, what is left of one that was called so. */
void ledger_scan_process(struct ledger_scan *s, pid_t pid);
void ledger_scan_release(struct ledger_scan *s);
/**
 * Of those of one pid the one that lives, else the one that began last: a process that executes programs leaves one for
 * each, and others that had its number before it may have left theirs. NULL: there is none.
 */
const struct ledger_entry *ledger_scan_latest(const struct ledger_list *list);
/** Why a process that was found and runs has a ledger that cannot be read: -errno with a line. 0: it has none such. */
int ledger_scan_unread(const struct ledger_scan *s, struct error *e);
/**
 * Searches all processes for ledgers and marks of the recorder with this directory that are out of its sight: of
 * processes in another root or mount namespace, or of another user, in a directory of its name or without one. Ledgers
 * of both kinds are in the list, told apart by `tags`. Threads: any.
 */
void ledger_scan_strays(const char *dir, struct ledger_strays *strays);
void ledger_strays_release(struct ledger_strays *strays);
/**
 * The process that maps this ledger, as we call it: its name may say what it is called in another namespace, which is
 * somebody else here. 0: there is none, or none that we may look at.
 */
pid_t ledger_scan_holder(const struct ledger_entry *ledger);

/**
 * Says why nothing of a process can be read: it has ended without a ledger, or belongs to another user, or the kernel
 * refuses. `what` it might have had: "ledger", "accounts". 0: none of these; the process has none.
 */
int ledger_scan_explain(pid_t pid, bool unreadable, const char *what, struct error *e);

#endif
