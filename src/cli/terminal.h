/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* The capabilities of the terminal (or file) that a stream writes to. */

#include <stdio.h>

#include "view/text/text.h"

/** Returns width, character set and colour for a stream; respects NO_COLOR. */
struct text_style terminal_style(FILE *stream);

#endif
