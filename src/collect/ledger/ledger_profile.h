/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_PROFILE_H
#define COLLECT_LEDGER_PROFILE_H

/*
 * Makes a profile of one image from the copy of a ledger. Nothing in the copy is trusted: a record that
 * refers to a missing one is left out, and the image is marked inconsistent.
 */

#include "collect/ledger/ledger_copy.h"
#include "model/profile/profile.h"

/**
 * Returns a new profile with one image (number 0); its locations have no names yet. Never NULL. The samples
 * of the copy, of which there may be millions, are freed.
 */
struct profile *ledger_profile(struct ledger_copy *c);
/**
 * Returns a profile with only the stacks. *number: for each stack of the ledger its number in the profile, or
 * PROFILE_NONE if it is inconsistent. The caller frees it.
 */
struct profile *ledger_profile_stacks(struct ledger_copy *c, uint32_t **number);

#endif
