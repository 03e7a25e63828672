/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_MODULE_FILES_H
#define SYMBOL_MODULE_FILES_H

/*
 * The files that describe one module, and the lookup of an address in them. Files are opened when first
 * needed.
 *
 * Runs in: the tool. Owns: the open files and their indexes, until symbol_image_release().
 */

#include "symbol/cache.h"
#include "symbol/elf_file.h"
#include "symbol/scopes.h"
#include "symbol/symbol.h"
#include "symbol/symbol_names.h"
#include "symbol/symtab.h"

struct symbol_image {
    char *path; /* as the target saw it */
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
    size_t build_id_len; /* as reported by the target, else from the file; 0: not known */
    bool sent;           /* see struct symbol_module */
    bool relocatable;    /* see struct symbol_module */
    bool unusable;       /* the target reported a build id, but the files have none to compare with */
    struct symbol_object *main, *debug, *alternate;
    Dwarf *dwarf, *alternate_dwarf;
    struct relocated *relocated; /* which `dwarf` belongs to; NULL: it needs no relocation */
    struct symbol_table *table;  /* NULL: not loaded */
    struct symbol_scopes *scopes;
    struct symbol_origin origin; /* valid once loaded */
    bool partial;                /* a file that the debug information refers to is missing */
};

void symbol_image_init(struct symbol_image *image, const struct symbol_module *module);
void symbol_image_release(struct symbol_image *image);

/** Opens the file with the right build id, or only its debug file. Errors as in symbols_resolve(). */
int symbol_image_locate(struct symbol_image *image, const char *root);
/** Reads symbol tables and units, after symbol_image_locate(). */
void symbol_image_load(struct symbol_image *image, const char *root, struct symbol_names *names);
/** Returns whether a debug file could add to the files that were found. Call it after symbol_image_locate(),
 * also if that failed. */
bool symbol_image_lacks_debug(struct symbol_image *image, const char *root);
/** Returns whether another lookup would give nothing better than the names that came from `origin`. */
bool symbol_image_origin_holds(struct symbol_image *image, const char *root,
                               const struct symbol_origin *origin);
/**
 * Appends the frames of an address, after symbol_image_load(). Appends nothing if the address has no name.
 */
void symbol_image_find(struct symbol_image *image, uint64_t address, struct symbol_frame_list *out);

#endif
