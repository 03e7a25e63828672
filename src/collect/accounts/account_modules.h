/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_ACCOUNT_MODULES_H
#define COLLECT_ACCOUNT_MODULES_H

/*
 * The modules (executables and libraries) that a ledger's accounts of tags or of call sites refer to, and the names of
 * the code in them.
 *
 * Runs in: the tool. Nothing in the ledger is trusted. Owns: paths, until account_modules_release().
 */

#include "base/vec.h"
#include "collect/ledger/ledger_copy.h"
#include "model/accounts/accounts.h"
#include "symbol/symbol.h"

struct account_module {
    char *path;   /* without " (deleted)" */
    uint64_t key; /* ledger_module_key() */
    bool whole;   /* of tags: the rows include all tags of its file */
    uint8_t build_id[LEDGER_BUILD_ID_BYTES];
    size_t build_id_len;
};
struct account_modules VEC(struct account_module);

/** Appends all modules of the copy. */
void account_modules_read(struct account_modules *to, const struct ledger_copy *c);
void account_modules_release(struct account_modules *m);
/** A string of the copy; "" if its number is not valid. */
const char *account_modules_text(const struct ledger_copy *c, uint32_t string);

/** Names a row by the frames of its code, innermost first. */
typedef void account_name_fn(void *arg, struct account_row *row, const struct symbol_frames *frames);
/**
 * Resolves the code of all rows whose entry in `module_of` is `number`, as code of the module `m`, and calls `name` for
 * each. `back` is subtracted from each address: 1 for return addresses, so that the call itself is resolved.
 */
void account_modules_name(struct account_rows *rows, const uint32_t *module_of, uint32_t number,
                          const struct symbol_module *m, uint64_t back, struct symbols *symbols,
                          account_name_fn *name, void *arg);

#endif
