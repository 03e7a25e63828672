/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_EVENT_TABLE_H
#define WIRE_EVENT_TABLE_H

/*
 * The table of the program's own events (<allium/event.h>) of one process image: a file beside its rings, to which
 * liballium.so appends a description before the first event of a kind. Nothing is ever removed, so the events of a
 * library can be read after dlclose().
 *
 * The event with the number EVENT_ID_OWN + i has the description at places[i]: lines of text, each with a newline. The
 * first one is PROVIDER:NAME. Then comes one for each field: a letter of EVENT_TABLE_TYPES, the number of bytes, the
 * name, and for EVENT_ENUM NAME=VALUE for each label, with blanks in between. For example:
 *
 *     shop:order_done
 *     u 8 id
 *     e 4 kind BOOK=1 TOY=-2
 *
 * ALLIUM_SNAPSHOT() also asks here for a snapshot: the tool sees it although the rings may overwrite the event at once.
 *
 * Runs in: target (writer) and tool (reader). Invariant: the reader trusts nothing of it.
 */

#include <stdint.h>

#define EVENT_TABLE_MAGIC UINT64_C(0x31544e4556454c41) /* "ALEVENT1" */
#define EVENT_TABLE_MOST  2000u
#define EVENT_TABLE_BYTES (512u << 10) /* of the file */
#define EVENT_TABLE_TYPES "uixbfes"    /* by enum event_type */

/* What one call of ALLIUM_SNAPSHOT() asks. */
#define EVENT_TABLE_REASON_BYTES 64u
struct event_table_request {
    uint64_t number;                       /* of the call, from 1; stored last, 0 while `reason` is written */
    char reason[EVENT_TABLE_REASON_BYTES]; /* ends with NUL, or is full */
};
#define EVENT_TABLE_REQUESTS 4u /* the last ones */

struct event_table {
    uint64_t magic; /* stored last */
    uint64_t taken; /* descriptions << 32 | the end of the last one, in bytes from the table's beginning */
    uint64_t asked; /* calls of ALLIUM_SNAPSHOT(); call n is at requests[(n - 1) % EVENT_TABLE_REQUESTS] */
    uint64_t unused[5];
    /* the offset of a description << 32 | its bytes; stored when the description is there */
    uint64_t places[EVENT_TABLE_MOST];
    struct event_table_request requests[EVENT_TABLE_REQUESTS];
};
#define EVENT_TABLE_TEXTS 16384u /* where the descriptions begin */
_Static_assert(sizeof(struct event_table) <= EVENT_TABLE_TEXTS, "before them");

#endif
