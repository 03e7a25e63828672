/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KALLSYMS_H
#define SYMBOL_KALLSYMS_H

/*
 * /proc/kallsyms as a table: from an address to the code symbol that contains it.
 *
 * kallsyms has no sizes. A symbol ends where the next one begins, be it code or data, at _etext or
 * _einittext, and at the end of its module (/proc/modules). Code that the kernel generated ([bpf],
 * [__builtin__ftrace]...) ends at the latest at the next border of 2 MiB, the size of the packs in which BPF
 * programs lie.
 *
 * If several symbols have one address, the most usual name is chosen, by the first difference of: a name that
 * is no mark and has no prefix of the build (__pfx_, __cfi_, __pi_, __traceiter_, ..._start, ..._end, _text);
 * global or weak before local; fewer leading underscores; the shorter one; the first one in order of bytes.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its names, until kallsyms_release().
 * Invariant: a name has no blanks, no control characters, and at most KALLSYMS_NAME_MAX bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"

#define KALLSYMS_NAME_MAX 512 /* KSYM_NAME_LEN of 6.1 and later */
#define KALLSYMS_NONE     SIZE_MAX

struct kallsyms_symbol {
    uint64_t address;
    /* offset of the name in kallsyms.texts; 0: not code, but the end of the symbol before */
    uint32_t name;
    uint16_t module;    /* index into kallsyms.modules; 0: the kernel itself */
    uint8_t global : 1; /* or weak */
    uint8_t gone : 1;   /* from an earlier table; no longer in the kernel */
};

struct kallsyms_module {
    uint32_t name;  /* "ext4", "bpf", "__builtin__ftrace" */
    bool made;      /* not a module, but code that the kernel generated */
    uint64_t begin; /* start of its code */
    uint64_t bytes; /* upper bound of its size; 0: not known */
};

struct kallsyms {
    struct VEC(struct kallsyms_symbol) all; /* sorted by address, one symbol for each address */
    struct VEC(struct kallsyms_module) modules;
    struct map by_module;
    struct buf texts; /* names, each with its NUL */
    size_t lines, bad_lines;
    uint64_t stext; /* address of the kernel's first code; 0: not known */
    size_t hidden;  /* code symbols at address 0: the kernel hides addresses */
};

/**
 * Makes a table of the texts of /proc/kallsyms and /proc/modules, unchanged and NUL-terminated. `modules` may
 * be "".
 */
void kallsyms_parse(struct kallsyms *k, const char *symbols, const char *modules);
void kallsyms_release(struct kallsyms *k);

/**
 * Copies symbols of modules and of generated code that have vanished since the earlier table, unless
 * something else lies there now.
 */
void kallsyms_inherit(struct kallsyms *k, const struct kallsyms *earlier);

/** Returns the index of the symbol that contains the address, or KALLSYMS_NONE. */
size_t kallsyms_find(const struct kallsyms *k, uint64_t address);
/**
 * Returns the address of a byte by which to name a frame: the byte before it, which is of the call that returns there,
 * perhaps the last one of its function. In the padding that builds put before functions (__pfx_, __cfi_) is no call: a
 * frame behind it was interrupted at the beginning of the function, and the byte is its own.
 */
uint64_t kallsyms_byte_of_frame(const struct kallsyms *k, uint64_t address);
const char *kallsyms_name(const struct kallsyms *k, size_t at);
/** Returns the name of the function of which a name is, without what marks padding before it. */
const char *kallsyms_without_mark(const char *name);
/** Returns the distance to the next symbol, which the kernel takes for the size; 0: there is none. */
uint64_t kallsyms_bytes(const struct kallsyms *k, size_t at);
/** Returns "" for the kernel itself. */
const char *kallsyms_module_name(const struct kallsyms *k, size_t at);
/** Returns whether the symbol can vanish while the kernel runs, because it belongs to a module or to
 * generated code. */
bool kallsyms_passes(const struct kallsyms *k, size_t at);

#endif
