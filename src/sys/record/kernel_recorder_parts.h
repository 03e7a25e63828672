/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_RECORDER_PARTS_H
#define SYS_KERNEL_RECORDER_PARTS_H

/* What the files of kernel_recorder.h share. */

#include "collect/kernel/trace/boot_trace.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/page_format.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/kernel_recorder.h"
#include "sys/record/recorder_names.h"
#include "sys/record/tasks.h"

struct kernel_recorder {
    struct trace_instance instance; /* with `is_boot` the top level */
    bool is_boot;
    struct boot_trace boot;
    struct trace_reader *reader;
    const struct trace_reader_counts *counts; /* of the reader */
    struct kmem_format *format;
    struct task_format *task_format;
    struct page_format *page_format;
    unsigned events; /* enum kernel_recorder_events */
    uint64_t cpus;   /* that the machine may have: each has its part of percpu memory */
    struct kernel_capture capture;
    struct recorder_names names;
    struct tasks tasks;
    struct record_filter filter;
    struct record_where where;
    bool is_filtered;                /* by either */
    struct VEC(char *) formats_read; /* paths in tracefs */
    struct raw_folder *raw;          /* where pages are kept; NULL: nowhere */
    int32_t own_tid;                 /* as the machine numbers threads */
    uint64_t broken_records;
    uint64_t lost; /* events that found no room */
    bool stacks;
    uint64_t stackless; /* allocations whose stack was not found */
    void (*older)(void *arg, const struct kmem_event *e);
    void *older_arg;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
};

/** Accounts a record: a trace_record_fn, with the recorder as `arg`. */
void recorder_account(void *arg, const struct trace_record *record, uint32_t cpu);

#endif
