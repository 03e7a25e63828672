/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_VMLINUX_H
#define SYMBOL_VMLINUX_H

/*
 * The file that the running kernel was linked as, with its symbols and debug information: the search for it, and
 * whether a file is it.
 *
 * Runs in: the tool. Owns: the path, until vmlinux_release().
 * Invariant: it has the build id that /sys/kernel/notes tells, or `unchecked` says that nobody could compare them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/elf_file.h"

struct vmlinux {
    char *path; /* with the root; NULL: there is none */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len;   /* 0: it has none */
    bool unchecked;        /* it has none, or the kernel does not tell its own */
    bool sent;             /* by a server */
    uint64_t stext;        /* address of _stext, as linked */
    uint64_t in_init_main; /* of start_kernel(), which is in init/main.c; 0: it has no such symbol */
};

/** Looks where distributions and builds put it: below /usr/lib/debug, /boot and /lib/modules, after `root`. */
void vmlinux_seek(struct vmlinux *v, const char *root);
/**
 * Takes the file at `path` for that of the kernel that runs, below `root` ("" but for tests) of which /sys tells the
 * build id. 0; or the line is in `e` and nothing is taken: -ESTALE it is of another kernel, -ENOEXEC no ELF file,
 * -ENODATA it has no debug information or no symbol _stext, or what opening it gave.
 */
int vmlinux_open(struct vmlinux *v, const char *root, const char *path, struct error *e);
void vmlinux_release(struct vmlinux *v);

/** The running kernel's GNU build id, of which `root` has /sys. Its length in bytes; 0: it does not tell. */
size_t vmlinux_kernel_build_id(const char *root, unsigned char out[static SYMBOL_BUILD_ID_MAX]);
/** The GNU build id in a list of ELF notes, of `max` bytes at most. Its length in bytes; 0: none. */
size_t vmlinux_build_id(const void *notes, size_t len, unsigned char *out, size_t max);

#endif
