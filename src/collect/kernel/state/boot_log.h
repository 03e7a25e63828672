/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_BOOT_LOG_H
#define COLLECT_BOOT_LOG_H

/*
 * What the kernel logged while it booted: how large it made its tables, and what it reserved. The log is a ring, in
 * which that part is overwritten after some time.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "base/buf.h"
#include "model/kernel/advice/advice.h"

/**
 * Appends those of the log's records that the kernel itself wrote up to the start of the first program, without
 * addresses of the kernel. They are as /dev/kmsg has them: a line "6,339,1234567,-;text", perhaps followed by lines
 * that begin with a blank.
 */
void boot_log_add(struct buf *out, const char *records);
/** As above, with the log at `path`. Returns 0; -ENOENT, -EACCES ...; -ENODATA: nothing of that part is left. */
int boot_log_read(const char *path, struct buf *out);
/** Takes tables, the log buffer, reservations and the number of CPUs of such a text. Accepts any text. */
void boot_log_parse(struct advice_input *in, const char *text);

#endif
