/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_MODULE_FILES_H
#define SYMBOL_MODULE_FILES_H

/*
 * One module: which files describe it, and what they say of an address. Files are opened when first needed.
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
    size_t build_id_len; /* reported, else what the file has; 0: not known */
    bool sent;           /* see struct symbol_module */
    bool unusable;       /* a build id was reported that no file can be compared with */
    struct symbol_object *main, *debug, *alternate;
    Dwarf *dwarf, *alternate_dwarf;
    struct symbol_table *table; /* NULL: not loaded */
    struct symbol_scopes *scopes;
    struct symbol_origin origin; /* once loaded */
    bool partial;                /* a file that the debug information refers to is missing */
};

void symbol_image_init(struct symbol_image *image, const struct symbol_module *module);
void symbol_image_release(struct symbol_image *image);

/** Opens the file with the right build id, or its debug file alone. Errors as of symbols_resolve(). */
int symbol_image_locate(struct symbol_image *image, const char *root);
/** Reads symbol tables and units; once located. */
void symbol_image_load(struct symbol_image *image, const char *root, struct symbol_names *names);
/** Whether a debug file could tell more than the files that are here; once located, or not found. */
bool symbol_image_lacks_debug(struct symbol_image *image, const char *root);
/** Whether looking things up now would give nothing better than what was found from `origin`. */
bool symbol_image_origin_holds(struct symbol_image *image, const char *root,
                               const struct symbol_origin *origin);
/** Appends the frames of an address, once loaded; nothing when there is no name for it. */
void symbol_image_find(struct symbol_image *image, uint64_t address, struct symbol_frame_list *out);

#endif
