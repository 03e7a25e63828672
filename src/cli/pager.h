/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

/*
 * A screen that is longer than the terminal goes through $PAGER, as in git. Without $PAGER it is `less`, with
 * LESS=FRX unless LESS is set. No pager is used if $PAGER is empty or `cat`, on a dumb terminal, and if
 * stdout is not a terminal.
 *
 * The screen is buffered until it is longer than the terminal, so that a short one needs no pager, and errors
 * before that are reported as usual. While the pager runs, it handles ^C itself, and allium waits for it:
 * they share the terminal. A user who quits the pager early causes no error.
 *
 * Runs in: the tool. Threads: one, and one screen in a process.
 */

#include <stdbool.h>

#include "view/text/sink.h"

/**
 * Returns the stream for the screen; end it with pager_written(). Its width and colours are those of stdout.
 */
struct sink pager_sink(bool wanted);
/** Ends the screen and waits for the pager. Returns as command_written() does: `code`, or EXIT_FAILED after a
 * line. */
int pager_written(struct sink *out, int code);

#endif
