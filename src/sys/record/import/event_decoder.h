/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_DECODER_H
#define SYS_EVENT_DECODER_H

/*
 * Records of the kernel's trace buffers as events of objects and of pages, with the programs and the stacks that other
 * records tell: the same for buffers that are read live and for pages that were kept.
 *
 * Runs in: the tool. Threads: one. Owns: the formats, until event_decoder_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/page_format.h"
#include "collect/kernel/trace/task_format.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/tasks.h"

/** In place of a program that was only interrupted. */
#define EVENT_DECODER_INTERRUPT "[interrupt]"

struct event_decoder {
    struct kmem_format *objects;
    struct page_format *pages;
    struct task_format *task_events;
    const struct trace_reader *reader; /* whose records are decoded */
    struct tasks *tasks;               /* changed by records; belongs to the caller */
    bool stacks;                       /* allocations may have records with stacks */
    bool processes;  /* processes of threads are known; a thread without one is a process of one thread */
    bool own_marks;  /* marks in the buffers are by the thread that records, and tell its number */
    int32_t own_tid; /* the thread that records, as the machine numbers it; -1: not known */
    uint64_t cpus;   /* that the machine may have: each has its part of percpu memory; 0: not known */
    uint64_t broken, stackless; /* counts: records that are damaged; allocations without the stack */
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the last event */
};

enum event_decoder_kind { EVENT_DECODER_NONE, EVENT_DECODER_OBJECT, EVENT_DECODER_PAGES };

struct event_decoder_event {
    enum event_decoder_kind kind;
    bool is_own; /* by the thread that records, and not by an interrupt */
    struct kmem_event object;
    struct page_event pages;
};

/** Makes empty sets of formats, in a decoder that is 0. */
void event_decoder_init(struct event_decoder *d);
void event_decoder_release(struct event_decoder *d);

/**
 * Decodes the record that the reader gives; one about threads changes `tasks`. Fills the member of `out` that its kind
 * names; texts and stack are valid until the next call, and until `tasks` change.
 */
void event_decoder_take(struct event_decoder *d, const struct trace_record *record, uint32_t cpu,
                        struct event_decoder_event *out);

#endif
