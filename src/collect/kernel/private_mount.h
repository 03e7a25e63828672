/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PRIVATE_MOUNT_H
#define COLLECT_PRIVATE_MOUNT_H

/*
 * A file system of the kernel, such as tracefs, mounted for this process alone, at no place in the file system.
 *
 * Runs in: the tool, with CAP_SYS_ADMIN. Threads: any. Owns: nothing.
 */

/** Returns a descriptor of its root, which the caller closes, or -errno. */
int private_mount(const char *type);

#endif
