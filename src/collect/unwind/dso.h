/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_DSO_H
#define COLLECT_DSO_H

/*
 * A program or library as a file: which of its addresses lies where in it, and what its unwind rules say of an address.
 *
 * Runs in: the tool. Threads: one. Owns: the open file, until dso_free().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dso;

/**
 * The file at `path` within `root` ("" or NULL: here), of that inode (0: whatever lies there); NULL: it cannot be had,
 * is another one, or no ELF.
 */
struct dso *dso_open(const char *root, const char *path, uint64_t inode);
/** An ELF image as it is loaded, the vdso; it is the caller's, and must live longer. NULL: it is none. */
struct dso *dso_open_image(const void *image, size_t bytes);
void dso_free(struct dso *f);

/** The build id; 0 bytes: it has none. */
size_t dso_build_id(const struct dso *f, const uint8_t **bits);
/** The ELF's own address of what lies at that offset; false: it is not loaded. */
bool dso_address(const struct dso *f, uint64_t offset, uint64_t *address);

enum dso_step {
    DSO_BY_RBP, /* the caller's frame is where rbp says: CFA = rbp + 16, return address and rbp saved below it */
    DSO_OTHERWISE,
    DSO_NO_RULES, /* no entry of .eh_frame is for it, or none that can be understood */
};
/** How a step from a frame to its caller is made at that address; of a return address, one less. Remembered. */
enum dso_step dso_step(struct dso *f, uint64_t address);

#endif
