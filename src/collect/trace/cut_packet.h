/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CUT_PACKET_H
#define COLLECT_CUT_PACKET_H

/*
 * If the writer of a stream of CTF was killed, the stream's last packet may not be whole, and other readers of CTF stop
 * there. This closes the packet behind its last whole event, and notes that in a file which other readers ignore.
 *
 * A writer holds a lock on each of its streams (cut_packet_lock()), so a stream that is still written stays as it is.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/trace/ctf_metadata.h"

/** Marks the stream as one that is written, until the descriptor is closed. */
void cut_packet_lock(int stream);
/**
 * Ends the stream `name` behind the packet that begins at byte `at`, and gives the packet this head. `head` NULL: the
 * stream ends at byte `at`. `size`: of the file, when it was read. If the stream is still written, has changed, or
 * cannot be written, nothing happens. Returns whether cut_packet_closed() did not count the packet yet.
 */
bool cut_packet_close(int folder, const char *name, uint64_t size, uint64_t at,
                      const struct ctf_packet *head);
/** Returns how many packets of a folder were closed, or were noted and could not be closed. */
uint64_t cut_packet_closed(int folder);

#endif
