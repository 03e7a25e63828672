/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

/*
 * One ELF file, opened inside a process's root directory or on this machine, and the search for its separate debug
 * file.
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
    /* On this machine, belongs to root or to us, and no server sent it: it may name other files to open. */
    bool trusted;
};

/** What identifies a file as long as nobody writes to it. */
struct symbol_identity {
    uint64_t device, inode, size_bytes;
    int64_t mtime_ns;
};

/**
 * 0; or -ENOENT, -ENOEXEC (not an ELF program, library or debug file), -ETIMEDOUT (its file system, in another root,
 * does not answer), or what open(2) gave. Caller frees.
 */
int symbol_object_open(const char *root, const char *path, struct symbol_object **out);
void symbol_object_free(struct symbol_object *o);
/** False for a relocatable file, which is what dwz makes of what several files share. */
bool symbol_object_has_addresses(const struct symbol_object *o);
/** 0 or what open(2) gave. Nothing is read. */
int symbol_object_identify(const char *root, const char *path, struct symbol_identity *out);
/** True when root is "" or a directory that can be reached. */
bool symbol_object_root_exists(const char *root);

/** Length in bytes, 0 when there is none (or one of over SYMBOL_BUILD_ID_MAX bytes); owned by the object. */
size_t symbol_object_build_id(const struct symbol_object *o, const unsigned char **bits);
bool symbol_object_has_build_id(const struct symbol_object *o, const unsigned char *bits, size_t len);
bool symbol_object_has_dwarf(const struct symbol_object *o);

/**
 * Length in bytes of the build id of the file that dwz put what several files share into, and its name; 0: there is
 * none.
 */
size_t symbol_object_alternate(const struct symbol_object *o, const char **name, const unsigned char **bits);

/** What is known when a debug file is looked for. Every pointer may be NULL. */
struct symbol_debug_search {
    const char *root;
    const char *path; /* of the stripped file, without the root */
    const unsigned char *build_id;
    size_t build_id_len;
    const char *link; /* .gnu_debuglink */
    uint32_t link_crc;
};

/**
 * The separate debug file, first under the root and then on this machine, by build id and then by name; its build id
 * must agree, or the checksum where there is no build id. NULL when there is none. Caller frees.
 */
struct symbol_object *symbol_debug_find(const struct symbol_debug_search *search);

/** A file that a server sent, if it is the debug file of that build id, else NULL. Caller frees. */
struct symbol_object *symbol_debug_open(const char *path, const unsigned char *build_id, size_t build_id_len);

/** The file that .gnu_debugaltlink of `debug` names (dwz), with the build id asked for, or NULL. Caller frees. */
struct symbol_object *symbol_debug_find_alternate(const struct symbol_object *debug, const char *name,
                                                  const unsigned char *build_id, size_t build_id_len);

#endif
