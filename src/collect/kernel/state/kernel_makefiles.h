/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KERNEL_MAKEFILES_H
#define COLLECT_KERNEL_MAKEFILES_H

/*
 * Which directories and files of the kernel's source are built for an option of the configuration: the lines
 * "obj-$(CONFIG_EXT4_FS) += ext4/" of its Makefiles, and what objects like ext4.o are made of: "ext4-y := balloc.o".
 * What is built for several options, or always, belongs to none.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the lines of one Makefile, until makefile_release().
 * Invariant: nothing that is read is trusted. Conditions (ifdef) and other parts of make's language are passed over.
 */

#include "base/error.h"
#include "model/kernel/advice/advice.h"

/** The options that are set, of a configuration: "CONFIG_EXT4_FS" -> index into `modules`. */
struct kernel_config {
    struct map index;
    struct VEC(bool) modules; /* =m */
    uint64_t log_buf_shift;   /* CONFIG_LOG_BUF_SHIFT; 0: not known */
};

void kernel_config_parse(struct kernel_config *c, const char *text);
void kernel_config_release(struct kernel_config *c);

/**
 * Takes what the lines of one Makefile bring. `folder` is its folder in the source, "fs/ext4/", or "".
 */
void makefile_parse(struct advice_input *in, const struct kernel_config *c, const char *folder,
                    const char *text);
/**
 * Takes the Makefiles of a tree, and the sizes of object files that were built in it. Returns 0, or -errno with a line;
 * -ENOENT: there is no such folder, or no Makefile in it.
 */
int kernel_makefiles_read(struct advice_input *in, const struct kernel_config *c, const char *source,
                          struct error *e);

#endif
