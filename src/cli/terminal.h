/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* The capabilities of the terminal (or file) that a stream writes to. */

#include <stdio.h>

#include "view/text/text.h"

/** Returns width, character set and colour for a stream; respects NO_COLOR, and for a file COLUMNS. */
struct text_style terminal_style(FILE *stream);
/** Returns the height of the terminal in lines; 0: the stream is no terminal. */
unsigned terminal_rows(FILE *stream);

#endif
