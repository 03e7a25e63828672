/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

/*
 * One ELF file, opened inside a process's root directory or on this machine, and the search for its separate
 * debug file.
 *
 * Runs in: the tool. Owns: the Elf handle, until symbol_object_free(); no descriptor stays open.
 * Invariant: only regular files are opened for reading; links inside a root stay inside it.
 */

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

#define SYMBOL_BUILD_ID_MAX 64

struct symbol_object {
    Elf *elf;
    char *path; /* without the root */
    char *root; /* "" on this machine */
    uint64_t size_bytes;
    int64_t mtime_ns;
    /* The file is on this machine, belongs to root or to our user, and did not come from a server: it may
     * name other files to open. */
    bool trusted;
};

/** Identifies a file as long as nobody writes to it. */
struct symbol_identity {
    uint64_t device, inode, size_bytes;
    int64_t mtime_ns;
};

/**
 * Opens a file. Returns 0, -ENOENT, -ENOEXEC (not an ELF program, library or debug file), -ETIMEDOUT (its
 * file system, in another root, does not answer), or the error of open(2). The caller frees `*out`.
 */
int symbol_object_open(const char *root, const char *path, struct symbol_object **out);
void symbol_object_free(struct symbol_object *o);
/** Returns false for a relocatable file. dwz writes such files for data that several files share. */
bool symbol_object_has_addresses(const struct symbol_object *o);
/** Returns 0 or the error of open(2). Reads nothing from the file. */
int symbol_object_identify(const char *root, const char *path, struct symbol_identity *out);
/** Returns true when root is "" or a directory that can be reached. */
bool symbol_object_root_exists(const char *root);

/** Returns the length of the build id in bytes, 0 when there is none (or one of over SYMBOL_BUILD_ID_MAX
 * bytes). The object owns `*bits`. */
size_t symbol_object_build_id(const struct symbol_object *o, const unsigned char **bits);
bool symbol_object_has_build_id(const struct symbol_object *o, const unsigned char *bits, size_t len);
bool symbol_object_has_dwarf(const struct symbol_object *o);

/**
 * Returns name and build id of the file into which dwz moved data shared by several files. Returns the length
 * of the build id in bytes; 0: there is no such file.
 */
size_t symbol_object_alternate(const struct symbol_object *o, const char **name, const unsigned char **bits);

/** The facts known when a debug file is searched. Every pointer may be NULL. */
struct symbol_debug_search {
    const char *root;
    const char *path; /* of the stripped file, without the root */
    const unsigned char *build_id;
    size_t build_id_len;
    const char *link; /* .gnu_debuglink */
    uint32_t link_crc;
};

/**
 * Finds the separate debug file, first under the root and then on this machine, by build id and then by name.
 * Its build id must agree, or its checksum where there is no build id. Returns NULL when there is none. The
 * caller frees the result.
 */
struct symbol_object *symbol_debug_find(const struct symbol_debug_search *search);

/** Opens a file that a server sent. Returns NULL if it is not the debug file of that build id. The caller
 * frees the result. */
struct symbol_object *symbol_debug_open(const char *path, const unsigned char *build_id, size_t build_id_len);

/** Opens the file that .gnu_debugaltlink of `debug` names (dwz), if it has the given build id, else returns
 * NULL. The caller frees it. */
struct symbol_object *symbol_debug_find_alternate(const struct symbol_object *debug, const char *name,
                                                  const unsigned char *build_id, size_t build_id_len);

#endif
