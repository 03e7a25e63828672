/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KMEM_FORMAT_H
#define COLLECT_KMEM_FORMAT_H

/*
 * Records of the kernel's kmem events (kmalloc, kfree, kmem_cache_alloc ...) as struct kmem_event. The places of the
 * fields in a record are read from the events' format files, which differ from kernel to kernel (libtraceevent parses
 * them).
 *
 * Runs in: the tool. Threads: one at a time to add formats; then any to decode. Owns: the formats, until
 * kmem_format_free().
 */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/kernel/kmem_event.h"

struct kmem_format;

/** The events whose formats are needed, in events/kmem/; the first `KMEM_FORMAT_REQUIRED` of them exist in every
 * kernel. NULL at the end. */
extern const char *const kmem_format_events[];
#define KMEM_FORMAT_REQUIRED 4

/**
 * Those of memory that each CPU has for itself, in events/percpu/. What was requested is of one CPU, what was
 * allocated of all; a free does not tell its call. NULL at the end.
 */
extern const char *const kmem_format_percpu_events[];
#define KMEM_FORMAT_PERCPU_CACHE "(percpu)" /* the cache of such events */

/** Bits of common_flags in a record: it came in an interrupt handler, a softirq, or an NMI. */
#define KMEM_FORMAT_CONTEXT (0x08u | 0x10u | 0x40u)

/** Never NULL: a set without formats. */
struct kmem_format *kmem_format_new(void);
void kmem_format_free(struct kmem_format *f);

/**
 * Adds the text of events/kmem/NAME/format, or events/percpu/NAME/format. Returns 0, or -EPROTO with a line: it is no
 * such text, or lacks a field that is needed.
 */
int kmem_format_add(struct kmem_format *f, const char *name, const char *text, size_t bytes, struct error *e);

/** Adds the text of events/ftrace/kernel_stack/format: records with the stack of the event before. Returns as above. */
int kmem_format_add_stack(struct kmem_format *f, const char *text, size_t bytes, struct error *e);

/** The return addresses in such a record, the innermost first; they may lie at any address. */
struct kmem_stack {
    const uint8_t *callers;
    uint32_t n;
    uint8_t context; /* as in struct kmem_event: the event is of the same one */
};
/** Decodes such a record. Returns as kmem_format_decode(). */
int kmem_format_stack(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                      struct kmem_stack *out);

/**
 * Decodes a record, all but time, CPU and stack. Returns 1, 0 if it is of another event, or -EBADMSG if it is too
 * short. The name of the cache points into the record.
 */
int kmem_format_decode(const struct kmem_format *f, const uint8_t *data, uint32_t bytes,
                       struct kmem_event *out);

#endif
