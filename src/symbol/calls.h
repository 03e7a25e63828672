/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CALLS_H
#define SYMBOL_CALLS_H

/*
 * What a call instruction calls, as the module's file tells. x86-64 only.
 *
 * Runs in: the tool. Owns: the open file, until symbol_calls_free(); names are the file's.
 */

#include "symbol/symbol.h"

struct symbol_calls;

enum symbol_call {
    SYMBOL_CALL_NONE,    /* no call instruction ends there */
    SYMBOL_CALL_POINTER, /* one does, through a pointer: where to is not known */
    SYMBOL_CALL_SYMBOL,  /* a function of whichever module has it, by name */
    SYMBOL_CALL_CODE,    /* code of this module */
};

struct symbol_called {
    enum symbol_call how;
    const char *symbol; /* SYMBOL_CALL_SYMBOL */
    uint64_t code;      /* SYMBOL_CALL_CODE: address in the file */
};

/** The module's file, if it is there and is the one that was loaded; NULL: it is not. */
struct symbol_calls *symbol_calls_open(const struct symbol_module *module);
void symbol_calls_free(struct symbol_calls *c);
/** The call that returns to that address of the file. */
struct symbol_called symbol_calls_before(const struct symbol_calls *c, uint64_t return_address);

#endif
