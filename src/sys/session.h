/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SESSION_H
#define SYS_SESSION_H

/*
 * A tool of `allium sys` at work: its programs loaded and attached, its events and rows read.
 *
 * Runs in: the tool. Threads: one. Owns: programs, maps and links; when it ends, however it ends, the kernel takes them
 * back.
 */

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/vec.h"
#include "sys/tool.h"

#define SYS_REFUSED_MAX 8

struct vmlinux;

struct sys_settings {
    struct sys_config config;      /* filters and stacks; the rest is filled in */
    const char *rung;              /* NULL: the first that works */
    const struct sys_part *part;   /* NULL: the tool's first */
    uint32_t rows_max;             /* counted on each CPU; 0: rows_default() */
    uint32_t ring_bytes;           /* 0: the tool's */
    uint32_t sample_ring_bytes;    /* 0: SYS_SAMPLE_RING_BYTES */
    uint32_t stacks_max;           /* 0: SYS_STACKS_DEFAULT */
    const struct vmlinux *vmlinux; /* of the kernel's source; NULL: none. It must live longer */
    bool lines;                    /* files and lines with code of the kernel */
    const char *const *options;    /* values of the tool's own options, in their order; NULL: not given */
};

#define SYS_ROWS_DEFAULT   16384u /* for each CPU, */
#define SYS_ROWS_CPUS      4u     /* ... of so many; but */
#define SYS_ROWS_LEAST     2048u  /* ... for each of however many */
#define SYS_STACKS_DEFAULT 16384u

/** A rung that was tried and did not work here. */
struct sys_refusal {
    const struct sys_attach_method *rung;
    char *why;
};

struct sys_session {
    const struct sys_tool *tool;
    struct sys_settings settings;
    const struct sys_attach_method *rung;
    struct buf lacks; /* what it cannot show here, in words; empty: nothing */
    uint64_t lacking; /* bits of the columns that it cannot fill here */
    struct VEC(struct sys_refusal) refused;
    struct bpf_object *object;
    struct VEC(struct bpf_link *) links;
    char *shared; /* the programs' variables */
    size_t shared_bytes;
    struct sys_state *state; /* among them */
    struct ring_buffer *ring;
    int ring_fd, poll_fd;
    int waits_fd;                 /* see rows.c; -1: not yet */
    struct table *rows;           /* that events are being added to */
    uint64_t counted[SYS_COUNTS]; /* at the last look */
    uint64_t since_ns, until_ns;  /* CLOCK_MONOTONIC: when rows began anew; when it was stopped, or 0 */
    uint64_t rows_ns;             /* how long the rows that were taken last were added to */
    uint64_t lose;                /* the record that is to be lost, counted down; 0: none. See sys_loses() */
    void *own;                    /* of the tool, see its release() */
    struct names *names;
    bool met;                /* whoever may end before it is named has been looked at */
    struct samples *samples; /* NULL: user stacks are not sampled */
    struct live *live;       /* NULL: nothing is followed */
    uint32_t gathered;       /* samples begun, when rows were last taken from the kernel because of them */
    struct sampled_rows *sampled; /* NULL: none yet */
};

/**
 * Loads and attaches the tool's programs by the best rung that works here, or by the one that is asked for: from then
 * on things are counted. -EPERM: a privilege is missing; -EOPNOTSUPP: no rung works here; -ESRCH: the process of a
 * filter is gone; -EINVAL. Then `e` has the line, *out is NULL.
 */
int sys_open(struct sys_session **out, const struct sys_tool *tool, const struct sys_settings *settings,
             struct error *e);
/** Detaches; what was seen can still be read. */
void sys_stop(struct sys_session *s);
void sys_close(struct sys_session *s);

/** The value of one of the tool's own options; "" where it takes none, NULL: not given. */
const char *sys_option(const struct sys_session *s, const char *name);
/** A map of the object by name, its descriptor; -1: there is none. */
int sys_map(const struct sys_session *s, const char *name);
/**
 * Where a `const volatile` variable of the programs lies, to be set before they are loaded (in ready() and options);
 * NULL: none.
 */
void *sys_variable(struct sys_session *s, const char *name, size_t bytes);

/** For tests: is this record the one that ALLIUM_SYS_LOSE=N wants lost, unsaid? To be asked once for each. */
bool sys_loses(struct sys_session *s);

/** Whether the memory controller is one of cgroup version 1 here. */
bool sys_memory_is_v1(void);

/** Reads what was counted, summed over CPUs, into s->counted. */
void sys_read_counts(struct sys_session *s);

/**
 * Waits until there are events to show, at most `timeout_ms` (-1: for ever), or until another descriptor in poll_fd is
 * ready; adds them to `t`. Returns how many, or -errno (-EINTR after a signal).
 */
int sys_wait(struct sys_session *s, int timeout_ms, struct table *t);

/** All rows since the last call, summed over CPUs, appended to `t`; the programs begin anew. 0 or -errno. */
int sys_take_rows(struct sys_session *s, struct table *t);

/**
 * Sums of rows, as they come from the kernel: the tool's values, and what is behind them. How long, and one added to
 * another.
 */
size_t rows_sum_bytes(const struct sys_session *s);
void rows_add(const struct sys_session *s, void *sum, const void *value);
/** Makes a row of one. False: it is none that is shown. */
bool rows_show(struct sys_session *s, struct table *t, const void *key, const void *sum);

/** Where rows are made of samples: takes them from the kernel if its table may soon be full. Nothing else changes. */
void rows_gather(struct sys_session *s);

/** Calls `each` for all entries of a hash map of the object (one value for all CPUs), while the programs go on. */
void sys_each(struct sys_session *s, const char *map,
              void (*each)(void *arg, const void *key, const void *value), void *arg);

/** The frames of a stack, innermost first; 0: there are none (`id` below 0, or it is gone). */
unsigned sys_stack_frames(struct sys_session *s, int id, uint64_t frames[static SYS_STACK_DEPTH]);

#endif
