/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOL_H
#define SYS_TOOL_H

/*
 * The definition of a tool of `allium sys`. A tool is a BPF object (src/bpf/<name>.bpf.c), the records that
 * it shares with the command (src/bpf/<name>.h), and a struct sys_tool, which defines the columns and how a
 * record becomes a row. Filters, attaching, waiting, sorting, showing, recording and counting of losses are
 * the same for all.
 *
 * Runs in: the tool. Everything here is constant data of a tool's file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "bpf/sys.h"
#include "model/table/table_measure.h"

struct buf;
struct sys_session;

#define SYS_KEY_BYTES_MAX 256u

/** A program of the object, and the properties of the kernel that it needs. */
struct sys_attachment {
    const char *program;
    const char *tracepoint; /* takes the arguments of this tracepoint by position; NULL: takes them by name */
    const char *arguments;  /* "call_site,ptr": the names of the first arguments, in order */
    const char *if_type;    /* optional: left out if the kernel has no such struct; NULL: required */
    /* of SEC("perf_event"): PERF_COUNT_SW_*; 0: its section says what it is attached to */
    uint32_t software_event;
    bool by_hand; /* loaded here, and attached by the tool: a uprobe */
};

#define SYS_ATTACH(...) ((const struct sys_attachment[]){__VA_ARGS__, {.program = NULL}})

/** A value that a method cannot show if the kernel's struct has no such member. */
struct sys_without {
    const char *type, *member;
    const char *lacks; /* as in the method; with the kernel version that has it */
    uint64_t lacking;
};

/** One attach method. The methods are ordered by what they show, then by cost; the first one that works is
 * used. */
struct sys_attach_method {
    const char *name;                    /* for --attach */
    const char *lacks;                   /* the values that it cannot show, in words; NULL: none */
    uint64_t lacking;                    /* bits of the columns that it cannot fill, which are not shown */
    const struct sys_without *without;   /* NULL: nothing */
    const struct sys_attachment *attach; /* SYS_ATTACH(): ends with a program of NULL */
};

/** A part of the key by which rows are grouped (--by). */
struct sys_part {
    const char *name;
    const char *doc;
    uint32_t bits;      /* for config.parts */
    uint32_t key_bytes; /* the length of the key then */
    uint64_t columns;   /* bits of the columns that apply only then */
    uint32_t stacks;    /* enum sys_stacks: the stacks to record, unless --stacks is given */
    bool spaces;        /* names of code of processes are needed */
    bool samples;       /* stacks are copied, and unwound by the rules of the files, as with --sample 1 */
    bool kernel_code;   /* names of code of the kernel are needed, with --lines also files and lines */
    bool source;        /* files of the kernel's source are needed for such code */
    /* NULL, or one of the tool's own options: bits of the columns that have no values by this part without it */
    const char *option;
    uint64_t option_columns;
    /*
     * For rows of a recording that are grouped anew by this part: bits of the columns whose values tell its rows apart.
     * They must be among those of the part by which they were recorded, or else `made_of`, from which the tool's
     * name_again() makes them (0: from none).
     */
    uint64_t names, made_of;
    bool recorded; /* only rows of a recording have it: it takes every event */
    /* The rows that have it, of a recording with several kinds: "kmem_pair"; NULL: the tool's */
    const char *rows;
    uint32_t weight; /* the default sort column by this part; 0: the tool's */
};

/** For --charge and --slab-account: columns. */
struct sys_charge {
    uint32_t site, allocated, slack, requested, allocations, frees, freed, live, live_objects;
};

/** A tool's own option; its value comes from sys_option(). */
struct sys_option {
    const char *name, *value, *doc; /* as in struct option_doc */
    /* bits of the columns that have values only with it, or with another option with the same bit */
    uint64_t columns;
};

/** A tool's own count (from SYS_COUNT_OWN), and its meaning. */
struct sys_counted {
    uint32_t count;
    const char *words; /* after the number: "free{s} of NULL", see text_add_words() */
    const char *key;   /* in JSON */
    bool lost;         /* it means that rows miss something */
};

/**
 * For a tool that can follow allocated objects until they are freed (SYS_LIVE() in its programs, see
 * live_objects.h).
 */
struct sys_live {
    const char *option; /* its own option for their largest number, besides "live" */
    uint32_t most;      /* the default of that option */
    bool always;        /* they are followed without an option */
    size_t key_at;      /* offset of the row's key in the map's values */
    /* bytes of a live object; NULL: show() fills the columns of bytes and objects, too */
    uint64_t (*bytes)(const void *value);
    uint32_t bytes_column, objects_column; /* columns for live objects */
    uint32_t first_column,
        last_column; /* what has happened: 0 in a row of which something is live and no more */
    void (*name)(struct sys_session *s, struct table *t, const void *key,
                 uint64_t time_ns); /* begins a row */
    /* For columns that do not come from the key: add() adds a live object, the value of its address in the map, to a
     * row's sum; show() fills the columns from it. NULL, both: there are no such columns. */
    void (*add)(struct sys_session *s, const void *key, void *sum, uint64_t address, const void *value);
    void (*show)(struct sys_session *s, struct table *t, const void *key, const void *sum);
    size_t sum_bytes; /* of a sum, which begins as zeros; 0: it is a row's value */
    /* Returns whether the object is one to be shown; NULL: all are. */
    bool (*counts)(struct sys_session *s, const void *value);
};

/**
 * What --hist shows the distribution of. For rows: the values that the programs pass to row_measure(), below
 * each row in the one histogram column, which is added automatically. For events: the sum of some columns,
 * over all events.
 */
struct sys_measure {
    const char *doc; /* of --hist: "how long each took" */
    uint32_t column; /* for rows */
    /* of events: MEASURE_COLUMNS, how many there were, all together, the most, the histogram */
    const struct table_column *summary;
    /* for events: bits of the columns to add up; an event without one of the values is left out */
    uint64_t columns;
};

/** What `allium sys NAME --explain` tells of a tool, beside what its attach methods tell. */
struct sys_explanation {
    const char *const *questions; /* that it answers, whole sentences; ends with NULL */
    const char *event;            /* what the cost is of: "an allocation or a free" */
    /* the CPU time that it adds to an event, by bench/sys_tools; 0: its events are too rare to measure it */
    uint32_t event_ns;
    const char *measured; /* how that was: "rows by site; tp_btf, Linux 6.18 in a virtual machine" */
    const char *unseen;   /* what none of its methods shows, in words; NULL: nothing is known to be missing */
};

struct sys_tool {
    const char *name;
    const char *called;          /* in errors; NULL: as sys_tool_add_words() has it */
    const char *summary;         /* half a line: the question that the tool answers */
    const char *const *examples; /* as in struct command */
    const struct sys_explanation *explanation;
    const unsigned char *object; /* gzip */
    const size_t *object_bytes;
    const struct sys_attach_method *methods; /* ends with a name of NULL */
    const struct table_column *columns;
    uint32_t n_columns;
    uint32_t weight; /* the column that --folded adds up, and the default sort column */
    const struct sys_measure *measure;
    const struct sys_option *options;  /* ends with a name of NULL; NULL: none */
    const struct sys_counted *counted; /* ends with words of NULL; NULL: none */
    uint32_t ring_bytes;               /* for a tool with events: a power of two */
    /* rows come so often unless --interval says otherwise, on a terminal each in the last one's place */
    uint64_t interval_ns;

    /* A tool with rows: */
    const struct sys_part *parts; /* the first is the default; ends with a name of NULL. NULL: events */
    /* the column of whose container it is, which comes of itself where rows are of processes; 0: none */
    uint32_t container;
    size_t key_bytes, value_bytes; /* value_bytes is a multiple of 8 */
    size_t user_stack_at;          /* offset in the key of the number of a user stack (__s32); 0: none */
    /* NULL, or: sets in a key to 0 what programs tell apart and rows do not. The rows that are equal then become one */
    void (*merge_key)(struct sys_session *s, void *key);
    void (*add)(void *sum, const void *value); /* adds the values of one CPU to the sum over all */
    void (*row)(struct sys_session *s, struct table *t, const void *key, const void *sum);
    uint64_t (*weigh)(const void *value); /* what one event adds to `weight`; NULL: 1 */
    const struct sys_live *live;          /* NULL: it follows no objects */
    uint64_t recorded;                    /* bits of the columns that only rows of a recording have */
    const struct sys_charge *charge;      /* NULL: it has no --charge */
    bool reads_traces;                    /* --from also takes what `allium sys import` does */
    uint32_t directory;                   /* the column that --depth cuts; 0: there is no such option */
    bool marks_helpers;                   /* rows tell which calls only allocate for their callers */
    /* For rows that are grouped anew, or NULL: fills the columns that are made of others; after they were merged, those
     * whose values are no sums. */
    void (*name_again)(struct table *t, uint32_t row);
    void (*derive_again)(struct table *t, uint32_t row);

    /* A tool with events: */
    void (*event)(struct sys_session *s, struct table *t, const void *event, size_t bytes);
    bool urgent;     /* each event is shown at once, using only memory allocated before */
    uint32_t stacks; /* enum sys_stacks: recorded unless --stacks says otherwise */

    /* Either, or NULL: */
    /*
     * Returns the tool that the command line means: an option may select another one, with rows of its own. That one's
     * `name` is TOOL_OPTION: "mmapsnoop_summary". `argv` is the command line from the tool's name on.
     */
    const struct sys_tool *(*variant)(int argc, char **argv);
    int (*ready)(struct sys_session *s, struct error *e); /* before the programs are loaded */
    /* when counting has begun, and when it has ended, before the programs are detached (s->until_ns is set then) */
    void (*counting)(struct sys_session *s);
    /* When they are attached, before anything is counted. Errors are those of sys_open(). */
    int (*begin)(struct sys_session *s, struct error *e);
    /*
     * Whenever sys_wait() is called. Returns after how many milliseconds to call it again at the latest; -1: no
     * limit.
     */
    int (*step)(struct sys_session *s);
    bool attaches_later;                   /* also while it waits: it keeps its privileges */
    bool observes_command;                 /* the command after -- is all that is observed */
    void (*gather)(struct sys_session *s); /* before rows are made: gets other data from the kernel */
    /* After them: adds rows without a key; for events, called when the programs are detached: adds events in
     * progress. */
    void (*rest)(struct sys_session *s, struct table *t);
    void (*count_rest)(struct sys_session *s); /* adds to s->counted what only maps tell */
    void (*release)(struct sys_session *s);    /* frees s->own */
};

/** Of the column for tool->container. */
#define SYS_CONTAINER "container", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true

/** The object that the build made of src/bpf/NAME.bpf.c: declared, and in a descriptor. */
#define SYS_OBJECT_OF(name)                                                                                  \
    extern const unsigned char sys_object_##name[];                                                          \
    extern const size_t sys_object_##name##_bytes;                                                           \
    extern const struct sys_tool sys_##name
#define SYS_OBJECT(name) .object = sys_object_##name, .object_bytes = &sys_object_##name##_bytes

/** All of them, in the order of src/meson.build; ends with NULL. */
extern const struct sys_tool *const sys_tools[];
const struct sys_tool *sys_tool_find(const char *name);
/** Appends the words for a tool of this name on a command line: "sys kmem", "sys mmapsnoop --summary". */
void sys_tool_add_words(struct buf *b, const char *name, size_t len);
/** Returns the option that selects a variant of this name; NULL: it is no variant. */
const char *sys_tool_option(const char *name);
/** For variant(): returns whether `argv` has --NAME, --NAME=... or -LETTER before "--". A letter of 0: none. */
bool sys_tool_is_given(int argc, char **argv, const char *name, char letter);

#endif
