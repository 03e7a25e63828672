/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_LOSSES_H
#define CLI_SYS_LOSSES_H

/*
 * How every report of `allium sys NAME` ends: what was lost or left out, and how samples of user stacks went: of
 * the session, as sys_read_counts() read it last, or of a recording.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "base/error.h"
#include "store/profile_load.h"
#include "store/recording.h"
#include "sys/session.h"
#include "view/text/sink.h"

struct sys_losses {
    const struct sys_tool *tool;
    const struct sys_session *session; /* NULL: of a recording */
    const uint64_t *counted;           /* SYS_COUNTS of them; NULL: the recording does not tell */
    uint64_t not_kept;                 /* events for which event_buffer had no room */
};

/** In words, on stderr. */
void sys_losses_say(const struct sys_losses *l);
/** As an object of one line: {"lost":{...}}. */
void sys_losses_write_json(const struct sys_losses *l, struct sink *out);
/** Beside the rows of a recording. 0, or -errno with a line. */
int sys_losses_record(const struct sys_session *s, struct recording *recording, struct error *e);
/** Reads that again; false: the recording was not ended, or by a crash. */
bool sys_losses_recorded(const struct sys_tool *tool, const struct recording_summary *recording,
                         uint64_t counted[static SYS_COUNTS]);

#endif
