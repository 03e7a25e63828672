/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_PAGE_H
#define CLI_SYS_PAGE_H

/*
 * `allium sys NAME --html FILE`: the rows of all reports, or all events, as one HTML page.
 *
 * Runs in: the tool. Threads: one. Owns: the open file and copies of the rows, until sys_page_close().
 */

#include "base/error.h"
#include "base/buf.h"
#include "model/table/table.h"
#include "sys/tool.h"

struct sys_page;

/** Opens the file, before privileges are dropped. Returns NULL with a line. */
struct sys_page *sys_page_open(const char *path, bool force, const struct sys_tool *tool, struct error *e);
/** Copies the table's rows, all taken at that time (CLOCK_REALTIME). A report with which there were more than a million
 * rows is left out, and the page says so. */
void sys_page_add(struct sys_page *p, const struct table *t, uint64_t time_ns);
/** Adds to the page's text: notes on what was lost, see view/text/notes.h. */
void sys_page_note(struct sys_page *p, const struct buf *notes);
/** Writes the page, unless `code` says that the command failed, and frees everything. Returns `code`; if the page
 * cannot be written, EXIT_FAILED after saying why. NULL is allowed. */
int sys_page_close(struct sys_page *p, int code);

#endif
