/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TAGS_FILE_H
#define COLLECT_TAGS_FILE_H

/*
 * The tags of a program or library that does not run, from the sections that <allium/tag.h> makes: a place for each
 * descriptor, as the file has them. What they hold is known of processes alone.
 *
 * Runs in: the tool. Nothing in the file is trusted: what makes no sense is left out, and counted.
 */

#include <stdbool.h>
#include <stdint.h>

#include <libelf.h>

#include "base/error.h"
#include "base/vec.h"

struct tags_file_tag {
    const char *class, *name, *file; /* as the program says them, in the file's bytes; "": it does not */
    unsigned line;                   /* 0: not known */
    uint64_t code;                   /* address in the file */
};

struct tags_file {
    Elf *elf; /* its bytes are what texts are in */
    struct VEC(struct tags_file_tag) tags;
    uint64_t not_understood; /* stretches of the sections that are no descriptors of ours */
};

/** Does the file begin as ELF files do, or as an archive of them? False too where there is none. */
bool tags_file_is_binary(const char *path);
/**
 * 0, or -errno with a line: it cannot be opened, is not ELF, for another machine, no program or library, cut short, or
 * has no tags (-ENOENT).
 */
int tags_file_open(struct tags_file *f, const char *path, struct error *e);
/** The same of a file that is open; the handle is its from then on, on failure too. `path` is for the line alone. */
int tags_file_read(struct tags_file *f, Elf *elf, const char *path, struct error *e);
void tags_file_release(struct tags_file *f);

#endif
