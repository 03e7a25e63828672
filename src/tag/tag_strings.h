/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_STRINGS_H
#define TAG_TAG_STRINGS_H

/*
 * Strings of tags in the ledger: classes, names, files, paths of modules. Many places share them, so each string is
 * stored once.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 */

#include <stdint.h>

/** Returns the index of the string in LEDGER_STRINGS; adds the string if it is new. 0, the index of "": no room. */
uint32_t tag_strings_number(const char *text);
/** Called in a fork child: forgets all strings, because the child's ledger is empty. */
void tag_strings_reset(void);

#endif
