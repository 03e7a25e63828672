/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TEXT_IMPORT_H
#define SYS_TEXT_IMPORT_H

/*
 * The lines of a trace in text as events for `allium sys import`.
 *
 * Runs in: the tool. Threads: one. Owns: events that wait for their stacks, until text_import_free().
 */

#include <stddef.h>

#include "sys/record/import/kernel_import.h"

struct text_import;

/** `to` must outlive it. Never NULL. */
struct text_import *text_import_new(struct kernel_import *to);
void text_import_free(struct text_import *t); /* NULL is allowed */

/** Accounts what a line says. */
void text_import_line(struct text_import *t, const char *line, size_t len);
/** After the last line: accounts the events that wait. */
void text_import_end(struct text_import *t);

#endif
