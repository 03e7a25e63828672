/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PROTO_H
#define VIEW_PROTO_H

/*
 * Writes protocol buffers (proto3 wire format): fields of a message, appended to a buffer. A field of value 0 is left
 * out, as proto3 does. https://protobuf.dev/programming-guides/encoding/
 *
 * Runs in: the tool. Owns: nothing.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/** Appends uint64, int64 (negative ones as ten bytes) and bool. */
void proto_number(struct buf *b, uint32_t field, uint64_t value);
/** Appends strings, bytes and messages, also empty ones. */
void proto_bytes(struct buf *b, uint32_t field, const void *bytes, size_t len);
/** Appends the message in `m`, which is empty afterwards. */
void proto_message(struct buf *b, uint32_t field, struct buf *m);
/** Appends repeated numbers, packed. */
void proto_numbers(struct buf *b, uint32_t field, const uint64_t *values, size_t n);

#endif
