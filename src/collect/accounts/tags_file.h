/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAGS_FILE_H
#define COLLECT_TAGS_FILE_H

/*
 * The tags of a program or library file, from the sections that <allium/tag.h> creates: a place for each
 * descriptor. Their counts exist only in processes.
 *
 * Runs in: the tool. Nothing in the file is trusted: inconsistent parts are left out and counted.
 */

#include <stdbool.h>
#include <stdint.h>

#include <libelf.h>

#include "base/error.h"
#include "base/vec.h"

struct tags_file_tag {
    const char *class, *name, *file; /* as the program names them, in the file's bytes; "": not given */
    unsigned line;                   /* 0: not known */
    uint64_t code;                   /* address in the file */
};

struct tags_file {
    Elf *elf; /* owns the bytes that texts point to */
    struct VEC(struct tags_file_tag) tags;
    const void *build_id;    /* in the file's bytes */
    size_t build_id_len;     /* 0: it has none */
    uint64_t not_understood; /* parts of the sections that are not our descriptors */
};

/** Returns whether the file begins as an ELF file or as an archive. False also if there is no such file. */
bool tags_file_is_binary(const char *path);
/**
 * Returns 0, or -errno with a line: it cannot be opened, is not ELF, is for another machine, is no program or
 * library, is cut short, or has no tags (-ENOENT).
 */
int tags_file_open(struct tags_file *f, const char *path, struct error *e);
/** Like tags_file_open(), for an open file. Takes the handle, also on failure. `path` is for the message
 * only. */
int tags_file_read(struct tags_file *f, Elf *elf, const char *path, struct error *e);
void tags_file_release(struct tags_file *f);

#endif
