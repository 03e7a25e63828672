/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_IMPORT_PARTS_H
#define SYS_KERNEL_IMPORT_PARTS_H

/* For kernel_import.c and kernel_import_names.c only. */

#include "model/kernel/clock_skew.h"
#include "model/kernel/gfp.h"
#include "symbol/kallsyms.h"
#include "symbol/kernel_source.h"
#include "symbol/symbol_names.h"
#include "sys/record/import/import_source.h"
#include "sys/record/import/kernel_import.h"
#include "sys/record/tasks.h"

#define TYPES     16u
#define TYPE_NAME 24u
#define ADDRESSES 4096u
#define GFP_SLOTS 64u

#define OTHER_CALLS 0u

/* A call, as the trace names it. */
struct call {
    char *text;                 /* "alloc_pipe_info+0x4a [ext4]"; "": an address that nothing names */
    uint64_t bytes, address;    /* see struct import_call */
    bool by_size;               /* another call has the same text, in a function of another size */
    struct symbol_frame *place; /* if the file itself tells it, as /proc/allocinfo does; else NULL */
};

/* An address that was looked up lately. */
struct address_slot {
    uint64_t address, call;
};

struct kernel_import {
    struct kernel_capture capture;
    const struct kallsyms *symbols;
    struct kernel_source *source;  /* NULL: there is none */
    struct VEC(struct call) calls; /* the events' call_site is the number of one */
    struct map call_index;         /* by the text in the trace */
    struct map text_index;         /* by the text that is shown */
    struct map address_index;
    struct address_slot addresses[ADDRESSES];
    struct clock_skew *skew; /* NULL: all CPUs have one clock */
    struct symbol_names names;
    struct gfp_names gfp;
    struct VEC(char *) gfp_texts; /* of a trace that tells flags by their names; see kernel_import_gfp() */
    struct map gfp_index;
    uint32_t gfp_lately[GFP_SLOTS]; /* by length: numbers of texts that were looked up lately; 0: none */
    struct kernel_import_counts counts;
    struct tasks tasks;
    uint64_t end_ns; /* see kernel_import_end_at(); 0: not known */
    bool has_page_bytes;
    bool has_span;
    uint64_t from_ns, to_ns;      /* after the first event */
    char types[TYPES][TYPE_NAME]; /* of pages; "": not known */
    /* the earliest and the latest time so far, and that of the last event */
    uint64_t first_ns, last_ns, before_ns;
};

/** Begins the capture, with the names of calls. */
void kernel_import_init_names(struct kernel_import *i);

#endif
