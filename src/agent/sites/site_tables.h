/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_TABLES_H
#define AGENT_SITE_TABLES_H

/*
 * The tables by which sites are numbered: the slots of return addresses (site_slots.h), and the numbers of tags among
 * sites.
 *
 * Runs in: target, cold paths.
 * Owns: memory for SITES_GENERATIONS of tables, wiped by the kernel in fork children. A child switches to the next
 * generation, because code that a forking signal handler interrupted may still write to the tables of the parent.
 */

#include <stdbool.h>
#include <stdint.h>

/** Reserves all tables, and calls site_tables_take(). Called once. False: there is no memory. */
bool site_tables_begin(uint32_t generation);
/**
 * Switches to the tables of the generation, which are empty. False: there is no memory, and the tables of the parent
 * stay in use; the kernel has wiped them.
 */
bool site_tables_take(uint32_t generation);
/** Returns the address of the number that the tag with this account has among the sites; the number is 0 if it has none
 * yet. NULL: there is no memory. */
uint32_t *site_tables_of_tag(uint32_t account);

#endif
