/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ASKED_H
#define COLLECT_ASKED_H

/*
 * What is asked of the places of a running process that has tags: the lists behind its control page (wire/ledger.h).
 *
 * Runs in: the tool. Owns: lists are freed by vec_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "collect/ledger_dir.h"
#include "wire/ledger.h"

/** First what is to `clear` goes, then `set` is asked; bits are 1 << enum ledger_ask. */
struct asked_change {
    uint32_t clear, set;
    enum ledger_fail fail;
    uint32_t n;
    uint64_t until_ns; /* CLOCK_MONOTONIC; 0: for good */
};

struct asked_keys VEC(uint64_t);
struct asked_list VEC(struct ledger_action);

/** Of the places with these keys, in any order. It is done under a lock. 0, or -errno with a line. */
int asked_of_places(const struct ledger_entry *tags, struct asked_keys *keys, const struct asked_change *c,
                    struct error *e);
/** Whether all places are on that are not asked otherwise; what was asked of some goes. */
int asked_of_all(const struct ledger_entry *tags, bool off, struct error *e);
/** What is in force now, by key, what has run out left out. *off: see asked_of_all(). */
int asked_read(const struct ledger_entry *tags, struct asked_list *list, bool *off, struct error *e);

#endif
