/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SESSION_H
#define SYS_SESSION_H

/*
 * A running tool of `allium sys`: its programs are loaded and attached, its events and rows are read.
 *
 * Runs in: the tool. Threads: one.
 * Owns: programs, maps and links; the kernel frees them when the process ends, however it ends.
 */

#include <sys/types.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/vec.h"
#include "sys/tool.h"

#define SYS_REFUSED_MAX 8

struct source_finder;
struct vmlinux;

struct sys_settings {
    struct sys_config config;      /* filters and stacks; sys_open() fills in the rest */
    const char *method;            /* the requested attach method; NULL: the first that works */
    const struct sys_part *part;   /* NULL: the tool's first */
    uint32_t rows_max;             /* rows on each CPU; 0: rows_default() */
    uint32_t ring_bytes;           /* 0: the tool's */
    uint32_t sample_ring_bytes;    /* 0: SYS_SAMPLE_RING_BYTES */
    uint32_t stacks_max;           /* 0: SYS_STACKS_DEFAULT */
    const struct vmlinux *vmlinux; /* source of the kernel; NULL: none. It must outlive the session */
    struct source_finder *finder;  /* for what vmlinux does not tell; likewise */
    bool lines;                    /* add files and lines to code of the kernel */
    const char *const *options;    /* values of the tool's own options, in their order; NULL: not given */
    /* functions to be marked in rows by call or function; NULL: none. They must outlive the session */
    const struct wrappers *helpers;
    /* a command that waits to be started; 0: none. Its program as it will be looked up */
    pid_t command;
    const char *command_program;
};

#define SYS_ROWS_DEFAULT   16384u /* for each CPU, */
#define SYS_ROWS_CPUS      4u     /* ... of so many; but */
#define SYS_ROWS_LEAST     2048u  /* ... for each of however many */
#define SYS_STACKS_DEFAULT 16384u

/** An attach method that was tried and did not work here. */
struct sys_refusal {
    const struct sys_attach_method *method;
    char *why;
};

struct sys_session {
    const struct sys_tool *tool;
    struct sys_settings settings;
    const struct sys_attach_method *method;
    struct buf lacks; /* what the method cannot show here, in words; empty: nothing */
    uint64_t lacking; /* bits of the columns that the method cannot fill here */
    struct VEC(struct sys_refusal) refused;
    struct bpf_object *object;
    struct VEC(struct bpf_link *) links;
    char *shared; /* the variables of the programs */
    size_t shared_bytes;
    struct sys_state *state; /* among them */
    struct ring_buffer *ring;
    int ring_fd, poll_fd;
    int waits_fd;                 /* see rows.c; -1: not open yet */
    struct table *rows;           /* the rows that events are added to */
    uint64_t counted[SYS_COUNTS]; /* as read last */
    /* CLOCK_MONOTONIC: when the present rows began; when the tool was stopped, or 0 */
    uint64_t since_ns, until_ns;
    uint64_t rows_ns; /* time covered by the rows that were taken last */
    uint64_t lose;    /* which record to drop, counted down; 0: none. See sys_loses() */
    struct buf says; /* lines of the tool for the user, printed and emptied after each step, unless --quiet */
    void *own;       /* data of the tool; its release() frees it */
    struct names *names;
    bool met;                /* the processes that may end before they are named were read */
    struct samples *samples; /* NULL: user stacks are not sampled */
    struct live *live;       /* NULL: no objects are followed */
    /* number of samples begun when rows were last taken from the kernel because of them */
    uint32_t gathered;
    struct sampled_rows *sampled; /* NULL: none yet */
};

/**
 * Loads and attaches the tool's programs with the best method that works here, or with the requested one;
 * counting begins. Returns -EPERM: a privilege is missing; -EOPNOTSUPP: no method works here; -ESRCH: the
 * process of a filter is gone; -EINVAL. Then `e` has the line, and *out is NULL.
 */
int sys_open(struct sys_session **out, const struct sys_tool *tool, const struct sys_settings *settings,
             struct error *e);
/** Detaches the programs; recorded data can still be read. */
void sys_stop(struct sys_session *s);
void sys_close(struct sys_session *s);

/** Returns the value of one of the tool's own options; "" if it takes none, NULL: not given. */
const char *sys_option(const struct sys_session *s, const char *name);
/** Returns the descriptor of a map of the object by name; -1: there is none. */
int sys_map(const struct sys_session *s, const char *name);
/**
 * Returns the address of a `const volatile` variable of the programs, to be set before loading (in ready()
 * and options); NULL: none.
 */
void *sys_variable(struct sys_session *s, const char *name, size_t bytes);

/** For tests: returns whether this record is the one that ALLIUM_SYS_LOSE=N wants dropped silently. Call it
 * once for each record. */
bool sys_loses(struct sys_session *s);

/** Returns whether the memory controller is one of cgroup version 1 here. */
bool sys_memory_is_v1(void);

/** Reads the counts, summed over CPUs, into s->counted. */
void sys_read_counts(struct sys_session *s);

/**
 * Waits at most `timeout_ms` (-1: without limit) until there are events to show, or until another descriptor
 * in poll_fd is ready, and adds the events to `t`. Returns their number, or -errno (-EINTR after a signal).
 */
int sys_wait(struct sys_session *s, int timeout_ms, struct table *t);

/** Appends all rows since the last call, summed over CPUs, to `t`; the programs begin anew. Returns 0 or
 * -errno. */
int sys_take_rows(struct sys_session *s, struct table *t);

/**
 * For sums of rows from the kernel, the tool's values with extra data behind them: their size, and the
 * addition of one to another.
 */
size_t rows_sum_bytes(const struct sys_session *s);
void rows_add(const struct sys_session *s, void *sum, const void *value);
/** Makes a row from a sum. Returns false if it is not to be shown. */
bool rows_show(struct sys_session *s, struct table *t, const void *key, const void *sum);

/** Returns when every program that was running has ended. `table`: any map of the object. */
void rows_wait_for_programs(struct sys_session *s, int table);

/** If rows are made from samples: takes them from the kernel if its table may soon be full. Nothing else
 * changes. */
void rows_gather(struct sys_session *s);

/** Calls `each` for all entries of a hash map of the object (one value for all CPUs), while the programs go
 * on. */
void sys_each(struct sys_session *s, const char *map,
              void (*each)(void *arg, const void *key, const void *value), void *arg);

/** Gets the frames of a stack, innermost first. Returns 0 if there are none (`id` below 0, or it is gone). */
unsigned sys_stack_frames(struct sys_session *s, int id, uint64_t frames[static SYS_STACK_DEPTH]);
/** Returns the line, with its \n, that stands in place of a stack that was lost; NULL: the number tells no loss. */
const char *sys_stack_loss(int id);

#endif
