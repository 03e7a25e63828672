/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_COLUMNS_H
#define VIEW_COLUMNS_H

/*
 * Aligned columns of text, fitted to the available width: less important columns are dropped, some are
 * shortened, and if that is not enough, long names in the others, too.
 *
 * Runs in: the tool. Owns: a grid owns the texts of its cells, until columns_release().
 */

#include "base/vec.h"
#include "view/text/text.h"

struct columns_column {
    const char *header; /* borrowed; ASCII */
    bool left;          /* aligned to the left */
    /* 0: always shown; else the columns with the largest number are dropped first if there is no room */
    unsigned drop_rank;
    /* gets the width that the others leave, shared among elastic columns; its texts are shortened in the
     * middle */
    bool elastic;
    /* if it is the only elastic one, its text goes on in further lines instead; below the row if there is
     * little room */
    bool wrap;
    enum text_look look;
};

struct columns_row {
    char *below; /* lines below the row, or NULL */
};

struct columns {
    const struct text_style *style; /* borrowed */
    unsigned indent;
    bool bare; /* no headings */
    struct VEC(struct columns_column) columns;
    struct VEC(char *) cells;
    struct VEC(struct columns_row) rows;
};

/** Adds a column, before the first row. */
void columns_column(struct columns *g, struct columns_column column);
/** A column that is not shown, since it has no value in any row: --columns may name it nevertheless. */
void columns_empty(const struct columns *g, const char *header);
void columns_row(struct columns *g);
/** Sets the next cell of the last row; takes the buffer's text and empties the buffer. */
void columns_cell(struct columns *g, struct buf *text);
/** Sets the lines below the last row: whole lines, taken from the buffer. */
void columns_below(struct columns *g, struct buf *lines);
void columns_write(const struct columns *g, struct sink *out);
void columns_release(struct columns *g);

#endif
