/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOL_H
#define SYS_TOOL_H

/*
 * What a tool of `allium sys` is: a BPF object (src/bpf/<name>.bpf.c), the records they share (src/bpf/<name>.h), and
 * one of these. It says what the columns are and how a record becomes a row of them; filters, attaching, waiting,
 * sorting, showing, keeping and counting what was lost are the same for all.
 *
 * Runs in: the tool. Everything here is constant data of a tool's file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/sys.h"
#include "model/table/table_measure.h"

struct sys_session;

#define SYS_KEY_BYTES_MAX 256u

/** A program of the object, and what must hold of the kernel for it to be the right one. */
struct sys_attachment {
    const char *program;
    const char *tracepoint; /* whose arguments it takes by position; NULL: it asks for them by name */
    const char *arguments;  /* "call_site,ptr": the names of the first ones, in their order */
    const char *if_type;    /* left out where the kernel has no such struct; NULL: needed */
    /* of SEC("perf_event"): PERF_COUNT_SW_*; 0: its section says what it is attached to */
    uint32_t software_event;
};

#define SYS_ATTACHMENTS_MAX 20

/** What a rung cannot show, either, where the kernel has no such member of a struct. */
struct sys_without {
    const char *type, *member;
    const char *lacks; /* as of the rung; with the version that has it */
    uint64_t lacking;
};

/** One way to attach. They are ordered by what they show, then by cost; the first that works is taken. */
struct sys_attach_method {
    const char *name;                  /* of --attach */
    const char *lacks;                 /* what it cannot show, in words; NULL: nothing */
    uint64_t lacking;                  /* bits of the columns that it cannot fill: they are not shown */
    const struct sys_without *without; /* NULL: nothing */
    struct sys_attachment attach[SYS_ATTACHMENTS_MAX]; /* ends with a program of NULL */
};

/** By what rows can be told apart (--by). */
struct sys_part {
    const char *name;
    const char *doc;
    uint32_t bits;      /* for config.parts */
    uint32_t key_bytes; /* how far the key reaches then */
    uint64_t columns;   /* bits of the columns that have a meaning only then */
    uint32_t stacks;    /* enum sys_stacks: which are taken for it, unless --stacks says */
    bool spaces;        /* code of processes is named for it */
    bool kernel_code;   /* code of the kernel is named for it, with --lines by file and line, too */
    bool source;        /* of such code, files of the kernel's source */
};

/** An option of its own; its value is asked for with sys_option(). */
struct sys_option {
    const char *name, *value, *doc; /* as struct option_doc has them */
    uint64_t columns; /* bits of those that have values only with it, or with another one of these bits */
};

/** A count of its own (from SYS_COUNT_OWN), and what it means. */
struct sys_counted {
    uint32_t count;
    const char *words; /* after the number: "free{s} of NULL", see text_add_words() */
    const char *key;   /* in JSON */
    bool lost;         /* something is missing from the rows because of it */
};

/**
 * Of a tool that can follow what it sees allocated until it is freed (SYS_LIVE() in its programs, see live_objects.h).
 */
struct sys_live {
    const char *option;                    /* of its own: how many at most; beside "live" */
    uint32_t most;                         /* unless that says */
    size_t key_at;                         /* in the map's values: the row's key, as far as that reaches */
    uint64_t (*bytes)(const void *value);  /* of one that is live */
    uint32_t bytes_column, objects_column; /* what is live */
    uint32_t first_column,
        last_column; /* what has happened: 0 in a row of which something is live and no more */
    void (*name)(struct sys_session *s, struct table *t, const void *key,
                 uint64_t time_ns); /* begins a row */
};

/**
 * What --hist shows the distribution of. Of rows: what programs give row_measure(), below each row in the one column
 * that is a histogram, which comes of itself. Of events: the sum of some of their columns, over all events.
 */
struct sys_measure {
    const char *doc; /* of --hist: "how long each took" */
    uint32_t column; /* of rows */
    /* of events: MEASURE_COLUMNS, how many there were, all together, the most, the histogram */
    const struct table_column *summary;
    uint64_t columns; /* of events: bits of those that are added; one without a value leaves the event out */
};

struct sys_tool {
    const char *name;
    const char *summary;         /* half a line: which question it answers */
    const char *const *examples; /* as struct command has them */
    const unsigned char *object; /* gzip */
    const size_t *object_bytes;
    const struct sys_attach_method *rungs; /* ends with a name of NULL */
    const struct table_column *columns;
    uint32_t n_columns;
    uint32_t weight; /* the column that --folded adds up, and rows are sorted by at first */
    const struct sys_measure *measure;
    const struct sys_option *options;  /* ends with a name of NULL; NULL: none */
    const struct sys_counted *counted; /* ends with words of NULL; NULL: none */
    uint32_t ring_bytes;               /* of a tool with events: a power of two */
    /* rows come so often unless --interval says otherwise, on a terminal each in the last one's place */
    uint64_t interval_ns;

    /* A tool with rows: */
    const struct sys_part *parts; /* the first is the default; ends with a name of NULL. NULL: events */
    /* the column of whose container it is, which comes of itself where rows are of processes; 0: none */
    uint32_t container;
    size_t key_bytes, value_bytes; /* the latter a multiple of 8 */
    size_t user_stack_at;          /* in the key: the number of a user stack (__s32); 0: it has none */
    void (*add)(void *sum, const void *value); /* one CPU's values to the sum of all */
    void (*row)(struct sys_session *s, struct table *t, const void *key, const void *sum);
    uint64_t (*weigh)(const void *value); /* what the values of one event add to `weight`; NULL: 1 */
    const struct sys_live *live;          /* NULL: it follows nothing */

    /* A tool with events: */
    void (*event)(struct sys_session *s, struct table *t, const void *event, size_t bytes);
    bool urgent;     /* each is shown at once, and takes no memory that was not there before */
    uint32_t stacks; /* enum sys_stacks: taken unless --stacks asks for others */

    /* Either, or NULL: */
    int (*ready)(struct sys_session *s, struct error *e); /* before the programs are loaded */
    void (*gather)(struct sys_session *s); /* before rows are made: what else they need from the kernel */
    /* After them: rows that no key stands for; of events, when the programs are detached: what was under way. */
    void (*rest)(struct sys_session *s, struct table *t);
    void (*settle)(struct sys_session *s);  /* adds to s->counted what only maps tell */
    void (*release)(struct sys_session *s); /* what s->own owns */
};

/** Of the column for tool->container. */
#define SYS_CONTAINER "container", TABLE_PLAIN, TABLE_TEXT, .rare = true

/** The object that the build made of src/bpf/NAME.bpf.c: declared, and in a descriptor. */
#define SYS_OBJECT_OF(name)                                                                                  \
    extern const unsigned char sys_object_##name[];                                                          \
    extern const size_t sys_object_##name##_bytes;                                                           \
    extern const struct sys_tool sys_##name
#define SYS_OBJECT(name) .object = sys_object_##name, .object_bytes = &sys_object_##name##_bytes

/** All of them, in the order of src/meson.build; ends with NULL. */
extern const struct sys_tool *const sys_tools[];
const struct sys_tool *sys_tool_find(const char *name);

#endif
