/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAGS_CALLS_H
#define COLLECT_TAGS_CALLS_H

/*
 * The places of a program that does not run which have no descriptor: calls of its helpers (<allium/helper.h>), and of
 * functions of the family that the library knows by where they return to.
 *
 * Runs in: the tool.
 */

#include "collect/accounts/tags_file.h"
#include "symbol/symbol.h"

/** Adds them; a helper of which there are any goes, as its callers are the places. */
void tags_calls_add(struct tags_file *f, const struct symbol_module *module);

#endif
