/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_STRINGS_H
#define TAG_TAG_STRINGS_H

/*
 * Strings of the ledger of tags: classes, names, files, paths of modules. Most places share them with other places, so
 * each string is stored once.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdint.h>

/** The string's number in the ledger, which is added if it is new. 0, the empty string: there is no room. */
uint32_t tag_strings_number(const char *text);
/** In a fork child: forgets the parent's numbers. */
void tag_strings_reset(void);

#endif
