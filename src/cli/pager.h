/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

/*
 * A screen that is longer than the terminal goes through $PAGER, as git does it: `less` where that is not set, with
 * LESS=FRX unless there is one; nothing where it is empty or `cat`, on a dumb terminal, and where stdout is none.
 *
 * The screen is held back until it is longer than the terminal, so that a short one needs no pager, and what goes wrong
 * before is said as ever. While the pager runs ^C is its own affair, and it is waited for: the terminal is nobody
 * else's. Who leaves it early has seen enough: that is no error.
 *
 * Runs in: the tool. Threads: one, and one screen in a process.
 */

#include <stdbool.h>

#include "view/text/sink.h"

/** Where the screen goes. To be ended with pager_written(). Its width and colours are those of stdout. */
struct sink pager_sink(bool wanted);
/** Ends the screen and waits for the pager. As command_written(): `code`, or EXIT_FAILED after a line. */
int pager_written(struct sink *out, int code);

#endif
