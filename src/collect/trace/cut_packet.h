/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CUT_PACKET_H
#define COLLECT_CUT_PACKET_H

/*
 * Closes the last packet of a stream of CTF that is not whole, because its writer was killed: other readers of CTF stop
 * at such a packet. What was closed is noted in a file that they do not read.
 *
 * A writer holds a lock on each of its streams (cut_packet_lock()): a stream that is still written is left alone.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stdint.h>

#include "collect/trace/ctf_metadata.h"

/** Marks the stream as one that is written, until the descriptor is closed. */
void cut_packet_lock(int stream);
/**
 * Ends the stream `name` behind a packet with this head, which begins at byte `at`; NULL: there. `size`: of the file,
 * as it was read. Nothing happens if that is not possible: the stream is still written or has changed, or the folder is
 * read-only.
 */
void cut_packet_close(int folder, const char *name, uint64_t size, uint64_t at,
                      const struct ctf_packet *head);
/** Returns how many packets of a folder were closed. */
uint64_t cut_packet_closed(int folder);

#endif
