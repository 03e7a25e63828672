/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_STATIC_PROBE_H
#define SYMBOL_STATIC_PROBE_H

/*
 * The static probes of a program or library: notes that <sys/sdt.h> leaves in the section .note.stapsdt. A note has
 * the address of an instruction, the provider's and the probe's names, and the places of its values in the assembler's
 * words, "-4@%edi 8@16(%rsp)". The format: https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
 *
 * Runs in: the tool. Threads: any. Nothing in the file is trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

#define STATIC_PROBE_OPERANDS 12u

struct static_probe {
    const char *provider, *name, *operands; /* in the file */
    uint64_t address;
    uint64_t semaphore; /* the address of the counter of tools that are attached; 0: none */
};

/** Calls `fn` for each note of the file. */
void static_probes_read(Elf *elf, void (*fn)(void *arg, const struct static_probe *p), void *arg);

enum static_place { STATIC_CONSTANT, STATIC_REGISTER, STATIC_MEMORY };

/** A register: its place in struct user_regs_struct of <sys/user.h>, which has the order of the kernel's. */
#define STATIC_NO_REGISTER -1

struct static_operand {
    enum static_place place;
    int64_t value;   /* the constant; or memory is at value + base + index * scale */
    int base, index; /* registers */
    uint8_t scale, bytes;
    bool is_signed;
};

/**
 * Reads all operands. Returns their number; or -1: *bad is the first one that cannot be read (a floating-point or high
 * register, a symbol), of *bad_len characters.
 */
int static_operands_parse(const char *text, struct static_operand out[static STATIC_PROBE_OPERANDS],
                          const char **bad, size_t *bad_len);

#endif
