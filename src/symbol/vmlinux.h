/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_VMLINUX_H
#define SYMBOL_VMLINUX_H

/*
 * The vmlinux of a kernel, with its symbols and debug information: the search for that of the running kernel, and the
 * check whether a file belongs to a kernel.
 *
 * Runs in: the tool. Owns: the path and the modules, until vmlinux_release().
 * Invariant: the file has the build id of the kernel (/sys/kernel/notes if it runs here), or its release if one of the
 * two has no build id, or `unchecked` is true because there was nothing to compare.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/elf_file.h"

struct kernel_modules;

/** What tells kernels apart. */
struct kernel_identity {
    const char *of; /* for error lines: "running kernel", "trace" */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len; /* 0: not known */
    char release[256];   /* "6.12.0-1-amd64"; "": not known */
};

struct vmlinux {
    char *path;                     /* with the root; NULL: there is none */
    struct kernel_modules *modules; /* of the same kernel; NULL without a path */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len; /* 0: the file has none */
    bool unchecked;      /* the kernel and the file have nothing that could be compared */
    char release[256];   /* of which the file was built; "": it does not tell */
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
/**
 * Takes the file as that of some kernel, of which a trace may tell more later: vmlinux_check(). Returns as above,
 * without -ESTALE.
 */
int vmlinux_open_any(struct vmlinux *v, const char *path, struct error *e);
/** Compares a file from vmlinux_open_any() with the kernel, and sets `unchecked`. Returns 0, or -ESTALE and a line. */
int vmlinux_check(struct vmlinux *v, const struct kernel_identity *kernel, struct error *e);
void vmlinux_release(struct vmlinux *v);

/** Reads the running kernel's GNU build id from /sys below `root`. Returns its length in bytes; 0: the kernel
 * does not show it. */
size_t vmlinux_kernel_build_id(const char *root, unsigned char out[static SYMBOL_BUILD_ID_MAX]);
/** Reads the GNU build id from a list of ELF notes, at most `max` bytes. Returns its length in bytes; 0:
 * none. */
size_t vmlinux_build_id(const void *notes, size_t len, unsigned char *out, size_t max);

#endif
