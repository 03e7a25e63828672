/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_COLUMNS_H
#define VIEW_COLUMNS_H

/*
 * Columns of text that line up, fitted to the width there is: columns that matter less go, and some give way; long
 * names of the others too, where that is not enough.
 *
 * Runs in: the tool. Owns: a grid owns the texts of its cells, until columns_release().
 */

#include "base/vec.h"
#include "view/text/text.h"

struct columns_column {
    const char *header; /* borrowed; ASCII */
    bool left;          /* adjusted to the left */
    unsigned drop; /* 0: stays; else the columns with the largest number go first when there is no room */
    /* gets what the others leave, its share where there are several. Its texts are shortened in the middle, */
    bool elastic;
    /* or, of one alone, continued on further lines: below the row, when there is little room beside the others */
    bool wrap;
    enum text_look look;
};

struct columns_row {
    char *below; /* lines that follow the row, or NULL */
};

struct columns {
    const struct text_style *style; /* borrowed */
    unsigned indent;
    bool bare; /* no line of headers */
    struct VEC(struct columns_column) columns;
    struct VEC(char *) cells;
    struct VEC(struct columns_row) rows;
};

/** A further column, before the first row. */
void columns_column(struct columns *g, struct columns_column column);
void columns_row(struct columns *g);
/** The next cell of the last row; takes the buffer's text and empties the buffer. */
void columns_cell(struct columns *g, struct buf *text);
/** What follows the last row: whole lines. As above. */
void columns_below(struct columns *g, struct buf *lines);
void columns_write(const struct columns *g, struct sink *out);
void columns_release(struct columns *g);

#endif
