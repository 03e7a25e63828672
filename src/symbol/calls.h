/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CALLS_H
#define SYMBOL_CALLS_H

/*
 * Finds the target of a call instruction in the module's file. x86-64 only.
 *
 * Runs in: the tool. Owns: the open file, until symbol_calls_free(). Names belong to the file.
 */

#include "symbol/symbol.h"

struct symbol_calls;

enum symbol_call {
    SYMBOL_CALL_NONE,    /* no call instruction ends at the address */
    SYMBOL_CALL_POINTER, /* a call through a pointer: its target is not known */
    SYMBOL_CALL_SYMBOL,  /* a call by name of a function in the module that defines it */
    SYMBOL_CALL_CODE,    /* a call of code in this module */
};

struct symbol_called {
    enum symbol_call how;
    const char *symbol; /* SYMBOL_CALL_SYMBOL */
    uint64_t code;      /* SYMBOL_CALL_CODE: address in the file */
};

/**
 * A function that is called. `code`: its address in this module, or 0 if it is elsewhere. `symbol`: its
 * exported name in another module, or NULL if it has none.
 */
struct symbol_target {
    const char *symbol;
    uint64_t code;
};

/** A call of a target, or a jump to it: the address of the instruction, and the address behind the
 * instruction. */
struct symbol_site {
    uint64_t at, behind;
    bool jumps;
};
typedef void symbol_site_fn(void *arg, const struct symbol_target *target, const struct symbol_site *site);

/** Opens the module's file. Returns NULL if the file does not exist or is not the one that was loaded. */
struct symbol_calls *symbol_calls_open(const struct symbol_module *module);
void symbol_calls_free(struct symbol_calls *c);
/** Returns the call whose return address is that address of the file. */
struct symbol_called symbol_calls_before(const struct symbol_calls *c, uint64_t return_address);
/** Calls `fn` for each call and jump in the module that leads to one of the targets, except calls through
 * pointers. */
void symbol_calls_of(const struct symbol_calls *c, const struct symbol_target *targets, size_t n,
                     symbol_site_fn *fn, void *arg);
/** Returns where the function that contains the address begins, according to .eh_frame_hdr; 0: not known. */
uint64_t symbol_calls_function(const struct symbol_calls *c, uint64_t address);
/** Returns the exported name of the function that begins at `entry`, or NULL. */
const char *symbol_calls_exported(const struct symbol_calls *c, uint64_t entry);

#endif
