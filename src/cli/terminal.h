/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/*
 * What the terminal (or file) on the other side can show.
 *
 * Runs in: the tool.
 */

#include <stdio.h>

#include "view/text/text.h"

/** Width, character set and colour for a stream; NO_COLOR is heeded. */
struct text_style terminal_style(FILE *stream);

#endif
