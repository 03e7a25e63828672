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

/**
 * A function that is called: code of this module (0: elsewhere), or of the module that has the symbol (NULL: it has
 * none).
 */
struct symbol_target {
    const char *symbol;
    uint64_t code;
};

/** A call of a target, or a jump to it: from where, and behind it. */
struct symbol_site {
    uint64_t at, behind;
    bool jumps;
};
typedef void symbol_site_fn(void *arg, const struct symbol_target *target, const struct symbol_site *site);

/** The module's file, if it is there and is the one that was loaded; NULL: it is not. */
struct symbol_calls *symbol_calls_open(const struct symbol_module *module);
void symbol_calls_free(struct symbol_calls *c);
/** The call that returns to that address of the file. */
struct symbol_called symbol_calls_before(const struct symbol_calls *c, uint64_t return_address);
/** Every call and jump in the module that leads to one of these; not what goes by a pointer. */
void symbol_calls_of(const struct symbol_calls *c, const struct symbol_target *targets, size_t n,
                     symbol_site_fn *fn, void *arg);
/** Where the function begins that has this code, by .eh_frame_hdr; 0: not known. */
uint64_t symbol_calls_function(const struct symbol_calls *c, uint64_t address);
/** The name by which other modules know the function that begins there; NULL: they do not. */
const char *symbol_calls_exported(const struct symbol_calls *c, uint64_t entry);

#endif
