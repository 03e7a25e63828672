/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_VMLINUX_H
#define SYMBOL_VMLINUX_H

/*
 * The vmlinux of the running kernel, with its symbols and debug information: the search for the file, and the
 * check whether a file belongs to this kernel.
 *
 * Runs in: the tool. Owns: the path, until vmlinux_release().
 * Invariant: the file has the build id in /sys/kernel/notes, or `unchecked` is true because the two could not
 * be compared.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/elf_file.h"

struct vmlinux {
    char *path; /* with the root; NULL: there is none */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len; /* 0: the file has none */
    bool unchecked;      /* the file has no build id, or the kernel does not show its own */
    bool sent;           /* the file came from a server */
    uint64_t stext;      /* address of _stext in the file */
    /* address of start_kernel(), which is in init/main.c; 0: there is no such symbol */
    uint64_t in_init_main;
};

/** Searches below /usr/lib/debug, /boot and /lib/modules in `root`, where distributions and builds put the
 * file. */
void vmlinux_seek(struct vmlinux *v, const char *root);
/**
 * Takes the file at `path` as that of the running kernel. `root` ("" except in tests) is the directory whose
 * /sys has the kernel's build id. Returns 0, or, with a line in `e` and nothing taken: -ESTALE it belongs to
 * another kernel, -ENOEXEC it is not an ELF file, -ENODATA it has no debug information or no symbol _stext,
 * or the error of opening it.
 */
int vmlinux_open(struct vmlinux *v, const char *root, const char *path, struct error *e);
void vmlinux_release(struct vmlinux *v);

/** Reads the running kernel's GNU build id from /sys below `root`. Returns its length in bytes; 0: the kernel
 * does not show it. */
size_t vmlinux_kernel_build_id(const char *root, unsigned char out[static SYMBOL_BUILD_ID_MAX]);
/** Reads the GNU build id from a list of ELF notes, at most `max` bytes. Returns its length in bytes; 0:
 * none. */
size_t vmlinux_build_id(const void *notes, size_t len, unsigned char *out, size_t max);

#endif
