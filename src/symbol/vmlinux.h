/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_VMLINUX_H
#define SYMBOL_VMLINUX_H

/*
 * The search for the file that the running kernel was linked as, with its symbols and perhaps its debug information.
 *
 * Runs in: the tool. Owns: the path, until vmlinux_release().
 * Invariant: it has the build id that /sys/kernel/notes tells.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/object.h"

struct vmlinux {
    char *path; /* with the root; NULL: there is none */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len;
    uint64_t stext; /* address of _stext, as linked */
};

/** Looks where distributions and builds put it: below /usr/lib/debug, /boot and /lib/modules, after `root`. */
void vmlinux_seek(struct vmlinux *v, const char *root);
void vmlinux_release(struct vmlinux *v);

/** The GNU build id in a list of ELF notes, of `max` bytes at most. Its length in bytes; 0: none. */
size_t vmlinux_build_id(const void *notes, size_t len, unsigned char *out, size_t max);

#endif
