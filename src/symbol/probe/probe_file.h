/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_PROBE_FILE_H
#define SYMBOL_PROBE_FILE_H

/*
 * A program or library in which probes are to be placed: its functions by name, its code, and the offsets in the file
 * by which the kernel knows places. x86-64 only.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the open files, until probe_file_close().
 */

#include "base/error.h"
#include "symbol/elf_file.h"

/** Code of the file that is mapped with the right to execute. */
struct probe_code {
    uint64_t low, high; /* addresses */
    const uint8_t *bytes;
};

struct probe_file {
    struct symbol_object *object;
    struct symbol_object *debug; /* NULL: none on this machine */
    struct VEC(struct probe_code) codes;
};

/** Returns 0, or -errno with a line. */
int probe_file_open(struct probe_file *f, const char *path, struct error *e);
void probe_file_close(struct probe_file *f);

/** What a name means. */
enum probe_function {
    PROBE_FUNCTION_NONE,
    PROBE_FUNCTION_ONE,
    PROBE_FUNCTION_SEVERAL, /* local functions, of which nothing tells which one is meant */
    /* Only its resolver is known (STT_GNU_IFUNC): when the program starts, it chooses one of several functions. */
    PROBE_FUNCTION_CHOSEN,
};

/**
 * Finds a function by its symbol, as nm(1) prints it. An exported one is preferred to local ones, and of several
 * versions the default one. *bytes: its size; 0: not known.
 */
enum probe_function probe_file_function(const struct probe_file *f, const char *name, uint64_t *address,
                                        uint64_t *bytes);
/** Calls `fn` with the name of each function, some several times. */
void probe_file_names(const struct probe_file *f, void (*fn)(void *arg, const char *name), void *arg);
/** Returns the code that contains the address, or NULL. */
const struct probe_code *probe_file_code(const struct probe_file *f, uint64_t address);
/** Returns whether the address is in a part of the file that is mapped; *offset: where in the file. */
bool probe_file_offset(const struct probe_file *f, uint64_t address, uint64_t *offset);

#endif
