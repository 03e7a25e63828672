/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_IMPORT_H
#define SYS_KERNEL_IMPORT_H

/*
 * `allium sys import`: accounts of the kernel's objects from a trace that another tool has written, whatever its
 * form: text_import, for example, gives it the events.
 *
 * Runs in: the tool. Threads: one. Owns: the accounts and names, until kernel_import_free().
 */

#include <stdbool.h>
#include <stddef.h>

#include "symbol/symbol.h"
#include "sys/record/kernel_capture.h"

struct kernel_import;
struct kallsyms;
struct kernel_source;

/** The call of what allium itself allocates, and the program that takes its pages. */
#define KERNEL_IMPORT_OWN "allium itself"

struct kernel_import_counts {
    uint64_t lines;
    uint64_t broken;          /* lines or records of kmem events in another form, or without a needed field */
    uint64_t lost;            /* events of which the trace says that they are missing */
    uint64_t lost_unknown;    /* places at which it says that some are missing, and not how many */
    uint64_t late;            /* events that are older than the one before them */
    uint64_t reversed;        /* pairs of events that were put into the other order: see clock_skew.h */
    uint64_t ticks;           /* events whose times are ticks of a clock that is not time */
    uint64_t without_address; /* of which the trace hides which object it was: not accounted */
    uint64_t without_allocated; /* that tell only what was requested */
    uint64_t without_gfp;       /* allocations that do not tell their flags */
    uint64_t unnumbered_gfp;    /* 1: formats have flags by the names of their bits, without numbers */
    uint64_t without_process;   /* events that do not tell the process, where others do */
    uint64_t without_cpus;      /* of percpu memory, if it is not known how many CPUs have a part of it */
    uint64_t unknown_forms;     /* kinds of events in a form that is not known */
    uint64_t without_name;      /* whose call is an address that nothing names */
    uint64_t other_calls;       /* by more different calls than are told apart */
    uint64_t without_stack;     /* allocations whose stack was not found, or does not contain their call */
    uint64_t unread_buffers; /* 1: the file has events of more tracing instances than the one that was read */
    uint64_t without_size;   /* objects of which it is not known how large they are */
    uint64_t without_requested; /* objects of kmalloc() of which it is not known what was requested */
    uint64_t sampled;           /* kinds of events of which not each one was to be recorded */
};

/** Never NULL. */
struct kernel_import *kernel_import_new(void);
/** NULL is allowed. */
void kernel_import_free(struct kernel_import *i);

/** Returns the number of a call that the trace names by a text, or by an address in hex. */
uint64_t kernel_import_call(struct kernel_import *i, const char *text, size_t len);
/**
 * Returns a new number, of a call at this place: its file, relative to the top of the source, and line are known.
 * `module`: "" for the kernel itself.
 */
uint64_t kernel_import_place(struct kernel_import *i, const struct symbol_frame *place, const char *module);
/** Returns the number of the call that returns to this address. */
uint64_t kernel_import_call_at(struct kernel_import *i, uint64_t address);
/** Returns "alloc_pipe_info+0x4a [ext4]", or "": an address that nothing names. It stays until the end. */
const char *kernel_import_call_text(const struct kernel_import *i, uint64_t call);

/** Each CPU has a clock of its own: from here on pairs of events are put into an order that makes sense. */
void kernel_import_clocks_differ(struct kernel_import *i);
/**
 * Rows have what is allocated and freed in this time after the first event: earlier events tell what is live, later
 * ones are left out. With UINT64_MAX for `to_ns` it has no end.
 */
void kernel_import_set_span(struct kernel_import *i, uint64_t from_ns, uint64_t to_ns);
/** Counts an event that is older than the one before, which has its time then. Returns the time of the event. */
uint64_t kernel_import_time(struct kernel_import *i, uint64_t time_ns);
/** The flags of allocations have the names in the format of this event, kmem:kmalloc; without, they are not known. */
void kernel_import_use_gfp(struct kernel_import *i, const char *format);
/**
 * Returns the number of flags that the trace tells by their names, "GFP_KERNEL|__GFP_ZERO": the `gfp` of an allocation;
 * "": not told. From here on the flags of allocations are such numbers.
 */
uint64_t kernel_import_gfp(struct kernel_import *i, const char *names, size_t len);
/** Returns the number of a migrate type that is known by its name, PAGE_EVENT_NO_TYPE if there are too many. */
uint32_t kernel_import_type(struct kernel_import *i, const char *name);
/** From here on addresses are looked up in these symbols, which must outlive it; NULL: there are none. */
void kernel_import_use_symbols(struct kernel_import *i, const struct kallsyms *symbols);
/** Migrate types have the names in this text, /proc/pagetypeinfo of the traced kernel; without, they are numbers. */
void kernel_import_use_types(struct kernel_import *i, const char *pagetypeinfo);
/** The threads of the trace. If they tell control groups when the trace is over, rows by process have them. */
struct tasks *kernel_import_tasks(struct kernel_import *i);
/** Pages have this size, unless it is none that a page can have. Without this call they have that of this machine. */
void kernel_import_use_page_bytes(struct kernel_import *i, uint64_t bytes);
/** Returns whether the size of a page is not known, of a trace that has events of pages. */
bool kernel_import_lacks_page_bytes(const struct kernel_import *i);
/** The trace may have events of pages; without this call, they are left out. */
void kernel_import_use_pages(struct kernel_import *i);
/** Calls have files and lines of this source, which must outlive it; NULL: there is none. Before the first event. */
void kernel_import_use_source(struct kernel_import *i, struct kernel_source *source);
/**
 * Accounts an event whose call and stack are addresses, and whose cache is "" if it is one of kmalloc(). Its time is
 * treated as kernel_import_time() does.
 */
void kernel_import_event_at(struct kernel_import *i, const struct kmem_event *e);
/** The same of an allocation by allium itself, which has a row of its own, as in sys record. */
void kernel_import_own_event(struct kernel_import *i, const struct kmem_event *e);
/**
 * Accounts an event, whose call and stack are numbers as above. Pages under objects are those of the last event of
 * pages on their CPU: both must come in the order of their times.
 */
void kernel_import_event(struct kernel_import *i, const struct kmem_event *e);
/** Accounts an event of pages whose stack are addresses, with its time. */
void kernel_import_pages_at(struct kernel_import *i, const struct page_event *e, uint64_t time_ns,
                            uint32_t cpu);
/** Accounts one whose stack are numbers; `time_ns` comes from kernel_import_time(). */
void kernel_import_pages(struct kernel_import *i, const struct page_event *e, uint64_t time_ns, uint32_t cpu);
/** See kmem_accounts_end_at(). */
void kernel_import_end_at(struct kernel_import *i, uint64_t end_ns, uint64_t settle_ns);
/** After the last event. `realtime_ns`: CLOCK_REALTIME minus the clock of the trace. */
void kernel_import_end(struct kernel_import *i, int64_t realtime_ns);
/** Return the earliest and the latest time of an event so far. */
uint64_t kernel_import_first_ns(const struct kernel_import *i);
uint64_t kernel_import_last_ns(const struct kernel_import *i);
/** Returns how many events were accounted, of objects and of pages. */
uint64_t kernel_import_events(const struct kernel_import *i);

/** They belong to `i`. What reads the trace adds to the counts. */
struct kernel_capture *kernel_import_capture(struct kernel_import *i);
struct kernel_import_counts *kernel_import_counts(struct kernel_import *i);

#endif
