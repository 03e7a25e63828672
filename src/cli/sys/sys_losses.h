/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_LOSSES_H
#define CLI_SYS_LOSSES_H

/*
 * The end of every report of `allium sys NAME`: what was lost or left out, and the results of sampled user
 * stacks; of the session, as sys_read_counts() read them last, or of a recording.
 */

#include "base/error.h"
#include "store/profile_load.h"
#include "store/recording.h"
#include "sys/session.h"
#include "view/text/sink.h"

struct sys_losses {
    const struct sys_tool *tool;
    const struct sys_session *session; /* NULL: for a recording */
    const uint64_t *counted;           /* SYS_COUNTS numbers; NULL: the recording does not have them */
    uint64_t not_stored;               /* events for which event_buffer had no room */
};

/** Adds a note (view/text/notes.h) for each. */
void sys_losses_note(const struct sys_losses *l, struct buf *notes);
/** Prints them in words on stderr. */
void sys_losses_say(const struct sys_losses *l);
/** Writes an object of one line: {"lost":{...}}. */
void sys_losses_write_json(const struct sys_losses *l, struct sink *out);
/** Stores them beside the rows of a recording. Returns 0, or -errno with a line. */
int sys_losses_record(const struct sys_session *s, struct recording *recording, struct error *e);
/** Reads them back. Returns false if the recording was not ended, or ended by a crash. */
bool sys_losses_recorded(const struct sys_tool *tool, const struct recording_summary *recording,
                         uint64_t counted[static SYS_COUNTS]);

#endif
