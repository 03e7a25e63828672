/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_MAKEFILE_WORDS_H
#define SYMBOL_MAKEFILE_WORDS_H

/*
 * The objects and folders that lines of a kernel Makefile name: "ext4-$(CONFIG_EXT4_FS_POSIX_ACL) += acl.o". Conditions
 * (ifdef) and other parts of make's language are passed over.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

#include <stddef.h>

/** "acl.o" of the base "ext4", if the option is set. */
struct makefile_word {
    const char *base, *text; /* neither is terminated */
    size_t base_len, len;
    const char *option; /* "CONFIG_EXT4_FS_POSIX_ACL"; NULL: it is always there */
};

/** Called for each word that is an object or a folder: it ends with ".o" or "/". It is valid during the call. */
typedef void (*makefile_word_found)(void *arg, const struct makefile_word *w);

/** Reads a whole Makefile. */
void makefile_words_find(const char *text, makefile_word_found found, void *arg);

#endif
