/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PACKED_INPUT_H
#define COLLECT_PACKED_INPUT_H

/*
 * The bytes of a file or of standard input, unpacked if they are compressed with gzip or zstd, which the first bytes
 * tell.
 *
 * Runs in: the tool. Threads: one. Owns: the open file, until packed_input_close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct packed_input;

/** Opens the file; "-": standard input. Returns 0, or -errno with a line. `path` must outlive it. */
int packed_input_open(struct packed_input **out, const char *path, struct error *e);
/** The same for a descriptor, which becomes the input's, also if this fails. `path` is for messages. */
int packed_input_open_fd(struct packed_input **out, int fd, const char *path, struct error *e);
/** NULL is allowed. */
void packed_input_close(struct packed_input *p);

/**
 * Takes at most `room` bytes. Returns 0 and how many were taken, which is 0 only at the end; or -errno with a line:
 * -EILSEQ the compressed data are damaged or cut. What came before that was taken by earlier calls.
 */
int packed_input_read(struct packed_input *p, void *to, size_t room, size_t *taken, struct error *e);
/** Shows the next bytes without taking them. Returns 0 and how many there are, 0 only at the end; or as above. */
int packed_input_peek(struct packed_input *p, const uint8_t **bytes, size_t *n, struct error *e);

/**
 * Gives everything that was not taken as a file that can be read at any place: the file itself, or a temporary copy
 * without a name. Nothing may have been taken before. Returns 0, a descriptor that belongs to `p`, and the size; or
 * -errno with a line. If compressed data are damaged or cut, the copy has what came before.
 */
int packed_input_file(struct packed_input *p, int *fd, uint64_t *bytes, struct error *e);

/** Returns the folder for large temporary files: $TMPDIR, else /var/tmp, else /tmp. */
const char *packed_input_folder(void);
/** Makes a temporary file without a name. Returns a descriptor, or -errno with a line. */
int packed_input_temporary(struct error *e);

/**
 * Returns when the file was last written (CLOCK_REALTIME), or the present time for a pipe and for a file that the
 * kernel makes while it is read, as those of tracefs. Call it at the end.
 */
uint64_t packed_input_written_ns(const struct packed_input *p);
/** Returns whether `path` is this file. */
bool packed_input_is(const struct packed_input *p, const char *path);

#endif
