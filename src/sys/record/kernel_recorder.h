/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_RECORDER_H
#define SYS_KERNEL_RECORDER_H

/*
 * `allium sys record`: accounts of the kernel's objects from every event, read from the kernel's trace buffers.
 *
 * Allocations by this process are charged to one row, "allium itself", since reading a trace allocates, too. Its frees
 * are charged to the calls that make them. Allocations by interrupts during this process keep their own calls.
 *
 * The buffers are those of an instance of our own, or the top-level ones, into which the kernel has traced since its
 * boot.
 *
 * Runs in: the tool, as root. Threads: one. Owns: the tracing instance, until kernel_recorder_close().
 */

#include <stdbool.h>

#include "base/error.h"
#include "sys/record/kernel_capture.h"
#include "sys/record/record_filter.h"
#include "sys/record/record_where.h"

struct kernel_recorder;
struct raw_folder;
struct source_finder;
struct vmlinux;
struct boot_trace;

struct kernel_recorder_losses {
    uint64_t events; /* that found no room in the kernel's buffers: its own counts */
    uint64_t broken; /* pages and records that were not understood */
    /* records that came after younger ones, so that frees may seem to come before allocations */
    uint64_t late;
    uint64_t stackless; /* allocations whose stack was not found behind them */
};

/** Which events are recorded: bits. */
enum kernel_recorder_events {
    RECORDER_SLAB = 1u << 0,    /* objects of the slab allocator */
    RECORDER_PAGE = 1u << 1,    /* pages */
    RECORDER_PERCPU = 1u << 2,  /* memory of each CPU */
    RECORDER_EXTFRAG = 1u << 3, /* blocks of pages that change their migrate type */
};

struct kernel_recorder_options {
    unsigned events;             /* not with `boot`: those that were traced */
    bool boot;                   /* the events since the boot, from the top-level buffers; see boot_trace.h */
    uint32_t buffer_kib;         /* of each CPU; not with `boot` */
    bool stacks;                 /* of allocations; not with `boot` */
    bool keep_freed;             /* see kmem_accounts_keep_freed() */
    struct record_filter filter; /* whose allocations are recorded; not with `boot` */
    const char *where; /* which ones, see record_where.h; NULL: all. Only of RECORDER_SLAB and _PERCPU */
    /* for files and lines of the kernel's source; must outlive the recorder. NULL: there are none */
    const struct vmlinux *vmlinux;
    struct source_finder *finder; /* the same, for what vmlinux does not tell */
    /** Called for each free of an object whose allocation was not seen. NULL: it is not. */
    void (*older)(void *arg, const struct kmem_event *e);
    void *arg;
};

/**
 * Prepares everything; no event is recorded yet, and those of the boot go on. Returns 0, or -errno with a line: -ESRCH
 * and -EINVAL if the filter fits nothing.
 */
int kernel_recorder_open(struct kernel_recorder **out, const struct kernel_recorder_options *o,
                         struct error *e);
/** NULL is allowed. */
void kernel_recorder_close(struct kernel_recorder *r);

/** Keeps the pages in this folder, too, which must outlive the recorder. Before kernel_recorder_begin(). */
void kernel_recorder_keep(struct kernel_recorder *r, struct raw_folder *raw);

/** Events are recorded from here on; those of the boot end here. Returns 0, or -errno with a line. */
int kernel_recorder_begin(struct kernel_recorder *r, struct error *e);
/** Reads and accounts what has come: to be called several times a second. Returns as above. */
int kernel_recorder_step(struct kernel_recorder *r, struct error *e);
/**
 * The recording ends now, but for frees: for `settle_ns` it is noted which of the objects that are live now are freed.
 * The steps go on, until kernel_recorder_end().
 */
void kernel_recorder_settle(struct kernel_recorder *r, uint64_t settle_ns);
/** Stops recording, and reads the rest. Returns as above. */
int kernel_recorder_end(struct kernel_recorder *r, struct error *e);

/** The accounts, as they are now; they belong to `r`. */
struct kernel_capture *kernel_recorder_capture(struct kernel_recorder *r);
/** What is known of a boot's trace; NULL without one. */
const struct boot_trace *kernel_recorder_boot(const struct kernel_recorder *r);
struct kernel_recorder_losses kernel_recorder_losses(const struct kernel_recorder *r);

#endif
