/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KALLSYMS_H
#define SYMBOL_KALLSYMS_H

/*
 * /proc/kallsyms as a table: from an address to the symbol of code that holds it.
 *
 * kallsyms has no sizes. A symbol ends where the next one begins, be it code or data, at _etext or _einittext, and at
 * the end of its module (/proc/modules). Code that the kernel made itself ([bpf], [__builtin__ftrace]...) ends at the
 * latest at the next border of 2 MiB, the size of the packs in which BPF programs lie.
 *
 * Where several symbols have one address, the one is chosen that people would call it by, by the first difference of:
 * a name that is no mark and no prefix of the build (__pfx_, __cfi_, __pi_, __traceiter_, ..._start, ..._end, _text);
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
    uint32_t name;      /* where it begins in kallsyms.texts; 0: not code, only an end of what is before */
    uint16_t module;    /* index into kallsyms.modules; 0: the kernel itself */
    uint8_t global : 1; /* or weak */
    uint8_t gone : 1;   /* it was there in an earlier table */
};

struct kallsyms_module {
    uint32_t name;  /* "ext4", "bpf", "__builtin__ftrace" */
    bool made;      /* no module: code that the kernel made */
    uint64_t begin; /* of its code, and */
    uint64_t bytes; /* at most so much; 0: not known */
};

struct kallsyms {
    struct VEC(struct kallsyms_symbol) all; /* by address, one for each, once sorted */
    struct VEC(struct kallsyms_module) modules;
    struct map by_module;
    struct buf texts; /* names, each with its NUL */
    size_t lines, bad_lines;
    uint64_t stext; /* address of the kernel's first code; 0: not told */
    size_t hidden;  /* code at address 0: the kernel does not tell */
};

/**
 * Makes a table of what /proc/kallsyms and /proc/modules say; both as they are, NUL-terminated. `modules` may be "".
 */
void kallsyms_parse(struct kallsyms *k, const char *symbols, const char *modules);
void kallsyms_release(struct kallsyms *k);

/**
 * Takes over from an earlier table what is no more: modules' code and what the kernel made, where nothing else is now.
 */
void kallsyms_inherit(struct kallsyms *k, const struct kallsyms *earlier);

/** The symbol that holds the address, as index; KALLSYMS_NONE: there is none. */
size_t kallsyms_find(const struct kallsyms *k, uint64_t address);
const char *kallsyms_name(const struct kallsyms *k, size_t at);
/** "": the kernel itself. */
const char *kallsyms_module_name(const struct kallsyms *k, size_t at);
/** Can it go while the kernel runs: is it a module's, or made by the kernel? */
bool kallsyms_passes(const struct kallsyms *k, size_t at);

#endif
