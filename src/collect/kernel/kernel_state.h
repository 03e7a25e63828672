/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KERNEL_STATE_H
#define COLLECT_KERNEL_STATE_H

/*
 * What the kernel tells of its memory and of itself in files, as texts: to be analysed at once, or kept in a recording
 * and analysed later, elsewhere. Each text has the path of its file for a name.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the texts, until kernel_state_release().
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/vec.h"

/* Texts that are not one file's contents. */

/**
 * The attributes of all slab caches, a line each: "dentry\tobject_size\t192". A cache that the kernel merged into
 * another one is a line "UDP\t->\t:0001280", as the link to it is.
 */
#define KERNEL_STATE_SLAB "/sys/kernel/slab"
/** The areas of vmalloc(), with addresses from the lowest one on; "?" in their place: the kernel hides them. */
#define KERNEL_STATE_VMALLOC  "/proc/vmallocinfo"
#define KERNEL_STATE_RELEASE  "/proc/sys/kernel/osrelease"
#define KERNEL_STATE_BUILD_ID "/sys/kernel/notes" /* the GNU build id, in hexadecimal digits */
#define KERNEL_STATE_CONFIG   "/proc/config.gz"   /* unpacked; also if it was read from /boot */
#define KERNEL_STATE_CMDLINE  "/proc/cmdline"
/** The modules, without their addresses: "ext4 1003520 2 - Live". */
#define KERNEL_STATE_MODULES "/proc/modules"
/** What the kernel logged while it booted, as far as it is still there; see collect/kernel/state/boot_log.h. */
#define KERNEL_STATE_BOOT_LOG "/dev/kmsg"
#define KERNEL_STATE_DENTRIES "/proc/sys/fs/dentry-state"
#define KERNEL_STATE_INODES   "/proc/sys/fs/inode-nr"
#define KERNEL_STATE_SLABINFO "/proc/slabinfo"

struct kernel_text {
    char *path;
    struct buf text;
};

struct kernel_state {
    struct VEC(struct kernel_text) texts;
};

/**
 * Which texts are read, bits: those that change (slabinfo, buddyinfo, modules ...), those that do not (release, build
 * id, configuration, command line, log of the boot), and slabinfo alone, before reading the other texts changes it.
 */
#define KERNEL_STATE_MEMORY 1u
#define KERNEL_STATE_KERNEL 2u
#define KERNEL_STATE_SLABS  4u

/**
 * Adds the texts; files that cannot be read are left out, as are those that `s` has already. `root` is put before
 * "/proc", "/sys", "/dev" and "/boot"; it is "" except in tests.
 */
void kernel_state_read(struct kernel_state *s, const char *root, unsigned which);
/** Adds a file, which may be compressed, as KERNEL_STATE_CONFIG. Returns 0, or -errno: -ENOENT, -EACCES ... */
int kernel_state_add_config(struct kernel_state *s, const char *path);
/** Adds a text that comes from elsewhere. */
void kernel_state_add(struct kernel_state *s, const char *path, const char *text, size_t bytes);
/**
 * Adds a copy of a file of the traced machine, as kernel_state_read() would have read it there. KERNEL_STATE_SLAB must
 * be a text, and KERNEL_STATE_CONFIG may be compressed; also "/boot/config-RELEASE" is taken. Other files are passed
 * over.
 */
void kernel_state_add_copy(struct kernel_state *s, const char *path, const char *text, size_t bytes);
/** Returns the text of a file ("/proc/buddyinfo"); NULL: there is none. */
const char *kernel_state_text(const struct kernel_state *s, const char *path);
void kernel_state_release(struct kernel_state *s);

#endif
