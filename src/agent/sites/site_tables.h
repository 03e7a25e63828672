/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_TABLES_H
#define AGENT_SITE_TABLES_H

/*
 * The tables by which sites are numbered: the slots of return addresses (site_slots.h), and the numbers of tags among
 * sites.
 *
 * Runs in: target, cold paths.
 * Owns: SITES_GENERATIONS sets of these tables, in memory that the kernel wipes in fork children. A child switches to
 * the next set, because code that a forking signal handler interrupted may still write to the tables of the parent.
 */

#include <stdbool.h>
#include <stdint.h>

/** Reserves address space for all sets, and calls site_tables_take(). Called once. False: there is no memory. */
bool site_tables_begin(uint32_t generation);
/**
 * Switches to the set of tables for this generation of the process; its tables are empty. False: there is no memory,
 * and the tables of the parent stay in use; the kernel has wiped them.
 */
bool site_tables_take(uint32_t generation);
/** Returns the address of a word for the number that the tag with this account has among the sites; the word is 0 if
 * the tag has no number yet. NULL: there is no memory, or `account` is SITES_MOST or more. */
uint32_t *site_tables_of_tag(uint32_t account);

#endif
