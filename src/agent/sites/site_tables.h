/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITE_TABLES_H
#define AGENT_SITE_TABLES_H

/*
 * The tables by which sites are numbered: the slots of return addresses (site_slots.h), and the numbers of tags among
 * sites.
 *
 * Runs in: target, cold paths.
 * Owns: memory for SITES_GENERATIONS of tables, wiped by the kernel in fork children. A child switches to the
 * next generation: code that a forking signal handler interrupted may still write to the tables of the
 * parent.
 */

#include <stdbool.h>
#include <stdint.h>

/** Reserves all tables and takes those of the generation; once. False: there is no memory. */
bool site_tables_begin(uint32_t generation);
/** Begins with empty tables. False: there is no memory, and the tables stay those of the parent, wiped. */
bool site_tables_take(uint32_t generation);
/** Returns where the number of the tag with this account among the sites is stored; 0 there: it has none yet.
 * NULL: there is no memory. */
uint32_t *site_tables_of_tag(uint32_t account);

#endif
