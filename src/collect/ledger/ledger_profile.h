/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_PROFILE_H
#define COLLECT_LEDGER_PROFILE_H

/*
 * From the copy of a ledger to a profile of one image. Nothing in the copy is trusted: a record that refers to what is
 * not there is left out, and the image is marked inconsistent.
 *
 * Runs in: the tool. Pure apart from memory.
 */

#include "collect/ledger/ledger_copy.h"
#include "model/profile/profile.h"

/**
 * A new profile with one image (number 0); its locations have no names yet. Never NULL. The samples of the copy, of
 * which there may be millions, are gone afterwards.
 */
struct profile *ledger_profile(struct ledger_copy *c);
/**
 * Its stacks alone. *number: what each of the ledger's is called in the profile, PROFILE_NONE: it makes no sense; the
 * caller frees it.
 */
struct profile *ledger_profile_stacks(struct ledger_copy *c, uint32_t **number);

#endif
