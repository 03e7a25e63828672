/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_FTRACE_TEXT_H
#define COLLECT_FTRACE_TEXT_H

/*
 * Lines of a kernel trace as text, with the kmem events in them: what the files `trace` and `trace_pipe` of tracefs
 * print, `trace-cmd report` and `perf script`, of kernels from 3.x on, each with the fields that it prints by itself.
 *
 *         bash-1234    [001] d..1.  12.345678: kmalloc: call_site=alloc_pipe_info+0x4a/0x1c0 ptr=... bytes_req=...
 *         bash  1234 [001]    12.345678: kmem:kmalloc: (alloc_pipe_info+0x4a) call_site=ffffffff8123 ptr=0xffff...
 *
 * Runs in: the tool. Threads: pure. Owns: nothing; texts lie in the line.
 */

#include <stddef.h>
#include <stdint.h>

#include "model/kernel/page_event.h"

struct ftrace_text_span {
    const char *at;
    size_t len; /* 0: not there */
};

enum ftrace_text_kind {
    FTRACE_TEXT_OTHER, /* a comment, an empty line, something else */
    FTRACE_TEXT_EVENT, /* an event that has nothing to do with memory */
    FTRACE_TEXT_ALLOC,
    FTRACE_TEXT_FREE,
    FTRACE_TEXT_PAGES,  /* `pages` */
    FTRACE_TEXT_TASK,   /* a thread has begun, or has a new name: `task_pid` is called `task_comm` */
    FTRACE_TEXT_LOST,   /* `lost` events are missing; 0: some, the line does not say how many */
    FTRACE_TEXT_STACK,  /* what follows is the stack of this thread's last event */
    FTRACE_TEXT_CALLER, /* a line of a stack: `call_site` */
    FTRACE_TEXT_BROKEN, /* a kmem event in another form, or without a field that it needs */
};

struct ftrace_text_line {
    enum ftrace_text_kind kind;
    struct ftrace_text_span comm;
    int32_t pid;
    int32_t process;     /* 0: not known */
    uint8_t has_process; /* the line has a place for it */
    uint32_t cpu;
    uint64_t time_ns;
    /* it came in an interrupt or softirq, which has nothing to do with the program; only where the line says it */
    uint8_t is_interrupt;
    uint8_t is_kmalloc;
    uint8_t is_percpu; /* memory that each CPU has for itself: what was requested is of one CPU */
    struct ftrace_text_span call_site; /* "alloc_pipe_info+0x4a/0x1c0 [ext4]", or hex */
    struct ftrace_text_span name;      /* of a call_site in hex, from the words in brackets before it */
    /* The address, as a number that is the same for the same object: raw or hashed. 0: NULL */
    uint64_t address;
    uint8_t address_unknown; /* "(____ptrval____)" */
    uint64_t requested_bytes, allocated_bytes;
    uint8_t no_allocated_bytes; /* the line does not say them: the requested ones stand for them */
    struct ftrace_text_span cache;
    struct ftrace_text_span gfp; /* of an allocation, "GFP_KERNEL|__GFP_ZERO" */
    struct page_event pages;     /* all but program, flags and stack */
    int32_t task_pid;
    struct ftrace_text_span task_comm;
    uint32_t cpus;    /* of the machine, that were on, as the header says; 0: another line */
    uint8_t is_ticks; /* time_ns is a number of ticks of a clock that is not time */
    uint64_t lost;
};

/** Reads a line, without its newline; `line` need not end with a NUL. */
void ftrace_text_read(const char *line, size_t len, struct ftrace_text_line *out);

#endif
