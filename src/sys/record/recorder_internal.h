/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RECORDER_INTERNAL_H
#define SYS_RECORDER_INTERNAL_H

/* What the files of this folder share. */

#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/kernel_recorder.h"
#include "sys/resolver.h"
#include "sys/session.h"

/* The call_site of allocations by this process: no code is at this address. */
#define RECORDER_OWN_SITE 0
#define RECORDER_OWN_NAME "allium itself"
/* Code that has no symbol any more, or that the kernel does not show; its address is stored nowhere. */
#define RECORDER_UNKNOWN_NAME "[unknown]"

/* Sizes of kmalloc()'s caches are multiples of this. */
#define KMALLOC_STEP 8u
#define KMALLOC_NAME 24u

struct cell_key {
    uint64_t call_site;
    uint32_t stack, size_class;
};

struct kernel_recorder {
    struct trace_instance instance;
    struct trace_reader *reader;
    struct kmem_format *format;
    struct kmem_accounts *accounts;
    struct sys_session names; /* only its names: the resolver wants a session */
    int32_t own_tid;
    uint64_t broken_records;
    uint64_t lost;
    int64_t realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
    uint64_t image_id;
    /* The cells of the profile. Each new profile keeps the order of the earlier cells, and appends new ones. */
    struct VEC(struct cell_key) cells;
    struct map cell_index;
    bool stacks, files;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
    bool over;
    uint64_t kmalloc_bytes_max;          /* two pages: larger objects have no cache */
    char (*kmalloc_names)[KMALLOC_NAME]; /* by size / KMALLOC_STEP; "": not met yet */
};

/** Returns how many events found no room, now. */
void recorder_count_losses(struct kernel_recorder *r);
/** Returns how many pages and records were not understood. */
uint64_t recorder_broken(const struct kernel_recorder *r);
/** Returns what stands for the name of a call that has none in the kernel: our own, or unknown. NULL: it has one. */
const char *recorder_name_instead(struct kernel_recorder *r, uint64_t call_site);

#endif
