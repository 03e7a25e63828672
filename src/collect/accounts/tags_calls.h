/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAGS_CALLS_H
#define COLLECT_TAGS_CALLS_H

/*
 * The places of a program file that have no descriptor: calls of its helpers (<allium/helper.h>), and of
 * functions of the malloc family that the library identifies by return address.
 */

#include "collect/accounts/tags_file.h"
#include "symbol/symbol.h"

/** Adds these places. A helper that has calls is removed, because its callers are the places. */
void tags_calls_add(struct tags_file *f, const struct symbol_module *module);

#endif
