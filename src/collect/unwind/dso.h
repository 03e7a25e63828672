/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_DSO_H
#define COLLECT_DSO_H

/* A program or library file: the file offset of its addresses, and the unwind rules for an address. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dso;

/**
 * Opens the file at `path` within `root` ("" or NULL: our own), with that inode (0: any). NULL: it cannot be
 * opened, is another file, or is not ELF.
 */
struct dso *dso_open(const char *root, const char *path, uint64_t inode);
/** Opens an ELF image in memory, the vdso. The image belongs to the caller and must live longer. NULL: it is
 * not one. */
struct dso *dso_open_image(const void *image, size_t bytes);
void dso_free(struct dso *f);

/** Returns the length of the build id; 0: it has none. */
size_t dso_build_id(const struct dso *f, const uint8_t **bits);
/** Finds the ELF file's address for a file offset. Returns false if that part is not loaded. */
bool dso_address(const struct dso *f, uint64_t offset, uint64_t *address);

enum dso_step {
    DSO_BY_RBP, /* the frame is at rbp: CFA = rbp + 16, with return address and rbp saved below it */
    DSO_OTHERWISE,
    DSO_NO_RULES, /* .eh_frame has no entry for the address, or none that can be parsed */
};
/** Returns how to step from a frame at that address to its caller; for a return address, pass one less. The
 * result is cached. */
enum dso_step dso_step(struct dso *f, uint64_t address);

#endif
