/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PAGE_FORMAT_H
#define COLLECT_PAGE_FORMAT_H

/*
 * Records of the page allocator's events as struct page_event. The places of the fields in a record are read from the
 * events' format files (libtraceevent parses them).
 *
 * Runs in: the tool. Threads: one at a time to add formats; then any to decode. Owns: the formats, until
 * page_format_free().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/kernel/page_event.h"

struct page_format;

/** Their names below events/kmem/ of tracefs. mm_page_free_batched is not among them: each such page has an
 * mm_page_free, too. */
extern const char *const page_format_events[PAGE_EVENT_KINDS];

/** Never NULL: a set without formats. */
struct page_format *page_format_new(void);
void page_format_free(struct page_format *f);
/** Adds the text of an event's format. Returns 0, or -EPROTO with a line. */
int page_format_add(struct page_format *f, enum page_event_kind kind, const char *text, size_t bytes,
                    struct error *e);
/**
 * Decodes a record, all but names of programs and stacks. Returns 1, 0 if it is of another event, or -EBADMSG if it is
 * too short.
 */
int page_format_decode(const struct page_format *f, const uint8_t *data, uint32_t bytes,
                       struct page_event *out);

#endif
