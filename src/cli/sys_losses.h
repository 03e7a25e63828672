/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_LOSSES_H
#define CLI_SYS_LOSSES_H

/*
 * How every report of `allium sys NAME` ends: what was lost or left out, and how samples of user stacks went. All of it is of
 * the session, as sys_read_counts() read it last.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "base/error.h"
#include "machine/session.h"
#include "store/recording.h"
#include "view/sink.h"

/** In words, on stderr. `not_kept`: events for which sys_kept had no room. */
void sys_losses_say(const struct sys_session *s, uint64_t not_kept);
/** As an object of one line: {"lost":{...}}. */
void sys_losses_write_json(const struct sys_session *s, uint64_t not_kept, struct sink *out);
/** Beside the rows of a recording. 0, or -errno with a line. */
int sys_losses_record(const struct sys_session *s, struct recording *recording, struct error *e);

#endif
