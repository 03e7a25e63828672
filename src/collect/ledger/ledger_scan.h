/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_SCAN_H
#define COLLECT_LEDGER_SCAN_H

/*
 * All ledgers on this machine: those in the directories of ledgers, and those that processes map, in any
 * namespaces and roots. A pid is always that of our own namespace, as far as known.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/ledger/ledger_dir.h"

struct ledger_scan {
    struct ledger_list list;
    /* ledgers with accounts of tags; those that are also in `list` do not have `tags` set */
    struct ledger_list tags;
    unsigned unreadable;       /* processes that we may not examine */
    unsigned stuck;            /* processes whose memory maps stay locked, or are too long */
    struct VEC(pid_t) without; /* processes with the agent and without a ledger */
};

/* A process without a ledger, or with one that we may not read. */
struct ledger_mark {
    uint64_t id;   /* of its image */
    int why;       /* an enum preload_check_result; negative: a start that is taken back */
    char *program; /* "": not known */
};

struct ledger_strays {
    struct ledger_list list;
    struct VEC(struct ledger_mark) marks;
};

/** Finds all ledgers. */
void ledger_scan_all(struct ledger_scan *s);
/** Finds the ledgers that process `pid` maps or, if there are none, those left by a process with that pid. */
void ledger_scan_process(struct ledger_scan *s, pid_t pid);
void ledger_scan_release(struct ledger_scan *s);
/**
 * Returns, of the ledgers of one pid, the one in use, else the latest: a process leaves one for each program
 * that it executes, and earlier processes with its pid may have left theirs. NULL: there is none.
 */
const struct ledger_entry *ledger_scan_latest(const struct ledger_list *list);
/** Returns the reason why the ledger of a running process cannot be read: -errno with a line. 0: there is no
 * such process. */
int ledger_scan_unread(const struct ledger_scan *s, struct error *e);
/**
 * Searches all processes for ledgers and marks of the recorder with this directory that are not in the directory: of
 * processes in another root or mount namespace, or of another user, in a directory of its name or without a file name.
 * The list has ledgers of both kinds; `tags` tells them apart. Threads: any.
 */
void ledger_scan_strays(const char *dir, struct ledger_strays *strays);
void ledger_strays_release(struct ledger_strays *strays);
/**
 * Returns the process that maps this ledger, as a pid of our namespace. (The pid in the ledger's name may be
 * that of another namespace, and belong to another process here.) 0: there is none, or none that we may
 * examine.
 */
pid_t ledger_scan_holder(const struct ledger_entry *ledger);

/**
 * Says why nothing of a process can be read: it has ended without a ledger, belongs to another user, or the
 * kernel refuses. `what` is the missing thing: "ledger", "accounts". Returns 0 if none of these applies: the
 * process has none.
 */
int ledger_scan_explain(pid_t pid, bool unreadable, const char *what, struct error *e);

#endif
