/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SOURCE_LIST_H
#define CLI_SOURCE_LIST_H

/*
 * Several sources as one word: A1,A2,A3, each a SOURCE (cli/source.h). A comma may also be part of a name: the longest
 * text up to a comma or the end that is the name of a file, or such a name and @TIME, is one source.
 *
 * Runs in: the tool. Owns: texts and sources, until source_list_release().
 */

#include "base/vec.h"
#include "cli/source.h"

struct source_list {
    struct VEC(char *) texts;
    struct source *sources;          /* one for each text, once they are open */
    const struct profile **profiles; /* of the sources */
    char *label;                     /* of all: "a.allium, b.allium" */
};

/** Returns 0, or -EINVAL with a line if a text is empty. The list is to be released in both cases. */
int source_list_split(struct source_list *l, const char *text, struct error *e);
/** Opens all sources, by source_open_figures(). Returns as that. */
int source_list_open(struct source_list *l, struct error *e);
void source_list_release(struct source_list *l);

#endif
